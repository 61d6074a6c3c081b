"""LightGBM, and the threshold that it settles with its default settings, as the paper has it."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcorr._core import require
from fcorr.metrics import choose_threshold
from fcorr.reproduce.data import EXPOSURE, Rows, load_split
from fcorr.reproduce.settings import DataSettings

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trees:
    """Fitted trees: ``score`` as in :class:`fcorr.reproduce.models.Fitted`."""

    score: Callable[[Any], Floats]
    booster: Any


def fit_trees(rows: Rows, task: str, seed: int, **arguments: Any) -> Trees:
    """Fit LightGBM; of rows with exposure, the frequency by its Poisson objective."""
    lightgbm = require("lightgbm", extra="bench", purpose="fcorr reproduce")
    shared: dict[str, Any] = {
        "random_state": seed,
        "n_jobs": 1,
        "deterministic": True,
        "force_row_wise": True,
        "bin_construct_sample_cnt": max(200_000, len(rows)),  # all: no seed plays a part
        "verbose": -1,
    }
    X, y, exposure = rows.features, rows.y, rows.exposure
    if task == "classification":
        classifier = lightgbm.LGBMClassifier(**shared, **arguments).fit(X, y)
        return Trees(lambda X: classifier.predict_proba(X)[:, 1], classifier)
    regressor = lightgbm.LGBMRegressor(**shared, **arguments)
    if exposure is None:
        regressor.fit(X, y)
        return Trees(regressor.predict, regressor)
    regressor.fit(X, y / exposure, sample_weight=exposure)
    return Trees(lambda X: regressor.predict(X.drop(columns=EXPOSURE)), regressor)


def importances(booster: Any) -> dict[str, dict[str, float]]:
    """List LightGBM's two importances: how often a feature splits, and what its splits gain."""
    names = booster.booster_.feature_name()
    kinds = {kind: booster.booster_.feature_importance(kind) for kind in ("split", "gain")}
    return {
        kind: dict(zip(names, values.astype(float).tolist(), strict=True))
        for kind, values in kinds.items()
    }


@functools.lru_cache(maxsize=4)
def papers_threshold(data: DataSettings, seed: int) -> float:
    """Return the threshold of LightGBM's best F1 on the training rows, the paper's protocol."""
    train = load_split(data, seed).train
    trees = fit_trees(train, "classification", seed, n_estimators=data.n_trees)
    return choose_threshold(train.y, trees.score(train.X), rule="f1")
