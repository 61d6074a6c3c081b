"""A model beside the unconstrained one and the one with the column removed."""

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.metrics import log_loss, mean_poisson_deviance, roc_auc_score

from fcorr._core import InvalidInputError, UnseenCategoryWarning
from fcorr.metrics import (
    average_individual_fairness,
    decisions_flipped,
    demographic_parity_difference,
    equalized_odds_difference,
    flip_changes,
    flip_scores,
)
from paper.comparison import AVERAGED, EXACT, PLAIN, REMOVED, WITH_CAR, compare, hold_constant
from tests.tables import make_model


@pytest.fixture(scope="module")
def compared(people):
    model = make_model(sensitive="sex", random_state=3)
    return compare(model, *people, also=["car", "marginal"])


def test_models_differ_in_their_constraint_only(compared):
    assert [model.name for model in compared] == [PLAIN, WITH_CAR, EXACT, AVERAGED, REMOVED]
    assert compared.given == EXACT
    constraints = {
        PLAIN: (None, None),
        WITH_CAR: (None, 1e6),
        EXACT: ("adapt", 1e6),
        AVERAGED: ("marginal", 1e6),
    }
    for name, (invariance, car) in constraints.items():
        arguments = compared[name].estimator.get_params()
        assert (arguments["invariance"], arguments["car"]) == (invariance, car)
        assert arguments["epochs"] == 2
    assert {model.estimator.seed_ for model in compared} == {3}


def test_numbers_are_those_of_an_independent_computation(compared, people):
    X, y = people[1]
    for name in (PLAIN, EXACT):
        model = compared[name].estimator
        scores = model.predict_proba(X)[:, 1]
        flips = flip_scores(model.predict_proba, X, "sex")
        decisions = (scores >= 0.5).astype(int)
        metrics = compared.metrics[name]
        assert metrics["AUROC"] == pytest.approx(roc_auc_score(y, scores))
        assert metrics["AvgIF"] == average_individual_fairness(flips)
        assert metrics["largest change"] == flip_changes(flips)["max"]
        assert metrics["decisions flipped"] == decisions_flipped(flips)
        groups = {"sensitive_features": X.sex}
        assert metrics["DPD"] == demographic_parity_difference(None, decisions, **groups)
        assert metrics["EqOdd"] == equalized_odds_difference(y, decisions, **groups)
        certificate = model.certificate(X)
        assert metrics["found by search"] == certificate.search
        assert metrics["bound for 99 %"] == certificate.population.epsilon


def test_exact_and_removed_columns_change_nothing_while_the_plain_model_does(compared):
    changes = ("largest change", "found by search", "bound for 99 %")
    assert not compared[PLAIN].measured.exact
    assert all(compared[PLAIN].metrics[name] > 1e-4 for name in changes)
    for model in (EXACT, AVERAGED, REMOVED):
        assert compared[model].measured.exact
        assert [compared[model].metrics[name] for name in changes] == [0, 0, 0]
    # The removed column is one value, and the layout stays.
    removed, exact = (compared[name].estimator.schema_ for name in (REMOVED, EXACT))
    assert set(removed.feature_names) == set(exact.feature_names)
    assert removed["sex"].categories == ("removed",)
    assert removed.sensitive == ()


def test_a_fitted_model_is_not_fitted_again(people, classifier):
    model = classifier(invariance=None, car=None, random_state=None).fit(*people[0])
    weights = {name: w.clone() for name, w in model.model_.state_dict().items()}
    comparison = compare(model, *people)
    assert [compared.name for compared in comparison] == [PLAIN, REMOVED]
    assert comparison[PLAIN].estimator is model
    assert all((weights[n] == w).all() for n, w in model.model_.state_dict().items())
    assert comparison[PLAIN].seconds is None
    assert comparison[REMOVED].seconds > 0
    assert comparison[REMOVED].estimator.seed_ == model.seed_


def test_an_unfitted_model_stays_unfitted_and_its_seed_is_shared(people, classifier):
    model = classifier(random_state=None)
    comparison = compare(model, *people)
    assert comparison.given == EXACT
    assert len({compared.estimator.seed_ for compared in comparison}) == 1
    assert not hasattr(model, "model_")


def test_text_and_plain_data(compared):
    text = str(compared)
    lines = text.splitlines()
    assert lines[0].split("  ")[-1] == REMOVED
    assert any(line.startswith("AvgIF ") for line in lines)
    assert "all other columns left as they are" in lines[-1]
    data = json.loads(json.dumps(compared.to_dict(), allow_nan=False))
    assert data["given"] == EXACT
    assert data["models"][PLAIN]["performance"]["AUROC"] == compared[PLAIN].metrics["AUROC"]
    assert data["models"][EXACT]["exact"] is True
    assert data["models"][PLAIN]["search"] == compared[PLAIN].metrics["found by search"]
    html = compared._repr_html_()
    assert html.count("<tr>") == len(compared.table().rows) + 1
    assert "all other columns left as they are" in html


@pytest.mark.parametrize("sensitive", [["age"], ["age", "children", "sex"]])
def test_numeric_columns_and_several_of_them(people, classifier, sensitive):
    comparison = compare(classifier(sensitive=sensitive), *people)
    assert comparison[PLAIN].metrics["largest change"] > 0
    assert comparison[REMOVED].metrics["largest change"] == 0
    removed, plain = (comparison[name].estimator.schema_ for name in (REMOVED, PLAIN))
    assert len(removed.numeric) == len(plain.numeric)
    joint = [] if len(sensitive) == 1 else ["age × children × sex"]
    assert list(comparison[PLAIN].measured.groups) == [*sensitive, *joint]


def test_intersections_are_those_of_the_metrics(people, classifier):
    model = classifier(sensitive=["sex", "race"]).fit(*people[0])
    comparison = compare(model, *people)
    X, _ = people[1]
    decisions = model.predict(X)
    expected = demographic_parity_difference(None, decisions, sensitive_features=X[["sex", "race"]])
    assert comparison[EXACT].measured.groups["sex × race"]["DPD"] == expected
    metrics = comparison.metrics[EXACT]
    assert metrics["DPD, sex × race"] == expected
    assert metrics["DPD, race"] == demographic_parity_difference(
        None, decisions, sensitive_features=X.race
    )


def test_rows_of_weight_0_are_not_there(people, classifier):
    more, fewer = [], []
    for X, y in people:
        weight = np.where(X.age > 35, 1.0, 0.0)
        spoilt = X.assign(sex=X.sex.where(weight > 0, "x"), age=X.age.where(weight > 0, np.inf))
        more.append((spoilt, y, weight))
        fewer.append(tuple(column[weight > 0] for column in (X, y, weight)))
    first, second = (compare(classifier(), *rows) for rows in (more, fewer))
    for a, b in zip(first, second, strict=True):
        assert (a.name, a.measured) == (b.name, b.measured)


def test_several_classes(people, classifier):
    (X, y), (test_X, test_y) = people
    label = np.array(["no", "yes", "maybe"])
    y = label[y + (X.children == 0)]
    test_y = label[test_y + (test_X.children == 0)]
    model = classifier(invariance=None).fit(X, y)
    metrics = compare(model, (X, y), (test_X, test_y))[WITH_CAR].metrics
    probabilities = model.predict_proba(test_X)
    assert metrics["log loss"] == pytest.approx(log_loss(test_y, probabilities))
    assert metrics["accuracy"] == pytest.approx(np.mean(model.predict(test_X) == test_y))
    both = [model.predict_proba(test_X.assign(sex=sex)) for sex in "fm"]
    assert metrics["largest change"] == pytest.approx(np.abs(both[0] - both[1]).max())
    flipped = both[0].argmax(axis=1) != both[1].argmax(axis=1)
    assert metrics["decisions flipped"] == pytest.approx(flipped.mean())
    selected = [(model.predict(test_X) == name).astype(int) for name in label]
    rates = [
        demographic_parity_difference(None, chosen, sensitive_features=test_X.sex)
        for chosen in selected
    ]
    assert metrics["DPD"] == pytest.approx(max(rates))


def test_regression_per_unit_of_exposure(policies, regressor):
    model = regressor(objective="poisson", exposure="years").fit(*policies[0])
    X, y = policies[1]
    weight = np.linspace(1, 2, len(X))
    metrics = compare(model, policies[0], (X, y, weight))[EXACT].metrics
    rate, by = model.predict(X) / X.years, X.years * weight
    deviance = mean_poisson_deviance(y / X.years, rate, sample_weight=by)
    assert metrics["deviance"] == pytest.approx(deviance)
    assert metrics["MAE"] == pytest.approx(np.average(np.abs(y / X.years - rate), weights=by))
    is_f = X.sex == "f"
    means = [np.average(rate[rows], weights=by[rows]) for rows in (is_f, ~is_f)]
    assert metrics["DPD"] == pytest.approx(abs(means[0] - means[1]))
    actual = [np.average((y / X.years)[rows], weights=by[rows]) for rows in (is_f, ~is_f)]
    ratios = np.array(actual) / means
    assert metrics["A/E gap"] == pytest.approx(np.ptp(ratios))


def test_what_cannot_be_estimated_is_noted_not_warned_of(people, classifier):
    (X, y), (test_X, test_y) = people
    rare = test_X.assign(race=["z"] + ["a", "b"] * 159 + ["c"])
    with pytest.warns(UnseenCategoryWarning) as warned:
        comparison = compare(classifier(sensitive="race"), (X, y), (rare, test_y))
    texts = [str(warning.message) for warning in warned]
    assert len(texts) == len(set(texts))  # told once, not for each pass
    assert any("z" in note and "n=1" in note for note in comparison.notes)
    assert all(note in str(comparison) for note in comparison.notes)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ({"sensitive": None}, {}, "sensitive must name columns of X, got None"),
        ({}, {"also": ["margnal"]}, "got 'margnal'. Did you mean 'marginal'?"),
        ({"car": None}, {"also": ["car"]}, "also='car' needs a λ to train with"),
        ({}, {"test": None}, "test must be (X, y) or (X, y, sample_weight), got NoneType"),
        ({}, {"test": lambda X, y: (X, y * math.nan)}, "test: y must not hold missing values"),
        ({}, {"test": lambda X, y: (X, y + 1)}, "test: y must hold classes of the training table"),
    ],
)
def test_bad_input(people, classifier, arguments, options, message):
    train, test = people
    if "test" in options:
        test = options["test"] and options["test"](*test)
    with pytest.raises(InvalidInputError) as caught:
        compare(classifier(**arguments), train, test, also=options.get("also", ()))
    assert message in str(caught.value)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_are_held_constant_in_any_table(make):
    table = make({"sex": ["f", "m"], "age": [1.5, 2.5], "job": ["a", "b"]})
    held = hold_constant(table, {"sex": "categorical", "age": "numeric"})
    assert type(held) is type(table)
    expected = make({"sex": ["removed"] * 2, "age": [0.0, 0.0], "job": ["a", "b"]})
    assert held.equals(expected)
