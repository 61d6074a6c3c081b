"""Mitigations of fairlearn round LightGBM: company from outside the paper."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcorr._core import require
from fcorr.reproduce.data import Rows

Floats = NDArray[np.float64]

_GRID_SIZE = 30  # of GridSearch, a little more than it recommends for five groups


def fit_mitigation(
    rows: Rows, sensitive: str, seed: int, *, method: str, constraint: str, **arguments: Any
) -> Callable[[Any], Floats]:
    """Fit a mitigation; return a function from a table to probabilities of a positive decision.

    Parameters
    ----------
    rows : Rows
        Rows to learn from. LightGBM sees all columns, also the sensitive one.
    sensitive : str
        The column whose groups should fare alike.
    seed : int
        Of LightGBM.
    method : {"ExponentiatedGradient", "GridSearch", "ThresholdOptimizer"}
        Class of fairlearn.
    constraint : str
        What it should achieve.
    **arguments
        LightGBM's.
    """
    lightgbm = require("lightgbm", extra="bench", purpose="fcorr reproduce")
    reductions = require("fairlearn.reductions", extra="bench", purpose="fcorr reproduce")
    trees = lightgbm.LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1, **arguments)
    groups = rows.X[sensitive]
    if method == "ThresholdOptimizer":
        postprocessing = require(
            "fairlearn.postprocessing", extra="bench", purpose="fcorr reproduce"
        )
        optimizer = postprocessing.ThresholdOptimizer(
            estimator=trees, constraints=constraint, predict_method="predict_proba"
        )
        optimizer.fit(rows.X, rows.y, sensitive_features=groups)
        # The probability with which it would decide: its own decisions are drawn by it.
        return lambda X: optimizer._pmf_predict(X, sensitive_features=X[sensitive])[:, 1]
    moment = getattr(reductions, constraint)()
    if method == "GridSearch":
        search = reductions.GridSearch(trees, constraints=moment, grid_size=_GRID_SIZE)
        search.fit(rows.X, rows.y, sensitive_features=groups)
        return lambda X: search.predict_proba(X)[:, 1]
    gradient = reductions.ExponentiatedGradient(trees, constraints=moment)
    gradient.fit(rows.X, rows.y, sensitive_features=groups)
    return lambda X: gradient._pmf_predict(X)[:, 1]
