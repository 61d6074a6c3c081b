"""Tables from every library, and their columns taken apart into distinct values."""

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from fcorr._core import InvalidInputError
from fcorr.data import read_table
from fcorr.data.tables import ColumnError, find_distinct

COLUMNS = {
    "age": [31, 52, 47],
    "income": [1.5, None, 2.5],
    "job": ["clerk", None, "nurse"],
    "member": [True, False, True],
}
NAN = float("nan")


def values(table):
    return {name: column.to_pylist() for name, column in table.columns.items()}


def test_frames_of_every_library_are_seen_alike(as_frame):
    table = read_table(as_frame(COLUMNS))
    assert table.names == ("age", "income", "job", "member")
    assert table.n_rows == 3
    assert table.named
    np.testing.assert_array_equal(table.columns["income"].to_numpy(), [1.5, np.nan, 2.5])
    assert {**values(table), "income": COLUMNS["income"]} == COLUMNS


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (np.array([[1.0, 2.0], [3.0, np.nan]]), {"x0": [1.0, 3.0], "x1": [2.0, None]}),
        (np.array([[1, "a"], [None, "b"]], dtype=object), {"x0": [1, None], "x1": ["a", "b"]}),
        (
            [[1, "a", 0.5], [2, "b", NAN]],  # each column keeps its kind
            {"x0": [1, 2], "x1": ["a", "b"], "x2": [0.5, None]},
        ),
        (((1, 2), (3, 4)), {"x0": [1, 3], "x1": [2, 4]}),
        (np.array([[129_600], ["NaT"]], dtype="timedelta64[s]"), {"x0": [1.5, None]}),  # in days
    ],
    ids=["array", "objects", "mixed list", "tuples", "durations"],
)
def test_columns_without_names(X, expected):
    table = read_table(X)
    assert not table.named
    assert values(table) == expected
    assert pa.types.is_integer(table.columns["x0"].type) == isinstance(expected["x0"][0], int)
    renamed = table.renamed([f"{name} new" for name in table.names])
    assert values(renamed) == {f"{name} new": column for name, column in expected.items()}
    assert renamed.named


def test_labels_and_index_of_pandas():
    labelled = read_table(pd.DataFrame({0: [1, 2], ("a", 1): ["x", "y"], "z": [0.5, 1.5]}))
    assert values(labelled) == {"0": [1, 2], "('a', 1)": ["x", "y"], "z": [0.5, 1.5]}
    indexed = pd.DataFrame({"a": [1, 2]}, index=pd.Index([7, 7], name="key"))
    assert values(read_table(indexed)) == {"a": [1, 2]}


HALVES = [Decimal("1.5"), None, Decimal("2.0")]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.array([1, pd.NA, 3], dtype="Int64"), [1, None, 3]),
        (pd.array([True, pd.NA, False], dtype="boolean"), [True, None, False]),
        (pd.Series(HALVES), HALVES),
        (pd.Series(["a", None, "b"], dtype=pd.ArrowDtype(pa.string())), ["a", None, "b"]),
        (pd.Series([1, pd.NA, 2], dtype=object), [1, None, 2]),
        (pl.Series(HALVES, dtype=pl.Decimal(scale=1)), HALVES),
        (pl.Series([1, None, 255], dtype=pl.UInt8), [1, None, 255]),
        (pa.chunked_array([["x"], ["y", None]]).dictionary_encode(), ["x", "y", None]),
    ],
    ids=lambda value: "" if isinstance(value, list) else str(getattr(value, "dtype", "arrow")),
)
def test_columns_of_every_type(column, expected):
    library = type(column).__module__.split(".")[0]
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library]
    assert values(read_table(frame({"a": column}))) == {"a": expected}


TWICE = {"data": [[1], [2], [3]], "names": ["a", "b", "a"]}


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.empty((0, 2)), r"at least one row.*got 0 sample\(s\) \(shape=\(0, 2\)\).*filter"),
        (np.empty((2, 0)), r"at least one row.*got 0 feature\(s\) \(shape=\(2, 0\)\)"),
        (pd.DataFrame({"a": []}), r"got 0 sample\(s\) \(shape=\(0, 1\)\)"),
        (pd.DataFrame(index=[0, 1]), r"got 0 feature\(s\) \(shape=\(2, 0\)\)"),
        (np.zeros(3), r"Expected 2D array, got 1D.*reshape\(-1, 1\)"),
        (np.zeros((1, 2, 3)), "Expected 2D array, got 3D"),
        (None, "Expected 2D array, got 0D"),
        ([[1, 2], [3]], "rows of one length.*Pass a dataframe or a 2D array"),
        ("table.csv", "must be a table, got the text 'table.csv'. Read the file first"),
        (pl.LazyFrame({"a": [1]}), r"in memory, got a lazy frame. Call X.collect\(\)"),
        (np.ones((2, 1), dtype=complex), "Complex data not supported.*X.real"),
        (pd.DataFrame({"a": [1j, 2j]}), "Column 'a' must hold one kind of value.*Convert"),
        (pd.DataFrame({"a": [1, "b"]}), "Column 'a' must hold one kind of value.*astype"),
        ([[1, "a"], ["b", "c"]], "Column 'x0' must hold one kind of value"),
        (
            pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]),
            "must differ, got 'a' more than once. Ren",
        ),
        (pa.table(**TWICE), "names must differ, got 'a' more than once"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "names must differ, got '1' more than once"),
    ],
)
def test_what_is_no_table(X, message):
    with pytest.raises(InvalidInputError, match=message):
        read_table(X)


def test_sparse_matrix():
    with pytest.raises(TypeError, match=r"must be dense.*Call X.toarray\(\)"):
        read_table(sparse.eye_array(3).tocsr())


# Distinct values and positions, put together again

VALUES = {
    pa.string(): st.text(max_size=2),
    pa.large_string(): st.text(max_size=2),
    pa.string_view(): st.text(max_size=2),
    pa.int8(): st.integers(-3, 3),
    pa.uint64(): st.integers(2**64 - 3, 2**64 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.decimal128(5, 1): st.sampled_from([Decimal("1.5"), Decimal("2.0")]),
}


def put_together(distinct):
    found = [*distinct.values, None]
    return [found[p] for p in distinct.positions()]


@given(st.data())
def test_there_and_back(data):
    dtype = data.draw(st.sampled_from(list(VALUES)))
    rows = st.lists(VALUES[dtype] | st.none(), max_size=8)
    chunks = [pa.array(data.draw(rows), dtype) for _ in range(2)]
    if data.draw(st.booleans()):
        chunks = [chunk.dictionary_encode() for chunk in chunks]
    column = pa.chunked_array(chunks)
    distinct = find_distinct("a", column)
    expected = column.to_pylist()
    assert put_together(distinct) == expected
    assert len(set(distinct.values)) == len(distinct.values)
    counts = distinct.count().tolist()
    assert counts == [expected.count(value) for value in [*distinct.values, None]]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([0.0, -0.0, 1.0, NAN]), [0.0, 0.0, 1.0, None]),
        (pa.array([NAN, -0.0]).dictionary_encode(), [None, 0.0]),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), ["x", "x", "y"]), ["x", "x", "y"]),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([None, "y"])), [None, "y"]),
        (pa.nulls(2), [None, None]),
    ],
    ids=["zeros", "nan", "repeated", "missing", "nulls"],
)
def test_values_that_are_one(column, expected):
    distinct = find_distinct("a", pa.chunked_array([column]))
    assert put_together(distinct) == expected
    assert len(set(distinct.values)) == len(distinct.values)
    assert None not in distinct.values


def test_error_survives_another_process():
    error = ColumnError("Column 'a' is wrong", "Mend it.")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "Column 'a' is wrong. Mend it."
    assert (again.problem, again.remedy) == (error.problem, error.remedy)
