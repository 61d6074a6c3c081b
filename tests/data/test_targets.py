import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import DataConversionWarning

from fcorr._core import InvalidInputError
from fcorr.data.encode import (
    column_name,
    read_outcomes,
    read_sample_weight,
    read_target,
)


@pytest.mark.parametrize("raw", [[0, 1, 1], [0.5, 1.5, 2.5], ["a", "b", "a"], [True, False, True]])
@pytest.mark.parametrize(
    "make", [list, np.array, pd.Series, pl.Series, pa.array, lambda raw: pa.chunked_array([raw])]
)
def test_any_library(make, raw):
    values = read_target(make(raw), 3)
    assert isinstance(values, np.ndarray)
    assert values.tolist() == raw


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (pd.Series([1, 2], name="y"), "y"),
        (pd.Series([1, 2], name=3), "3"),
        (pd.Series([1, 2]), None),
        (pl.Series("y", [1, 2]), "y"),
        (pl.Series([1, 2]), None),
        (pa.chunked_array([[1, 2]]), None),
        (np.array([1, 2]), None),
        ([1, 2], None),
        (None, None),
    ],
)
def test_name(values, name):
    assert column_name(values) == name


def test_categories():
    for y in (
        pd.Series(["a", "b"], dtype="category"),
        pl.Series(["a", "b"], dtype=pl.Categorical),
        pa.array(["a", "b"]).dictionary_encode(),
    ):
        assert read_target(y, 2).tolist() == ["a", "b"]


def test_one_column_of_a_table():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        assert read_target(pd.DataFrame({"y": [1, 2]}), 2).tolist() == [1, 2]


@pytest.mark.parametrize(
    "y",
    [
        [1.0, np.nan, np.nan],
        ["a", None, None],
        ["a", float("nan"), float("nan")],
        pd.Series([1, pd.NA, pd.NA], dtype="Int64"),
        pd.Series([True, pd.NA, pd.NA], dtype="boolean"),
        pd.Series(["a", None, None], dtype="category"),
        pd.array(["a", pd.NA, pd.NA], dtype="string"),
        pl.Series([1, None, None]),
        pl.Series(["a", None, None]),
        pa.array([True, None, None]),
        pa.chunked_array([["a", None, None]]),
    ],
)
def test_missing_values(y):
    message = "y must not hold missing values, got 2 NaN, the first in row 1. Drop these rows"
    with pytest.raises(InvalidInputError, match=message):
        read_target(y, 3)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y must be given: .* the target y is None"),
        ([1, 2], "same number of rows, got 3 and 2. Check that both come from the same filter"),
        ([], "same number of rows, got 3 and 0"),
        ([1.0, np.inf, 2.0], r"y must be finite, got infinity \(inf\) in row 1. Correct or drop"),
        (np.array(["2020", "NaT", "2021"], dtype="datetime64[D]"), "numbers, text or booleans"),
        (pd.Series(pd.date_range("2020", periods=3)), "got datetime64.*days since a start"),
        (pd.Series(pd.to_timedelta([1, 2, 3], unit="D")), "got timedelta64"),
    ],
)
def test_refused(y, message):
    with pytest.raises(InvalidInputError, match=message):
        read_target(y, 3)


def test_two_columns():
    with pytest.raises(ValueError, match=r"1d array, got an array of shape \(3, 2\)"):
        read_target(np.ones((3, 2)), 3)


def test_weights_have_mean_one():
    np.testing.assert_allclose(read_sample_weight([1, 2, 3], 3), [0.5, 1, 1.5])
    np.testing.assert_array_equal(read_sample_weight(None, 3), [1, 1, 1])
    np.testing.assert_array_equal(read_sample_weight(7, 3), [1, 1, 1])
    np.testing.assert_array_equal(read_sample_weight(pl.Series([0, 4]), 2), [0, 2])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 2], r"one number per row, got shape \(2,\) for 3 rows"),
        (np.ones((3, 1)), r"one number per row, got shape \(3, 1\)"),
        ([1, -1, 1], "finite and at least 0, got -1.0 in row 1. Correct it, or set it to 0"),
        ([1, np.nan, 1], "finite and at least 0, got nan in row 1"),
        ([1, None, 1], "finite and at least 0, got nan in row 1"),
        ([1, 1, np.inf], "finite and at least 0, got inf in row 2"),
        ([0, 0, 0], "positive sum, got a weight of zero in every row. Leave it out"),
        ([1e308] * 3, r"finite sum, got weights up to 1e\+308. Divide"),
        (["a", "b", "c"], "hold numbers.*Pass one number per row"),
    ],
)
def test_weights_refused(weight, message):
    with pytest.raises(InvalidInputError, match=f"sample_weight must .*{message}"):
        read_sample_weight(weight, 3)


def test_messages_name_the_column():
    y, weight = pd.Series([1.0, np.nan], name="claims"), pl.Series("w", [1.0, -1.0])
    with pytest.raises(InvalidInputError, match=r"y \('claims'\) must not hold missing values"):
        read_outcomes(y, None, np.ones(2))
    with pytest.raises(InvalidInputError, match=r"sample_weight \('w'\) must be finite .*row 1"):
        read_outcomes([1, 2], weight, np.ones(2))
    text = read_outcomes(pd.Series(["a", "b"], name="job"), None, np.ones(2))
    with pytest.raises(InvalidInputError, match=r"y \('job'\) must hold numbers, got .*'a'\. Con"):
        text.numbers()
    assert read_outcomes(pd.Series([1, 2], name="y"), None, np.ones(2)).label == "y"
