"""The encoder layer over many views at once, side by side in the lanes of the processor.

:mod:`fcorr.nn.kernels.network` takes a row with one number per feature through the layer in double
precision. Here 64 views, those of several rows, go side by side in single precision: every array
is ``(F, 64)``, and all arithmetic is the same for the numbers next to each other. The attention is
the same power series. With y the centred keys, t the queries over √p and c the largest |y|,

    N_i = Σ_j e^{t_i y_j} = Σ_k (c t_i)^k / k! · M_k,   M_k = Σ_j (y_j / c)^k,

and likewise with a factor of y or y² inside the sum. The moments M_k are at most p, so that nothing
overflows, and N_i is at least p since the mean of y is 0, so that what cancels is small beside it.
The number of terms is always the same: what a row gives is the same to the bit whatever rows are
beside it. Rows for which it is too small take the other way, view by view.
"""

import math

import numpy as np

from fcorr.nn.kernels.arithmetic import compiled_in_order, gelu_32, gelu_slope_32
from fcorr.nn.kernels.network import encoder_backward, encoder_forward

LANES = 64
N_TERMS = 28
LARGEST = 7.0  # |t y|: what the series leaves out is then below 1e-6 of what it adds up to

_ONE = np.float32(1.0)


@compiled_in_order
def _empty(n):
    return np.empty((n, LANES), dtype=np.float32)


@compiled_in_order
def _load(rows, first, x):
    """Copy 64 rows ``(R, F)`` into lanes; lanes beyond the last row repeat it."""
    for l in range(LANES):
        row = rows[min(first + l, len(rows) - 1)]
        for j in range(len(x)):
            x[j, l] = row[j]


@compiled_in_order
def _store(x, first, rows):
    for l in range(min(LANES, len(rows) - first)):
        for j in range(len(x)):
            rows[first + l, j] = x[j, l]


@compiled_in_order
def _mean(x, out):
    out[:] = 0.0
    for j in range(len(x)):
        for l in range(LANES):
            out[l] += x[j, l]
    for l in range(LANES):
        out[l] /= np.float32(len(x))


@compiled_in_order
def _normalize(x, eps, normed, scale, mean):
    """Subtract each lane's mean and divide by its deviation; ``scale`` is one over that."""
    _mean(x, mean)
    scale[:] = 0.0
    for j in range(len(x)):
        for l in range(LANES):
            d = x[j, l] - mean[l]
            scale[l] += d * d
    for l in range(LANES):
        scale[l] = _ONE / np.sqrt(scale[l] / np.float32(len(x)) + np.float32(eps))
    for j in range(len(x)):
        for l in range(LANES):
            normed[j, l] = (x[j, l] - mean[l]) * scale[l]


@compiled_in_order
def _normalize_gradient(scale, normed, weight, g, dx, total, product):
    """Add the gradient by x of ``Σ g · (normed · weight)`` to ``dx``."""
    n = np.float32(len(g))
    total[:] = 0.0
    product[:] = 0.0
    for j in range(len(g)):
        for l in range(LANES):
            gw = g[j, l] * weight[j]
            total[l] += gw
            product[l] += gw * normed[j, l]
    for l in range(LANES):
        total[l] /= n
        product[l] /= n
    for j in range(len(g)):
        for l in range(LANES):
            gw = g[j, l] * weight[j]
            dx[j, l] += scale[l] * (gw - total[l] - normed[j, l] * product[l])


@compiled_in_order
def _affine(x, weight, bias, out):
    for j in range(len(x)):
        for l in range(LANES):
            out[j, l] = x[j, l] * weight[j] + bias[j]


@compiled_in_order
def _add_affine_gradient(g, x, dweight, dbias):
    for j in range(len(g)):
        w, b = np.float32(0.0), np.float32(0.0)
        for l in range(LANES):
            w += g[j, l] * x[j, l]
            b += g[j, l]
        dweight[j] += w
        dbias[j] += b


@compiled_in_order
def _activate(x, activated, out):
    for j in range(len(x)):
        if activated:
            for l in range(LANES):
                out[j, l] = gelu_32(x[j, l])
        else:
            for l in range(LANES):
                out[j, l] = x[j, l]


@compiled_in_order
def _stack_gradient(g, weight, x, activated):
    for j in range(len(g)):
        if activated:
            for l in range(LANES):
                g[j, l] *= weight[j] * gelu_slope_32(x[j, l])
        else:
            for l in range(LANES):
                g[j, l] *= weight[j]


@compiled_in_order
def _power_sum(power, factor, inverse, total):
    """Add up over the features; then multiply each by its factor, for the next power."""
    total[:] = 0.0
    for j in range(len(power)):
        for l in range(LANES):
            total[l] += power[j, l]
            power[j, l] *= factor[j, l] * inverse


@compiled_in_order
def _attend(z, root, lanes, u, s, moments, N, P, Q, squares):
    """Compute N, P = Σ y e^{t y} and, for the gradient, Q = Σ y² e^{t y}.

    ``u`` are the keys over their largest, ``s`` the queries times it. Of the ``lanes``, mean gets
    the mean of z, c the largest key, and largest the largest |t y|.
    """
    mean, c, largest, total = lanes[0], lanes[1], lanes[2], lanes[3]
    _mean(z, mean)
    c[:] = np.float32(1e-30)
    largest[:] = 0.0
    for j in range(len(z)):
        for l in range(LANES):
            c[l] = max(c[l], abs(z[j, l] - mean[l]))
            largest[l] = max(largest[l], abs(z[j, l]))
    for l in range(LANES):
        largest[l] *= c[l] / np.float32(root)
        total[l] = _ONE / c[l]
    for j in range(len(z)):
        for l in range(LANES):
            u[j, l] = (z[j, l] - mean[l]) * total[l]
            s[j, l] = z[j, l] * (c[l] / np.float32(root))
    for j in range(len(z)):
        for l in range(LANES):
            N[j, l] = _ONE
    for k in range(N_TERMS + 2):
        _power_sum(N, u, _ONE, moments[k])
    # Here the terms are innermost, and their number a constant: the compiler writes them all out
    # and takes as many lanes at a time as the processor has.
    for j in range(len(z)):
        for l in range(LANES):
            n, p = moments[N_TERMS - 1, l], moments[N_TERMS, l]
            for k in range(N_TERMS - 1, 0, -1):
                step = s[j, l] * (_ONE / np.float32(k))
                n = n * step + moments[k - 1, l]
                p = p * step + moments[k, l]
            N[j, l] = n
            P[j, l] = p * c[l]
    if squares:
        for j in range(len(z)):
            for l in range(LANES):
                q = moments[N_TERMS + 1, l]
                for k in range(N_TERMS - 1, 0, -1):
                    q = q * (s[j, l] * (_ONE / np.float32(k))) + moments[k + 1, l]
                Q[j, l] = q * (c[l] * c[l])


@compiled_in_order
def views_forward(h, norms, stack, eps, residual, out):
    """Compute the layer's output ``out (R, F)`` of rows or views ``h (R, F)``.

    Arguments as in :func:`fcorr.nn.kernels.network.encoder_forward`.
    """
    n_rows, n = h.shape
    root = math.sqrt(n)
    x, normed, z, u, s = _empty(n), _empty(n), _empty(n), _empty(n), _empty(n)
    N, P = _empty(n), _empty(n)
    lanes = np.empty((6, LANES), dtype=np.float32)
    moments = np.empty((N_TERMS + 2, LANES), dtype=np.float32)
    n_stack = len(stack) // 2
    none = np.empty(0, dtype=np.int64)
    for first in range(0, n_rows, LANES):
        _load(h, first, x)
        _normalize(x, eps, normed, lanes[4], lanes[5])
        _affine(normed, norms[0], norms[1], z)
        _attend(z, root, lanes, u, s, moments, N, P, P, False)
        mean = lanes[0]
        for j in range(n):
            for l in range(LANES):
                before = x[j, l] if residual else np.float32(0.0)
                x[j, l] = before + (mean[l] + P[j, l] / N[j, l])
        _normalize(x, eps, normed, lanes[4], lanes[5])
        _affine(normed, norms[2], norms[3], u)
        for k in range(n_stack):
            _activate(u, k > 0, s)
            _affine(s, stack[2 * k], stack[2 * k + 1], u)
        for j in range(n):
            for l in range(LANES):
                x[j, l] += u[j, l]
        _store(x, first, out)
        for l in range(min(LANES, n_rows - first)):
            if not lanes[2, l] <= LARGEST:
                r = first + l
                no_columns = np.empty((1, 0, n), dtype=np.float32), np.empty((1, 0), dtype=np.float32)
                rows, outs = h[r : r + 1], out[r : r + 1]
                encoder_forward(rows, norms, stack, eps, residual, none, outs, *no_columns)


@compiled_in_order
def views_backward(h, norms, stack, eps, residual, grad, dh, dnorms, dstack):
    """Compute the gradient by the input, and by the parameters, as ``encoder_backward`` does."""
    n_rows, n = h.shape
    root = math.sqrt(n)
    x, normed, z, u, s = _empty(n), _empty(n), _empty(n), _empty(n), _empty(n)
    N, P, Q, normed_2, g = _empty(n), _empty(n), _empty(n), _empty(n), _empty(n)
    da, dz, dx, U, C = _empty(n), _empty(n), _empty(n), _empty(n), _empty(n)
    lanes = np.empty((8, LANES), dtype=np.float32)
    moments = np.empty((N_TERMS + 2, LANES), dtype=np.float32)
    sums = np.empty((2, N_TERMS, LANES), dtype=np.float32)
    n_stack = len(stack) // 2
    inputs = np.empty((n_stack + 1, n, LANES), dtype=np.float32)
    active = np.empty((n_stack + 1, n, LANES), dtype=np.float32)
    row_norms, row_stack = np.empty(dnorms.shape), np.empty(dstack.shape)
    dnorms[:] = 0.0
    dstack[:] = 0.0
    for first in range(0, n_rows, LANES):
        _load(h, first, x)
        _normalize(x, eps, normed, lanes[4], lanes[6])
        _affine(normed, norms[0], norms[1], z)
        _attend(z, root, lanes, u, s, moments, N, P, Q, True)
        mean, largest = lanes[0], lanes[2]
        for j in range(n):
            for l in range(LANES):
                P[j, l] /= N[j, l]
                before = x[j, l] if residual else np.float32(0.0)
                x[j, l] = before + (mean[l] + P[j, l])
        _normalize(x, eps, normed_2, lanes[5], lanes[6])
        _affine(normed_2, norms[2], norms[3], inputs[0])
        _load(grad, first, da)
        for l in range(LANES):
            # Lanes beyond the last row, and rows that take the other way, add nothing here.
            if first + l >= n_rows or not largest[l] <= LARGEST:
                for j in range(n):
                    da[j, l] = 0.0
        for k in range(n_stack - 1):
            _activate(inputs[k], k > 0, active[k])
            _affine(active[k], stack[2 * k], stack[2 * k + 1], inputs[k + 1])
        if n_stack:
            _activate(inputs[n_stack - 1], n_stack > 1, active[n_stack - 1])
        for j in range(n):
            for l in range(LANES):
                g[j, l] = da[j, l]
        for k in range(n_stack - 1, -1, -1):
            _add_affine_gradient(g, active[k], dstack[2 * k], dstack[2 * k + 1])
            _stack_gradient(g, stack[2 * k], inputs[k], k > 0)
        _add_affine_gradient(g, normed_2, dnorms[2], dnorms[3])
        _normalize_gradient(lanes[5], normed_2, norms[2], g, da, lanes[6], lanes[7])
        _attention_gradient(root, lanes, u, s, sums, N, P, Q, da, U, C, dz)
        _add_affine_gradient(dz, normed, dnorms[0], dnorms[1])
        for j in range(n):
            for l in range(LANES):
                dx[j, l] = da[j, l] if residual else np.float32(0.0)
        _normalize_gradient(lanes[4], normed, norms[0], dz, dx, lanes[6], lanes[7])
        _store(dx, first, dh)
        for l in range(min(LANES, n_rows - first)):
            if not largest[l] <= LARGEST:
                r = first + l
                rows, grads, outs = h[r : r + 1], grad[r : r + 1], dh[r : r + 1]
                options = norms, stack, eps, residual
                encoder_backward(rows, *options, grads, outs, row_norms, row_stack)
                dnorms += row_norms
                dstack += row_stack


@compiled_in_order
def _attention_gradient(root, lanes, u, s, sums, N, r, Q, g, U, C, dz):
    """Compute the gradient by z, given that by the attention's output, ``g``.

    With ``r = P/N`` and ``a = g/N``: as a query, z_i moves its own output by (Q/N − r²)/√p; as a
    key, y_j moves all of them, by ``Σ_i a_i e^{t_i y_j} (1 + t_i (y_j − r_i))``, which is the sum of
    ``U_j = Σ_i a_i (1 − t_i r_i) e^{t_i y_j}`` and ``y_j C_j``, ``C_j = Σ_i a_i t_i e^{t_i y_j}``.
    """
    c, inverse_c, mean_g, mean_y = lanes[1], lanes[3], lanes[6], lanes[7]
    mean_g[:] = 0.0
    mean_y[:] = 0.0
    n = np.float32(len(g))
    for j in range(len(g)):
        for l in range(LANES):
            a = g[j, l] / N[j, l]
            mean_g[l] += g[j, l]
            dz[j, l] = (Q[j, l] * a - g[j, l] * (r[j, l] * r[j, l])) / np.float32(root)
            C[j, l] = a * s[j, l]  # with the c of u c = y
            U[j, l] = a - C[j, l] * (r[j, l] * inverse_c[l])
    for k in range(N_TERMS):  # Σ_i s_i^k/k! times either
        _power_sum(U, s, _ONE / np.float32(k + 1), sums[0, k])
        _power_sum(C, s, _ONE / np.float32(k + 1), sums[1, k])
    for j in range(len(g)):
        for l in range(LANES):
            first, second = sums[0, N_TERMS - 1, l], sums[1, N_TERMS - 1, l]
            for k in range(N_TERMS - 2, -1, -1):
                first = first * u[j, l] + sums[0, k, l]
                second = second * u[j, l] + sums[1, k, l]
            U[j, l] = first + u[j, l] * second
            mean_y[l] += U[j, l]
    for j in range(len(g)):
        for l in range(LANES):
            dz[j, l] += U[j, l] + (mean_g[l] - mean_y[l]) / n
