"""Gaps of the paper's appendix C: how far a flip of the sensitive column moves performance.

``1/(C(C−1)) Σ_{s_i} Σ_{s_j≠s_k} |metric_{s_i→s_j} − metric_{s_i→s_k}|``: for each category s_i that
rows really have, the metric of those rows under s_j and under s_k is compared, for all ordered
pairs of categories. 0 means that flips change nothing, and lower is better.

NOTE[DIFF] The paper's AUROC counts a tie between a positive and a negative as a loss; here, as in
scikit-learn, it counts one half, so that a constant score gets 0.5 and not 0.
"""

import math
from collections.abc import Callable

import numpy as np

from fcorr._core import InvalidInputError, enumerate_some
from fcorr.metrics import FlippedScores
from fcorr.metrics._checks import (
    Column,
    FloatArray,
    IntArray,
    Weights,
    as_classes,
    as_floats,
    check_same_length,
    describe_label,
    leave_out_uncounted,
    not_estimable,
)
from fcorr.metrics.flips import sum_over_pairs, weights_of


@leave_out_uncounted
def f1_gap(
    y_true: Column,
    flips: FlippedScores,
    *,
    threshold: float = 0.5,
    sample_weight: Weights = None,
) -> float:
    """How far a flip moves the F1 score of the decisions ``score >= threshold``.

    ``1/(C(C−1)) Σ_{s_i} Σ_{s_j≠s_k} |F1_{s_i→s_j} − F1_{s_i→s_k}|``. 0 means that decisions are
    equally good under every category; lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The classes, 0 or 1.
    threshold : float
        The score from which on a decision is positive.
    flips : FlippedScores
        The scores under all categories.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure); once when left out.

    Returns
    -------
    float
        The gap. Categories without rows or with one class only are left out with a
        `NotEstimableWarning`; nan when none remains.

    Examples
    --------
    >>> flips = FlippedScores(("f", "m"), [0, 0, 1, 1], [[9, 1], [2, 2], [8, 8], [3, 3]])
    >>> f1_gap([1, 0, 1, 0], flips, threshold=5), auroc_gap([1, 0, 1, 0], flips)
    (1.0, 1.0)
    >>> auprc_gap([1, 0, 1, 0], flips), mae_gap([9, 2, 8, 3], flips)
    (0.5, 4.0)
    """
    if not np.isfinite(threshold):
        raise InvalidInputError(
            f"threshold must be a finite number, got {threshold}. Choose one on the scale of the "
            "scores, such as 0.5 for probabilities."
        )

    def f1(truth: FloatArray, scores: FloatArray, weight: FloatArray) -> float:
        decided = scores >= threshold
        # 2TP / (2TP + FP + FN); positives exist, so the denominator is not zero
        positive, selected = np.sum(weight * truth), np.sum(weight * decided)
        return float(2 * np.sum(weight * truth * decided) / (positive + selected))

    return _gap("f1_gap", f1, y_true, flips, sample_weight)


@leave_out_uncounted
def auroc_gap(y_true: Column, flips: FlippedScores, *, sample_weight: Weights = None) -> float:
    """How far a flip moves the area under the ROC curve.

    0 means that scores rank equally well under every category; lower is better. Parameters and
    left-out categories as in :func:`f1_gap`, without a threshold.
    """
    return _gap("auroc_gap", area_under_roc, y_true, flips, sample_weight)


@leave_out_uncounted
def auprc_gap(y_true: Column, flips: FlippedScores, *, sample_weight: Weights = None) -> float:
    """How far a flip moves the area under the precision-recall curve.

    The area is scikit-learn's average precision. 0 means that positives are found equally well
    under every category; lower is better. Parameters and left-out categories as in :func:`f1_gap`,
    without a threshold.
    """
    return _gap("auprc_gap", average_precision, y_true, flips, sample_weight)


@leave_out_uncounted
def rmse_gap(y_true: Column, flips: FlippedScores, *, sample_weight: Weights = None) -> float:
    """How far a flip moves the root mean squared error, in the units of the target.

    0 means that predictions are equally exact under every category; lower is better. Parameters as
    in :func:`f1_gap`, without a threshold; `y_true` are the observed amounts, and only categories
    that no row has are left out.
    """

    def rmse(truth: FloatArray, scores: FloatArray, weight: FloatArray) -> float:
        return math.sqrt(np.average((scores - truth) ** 2, weights=weight))

    return _gap("rmse_gap", rmse, y_true, flips, sample_weight, of_classes=False)


@leave_out_uncounted
def mae_gap(y_true: Column, flips: FlippedScores, *, sample_weight: Weights = None) -> float:
    """How far a flip moves the mean absolute error, in the units of the target.

    0 means that predictions are equally exact under every category; lower is better. Parameters and
    left-out categories as in :func:`rmse_gap`.
    """

    def mae(truth: FloatArray, scores: FloatArray, weight: FloatArray) -> float:
        return float(np.average(np.abs(scores - truth), weights=weight))

    return _gap("mae_gap", mae, y_true, flips, sample_weight, of_classes=False)


def _gap(
    name: str,
    metric: Callable[[FloatArray, FloatArray, FloatArray], float],
    y_true: Column,
    flips: FlippedScores,
    sample_weight: Weights,
    *,
    of_classes: bool = True,
) -> float:
    """Compare a metric of truth, scores under one category and weights.

    One of classes needs both of them in an original category.
    """
    weight = weights_of(flips, sample_weight)
    truth = as_classes(y_true) if of_classes else as_floats(y_true, "y_true")
    check_same_length(y_true=truth, flips=flips)

    def differences(rows: IntArray) -> float | None:
        if of_classes and not np.ptp(truth[rows]):
            return None
        values = [metric(truth[rows], scores, weight[rows]) for scores in flips.scores[rows].T]
        return float(sum_over_pairs(np.array([values]))[0])

    lacking = "no rows or one class only" if of_classes else "no rows"
    return _sum_over_categories(name, flips, differences, lacking, stacklevel=6)


# ------------------------------------------------------------------------------ ranking
# Not scikit-learn's functions, whose checks take longer than the work: a thousand categories make a
# million partitions to rank, and calling it for each would take the better part of an hour.


def area_under_roc(truth: FloatArray, scores: FloatArray, weight: FloatArray) -> float:
    """Area under the ROC curve; ties count one half. Both classes are needed."""
    positive, negative = _weight_by_score(truth, scores, weight)
    below = np.cumsum(negative) - negative / 2
    return float(np.sum(positive * below) / (positive.sum() * negative.sum()))


def average_precision(truth: FloatArray, scores: FloatArray, weight: FloatArray) -> float:
    """Average precision, scikit-learn's area under the precision-recall curve."""
    positive, negative = _weight_by_score(truth, scores, weight)[:, ::-1]
    precision = np.cumsum(positive) / np.cumsum(positive + negative)
    return float(np.sum(positive * precision) / positive.sum())


def _weight_by_score(truth: FloatArray, scores: FloatArray, weight: FloatArray) -> FloatArray:
    """Sum the weights of positives and of negatives with each score, from the lowest: (2, k)."""
    block = np.unique(scores, return_inverse=True)[1]
    of_class = (weight * truth, weight * (1 - truth))
    return np.array([np.bincount(block, weights=each) for each in of_class])


def _sum_over_categories(
    name: str,
    flips: FlippedScores,
    measure: Callable[[IntArray], float | None],
    lacking: str = "no rows",
    *,
    stacklevel: int = 5,
) -> float:
    """``1/(C(C−1)) Σ_{s_i} measure(rows of s_i)``, the sum over the original categories.

    Those without rows, or for which the measure has no answer, are left out with a warning; nan
    when none remains.
    """
    # Sorted once, not searched once per category.
    by_original = np.argsort(flips.original, kind="stable")
    n_categories = len(flips.categories)
    ends = np.searchsorted(flips.original[by_original], np.arange(1, n_categories))
    found, left_out = [], []
    for category, rows in zip(flips.categories, np.split(by_original, ends), strict=True):
        value = measure(rows) if len(rows) else None
        if value is None:
            left_out.append(f"{describe_label(category)} (n={len(rows)})")
        else:
            found.append(value)
    if left_out:
        not_estimable(
            f"{name} is not estimable for {len(left_out)} of {n_categories} original categories, "
            f"which have {lacking} and are left out: {enumerate_some(left_out)}.",
            stacklevel=stacklevel,
        )
    return sum(found) / (n_categories * (n_categories - 1)) if found else math.nan
