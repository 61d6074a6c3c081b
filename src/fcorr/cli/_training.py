"""What `fcorr train` and `fcorr sweep` share: their options as arguments of the estimators."""

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer

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


def text_columns(table: "pa.Table") -> list[str]:
    """Name the columns of text."""
    import pyarrow.types as pat

    return [field.name for field in table.schema if pat.is_string(field.type)]


def take_column(table: "pa.Table", name: str) -> Any:
    """Take a column with its name, which messages and the schema then know."""
    import narwhals.stable.v2 as nw

    return nw.from_native(table[name], series_only=True).alias(name)


def given(**options: Any) -> dict[str, Any]:
    """Keep the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def settle_task(task: Task, regression: dict[str, Any], classification: dict[str, Any]) -> Task:
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


def check_arguments(
    parameters: dict[str, Any], regression: dict[str, Any], classification: dict[str, Any]
) -> None:
    """Refuse a value that the estimators would refuse: here it is bad usage."""
    from fcorr._core import InvalidInputError
    from fcorr.estimators import FCorrClassifier, FCorrRegressor
    from fcorr.estimators.options import check_device, check_options

    try:
        check_options(FCorrClassifier(**parameters, **classification).get_params(deep=False))
        check_options(FCorrRegressor(**parameters, **regression).get_params(deep=False))
        check_device(parameters["device"])
    except InvalidInputError as error:
        raise typer.BadParameter(str(error)) from None


def check_roles(
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


def guess_task(y: "pa.ChunkedArray") -> Task:
    """Text, booleans and few whole numbers are classes; other numbers are amounts."""
    import pyarrow.types as pat

    if pat.is_integer(y.type):
        few = len(y.unique()) <= _MAX_INTEGER_CLASSES
        return Task.classification if few else Task.regression
    is_number = pat.is_floating(y.type) or pat.is_decimal(y.type)
    return Task.regression if is_number else Task.classification


def parse_kinds(options: list[str]) -> dict[str, str | list[str]]:
    """Read ``COLUMN=KIND`` options."""
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


def parse_bins(options: list[str]) -> dict[str, int | list[float]]:
    """Read ``COLUMN=GROUPS`` and ``COLUMN=EDGE,EDGE`` options."""
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


def read_orders(kinds: dict[str, Any] | None, table: "pa.Table") -> dict[str, Any] | None:
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


def parse_car(text: str) -> float | str | None:
    """Read a weight of CAR."""
    if text in ("none", "paper"):
        return None if text == "none" else text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"must be a number, 'paper' or 'none', got {text!r}.", param_hint="--car"
        ) from None


def parse_threshold(text: str) -> float | str | dict[str, Any]:
    """Read a threshold or its rule."""
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


def parse_sizes(text: str) -> tuple[int, ...]:
    """Read sizes with commas between them."""
    try:
        return tuple(int(size) for size in text.split(",") if size.strip())
    except ValueError:
        raise typer.BadParameter(
            f"must be whole numbers with commas, such as 128,128, got {text!r}.",
            param_hint="--head",
        ) from None
