"""Scoring: prediction head, and predictions averaged over a portfolio, each row by itself.

A matrix product by BLAS adds up in an order that depends on how many rows there are and on where
among them a row stands, so that two equal rows of a table can differ in their last bits. Here every
row takes the same instructions: four rows go through the head together, the last ones filled up
with copies, and a sum is added up in the order of its terms, which the compiler must keep.
"""

import math

import numpy as np

from fcorr.nn.kernels.arithmetic import compiled_as_written, gelu_32
from fcorr.nn.kernels.network import affine, normalize

_ROWS = 4  # that go through a layer together: each weight is read once for them
_FEW_OUTPUTS = 16  # below, an output at a time; from here on, two inputs at a time


@compiled_as_written
def head_forward(h, norm, eps, sizes, weights, biases, x, y, out):
    """Compute the outputs ``out (B, O)`` of encoded features ``h (B, F)``.

    ``norm (2, F)`` are weight and bias of the LayerNorm, ``sizes`` the widths from F to O.
    ``weights`` are those of the linear layers one after the other, flat, ``(inputs, outputs)``
    each; outputs are padded to multiples of 16 in them and in ``biases``. ``x`` and ``y`` are
    scratch, ``(4, widest layer)``.
    """
    n = h.shape[1]
    n_layers = len(sizes) - 1
    row, normed, scaled = np.empty(n), np.empty(n), np.empty(n)
    for first in range(0, len(h), _ROWS):
        for r in range(_ROWS):
            b = min(first + r, len(h) - 1)
            for j in range(n):
                row[j] = h[b, j]
            normalize(row, eps, normed)
            affine(normed, norm[0], norm[1], scaled)
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
                _few_outputs(x, weight, bias, n_out, y)
            else:
                _many_outputs(x, weight, bias, y)
            if k < n_layers - 1:
                for r in range(_ROWS):
                    _activate(y[r], n_out, x[r])
        for r in range(min(_ROWS, len(h) - first)):
            for o in range(out.shape[1]):
                out[first + r, o] = y[r, o]


@compiled_as_written
def _few_outputs(x, weight, bias, n_outputs, y):
    for o in range(n_outputs):
        y0, y1, y2, y3 = bias[o], bias[o], bias[o], bias[o]
        for k in range(len(weight)):
            y0 += x[0, k] * weight[k, o]
            y1 += x[1, k] * weight[k, o]
            y2 += x[2, k] * weight[k, o]
            y3 += x[3, k] * weight[k, o]
        y[0, o], y[1, o], y[2, o], y[3, o] = y0, y1, y2, y3


@compiled_as_written
def _many_outputs(x, weight, bias, y):
    n_inputs, n_outputs = weight.shape
    y0, y1, y2, y3 = y[0], y[1], y[2], y[3]
    for o in range(n_outputs):
        y0[o], y1[o], y2[o], y3[o] = bias[o], bias[o], bias[o], bias[o]
    for k in range(0, n_inputs - 1, 2):
        v, w = weight[k], weight[k + 1]
        a0, a1, a2, a3 = x[0, k], x[1, k], x[2, k], x[3, k]
        b0, b1, b2, b3 = x[0, k + 1], x[1, k + 1], x[2, k + 1], x[3, k + 1]
        for o in range(n_outputs):
            y0[o] = (y0[o] + a0 * v[o]) + b0 * w[o]
            y1[o] = (y1[o] + a1 * v[o]) + b1 * w[o]
            y2[o] = (y2[o] + a2 * v[o]) + b2 * w[o]
            y3[o] = (y3[o] + a3 * v[o]) + b3 * w[o]
    if n_inputs % 2:
        v = weight[n_inputs - 1]
        a0, a1, a2, a3 = x[:, n_inputs - 1]
        for o in range(n_outputs):
            y0[o] += a0 * v[o]
            y1[o] += a1 * v[o]
            y2[o] += a2 * v[o]
            y3[o] += a3 * v[o]


@compiled_as_written
def _activate(x, n, out):
    for o in range(n):
        out[o] = gelu_32(x[o])


@compiled_as_written
def add_log_predictions(outputs, log_share, normalized, total):
    """Add a share of the predictions of ``outputs (B, O)`` to ``total (B, O)``, in the logarithm.

    Predictions are the exponentials of the outputs, ``normalized`` to a sum of 1 for classes.
    """
    for b in range(len(outputs)):
        log_sum = 0.0
        if normalized:
            log_sum = -np.inf
            for o in range(outputs.shape[1]):
                log_sum = _log_add(log_sum, outputs[b, o])
        for o in range(outputs.shape[1]):
            total[b, o] = _log_add(total[b, o], log_share + outputs[b, o] - log_sum)


@compiled_as_written
def _log_add(a, b):
    """``log(e^a + e^b)``; a may be −∞."""
    high, low = max(a, b), min(a, b)
    return high + math.log1p(math.exp(low - high))
