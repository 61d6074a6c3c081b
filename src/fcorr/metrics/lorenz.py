"""Lorenz curves as in insurance: policies by predicted risk, and the claims they bring.

`gini_score` is the area between the curve and the diagonal, times two; the metrics here add the
curve itself, and the share of the best possible area that a model gets.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fcorr._core import InvalidInputError
from fcorr.metrics._validation import FloatArray, as_amounts, not_estimable

__all__ = ["LorenzCurve", "lorenz_curve", "normalized_gini_score"]


@dataclass(frozen=True, eq=False)
class LorenzCurve:
    """Which share of the claims the policies of lowest predicted risk bring.

    Attributes
    ----------
    exposure_share : ndarray of shape (k,)
        Share of the total weight, from 0 to 1, in the order of the predictions.
    claim_share : ndarray of shape (k,)
        Share of the total amount that falls on it, from 0 to 1.
    gini : float
        1 minus twice the area under the curve: 0 on the diagonal, where the order says nothing.
    """

    exposure_share: FloatArray
    claim_share: FloatArray
    gini: float

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as plain data, ready for JSON."""
        return {
            "exposure_share": self.exposure_share.tolist(),
            "claim_share": self.claim_share.tolist(),
            "gini": self.gini,
        }


def lorenz_curve(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> LorenzCurve:
    """Order the rows by prediction, and add up their weights and their observed amounts.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The observed amounts, per unit of weight: for policies with an exposure, ``claims /
        exposure``. Their sum must be positive.
    y_pred : array-like of shape (n,)
        The predicted ones, or any score that rises with them.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (the exposure); once when left out.

    Returns
    -------
    LorenzCurve
        One point per distinct prediction, and the origin. Rows with equal predictions are joined by
        a straight line, so that the order of the file cannot matter.

    See Also
    --------
    gini_score : The index for N rows, ``N / (N − 1)`` times that of the curve.

    Examples
    --------
    >>> curve = lorenz_curve([0, 1, 1, 2], [0.1, 0.2, 0.2, 0.3])
    >>> curve.exposure_share.tolist(), curve.claim_share.tolist()
    ([0.0, 0.25, 0.75, 1.0], [0.0, 0.0, 0.5, 1.0])
    >>> curve.gini
    0.375
    """
    amount, prediction, weight = _counted(y_true, y_pred, sample_weight)
    if np.sum(weight * amount) <= 0:
        raise InvalidInputError(
            "lorenz_curve needs observed amounts with a positive sum, got "
            f"{np.sum(weight * amount):g} in {len(amount)} rows. Choose rows that have claims."
        )
    return _curve(amount, prediction, weight)


def normalized_gini_score(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Gini index as a share of the best one that these amounts allow.

    ``gini(y, ŷ) / gini(y, y)``. 1 means that the predictions put the amounts in their right order,
    0 that the order says nothing about them, negative values that it is upside down; higher is
    better. Unlike `gini_score` it can be compared between portfolios, and weights may be shares.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The observed amounts, per unit of weight: for policies with an exposure, ``claims /
        exposure``.
    y_pred : array-like of shape (n,)
        The predicted ones, or any score that rises with them.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (the exposure); once when left out.

    Returns
    -------
    float
        The index; nan, with a `NotEstimableWarning`, when the amounts sum to zero or less or are
        all equal.

    Examples
    --------
    >>> normalized_gini_score([0, 0, 50, 100], [1, 2, 3, 4])
    1.0
    >>> round(normalized_gini_score([0, 0, 50, 100], [1, 3, 2, 4]), 4)
    0.7143
    """
    amount, prediction, weight = _counted(y_true, y_pred, sample_weight)
    total = float(np.sum(weight * amount))
    best = _curve(amount, amount, weight).gini if total > 0 else 0.0
    if best <= 0:
        return not_estimable(
            "normalized_gini_score is not estimable: it needs amounts that differ and have a "
            f"positive sum, got {total:g} in {len(amount)} rows."
        )
    return _curve(amount, prediction, weight).gini / best


def _counted(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, sample_weight: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    amount, prediction, weight = as_amounts(y_true, y_pred, sample_weight)
    counted = weight > 0  # a row that does not count gets no point on the curve
    return amount[counted], prediction[counted], weight[counted]


def _curve(amount: FloatArray, prediction: FloatArray, weight: FloatArray) -> LorenzCurve:
    block = np.unique(prediction, return_inverse=True)[1]
    exposure = np.concatenate([[0.0], np.cumsum(np.bincount(block, weights=weight))])
    claims = np.concatenate([[0.0], np.cumsum(np.bincount(block, weights=weight * amount))])
    exposure_share, claim_share = exposure / exposure[-1], claims / claims[-1]
    area = np.sum(np.diff(exposure_share) * (claim_share[1:] + claim_share[:-1]) / 2)
    return LorenzCurve(exposure_share, claim_share, float(1 - 2 * area))
