"""Runs of one point, over its seeds: means, worst cases, and a name."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fcorr.audit.figures._text import short_number
from fcorr.audit.measuring import MAIN_METRIC, flatten_groups
from fcorr.audit.sweep.grid import Point
from fcorr.audit.sweep.records import Record


@dataclass(frozen=True)
class Summary:
    """One point of a sweep and its runs.

    Attributes
    ----------
    name : str
        What tables and figures call it.
    point : dict
        The arguments that the grid varies.
    runs : tuple of Record
        Its runs, one for each seed.
    """

    name: str
    point: Point
    runs: tuple[Record, ...]

    @property
    def arguments(self) -> dict[str, Any]:
        """All arguments, as plain data."""
        return self.runs[0].arguments

    @property
    def weight(self) -> float | str:
        """λ, which is 0 where it is switched off."""
        car = self.arguments["car"]
        return car if isinstance(car, str) else float(car or 0.0)

    @property
    def invariance(self) -> str | None:
        """The exact form, or None."""
        invariance: str | None = self.arguments["invariance"]
        return invariance

    @property
    def warm(self) -> bool:
        """Whether a run started from the weights of another."""
        return any(run.warm for run in self.runs)

    @property
    def exact(self) -> bool:
        """Whether no flip changes any prediction of any of the models."""
        return all(run.certified.exact for run in self.runs)

    @property
    def bound(self) -> float:
        """The largest of the models' certified bounds."""
        return max(run.certified.bound for run in self.runs)

    @property
    def vacuous(self) -> bool:
        """Whether one of the bounds says next to nothing."""
        return any(run.certified.vacuous for run in self.runs)

    @property
    def population(self) -> float | None:
        """The largest of the bounds for the population; None where one is missing."""
        known = [run.certified.population for run in self.runs]
        return None if None in known else max(change for change in known if change is not None)

    @property
    def attack(self) -> float:
        """The largest change that an attack found."""
        return max(run.certified.attack for run in self.runs)

    @property
    def largest_change(self) -> float:
        """The largest change on the rows."""
        return max(self.values("largest change"))

    def values(self, metric: str) -> list[float]:
        """List a metric of all runs, by its name in :meth:`Measured.flat`."""
        return [run.measured.flat()[metric] for run in self.runs]

    def mean(self, metric: str) -> float:
        """Average a metric over the runs; nan where one has none."""
        return float(np.mean(self.values(metric)))

    def spread(self, metric: str) -> tuple[float, float] | None:
        """Return the lowest and the highest value of a metric; None where one is missing."""
        values = self.values(metric)
        return None if any(math.isnan(value) for value in values) else (min(values), max(values))


def main_metric(summaries: Sequence[Summary]) -> str:
    """Return what performance is, by default, for the task at hand."""
    return MAIN_METRIC[summaries[0].runs[0].measured.task]


def performance_metrics(summaries: Sequence[Summary]) -> list[str]:
    """Name all performance metrics that were measured."""
    return list(summaries[0].runs[0].measured.performance)


def group_metrics(summaries: Sequence[Summary], metric: str = "DPD") -> list[str]:
    """Name one group metric for all groupings."""
    names = flatten_groups(summaries[0].runs[0].measured.groups)
    return [name for name in names if name.split(", ")[0] == metric]


def summarise(
    points: Sequence[Point], base: Mapping[str, Any], runs: Sequence[Sequence[Record]]
) -> list[Summary]:
    """Put points and their runs together, and name them by what tells them apart."""
    return [
        Summary(name_point(point, points, base), point, tuple(of_point))
        for point, of_point in zip(points, runs, strict=True)
    ]


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
    weight = f"λ = {show_value(arguments['car'] or 0)}"
    weights = {p["car"] for p in points if "car" in p and {**base, **p}["invariance"] == form}
    parts = [] if form is None else [str(form)]
    if form is None or len(weights) > 1:
        parts.append(weight)
    others = {name: v for name, v in point.items() if name not in ("car", "invariance")}
    return ", ".join([*parts, *(f"{name} = {show_value(v)}" for name, v in others.items())])


def show_value(value: Any) -> str:
    """Write an argument's value shortly.

    Examples
    --------
    >>> [show_value(value) for value in (0, 100, 1e4, 2.5e-4, None, (8, 4), "paper")]
    ['0', '100', '1e4', '2.5e−4', 'None', '8×4', 'paper']
    """
    if isinstance(value, float | int) and not isinstance(value, bool):
        return short_number(value)
    if isinstance(value, list | tuple):
        return "×".join(str(item) for item in value)
    return str(value)
