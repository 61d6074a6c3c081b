"""The models of the experiments behind one face: fitted, they score any table."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcorr.estimators import (
    BaselineClassifier,
    BaselineRegressor,
    FCorrClassifier,
    FCorrRegressor,
)
from fcorr.reproduce.data import EXPOSURE, Rows
from fcorr.reproduce.mitigations import fit_mitigation
from fcorr.reproduce.settings import Run
from fcorr.reproduce.trees import fit_trees, importances

Floats = NDArray[np.float64]

_MOST_FEATURES = 100

_CLASSES: dict[tuple[bool, str], Any] = {
    (True, "classification"): FCorrClassifier,
    (True, "regression"): FCorrRegressor,
    (False, "classification"): BaselineClassifier,
    (False, "regression"): BaselineRegressor,
}


@dataclass(frozen=True)
class Fitted:
    """A fitted model.

    Attributes
    ----------
    score : callable
        From a table, with all its columns, to probabilities of the second class or to predictions
        per unit of exposure.
    n_parameters : int or None
        Learnt numbers of a network.
    significance : dict
        By its measures ("significance"; of trees "split" and "gain"), of each feature.
    attention : dict
        Mean attention matrices of the first and, of several layers, of the last layer.
    features : tuple of str
        Names of their rows.
    training : dict
        Epochs, λ and its first ratio, the engine.
    """

    score: Callable[[Any], Floats]
    n_parameters: int | None = None
    significance: dict[str, dict[str, float]] = field(default_factory=dict)
    attention: dict[str, Floats] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    training: dict[str, Any] = field(default_factory=dict)


def fit(run: Run, rows: Rows) -> Fitted:
    """Fit the model of a run."""
    if run.removed:
        return _fit_removed(run, rows)
    if run.kind == "lightgbm":
        trees = fit_trees(rows, run.task, run.seed, **run.arguments)
        return Fitted(trees.score, significance=importances(trees.booster))
    if run.kind == "fairlearn":
        return Fitted(fit_mitigation(rows, run.sensitive[0], run.seed, **run.arguments))
    return _fit_network(run, rows, run.sensitive[0])


def _fit_removed(run: Run, rows: Rows) -> Fitted:
    """Fit a model that never sees the sensitive columns."""
    columns = list(run.sensitive)
    left = Rows(rows.X.drop(columns=columns), rows.y, rows.exposed)
    if run.kind == "lightgbm":
        trees = fit_trees(left, run.task, run.seed, **run.arguments)
        found = Fitted(trees.score, significance=importances(trees.booster))
    else:
        found = _fit_network(run, left, None)
    return Fitted(
        lambda X: found.score(X.drop(columns=columns)),
        found.n_parameters,
        found.significance,
        training=found.training,
    )


def make_network(run: Run, sensitive: str | None, *, exposed: bool = False) -> Any:
    """Make the estimator of a run, not fitted yet."""
    is_fcorr = run.kind in ("printed", "fcorr")
    arguments = {**run.arguments, "random_state": run.seed, "constant_columns": "keep"}
    if sensitive is not None:
        arguments["sensitive"] = sensitive
    if run.kind == "printed":
        arguments["numeric_embedding"] = "paper"
    if not is_fcorr:
        arguments["network"] = run.kind
    if exposed:
        arguments["exposure"] = EXPOSURE
    return _CLASSES[is_fcorr, run.task](**arguments)


def _fit_network(run: Run, rows: Rows, sensitive: str | None) -> Fitted:
    model = make_network(run, sensitive, exposed=rows.exposed)
    model.fit(rows.X, rows.y)
    history = model.history_
    attention, features = _attention(model, rows)
    return Fitted(
        (lambda X: model.predict_proba(X)[:, 1])
        if run.task == "classification"
        else model.predict_rate,
        sum(parameter.numel() for parameter in model.model_.parameters()),
        {"significance": model.feature_significance()} if features else {},
        attention,
        features,
        {
            "epochs": len(history.epochs),
            "car_weight": history.car_weight,
            "car_ratio": history.car_ratio,
            "last_car": history.epochs[-1].car,
            "engine": history.engine,
        },
    )


def _attention(model: Any, rows: Rows) -> tuple[dict[str, Floats], tuple[str, ...]]:
    """Average attention over training rows; a network without any has none.

    Nobody could read a matrix of hundreds of features: the diagonal, their significance, is kept.
    """
    if getattr(model, "network", "") == "ffn":
        return {}, ()
    if len(model.schema_.feature_names) > _MOST_FEATURES:
        return {}, tuple(model.schema_.feature_names)
    some = rows.first(10_000).X
    first = model.attention(some)
    found = {"first": first.values}
    if getattr(model, "n_layers", 1) > 1:
        found["last"] = model.attention(some, layer=model.n_layers - 1).values
    return found, first.names
