"""Columns of many levels, from the fit to the model file: each level is one number, its rating."""

import numpy as np
import pandas as pd
import pytest

from fcorr import FCorrClassifier, FCorrRegressor, load
from fcorr.data.schema import RatedColumn

QUICK = {"n_members": 1, "head": (8,), "epochs": 8, "learning_rate": 0.02, "random_state": 0}
N, N_LEVELS = 1_500, 60

_rng = np.random.default_rng(0)
EFFECT = _rng.normal(0, 1.5, N_LEVELS)
LEVEL = np.r_[np.arange(N_LEVELS), _rng.integers(N_LEVELS, size=N - N_LEVELS)]
X = pd.DataFrame(
    {
        "sex": _rng.choice(["f", "m"], N),
        "bank": np.array([f"bank {i}" for i in range(N_LEVELS)])[LEVEL],
        "age": _rng.normal(size=N),
        "years": _rng.uniform(0.5, 1, N),
    }
)
SCORE = EFFECT[LEVEL] + 0.5 * X.age.to_numpy()
TASKS = {
    "binary": (FCorrClassifier, {}, (SCORE + _rng.logistic(size=N) > 0).astype(int)),
    "mse": (FCorrRegressor, {}, SCORE + _rng.normal(size=N)),
    "poisson": (
        FCorrRegressor,
        {"objective": "poisson", "exposure": "years"},
        _rng.poisson(X.years * np.exp(SCORE / 2)),
    ),
}
each_task = pytest.mark.parametrize("task", TASKS)
single_and_pack = pytest.mark.parametrize("n_members", [1, 2])


def fit(task, X=X, **options):
    cls, own, y = TASKS[task]
    return cls(**QUICK | own | options).fit(X, y)


def predictions(model, X):
    return model.predict_proba(X)[:, 1] if isinstance(model, FCorrClassifier) else model.predict(X)


def by_level(model, levels=range(N_LEVELS)):
    """Predictions for one row, with every level in turn."""
    row = X[:1].assign(sex="f", age=0.0, years=1.0)
    names = [f"bank {i}" for i in levels]
    return predictions(model, pd.concat([row.assign(bank=name) for name in names]))


@single_and_pack
@each_task
def test_from_fit_to_file(task, n_members, tmp_path):
    options = {} if n_members == 1 else {"n_members": 2, "epochs": 2}
    model = fit(task, **options, sensitive="sex")
    assert isinstance(model.schema_["bank"], RatedColumn)
    assert model.schema_.feature_names[:3] == ("sex", "bank", "age")
    # Levels are in the order of their effects, about.
    assert np.corrcoef(pd.Series(by_level(model)).rank(), pd.Series(EFFECT).rank())[0, 1] > 0.8
    unseen = by_level(model, ["nowhere", "elsewhere"])
    assert unseen[0] == unseen[1]
    assert by_level(model).min() < unseen[0] < by_level(model).max()
    model.save(tmp_path / "model.fcorr")
    again = load(tmp_path / "model.fcorr")
    assert again.schema_ == model.schema_
    np.testing.assert_array_equal(predictions(again, X), predictions(model, X))
    np.testing.assert_array_equal(by_level(again), by_level(model))
    np.testing.assert_array_equal(predictions(again, X.assign(sex="x")), predictions(model, X))


def test_levels_that_say_nothing_are_not_learnt_by_heart():
    """A row is rated without its own target: what looks like skill in training would be none."""
    rng = np.random.default_rng(1)
    noise = pd.DataFrame({"key": rng.integers(500, size=N).astype(str), "age": X.age})
    y = rng.normal(size=N)
    model = FCorrRegressor(**QUICK).fit(noise, y)
    assert isinstance(model.schema_["key"], RatedColumn)
    assert model.score(noise, y) < 0.1


def test_three_classes_keep_the_levels_as_categories():
    y = np.digitize(SCORE, [-0.5, 0.5])
    model = FCorrClassifier(**QUICK | {"epochs": 1}).fit(X, y)
    assert not isinstance(model.schema_["bank"], RatedColumn)
    assert model.schema_["bank"].n_codes > 1
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("invariance", ["adapt", "marginal"])
def test_a_sensitive_column_is_not_rated(invariance):
    model = fit("binary", sensitive="bank", invariance=invariance, epochs=1)
    assert not isinstance(model.schema_["bank"], RatedColumn)
    assert len(set(by_level(model))) == 1


def test_a_rating_has_no_order_to_be_monotone_in():
    with pytest.raises(ValueError, match="ordered categories, got 'bank', which is rated"):
        fit("binary", monotone={"bank": "increasing"})


def test_the_same_seed_gives_the_same_file(tmp_path):
    files = []
    for _ in range(2):
        fit("binary", n_members=2, epochs=1).save(tmp_path / "model.fcorr")
        files.append((tmp_path / "model.fcorr").read_bytes())
    assert files[0] == files[1]
