"""Lorenz curves and the Gini index that is their area."""

import json

import numpy as np
import pytest

from fcorr._core import InvalidInputError, NotEstimableWarning
from fcorr.metrics import gini_score, lorenz_curve, normalized_gini_score


@pytest.fixture
def portfolio():
    rng = np.random.default_rng(0)
    exposure, rate = rng.uniform(0.1, 1, 500), rng.gamma(2, 0.1, 500)
    return rng.poisson(exposure * rate), np.round(rate, 2), exposure


def test_the_curve_starts_at_nothing_and_ends_at_all(portfolio):
    claims, rate, exposure = portfolio
    curve = lorenz_curve(claims / exposure, rate, sample_weight=exposure)
    assert (curve.exposure_share[0], curve.claim_share[0]) == (0, 0)
    assert (curve.exposure_share[-1], curve.claim_share[-1]) == (1, 1)
    assert (np.diff(curve.exposure_share) > 0).all()
    assert len(curve.exposure_share) == len(np.unique(rate)) + 1


def test_a_point_is_the_share_of_claims_below_a_prediction(portfolio):
    claims, rate, exposure = portfolio
    curve = lorenz_curve(claims / exposure, rate, sample_weight=exposure)
    values = np.unique(rate)
    for i in (0, len(values) // 2, len(values) - 1):
        below = rate <= values[i]
        share = exposure[below].sum() / exposure.sum(), claims[below].sum() / claims.sum()
        assert (curve.exposure_share[i + 1], curve.claim_share[i + 1]) == pytest.approx(share)


def test_gini_is_the_area_and_the_score_that_of_n_rows():
    rng = np.random.default_rng(1)
    y, prediction = rng.gamma(1, 100, 80), rng.integers(0, 9, 80)
    curve = lorenz_curve(y, prediction)
    area = np.trapezoid(curve.claim_share, curve.exposure_share)
    assert curve.gini == pytest.approx(1 - 2 * area, rel=1e-12)
    assert gini_score(y, prediction) == pytest.approx(curve.gini * 80 / 79, rel=1e-12)


def test_normalized_gini_is_the_share_of_the_best():
    rng = np.random.default_rng(2)
    y, prediction = rng.gamma(1, 100, 80), rng.random(80)
    weight = rng.integers(1, 4, 80)
    share = gini_score(y, prediction, sample_weight=weight) / gini_score(y, y, sample_weight=weight)
    assert normalized_gini_score(y, prediction, sample_weight=weight) == pytest.approx(share)
    # Weights may be shares: only their proportions matter.
    shares = weight / weight.sum()
    assert normalized_gini_score(y, prediction, sample_weight=shares) == pytest.approx(share)
    assert normalized_gini_score(y, -y) == pytest.approx(-1)
    assert normalized_gini_score(y, y) == 1


def test_a_constant_prediction_is_the_diagonal():
    curve = lorenz_curve([0, 1, 5], [3, 3, 3])
    assert curve.exposure_share.tolist() == curve.claim_share.tolist() == [0, 1]
    assert curve.gini == 0


def test_the_curve_goes_through_json():
    curve = lorenz_curve([0, 1, 5], [1, 2, 3])
    assert json.loads(json.dumps(curve.to_dict()))["claim_share"] == curve.claim_share.tolist()


def test_no_claims_no_curve():
    with pytest.raises(InvalidInputError) as caught:
        lorenz_curve([0, 0], [1, 2])
    assert str(caught.value) == (
        "lorenz_curve needs observed amounts with a positive sum, got 0 in 2 rows. "
        "Choose rows that have claims."
    )


@pytest.mark.parametrize(("y", "total"), [([0, 0], "0"), ([3, 3], "6")])
def test_normalized_gini_not_estimable(y, total):
    text = f"amounts that differ and have a positive sum, got {total} in 2 rows"
    with pytest.warns(NotEstimableWarning, match=text) as caught:
        assert np.isnan(normalized_gini_score(y, [1, 2]))
    assert caught[0].filename == __file__
