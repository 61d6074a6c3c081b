"""Measure a regressor, per unit of exposure where it knows one."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcorr.audit.measuring.results import Measured, Metrics
from fcorr.audit.measuring.rows import AuditRows, View
from fcorr.data.encode import read_exposure
from fcorr.data.tables import read_table, resolve_columns
from fcorr.estimators import FCorrRegressor
from fcorr.estimators.regression import ObjectiveName
from fcorr.metrics import (
    FlippedScores,
    average_individual_fairness,
    demographic_parity_difference,
    flip_changes,
    flip_scores,
    gamma_deviance,
    group_rates,
    mae_gap,
    mean_absolute_error,
    normalized_gini_score,
    poisson_deviance,
    rmse_gap,
    root_mean_squared_error,
    tweedie_deviance,
)

Floats = NDArray[np.float64]


def measure_regression(estimator: FCorrRegressor, rows: AuditRows, view: View) -> Measured:
    """Measure a regressor; see :func:`fcorr.audit.measuring.measure`."""
    y, weights = _per_exposure(estimator, rows)

    def rate(X: Any) -> Floats:
        return estimator.predict_rate(view(X))

    flips = flip_scores(rate, rows.X, list(rows.sensitive))
    objective, power = estimator.objective_, float(estimator.tweedie_power)
    return measure_amounts(flips, y, replace(rows, weight=weights), objective, power)


def measure_amounts(
    flips: FlippedScores,
    y: Floats,
    rows: AuditRows,
    objective: ObjectiveName = "mse",
    tweedie_power: float = 1.5,
) -> Measured:
    """Measure any model of amounts or rates by its predictions.

    Parameters
    ----------
    flips : FlippedScores
        The predictions, for all values of the sensitive columns.
    y : ndarray of shape (n_rows,)
        The outcomes, in the unit of the predictions.
    rows : AuditRows
        Weights and groups of the rows.
    objective : {"mse", "poisson", "gamma", "tweedie"}, default="mse"
        What the model minimised: its deviance is measured. With all but the first, predictions are
        positive, so that they have ratios.
    tweedie_power : float, default=1.5
        Power of the Tweedie deviance.
    """
    weight: dict[str, Any] = {"sample_weight": rows.weight}
    predicted = flips.factual
    return Measured(
        "regression",
        performance={
            "deviance": _deviance(objective, tweedie_power, y, predicted, weight),
            "RMSE": float(root_mean_squared_error(y, predicted, **weight)),
            "MAE": float(mean_absolute_error(y, predicted, **weight)),
            "Gini": normalized_gini_score(y, predicted, **weight),
        },
        flip={
            "AvgIF": average_individual_fairness(flips, **weight),
            "RMSE gap": rmse_gap(y, flips, **weight),
            "MAE gap": mae_gap(y, flips, **weight),
            "largest change": flip_changes(flips, **weight)["max"],
        },
        groups={
            name: _differences(objective, y, predicted, {"sensitive_features": groups, **weight})
            for name, groups in rows.groups.items()
        },
    )


def _per_exposure(estimator: FCorrRegressor, rows: AuditRows) -> tuple[Floats, Floats | None]:
    """Return the outcomes per unit of exposure, and the weights of the rows."""
    y = rows.y.astype(np.float64)
    if estimator.exposure is None:
        return y, rows.weight
    table = read_table(rows.X)
    (name,) = resolve_columns(table, [estimator.exposure], "exposure")
    exposure = read_exposure(table, name)
    return y / exposure, exposure if rows.weight is None else exposure * rows.weight


def _deviance(
    objective: ObjectiveName, power: float, y: Floats, predicted: Floats, weight: dict[str, Any]
) -> float:
    """Return the deviance of the distribution that the objective stands for."""
    if objective == "poisson":
        return poisson_deviance(y, predicted, **weight)
    if objective == "gamma":
        return gamma_deviance(y, predicted, **weight)
    if objective == "tweedie":
        return tweedie_deviance(y, predicted, power=power, **weight)
    squares = (y - predicted) ** 2  # that of the normal distribution
    return float(np.average(squares, weights=weight["sample_weight"]))


def _differences(
    objective: ObjectiveName, y: Floats, predicted: Floats, by_group: dict[str, Any]
) -> Metrics:
    found = {"DPD": demographic_parity_difference(None, predicted, **by_group)}
    if objective != "mse":  # predictions are positive, so that they have ratios
        actual = group_rates(None, y, **by_group)
        expected = group_rates(None, predicted, **by_group)
        ratios = [
            of_y.mean_prediction / of_model.mean_prediction
            for of_y, of_model in zip(actual, expected, strict=True)
            if of_y.weight > 0
        ]
        found["A/E gap"] = max(ratios) - min(ratios) if len(ratios) > 1 else math.nan
    return found
