"""How good the predictions are: the metrics of the paper's appendix B."""

import numpy as np
import numpy.typing as npt
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    mean_absolute_error,
    roc_auc_score,
    root_mean_squared_error,
)

from fcorr.metrics._checks import (
    TO_CLASSES,
    TO_DECISIONS,
    FloatArray,
    as_amounts,
    as_binary,
    as_weights,
    check_same_length,
    not_estimable,
)

# ------------------------------ ranking
# How well scores rank, for many columns of scores of the same rows at once.
#
# scikit-learn's functions take one column. A thousand categories make a million partitions to rank,
# and calling it for each would take the better part of an hour.


def areas_under_roc(truth: FloatArray, scores_CN: FloatArray, weight: FloatArray) -> FloatArray:
    """Area under the ROC curve for each row of scores; ties count one half.

    Both classes and positive weights are needed.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[0.1, 0.5, 0.5], [0.9, 0.1, 0.2]])
    >>> areas_under_roc(np.array([0.0, 0.0, 1.0]), scores, np.ones(3))
    array([0.75, 0.5 ])
    """
    found = _Ranked(truth, scores_CN, weight)
    found_before, found_after = found.positives
    n_pairs = np.sum(weight * truth) * np.sum(weight * (1 - truth))
    areas: FloatArray = (found.negative * (found_before + found_after) / 2).sum(axis=1) / n_pairs
    return areas


def average_precisions(truth: FloatArray, scores_CN: FloatArray, weight: FloatArray) -> FloatArray:
    """Average precision, scikit-learn's area under the precision-recall curve, for each row.

    A positive and positive weights are needed.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[0.1, 0.5, 0.5], [0.1, 0.2, 0.9]])
    >>> average_precisions(np.array([0.0, 0.0, 1.0]), scores, np.ones(3))
    array([0.5, 1. ])
    """
    found = _Ranked(truth, scores_CN, weight)
    true, false = found.positives[1], found.negatives[1]
    precisions: FloatArray = (found.positive * true / (true + false)).sum(axis=1)
    return precisions / np.sum(weight * truth)


class _Ranked:
    """Rows from the highest score to the lowest, with the weights passed on the way.

    `positive` and `negative` are the rows' own weights; `positives` and `negatives` pairs: the
    weight of higher scores, and of scores as high or higher.
    """

    def __init__(self, truth: FloatArray, scores_CN: FloatArray, weight: FloatArray) -> None:
        order_CN = np.argsort(-scores_CN, axis=1, kind="stable")
        ranked_CN = np.take_along_axis(scores_CN, order_CN, axis=1)
        self._is_new = np.ones(ranked_CN.shape, dtype=bool)
        self._is_new[:, 1:] = ranked_CN[:, 1:] != ranked_CN[:, :-1]
        self.positive = (weight * truth)[order_CN]
        self.negative = (weight * (1 - truth))[order_CN]
        self.positives = self._passed(self.positive)
        self.negatives = self._passed(self.negative)

    def _passed(self, weight_CN: FloatArray) -> tuple[FloatArray, FloatArray]:
        total = np.cumsum(weight_CN, axis=1)
        # Equal scores share the sums before the first and after the last of them. Sums never
        # fall, so that a running extreme carries them to the others.
        before = np.zeros_like(total)
        before[:, 1:] = np.where(self._is_new[:, 1:], total[:, :-1], 0)
        after = total.copy()
        after[:, :-1] = np.where(self._is_new[:, 1:], total[:, :-1], np.inf)
        np.maximum.accumulate(before, axis=1, out=before)
        backwards = after[:, ::-1]
        np.minimum.accumulate(backwards, axis=1, out=backwards)
        return before, after


# ------------------------------ performance
# How good the predictions are: the metrics of the paper's appendix B.
#
# What scikit-learn has is scikit-learn's own, imported here so that one module holds the whole list.
#
# NOTE[DIFF] The paper's AUROC counts a tie between a positive and a negative as a loss; scikit-learn
# counts it one half, so that a constant score gets 0.5 and not 0.

__all__ = [
    "accuracy_score",
    "average_precision_score",
    "f1_score",
    "false_negative_rate",
    "false_positive_rate",
    "gini_score",
    "mean_absolute_error",
    "percentage_error",
    "roc_auc_score",
    "root_mean_squared_error",
]


def false_positive_rate(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Share of the negatives that are decided positive: ``FP / (FP + TN)``.

    0 means that no negative is decided positive; lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The classes, 0 or 1.
    y_pred : array-like of shape (n,)
        The decisions, 0 or 1.
    sample_weight : array-like of shape (n,), optional
        How often each row counts; once when left out.

    Returns
    -------
    float
        The rate, in [0, 1]; nan, with a `NotEstimableWarning`, when there are no negatives.

    Examples
    --------
    >>> false_positive_rate([0, 0, 0, 0, 1], [0, 0, 0, 1, 1])
    0.25
    """
    truth, decision, weight = _decisions(y_true, y_pred, sample_weight)
    return _share(decision, weight * (1 - truth), "false_positive_rate", "y_true = 0")


def false_negative_rate(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Share of the positives that are decided negative: ``FN / (FN + TP)``.

    0 means that every positive is found; lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The classes, 0 or 1.
    y_pred : array-like of shape (n,)
        The decisions, 0 or 1.
    sample_weight : array-like of shape (n,), optional
        How often each row counts; once when left out.

    Returns
    -------
    float
        The rate, in [0, 1]; nan, with a `NotEstimableWarning`, when there are no positives.

    Examples
    --------
    >>> false_negative_rate([0, 1, 1, 1, 1], [0, 0, 1, 1, 1])
    0.25
    """
    truth, decision, weight = _decisions(y_true, y_pred, sample_weight)
    return _share(1 - decision, weight * truth, "false_negative_rate", "y_true = 1")


def gini_score(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Gini index: how well the predictions put the observed amounts in order.

    ``1 − 2/(N−1)·(N − Σ n·y_[n] / Σ y_[n])``, where ``y_[n]`` is the amount with the n-th smallest
    prediction. 1 means that the highest prediction has the whole amount, 0 that the order says
    nothing about the amounts (a constant prediction), negative values that it is upside down;
    higher is better. No model gets more than ``gini_score(y_true, y_true)``, of which
    `normalized_gini_score` is the share.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The observed amounts.
    y_pred : array-like of shape (n,)
        The predicted amounts, or any score that rises with them.
    sample_weight : array-like of shape (n,), optional
        How often each row counts; once when left out. The total plays the part of N and must be
        greater than 1: weights are counts here, not shares.

    Returns
    -------
    float
        The index; nan, with a `NotEstimableWarning`, when the amounts sum to zero or less or the
        weights to one or less.

    Notes
    -----
    NOTE[DIFF] The paper prints ``Σ n·y_[n]`` both above and below the line, which is always 1; the
    denominator here is ``Σ y_[n]``. Rows with equal predictions share the mean of their ranks, the
    average over all orders they could be put in, so that the order of the file cannot matter. A row
    of integer weight w counts as w tied rows: N becomes ``Σ w``, and a tied block of weight b above
    rows of weight L has the mean rank ``L + (b + 1)/2``.

    Examples
    --------
    >>> gini_score([0, 0, 0, 100], [1, 2, 3, 4])
    1.0
    >>> gini_score([0, 0, 0, 100], [4, 3, 2, 1])
    -1.0
    >>> gini_score([0, 0, 0, 100], [7, 7, 7, 7])
    0.0
    """
    amount, prediction, weight = as_amounts(y_true, y_pred, sample_weight)
    n_rows = weight.sum()
    total = np.sum(weight * amount)
    if total <= 0 or n_rows <= 1:
        return not_estimable(
            f"gini_score is not estimable: it needs amounts with a positive sum, got {total:g}, "
            f"and a total weight above 1, got {n_rows:g}, in {len(amount)} rows."
        )
    block = np.unique(prediction, return_inverse=True)[1]
    block_weight = np.bincount(block, weights=weight)
    mean_rank = np.cumsum(block_weight) - block_weight + (block_weight + 1) / 2
    amount_rank = np.sum(weight * amount * mean_rank[block]) / total
    return float(1 - 2 / (n_rows - 1) * (n_rows - amount_rank))


def percentage_error(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Error of the predicted total, as a share of the observed one: ``Σ (ŷ − y) / Σ y``.

    0 means that the totals agree (the portfolio is in balance); 0.1 that the prediction is 10 % too
    high, −0.1 that it is 10 % too low. The closer to 0 the better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The observed amounts.
    y_pred : array-like of shape (n,)
        The predicted amounts.
    sample_weight : array-like of shape (n,), optional
        How often each row counts; once when left out.

    Returns
    -------
    float
        The signed error; nan, with a `NotEstimableWarning`, when the observed amounts sum to zero.

    Examples
    --------
    >>> percentage_error([0, 100, 100], [50, 50, 120])
    0.1
    """
    amount, prediction, weight = as_amounts(y_true, y_pred, sample_weight)
    total = np.sum(weight * amount)
    if total == 0:
        return not_estimable(
            f"percentage_error is not estimable: y_true sums to zero over {len(amount)} rows."
        )
    return float(np.sum(weight * (prediction - amount)) / total)


def _decisions(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, sample_weight: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    truth = as_binary(y_true, "y_true", TO_CLASSES)
    decision = as_binary(y_pred, "y_pred", TO_DECISIONS)
    check_same_length(y_true=len(truth), y_pred=len(decision))
    return truth, decision, as_weights(sample_weight, len(truth))


def _share(event: FloatArray, weight: FloatArray, name: str, condition: str) -> float:
    """Weighted mean of an event among the rows that the weights select."""
    total = weight.sum()
    if total == 0:
        return not_estimable(
            f"{name} is not estimable: none of the {len(event)} rows has {condition} and a "
            "positive weight.",
            stacklevel=4,
        )
    return float(np.sum(weight * event) / total)
