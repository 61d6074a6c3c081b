from typing import Any

import fairlearn.metrics
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fcorr._core import InvalidInputError, NotEstimableWarning
from fcorr.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
    group_rates,
)

METRICS = [
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
]
COLUMNS = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "numpy object": lambda labels: np.array(labels, dtype=object),
    "pandas": pd.Series,
    "pandas categorical": lambda labels: pd.Series(
        labels, index=[7] * len(labels), dtype="category"
    ),
    "pandas bare categorical": pd.Categorical,
    "polars": pl.Series,
    "polars categorical": lambda labels: pl.Series(labels, dtype=pl.Categorical),
    "pyarrow array": pa.array,
    "pyarrow chunked": lambda labels: pa.chunked_array([labels[:2], labels[2:]]),
    "pyarrow dictionary": lambda labels: pa.array(labels).dictionary_encode(),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("metric", METRICS)
def test_agrees_with_fairlearn(metric: Any, seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    y_true, y_pred, group = rng.integers(0, [[2], [2], [4]], (3, 200))
    weight = rng.random(200) if weighted else None
    arguments = {"sensitive_features": group, "sample_weight": weight}
    theirs = getattr(fairlearn.metrics, metric.__name__)(y_true, y_pred, **arguments)
    assert metric(y_true, y_pred, **arguments) == pytest.approx(theirs)


def test_parity_of_amounts_is_the_difference_of_weighted_means() -> None:
    value = demographic_parity_difference(
        None, [100, 300, 50], sensitive_features=["f", "f", "m"], sample_weight=[3, 1, 1]
    )
    assert value == 150 - 50


def test_parity_ignores_the_truth() -> None:
    groups = ["f", "m"]
    assert demographic_parity_difference("anything", [1, 0], sensitive_features=groups) == 1.0


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS.keys())
def test_groups_may_come_in_any_column(make: Any) -> None:
    groups = make(["m", "f", "m", "f"])
    table = group_rates([1, 1, 0, 0], [1, 0, 1, 0], sensitive_features=groups)
    assert [(line.group, line.n, line.tpr, line.fpr) for line in table] == [
        ("f", 2, 0.0, 0.0),
        ("m", 2, 1.0, 1.0),
    ]


def test_labels_that_do_not_compare_are_still_groups() -> None:
    table = group_rates(None, [1, 2, 5], sensitive_features=["a", 1, "a"])
    assert [(line.group, line.mean_prediction) for line in table] == [(1, 2.0), ("a", 3.0)]


def test_rows_are_counted_and_weights_added() -> None:
    line, _ = group_rates(
        None, [1, 4, 9, 9], sensitive_features=["f", "f", "f", "m"], sample_weight=[1, 0.5, 0, 1]
    )
    assert (line.n, line.weight, line.mean_prediction) == (2, 1.5, 2.0)


@pytest.mark.parametrize(
    ("y_true", "y_pred"),
    [(None, [1, 0]), ([1, 0], [0.3, 0.4]), ([10.0, 20.0], [1, 0])],
    ids=["no truth", "scores", "amounts"],
)
def test_rates_of_what_is_no_decision_are_nan(y_true: Any, y_pred: Any) -> None:
    for line in group_rates(y_true, y_pred, sensitive_features=["f", "m"]):
        assert np.isnan([line.tpr, line.fpr]).all()
        assert np.isfinite(line.mean_prediction)


def test_a_group_without_positives_is_left_out_by_name_and_count() -> None:
    y_true, y_pred = [1, 1, 1, 0, 0, 0], [1, 1, 0, 1, 1, 0]
    groups = ["a", "a", "b", "b", "c", "c"]
    with pytest.warns(NotEstimableWarning) as caught:
        value = equal_opportunity_difference(y_true, y_pred, sensitive_features=groups)
    assert value == 1.0
    assert [str(warning.message) for warning in caught] == [
        "equal_opportunity_difference is not estimable for 1 of 3 groups, which have no positives "
        "and are left out: 'c (n=2)'."
    ]


def test_a_group_without_weight_is_left_out() -> None:
    arguments = {"sensitive_features": ["a", "b", "c"], "sample_weight": [1, 2, 0]}
    with pytest.warns(
        NotEstimableWarning, match=r"1 of 3 groups, which have no rows .*'c \(n=0\)'"
    ):
        assert demographic_parity_difference(None, [1, 0, 9], **arguments) == 1.0
    last = group_rates(None, [1, 0, 9], **arguments)[-1]
    assert (last.n, last.weight) == (0, 0.0)
    assert np.isnan(last.mean_prediction)


@pytest.mark.parametrize("metric", METRICS)
def test_one_group_has_nothing_to_compare_with(metric: Any) -> None:
    with pytest.warns(
        NotEstimableWarning, match=rf"{metric.__name__} .* 1 of 1 have. Without: none"
    ):
        assert np.isnan(metric([1, 0], [1, 0], sensitive_features=["f", "f"]))


def test_half_of_the_odds_is_not_the_odds() -> None:
    # Negatives can be compared, positives cannot: the difference of one half would understate.
    with pytest.warns(NotEstimableWarning, match=r"positives, which 1 of 2 have. .* 'm \(n=2\)'"):
        value = equalized_odds_difference(
            [1, 0, 0, 0], [1, 0, 0, 0], sensitive_features=["f", "f", "m", "m"]
        )
    assert np.isnan(value)


MISSING = {
    "None": ["f", None, None],
    "nan": np.array(["f", np.nan, float("nan")], dtype=object),
    "numbers": np.array([1.0, np.nan, np.nan]),
    "pandas": pd.Series(["f", None, None]),
    "pandas categorical": pd.Series(["f", None, None], dtype="category"),
    "pandas integers": pd.Series([1, None, None], dtype="Int64"),
    "polars": pl.Series(["f", None, None]),
    "polars numbers": pl.Series([1.0, None, float("nan")]),
    "pyarrow": pa.array(["f", None, None]),
}


@pytest.mark.parametrize("groups", MISSING.values(), ids=MISSING.keys())
def test_rows_without_a_group_are_a_group(groups: Any) -> None:
    known, missing = group_rates([1, 1, 0], [1, 0, 1], sensitive_features=groups)
    assert known.group in ("f", 1)
    assert missing.group is None
    assert (missing.n, missing.mean_prediction, missing.tpr, missing.fpr) == (2, 0.5, 0.0, 1.0)
    assert demographic_parity_difference(None, [1, 0, 1], sensitive_features=groups) == 0.5


def test_a_group_of_missing_labels_is_named_where_it_is_left_out() -> None:
    with pytest.warns(NotEstimableWarning, match=r"1 of 3 groups, .* left out: 'missing \(n=1\)'"):
        equal_opportunity_difference([1, 1, 0], [1, 0, 1], sensitive_features=["f", "m", None])


TABLES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "mapping": dict,
    "mapping of columns": lambda columns: {k: pl.Series(v) for k, v in columns.items()},
    "array of objects": lambda columns: pd.DataFrame(columns).to_numpy(dtype=object),
    "array of text": lambda columns: np.array(list(columns.values()), dtype=str).T,
    "list of tuples": lambda columns: list(zip(*columns.values(), strict=True)),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES.keys())
def test_intersections_may_come_in_any_table(make: Any) -> None:
    groups = make({"sex": ["m", "f", "m", "m"], "race": ["a", "b", "a", "b"]})
    table = group_rates([1, 1, 0, 0], [1, 0, 0, 1], sensitive_features=groups)
    assert [(line.group, line.n, line.mean_prediction) for line in table] == [
        (("f", "b"), 1, 0.0),
        (("m", "a"), 2, 0.5),
        (("m", "b"), 1, 1.0),
    ]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("metric", METRICS)
def test_intersections_agree_with_fairlearn(metric: Any, seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    y_true, y_pred, sex, age = rng.integers(0, [[2], [2], [2], [3]], (4, 300))
    both = pd.DataFrame({"sex": np.array(["f", "m"])[sex], "age": age})
    weight = rng.random(300) if weighted else None
    theirs = getattr(fairlearn.metrics, metric.__name__)(
        y_true, y_pred, sensitive_features=both, sample_weight=weight
    )
    ours = metric(y_true, y_pred, sensitive_features=both, sample_weight=weight)
    assert ours == pytest.approx(theirs)
    apart = [
        metric(y_true, y_pred, sensitive_features=both[name], sample_weight=weight) for name in both
    ]
    assert ours >= max(apart)  # an intersection can only show more than the columns do


def test_intersections_can_hide_from_each_column() -> None:
    # Both sexes and both races are selected half of the time; two of the four groups never are.
    groups = {"sex": ["f", "f", "m", "m"], "race": ["a", "b", "a", "b"]}
    decisions = [1, 0, 0, 1]
    for column in groups.values():
        assert demographic_parity_difference(None, decisions, sensitive_features=column) == 0.0
    assert demographic_parity_difference(None, decisions, sensitive_features=groups) == 1.0


def test_an_intersection_that_has_no_positives_is_named() -> None:
    groups = {"sex": ["f", "f", "m", "m"], "race": ["a", None, "a", None]}
    with pytest.warns(NotEstimableWarning) as caught:
        equal_opportunity_difference([1, 0, 1, 1], [1, 0, 1, 0], sensitive_features=groups)
    assert [str(warning.message) for warning in caught] == [
        "equal_opportunity_difference is not estimable for 1 of 4 groups, which have no positives "
        "and are left out: 'f, missing (n=1)'."
    ]


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        (["f"], "same number of rows, got y_pred 2, sensitive_features 1"),
        (pd.DataFrame({"a": [1], "b": [1]}), "got y_pred 2, sensitive_features 1"),
        ([], "sensitive_features must have rows"),
        ({"a": [1, 2], "b": [1]}, r"columns of sensitive_features must have the same number of"),
        (np.ones((2, 2, 2)), r"got ndarray of shape \(2, 2, 2\). Pass a column, a table or \{'sex"),
        ([["f", 30], ["m", 40]], "one label per row, got list. Pass several columns as a table"),
        ("sex", "one column or a table of several, got str"),
    ],
)
def test_bad_groups(groups: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        group_rates(None, [1, 0], sensitive_features=groups)


@pytest.mark.parametrize("metric", [equal_opportunity_difference, equalized_odds_difference])
def test_odds_ask_for_decisions(metric: Any) -> None:
    with pytest.raises(
        InvalidInputError,
        match=r"y_pred must hold 0 and 1 only, got 0.2 in row 0. Threshold scores first: "
        r"y_pred = \(scores >= 0.5\)",
    ):
        metric([0, 1], [0.2, 0.8], sensitive_features=["f", "m"])
    with pytest.raises(InvalidInputError, match=r"y_true must hold 0 and 1 only, got 5"):
        metric([0, 5], [0, 1], sensitive_features=["f", "m"])
