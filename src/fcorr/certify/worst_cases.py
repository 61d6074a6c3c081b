r"""The largest change that a flip of one feature can make, over all inputs of a domain.

Exchanging the value moves one number, the feature's embedding e_σ, along a line. By the mean
value theorem

    |f(x, s) − f(x, s′)| ≤ sup |∂f/∂e_σ| · |e_σ(s) − e_σ(s′)|,

the supremum over all rows and all values of e_σ between the two. It is bounded stage by stage
(:mod:`~fcorr.certify.layer_norm`, :mod:`~fcorr.certify.attention_bounds`,
:mod:`~fcorr.certify.encoder_bounds`, :mod:`~fcorr.certify.head_bounds`) on boxes that cover the
domain (:mod:`~fcorr.certify.boxes`), and the boxes with the largest bound are cut further. Most
depends on how small the numbers can be that LayerNorms divide by
(:mod:`~fcorr.certify.covariances`). The bound is linear in the gap between the embeddings: it is
exactly 0 where they are equal. No change can exceed the range of the output either; where that is
the better of the two, the bound says nothing about the flip, and is called vacuous.

Everything is computed in float64 for the function in exact arithmetic whose weights are the stored
float32 numbers. ``_ROUNDING`` is an allowance for the rounding of these computations, far above
float64's own; predictions in float32 differ from exact arithmetic by their own rounding.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from fcorr._core import InvalidInputError
from fcorr.certify.boxes import DIVISOR, LATER_DIVISORS, Boxes, Start, cover, enter, join, scales_of
from fcorr.certify.domain import Domain, Pieces, embedding_gap, embedding_pieces
from fcorr.certify.encoder_bounds import Normed, bound_layer
from fcorr.certify.exactness import check_sensitive
from fcorr.certify.head_bounds import HeadBounds, bound_head
from fcorr.certify.intervals import Span
from fcorr.certify.layer_norm import Sway, norm_sway
from fcorr.nn.fcorr import FCorrEncoderLayer, FCorrTransformer

_ROUNDING = 1e-9
_CHUNK_NUMBERS = 2**18  # entries of the arrays of one chunk of boxes
_N_SPLIT = 64  # boxes cut further in each round


@dataclass(frozen=True)
class WorstCase:
    """Bounds for one feature; one entry per output of the model.

    Attributes
    ----------
    gap : float
        Largest difference between the embeddings of two of the feature's values.
    slope : tuple of float
        Bound on the size of the output's derivative by the embedding; may be inf.
    low, high : tuple of float
        Range of the output over the domain: no output lies outside.
    """

    gap: float
    slope: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def by_slope(self) -> tuple[float, ...]:
        """Bound on the change of each output, from its slope."""
        return tuple(self.gap * slope if self.gap else 0.0 for slope in self.slope)

    @property
    def by_range(self) -> tuple[float, ...]:
        """Bound on the change of each output, from its range."""
        return tuple(high - low for low, high in zip(self.low, self.high, strict=True))


@torch.no_grad()
def worst_case(
    model: FCorrTransformer,
    feature: int,
    domain: Domain | None = None,
    *,
    n_pieces: int = 8,
    effort: int = 2**17,
) -> WorstCase:
    """Bound the change of the outputs when one feature changes, all others fixed.

    Parameters
    ----------
    model : FCorrTransformer
        The model, on the CPU.
    feature : int
        Position of the feature; numeric ones follow the categorical ones.
    domain : Domain, optional
        The inputs; by default every category and every number.
    n_pieces : int, default=8
        Pieces that each feature's values are cut into: more is tighter and slower.
    effort : int, default=2**17
        How far to go on cutting boxes, in pieces looked at: more is tighter and slower.
    """
    check_sensitive(model, [feature])
    domain = domain or Domain()
    pieces = embedding_pieces(model, domain, feature, n_pieces)
    floors = domain.floors(2 * len(model.layers) + 1)
    start = cover(pieces, scales_of(model.first_layer.attention_norm), floors)
    boxes, bounds = _bound_boxes(model, pieces, start, feature)
    gap = embedding_gap(model, feature, domain)
    n_left = effort // pieces.low_FP.numel() if gap else 0
    while n_left > 0 and len(boxes):
        order = bounds.slope_KO.amax(1).argsort(descending=True)
        chosen, kept = order[:_N_SPLIT], order[_N_SPLIT:]
        parts, part_bounds = _bound_boxes(model, pieces, boxes.take(chosen).split(), feature)
        boxes = join([boxes.take(kept), parts])
        bounds = _join([_take(bounds, kept), part_bounds])
        n_left -= 2 * len(chosen)
    if not len(boxes):
        raise InvalidInputError(
            "domain must hold at least one row, got min_divisors that no row of it reaches. "
            "Lower them."
        )
    return WorstCase(
        gap,
        _numbers(bounds.slope_KO.amax(0) * (1 + _ROUNDING)),
        _numbers(_outwards(bounds.range_KO.low.amin(0), -1)),
        _numbers(_outwards(bounds.range_KO.high.amax(0), 1)),
    )


def _bound_boxes(
    model: FCorrTransformer, pieces: Pieces, boxes: Boxes, feature: int
) -> tuple[Boxes, HeadBounds]:
    chunk = max(1, _CHUNK_NUMBERS // pieces.low_FP.numel())
    done = [
        _bound_chunk(model, pieces, boxes.take(which), feature)
        for which in torch.arange(len(boxes)).split(chunk)
    ]
    return join([part for part, _ in done]), _join([bounds for _, bounds in done])


def _bound_chunk(
    model: FCorrTransformer, pieces: Pieces, boxes: Boxes, feature: int
) -> tuple[Boxes, HeadBounds]:
    start = enter(pieces, boxes, scales_of(model.first_layer.attention_norm))
    boxes = start.boxes
    if not len(boxes):
        nothing_KO = torch.zeros(0, model.head.output.out_features, dtype=torch.float64)
        return boxes, HeadBounds(Span(nothing_KO, nothing_KO), nothing_KO)
    norms, bounds = run_stages(model, start, feature)
    for i, normed in enumerate(norms[1:]):
        boxes = boxes.with_side(LATER_DIVISORS + i, normed.divisor_K)
    divisors = [normed.divisor_K for normed in norms]
    has_rows_K = ~torch.stack([s.low > s.high * (1 + _ROUNDING) for s in divisors]).any(0)
    # A bound that overflowed is no bound; NaN must not pass for a small number.
    low_KO, high_KO = bounds.range_KO
    known = HeadBounds(
        Span(
            torch.where(low_KO < torch.inf, low_KO, -torch.inf),
            torch.where(high_KO > -torch.inf, high_KO, torch.inf),
        ),
        torch.where(bounds.slope_KO >= 0, bounds.slope_KO, torch.inf),
    )
    return boxes.take(has_rows_K), _take(known, has_rows_K)


def run_stages(
    model: FCorrTransformer, start: Start, feature: int
) -> tuple[list[Normed], HeadBounds]:
    """Follow rows from the first LayerNorm to the outputs: every LayerNorm's, then the head's."""
    boxes = start.boxes
    ones_K = torch.ones(len(boxes), dtype=torch.float64)
    nothing_KF = torch.zeros_like(start.row.x_KFP.low[:, :, 0])
    alone = Sway(Span(ones_K, ones_K), nothing_KF, 0 * ones_K, ones_K)
    divisor_K = boxes.side(DIVISOR)
    moved = norm_sway(alone, start.row, divisor_K, feature)
    norms = [Normed(start.row, divisor_K, start.centred_KFP, alone, moved)]
    layers = [layer for layer in model.layers if isinstance(layer, FCorrEncoderLayer)]
    next_norms = [layer.attention_norm for layer in layers[1:]] + [model.head_norm]
    for i, (layer, next_norm) in enumerate(zip(layers, next_norms, strict=True)):
        side = LATER_DIVISORS + 2 * i
        divisors = (boxes.side(side), boxes.side(side + 1))
        norms += bound_layer(layer, norms[-1], feature, next_norm.eps, divisors)
    return norms, bound_head(model.head, model.head_norm, norms[-1], feature)


def _take(bounds: HeadBounds, which: Tensor) -> HeadBounds:
    low, high = bounds.range_KO
    return HeadBounds(Span(low[which], high[which]), bounds.slope_KO[which])


def _join(bounds: list[HeadBounds]) -> HeadBounds:
    return HeadBounds(
        Span(
            torch.cat([b.range_KO.low for b in bounds]),
            torch.cat([b.range_KO.high for b in bounds]),
        ),
        torch.cat([b.slope_KO for b in bounds]),
    )


def _outwards(values: Tensor, side: int) -> Tensor:
    return values + side * _ROUNDING * (1 + values.abs())


def _numbers(values: Tensor) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
