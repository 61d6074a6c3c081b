"""Runs of smoke size, a data folder of one's own, and experiments with fewer models."""

import os

import pytest

from fcorr.reproduce import settings
from fcorr.reproduce.data import load_split
from fcorr.reproduce.report.claims import CLAIMS, OURS
from fcorr.reproduce.report.results import Results
from fcorr.reproduce.settings import list_runs
from fcorr.reproduce.trees import papers_threshold


def forget_tables():
    load_split.cache_clear()
    papers_threshold.cache_clear()


@pytest.fixture
def find_run():
    """Find the run of an experiment for a model, seed 0 and one of its tables and columns."""

    def find(experiment, model, size="smoke", **wanted):
        (run, *others) = [
            run
            for run in list_runs(experiment, size, 1)
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
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("FCORR_DATA", str(folder))
    forget_tables()
    yield folder
    forget_tables()


@pytest.fixture
def real_data():
    if "FCORR_DATA" not in os.environ:
        pytest.skip("FCORR_DATA does not name the folder with the data sets")


@pytest.fixture
def change_config(monkeypatch):
    """Let entries of a configuration file be others; those that are tables are merged."""
    read = settings.read_config

    def change(name, **entries):
        changed = settings._merge(read(name), entries)
        monkeypatch.setattr(
            settings, "read_config", lambda asked: changed if asked == name else read(asked)
        )

    return change


N_SEEDS = 5


@pytest.fixture
def make_fit():
    """Make the record of a fit; a metric is one number, or one for each seed.

    On training rows it has none unless asked for: what is read there by mistake is missing.
    """

    def make(experiment, model, seed, *, columns, metrics, table="table", point=None, **fields):
        values = {name: v[seed] if isinstance(v, list) else v for name, v in metrics.items()}
        train = values if fields.pop("on_train", False) else {}
        return {
            "experiment": experiment,
            "model": model,
            "seed": seed,
            "config": {"data": {"name": table}, "point": point or {}},
            "data": {"name": "made up", "stands_in_for": ""},
            "performance": {"train": train, "test": values},
            "fairness": {column: {"train": train, "test": values} for column in columns},
            "training": {},
            "attention": {},
            "significance": {},
            "warnings": [],
            **fields,
        }

    return make


@pytest.fixture
def make_fits(make_fit):
    """Make the records of some models, five seeds each."""

    def make(experiment, models, columns, **shared):
        return {
            experiment: [
                make_fit(experiment, model, seed, columns=columns, metrics=metrics, **shared)
                for model, metrics in models.items()
                for seed in range(N_SEEDS)
            ]
        }

    return make


@pytest.fixture
def judged():
    """Check the one claim in whose text some words stand."""

    def judge(records, words):
        (claim,) = [claim for claim in (*CLAIMS, *OURS) if words in claim.text]
        return claim.check(Results(records))

    return judge
