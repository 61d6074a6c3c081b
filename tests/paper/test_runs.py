"""Runs of smoke size: what their records hold, and that it is right."""

import json
from dataclasses import asdict, replace

import lightgbm
import numpy as np
import pytest
import torch
from fcorr.reproduce.data import load_split
from fcorr.reproduce.models import fit
from fcorr.reproduce.runs import carry_out, carry_out_fit
from fcorr.reproduce.settings import list_runs
from fcorr.reproduce.trees import papers_threshold
from sklearn import metrics as sklearn_metrics

from fcorr import metrics

FIELDS = [
    "key",
    "experiment",
    "title",
    "model",
    "seed",
    "config",
    "data",
    "threshold",
    "performance",
    "fairness",
    "parameters",
    "training",
    "significance",
    "attention",
    "seconds",
    "peak_megabytes",
    "notes",
    "warnings",
    "versions",
]
RANKED = {"AUROC", "AUPRC", "F1", "Accuracy", "FPR", "FNR"}
FLIPS = {"AvgIF", "F1 gap", "AUROC gap", "AUPRC gap", "largest change", "decisions flipped"}
GROUPS = {"DPD", "EqOdd", "EqOpp", "DPD of scores"}
AMOUNTS = {"deviance", "RMSE", "MAE", "Gini", "normalised Gini", "PE"}


def what_was_found(record):
    """Leave out what is never twice the same."""
    measured = ("seconds", "peak_megabytes")
    return {name: value for name, value in record.items() if name not in measured}


def check_plain(record):
    assert list(record) == FIELDS
    text = json.dumps(record, allow_nan=False)
    assert text.startswith('{"key": "')
    assert json.loads(text) == record


# ------------------------------------------------------------ records


def test_the_record_of_a_classification(data_folder, find_run):
    run = find_run("baf", "FCorr + CAR")
    record = carry_out_fit(run)
    check_plain(record)
    assert record["key"] == run.key
    assert record["config"] == json.loads(json.dumps(asdict(run)))
    assert (record["experiment"], record["model"], record["seed"]) == ("baf", "FCorr + CAR", 0)
    assert record["title"] == "FCorr + CAR (bank_fraud, customer_age), seed 0"
    assert record["data"] == {
        "name": "make_bank_fraud",
        "stands_in_for": "Bank Account Fraud",
        "n_train": 1_500,
        "n_train_measured": 1_500,
        "n_test": 800,
    }
    assert list(record["fairness"]) == ["customer_age"]
    for part in ("train", "test"):
        assert record["performance"][part].keys() >= RANKED
        assert record["fairness"]["customer_age"][part].keys() == FLIPS | GROUPS
    assert record["performance"]["train"] != record["performance"]["test"]
    assert record["parameters"] > 0
    assert record["training"]["epochs"] == 1
    assert record["training"]["car_weight"] > 0
    assert 0 < record["seconds"]["fit"] == record["seconds"]["epoch"]
    assert record["seconds"]["measure"] > 0
    attention = record["attention"]
    assert set(attention) == {"features", "first"}
    assert np.shape(attention["first"]) == (31, 31)
    assert set(attention["features"]) == set(record["significance"]["significance"])
    assert any("not estimable" in note for note in record["notes"])  # a few frauds, nine ages
    assert {"fcorr", "python", "torch", "lightgbm"} <= set(record["versions"])


def test_large_matrices_are_kept_of_one_seed(data_folder, find_run):
    run = replace(find_run("baf", "FCorr"), seed=1)
    record = carry_out_fit(run)
    assert record["attention"] == {}
    assert len(record["significance"]["significance"]) == 31
    small = replace(find_run("synthetic", "FCorr"), seed=1)
    assert np.shape(carry_out_fit(small)["attention"]["first"]) == (3, 3)


# In the one epoch of the smoke size a network may learn next to nothing.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", ["FCorr + CAR", "LightGBM"])
def test_the_record_of_a_regression_with_exposure(real_data, find_run, model):
    run = find_run("motor", model, table="fremtpl2")
    record = carry_out_fit(run)
    check_plain(record)
    assert record["data"]["stands_in_for"] == "InsurTech"
    assert record["data"]["n_train"] == 3_000
    assert record["threshold"] is None
    found = record["performance"]["test"]
    assert found.keys() == AMOUNTS
    fair = record["fairness"]["DrivAge"]["test"]
    assert fair.keys() == {
        "DPD",
        "A/E gap",
        "AvgIF",
        "RMSE gap",
        "MAE gap",
        "largest change",
    }
    data = load_split(run.data, 0)
    rates = fit(run, data.train).score(data.test.X)
    exposure = data.test.exposure
    per_year = data.test.y / exposure
    assert found["deviance"] == pytest.approx(
        sklearn_metrics.mean_poisson_deviance(per_year, rates, sample_weight=exposure)
    )
    assert found["PE"] == pytest.approx(np.sum(rates * exposure) / data.test.y.sum() - 1)
    assert found["Gini"] == pytest.approx(
        metrics.gini_score(per_year, rates, sample_weight=exposure)
    )


@pytest.mark.filterwarnings("ignore:Setting a")  # fairlearn with pandas 3
@pytest.mark.parametrize("method", ["ExponentiatedGradient", "ThresholdOptimizer"])
def test_the_record_of_a_mitigation(real_data, find_run, method):
    run = find_run("adult", f"{method}, demographic parity", column="sex")
    trees = {"n_estimators": 15}  # of three, none would decide for anybody
    run = replace(run, arguments=run.arguments | trees)
    record = carry_out_fit(run)
    check_plain(record)
    assert record["threshold"] == 0.5
    assert record["parameters"] is None
    assert record["seconds"]["epoch"] is None
    assert (record["significance"], record["attention"], record["training"]) == ({}, {}, {})
    assert record["performance"]["test"].keys() >= RANKED
    # Scores are probabilities of a decision: on the rows it was fitted on, groups fare alike.
    train = load_split(run.data, 0).train
    scores = {
        name: fit(each, train).score(train.X)
        for name, each in (
            ("mitigated", run),
            ("plain", replace(find_run("adult", "LightGBM"), arguments=trees)),
        )
    }
    men = (train.X["sex"] == "Male").to_numpy()
    gap = {name: abs(of[men].mean() - of[~men].mean()) for name, of in scores.items()}
    assert gap["plain"] > 0.1
    assert gap["mitigated"] < 0.03
    assert scores["mitigated"].max() == 1


@pytest.mark.parametrize("model", ["FCorr + Rem", "LightGBM + Rem"])
def test_nothing_changes_under_flips_of_a_removed_column(data_folder, find_run, model):
    record = carry_out_fit(find_run("baf", model))
    check_plain(record)
    for part in ("train", "test"):
        found = record["fairness"]["customer_age"][part]
        assert {found[name] for name in FLIPS} == {0.0}
    assert record["attention"] == {}


def test_trees_do_depend_on_a_column_they_see(data_folder, find_run):
    record = carry_out_fit(find_run("baf", "LightGBM"))
    check_plain(record)
    assert set(record["significance"]) == {"split", "gain"}
    assert record["seconds"]["epoch"] is None
    assert record["performance"]["train"]["AUROC"] > 0.6


def test_metrics_are_measured_on_so_many_of_the_training_rows(data_folder, find_run):
    run = find_run("synthetic", "FCorr")
    few = replace(run, data=replace(run.data, n_train_measured=100))
    record = carry_out_fit(few)
    assert record["data"]["n_train"] == 400
    assert record["data"]["n_train_measured"] == 100
    data = load_split(few.data, 0)
    scores = fit(few, data.train).score(data.train.X)
    expected = sklearn_metrics.roc_auc_score(data.train.y[:100], scores[:100])
    assert record["performance"]["train"]["AUROC"] == pytest.approx(expected)


# ------------------------------------------------------------ numbers


@pytest.mark.parametrize("experiment", ["baf", "synthetic"])
def test_the_threshold_is_that_of_the_best_f1_of_lightgbm(data_folder, find_run, experiment):
    run = find_run(experiment, "FCorr")
    train = load_split(run.data, 0).train
    trees = lightgbm.LGBMClassifier(
        n_estimators=3,
        random_state=0,
        n_jobs=1,
        deterministic=True,
        force_row_wise=True,
        verbose=-1,
    ).fit(train.X, train.y)
    scores = trees.predict_proba(train.X)[:, 1]
    best = max(sklearn_metrics.f1_score(train.y, scores >= level) for level in np.unique(scores))
    threshold = papers_threshold(run.data, 0)
    reached = sklearn_metrics.f1_score(train.y, scores >= threshold)
    assert reached == pytest.approx(best, abs=1e-12)
    assert reached > sklearn_metrics.f1_score(train.y, np.ones_like(train.y))
    assert carry_out_fit(run)["threshold"] == threshold


def test_metrics_are_those_of_the_scores(data_folder, find_run):
    run = find_run("synthetic", "FCorr")
    record = carry_out_fit(run)
    data = load_split(run.data, 0)
    score = fit(run, data.train).score
    for part, rows in (("train", data.train), ("test", data.test)):
        y, scores = rows.y, score(rows.X)
        decisions = (scores >= record["threshold"]).astype(int)
        flips = metrics.flip_scores(score, rows.X, ["X1"])
        other = {"yes": "no", "no": "yes"}
        flipped = rows.X.assign(X1=rows.X["X1"].astype(str).map(other).astype("category"))
        groups = {"sensitive_features": rows.X["X1"]}
        found = record["performance"][part] | record["fairness"]["X1"][part]
        expected = {
            "AUROC": sklearn_metrics.roc_auc_score(y, scores),
            "AUPRC": sklearn_metrics.average_precision_score(y, scores),
            "F1": sklearn_metrics.f1_score(y, decisions),
            "Accuracy": sklearn_metrics.accuracy_score(y, decisions),
            "FPR": decisions[y == 0].mean(),
            "FNR": 1 - decisions[y == 1].mean(),
            "AvgIF": metrics.average_individual_fairness(flips),
            "F1 gap": metrics.f1_gap(y, flips, threshold=record["threshold"]),
            "AUROC gap": metrics.auroc_gap(y, flips),
            "AUPRC gap": metrics.auprc_gap(y, flips),
            "largest change": np.abs(score(flipped) - scores).max(),
            "decisions flipped": metrics.decisions_flipped(flips, record["threshold"]),
            "DPD": metrics.demographic_parity_difference(y, decisions, **groups),
            "EqOdd": metrics.equalized_odds_difference(y, decisions, **groups),
            "EqOpp": metrics.equal_opportunity_difference(y, decisions, **groups),
        }
        assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_the_same_run_finds_the_same(data_folder, find_run):
    for model in ("FT-Transformer + CAR", "FCorr, defaults", "LightGBM"):
        run = find_run("baf", model)
        assert what_was_found(carry_out_fit(run)) == what_was_found(carry_out_fit(run))


def test_processes_side_by_side_find_the_same(data_folder):
    runs = list_runs("synthetic", "smoke", 1)[:3]
    alone = {record["key"]: what_was_found(record) for record in carry_out(runs, 1)}
    assert list(alone) == [run.key for run in runs]
    together = {record["key"]: what_was_found(record) for record in carry_out(runs, 2)}
    assert together == alone
    assert torch.get_num_threads() == 1


def test_costs_are_measured_after_the_fits(data_folder):
    cost = next(run for run in list_runs("complexity", "smoke", 1) if run.model == "FFN")
    fits = list_runs("synthetic", "smoke", 1)[:1]
    records = list(carry_out([cost, *fits], 1))
    assert [record["key"] for record in records] == [fits[0].key, cost.key]
    found = records[1]
    assert found["cost"]["parameters"] > 0
    assert found["config"] == json.loads(json.dumps(asdict(cost)))
    assert found["title"] == "FFN, size (bank_fraud), seed 0"
    assert json.dumps(found).startswith('{"key": ')
