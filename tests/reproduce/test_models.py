"""Models behind one face: made from a run, fitted, and scoring whole tables."""

from dataclasses import replace

import lightgbm
import numpy as np
import pytest

from fcorr import BaselineClassifier, BaselineRegressor, FCorrClassifier, FCorrRegressor
from fcorr.reproduce.data import EXPOSURE, Rows, load_split
from fcorr.reproduce.models import fit, make_network
from fcorr.reproduce.trees import fit_trees


@pytest.fixture
def fraud(data_folder, find_run):
    return load_split(find_run("baf", "FCorr").data, 0)


@pytest.mark.parametrize(
    ("experiment", "model", "kind"),
    [
        ("baf", "FCorr", FCorrClassifier),
        ("baf", "FFN", BaselineClassifier),
        ("claims", "FCorr", FCorrRegressor),
        ("claims", "FT-Transformer", BaselineRegressor),
    ],
)
def test_the_estimator_of_a_run(find_run, experiment, model, kind):
    run = replace(find_run(experiment, model), seed=7)
    made = make_network(run, run.sensitive[0])
    assert type(made) is kind
    parameters = made.get_params()
    assert parameters["sensitive"] == run.sensitive[0]
    assert parameters["random_state"] == 7
    assert parameters.get("exposure") is None
    assert parameters["epochs"] == 1
    assert make_network(run, None).get_params()["sensitive"] != run.sensitive[0]


def test_numbers_are_embedded_as_printed_or_by_splines(find_run):
    printed = make_network(find_run("adult", "FCorr"), None)
    ours = make_network(find_run("adult", "FCorr, splines"), None)
    assert (printed.numeric_embedding, ours.numeric_embedding) == ("paper", "spline")
    assert (printed.residual, printed.car, printed.invariance) == (False, None, None)
    assert make_network(find_run("baf", "TabTransformer"), None).network == "tab_transformer"


def test_an_exposure_is_the_networks_offset(find_run):
    run = find_run("motor", "FCorr", table="bemtpl97")
    made = make_network(run, "sex", exposed=True)
    assert (made.exposure, made.objective) == (EXPOSURE, "poisson")


def test_a_fitted_network(fraud, find_run):
    run = find_run("multilayer", "FCorr + CAR", n_layers=3)
    fitted = fit(run, fraud.train)
    model = make_network(run, "customer_age").fit(fraud.train.X, fraud.train.y)
    scores = fitted.score(fraud.test.X)
    np.testing.assert_array_equal(scores, model.predict_proba(fraud.test.X)[:, 1])
    assert fitted.n_parameters == sum(p.numel() for p in model.model_.parameters())
    assert fitted.significance == {"significance": model.feature_significance()}
    assert set(fitted.features) == set(fraud.train.X)
    for place, layer in (("first", 0), ("last", 2)):
        expected = model.attention(fraud.train.X, layer=layer).values
        np.testing.assert_array_equal(fitted.attention[place], expected)
    assert not np.array_equal(fitted.attention["first"], fitted.attention["last"])
    assert fitted.training["epochs"] == 1
    assert fitted.training["car_weight"] == model.history_.car_weight > 0
    plain = fit(find_run("baf", "FCorr"), fraud.train)
    assert plain.training["car_weight"] is None
    assert list(plain.attention) == ["first"]


def test_car_leaves_its_weight_and_ratio(fraud, find_run):
    training = fit(find_run("baf", "FCorr + CAR"), fraud.train).training
    assert training["car_weight"] == 10 ** np.floor(np.log10(training["car_ratio"]))
    assert training["last_car"] >= 0


def test_a_network_without_attention_has_none(fraud, find_run):
    fitted = fit(find_run("baf", "FFN"), fraud.train)
    assert (fitted.attention, fitted.features, fitted.significance) == ({}, (), {})
    assert fitted.n_parameters > 0


def test_trees(fraud, find_run):
    fitted = fit(find_run("baf", "LightGBM"), fraud.train)
    assert set(fitted.significance) == {"split", "gain"}
    assert set(fitted.significance["split"]) == set(fraud.train.X)
    assert sum(fitted.significance["split"].values()) > 0
    assert fitted.n_parameters is None
    assert fitted.training == {}
    scores = fitted.score(fraud.test.X)
    assert scores.shape == (800,)
    assert np.all((scores >= 0) & (scores <= 1))


@pytest.mark.parametrize("model", ["FCorr + Rem", "LightGBM + Rem"])
def test_a_removed_column_is_never_seen(fraud, find_run, model):
    run = find_run("baf", model)
    fitted = fit(run, fraud.train)
    dropped = fraud.train.X.drop(columns="customer_age")
    if run.kind == "lightgbm":
        other = fit_trees(Rows(dropped, fraud.train.y), run.task, 0, **run.arguments).score
    else:
        network = make_network(run, None).fit(dropped, fraud.train.y)
        other = lambda X: network.predict_proba(X)[:, 1]  # noqa: E731
    scores = fitted.score(fraud.test.X)
    np.testing.assert_array_equal(scores, other(fraud.test.X.drop(columns="customer_age")))
    (measure, *_) = fitted.significance.values()
    assert "customer_age" not in measure
    assert len(measure) == 30
    assert fitted.attention == {}


def test_trees_predict_a_rate_where_there_is_exposure(real_data, find_run):
    run = find_run("motor", "LightGBM", table="bemtpl97")
    data = load_split(run.data, 0)
    score = fit(run, data.train).score
    rates = score(data.test.X)
    longer = data.test.X.assign(**{EXPOSURE: 2 * data.test.exposure})
    np.testing.assert_array_equal(score(longer), rates)
    trees = lightgbm.LGBMRegressor(
        objective="poisson",
        n_estimators=3,
        random_state=0,
        n_jobs=1,
        deterministic=True,
        force_row_wise=True,
        verbose=-1,
    )
    years = data.train.exposure
    trees.fit(data.train.features, data.train.y / years, sample_weight=years)
    np.testing.assert_array_equal(rates, trees.predict(data.test.features))
