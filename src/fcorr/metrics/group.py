"""Group metrics: whether groups fare alike, with fairlearn's arguments, and the table behind them.

A rate that a group's rows cannot give (no rows, no positives, no negatives) is *not estimable*: the
group is left out of that rate with a `NotEstimableWarning`, and a metric for which fewer than two
groups remain is nan. Neither a 0 nor a crash would say that the data has no answer.

Rows whose label is missing are a group of their own, None. Several sensitive columns make one group
of each combination that occurs, labelled by a tuple: intersections such as ("Black", "Female").
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fcorr._core import enumerate_some
from fcorr.metrics._checks import (
    Column,
    FloatArray,
    Weights,
    as_columns,
    as_decisions,
    check_same_length,
    describe_label,
    encode_groups,
    is_binary,
    leave_out_uncounted,
    not_estimable,
)

_Rate = Literal["mean_prediction", "tpr", "fpr"]
_CONDITION: dict[_Rate, str] = {"mean_prediction": "rows", "tpr": "positives", "fpr": "negatives"}


@dataclass(frozen=True)
class GroupRates:
    """What the predictions are like in one group; nan is a rate that its rows cannot give.

    Attributes
    ----------
    group : object
        The group's label: None where it is missing, a tuple for several columns.
    n, weight : int, float
        Its number of rows, and their total weight.
    mean_prediction : float
        Mean prediction: the selection rate for decisions, the mean amount for regression.
    tpr, fpr : float
        Share decided positive among the group's positives and among its negatives; nan as well
        when the predictions are not decisions.
    """

    group: Any
    n: int
    weight: float
    mean_prediction: float
    tpr: float
    fpr: float


@leave_out_uncounted
def group_rates(
    y_true: Column | None, y_pred: Column, *, sensitive_features: Any, sample_weight: Weights = None
) -> list[GroupRates]:
    """Count each group and average the predictions in it; equal lines mean equal treatment.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None
        The outcomes. With None, or when they or the predictions are not all 0 or 1, the true and
        false positive rates are nan.
    y_pred : array-like of shape (n,)
        Decisions (0 or 1), scores or amounts.
    sensitive_features : column of n labels, or several
        Each row's group: a list or a numpy, pandas, polars or pyarrow column, or a table, a
        two-dimensional array or a mapping of several columns, whose combinations are the groups.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure); once when left out. A row of weight 0 is as if it
        were not there, and so is a group of no others.

    Returns
    -------
    list of GroupRates
        One line per group, sorted by label, a missing one last; `pandas.DataFrame` takes them.

    Examples
    --------
    >>> table = group_rates([0, 1, 1, 0], [0, 1, 0, 0], sensitive_features=["f", "f", "m", "m"])
    >>> table[1]
    GroupRates(group='m', n=2, weight=2.0, mean_prediction=0.0, tpr=0.0, fpr=0.0)
    >>> both = {"sex": ["f", "f", "m", "m"], "race": ["a", "b", "b", None]}
    >>> [line.group for line in group_rates(None, [0, 1, 0, 0], sensitive_features=both)]
    [('f', 'a'), ('f', 'b'), ('m', 'b'), ('m', None)]
    """
    if y_true is None:
        prediction, weight = as_columns(sample_weight, y_pred=y_pred)
        return _tabulate(None, prediction, weight, sensitive_features)
    truth, prediction, weight = as_columns(sample_weight, y_true=y_true, y_pred=y_pred)
    are_decisions = (is_binary(truth) & is_binary(prediction)).all()
    return _tabulate(truth if are_decisions else None, prediction, weight, sensitive_features)


@leave_out_uncounted
def demographic_parity_difference(
    y_true: Any, y_pred: Column, *, sensitive_features: Any, sample_weight: Weights = None
) -> float:
    """Largest difference between two groups' mean predictions.

    ``max_{j,k} |E(ŷ | s_j) − E(ŷ | s_k)|``. 0 means that all groups have the same mean; lower is
    better. The predictions are decisions for classification, which makes it the difference of
    selection rates, and amounts for regression. Parameters as in :func:`group_rates`, but `y_true`
    is ignored: it is here so that all metrics are called alike. nan when fewer than two groups have
    rows.

    Examples
    --------
    >>> sex = ["f", "f", "m", "m"]
    >>> demographic_parity_difference(None, [1, 1, 1, 0], sensitive_features=sex)
    0.5
    """
    table = group_rates(
        None, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight
    )
    return _largest_difference(table, "mean_prediction", "demographic_parity_difference")


@leave_out_uncounted
def equal_opportunity_difference(
    y_true: Column, y_pred: Column, *, sensitive_features: Any, sample_weight: Weights = None
) -> float:
    """Largest difference between two groups' true positive rates.

    ``max_{j,k} |P(ŷ=1 | s_j, y=1) − P(ŷ=1 | s_k, y=1)|``. 0 means that positives are found equally
    often in all groups; lower is better. Parameters as in :func:`group_rates`, of classes and
    decisions, 0 or 1; nan when fewer than two groups have positives.

    Examples
    --------
    >>> y, decisions, sex = [1, 0, 1, 0], [1, 0, 1, 1], ["f", "f", "m", "m"]
    >>> equal_opportunity_difference(y, decisions, sensitive_features=sex)
    0.0
    >>> equalized_odds_difference(y, decisions, sensitive_features=sex)
    1.0
    """
    truth, decision, weight = as_decisions(y_true, y_pred, sample_weight)
    table = _tabulate(truth, decision, weight, sensitive_features)
    return _largest_difference(table, "tpr", "equal_opportunity_difference")


@leave_out_uncounted
def equalized_odds_difference(
    y_true: Column, y_pred: Column, *, sensitive_features: Any, sample_weight: Weights = None
) -> float:
    """Larger of the differences in true and in false positive rates between two groups.

    ``max_{j,k} max_{y∈{0,1}} |P(ŷ=1 | s_j, y) − P(ŷ=1 | s_k, y)|``. 0 means that positives and
    negatives are decided positive equally often in all groups; lower is better. Parameters as in
    :func:`equal_opportunity_difference`; nan when fewer than two groups have positives, or fewer
    than two have negatives: one half of the odds alone would understate it.
    """
    truth, decision, weight = as_decisions(y_true, y_pred, sample_weight)
    table = _tabulate(truth, decision, weight, sensitive_features)
    of_positives = _largest_difference(table, "tpr", "equalized_odds_difference")
    of_negatives = _largest_difference(table, "fpr", "equalized_odds_difference")
    return float(np.maximum(of_positives, of_negatives))  # unlike the built-in max, it keeps a nan


def _tabulate(
    truth: FloatArray | None, prediction: FloatArray, weight: FloatArray, sensitive_features: Any
) -> list[GroupRates]:
    groups, codes = encode_groups(sensitive_features)
    check_same_length(y_pred=prediction, sensitive_features=codes)

    def mean(weight: FloatArray) -> FloatArray:
        mass = np.bincount(codes, weights=weight)
        with np.errstate(invalid="ignore"):  # 0/0 is nan, which is "not estimable" in this table
            return np.bincount(codes, weights=weight * prediction) / mass

    unknown = np.full(len(groups), np.nan)
    columns = (
        np.bincount(codes),
        np.bincount(codes, weights=weight),
        mean(weight),
        unknown if truth is None else mean(weight * truth),
        unknown if truth is None else mean(weight * (1 - truth)),
    )
    lines = zip(groups, *(column.tolist() for column in columns), strict=True)
    return [GroupRates(*line) for line in lines]


def _largest_difference(table: list[GroupRates], rate: _Rate, metric: str) -> float:
    known = [value for line in table if not math.isnan(value := getattr(line, rate))]
    left_out = [line for line in table if math.isnan(getattr(line, rate))]
    named = enumerate_some([f"{describe_label(line.group)} (n={line.n})" for line in left_out])
    condition, reason = _CONDITION[rate], ""
    if len(known) < 2:
        reason = (
            f": it compares groups that have {condition}, which {len(known)} of {len(table)} have. "
            f"Without: {named or 'none'}."
        )
    elif left_out:
        reason = (
            f" for {len(left_out)} of {len(table)} groups, which have no {condition} and are left "
            f"out: {named}."
        )
    if reason:
        not_estimable(f"{metric} is not estimable{reason}", stacklevel=5)
    return max(known) - min(known) if len(known) > 1 else math.nan
