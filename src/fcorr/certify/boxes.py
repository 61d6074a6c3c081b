r"""Boxes of rows: the domain, cut by a few numbers that a row has as a whole.

The first LayerNorm is affine once the row's mean μ and its divisor s are known:
``x_i = (e_i − μ)/s``. So the domain is cut by these two, and within a box every feature's normed
value lies in a narrow interval, whatever p is. The rows of a box also obey
``Σ (e_i − μ)² = p·var``: a box that no row can be in is dropped, and so is a piece of a feature
that no row of it can use. Two more numbers are the largest and the smallest of what the LayerNorm
passes on, ``z_i = weight_i x_i + bias_i``, since features far out are what makes attention uneven;
the others are the divisors of the LayerNorms that follow.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

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


class Scales(NamedTuple):
    """A LayerNorm's own numbers, in float64."""

    eps: float
    weight_F: Tensor
    bias_F: Tensor


def scales_of(norm: nn.LayerNorm) -> Scales:
    """Read a LayerNorm."""
    return Scales(norm.eps, norm.weight.detach().double(), norm.bias.detach().double())


def cover(pieces: Pieces, norm: Scales, floors: Tensor) -> Boxes:
    """Cover all rows of a domain with boxes.

    Parameters
    ----------
    pieces : Pieces
        The domain.
    norm : Scales
        The first LayerNorm.
    floors : Tensor
        Smallest divisor of each LayerNorm; rows with a smaller one are left out.
    """
    eps, weight_F, bias_F = norm
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
    # The mean of z is within the weights' deviation of the biases' mean, as that of x is 0.
    middle, deviation = bias_F.mean(), weight_F.std(correction=0)
    low_KD = torch.zeros(n_boxes, LATER_DIVISORS + len(floors) - 1, dtype=torch.float64)
    high_KD = torch.full_like(low_KD, torch.inf)
    low_KD[:, MEAN], high_KD[:, MEAN] = means
    low_KD[:, DIVISOR], high_KD[:, DIVISOR] = edges_KS[:, :-1].flatten(), edges_KS[:, 1:].flatten()
    farthest_F = weight_F.abs() * extreme
    slack = _ROUNDING * (1 + bias_F.abs().max() + farthest_F.max())
    low_KD[:, LARGEST] = middle - deviation - slack
    high_KD[:, LARGEST] = (bias_F + farthest_F).max() + slack
    low_KD[:, SMALLEST] = (bias_F - farthest_F).min() - slack
    high_KD[:, SMALLEST] = middle + deviation + slack
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


def enter(pieces: Pieces, boxes: Boxes, norm: Scales) -> Start:
    """Normalise the rows of each box; boxes that no row can be in are dropped."""
    eps, weight_F, bias_F = norm
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
    # weight · x + bias lies between the box's smallest and largest.
    allowed_KF = _unweighted(smallest_K.low, largest_K.high, norm)
    divisor_KF = Span(divisor_K.low[:, None], divisor_K.high[:, None])
    offset_KF = allowed_KF.times(divisor_KF)
    inside_KF = Span(
        mean_K.low[:, None] + torch.maximum(-reach_KF, offset_KF.low),
        mean_K.high[:, None] + torch.minimum(reach_KF, offset_KF.high),
    )
    low_KFP, high_KFP = _cut_anew(pieces, inside_KF)
    possible_KFP = (high_KFP >= inside_KF.low[:, :, None]) & (low_KFP <= inside_KF.high[:, :, None])
    possible_KFP &= low_KFP <= high_KFP
    feasible_K = (
        possible_KFP.any(2).all(1)
        & (used_K <= p * variance_K)
        & ((most_K + eps) * (1 + _ROUNDING) >= divisor_K.low.square())
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
    x_KFP = x_KFP.clipped(math.sqrt(max(p - 1, 1)))
    limits = tuple(end[feasible_K][:, :, None] for end in allowed_KF)
    x_KFP = Span(*(torch.minimum(torch.maximum(end, limits[0]), limits[1]) for end in x_KFP))
    # Σ x² < p: no number can be larger than what the others' smallest squares leave.
    straddles_KFP = (x_KFP.low <= 0) & (x_KFP.high >= 0)
    nearest_KFP = torch.minimum(x_KFP.low.abs(), x_KFP.high.abs()).masked_fill(straddles_KFP, 0)
    least_KF = nearest_KFP.amin(2).square()
    most_KF = (p - least_KF.sum(1, keepdim=True) + least_KF).clamp(min=0).sqrt() * (1 + _ROUNDING)
    x_KFP = x_KFP.clipped(most_KF[:, :, None])
    square_K = Span(
        (1 - eps / divisor_K.low.square()).clamp(min=0),
        (1 - eps / divisor_K.high.square()).clamp(min=0),
    )
    row = NormedRow(x_KFP, square_K, boxes.side(LARGEST), boxes.side(SMALLEST))
    start = Start(boxes.with_side(DIVISOR, divisor_K), row, centred)
    # Some feature must reach the largest and the smallest value.
    z_KFP = x_KFP.scaled(weight_F[:, None]).shifted(bias_F[:, None])
    slack_K = _ROUNDING * (1 + boxes.high_KD[:, LARGEST].abs() + boxes.low_KD[:, SMALLEST].abs())
    reached_K = z_KFP.high.amax((1, 2)) >= boxes.low_KD[:, LARGEST] - slack_K
    reached_K &= z_KFP.low.amin((1, 2)) <= boxes.high_KD[:, SMALLEST] + slack_K
    return start.take(reached_K)


def _unweighted(low_K: Tensor, high_K: Tensor, norm: Scales) -> Span:
    """Return what x can be if ``weight · x + bias`` lies in a range: ``(K, F)``."""
    # A weight of nearly 0 says nothing about x.
    silent_F = norm.weight_F.abs() < 1e-9
    weight_F = norm.weight_F.masked_fill(silent_F, 1.0)
    ends = [(end_K[:, None] - norm.bias_F) / weight_F for end_K in (low_K, high_K)]
    return Span(
        torch.minimum(*ends).masked_fill(silent_F, -torch.inf),
        torch.maximum(*ends).masked_fill(silent_F, torch.inf),
    )


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
