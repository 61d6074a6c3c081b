import json
from pathlib import Path

import pytest


@pytest.fixture
def quick(monkeypatch):
    """Let the demo take a moment instead of ten seconds a fit."""
    for name, value in {"N_TRAIN": 200, "N_TEST": 500, "PARAMETERS": {"epochs": 1}}.items():
        monkeypatch.setattr(f"fcorr.audit.demo.{name}", value)


def test_demo(run, files, quick):
    result = run("demo", "--fits", 1, "--output", "results", "--seed", 3)
    written = ["results.json", "table.md", "attention.svg", "flip.svg", "significance.svg"]
    assert sorted(p.name for p in Path("results").iterdir()) == sorted(written)
    assert files() == {"results"}
    assert [line for line in result.stdout.splitlines() if line.startswith("wrote")] == [
        f"wrote results/{name}" for name in written
    ]
    results = json.loads(Path("results/results.json").read_text())
    assert results["seeds"] == [3]
    for model in ("FCorr", "FCorr + CAR", "FCorr, exact", "FCorr, column removed"):
        assert model in results["metrics"]
        assert model in result.stdout
    assert "AvgIF" in result.stdout
    assert result.stderr.splitlines()[-1] == "fit 1 of 1 done"


def test_folder_is_a_file(run):
    Path("results").write_text("")
    result = run("demo", "--fits", 1, "--output", "results", code=2)
    assert "is a file" in result.stderr
