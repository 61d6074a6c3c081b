"""`fcorr inspect`: what is in a model file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fcorr.cli._console import print_table

if TYPE_CHECKING:
    from fcorr.data.descriptions import Column

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
        **({"target": schema.target} if schema.target else {}),
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
    columns: dict[str, Column] = {
        feature.name: column for column in schema.columns for feature in column.features
    }
    print_table(
        "features, the most significant first",
        ["feature", "kind", "significance", "missing", "values"],
        [
            [
                name + (" (sensitive)" if name in schema.sensitive else ""),
                columns[name].kind,
                f"{value:.3f}",
                str(columns[name].n_missing),
                _describe(columns[name], name),
            ]
            for name, value in significance.items()
        ],
    )


def _describe(column: "Column", feature: str) -> str:
    from fcorr.data.descriptions import CategoricalColumn, OrdinalColumn

    if isinstance(column, CategoricalColumn):
        return _enumerate(column.labels, ", ")
    if isinstance(column, OrdinalColumn):
        return _enumerate([str(category) for category in column.categories], " < ")
    numbers = next(found for found in column.features if found.name == feature)
    return f"{numbers.low:g} to {numbers.high:g}, mean {numbers.mean:.4g}"


def _enumerate(labels: Sequence[str], separator: str) -> str:
    more = len(labels) - _SHOWN_CATEGORIES
    shown = separator.join(labels[:_SHOWN_CATEGORIES])
    return f"{shown} and {more} more" if more > 0 else shown
