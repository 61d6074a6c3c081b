"""`fcorr train`: a table in, a model file out."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

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
    lines_of,
    make_estimator,
    parse_bins,
    parse_car,
    parse_kinds,
    parse_threshold,
    print_table,
    read_training_file,
    read_validation_file,
)


class InvarianceName(StrEnum):
    """How the model becomes exactly invariant."""

    adapt = "adapt"
    marginal = "marginal"
    none = "none"


def train(
    data: DataFile,
    target: Target,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Model file to write.", dir_okay=False)
    ],
    sensitive: Annotated[
        list[str] | None,
        typer.Option(help="Sensitive column; give the option again for more."),
    ] = None,
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
    car: Annotated[
        str, typer.Option(help="Weight of the regulariser: a number, 'paper' or 'none'.")
    ] = "1e6",
    invariance: Annotated[
        InvarianceName,
        typer.Option(
            help="How flips of sensitive columns cease to matter: the model adapts to their "
            "absence, or predicts the average over their values; none: --car alone."
        ),
    ] = InvarianceName.adapt,
    epochs: Epochs = None,
    validation: Annotated[
        Path | None,
        typer.Option(help="File to measure after every epoch.", exists=True, dir_okay=False),
    ] = None,
    early_stopping: Annotated[
        bool, typer.Option("--early-stopping", help="Stop when validation stops improving.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Seed; the same seed gives the same model.", min=0)
    ] = None,
    settings: SetOption = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Fit the model with the sensitive columns at work, and with them removed, as "
            "well, and measure all three on the rows of --validation.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Train a model on a CSV or Parquet file."""
    if compare and (validation is None or not sensitive):
        raise typer.BadParameter(
            "needs --sensitive, and --validation with other rows to measure on.",
            param_hint="--compare",
        )
    check_output(output, data, validation)
    roles = Roles(target, sensitive or (), weight, exposure, drop or ())
    arguments = collect_arguments(
        settings,
        sensitive=sensitive or None,
        objective=objective and objective.value,
        exposure=exposure,
        class_weight=class_weight and class_weight.value,
        threshold=parse_threshold(threshold),
        kinds=parse_kinds(kind),
        bins=parse_bins(bins),
        min_category_rows=min_category_rows,
        epochs=epochs,
        early_stopping=early_stopping or None,
        random_state=seed,
        verbose=not quiet,
    )
    arguments["car"] = parse_car(car)
    arguments["invariance"] = None if invariance is InvarianceName.none else invariance.value
    table = read_training_file(data, roles, arguments)
    rows, eval_set = roles.split(table), None
    if validation is not None:
        eval_set = roles.split(read_validation_file(validation, roles, table))
    model = make_estimator(task, table, target, arguments)
    start = time.perf_counter()
    with lines_of(data):
        model.fit(*rows, eval_set=eval_set)
    seconds = time.perf_counter() - start
    model.save(output)
    last = model.history_.epochs[-1]
    outcome = ""
    if model.exact_:
        names = ", ".join(model.schema_.sensitive)
        outcome = f", exactly invariant to {names} (predict does not read it)"
    elif last.car is not None:
        outcome = f", CAR {last.car:.2e} at λ {model.history_.car_weight:g}"
    typer.echo(
        f"{type(model).__name__}: {table.num_rows} rows, {len(model.schema_.names)} features, "
        f"{model.model_.n_parameters} parameters, {seconds:.1f} s, loss {last.loss:.4f}{outcome}"
    )
    typer.echo(f"wrote {output}")
    if compare:
        from fcorr.audit.compare import SCOPE
        from fcorr.audit.compare import compare as compare_models

        comparison = compare_models(model, rows, eval_set)
        print_table("on the validation rows", *comparison.table())
        typer.echo("\n".join([*comparison.notes, SCOPE]))
