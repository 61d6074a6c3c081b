"""One-dimensional Wasserstein-1 distances between columns of scores of the same rows."""

from itertools import combinations

import numpy as np

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
        sorted_CN = np.sort(scores_CN, axis=1)
        distances = (np.abs(a - b).mean() for a, b in combinations(sorted_CN, 2))
        return 2 * float(sum(distances))
    samples = [_sorted_with_cdf(scores, weight) for scores in scores_CN]
    return 2 * float(sum(_distance(*a, *b) for a, b in combinations(samples, 2)))


def _sorted_with_cdf(values: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sort a sample; ``cdf[m]`` is the share of the weight that its m smallest values have."""
    order = np.argsort(values, kind="stable")
    cdf = np.concatenate([[0.0], np.cumsum(weight[order])])
    return values[order], cdf / cdf[-1]


def _distance(a: FloatArray, cdf_a: FloatArray, b: FloatArray, cdf_b: FloatArray) -> float:
    """``∫ |F_a(t) − F_b(t)| dt``, a finite sum over the steps of the merged samples."""
    both = np.concatenate([a, b])
    order = np.argsort(both, kind="stable")  # merges the two sorted runs, in linear time
    # The CDFs are looked up by how many values of each sample have been passed, and not summed
    # again along the merged order: equal samples then agree to the last bit.
    n_passed_a = np.cumsum(order < len(a))[:-1]
    n_passed_b = np.arange(1, len(both)) - n_passed_a
    return float(np.sum(np.abs(cdf_a[n_passed_a] - cdf_b[n_passed_b]) * np.diff(both[order])))
