"""`fcorr train` and `demo`: a table in, a model file out; and that with a table that is made up."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fcorr.cli import _shared as shared

N_TRAIN, N_TEST = 2_000, 2_000  # rows of the demonstration


@shared.with_estimator_options
def train(
    data: shared.DataFile,
    *,
    target: shared.Target,
    output: Path = typer.Option(..., "--output", "-o", help="Model file to write.", dir_okay=False),
    sensitive: Annotated[list[str] | None, shared.Sensitive] = None,
    task: shared.Task = "auto",
    weight: shared.Weight = None,
    drop: shared.Drop = None,
    delimiter: shared.Delimiter = None,
    decimal: shared.Decimal = None,
    dates: shared.Dates = None,
    car: str = typer.Option("1e6", help="Weight of the regulariser: a number, 'paper' or 'none'."),
    invariance: Literal["adapt", "marginal", "none"] = typer.Option(
        "adapt",
        help="How flips of sensitive columns cease to matter: the model adapts to their "
        "absence, or predicts the average over their values; none: --car alone.",
    ),
    proxy: float = typer.Option(
        0.0, help="Weight of a penalty on what groups of the sensitive columns differ in."
    ),
    budget: str | None = typer.Option(
        None, help="Time to look for a better pack, such as 10min.", metavar="TIME"
    ),
    checkpoint: Path | None = typer.Option(
        None,
        help="Folder that keeps what is trained, also within epochs; the same command goes on "
        "from there.",
        file_okay=False,
    ),
    resume: bool = typer.Option(
        False, "--resume", help="Go on from --checkpoint, which must have something kept."
    ),
    memory: str | None = typer.Option(
        None,
        help="Read Parquet files piece by piece, within about so much memory, such as 2GB.",
        metavar="SIZE",
    ),
    engine: Literal["local", "ray"] = typer.Option(
        "local", help="Where to train: in this process, or in those of a Ray cluster."
    ),
    workers: int = typer.Option(2, help="Processes of --engine ray, one processor each.", min=1),
    address: str | None = typer.Option(
        None, help="Address of a Ray cluster; by default one on this machine alone."
    ),
    seed: Annotated[int | None, shared.Seed] = None,
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
    **options: Any,
) -> None:
    """Train a model on a CSV, TSV or Parquet file."""
    from fcorr.estimators import fit_on_ray, read_header

    shared.check_output(output, data)
    if resume and (checkpoint is None or not (checkpoint / "fit.json").is_file()):
        shared.bad_usage("--resume", "--checkpoint must be the folder of a training that began.")
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
    fitting: dict[str, Any] = {"budget": budget, "checkpoint": checkpoint}
    counted = None
    if memory is None:
        table, counted = shared.read_training_file(data, roles, arguments, dialect)
        rows = roles.split(table)
    else:
        table, source = shared.open_training_files(data, roles, arguments)
        rows, fitting["memory"] = (source, target, weight), memory
    model = shared.make_estimator(task, table, target, arguments, err=as_json)
    start = time.perf_counter()
    with _join_torchrun() as is_first, shared.lines_of(data, dialect, counted):
        if engine == "ray":
            fit_on_ray(model, *rows, workers=workers, address=address, **fitting)
        else:
            model.fit(*rows, **fitting)
    seconds = time.perf_counter() - start
    if not is_first:  # all processes of torchrun have the same model
        return
    model.save(output)
    if as_json:
        shared.print_json(read_header(output))
    else:
        shared.echo(f"{model.summary()}, {seconds:.1f} s")
        shared.echo(f"wrote {output}")


@contextmanager
def _join_torchrun() -> Iterator[bool]:
    """Join the processes that torchrun has started, if it has; tell whether this is the first."""
    import torch.distributed as dist

    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys() or dist.is_initialized():
        yield True
        return
    dist.init_process_group("gloo")
    try:
        yield dist.get_rank() == 0
    finally:
        dist.destroy_process_group()


def demo(
    output: Path = typer.Option(
        Path("fcorr-demo"), "--output", "-o", help="Folder for the files.", file_okay=False
    ),
    data: bool = typer.Option(False, "--data", help="Write the two tables only."),
    seed: Annotated[int, shared.Seed] = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Write a small table, train a model on it and audit the model.

    The table is made up: y depends on S, X1, X2 and X3, and Z goes with S without any part in y.
    The model is invariant to S. Files: train.csv, test.csv, model.fcorr and report.html.
    """
    tables, model_file, report = ("train.csv", "test.csv"), "model.fcorr", "report.html"
    for name in tables if data else (*tables, model_file, report):
        shared.check_output(output / name, parents=True)
    from fcorr.data import make_proxy_bias
    from fcorr.data.files import write_file

    X, y = make_proxy_bias(N_TRAIN + N_TEST, task="classification", random_state=seed)
    output.mkdir(parents=True, exist_ok=True)
    for name, first in zip(tables, (0, N_TRAIN), strict=True):
        write_file(X.append_column("y", [y]).slice(first, N_TRAIN), output / name)
        shared.echo(f"wrote {output / name}")
    if data:
        return
    from fcorr import FCorrClassifier, audit_model

    # A smaller pack than by default: a demonstration should not take long.
    model = FCorrClassifier(sensitive="S", n_members=4, random_state=seed, verbose=not quiet)
    model.fit(X.slice(0, N_TRAIN), y[:N_TRAIN])
    model.save(output / model_file)
    shared.echo(model.summary())
    shared.echo(f"wrote {output / model_file}")
    found = audit_model(model, X.slice(N_TRAIN), y[N_TRAIN:], target="y", name="demo")
    found.to_html(output / report)
    shared.echo(*str(found).splitlines())
    shared.echo(f"wrote {output / report}: open it in a browser")
