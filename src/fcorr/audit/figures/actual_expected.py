"""Actual over expected by group: a point and an interval for each, against the line at 1."""

import math
from typing import Any

from fcorr._core import InvalidInputError
from fcorr.audit.figures._render import INK, MARGIN, TEXT_SIZE, TITLE_SIZE, identify, render
from fcorr.audit.figures._scale import Axis
from fcorr.audit.figures._series import LineStyle, list_legend
from fcorr.audit.figures._text import (
    centre_below,
    make_label,
    number,
    printable,
    text_width,
    widest_name,
)
from fcorr.metrics import ActualExpected, ActualExpectedTable

_MAX_GROUPS = 60
_LENGTH, _ROW = 280.0, 26.0
_HOLDS_ONE = LineStyle(INK, marker="circle")
_MISSES_ONE = LineStyle(INK, marker="circle", fill=INK)


def actual_expected_svg(
    table: ActualExpectedTable,
    *,
    title: str,
    x_label: str = "actual ÷ expected",
    weight_label: str = "exposure",
) -> str:
    """Draw each group's ratio of actual to expected with its interval, and the numbers beside it.

    A filled point marks an interval that does not hold 1. An arrow marks one that goes on beyond
    the figure; its end is in the numbers.

    Parameters
    ----------
    table : ActualExpectedTable
        From :func:`fcorr.metrics.actual_over_expected`, with at most 60 groups.
    title : str
        The heading, which is also the name of the figure for screen readers.
    x_label : str
        What the ratio is.
    weight_label : str
        What the weights are.

    Returns
    -------
    str
        An ``<svg>`` element, to be embedded in a page or saved as a file.

    Raises
    ------
    InvalidInputError
        If there are more than 60 groups.

    Examples
    --------
    >>> from fcorr.metrics import actual_over_expected
    >>> table = actual_over_expected([3, 5], [4, 4], sensitive_features=["female", "male"])
    >>> svg = actual_expected_svg(table, title="Claims by sex")
    >>> ">0.75 (0.15 to 2.19)</text>" in svg
    True
    """
    if not 1 <= len(table.rows) <= _MAX_GROUPS:
        raise InvalidInputError(
            f"A figure of actual over expected shows one to {_MAX_GROUPS} groups, got "
            f"{len(table.rows)}. Join small groups, or choose the ones to show."
        )
    title, x_label, weight_label = (printable(text) for text in (title, x_label, weight_label))
    names = [printable(row.group) for row in table.rows]
    axis = _axis(table.rows)
    ticks = [{"x": place, "text": text} for place, text in axis.ticks()]

    heads = [f"ratio ({100 * table.confidence:g} % interval)", weight_label, "rows"]
    most = max(row.weight for row in table.rows)
    texts = [[_ratio_text(row), number(row.weight, scale=most), f"{row.n:,}"] for row in table.rows]
    columns, x = [], _LENGTH
    for j, head in enumerate(heads):
        x += 18 + max(text_width(text, TEXT_SIZE) for text in (head, *(line[j] for line in texts)))
        columns.append({"x": x, "text": head})

    left = MARGIN + widest_name(names, TEXT_SIZE, ()) + 8
    x_label_at = centre_below(x_label, TEXT_SIZE, length=_LENGTH, room=left - MARGIN)
    top = MARGIN + TITLE_SIZE + 20 + TEXT_SIZE + 9
    height = _ROW * len(names)
    bottom = top + height + 40
    shown = {_style(row) for row in table.rows if not math.isnan(row.ratio)}
    items = [
        ("mark", style, text)
        for style, text in (
            (_MISSES_ONE, "the interval does not hold 1"),
            (_HOLDS_ONE, "the interval holds 1"),
        )
        if style in shown
    ]
    legend, legend_right, legend_height = list_legend(items, left) if items else ([], 0.0, 0.0)
    hints = [
        f"{name}: {line[0]}, {weight_label} {line[1]}, {line[2]} rows"
        for name, line in zip(names, texts, strict=True)
    ]
    return render(
        "actual_expected.svg.j2",
        title=title,
        description=f"Actual over expected by group, with {heads[0]}. {'. '.join(hints)}.",
        identity=identify("actual over expected", title, x_label, weight_label, table),
        width=MARGIN
        + max(
            left + x,
            MARGIN + text_width(title, TITLE_SIZE, bold=True),
            left + x_label_at + text_width(x_label, TEXT_SIZE) / 2,
            legend_right,
        ),
        height=(bottom + 22 + legend_height + 4 if legend else bottom) + MARGIN,
        left=left,
        top=top,
        length=_LENGTH,
        plot_height=height,
        text_size=TEXT_SIZE,
        one=axis.place(1.0),
        ticks=ticks,
        columns=columns,
        x_label=x_label,
        x_label_at=x_label_at,
        rows=[
            _row(row, name, hint, axis)
            | {
                "y": _ROW * (i + 0.5),
                "cells": [
                    {"x": column["x"], "text": text}
                    for column, text in zip(columns, texts[i], strict=True)
                ],
            }
            for i, (row, name, hint) in enumerate(zip(table.rows, names, hints, strict=True))
        ],
        legend=legend,
        legend_y=bottom + 22,
    )


def _axis(rows: tuple[ActualExpected, ...]) -> Axis:
    """Choose a range that shows all ratios and 1, and intervals unless one would dwarf the rest."""
    ratios = [row.ratio for row in rows if not math.isnan(row.ratio)] or [1.0]
    lows = [row.low for row in rows if not math.isnan(row.low)]
    highs = [row.high for row in rows if not math.isnan(row.high)]
    high = max(1.0, *ratios, min(max(highs, default=1.0), max(2.0, 1.15 * max(ratios))))
    low = min(1.0, *ratios, *lows)
    margin = 0.05 * max(high - low, 0.1)
    return Axis(max(low - margin, 0.0), high + margin, _LENGTH)


def _row(row: ActualExpected, name: str, hint: str, axis: Axis) -> dict[str, Any]:
    if math.isnan(row.ratio) or math.isnan(row.low) or math.isnan(row.high):
        return {"label": make_label(name, ()), "known": False}
    return {
        "label": make_label(name, ()),
        "known": True,
        "hint": hint,
        "x": axis.place(row.ratio),
        "low": axis.place(row.low),
        "high": axis.place(min(row.high, axis.high)),
        "cut": row.high > axis.high,
        "style": _style(row),
    }


def _style(row: ActualExpected) -> LineStyle:
    return _HOLDS_ONE if row.low <= 1 <= row.high else _MISSES_ONE


def _ratio_text(row: ActualExpected) -> str:
    if math.isnan(row.ratio):
        return "not estimable"
    return f"{row.ratio:.2f} ({row.low:.2f} to {row.high:.2f})"
