"""Rare classes: weights, thresholds, and probabilities that stay those of the data."""

import numpy as np
import pandas as pd
import pytest

from fcorr import FCorrClassifier
from fcorr._core import InvalidInputError
from fcorr.metrics import choose_threshold, lift_table
from tests.tables import QUICK


def draw(n, seed, names=("a", "b", "c", "d")):
    """Draw rows whose probabilities are known: a logistic truth with a kink, 6 % positive."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=names)
    X["group"] = rng.choice(["x", "y", "z"], n)
    logit = -3.2 + X.a - np.abs(X.b) + 0.7 * X.c * (X.c > 0) + 0.8 * (X.group == "z")
    probability = 1 / (1 + np.exp(-logit.to_numpy()))
    return X, (rng.uniform(size=n) < probability).astype(int), probability


X, Y, PROBABILITY = draw(3_000, 0)
WEIGHT = np.random.default_rng(1).choice([0.0, 1.0, 4.0], 3_000)


def fit(y=Y, weight=None, **options):
    options = {"head": (8,), "epochs": 3, "eval_set": None} | options
    eval_set = options.pop("eval_set")
    return FCorrClassifier(**QUICK | options).fit(X, y, weight, eval_set)


def scores(model, X=X):
    return model.predict_proba(X)[:, 1]


# Weights of classes


def test_balanced_weights_make_classes_weigh_the_same():
    model = fit(class_weight="balanced", weight=WEIGHT)
    of_class = np.bincount(Y, weights=WEIGHT) * model.class_weight_
    assert of_class[0] == pytest.approx(of_class[1])
    assert np.sum(WEIGHT * model.class_weight_[Y]) == pytest.approx(WEIGHT.sum())


def test_class_weight_is_a_sample_weight_of_the_loss():
    # Main effects are centred on the rows as they count in the data, not in the loss.
    papers = {"advanced": {"main_effects": False}}
    by_class = fit(class_weight={1: 5.0}, **papers)
    by_row = fit(weight=np.where(Y == 1, 5.0, 1.0), **papers)
    assert by_class.class_weight_.tolist() == [1.0, 5.0]
    assert by_class.history_.epochs == by_row.history_.epochs
    # They differ in what the probabilities are meant to be: the data's, or the weighted data's.
    assert scores(by_class).mean() == pytest.approx(Y.mean(), rel=1e-9)
    assert scores(by_row).mean() > 1.5 * Y.mean()


def test_rare_classes_take_more_rows_to_be_believed():
    """As many as it takes to know log-odds as well as those of a fair coin, of which 10 do."""
    p = Y.mean()
    assert fit().recipes_[0]["credibility"] == pytest.approx(10 * 0.25 / (p * (1 - p)))
    balanced = fit(class_weight="balanced")  # which changes the loss, not what rows can tell
    assert balanced.recipes_[0]["credibility"] == fit().recipes_[0]["credibility"]
    three = fit(np.arange(len(Y)) % 3)
    assert three.recipes_[0]["credibility"] == pytest.approx(10)


def test_validation_rows_have_the_same_class_weights():
    held_out, y, _ = draw(500, 5)
    y[:490] = 0  # other shares than in training
    model = fit(class_weight="balanced", eval_set=(held_out, y))
    measured = model.history_.epochs[-1].validation_loss
    model.balance_[:] = 0
    p, weight = scores(model, held_out), model.class_weight_[y]
    losses = -np.log(np.where(y == 1, p, 1 - p))
    assert measured == pytest.approx(np.average(losses, weights=weight), rel=1e-4)


def test_weights_of_several_classes():
    y = np.array(["few", "many", "most"])[np.where(PROBABILITY > 0.2, 0, 1 + (X.b > -0.5))]
    model = fit(y, class_weight={"few": 3})
    assert model.class_weight_.tolist() == [3.0, 1.0, 1.0]
    assert model.threshold_ is None
    np.testing.assert_array_equal(
        model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)]
    )


# Thresholds


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_threshold_is_chosen_on_the_training_rows(class_weight, weight):
    y = np.where(Y == 1, "honest", "fraud")  # sorted, "honest" is the second class
    options = {"class_weight": class_weight, "weight": weight, "epochs": 1}
    plain = fit(y, **options)
    counted = np.ones(len(y), bool) if weight is None else weight > 0
    by = {"sample_weight": None if weight is None else weight[counted]}
    assert plain.threshold_ == 0.5
    np.testing.assert_array_equal(plain.predict(X) == "honest", scores(plain) >= 0.5)
    for rule in ("f1", {"fpr": 0.05}, {"cost": (1, 20)}):
        model = fit(y, threshold=rule, **options)
        expected = choose_threshold(Y[counted], scores(model, X[counted]), rule=rule, **by)
        assert model.threshold_ == expected
        np.testing.assert_array_equal(model.predict(X) == "honest", scores(model) >= expected)
        np.testing.assert_array_equal(plain.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(("rule", "decision"), [({"fpr": 1.0}, 1), ({"cost": (1, 0)}, 0)])
def test_everybody_and_nobody(rule, decision):
    model = fit(threshold=rule)
    assert 0 <= model.threshold_ < 1.1  # finite, for JSON
    assert (model.predict(X) == decision).all()


# Calibration


def calibration_error(y, probability):
    rows = lift_table(y, probability).rows
    return sum(row.weight * abs(row.predicted - row.actual) for row in rows) / len(y)


@pytest.mark.parametrize(
    ("class_weight", "options"), [(None, {}), ("balanced", {"epochs": 4})], ids=str
)
def test_a_fit_is_calibrated_on_held_out_rows(class_weight, options):
    train_X, train_y, _ = draw(20_000, 10)
    test_X, test_y, truth = draw(20_000, 11)
    model = FCorrClassifier(n_members=1, class_weight=class_weight, random_state=0, **options)
    model.fit(train_X, train_y)
    predicted = model.predict_proba(test_X)[:, 1]
    assert predicted.mean() == pytest.approx(test_y.mean(), rel=0.05)
    # With 6 % positives, chance alone leaves an error of some 0.004 in 20,000 rows.
    assert calibration_error(test_y, predicted) < 0.012
    assert np.abs(predicted - truth).mean() < 0.02
    top = lift_table(test_y, predicted).rows[-1]
    assert top.predicted == pytest.approx(top.actual, rel=0.15)
    model.balance_[:] = 0  # class weights alone would distort
    distorted = calibration_error(test_y, model.predict_proba(test_X)[:, 1]) > 0.15
    assert distorted == (class_weight is not None)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        (
            {"threshold": "f1"},
            np.arange(3_000) % 3,
            r"threshold is for two classes, got 'f1' and 3 classes in y\. Leave it out",
        ),
        (
            {"class_weight": {2: 1.0}},
            pd.Series(Y, name="fraud"),
            r"class_weight must name classes of y \('fraud'\) \(0, 1\), got 2\. Correct it",
        ),
        (
            {"class_weight": {"1": 2.0}},
            Y,
            r"class_weight must name classes of y \(0, 1\), got '1'\. Correct it, in the type",
        ),
    ],
)
def test_bad_input(options, y, message):
    with pytest.raises(InvalidInputError, match=message):
        fit(y, **options)
