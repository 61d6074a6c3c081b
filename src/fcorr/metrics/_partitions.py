"""The sums that the paper's individual metrics share: over original categories, over pairs."""

import math
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from fcorr._core.errors import InvalidInputError, NotEstimableWarning, enumerate_some
from fcorr.metrics._flips import FlippedScores
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
ColumnMetric = Callable[[FloatArray, FloatArray, FloatArray], float]
"""From truth, scores under one category, and weights, a number."""


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
    for code, category in enumerate(flips.categories):
        rows = np.flatnonzero((flips.original == code) & (weight > 0))
        if _is_estimable(rows, classes):
            sums.append(pair_sum(rows))
        else:
            left_out.append(f"{category} (n={len(rows)})")
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
        values = np.array(
            [
                metric(truth[rows], scores, weight[rows])
                for scores in scores_by_category(flips, rows)
            ]
        )
        return float(np.abs(values[:, None] - values[None, :]).sum())

    return pair_sum


def scores_by_category(flips: FlippedScores, rows: IntArray) -> FloatArray:
    """Scores of some rows, of shape (C, n): the samples that are compared lie in one piece."""
    return np.ascontiguousarray(flips.scores[rows].T)


def _is_estimable(rows: IntArray, classes: FloatArray | None) -> bool:
    if len(rows) == 0:
        return False
    return classes is None or bool(classes[rows].min() != classes[rows].max())
