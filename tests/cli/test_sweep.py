"""`fcorr sweep`: records, table, figures and model, and again from where it stopped."""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import roc_auc_score

import fcorr
from fcorr.data.files import write_file

WRITTEN = ["sweep.jsonl", "table.md", "frontier.svg"]
SMALL = ("--n-members", 1, "--epochs", 1, "--set", "head=4", "--drop", "key", "--quiet")
ORDER = np.random.default_rng(0).permutation(200)  # the first fifth of the rows is set aside


@pytest.fixture
def sweep(run):
    def sweep(*arguments, data="data.csv", target="bought", car="0,1e4", seeds=1, code=0):
        options = ("--target", target, "--sensitive", "sex", "--output", "out")
        given = ("--car", car, "--seeds", seeds, *SMALL)
        return run("sweep", data, *options, *given, *arguments, code=code)

    return sweep


def records():
    return [json.loads(line) for line in Path("out/sweep.jsonl").read_text().splitlines()]


def test_end_to_end(sweep, files):
    result = sweep("--budget", 0, "--model", "best.fcorr", "--grid", "dropout=0.1,0.3")
    assert files() == {"out", "best.fcorr"}
    assert sorted(p.name for p in Path("out").iterdir()) == sorted(WRITTEN)
    wrote = [line for line in result.stdout.splitlines() if line.startswith("wrote")]
    assert wrote == [*(f"wrote out/{name}" for name in WRITTEN), "wrote best.fcorr"]
    assert result.stderr == ""
    points = [(r["arguments"]["car"], r["arguments"]["invariance"]) for r in records()]
    assert len(points) == 8
    assert set(points) == {(0, None), (1e4, None), (1e6, "adapt"), (1e6, "marginal")}
    assert {r["arguments"]["dropout"] for r in records()} == {0.1, 0.3}

    model = fcorr.load("best.fcorr")
    assert model.exact_
    (chosen,) = [line for line in result.stdout.splitlines() if line.startswith("chosen: ")]
    form, dropout = model.get_params()["invariance"], model.get_params()["dropout"]
    assert chosen.startswith(f"chosen: {form}, dropout = {dropout}: highest AUROC")
    table = Path("out/table.md").read_text()
    assert chosen in table
    assert (
        sum(line.startswith(("| λ", "| adapt", "| marginal")) for line in table.splitlines()) == 8
    )
    best = max(r["measured"]["performance"]["AUROC"] for r in records() if r["measured"]["exact"])
    assert f"({best:.4g}, mean of 1 seed(s); exact)" in chosen


def test_json(sweep):
    """Nothing else is on standard output."""
    result = sweep("--json", "--car", "0", seeds=2)
    found = json.loads(result.stdout)
    assert sorted(found["runs"], key=str) == sorted(records(), key=str)
    assert found["chosen"]["point"]["invariance"] in ("adapt", "marginal")
    assert found["notes"][0].startswith(f"chosen: {found['chosen']['name']}: highest AUROC")
    assert "wrote out/sweep.jsonl" in result.stderr


def test_validation_rows_are_set_aside_the_same_way_every_time(sweep, columns):
    sweep("--no-exact", car="100")
    (record,) = records()
    table = pa.table({name: v for name, v in columns.items() if name != "key"})
    train, held_out = (table.take(np.sort(rows)) for rows in (ORDER[40:], ORDER[:40]))
    model = fcorr.FCorrClassifier(
        n_members=1, sensitive="sex", car=100, invariance=None, epochs=1, head=(4,), random_state=0
    ).fit(train.drop_columns("bought"), train["bought"])
    scores = model.predict_proba(held_out.drop_columns("bought"))[:, 1]
    expected = roc_auc_score(held_out["bought"].to_numpy(), scores)
    assert record["measured"]["performance"]["AUROC"] == pytest.approx(expected)


def test_rows_of_weight_0_are_not_set_aside_and_the_same_command_goes_on(sweep, columns):
    for n in (200, 150):  # the second goes on, with nothing to do
        weight = np.where(np.arange(n) < 150, 1.0, 0.0)
        write_file(pa.table({**{k: v[:n] for k, v in columns.items()}, "w": weight}), "data.csv")
        sweep("--no-exact", "--sample-weight", "w", car="0")
    (before,) = records()
    sweep("--no-exact", "--sample-weight", "w", car="0,1")
    assert records()[:1] == [before]
    assert len(records()) == 2


def test_a_validation_file_is_read_as_the_training_file_is(sweep):
    # All of this file's codes look like numbers, but training knows them as text.
    head, rows = "key,sex,code,age,bought\n", ["1,f,7,2,0\n", "2,m,8,1,1\n", "3,f,x,5,1\n"]
    Path("t.csv").write_text(head + "".join(rows * 10))
    Path("v.csv").write_text(head + "".join(rows[:2] * 20))
    assert sweep("--eval-set", "v.csv", "--no-exact", data="t.csv", car="0").stderr == ""
    write_file(pa.table({"sex": ["f"]}), "other.csv")
    result = sweep("--eval-set", "other.csv", code=2)
    assert "Invalid value for --eval-set: the file has no column 'bought'" in result.output


@pytest.mark.parametrize(
    ("file", "row"),
    [("validation.csv", 11), ("data.csv", 11), *(("split.csv", ORDER[i]) for i in (0, -1))],
)
def test_rows_are_lines_of_the_file_that_they_come_from(sweep, columns, file, row):
    for name in ("data.csv", "validation.csv", "split.csv"):
        weight = [-1.0 if i == row and name == file else 1.0 for i in range(200)]
        key = columns["key"] + (name == "validation.csv")
        write_file(pa.table({**columns, "key": key, "w": weight}), name)
    given = () if file == "split.csv" else ("--eval-set", "validation.csv")
    data = "split.csv" if file == "split.csv" else "data.csv"
    (line,) = sweep("--sample-weight", "w", *given, data=data, code=1).stderr.splitlines()
    assert f"must be finite and at least 0, got -1 in line {row + 2}." in line
    assert ("--eval-set: " in line) == (file == "validation.csv" or row == ORDER[0])


def test_results_without_figures(sweep, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = sweep("--no-exact", car="0")
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: no figures: ")
    assert line.endswith("needs matplotlib: pip install 'fcorr[plot]'")
    assert sorted(p.name for p in Path("out").iterdir()) == ["sweep.jsonl", "table.md"]


def test_regression_with_exposure_and_weights(sweep, policies):
    sweep(
        *("--exposure", "years", "--objective", "poisson", "--sample-weight", "w"),
        *("--no-exact", "--sensitive", "job"),
        data="policies.parquet",
        target="claims",
        car="1e4",
    )
    (record,) = records()
    assert record["estimator"] == "FCorrRegressor"
    assert list(record["measured"]["performance"]) == ["deviance", "RMSE", "MAE", "normalised Gini"]
    assert list(record["measured"]["groups"]) == ["sex", "job", "sex × job"]


@pytest.mark.parametrize(
    ("n_members", "each"), [(1, "a single network"), (2, "a pack of networks")]
)
def test_progress_goes_to_stderr(run, n_members, each):
    options = ("--target", "bought", "--sensitive", "sex", "--output", "out", "--drop", "key")
    small = ("--epochs", 1, "--set", "head=4", "--car", "0", "--seeds", 2, "--no-exact")
    result = run("sweep", "data.csv", *options, *small, "--n-members", n_members)
    first, *others = result.stderr.splitlines()
    assert first == f"1 point(s), 2 seed(s): 2 run(s), each fits {each}"
    assert [line.split(":")[0] for line in others] == [
        "run 1/2  λ = 0, seed 0",
        "run 2/2  λ = 0, seed 1",
    ]
    assert [r["arguments"]["n_members"] for r in records()] == [n_members] * 2


def test_a_model_that_is_not_exact_is_written_on_request_only(sweep, files):
    given = ("--no-exact", "--model", "best.fcorr")
    (line,) = sweep(*given, code=1).stderr.splitlines()
    assert line.startswith("error: The chosen model must be exact by default, and none is: the ")
    assert "% of decisions flipped)" in line
    assert line.endswith("choose among all with --allow-inexact.")
    (line,) = sweep(*given, "--budget", 0, code=1).stderr.splitlines()
    assert line.startswith("error: budget must be at least ")
    assert "the smallest change found (λ = " in line
    assert sorted(p.name for p in Path("out").iterdir()) == sorted(WRITTEN)  # all the same
    assert files() == {"out"}
    assert "chosen: none. The chosen model must be" in sweep("--no-exact").stdout  # no error here
    assert "chosen: none." in Path("out/table.md").read_text()
    for accepted in (["--allow-inexact"], ["--budget", 1]):
        result = sweep(*given, *accepted)
        assert not fcorr.load("best.fcorr").exact_
        assert "% of decisions flipped)" in result.stdout
    assert len(records()) == 2  # nothing was fitted again


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--car", "0,-1"], "--car: must be a number of at least 0"),
        (["--car", "", "--no-exact"], "names no λ"),
        (["--budget", "-1"], "--budget: must be a number of at least 0"),
        (["--grid", "dropout"], "must be ARGUMENT=VALUE,VALUE"),
        (["--grid", "dropout=1.5"], "--set dropout: must be a number in [0, 1), or 'auto', got"),
        (["--grid", "dropuot=0.1"], "Did you mean 'dropout'?"),
        (["--grid", "car=1"], "must be ARGUMENT=VALUE,VALUE"),
        (["--seeds", "0"], "Invalid value for '--seeds'"),
        (["--n-jobs", "0"], "--n-jobs: must be an integer that is not 0, got 0"),
        (["--model", "no/folder/best.fcorr"], "the folder 'no/folder' does not exist"),
        (["--model", "data.csv"], "'data.csv' is an input, or another output"),
        (["--model", "out/sweep.jsonl"], "'out/sweep.jsonl' is an input, or another output"),
    ],
)
def test_bad_usage(refuse, arguments, message):
    given = ("--target", "bought", "--sensitive", "sex", "--output", "out", *SMALL)
    refuse(message, "sweep", "data.csv", *given, *arguments)


def test_values_of_the_grid_are_read_as_what_they_look_like(sweep):
    grids = ("--grid", "head=4x3,2", "--grid", "residual=true", "--grid", "learning-rate=1e-3")
    sweep("--no-exact", *grids, car="paper,none")
    found = [r["arguments"] for r in records()]
    assert [a["head"] for a in found] == [[4, 3], [2]] * 2
    assert {a["advanced"]["residual"] for a in found} == {True}
    assert {a["learning_rate"] for a in found} == {1e-3}
    assert [a["car"] for a in found] == ["paper", "paper", None, None]
