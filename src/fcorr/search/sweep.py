"""Sweeps: the same model over a grid of arguments and seeds, and the choice among them."""

import math
import numbers
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from fcorr._core import (
    InvalidInputError,
    html_table,
    is_integer,
    near_match,
    show_progress,
    text_table,
)
from fcorr.audit.measure import (
    LOWER_IS_BETTER,
    MAIN_METRIC,
    Measured,
    check_estimator,
    read_test_rows,
)
from fcorr.audit.page import TextTable, show_metric, show_small
from fcorr.data.encode import hash_rows, unpack_rows
from fcorr.estimators.model_file import Estimator
from fcorr.search.runs import (
    Experiment,
    Grid,
    Point,
    Record,
    append_record,
    expand_grid,
    read_records,
)


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
    check_estimator(estimator, "sweep", "Use scikit-learn's GridSearchCV for other models.")
    budget, seeds = _read_budget(budget), _read_seeds(seeds)
    if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise InvalidInputError(
            f"n_jobs must be an integer that is not 0, got {n_jobs!r}. Write n_jobs=2 for two "
            "processes, n_jobs=-1 for as many as there are cores.",
            argument="n_jobs",
        )
    points = expand_grid(grid, estimator.get_params(deep=False))
    rows = read_test_rows(estimator, eval_set, "eval_set")
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
    sizes = {clone(estimator).set_params(**point)._n_members() for point, _ in runs}
    size = "a single network" if sizes == {1} else "a pack of networks"
    warned: set[str] = set()
    with show_progress("sweep", len(runs), shown=progress) as steps:
        steps.say(
            f"{len(points)} point(s), {len(seeds)} seed(s): {len(runs)} run(s), each fits {size}"
        )
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
    if budget is not None and not (is_number and budget >= 0):
        raise InvalidInputError(
            f"budget must be a number of at least 0, or None, got {budget!r}. It is the largest "
            "change of a prediction that a flip may make; 0 stands for exact models only.",
            argument="budget",
        )
    return None if budget is None else float(budget)


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
        if metric not in first.performance:
            raise InvalidInputError(
                f"metric must be one of {', '.join(first.performance)}, got {metric!r}."
                f"{near_match(metric, first.performance)}"
            )
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
