"""Ratings: columns of many categories as a number, which no row's own target is in."""

import json
import math
import warnings
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcorr._core import InvalidInputError, UnseenCategoryWarning
from fcorr.data import Schema, encode, infer_schema, read_table
from fcorr.data.encode import Outcomes, use_ratings
from fcorr.data.infer import MANY_LEVELS, rate_columns

N, SEED = 600, 3
LINKS = ("sigmoid", "exp", "identity")


def draw(link, seed=0, n_levels=60, effect=1.0, n=N):
    """Draw levels, of which some are rare, and a target that they have an effect on."""
    rng = np.random.default_rng(seed)
    levels = (n_levels * rng.random(n) ** 2).astype(int)
    levels[:n_levels] = np.arange(n_levels)
    score = effect * rng.normal(size=n_levels)[levels]
    exposure = rng.uniform(0.2, 2, n) if link == "exp" else np.ones(n)
    y = {
        "sigmoid": np.where(rng.random(n) < 1 / (1 + np.exp(1 - score)), "yes", "no"),
        "exp": rng.poisson(exposure * np.exp(score - 1)),
        "identity": 100 + 5 * score + 5 * rng.normal(size=n),
    }[link]
    return levels, Outcomes(y, rng.uniform(0.5, 1.5, n), exposure)


def names(levels):
    return [None if level < 0 else f"level {level:03}" for level in levels]


def rate(columns, outcomes, link, *, seed=SEED, **options):
    """Rate columns; return their table, its schema and the ratings that were held out."""
    table = read_table(pa.table(columns) if isinstance(columns, dict) else columns)
    schema = infer_schema(table, **{"min_category_rows": 1, **options})
    return table, *rate_columns(table, schema, outcomes, link=link, seed=seed)


def change(outcomes, y):
    return Outcomes(y, outcomes.weight, outcomes.exposure)


def by_hand(levels, z, weight, link):
    """Rate levels row by row, by the formulas as Bühlmann and Straub have them."""
    rows = defaultdict(list)
    for level, value, w in zip(levels, z, weight, strict=True):
        rows[level].append((value, w))
    total = math.fsum(weight)
    mean = math.fsum(w * value for value, w in zip(z, weight, strict=True)) / total
    weight_of = {c: math.fsum(w for _, w in rows[c]) for c in rows}
    mean_of = {c: math.fsum(w * v for v, w in rows[c]) / weight_of[c] for c in rows}
    within = math.fsum(w * (v - mean_of[c]) ** 2 for c in rows for v, w in rows[c])
    within /= sum(len(rows[c]) - 1 for c in rows)
    between = math.fsum(weight_of[c] * (mean_of[c] - mean) ** 2 for c in rows)
    between -= (len(rows) - 1) * within
    between /= total - math.fsum(w**2 for w in weight_of.values()) / total
    if between <= 0:
        return dict.fromkeys(rows, 0.0), dict.fromkeys(rows, 0.0)
    k = max(within / between, total / len(z))
    g = {"identity": float, "exp": math.log, "sigmoid": lambda p: math.log(p / (1 - p))}[link]
    shrunk = {c: (weight_of[c] * mean_of[c] + k * mean) / (weight_of[c] + k) for c in rows}
    ratings = {c: g(shrunk[c]) - g(mean) for c in rows}
    return ratings, {c: weight_of[c] / (weight_of[c] + k) for c in rows}


# The numbers


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("missing", ["category", "mode"])
def test_against_a_computation_row_by_row(link, missing):
    levels, outcomes = draw(link)
    levels[100:140] = -1  # in so many rows "missing" is no rare level
    columns = {"c": names(levels), "x": np.arange(N) % 7}
    options = {"missing_categorical": missing, "min_category_rows": 20}  # pools most levels
    table, schema, held_out = rate(columns, outcomes, link, **options)
    column = schema["c"]
    if missing == "mode":
        values, counts = np.unique(levels[levels >= 0], return_counts=True)
        assert column.categories[column.mode] == names([values[counts.argmax()]])[0]
        levels[levels < 0] = values[counts.argmax()]
    z, weight = outcomes.classes[1], outcomes.weight
    if link != "sigmoid":
        z, weight = outcomes.y / outcomes.exposure, weight * outcomes.exposure
    ratings, credibilities = by_hand(names(levels), z.tolist(), weight, link)
    assert dict(zip(column.categories, column.ratings, strict=True)) == pytest.approx(ratings)
    found = dict(zip(column.categories, column.credibilities, strict=True))
    assert found == pytest.approx(credibilities)
    folds = np.random.default_rng(SEED).permutation(N) % 10
    for fold in range(10):
        others = folds != fold
        ratings, _ = by_hand(levels[others], z[others].tolist(), weight[others], link)
        expected = [ratings.get(level, 0.0) for level in levels[~others]]
        np.testing.assert_allclose(held_out["c"][~others], expected, rtol=1e-9, atol=1e-12)
    # Predictions look the ratings up; both kinds are standardised alike.
    encoded = encode(table, schema)
    in_sample = dict(zip(column.categories, column.ratings, strict=True))
    raw = np.array([in_sample[name] for name in names(levels)])
    place = [feature.name for feature in schema.numeric].index("c")
    np.testing.assert_allclose(encoded.numbers[:, place], (raw - raw.mean()) / raw.std(), rtol=1e-4)
    trained_with = use_ratings(encoded, schema, held_out)
    standardised = (held_out["c"] - raw.mean()) / raw.std()
    np.testing.assert_allclose(trained_with.numbers[:, place], standardised, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(trained_with.numbers[:, 1 - place], encoded.numbers[:, 1 - place])
    assert trained_with.codes is encoded.codes
    assert (encoded.numbers[:, place] != trained_with.numbers[:, place]).any()


@pytest.mark.parametrize("link", LINKS)
def test_what_changes_nothing(link):
    levels, outcomes = draw(link)
    _, schema, held_out = rate({"c": names(levels)}, outcomes, link)
    heavy = Outcomes(outcomes.y, 1000 * outcomes.weight, outcomes.exposure)
    _, again, held_again = rate({"c": names(levels)}, heavy, link)
    np.testing.assert_allclose(again["c"].ratings, schema["c"].ratings, rtol=1e-9)
    np.testing.assert_allclose(held_again["c"], held_out["c"], rtol=1e-9, atol=1e-12)
    # The order of the rows; which fold a row is in does change.
    order = np.random.default_rng(1).permutation(N)
    shuffled = Outcomes(outcomes.y[order], outcomes.weight[order], outcomes.exposure[order])
    _, again, _ = rate({"c": names(levels[order])}, shuffled, link)
    np.testing.assert_allclose(again["c"].ratings, schema["c"].ratings, rtol=1e-9)
    # Another currency, which only the identity has in its unit; or the other class
    if link == "sigmoid":
        factor, other = -1, np.where(outcomes.y == "yes", "a no", "b yes")
    else:
        factor, other = 1 if link == "exp" else 100, 100 * outcomes.y
    _, again, held_again = rate({"c": names(levels)}, change(outcomes, other), link)
    np.testing.assert_allclose(again["c"].ratings, factor * np.array(schema["c"].ratings))
    np.testing.assert_allclose(held_again["c"], factor * held_out["c"], atol=1e-12)
    # The seed decides on the folds only.
    _, again, held_again = rate({"c": names(levels)}, outcomes, link, seed=SEED + 1)
    assert again == schema
    assert (held_again["c"] != held_out["c"]).any()


def test_a_level_that_tells_the_target_has_a_finite_rating():
    levels = np.arange(N) % 60
    outcomes = Outcomes(levels < 6, np.ones(N), np.ones(N))
    for link in ("sigmoid", "exp"):
        _, schema, held_out = rate({"c": names(levels)}, outcomes, link)
        assert np.isfinite(held_out["c"]).all()
        ratings = schema["c"].ratings
        # Ten rows, and one of 0.1 for the mean
        z, o = 10.1 / 11, 0.1 / 11
        g = math.log if link == "exp" else lambda p: math.log(p / (1 - p))
        assert ratings[0] == pytest.approx(g(z) - g(0.1))
        assert ratings[6] == pytest.approx(g(o) - g(0.1))
    # A class that weighs next to nothing
    weight = np.where(levels < 6, 1.0, 1e-20)
    _, schema, held_out = rate(
        {"c": names(levels)}, Outcomes(levels < 6, weight, weight), "sigmoid"
    )
    assert np.isfinite(schema["c"].ratings).all()
    assert np.isfinite(held_out["c"]).all()


values = st.lists(st.tuples(st.integers(0, 59), st.integers(0, 3), st.floats(0.1, 10)), max_size=60)


@given(values, st.sampled_from(LINKS))
def test_ratings_lie_between_those_of_the_extreme_means(rows, link):
    rows = [(i, i % 2, 1.0) for i in range(60)] + rows
    levels, y, weight = map(np.array, zip(*rows, strict=True))
    y = np.minimum(y, 1) if link == "sigmoid" else y
    table = read_table(pa.table({"c": names(levels), "x": np.arange(len(levels)) % 2}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of keys and constants
        schema = infer_schema(table, kinds={"c": "categorical"}, min_category_rows=1)
        outcomes = Outcomes(y, weight, np.ones(len(y)))
        schema, held_out = rate_columns(table, schema, outcomes, link=link, seed=SEED)
    mean = np.average(y, weights=weight)
    means = np.bincount(levels, weight * y) / np.bincount(levels, weight)
    g = {"identity": lambda m: m, "exp": np.log, "sigmoid": lambda p: np.log(p / (1 - p))}[link]
    with np.errstate(divide="ignore"):
        low, high = g(means.min()) - g(mean), g(means.max()) - g(mean)
    column = schema["c"]
    assert min(column.ratings) >= low - 1e-9
    assert max(column.ratings) <= high + 1e-9
    assert np.isfinite(held_out["c"]).all()
    assert all(0 <= credibility < 1 for credibility in column.credibilities)
    # On the side of the mean that the level's own mean is on
    assert (np.array(column.ratings) * (means - mean) >= -1e-9).all()
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


# Which columns


def test_columns_that_are_rated(as_frame):
    n_levels = MANY_LEVELS + 1
    at = np.arange(N) % n_levels
    columns = {
        "text": names(at),
        "few": names(at % MANY_LEVELS),
        "sex": names(at),
        "order": names(at),
        "zip": at,
        "number": at,
        "pooled": names(np.where(np.arange(N) < 500, 0, np.arange(N) % 100)),
        "nulls": names(np.where(at < MANY_LEVELS, at, -1)),
    }
    kinds = {"zip": "categorical", "order": names(range(n_levels))}
    _, outcomes = draw("sigmoid")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Columns that take one value only")
        options = {"sensitive": ["sex"], "kinds": kinds, "min_category_rows": 5}
        _, schema, held_out = rate(as_frame(columns), outcomes, "sigmoid", **options)
    assert {column.name: column.kind for column in schema.columns} == {
        "text": "rated",
        "few": "categorical",
        "sex": "categorical",
        "order": "ordinal",
        "zip": "rated",
        "number": "numeric",
        "pooled": "rated",
        "nulls": "categorical",  # "missing" is no level
    }
    assert list(held_out) == ["text", "zip", "pooled"]
    assert schema.feature_names == (
        *("sex", "few", "nulls"),
        *("text", "order", "zip", "number", "pooled"),
    )
    assert schema.text == ("text", "few", "sex", "order", "pooled", "nulls")
    assert len(schema["pooled"].categories) == 100  # none in a pool
    assert schema["zip"].categories[:2] == (0, 1)
    assert "<td>rated</td><td>100 categories, rated" in schema._repr_html_()


CONSTANT = (
    "Columns that take one value only are kept without effect: 'c' (rated alike: "
    "no category has the rows to be told from others). Drop them if that is a mistake."
)


ALIKE = [  # levels and targets: no difference, one target, a level for each row
    (np.arange(N) % 60, np.arange(N) // 60 % 2 + 0.1),
    (np.arange(N) % 60, np.full(N, 0.1)),  # whose means are not exactly 0.1
    (np.arange(N), np.arange(N) % 3),
]


@pytest.mark.parametrize(("levels", "y"), ALIKE)
def test_levels_that_do_not_differ(levels, y):
    columns = {"c": names(levels), "x": np.arange(N) % 7}
    outcomes = Outcomes(y, np.linspace(1, 2, N), np.ones(N))
    with pytest.warns(UserWarning, match="rated alike") as record:
        table, schema, held_out = rate(columns, outcomes, "identity", kinds={"c": "categorical"})
    assert [str(warning.message) for warning in record] == [CONSTANT]
    assert set(schema["c"].ratings) == set(schema["c"].credibilities) == {0.0}
    assert not held_out["c"].any()
    assert not encode(table, schema).numbers[:, 0].any()
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


# Other tables


@pytest.fixture
def rated():
    levels, outcomes = draw("sigmoid")
    return rate({"c": names(levels)}, outcomes, "sigmoid")[1]


def lookup(schema, *values):
    return encode(read_table(pa.table({"c": pa.array(values, pa.string())})), schema).numbers[:, 0]


def test_unseen_categories_are_rated_as_the_mean_and_missing_ones_as_the_most_frequent(rated):
    column, number = rated["c"], rated["c"].number
    found = lookup(rated, "level 007", "new", "level 001", "")  # without a warning
    raw = np.array([column.ratings[7], 0, column.ratings[1], 0])
    np.testing.assert_allclose(found, (raw - number.mean) / number.scale, rtol=1e-5)
    text = r"1 row\(s\) of 'c' \(missing\)\. Each is taken for the most frequent training"
    with pytest.warns(UnseenCategoryWarning, match=text):
        found = lookup(rated, None, "level 007")
    assert column.counts[column.mode] == max(column.counts)
    np.testing.assert_array_equal(found, lookup(rated, column.categories[column.mode], "level 007"))


@pytest.mark.parametrize(
    ("values", "problem", "text"),
    [
        (
            ["new", "level 001", "new"],
            "unseen categories",
            "has 2 row(s) of categories not seen in training: 'new' (2)",
        ),
        ([None, "level 007"], "missing values", "has 1 missing value(s); training had none"),
        ([1, 2], "other values", "must hold text, got numbers: 1 in row 0"),
    ],
)
def test_differences(rated, values, problem, text):
    (difference,) = rated.diff(pa.table({"c": values}))
    assert (difference.problem, difference.text) == (problem, f"Column 'c' {text}")


# Plain data


DAMAGE = {
    "ratings": lambda value: [value[:-1], [*value[:-1], math.inf], [*value[:-1], math.nan]],
    "credibilities": lambda value: [value[:-1], [*value[:-1], 1.5], [*value[:-1], math.nan]],
    "categories": lambda value: [value[:-1], [*value[:-1], 3], [*value[:-1], value[0]]],
    "counts": lambda value: [value[:-1], [*value[:-1], -1]],
    "mode": lambda value: [-1, 60],
    "n_missing": lambda value: [-1, N + 1],
    "name": lambda value: ["other"],
    "number": lambda value: [
        {**value, "name": "other"},
        {**value, "scale": 0.0},
        {**value, "high": value["high"] + 1},
        {**value, "low": value["low"] - 1},
    ],
}


@pytest.mark.parametrize("field", DAMAGE)
def test_data_that_no_table_could_have_given(rated, field):
    plain = json.loads(json.dumps(rated.to_dict()))
    (column,) = plain["columns"]
    short = {name: column[name][:2] + column[name][3:] for name in ("ratings", "credibilities")}
    for change in [*({field: value} for value in DAMAGE[field](column[field])), short]:
        with pytest.raises(InvalidInputError, match="contradicts itself"):
            Schema.from_dict({**plain, "columns": [{**column, **change}]})
