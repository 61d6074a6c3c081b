"""Sweeps: the same model over a grid of arguments and seeds, and the choice among them."""

import math
import numbers
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from fcorr._core import (
    InvalidInputError,
    html_table,
    near_match,
    require,
    show_progress,
    to_plain,
)
from fcorr.audit.measure import (
    LOWER_IS_BETTER,
    MAIN_METRIC,
    Estimator,
    Measured,
    name_columns,
    read_rows,
    unpack,
)
from fcorr.audit.runs import (
    DEFAULT_GRID,
    Experiment,
    Grid,
    Point,
    Record,
    Run,
    append_record,
    chain_runs,
    expand_grid,
    hash_rows,
    read_records,
)
from fcorr.audit.tables import TextTable, show_metric, show_small
from fcorr.estimators import FCorrClassifier, FCorrRegressor
from fcorr.estimators.options import is_integer

__all__ = [
    "DEFAULT_GRID",
    "Choice",
    "Summary",
    "Sweep",
    "group_metrics",
    "main_metric",
    "performance_metrics",
    "sweep",
]


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
    warm_start: bool = False,
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
        The model, with sensitive columns. It is not changed.
    X, y
        Training rows; see :meth:`FCorrClassifier.fit`.
    grid : mapping, sequence of mappings or None, default=None
        Arguments and the values they take, in all combinations, as in ``{"car": [0, 1e2, 1e4],
        "invariance": [None]}``; of several grids, the points of each. Arguments that it leaves out
        are the estimator's: λ acts alone only with ``invariance=None``. By default λ = 0, 1, 10,
        …, 1e8 acting alone, and the two exact forms.
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
        not repeat runs that are in it.
    budget : float, optional
        The largest change under a flip that may have been found of the chosen model; see
        :meth:`Sweep.choose`.
    warm_start : bool, default=False
        Let runs of one seed that differ only in a λ that acts alone start from each other's
        weights, from the smallest λ to the largest. Such runs need fewer epochs, but are not the
        models that ``fit`` would give: the chosen point is fitted afresh before it is reported.
        With several processes their records are added when the largest λ is done.
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
        refuse, a file that holds another experiment's runs, validation rows that are the training
        rows.

    Examples
    --------
    >>> from fcorr.data import make_indirect_bias
    >>> X, y = make_indirect_bias(500, random_state=0)
    >>> validation = make_indirect_bias(500, random_state=1)
    >>> found = sweep(
    ...     FCorrClassifier(sensitive="X1", epochs=2, head=(4,)),
    ...     X,
    ...     y,
    ...     grid={"car": [1e4], "invariance": [None, "adapt"]},
    ...     eval_set=validation,
    ...     seeds=1,
    ...     progress=False,
    ... )
    >>> found.choose(budget=0).point
    {'car': 10000.0, 'invariance': 'adapt'}
    """
    if not isinstance(estimator, FCorrClassifier | FCorrRegressor):
        raise InvalidInputError(
            "sweep is about FCorrClassifier and FCorrRegressor, got "
            f"{type(estimator).__name__}. Use scikit-learn's GridSearchCV for other models."
        )
    name_columns(estimator.sensitive)
    budget = _check_budget(budget)
    seeds = _read_seeds(seeds)
    if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise InvalidInputError(
            f"n_jobs must be an integer that is not 0, got {n_jobs!r}. Write n_jobs=2 for two "
            "processes, n_jobs=-1 for as many as there are cores.",
            argument="n_jobs",
        )
    points, varied = expand_grid(grid, estimator.get_params(deep=False))
    rows = read_rows(eval_set, estimator.sensitive, "eval_set")
    data = [hash_rows(X, y, sample_weight), hash_rows(*unpack(eval_set, "eval_set"))]
    if data[0] == data[1]:
        raise InvalidInputError(
            "eval_set must be other rows than X: a model looks good on the rows it was fitted to. "
            "Set some aside, for example with sklearn.model_selection.train_test_split."
        )
    experiment = Experiment(clone(estimator), (X, y, sample_weight), rows, "-".join(data))
    records = {} if path is None else {record["key"]: record for record in read_records(path)}
    experiment.refuse_others(records.values(), varied, path)
    chains = chain_runs(points, experiment.base, seeds, warm_start=warm_start)
    found = Sweep(budget, experiment, points, chains, records, path, n_jobs, progress)
    found._carry_out(chains)
    return found


def _check_budget(budget: Any) -> float | None:
    if budget is None:
        return None
    is_number = isinstance(budget, numbers.Real) and not isinstance(budget, bool)
    if not is_number or not budget >= 0:
        raise InvalidInputError(
            f"budget must be a number of at least 0, or None, got {budget!r}. It is the largest "
            "change of a prediction that a flip may make; 0 stands for exact models only.",
            argument="budget",
        )
    return float(budget)


def _read_seeds(seeds: Any) -> list[int]:
    listed = list(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str) else []
    if is_integer(seeds, 1):
        listed = list(range(int(seeds)))
    are_seeds = all(is_integer(seed, 0) and int(seed) < 2**32 for seed in listed)
    if not listed or not are_seeds or len(set(listed)) < len(listed):
        raise InvalidInputError(
            "seeds must be a number of at least 1, or different integers in [0, 2**32), got "
            f"{seeds!r}. Write seeds=3 or seeds=[0, 1, 2].",
            argument="seeds",
        )
    return [int(seed) for seed in listed]


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
        Records of its runs, one for each seed; see :attr:`Sweep.records`.
    """

    name: str
    point: Point
    runs: tuple[Record, ...]

    @property
    def weight(self) -> float | str:
        """λ, which is 0 where it is switched off."""
        car = self.runs[0]["arguments"]["car"]
        return car if isinstance(car, str) else float(car or 0.0)

    @property
    def invariance(self) -> str | None:
        """The exact form, or None."""
        invariance: str | None = self.runs[0]["arguments"]["invariance"]
        return invariance

    @property
    def warm(self) -> bool:
        """Whether a run started from the weights of another."""
        return any(run["warm_path"] for run in self.runs)

    @property
    def measured(self) -> list[Measured]:
        """What was measured, run by run."""
        return [Measured(**run["measured"]) for run in self.runs]

    @property
    def exact(self) -> bool:
        """Whether no flip changes any prediction of any of the models."""
        return all(found.exact for found in self.measured)

    @property
    def population(self) -> float | None:
        """The largest of the bounds for 99 % of the population; None where one is missing."""
        largest = float(np.max(self.values("bound for 99 %")))
        return None if math.isnan(largest) else largest

    @property
    def search(self) -> float:
        """The largest change that a search over all inputs found."""
        return max(self.values("found by search"))

    @property
    def largest_change(self) -> float:
        """The largest change on the rows."""
        return max(self.values("largest change"))

    @property
    def largest_found(self) -> float:
        """The largest change found, on the rows or by the search; 0 for exact models."""
        return 0.0 if self.exact else max(self.largest_change, self.search)

    def values(self, metric: str) -> list[float]:
        """List a metric of all runs, by its name in :meth:`Measured.flat`."""
        return [found.flat()[metric] for found in self.measured]

    def mean(self, metric: str) -> float:
        """Average a metric over the runs; nan where one has none."""
        return float(np.mean(self.values(metric)))

    def spread(self, metric: str) -> tuple[float, float] | None:
        """Return the lowest and the highest value of a metric; None where one is missing."""
        values = self.values(metric)
        return None if any(math.isnan(value) for value in values) else (min(values), max(values))


def main_metric(summaries: Sequence[Summary]) -> str:
    """Return what performance is, by default, for the task at hand."""
    return MAIN_METRIC[summaries[0].measured[0].task]


def performance_metrics(summaries: Sequence[Summary]) -> list[str]:
    """Name all performance metrics that were measured."""
    return list(summaries[0].measured[0].performance)


def group_metrics(summaries: Sequence[Summary], metric: str = "DPD") -> list[str]:
    """Name one group metric for all groupings."""
    names = summaries[0].measured[0].flat_groups()
    return [name for name in names if name.split(", ")[0] == metric]


def name_point(point: Point, points: Sequence[Point], base: Mapping[str, Any]) -> str:
    """Name a point by its λ or exact form, and by the other arguments that vary.

    Examples
    --------
    >>> points = [{"car": 1e6, "invariance": None}, {"car": 1e6, "invariance": "adapt"}]
    >>> [name_point(point, points, {}) for point in points]
    ['λ = 1e6', 'adapt']
    """
    arguments = {**base, **point}
    form = arguments["invariance"]
    weights = {p["car"] for p in points if "car" in p and {**base, **p}["invariance"] == form}
    parts = [] if form is None else [str(form)]
    if form is None or len(weights) > 1:
        parts.append(f"λ = {show_value(arguments['car'] or 0)}")
    others = {n: v for n, v in _flat(point).items() if n not in ("car", "invariance")}
    return ", ".join([*parts, *(f"{name} = {show_value(v)}" for name, v in others.items())])


def _flat(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """List arguments of ``advanced`` as if they were the estimator's own."""
    own = {name: value for name, value in arguments.items() if name != "advanced"}
    return {**own, **(arguments.get("advanced") or {})}


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


# ------------------------------------------------------------------------------ the choice


@dataclass(frozen=True)
class Choice:
    """The point that was chosen, and why. ``print`` it for a sentence.

    Attributes
    ----------
    name : str
        What tables and figures call the point.
    point : dict
        The arguments that the grid varies.
    metric : str
        What performance is.
    performance : float
        Its mean over the seeds, on the validation rows.
    largest_found : float
        The largest change under a flip that was found of any of the seeds' models, on the
        validation rows or by a search over all inputs; 0 if they are exact.
    exact : bool
        Whether no flip changes any prediction.
    budget : float or None
        What that change was not to exceed.
    n_seeds : int
        How many models stand behind it.
    """

    name: str
    point: Point
    metric: str
    performance: float
    largest_found: float
    exact: bool
    budget: float | None
    n_seeds: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        plain: dict[str, Any] = to_plain({**vars(self), "reason": str(self)})
        return plain

    def __str__(self) -> str:
        best = "lowest" if self.metric in LOWER_IS_BETTER else "highest"
        among = ""
        if self.budget is not None:
            among = f" among models of which no change above {self.budget:g} was found"
        flips = "exact" if self.exact else f"largest change found {self.largest_found:.2g}"
        return (
            f"{self.name}: {best} {self.metric} on the validation rows{among} "
            f"({self.performance:.4g}, mean of {self.n_seeds} seed(s); {flips})"
        )


def choose_summary(
    summaries: Sequence[Summary], budget: float | None, metric: str | None
) -> Summary:
    """Return the most accurate point, of those within the budget for all seeds.

    Of points that are equally accurate, the one with the smallest change found.
    """
    metric = metric or main_metric(summaries)
    names = performance_metrics(summaries)
    if metric not in names:
        raise InvalidInputError(
            f"metric must be one of {', '.join(names)}, got {metric!r}.{near_match(metric, names)}"
        )
    within = [
        each
        for each in summaries
        if budget is None or each.exact or (budget > 0 and each.largest_found <= budget)
    ]
    if not within:
        least = min(summaries, key=lambda summary: summary.largest_found)
        raise InvalidInputError(
            f"budget must be at least {least.largest_found:.3g}, the smallest change found "
            f"({least.name}), got {budget:g}; 0 stands for exact models only. Raise it, or add an "
            "exact form to the grid: 'invariance': ['adapt', 'marginal']."
        )
    known = [summary for summary in within if not math.isnan(summary.mean(metric))]
    if not known:
        raise InvalidInputError(
            f"The validation rows must allow {metric} to be estimated, got none for any point. "
            "Choose more rows, or choose by another metric."
        )
    sign = 1.0 if metric in LOWER_IS_BETTER else -1.0
    return min(known, key=lambda summary: (sign * summary.mean(metric), summary.largest_found))


# ------------------------------------------------------------------------------ the result


@dataclass(eq=False, repr=False)
class Sweep:
    """The runs of a sweep, all measured on validation rows. ``print`` it for a table.

    :func:`fcorr.sweep` makes it.

    Attributes
    ----------
    budget : float or None
        The largest change found that a chosen model may have, unless told otherwise.
    """

    budget: float | None
    _experiment: Experiment
    _points: list[Point]
    _chains: list[list[Run]]
    _records: dict[str, Record]  # by key
    _path: str | os.PathLike[str] | None
    _n_jobs: int
    _progress: bool
    _warned: set[str] = field(default_factory=set)

    def _carry_out(self, chains: Sequence[Sequence[Run]]) -> None:
        """Carry out the runs that have no record yet, and keep their records."""
        n_runs = sum(self._find(run) is None for chain in chains for run in chain)
        with show_progress("sweep", n_runs, shown=self._progress) as progress:
            results = self._experiment.carry_out(chains, set(self._records), self._n_jobs)
            for run, record, collected in results:
                if self._path is not None:
                    append_record(self._path, record)
                self._records[record["key"]] = record
                progress.advance(self._describe(run, Measured(**record["measured"])))
                collected.warn_again(stacklevel=3, known=self._warned)
                self._warned.update(collected.others)

    def _describe(self, run: Run, measured: Measured) -> str:
        metrics, metric = measured.flat(), MAIN_METRIC[measured.task]
        return (
            f"{self._name(run.point)}, seed {run.seed}: {metric} {metrics[metric]:.4g}, largest "
            f"change {show_small(metrics['largest change'])}, found by search "
            f"{show_small(measured.search)}"
        )

    def _name(self, point: Point) -> str:
        return name_point(point, self._points, self._experiment.base)

    def _find(self, run: Run) -> Record | None:
        """Return the record of a run, if it is done."""
        return self._records.get(self._experiment.key(run))

    @property
    def _seeds(self) -> list[int]:
        return list(dict.fromkeys(chain[0].seed for chain in self._chains))

    def _records_of(self, point: Point, *, fresh: bool) -> list[Record]:
        """List records of a point that are done: as planned, or of fits from scratch."""
        runs = [Run(point, seed) for seed in self._seeds]
        if not fresh:
            runs = [run for chain in self._chains for run in chain if run.point == point]
        return [record for run in runs if (record := self._find(run)) is not None]

    @property
    def records(self) -> list[Record]:
        """One record for each run: by point, then by seed; then those of fresh fits.

        A record is plain data: ``key`` (arguments, seed and data in one text), ``estimator`` (its
        class), ``data`` (hash of training and validation rows), ``arguments``, ``seed``,
        ``warm_path`` (λ of the runs whose weights it started from; empty for a fit from scratch),
        ``measured`` (:class:`fcorr.audit.measure.Measured` as a dict; None is what the rows cannot
        give), ``notes`` (what could not be estimated, or not for all groups), ``seconds`` and
        ``versions``.
        """
        planned = [r for point in self._points for r in self._records_of(point, fresh=False)]
        fresh = [r for point in self._points for r in self._records_of(point, fresh=True)]
        return list({record["key"]: record for record in planned + fresh}.values())

    def summaries(self) -> list[Summary]:
        """Put the runs of each point together; those of a fresh fit where there is one."""
        found = []
        for point in self._points:
            runs = self._records_of(point, fresh=True)
            if len(runs) < len(self._seeds):
                runs = self._records_of(point, fresh=False)
            found.append(Summary(self._name(point), point, tuple(runs)))
        return found

    def choose(self, budget: float | None = None, *, metric: str | None = None) -> Choice:
        """Choose the most accurate point, by the mean over its seeds.

        A point of which a run started from the weights of another (``warm_start``) is fitted
        afresh before it is reported: such a run is not the model that ``fit`` would give.

        Parameters
        ----------
        budget : float, optional
            The largest change of a prediction under a flip that may have been found of any seed's
            model: on the validation rows, or by the search over all inputs that a certificate
            makes. Exact models, of which there is proof that no flip changes anything, keep to
            every budget; of the others the worst case may be larger than what was found. 0 stands
            for exact models only. By default that of the sweep.
        metric : str, optional
            The performance to choose by; by default AUROC for two classes, log loss for more,
            deviance for a regression.

        Returns
        -------
        Choice
            The point and the reason.

        Raises
        ------
        InvalidInputError
            No point keeps to the budget; the message names the smallest change found.
        """
        budget = self.budget if budget is None else _check_budget(budget)
        while True:
            summaries = self.summaries()
            chosen = choose_summary(summaries, budget, metric)
            if not chosen.warm:
                break
            self._carry_out([[Run(chosen.point, seed)] for seed in self._seeds])
        metric = metric or main_metric(summaries)
        return Choice(
            name=chosen.name,
            point=chosen.point,
            metric=metric,
            performance=chosen.mean(metric),
            largest_found=chosen.largest_found,
            exact=chosen.exact,
            budget=budget,
            n_seeds=len(chosen.runs),
        )

    def best_estimator(
        self, budget: float | None = None, *, metric: str | None = None, seed: int | None = None
    ) -> Estimator:
        """Fit the chosen point again, from scratch, and return the model.

        Parameters
        ----------
        budget, metric
            See :meth:`choose`.
        seed : int, optional
            Which of the sweep's seeds to use; by default the first.
        """
        seed = self._seeds[0] if seed is None else seed
        if seed not in self._seeds:
            raise InvalidInputError(
                f"seed must be one of the sweep's {self._seeds}, got {seed!r}. Others were not "
                "measured."
            )
        return self._experiment.fit(Run(self.choose(budget, metric=metric).point, seed))

    def table(self) -> TextTable:
        """Return the table: a line per point, means over the seeds, the largest of the changes."""
        summaries = self.summaries()
        performance, groups = performance_metrics(summaries), group_metrics(summaries)
        flips = [n for n in ("AvgIF", "decisions flipped") if n in summaries[0].measured[0].flip]
        header = ["", *performance, *flips, "largest change", "found by search", "bound for 99 %"]
        rows = [
            [
                each.name + each.warm * " (warm)",
                *(show_metric(name, each.values(name)) for name in (*performance, *flips)),
                *(show_small(v) for v in (each.largest_change, each.search, each.population)),
                *(show_metric(name, each.values(name)) for name in groups),
                show_metric("seconds", [run["seconds"]["fit"] for run in each.runs]),
            ]
            for each in summaries
        ]
        return TextTable([*header, *groups, "fit, s"], rows)

    @property
    def notes(self) -> list[str]:
        """What could not be estimated, or not for all groups."""
        return list(dict.fromkeys(note for record in self.records for note in record["notes"]))

    def __str__(self) -> str:
        return "\n".join([self.table().text(), *self.notes])

    def _repr_html_(self) -> str:
        return html_table("on the validation rows", *self.table(), note=" ".join(self.notes))

    def to_pandas(self) -> Any:
        """Return a pandas frame with a line for each record and a column for each number."""
        pandas = require("pandas", extra="pandas", purpose="Sweep.to_pandas")
        varied = {name for point in self._points for name in _flat(point)}
        return pandas.DataFrame(
            [
                {
                    **{n: v for n, v in _flat(record["arguments"]).items() if n in varied},
                    "seed": record["seed"],
                    "warm": bool(record["warm_path"]),
                    "exact": record["measured"]["exact"],
                    **Measured(**record["measured"]).flat(),
                    "fit seconds": record["seconds"]["fit"],
                }
                for record in self.records
            ]
        )

    def write_figures(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the figures into a folder: what λ does, and the frontier; return the files.

        Needs matplotlib, which the extra ``plot`` installs.
        """
        from fcorr.audit.displays import ControllabilityDisplay, FrontierDisplay, save_figure

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / "controllability.svg", folder / "frontier.svg"]
        save_figure(ControllabilityDisplay.from_sweep(self).figure_, files[0])
        save_figure(FrontierDisplay.from_sweep(self).figure_, files[1])
        return files
