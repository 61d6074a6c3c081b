"""What predicts the sensitive column, and best estimates."""

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
    best_estimates,
    measure_proxies,
)
from fcorr.data import make_proxy_bias
from fcorr.metrics import demographic_unfairness, proxy_discrimination

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
    # Each row by a model that was not fitted to it, in which its own y has no part.
    again = best_estimates(X, y + 1e6 * (X.index == 7), "S", estimator=estimator, random_state=0)
    is_same = (again.scores == estimates.scores).all(axis=1)
    assert is_same[7]
    assert 0.15 < is_same.mean() < 0.25  # its fold


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


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_groups_of_several_columns_and_of_numbers(frame):
    rng = np.random.default_rng(0)
    columns = {
        "sex": np.array(["f", "m"])[np.arange(400) % 2],
        "race": np.where(np.arange(400) % 2, "a", rng.choice(["a", "b"], 400)),
        "age": rng.uniform(18, 90, 400),
        "x": rng.normal(size=400),
    }
    X = frame(columns)
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


def test_by_estimates_of_rows_only_the_blind_price_discriminates(policies):
    """The truth is 0.33 for the line without S, and 0 for the discrimination-free price."""
    X, y = policies
    line = on_frame(LinearRegression())
    estimates = best_estimates(X, y, "S", estimator=line, random_state=0)
    others = X[["Z", "X1", "X2"]].assign(X3=X["X3"] == "yes")
    blind = LinearRegression().fit(others, y).predict(others)
    assert proxy_discrimination(blind, estimates) == pytest.approx(0.33, abs=0.02)
    assert proxy_discrimination(estimates.scores @ [0.5, 0.5], estimates) == 0
    assert demographic_unfairness(estimates.scores @ [0.5, 0.5], sensitive_features=X["S"]) < 0.01
