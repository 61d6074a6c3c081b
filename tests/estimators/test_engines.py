"""Several processes: training by torchrun and Ray, also when killed, and scoring by Ray."""

import gc
import os
import signal
import subprocess
import sys
import time

import joblib
import numpy as np
import pandas as pd
import pyarrow.parquet as pa_parquet
import pytest
import torch.distributed as dist
from sklearn.metrics import mean_absolute_error
from typer.testing import CliRunner

from fcorr import FCorrClassifier, InvalidInputError, load, score_parquet, sweep
from fcorr._core import _check_answers, connect_ray, open_processes
from fcorr.cli import app
from fcorr.estimators import fit_on_ray
from fcorr.metrics import bootstrap_interval
from tests.estimators.scored import (
    DAMAGES,
    N_ROWS,
    check_document,
    damage_group,
    damage_value,
    expected,
)

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own


def make_table(n_rows=4_000):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=n_rows), "s": rng.choice(["x", "y"], n_rows)})
    X = X.assign(b=rng.exponential(size=n_rows), c=rng.choice(list("pqr"), n_rows))
    y = rng.random(n_rows) < 1 / (1 + np.exp(-2 * X["a"] - np.sin(3 * X["b"])))
    return X, y.astype(int).rename("y")


X, Y = make_table()
WIDE = X.assign(**{f"n{k}": np.random.default_rng(k).normal(size=len(X)) for k in range(30)})
FEW = {"sensitive": "s", "n_members": 2, "epochs": 1, "head": (8,), "random_state": 0}
ONE = FEW | {"n_members": 1, "epochs": 4, "advanced": {"batch_size": 1_024}}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    X.assign(y=Y).to_parquet(folder / "rows.parquet", row_group_size=300)
    return folder


@pytest.fixture(scope="module")
def cluster():
    """Start a cluster of Ray's on this machine: in seconds, so it serves all tests of the file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        with connect_ray(workers=2):
            yield
    assert not ray.is_initialized()
    gc.collect()  # what Ray leaves open is none of the next test's


def test_two_processes_train_the_model_of_one(tmp_path):
    """The same slices of the same batches, added up in another order: a difference of rounding."""
    path, output = tmp_path / "rows.csv", tmp_path / "model.fcorr"
    WIDE.assign(y=Y).to_csv(path, index=False)
    command = ["--standalone", "--nproc-per-node", "2", "-m", "fcorr", "train", path]
    command += ["--target", "y", "--sensitive", "s", "-o", output, "--n-members", "1"]
    command += ["--epochs", "4", "--set", "head=8", "--random-state", "0"]
    command += ["--set", "batch_size=1024", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *map(str, command)],
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout.count("wrote") == 1
    table = pd.read_csv(path)
    alone = FCorrClassifier(**ONE).fit(table.drop(columns="y"), table["y"])
    found = [each.predict_proba(table)[:, 1] for each in (alone, load(output))]
    np.testing.assert_allclose(*found, atol=1e-4)


def test_an_address_without_a_cluster(monkeypatch):
    monkeypatch.setattr("fcorr._core._RAY_SECONDS", 0.2)
    with pytest.raises(InvalidInputError, match="address must be that of a Ray cluster"):
        fit_on_ray(FCorrClassifier(**FEW), X, Y, address="127.0.0.1:1")


@pytest.mark.usefixtures("cluster")
def test_members_as_tasks_are_the_same_to_the_bit():
    here = FCorrClassifier(**FEW).fit(X, Y)
    there = fit_on_ray(FCorrClassifier(**FEW), X, Y, workers=2)
    assert np.array_equal(here.predict_proba(X), there.predict_proba(X))
    assert there.recipes_ == here.recipes_


@pytest.mark.usefixtures("cluster")
def test_scores_are_the_same_to_the_bit(models, source, tmp_path):
    data = pytest.importorskip("ray.data")
    output = tmp_path / "out.parquet"
    for path, table in models.values():
        assert score_parquet(path, source(table), output, engine="ray", workers=2) == N_ROWS
        assert pa_parquet.read_table(output).to_pydict() == expected(path, table)
    assert not data.DataContext.get_current().execution_options.preserve_order
    path, table = models["exact"]
    check_document("ray.data", tmp_path, path, source(table), expected(path, table))
    output.write_text("old")
    for damage in (damage_value, damage_group):
        folder = source(table)
        damage(folder, table)
        with pytest.raises(InvalidInputError, match=DAMAGES[damage]) as error:
            score_parquet(path, folder, output, engine="ray")
        assert "\n" not in str(error.value)
    assert output.read_text() == "old"
    command = ["predict", path, source(table), "-o", output, "--engine", "ray"]
    done = CliRunner().invoke(app, [str(word) for word in command])
    assert done.stdout == f"wrote {output}: {N_ROWS} rows\n"
    assert pa_parquet.read_table(output).to_pydict() == expected(path, table)
    _check_answers(ray.get_runtime_context().gcs_address)  # as another process does


@pytest.mark.usefixtures("cluster")
def test_draws_of_a_bootstrap_as_tasks():
    from ray.util.joblib import register_ray

    register_ray()
    rng = np.random.default_rng(0)
    truth, guess = rng.normal(size=(2, 200))
    options = {"n_resamples": 50, "random_state": 0}
    here = bootstrap_interval(mean_absolute_error, truth, guess, **options)
    with joblib.parallel_config("ray", n_jobs=2):
        there = bootstrap_interval(mean_absolute_error, truth, guess, **options)
    assert here == there


@pytest.mark.usefixtures("cluster")
def test_runs_of_a_sweep_as_tasks():
    from ray.util.joblib import register_ray

    register_ray()
    options = {"grid": {"invariance": ["adapt", "marginal"]}, "seeds": 1, "progress": False}
    model, rows = FCorrClassifier(**ONE | {"epochs": 1}), (X[:1000], Y[:1000])
    here = sweep(model, *rows, eval_set=(X[1000:2000], Y[1000:2000]), **options)
    with joblib.parallel_config("ray", n_jobs=2):
        there = sweep(model, *rows, eval_set=(X[1000:2000], Y[1000:2000]), **options)
    measured = [[record["measured"] for record in found.records] for found in (here, there)]
    assert len(measured[0]) == 2
    assert measured[0] == measured[1]


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_what_goes_wrong_in_a_task_is_told_as_it_is(n_jobs):
    from ray.util.joblib import register_ray

    register_ray()

    def invert(number):
        if number == 0:
            raise InvalidInputError("number must not be 0, got 0.")
        return 1 / number

    with joblib.parallel_config("ray", n_jobs=n_jobs), open_processes() as spread:
        assert spread(invert, range(1, 6)) == [1 / number for number in range(1, 6)]
        with pytest.raises(InvalidInputError, match=r"^number must not be 0, got 0\.$"):
            spread(invert, range(4))


@pytest.mark.slow  # processes of Ray Train take long to start, three times
@pytest.mark.usefixtures("cluster")
def test_a_process_that_dies_is_started_again(files, tmp_path):
    whole = fit_on_ray(FCorrClassifier(**ONE), files, "y", workers=2)
    marker = tmp_path / "died"

    def die(record):
        if record.epoch == 2 and dist.get_rank() == 1 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    model = fit_on_ray(
        FCorrClassifier(**ONE), files, "y", workers=2, checkpoint=tmp_path / "kept",
        on_epoch_end=die,
    )  # fmt: skip
    assert marker.exists()
    assert np.array_equal(model.predict_proba(X), whole.predict_proba(X))
    alone = FCorrClassifier(**ONE).fit(files, "y")
    losses = [each.history_.epochs[-1].loss for each in (alone, model)]
    assert losses[1] == pytest.approx(losses[0], rel=0.05)  # rows come in another order
    assert model.get_params() == FCorrClassifier(**ONE).get_params()


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_an_array_after_names_then_files_by_a_relative_path(files, tmp_path, monkeypatch):
    model = FCorrClassifier(**ONE | {"sensitive": None, "epochs": 1})
    numbers = X.select_dtypes("number").to_numpy()
    fit_on_ray(model.fit(X, Y), numbers, Y, workers=1, checkpoint=tmp_path)
    assert not hasattr(model, "feature_names_in_")
    expected = model.predict_proba(numbers)
    monkeypatch.chdir(files.parent)
    with pytest.raises(InvalidInputError, match="checkpoint must be the folder of the same fit"):
        fit_on_ray(model, files.name, "y", workers=1, checkpoint=tmp_path)
    assert np.array_equal(model.predict_proba(numbers), expected)


@pytest.mark.parametrize("workers", [0, -1, 1.5, True])
def test_workers_that_are_none(workers):
    with pytest.raises(InvalidInputError, match="workers must be an integer of at least 1"):
        fit_on_ray(FCorrClassifier(**FEW), X, Y, workers=workers)


def test_killed_at_any_time_it_goes_on_to_the_same_model(files, tmp_path):
    """SIGKILL leaves nothing broken; `make faults` does it more often."""
    options = {"sensitive": "s", "epochs": 12, "n_members": 1, "head": (8,), "random_state": 0}
    whole = FCorrClassifier(**options).fit(files, "y", memory="64MB")
    command = ["train", files, "--target", "y", "--sensitive", "s", "-o", tmp_path / "model.fcorr"]
    command += ["--epochs", 12, "--n-members", 1, "--set", "head=8", "--random-state", 0]
    command += ["--memory", "64MB", "--quiet", "--checkpoint", tmp_path / "kept"]
    command = [*map(str, command)]
    process = subprocess.Popen([sys.executable, "-m", "fcorr", *command])
    while not (tmp_path / "kept" / "fit.json").exists():  # until then there is nothing to break
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(np.random.default_rng(1).uniform(0, 1.5))
    process.kill()
    process.wait()
    assert CliRunner().invoke(app, [*command, "--resume"]).exit_code == 0
    found = load(tmp_path / "model.fcorr").predict_proba(X)
    assert np.array_equal(found, whole.predict_proba(X))
