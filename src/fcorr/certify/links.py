"""From a change of the score to a change of the prediction."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fcorr._core import InvalidInputError

LinkName = Literal["identity", "sigmoid", "softmax", "exp"]


@dataclass(frozen=True)
class Link:
    """How predictions come from scores: ``scale · function(score + offset)``.

    Attributes
    ----------
    name : {"identity", "sigmoid", "softmax", "exp"}
        The function. ``"softmax"`` is for several outputs, the others for one.
    scale : float, default=1.0
        Unit of the prediction, positive; 1 for probabilities.
    offset : float, default=0.0
        Constant added to the score; of no effect on softmax.

    Examples
    --------
    >>> round(Link("sigmoid").largest_change([0.02], [-9.0], [9.0]), 6)
    0.005
    """

    name: LinkName
    scale: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in ("identity", "sigmoid", "softmax", "exp"):
            raise InvalidInputError(
                f"link must be 'identity', 'sigmoid', 'softmax' or 'exp', got {self.name!r}."
            )
        if not self.scale > 0:
            raise InvalidInputError(f"scale must be positive, got {self.scale!r}.")

    def largest_change(
        self, change: Sequence[float], low: Sequence[float], high: Sequence[float]
    ) -> float:
        r"""Bound the change of the prediction, given bounds on each score's change and range.

        - identity: the change itself.
        - sigmoid: ``|σ(a) − σ(b)| ≤ tanh(|a − b|/4)``, with equality for a = −b. Where all scores
          lie on one side of 0 the slope σ′ at the end nearer to 0 may be less.
        - softmax: the logit of a class changes by at most the difference between two scores'
          changes, so the same with the two largest changes added up.
        - exp: ``e^a − e^b ≤ e^{high} (1 − e^{−|a − b|})`` for a, b ≤ high.
        """
        if all(size == 0 for size in change):
            return 0.0
        if self.name == "softmax":
            return self.scale * math.tanh(sum(sorted(change)[-2:]) / 4)
        size, bottom, top = change[0], low[0] + self.offset, high[0] + self.offset
        if self.name == "identity":
            return self.scale * size
        if self.name == "exp":
            return self.scale * _exp(top) * -math.expm1(-size)
        nearest = 0.0 if bottom <= 0 <= top else min(abs(bottom), abs(top))
        slope = 0.25 / math.cosh(min(nearest / 2, 300.0)) ** 2
        return self.scale * min(math.tanh(size / 4), slope * size)

    def width(self, low: Sequence[float], high: Sequence[float]) -> float:
        """Bound the change by the range of the score alone: the trivial bound."""
        if self.name == "softmax":
            return self.scale
        bottom, top = low[0] + self.offset, high[0] + self.offset
        if self.name == "identity":
            return self.scale * (top - bottom)
        if self.name == "exp":
            return self.scale * (_exp(top) - _exp(bottom))
        return self.scale * (_sigmoid(top) - _sigmoid(bottom))


def _exp(x: float) -> float:
    return math.exp(x) if x < 709 else math.inf


def _sigmoid(x: float) -> float:
    return 1 / (1 + _exp(-x))
