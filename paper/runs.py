"""Carry out runs, one after the other or side by side; each leaves one line of JSON behind."""

import json
import os
import platform
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import joblib
import torch

from fcorr import InvalidInputError, __version__
from fcorr._core import NotEstimableWarning, require, show_progress, to_plain
from paper.costs import measure_cost, watch_peak
from paper.experiments import EXPERIMENTS, PUBLISHED, CostRun, Run, Size, list_runs
from paper.measures import measure
from paper.models import Fitted, fit, load_split, papers_threshold

Record = dict[str, Any]
"""Plain data: a run's key, its settings, and what was found; see :func:`carry_out`."""

Records = dict[str, list[Record]]
"""Records by experiment, in the order of its configuration."""

_LIBRARIES = ("torch", "numpy", "scikit-learn", "lightgbm", "fairlearn")
_FEW_FEATURES = 10
_DIGITS = 4  # of what is only drawn
_START = b'{"key": '  # of every line, so that one that was cut off can be told from a foreign one


def reproduce(
    experiments: Sequence[str],
    folder: Path,
    *,
    size: Size = "full",
    n_seeds: int | None = None,
    n_jobs: int = 1,
    progress: bool = True,
) -> Records:
    """Carry out experiments; runs that have a record in the folder are not repeated.

    Parameters
    ----------
    experiments : sequence of str
        Some of :data:`paper.experiments.EXPERIMENTS`.
    folder : Path
        For the records, one file of JSON lines an experiment. It is made if need be.
    size : {"full", "smoke"}, default="full"
        The real thing, or all of it in seconds, with figures that mean nothing.
    n_seeds : int, optional
        Seeds of each model; by default five or more.
    n_jobs : int, default=1
        Processes that runs are shared out to; −1 for as many as there are cores.
    progress : bool, default=True
        Show progress: a bar on a terminal, plain lines elsewhere.

    Raises
    ------
    FileNotFoundError, ImportError
        Data or a package is missing; before anything is fitted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    runs = {name: list_runs(name, size, n_seeds) for name in experiments}
    done = {name: _open(folder / f"{name}.jsonl", mend=True) for name in experiments}
    to_do = [run for name in experiments for run in runs[name] if run.key not in done[name]]
    check_ready(to_do)
    with show_progress("paper", len(to_do), shown=progress) as shown:
        for record in carry_out(to_do, n_jobs):
            name = record["experiment"]
            line = json.dumps(record, ensure_ascii=False, allow_nan=False)
            with (folder / f"{name}.jsonl").open("ab") as file:
                file.write(line.encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())  # it is there whatever happens next
            done[name][record["key"]] = record
            shown.advance(f"{name}: {record['title']}")
    return {name: [done[name][run.key] for run in runs[name]] for name in experiments}


def read_records(folder: Path, *, size: Size = "full") -> Records:
    """Read the records that a folder holds.

    Records of other settings, such as those before a configuration was changed, are passed over.
    """
    found = {}
    for name in EXPERIMENTS:
        records = _open(folder / f"{name}.jsonl", mend=False)
        n_seeds = 1 + max((record["seed"] for record in records.values()), default=-1)
        keys = [run.key for run in list_runs(name, size, n_seeds)]
        current = [records[key] for key in keys if key in records]
        if current:
            found[name] = current
    return found


def _open(path: Path, *, mend: bool) -> dict[str, Record]:
    """Read the records of a file by their keys; none, if it is not there.

    A last line that was cut off, as when a machine goes down, is passed over and, to ``mend`` the
    file, taken away. Whoever only reads leaves it: it may be in the making.
    """
    records: dict[str, Record] = {}
    content = path.read_bytes() if path.exists() else b""
    *lines, rest = content.split(b"\n")
    try:
        for line in lines:
            record = json.loads(line)
            for field in ("experiment", "model", "seed", "config", "versions"):
                record[field]
            records[record["key"]] = record
        if rest and not rest.startswith(_START) and not _START.startswith(rest):
            raise ValueError("no record that was cut off")
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInputError(
            f"path must be a file of a reproduction's records, got {str(path)!r}, whose line "
            f"{len(records) + 1} is none. Name a file that does not exist yet."
        ) from error
    if rest and mend:
        with path.open("r+b") as file:
            file.truncate(len(content) - len(rest))
    return records


def check_ready(runs: Sequence[Run | CostRun]) -> None:
    """See to it that data and packages are there, before hours have gone by."""
    fits = [run for run in runs if isinstance(run, Run)]
    if any(run.kind == "fairlearn" for run in fits):
        require("fairlearn", extra="bench", purpose="python -m paper")
    if any(run.kind == "lightgbm" or run.task == "classification" for run in fits):
        require("lightgbm", extra="bench", purpose="python -m paper")
    for data in dict.fromkeys(run.data for run in fits if run.data.name in PUBLISHED):
        load_split(data, 0)


def carry_out(runs: Sequence[Run | CostRun], n_jobs: int) -> Iterator[Record]:
    """Carry out runs, and yield the record of each when it is done.

    A record of a fit holds its ``key``, its settings as ``config`` and ``title``, and ``data``,
    ``performance`` and ``fairness`` of training and test rows, ``threshold``, ``parameters``,
    ``training``, ``significance``, ``attention``, ``seconds``, ``peak_megabytes``, ``notes`` (what
    could not be estimated), ``warnings`` and ``versions``; that of a cost holds it as ``cost``.
    Times and memory of the second kind are taken alone, after the others.
    """
    fits = [run for run in runs if isinstance(run, Run)]
    if n_jobs == 1 or len(fits) < 2:
        yield from map(carry_out_fit, fits)
    else:
        jobs = [joblib.delayed(_carry_out_alone)(run) for run in fits]
        yield from joblib.Parallel(n_jobs, return_as="generator_unordered", batch_size=1)(jobs)
    for run in runs:
        if isinstance(run, CostRun):
            with watch_peak() as peak:
                cost = measure_cost(run)
            yield make_record(run, {"cost": cost, "peak_megabytes": peak.megabytes})


def _carry_out_alone(run: Run) -> Record:
    torch.set_num_threads(1)  # the other cores have runs of their own
    return carry_out_fit(run)


def carry_out_fit(run: Run) -> Record:
    """Fit a model and measure it."""
    data = load_split(run.data, run.seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        threshold = run.threshold
        if threshold is None and run.task == "classification":
            threshold = papers_threshold(run.data, run.seed)
        with watch_peak() as peak:
            start = time.perf_counter()
            fitted = fit(run, data.train)
            seconds = time.perf_counter() - start
        start = time.perf_counter()
        train = measure(run, fitted.score, data.train.first(run.data.n_train_measured), threshold)
        test = measure(run, fitted.score, data.test, threshold)
        measured = time.perf_counter() - start
    epochs = fitted.training.get("epochs")
    warned = {str(each.message): issubclass(each.category, NotEstimableWarning) for each in caught}
    return make_record(
        run,
        {
            "data": {
                "name": data.name,
                "stands_in_for": data.stands_in_for,
                "n_train": len(data.train),
                "n_train_measured": min(len(data.train), run.data.n_train_measured),
                "n_test": len(data.test),
            },
            "threshold": threshold,
            "performance": {"train": train[0], "test": test[0]},
            "fairness": {
                column: {"train": train[1][column], "test": test[1][column]}
                for column in run.sensitive
            },
            "parameters": fitted.n_parameters,
            "training": fitted.training,
            "significance": _rounded(fitted.significance),
            "attention": _matrices(run, fitted),
            "seconds": {
                "fit": seconds,
                "epoch": seconds / epochs if epochs else None,
                "measure": measured,
            },
            "peak_megabytes": peak.megabytes,
            "notes": [text for text, is_note in warned.items() if is_note],
            "warnings": [text for text, is_note in warned.items() if not is_note],
        },
    )


def _matrices(run: Run, fitted: Fitted) -> dict[str, Any]:
    """List the matrices to draw: those of one seed, unless they are small."""
    if not fitted.attention or (run.seed > 0 and len(fitted.features) > _FEW_FEATURES):
        return {}
    return {"features": fitted.features, **_rounded(fitted.attention)}


def _rounded(value: Any) -> Any:
    """Keep a few digits of numbers that are drawn and ranked: files stay small."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.{_DIGITS}g}")


def make_record(run: Run | CostRun, found: dict[str, Any]) -> Record:
    """Put what was found beside the run's settings and the versions of libraries."""
    installed = {distribution.name for distribution in metadata.distributions()}
    record: Record = to_plain(
        {
            "key": run.key,
            "experiment": run.experiment,
            "title": run.title,
            "model": run.model,
            "seed": run.seed,
            "config": asdict(run),
            **found,
            "versions": {
                "fcorr": __version__,
                "python": platform.python_version(),
                **{name: metadata.version(name) for name in _LIBRARIES if name in installed},
            },
        }
    )
    return record
