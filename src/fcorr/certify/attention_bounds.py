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

The range of tilts is cut into cells. On each, means of ``e^{τ y}`` and ``(y − c)² e^{τ y}`` over
the features (y = z less a constant) are bounded with the multipliers of :mod:`fcorr.certify.rows`,
and Var_τ by their ratio.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from fcorr.certify.intervals import Span
from fcorr.certify.layer_norm import Sway
from fcorr.certify.rows import AffineRow, NormedRow, hull, mean_range, mean_slope, variance_range

_N_TILTS = 6  # cells on either side of 0
_TYPICAL_WEIGHTS = (1.0, 1.3)  # of the mean weight, tried as the one that all weights are near
_ANCHORS = (1.0, 2.0)  # where guessed parabolas meet the function, beside the row's extremes


class Tilts(NamedTuple):
    """What the attention does at the tilts of each cell, the cells from left to right.

    ``edges_KT`` has one entry more than the cells. ``mean_exp_KT`` is the mean of e^{τy} over the
    features and ``g_KT`` that of y under the weights, for y = z − ``centre``.
    """

    edges_KT: Tensor
    variance_KT: Span
    mean_exp_KT: Span
    g_KT: Span
    centre: Tensor


def tilt_bounds(row: NormedRow, weight_F: Tensor, bias_F: Tensor) -> Tilts:
    """Bound variance and normaliser of the attention weights over all tilts that occur.

    Going outwards from tilt 0, the mean under the weights is known from the variances so far.
    Then ``Var = E[(y − c)²] − (E[y] − c)²`` for any c; c is taken where E[y] is guessed.
    """
    p = weight_F.shape[0]
    centre = bias_F.mean()
    shift_F = bias_F - centre
    like = row.x_KFP.low
    form = AffineRow(
        weight_F[:, None].expand_as(like), Span(*[shift_F[:, None].expand_as(like)] * 2)
    )
    y_KFP = form.values(row)
    y_KF = hull(y_KFP)
    ends_K = Span(y_KF.low.amin(1), y_KF.high.amax(1))
    plain_K = variance_range(form, row, y_KFP)
    mean_K = mean_range(form, row)
    curve = _Tilted(row, weight_F[:, None], shift_F[:, None], mean_slope(form, row))
    popoviciu_K = (ends_K.high - ends_K.low).square() / 4
    root = math.sqrt(p)
    cells: list[tuple[Span, Span, Span]] = [(mean_K, mean_K, mean_K)] * (2 * _N_TILTS)
    edges_KT = torch.zeros(len(like), 2 * _N_TILTS + 1, dtype=like.dtype)
    for side, end_K in ((1, ends_K.high + centre), (-1, -ends_K.low - centre)):
        step_K = end_K.clamp(min=1e-9) / root / _N_TILTS
        reach_K = mean_K  # range of E_τ[y] at the inner edge of the cell
        for k in range(_N_TILTS):
            tilt_K = Span(side * k * step_K, side * (k + 1) * step_K)
            guess_K = reach_K.middle + side * plain_K.low * step_K / 2
            exp_K = curve.mean_exp(tilt_K)
            exp_K = Span(torch.maximum(exp_K.low, _jensen(tilt_K, mean_K)), exp_K.high)
            exp_K = Span(exp_K.low, torch.maximum(exp_K.low, exp_K.high))
            square_K = curve.mean_square(tilt_K, guess_K, exp_K, plain_K.middle)
            # Far out the weights gather at the row's extreme.
            end_high_K = curve.mean_square_high(
                tilt_K, ends_K.high if side > 0 else ends_K.low, exp_K
            )
            high_K = torch.minimum(torch.minimum(square_K.high, end_high_K), popoviciu_K)
            high_K = high_K.clamp(min=0)
            grown_K = high_K * step_K
            g_K = _outwards(reach_K, side, Span(0 * grown_K, grown_K), keep=True)
            g_K = Span(torch.maximum(g_K.low, ends_K.low), torch.minimum(g_K.high, ends_K.high))
            off_K = g_K.shifted(-guess_K).magnitude
            farthest_K = torch.maximum(ends_K.high, -ends_K.low)
            least_exp_K = torch.exp(-tilt_K.high.abs() * farthest_K)
            low_K = torch.maximum(
                square_K.low - off_K.square(), plain_K.low * least_exp_K / exp_K.high
            )
            nearer_K = curve.mean_square_low(tilt_K, g_K.middle, exp_K, square_K.low)
            low_K = torch.maximum(low_K, nearer_K - g_K.radius.square())
            variance_K = Span(torch.minimum(low_K.clamp(min=0), high_K), high_K)
            grown_K_range = Span(variance_K.low * step_K, high_K * step_K)
            reach_K = _outwards(reach_K, side, grown_K_range, keep=False)
            place = _N_TILTS + k if side > 0 else _N_TILTS - 1 - k
            cells[place] = (variance_K, exp_K, g_K)
            edges_KT[:, place + (side > 0)] = tilt_K.high
    variances, exps, means = zip(*cells, strict=True)
    return Tilts(edges_KT, _stack(variances), _stack(exps), _stack(means), centre)


def _outwards(start_K: Span, side: int, growth_K: Span, *, keep: bool) -> Span:
    """Move a range to one side by a growth; ``keep``: it still holds where it started."""
    near_K = 0 * growth_K.low if keep else growth_K.low
    if side > 0:
        return Span(start_K.low + near_K, start_K.high + growth_K.high)
    return Span(start_K.low - growth_K.high, start_K.high - near_K)


def attended_values(tilts: Tilts, row: NormedRow, weight_F: Tensor, bias_F: Tensor) -> AffineRow:
    """Attention output less g(0), as a function of the normed row."""
    root = math.sqrt(weight_F.shape[0])
    weight = weight_F[:, None] / root
    middle_KFP = row.x_KFP.middle
    tilt_KFP = row.x_KFP.scaled(weight).shifted(bias_F[:, None] / root)
    variance_KFP = _over_cells(tilts, tilt_KFP)
    slope_KFP = weight * variance_KFP.middle
    at_middle = _integrate(tilts, weight * middle_KFP + bias_F[:, None] / root)
    slack_KFP = weight.abs() * variance_KFP.radius * row.x_KFP.radius
    offset_KFP = slope_KFP * middle_KFP
    return AffineRow(
        slope_KFP,
        Span(at_middle.low - offset_KFP - slack_KFP, at_middle.high - offset_KFP + slack_KFP),
    )


def attended_variance(tilts: Tilts, row: NormedRow, weight_F: Tensor, bias_F: Tensor) -> Span:
    r"""Range of the variance of the attention output over the features: ``(K,)``.

    All features go through the same increasing g. With ``Ψ(t) = ∫_0^t v(τ) dτ`` for a lower bound
    v of Var_τ, ``|g(t_i) − g(t_j)| ≥ |Ψ(t_i) − Ψ(t_j)|`` for all pairs, and the variance is a sum
    over pairs: that of g is at least that of Ψ, which is known. Likewise from above.
    """
    low_K = _psi_variance(tilts, tilts.variance_KT.low, row, weight_F, bias_F).low
    return Span(low_K, _psi_variance(tilts, tilts.variance_KT.high, row, weight_F, bias_F).high)


def residual_variance(
    tilts: Tilts, row: NormedRow, weight_F: Tensor, bias_F: Tensor, divisor_K: Span
) -> Tensor:
    r"""Bound the variance of ``s·x + g(t)`` over the features from below: ``(K,)``.

    Write ``g = (s/s₁) Ψ + E``, with Ψ as in :func:`attended_variance` and s₁ the largest s, so that
    E rises with t, and ``u = s (x + Ψ(t)/s₁)``. For any w > 0, u is an increasing function of z
    less ``r_i = s ((w_i/w − 1) x_i + b_i/w)``, which is small if all weights are near w. Two
    increasing functions of z have a covariance of at least 0, so

        var(u + E) ≥ var u + var E − 2 dev(r) dev(E) ≥ var u − var r.
    """
    if weight_F.mean() <= 0:
        return torch.zeros_like(divisor_K.low)
    scaled_KT = tilts.variance_KT.low / divisor_K.high[:, None]
    like = row.x_KFP.low
    bounds = []
    for factor in _TYPICAL_WEIGHTS:
        weight = factor * weight_F.mean()
        rest = (bias_F / weight)[:, None].expand_as(like)
        unlike = AffineRow((weight_F / weight - 1)[:, None].expand_as(like), Span(rest, rest))
        bounds.append(
            _psi_variance(tilts, scaled_KT, row, weight_F, bias_F, plus_x=True, less=unlike).low
        )
    return divisor_K.low.square() * torch.stack(bounds).amax(0)


def _psi_variance(
    tilts: Tilts,
    slope_KT: Tensor,
    row: NormedRow,
    weight_F: Tensor,
    bias_F: Tensor,
    *,
    plus_x: bool = False,
    less: AffineRow | None = None,
) -> Span:
    """Range of the variance of Ψ(t), or of x + Ψ(t); see :func:`variance_range` for ``less``."""
    known = tilts._replace(variance_KT=Span(slope_KT, slope_KT))
    root = math.sqrt(weight_F.shape[0])
    low_KFP, high_KFP = (
        _integrate(known, (weight_F[:, None] * x + bias_F[:, None]) / root).low for x in row.x_KFP
    )
    tilt_KFP = row.x_KFP.scaled(weight_F[:, None] / root).shifted(bias_F[:, None] / root)
    steepness = _over_cells(known, tilt_KFP).scaled(weight_F[:, None] / root)
    width_KFP = row.x_KFP.high - row.x_KFP.low
    chord_KFP = (high_KFP - low_KFP) / width_KFP.clamp(min=1e-12)
    chord_KFP = torch.minimum(torch.maximum(chord_KFP, steepness.low), steepness.high)
    # Within a piece the function leaves the line through its left end by no more than this.
    rise_KFP = (steepness.high - chord_KFP).clamp(min=0) * width_KFP
    fall_KFP = (chord_KFP - steepness.low).clamp(min=0) * width_KFP
    start_KFP = low_KFP - chord_KFP * row.x_KFP.low
    form = AffineRow(chord_KFP, Span(start_KFP - fall_KFP, start_KFP + rise_KFP))
    values_KFP = Span(*_sorted(low_KFP, high_KFP))
    if plus_x:
        form = AffineRow(form.slope_KFP + 1, form.rest_KFP)
        values_KFP = values_KFP.plus(row.x_KFP)
    return variance_range(form, row, values_KFP, less)


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
    y_KF = hull(z_KFP.shifted(-tilts.centre))
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


class _Tilted:
    r"""Means over a row's features of functions of y and a tilt.

    ``φ(y) = e^{τy}`` or ``((y − c)² − v) e^{τy}``, with y = weight · x + shift. For a fixed y both
    are monotone in τ, so a cell's edges suffice. On a piece of width Δ a function exceeds its
    larger end value by at most Δ²/8 times its strongest downward curvature.
    """

    def __init__(
        self, row: NormedRow, weight_F1: Tensor, shift_F1: Tensor, slope_K11: Tensor
    ) -> None:
        self.weight_F1, self.slope_K11, self.square_K = weight_F1, slope_K11, row.square_K
        self.extremes = (row.largest_K.high[:, None, None], row.smallest_K.low[:, None, None])
        self.n_pieces = row.x_KFP.low.shape[2]
        # Two more pieces per feature: what it is if it is the row's largest, or its smallest.
        ends = [_within(row.x_KFP, span) for span in (row.largest_K, row.smallest_K)]
        self.can_be_end_KF2 = torch.cat([span.low <= span.high for span in ends], 2)
        kept = [Span(torch.minimum(span.low, span.high), span.high) for span in ends]
        self.x = Span(
            torch.cat([row.x_KFP.low, *(torch.nan_to_num(span.low) for span in kept)], 2),
            torch.cat([row.x_KFP.high, *(torch.nan_to_num(span.high) for span in kept)], 2),
        )
        # No feature is both where the two ranges lie on either side of 0.
        self.two_ends_K = (row.largest_K.low > 0) & (row.smallest_K.high < 0)
        self.ends = tuple(weight_F1 * end + shift_F1 for end in self.x)
        self.y_KFP = Span(*_sorted(*self.ends))
        self.bend_KFP = (self.x.high - self.x.low).square() / 8

    def mean_exp(self, tilt_K: Span) -> Span:
        """Range of the mean of e^{τy}."""
        edges = [self._edge(tau_K[:, None, None], None, None) for tau_K in tilt_K]
        return self._mean(edges, tilt_K, None, None)

    def mean_square(self, tilt_K: Span, c_K: Tensor, exp_K: Span, start_K: Tensor) -> Span:
        r"""Range of ``E_τ[(y − c)²]``, a ratio of two means.

        With F = mean ((y − c)² − v) e^{τy} the ratio is ``v + F/mean e^{τy}``: the nearer v is to
        it, the less does the uncertainty of the divisor matter (Dinkelbach). Two steps are taken.
        """
        first = self._ratio(tilt_K, c_K, start_K, exp_K)
        highest_K = self._ratio(tilt_K, c_K, first.high.clamp(min=0, max=1e6), exp_K).high
        return Span(first.low, torch.minimum(first.high, highest_K))

    def mean_square_high(self, tilt_K: Span, c_K: Tensor, exp_K: Span) -> Tensor:
        """Bound ``E_τ[(y − c)²]`` from above, with another c."""
        first_K = self._ratio(tilt_K, c_K, torch.ones_like(c_K), exp_K).high
        second_K = self._ratio(tilt_K, c_K, first_K.clamp(min=0, max=1e6), exp_K).high
        return torch.minimum(first_K, second_K)

    def mean_square_low(self, tilt_K: Span, c_K: Tensor, exp_K: Span, start_K: Tensor) -> Tensor:
        """Bound ``E_τ[(y − c)²]`` from below, with another c."""
        return self._ratio(tilt_K, c_K, start_K.clamp(min=0), exp_K).low

    def _ratio(self, tilt_K: Span, c_K: Tensor, v_K: Tensor, exp_K: Span) -> Span:
        c, v = c_K[:, None, None], v_K[:, None, None]
        edges = [self._edge(tau_K[:, None, None], c, v) for tau_K in tilt_K]
        excess_K = self._mean(edges, tilt_K, c, v)
        return Span(v_K, v_K).plus(excess_K.over(exp_K))

    def _edge(self, tau: Tensor, c: Tensor | None, v: Tensor | None) -> tuple[Tensor, Tensor, Span]:
        at_low, at_high = (_phi(y, tau, c, v) for y in self.ends)
        curvature = _phi_curvature(self.y_KFP, tau, c, v)
        return at_low, at_high, curvature.scaled(self.weight_F1.square())

    def _mean(
        self,
        edges: list[tuple[Tensor, Tensor, Span]],
        tilt_K: Span,
        c: Tensor | None,
        v: Tensor | None,
    ) -> Span:
        tau = tilt_K.middle[:, None, None]
        lows, highs = [], []
        for lambda1, lambda2 in self._multipliers(tau, c, v):
            parabola_low, parabola_high = (at * (lambda1 + lambda2 * at) for at in self.x)
            least, most = [], []
            for at_low, at_high, curvature in edges:
                first, second = at_low - parabola_low, at_high - parabola_high
                up = (2 * lambda2 - curvature.low).clamp(min=0)
                down = (curvature.high - 2 * lambda2).clamp(min=0)
                most.append(torch.maximum(first, second) + self.bend_KFP * up)
                least.append(torch.minimum(first, second) - self.bend_KFP * down)
            lambda2_K = lambda2[:, 0, 0]
            squares = (lambda2_K * self.square_K.low, lambda2_K * self.square_K.high)
            lows.append(self._least_mean(torch.minimum(*least)) + torch.minimum(*squares))
            highs.append(-self._least_mean(-torch.maximum(*most)) + torch.maximum(*squares))
        return Span(torch.stack(lows).amax(0), torch.stack(highs).amin(0))

    def _least_mean(self, values_KFP: Tensor) -> Tensor:
        """Smallest mean when some feature is the row's largest, and some its smallest.

        Making feature i the largest costs ``value as the largest − smallest value`` more than
        leaving it free; the cheapest i is taken, and likewise for the smallest.
        """
        n_features = values_KFP.shape[1]
        free_KF = values_KFP[:, :, : self.n_pieces].amin(2)
        as_end_KF2 = values_KFP[:, :, self.n_pieces :].masked_fill(~self.can_be_end_KF2, torch.inf)
        extra_K2 = (as_end_KF2 - free_KF[:, :, None]).amin(1).clamp(min=0)
        extra_K = torch.where(self.two_ends_K, extra_K2.sum(1), extra_K2.amax(1))
        return free_KF.mean(1) + extra_K.nan_to_num(posinf=0.0) / n_features

    def _multipliers(
        self, tau: Tensor, c: Tensor | None, v: Tensor | None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Guess multipliers: parabolas that lie near φ or touch it at 0 and meet it far out."""
        zero = torch.zeros_like(self.slope_K11)
        yield zero, zero
        middle = _phi(zero, tau, c, v)
        for anchor in _ANCHORS:
            left, right = (_phi(self.slope_K11 * at, tau, c, v) for at in (-anchor, anchor))
            yield (right - left) / (2 * anchor), (right + left - 2 * middle) / (2 * anchor**2)
        if c is None or v is None:
            rise = tau * self.slope_K11
        else:
            rise = (-2 * c + tau * (c.square() - v)) * self.slope_K11
        for end in self.extremes:
            far = torch.where(end.abs() < 1, torch.where(end < 0, -1.0, 1.0).to(end.dtype), end)
            yield rise, (_phi(self.slope_K11 * far, tau, c, v) - middle - rise * far) / far.square()


def _phi(y: Tensor, tau: Tensor, c: Tensor | None, v: Tensor | None) -> Tensor:
    exponential = torch.exp(tau * y)
    if c is None or v is None:
        return exponential
    return ((y - c).square() - v) * exponential


def _phi_curvature(y: Span, tau: Tensor, c: Tensor | None, v: Tensor | None) -> Span:
    """Second derivative by y: τ²e^{τy}, or (u² + 4u + 2 − τ²v)e^{τy} with u = τ(y − c)."""
    exponential = Span(*_sorted(torch.exp(tau * y.low), torch.exp(tau * y.high)))
    if c is None or v is None:
        return exponential.scaled(tau.square())
    u = Span(*_sorted(tau * (y.low - c), tau * (y.high - c)))
    ends = _sorted(*(end.square() + 4 * end + 2 for end in u))
    has_vertex = (u.low < -2) & (u.high > -2)
    polynomial = Span(ends[0].masked_fill(has_vertex, -2.0), ends[1])
    return polynomial.shifted(-tau.square() * v).times(exponential)


def _within(x_KFP: Span, span_K: Span) -> Span:
    """Return what each feature can be within a range, ``(K, F, 1)``; empty where nothing."""
    low, high = span_K.low[:, None, None], span_K.high[:, None, None]
    meets = (x_KFP.low <= high) & (x_KFP.high >= low)
    return Span(
        torch.maximum(x_KFP.low, low).masked_fill(~meets, torch.inf).amin(2, keepdim=True),
        torch.minimum(x_KFP.high, high).masked_fill(~meets, -torch.inf).amax(2, keepdim=True),
    )


def _jensen(tilt_K: Span, mean_K: Span) -> Tensor:
    """``mean e^{τy} ≥ e^{τ · mean y}``."""
    return torch.stack([tau * end for tau in tilt_K for end in mean_K]).amin(0).exp()


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


def _sorted(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return torch.minimum(a, b), torch.maximum(a, b)


def _stack(spans: tuple[Span, ...]) -> Span:
    return Span(torch.stack([s.low for s in spans], 1), torch.stack([s.high for s in spans], 1))
