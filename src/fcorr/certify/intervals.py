"""Interval arithmetic on tensors: the few rules that the bounds need."""

from typing import NamedTuple

import torch
from torch import Tensor


class Span(NamedTuple):
    """Intervals ``[low, high]``, one per entry."""

    low: Tensor
    high: Tensor

    @property
    def middle(self) -> Tensor:
        """Centre of each interval."""
        return (self.low + self.high) / 2

    @property
    def radius(self) -> Tensor:
        """Half the width of each interval."""
        return (self.high - self.low) / 2

    @property
    def magnitude(self) -> Tensor:
        """Largest absolute value in each interval."""
        return torch.maximum(self.low.abs(), self.high.abs())

    def plus(self, other: "Span") -> "Span":
        """Sum of two independent intervals."""
        return Span(self.low + other.low, self.high + other.high)

    def times(self, other: "Span") -> "Span":
        """Product of two independent intervals."""
        corners = torch.stack(
            torch.broadcast_tensors(
                self.low * other.low,
                self.low * other.high,
                self.high * other.low,
                self.high * other.high,
            )
        )
        return Span(corners.amin(0), corners.amax(0))

    def scaled(self, factor: Tensor) -> "Span":
        """Product with known numbers of either sign."""
        a, b = self.low * factor, self.high * factor
        return Span(torch.minimum(a, b), torch.maximum(a, b))

    def shifted(self, offset: Tensor) -> "Span":
        """Sum with known numbers."""
        return Span(self.low + offset, self.high + offset)

    def over(self, divisor: "Span") -> "Span":
        """Quotient by positive intervals."""
        low = torch.where(self.low < 0, self.low / divisor.low, self.low / divisor.high)
        high = torch.where(self.high > 0, self.high / divisor.low, self.high / divisor.high)
        return Span(low, high)

    def clipped(self, limit: Tensor | float) -> "Span":
        """Intersection with ``[-limit, limit]``, which is known to hold the value."""
        edge = torch.as_tensor(limit, dtype=self.low.dtype)
        return Span(*(torch.minimum(torch.maximum(end, -edge), edge) for end in self))
