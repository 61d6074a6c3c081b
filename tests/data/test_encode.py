"""From a table to arrays: codes, numbers, targets, weights and exposures."""

import datetime
import tracemalloc
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

from fcorr._core import InvalidInputError, UnseenCategoryWarning
from fcorr.data import encode, read_table
from fcorr.data.encode import (
    read_exposure,
    read_outcomes,
    read_sample_weight,
    read_target,
)
from fcorr.data.tables import ColumnError
from paper.generators import make_bank_fraud
from tests.tables import encoded, schema_of

TRAINING = {
    "sex": ["f", "m", "f", "f"],
    "job": ["clerk", "nurse", "nurse", None],
    "age": [30.0, 50.0, 40.0, 20.0],
    "zip": [10, 20, 10, 30],
}


def assert_same(table, reference):
    np.testing.assert_array_equal(table.codes, reference.codes)
    np.testing.assert_array_equal(table.numbers, reference.numbers)


@pytest.fixture
def schema():
    return schema_of(TRAINING, sensitive=["sex"])


def test_codes_and_numbers(schema):
    table = encoded(TRAINING, schema)
    np.testing.assert_array_equal(table.codes, [[0, 0], [1, 1], [0, 1], [0, 2]])
    raw = np.array([TRAINING["age"], TRAINING["zip"]]).T
    np.testing.assert_allclose(table.numbers, (raw - raw.mean(0)) / raw.std(0), rtol=1e-6)
    assert table.codes.dtype == np.int32
    assert table.numbers.dtype == np.float32
    assert len(table) == 4


JOBS, AGES = TRAINING["job"], TRAINING["age"]


@pytest.mark.parametrize(
    "columns",
    [
        {"job": pd.Categorical(JOBS, categories=["nurse", "pilot", "clerk"])},
        {"job": pl.Series(JOBS, dtype=pl.Enum(["pilot", "nurse", "clerk"]))},
        {"job": pl.Series(JOBS, dtype=pl.Categorical)},
        {"job": pa.array(JOBS).dictionary_encode()},
        {"job": pa.array(JOBS, pa.string_view())},
        {"age": ["30", "50.0", "40", "20"]},
        {"age": [30, 50, 40, 20]},
        {"age": [Decimal(30), Decimal(50), 40, 20]},
        {"age": pa.array(AGES).dictionary_encode()},
    ],
    ids=lambda columns: type(next(iter(columns.values()))).__name__,
)
def test_the_same_whatever_holds_the_values(schema, columns):
    library = type(next(iter(columns.values()))).__module__.split(".")[0]
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(library, pa.table)
    X = frame({**TRAINING, **columns})
    assert_same(encoded(X, schema), encoded(TRAINING, schema))
    # Only categories that occur are described.
    kinds = {"age": "numeric", "job": "categorical"}
    assert schema_of(X, sensitive=["sex"], kinds=kinds) == schema


ZEROS_AND_ONES = [[0, 1, 1, None], [0.0, 1.0, 1.0, None], [False, True, True, None]]


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("categorical", [*ZEROS_AND_ONES, [Decimal(0), Decimal(1), Decimal(1), None]]),
        ("boolean", [*ZEROS_AND_ONES, ["False", "true", "TRUE", None]]),
    ],
)
def test_zeros_and_ones_of_any_type_are_the_same_categories(kind, types):
    schemas = [schema_of({"a": values}, kinds={"a": kind}) for values in types]
    for schema, values in zip(schemas, types, strict=True):
        assert schema == schemas[0]
        np.testing.assert_array_equal(encoded({"a": values}, schemas[0]).codes[:, 0], [0, 1, 1, 2])


# Missing and unseen values

GRADES = {"grade": ["B", "A", "D", "B", None]}
ORDER = ["A", "B", "C", "D"]
AS_MODE = " Each is taken for the most frequent training category of its column."
AS_MISSING = " In 'grade', which is ordinal, it is taken as missing."
UNSEEN = {
    "categories": (
        (TRAINING, {"sensitive": ["sex"]}),
        {**TRAINING, "job": ["pilot", "nurse", "chef", "pilot"], "sex": ["f", "x", "m", "f"]},
        f"1 row(s) of 'sex' ('x'), 3 row(s) of 'job' ('pilot', 'chef').{AS_MODE}",
        [[0, 1], [0, 1], [1, 1], [0, 1]],
    ),
    "missing where training had none": (
        (TRAINING, {"sensitive": ["sex"]}),
        {**TRAINING, "sex": [None, "m", "m", "m"]},
        f"1 row(s) of 'sex' (missing).{AS_MODE}",
        [[0, 0], [1, 1], [1, 1], [1, 2]],
    ),
    "missing is not the pool": (
        ({"a": ["x"] * 3 + ["y"]}, {"min_category_rows": 2}),
        {"a": [None, "new", "x", "y"]},
        f"1 row(s) of 'a' (missing).{AS_MODE}",
        [[0], [1], [0], [1]],
    ),
    "no boolean": (
        ({"a": [True, False, False]}, {}),
        {"a": ["true", "maybe", "?"]},
        f"2 row(s) of 'a' ('?', 'maybe').{AS_MODE}",
        [[1], [0], [0]],
    ),
    "outside the order": (
        (GRADES, {"kinds": {"grade": ORDER}}),
        {"grade": ["E", "A", "F", None]},
        f"2 row(s) of 'grade' ('E', 'F').{AS_MISSING}",
        np.empty((4, 0)),
    ),
    "outside the order, missing kept": (
        (GRADES, {"kinds": {"grade": ORDER}, "missing_numeric": "category"}),
        {"grade": ["E", "A", "F", None]},
        f"2 row(s) of 'grade' ('E', 'F').{AS_MISSING}",
        np.empty((4, 0)),
    ),
    "many, and such as would steer a terminal": (
        ({"a": ["x", "y"]}, {}),
        {"a": ["\x1b[2J", "b", "b", "c" * 999, "e"]},
        f"5 row(s) of 'a' ('b', '\\x1b[2J', 'cccccccccccc...ccccccccccccc', …).{AS_MODE}",
        [[0]] * 5,
    ),
    "both": (
        ({**GRADES, "job": ["x", "y", "x", "x", "y"]}, {"kinds": {"grade": ORDER}}),
        {"grade": ["E"], "job": ["z"]},
        f"1 row(s) of 'job' ('z'), 1 row(s) of 'grade' ('E').{AS_MODE}{AS_MISSING}",
        [[0]],
    ),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_what_training_did_not_see_is_counted(name):
    (training, options), X, message, codes = UNSEEN[name]
    schema, X = schema_of(training, **options), read_table(pa.table(X))
    with pytest.warns(UnseenCategoryWarning) as caught:
        table = encode(X, schema)
    (warning,) = caught
    assert str(warning.message) == f"Categories not seen in training: {message}"
    assert warning.filename == __file__  # it points to the caller
    np.testing.assert_array_equal(table.codes, codes)
    if name.startswith("outside"):
        expected = np.nan if "kept" in name else 0.0
        np.testing.assert_array_equal(table.numbers[[0, 2, 3], 0], expected)
        assert table.numbers[1, 0] < -1


def test_unseen_categories_go_to_the_pool_without_a_warning():
    schema = schema_of({"a": ["other"] * 3 + ["y"] * 2 + ["z"]}, min_category_rows=3)
    codes = encoded({"a": ["other", "y", "z", "new"]}, schema).codes[:, 0]
    np.testing.assert_array_equal(codes, [0, 1, 1, 1])  # a category called other is not the pool
    schema = schema_of(TRAINING, missing_categorical="mode")  # nor is what training imputed
    nurse = schema.categorical[1].categories.index("nurse")
    np.testing.assert_array_equal(encoded(TRAINING, schema).codes[2:, 1], [nurse, nurse])


KINDS = {
    "sex": ["f", "m", None],
    "number": [1.0, 2.0, 3.0],
    "whole": [1, 2, None],
    "day": [datetime.date(2020, 1, 1), datetime.date(2021, 5, 3), None],
    "grade": ["C", "B", "A"],
    "text": ["a", "b", None],
}


@pytest.fixture
def schema_of_kinds():
    return schema_of(KINDS, kinds={"grade": ["C", "B", "A"]}, sensitive=["sex"])


def test_columns_without_a_value_are_told_in_one_warning(schema_of_kinds):
    table = read_table(pa.table(dict.fromkeys(KINDS, pa.nulls(50))))
    with pytest.warns(UserWarning, match="none at all") as heard:
        encode(table, schema_of_kinds, read_sensitive=False)
    assert [(str(warning.message), warning.filename) for warning in heard] == [
        (
            "Columns must have values as in training, got none at all in 'number', 'whole', "
            "'day', 'grade', 'text' (50 row(s)): each is taken as missing. Check where the table "
            "comes from.",
            __file__,
        )
    ]
    X = {name: values * 10 for name, values in KINDS.items()}
    with pytest.warns(UserWarning, match=r"none at all in 'number' \(30 row"):
        encoded(X | {"number": np.full(30, np.nan)}, schema_of_kinds)  # which is no null to Arrow


@pytest.mark.parametrize(
    "columns",
    [
        {"number": [None] * 29 + [1.5]},
        {"number": [np.nan] * 29 + [1.5], "text": [None] * 29 + ["a"]},
        # A third of training: that six rows have none by chance is more than one in a thousand.
        {name: KINDS[name][2:] * 6 for name in ("whole", "day", "text")},
    ],
)
def test_a_few_missing_values_are_no_news(schema_of_kinds, columns):
    n_rows = len(next(iter(columns.values())))
    others = {name: (values * 10)[:n_rows] for name, values in KINDS.items()}
    encoded(others | columns, schema_of_kinds)  # without a warning, which would be an error


def test_missing_number_is_the_mean_or_kept():
    X = {"a": [1.0, None, 3.0], "b": [1.0, 2.0, 3.0]}
    some = {"a": [None, np.nan, 2.0], "b": [None, 1.0, 2.0]}
    mean, kept = (
        encoded(some, schema_of(X, missing_numeric=m)).numbers for m in ("mean", "category")
    )
    np.testing.assert_array_equal(mean[:, 0], 0)
    np.testing.assert_array_equal(np.isnan(kept), [[True, False], [True, False], [False, False]])
    assert kept[0, 1] == 0  # training had none: there is no embedding for it


# Numbers, orders, dates, bins


def raw_numbers(X, schema):
    """Return the encoded numbers as they were before they were standardised."""
    mean, scale = (np.array([getattr(c, a) for c in schema.numeric]) for a in ("mean", "scale"))
    return encoded(X, schema).numbers * scale + mean


def test_numbers_far_from_training_stay_finite():
    schema = schema_of(np.array([[0.0], [1e-30]]))
    table = encoded(np.array([[3e38], [-3e38], [0.0]]), schema)
    assert np.isfinite(np.square(table.numbers)).all()
    np.testing.assert_array_equal(np.sign(table.numbers[:, 0]), [1, -1, -1])


@pytest.mark.parametrize(
    ("training", "order", "values", "places"),
    [
        (GRADES["grade"], ORDER, ["A", "B", "C", "D"], [0, 1, 2, 3]),
        ([10, 1, 5, 1], "ordinal", [10.0, 5.0, 1.0], [2, 1, 0]),
    ],
)
def test_ordinal_column_is_its_place_in_the_order(training, order, values, places):
    schema = schema_of({"a": training}, kinds={"a": order})
    np.testing.assert_allclose(raw_numbers({"a": values}, schema)[:, 0], places, atol=1e-6)


def test_dates_are_taken_apart():
    X = {"d": [datetime.datetime(2019, 12, 30, 9), datetime.datetime(2021, 3, 7, 17), None]}
    schema = schema_of(X)
    days = (datetime.date(2021, 3, 7) - datetime.date(2019, 12, 30)).days
    numbers = raw_numbers(X, schema)
    np.testing.assert_allclose(numbers[0], [2019, 12, 0, 9, 0], atol=1e-3)
    np.testing.assert_allclose(numbers[1], [2021, 3, 6, 17, days], atol=1e-3)
    np.testing.assert_allclose(numbers[2], [column.mean for column in schema.numeric])
    kept = encoded(X, schema_of(X, missing_numeric="category")).numbers
    np.testing.assert_array_equal(np.isnan(kept), [[False] * 5, [False] * 5, [True] * 5])


DATES = ["2020-01-31", "2020-03-01", None, "2021-07-04"]
DATETIMES = [None if d is None else datetime.datetime.fromisoformat(d) for d in DATES]
# One after midnight, which is less than the model sees.
NANOSECONDS = [None if d is None else pd.Timestamp(d).as_unit("ns").value + 1 for d in DATES]
IN_PANDAS = pd.to_datetime(pd.Series(DATES))
SAME_DATES = {
    "pandas": pd.DataFrame({"d": IN_PANDAS}),
    "pandas-objects": pd.DataFrame({"d": [d and d.date() for d in DATETIMES]}),
    "pandas-zone": pd.DataFrame({"d": IN_PANDAS.dt.tz_localize("Asia/Tokyo")}),
    "polars": pl.DataFrame({"d": DATETIMES}),
    "arrow-date64": pa.table({"d": pa.array(DATETIMES, pa.date64())}),
    "arrow-ns": pa.table({"d": pa.array(NANOSECONDS).cast(pa.timestamp("ns"))}),
    "text": pa.table({"d": DATES}),
    "text-dictionary": pa.table({"d": pa.array(DATES).dictionary_encode()}),
}
SECONDS = np.array([129_600, "NaT", 259_200], dtype="timedelta64[s]")
MONTHS = ["2024-03-01", None, "2024-11-01"]
SAME = {
    **{name: (X, DATETIMES) for name, X in SAME_DATES.items()},
    "pandas-duration": (pd.DataFrame({"d": SECONDS}), [1.5, None, 3.0]),  # in days
    "polars-duration": (pl.DataFrame({"d": SECONDS.tolist()}), [1.5, None, 3.0]),
    "arrow-duration": (pa.table({"d": pa.array(SECONDS)}), [1.5, None, 3.0]),
    "pandas-sparse": (
        pd.DataFrame({"d": pd.arrays.SparseArray([1.5, np.nan, 3.0])}),
        [1.5, None, 3.0],
    ),
    "pandas-period": (
        pd.DataFrame({"d": pd.PeriodIndex(MONTHS, freq="M")}),
        [None if m is None else datetime.datetime.fromisoformat(m) for m in MONTHS],
    ),
}


@pytest.mark.parametrize("sensitive", [[], ["d"]])
@pytest.mark.parametrize("name", SAME)
def test_other_types_of_columns(name, sensitive):
    X, plain = SAME[name]
    reference = schema_of({"d": plain}, sensitive=sensitive)
    kinds = {"d": "datetime"} if name.startswith("text") else None  # else it need not be told
    assert schema_of(X, kinds=kinds, sensitive=sensitive) == reference
    assert_same(encoded(X, reference), encoded({"d": plain}, reference))


# Sensitive columns: where they end up, and left unread

N = 30
TABLE = {
    "age": [20.0 + i for i in range(N)],
    "job": ["clerk", "nurse"] * (N // 2),
    "born": [datetime.date(1950 + i, 1 + i % 12, 1 + i % 28) for i in range(N)],
    "sex": ["f", "m", "m"] * (N // 3),
    "rooms": [float(i % 7) for i in range(N)],
    "income": [1_000.0 * i for i in range(N)],
    "grade": ["A", "B", "C"] * (N // 3),
    "member": [True, False] * (N // 2),
}
GRADE = {"grade": ["A", "B", "C"]}
ALL = ["income", "member", "born", "sex", "grade"]
ANYTHING = {
    "income": ["a lot"] * N,
    "member": TABLE["born"],
    "born": ["long ago"] * N,
    "sex": ["x"] * N,
    "grade": [3] * N,
}


@pytest.fixture
def of_all():
    return schema_of(TABLE, sensitive=ALL, kinds=GRADE)


def test_sensitive_features_come_first_among_codes_and_among_numbers(of_all):
    born = ("born.year", "born.month", "born.day_of_week", "born.days")
    numeric = ["income", *born, "grade", "age", "rooms"]
    assert [column.name for column in of_all.categorical] == ["member", "sex", "job"]
    assert [feature.name for feature in of_all.numeric] == numeric
    assert of_all.feature_names == ("member", "sex", "job", *numeric)
    assert of_all.sensitive_positions == (0, 1, 3, 4, 5, 6, 7, 8)
    assert of_all.sensitive_features == ("member", "sex", "income", *born, "grade")
    assert of_all.names == tuple(TABLE)  # the columns stay where they were
    assert schema_of(TABLE).sensitive_positions == schema_of(TABLE).sensitive_features == ()


@given(st.lists(st.sampled_from(list(TABLE)), unique=True))
def test_encoding_follows_the_order_of_the_features(sensitive):
    told = {**GRADE, "rooms": "numeric"}  # else categorical where it is sensitive
    schema = schema_of(TABLE, sensitive=sensitive, kinds=told)
    reference = schema_of(TABLE, kinds=told)
    assert sorted(schema.feature_names) == sorted(reference.feature_names)
    assert len(schema.sensitive_positions) == sum(len(schema[s].features) for s in sensitive)

    def by_feature(s):
        table = encoded(TABLE, s)
        return dict(zip(s.feature_names, [*table.codes.T, *table.numbers.T], strict=True))

    found = by_feature(schema)
    for name, values in by_feature(reference).items():
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize(
    "X",
    [
        pa.table(TABLE),
        pa.table(TABLE).drop_columns(ALL),
        pa.table(TABLE).drop_columns(["sex", "born"]),
        pa.table({**TABLE, **ANYTHING}),
        pd.DataFrame(TABLE).drop(columns=ALL),
    ],
    ids=["as trained", "absent", "some absent", "anything", "pandas"],
)
def test_unread_columns_make_no_difference(of_all, X):
    table, read = encoded(X, of_all, read_sensitive=False), encoded(TABLE, of_all)
    np.testing.assert_array_equal(table.codes[:, 2], read.codes[:, 2])
    np.testing.assert_array_equal(table.numbers[:, 6:], read.numbers[:, 6:])
    np.testing.assert_array_equal(table.codes[:, :2], [[0, 1]] * N)  # the most frequent
    np.testing.assert_array_equal(table.numbers[:, :6], 0)
    assert not of_all.diff(X, read_sensitive=False)


@pytest.mark.parametrize("values", [["f", 1, None], [object(), 1, "f"]], ids=["mixed", "objects"])
def test_what_no_table_can_hold_is_left_unread(values):
    schema = schema_of({"sex": ["f", "m", "f"], "age": [30, 40, 50]}, sensitive=["sex"])
    X = pd.DataFrame({"sex": pd.Series(values, dtype=object), "age": [30, 40, 50]})
    with pytest.raises(InvalidInputError, match="Column 'sex' must hold one kind of value"):
        schema.diff(X)
    assert not schema.diff(X, read_sensitive=False)
    table = read_table(X, unread=schema.sensitive)
    assert table.names == ("age",)
    np.testing.assert_array_equal(encode(table, schema, read_sensitive=False).codes, [[0]] * 3)


def test_unread_numbers_and_categories_are_not_missing():
    X = {"s": [1.0, None, 3.0], "t": [1.0, None, 3.0]}
    options = {"kinds": {"s": "numeric"}, "missing_numeric": "category"}
    schema = schema_of(X, sensitive=["s", "t"], **options)
    table = encoded({"s": ["old"], "t": ["young"]}, schema, read_sensitive=False)
    np.testing.assert_array_equal(table.numbers, [[0]])
    np.testing.assert_array_equal(table.codes, [[schema["t"].mode]])


def test_columns_without_names_are_taken_in_their_order():
    X = np.array([[0.0, 5.0, 1.0], [1.0, 6.0, 2.0], [1.0, 7.0, 3.0]])
    schema = schema_of(X, sensitive=[1])
    expected = encoded(X, schema, read_sensitive=False)
    assert_same(encoded(X[:, [0, 2]], schema, read_sensitive=False), expected)
    assert not schema.diff(X[:, [0, 2]], read_sensitive=False)
    for some, read_sensitive in ((X[:, [0, 2]], True), (X[:, [0]], False)):
        with pytest.raises(InvalidInputError, match="Column 'x2' is missing"):
            encoded(some, schema, read_sensitive=read_sensitive)
    named = schema_of({"a": [1.0, 2.0], "s": ["x", "y"]}, sensitive=["s"])
    np.testing.assert_array_equal(encoded([[1.0, "x"], [2.0, "y"]], named).codes[:, 0], [0, 1])
    numbers = encoded([[1.0], [2.0]], named, read_sensitive=False).numbers
    np.testing.assert_array_equal(numbers, [[-1], [1]])


# Memory


def test_a_million_rows_take_less_than_twice_the_table():
    X, _ = make_bank_fraud(1_000_000, random_state=0)
    X = X.to_pandas()
    assert X.shape == (1_000_000, 31)
    with pytest.warns(UserWarning, match=r"'device_fraud_count' \(always '0'\)"):
        schema = schema_of(X[:10_000], min_category_rows=1)
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)  # it counts from now on
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        table = encode(read_table(X), schema)
        _, numpy_peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)
    assert len(table) == 1_000_000
    assert numpy_peak + pool.max_memory() < 2 * X.memory_usage(deep=True).sum()


# Targets, weights and exposures


@pytest.mark.parametrize("raw", [[0, 1, 1], [0.5, 1.5, 2.5], ["a", "b", "a"], [True, False, True]])
@pytest.mark.parametrize(
    "make",
    [
        *(list, np.array, pd.Series, pl.Series, pa.array, lambda raw: pa.chunked_array([raw])),
        partial(pd.Series, dtype="category"),
        lambda raw: pa.array(raw).dictionary_encode(),
    ],
)
def test_targets_of_any_library(make, raw):
    values = read_target(make(raw), 3)
    assert isinstance(values, np.ndarray)
    assert values.tolist() == raw


def test_targets_of_categories_and_of_several_columns():
    assert read_target(pl.Series(["a", "b"], dtype=pl.Categorical), 2).tolist() == ["a", "b"]
    with pytest.warns(DataConversionWarning, match="column-vector"):
        assert read_target(pd.DataFrame({"y": [1, 2]}), 2).tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"1d array, got an array of shape \(3, 2\)"):
        read_target(np.ones((3, 2)), 3)


@pytest.mark.parametrize(
    "y",
    [
        [1.0, np.nan, np.nan],
        ["a", float("nan"), float("nan")],
        pd.Series([1, pd.NA, pd.NA], dtype="Int64"),
        pd.Series([True, pd.NA, pd.NA], dtype="boolean"),
        pd.Series(["a", None, None], dtype="category"),
        pl.Series([1, None, None]),
        pa.array([True, None, None]),
    ],
)
def test_missing_targets(y):
    message = "y must not hold missing values, got 2 NaN, the first in row 1. Drop these rows"
    with pytest.raises(InvalidInputError, match=message):
        read_target(y, 3)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y must be given: .* the target y is None"),
        ([1, 2], "same number of rows, got 3 and 2. Check that both come from the same filter"),
        ([1.0, np.inf, 2.0], r"y must be finite, got infinity \(inf\) in row 1. Correct or drop"),
        (np.array(["2020", "NaT", "2021"], dtype="datetime64[D]"), "numbers, text or booleans"),
        (pd.Series(pd.date_range("2020", periods=3)), "got datetime64.*days since a start"),
    ],
)
def test_targets_refused(y, message):
    with pytest.raises(InvalidInputError, match=message):
        read_target(y, 3)


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
        ([1, -1, 1], "finite and at least 0, got -1 in row 1. Correct it, or set it to 0"),
        ([1, np.nan, 1], "finite and at least 0, got nan in row 1"),
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
    for values in (pd.Series([1, 2], name="y"), pl.Series([1, 2]), np.array([1, 2])):
        assert read_outcomes(values, None, np.ones(2)).label == "y"
    assert read_outcomes(pd.Series([1, 2], name=3), None, np.ones(2)).label == "y ('3')"


@pytest.mark.parametrize("values", [[1, 2, 3], [0.5, 1.0, 1e-9], ["1", "2", "3"]])
def test_exposure(values):
    found = read_exposure(read_table(pa.table({"years": values})), "years")
    np.testing.assert_array_equal(found, np.array(values, dtype=float))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            [1.0, 0.0, -1.0],
            r"\(exposure\) must be positive in every row, got 0\.0 in row 1 and 1 m",
        ),
        ([1.0, -1.0, 2.0], r"got -1\.0 in row 1\. Correct these rows or leave them out: without"),
        ([1.0, 2.0, None], r"got nan in row 2\. Correct these rows"),
        ([1.0, np.inf, 2.0], r"must hold finite numbers .*got inf in row 1 .*Correct these rows"),
        (["1", "x", "2"], r"must hold numbers, got text: 'x' in row 1\. Correct these rows"),
    ],
)
def test_bad_exposure(values, message):
    with pytest.raises(ColumnError, match=f"Column 'years' .*{message}"):
        read_exposure(read_table(pa.table({"years": values})), "years")
