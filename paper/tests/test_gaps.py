"""Gaps against the paper's sums, written as loops over scikit-learn's metrics."""

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    mean_absolute_error,
    roc_auc_score,
    root_mean_squared_error,
)

from fcorr._core import InvalidInputError, NotEstimableWarning
from fcorr.metrics import FlippedScores
from paper.gaps import auprc_gap, auroc_gap, f1_gap, mae_gap, rmse_gap
from tests.metrics.test_flips import by_the_papers_sum, make_flips

CLASS_GAPS = [f1_gap, auroc_gap, auprc_gap]
ORACLES = {
    f1_gap: lambda y, scores, **weight: f1_score(y, scores >= 0.5, **weight),
    auroc_gap: roc_auc_score,
    auprc_gap: average_precision_score,
    rmse_gap: root_mean_squared_error,
    mae_gap: mean_absolute_error,
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_categories", [2, 3, 5])
@pytest.mark.parametrize("gap", ORACLES)
def test_the_papers_sum_over_the_original_and_pairs_of_categories(gap, n_categories, weighted):
    y_true, flips, weight = make_flips(n_categories=n_categories)
    options = {"sample_weight": weight} if weighted else {}

    def compare(rows, a, b, w):
        of_a, of_b = (ORACLES[gap](y_true[rows], c, sample_weight=w) for c in (a, b))
        return abs(of_a - of_b)

    expected = by_the_papers_sum(compare, flips, weight if weighted else np.ones(len(flips)))
    assert gap(y_true, flips, **options) == pytest.approx(expected)


def test_decisions_are_at_the_threshold():
    flips = FlippedScores(("f", "m"), [0, 0, 1, 1], [[0.3, 0.2], [0, 0], [0.3, 0.3], [0, 0]])
    gaps = [f1_gap([1, 0, 1, 0], flips, threshold=threshold) for threshold in (0.5, 0.3, 0.31)]
    assert gaps == [0.0, 1.0, 0.0]


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


@pytest.mark.parametrize("gap", [rmse_gap, mae_gap])
def test_a_category_without_rows_is_left_out(gap):
    flips = FlippedScores(("a", "b", "c"), [0, 2], [[0.0, 1, 2], [0, 1, 2]])
    with pytest.warns(NotEstimableWarning, match=r"1 of 3 .* 'b \(n=0\)'") as caught:
        assert gap([0, 0], flips) == pytest.approx(16 / 6)
    assert caught[0].filename == __file__


Y, FLIPS, _ = make_flips()
HALF = np.full(len(FLIPS), 0.5)


@pytest.mark.parametrize(
    ("gaps", "y", "options", "text"),
    [
        (ORACLES, Y, {"sample_weight": [1, 1]}, "one value per row, got 2 for 120 rows"),
        (ORACLES, Y[1:], {}, "rows, got y_true 119, flips 120"),
        (CLASS_GAPS, HALF, {}, "only, got 0.5 in row 0 and 119 more. Code the clas"),
        ([f1_gap], Y, {"threshold": np.nan}, "threshold must be a finite number, got nan. Choose"),
    ],
)
def test_bad_input(gaps, y, options, text):
    for gap in gaps:
        with pytest.raises(InvalidInputError, match=text):
            gap(y, FLIPS, **options)
