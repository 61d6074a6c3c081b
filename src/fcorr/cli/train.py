"""`fcorr train`: a table in, a model file out."""

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fcorr.cli import _shared as shared


@shared.with_estimator_options
def train(
    data: shared.DataFile,
    *,
    target: shared.Target,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Model file to write.", dir_okay=False)
    ],
    sensitive: Annotated[list[str] | None, shared.Sensitive] = None,
    task: shared.Task = "auto",
    weight: shared.Weight = None,
    drop: shared.Drop = None,
    delimiter: shared.Delimiter = None,
    decimal: shared.Decimal = None,
    dates: shared.Dates = None,
    car: Annotated[
        str, typer.Option(help="Weight of the regulariser: a number, 'paper' or 'none'.")
    ] = "1e6",
    invariance: Annotated[
        Literal["adapt", "marginal", "none"],
        typer.Option(
            help="How flips of sensitive columns cease to matter: the model adapts to their "
            "absence, or predicts the average over their values; none: --car alone."
        ),
    ] = "adapt",
    proxy: Annotated[
        float,
        typer.Option(help="Weight of a penalty on what groups of the sensitive columns differ in."),
    ] = 0.0,
    budget: Annotated[
        str | None,
        typer.Option(help="Time to look for a better pack, such as 10min.", metavar="TIME"),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Folder that keeps trained members; the same command goes on from there.",
            file_okay=False,
        ),
    ] = None,
    seed: Annotated[int | None, shared.Seed] = None,
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
    **options: Any,
) -> None:
    """Train a model on a CSV, TSV or Parquet file."""
    from fcorr.estimators import read_header

    shared.check_output(output, data)
    roles = shared.Roles(target, sensitive or (), weight, options["exposure"], drop or ())
    arguments = shared.collect_arguments(
        **options,
        sensitive=sensitive or None,
        car=car,
        invariance=invariance,
        proxy=proxy,
        random_state=seed,
        verbose=not quiet,
    )
    dialect = shared.make_dialect(delimiter, decimal, dates)
    table, counted = shared.read_training_file(data, roles, arguments, dialect)
    model = shared.make_estimator(task, table, target, arguments, err=as_json)
    start = time.perf_counter()
    with shared.lines_of(data, dialect, counted):
        model.fit(*roles.split(table), budget=budget, checkpoint=checkpoint)
    seconds = time.perf_counter() - start
    model.save(output)
    if as_json:
        shared.print_json(read_header(output))
    else:
        shared.echo(f"{model.summary()}, {seconds:.1f} s")
        shared.echo(f"wrote {output}")
