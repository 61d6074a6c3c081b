from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fcorr._core import InvalidInputError
from fcorr.metrics import FlippedScores, flip_scores

SEX = ["m", "f", "f"]
AGE = [30, 40, 50]
EFFECT = {"f": 0, "m": 1, "x": 5}
FLIPPED = [[30, 31], [40, 41], [50, 51]]


def pandas(labels: Any = None) -> pd.DataFrame:
    sex = SEX if labels is None else labels
    return pd.DataFrame({"sex": sex, "age": AGE}, index=[5, 5, 9])


TABLES: dict[str, Any] = {
    "pandas": pandas(),
    "pandas categorical": pandas(pd.Categorical(SEX, categories=["x", "m", "f"])),
    "pandas ordered": pandas(pd.Categorical(SEX, categories=["x", "m", "f"], ordered=True)),
    "polars": pl.DataFrame({"sex": SEX, "age": AGE}),
    "polars categorical": pl.DataFrame({"sex": pl.Series(SEX, dtype=pl.Categorical), "age": AGE}),
    "polars enum": pl.DataFrame(
        {"sex": pl.Series(SEX, dtype=pl.Enum(["x", "m", "f"])), "age": AGE}
    ),
    "pyarrow": pa.table({"sex": SEX, "age": AGE}),
    "pyarrow dictionary": pa.table({"sex": pa.array(SEX).dictionary_encode(), "age": AGE}),
}


def columns_of(table: Any) -> tuple[list[str], list[int]]:
    if isinstance(table, pa.Table):
        return table["sex"].to_pylist(), table["age"].to_pylist()
    return list(table["sex"]), list(table["age"])


def dtype_of(table: Any) -> Any:
    return table["sex"].type if isinstance(table, pa.Table) else table["sex"].dtype


def age_and_sex(table: Any) -> Any:
    sex, age = columns_of(table)
    return np.array([years + EFFECT[label] for years, label in zip(age, sex, strict=True)])


each_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())


@each_table
def test_every_row_is_scored_under_every_category(table: Any) -> None:
    flips = flip_scores(age_and_sex, table, "sex")
    assert flips.categories == ("f", "m")
    assert flips.original.tolist() == [1, 0, 0]
    assert flips.scores.tolist() == FLIPPED
    assert flips.factual.tolist() == age_and_sex(table).tolist() == [31, 40, 50]


@each_table
def test_predict_sees_the_same_kind_of_table_and_column(table: Any) -> None:
    seen: list[Any] = []

    def predict(flipped: Any) -> Any:
        seen.append(flipped)
        return age_and_sex(flipped)

    before = columns_of(table)
    flip_scores(predict, table, "sex")
    assert columns_of(table) == before  # the table itself is as it was
    assert [columns_of(flipped)[0] for flipped in seen] == [["f"] * 3, ["m"] * 3]
    for flipped in seen:
        assert type(flipped) is type(table)
        assert dtype_of(flipped) == dtype_of(table)
        if isinstance(table, pd.DataFrame):
            pd.testing.assert_index_equal(flipped.index, table.index)
            pd.testing.assert_index_equal(flipped.columns, table.columns)


@each_table
def test_a_category_that_no_row_has_can_be_asked_for(table: Any) -> None:
    flips = flip_scores(age_and_sex, table, "sex", categories=["m", "x", "f"])
    assert flips.categories == ("m", "x", "f")
    assert flips.original.tolist() == [0, 2, 2]
    assert flips.scores.tolist() == [[31, 35, 30], [41, 45, 40], [51, 55, 50]]


@pytest.mark.parametrize("position", [1, -1, np.int64(1)])
def test_numpy_array(position: int) -> None:
    X = np.array([[30.0, 1], [40, 0], [50, 0]])
    before = X.copy()
    seen: list[Any] = []

    def predict(flipped: Any) -> Any:
        seen.append(flipped)
        return flipped.sum(axis=1)

    flips = flip_scores(predict, X, position)
    np.testing.assert_array_equal(X, before)
    assert flips.scores.tolist() == FLIPPED
    assert [flipped[:, 1].tolist() for flipped in seen] == [[0.0] * 3, [1.0] * 3]


def test_numpy_array_of_text() -> None:
    X = np.array([["m", "a"], ["f", "a"]])
    flips = flip_scores(lambda X: X[:, 0] == "m", X, 0)
    assert flips.scores.tolist() == [[0, 1], [0, 1]]


def test_the_footnote_of_the_paper() -> None:
    # 40 men and 60 women make four partitions of 40, 40, 60 and 60, in all 200 rows.
    table = pd.DataFrame({"gender": ["male"] * 40 + ["female"] * 60, "row": np.arange(100.0)})
    flips = flip_scores(
        lambda flipped: flipped["row"] + 1000 * (flipped["gender"] == "female"),
        table,
        "gender",
        categories=["male", "female"],
    )
    men, women = flips.take(flips.original == 0), flips.take(flips.original == 1)
    assert (len(men), len(women), flips.scores.size) == (40, 60, 200)
    factual = table["row"] + 1000 * (table["gender"] == "female")
    np.testing.assert_array_equal(men.scores[:, 0], factual[:40])  # the men as they are
    np.testing.assert_array_equal(men.scores[:, 1], factual[:40] + 1000)  # counterfactual women
    np.testing.assert_array_equal(women.scores[:, 0], factual[40:] - 1000)  # counterfactual men
    np.testing.assert_array_equal(women.scores[:, 1], factual[40:])  # the women as they are


@pytest.mark.parametrize(
    "shape",
    [
        lambda p: p,
        lambda p: p.tolist(),
        lambda p: p[:, None],
        lambda p: np.column_stack([1 - p, p]),
        lambda p: np.column_stack([1 - p, p]).astype(np.float32),
        lambda p: pd.Series(p),
        lambda p: pl.Series(p),
        lambda p: pa.chunked_array([p]),
        lambda p: pd.DataFrame({"no": 1 - p, "yes": p}),
    ],
)
def test_scores_in_several_shapes(shape: Any) -> None:
    flips = flip_scores(lambda X: shape(age_and_sex(X) / 100), pandas(), "sex")
    np.testing.assert_allclose(flips.scores, np.array(FLIPPED) / 100, rtol=1e-6)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (
            np.zeros((3, 4)),
            r"one score per row .* for 3 rows, got shape \(3, 4\). Wrap it to choose",
        ),
        (np.zeros((3, 2)), r"two columns of probabilities .* got shape \(3, 2\)"),
        (np.zeros(2), r"for 3 rows, got shape \(2,\)"),
        (0.5, r"got shape \(\)"),
        (["a", "b", "c"], r"predict\(X\) must hold numbers"),
        ([1, np.nan, 2], r"predict\(X\) must be finite, got 1 missing"),
        (np.full((3, 2), np.nan), r"predict\(X\) must be finite, got 3 missing"),
    ],
)
def test_bad_scores(output: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        flip_scores(lambda X: output, pandas(), "sex")


@pytest.mark.parametrize(
    ("X", "sensitive", "text"),
    [
        (
            pandas(),
            "sexx",
            r"name a column of X, got 'sexx'. Did you mean 'sex'\? X has 'sex', 'age'",
        ),
        (pandas(), 0, r"name a column of X, got 0"),
        (np.zeros((2, 3)), 3, r"position of a column .* got 3 for 3 columns. Pass an integer"),
        (np.zeros((2, 3)), "sex", r"position of a column .* got 'sex'"),
        (np.zeros(3), 0, r"X must have rows and columns, got an array of shape \(3,\)"),
        ([[1, 2]], 0, r"X must be a pandas, polars or pyarrow table .* got list"),
        (pl.LazyFrame({"sex": SEX}), "sex", r"in memory .* got LazyFrame. Collect"),
        (
            pandas(["f"] * 3),
            "sex",
            r"two categories or more, .* 'sex' has 1: 'f'. Pass categories=",
        ),
        (pandas()[:0], "sex", r"the sensitive column 'sex' must have rows, got none"),
    ],
)
def test_bad_table(X: Any, sensitive: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        flip_scores(age_and_sex, X, sensitive)


@pytest.mark.parametrize(
    ("X", "sensitive", "categories", "text"),
    [
        (pandas(), "sex", ["f", "x"], r"every value that occurs, got rows of .* with 'm'. Add"),
        (pandas(), "sex", ["f", "m", "f"], r"categories must differ, got 'f', 'm', 'f'"),
        (TABLES["pandas categorical"], "sex", ["f", "m", "q"], r"'sex' can hold, got 'q'"),
        (TABLES["polars enum"], "sex", ["f", "m", "q"], r"'sex' can hold, got 'q'"),
        (pandas(), "age", [*AGE, 60.5], r"'age' can hold, got 60.5"),
        (TABLES["polars"], "age", [*AGE, "old"], r"'age' can hold, got 'old'"),
        (TABLES["pyarrow"], "age", [*AGE, "old"], r"'age' can hold, got 'old'"),
        (np.array([[0], [1]]), 0, [0, 1, 2.5], r"column 0 can hold, got 2.5 for int64"),
        (np.array([["m"], ["f"]]), 0, ["f", "m", "none"], r"column 0 can hold, got 'none' for <U1"),
        (np.array([[0], [1]]), 0, [0, 1, "a"], r"column 0 can hold, got 'a'"),
        (np.array([[0], [1]]), 0, [0, 1, None], r"column 0 can hold, got None for int64"),
        (np.array([["m"], ["f"]]), 0, ["f", "m", None], r"column 0 can hold, got None for <U1"),
        (np.array([[False], [True]]), 0, [False, True, None], r"can hold, got None for bool"),
        (pandas(), "age", [*AGE, None], r"'age' can hold, got None for Int64"),
        (pandas([True, False, True]), "sex", [False, True, None], r"can hold, got None for Bool"),
        (pandas(), "sex", {"sexx": ["f"]}, r"of sensitive columns, got 'sexx'. Did you mean 'sex'"),
    ],
)
def test_bad_categories(X: Any, sensitive: Any, categories: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        flip_scores(lambda X: np.zeros(len(X)), X, sensitive, categories=categories)


@pytest.mark.parametrize(
    ("original", "scores", "text"),
    [
        ([0, 1], [[1.0, 2.0]], r"one row per original category .* got shape \(1, 2\)"),
        ([0, 2], np.zeros((2, 2)), r"positions in categories, 0 to 1, got int64 from 0 to 2"),
        ([0.0, 1.0], np.zeros((2, 2)), r"positions in categories, 0 to 1, got float64"),
        ([0, 1], [[0, np.nan], [0, 0]], r"scores must be finite, got 1 that are not"),
        (np.zeros(0, dtype=int), np.zeros((0, 2)), r"scores must have rows"),
    ],
)
def test_flipped_scores_are_checked(original: Any, scores: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        FlippedScores(("f", "m"), original, scores)


@pytest.mark.parametrize(
    ("factual", "text"),
    [
        ([0.5], r"factual_scores must have one score per row, got shape \(1,\) for 2 rows"),
        (np.zeros((2, 2)), r"factual_scores must have one score per row, got shape \(2, 2\)"),
        ([0.5, np.inf], r"factual_scores must be finite, got 1 that are not"),
    ],
)
def test_factual_scores_are_checked(factual: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        FlippedScores(("f", "m"), [0, 1], np.zeros((2, 2)), factual)


def test_a_row_as_it_is_counts_among_its_scores() -> None:
    flips = FlippedScores((1, 2), [0, 1, 0], [[0, 1], [0, 1], [0, 1]], [-1, 3, 0.5])
    assert flips.factual.tolist() == [-1, 3, 0.5]
    assert flips.lowest.tolist() == [-1, 0, 0]
    assert flips.highest.tolist() == [1, 3, 1]
    assert flips.changes.tolist() == [2, 3, 1]
    assert flips.groups == [1, 2, 1]
    taken = flips.take([2, 2, 0])
    assert taken.factual.tolist() == [0.5, 0.5, -1]
    assert flips.take(np.array([False, True, False])).changes.tolist() == [3]


def test_without_scores_of_its_own_a_row_has_those_of_its_category() -> None:
    flips = FlippedScores((1, 2), [0, 1], [[0, 1], [4, 2]])
    assert flips.factual_scores is None
    assert flips.take([1]).factual_scores is None
    assert flips.changes.tolist() == [1, 2]
