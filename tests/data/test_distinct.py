"""Columns taken apart into distinct values and positions, and put together again."""

import pickle
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcorr.data.tables import ColumnError, find_distinct

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
    values = [*distinct.values, None]
    return [values[p] for _, positions in distinct.positions() for p in positions]


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
    for position, n in enumerate(counts[:-1]):
        if n:
            assert distinct.first_row(position) == expected.index(distinct.values[position])


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([0.0, -0.0, 1.0, float("nan")]), [0.0, 0.0, 1.0, None]),
        (pa.array([float("nan"), -0.0]).dictionary_encode(), [None, 0.0]),
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
