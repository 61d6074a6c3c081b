"""Deviances: how far predictions are from claim counts, severities and pure premiums.

All are means over rows, as in scikit-learn's ``mean_*_deviance``. Where policies have an exposure
there are two ways to ask, and they differ by a factor only, the mean exposure:

- per policy, as publications on claim frequency do: ``poisson_deviance(claims, exposure * rate)``;
- per year at risk: ``poisson_deviance(claims / exposure, rate, sample_weight=exposure)``.
"""

import numpy as np
import numpy.typing as npt

from fcorr._core import InvalidInputError
from fcorr.metrics._validation import FloatArray, as_amounts

__all__ = ["gamma_deviance", "poisson_deviance", "tweedie_deviance"]


def poisson_deviance(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Mean Poisson deviance: ``mean of 2·(y·log(y/μ) − y + μ)``.

    The distance for claim counts and frequencies. 0 means that every prediction is the observed
    value; lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The observed counts or frequencies, none negative.
    y_pred : array-like of shape (n,)
        The predicted ones, all positive.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (the exposure, for frequencies); once when left out.

    Returns
    -------
    float
        The deviance. Publications often print it times 100.

    See Also
    --------
    sklearn.metrics.mean_poisson_deviance : The same number.

    Examples
    --------
    >>> round(poisson_deviance([0, 0, 1], [0.1, 0.2, 0.7]), 4)
    0.2378
    """
    return _mean_deviance(y_true, y_pred, sample_weight, power=1.0)


def gamma_deviance(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Mean gamma deviance: ``mean of 2·(log(μ/y) + y/μ − 1)``.

    The distance for claim severities: only ratios matter, so that it is the same in any currency.
    0 means that every prediction is the observed value; lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The observed severities, all positive: policies without a claim have none.
    y_pred : array-like of shape (n,)
        The predicted ones, all positive.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (the number of claims, for mean severities); once when left out.

    Returns
    -------
    float
        The deviance.

    See Also
    --------
    sklearn.metrics.mean_gamma_deviance : The same number.

    Examples
    --------
    >>> round(gamma_deviance([1_000, 3_000], [2_000, 2_000]), 4)
    0.2877
    """
    return _mean_deviance(y_true, y_pred, sample_weight, power=2.0)


def tweedie_deviance(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    power: float = 1.5,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Mean Tweedie deviance, for pure premiums: many zeros, and amounts where there is a claim.

    ``mean of 2·(y^(2−p)/((1−p)(2−p)) − y·μ^(1−p)/(1−p) + μ^(2−p)/(2−p))``. 0 means that every
    prediction is the observed value; lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The observed amounts: none negative, and none zero where the power is 2 or more.
    y_pred : array-like of shape (n,)
        The predicted ones, all positive.
    power : float, default=1.5
        How the variance grows with the mean, as ``μ^power``, at least 1: 1 is Poisson, 2 gamma, 3
        inverse Gaussian; between 1 and 2 lies a Poisson number of gamma amounts.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (the exposure, for amounts per year); once when left out.

    Returns
    -------
    float
        The deviance.

    See Also
    --------
    sklearn.metrics.mean_tweedie_deviance : The same number.

    Examples
    --------
    >>> tweedie_deviance([0, 100], [25, 25], power=1.5)
    20.0
    """
    if not (np.isfinite(power) and power >= 1):
        raise InvalidInputError(
            f"power must be a number of at least 1, got {power!r}. "
            "1 is Poisson, 2 is gamma; 1.5 is usual for pure premiums."
        )
    return _mean_deviance(y_true, y_pred, sample_weight, power=float(power))


def _mean_deviance(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    *,
    power: float,
) -> float:
    observed, predicted, weight = as_amounts(y_true, y_pred, sample_weight)
    _check_range(observed, predicted, power)
    deviance = predicted ** (2 - power) * _of_ratio(observed / predicted, power)
    # Rounding may leave a trace below zero where the prediction is right.
    return float(np.sum(weight * np.maximum(deviance, 0.0)) / weight.sum())


def _of_ratio(ratio: FloatArray, power: float) -> FloatArray:
    """Deviance of an observed value at a predicted one of 1; by scaling it gives all others."""
    if power == 1:
        log = np.log(ratio, out=np.zeros_like(ratio), where=ratio > 0)  # 0·log 0 is 0
        return 2 * (ratio * log - ratio + 1)
    if power == 2:
        return 2 * (ratio - 1 - np.log(ratio))
    p = power
    return 2 * (ratio ** (2 - p) / ((1 - p) * (2 - p)) - ratio / (1 - p) + 1 / (2 - p))


def _check_range(observed: FloatArray, predicted: FloatArray, power: float) -> None:
    if power >= 2 and observed.min() <= 0:
        row = int(np.argmax(observed <= 0))
        raise InvalidInputError(
            f"y_true must be positive for a deviance of power {power:g}, got {observed[row]:g} in "
            f"row {row}. Leave out the rows without a claim, or use a power below 2."
        )
    if observed.min() < 0:
        row = int(np.argmax(observed < 0))
        raise InvalidInputError(
            f"y_true must not be negative for a deviance, got {observed[row]:g} in row {row}. "
            "Check the sign, and claims that were recovered."
        )
    if predicted.min() <= 0:
        row = int(np.argmax(predicted <= 0))
        raise InvalidInputError(
            f"y_pred must be positive for a deviance, got {predicted[row]:g} in row {row}. "
            "Predict on a log scale, or raise small predictions to a floor."
        )
