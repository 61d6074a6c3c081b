"""A row of weight 0 is as if it were not there, whatever it holds."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fcorr import FCorrClassifier, FCorrRegressor
from fcorr._core import InvalidInputError

QUICK = {"n_members": 1, "head": (4,), "epochs": 2, "random_state": 0}
IS_KEPT = np.random.default_rng(1).random(120) < 0.7
WEIGHT = np.where(IS_KEPT, np.random.default_rng(2).uniform(0.5, 2, 120), 0.0)


def draw(seed=0):
    """Draw rows; those that are not kept are far off, and hold categories of their own."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": np.where(IS_KEPT, rng.choice(["f", "m"], 120), "x"),
            "age": np.where(IS_KEPT, rng.normal(40, 10, 120), 1e6),
            "job": np.where(IS_KEPT, rng.choice(["clerk", "nurse", "pilot"], 120), "none"),
            "income": np.where(IS_KEPT, rng.lognormal(size=120), np.nan),
            "years": np.where(IS_KEPT, rng.uniform(0.1, 1, 120), -1.0),  # no exposure at all
        }
    )


def draw_y(kind, seed=0):
    rng = np.random.default_rng(seed + 100)
    if kind == "labels":
        return np.where(IS_KEPT, rng.choice(["no", "yes"], 120), "never")
    return np.where(IS_KEPT, rng.poisson(1, 120), np.nan)


def assert_same(model, other, folder):
    """Compare all that was learnt, to the bit: weights, schema, history, balance, threshold."""
    files = [folder / "model", folder / "other"]
    for each, file in zip([model, other], files, strict=True):
        each.save(file)
    assert files[0].read_bytes() == files[1].read_bytes()


CASES = {
    "adapt": (FCorrClassifier, {"sensitive": ["sex", "age"], "threshold": "f1"}),
    "marginal": (FCorrClassifier, {"sensitive": "age", "invariance": "marginal"}),
    "class weights": (FCorrClassifier, {"sensitive": "age", "class_weight": "balanced"}),
    "early stopping": (FCorrClassifier, {"advanced": {"early_stopping": True}}),
    "squares": (FCorrRegressor, {"sensitive": "age", "advanced": {"missing_numeric": "category"}}),
    "exposure": (FCorrRegressor, {"objective": "poisson", "exposure": "years"}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_row_of_weight_0_is_not_there(case, tmp_path):
    cls, options = CASES[case]
    X, y = draw(), draw_y("labels" if cls is FCorrClassifier else "counts")
    model = cls(**QUICK, **options).fit(X, y, WEIGHT)
    other = cls(**QUICK, **options).fit(X[IS_KEPT], y[IS_KEPT], WEIGHT[IS_KEPT])
    assert model.schema_.n_rows == IS_KEPT.sum()
    assert_same(model, other, tmp_path)


@pytest.mark.parametrize(
    "make",
    [
        lambda X: X.set_axis([7] * len(X)),
        lambda X: X.astype({"job": "category"}),
        pl.from_pandas,
        lambda X: pa.Table.from_pandas(X, preserve_index=False),
        lambda X: X.to_numpy(),
        lambda X: X.to_numpy().tolist(),
    ],
    ids=["pandas", "categories", "polars", "pyarrow", "array", "lists"],
)
def test_in_any_library(make, tmp_path):
    X, y = draw(), draw_y("labels")
    model = FCorrClassifier(**QUICK).fit(make(X), y.tolist(), pl.Series("w", WEIGHT))
    X, y, weight = X[IS_KEPT], y[IS_KEPT], pl.Series("w", WEIGHT[IS_KEPT])
    other = FCorrClassifier(**QUICK).fit(make(X), y, weight)
    assert_same(model, other, tmp_path)


def test_in_the_eval_set(tmp_path):
    X, y, held_out, held_out_y = draw(), draw_y("counts"), draw(1), draw_y("counts", 1)
    options = {**QUICK, "epochs": 8, "advanced": {"early_stopping": 1}, "objective": "poisson"}
    chosen = (held_out[IS_KEPT], held_out_y[IS_KEPT], WEIGHT[IS_KEPT])
    model, other = (
        FCorrRegressor(**options, exposure="years").fit(X, y, WEIGHT, eval_set)
        for eval_set in [(held_out, held_out_y, WEIGHT), chosen]
    )
    assert_same(model, other, tmp_path)


def test_a_target_may_be_missing_where_the_weight_is_0():
    X, y = draw(), [None if label == "never" else label for label in draw_y("labels")]
    assert FCorrClassifier(**QUICK).fit(X, y, WEIGHT).classes_.tolist() == [
        "no",
        "yes",
    ]


def test_a_class_without_weight_is_none():
    X, y = draw()[IS_KEPT], draw_y("labels")[IS_KEPT]
    with pytest.raises(InvalidInputError, match="at least two classes, got only one class: 'no'"):
        FCorrClassifier(**QUICK).fit(X, y, y == "no")


def spoil(X, name, row, value):
    return X.assign(**{name: [value if i == row else v for i, v in enumerate(X[name])]})


LAST = int(np.flatnonzero(IS_KEPT)[-1])
WRONG = {
    "number": (lambda X: spoil(X, "age", LAST, np.inf), lambda y: y, {}),
    "text": (lambda X: spoil(X, "age", LAST, "old").astype({"age": str}), lambda y: y, {}),
    "exposure": (lambda X: spoil(X, "years", LAST, 0.0), lambda y: y, {}),
    "order": (lambda X: X, lambda y: y, {"kinds": {"job": ["clerk", "nurse"]}}),
    "target": (lambda X: X, lambda y: np.where(np.arange(120) == LAST, np.nan, y), {}),
    "count": (lambda X: X, lambda y: np.where(np.arange(120) == LAST, -1, y), {}),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_count_the_rows_of_weight_0(case):
    change_X, change_y, options = WRONG[case]
    kinds = {"age": "numeric", **options.get("kinds", {})}
    model = FCorrRegressor(**QUICK, objective="poisson", exposure="years", kinds=kinds)
    X, y = draw(), draw_y("counts")
    row = int(np.argmax(IS_KEPT & (X.job == "pilot"))) if case == "order" else LAST
    with pytest.raises(InvalidInputError, match=rf"\brow {row}\b"):
        model.fit(change_X(X), change_y(y), WEIGHT)
    if case != "order":
        with pytest.raises(InvalidInputError, match=rf"^eval_set: .*\brow {row}\b"):
            model.fit(X, y, WEIGHT, eval_set=(change_X(X), change_y(y), WEIGHT))


@pytest.mark.parametrize(
    ("row", "weight", "message"),
    [
        (LAST, -1.0, rf"at least 0, got -1\.0 in row {LAST}"),
        (LAST, np.nan, rf"at least 0, got nan in row {LAST}"),
        (slice(None), 0.0, "a weight of zero in every row"),
    ],
)
def test_the_weights_themselves_are_checked_in_every_row(row, weight, message):
    wrong = WEIGHT.copy()
    wrong[row] = weight
    with pytest.raises(InvalidInputError, match=message):
        FCorrClassifier(**QUICK).fit(draw(), draw_y("labels"), wrong)


def test_rows_that_do_not_match_are_counted_as_they_came():
    with pytest.raises(InvalidInputError, match="same number of rows, got 120 and 119"):
        FCorrClassifier(**QUICK).fit(draw(), draw_y("labels")[:-1], WEIGHT)
    with pytest.raises(InvalidInputError, match=r"one number per row, got shape \(119,\) for 120"):
        FCorrClassifier(**QUICK).fit(draw(), draw_y("labels"), WEIGHT[:-1])
