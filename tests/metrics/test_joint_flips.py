"""Several sensitive columns flipped together, to every combination of their values."""

from itertools import permutations, product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import wasserstein_distance
from sklearn.metrics import roc_auc_score

from fcorr._core import InvalidInputError
from fcorr.metrics import (
    FlippedScores,
    auprc_gap,
    auroc_gap,
    average_individual_fairness,
    bootstrap_interval,
    decisions_flipped,
    f1_gap,
    flip_changes,
    flip_scores,
    mae_gap,
    rmse_gap,
)

RACE = {"a": 0.0, "b": 0.5, "c": 2.0}
SEX = {"f": 0.0, "m": 0.125}
PAIRS = list(product(RACE, SEX))


def make_table(n: int = 120, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "race": rng.permutation(np.resize(list(RACE), n)),
            "x": rng.integers(0, 16, n) / 8,
            "sex": rng.permutation(np.resize(list(SEX), n)),
        }
    )


def additive(table: pd.DataFrame) -> Any:
    return table["x"] + table["race"].map(RACE) + table["sex"].map(SEX)


def test_every_row_is_scored_under_every_combination() -> None:
    table = make_table()
    flips = flip_scores(additive, table, ["race", "sex"])
    assert flips.categories == tuple(PAIRS)
    assert flips.groups == list(zip(table["race"], table["sex"], strict=True))
    for j, (race, sex) in enumerate(PAIRS):
        np.testing.assert_array_equal(flips.scores[:, j], table["x"] + RACE[race] + SEX[sex])
    np.testing.assert_array_equal(flips.factual, additive(table))
    assert flips.factual_scores is None  # every row's own combination is among them


def test_the_order_of_the_columns_is_the_callers() -> None:
    flips = flip_scores(additive, make_table(), ("sex", "race"))
    assert flips.categories == tuple(product(SEX, RACE))


def test_a_list_of_one_column_is_that_column() -> None:
    table = make_table()
    listed, plain = flip_scores(additive, table, ["sex"]), flip_scores(additive, table, "sex")
    assert listed.categories == plain.categories == ("f", "m")
    np.testing.assert_array_equal(listed.scores, plain.scores)


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_tables_of_other_libraries(make: Any) -> None:
    table = make_table()
    expected = flip_scores(additive, table, ["race", "sex"])
    flips = flip_scores(lambda X: additive(X.to_pandas()), make(table), ["race", "sex"])
    assert flips.categories == expected.categories
    np.testing.assert_array_equal(flips.original, expected.original)
    np.testing.assert_array_equal(flips.scores, expected.scores)


def test_arrays() -> None:
    X = np.array([[0, 7.0, 1], [1, 9.0, 0]])
    flips = flip_scores(lambda X: X @ [1, 10, 100], X, [2, 0])
    assert flips.categories == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert flips.original.tolist() == [2, 1]
    assert flips.scores.tolist() == [[70, 71, 170, 171], [90, 91, 190, 191]]


def test_the_same_as_one_column_of_both() -> None:
    table = make_table()
    joined = table.assign(both=table["race"] + table["sex"]).drop(columns=["race", "sex"])

    def of_joined(table: pd.DataFrame) -> Any:
        return additive(table.assign(race=table["both"].str[0], sex=table["both"].str[1]))

    ours, expected = (
        flip_scores(additive, table, ["race", "sex"]),
        flip_scores(of_joined, joined, "both"),
    )
    assert ["".join(pair) for pair in ours.categories] == list(expected.categories)
    np.testing.assert_array_equal(ours.scores, expected.scores)
    np.testing.assert_array_equal(ours.original, expected.original)


@pytest.mark.parametrize("weighted", [False, True])
def test_invariance_to_each_column_is_invariance_to_all(weighted: bool) -> None:
    table = make_table()
    rng = np.random.default_rng(1)
    full = rng.choice(rng.random(40), 16)  # full mantissas, and ties among rows

    def predict(X: pd.DataFrame) -> Any:
        return full[(X["x"] * 8).astype(int)]

    weight = rng.random(len(table)) if weighted else None
    y = rng.integers(0, 2, len(table))
    for columns in ("race", "sex", ["race", "sex"]):
        flips = flip_scores(predict, table, columns)
        values = [gap(y, flips, sample_weight=weight) for gap in (f1_gap, auroc_gap, auprc_gap)]
        values += [gap(y, flips, sample_weight=weight) for gap in (rmse_gap, mae_gap)]
        values += [average_individual_fairness(flips, sample_weight=weight)]
        values += [decisions_flipped(flips, sample_weight=weight)]
        values += list(flip_changes(flips, sample_weight=weight).values())
        assert values == [0.0] * len(values)


def test_an_additive_model_by_hand() -> None:
    table = make_table()
    flips = flip_scores(additive, table, ["race", "sex"])
    # Every row moves by the range of both effects, and so does every distribution by differences.
    assert flip_changes(flips) == dict.fromkeys(flip_changes(flips), 2.0 + 0.125)
    effects = [RACE[race] + SEX[sex] for race, sex in PAIRS]
    mean_difference = np.mean([abs(a - b) for a, b in permutations(effects, 2)])
    assert average_individual_fairness(flips, normalize="mean") == pytest.approx(mean_difference)
    n_groups = len(set(flips.groups))
    assert average_individual_fairness(flips) == pytest.approx(n_groups * mean_difference)
    apart = [flip_changes(flip_scores(additive, table, column))["max"] for column in RACE_AND_SEX]
    assert sum(apart) == flip_changes(flips)["max"]


RACE_AND_SEX = ["race", "sex"]


def interacting(table: pd.DataFrame) -> Any:
    """Neither column alone tells the score: their combination does."""
    odd = (table["race"] == "a") ^ (table["sex"] == "f")
    return 0.25 * table["x"] * (1 + odd) - 0.1 * (table["race"] == "c")


def test_metrics_agree_with_loops_over_tables() -> None:
    table, rng = make_table(), np.random.default_rng(2)
    y = rng.integers(0, 2, len(table))
    flips = flip_scores(interacting, table, ["race", "sex"])

    w1 = auroc = 0.0
    for race, sex in PAIRS:
        rows = (table["race"] == race) & (table["sex"] == sex)
        scores = [interacting(table[rows].assign(race=r, sex=s)).to_numpy() for r, s in PAIRS]
        areas = [roc_auc_score(y[rows], score) for score in scores]
        w1 += sum(wasserstein_distance(a, b) for a, b in permutations(scores, 2))
        auroc += sum(abs(a - b) for a, b in permutations(areas, 2))
    n_pairs = len(PAIRS) * (len(PAIRS) - 1)
    assert average_individual_fairness(flips) == pytest.approx(w1 / n_pairs)
    assert auroc_gap(y, flips) == pytest.approx(auroc / n_pairs)

    everything = np.array([interacting(table.assign(race=r, sex=s)) for r, s in PAIRS])
    assert flip_changes(flips)["max"] == np.ptp(everything, axis=0).max()
    decided = everything >= 0.3
    assert decisions_flipped(flips, 0.3) == np.mean(decided.any(axis=0) & ~decided.all(axis=0))


def test_missing_values_combine() -> None:
    table = make_table(12)
    table.loc[0, "race"] = None
    table.loc[[0, 1], "sex"] = None
    flips = flip_scores(lambda X: X["race"].isna() + 2.0 * X["sex"].isna(), table, ["race", "sex"])
    assert flips.categories == tuple(product([*RACE, None], [*SEX, None]))
    assert flips.categories[flips.original[0]] == (None, None)
    assert flips.scores[0].tolist() == [
        (r is None) + 2.0 * (s is None) for r, s in flips.categories
    ]


def test_values_of_each_column() -> None:
    table = make_table()
    flips = flip_scores(
        additive, table, ["race", "sex"], categories={"race": ["c", "a", "b"], "sex": None}
    )
    assert flips.categories == tuple(product("cab", "fm"))
    assert flips.groups == list(zip(table["race"], table["sex"], strict=True))


def test_a_mapping_serves_for_one_column_too() -> None:
    flips = flip_scores(additive, make_table(), "sex", categories={"sex": ["m", "f"]})
    assert flips.categories == ("m", "f")


def test_combinations_that_no_row_has_are_scored_and_named() -> None:
    table = pd.DataFrame({"race": ["a", "b"], "sex": ["f", "m"], "x": [1.0, 1.0]})
    flips = flip_scores(additive, table, ["race", "sex"])
    with pytest.warns(UserWarning, match=r"2 of 4 .*: 'a, m \(n=0\)', 'b, f \(n=0\)'"):
        average_individual_fairness(flips)


def test_intervals() -> None:
    flips = flip_scores(interacting, make_table(), ["race", "sex"])
    interval = bootstrap_interval(
        average_individual_fairness, flips, n_resamples=50, random_state=0
    )
    assert interval.low < interval.estimate == average_individual_fairness(flips)


@pytest.mark.parametrize(
    ("sensitive", "categories", "text"),
    [
        ([], None, r"sensitive must name a column, got none"),
        (["race", "race"], None, r"name each column once, got 'race' again. Leave it out"),
        (["race", "sexx"], None, r"name a column of X, got 'sexx'. Did you mean 'sex'"),
        (["race", "sex"], ["f", "m"], r"which values .* when 2 columns are flipped, got list\. Wr"),
        (["race", "sex"], 10, r"got int\. Write categories=\{'race': \.\.\.\}"),
        (["race", "sex"], {"x": 3}, r"of sensitive columns, got 'x'.* are 'race', 'sex'"),
        (["race", "x"], {"race": ["a", "b"]}, r"rows of the sensitive column 'race' with 'c'"),
    ],
)
def test_bad_columns(sensitive: Any, categories: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        flip_scores(additive, make_table(), sensitive, categories=categories)


def test_a_column_of_one_value_is_not_flipped_silently() -> None:
    table = make_table().assign(sex="f")
    with pytest.raises(InvalidInputError, match=r"two categories .* 'sex' has 1: 'f'\. Pass categ"):
        flip_scores(additive, table, ["race", "sex"])


def test_a_column_of_an_array_is_the_same_from_both_ends() -> None:
    X = np.array([[0, 7.0, 1], [1, 9.0, 0]])
    with pytest.raises(InvalidInputError, match="name each column once, got 2 again"):
        flip_scores(lambda X: X[:, 0], X, [2, -1])


def test_too_many_combinations() -> None:
    table = pd.DataFrame({"zip": [f"{i:04}" for i in range(1000)], "name": list("abcde") * 200})

    def predict(X: Any) -> Any:
        raise AssertionError("refused before the first pass")

    with pytest.raises(
        InvalidInputError,
        match=r"at most 4,096 times, .* got 5,000: 1,000 of 'zip' × 5 of 'name'\. Flip fewer "
        r"columns together, pool rare values first, .* categories=\{'zip': 10\}",
    ):
        flip_scores(predict, table, ["zip", "name"])


def test_a_thousand_categories() -> None:
    n, n_categories = 3000, 1000
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "zip": [f"{i % n_categories:04}" for i in range(n)],
            "x": rng.integers(0, 2**20, n) / 2**10,
        }
    )
    effect = rng.permutation(n_categories) / 4

    def predict(X: pd.DataFrame) -> Any:
        return X["x"].to_numpy() + effect[X["zip"].astype(int)]

    flips = flip_scores(predict, table, "zip")
    assert flips.scores.shape == (n, n_categories)
    np.testing.assert_array_equal(flips.factual, predict(table))
    np.testing.assert_array_equal(flips.scores, table["x"].to_numpy()[:, None] + effect)
    # The mean difference of 0, 1 … C−1 is (C + 1)/3; all C original categories count.
    expected = (n_categories + 1) / 3 / 4
    assert average_individual_fairness(flips, normalize="mean") == pytest.approx(expected)
    assert flip_changes(flips)["q50"] == (n_categories - 1) / 4
    below = np.full(n, -1e4)
    assert mae_gap(below, flips, normalize="mean") == pytest.approx(expected)
    assert rmse_gap(below, flips, normalize="mean") > 0.9 * expected
    y = np.arange(n) // n_categories % 2  # both classes in every category
    # Rows of a category all move by the same amount, so that their ranks do not.
    assert auroc_gap(y, flips) == auprc_gap(y, flips) == 0.0
    assert f1_gap(y, flips, threshold=500.0, normalize="mean") > 0
    assert decisions_flipped(flips, 500.0) > 0


def test_a_thousand_combinations() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 10, (2000, 4)).astype(float)
    flips = flip_scores(lambda X: X @ [1, 10, 100, 0.5], X, [0, 1, 2])
    assert len(flips.categories) == 1000
    np.testing.assert_array_equal(
        flips.scores,
        0.5 * X[:, 3:] + np.array([a + 10 * b + 100 * c for a, b, c in flips.categories]),
    )
    assert flip_changes(flips)["max"] == 999
    assert isinstance(flips.take([0]), FlippedScores)
