"""Rates, the Gini index and balance, against their definitions."""

from functools import partial
from itertools import permutations, product

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from fcorr._core import InvalidInputError, NotEstimableWarning
from fcorr.metrics import (
    equal_opportunity_difference,
    equalized_odds_difference,
    false_negative_rate,
    false_positive_rate,
    gini_score,
    percentage_error,
)

WRITTEN_HERE = [false_negative_rate, false_positive_rate, gini_score, percentage_error]


def gini_by_the_formula(y_in_order):
    n = len(y_in_order)
    ranks = np.arange(1, n + 1)
    return float(1 - 2 / (n - 1) * (n - np.sum(ranks * y_in_order) / np.sum(y_in_order)))


def gini_over_all_orders(y_true, y_pred):
    """Average the formula over every order of the rows that the predictions allow."""
    blocks = [
        [y for y, p in zip(y_true, y_pred, strict=True) if p == q] for q in sorted(set(y_pred))
    ]
    orders = product(*(permutations(block) for block in blocks))
    return float(np.mean([gini_by_the_formula(np.concatenate(order)) for order in orders]))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=2, max_size=6).filter(
        lambda rows: any(y for y, _ in rows)
    )
)
@settings(max_examples=60, deadline=None)
def test_gini_is_the_average_over_all_orders_of_ties(rows):
    y_true, y_pred = zip(*rows, strict=True)
    assert gini_score(y_true, y_pred) == pytest.approx(gini_over_all_orders(y_true, y_pred))


def test_gini_with_unit_weights_is_the_formula_to_the_last_bit():
    y = np.array([0.0, 3.0, 1.0, 7.0, 7.5])
    assert gini_score(y, np.arange(5), sample_weight=np.ones(5)) == gini_by_the_formula(y)


def test_rates_agree_with_the_confusion_matrix():
    rng = np.random.default_rng(0)
    y_true, y_pred, weight = rng.integers(0, 2, 50), rng.integers(0, 2, 50), rng.random(50)
    matrix = sklearn.metrics.confusion_matrix(y_true, y_pred, sample_weight=weight)
    (tn, fp), (fn, tp) = matrix
    fpr = false_positive_rate(y_true, y_pred, sample_weight=weight)
    fnr = false_negative_rate(y_true, y_pred, sample_weight=weight)
    assert (fpr, fnr) == (pytest.approx(fp / (fp + tn)), pytest.approx(fn / (fn + tp)))


def test_percentage_error_is_signed():
    errors = [percentage_error([100, 100], [level, level]) for level in (110, 90, 100)]
    assert errors == pytest.approx([0.1, -0.1, 0.0])


@pytest.mark.parametrize(
    ("metric", "y_true", "text"),
    [
        (false_positive_rate, [1, 1], "none of the 2 rows has y_true = 0"),
        (false_negative_rate, [0, 0], "none of the 2 rows has y_true = 1"),
        (gini_score, [0, 0], "a positive sum, got 0"),
        (gini_score, [3], "a total weight above 1, got 1, in 1 rows"),
        (percentage_error, [0, 0], "y_true sums to zero over 2 rows"),
    ],
)
def test_not_estimable_is_nan_with_the_reason(metric, y_true, text):
    with pytest.warns(NotEstimableWarning, match=text) as caught:
        assert np.isnan(metric(y_true, np.ones(len(y_true))))
    assert caught[0].filename == __file__  # the line that asked, not one of ours


@pytest.mark.parametrize("metric", WRITTEN_HERE)
@pytest.mark.parametrize(
    ("y_true", "y_pred", "weight", "text"),
    [
        ([1, 0], [1], None, "same number of rows, got y_true 2, y_pred 1. Take them from"),
        ([], [], None, "y_true must have rows, got none. Check how"),
        ([1, np.nan], [1, 0], None, r"y_true must be finite, got 1 missing .* of 2 .* row 1"),
        ([1, None], [1, 0], None, r"y_true must be finite, got 1 missing"),
        ([1, 0], [np.inf, 0], None, r"y_pred must be finite, .*\(inf\) in row 0. Drop or repair"),
        (["yes", "no"], [1, 0], None, "y_true must hold numbers, got list"),
        ([[1, 0], [0, 1]], [1, 0], None, r"y_true must be one column, got .* shape \(2, 2\)"),
        ([1, 0], [1, 0], [1, -2], "non-negative, got -2 in row 1. Give a row .* weight 0"),
        ([1, 0], [1, 0], [0, 0], "positive for some row, got zeros only. Leave it out"),
        ([1, 0], [1, 0], [1, 1, 1], "one value per row, got 3 for 2 rows. Take it from"),
    ],
)
def test_bad_input(metric, y_true, y_pred, weight, text):
    with pytest.raises(InvalidInputError, match=text):
        metric(y_true, y_pred, sample_weight=weight)


@pytest.mark.parametrize(
    "rate",
    [
        *(false_negative_rate, false_positive_rate),
        partial(equal_opportunity_difference, sensitive_features=["f", "m"]),
        partial(equalized_odds_difference, sensitive_features=["f", "m"]),
    ],
)
def test_rates_ask_for_decisions(rate):
    with pytest.raises(InvalidInputError, match=r"only, got 0.7 in row 1. Threshold scores"):
        rate([0, 1], [0, 0.7])
    with pytest.raises(InvalidInputError, match=r"only, got 2 in row 1. Code the classes"):
        rate([0, 2], [0, 1])
