from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcorr._core import InvalidInputError
from fcorr.metrics._checks import describe_label, encode_groups, encode_labels

NAN = float("nan")
MISSING = {
    "list": ["m", None, "f", NAN],
    "numpy object": np.array(["m", None, "f", np.nan], dtype=object),
    "pandas text": pd.Series(["m", None, "f", None]),
    "pandas objects": pd.Series(["m", pd.NA, "f", np.nan], dtype=object),
    "pandas categorical": pd.Series(["m", None, "f", None], dtype="category"),
    "pandas with an unused category": pd.Series(
        pd.Categorical(["m", None, "f", None], categories=["x", "m", "f"])
    ),
    "polars": pl.Series(["m", None, "f", None]),
    "pyarrow": pa.array(["m", None, "f", None]),
    "pyarrow dictionary": pa.chunked_array([["m", None, "f", None]]).dictionary_encode(),
}
MISSING_NUMBERS = {
    "numpy": np.array([2.0, np.nan, 1, np.nan]),
    "pandas": pd.Series([2.0, np.nan, 1, np.nan]),
    "pandas integers": pd.Series([2, None, 1, None], dtype="Int64"),
    "pandas from arrow": pd.Series([2, None, 1, None], dtype="int64[pyarrow]"),
    "polars with both": pl.Series([2.0, None, 1.0, NAN]),
    "pyarrow with both": pa.array([2.0, None, 1.0, NAN]),
}


@pytest.mark.parametrize("labels", MISSING.values(), ids=MISSING.keys())
def test_missing_is_the_last_label(labels: Any) -> None:
    categories, codes = encode_labels(labels, "sex")
    assert categories == ("f", "m", None)
    assert codes.tolist() == [1, 2, 0, 2]


@pytest.mark.parametrize("labels", MISSING_NUMBERS.values(), ids=MISSING_NUMBERS.keys())
def test_missing_numbers_too(labels: Any) -> None:
    categories, codes = encode_labels(labels, "sex")
    assert categories == (1, 2, None)
    assert codes.tolist() == [1, 2, 0, 2]


def test_missing_dates_too() -> None:
    dates = pd.Series(pd.to_datetime(["2020-01-02", None, "2020-01-01"]))
    assert encode_labels(dates, "day").codes.tolist() == [1, 2, 0]
    assert encode_labels(dates, "day").categories[-1] is None


def test_missing_is_last_also_among_labels_that_do_not_compare() -> None:
    assert encode_labels(["a", None, 1], "mixed").categories == (1, "a", None)


def test_text_that_reads_missing_is_not() -> None:
    assert encode_labels(["None", "nan", None], "text").categories == ("None", "nan", None)


LABEL = st.one_of(st.none(), st.integers(0, 2), st.sampled_from(["a", "b"]))


@given(st.lists(st.tuples(LABEL, LABEL, LABEL), min_size=1, max_size=20))
def test_several_columns_are_coded_by_their_combinations(rows: list[tuple[Any, ...]]) -> None:
    columns = dict(enumerate(zip(*rows, strict=True)))
    categories, codes = encode_groups(columns, "groups")
    assert [categories[code] for code in codes] == rows
    assert set(categories) == set(rows)
    assert len(categories) == len(set(rows))


def test_groups_are_sorted_by_the_first_column_then_the_next() -> None:
    columns = {"sex": [None, "m", "f", "f"], "age": [1, 2, None, 10]}
    assert encode_groups(columns, "groups").categories == (
        ("f", 10),
        ("f", None),
        ("m", 2),
        (None, 1),
    )


def test_many_columns_do_not_overflow() -> None:
    # 1,000 labels in each of 30 columns have 10^90 combinations, of which 1,000 occur.
    column = np.random.default_rng(0).permutation(1000)
    categories, codes = encode_groups(dict.fromkeys(range(30), column), "groups")
    assert categories[3] == (3,) * 30
    assert codes.tolist() == column.tolist()


def test_one_column_of_a_table_is_that_column() -> None:
    assert encode_groups(pd.DataFrame({"sex": ["m", "f"]}), "groups").categories == ("f", "m")


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ({}, "groups must have a column, got none"),
        (pd.DataFrame(index=[0, 1]), "groups must have a column, got none"),
        ({"a": [1, 2], "b": [1]}, r"same number of rows, got \{'a': 2, 'b': 1\}. Take them"),
        ({"a": [1], "b": []}, "groups 'b' must have rows"),
        ({"a": np.ones((2, 2))}, r"groups 'a' must be one column .* got ndarray of shape \(2, 2\)"),
    ],
)
def test_bad_columns(groups: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        encode_groups(groups, "groups")


def test_descriptions() -> None:
    assert [describe_label(label) for label in (None, 3, ("a", 3, None))] == [
        "missing",
        "3",
        "a, 3, missing",
    ]
