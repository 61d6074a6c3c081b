"""A first fit on real data with no tuning."""

import importlib.util
import os
from pathlib import Path

import pytest

from fcorr import FCorrClassifier
from fcorr.metrics import flip_changes, flip_scores, roc_auc_score

FOLDER = Path(os.environ.get("FCORR_DATA", "")) / "adult"

pytestmark = pytest.mark.skipif(
    "FCORR_DATA" not in os.environ, reason="FCORR_DATA does not name the folder with Adult"
)


@pytest.fixture(scope="module")
def benchmark():
    path = Path(__file__).parents[2] / "benchmarks" / "adult.py"
    spec = importlib.util.spec_from_file_location("adult", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_adult_with_defaults(benchmark):
    train = benchmark.read_adult(FOLDER / "adult.data.gz", skip=0)
    test = benchmark.read_adult(FOLDER / "adult.test.gz", skip=1)
    assert (len(train[1]), train[1].sum()) == (32_561, 7_841)
    assert (len(test[1]), test[1].sum()) == (16_281, 3_846)
    model = FCorrClassifier(sensitive="race", random_state=0).fit(*train)
    flips = flip_scores(model.predict_proba, test[0], "race")
    assert roc_auc_score(test[1], flips.factual) >= 0.918
    assert flip_changes(flips)["max"] < 1e-4
