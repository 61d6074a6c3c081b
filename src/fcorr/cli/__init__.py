"""The command line: parse, call one function, print, exit code."""

import sys
import traceback

import typer

from fcorr._version import __version__
from fcorr.cli import _shared
from fcorr.cli.audit import audit, compare
from fcorr.cli.inspect import diff, export, inspect
from fcorr.cli.predict import predict
from fcorr.cli.sweep import sweep
from fcorr.cli.train import demo, train

app = typer.Typer(
    name="fcorr",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
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

    Exit codes: 0 done; 1 the run failed; 2 bad usage; 3 a check says no: a threshold of an audit
    is crossed, or fcorr diff found data that the model cannot predict for. Results go to standard
    output; notes, warnings and errors, of one line each, to standard error.
    """
    _shared.set_debug(debug)


for _command in (demo, train, sweep, predict, diff, inspect, audit, compare, export):
    app.command()(_shared.one_line_errors(_command))


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
            for line in "".join(traceback.format_exception(error)).splitlines():
                _shared.echo(line, err=True)
            sys.exit(1)
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(describe())
        else:
            message = " ".join(describe().split())
            command = getattr(getattr(error, "ctx", None), "command_path", "fcorr")
            _shared.echo(f"error: {message} (see {command} --help)", err=True)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)
