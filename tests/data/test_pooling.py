"""Rare categories share one code, and so do those that training did not see."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcorr._core import InvalidInputError, UnseenCategoryWarning
from fcorr.data import encode, infer_schema, read_table

LETTERS = st.lists(st.sampled_from("abcdef") | st.none(), min_size=1, max_size=60)


def schema_of(values, **options):
    return infer_schema(read_table(pa.table({"a": values})), **options)


def codes_of(values, schema):
    return encode(read_table(pa.table({"a": values})), schema).codes[:, 0]


@given(LETTERS, st.integers(1, 8))
def test_a_category_is_pooled_if_it_has_too_few_rows(values, min_category_rows):
    counts = {value: values.count(value) for value in set(values) - {None}}
    frequent = sorted(value for value, n in counts.items() if n >= min_category_rows)
    if not frequent:
        with pytest.raises(InvalidInputError, match=r"must (have categories that repeat|hold at)"):
            schema_of(values, min_category_rows=min_category_rows)
        return
    schema = schema_of(values, min_category_rows=min_category_rows)
    (column,) = schema.columns
    assert [c for c in column.categories if c is not None] == frequent
    assert column.n_pooled == len(counts) - len(frequent)
    n_frequent = sum(counts[value] for value in frequent)
    assert column.n_pooled_rows == sum(counts.values()) - n_frequent
    assert column.n_codes == len(column.categories) + (column.n_pooled > 0)
    assert schema.cardinalities == (column.n_codes,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codes = codes_of(values, schema)
    for value, code in zip(values, codes, strict=True):
        if value in column.categories:
            assert column.categories[code] == value
        else:
            assert code == column.pool


@pytest.mark.parametrize(
    ("n_rows", "n_rare", "pooled"),
    [(1_000, 1, 0), (1_001, 1, 1), (2_000, 1, 1), (2_000, 2, 0), (50_000, 9, 1), (50_000, 10, 0)],
)
def test_automatic_rule(n_rows, n_rare, pooled):
    values = ["x"] * (n_rows - n_rare) + ["rare"] * n_rare
    (column,) = schema_of(values).columns
    assert column.n_pooled == pooled


def test_category_called_other_is_not_the_pool():
    values = ["other"] * 3 + ["y"] * 2 + ["z"]
    schema = schema_of(values, min_category_rows=3)
    np.testing.assert_array_equal(codes_of(["other", "y", "z"], schema), [0, 1, 1])


def test_unseen_categories_go_to_the_pool_without_a_warning():
    schema = schema_of(["x"] * 3 + ["y"], min_category_rows=2)
    np.testing.assert_array_equal(codes_of(["x", "new", "y"], schema), [0, 1, 1])


def test_missing_where_training_had_none_is_the_mode_and_not_the_pool():
    schema = schema_of(["x"] * 3 + ["y"], min_category_rows=2)
    with pytest.warns(UnseenCategoryWarning, match=r"1 row\(s\) of 'a'"):
        codes = codes_of([None, "new", "x"], schema)
    np.testing.assert_array_equal(codes, [0, 1, 0])


def test_mode_is_never_the_pool():
    schema = schema_of(["x"] * 2 + [f"rare {i}" for i in range(9)], min_category_rows=2)
    assert schema.columns[0].mode == 0
    assert schema.columns[0].n_pooled_rows == 9


def test_sensitive_and_boolean_columns_are_never_pooled():
    table = pa.table({"s": ["f"] * 5 + ["m"], "b": [True] * 5 + [False], "c": ["x"] * 5 + ["y"]})
    schema = infer_schema(read_table(table), sensitive=["s"], min_category_rows=3)
    assert {c.name: c.n_pooled for c in schema.categorical} == {"s": 0, "b": 0, "c": 1}


@pytest.mark.parametrize("values", [[f"k{i}" for i in range(20_000)], list(range(20_000))])
def test_key(values):
    message = (
        r"Column 'a' must have categories that repeat, got 20000 of them and each in fewer than "
        r"10 rows: it is a key, or nearly empty\. Drop it, or pass min_category_rows=1"
    )
    with pytest.raises(InvalidInputError, match=message):
        schema_of(values, kinds={"a": "categorical"})
    assert schema_of(values, kinds={"a": "categorical"}, min_category_rows=1).cardinalities == (
        20_000,
    )


def test_a_hundred_thousand_categories():
    names = [f"shop {i:06}" for i in range(100_000)]
    values = pa.array(names * 2)
    schema = schema_of(values, min_category_rows=2)
    assert schema.cardinalities == (100_000,)
    np.testing.assert_array_equal(codes_of(values, schema), np.tile(np.arange(100_000), 2))
    assert type(schema).from_json(schema.to_json()) == schema
