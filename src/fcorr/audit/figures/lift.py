"""Lift charts: predicted beside actual in bins, over bars of the exposure in each."""

from collections.abc import Sequence
from typing import Any

from fcorr._core import InvalidInputError
from fcorr.audit.figures._render import MARGIN, TEXT_SIZE, TITLE_SIZE, identify, render
from fcorr.audit.figures._scale import TINY, Axis, clip
from fcorr.audit.figures._series import (
    ACTUAL,
    INCUMBENT,
    PREDICTED,
    LineStyle,
    list_legend,
    path_through,
)
from fcorr.audit.figures._text import centre_below, number, printable, shorten, text_width
from fcorr.metrics import DoubleLiftBin, DoubleLiftTable, LiftBin, LiftTable

_MAX_BINS = 30
_HEIGHT, _BARS_HEIGHT = 230.0, 48.0


def lift_svg(
    table: LiftTable,
    *,
    title: str,
    y_label: str = "mean per unit of exposure",
    weight_label: str = "exposure",
) -> str:
    """Draw predicted and actual by bin of prediction, over bars of the exposure in each bin.

    Parameters
    ----------
    table : LiftTable
        From :func:`fcorr.metrics.lift_table`, with at most 30 bins.
    title : str
        The heading, which is also the name of the figure for screen readers.
    y_label : str
        What the means are means of, such as "claims per year".
    weight_label : str
        What the weights are.

    Returns
    -------
    str
        An ``<svg>`` element, to be embedded in a page or saved as a file.

    Raises
    ------
    InvalidInputError
        If there are more than 30 bins.

    Examples
    --------
    >>> from fcorr.metrics import lift_table
    >>> table = lift_table([0, 1, 1, 3], [0.5, 0.6, 1.0, 2.0], n_bins=4)
    >>> svg = lift_svg(table, title="Lift", y_label="claims per year")
    >>> svg.startswith("<svg"), ">predicted</text>" in svg
    (True, True)
    """
    rows = table.rows
    lines = [
        ("actual", ACTUAL, [row.actual for row in rows]),
        ("predicted", PREDICTED, [row.predicted for row in rows]),
    ]
    return _draw(
        rows,
        lines,
        kind="Lift chart",
        title=title,
        y_label=y_label,
        weight_label=weight_label,
        x_label="bins by predicted value, lowest first",
        x_labels=[(position + 0.5, str(position + 1)) for position in range(len(rows))],
    )


def double_lift_svg(
    table: DoubleLiftTable,
    *,
    title: str,
    model: str = "model",
    incumbent: str = "incumbent",
    y_label: str = "mean per unit of exposure",
    weight_label: str = "exposure",
) -> str:
    """Draw two models and the actual by bin of the models' ratio: who is right where they differ.

    Parameters
    ----------
    table : DoubleLiftTable
        From :func:`fcorr.metrics.double_lift_table`, with at most 30 bins.
    title : str
        The heading, which is also the name of the figure for screen readers.
    model, incumbent : str
        What the two models are called.
    y_label : str
        What the means are means of, such as "claims per year".
    weight_label : str
        What the weights are.

    Returns
    -------
    str
        An ``<svg>`` element, to be embedded in a page or saved as a file.

    Raises
    ------
    InvalidInputError
        If there are more than 30 bins.

    Examples
    --------
    >>> from fcorr.metrics import double_lift_table
    >>> table = double_lift_table([1, 1, 3, 3], [1, 1, 3, 3], [2, 2, 2, 2], n_bins=2)
    >>> svg = double_lift_svg(table, title="Double lift", incumbent="GLM")
    >>> "model ÷ GLM" in svg
    True
    """
    model, incumbent = shorten(printable(model)), shorten(printable(incumbent))
    rows = table.rows
    lines = [
        ("actual", ACTUAL, [row.actual for row in rows]),
        (model, PREDICTED, [row.predicted for row in rows]),
        (incumbent, INCUMBENT, [row.incumbent for row in rows]),
    ]
    # Where one bin ends the next begins: the edges are labelled, not the bins.
    edges = [*(row.low for row in rows), *(row.high for row in rows[-1:])]
    return _draw(
        rows,
        lines,
        kind="Double lift chart",
        title=title,
        y_label=y_label,
        weight_label=weight_label,
        x_label=f"bins by {model} ÷ {incumbent}",
        x_labels=[(float(i), f"{edge:.2f}") for i, edge in enumerate(edges)],
    )


def _draw(
    rows: Sequence[LiftBin | DoubleLiftBin],
    lines: Sequence[tuple[str, LineStyle, list[float]]],
    *,
    kind: str,
    title: str,
    y_label: str,
    weight_label: str,
    x_label: str,
    x_labels: Sequence[tuple[float, str]],
) -> str:
    n_bins = len(rows)
    if not 1 <= n_bins <= _MAX_BINS:
        raise InvalidInputError(
            f"A {kind.lower()} shows one to {_MAX_BINS} bins, the table has {n_bins}. "
            f"Make it with n_bins={_MAX_BINS} or fewer."
        )
    title, y_label, weight_label = (printable(text) for text in (title, y_label, weight_label))
    column = clip(480 / n_bins, 20, 56)
    width = column * n_bins
    axis = _value_axis([value for _, _, values in lines for value in values])
    weights = Axis(0.0, max(row.weight for row in rows), _BARS_HEIGHT, most_ticks=2)
    ticks, weight_ticks = axis.ticks(), weights.ticks()
    label_room = 7 + max(text_width(text, TEXT_SIZE) for _, text in ticks + weight_ticks)
    left = MARGIN + label_room
    x_label_at = centre_below(x_label, TEXT_SIZE, length=width, room=label_room)
    top = MARGIN + TITLE_SIZE + 20 + TEXT_SIZE + 9
    bars_top = top + _HEIGHT + 34
    bottom = bars_top + _BARS_HEIGHT + 40

    hints = _hints(rows, lines, weight_label)
    items = [("line", style, name) for name, style, _ in lines]
    legend, legend_right, legend_height = list_legend(items, left)
    return render(
        "lift.svg.j2",
        title=title,
        description=f"{kind} of {y_label}, {x_label}. {'. '.join(hints)}.",
        identity=identify(kind, title, y_label, weight_label, x_label, hints, rows),
        width=MARGIN
        + max(
            left + width + text_width(x_labels[-1][1], TEXT_SIZE) / 2,
            left + x_label_at + text_width(x_label, TEXT_SIZE) / 2,
            MARGIN + text_width(title, TITLE_SIZE, bold=True),
            MARGIN + text_width(y_label, TEXT_SIZE),
            MARGIN + text_width(weight_label, TEXT_SIZE),
            legend_right,
        ),
        height=bottom + 22 + legend_height + 4 + MARGIN,
        left=left,
        top=top,
        bars_top=bars_top,
        bars_height=_BARS_HEIGHT,
        width_of_plot=width,
        height_of_plot=_HEIGHT,
        label_room=label_room,
        text_size=TEXT_SIZE,
        y_label=y_label,
        weight_label=weight_label,
        x_label=x_label,
        x_label_at=x_label_at,
        y_ticks=[{"y": _HEIGHT - place, "text": text} for place, text in ticks],
        weight_ticks=[{"y": _BARS_HEIGHT - place, "text": text} for place, text in weight_ticks],
        x_labels=_spread(x_labels, column),
        lines=[_line(values, style, axis, column) for _, style, values in lines],
        bars=[
            {
                "x": (i + 0.19) * column,
                "width": 0.62 * column,
                "height": weights.place(row.weight),
                "column": i * column,
                "column_width": column,
                "hint": hints[i],
            }
            for i, row in enumerate(rows)
        ],
        legend=legend,
        legend_y=bottom + 22,
    )


def _value_axis(values: Sequence[float]) -> Axis:
    """Choose the range of the lines, with zero in it where that costs less than half the height."""
    low, high = min(values), max(values)
    if high - low <= TINY:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= TINY:
        high = 1.0
    margin = 0.06 * (high - low)
    if 0 < low <= 0.5 * high:
        return Axis(0.0, high + margin, _HEIGHT)
    return Axis(low if low == 0 else low - margin, high + margin, _HEIGHT)


def _line(values: Sequence[float], style: LineStyle, axis: Axis, column: float) -> dict[str, Any]:
    points = [((i + 0.5) * column, _HEIGHT - axis.place(v)) for i, v in enumerate(values)]
    return {
        "path": path_through(points),
        "style": style,
        "points": [{"x": x, "y": y} for x, y in points],
    }


def _spread(labels: Sequence[tuple[float, str]], column: float) -> list[dict[str, Any]]:
    """Place labels at multiples of the column width, leaving some out where they would touch."""
    widest = max(text_width(text, TEXT_SIZE) for _, text in labels)
    step = int((widest + 6) // column) + 1
    return [{"x": at * column, "text": text} for at, text in labels[::step]]


def _hints(
    rows: Sequence[LiftBin | DoubleLiftBin],
    lines: Sequence[tuple[str, LineStyle, list[float]]],
    weight_label: str,
) -> list[str]:
    scale = max(abs(value) for _, _, values in lines for value in values)
    hints = []
    for i, row in enumerate(rows):
        numbers = [f"{name} {number(values[i], scale=scale)}" for name, _, values in lines]
        numbers += [f"{weight_label} {number(row.weight, scale=row.weight)}", f"{row.n:,} rows"]
        hints.append(f"Bin {i + 1}: {', '.join(numbers)}")
    return hints
