import datetime
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fcorr._core import InvalidInputError
from fcorr.data import infer_schema, read_table


def schema_of(X, **options):
    return infer_schema(read_table(X), **options)


def table(**columns):
    return pa.table(columns)


MIXED = {
    "age": [31.0, 52.0, 47.0, 31.0],
    "job": ["clerk", "nurse", "clerk", None],
    "zip": [20, 10, 10, 30],
    "sex": ["f", "m", "f", "f"],
    "member": [True, False, True, True],
}


def test_kinds_and_order(as_frame):
    schema = schema_of(as_frame(MIXED), sensitive=["sex"], kinds={"zip": "categorical"})
    assert [column.kind for column in schema.columns] == [
        *("numeric", "categorical", "categorical", "categorical", "boolean")
    ]
    assert schema.feature_names == ("sex", "job", "zip", "member", "age")
    assert schema.names == ("age", "job", "zip", "sex", "member")
    assert schema.sensitive == ("sex",)
    assert schema.n_rows == 4
    assert schema.cardinalities == (2, 3, 3, 2)
    assert schema.text == ("job", "sex")
    assert {c.name: c.categories for c in schema.categorical} == {
        "sex": ("f", "m"),
        "job": ("clerk", "nurse", None),
        "zip": (10, 20, 30),
        "member": (False, True),
    }


def test_positions_serve_where_there_are_no_names():
    X = np.array([[0, 1.5], [1, 2.5]])
    assert schema_of(X, sensitive=[0]).sensitive == ("x0",)
    assert schema_of(X, sensitive=["x0"]) == schema_of(X, sensitive=[np.int64(0)])


def test_schema_does_not_depend_on_row_order():
    frame = pd.DataFrame(MIXED)
    schemas = [
        schema_of(frame.iloc[order], sensitive=["sex"], kinds={"zip": "categorical"})
        for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1])
    ]
    assert schemas[0] == schemas[1] == schemas[2]


def test_order_of_categories():
    assert categories([10, 9, -1]) == (-1, 9, 10)
    assert categories([0.5, -1.5, 10.0]) == (-1.5, 0.5, 10.0)
    assert categories(["b", "a", "B"]) == ("B", "a", "b")
    assert categories([True, False, True]) == (False, True)


def categories(values):
    return schema_of(table(a=values), kinds={"a": "categorical"}).categorical[0].categories


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.Categorical(["x", "y", "x"], categories=["z", "y", "x"])),
        pl.Series(["x", "y", "x"], dtype=pl.Categorical),
        pl.Series(["x", "y", "x"], dtype=pl.Enum(["z", "y", "x"])),
        pa.array(["x", "y", "x"]).dictionary_encode(),
        pa.array(["x", "y", "x"], pa.string_view()),
        pa.array(["x", "y", "x"], pa.large_string()),
    ],
    ids=["pandas", "polars", "polars-enum", "arrow", "string-view", "large-string"],
)
def test_categories_that_occur_and_no_others(column):
    library = type(column).__module__.split(".")[0]
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library]
    (described,) = schema_of(frame({"a": column})).categorical
    assert described.categories == ("x", "y")
    assert described.counts == (2, 1)
    assert described.mode == 0
    assert described.n_missing == 0


def test_decimals_are_numbers():
    schema = schema_of(table(a=[Decimal("1.50"), Decimal("2.50"), None]))
    assert schema.numeric[0].mean == 2.0
    assert schema.numeric[0].n_missing == 1


def test_decimals_as_categories_can_be_written_as_json():
    schema = schema_of(table(a=[Decimal("0.1"), Decimal("2.5")]), kinds={"a": "categorical"})
    assert json.loads(json.dumps(schema.to_dict()["columns"][0]["categories"])) == [0.1, 2.5]


def test_missing_category_is_a_category_by_default():
    (column,) = schema_of(table(a=["x", None, None, "y", "y"])).categorical
    assert column.categories == ("x", "y", None)
    assert column.counts == (1, 2, 2)
    assert column.n_missing == 2
    assert column.mode == 1  # never "missing", however frequent


def test_missing_category_as_the_mode():
    (column,) = schema_of(table(a=["x", None, "y", "y"]), missing_categorical="mode").categorical
    assert column.categories == ("x", "y")
    assert column.n_missing == 1
    assert column.mode == 1


def test_nan_is_missing_in_a_column_of_categories():
    X = np.array([[0.0], [np.nan], [1.0], [1.0]])
    (column,) = schema_of(X, kinds={0: "categorical"}).categorical
    assert column.categories == (0.0, 1.0, None)
    assert column.counts == (1, 2, 1)


def test_missing_number():
    X = table(a=[1.0, None, 3.0], b=[1.0, 2.0, 3.0])
    mean = schema_of(X).numeric
    kept = schema_of(X, missing_numeric="category").numeric
    assert [c.keep_missing for c in mean] == [False, False]
    assert [c.keep_missing for c in kept] == [True, False]
    assert [c.n_missing for c in kept] == [1, 0]
    assert kept[0].mean == 2.0


def test_mean_and_scale_against_numpy():
    values = np.random.default_rng(0).lognormal(size=1_000)
    (column,) = schema_of(values[:, None]).numeric
    np.testing.assert_allclose(column.mean, values.mean(), rtol=1e-14)
    np.testing.assert_allclose(column.scale, values.std(), rtol=1e-14)
    assert (column.low, column.high) == (values.min(), values.max())


def test_large_mean_keeps_its_digits():
    values = 1e9 + np.arange(4.0)
    (column,) = schema_of(values[:, None]).numeric
    np.testing.assert_allclose(column.scale, np.arange(4.0).std(), rtol=1e-12)


def test_integers_that_float64_has_to_round():
    (column,) = schema_of(table(a=[2**60 + 1, 0, 2**60 + 1])).numeric
    assert column.high == float(2**60)


def test_zero_and_one_are_the_same_categories_as_integers_numbers_and_booleans():
    described = [
        schema_of(table(a=values), kinds={"a": "categorical"}).categorical[0]
        for values in ([0, 1, 1], [0.0, 1.0, 1.0], [False, True, True])
    ]
    assert described[0] == described[1] == described[2]


TWO = {"age": [1.0, 2.0], "sex": ["f", "m"]}


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (TWO, {"sensitive": ["sexx"]}, "sensitive must name columns.*'sexx'. Did you mean 'sex'"),
        (TWO, {"sensitive": ["zip"]}, r"sensitive .* got 'zip'\. X has 'age', 'sex'\."),
        (TWO, {"sensitive": [1]}, "sensitive must name columns of X, got 1"),
        (TWO, {"kinds": {"agee": "numeric"}}, "kinds must name columns.*Did you mean 'age'"),
        (TWO, {"sensitive": ["sex", "sex"]}, "name each column once, got 'sex' twice. Drop"),
        ({"a": [1, 1], **TWO}, {}, "Column 'a' must take at least two values, got 1.0 wherever"),
        (
            {"a": ["x", "x"], **TWO},
            {},
            "'a' must take .* got 'x' wherever there is a value. Drop it, or pass",
        ),
        (
            {"a": [1, 1], "b": [2, 2]},
            {},
            r"got 1.0 wherever there is a value \(and 1 more such columns\)",
        ),
        ({"a": [1.0, None], **TWO}, {}, "Column 'a' must take at least two values, got 1.0"),
        ({"a": pa.nulls(2), **TWO}, {}, "'a' must hold at least one value, got 2 missing.*Drop"),
        ({"a": [np.nan, np.nan], **TWO}, {}, "'a' must hold at least one value, got 2 missing"),
        ({"a": pa.array([None, None], pa.string()), **TWO}, {}, "'a' must hold at least one"),
        ({"a": [float("inf"), 1], **TWO}, {}, r"'a' must hold finite .* got inf in row 0 .*Repl"),
        ({"a": [0, -1e39], **TWO}, {}, r"finite numbers within ±3.4e\+38, got -1e\+39 in row 1"),
        (
            {"a": [datetime.date(2020, 1, 1)] * 2, **TWO},
            {},
            "'a' must take at least two values, got '2020-01-01T00:00:00' wherever",
        ),
        (
            {"a": [b"x", b"y"]},
            {},
            "'a' must hold numbers, text, booleans or dates, got binary. Convert it to text or num",
        ),
        ({"a": [datetime.time(1), datetime.time(2)]}, {}, "'a' must hold .* dates, got time64"),
        ({"a": ["x", "x"], **TWO}, {"sensitive": ["a"]}, "'a' must have at least two categ.*'x'"),
    ],
)
def test_refused(columns, options, message):
    with pytest.raises(InvalidInputError, match=message):
        schema_of(pa.table(columns), **options)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]),
        pd.Series(pd.Categorical(pd.to_datetime(["2020-01-01", "2020-01-02"]))),
        pd.Series(pd.cut([1, 2], 2)),
        pd.Series([b"x", b"y"]),
        pd.Series([[1], [2]]),
    ],
    ids=["date", "categorical-dates", "intervals", "bytes", "lists"],
)
def test_what_cannot_be_a_category(column):
    with pytest.raises(InvalidInputError, match=r"'a' must hold numbers, text or bool.*to text"):
        schema_of(pd.DataFrame({"a": column}), kinds={"a": "categorical"})


def test_dictionary_that_holds_nothing_but_missing():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array([None, "x"]))
    with pytest.raises(InvalidInputError, match="'a' must hold at least one value, got 2 missing"):
        schema_of(pa.table({"a": column}))


def test_constant_columns_kept_on_demand():
    X = table(a=[5, 5, 5], b=["x", "x", "x"], c=[1.0, 2.0, 3.0])
    schema = schema_of(X)
    assert schema.feature_names == ("b", "a", "c")
    assert schema.numeric[0].scale == 1.0


def test_constant_number_beside_its_missing_embedding():
    X = table(a=[5.0, None, 5.0])
    assert schema_of(X, missing_numeric="category").numeric[0].keep_missing
