"""Sweeps: the same model over a grid of arguments and seeds, and the choice among them."""

import hashlib
import json
import math
import numbers
import os
import platform
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from fcorr._core import (
    InvalidInputError,
    check_argument,
    check_name,
    enumerate_some,
    errors_about,
    errors_of_writing,
    html_table,
    is_integer,
    open_processes,
    show_progress,
    text_table,
    to_plain,
)
from fcorr._version import __version__
from fcorr.audit import measure as measuring
from fcorr.audit.measure import LOWER_IS_BETTER, MAIN_METRIC, AuditRows, Measured
from fcorr.audit.page import TextTable, show_metric, show_small
from fcorr.data.encode import hash_rows, unpack_rows
from fcorr.estimators.model_file import Estimator
from fcorr.estimators.options import check_arguments, complete_advanced

Point = dict[str, Any]
Grid = Mapping[str, Sequence[Any]]
Record = dict[str, Any]
"""One run as plain data; see :class:`Sweep`."""

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


def sweep(
    estimator: Estimator,
    X: Any,
    y: ArrayLike,
    *,
    grid: Grid | Sequence[Grid] | None = None,
    eval_set: Sequence[Any],
    seeds: int | Iterable[int] = 3,
    sample_weight: ArrayLike | None = None,
    n_jobs: int = 1,
    path: str | os.PathLike[str] | None = None,
    budget: float | None = None,
    progress: bool = True,
) -> "Sweep":
    """Fit a model over a grid of arguments and seeds, and measure what each costs and brings.

    Of every run it is measured, on the rows of ``eval_set``, how well it predicts, what flips of
    the sensitive columns change, how groups differ, and what is certain about flips.

    Choosing among many models makes the chosen one look better than it is: ``eval_set`` must be
    validation rows. Keep the test rows away from the sweep, and look at them once, with the model
    that was chosen.

    Parameters
    ----------
    estimator : FCorrClassifier or FCorrRegressor
        The model, with sensitive columns. It is not changed. By default a run fits a pack of
        networks; with ``n_members=1`` it takes a fraction of the time.
    X, y
        Training rows; see :meth:`FCorrClassifier.fit`.
    grid : mapping, sequence of mappings or None, default=None
        Arguments and the values they take, in all combinations, as in ``{"car": [0, 1e2, 1e4],
        "invariance": [None]}``; of several grids, the points of each. Arguments that it leaves out
        are the estimator's: λ acts only with ``invariance=None``, and an exact form is fitted once,
        whatever λ the grid has for it. By default λ = 0, 1, 10, …, 1e8, and the two exact forms.
    eval_set : tuple (X, y) or (X, y, sample_weight)
        Validation rows, none of which may be a training row.
    seeds : int or iterable of int, default=3
        Seeds of each point; a number n stands for 0 to n − 1.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the training rows.
    n_jobs : int, default=1
        Processes that runs are shared out to; −1 for as many as there are cores. The results are
        the same for any number.
    path : path, optional
        File of JSON lines to which each run is added as it ends. A sweep with the same file does
        not repeat runs that are in it; those of other arguments, seeds or rows it leaves alone.
    budget : float, optional
        The largest change under a flip that may have been found of the chosen model; by default
        only an exact one is chosen. See :meth:`fcorr.search.sweep.Sweep.choose`.
    progress : bool, default=True
        Show progress: a bar on a terminal, plain lines elsewhere.

    Returns
    -------
    Sweep
        Records, tables, figures, and the choice.

    Raises
    ------
    InvalidInputError
        Among others, before anything is fitted: an argument of the grid that the estimator would
        refuse, a file that holds something else than runs, validation rows that are the training
        rows.

    Examples
    --------
    >>> from fcorr import FCorrClassifier
    >>> from fcorr.data import make_proxy_bias
    >>> X, y = make_proxy_bias(500, task="classification", random_state=0)
    >>> validation = make_proxy_bias(500, task="classification", random_state=1)
    >>> found = sweep(
    ...     FCorrClassifier(sensitive="S", n_members=1, epochs=2, head=(4,)),
    ...     X,
    ...     y,
    ...     grid={"car": [1e4], "invariance": [None, "adapt"]},
    ...     eval_set=validation,
    ...     seeds=1,
    ...     progress=False,
    ... )
    >>> found.choose().point
    {'car': 10000.0, 'invariance': 'adapt'}
    """
    if not measuring.is_ours(estimator):
        raise InvalidInputError(
            f"sweep is about FCorrClassifier and FCorrRegressor, got {type(estimator).__name__}. "
            "Use scikit-learn's GridSearchCV for other models."
        )
    budget, seeds = _read_budget(budget), _read_seeds(seeds)
    is_whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    way_out = "Write n_jobs=2 for two processes, n_jobs=-1 for as many as there are cores."
    check_argument("n_jobs", n_jobs, is_whole and n_jobs != 0, "an integer that is not 0", way_out)
    points = expand_grid(grid, estimator.get_params(deep=False))
    rows = measuring.read_test_rows(estimator, eval_set, "eval_set")
    data = [hash_rows(X, y, sample_weight), hash_rows(*unpack_rows(eval_set, "eval_set"))]
    if data[0] == data[1]:
        raise InvalidInputError(
            "eval_set must be other rows than X: a model looks good on the rows it was fitted to. "
            "Set some aside, for example with sklearn.model_selection.train_test_split."
        )
    experiment = Experiment(clone(estimator), (X, y, sample_weight), rows, "-".join(data))
    records = {} if path is None else {record["key"]: record for record in read_records(path)}
    runs = [
        (point, seed)
        for seed in seeds
        for point in points
        if experiment.key(point, seed) not in records
    ]
    sizes = {clone(estimator).set_params(**point)._n_members() for point in points}
    size = "a single network" if sizes == {1} else "a pack of networks"
    plan = f"{len(points)} point(s), {len(seeds)} seed(s): {len(runs)} run(s), each fits {size}"
    warned: set[str] = set()
    with show_progress("sweep", len(runs), shown=progress) as steps:
        if progress:
            steps.say(plan)
        for point, record, other_warnings in experiment.carry_out(runs, n_jobs):
            if path is not None:
                append_record(path, record)
            records[record["key"]] = record
            measured = Measured(**record["measured"])
            metrics, metric = measured.flat(), MAIN_METRIC[measured.task]
            steps.advance(
                f"{name_point(point, points, experiment.base)}, seed {record['seed']}: "
                f"{metric} {metrics[metric]:.4g}, "
                f"largest change {show_small(metrics['largest change'])}, "
                f"found by search {show_small(measured.search)}"
            )
            for text, category in other_warnings.items():
                if text not in warned:
                    warned.add(text)
                    warnings.warn(text, category, stacklevel=2)
    summaries = [
        Summary(
            name_point(point, points, experiment.base),
            point,
            tuple(records[experiment.key(point, seed)] for seed in seeds),
        )
        for point in points
    ]
    return Sweep(summaries, budget, experiment)


def _read_budget(budget: Any) -> float | None:
    is_number = isinstance(budget, numbers.Real) and not isinstance(budget, bool)
    fits = budget is None or (is_number and budget >= 0)
    way_out = (
        "It is the largest change of a prediction that a flip may make; 0 stands for exact "
        "models only."
    )
    check_argument("budget", budget, fits, "a number of at least 0, or None", way_out)
    return None if budget is None else float(budget)


def _read_seeds(seeds: Any) -> list[int]:
    listed = list(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str) else []
    if is_integer(seeds, 1):
        listed = list(range(int(seeds)))
    are_seeds = all(is_integer(seed, 0) and int(seed) < 2**32 for seed in listed)
    fits = bool(listed) and are_seeds and len(set(listed)) == len(listed)
    rule = "a number of at least 1, or different integers in [0, 2**32)"
    check_argument("seeds", seeds, fits, rule, "Write seeds=3 or seeds=[0, 1, 2].")
    return [int(seed) for seed in listed]


# ------------------------------------------------------------------------------ grids


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
        for name in point:
            has = f"It has {enumerate_some(base, 40)}."
            check_name(name, base, "grid must name arguments of the estimator", has)
        for name in (*point, *(point.get("advanced") or ())):
            if name in _NOT_VARIED:
                raise InvalidInputError(f"grid must not vary {name!r}. {_NOT_VARIED[name]}")
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

    def carry_out(self, runs: Sequence[tuple[Point, int]], n_jobs: int) -> Iterator[Any]:
        """Fit and measure runs, one after the other or side by side, in the order they end.

        Each gives its point, its record, and what else it warned of.
        """
        with open_processes() as spread:
            if spread is not None:  # of a backend that the caller has chosen, such as Ray's
                yield from spread(lambda run: self._carry_out_run(run[0], run[1], True), runs)
                return
        jobs = [joblib.delayed(self._carry_out_run)(*run, n_jobs != 1) for run in runs]
        yield from joblib.Parallel(n_jobs, return_as="generator_unordered")(jobs)

    def _carry_out_run(self, point: Point, seed: int, is_one_of_many: bool) -> tuple[Any, ...]:
        if is_one_of_many:  # in a process of its own: the other cores have other runs
            torch.set_num_threads(1)
        with measuring.collect_warnings() as (notes, other_warnings):
            start = time.perf_counter()
            model = self.fit(point, seed)
            fitted = time.perf_counter()
            with errors_about("eval_set"):
                subject = measuring.open_model(model, self.rows)
                measured = measuring.measure(subject, self.rows)
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


# ------------------------------------------------------------------------------ points


@dataclass(frozen=True)
class Summary:
    """One point of a sweep and its runs, over the seeds.

    Attributes
    ----------
    name : str
        What tables and figures call it.
    point : dict
        The arguments that the grid varies.
    runs : tuple of dict
        Records of its runs, one for each seed; see :class:`Sweep`.
    reason : str
        Of a chosen point, why it is that one.
    """

    name: str
    point: Point
    runs: tuple[Record, ...]
    reason: str = ""

    @property
    def measured(self) -> list[Measured]:
        """What was measured, run by run."""
        return [Measured(**run["measured"]) for run in self.runs]

    @property
    def exact(self) -> bool:
        """Whether no flip changes any prediction of any of the models."""
        return all(found.exact for found in self.measured)

    @property
    def largest_found(self) -> float:
        """The largest change found under a flip of any of the seeds' models; 0 if they are exact.

        On the validation rows, or by a search over all inputs.
        """
        found = self.largest("largest change"), self.largest("found by search")
        return 0.0 if self.exact else max(found)

    @property
    def flips(self) -> str:
        """What flips of the sensitive columns do to the models, in a few words."""
        if self.exact:
            return "exact"
        words = f"largest change found {self.largest_found:.2g}"
        if "decisions flipped" in self.measured[0].flip:
            share = 100 * self.largest("decisions flipped")
            words += f", up to {share:.2g} % of decisions flipped"
        return words

    def values(self, metric: str) -> list[float]:
        """List a metric of all runs, by its name in ``Measured.flat``."""
        return [found.flat()[metric] for found in self.measured]

    def mean(self, metric: str) -> float:
        """Average a metric over the runs; nan where one has none."""
        return float(np.mean(self.values(metric)))

    def largest(self, metric: str) -> float:
        """Return the largest value of a metric; nan where one is missing."""
        return float(np.max(self.values(metric)))


def name_point(point: Point, points: Sequence[Point], base: Mapping[str, Any]) -> str:
    """Name a point by its λ or exact form, ``λ = 1e6``, and by the other arguments that vary."""
    arguments = {**base, **point}
    form = arguments["invariance"]
    weights = {p["car"] for p in points if "car" in p and {**base, **p}["invariance"] == form}
    parts = [] if form is None else [str(form)]
    if form is None or len(weights) > 1:
        parts.append(f"λ = {show_value(arguments['car'] or 0)}")
    others = {**point, **(point.get("advanced") or {})}  # these are named like all others
    for name in ("car", "invariance", "advanced"):
        others.pop(name, None)
    return ", ".join([*parts, *(f"{name} = {show_value(v)}" for name, v in others.items())])


def show_value(value: Any) -> str:
    """Write an argument's value shortly.

    Examples
    --------
    >>> [show_value(value) for value in (0, 100, 1e4, 2.5e-4, None, (8, 4), "paper")]
    ['0', '100', '1e4', '2.5e−4', 'None', '8×4', 'paper']
    """
    if isinstance(value, list | tuple):
        return "×".join(str(item) for item in value)
    if isinstance(value, bool) or not isinstance(value, float | int):
        return str(value)
    text = f"{value:g}"
    if value and not 1e-3 <= abs(value) < 1e4:
        mantissa, exponent = f"{value:e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return text.replace("-", "−")


# ------------------------------------------------------------------------------ the result


@dataclass(eq=False, repr=False)
class Sweep:
    """The runs of a sweep, all measured on validation rows. ``print`` it for a table.

    :func:`fcorr.sweep` makes it.

    Attributes
    ----------
    summaries : list of Summary
        The points of the grid, each with its runs.
    budget : float or None
        The largest change found that a chosen model may have, unless told otherwise.
    records : list of dict
        One record for each run: by point, then by seed. A record is plain data: ``key``
        (arguments, seed and data in one text), ``estimator`` (its class), ``data`` (hash of
        training and validation rows), ``arguments``, ``seed``, ``measured``
        (:class:`fcorr.audit.measure.Measured` as a dict; None is what the rows cannot give),
        ``notes`` (what could not be estimated, or not for all groups), ``seconds`` and
        ``versions``. ``pandas.json_normalize(records)`` makes a frame of them.
    """

    summaries: list[Summary]
    budget: float | None
    _experiment: Experiment

    @property
    def records(self) -> list[Record]:
        """One record for each run: by point, then by seed."""
        return [run for each in self.summaries for run in each.runs]

    def choose(self, budget: float | None = None, *, metric: str | None = None) -> Summary:
        """Choose the most accurate exact point, by the mean over its seeds.

        With a budget, points that are not exact can be chosen too. Of points that are equally
        accurate, it is the one with the smallest change found.

        Parameters
        ----------
        budget : float, optional
            The largest change of a prediction under a flip that may have been found of any seed's
            model: on the validation rows, or by the search over all inputs that a certificate
            makes. Exact models, of which there is proof that no flip changes anything, keep to
            every budget; of the others the worst case may be larger than what was found. 0 stands
            for exact models only, ``math.inf`` for all. By default that of the sweep. A budget is
            about predictions: near the threshold, a small change of a probability is another
            decision. What share of them flips, the returned choice says.
        metric : str, optional
            The performance to choose by; by default AUROC for two classes, log loss for more,
            deviance for a regression.

        Returns
        -------
        Summary
            The point, and the ``reason``.

        Raises
        ------
        InvalidInputError
            No point is exact, or keeps to the budget; the message names the smallest change found.
        """
        budget = self.budget if budget is None else _read_budget(budget)
        first = self.summaries[0].measured[0]
        metric = metric or MAIN_METRIC[first.task]
        rule = f"metric must be one of {', '.join(first.performance)}"
        check_name(metric, first.performance, rule)
        limit = budget or 0.0
        within = [
            each
            for each in self.summaries
            if each.exact or (limit > 0 and each.largest_found <= limit)
        ]
        least = min(self.summaries, key=lambda summary: summary.largest_found)
        if not within and budget is None:
            best = self.choose(math.inf, metric=metric)
            raise InvalidInputError(
                f"The chosen model must be exact by default, and none is: the most accurate is "
                f"{best.name} ({best.flips}), the nearest to it {least.name} ({least.flips}). Add "
                "an exact form to the grid: 'invariance': ['adapt', 'marginal']; or give a budget, "
                "the largest change that you accept; or choose among all with budget=math.inf."
            )
        if not within:
            raise InvalidInputError(
                f"budget must be at least {least.largest_found:.3g}, the smallest change found "
                f"({least.name}), got {budget:g}; 0 stands for exact models only. Raise it, or add "
                "an exact form to the grid: 'invariance': ['adapt', 'marginal']."
            )
        known = [summary for summary in within if not math.isnan(summary.mean(metric))]
        if not known:
            raise InvalidInputError(
                f"The validation rows must allow {metric} to be estimated, got none for any point. "
                "Choose more rows, or choose by another metric."
            )
        sign, best_is = (1.0, "lowest") if metric in LOWER_IS_BETTER else (-1.0, "highest")
        chosen = min(known, key=lambda each: (sign * each.mean(metric), each.largest_found))
        among = f" among models of which no change above {limit:g} was found"
        if limit in (0, math.inf):
            among = "" if limit else " among exact models"
        reason = (
            f"{chosen.name}: {best_is} {metric} on the validation rows{among} "
            f"({chosen.mean(metric):.4g}, mean of {len(chosen.runs)} seed(s); {chosen.flips})"
        )
        return replace(chosen, reason=reason)

    def best_estimator(
        self, budget: float | None = None, *, metric: str | None = None
    ) -> Estimator:
        """Fit the chosen point again, with the first of the seeds, and return the model.

        See :meth:`choose` for what is chosen.
        """
        choice = self.choose(budget, metric=metric)
        return self._experiment.fit(choice.point, choice.runs[0]["seed"])

    def table(self) -> TextTable:
        """Return the table: a line per point, means over the seeds, the largest of the changes."""
        first = self.summaries[0].measured[0]
        flips = [name for name in ("AvgIF", "decisions flipped") if name in first.flip]
        means = [*first.performance, *flips]
        largest = ["largest change", "found by search", "bound for 99 %"]
        groups = [name for name in first.flat_groups() if name.split(", ")[0] == "DPD"]
        rows = [
            [
                each.name,
                *(show_metric(name, each.values(name)) for name in means),
                *(show_small(each.largest(name)) for name in largest),
                *(show_metric(name, each.values(name)) for name in groups),
                show_metric("seconds", [run["seconds"]["fit"] for run in each.runs]),
            ]
            for each in self.summaries
        ]
        return TextTable(["", *means, *largest, *groups, "fit, s"], rows)

    @property
    def notes(self) -> list[str]:
        """What could not be estimated, or not for all groups."""
        return list(dict.fromkeys(note for record in self.records for note in record["notes"]))

    def __str__(self) -> str:
        return "\n".join([text_table("", *self.table()), *self.notes])

    def _repr_html_(self) -> str:
        return html_table("on the validation rows", *self.table(), note=" ".join(self.notes))
