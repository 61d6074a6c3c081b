"""`fcorr train`: a table in, a model file out."""

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fcorr.cli._console import check_columns, check_output

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_INTEGER_CLASSES = 20


class Task(StrEnum):
    """What to predict."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


class ObjectiveName(StrEnum):
    """What a regression minimises."""

    mse = "mse"
    poisson = "poisson"
    gamma = "gamma"
    tweedie = "tweedie"


class ClassWeight(StrEnum):
    """How classes are weighted."""

    balanced = "balanced"


class CarForm(StrEnum):
    """Form of the regulariser."""

    sensitive = "sensitive"
    paper = "paper"
    cda = "cda"


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
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Train a model on a CSV or Parquet file."""
    parameters: dict[str, Any] = {
        "sensitive": sensitive or None,
        "kinds": _parse_kinds(kind or []) or None,
        "min_category_rows": min_category_rows or "auto",
        "car": _parse_car(car),
        "car_form": car_form.value,
        "head": _parse_sizes(head),
        "n_layers": layers,
        "invariance": None if invariance is InvarianceName.none else invariance.value,
        "bins": _parse_bins(bins or []) or None,
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
    regression = _given(
        objective=objective and objective.value, exposure=exposure, tweedie_power=tweedie_power
    )
    classification = _given(
        class_weight=class_weight and class_weight.value,
        threshold=None if threshold is None else _parse_threshold(threshold),
    )
    task = _settle_task(task, regression, classification)
    check_output(output, data, validation)
    _check_arguments(parameters, regression, classification)
    from fcorr.data.files import read_file

    table = read_file(data)
    check_columns([target], table.column_names, "--target")
    check_columns(sensitive or [], table.column_names, "--sensitive")
    check_columns([weight] if weight else [], table.column_names, "--weight")
    check_columns([exposure] if exposure else [], table.column_names, "--exposure")
    check_columns(drop or [], table.column_names, "--drop")
    check_columns(parameters["kinds"] or [], table.column_names, "--kind")
    check_columns(parameters["bins"] or [], table.column_names, "--bins")
    _check_roles(target, weight, exposure, sensitive or [], drop or [])
    outcomes = [target, *([weight] if weight else [])]
    X = table.drop_columns([*outcomes, *(drop or [])])
    eval_set = None
    if validation is not None:
        held_out = read_file(validation, text=_text_columns(table))
        check_columns(outcomes, held_out.column_names, "--validation")
        eval_set = (held_out, *(_column(held_out, name) for name in outcomes))
    if task is Task.auto:
        task = _guess_task(table[target])
        typer.echo(f"task: {task} (guessed from {target!r}; --task sets it)")

    from fcorr.estimators import FCorrClassifier, FCorrRegressor

    parameters["kinds"] = _read_orders(parameters["kinds"], table)
    model: FCorrClassifier | FCorrRegressor
    if task is Task.classification:
        model = FCorrClassifier(**parameters, **classification)
    else:
        model = FCorrRegressor(**parameters, **regression)
    start = time.perf_counter()
    sample_weight = _column(table, weight) if weight else None
    model.fit(X, _column(table, target), sample_weight, eval_set)
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


def _text_columns(table: "pa.Table") -> list[str]:
    import pyarrow.types as pat

    return [field.name for field in table.schema if pat.is_string(field.type)]


def _column(table: "pa.Table", name: str) -> Any:
    """Take a column with its name, which messages and the schema then know."""
    import narwhals.stable.v2 as nw

    return nw.from_native(table[name], series_only=True).alias(name)


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _settle_task(task: Task, regression: dict[str, Any], classification: dict[str, Any]) -> Task:
    """Let options that only one task has settle the task; refuse those of another."""
    foreign = {Task.classification: regression, Task.regression: classification}.get(task)
    if task is Task.auto and regression:
        task, foreign = Task.regression, classification
    elif task is Task.auto and classification:
        task = Task.classification
    if foreign:
        option = f"--{next(iter(foreign))}".replace("_", "-")
        other = Task.regression if task is Task.classification else Task.classification
        raise typer.BadParameter(f"is for {other}, not for {task}.", param_hint=option)
    return task


def _check_arguments(
    parameters: dict[str, Any], regression: dict[str, Any], classification: dict[str, Any]
) -> None:
    """Refuse a value that the estimators would refuse: here it is bad usage."""
    from fcorr._core.errors import InvalidInputError
    from fcorr.estimators import FCorrClassifier, FCorrRegressor
    from fcorr.estimators.options import check_device, check_options

    try:
        check_options(FCorrClassifier(**parameters, **classification).get_params(deep=False))
        check_options(FCorrRegressor(**parameters, **regression).get_params(deep=False))
        check_device(parameters["device"])
    except InvalidInputError as error:
        raise typer.BadParameter(str(error)) from None


def _check_roles(
    target: str, weight: str | None, exposure: str | None, sensitive: list[str], drop: list[str]
) -> None:
    """Refuse a column that is asked to be two things at once."""
    if exposure in (target, weight, *sensitive) and exposure is not None:
        raise typer.BadParameter(
            f"{exposure!r} is the target, the weight or a sensitive column as well.",
            param_hint="--exposure",
        )
    for name in drop:
        if name in (target, weight, exposure, *sensitive):
            raise typer.BadParameter(f"{name!r} is dropped and used at once.", param_hint="--drop")
    for name in sensitive:
        if name in (target, weight):
            raise typer.BadParameter(
                f"{name!r} is the target or the weight, not a feature.", param_hint="--sensitive"
            )


def _guess_task(y: "pa.ChunkedArray") -> Task:
    """Text, booleans and few whole numbers are classes; other numbers are amounts."""
    import pyarrow.types as pat

    if pat.is_integer(y.type):
        few = len(y.unique()) <= _MAX_INTEGER_CLASSES
        return Task.classification if few else Task.regression
    is_number = pat.is_floating(y.type) or pat.is_decimal(y.type)
    return Task.regression if is_number else Task.classification


def _parse_kinds(options: list[str]) -> dict[str, str | list[str]]:
    kinds: dict[str, str | list[str]] = {}
    for option in options:
        name, _, kind = option.partition("=")
        if not name or not kind or name in kinds:
            raise typer.BadParameter(
                f"must be COLUMN=KIND or COLUMN=CATEGORY,CATEGORY,… and once for a column, "
                f"got {option!r}.",
                param_hint="--kind",
            )
        kinds[name] = kind.split(",") if "," in kind else kind
    return kinds


def _parse_bins(options: list[str]) -> dict[str, int | list[float]]:
    bins: dict[str, int | list[float]] = {}
    for option in options:
        name, _, cut = option.partition("=")
        try:
            if not name or name in bins:
                raise ValueError
            # One whole number is a number of groups; an edge alone is written with a comma.
            edges = [float(edge) for edge in cut.split(",") if edge.strip()]
            bins[name] = int(cut) if "," not in cut else edges
        except ValueError:
            raise typer.BadParameter(
                "must be COLUMN=GROUPS or COLUMN=EDGE,EDGE,… and once for a column, "
                f"got {option!r}.",
                param_hint="--bins",
            ) from None
    return bins


def _read_orders(kinds: dict[str, Any] | None, table: "pa.Table") -> dict[str, Any] | None:
    """Read the categories of columns of numbers as numbers."""
    from fcorr.data.columns import is_number

    read = dict(kinds or {})
    for name, kind in read.items():
        if isinstance(kind, list) and is_number(table[name].type):
            try:
                read[name] = [_number(category) for category in kind]
            except ValueError:
                raise typer.BadParameter(
                    f"the column {name!r} holds numbers, got the order {','.join(kind)}.",
                    param_hint="--kind",
                ) from None
    return read or None


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _parse_car(text: str) -> float | str | None:
    if text in ("none", "paper"):
        return None if text == "none" else text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"must be a number, 'paper' or 'none', got {text!r}.", param_hint="--car"
        ) from None


def _parse_threshold(text: str) -> float | str | dict[str, Any]:
    rule, _, setting = text.partition("=")
    try:
        if rule == "fpr":
            return {"fpr": float(setting)}
        if rule == "cost":
            return {"cost": tuple(float(cost) for cost in setting.split(","))}
        return text if text == "f1" else float(text)
    except ValueError:
        raise typer.BadParameter(
            f"must be a number, f1, fpr=0.05 or cost=1,20, got {text!r}.", param_hint="--threshold"
        ) from None


def _parse_sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in text.split(",") if size.strip())
    except ValueError:
        raise typer.BadParameter(
            f"must be whole numbers with commas, such as 128,128, got {text!r}.",
            param_hint="--head",
        ) from None
