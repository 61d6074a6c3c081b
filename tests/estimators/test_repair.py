"""Scores of any model, moved until groups have the same distribution."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import wasserstein_distance
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import fcorr
from fcorr import InvalidInputError, QuantileRepair
from fcorr.data import make_proxy_bias
from fcorr.metrics import demographic_unfairness


def on_frame(model):
    encode = make_column_transformer((OneHotEncoder(), ["S", "X3"]), remainder="passthrough")
    return make_pipeline(encode, model)


@pytest.fixture(scope="module")
def people():
    drawn = [make_proxy_bias(4_000, random_state=seed) for seed in (0, 1)]
    return [(X.to_pandas(), y) for X, y in drawn]


def distance(scores, groups):
    return wasserstein_distance(scores[groups == "no"], scores[groups == "yes"])


def test_groups_get_one_distribution_with_the_order_and_the_total_kept(people):
    (X, y), (test, _) = people
    model = QuantileRepair(on_frame(LinearRegression()), "S").fit(X, y)
    plain, repaired = model.estimator_.predict(test), model.predict(test)
    groups = test["S"].to_numpy()
    assert distance(plain, groups) > 1.5
    assert distance(repaired, groups) < 0.1
    assert demographic_unfairness(plain, sensitive_features=groups) > 0.3
    assert demographic_unfairness(repaired, sensitive_features=groups) < 0.005
    assert repaired.mean() == pytest.approx(plain.mean(), abs=0.02)
    for group in ("no", "yes"):
        order = np.argsort(plain[groups == group])
        assert (np.diff(repaired[groups == group][order]) >= -1e-12).all()


def test_of_two_normal_groups_the_common_one_is_known():
    """Means 0 and 4, deviations 1 and 3, a quarter in the second: mean 1, deviation 1.5."""
    rng = np.random.default_rng(0)
    s = np.arange(40_000) % 4 == 0
    score = rng.normal(np.where(s, 4, 0), np.where(s, 3, 1))
    X = np.column_stack([s, score])
    plain = LinearRegression().fit(X, score)
    repaired = QuantileRepair(FrozenEstimator(plain), 0).fit(X, score).predict(X)
    for group in (True, False):
        assert repaired[s == group].mean() == pytest.approx(1, abs=0.05)
        assert repaired[s == group].std() == pytest.approx(1.5, abs=0.05)


def test_the_share_moves_scores_in_a_straight_line(people):
    (X, y), (test, _) = people
    models = {
        share: QuantileRepair(on_frame(LogisticRegression()), "S", share=share).fit(X, y > 0)
        for share in (0.0, 0.25, 1.0)
    }
    p = {share: model.predict_proba(test)[:, 1] for share, model in models.items()}
    np.testing.assert_array_equal(p[0.0], models[0.0].estimator_.predict_proba(test)[:, 1])
    np.testing.assert_allclose(p[0.25], 0.75 * p[0.0] + 0.25 * p[1.0])
    assert (p[1.0] >= 0).all()
    assert (p[1.0] <= 1).all()
    np.testing.assert_array_equal(models[1.0].predict(test), p[1.0] >= 0.5)
    gaps = [distance(p[share], test["S"]) for share in (0.0, 0.25, 1.0)]
    assert gaps[0] > gaps[1] > 0.5 * gaps[0]
    assert gaps[2] < 0.1 * gaps[0]


def test_distributions_are_those_of_rows_not_fitted_to(people):
    (X, y), _ = people
    by_heart = on_frame(KNeighborsRegressor(1))
    model = QuantileRepair(by_heart, "S", cv=3).fit(X, y)
    np.testing.assert_array_equal(model.estimator_.predict(X), y)
    folds = KFold(3, shuffle=True, random_state=0)
    for group, (values, moved) in model.groups_.items():
        own = (X["S"] == group).to_numpy()
        expected = np.unique(cross_val_predict(by_heart, X, y, cv=folds)[own])
        np.testing.assert_allclose(values, expected, atol=1e-7)
        assert (np.diff(moved) > 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_equal_scores_move_to_the_mean_over_their_share(seed):
    """By hand: the means of the barycentre's quantiles, of people numbered evenly in each group."""
    rng = np.random.default_rng(seed)
    s = np.repeat([0, 1], [600, 200])
    score = np.where(s, rng.lognormal(size=800), np.where(np.arange(800) < 420, 0.2, 1.5))
    X = np.column_stack([s, score])
    identity = FrozenEstimator(LinearRegression().fit(X, score))
    model = QuantileRepair(identity, 0).fit(X, score)
    repaired, first, second = model.predict(X), np.sort(score[s == 0]), np.sort(score[s == 1])
    common = 0.75 * first + 0.25 * np.repeat(second, 3)
    of_first = np.where(score[s == 0] < 1, common[:420].mean(), common[420:].mean())
    np.testing.assert_allclose(repaired[s == 0], of_first, rtol=1e-5)
    np.testing.assert_allclose(np.sort(repaired[s == 1]), common.reshape(200, 3).mean(1), rtol=1e-5)
    means = [repaired.mean(), repaired[s == 0].mean(), repaired[s == 1].mean()]
    assert means == pytest.approx([score.mean()] * 3)
    beyond = np.array([[1, second[-1] + k] for k in (0, 1, 5)])
    np.testing.assert_allclose(np.diff(model.predict(beyond)), [1, 4], rtol=1e-6)


def test_weights_that_are_lost_among_others_do_no_harm():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(400) % 2, rng.normal(size=400)])
    model = FrozenEstimator(LinearRegression().fit(X, X[:, 1]))
    weight = np.where(np.arange(400) < 200, 1e-18, 1.0)
    assert np.isfinite(QuantileRepair(model, 0).fit(X, X[:, 1], weight).predict(X)).all()


@pytest.mark.parametrize("constant", [5.0, -100.0, 1e12, 0.0])
def test_one_score_for_all_stays(constant):
    X = np.column_stack([np.arange(40) % 2, np.ones(40)])
    model = DummyRegressor(strategy="constant", constant=constant)
    found = QuantileRepair(model, 0).fit(X, X[:, 0]).predict(X)
    np.testing.assert_allclose(found, constant)


def test_any_frame_and_several_columns():
    rng = np.random.default_rng(0)
    columns = {"sex": ["f", "m"] * 200, "race": ["a"] * 200 + ["b"] * 200}
    columns["x"] = rng.normal(size=400)
    y, X = columns["x"] + (np.array(columns["sex"]) == "m"), pl.DataFrame(columns)
    model = fcorr.FCorrRegressor(n_members=1, epochs=2, random_state=0)
    repair = QuantileRepair(model, ["sex", "race"], cv=2).fit(X, y)
    assert set(repair.groups_) == {("f", "a"), ("f", "b"), ("m", "a"), ("m", "b")}
    assert np.isfinite(repair.predict(X)).all()


QUICK = {"n_members": 1, "epochs": 8, "random_state": 0}


def test_of_a_model_with_an_exposure_rates_are_repaired():
    rng, n = np.random.default_rng(0), 3_000
    s = np.arange(n) % 2
    years = np.where(s, rng.uniform(0.8, 1, n), rng.uniform(0.2, 0.4, n))
    X = pl.DataFrame({"s": s.astype(str), "years": years, "x": rng.uniform(-1, 1, n)})
    y = rng.poisson(years * np.exp(-1 + 0.5 * X["x"].to_numpy() + 0.5 * s))
    model = fcorr.FCorrRegressor(objective="poisson", exposure="years", **QUICK)
    repair = QuantileRepair(model, "s", cv=2).fit(X, y)
    found = repair.predict(X)
    rates = [found[s == k].sum() / years[s == k].sum() for k in (0, 1)]
    assert rates[0] == pytest.approx(rates[1], rel=0.1)
    assert found.sum() == pytest.approx(y.sum(), rel=0.05)
    longer = X.with_columns(pl.col("years") * 2)
    np.testing.assert_allclose(repair.predict(longer), 2 * found)
    summary = fcorr.audit_model(
        repair, X, y, sensitive="s", exposure="years", n_resamples=9
    ).summary
    assert summary["figures"]["mean_ratio"]["estimate"] > 0.9


def test_weights_are_repetition():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(90) % 2, rng.normal(size=90)])
    weight = rng.integers(0, 4, 90)
    frozen = FrozenEstimator(LinearRegression().fit(X, X[:, 1] + X[:, 0]))
    weighted = QuantileRepair(frozen, 0).fit(X, X[:, 1], sample_weight=weight)
    repeated = QuantileRepair(frozen, 0).fit(
        np.repeat(X, weight, axis=0), np.repeat(X[:, 1], weight)
    )
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X))


def test_scikit_learn_sees_what_is_inside(people):
    (X, y), _ = people
    regressor, classifier = (
        QuantileRepair(on_frame(model), "S", cv=2)
        for model in (LinearRegression(), LogisticRegression())
    )
    assert is_regressor(regressor)
    assert is_classifier(classifier)
    assert not hasattr(regressor, "predict_proba")
    assert clone(classifier).set_params(share=0.5).share == 0.5
    assert 0.2 < cross_val_score(regressor, X, y, cv=2).mean() < 0.6
    assert 0.6 < cross_val_score(classifier, X, y > 0, cv=2).mean() < 0.9


def test_refusals(people):
    (X, y), (test, _) = people
    model = QuantileRepair(on_frame(LinearRegression()), "S", cv=2).fit(X, y)
    with pytest.raises(InvalidInputError, match="at scoring too, must name columns of X, got 'S'"):
        model.predict(test.drop(columns="S"))
    unseen = test.assign(S=test["S"].astype(object).where(test.index > 0, "perhaps"))
    with pytest.raises(InvalidInputError, match=r"'yes'\), got 'perhaps'\. Fit to rows"):
        model.predict(unseen)
    for arguments, target, message in [
        ({"sensitive": "S", "share": 1.5}, y, "share must lie between 0 and 1, got 1.5"),
        ({"sensitive": "Z"}, y, "sensitive must have groups, got 4000 different numbers"),
        ({"sensitive": "sex"}, y, "must name columns of X, got 'sex'"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            QuantileRepair(on_frame(LinearRegression()), **arguments).fit(X, target)
    with pytest.raises(InvalidInputError, match="two classes and for numbers"):
        QuantileRepair(on_frame(LogisticRegression()), "S").fit(X, np.arange(len(X)) % 3)
    with pytest.raises(InvalidInputError, match="two groups or more, got 'no' alone"):
        QuantileRepair(on_frame(LinearRegression()), "S").fit(X[X["S"] == "no"], y[X["S"] == "no"])
