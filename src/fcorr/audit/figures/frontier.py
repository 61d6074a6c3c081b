"""The frontier: what performance each model has at what price in another number."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fcorr._core import InvalidInputError
from fcorr.audit.figures._log_scale import log_axis
from fcorr.audit.figures._render import MARGIN, TEXT_SIZE, TITLE_SIZE, identify, render
from fcorr.audit.figures._scale import TINY, Axis
from fcorr.audit.figures._series import MARKED, LineStyle, list_legend, path_through
from fcorr.audit.figures._text import centre_below, number, printable, shorten, text_width

_WIDTH, _HEIGHT, _INSET = 430.0, 280.0, 18.0
_FRONT = LineStyle("#8a8a8a", width=1.0)
_CHOSEN = LineStyle("#b34d08", marker="ring")


@dataclass(frozen=True)
class FrontierPoint:
    """One model.

    Attributes
    ----------
    name : str
        What it is called, where there is room, and when one points at it.
    x : float
        What should be small: 0 or more.
    y : float
        Its performance.
    kind : str
        What the legend calls models like it; at most four kinds.
    spread : tuple of float, optional
        Lowest and highest performance behind it, drawn as a thin stroke.
    """

    name: str
    x: float
    y: float
    kind: str
    spread: tuple[float, float] | None = None


def frontier_svg(
    points: Sequence[FrontierPoint],
    *,
    title: str,
    x_label: str,
    y_label: str,
    chosen: str | None = None,
    lower_is_better: bool = False,
) -> str:
    """Draw performance against what it costs, on a logarithmic axis with a place for 0.

    A thin line joins the models that no other beats in both.

    Parameters
    ----------
    points : sequence of FrontierPoint
        The models.
    title : str
        The heading, which is also the name of the figure for screen readers.
    x_label, y_label : str
        What the axes measure.
    chosen : str, optional
        The name of the model to mark.
    lower_is_better : bool, default=False
        Whether a low y is good performance.

    Returns
    -------
    str
        An ``<svg>`` element, to be embedded in a page or saved as a file.

    Raises
    ------
    InvalidInputError
        If there is no point, or there are more than four kinds.

    Examples
    --------
    >>> weak = FrontierPoint("λ = 0", 0.3, 0.75, "CAR alone")
    >>> exact = FrontierPoint("adapt", 0, 0.74, "exact")
    >>> svg = frontier_svg([weak, exact], title="Frontier", x_label="change", y_label="AUROC")
    >>> ">adapt</text>" in svg
    True
    """
    kinds = list(dict.fromkeys(point.kind for point in points))
    if not 1 <= len(kinds) <= len(MARKED):
        raise InvalidInputError(
            f"A frontier shows models of one to {len(MARKED)} kinds, got {len(kinds)}. "
            "Choose the ones to show."
        )
    title, x_label, y_label = printable(title), printable(x_label), printable(y_label)
    styles = {
        kind: style._replace(fill=style.colour) for kind, style in zip(kinds, MARKED, strict=False)
    }
    x_axis = log_axis([point.x for point in points], _WIDTH - 2 * _INSET)
    y_axis = _y_axis(points)
    places = [(_INSET + x_axis.place(p.x), _HEIGHT - y_axis.place(p.y)) for p in points]
    y_ticks, x_ticks = y_axis.ticks(), x_axis.ticks()
    label_room = 7 + max(text_width(text, TEXT_SIZE) for _, text in y_ticks)
    left, top = MARGIN + label_room, MARGIN + TITLE_SIZE + 20 + TEXT_SIZE + 9
    front = _front(points, lower_is_better)
    items: list[tuple[str, LineStyle, str]] = [
        ("mark", style, printable(kind)) for kind, style in styles.items()
    ]
    if len(front) > 1:
        items.append(("line", _FRONT, "no other model is better in both"))
    is_chosen = [point.name == chosen for point in points]
    if any(is_chosen):
        items.append(("mark", _CHOSEN, "chosen"))
    bottom = top + _HEIGHT + 40
    legend, legend_right, legend_height = list_legend(items, left)
    x_label_at = centre_below(x_label, TEXT_SIZE, length=_WIDTH, room=label_room)
    return render(
        "frontier.svg.j2",
        title=title,
        description=_describe(points, x_label, y_label, chosen),
        identity=identify("frontier", title, x_label, y_label, points, chosen),
        width=MARGIN
        + max(
            left + _WIDTH,
            left + x_label_at + text_width(x_label, TEXT_SIZE) / 2,
            MARGIN + text_width(title, TITLE_SIZE, bold=True),
            MARGIN + text_width(y_label, TEXT_SIZE),
            legend_right,
        ),
        height=bottom + 22 + legend_height + 4 + MARGIN,
        left=left,
        top=top,
        label_room=label_room,
        width_of_plot=_WIDTH,
        height_of_plot=_HEIGHT,
        text_size=TEXT_SIZE,
        x_label=x_label,
        x_label_at=x_label_at,
        y_label=y_label,
        y_ticks=[{"y": _HEIGHT - place, "text": text} for place, text in y_ticks],
        x_ticks=[{"x": _INSET + place, "text": text} for place, text in x_ticks],
        front=path_through([places[i] for i in front]) if len(front) > 1 else "",
        front_style=_FRONT,
        points=[
            {
                "x": place[0],
                "y": place[1],
                "style": styles[point.kind],
                "ring": _CHOSEN if ring else None,
                "hint": _hint(point, x_label, y_label),
                "stroke": _stroke(point, y_axis),
            }
            for point, place, ring in zip(points, places, is_chosen, strict=True)
        ],
        names=_place_names(points, places, is_chosen, y_axis),
        legend=legend,
        legend_y=bottom + 22,
    )


def _y_axis(points: Sequence[FrontierPoint]) -> Axis:
    values = [value for point in points for value in (point.y, *(point.spread or ()))]
    low, high = min(values), max(values)
    margin = 0.1 * (high - low)
    if high - low <= max(TINY, 1e-9 * abs(high)):
        margin = 0.1 * abs(high) or 1.0
    return Axis(low - margin, high + margin, _HEIGHT)


def _stroke(point: FrontierPoint, axis: Axis) -> dict[str, float] | None:
    if point.spread is None or point.spread[0] == point.spread[1]:
        return None
    low, high = (_HEIGHT - axis.place(end) for end in point.spread)
    return {"low": low, "high": high}


def _front(points: Sequence[FrontierPoint], lower_is_better: bool) -> list[int]:
    """Find the points that no other beats in both, from the smallest x on."""
    sign = -1.0 if lower_is_better else 1.0
    best, front = -math.inf, []
    for i in sorted(range(len(points)), key=lambda i: (points[i].x, -sign * points[i].y)):
        if sign * points[i].y > best:
            best = sign * points[i].y
            front.append(i)
    return front


def _hint(point: FrontierPoint, x_label: str, y_label: str) -> str:
    numbers = [
        f"{label} {number(value, scale=abs(value) or 1.0)}"
        for label, value in ((y_label, point.y), (x_label, point.x))
    ]
    return f"{printable(point.name)}: {', '.join(numbers)}"


def _describe(
    points: Iterable[FrontierPoint], x_label: str, y_label: str, chosen: str | None
) -> str:
    hints = [_hint(point, x_label, y_label) for point in points]
    marked = [f"Chosen: {printable(chosen)}."] if chosen is not None else []
    return " ".join([f"{y_label} against {x_label}.", *(f"{hint}." for hint in hints), *marked])


def _place_names(
    points: Sequence[FrontierPoint],
    places: Sequence[tuple[float, float]],
    is_chosen: Sequence[bool],
    y_axis: Axis,
) -> list[dict[str, Any]]:
    """Write names beside their marks where they cover neither a mark nor a name; else leave out.

    The chosen model's name comes first, and may cover the strokes of others.
    """
    taken = [(x - 7, y - 7, x + 7, y + 7) for x, y in places]
    strokes = [(x, _stroke(point, y_axis)) for point, (x, _) in zip(points, places, strict=True)]
    thin = [(x - 2, stroke["high"], x + 2, stroke["low"]) for x, stroke in strokes if stroke]
    names = []
    for i in sorted(range(len(points)), key=lambda i: not is_chosen[i]):
        text, (x, y) = shorten(printable(points[i].name)), places[i]
        width = text_width(text, TEXT_SIZE, bold=is_chosen[i])
        corners = [(x + side, y + lift) for lift in (0, -12, 12) for side in (11.0, -11.0 - width)]
        for left, middle in corners:
            box = (left, middle - 6, left + width, middle + 6)
            is_inside = box[0] >= 2 and box[2] <= _WIDTH and box[1] >= 0 and box[3] <= _HEIGHT
            others = taken if is_chosen[i] else taken + thin
            if is_inside and not any(_overlap(box, other) for other in others):
                taken.append(box)
                name = {"x": left, "y": middle, "width": width, "text": text}
                names.append(name | {"bold": is_chosen[i]})
                break
    return names


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
