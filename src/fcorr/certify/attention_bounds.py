r"""Attention on boxes of rows.

With one number per feature the attention output is one increasing function of the query:
``a_i = g(z_i/√p)`` with ``g(τ) = E_τ[z]``, the mean of z under weights ``e^{τ z_j}/Σ_k e^{τ z_k}``.
Its slope is the variance under the same weights, ``g'(τ) = Var_τ(z)``. So bounds on Var_τ over the
tilts τ that occur say everything: ``g(τ) − g(0) = ∫ Var``.

A change δz of all features changes the output by

    δa_i = E_i[δz] + (δz_i · Var_i(z) + z_i · Cov_i(z, δz))/√p,      (i stands for τ = z_i/√p)
    E_i[δz] = E_0[δz] + ∫_0^{z_i/√p} Cov_τ(z, δz) dτ.

E_0[δz] is the same for all features, and the LayerNorm that follows takes it away. What is left is
of the order of the change of one feature in p, as is a itself, which the LayerNorm scales up again.

The range of tilts is cut into cells, and on each of them the variance, the mean and the sum of the
weights are bounded (:mod:`fcorr.certify.two_points`).
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from fcorr.certify.intervals import Span
from fcorr.certify.layer_norm import Sway
from fcorr.certify.rows import AffineRow, NormedRow, hull, mean_range, variance_range
from fcorr.certify.two_points import Shape, extreme_exps, mean_exp, tilted_mean

_N_TILTS = 12  # cells on either side of 0


class Tilts(NamedTuple):
    """What the attention does at the tilts of each cell, the cells from left to right.

    All of it is about ``y = z − mean z``.
    """

    edges_KT: Tensor
    """One more than there are cells."""
    variance_KT: Span
    """Variance of y under the weights."""
    mean_exp_KT: Span
    """Mean of e^{τy} over the features."""
    g_KT: Span
    """Mean of y under the weights."""
    shape: Shape
    mean_K: Span
    """Mean of z over the features."""


def tilt_bounds(row: NormedRow, weight_F: Tensor, bias_F: Tensor) -> Tilts:
    r"""Bound what the attention weights do over all tilts that occur.

    Means of y under the weights come from :mod:`fcorr.certify.two_points`. The variance under them
    is at most ``(L − g)(g + m)``, for numbers between −m and L with mean g (Bhatia and Davis), and
    between the smallest and the largest weight times that under equal weights. Where each feature's
    y is known well, sums over the features are better than either.
    """
    form = AffineRow(
        weight_F[:, None].expand_as(row.x_KFP.low),
        Span(*[bias_F[:, None].expand_as(row.x_KFP.low)] * 2),
    )
    z_KFP = form.values(row)
    z_KF = hull(z_KFP)
    ends_K = Span(
        torch.maximum(z_KF.low.amin(1), row.smallest_K.low),
        torch.minimum(z_KF.high.amax(1), row.largest_K.high),
    )
    mean_K = mean_range(form, row)
    variance_K = variance_range(form, row, z_KFP)
    shape = Shape(
        Span(_wide(variance_K.low), _wide(variance_K.high).clamp(min=1e-12)),
        _wide(ends_K.low - mean_K.high).clamp(max=-1e-6),
        _wide(ends_K.high - mean_K.low).clamp(min=1e-6),
    )
    steps = torch.linspace(0, 1, _N_TILTS + 1, dtype=torch.float64) / math.sqrt(len(weight_F))
    edges_KT = torch.cat(
        [
            -(-ends_K.low).clamp(min=1e-9)[:, None] * steps.flip(0)[:-1],
            ends_K.high.clamp(min=1e-9)[:, None] * steps,
        ],
        1,
    )
    tilt_K1T = Span(edges_KT[:, None, :-1], edges_KT[:, None, 1:])
    y_KF1 = Span(
        (z_KF.low - mean_K.high[:, None])[:, :, None], (z_KF.high - mean_K.low[:, None])[:, :, None]
    )
    exps_KFT = extreme_exps(shape._replace(smallest=y_KF1.low, largest=y_KF1.high), tilt_K1T)
    mean_exp_KT = _both(_squeezed(mean_exp(shape, tilt_K1T)), _mean(exps_KFT))
    g_KT = _squeezed(tilted_mean(shape, tilt_K1T))
    # The mean of y − c under the weights, feature by feature; c is near where it will be.
    guess_K1T = g_KT.middle[:, None]
    shifted_KFT = Span(y_KF1.low - guess_K1T, y_KF1.high - guess_K1T)
    g_KT = _both(
        g_KT, _mean(shifted_KFT.times(exps_KFT)).over(mean_exp_KT).shifted(guess_K1T[:, 0])
    )
    return Tilts(
        edges_KT,
        _tilted_variance(shape, tilt_K1T, y_KF1, exps_KFT, mean_exp_KT, g_KT),
        mean_exp_KT,
        g_KT,
        shape,
        mean_K,
    )


def _tilted_variance(
    shape: Shape, tilt_K1T: Span, y_KF1: Span, exps_KFT: Span, mean_exp_KT: Span, g_KT: Span
) -> Span:
    """Range of the variance of y under the weights."""
    exps_KT = _squeezed(extreme_exps(shape, tilt_K1T))
    largest, smallest, low, high = (
        numbers[:, :, 0]
        for numbers in (shape.largest, shape.smallest, shape.variance.low, shape.variance.high)
    )
    worst_g = torch.minimum(torch.maximum((largest + smallest) / 2, g_KT.low), g_KT.high)
    at = g_KT.middle[:, None]
    near_KFT = torch.maximum(y_KF1.low - g_KT.high[:, None], g_KT.low[:, None] - y_KF1.high)
    far_KFT = torch.maximum(y_KF1.high - at, at - y_KF1.low)
    highs = (
        (largest - worst_g) * (worst_g - smallest),
        high * exps_KT.high / mean_exp_KT.low,
        (far_KFT.square() * exps_KFT.high).mean(1) / mean_exp_KT.low,
    )
    lows = (
        low * exps_KT.low / mean_exp_KT.high,
        (near_KFT.clamp(min=0).square() * exps_KFT.low).mean(1) / mean_exp_KT.high,
    )
    high_KT = torch.stack(highs).amin(0)
    return Span(torch.minimum(torch.stack(lows).amax(0), high_KT), high_KT)


def _mean(values_KFT: Span) -> Span:
    return Span(values_KFT.low.mean(1), values_KFT.high.mean(1))


def _squeezed(values_K1T: Span) -> Span:
    return Span(values_K1T.low[:, 0], values_K1T.high[:, 0])


def _wide(values_K: Tensor) -> Tensor:
    return values_K[:, None, None]


def attended_values(tilts: Tilts, row: NormedRow, weight_F: Tensor, bias_F: Tensor) -> AffineRow:
    """Attention output less g(0), as a function of the normed row."""
    root = math.sqrt(weight_F.shape[0])
    weight = weight_F[:, None] / root
    middle_KFP = row.x_KFP.middle
    tilt_KFP = row.x_KFP.scaled(weight).shifted(bias_F[:, None] / root)
    variance_KFP = _over_cells(tilts, tilt_KFP)
    slope_KFP = weight * variance_KFP.middle
    tilt_middle_KFP = weight * middle_KFP + bias_F[:, None] / root
    at_middle = _both(
        _integrate(tilts, tilt_middle_KFP),
        tilted_mean(tilts.shape, Span(tilt_middle_KFP, tilt_middle_KFP)),
    )
    slack_KFP = weight.abs() * variance_KFP.radius * row.x_KFP.radius
    offset_KFP = slope_KFP * middle_KFP
    return AffineRow(
        slope_KFP,
        Span(at_middle.low - offset_KFP - slack_KFP, at_middle.high - offset_KFP + slack_KFP),
    )


def attended_sway(
    tilts: Tilts, row: NormedRow, weight_F: Tensor, bias_F: Tensor, sway: Sway, moving: int
) -> Sway:
    r"""Bound the change of the attention output, a common change left out.

    With A the weights under tilt τ, D the change of z_σ and ρ that of the others,

        |Cov_τ(z, δz)| ≤ A_σ |z_σ − g| |D| + √(Var_τ · Σ_j A_j ρ_j²),

    the second by Cauchy and Schwarz, with ``A_j ≤ e^{τ y_j}/(p · mean e^{τ y})``.
    """
    p = weight_F.shape[0]
    root = math.sqrt(p)
    z_KFP = row.x_KFP.scaled(weight_F[:, None]).shifted(bias_F[:, None])
    mean_K11 = Span(_wide(tilts.mean_K.low), _wide(tilts.mean_K.high))
    y_KF = hull(Span(z_KFP.low - mean_K11.high, z_KFP.high - mean_K11.low))
    own_y_K = Span(y_KF.low[:, moving], y_KF.high[:, moving])
    size_K = sway.own_K.magnitude
    covariances = []
    for k in range(2 * _N_TILTS):
        edges = (tilts.edges_KT[:, k, None], tilts.edges_KT[:, k + 1, None])
        exponent_KF = torch.stack([e * y for e in edges for y in y_KF]).amax(0)
        share_KF = (exponent_KF.exp() / (p * tilts.mean_exp_KT.low[:, k, None])).clamp(max=1)
        g_K = Span(tilts.g_KT.low[:, k], tilts.g_KT.high[:, k])
        away_K = torch.maximum(own_y_K.high - g_K.low, g_K.high - own_y_K.low)
        noise_K = torch.minimum(
            (share_KF * sway.others_KF.square()).sum(1),
            share_KF.amax(1) * sway.norm_K.square(),
        )
        deviation_K = tilts.variance_KT.high[:, k].sqrt()
        own_share_K = share_KF[:, moving]
        apart_K = own_share_K * away_K * size_K + deviation_K * noise_K.sqrt()
        together_K = deviation_K * (own_share_K * size_K.square() + noise_K).sqrt()
        covariances.append(torch.minimum(apart_K, together_K))
    covariance_KT = torch.stack(covariances, 1)
    # The integral from 0 passes all cells between: an average of at most their largest.
    right_KT = covariance_KT[:, _N_TILTS:].cummax(1).values
    left_KT = covariance_KT[:, :_N_TILTS].flip(1).cummax(1).values.flip(1)
    both_KT = covariance_KT + torch.cat([left_KT, right_KT], 1)

    tilt_KFP = z_KFP.scaled(torch.tensor(1 / root, dtype=z_KFP.low.dtype))
    variance_KFP = _over_cells(tilts, tilt_KFP)
    both_KFP = _over_cells(tilts._replace(variance_KT=Span(both_KT, both_KT)), tilt_KFP).high
    variance_KF = hull(variance_KFP)
    mixed_KF = (both_KFP * tilt_KFP.magnitude).amax(2)
    own_K = sway.own_K.times(
        Span(variance_KF.low[:, moving] / root, variance_KF.high[:, moving] / root)
    )
    own_K = Span(own_K.low - mixed_KF[:, moving], own_K.high + mixed_KF[:, moving])
    others_KF = mixed_KF + sway.others_KF * variance_KF.high / root
    others_KF[:, moving] = 0
    z_norm_K = torch.minimum(
        hull(z_KFP).magnitude.norm(dim=1),
        weight_F.abs().max() * (p * row.square_K.high).sqrt() + bias_F.norm(),
    )
    norm_K = both_KT.amax(1) * z_norm_K / root + sway.norm_K * variance_KF.high.amax(1) / root
    total_K = torch.hypot(own_K.magnitude, norm_K)
    return Sway(own_K, others_KF, norm_K, total_K).tightened()


def _over_cells(tilts: Tilts, tilt_KFP: Span) -> Span:
    """Range of the cells' variances over the tilts of each piece."""
    low = torch.full_like(tilt_KFP.low, torch.inf)
    high = torch.full_like(tilt_KFP.low, -torch.inf)
    edges = tilts.edges_KT[:, :, None, None]
    # The outer edges are the largest tilts themselves: rounding must not push a piece outside.
    slack = 1e-9 * (1 + edges.abs().amax(1))
    for k in range(2 * _N_TILTS):
        met = (tilt_KFP.low <= edges[:, k + 1] + slack) & (tilt_KFP.high >= edges[:, k] - slack)
        variance_low = tilts.variance_KT.low[:, k, None, None]
        variance_high = tilts.variance_KT.high[:, k, None, None]
        low = torch.where(met, torch.minimum(low, variance_low), low)
        high = torch.where(met, torch.maximum(high, variance_high), high)
    return Span(low, high)


def _integrate(tilts: Tilts, tilt_KFP: Tensor) -> Span:
    """Range of ``∫_0^τ Var`` at given tilts."""
    low, high = torch.zeros_like(tilt_KFP), torch.zeros_like(tilt_KFP)
    edges = tilts.edges_KT[:, :, None, None]
    for k in range(2 * _N_TILTS):
        inside = torch.minimum(torch.maximum(tilt_KFP, edges[:, k]), edges[:, k + 1])
        variance_low = tilts.variance_KT.low[:, k, None, None]
        variance_high = tilts.variance_KT.high[:, k, None, None]
        if k >= _N_TILTS:
            length = inside - edges[:, k]
            low, high = low + length * variance_low, high + length * variance_high
        else:
            length = edges[:, k + 1] - inside
            low, high = low - length * variance_high, high - length * variance_low
    return Span(low, high)


def _both(a: Span, b: Span) -> Span:
    """Intersection of two ranges of the same number."""
    low = torch.maximum(a.low, b.low)
    return Span(low, torch.maximum(low, torch.minimum(a.high, b.high)))
