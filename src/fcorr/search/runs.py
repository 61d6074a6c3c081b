"""Runs of a sweep: from a grid of arguments to records of what was measured."""

import hashlib
import json
import os
import platform
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from fcorr._core import (
    InvalidInputError,
    enumerate_some,
    errors_about,
    errors_of_writing,
    near_match,
    open_processes,
    to_plain,
)
from fcorr._version import __version__
from fcorr.audit.measure import AuditRows, Measured, collect_warnings, measure, open_model
from fcorr.estimators.model_file import Estimator
from fcorr.estimators.options import check_arguments, complete_advanced

Point = dict[str, Any]
Grid = Mapping[str, Sequence[Any]]
Record = dict[str, Any]
"""One run as plain data; see :class:`fcorr.search.sweep.Sweep`."""
Result = tuple[Point, Record, dict[str, type[Warning]]]
"""A run that is done: its record, and what it warned of."""

DEFAULT_GRID: tuple[Grid, ...] = (
    {"car": [0.0, *(10.0**power for power in range(9))], "invariance": [None]},
    {"invariance": ["adapt", "marginal"]},
)
"""λ from 0 to 1e8, acting alone, and the two exact forms."""

_OTHER_QUESTIONS = "Models would answer different questions: make a sweep for each."
_NOT_COMPARABLE = "Their performance could not be compared: make a sweep for each."
_NOT_VARIED = {
    "random_state": "Use seeds=... instead.",
    "sensitive": _OTHER_QUESTIONS,
    "exposure": _OTHER_QUESTIONS,
    "objective": _NOT_COMPARABLE,
    "tweedie_power": _NOT_COMPARABLE,
    "verbose": "A sweep shows its own progress.",
    "device": "Set it in the estimator.",
    "engine": "Set it in the estimator.",
}

_FIELDS = (
    *("key", "estimator", "data", "arguments", "seed", "measured", "notes", "seconds", "versions"),
)
_START = b'{"key": '  # of every record, so that one that was cut off can be told from other text


def expand_grid(grid: Grid | Sequence[Grid] | None, base: Mapping[str, Any]) -> list[Point]:
    """List the points of a grid, checked; all have the same arguments.

    Those that one of several grids leaves out are those of ``base``, the estimator's own. Points
    whose models are equal, such as exact ones that differ in λ alone, are one.
    """
    try:
        varied = [*ParameterGrid(DEFAULT_GRID if grid is None else grid)]
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"grid must map arguments to lists of values, got {grid!r}. Write for example "
            f"grid={{'car': [0, 1e2, 1e4], 'invariance': [None]}}. {error}"
        ) from error
    if not varied:
        raise InvalidInputError("grid must hold at least one argument, got none.")
    for point in varied:
        _check_names(point, base)
    own = {name: base[name] for point in varied for name in point}
    listed = [own | point for point in varied]
    points: dict[str, Point] = {}
    for point in listed:
        check_arguments({**base, **point})
        points.setdefault(_canonical({**base, **point}), point)
    are_exact = all({**base, **point}["invariance"] is not None for point in listed)
    if are_exact and len({point.get("car") for point in listed}) > 1:
        warnings.warn(
            "The grid varies car, but all its models are exact: no flip changes their predictions "
            "at any λ. Add 'invariance': [None] to see what λ does alone.",
            stacklevel=3,
        )
    return list(points.values())


def _check_names(point: Point, base: Mapping[str, Any]) -> None:
    """Refuse arguments that the estimator does not have, or that no sweep can vary."""
    for name in point:
        if name not in base:
            raise InvalidInputError(
                f"grid must name arguments of the estimator, got {name!r}."
                f"{near_match(str(name), base)} It has {enumerate_some(base, 40)}."
            )
    for name in (*point, *(point.get("advanced") or ())):
        if name in _NOT_VARIED:
            raise InvalidInputError(f"grid must not vary {name!r}. {_NOT_VARIED[name]}")


def list_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments that make the model what it is, as plain data."""
    # The others change neither the model nor what is measured, or a sweep sets them by itself.
    left_out = ("random_state", "verbose")
    options = complete_advanced(arguments["advanced"]).items()
    advanced = {name: value for name, value in options if name not in ("engine", "device")}
    kept = {name: value for name, value in arguments.items() if name not in left_out}
    return to_plain({**kept, "advanced": advanced})


def _canonical(arguments: Mapping[str, Any]) -> str:
    """Write arguments such that equal models have equal texts."""
    plain = list_arguments(arguments)
    plain["car"] = plain["car"] or 0.0  # None switches it off, too
    # CAR has no part in training an exact form, but where the paper's model adapts.
    form, has_views = plain["invariance"], plain["advanced"]["main_effects"]
    if form == "marginal" or (form == "adapt" and has_views):
        plain["car"] = 0.0
    as_floats = json.loads(json.dumps(plain), parse_int=float)  # 100 and 100.0 are one value
    return json.dumps(as_floats, sort_keys=True)


# ------------------------------------------------------------------------------ runs and records


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """Read the records of a file, if it is there, and make it ready to be appended to.

    A last line that was cut off, as when a machine goes down, is taken away.
    """
    path = Path(path)
    if path.is_dir():
        raise InvalidInputError(
            f"path must be a file, got the folder {str(path)!r}. Name a file such as 'sweep.jsonl'."
        )
    path.absolute().parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        return []
    content = path.read_bytes()
    *lines, rest = content.split(b"\n")
    records: list[Record] = []
    try:
        for line in lines:
            record = json.loads(line)
            Measured(**record["measured"])
            records.append({name: record[name] for name in _FIELDS})
        if rest and not rest.startswith(_START) and not _START.startswith(rest):
            raise ValueError
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInputError(
            f"path must be a file of a sweep's records, got {str(path)!r}, whose line "
            f"{len(records) + 1} is none. Name a file that does not exist yet."
        ) from error
    if rest:
        with path.open("r+b") as file:
            file.truncate(len(content) - len(rest))
    return records


def append_record(path: str | os.PathLike[str], record: Record) -> None:
    """Add a record to a file, and see to it that it is there whatever happens next."""
    line = json.dumps(record, ensure_ascii=False, allow_nan=False)
    left = "the runs before this one are in the file"
    with errors_of_writing(path, left), Path(path).open("ab") as file:
        file.write(line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


@dataclass(frozen=True)
class Experiment:
    """What all runs of a sweep share: the model that they vary, the rows, and a hash of these.

    A run is one fit, of a point of the grid with a seed; runs do not depend on each other.
    """

    estimator: Estimator
    train: tuple[Any, Any, Any]
    rows: AuditRows
    data: str

    @property
    def base(self) -> dict[str, Any]:
        """The estimator's own arguments."""
        return self.estimator.get_params(deep=False)

    def key(self, point: Point, seed: int) -> str:
        """Name a run: the same arguments, seed and data give the same key."""
        content = json.dumps([_canonical({**self.base, **point}), seed, self.data])
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def fit(self, point: Point, seed: int) -> Estimator:
        """Fit the model of a run."""
        model: Estimator = clone(self.estimator)
        model.set_params(**point, random_state=seed, verbose=False)
        with errors_about(f"The run {point}, seed {seed}"):
            return model.fit(*self.train)

    def carry_out(self, runs: Sequence[tuple[Point, int]], n_jobs: int) -> Iterator[Result]:
        """Fit and measure runs, one after the other or side by side, in the order they end."""
        with open_processes() as spread:
            if spread is not None:  # of a backend that the caller has chosen, such as Ray's
                yield from spread(lambda run: self._carry_out_run(run[0], run[1], True), runs)
                return
        jobs = [joblib.delayed(self._carry_out_run)(*run, n_jobs != 1) for run in runs]
        yield from joblib.Parallel(n_jobs, return_as="generator_unordered")(jobs)

    def _carry_out_run(self, point: Point, seed: int, is_one_of_many: bool) -> Result:
        if is_one_of_many:  # in a process of its own: the other cores have other runs
            torch.set_num_threads(1)
        with collect_warnings() as (notes, other_warnings):
            start = time.perf_counter()
            model = self.fit(point, seed)
            fitted = time.perf_counter()
            with errors_about("eval_set"):
                measured = measure(open_model(model, self.rows), self.rows)
            finished = time.perf_counter()
        record: Record = to_plain(
            {
                "key": self.key(point, seed),
                "estimator": type(model).__name__,
                "data": self.data,
                "arguments": list_arguments({**self.base, **point}),
                "seed": seed,
                "measured": asdict(measured),
                "notes": notes,
                "seconds": {"fit": fitted - start, "measure": finished - fitted},
                "versions": {
                    "fcorr": __version__,
                    "torch": torch.__version__,
                    "numpy": np.__version__,
                    "python": platform.python_version(),
                    "engine": model.history_.engine,
                },
            }
        )
        return point, record, other_warnings
