"""scikit-learn's own checks, and its tools around the estimators."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fcorr import FCorrClassifier, FCorrRegressor
from fcorr.data import make_indirect_bias

WEIGHTS_ARE_NOT_COPIES = (
    "A row of weight 2 is one row in one batch, two copies fall into two batches: mini-batch "
    "training takes other steps, as scikit-learn's own SGD estimators do. A weight of 0 is removal."
)
PROBABILITIES_ARE_THE_DATAS = (
    "Class weights are of the loss alone: probabilities stay those of the data, and decisions "
    "follow them, or threshold. The check wants a weight of 1,000 to decide for a class."
)
REASONS = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_NOT_COPIES,
    "check_class_weight_classifiers": PROBABILITIES_ARE_THE_DATAS,
}


@parametrize_with_checks(
    [FCorrClassifier(n_members=1, epochs=10), FCorrRegressor(n_members=1, epochs=10)],
    expected_failed_checks=lambda _: REASONS,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_blobs_in_four_dimensions_are_learnt():
    X, y = make_blobs(n_samples=300, n_features=4, centers=3, random_state=0)
    assert FCorrClassifier(n_members=1, random_state=0).fit(X, y).score(X, y) > 0.97


@pytest.mark.parametrize("n_features", [1, 2, 3])
def test_few_features_are_enough(n_features):
    X, y = make_blobs(n_samples=300, n_features=4, centers=3, random_state=0)
    X = X[:, :n_features]
    model = FCorrClassifier(n_members=1, random_state=0).fit(X, y)
    reached = LogisticRegression().fit(X, y).score(X, y)
    assert model.score(X, y) > reached - 0.02


@pytest.fixture(scope="module")
def table():
    X, y = make_indirect_bias(400, random_state=0)
    return X.to_pandas(), y


def test_clone_keeps_every_argument():
    original = FCorrClassifier(
        n_members=1, sensitive=["a"], car="paper", head=(8, 4), random_state=3
    )
    assert clone(original).get_params() == original.get_params()


def test_pipeline_with_set_output(table):
    X, y = table
    X = X.assign(amount=np.linspace(0, 1, len(X)))
    for library in ("pandas", "polars"):
        scale = make_column_transformer(
            (StandardScaler(), ["amount"]), remainder="passthrough", verbose_feature_names_out=False
        )
        model = FCorrClassifier(n_members=1, sensitive="X1", epochs=2, random_state=0)
        pipeline = make_pipeline(scale, model).set_output(transform=library)
        pipeline.fit(X, y)
        assert set(pipeline[-1].feature_names_in_) == set(X.columns)
        assert pipeline.predict_proba(X).shape == (400, 2)


def test_grid_search_over_the_weight_of_car(table):
    search = GridSearchCV(
        FCorrClassifier(n_members=1, sensitive="X1", epochs=2, random_state=0),
        {"car": [None, 10.0]},
        cv=2,
    )
    search.fit(*table)
    assert search.best_params_["car"] in (None, 10.0)
    assert len(cross_val_score(search.best_estimator_, *table, cv=2)) == 2


def test_multi_class_probabilities():
    X, y = make_blobs(n_samples=200, n_features=5, centers=4, random_state=1)
    labels = np.array(["a", "b", "c", "d"])[y]
    model = FCorrClassifier(n_members=1, epochs=5, random_state=0).fit(
        pd.DataFrame(X).add_prefix("f"), labels
    )
    probabilities = model.predict_proba(pd.DataFrame(X).add_prefix("f"))
    assert probabilities.shape == (200, 4)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert list(model.classes_) == ["a", "b", "c", "d"]
