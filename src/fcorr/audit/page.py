"""What was measured as text: numbers, tables, the findings in words, the model card, the page.

The templates are ``page.txt``, ``page.md`` and ``page.html``; the page may have the model inside.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fcorr._core import show_text, to_plain
from fcorr.audit.displays import short_number
from fcorr.metrics._checks import describe_label
from fcorr.metrics.group import MIN_ROWS

if TYPE_CHECKING:
    import jinja2

    from fcorr.audit.report import AuditResult

Summary = Mapping[str, Any]

_SIDE_BY_SIDE = 6


# ------------------------------------------------------------------------------ numbers and tables


def show_cell(cell: Summary) -> str:
    """Write a figure with its interval, or why there is none.

    Examples
    --------
    >>> show_cell({"estimate": 0.8213, "low": 0.75, "high": 0.9})
    '0.82 (0.75 to 0.90)'
    >>> show_cell({"estimate": None, "why": "no positives"})
    'not estimable: no positives'
    """
    if cell["estimate"] is None:
        return f"not estimable: {cell['why']}"
    text = short_number(cell["estimate"])
    ends = [short_number(cell[name]) for name in ("low", "high") if name in cell]
    return f"{text} ({' to '.join(ends)})" if ends else text


def show_number(value: Any) -> str:
    """Write a number shortly; text stays, and what is not known is said so."""
    if value is None:
        return "not estimable"
    if isinstance(value, float):
        return short_number(value)
    if isinstance(value, str):
        return value
    return f"{value:,}" if type(value) is int else json.dumps(value)


def show_small(value: float | None) -> str:
    """Write a change or a bound, which may be tiny, exactly 0, unknown or without limit."""
    if value is None or np.isnan(value):
        return "n/a"
    if value == 0:
        return "0"
    return f"{value:.2g}" if 1e-3 <= abs(value) < 1e6 or np.isinf(value) else f"{value:.1e}"


def show_metric(name: str, values: float | Sequence[float]) -> str:
    """Write a metric of one or several fits, in the digits that its kind needs; n/a for nan.

    Of changes it is the mean, of all else the mean and, of several fits, their deviation.
    """
    mean = float(np.mean(values))
    if np.isnan(mean):
        return "n/a"
    if name == "parameters":
        return f"{mean:,.0f}"
    if name == "seconds":
        return f"{mean:.1f}"
    if name.startswith(("AvgIF", "largest change", "decisions", "found", "bound")):
        return show_small(mean)
    text = f"{mean:.3f}" if np.mean(np.abs(values)) < 1e4 else f"{mean:.4g}"
    return text if np.size(values) == 1 else f"{text} ± {np.std(values):.3f}"


class TextTable(NamedTuple):
    """A header and rows of cells, the first column names and the others numbers."""

    header: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """Write the table in Markdown."""
        lines = [[to_markdown(cell) for cell in line] for line in (self.header, *self.rows)]
        lines.insert(1, ["---", *["---:"] * (len(self.header) - 1)])
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def to_markdown(text: str) -> str:
    """Write text such that names from data are no links, no HTML and no end of a table's cell."""
    return re.sub(r"[\\|<\[`]", r"\\\g<0>", show_text(text))


# ------------------------------------------------------------------------------ the audit


def describe(summary: Summary) -> dict[str, list[str]]:
    """Say what was tested, what was found, and what it does not say: a sentence for each line."""
    template = _environment().get_template("page.txt")
    context = template.new_context(dict(summary))
    parts = {name: "".join(block(context)) for name, block in template.blocks.items()}
    return {name: [line for line in text.split("\n") if line] for name, text in parts.items()}


def model_card(summary: Summary) -> str:
    """Write a model card: Markdown, with a header that Hugging Face reads."""
    return _environment().get_template("page.md").render(summary)


def render(result: "AuditResult", estimator: Any) -> str:
    """Write the page; the weights of an estimator, if it is given, go into it."""
    summary, model = result.summary, None
    if estimator is not None:
        from fcorr.audit.whatif import pack_model

        subject, first = summary["subject"], getattr(estimator, "classes_", [None])[0]
        threshold = subject["threshold"]
        if threshold is not None and describe_label(first) == subject["classes"][1]:
            threshold = 1 - threshold  # it is about the model's first class
        model = to_plain(pack_model(estimator, threshold))
    css, script = (_read(f"page.{kind}") for kind in ("css", "js"))
    figures = {}
    for name, display in result.displays.items():
        image = (display.plot()._repr_svg_() or "").encode()
        text = f"{getattr(display, 'title', name)}. {(display.__doc__ or '').splitlines()[0]}"
        figures[name] = {"image": base64.b64encode(image).decode(), "text": text}
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(css)}'; script-src '{_hash(script)}'"
    )
    page = _environment().get_template("page.html")
    texts = {"css": css, "script": script, "policy": policy}
    return page.render(summary=summary, model=model, figures=figures, **texts).lstrip() + "\n"


def _environment() -> "jinja2.Environment":
    import jinja2  # which tables of numbers need not wait for
    import markupsafe

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fcorr.audit", ""),
        autoescape=jinja2.select_autoescape(),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda v: v if isinstance(v, markupsafe.Markup) else show_text(v),
    )
    environment.globals["min_rows"] = MIN_ROWS
    environment.filters |= {
        "number": show_number,
        "cell": show_cell,
        "json": json.dumps,
        "markdown": to_markdown,
        "words": lambda name: name.replace("_", " "),
        "cells": lambda cells: [(name, show_cell(each)) for name, each in cells.items()],
        "dictpairs": lambda pairs: [
            (n.replace("_", " "), show_number(v)) for n, v in pairs.items()
        ],
        "columns": _columns,
        "spreads": _spreads,
        "grouptable": _group_table,
    }
    return environment


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _columns(rows: Iterable[Summary], *names: str) -> list[list[str]]:
    return [[show_number(row[name]) for name in names if name in row] for row in rows]


def _spreads(of_models: Sequence[Summary]) -> list[list[str]]:
    """List what features have to do with differences between groups, in one model or two."""
    known = [each["features"] for each in of_models]
    return [
        [name, *(show_number(each[name]["spread"]) if name in each else "" for each in known)]
        for name in known[0]
    ]


def _group_table(section: Summary, by: str) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: figures below each other where few groups stand side by side."""
    lines = [["group", "rows", by, *section["groups"][0]["figures"]]]
    for group in section["groups"]:
        size = group["group"], f"{group['n']:,}", short_number(group["weight"])
        lines.append([*size, *map(show_cell, group["figures"].values())])
    if len(lines) <= _SIDE_BY_SIDE:
        lines = [list(line) for line in zip(*lines, strict=True)]
    return lines[0], lines[1:]
