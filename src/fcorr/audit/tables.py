"""Tables as text: for a terminal, for Markdown."""

from typing import NamedTuple

import numpy as np


class TextTable(NamedTuple):
    """A header and rows of cells, the first column names and the others numbers."""

    header: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """Write the table in Markdown.

        Examples
        --------
        >>> print(TextTable(["", "AUROC"], [["FCorr", "0.75"]]).markdown(), end="")
        |  | AUROC |
        | --- | ---: |
        | FCorr | 0.75 |
        """
        lines = [self.header, ["---", *["---:"] * (len(self.header) - 1)], *self.rows]
        # A bar inside a cell would end it.
        cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
        return "".join(f"| {' | '.join(line)} |\n" for line in cells)

    def text(self) -> str:
        """Write the table in columns, the first to the left and the others to the right.

        Examples
        --------
        >>> print(TextTable(["", "AUROC"], [["FCorr", "0.75"]]).text())
               AUROC
        FCorr   0.75
        """
        lines = [self.header, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]
        texts = []
        for first, *others in lines:
            padded = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
            texts.append("  ".join([first.ljust(widths[0]), *padded]).rstrip())
        return "\n".join(texts)


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


def show_mean(values: list[float | None]) -> str:
    """Write the mean of some runs and, of several, their deviation; n/a where one has none.

    Examples
    --------
    >>> show_mean([0.75, 0.77]), show_mean([0.75]), show_mean([0.75, None])
    ('0.760 ± 0.010', '0.750', 'n/a')
    """
    known = [value for value in values if value is not None and not np.isnan(value)]
    if len(known) < len(values) or not known:
        return "n/a"
    mean = (
        f"{float(np.mean(known)):.3f}" if np.mean(np.abs(known)) < 1e4 else f"{np.mean(known):.4g}"
    )
    return mean if len(known) == 1 else f"{mean} ± {float(np.std(known)):.3f}"
