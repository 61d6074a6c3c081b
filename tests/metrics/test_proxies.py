"""Prices whose unfairness and discrimination are known, by hand or from the population."""

import itertools

import numpy as np
import polars as pl
import pytest

from fcorr._core import NotEstimableWarning
from fcorr.data import make_proxy_bias
from fcorr.data.generators import PROXY_SHIFT, TRUE_EFFECTS
from fcorr.metrics import (
    FlippedScores,
    demographic_unfairness,
    nearest_admissible,
    proxy_discrimination,
)


def best(scores, codes=None, categories=None):
    n_rows, n_groups = np.shape(scores)
    codes = np.arange(n_rows) % n_groups if codes is None else codes
    return FlippedScores(
        tuple(range(n_groups)) if categories is None else categories, codes, scores
    )


# ------------------------------------------------------------------------------ known answers


@pytest.mark.parametrize(("effect", "shift"), [(2.0, 3.0), (-1.0, 1.5), (0.5, 0.0)])
def test_planted_proxy_has_the_share_that_its_population_says(effect, shift):
    X = make_proxy_bias(20_000, random_state=0)[0].to_pandas()
    s, x3 = (X["S"] == "yes").to_numpy(float), (X["X3"] == "yes").to_numpy(float)
    X["Z"] += (shift - PROXY_SHIFT) * s
    risk = X["X1"] - 0.5 * X["X2"] + TRUE_EFFECTS["X3"] * (x3 - 0.5)
    estimates = best(np.column_stack([risk - effect / 2, risk + effect / 2]), s.astype(int))
    slope = effect * shift / (4 + shift**2)  # what least squares without S gives the proxy
    price = risk + slope * X["Z"]
    of_risk, of_proxy = 1 + 0.25 + 0.8**2 / 4, slope**2 * (1 + shift**2 / 4)
    truth = of_proxy / (of_risk + of_proxy)
    assert proxy_discrimination(price, estimates) == pytest.approx(truth, abs=0.02)
    between = (slope * shift / 2) ** 2 / (of_risk + of_proxy)
    assert demographic_unfairness(price, sensitive_features=s) == pytest.approx(between, abs=0.02)
    # The proxy alone: nothing that an admissible price could say.
    assert proxy_discrimination(X["Z"], estimates) == pytest.approx(1, abs=0.02)
    # Each person's own: what the proxy adds.
    found = nearest_admissible(price, estimates)
    np.testing.assert_allclose(found.difference, slope * (X["Z"] - X["Z"].mean()), atol=0.05)


def test_a_proxy_that_is_a_probability():
    """Two groups, X uniform and P(S=1|X) = X, μ = 1/2 + X + S: the price E[Y|X] is 1/2 + 2X."""
    x = (np.arange(1000) + 0.5) / 1000
    estimates = best(np.column_stack([0.5 + x, 1.5 + x]))
    found = nearest_admissible(0.5 + 2 * x, estimates)
    assert found.discrimination == pytest.approx(0.25)
    np.testing.assert_allclose(found.difference, x - 0.5)
    assert sum(found.weights.values()) == pytest.approx(1)


@pytest.mark.parametrize("n_groups", [2, 3, 7])
def test_discrimination_free_prices_have_none(n_groups):
    rng = np.random.default_rng(n_groups)
    estimates = best(rng.gamma(2, size=(500, n_groups)))
    shares = rng.dirichlet(np.ones(n_groups))
    exposure = rng.random(500)
    for price in (
        estimates.scores @ shares,
        30 + 0.3 * estimates.scores @ shares,  # a loading, and less of everybody's risk
        estimates.scores[:, 1],  # the price of one group for all
    ):
        assert proxy_discrimination(price, estimates, sample_weight=exposure) == 0
    doubled = nearest_admissible(2 * estimates.scores @ shares, estimates)
    assert doubled.discrimination > 0.05  # more than anybody's risk is not explained by risk


def test_a_group_price_is_unfair_and_no_proxy_is_needed():
    groups = np.array(["a", "b", "c"])[np.arange(60) % 3]
    price = np.array([1.0, 5.0, 2.0])[np.arange(60) % 3]
    assert demographic_unfairness(price, sensitive_features=groups) == pytest.approx(1)
    shuffled = np.repeat([1.0, 5.0, 2.0, 4.0], 15)[np.argsort(np.arange(60) % 4, kind="stable")]
    assert demographic_unfairness(np.repeat([1.0, 2.0], 30), sensitive_features=groups) == 0
    assert 0 < demographic_unfairness(price + shuffled, sensitive_features=groups) < 1
    assert demographic_unfairness([1, 1, 1, 9], sensitive_features=["f", "f", "f", "m"]) == 1


# ------------------------------------------------------------------------------ exact minimum


def by_brute_force(price, scores, weight):
    """Try every set of groups that may have weight, with the sum free and with the sum 1."""
    root = np.sqrt(weight / weight.sum())[:, None]
    columns = (scores - np.average(scores, axis=0, weights=weight)) * root
    target = (price - np.average(price, weights=weight)) * root[:, 0]
    best_found = target @ target
    n_groups = scores.shape[1]
    for size in range(1, n_groups + 1):
        for chosen in itertools.combinations(range(n_groups), size):
            A = columns[:, chosen]
            free = np.linalg.lstsq(A, target, rcond=None)[0]
            # With the sum 1, the last weight is what the others leave.
            rest = np.linalg.lstsq(A[:, :-1] - A[:, -1:], target - A[:, -1], rcond=None)[0]
            for v in (free, np.append(rest, 1 - rest.sum())):
                if (v >= -1e-12).all() and v.sum() <= 1 + 1e-12:
                    best_found = min(best_found, np.sum((target - A @ v) ** 2))
    return best_found / (target @ target)


@pytest.mark.parametrize("n_groups", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_the_minimum_is_that_of_brute_force(seed, n_groups):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(40, 1))
    scores = common + rng.normal(size=(40, n_groups)) * rng.choice([0.1, 1.0])
    price = scores @ rng.normal(0.3, 0.6, n_groups) + rng.normal(size=40)
    weight = rng.random(40)
    found = nearest_admissible(price, best(scores), sample_weight=weight)
    expected = by_brute_force(price, scores, weight)
    assert found.discrimination == pytest.approx(expected, rel=1e-10)
    v = np.array([*found.weights.values()])
    assert (v >= 0).all()
    assert v.sum() <= 1 + 1e-12
    admissible = found.constant + scores @ v
    np.testing.assert_allclose(price - admissible, found.difference, atol=1e-12)
    assert np.average(found.difference, weights=weight) == pytest.approx(0, abs=1e-12)


# ------------------------------------------------------------------------------ groups


def test_several_columns_and_numbers_are_groups():
    rng = np.random.default_rng(0)
    age, sex = rng.uniform(18, 90, 1000), np.array(["f", "m"])[np.arange(1000) % 2]
    price = age + 10 * (sex == "m")
    of_age = demographic_unfairness(price, sensitive_features=age)
    # Ten groups of a uniform number leave a hundredth of its variance within them.
    assert 0.9 < of_age < 1
    both = demographic_unfairness(price, sensitive_features=pl.DataFrame({"age": age, "sex": sex}))
    assert of_age < both < 1
    assert demographic_unfairness(price, sensitive_features=np.arange(1000)) < 0.1


@pytest.mark.parametrize("missing", [None, np.nan])
def test_rows_of_unknown_group_are_left_out_and_counted(missing):
    price, known = np.array([1.0, 3, 3, 5, 100]), ["f", "f", "m", "m"]
    with pytest.warns(NotEstimableWarning, match="1 of 5 rows, whose group is unknown") as caught:
        found = demographic_unfairness(price, sensitive_features=[*known, missing])
    assert caught[0].filename == __file__
    assert found == demographic_unfairness(price[:4], sensitive_features=known)
    pairs = {"sex": [*known, missing], "race": ["a", "b", "a", "b", "a"]}
    with pytest.warns(NotEstimableWarning, match="1 of 5 rows"):
        demographic_unfairness(price, sensitive_features=pairs)

    scores = np.array([[1.0, 2, 7], [1, 2, 7], [3, 4, 7], [3, 4, 7], [9, 9, 9]])
    estimates = best(scores, [0, 0, 1, 1, 2], ("f", "m", None))
    with pytest.warns(NotEstimableWarning, match="proxy_discrimination .* 1 of 5 rows") as caught:
        found = proxy_discrimination(price, estimates)
    assert caught[0].filename == __file__
    assert found == pytest.approx(
        proxy_discrimination(price[:4], best(scores[:4, :2], [0, 0, 1, 1]))
    )
    with pytest.warns(NotEstimableWarning, match="nearest_admissible"):
        nearest = nearest_admissible(price, estimates)
    assert nearest.n_left_out == 1
    assert set(nearest.weights) == {"f", "m"}
    assert np.isfinite(nearest.difference).all()  # also of the person whose group is unknown


def test_where_there_is_no_answer_there_is_nan_and_a_reason():
    with pytest.warns(NotEstimableWarning, match="two groups or more, got f and 0 unknown"):
        assert np.isnan(demographic_unfairness([1, 2], sensitive_features=["f", "f"]))
    lonely = best(np.eye(2), [0, 0], ("f", "m"))
    with pytest.warns(NotEstimableWarning, match="proxy_discrimination is not estimable"):
        assert np.isnan(proxy_discrimination([1, 2], lonely))


def test_a_price_for_all_is_fair_and_admissible():
    price = 0.1 + 1e-15 * np.arange(6)
    assert demographic_unfairness(price, sensitive_features=["f", "m"] * 3) == 0
    found = nearest_admissible(price, best(np.random.default_rng(0).random((6, 2))))
    assert found.discrimination == 0
    assert found.constant == pytest.approx(0.1)
