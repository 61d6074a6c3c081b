"""Flip metrics against the paper's sums, written as loops over scipy's and scikit-learn's."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    mean_absolute_error,
    roc_auc_score,
    root_mean_squared_error,
)

from fcorr._core import InvalidInputError, NotEstimableWarning
from fcorr.metrics import (
    FlippedScores,
    average_individual_fairness,
    decisions_flipped,
    flip_changes,
)
from fcorr.metrics.counterfactual import sum_of_distances
from paper.gaps import auprc_gap, auroc_gap, f1_gap, mae_gap, rmse_gap

CLASS_GAPS = [f1_gap, auroc_gap, auprc_gap]


def f1_at_half(y_true, scores, sample_weight):
    return f1_score(y_true, scores >= 0.5, sample_weight=sample_weight)


def avgif(y_true, flips, **options):
    return average_individual_fairness(flips, **options)


ORACLES = {
    f1_gap: f1_at_half,
    auroc_gap: roc_auc_score,
    auprc_gap: average_precision_score,
    rmse_gap: root_mean_squared_error,
    mae_gap: mean_absolute_error,
}


def make_flips(n=120, n_categories=3):
    rng = np.random.default_rng(0)
    original, scores = rng.integers(0, n_categories, n), rng.random((n, n_categories))
    # Few distinct scores: ties are where ranks go wrong.
    flips = FlippedScores(tuple(range(n_categories)), original, np.round(scores, 1))
    return rng.integers(0, 2, n), flips, rng.random(n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_categories", [2, 3, 5])
@pytest.mark.parametrize("metric", [avgif, *ORACLES])
def test_the_papers_sum_over_the_original_and_pairs_of_categories(metric, n_categories, weighted):
    y_true, flips, weight = make_flips(n_categories=n_categories)
    weight = weight if weighted else np.ones(len(flips))

    def compare(rows, a, b):
        w = weight[rows]
        if metric is avgif:
            return wasserstein_distance(a, b, w, w)
        of_a, of_b = (ORACLES[metric](y_true[rows], c, sample_weight=w) for c in (a, b))
        return abs(of_a - of_b)

    total = 0.0
    for i in range(n_categories):
        rows = flips.original == i
        total += sum(compare(rows, a, b) for a, b in permutations(flips.scores[rows].T, 2))
    expected = total / (n_categories * (n_categories - 1))
    options = {"sample_weight": weight if weighted else None}
    assert metric(y_true, flips, **options) == pytest.approx(expected)


def test_distances_do_not_depend_on_the_size_of_blocks(monkeypatch):
    _, flips, weight = make_flips(n_categories=5)
    expected = average_individual_fairness(flips, sample_weight=weight)
    monkeypatch.setattr("fcorr.metrics.counterfactual.BLOCK_SIZE", 7)
    found = average_individual_fairness(flips, sample_weight=weight)
    assert found == pytest.approx(expected, rel=1e-12)


def test_decisions_are_at_the_threshold():
    flips = FlippedScores(("f", "m"), [0, 0, 1, 1], [[0.3, 0.2], [0, 0], [0.3, 0.3], [0, 0]])
    gaps = [f1_gap([1, 0, 1, 0], flips, threshold=threshold) for threshold in (0.5, 0.3, 0.31)]
    assert gaps == [0.0, 1.0, 0.0]
    weight = [1, 1, 1, 5]
    shares = [decisions_flipped(flips, at, sample_weight=weight) for at in (0.5, 0.3)]
    assert shares == [0.0, 0.125]


@pytest.mark.parametrize("gap", CLASS_GAPS)
def test_a_category_with_one_class_is_left_out_by_name_and_count(gap):
    y_true = [1, 0, 1, 1, 1]
    flips = FlippedScores(
        ("a", "b", "c"),
        [0, 0, 1, 1, 1],
        [[0.9, 0.1, 0.9], [0.5, 0.5, 0.5], [0.1, 0.9, 0.9], [0.1, 0.9, 0.1], [0.2, 0.2, 0.2]],
    )
    with pytest.warns(NotEstimableWarning) as caught:
        value = gap(y_true, flips)
    assert [str(warning.message) for warning in caught] == [
        f"{gap.__name__} is not estimable for 2 of 3 original categories, which have no rows or "
        "one class only and are left out: 'b (n=3)', 'c (n=0)'."
    ]
    assert caught[0].filename == __file__
    assert value > 0  # one category remains
    with pytest.warns(NotEstimableWarning, match="3 of 3"):
        assert np.isnan(gap([1, 1, 1, 1, 1], flips))


@pytest.mark.parametrize("weight", [None, [2, 2, 0]], ids=["no rows", "no weight"])
@pytest.mark.parametrize("metric", [rmse_gap, mae_gap, average_individual_fairness])
def test_a_category_without_rows_is_left_out(metric, weight):
    flips = FlippedScores(("a", "b", "c"), [0, 2, 1], [[0.0, 1, 2], [0, 1, 2], [0, 1, 9]])
    flips = flips if weight else flips.take([0, 1])
    arguments = (flips,) if metric is average_individual_fairness else ([0] * len(flips), flips)
    with pytest.warns(
        NotEstimableWarning, match=r"1 of 3 .* have no rows .* 'b \(n=0\)'"
    ) as caught:
        value = metric(*arguments, sample_weight=weight)
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


Y, FLIPS, _ = make_flips()


HALF, NAN = np.full(len(FLIPS), 0.5), float("nan")
GAPS = [(gap, Y, FLIPS) for gap in ORACLES]


@pytest.mark.parametrize(
    ("metrics", "options", "text"),
    [
        (GAPS, {"sample_weight": [1, 1]}, "one value per row, got 2 for 120 rows"),
        ([(gap, Y[1:], FLIPS) for gap in ORACLES], {}, "rows, got y_true 119, flips 120"),
        ([(gap, HALF, FLIPS) for gap in CLASS_GAPS], {}, "only, got 0.5 in row 0. Code the clas"),
        (
            [(f, HALF) for f in (average_individual_fairness, flip_changes, decisions_flipped)],
            {},
            r"FlippedScores, got ndarray\. Make them with flip_",
        ),
        (
            [(decisions_flipped, FLIPS), (f1_gap, Y, FLIPS)],
            {"threshold": NAN},
            "threshold must be a finite number, got nan. Choose",
        ),
    ],
)
def test_bad_input(metrics, options, text):
    for metric, *arguments in metrics:
        with pytest.raises(InvalidInputError, match=text):
            metric(*arguments, **options)


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
@settings(max_examples=150, deadline=None)
def test_distances_agree_with_scipy(samples_and_weight):
    samples, weight = (np.array(values) for values in samples_and_weight)
    before = samples.copy()
    pairs = permutations(samples, 2)
    expected = sum(wasserstein_distance(a, b, weight, weight) for a, b in pairs)
    assert sum_of_distances(samples, weight) == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(samples, before)  # not sorted in place
