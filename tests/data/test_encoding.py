from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fcorr._core import InvalidInputError, UnseenCategoryWarning
from fcorr.data import encode, infer_schema, read_table

TRAINING = {
    "sex": ["f", "m", "f", "f"],
    "job": ["clerk", "nurse", "nurse", None],
    "age": [30.0, 50.0, 40.0, 20.0],
    "zip": [10, 20, 10, 30],
}


@pytest.fixture
def schema():
    return infer_schema(read_table(pa.table(TRAINING)), sensitive=["sex"])


def encoded(X, schema):
    return encode(read_table(X), schema)


def test_codes_and_numbers(schema):
    table = encoded(pa.table(TRAINING), schema)
    np.testing.assert_array_equal(table.codes, [[0, 0], [1, 1], [0, 1], [0, 2]])
    raw = np.array([TRAINING["age"], TRAINING["zip"]]).T
    expected = (raw - raw.mean(0)) / raw.std(0)
    np.testing.assert_allclose(table.numbers, expected, rtol=1e-6)
    assert table.codes.dtype == np.int32
    assert table.numbers.dtype == np.float32
    assert len(table) == 4


def test_the_same_whatever_the_library(as_frame, schema):
    reference = encoded(pa.table(TRAINING), schema)
    table = encoded(as_frame(TRAINING), schema)
    np.testing.assert_array_equal(table.codes, reference.codes)
    np.testing.assert_array_equal(table.numbers, reference.numbers)


@pytest.mark.parametrize(
    "job",
    [
        pd.Series(pd.Categorical(TRAINING["job"], categories=["nurse", "pilot", "clerk"])),
        pl.Series(TRAINING["job"], dtype=pl.Enum(["pilot", "nurse", "clerk"])),
        pl.Series(TRAINING["job"], dtype=pl.Categorical),
        pa.array(TRAINING["job"]).dictionary_encode(),
        pa.array(TRAINING["job"], pa.string_view()),
    ],
    ids=["pandas", "polars-enum", "polars", "arrow", "string-view"],
)
def test_the_same_whatever_holds_the_categories(schema, job):
    library = type(job).__module__.split(".")[0]
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library]
    table = encoded(frame({**TRAINING, "job": job}), schema)
    np.testing.assert_array_equal(table.codes, encoded(pa.table(TRAINING), schema).codes)


def test_columns_are_found_by_name(schema):
    X = pd.DataFrame(TRAINING)
    shuffled = X.assign(extra=1)[["extra", "zip", "job", "age", "sex"]]
    reference, table = encoded(X, schema), encoded(shuffled, schema)
    np.testing.assert_array_equal(table.codes, reference.codes)
    np.testing.assert_array_equal(table.numbers, reference.numbers)


@pytest.mark.parametrize(
    ("absent", "message"),
    [
        (["age"], "the training table: Column 'age' is missing. X has 'sex', 'job', 'zip'. Add or"),
        (["sex"], r"Column 'sex' \(sensitive\) is missing\. X has"),
        (["job", "zip"], "Column 'job' is missing; Column 'zip' is missing. X has 'sex', 'age'"),
    ],
)
def test_missing_columns(schema, absent, message):
    with pytest.raises(InvalidInputError, match=message):
        encoded(pd.DataFrame(TRAINING).drop(columns=absent), schema)


def test_misspelt_column(schema):
    X = pd.DataFrame(TRAINING).rename(columns={"age": "Age"})
    with pytest.raises(
        InvalidInputError, match=r"'age' is missing \(Did you mean 'Age'\?\)\. X has"
    ):
        encoded(X, schema)


def test_unseen_categories_are_counted_by_column(schema):
    X = {**TRAINING, "job": ["pilot", "nurse", "chef", "pilot"], "sex": ["f", "x", "m", "f"]}
    with pytest.warns(UnseenCategoryWarning) as caught:
        table = encoded(pa.table(X), schema)
    assert [str(warning.message) for warning in caught] == [
        "Categories not seen in training: 1 row(s) of 'sex', 3 row(s) of 'job'. "
        "Each is taken for the most frequent training category of its column."
    ]
    np.testing.assert_array_equal(table.codes, [[0, 1], [0, 1], [1, 1], [0, 1]])


def test_missing_where_training_had_none_counts_as_unseen(schema):
    X = {**TRAINING, "sex": [None, "m", "m", "m"]}
    with pytest.warns(UnseenCategoryWarning, match=r"1 row\(s\) of 'sex'\."):
        table = encoded(pa.table(X), schema)
    assert table.codes[0, 0] == 0


def test_missing_that_training_imputed_is_no_news():
    schema = infer_schema(read_table(pa.table(TRAINING)), missing_categorical="mode")
    table = encoded(pa.table(TRAINING), schema)
    nurse = schema.categorical[1].categories.index("nurse")
    np.testing.assert_array_equal(table.codes[2:, 1], [nurse, nurse])


def test_column_all_missing_at_predict(schema):
    X = {**TRAINING, "job": pa.nulls(4), "age": pa.nulls(4)}
    table = encoded(pa.table(X), schema)
    np.testing.assert_array_equal(table.codes[:, 1], 2)
    np.testing.assert_array_equal(table.numbers[:, 0], 0)


def test_missing_number_is_the_mean(schema):
    table = encoded(pa.table({**TRAINING, "age": [None, 50.0, np.nan, 35.0]}), schema)
    np.testing.assert_allclose(table.numbers[[0, 2, 3], 0], 0)


def test_missing_number_kept():
    X = pa.table({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 3.0]})
    schema = infer_schema(read_table(X), missing_numeric="category")
    table = encoded(pa.table({"a": [None, 1.0], "b": [None, 1.0]}), schema)
    np.testing.assert_array_equal(np.isnan(table.numbers), [[True, False], [False, False]])
    assert table.numbers[0, 1] == 0  # training had none: there is no embedding for it


@pytest.mark.parametrize(
    "zeros_and_ones", [[0, 1, 1], [0.0, 1.0, 1.0], [False, True, True], [Decimal(0), Decimal(1)]]
)
def test_numbers_as_categories_in_any_type(zeros_and_ones):
    schema = infer_schema(read_table(pa.table({"a": [1, 0, 1]})), kinds={"a": "categorical"})
    table = encoded(pa.table({"a": zeros_and_ones}), schema)
    np.testing.assert_array_equal(table.codes[:, 0], [int(value) for value in zeros_and_ones])


@pytest.mark.parametrize(
    "ages", [["30", "50.0", "40", "20"], [30, 50, 40, 20], [Decimal(30), Decimal(50), 40, 20]]
)
def test_numbers_in_any_type(schema, ages):
    table = encoded(pa.table({**TRAINING, "age": ages}), schema)
    np.testing.assert_array_equal(table.numbers, encoded(pa.table(TRAINING), schema).numbers)


def test_numbers_in_a_dictionary(schema):
    ages = pa.array(TRAINING["age"]).dictionary_encode()
    table = encoded(pa.table({**TRAINING, "age": ages}), schema)
    np.testing.assert_array_equal(table.numbers, encoded(pa.table(TRAINING), schema).numbers)


def test_text_where_numbers_are_expected(schema):
    X = pa.table({**TRAINING, "age": ["30", "old", "40", "20"]})
    with pytest.raises(InvalidInputError, match=r"'age' must hold numbers, got text: 'old' in row"):
        encoded(X, schema)


def test_infinity_at_predict(schema):
    with pytest.raises(InvalidInputError, match=r"'age' must hold finite numbers.*got -inf in row"):
        encoded(pa.table({**TRAINING, "age": [1.0, 2.0, 3.0, -np.inf]}), schema)


def test_large_mean_keeps_its_digits():
    values = 1e9 + np.arange(5.0)
    schema = infer_schema(read_table(values[:, None]))
    table = encode(read_table(values[:, None]), schema)
    expected = (np.arange(5.0) - 2) / np.arange(5.0).std()
    np.testing.assert_allclose(table.numbers[:, 0], expected, rtol=1e-6)


def test_numbers_far_from_training_stay_finite():
    schema = infer_schema(read_table(np.array([[0.0], [1e-30]])))
    table = encode(read_table(np.array([[3e38], [-3e38], [0.0]])), schema)
    squares = np.square(table.numbers)
    assert np.isfinite(squares).all()
    np.testing.assert_array_equal(np.sign(table.numbers[:, 0]), [1, -1, -1])
