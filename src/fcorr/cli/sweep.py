"""`fcorr sweep`: a table in; records, a table, figures and the chosen model out."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fcorr.cli._console import check_columns, fail, print_table
from fcorr.cli._training import (
    CarForm,
    ClassWeight,
    ObjectiveName,
    Task,
    check_arguments,
    check_roles,
    given,
    guess_task,
    parse_bins,
    parse_car,
    parse_kinds,
    parse_sizes,
    parse_threshold,
    read_orders,
    settle_task,
    take_column,
    text_columns,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from fcorr.audit.measuring import Estimator
    from fcorr.audit.sweep import Sweep

_FRACTION = 0.2


def sweep(
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file, or a folder.", exists=True)],
    target: Annotated[str, typer.Option(help="Column to predict.")],
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
        typer.Option(help="Largest certified bound of the chosen model; 0 for exact ones only."),
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
    effort: Annotated[
        int, typer.Option(help="How hard to try for small certified bounds.", min=1)
    ] = 2**17,
    task: Annotated[Task, typer.Option(help="What to predict.")] = Task.auto,
    weight: Annotated[str | None, typer.Option(help="Column of sample weights.")] = None,
    objective: Annotated[
        ObjectiveName | None,
        typer.Option(help="What a regression minimises; by default mse. The others: log link."),
    ] = None,
    exposure: Annotated[
        str | None,
        typer.Option(help="Column of exposures, such as years at risk; needs a log link."),
    ] = None,
    tweedie_power: Annotated[
        float | None, typer.Option(help="Power of the Tweedie objective; by default 1.5.")
    ] = None,
    class_weight: Annotated[
        ClassWeight | None, typer.Option(help="Make all classes weigh the same in the loss.")
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|f1|fpr=RATE|cost=FP,FN",
            help="Probability from which on the second of two classes is predicted, or the rule "
            "that chooses it on the training data; by default 0.5.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Column to leave out, such as a key.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=KIND",
            help="What a column is: numeric, categorical, ordinal, boolean, datetime, or its "
            "categories in order, as in grade=A,B,C; repeatable.",
        ),
    ] = None,
    bins: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=GROUPS|EDGE,EDGE,…",
            help="Cut a sensitive column of numbers into groups, as in age=5 or age=25,40,65; "
            "repeatable.",
        ),
    ] = None,
    min_category_rows: Annotated[
        int | None,
        typer.Option(
            help="Categories in fewer rows are pooled; by default the smaller of 10 and a "
            "thousandth of the rows.",
            min=1,
        ),
    ] = None,
    car_form: Annotated[CarForm, typer.Option(help="Form of the regulariser.")] = CarForm.sensitive,
    head: Annotated[str, typer.Option(help="Sizes of the head's hidden layers.")] = "128,128",
    layers: Annotated[int, typer.Option(help="Encoder layers.", min=1)] = 1,
    residual: Annotated[bool, typer.Option(help="Residual round the attention.")] = True,
    epochs: Annotated[int, typer.Option(help="Passes over the data.", min=1)] = 20,
    batch_size: Annotated[
        int | None, typer.Option(help="Rows per step; by default chosen by the data.", min=1)
    ] = None,
    learning_rate: Annotated[float, typer.Option(help="Largest learning rate.")] = 0.02,
    keep_constant: Annotated[
        bool, typer.Option("--keep-constant", help="Accept columns of one value.")
    ] = False,
    device: Annotated[str, typer.Option(help="Where torch computes.")] = "cpu",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Train over a grid of λ and seeds, and choose the most accurate model within a budget.

    Everything is measured on validation rows; keep the test rows for the chosen model. The same
    command again goes on where it was interrupted.
    """
    parameters: dict[str, Any] = {
        "sensitive": sensitive,
        "kinds": parse_kinds(kind or []) or None,
        "bins": parse_bins(bins or []) or None,
        "min_category_rows": min_category_rows or "auto",
        "car_form": car_form.value,
        "head": parse_sizes(head),
        "n_layers": layers,
        "residual": residual,
        "epochs": epochs,
        "batch_size": batch_size or "auto",
        "learning_rate": learning_rate,
        "constant_columns": "keep" if keep_constant else "error",
        "device": device,
    }
    regression = given(
        objective=objective and objective.value, exposure=exposure, tweedie_power=tweedie_power
    )
    classification = given(
        class_weight=class_weight and class_weight.value,
        threshold=None if threshold is None else parse_threshold(threshold),
    )
    task = settle_task(task, regression, classification)
    points = _parse_grid(car, exact, grid or [])
    _check_places(output, model, data, validation)
    fraction = _check_fraction(validation, validation_fraction)
    check_arguments(parameters, regression, classification)
    _check_sweep_arguments(budget, jobs)
    from fcorr.data.files import read_file

    table = read_file(data)
    check_columns([target], table.column_names, "--target")
    check_columns(sensitive, table.column_names, "--sensitive")
    check_columns([weight] if weight else [], table.column_names, "--weight")
    check_columns([exposure] if exposure else [], table.column_names, "--exposure")
    check_columns(drop or [], table.column_names, "--drop")
    check_columns(parameters["kinds"] or [], table.column_names, "--kind")
    check_columns(parameters["bins"] or [], table.column_names, "--bins")
    check_roles(target, weight, exposure, sensitive, drop or [])
    outcomes = [target, *([weight] if weight else [])]
    if validation is not None:
        held_out = read_file(validation, text=text_columns(table))
        check_columns(outcomes, held_out.column_names, "--validation")
    else:
        table, held_out = _split(table, fraction)
    if task is Task.auto:
        task = guess_task(table[target])
        typer.echo(f"task: {task} (guessed from {target!r}; --task sets it)")

    from fcorr.estimators import FCorrClassifier, FCorrRegressor

    parameters["kinds"] = read_orders(parameters["kinds"], table)
    estimator: Estimator
    if task is Task.classification:
        estimator = FCorrClassifier(**parameters, **classification)
    else:
        estimator = FCorrRegressor(**parameters, **regression)
    _check_points(points, estimator)
    output.mkdir(parents=True, exist_ok=True)
    X, eval_X = (part.drop_columns([*outcomes, *(drop or [])]) for part in (table, held_out))
    y, *train_weight = (take_column(table, name) for name in outcomes)
    found = _run(
        output / "sweep.jsonl",
        estimator,
        X,
        y,
        grid=points,
        eval_set=(eval_X, *(take_column(held_out, name) for name in outcomes)),
        seeds=seeds,
        sample_weight=train_weight[0] if train_weight else None,
        n_jobs=jobs,
        budget=budget,
        warm_start=warm_start,
        effort=effort,
        progress=not quiet,
    )
    _report(found, output, model)


def _parse_grid(car: str, exact: bool, options: list[str]) -> list[dict[str, list[Any]]]:
    """Read what to vary: λ acting alone, the exact forms, and in both what --grid says."""
    others: dict[str, list[Any]] = {}
    for option in options:
        name, _, values = option.partition("=")
        name = name.replace("-", "_")
        if not name or not values or name in others or name in ("car", "invariance"):
            raise typer.BadParameter(
                "must be ARGUMENT=VALUE,VALUE,… and once for an argument (--car and --exact have "
                f"their own), got {option!r}.",
                param_hint="--grid",
            )
        others[name] = [_parse_value(name, value) for value in values.split(",")]
    weights = [parse_car(weight.strip()) for weight in car.split(",") if weight.strip()]
    grids: list[dict[str, list[Any]]] = []
    if weights:
        grids.append({"car": weights, "invariance": [None], **others})
    if exact:
        grids.append({"invariance": ["adapt", "marginal"], **others})
    if not grids:
        raise typer.BadParameter("names no λ, and --no-exact leaves nothing.", param_hint="--car")
    return grids


def _parse_value(name: str, text: str) -> Any:
    """Read a value as what it looks like: a number, true, false, none, sizes or text."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        if name == "head":
            return tuple(int(size) for size in text.split("x"))
        number = float(text)
        return int(number) if text.strip().lstrip("-").isdigit() else number
    except ValueError:
        return text


def _check_places(output: Path, model: Path | None, *inputs: Path | None) -> None:
    """Refuse a model file that has no folder, or that would replace an input: bad usage."""
    if model is None:
        return
    if not model.parent.is_dir() and model.parent != output:
        raise typer.BadParameter(
            f"the folder {str(model.parent)!r} does not exist.", param_hint="--model"
        )
    if model.exists() and any(file is not None and model.samefile(file) for file in inputs):
        raise typer.BadParameter(
            f"{str(model)!r} is an input and would be replaced.", param_hint="--model"
        )


def _check_fraction(validation: Path | None, fraction: float | None) -> float:
    if validation is not None and fraction is not None:
        raise typer.BadParameter(
            "is for when there is no --validation file.", param_hint="--validation-fraction"
        )
    fraction = _FRACTION if fraction is None else fraction
    if not 0 < fraction < 1:
        raise typer.BadParameter(
            f"must lie between 0 and 1, got {fraction}.", param_hint="--validation-fraction"
        )
    return fraction


def _check_sweep_arguments(budget: float | None, jobs: int) -> None:
    from fcorr._core import InvalidInputError
    from fcorr.audit.sweep.choosing import check_budget

    try:
        check_budget(budget)
    except InvalidInputError as error:
        raise typer.BadParameter(str(error), param_hint="--budget") from None
    if jobs == 0:
        raise typer.BadParameter(
            "must not be 0: 1 is one after the other, -1 as many as cores.", param_hint="--jobs"
        )


def _check_points(points: list[dict[str, list[Any]]], estimator: "Estimator") -> None:
    """Refuse values that the estimator would refuse: here it is bad usage."""
    from fcorr._core import InvalidInputError
    from fcorr.audit.sweep.grid import expand_grid

    try:
        expand_grid(points, estimator.get_params(deep=False))
    except InvalidInputError as error:
        raise typer.BadParameter(str(error), param_hint="--car or --grid") from None


def _split(table: "pa.Table", fraction: float) -> "Sequence[pa.Table]":
    """Set rows aside, the same ones for every command on the same file."""
    import numpy as np

    n_rows = table.num_rows
    n_held_out = min(n_rows - 1, max(1, round(fraction * n_rows)))
    order = np.random.default_rng(0).permutation(n_rows)
    parts = order[n_held_out:], order[:n_held_out]
    return [table.take(np.sort(part)) for part in parts]


def _run(path: Path, *args: Any, **kwargs: Any) -> "Sweep":
    from fcorr.audit.sweep import sweep as run_sweep

    try:
        return run_sweep(*args, path=path, **kwargs)
    except KeyboardInterrupt:
        n_done = len(path.read_bytes().splitlines()) if path.exists() else 0
        fail(f"interrupted; {n_done} run(s) are in {path}: the same command goes on from there")


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
