"""Balance: the constant shift of a model's outputs after which totals are what was observed.

Training stops near the optimum, not in it, and weights of classes move it on purpose; an intercept
can be put right afterwards. All sums are numpy's own, whose order does not depend on the number of
threads; products by BLAS would.

NOTE[DIFF]: not in the paper, whose predictions are as training leaves them.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BLOCK = 65_536  # rows whose probabilities are in memory at a time
_CLOSE = 1e-12
_MOST_STEPS = 100
_LONGEST_STEP = 4.0  # where probabilities are near 0 and 1, Newton's step overshoots


def mean_shift(outputs: Floats, target: Floats, weight: Floats) -> float:
    """Return the shift after which the weighted mean of the outputs is that of the target."""
    return float(np.sum(weight * (target - outputs)) / np.sum(weight))


def log_shift(log_means: Floats, target: Floats, weight: Floats) -> float:
    """Return the shift of log-means after which the weighted sum of the means is the target's.

    Examples
    --------
    >>> shift = log_shift(np.zeros(2), np.array([1.0, 3.0]), np.ones(2))
    >>> round(float(np.exp(shift)), 9)
    2.0
    """
    largest = log_means[weight > 0].max()
    total = np.sum(weight * np.exp(log_means - largest))
    return float(np.log(np.sum(weight * target)) - np.log(total) - largest)


def class_shift(logits: Floats, share: Floats, weight: Floats) -> Floats:
    """Return the shift of each class's logit after which its mean probability is its share.

    Newton's method for the optimum in the intercepts of a multinomial logit; the weighted shares
    are all positive, of sum 1. The shifts sum to 0: a common constant would change nothing.
    """
    n_classes = len(share)
    shift = np.zeros(n_classes)
    mean, slope = _mean_probabilities(logits, weight, shift)
    gap = share - mean
    for _ in range(_MOST_STEPS):
        if np.abs(gap).max() <= _CLOSE:
            break
        # The slope is singular along a common constant, and nearly so where no row is in doubt.
        step = np.linalg.solve(slope + 1 / n_classes + 1e-12 * np.eye(n_classes), gap)
        step *= min(1.0, _LONGEST_STEP / np.abs(step).max())
        for shorter in 0.5 ** np.arange(30):
            mean, slope = _mean_probabilities(logits, weight, shift + shorter * step)
            if np.abs(share - mean).max() < np.abs(gap).max():
                break
        else:
            break  # as close as rounding lets it come
        shift += shorter * step
        gap = share - mean
    return shift - shift.mean()


def softmax(logits: Floats) -> Floats:
    """Turn logits, one column per class, into probabilities."""
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def _mean_probabilities(logits: Floats, weight: Floats, shift: Floats) -> tuple[Floats, Floats]:
    """Return the mean probability of each class, and its derivative in the shifts."""
    mean, square = np.zeros(len(shift)), np.zeros((len(shift), len(shift)))
    for first in range(0, len(logits), _BLOCK):
        rows = slice(first, first + _BLOCK)
        probability = softmax(logits[rows] + shift)
        weighted = weight[rows, None] * probability
        mean += weighted.sum(axis=0)
        square += np.einsum("nk,nl->kl", weighted, probability)
    total = np.sum(weight)
    return mean / total, (np.diag(mean) - square) / total
