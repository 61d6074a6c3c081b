"""Embedding of a batch: categories looked up, numbers interpolated between their knots."""

import numpy as np

from fcorr.nn.kernels.compiling import compiled


@compiled
def embed_forward(codes, offsets, table, positions, starts, values, missing, out):
    """Compute the embeddings, categorical features first.

    Parameters
    ----------
    codes : ndarray of shape (B, C)
        Category of each categorical feature.
    offsets : ndarray of shape (C + 1,)
        Where each feature's categories begin in ``table``.
    table : ndarray
        Embedding of every category.
    positions : ndarray of shape (B, M)
        Place of each number among its feature's knots: the knot to the left of it, plus the share
        of the way to the next one. NaN where the number is missing.
    starts : ndarray of shape (M + 1,)
        Where each feature's knots begin in ``values``.
    values : ndarray
        Value of each shape function at its knots, and one number of padding.
    missing : ndarray of shape (M,)
        Embedding of a missing number.
    out : ndarray of shape (B, C + M)
        The embeddings.

    Returns
    -------
    bool
        Whether every code and position lies in its feature's range. If not, those that do not
        were left out.
    """
    n_codes = codes.shape[1]
    valid = True
    for b in range(len(out)):
        valid &= _look_up(codes[b], offsets, table, out[b, :n_codes])
        valid &= _interpolate(positions[b], starts, values, missing, out[b, n_codes:])
    return valid


# No branches in these two, so that the compiler can look several numbers up at a time.


@compiled
def _look_up(codes, offsets, table, out):
    n_wrong = 0
    for j in range(len(codes)):
        place = offsets[j] + codes[j]
        right = (place >= offsets[j]) & (place < offsets[j + 1])
        n_wrong += not right
        out[j] = table[place if right else offsets[j]]
    return n_wrong == 0


@compiled
def _interpolate(positions, starts, values, missing, out):
    n_wrong = 0
    for j in range(len(positions)):
        position = positions[j]
        known = position == position
        position = position if known else np.float32(0.0)
        knot = np.int64(position)
        place = starts[j] + knot
        right = (position >= 0) & (place < starts[j + 1])
        n_wrong += not right
        place = place if right else starts[j]
        low = values[place]
        # A share of 0 at the last knot: what comes after it in the array has no weight.
        value = low + (position - np.float32(knot)) * (values[place + 1] - low)
        out[j] = value if known else missing[j]
    return n_wrong == 0


@compiled
def embed_backward(codes, offsets, positions, starts, grad, dtable, dvalues, dmissing):
    """Add up the gradient by the tables, in the order of the rows: always the same."""
    n_codes, n_numbers = codes.shape[1], positions.shape[1]
    dtable[:] = 0.0
    dvalues[:] = 0.0
    dmissing[:] = 0.0
    for b in range(len(grad)):
        for j in range(n_codes):
            dtable[offsets[j] + codes[b, j]] += grad[b, j]
        for j in range(n_numbers):
            g = grad[b, n_codes + j]
            position = positions[b, j]
            if position != position:
                dmissing[j] += g
                continue
            knot = np.int64(position)
            share = position - np.float32(knot)
            dvalues[starts[j] + knot] += g * (1 - share)
            dvalues[starts[j] + knot + 1] += g * share


@compiled
def knot_values(steps, starts, values):
    """Add up each feature's steps from knot to knot; the last entry of ``values`` is padding."""
    for j in range(len(starts) - 1):
        total = 0.0
        for k in range(starts[j], starts[j + 1]):
            total += steps[k]
            values[k] = total
    values[starts[-1]] = 0.0


@compiled
def step_gradient(dvalues, starts, dsteps):
    """Turn the gradient by the values at the knots into that by the steps."""
    for j in range(len(starts) - 1):
        total = 0.0
        for k in range(starts[j + 1] - 1, starts[j] - 1, -1):
            total += dvalues[k]
            dsteps[k] = total


_BLOCK = 256  # rows that are searched for at a time, side by side


@compiled
def locate(x, knots, starts, out):
    """Find each number's place among its feature's knots, see :func:`embed_forward`."""
    value = np.empty(_BLOCK, dtype=x.dtype)
    low = np.empty(_BLOCK, dtype=np.int32)
    position = np.empty(_BLOCK, dtype=x.dtype)
    for begin in range(0, len(x), _BLOCK):
        n = min(_BLOCK, len(x) - begin)
        for j in range(x.shape[1]):
            for i in range(n):
                value[i] = x[begin + i, j]
            _search(value[:n], knots[starts[j] : starts[j + 1]], low, position)
            for i in range(n):
                out[begin + i, j] = position[i]


@compiled
def _search(value, knots, low, position):
    """Search by halves, all values in step with each other."""
    last = len(knots) - 1
    for i in range(len(value)):
        low[i] = 0
    size = last
    while size > 1:  # knots[low] <= value < knots[low + size], or value lies outside them all
        half = size // 2
        for i in range(len(value)):
            middle = low[i] + np.int32(half)
            low[i] = middle if knots[middle] <= value[i] else low[i]
        size -= half
    for i in range(len(value)):
        left = knots[low[i]]
        right = knots[min(low[i] + 1, last)]
        gap = right - left
        # A single knot has no gap, and the function is constant. NaN stays NaN.
        share = (value[i] - left) / (gap if gap > 0 else np.float32(np.inf))
        share = np.float32(1.0) if share > 1 else share
        position[i] = low[i] + (np.float32(0.0) if share < 0 else share)
