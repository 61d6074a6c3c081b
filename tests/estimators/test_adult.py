"""First fits on real data with no tuning."""

import os
import time

import numpy as np
import pytest

from fcorr import FCorrClassifier
from fcorr.data import load_adult
from fcorr.metrics import accuracy_score, flip_changes, flip_scores, roc_auc_score

pytestmark = pytest.mark.skipif(
    "FCORR_DATA" not in os.environ, reason="FCORR_DATA does not name the folder with Adult"
)


def test_adult_with_defaults():
    adult = load_adult()
    model = FCorrClassifier(sensitive="race", random_state=0).fit(adult.train.X, adult.train.y)
    flips = flip_scores(model.predict_proba, adult.test.X, "race")
    assert roc_auc_score(adult.test.y, flips.factual) >= 0.918
    assert flip_changes(flips)["max"] < 1e-4


MODELS = {
    "FCorr": (FCorrClassifier(), 0.862, 0.915),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Categories not seen")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", MODELS)
def test_networks_on_rows_held_out_of_the_training_file(name, seed):
    """The test file is left alone; defaults were chosen on another split of the same rows."""
    model, least_accuracy, least_auroc = MODELS[name]
    train = load_adult(frame="pandas").train
    order = np.random.default_rng(1).permutation(len(train.y))
    held_out, kept = np.split(order, [6_512])
    start = time.process_time()
    model.set_params(random_state=seed).fit(train.X.iloc[kept], train.y[kept])
    seconds = time.process_time() - start
    y, scores = train.y[held_out], model.predict_proba(train.X.iloc[held_out])[:, 1]
    accuracy, auroc = accuracy_score(y, scores >= 0.5), roc_auc_score(y, scores)
    print(f"\n{name}, seed {seed}: accuracy {accuracy:.4f}, AUROC {auroc:.4f}, {seconds:.0f} s")
    assert accuracy > least_accuracy
    assert auroc > least_auroc
