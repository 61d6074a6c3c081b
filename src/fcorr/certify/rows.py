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

_N_CENTRES = 16
_SHARES = (0.0, 0.5, 0.8, 1.0)  # of the squared mean slope, tried as λ₂


class NormedRow(NamedTuple):
    """Numbers with mean 0 over the features and a mean square in an interval."""

    x_KFP: Span
    square_K: Span
    largest_K: Span
    """Range of the largest number of the row; some feature has it."""
    smallest_K: Span


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
    """Range of the mean over the features, ``(K,)``: a common slope has no part in it."""
    left = AffineRow(form.slope_KFP - mean_slope(form, row), form.rest_KFP)
    hull_KF = hull(left.values(row))
    return Span(hull_KF.low.mean(1), hull_KF.high.mean(1))


def variance_range(
    form: AffineRow, row: NormedRow, values_KFP: Span, less: AffineRow | None = None
) -> Span:
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
    less : AffineRow, optional
        Other numbers of the row, known but for x. Their mean square is taken away from the lower
        end, feature by feature: no row need have the least of one and the most of the other.
    """
    hull_KF = hull(values_KFP)
    slope_K11 = mean_slope(form, row)
    rest_KF = hull(
        Span(
            form.rest_KFP.low + (form.slope_KFP - slope_K11) * row.x_KFP.middle,
            form.rest_KFP.high + (form.slope_KFP - slope_K11) * row.x_KFP.middle,
        )
    )
    centre_K = rest_KF.middle.mean(1)
    lowest_K, highest_K = hull_KF.low.amin(1), hull_KF.high.amax(1)
    # Any m outside the hull is worse than its end, so the hull is enough.
    steps = torch.linspace(0, 1, _N_CENTRES + 1, dtype=centre_K.dtype)
    edges_KM = lowest_K[:, None] + (highest_K - lowest_K)[:, None] * steps
    least_K = torch.full_like(centre_K, torch.inf)
    for k in range(_N_CENTRES):
        m_K = Span(edges_KM[:, k], edges_KM[:, k + 1])
        bound_K = _spread_around(form, row, values_KFP, m_K, slope_K11, centre_K, less)
        least_K = torch.minimum(least_K, bound_K)
    return Span(least_K.clamp(min=0), _most_spread(form, row, values_KFP, slope_K11, centre_K))


def _spread_around(
    form: AffineRow,
    row: NormedRow,
    values_KFP: Span,
    m_K: Span,
    slope_K11: Tensor,
    centre_K: Tensor,
    less: AffineRow | None,
) -> Tensor:
    """Bound ``mean (v − m)²``, less another mean square, from below for all m of an interval."""
    m_K11 = Span(m_K.low[:, None, None], m_K.high[:, None, None])
    away_KFP = torch.maximum(values_KFP.low - m_K11.high, m_K11.low - values_KFP.high)
    plain_KFP = away_KFP.clamp(min=0).square()
    own1 = own2 = constant = torch.zeros_like(slope_K11)
    if less is not None:  # (slope·x + rest)², written out
        plain_KFP = plain_KFP - less.values(row).magnitude.square()
        own1, own2 = 2 * less.slope_KFP * less.rest_KFP.low, less.slope_KFP.square()
        constant = less.rest_KFP.low.square()
    best_K = plain_KFP.amin(2).mean(1)
    off_K11 = centre_K[:, None, None] - m_K11.middle
    for share in _SHARES:
        if not share and less is None:
            continue
        lambda2 = share * slope_K11.square()
        lambda1 = 2 * share * slope_K11 * off_K11
        joint_KFP = _least_quadratic(form, row.x_KFP, m_K11, lambda1 + own1, lambda2 + own2)
        joint_KFP = joint_KFP - constant
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
