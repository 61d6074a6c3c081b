"""Flip metrics against the paper's sums, written as loops over scipy's and scikit-learn's."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from fcorr._core import InvalidInputError, NotEstimableWarning
from fcorr.metrics import (
    FlippedScores,
    average_individual_fairness,
    decisions_flipped,
    flip_changes,
)
from fcorr.metrics.flips import sum_of_distances


def make_flips(n=120, n_categories=3):
    rng = np.random.default_rng(0)
    original, scores = rng.integers(0, n_categories, n), rng.random((n, n_categories))
    # Few distinct scores: ties are where ranks go wrong.
    flips = FlippedScores(tuple(range(n_categories)), original, np.round(scores, 1))
    return rng.integers(0, 2, n), flips, rng.random(n)


def by_the_papers_sum(compare, flips, weight):
    """Mean over original categories and ordered pairs, by a distance of the scores of rows."""
    n, total = len(flips.categories), 0.0
    for i in range(n):
        rows = flips.original == i
        pairs = permutations(flips.scores[rows].T, 2)
        total += sum(compare(rows, a, b, weight[rows]) for a, b in pairs)
    return total / (n * (n - 1))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_categories", [2, 3, 5])
def test_the_papers_sum_over_the_original_and_pairs_of_categories(n_categories, weighted):
    _, flips, weight = make_flips(n_categories=n_categories)
    options = {"sample_weight": weight} if weighted else {}
    expected = by_the_papers_sum(
        lambda _, a, b, w: wasserstein_distance(a, b, w, w),
        flips,
        weight if weighted else np.ones(len(flips)),
    )
    assert average_individual_fairness(flips, **options) == pytest.approx(expected)


def test_distances_do_not_depend_on_the_size_of_blocks(monkeypatch):
    _, flips, weight = make_flips(n_categories=5)
    expected = average_individual_fairness(flips, sample_weight=weight)
    monkeypatch.setattr("fcorr.metrics.flips.BLOCK_SIZE", 7)
    found = average_individual_fairness(flips, sample_weight=weight)
    assert found == pytest.approx(expected, rel=1e-12)


def test_decisions_are_at_the_threshold():
    flips = FlippedScores(("f", "m"), [0, 0, 1, 1], [[0.3, 0.2], [0, 0], [0.3, 0.3], [0, 0]])
    weight = [1, 1, 1, 5]
    shares = [decisions_flipped(flips, at, sample_weight=weight) for at in (0.5, 0.3, 0.31)]
    assert shares == [0.0, 0.125, 0.0]


@pytest.mark.parametrize("weight", [None, [2, 2, 0]], ids=["no rows", "no weight"])
def test_a_category_without_rows_is_left_out(weight):
    flips = FlippedScores(("a", "b", "c"), [0, 2, 1], [[0.0, 1, 2], [0, 1, 2], [0, 1, 9]])
    flips = flips if weight else flips.take([0, 1])
    with pytest.warns(
        NotEstimableWarning, match=r"1 of 3 .* have no rows .* 'b \(n=0\)'"
    ) as caught:
        value = average_individual_fairness(flips, sample_weight=weight)
    assert value == pytest.approx(16 / 6)
    assert caught[0].filename == __file__


def test_a_swap_that_the_distribution_hides_is_a_change_of_rows():
    flips = FlippedScores(("f", "m"), [0, 0, 1, 1], [[0.2, 0.8], [0.8, 0.2]] * 2)
    assert average_individual_fairness(flips) == 0.0
    assert flip_changes(flips)["mean"] == pytest.approx(0.6)
    assert decisions_flipped(flips) == 1.0
    change = np.arange(1, 101) / 4  # quantiles are changes of rows
    flips = FlippedScores(("f", "m"), np.arange(100) % 2, np.column_stack([0 * change, change]))
    expected = {"mean": 50.5, "max": 100, "q50": 50, "q90": 90, "q95": 95, "q99": 99}
    assert flip_changes(flips) == {name: value / 4 for name, value in expected.items()}


NO_FLIPS = r"FlippedScores, got ndarray\. Make them with flip_"
FLIPS = make_flips()[1]


@pytest.mark.parametrize(
    ("metrics", "flips", "options", "text"),
    [
        (
            [average_individual_fairness, flip_changes, decisions_flipped],
            *(np.zeros(3), {}, NO_FLIPS),
        ),
        (
            [decisions_flipped],
            *(FLIPS, {"threshold": np.nan}, "threshold must be a finite number, got nan. Choose"),
        ),
    ],
)
def test_bad_input(metrics, flips, options, text):
    for metric in metrics:
        with pytest.raises(InvalidInputError, match=text):
            metric(flips, **options)


# The sums over pairs themselves

# A few values with ties among them, and a few that no two samples share.
VALUE = st.one_of(st.integers(-2, 2).map(float), st.floats(-5, 5, allow_subnormal=False))
SAMPLES = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(VALUE, min_size=n, max_size=n), min_size=2, max_size=4),
        st.lists(st.sampled_from([0.25, 1.0, 3.0]), min_size=n, max_size=n),
    )
)


@given(SAMPLES)
@settings(max_examples=60)
def test_distances_agree_with_scipy(samples_and_weight):
    samples, weight = (np.array(values) for values in samples_and_weight)
    before = samples.copy()
    pairs = permutations(samples, 2)
    expected = sum(wasserstein_distance(a, b, weight, weight) for a, b in pairs)
    assert sum_of_distances(samples, weight) == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(samples, before)  # not sorted in place
