"""Thresholds against brute force, and the rules that there are."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from fcorr._core import InvalidInputError
from fcorr.metrics import choose_threshold
from fcorr.metrics.thresholds import is_threshold_rule

RULES = ["f1", {"fpr": 0.0}, {"fpr": 0.25}, {"fpr": 1.0}, {"cost": (1, 20)}, {"cost": (3.5, 1)}]


def brute_force(y, score, weight, rule):
    """Try the decisions of every threshold, the highest first, with the metrics' own formulas."""
    levels = np.unique(score[weight > 0])
    middles = [(low + high) / 2 for low, high in itertools.pairwise(levels)]
    best, chosen = -math.inf, math.inf
    for threshold in [math.inf, *reversed(middles), -math.inf]:
        decision = (score >= threshold).astype(int)
        if rule == "f1":
            quality = f1_score(y, decision, sample_weight=weight)
        elif "fpr" in rule:
            rate = np.average(decision[y == 0], weights=weight[y == 0])
            quality = -threshold if rate <= rule["fpr"] + 1e-12 else -math.inf
        else:
            errors = [weight[(decision == d) & (y == 1 - d)].sum() for d in (1, 0)]
            quality = -np.dot(rule["cost"], errors)
        if quality > best:
            best, chosen = quality, threshold
    return chosen


@pytest.mark.parametrize("rule", RULES, ids=str)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 1), st.integers(-4, 4), st.integers(0, 3)), min_size=2, max_size=12
    )
)
def test_brute_force_finds_the_same(rule, rows):
    assert is_threshold_rule(rule)
    y, score, weight = np.array(rows).T
    if not weight[y == 1].any() or not weight[y == 0].any():
        return
    chosen = choose_threshold(y, score, rule=rule, sample_weight=weight)
    assert chosen == brute_force(y, score, weight, rule)


def test_no_row_lies_on_the_threshold():
    scores = np.array([0.1, np.nextafter(0.1, 1), 0.7])
    chosen = choose_threshold([0, 1, 1], scores)
    assert ((scores >= chosen) == [False, True, True]).all()  # though there is no float between
    assert choose_threshold([0, 1, 1], [0.25, 0.5, 0.75]) == 0.375


def test_rate_that_weights_reach_by_rounding():
    score = np.arange(200.0)
    y = np.arange(200) % 2
    weight = np.full(200, 0.1)
    chosen = choose_threshold(y, score, rule={"fpr": 0.05}, sample_weight=weight)
    assert ((score >= chosen) & (y == 0)).sum() == 5


@pytest.mark.parametrize(
    "rule",
    [
        *("f2", 0.5, None, {}, {"fpr": 0.1, "cost": (1, 1)}, {"tpr": 0.5}, ["f1"]),
        *({"fpr": -0.1}, {"fpr": 1.1}, {"fpr": float("nan")}, {"fpr": "low"}, {"fpr": True}),
        *({"cost": 1}, {"cost": (1,)}, {"cost": (0, 0)}, {"cost": (1, -1)}, {"cost": "11"}),
    ],
    ids=str,
)
def test_rules_that_are_none(rule):
    assert not is_threshold_rule(rule)
    with pytest.raises(InvalidInputError, match=r"rule must be 'f1', \{'fpr': .*got "):
        choose_threshold([0, 1], [0.1, 0.2], rule=rule)


@pytest.mark.parametrize(
    ("y", "scores", "weight", "text"),
    [
        ([1, 1], [1, 2], [1, 1], "positive weight, got weights 0 and 2. Choose"),
        ([0, 1], [1, 2], [3, 0], "0 and 1 with a positive weight, got weights 3 and 0. Choose"),
    ],
)
def test_bad_input(y, scores, weight, text):
    with pytest.raises(InvalidInputError, match=text):
        choose_threshold(y, scores, sample_weight=weight)
