"""`fcorr demo`: the whole of it on synthetic data, in under two minutes."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from fcorr.cli._shared import check_output, echo, print_table

_FILES = ("results.json", "table.md", "attention.svg", "flip.svg", "significance.svg")


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the results.", file_okay=False)
    ] = Path("fcorr-demo"),
    fits: Annotated[
        int, typer.Option(help="Fits of each model, each on data drawn anew.", min=1)
    ] = 6,
    seed: Annotated[int, typer.Option(help="Seed of the first fit.", min=0)] = 0,
) -> None:
    """Train without CAR, with it, exactly invariant and with the column removed; compare.

    The data is the paper's synthetic example: y depends on X2 and X3, the sensitive X1 is
    tied to X2. Prints one table and saves heat maps and significance bars.
    """
    for name in _FILES:
        check_output(output / name, parents=True)
    # Whoever tries the library wants to see the table, with or without pictures.
    can_draw = find_spec("matplotlib") is not None
    if not can_draw:
        echo("no figures: they need matplotlib, pip install 'fcorr[plot]'", err=True)
    echo(f"make_indirect_bias: {fits} fits of four models", err=True)
    from fcorr.audit.demo import run_demo, write_demo

    result = run_demo(
        range(seed, seed + fits),
        report=lambda done: echo(f"fit {done - seed + 1} of {fits} done", err=True),
    )
    files = write_demo(result, output, figures=can_draw)
    print_table(f"test rows, mean of {fits} fits", *result.table())
    for file in files:
        echo(f"wrote {file}")
