"""Cost against the number of features as an SVG picture, in the manner of the audit's figures.

Both axes are logarithmic, so that a cost that grows with p is a line of slope one and a cost that
grows with p² one of slope two. Lines carry their names at their ends.
"""

import hashlib
import html
import math
from collections.abc import Sequence

from benchmarks.speed.tables import LABELS, Results

_INK, _PAPER, _GRID = "#1a1a1a", "#ffffff", "#d9d9d9"
_FONT = "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"
_LEFT, _TOP, _WIDTH, _HEIGHT, _RIGHT, _BOTTOM = 66.0, 62.0, 500.0, 360.0, 196.0, 56.0
_LABEL_DISTANCE = 14.0
# FCorr in the audit's blue and orange; the others in tones that stay apart in grey, and dashed.
_STYLE = {
    "fcorr": ("#0b3163", ""),
    "fcorr_car": ("#e5812a", ""),
    "fcorr_sdpa": ("#4488c2", "5 3"),
    "fcorr_exact": ("#92bfe0", "2 3"),
    "ft_transformer": ("#6b6b6b", ""),
}
TITLE = "Training step: cost per row against the number of features"

Line = tuple[str, list[tuple[float, float]]]  # a model, its points (p, µs per row)


def cost_svg(results: Results) -> str:
    """Draw every model's µs per row against p; only axes before anything is measured."""
    lines = [line for line in (_line(results, model) for model in _STYLE) if line[1]]
    points = [point for _, line in lines for point in line]
    x_low, x_high = _span([p for p, _ in points], (31, 2_324))
    y_low, y_high = _decades([cost for _, cost in points])

    def place(p: float, cost: float) -> tuple[float, float]:
        x = (math.log(p) - math.log(x_low)) / (math.log(x_high) - math.log(x_low))
        y = (math.log(cost) - math.log(y_low)) / (math.log(y_high) - math.log(y_low))
        return _LEFT + x * _WIDTH, _TOP + (1 - y) * _HEIGHT

    body = [
        *_horizontal_axis(sorted({p for p, _ in points}) or [31, 2_324], place, y_low),
        *_vertical_axis(y_low, y_high, place, x_low),
    ]
    ends = []
    for model, line in lines:
        placed = [place(*point) for point in line]
        body += _curve(model, line, placed)
        ends.append((placed[-1], model))
    body += _end_labels(ends)
    if not lines:
        body.append(
            _text(_LEFT + _WIDTH / 2, _TOP + _HEIGHT / 2, "not measured yet", anchor="middle")
        )
    return _svg(body, _describe(lines))


def _line(results: Results, model: str) -> Line:
    found = results.select(kind="scaling", model=model)
    costs = {r["p"]: results.per_row("scaling", model, p=r["p"]) for r in found}
    return model, [(p, 1e6 * cost) for p, cost in sorted(costs.items()) if cost is not None]


def _span(values: Sequence[float], default: tuple[float, float]) -> tuple[float, float]:
    low, high = (min(values), max(values)) if values else default
    return low, high if high > low else 2 * low


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """Widen a range to whole powers of ten."""
    low, high = _span(values, (1, 1_000_000))
    return 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))


# ------------------------------------------------------------------------------------ drawing


def _horizontal_axis(ticks: Sequence[float], place, y_low: float) -> list[str]:
    body = []
    for p in ticks:
        x, y = place(p, y_low)
        body.append(_path(f"M{_px(x)} {_px(_TOP)}V{_px(y)}", _GRID))
        body.append(_text(x, y + 16, f"{p:,}", anchor="middle", colour="#444444"))
    bottom = _TOP + _HEIGHT
    body.append(_path(f"M{_px(_LEFT)} {_px(bottom)}h{_px(_WIDTH)}", _INK))
    body.append(_text(_LEFT + _WIDTH / 2, bottom + 36, "features, p", anchor="middle"))
    return body


def _vertical_axis(y_low: float, y_high: float, place, x_low: float) -> list[str]:
    body = []
    for exponent in range(round(math.log10(y_low)), round(math.log10(y_high)) + 1):
        x, y = place(x_low, 10.0**exponent)
        body.append(_path(f"M{_px(x)} {_px(y)}h{_px(_WIDTH)}", _GRID))
        label = f"{10.0**exponent:,.0f}" if exponent >= 0 else f"{10.0**exponent:g}"
        body.append(_text(x - 7, y + 4, label, anchor="end", colour="#444444"))
    body.append(_path(f"M{_px(_LEFT)} {_px(_TOP)}v{_px(_HEIGHT)}", _INK))
    body.append(_text(_LEFT, _TOP - 10, "µs per row"))
    return body


def _curve(
    model: str, line: Sequence[tuple[float, float]], placed: Sequence[tuple[float, float]]
) -> list[str]:
    colour, dashes = _STYLE[model]
    path = "M" + "L".join(f"{_px(x)} {_px(y)}" for x, y in placed)
    body = [_path(path, colour, width=2, dashes=dashes)]
    for (p, cost), (x, y) in zip(line, placed, strict=True):
        hint = html.escape(f"{LABELS[model]}, p = {p:,}: {cost:,.3g} µs per row")
        dot = f'<circle cx="{_px(x)}" cy="{_px(y)}" r="3" fill="{colour}">'
        body.append(f"{dot}<title>{hint}</title></circle>")
    return body


def _end_labels(ends: Sequence[tuple[tuple[float, float], str]]) -> list[str]:
    """Write each name beside the end of its line, and keep neighbours apart."""
    body, above = [], -math.inf
    for (x, y), model in sorted(ends, key=lambda end: end[0][1]):
        above = max(y, above + _LABEL_DISTANCE)
        colour = _STYLE[model][0]
        if above > y:
            body.append(_path(f"M{_px(x + 4)} {_px(y)}L{_px(x + 12)} {_px(above)}", _GRID))
        # Pale lines keep dark names: what is read needs contrast.
        body.append(f'<circle cx="{_px(x + 16)}" cy="{_px(above)}" r="3" fill="{colour}"/>')
        body.append(_text(x + 23, above + 4, LABELS[model]))
    return body


def _path(d: str, colour: str, *, width: float = 0.75, dashes: str = "") -> str:
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = _INK) -> str:
    return (
        f'<text x="{_px(x)}" y="{_px(y)}" text-anchor="{anchor}" fill="{colour}">'
        f"{html.escape(text)}</text>"
    )


def _px(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _describe(lines: Sequence[Line]) -> str:
    sentences = ["Line chart, both axes logarithmic."]
    for model, points in lines:
        costs = ", ".join(f"{cost:,.3g} at p = {p:,}" for p, cost in points)
        sentences.append(f"{LABELS[model]}, µs per row: {costs}.")
    return " ".join(sentences)


def _svg(body: Sequence[str], description: str) -> str:
    width, height = _LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BOTTOM
    identity = f"figure-{hashlib.sha256(description.encode()).hexdigest()[:12]}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'aria-labelledby="{identity}-title {identity}-description" '
            f'width="{_px(width)}" height="{_px(height)}" '
            f'viewBox="0 0 {_px(width)} {_px(height)}" style="max-width:100%;height:auto" '
            f'font-family="{_FONT}" font-size="11" fill="{_INK}">',
            f'<title id="{identity}-title">{TITLE}</title>',
            f'<desc id="{identity}-description">{html.escape(description)}</desc>',
            f'<rect width="{_px(width)}" height="{_px(height)}" rx="6" fill="{_PAPER}"/>',
            f'<text x="20" y="32" font-size="15" font-weight="bold">{TITLE}</text>',
            *body,
            "</svg>\n",
        ]
    )
