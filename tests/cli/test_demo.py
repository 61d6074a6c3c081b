import sys
from pathlib import Path

import pytest

import fcorr


def test_a_table_a_model_and_its_report(run, monkeypatch):
    pytest.importorskip("matplotlib")
    module = sys.modules["fcorr.cli.train"]  # fcorr.cli has the command by the same name
    monkeypatch.setattr(module, "N_TRAIN", 200)
    monkeypatch.setattr(module, "N_TEST", 100)
    result = run("demo", "--output", "out", "--random-state", 3, "--quiet")
    written = ["train.csv", "test.csv", "model.fcorr", "report.html"]
    assert sorted(path.name for path in Path("out").iterdir()) == sorted(written)
    wrote = [line for line in result.stdout.splitlines() if line.startswith("wrote")]
    assert wrote[:-1] == [f"wrote out/{name}" for name in written[:-1]]
    assert wrote[-1] == "wrote out/report.html: open it in a browser"
    assert fcorr.load("out/model.fcorr").exact_
    scored = run("predict", "out/model.fcorr", "out/test.csv", "-o", "scores.csv")
    assert "wrote scores.csv" in scored.stdout
    assert "<!doctype html>" in Path("out/report.html").read_text().lower()


def test_the_tables_only(run):
    run("demo", "--data", "--output", "out")
    assert {path.name for path in Path("out").iterdir()} == {"train.csv", "test.csv"}
    lines = Path("out/train.csv").read_text().splitlines()
    assert (lines[0], len(lines)) == ('"S","Z","X1","X2","X3","y"', 2_001)
    assert "is a file" in run("demo", "--output", "out/train.csv", code=2).stderr


def test_a_full_disk_leaves_the_old_table(run, no_room):
    Path("out").mkdir()
    Path("out/train.csv").write_text("old")
    with no_room():
        result = run("demo", "--data", "--output", "out", code=1)
    assert "error: 'out/train.csv': File too large; nothing was written" in result.stderr
    assert Path("out/train.csv").read_text() == "old"
