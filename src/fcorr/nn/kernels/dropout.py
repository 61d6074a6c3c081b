"""Dropout whose mask is a hash of a seed and the place in the array: nothing to draw or to keep."""

import numpy as np

from fcorr.nn.kernels.compiling import compiled


@compiled
def drop(x, seed, threshold, scale, out):
    """Zero the entries whose hash is below the threshold and scale the others; arrays are flat.

    The hash is that of :func:`fcorr.nn.layers.hash_places`.
    """
    for i in range(len(x)):
        # Each step is cut back to 32 bits: numba would go on with 64.
        k = np.uint32(np.uint32(i) * np.uint32(0x9E3779B9) + np.uint32(seed))
        k = np.uint32((k ^ (k >> np.uint32(16))) * np.uint32(0x85EBCA6B))
        k = np.uint32((k ^ (k >> np.uint32(13))) * np.uint32(0xC2B2AE35))
        k = np.uint32(k ^ (k >> np.uint32(16)))
        out[i] = x[i] * scale if k >= np.uint32(threshold) else np.float32(0.0)
