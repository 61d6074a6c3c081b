"""What the commands share: errors and warnings in one line, tables, column checks."""

import functools
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

import typer

from fcorr._core import near_match

_debug = False

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def set_debug(on: bool) -> None:
    """Let errors keep their traceback."""
    global _debug
    _debug = on


def one_line_errors(command: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Turn whatever goes wrong in a command into one line on stderr and exit code 1."""

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
                fail(f"{error}" or type(error).__name__)

    return guarded


def fail(message: str) -> NoReturn:
    """Print one line on stderr and leave with exit code 1."""
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    raise typer.Exit(1)


def _is_typers_own(error: Exception) -> bool:
    """Tell whether an error is typer's way to leave: usage errors, exits."""
    return type(error).__module__.split(".")[0] in ("typer", "click")


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, UserWarning):  # the others speak to programmers
        typer.echo(f"warning: {' '.join(str(message).split())}", err=True)


def check_columns(names: Iterable[str], columns: Sequence[str], option: str) -> None:
    """Refuse an option that names a column the file does not have: bad usage."""
    for name in names:
        if name not in columns:
            raise typer.BadParameter(
                f"the file has no column {name!r}.{near_match(name, columns)} "
                f"It has: {', '.join(columns)}.",
                param_hint=option,
            )


def check_output(output: Path, *inputs: Path | None) -> None:
    """Refuse an output that has no folder, or that would replace an input: bad usage."""
    if not output.parent.is_dir():
        raise typer.BadParameter(
            f"the folder {str(output.parent)!r} does not exist.", param_hint="--output"
        )
    if output.exists() and any(file is not None and output.samefile(file) for file in inputs):
        raise typer.BadParameter(
            f"{str(output)!r} is an input and would be replaced.", param_hint="--output"
        )


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
