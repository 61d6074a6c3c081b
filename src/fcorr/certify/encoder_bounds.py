"""An encoder layer on boxes of rows: values and changes, stage by stage."""

import math
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from fcorr.certify.attention_bounds import attended_sway, attended_values, tilt_bounds
from fcorr.certify.covariances import (
    StackCovariance,
    attended_covariance,
    attended_spread,
    attention_pull,
    least_variance,
    most_variance,
)
from fcorr.certify.gelu_ranges import gelu_slope_span, gelu_span
from fcorr.certify.intervals import Span
from fcorr.certify.layer_norm import Sway, norm_sway, norm_values
from fcorr.certify.rows import AffineRow, NormedRow
from fcorr.nn.fcorr import FCorrEncoderLayer
from fcorr.nn.layers import ElementwiseLinear


class Normed(NamedTuple):
    """A row between LayerNorm's division and its weights, with the divisor and the change."""

    row: NormedRow
    divisor_K: Span
    values_KFP: Span
    """What was normalised, less its mean: ``divisor · x``."""
    input_sway: Sway
    sway: Sway


def norm_parameters(norm: nn.LayerNorm) -> tuple[Tensor, Tensor]:
    """Weight and bias of a LayerNorm in float64."""
    return norm.weight.detach().double(), norm.bias.detach().double()


def bound_layer(
    layer: FCorrEncoderLayer,
    normed: Normed,
    moving: int,
    next_eps: float,
    divisors: tuple[Span, Span],
) -> tuple[Normed, Normed]:
    """Run a layer from its first LayerNorm up to the LayerNorm that follows the layer.

    Parameters
    ----------
    layer : FCorrEncoderLayer
        The layer.
    normed : Normed
        Output of the layer's own first LayerNorm.
    moving : int
        Position of the moving feature.
    next_eps : float
        ``eps`` of the LayerNorm that takes the layer's output.
    divisors : tuple of two Span
        The divisors that the boxes are about, of the layer's second LayerNorm and of the next.

    Returns
    -------
    attended, output : Normed
        What these two LayerNorms put out before their weights.
    """
    attended = _bound_attention(layer, normed, moving, divisors[0])
    return attended, _bound_stack(layer, attended, moving, next_eps, divisors[1])


def _bound_attention(
    layer: FCorrEncoderLayer, normed: Normed, moving: int, divisor_K: Span
) -> Normed:
    """From the first LayerNorm to the second: ``a = softmax(z zᵀ/√p) z``, plus the residual."""
    weight_F, bias_F = norm_parameters(layer.attention_norm)
    row = normed.row
    tilts = tilt_bounds(row, weight_F, bias_F)
    form = attended_values(tilts, row, weight_F, bias_F)
    values_KFP = form.values(row)
    z_sway = normed.sway.weighted(weight_F, moving)
    sway = attended_sway(tilts, row, weight_F, bias_F, z_sway, moving)
    pull = attention_pull(row, weight_F, bias_F, tilts.shape, tilts.mean_K)
    typical_K = tilts.shape.variance.middle[:, 0, 0] * weight_F.mean() / math.sqrt(len(weight_F))
    covariance_K = attended_covariance(row, weight_F, pull, typical_K)
    kept_K = normed.divisor_K if layer.residual else Span(*[torch.zeros_like(covariance_K)] * 2)
    variance_K = Span(
        least_variance(covariance_K, kept_K.low, row.square_K),
        most_variance(row, pull, kept_K.high, typical_K),
    )
    if layer.residual:
        form = _sum(form, _unnormed(normed))
        values_KFP = values_KFP.plus(normed.values_KFP)
        sway = add_sways(sway, normed.input_sway)
    else:
        spread_K = attended_spread(row, tilts.shape, tilts.mean_K, len(weight_F))
        variance_K = Span(torch.maximum(variance_K.low, spread_K.square()), variance_K.high)
    return _normalise(
        form, row, values_KFP, sway, layer.stack_norm.eps, moving, divisor_K, variance_K
    )


def _bound_stack(
    layer: FCorrEncoderLayer, attended: Normed, moving: int, next_eps: float, divisor_K: Span
) -> Normed:
    """From the second LayerNorm to the one after the layer: ``h = a + stack(LN2(a))``."""
    weight_F, bias_F = norm_parameters(layer.stack_norm)
    row = attended.row
    stack = [cast(ElementwiseLinear, step) for step in layer.stack]
    weight, bias = weight_F[:, None], bias_F[:, None]
    values_KFP, slope_KFP = run_stack(stack, row.x_KFP.scaled(weight).shifted(bias))
    slope_KFP = slope_KFP.scaled(weight)
    middle_KFP = row.x_KFP.middle
    at_middle = run_stack(stack, Span(*[weight * middle_KFP + bias] * 2))[0]
    typical_KFP = slope_KFP.middle
    slack_KFP = slope_KFP.radius * row.x_KFP.radius
    offset_KFP = typical_KFP * middle_KFP
    stacked = AffineRow(
        typical_KFP,
        Span(at_middle.low - offset_KFP - slack_KFP, at_middle.high - offset_KFP + slack_KFP),
    )
    form = _sum(stacked, _unnormed(attended))
    # a itself moves with its normed form: the slopes add up before sizes are taken.
    slope_KF = Span(slope_KFP.low.amin(2), slope_KFP.high.amax(2))
    size_KF = slope_KF.magnitude
    own_slope_K = Span(slope_KF.low[:, moving], slope_KF.high[:, moving])
    elsewhere_KF = size_KF.clone()
    elsewhere_KF[:, moving] = 0
    through_stack = Sway(
        attended.sway.own_K.times(own_slope_K),
        attended.sway.others_KF * size_KF,
        attended.sway.norm_K * elsewhere_KF.amax(1),
        attended.sway.total_K * size_KF.amax(1),
    )
    sway = add_sways(through_stack, attended.input_sway)
    all_values_KFP = values_KFP.plus(attended.values_KFP)
    covariance = StackCovariance(lambda x: _through_stack(layer, x), len(weight_F))
    least_K = least_variance(covariance(row), attended.divisor_K.low, row.square_K)
    known_K = Span(least_K, torch.full_like(least_K, torch.inf))
    return _normalise(form, row, all_values_KFP, sway, next_eps, moving, divisor_K, known_K)


def _through_stack(layer: FCorrEncoderLayer, x: Span) -> tuple[Span, Span]:
    """Range of what the stack adds to a feature and of its slope, for ranges of the normed row."""
    weight, bias = (numbers[:, None] for numbers in norm_parameters(layer.stack_norm))
    stack = [cast(ElementwiseLinear, step) for step in layer.stack]
    values, slope = run_stack(stack, x.scaled(weight).shifted(bias))
    return values, slope.scaled(weight)


def run_stack(stack: list[ElementwiseLinear], x_KFP: Span) -> tuple[Span, Span]:
    """Range of the element-wise stack and of its slope; the range is exact."""
    slope = Span(torch.ones_like(x_KFP.low), torch.ones_like(x_KFP.low))
    for i, step in enumerate(stack):
        if i:
            slope = slope.times(gelu_slope_span(x_KFP))
            x_KFP = gelu_span(x_KFP)
        weight = step.weight.detach().double()[:, None]
        x_KFP = x_KFP.scaled(weight).shifted(step.bias.detach().double()[:, None])
        slope = slope.scaled(weight)
    return x_KFP, slope


def add_sways(a: Sway, b: Sway) -> Sway:
    """Bound the sum of two changes."""
    return Sway(
        a.own_K.plus(b.own_K),
        a.others_KF + b.others_KF,
        a.norm_K + b.norm_K,
        a.total_K + b.total_K,
    ).tightened()


def _unnormed(normed: Normed) -> AffineRow:
    """Write what was normalised, less its mean, as a function of the normed row: ``s · x``."""
    slope_K11 = normed.divisor_K.middle[:, None, None]
    slack_KFP = normed.divisor_K.radius[:, None, None] * normed.row.x_KFP.magnitude
    return AffineRow(slope_K11.expand_as(slack_KFP), Span(-slack_KFP, slack_KFP))


def _sum(a: AffineRow, b: AffineRow) -> AffineRow:
    return AffineRow(a.slope_KFP + b.slope_KFP, a.rest_KFP.plus(b.rest_KFP))


def _normalise(
    form: AffineRow,
    row: NormedRow,
    values_KFP: Span,
    sway: Sway,
    eps: float,
    moving: int,
    divisor_K: Span,
    variance_K: Span | None,
) -> Normed:
    own_KFP = form.values(row)
    values_KFP = Span(
        torch.maximum(values_KFP.low, own_KFP.low), torch.minimum(values_KFP.high, own_KFP.high)
    )
    normed_row, divisor_K, centred_KFP = norm_values(
        form, row, values_KFP, eps, divisor_K, variance_K
    )
    normed_sway = norm_sway(sway, normed_row, divisor_K, moving)
    return Normed(normed_row, divisor_K, centred_KFP, sway, normed_sway)
