"""Missing values of a sensitive column are a category: counted, flipped and flipped to."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fcorr.metrics import average_individual_fairness, flip_changes, flip_scores
from fcorr.metrics._checks import is_missing

NAN = float("nan")
SEX = ["m", None, "f", None]
CODE = [2.0, NAN, 1.0, NAN]
AGE = [30, 40, 50, 60]
EFFECT = {"f": 1, "m": 2, 1: 1, 2: 2}


def objects(missing: Any) -> pd.Series:
    return pd.Series(["m", missing, "f", missing], dtype=object)


COLUMNS: dict[str, Any] = {
    "pandas text": pd.Series(SEX),
    "pandas None": objects(None),
    "pandas NaN among text": objects(np.nan),
    "pandas NA among text": objects(pd.NA),
    "pandas categorical": pd.Series(SEX, dtype="category"),
    "pandas ordered": pd.Series(pd.Categorical(SEX, ["x", "m", "f"], ordered=True)),
    "pandas floats": pd.Series(CODE),
    "pandas integers": pd.Series([2, None, 1, None], dtype="Int64"),
    "pandas from arrow": pd.Series([2, None, 1, None], dtype="int64[pyarrow]"),
    "polars text": pl.Series(SEX),
    "polars categorical": pl.Series(SEX, dtype=pl.Categorical),
    "polars enum": pl.Series(SEX, dtype=pl.Enum(["x", "m", "f"])),
    "polars null": pl.Series([2, None, 1, None]),
    "polars NaN": pl.Series(CODE),
    "polars NaN and null": pl.Series([2.0, None, 1.0, NAN]),
    "pyarrow text": pa.array(SEX),
    "pyarrow dictionary": pa.array(SEX).dictionary_encode(),
    "pyarrow NaN and null": pa.array([2.0, NAN, 1.0, None]),
    "numpy objects": np.array(SEX, dtype=object),
    "numpy NaN among objects": np.array(["m", np.nan, "f", np.nan], dtype=object),
    "numpy floats": np.array(CODE),
}


def table_with(column: Any) -> Any:
    if isinstance(column, pd.Series):
        return pd.DataFrame({"sex": column, "age": AGE}, index=None).set_axis([5, 5, 9, 0])
    if isinstance(column, pl.Series):
        return pl.DataFrame({"sex": column, "age": AGE})
    if isinstance(column, np.ndarray):
        return np.column_stack([column, np.array(AGE, dtype=column.dtype)])
    return pa.table({"sex": column, "age": AGE})


def column_of(table: Any, name: str) -> list[Any]:
    if isinstance(table, np.ndarray):
        return list(table[:, ["sex", "age"].index(name)])
    return table[name].to_pylist() if isinstance(table, pa.Table) else list(table[name])


def dtype_of(table: Any) -> Any:
    if isinstance(table, np.ndarray):
        return table.dtype
    return table["sex"].type if isinstance(table, pa.Table) else table["sex"].dtype


def age_and_sex(table: Any) -> Any:
    return [
        age + (0 if is_missing(sex) else EFFECT[sex])
        for age, sex in zip(column_of(table, "age"), column_of(table, "sex"), strict=True)
    ]


each_column = pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())


@each_column
def test_missing_is_a_category_and_the_last(column: Any) -> None:
    table = table_with(column)
    flips = flip_scores(age_and_sex, table, 0 if isinstance(table, np.ndarray) else "sex")
    assert flips.categories in [("f", "m", None), (1, 2, None)]
    assert flips.original.tolist() == [1, 2, 0, 2]
    assert flips.scores.tolist() == [[age + 1, age + 2, age] for age in AGE]
    assert flips.factual.tolist() == age_and_sex(table) == [32, 40, 51, 60]
    assert flips.groups in [["m", None, "f", None], [2, None, 1, None]]


@each_column
def test_all_rows_are_flipped_to_missing_as_the_table_writes_it(column: Any) -> None:
    table, seen = table_with(column), []

    def predict(flipped: Any) -> Any:
        seen.append(flipped)
        return age_and_sex(flipped)

    flip_scores(predict, table, 0 if isinstance(table, np.ndarray) else "sex")
    assert {str(dtype_of(flipped)) for flipped in seen} == {str(dtype_of(table))}
    first_missing = column_of(table, "sex")[1]
    written = column_of(seen[-1], "sex")
    assert all(is_missing(value) for value in written)
    assert [type(value) for value in written] == [type(first_missing)] * 4
    assert not any(
        is_missing(value) for flipped in seen[:-1] for value in column_of(flipped, "sex")
    )


WITHOUT: dict[str, Any] = {
    "pandas text": pd.Series(["m", "f", "f", "m"]),
    "pandas categorical": pd.Series(["m", "f", "f", "m"], dtype="category"),
    "pandas floats": pd.Series([2.0, 1, 1, 2]),
    "pandas integers": pd.Series([2, 1, 1, 2], dtype="Int64"),
    "polars text": pl.Series(["m", "f", "f", "m"]),
    "polars enum": pl.Series(["m", "f", "f", "m"], dtype=pl.Enum(["m", "f"])),
    "polars integers": pl.Series([2, 1, 1, 2]),
    "pyarrow integers": pa.array([2, 1, 1, 2]),
    "pyarrow dictionary": pa.array(["m", "f", "f", "m"]).dictionary_encode(),
    "numpy objects": np.array(["m", "f", "f", "m"], dtype=object),
    "numpy floats": np.array([2.0, 1, 1, 2]),
}


@pytest.mark.parametrize("missing", [None, NAN, pd.NA], ids=["None", "NaN", "NA"])
@pytest.mark.parametrize("column", WITHOUT.values(), ids=WITHOUT.keys())
def test_missing_can_be_asked_for(column: Any, missing: Any) -> None:
    table = table_with(column)
    names = ("f", "m") if "m" in column_of(table, "sex") else (1, 2)
    sensitive = 0 if isinstance(table, np.ndarray) else "sex"
    flips = flip_scores(age_and_sex, table, sensitive, categories=[missing, *names])
    assert flips.categories == (None, *names)
    assert flips.original.tolist() == [2, 1, 1, 2]
    assert flips.scores.tolist() == [[age, age + 1, age + 2] for age in AGE]


def test_one_value_and_missing_are_two_categories() -> None:
    table = pd.DataFrame({"sex": ["f", None, "f"]})
    flips = flip_scores(lambda X: X["sex"].isna(), table, "sex")
    assert flips.categories == ("f", None)
    assert average_individual_fairness(flips) == 2.0  # for both categories the scores move by 1
    assert flip_changes(flips)["mean"] == 1.0
