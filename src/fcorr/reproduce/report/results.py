"""Questions that claims ask of records: a metric's mean, and how far two models differ."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from fcorr.reproduce.report.selecting import find_metric
from fcorr.reproduce.runs import Record


@dataclass(frozen=True)
class Difference:
    """How much larger a metric is of one model than of another, seed by seed.

    Attributes
    ----------
    mean, error : float
        Mean over seeds, and its standard error; of one seed it is nan.
    n : int
        Seeds.
    """

    mean: float
    error: float
    n: int

    @property
    def sign(self) -> int:
        """1 or -1 if Student's test at 5 % tells the difference from 0, else 0."""
        if self.n < 2 or abs(self.mean) <= student.ppf(0.975, self.n - 1) * self.error:
            return 0
        return int(math.copysign(1, self.mean))

    def __format__(self, spec: str) -> str:
        """Write it with so many decimals, marked where it cannot be told from 0.

        Examples
        --------
        >>> f"{Difference(0.5, 0.1, 5):.2f}", f"{Difference(0.5, 0.4, 5)}"
        ('+0.50 ± 0.10', '≈ +0.5000 ± 0.4000')
        """
        spec = spec or ".4f"
        text = f"{self.mean:+{spec}} ± {self.error:{spec}}"
        return text if self.sign else f"≈ {text}"

    def __str__(self) -> str:
        return format(self)


class Results:
    """The records of some experiments.

    Parameters
    ----------
    records : mapping of str to sequence of records
        By experiment; see :func:`fcorr.reproduce.runs.carry_out`.
    """

    def __init__(self, records: Mapping[str, Sequence[Record]]) -> None:
        self._records = records

    def select(self, experiment: str, model: str | None = None, **where: Any) -> list[Record]:
        """Return the records of a model, or of all.

        ``where`` says what else must hold: ``column`` (a sensitive column that was measured),
        ``table`` (the data's name in the configuration), ``measure`` (of a cost), or an argument
        that the experiment varies.
        """
        return [
            record
            for record in self._records.get(experiment, ())
            if model in (None, record["model"])
            and all(_holds(record, name, value) for name, value in where.items())
        ]

    def at_seeds(self, experiment: str, seeds: Collection[int]) -> "Results":
        """Return the same results with some seeds of an experiment alone."""
        some = [record for record in self.select(experiment) if record["seed"] in seeds]
        return Results({**self._records, experiment: some})

    def by_seed(
        self, experiment: str, model: str, metric: str, *, subset: str = "test", **where: Any
    ) -> dict[int, float]:
        """Return a metric of each seed that has it; of the first sensitive column by default."""
        found = {}
        for record in self.select(experiment, model, **where):
            column = where.get("column", next(iter(record["fairness"])))
            value = find_metric(record, metric, subset, column)
            if value is not None:
                found[record["seed"]] = value
        return found

    def mean(self, experiment: str, model: str, metric: str, **where: Any) -> float:
        """Return the mean of a metric over seeds; nan if there is none."""
        values = list(self.by_seed(experiment, model, metric, **where).values())
        return float(np.mean(values)) if values else math.nan

    def largest(self, experiment: str, model: str, metrics: Sequence[str], **where: Any) -> float:
        """Return the largest mean of some metrics; nan if one of them is not there."""
        means = [self.mean(experiment, model, metric, **where) for metric in metrics]
        return float(np.max(means))  # of nan and numbers it is nan

    def difference(
        self, experiment: str, model: str, other: str, metric: str, **where: Any
    ) -> Difference | None:
        """Compare two models seed by seed; None if they share none."""
        return self.compare(
            self.by_seed(experiment, model, metric, **where),
            self.by_seed(experiment, other, metric, **where),
        )

    def log_ratio(
        self, experiment: str, model: str, other: str, metric: str, **where: Any
    ) -> Difference | None:
        """Compare the logarithms, to base 10, of a metric above 0 that spans orders of size."""
        one, two = (
            {seed: math.log10(value) for seed, value in values.items() if value > 0}
            for values in (
                self.by_seed(experiment, name, metric, **where) for name in (model, other)
            )
        )
        return self.compare(one, two)

    @staticmethod
    def compare(one: Mapping[int, float], two: Mapping[int, float]) -> Difference | None:
        """Compare values that belong to the same seeds."""
        seeds = one.keys() & two.keys()
        if not seeds:
            return None
        differences = np.array([one[seed] - two[seed] for seed in sorted(seeds)])
        error = differences.std(ddof=1) / math.sqrt(len(seeds)) if len(seeds) > 1 else math.nan
        return Difference(float(differences.mean()), float(error), len(seeds))


def _holds(record: Record, name: str, value: Any) -> bool:
    if name == "column":
        return value in record.get("fairness", ())
    if name == "measure":
        return bool(record["config"].get("measure") == value)
    if name == "table":
        data = record["config"]["data"]
        return bool(value == (data if isinstance(data, str) else data["name"]))
    return bool(record["config"]["point"].get(name) == value)
