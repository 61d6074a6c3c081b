"""Flips: rows scored under every value of their sensitive columns, and the metrics of that."""

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from fcorr._core import InvalidInputError, NotEstimableWarning
from fcorr.metrics import (
    FlippedScores,
    average_individual_fairness,
    decisions_flipped,
    flip_changes,
    flip_scores,
)
from fcorr.metrics._checks import is_missing
from fcorr.metrics.flips import (
    encode_grouped,
    quantile_groups,
    sum_of_distances,
)

NAN = float("nan")
AGE = [30, 40, 50, 60]
EFFECT = {"f": 1, "m": 2, "x": 5, 1: 1, 2: 2, 3: 5}
SEX, SOME = ["m", "f", "f", "m"], ["m", None, "f", None]


def objects(missing):
    return pd.Series(["m", missing, "f", missing], dtype=object)


KNOWN = {
    "pandas text": pd.Series(SEX),
    "pandas ordered": pd.Series(pd.Categorical(SEX, ["x", "m", "f"], ordered=True)),
    "polars enum": pl.Series(SEX, dtype=pl.Enum(["x", "m", "f"])),
    "pyarrow integers": pa.array([2, 1, 1, 2]),
    "numpy floats": np.array([2.0, 1, 1, 2]),
}
MISSING = {
    "pandas text": pd.Series(SOME),
    "pandas None": objects(None),
    "pandas NaN among text": objects(np.nan),
    "pandas NA among text": objects(pd.NA),
    "pandas categorical": pd.Series(SOME, dtype="category"),
    "pandas floats": pd.Series([2.0, NAN, 1.0, NAN]),
    "pandas integers": pd.Series([2, None, 1, None], dtype="Int64"),
    "pandas from arrow": pd.Series([2, None, 1, None], dtype="int64[pyarrow]"),
    "polars text": pl.Series(SOME),
    "polars categorical": pl.Series(SOME, dtype=pl.Categorical),
    "polars NaN and null": pl.Series([2.0, None, 1.0, NAN]),
    "pyarrow dictionary": pa.array(SOME).dictionary_encode(),
    "pyarrow NaN and null": pa.array([2.0, NAN, 1.0, None]),
    "numpy NaN among objects": np.array(["m", np.nan, "f", np.nan], dtype=object),
    "numpy floats": np.array([2.0, NAN, 1.0, NAN]),
}


def table_with(column):
    if isinstance(column, pd.Series):
        return pd.DataFrame({"sex": column, "age": AGE}).set_axis([5, 5, 9, 0])
    if isinstance(column, pl.Series):
        return pl.DataFrame({"sex": column, "age": AGE})
    if isinstance(column, np.ndarray):
        return np.column_stack([column, np.array(AGE, dtype=column.dtype)])
    return pa.table({"sex": column, "age": AGE})


def column_of(table, name):
    if isinstance(table, np.ndarray):
        return list(table[:, ["sex", "age"].index(name)])
    return table[name].to_pylist() if isinstance(table, pa.Table) else list(table[name])


def dtype_of(table):
    if isinstance(table, np.ndarray):
        return table.dtype
    return table["sex"].type if isinstance(table, pa.Table) else table["sex"].dtype


def sex_of(table):
    return 0 if isinstance(table, np.ndarray) else "sex"


def age_and_sex(table):
    return [
        age + (0 if is_missing(sex) else EFFECT[sex])
        for age, sex in zip(column_of(table, "age"), column_of(table, "sex"), strict=True)
    ]


@pytest.mark.parametrize(
    "column", [*KNOWN.values(), *MISSING.values()], ids=[*KNOWN, *(f"{k}, some" for k in MISSING)]
)
def test_every_row_is_scored_under_every_category(column):
    table, seen = table_with(column), []

    def predict(flipped):
        seen.append(flipped)
        return age_and_sex(flipped)

    before = [str(value) for value in column_of(table, "sex")]
    flips = flip_scores(predict, table, sex_of(table))
    own = [None if is_missing(value) else value for value in column_of(table, "sex")]
    names = ("f", "m") if "m" in own else (1, 2)
    assert flips.categories == ((*names, None) if None in own else names)
    assert flips.groups == own
    effects = [0 if name is None else EFFECT[name] for name in flips.categories]
    assert flips.scores.tolist() == [[age + effect for effect in effects] for age in AGE]
    assert flips.factual.tolist() == age_and_sex(table)

    assert [str(value) for value in column_of(table, "sex")] == before  # the table is as it was
    for flipped, name in zip(seen, flips.categories, strict=True):
        assert type(flipped) is type(table)
        assert dtype_of(flipped) == dtype_of(table)
        written = column_of(flipped, "sex")
        if name is None:  # as the table writes it
            assert all(is_missing(value) for value in written)
            assert {type(value) for value in written} == {type(column_of(table, "sex")[1])}
        else:
            assert written == [name] * 4
        if isinstance(table, pd.DataFrame):
            pd.testing.assert_index_equal(flipped.index, table.index)
            pd.testing.assert_index_equal(flipped.columns, table.columns)


@pytest.mark.parametrize("sensitive", [[2, 0], (-1, np.int64(0))])
def test_positions_in_an_array(sensitive):
    X = np.array([[0, 7.0, 1], [1, 9.0, 0]])
    flips = flip_scores(lambda X: X @ [1, 10, 100], X, sensitive)
    assert flips.categories == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert flips.original.tolist() == [2, 1]
    assert flips.scores.tolist() == [[70, 71, 170, 171], [90, 91, 190, 191]]
    text = np.array([["m", "a"], ["f", "a"]])
    assert flip_scores(lambda X: X[:, 0] == "m", text, 0).scores.tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    "shape",
    [
        lambda p: p,
        lambda p: p[:, None],
        lambda p: np.column_stack([1 - p, p]),
        pl.Series,
        lambda p: pa.chunked_array([p]),
        lambda p: pd.DataFrame({"no": 1 - p, "yes": p}),
    ],
)
def test_scores_in_several_shapes(shape):
    table = table_with(KNOWN["pandas text"])
    flips = flip_scores(lambda X: shape(np.array(age_and_sex(X)) / 100), table, "sex")
    np.testing.assert_allclose(
        flips.scores, [[(age + 1) / 100, (age + 2) / 100] for age in AGE], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (np.zeros((4, 5)), r"one score per row .* for 4 rows, got shape \(4, 5\). Wrap it to"),
        (np.zeros((4, 2)), r"two columns of probabilities .* got shape \(4, 2\)"),
        (np.zeros(2), r"for 4 rows, got shape \(2,\)"),
        (["a", "b", "c", "d"], r"predict\(X\) must hold numbers"),
        ([1, np.nan, 2, 2], r"predict\(X\) must be finite, got 1 missing"),
    ],
)
def test_bad_scores(output, text):
    with pytest.raises(InvalidInputError, match=text):
        flip_scores(lambda X: output, table_with(KNOWN["pandas text"]), "sex")


# Several columns: every combination of their values

RACE, SEXES = {"a": 0.0, "b": 0.5, "c": 2.0}, {"f": 0.0, "m": 0.125}


def make_people(n=120):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "race": rng.permutation(np.resize(list(RACE), n)),
            "x": rng.integers(0, 16, n) / 8,
            "sex": rng.permutation(np.resize(list(SEXES), n)),
            "age": rng.permutation(np.resize(np.arange(20, 80), n)),
        }
    )


def additive(table):
    return table["x"] + table["race"].map(RACE) + table["sex"].map(SEXES)


@pytest.mark.parametrize("make", [lambda X: X, pl.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize(
    ("sensitive", "expected"),
    [
        (["race", "sex"], tuple(product("abc", "fm"))),
        (("sex", "race"), tuple(product("fm", "abc"))),  # the caller's order
        (["sex"], ("f", "m")),  # a list of one column is that column
    ],
)
def test_every_row_is_scored_under_every_combination(make, sensitive, expected):
    table, names = make_people(), list(sensitive)

    def predict(X):
        return additive(X if isinstance(X, pd.DataFrame) else X.to_pandas())

    flips = flip_scores(predict, make(table), sensitive)
    assert flips.categories == expected
    for j, values in enumerate(expected):
        flipped = table.assign(**dict(zip(names, values, strict=True)))
        np.testing.assert_array_equal(flips.scores[:, j], additive(flipped))
    np.testing.assert_array_equal(flips.factual, additive(table))
    assert flips.factual_scores is None  # every row's own combination is among them


# Measurements: many numbers, flipped to a few values that stand for groups


NUMBERS = {
    "pandas nullable": lambda ages: pd.DataFrame({"age": pd.array(ages, dtype="Int64")}),
    "polars floats": lambda ages: pl.DataFrame({"age": (ages / 2).astype(np.float32)}),
    "pyarrow": lambda ages: pa.table({"age": pa.array(ages, type=pa.int8())}),
    "numpy objects": lambda ages: np.array(ages.tolist(), dtype=object)[:, None],
    "names": lambda ages: pd.DataFrame({"age": pd.Series(ages, dtype="category")}),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_values_are_numbers_that_the_column_can_hold(name):
    def numbers_of(table):
        return np.asarray(table if isinstance(table, np.ndarray) else table["age"], float).ravel()

    table = NUMBERS[name](np.arange(20, 80))
    flips = flip_scores(numbers_of, table, 0 if isinstance(table, np.ndarray) else "age")
    np.testing.assert_array_equal(flips.scores, [[float(v) for v in flips.categories]] * 60)
    np.testing.assert_array_equal(flips.factual, numbers_of(table))
    n_groups = 60 if name == "names" else 10  # numbers of a categorical dtype are names
    assert np.bincount(flips.original).tolist() == [60 // n_groups] * n_groups


def test_a_measurement_and_a_category_with_missing_values():
    table = make_people().astype({"age": float})
    table.loc[0, ["age", "race"]] = None
    seen = []

    def predict(X):
        seen.append(X)
        return X["age"].fillna(0.0) * X["x"] + 100 * (X["race"] == "b")

    flips = flip_scores(predict, table, ["race", "age"])
    assert len(seen) == len(flips.categories) + 1
    pd.testing.assert_frame_equal(seen[-1], table)  # the rows as they are
    ages = sorted({age for _, age in flips.categories if age is not None})
    assert len(ages) == 10
    assert set(ages) <= set(table["age"])
    assert flips.categories == tuple(product((*RACE, None), (*ages, None)))
    assert flips.categories[flips.original[0]] == (None, None)
    for j, (race, age) in enumerate(flips.categories):
        flipped = table.assign(race=race, age=np.nan if age is None else age)
        np.testing.assert_array_equal(flips.scores[:, j], predict(flipped))
    np.testing.assert_array_equal(flips.factual, predict(table))
    assert [race for race, _ in flips.groups[1:]] == table["race"][1:].tolist()


# Which values


def choose(column):
    return encode_grouped(column, "age")


COUNTS_AND_GROUPS = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        st.lists(
            st.one_of(st.integers(1, 5), st.integers(1, 1000)), min_size=n + 1, max_size=40
        ).map(np.array),
        st.just(n),
    )
)


def full_size(counts, n_groups):
    """Size of a group if no value counts as more than one: the root of Σ min(count, t) = K·t."""
    for n_full in range(n_groups):
        ordered = sorted(counts.tolist(), reverse=True)
        size = Fraction(sum(ordered[n_full:]), n_groups - n_full)
        if ordered[n_full] <= size:
            return size
    raise AssertionError("no size found")


@given(COUNTS_AND_GROUPS, st.integers(2, 9))
def test_groups_are_in_order_all_filled_and_about_equal(case, factor):
    counts, n_groups = case
    groups = quantile_groups(counts, n_groups)
    assert (np.diff(groups) >= 0).all()
    assert sorted(set(groups.tolist())) == list(range(n_groups))
    size = full_size(counts, n_groups)
    for group in range(n_groups):
        filled = sum(min(Fraction(int(count)), size) for count in counts[groups == group])
        assert filled <= 2 * size
    assert (quantile_groups(counts * factor, n_groups) == groups).all()  # twice the rows
    sizes = np.bincount(quantile_groups(np.ones(len(counts), dtype=int), n_groups))
    assert sizes.max() - sizes.min() <= 1  # distinct numbers are divided evenly


@pytest.mark.parametrize(
    "column",
    [np.random.default_rng(0).gamma(2, 10, 501), np.array([1] * 9 + [2] + list(range(100, 190)))],
)
def test_values_are_the_medians_of_the_rows_of_their_groups(column):
    chosen = choose(column)
    assert len(chosen.categories) == 10
    groups = [column[chosen.codes == group] for group in range(10)]
    for rows, value in zip(groups, chosen.categories, strict=True):
        assert value == np.quantile(rows, 0.5, method="inverted_cdf")
    # groups are intervals: each number lies below all numbers of the next group
    assert all(below.max() < above.min() for below, above in pairwise(groups))


TO_30, TENTHS = list(range(30)), list(range(4, 100, 10))


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (range(20), range(20)),  # few numbers are taken one by one
        ([*range(20), None], [*range(20), None]),
        (map(str, TO_30), sorted(map(str, TO_30))),
        ([*TO_30, "f"], [*sorted(TO_30, key=str), "f"]),
        (range(100), TENTHS),
        ([*range(100), None, None], [*TENTHS, None]),
        (map(Decimal, range(100)), map(Decimal, TENTHS)),
    ],
)
def test_choice_of_values(column, values):
    column, values = list(column), list(values)
    chosen = choose(column)
    assert list(map(repr, chosen.categories)) == list(map(repr, values))
    if None in column:
        assert chosen.codes[column.index(None)] == len(values) - 1


# Refusals

PEOPLE, PANDAS = make_people(), table_with(KNOWN["pandas text"])
MANY = pd.DataFrame({"zip": [f"{i:04}" for i in range(1000)], "name": list("abcde") * 200})


@pytest.mark.parametrize(
    ("X", "sensitive", "text"),
    [
        (PANDAS, "sexx", r"of X, got 'sexx'. Did you mean 'sex'\? X has 'sex', 'age'"),
        (np.zeros((2, 3)), 3, r"position of a column .* got 3 for 3 columns. Pass an int"),
        (np.zeros((2, 3)), [2, -1], "name each column once, got 2 again"),
        (np.zeros(3), 0, r"X must have rows and columns, got an array of shape \(3,\)"),
        ([[1, 2]], 0, r"X must be a pandas, polars or pyarrow table .* got list"),
        (pl.LazyFrame({"sex": SEX}), "sex", r"in memory .* got LazyFrame. Collect"),
        (PANDAS[:0], "sex", r"the sensitive column 'sex' must have rows, got none"),
        (PANDAS[:1], "sex", r"two categories or more, .* 'sex' has 1: 'm'\. Pass rows"),
        (PEOPLE, [], r"sensitive must name a column, got none"),
        (PEOPLE, ["race", "race"], r"name each column once, got 'race' again. Leave it out"),
        (MANY, ["zip", "name"], r"4,096 .* 5,000: 1,000 of 'zip' × 5 of 'name'\. Flip fewer"),
    ],
)
def test_bad_arguments(X, sensitive, text):
    def predict(X):
        assert len(X) < len(MANY)  # too many passes are refused before the first
        return np.zeros(len(X))

    with pytest.raises(InvalidInputError, match=text):
        flip_scores(predict, X, sensitive)


ZEROS = np.zeros((2, 2))


@pytest.mark.parametrize(
    ("original", "scores", "factual", "text"),
    [
        ([0, 1], [[1.0, 2.0]], None, r"one row per original category .* got shape \(1, 2\)"),
        ([0, 2], ZEROS, None, r"positions in categories, 0 to 1, got int64 from 0 to 2"),
        ([0.0, 1.0], ZEROS, None, r"positions in categories, 0 to 1, got float64"),
        ([0, 1], [[0, 0], [0, np.nan]], None, r"scores must be finite, got 1 .* of 4 .* row 1"),
        (np.zeros(0, dtype=int), np.zeros((0, 2)), None, r"scores must have rows"),
        ([0, 1], ZEROS, [0.5], r"same number of rows, got scores 2, factual_scores 1"),
        ([0, 1], ZEROS, ZEROS, r"factual_scores must be one column, got .* shape \(2, 2\)"),
        ([0, 1], ZEROS, [0.5, np.inf], r"factual_scores must be finite, got 1 .*\(inf\) in row 1"),
    ],
)
def test_flipped_scores_are_checked(original, scores, factual, text):
    with pytest.raises(InvalidInputError, match=text):
        FlippedScores(("f", "m"), original, scores, factual)


def test_a_row_as_it_is_counts_among_its_scores():
    flips = FlippedScores((1, 2), [0, 1, 0], [[0, 1], [0, 1], [0, 1]], [-1, 3, 0.5])
    assert flips.factual.tolist() == [-1, 3, 0.5]
    assert flips.lowest.tolist() == [-1, 0, 0]
    assert flips.highest.tolist() == [1, 3, 1]
    assert flips.changes.tolist() == [2, 3, 1]
    assert flip_changes(flips)["max"] == 3
    assert decisions_flipped(flips, threshold=2) == 1 / 3
    assert flips.groups == [1, 2, 1]
    assert flips.take([2, 2, 0]).factual.tolist() == [0.5, 0.5, -1]
    assert flips.take(np.array([False, True, False])).changes.tolist() == [3]
    # Without scores of its own a row has those of its category.
    flips = FlippedScores((1, 2), [0, 1], [[0, 1], [4, 2]])
    assert flips.factual_scores is flips.take([1]).factual_scores is None
    assert flips.changes.tolist() == [1, 2]


# The metrics, against the paper's sums, written as loops over scipy's


def make_flips(n=120, n_categories=3):
    rng = np.random.default_rng(0)
    original, scores = rng.integers(0, n_categories, n), rng.random((n, n_categories))
    # Few distinct scores: ties are where ranks go wrong.
    flips = FlippedScores(tuple(range(n_categories)), original, np.round(scores, 1))
    return rng.integers(0, 2, n), flips, rng.random(n)


def by_the_papers_sum(compare, flips, weight):
    """Mean over original categories and ordered pairs, by a distance of the scores of rows."""
    n, total = len(flips.categories), 0.0
    for i in range(n):
        rows = flips.original == i
        pairs = permutations(flips.scores[rows].T, 2)
        total += sum(compare(rows, a, b, weight[rows]) for a, b in pairs)
    return total / (n * (n - 1))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_categories", [2, 3, 5])
def test_the_papers_sum_over_the_original_and_pairs_of_categories(n_categories, weighted):
    _, flips, weight = make_flips(n_categories=n_categories)
    options = {"sample_weight": weight} if weighted else {}
    expected = by_the_papers_sum(
        lambda _, a, b, w: wasserstein_distance(a, b, w, w),
        flips,
        weight if weighted else np.ones(len(flips)),
    )
    assert average_individual_fairness(flips, **options) == pytest.approx(expected)


def test_distances_do_not_depend_on_the_size_of_blocks(monkeypatch):
    _, flips, weight = make_flips(n_categories=5)
    expected = average_individual_fairness(flips, sample_weight=weight)
    monkeypatch.setattr("fcorr.metrics.flips.BLOCK_SIZE", 7)
    found = average_individual_fairness(flips, sample_weight=weight)
    assert found == pytest.approx(expected, rel=1e-12)


def test_decisions_are_at_the_threshold():
    flips = FlippedScores(("f", "m"), [0, 0, 1, 1], [[0.3, 0.2], [0, 0], [0.3, 0.3], [0, 0]])
    weight = [1, 1, 1, 5]
    shares = [decisions_flipped(flips, at, sample_weight=weight) for at in (0.5, 0.3, 0.31)]
    assert shares == [0.0, 0.125, 0.0]


@pytest.mark.parametrize("weight", [None, [2, 2, 0]], ids=["no rows", "no weight"])
def test_a_category_without_rows_is_left_out(weight):
    flips = FlippedScores(("a", "b", "c"), [0, 2, 1], [[0.0, 1, 2], [0, 1, 2], [0, 1, 9]])
    flips = flips if weight else flips.take([0, 1])
    with pytest.warns(
        NotEstimableWarning, match=r"1 of 3 .* have no rows .* 'b \(n=0\)'"
    ) as caught:
        value = average_individual_fairness(flips, sample_weight=weight)
    assert value == pytest.approx(16 / 6)
    assert caught[0].filename == __file__


def test_a_swap_that_the_distribution_hides_is_a_change_of_rows():
    flips = FlippedScores(("f", "m"), [0, 0, 1, 1], [[0.2, 0.8], [0.8, 0.2]] * 2)
    assert average_individual_fairness(flips) == 0.0
    assert flip_changes(flips)["mean"] == pytest.approx(0.6)
    assert decisions_flipped(flips) == 1.0
    change = np.arange(1, 101) / 4  # quantiles are changes of rows
    flips = FlippedScores(("f", "m"), np.arange(100) % 2, np.column_stack([0 * change, change]))
    expected = {"mean": 50.5, "max": 100, "q50": 50, "q90": 90, "q95": 95, "q99": 99}
    assert flip_changes(flips) == {name: value / 4 for name, value in expected.items()}


NO_FLIPS = r"FlippedScores, got ndarray\. Make them with flip_"
FLIPS = make_flips()[1]


@pytest.mark.parametrize(
    ("metrics", "flips", "options", "text"),
    [
        (
            [average_individual_fairness, flip_changes, decisions_flipped],
            *(np.zeros(3), {}, NO_FLIPS),
        ),
        (
            [decisions_flipped],
            *(FLIPS, {"threshold": np.nan}, "threshold must be a finite number, got nan. Choose"),
        ),
    ],
)
def test_bad_input(metrics, flips, options, text):
    for metric in metrics:
        with pytest.raises(InvalidInputError, match=text):
            metric(flips, **options)


# The sums over pairs themselves

# A few values with ties among them, and a few that no two samples share.
VALUE = st.one_of(st.integers(-2, 2).map(float), st.floats(-5, 5, allow_subnormal=False))
SAMPLES = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(VALUE, min_size=n, max_size=n), min_size=2, max_size=4),
        st.lists(st.sampled_from([0.25, 1.0, 3.0]), min_size=n, max_size=n),
    )
)


@given(SAMPLES)
@settings(max_examples=60)
def test_distances_agree_with_scipy(samples_and_weight):
    samples, weight = (np.array(values) for values in samples_and_weight)
    before = samples.copy()
    pairs = permutations(samples, 2)
    expected = sum(wasserstein_distance(a, b, weight, weight) for a, b in pairs)
    assert sum_of_distances(samples, weight) == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(samples, before)  # not sorted in place


@pytest.mark.parametrize("weight", [0.1, 0.3, 1 / 3, 7.0])
def test_quantiles_do_not_depend_on_the_unit_of_weights(weight):
    for n in (100, 1_000_000):
        scores = np.column_stack([np.zeros(n), np.arange(1.0, n + 1)])
        flips = FlippedScores((0, 1), np.zeros(n, dtype=int), scores)
        found = flip_changes(flips, sample_weight=np.full(n, weight))
        quantiles = [found[name] for name in ("q50", "q90", "q95", "q99")]
        assert quantiles == [0.5 * n, 0.9 * n, 0.95 * n, 0.99 * n]
