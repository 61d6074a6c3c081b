"""Choose a point of a sweep: the most accurate one, within a budget where there is one."""

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fcorr._core import InvalidInputError, near_match, to_plain
from fcorr.audit.measuring import LOWER_IS_BETTER
from fcorr.audit.sweep.grid import Point
from fcorr.audit.sweep.summaries import Summary, main_metric, performance_metrics


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
    bound : float
        The largest certified bound of the seeds.
    exact : bool
        Whether no flip changes any prediction.
    budget : float or None
        What the bound was not to exceed.
    n_seeds : int
        How many models stand behind it.
    """

    name: str
    point: Point
    metric: str
    performance: float
    bound: float
    exact: bool
    budget: float | None
    n_seeds: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        plain: dict[str, Any] = to_plain({**vars(self), "reason": str(self)})
        return plain

    def __str__(self) -> str:
        best = "lowest" if self.metric in LOWER_IS_BETTER else "highest"
        among = (
            "" if self.budget is None else f" among models with a certified bound ≤ {self.budget:g}"
        )
        bound = "exact" if self.exact else f"certified bound {self.bound:.2g}"
        return (
            f"{self.name}: {best} {self.metric} on the validation rows{among} "
            f"({self.performance:.4g}, mean of {self.n_seeds} seed(s); {bound})"
        )


def check_budget(budget: Any) -> float | None:
    """Return a budget that is None, 0 or more, or say what is wrong with it."""
    if budget is None:
        return None
    is_number = isinstance(budget, numbers.Real) and not isinstance(budget, bool)
    if not is_number or not budget >= 0:
        raise InvalidInputError(
            f"budget must be a number of at least 0, or None, got {budget!r}. It is the largest "
            "change of a prediction that a flip may make; 0 stands for exact models only."
        )
    return float(budget)


def choose_summary(
    summaries: Sequence[Summary], budget: float | None, metric: str | None
) -> Summary:
    """Return the most accurate point, of those within the budget for all seeds.

    Of points that are equally accurate, the one with the smallest bound.
    """
    metric = check_metric(metric, summaries)
    within = [summary for summary in summaries if _is_within(summary, budget)]
    if not within:
        least = min(summaries, key=lambda summary: summary.bound)
        raise InvalidInputError(
            f"budget must be at least {least.bound:.3g}, the smallest certified bound reached "
            f"({least.name}), got {budget:g}. Raise it, or add an exact form to the grid: "
            "'invariance': ['adapt', 'marginal']."
        )
    known = [summary for summary in within if not math.isnan(summary.mean(metric))]
    if not known:
        raise InvalidInputError(
            f"The validation rows must allow {metric} to be estimated, got none for any point. "
            "Choose more rows, or choose by another metric."
        )
    sign = 1.0 if metric in LOWER_IS_BETTER else -1.0
    return min(known, key=lambda summary: (sign * summary.mean(metric), summary.bound))


def check_metric(metric: str | None, summaries: Sequence[Summary]) -> str:
    """Return the metric to choose by; by default the main one."""
    if metric is None:
        return main_metric(summaries)
    names = performance_metrics(summaries)
    if metric not in names:
        raise InvalidInputError(
            f"metric must be one of {', '.join(names)}, got {metric!r}.{near_match(metric, names)}"
        )
    return metric


def describe_choice(summary: Summary, budget: float | None, metric: str) -> Choice:
    """Put a chosen point into words."""
    return Choice(
        summary.name,
        summary.point,
        metric,
        summary.mean(metric),
        summary.bound,
        summary.exact,
        budget,
        len(summary.runs),
    )


def _is_within(summary: Summary, budget: float | None) -> bool:
    return budget is None or summary.exact or (budget > 0 and summary.bound <= budget)
