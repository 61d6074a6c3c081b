"""What the commands share: options as arguments of the estimators, errors in one line, tables."""

import functools
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec, TypeVar

import typer

from fcorr._core import InvalidInputError, near_match

if TYPE_CHECKING:
    import pyarrow as pa

    from fcorr.estimators import FCorrClassifier, FCorrRegressor

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_MAX_INTEGER_CLASSES = 20
_debug = False

# ------------------------------------------------------------------------------ options


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


DataFile = Annotated[Path, typer.Argument(help="CSV or Parquet file, or a folder.", exists=True)]
Target = Annotated[str, typer.Option(help="Column to predict.")]
TaskOption = Annotated[Task, typer.Option(help="What to predict.")]
Weight = Annotated[str | None, typer.Option(help="Column of sample weights.")]
Objective = Annotated[
    ObjectiveName | None,
    typer.Option(help="What a regression minimises; by default mse. The others: log link."),
]
Exposure = Annotated[
    str | None, typer.Option(help="Column of exposures, such as years at risk; needs a log link.")
]
ClassWeightOption = Annotated[
    ClassWeight | None, typer.Option(help="Make all classes weigh the same in the loss.")
]
Threshold = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER|f1|fpr=RATE|cost=FP,FN",
        help="Probability from which on the second of two classes is predicted, or the rule that "
        "chooses it on the training data; by default 0.5.",
    ),
]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out, such as a key.")]
KindOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=KIND",
        help="What a column is: numeric, categorical, ordinal, boolean, datetime, or its "
        "categories in order, as in grade=A,B,C; repeatable.",
    ),
]
BinsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=GROUPS|EDGE,EDGE,…",
        help="Cut a sensitive column of numbers into groups, as in age=5 or age=25,40,65; "
        "repeatable.",
    ),
]
MinCategoryRows = Annotated[
    int | None,
    typer.Option(
        help="Categories in fewer rows are pooled; by default the smaller of 10 and a thousandth "
        "of the rows."
    ),
]
Epochs = Annotated[int | None, typer.Option(help="Passes over the data; by default 20.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="ARGUMENT=VALUE",
        help="Any other argument of the estimator, as in learning_rate=0.01, head=64x64 or "
        "n_layers=2; repeatable.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]

# Where an argument has an option of another name than its own.
_OPTIONS = {
    "kinds": "--kind",
    "sample_weight": "--weight",
    "eval_set": "--validation",
    "random_state": "--seed",
}
_BY_NAME = (
    *("sensitive", "car", "invariance", "bins", "epochs", "early_stopping", "min_category_rows"),
    *("objective", "exposure", "class_weight", "threshold"),
)


def collect_arguments(settings: list[str] | None, **options: Any) -> dict[str, Any]:
    """Return the arguments of an estimator: options that were given, and those of ``--set``."""
    arguments = {name: value for name, value in options.items() if value is not None}
    for setting in settings or []:
        name, _, value = setting.partition("=")
        name = name.replace("-", "_")
        if not name or not value or name in arguments:
            raise typer.BadParameter(
                f"must be ARGUMENT=VALUE, once for an argument, got {setting!r}.",
                param_hint="--set",
            )
        set_argument(arguments, name, parse_value(name, value), "--set")
    return arguments


def set_argument(arguments: dict[str, Any], name: str, value: Any, option: str) -> None:
    """Set an argument of the estimators by its name, whether it is one of ``advanced`` or not."""
    from fcorr.estimators import Advanced

    advanced = list(Advanced.__annotations__)
    known = [each for each in _argument_names() if each not in ("verbose", *_OPTIONS)]
    if name in advanced:
        arguments["advanced"] = {**arguments.get("advanced", {}), name: value}
    elif name in known:
        arguments[name] = value
    else:
        names = sorted([*known, *advanced])
        raise typer.BadParameter(
            f"no estimator has an argument {name!r}.{near_match(name, names)} There are: "
            f"{', '.join(names)}.",
            param_hint=option,
        )


def parse_value(name: str, text: str) -> Any:
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


def parse_threshold(text: str | None) -> float | str | dict[str, Any] | None:
    """Read a threshold or its rule."""
    rule, _, setting = (text or "").partition("=")
    try:
        if rule == "fpr":
            return {"fpr": float(setting)}
        if rule == "cost":
            return {"cost": tuple(float(cost) for cost in setting.split(","))}
        return text if text in ("f1", None) else float(text)
    except ValueError:
        raise typer.BadParameter(
            f"must be a number, f1, fpr=0.05 or cost=1,20, got {text!r}.", param_hint="--threshold"
        ) from None


def parse_kinds(options: list[str] | None) -> dict[str, str | list[str]] | None:
    """Read ``COLUMN=KIND`` options."""
    kinds: dict[str, str | list[str]] = {}
    for option in options or []:
        name, _, kind = option.partition("=")
        if not name or not kind or name in kinds:
            raise typer.BadParameter(
                f"must be COLUMN=KIND or COLUMN=CATEGORY,CATEGORY,… and once for a column, "
                f"got {option!r}.",
                param_hint="--kind",
            )
        kinds[name] = kind.split(",") if "," in kind else kind
    return kinds or None


def parse_bins(options: list[str] | None) -> dict[str, int | list[float]] | None:
    """Read ``COLUMN=GROUPS`` and ``COLUMN=EDGE,EDGE`` options."""
    bins: dict[str, int | list[float]] = {}
    for option in options or []:
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
    return bins or None


# ------------------------------------------------------------------------------ tables and roles


@dataclass(frozen=True)
class Roles:
    """What the columns of a file are for."""

    target: str
    sensitive: Sequence[str] = ()
    weight: str | None = None
    exposure: str | None = None
    drop: Sequence[str] = ()

    @property
    def outcomes(self) -> list[str]:
        """The target and, where there is one, the weight."""
        return [self.target, *([self.weight] if self.weight else [])]

    def check(self, columns: Sequence[str]) -> None:
        """Refuse a column that the file does not have, or that is asked to be two things."""
        for option, names in {
            "--target": [self.target],
            "--sensitive": self.sensitive,
            "--weight": self.outcomes[1:],
            "--exposure": [self.exposure] if self.exposure else [],
            "--drop": self.drop,
        }.items():
            check_columns(names, columns, option)
        if self.exposure in (*self.outcomes, *self.sensitive):
            raise typer.BadParameter(
                f"{self.exposure!r} is the target, the weight or a sensitive column as well.",
                param_hint="--exposure",
            )
        for name in self.drop:
            if name in (*self.outcomes, self.exposure, *self.sensitive):
                raise typer.BadParameter(
                    f"{name!r} is dropped and used at once.", param_hint="--drop"
                )
        for name in self.sensitive:
            if name in self.outcomes:
                raise typer.BadParameter(
                    f"{name!r} is the target or the weight, not a feature.",
                    param_hint="--sensitive",
                )

    def split(self, table: "pa.Table") -> tuple[Any, ...]:
        """Return X and y, and the weight where there is one, with the columns' names."""
        import narwhals.stable.v2 as nw

        X = table.drop_columns(
            [name for name in (*self.outcomes, *self.drop) if name in table.column_names]
        )
        # With its name, which messages and the schema then know.
        series = (nw.from_native(table[n], series_only=True).alias(n) for n in self.outcomes)
        return X, *series


def read_training_file(data: Path, roles: Roles, arguments: dict[str, Any]) -> "pa.Table":
    """Read a file to learn from, and check what the options say of its columns."""
    from fcorr.data.files import read_file

    table = read_file(data)
    roles.check(table.column_names)
    for name in ("kinds", "bins"):
        check_columns(arguments.get(name) or [], table.column_names, _option(name))
    _read_orders(arguments.get("kinds") or {}, table)
    return table


def read_validation_file(data: Path, roles: Roles, table: "pa.Table") -> "pa.Table":
    """Read a file to measure on, as the training file was read."""
    import pyarrow.types as pat

    from fcorr.data.files import read_file

    text = [field.name for field in table.schema if pat.is_string(field.type)]
    held_out = read_file(data, text=text)
    check_columns(roles.outcomes, held_out.column_names, "--validation")
    return held_out


def make_estimator(
    task: Task, table: "pa.Table", target: str, arguments: dict[str, Any]
) -> "FCorrClassifier | FCorrRegressor":
    """Make the estimator that the options ask for, or that the target looks like."""
    from fcorr.estimators import FCorrClassifier, FCorrRegressor

    classes: dict[Task, type[FCorrClassifier | FCorrRegressor]] = {
        Task.classification: FCorrClassifier,
        Task.regression: FCorrRegressor,
    }
    names = {each: set(cls().get_params(deep=False)) for each, cls in classes.items()}
    if task is Task.auto:  # options that only one task has settle it
        possible = [each for each in classes if set(arguments).issubset(names[each])]
        if len(possible) == 2:
            task = _guess_task(table[target])
            typer.echo(f"task: {task} (guessed from {target!r}; --task sets it)")
        else:
            task = possible[0] if possible else Task.regression
    for name in arguments:
        if name not in names[task]:
            (other,) = set(classes) - {task}
            raise typer.BadParameter(f"is for {other}, not for {task}.", param_hint=_option(name))
    return classes[task](**arguments)


def _guess_task(y: "pa.ChunkedArray") -> Task:
    """Text, booleans and few whole numbers are classes; other numbers are amounts."""
    import pyarrow.types as pat

    if pat.is_integer(y.type):
        few = len(y.unique()) <= _MAX_INTEGER_CLASSES
        return Task.classification if few else Task.regression
    is_number = pat.is_floating(y.type) or pat.is_decimal(y.type)
    return Task.regression if is_number else Task.classification


def _read_orders(kinds: dict[str, Any], table: "pa.Table") -> None:
    """Read the categories of columns of numbers as numbers, in place."""
    from fcorr.data.tables import is_number

    for name, kind in kinds.items():
        if isinstance(kind, list) and is_number(table[name].type):
            try:
                numbers = [float(category) for category in kind]
            except ValueError:
                raise typer.BadParameter(
                    f"the column {name!r} holds numbers, got the order {','.join(kind)}.",
                    param_hint="--kind",
                ) from None
            kinds[name] = [int(number) if number.is_integer() else number for number in numbers]


def check_columns(names: Iterable[str], columns: Sequence[str], option: str) -> None:
    """Refuse an option that names a column the file does not have: bad usage."""
    for name in names:
        if name not in columns:
            raise typer.BadParameter(
                f"the file has no column {name!r}.{near_match(name, columns)} "
                f"It has: {', '.join(columns)}.",
                param_hint=option,
            )


def check_output(output: Path, *inputs: Path | None, option: str = "--output") -> None:
    """Refuse an output that has no folder, or that would replace an input: bad usage."""
    if not output.parent.is_dir():
        raise typer.BadParameter(
            f"the folder {str(output.parent)!r} does not exist.", param_hint=option
        )
    if output.exists() and any(file is not None and output.samefile(file) for file in inputs):
        raise typer.BadParameter(
            f"{str(output)!r} is an input and would be replaced.", param_hint=option
        )


# ------------------------------------------------------------------------------ errors


def set_debug(on: bool) -> None:
    """Let errors keep their traceback."""
    global _debug
    _debug = on


def one_line_errors(command: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Turn whatever goes wrong in a command into one line on stderr.

    An argument that no data could fit is bad usage, with exit code 2; all else exits with 1.
    """

    @functools.wraps(command)
    def guarded(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return command(*args, **kwargs)
            except KeyboardInterrupt:
                fail("interrupted; nothing was written")
            except Exception as error:
                if _debug or _is_typers_own(error):
                    raise
                argument = getattr(error, "argument", None)
                if argument is not None:
                    text = str(error).removeprefix(f"{argument} ")
                    hint = _option(argument)
                    raise typer.BadParameter(as_options(text), param_hint=hint) from None
                fail(as_options(f"{error}") or type(error).__name__)

    return guarded


@contextmanager
def lines_of(data: Path) -> Iterator[None]:
    """Within it, errors count the lines of a CSV file as an editor shows them: its header is 1."""
    try:
        yield
    except InvalidInputError as error:
        if ".csv" not in data.name.lower():
            raise
        text = re.sub(r"\brow (\d+)\b", lambda row: f"line {int(row[1]) + 2}", str(error))
        raise InvalidInputError(text, argument=error.argument) from error


def as_options(text: str) -> str:
    """Say in options what a message says in arguments.

    Examples
    --------
    >>> as_options("Use invariance='adapt' or min_category_rows=1, with a lower learning_rate.")
    'Use --invariance adapt or --min-category-rows 1, with a lower --set learning_rate.'
    """
    text = re.sub(r"advanced=\{'(\w+)': ([^}]*)\}", r"--set \1=\2", text)
    text = re.sub(r"advanced\['(\w+)'\]", r"--set \1", text)
    names = "|".join(_argument_names())

    def with_value(match: re.Match[str]) -> str:
        option, value = _option(match[1]), match[2].strip("'")
        return f"{option}={value}" if option.startswith("--set") else f"{option} {value}".strip()

    text = re.sub(rf"(?<![\w-])({names})=('[^']*'|[\w.]*\w|)", with_value, text)
    long = "|".join(name for name in _argument_names() if "_" in name)
    return re.sub(rf"(?<![\w-])({long})\b(?!['=])", lambda match: _option(match[1]), text)


@functools.cache
def _argument_names() -> list[str]:
    from fcorr.estimators import FCorrClassifier, FCorrRegressor

    names = {*FCorrClassifier().get_params(), *FCorrRegressor().get_params(), *_OPTIONS}
    return sorted(names - {"advanced"}, key=len, reverse=True)


def _option(argument: str) -> str:
    """Name the option that sets an argument of the estimators."""
    advanced = re.fullmatch(r"advanced\['(\w+)'\]", argument)
    if advanced:
        return f"--set {advanced[1]}"
    if argument in _OPTIONS:
        return _OPTIONS[argument]
    dashed = argument.replace("_", "-")
    return f"--{dashed}" if argument in _BY_NAME else f"--set {argument}"


def fail(message: str) -> NoReturn:
    """Print one line on stderr and leave with exit code 1."""
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    raise typer.Exit(1)


def _is_typers_own(error: Exception) -> bool:
    """Tell whether an error is typer's way to leave: usage errors, exits."""
    return type(error).__module__.split(".")[0] in ("typer", "click")


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, UserWarning):  # the others speak to programmers
        typer.echo(f"warning: {' '.join(as_options(str(message)).split())}", err=True)


# ------------------------------------------------------------------------------ output


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, the first column to the left and the others to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    # Where nobody resizes a window, a table is as wide as it needs to be.
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def print_facts(facts: Mapping[str, object]) -> None:
    """Print names and values in two columns."""
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        typer.echo(f"{name:<{width}}  {value}")
