"""Predicted totals are observed totals, by a constant that is found and kept."""

import numpy as np
import pytest
from scipy.optimize import brentq

from fcorr.training.objective import class_shift, log_shift, softmax
from tests.tables import make_model, make_people, make_targets

_rng = np.random.default_rng(0)
X = make_people(400)
Y = make_targets(X)
WEIGHT = _rng.choice([0.0, 0.5, 3.0], 400)

weights = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])


def total(values, weight):
    return np.average(values, weights=weight, axis=0)


# The shifts themselves


def test_log_shift():
    logs, target = _rng.normal(size=50), _rng.gamma(1, 5, 50)
    shift = log_shift(logs, target, WEIGHT[:50])
    assert total(np.exp(logs + shift), WEIGHT[:50]) == pytest.approx(total(target, WEIGHT[:50]))
    # What has no weight does not count, however large it is.
    logs[WEIGHT[:50] == 0] = 600
    assert log_shift(logs, target, WEIGHT[:50]) == pytest.approx(shift)
    # Means that overflow are still in balance with totals that do not.
    assert log_shift(logs + 2_000, target, WEIGHT[:50]) == pytest.approx(shift - 2_000)


@pytest.mark.parametrize(("spread", "share"), [(0.1, 0.5), (3.0, 0.9), (30.0, 0.001)])
def test_two_classes_against_bisection(spread, share):
    rng = np.random.default_rng(1)
    logit, weight = spread * rng.normal(size=300), rng.uniform(size=300)
    logits = np.column_stack([np.zeros(300), logit])
    negative, positive = class_shift(logits, np.array([1 - share, share]), weight)

    def gap(shift):
        return total(1 / (1 + np.exp(-logit - shift)), weight) - share

    assert positive - negative == pytest.approx(brentq(gap, -300, 300, xtol=1e-12), abs=1e-6)
    assert abs(gap(positive - negative)) < 1e-11


@pytest.mark.parametrize(("spread", "n_classes"), [(0.1, 3), (3.0, 8), (20.0, 8)])
def test_several_classes(spread, n_classes):
    rng = np.random.default_rng(2)
    logits, weight = spread * rng.normal(size=(300, n_classes)), rng.uniform(size=300)
    share = rng.dirichlet(np.full(n_classes, 0.5)).clip(1e-3)
    share /= share.sum()
    shift = class_shift(logits, share, weight)
    np.testing.assert_allclose(total(softmax(logits + shift), weight), share, atol=1e-11)
    assert shift.sum() == pytest.approx(0, abs=1e-9)


def test_blocks_of_rows_add_up(monkeypatch):
    logits, weight = _rng.normal(size=(300, 3)), _rng.uniform(size=300)
    share = np.array([0.7, 0.2, 0.1])
    expected = class_shift(logits, share, weight)
    monkeypatch.setattr("fcorr.training.objective._BLOCK", 64)
    np.testing.assert_allclose(class_shift(logits, share, weight), expected, rtol=1e-10)


# After a fit


TWEEDIE = {"exposure": "years", "tweedie_power": 1.3}
REGRESSIONS = {"mse": {}, "poisson": {"exposure": "years"}, "gamma": {}, "tweedie": TWEEDIE}


@pytest.mark.parametrize("early_stopping", [False, 1])
@weights
@pytest.mark.parametrize("name", REGRESSIONS)
def test_predicted_total_is_the_observed_total(name, weight, early_stopping):
    y, advanced = Y[name], {"early_stopping": early_stopping}
    model = make_model(name, sensitive="sex", advanced=advanced, **REGRESSIONS[name])
    model.fit(X, y, sample_weight=weight)
    assert total(model.predict(X), weight) == pytest.approx(total(y, weight), rel=1e-11)
    assert model.balance_ != 0
    model.balance_[:] = 0
    assert total(model.predict(X), weight) != pytest.approx(total(y, weight), rel=1e-6)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@weights
@pytest.mark.parametrize("task", ["two classes", "three classes"])
def test_mean_probability_is_the_share(task, weight, class_weight):
    y = Y[task]
    model = make_model(task, sensitive="sex", class_weight=class_weight)
    model.fit(X, y, sample_weight=weight)
    shares = [total(y == label, weight) for label in model.classes_]
    np.testing.assert_allclose(total(model.predict_proba(X), weight), shares, atol=1e-11)
