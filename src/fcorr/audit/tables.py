"""Tables of numbers as text, for a terminal and for Markdown."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fcorr._core import show_text


class TextTable(NamedTuple):
    """A header and rows of cells, the first column names and the others numbers."""

    header: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """Write the table in Markdown."""
        lines = [[to_markdown(cell) for cell in line] for line in (self.header, *self.rows)]
        lines.insert(1, ["---", *["---:"] * (len(self.header) - 1)])
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def text(self) -> str:
        """Write the table in columns, names to the left and numbers to the right."""
        lines = [[show_text(cell) for cell in line] for line in (self.header, *self.rows)]
        first, *widths = (max(map(len, column)) for column in zip(*lines, strict=True))
        return "\n".join(
            "  ".join(
                [name.ljust(first), *(c.rjust(w) for c, w in zip(cells, widths, strict=True))]
            ).rstrip()
            for name, *cells in lines
        )


def to_markdown(text: str) -> str:
    """Write text such that names from data are no links, no HTML and no end of a table's cell."""
    return re.sub(r"[\\|<\[`]", r"\\\g<0>", show_text(text))


def show_small(value: float | None) -> str:
    """Write a change or a bound, which may be tiny, exactly 0, unknown or without limit.

    Examples
    --------
    >>> [show_small(value) for value in (0.0, 3.21e-8, 0.25, None, float("inf"))]
    ['0', '3.2e-08', '0.25', 'n/a', 'inf']
    """
    if value is None or np.isnan(value):
        return "n/a"
    if value == 0:
        return "0"
    return f"{value:.2g}" if 1e-3 <= abs(value) < 1e6 or np.isinf(value) else f"{value:.1e}"


def show_metric(name: str, values: float | Sequence[float]) -> str:
    """Write a metric of one or several fits, in the digits that its kind needs; n/a for nan.

    Of changes it is the mean, of all else the mean and, of several fits, their deviation.

    Examples
    --------
    >>> show_metric("AUROC", [0.75, 0.77]), show_metric("AvgIF", [1e-7, 3e-7])
    ('0.760 ± 0.010', '2.0e-07')
    """
    mean = float(np.mean(values))
    if np.isnan(mean):
        return "n/a"
    if name == "parameters":
        return f"{mean:,.0f}"
    if name == "seconds":
        return f"{mean:.1f}"
    if name.startswith(("AvgIF", "largest change", "decisions", "found", "bound")):
        return show_small(mean)
    text = f"{mean:.3f}" if np.mean(np.abs(values)) < 1e4 else f"{mean:.4g}"
    return text if np.size(values) == 1 else f"{text} ± {np.std(values):.3f}"
