"""Monotone columns: no input at which the prediction goes the other way, not by one bit."""

import numpy as np
import pandas as pd
import pytest
import torch

from fcorr import FCorrClassifier, FCorrRegressor, load
from fcorr._core import InvalidInputError, ModelFileError
from tests.tables import predictions

QUICK = {"n_members": 1, "head": (8,), "epochs": 6, "learning_rate": 0.02, "random_state": 0}
N = 250
GRADES = list("ABCDE")

_rng = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "sex": _rng.choice(["f", "m"], N),
        "grade": _rng.choice(GRADES, N),
        "age": _rng.normal(40, 10, N),
        "power": _rng.gamma(3, 30, N),
        "day": pd.date_range("2020-01-01", periods=N),
    }
)
# Up and down again, so that the constraint has something to do.
SCORE = (
    np.sin(X.age / 5) + 0.3 * (X.age - 40) / 10 + np.cos(X.power / 20) + 0.2 * _rng.normal(size=N)
)
SCORE -= 0.5 * X.grade.map(GRADES.index) - 0.9 * (X.grade == "D")
TASKS = {
    "binary": (FCorrClassifier, {}, (SCORE > 0).to_numpy().astype(int)),
    "poisson": (FCorrRegressor, {"objective": "poisson"}, _rng.poisson(np.exp(SCORE / 2))),
}
MONOTONE = {"age": "increasing", "power": "decreasing", "grade": "decreasing"}
each_task = pytest.mark.parametrize("task", TASKS)


def fit(task="binary", **options):
    cls, own, y = TASKS[task]
    options = QUICK | own | {"kinds": {"grade": GRADES}, "monotone": MONOTONE} | options
    return cls(**options).fit(X, y)


def courses(model, column, values, n_others=12):
    """Predictions along a column, for random other columns: ``(n_others, n_values)``."""
    rng = np.random.default_rng(1)
    others = X.iloc[rng.integers(N, size=n_others)].assign(
        **{name: rng.permutation(X[name])[:n_others] for name in X}
    )
    table = others.iloc[np.repeat(np.arange(n_others), len(values))].reset_index(drop=True)
    table[column] = np.tile(values, n_others)
    found = predictions(model, table)
    return found.reshape(n_others, len(values), -1)[:, :, -1]


def fine(column):
    """Numbers within and beyond the training range, and close to each training value."""
    low, high = X[column].min(), X[column].max()
    near = X[column].to_numpy()[:60]
    wide = np.linspace(low - 5, high + 5, 600)
    return np.sort(np.r_[wide, near, near * (1 + 1e-7), near * (1 - 1e-7)])


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("binary", {}),
        ("binary", {"n_members": 2}),
        ("binary", {"sensitive": "sex", "invariance": "marginal"}),
        ("binary", {"advanced": {"engine": "plain", "n_layers": 2}}),
        ("poisson", {"sensitive": "sex"}),
    ],
    ids=str,
)
def test_predictions_never_turn(task, options, tmp_path):
    model = fit(task, **options)
    model.save(tmp_path / "model.fcorr")
    again = load(tmp_path / "model.fcorr")
    assert again.monotone == MONOTONE
    for column, direction in MONOTONE.items():
        values = GRADES if column == "grade" else fine(column)
        found = courses(model, column, values)
        steps = np.diff(found) * (1 if direction == "increasing" else -1)
        assert steps.min() >= 0
        assert np.ptp(found, axis=1).min() > 0.01  # it has an effect at all
        np.testing.assert_array_equal(courses(again, column, values), found)


@each_task
def test_without_it_they_do(task):
    model = fit(task, monotone=None)
    for column in ("age", "power"):
        steps = np.diff(courses(model, column, fine(column)))
        assert (steps > 1e-4).any(), column
        assert (steps < -1e-4).any(), column


def test_a_direction_against_the_data_leaves_no_effect():
    y = np.exp(-(X.age - 40) / 10) + _rng.normal(size=N)
    model = FCorrRegressor(**QUICK, monotone={"age": "increasing"}).fit(X, y)
    assert np.ptp(courses(model, "age", fine("age")), axis=1).max() < 0.02 * np.ptp(y)


def test_a_missing_number_may_be_anything():
    """It has no place in the order."""
    holes = X.assign(age=X.age.mask(X.index % 5 == 0))
    model = FCorrClassifier(
        **QUICK, monotone={"age": "increasing"}, advanced={"missing_numeric": "category"}
    ).fit(holes, TASKS["binary"][2])
    assert np.diff(courses(model, "age", fine("age"))).min() >= 0
    assert np.isfinite(courses(model, "age", [np.nan, 40.0])).all()


REFUSED = [
    ({"monotone": {"sex": "increasing"}}, r"ordered categories, got 'sex', which is cat.*kinds="),
    ({"monotone": {"day": "increasing"}}, r"ordered categories, got 'day', which is datetime"),
    ({"monotone": {"town": "increasing"}}, r"ordered categories, got 'town', which is rated"),
    ({"monotone": {"agee": "increasing"}}, r"columns of X, got 'agee'\. Did you mean 'age'\?"),
    ({"monotone": {7: "increasing"}}, r"columns of X, got 7\."),
    ({"advanced": {"main_effects": False}}, r"about main effects, got .*'main_effects': False"),
    ({"kinds": None}, r"ordered categories, got 'grade', which is categorical"),
    ({"y": np.arange(N) % 3}, r"monotone is for two classes and for numbers.*got 3"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_cannot_be_monotone_is_refused(options, message):
    y = options.get("y", TASKS["binary"][2])
    options = {"kinds": {"grade": GRADES}, "monotone": MONOTONE, **options}
    options.pop("y", None)
    towns = X.assign(town=(SCORE.rank() / 4).astype(int).astype(str))
    with pytest.raises(InvalidInputError, match=message) as caught:
        FCorrClassifier(**QUICK, **options).fit(towns, y)
    assert caught.value.argument == "monotone"


# Files


def test_a_file_that_lets_the_head_see_a_monotone_feature_is_refused(tmp_path):
    model = fit(n_members=2, epochs=1)
    model.model_.members[1].description["additive"] = []
    with pytest.raises(InvalidInputError, match="monotone must be that of the fit"):
        model.save(tmp_path / "model.fcorr")
    model._check_monotone = lambda: None
    model.save(tmp_path / "model.fcorr")
    with pytest.raises(ModelFileError, match="monotone must be that of the fit"):
        load(tmp_path / "model.fcorr")


def test_a_file_whose_weights_turn_is_refused(tmp_path):
    model = fit(n_members=2, epochs=1)
    position = model.schema_.feature_names.index("age")
    with torch.no_grad():
        model.model_.members[1].views.parameters_of(position)[0][3, 0] = -1e-3
    model._check_monotone = lambda: None
    model.save(tmp_path / "model.fcorr")
    with pytest.raises(ModelFileError, match="which the weights do not keep"):
        load(tmp_path / "model.fcorr")


def test_another_direction_set_after_the_fit_is_not_saved(tmp_path):
    model = fit(epochs=1)
    for monotone in (None, {"age": "increasing"}, MONOTONE | {"age": "decreasing"}):
        with pytest.raises(InvalidInputError, match="monotone must be that of the fit"):
            model.set_params(monotone=monotone).save(tmp_path / "model.fcorr")
