"""The network but for its encoder layer, row by row: embedding, CAR's columns, dropout, head.

What torch calls: arrays in and out, with a kernel for the gradient where there is one. Rows are
copied in loops: assigning to a slice checks for overlaps first, and takes longer.
"""

import math

import numpy as np

from fcorr.nn.kernels.arithmetic import (
    compiled,
    compiled_as_written,
    compiled_in_order,
    expm1_32,
    gelu_32,
)

# ---------------------------------------------------------------------------------- embedding


@compiled
def embed_forward(codes, offsets, positions, starts, values, out):
    """Embed a batch, categorical features first, into ``out (B, V, C + M)``.

    ``values (S, V)`` has V numbers for each slot. ``codes (B, C)`` are looked up: feature j's
    categories begin at slot ``offsets[j]``. ``positions (B, M)`` are the numbers' positions among
    their features' knots, which begin at ``starts[j]``: the knot to the left plus the share of the
    way to the next one, or NaN, which has a slot of its own after all the knots.

    Returns whether every code and position lies in its feature's range. Those that do not were
    left out.
    """
    n_codes, n_numbers, n_views = codes.shape[1], positions.shape[1], values.shape[1]
    n_wrong = 0
    for b in range(len(out)):
        for j in range(n_codes):
            slot = offsets[j] + codes[b, j]
            if slot < offsets[j] or slot >= offsets[j + 1]:
                n_wrong += 1
                continue
            for v in range(n_views):
                out[b, v, j] = values[slot, v]
        for j in range(n_numbers):
            slot, after, share = _find_slots(positions[b, j], starts, j)
            if slot < 0:
                n_wrong += 1
                continue
            for v in range(n_views):
                low, high = values[slot, v], values[after, v]
                out[b, v, n_codes + j] = low + share * (high - low)
    return n_wrong == 0


@compiled
def _find_slots(position, starts, j):
    """Find the slots to the left and right of a number, -1 if it lies outside of its feature's."""
    first, last = starts[j], starts[j + 1] - 1
    if position != position:
        return starts[-1] + j, starts[-1] + j, np.float32(0.0)
    if not 0 <= position <= last - first:
        return np.int64(-1), np.int64(-1), np.float32(0.0)
    knot = np.int64(position)
    # At the last knot the share is 0, and what comes after it has no part.
    return first + knot, min(first + knot + 1, last), position - np.float32(knot)


@compiled
def embed_backward(codes, offsets, positions, starts, grad, dvalues):
    """Add up the gradient by slot, in the order of the rows: always the same."""
    n_codes, n_numbers, n_views = codes.shape[1], positions.shape[1], dvalues.shape[1]
    dvalues[:] = 0.0
    for b in range(len(grad)):
        for j in range(n_codes):
            slot = offsets[j] + codes[b, j]
            for v in range(n_views):
                dvalues[slot, v] += grad[b, v, j]
        for j in range(n_numbers):
            slot, after, share = _find_slots(positions[b, j], starts, j)
            for v in range(n_views):
                g = grad[b, v, n_codes + j]
                dvalues[slot, v] += g * (1 - share)
                dvalues[after, v] += g * share


@compiled_in_order
def embed_numbers(x, first, second, out):
    """Embed numbers ``x (B, M)`` by the paper's two layers, weight and bias ``(2, M)`` each."""
    for b in range(len(x)):
        for j in range(x.shape[1]):
            active = gelu_32(x[b, j] * first[0, j] + first[1, j])
            out[b, j] = active * second[0, j] + second[1, j]


_BLOCK = 256  # rows that are searched for at a time, side by side


@compiled_as_written
def locate(x, knots, starts, out):
    """Find each number's position among its feature's knots, see :func:`embed_forward`."""
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


@compiled_as_written
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


# ------------------------------------------------------------------------------ CAR's columns
# CAR from columns of the attention matrix alone, see :func:`fcorr.nn.car.car_sensitive`. The
# difference of two entries of the matrix is ``a_own · (e^{t δ} − 1)`` with δ the difference of the
# two embeddings: it keeps its digits when the embeddings have all but met, where CAR leads them.


@compiled
def layer_norm(x, norm, eps, out):
    """Normalise a row, scale and shift it by ``norm (2, F)``; return one over its deviation."""
    n = len(x)
    total = 0.0
    for j in range(n):
        total += x[j]
    mean = total / n
    squares = 0.0
    for j in range(n):
        squares += (x[j] - mean) * (x[j] - mean)
    scale = 1 / math.sqrt(squares / n + eps)
    for j in range(n):
        normed = (x[j] - mean) * scale
        out[j] = normed * norm[0, j] + norm[1, j]
    return scale


@compiled
def column_change(h, columns, attended, norm, eps, values, starts, own, loss, d_own, d_values):
    """Compute the loss of each row and its gradient by the sensitive features' embeddings.

    ``h (B, F)`` are the embeddings, ``norm (2, F)`` weight and bias of the first LayerNorm; of the
    features ``own (S,)``, ``columns (B, S, F)`` and ``attended (B, S)`` come from
    :func:`encoder_forward`. ``values (ΣC,)`` embed what they are exchanged for; feature k's begin
    at ``starts[k]``. The gradients are by the embedding that a row has, ``d_own (B, S)``, and by
    each value, ``d_values (B, ΣC)``.
    """
    n, n_own = h.shape[1], len(own)
    root = math.sqrt(n)
    x, z, step = np.empty(n), np.empty(n), np.empty(n_own)
    t = np.empty(n, dtype=np.float32)
    extra_sum = np.empty(n, dtype=np.float32)
    shared = np.empty(n, dtype=np.float32)
    a_own = np.empty((n_own, n), dtype=np.float32)
    ga_own = np.empty((n_own, n), dtype=np.float32)
    v = np.empty((len(values), n), dtype=np.float32)
    for b in range(len(h)):
        for j in range(n):
            x[j] = h[b, j]
        scale = layer_norm(x, norm, eps, z)
        for i in range(n):
            t[i] = z[i] / root
            extra_sum[i] = 1.0
            shared[i] = 0.0
        for k in range(n_own):
            step[k] = scale * norm[0, own[k]]
            for i in range(n):
                a_own[k, i] = columns[b, k, i]
            for c in range(starts[k], starts[k + 1]):
                delta = np.float32((values[c] - x[own[k]]) * step[k])
                relative_change(t, delta, a_own[k], v[c], extra_sum)
        total = 0.0
        for k in range(n_own):
            for i in range(n):
                a_own[k, i] /= extra_sum[i]
                ga_own[k, i] = 0.0
            share = np.float32(1 / (starts[k + 1] - starts[k]))
            for c in range(starts[k], starts[k + 1]):
                total += change_of_entry(a_own[k], v[c], share, ga_own[k], shared)
        loss[b] = total
        for k in range(n_own):
            d_own[b, k] = key_gradient(ga_own[k], a_own[k], shared, t) * step[k]
            share = np.float32(1 / (starts[k + 1] - starts[k]))
            for c in range(starts[k], starts[k + 1]):
                d_values[b, c] = extra_gradient(a_own[k], v[c], share, shared, t) * step[k]
        # As a query, a sensitive feature moves every exponent of its own row of the matrix.
        for k in range(n_own):
            i = own[k]
            through = -shared[i] * attended[b, k] / extra_sum[i]
            for m in range(n_own):
                through += z[own[m]] * ga_own[m, i]
                for c in range(starts[m], starts[m + 1]):
                    a = a_own[m, i] * (1 + v[c, i])
                    g = 2 / (starts[m + 1] - starts[m]) * a_own[m, i] * v[c, i]
                    extra = z[own[m]] + (values[c] - x[own[m]]) * step[m]
                    through += extra * a * (g - shared[i])
            d_own[b, k] += through / root * scale * norm[0, own[k]]


@compiled
def relative_change(t, delta, w_own, v, extra_sum):
    """Compute ``e^{t δ} − 1``, and add the extra key's weight to what the softmax divides by."""
    for i in range(len(t)):
        v[i] = expm1_32(t[i] * delta)
    for i in range(len(t)):
        extra_sum[i] += w_own[i] * (np.float32(1.0) + v[i])


@compiled
def change_of_entry(a_own, v, share, ga_own, shared):
    """Return a category's part of the loss; add its derivatives, each times its entry.

    With g = 2/C · (a_c − a_own): ``ga_own`` adds −g a_own, and ``shared`` adds g (a_c − a_own),
    the sum over both entries.
    """
    total = np.float32(0.0)
    for i in range(len(v)):
        change = a_own[i] * v[i]
        total += change * change
    for i in range(len(v)):
        change = a_own[i] * v[i]
        g = np.float32(2.0) * share * change
        ga_own[i] -= g * a_own[i]
        shared[i] += g * change
    return total * share


@compiled
def key_gradient(ga_own, a_own, shared, t):
    """Return the gradient by the sensitive feature's own normed embedding, as a key."""
    total = np.float32(0.0)
    for i in range(len(t)):
        total += (ga_own[i] - a_own[i] * shared[i]) * t[i]
    return total


@compiled
def extra_gradient(a_own, v, share, shared, t):
    """Return the gradient by one category's normed embedding, as a key."""
    total = np.float32(0.0)
    for i in range(len(t)):
        change = a_own[i] * v[i]
        entry = a_own[i] + change
        total += entry * (np.float32(2.0) * share * change - shared[i]) * t[i]
    return total


# ------------------------------------------------------------------------------------ dropout


@compiled
def draw_mask(seed, threshold, scale, out):
    """Set a flat array to 0 where the hash of a position is below the threshold, else to the scale.

    Positions are spaced by the golden ratio of 2³², moved by the seed and mixed by the last step of
    MurmurHash3 (Austin Appleby, public domain).
    """
    kept, dropped = out.dtype.type(scale), out.dtype.type(0)
    for i in range(len(out)):
        # Each step is cut back to 32 bits: numba would go on with 64.
        k = np.uint32(np.uint32(i) * np.uint32(0x9E3779B9) + np.uint32(seed))
        k = np.uint32((k ^ (k >> np.uint32(16))) * np.uint32(0x85EBCA6B))
        k = np.uint32((k ^ (k >> np.uint32(13))) * np.uint32(0xC2B2AE35))
        k = np.uint32(k ^ (k >> np.uint32(16)))
        out[i] = kept if k >= np.uint32(threshold) else dropped


# ------------------------------------------------------------------------------------ scoring
# The prediction head, each row by itself. A matrix product by BLAS adds up in an order that depends
# on how many rows there are and on where among them a row stands, so that two equal rows of a table
# can differ in their last bits. Here every row takes the same instructions, and a sum is added up
# in an order that the compiler must keep.

_ROWS = 32  # that go through a layer before the next one: its weights stay in the cache
_FEW_OUTPUTS = 16  # below, an output at a time; from here on, eight inputs at a time


@compiled_as_written
def head_forward(h, norm, eps, sizes, weights, biases, x, y, out):
    """Compute the outputs ``out (B, O)`` of encoded features ``h (B, F)``.

    ``norm (2, F)`` are weight and bias of the LayerNorm, ``sizes`` the widths from F to O.
    ``weights`` are those of the linear layers one after the other, flat, ``(inputs, outputs)``
    each; outputs are padded to multiples of 16 in them and in ``biases``. ``x`` and ``y`` are
    scratch, ``(32, widest layer)``.
    """
    n = h.shape[1]
    n_layers = len(sizes) - 1
    row, scaled = np.empty(n), np.empty(n)
    for first in range(0, len(h), _ROWS):
        n_rows = min(_ROWS, len(h) - first)
        for r in range(n_rows):
            for j in range(n):
                row[j] = h[first + r, j]
            layer_norm(row, norm, eps, scaled)
            for j in range(n):
                x[r, j] = scaled[j]
        weight_at, bias_at = 0, 0
        for k in range(n_layers):
            n_in, n_out = sizes[k], sizes[k + 1]
            padded = n_out + -n_out % 16
            weight = weights[weight_at : weight_at + n_in * padded].reshape(n_in, padded)
            bias = biases[bias_at : bias_at + padded]
            weight_at += n_in * padded
            bias_at += padded
            if n_out < _FEW_OUTPUTS:
                for r in range(n_rows):
                    _few_outputs(x[r], weight, bias, n_out, y[r])
            else:
                _many_outputs(x[:n_rows], weight, bias, y[:n_rows])
            if k < n_layers - 1:
                for r in range(n_rows):
                    _activate(y[r], n_out, x[r])
        for r in range(n_rows):
            for o in range(out.shape[1]):
                out[first + r, o] = y[r, o]


@compiled_as_written
def _few_outputs(x, weight, bias, n_outputs, y):
    """Compute a row's outputs, each by four sums side by side: none waits for another."""
    n_inputs = len(weight)
    for o in range(n_outputs):
        a = b = c = d = np.float32(0.0)
        for k in range(0, n_inputs - 3, 4):
            a += x[k] * weight[k, o]
            b += x[k + 1] * weight[k + 1, o]
            c += x[k + 2] * weight[k + 2, o]
            d += x[k + 3] * weight[k + 3, o]
        for k in range(n_inputs - n_inputs % 4, n_inputs):
            a += x[k] * weight[k, o]
        y[o] = bias[o] + ((a + b) + (c + d))


@compiled_in_order
def _many_outputs(x, weight, bias, y):
    """Compute the outputs of some rows, those of each side by side."""
    n_inputs, n_outputs = weight.shape
    for r in range(len(x)):
        for o in range(n_outputs):
            y[r, o] = bias[o]
    for k in range(0, n_inputs - 7, 8):
        v0, v1, v2, v3 = weight[k], weight[k + 1], weight[k + 2], weight[k + 3]
        v4, v5, v6, v7 = weight[k + 4], weight[k + 5], weight[k + 6], weight[k + 7]
        for r in range(len(x)):
            out = y[r]
            x0, x1, x2, x3 = x[r, k], x[r, k + 1], x[r, k + 2], x[r, k + 3]
            x4, x5, x6, x7 = x[r, k + 4], x[r, k + 5], x[r, k + 6], x[r, k + 7]
            for o in range(n_outputs):
                half = (((out[o] + x0 * v0[o]) + x1 * v1[o]) + x2 * v2[o]) + x3 * v3[o]
                out[o] = (((half + x4 * v4[o]) + x5 * v5[o]) + x6 * v6[o]) + x7 * v7[o]
    for k in range(n_inputs - n_inputs % 8, n_inputs):
        v0 = weight[k]
        for r in range(len(x)):
            out, x0 = y[r], x[r, k]
            for o in range(n_outputs):
                out[o] += x0 * v0[o]


@compiled_as_written
def _activate(x, n, out):
    for o in range(n):
        out[o] = gelu_32(x[o])
