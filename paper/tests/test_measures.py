"""The paper's Gini index and error of the total, against their definitions."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fcorr.metrics import lorenz_curve
from paper.measures import gini_score, percentage_error


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
    assert gini_score(np.array(y_true), np.array(y_pred)) == pytest.approx(
        gini_over_all_orders(y_true, y_pred)
    )


def test_gini_with_unit_weights_is_the_formula_to_the_last_bit():
    y = np.array([0.0, 3.0, 1.0, 7.0, 7.5])
    assert gini_score(y, np.arange(5), sample_weight=np.ones(5)) == gini_by_the_formula(y)


def test_gini_is_that_of_the_curve_for_n_rows():
    rng = np.random.default_rng(1)
    y, prediction = rng.gamma(1, 100, 80), rng.integers(0, 9, 80)
    expected = lorenz_curve(y, prediction).gini * 80 / 79
    assert gini_score(y, prediction) == pytest.approx(expected, rel=1e-12)
    weight = rng.integers(1, 4, 80)
    repeated = np.repeat(y, weight), np.repeat(prediction, weight)
    assert gini_score(y, prediction, weight) == pytest.approx(gini_score(*repeated))


def test_what_cannot_be_estimated_is_nan_and_the_error_is_signed():
    nothing = np.zeros(2)
    assert np.isnan(gini_score(nothing, nothing))
    assert np.isnan(gini_score(np.ones(1), np.ones(1)))
    assert np.isnan(percentage_error(nothing, nothing))
    errors = [percentage_error(np.full(2, 100), np.full(2, level)) for level in (110, 90, 100)]
    assert errors == pytest.approx([0.1, -0.1, 0.0])
