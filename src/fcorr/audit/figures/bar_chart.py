"""Bar charts: a number for each feature, the largest first."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from fcorr.audit.figures._panels import Panel, as_names, check_panels, describe_marked, identity
from fcorr.audit.figures._render import (
    MARGIN,
    MARKER_GUTTER,
    PANEL_GAP,
    PANEL_TITLE_SIZE,
    TEXT_SIZE,
    TITLE_SIZE,
    place_legend,
    render,
)
from fcorr.audit.figures._scale import TINY, round_ticks
from fcorr.audit.figures._text import make_label, number, printable, text_width, widest_name

BAR_COLOUR = "#34679f"
SENSITIVE_BAR_COLOUR = "#f0a03c"


class BarPanel(Panel):
    """One group of bars: a number for each feature.

    Parameters
    ----------
    title : str
        What stands above the bars.
    names : sequence of str
        The features, in any order.
    values : array-like of shape (n_features,)
        Finite numbers.

    Raises
    ------
    InvalidInputError
        If a number is not finite, or the numbers do not fit the names.

    Examples
    --------
    >>> BarPanel("FCorr", ["age", "income"], [0.66, 1.3]).names
    ('age', 'income')
    """

    _n_dims = 1


def bar_chart_svg(
    panels: Sequence[BarPanel],
    *,
    title: str,
    x_label: str,
    sensitive: Collection[str] = (),
    shared_scale: bool = True,
) -> str:
    """Draw horizontal bars, the largest first, for one or several groups side by side.

    Parameters
    ----------
    panels : sequence of BarPanel
        The groups, from left to right; the caller chooses the features each one shows.
    title : str
        The heading, which is also the name of the figure for screen readers.
    x_label : str
        What the bars measure.
    sensitive : collection of str, default=()
        Features to mark, by colour and by symbol. Names that no panel shows are ignored.
    shared_scale : bool, default=True
        Whether one unit is equally long in all panels. Turn it off for groups whose numbers cannot
        be compared, such as the importances of different models.

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
    >>> panel = BarPanel("FCorr", ["age", "income"], [0.66, 1.3])
    >>> svg = bar_chart_svg([panel], title="Significance", x_label="diagonal", sensitive=["age"])
    >>> svg.index("income") < svg.index(">age<")
    True
    """
    panels = check_panels(panels, "bar chart")
    title, x_label, marked = printable(title), printable(x_label), as_names(sensitive)
    gutter = MARKER_GUTTER if any(marked.intersection(panel.names) for panel in panels) else 0.0
    label_gap = 6.0 + gutter
    length, row, thickness = 230.0, 22.0, 14.0

    ranges = [(min(0.0, panel.values.min()), max(0.0, panel.values.max())) for panel in panels]
    if shared_scale:
        lows, highs = zip(*ranges, strict=True)
        ranges = [(min(lows), max(highs))] * len(panels)

    top = MARGIN + TITLE_SIZE + 20 + PANEL_TITLE_SIZE + 9
    x = MARGIN
    placed: list[dict[str, Any]] = []
    for panel, (low, high) in zip(panels, ranges, strict=True):
        if high - low <= TINY:
            high = 1.0
        texts = [number(value, scale=max(-low, high)) for value in panel.values]
        room = max(text_width(text, TEXT_SIZE) for text in texts) + 6
        room_left = room if low < 0 else 0.0
        left = x + widest_name(panel.names, TEXT_SIZE, marked) + label_gap + room_left
        unit = length / (high - low)
        bars = []
        for rank, i in enumerate(np.argsort(-panel.values, kind="stable")):
            value = float(panel.values[i])
            label = make_label(panel.names[i], marked)
            bars.append(
                {
                    "y": rank * row + row / 2,
                    "x": (min(value, 0.0) - low) * unit,
                    "width": abs(value) * unit,
                    "negative": value < 0,
                    "label": label,
                    "text": texts[i],
                    "text_width": text_width(texts[i], TEXT_SIZE),
                    "hint": f"{panel.names[i]}: {texts[i]}",
                    "colour": SENSITIVE_BAR_COLOUR if label["sensitive"] else BAR_COLOUR,
                }
            )
        placed.append(
            {
                "left": left,
                "label_right": -label_gap - room_left,
                "title": panel.title,
                "bars": bars,
                "height": row * len(bars),
                "zero": -low * unit,
                "ticks": [
                    {"x": (tick - low) * unit, "text": text}
                    for tick, text in round_ticks(low, high, most=6)
                ],
            }
        )
        slot = max(
            length + room,
            text_width(panel.title, PANEL_TITLE_SIZE, bold=True),
            (length + text_width(x_label, TEXT_SIZE)) / 2,
        )
        x = left + slot + PANEL_GAP
    right = x - PANEL_GAP

    legend, legend_width = place_legend(
        [("sensitive bar", "sensitive"), ("bar", "other features")] if gutter else []
    )
    bottom = top + row * max(len(panel.names) for panel in panels) + 40
    legend_y = bottom + 22
    first = placed[0]["left"]
    return render(
        "bar_chart.svg.j2",
        title=title,
        description=_describe_bars(panels, x_label, marked),
        identity=identity("bar chart", title, panels, marked, x_label, str(shared_scale)),
        width=max(
            right + MARGIN,
            2 * MARGIN + text_width(title, TITLE_SIZE, bold=True),
            first + legend_width + MARGIN,
        ),
        height=(legend_y + 4 if legend else bottom) + MARGIN,
        top=top,
        length=length,
        thickness=thickness,
        text_size=TEXT_SIZE,
        x_label=x_label,
        panels=placed,
        legend=[item | {"x": first + item["x"]} for item in legend],
        legend_y=legend_y,
        bar_colour=BAR_COLOUR,
        sensitive_bar_colour=SENSITIVE_BAR_COLOUR,
    )


def _describe_bars(panels: Sequence[BarPanel], x_label: str, marked: Collection[str]) -> str:
    sentences = [f"Bar chart of {x_label}, largest first."]
    for panel in panels:
        scale = float(np.abs(panel.values).max())
        order = np.argsort(-panel.values, kind="stable")
        bars = ", ".join(f"{panel.names[i]} {number(panel.values[i], scale=scale)}" for i in order)
        sentences.append(f"{panel.title}: {bars}.")
    return " ".join(sentences + describe_marked(panels, marked))
