"""From configuration files to runs, rows and models: what the files say is what is run.

Settings of the full size are held by the keys of the committed records.
"""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import fairlearn.postprocessing
import fairlearn.reductions
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from fcorr import FCorrRegressor, InvalidInputError
from fcorr.estimators.options import check_arguments
from paper.augmentation import AugmentedClassifier
from paper.baselines.estimators import ARCHITECTURES, BaselineClassifier, BaselineRegressor
from paper.experiments import EXPERIMENTS, DataSettings, list_runs, read_config
from paper.generators import make_bank_fraud
from paper.models import EXPOSURE, expected_constants, fit, load_split, make_network

ROOT = Path(__file__).parents[2]
FITS = [name for name in EXPERIMENTS if name != "complexity"]


def test_files_and_models():
    words = {"models", "smoke", "paper", "claims_of_paper", "summary"}
    files = {file.stem for file in (ROOT / "paper" / "configs").iterdir()}
    assert files == {*EXPERIMENTS, *words}
    named = {model for name in FITS for model in read_config(name)["models"]}
    assert named == set(read_config("models"))  # described once, and all are used
    sizes = read_config("complexity")["sizes"]
    assert {*sizes["bank_fraud"], *sizes["claims"]} <= named


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_seeds_and_keys(experiment):
    full, smoke = (list_runs(experiment, size) for size in ("full", "smoke"))
    seeds = [run.seed for run in full]
    assert len(set(seeds)) == read_config(experiment)["seeds"] >= 5
    assert seeds == sorted(seeds)  # cut short, all models have the same seeds
    few = list_runs(experiment, "full", 2)
    assert few == full[: len(few)]
    for runs in (full, smoke):
        assert len({run.key for run in runs}) == len(runs)
    # A smoke run is never taken for the real thing; but parameters and memory of a step are those
    # of the real models at either size.
    both = {run.key for run in full} & {run.key for run in smoke}
    assert {getattr(run, "measure", "") for run in full if run.key in both} <= {"size"}


def test_any_setting_changes_the_key_and_nothing_else(find_run):
    run = find_run("baf", "FCorr")
    others = [
        replace(run, seed=1),
        replace(run, removed=True),
        replace(run, threshold=0.5),
        replace(run, arguments={**run.arguments, "epochs": 2}),
        replace(run, data=replace(run.data, n_test=801)),
    ]
    assert len({run.key, *(other.key for other in others)}) == 6
    assert replace(run, arguments=dict(reversed(run.arguments.items()))).key == run.key
    code = "from paper.experiments import *; print(list_runs('baf', 'smoke', 1)[0].key, end='')"
    options = {"cwd": ROOT, "env": {**os.environ, "PYTHONHASHSEED": "1"}}
    elsewhere = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, **options)
    assert elsewhere.stdout.decode() == list_runs("baf", "smoke", 1)[0].key


# ------------------------------------------------------------ arguments


def check_model(run):
    """Refuse what the model of a run would refuse; those of other libraries are fitted below."""
    if run.kind in ("lightgbm", "fairlearn"):
        known = {*lightgbm.LGBMModel().get_params(), "method", "constraint"}
        assert run.arguments.keys() <= known
        return
    sensitive = None if run.removed else run.sensitive[0]
    model = make_network(run, sensitive, exposed=run.experiment == "motor")
    check_arguments(model.get_params(deep=False))
    if run.kind in ARCHITECTURES:
        options = run.arguments.get("network_options", {})
        assert options.keys() <= ARCHITECTURES[run.kind].sizes.keys()


@pytest.mark.parametrize("experiment", FITS)
def test_estimators_take_their_arguments(experiment):
    for size in ("full", "smoke"):
        for run in list_runs(experiment, size, 1):
            check_model(run)


@pytest.mark.parametrize(
    ("model", "arguments"),
    [("FCorr", {"epochs": 0}), ("FFN", {"network_options": {"hed": [4]}}), ("LightGBM", {"n": 1})],
)
def test_the_check_of_arguments_can_fail(find_run, model, arguments):
    with pytest.raises((InvalidInputError, AssertionError)):
        check_model(replace(find_run("baf", model), arguments=arguments))


@pytest.mark.parametrize(
    ("experiment", "model", "kind"),
    [
        ("baf", "FCorr + CAR", AugmentedClassifier),
        ("baf", "FFN", BaselineClassifier),
        ("claims", "FCorr", FCorrRegressor),
        ("claims", "FT-Transformer", BaselineRegressor),
    ],
)
def test_the_estimator_of_a_run(find_run, experiment, model, kind):
    run = replace(find_run(experiment, model), seed=7)
    made = make_network(run, run.sensitive[0])
    assert type(made) is kind
    found = made.get_params()
    assert (found["sensitive"], found["random_state"], found["epochs"]) == (run.sensitive[0], 7, 1)
    assert make_network(run, None).get_params()["sensitive"] is None
    if model == "FCorr + CAR":  # names of the configurations that the estimator has elsewhere
        form = {"residual": False, "numeric_embedding": "paper"}
        assert found["advanced"] == found["advanced"] | form
        assert (found["invariance"], found["car"]) == (None, "paper")


def test_what_no_configuration_names_is_as_the_records_have_it():
    named = {run.model: run for run in list_runs("adult", "full", 1)}
    found = make_network(named["FCorr, defaults"], "race").get_params()
    sizes = {"head": (128, 128), "dropout": 0.1, "epochs": 20, "learning_rate": 0.02}
    assert found == found | sizes | {"n_members": 1, "car": 1e6}
    assert "batch_size" not in found["advanced"]
    networks = [run for run in named.values() if run.kind not in ("lightgbm", "fairlearn")]
    assert len(networks) == 14
    for run in networks:  # also where CAR has no part, and the default is another
        advanced = make_network(run, "race").advanced
        assert (advanced["main_effects"], advanced["beta2"]) == (False, 0.95)
    (claims,) = (run for run in list_runs("claims", "full", 1) if run.model == "FCorr")
    assert make_network(claims, None).advanced["beta2"] == 0.999  # as it is configured


# ------------------------------------------------------------ rows


def settings(name, n_train=60, n_test=60):  # as many: the same seed would draw the same
    return DataSettings(name, n_train, n_test, n_train_measured=10_000, n_trees=3)


@pytest.mark.parametrize(
    ("name", "stands_in_for"),
    [("indirect_bias", ""), ("bank_fraud", "Bank Account Fraud"), ("claims", "InsurTech")],
)
def test_generated_rows(data_folder, name, stands_in_for):
    splits = [load_split(settings(name), seed) for seed in (0, 1)]
    for split in splits:
        assert (split.name, split.stands_in_for) == (f"make_{name}", stands_in_for)
        assert (len(split.train), len(split.test), split.train.exposure) == (60, 60, None)
    parts = [part for split in splits for part in (split.train, split.test)]
    assert len({part.X.to_numpy().astype(str).tobytes() for part in parts}) == 4
    load_split.cache_clear()
    again = load_split(settings(name), 0)
    pd.testing.assert_frame_equal(again.test.X, splits[0].test.X)
    assert np.array_equal(again.train.y, splits[0].train.y)


def test_a_download_of_the_real_table_is_used_and_has_records_of_its_own(data_folder):
    before = {run.key for run in list_runs("baf", "full")}
    X, y = make_bank_fraud(2_000, fraud_rate=0.1, random_state=5)
    (data_folder / "baf").mkdir()
    pa_csv.write_csv(X.add_column(0, "fraud_bool", pa.array(y)), data_folder / "baf" / "Base.csv")
    runs = list_runs("baf", "full")
    assert not before & {run.key for run in runs}
    (data,) = {run.data for run in runs}
    split, other = (load_split(data, seed) for seed in (0, 1))
    assert (split.name, split.stands_in_for) == ("Bank Account Fraud (base)", "")
    month = X["month"].to_numpy().astype(int)
    assert np.array_equal(split.train.y, y[month <= 5])
    assert np.array_equal(split.test.y, y[month >= 6])
    assert list(split.train.X) == X.column_names
    pd.testing.assert_frame_equal(split.train.X, other.train.X)  # whatever the seed
    assert {run.data.name for run in list_runs("baf", "smoke")} == {"bank_fraud"}


def test_published_rows(real_data):
    adult = load_split(settings("adult", None, None), 0)
    assert (adult.name, adult.stands_in_for, adult.train.exposure) == ("Adult", "", None)
    assert (len(adult.train), len(adult.test)) == (32_561, 16_281)
    for name in ("bemtpl97", "fremtpl2"):
        split = load_split(settings(name, 400, 300), 0)
        assert split.stands_in_for == "InsurTech"
        for rows, n_rows in ((split.train, 400), (split.test, 300)):
            assert len(rows) == len(rows.X) == n_rows
            assert np.array_equal(rows.exposure, rows.X[EXPOSURE])
            assert np.all((rows.exposure > 0) & (rows.exposure <= 1))
            assert len(rows.first(7)) == len(rows.first(7).exposure) == 7
        assert np.array_equal(load_split(settings(name, 400, 300), 1).train.y, split.train.y)


# ------------------------------------------------------------ models, fitted


@pytest.fixture
def fraud(data_folder, find_run):
    return load_split(find_run("baf", "FCorr").data, 0)


def test_a_fitted_network_tells_of_itself(fraud, find_run):
    run = find_run("multilayer", "FCorr + CAR", n_layers=3)
    fitted = fit(run, fraud.train)
    with expected_constants():
        model = make_network(run, "customer_age").fit(fraud.train.X, fraud.train.y)
    scores = fitted.score(fraud.test.X)
    np.testing.assert_array_equal(scores, model.predict_proba(fraud.test.X)[:, 1])
    assert fitted.n_parameters == sum(p.numel() for p in model.model_.parameters())
    assert fitted.significance == {"significance": model.feature_significance()}
    for place, layer in (("first", 0), ("last", 2)):
        expected = model.attention(fraud.train.X, layer=layer)
        np.testing.assert_array_equal(fitted.attention[place], expected.values)
        assert fitted.features == expected.names
    training = fitted.training
    assert training["epochs"] == 1
    assert training["car_weight"] == 10 ** np.floor(np.log10(training["car_ratio"]))
    assert training["last_car"] >= 0
    plain = fit(find_run("baf", "FCorr"), fraud.train)
    assert plain.training["car_weight"] is None
    assert list(plain.attention) == ["first"]
    ffn = fit(find_run("baf", "FFN"), fraud.train)
    assert (ffn.attention, ffn.features, ffn.significance) == ({}, (), {})


@pytest.mark.parametrize("model", ["FCorr + Rem", "LightGBM + Rem"])
def test_a_removed_column_is_never_seen(fraud, find_run, model):
    fitted = fit(find_run("baf", model), fraud.train)
    other = fraud.test.X.assign(customer_age=fraud.test.X["customer_age"].iloc[::-1].to_numpy())
    np.testing.assert_array_equal(fitted.score(fraud.test.X), fitted.score(other))
    (measure, *_) = fitted.significance.values()
    assert set(measure) == set(fraud.train.X) - {"customer_age"}
    assert fitted.attention == {}


def test_trees_predict_a_rate_where_there_is_exposure(real_data, find_run):
    run = find_run("motor", "LightGBM", table="bemtpl97")
    data = load_split(run.data, 0)
    score = fit(run, data.train).score
    rates = score(data.test.X)
    longer = data.test.X.assign(**{EXPOSURE: 2 * data.test.exposure})
    np.testing.assert_array_equal(score(longer), rates)
    options = {"random_state": 0, "n_jobs": 1, "deterministic": True, "force_row_wise": True}
    trees = lightgbm.LGBMRegressor(objective="poisson", n_estimators=3, verbose=-1, **options)
    train, test = (part.X.drop(columns=EXPOSURE) for part in (data.train, data.test))
    years = data.train.exposure
    trees.fit(train, data.train.y / years, sample_weight=years)
    np.testing.assert_array_equal(rates, trees.predict(test))


@pytest.mark.filterwarnings("ignore:Setting a")  # fairlearn with pandas 3
@pytest.mark.parametrize("method", ["ExponentiatedGradient", "ThresholdOptimizer"])
def test_scores_of_mitigations_are_probabilities_of_their_decisions(real_data, find_run, method):
    run = find_run("adult", f"{method}, demographic parity", column="sex")
    run = replace(run, arguments={**run.arguments, "n_estimators": 15})  # three decide for nobody
    train = load_split(run.data, 0).train
    scores = fit(run, train).score(train.X)
    assert scores.min() >= 0
    assert scores.max() == pytest.approx(1)
    # On the rows it was fitted on, groups fare alike, which those of plain trees do not.
    men = (train.X["sex"] == "Male").to_numpy()
    plain = replace(find_run("adult", "LightGBM"), arguments={"n_estimators": 15})
    other = fit(plain, train).score(train.X)
    assert abs(scores[men].mean() - scores[~men].mean()) < 0.03
    assert abs(other[men].mean() - other[~men].mean()) > 0.1
    # Its own decisions, drawn many times, come out so often.
    trees = lightgbm.LGBMClassifier(n_estimators=15, random_state=0, n_jobs=1, verbose=-1)
    if method == "ThresholdOptimizer":
        mitigation = fairlearn.postprocessing.ThresholdOptimizer(
            estimator=trees, constraints="demographic_parity", predict_method="predict_proba"
        )
        seen = {"sensitive_features": train.X["sex"]}
    else:
        moment = fairlearn.reductions.DemographicParity()
        mitigation = fairlearn.reductions.ExponentiatedGradient(trees, constraints=moment)
        seen = {}
    mitigation.fit(train.X, train.y, sensitive_features=train.X["sex"])
    drawn = [mitigation.predict(train.X, random_state=seed, **seen) for seed in range(100)]
    np.testing.assert_allclose(np.mean(drawn, axis=0), scores, atol=0.25)  # five deviations
    assert np.mean(drawn) == pytest.approx(scores.mean(), abs=0.005)
