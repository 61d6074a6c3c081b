"""Sensitive columns of many numbers: flipped to a few values that stand for groups."""

from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import wasserstein_distance
from sklearn.metrics import root_mean_squared_error

from fcorr._core import InvalidInputError
from fcorr.metrics import (
    average_individual_fairness,
    bootstrap_interval,
    decisions_flipped,
    demographic_parity_difference,
    flip_changes,
    flip_scores,
    group_rates,
    rmse_gap,
)


def make_table(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.permutation(np.resize(np.arange(20, 80), n)),
            "race": rng.permutation(np.resize(["a", "b"], n)),
            "x": rng.random(n),
        }
    )


def curved(table: Any) -> Any:
    return 0.01 * (table["age"] - 45.0) ** 2 * table["x"]


def test_ten_values_and_the_rows_as_they_are() -> None:
    table, seen = make_table(), []

    def predict(X: pd.DataFrame) -> Any:
        seen.append(X)
        return curved(X)

    flips = flip_scores(predict, table, "age")
    assert len(flips.categories) == 10
    assert len(seen) == 11
    for j, age in enumerate(flips.categories):
        assert age in set(table["age"])
        np.testing.assert_array_equal(flips.scores[:, j], curved(table.assign(age=age)))
    np.testing.assert_array_equal(flips.factual, curved(table))
    np.testing.assert_array_equal(flips.factual_scores, curved(table))
    pd.testing.assert_frame_equal(seen[-1], table)


def test_a_rows_category_is_the_group_that_its_number_is_in() -> None:
    table = make_table()
    flips = flip_scores(curved, table, "age")
    sizes = np.bincount(flips.original)
    # 200 rows of 60 ages, 3 or 4 each: a group is 20 rows but for what equal ages add.
    assert sizes.min() >= 16
    assert sizes.max() <= 24
    for group in range(10):
        ages = table["age"][flips.original == group]
        assert flips.categories[group] == np.quantile(ages, 0.5, method="inverted_cdf")
        assert not set(ages) & set(table["age"][flips.original != group])


def make_peak(table: pd.DataFrame) -> Any:
    """Score one age that is not on the grid, which only the rows of that age show."""
    return (table["age"] == 79).astype(float)


def test_a_rows_own_score_counts_among_those_compared() -> None:
    table = make_table()
    flips = flip_scores(make_peak, table, "age")
    assert 79 not in flips.categories
    is_79 = (table["age"] == 79).to_numpy()
    np.testing.assert_array_equal(flips.changes, is_79)
    assert flip_changes(flips)["mean"] == is_79.mean()
    assert decisions_flipped(flips) == is_79.mean()
    assert average_individual_fairness(flips) == 0.0  # it compares the partitions by group alone


def test_partition_metrics_by_loops_over_tables() -> None:
    table = make_table(240)  # four rows of each age, fifteen ages in each quarter
    y = np.random.default_rng(1).random(len(table))
    flips = flip_scores(curved, table, "age", categories=4)
    w1 = rmse = 0.0
    edges = np.quantile(table["age"], [0.25, 0.5, 0.75])
    for group in range(4):
        rows = np.digitize(table["age"], edges, right=True) == group
        np.testing.assert_array_equal(rows, flips.original == group)
        scores = [curved(table[rows].assign(age=age)) for age in flips.categories]
        errors = [root_mean_squared_error(y[rows], score) for score in scores]
        w1 += sum(wasserstein_distance(a, b) for a, b in permutations(scores, 2))
        rmse += sum(abs(a - b) for a, b in permutations(errors, 2))
    assert average_individual_fairness(flips) == pytest.approx(w1 / 12)
    assert rmse_gap(y, flips) == pytest.approx(rmse / 12)


def test_a_model_without_age_has_no_change_at_all() -> None:
    table = make_table()
    flips = flip_scores(lambda X: X["x"], table, "age")
    assert set(flip_changes(flips).values()) == {0.0}
    assert average_individual_fairness(flips) == decisions_flipped(flips) == 0.0


TABLES: dict[str, Any] = {
    "pandas integers": lambda ages: pd.DataFrame({"age": ages}),
    "pandas floats": lambda ages: pd.DataFrame({"age": ages / 2}),
    "pandas small integers": lambda ages: pd.DataFrame({"age": ages.astype(np.int8)}),
    "pandas nullable": lambda ages: pd.DataFrame({"age": pd.array(ages, dtype="Int64")}),
    "polars": lambda ages: pl.DataFrame({"age": ages.astype(np.int16)}),
    "polars floats": lambda ages: pl.DataFrame({"age": (ages / 2).astype(np.float32)}),
    "pyarrow": lambda ages: pa.table({"age": pa.array(ages, type=pa.int8())}),
    "numpy": lambda ages: ages[:, None],
    "numpy objects": lambda ages: np.array(ages.tolist(), dtype=object)[:, None],
}


def numbers_of(table: Any) -> Any:
    return np.asarray(table if isinstance(table, np.ndarray) else table["age"], float).ravel()


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES.keys())
def test_values_are_numbers_that_the_column_can_hold(make: Any) -> None:
    table = make(np.arange(20, 80))
    flips = flip_scores(numbers_of, table, 0 if isinstance(table, np.ndarray) else "age")
    np.testing.assert_array_equal(flips.scores, [[float(v) for v in flips.categories]] * 60)
    np.testing.assert_array_equal(flips.factual, numbers_of(table))
    assert np.bincount(flips.original).tolist() == [6] * 10


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(np.arange(30), dtype="category"),
        pd.Series([f"{i}" for i in range(30)]),
    ],
    ids=["categorical", "text"],
)
def test_numbers_that_are_names_are_taken_one_by_one(column: pd.Series) -> None:
    flips = flip_scores(lambda X: X["zip"].astype(int), pd.DataFrame({"zip": column}), "zip")
    assert len(flips.categories) == 30
    assert flips.factual_scores is None


def test_few_numbers_are_taken_one_by_one() -> None:
    table = pd.DataFrame({"age": np.arange(20)})
    flips = flip_scores(lambda X: X["age"], table, "age")
    assert flips.categories == tuple(range(20))
    assert flips.factual_scores is None


@pytest.mark.parametrize("n_values", [2, 7, 59])
def test_a_number_of_values(n_values: int) -> None:
    flips = flip_scores(curved, make_table(), "age", categories=n_values)
    assert len(flips.categories) == n_values


def test_as_many_values_as_there_are_is_every_one() -> None:
    table = make_table()
    flips = flip_scores(curved, table, "age", categories=60)
    assert flips.categories == tuple(range(20, 80))
    assert flips.factual_scores is None
    np.testing.assert_array_equal(flips.factual, curved(table))


def test_values_of_ones_own() -> None:
    table = make_table()
    flips = flip_scores(curved, table, "age", categories=[30, 70])
    assert flips.categories == (30, 70)
    np.testing.assert_array_equal(flips.original, table["age"] > 50)
    np.testing.assert_array_equal(flips.factual, curved(table))


def test_missing_numbers_are_a_group_of_their_own() -> None:
    table = make_table().astype({"age": float})
    table.loc[:9, "age"] = np.nan

    def predict(X: pd.DataFrame) -> Any:
        return X["age"].fillna(-1.0)

    flips = flip_scores(predict, table, "age")
    assert len(flips.categories) == 11
    assert flips.categories[-1] is None
    np.testing.assert_array_equal(flips.original == 10, table["age"].isna())
    np.testing.assert_array_equal(flips.scores[:, 10], -1.0)
    np.testing.assert_array_equal(flips.factual, predict(table))


def test_together_with_a_category() -> None:
    table = make_table().astype({"age": float})
    table.loc[0, ["age", "race"]] = None

    def predict(X: pd.DataFrame) -> Any:
        return X["age"].fillna(0.0) * X["x"] + 100 * (X["race"] == "b")

    flips = flip_scores(predict, table, ["race", "age"], categories={"age": 3})
    ages = sorted({age for _, age in flips.categories if age is not None})
    assert flips.categories == tuple((r, a) for r in ("a", "b", None) for a in (*ages, None))
    assert flips.categories[flips.original[0]] == (None, None)
    for j, (race, age) in enumerate(flips.categories):
        flipped = table.assign(race=race, age=np.nan if age is None else age)
        np.testing.assert_array_equal(flips.scores[:, j], predict(flipped))
    np.testing.assert_array_equal(flips.factual, predict(table))
    assert [race for race, _ in flips.groups[1:]] == table["race"][1:].tolist()


def test_groups_serve_the_group_metrics() -> None:
    table = make_table()
    flips = flip_scores(curved, table, "age", categories=4)
    lines = group_rates(None, flips.factual, sensitive_features=flips.groups)
    assert [line.group for line in lines] == list(flips.categories)
    means = [curved(table)[flips.original == group].mean() for group in range(4)]
    difference = demographic_parity_difference(None, flips.factual, sensitive_features=flips.groups)
    assert difference == pytest.approx(max(means) - min(means))


def test_intervals_draw_rows_with_their_own_scores() -> None:
    table = make_table()
    flips = flip_scores(make_peak, table, "age")
    rate = bootstrap_interval(decisions_flipped, flips, n_resamples=200, random_state=0)
    share = (table["age"] == 79).mean()
    assert rate.estimate == share
    assert rate.low < share < rate.high


def test_a_list_must_hold_few_numbers() -> None:
    table = pd.DataFrame({"age": np.arange(20)})
    with pytest.raises(
        InvalidInputError, match=r"include every value that occurs, got rows of .*2"
    ):
        flip_scores(lambda X: X["age"], table, "age", categories=[0, 1, 19])


def test_a_value_that_the_column_cannot_hold() -> None:
    with pytest.raises(InvalidInputError, match=r"'age' can hold, got 30\.5 for Int64"):
        flip_scores(curved, make_table(), "age", categories=[30.5, 70])
