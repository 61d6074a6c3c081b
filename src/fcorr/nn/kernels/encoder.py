"""One encoder layer, row by row: ``z = LN(h); a = attention(z); a + Stack(LN(a))``.

Each row stays in the processor's nearest cache from its input to its output, and nothing but the
input is kept for the gradient: it takes the same way once more.
"""

import math

import numpy as np
from numpy.typing import NDArray

from fcorr.nn.kernels.arithmetic import gelu, gelu_slope
from fcorr.nn.kernels.attention import (
    attention_column,
    attention_gradient,
    center,
    make_work,
    partition,
)
from fcorr.nn.kernels.compiling import compiled

Floats = NDArray[np.float64]


@compiled
def normalize(x: Floats, eps: float, out: Floats) -> float:
    """Subtract the mean and divide by the deviation; return one over the deviation."""
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
        out[j] = (x[j] - mean) * scale
    return scale


@compiled
def normalize_gradient(scale: float, normed: Floats, weight: Floats, g: Floats, dx: Floats) -> None:
    """Add the gradient by x of ``Σ g · (normed · weight)`` to ``dx``."""
    n = len(g)
    total, product = 0.0, 0.0
    for j in range(n):
        gw = g[j] * weight[j]
        total += gw
        product += gw * normed[j]
    total /= n
    product /= n
    for j in range(n):
        dx[j] += scale * (g[j] * weight[j] - total - normed[j] * product)


@compiled
def affine(x: Floats, weight: Floats, bias: Floats, out: Floats) -> None:
    """Compute ``weight · x + bias``."""
    for j in range(len(x)):
        out[j] = x[j] * weight[j] + bias[j]


@compiled
def activate(x: Floats, bent: bool, out: Floats) -> None:
    """Apply GELU where a layer has one before it, else copy."""
    if bent:
        for j in range(len(x)):
            out[j] = gelu(x[j])
    else:
        for j in range(len(x)):
            out[j] = x[j]


@compiled
def add_affine_gradient(g: Floats, x: Floats, dweight: Floats, dbias: Floats) -> None:
    """Add a row's gradient by weight and bias."""
    for j in range(len(g)):
        dweight[j] += g[j] * x[j]
    for j in range(len(g)):
        dbias[j] += g[j]


@compiled
def through(g: Floats, weight: Floats, x: Floats, bent: bool) -> None:
    """Turn the gradient by a layer's output into that by its input."""
    if bent:
        for j in range(len(g)):
            g[j] *= weight[j] * gelu_slope(x[j])
    else:
        for j in range(len(g)):
            g[j] *= weight[j]


@compiled
def encoder_forward(h, norms, stack, eps, residual, watched, out, columns, attended):
    """Compute the layer's output.

    Parameters
    ----------
    h, out : ndarray of shape (B, F)
        Input and output.
    norms : ndarray of shape (4, F)
        Weight and bias of the first and of the second LayerNorm.
    stack : ndarray of shape (2 L, F)
        Weight and bias of each element-wise linear layer.
    eps : float
        Of both LayerNorms.
    residual : bool
        Add the input to the attention's output.
    watched : ndarray of shape (S,)
        Features of which the next two are wanted.
    columns : ndarray of shape (B, S, F)
        The attention every feature pays to them: their columns of the matrix.
    attended : ndarray of shape (B, S)
        The attention's output at them.
    """
    n = h.shape[1]
    root = math.sqrt(n)
    x, normed, z, y = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    N, P, shift = np.empty(n), np.empty(n), np.empty(n)
    u, v = np.empty(n), np.empty(n)
    work = make_work(n)
    outlier = np.empty(n, dtype=np.int64)
    n_stack = len(stack) // 2
    for b in range(len(h)):
        for j in range(n):
            x[j] = h[b, j]
        normalize(x, eps, normed)
        affine(normed, norms[0], norms[1], z)
        z_mean = center(z, y)
        partition(z, y, z_mean, root, False, outlier, work, N, P, u, shift)
        for k in range(len(watched)):
            attention_column(z, y[watched[k]] / root, N, shift, columns[b, k])
            attended[b, k] = z_mean + P[watched[k]] / N[watched[k]]
        if residual:
            for j in range(n):
                x[j] += z_mean + P[j] / N[j]
        else:
            for j in range(n):
                x[j] = z_mean + P[j] / N[j]
        normalize(x, eps, normed)
        affine(normed, norms[2], norms[3], u)
        for k in range(n_stack):
            # Never in place: where two arrays may be one, the compiler does not vectorise.
            activate(u, k > 0, v)
            affine(v, stack[2 * k], stack[2 * k + 1], u)
        for j in range(n):
            out[b, j] = x[j] + u[j]


@compiled
def encoder_backward(h, norms, stack, eps, residual, grad, dh, dnorms, dstack):
    """Compute the gradient by the input, ``dh``, and by the parameters, ``dnorms`` and ``dstack``.

    ``grad`` is the gradient by the output; shapes as in :func:`encoder_forward`.
    """
    n = h.shape[1]
    root = math.sqrt(n)
    x, normed, z, y = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    N, P, Q, shift = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    normed_2, g, da, dz, dx = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    work = make_work(n)
    outlier = np.empty(n, dtype=np.int64)
    no_log = np.empty(0)
    n_stack = len(stack) // 2
    inputs = np.empty((n_stack + 1, n))  # of each layer of the stack, before the GELU
    active = np.empty((n_stack + 1, n))  # and after it; the first layer has none
    dnorms[:] = 0.0
    dstack[:] = 0.0
    for b in range(len(h)):
        for j in range(n):
            x[j] = h[b, j]
        scale = normalize(x, eps, normed)
        affine(normed, norms[0], norms[1], z)
        z_mean = center(z, y)
        n_apart, n_terms = partition(z, y, z_mean, root, True, outlier, work, N, P, Q, shift)
        if residual:
            for j in range(n):
                x[j] += z_mean + P[j] / N[j]
        else:
            for j in range(n):
                x[j] = z_mean + P[j] / N[j]
        scale_2 = normalize(x, eps, normed_2)
        affine(normed_2, norms[2], norms[3], inputs[0])
        for j in range(n):
            da[j] = grad[b, j]
            g[j] = grad[b, j]
        for k in range(n_stack - 1):
            activate(inputs[k], k > 0, active[k])
            affine(active[k], stack[2 * k], stack[2 * k + 1], inputs[k + 1])
        if n_stack:
            activate(inputs[n_stack - 1], n_stack > 1, active[n_stack - 1])
        for k in range(n_stack - 1, -1, -1):
            add_affine_gradient(g, active[k], dstack[2 * k], dstack[2 * k + 1])
            through(g, stack[2 * k], inputs[k], k > 0)
        add_affine_gradient(g, normed_2, dnorms[2], dnorms[3])
        normalize_gradient(scale_2, normed_2, norms[2], g, da)
        attention_gradient(
            z, y, root, n_apart, n_terms, outlier, work, N, P, Q, shift, da, no_log, dz
        )
        add_affine_gradient(dz, normed, dnorms[0], dnorms[1])
        for j in range(n):
            dx[j] = da[j] if residual else 0.0
        normalize_gradient(scale, normed, norms[0], dz, dx)
        for j in range(n):
            dh[b, j] = dx[j]
