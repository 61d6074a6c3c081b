from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from fcorr._core import InvalidInputError
from fcorr.data import read_table


def values(table):
    return {name: column.to_pylist() for name, column in table.columns.items()}


COLUMNS = {
    "age": [31, 52, 47],
    "income": [1.5, None, 2.5],
    "job": ["clerk", None, "nurse"],
    "member": [True, False, True],
}


def test_frames_of_every_library_are_seen_alike(as_frame):
    table = read_table(as_frame(COLUMNS))
    assert table.names == ("age", "income", "job", "member")
    assert table.n_rows == 3
    assert table.named
    income = table.columns["income"].to_numpy()
    np.testing.assert_array_equal(income, [1.5, np.nan, 2.5])
    seen = values(table)
    assert {name: seen[name] for name in ("age", "job", "member")} == {
        name: COLUMNS[name] for name in ("age", "job", "member")
    }


def test_array():
    table = read_table(np.array([[1.0, 2.0], [3.0, np.nan]]))
    assert table.names == ("x0", "x1")
    assert not table.named
    assert values(table) == {"x0": [1.0, 3.0], "x1": [2.0, None]}


def test_array_of_objects_keeps_each_column_s_kind():
    table = read_table(np.array([[1, "a"], [None, "b"]], dtype=object))
    assert values(table) == {"x0": [1, None], "x1": ["a", "b"]}


def test_nested_list_keeps_each_column_s_kind():
    table = read_table([[1, "a", 0.5], [2, "b", float("nan")]])
    assert values(table) == {"x0": [1, 2], "x1": ["a", "b"], "x2": [0.5, None]}
    assert pa.types.is_integer(table.columns["x0"].type)


def test_nested_tuples_of_numbers():
    assert values(read_table(((1, 2), (3, 4)))) == {"x0": [1, 3], "x1": [2, 4]}


def test_pandas_labels_that_are_not_text():
    table = read_table(pd.DataFrame({0: [1, 2], ("a", 1): ["x", "y"], "z": [0.5, 1.5]}))
    assert table.names == ("0", "('a', 1)", "z")
    assert values(table)["('a', 1)"] == ["x", "y"]


def test_pandas_index_is_no_column():
    table = read_table(pd.DataFrame({"a": [1, 2]}, index=pd.Index([7, 7], name="key")))
    assert values(table) == {"a": [1, 2]}


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.array([1, pd.NA, 3], dtype="Int64"), [1, None, 3]),
        (pd.array([0.5, pd.NA, 3], dtype="Float64"), [0.5, None, 3.0]),
        (pd.array([True, pd.NA, False], dtype="boolean"), [True, None, False]),
        (pd.array(["a", pd.NA, "b"], dtype="string"), ["a", None, "b"]),
        (pd.Categorical(["a", None, "b"], categories=["b", "a", "c"]), ["a", None, "b"]),
        (pd.Series([Decimal("1.5"), None, Decimal("2.0")]), [Decimal("1.5"), None, Decimal("2.0")]),
        (pd.Series(["a", None, "b"], dtype=pd.ArrowDtype(pa.string())), ["a", None, "b"]),
        (pd.Series(["a", pd.NA, "b"], dtype=object), ["a", None, "b"]),
        (pd.Series([1, pd.NA, 2], dtype=object), [1, None, 2]),
    ],
    ids=[
        *("Int64", "Float64", "boolean", "string", "categorical", "decimal", "arrow"),
        *("object-text", "object-integers"),
    ],
)
def test_pandas_columns(column, expected):
    assert values(read_table(pd.DataFrame({"a": column}))) == {"a": expected}


@pytest.mark.parametrize(
    ("dtype", "raw"),
    [
        (pl.Enum(["a", "b"]), ["a", None, "b"]),
        (pl.Categorical, ["a", None, "b"]),
        (pl.Decimal(scale=1), [Decimal("1.5"), None, Decimal("2.0")]),
        (pl.Boolean, [True, None, False]),
        (pl.UInt8, [1, None, 255]),
    ],
)
def test_polars_columns(dtype, raw):
    assert values(read_table(pl.DataFrame({"a": pl.Series(raw, dtype=dtype)}))) == {"a": raw}


def test_arrow_table_of_several_chunks():
    table = pa.table({"a": pa.chunked_array([["x"], ["y", None]]).dictionary_encode()})
    assert values(read_table(table)) == {"a": ["x", "y", None]}


@pytest.mark.parametrize(
    ("X", "ordinal"),
    [
        (pd.DataFrame({"a": pd.Categorical(["x", "y"], ordered=True), "b": [1, 2]}), {"a"}),
        (pd.DataFrame({"a": pd.Categorical(["x", "y"])}), set()),
        (pl.DataFrame({"a": pl.Series(["x", "y"], dtype=pl.Enum(["y", "x"]))}), set()),
        (pl.DataFrame({"a": pl.Series(["x", "y"], dtype=pl.Categorical)}), set()),
        (pa.table({"a": pa.array(["x", "y"]).dictionary_encode()}), set()),
    ],
    ids=["ordered", "categorical", "enum", "polars-categorical", "arrow"],
)
def test_types_that_mean_their_order(X, ordinal):
    table = read_table(X)
    assert table.ordinal == ordinal
    assert read_table(X).renamed([f"{n}2" for n in table.names]).ordinal == {
        f"{n}2" for n in ordinal
    }


def test_arrow_columns_are_not_copied():
    X = pa.table({"a": pa.chunked_array([[1], [2]])})
    assert read_table(X).columns["a"].num_chunks == 2


def test_renamed():
    table = read_table(np.array([[1, 2]])).renamed(["a", "b"])
    assert values(table) == {"a": [1], "b": [2]}
    assert table.named


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.empty((0, 2)), r"at least one row.*got 0 sample\(s\) \(shape=\(0, 2\)\).*filter"),
        (np.empty((2, 0)), r"at least one row.*got 0 feature\(s\) \(shape=\(2, 0\)\)"),
        (pd.DataFrame({"a": []}), r"got 0 sample\(s\) \(shape=\(0, 1\)\)"),
        (pd.DataFrame(index=[0, 1]), r"got 0 feature\(s\) \(shape=\(2, 0\)\)"),
        (pl.DataFrame({"a": []}), r"got 0 sample\(s\)"),
        (np.zeros(3), r"Expected 2D array, got 1D.*reshape\(-1, 1\)"),
        (np.zeros((1, 2, 3)), "Expected 2D array, got 3D"),
        (pd.Series([1, 2]), "Expected 2D array, got 1D"),
        (None, "Expected 2D array, got 0D"),
        ([[1, 2], [3]], "rows of one length.*Pass a dataframe or a 2D array"),
        ("table.csv", "must be a table, got the text 'table.csv'. Read the file first"),
        (pl.LazyFrame({"a": [1]}), r"in memory, got a lazy frame. Call X.collect\(\)"),
        (np.ones((2, 1), dtype=complex), "Complex data not supported.*X.real"),
        (pd.DataFrame({"a": [1j, 2j]}), "Column 'a' must hold one kind of value.*Convert"),
        (pd.DataFrame({"a": [1, "b"]}), "Column 'a' must hold one kind of value.*astype"),
        ([[1, "a"], ["b", "c"]], "Column 'x0' must hold one kind of value"),
    ],
)
def test_what_is_no_table(X, message):
    with pytest.raises(InvalidInputError, match=message):
        read_table(X)


def test_sparse_matrix():
    with pytest.raises(TypeError, match=r"must be dense.*Call X.toarray\(\)"):
        read_table(sparse.eye_array(3).tocsr())


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]),
        pa.table([[1], [2], [3]], names=["a", "b", "a"]),
        pa.record_batch([[1], [2], [3]], names=["a", "b", "a"]),
    ],
)
def test_repeated_names(X):
    with pytest.raises(InvalidInputError, match=r"names must differ, got 'a' more than once. Ren"):
        read_table(X)


def test_labels_that_read_alike():
    with pytest.raises(InvalidInputError, match="names must differ, got '1' more than once"):
        read_table(pd.DataFrame([[1, 2]], columns=[1, "1"]))
