"""The numbers that were measured of one model."""

from dataclasses import dataclass
from typing import Any, Literal

Metrics = dict[str, float]
Task = Literal["two classes", "several classes", "regression"]

MAIN_METRIC: dict[Task, str] = {
    "two classes": "AUROC",
    "several classes": "log loss",
    "regression": "deviance",
}
"""What performance means in one number."""

LOWER_IS_BETTER = ("log loss", "deviance", "RMSE", "MAE")


@dataclass(frozen=True)
class Measured:
    """What was measured of one model; nan is what the rows cannot give.

    Attributes
    ----------
    task : str
        "two classes", "several classes" or "regression".
    performance : dict
        AUROC, AUPRC and F1; accuracy and log loss; or deviance, RMSE, MAE and the normalised Gini
        index, per unit of exposure and weighted by it where the model knows one.
    flip : dict
        AvgIF, gaps, the largest change of a prediction and the share of decisions flipped, all
        sensitive columns flipped together. Of several classes, the largest of the classes.
    groups : dict of dicts
        For each grouping DPD, EqOdd and EqOpp, of several classes the largest; of a regression the
        difference of mean predictions, and with a log link that of actual over expected.
    """

    task: Task
    performance: Metrics
    flip: Metrics
    groups: dict[str, Metrics]

    def flat(self) -> Metrics:
        """List all numbers under one name each."""
        return {**self.performance, **self.flip, **flatten_groups(self.groups)}


def flatten_groups(groups: dict[str, Any]) -> dict[str, Any]:
    """Name group metrics by metric, and by grouping where there are several.

    Examples
    --------
    >>> flatten_groups({"sex": {"DPD": 0.1}, "race": {"DPD": 0.2}})
    {'DPD, sex': 0.1, 'DPD, race': 0.2}
    """
    return {
        metric if len(groups) == 1 else f"{metric}, {grouping}": value
        for grouping, metrics in groups.items()
        for metric, value in metrics.items()
    }
