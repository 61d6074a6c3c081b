"""The command line: parse, call one function, print, exit code."""

import functools
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import typer

from fcorr._version import __version__
from fcorr.cli import _shared as shared
from fcorr.cli.audit import audit, compare
from fcorr.cli.models import diff, export, inspect, predict
from fcorr.cli.sweep import sweep
from fcorr.cli.train import demo, train

_debug = False  # whether errors keep their traceback

app = typer.Typer(
    name="fcorr", no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"fcorr {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_print_version, is_eager=True
    ),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
) -> None:
    """Tabular transformers whose predictions do not depend on a sensitive column.

    Exit codes: 0 done; 1 the run failed; 2 bad usage; 3 a check says no: a limit of an audit
    is crossed, or fcorr diff found data that the model cannot predict for. Results go to standard
    output; notes, warnings and errors, of one line each, to standard error.
    """
    global _debug
    _debug = debug


def _in_one_line(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn whatever goes wrong in a command into one line on stderr.

    An argument that no data could fit is bad usage, with exit code 2; all else exits with 1.
    Where the data is -, the command gets a file that holds what standard input did.
    """

    @functools.wraps(command)
    def guarded(**options: Any) -> Any:
        with warnings.catch_warnings(), ExitStack() as stack:
            warnings.showwarning = _show_warning
            try:
                data = options.get("data")
                if data == shared.STDIN:
                    options["data"] = stack.enter_context(shared.copy_of_stdin())
                elif isinstance(data, Path) and not data.exists():
                    shared.bad_usage("data", f"path {str(data)!r} does not exist.")
                return command(**options)
            except KeyboardInterrupt:
                shared.fail("interrupted; files are written whole or not at all")
            except BrokenPipeError:  # whoever reads, such as head, has had enough
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(1)
            except Exception as error:
                # Usage errors and exits are typer's own way to leave.
                if _debug or type(error).__module__.split(".")[0] in ("typer", "click"):
                    raise
                argument = getattr(error, "argument", None)
                if argument is not None:
                    option = shared.name_option(argument)
                    text = str(error).removeprefix(f"{argument} ")
                    if not option.startswith("--set"):  # to leave it out is 'auto'
                        text = text.replace(", or 'auto'", "")
                    shared.bad_usage(option, shared.as_options(text))
                text = str(error)
                if isinstance(error, OSError) and error.filename is not None:
                    text = f"{error.filename!r}: {error.strerror}"
                shared.fail(shared.as_options(text) or type(error).__name__)

    return guarded


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, UserWarning):  # the others speak to programmers
        shared.echo(f"warning: {' '.join(shared.as_options(str(message)).split())}", err=True)


for _command in (demo, train, sweep, predict, diff, inspect, audit, compare, export):
    app.command()(_in_one_line(_command))


def main() -> None:
    """Run the command line; bad usage, too, is one line on stderr."""
    try:
        code = app(standalone_mode=False)
    except typer.Abort:
        typer.echo("error: interrupted", err=True)
        sys.exit(1)
    except Exception as error:
        describe = getattr(error, "format_message", None)  # typer's usage errors have one
        if describe is None:  # as --debug asks for
            shared.echo(*"".join(traceback.format_exception(error)).splitlines(), err=True)
            sys.exit(1)
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(describe())
        else:
            message = " ".join(describe().split()).replace(": Value error, ", ": ")
            found: list[Any] = getattr(error.__cause__, "errors", list)()  # pydantic's, by typer
            if found and repr(found[0]["input"]) not in message:
                message += f", got {found[0]['input']!r}"
            command = getattr(getattr(error, "ctx", None), "command_path", "fcorr")
            shared.echo(f"error: {message} (see {command} --help)", err=True)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)
