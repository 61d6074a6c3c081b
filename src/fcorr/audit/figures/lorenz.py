"""Lorenz curves of one or several models, in one square."""

from collections.abc import Mapping

import numpy as np

from fcorr._core import InvalidInputError
from fcorr.audit.figures._render import MARGIN, TEXT_SIZE, TITLE_SIZE, identify, render
from fcorr.audit.figures._scale import Axis
from fcorr.audit.figures._series import CURVES, DIAGONAL, list_legend, path_through
from fcorr.audit.figures._text import centre_below, printable, shorten, text_width
from fcorr.metrics import LorenzCurve

_SIDE = 320.0
_MAX_POINTS = 201  # more than the eye can tell apart on this side


def lorenz_svg(
    curves: Mapping[str, LorenzCurve],
    *,
    title: str,
    x_label: str = "share of exposure, lowest predicted risk first",
    y_label: str = "share of claims",
) -> str:
    """Draw Lorenz curves: the further below the diagonal, the better the order.

    Parameters
    ----------
    curves : mapping of str to LorenzCurve
        One to four curves by the name of their model, from :func:`fcorr.metrics.lorenz_curve`.
    title : str
        The heading, which is also the name of the figure for screen readers.
    x_label, y_label : str
        What the axes measure.

    Returns
    -------
    str
        An ``<svg>`` element, to be embedded in a page or saved as a file.

    Raises
    ------
    InvalidInputError
        If there is no curve, or more than four.

    Examples
    --------
    >>> from fcorr.metrics import lorenz_curve
    >>> curve = lorenz_curve([0, 0, 1, 2], [0.1, 0.2, 0.3, 0.4])
    >>> svg = lorenz_svg({"FCorr": curve}, title="Order of risks")
    >>> "FCorr, Gini 0.58" in svg
    True
    """
    if not 1 <= len(curves) <= len(CURVES):
        raise InvalidInputError(
            f"A Lorenz figure shows one to {len(CURVES)} curves, got {len(curves)}. "
            "Choose the models to show."
        )
    title, x_label, y_label = printable(title), printable(x_label), printable(y_label)
    axis = Axis(0.0, 1.0, _SIDE, most_ticks=5)
    ticks = axis.ticks()
    label_room = 7 + max(text_width(text, TEXT_SIZE) for _, text in ticks)
    left = MARGIN + label_room
    x_label_at = centre_below(x_label, TEXT_SIZE, length=_SIDE, room=label_room)
    top = MARGIN + TITLE_SIZE + 20 + TEXT_SIZE + 9

    drawn, items, sentences = [], [], ["Lorenz curves, policies by predicted risk."]
    for (name, curve), style in zip(curves.items(), CURVES, strict=False):
        gini = f"{curve.gini:.3f}".replace("-", "−")
        text = f"{shorten(printable(name))}, Gini {gini}"
        x, y = _thin(curve)
        places = [(axis.place(a), _SIDE - axis.place(b)) for a, b in zip(x, y, strict=True)]
        drawn.append({"path": path_through(places), "style": style, "hint": text})
        items.append(("line", style, text))
        half = np.interp(0.5, curve.exposure_share, curve.claim_share)
        sentences.append(
            f"{printable(name)}: Gini {gini}; the half of lowest predicted risk has "
            f"{100 * half:.0f} % of the total."
        )
    items.append(("line", DIAGONAL, "an order that says nothing, Gini 0"))
    bottom = top + _SIDE + 40
    legend, legend_right, legend_height = list_legend(items, left)
    return render(
        "lorenz.svg.j2",
        title=title,
        description=" ".join(sentences),
        identity=identify("lorenz", title, x_label, y_label, sentences, drawn),
        width=MARGIN
        + max(
            left + _SIDE + text_width("1.0", TEXT_SIZE) / 2,
            left + x_label_at + text_width(x_label, TEXT_SIZE) / 2,
            MARGIN + text_width(y_label, TEXT_SIZE),
            MARGIN + text_width(title, TITLE_SIZE, bold=True),
            legend_right,
        ),
        height=bottom + 22 + legend_height + 4 + MARGIN,
        top=top,
        left=left,
        side=_SIDE,
        label_room=label_room,
        text_size=TEXT_SIZE,
        x_label=x_label,
        x_label_at=x_label_at,
        y_label=y_label,
        x_ticks=[{"x": place, "text": text} for place, text in ticks],
        y_ticks=[{"y": _SIDE - place, "text": text} for place, text in ticks],
        curves=drawn,
        diagonal=DIAGONAL,
        legend=legend,
        legend_y=bottom + 22,
    )


def _thin(curve: LorenzCurve) -> tuple[list[float], list[float]]:
    """Keep a curve's own points while they are few, else read it off at equal distances."""
    x = curve.exposure_share
    if len(x) > _MAX_POINTS:
        x = np.linspace(0, 1, _MAX_POINTS)
    return x.tolist(), np.interp(x, curve.exposure_share, curve.claim_share).tolist()
