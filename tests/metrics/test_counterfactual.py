import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
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
    auprc_gap,
    auroc_gap,
    average_individual_fairness,
    decisions_flipped,
    f1_gap,
    flip_changes,
    mae_gap,
    rmse_gap,
)

CLASS_GAPS = [f1_gap, auroc_gap, auprc_gap]
AMOUNT_GAPS = [rmse_gap, mae_gap]


def f1_at_half(y_true: Any, scores: Any, sample_weight: Any) -> float:
    return float(f1_score(y_true, scores >= 0.5, sample_weight=sample_weight))


ORACLES = {
    f1_gap: f1_at_half,
    auroc_gap: roc_auc_score,
    auprc_gap: average_precision_score,
    rmse_gap: root_mean_squared_error,
    mae_gap: mean_absolute_error,
}


def make_flips(
    seed: int = 0, n: int = 120, n_categories: int = 3
) -> tuple[Any, FlippedScores, Any]:
    rng = np.random.default_rng(seed)
    flips = FlippedScores(
        tuple(range(n_categories)),
        rng.integers(0, n_categories, n),
        np.round(rng.random((n, n_categories)), 2),
    )
    return rng.integers(0, 2, n), flips, rng.random(n)


def triple_loop(flips: FlippedScores, compare: Callable[[Any, int, int], float]) -> float:
    """Transcribe the paper's sum: over s_i, and over s_j and s_k that differ."""
    n_categories = len(flips.categories)
    total = 0.0
    for i in range(n_categories):
        rows = flips.original == i
        for j in range(n_categories):
            for k in range(n_categories):
                if j != k:
                    total += compare(rows, j, k)
    return total / (n_categories * (n_categories - 1))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_categories", [2, 3, 5])
def test_avgif_agrees_with_a_triple_loop(n_categories: int, weighted: bool) -> None:
    _, flips, weight = make_flips(n_categories=n_categories)
    weight = weight if weighted else np.ones(len(flips))

    def compare(rows: Any, j: int, k: int) -> float:
        scores, w = flips.scores[rows], weight[rows]
        return float(wasserstein_distance(scores[:, j], scores[:, k], w, w))

    value = average_individual_fairness(flips, sample_weight=weight if weighted else None)
    assert value == pytest.approx(triple_loop(flips, compare))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gap", ORACLES)
def test_gaps_agree_with_a_triple_loop(gap: Any, weighted: bool) -> None:
    y_true, flips, weight = make_flips()
    weight = weight if weighted else None

    def compare(rows: Any, j: int, k: int) -> float:
        w = None if weight is None else weight[rows]
        under_j, under_k = (
            ORACLES[gap](y_true[rows], flips.scores[rows, c], sample_weight=w) for c in (j, k)
        )
        return float(abs(under_j - under_k))

    assert gap(y_true, flips, sample_weight=weight) == pytest.approx(triple_loop(flips, compare))


@pytest.mark.parametrize("gap", ORACLES)
def test_gaps_do_not_depend_on_how_many_categories_are_compared_at_once(
    gap: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    y_true, flips, weight = make_flips(n_categories=5)
    expected = gap(y_true, flips, sample_weight=weight)
    monkeypatch.setattr("fcorr.metrics.counterfactual.BLOCK_SIZE", 2 * len(flips) // 5)
    assert gap(y_true, flips, sample_weight=weight) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("gap", ORACLES)
def test_mean_is_the_papers_sum_over_the_number_of_categories(gap: Any) -> None:
    y_true, flips, _ = make_flips()
    assert gap(y_true, flips, normalize="mean") == pytest.approx(gap(y_true, flips) / 3)
    assert average_individual_fairness(flips, normalize="mean") == pytest.approx(
        average_individual_fairness(flips) / 3
    )


def test_f1_gap_decides_at_the_threshold() -> None:
    flips = FlippedScores(("f", "m"), [0, 0, 1, 1], [[0.3, 0.2], [0, 0], [0.3, 0.3], [0, 0]])
    y_true = [1, 0, 1, 0]
    assert f1_gap(y_true, flips) == 0.0
    assert f1_gap(y_true, flips, threshold=0.3) == 1.0
    assert f1_gap(y_true, flips, threshold=0.31) == 0.0


@pytest.mark.parametrize("gap", CLASS_GAPS)
def test_a_category_with_one_class_is_left_out_by_name_and_count(gap: Any) -> None:
    y_true = [1, 0, 1, 1, 1]
    flips = FlippedScores(
        ("a", "b", "c"),
        [0, 0, 1, 1, 1],
        [[0.9, 0.1, 0.9], [0.5, 0.5, 0.5], [0.1, 0.9, 0.9], [0.1, 0.9, 0.1], [0.2, 0.2, 0.2]],
    )
    with pytest.warns(NotEstimableWarning) as caught:
        value = gap(y_true, flips, normalize="mean")
    assert [str(warning.message) for warning in caught] == [
        f"{gap.__name__} is not estimable for 2 of 3 original categories, which have no rows or "
        "one class only and are left out: 'b (n=3)', 'c (n=0)'."
    ]
    assert caught[0].filename == __file__
    with pytest.warns(NotEstimableWarning):
        assert value == gap(y_true, flips) > 0  # one category remains: its sum is its mean


@pytest.mark.parametrize("gap", AMOUNT_GAPS)
def test_a_category_without_rows_is_left_out(gap: Any) -> None:
    flips = FlippedScores(("a", "b", "c"), [0, 2], [[0.0, 1, 2], [0, 1, 2]])
    with pytest.warns(NotEstimableWarning, match=r"1 of 3 .* which have no rows .* 'b \(n=0\)'"):
        assert gap([0, 0], flips, normalize="mean") == pytest.approx(8 / 6)
    with pytest.warns(NotEstimableWarning, match=r"1 of 3 .* which have no rows .* 'b \(n=0\)'"):
        assert average_individual_fairness(flips, normalize="mean") == pytest.approx(8 / 6)


def test_a_category_whose_rows_weigh_nothing_has_no_rows() -> None:
    flips = FlippedScores(("a", "b"), [0, 1], [[0.0, 1.0], [0.0, 9.0]])
    with pytest.warns(NotEstimableWarning, match=r"1 of 2 .* 'b \(n=0\)'"):
        assert average_individual_fairness(flips, sample_weight=[2, 0]) == 1.0


@pytest.mark.parametrize("gap", CLASS_GAPS)
def test_nan_when_no_category_is_estimable(gap: Any) -> None:
    flips = FlippedScores(("a", "b"), [0, 1], [[0.0, 1.0], [0.0, 1.0]])
    with pytest.warns(NotEstimableWarning, match="2 of 2"):
        assert np.isnan(gap([0, 1], flips))


def test_a_swap_that_the_distribution_hides_is_a_change_of_rows() -> None:
    flips = FlippedScores(("f", "m"), [0, 0, 1, 1], [[0.2, 0.8], [0.8, 0.2]] * 2)
    assert average_individual_fairness(flips) == 0.0
    assert flip_changes(flips)["mean"] == pytest.approx(0.6)
    assert decisions_flipped(flips) == 1.0


def test_quantiles_of_changes_are_changes_of_rows() -> None:
    change = np.arange(1, 101) / 4
    flips = FlippedScores(("f", "m"), np.arange(100) % 2, np.column_stack([0 * change, change]))
    assert flip_changes(flips) == {
        "mean": 50.5 / 4,
        "max": 100 / 4,
        "q50": 50 / 4,
        "q90": 90 / 4,
        "q95": 95 / 4,
        "q99": 99 / 4,
    }


def test_decisions_flipped_counts_weight() -> None:
    flips = FlippedScores(("f", "m"), [0, 1], [[0.1, 0.6], [0.1, 0.2]])
    assert decisions_flipped(flips, sample_weight=[1, 3]) == 0.25
    assert decisions_flipped(flips, 0.15, sample_weight=[1, 3]) == 1.0
    assert decisions_flipped(flips, 0.6) == 0.5  # a score at the threshold is a positive decision


@pytest.mark.parametrize("gap", ORACLES)
def test_bad_input(gap: Any) -> None:
    y_true, flips, _ = make_flips()
    with pytest.raises(
        InvalidInputError, match=r"'paper' or 'mean', got 'means'. Did you mean 'mean'"
    ):
        gap(y_true, flips, normalize="means")
    with pytest.raises(InvalidInputError, match="same number of rows, got y_true 119, flips 120"):
        gap(y_true[1:], flips)
    with pytest.raises(InvalidInputError, match="one value per row, got 2 for 120 rows"):
        gap(y_true, flips, sample_weight=[1, 1])


@pytest.mark.parametrize("metric", [average_individual_fairness, flip_changes, decisions_flipped])
def test_a_bare_array_does_not_say_which_category_is_which(metric: Any) -> None:
    with pytest.raises(
        InvalidInputError, match=r"FlippedScores, got ndarray\. Make them with flip_"
    ):
        metric(np.zeros((3, 2)))


@pytest.mark.parametrize("gap", CLASS_GAPS)
def test_class_gaps_ask_for_classes(gap: Any) -> None:
    _, flips, _ = make_flips()
    with pytest.raises(
        InvalidInputError, match=r"0 and 1 only, got 0.5 in row 0. Code the classes"
    ):
        gap(np.full(len(flips), 0.5), flips)


@pytest.mark.parametrize(
    "metric", [decisions_flipped, lambda flips, t: f1_gap([0], flips, threshold=t)]
)
def test_a_threshold_must_be_a_number_that_scores_can_reach(metric: Any) -> None:
    _, flips, _ = make_flips()
    with pytest.raises(
        InvalidInputError, match=r"threshold must be a finite number, got nan. Choose"
    ):
        metric(flips, float("nan"))


@pytest.mark.slow
def test_a_million_rows_and_nine_categories_take_seconds() -> None:
    _, flips, weight = make_flips(n=1_000_000, n_categories=9)
    start = time.perf_counter()
    average_individual_fairness(flips)
    average_individual_fairness(flips, sample_weight=weight)
    assert time.perf_counter() - start < 20
