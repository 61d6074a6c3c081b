"""The demonstration repeats the paper's pattern on its synthetic data."""

import json

import numpy as np
import pytest

from paper.comparison import EXACT, PLAIN, REMOVED, WITH_CAR
from paper.demo import PARAMETERS, run_demo, write_demo


@pytest.fixture(scope="module")
def demo():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paper.demo.N_TEST", 3_000)
        patch.setitem(PARAMETERS, "epochs", 25)
        return run_demo(range(1))


def test_car_closes_the_flip_metrics_and_keeps_the_accuracy(demo):
    assert list(demo.metrics) == [PLAIN, WITH_CAR, EXACT, REMOVED]
    assert np.mean(demo.metrics[PLAIN]["AvgIF"]) > 1e-3
    assert max(demo.metrics[WITH_CAR]["AvgIF"]) <= 1e-4
    assert max(demo.metrics[WITH_CAR]["largest change"]) <= 1e-4
    for name in (EXACT, REMOVED):
        assert max(demo.metrics[name]["largest change"]) == 0
        assert max(demo.metrics[name]["found by search"]) == 0
    assert min(demo.metrics[PLAIN]["found by search"]) > 0
    means = {name: np.mean(metrics["AUROC"]) for name, metrics in demo.metrics.items()}
    assert means[WITH_CAR] > 0.73
    assert means[WITH_CAR] == pytest.approx(means[REMOVED], abs=0.01)
    assert means[EXACT] == pytest.approx(means[REMOVED], abs=0.01)


def test_what_the_figures_show(demo):
    assert set(demo.attention) == set(demo.flip_change) == {PLAIN, WITH_CAR}
    for matrix in demo.attention.values():
        assert min(matrix["X2", "X2"], matrix["X3", "X3"]) > matrix["X1", "X1"]
    assert demo.flip_change[PLAIN]["X1", "X2"] > 0.01
    assert demo.flip_change[WITH_CAR]["X1", "X2"] < 1e-4


def test_files_hold_what_the_table_shows(demo, tmp_path):
    files = write_demo(demo, tmp_path / "new" / "folder")
    assert set(files) == set((tmp_path / "new" / "folder").iterdir())
    results = json.loads(files[0].read_text())
    assert results["metrics"] == demo.metrics
    assert results["feature_names"] == ["X1", "X2", "X3"]
    table = files[1].read_text()
    _, rows = demo.table()
    assert all(cell in table for row in rows for cell in row)
    assert len(table.splitlines()) == len(rows) + 2
