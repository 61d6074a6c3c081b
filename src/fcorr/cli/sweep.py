"""`fcorr sweep`: a table in; records, a table, figures and the chosen model out."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fcorr.cli._shared import (
    BinsOption,
    ClassWeightOption,
    DataFile,
    Drop,
    Epochs,
    Exposure,
    KindOption,
    MinCategoryRows,
    Objective,
    Quiet,
    Roles,
    SetOption,
    Target,
    Task,
    TaskOption,
    Threshold,
    Weight,
    check_output,
    collect_arguments,
    fail,
    make_estimator,
    parse_bins,
    parse_car,
    parse_kinds,
    parse_threshold,
    parse_value,
    print_table,
    read_training_file,
    read_validation_file,
    set_argument,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from fcorr.audit.sweep import Sweep

_FRACTION = 0.2


def sweep(
    data: DataFile,
    target: Target,
    sensitive: Annotated[
        list[str], typer.Option(help="Sensitive column; give the option again for more.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the results.", file_okay=False)
    ],
    car: Annotated[
        str, typer.Option(help="Weights λ of the regulariser, each acting alone; or 'paper'.")
    ] = "0,1,10,100,1e3,1e4,1e5,1e6,1e7,1e8",
    exact: Annotated[bool, typer.Option(help="Add the two exact forms.")] = True,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARGUMENT=VALUE,VALUE,…",
            help="More to vary, as in dropout=0.1,0.3 or head=8x8,128x128; repeatable.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Seeds of each point.", min=1)] = 3,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for as many as cores.")] = 1,
    budget: Annotated[
        float | None,
        typer.Option(help="Largest change under a flip that may be found; 0: exact models only."),
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(help="File to measure and choose on.", exists=True, dir_okay=False),
    ] = None,
    validation_fraction: Annotated[
        float | None,
        typer.Option(help=f"Share of the rows to set aside for that; by default {_FRACTION}."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Model file to write, of the chosen point.", dir_okay=False)
    ] = None,
    warm_start: Annotated[
        bool,
        typer.Option(
            "--warm-start", help="Start each λ from the one before; the chosen one from scratch."
        ),
    ] = False,
    task: TaskOption = Task.auto,
    weight: Weight = None,
    objective: Objective = None,
    exposure: Exposure = None,
    class_weight: ClassWeightOption = None,
    threshold: Threshold = None,
    drop: Drop = None,
    kind: KindOption = None,
    bins: BinsOption = None,
    min_category_rows: MinCategoryRows = None,
    epochs: Epochs = None,
    settings: SetOption = None,
    quiet: Quiet = False,
) -> None:
    """Train over a grid of λ and seeds, and choose the most accurate model within a budget.

    Everything is measured on validation rows; keep the test rows for the chosen model. The same
    command again goes on where it was interrupted.
    """
    if model is not None and model.parent != output:
        check_output(model, data, validation, option="--model")
    if validation is not None and validation_fraction is not None:
        raise typer.BadParameter(
            "is for when there is no --validation file.", param_hint="--validation-fraction"
        )
    fraction = _FRACTION if validation_fraction is None else validation_fraction
    if not 0 < fraction < 1:
        raise typer.BadParameter(
            f"must lie between 0 and 1, got {fraction}.", param_hint="--validation-fraction"
        )
    roles = Roles(target, sensitive, weight, exposure, drop or ())
    arguments = collect_arguments(
        settings,
        sensitive=sensitive,
        objective=objective and objective.value,
        exposure=exposure,
        class_weight=class_weight and class_weight.value,
        threshold=parse_threshold(threshold),
        kinds=parse_kinds(kind),
        bins=parse_bins(bins),
        min_category_rows=min_category_rows,
        epochs=epochs,
    )
    points = _parse_grid(car, exact, grid or [], arguments)
    table = read_training_file(data, roles, arguments)
    if validation is not None:
        held_out = read_validation_file(validation, roles, table)
    else:
        table, held_out = _split(table, fraction)
    estimator = make_estimator(task, table, target, arguments)
    X, y, *sample_weight = roles.split(table)
    records = output / "sweep.jsonl"
    existed = output.exists()
    output.mkdir(parents=True, exist_ok=True)
    from fcorr.audit.sweep import sweep as run_sweep

    try:
        found = run_sweep(
            estimator,
            X,
            y,
            grid=points,
            eval_set=roles.split(held_out),
            seeds=seeds,
            sample_weight=sample_weight[0] if sample_weight else None,
            n_jobs=jobs,
            path=records,
            budget=budget,
            warm_start=warm_start,
            progress=not quiet,
        )
    except KeyboardInterrupt:
        n_done = len(records.read_bytes().splitlines()) if records.exists() else 0
        fail(f"interrupted; {n_done} run(s) are in {records}: the same command goes on from there")
    finally:
        if not existed and not any(output.iterdir()):
            output.rmdir()
    _report(found, output, model)


def _parse_grid(
    car: str, exact: bool, options: list[str], arguments: dict[str, Any]
) -> list[dict[str, list[Any]]]:
    """Read what to vary: λ acting alone, the exact forms, and in both what --grid says."""
    varied: dict[str, list[Any]] = {}
    for option in options:
        name, _, values = option.partition("=")
        name = name.replace("-", "_")
        if not name or not values or name in varied or name in ("car", "invariance"):
            raise typer.BadParameter(
                "must be ARGUMENT=VALUE,VALUE,… and once for an argument (--car and --exact have "
                f"their own), got {option!r}.",
                param_hint="--grid",
            )
        varied[name] = [parse_value(name, value) for value in values.split(",")]
    others: dict[str, list[Any]] = {}
    for combination in itertools.product(*varied.values()):
        point = {"advanced": dict(arguments.get("advanced", {}))}
        for name, value in zip(varied, combination, strict=True):
            set_argument(point, name, value, "--grid")
        for name, value in point.items():
            if value not in others.setdefault(name, []):
                others[name].append(value)
    if others.get("advanced") in ([{}], [arguments.get("advanced", {})]):
        del others["advanced"]
    weights = [parse_car(weight.strip()) for weight in car.split(",") if weight.strip()]
    grids: list[dict[str, list[Any]]] = []
    if weights:
        grids.append({"car": weights, "invariance": [None], **others})
    if exact:
        grids.append({"invariance": ["adapt", "marginal"], **others})
    if not grids:
        raise typer.BadParameter("names no λ, and --no-exact leaves nothing.", param_hint="--car")
    return grids


def _split(table: "pa.Table", fraction: float) -> "tuple[pa.Table, pa.Table]":
    """Set rows aside, the same ones for every command on the same file."""
    import numpy as np

    n_rows = table.num_rows
    n_held_out = min(n_rows - 1, max(1, round(fraction * n_rows)))
    order = np.random.default_rng(0).permutation(n_rows)
    return (
        table.take(np.sort(order[n_held_out:])),
        table.take(np.sort(order[:n_held_out])),
    )


def _report(found: "Sweep", output: Path, model: Path | None) -> None:
    """Print and write the results; a budget that nothing keeps to is told last."""
    from fcorr._core import InvalidInputError, write_atomically

    problem, reason = "", ""
    try:
        reason = f"chosen: {found.choose()}"
    except InvalidInputError as error:
        problem = str(error)
    table = found.table()
    print_table("validation rows", *table)
    texts = [text for text in (reason, *found.notes) if text]
    for text in texts:
        typer.echo(text)
    markdown = "\n".join([table.markdown(), *(f"{text}\n" for text in texts)])
    write_atomically(output / "table.md", markdown.encode())
    files = [output / "sweep.jsonl", output / "table.md", *found.write_figures(output)]
    if model is not None and not problem:
        found.best_estimator().save(model)
        files.append(model)
    for file in files:
        typer.echo(f"wrote {file}")
    if problem:
        fail(problem)
