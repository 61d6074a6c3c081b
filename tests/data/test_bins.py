"""Sensitive numbers cut into groups: the argument, the groups, and how rows are encoded."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcorr._core import InvalidInputError, UnseenCategoryWarning
from fcorr.data import BinnedColumn, Schema, encode, infer_schema, read_table
from fcorr.data.infer import find_edges, parse_bins
from fcorr.data.schema import find_groups

AGES = [float(age) for age in range(18, 78)]
TABLE = {
    "age": AGES,
    "sex": [i % 2 for i in range(60)],
    "job": ["clerk", "nurse"] * 30,
    "income": [1_000.0 + i * i for i in range(60)],
    "since": [datetime.date(2020, 1 + i % 12, 1) for i in range(60)],
    "text": [str(age) for age in AGES],
}


def schema_of(columns=TABLE, **options):
    return infer_schema(read_table(pa.table(columns)), **options)


def bins_of(values, bins, **options):
    return schema_of({"s": values}, sensitive=["s"], bins={"s": bins}, **options)


def codes_of(values, schema):
    return encode(read_table(pa.table({"s": values})), schema).codes[:, 0]


# The argument


@pytest.mark.parametrize(
    ("bins", "parsed"),
    [
        (None, {}),
        (4, 4),
        (np.int64(4), 4),
        ([25], (25.0,)),
        (np.array([25, 35.5]), (25.0, 35.5)),
        (pd.Series([25, 35]), (25.0, 35.0)),
        (range(20, 41, 10), (20.0, 30.0, 40.0)),
        ({"age": 4, 0: (1, 2)}, {"age": 4, 0: (1.0, 2.0)}),
        ({}, {}),
    ],
)
def test_parse(bins, parsed):
    assert parse_bins(bins) == parsed
    assert type(parse_bins(bins)) is type(parsed)


BAD_CUTS = [1, 0, -3, 4.0, True, "4", None, [], [25, 25], [35, 25], [25, None], [25, "35"]]
BAD_CUTS += [[True, 2], [25, float("nan")], [25, float("inf")], [10**400], [[25], [35]], {"a": 2}]


@pytest.mark.parametrize("cut", BAD_CUTS, ids=repr)
def test_what_is_no_cut(cut):
    rule = (
        "bins must be a number of groups of at least 2, or the edges between groups in increasing "
        f"order, got {cut!r} for 'age'. Pass for example bins=4 or bins=[25, 40, 65]."
    )
    with pytest.raises(InvalidInputError) as caught:
        parse_bins({"age": cut})
    assert str(caught.value) == rule
    if cut is not None and not isinstance(cut, dict):
        with pytest.raises(InvalidInputError) as caught:
            parse_bins(cut)
        assert str(caught.value) == rule.replace(" for 'age'", "")


@pytest.mark.parametrize(
    ("sensitive", "options", "message"),
    [
        (["age"], {"bins": {"agee": 2}}, "bins must name columns of X, got 'agee'. Did you mean"),
        (["age"], {"bins": {0: 2}}, "bins must name columns of X, got 0"),
        (["age"], {"bins": {"income": 2}}, "bins must name sensitive columns, got 'income'. Add"),
        (["job"], {"bins": {"job": 2}}, "of numbers, got 'job', which holds text. Leave it out of"),
        (["text"], {"bins": {"text": 2}}, "bins must name columns of numbers, got 'text', which"),
        (["since"], {"bins": {"since": 2}}, "of numbers, got 'since', which holds dates. Leave"),
        (
            ["age"],
            {"bins": {"age": 2}, "kinds": {"age": "categorical"}},
            "of numbers, got 'age', which is 'categorical' by kinds. Leave it out of bins, or out",
        ),
        (["age"], {"bins": {"age": 2}, "kinds": {"age": "ordinal"}}, "which is 'ordinal' by kinds"),
        ([], {"bins": 3}, "a continuous sensitive column to cut, got 3 and no column as sensitive"),
        (["sex", "job"], {"bins": [5]}, r"got \[5\] and 'sex', 'job' as sensitive. Leave bins out"),
        (["age"], {"bins": 2, "kinds": {"age": "categorical"}}, "must have a continuous sensitive"),
        (["age"], {"bins": 1}, "bins must be a number of groups of at least 2"),
        (
            ["age"],
            {"bins": [5, 18]},
            r"bins must cut column 'age' into at least two groups with training rows, got the "
            r"edges \[5\.0, 18\.0\] and values from 18 to 77\. Choose edges between these, or",
        ),
    ],
)
def test_refused(sensitive, options, message):
    with pytest.raises(InvalidInputError, match=message):
        schema_of(sensitive=sensitive, **options)


@pytest.mark.parametrize("bins", [3, [2, 10]])
@pytest.mark.parametrize("values", [[7, 7, 7], [7, None, 7]])
def test_one_value_cannot_be_cut(values, bins):
    with pytest.raises(InvalidInputError, match=r"at least two groups .* and values from 7 to 7"):
        bins_of(values, bins)


def test_nothing_but_missing():
    with pytest.raises(InvalidInputError, match="'s' must hold at least one value, got 2 missing"):
        bins_of(pa.nulls(2, pa.float64()), 2)


# Which columns are cut


def kinds_of(**options):
    schema = schema_of(**options)
    return {column.name: column.kind for column in schema.columns}


@pytest.mark.parametrize("bins", [3, [40.0, 1_500.0]])
def test_alone_for_all_that_is_continuous_and_sensitive(bins):
    found = kinds_of(sensitive=["age", "sex", "job", "since"], bins=bins)
    assert (found["age"], found["since"]) == ("binned", "datetime")
    assert found["sex"] == found["job"] == "categorical"
    assert found["income"] == "numeric"  # not sensitive


def test_kinds_can_make_a_column_continuous():
    for told in ({"text": "numeric"}, {"sex": "numeric"}):
        (name,) = told
        assert kinds_of(sensitive=[name], kinds=told, bins=2)[name] == "binned"
        assert kinds_of(sensitive=[name], kinds=told, bins={name: 2})[name] == "binned"


def test_by_name_also_for_few_values_and_dictionaries():
    columns = {"a": pa.array([1, 2, 3, 4]).dictionary_encode(), "b": [1, 2, 3, 4]}
    schema = schema_of(columns, sensitive=["a", "b"], bins={"a": [3]})
    assert [column.kind for column in schema.columns] == ["binned", "categorical"]
    assert schema["a"].counts == (2, 2)


def test_each_its_own():
    schema = schema_of(sensitive=["income", "age"], bins={"age": [30, 50], "income": 4})
    assert [column.name for column in schema.categorical] == ["income", "age", "job", "text"]
    assert schema.cardinalities == (4, 3, 2, 60)
    assert schema.sensitive_features == ("income", "age")
    assert [feature.name for feature in schema.numeric][:2] == ["sex", "since.month"]


def test_positions_where_there_are_no_names():
    X = np.column_stack([AGES, TABLE["income"]])
    schema = infer_schema(read_table(X), sensitive=[0, 1], bins={1: [2_000]})
    assert [column.kind for column in schema.columns] == ["numeric", "binned"]


# The groups


def test_description():
    column = bins_of([20, 30, 25, None, 40, 34.5, 35, 99], [25, 35])["s"]
    assert column == BinnedColumn(
        name="s",
        edges=(25.0, 35.0),
        counts=(1, 3, 3, 1),
        n_missing=1,
        mode=1,
        low=20.0,
        high=99.0,
    )
    assert column.n_codes == 4
    assert column.missing == 3
    assert column.labels == ("below 25", "25 to below 35", "35 and above", "missing")
    assert column.features == (column,)


def test_labels_differ_where_groups_do():
    first, second = 1 / 3, np.nextafter(1 / 3, 1)
    assert len(set(bins_of([0.0, first, 1.0], [first, second])["s"].labels)) == 3


def test_labels_of_numbers_that_are_not_whole():
    column = bins_of([-1.5, 0, 0.25, 1e7], [-0.1, 0.125, 12_345_678])["s"]
    assert column.edges == (-0.1, 0.125)
    assert column.labels == ("below -0.1", "-0.1 to below 0.125", "0.125 and above")


NUMBERS = st.lists(st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float), min_size=2, max_size=60)


@given(NUMBERS, st.integers(2, 80))
def test_groups_of_about_equal_size(values, n_groups):
    values = np.array(values)
    distinct = np.unique(values)
    edges = find_edges(values, n_groups)
    if len(distinct) == 1:
        assert edges == ()
        return
    assert 1 <= len(edges) < n_groups
    counts = np.bincount(find_groups(values, edges), minlength=len(edges) + 1)
    assert (counts > 0).all()
    # Of all possible edges, those were chosen that are nearest to where one should be, no others.
    wanted = len(values) * np.arange(1, n_groups) / n_groups
    possible, chosen = (
        np.abs(np.array([np.count_nonzero(values < edge) for edge in some])[:, None] - wanted)
        for some in (distinct[1:], edges)
    )
    np.testing.assert_array_equal(chosen.min(axis=0), possible.min(axis=0))
    assert (chosen == possible.min(axis=0)).any(axis=1).all()


@given(st.lists(st.floats(-1e6, 1e6), unique=True, min_size=2, max_size=60), st.integers(2, 80))
def test_groups_differ_by_one_row_at_most_if_no_value_repeats(values, n_groups):
    edges = find_edges(np.array(values), n_groups)
    counts = np.bincount(find_groups(np.array(values), edges))
    assert len(counts) == min(n_groups, len(values))
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(
    ("values", "edge"),
    [
        ([34, 35], 35.0),
        ([2_347.1, 2_361.7], 2_360.0),
        ([-3.9, -3.27], -3.3),
        ([-1.0, 0.0], 0.0),
        ([1 / 3, np.nextafter(1 / 3, 1)], np.nextafter(1 / 3, 1)),
    ],
)
def test_edges_of_few_digits(values, edge):
    assert find_edges(np.array(values), 2) == (edge,)


def test_more_groups_than_rows():
    assert find_edges(np.array([3.0, 1.0, 2.0]), 10**12) == (2.0, 3.0)


def test_value_that_fills_several_groups():
    schema = bins_of([0.0] * 60 + [float(i) for i in range(1, 41)], 4)
    assert schema["s"].edges == (1.0, 16.0)
    assert schema["s"].counts == (60, 15, 25)


@given(NUMBERS, st.lists(st.floats(-10, 10), unique=True, min_size=1, max_size=5).map(sorted))
def test_given_edges_stay_where_there_are_rows_on_either_side(values, edges):
    values = np.array(values)
    found = find_edges(values, tuple(edges))
    counts = np.bincount(find_groups(values, found), minlength=len(found) + 1)
    assert set(found) <= set(edges)
    assert (counts > 0).all()
    # Rows that were in different groups still are.
    before, after = (find_groups(values, e) for e in (edges, found))
    np.testing.assert_array_equal(before[:, None] == before, after[:, None] == after)


# Rows


MAYBE = st.lists(st.floats(-50, 50) | st.none(), min_size=2, max_size=30)


@given(MAYBE, MAYBE, st.integers(2, 5) | st.just([-10.0, 0.0, 10.0]), st.booleans())
def test_codes(values, others, bins, keep_missing):
    missing = "category" if keep_missing else "mode"
    column_type = pa.float64()
    seen = {value for value in values if value is not None}
    groups = seen if isinstance(bins, int) else {sum(v >= edge for edge in bins) for v in seen}
    if len(groups) < 2:
        with pytest.raises(InvalidInputError, match=r"at least (two groups|one value)"):
            bins_of(pa.array(values, column_type), bins, missing_categorical=missing)
        return
    schema = bins_of(pa.array(values, column_type), bins, missing_categorical=missing)
    (column,) = schema.columns
    has_category = keep_missing and None in values
    assert column.n_codes == len(column.edges) + 1 + has_category
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codes = codes_of(pa.array(values, column_type), schema)
    own = [code for code, v in zip(codes, values, strict=True) if v is not None or has_category]
    np.testing.assert_array_equal(np.bincount(own, minlength=column.n_codes), column.counts)
    assert not schema.diff(pa.table({"s": pa.array(values, column_type)}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenCategoryWarning)
        codes = codes_of(pa.array(others, column_type), schema)
    for value, code in zip(others, codes, strict=True):
        if value is None:
            assert code == (len(column.edges) + 1 if has_category else column.mode)
        else:
            assert code == sum(value >= edge for edge in column.edges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fcorr.data.tables.BLOCK", 3)
        patch.setattr(warnings, "warn", lambda *args, **options: None)
        np.testing.assert_array_equal(codes_of(pa.array(others, column_type), schema), codes)
    assert Schema.from_json(schema.to_json()) == schema


@pytest.mark.parametrize("column_type", [pa.float32(), pa.int16(), pa.string(), pa.decimal128(5)])
def test_numbers_of_any_type(column_type):
    schema = bins_of(AGES, [25, 40])
    ages = pa.array(AGES, pa.int16()).cast(column_type)
    for values in (ages, ages.dictionary_encode()):
        np.testing.assert_array_equal(codes_of(values, schema), codes_of(AGES, schema))


def test_the_same_whatever_the_library(as_frame):
    schema = bins_of(AGES, 3)
    encoded = encode(read_table(as_frame({"s": AGES})), schema)
    np.testing.assert_array_equal(encoded.codes[:, 0], np.repeat([0, 1, 2], 20))


@pytest.mark.parametrize("missing", ["category", "mode"])
def test_missing_where_training_had_none_counts_as_unseen(missing):
    schema = bins_of([1, 2, 3, 4, 5], [2], missing_categorical=missing)
    with pytest.warns(UnseenCategoryWarning) as caught:
        codes = codes_of([None, float("nan"), 0.0, 9.0], schema)
    assert str(caught[0].message) == (
        "Categories not seen in training: 2 row(s) of 's'. "
        "Each is taken for the most frequent training category of its column."
    )
    np.testing.assert_array_equal(codes, [1, 1, 0, 1])


def test_unread():
    schema = bins_of(AGES, [30])
    table = read_table(pl.DataFrame({"s": ["old", "young"]}))
    np.testing.assert_array_equal(encode(table, schema, read_sensitive=False).codes, [[1], [1]])


# Differences and errors


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["18", "old"], "Column 's' must hold numbers, got text: 'old' in row 1"),
        ([18, float("inf")], "Column 's' must hold finite numbers within ±3.4e+38, got inf in row"),
        (TABLE["since"], "Column 's' must hold numbers, got dates: 2020-01-01 in row 0"),
        ([18, 99], "Column 's' has 1 row(s) outside the training range, 18 to 77: up to 99"),
        ([18, None], "Column 's' has 1 missing value(s); training had none"),
    ],
)
def test_differences_are_those_of_numbers(values, text):
    cut = bins_of(AGES, 4)
    uncut = schema_of({"s": AGES}, sensitive=["s"])
    X = pa.table({"s": values})
    (difference,) = cut.diff(X)
    assert difference.text.startswith(text)
    assert cut.diff(X) == uncut.diff(X)
    if difference.is_fatal:
        with pytest.raises(InvalidInputError) as caught:
            encode(read_table(X), cut)
        assert str(caught.value).startswith(f"X must fit the training table: {text}")


@pytest.mark.parametrize(
    "damage",
    [
        {"edges": []},
        {"edges": [35.0, 25.0]},
        {"edges": [25.0, 25.0]},
        {"edges": [25.0, float("nan")]},
        {"edges": [18.0, 25.0]},
        {"edges": [25.0, 78.0]},
        {"counts": [1, 2]},
        {"counts": [1, 2, 3, 4, 5]},
        {"counts": [1, 2, -3]},
        {"mode": 3},
        {"mode": -1},
        {"n_missing": -1},
        {"low": 90.0},
    ],
    ids=repr,
)
def test_data_that_no_table_could_have_given(damage):
    data = bins_of(AGES, [25, 35]).to_dict()
    assert data["columns"][0]["kind"] == "binned"
    data["columns"][0] |= damage
    with pytest.raises(InvalidInputError, match="contradicts itself"):
        Schema.from_dict(data)
