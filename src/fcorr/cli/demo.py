"""`fcorr demo`: a table, a model of it and its audit, in a folder to look at."""

from pathlib import Path
from typing import Annotated

import typer

from fcorr.cli._shared import Quiet, Seed, check_output, echo

N_TRAIN, N_TEST = 2_000, 2_000


def demo(
    output: Path = typer.Option(
        Path("fcorr-demo"), "--output", "-o", help="Folder for the files.", file_okay=False
    ),
    data: bool = typer.Option(False, "--data", help="Write the two tables only."),
    seed: Annotated[int, Seed] = 0,
    quiet: Quiet = False,
) -> None:
    """Write a small table, train a model on it and audit the model.

    The table is made up: y depends on S, X1, X2 and X3, and Z goes with S without any part in y.
    The model is invariant to S. Files: train.csv, test.csv, model.fcorr and report.html, to be
    opened in a browser.
    """
    tables, model_file, report = ("train.csv", "test.csv"), "model.fcorr", "report.html"
    for name in tables if data else (*tables, model_file, report):
        check_output(output / name, parents=True)
    from fcorr.data import make_proxy_bias
    from fcorr.data.files import write_file

    X, y = make_proxy_bias(N_TRAIN + N_TEST, task="classification", random_state=seed)
    output.mkdir(parents=True, exist_ok=True)
    parts = (slice(0, N_TRAIN), slice(N_TRAIN, None))
    for name, part in zip(tables, parts, strict=True):
        table = X.slice(part.start, N_TRAIN).append_column("y", [y[part]])
        write_file(table, output / name)
        echo(f"wrote {output / name}")
    if data:
        return
    from fcorr import FCorrClassifier, audit_model

    # A smaller pack than by default: a demonstration should not take long.
    model = FCorrClassifier(sensitive="S", n_members=4, random_state=seed, verbose=not quiet)
    model.fit(X.slice(0, N_TRAIN), y[parts[0]])
    model.save(output / model_file)
    echo(model.summary())
    echo(f"wrote {output / model_file}")
    found = audit_model(model, X.slice(N_TRAIN), y[parts[1]], target="y", name="demo")
    found.to_html(output / report)
    for line in str(found).splitlines():
        echo(line)
    echo(f"wrote {output / report}")
