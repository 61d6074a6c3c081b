"""What holds for any table: random kinds, gaps, weights and orders, drawn by hypothesis."""

import tempfile
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from fcorr import FCorrClassifier, FCorrRegressor, load
from fcorr._core import InvalidInputError
from fcorr.cli import app

# A fit of one epoch takes a tenth of a second; the same examples in every run.
SOME = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
pytestmark = pytest.mark.filterwarnings("ignore")  # one epoch, constant columns: they warn

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5)
NUMBERS = st.floats(-1e6, 1e6, allow_nan=False).map(np.float32)


@st.composite
def columns(draw, n_rows):
    """Draw a column of some kind, with or without gaps."""
    kind = draw(st.sampled_from(["numbers", "counts", "text", "flags", "dates", "constant"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if kind == "numbers":
        few = np.array(draw(st.lists(NUMBERS, min_size=2, max_size=8)))
        values = rng.choice(few, n_rows) + rng.normal(size=n_rows) * draw(st.sampled_from([0, 1]))
    elif kind == "counts":
        values = rng.integers(0, draw(st.integers(1, 1000)), n_rows).astype(float)
    elif kind == "text":
        words = draw(st.lists(WORDS, min_size=2, max_size=6, unique=True))
        values = rng.choice(np.array(words, dtype=object), n_rows)
    elif kind == "flags":
        values = rng.integers(0, 2, n_rows).astype(bool).astype(object)
    elif kind == "dates":
        days = rng.integers(0, 10_000, n_rows).astype("timedelta64[D]")
        values = np.datetime64("1990-01-01") + days
    else:
        values = np.full(n_rows, 7.0)
    column = pd.Series(values)
    if draw(st.booleans()):
        column[rng.random(n_rows) < 0.2] = None
    return column


@st.composite
def tasks(draw):
    """Draw a table, a target, weights, and an estimator that suits them."""
    n_rows = draw(st.integers(20, 60))
    n_columns = draw(st.integers(3, 6))
    X = pd.DataFrame({f"c{j}": draw(columns(n_rows)) for j in range(n_columns)})
    X = X[[name for name in X if X[name].notna().any()]]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sensitive = [f"c{j}" for j in range(draw(st.integers(1, 2))) if f"c{j}" in X]
    options = {
        "sensitive": sensitive or [X.columns[0]],
        "invariance": draw(st.sampled_from(["adapt", "marginal"])),
        "n_members": draw(st.sampled_from([1, 1, 2])),
        "head": draw(st.sampled_from([(3,), (8, 5), (20,)])),
        "epochs": 1,
        "random_state": 0,
        "advanced": {
            "main_effects": draw(st.booleans()),
            "numeric_embedding": draw(st.sampled_from(["spline", "paper"])),
            "n_layers": draw(st.integers(1, 2)),
            "engine": draw(st.sampled_from(["compiled", "plain"])),
            "missing_numeric": draw(st.sampled_from(["mean", "category"])),
        },
    }
    if draw(st.booleans()):
        y = np.arange(n_rows) % draw(st.integers(2, 3))
        model = FCorrClassifier(**options)
    else:
        y = rng.poisson(2.0, n_rows)
        y[0] = 1  # a portfolio without a claim has no rate
        model = FCorrRegressor(objective=draw(st.sampled_from(["mse", "poisson"])), **options)
    weight = rng.exponential(size=n_rows) if draw(st.booleans()) else None
    return model, X, y, weight


def fit(task):
    """Fit the model; a table that is refused in words is no counterexample."""
    model, X, y, weight = task
    try:
        return model.fit(X, y, sample_weight=weight)
    except InvalidInputError:
        return None


def predict(model, X):
    method = "predict_proba" if isinstance(model, FCorrClassifier) else "predict"
    found = getattr(model, method)(X)
    assert np.isfinite(found).all()
    return found


@SOME
@given(tasks(), st.integers(0, 2**32))
def test_a_model_is_what_its_file_says_and_no_flip_changes_a_bit(task, seed):
    model, X = fit(task), task[1]
    if model is None:
        return
    expected, rng = predict(model, X), np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.fcorr")
        loaded = load(Path(folder) / "model.fcorr")
    assert loaded.schema_ == model.schema_
    assert loaded.exact_ is model.exact_ is True
    flipped = X.copy()
    for name in model.schema_.sensitive:
        flipped[name] = X[name].to_numpy()[rng.permutation(len(X))]
    strange = X.assign(**dict.fromkeys(model.schema_.sensitive, "never seen"))
    without = X.drop(columns=list(model.schema_.sensitive))
    # Side by side with their flipped twins
    twins = pd.concat([X, flipped], ignore_index=True).sort_index(kind="stable")
    order = rng.permutation(len(twins))
    for each in (model, loaded):
        np.testing.assert_array_equal(predict(each, X), expected)
        np.testing.assert_array_equal(predict(each, strange), expected)
        if without.shape[1]:
            np.testing.assert_array_equal(predict(each, without), expected)
        np.testing.assert_array_equal(predict(each, twins.iloc[order]), expected[order % len(X)])


@SOME
@given(tasks(), st.integers(0, 2**32))
def test_a_row_of_weight_0_is_absent(task, seed):
    model, X, y, _ = task
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 3, len(X)).astype(float)
    kept = weight > 0
    try:
        whole = model.fit(X, y, sample_weight=weight)
    except InvalidInputError:
        with pytest.raises(InvalidInputError):
            model.fit(X[kept], y[kept], sample_weight=weight[kept])
        return
    expected, schema, history = predict(whole, X[kept]), whole.schema_, whole.history_
    part = model.fit(X[kept], y[kept], sample_weight=weight[kept])
    assert (part.schema_, part.history_.epochs) == (schema, history.epochs)
    np.testing.assert_array_equal(predict(part, X[kept]), expected)


ARGUMENTS = [
    "--epochs",
    "--sensitive",
    "--sample-weight",
    "--drop",
    "--set",
    "--random-state",
    "--invariance",
]
VALUES = ["1", "0", "-1", "c0", "c9", "", "head=4", "head=", "car=x", "1e9", "adapt", "=", "é"]
OPTIONS = st.lists(st.tuples(st.sampled_from(ARGUMENTS), st.sampled_from(VALUES)), max_size=4)


@SOME
@given(tasks(), OPTIONS)
def test_the_command_line_never_shows_a_traceback(task, arguments):
    model, X, y, _ = task
    options = ["--n-members", str(model.n_members), *(word for pair in arguments for word in pair)]
    if "--epochs" not in options:
        options += ["--epochs", "1"]
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        X.assign(y=y).to_csv("data.csv", index=False)
        for command in (
            ["train", "data.csv", "--target", "y", "--output", "model.fcorr", *options],
            ["inspect", "model.fcorr"],
            ["predict", "model.fcorr", "data.csv", "--output", "scores.csv"],
        ):
            result = CliRunner().invoke(app, command)
            assert result.exit_code in (0, 1, 2), result.output
            assert result.exception is None or isinstance(result.exception, SystemExit)
            assert "Traceback" not in result.output
