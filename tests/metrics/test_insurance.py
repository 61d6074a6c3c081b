"""Lorenz curves and lift tables."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from fcorr._core import InvalidInputError, NotEstimableWarning
from fcorr.metrics import (
    lift_table,
    lorenz_curve,
    normalized_gini_score,
)


def make_portfolio(n):
    rng = np.random.default_rng(0)
    exposure, rate = rng.uniform(0.1, 1, n), rng.gamma(2, 0.1, n)
    return rng.poisson(exposure * rate) / exposure, rate, exposure


# Lorenz curves


def test_a_point_is_the_share_of_claims_below_a_prediction():
    y, rate, exposure = make_portfolio(500)
    rate, claims = np.round(rate, 2), y * exposure
    curve = lorenz_curve(y, rate, sample_weight=exposure)
    assert (curve.exposure_share[0], curve.claim_share[0]) == (0, 0)
    assert (curve.exposure_share[-1], curve.claim_share[-1]) == (1, 1)
    values = np.unique(rate)
    assert len(curve.exposure_share) == len(values) + 1
    for i, value in enumerate(values):
        below = rate <= value
        share = exposure[below].sum() / exposure.sum(), claims[below].sum() / claims.sum()
        assert (curve.exposure_share[i + 1], curve.claim_share[i + 1]) == pytest.approx(share)
    assert json.loads(json.dumps(curve.to_dict())) == {
        "exposure_share": curve.exposure_share.tolist(),
        "claim_share": curve.claim_share.tolist(),
        "gini": curve.gini,
    }


def test_gini_is_the_area():
    rng = np.random.default_rng(1)
    y, prediction = rng.gamma(1, 100, 80), rng.integers(0, 9, 80)
    curve = lorenz_curve(y, prediction)
    area = np.trapezoid(curve.claim_share, curve.exposure_share)
    assert curve.gini == pytest.approx(1 - 2 * area, rel=1e-12)
    constant = lorenz_curve([0, 1, 5], [3, 3, 3])  # the diagonal
    assert constant.exposure_share.tolist() == constant.claim_share.tolist() == [0, 1]
    assert constant.gini == 0


def test_normalized_gini_is_the_share_of_the_best():
    rng = np.random.default_rng(2)
    y, prediction = rng.gamma(1, 100, 80), rng.random(80)
    weight = rng.integers(1, 4, 80)
    best = lorenz_curve(y, y, sample_weight=weight).gini
    share = lorenz_curve(y, prediction, sample_weight=weight).gini / best
    assert normalized_gini_score(y, prediction, sample_weight=weight) == pytest.approx(share)
    # Weights may be shares: only their proportions matter.
    shares = weight / weight.sum()
    assert normalized_gini_score(y, prediction, sample_weight=shares) == pytest.approx(share)
    assert normalized_gini_score(y, -y) == pytest.approx(-1)
    assert normalized_gini_score(y, y) == 1


@pytest.mark.parametrize(("y", "total"), [([0, 0], "0"), ([3, 3], "6")])
def test_normalized_gini_not_estimable(y, total):
    text = f"amounts that differ and have a positive sum, got {total} in 2 rows"
    with pytest.warns(NotEstimableWarning, match=text) as caught:
        assert np.isnan(normalized_gini_score(y, [1, 2]))
    assert caught[0].filename == __file__


# Lift tables


def test_bins_have_about_equal_weight_and_lose_nothing():
    y, rate, exposure = make_portfolio(4_000)
    rows = lift_table(y, rate, sample_weight=exposure).rows
    weights = np.array([row.weight for row in rows])
    assert len(rows) == 10
    assert weights == pytest.approx(exposure.sum() / 10, abs=1.01)  # one policy at either end
    assert sum(row.n for row in rows) == 4_000
    for name, column in (("actual", y), ("predicted", rate)):
        total = sum(row.weight * getattr(row, name) for row in rows)
        assert total == pytest.approx(np.sum(exposure * column), rel=1e-12)
    assert all(a.high < b.low for a, b in pairwise(rows))
    assert all(row.low <= row.predicted <= row.high for row in rows)
    table = lift_table(y, rate, rate + 1)
    lines = json.loads(json.dumps(table.to_dict()))["rows"]
    assert pd.DataFrame(table.rows).to_dict("records") == lines


@pytest.mark.parametrize(
    ("y_true", "y_pred", "n_bins", "weight", "expected"),
    [
        (range(10), range(10), 5, None, [(2, 2 * i, 2 * i + 1, 2 * i + 0.5) for i in range(5)]),
        # equal predictions stay together
        (range(6), [1, 1, 1, 1, 1, 9], 3, None, [(5, 1, 1, 2), (1, 9, 9, 5)]),
        ([1, 2], [4, 4], 10, None, [(2, 4, 4, 1.5)]),
        # the middle row lies on the edge of two bins but for rounding
        (range(5), range(5), 2, [0.25] * 5, [(2, 0, 1, 0.5), (3, 2, 4, 3)]),
        (range(5), range(5), 2, [0.3] * 5, [(2, 0, 1, 0.5), (3, 2, 4, 3)]),
        # rows without weight do not count
        ([1, 2, 99], [1, 2, 3], 3, [1, 1, 0], [(1, 1, 1, 1), (1, 2, 2, 2)]),
    ],
)
def test_bins_by_hand(y_true, y_pred, n_bins, weight, expected):
    rows = lift_table(list(y_true), list(y_pred), n_bins=n_bins, sample_weight=weight).rows
    found = [(row.n, row.low, row.high, row.actual) for row in rows]
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_double_lift_bins_follow_the_ratio_not_the_prediction():
    table = lift_table([1, 2, 3, 4], [10, 1, 20, 2], [20, 0.5, 40, 1], n_bins=2)
    found = [(row.low, row.high, row.actual, row.n) for row in table.rows]
    assert found == [(0.5, 0.5, 2, 2), (2, 2, 3, 2)]


@pytest.mark.parametrize(
    ("metric", "arguments", "options", "text"),
    [
        (lorenz_curve, ([0, 0], [1, 2]), {}, "a positive sum, got 0 in 2 rows. Choose rows that"),
        *(
            (lift_table, ([1], [1]), {"n_bins": n}, f"n_bins must be a positive integer, got {n!r}")
            for n in (0, -3, 2.5, "ten")
        ),
        (lift_table, ([1, 2], [1, 2], [1, 0]), {}, "to divide by, got 0 in row 1. Raise sm"),
        (lift_table, ([1, 2], [1, 2], [1]), {}, "y_true 2, y_pred 2, y_incumbent 1. Take"),
    ],
)
def test_bad_input(metric, arguments, options, text):
    with pytest.raises(InvalidInputError, match=text):
        metric(*arguments, **options)
