"""Words and numbers in a figure: what can be shown, how wide it is, how many digits it needs."""

import unicodedata
from collections.abc import Collection, Iterable
from typing import Any

MAX_NAME = 32  # characters of a name; the rest is in its tooltip


def printable(text: object) -> str:
    r"""Replace what XML forbids or a single line cannot show; escaping is the template's work.

    Examples
    --------
    >>> printable("two\nlines\x00")
    'two lines�'
    """
    return "".join(
        " " if char.isspace() else "\ufffd" if is_forbidden(char) else char for char in str(text)
    )


def is_forbidden(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cs") or char in "\ufffe\uffff"


def shorten(name: str) -> str:
    """Cut a long name, and show that something is missing.

    Examples
    --------
    >>> shorten("date_of_birth_distinct_emails_4w_by_branch")
    'date_of_birth_distinct_emails_4…'
    """
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"


def text_width(text: str, size: float, *, bold: bool = False) -> float:
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


def centre_below(text: str, size: float, *, length: float, room: float) -> float:
    """Say where to centre a text below an axis, so that it sticks out at the right if anywhere.

    Parameters
    ----------
    text : str
        What stands below the axis.
    size : float
        Its font size.
    length : float
        The axis, from 0.
    room : float
        How far to the left of the axis the text may begin.
    """
    return max(length / 2, text_width(text, size) / 2 - room)


def widest_name(names: Iterable[str], size: float, marked: Collection[str]) -> float:
    """Return the width of the widest of some names, as they are shown."""
    return max(text_width(shorten(name), size, bold=name in marked) for name in names)


def make_label(name: str, marked: Collection[str]) -> dict[str, Any]:
    """Prepare a feature's name: what is shown, and what pointing at it tells where that differs."""
    text, sensitive = shorten(name), name in marked
    hint = f"{name} (sensitive)" if sensitive else name if text != name else ""
    return {"text": text, "sensitive": sensitive, "hint": hint}


def number(value: float, *, scale: float) -> str:
    """Write a number with two or three significant digits, no finer than a thousandth of the scale.

    Examples
    --------
    >>> [number(value, scale=2.5) for value in (1.304, 0.998, -0.0231, 0.00001, 0.0)]
    ['1.3', '1.0', '−0.023', '≈0', '0']
    >>> [number(value, scale=200) for value in (12.46, 99.97, 123.4)]
    ['12.5', '100', '123']
    >>> number(27507.9, scale=50_000), number(1.2e-7, scale=1e-6), number(3.1e9, scale=1e10)
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


def short_number(value: float) -> str:
    """Write a setting such as a weight: as it is, or as a power of ten if it is large or small.

    Examples
    --------
    >>> [short_number(value) for value in (0, 0.25, 100, 1e4, 2.5e-4)]
    ['0', '0.25', '100', '1e4', '2.5e−4']
    """
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:g}".replace("-", "−")
    mantissa, exponent = f"{value:e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}".replace("-", "−")


def coordinate(value: float) -> str:
    """Write a length with at most two decimals, and none that are zero.

    Examples
    --------
    >>> [coordinate(value) for value in (12.0, 0.126, -0.001, 1234.5)]
    ['12', '0.13', '0', '1234.5']
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
