"""Measure a classifier, of two or of more classes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from fcorr._core import InvalidInputError, enumerate_some
from fcorr.audit.measuring.results import Measured, Metrics
from fcorr.audit.measuring.rows import AuditRows, View
from fcorr.estimators import FCorrClassifier
from fcorr.metrics import (
    FlippedScores,
    accuracy_score,
    auprc_gap,
    auroc_gap,
    average_individual_fairness,
    average_precision_score,
    decisions_flipped,
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
    f1_gap,
    f1_score,
    flip_changes,
    flip_scores,
    roc_auc_score,
)

Weight = NDArray[np.float64] | None


def measure_classes(
    estimator: FCorrClassifier, rows: AuditRows, view: View, threshold: float | None
) -> Measured:
    """Measure a classifier; see :func:`fcorr.audit.measuring.measure`."""
    classes: list[Any] = estimator.classes_.tolist()
    unknown = [label for label in np.unique(rows.y).tolist() if label not in classes]
    if unknown:
        raise InvalidInputError(
            f"y must hold classes of the training table ({enumerate_some(classes)}), got "
            f"{enumerate_some(unknown)}. Correct or drop these rows."
        )
    if len(classes) > 2:
        return _measure_several(estimator, rows, view)
    return _measure_two(estimator, rows, view, threshold)


def _measure_two(
    estimator: FCorrClassifier, rows: AuditRows, view: View, threshold: float | None
) -> Measured:
    if threshold is None:
        assert estimator.threshold_ is not None  # two classes have one
        threshold = estimator.threshold_
    truth = (rows.y == estimator.classes_[1]).astype(int)
    return measure_decisions(_flip(estimator, rows, view, 1), truth, rows, threshold)


def measure_decisions(
    flips: FlippedScores, truth: NDArray[Any], rows: AuditRows, threshold: float
) -> Measured:
    """Measure any model of two classes by the probabilities it gives the second.

    Parameters
    ----------
    flips : FlippedScores
        The probabilities, for all values of the sensitive columns.
    truth : ndarray of 0 and 1, shape (n_rows,)
        Which rows are of the second class.
    rows : AuditRows
        Weights and groups of the rows.
    threshold : float
        The probability from which on the second class is decided.
    """
    weight: dict[str, Any] = {"sample_weight": rows.weight}
    decisions = (flips.factual >= threshold).astype(int)
    return Measured(
        "two classes",
        performance={
            "AUROC": float(roc_auc_score(truth, flips.factual, **weight)),
            "AUPRC": float(average_precision_score(truth, flips.factual, **weight)),
            "F1": float(f1_score(truth, decisions, zero_division=0.0, **weight)),
        },
        flip={
            "AvgIF": average_individual_fairness(flips, **weight),
            "F1 gap": f1_gap(truth, flips, threshold=threshold, **weight),
            "AUROC gap": auroc_gap(truth, flips, **weight),
            "AUPRC gap": auprc_gap(truth, flips, **weight),
            "largest change": flip_changes(flips, **weight)["max"],
            "decisions flipped": decisions_flipped(flips, threshold, **weight),
        },
        groups={
            name: _differences(truth, decisions, groups, rows.weight)
            for name, groups in rows.groups.items()
        },
    )


def _flip(estimator: FCorrClassifier, rows: AuditRows, view: View, of_class: int) -> FlippedScores:
    def score(X: Any) -> NDArray[np.float64]:
        return estimator.predict_proba(view(X))[:, of_class]

    return flip_scores(score, rows.X, list(rows.sensitive))


def _differences(
    truth: NDArray[Any], decisions: NDArray[Any], groups: list[Any], weight: Weight
) -> Metrics:
    metrics: dict[str, Callable[..., float]] = {
        "DPD": demographic_parity_difference,
        "EqOdd": equalized_odds_difference,
        "EqOpp": equal_opportunity_difference,
    }
    return {
        name: metric(truth, decisions, sensitive_features=groups, sample_weight=weight)
        for name, metric in metrics.items()
    }


def _measure_several(estimator: FCorrClassifier, rows: AuditRows, view: View) -> Measured:
    classes = estimator.classes_
    weight: dict[str, Any] = {"sample_weight": rows.weight}
    flips = [_flip(estimator, rows, view, k) for k in range(len(classes))]
    probabilities = np.column_stack([of_class.factual for of_class in flips])
    chosen = probabilities.argmax(axis=1)
    decisions = classes[chosen]
    return Measured(
        "several classes",
        performance={
            "accuracy": float(accuracy_score(rows.y, decisions, **weight)),
            "log loss": float(log_loss(rows.y, probabilities, labels=classes, **weight)),
        },
        flip={
            "AvgIF": max(average_individual_fairness(of_class, **weight) for of_class in flips),
            "largest change": max(flip_changes(of_class, **weight)["max"] for of_class in flips),
            "decisions flipped": _choices_flipped(flips, chosen, rows.weight),
        },
        groups={
            name: _worst_class(classes, rows.y, decisions, groups, rows.weight)
            for name, groups in rows.groups.items()
        },
    )


def _choices_flipped(flips: Sequence[FlippedScores], chosen: NDArray[Any], weight: Weight) -> float:
    """Share of the rows whose most probable class depends on the sensitive columns."""
    under_flips = np.stack([of_class.scores for of_class in flips]).argmax(axis=0)
    return float(np.average((under_flips != chosen[:, None]).any(axis=1), weights=weight))


def _worst_class(
    classes: NDArray[Any],
    y: NDArray[Any],
    decisions: NDArray[Any],
    groups: list[Any],
    weight: Weight,
) -> Metrics:
    by_class = [
        _differences((y == label).astype(int), (decisions == label).astype(int), groups, weight)
        for label in classes
    ]
    # numpy's max keeps a nan, where the built-in one may lose it.
    return {name: float(np.max([found[name] for found in by_class])) for name in by_class[0]}
