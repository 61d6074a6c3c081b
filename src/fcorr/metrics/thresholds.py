"""Thresholds: from which score on to decide positive, by F1, by false positives or by cost."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from fcorr._core import InvalidInputError, check_argument, is_number
from fcorr.metrics import _checks as checks
from fcorr.metrics._checks import Column, FloatArray, Weights

ThresholdRule = Literal["f1"] | Mapping[str, Any]
"""``"f1"``, ``{"fpr": 0.05}`` or ``{"cost": (c_fp, c_fn)}``."""

RULES = "'f1', {'fpr': a rate in [0, 1]} or {'cost': (of a false positive, of a false negative)}"


@checks.leave_out_uncounted
def choose_threshold(
    y_true: Column, y_score: Column, *, rule: ThresholdRule = "f1", sample_weight: Weights = None
) -> float:
    """Choose the score from which on a row is decided positive: ``y_score >= threshold``.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The classes, 0 or 1; both must occur.
    y_score : array-like of shape (n,)
        The scores.
    rule : {"f1"}, {"fpr": rate} or {"cost": (c_fp, c_fn)}, default="f1"
        ``"f1"``: the best F1. ``{"fpr": 0.05}``: the lowest threshold with a false-positive rate of
        at most 0.05. ``{"cost": (1, 20)}``: the least cost, where a false positive costs 1 and a
        false negative 20.
    sample_weight : array-like of shape (n,), optional
        How often each row counts; once when left out.

    Returns
    -------
    float
        A threshold half-way between two neighbouring scores, so that no row lies on it; ``-inf``
        to decide all rows positive, ``inf`` for none. Of equally good ones by F1 or cost it is the
        highest, which decides the fewest rows positive.

    Examples
    --------
    >>> y, scores = [0, 0, 1, 0, 1], [0.1, 0.2, 0.4, 0.6, 0.9]
    >>> choose_threshold(y, scores)
    0.30000000000000004
    >>> choose_threshold(y, scores, rule={"fpr": 0})
    0.75
    >>> choose_threshold(y, scores, rule={"cost": (1, 0)})
    inf
    """
    check_argument("rule", rule, is_threshold_rule(rule), RULES)
    columns = checks.as_columns(sample_weight, y_true=checks.as_classes(y_true), y_score=y_score)
    thresholds, true_positive, false_positive = _counts(*columns)
    n_positive, n_negative = true_positive[-1], false_positive[-1]
    if n_positive == 0 or n_negative == 0:
        raise InvalidInputError(
            f"y_true must hold 0 and 1 with a positive weight, got weights {n_negative:g} and "
            f"{n_positive:g}. Choose the threshold on rows of both classes."
        )
    if rule == "f1":
        quality = 2 * true_positive / (true_positive + false_positive + n_positive)
        return float(thresholds[np.argmax(quality)])
    assert isinstance(rule, Mapping)
    if "fpr" in rule:
        # The tolerance lets 5 of 100 weights that sum up with rounding be 5 %.
        allowed = false_positive <= rule["fpr"] * n_negative * (1 + 1e-12)
        return float(thresholds[allowed].min())
    cost_fp, cost_fn = rule["cost"]
    cost = cost_fp * false_positive + cost_fn * (n_positive - true_positive)
    return float(thresholds[np.argmin(cost)])


def is_threshold_rule(value: object) -> bool:
    """Tell whether a value is a :data:`ThresholdRule`."""
    match value:
        case str():
            return value == "f1"
        case {"fpr": rate, **others} if not others:
            return is_number(rate) and 0 <= rate <= 1
        case {"cost": [_, _] as costs, **others} if not others:
            return all(is_number(cost) and cost >= 0 for cost in costs) and any(costs)
    return False


def _counts(
    truth: FloatArray, score: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return all thresholds that differ in their decisions, and the weights decided positive.

    The first threshold decides no row positive, the last all.
    """
    levels, block = np.unique(score, return_inverse=True)
    half_way = levels[:-1] + (levels[1:] - levels[:-1]) / 2
    # Between neighbouring floats there is no third one.
    half_way = np.where(half_way > levels[:-1], half_way, levels[1:])
    thresholds = np.concatenate([[np.inf], half_way[::-1], [-np.inf]])

    def decided(weight: FloatArray) -> FloatArray:
        return np.append(0.0, np.cumsum(np.bincount(block, weights=weight)[::-1]))

    return thresholds, decided(weight * truth), decided(weight * (1 - truth))
