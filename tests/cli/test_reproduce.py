"""`fcorr reproduce`: experiments in, records, tables, figures and a report out."""

import json
import sys
from pathlib import Path

import pytest

from fcorr.reproduce import EXPERIMENTS, runs
from fcorr.reproduce.data import load_split
from fcorr.reproduce.settings import list_runs
from fcorr.reproduce.trees import papers_threshold

SMOKE = ("--smoke", "--jobs", 1, "--seeds", 1, "-o", "out")


@pytest.fixture(autouse=True)
def data_folder(tmp_path_factory, monkeypatch):
    """Let an empty folder be the data folder."""
    folder = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("FCORR_DATA", str(folder))
    for remembered in (load_split, papers_threshold):
        remembered.cache_clear()
    yield folder
    for remembered in (load_split, papers_threshold):
        remembered.cache_clear()


@pytest.fixture
def nothing_is_fitted(monkeypatch):
    def carry_out_fit(run):
        raise AssertionError(f"{run.title} was fitted")

    monkeypatch.setattr(runs, "carry_out_fit", carry_out_fit)


def read(name):
    path = Path("out/reproduction/results") / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def everything():
    return {
        path.relative_to("out"): path.read_bytes()
        for path in Path("out").rglob("*")
        if path.is_file()
    }


def test_end_to_end(run, files, request):
    result = run("reproduce", "synthetic", *SMOKE)
    assert files() == {"out"}
    assert [record["key"] for record in read("synthetic")] == [
        each.key for each in list_runs("synthetic", "smoke", 1)
    ]
    written = everything()
    wrote = [line.removeprefix("wrote out/") for line in result.stdout.splitlines()]
    assert {Path(name) for name in wrote} == set(written) - {
        Path("reproduction/results/synthetic.jsonl")
    }
    assert wrote[0] == "reproduction.md"
    folders = {(path.parent.name, path.suffix) for path in written}
    assert {("tables", ".md"), ("tables", ".tex"), ("figures", ".svg")} <= folders
    tables = {path for path in written if path.parent.name == "tables"}
    assert {path.with_suffix(".md") for path in tables} == {
        path for path in tables if path.suffix == ".md"
    }
    report = written[Path("reproduction.md")].decode()
    assert "they mean nothing" in report
    for path in written:
        if path.suffix == ".svg":
            assert f"({path.as_posix()})" in report
    progress = result.stderr.splitlines()
    assert progress[0] == "run 1/6  synthetic: FCorr (indirect_bias, X1), seed 0"
    assert len(progress) == 6

    # The same again, and the report alone, fit nothing and write the same.
    request.getfixturevalue("nothing_is_fitted")
    again = run("reproduce", "synthetic", *SMOKE)
    assert (again.stdout, again.stderr) == (result.stdout, "")
    (Path("out") / "reproduction.md").unlink()
    only = run("reproduce", "synthetic", *SMOKE, "--report-only")
    assert (only.stdout, only.stderr) == (result.stdout, "")
    assert everything() == written

    # They are not the figures of the real thing.
    failed = run("reproduce", "synthetic", "--report-only", "-o", "out", code=1)
    assert "A report needs records" in failed.stderr


def test_several_experiments_each_once_and_quietly(run, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "fcorr.reproduce.reproduce", lambda names, *_, **options: asked.append((names, options))
    )
    monkeypatch.setattr(
        "fcorr.reproduce.report.write_document", lambda *_, **__: [Path("out/reproduction.md")]
    )
    given = ("--quiet", "--seeds", 3, "--jobs", 2, "-o", "out")
    result = run("reproduce", "motor", "baf", "motor", *given)
    assert result.stdout == "wrote out/reproduction.md\n"
    run("reproduce", "motor", "all", "--smoke")
    (first, options), (second, defaults) = asked
    assert first == ("motor", "baf")
    assert options == {"size": "full", "n_seeds": 3, "n_jobs": 2, "progress": False}
    assert second == EXPERIMENTS
    assert defaults == {"size": "smoke", "n_seeds": None, "n_jobs": -1, "progress": True}


def test_interrupted_it_says_how_to_go_on(run, monkeypatch):
    fit = runs.carry_out_fit
    fitted = []

    def interrupted(each):
        if len(fitted) == 1:
            raise KeyboardInterrupt
        fitted.append(each)
        return fit(each)

    monkeypatch.setattr(runs, "carry_out_fit", interrupted)
    result = run("reproduce", "synthetic", *SMOKE, "--quiet", code=1)
    assert result.stderr == (
        "error: interrupted; what is done is in out/reproduction/results: the same command goes on "
        "from there\n"
    )
    assert len(read("synthetic")) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sinthetic"], "got 'sinthetic'. Did you mean 'synthetic'?"),
        (["synthetic", "adlt"], "got 'adlt'. Did you mean 'adult'?"),
        (["everything"], "must be synthetic, baf, adult, claims, motor, controllability"),
        (["synthetic", "--jobs", "0"], "must not be 0: 1 is one after the other"),
        (["synthetic", "--seeds", "0"], "Invalid value for '--seeds'"),
        (["synthetic", "--output", "data.csv"], "is a file"),
        ([], "Missing argument"),
    ],
)
def test_bad_usage(run, files, arguments, message):
    result = run("reproduce", *arguments, code=2)
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert files() == set()


def test_a_report_of_nothing(run, files):
    result = run("reproduce", "synthetic", "--report-only", "-o", "out", code=1)
    (line,) = result.stderr.splitlines()
    assert line == (
        "error: A report needs records, got none in 'out'. Run the experiments first: "
        "fcorr reproduce synthetic, say."
    )
    assert files() == set()


@pytest.mark.parametrize("package", ["lightgbm"])
def test_a_package_that_is_missing(run, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    result = run("reproduce", "synthetic", *SMOKE, code=1)
    (line,) = result.stderr.splitlines()
    assert line == f"error: fcorr reproduce needs {package}: pip install 'fcorr[bench]'"


def test_data_that_is_missing(run, data_folder):
    result = run("reproduce", "adult", *SMOKE, code=1)
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: load_adult needs adult/adult.data")
    assert str(data_folder) in line
    assert "fetch_adult()" in line
    assert "Set FCORR_DATA" in line


def test_a_foreign_file_among_the_results(run):
    path = Path("out/reproduction/results/synthetic.jsonl")
    path.parent.mkdir(parents=True)
    path.write_text("my notes\n")
    result = run("reproduce", "synthetic", *SMOKE, code=1)
    (line,) = result.stderr.splitlines()
    assert "must be a file of a reproduction's records" in line
    assert path.read_text() == "my notes\n"


def test_help(run):
    shown = run("reproduce", "--help").stdout
    assert "Usage: fcorr reproduce" in shown
    for name in EXPERIMENTS:
        assert name in shown
