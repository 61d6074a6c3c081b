"""Heat maps: matrices of features by features, on one colour scale."""

import bisect
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from fcorr.audit.figures._panels import Panel, as_names, check_panels, describe_marked, identity
from fcorr.audit.figures._render import (
    INK,
    MARGIN,
    MARKER_GUTTER,
    PANEL_GAP,
    PANEL_TITLE_SIZE,
    PAPER,
    TEXT_SIZE,
    TITLE_SIZE,
    place_legend,
    render,
)
from fcorr.audit.figures._scale import TINY, clip, round_ticks
from fcorr.audit.figures._text import make_label, number, printable, text_width, widest_name

_MAX_WRITTEN = 12  # up to this many features, each cell has room for its number

# Blue and orange stay apart for every common colour blindness. Both arms darken alike from white,
# so that a black-and-white print keeps the size; the sign is written or marked in the cell. They
# darken faster near zero: often one cell is far larger than the rest, which should not look empty.
_ARM_POSITIONS = (0.0, 0.05, 0.2, 0.45, 0.75, 1.0)
_NEGATIVE_ARM = ("#ffffff", "#d3e4f3", "#92bfe0", "#4488c2", "#1b5a9c", "#0b3163")
_POSITIVE_ARM = ("#ffffff", "#fde2c6", "#f9b876", "#e5812a", "#b34d08", "#6d2a03")


class HeatMapPanel(Panel):
    """One matrix of a heat map: how each feature (row) relates to each other (column).

    Parameters
    ----------
    title : str
        What stands above the matrix.
    names : sequence of str
        The p features, in the order of rows and columns.
    values : array-like of shape (p, p)
        Finite numbers.

    Raises
    ------
    InvalidInputError
        If the matrix is not square, holds a number that is not finite, or does not fit the names.

    Examples
    --------
    >>> HeatMapPanel("FCorr", ["age", "income"], [[0.66, 0.37], [0.37, 1.3]]).values.shape
    (2, 2)
    """

    _n_dims = 2


def heat_map_svg(
    panels: Sequence[HeatMapPanel], *, title: str, sensitive: Collection[str] = ()
) -> str:
    """Draw matrices side by side, on one colour scale that is white at zero.

    Up to 12 features, each cell shows its number; beyond, a short stroke marks the cells with a
    clearly negative one. Pointing at a cell names its row, its column and its number.

    Parameters
    ----------
    panels : sequence of HeatMapPanel
        The matrices, from left to right.
    title : str
        The heading, which is also the name of the figure for screen readers.
    sensitive : collection of str, default=()
        Features to mark. Names that no panel shows are ignored.

    Returns
    -------
    str
        An ``<svg>`` element, to be embedded in a page or saved as a file.

    Raises
    ------
    InvalidInputError
        If there is no panel, or one has more than 60 features.

    Examples
    --------
    >>> panel = HeatMapPanel("FCorr", ["age", "income"], [[0.66, 0.37], [0.37, 1.3]])
    >>> svg = heat_map_svg([panel], title="Attention", sensitive=["age"])
    >>> svg.startswith("<svg"), ">0.37</text>" in svg
    (True, True)
    """
    panels = check_panels(panels, "heat map")
    title, marked = printable(title), as_names(sensitive)
    limit = max(float(np.abs(panel.values).max()) for panel in panels)
    limit = limit if limit > TINY else 1.0
    n_most = max(len(panel.names) for panel in panels)
    written = n_most <= _MAX_WRITTEN
    cell = float(clip(260 // n_most, 40, 64) if written else clip(440 // n_most, 11, 22))
    text_size = min(TEXT_SIZE, cell - 1.5)
    gutter = MARKER_GUTTER if any(marked.intersection(panel.names) for panel in panels) else 0.0
    label_gap = 5.0 + gutter

    # Equal features in equal order: one set of row labels serves all panels.
    shared_rows = all(panel.names == panels[0].names for panel in panels)
    widest = max(widest_name(panel.names, text_size, marked) for panel in panels)
    turned = widest > cell - 4
    column_depth = label_gap + (widest if turned else text_size)

    top = MARGIN + TITLE_SIZE + 20 + PANEL_TITLE_SIZE + 9
    x = MARGIN
    placed: list[dict[str, Any]] = []
    for i, panel in enumerate(panels):
        labelled = i == 0 or not shared_rows
        if labelled:
            x += widest_name(panel.names, text_size, marked) + label_gap
        side = cell * len(panel.names)
        slot = max(side, text_width(panel.title, PANEL_TITLE_SIZE, bold=True))
        left = x + (slot - side) / 2
        placed.append(
            {
                "left": left,
                "side": side,
                "title": panel.title,
                "labels": [make_label(name, marked) for name in panel.names],
                "labelled_rows": labelled,
                "cells": _cells(panel, limit=limit, size=cell, written=written),
            }
        )
        x += slot + PANEL_GAP
    tallest = cell * n_most

    scale_left = x - PANEL_GAP + 24
    scale_height = min(tallest, 220.0)
    ticks = round_ticks(-limit, limit, most=9)
    right = scale_left + 20 + max(text_width(text, TEXT_SIZE) for _, text in ticks)

    strokes = any(c["stroke"] for panel in placed for c in panel["cells"])
    legend, legend_width = place_legend(
        [("marker", "sensitive")] * bool(gutter) + [("stroke", "negative")] * strokes,
    )
    bottom = top + tallest + column_depth
    legend_y = bottom + 22
    first = placed[0]["left"]
    return render(
        "heat_map.svg.j2",
        title=title,
        description=_describe_heat_map(panels, marked),
        identity=identity("heat map", title, panels, marked),
        width=max(
            right + MARGIN,
            2 * MARGIN + text_width(title, TITLE_SIZE, bold=True),
            first + legend_width + MARGIN,
        ),
        height=(legend_y + 4 if legend else bottom) + MARGIN,
        top=top,
        cell=cell,
        text_size=text_size,
        label_gap=label_gap,
        turned=turned,
        panels=placed,
        scale={
            "left": scale_left,
            "height": scale_height,
            "ticks": [
                {"y": scale_height * (0.5 - tick / (2 * limit)), "text": text}
                for tick, text in ticks
            ],
            "stops": _gradient_stops(),
        },
        legend=[item | {"x": first + item["x"]} for item in legend],
        legend_y=legend_y,
    )


def _colour(share: float) -> str:
    """Return the colour for a share of the scale, from -1 (blue) over 0 (white) to 1 (orange).

    Examples
    --------
    >>> _colour(0), _colour(-1), _colour(1)
    ('#ffffff', '#0b3163', '#6d2a03')
    """
    arm = _POSITIVE_ARM if share >= 0 else _NEGATIVE_ARM
    i = max(bisect.bisect_left(_ARM_POSITIONS, min(abs(share), 1.0)) - 1, 0)
    weight = (min(abs(share), 1.0) - _ARM_POSITIONS[i]) / (
        _ARM_POSITIONS[i + 1] - _ARM_POSITIONS[i]
    )
    mixed = (
        round((1 - weight) * a + weight * b)
        for a, b in zip(bytes.fromhex(arm[i][1:]), bytes.fromhex(arm[i + 1][1:]), strict=True)
    )
    return "#" + bytes(mixed).hex()


def _gradient_stops() -> list[dict[str, Any]]:
    """List the colours of the whole scale, from the largest value at the top down."""
    above = zip(_ARM_POSITIONS, _POSITIVE_ARM, strict=True)
    below = zip(_ARM_POSITIONS, _NEGATIVE_ARM, strict=True)
    stops = [(0.5 - share / 2, colour) for share, colour in above][::-1]
    stops += [(0.5 + share / 2, colour) for share, colour in below][1:]
    return [{"offset": f"{offset:.3f}", "colour": colour} for offset, colour in stops]


def _ink_on(colour: str) -> str:
    """Choose dark or white text, whichever stands out more (WCAG contrast ratio).

    Examples
    --------
    >>> _ink_on("#ffffff"), _ink_on("#0b3163")
    ('#1a1a1a', '#ffffff')
    """

    def luminance(hex_colour: str) -> float:
        channels = (byte / 255 for byte in bytes.fromhex(hex_colour[1:]))
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    ground = luminance(colour) + 0.05
    with_dark = ground / (luminance(INK) + 0.05)
    with_white = 1.05 / ground
    return INK if with_dark >= with_white else PAPER


def _cells(
    panel: HeatMapPanel, *, limit: float, size: float, written: bool
) -> list[dict[str, Any]]:
    cells = []
    for (i, j), value in np.ndenumerate(panel.values):
        colour = _colour(value / limit)
        text = number(value, scale=limit)
        cells.append(
            {
                "x": j * size,
                "y": i * size,
                "colour": colour,
                "ink": _ink_on(colour),
                "hint": f"{panel.names[i]} × {panel.names[j]}: {text}",
                "text": text if written else "",
                # On a black-and-white print blue and orange look alike where they are dark.
                "stroke": not written and value < -0.05 * limit,
            }
        )
    return cells


def _describe_heat_map(panels: Sequence[HeatMapPanel], marked: Collection[str]) -> str:
    sentences = ["Heat map, orange for positive and blue for negative values."]
    for panel in panels:
        limit = float(np.abs(panel.values).max())
        i, j = divmod(int(panel.values.argmax()), len(panel.names))
        low, high = (number(v, scale=limit) for v in (panel.values.min(), panel.values.max()))
        sentences.append(
            f"{panel.title}: {len(panel.names)} features, values from {low} to {high}; "
            f"the largest is {panel.names[i]} × {panel.names[j]}."
        )
    return " ".join(sentences + describe_marked(panels, marked))
