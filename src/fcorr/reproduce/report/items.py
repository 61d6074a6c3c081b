"""What a report is made of."""

from dataclasses import dataclass

from fcorr.audit.tables import TextTable, escape_latex

_WIDE = 90  # characters of a row for which a page is too narrow


@dataclass(frozen=True)
class ReportTable:
    """A table, ready to be written.

    Attributes
    ----------
    name : str
        Stem of its file.
    title : str
        Heading.
    caption : str
        Which data, how many rows and seeds, and how to read the cells.
    table : TextTable
        The cells.
    n_labels : int, default=1
        How many of its first columns are names and not numbers.
    """

    name: str
    title: str
    caption: str
    table: TextTable
    n_labels: int = 1

    def markdown(self) -> str:
        """Write the cells in Markdown."""
        return self.table.markdown(self.n_labels)

    def latex(self) -> str:
        """Write the table with caption and label; it takes the packages booktabs and graphicx."""
        tabular = self.table.latex(self.n_labels)
        lines = [self.table.header, *self.table.rows]
        n_characters = sum(max(map(len, column)) for column in zip(*lines, strict=True))
        if n_characters > _WIDE:
            tabular = f"\\resizebox{{\\textwidth}}{{!}}{{%\n{tabular}}}\n"
        caption = escape_latex(f"{self.title}. {self.caption}")
        return (
            "\\begin{table}[!ht]\n\\centering\n"
            f"\\caption{{{caption}}}\n\\label{{tab:{self.name}}}\n\\footnotesize\n"
            f"{tabular}\\end{{table}}\n"
        )


@dataclass(frozen=True)
class ReportFigure:
    """A figure, ready to be written.

    Attributes
    ----------
    name : str
        Stem of its file.
    title : str
        Heading, which stands in the picture as well.
    caption : str
        Which data and fits, and how to read it.
    svg : str
        The picture.
    """

    name: str
    title: str
    caption: str
    svg: str
