"""Metrics: numpy in, numbers out. No torch; scikit-learn and scipy only where they are needed.

Whether predictions order risks and groups bring what was expected of them (`insurance`; areas,
errors and deviances are in `sklearn.metrics`), whether groups fare alike (`group`), whether prices
follow a group by way of other columns (`proxies`), from which score on to decide (`thresholds`),
whether a flip of the sensitive column changes anything (`flips`), how sure all of that is
(`intervals`), and what share of the population sees a change at most, going by a sample of it
(`population`).

Several sensitive columns are taken together, as the combinations of their values, and a missing
value is one more value: ``flip_scores(predict, X, ["race", "sex"])`` and
``group_rates(y, decisions, sensitive_features=X[["race", "sex"]])``.

A row of ``sample_weight`` 0 is as if it were not there, whatever it holds.

A name that ends in ``_score`` is better the higher it is; one in ``_difference`` is better the
closer it is to 0.
"""

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
    "actual_over_expected",
    "average_individual_fairness",
    "bootstrap_interval",
    "choose_threshold",
    "decisions_flipped",
    "demographic_parity_difference",
    "demographic_unfairness",
    "equal_opportunity_difference",
    "equalized_odds_difference",
    "flip_changes",
    "flip_scores",
    "group_rates",
    "lift_table",
    "lorenz_curve",
    "nearest_admissible",
    "normalized_gini_score",
    "population_bound",
    "proxy_discrimination",
]
