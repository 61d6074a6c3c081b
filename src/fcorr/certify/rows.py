r"""What mean and variance over a row's features can be, given what each feature can be.

The numbers x_1 … x_p that a LayerNorm puts out (before its weights) are bound to each other: their
sum is 0 and the mean of their squares is known. Interval arithmetic forgets that; Lagrange's
multipliers remember it. For any λ₁, λ₂ and functions φ_i

    mean_i φ_i(x_i) = mean_i [φ_i(x_i) − λ₁ x_i − λ₂ x_i²] + λ₂ · mean_i x_i²
                    ≥ mean_i min_x [φ_i(x) − λ₁ x − λ₂ x²] + λ₂ · c

with c the smallest mean square for λ₂ ≥ 0 and the largest otherwise. Every choice of multipliers
gives a sound bound, so they are guessed and the best guess is kept. The minimum over x is taken
feature by feature and piece by piece: no p-dimensional search is left.

Letters in tensor names: K boxes of rows that are treated side by side, F features, P pieces of a
feature's values.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from fcorr.certify.intervals import Span

_N_CENTRES = 8
_MEAN_SHARES = (0.25, 0.5, 1.0)  # of the slopes' deviation, tried as λ₂ for means
_SHARES = (0.5, 0.8, 1.0)  # of the squared mean slope, tried as λ₂


class NormedRow(NamedTuple):
    """Numbers with mean 0 over the features and a mean square in an interval."""

    x_KFP: Span
    square_K: Span
    largest_K: Span
    """Range of the largest of what LayerNorm passes on, weight · x + bias; some feature has it."""
    smallest_K: Span
    """Likewise of the smallest."""


def hull(values_KFP: Span) -> Span:
    """Range of each feature over its pieces: ``(K, F)``."""
    return Span(values_KFP.low.amin(2), values_KFP.high.amax(2))


class AffineRow(NamedTuple):
    """Numbers ``slope · x + rest`` of a row, x the numbers of a :class:`NormedRow`."""

    slope_KFP: Tensor
    rest_KFP: Span

    def values(self, row: NormedRow) -> Span:
        """Range of the numbers on each piece: ``(K, F, P)``."""
        return row.x_KFP.scaled(self.slope_KFP).plus(self.rest_KFP)


def mean_slope(form: AffineRow, row: NormedRow) -> Tensor:
    """Return a typical slope of each box, ``(K, 1, 1)``: a guess, not a bound."""
    return form.slope_KFP.expand_as(row.x_KFP.low).mean((1, 2), keepdim=True)


def mean_range(form: AffineRow, row: NormedRow) -> Span:
    """Range of the mean over the features, ``(K,)``: a common slope has no part in it.

    What is left of the slopes is paired with x; by Cauchy and Schwarz that is at most their
    deviation, which λ₂ of half of it gives, and less where the pieces allow less.
    """
    slope = form.slope_KFP - mean_slope(form, row)
    left = AffineRow(slope, form.rest_KFP)
    hull_KF = hull(left.values(row))
    low_K, high_K = hull_KF.low.mean(1), hull_KF.high.mean(1)
    deviation_K11 = slope.expand_as(row.x_KFP.low).square().mean((1, 2), keepdim=True).sqrt()
    for share in _MEAN_SHARES:
        kappa = share * deviation_K11.clamp(min=1e-12)
        vertex = slope / (2 * kappa)
        ends = []
        for side in (-1, 1):  # slope · x + κx² is least at the vertex or at an end of the piece
            at = torch.minimum(torch.maximum(side * vertex, row.x_KFP.low), row.x_KFP.high)
            rest = form.rest_KFP.low if side < 0 else -form.rest_KFP.high
            least_KF = (-side * slope * at + kappa * at.square() + rest).amin(2)
            ends.append(least_KF.mean(1) - kappa[:, 0, 0] * row.square_K.high)
        low_K, high_K = torch.maximum(low_K, ends[0]), torch.minimum(high_K, -ends[1])
    return Span(low_K, torch.maximum(low_K, high_K))


def variance_range(form: AffineRow, row: NormedRow, values_KFP: Span) -> Span:
    """Range of the variance over the features: ``(K,)``.

    The variance is the smallest ``mean (v − m)²`` over m. Below: every m is tried, an interval of
    them at a time. Above: one m is enough.

    Parameters
    ----------
    form : AffineRow
        The numbers.
    row : NormedRow
        What they depend on.
    values_KFP : Span
        Range of the numbers on each piece, at least as narrow as the form's own.
    """
    slope_K11 = mean_slope(form, row)
    rest_KF = hull(
        Span(
            form.rest_KFP.low + (form.slope_KFP - slope_K11) * row.x_KFP.middle,
            form.rest_KFP.high + (form.slope_KFP - slope_K11) * row.x_KFP.middle,
        )
    )
    centre_K = rest_KF.middle.mean(1)
    # The best m is the mean itself.
    lowest_K, highest_K = mean_range(form, row)
    steps = torch.linspace(0, 1, _N_CENTRES + 1, dtype=centre_K.dtype)
    edges_KM = lowest_K[:, None] + (highest_K - lowest_K)[:, None] * steps
    least_K = torch.full_like(centre_K, torch.inf)
    for k in range(_N_CENTRES):
        m_K = Span(edges_KM[:, k], edges_KM[:, k + 1])
        bound_K = _spread_around(form, row, values_KFP, m_K, slope_K11, centre_K)
        least_K = torch.minimum(least_K, bound_K)
    return Span(least_K.clamp(min=0), _most_spread(form, row, values_KFP, slope_K11, centre_K))


def _spread_around(
    form: AffineRow,
    row: NormedRow,
    values_KFP: Span,
    m_K: Span,
    slope_K11: Tensor,
    centre_K: Tensor,
) -> Tensor:
    """Bound ``mean (v − m)²`` from below for all m of an interval."""
    m_K11 = Span(m_K.low[:, None, None], m_K.high[:, None, None])
    away_KFP = torch.maximum(values_KFP.low - m_K11.high, m_K11.low - values_KFP.high)
    plain_KFP = away_KFP.clamp(min=0).square()
    best_K = plain_KFP.amin(2).mean(1)
    off_K11 = centre_K[:, None, None] - m_K11.middle
    for share in _SHARES:
        lambda2 = share * slope_K11.square()
        lambda1 = 2 * share * slope_K11 * off_K11
        joint_KFP = _least_quadratic(form, row.x_KFP, m_K11, lambda1, lambda2)
        value_K = joint_KFP.amin(2).mean(1) + lambda2[:, 0, 0] * row.square_K.low
        best_K = torch.maximum(best_K, value_K)
    return best_K


def _least_quadratic(form: AffineRow, x: Span, m: Span, lambda1: Tensor, lambda2: Tensor) -> Tensor:
    """Minimum over each piece of ``(slope·x + rest − m)² − λ₁x − λ₂x²``, rest and m free.

    With rest and m free the square is that of a distance: 0 on a stretch of x, a parabola on
    either side. The minimum lies at an end of the piece, at an end of the stretch (λ₂ ≥ 0), or at
    the vertex of a parabola; all are tried.
    """
    slope = form.slope_KFP
    low, high = form.rest_KFP.low - m.high, form.rest_KFP.high - m.low

    def value(at: Tensor) -> Tensor:
        y = slope * at
        distance = torch.maximum(y + low, -(y + high)).clamp(min=0)
        return distance.square() - at * (lambda1 + lambda2 * at)

    tiny = 1e-300
    safe_slope = torch.where(slope.abs() < tiny, torch.full_like(slope, tiny), slope)
    curve = slope.square() - lambda2
    safe_curve = torch.where(curve.abs() < tiny, torch.full_like(curve, tiny), curve)
    candidates = [
        -low / safe_slope,
        -high / safe_slope,
        (lambda1 / 2 - slope * low) / safe_curve,
        (lambda1 / 2 - slope * high) / safe_curve,
    ]
    least = torch.minimum(value(x.low), value(x.high))
    for candidate in candidates:
        inside = torch.minimum(torch.maximum(candidate, x.low), x.high)
        least = torch.minimum(least, value(inside))
    return least


def _most_spread(
    form: AffineRow, row: NormedRow, values_KFP: Span, slope_K11: Tensor, centre_K: Tensor
) -> Tensor:
    """Bound ``mean (v − m)²`` from above at one m, with and without multipliers."""
    m_K11 = centre_K[:, None, None]
    plain_KFP = torch.maximum(values_KFP.high - m_K11, m_K11 - values_KFP.low).square()
    best_K = plain_KFP.amax(2).mean(1)
    x, slope = row.x_KFP, form.slope_KFP
    lambda2 = slope_K11.square()
    curve = slope.square() - lambda2
    safe_curve = torch.where(curve.abs() < 1e-300, torch.full_like(curve, 1e-300), curve)
    most_KFP = torch.full_like(slope, -torch.inf)
    for rest in (form.rest_KFP.low - m_K11, form.rest_KFP.high - m_K11):
        vertex = torch.minimum(torch.maximum(-slope * rest / safe_curve, x.low), x.high)
        for at in (x.low, x.high, vertex):
            value = (slope * at + rest).square() - lambda2 * at.square()
            most_KFP = torch.maximum(most_KFP, value)
    joint_K = most_KFP.amax(2).mean(1) + lambda2[:, 0, 0] * row.square_K.high
    return torch.minimum(best_K, joint_K)
