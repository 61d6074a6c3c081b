"""scikit-learn's own checks, and its tools around the estimators."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs
from sklearn.ensemble import BaggingClassifier
from sklearn.inspection import PartialDependenceDisplay
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fcorr import FCorrClassifier, FCorrRegressor
from fcorr._core import InvalidInputError
from tests.tables import make_people, make_targets

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
    [FCorrClassifier(n_members=1, epochs=5), FCorrRegressor(n_members=1, epochs=5)],
    expected_failed_checks=lambda _: REASONS,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_features", [1, 2, 4])
def test_few_features_are_enough(n_features):
    X, y = make_blobs(n_samples=300, n_features=4, centers=3, random_state=0)
    X = X[:, :n_features]
    model = FCorrClassifier(n_members=1, random_state=0).fit(X, y)
    reached = LogisticRegression().fit(X, y).score(X, y)
    assert model.score(X, y) > reached - 0.02


def test_pipeline_with_set_output(mixed):
    X, y, _ = mixed
    for library in ("pandas", "polars"):
        scale = make_column_transformer(
            (StandardScaler(), ["age"]), remainder="passthrough", verbose_feature_names_out=False
        )
        pipeline = make_pipeline(scale, small(sensitive="sex")).set_output(transform=library)
        pipeline.fit(X, y)
        assert set(pipeline[-1].feature_names_in_) == set(X.columns)
        assert pipeline.predict_proba(X).shape == (200, 2)


def test_grid_search_over_the_weight_of_car(mixed):
    X, y, _ = mixed
    search = GridSearchCV(small(sensitive="sex"), {"car": [None, 10.0]}, cv=2).fit(X, y)
    assert search.best_params_["car"] in (None, 10.0)
    assert len(cross_val_score(search.best_estimator_, X, y, cv=2)) == 2


@pytest.fixture(scope="module")
def mixed():
    """Return a table of numbers, categories and text, an outcome, and a model exact in sex."""
    X = make_people()[["age", "job", "sex"]].astype({"job": "category"})
    y = np.where(make_targets(X)["two classes"], "yes", "no")
    return X, y, small(sensitive="sex").fit(X, y)


def small(**options):
    return FCorrClassifier(n_members=1, epochs=2, head=(4,), random_state=0, **options)


def test_bagging_takes_names_away_so_positions_serve(mixed):
    """A step that gives them back serves too: docs/scikit_learn.md."""
    X, y, _ = mixed
    message = "got 'sex'.*They came without names: pass positions"
    with pytest.raises(InvalidInputError, match=message):  # scikit-learn hands over an array
        BaggingClassifier(small(sensitive="sex"), n_estimators=2).fit(X, y)
    bag = BaggingClassifier(small(sensitive=2), n_estimators=2, random_state=0).fit(X, y)
    assert bag.feature_names_in_.tolist() == list(X.columns)
    assert [column.kind for column in bag.estimators_[0].schema_.columns] == [
        *("numeric", "categorical", "categorical"),
    ]
    named = FunctionTransformer(pd.DataFrame, kw_args={"columns": list(X.columns)})
    by_name = BaggingClassifier(
        make_pipeline(named, small(sensitive="sex")), n_estimators=2, random_state=0
    ).fit(X, y)
    flipped = X.assign(sex=X.sex.map({"f": "m", "m": "f"}))
    for each in (bag, by_name):
        np.testing.assert_array_equal(each.predict_proba(flipped), each.predict_proba(X))


def test_partial_dependence_of_a_mixed_table(mixed):
    X, _, model = mixed
    pytest.importorskip("matplotlib", reason="needs matplotlib, as in fcorr[plot]").use("Agg")
    display = PartialDependenceDisplay.from_estimator(
        model, X, ["age", "job", "sex"], categorical_features=["job", "sex"], grid_resolution=4
    )
    age, job, sex = (each["average"][0] for each in display.pd_results)
    assert (len(age), len(job)) == (4, 3)
    assert np.ptp(age) > 0
    assert sex[0] == sex[1]  # no flip changes a prediction
