r"""Attention between one-dimensional features in linear time, by a power series, row by row.

What the paper's form of CAR is computed with: attention over other keys than the model's own, with
what each softmax divides by. The library's own series is in :mod:`fcorr.nn.kernels.encoder`.

With one number per feature the attention output is one smooth function per row, evaluated at the
p features. Write z̄ for the row's mean, y = z − z̄ and s = y/√p. The softmax does not change when all
keys are shifted by z̄, so with weights ω_j = exp(z̄ y_j/√p)

    h_i = z̄ + P(s_i)/N(s_i),   N(s) = Σ_j ω_j e^{s y_j},   P = N'.

The exponential is expanded, and the sum over keys moves into moments of the row:

    N(s) = Σ_n s^n/n! · M_n,   M_n = Σ_j ω_j y_j^n.

K moments cost O(p·K), and so do p evaluations: no p × p matrix and no exponential but the weights.
The gradient is again a sum of exponentials, so again a series (:func:`attention_gradient`).

Error bound
-----------
Let m = max|y| and X = m²/√p, so that |s_i y_j| ≤ X. By Lagrange's remainder the K-term series of
e^x is off by at most e^x X^K/K! for x ≥ 0 and X^K/K! for x < 0, hence N by at most (N + Ω) X^K/K!
with Ω = Σ ω_j. As the y_j sum to 0, Jensen gives N ≥ p, and Ω ≤ p·exp(|z̄| m/√p). So N is off by the
relative amount

    δ ≤ (1 + exp(|z̄| m/√p)) · X^K/K!,

P by at most m N δ, h by at most 2 m δ/(1 − δ). :func:`terms_needed` inverts this. Double precision
leaves rounding no part in the error.

Features too far out for the series are set apart and summed one by one, as keys and as queries, so
that a row is served whatever it holds. With unit variance there are at most √p/5 of them, by
Chebyshev's inequality, so a row costs O(p·(K + √p/5)) at the very worst.

The Chebyshev interpolation of P/N needs more terms (it converges geometrically, by the distance of
the nearest zero of N; the series converges faster than any geometric one) and K·p exponentials.

Notation in the code: e_ij = exp(z_i y_j/√p), N_i = Σ_j e_ij, and P, Q the same sums with y_j and
y_j² in them. μ = P/N is the attention output less z̄, and Q/N − μ² its slope by the query.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fcorr.nn.kernels.arithmetic import Floats, exp

# Compiled as the library's kernels are, but not kept: their folder knows their own sources alone.
compiled = njit(fastmath={"reassoc", "contract", "arcp", "nsz"}, error_model="numpy", nogil=True)
# For functions that are never asked about NaN: a largest number is found in lanes then.
compiled_without_nan = njit(fastmath={"nnan", "reassoc", "nsz"}, error_model="numpy", nogil=True)

MAX_TERMS = 40
_FEW_FEATURES = 16  # up to here p² exponentials cost less than a series
_LARGEST_EXPONENT = 5.0  # features beyond it are set apart: they are few, and terms are saved
_TOO_LARGE = 600.0  # an exponent that double precision cannot hold without a shift
_TOLERANCE = 5e-7
_FACTORIAL = tuple(1 / math.factorial(n) for n in range(MAX_TERMS))


@compiled
def terms_needed(m: float, z_mean: float, root: float) -> int:
    """Return the number of terms that keep the error of μ below 5e-7; m bounds |y|.

    It is a multiple of four: series are evaluated four terms at a time. More than MAX_TERMS means
    that no such number was found.
    """
    x = m * m / root
    error = 2 * m * (1 + math.exp(abs(z_mean) * m / root))
    n = 0
    while (error > _TOLERANCE or n % 4 or n == 0) and n <= MAX_TERMS:
        n += 1
        error *= x / n
    return n


@compiled_without_nan
def largest_size(x: Floats) -> float:
    """Return the largest |x|."""
    largest = 0.0
    for j in range(len(x)):
        largest = max(largest, abs(x[j]))
    return largest


@compiled_without_nan
def largest_product(t: float, x: Floats) -> float:
    """Return the largest t·x."""
    largest = -np.inf
    for j in range(len(x)):
        largest = max(largest, t * x[j])
    return largest


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
    largest = largest_size(y)
    shift = abs(z_mean)
    # A row with NaN has a mean of NaN, and is left to the softmax here.
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
def make_work(n: int) -> Floats:
    """Allocate four rows of scratch, more than 512 bytes apart.

    A loop that stores to one array and adds up another runs in lanes only if the two lie a few
    lanes apart, which it checks as it starts; the order of the sum, and so its last digits, would
    depend on where the allocator put them. Here it does not.
    """
    return np.empty((4, n + 64))


@compiled
def moments(weight: Floats, x: Floats, n_terms: int, power: Floats, moment: Floats) -> None:
    """Compute ``moment[n] = Σ_j weight_j x_j^n`` for n < n_terms, rounded up to a multiple of four.

    ``power`` and ``x`` are two rows of :func:`make_work`. Four moments at a time: the arrays are
    walked through a quarter as often.
    """
    for j in range(len(x)):
        power[j] = weight[j]
    for n in range(0, n_terms, 4):
        m0, m1, m2, m3 = 0.0, 0.0, 0.0, 0.0
        for j in range(len(x)):
            square = x[j] * x[j]
            even = power[j] * square
            m0 += power[j]
            m1 += power[j] * x[j]
            m2 += even
            m3 += even * x[j]
            power[j] = even * square
        moment[n], moment[n + 1], moment[n + 2], moment[n + 3] = m0, m1, m2, m3


@compiled
def polynomial(coefficient: Floats, n_terms: int, x: Floats, out: Floats) -> None:
    """Evaluate ``Σ_n coefficient[n] x^n``, n < n_terms, a multiple of four."""
    for i in range(len(x)):
        out[i] = 0.0
    for n in range(n_terms - 4, -1, -4):
        c0, c1 = coefficient[n], coefficient[n + 1]
        c2, c3 = coefficient[n + 2], coefficient[n + 3]
        for i in range(len(x)):
            out[i] = (((out[i] * x[i] + c3) * x[i] + c2) * x[i] + c1) * x[i] + c0


@compiled
def partition(z, y, z_mean, root, slopes, outlier, work, N, P, Q, shift):
    """Compute N, P and, with ``slopes``, Q of every feature, all three times e^{−shift}.

    Returns the number of features set apart (−1: plain softmax) and the number of terms. ``work``
    comes from :func:`make_work`; it keeps y and the weights of the features in the series, for the
    gradient.
    """
    n = len(z)
    n_apart, largest = set_apart(y, z_mean, root, outlier)
    n_terms = terms_needed(largest, z_mean, root)
    if n_apart < 0 or n_terms > MAX_TERMS:
        for i in range(n):
            N[i], P[i], Q[i], shift[i] = _query(z[i] / root, y)
        return -1, 0
    inner, weight, s, power = work[0][:n], work[1][:n], work[2][:n], work[3][:n]
    tilt = z_mean / root
    for j in range(n):
        inner[j] = y[j]
        weight[j] = exp(tilt * y[j])
    for k in range(n_apart):
        inner[outlier[k]] = 0.0
        weight[outlier[k]] = 0.0
    for i in range(n):
        s[i] = inner[i] / root
        shift[i] = 0.0
    moment = np.empty(MAX_TERMS + 4)
    coefficient = np.empty(MAX_TERMS)
    moments(weight, inner, n_terms + 2, power, moment)
    for order, out in enumerate((N, P, Q)):
        if order < 2 or slopes:
            for k in range(n_terms):
                coefficient[k] = moment[k + order] * _FACTORIAL[k]
            polynomial(coefficient, n_terms, s, out)
    for k in range(n_apart):
        _add_key(z, y[outlier[k]] / root, y[outlier[k]], N, P, Q)
    for k in range(n_apart):
        i = outlier[k]
        N[i], P[i], Q[i], _ = _query(z[i] / root, y)
    return n_apart, n_terms


@compiled
def _add_key(z, t, y_key, N, P, Q):
    for i in range(len(z)):
        e = exp(z[i] * t)
        N[i] += e
        P[i] += e * y_key
        Q[i] += e * y_key * y_key


@compiled
def _query(t: float, y: Floats) -> tuple[float, float, float, float]:
    """Return N, P, Q of one query t = z_i/√p by plain summation, and the shift it took."""
    largest = largest_product(t, y)
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
def attention_gradient(z, y, root, n_apart, n_terms, outlier, work, N, P, Q, shift, g, g_log, dz):
    """Compute ``dz``, the gradient by z of ``Σ_i (g_i h_i + g_log_i log N_i)``.

    As a key, feature j receives ``Σ_i e_ij (α_i + β_i y_j)`` with ``r = g/N``,
    ``β = r z/√p`` and ``α = r − μ β + g_log z/(√p N)``: again sums of exponentials, so again a
    series. N, P and Q are overwritten; ``g_log`` may be empty.
    """
    n = len(z)
    g_total = 0.0
    for i in range(n):
        g_total += g[i]
    for i in range(n):
        scale = N[i]
        mu = P[i] / scale
        r = g[i] / scale
        beta = r * z[i] / root
        dz[i] = g[i] * (Q[i] / scale - mu * mu) / root
        N[i] = r - mu * beta
        P[i] = beta
        if len(g_log):
            N[i] += g_log[i] / scale * z[i] / root
            dz[i] += g_log[i] * mu / root
    alpha, beta_, key = N, P, Q
    for j in range(n):
        key[j] = 0.0
    if n_apart < 0:
        for i in range(n):
            _add_query(z[i] / root, y, shift[i], alpha[i], beta_[i], key)
    else:
        inner, weight, s, power = work[0][:n], work[1][:n], work[2][:n], work[3][:n]
        for k in range(n_apart):  # set-apart features as queries and as keys
            i = outlier[k]
            _add_query(z[i] / root, y, shift[i], alpha[i], beta_[i], key)
        for k in range(n_apart):
            j = outlier[k]
            key[j] = _key(z, y[j] / root, y[j], alpha, beta_)
        for k in range(n_apart):
            alpha[outlier[k]] = 0.0
            beta_[outlier[k]] = 0.0
        a, b = np.empty(MAX_TERMS), np.empty(MAX_TERMS)
        moments(alpha, s, n_terms, power, a)
        moments(beta_, s, n_terms, power, b)
        # Σ_n s^n y^n/n!, times α + β y: the coefficient of y^n.
        coefficient = np.zeros(MAX_TERMS + 4)
        for k in range(n_terms):
            coefficient[k] += a[k] * _FACTORIAL[k]
            coefficient[k + 1] += b[k] * _FACTORIAL[k]
        polynomial(coefficient, n_terms + 4, inner, power)
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
def _add_query(t, y, shift, alpha, beta, key):
    for j in range(len(y)):
        key[j] += exp(t * y[j] - shift) * (alpha + beta * y[j])


@compiled
def _key(z, t, y_key, alpha, beta):
    total = 0.0
    for i in range(len(z)):
        total += exp(z[i] * t) * (alpha[i] + beta[i] * y_key)
    return total


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
