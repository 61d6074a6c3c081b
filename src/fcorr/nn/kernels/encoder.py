r"""The encoder layer, many rows at a time, side by side in the lanes of the processor.

NOTE[DIFF]: the paper computes the p × p attention matrix; this gives the same output, in linear
time, within a stated bound.

Views are rows like any other. 128 rows go through the layer together: every array is ``(F, 128)``,
and all arithmetic is the same for the numbers next to each other. What a row gives is the same to
the bit whatever rows are beside it.

With one number per feature the attention output is one smooth function per row, evaluated at the
p features. Write y = z − z̄ for the keys less their mean and t = z/√p for the queries. The softmax
does not change when all keys are shifted, so

    h_i = z̄ + P_i/N_i,   N_i = Σ_j e^{t_i y_j},   P_i = Σ_j y_j e^{t_i y_j}.

The exponential is expanded, and the sum over keys moves into moments of the row. With c = max|y|,
u = y/c and s = c t,

    N_i = Σ_k s_i^k/k! · M_k,   M_k = Σ_j u_j^k,

and likewise P and Q, with a factor of y or y² inside the sum. K moments cost O(p·K), and so do p
evaluations: no p × p matrix, and no exponential. The gradient is again a sum of exponentials, so
again a series (:func:`_attention_gradient`).

Error bound
-----------
Let X = max|t_i y_j|. By Lagrange's remainder the K-term series of e^x is off by at most e^x X^K/K!
for x ≥ 0 and X^K/K! for x < 0, hence N by at most (N + p) X^K/K!. As the y_j sum to 0, Jensen gives
N ≥ p. So N is off by the relative amount δ ≤ 2 X^K/K!, P by at most c N δ, and h by at most
2 c δ/(1 − δ). Rounding adds at most e^X times that of the precision to δ, and as a rule much less:
keys far from the mean are few, by Chebyshev's inequality, and N counts all p.

A row's own X decides how many terms it gets, and in which precision (:data:`SERIES`). Views need
eight in single precision; the paper's model, whose LayerNorm starts at 1 and not at a tenth, needs
more; and where no series serves, exponentials are summed one by one.
"""

import math

import numpy as np

from fcorr.nn.kernels.arithmetic import compiled_in_order, exp, gelu_32, gelu_slope_32

LANES = 128
SERIES = (
    # Precision, terms (a multiple of eight), and the largest X: 2 X^K/K! is then below 1e-7.
    (np.float32, 8, 0.4),
    (np.float64, 24, 4.5),
    (np.float64, 64, 18.0),
    (np.float64, 0, math.inf),  # exponentials, and no series
)

_ONE = np.float32(1.0)
_BLOCK = 8  # features whose powers stay in the nearest cache


@compiled_in_order
def _empty(n, like):
    return np.empty((n, LANES), dtype=like.dtype)


@compiled_in_order
def _load(h, rows, first, x):
    """Copy some ``rows`` of ``h`` into lanes; lanes beyond the last row repeat it."""
    for i in range(LANES):
        row = h[rows[min(first + i, len(rows) - 1)]]
        for j in range(len(x)):
            x[j, i] = row[j]


@compiled_in_order
def _fill(x, value):
    """Set rows of lanes; to assign to a slice takes the compiler ten times as long."""
    for j in range(len(x)):
        for i in range(LANES):
            x[j, i] = value


@compiled_in_order
def _mean(x, out):
    total = np.zeros(LANES)  # double precision: rounding would grow with the number of features
    for j in range(len(x)):
        for i in range(LANES):
            total[i] += x[j, i]
    for i in range(LANES):
        out[i] = total[i] / len(x)


@compiled_in_order
def _normalize(x, eps, normed, scale, mean):
    """Subtract each lane's mean and divide by its deviation; ``scale`` is one over that."""
    _mean(x, mean)
    total = np.zeros(LANES)
    for j in range(len(x)):
        for i in range(LANES):
            d = x[j, i] - mean[i]
            total[i] += d * d
    for i in range(LANES):
        scale[i] = 1.0 / np.sqrt(total[i] / len(x) + eps)
    for j in range(len(x)):
        for i in range(LANES):
            normed[j, i] = (x[j, i] - mean[i]) * scale[i]


@compiled_in_order
def _normalize_gradient(scale, normed, weight, g, dx, total, product):
    """Add the gradient by x of ``Σ g · (normed · weight)`` to ``dx``."""
    n = np.float32(len(g))
    for i in range(LANES):
        total[i] = 0.0
        product[i] = 0.0
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
    """Apply GELU where a layer of the stack has one before it, else copy."""
    for j in range(len(x)):
        if activated:
            for i in range(LANES):
                out[j, i] = gelu_32(x[j, i])
        else:
            for i in range(LANES):
                out[j, i] = x[j, i]


@compiled_in_order
def _stack_gradient(g, weight, x, activated):
    """Turn the gradient by a layer's output into that by its input."""
    for j in range(len(g)):
        if activated:
            for i in range(LANES):
                g[j, i] *= weight[j] * gelu_slope_32(x[j, i])
        else:
            for i in range(LANES):
                g[j, i] *= weight[j]


# ---------------------------------------------------------------------------------- attention
# ``sums (K + 4, 128)`` and ``terms (K + 8, 128)`` are scratch in the precision of a series. Where
# ``one_by_one`` is None, and not True, the sums of exponentials are not even compiled.


@compiled_in_order
def _power_sums(x, factor, sums, power):
    """Compute ``Σ_j x_j factor_j^k`` for each k, of few features at a time."""
    _fill(sums, 0.0)
    for first in range(0, len(x), _BLOCK):
        n = min(_BLOCK, len(x) - first)
        for j in range(n):
            for i in range(LANES):
                power[j, i] = x[first + j, i]
        for k in range(0, len(sums), 4):
            for j in range(n):
                for i in range(LANES):
                    f = factor[first + j, i]
                    p0 = power[j, i]
                    p1 = p0 * f
                    p2 = p1 * f
                    p3 = p2 * f
                    sums[k, i] += p0
                    sums[k + 1, i] += p1
                    sums[k + 2, i] += p2
                    sums[k + 3, i] += p3
                    power[j, i] = p3 * f


@compiled_in_order
def _series(sums, order, x, terms, out):
    """Evaluate ``Σ_k sums[k + order] x^k/k!``."""
    n_terms = len(sums) - 4
    a, value = terms[:n_terms], terms[n_terms]
    factorial = 1.0
    for k in range(n_terms):
        factorial *= max(k, 1)
        share = sums.dtype.type(1 / factorial)
        for i in range(LANES):
            a[k, i] = sums[k + order, i] * share
    for j in range(len(x)):
        for i in range(LANES):
            value[i] = 0.0
        for k in range(n_terms - 8, -1, -8):
            for i in range(LANES):
                f = x[j, i]
                v = ((value[i] * f + a[k + 7, i]) * f + a[k + 6, i]) * f + a[k + 5, i]
                v = ((v * f + a[k + 4, i]) * f + a[k + 3, i]) * f + a[k + 2, i]
                value[i] = (v * f + a[k + 1, i]) * f + a[k, i]
        for i in range(LANES):
            out[j, i] = value[i]


@compiled_in_order
def _find_reach(z, root, lanes):
    """Compute the mean of z, the largest key c, and X, the least of which is returned."""
    mean, c, reach = lanes[0], lanes[1], lanes[2]
    _mean(z, mean)
    for i in range(LANES):
        c[i] = 1e-30
        reach[i] = 0.0
    for j in range(len(z)):
        for i in range(LANES):
            c[i] = max(c[i], abs(z[j, i] - mean[i]))
            reach[i] = max(reach[i], abs(z[j, i]))
    least = np.inf
    for i in range(LANES):
        reach[i] *= c[i] / np.float32(root)
        least = min(least, reach[i])
    return least


@compiled_in_order
def _attend(z, root, lanes, largest, one_by_one, n_orders, sums, terms, u, s, NPQ):
    """Compute the first of N, P/c and Q/c²; one by one, all of them, times e^{−shift}.

    A lane that needs a longer series has queries of 0: nothing overflows there.
    """
    mean, c, reach, of_keys, of_queries = lanes[0], lanes[1], lanes[2], lanes[3], lanes[5]
    for i in range(LANES):
        of_keys[i] = _ONE / c[i]
        of_queries[i] = np.float32(0.0) if reach[i] > largest else c[i] / np.float32(root)
    for j in range(len(z)):
        for i in range(LANES):
            u[j, i] = (z[j, i] - mean[i]) * of_keys[i]
            s[j, i] = z[j, i] * of_queries[i]
            NPQ[0, j, i] = _ONE
    _fill(lanes[8:], 0.0)
    if one_by_one is None:
        _power_sums(NPQ[0], u, sums, terms)
        for order in range(n_orders):
            _series(sums, order, s, terms, NPQ[order])
    else:
        _sum_exponentials(u, s, lanes[8], lanes[9], NPQ)


@compiled_in_order
def _shift(s, low, high):
    """Return the largest exponent of a query: that of the least or of the largest key."""
    return max(s * low, s * high)


@compiled_in_order
def _sum_exponentials(u, s, low, high, NPQ):
    for j in range(len(u)):
        for i in range(LANES):
            low[i] = min(low[i], u[j, i])
            high[i] = max(high[i], u[j, i])
    total = np.empty((3, LANES))
    for j in range(len(u)):
        _fill(total, 0.0)
        for k in range(len(u)):
            for i in range(LANES):
                e = exp(s[j, i] * np.float64(u[k, i]) - _shift(s[j, i], low[i], high[i]))
                total[0, i] += e
                total[1, i] += e * u[k, i]
                total[2, i] += e * u[k, i] * u[k, i]
        for order in range(3):
            for i in range(LANES):
                NPQ[order, j, i] = total[order, i]


@compiled_in_order
def _sum_by_key(u, s, low, high, x, out):
    """Compute ``Σ_i x_i e^{t_i y_j − shift_i}``."""
    total = np.empty(LANES)
    for j in range(len(u)):
        for i in range(LANES):
            total[i] = 0.0
        for k in range(len(u)):
            for i in range(LANES):
                shift = _shift(s[k, i], low[i], high[i])
                total[i] += x[k, i] * exp(s[k, i] * np.float64(u[j, i]) - shift)
        for i in range(LANES):
            out[j, i] = total[i]


@compiled_in_order
def _attention_gradient(root, lanes, one_by_one, u, s, sums, terms, NPQ, g, UC, dz):
    """Compute the gradient by z, given that by the attention's output, ``g``.

    In the place of P/c is ``r = P/N/c``. With ``a = g/N``: as a query, z_i moves its own output by
    (Q/N − (P/N)²)/√p; as a key, y_j moves all of them, by ``Σ_i a_i e^{t_i y_j} (1 + t_i (y_j −
    r_i c))``, the sum of ``U_j = Σ_i a_i (1 − s_i r_i) e^{t_i y_j}`` and ``u_j C_j``, where ``C_j =
    Σ_i a_i s_i e^{t_i y_j}``.
    """
    c, square, mean_g, mean_y = lanes[1], lanes[3], lanes[6], lanes[7]
    N, r, Q, U, C = NPQ[0], NPQ[1], NPQ[2], UC[0], UC[1]
    n = np.float32(len(g))
    for i in range(LANES):
        mean_g[i] = 0.0
        mean_y[i] = 0.0
        square[i] = c[i] * c[i] / np.float32(root)
    for j in range(len(g)):
        for i in range(LANES):
            a = g[j, i] / N[j, i]
            mean_g[i] += g[j, i]
            dz[j, i] = (Q[j, i] * a - g[j, i] * (r[j, i] * r[j, i])) * square[i]
            C[j, i] = a * s[j, i]
            U[j, i] = a - C[j, i] * r[j, i]
    for k in range(2):
        if one_by_one is None:
            _power_sums(UC[k], s, sums, terms)
            _series(sums, 0, u, terms, NPQ[k])
        else:
            _sum_by_key(u, s, lanes[8], lanes[9], UC[k], NPQ[k])
    for j in range(len(g)):
        for i in range(LANES):
            U[j, i] = NPQ[0, j, i] + u[j, i] * NPQ[1, j, i]
            mean_y[i] += U[j, i]
    for j in range(len(g)):
        for i in range(LANES):
            # z reaches the output through y = z − z̄ and through the z̄ that is added.
            dz[j, i] += U[j, i] + (mean_g[i] - mean_y[i]) / n


# -------------------------------------------------------------------------------------- layer


@compiled_in_order
def encoder_forward(
    h, rows, reaches, series, norms, stack, eps, residual, own, out, columns, means
):
    """Compute the layer's output ``out (B, F)`` of some ``rows`` of ``h (B, F)``.

    ``norms (4, F)`` are weight and bias of the two LayerNorms, ``stack (2 L, F)`` those of the L
    element-wise linear layers. ``series`` has ``sums (K + 4, 128)``, scratch in the precision of
    the series, K its number of terms, ``largest``, the largest X that they serve, and
    ``one_by_one``, None where there is a series. ``reaches (B,)`` is given each row's X, and rows
    beyond get nothing else. Of features ``own (S,)``, or None, it computes ``columns (B, S, F)``,
    the attention that every feature pays to them, and ``means (B, S)``, the attention's output at
    them.
    """
    sums, largest, one_by_one = series
    n_rows, n = len(rows), h.shape[1]
    root = math.sqrt(n)
    x, normed, z, v, w = _empty(n, h), _empty(n, h), _empty(n, h), _empty(n, h), _empty(n, h)
    u, s, NPQ = _empty(n, h), _empty(n, h), np.empty((3, n, LANES), dtype=h.dtype)
    N, P = NPQ[0], NPQ[1]
    terms, lanes = _empty(len(sums) + 4, sums), _empty(10, h)
    n_stack = len(stack) // 2
    for first in range(0, n_rows, LANES):
        _load(h, rows, first, x)
        _normalize(x, eps, normed, lanes[4], lanes[5])
        _affine(normed, norms[0], norms[1], z)
        least = _find_reach(z, root, lanes)
        mean, c, reach = lanes[0], lanes[1], lanes[2]
        if not least > largest:
            _attend(z, root, lanes, largest, one_by_one, 2, sums, terms, u, s, NPQ)
            for j in range(n):
                for i in range(LANES):
                    v[j, i] = mean[i] + c[i] * (P[j, i] / N[j, i])
                    x[j, i] = (x[j, i] if residual else np.float32(0.0)) + v[j, i]
            if own is not None:
                for i in range(min(LANES, n_rows - first)):
                    for k in range(len(own) if not reach[i] > largest else 0):
                        row, key = rows[first + i], u[own[k], i]
                        means[row, k] = v[own[k], i]
                        for j in range(n):
                            e = exp(s[j, i] * key - _shift(s[j, i], lanes[8, i], lanes[9, i]))
                            columns[row, k, j] = e / N[j, i]
            _normalize(x, eps, normed, lanes[4], lanes[5])
            _affine(normed, norms[2], norms[3], v)
            for k in range(n_stack):
                _activate(v, k > 0, w)
                _affine(w, stack[2 * k], stack[2 * k + 1], v)
        for i in range(min(LANES, n_rows - first)):
            row = rows[first + i]
            reaches[row] = reach[i]
            if not reach[i] > largest:
                for j in range(n):
                    out[row, j] = x[j, i] + v[j, i]


@compiled_in_order
def encoder_backward(
    h, rows, reaches, series, norms, stack, eps, residual, grad, dh, dnorms, dstack
):
    """Compute the gradient by the input, ``dh``; add that by the parameters to the last two.

    ``grad`` is the gradient by the output; the rest is as in :func:`encoder_forward`.
    """
    sums, largest, one_by_one = series
    n_rows, n = len(rows), h.shape[1]
    root = math.sqrt(n)
    x, normed, z, normed_2 = _empty(n, h), _empty(n, h), _empty(n, h), _empty(n, h)
    g, da, dz, dx = _empty(n, h), _empty(n, h), _empty(n, h), _empty(n, h)
    u, s, NPQ = _empty(n, h), _empty(n, h), np.empty((3, n, LANES), dtype=h.dtype)
    N, P, UC = NPQ[0], NPQ[1], np.empty((2, n, LANES), dtype=h.dtype)
    terms, lanes = _empty(len(sums) + 4, sums), _empty(10, h)
    n_stack = len(stack) // 2
    inputs = np.empty((n_stack + 1, n, LANES), dtype=np.float32)
    active = np.empty((n_stack + 1, n, LANES), dtype=np.float32)
    for first in range(0, n_rows, LANES):
        _load(h, rows, first, x)
        _normalize(x, eps, normed, lanes[4], lanes[6])
        _affine(normed, norms[0], norms[1], z)
        least = _find_reach(z, root, lanes)
        mean, c, reach = lanes[0], lanes[1], lanes[2]
        if not least > largest:
            _attend(z, root, lanes, largest, one_by_one, 3, sums, terms, u, s, NPQ)
            for j in range(n):
                for i in range(LANES):
                    P[j, i] /= N[j, i]
                    before = x[j, i] if residual else np.float32(0.0)
                    x[j, i] = before + (mean[i] + c[i] * P[j, i])
            _normalize(x, eps, normed_2, lanes[5], lanes[6])
            _affine(normed_2, norms[2], norms[3], inputs[0])
            _load(grad, rows, first, da)
            for i in range(LANES):
                # Lanes beyond the last row, and rows that are left out, add nothing.
                if first + i >= n_rows or reach[i] > largest:
                    for j in range(n):
                        da[j, i] = 0.0
            for k in range(n_stack):
                _activate(inputs[k], k > 0, active[k])
                _affine(active[k], stack[2 * k], stack[2 * k + 1], inputs[k + 1])
            for j in range(n):
                for i in range(LANES):
                    g[j, i] = da[j, i]
            for k in range(n_stack - 1, -1, -1):
                _add_affine_gradient(g, active[k], dstack[2 * k], dstack[2 * k + 1])
                _stack_gradient(g, stack[2 * k], inputs[k], k > 0)
            _add_affine_gradient(g, normed_2, dnorms[2], dnorms[3])
            _normalize_gradient(lanes[5], normed_2, norms[2], g, da, lanes[6], lanes[7])
            _attention_gradient(root, lanes, one_by_one, u, s, sums, terms, NPQ, da, UC, dz)
            _add_affine_gradient(dz, normed, dnorms[0], dnorms[1])
            for j in range(n):
                for i in range(LANES):
                    dx[j, i] = da[j, i] if residual else np.float32(0.0)
            _normalize_gradient(lanes[4], normed, norms[0], dz, dx, lanes[6], lanes[7])
        for i in range(min(LANES, n_rows - first)):
            row = rows[first + i]
            reaches[row] = reach[i]
            if not reach[i] > largest:
                for j in range(n):
                    dh[row, j] = dx[j, i]
