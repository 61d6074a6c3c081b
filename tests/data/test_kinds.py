"""Columns of every kind: how they are described, and how they are encoded."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fcorr._core import InvalidInputError, UnseenCategoryWarning
from fcorr.data import encode, infer_schema, read_table


def schema_of(X, **options):
    X = pa.table(X) if isinstance(X, dict) else X
    return infer_schema(read_table(X), **options)


def encoded(X, schema):
    X = pa.table(X) if isinstance(X, dict) else X
    return encode(read_table(X), schema)


def raw_numbers(X, schema):
    """Return the encoded numbers as they were before they were standardised."""
    mean, scale = (np.array([getattr(c, a) for c in schema.numeric]) for a in ("mean", "scale"))
    return encoded(X, schema).numbers * scale + mean


# The argument


TWO = {"a": ["x", "y"], "b": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (["a"], r"kinds must be a dict of columns .* got \['a'\]\. Pass for example kinds=\{"),
        ("a", "kinds must be a dict of columns .* got 'a'"),
        ({"a": "categorial"}, "or the categories in order, got 'categorial' for 'a'. Did you mean"),
        ({"a": 3}, "kinds must say 'numeric', .* or the categories in order, got 3 for 'a'"),
        ({"a": None}, "got None for 'a'"),
        ({"a": ["x"]}, r"at least two categories .* got \['x'\] for 'a'\. Leave out"),
        ({"a": ["x", "y", "x"]}, r"each once, got \['x', 'y', 'x'\] for 'a'"),
        ({"a": ["x", None]}, r"text or numbers .* got \['x', None\] for 'a'"),
        ({"aa": "numeric"}, r"kinds must name columns of X, got 'aa'. Did you mean 'a'\? X has"),
        ({0: "numeric"}, "kinds must name columns of X, got 0"),
        ({"a": "numeric"}, "Column 'a' must hold numbers, got text: 'x' in row 0. Convert the col"),
        ({"b": "datetime"}, "Column 'b' must hold dates, got numbers: 1.0 in row 0. Convert the"),
        ({"a": "datetime"}, "Column 'a' must hold dates, got text: 'x' in row 0"),
        (
            {"b": "boolean"},
            "Column 'b' must hold booleans, 0 and 1, or true .* got 2.0 in row 1. C",
        ),
        ({"a": "boolean"}, "Column 'a' must hold booleans.* got 'x' in row 0.*kinds={'a': 'cat"),
        (
            {"a": "ordinal"},
            r"'a' must have an order to be ordinal, got string.*kinds=\{'a': \['low",
        ),
        (
            {"a": ["x", "z"]},
            "the categories of its order, 'x', 'z', got 'y' in row 1. Correct it, o",
        ),
    ],
)
def test_refused(kinds, message):
    with pytest.raises(InvalidInputError, match=message):
        schema_of(TWO, kinds=kinds)


def test_positions_where_there_are_no_names():
    X = np.array([[0, 1.5], [1, 2.5], [2, 3.5]])
    schema = schema_of(X, kinds={0: "categorical", np.int64(1): "ordinal"})
    assert [column.kind for column in schema.columns] == ["categorical", "ordinal"]


@pytest.mark.parametrize(
    "values", [["30", "50.0", None], [30, 50, None], pa.array(["30", "50", None], pa.string_view())]
)
def test_text_that_spells_numbers_can_be_numeric(values):
    (column,) = schema_of({"a": values}, kinds={"a": "numeric"}).columns
    assert (column.low, column.high, column.n_missing) == (30, 50, 1)


# Booleans


@pytest.mark.parametrize(
    "values",
    [[True, False, None], [1, 0, None], [1.0, 0.0, None], ["true", "False", None]],
    ids=["booleans", "integers", "numbers", "text"],
)
def test_booleans(values):
    schema = schema_of({"a": values}, kinds={"a": "boolean"})
    (column,) = schema.columns
    assert column.kind == "boolean"
    assert [type(category) for category in column.categories] == [bool, bool, type(None)]
    for others in ([True, False, None], [1, 0, None], ["TRUE", "false", None]):
        np.testing.assert_array_equal(encoded({"a": others}, schema).codes[:, 0], [1, 0, 2])


def test_what_is_no_boolean_is_unseen():
    schema = schema_of({"a": [True, False, False]})
    with pytest.warns(UnseenCategoryWarning, match=r"2 row\(s\) of 'a'"):
        codes = encoded({"a": ["true", "maybe", "?"]}, schema).codes
    np.testing.assert_array_equal(codes[:, 0], [1, 0, 0])


# Ordinal columns


GRADES = {"grade": ["B", "A", "D", "B", None]}
ORDER = ["A", "B", "C", "D"]


def test_ordinal_column_is_its_place_in_the_order():
    schema = schema_of(GRADES, kinds={"grade": ORDER})
    column = schema["grade"]
    assert column.kind == "ordinal"
    assert column.categories == ("A", "B", "C", "D")
    assert column.counts == (1, 2, 0, 1)
    assert column.n_missing == 1
    assert schema.feature_names == ("grade",)
    assert schema.categorical == ()
    assert (column.position.low, column.position.high) == (0, 3)
    assert column.position.mean == pytest.approx(np.mean([1, 0, 3, 1]))
    assert column.position.scale == pytest.approx(np.std([1, 0, 3, 1]))
    places = raw_numbers({"grade": ["A", "B", "C", "D"]}, schema)
    np.testing.assert_allclose(places[:, 0], [0, 1, 2, 3], atol=1e-6)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.Categorical(GRADES["grade"], categories=ORDER, ordered=True)),
        pa.DictionaryArray.from_arrays(
            pa.array([1, 0, 3, 1, None], pa.int8()), pa.array(ORDER), ordered=True
        ),
    ],
    ids=["pandas", "arrow"],
)
def test_ordered_types_are_ordinal(column):
    frame = pd.DataFrame if isinstance(column, pd.Series) else pa.table
    assert schema_of(frame({"grade": column})) == schema_of(GRADES, kinds={"grade": ORDER})


def test_enum_of_polars_is_categorical_unless_told():
    X = pl.DataFrame({"grade": pl.Series(GRADES["grade"], dtype=pl.Enum(ORDER[::-1]))})
    assert schema_of(X) == schema_of(GRADES)
    told = schema_of(X, kinds={"grade": "ordinal"})
    assert told["grade"].categories == tuple(ORDER[::-1])


def test_numbers_are_in_order():
    schema = schema_of({"a": [10, 1, 5, 1]}, kinds={"a": "ordinal"})
    assert schema["a"].categories == (1, 5, 10)
    np.testing.assert_allclose(
        raw_numbers({"a": [10.0, 5.0, 1.0]}, schema)[:, 0], [2, 1, 0], atol=1e-6
    )


@pytest.mark.parametrize("missing", ["mean", "category"])
def test_outside_the_order_is_missing(missing):
    schema = schema_of(GRADES, kinds={"grade": ORDER}, missing_numeric=missing)
    with pytest.warns(UnseenCategoryWarning) as caught:
        numbers = encoded({"grade": ["E", "A", "F", None]}, schema).numbers[:, 0]
    assert str(caught[0].message) == (
        "Categories not seen in training: 2 row(s) of 'grade'. "
        "In 'grade', which is ordinal, it is taken as missing."
    )
    expected = 0.0 if missing == "mean" else np.nan
    np.testing.assert_array_equal(numbers[[0, 2, 3]], expected)


def test_both_kinds_of_unseen_in_one_warning():
    X = {**GRADES, "job": ["x", "y", "x", "x", "y"]}
    schema = schema_of(X, kinds={"grade": ORDER})
    with pytest.warns(UnseenCategoryWarning) as caught:
        encoded({"grade": ["E"], "job": ["z"]}, schema)
    assert str(caught[0].message) == (
        "Categories not seen in training: 1 row(s) of 'job', 1 row(s) of 'grade'. "
        "Each is taken for the most frequent training category of its column. "
        "In 'grade', which is ordinal, it is taken as missing."
    )


def test_constant_ordinal_column():
    with pytest.raises(InvalidInputError, match="must take at least two values, got 'B' wherever"):
        schema_of({"grade": ["B", "B"]}, kinds={"grade": ORDER})


# Dates


HOURS = [datetime.datetime(2019, 12, 30, 9), datetime.datetime(2021, 3, 7, 17), None]


def test_dates_are_taken_apart():
    schema = schema_of({"d": HOURS, "a": [1, 2, 3]})
    assert schema.names == ("d", "a")
    assert schema.feature_names == (
        *("d.year", "d.month", "d.day_of_week", "d.hour", "d.days"),
        "a",
    )
    assert (schema["d"].first, schema["d"].last) == ("2019-12-30T09:00:00", "2021-03-07T17:00:00")
    assert schema["d"].n_missing == 1
    days = (datetime.date(2021, 3, 7) - datetime.date(2019, 12, 30)).days
    numbers = raw_numbers({"d": HOURS, "a": [1, 2, 3]}, schema)
    np.testing.assert_allclose(numbers[0, :5], [2019, 12, 0, 9, 0], atol=1e-3)
    np.testing.assert_allclose(numbers[1, :5], [2021, 3, 6, 17, days], atol=1e-3)
    means = [column.mean for column in schema.numeric[:5]]
    np.testing.assert_allclose(numbers[2, :5], means)


def test_only_what_varies_is_a_feature():
    days = [datetime.date(2020, 5, day) for day in (4, 5, 12)]
    assert schema_of({"d": days}).feature_names == ("d.day_of_week", "d.days")
    hours = [datetime.datetime(2020, 5, 4, hour) for hour in (1, 2)]
    assert schema_of({"d": hours}).feature_names == ("d.hour",)
    one = schema_of({"d": days[:1] * 3})
    assert one.feature_names == ("d.days",)


DATES = ["2020-01-31", "2020-03-01", None, "2021-07-04"]
DATETIMES = [None if d is None else datetime.datetime.fromisoformat(d) for d in DATES]
SAME_DATES = {
    "pandas": pd.DataFrame({"d": pd.to_datetime(pd.Series(DATES))}),
    "pandas-objects": pd.DataFrame({"d": [d and d.date() for d in DATETIMES]}),
    "pandas-zone": pd.DataFrame(
        {"d": pd.to_datetime(pd.Series(DATES)).dt.tz_localize("Asia/Tokyo")}
    ),
    "polars": pl.DataFrame({"d": DATETIMES}),
    "polars-date": pl.DataFrame({"d": DATETIMES}).cast(pl.Date),
    "arrow-date64": pa.table({"d": pa.array(DATETIMES, pa.date64())}),
    "arrow-ns": pa.table({"d": pa.array(DATETIMES, pa.timestamp("ns"))}),
    "text": pa.table({"d": DATES}),
    "string-view": pa.table({"d": pa.array(DATES, pa.string_view())}),
    "dictionary": pa.table({"d": pa.array(DATES).dictionary_encode()}),
}


@pytest.mark.parametrize("name", SAME_DATES)
def test_dates_of_every_type(name):
    reference = schema_of({"d": DATETIMES})
    schema = schema_of(SAME_DATES[name], kinds={"d": "datetime"})
    assert schema == reference
    np.testing.assert_array_equal(
        encoded(SAME_DATES[name], reference).numbers, encoded({"d": DATETIMES}, reference).numbers
    )


def test_dates_in_a_dictionary_need_not_be_told():
    dates = pa.array(DATETIMES).dictionary_encode()
    assert schema_of({"d": dates}) == schema_of({"d": DATETIMES})


def test_missing_dates_kept():
    schema = schema_of({"d": DATETIMES}, missing_numeric="category")
    numbers = encoded({"d": [None, DATETIMES[0]]}, schema).numbers
    np.testing.assert_array_equal(np.isnan(numbers), [[True] * 4, [False] * 4])


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            {"d": HOURS, "d.hour": [1, 2, 3]},
            {},
            "Feature names must differ, got 'd.hour' as a column and as a part .* in 'd'. Rename",
        ),
        ({"d": pa.nulls(2, pa.date32())}, {}, "'d' must hold at least one value, got 2 missing"),
        (
            {"d": pa.array([-(2**60), 0], pa.timestamp("us"))},
            {},
            r"'d' must hold dates of the years 1 to 9999 \(.*Correct these dates",
        ),
        ({"d": HOURS}, {"kinds": {"d": "numeric"}}, "'d' must hold numbers, got dates: 2019-12-30"),
        ({"d": HOURS}, {"kinds": {"d": "categorical"}}, "'d' must hold .* to be categorical, got"),
    ],
)
def test_dates_refused(columns, options, message):
    with pytest.raises(InvalidInputError, match=message):
        schema_of(columns, **options)
