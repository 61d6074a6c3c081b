"""Tables as text: for a terminal, for Markdown, for LaTeX."""

from typing import NamedTuple

import numpy as np

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "§": r"\S{}",
        "…": r"\ldots{}",
        "±": r"$\pm$",
        "×": r"$\times$",
        "÷": r"$\div$",
        "−": "$-$",
        "≈": r"$\approx$",
        "≤": r"$\leq$",
        "≥": r"$\geq$",
        "→": r"$\to$",
        "∞": r"$\infty$",
        "λ": r"$\lambda$",
        "ρ": r"$\rho$",
        "–": "--",
        "[": "{[}",  # else the end of a line would take it for a length
        "\u2009": r"\,",
        **{char: f"\\{char}" for char in "&%$#_{}"},
    }
)


class TextTable(NamedTuple):
    """A header and rows of cells, the first column names and the others numbers.

    Where more columns are names, say how many of the first as ``n_labels`` when it is written.
    """

    header: list[str]
    rows: list[list[str]]

    def markdown(self, n_labels: int = 1) -> str:
        """Write the table in Markdown.

        Examples
        --------
        >>> print(TextTable(["", "AUROC"], [["FCorr", "0.75"]]).markdown(), end="")
        |  | AUROC |
        | --- | ---: |
        | FCorr | 0.75 |
        """
        rule = ["---"] * n_labels + ["---:"] * (len(self.header) - n_labels)
        lines = [self.header, rule, *self.rows]
        # A bar inside a cell would end it.
        cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
        return "".join(f"| {' | '.join(line)} |\n" for line in cells)

    def text(self, n_labels: int = 1) -> str:
        """Write the table in columns, names to the left and numbers to the right.

        Examples
        --------
        >>> print(TextTable(["", "AUROC"], [["FCorr", "0.75"]]).text())
               AUROC
        FCorr   0.75
        """
        lines = [self.header, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]
        texts = []
        for line in lines:
            padded = [
                cell.ljust(width) if i < n_labels else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            texts.append("  ".join(padded).rstrip())
        return "\n".join(texts)

    def latex(self, n_labels: int = 1) -> str:
        r"""Write the table as a tabular, with the rules of the package booktabs.

        Examples
        --------
        >>> print(TextTable(["", "F1"], [["R&D_1", "0.75 ± 0.01"]]).latex(), end="")
        \begin{tabular}{lr}
        \toprule
         & F1 \\
        \midrule
        R\&D\_1 & 0.75 $\pm$ 0.01 \\
        \bottomrule
        \end{tabular}
        """
        columns = "l" * n_labels + "r" * (len(self.header) - n_labels)
        header, *rows = (
            " & ".join(escape_latex(cell) for cell in line) + r" \\"
            for line in [self.header, *self.rows]
        )
        lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", header, r"\midrule", *rows]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def escape_latex(text: str) -> str:
    r"""Write what LaTeX would take for a command, and symbols that few of its fonts have.

    Examples
    --------
    >>> print(escape_latex("50 % of λ_max, #1 ± 2"))
    50 \% of $\lambda$\_max, \#1 $\pm$ 2
    """
    return text.translate(_LATEX)


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
