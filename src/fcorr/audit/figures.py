"""Figures as SVG text: from plain data to a picture that stands alone, on paper or in a page.

The functions here measure and place; the templates beside this file draw. A figure needs no script,
no style sheet and no font of its own, carries its numbers as text, and comes out the same, byte for
byte, for the same data.
"""

import bisect
import functools
import hashlib
import math
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import jinja2
import numpy as np
from numpy.typing import NDArray

from fcorr._core.errors import InvalidInputError

__all__ = ["BarPanel", "HeatMapPanel", "bar_chart_svg", "heat_map_svg"]

MAX_FEATURES = 60
_MAX_WRITTEN = 12  # up to this many features, each cell has room for its number
_MAX_NAME = 32  # characters of a name; the rest is in its tooltip

_TINY = 1e-300  # the scale of all-zero values is set to one
_MARGIN = 20.0
_TITLE_SIZE = 15.0
_PANEL_TITLE_SIZE = 12.5
_TEXT_SIZE = 11.0
_PANEL_GAP = 30.0
_MARKER_GUTTER = 11.0

_INK = "#1a1a1a"
_PAPER = "#ffffff"
# Blue and orange stay apart for every common colour blindness. Both arms darken alike from white,
# so that a black-and-white print keeps the size; the sign is written or marked in the cell. They
# darken faster near zero: often one cell is far larger than the rest, which should not look empty.
_ARM_POSITIONS = (0.0, 0.05, 0.2, 0.45, 0.75, 1.0)
_NEGATIVE_ARM = ("#ffffff", "#d3e4f3", "#92bfe0", "#4488c2", "#1b5a9c", "#0b3163")
_POSITIVE_ARM = ("#ffffff", "#fde2c6", "#f9b876", "#e5812a", "#b34d08", "#6d2a03")
_BAR_COLOUR = "#34679f"
_SENSITIVE_BAR_COLOUR = "#f0a03c"


@dataclass(frozen=True, eq=False)
class _Panel:
    """A titled group of named numbers, checked when made."""

    title: str
    names: Sequence[str]
    values: NDArray[np.float64]

    _n_dims: ClassVar[int]

    def __post_init__(self) -> None:
        title = _printable(self.title)
        names = tuple(_printable(name) for name in self.names)
        values = np.array(self.values, dtype=np.float64)
        shape = (len(names),) * self._n_dims
        if not names:
            raise InvalidInputError(f"Panel {title!r} has no features. Pass at least one name.")
        if values.shape != shape:
            raise InvalidInputError(
                f"Panel {title!r} has {len(names)} names, so values must have shape {shape}, "
                f"got {values.shape}."
            )
        if not np.isfinite(values).all():
            where = tuple(np.argwhere(~np.isfinite(values))[0])
            features = " × ".join(repr(names[i]) for i in where)
            raise InvalidInputError(
                f"Panel {title!r} must hold finite numbers, got {values[where]} for {features}. "
                "Leave out the features that have none."
            )
        for field, value in (("title", title), ("names", names), ("values", values)):
            object.__setattr__(self, field, value)


class HeatMapPanel(_Panel):
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


class BarPanel(_Panel):
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


_AnyPanel = TypeVar("_AnyPanel", bound=_Panel)


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
    panels = _check_panels(panels, "heat map")
    title, marked = _printable(title), _as_names(sensitive)
    limit = max(float(np.abs(panel.values).max()) for panel in panels)
    limit = limit if limit > _TINY else 1.0
    n_most = max(len(panel.names) for panel in panels)
    written = n_most <= _MAX_WRITTEN
    cell = float(_clip(260 // n_most, 40, 64) if written else _clip(440 // n_most, 11, 22))
    text_size = min(_TEXT_SIZE, cell - 1.5)
    gutter = _MARKER_GUTTER if any(marked.intersection(panel.names) for panel in panels) else 0.0
    label_gap = 5.0 + gutter

    # Equal features in equal order: one set of row labels serves all panels.
    shared_rows = all(panel.names == panels[0].names for panel in panels)
    widest = max(_widest(panel.names, text_size, marked) for panel in panels)
    turned = widest > cell - 4
    column_depth = label_gap + (widest if turned else text_size)

    top = _MARGIN + _TITLE_SIZE + 20 + _PANEL_TITLE_SIZE + 9
    x = _MARGIN
    placed: list[dict[str, Any]] = []
    for i, panel in enumerate(panels):
        labelled = i == 0 or not shared_rows
        if labelled:
            x += _widest(panel.names, text_size, marked) + label_gap
        side = cell * len(panel.names)
        slot = max(side, _text_width(panel.title, _PANEL_TITLE_SIZE, bold=True))
        left = x + (slot - side) / 2
        placed.append(
            {
                "left": left,
                "side": side,
                "title": panel.title,
                "labels": [_label(name, marked) for name in panel.names],
                "labelled_rows": labelled,
                "cells": _cells(panel, limit=limit, size=cell, written=written),
            }
        )
        x += slot + _PANEL_GAP
    tallest = cell * n_most

    scale_left = x - _PANEL_GAP + 24
    scale_height = min(tallest, 220.0)
    ticks = _ticks(-limit, limit, most=9)
    right = scale_left + 20 + max(_text_width(text, _TEXT_SIZE) for _, text in ticks)

    strokes = any(c["stroke"] for panel in placed for c in panel["cells"])
    legend, legend_width = _legend(
        [("marker", "sensitive")] * bool(gutter) + [("stroke", "negative")] * strokes,
    )
    bottom = top + tallest + column_depth
    legend_y = bottom + 22
    first = placed[0]["left"]
    return _render(
        "heat_map.svg.j2",
        title=title,
        description=_describe_heat_map(panels, marked),
        identity=_identity("heat map", title, panels, marked),
        width=max(
            right + _MARGIN,
            2 * _MARGIN + _text_width(title, _TITLE_SIZE, bold=True),
            first + legend_width + _MARGIN,
        ),
        height=(legend_y + 4 if legend else bottom) + _MARGIN,
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
    panels = _check_panels(panels, "bar chart")
    title, x_label, marked = _printable(title), _printable(x_label), _as_names(sensitive)
    gutter = _MARKER_GUTTER if any(marked.intersection(panel.names) for panel in panels) else 0.0
    label_gap = 6.0 + gutter
    length, row, thickness = 230.0, 22.0, 14.0

    ranges = [(min(0.0, panel.values.min()), max(0.0, panel.values.max())) for panel in panels]
    if shared_scale:
        lows, highs = zip(*ranges, strict=True)
        ranges = [(min(lows), max(highs))] * len(panels)

    top = _MARGIN + _TITLE_SIZE + 20 + _PANEL_TITLE_SIZE + 9
    x = _MARGIN
    placed: list[dict[str, Any]] = []
    for panel, (low, high) in zip(panels, ranges, strict=True):
        if high - low <= _TINY:
            high = 1.0
        texts = [_number(value, scale=max(-low, high)) for value in panel.values]
        room = max(_text_width(text, _TEXT_SIZE) for text in texts) + 6
        room_left = room if low < 0 else 0.0
        left = x + _widest(panel.names, _TEXT_SIZE, marked) + label_gap + room_left
        unit = length / (high - low)
        bars = []
        for rank, i in enumerate(np.argsort(-panel.values, kind="stable")):
            value = float(panel.values[i])
            label = _label(panel.names[i], marked)
            bars.append(
                {
                    "y": rank * row + row / 2,
                    "x": (min(value, 0.0) - low) * unit,
                    "width": abs(value) * unit,
                    "negative": value < 0,
                    "label": label,
                    "text": texts[i],
                    "text_width": _text_width(texts[i], _TEXT_SIZE),
                    "hint": f"{panel.names[i]}: {texts[i]}",
                    "colour": _SENSITIVE_BAR_COLOUR if label["sensitive"] else _BAR_COLOUR,
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
                    for tick, text in _ticks(low, high, most=6)
                ],
            }
        )
        slot = max(
            length + room,
            _text_width(panel.title, _PANEL_TITLE_SIZE, bold=True),
            (length + _text_width(x_label, _TEXT_SIZE)) / 2,
        )
        x = left + slot + _PANEL_GAP
    right = x - _PANEL_GAP

    legend, legend_width = _legend(
        [("sensitive bar", "sensitive"), ("bar", "other features")] if gutter else []
    )
    bottom = top + row * max(len(panel.names) for panel in panels) + 40
    legend_y = bottom + 22
    first = placed[0]["left"]
    return _render(
        "bar_chart.svg.j2",
        title=title,
        description=_describe_bars(panels, x_label, marked),
        identity=_identity("bar chart", title, panels, marked, x_label, str(shared_scale)),
        width=max(
            right + _MARGIN,
            2 * _MARGIN + _text_width(title, _TITLE_SIZE, bold=True),
            first + legend_width + _MARGIN,
        ),
        height=(legend_y + 4 if legend else bottom) + _MARGIN,
        top=top,
        length=length,
        thickness=thickness,
        text_size=_TEXT_SIZE,
        x_label=x_label,
        panels=placed,
        legend=[item | {"x": first + item["x"]} for item in legend],
        legend_y=legend_y,
        bar_colour=_BAR_COLOUR,
        sensitive_bar_colour=_SENSITIVE_BAR_COLOUR,
    )


# ----------------------------------------------------------------------------------- checking


def _check_panels(panels: Iterable[_AnyPanel], figure: str) -> list[_AnyPanel]:
    """Refuse a figure that would be empty, or too crowded to read."""
    panels = list(panels)
    if not panels:
        raise InvalidInputError(f"A {figure} needs at least one panel, got none.")
    for panel in panels:
        if len(panel.names) > MAX_FEATURES:
            raise InvalidInputError(
                f"A {figure} shows at most {MAX_FEATURES} features, panel {panel.title!r} has "
                f"{len(panel.names)}. Choose the ones to show."
            )
    return panels


def _as_names(sensitive: Collection[str]) -> frozenset[str]:
    names = [sensitive] if isinstance(sensitive, str) else sensitive
    return frozenset(_printable(name) for name in names)


# -------------------------------------------------------------------------- text and numbers


def _printable(text: object) -> str:
    r"""Replace what XML forbids or a single line cannot show; escaping is the template's work.

    Examples
    --------
    >>> _printable("two\nlines\x00")
    'two lines�'
    """
    return "".join(
        " " if char.isspace() else "\ufffd" if _is_forbidden(char) else char for char in str(text)
    )


def _is_forbidden(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cs") or char in "\ufffe\uffff"


def _shorten(name: str) -> str:
    """Cut a long name, and show that something is missing.

    Examples
    --------
    >>> _shorten("date_of_birth_distinct_emails_4w_by_branch")
    'date_of_birth_distinct_emails_4…'
    """
    return name if len(name) <= _MAX_NAME else name[: _MAX_NAME - 1] + "…"


def _text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Estimate the width of a line of sans-serif text, a little on the wide side.

    The reader's font is not known: the classes below bound the common ones from above, so that
    labels keep their distance and nothing is cut.
    """
    width = 0.0
    for char in text:
        if unicodedata.east_asian_width(char) in "WF":
            width += 1.0
        elif char in "iljtfrI.,:;'|!()[] ":
            width += 0.36
        elif char in "mwMW@%—…":
            width += 0.92
        elif char.isupper():
            width += 0.70
        else:
            width += 0.57
    return width * size * (1.08 if bold else 1.0)


def _widest(names: Iterable[str], size: float, marked: Collection[str]) -> float:
    return max(_text_width(_shorten(name), size, bold=name in marked) for name in names)


def _label(name: str, marked: Collection[str]) -> dict[str, Any]:
    """Prepare a feature's name: what is shown, and what pointing at it tells where that differs."""
    text, sensitive = _shorten(name), name in marked
    hint = f"{name} (sensitive)" if sensitive else name if text != name else ""
    return {"text": text, "sensitive": sensitive, "hint": hint}


def _number(value: float, *, scale: float) -> str:
    """Write a number with two or three significant digits, no finer than a thousandth of the scale.

    Examples
    --------
    >>> [_number(value, scale=2.5) for value in (1.304, 0.998, -0.0231, 0.00001, 0.0)]
    ['1.3', '1.0', '−0.023', '≈0', '0']
    >>> [_number(value, scale=200) for value in (12.46, 99.97, 123.4)]
    ['12.5', '100', '123']
    >>> _number(27507.9, scale=50_000), _number(1.2e-7, scale=1e-6), _number(3.1e9, scale=1e10)
    ('27,508', '1.2e−7', '3.1e9')
    """
    size = abs(value)
    if size < scale / 2000:
        return "≈0" if size else "0"
    mantissa, exponent = f"{value:.1e}".split("e")
    if 1e-3 <= size < 1e6:
        decimals = 0 if size >= 99.95 else max(1, 1 - int(exponent))
        text = f"{value:,.{decimals}f}"
    else:
        text = f"{mantissa}e{int(exponent)}"
    return text.replace("-", "−")


def _ticks(low: float, high: float, *, most: int) -> list[tuple[float, str]]:
    """Choose round numbers between two bounds, with zero among them if it lies there.

    Examples
    --------
    >>> _ticks(-2.5, 2.5, most=7)
    [(-2.0, '−2'), (-1.0, '−1'), (0.0, '0'), (1.0, '1'), (2.0, '2')]
    >>> [text for _, text in _ticks(0, 0.83, most=6)]
    ['0.0', '0.2', '0.4', '0.6', '0.8']
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if 1e-4 <= step < 1e7:
        form = f",.{max(0, -math.floor(math.log10(step) + 1e-9))}f"
    else:
        form = ".1e"
    ticks = [i * step for i in range(first, last + 1)]
    return [(tick, f"{tick:{form}}".replace("-", "−")) for tick in ticks]


def _clip(value: float, low: float, high: float) -> float:
    return max(low, min(high, value))


# ------------------------------------------------------------------------------------ colours


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
    with_dark = ground / (luminance(_INK) + 0.05)
    with_white = 1.05 / ground
    return _INK if with_dark >= with_white else _PAPER


# ------------------------------------------------------------------------------------ drawing


def _cells(
    panel: HeatMapPanel, *, limit: float, size: float, written: bool
) -> list[dict[str, Any]]:
    cells = []
    for (i, j), value in np.ndenumerate(panel.values):
        colour = _colour(value / limit)
        text = _number(value, scale=limit)
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


def _legend(items: list[tuple[str, str]]) -> tuple[list[dict[str, Any]], float]:
    """Place the explanations of the symbols on one line; return them and the width they need."""
    x, placed = 0.0, []
    for symbol, text in items:
        symbol_width = 30.0 if symbol == "sensitive bar" else 17.0
        placed.append({"x": x, "symbol": symbol, "text": text, "text_x": symbol_width})
        x += symbol_width + _text_width(text, _TEXT_SIZE) + 18
    return placed, x


def _describe_heat_map(panels: Sequence[HeatMapPanel], marked: Collection[str]) -> str:
    sentences = ["Heat map, orange for positive and blue for negative values."]
    for panel in panels:
        limit = float(np.abs(panel.values).max())
        i, j = divmod(int(panel.values.argmax()), len(panel.names))
        low, high = (_number(v, scale=limit) for v in (panel.values.min(), panel.values.max()))
        sentences.append(
            f"{panel.title}: {len(panel.names)} features, values from {low} to {high}; "
            f"the largest is {panel.names[i]} × {panel.names[j]}."
        )
    return " ".join(sentences + _describe_marked(panels, marked))


def _describe_bars(panels: Sequence[BarPanel], x_label: str, marked: Collection[str]) -> str:
    sentences = [f"Bar chart of {x_label}, largest first."]
    for panel in panels:
        scale = float(np.abs(panel.values).max())
        order = np.argsort(-panel.values, kind="stable")
        bars = ", ".join(f"{panel.names[i]} {_number(panel.values[i], scale=scale)}" for i in order)
        sentences.append(f"{panel.title}: {bars}.")
    return " ".join(sentences + _describe_marked(panels, marked))


def _describe_marked(panels: Sequence[_Panel], marked: Collection[str]) -> list[str]:
    shown = sorted({name for panel in panels for name in panel.names if name in marked})
    return [f"Sensitive: {', '.join(shown)}."] if shown else []


def _identity(
    kind: str,
    title: str,
    panels: Sequence[_Panel],
    marked: Collection[str],
    *more: str,
) -> str:
    """Derive the figure's ids from its content: unique among many in a page, never random."""
    digest = hashlib.sha256(repr((kind, title, sorted(marked), more)).encode())
    for panel in panels:
        digest.update(repr((panel.title, panel.names)).encode())
        digest.update(panel.values.tobytes())
    return f"figure-{digest.hexdigest()[:12]}"


def _coordinate(value: float) -> str:
    """Write a length with at most two decimals, and none that are zero.

    Examples
    --------
    >>> [_coordinate(value) for value in (12.0, 0.126, -0.001, 1234.5)]
    ['12', '0.13', '0', '1234.5']
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fcorr.audit", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["px"] = _coordinate
    environment.globals |= {"ink": _INK, "paper": _PAPER, "margin": _MARGIN}
    environment.globals |= {"title_size": _TITLE_SIZE, "panel_title_size": _PANEL_TITLE_SIZE}
    return environment


def _render(template: str, **figure: Any) -> str:
    return _environment().get_template(template).render(figure)
