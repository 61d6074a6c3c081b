"""Line charts over a logarithmic axis with labelled ends: what a dial does, panel under panel."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fcorr._core import InvalidInputError
from fcorr.audit.figures._log_scale import LogAxis, log_axis
from fcorr.audit.figures._render import MARGIN, TEXT_SIZE, TITLE_SIZE, identify, render
from fcorr.audit.figures._scale import TINY, Axis
from fcorr.audit.figures._series import MARKED, LineStyle, list_legend, path_through
from fcorr.audit.figures._text import (
    centre_below,
    number,
    printable,
    short_number,
    shorten,
    text_width,
)

_WIDTH = 430.0
_INSET = 14.0  # no mark stands on the vertical axis
_PANEL_GAP = 34.0
_VOID = "×: says no more than the range of the predictions does (vacuous)"

Value = float | None


@dataclass(frozen=True)
class Line:
    """One line: a value at each place of the horizontal axis.

    Attributes
    ----------
    name : str
        What the legend calls it.
    values : sequence of float or None
        Values in the order of the places; None where there is none, infinity allowed in a panel
        with a logarithmic axis.
    spread : sequence of (float, float) or None
        Lowest and highest value behind each, drawn as a thin stroke.
    void : sequence of bool
        Which of the values say nothing, and are drawn as crosses.
    """

    name: str
    values: Sequence[Value]
    spread: Sequence[tuple[float, float] | None] = ()
    void: Sequence[bool] = ()


@dataclass(frozen=True)
class LinePanel:
    """Lines on one vertical axis.

    Attributes
    ----------
    y_label : str
        What they measure.
    lines : sequence of Line
        One to four lines.
    log : bool
        Whether the axis is logarithmic, with a place for 0.
    height : float
        In pixels.
    """

    y_label: str
    lines: Sequence[Line]
    log: bool = False
    height: float = 120.0


def line_chart_svg(
    panels: Sequence[LinePanel],
    *,
    x: Sequence[float | str],
    title: str,
    x_label: str,
    marked: float | str | None = None,
    mark_label: str = "chosen",
) -> str:
    """Draw lines over a logarithmic axis, panel under panel.

    Parameters
    ----------
    panels : sequence of LinePanel
        From top to bottom.
    x : sequence of float or str
        Places on the horizontal axis, each once: numbers that are not negative, and names, which
        stand at its right end. 0 stands at its left end. Lines join positive numbers only: the
        ends are not on the scale.
    title : str
        The heading, which is also the name of the figure for screen readers.
    x_label : str
        What the numbers on the horizontal axis are.
    marked : float or str, optional
        One of the places, to be marked by a vertical line.
    mark_label : str
        What stands at the top of that line.

    Returns
    -------
    str
        An ``<svg>`` element, to be embedded in a page or saved as a file.

    Raises
    ------
    InvalidInputError
        If there is nothing to draw, a panel has more than four lines, or the values do not fit the
        places.

    Examples
    --------
    >>> panel = LinePanel("AUROC", [Line("AUROC", [0.75, 0.74, 0.73])])
    >>> svg = line_chart_svg([panel], x=[0, 100, "exact"], title="λ", x_label="λ")
    >>> svg.startswith("<svg"), ">exact</text>" in svg
    (True, True)
    """
    _check(panels, x)
    title, x_label = printable(title), printable(x_label)
    names = tuple(place for place in x if isinstance(place, str))
    end = max([34.0, *(text_width(name, TEXT_SIZE) + 14 for name in names)])
    axis = log_axis(
        [float(place) for place in x if not isinstance(place, str)],
        _WIDTH - 2 * _INSET,
        after=names,
        end=end,
    )
    places = [_INSET + axis.place(place) for place in x]
    scales = [_scale(panel) for panel in panels]
    ticks = [_ticks(scale) for scale in scales]
    label_room = 7 + max(text_width(text, TEXT_SIZE) for one in ticks for _, text in one)
    x_ticks = [(_INSET + place, text) for place, text in axis.ticks()]
    left = MARGIN + label_room
    # Half of the last label may stand outside the axis.
    legend_x = _WIDTH + max(16.0, text_width(x_ticks[-1][1], TEXT_SIZE) / 2 - _INSET + 8)

    top = MARGIN + TITLE_SIZE + 20 + TEXT_SIZE + 9
    y = top + (TEXT_SIZE + 4 if marked is not None else 0)
    drawn, right, sentences = [], 0.0, []
    for panel, scale, its_ticks in zip(panels, scales, ticks, strict=True):
        styles = [style._replace(fill=style.colour) for style in MARKED]
        lines = [
            _draw(line, style, places, x, scale, panel.height)
            for line, style in zip(panel.lines, styles, strict=False)
        ]
        items = [
            ("line", style, shorten(printable(line.name)))
            for line, style in zip(panel.lines, styles, strict=False)
        ]
        legend, legend_right, _ = list_legend(items, legend_x)
        right = max(right, legend_right, text_width(printable(panel.y_label), TEXT_SIZE))
        drawn.append(
            {
                "top": y,
                "height": panel.height,
                "y_label": printable(panel.y_label),
                "ticks": [{"y": panel.height - place, "text": text} for place, text in its_ticks],
                "lines": lines,
                "legend": legend,
            }
        )
        sentences += [_describe(line, x) for line in panel.lines]
        y += panel.height + _PANEL_GAP
    bottom = y - _PANEL_GAP + 40
    has_void = any(any(line.void) for panel in panels for line in panel.lines)
    x_label_at = centre_below(x_label, TEXT_SIZE, length=_WIDTH, room=left - MARGIN)
    mark_x = None if marked is None else _INSET + axis.place(marked)
    return render(
        "line_chart.svg.j2",
        title=title,
        description=f"Line chart over {x_label}. {' '.join(sentences)}",
        identity=identify("line chart", title, x_label, x, panels, marked, mark_label),
        width=MARGIN
        + max(
            left + right,
            left + x_label_at + text_width(x_label, TEXT_SIZE) / 2,
            MARGIN + text_width(title, TITLE_SIZE, bold=True),
            left + text_width(_VOID, TEXT_SIZE) if has_void else 0.0,
        ),
        height=bottom + (22 if has_void else 0) + MARGIN,
        left=left,
        label_room=left - MARGIN,
        width_of_plot=_WIDTH,
        text_size=TEXT_SIZE,
        panels=drawn,
        x_ticks=[{"x": place, "text": text} for place, text in x_ticks],
        x_label=x_label,
        x_label_at=x_label_at,
        mark_x=mark_x,
        mark_label=printable(mark_label),
        mark_anchor="end" if mark_x is not None and mark_x > _WIDTH / 2 else "start",
        plots_top=top,
        plots_bottom=bottom - 40,
        void=_VOID if has_void else "",
        void_y=bottom + 18,
        legend=[],
    )


def _check(panels: Sequence[LinePanel], x: Sequence[float | str]) -> None:
    if not panels or not x or len(set(x)) < len(x):
        raise InvalidInputError(
            "A line chart needs panels, and places on its axis that differ, got "
            f"{len(panels)} panels and {list(x)!r}."
        )
    for panel in panels:
        if not 1 <= len(panel.lines) <= len(MARKED):
            raise InvalidInputError(
                f"A panel shows one to {len(MARKED)} lines, {panel.y_label!r} has "
                f"{len(panel.lines)}. Choose the ones to show."
            )
        for line in panel.lines:
            if len(line.values) != len(x):
                raise InvalidInputError(
                    f"Line {line.name!r} must have a value or None for each of the {len(x)} "
                    f"places, got {len(line.values)}."
                )


def _scale(panel: LinePanel) -> Axis | LogAxis:
    values = [value for line in panel.lines for value in line.values if _is_there(value)]
    values += [end for line in panel.lines for ends in line.spread if ends for end in ends]
    found = [float(value) for value in values if value is not None]
    if panel.log:
        return log_axis(found, panel.height, end=20.0)
    finite = [value for value in found if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    margin = 0.08 * (high - low)
    if high - low <= TINY or high - low < 1e-9 * abs(high):
        margin = 0.1 * abs(high) or 1.0
    return Axis(low - margin, high + margin, panel.height, most_ticks=4)


def _ticks(scale: Axis | LogAxis) -> list[tuple[float, str]]:
    return scale.ticks(most=4) if isinstance(scale, LogAxis) else scale.ticks()


def _is_there(value: Value) -> bool:
    return value is not None and not math.isnan(value)


def _draw(
    line: Line,
    style: LineStyle,
    places: Sequence[float],
    x: Sequence[float | str],
    scale: Axis | LogAxis,
    height: float,
) -> dict[str, Any]:
    void = line.void or [False] * len(x)
    spread = line.spread or [None] * len(x)
    points, strokes = [], []
    pieces: list[list[tuple[float, float]]] = [[]]
    order = sorted(range(len(x)), key=lambda i: places[i])
    for i in order:
        value = line.values[i]
        if value is None or math.isnan(value) or (math.isinf(value) and isinstance(scale, Axis)):
            pieces.append([])
            continue
        at = places[i], height - scale.place(value)
        ends = spread[i]
        if ends is not None and ends[1] > ends[0]:
            low, high = (height - scale.place(end) for end in ends)
            strokes.append({"x": at[0], "low": low, "high": high})
        place = x[i]
        is_on_scale = not isinstance(place, str) and place > 0
        # Hollow at the ends, where marks of different lines often meet and all must be seen.
        mark = style if is_on_scale else style._replace(fill="none")
        if void[i]:
            mark = style._replace(marker="cross")
        points.append({"x": at[0], "y": at[1], "style": mark, "hint": _hint(line, place, i)})
        if is_on_scale:
            pieces[-1].append(at)
    return {
        "style": style,
        "paths": [path_through(piece) for piece in pieces if len(piece) > 1],
        "points": points,
        "strokes": strokes,
    }


def _hint(line: Line, place: float | str, i: int) -> str:
    value = line.values[i]
    assert value is not None
    where = place if isinstance(place, str) else short_number(place)
    text = "∞" if math.isinf(value) else number(value, scale=abs(value) or 1.0)
    vacuous = " (vacuous)" if line.void and line.void[i] else ""
    return f"{printable(line.name)} at {printable(where)}: {text}{vacuous}"


def _describe(line: Line, x: Sequence[float | str]) -> str:
    known = [i for i, value in enumerate(line.values) if _is_there(value)]
    texts = [_hint(line, x[i], i).removeprefix(f"{printable(line.name)} ") for i in known]
    return f"{printable(line.name)} {', '.join(texts) or 'has no values'}."
