"""`fcorr sweep`: a table in; records, a table, figures and the chosen model out."""

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from fcorr._core import InvalidInputError, show_text, write_atomically
from fcorr.cli import _shared as shared

if TYPE_CHECKING:
    from fcorr.search.sweep import Sweep

_FILES = ("sweep.jsonl", "table.md", "frontier.svg")


@shared.with_estimator_options
def sweep(
    data: shared.DataFile,
    *,
    target: shared.Target,
    sensitive: Annotated[list[str], shared.Sensitive],
    output: Path = typer.Option(
        ..., "--output", "-o", help="Folder for the results.", file_okay=False
    ),
    car: str = typer.Option(
        "0,1,10,100,1e3,1e4,1e5,1e6,1e7,1e8",
        help="Weights λ of the regulariser, of models that are not exact; or 'paper'.",
    ),
    exact: bool = typer.Option(True, help="Add the two exact forms."),
    grid: list[str] | None = typer.Option(
        None,
        metavar="ARGUMENT=VALUE,VALUE,…",
        help="More to vary, as in dropout=0.1,0.3 or head=8x8,128x128; repeatable.",
    ),
    seeds: int = typer.Option(3, help="Seeds of each point.", min=1),
    jobs: int = typer.Option(1, "--n-jobs", help="Processes; -1 for as many as cores."),
    budget: float | None = typer.Option(
        None,
        help="Largest change under a flip that may be found of the chosen model; by default it "
        "must be an exact one, as with 0.",
    ),
    allow_inexact: bool = typer.Option(
        False, "--allow-inexact", help="Without a budget, choose among all models."
    ),
    validation: Path | None = typer.Option(
        None,
        "--eval-set",
        help="File to measure and choose on; by default a fifth of the rows are set aside.",
        exists=True,
        dir_okay=False,
    ),
    model: Path | None = typer.Option(
        None, help="Model file to write, of the chosen point.", dir_okay=False
    ),
    task: shared.Task = "auto",
    weight: shared.Weight = None,
    drop: shared.Drop = None,
    delimiter: shared.Delimiter = None,
    decimal: shared.Decimal = None,
    dates: shared.Dates = None,
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
    **options: Any,
) -> None:
    """Train over a grid of λ and seeds, choose the best exact model.

    The best is the most accurate one.

    With --budget, models that are not exact can be chosen too: those of which no larger change
    under a flip was found. With --allow-inexact any can.

    Everything is measured on validation rows; keep the test rows for the chosen model. A point
    is a pack of networks, as with fcorr train; --n-members 1 takes a fraction of the time. The same
    command again goes on where it was interrupted.
    """
    files = [output / name for name in _FILES]
    for file in files:
        shared.check_output(file, parents=True)
    if model is not None:
        inside = model.parent == output
        shared.check_output(model, data, validation, *files, option="--model", parents=inside)
    roles = shared.Roles(target, sensitive, weight, options["exposure"], drop or ())
    arguments = shared.collect_arguments(**options, sensitive=sensitive)
    points = _parse_grid(car, exact, grid or [], arguments)
    dialect = shared.make_dialect(delimiter, decimal, dates)
    table, counted = shared.read_training_file(data, roles, arguments, dialect)
    estimator = shared.make_estimator(task, table, target, arguments, err=as_json)
    chosen, others = counted, None
    if validation is None:
        # The same rows for every command on a file.
        n_held_out = min(table.num_rows - 1, max(1, round(table.num_rows / 5)))
        order = np.random.default_rng(0).permutation(table.num_rows)
        places = sorted(order[n_held_out:].tolist()), sorted(order[:n_held_out].tolist())
        in_file = counted or range(table.num_rows)
        chosen, others = ([in_file[place] for place in part] for part in places)
        table, held_out = (table.take(part) for part in places)
    else:
        # Text is what it was in the training file.
        text = [field.name for field in table.schema if field.type == "string"]
        numbers = set(table.column_names) - set(text)
        held_out, _ = shared.read_data(validation, dialect, text, numbers)
        shared.check_columns(roles.outcomes, held_out.column_names, "--eval-set")
    X, y, sample_weight = roles.split(table)
    from fcorr.search.sweep import sweep as run_sweep

    with (
        shared.lines_of(data, dialect, chosen),
        shared.lines_of(validation or data, dialect, others, eval_set=True),
    ):
        found = run_sweep(
            estimator,
            X,
            y,
            grid=points,
            eval_set=roles.split(held_out),
            seeds=seeds,
            sample_weight=sample_weight,
            n_jobs=jobs,
            path=output / "sweep.jsonl",
            budget=math.inf if allow_inexact and budget is None else budget,
            progress=not quiet,
        )
    _report(found, output, model, as_json)


def _parse_grid(
    car: str, exact: bool, options: list[str], arguments: dict[str, Any]
) -> list[dict[str, list[Any]]]:
    """Read what to vary: λ, the exact forms, which have none, and in both what --grid says."""
    rule = "ARGUMENT=VALUE,VALUE,… and once for an argument (--car and --exact have their own)"
    varied: dict[str, list[Any]] = {}
    advanced: dict[str, list[Any]] = {}
    for given, text in shared.split_pairs(options, "--grid", rule).items():
        name, is_advanced = shared.find_argument(given, "--grid")
        if name in ("car", "invariance"):
            shared.bad_usage("--grid", f"must be {rule}, got {given}={text!r}.")
        values = [shared.parse_value(name, value) for value in text.split(",")]
        (advanced if is_advanced else varied)[name] = values
    if advanced:
        fixed = arguments.get("advanced", {})
        combinations = itertools.product(*advanced.values())
        varied["advanced"] = [
            {**fixed, **dict(zip(advanced, values, strict=True))} for values in combinations
        ]
    weights = [shared.parse_value("car", each.strip()) for each in car.split(",") if each.strip()]
    grids: list[dict[str, list[Any]]] = []
    if weights:
        grids.append({"car": weights, "invariance": [None], **varied})
    if exact:
        grids.append({"invariance": ["adapt", "marginal"], **varied})
    if not grids:
        shared.bad_usage("--car", "names no λ, and --no-exact leaves nothing.")
    return grids


def _report(found: "Sweep", output: Path, model: Path | None, as_json: bool) -> None:
    """Print and write the results; why nothing can be chosen is told last."""
    problem, reason, chosen = "", "", None
    try:
        chosen = found.choose()
        reason = f"chosen: {chosen.reason}"
    except InvalidInputError as error:
        problem = str(error).replace("budget=math.inf", "--allow-inexact")
        if model is None and found.budget is None:  # nobody asked for a choice
            problem, reason = "", f"chosen: none. {problem}"
    table = found.table()
    texts = [text for text in (reason, *found.notes) if text]
    if as_json:
        point = None if chosen is None else {"name": chosen.name, "point": chosen.point}
        shared.print_json({"chosen": point, "notes": texts, "runs": found.records})
    else:
        shared.print_table("validation rows", *table)
        for text in texts:
            shared.echo(text)
    markdown = "\n".join([table.markdown(), *(f"{show_text(text)}\n" for text in texts)])
    write_atomically(output / "table.md", markdown.encode())
    files = [output / "sweep.jsonl", output / "table.md"]
    try:
        from fcorr.audit.displays import FrontierDisplay, save_figure

        save_figure(FrontierDisplay.from_sweep(found).figure_, output / "frontier.svg")
        files.append(output / "frontier.svg")
    except ImportError as error:  # all else is worth having without figures
        shared.echo(f"warning: no figures: {error}", err=True)
    if model is not None and not problem:
        found.best_estimator().save(model)
        files.append(model)
    for file in files:
        shared.echo(f"wrote {file}", err=as_json)
    if problem:
        shared.fail(problem)
