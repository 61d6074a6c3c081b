"""A first fit on real data with no tuning."""

import os

import pytest

from fcorr import FCorrClassifier
from fcorr.data import load_adult
from fcorr.metrics import flip_changes, flip_scores, roc_auc_score

pytestmark = pytest.mark.skipif(
    "FCORR_DATA" not in os.environ, reason="FCORR_DATA does not name the folder with Adult"
)


def test_adult_with_defaults():
    adult = load_adult()
    model = FCorrClassifier(sensitive="race", random_state=0).fit(adult.train.X, adult.train.y)
    flips = flip_scores(model.predict_proba, adult.test.X, "race")
    assert roc_auc_score(adult.test.y, flips.factual) >= 0.918
    assert flip_changes(flips)["max"] < 1e-4
