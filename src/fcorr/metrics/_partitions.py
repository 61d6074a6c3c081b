"""The sums that the paper's individual metrics share: over original categories, over pairs."""

import math
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from fcorr._core import InvalidInputError, NotEstimableWarning, enumerate_some
from fcorr.metrics._flipped_scores import FlippedScores
from fcorr.metrics._labels import describe_label
from fcorr.metrics._pairs import BLOCK_SIZE, sum_over_pairs
from fcorr.metrics._validation import (
    FloatArray,
    IntArray,
    as_weights,
    check_option,
    check_same_length,
)

Normalize = Literal["paper", "mean"]
PairSum = Callable[[IntArray], float]
"""From the rows of one original category s_i, a sum over ordered pairs (s_j, s_k)."""
ColumnMetric = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""From truth (n,), scores under some categories (c, n) and weights (n,), a number for each (c,)."""


def weights_of(flips: FlippedScores, sample_weight: Any) -> FloatArray:
    """Return one weight per row of the flipped scores, ones when none are given."""
    if not isinstance(flips, FlippedScores):
        raise InvalidInputError(
            f"flips must be FlippedScores, got {type(flips).__name__}. "
            "Make them with flip_scores(predict, X, sensitive)."
        )
    return as_weights(sample_weight, len(flips))


def sum_over_originals(
    name: str,
    flips: FlippedScores,
    weight: FloatArray,
    pair_sum: PairSum,
    *,
    normalize: Normalize,
    classes: FloatArray | None = None,
) -> float:
    """``1/(C(C−1)) Σ_{s_i} pair_sum(rows of s_i)``, over the s_i for which it is estimable.

    A category needs rows of positive weight and, where `classes` are given, both classes among
    them. The others are left out with a warning; nan when none remains.
    """
    check_option("normalize", normalize, ("paper", "mean"))
    sums, left_out = [], []
    for category, rows in zip(flips.categories, _rows_by_original(flips, weight), strict=True):
        if _is_estimable(rows, classes):
            sums.append(pair_sum(rows))
        else:
            left_out.append(f"{describe_label(category)} (n={len(rows)})")
    n_categories = len(flips.categories)
    if left_out:
        lacking = "no rows" if classes is None else "no rows or one class only"
        warnings.warn(
            f"{name} is not estimable for {len(left_out)} of {n_categories} original categories, "
            f"which have {lacking} and are left out: {enumerate_some(left_out)}.",
            NotEstimableWarning,
            stacklevel=3,
        )
    if not sums:
        return math.nan
    total = sum(sums) / (n_categories * (n_categories - 1))
    return total if normalize == "paper" else total / len(sums)


def differences_between(
    metric: ColumnMetric, truth: FloatArray, flips: FlippedScores, weight: FloatArray
) -> PairSum:
    """Return the sum of ``|metric_{s_j} − metric_{s_k}|`` over ordered pairs, for rows to come."""
    check_same_length(y_true=len(truth), flips=len(flips))

    def pair_sum(rows: IntArray) -> float:
        scores_CN = scores_by_category(flips, rows)
        n_at_once = max(1, BLOCK_SIZE // len(rows))
        values = [
            metric(truth[rows], scores_CN[start : start + n_at_once], weight[rows])
            for start in range(0, len(scores_CN), n_at_once)
        ]
        return float(sum_over_pairs(np.concatenate(values)[None, :])[0])

    return pair_sum


def scores_by_category(flips: FlippedScores, rows: IntArray) -> FloatArray:
    """Scores of some rows, of shape (C, n): the samples that are compared lie in one piece."""
    return np.ascontiguousarray(flips.scores[rows].T)


def _rows_by_original(flips: FlippedScores, weight: FloatArray) -> list[IntArray]:
    """Rows of positive weight of each category; sorted once, not searched once per category."""
    counted = np.flatnonzero(weight > 0)
    rows = counted[np.argsort(flips.original[counted], kind="stable")]
    ends = np.searchsorted(flips.original[rows], np.arange(1, len(flips.categories)))
    return np.split(rows, ends)


def _is_estimable(rows: IntArray, classes: FloatArray | None) -> bool:
    if len(rows) == 0:
        return False
    return classes is None or bool(classes[rows].min() != classes[rows].max())
