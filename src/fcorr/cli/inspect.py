"""`fcorr inspect`: what is in a model file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fcorr.cli._console import print_table

if TYPE_CHECKING:
    from fcorr.data.schema import CategoricalColumn, NumericColumn

_SHOWN_CATEGORIES = 6


def inspect(
    model: Annotated[Path, typer.Argument(help="Model file.", exists=True, dir_okay=False)],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the file's whole header as JSON.")
    ] = False,
) -> None:
    """Show what is in a model file: kind, training, features, significance."""
    from fcorr.estimators import load, read_header

    header = read_header(model)
    if as_json:
        typer.echo(json.dumps(header, indent=2, ensure_ascii=False))
        return
    estimator = load(model)
    schema, history = estimator.schema_, estimator.history_
    last = history.epochs[-1]
    facts: dict[str, Any] = {
        "kind": header["estimator"],
        "made by": f"fcorr {header['fcorr_version']}, file format {header['format']}",
        "parameters": f"{estimator.model_.n_parameters:,}",
        "trained on": (
            f"{schema.n_rows:,} rows, {len(history.epochs)} epochs, seed {estimator.seed_}"
        ),
        "last loss": f"{last.loss:.4f}",
        "sensitive": ", ".join(schema.sensitive) or "none",
        "CAR": (
            "none"
            if last.car is None
            else f"{last.car:.2e} at the end, weight {history.car_weight:g}, "
            f"form {estimator.car_form!r}"
        ),
    }
    if "classes" in header["target"]:
        facts["classes"] = ", ".join(str(label) for label in header["target"]["classes"])
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        typer.echo(f"{name:<{width}}  {value}")
    significance = estimator.feature_significance()
    columns: dict[str, CategoricalColumn | NumericColumn] = {c.name: c for c in schema.categorical}
    columns |= {c.name: c for c in schema.numeric}
    print_table(
        "features, the most significant first",
        ["feature", "kind", "significance", "missing", "values"],
        [
            [
                name + (" (sensitive)" if name in schema.sensitive else ""),
                _kind(columns[name]),
                f"{value:.3f}",
                str(columns[name].n_missing),
                _describe(columns[name]),
            ]
            for name, value in significance.items()
        ],
    )


def _kind(column: "CategoricalColumn | NumericColumn") -> str:
    return type(column).__name__.removesuffix("Column").lower()


def _describe(column: "CategoricalColumn | NumericColumn") -> str:
    from fcorr.data.schema import NumericColumn

    if isinstance(column, NumericColumn):
        return f"{column.low:g} to {column.high:g}, mean {column.mean:.4g}"
    shown = ["missing" if c is None else str(c) for c in column.categories[:_SHOWN_CATEGORIES]]
    more = len(column.categories) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
