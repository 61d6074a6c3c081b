"""The examples run, on few rows, and write what they say."""

import os
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from paper import datasets

ROOT = Path(__file__).parents[1]
EXAMPLES = {
    "plot_bank_fraud.py": ("", {"bank_fraud.md", "bank_fraud_attention.svg"}),
    "plot_tariff.py": ("", {"tariff.md", "tariff_effects.svg", "tariff_lift.svg"}),
    "plot_adult.py": ("adult", {"adult.md", "adult_actual_expected.svg"}),
    "plot_motor_frequency.py": ("beMTPL97", {"motor_frequency.md", "motor_lorenz.svg"}),
}


def test_every_example_is_listed():
    assert {path.name for path in (ROOT / "examples").glob("plot_*.py")} == set(EXAMPLES)


def cut_test_rows(monkeypatch, name):
    """Let a data set have few rows to test on: an example takes all."""
    data = getattr(datasets, name)()
    parts = data.test.X[:2_000], data.test.y[:2_000]
    exposure = None if data.test.exposure is None else data.test.exposure[:2_000]
    few = replace(data, test=datasets.Part(*parts, exposure))
    monkeypatch.setattr(datasets, name, lambda: few)


@pytest.mark.filterwarnings("default")  # few rows have constant columns
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(name, tmp_path, monkeypatch, capsys):
    folder, files = EXAMPLES[name]
    data = Path(os.environ.get("FCORR_DATA", "no such folder"))
    if folder and not (data / folder).is_dir():
        pytest.skip(f"FCORR_DATA does not name a folder with {folder}")
    if folder:
        cut_test_rows(monkeypatch, f"load_{folder.lower()}")
    output = tmp_path / "new"
    monkeypatch.setattr(sys, "argv", [name, "--rows", "500", "--output", str(output)])
    runpy.run_module(f"examples.{Path(name).stem}", run_name="__main__")
    assert files <= {path.name for path in output.iterdir()}
    table = (output / min(f for f in files if f.endswith(".md"))).read_text()
    assert table in capsys.readouterr().out
