"""Actual over expected by group, and how sure it is."""

import numpy as np
import pytest
from scipy import stats

from fcorr._core import InvalidInputError
from fcorr.metrics import actual_over_expected


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


@pytest.mark.parametrize("scale", [0.01, 100])
def test_weights_that_are_no_exposures_do_not_make_an_interval_narrower(scale):
    counts, groups = np.array([2, 0, 3, 1]), list("aabb")
    arguments = {"y_pred": np.ones(4), "sensitive_features": groups}
    text = r"without weights.*got 2 with the weight \S+ in row 0.*Pass claims and expected claims"
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
def test_bad_input(options, text):
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
