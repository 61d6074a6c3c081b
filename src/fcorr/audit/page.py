"""The audit as a page: one HTML file with its figures and, for an fcorr model, the model inside."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import jinja2

from fcorr._core import show_text, to_plain
from fcorr.audit.displays import short_number
from fcorr.audit.words import show_cell, show_number
from fcorr.metrics.grouped import MIN_ROWS

if TYPE_CHECKING:
    from fcorr.audit.report import AuditResult

SECTIONS = {
    "flips": "Flips: only the sensitive columns change",
    "groups": "Groups",
    "proxies": "Proxies",
    "performance": "Performance",
    "incumbent": "Beside another model",
    "model-section": "The model",
    "frontier": "Frontier",
    "methods": "Methods and limits",
    "provenance": "Provenance",
    "sign-off": "Sign-off",
}
_OPTIONAL = ("incumbent", "frontier")
_SIDE_BY_SIDE = 6


def render(result: "AuditResult", estimator: Any) -> str:
    """Write the page; the weights of an estimator, if it is given, go into it."""
    summary, model = result.summary, None
    if estimator is not None:
        from fcorr.audit.whatif import pack_model

        model = to_plain(pack_model(estimator))
    css, script = (_read(f"page.{kind}") for kind in ("css", "js"))
    figures = {}
    for name, display in result.displays.items():
        image = (display.plot()._repr_svg_() or "").encode()
        text = f"{getattr(display, 'title', name)}. {(display.__doc__ or '').splitlines()[0]}"
        figures[name] = {"image": base64.b64encode(image).decode(), "text": text}
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "text": show_text,
        "number": show_number,
        "words": lambda name: name.replace("_", " "),
        "cells": lambda cells: [(name, show_cell(each)) for name, each in cells.items()],
        "dictpairs": lambda pairs: [
            (n.replace("_", " "), show_number(v)) for n, v in pairs.items()
        ],
        "columns": _columns,
        "grouptable": _group_table,
    }
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(css)}'; script-src '{_hash(script)}'"
    )
    page = environment.from_string(_read("page.html")).render(
        summary=summary,
        model=model,
        figures=figures,
        css=css,
        script=script,
        policy=policy,
        sections=[(i, t) for i, t in SECTIONS.items() if i not in _OPTIONAL or i in summary],
        differences=_difference_table(summary),
        min_rows=MIN_ROWS,
        by="weight" if summary["rows"]["exposure"] is None else "exposure",
    )
    return page.lstrip() + "\n"


def _read(name: str) -> str:
    return files("fcorr.audit").joinpath(name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _columns(rows: Iterable[Mapping[str, Any]], *names: str) -> list[list[str]]:
    return [[show_number(row[name]) for name in names if name in row] for row in rows]


def _difference_table(summary: Mapping[str, Any]) -> tuple[list[str], list[list[str]]] | None:
    """Return header and rows of what features have to do with differences between groups."""
    of_models = [summary["proxies"].get("differences")]
    if of_models[0] is None:
        return None
    header = ["feature", "largest difference"]
    if summary.get("incumbent", {}).get("differences"):
        of_models.append(summary["incumbent"]["differences"])
        header.append(f"of {summary['incumbent']['name']}")
    known = [each["features"] for each in of_models]
    rows = [
        [name, *(show_number(each[name]["spread"]) if name in each else "" for each in known)]
        for name in known[0]
    ]
    return header, rows


def _group_table(section: Mapping[str, Any], by: str) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: figures below each other where few groups stand side by side."""
    lines = [["group", "rows", by, *section["groups"][0]["figures"]]]
    for group in section["groups"]:
        size = group["group"], f"{group['n']:,}", short_number(group["weight"])
        lines.append([*size, *map(show_cell, group["figures"].values())])
    if len(lines) <= _SIDE_BY_SIDE:
        lines = [list(line) for line in zip(*lines, strict=True)]
    return lines[0], lines[1:]
