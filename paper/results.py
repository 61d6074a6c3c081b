"""Results: all records as one table, and the questions that claims ask of it."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from scipy.stats import t as student

from fcorr.estimators.base import EQUAL_PREDICTIONS
from paper.experiments import read_config
from paper.runs import Record, Records

GROUPS = ("DPD", "EqOdd", "EqOpp")
"""Group metrics of classification."""

FLIPS = ("AvgIF", "F1 gap", "AUROC gap", "AUPRC gap")
"""The paper's flip metrics of classification."""

AMOUNT_FLIPS = ("AvgIF", "RMSE gap", "MAE gap")
"""Its flip metrics of regression."""

N_FIRST = {"baf": 10, "claims": 15}
"""How many of the most significant features the paper shows."""

_CHANCE_AUROC, _CHANCE_GINI = 0.55, 0.1  # on test rows: no more than this is no ranking


class NotRunError(LookupError):
    """The records that a question takes are not there."""


class Place(NamedTuple):
    """A table and a sensitive column; ``metrics`` say how well a model predicts there."""

    experiment: str
    column: str
    table: str | None = None
    metrics: tuple[str, ...] = ("AUROC", "AUPRC")

    @property
    def name(self) -> str:
        """What to call it in a line of evidence."""
        return f"{self.table or self.experiment} ({self.column})"


@dataclass(frozen=True)
class Difference:
    """How much larger a metric is of one model than of another: mean and standard error over seeds.

    Examples
    --------
    >>> f"{Difference(0.5, 0.1, 5):.2f}", f"{Difference(0.5, 0.4, 5)}"
    ('+0.50 ± 0.10', '≈ +0.5000 ± 0.4000')
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
        """Write it with so many decimals, marked where it cannot be told from 0."""
        spec = spec or ".4f"
        text = f"{self.mean:+{spec}} ± {self.error:{spec}}"
        return text if self.sign else f"≈ {text}"


class Results:
    """The records of some experiments as one frame.

    Attributes
    ----------
    frame : DataFrame
        A row for each fit, sensitive column and subset (train, test), with all metrics as columns,
        missing where they were not measured or not estimable; and a row for each measured cost.
    sources : set of str
        Data that was asked about, by name; generated tables are called so.
    """

    def __init__(self, records: Records) -> None:
        rows = [row for of_one in records.values() for record in of_one for row in _rows(record)]
        self.frame = pd.DataFrame(rows)
        self.sources: set[str] = set()

    def select(self, experiment: str, model: str | None = None, **where: Any) -> pd.DataFrame:
        """Return the rows of a model, or of all, where columns have some values."""
        wanted = {"experiment": experiment, "model": model, **where}
        found = self.frame
        for name, value in wanted.items():
            if value is not None:
                found = found[found[name] == value] if name in found else found[:0]
        if found.empty:
            raise NotRunError(f"no records of {wanted}")
        if "source" in found:
            self.sources |= set(found["source"].dropna())
        return found

    def fits(self, place: Place, model: str, subset: str = "test", **where: Any) -> pd.DataFrame:
        """Return a row for each seed of a model at a place."""
        experiment, column, table, _ = place
        where |= {"column": column, "table": table, "subset": subset}
        return self.select(experiment, model, **where).set_index("seed")

    def values(self, place: Place, model: str, metric: str, **where: Any) -> "pd.Series[Any]":
        """Return a metric of each seed that has it."""
        found = self.fits(place, model, **where)
        found = found[metric].dropna() if metric in found else pd.Series(dtype=float)
        if found.empty:
            raise NotRunError(f"no {metric} of {model} at {place.name}")
        return found

    def mean(self, place: Place, model: str, metric: str, **where: Any) -> float:
        """Return the mean of a metric over seeds."""
        return float(self.values(place, model, metric, **where).mean())

    def largest(self, place: Place, model: str, metrics: Sequence[str], **where: Any) -> float:
        """Return the largest mean of some metrics."""
        return max(self.mean(place, model, metric, **where) for metric in metrics)

    def difference(
        self, place: Place, model: str, other: str, metric: str, *, log: bool = False, **where: Any
    ) -> Difference:
        """Compare two models seed by seed; or logarithms, of a metric that spans orders of size."""
        one, two = (self.values(place, name, metric, **where) for name in (model, other))
        return compare(np.log10(one[one > 0]), np.log10(two[two > 0])) if log else compare(one, two)

    def below(
        self, place: Place, model: str, metrics: Sequence[str], limit: float, **where: Any
    ) -> list[bool]:
        """Say of each fit whether all of some metrics are below a limit."""
        found = self.fits(place, model, **where)[list(metrics)]
        return (found.fillna(math.inf) < limit).all(axis=1).tolist()

    def has(self, place: Place, models: Sequence[str], metric: str) -> bool:
        """Say whether there are values of a metric of some models."""
        try:
            return all(len(self.values(place, model, metric)) for model in models)
        except NotRunError:
            return False

    def at_seeds(self, experiment: str, seeds: Collection[int]) -> "Results":
        """Return the same results with some seeds of an experiment alone."""
        some = Results({})
        kept = self.frame["seed"].isin(seeds) | (self.frame["experiment"] != experiment)
        some.frame, some.sources = self.frame[kept], self.sources
        return some

    def significances(
        self, experiment: str, model: str, kind: str = "significance"
    ) -> dict[int, dict[str, float]]:
        """Return each seed's significance of features, where a fit did not diverge."""
        found = self.select(experiment, model, subset="test").drop_duplicates("seed")
        pairs = zip(found["seed"], found[kind], strict=True)
        # Where nothing has any, pandas has made the gaps nan.
        dicts = {seed: of for seed, of in pairs if isinstance(of, dict)}
        whole = {seed: of for seed, of in dicts.items() if of and None not in of.values()}
        if not whole:
            raise NotRunError(f"no {kind} of {model}")
        return whole


def _rows(record: Record) -> list[dict[str, Any]]:
    config, data = record["config"], record.get("data", {})
    table = config["data"]
    row = {
        "experiment": record["experiment"],
        "model": record["model"],
        "seed": record["seed"],
        "table": table if isinstance(table, str) else table["name"],
        **config.get("point", {}),
    }
    if "cost" in record:
        row |= {"measure": config["measure"], "learnt": True}
        cost = dict(record["cost"])
        return [{**row, **cost.pop("seconds_per_epoch", {}), **cost}]
    stand_in = data.get("stands_in_for")
    row |= {
        **data,
        "source": f"{data['name']} (in place of {stand_in})" if stand_in else data["name"],
        "learnt": has_learnt(record),
        # Of mitigations, which have a rule of their own, the threshold says nothing.
        "threshold": None if config.get("threshold") is not None else record.get("threshold"),
        "parameters": record.get("parameters"),
        "peak_megabytes": record.get("peak_megabytes"),
        "first_column": next(iter(record["fairness"]), None),
        "attention": record["attention"].get("first"),
        "matrices": record["attention"],
        **{f"{part} seconds": value for part, value in record.get("seconds", {}).items()},
        **record["training"],
        **{kind: record["significance"].get(kind) for kind in ("significance", "split", "gain")},
    }
    return [
        {**row, "column": column, "subset": subset, **record["performance"][subset], **metrics}
        for column, by_subset in record["fairness"].items()
        for subset, metrics in by_subset.items()
    ]


def has_learnt(record: Record) -> bool:
    """Say whether a fit ranks rows better than chance does, by predictions that differ.

    A constant does not change under a flip either, and is of no use.
    """
    found = record["performance"]["test"]
    limits = {"AUROC": _CHANCE_AUROC, "Gini": _CHANCE_GINI}
    ranks = all((found[m] or 0) > limit for m, limit in limits.items() if m in found)
    warned = any(text.startswith(EQUAL_PREDICTIONS) for text in record.get("warnings", ()))
    return ranks and not warned


def compare(one: Mapping[int, float], two: Mapping[int, float]) -> Difference:
    """Compare values that belong to the same seeds."""
    seeds = sorted(set(one.keys()) & set(two.keys()))
    if not seeds:
        raise NotRunError("no seed of both")
    differences = np.array([one[seed] - two[seed] for seed in seeds])
    error = differences.std(ddof=1) / math.sqrt(len(seeds)) if len(seeds) > 1 else math.nan
    return Difference(float(differences.mean()), float(error), len(seeds))


def first_features(significance: Mapping[str, float], n_first: int) -> list[str]:
    """List the most significant features; of equal ones, the first named.

    Examples
    --------
    >>> first_features({"age": 0.1, "income": 2.0, "zip": 0.5}, 2)
    ['income', 'zip']
    """
    return sorted(significance, key=lambda name: -significance[name])[:n_first]


def count_shared(one: Mapping[str, float], other: Mapping[str, float], n_first: int) -> int:
    """Count the features that are among the first of both."""
    return len(set(first_features(one, n_first)) & set(first_features(other, n_first)))


def correlate_ranks(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Correlate ranks of the features that both have; nan if either has them all equal.

    Examples
    --------
    >>> correlate_ranks({"a": 1, "b": 2, "c": 9}, {"a": 0.5, "b": 0.1, "c": 0.7})
    0.5
    """
    shared = [name for name in one if name in other]
    values = [[of[name] for name in shared] for of in (one, other)]
    if any(len(set(of)) < 2 for of in values):
        return math.nan
    return float(spearmanr(*values).statistic)


def paper_figure(table: str, model: str, metric: str, subset: str = "test") -> float | None:
    """Return a figure that the paper prints, or None where it prints none.

    A table of ``configs/paper.toml`` that does not say which rows it is of is taken for both.

    Examples
    --------
    >>> paper_figure("adult_performance", "FCorr", "AUROC")
    0.9128
    """
    figure: float | None = paper_rows(table, subset).get(model, {}).get(metric)
    return figure


def paper_rows(table: str, subset: str = "train") -> dict[str, Any]:
    """Return the rows of one of the paper's tables, by model in its order."""
    rows: dict[str, Any] = read_config("paper").get(table, {})
    found: dict[str, Any] = rows.get(subset, {}) if "train" in rows else rows
    return found
