"""`fcorr predict`: a model and a table in, a table of predictions out."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from fcorr._core import errors_of_writing, write_atomically
from fcorr.cli import _shared as shared


def predict(
    model: shared.ModelFile,
    data: shared.DataFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="CSV, TSV or Parquet file to write, or - for CSV on standard output; by default "
            "one of the same kind beside the data, called NAME-predictions, or, where the data is "
            "-, standard output.",
            dir_okay=False,
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        shared.column_option(
            help="Column to copy to the output; repeatable. By default those that the model does "
            "not know, such as a key."
        ),
    ] = None,
    rate: Annotated[
        bool,
        typer.Option(
            "--rate", help="Write the rate per unit of exposure, which needs no exposure."
        ),
    ] = False,
    verbatim: Annotated[
        bool,
        typer.Option(
            "--verbatim",
            help="Write text to the letter, also what a spreadsheet would run as a formula.",
        ),
    ] = False,
    delimiter: shared.Delimiter = None,
    decimal: shared.Decimal = None,
    dates: shared.Dates = None,
) -> None:
    """Score a file with a trained model.

    Writes the prediction of each row, for its exposure where the model knows one, and, for
    classes, the probability of each class; CSV as the data is written. In CSV, text that a
    spreadsheet would run as a formula gets an apostrophe before it, and control characters are
    escaped; --verbatim leaves them.
    """
    import pyarrow as pa

    from fcorr.data.files import ENDINGS, disarm, file_ending, read_verbatim, to_bytes
    from fcorr.estimators import FCorrClassifier, load

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
    estimator = load(model)
    schema = estimator.schema_
    table, dialect = shared.read_known(data, schema, shared.make_dialect(delimiter, decimal, dates))
    shared.check_columns(keep or [], table.column_names, "--keep")
    columns: dict[str, Any] = {}
    with shared.lines_of(data, dialect):
        if isinstance(estimator, FCorrClassifier):
            if rate:
                shared.bad_usage("--rate", "the model predicts classes.")
            probabilities = estimator.predict_proba(table)
            columns["prediction"] = pa.array(estimator._decide(probabilities))
            for label, values in zip(estimator.classes_, probabilities.T, strict=True):
                columns[f"probability_{label}"] = pa.array(values)
        elif rate:
            columns["rate"] = pa.array(estimator.predict_rate(table))
        else:
            columns["prediction"] = pa.array(estimator.predict(table))
    known = {*schema.names, schema.target, schema.weight, schema.exposure}
    kept = keep or [name for name in table.column_names if name not in known]
    for name in kept:
        if name in columns:
            shared.bad_usage(
                "--keep",
                f"the output has a column {name!r} of its own. Rename the one in the file, or "
                "name other columns to keep.",
            )
    copied = read_verbatim(data, kept, dialect) if kept else pa.table({})
    scored = pa.table({**{name: copied[name] for name in kept}, **columns})
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
