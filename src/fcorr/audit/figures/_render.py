"""What all figures look like, and how they become text: sizes, inks, legends and templates."""

import functools
import hashlib
from typing import Any

import jinja2

from fcorr.audit.figures._text import coordinate, text_width

MARGIN = 20.0
TITLE_SIZE = 15.0
PANEL_TITLE_SIZE = 12.5
TEXT_SIZE = 11.0
PANEL_GAP = 30.0
MARKER_GUTTER = 11.0

INK = "#1a1a1a"
PAPER = "#ffffff"


def place_legend(items: list[tuple[str, str]]) -> tuple[list[dict[str, Any]], float]:
    """Place the explanations of the symbols on one line; return them and the width they need."""
    x, placed = 0.0, []
    for symbol, text in items:
        symbol_width = 30.0 if symbol == "sensitive bar" else 17.0
        placed.append({"x": x, "y": 0.0, "symbol": symbol, "text": text, "text_x": symbol_width})
        x += symbol_width + text_width(text, TEXT_SIZE) + 18
    return placed, x


def identify(*content: object) -> str:
    """Derive a figure's ids from its content: unique among many in a page, never random."""
    return f"figure-{hashlib.sha256(repr(content).encode()).hexdigest()[:12]}"


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fcorr.audit", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["px"] = coordinate
    environment.globals |= {"ink": INK, "paper": PAPER, "margin": MARGIN}
    environment.globals |= {"title_size": TITLE_SIZE, "panel_title_size": PANEL_TITLE_SIZE}
    return environment


def render(template: str, **figure: Any) -> str:
    """Fill in a template."""
    return _environment().get_template(template).render(figure)
