"""How well scores rank, for many columns of scores of the same rows at once.

scikit-learn's functions take one column. A thousand categories make a million partitions to rank,
and calling it for each would take the better part of an hour.
"""

import numpy as np

from fcorr.metrics._validation import FloatArray


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
