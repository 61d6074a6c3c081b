"""Lines in a plot, told apart by colour, dashes and marks: a print in black and white will do."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from fcorr.audit.figures._render import INK, PAPER, TEXT_SIZE
from fcorr.audit.figures._text import coordinate, text_width

LEGEND_ROW = 18.0


class LineStyle(NamedTuple):
    """How a line and its marks are drawn; an empty `dash` is a whole line, no `marker` none."""

    colour: str
    dash: str = ""
    marker: str = ""
    fill: str = PAPER
    width: float = 2.0


ACTUAL = LineStyle(INK, marker="circle", fill=INK)
PREDICTED = LineStyle("#1b5a9c", dash="7 3", marker="square")
INCUMBENT = LineStyle("#b34d08", dash="2 3", marker="diamond")
CURVES = (
    LineStyle("#1b5a9c"),
    LineStyle("#b34d08", dash="8 4"),
    LineStyle(INK, dash="2 3"),
    LineStyle("#5f3a9c", dash="10 3 2 3"),
)
MARKED = (
    LineStyle("#1b5a9c", marker="circle"),
    LineStyle("#b34d08", dash="8 4", marker="square"),
    LineStyle(INK, dash="2 3", marker="diamond"),
    LineStyle("#5f3a9c", dash="10 3 2 3", marker="triangle"),
)
DIAGONAL = LineStyle("#8a8a8a", width=1.0)


def path_through(points: Sequence[tuple[float, float]]) -> str:
    """Write the path of a line through some points.

    Examples
    --------
    >>> path_through([(0, 1), (2.5, 3), (4, 1)])
    'M0 1L2.5 3L4 1'
    """
    return "M" + "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in points)


def list_legend(
    items: Sequence[tuple[str, LineStyle, str]], x: float
) -> tuple[list[dict[str, Any]], float, float]:
    """Place the explanations of symbols one below the other; return them, right end and height."""
    placed: list[dict[str, Any]] = []
    for row, (symbol, style, text) in enumerate(items):
        text_x = 38.0 if symbol == "line" else 17.0
        position = {"x": x, "y": LEGEND_ROW * row, "text_x": text_x}
        placed.append(position | {"symbol": symbol, "style": style, "text": text})
    right = max(x + item["text_x"] + text_width(item["text"], TEXT_SIZE) for item in placed)
    return placed, right, LEGEND_ROW * (len(placed) - 1)
