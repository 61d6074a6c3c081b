"""Labels of groups, whatever holds them; a missing label is one more, the last."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fcorr._core import InvalidInputError
from fcorr.metrics import (
    choose_threshold,
    equal_opportunity_difference,
    equalized_odds_difference,
    normalized_gini_score,
)
from fcorr.metrics._checks import encode_groups, encode_labels

NAN = float("nan")


@pytest.mark.parametrize(
    "make",
    [
        *(list, np.array, pd.Categorical, pl.Series, pa.array),
        lambda labels: pd.Series(pd.Categorical(labels, [*"xmf"]), index=[7] * 4),
        lambda labels: pa.chunked_array([labels[:2], labels[2:]]),
        lambda labels: pa.chunked_array([labels]).dictionary_encode(),
    ],
)
def test_labels_may_come_in_any_column(make):
    categories, codes = encode_labels(make(["m", "f", "m", "f"]), "sex")
    assert (categories, codes.tolist()) == (("f", "m"), [1, 0, 1, 0])
    categories, codes = encode_labels(make(["m", None, "f", None]), "sex")
    assert (categories, codes.tolist()) == (("f", "m", None), [1, 2, 0, 2])


@pytest.mark.parametrize(
    "labels",
    [
        ["b", None, "a", NAN],
        pd.Series(["b", pd.NA, "a", np.nan], dtype=object),
        pd.Series(pd.to_datetime(["2020-01-02", None, "2020-01-01", None])),
        ["a", None, 1, None],  # labels that do not compare
        ["nan", None, "None", None],  # text that reads missing is not
    ],
)
def test_missing_is_the_last_label_in_all_its_writings(labels):
    categories, codes = encode_labels(labels, "label")
    assert codes.tolist() == [1, 2, 0, 2]
    assert categories[2] is None
    assert None not in categories[:2]


TABLES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "mapping": dict,
    "array of objects": lambda columns: pd.DataFrame(columns).to_numpy(dtype=object),
    "array of text": lambda columns: np.array(list(columns.values()), dtype=str).T,
    "list of tuples": lambda columns: list(zip(*columns.values(), strict=True)),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES.keys())
def test_intersections_may_come_in_any_table(make):
    groups = make({"sex": ["m", "f", "m", "m"], "race": ["a", "b", "a", "b"]})
    categories, codes = encode_groups(groups)
    assert categories == (("f", "b"), ("m", "a"), ("m", "b"))
    assert codes.tolist() == [1, 0, 1, 2]


def test_groups_are_sorted_by_the_first_column_then_the_next():
    columns = {"sex": [None, "m", "f", "f"], "age": [1, 2, None, 10]}
    expected = (("f", 10), ("f", None), ("m", 2), (None, 1))
    assert encode_groups(columns).categories == expected
    # one column of a table is that column
    assert encode_groups(pd.DataFrame({"sex": ["m", "f"]})).categories == ("f", "m")


def test_many_columns_do_not_overflow():
    # 1,000 labels in each of 30 columns have 10^90 combinations, of which 1,000 occur.
    column = np.random.default_rng(0).permutation(1000)
    categories, codes = encode_groups(dict.fromkeys(range(30), column))
    assert categories[3] == (3,) * 30
    assert codes.tolist() == column.tolist()


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ({}, "sensitive_features must have a column, got none"),
        ({"a": [1, 2], "b": [1]}, "rows, got sensitive_features 'a' 2, sensitive_features 'b' 1"),
        ([], "sensitive_features must have rows"),
        (
            {"a": np.ones((2, 2))},
            r"'a' must be one column .* got ndarray of shape \(2, 2\)",
        ),
        (np.ones((2, 2, 2)), r"got ndarray of shape \(2, 2, 2\). Pass a column, a table or \{'sex"),
        ([["f", 30], ["m", 40]], "one label per row, got list. Pass several columns as a table"),
        ("sex", "one column or a table of several, got str"),
    ],
)
def test_bad_groups(groups, text):
    with pytest.raises(InvalidInputError, match=text):
        encode_groups(groups)


def test_errors_count_the_rows_of_weight_0():
    weight = [1, 0, 1, 1]
    with pytest.raises(InvalidInputError, match="y_true must hold 0 and 1 only, got 7 in row 2"):
        choose_threshold([0, np.nan, 7, 1], [0, 1, 0, 1], sample_weight=weight)
    with pytest.raises(InvalidInputError, match=r"y_pred must be finite, .*\(nan\) in row 3"):
        normalized_gini_score([0, 1, 7, 1], y_pred=[0, np.inf, 0, np.nan], sample_weight=weight)
    with pytest.raises(InvalidInputError, match=r"non-negative, got -1 in row 2"):
        normalized_gini_score([0, 1, 7, 1], [0, 1, 0, 2], sample_weight=[1, 0, -1, 1])
    with pytest.raises(InvalidInputError, match="got y_true 4, y_pred 3"):
        normalized_gini_score([0, 1, 7, 1], [0, 1, 0], sample_weight=weight)


@pytest.mark.parametrize(
    ("y_true", "y_pred", "weight", "text"),
    [
        ([1, 0], [1], None, "same number of rows, got y_true 2, y_pred 1. Take them from"),
        ([], [], None, "y_true must have rows, got none. Check how"),
        ([1, np.nan], [1, 0], None, r"y_true must be finite, got 1 missing .* of 2 .* row 1"),
        ([1, 0], [np.inf, 0], None, r"y_pred must be finite, .*\(inf\) in row 0. Drop or repair"),
        (["yes", "no"], [1, 0], None, "y_true must hold numbers, got list"),
        ([[1, 0], [0, 1]], [1, 0], None, r"y_true must be one column, got .* shape \(2, 2\)"),
        ([1, 0], [1, 0], [1, -2], "non-negative, got -2 in row 1. Give a row .* weight 0"),
        ([1, 0], [1, 0], [0, 0], "positive for some row, got zeros only. Leave it out"),
        ([1, 0], [1, 0], [1, 1, 1], "one value per row, got 3 for 2 rows. Take it from"),
    ],
)
def test_bad_input(y_true, y_pred, weight, text):
    with pytest.raises(InvalidInputError, match=text):
        normalized_gini_score(y_true, y_pred, sample_weight=weight)


def test_rates_ask_for_decisions():
    for rate in (equal_opportunity_difference, equalized_odds_difference):
        with pytest.raises(InvalidInputError, match=r"only, got 0.7 in row 1. Threshold scores"):
            rate([0, 1], [0, 0.7], sensitive_features=["f", "m"])
