"""`fcorr predict`: a model and a table in, a table of predictions out."""

import re
from pathlib import Path
from typing import Any, Literal

import typer

from fcorr._core import errors_of_writing, write_atomically
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
        help="Column to copy to the output; repeatable. By default those that the model does "
        "not know, such as a key.",
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
