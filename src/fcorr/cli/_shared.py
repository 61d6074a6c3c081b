"""What the commands share: options as arguments of the estimators, files, messages, tables."""

import functools
import inspect
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from fcorr._core import (
    InvalidInputError,
    check_writable,
    errors_of_writing,
    find_counted,
    near_match,
    renumber_rows,
    show_text,
    temporary_folder,
    text_table,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from fcorr.data.files import Dialect
    from fcorr.data.schema import Schema
    from fcorr.data.stream import ParquetTable
    from fcorr.estimators import FCorrClassifier, FCorrRegressor

_MAX_INTEGER_CLASSES = 20
STDIN = STDOUT = Path("-")
CHECK_FAILED = 3  # exit code where a check was made and says no
_stdin: Path | None = None  # the copy of standard input that a command reads

# ------------------------------------------------------------------------------ options

TaskName = Literal["auto", "classification", "regression"]

ModelFile = Annotated[Path, typer.Argument(help="Model file.", exists=True, dir_okay=False)]
DataFile = Annotated[  # with - for a file, whose being there `fcorr.cli` sees to
    Path,
    typer.Argument(
        help="CSV (also .csv.gz), TSV or Parquet file, a folder of Parquet files, or - for "
        "standard input."
    ),
]
column_option = functools.partial(typer.Option, metavar="COLUMN")
Target = Annotated[str, column_option(help="Column to predict.")]
Sensitive = column_option(help="Sensitive column; repeatable.")
Task = Annotated[TaskName, typer.Option(help="What to predict.")]
Weight = Annotated[
    str | None, column_option("--sample-weight", help="Column of weights; 0 leaves a row out.")
]
Drop = Annotated[
    list[str] | None, column_option(help="Column to leave out, such as a key; repeatable.")
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help="What separates the fields of CSV files, or 'tab'; by default what the header shows.",
    ),
]
Decimal = Annotated[
    Literal[".", ","] | None,
    typer.Option(
        help="Decimal sign of CSV files; by default what their numbers show, which takes some rows."
    ),
]
Dates = Annotated[
    Literal["dmy", "mdy"] | None,
    typer.Option(
        help="Order of dates such as 31/12/2024 in CSV files; by default the only possible one."
    ),
]
Seed = typer.Option("--random-state", help="The same one gives the same result.", min=0)
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def _read_config(context: typer.Context, path: Path | None) -> None:
    """Let a TOML file give the options that the command line does not."""
    if path is None or context.resilient_parsing:  # the shell asks how a command may go on
        return

    def spell(value: Any) -> str:
        text = ",".join(map(spell, value)) if isinstance(value, list) else str(value)
        return text.lower() if isinstance(value, bool) else text

    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no TOML, or no UTF-8
        bad_usage("--config", f"must be a TOML file, got {str(path)!r}: {error}.")
    options = {name: each for each in context.command.params for name in each.opts}
    names = sorted(name[2:] for name in options if re.match("--(?!config|help)", name))
    context.default_map = found = {}
    for key, value in given.items():
        name = key.replace("_", "-")
        option = options[f"--{name}"] if name in names else None
        if option is None or option.name in found:
            why = f"is no option.{near_match(name, names)} There are: {', '.join(names)}."
            bad_usage("--config", f"{key!r} {'is there twice.' if option else why}")
        if isinstance(value, dict):  # as in kinds = {grade = ["A", "B"]}
            value = [f"{of}={spell(each)}" for of, each in value.items()]
        values = [spell(each) for each in (value if isinstance(value, list) else [value])]
        is_list = getattr(option, "multiple", False)
        if not is_list and len(values) != 1:
            bad_usage("--config", f"{key!r} must be one value, got {value!r}.")
        found[option.name] = values if is_list else values[0]


Config = Annotated[  # which its callback reads; no command sees it
    Path | None,
    typer.Option(
        help="TOML file of options by their long names; those of the command line win.",
        callback=_read_config,
        expose_value=False,
        is_eager=True,
        exists=True,
        dir_okay=False,
    ),
]


def _estimator_options(
    *,
    objective: Literal["mse", "poisson", "gamma", "tweedie"] | None = typer.Option(
        None, help="What a regression minimises; by default mse. The others: log link."
    ),
    exposure: str | None = column_option(
        None, help="Column of exposures, such as years at risk; needs a log link."
    ),
    threshold: str | None = typer.Option(
        None,
        metavar="NUMBER|f1|fpr=RATE|cost=FP,FN",
        help="Probability from which on the second of two classes is predicted, or the rule "
        "that chooses it on the training data; by default 0.5.",
    ),
    kinds: list[str] | None = typer.Option(
        None,
        metavar="COLUMN=KIND",
        help="What a column is: numeric, categorical, ordinal, boolean, datetime, or its "
        "categories in order, as in grade=A,B,C; repeatable.",
    ),
    n_members: int | None = typer.Option(
        None, help="Most networks in the pack; 1 for a single one. By default 48, of many rows 8."
    ),
    monotone: list[str] | None = typer.Option(
        None,
        metavar="COLUMN=increasing|decreasing",
        help="Let predictions never fall, or never rise, with a column of numbers; repeatable.",
    ),
    epochs: int | None = typer.Option(
        None, help="Most passes over the data; by default what the members try."
    ),
    settings: list[str] | None = typer.Option(
        None,
        "--set",
        metavar="ARGUMENT=VALUE",
        help="Any other argument of the estimator, as in learning_rate=0.01, head=64x64, "
        "class_weight=balanced or min_category_rows=5; repeatable.",
    ),
    config: Config = None,
) -> None:
    """Declare the options that set arguments of an estimator, in every command that trains one."""


def with_estimator_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options, which it takes as keywords and hands to `collect_arguments`."""
    own = [p for p in inspect.signature(command).parameters.values() if p.kind != p.VAR_KEYWORD]
    added = inspect.signature(_estimator_options).parameters.values()
    command.__annotations__ |= _estimator_options.__annotations__
    command.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    return command


# Arguments that have options of their own: those that --set and --grid do not take, and others.
_OPTIONS_ONLY = (
    *("kinds", "sample_weight", "eval_set", "random_state", "n_jobs", "n_members"),
    *("delimiter", "decimal", "dates"),
)
_OPTIONS = (
    *_OPTIONS_ONLY,
    *("sensitive", "car", "invariance", "epochs", "monotone", "objective", "exposure"),
    *("threshold", "limits", "budget", "seeds", "incumbent", "opset", "positive"),
    *("keep", "rate", "address", "workers", "proxy", "checkpoint", "memory"),
)


def collect_arguments(*, settings: list[str] | None, **options: Any) -> dict[str, Any]:
    """Return the arguments of an estimator: options that were given, and those of ``--set``."""
    arguments = {name: value for name, value in options.items() if value is not None}
    for name, value in arguments.items():
        if name in ("kinds", "monotone"):  # of columns, each a value or, with commas, several
            rule = "COLUMN=VALUE or COLUMN=VALUE,VALUE,… and once for a column"
            arguments[name] = {
                column: [each for each in text.split(",") if each] if "," in text else text
                for column, text in split_pairs(value, name_option(name), rule).items()
            }
        elif name == "threshold" and "=" in value:
            kind, _, setting = value.partition("=")
            values = tuple(parse_value(name, each) for each in setting.split(","))
            arguments[name] = {kind: values if kind == "cost" else values[0]}
        elif name in ("car", "invariance", "threshold"):
            arguments[name] = parse_value(name, value)
    rule = "ARGUMENT=VALUE, once for an argument"
    for given, text in split_pairs(settings or [], "--set", rule).items():
        name, is_advanced = find_argument(given, "--set")
        own = arguments.setdefault("advanced", {}) if is_advanced else arguments
        if name in own:
            bad_usage("--set", f"must be {rule}, got {given}={text!r}.")
        own[name] = parse_value(name, text)
    return arguments


def split_pairs(options: Iterable[str], option: str, rule: str) -> dict[str, str]:
    """Take ``NAME=VALUE`` options apart, each name once."""
    pairs: dict[str, str] = {}
    for text in options:
        name, _, value = text.partition("=")
        if not name or not value or name in pairs:
            bad_usage(option, f"must be {rule}, got {text!r}.")
        pairs[name] = value
    return pairs


def find_argument(name: str, option: str) -> tuple[str, bool]:
    """Return the name of an argument of the estimators, and whether it is one of ``advanced``."""
    from fcorr.estimators import Advanced

    name = name.replace("-", "_")
    names = {*_argument_names(), *Advanced.__annotations__} - {"verbose", *_OPTIONS_ONLY}
    if name in ("kinds", "n_members", "sample_weight"):
        bad_usage(option, f"{name!r} goes by an option of its own, {name_option(name)}.")
    if name not in names:
        bad_usage(
            option,
            f"no estimator has an argument {name!r}.{near_match(name, sorted(names))} There are: "
            f"{', '.join(sorted(names))}.",
        )
    return name, name in Advanced.__annotations__


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


# ------------------------------------------------------------------------------ tables and roles


@dataclass(frozen=True)
class Roles:
    """What the columns of a file are for."""

    target: str | None
    sensitive: Sequence[str]
    weight: str | None
    exposure: str | None
    drop: Sequence[str]

    @property
    def outcomes(self) -> list[str]:
        """The target and the weight, as far as there are such."""
        return [name for name in (self.target, self.weight) if name is not None]

    def check(self, columns: Sequence[str]) -> None:
        """Refuse a column that the file does not have, or that is asked to be two things."""
        options: dict[str, str] = {}
        for option, names in {
            "--target": [self.target],
            "--sample-weight": [self.weight],
            "--exposure": [self.exposure],
            "--sensitive": self.sensitive,
            "--drop": self.drop,
        }.items():
            given = [name for name in names if name is not None]
            check_columns(given, columns, option)
            for name in given:
                if options.setdefault(name, option) != option:
                    bad_usage(option, f"{name!r} is also named by {options[name]}. Name it once.")

    def split(self, table: "pa.Table") -> tuple[Any, Any, Any]:
        """Return X, y and the weight, which may be None, with the columns' names."""
        import narwhals.stable.v2 as nw

        left_out = {*self.outcomes, *self.drop}
        X = table.select([name for name in table.column_names if name not in left_out])
        # With its name, which messages and the schema then know.
        y, weight = (
            None if n is None else nw.from_native(table[n], series_only=True).alias(n)
            for n in (self.target, self.weight)
        )
        return X, y, weight


def make_dialect(delimiter: str | None, decimal: str | None, dates: str | None) -> "Dialect":
    """Return how the options say that CSV files are written."""
    from fcorr.data.files import Dialect

    return Dialect("\t" if delimiter in ("tab", r"\t") else delimiter, decimal, dates)


def read_data(
    data: Path, dialect: "Dialect", text: Iterable[str] = (), numbers: Collection[str] = ()
) -> "tuple[pa.Table, Dialect]":
    """Read a file, and say in one line what was recognised of how it is written."""
    from fcorr.data.files import recognise_file

    table, found, note = recognise_file(data, text, dialect, numbers)
    if not table.num_rows:
        fail(f"{str(data)!r} must have rows, got a header alone. Check what made the file.")
    if note:
        echo(f"{note} (--delimiter, --decimal, --dates and --kinds set it)", err=True)
    return table, found


def read_known(
    data: Path, dialect: "Dialect", *schemas: "Schema", text: Iterable[str] = ()
) -> "tuple[pa.Table, Dialect]":
    """Read a file to predict for, in which text and numbers are what they were in training."""
    as_text = {*text, *(name for schema in schemas for name in schema.text)}
    known = {name for schema in schemas for name in (*schema.names, schema.exposure or "")}
    return read_data(data, dialect, as_text, known - as_text)


def read_training_file(
    data: Path, roles: Roles, arguments: dict[str, Any], dialect: "Dialect"
) -> "tuple[pa.Table, list[int] | None]":
    """Read a file to learn from, and check what the options say of its columns.

    Rows of weight 0 are left out, before the task is guessed and rows are set aside; beside the
    table are then the rows of the file that it has.
    """
    from fcorr.data.files import file_ending, read_file
    from fcorr.data.tables import name_values

    stated = [name for name, kind in arguments.get("kinds", {}).items() if kind == "numeric"]
    roles_of_numbers = filter(None, (roles.target, roles.weight, roles.exposure))
    table, _ = read_data(data, dialect, numbers=[*stated, *roles_of_numbers])
    kinds = _check_columns_of(table, roles, arguments)
    categories = [n for n, kind in kinds.items() if kind == "categorical" or isinstance(kind, list)]
    dates = [name for name in categories if name_values(table[name].type) == "dates"]
    if dates and file_ending(data) != ".parquet":  # to be categories they stay as they are written
        table = read_file(data, dates, dialect)
    counted = find_counted(table[roles.weight]) if roles.weight else None
    return (table, None) if counted is None else (table.take(counted), counted.tolist())


def open_training_files(
    data: Path, roles: Roles, arguments: dict[str, Any]
) -> "tuple[pa.Table, ParquetTable]":
    """Open Parquet files to learn from piece by piece; return their target as a table, too."""
    import pyarrow as pa

    from fcorr.data.files import file_ending
    from fcorr.data.stream import ParquetTable

    if file_ending(data) != ".parquet":
        bad_usage("--memory", f"is for Parquet files, got {data.name!r}.")
    source = ParquetTable(data)
    _check_columns_of(source.schema.empty_table(), roles, arguments)
    target = str(roles.target)
    return pa.table({target: source.read(target)}), source.without(roles.drop)


def _check_columns_of(table: "pa.Table", roles: Roles, arguments: dict[str, Any]) -> dict[str, Any]:
    """Check what the options say of a table's columns; return the kinds, in the columns' types."""
    from fcorr.data.tables import is_number

    roles.check(table.column_names)
    kinds: dict[str, Any] = arguments.get("kinds", {})
    for name in ("kinds", "monotone"):
        check_columns(arguments.get(name, []), table.column_names, name_option(name))
    for name, kind in kinds.items():
        if isinstance(kind, list) and is_number(table[name].type):
            try:  # the order of a column of numbers is one of numbers
                numbers = [float(category) for category in kind]
            except ValueError:
                message = f"the column {name!r} holds numbers, got the order {','.join(kind)}."
                bad_usage("--kinds", message)
            kinds[name] = [int(number) if number.is_integer() else number for number in numbers]
    return kinds


def make_estimator(
    task: TaskName, table: "pa.Table", target: str, arguments: dict[str, Any], *, err: bool = False
) -> "FCorrClassifier | FCorrRegressor":
    """Make the estimator that the options ask for, or tell which one the target looks like."""
    import pyarrow.types as pat

    classes = _estimators()
    known = {each: set(inspect.signature(classes[each]).parameters) for each in classes}
    if task == "auto":  # options that only one task has settle it
        possible = [each for each in classes if known[each].issuperset(arguments)]
        task = possible[0] if possible else "regression"
        if len(possible) == 2:
            # Text, booleans and few whole numbers are classes; other numbers are amounts.
            y = table[target]
            are_amounts = pat.is_floating(y.type) or pat.is_decimal(y.type)
            if pat.is_integer(y.type):
                are_amounts = len(y.unique()) > _MAX_INTEGER_CLASSES
            task = "regression" if are_amounts else "classification"
            echo(f"task: {task} (guessed from {target!r}; --task sets it)", err=err)
    for name in arguments:
        if name not in known[task]:
            (other,) = set(classes) - {task}
            bad_usage(name_option(name), f"is for {other}, not for {task}.")
    return classes[task](**arguments)


def check_columns(names: Iterable[str], columns: Sequence[str], option: str) -> None:
    """Refuse an option that names a column the file does not have: bad usage."""
    for name in names:
        if name not in columns:
            bad_usage(
                option,
                f"the file has no column {name!r}.{near_match(name, columns)} "
                f"It has: {', '.join(n if n and n == n.strip() else repr(n) for n in columns)}.",
            )


def check_output(
    output: Path, *others: Path | None, option: str = "--output", parents: bool = False
) -> None:
    """Refuse an output that cannot be written, or that is another file of the command: bad usage.

    With ``parents`` its folder may be one that the command will make.
    """
    if output == STDOUT:
        bad_usage(option, "'-' is standard output: for -o of predict and --json of audit only.")
    files = [file for file in others if file is not None]
    files += [part for folder in files if folder.is_dir() for part in folder.iterdir()]
    if any(output.resolve() == file.resolve() for file in files):
        message = "is an input, or another output, and would be replaced. Choose another."
        bad_usage(option, f"{str(output)!r} {message}")
    while parents and not os.path.lexists(output.parent):
        output = output.parent
    if not os.path.lexists(output.parent):
        bad_usage(option, f"the folder {str(output.parent)!r} does not exist. Make it first.")
    if not output.parent.is_dir():
        bad_usage(option, f"{str(output.parent)!r} is not a folder.")
    try:
        check_writable(output)
    except OSError as error:
        bad_usage(option, f"{str(output)!r} cannot be written: {error.strerror}.")


# ------------------------------------------------------------------------------ errors


@contextmanager
def copy_of_stdin() -> Iterator[Path]:
    """Copy standard input to a file, which is read more than once; its start tells its kind."""
    global _stdin
    start = sys.stdin.buffer.read(4)
    ending = {b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz"}
    with temporary_folder() as folder:
        _stdin = Path(folder, "stdin" + ending.get(start, ending.get(start[:2], ".csv")))
        try:
            left = "standard input is copied there; TMPDIR names another folder"
            with errors_of_writing(folder, left), _stdin.open("wb") as file:
                file.write(start)
                shutil.copyfileobj(sys.stdin.buffer, file)
            yield _stdin
        finally:
            _stdin = None


def is_stdin(data: Path) -> bool:
    """Tell whether a file is what the command read from standard input."""
    return data == _stdin


@contextmanager
def lines_of(
    data: Path, dialect: "Dialect", rows: Sequence[int] | None = None, *, eval_set: bool = False
) -> Iterator[None]:
    """Within it, errors count the lines of a CSV file as an editor shows them: its header is 1.

    Where some rows of the file were taken, ``rows`` are these, and ``eval_set`` tells whether they
    are those to measure on, which errors then begin with.
    """
    try:
        yield
    except InvalidInputError as error:
        if str(error).startswith("eval_set: ") is not eval_set:
            raise
        from fcorr.data.files import name_line

        raise renumber_rows(error, rows, functools.partial(name_line, data, dialect)) from error


def as_options(text: str) -> str:
    """Say in options what a message says in arguments.

    Examples
    --------
    >>> as_options("Use invariance='adapt' or min_category_rows=1, with a lower learning_rate.")
    'Use --invariance adapt or --set min_category_rows=1, with a lower --set learning_rate.'
    >>> as_options("Train with kinds={'age': 'categorical'} or advanced={'beta2': 0.999}.")
    'Train with --kinds age=categorical or --set beta2=0.999.'
    >>> as_options("Pass 'f1', {'fpr': a rate in [0, 1]} or {'cost': (of one, of other)}.")
    "Pass 'f1', fpr=RATE or cost=FP,FN."
    >>> as_options("Pass delimiter=';'.")
    "Pass --delimiter ';'."
    """
    for task, estimator in _estimators().items():
        text = text.replace(f"se {estimator.__name__} for", f"se --task {task} for")
    text = re.sub(r"a dict of columns and '(\w+)' or '(\w+)', or None", r"COLUMN=\1 or \2", text)
    text = re.sub(r"\{'fpr': [^}]*\} or \{'cost': [^}]*\}", "fpr=RATE or cost=FP,FN", text)
    text = re.sub(r"kinds=\{'([^']*)': '(\w+)'\}", r"--kinds \1=\2", text)
    text = re.sub(r"advanced=\{'(\w+)': ([^}]*)\}", r"--set \1=\2", text)
    text = re.sub(r"advanced\['(\w+)'\]", r"--set \1", text)
    names = "|".join(_argument_names())

    def with_value(match: re.Match[str]) -> str:
        option, value = name_option(match[1]), match[2]
        if value == "None":
            value = "none"
        elif re.search(r"\w", value):  # other signs would need the quotes in a shell
            value = value.strip("'")
        return f"{option}={value}" if option.startswith("--set") else f"{option} {value}".strip()

    text = re.sub(rf"(?<![\w-])({names})=('[^']*'|[\w.]*\w|)", with_value, text)
    long = "|".join(name for name in _argument_names() if "_" in name)
    return re.sub(rf"(?<![\w-])({long})\b(?!['=])", lambda match: name_option(match[1]), text)


def _estimators() -> "dict[TaskName, type[FCorrClassifier | FCorrRegressor]]":
    from fcorr.estimators import FCorrClassifier, FCorrRegressor

    return {"classification": FCorrClassifier, "regression": FCorrRegressor}


@functools.cache
def _argument_names() -> list[str]:
    """List the arguments of both estimators, the longest first."""
    estimators = _estimators().values()
    names = {name for each in estimators for name in inspect.signature(each).parameters}
    return sorted({*names, *_OPTIONS_ONLY} - {"advanced"}, key=len, reverse=True)


def name_option(argument: str) -> str:
    """Name the option that sets an argument of the estimators."""
    advanced = re.fullmatch(r"advanced\['(\w+)'\]", argument)
    if advanced:
        return f"--set {advanced[1]}"
    if argument == "model":  # which is no option
        return "MODEL"
    dashed = argument.replace("_", "-")
    return f"--{dashed}" if argument in _OPTIONS else f"--set {argument}"


def bad_usage(option: str, message: str) -> NoReturn:
    """Refuse what an option says: exit code 2."""
    raise typer.BadParameter(_shown(message), param_hint=option) from None


def fail(message: str) -> NoReturn:
    """Print one line on stderr and leave with exit code 1."""
    echo(f"error: {' '.join(message.split())}", err=True)
    raise typer.Exit(1)


# ------------------------------------------------------------------------------ output


def echo(*lines: str, err: bool = False) -> None:
    """Print lines; whatever names and values are in one, they cannot steer the terminal."""
    with errors_of_writing("standard error" if err else "standard output"):
        for line in lines:
            typer.echo(_shown(line), err=err)


def _shown(text: str) -> str:
    return show_text(text if _stdin is None else text.replace(str(_stdin), "standard input"))


def print_json(data: Any) -> None:
    """Print plain data as JSON."""
    echo(*json.dumps(data, indent=2, ensure_ascii=False).split("\n"))


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, the first column to the left and the others to the right."""
    echo(*text_table(title, header, rows).split("\n"))
