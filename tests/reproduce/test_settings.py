"""From configuration files to runs: what the files say is what is run."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib import resources

import fairlearn.postprocessing
import fairlearn.reductions
import lightgbm
import pytest
from fcorr.estimators.architectures import ARCHITECTURES

from fcorr._core import InvalidInputError
from fcorr.estimators.options import check_options
from fcorr.reproduce.models import make_network
from fcorr.reproduce.settings import EXPERIMENTS, KINDS, CostRun, list_runs, read_config

CONFIGS = sorted(
    file.name.removesuffix(".toml")
    for file in resources.files("fcorr.reproduce").joinpath("configs").iterdir()
)
FITS = [name for name in EXPERIMENTS if name != "complexity"]
SIZES = ("full", "smoke")


def leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def first_seed(experiment, size):
    return list_runs(experiment, size, 1)


# ------------------------------------------------------------ files


def test_there_is_a_file_for_each_experiment():
    assert set(CONFIGS) == {*EXPERIMENTS, "models", "smoke", "paper"}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_file_can_be_read_and_none_is_none(name):
    found = leaves(read_config(name))
    assert found
    assert "none" not in found


def test_none_is_said_by_a_word():
    assert read_config("models")["FCorr"]["arguments"] == {
        "residual": False,
        "invariance": None,
        "car": None,
    }


def test_models_are_described_once_and_all_are_used():
    described = read_config("models")
    named = {model for name in FITS for model in read_config(name)["models"]}
    assert named == set(described)
    assert {spec["kind"] for spec in described.values()} == set(KINDS)
    sizes = read_config("complexity")["sizes"]
    assert {*sizes["bank_fraud"], *sizes["claims"]} <= named


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_real_thing_has_five_seeds_or_more(experiment):
    runs = list_runs(experiment, "full")
    seeds = [run.seed for run in runs]
    assert set(seeds) == set(range(read_config(experiment)["seeds"]))
    assert len(set(seeds)) >= 5
    assert seeds == sorted(seeds)  # cut short, all models have the same seeds


def test_as_many_seeds_as_are_asked_for():
    every, few = list_runs("synthetic", "full"), list_runs("synthetic", "full", 2)
    assert {run.seed for run in few} == {0, 1}
    assert few == every[: len(few)]
    assert list_runs("synthetic", "full", 0) == []


# ------------------------------------------------------------ arguments


def check_arguments(run, *, exposed=False):
    """Refuse what the model of a run would refuse."""
    if run.kind == "lightgbm":
        assert run.arguments.keys() <= lightgbm.LGBMModel().get_params().keys()
        return
    if run.kind == "fairlearn":
        arguments = dict(run.arguments)
        method, constraint = arguments.pop("method"), arguments.pop("constraint")
        if method == "ThresholdOptimizer":
            known = fairlearn.postprocessing._threshold_optimizer.SIMPLE_CONSTRAINTS
            assert constraint in {*known, "equalized_odds"}
        else:
            assert hasattr(fairlearn.reductions, method)
            assert issubclass(
                getattr(fairlearn.reductions, constraint), fairlearn.reductions.Moment
            )
        assert arguments.keys() <= lightgbm.LGBMModel().get_params().keys()
        return
    removed = getattr(run, "removed", False)
    model = make_network(run, None if removed else run.sensitive[0], exposed=exposed)
    check_options(model.get_params(deep=False))
    if run.kind in ARCHITECTURES:
        ARCHITECTURES[run.kind].choose_sizes(run.arguments.get("network_options"), 0.0)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_estimators_take_their_arguments(experiment, size):
    runs = [run for run in first_seed(experiment, size) if run.kind]
    assert runs
    for run in runs:
        check_arguments(run, exposed=experiment == "motor")


@pytest.mark.parametrize(
    ("model", "arguments"),
    [
        ("FCorr", {"epochs": 0}),
        ("FCorr", {"epochz": 1}),
        ("FFN", {"network_options": {"hed": [4]}}),
        ("LightGBM", {"n_trees": 1}),
    ],
)
def test_the_check_of_arguments_can_fail(find_run, model, arguments):
    run = replace(find_run("baf", model), arguments=arguments)
    with pytest.raises((InvalidInputError, TypeError, AssertionError)):
        check_arguments(run)


# ------------------------------------------------------------ keys


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_no_two_runs_have_one_key(experiment, size):
    keys = [run.key for run in list_runs(experiment, size)]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_a_smoke_run_is_never_taken_for_the_real_thing(experiment):
    full, smoke = ({run.key: run for run in list_runs(experiment, size)} for size in SIZES)
    # Parameters and memory of a step are those of the real models at either size.
    assert {getattr(full[key], "measure", "") for key in full.keys() & smoke.keys()} <= {"size"}


def test_any_setting_changes_the_key(find_run):
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


def test_keys_are_the_same_in_another_process():
    code = (
        "import json; from fcorr.reproduce.settings import EXPERIMENTS, list_runs;"
        "print(json.dumps([run.key for n in EXPERIMENTS for run in list_runs(n, 'full', 1)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1"},
    )
    here = [run.key for name in EXPERIMENTS for run in first_seed(name, "full")]
    assert json.loads(done.stdout) == here


# ------------------------------------------------------------ what the files expand to


def test_what_is_varied_goes_into_arguments_and_point(change_config):
    runs = first_seed("controllability", "full")
    weights = read_config("controllability")["vary"]["car"]
    assert len(weights) >= 5
    assert [run.point for run in runs] == [{"car": weight} for weight in weights]
    assert [run.arguments["car"] for run in runs] == weights  # not the model's own "paper"
    assert [run.point["car"] for run in first_seed("controllability", "smoke")] == [0.0, 1e3]
    change_config("multilayer", models=["FCorr", "FCorr + CAR"], vary={"dropout": [0.0, 0.25]})
    runs = first_seed("multilayer", "full")
    assert runs[1].title == "FCorr, n_layers = 1, dropout = 0.25 (bank_fraud, customer_age), seed 0"
    assert [(run.model, run.arguments["n_layers"], run.arguments["dropout"]) for run in runs] == [
        (model, n_layers, dropout)
        for model in ("FCorr", "FCorr + CAR")
        for n_layers in (1, 3, 5)
        for dropout in (0.0, 0.25)
    ]


def test_a_model_may_have_arguments_of_its_own_in_an_experiment(find_run):
    for table in ("bemtpl97", "fremtpl2"):
        for size in SIZES:
            find = {"experiment": "motor", "table": table, "size": size}
            assert find_run(model="FCorr + CAR", **find).arguments["car"] == 1e4
            assert find_run(model="FCorr", **find).arguments["car"] is None
    assert find_run("adult", "FCorr + CAR", column="sex").arguments["car"] == "paper"


def test_what_draws_nothing_is_fitted_once_where_the_rows_are_always_the_same():
    for experiment in FITS:
        runs = list_runs(experiment, "full", 2)
        twice = {(run.data.name, run.model, run.sensitive) for run in runs if run.seed == 1}
        for run in runs:
            published = run.data.name in ("adult", "bemtpl97", "fremtpl2")
            once = published and run.kind in ("lightgbm", "fairlearn")
            assert ((run.data.name, run.model, run.sensitive) in twice) == (not once), run.title


def test_bins_are_for_models_that_see_the_column_of_their_table():
    bins = {"DrivAge": [25, 35, 45, 55, 65, 75]}
    for run in first_seed("motor", "full"):
        sees = run.data.name == "fremtpl2" and run.kind != "lightgbm" and not run.removed
        assert run.arguments.get("bins") == (bins if sees else None), run.title


def test_the_objective_is_that_of_the_experiment():
    assert {run.arguments["objective"] for run in first_seed("motor", "full")} == {"poisson"}
    said = {run.model for run in first_seed("claims", "full") if "objective" in run.arguments}
    assert said == {"LightGBM, Tweedie"}  # the others have the paper's squared error


def test_models_made_for_a_column_are_fitted_for_each():
    described = read_config("models")
    columns = {}
    for run in first_seed("adult", "full"):
        columns.setdefault(run.model, []).append(run.sensitive)
    assert list(columns) == read_config("adult")["models"]
    for model, found in columns.items():
        each = described[model].get("per_sensitive", False)
        assert found == ([("race",), ("sex",)] if each else [("race", "sex")]), model


def test_sensitive_columns_are_those_of_the_table():
    columns = {(run.data.name, run.sensitive) for run in first_seed("motor", "full")}
    assert columns == {("bemtpl97", ("sex",)), ("fremtpl2", ("DrivAge",))}


def test_sizes_are_the_experiments_and_those_of_a_smoke_test_go_first(find_run):
    full, smoke = (find_run("baf", "FCorr", size) for size in SIZES)
    assert (full.arguments["head"], full.arguments["epochs"]) == ([64, 64, 64], 10)
    assert (smoke.arguments["head"], smoke.arguments["epochs"]) == ([4], 1)
    assert (full.data.n_train, full.data.n_test, full.data.n_trees) == (100_000, 30_000, 100)
    assert (smoke.data.n_train, smoke.data.n_test, smoke.data.n_trees) == (1_500, 800, 3)
    assert find_run("adult", "FCorr", "full").data.n_train is None  # all there are


def test_mitigations_decide_by_themselves_and_the_others_by_the_papers_threshold():
    for run in first_seed("adult", "full"):
        assert run.threshold == (0.5 if run.kind == "fairlearn" else None)


def test_costs_are_those_of_the_two_tables():
    runs = list_runs("complexity", "full", 2)
    assert all(isinstance(run, CostRun) for run in runs)
    sizes = read_config("complexity")["sizes"]
    measured = {
        (run.data, run.measure, run.seed): [
            other.model
            for other in runs
            if (other.data, other.measure, other.seed) == (run.data, run.measure, run.seed)
        ]
        for run in runs
    }
    assert measured == {
        ("bank_fraud", "size", 0): sizes["bank_fraud"],
        ("claims", "size", 0): sizes["claims"],
        **{
            (table, "epochs", seed): ["FCorr + CAR"]
            for table in ("bank_fraud", "claims")
            for seed in (0, 1)
        },
    }
    (smoke,) = [
        run
        for run in first_seed("complexity", "smoke")
        if (run.measure, run.data) == ("epochs", "claims")
    ]
    assert smoke.n_rows == 64
    assert smoke.arguments["head"] == [16, 16, 16, 16]  # the real model also here
