"""Runs of smoke size, a data folder of one's own, and records that are made up."""

import os

import pytest

from tests.audit.conftest import classifier, people, policies, regressor
from tests.conftest import _one_thread, each_engine, shorter

__all__ = ["_one_thread", "classifier", "each_engine", "people", "policies", "regressor", "shorter"]


@pytest.fixture
def find_run():
    """Find the run of an experiment for a model, seed 0 and one of its tables and columns."""
    from paper.experiments import list_runs

    def find(experiment, model, **wanted):
        (run, *others) = [
            run
            for run in list_runs(experiment, "smoke", 1)
            if run.model == model
            and all(run.point.get(name, value) == value for name, value in wanted.items())
            and wanted.get("table", run.data.name) == run.data.name
            and wanted.get("column", run.sensitive[0]) in run.sensitive
        ]
        assert not others
        return run

    return find


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    """Let an empty folder be the data folder."""
    from paper.models import load_split, papers_threshold

    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("FCORR_DATA", str(folder))
    caches = (load_split, papers_threshold)
    for cache in caches:
        cache.cache_clear()
    yield folder
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def real_data():
    if "FCORR_DATA" not in os.environ:
        pytest.skip("FCORR_DATA does not name the folder with the data sets")


@pytest.fixture
def make_fit():
    """Make the record of a fit, with some metrics and, perhaps, other fields than these.

    On training rows it has none unless asked for: what is read there by mistake is missing.
    """

    def make(experiment, model, seed, *, columns, metrics, table="table", point=None, **fields):
        train = metrics if fields.pop("on_train", False) else {}
        sizes = {"n_train": 1_000, "n_train_measured": 400, "n_test": 500}
        return {
            "experiment": experiment,
            "model": model,
            "seed": seed,
            "config": {"data": {"name": table}, "point": point or {}, "threshold": None},
            "data": {"name": "made up", "stands_in_for": "", **sizes},
            "threshold": 0.1 + 0.1 * seed,
            "performance": {"train": train, "test": metrics},
            "fairness": {column: {"train": train, "test": metrics} for column in columns},
            "parameters": 1_234,
            "training": {},
            "attention": {},
            "significance": {},
            "seconds": {"fit": 2.0, "epoch": None, "measure": 1.0},
            "peak_megabytes": 100.0,
            "warnings": [],
            "versions": {"fcorr": "0"},
            **fields,
        }

    return make
