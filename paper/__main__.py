"""``python -m paper adult``: the paper's experiments; records, tables, figures, a report out."""

from pathlib import Path
from typing import Annotated

import typer

from fcorr._core import near_match
from paper.experiments import EXPERIMENTS, Size
from paper.report import write_report
from paper.runs import read_records, reproduce

app = typer.Typer(add_completion=False)


@app.command()
def main(
    experiment: Annotated[
        list[str],
        typer.Argument(help=f"{', '.join(EXPERIMENTS)} or all; several are possible."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the results.", file_okay=False)
    ] = Path("fcorr-reproduction"),
    smoke: Annotated[
        bool,
        typer.Option("--smoke", help="All of it in a minute, with figures that mean nothing."),
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(help="Seeds of each model; by default 5 or more.", min=1)
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for as many as cores.")] = -1,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Fit nothing: write the report anew.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Run the paper's experiments and write what they show, the paper's figures beside ours.

    OUTPUT/reproduction.md is the report; OUTPUT/reproduction holds a line of JSON for each run,
    tables (Markdown, LaTeX) and figures (SVG). The same command again goes on where it was
    interrupted. Adult and the motor policies are read from the data folder: fetch_adult(),
    fetch_fremtpl2() and fetch_bemtpl97() of paper.datasets fill it.
    """
    possible = (*EXPERIMENTS, "all")
    for name in experiment:
        if name not in possible:
            raise typer.BadParameter(
                f"must be {', '.join(EXPERIMENTS)} or all, got {name!r}."
                f"{near_match(name, possible)}",
                param_hint="EXPERIMENT",
            )
    if jobs == 0:
        raise typer.BadParameter(
            "must not be 0: 1 is one after the other, -1 as many as cores.", param_hint="--jobs"
        )
    chosen = EXPERIMENTS if "all" in experiment else tuple(dict.fromkeys(experiment))
    folder = output / "reproduction" / "results"
    size: Size = "smoke" if smoke else "full"
    try:
        if not report_only:
            reproduce(chosen, folder, size=size, n_seeds=seeds, n_jobs=jobs, progress=not quiet)
        files = write_report(read_records(folder, size=size), output, smoke=smoke)
    except KeyboardInterrupt:
        _fail(f"interrupted; what is done is in {folder}: the same command goes on from there")
    except (ValueError, OSError, ImportError) as error:
        _fail(str(error))
    for file in files:
        typer.echo(f"wrote {file}")


def _fail(message: str) -> None:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(1)


if __name__ == "__main__":
    app()
