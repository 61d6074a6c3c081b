"""The command line: parse, call one function, print, exit code.

Exit codes: 0 done, 1 the run failed, 2 bad usage.
"""

from typing import Annotated

import typer

from fcorr._version import __version__
from fcorr.cli import _console
from fcorr.cli.demo import demo
from fcorr.cli.inspect import inspect
from fcorr.cli.predict import predict
from fcorr.cli.train import train

app = typer.Typer(
    name="fcorr",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"fcorr {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Tabular transformers whose predictions do not depend on a sensitive column."""
    _console.set_debug(debug)


for _command in (demo, train, predict, inspect):
    app.command()(_console.one_line_errors(_command))


def main() -> None:
    """Run the command line."""
    app()
