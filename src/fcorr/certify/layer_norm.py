r"""LayerNorm on boxes of rows: what comes out, and how much of a change gets through.

LayerNorm makes ``x = (v − mean v)/s`` of the numbers v, with ``s = √(var v + eps)``, and then
``weight · x + bias``. By its own geometry x has mean 0, a mean square of var/(var + eps) < 1, and
no entry beyond ±√(p − 1). Its Jacobian is

    ∂x/∂v = Q/s,   Q = I − 11ᵀ/p − x xᵀ/p,

symmetric with eigenvalues between 0 and 1: a change shrinks but for the factor 1/s. Where the
features of a row are nearly equal s falls to √eps, and no bound on the change can be good.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from fcorr.certify.intervals import Span
from fcorr.certify.rows import AffineRow, NormedRow, hull, mean_range, variance_range


class Sway(NamedTuple):
    """How a row's numbers change per unit of the moving feature's embedding.

    The change of one feature, ``own``, is kept apart: it is most of the whole. Where a LayerNorm
    follows, a change that all features share is left out: LayerNorm takes it away.

    Attributes
    ----------
    own_K : Span
        Change of the moving feature itself.
    others_KF : Tensor
        Largest absolute change of each other feature; 0 at the moving one.
    norm_K : Tensor
        Largest Euclidean norm of the change of the others.
    total_K : Tensor
        Largest Euclidean norm of the whole change.
    """

    own_K: Span
    others_KF: Tensor
    norm_K: Tensor
    total_K: Tensor

    def weighted(self, weight_F: Tensor, moving: int) -> "Sway":
        """Change after every feature was multiplied by its own weight."""
        others_KF = self.others_KF * weight_F.abs()
        elsewhere_F = weight_F.abs().clone()
        elsewhere_F[moving] = 0
        return Sway(
            self.own_K.scaled(weight_F[moving]),
            others_KF,
            self.norm_K * elsewhere_F.max(),
            self.total_K * weight_F.abs().max(),
        )

    def tightened(self) -> "Sway":
        """Let each bound tighten the others: the entries the norms, and the norms the entries."""
        norm_K = torch.minimum(self.norm_K, self.others_KF.norm(dim=1))
        both_K = torch.hypot(self.own_K.magnitude, norm_K)
        total_K = torch.minimum(self.total_K, both_K)
        norm_K = torch.minimum(norm_K, total_K)
        others_KF = torch.minimum(self.others_KF, norm_K[:, None])
        return Sway(self.own_K.clipped(total_K), others_KF, norm_K, total_K)


def norm_values(
    form: AffineRow,
    row: NormedRow,
    values_KFP: Span,
    eps: float,
    divisor_K: Span,
    known_K: Span | None,
) -> tuple[NormedRow, Span, Span]:
    """Normalise a row: what comes out, the range of s, and the numbers less their mean.

    Parameters
    ----------
    form, values_KFP
        The numbers, as a function of ``row`` and as ranges.
    row : NormedRow
        What they depend on.
    eps : float
        LayerNorm's own.
    divisor_K : Span
        The divisors that the boxes are about. The range that is returned lies within; it is empty
        (its low end above its high end) where a box has no row.
    known_K : Span or None
        Bounds on the variance that are known from elsewhere.
    """
    mean_K = mean_range(form, row)
    variance_K = variance_range(form, row, values_KFP)
    if known_K is not None:
        variance_K = Span(
            torch.maximum(variance_K.low, known_K.low), torch.minimum(variance_K.high, known_K.high)
        )
    s_K = Span(
        torch.maximum((variance_K.low.clamp(min=0) + eps).sqrt(), divisor_K.low),
        torch.minimum((variance_K.high.clamp(min=0) + eps).sqrt(), divisor_K.high),
    )
    square_K = Span(
        (1 - eps / s_K.low.square()).clamp(min=0), (1 - eps / s_K.high.square()).clamp(min=0)
    )
    centred = Span(
        values_KFP.low - mean_K.high[:, None, None], values_KFP.high - mean_K.low[:, None, None]
    )
    divisor = Span(s_K.low[:, None, None], s_K.high[:, None, None])
    x_KFP = centred.over(divisor).clipped(math.sqrt(values_KFP.low.shape[1] - 1))
    anything_K = torch.full_like(s_K.low, torch.inf)
    extremes = Span(-anything_K, anything_K)
    return NormedRow(x_KFP, square_K, extremes, extremes), s_K, centred


def norm_sway(sway: Sway, row: NormedRow, s_K: Span, moving: int) -> Sway:
    r"""Bound the change of x by the change of v, with Q/s from the module's text.

    Split the change of v into D at the moving feature σ and ρ elsewhere. With y = x_σ²/p the
    moving feature changes by ``[D (1 − 1/p − y) − ρ̄ − x_σ (x·ρ)/p]/s`` and another one by
    ``[−D (1 + x_i x_σ)/p + ρ_i − ρ̄ − x_i (x·ρ)/p]/s``. The squares of the second's first term add
    up to at most D² (1 − 1/p − y)(1/p + y), since Σ x_i = 0 and Σ x_i² ≤ p; the rest is at most
    ‖ρ‖ as Q does not stretch, and neither does it stretch the whole change.
    """
    x_KF = hull(row.x_KFP)
    p = x_KF.low.shape[1]
    own_x_K = Span(x_KF.low[:, moving], x_KF.high[:, moving])
    size_KF = x_KF.magnitude
    mean_K = torch.minimum(sway.others_KF.sum(1) / p, sway.norm_K / math.sqrt(p))
    along_K = torch.minimum((size_KF * sway.others_KF).sum(1), math.sqrt(p) * sway.norm_K)
    crosses_zero_K = (own_x_K.low <= 0) & (own_x_K.high >= 0)
    nearest_K = torch.minimum(own_x_K.low.abs(), own_x_K.high.abs()).masked_fill(crosses_zero_K, 0)
    whole = 1 - 1 / p
    y_K = Span(nearest_K.square() / p, own_x_K.magnitude.square() / p).clipped(whole)
    kept_K = Span((whole - y_K.high) / s_K.high, (whole - y_K.low) / s_K.low)
    slack_K = (mean_K + own_x_K.magnitude * along_K / p) / s_K.low
    direct_K = sway.own_K.times(kept_K)
    own_K = Span(direct_K.low - slack_K, direct_K.high + slack_K)

    size_K = sway.own_K.magnitude
    product_KF = x_KF.times(Span(own_x_K.low[:, None], own_x_K.high[:, None]))
    pushed_KF = size_K[:, None] * product_KF.shifted(torch.ones(())).magnitude / p
    others_KF = pushed_KF + sway.others_KF + mean_K[:, None] + size_KF * along_K[:, None] / p
    others_KF = others_KF / s_K.low[:, None]
    others_KF[:, moving] = 0
    vertex_K = torch.minimum(torch.full_like(y_K.low, (whole - 1 / p) / 2), y_K.high)
    vertex_K = torch.maximum(vertex_K, y_K.low)
    spread_K = ((whole - vertex_K) * (1 / p + vertex_K)).clamp(min=0).sqrt()
    norm_K = (size_K * spread_K + sway.norm_K) / s_K.low
    return Sway(own_K, others_KF, norm_K, sway.total_K / s_K.low).tightened()
