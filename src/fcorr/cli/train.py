"""`fcorr train`: a table in, a model file out."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from fcorr.cli._console import check_columns, check_output, print_table
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


class InvarianceName(StrEnum):
    """How the model becomes exactly invariant."""

    adapt = "adapt"
    marginal = "marginal"
    none = "none"


def train(
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file, or a folder.", exists=True)],
    target: Annotated[str, typer.Option(help="Column to predict.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Model file to write.", dir_okay=False)
    ],
    sensitive: Annotated[
        list[str] | None,
        typer.Option(help="Sensitive column; give the option again for more."),
    ] = None,
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
    min_category_rows: Annotated[
        int | None,
        typer.Option(
            help="Categories in fewer rows are pooled; by default the smaller of 10 and a "
            "thousandth of the rows.",
            min=1,
        ),
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(help="File to measure after every epoch.", exists=True, dir_okay=False),
    ] = None,
    car: Annotated[
        str, typer.Option(help="Weight of the regulariser: a number, 'paper' or 'none'.")
    ] = "1e6",
    car_form: Annotated[CarForm, typer.Option(help="Form of the regulariser.")] = CarForm.sensitive,
    head: Annotated[str, typer.Option(help="Sizes of the head's hidden layers.")] = "128,128",
    layers: Annotated[int, typer.Option(help="Encoder layers.", min=1)] = 1,
    invariance: Annotated[
        InvarianceName,
        typer.Option(
            help="How flips of sensitive columns cease to matter: the model adapts to their "
            "absence, or predicts the average over their values; none: --car alone."
        ),
    ] = InvarianceName.adapt,
    bins: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=GROUPS|EDGE,EDGE,…",
            help="Cut a sensitive column of numbers into groups, as in age=5 or age=25,40,65; "
            "repeatable.",
        ),
    ] = None,
    combinations: Annotated[
        bool,
        typer.Option(
            "--combinations", help="Exchange several sensitive columns together in training."
        ),
    ] = False,
    residual: Annotated[bool, typer.Option(help="Residual round the attention.")] = True,
    epochs: Annotated[int, typer.Option(help="Passes over the data.", min=1)] = 20,
    batch_size: Annotated[
        int | None, typer.Option(help="Rows per step; by default chosen by the data.", min=1)
    ] = None,
    learning_rate: Annotated[float, typer.Option(help="Largest learning rate.")] = 0.02,
    early_stopping: Annotated[
        bool, typer.Option("--early-stopping", help="Stop when validation stops improving.")
    ] = False,
    keep_constant: Annotated[
        bool, typer.Option("--keep-constant", help="Accept columns of one value.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Seed; the same seed gives the same model.", min=0)
    ] = None,
    device: Annotated[str, typer.Option(help="Where torch computes.")] = "cpu",
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Fit the model with the sensitive columns at work, and with them removed, as "
            "well, and measure all three on the rows of --validation.",
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Train a model on a CSV or Parquet file."""
    if compare and (validation is None or not sensitive):
        raise typer.BadParameter(
            "needs --sensitive, and --validation with other rows to measure on.",
            param_hint="--compare",
        )
    parameters: dict[str, Any] = {
        "sensitive": sensitive or None,
        "kinds": parse_kinds(kind or []) or None,
        "min_category_rows": min_category_rows or "auto",
        "car": parse_car(car),
        "car_form": car_form.value,
        "head": parse_sizes(head),
        "n_layers": layers,
        "invariance": None if invariance is InvarianceName.none else invariance.value,
        "bins": parse_bins(bins or []) or None,
        "car_combinations": combinations,
        "residual": residual,
        "epochs": epochs,
        "batch_size": batch_size or "auto",
        "learning_rate": learning_rate,
        "early_stopping": early_stopping,
        "constant_columns": "keep" if keep_constant else "error",
        "random_state": seed,
        "device": device,
        "verbose": not quiet,
    }
    regression = given(
        objective=objective and objective.value, exposure=exposure, tweedie_power=tweedie_power
    )
    classification = given(
        class_weight=class_weight and class_weight.value,
        threshold=None if threshold is None else parse_threshold(threshold),
    )
    task = settle_task(task, regression, classification)
    check_output(output, data, validation)
    check_arguments(parameters, regression, classification)
    from fcorr.data.files import read_file

    table = read_file(data)
    check_columns([target], table.column_names, "--target")
    check_columns(sensitive or [], table.column_names, "--sensitive")
    check_columns([weight] if weight else [], table.column_names, "--weight")
    check_columns([exposure] if exposure else [], table.column_names, "--exposure")
    check_columns(drop or [], table.column_names, "--drop")
    check_columns(parameters["kinds"] or [], table.column_names, "--kind")
    check_columns(parameters["bins"] or [], table.column_names, "--bins")
    check_roles(target, weight, exposure, sensitive or [], drop or [])
    outcomes = [target, *([weight] if weight else [])]
    X = table.drop_columns([*outcomes, *(drop or [])])
    eval_set = None
    if validation is not None:
        held_out = read_file(validation, text=text_columns(table))
        check_columns(outcomes, held_out.column_names, "--validation")
        eval_set = (held_out, *(take_column(held_out, name) for name in outcomes))
    if task is Task.auto:
        task = guess_task(table[target])
        typer.echo(f"task: {task} (guessed from {target!r}; --task sets it)")

    from fcorr.estimators import FCorrClassifier, FCorrRegressor

    parameters["kinds"] = read_orders(parameters["kinds"], table)
    model: FCorrClassifier | FCorrRegressor
    if task is Task.classification:
        model = FCorrClassifier(**parameters, **classification)
    else:
        model = FCorrRegressor(**parameters, **regression)
    start = time.perf_counter()
    sample_weight = take_column(table, weight) if weight else None
    model.fit(X, take_column(table, target), sample_weight, eval_set)
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
        from fcorr.audit.compared import SCOPE
        from fcorr.audit.comparison import compare as compare_models

        weights = [] if sample_weight is None else [sample_weight]
        train_rows = (X, take_column(table, target), *weights)
        assert eval_set is not None
        comparison = compare_models(model, train_rows, eval_set)
        print_table("on the validation rows", *comparison.table())
        typer.echo("\n".join([*comparison.notes, SCOPE]))
