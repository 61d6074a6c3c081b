"""Performance metrics: how good predictions are, the metrics of the paper's appendix B.

What scikit-learn has is scikit-learn's own, and `fcorr.metrics` passes it on.

NOTE[DIFF] The paper's AUROC counts a tie between a positive and a negative as a loss; scikit-learn
counts it one half, so that a constant score gets 0.5 and not 0.
"""

import numpy as np
import numpy.typing as npt

from fcorr.metrics._checks import (
    Column,
    FloatArray,
    Weights,
    as_columns,
    as_decisions,
    leave_out_uncounted,
    not_estimable,
)


@leave_out_uncounted
def false_positive_rate(y_true: Column, y_pred: Column, *, sample_weight: Weights = None) -> float:
    """Share of the negatives that are decided positive: ``FP / (FP + TN)``.

    0 means that no negative is decided positive; lower is better.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        The classes and the decisions, 0 or 1.
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
    truth, decision, weight = as_decisions(y_true, y_pred, sample_weight)
    return _share(decision, weight * (1 - truth), "false_positive_rate", "y_true = 0")


@leave_out_uncounted
def false_negative_rate(y_true: Column, y_pred: Column, *, sample_weight: Weights = None) -> float:
    """Share of the positives that are decided negative: ``FN / (FN + TP)``.

    0 means that every positive is found; lower is better. Parameters as in
    :func:`false_positive_rate`; nan, with a `NotEstimableWarning`, when there are no positives.

    Examples
    --------
    >>> false_negative_rate([0, 1, 1, 1, 1], [0, 0, 1, 1, 1])
    0.25
    """
    truth, decision, weight = as_decisions(y_true, y_pred, sample_weight)
    return _share(1 - decision, weight * truth, "false_negative_rate", "y_true = 1")


def _share(event: FloatArray, weight: FloatArray, name: str, condition: str) -> float:
    """Weighted mean of an event among the rows that the weights select."""
    total = weight.sum()
    if total == 0:
        return not_estimable(
            f"{name} is not estimable: none of the {len(event)} rows has {condition}.",
            stacklevel=5,
        )
    return float(np.sum(weight * event) / total)


@leave_out_uncounted
def gini_score(y_true: Column, y_pred: Column, *, sample_weight: Weights = None) -> float:
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
    >>> gini_score([0, 0, 0, 100], [1, 2, 3, 4]), gini_score([0, 0, 0, 100], [4, 3, 2, 1])
    (1.0, -1.0)
    >>> gini_score([0, 0, 0, 100], [7, 7, 7, 7])
    0.0
    """
    amount, prediction, weight = as_columns(sample_weight, y_true=y_true, y_pred=y_pred)
    n_rows, total = weight.sum(), np.sum(weight * amount)
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


@leave_out_uncounted
def percentage_error(y_true: Column, y_pred: Column, *, sample_weight: Weights = None) -> float:
    """Error of the predicted total, as a share of the observed one: ``Σ (ŷ − y) / Σ y``.

    0 means that the totals agree (the portfolio is in balance); 0.1 that the prediction is 10 % too
    high, −0.1 that it is 10 % too low. The closer to 0 the better. Parameters as in
    :func:`gini_score`; nan, with a `NotEstimableWarning`, when the observed amounts sum to zero.

    Examples
    --------
    >>> percentage_error([0, 100, 100], [50, 50, 120])
    0.1
    """
    amount, prediction, weight = as_columns(sample_weight, y_true=y_true, y_pred=y_pred)
    total = np.sum(weight * amount)
    if total == 0:
        return not_estimable(
            f"percentage_error is not estimable: y_true sums to zero over {len(amount)} rows."
        )
    return float(np.sum(weight * (prediction - amount)) / total)


# ------------------------------------------------------------------------------ ranking
# For many columns of scores of the same rows at once. scikit-learn's functions take one column: a
# thousand categories make a million partitions to rank, and calling it for each would take the
# better part of an hour.


def areas_under_roc(truth: FloatArray, scores_CN: FloatArray, weight: FloatArray) -> FloatArray:
    """Area under the ROC curve for each line of scores; ties count one half.

    Both classes and positive weights are needed.
    """
    positive, negative = weight * truth, weight * (1 - truth)
    order_CN, is_new_CN = _from_highest(scores_CN)
    before_CN, after_CN = _weight_passed(positive[order_CN], is_new_CN)
    ranked_CN = negative[order_CN] * (before_CN + after_CN) / 2
    areas: FloatArray = ranked_CN.sum(axis=1) / (positive.sum() * negative.sum())
    return areas


def average_precisions(truth: FloatArray, scores_CN: FloatArray, weight: FloatArray) -> FloatArray:
    """Average precision, scikit-learn's area under the precision-recall curve, for each line.

    A positive and positive weights are needed.
    """
    order_CN, is_new_CN = _from_highest(scores_CN)
    positive_CN = (weight * truth)[order_CN]
    _, true_CN = _weight_passed(positive_CN, is_new_CN)
    _, decided_CN = _weight_passed(weight[order_CN], is_new_CN)
    precisions: FloatArray = (positive_CN * true_CN / decided_CN).sum(axis=1)
    return precisions / np.sum(weight * truth)


def _from_highest(scores_CN: FloatArray) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Order each line from the highest score, and mark the first of equal scores."""
    order_CN = np.argsort(-scores_CN, axis=1, kind="stable")
    ranked_CN = np.take_along_axis(scores_CN, order_CN, axis=1)
    is_new_CN = np.ones(ranked_CN.shape, dtype=bool)
    is_new_CN[:, 1:] = ranked_CN[:, 1:] != ranked_CN[:, :-1]
    return order_CN, is_new_CN


def _weight_passed(
    weight_CN: FloatArray, is_new_CN: npt.NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Sum the weights of higher scores, and of scores as high or higher."""
    total = np.cumsum(weight_CN, axis=1)
    # Equal scores share the sums before the first and after the last of them. Sums never fall, so
    # that a running extreme carries them to the others.
    before = np.zeros_like(total)
    before[:, 1:] = np.where(is_new_CN[:, 1:], total[:, :-1], 0)
    after = total.copy()
    after[:, :-1] = np.where(is_new_CN[:, 1:], total[:, :-1], np.inf)
    np.maximum.accumulate(before, axis=1, out=before)
    backwards = after[:, ::-1]
    np.minimum.accumulate(backwards, axis=1, out=backwards)
    return before, after
