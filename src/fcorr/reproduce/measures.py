"""What is measured of a fitted model: the paper's metrics, on training and on test rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcorr.audit.measuring import Measured, read_rows
from fcorr.audit.measuring.classes import measure_decisions
from fcorr.audit.measuring.regression import measure_amounts
from fcorr.metrics import (
    accuracy_score,
    demographic_parity_difference,
    false_negative_rate,
    false_positive_rate,
    flip_scores,
    gini_score,
    percentage_error,
)
from fcorr.reproduce.data import Rows
from fcorr.reproduce.settings import Run

Floats = NDArray[np.float64]
Metrics = dict[str, float]


def measure(
    run: Run, score: Callable[[Any], Floats], rows: Rows, threshold: float | None
) -> tuple[Metrics, dict[str, Metrics]]:
    """Measure performance, and for each sensitive column what flips change and groups differ.

    Parameters
    ----------
    run : Run
        What was fitted.
    score : callable
        See :class:`fcorr.reproduce.models.Fitted`.
    rows : Rows
        Rows to measure on.
    threshold : float or None
        From which score on to decide, in classification.
    """
    performance: Metrics = {}
    fairness: dict[str, Metrics] = {}
    for column in run.sensitive:
        found, more = _measure_column(run, score, rows, column, threshold)
        performance = {**more, **found.performance}
        (groups,) = found.groups.values()
        fairness[column] = {**groups, **found.flip}
    return performance, fairness


def _measure_column(
    run: Run, score: Callable[[Any], Floats], rows: Rows, column: str, threshold: float | None
) -> tuple[Measured, Metrics]:
    flips = flip_scores(score, rows.X, [column])
    scores, exposure = flips.factual, rows.exposure
    audited = read_rows((rows.X, rows.y, exposure), column, "rows")
    if run.task == "classification":
        assert threshold is not None
        decisions = (scores >= threshold).astype(int)
        more = {
            "Accuracy": float(accuracy_score(rows.y, decisions)),
            "Accuracy at 0.5": float(accuracy_score(rows.y, scores >= 0.5)),  # as others print it
            "FPR": false_positive_rate(rows.y, decisions),
            "FNR": false_negative_rate(rows.y, decisions),
        }
        found = measure_decisions(flips, rows.y, audited, threshold)
        ((name, groups),) = audited.groups.items()
        # Some mitigations draw their decisions: their guarantee is about the probabilities.
        found.groups[name]["DPD of scores"] = demographic_parity_difference(
            None, scores, sensitive_features=groups
        )
        return found, more
    y = rows.y.astype(np.float64) if exposure is None else rows.y / exposure
    objective = run.arguments.get("objective", "mse")
    found = measure_amounts(flips, y, audited, objective)
    found.performance["normalised Gini"] = found.performance.pop("Gini")
    more = {
        "Gini": gini_score(y, scores, sample_weight=exposure),
        "PE": percentage_error(y, scores, sample_weight=exposure),
    }
    return found, more
