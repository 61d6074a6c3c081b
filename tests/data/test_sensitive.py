"""Sensitive columns of every kind: what they are taken for, where they end up, and left unread."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcorr._core import InvalidInputError
from fcorr.data import Schema, encode, infer_schema, read_table
from fcorr.data.schema import MAX_SENSITIVE_CATEGORIES


def schema_of(X, **options):
    X = pa.table(X) if isinstance(X, dict) else X
    return infer_schema(read_table(X), **options)


def kind_of(values, **options):
    return schema_of({"s": values}, sensitive=["s"], **options)["s"].kind


# What they are taken for


FEW = [float(i % MAX_SENSITIVE_CATEGORIES) for i in range(60)]
MANY = [float(i % (MAX_SENSITIVE_CATEGORIES + 1)) for i in range(60)]
DAYS = [datetime.date(2020, 1 + i % 12, 1 + i % 28) for i in range(60)]
ORDER = ["low", "high"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["f", "m", None], "categorical"),
        ([True, False, None], "boolean"),
        (FEW, "categorical"),
        ([*FEW, None, float("nan")], "categorical"),  # missing values are no category too many
        ([*FEW, -0.0], "categorical"),  # nor is a second zero
        (pa.array(FEW, pa.int8()), "categorical"),
        (MANY, "numeric"),
        ([None, *MANY], "numeric"),
        (pa.array(MANY, pa.int32()), "numeric"),
        (pa.array(MANY).dictionary_encode(), "categorical"),
        (pa.array(MANY).cast(pa.string()), "categorical"),
        (DAYS, "datetime"),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1]), ORDER, ordered=True), "categorical"),
    ],
)
def test_kind_by_type(values, kind):
    assert kind_of(values) == kind


@pytest.mark.parametrize(
    ("values", "told", "kind"),
    [
        (FEW, "numeric", "numeric"),
        (MANY, "categorical", "categorical"),
        (list(range(1_000)), "categorical", "categorical"),
        (FEW, "ordinal", "ordinal"),
        ([0, 1, 1], "boolean", "boolean"),
        (["low", "high"], ["low", "middle", "high"], "ordinal"),
        (
            pa.DictionaryArray.from_arrays(pa.array([0, 1]), ORDER, ordered=True),
            "ordinal",
            "ordinal",
        ),
        (["2020-01-01", "2021-05-05"], "datetime", "datetime"),
        (["1.5", "2"], "numeric", "numeric"),
    ],
)
def test_kind_as_told(values, told, kind):
    assert kind_of(values, kinds={"s": told}) == kind


def test_all_categories_of_a_sensitive_column_are_kept():
    zips = [10_000 + i for i in range(1_000)] * 20
    schema = schema_of({"zip": zips}, sensitive=["zip"], kinds={"zip": "categorical"})
    assert schema.cardinalities == (1_000,)


def test_the_kind_of_other_columns_is_what_it_was():
    assert schema_of({"a": FEW, "s": FEW}, sensitive=["s"])["a"].kind == "numeric"


@given(st.lists(st.floats(-1e9, 1e9) | st.none() | st.just(float("nan")), min_size=1, max_size=90))
def test_few_values_are_categories(values):
    n_distinct = len({value for value in values if value is not None and value == value})
    if n_distinct < 2:
        with pytest.raises(InvalidInputError, match=r"at least (two categories|one value)"):
            # One category beside the missing ones would do.
            kind_of(values, missing_categorical="mode")
        return
    expected = "categorical" if n_distinct <= MAX_SENSITIVE_CATEGORIES else "numeric"
    assert kind_of(pa.array(values, pa.float64())) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fcorr.data.tables.BLOCK", 4)
        assert kind_of(pa.array(values, pa.float64())) == expected


# Missing and constant ones


def test_missing_values():
    columns = {"a": ["x", None, "y"], "b": [1.0, None, 3.0]}
    options = {"sensitive": ["a", "b"], "kinds": {"b": "numeric"}}
    schema = schema_of(columns, **options)
    assert schema["a"].categories == ("x", "y", None)
    assert not schema["b"].keep_missing
    assert schema_of(columns, missing_numeric="category", **options)["b"].keep_missing


@pytest.mark.parametrize("constant_columns", ["error", "keep"])
@pytest.mark.parametrize(
    ("values", "kinds", "message"),
    [
        (["x", "x"], {}, "must have at least two categories, got only 'x'"),
        ([7, 7], {}, "must have at least two categories, got only 7"),
        ([7, 7], {"s": "numeric"}, r"must take at least two values, got only 7\.0"),
        (["b", "b"], {"s": ["a", "b"]}, "must take at least two values, got only 'b'"),
        (DAYS[:1] * 2, {}, "must take at least two values, got only '2020-01-01T00:00:00'"),
    ],
)
def test_one_value_only(values, kinds, message, constant_columns):
    columns = {"s": values, "a": [1.0, 2.0]}
    with pytest.raises(InvalidInputError, match=f"Sensitive column 's' {message}. Leave it out"):
        schema_of(columns, sensitive=["s"], kinds=kinds, constant_columns=constant_columns)


def test_a_number_and_missing_are_two_values_if_missing_is_kept():
    options = {"sensitive": ["s"], "kinds": {"s": "numeric"}}
    assert schema_of({"s": [5, None, 5]}, missing_numeric="category", **options)["s"].keep_missing
    with pytest.raises(InvalidInputError, match=r"at least two values, got only 5\.0"):
        schema_of({"s": [5, None, 5]}, **options)


@pytest.mark.parametrize("X", [{"s": ["x", "y"]}, [["x"], ["y"]]])
def test_given_twice(X):
    twice = ["s", "s"] if isinstance(X, dict) else ["x0", 0]
    with pytest.raises(InvalidInputError, match="sensitive must name each column once, got '"):
        schema_of(X, sensitive=twice)


# Where they end up


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


def test_sensitive_features_come_first_among_codes_and_among_numbers():
    schema = schema_of(TABLE, sensitive=["income", "member", "born", "sex", "grade"], kinds=GRADE)
    born = ("born.year", "born.month", "born.day_of_week", "born.days")
    assert [column.name for column in schema.categorical] == ["member", "sex", "job"]
    numeric = ["income", *born, "grade", "age", "rooms"]
    assert [feature.name for feature in schema.numeric] == numeric
    assert schema.feature_names == ("member", "sex", "job", *numeric)
    assert schema.sensitive_positions == (0, 1, 3, 4, 5, 6, 7, 8)
    assert schema.sensitive_features == ("member", "sex", "income", *born, "grade")
    assert schema.names == tuple(TABLE)  # the columns stay where they were


def test_nothing_sensitive():
    schema = schema_of(TABLE)
    assert schema.sensitive_positions == schema.sensitive_features == ()


SENSITIVE = st.lists(st.sampled_from(list(TABLE)), unique=True)


@given(SENSITIVE)
def test_encoding_follows_the_order_of_the_features(sensitive):
    told = {**GRADE, "rooms": "numeric"}  # else categorical where it is sensitive
    schema = schema_of(TABLE, sensitive=sensitive, kinds=told)
    reference = schema_of(TABLE, kinds=told)
    assert sorted(schema.feature_names) == sorted(reference.feature_names)
    assert len(schema.sensitive_positions) == sum(len(schema[s].features) for s in sensitive)
    table = read_table(pa.table(TABLE))
    expected, found = (_by_feature(encode(table, s), s) for s in (reference, schema))
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
    again = Schema.from_json(schema.to_json())
    assert again.feature_names == schema.feature_names
    assert again.sensitive_positions == schema.sensitive_positions


def _by_feature(encoded, schema):
    columns = [*encoded.codes.T, *encoded.numbers.T]
    return dict(zip(schema.feature_names, columns, strict=True))


# Left unread


ALL = ["income", "member", "born", "sex", "grade"]
ANYTHING = {
    "income": ["a lot"] * N,
    "member": DAYS[:N],
    "born": ["long ago"] * N,
    "sex": ["x"] * N,
    "grade": [3] * N,
}


@pytest.fixture
def schema():
    return schema_of(TABLE, sensitive=ALL, kinds=GRADE)


def unread(X, schema):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return encode(read_table(X), schema, read_sensitive=False)


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
def test_unread_columns_make_no_difference(schema, X):
    table = unread(X, schema)
    read = encode(read_table(pa.table(TABLE)), schema)
    np.testing.assert_array_equal(table.codes[:, 2], read.codes[:, 2])
    np.testing.assert_array_equal(table.numbers[:, 6:], read.numbers[:, 6:])
    modes = [column.mode for column in schema.categorical[:2]]
    assert modes == [0, 1]
    np.testing.assert_array_equal(table.codes[:, :2], [modes] * N)
    np.testing.assert_array_equal(table.numbers[:, :6], 0)
    assert not schema.diff(X, read_sensitive=False)


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


def test_unread_numbers_are_not_missing():
    X = {"s": [1.0, None, 3.0], "a": [1.0, 2.0, 3.0]}
    options = {"kinds": {"s": "numeric"}, "missing_numeric": "category"}
    schema = schema_of(X, sensitive=["s"], **options)
    np.testing.assert_array_equal(unread(pa.table(X), schema).numbers[:, 0], 0)


def test_they_are_read_unless_told(schema):
    without = pa.table(TABLE).drop_columns("sex")
    with pytest.raises(InvalidInputError, match=r"Column 'sex' \(sensitive\) is missing"):
        encode(read_table(without), schema)
    assert [d.text for d in schema.diff(without)] == ["Column 'sex' (sensitive) is missing"]


def test_errors_about_other_columns_leave_the_unread_ones_out(schema):
    X = pa.table(TABLE).drop_columns([*ALL, "age"])
    with pytest.raises(InvalidInputError) as caught:
        unread(X, schema)
    assert str(caught.value).startswith(
        "X must fit the training table: Column 'age' is missing. X has 'job', 'rooms'."
    )
    X = pa.table({**TABLE, **ANYTHING, "age": ["old"] * N})
    with pytest.raises(InvalidInputError) as caught:
        unread(X, schema)
    assert str(caught.value).startswith(
        "X must fit the training table: Column 'age' must hold numbers, got text: 'old' in row 0. "
    )


def test_columns_without_names_are_taken_in_their_order():
    X = np.array([[0.0, 5.0, 1.0], [1.0, 6.0, 2.0], [1.0, 7.0, 3.0]])
    schema = schema_of(X, sensitive=[1])
    expected = encode(read_table(X), schema, read_sensitive=False)
    np.testing.assert_array_equal(unread(X[:, [0, 2]], schema).numbers, expected.numbers)
    assert not schema.diff(X[:, [0, 2]], read_sensitive=False)
    with pytest.raises(InvalidInputError, match="Column 'x2' is missing"):
        encode(read_table(X[:, [0, 2]]), schema)
    with pytest.raises(InvalidInputError, match="Column 'x2' is missing"):
        unread(X[:, [0]], schema)


def test_names_of_training_for_a_table_without():
    schema = schema_of({"a": [1.0, 2.0], "s": ["x", "y"]}, sensitive=["s"])
    rows = [[1.0, "x"], [2.0, "y"]]
    np.testing.assert_array_equal(encode(read_table(rows), schema).codes[:, 0], [0, 1])
    np.testing.assert_array_equal(unread([[1.0], [2.0]], schema).numbers[:, 0], [-1, 1])
