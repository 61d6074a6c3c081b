"""`fcorr predict`, `diff`, `inspect` and `export`: what is done with a model file."""

import functools
import math
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import typer

from fcorr._core import InvalidInputError, errors_of_writing, renumber_rows, write_atomically
from fcorr.cli import _shared as shared


def predict(
    model: shared.ModelFile,
    data: shared.DataFile,
    output: Path | None = typer.Option(
        None,
        "--output",
        "-o",
        help="CSV, TSV or Parquet file to write, or - for CSV on standard output; by default "
        "one of the same kind beside the data, called NAME-predictions, or, where the data is "
        "-, standard output.",
        dir_okay=False,
    ),
    keep: list[str] | None = shared.column_option(
        None,
        help="Column to copy to the output; repeatable. By default those of which the model "
        "knows no value, such as a key.",
    ),
    rate: bool = typer.Option(
        False, "--rate", help="Write the rate per unit of exposure, which needs no exposure."
    ),
    verbatim: bool = typer.Option(
        False,
        "--verbatim",
        help="Write text to the letter, also what a spreadsheet would run as a formula.",
    ),
    engine: Literal["local", "ray"] = typer.Option(
        "local", help="What scores Parquet to Parquet: this process, or Ray Data."
    ),
    address: str | None = typer.Option(
        None, help="Ray's cluster, such as 10.0.0.1:6379; by default one on this machine."
    ),
    workers: int | None = typer.Option(
        None, help="Most tasks of Ray's at a time; by default one for each processor."
    ),
    delimiter: shared.Delimiter = None,
    decimal: shared.Decimal = None,
    dates: shared.Dates = None,
) -> None:
    """Score a file with a trained model.

    Writes the prediction of each row, for its exposure where the model knows one, and, for
    classes, the probability of each class; CSV as the data is written. In CSV, text that a
    spreadsheet would run as a formula gets an apostrophe before it, and control characters are
    escaped; --verbatim leaves them. Parquet to Parquet may be larger than memory.
    """
    import pyarrow as pa

    from fcorr.data.files import ENDINGS, disarm, file_ending, read_verbatim, to_bytes
    from fcorr.estimators import Scorer, score_parquet

    if output is None and shared.is_stdin(data):
        output = shared.STDOUT
    elif output is None:
        stem = re.sub(r"(\.[ct]sv(\.gz)?|\.parquet|\.pq)$", "", data.name, flags=re.IGNORECASE)
        output = data.with_name(f"{stem}-predictions{file_ending(data)}")
    kind = Path("stdout.csv") if output == shared.STDOUT else output  # for its ending
    if not kind.name.lower().endswith(ENDINGS):
        shared.bad_usage("--output", f"must end in .csv, .tsv or .parquet, got {output.name!r}.")
    if output != shared.STDOUT:
        shared.check_output(output, data, model)
    if file_ending(data) == file_ending(kind) == ".parquet":
        cluster: dict[str, Any] = {"engine": engine, "address": address, "workers": workers}
        n_rows = score_parquet(model, data, output, keep=keep or None, rate=rate, **cluster)
        shared.echo(f"wrote {output}: {n_rows} rows")
        return
    for option, given in (
        ("--engine", engine != "local"),
        ("--address", address),
        ("--workers", workers),
    ):
        if given:
            shared.bad_usage(option, "is for Parquet data and output.")
    scorer = Scorer(model, keep=keep or None, rate=rate)
    dialect = shared.make_dialect(delimiter, decimal, dates)
    table, dialect = shared.read_known(data, dialect, scorer.model.schema_)
    with shared.lines_of(data, dialect):
        scored = scorer(table)
    # Columns that are kept are copied as the file has them, whatever the model reads them as.
    kept = scorer.columns_kept(table.column_names)
    copied = read_verbatim(data, kept, dialect) if kept else pa.table({})
    for i, name in enumerate(kept):
        scored = scored.set_column(i, name, copied[name])
    if not verbatim and file_ending(kind) != ".parquet":
        scored, n_changed = disarm(scored)
        if n_changed:
            what = "cell(s) with a formula or control characters"
            shared.echo(f"escaped {n_changed} {what} (--verbatim leaves them)", err=True)
    content = to_bytes(scored, kind, dialect)
    if output == shared.STDOUT:
        with errors_of_writing("standard output"):
            typer.echo(content, nl=False)
        return
    write_atomically(output, content)
    shared.echo(f"wrote {output}: {table.num_rows} rows")


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
        shared.echo(*str(found).splitlines())
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
