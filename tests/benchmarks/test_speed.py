"""The speed benchmark runs and adds up; how fast anything is, no test says."""

import doctest
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.speed import measure, models, tables
from benchmarks.speed.__main__ import read_records, write_documents
from benchmarks.speed.data import make_data, make_wide_data
from benchmarks.speed.memory import peak_of
from benchmarks.speed.plan import QUICK, STEP_MODELS, Setting
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


def test_rows_shrink_to_what_the_memory_holds(data):
    most = 1_000 * 31**2
    expected = {(256, most): 256, (2_048, most): 512, (2_048, 31**2): 1, (2_048, 31**2 - 1): 0}
    for (batch, entries), n_rows in expected.items():
        assert models.rows_per_step("fcorr_exact", data, batch, entries) == n_rows


def test_wide_tables_keep_the_proportions_of_the_claims():
    p = 31
    wide = make_wide_data(p, 200)
    rows = wide.rows
    assert rows.x_cat.shape[1] + rows.x_num.shape[1] == wide.n_features == p
    assert len(wide.cardinalities) == round(p * 383 / 581)
    assert wide.cardinalities[0] == rows.x_cat[:, 0].max() + 1 == 7
    assert (rows.x_cat.amax(0) < torch.tensor(wide.cardinalities)).all()


def test_what_is_too_slow_or_too_large_is_left_out_with_a_reason(data):
    plan = replace(QUICK, longest_step=0.0, most_entries=32 * 31)
    records = list(measure._time_models(plan, ("fcorr", "fcorr_car_cda"), data, 16, {}))
    assert [record["model"] for record in records] == ["fcorr", "fcorr_car_cda"]
    assert "a step of 1 rows took" in records[0]["skipped"]
    assert "more than 992 entries" in records[1]["skipped"]


# ------------------------------------------------------------------------------ the other clocks


@linux
@pytest.mark.slow
def test_peak_memory_grows_with_the_rows(data, tmp_path):
    data.save(tmp_path / "data.pt")
    small, large = (peak_of(tmp_path / "data.pt", "fcorr_exact", rows) for rows in (16, 128))
    # Backward keeps the p × p softmax of each row.
    assert large - small > 112 * 4 * 31**2


def test_scorers_agree_with_what_a_user_gets():
    pytest.importorskip("lightgbm", reason="needs the extra 'bench'")
    scorers, n_leaves = measure.make_scorers(SETTING)
    scores = {name: np.asarray(score()) for name, score in scorers.items()}
    assert 2 <= n_leaves <= 31
    np.testing.assert_allclose(scores["lightgbm arrays"], scores["lightgbm frame"][:, 1])
    probability = scores["fcorr frame"][:, 1]
    balance = np.log(probability / (1 - probability)) - scores["fcorr arrays"][:, 0]
    np.testing.assert_allclose(balance, balance[0], atol=1e-4)  # the constant that predict adds


def test_epochs_are_timed_between_reports():
    pytest.importorskip("lightgbm", reason="needs the extra 'bench'")
    records = list(measure.time_epochs(replace(QUICK, settings=(SETTING,))))
    kinds = [record["kind"] for record in records]
    assert kinds == ["encoding"] * 3 + ["epoch"] * 2 + ["lightgbm"]
    for record in records[3:5]:
        assert len(record["seconds"]) == SETTING.epochs - 1
        assert 0 < sum(record["seconds"]) < record["fit_seconds"]


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


def test_memory_of_the_whole_batch_lies_on_the_line_through_two_smaller_ones():
    def record(rows, peak_bytes, batch=512):
        where = {"kind": "memory", "setting": "claims", "model": "ft_transformer"}
        return where | {"batch": batch, "rows": rows, "peak_bytes": peak_bytes}

    line = Results([record(8, 10 + 8 * 3), record(16, 10 + 16 * 3)])
    assert line.memory("claims", "ft_transformer") == 10 + 512 * 3
    assert Results([record(512, 77)]).memory("claims", "ft_transformer") == 77
    assert Results([record(16, 77)]).memory("claims", "ft_transformer") is None


def test_documents_are_made_from_the_committed_records(tmp_path):
    write_documents(read_records(ROOT / "benchmarks" / "results" / "speed.jsonl"), tmp_path)
    made = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert len(made) == len(tables.TABLES) + 1
    for path in made:
        assert (ROOT / path).read_text() == (tmp_path / path).read_text(), path


def test_examples_in_docstrings():
    assert doctest.testmod(tables).failed == 0
