"""Runs of smoke size: what their records hold, that it is right, and how they go on."""

import json
import mmap
import sys
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import lightgbm
import numpy as np
import pytest
import torch
from sklearn import metrics as sklearn_metrics
from typer.testing import CliRunner

from fcorr import InvalidInputError, metrics
from paper import costs, experiments, gaps, measures, runs
from paper.__main__ import app
from paper.costs import encode_table, make_objectives, measure_cost, watch_kept, watch_peak
from paper.experiments import EXPERIMENTS, Run, list_runs, read_config
from paper.models import fit, load_split
from paper.report import write_report
from paper.runs import carry_out, carry_out_fit, read_records, reproduce


@pytest.mark.slow
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_all_models_of_all_experiments_run_through(tmp_path, real_data, experiment):
    expected = list_runs(experiment, "smoke", 1)
    found = reproduce([experiment], tmp_path / "results", size="smoke", n_seeds=1, progress=False)
    (records,) = found.values()
    assert [record["key"] for record in records] == [run.key for run in expected]
    assert read_records(tmp_path / "results", size="smoke") == found
    assert all(file.stat().st_size for file in write_report(found, tmp_path, smoke=True))
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


# ------------------------------------------------------------ records


def test_the_record_of_a_classification(data_folder, find_run):
    run = find_run("baf", "FCorr + CAR")
    record = carry_out_fit(run)
    text = json.dumps(record, allow_nan=False)
    assert text.startswith('{"key": "')
    assert json.loads(text) == record
    assert record["key"] == run.key
    assert record["config"] == json.loads(json.dumps(asdict(run)))
    assert record["title"] == "FCorr + CAR (bank_fraud, customer_age), seed 0"
    known = {"name": "make_bank_fraud", "stands_in_for": "Bank Account Fraud", "n_test": 800}
    assert record["data"] == {**known, "n_train": 1_500, "n_train_measured": 1_500}
    assert record["performance"]["train"] != record["performance"]["test"]
    assert record["training"]["epochs"] == 1
    assert 0 < record["seconds"]["fit"] == record["seconds"]["epoch"]
    assert set(record["attention"]) == {"features", "first"}
    assert np.shape(record["attention"]["first"]) == (31, 31)
    assert set(record["attention"]["features"]) == set(record["significance"]["significance"])
    assert any("not estimable" in note for note in record["notes"])  # a few frauds, nine ages
    assert not any("one value only" in text for text in record["warnings"])  # that is expected
    assert {"fcorr", "python", "torch", "lightgbm"} <= set(record["versions"])
    later = carry_out_fit(replace(run, seed=1))
    assert later["attention"] == {}  # large matrices are kept of one seed
    assert len(later["significance"]["significance"]) == 31


# In the one epoch of the smoke size a network may learn next to nothing.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", ["FCorr + CAR", "LightGBM"])
def test_the_record_of_a_regression_with_exposure(real_data, find_run, model):
    run = find_run("motor", model, table="fremtpl2")
    record = carry_out_fit(run)
    assert record["threshold"] is None
    found = record["performance"]["test"]
    assert found.keys() == {"deviance", "RMSE", "MAE", "Gini", "normalised Gini", "PE"}
    flips = {"AvgIF", "RMSE gap", "MAE gap", "largest change"}
    assert record["fairness"]["DrivAge"]["test"].keys() == {"DPD", "A/E gap", *flips}
    data = load_split(run.data, 0)
    rates, exposure = fit(run, data.train).score(data.test.X), data.test.exposure
    per_year, weight = data.test.y / exposure, {"sample_weight": exposure}
    assert found["deviance"] == pytest.approx(
        sklearn_metrics.mean_poisson_deviance(per_year, rates, **weight)
    )
    assert found["PE"] == pytest.approx(np.sum(rates * exposure) / data.test.y.sum() - 1)
    assert found["Gini"] == pytest.approx(measures.gini_score(per_year, rates, **weight))


def test_metrics_are_those_of_the_scores(data_folder, find_run):
    run = find_run("synthetic", "FCorr")
    run = replace(run, data=replace(run.data, n_train_measured=100))
    record = carry_out_fit(run)
    assert (record["data"]["n_train"], record["data"]["n_train_measured"]) == (400, 100)
    assert np.shape(record["attention"]["first"]) == (3, 3)
    data = load_split(run.data, 0)
    # The threshold is that of LightGBM's best F1.
    train, options = data.train, {"n_jobs": 1, "deterministic": True, "force_row_wise": True}
    trees = lightgbm.LGBMClassifier(n_estimators=3, random_state=0, verbose=-1, **options)
    ranks = trees.fit(train.X, train.y).predict_proba(train.X)[:, 1]
    best = max(sklearn_metrics.f1_score(train.y, ranks >= level) for level in np.unique(ranks))
    reached = sklearn_metrics.f1_score(train.y, ranks >= record["threshold"])
    assert reached == pytest.approx(best, abs=1e-12)
    score = fit(run, data.train).score
    for part, rows in (("train", data.train.first(100)), ("test", data.test)):
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
            "Accuracy at 0.5": sklearn_metrics.accuracy_score(y, scores >= 0.5),
            "FPR": decisions[y == 0].mean(),
            "FNR": 1 - decisions[y == 1].mean(),
            "AvgIF": metrics.average_individual_fairness(flips),
            "F1 gap": gaps.f1_gap(y, flips, threshold=record["threshold"]),
            "AUROC gap": gaps.auroc_gap(y, flips),
            "AUPRC gap": gaps.auprc_gap(y, flips),
            "largest change": np.abs(score(flipped) - scores).max(),
            "decisions flipped": metrics.decisions_flipped(flips, record["threshold"]),
            "DPD": metrics.demographic_parity_difference(y, decisions, **groups),
            "EqOdd": metrics.equalized_odds_difference(y, decisions, **groups),
            "EqOpp": metrics.equal_opportunity_difference(y, decisions, **groups),
            "DPD of scores": metrics.demographic_parity_difference(None, scores, **groups),
        }
        assert found == pytest.approx(expected)


def test_the_same_run_finds_the_same_also_side_by_side_and_costs_come_last(data_folder):
    cost = replace(find_cost("bank_fraud", "size", "FFN"), n_rows=8)
    fits = list_runs("synthetic", "smoke", 1)[:3]

    def found(n_jobs):
        records = list(carry_out([cost, *fits], n_jobs))
        assert (records[-1]["key"], records[-1]["title"]) == (
            cost.key,
            "FFN, size (bank_fraud), seed 0",
        )
        never_twice = ("seconds", "peak_megabytes")
        return [{k: v for k, v in record.items() if k not in never_twice} for record in records]

    alone = found(1)
    assert [record["key"] for record in alone[:-1]] == [run.key for run in fits]
    assert sorted(found(2), key=lambda of: [one["key"] for one in alone].index(of["key"])) == alone
    assert torch.get_num_threads() == 1


# ------------------------------------------------------------ interrupted and resumed


@pytest.fixture
def carried_out(monkeypatch):
    """Count what is carried out, in no time: records say nothing but which run they are of."""
    titles = Counter()

    def quick(run):
        if len(titles) == titles.stop_at:
            raise KeyboardInterrupt
        titles[run.title] += 1
        return runs.make_record(run, {"found": len(titles)})

    titles.stop_at = None
    monkeypatch.setattr(runs, "carry_out_fit", quick)
    return titles


@pytest.fixture
def start(tmp_path):
    def start(*names, n_seeds=1):
        return reproduce(names, tmp_path, size="smoke", n_seeds=n_seeds, progress=False)

    return start


def test_interrupted_it_goes_on_where_it_stopped(start, carried_out, tmp_path):
    assert read_records(tmp_path / "nowhere") == {}
    carried_out.stop_at = 4
    with pytest.raises(KeyboardInterrupt):
        start("synthetic", n_seeds=2)
    path = tmp_path / "synthetic.jsonl"
    before = path.read_bytes()
    assert before.count(b"\n") == 4
    carried_out.stop_at = None
    records = start("synthetic", n_seeds=2)["synthetic"]
    assert path.read_bytes().startswith(before)
    assert start("synthetic")["synthetic"] == records[:6]  # those of the first seed
    assert set(carried_out.values()) == {1}
    # A line that was cut off is done again; whoever only reads leaves it.
    cut = path.read_bytes()[:-40]
    path.write_bytes(cut)
    assert read_records(tmp_path, size="smoke")["synthetic"] == records[:-1]
    assert path.read_bytes() == cut
    again = start("synthetic", n_seeds=2)["synthetic"]
    assert carried_out[records[-1]["title"]] == 2
    assert [record["key"] for record in again] == [record["key"] for record in records]
    lines = path.read_text().splitlines(keepends=True)
    assert len([json.loads(line) for line in lines]) == len(records) == 12
    path.write_text("".join(reversed(lines)))  # the order is that of the configuration
    assert read_records(tmp_path, size="smoke")["synthetic"] == again


@pytest.mark.parametrize("text", ["a,b\n", '{"key": "k", "estimator": "x"}\n', "[]\n", "my notes"])
def test_a_foreign_file_is_refused(start, carried_out, tmp_path, text):
    path = tmp_path / "baf.jsonl"
    path.write_text(text)
    for act in (lambda: start("synthetic", "baf"), lambda: read_records(tmp_path)):
        with pytest.raises(InvalidInputError) as caught:
            act()
        assert str(caught.value) == (
            f"path must be a file of a reproduction's records, got {str(path)!r}, whose line 1 is "
            "none. Name a file that does not exist yet."
        )
    assert path.read_text() == text
    assert not carried_out  # before hours are spent


def test_records_of_other_settings_are_passed_over(start, carried_out, tmp_path, monkeypatch):
    before = start("synthetic")["synthetic"]
    assert read_records(tmp_path, size="full") == {}
    changed = experiments.merge(read_config("synthetic"), {"printed": {"learning_rate": 0.1}})
    read = {"synthetic": changed}
    monkeypatch.setattr(experiments, "read_config", lambda n: read.get(n) or read_config(n))
    kept = read_records(tmp_path, size="smoke")["synthetic"]
    assert kept == [record for record in before if record["config"]["kind"] == "fcorr"]
    assert 0 < len(kept) < len(before)
    start("synthetic")
    assert sum(carried_out.values()) == 2 * len(before) - len(kept)
    found = start("controllability", n_seeds=7)["controllability"]  # more than the file says
    assert read_records(tmp_path, size="smoke")["controllability"] == found
    assert {record["seed"] for record in found} == set(range(7))


# ------------------------------------------------------------ python -m paper


@pytest.fixture
def run(tmp_path, monkeypatch, data_folder):
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        return result

    return run


SMOKE = ("--smoke", "--jobs", 1, "--seeds", 1, "-o", "out")


def test_end_to_end(run, monkeypatch):
    result = run("synthetic", *SMOKE)
    written = {p.relative_to("out"): p.read_bytes() for p in Path("out").rglob("*") if p.is_file()}
    wrote = [line.removeprefix("wrote out/") for line in result.stdout.splitlines()]
    assert {*map(Path, wrote), Path("reproduction/results/synthetic.jsonl")} == set(written)
    report = written[Path("reproduction.md")].decode()
    assert "they mean nothing" in report
    figures = [path for path in written if path.suffix == ".svg"]
    assert figures
    assert all(f"({path.as_posix()})" in report for path in figures)
    lines = result.stderr.splitlines()
    assert lines[0] == "run 1/6  synthetic: FCorr (indirect_bias, X1), seed 0"
    assert len(lines) == 6
    # The same again, and the report alone, fit nothing and write the same.
    monkeypatch.setattr(runs, "carry_out_fit", None)
    for more in ((), ("--report-only",)):
        (Path("out") / "reproduction.md").unlink()
        again = run("synthetic", *SMOKE, *more)
        assert (again.stdout, again.stderr) == (result.stdout, "")
        assert (Path("out") / "reproduction.md").read_text() == report
    # They are not the figures of the real thing.
    failed = run("synthetic", "--report-only", "-o", "out", code=1)
    assert failed.stderr == (
        "error: A report needs records, got none in 'out'. Run the experiments first: python -m "
        "paper synthetic, say.\n"
    )


def test_interrupted_it_says_how_to_go_on(run, carried_out):
    carried_out.stop_at = 0
    result = run("synthetic", *SMOKE, "--quiet", code=1)
    assert result.stderr == (
        "error: interrupted; what is done is in out/reproduction/results: the same command goes on "
        "from there\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["sinthetic"], 2, "got 'sinthetic'. Did you mean 'synthetic'?"),
        (["everything"], 2, "must be synthetic, baf, adult, claims, motor, controllability"),
        (["synthetic", "--jobs", "0"], 2, "must not be 0: 1 is one after the other"),
        (["synthetic", "--seeds", "0"], 2, "Invalid value for '--seeds'"),
        ([], 2, "Missing argument"),
        (["adult", *SMOKE], 1, "error: load_adult needs adult/adult.data"),  # fetch_adult() is told
    ],
)
def test_bad_usage(run, arguments, code, message):
    result = run(*arguments, code=code)
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.output


def test_a_package_that_is_missing(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    result = run("synthetic", *SMOKE, code=1)
    assert result.stderr == "error: python -m paper needs lightgbm: pip install 'fcorr[bench]'\n"


# ------------------------------------------------------------ costs


def find_cost(table, measure, model="FCorr + CAR"):
    every = list_runs("complexity", "full", 1)
    (run,) = [run for run in every if (run.data, run.measure, run.model) == (table, measure, model)]
    return run


@pytest.mark.parametrize(
    ("table", "n_parameters", "n_head"),
    # A head of sizes d: from 31 and from 581 features, with a bias for each output.
    [
        ("bank_fraud", 11_064, 31 * 64 + 64 + 2 * (64 * 64 + 64) + 64 + 1),
        ("claims", 21_767, 581 * 16 + 16 + 3 * (16 * 16 + 16) + 16 + 1),
    ],
)
def test_the_papers_numbers_of_parameters(table, n_parameters, n_head):
    found = [measure_cost(find_cost(table, "size", model)) for model in ("FCorr", "FCorr + CAR")]
    assert [cost["parameters"] for cost in found] == [n_parameters] * 2
    assert [cost["head_parameters"] for cost in found] == [n_head] * 2
    assert found[0]["parameter_megabytes"] == pytest.approx(4 * n_parameters / 1e6)
    plain, with_car = (cost["kept_megabytes"] for cost in found)
    assert 0 < plain < with_car  # which keeps what it compares


@pytest.mark.parametrize(("table", "n_rows"), [("bank_fraud", 64), ("claims", 8)])
def test_an_epoch_in_three_forms(table, n_rows):
    """The definition and its closed form are one loss; augmentation is another."""
    run = replace(find_cost(table, "epochs"), n_rows=n_rows)
    cost = measure_cost(run)
    seconds = cost["seconds_per_epoch"]
    assert cost["n_rows"] == n_rows
    assert set(seconds) == {costs.AUGMENTED, costs.BY_DEFINITION, costs.CLOSED_FORM}
    assert min(seconds.values()) > 0
    encoded = encode_table(table, run.sensitive, run.task, 20_000, run.seed)
    rows, objectives = encoded.rows.take(torch.arange(n_rows)), make_objectives(run, encoded)
    losses = {form: objective(rows) for form, objective in objectives.items()}
    augmented, closed = losses[costs.AUGMENTED], losses[costs.CLOSED_FORM]
    assert closed[2] > 0
    for one, other in zip(closed, losses[costs.BY_DEFINITION], strict=True):  # total, its parts
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(augmented[1], closed[1], rtol=1e-4, atol=1e-7)
    assert abs(augmented[2] / closed[2] - 1) > 1e-2


def test_what_is_kept_is_counted_to_the_byte():
    x = torch.rand(250_000, requires_grad=True)  # a megabyte of float32
    with watch_kept() as kept:
        y = x.exp()  # keeps its result
        y * y  # keeps it twice more
        y.view(500, 500).square()
        y + 1  # keeps nothing
    assert kept.megabytes() == 1.0
    y.sum().backward()
    torch.testing.assert_close(x.grad, x.detach().exp())  # as ever
    x = torch.rand(250, requires_grad=True)
    with watch_kept() as kept:
        for _ in range(1_000):
            (x * torch.rand(250)).sum()  # the factor is gone at once, and its place is free
    assert kept.megabytes() == 1.0
    layer = torch.nn.Linear(500, 500, bias=False)  # a megabyte
    with watch_kept() as kept:
        layer(torch.rand(250, 500, requires_grad=True))  # half of one
    assert kept.megabytes() == 1.5
    assert kept.megabytes(without=list(layer.parameters())) == 0.5


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells the peak")
def test_the_peak_is_that_of_what_was_watched(monkeypatch, tmp_path):
    def peak_of(size):
        # An array would not do: it may get memory that the process freed earlier and still has.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        with watch_peak() as peak, mmap.mmap(-1, size, flags=flags) as pages:
            for start in range(0, size, mmap.PAGESIZE):
                pages[start] = 1
        return peak.megabytes

    before, large, after = map(peak_of, (1, 200_000_000, 1))
    assert large - before == pytest.approx(200, abs=30)
    assert after - before == pytest.approx(0, abs=30)
    for name in ("_STATUS", "_CLEAR"):  # elsewhere there is none
        with monkeypatch.context() as patch:
            patch.setattr(costs, name, tmp_path / "no" / "file")
            assert peak_of(1) is None
