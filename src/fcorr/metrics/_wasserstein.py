"""One-dimensional Wasserstein-1 distances between columns of scores of the same rows."""

import numpy as np

from fcorr.metrics._pairs import BLOCK_SIZE, sum_over_pairs
from fcorr.metrics._validation import FloatArray


def sum_of_distances(scores_CN: FloatArray, weight: FloatArray) -> float:
    """Sum ``W1(scores[j], scores[k])`` over all ordered pairs of the C samples.

    All samples have the same row weights. Each is sorted once, not once per pair; equal samples are
    at a distance of exactly zero.

    Examples
    --------
    >>> import numpy as np
    >>> sum_of_distances(np.array([[0.0, 1.0], [3.0, 1.0]]), np.ones(2))  # 2 × (1 + 2) / 2
    3.0
    """
    if (weight == weight[0]).all():
        # W1 is the mean difference between values of equal rank.
        by_rank_NC = np.ascontiguousarray(np.sort(scores_CN, axis=1).T)
        return float(sum_over_pairs(by_rank_NC).mean())
    return _weighted_sum(scores_CN, weight)


def _weighted_sum(scores_CN: FloatArray, weight: FloatArray) -> float:
    """Sum ``∫ |F_j(t) − F_k(t)| dt``: over the steps of all samples merged, C numbers at a time.

    Every step compares C numbers, so it takes time ∝ C²·n, where equal weights take C·n.
    """
    n_samples, n_rows = scores_CN.shape
    order_CN = np.argsort(scores_CN, axis=1, kind="stable")
    values = np.take_along_axis(scores_CN, order_CN, axis=1).ravel()
    # Summed up within each sample and not along the merged order: the CDFs of equal samples then
    # agree to the last bit.
    cdf_CN = np.cumsum(weight[order_CN], axis=1)
    cdf_CN /= cdf_CN[:, -1:]

    merged = np.argsort(values, kind="stable")  # merges sorted runs
    widths = np.diff(values[merged])
    sample, cdf_after = merged // n_rows, cdf_CN.ravel()[merged]
    total, reached = 0.0, np.zeros(n_samples)
    block_size = max(1, BLOCK_SIZE // n_samples)
    for start in range(0, len(widths), block_size):
        width = widths[start : start + block_size]
        block = slice(start, start + len(width))
        cdf_BC = np.zeros((len(width), n_samples))
        cdf_BC[np.arange(len(width)), sample[block]] = cdf_after[block]
        cdf_BC[0] = np.maximum(cdf_BC[0], reached)
        # A CDF never falls: its value after a step is the largest so far.
        np.maximum.accumulate(cdf_BC, axis=0, out=cdf_BC)
        reached = cdf_BC[-1]
        total += float(np.sum(sum_over_pairs(cdf_BC) * width))
    return total
