"""`fcorr audit` and `fcorr compare`: a model or two and a table in; a page, JSON, a card out."""

import functools
import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fcorr._core import require
from fcorr.cli import _shared as shared

if TYPE_CHECKING:
    from fcorr.audit.report import AuditResult

_PICKLES = (".pkl", ".pickle", ".joblib", ".sav", ".dill")

Model = Annotated[str, typer.Argument(help="File of fcorr, ONNX file, or module:callable.")]


def audit(
    model: Model,
    data: shared.DataFile,
    *,
    target: str | None = shared.column_option(
        None, help="Column of outcomes; without it, scores are audited."
    ),
    sensitive: list[str] | None = shared.column_option(
        None, help="Sensitive column; repeatable. By default those of the model."
    ),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="HTML file to write.", dir_okay=False
    ),
    json: Path | None = typer.Option(
        None, help="JSON file to write, or - to print it, and no text.", dir_okay=False
    ),
    card: Path | None = typer.Option(None, help="Model card (Markdown) to write.", dir_okay=False),
    limits: Path | None = typer.Option(
        None,
        help="TOML file of limits; exit code 3 if one is crossed.",
        exists=True,
        dir_okay=False,
    ),
    incumbent: str | None = typer.Option(None, help="Another model, to stand beside."),
    task: shared.Task = "auto",
    weight: shared.Weight = None,
    exposure: str | None = shared.column_option(None, help="Column of exposures."),
    positive: str | None = typer.Option(
        None, help="Of two classes the one that is decided for; by default the second in order."
    ),
    threshold: float | None = typer.Option(None, help="Its probability to decide from."),
    power: float | None = typer.Option(None, help="Power of a regression's Tweedie deviance."),
    name: str | None = typer.Option(None, help="What the model is called."),
    unit: str = typer.Option("", help="What amounts are measured in."),
    resamples: int = typer.Option(200, "--n-resamples", help="Bootstrap resamples.", min=1),
    include_model: bool = typer.Option(True, help="Put an fcorr model into the page."),
    include_rows: bool = typer.Option(
        False, "--include-rows", help="List values of the rows that change most."
    ),
    drop: shared.Drop = None,
    seed: Annotated[int, shared.Seed] = 0,
    delimiter: shared.Delimiter = None,
    decimal: shared.Decimal = None,
    dates: shared.Dates = None,
    quiet: shared.Quiet = False,
    config: shared.Config = None,
) -> None:
    """Audit a model on rows that had no part in training.

    Tells what flips of the sensitive columns change, how groups fare, and what that rests on.
    """
    as_json = json == shared.STDOUT
    given = {"--output": output, "--json": None if as_json else json, "--card": card}
    outputs = {option: path for option, path in given.items() if path is not None}
    for option, path in outputs.items():
        others = [each for name, each in outputs.items() if name != option]
        sources = [data, Path(model), Path(incumbent or model)]
        shared.check_output(path, *sources, limits, *others, option=option)
    models = [_open(each) for each in (model, incumbent) if each is not None]
    schemas = [each.schema_ for each in models if hasattr(each, "schema_")]
    sessions = [each for each in models if hasattr(each, "get_inputs")]  # of onnxruntime
    inputs = [each for session in sessions for each in session.get_inputs()]
    text = [each.name for each in inputs if each.type == "tensor(string)"]
    dialect = shared.make_dialect(delimiter, decimal, dates)
    table, dialect = shared.read_known(data, dialect, *schemas, text=text)
    roles = shared.Roles(target, sensitive or (), weight, exposure, drop or ())
    roles.check(table.column_names)
    X, y, sample_weight = roles.split(table)
    if find_spec("pandas") and len(schemas) < len(models):
        X = X.to_pandas()  # which all kinds of models know
    from fcorr.audit.report import audit_model

    with shared.lines_of(data, dialect):
        found = audit_model(
            models[0],
            X,
            y,
            sensitive=sensitive,
            sample_weight=sample_weight,
            exposure=exposure,
            positive=positive,
            threshold=threshold,
            task=task,
            power=power,
            incumbent=models[1] if incumbent else None,
            limits=limits,
            name=name,
            target=target,
            unit=unit,
            n_resamples=resamples,
            include_rows=include_rows,
            provenance={
                "model_file": model,
                "model_file_sha256": _digest(Path(model)),
                "data_file": data.name,
                "data_file_sha256": _digest(data),
            },
            random_state=seed,
            verbose=not quiet,
        )
    if as_json:
        shared.print_json(found.summary)
    else:
        shared.echo(*str(found).splitlines())
        if incumbent is not None:
            _print_comparison(found)
    writers: dict[str, Callable[[Path], object]] = {
        "--output": functools.partial(found.to_html, include_model=include_model),
        "--json": found.to_json,
        "--card": found.to_model_card,
    }
    for option, path in outputs.items():
        writers[option](path)
        shared.echo(f"wrote {path}", err=as_json)
    if found.crossed:
        shared.echo(f"{len(found.crossed)} limit(s) crossed", err=True)
        raise typer.Exit(shared.CHECK_FAILED)


def compare(model: str, other: str, data: Path, **options: Any) -> None:
    """Put two models side by side.

    Tells how they perform, what flips change in each, who is right and who changes.
    """
    audit(model, data, incumbent=other, **options)


# The options are those of an audit, but for the other model, which is an argument here.
_parameters = dict(inspect.signature(audit).parameters)
_second = _parameters["model"].replace(name="other", annotation=Model)
_first, _data = _parameters.pop("model"), _parameters.pop("data")
_parameters.pop("incumbent")
compare.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [_first, _second, _data, *_parameters.values()]
)


def _open(model: str) -> Any:
    """Open a model file, or import module:callable."""
    path = Path(model)
    if not path.is_file():
        module, _, name = model.partition(":")
        if not name:
            shared.bad_usage("MODEL", f"must be a file or module:callable, got {model!r}.")
        sys.path.insert(0, "")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            shared.bad_usage("MODEL", f"{model!r} cannot be imported from this folder: {error}.")
        finally:
            sys.path.remove("")
    with path.open("rb") as file:
        start = file.read(9)
    # A model file begins with the length of its header, which may end in the same byte, and "{".
    is_pickle = start[:1] == b"\x80" and start[8:] != b"{"
    if is_pickle or path.suffix.lower() in _PICKLES:
        shared.bad_usage(
            "MODEL",
            f"{model!r} is a pickle, which runs code when it is opened: whoever made it could do "
            "anything. Open it in a module of your own and pass module:callable, or export the "
            "model to ONNX.",
        )
    if path.suffix.lower() == ".onnx":
        runtime = require("onnxruntime", extra="onnx", purpose="An ONNX model")
        return runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    if start and start[8:] != b"{":
        shared.bad_usage(
            "MODEL",
            f"{model!r} is no whole model file of fcorr, and no ONNX file. Save it again with "
            "model.save(path); open a model of another library in a module of your own and pass "
            "module:callable, or export it to ONNX.",
        )
    from fcorr.estimators import load

    return load(path)


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _print_comparison(found: "AuditResult") -> None:
    from fcorr.audit.page import show_number

    summary = found.summary
    other, name = summary["incumbent"], summary["subject"]["name"]

    ours = {key: each["estimate"] for key, each in summary["performance"].items()}
    ours |= summary["flips"].get("metrics", {})
    theirs = other["performance"] | other.get("flips", {})
    rows = [[key, show_number(value), show_number(theirs[key])] for key, value in ours.items()]
    shared.print_table("on these rows", ["", name, other["name"]], rows)
    who = other["who_changes"]
    header = [key.replace("_", " ") for key in who[0]]
    shared.print_table("who changes", header, [[*map(show_number, row.values())] for row in who])
    if "mcnemar" in other:
        test = {key: show_number(value) for key, value in other["mcnemar"].items()}
        shared.echo(
            f"McNemar: {test['only_model_right']} rows that only {name} decides rightly, "
            f"{test['only_incumbent_right']} that only {other['name']} does, p = {test['p_value']}"
        )
