"""Sums over all pairs of categories, without a loop over pairs."""

import numpy as np

from fcorr.metrics._validation import FloatArray

BLOCK_SIZE = 2**18
"""Numbers worked on at a time: few enough for the processor's cache, enough for few calls."""


def sum_over_pairs(values_NC: FloatArray) -> FloatArray:
    """Sum ``|values[n, j] − values[n, k]|`` over all ordered pairs (j, k), for each n.

    Of C sorted values, j lie below the j-th gap between neighbours and C − j above it, so that
    it is part of j·(C − j) differences. Equal values give exactly zero.

    Examples
    --------
    >>> import numpy as np
    >>> sum_over_pairs(np.array([[1.0, 4.0, 2.0]]))  # 2 × (3 + 1 + 2)
    array([12.])
    """
    n_below = np.arange(1, values_NC.shape[1])
    n_pairs = n_below * (values_NC.shape[1] - n_below)
    gaps = np.diff(np.sort(values_NC, axis=1), axis=1)
    sums: FloatArray = 2 * (gaps * n_pairs).sum(axis=1)
    return sums
