r"""Boxes of rows: the domain, cut by a few numbers that a row has as a whole.

The first LayerNorm is affine once the row's mean μ and its divisor s are known:
``x_i = (e_i − μ)/s``. So the domain is cut by these two, and within a box every feature's normed
value lies in a narrow interval, whatever p is. The rows of a box also obey
``Σ (e_i − μ)² = p·var``: a box that no row can be in is dropped, and so is a piece of a feature
that no row of it can use. Two more numbers are the largest and the smallest x_i, since features far
out are what makes attention uneven; the others are the divisors of the LayerNorms that follow.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from fcorr.certify.domain import Pieces
from fcorr.certify.intervals import Span
from fcorr.certify.rows import NormedRow

MEAN, DIVISOR, LARGEST, SMALLEST, LATER_DIVISORS = range(5)
_N_MEANS = 8
_N_DIVISORS = 4
_RATIO = 1.3  # of the ends of a box's divisors, where that takes no more than _N_DIVISORS boxes
_ROUNDING = 1e-9

# A box is cut across its widest side, in these units. A later divisor's range shrinks when the
# others do, so its width counts for no more than _LATER_CAP.
_MEAN_UNIT, _DIVISOR_UNIT, _EXTREME_UNIT, _LATER_UNIT, _LATER_CAP = 0.15, 0.15, 0.5, 0.25, 1.0


class Boxes(NamedTuple):
    """Ranges of the numbers that rows are told apart by: ``(K, D)``.

    The first four are named by the constants of this module; after them come the divisors of the
    LayerNorms after the first.
    """

    low_KD: Tensor
    high_KD: Tensor

    def side(self, which: int) -> Span:
        """Range of one of the numbers."""
        return Span(self.low_KD[:, which], self.high_KD[:, which])

    def take(self, which: Tensor) -> "Boxes":
        """Pick some boxes."""
        return Boxes(self.low_KD[which], self.high_KD[which])

    def with_side(self, which: int, span: Span) -> "Boxes":
        """Return the boxes with one range replaced."""
        low_KD, high_KD = self.low_KD.clone(), self.high_KD.clone()
        low_KD[:, which], high_KD[:, which] = span.low, span.high
        return Boxes(low_KD, high_KD)

    def split(self) -> "Boxes":
        """Cut every box in two, across its widest side."""
        is_divisor_D = torch.ones(self.low_KD.shape[1], dtype=torch.bool)
        is_divisor_D[[MEAN, LARGEST, SMALLEST]] = False
        width_KD = self.high_KD - self.low_KD
        ratio_KD = (self.high_KD / self.low_KD.clamp(min=1e-12)).clamp(min=1).log()
        size_KD = torch.where(is_divisor_D, ratio_KD / _LATER_UNIT, width_KD / _EXTREME_UNIT)
        size_KD[:, LATER_DIVISORS:].clamp_(max=_LATER_CAP)
        size_KD[:, MEAN] = width_KD[:, MEAN] / self.low_KD[:, DIVISOR] / _MEAN_UNIT
        size_KD[:, DIVISOR] = ratio_KD[:, DIVISOR] / _DIVISOR_UNIT
        widest_K = size_KD.argmax(1)
        geometric_KD = (self.low_KD.clamp(min=0) * self.high_KD.clamp(min=0)).sqrt()
        cut_KD = torch.where(is_divisor_D, geometric_KD, (self.low_KD + self.high_KD) / 2)
        here_KD = torch.nn.functional.one_hot(widest_K, self.low_KD.shape[1]).bool()
        return join(
            [
                Boxes(self.low_KD, torch.where(here_KD, cut_KD, self.high_KD)),
                Boxes(torch.where(here_KD, cut_KD, self.low_KD), self.high_KD),
            ]
        )

    def __len__(self) -> int:
        return len(self.low_KD)


def join(boxes: list[Boxes]) -> Boxes:
    """Put lists of boxes together."""
    return Boxes(torch.cat([b.low_KD for b in boxes]), torch.cat([b.high_KD for b in boxes]))


def cover(pieces: Pieces, eps: float, floors: Tensor) -> Boxes:
    """Cover all rows of a domain with boxes.

    Parameters
    ----------
    pieces : Pieces
        The domain.
    eps : float
        The first LayerNorm's own.
    floors : Tensor
        Smallest divisor of each LayerNorm; rows with a smaller one are left out.
    """
    lowest, highest = pieces.low_FP.amin(1).mean(), pieces.high_FP.amax(1).mean()
    steps = torch.linspace(0, 1, _N_MEANS + 1, dtype=torch.float64)
    edges = lowest + (highest - lowest) * steps
    mean_K = Span(edges[:-1], edges[1:])
    near_KFP, far_KFP = _distances(pieces.low_FP, pieces.high_FP, mean_K)
    low_K = (near_KFP.square().amin(2).mean(1) + eps).sqrt() * (1 - _ROUNDING)
    low_K = low_K.clamp(min=float(floors[0]))
    high_K = (far_KFP.square().amax(2).mean(1) + eps).sqrt() * (1 + _ROUNDING)
    high_K = torch.maximum(low_K, high_K)
    widest = float((high_K / low_K).max())
    n_divisors = min(_N_DIVISORS, 1 + int(math.log(widest) / math.log(_RATIO)))
    steps = torch.linspace(0, 1, n_divisors + 1, dtype=torch.float64)
    edges_KS = low_K[:, None] * (high_K / low_K)[:, None] ** steps
    shape = (-1, n_divisors)
    means = Span(*(end[:, None].expand(shape).flatten() for end in mean_K))
    n_boxes, extreme = len(means.low), math.sqrt(len(pieces.low_FP) - 1)
    low_KD = torch.zeros(n_boxes, LATER_DIVISORS + len(floors) - 1, dtype=torch.float64)
    high_KD = torch.full_like(low_KD, torch.inf)
    low_KD[:, MEAN], high_KD[:, MEAN] = means
    low_KD[:, DIVISOR], high_KD[:, DIVISOR] = edges_KS[:, :-1].flatten(), edges_KS[:, 1:].flatten()
    # The mean of x is 0, so that the largest is not negative and the smallest not positive.
    low_KD[:, LARGEST], high_KD[:, LARGEST] = 0.0, extreme
    low_KD[:, SMALLEST], high_KD[:, SMALLEST] = -extreme, 0.0
    low_KD[:, LATER_DIVISORS:] = floors[1:]
    return Boxes(low_KD, high_KD)


class Start(NamedTuple):
    """Rows of some boxes after LayerNorm's division, and the embeddings less their mean."""

    boxes: Boxes
    row: NormedRow
    centred_KFP: Span

    def take(self, which: Tensor) -> "Start":
        """Pick some boxes."""
        row = NormedRow(*(Span(*(end[which] for end in span)) for span in self.row))
        return Start(self.boxes.take(which), row, Span(*(end[which] for end in self.centred_KFP)))


def enter(pieces: Pieces, boxes: Boxes, eps: float) -> Start:
    """Normalise the rows of each box; boxes that no row can be in are dropped."""
    p = len(pieces.low_FP)
    mean_K, divisor_K = boxes.side(MEAN), boxes.side(DIVISOR)
    largest_K, smallest_K = boxes.side(LARGEST), boxes.side(SMALLEST)
    near_KFP, far_KFP = _distances(pieces.low_FP, pieces.high_FP, mean_K)
    least_KF = near_KFP.square().amin(2)
    most_K = far_KFP.square().amax(2).mean(1)
    variance_K = (divisor_K.high.square() - eps) * (1 + _ROUNDING) + _ROUNDING * eps
    used_K = least_KF.sum(1)
    # No feature can be further from the mean than what the others leave of p·var, nor than
    # √(p − 1) deviations.
    left_KF = p * variance_K[:, None] - used_K[:, None] + least_KF
    reach_KF = torch.minimum(left_KF, (p - 1) * variance_K[:, None]).clamp(min=0).sqrt()
    below_K, above_K = -smallest_K.low * divisor_K.high, largest_K.high * divisor_K.high
    inside_KF = Span(
        mean_K.low[:, None] - torch.minimum(reach_KF, below_K[:, None]),
        mean_K.high[:, None] + torch.minimum(reach_KF, above_K[:, None]),
    )
    low_KFP, high_KFP = _cut_anew(pieces, inside_KF)
    possible_KFP = (high_KFP >= inside_KF.low[:, :, None]) & (low_KFP <= inside_KF.high[:, :, None])
    possible_KFP &= low_KFP <= high_KFP
    feasible_K = (
        possible_KFP.any(2).all(1)
        & (used_K <= p * variance_K)
        & ((most_K + eps) * (1 + _ROUNDING) >= divisor_K.low.square())
        & _extremes_fit(largest_K, smallest_K, p)
    )
    # What cannot occur is replaced by a copy of what can: no mask is needed later.
    first_KF1 = possible_KFP.to(torch.int8).argmax(2, keepdim=True)
    low_KFP = torch.where(possible_KFP, low_KFP, low_KFP.gather(2, first_KF1))
    high_KFP = torch.where(possible_KFP, high_KFP, high_KFP.gather(2, first_KF1))
    feasible_K &= low_KFP.amin(2).mean(1) <= mean_K.high + _ROUNDING * mean_K.high.abs()
    feasible_K &= high_KFP.amax(2).mean(1) >= mean_K.low - _ROUNDING * mean_K.low.abs()

    boxes = boxes.take(feasible_K)
    low_KFP, high_KFP = low_KFP[feasible_K], high_KFP[feasible_K]
    mean_K, divisor_K = boxes.side(MEAN), boxes.side(DIVISOR)
    lowest_K = (used_K[feasible_K] / p + eps).sqrt() * (1 - _ROUNDING)
    highest_K = (most_K[feasible_K] + eps).sqrt() * (1 + _ROUNDING)
    divisor_K = Span(
        torch.maximum(divisor_K.low, lowest_K), torch.minimum(divisor_K.high, highest_K)
    )
    divisor_K = Span(torch.minimum(divisor_K.low, divisor_K.high), divisor_K.high)
    centred = Span(low_KFP - mean_K.high[:, None, None], high_KFP - mean_K.low[:, None, None])
    divisor = Span(divisor_K.low[:, None, None], divisor_K.high[:, None, None])
    x_KFP = centred.over(divisor)
    lowest_K11, highest_K11 = (
        boxes.low_KD[:, SMALLEST, None, None],
        boxes.high_KD[:, LARGEST, None, None],
    )
    x_KFP = Span(
        torch.minimum(torch.maximum(x_KFP.low, lowest_K11), highest_K11),
        torch.minimum(torch.maximum(x_KFP.high, lowest_K11), highest_K11),
    )
    square_K = Span(
        (1 - eps / divisor_K.low.square()).clamp(min=0),
        (1 - eps / divisor_K.high.square()).clamp(min=0),
    )
    row = NormedRow(x_KFP, square_K, boxes.side(LARGEST), boxes.side(SMALLEST))
    start = Start(boxes.with_side(DIVISOR, divisor_K), row, centred)
    # Some feature must reach the largest and the smallest value.
    reached_K = x_KFP.high.amax((1, 2)) >= boxes.low_KD[:, LARGEST] * (1 - _ROUNDING)
    reached_K &= x_KFP.low.amin((1, 2)) <= boxes.high_KD[:, SMALLEST] * (1 - _ROUNDING)
    return start.take(reached_K)


def _extremes_fit(largest_K: Span, smallest_K: Span, p: int) -> Tensor:
    """Whether p numbers with mean 0 and mean square below 1 can have such extremes.

    Two of them are at least u and −v from 0; the others cancel their sum, with squares of at
    least (u − v)²/(p − 2).
    """
    u_K, v_K = largest_K.low, -smallest_K.high
    cancelled_K = (u_K - v_K).square() / max(p - 2, 1) if p > 2 else torch.zeros_like(u_K)
    # The two ends may be anywhere in their ranges: cancel only what is certain.
    certain_K = torch.maximum(u_K + smallest_K.low, -largest_K.high + v_K).clamp(min=0)
    cancelled_K = torch.minimum(cancelled_K, certain_K.square() / max(p - 2, 1))
    return u_K.square() + v_K.square() + cancelled_K <= p * (1 + _ROUNDING)


def _distances(low_FP: Tensor, high_FP: Tensor, mean_K: Span) -> tuple[Tensor, Tensor]:
    """Smallest and largest distance between each piece and the mean: ``(K, F, P)``."""
    above = high_FP - mean_K.low[:, None, None]
    below = mean_K.high[:, None, None] - low_FP
    near_KFP = torch.maximum(
        low_FP - mean_K.high[:, None, None], mean_K.low[:, None, None] - high_FP
    )
    return near_KFP.clamp(min=0), torch.maximum(above, below)


def _cut_anew(pieces: Pieces, inside_KF: Span) -> tuple[Tensor, Tensor]:
    """Cut what is left of each interval evenly, so that narrow boxes get narrow pieces."""
    n_pieces = pieces.low_FP.shape[1]
    n_cut_F1 = pieces.n_cut_F.clamp(min=1)[:, None]
    place_P = torch.arange(n_pieces)
    is_cut_FP = place_P < pieces.n_cut_F[:, None]
    last_F = (pieces.n_cut_F - 1).clamp(min=0)
    low_KF = torch.maximum(pieces.low_FP[:, 0], inside_KF.low)
    high_KF = torch.minimum(pieces.high_FP.gather(1, last_F[:, None])[:, 0], inside_KF.high)
    width_KF = high_KF - low_KF
    low_KFP = low_KF[:, :, None] + width_KF[:, :, None] * (place_P / n_cut_F1)
    high_KFP = low_KF[:, :, None] + width_KF[:, :, None] * ((place_P + 1) / n_cut_F1)
    high_KFP = torch.where(place_P + 1 == n_cut_F1, high_KF[:, :, None], high_KFP)
    return (
        torch.where(is_cut_FP, low_KFP, pieces.low_FP),
        torch.where(is_cut_FP, high_KFP, pieces.high_FP),
    )
