"""FCorrTransformer with Counterfactual Attention Regularization.

A small tabular transformer that embeds every feature as one number, whose attention matrix reads
as feature dependencies, and whose predictions can be made not to depend on a sensitive column.

>>> from fcorr import FCorrClassifier
>>> from fcorr.data import make_proxy_bias
>>> X, y = make_proxy_bias(2_000, task="classification", random_state=0)
>>> model = FCorrClassifier(sensitive="S", n_members=2, epochs=5, random_state=0).fit(X, y)
>>> model.predict_proba(X).shape
(2000, 2)
"""

import importlib
from typing import TYPE_CHECKING, Any

from fcorr._version import __version__

if TYPE_CHECKING:
    from fcorr import audit, data, estimators, metrics, nn, training
    from fcorr._core import (
        InvalidInputError,
        ModelFileError,
        NotEstimableWarning,
        UnseenCategoryWarning,
    )
    from fcorr.audit.report import AuditResult, audit_model
    from fcorr.estimators import FCorrClassifier, FCorrRegressor, QuantileRepair, load
    from fcorr.estimators.scoring import Scorer, score_parquet, score_spark
    from fcorr.search.sweep import sweep

__all__ = [
    "AuditResult",
    "FCorrClassifier",
    "FCorrRegressor",
    "InvalidInputError",
    "ModelFileError",
    "NotEstimableWarning",
    "QuantileRepair",
    "Scorer",
    "UnseenCategoryWarning",
    "__version__",
    "audit",
    "audit_model",
    "data",
    "estimators",
    "load",
    "metrics",
    "nn",
    "score_parquet",
    "score_spark",
    "sweep",
    "training",
]

_ROOMS = ("audit", "data", "estimators", "metrics", "nn", "training")
_HOME = {  # of what is in none of the estimators
    "AuditResult": "fcorr.audit.report",
    "InvalidInputError": "fcorr._core",
    "ModelFileError": "fcorr._core",
    "NotEstimableWarning": "fcorr._core",
    "UnseenCategoryWarning": "fcorr._core",
    "audit_model": "fcorr.audit.report",
    "sweep": "fcorr.search.sweep",
}

if not TYPE_CHECKING:  # a type checker would take every name for granted

    def __getattr__(name: str) -> Any:
        # torch takes seconds to import; whoever asks only for a metric does not wait for it.
        if name in _ROOMS:
            return importlib.import_module(f"fcorr.{name}")
        if name in __all__:
            return getattr(importlib.import_module(_HOME.get(name, "fcorr.estimators")), name)
        raise AttributeError(f"module 'fcorr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
