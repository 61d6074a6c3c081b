"""First fits on real data with no tuning."""

import os

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, roc_auc_score

from fcorr import FCorrClassifier
from fcorr.metrics import flip_changes, flip_scores
from paper.datasets import load_adult

pytestmark = pytest.mark.skipif(
    "FCORR_DATA" not in os.environ, reason="FCORR_DATA does not name the folder with Adult"
)


def test_adult_with_defaults():
    adult = load_adult()
    model = FCorrClassifier(n_members=1, sensitive="race", random_state=0).fit(
        adult.train.X, adult.train.y
    )
    flips = flip_scores(model.predict_proba, adult.test.X, "race")
    assert roc_auc_score(adult.test.y, flips.factual) >= 0.918
    assert flip_changes(flips)["max"] < 1e-4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Categories not seen")
@pytest.mark.parametrize("seed", [0, 1])
def test_rows_held_out_of_the_training_file(seed):
    """The test file is left alone; defaults were chosen on another split of the same rows."""
    train = load_adult().train
    order = np.random.default_rng(1).permutation(len(train.y))
    held_out, kept = np.split(order, [6_512])
    model = FCorrClassifier(n_members=1, random_state=seed).fit(train.X.iloc[kept], train.y[kept])
    y, scores = train.y[held_out], model.predict_proba(train.X.iloc[held_out])[:, 1]
    assert accuracy_score(y, scores >= 0.5) > 0.862
    assert roc_auc_score(y, scores) > 0.915
