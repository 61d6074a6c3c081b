"""The speed benchmark runs and adds up; how fast anything is, no test says."""

import doctest
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.speed import models, tables
from benchmarks.speed.__main__ import read_records, write_documents
from benchmarks.speed.data import make_data
from benchmarks.speed.memory import peak_of
from benchmarks.speed.plan import STEP_MODELS, Setting
from benchmarks.speed.tables import Results
from fcorr.nn import FCorrEncoderLayer, attention

ROOT = Path(__file__).parents[2]
SETTING = Setting("bank_fraud", 16, 4_000, 4_000, 50, 600, 3)
# A small draw of either table has columns that take one value only, and says so.
pytestmark = pytest.mark.filterwarnings("ignore:Columns that take one value only")
linux = pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")


def needs(model):
    if model == "ft_transformer":
        pytest.importorskip("rtdl_revisiting_models", reason="needs the extra 'bench'")


@pytest.fixture(scope="module")
def data():
    return make_data(SETTING)


# ---------------------------------------------------------------------------------------- steps


@pytest.mark.parametrize("name", STEP_MODELS)
def test_a_step_trains_every_parameter(name, data, monkeypatch):
    needs(name)
    trained = []
    adam = torch.optim.Adam

    def keep(parameters, **options):
        trained.extend(parameters)
        return adam(trained, **options)

    monkeypatch.setattr(torch.optim, "Adam", keep)
    step = models.make_step(name, data, 16)
    before = [parameter.detach().clone() for parameter in trained]
    step.run()
    step.run()
    assert step.n_rows == 16
    assert step.n_parameters == sum(parameter.numel() for parameter in trained)
    moved = [not torch.equal(a, b) for a, b in zip(before, trained, strict=True)]
    assert all(torch.isfinite(parameter).all() for parameter in trained)
    # A bias that a LayerNorm or a softmax takes away again may stay where it is.
    assert sum(moved) > 0.8 * len(moved)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("fcorr", "run_kernels"),
        ("fcorr_sdpa", "scaled_dot_product_attention"),
        ("fcorr_exact", "run_layer_by_matrix"),
    ],
)
def test_each_way_of_attention_is_the_one_that_runs(name, way, data, monkeypatch):
    calls = []

    def count(place, way):
        function = getattr(place, way)
        counting = lambda *a, **k: calls.append(way) or function(*a, **k)  # noqa: E731
        monkeypatch.setattr(place, way, counting)

    count(attention, "scaled_dot_product_attention")
    count(models, "run_layer_by_matrix")
    count(FCorrEncoderLayer, "run_kernels")
    models.make_step(name, data, 16).run()
    assert calls == [way]


def test_the_matrix_gives_the_same_layer():
    generator = torch.Generator().manual_seed(0)
    layer = FCorrEncoderLayer(40, n_elementwise=2, generator=generator).double()
    h = torch.randn(5, 1, 40, dtype=torch.float64, generator=generator)
    torch.testing.assert_close(models.run_layer_by_matrix(layer, h), layer(h))


# ------------------------------------------------------------------------------ the other clocks


@linux
@pytest.mark.slow
def test_peak_memory_grows_with_the_rows(data, tmp_path):
    data.save(tmp_path / "data.pt")
    small, large = (peak_of(tmp_path / "data.pt", "fcorr_exact", rows) for rows in (16, 128))
    # Backward keeps the p × p softmax of each row.
    assert large - small > 112 * 4 * 31**2


@linux
@pytest.mark.slow
def test_the_whole_benchmark_runs(tmp_path):
    pytest.importorskip("lightgbm", reason="needs the extra 'bench'")
    pytest.importorskip("rtdl_revisiting_models", reason="needs the extra 'bench'")
    command = [sys.executable, "-m", "benchmarks.speed", "--quick", "--output", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = tmp_path / "docs"
    reach = (made / "tables" / "speed_reach.md").read_text()
    assert reach.count("not measured") == 1  # p is doubled in the full run only
    assert "–" not in (made / "tables" / "speed_setup.md").read_text()
    assert (made / "speed" / "cost.svg").read_text().count("<path") > 5


# ------------------------------------------------------------------------------ tables and plot


def step_record(model, seconds, *, setting="claims", kind="step", **more):
    shape = {"p": 581, "batch": 512, "categories": 7, "rows": 100, "parameters": 1_000}
    record = {"kind": kind, "setting": setting, "model": model, "seconds": seconds}
    return shape | record | more


def test_ratios_are_those_of_medians_per_row():
    records = [
        step_record("fcorr", [0.2, 0.1, 9.0]),
        step_record("fcorr_car", [0.3, 0.22, 0.22]),
        step_record("head", [0.02] * 3),
        step_record("ft_transformer", [0.9, 1.0, 1.1], rows=1),
    ]
    lines = tables.reach_table(Results(records)).splitlines()
    cells = {line.split(" | ")[0]: line.split(" | ")[-3:] for line in lines[2:]}
    assert cells["| FCorr + CAR step ÷ bare head step"] == ["≤ 12", "11.0", "met |"]
    assert cells["| FCorr + CAR step ÷ FCorr step"] == ["≤ 1.25", "1.10", "met |"]
    assert cells["| FT-Transformer step ÷ FCorr step"] == ["≥ 500", "500", "met |"]
    assert cells["| p × p softmax FCorr step ÷ FCorr step"] == ["≥ 40", "–", "not measured |"]


def test_documents_are_made_from_the_committed_records(tmp_path):
    write_documents(read_records(ROOT / "benchmarks" / "results" / "speed.jsonl"), tmp_path)
    made = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert len(made) == len(tables.TABLES) + 1
    for path in made:
        assert (ROOT / path).read_text() == (tmp_path / path).read_text(), path


def test_examples_in_docstrings():
    assert doctest.testmod(tables).failed == 0
