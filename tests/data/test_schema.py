import datetime
import json

import pyarrow as pa
import pytest

from fcorr._core import InvalidInputError
from fcorr.data import Schema, infer_schema, read_table

DAYS = [datetime.datetime(2020, 1, day, 12) for day in (1, 2, 5)]

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


def schema_of(columns, **options):
    return infer_schema(read_table(pa.table(columns)), **options)


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


def test_plain_data_says_the_kinds():
    schema = schema_of(
        {"n": [1, 2, 4], "c": ["x", "y", "x"], "b": [True, False, True], "d": DAYS},
        kinds={"n": "ordinal"},
        target="y",
    )
    data = schema.to_dict()
    assert [column["kind"] for column in data["columns"]] == [
        *("ordinal", "categorical", "boolean", "datetime")
    ]
    assert data["target"] == "y"
    assert data["columns"][3]["first"] == "2020-01-01T12:00:00"


@pytest.mark.parametrize("text", ["", "[]", "{}", "1", '{"columns": 3}', "[" * 100_000])
def test_text_that_is_no_schema(text):
    with pytest.raises(InvalidInputError, match=r"A schema must be JSON.*with schema\.to_json"):
        Schema.from_json(text)


CATEGORICAL, NUMERIC, ORDINAL, DATES = range(4)


@pytest.mark.parametrize(
    "damage",
    [
        {"sensitive": ["a", "a"]},
        {"sensitive": ["nowhere"]},
        {"n_rows": -1},
        {"target": 3},
        {"exposure": 3},
        {"exposure": "b"},
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
    ],
)
def test_data_that_no_table_could_have_given(damage):
    columns = {"a": ["x", "y", "x"], "b": [1.0, 2.0, 3.0], "c": ["A", "B", "A"], "d": DAYS}
    schema = schema_of(columns, kinds={"c": ["A", "B"]})
    data = json.loads(json.dumps(schema.to_dict()))
    assert Schema.from_dict(data) == schema
    if isinstance(damage, dict):
        data |= damage
    else:
        data["columns"][damage[0]] |= damage[1]
    with pytest.raises(InvalidInputError, match="contradicts itself"):
        Schema.from_dict(data)


def test_roles_can_be_told_later():
    schema = schema_of({"a": [1, 2, 3]})
    assert (schema.target, schema.weight, schema.exposure) == (None, None, None)
    told = schema.with_roles(target="y", exposure="years")
    assert (told.target, told.weight, told.exposure) == ("y", None, "years")
    assert told.columns == schema.columns


def test_exposure_is_no_feature():
    schema = schema_of({"a": [1, 2, 3], "e": [1.0, 0.5, 1.0], "b": ["x", "y", "x"]}, exposure="e")
    assert schema.names == ("a", "b")
    assert schema.feature_names == ("b", "a")
    assert Schema.from_json(schema.to_json()).exposure == "e"
    # Nor need it vary, as a feature must.
    assert schema_of({"a": [1, 2, 3], "e": [1.0, 1.0, 1.0]}, exposure="e").names == ("a",)


def test_column_by_name():
    schema = schema_of({"a": [1, 2, 3], "b": ["x", "y", "x"]})
    assert schema["b"].categories == ("x", "y")
    assert schema.names == ("a", "b")


def test_labels():
    (column,) = schema_of({"a": ["other", "other", "y", "z", None]}, min_category_rows=2).columns
    assert column.labels == ("other", "missing", "other (2 rare)")
    assert column.pool == 2
    assert column.n_codes == 3
