"""What changes when only the sensitive category of a row is flipped.

The individual metrics of the paper's appendix C. All are computed from `FlippedScores`: C passes of
the model, whatever the number of metrics. For each category s_i that rows really have, the scores
of those rows under s_j and under s_k are compared, for all ordered pairs of categories. For several
columns flipped together a category is a combination of their values; for a measurement it is a
group of rows, and the value that stands for it.

0 means that flips change nothing, and lower is better, for every function here. It is invariance to
a flip of the column, the paper's definition, and not causal fairness: a model that never saw the
column has it too, and group differences that come through other columns remain.
"""

import numpy as np
import numpy.typing as npt

from fcorr.metrics._flipped_scores import FlippedScores
from fcorr.metrics._flips import flip_scores
from fcorr.metrics._partitions import (
    Normalize,
    differences_between,
    scores_by_category,
    sum_over_originals,
    weights_of,
)
from fcorr.metrics._ranking import areas_under_roc, average_precisions
from fcorr.metrics._validation import (
    TO_CLASSES,
    FloatArray,
    IntArray,
    as_binary,
    as_floats,
    check_threshold,
)
from fcorr.metrics._wasserstein import sum_of_distances

__all__ = [
    "FlippedScores",
    "auprc_gap",
    "auroc_gap",
    "average_individual_fairness",
    "decisions_flipped",
    "f1_gap",
    "flip_changes",
    "flip_scores",
    "mae_gap",
    "rmse_gap",
]

_QUANTILES = {"q50": 0.50, "q90": 0.90, "q95": 0.95, "q99": 0.99}


def average_individual_fairness(
    flips: FlippedScores,
    *,
    normalize: Normalize = "paper",
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """AvgIF: how far a flip moves the distribution of the scores.

    ``1/(C(C−1)) Σ_{s_i} Σ_{s_j≠s_k} W1(f(D'_{s_i→s_j}), f(D'_{s_i→s_k}))``, W1 the Wasserstein-1
    distance, in the units of the scores. 0 means that no flip moves the distribution; lower is
    better. Single rows may still move against each other: see `flip_changes`.

    Parameters
    ----------
    flips : FlippedScores
        The scores under all categories.
    normalize : {"paper", "mean"}
        "paper" sums over the original categories s_i, so that more categories give larger values.
        "mean" is that sum divided by the number of estimable s_i: the average over them.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure); once when left out.

    Returns
    -------
    float
        The metric. Categories that no row has are left out with a `NotEstimableWarning`.

    Examples
    --------
    >>> flips = FlippedScores(("f", "m"), [0, 0, 1], [[0.1, 0.3], [0.5, 0.7], [0.4, 0.8]])
    >>> round(average_individual_fairness(flips), 6)
    0.6
    >>> round(average_individual_fairness(flips, normalize="mean"), 6)
    0.3
    """
    weight = weights_of(flips, sample_weight)

    def distances(rows: IntArray) -> float:
        return sum_of_distances(scores_by_category(flips, rows), weight[rows])

    return sum_over_originals(
        "average_individual_fairness", flips, weight, distances, normalize=normalize
    )


def f1_gap(
    y_true: npt.ArrayLike,
    flips: FlippedScores,
    *,
    threshold: float = 0.5,
    normalize: Normalize = "paper",
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """How far a flip moves the F1 score of the decisions ``score >= threshold``.

    ``1/(C(C−1)) Σ_{s_i} Σ_{s_j≠s_k} |F1_{s_i→s_j} − F1_{s_i→s_k}|``. 0 means that decisions are
    equally good under every category; lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The classes, 0 or 1.
    flips : FlippedScores
        The scores under all categories.
    threshold : float
        The score from which on a decision is positive.
    normalize : {"paper", "mean"}
        The sum over original categories, or the average over the estimable ones.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure); once when left out.

    Returns
    -------
    float
        The gap. Categories without rows or with one class only are left out with a
        `NotEstimableWarning`; nan when none remains.

    Examples
    --------
    >>> flips = FlippedScores(
    ...     ("f", "m"), [0, 0, 1, 1], [[0.9, 0.1], [0.2, 0.2], [0.8, 0.8], [0.3, 0.3]]
    ... )
    >>> f1_gap([1, 0, 1, 0], flips)
    1.0
    """
    check_threshold(threshold)

    def f1(truth: FloatArray, scores_CN: FloatArray, weight: FloatArray) -> FloatArray:
        decided_CN = scores_CN >= threshold
        # 2TP / (2TP + FP + FN); positives exist, so the denominator is not zero
        positive, selected = np.sum(weight * truth), np.sum(weight * decided_CN, axis=1)
        f1: FloatArray = 2 * np.sum(weight * truth * decided_CN, axis=1) / (positive + selected)
        return f1

    truth = as_binary(y_true, "y_true", TO_CLASSES)
    weight = weights_of(flips, sample_weight)
    gaps = differences_between(f1, truth, flips, weight)
    return sum_over_originals("f1_gap", flips, weight, gaps, normalize=normalize, classes=truth)


def auroc_gap(
    y_true: npt.ArrayLike,
    flips: FlippedScores,
    *,
    normalize: Normalize = "paper",
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """How far a flip moves the area under the ROC curve.

    ``1/(C(C−1)) Σ_{s_i} Σ_{s_j≠s_k} |AUROC_{s_i→s_j} − AUROC_{s_i→s_k}|``. 0 means that scores rank
    equally well under every category; lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The classes, 0 or 1.
    flips : FlippedScores
        The scores under all categories.
    normalize : {"paper", "mean"}
        The sum over original categories, or the average over the estimable ones.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure); once when left out.

    Returns
    -------
    float
        The gap. Categories without rows or with one class only are left out with a
        `NotEstimableWarning`; nan when none remains.

    Examples
    --------
    >>> flips = FlippedScores(
    ...     ("f", "m"), [0, 0, 1, 1], [[0.9, 0.1], [0.2, 0.2], [0.8, 0.8], [0.3, 0.3]]
    ... )
    >>> auroc_gap([1, 0, 1, 0], flips)
    1.0
    """
    truth = as_binary(y_true, "y_true", TO_CLASSES)
    weight = weights_of(flips, sample_weight)
    gaps = differences_between(areas_under_roc, truth, flips, weight)
    return sum_over_originals("auroc_gap", flips, weight, gaps, normalize=normalize, classes=truth)


def auprc_gap(
    y_true: npt.ArrayLike,
    flips: FlippedScores,
    *,
    normalize: Normalize = "paper",
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """How far a flip moves the area under the precision-recall curve.

    ``1/(C(C−1)) Σ_{s_i} Σ_{s_j≠s_k} |AUPRC_{s_i→s_j} − AUPRC_{s_i→s_k}|``, AUPRC as scikit-learn's
    average precision. 0 means that positives are found equally well under every category; lower is
    better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The classes, 0 or 1.
    flips : FlippedScores
        The scores under all categories.
    normalize : {"paper", "mean"}
        The sum over original categories, or the average over the estimable ones.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure); once when left out.

    Returns
    -------
    float
        The gap. Categories without rows or with one class only are left out with a
        `NotEstimableWarning`; nan when none remains.

    Examples
    --------
    >>> flips = FlippedScores(
    ...     ("f", "m"), [0, 0, 1, 1], [[0.9, 0.1], [0.2, 0.2], [0.8, 0.8], [0.3, 0.3]]
    ... )
    >>> auprc_gap([1, 0, 1, 0], flips)
    0.5
    """
    truth = as_binary(y_true, "y_true", TO_CLASSES)
    weight = weights_of(flips, sample_weight)
    gaps = differences_between(average_precisions, truth, flips, weight)
    return sum_over_originals("auprc_gap", flips, weight, gaps, normalize=normalize, classes=truth)


def rmse_gap(
    y_true: npt.ArrayLike,
    flips: FlippedScores,
    *,
    normalize: Normalize = "paper",
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """How far a flip moves the root mean squared error.

    ``1/(C(C−1)) Σ_{s_i} Σ_{s_j≠s_k} |RMSE_{s_i→s_j} − RMSE_{s_i→s_k}|``, in the units of the
    target. 0 means that predictions are equally exact under every category; lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The observed amounts.
    flips : FlippedScores
        The predicted amounts under all categories.
    normalize : {"paper", "mean"}
        The sum over original categories, or the average over the estimable ones.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure); once when left out.

    Returns
    -------
    float
        The gap. Categories that no row has are left out with a `NotEstimableWarning`.

    Examples
    --------
    >>> flips = FlippedScores(("f", "m"), [0, 1], [[1.0, 4.0], [2.0, 2.0]])
    >>> rmse_gap([1.0, 2.0], flips)
    3.0
    """

    def rmse(truth: FloatArray, scores_CN: FloatArray, weight: FloatArray) -> FloatArray:
        mean = np.sum(weight * (scores_CN - truth) ** 2, axis=1) / np.sum(weight)
        return np.sqrt(mean)

    weight = weights_of(flips, sample_weight)
    gaps = differences_between(rmse, as_floats(y_true, "y_true"), flips, weight)
    return sum_over_originals("rmse_gap", flips, weight, gaps, normalize=normalize)


def mae_gap(
    y_true: npt.ArrayLike,
    flips: FlippedScores,
    *,
    normalize: Normalize = "paper",
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """How far a flip moves the mean absolute error.

    ``1/(C(C−1)) Σ_{s_i} Σ_{s_j≠s_k} |MAE_{s_i→s_j} − MAE_{s_i→s_k}|``, in the units of the target.
    0 means that predictions are equally exact under every category; lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The observed amounts.
    flips : FlippedScores
        The predicted amounts under all categories.
    normalize : {"paper", "mean"}
        The sum over original categories, or the average over the estimable ones.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure); once when left out.

    Returns
    -------
    float
        The gap. Categories that no row has are left out with a `NotEstimableWarning`.

    Examples
    --------
    >>> flips = FlippedScores(("f", "m"), [0, 1], [[1.0, 4.0], [2.0, 2.0]])
    >>> mae_gap([1.0, 2.0], flips)
    3.0
    """

    def mae(truth: FloatArray, scores_CN: FloatArray, weight: FloatArray) -> FloatArray:
        mean: FloatArray = np.sum(weight * np.abs(scores_CN - truth), axis=1) / np.sum(weight)
        return mean

    weight = weights_of(flips, sample_weight)
    gaps = differences_between(mae, as_floats(y_true, "y_true"), flips, weight)
    return sum_over_originals("mae_gap", flips, weight, gaps, normalize=normalize)


def flip_changes(
    flips: FlippedScores, *, sample_weight: npt.ArrayLike | None = None
) -> dict[str, float]:
    """Summarise each row's largest change of score, ``max_{s,s'} |f(x,s) − f(x,s')|``.

    0 means that no flip changes the row's score; lower is better. A row's real score counts among
    those compared also where its own value is not among the categories.

    Parameters
    ----------
    flips : FlippedScores
        The scores under all categories.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure); once when left out.

    Returns
    -------
    dict
        "mean" and "max" of the rows' changes, and the quantiles "q50", "q90", "q95" and "q99":
        the smallest change that at least this share of the rows does not exceed.

    Examples
    --------
    >>> flips = FlippedScores(("f", "m"), [0, 1, 1, 0], [[0, 0], [0, 0], [0, 0], [0.25, 0.75]])
    >>> flip_changes(flips)
    {'mean': 0.125, 'max': 0.5, 'q50': 0.0, 'q90': 0.5, 'q95': 0.5, 'q99': 0.5}
    """
    weight = weights_of(flips, sample_weight)
    change = flips.changes
    # Without interpolation a quantile is some row's change, and weights mean repetition.
    quantiles = np.quantile(
        change, list(_QUANTILES.values()), weights=weight, method="inverted_cdf"
    )
    return {
        "mean": float(np.average(change, weights=weight)),
        "max": float(change[weight > 0].max()),
        **{name: float(value) for name, value in zip(_QUANTILES, quantiles, strict=True)},
    }


def decisions_flipped(
    flips: FlippedScores, threshold: float = 0.5, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Share of the rows whose decision differs between some two categories.

    A decision is ``score >= threshold``. 0 means that no decision depends on the sensitive column;
    lower is better. The real decision counts among those compared also where a row's own value is
    not among the categories.

    Parameters
    ----------
    flips : FlippedScores
        The scores under all categories.
    threshold : float
        The score from which on a decision is positive.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure); once when left out.

    Returns
    -------
    float
        The share, in [0, 1].

    Examples
    --------
    >>> flips = FlippedScores(("f", "m"), [0, 1, 1, 0], [[0, 1], [0, 0], [0.5, 0.6], [0.1, 0.4]])
    >>> decisions_flipped(flips)
    0.25
    """
    check_threshold(threshold)
    weight = weights_of(flips, sample_weight)
    flipped = (flips.lowest < threshold) & (threshold <= flips.highest)
    return float(np.average(flipped, weights=weight))
