"""The encoder layer over many views at once, side by side in the lanes of the processor.

:mod:`fcorr.nn.kernels.network` takes a row with one number per feature through the layer in double
precision. Here 64 views, those of several rows, go side by side in single precision: every array
is ``(F, 64)``, and all arithmetic is the same for the numbers next to each other. The attention is
the same power series. With y the centred keys, t the queries over √p and c the largest |y|,

    N_i = Σ_j e^{t_i y_j} = Σ_k (c t_i)^k / k! · M_k,   M_k = Σ_j (y_j / c)^k,

and likewise with a factor of y or y² inside the sum. The moments M_k are at most p, so that nothing
overflows, and N_i is at least p since the mean of y is 0, so that what cancels is small beside it.
The number of terms is always the same: what a row gives is the same to the bit whatever rows are
beside it. Rows for which it is too small are left out and listed. They are for the kernels of
:mod:`fcorr.nn.kernels.network`, which are not called from here: most models never need them, and
would wait twice as long for the compiler.
"""

import math

import numpy as np

from fcorr.nn.kernels.arithmetic import compiled_in_order, gelu_32, gelu_slope_32

LANES = 64
N_TERMS = 16
LARGEST = 2.6  # |t y|: what the series leaves out is then below 1e-6 of what it adds up to

_ONE = np.float32(1.0)


@compiled_in_order
def _empty(n):
    return np.empty((n, LANES), dtype=np.float32)


@compiled_in_order
def _load(rows, first, x):
    """Copy 64 rows ``(R, F)`` into lanes; lanes beyond the last row repeat it."""
    for i in range(LANES):
        row = rows[min(first + i, len(rows) - 1)]
        for j in range(len(x)):
            x[j, i] = row[j]


@compiled_in_order
def _store(x, first, rows):
    for i in range(min(LANES, len(rows) - first)):
        for j in range(len(x)):
            rows[first + i, j] = x[j, i]


@compiled_in_order
def _mean(x, out):
    out[:] = 0.0
    for j in range(len(x)):
        for i in range(LANES):
            out[i] += x[j, i]
    for i in range(LANES):
        out[i] /= np.float32(len(x))


@compiled_in_order
def _normalize(x, eps, normed, scale, mean):
    """Subtract each lane's mean and divide by its deviation; ``scale`` is one over that."""
    _mean(x, mean)
    scale[:] = 0.0
    for j in range(len(x)):
        for i in range(LANES):
            d = x[j, i] - mean[i]
            scale[i] += d * d
    for i in range(LANES):
        scale[i] = _ONE / np.sqrt(scale[i] / np.float32(len(x)) + np.float32(eps))
    for j in range(len(x)):
        for i in range(LANES):
            normed[j, i] = (x[j, i] - mean[i]) * scale[i]


@compiled_in_order
def _normalize_gradient(scale, normed, weight, g, dx, total, product):
    """Add the gradient by x of ``Σ g · (normed · weight)`` to ``dx``."""
    n = np.float32(len(g))
    total[:] = 0.0
    product[:] = 0.0
    for j in range(len(g)):
        for i in range(LANES):
            gw = g[j, i] * weight[j]
            total[i] += gw
            product[i] += gw * normed[j, i]
    for i in range(LANES):
        total[i] /= n
        product[i] /= n
    for j in range(len(g)):
        for i in range(LANES):
            gw = g[j, i] * weight[j]
            dx[j, i] += scale[i] * (gw - total[i] - normed[j, i] * product[i])


@compiled_in_order
def _affine(x, weight, bias, out):
    for j in range(len(x)):
        for i in range(LANES):
            out[j, i] = x[j, i] * weight[j] + bias[j]


@compiled_in_order
def _add_affine_gradient(g, x, dweight, dbias):
    for j in range(len(g)):
        w, b = np.float32(0.0), np.float32(0.0)
        for i in range(LANES):
            w += g[j, i] * x[j, i]
            b += g[j, i]
        dweight[j] += w
        dbias[j] += b


@compiled_in_order
def _activate(x, activated, out):
    for j in range(len(x)):
        if activated:
            for i in range(LANES):
                out[j, i] = gelu_32(x[j, i])
        else:
            for i in range(LANES):
                out[j, i] = x[j, i]


@compiled_in_order
def _stack_gradient(g, weight, x, activated):
    for j in range(len(g)):
        if activated:
            for i in range(LANES):
                g[j, i] *= weight[j] * gelu_slope_32(x[j, i])
        else:
            for i in range(LANES):
                g[j, i] *= weight[j]


@compiled_in_order
def _power_sum(power, factor, inverse, total):
    """Add up over the features; then multiply each by its factor, for the next power."""
    total[:] = 0.0
    for j in range(len(power)):
        for i in range(LANES):
            total[i] += power[j, i]
            power[j, i] *= factor[j, i] * inverse


@compiled_in_order
def _attend(z, root, lanes, u, s, moments, N, P):
    """Compute N and P = Σ y e^{t y}.

    ``u`` are the keys over their largest, ``s`` the queries times it. Of the ``lanes``, mean gets
    the mean of z, c the largest key, and largest the largest |t y|. Where that is too large for the
    series ``s`` is 0: nothing overflows, also what is then multiplied by a gradient of 0.
    """
    mean, c, largest, total, factor = lanes[0], lanes[1], lanes[2], lanes[3], lanes[5]
    _mean(z, mean)
    c[:] = np.float32(1e-30)
    largest[:] = 0.0
    for j in range(len(z)):
        for i in range(LANES):
            c[i] = max(c[i], abs(z[j, i] - mean[i]))
            largest[i] = max(largest[i], abs(z[j, i]))
    for i in range(LANES):
        factor[i] = c[i] / np.float32(root)
        largest[i] *= factor[i]
        factor[i] = factor[i] if largest[i] <= LARGEST else np.float32(0.0)
        total[i] = _ONE / c[i]
    for j in range(len(z)):
        for i in range(LANES):
            u[j, i] = (z[j, i] - mean[i]) * total[i]
            s[j, i] = z[j, i] * factor[i]
    for j in range(len(z)):
        for i in range(LANES):
            N[j, i] = _ONE
    for k in range(N_TERMS + 2):
        _power_sum(N, u, _ONE, moments[k])
    # Here the terms are innermost, and their number a constant: the compiler writes them all out
    # and takes as many lanes at a time as the processor has.
    for j in range(len(z)):
        for i in range(LANES):
            n, p = moments[N_TERMS - 1, i], moments[N_TERMS, i]
            for k in range(N_TERMS - 1, 0, -1):
                step = s[j, i] * (_ONE / np.float32(k))
                n = n * step + moments[k - 1, i]
                p = p * step + moments[k, i]
            N[j, i] = n
            P[j, i] = p * c[i]


@compiled_in_order
def _attend_squares(s, c, moments, Q):
    """Compute Q = Σ y² e^{t y}, which the gradient needs, from what :func:`_attend` left."""
    for j in range(len(s)):
        for i in range(LANES):
            q = moments[N_TERMS + 1, i]
            for k in range(N_TERMS - 1, 0, -1):
                q = q * (s[j, i] * (_ONE / np.float32(k))) + moments[k + 1, i]
            Q[j, i] = q * (c[i] * c[i])


@compiled_in_order
def views_forward(h, norms, stack, eps, residual, out):
    """Compute the layer's output ``out (R, F)`` of rows or views ``h (R, F)``.

    Arguments as in :func:`fcorr.nn.kernels.network.encoder_forward`. Returns the rows that were
    left out, whose numbers in ``out`` mean nothing.
    """
    n_rows, n = h.shape
    root = math.sqrt(n)
    x, normed, z, u, s = _empty(n), _empty(n), _empty(n), _empty(n), _empty(n)
    N, P = _empty(n), _empty(n)
    lanes = np.empty((6, LANES), dtype=np.float32)
    moments = np.empty((N_TERMS + 2, LANES), dtype=np.float32)
    n_stack = len(stack) // 2
    left_out, n_left_out = np.empty(n_rows, dtype=np.int64), 0
    for first in range(0, n_rows, LANES):
        _load(h, first, x)
        _normalize(x, eps, normed, lanes[4], lanes[5])
        _affine(normed, norms[0], norms[1], z)
        _attend(z, root, lanes, u, s, moments, N, P)
        mean = lanes[0]
        for j in range(n):
            for i in range(LANES):
                before = x[j, i] if residual else np.float32(0.0)
                x[j, i] = before + (mean[i] + P[j, i] / N[j, i])
        _normalize(x, eps, normed, lanes[4], lanes[5])
        _affine(normed, norms[2], norms[3], u)
        for k in range(n_stack):
            _activate(u, k > 0, s)
            _affine(s, stack[2 * k], stack[2 * k + 1], u)
        for j in range(n):
            for i in range(LANES):
                x[j, i] += u[j, i]
        _store(x, first, out)
        for i in range(min(LANES, n_rows - first)):
            if not lanes[2, i] <= LARGEST:
                left_out[n_left_out] = first + i
                n_left_out += 1
    return left_out[:n_left_out]


@compiled_in_order
def views_backward(h, norms, stack, eps, residual, grad, dh, dnorms, dstack):
    """Compute the gradient by the input, and by the parameters, as ``encoder_backward`` does.

    Returns the rows that were left out, which have no part in the parameters' gradient.
    """
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
    left_out, n_left_out = np.empty(n_rows, dtype=np.int64), 0
    dnorms[:] = 0.0
    dstack[:] = 0.0
    for first in range(0, n_rows, LANES):
        _load(h, first, x)
        _normalize(x, eps, normed, lanes[4], lanes[6])
        _affine(normed, norms[0], norms[1], z)
        _attend(z, root, lanes, u, s, moments, N, P)
        _attend_squares(s, lanes[1], moments, Q)
        mean, largest = lanes[0], lanes[2]
        for j in range(n):
            for i in range(LANES):
                P[j, i] /= N[j, i]
                before = x[j, i] if residual else np.float32(0.0)
                x[j, i] = before + (mean[i] + P[j, i])
        _normalize(x, eps, normed_2, lanes[5], lanes[6])
        _affine(normed_2, norms[2], norms[3], inputs[0])
        _load(grad, first, da)
        for i in range(LANES):
            # Lanes beyond the last row, and rows that are left out, add nothing.
            if first + i >= n_rows or not largest[i] <= LARGEST:
                for j in range(n):
                    da[j, i] = 0.0
        for k in range(n_stack - 1):
            _activate(inputs[k], k > 0, active[k])
            _affine(active[k], stack[2 * k], stack[2 * k + 1], inputs[k + 1])
        if n_stack:
            _activate(inputs[n_stack - 1], n_stack > 1, active[n_stack - 1])
        for j in range(n):
            for i in range(LANES):
                g[j, i] = da[j, i]
        for k in range(n_stack - 1, -1, -1):
            _add_affine_gradient(g, active[k], dstack[2 * k], dstack[2 * k + 1])
            _stack_gradient(g, stack[2 * k], inputs[k], k > 0)
        _add_affine_gradient(g, normed_2, dnorms[2], dnorms[3])
        _normalize_gradient(lanes[5], normed_2, norms[2], g, da, lanes[6], lanes[7])
        _attention_gradient(root, lanes, u, s, sums, N, P, Q, da, U, C, dz)
        _add_affine_gradient(dz, normed, dnorms[0], dnorms[1])
        for j in range(n):
            for i in range(LANES):
                dx[j, i] = da[j, i] if residual else np.float32(0.0)
        _normalize_gradient(lanes[4], normed, norms[0], dz, dx, lanes[6], lanes[7])
        _store(dx, first, dh)
        for i in range(min(LANES, n_rows - first)):
            if not largest[i] <= LARGEST:
                left_out[n_left_out] = first + i
                n_left_out += 1
    return left_out[:n_left_out]


@compiled_in_order
def _attention_gradient(root, lanes, u, s, sums, N, r, Q, g, U, C, dz):
    """Compute the gradient by z, given that by the attention's output, ``g``.

    With ``r = P/N`` and ``a = g/N``: as a query, z_i moves its own output by (Q/N − r²)/√p; as a
    key, y_j moves all of them, by ``Σ_i a_i e^{t_i y_j} (1 + t_i (y_j − r_i))``, the sum of ``U_j =
    Σ_i a_i (1 − t_i r_i) e^{t_i y_j}`` and ``y_j C_j``, where ``C_j = Σ_i a_i t_i e^{t_i y_j}``.
    """
    inverse_c, mean_g, mean_y = lanes[3], lanes[6], lanes[7]
    mean_g[:] = 0.0
    mean_y[:] = 0.0
    n = np.float32(len(g))
    for j in range(len(g)):
        for i in range(LANES):
            a = g[j, i] / N[j, i]
            mean_g[i] += g[j, i]
            dz[j, i] = (Q[j, i] * a - g[j, i] * (r[j, i] * r[j, i])) / np.float32(root)
            C[j, i] = a * s[j, i]  # with the c of u c = y
            U[j, i] = a - C[j, i] * (r[j, i] * inverse_c[i])
    for k in range(N_TERMS):  # Σ_i s_i^k/k! times either
        _power_sum(U, s, _ONE / np.float32(k + 1), sums[0, k])
        _power_sum(C, s, _ONE / np.float32(k + 1), sums[1, k])
    for j in range(len(g)):
        for i in range(LANES):
            first, second = sums[0, N_TERMS - 1, i], sums[1, N_TERMS - 1, i]
            for k in range(N_TERMS - 2, -1, -1):
                first = first * u[j, i] + sums[0, k, i]
                second = second * u[j, i] + sums[1, k, i]
            U[j, i] = first + u[j, i] * second
            mean_y[i] += U[j, i]
    for j in range(len(g)):
        for i in range(LANES):
            dz[j, i] += U[j, i] + (mean_g[i] - mean_y[i]) / n
