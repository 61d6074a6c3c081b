"""Schemas: to JSON and back, shown in a notebook, compared with tables in words that errors use."""

import datetime
import json

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcorr._core import InvalidInputError
from fcorr.data import Schema, encode, read_table
from tests.tables import schema_of

DAYS = [datetime.datetime(2020, 1, day, 12) for day in (1, 2, 5)]


# Plain data

TRIP = {  # values, twice each, and what they are said to be
    "text": (["x", "é", None], "categorical"),
    "booleans": ([True, False, None], "boolean"),
    "integers": ([1, 2, 2**53], "categorical"),
    "numbers": ([0.1, 1 / 3, 1e300], "categorical"),
    "numeric": ([0.1, 1 / 3, None], "numeric"),
    "order": (["B", "A", None], ["C", "B", "A"]),
    "ordinal": ([1.5, 2, 1.5], "ordinal"),
    "dates": (DAYS, "datetime"),
}


@pytest.mark.parametrize("sensitive", [[], ["text", "numeric"], ["dates"], ["order", "integers"]])
def test_trip_through_json(sensitive):
    X = {name: values * 2 for name, (values, _) in TRIP.items()} | {"pool": [*"xxxxxy"]}
    options = {"min_category_rows": 2, "target": "y", "weight": "w", "exposure": "e"}
    kinds = {name: kind for name, (_, kind) in TRIP.items()}
    schema = schema_of(X, kinds=kinds, sensitive=sensitive, missing_numeric="category", **options)
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    assert again.feature_names == schema.feature_names
    assert again.sensitive_positions == schema.sensitive_positions
    assert repr(again) == repr(schema)  # 1 and 1.0 are equal, but not the same


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
    options = {"kinds": {"n": "ordinal"}, "sensitive": ["s"]}
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
        ("s", "sensitive", "categorical", "1.0, 2.0, 3.0"),
        ("&lt;b&gt;y&lt;/b&gt;", "target", "", ""),
    ):
        assert "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells)[: -len("</td>")] in shown
    assert shown.count("<tr>") == 8
    many = schema_of({"a": [str(i) for i in range(10)]})
    assert "<td>0, 1, 2, 3, 4, 5, 6, 7 and 2 more</td>" in many._repr_html_()


@pytest.mark.parametrize(
    "data", [None, [], {}, {"columns": 3}, {"columns": [{"kind": "other"}]}, "4", 10**400]
)
def test_data_that_is_no_schema(data):
    if isinstance(data, str | int):  # in the place of a number
        high, data = data, schema_of({"a": [1.0, 2.0, 3.0]}).to_dict()
        data["columns"][0]["high"] = high
    with pytest.raises(InvalidInputError, match=r"must be data.*with schema\.to_dict"):
        Schema.from_dict(data)


NAN, INF = float("nan"), float("inf")
DAMAGE = {  # by column, if it is one, and field
    (None, "sensitive"): [["a", "a"], ["nowhere"]],
    (None, "n_rows"): [-1, 0],
    (None, "target"): [3],
    (None, "exposure"): [3, "b"],
    ("a", "mode"): [2, -1],
    ("a", "counts"): [[1], [1, -1]],
    ("a", "categories"): [[["x"], "y"], ["x", 1], ["x", "x"]],
    ("a", "name"): ["b", 1, "d.days"],
    ("a", "n_pooled"): [1],
    ("b", "scale"): [0.0, NAN],
    ("b", "mean"): [INF, -1.0],
    ("b", "n_missing"): [-1, 4],
    ("c", "counts"): [[1, 2, 3]],
    ("c", "categories"): [["A", "A"], ["A", None]],
    ("c", "name"): ["o"],
    ("d", "features"): [[]],
    ("d", "last"): ["2019-01-01"],
    ("d", "name"): ["e"],
}


@pytest.mark.parametrize(("column", "field"), DAMAGE)
def test_data_that_no_table_could_have_given(column, field):
    columns = {"a": ["x", "y", "x"], "b": [1.0, 2.0, 3.0], "c": ["A", "B", "A"], "d": DAYS}
    schema = schema_of(columns, kinds={"c": ["A", "B"]})
    for value in DAMAGE[column, field]:
        data = json.loads(json.dumps(schema.to_dict()))
        (data if column is None else data["columns"]["abcd".index(column)])[field] = value
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
}


def changed(**columns):
    """Return the training table with some columns changed, or left out where they are None."""
    return pa.table({k: v for k, v in {**TRAINING, **columns}.items() if v is not None})


@pytest.fixture
def schema():
    kinds = {"grade": ["A", "B", "C"], "zip": "categorical"}
    return schema_of(TRAINING, sensitive=["sex"], kinds=kinds)


def test_no_difference(schema):
    rows = [list(row.values()) for row in pa.table(TRAINING).to_pylist()]
    for frame in (pa.table(TRAINING), pl.DataFrame(TRAINING), rows):
        assert str(schema.diff(frame)) == "No difference from the training table."


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
    "job numbers": ({"job": [1, 2, 3, 4]}, "must hold text, got numbers: 1 in row 0"),
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
        (
            *("out of range", "since", LATE, 1),
            f"{RANGE} 2020-01-01 to 2020-01-09: up to 2021-01-01 05:00:00",
        ),
        ("missing values", "age", [30.0, np.nan, None, 20.0], 2, MISSING),
        ("missing values", "sex", ["f", None, "m", "f"], 1, MISSING),
    ],
)
def test_what_the_model_can_do_with(schema, problem, column, values, n_rows, text):
    diff = schema.diff(changed(**{column: values}))
    text = f"Column {column!r} has {n_rows} {text}"
    found = [d for d in diff if d.problem == problem]
    assert [(d.text, d.n_rows, d.is_fatal) for d in found] == [(text, n_rows, False)]
    first, *texts = str(diff).splitlines()
    assert first == f"{len(diff)} difference{['s', ''][len(diff) == 1]} from the training table:"
    assert f"- {text}" in texts


def test_one_error_for_all_that_does_not_fit(schema):
    X = changed(sex=None, age=["old"] * 4, job=[1, 2, 3, 4], extra=SINCE)
    with pytest.raises(InvalidInputError) as caught:
        encode(read_table(X), schema)
    assert str(caught.value) == (
        "X must fit the training table: Column 'sex' (sensitive) is missing; "
        "Column 'job' must hold text, got numbers: 1 in row 0; "
        "Column 'age' must hold numbers, got text: 'old' in row 0. "
        "X has 'job', 'age', 'zip', 'grade', 'member' and 2 more. Add or rename the column."
    )


def test_whole_text(schema):
    X = changed(age=[3.0, 50.0, 40.0, 20.0], job=["pilot"] * 4, zip=None, ZIP=TRAINING["zip"])
    diff = schema.diff(X)
    problems = ["unseen categories", "out of range", "missing column", "extra column"]
    assert [d.problem for d in diff] == problems
    assert [d.is_fatal for d in diff] == [False, False, True, False]
    assert str(diff) == (
        "4 differences from the training table:\n"
        "- Column 'job' has 4 row(s) of categories not seen in training: 'pilot' (4)\n"
        "- Column 'age' has 1 row(s) outside the training range, 20 to 50: down to 3\n"
        "- Column 'zip' is missing (Did you mean 'ZIP'?)\n"
        "- Column 'ZIP' is not in the training table: ignored"
    )


def test_many_unseen_categories_and_pooled_ones():
    schema = schema_of({"a": ["x", "y"]})
    shown = "'g' (2), 'a' (1), 'b' (1), 'c' (1), 'd' (1)"
    for values, more in (("gabcdg", ""), ("gabcdeg", " and 1 more"), ("gabcdefg", " and 2 more")):
        (difference,) = schema.diff(pa.table({"a": list(values)}))
        assert difference.text.endswith(f"not seen in training: {shown}{more}")
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
    "s": st.floats(-50, 50) | st.none(),
}
TYPES = zip(COLUMNS, ["f8", "str", "bool", "date32", "str", "f8"], strict=True)
TYPES = pa.schema([(name, pa.type_for_alias(alias)) for name, alias in TYPES])
ENDS = [  # so that no column is constant
    {"n": 0.0, "c": "x", "b": True, "d": datetime.date(2020, 1, 1), "o": "A", "s": -20.0},
    {"n": 1.0, "c": "y", "b": False, "d": datetime.date(2021, 5, 5), "o": "B", "s": 20.0},
]


@given(st.lists(st.fixed_dictionaries(COLUMNS), max_size=20))
def test_any_table_fits_itself_whatever_library_and_chunks_it_comes_in(rows):
    arrow = pa.Table.from_pylist(rows + ENDS, schema=TYPES)
    schema = schema_of(arrow, kinds={"o": list("ABC")}, sensitive=["s"])
    assert not schema.diff(arrow)
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    reference = encode(read_table(arrow), schema)
    assert np.isfinite(reference.numbers).all()
    assert (reference.codes >= 0).all()
    assert (reference.codes < np.array(schema.cardinalities)).all()
    chunks = pa.Table.from_batches(arrow.to_batches(max_chunksize=3))
    for frame in (arrow.to_pandas(), pl.from_arrow(arrow), chunks):
        table = encode(read_table(frame), schema)
        np.testing.assert_array_equal(table.codes, reference.codes)
        np.testing.assert_array_equal(table.numbers, reference.numbers)
