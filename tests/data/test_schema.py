"""Schemas: to JSON and back, shown in a notebook, compared with tables in words that errors use."""

import datetime
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcorr._core import InvalidInputError
from fcorr.data import Schema, encode, infer_schema, read_table

DAYS = [datetime.datetime(2020, 1, day, 12) for day in (1, 2, 5)]


def schema_of(columns, **options):
    columns = pa.table(columns) if isinstance(columns, dict) else columns
    return infer_schema(read_table(columns), **options)


# Plain data

ROUND_TRIPS = {
    "text": ({"a": ["x", "é", None]}, {}),
    "booleans": ({"a": [True, False, None]}, {}),
    "integers": ({"a": [1, 2, 2**53]}, {"kinds": {"a": "categorical"}}),
    "numbers": ({"a": [0.1, 1 / 3, 1e300]}, {"kinds": {"a": "categorical"}}),
    "numeric": ({"a": [0.1, 1 / 3, None]}, {"missing_numeric": "category"}),
    "ordinal": ({"a": ["B", "A", None]}, {"kinds": {"a": ["C", "B", "A"]}}),
    "ordinal numbers": ({"a": [1.5, 2, 1.5]}, {"kinds": {"a": "ordinal"}}),
    "dates": ({"a": DAYS}, {}),
    "pool": ({"a": ["x", "x", "y"]}, {"min_category_rows": 2}),
    "roles": ({"a": [1, 2, 3]}, {"target": "y", "weight": "w", "exposure": "e"}),
    "sensitive": ({"a": [1, 2, 3], "b": ["x", "y", "x"]}, {"sensitive": ["b", "a"]}),
    "sensitive numbers": ({"a": [1, 2, 3]}, {"sensitive": ["a"], "kinds": {"a": "numeric"}}),
    "sensitive order": ({"a": [1, 2, 3]}, {"sensitive": ["a"], "kinds": {"a": [1, 2, 3]}}),
    "sensitive dates": ({"a": DAYS, "b": [1, 2, 3]}, {"sensitive": ["a"]}),
}


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_trip_through_json(name):
    columns, options = ROUND_TRIPS[name]
    schema = schema_of(columns, **options)
    again = Schema.from_json(schema.to_json())
    assert again == schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert again.feature_names == schema.feature_names
    assert again.sensitive_positions == schema.sensitive_positions
    kinds = [[type(value) for value in column.categories] for column in schema.categorical]
    assert [[type(v) for v in column.categories] for column in again.categorical] == kinds


MIXED = {
    "n": [1, 2, 4],
    "c": ["x", "y", "x"],
    "b": [True, False, True],
    "d": DAYS,
    "<i>": [20.5, None, 30.0],
    "s": [1.0, 2.0, 3.0],
}


@pytest.fixture
def mixed():
    options = {"kinds": {"n": "ordinal"}, "sensitive": ["s"], "bins": {"s": [2]}}
    return schema_of(MIXED, target="<b>y</b>", **options)


def test_a_notebook_shows_a_row_for_each_column_and_no_markup_of_its_own(mixed):
    shown = mixed._repr_html_()
    assert "<caption>Schema of a training table of 3 rows</caption>" in shown
    for cells in (
        ("n", "feature", "ordinal", "1 &lt; 2 &lt; 4"),
        ("c", "feature", "categorical", "x, y"),
        ("b", "feature", "boolean", "False, True"),
        ("d", "feature", "datetime", f"{DAYS[0].isoformat()} to {DAYS[2].isoformat()}, as"),
        ("&lt;i&gt;", "feature", "numeric", "20.5 to 30, mean 25.25; 1 missing"),
        ("s", "sensitive", "binned", "below 2, 2 and above"),
        ("&lt;b&gt;y&lt;/b&gt;", "target", "", ""),
    ):
        assert "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells)[: -len("</td>")] in shown
    assert shown.count("<tr>") == 8
    many = schema_of({"a": [str(i) for i in range(10)]})
    assert "<td>0, 1, 2, 3, 4, 5, 6, 7 and 2 more</td>" in many._repr_html_()


def test_labels():
    (column,) = schema_of({"a": ["other", "other", "y", "z", None]}, min_category_rows=2).columns
    assert column.labels == ("other", "missing", "other (2 rare)")
    assert (column.pool, column.n_codes) == (2, 3)


@pytest.mark.parametrize("text", ["", "[]", "{}", "1", '{"columns": 3}', "[" * 100_000])
def test_text_that_is_no_schema(text):
    with pytest.raises(InvalidInputError, match=r"A schema must be JSON.*with schema\.to_json"):
        Schema.from_json(text)


CATEGORICAL, NUMERIC, ORDINAL, DATES, BINNED = range(5)
DAMAGE = [
    (None, {"sensitive": ["a", "a"]}),
    (None, {"sensitive": ["nowhere"]}),
    (None, {"n_rows": -1}),
    (None, {"target": 3}),
    (None, {"exposure": 3}),
    (None, {"exposure": "b"}),
    (CATEGORICAL, {"mode": 2}),
    (CATEGORICAL, {"mode": -1}),
    (CATEGORICAL, {"counts": [1]}),
    (CATEGORICAL, {"counts": [1, -1]}),
    (CATEGORICAL, {"categories": [["x"], "y"]}),
    (CATEGORICAL, {"categories": ["x", 1]}),
    (CATEGORICAL, {"categories": ["x", "x"]}),
    (CATEGORICAL, {"name": "b"}),
    (CATEGORICAL, {"name": 1}),
    (CATEGORICAL, {"name": "d.days"}),
    (CATEGORICAL, {"n_pooled": 1}),
    (NUMERIC, {"scale": 0.0}),
    (NUMERIC, {"scale": float("nan")}),
    (NUMERIC, {"mean": float("inf")}),
    (NUMERIC, {"mean": -1.0}),
    (NUMERIC, {"n_missing": -1}),
    (ORDINAL, {"counts": [1, 2, 3]}),
    (ORDINAL, {"categories": ["A", "A"]}),
    (ORDINAL, {"categories": ["A", None]}),
    (ORDINAL, {"name": "o"}),
    (DATES, {"features": []}),
    (DATES, {"last": "2019-01-01"}),
    (DATES, {"name": "e"}),
    (BINNED, {"edges": []}),
    (BINNED, {"edges": [35.0, 25.0]}),
    (BINNED, {"edges": [25.0, 25.0]}),
    (BINNED, {"edges": [25.0, float("nan")]}),
    (BINNED, {"edges": [18.0, 25.0]}),
    (BINNED, {"edges": [25.0, 78.0]}),
    (BINNED, {"counts": [1, 2]}),
    (BINNED, {"counts": [1, 2, 3, 4, 5]}),
    (BINNED, {"counts": [1, 2, -3]}),
    (BINNED, {"mode": 3}),
    (BINNED, {"mode": -1}),
    (BINNED, {"n_missing": -1}),
    (BINNED, {"low": 90.0}),
]


@pytest.mark.parametrize(("position", "damage"), DAMAGE)
def test_data_that_no_table_could_have_given(position, damage):
    columns = {"a": ["x", "y", "x"], "b": [1.0, 2.0, 3.0], "c": ["A", "B", "A"], "d": DAYS}
    options = {"kinds": {"c": ["A", "B"]}, "sensitive": ["e"], "bins": {"e": [25, 35]}}
    schema = schema_of({**columns, "e": [18.0, 30.0, 77.0]}, **options)
    data = json.loads(json.dumps(schema.to_dict()))
    assert Schema.from_dict(data) == schema
    (data if position is None else data["columns"][position]).update(damage)
    with pytest.raises(InvalidInputError, match="contradicts itself"):
        Schema.from_dict(data)


# Differences

SINCE = [datetime.date(2020, 1, day) for day in (1, 2, 5, 9)]
TRAINING = {
    "sex": ["f", "m", "f", "f"],
    "job": ["clerk", "nurse", "nurse", None],
    "age": [30.0, 50.0, 40.0, 20.0],
    "zip": [10, 20, 10, 30],
    "grade": ["A", "B", "A", "B"],
    "member": [True, False, True, True],
    "since": SINCE,
    "cut": [18, 30, 77, 40],
}


def changed(**columns):
    """Return the training table with some columns changed, or left out where they are None."""
    return pa.table({k: v for k, v in {**TRAINING, **columns}.items() if v is not None})


@pytest.fixture
def schema():
    kinds = {"grade": ["A", "B", "C"], "zip": "categorical"}
    return schema_of(TRAINING, sensitive=["sex", "cut"], kinds=kinds, bins={"cut": [25, 35]})


def test_no_difference(schema):
    for frame in (pa.table(TRAINING), pl.DataFrame(TRAINING), pd.DataFrame(TRAINING)):
        assert not schema.diff(frame)
        assert str(schema.diff(frame)) == "No difference from the training table."
    assert not schema.diff(read_table(pa.table(TRAINING)))
    assert not schema.diff([list(row.values()) for row in pa.table(TRAINING).to_pylist()])


LATE = [datetime.datetime(2020, 1, 2)] * 3 + [datetime.datetime(2021, 1, 1, 5)]
INFINITE = "must hold finite numbers within ±3.4e+38, got"
FATAL = {  # column: values, and what is said of them
    "age missing": ({"age": None}, "Column 'age' is missing"),
    "sex missing": ({"sex": None}, "Column 'sex' (sensitive) is missing"),
    "job renamed": ({"job": None, "Job": [1] * 4}, "Column 'job' is missing (Did you mean 'Job'?)"),
    "age text": ({"age": ["30", "old", "40", "20"]}, "must hold numbers, got text: 'old' in row 1"),
    "age dates": ({"age": [None, *SINCE[1:]]}, "must hold numbers, got dates: 2020-01-02 in row 1"),
    "age -inf": (
        {"age": [1.0, 2.0, 3.0, -np.inf]},
        f"{INFINITE} -inf in row 3 (inf or too large for float32)",
    ),
    "age lists": ({"age": [[1]] * 4}, "must hold numbers, got list<item: int64>: [1] in row 0"),
    "cut text": ({"cut": ["18", "old", "1", "2"]}, "must hold numbers, got text: 'old' in row 1"),
    "cut inf": ({"cut": [18.0, np.inf, 1.0, 2.0]}, f"{INFINITE} inf in row 1"),
    "cut dates": ({"cut": SINCE}, "must hold numbers, got dates: 2020-01-01 in row 0"),
    "job numbers": ({"job": [1, 2, 3, 4]}, "must hold text, got numbers: 1 in row 0"),
    "job dates": ({"job": SINCE}, "must hold text, got dates: 2020-01-01 in row 0"),
    "zip text": ({"zip": ["10", "20", "10", "30"]}, "must hold numbers, got text: '10' in row 0"),
    "grade numbers": ({"grade": [None, 1, 2, 3]}, "must hold text, got numbers: 1 in row 1"),
    "member dates": ({"member": SINCE}, "must hold booleans, got dates: 2020-01-01 in row 0"),
    "since numbers": ({"since": [1, 2, 3, 4]}, "must hold dates, got numbers: 1 in row 0"),
    "since far": ({"since": pa.array([2**60] * 4, "timestamp[s]")}, "must hold dates of the years"),
}


@pytest.mark.parametrize("name", FATAL)
def test_what_does_not_fit_is_an_error_in_the_same_words(schema, name):
    columns, text = FATAL[name]
    text = text if text.startswith("Column") else f"Column {name.split()[0]!r} {text}"
    (difference,) = schema.diff(changed(**columns)).fatal
    assert difference.text.startswith(text)
    assert (difference.column, difference.n_rows) == (name.split()[0], 0)
    is_missing = "is missing" in text
    assert difference.problem == ("missing column" if is_missing else "other values")
    with pytest.raises(InvalidInputError) as caught:
        encode(read_table(changed(**columns)), schema)
    assert str(caught.value).startswith(f"X must fit the training table: {difference.text}. ")


UNSEEN = "row(s) of categories not seen in training:"
RANGE = "row(s) outside the training range,"
MISSING = "missing value(s); training had none"


@pytest.mark.parametrize(
    ("problem", "column", "values", "n_rows", "text"),
    [
        ("unseen categories", "job", [*"ppc", "clerk"], 3, f"{UNSEEN} 'p' (2), 'c' (1)"),
        ("unseen categories", "grade", ["A", "B", "C", "D"], 1, f"{UNSEEN} 'D' (1)"),  # its order
        ("out of range", "age", [3.5, 12, 40, 20], 2, f"{RANGE} 20 to 50: down to 3.5"),
        ("out of range", "age", [3.5, 99, None, 20], 2, f"{RANGE} 20 to 50: down to 3.5, up to 99"),
        ("out of range", "cut", [18, 30, 99, 40], 1, f"{RANGE} 18 to 77: up to 99"),
        (
            *("out of range", "since", LATE, 1),
            f"{RANGE} 2020-01-01 to 2020-01-09: up to 2021-01-01 05:00:00",
        ),
        ("missing values", "age", [30.0, np.nan, None, 20.0], 2, MISSING),
        ("missing values", "cut", [18, 30, None, 40], 1, MISSING),
        ("missing values", "sex", ["f", None, "m", "f"], 1, MISSING),
        ("missing values", "since", [None, *SINCE[1:]], 1, MISSING),
    ],
)
def test_what_the_model_can_do_with(schema, problem, column, values, n_rows, text):
    diff = schema.diff(changed(**{column: values}))
    text = f"Column {column!r} has {n_rows} {text}"
    found = [d for d in diff if d.problem == problem]
    assert [(d.text, d.n_rows, d.is_fatal) for d in found] == [(text, n_rows, False)]
    assert f"- {text}" in str(diff).splitlines()


def test_a_column_too_many_is_ignored(schema):
    (difference,) = schema.diff(changed(extra=[1, 2, 3, 4]))
    assert (difference.problem, difference.n_rows, difference.is_fatal) == (
        "extra column",
        0,
        False,
    )
    assert difference.text == "Column 'extra' is not in the training table: ignored"


def test_one_error_for_all_that_does_not_fit(schema):
    X = changed(sex=None, age=["old"] * 4, job=[1, 2, 3, 4], extra=SINCE)
    with pytest.raises(InvalidInputError) as caught:
        encode(read_table(X), schema)
    assert str(caught.value) == (
        "X must fit the training table: Column 'sex' (sensitive) is missing; "
        "Column 'job' must hold text, got numbers: 1 in row 0; "
        "Column 'age' must hold numbers, got text: 'old' in row 0. "
        "X has 'job', 'age', 'zip', 'grade', 'member' and 3 more. Add or rename the column."
    )


def test_whole_text(schema):
    X = changed(age=[3.0, 50.0, 40.0, 20.0], job=["pilot"] * 4, zip=None, ZIP=TRAINING["zip"])
    assert str(schema.diff(X)) == (
        "4 differences from the training table:\n"
        "- Column 'job' has 4 row(s) of categories not seen in training: 'pilot' (4)\n"
        "- Column 'age' has 1 row(s) outside the training range, 20 to 50: down to 3\n"
        "- Column 'zip' is missing\n"
        "- Column 'ZIP' is not in the training table: ignored"
    )


def test_many_unseen_categories_and_pooled_ones():
    schema = schema_of({"a": ["x", "y"]})
    (difference,) = schema.diff(pa.table({"a": list("gabcdefg")}))
    assert difference.text.endswith("'g' (2), 'a' (1), 'b' (1), 'c' (1), 'd' (1) and 2 more")
    X = pa.table({"a": ["x"] * 3 + ["y"]})
    (difference,) = schema_of(X, min_category_rows=2).diff(X)
    assert difference.text == (
        "Column 'a' has 1 row(s) of categories not seen in training, or pooled there: 'y' (1)"
    )


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
def test_any_table_fits_itself_whatever_library_and_blocks_it_comes_in(rows):
    arrow = pa.Table.from_pylist(rows, schema=TYPES)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Columns that take one value")
        schema = schema_of(arrow, kinds={"o": list("ABC")})
    assert not schema.diff(arrow)
    assert Schema.from_json(schema.to_json()) == schema
    reference = encode(read_table(arrow), schema)
    assert np.isfinite(reference.numbers).all()
    assert (reference.codes >= 0).all()
    assert (reference.codes < np.array(schema.cardinalities)).all()
    chunks = pa.Table.from_batches(arrow.to_batches(max_chunksize=3))
    with pytest.MonkeyPatch.context() as patch:
        for frame in (arrow.to_pandas(), pl.from_arrow(arrow), chunks, chunks):
            table = encode(read_table(frame), schema)
            np.testing.assert_array_equal(table.codes, reference.codes)
            np.testing.assert_array_equal(table.numbers, reference.numbers)
            if frame is chunks:
                patch.setattr("fcorr.data.tables.BLOCK", 4)  # for the second time
