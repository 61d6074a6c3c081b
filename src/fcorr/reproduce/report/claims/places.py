"""Where several claims are checked: an experiment's table and one of its sensitive columns."""

from dataclasses import dataclass
from typing import Any

from fcorr.reproduce.report.claims.verdicts import NO_CHANGE, NOTHING
from fcorr.reproduce.report.results import Difference, Results


@dataclass(frozen=True)
class Place:
    """A table and a sensitive column.

    Attributes
    ----------
    experiment, column : str
        Whose records, and which column.
    table : str or None
        Which of the experiment's tables, where it has several.
    metrics : tuple of str
        What says how well a model predicts; more is better.
    """

    experiment: str
    column: str
    table: str | None = None
    metrics: tuple[str, ...] = ("AUROC", "AUPRC")

    @property
    def name(self) -> str:
        """What to call it in a line of evidence."""
        return f"{self.table or self.experiment} ({self.column})"

    @property
    def where(self) -> dict[str, Any]:
        """What to select its records by; see :meth:`Results.select`."""
        return {"column": self.column} | ({"table": self.table} if self.table else {})

    def mean(self, results: Results, model: str, metric: str) -> float:
        """Return the mean of a metric over seeds; nan if there is none."""
        return results.mean(self.experiment, model, metric, **self.where)

    def by_seed(self, results: Results, model: str, metric: str) -> dict[int, float]:
        """Return a metric of each seed."""
        return results.by_seed(self.experiment, model, metric, **self.where)

    def difference(
        self, results: Results, model: str, other: str, metric: str, subset: str = "test"
    ) -> Difference | None:
        """Compare two models seed by seed."""
        return results.difference(
            self.experiment, model, other, metric, subset=subset, **self.where
        )

    def limit(self, results: Results) -> float:
        """Return the AvgIF below which predictions are invariant; nan if it is not known."""
        if "AUROC" in self.metrics:
            return NO_CHANGE
        # Amounts and frequencies have scales of their own: what is left, beside what was there.
        return NOTHING * self.mean(results, "FCorr", "AvgIF")


FRAUD = Place("baf", "customer_age")
ADULT = (Place("adult", "race"), Place("adult", "sex"))
CLASSIFIED = (FRAUD, *ADULT)
"""Where there are decisions."""

AMOUNTS = Place("claims", "credit_score", metrics=("Gini",))
MOTOR = (
    Place("motor", "sex", "bemtpl97", ("Gini",)),
    Place("motor", "DrivAge", "fremtpl2", ("Gini",)),
)
