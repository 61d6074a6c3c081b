"""All experiments at smoke size; interrupted, resumed, and read again."""

import json
from collections import Counter

import pytest

from fcorr._core import InvalidInputError
from fcorr.reproduce import EXPERIMENTS, read_records, reproduce, runs
from fcorr.reproduce.report import write_document
from fcorr.reproduce.settings import Run, list_runs

# Some models of each experiment, so that it takes a moment: every kind is among them.
SOME = {
    "baf": {"models": ["TabTransformer", "FT-Transformer + CAR", "FCorr + Res + CAR, collapsed"]},
    "adult": {
        "models": [
            "FCorr, splines + CAR",
            "FCorr, splines + Rem",
            "FCorr, marginal",
            "GridSearch, demographic parity",
            "ThresholdOptimizer, equalized odds",
        ],
        "sensitive": ["sex"],
    },
    "claims": {"models": ["FFN", "FCorr", "FCorr + CAR"], "smoke": {"n_train": 120, "n_test": 80}},
    "motor": {"models": ["LightGBM", "FCorr + CAR", "FCorr + Rem", "FCorr, defaults"]},
    "multilayer": {"models": ["FCorr + CAR"]},
    "complexity": {
        "sizes": {"bank_fraud": ["FFN", "FCorr + CAR"], "claims": ["FFN"]},
        "smoke": {"epochs": {"bank_fraud": 64, "claims": 8}},
    },
}


def count(folder):
    return {
        file.stem: len(file.read_text().splitlines()) for file in sorted(folder.glob("*.jsonl"))
    }


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_experiments_run_through(tmp_path, request, change_config, experiment):
    needs = "real_data" if experiment in ("adult", "motor") else "data_folder"
    request.getfixturevalue(needs)
    change_config(experiment, **SOME.get(experiment, {}))
    expected = list_runs(experiment, "smoke", 1)
    found = reproduce([experiment], tmp_path / "out", size="smoke", n_seeds=1, progress=False)
    (records,) = found.values()
    assert [record["key"] for record in records] == [run.key for run in expected]
    assert [record["title"] for record in records] == [run.title for run in expected]
    assert read_records(tmp_path / "out", size="smoke") == found == {experiment: records}
    files = write_document({experiment: records}, tmp_path / "out", smoke=True)
    assert all(file.stat().st_size for file in files)
    for run, record in zip(expected, records, strict=True):
        if not isinstance(run, Run):
            assert record["cost"]
            continue
        assert list(record["fairness"]) == list(run.sensitive)
        main = "AUROC" if run.task == "classification" else "RMSE"
        assert record["performance"]["test"][main] > 0
        if run.removed or run.model in ("FCorr, marginal", "FCorr + Res + CAR, collapsed"):
            for column in run.sensitive:
                assert record["fairness"][column]["test"]["largest change"] == 0


# ------------------------------------------------------------ interrupted and resumed


@pytest.fixture
def carried_out(monkeypatch):
    """Count what is carried out, in no time: records say nothing but which run they are of."""
    titles = Counter()

    def carry_out_fit(run):
        titles[run.title] += 1
        return runs._record(run, {"found": len(titles)})

    monkeypatch.setattr(runs, "carry_out_fit", carry_out_fit)
    return titles


@pytest.fixture
def start(tmp_path):
    def start(*experiments, size="smoke", n_seeds=1, **options):
        return reproduce(
            experiments, tmp_path, size=size, n_seeds=n_seeds, progress=False, **options
        )

    return start


def test_what_has_a_record_is_not_done_again(start, carried_out, tmp_path):
    first = start("synthetic", "baf")
    n_runs = {name: len(list_runs(name, "smoke", 1)) for name in ("synthetic", "baf")}
    assert count(tmp_path) == dict(sorted(n_runs.items()))
    assert start("synthetic", "baf") == first
    assert set(carried_out.values()) == {1}
    more = start("synthetic", n_seeds=2)["synthetic"]
    assert set(carried_out.values()) == {1}
    assert more[: n_runs["synthetic"]] == first["synthetic"]
    assert count(tmp_path)["synthetic"] == 2 * n_runs["synthetic"]


def test_interrupted_it_goes_on_where_it_stopped(start, carried_out, tmp_path, monkeypatch):
    quick = runs.carry_out_fit

    def interrupted(run):
        if len(carried_out) == 4:
            raise KeyboardInterrupt
        return quick(run)

    monkeypatch.setattr(runs, "carry_out_fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        start("synthetic")
    assert count(tmp_path) == {"synthetic": 4}
    before = (tmp_path / "synthetic.jsonl").read_bytes()

    monkeypatch.setattr(runs, "carry_out_fit", quick)
    records = start("synthetic")["synthetic"]
    assert set(carried_out.values()) == {1}
    assert (tmp_path / "synthetic.jsonl").read_bytes().startswith(before)
    assert [record["title"] for record in records] == [
        run.title for run in list_runs("synthetic", "smoke", 1)
    ]


def test_a_line_that_was_cut_off_is_done_again(start, carried_out, tmp_path):
    first = start("synthetic")["synthetic"]
    path = tmp_path / "synthetic.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    again = start("synthetic")["synthetic"]
    assert carried_out == {record["title"]: 2 if record == first[-1] else 1 for record in first}
    assert [record["key"] for record in again] == [record["key"] for record in first]
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == [
        record["key"] for record in first
    ]


def test_records_come_in_the_order_of_the_configuration(start, carried_out, tmp_path):
    first = start("synthetic")
    path = tmp_path / "synthetic.jsonl"
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    assert start("synthetic") == first
    assert read_records(tmp_path, size="smoke") == first


@pytest.mark.parametrize("line", ["a,b", '{"key": "k", "estimator": "FCorrClassifier"}', "[]"])
def test_a_foreign_file_is_refused(start, carried_out, tmp_path, line):
    path = tmp_path / "baf.jsonl"
    path.write_text(f"{line}\n")
    for act in (lambda: start("synthetic", "baf"), lambda: read_records(tmp_path)):
        with pytest.raises(InvalidInputError) as caught:
            act()
        assert str(caught.value) == (
            f"path must be a file of a reproduction's records, got {str(path)!r}, whose line 1 is "
            "none. Name a file that does not exist yet."
        )
    assert path.read_text() == f"{line}\n"
    assert not carried_out  # before hours are spent


def test_progress_is_told_line_by_line(tmp_path, carried_out, capsys):
    reproduce(["synthetic"], tmp_path / "a" / "b", size="smoke", n_seeds=1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "run 1/6  synthetic: FCorr (indirect_bias, X1), seed 0"
    assert len(lines) == 6
    reproduce(["synthetic"], tmp_path / "a" / "b", size="smoke", n_seeds=1)
    assert capsys.readouterr().err == ""


# ------------------------------------------------------------ read again


def test_no_records(tmp_path):
    assert read_records(tmp_path) == {}
    assert read_records(tmp_path / "nowhere") == {}


def test_records_of_the_other_size_are_passed_over(start, carried_out, tmp_path):
    smoke = start("synthetic", "baf")
    assert read_records(tmp_path, size="full") == {}
    full = start("baf", size="full")
    assert read_records(tmp_path, size="full") == full
    assert read_records(tmp_path, size="smoke") == smoke


def test_records_of_other_settings_are_passed_over(start, carried_out, tmp_path, change_config):
    before = start("synthetic")["synthetic"]
    change_config("synthetic", printed={"learning_rate": 0.1})
    kept = read_records(tmp_path, size="smoke")["synthetic"]
    assert kept == [record for record in before if record["config"]["kind"] == "fcorr"]
    assert 0 < len(kept) < len(before)
    after = start("synthetic")["synthetic"]
    assert sum(carried_out.values()) == 2 * len(before) - len(kept)
    assert [record["model"] for record in after] == [record["model"] for record in before]


def test_all_seeds_that_are_there_are_read(start, carried_out, tmp_path):
    found = start("controllability", n_seeds=7)  # more than the file says
    assert read_records(tmp_path, size="smoke") == found
    assert {record["seed"] for record in found["controllability"]} == set(range(7))
