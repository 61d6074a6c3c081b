"""`fcorr reproduce`: the paper's experiments; records, tables, figures and a report out."""

from pathlib import Path
from typing import Annotated

import typer

from fcorr.cli._console import fail

_ALL = "all"


def reproduce(
    experiment: Annotated[
        list[str],
        typer.Argument(
            help="synthetic, baf, adult, claims, motor, controllability, multilayer, complexity "
            "or all; several are possible.",
        ),
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
    fetch_fremtpl2() and fetch_bemtpl97() of fcorr.data fill it.
    """
    from fcorr._core import near_match
    from fcorr.reproduce.settings import EXPERIMENTS

    for name in experiment:
        if name not in (*EXPERIMENTS, _ALL):
            raise typer.BadParameter(
                f"must be {', '.join(EXPERIMENTS)} or {_ALL}, got {name!r}."
                f"{near_match(name, (*EXPERIMENTS, _ALL))}",
                param_hint="EXPERIMENT",
            )
    if jobs == 0:
        raise typer.BadParameter(
            "must not be 0: 1 is one after the other, -1 as many as cores.", param_hint="--jobs"
        )
    chosen = EXPERIMENTS if _ALL in experiment else tuple(dict.fromkeys(experiment))
    from fcorr.reproduce import read_records
    from fcorr.reproduce import reproduce as run_experiments
    from fcorr.reproduce.report import write_document
    from fcorr.reproduce.settings import Size

    results = output / "reproduction" / "results"
    size: Size = "smoke" if smoke else "full"
    if not report_only:
        try:
            run_experiments(
                chosen,
                results,
                size=size,
                n_seeds=seeds,
                n_jobs=jobs,
                progress=not quiet,
            )
        except KeyboardInterrupt:
            fail(f"interrupted; what is done is in {results}: the same command goes on from there")
    for file in write_document(read_records(results, size=size), output, smoke=smoke):
        typer.echo(f"wrote {file}")
