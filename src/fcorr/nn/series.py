r"""Attention between one-dimensional features in linear time, by a power series.

NOTE[DIFF]: the paper computes the p × p matrix; this gives the same output within a stated bound.

With one number per feature the attention output is one smooth function per row, evaluated at the
p features. Write z̄ for the row's mean, y = z − z̄ and s = y/√p. The softmax does not change when all
keys are shifted by z̄, so with weights ω_j = exp(z̄ y_j/√p)

    h_i = z̄ + P(s_i)/N(s_i),   N(s) = Σ_j ω_j e^{s y_j},   P = N'.

The exponential is expanded, and the sum over keys moves into moments of the row:

    N(s) = Σ_n s^n/n! · M_n,   M_n = Σ_j ω_j y_j^n.

K moments cost O(p·K), and so do p evaluations: no p × p matrix and no exponential but the weights.

Error bound
-----------
Let m = max|y| and X = m²/√p, so that |s_i y_j| ≤ X. By Lagrange's remainder the K-term series of
e^x is off by at most e^x X^K/K! for x ≥ 0 and X^K/K! for x < 0, hence N by at most (N + Ω) X^K/K!
with Ω = Σ ω_j. As the y_j sum to 0, Jensen gives N ≥ p, and Ω ≤ p·exp(|z̄| m/√p). So N is off by the
relative amount

    δ ≤ (1 + exp(|z̄| m/√p)) · X^K/K!,

P by at most m N δ, h by at most 2 m δ/(1 − δ). :func:`terms_needed` inverts this.

Rounding comes on top: the terms of the series alternate for negative exponents, and the weights ω
add theirs. It grows with the largest exponent, (m + |z̄|)·m/√p; :data:`LARGEST_EXPONENT` keeps it
near 2e-6 in float32, by search and not by proof (``tests/nn/test_series.py``).

The Chebyshev interpolation of P/N needs more terms (it converges geometrically, by the distance of
the nearest zero of N; the series converges faster than any geometric one) and K·p exponentials.
"""

import math

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

LARGEST_EXPONENT = 3.0
"""Rows with a larger (m + |z̄|)·m/√p are left to the softmax, for the sake of rounding."""

TERMS = (8, 10, 12, 14, 16, 18, 20, 24)
_TERMS_DOUBLE = (16, 20, 24, 28, 32, 36)


def series_size(z_BF: Tensor, root: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return each row's X, the factor of X^K/K! in the bound on h, and the largest exponent."""
    mean_B = z_BF.mean(1)
    largest_B = (z_BF - mean_B.unsqueeze(1)).abs().amax(1)
    X_B = largest_B.square() / root
    factor_B = 2 * largest_B * (1 + torch.exp(mean_B.abs() * largest_B / root))
    exponent_B = X_B + mean_B.abs() * largest_B / root
    return X_B, factor_B, exponent_B


def terms_needed(z_BF: Tensor, root: float) -> Tensor:
    """Return the terms each row needs for h to be within tolerance; 0: use the softmax.

    ``root`` is what scores are divided by, √p. The tolerance is 1e-6 in float32, a fifth of what
    the tests allow, and 1e-12 in float64.
    """
    double = z_BF.dtype == torch.float64
    tolerance = 1e-12 if double else 1e-6
    X_B, factor_B, exponent_B = series_size(z_BF, root)
    needed_B = torch.zeros_like(X_B, dtype=torch.long)
    for terms in reversed(_TERMS_DOUBLE if double else TERMS):
        # In logarithms: X^K alone would overflow for an outlier.
        log_error = terms * X_B.log() - math.lgamma(terms + 1) + factor_B.log()
        enough = (log_error <= math.log(tolerance)) & (exponent_B <= LARGEST_EXPONENT)
        needed_B = torch.where(enough, terms, needed_B)
    return needed_B


class SeriesAttention(torch.autograd.Function):
    """``softmax(z zᵀ/root) z`` and ``log N`` by the series, with the gradient in closed form.

    The gradient is that of the same series. With r_i = g_i/N_i, μ_i = P_i/N_i and g' the gradient
    by log N it needs the moments A_n = Σ_i r_i s_i^n/n! and B_n = Σ_i (r_i μ_i − g'_i/N_i) s_i^n/n!
    alone: the loss depends on M_n through A_{n−1} − B_n.

    **Shape**: ``(B, F)`` → ``(B, F)``, ``(B, F)``.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, z_BF: Tensor, n_terms: int, root: float) -> tuple[Tensor, Tensor]:
        """Compute both with ``n_terms`` terms."""
        mean_B1, powers_BKF, npq_B3F, factors_K = _evaluate(z_BF, n_terms, root)
        mu_BF = npq_B3F[:, 1] / npq_B3F[:, 0]
        ctx.save_for_backward(z_BF, mean_B1, powers_BKF, npq_B3F, mu_BF, factors_K)
        ctx.root = root  # type: ignore[attr-defined]
        ctx.set_materialize_grads(False)
        return mean_B1 + mu_BF, (npq_B3F[:, 0] / powers_BKF[:, 0]).log()

    @staticmethod
    @once_differentiable
    def backward(
        ctx: FunctionCtx, grad_h_BF: Tensor | None, grad_log_BF: Tensor | None
    ) -> tuple[Tensor, None, None]:
        """Propagate the gradient, by moments as well."""
        z_BF, mean_B1, powers_BKF, npq_B3F, mu_BF, factors_K = ctx.saved_tensors  # type: ignore[attr-defined]
        root = ctx.root  # type: ignore[attr-defined]
        n_terms, n_features = len(factors_K), z_BF.shape[1]
        grad_BF = torch.zeros_like(z_BF) if grad_h_BF is None else grad_h_BF
        variance_BF = npq_B3F[:, 2] / npq_B3F[:, 0] - mu_BF.square()
        by_query_BF = grad_BF * variance_BF
        r_BF = grad_BF / npq_B3F[:, 0]  # the weight of the powers and that of N cancel
        from_n_BF = r_BF * mu_BF
        if grad_log_BF is not None:
            by_query_BF = by_query_BF + grad_log_BF * mu_BF
            from_n_BF = from_n_BF - grad_log_BF / npq_B3F[:, 0]
        ab_BK2 = torch.bmm(powers_BKF[:, :n_terms], torch.stack([r_BF, from_n_BF], dim=2))
        ab_BK2 *= factors_K.unsqueeze(1)
        # Row 0: coefficients of dL/dM_n, n = 0…K. Row 1: of their derivative with respect to y.
        coefficients_B2K = grad_BF.new_zeros(len(grad_BF), 2, n_terms + 1)
        coefficients_B2K[:, 0, 1:] += ab_BK2[:, :, 0]
        coefficients_B2K[:, 0, :n_terms] -= ab_BK2[:, :, 1]
        orders = torch.arange(1, n_terms + 1, dtype=grad_BF.dtype, device=grad_BF.device)
        coefficients_B2K[:, 1, :n_terms] = coefficients_B2K[:, 0, 1:] * orders
        sums_B2F = torch.bmm(coefficients_B2K, powers_BKF[:, : n_terms + 1])
        dy_BF = sums_B2F[:, 1] + (mean_B1 * sums_B2F[:, 0] + by_query_BF) / root
        by_mean_B1 = (sums_B2F[:, 0] * (z_BF - mean_B1)).sum(1, keepdim=True) / root
        # z reaches h through y = z − z̄, through z̄ in the weights and through the z̄ that is added.
        through_mean = (grad_BF - dy_BF).sum(1, keepdim=True) + by_mean_B1
        return dy_BF + through_mean / n_features, None, None


def _evaluate(z_BF: Tensor, n_terms: int, root: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return z̄, the powers ω y^n, N and its two derivatives times ω, and 1/(n! p^{n/2})."""
    n_rows, n_features = z_BF.shape
    mean_B1 = z_BF.mean(1, keepdim=True)
    y_BF = z_BF - mean_B1
    powers_BKF = z_BF.new_empty(n_rows, n_terms + 2, n_features)
    torch.exp(y_BF * (mean_B1 / root), out=powers_BKF[:, 0])
    for n in range(1, n_terms + 2):
        torch.mul(powers_BKF[:, n - 1], y_BF, out=powers_BKF[:, n])
    # torch's sum adds in pairs: its rounding does not grow with p as that of a product would.
    moments_BK = powers_BKF.sum(2)
    factors_K = z_BF.new_tensor([root**-n / math.factorial(n) for n in range(n_terms)])
    coefficients_B3K = torch.stack(
        [moments_BK[:, d : d + n_terms] * factors_K for d in range(3)], dim=1
    )
    return mean_B1, powers_BKF, torch.bmm(coefficients_B3K, powers_BKF[:, :n_terms]), factors_K
