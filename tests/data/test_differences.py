"""A readable list of what differs, and errors in the same words."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcorr._core import InvalidInputError
from fcorr.data import encode, infer_schema, read_table

DAYS = [datetime.date(2020, 1, day) for day in (1, 2, 5, 9)]
TRAINING = {
    "sex": ["f", "m", "f", "f"],
    "job": ["clerk", "nurse", "nurse", None],
    "age": [30.0, 50.0, 40.0, 20.0],
    "zip": [10, 20, 10, 30],
    "grade": ["A", "B", "A", "B"],
    "member": [True, False, True, True],
    "since": DAYS,
}


@pytest.fixture
def schema():
    return infer_schema(
        read_table(pa.table(TRAINING)),
        sensitive=["sex"],
        kinds={"grade": ["A", "B", "C"], "zip": "categorical"},
    )


def changed(**columns):
    return pa.table({**TRAINING, **columns})


def test_no_difference(schema):
    for frame in (pa.table(TRAINING), pl.DataFrame(TRAINING), pd.DataFrame(TRAINING)):
        diff = schema.diff(frame)
        assert not diff
        assert str(diff) == "No difference from the training table."
    assert not schema.diff(read_table(pa.table(TRAINING)))


DIFFERENCES = {
    "missing column": (
        lambda: pa.table(TRAINING).drop_columns("age"),
        "missing column",
        0,
        "Column 'age' is missing",
    ),
    "missing sensitive column": (
        lambda: pa.table(TRAINING).drop_columns("sex"),
        "missing column",
        0,
        "Column 'sex' (sensitive) is missing",
    ),
    "extra column": (
        lambda: changed(extra=[1, 2, 3, 4]),
        "extra column",
        0,
        "Column 'extra' is not in the training table: ignored",
    ),
    "text for numbers": (
        lambda: changed(age=["30", "old", "40", "20"]),
        "other values",
        0,
        "Column 'age' must hold numbers, got text: 'old' in row 1",
    ),
    "dates for numbers": (
        lambda: changed(age=[None, *DAYS[1:]]),
        "other values",
        0,
        "Column 'age' must hold numbers, got dates: 2020-01-02 in row 1",
    ),
    "infinity": (
        lambda: changed(age=[1.0, 2.0, 3.0, -np.inf]),
        "other values",
        0,
        "Column 'age' must hold finite numbers within ±3.4e+38, got -inf in row 3 "
        "(inf or too large for float32)",
    ),
    "numbers for text": (
        lambda: changed(job=[1, 2, 3, 4]),
        "other values",
        0,
        "Column 'job' must hold text, got numbers: 1 in row 0",
    ),
    "dates for text": (
        lambda: changed(job=DAYS),
        "other values",
        0,
        "Column 'job' must hold text, got dates: 2020-01-01 in row 0",
    ),
    "text for numbers as categories": (
        lambda: changed(zip=["10", "20", "10", "30"]),
        "other values",
        0,
        "Column 'zip' must hold numbers, got text: '10' in row 0",
    ),
    "numbers for ordered text": (
        lambda: changed(grade=[None, 1, 2, 3]),
        "other values",
        0,
        "Column 'grade' must hold text, got numbers: 1 in row 1",
    ),
    "dates for booleans": (
        lambda: changed(member=DAYS),
        "other values",
        0,
        "Column 'member' must hold booleans, got dates: 2020-01-01 in row 0",
    ),
    "numbers for dates": (
        lambda: changed(since=[1, 2, 3, 4]),
        "other values",
        0,
        "Column 'since' must hold dates, got numbers: 1 in row 0",
    ),
    "lists": (
        lambda: changed(age=[[1], [2], [3], [4]]),
        "other values",
        0,
        "Column 'age' must hold numbers, got list<item: int64>: [1] in row 0",
    ),
    "unseen categories": (
        lambda: changed(job=["pilot", "chef", "pilot", "clerk"]),
        "unseen categories",
        3,
        "Column 'job' has 3 row(s) of categories not seen in training: 'pilot' (2), 'chef' (1)",
    ),
    "outside the order": (
        lambda: changed(grade=["A", "B", "C", "D"]),
        "unseen categories",
        1,
        "Column 'grade' has 1 row(s) of categories not seen in training: 'D' (1)",
    ),
    "below the range": (
        lambda: changed(age=[3.5, 12.0, 40.0, 20.0]),
        "out of range",
        2,
        "Column 'age' has 2 row(s) outside the training range, 20 to 50: down to 3.5",
    ),
    "beyond the range": (
        lambda: changed(age=[3.5, 99.0, None, 20.0]).drop_columns("since"),
        "out of range",
        2,
        "Column 'age' has 2 row(s) outside the training range, 20 to 50: down to 3.5, up to 99",
    ),
    "dates out of range": (
        lambda: changed(
            since=[datetime.datetime(2020, 1, 2)] * 3 + [datetime.datetime(2021, 1, 1, 5)]
        ),
        "out of range",
        1,
        "Column 'since' has 1 row(s) outside the training range, 2020-01-01 to 2020-01-09: "
        "up to 2021-01-01 05:00:00",
    ),
    "missing numbers": (
        lambda: changed(age=[30.0, np.nan, None, 20.0]),
        "missing values",
        2,
        "Column 'age' has 2 missing value(s); training had none",
    ),
    "missing categories": (
        lambda: changed(sex=["f", None, "m", "f"]),
        "missing values",
        1,
        "Column 'sex' has 1 missing value(s); training had none",
    ),
    "missing dates": (
        lambda: changed(since=[None, *DAYS[1:]]),
        "missing values",
        1,
        "Column 'since' has 1 missing value(s); training had none",
    ),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_differences(schema, name):
    make, problem, n_rows, text = DIFFERENCES[name]
    found = [d for d in schema.diff(make()) if d.problem == problem]
    assert [(d.text, d.n_rows) for d in found] == [(text, n_rows)]
    assert f"- {text}" in str(schema.diff(make())).splitlines()


@pytest.mark.parametrize(
    "name", [n for n, d in DIFFERENCES.items() if d[1] in ("missing column", "other values")]
)
def test_errors_use_the_same_words(schema, name):
    make, *_, text = DIFFERENCES[name]
    with pytest.raises(InvalidInputError) as caught:
        encode(read_table(make()), schema)
    assert str(caught.value).startswith(f"X must fit the training table: {text}. ")


def test_one_error_for_all_that_does_not_fit(schema):
    X = changed(age=["old"] * 4, job=[1, 2, 3, 4], extra=DAYS).drop_columns("sex")
    with pytest.raises(InvalidInputError) as caught:
        encode(read_table(X), schema)
    assert str(caught.value) == (
        "X must fit the training table: Column 'sex' (sensitive) is missing; "
        "Column 'job' must hold text, got numbers: 1 in row 0; "
        "Column 'age' must hold numbers, got text: 'old' in row 0. "
        "X has 'job', 'age', 'zip', 'grade', 'member' and 2 more. Add or rename the column."
    )


def test_whole_text(schema):
    X = changed(age=[3.0, 50.0, 40.0, 20.0], job=["pilot"] * 4).drop_columns("zip")
    assert str(schema.diff(X.append_column("ZIP", [TRAINING["zip"]]))) == (
        "4 differences from the training table:\n"
        "- Column 'job' has 4 row(s) of categories not seen in training: 'pilot' (4)\n"
        "- Column 'age' has 1 row(s) outside the training range, 20 to 50: down to 3\n"
        "- Column 'zip' is missing\n"
        "- Column 'ZIP' is not in the training table: ignored"
    )


def test_many_unseen_categories(schema):
    X = pa.Table.from_batches([pa.table(TRAINING).to_batches()[0]] * 2)
    X = X.set_column(1, "job", pa.array(list("gabcdefg")))
    (difference,) = schema.diff(X)
    assert difference.text.endswith("'g' (2), 'a' (1), 'b' (1), 'c' (1), 'd' (1) and 2 more")


def test_what_training_pooled_is_not_called_new():
    table = read_table(pa.table({"a": ["x"] * 3 + ["y"]}))
    schema = infer_schema(table, min_category_rows=2)
    (difference,) = schema.diff(table)
    assert difference.text == (
        "Column 'a' has 1 row(s) of categories not seen in training, or pooled there: 'y' (1)"
    )


def test_columns_without_names_are_taken_in_their_order(schema):
    rows = [list(row.values()) for row in pa.table(TRAINING).to_pylist()]
    assert not schema.diff(rows)


COLUMNS = {
    "n": st.floats(-1e6, 1e6) | st.none(),
    "c": st.sampled_from(["x", "y", ""]) | st.none(),
    "b": st.booleans() | st.none(),
    "d": st.dates() | st.none(),
    "o": st.sampled_from("ABC") | st.none(),
}
ROWS = st.lists(st.fixed_dictionaries(COLUMNS), min_size=1, max_size=20).filter(
    lambda rows: all(any(row[name] is not None for row in rows) for name in COLUMNS)
)
TYPES = pa.schema(
    {"n": pa.float64(), "c": pa.string(), "b": pa.bool_(), "d": pa.date32(), "o": pa.string()}
)


@given(ROWS)
def test_training_table_never_differs_from_itself(rows):
    table = read_table(pa.Table.from_pylist(rows, schema=TYPES))
    schema = infer_schema(table, kinds={"o": list("ABC")})
    assert not schema.diff(table)
    assert type(schema).from_json(schema.to_json()) == schema
    encoded = encode(table, schema)
    assert np.isfinite(encoded.numbers).all()
    assert (encoded.codes >= 0).all()
    assert (encoded.codes < np.array(schema.cardinalities)).all()


@given(ROWS)
def test_encoding_does_not_depend_on_the_library_or_on_blocks(rows):
    arrow = pa.Table.from_pylist(rows, schema=TYPES)
    schema = infer_schema(read_table(arrow), kinds={"o": list("ABC")})
    reference = encode(read_table(arrow), schema)
    chunks = pa.Table.from_batches(arrow.to_batches(max_chunksize=3))
    for frame in (arrow.to_pandas(), pl.from_arrow(arrow), chunks):
        table = encode(read_table(frame), schema)
        np.testing.assert_array_equal(table.codes, reference.codes)
        np.testing.assert_array_equal(table.numbers, reference.numbers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fcorr.data.tables.BLOCK", 4)
        patch.setattr("fcorr.data.tables.BLOCK", 4)
        table = encode(read_table(chunks), schema)
    np.testing.assert_array_equal(table.codes, reference.codes)
    np.testing.assert_array_equal(table.numbers, reference.numbers)
