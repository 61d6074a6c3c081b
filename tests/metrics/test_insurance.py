"""Lorenz curves, lift tables, and actual over expected by group, with how sure it is."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fcorr._core import InvalidInputError, NotEstimableWarning
from fcorr.metrics import (
    actual_over_expected,
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


# Actual over expected


def test_claims_over_exposure_with_weights_are_the_claims():
    rng = np.random.default_rng(1)
    exposure, groups = rng.uniform(0.1, 1, 60), rng.choice(["f", "m"], 60)
    claims = rng.poisson(exposure)
    options = {"sensitive_features": groups}
    per_year = actual_over_expected(
        claims / exposure, np.full(60, 0.9), sample_weight=exposure, **options
    )
    total = actual_over_expected(claims, 0.9 * exposure, **options)
    for a, b in zip(per_year.rows, total.rows, strict=True):
        assert (a.ratio, a.low, a.high) == pytest.approx((b.ratio, b.low, b.high))


@pytest.mark.parametrize("count", [0, 1, 7, 400])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_poisson_interval_is_exact(count, confidence):
    (row,) = actual_over_expected(
        [count], [5.0], sensitive_features=["x"], confidence=confidence
    ).rows
    tail = (1 - confidence) / 2
    # At the ends the count is as unlikely, on its side, as the tail allows.
    assert stats.poisson.cdf(count, 5 * row.high) == pytest.approx(tail)
    if count:
        assert stats.poisson.sf(count - 1, 5 * row.low) == pytest.approx(tail)
    else:
        assert row.low == 0


def test_bootstrap_interval_holds_for_amounts_and_is_repeatable():
    rng = np.random.default_rng(3)
    amounts = rng.gamma(0.5, 1_000, 400)
    options = {
        "sensitive_features": rng.choice(["f", "m"], 400),
        "interval": "bootstrap",
        "random_state": 0,
    }
    table = actual_over_expected(amounts, np.full(400, 500.0), **options)
    assert table == actual_over_expected(amounts, np.full(400, 500.0), **options)
    for row in table.rows:
        chosen = amounts[options["sensitive_features"] == row.group]
        spread = chosen.std() / np.sqrt(len(chosen)) / 500
        assert row.low < row.ratio < row.high
        assert row.high - row.low == pytest.approx(2 * 1.96 * spread, rel=0.15)


@pytest.mark.parametrize("interval", ["poisson", "bootstrap"])
def test_not_estimable_is_nan(interval):
    table = actual_over_expected(
        [1, 1, 1],
        [0, 1, 1],
        sensitive_features=["a", "b", "b"],
        interval=interval,
        n_resamples=20,
    )
    a, b = table.rows
    assert np.isnan([a.ratio, a.low, a.high]).all()
    assert (a.n, b.n, b.ratio) == (1, 2, 1)


def test_quarters_of_years_are_exposures():
    years, claims = np.array([0.25, 0.5, 0.25, 1]), np.array([2, 1, 0, 1])
    rows = actual_over_expected(
        claims / years, np.ones(4), sensitive_features=list("aabb"), sample_weight=years
    ).rows
    assert [row.actual for row in rows] == [3, 1]


@pytest.mark.parametrize("scale", [0.01, 100])
def test_weights_that_are_no_exposures_do_not_make_an_interval_narrower(scale):
    counts, groups = np.array([2, 0, 3, 1]), list("aabb")
    arguments = {"y_pred": np.ones(4), "sensitive_features": groups}
    text = r"needs claim counts.*got 2 (with the weight 100 )?in row 0"
    for weight in (np.full(4, scale), np.array([scale, 1, 1, 1])):
        with pytest.raises(InvalidInputError, match=text):
            actual_over_expected(counts, sample_weight=weight, **arguments)
    options = {"interval": "bootstrap", "random_state": 0, "n_resamples": 50}
    for a, b in zip(
        actual_over_expected(counts, **arguments, **options).rows,
        actual_over_expected(counts, sample_weight=np.full(4, scale), **arguments, **options).rows,
        strict=True,
    ):
        assert (a.low, a.high) == pytest.approx((b.low, b.high))


GROUPS = {"sensitive_features": ["a", "b"]}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"y_true": [2, 12.5]}, "claim counts, got 12.5 in row 1. Use interval='bootstrap'"),
        ({"interval": "bootstap"}, "'poisson', for claim counts, or 'bootstrap', got 'bootstap'"),
        ({"confidence": 95}, "confidence must lie between 0 and 1, got 95. Write 95 % as 0.95."),
        ({"sensitive_features": ["a"]}, "got y_true 2, sensitive_features 1. Take them"),
    ],
)
def test_bad_input_of_actual_over_expected(options, text):
    with pytest.raises(InvalidInputError, match=text):
        actual_over_expected(**{"y_true": [1, 2], "y_pred": [1, 2], **GROUPS, **options})


def test_totals_and_ratios_of_missing_groups_and_intersections():
    groups = {"sex": ["f", "m", "m", None], "race": ["a", "a", "a", "b"]}
    table = actual_over_expected([1, 2, 4, 3], [1, 1, 1, 2], sensitive_features=groups)
    assert [(r.group, r.n, r.actual, r.expected, r.ratio) for r in table.rows] == [
        (("f", "a"), 1, 1, 1, 1.0),
        (("m", "a"), 2, 6, 2, 3.0),
        ((None, "b"), 1, 3, 2, 1.5),
    ]
    assert table.confidence == 0.95
    assert table.to_dict()["rows"][2]["group"] == (None, "b")
