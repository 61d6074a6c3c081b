"""Carry out runs, one after the other or side by side, and keep a record of each."""

import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib import metadata
from typing import Any

import joblib
import torch

from fcorr._core import require, to_plain
from fcorr._version import __version__
from fcorr.audit.hearing import listen
from fcorr.reproduce.costs import measure_cost
from fcorr.reproduce.data import load_split
from fcorr.reproduce.measures import measure
from fcorr.reproduce.memory import watch_peak
from fcorr.reproduce.models import Fitted, fit
from fcorr.reproduce.settings import PUBLISHED, CostRun, Run
from fcorr.reproduce.trees import papers_threshold

Record = dict[str, Any]
"""Plain data: the run's key, its settings, and what was found; see :func:`carry_out`."""

_LIBRARIES = ("torch", "numpy", "scikit-learn", "lightgbm", "fairlearn")
_INSTALLED = {distribution.name for distribution in metadata.distributions()}
_FEW_FEATURES = 10
_DIGITS = 4  # of what is only drawn


def carry_out(runs: Sequence[Run | CostRun], n_jobs: int) -> Iterator[Record]:
    """Carry out runs, and yield the record of each when it is done.

    A record of a fit holds its ``key``, its settings as ``config`` and ``title``, and ``data``,
    ``performance`` and ``fairness`` of training and test rows, ``threshold``, ``parameters``,
    ``training``, ``significance``, ``attention``, ``seconds``, ``peak_megabytes``, ``notes`` (what
    could not be estimated), ``warnings`` and ``versions``; that of a cost holds it as ``cost``.

    Parameters
    ----------
    runs : sequence of Run and CostRun
        What to do. Times and memory of the second kind are taken alone, after the others.
    n_jobs : int
        Processes to use; see :class:`joblib.Parallel`.
    """
    fits = [run for run in runs if isinstance(run, Run)]
    if n_jobs == 1 or len(fits) < 2:
        yield from map(carry_out_fit, fits)
    else:
        jobs = [joblib.delayed(_carry_out_alone)(run) for run in fits]
        yield from joblib.Parallel(n_jobs, return_as="generator_unordered", batch_size=1)(jobs)
    for run in runs:
        if isinstance(run, CostRun):
            yield carry_out_cost(run)


def check_ready(runs: Sequence[Run | CostRun]) -> None:
    """See to it that data and packages are there, before hours have gone by."""
    fits = [run for run in runs if isinstance(run, Run)]
    if any(run.kind == "fairlearn" for run in fits):
        require("fairlearn", extra="bench", purpose="fcorr reproduce")
    if any(run.kind == "lightgbm" or run.task == "classification" for run in fits):
        require("lightgbm", extra="bench", purpose="fcorr reproduce")
    for data in dict.fromkeys(run.data for run in fits if run.data.name in PUBLISHED):
        load_split(data, 0)


def _carry_out_alone(run: Run) -> Record:
    torch.set_num_threads(1)  # the other cores have runs of their own
    return carry_out_fit(run)


def carry_out_fit(run: Run) -> Record:
    """Fit a model and measure it."""
    data = load_split(run.data, run.seed)
    with listen() as heard:
        threshold = _threshold(run)
        with watch_peak() as peak:
            start = time.perf_counter()
            fitted = fit(run, data.train)
            seconds = time.perf_counter() - start
        start = time.perf_counter()
        train = measure(run, fitted.score, data.train.first(run.data.n_train_measured), threshold)
        test = measure(run, fitted.score, data.test, threshold)
        measured = time.perf_counter() - start
    epochs = fitted.training.get("epochs")
    return _record(
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
            "notes": heard.notes,
            "warnings": [str(warning) for warning in heard.others],
        },
    )


def carry_out_cost(run: CostRun) -> Record:
    """Measure what a model costs."""
    with watch_peak() as peak:
        cost = measure_cost(run)
    return _record(run, {"cost": cost, "peak_megabytes": peak.megabytes})


def _threshold(run: Run) -> float | None:
    if run.task != "classification" or run.threshold is not None:
        return run.threshold
    return papers_threshold(run.data, run.seed)


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


def _record(run: Run | CostRun, found: dict[str, Any]) -> Record:
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
                **{name: metadata.version(name) for name in _LIBRARIES if name in _INSTALLED},
            },
        }
    )
    return record
