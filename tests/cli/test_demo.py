import json
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("can_draw", [True, False])
def test_demo(run, files, monkeypatch, can_draw):
    """Let the demo take a moment instead of ten seconds a fit."""
    for name, value in {
        "N_TRAIN": 200,
        "N_TEST": 500,
        "PARAMETERS": {"n_members": 1, "epochs": 1},
    }.items():
        monkeypatch.setattr(f"fcorr.audit.demo.{name}", value)
    if not can_draw:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("demo", "--fits", 1, "--output", "results", "--seed", 3)
    figures = ["attention.svg", "flip.svg", "significance.svg"] if can_draw else []
    written = ["results.json", "table.md", *figures]
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
    first, *_, last = result.stderr.splitlines()
    missing = "no figures: they need matplotlib, pip install 'fcorr[plot]'"
    assert (first == missing) is not can_draw
    assert last == "fit 1 of 1 done"


def test_folder_is_a_file(run):
    Path("results").write_text("")
    result = run("demo", "--fits", 1, "--output", "results", code=2)
    assert "is a file" in result.stderr
