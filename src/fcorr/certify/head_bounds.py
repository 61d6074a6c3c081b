r"""The prediction head on boxes of rows.

The head starts from a LayerNorm: its input lies on the sphere ‖x‖ ≤ √p, orthogonal to the vector of
ones, and within the ranges of its features. A linear function ``r·x`` is therefore at most
``√p ‖r − r̄‖`` and at most what the ranges allow, whichever is less.

Through a GELU, values and changes are carried as *linear part plus remainder*: GELU is replaced by
a line with a strip around it, its slope by the middle of its range with a margin. The linear parts
of successive layers are multiplied out before any absolute value is taken, so that what cancels
between neurons cancels in the bound as well.
"""

import math
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from fcorr.certify.encoder_bounds import Normed, norm_parameters
from fcorr.certify.gelu_ranges import gelu_slope_span
from fcorr.certify.intervals import Span
from fcorr.certify.layer_norm import Sway
from fcorr.certify.rows import hull
from fcorr.nn.layers import FeedForward

_N_POINTS = 33  # at which GELU is compared with its line


class HeadBounds(NamedTuple):
    """Range of each output, and the largest size of its slope along the moving embedding."""

    range_KO: Span
    slope_KO: Tensor


class _Linear(NamedTuple):
    """``coefficients · x + constant ± margin`` for each neuron: ``(K, N, F)`` and ``(K, N)``."""

    coefficients_KNF: Tensor
    constant_KN: Tensor
    margin_KN: Tensor

    def mapped(self, weight_ON: Tensor, bias_O: Tensor | None) -> "_Linear":
        constant_KO = self.constant_KN @ weight_ON.T
        return _Linear(
            weight_ON @ self.coefficients_KNF,
            constant_KO if bias_O is None else constant_KO + bias_O,
            self.margin_KN @ weight_ON.abs().T,
        )


def bound_head(head: FeedForward, norm: nn.LayerNorm, normed: Normed, moving: int) -> HeadBounds:
    """Bound the outputs and their change.

    Parameters
    ----------
    head : FeedForward
        The head; its dropout is off.
    norm : nn.LayerNorm
        The LayerNorm before it.
    normed : Normed
        What that LayerNorm puts out before its weights.
    moving : int
        Position of the moving feature.
    """
    weight_F, bias_F = norm_parameters(norm)
    x_KF = hull(normed.row.x_KFP)
    n_boxes, p = x_KF.low.shape
    nothing_KF = torch.zeros_like(x_KF.low)
    value = _Linear(torch.diag(weight_F).expand(n_boxes, p, p), bias_F + nothing_KF, nothing_KF)
    change = _Linear(value.coefficients_KNF, nothing_KF, nothing_KF)
    layers = [cast(nn.Linear, layer) for layer in head.hidden] + [head.output]
    for i, layer in enumerate(layers):
        layer_weight, layer_bias = layer.weight.detach().double(), layer.bias.detach().double()
        if i == 0:  # a product with a diagonal matrix, written out
            first = (layer_weight * weight_F).expand(n_boxes, -1, -1)
            zero = torch.zeros(n_boxes, len(layer_bias), dtype=first.dtype)
            value = _Linear(first, zero + layer_bias + layer_weight @ bias_F, zero)
            change = _Linear(first, zero, zero)
        else:
            value, change = (
                value.mapped(layer_weight, layer_bias),
                change.mapped(layer_weight, None),
            )
        range_KN = _value_range(value, x_KF)
        size_KN = _change_size(change, normed.sway, moving)
        if i == len(layers) - 1:
            return HeadBounds(range_KN, size_KN)
        value = _through_gelu(value, range_KN)
        slope_KN = gelu_slope_span(range_KN)
        change = _Linear(
            slope_KN.middle[:, :, None] * change.coefficients_KNF,
            change.constant_KN,
            slope_KN.middle.abs() * change.margin_KN + slope_KN.radius * size_KN,
        )
    raise AssertionError("the head has an output layer")


def _value_range(value: _Linear, x_KF: Span) -> Span:
    """Range over the sphere and over the ranges, with and without the mean coefficient."""
    centred_KNF = value.coefficients_KNF - value.coefficients_KNF.mean(2, keepdim=True)
    root = math.sqrt(x_KF.low.shape[1])
    sphere_KN = root * centred_KNF.norm(dim=2)
    low_KN, high_KN = -sphere_KN, sphere_KN
    for coefficients_KNF in (value.coefficients_KNF, centred_KNF):
        middle_KN = (coefficients_KNF @ x_KF.middle[:, :, None])[:, :, 0]
        radius_KN = (coefficients_KNF.abs() @ x_KF.radius[:, :, None])[:, :, 0]
        low_KN = torch.maximum(low_KN, middle_KN - radius_KN)
        high_KN = torch.minimum(high_KN, middle_KN + radius_KN)
    high_KN = torch.maximum(low_KN, high_KN)
    return Span(
        low_KN + value.constant_KN - value.margin_KN, high_KN + value.constant_KN + value.margin_KN
    )


def _change_size(change: _Linear, sway: Sway, moving: int) -> Tensor:
    """Largest size of the change: the moving feature's, plus that of the others."""
    own_KN = change.coefficients_KNF[:, :, moving].abs() * sway.own_K.magnitude[:, None]
    size_KNF = change.coefficients_KNF.abs()
    by_entry_KN = (size_KNF @ sway.others_KF[:, :, None])[:, :, 0]
    elsewhere_KNF = size_KNF.clone()
    elsewhere_KNF[:, :, moving] = 0
    by_norm_KN = elsewhere_KNF.norm(dim=2) * sway.norm_K[:, None]
    whole_KN = size_KNF.norm(dim=2) * sway.total_K[:, None]
    apart_KN = own_KN + torch.minimum(by_entry_KN, by_norm_KN)
    return torch.minimum(apart_KN, whole_KN) + change.margin_KN


def _through_gelu(value: _Linear, range_KN: Span) -> _Linear:
    """Replace GELU on each range by its chord and a strip that holds it.

    The strip is found at points; between two of them GELU can leave it by at most half their
    distance times the largest difference of the slopes.
    """
    low, width = range_KN.low, (range_KN.high - range_KN.low).clamp(min=1e-12)
    chord = (gelu(low + width) - gelu(low)) / width
    slope = gelu_slope_span(Span(low, low + width))
    steepest = torch.maximum(slope.high - chord, chord - slope.low)
    points = torch.linspace(0, 1, _N_POINTS, dtype=low.dtype)
    at = low[:, :, None] + width[:, :, None] * points
    strip = gelu(at) - chord[:, :, None] * at
    margin = steepest * width / (2 * (_N_POINTS - 1))
    lowest, highest = strip.amin(2) - margin, strip.amax(2) + margin
    return _Linear(
        chord[:, :, None] * value.coefficients_KNF,
        chord * value.constant_KN + (lowest + highest) / 2,
        chord.abs() * value.margin_KN + (highest - lowest) / 2,
    )
