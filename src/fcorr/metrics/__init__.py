"""Metrics: numpy in, numbers out. No torch; scikit-learn and scipy only where they are needed.

How good the predictions are and whether groups bring what was expected of them (`insurance`, and
scikit-learn's own), whether groups fare alike (`group`), whether prices follow a group by way of
other columns (`proxies`), from which score on to decide (`thresholds`), whether a flip of the
sensitive column changes anything (`flips`), how sure all of that is
(`intervals`), and what share of the population sees a change at most, going by a sample of it
(`population`).

Several sensitive columns are taken together, as the combinations of their values, and a missing
value is one more value: ``flip_scores(predict, X, ["race", "sex"])`` and
``group_rates(y, decisions, sensitive_features=X[["race", "sex"]])``.

A row of ``sample_weight`` 0 is as if it were not there, whatever it holds, also to the metrics that
are scikit-learn's own.

A name that ends in ``_score`` is better the higher it is; one in ``_error``, ``_deviance``,
``_rate`` or ``_difference`` is better the closer it is to 0.
"""

import importlib
from typing import TYPE_CHECKING, Any

from fcorr.metrics._checks import leave_out_uncounted
from fcorr.metrics.flips import (
    FlippedScores,
    average_individual_fairness,
    decisions_flipped,
    flip_changes,
    flip_scores,
)
from fcorr.metrics.group import (
    GroupRates,
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
    group_rates,
)
from fcorr.metrics.insurance import (
    ActualExpected,
    ActualExpectedTable,
    DoubleLiftBin,
    LiftBin,
    LiftTable,
    LorenzCurve,
    actual_over_expected,
    lift_table,
    lorenz_curve,
    normalized_gini_score,
)
from fcorr.metrics.intervals import Interval, bootstrap_interval
from fcorr.metrics.population import PopulationBound, population_bound
from fcorr.metrics.proxies import (
    AdmissiblePrice,
    demographic_unfairness,
    nearest_admissible,
    proxy_discrimination,
)
from fcorr.metrics.thresholds import choose_threshold

if TYPE_CHECKING:
    from sklearn.metrics import (
        accuracy_score,
        average_precision_score,
        f1_score,
        mean_absolute_error,
        mean_gamma_deviance,
        mean_poisson_deviance,
        mean_tweedie_deviance,
        roc_auc_score,
        root_mean_squared_error,
    )

__all__ = [
    "ActualExpected",
    "ActualExpectedTable",
    "AdmissiblePrice",
    "DoubleLiftBin",
    "FlippedScores",
    "GroupRates",
    "Interval",
    "LiftBin",
    "LiftTable",
    "LorenzCurve",
    "PopulationBound",
    "accuracy_score",
    "actual_over_expected",
    "average_individual_fairness",
    "average_precision_score",
    "bootstrap_interval",
    "choose_threshold",
    "decisions_flipped",
    "demographic_parity_difference",
    "demographic_unfairness",
    "equal_opportunity_difference",
    "equalized_odds_difference",
    "f1_score",
    "flip_changes",
    "flip_scores",
    "group_rates",
    "lift_table",
    "lorenz_curve",
    "mean_absolute_error",
    "mean_gamma_deviance",
    "mean_poisson_deviance",
    "mean_tweedie_deviance",
    "nearest_admissible",
    "normalized_gini_score",
    "population_bound",
    "proxy_discrimination",
    "roc_auc_score",
    "root_mean_squared_error",
]

if not TYPE_CHECKING:  # a type checker would take every name for granted

    def __getattr__(name: str) -> Any:
        # What is listed and not defined here is scikit-learn's own, which takes half a second to
        # import: whoever asks only for our metrics does not wait for it.
        if name in __all__:
            # To scikit-learn's own, a class that only rows of weight 0 have is one more class.
            own = getattr(importlib.import_module("sklearn.metrics"), name)
            return globals().setdefault(name, leave_out_uncounted(own))
        raise AttributeError(f"module 'fcorr.metrics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
