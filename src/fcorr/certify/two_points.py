r"""Tilted means of a row, from its variance and its extremes alone.

Let y_1 … y_p have mean 0, and let ``G(τ) = mean y e^{τy} / mean e^{τy}`` be their mean under
weights that grow with y: what attention computes. Of all rows with a given variance σ² and no
number below −m, the one with the smallest G(τ), τ > 0, has two values only, −m and σ²/m, for which

    G(τ) = c := σ² m (1 − κ)/(m² + σ² κ),   κ = exp(−τ (m + σ²/m)).

*Proof.* Let ``r = σ²/m``, ``ψ(y) = (y − c) e^{τy}``, Q the parabola through ψ at −m that touches it
at r, and D = ψ − Q. Q bends upwards: its leading coefficient has the sign of
``(m + c)(1 − κ) + τ(r − c)(r + m)``, and c ≤ r. Suppose that D ≥ 0 on y ≥ −m. Then
``mean ψ ≥ mean Q``, which does not fall if the variance grows; so for all rows of at least that
variance mean ψ is at least what the two values give. That is 0 by the choice of c: G(τ) ≥ c.

D ≥ 0: ``D'''(y) = τ² (3 + τ(y − c)) e^{τy}`` is negative up to y_0 = c − 3/τ and positive from
there. If y_0 ≤ −m, then ``D(y) = D'''(ξ)/6 · (y + m)(y − r)² ≥ 0``. Else D'' falls up to y_0 and
rises from there, is negative at −m since ψ'' is, and has a zero before r since D has three: so D is
concave up to that zero and convex from there, 0 at −m, and 0 with its slope at r. ∎

Likewise from above, with the largest number L in the place of −m and r = −σ²/L: then D ≤ 0 on
[max(y_0, −m), L] as before, if y_0 ≤ r. To the left of y_0 D is concave, and its slope at y_0 is
not negative: it is 0 at r, and D'' ≤ 0 in between, or D would be positive there.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from fcorr.certify.intervals import Span

_ROOM, _ROUNDING = 1e-6, 1e-10
_LARGEST = torch.finfo(torch.float64).max


class Shape(NamedTuple):
    """What is known of rows with mean 0: variance, smallest and largest number; ``(K, 1, 1)``."""

    variance: Span
    smallest: Tensor
    """No number is below it; negative."""
    largest: Tensor
    """No number is above it; positive."""

    def mirrored(self) -> "Shape":
        """Shape of the negative numbers."""
        return Shape(self.variance, -self.largest, -self.smallest)


def tilted_mean(shape: Shape, tilt: Span) -> Span:
    """Range of G over ranges of tilts of either sign: ``(K, …)``."""
    return Span(_lowest(shape, tilt.low), -_lowest(shape.mirrored(), -tilt.high))


def _lowest(shape: Shape, tilt: Tensor) -> Tensor:
    """Bound G(τ) from below: for τ > 0 as in the proof, for τ < 0 its mirror image from above."""
    rising = _least(shape.variance.low, -shape.smallest, tilt.clamp(min=0))
    falling = _most(shape.variance.high, -shape.smallest, (-tilt).clamp(min=0))
    return torch.where(tilt >= 0, rising, -falling)


def _least(variance: Tensor, m: Tensor, tilt: Tensor) -> Tensor:
    decay = torch.exp(-tilt * (m + variance / m))
    return variance * m * (1 - decay) / (m.square() + variance * decay)


def _most(variance: Tensor, largest: Tensor, tilt: Tensor) -> Tensor:
    """Bound G(τ), τ ≥ 0, from above; a row's largest number where the proof does not reach."""
    distance = largest + variance / largest
    growth = torch.exp((tilt * distance).clamp(max=50.0))
    high = variance * largest * (growth - 1) / (largest.square() + variance * growth)
    return torch.where(tilt * (high + variance / largest) <= 3, high, largest)


def mean_exp(shape: Shape, tilt: Span) -> Span:
    """Range of mean e^{τy}: by the same two values, as all derivatives of e^{τy} are positive.

    It is least at τ = 0, where it is 1, and rises to both sides.
    """
    near = Span(tilt.low.clamp(min=0), (-tilt.high).clamp(min=0))
    far = Span(tilt.high.clamp(min=0), (-tilt.low).clamp(min=0))
    mirrored = shape.mirrored()
    return Span(
        torch.maximum(_least_exp(shape, near.low), _least_exp(mirrored, near.high)),
        torch.maximum(_most_exp(shape, far.low), _most_exp(mirrored, far.high)),
    )


def _least_exp(shape: Shape, tilt: Tensor) -> Tensor:
    """Bound from below, which has to be finite: an infinite one would be above the mean."""
    return _two_point_exp(shape.variance.low, shape.smallest, tilt).clamp(max=_LARGEST)


def _most_exp(shape: Shape, tilt: Tensor) -> Tensor:
    return _two_point_exp(shape.variance.high, shape.largest, tilt)


def _two_point_exp(variance: Tensor, end: Tensor, tilt: Tensor) -> Tensor:
    """Mean of e^{τy} for two values, one of them given, with mean 0 and a given variance."""
    at_end = variance / (end.square() + variance)  # share of the given value
    # Shares first: products of large exponentials and squares overflow before their mean does.
    return (1 - at_end) * (-tilt * variance / end).exp() + at_end * (tilt * end).exp()


def extreme_exps(shape: Shape, tilt: Span) -> Span:
    """Smallest and largest e^{τy} that occur."""
    exponents = torch.stack(
        torch.broadcast_tensors(
            *(tau * end for tau in tilt for end in (shape.smallest, shape.largest))
        )
    )
    return Span(exponents.amin(0).exp(), exponents.amax(0).exp())


class Base(NamedTuple):
    """Rows under the weights of a tilt τ_0: what is known of the numbers less their mean G(τ_0)."""

    shape: Shape
    away: Tensor
    """Largest absolute value of G(τ_0)."""
    least_share: Tensor
    """p times the smallest weight that a number can have."""


def tilted_base(shape: Shape, tilt: Span) -> Base:
    """Describe rows under the weights ``e^{τ_0 y}/(p · mean e^{τ_0 y})``, τ_0 in a range.

    Their variance is the least Σ weight (y − c)² over c: at least the smallest weight's share of
    σ², and for c = 0 at most the largest weight's.
    """
    g, total, weight = tilted_mean(shape, tilt), mean_exp(shape, tilt), extreme_exps(shape, tilt)
    least_share = weight.low / total.high
    return Base(
        Shape(
            Span(shape.variance.low * least_share, shape.variance.high * weight.high / total.low),
            shape.smallest - g.high.clamp(min=0),
            shape.largest - g.low.clamp(max=0),
        ),
        g.magnitude,
        least_share,
    )


def own_pull(shape: Shape, tilt: Tensor, y: Tensor, share: Tensor) -> Tensor:
    r"""Bound G(τ) from below for τ ≥ 0, knowing that a number y or more has a given share.

    The proof applies to the other numbers: their mean is ``−share·y/(1 − share)`` and their
    variance what y leaves of σ². So G(τ) ≥ c for the c that belongs to three values, y and the two,
    if Q bends upwards; where it does not, a smaller tilt is tried. As D rises to the right of r, a
    number above y ≥ r only makes mean ψ larger. Where y < r nothing is gained: the result is 0.
    """
    # A little more room below keeps what is divided by away from 0.
    m, y = _ROOM - shape.smallest, y.clamp(min=0)
    mean = -share * y / (1 - share)
    left = shape.variance.low * (1 - _ROUNDING) - share * y.square() * (1 + _ROUNDING)
    variance = (left / (1 - share) - mean.square()).clamp(min=0)
    reach = (m + mean).clamp(min=_ROOM)  # of the lower value below the others' mean
    r, lower = mean + variance / reach, (1 - share) * variance / (variance + reach.square())
    upper = 1 - share - lower
    best = torch.zeros_like(tilt * y)
    smaller = (torch.minimum(tilt, size / (m + r)) for size in (3.0, 2.0, 1.0))
    for tau in (tilt, 0.7 * tilt, *smaller):
        weights = (share * (tau * (y - r)).exp(), lower * (-tau * (r + m)).exp(), upper)
        total = weights[0] + weights[1] + weights[2]
        c = (weights[0] * y - weights[1] * m + weights[2] * r) / total
        bends_up = (m + c) * -torch.expm1(-tau * (m + r)) + tau * (r - c) * (r + m) >= 0
        best = torch.where(bends_up & (y >= r), torch.maximum(best, c), best)
    return best
