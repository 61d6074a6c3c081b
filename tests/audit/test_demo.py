"""The demonstration repeats the paper's pattern on its synthetic data."""

import json

import numpy as np
import pytest

from fcorr.audit.comparison import EXACT, PLAIN, REMOVED, WITH_CAR
from fcorr.audit.demo import demo_table, run_demo, write_demo


@pytest.fixture(scope="module")
def demo():
    return run_demo(range(3))


def test_car_closes_the_flip_metrics(demo):
    assert np.mean(demo.metrics[PLAIN]["AvgIF"]) > 1e-3
    assert max(demo.metrics[WITH_CAR]["AvgIF"]) <= 1e-4
    assert max(demo.metrics[WITH_CAR]["largest change"]) <= 1e-4


def test_exact_models_and_the_removed_column_cannot_change_anything(demo):
    for name in (EXACT, REMOVED):
        assert max(demo.metrics[name]["largest change"]) == 0
        assert max(demo.metrics[name]["certified bound"]) == 0
    assert min(demo.metrics[PLAIN]["certified bound"]) > 0


def test_models_in_the_order_of_their_constraint(demo):
    assert list(demo.metrics) == [PLAIN, WITH_CAR, EXACT, REMOVED]
    assert set(demo.attention) == {PLAIN, WITH_CAR}


def test_informative_features_are_more_significant_than_the_sensitive_one(demo):
    for matrix in demo.attention.values():
        x1, x2, x3 = matrix.diagonal()
        assert min(x2, x3) > x1


def test_a_flip_of_x1_no_longer_moves_its_entry_with_x2(demo):
    assert demo.flip_change[PLAIN][0, 1] > 0.01
    assert demo.flip_change[WITH_CAR][0, 1] < 1e-4


def test_accuracy_is_kept(demo):
    means = {name: np.mean(metrics["AUROC"]) for name, metrics in demo.metrics.items()}
    assert means[WITH_CAR] > 0.73
    assert means[WITH_CAR] == pytest.approx(means[REMOVED], abs=0.01)
    assert means[EXACT] == pytest.approx(means[REMOVED], abs=0.01)


def test_files_hold_what_the_table_shows(demo, tmp_path):
    files = write_demo(demo, tmp_path / "new" / "folder")
    assert {file.name for file in files} == {
        "results.json",
        "table.md",
        "attention.svg",
        "flip.svg",
        "significance.svg",
    }
    results = json.loads((tmp_path / "new" / "folder" / "results.json").read_text())
    assert results["metrics"] == demo.metrics
    table = (tmp_path / "new" / "folder" / "table.md").read_text()
    _, rows = demo_table(demo)
    assert all(cell in table for row in rows for cell in row)
    assert len(table.splitlines()) == len(rows) + 2
