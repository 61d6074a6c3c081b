"""Logarithmic axes, with places at their ends for what has no logarithm: 0, ∞, and names."""

import math
from collections.abc import Iterable
from typing import NamedTuple

END = 34.0  # pixels that a place at an end takes, with its distance to the next


class LogAxis(NamedTuple):
    """Powers of ten at equal distances, between named places that are no numbers.

    Attributes
    ----------
    low, high : int
        The lowest and the highest power of ten; equal where there is no number to show.
    length : float
        Pixels from the first place to the last.
    before, after : tuple of str
        Places below and above the numbers, in their order along the axis.
    end : float
        Pixels for each of these places.
    """

    low: int
    high: int
    length: float
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    end: float = END

    def place(self, value: float | str) -> float:
        """Return how far along the axis a number or a named place lies.

        Examples
        --------
        >>> axis = LogAxis(0, 2, 270, before=("0",), after=("exact",))
        >>> [round(axis.place(value)) for value in (0, 1, 10, 100, "exact")]
        [0, 34, 135, 236, 270]
        """
        if value == 0:
            value = "0"
        elif value == math.inf:
            value = "∞"
        if isinstance(value, str):
            if value in self.before:
                return self.before.index(value) * self.end
            return self.length - (len(self.after) - 1 - self.after.index(value)) * self.end
        if self.high == self.low:
            return self._start
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self._start + share * (self._stop - self._start)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """List powers of ten and the named places as distances and texts.

        Examples
        --------
        >>> [text for _, text in LogAxis(-4, 2, 300, before=("0",)).ticks(most=4)]
        ['0', '1e−4', '0.01', '1', '100']
        """
        step = max(1, math.ceil((self.high - self.low) / most))
        powers = range(self.low, self.high + 1, step) if self.has_numbers else ()
        return [
            *((self.place(name), name) for name in self.before),
            *((self.place(10.0**power), power_text(power)) for power in powers),
            *((self.place(name), name) for name in self.after),
        ]

    @property
    def has_numbers(self) -> bool:
        """Whether there is a range of numbers."""
        return self.high > self.low

    @property
    def _start(self) -> float:
        return len(self.before) * self.end

    @property
    def _stop(self) -> float:
        return self.length - len(self.after) * self.end


def power_text(power: int) -> str:
    """Write a power of ten.

    Examples
    --------
    >>> [power_text(power) for power in (-6, -2, 0, 3, 6)]
    ['1e−6', '0.01', '1', '1,000', '1e6']
    """
    if -3 <= power <= 3:
        return f"{10.0**power:,.{max(0, -power)}f}"
    return f"1e{power}".replace("-", "−")


def log_axis(
    values: Iterable[float],
    length: float,
    *,
    after: tuple[str, ...] = (),
    end: float = END,
) -> LogAxis:
    """Choose the powers of ten around some numbers; 0 and infinity get places of their own.

    Examples
    --------
    >>> log_axis([0.0, 0.02, 3.0], 300)
    LogAxis(low=-2, high=1, length=300, before=('0',), after=(), end=34.0)
    """
    values = list(values)
    powers = [math.log10(value) for value in values if 0 < value < math.inf]
    low, high = 0, 0
    if powers:
        low, high = math.floor(min(powers) + 1e-9), math.ceil(max(powers) - 1e-9)
        high = max(high, low + 1)
    zero = ("0",) if 0 in values else ()
    infinity = ("∞",) if math.inf in values else ()
    return LogAxis(low, high, length, zero, infinity + after, end)
