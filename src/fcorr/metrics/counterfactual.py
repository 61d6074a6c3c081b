"""Flip metrics: what changes when only the sensitive column does.

All are computed from `FlippedScores`: C passes of the model, whatever the number of metrics. For
several columns flipped together a category is a combination of their values; for a measurement it
is a group of rows, and the value that stands for it.

0 means that flips change nothing, and lower is better, for every function here. It is invariance to
a flip of the column, the paper's definition, and not causal fairness: a model that never saw the
column has it too, and group differences that come through other columns remain.
"""

from typing import Any

import numpy as np

from fcorr._core import InvalidInputError, enumerate_some
from fcorr.metrics._checks import (
    FloatArray,
    Weights,
    as_weights,
    describe_label,
    leave_out_uncounted,
    not_estimable,
)
from fcorr.metrics.flips import FlippedScores

BLOCK_SIZE = 2**18
"""Numbers worked on at a time: few enough for the processor's cache, enough for few calls."""

_QUANTILES = {"q50": 0.50, "q90": 0.90, "q95": 0.95, "q99": 0.99}


@leave_out_uncounted
def average_individual_fairness(flips: FlippedScores, *, sample_weight: Weights = None) -> float:
    """AvgIF: how far a flip moves the distribution of the scores.

    ``1/(C(C−1)) Σ_{s_i} Σ_{s_j≠s_k} W1(f(D'_{s_i→s_j}), f(D'_{s_i→s_k}))``, W1 the Wasserstein-1
    distance, in the units of the scores. 0 means that no flip moves the distribution; lower is
    better. It is a sum over the original categories s_i, so that more of them give larger values.
    Single rows may still move against each other: see `flip_changes`.

    Parameters
    ----------
    flips : FlippedScores
        The scores under all categories.
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
    """
    weight = weights_of(flips, sample_weight)

    n_categories = len(flips.categories)
    # Sorted once, not searched once per category.
    by_original = np.argsort(flips.original, kind="stable")
    ends = np.searchsorted(flips.original[by_original], np.arange(1, n_categories))
    found, left_out = [], []
    for category, rows in zip(flips.categories, np.split(by_original, ends), strict=True):
        if len(rows):
            # Of shape (C, n): the samples that are compared lie in one piece.
            scores_CN = np.ascontiguousarray(flips.scores[rows].T)
            found.append(sum_of_distances(scores_CN, weight[rows]))
        else:
            left_out.append(f"{describe_label(category)} (n=0)")
    if left_out:
        not_estimable(
            f"average_individual_fairness is not estimable for {len(left_out)} of {n_categories} "
            f"original categories, which have no rows and are left out: {enumerate_some(left_out)}."
        )
    return sum(found) / (n_categories * (n_categories - 1))


@leave_out_uncounted
def flip_changes(flips: FlippedScores, *, sample_weight: Weights = None) -> dict[str, float]:
    """Summarise each row's largest change of score, ``max_{s,s'} |f(x,s) − f(x,s')|``.

    0 means that no flip changes the row's score; lower is better. A row's real score counts among
    those compared also where its own value is not among the categories. Parameters as in
    :func:`average_individual_fairness`.

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
        "max": float(change.max()),
        **dict(zip(_QUANTILES, quantiles.tolist(), strict=True)),
    }


@leave_out_uncounted
def decisions_flipped(
    flips: FlippedScores, threshold: float = 0.5, *, sample_weight: Weights = None
) -> float:
    """Share of the rows whose decision, ``score >= threshold``, differs between two categories.

    In [0, 1]; 0 means that no decision depends on the sensitive column; lower is better. Parameters
    as in :func:`average_individual_fairness`; the real decision counts among those compared also
    where a row's own value is not among the categories.

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


# ------------------------------------------------------------------------------ arguments


def weights_of(flips: FlippedScores, sample_weight: Any) -> FloatArray:
    """Return one weight per row; refuse what are no flips."""
    if not isinstance(flips, FlippedScores):
        raise InvalidInputError(
            f"flips must be FlippedScores, got {type(flips).__name__}. "
            "Make them with flip_scores(predict, X, sensitive)."
        )
    return as_weights(sample_weight, len(flips))


def check_threshold(threshold: float) -> None:
    """Refuse a threshold that no score can be compared with."""
    if not np.isfinite(threshold):
        raise InvalidInputError(
            f"threshold must be a finite number, got {threshold}. "
            "Choose one on the scale of the scores, such as 0.5 for probabilities."
        )


# ------------------------------------------------------------------------------ sums over pairs


def sum_over_pairs(values_NC: FloatArray) -> FloatArray:
    """Sum ``|values[n, j] − values[n, k]|`` over all ordered pairs (j, k), for each n.

    Of C sorted values, j lie below the j-th gap between neighbours and C − j above it, so that
    it is part of j·(C − j) differences. Equal values give exactly zero.
    """
    n_below = np.arange(1, values_NC.shape[1])
    n_pairs = n_below * (values_NC.shape[1] - n_below)
    gaps = np.diff(np.sort(values_NC, axis=1), axis=1)
    sums: FloatArray = 2 * (gaps * n_pairs).sum(axis=1)
    return sums


def sum_of_distances(scores_CN: FloatArray, weight: FloatArray) -> float:
    """Sum the distances ``W1(scores[j], scores[k])`` over all ordered pairs of the C samples.

    All samples have the same row weights. Each is sorted once, not once per pair; equal samples are
    at a distance of exactly zero.
    """
    if (weight == weight[0]).all():
        # W1 is the mean difference between values of equal rank.
        by_rank_NC = np.ascontiguousarray(np.sort(scores_CN, axis=1).T)
        return float(sum_over_pairs(by_rank_NC).mean())

    # Else it is ∫ |F_j(t) − F_k(t)| dt: over the steps of all samples merged, C numbers at a time.
    # Every step compares C numbers, so it takes time ∝ C²·n, where equal weights take C·n.
    order_CN = np.argsort(scores_CN, axis=1, kind="stable")
    sorted_CN = np.take_along_axis(scores_CN, order_CN, axis=1)
    # Summed up within each sample and not along the merged steps: the CDFs of equal samples then
    # agree to the last bit.
    cdf_CN = np.cumsum(weight[order_CN], axis=1)
    cdf_CN = np.pad(cdf_CN / cdf_CN[:, -1:], [(0, 0), (1, 0)])  # 0 before the first
    steps = np.unique(scores_CN)
    widths, total = np.diff(steps), 0.0
    block_size = max(1, BLOCK_SIZE // len(scores_CN))
    for start in range(0, len(widths), block_size):
        block = slice(start, start + block_size)
        n_reached = [values.searchsorted(steps[:-1][block], "right") for values in sorted_CN]
        cdf_BC = np.take_along_axis(cdf_CN, np.array(n_reached), axis=1).T
        total += float(np.sum(sum_over_pairs(cdf_BC) * widths[block]))
    return total
