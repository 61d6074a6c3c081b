"""Questions that tables and claims ask of records."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Record = Mapping[str, Any]


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
        """Return the records of a model.

        Parameters
        ----------
        experiment : str
            The experiment.
        model : str, optional
            The model; by default all.
        **where
            What else must hold: ``column`` (a sensitive column that was measured), ``table`` (the
            name of the data in the configuration), ``measure`` (of a cost), or any argument of
            ``config.point``.
        """
        found = self._records.get(experiment, ())
        return [
            record
            for record in found
            if model in (None, record["model"])
            and all(_holds(record, name, value) for name, value in where.items())
        ]

    def values(
        self,
        experiment: str,
        model: str,
        metric: str,
        *,
        subset: str = "test",
        column: str | None = None,
        **where: Any,
    ) -> list[float]:
        """Return a metric of each seed; of flips and groups by ``column``, the first if None."""
        if column is not None:
            where["column"] = column
        found = [
            read_metric(record, metric, subset, column)
            for record in self.select(experiment, model, **where)
        ]
        return [value for value in found if value is not None]

    def mean(self, experiment: str, model: str, metric: str, **where: Any) -> float | None:
        """Return the mean of a metric over seeds, or None if there is none."""
        values = self.values(experiment, model, metric, **where)
        return float(np.mean(values)) if values else None


def read_metric(record: Record, metric: str, subset: str, column: str | None) -> float | None:
    """Look a metric up, in the performance or in what was measured for a sensitive column."""
    performance: Mapping[str, float | None] = record["performance"][subset]
    if metric in performance:
        return performance[metric]
    fairness = record["fairness"]
    of_column = fairness[column] if column is not None else next(iter(fairness.values()))
    value: float | None = of_column[subset].get(metric)
    return value


def _holds(record: Record, name: str, value: Any) -> bool:
    if name == "column":
        return value in record.get("fairness", ())
    if name == "measure":
        return bool(record["config"].get("measure") == value)
    if name == "table":
        data = record["config"]["data"]
        return bool(value == (data if isinstance(data, str) else data["name"]))
    return bool(record["config"]["point"].get(name) == value)
