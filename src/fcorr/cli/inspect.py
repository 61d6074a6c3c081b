"""`fcorr inspect`: what is in a model file."""

import math
from typing import TYPE_CHECKING

import typer

from fcorr.cli._shared import ModelFile, echo, print_json, print_table

if TYPE_CHECKING:
    from fcorr.data.schema import Column
    from fcorr.estimators.model_file import Estimator


def inspect(
    model: ModelFile,
    as_json: bool = typer.Option(False, "--json", help="Print the file's whole header as JSON."),
) -> None:
    """Show what is in a model file, and what its features weigh."""
    from fcorr.estimators import load, read_header
    from fcorr.estimators.reading import rank_correlation

    header = read_header(model)
    if as_json:
        print_json(header)
        return
    estimator = load(model)
    schema, history = estimator.schema_, estimator.history_
    threshold = getattr(estimator, "threshold_", None)
    told: dict[str, str | None] = {
        "model": estimator.summary(),
        "made by": f"fcorr {header['fcorr_version']}, file format {header['format']}",
        "sha256": header["sha256"],
        "trained on": (
            f"{schema.n_rows:,} rows, {len(history.epochs)} epochs, seed {estimator.seed_}"
        ),
        "target": schema.target,
        "weight": schema.weight,
        "exposure": schema.exposure,
        "classes": ", ".join(map(str, getattr(estimator, "classes_", ()))),
        "threshold": None if threshold is None else f"{threshold:.4g}",
        "objective": getattr(estimator, "objective_", None),
        "sensitive": ", ".join(schema.sensitive) or "none",
        "invariance": _describe_invariance(estimator) if schema.sensitive else None,
    }
    facts = {name: fact for name, fact in told.items() if fact}
    width = max(map(len, facts))
    for name, fact in facts.items():
        echo(f"{name:<{width}}  {fact}")
    columns = {f.name: (c, f) for c in schema.columns for f in c.features}
    numbers = estimator.importance_, estimator.significance_
    read = zip(schema.feature_names, *numbers, strict=True)
    print_table(
        "features, the most important first",
        ["feature", "kind", "importance", "significance", "in training"],
        [
            [
                name + (" (sensitive)" if name in schema.sensitive else ""),
                columns[name][0].kind,
                f"{importance:.3f}",
                f"{significance:.3f}",
                _describe(*columns[name]),
            ]
            for name, importance, significance in sorted(read, key=lambda row: -row[1])
        ],
    )
    echo(
        "importance: share of what the model tells rows apart by that goes with the feature. "
        "significance: diagonal of the attention matrix."
    )
    agreement = rank_correlation(estimator.importance_, estimator.significance_)
    if not math.isnan(agreement):  # which takes features that differ
        echo(f"Rank correlation of the two: {agreement:.2f}.")


def _describe(column: "Column", feature: "Column") -> str:
    from fcorr.data.schema import describe_column

    # A date's parts are numbers, each with its own range.
    learnt = describe_column(feature if column.kind == "datetime" else column)
    return learnt + (f"; {column.n_missing} missing" if column.n_missing else "")


def _describe_invariance(estimator: "Estimator") -> str:
    if not estimator.exact_:  # which load has checked
        return "not exact: model.certificate(X) tells what a flip can change"
    if estimator.portfolio_ is None:
        return "exact: every sensitive value is embedded as the same number"
    n = len(estimator.portfolio_.shares)
    return f"exact: predictions are averages over {n} combinations of sensitive values"
