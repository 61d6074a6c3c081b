"""`fcorr inspect`, `diff` and `export`: what is in a model file, what fits it, and as ONNX."""

import functools
import math
from dataclasses import asdict, replace
from pathlib import Path

import typer

from fcorr._core import InvalidInputError, renumber_rows
from fcorr.cli import _shared as shared


def inspect(
    model: shared.ModelFile,
    as_json: bool = typer.Option(False, "--json", help="Print the file's whole header as JSON."),
) -> None:
    """Show what is in a model file, and what its features weigh."""
    from fcorr.data.schema import describe_column
    from fcorr.estimators import load, read_header
    from fcorr.estimators.reading import rank_correlation

    header = read_header(model)
    if as_json:
        shared.print_json(header)
        return
    estimator = load(model)
    schema, history = estimator.schema_, estimator.history_
    threshold = getattr(estimator, "threshold_", None)
    invariance = "exact: every sensitive value is embedded as the same number"
    if not estimator.exact_:  # which load has checked
        invariance = "not exact: model.certificate(X) tells what a flip can change"
    elif estimator.portfolio_ is not None:
        n = len(estimator.portfolio_.shares)
        invariance = f"exact: predictions are averages over {n} combinations of sensitive values"
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
        "invariance": invariance if schema.sensitive else None,
    }
    facts = {name: fact for name, fact in told.items() if fact}
    width = max(map(len, facts))
    for name, fact in facts.items():
        shared.echo(f"{name:<{width}}  {fact}")
    columns = [(column, feature) for column in schema.columns for feature in column.features]
    kinds = {feature.name: column.kind for column, feature in columns}
    in_training = {  # a date's parts are numbers, each with its own range
        feature.name: describe_column(feature if column.kind == "datetime" else column)
        + (f"; {column.n_missing} missing" if column.n_missing else "")
        for column, feature in columns
    }
    numbers = estimator.importance_, estimator.significance_
    read = zip(schema.feature_names, *numbers, strict=True)
    shared.print_table(
        "features, the most important first",
        ["feature", "kind", "importance", "significance", "in training"],
        [
            [
                name + (" (sensitive)" if name in schema.sensitive else ""),
                kinds[name],
                f"{importance:.3f}",
                f"{significance:.3f}",
                in_training[name],
            ]
            for name, importance, significance in sorted(read, key=lambda row: -row[1])
        ],
    )
    shared.echo(
        "importance: share of what the model tells rows apart by that goes with the feature. "
        "significance: diagonal of the attention matrix."
    )
    agreement = rank_correlation(estimator.importance_, estimator.significance_)
    if not math.isnan(agreement):  # which takes features that differ
        shared.echo(f"Rank correlation of the two: {agreement:.2f}.")


def diff(
    model: shared.ModelFile,
    data: shared.DataFile,
    delimiter: shared.Delimiter = None,
    decimal: shared.Decimal = None,
    dates: shared.Dates = None,
    as_json: shared.AsJson = False,
) -> None:
    """List how data differs from the training table of a model.

    Exit code 3 where the model cannot predict for such data; 0 where nothing differs, or only what
    it can do with: rows out of range, unseen categories, missing values, further columns. What the
    model does not read, a sensitive column it is exactly invariant to, may differ in any way.
    """
    from fcorr.data.encode import SchemaDiff
    from fcorr.data.files import name_line
    from fcorr.estimators import load

    estimator = load(model)
    schema = estimator.schema_
    dialect = shared.make_dialect(delimiter, decimal, dates)
    table, dialect = shared.read_known(data, dialect, schema)
    outcomes = {schema.target, schema.weight}.intersection(table.column_names)
    found = schema.diff(table.drop_columns([*outcomes]), read_sensitive=not estimator.exact_)
    name = functools.partial(name_line, data, dialect)
    texts = [str(renumber_rows(InvalidInputError(one.text), None, name)) for one in found]
    found = SchemaDiff(replace(one, text=text) for one, text in zip(found, texts, strict=True))
    if as_json:
        each = [{**asdict(one), "is_fatal": one.is_fatal} for one in found]
        shared.print_json({"fits": not found.fatal, "differences": each})
    else:
        for line in str(found).splitlines():
            shared.echo(line)
    if found.fatal:
        raise typer.Exit(shared.CHECK_FAILED)


def export(
    model: shared.ModelFile,
    onnx: Path = typer.Option(..., help="ONNX file to write.", dir_okay=False),
    opset: int = typer.Option(17, help="Version of ONNX's operators, 17 to 21."),
) -> None:
    """Write a trained model as ONNX.

    It is one graph from raw columns to scores, without an input for sensitive columns that the
    model is exactly invariant to. Schema and certificate are in the file's metadata. See
    docs/serving.md.
    """
    from fcorr.estimators import load
    from fcorr.estimators.export import to_onnx

    shared.check_output(onnx, model, option="--onnx")
    if onnx.suffix.lower() != ".onnx":
        shared.bad_usage("--onnx", f"must end in .onnx, got {onnx.name!r}.")
    to_onnx(load(model), onnx, opset=opset)
    shared.echo(f"wrote {onnx}: opset {opset}")
