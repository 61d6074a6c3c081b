"""The deviances are scikit-learn's, and what they cannot take they refuse with a way out."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from fcorr._core import InvalidInputError
from fcorr.metrics import gamma_deviance, poisson_deviance, tweedie_deviance

POSITIVE = st.floats(1e-3, 1e3)
DEVIANCES = [poisson_deviance, gamma_deviance, tweedie_deviance]


@given(st.lists(st.tuples(POSITIVE, POSITIVE, st.floats(0.01, 10)), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_agrees_with_scikit_learn(rows: list[tuple[float, float, float]]) -> None:
    y_true, y_pred, weight = zip(*rows, strict=True)
    theirs = sklearn.metrics
    pairs = [
        (poisson_deviance, theirs.mean_poisson_deviance),
        (gamma_deviance, theirs.mean_gamma_deviance),
        *(
            (partial(tweedie_deviance, power=p), partial(theirs.mean_tweedie_deviance, power=p))
            for p in (1, 1.2, 1.5, 1.9, 2, 3)
        ),
    ]
    for ours, reference in pairs:
        for sample_weight in (None, weight):
            expected = reference(y_true, y_pred, sample_weight=sample_weight)
            actual = ours(y_true, y_pred, sample_weight=sample_weight)
            assert actual == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("power", [1, 1.3, 1.7])
def test_zeros_are_welcome_below_power_two(power: float) -> None:
    y_true, y_pred = [0, 0, 2.5, 1], [0.1, 0.7, 1.5, 2]
    expected = sklearn.metrics.mean_tweedie_deviance(y_true, y_pred, power=power)
    assert tweedie_deviance(y_true, y_pred, power=power) == pytest.approx(expected, rel=1e-12)


def test_exposure_as_weight_or_as_factor_differ_by_the_mean_exposure() -> None:
    rng = np.random.default_rng(0)
    exposure, rate = rng.uniform(0.1, 1, 200), rng.uniform(0.05, 0.5, 200)
    claims = rng.poisson(exposure * rate)
    per_policy = poisson_deviance(claims, exposure * rate)
    per_year = poisson_deviance(claims / exposure, rate, sample_weight=exposure)
    assert per_policy == pytest.approx(per_year * exposure.mean(), rel=1e-12)


def test_the_mean_is_the_best_constant() -> None:
    y = np.random.default_rng(1).gamma(1, 100, 50)
    for deviance in DEVIANCES:
        at_mean = deviance(y, np.full(50, y.mean()))
        for factor in (0.98, 1.02):
            assert deviance(y, np.full(50, factor * y.mean())) > at_mean


@pytest.mark.parametrize(
    ("deviance", "y_true", "y_pred", "text"),
    [
        (
            gamma_deviance,
            [1, 0],
            [1, 1],
            "y_true must be positive for a deviance of power 2, got 0 in row 1. Leave out the rows "
            "without a claim, or use a power below 2.",
        ),
        (
            poisson_deviance,
            [1, 2, -0.5],
            [1, 1, 1],
            "y_true must not be negative for a deviance, got -0.5 in row 2. Check the sign, and "
            "claims that were recovered.",
        ),
        (
            tweedie_deviance,
            [1, 2],
            [0, 1],
            "y_pred must be positive for a deviance, got 0 in row 0. Predict on a log scale, or "
            "raise small predictions to a floor.",
        ),
        (
            poisson_deviance,
            [1, 2],
            [1],
            "All columns must have the same number of rows, got y_true 2, y_pred 1. Take them from "
            "the same table.",
        ),
    ],
)
def test_bad_input(deviance: Any, y_true: Any, y_pred: Any, text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        deviance(y_true, y_pred)
    assert str(caught.value) == text


@pytest.mark.parametrize("power", [0, 0.5, np.nan, np.inf])
def test_bad_power(power: float) -> None:
    with pytest.raises(InvalidInputError) as caught:
        tweedie_deviance([1], [1], power=power)
    assert str(caught.value) == (
        f"power must be a number of at least 1, got {power!r}. "
        "1 is Poisson, 2 is gamma; 1.5 is usual for pure premiums."
    )
