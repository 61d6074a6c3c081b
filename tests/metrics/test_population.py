"""Population statements: exact limits, and how often they are right."""

import numpy as np
import pytest
from scipy.stats import beta, binom

from fcorr.metrics import population_bound
from fcorr.metrics.population import _round_up


def test_share_is_the_limit_of_clopper_and_pearson():
    changes = np.r_[np.zeros(97), 1, 1, 1]
    bound = population_bound(changes, epsilon=0.5, confidence=0.9)
    assert bound.n_above == 3
    assert bound.alpha == pytest.approx(beta.ppf(0.9, 4, 97))
    # Its definition: so few rows above would be seen with probability 10 %.
    assert binom.cdf(3, 100, bound.alpha) == pytest.approx(0.1)
    assert population_bound(np.ones(5), epsilon=0.5).alpha == 1.0
    assert population_bound(np.zeros(100), epsilon=0).alpha == pytest.approx(1 - 0.05**0.01)


def test_change_is_the_smallest_order_statistic_that_is_enough():
    changes = np.random.default_rng(0).permutation(np.arange(1_000))
    bound = population_bound(changes, alpha=0.05)
    m = int(bound.epsilon) + 1  # the m-th smallest
    assert binom.cdf(m - 1, 1_000, 0.95) >= 0.95 > binom.cdf(m - 2, 1_000, 0.95)
    assert bound.n_above == 1_000 - m


@pytest.mark.parametrize("alpha", [0.01, 0.1])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_too_small_a_sample_says_how_many_rows_it_takes(alpha, confidence):
    needed = int(np.ceil(np.log(1 - confidence) / np.log(1 - alpha)))
    assert population_bound(np.zeros(needed), alpha=alpha, confidence=confidence).epsilon == 0
    bound = population_bound(np.zeros(needed - 1), alpha=alpha, confidence=confidence)
    assert bound.epsilon is None
    assert f"it takes {needed}" in str(bound)


@pytest.mark.parametrize("draw", ["continuous", "ties"])
def test_statements_hold_as_often_as_they_promise(draw):
    """4,000 samples: a coverage of 90 % is seen as at least 88.4 % but once in 2,000 runs."""
    rng = np.random.default_rng(0)
    n_samples, n_rows = 4_000, 200
    changes = rng.exponential(size=(n_samples, n_rows))
    if draw == "ties":
        changes = np.floor(2 * changes) / 2

    def share_above(epsilon):
        if draw == "ties":  # floor(2x)/2 > eps iff 2x >= floor(2 eps) + 1
            return np.exp(-(np.floor(2 * epsilon) + 1) / 2)
        return np.exp(-epsilon)

    by_alpha = [population_bound(row, alpha=0.1, confidence=0.9) for row in changes]
    right = np.mean([share_above(bound.epsilon) <= 0.1 + 1e-12 for bound in by_alpha])
    assert right >= 0.884
    by_epsilon = [population_bound(row, epsilon=2.0, confidence=0.9) for row in changes]
    right = np.mean([share_above(2.0) <= bound.alpha for bound in by_epsilon])
    assert right >= 0.884
    if draw == "continuous":  # and not more often than the counts' steps explain
        assert right <= 0.96


def test_what_is_shown_is_never_less_than_what_is_proven():
    bound = population_bound([0.95031] * 400, alpha=0.01, confidence=0.97)
    assert str(bound) == (
        "With 0.97 confidence at most 1 % of the population would see a change above 0.951 "
        "(0 of 400 sampled rows do)."
    )
    bound = population_bound([0.0] * 100, epsilon=0.01, confidence=0.99999)
    assert 10.8 < 100 * bound.alpha < 10.88
    assert str(bound).startswith("With 0.99999 confidence at most 10.9 % of the population")
    assert "a change above 0.01 (" in str(bound)
    tiny = np.r_[np.zeros(97), np.full(3, 5e-324)]  # epsilon 0 asks for any change at all
    assert str(population_bound(tiny, epsilon=0)) == (
        "With 0.95 confidence at most 7.58 % of the population would see any change "
        "(3 of 100 sampled rows do)."
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs one of epsilon and alpha"),
        ({"alpha": 0.1, "epsilon": 0.1}, "needs one of epsilon and alpha"),
        ({"alpha": float("nan")}, "alpha must lie between 0 and 1, got nan. Write"),
        ({"epsilon": -1.0}, "must be a finite number, 0 or more, got -1.0. Give the change"),
        ({"epsilon": float("inf")}, "epsilon must be a finite number, 0 or more, got inf"),
        ({"changes": [-0.1, 0.2], "alpha": 0.5}, "changes must not be negative"),
        ({"alpha": 0.1, "confidence": 95}, "confidence must lie between 0 and 1"),
    ],
)
def test_errors_name_the_rule(arguments, message):
    with pytest.raises(ValueError, match=message):
        population_bound(**{"changes": [0.0, 0.1], **arguments})


def test_bounds_are_shown_by_three_digits_and_never_smaller():
    assert [_round_up(0.01), _round_up(0.95031), _round_up(0.07, 100)] == ["0.01", "0.951", "7"]
