"""Tables on their way through fit and predict: libraries, kinds, weights, threads."""

import datetime
import random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from fcorr import FCorrClassifier, FCorrRegressor, load
from fcorr._core import InvalidInputError, UnseenCategoryWarning
from fcorr.data.schema import RatedColumn
from tests.tables import QUICK, make_model, make_people, make_targets, predictions

# The same rows in another library's frame: the same model and the same predictions, to the bit

_rng = np.random.default_rng(1)
COLUMNS = {
    "sex": _rng.choice(["f", "m"], 200).tolist(),
    "job": [None if i % 17 == 0 else "aaabbc"[i % 6] for i in range(200)],
    "age": [None if i % 13 == 0 else float(a) for i, a in enumerate(_rng.normal(40, 10, 200))],
    "children": _rng.integers(4, size=200).tolist(),
    "member": _rng.choice([True, False], 200).tolist(),
    "since": [datetime.date(2020, 1, 1) + datetime.timedelta(days=7 * i) for i in range(200)],
}
LABELS = _rng.integers(2, size=200).tolist()
FRAMES = {
    "pandas": lambda c: pd.DataFrame(c),
    "pandas-categorical": lambda c: pd.DataFrame(c).astype({"sex": "category", "job": "category"}),
    "pandas-index": lambda c: pd.DataFrame(c, index=range(1000, 800, -1)),
    "polars": lambda c: pl.DataFrame(c),
    "polars-enum": lambda c: pl.DataFrame(c).cast({"job": pl.Enum(["c", "b", "a"])}),
    "pyarrow": lambda c: pa.table(c),
    "pyarrow-batch": lambda c: pa.RecordBatch.from_pydict(c),
}


@pytest.fixture(scope="module")
def reference():
    return make_model(sensitive="sex", min_category_rows=40).fit(pa.table(COLUMNS), LABELS)


@pytest.mark.parametrize("name", FRAMES)
def test_fit_and_predict(reference, name):
    frame, expected = FRAMES[name](COLUMNS), reference.predict_proba(pa.table(COLUMNS))
    kinds = {"job": "categorical"} if "enum" in name else None
    model = make_model(sensitive="sex", kinds=kinds, min_category_rows=40).fit(frame, LABELS)
    assert model.schema_ == reference.schema_
    assert model.schema_["job"].n_pooled
    assert model.feature_names_in_.tolist() == list(COLUMNS)
    np.testing.assert_array_equal(model.predict_proba(pa.table(COLUMNS)), expected)
    np.testing.assert_array_equal(reference.predict_proba(frame), expected)


def test_arrays_and_nested_lists_have_positions():
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[:, 1] = X[:, 1] > 0
    model = make_model(sensitive=1).fit(X, LABELS)
    assert model.schema_.sensitive == ("x1",)
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.predict_proba(X.tolist()), model.predict_proba(X))
    rows = [[row["sex"], row["children"], row["member"]] for row in pa.table(COLUMNS).to_pylist()]
    model = make_model(sensitive=[0]).fit(rows, LABELS)
    assert [c.name for c in model.schema_.numeric] == ["x1"]
    assert model.predict_proba(rows).shape == (200, 2)


@pytest.mark.parametrize("fitted_with_names", [True, False])
def test_names_on_one_side_only_are_warned_of(fitted_with_names):
    array = np.random.default_rng(0).normal(size=(200, 3))
    frame = pd.DataFrame(array, columns=["a", "b", "c"])
    train, score = (frame, array) if fitted_with_names else (array, frame)
    model = make_model().fit(train, LABELS)
    with pytest.warns(UserWarning, match=r"feature names.*the columns are taken in their order"):
        probabilities = model.predict_proba(score)
    np.testing.assert_array_equal(probabilities, model.predict_proba(train))


def test_attention_is_labelled(reference):
    matrix = reference.attention(pl.DataFrame(COLUMNS))
    assert matrix.names == (
        *("sex", "job", "member", "age", "children"),
        *("since.year", "since.month", "since.days"),
    )
    assert matrix.to_pandas().loc["age", "sex"] == matrix["age", "sex"]
    assert matrix["age", "sex"] == pytest.approx(matrix["sex", "age"])
    assert "<th>job</th>" in matrix._repr_html_()
    significance = reference.feature_significance()  # the largest first
    assert matrix.diagonal() == pytest.approx(significance)
    assert list(significance.values()) == sorted(significance.values(), reverse=True)
    with pytest.raises(ValueError, match=r"no feature 'agee'. Did you mean 'age'"):
        matrix["agee", "sex"]


# Kinds of columns

GRADES = list("ABCDE")


@pytest.fixture(scope="module")
def graded():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"grade": rng.choice(GRADES, 600), "a": rng.normal(size=600)})
    return X, X.grade.map(GRADES.index) + X.a


def test_ordinal_column_is_one_number_with_a_knot_at_each_category(graded):
    X, y = graded
    model = make_model("mse", epochs=20, head=(16,), dropout=0.0, kinds={"grade": GRADES})
    model.fit(X, y)
    assert model.schema_.feature_names == ("grade", "a")
    position = model.schema_["grade"].position
    knots = model.model_.views.numbers.knots[0]
    places = knots[knots.isfinite()].numpy() * position.scale + position.mean
    np.testing.assert_allclose(places, range(5), atol=1e-5)
    assert model.score(X, y) > 0.8
    with pytest.warns(UnseenCategoryWarning, match=r"600 row\(s\) of 'grade'.*as missing"):
        outside = model.predict(X.assign(grade="Z"))
    with pytest.warns(UserWarning, match="none at all in 'grade'"):
        missing = model.predict(X.assign(grade=None))
    np.testing.assert_array_equal(outside, missing)


def test_dates_are_features():
    dates = pd.date_range("2020-01-01", periods=600, freq="D")
    X = pd.DataFrame({"a": np.random.default_rng(0).normal(size=600), "day": dates})
    y = (dates.month == 6).astype(float) + 0.2 * X.a
    model = make_model("mse", epochs=20, head=(16,), dropout=0.0).fit(X, y)
    names = ("a", "day.year", "day.month", "day.day_of_week", "day.days")
    assert model.schema_.feature_names == names
    assert model.n_features_in_ == 2
    assert set(model.feature_significance()) == set(names)
    assert model.score(X, y) > 0.5
    later = X.assign(day=dates + pd.Timedelta(days=10_000))
    assert np.isfinite(model.predict(later)).all()
    text = X.assign(day=dates.strftime("%Y-%m-%d"))
    np.testing.assert_array_equal(model.predict(text), model.predict(X))


# Columns of many levels: each level is one number, its rating

N_LEVELS = 60


@pytest.fixture(scope="module")
def banks():
    rng = np.random.default_rng(0)
    effect = rng.normal(0, 1.5, N_LEVELS)
    level = np.r_[np.arange(N_LEVELS), rng.integers(N_LEVELS, size=1_440)]
    X = make_people(1_500)[["sex", "age", "years"]]
    score = effect[level] + (X.age - 40) / 20
    y = {
        "two classes": (score + rng.logistic(size=1_500) > 0).astype(int),
        "three classes": np.digitize(score, [-0.5, 0.5]),
        "mse": score + rng.normal(size=1_500),
        "poisson": rng.poisson(X.years * np.exp(score / 2)),
    }
    return X.assign(bank=[f"bank {i}" for i in level]), y, effect


def by_level(model, levels=range(N_LEVELS)):
    """Predictions for one row, with every level in turn."""
    names = [f"bank {i}" for i in levels]
    rows = pd.DataFrame({"sex": "f", "age": 40.0, "years": 1.0, "bank": names})
    found = predictions(model, rows)
    return found[:, -1] if found.ndim == 2 else found


@pytest.mark.parametrize(
    ("task", "n_members"), [("two classes", 1), ("mse", 1), ("poisson", 1), ("two classes", 2)]
)
def test_levels_are_rated_from_fit_to_file(banks, task, n_members, tmp_path):
    X, y, effect = banks
    options = {"head": (8,), "epochs": 8, "learning_rate": 0.02}
    if n_members == 2:
        options = {"n_members": 2}
    if task == "poisson":
        options["exposure"] = "years"
    model = make_model(task, sensitive="sex", **options).fit(X, y[task])
    assert isinstance(model.schema_["bank"], RatedColumn)
    # Levels are in the order of their effects, about.
    assert np.corrcoef(pd.Series(by_level(model)).rank(), pd.Series(effect).rank())[0, 1] > 0.8
    unseen = by_level(model, ["nowhere", "elsewhere"])
    assert unseen[0] == unseen[1]
    assert by_level(model).min() < unseen[0] < by_level(model).max()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.schema_ == model.schema_
    np.testing.assert_array_equal(by_level(again), by_level(model))
    np.testing.assert_array_equal(predictions(again, X.assign(sex="x")), predictions(model, X))


def test_levels_that_say_nothing_are_not_learnt_by_heart():
    """A row is rated without its own target: what looks like skill in training would be none."""
    rng = np.random.default_rng(1)
    noise = pd.DataFrame({"key": rng.integers(500, size=1_500).astype(str)})
    y, noise["age"] = rng.normal(size=1_500), rng.normal(size=1_500)
    model = make_model("mse", epochs=8, head=(8,), learning_rate=0.02).fit(noise, y)
    assert isinstance(model.schema_["key"], RatedColumn)
    assert model.score(noise, y) < 0.1


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("three classes", {}),
        ("two classes", {"sensitive": "bank"}),
        ("two classes", {"sensitive": "bank", "invariance": "marginal"}),
    ],
)
def test_what_is_not_rated(banks, task, options):
    X, y, _ = banks
    model = make_model(task, **options, epochs=1).fit(X, y[task])
    assert not isinstance(model.schema_["bank"], RatedColumn)
    assert (len(set(by_level(model))) == 1) == ("sensitive" in options)


# A row of weight 0 is as if it were not there, whatever it holds

IS_KEPT = np.random.default_rng(1).random(120) < 0.7
WEIGHT = np.where(IS_KEPT, np.random.default_rng(2).uniform(0.5, 2, 120), 0.0)
LAST = int(np.flatnonzero(IS_KEPT)[-1])


def draw(seed=0):
    """Draw rows; those that are not kept are far off, and hold categories of their own."""
    people = make_people(120, seed)
    spoilt = {"sex": "x", "age": 1e6, "job": "none", "income": np.nan, "years": -1.0}
    return people.assign(**{name: people[name].where(IS_KEPT, v) for name, v in spoilt.items()})


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


WEIGHTED = {
    "adapt": (FCorrClassifier, {"sensitive": ["sex", "age"], "threshold": "f1"}),
    "marginal": (FCorrClassifier, {"sensitive": "age", "invariance": "marginal"}),
    "class weights": (FCorrClassifier, {"sensitive": "age", "class_weight": "balanced"}),
    "early stopping": (FCorrClassifier, {"advanced": {"early_stopping": True}}),
    "squares": (FCorrRegressor, {"sensitive": "age", "advanced": {"missing_numeric": "category"}}),
    "exposure": (FCorrRegressor, {"objective": "poisson", "exposure": "years"}),
    "pack": (FCorrClassifier, {"n_members": 2}),
}


@pytest.mark.parametrize("case", WEIGHTED)
def test_a_row_of_weight_0_is_not_there(case, tmp_path):
    cls, options = WEIGHTED[case]
    X, y = draw(), draw_y("labels" if cls is FCorrClassifier else "counts")
    model = cls(**QUICK | options).fit(X, y, WEIGHT)
    other = cls(**QUICK | options).fit(X[IS_KEPT], y[IS_KEPT], WEIGHT[IS_KEPT])
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
def test_nor_in_any_library(make, tmp_path):
    X, y = draw(), draw_y("labels")
    model = make_model(epochs=1).fit(make(X), y.tolist(), pl.Series("w", WEIGHT))
    X, y, weight = X[IS_KEPT], y[IS_KEPT], pl.Series("w", WEIGHT[IS_KEPT])
    assert_same(model, make_model(epochs=1).fit(make(X), y, weight), tmp_path)


def test_nor_in_the_eval_set(tmp_path):
    X, y, held_out, held_out_y = draw(), draw_y("counts"), draw(1), draw_y("counts", 1)
    options = {"epochs": 8, "advanced": {"early_stopping": 1}, "exposure": "years"}
    chosen = (held_out[IS_KEPT], held_out_y[IS_KEPT], WEIGHT[IS_KEPT])
    model, other = (
        make_model("poisson", **options).fit(X, y, WEIGHT, eval_set)
        for eval_set in [(held_out, held_out_y, WEIGHT), chosen]
    )
    assert_same(model, other, tmp_path)


def spoil(values, value):
    return [value if i == LAST else v for i, v in enumerate(values)]


WRONG = {
    "number": (lambda X: X.assign(age=spoil(X.age, np.inf)), lambda y: y),
    "text": (lambda X: X.assign(age=spoil(X.age, "old")).astype({"age": str}), lambda y: y),
    "exposure": (lambda X: X.assign(years=spoil(X.years, 0.0)), lambda y: y),
    "target": (lambda X: X, lambda y: spoil(y, np.nan)),
    "count": (lambda X: X, lambda y: spoil(y, -1)),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_count_the_rows_of_weight_0(case):
    change_X, change_y = WRONG[case]
    model = make_model("poisson", exposure="years", kinds={"age": "numeric"})
    X, y = draw(), draw_y("counts")
    with pytest.raises(InvalidInputError, match=rf"\brow {LAST}\b"):
        model.fit(change_X(X), change_y(y), WEIGHT)
    with pytest.raises(InvalidInputError, match=rf"^eval_set: .*\brow {LAST}\b"):
        model.fit(X, y, WEIGHT, eval_set=(change_X(X), change_y(y), WEIGHT))


NAMES = draw_y("labels")


@pytest.mark.parametrize(
    ("y", "weight", "message"),
    [
        (NAMES, spoil(WEIGHT, -1.0), f"at least 0, got -1 in row {LAST}"),
        (NAMES, spoil(WEIGHT, np.nan), f"at least 0, got nan in row {LAST}"),
        (NAMES[:-1], WEIGHT, "same number of rows, got 120 and 119"),  # as they came
        (NAMES, WEIGHT[:-1], r"one number per row, got shape \(119,\) for 120"),
        (NAMES, NAMES == "no", "at least two classes, got only one class: 'no'"),
    ],
)
def test_the_weights_themselves_are_checked_in_every_row(y, weight, message):
    with pytest.raises(InvalidInputError, match=message):
        make_model().fit(draw().assign(years=1.0), y, weight)


# Seeds and threads

PEOPLE = make_people()
MANY_ROWS = pd.concat([PEOPLE] * 60, ignore_index=True)
RATED = PEOPLE.assign(town=(PEOPLE.age.rank() * 0.3).astype(int).astype(str))
SEEDED = {
    "single": (PEOPLE, {}),
    "pack": (PEOPLE, {"n_members": 3, "threshold": "f1"}),
    "rated": (RATED, {"n_members": 2}),
    "many rows": (MANY_ROWS, {"head": (16,), "threshold": "f1"}),
    "averaged": (MANY_ROWS, {"sensitive": "sex", "invariance": "marginal"}),
    "decisions": (
        MANY_ROWS,
        {"sensitive": "sex", "proxy": 3.0, "proxy_target": "decision"}
        | {"advanced": {"batch_size": 10_000}},  # in slices
    ),
    "stops": (PEOPLE, {"advanced": {"early_stopping": True}}),
    "paper's": (PEOPLE, {"sensitive": "sex", "advanced": {"main_effects": False}}),
    "CAR": (PEOPLE, {"sensitive": "sex", "invariance": None}),
}


@pytest.mark.parametrize("case", SEEDED)
def test_the_seed_decides_and_threads_do_not(case, tmp_path):
    """Nor do global generators; of files, which hold all that was learnt, and of predictions."""
    X, options = SEEDED[case]
    y = np.tile(make_targets(PEOPLE)["two classes"], len(X) // 200)
    n_threads, files, scores = torch.get_num_threads(), [], []
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            torch.manual_seed(n)
            np.random.seed(n)  # noqa: NPY002
            random.seed(n)
            model = make_model(epochs=1, **options).fit(X, y)
            model.save(tmp_path / "model")
            files.append((tmp_path / "model").read_bytes())
            scores.append(model.predict_proba(X))
    finally:
        torch.set_num_threads(n_threads)
    assert files[0] == files[1] == files[2]
    for found in scores:
        np.testing.assert_array_equal(found, scores[0])
        np.testing.assert_array_equal(found[:200], found[-200:])
    other = make_model(epochs=1, **options | {"random_state": 1}).fit(X, y)
    assert not np.array_equal(other.predict_proba(X), scores[0])
