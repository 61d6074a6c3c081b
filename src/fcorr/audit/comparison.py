"""The same estimator with CAR, without it and with the sensitive column removed, side by side."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from fcorr.estimators import FCorrClassifier
from fcorr.metrics import (
    auprc_gap,
    auroc_gap,
    average_individual_fairness,
    average_precision_score,
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
    f1_gap,
    f1_score,
    flip_changes,
    flip_scores,
    roc_auc_score,
)

PLAIN = "FCorr"
WITH_CAR = "FCorr + CAR"
REMOVED = "FCorr, column removed"


@dataclass(frozen=True)
class ComparedModel:
    """One fitted model and what was measured of it on test rows."""

    name: str
    estimator: FCorrClassifier
    metrics: dict[str, float]


def compare_classifiers(
    train: tuple[Any, NDArray[Any]],
    test: tuple[Any, NDArray[Any]],
    *,
    sensitive: str,
    parameters: Mapping[str, Any],
    threshold: float = 0.5,
) -> list[ComparedModel]:
    """Fit three classifiers on the same rows with the same seed, and measure them.

    The model with the sensitive column removed is the honest company of any invariant model:
    its predictions do not change under a flip of a column that it never sees. The column is
    removed by holding it at one value, so that the three networks have the same layout: with
    one feature less, LayerNorm would see one number less, which for few features is much.

    Parameters
    ----------
    train, test : tuple (X, y)
        Tables and labels 0 and 1.
    sensitive : str
        The sensitive column.
    parameters : mapping
        Arguments of :class:`~fcorr.FCorrClassifier`; ``car`` is that of the model with CAR.
    threshold : float, default=0.5
        Score from which a row counts as selected.

    Returns
    -------
    list of ComparedModel
        Without CAR, with CAR, with the column removed.
    """
    variants = {
        PLAIN: {**parameters, "sensitive": sensitive, "car": None},
        WITH_CAR: {**parameters, "sensitive": sensitive},
        REMOVED: {**parameters, "sensitive": None, "constant_columns": "keep"},
    }
    models = []
    for name, arguments in variants.items():
        view = _held_constant(sensitive) if name == REMOVED else _as_it_is
        estimator = FCorrClassifier(**arguments)
        start = time.perf_counter()
        estimator.fit(view(train[0]), train[1])
        seconds = time.perf_counter() - start

        def score(
            X: Any, estimator: FCorrClassifier = estimator, view: _View = view
        ) -> NDArray[np.float64]:
            return estimator.predict_proba(view(X))[:, 1]

        metrics = measure(score, *test, sensitive=sensitive, threshold=threshold)
        metrics |= {"parameters": float(estimator.model_.n_parameters), "seconds": seconds}
        models.append(ComparedModel(name, estimator, metrics))
    return models


def measure(
    score: Callable[[Any], NDArray[np.float64]],
    X: Any,
    y: NDArray[Any],
    *,
    sensitive: str,
    threshold: float = 0.5,
) -> dict[str, float]:
    """Measure any scoring function: performance, change under flips, differences of groups."""
    flips = flip_scores(score, X, sensitive)
    scores = flips.factual
    decisions = (scores >= threshold).astype(int)
    groups = nw.from_native(X, eager_only=True).get_column(sensitive).to_numpy()
    by_group = {"sensitive_features": groups}
    return {
        "AUROC": float(roc_auc_score(y, scores)),
        "AUPRC": float(average_precision_score(y, scores)),
        "F1": float(f1_score(y, decisions)),
        "AvgIF": average_individual_fairness(flips),
        "F1 gap": f1_gap(y, flips, threshold=threshold),
        "AUROC gap": auroc_gap(y, flips),
        "AUPRC gap": auprc_gap(y, flips),
        "largest change": flip_changes(flips)["max"],
        "DPD": demographic_parity_difference(y, decisions, **by_group),
        "EqOdd": equalized_odds_difference(y, decisions, **by_group),
        "EqOpp": equal_opportunity_difference(y, decisions, **by_group),
    }


_View = Callable[[Any], Any]


def _as_it_is(X: Any) -> Any:
    return X


def _held_constant(column: str) -> _View:
    removed = nw.lit("removed").alias(column)
    return lambda X: nw.from_native(X, eager_only=True).with_columns(removed).to_native()
