"""What predicts the sensitive column, best estimates, and whose part discrimination is."""

import itertools
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fcorr import InvalidInputError, NotEstimableWarning
from fcorr._core import to_plain
from fcorr.audit.proxies import (
    ALL,
    PERMUTED,
    SCORE,
    BestEstimates,
    attribute_discrimination,
    best_estimates,
    measure_proxies,
)
from fcorr.data import make_proxy_bias
from fcorr.metrics import nearest_admissible, proxy_discrimination

pytestmark = pytest.mark.usefixtures("all_trees")
QUICK = {"n_resamples": 20, "random_state": 0}


def by_source(found, name=None):
    return {row.source: row for row in found.rows if name in (None, row.sensitive)}


# ------------------------------------------------------------------------------ strength


@pytest.mark.parametrize("as_frame", [pa.Table.to_pandas, pl.from_arrow, pa.table])
def test_a_planted_proxy_is_found_and_nothing_else(as_frame):
    X, y = make_proxy_bias(1_000, random_state=0)
    found = measure_proxies(as_frame(X), "S", scores=y, **QUICK)
    rows = by_source(found)
    assert [*rows][:4] == [ALL, PERMUTED, SCORE, "Z"]
    # Of two normal groups three deviations apart, Φ(3/√2) = 0.983.
    assert rows["Z"].value == pytest.approx(0.983, abs=0.015)
    assert rows["Z"].low < rows["Z"].value < rows["Z"].high
    assert rows[ALL].value > 0.95
    assert 0.6 < rows[SCORE].value < 0.95
    for source in (PERMUTED, "X1", "X2", "X3"):
        assert rows[source].low - 0.04 < 0.5 < rows[source].high + 0.04
    assert {row.metric for row in found.rows} == {"AUROC"}
    assert found.n_rows == 1_000
    assert found.notes == ()


def test_what_says_nothing_is_worth_nothing_whatever_the_weights():
    rng, inside = np.random.default_rng(0), []
    for seed in range(20):
        X = pd.DataFrame(
            {"S": rng.integers(0, 2, 200), "constant": 1, "b": rng.integers(0, 2, 200)}
        )
        weight = rng.lognormal(0, 1.5, 200)
        how = {"sample_weight": weight, "cv": 3, "n_resamples": 50, "random_state": seed}
        rows = by_source(measure_proxies(X.assign(x=rng.normal(size=200)), "S", **how))
        assert rows["constant"].value == pytest.approx(0.5)
        inside.append(rows[PERMUTED].low <= rows[ALL].value <= rows[PERMUTED].high)
    assert np.mean(inside) >= 0.9


def test_numbers_that_others_do_not_tell_are_within_what_is_nothing():
    rng = np.random.default_rng(0)
    age, noise = rng.normal(50, 10, 600), rng.normal(size=(600, 2))
    for tenure in (age + rng.normal(0, 3, 600), rng.normal(size=600)):
        X = pd.DataFrame({"age": age, "tenure": tenure, "a": noise[:, 0], "b": noise[:, 1]})
        rows = by_source(measure_proxies(X, "age", **QUICK))
        nothing = rows[PERMUTED]
        assert 0 <= nothing.low < nothing.value < nothing.high < 0.05
        assert rows["a"].value < nothing.high
    assert rows[ALL].value < nothing.high


def test_numbers_and_several_categories():
    rng = np.random.default_rng(0)
    age = rng.uniform(18, 90, 900)
    race = rng.choice(["a", "b", "c"], 900)
    X = pd.DataFrame(
        {
            "age": age,
            "race": race,
            "tenure": age + rng.normal(0, 10, 900),
            "district": [f"{r}{n % 40}" for n, r in enumerate(race)],  # 120 of them: rated
            "noise": rng.normal(size=900),
        }
    )
    found = measure_proxies(X, ["age", "race"], **QUICK)
    of_age, of_race = by_source(found, "age"), by_source(found, "race")
    assert of_age["tenure"].metric == "R²"
    # Var(age) = 432, and 100 of noise: what remains is 432 / 532.
    assert of_age["tenure"].value == pytest.approx(0.81, abs=0.06)
    assert of_age[PERMUTED].high < 0.05
    assert of_race["district"].value > 0.95
    assert of_race["noise"].value == pytest.approx(0.5, abs=0.05)
    assert "race" not in of_age  # which is sensitive itself


def test_rows_and_categories_that_are_left_out_are_counted():
    X, _ = make_proxy_bias(600, random_state=0)
    X = X.to_pandas()
    X["S"] = X["S"].astype(object)
    X.loc[:49, "S"] = None
    X.loc[50:52, "S"] = "perhaps"
    found = measure_proxies(X, "S", max_rows=590, **QUICK)
    assert found.n_rows == 590
    drawn, missing, few = found.notes
    assert drawn == "590 of 600 rows were drawn, with seed 0."
    assert "rows without 'S' are left out" in missing
    assert "Categories of 'S' of fewer than 10 rows are left out: 'perhaps (n=" in few
    assert by_source(found)["Z"].value > 0.95
    assert json.loads(json.dumps(to_plain(found.to_dict())))["rows"][0]["sensitive"] == "S"


def test_one_category_has_nothing_to_predict():
    X = pd.DataFrame({"S": ["a"] * 30, "x": range(30)})
    with pytest.warns(NotEstimableWarning, match="'S' has fewer than two categories") as caught:
        found = measure_proxies(X, "S", **QUICK)
    assert caught[0].filename == __file__
    assert all(np.isnan(row.value) for row in found.rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sensitive": "s"}, "sensitive must name columns of X, got 's'. Did you mean 'S'?"),
        ({"sensitive": ["S", "Z", "X1", "X2", "X3"]}, "X must have columns beside the sensitive"),
        ({"sensitive": "S", "scores": [1.0]}, "got X 50, scores 1"),
    ],
)
def test_refusals(arguments, message):
    X, _ = make_proxy_bias(50, random_state=0)
    with pytest.raises(InvalidInputError, match=message):
        measure_proxies(X, **arguments)


# ------------------------------------------------------------------------------ best estimates


@pytest.fixture(scope="module")
def policies():
    X, y = make_proxy_bias(6_000, random_state=0)
    return X.to_pandas(), y


def on_frame(model):
    encode = make_column_transformer((OneHotEncoder(), ["S", "X3"]), remainder="passthrough")
    return make_pipeline(encode, model)


@pytest.mark.parametrize("estimator", [None, on_frame(LinearRegression())], ids=["trees", "line"])
def test_estimates_are_near_the_truth_and_of_other_rows(policies, estimator):
    X, y = policies
    estimates = best_estimates(X, y, "S", estimator=estimator, random_state=0)
    risk = X["X1"] - 0.5 * X["X2"] + 0.8 * ((X["X3"] == "yes") - 0.5)
    error = estimates.scores - np.column_stack([risk - 1, risk + 1])
    assert np.sqrt(np.mean(error**2)) < (0.45 if estimator is None else 0.06)
    assert estimates.categories == ("no", "yes")
    np.testing.assert_array_equal(np.array(estimates.groups), X["S"])
    # Each row by the model that was not fitted to it, in which its own y has no part.
    changed = y + 1e3 * (estimates.folds == 2)
    again = best_estimates(X, changed, "S", estimator=estimator, random_state=0)
    own = estimates.folds == 2
    np.testing.assert_array_equal(again.scores[own], estimates.scores[own])
    assert np.abs(again.scores[~own] - estimates.scores[~own]).min() > 1
    for fold in range(5):
        rows = np.flatnonzero(estimates.folds == fold)[:3]
        found = estimates.predictors[fold](X.iloc[rows])
        np.testing.assert_allclose(found, estimates.scores[rows])


def test_probabilities_of_two_classes():
    X, y = make_proxy_bias(3_000, task="classification", random_state=0)
    X = X.to_pandas()
    labels = np.array(["bad", "good"])[y]
    trees = best_estimates(X, labels, "S", random_state=0).scores
    line = on_frame(LogisticRegression())
    lines = best_estimates(X, labels, "S", estimator=line, random_state=0).scores
    for scores in (trees, lines):
        assert (scores > 0).all()
        assert (scores < 1).all()
        assert (scores[:, 1] - scores[:, 0]).mean() > 0.2  # the direct effect of S
    assert np.abs(trees - lines).mean() < 0.1


def test_groups_of_several_columns_and_of_numbers():
    rng = np.random.default_rng(0)
    columns = {
        "sex": np.array(["f", "m"])[np.arange(400) % 2],
        "race": np.where(np.arange(400) % 2, "a", rng.choice(["a", "b"], 400)),
        "age": rng.uniform(18, 90, 400),
        "x": rng.normal(size=400),
    }
    X = pl.DataFrame(columns)
    joint = best_estimates(X, columns["x"], ["sex", "race"], random_state=0)
    assert joint.categories == (("f", "a"), ("f", "b"), ("m", "a"))  # those that occur
    assert joint.groups[1] == ("m", "a")
    by_age = best_estimates(X, columns["x"], "age", random_state=0)
    assert len(by_age.categories) == 10
    assert np.isfinite(proxy_discrimination(columns["x"], by_age))


def test_a_group_that_some_model_would_not_see_is_refused(policies):
    X, y = policies
    X = X.assign(S=X["S"].astype(object).where(X.index > 0, "perhaps"))
    with pytest.raises(InvalidInputError, match=r"at least cv=5 rows, .* got 'perhaps \(n=1\)'"):
        best_estimates(X, y, "S")
    with pytest.raises(InvalidInputError, match="y must have two classes, got 0, 1, 2"):
        best_estimates(X, np.arange(len(X)) % 3, "X3", estimator=LogisticRegression())


# ------------------------------------------------------------------------------ attribution


def true_estimates(X, estimate, n_folds=2):
    """Best estimates by a known function of the table."""
    s = (X["S"] == "yes").to_numpy(int)
    folds = np.arange(len(X)) % n_folds
    return BestEstimates(("no", "yes"), s, estimate(X), None, (estimate,) * n_folds, folds)


def true_risk(X):
    risk = (X["X1"] - 0.5 * X["X2"]).to_numpy()
    return np.column_stack([risk - 1, risk + 1])


def test_all_of_it_is_the_proxys(policies):
    X, _ = policies
    estimates = true_estimates(X, true_risk)

    def price(X):
        return X["X1"] - 0.5 * X["X2"] + 0.4 * X["Z"]

    found = attribute_discrimination(price, X, estimates, n_samples=8, n_rows=300, random_state=0)
    assert found.total == proxy_discrimination(price(X), estimates)
    first, *others = found.rows
    assert first.feature == "Z"
    assert first.part == pytest.approx(found.total, rel=0.01)
    assert sum(row.part for row in found.rows) == pytest.approx(found.total)
    assert all(abs(row.part) < 0.02 * found.total for row in others)
    assert {row.feature: row.part for row in others}["S"] == 0  # which nothing reads


def exact_parts(difference, cells, share):
    """Shapley values over all orders and all pairs of rows of a small population."""
    n_features = cells.shape[1]
    orders = list(itertools.permutations(range(n_features)))
    own, other = np.repeat(cells, len(cells), axis=0), np.tile(cells, (len(cells), 1))
    pair_share = np.outer(share, share).ravel()
    parts = np.zeros(n_features)
    for order in orders:
        mixed = other.copy()
        before = difference(mixed)
        for j in order:
            mixed[:, j] = own[:, j]
            after = difference(mixed)
            parts[j] += np.sum(pair_share * (after - before) * difference(own)) / len(orders)
            before = after
    return parts


@pytest.mark.parametrize("weighted", [False, True])
def test_parts_are_those_of_all_orders_within_their_errors(weighted):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (400, 3)).astype(float)
    X[:, 1] = np.where(rng.random(400) < 0.6, X[:, 0], X[:, 1])  # columns that go together
    weight = (0.1 + X[:, 2]) ** 2 if weighted else np.ones(400)

    def price(X):
        return 2 * X[:, 0] + X[:, 1] * X[:, 2] - 0.5 * X[:, 2]

    def estimate(X):
        return np.column_stack([X[:, 0], X[:, 0] + 0.2 * X[:, 2]])

    estimates = BestEstimates(
        ("a", "b"), np.arange(400) % 2, estimate(X), None, (estimate,), np.zeros(400, dtype=int)
    )
    nearest = nearest_admissible(price(X), estimates, sample_weight=weight)
    v = np.array([*nearest.weights.values()])
    cells, places = np.unique(X, axis=0, return_inverse=True)
    share = np.bincount(places.ravel(), weights=weight) / weight.sum()  # numpy 2.0 has two axes
    truth = exact_parts(lambda X: price(X) - nearest.constant - estimate(X) @ v, cells, share)
    variance = np.cov(price(X), aweights=weight, bias=True)
    assert truth.sum() / variance == pytest.approx(nearest.discrimination)
    found = attribute_discrimination(
        price, X, estimates, sample_weight=weight, n_samples=200, n_rows=200, random_state=0
    )
    parts = {row.feature: row for row in found.rows}
    for j, expected in enumerate(truth / variance):
        row = parts[f"x{j}"]
        assert abs(row.part - expected) < 3.5 * row.error
        assert row.error < 0.02


def test_estimates_are_by_the_model_that_did_not_see_the_person():
    rng = np.random.default_rng(0)
    folds = np.arange(60) % 3
    X = np.column_stack([rng.normal(size=60), folds])
    seen = {}

    def predictor(fold):
        def predict(X):
            seen.setdefault(fold, []).append((X[:, 1] == fold).all())
            return np.column_stack([X[:, 0], 2 * X[:, 0]])

        return predict

    scores = np.column_stack([X[:, 0], 2 * X[:, 0]])
    predictors = tuple(map(predictor, range(3)))
    estimates = BestEstimates(("a", "b"), np.arange(60) % 2, scores, None, predictors, folds)
    attribute_discrimination(
        lambda X: X[:, 0] ** 2, X, estimates, n_samples=6, n_rows=20, random_state=0
    )
    # With both columns a person's own, which is the case at the end of each order.
    assert [sum(seen[fold]) >= 3 for fold in range(3)] == [True] * 3


@pytest.mark.parametrize("n_samples", [2, 5, 20.0])
def test_orders_come_in_pairs(policies, n_samples):
    X, _ = policies
    with pytest.raises(InvalidInputError, match="n_samples must be an even integer of at least 4"):
        attribute_discrimination(len, X, true_estimates(X, true_risk), n_samples=n_samples)
