"""What is measured of a fitted model: the paper's metrics, on training and on test rows."""

import math
from typing import Any

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    mean_absolute_error,
    mean_tweedie_deviance,
    roc_auc_score,
    root_mean_squared_error,
)

from fcorr import metrics as m
from paper import gaps
from paper.experiments import Run
from paper.models import Floats, Rows, Score

Metrics = dict[str, float]

_POWERS = {"mse": 0.0, "poisson": 1.0, "tweedie": 1.5}  # of the deviances of the objectives


def measure(
    run: Run, score: Score, rows: Rows, threshold: float | None
) -> tuple[Metrics, dict[str, Metrics]]:
    """Measure performance, and for each sensitive column what flips change and groups differ.

    ``threshold`` says from which score on to decide, in classification.
    """
    performance: Metrics = {}
    fairness: dict[str, Metrics] = {}
    for column in run.sensitive:
        flips = m.flip_scores(score, rows.X, [column])
        if threshold is not None:
            performance, fairness[column] = _measure_decisions(flips, rows, threshold)
        else:
            objective = run.arguments.get("objective", "mse")
            performance, fairness[column] = _measure_amounts(flips, rows, objective)
    return performance, fairness


def _measure_decisions(
    flips: m.FlippedScores, rows: Rows, threshold: float
) -> tuple[Metrics, Metrics]:
    y, scores = rows.y, flips.factual
    decisions = (scores >= threshold).astype(int)
    groups: dict[str, Any] = {"sensitive_features": flips.groups}
    performance = {
        "Accuracy": float(accuracy_score(y, decisions)),
        "Accuracy at 0.5": float(accuracy_score(y, scores >= 0.5)),  # as others print it
        "FPR": _share(decisions[y == 0]),
        "FNR": _share(1 - decisions[y == 1]),
        "AUROC": float(roc_auc_score(y, scores)),
        "AUPRC": float(average_precision_score(y, scores)),
        "F1": float(f1_score(y, decisions, zero_division=0.0)),
    }
    return performance, {
        "DPD": m.demographic_parity_difference(y, decisions, **groups),
        "EqOdd": m.equalized_odds_difference(y, decisions, **groups),
        "EqOpp": m.equal_opportunity_difference(y, decisions, **groups),
        # Some mitigations draw their decisions: their guarantee is about the probabilities.
        "DPD of scores": m.demographic_parity_difference(None, scores, **groups),
        "AvgIF": m.average_individual_fairness(flips),
        "F1 gap": gaps.f1_gap(y, flips, threshold=threshold),
        "AUROC gap": gaps.auroc_gap(y, flips),
        "AUPRC gap": gaps.auprc_gap(y, flips),
        "largest change": m.flip_changes(flips)["max"],
        "decisions flipped": m.decisions_flipped(flips, threshold),
    }


def _measure_amounts(flips: m.FlippedScores, rows: Rows, objective: str) -> tuple[Metrics, Metrics]:
    """Measure predictions of amounts, or of frequencies, weighted by exposure."""
    predicted, exposure = flips.factual, rows.exposure
    y = rows.y.astype(np.float64) if exposure is None else rows.y / exposure
    weight: dict[str, Any] = {"sample_weight": exposure}
    by_group: dict[str, Any] = {"sensitive_features": flips.groups, **weight}
    power = _POWERS[objective]
    performance = {
        "Gini": gini_score(y, predicted, **weight),
        "PE": percentage_error(y, predicted, **weight),
        "deviance": float(mean_tweedie_deviance(y, predicted, power=power, **weight)),
        "RMSE": float(root_mean_squared_error(y, predicted, **weight)),
        "MAE": float(mean_absolute_error(y, predicted, **weight)),
        "normalised Gini": m.normalized_gini_score(y, predicted, **weight),
    }
    fairness = {"DPD": m.demographic_parity_difference(None, predicted, **by_group)}
    if objective != "mse":  # predictions are positive, so that they have ratios
        actual, expected = (m.group_rates(None, of, **by_group) for of in (y, predicted))
        ratios = [
            one.mean_prediction / other.mean_prediction
            for one, other in zip(actual, expected, strict=True)
            if one.weight > 0
        ]
        fairness["A/E gap"] = max(ratios) - min(ratios) if len(ratios) > 1 else math.nan
    fairness |= {
        "AvgIF": m.average_individual_fairness(flips, **weight),
        "RMSE gap": gaps.rmse_gap(y, flips, **weight),
        "MAE gap": gaps.mae_gap(y, flips, **weight),
        "largest change": m.flip_changes(flips, **weight)["max"],
    }
    return performance, fairness


def gini_score(y: Floats, predicted: Floats, sample_weight: Floats | None = None) -> float:
    """Gini index of the paper's appendix B, ``1 − 2/(N−1)·(N − Σ n·y_[n] / Σ y_[n])``.

    ``y_[n]`` is the amount with the n-th smallest prediction. 1 means that the highest prediction
    has the whole amount, 0 that the order says nothing about the amounts.

    NOTE[DIFF] The paper prints ``Σ n·y_[n]`` both above and below the line, which is always 1; the
    denominator here is ``Σ y_[n]``. Rows with equal predictions share the mean of their ranks, the
    average over all orders they could be put in, so that the order of the file cannot matter. A row
    of integer weight w counts as w tied rows: N becomes ``Σ w``, and a tied block of weight b above
    rows of weight L has the mean rank ``L + (b + 1)/2``.

    Examples
    --------
    >>> amounts = np.array([0, 0, 0, 100])
    >>> gini_score(amounts, np.array([1, 2, 3, 4])), gini_score(amounts, np.array([7, 7, 7, 7]))
    (1.0, 0.0)
    """
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    n_rows, total = weight.sum(), np.sum(weight * y)
    if total <= 0 or n_rows <= 1:
        return math.nan
    block = np.unique(predicted, return_inverse=True)[1]
    block_weight = np.bincount(block, weights=weight)
    mean_rank = np.cumsum(block_weight) - block_weight + (block_weight + 1) / 2
    amount_rank = np.sum(weight * y * mean_rank[block]) / total
    return float(1 - 2 / (n_rows - 1) * (n_rows - amount_rank))


def percentage_error(y: Floats, predicted: Floats, sample_weight: Floats | None = None) -> float:
    """Error of the predicted total, as a share of the observed one: ``Σ (ŷ − y) / Σ y``."""
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    total = np.sum(weight * y)
    return float(np.sum(weight * (predicted - y)) / total) if total else math.nan


def _share(events: Any) -> float:
    return float(np.mean(events)) if len(events) else math.nan
