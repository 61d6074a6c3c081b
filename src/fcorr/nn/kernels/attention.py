r"""Attention of one row of features, in double precision: values and gradients.

The same series as :mod:`fcorr.nn.series`, and its bound. Double precision leaves rounding no part
in the error, and a row is served whatever it holds: the few features that lie too far out for the
series are set apart and summed one by one, as keys and as queries. With unit variance there are at
most √p/4 of them, by Chebyshev's inequality, so a row costs O(p·(K + √p/4)) at the very worst.

Notation: y = z − z̄, s = y/√p, e_ij = exp(z_i y_j/√p), N_i = Σ_j e_ij, and P, Q the same sums with
y_j and y_j² in them. μ = P/N is the attention output less z̄, and Q/N − μ² its slope by the query.
"""

import math

import numpy as np
from numpy.typing import NDArray

from fcorr.nn.kernels.arithmetic import compiled, exp

MAX_TERMS = 40
_FEW_FEATURES = 16  # up to here p² exponentials cost less than a series
_LARGEST_EXPONENT = 4.0  # features beyond it are set apart: they are few, and terms are saved
_TOO_LARGE = 600.0  # an exponent that double precision cannot hold without a shift
_TOLERANCE = 1e-7
_FACTORIAL = tuple(1 / math.factorial(n) for n in range(MAX_TERMS + 1))

Floats = NDArray[np.float64]


@compiled
def terms_needed(m: float, z_mean: float, root: float) -> int:
    """Return the number of terms that keep the error of μ below 1e-7; m bounds |y|."""
    x = m * m / root
    error = 2 * m * (1 + math.exp(abs(z_mean) * m / root))
    n = 0
    while error > _TOLERANCE or n < 4:
        n += 1
        error *= x / n
    return n


@compiled
def set_apart(
    y: Floats, z_mean: float, root: float, outlier: NDArray[np.int64]
) -> tuple[int, float]:
    """List the features too far out for the series; return their number and the others' max|y|.

    −1 instead of a number: the row is left to the plain softmax.
    """
    n = len(y)
    if n <= _FEW_FEATURES:
        return -1, 0.0
    largest = 0.0
    for j in range(n):
        largest = max(largest, abs(y[j]))
    shift = abs(z_mean)
    if not (largest + shift) * largest / root <= _TOO_LARGE:
        return -1, 0.0
    limit = (math.sqrt(shift * shift + 4 * _LARGEST_EXPONENT * root) - shift) / 2
    if largest <= limit:
        return 0, largest
    count = 0
    largest = 0.0
    for j in range(n):
        size = abs(y[j])
        if size > limit:
            outlier[count] = j
            count += 1
        else:
            largest = max(largest, size)
    if count * 4 > n:
        return -1, 0.0
    return count, largest


@compiled
def moments(weight: Floats, x: Floats, n_terms: int, power: Floats, moment: Floats) -> None:
    """Compute ``moment[n] = Σ_j weight_j x_j^n`` for n < n_terms; ``power`` is scratch."""
    for j in range(len(x)):
        power[j] = weight[j]
    for n in range(n_terms):
        total = 0.0
        for j in range(len(x)):
            total += power[j]
            power[j] *= x[j]
        moment[n] = total


@compiled
def partition(
    z: Floats,
    y: Floats,
    z_mean: float,
    root: float,
    slopes: bool,
    outlier: NDArray[np.int64],
    work: Floats,
    N: Floats,
    P: Floats,
    Q: Floats,
    shift: Floats,
) -> tuple[int, int]:
    """Compute N, P and, with ``slopes``, Q of every feature, all three times e^{−shift}.

    Returns the number of features set apart (−1: plain softmax) and the number of terms. ``work``
    is ``(4, p)``: it keeps y and the weights of the features in the series, for the gradient.
    """
    n = len(z)
    n_apart, largest = set_apart(y, z_mean, root, outlier)
    if n_apart < 0:
        for i in range(n):
            N[i], P[i], Q[i], shift[i] = _query(z[i] / root, y)
        return -1, 0
    n_terms = terms_needed(largest, z_mean, root)
    inner, weight, s, power = work[0], work[1], work[2], work[3]
    tilt = z_mean / root
    for j in range(n):
        inner[j] = y[j]
        weight[j] = exp(tilt * y[j])
    for k in range(n_apart):
        inner[outlier[k]] = 0.0
        weight[outlier[k]] = 0.0
    moment = np.empty(MAX_TERMS + 3)
    moments(weight, inner, n_terms + 2, power, moment)
    last = n_terms - 1
    a0, a1, a2 = moment[last], moment[last + 1], moment[last + 2]
    f = _FACTORIAL[last]
    for i in range(n):
        s[i] = inner[i] / root
        shift[i] = 0.0
        N[i] = a0 * f
        P[i] = a1 * f
    if slopes:
        for i in range(n):
            Q[i] = a2 * f
    for k in range(n_terms - 2, -1, -1):
        f = _FACTORIAL[k]
        a0, a1, a2 = moment[k] * f, moment[k + 1] * f, moment[k + 2] * f
        if slopes:
            for i in range(n):
                N[i] = N[i] * s[i] + a0
                P[i] = P[i] * s[i] + a1
                Q[i] = Q[i] * s[i] + a2
        else:
            for i in range(n):
                N[i] = N[i] * s[i] + a0
                P[i] = P[i] * s[i] + a1
    for k in range(n_apart):
        _add_key(z, y[outlier[k]] / root, y[outlier[k]], N, P, Q)
    for k in range(n_apart):
        i = outlier[k]
        N[i], P[i], Q[i], _ = _query(z[i] / root, y)
    return n_apart, n_terms


@compiled
def _add_key(z: Floats, t: float, y_key: float, N: Floats, P: Floats, Q: Floats) -> None:
    for i in range(len(z)):
        e = exp(z[i] * t)
        N[i] += e
        P[i] += e * y_key
        Q[i] += e * y_key * y_key


@compiled
def _query(t: float, y: Floats) -> tuple[float, float, float, float]:
    """Return N, P, Q of one query t = z_i/√p by plain summation, and the shift it took."""
    largest = -np.inf
    for j in range(len(y)):
        largest = max(largest, t * y[j])
    shift = largest if largest > _TOO_LARGE else 0.0
    total, first, second = 0.0, 0.0, 0.0
    for j in range(len(y)):
        e = exp(t * y[j] - shift)
        total += e
        first += e * y[j]
        second += e * y[j] * y[j]
    return total, first, second, shift


@compiled
def attention_column(z: Floats, t_key: float, N: Floats, shift: Floats, out: Floats) -> None:
    """Compute a column of the attention matrix; t_key is its feature's y/√p."""
    for i in range(len(z)):
        out[i] = exp(z[i] * t_key - shift[i]) / N[i]


@compiled
def attention_gradient(
    z: Floats,
    y: Floats,
    root: float,
    n_apart: int,
    n_terms: int,
    outlier: NDArray[np.int64],
    work: Floats,
    N: Floats,
    P: Floats,
    Q: Floats,
    shift: Floats,
    g: Floats,
    g_log: Floats,
    dz: Floats,
) -> None:
    """Compute ``dz``, the gradient by z of ``Σ_i (g_i h_i + g_log_i log N_i)``.

    As a key, feature j receives ``Σ_i e_ij (α_i + β_i y_j)`` with ``r = g/N``,
    ``β = r z/√p`` and ``α = r − μ β + g_log z/(√p N)``: again sums of exponentials, so again a
    series. N, P and Q are overwritten; ``g_log`` may be empty.
    """
    n = len(z)
    g_total = 0.0
    for i in range(n):
        scale = N[i]
        mu = P[i] / scale
        r = g[i] / scale
        beta = r * z[i] / root
        dz[i] = g[i] * (Q[i] / scale - mu * mu) / root
        N[i] = r - mu * beta
        P[i] = beta
        g_total += g[i]
        if len(g_log):
            N[i] += g_log[i] / scale * z[i] / root
            dz[i] += g_log[i] * mu / root
    alpha, beta_, key = N, P, Q
    if n_apart < 0:
        _keys_exact(z, y, root, shift, alpha, beta_, key)
    else:
        inner, weight, s, power = work[0], work[1], work[2], work[3]
        for j in range(n):
            key[j] = 0.0
        for k in range(n_apart):  # set-apart features as queries and as keys
            i = outlier[k]
            _add_query(z[i] / root, y, alpha[i], beta_[i], key)
        for k in range(n_apart):
            j = outlier[k]
            key[j] = _key(z, y[j] / root, y[j], alpha, beta_)
        for k in range(n_apart):
            alpha[outlier[k]] = 0.0
            beta_[outlier[k]] = 0.0
        a = np.empty(MAX_TERMS + 3)
        b = np.empty(MAX_TERMS + 3)
        moments(alpha, s, n_terms, power, a)
        moments(beta_, s, n_terms, power, b)
        # Σ_n s^n y^n/n!, times α + β y: coefficient n of the polynomial in y.
        for j in range(n):
            power[j] = b[n_terms - 1] * _FACTORIAL[n_terms - 1]
        for k in range(n_terms - 1, -1, -1):
            c = a[k] * _FACTORIAL[k]
            if k:
                c += b[k - 1] * _FACTORIAL[k - 1]
            for j in range(n):
                power[j] = power[j] * inner[j] + c
        for j in range(n):
            key[j] += power[j] * weight[j]
    total = 0.0
    for j in range(n):
        total += key[j]
    # z reaches h through y = z − z̄ and through the z̄ that is added.
    through_mean = (g_total - total) / n
    for j in range(n):
        dz[j] += key[j] + through_mean


@compiled
def _add_query(t: float, y: Floats, alpha: float, beta: float, key: Floats) -> None:
    for j in range(len(y)):
        key[j] += exp(t * y[j]) * (alpha + beta * y[j])


@compiled
def _key(z: Floats, t: float, y_key: float, alpha: Floats, beta: Floats) -> float:
    total = 0.0
    for i in range(len(z)):
        total += exp(z[i] * t) * (alpha[i] + beta[i] * y_key)
    return total


@compiled
def _keys_exact(
    z: Floats,
    y: Floats,
    root: float,
    shift: Floats,
    alpha: Floats,
    beta: Floats,
    key: Floats,
) -> None:
    for j in range(len(y)):
        key[j] = 0.0
    for i in range(len(z)):
        t = z[i] / root
        for j in range(len(y)):
            key[j] += exp(t * y[j] - shift[i]) * (alpha[i] + beta[i] * y[j])


@compiled
def center(z: Floats, y: Floats) -> float:
    """Subtract the mean; return it."""
    total = 0.0
    for j in range(len(z)):
        total += z[j]
    mean = total / len(z)
    for j in range(len(z)):
        y[j] = z[j] - mean
    return mean


@compiled
def attention_forward(z_BF, root, h_BF, log_n_BF):
    """Compute the attention output of each row, and log N; ``(B, F)`` all."""
    n = z_BF.shape[1]
    z, y, N, P = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    unused, shift, work = np.empty(n), np.empty(n), np.empty((4, n))
    outlier = np.empty(n, dtype=np.int64)
    for b in range(len(z_BF)):
        for j in range(n):
            z[j] = z_BF[b, j]
        z_mean = center(z, y)
        partition(z, y, z_mean, root, False, outlier, work, N, P, unused, shift)
        for j in range(n):
            h_BF[b, j] = z_mean + P[j] / N[j]
        for j in range(n):
            log_n_BF[b, j] = math.log(N[j]) + shift[j]


@compiled
def attention_backward(z_BF, root, grad_h_BF, grad_log_BF, dz_BF):
    """Compute the gradient by z; ``grad_log_BF`` may have no columns."""
    n = z_BF.shape[1]
    z, y, N, P, Q = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    shift, g, dz, work = np.empty(n), np.empty(n), np.empty(n), np.empty((4, n))
    g_log = np.empty(grad_log_BF.shape[1])
    outlier = np.empty(n, dtype=np.int64)
    for b in range(len(z_BF)):
        for j in range(n):
            z[j] = z_BF[b, j]
            g[j] = grad_h_BF[b, j]
        for j in range(len(g_log)):
            g_log[j] = grad_log_BF[b, j]
        z_mean = center(z, y)
        n_apart, n_terms = partition(z, y, z_mean, root, True, outlier, work, N, P, Q, shift)
        attention_gradient(
            z, y, root, n_apart, n_terms, outlier, work, N, P, Q, shift, g, g_log, dz
        )
        for j in range(n):
            dz_BF[b, j] = dz[j]
