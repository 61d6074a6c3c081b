"""From a table to its schema: columns of every kind, and what is refused."""

import datetime
import json
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcorr._core import InvalidInputError
from fcorr.data import infer_schema, read_table
from fcorr.data.infer import warn_of_copies
from fcorr.data.schema import MAX_SENSITIVE_CATEGORIES, CategoricalColumn
from tests.tables import schema_of

ONE_VALUE = "Columns that take one value only"


def column_of(values, **options):
    """Describe a column alone, which may be constant."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ONE_VALUE)
        (column,) = schema_of({"a": values}, **options).columns
    return column


def kinds_of(*args, **options):
    return {column.name: column.kind for column in schema_of(*args, **options).columns}


MIXED = {
    "age": [31.0, 52.0, 47.0, 31.0],
    "job": ["clerk", "nurse", "clerk", None],
    "zip": [20, 10, 10, 30],
    "sex": ["f", "m", "f", "f"],
    "member": [True, False, True, True],
}


def test_a_table_of_many_kinds(as_frame):
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
    X = np.array([[0, 1.5, 7], [1, 2.5, 8], [2, 3.5, 9]])
    assert schema_of(X, sensitive=[0]).sensitive == ("x0",)
    assert schema_of(X, sensitive=["x0"]) == schema_of(X, sensitive=[np.int64(0)])
    kinds = {0: "categorical", np.int64(1): "ordinal"}
    found = kinds_of(X, sensitive=[2], kinds=kinds)
    assert found == {"x0": "categorical", "x1": "ordinal", "x2": "categorical"}


def test_exposure_is_no_feature():
    X = {"a": [1, 2, 3], "e": [1.0, 0.5, 1.0], "b": ["x", "y", "x"]}
    schema = schema_of(X, exposure="e")
    assert schema.names == ("a", "b")
    assert schema.feature_names == ("b", "a")
    # Nor need it vary, as a feature should.
    assert schema_of({"a": [1, 2, 3], "e": [1.0, 1.0, 1.0]}, exposure="e").names == ("a",)


# What is refused, and what is warned of

TWO = {"age": [1.0, 2.0], "sex": ["f", "m"]}
DAYS = [datetime.date(2020, 1 + i % 12, 1 + i % 28) for i in range(60)]
HOURS = [datetime.datetime(2019, 12, 30, 9), datetime.datetime(2021, 3, 7, 17), None]
AGES = [float(age) for age in range(18, 78)]
TABLE = {
    "age": AGES,
    "sex": [i % 2 for i in range(60)],
    "job": ["clerk", "nurse"] * 30,
    "income": [1_000.0 + i * i for i in range(60)],
    "since": DAYS,
    "text": [str(age) for age in AGES],
}
BEYOND_MICROSECONDS = pa.array([2**62, 0], pa.timestamp("s"))
CATEGORICAL_AGE = {"kinds": {"age": "categorical"}}
KEY = [f"k{i}" for i in range(20_000)]
NO_CATEGORY = "'a' must hold numbers, text or booleans to be categorical, got .*Convert it to text"
REFUSED = [
    # names
    (TWO, {"sensitive": ["sexx"]}, "sensitive must name columns.*'sexx'. Did you mean 'sex'"),
    (TWO, {"sensitive": ["zip"]}, r"sensitive .* got 'zip'\. X has 'age', 'sex'\."),
    (TWO, {"sensitive": ["sex", "sex"]}, "name each column once, got 'sex' twice. Drop"),
    ([["x"], ["y"]], {"sensitive": ["x0", 0]}, "sensitive must name each column once, got 'x0'"),
    (TWO, {"kinds": {"agee": "numeric"}}, "kinds must name columns.*Did you mean 'age'.* X has"),
    (TWO, {"sensitive": ["sex"], "exposure": "sex"}, "must be no feature, got 'sex' as exposure"),
    ({"e": [1.0, 2.0]}, {"exposure": "e"}, "feature beside the exposure, got the column 'e' alone"),
    # values
    (
        {"a": pa.nulls(2), **TWO},
        {"sensitive": ["a"]},
        "'a' must take at least two values, got only 'missing'",
    ),
    ({"a": [float("inf"), 1], **TWO}, {}, r"'a' must hold finite .* got inf in row 0 .*Repl"),
    ({"a": [0, -1e39], **TWO}, {}, r"finite numbers within ±3.4e\+38, got -1e\+39 in row 1"),
    ({"a": [b"x", b"y"]}, {}, "text, booleans or dates, got binary. Convert it to text or num"),
    ({"a": [datetime.time(1), datetime.time(2)]}, {}, "'a' must hold .* dates, got time64"),
    (
        {"d": HOURS, "d.hour": [1, 2, 3]},
        {},
        "Feature names must differ, got 'd.hour' as a column and as a part .* in 'd'. Rename",
    ),
    *(
        ({"d": dates}, {}, r"'d' must hold dates of the years 1 to 9999 \(.*Correct these dates")
        for dates in (pa.array([-(2**60), 0], pa.timestamp("us")), BEYOND_MICROSECONDS)
    ),
    # kinds
    (TWO, {"kinds": ["sex"]}, r"kinds must be a dict of columns .* got \['sex'\]\. Pass for ex"),
    (TWO, {"kinds": {"sex": "categorial"}}, "in order, got 'categorial' for 'sex'. Did you mean"),
    (TWO, {"kinds": {"sex": 3}}, "must say 'numeric', .* or the categories in order, got 3 for"),
    (TWO, {"kinds": {"sex": ["f"]}}, r"at least two categories .* got \['f'\] for 'sex'\. Leave"),
    (TWO, {"kinds": {"sex": ["f", "m", "f"]}}, r"each once, got \['f', 'm', 'f'\] for 'sex'"),
    (TWO, {"kinds": {"sex": ["f", None]}}, r"text or numbers .* got \['f', None\] for 'sex'"),
    (TWO, {"kinds": {"sex": "numeric"}}, "must hold numbers, got text: 'f' in row 0. Convert the"),
    (TWO, {"kinds": {"age": "datetime"}}, "must hold dates, got numbers: 1.0 in row 0. Convert"),
    (TWO, {"kinds": {"sex": "datetime"}}, "Column 'sex' must hold dates, got text: 'f' in row 0"),
    (TWO, {"kinds": {"age": "boolean"}}, "booleans, 0 and 1, or true .* got 2.0 in row 1. C"),
    (TWO, {"kinds": {"sex": "boolean"}}, "booleans.* got 'f' in row 0.*kinds={'sex': 'cat"),
    (TWO, {"kinds": {"sex": "ordinal"}}, r"an order to be ordinal, got string.*\{'sex': \['low"),
    (TWO, {"kinds": {"sex": ["f", "z"]}}, "its order, 'f', 'z', got 'm' in row 1. Correct it, o"),
    ({"d": HOURS}, {"kinds": {"d": "numeric"}}, "'d' must hold numbers, got dates: 2019-12-30"),
    *(
        (pd.DataFrame({"a": column}), {"kinds": {"a": "categorical"}}, NO_CATEGORY)
        for column in (DAYS[:2], pd.Categorical(DAYS[:2]), [b"x", b"y"], [[1]])
    ),
]


@pytest.mark.parametrize(("X", "options", "message"), REFUSED)
def test_refused(X, options, message):
    with pytest.raises(InvalidInputError, match=message):
        schema_of(X, **options)


AMOUNTS = [f"{1000 + 7 * n}.{n % 90 + 10}" for n in range(50)]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["-", *AMOUNTS], "; not '-'. Make them numbers or missing"),
        ([*AMOUNTS, "n.a.", None], "; not 'n.a.'. Make"),
        (AMOUNTS, "look like numbers. Make"),
        ([f"{n},{n + 100}.50" for n in range(100, 150)], "; not '100,200.50', '101,201.50'"),
        ([f"{value} EUR" for value in AMOUNTS], "say that they are categories, kinds={'s': "),
        ([f"{n}%" for n in range(50)], "; not '0%', '1%', '2%' and 47 more"),
        ([f"{n:05}" for n in range(50)], ""),
        ([f"{n}-{n + 1}" for n in range(50)], ""),
        ([f"10.0.{n}.1" for n in range(50)], ""),
        (AMOUNTS[:10], ""),
    ],
)
def test_text_that_looks_like_numbers_is_told_of(values, text):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        schema_of({"s": values * 2, "x": range(2 * len(values))})
    found = [str(each.message) for each in heard if "look like numbers" in str(each.message)]
    assert len(found) == bool(text)
    assert text in "".join(found)


CONSTANT = {
    "number": ([7, 7], {"kinds": {"s": "numeric"}}, "take at least two values", "7.0"),
    "number with a gap": ([5, None], {"kinds": {"s": "numeric"}}, "take at least two", "5.0"),
    "text": (["x", "x"], {}, "have at least two categories", "'x'"),
    "order": (["b", "b"], {"kinds": {"s": ["a", "b"]}}, "take at least two values", "'b'"),
    "date": (DAYS[:1] * 2, {}, "take at least two values", "'2020-01-01T00:00:00'"),
    "no date": (pa.nulls(2, pa.date32()), {}, "take at least two values", "'missing'"),
    "nothing": (pa.nulls(2), {}, "take at least two values", "'missing'"),
    "no number": (
        [np.nan, np.nan],
        {"kinds": {"s": "numeric"}, "missing_numeric": "category"},
        "take at least two values",
        "'missing'",
    ),
    "no text": (
        pa.nulls(2, pa.string()),
        {"missing_categorical": "mode"},
        "take at least two values",
        "'missing'",
    ),
    "no place": (pa.nulls(2, pa.string()), {"kinds": {"s": ["a", "b"]}}, "take at", "'missing'"),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_one_value_only(name):
    values, options, rule, shown = CONSTANT[name]
    columns = {"s": values, "a": [1.0, 2.0]}
    with pytest.warns(UserWarning, match=ONE_VALUE) as caught:
        schema = schema_of(columns, **options)
    assert str(caught[0].message) == (
        f"Columns that take one value only are kept without effect: 's' (always {shown}). "
        "Drop them if that is a mistake."
    )
    assert len(caught) == 1
    assert schema.names == ("s", "a")
    is_coded = isinstance(schema["s"], CategoricalColumn)
    assert is_coded or all(feature.scale == 1 for feature in schema["s"].features)
    message = f"Sensitive column 's' must {rule}.*, got only {shown}. Leave it out of `sensitive`"
    with pytest.raises(InvalidInputError, match=message):
        schema_of(columns, sensitive=["s"], **options)


def test_one_warning_for_many_constant_columns():
    with pytest.warns(UserWarning, match=r"'c4' \(always 4\.0\) and 2 more\. Drop") as caught:
        schema_of({f"c{i}": [i, i] for i in range(7)})
    assert len(caught) == 1
    schema_of({"a": [5]})  # nothing can be said of one row
    options = {"sensitive": ["s"], "kinds": {"s": "numeric"}, "missing_numeric": "category"}
    assert schema_of({"s": [5, None, 5]}, **options)["s"].keep_missing


# Categories


@pytest.mark.parametrize(
    ("values", "categories"),
    [
        ([10, 9, -1], (-1, 9, 10)),
        ([0.5, -1.5, 10.0], (-1.5, 0.5, 10.0)),
        (["b", "a", "B"], ("B", "a", "b")),
        ([True, False, True], (False, True)),
        (np.array([0.0, np.nan, 1.0, 1.0]), (0.0, 1.0, None)),
        ([Decimal("2.5"), Decimal("0.1")], (0.1, 2.5)),
    ],
)
def test_order_of_categories(values, categories):
    column = column_of(values, kinds={"a": "categorical"})
    assert column.categories == categories
    assert json.loads(json.dumps(column.categories)) == list(categories)


def test_missing_category():
    values = ["x", None, None, "y", "y", None]
    column = column_of(values)
    assert (column.categories, column.counts) == (("x", "y", None), (1, 2, 3))
    assert (column.n_missing, column.mode) == (3, 1)  # never "missing", however frequent
    column = column_of(values, missing_categorical="mode")
    assert (column.categories, column.n_missing, column.mode) == (("x", "y"), 3, 1)


texts = st.sampled_from("abcdef")


@given(st.lists(texts | st.none(), max_size=60), texts, st.integers(1, 8))
def test_a_category_is_pooled_if_it_has_too_few_rows(values, one, min_category_rows):
    values = [one, *values]
    counts = {value: values.count(value) for value in set(values) - {None}}
    frequent = sorted(value for value, n in counts.items() if n >= min_category_rows)
    column = column_of(pa.array(values, pa.string()), min_category_rows=min_category_rows)
    assert [c for c in column.categories if c is not None] == frequent
    assert column.n_pooled == len(counts) - len(frequent)
    n_frequent = sum(counts[value] for value in frequent)
    assert column.n_pooled_rows == sum(counts.values()) - n_frequent
    assert column.n_codes == len(column.categories) + (column.n_pooled > 0)
    if frequent:  # or all are pooled, or missing
        most = max(counts[value] for value in frequent)
        assert counts[column.categories[column.mode]] == most  # never the pool


@pytest.mark.parametrize(
    ("n_rows", "n_rare", "pooled"),
    [(1_000, 1, 0), (1_001, 1, 1), (2_000, 1, 1), (2_000, 2, 0), (50_000, 9, 1), (50_000, 10, 0)],
)
def test_automatic_rule_of_pooling(n_rows, n_rare, pooled):
    assert column_of(["x"] * (n_rows - n_rare) + ["rare"] * n_rare).n_pooled == pooled


def test_what_is_never_pooled():
    X = {"s": ["f"] * 5 + ["m"], "b": [True] * 5 + [False], "c": ["x"] * 5 + ["y"]}
    schema = schema_of(X, sensitive=["s"], min_category_rows=3)
    assert {c.name: c.n_pooled for c in schema.categorical} == {"s": 0, "b": 0, "c": 1}
    zips = {"zip": [10_000 + i for i in range(1_000)] * 20}
    schema = schema_of(zips, sensitive=["zip"], kinds={"zip": "categorical"})
    assert schema.cardinalities == (1_000,)
    kept = column_of(KEY, min_category_rows=1, kinds={"a": "categorical"})
    assert kept.n_codes == 20_000


# Keys and copies of the target


def shuffled(values):
    return np.random.default_rng(0).permutation(values)


@pytest.mark.parametrize(
    "values",
    [
        [f"policy {i}" for i in range(40)],
        pd.Categorical([f"policy {i}" for i in range(40)]),
        [*(f"policy {i}" for i in range(30)), *[None] * 10],
        shuffled(np.arange(1_000, 1_040)),  # a running number, whatever the order of the rows
        np.arange(40)[::-1].astype(np.uint8),
        np.cumsum(shuffled(np.arange(1, 41))),  # in the order of the rows, with gaps
        [f"policy {i}" for i in range(1_200)],  # all of them pooled
    ],
    ids=["text", "dictionary", "some missing", "consecutive", "falling", "rising", "pooled"],
)
def test_keys_are_warned_of(values):
    n_rows = len(values)
    X = pd.DataFrame({"key": values, "age": np.tile([30, 40], n_rows // 2), "name": values})
    with pytest.warns(UserWarning, match="looks like a key") as heard:
        schema = schema_of(X)
    kind = schema["key"].kind
    (text,) = [str(warning.message) for warning in heard]
    assert f": 'key', 'name'. Drop it, or say what it is, kinds={{'key': '{kind}'}}," in text
    schema_of(X, kinds={"key": kind, "name": kind})  # without a warning, which would be an error


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(size=40),
        np.sort(np.random.default_rng(0).normal(size=40)),
        np.arange(40.0),
        np.repeat(np.arange(20), 2),
        shuffled(np.arange(0, 80, 2)),
        [f"policy {i // 2}" for i in range(40)],
        pd.date_range("2020-01-01", periods=40),
        pd.array([*range(39), None], dtype="Int64"),
        list("abcdefghijklmnopqrs"),  # so few may differ by chance
        range(19),
    ],
)
def test_measurements_are_no_keys(values):
    schema_of(pd.DataFrame({"a": values}))


def warn(X, y, label="y"):
    table = read_table(X)
    warn_of_copies(table, infer_schema(table), np.unique(y, return_inverse=True)[1], label)


AMOUNTS = np.random.default_rng(1).lognormal(size=60)
CLASSES = np.random.default_rng(2).integers(3, size=60)


@pytest.mark.parametrize(
    ("y", "copy"),
    [
        (CLASSES, CLASSES),
        (CLASSES, np.array(["no", "yes", "maybe"])[CLASSES]),
        (CLASSES.astype(str), np.array([7.5, -1.0, 3.0])[CLASSES]),
        (CLASSES == 1, np.where(CLASSES == 1, "yes", None)),
        (CLASSES == 1, pd.Categorical(CLASSES != 1)),
        (np.round(AMOUNTS), np.round(AMOUNTS).astype(str)),
        (AMOUNTS, AMOUNTS),
        (AMOUNTS, 1 - 1.08 * AMOUNTS),
        (AMOUNTS, np.log(AMOUNTS)),
    ],
)
def test_copies_of_the_target_are_warned_of_once(y, copy):
    X = pd.DataFrame({"a": shuffled(AMOUNTS), "copy": copy, "again": copy, "c": shuffled(CLASSES)})
    with pytest.warns(UserWarning, match="outright") as heard:
        warn(X, y, "y ('bought')")
    assert [str(warning.message) for warning in heard] == [
        "A feature must not tell y ('bought') outright, got a copy or a relabelling of it as "
        "'copy', 'again'. Drop it, unless it is known before y ('bought') is."
    ]


@pytest.mark.parametrize(
    ("y", "other"),
    [
        (CLASSES, CLASSES > 0),  # not all of it
        (CLASSES > 0, CLASSES),
        (CLASSES, np.where(np.arange(60) < 58, CLASSES, (CLASSES + 1) % 3)),
        (AMOUNTS, AMOUNTS + 0.1 * shuffled(AMOUNTS)),
        (AMOUNTS, np.digitize(AMOUNTS, [0.5, 1, 2])),
        (AMOUNTS, [f"policy {i // 2}" for i in range(60)]),
        (np.ones(60), AMOUNTS),
        (np.arange(19), range(19)),  # so few rows may agree by chance
    ],
)
def test_what_is_no_copy(y, other):
    warn(pd.DataFrame({"a": other}), y)


def test_a_copy_is_looked_for_in_all_rows():
    y = np.arange(3_000) % 2
    with pytest.warns(UserWarning, match="outright"):
        warn(pa.table({"a": y}), y)
    warn(pa.table({"a": np.where(np.arange(3_000) < 2_999, y, 1 - y)}), y)


# Numbers, orders, dates


def test_numbers_against_numpy():
    values = np.random.default_rng(0).lognormal(size=1_000)
    column = column_of(values)
    np.testing.assert_allclose(column.mean, values.mean(), rtol=1e-14)
    np.testing.assert_allclose(column.scale, values.std(), rtol=1e-14)
    assert (column.low, column.high) == (values.min(), values.max())
    far = column_of(1e9 + np.arange(4.0))  # a large mean keeps its digits
    np.testing.assert_allclose(far.scale, np.arange(4.0).std(), rtol=1e-12)


GRADES = ["B", "A", "D", "B", None]
ORDER = ["A", "B", "C", "D"]


def test_ordinal_column_is_its_place_in_the_order():
    schema = schema_of({"a": GRADES}, kinds={"a": ORDER})
    column = schema["a"]
    assert (column.kind, column.categories) == ("ordinal", ("A", "B", "C", "D"))
    assert (column.counts, column.n_missing) == ((1, 2, 0, 1), 1)
    assert (schema.feature_names, schema.categorical) == (("a",), ())
    assert column.position == column_of([1, 0, 3, 1, None])
    assert column_of([10, 1, 5, 1], kinds={"a": "ordinal"}).categories == (1, 5, 10)
    # Types that have an order need not be told.
    codes = pa.array([1, 0, 3, 1, None], pa.int8())
    assert column_of(pa.DictionaryArray.from_arrays(codes, ORDER, ordered=True)) == column
    categories = pd.Categorical(GRADES, categories=ORDER, ordered=True)
    table = read_table(pd.DataFrame({"b": categories})).renamed(["a"])  # which keeps the order
    assert infer_schema(table)["a"] == column


def test_intervals_of_pandas_are_ordinal():
    cut = pd.cut(pd.Series([1.0, 5.0, 9.0, None, 2.0]), [0.0, 3.0, 6.0, 10.0])
    order = ["(0.0, 3.0]", "(3.0, 6.0]", "(6.0, 10.0]"]
    text = [order[0], order[1], order[2], None, order[0]]
    expected = schema_of({"a": text}, kinds={"a": order})
    for intervals in (cut, pd.Series(pd.arrays.IntervalArray(cut))):
        assert schema_of(pd.DataFrame({"a": intervals})) == expected
    unordered = pd.DataFrame({"a": cut.cat.as_unordered()})
    assert schema_of(unordered)["a"].kind == "categorical"


def test_enum_of_polars_is_ordinal_unless_told():
    """With categories that do not occur, and with missing values."""
    order = [*ORDER[::-1], "never"]
    X = pl.DataFrame({"a": pl.Series([*GRADES, None], dtype=pl.Enum(order))})
    column = schema_of(X)["a"]
    assert (column.kind, column.categories) == ("ordinal", tuple(order))
    assert (column.n_missing, column.counts[-1]) == (X["a"].null_count(), 0)
    assert schema_of(X, kinds={"a": "categorical"}) == schema_of({"a": [*GRADES, None]})
    chunks = pl.concat([X, X], rechunk=False)
    assert schema_of(chunks)["a"].categories == tuple(order)


def test_dates_are_described_by_the_parts_that_vary():
    schema = schema_of({"d": HOURS, "a": [1, 2, 3]})
    parts = ("d.year", "d.month", "d.day_of_week", "d.hour", "d.days")
    assert schema.names == ("d", "a")
    assert schema.feature_names == (*parts, "a")
    assert (schema["d"].first, schema["d"].last) == ("2019-12-30T09:00:00", "2021-03-07T17:00:00")
    assert schema["d"].n_missing == 1
    days = [datetime.date(2020, 5, day) for day in (4, 5, 12)]
    assert column_of(days).parts == ("day_of_week", "days")
    assert column_of([datetime.datetime(2020, 5, 4, hour) for hour in (1, 2)]).parts == ("hour",)
    assert column_of(days[:1] * 3).parts == ("days",)


# Sensitive columns

FEW = [float(i % MAX_SENSITIVE_CATEGORIES) for i in range(60)]
MANY = [float(i % (MAX_SENSITIVE_CATEGORIES + 1)) for i in range(60)]
ORDERED = pa.DictionaryArray.from_arrays(pa.array([0, 1]), ["low", "high"], ordered=True)


@pytest.mark.parametrize(
    ("values", "told", "kind"),
    [
        (["f", "m", None], None, "categorical"),
        ([True, False, None], None, "boolean"),
        (FEW, None, "categorical"),
        ([*FEW, None, float("nan")], None, "categorical"),  # missing: no category too many
        ([*FEW, -0.0], None, "categorical"),  # nor is a second zero
        (MANY, None, "numeric"),
        (pa.array(MANY).dictionary_encode(), None, "categorical"),
        (pa.array(MANY).cast(pa.string()), None, "categorical"),
        (DAYS, None, "datetime"),
        (ORDERED, None, "categorical"),
        (FEW, "numeric", "numeric"),
        (MANY, "categorical", "categorical"),
        (FEW, "ordinal", "ordinal"),
        ([0, 1, 1], "boolean", "boolean"),
        (["low", "high"], ["low", "middle", "high"], "ordinal"),
        (ORDERED, "ordinal", "ordinal"),
        (["2020-01-01", "2021-05-05"], "datetime", "datetime"),
    ],
)
def test_kind_of_a_sensitive_column(values, told, kind):
    kinds = {} if told is None else {"a": told}
    assert column_of(values, sensitive=["a"], kinds=kinds).kind == kind
    assert column_of(FEW).kind == "numeric"  # where it is not sensitive
