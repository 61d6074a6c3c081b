"""From numbers to places: round ticks, and axes that know where a value goes."""

import math
from typing import NamedTuple

TINY = 1e-300  # the scale of all-zero values is set to one


class Axis(NamedTuple):
    """A straight scale: `low` at 0 pixels, `high` at `length`, and the ticks between them."""

    low: float
    high: float
    length: float
    most_ticks: int = 6

    def place(self, value: float) -> float:
        """Return how far along the axis a value lies.

        Examples
        --------
        >>> Axis(0, 2, 300).place(0.5)
        75.0
        """
        return (value - self.low) / (self.high - self.low) * self.length

    def ticks(self) -> list[tuple[float, str]]:
        """List round values as distances and texts.

        Examples
        --------
        >>> Axis(0, 1, 100, most_ticks=2).ticks()
        [(0.0, '0.0'), (50.0, '0.5'), (100.0, '1.0')]
        """
        shown = round_ticks(self.low, self.high, most=self.most_ticks)
        return [(self.place(tick), text) for tick, text in shown]


def round_ticks(low: float, high: float, *, most: int) -> list[tuple[float, str]]:
    """Choose round numbers between two bounds, with zero among them if it lies there.

    Examples
    --------
    >>> round_ticks(-2.5, 2.5, most=7)
    [(-2.0, '−2'), (-1.0, '−1'), (0.0, '0'), (1.0, '1'), (2.0, '2')]
    >>> [text for _, text in round_ticks(0, 0.83, most=6)]
    ['0.0', '0.2', '0.4', '0.6', '0.8']
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if 1e-4 <= step < 1e7:
        form = f",.{max(0, -math.floor(math.log10(step) + 1e-9))}f"
    else:
        form = ".1e"
    ticks = [i * step for i in range(first, last + 1)]
    return [(tick, f"{tick:{form}}".replace("-", "−")) for tick in ticks]


def clip(value: float, low: float, high: float) -> float:
    """Return the number between two bounds that is nearest to a value."""
    return max(low, min(high, value))
