"""Exact ranges of GELU and of its slope on intervals."""

import math

import torch
from torch import Tensor
from torch.nn.functional import gelu

from fcorr.certify.intervals import Span

_LOWEST_AT = -0.7517915246935645  # where the slope of GELU is 0
_LOWEST = -0.16997120747990369
_STEEPEST_AT = math.sqrt(2)  # where the slope is largest; at the negative of it, smallest
_STEEPEST = 1.1289041451851552
_FALLING = 1 - _STEEPEST


def gelu_slope(x: Tensor) -> Tensor:
    """Compute the derivative of GELU: ``Φ(x) + x φ(x)``."""
    density = torch.exp(-0.5 * x.square()) / math.sqrt(2 * math.pi)
    return torch.special.ndtr(x) + x * density


def gelu_span(x: Span) -> Span:
    """Range of GELU: it falls down to its only minimum and rises from there."""
    low, high = gelu(x.low), gelu(x.high)
    inside = (x.low < _LOWEST_AT) & (x.high > _LOWEST_AT)
    lowest = torch.minimum(low, high).masked_fill(inside, _LOWEST)
    return Span(lowest, torch.maximum(low, high))


def gelu_slope_span(x: Span) -> Span:
    """Range of GELU's slope: it rises between −√2 and √2 and falls elsewhere."""
    low, high = gelu_slope(x.low), gelu_slope(x.high)
    lowest, highest = torch.minimum(low, high), torch.maximum(low, high)
    has_trough = (x.low < -_STEEPEST_AT) & (x.high > -_STEEPEST_AT)
    has_peak = (x.low < _STEEPEST_AT) & (x.high > _STEEPEST_AT)
    return Span(lowest.masked_fill(has_trough, _FALLING), highest.masked_fill(has_peak, _STEEPEST))
