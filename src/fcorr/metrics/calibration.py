"""Calibration: whether what was predicted is what came about, by group and by prediction."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fcorr._core import InvalidInputError, RandomState, draw_seed
from fcorr.metrics._checks import (
    Column,
    FloatArray,
    ResultTable,
    Weights,
    as_classes,
    as_columns,
    check_confidence,
    check_option,
    check_same_length,
    encode_groups,
    leave_out_uncounted,
    refuse_rows,
    rows_to_html,
)
from fcorr.metrics.insurance import lift_table
from fcorr.metrics.intervals import bootstrap_interval


@dataclass(frozen=True)
class ActualExpected:
    """What was expected and what came about in one group; nan is what its rows cannot give.

    Attributes
    ----------
    group, n, weight : object, int, float
        Label, number of rows and total weight (exposure), as in `GroupRates`.
    actual, expected : float
        Totals of the observed and of the predicted amounts.
    ratio : float
        Actual over expected: above 1, the group brought more than was predicted.
    low, high : float
        The ends of the ratio's confidence interval.
    """

    group: Any
    n: int
    weight: float
    actual: float
    expected: float
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class ActualExpectedTable(ResultTable):
    """One line per group, sorted by label, and the confidence of their intervals."""

    rows: tuple[ActualExpected, ...]
    confidence: float
    _caption = "Actual over expected by group"

    def _repr_html_(self) -> str:
        note = f"low and high hold the true ratio with {self.confidence:g} confidence."
        return rows_to_html(self._caption, self.rows, note)


@leave_out_uncounted
def actual_over_expected(
    y_true: Column,
    y_pred: Column,
    *,
    sensitive_features: Any,
    sample_weight: Weights = None,
    interval: Literal["poisson", "bootstrap"] = "poisson",
    confidence: float = 0.95,
    n_resamples: int = 500,
    random_state: RandomState = None,
) -> ActualExpectedTable:
    """Divide each group's observed total by its predicted one.

    1 means that the group pays for itself; a group above 1 is charged too little, one below 1 too
    much, for the claims that it has.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The observed counts or amounts, per unit of weight: for policies with an exposure, ``claims
        / exposure``, or the claims themselves beside expected claims, without weights.
    y_pred : array-like of shape (n,)
        The predicted ones.
    sensitive_features : column of n labels, or several
        Each row's group, as in `group_rates`.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (the exposure); once when left out.
    interval : {"poisson", "bootstrap"}, default="poisson"
        "poisson" takes the actual total for a Poisson count (Garwood's exact interval): fast, for
        claim counts only, and too narrow where they vary more than a Poisson number does.
        "bootstrap" draws the group's rows again, for amounts and any weights as well.

        A total of claims is a Poisson count, and so is that of ``claims / exposure`` weighted by
        the exposure. A total of counts with other weights is none: an interval made of it would
        become ten times narrower when all weights are multiplied by 100. "poisson" refuses whole
        numbers with weights other than 1, which may be either.
    confidence, n_resamples, random_state
        As in `bootstrap_interval`; the resamples are drawn for each group.

    Returns
    -------
    ActualExpectedTable
        Totals, ratio and interval for each group; nan where the expected total is not positive.

    Examples
    --------
    >>> table = actual_over_expected(
    ...     [0, 1, 2, 1], [1, 1, 1, 1], sensitive_features=["f", "f", "m", "m"]
    ... )
    >>> [(row.group, row.actual, row.expected, row.ratio) for row in table.rows]
    [('f', 1.0, 2.0, 0.5), ('m', 3.0, 2.0, 1.5)]
    """
    from scipy.special import gammaincinv  # slow to import

    check_option("interval", interval, ("poisson", "bootstrap"))
    check_confidence(confidence)
    observed, predicted, weight = as_columns(sample_weight, y_true=y_true, y_pred=y_pred)
    groups, codes = encode_groups(sensitive_features)
    check_same_length(y_true=observed, sensitive_features=codes)
    if interval == "poisson":
        _check_claims(observed, weight)
    rng = np.random.default_rng(draw_seed(random_state))

    rows = []
    for code, group in enumerate(groups):
        chosen = codes == code
        y, mu, w = observed[chosen], predicted[chosen], weight[chosen]
        actual, expected = float(np.sum(w * y)), float(np.sum(w * mu))
        low = high = math.nan
        if expected > 0 and interval == "poisson":
            # Garwood's interval for the mean of a Poisson number, from one count.
            tail = (1 - confidence) / 2
            low = float(gammaincinv(actual, tail)) / expected if actual > 0 else 0.0
            high = float(gammaincinv(actual + 1, 1 - tail)) / expected
        elif expected > 0:
            options: Any = {"n_resamples": n_resamples, "confidence": confidence}
            drawn = bootstrap_interval(_ratio, y, mu, sample_weight=w, random_state=rng, **options)
            low, high = drawn.low, drawn.high
        row = (len(y), float(w.sum()), actual, expected, _ratio(y, mu, w), low, high)
        rows.append(ActualExpected(group, *row))
    return ActualExpectedTable(tuple(rows), confidence)


@leave_out_uncounted
def expected_calibration_error(
    y_true: Column, y_prob: Column, *, n_bins: int = 10, sample_weight: Weights = None
) -> float:
    """Mean distance between predicted probability and observed share, over bins of equal weight.

    0 means that of the rows with a predicted probability of 30 %, 30 % are positive, and so on;
    lower is better. Chance alone leaves about ``√(p·(1 − p)·n_bins/n)`` in n rows.

    Parameters as in :func:`lift_table`, of classes, 0 or 1, and predicted probabilities of class 1.
    The error lies in [0, 1]; the table's bins, drawn, are a reliability diagram.

    Examples
    --------
    >>> expected_calibration_error([0, 0, 0, 1], [0.25, 0.25, 0.25, 0.25])
    0.0
    >>> expected_calibration_error([0, 0, 1, 1], [0.25, 0.25, 0.5, 0.5], n_bins=2)
    0.375
    """
    truth, probability, weight = as_columns(sample_weight, y_true=as_classes(y_true), y_prob=y_prob)
    is_wrong = (probability < 0) | (probability > 1)
    rule = "y_prob must hold probabilities in [0, 1]"
    way_out = "Pass predict_proba(X)[:, 1], not a score on another scale."
    refuse_rows(is_wrong, probability, rule, way_out)
    rows = lift_table(truth, probability, n_bins=n_bins, sample_weight=weight).rows
    total = sum(row.weight for row in rows)
    return sum(row.weight * abs(row.predicted - row.actual) for row in rows) / total


def _check_claims(observed: FloatArray, weight: FloatArray) -> None:
    """Refuse what, weighted, does not add up to a number of claims."""

    def is_count(values: FloatArray) -> npt.NDArray[np.bool_]:
        return (values >= 0) & (np.abs(values - np.rint(values)) < 1e-6)

    is_weighted = (weight != 1) & (observed != 0)  # without claims there is nothing to weigh
    if is_weighted.any() and is_count(observed[is_weighted]).all():
        row = int(np.argmax(is_weighted))
        raise InvalidInputError(
            "interval='poisson' needs claim counts without weights, or claims per exposure with "
            f"the exposure as sample_weight, got {observed[row]:g} with the weight {weight[row]:g} "
            f"in row {row}, which may be either. Pass claims and expected claims without "
            "sample_weight, or use interval='bootstrap'."
        )
    way_out = "Use interval='bootstrap' for amounts, or pass the exposure as sample_weight."
    is_wrong = ~is_count(weight * observed)
    refuse_rows(is_wrong, observed, "interval='poisson' needs claim counts", way_out)


def _ratio(y_true: FloatArray, y_pred: FloatArray, sample_weight: FloatArray) -> float:
    expected = np.sum(sample_weight * y_pred)
    return float(np.sum(sample_weight * y_true) / expected) if expected > 0 else math.nan
