"""Certificates: what is said of exact models, of others, and of a sample."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
import torch

from fcorr import FCorrClassifier, FCorrRegressor, InvalidInputError, load
from fcorr.certify import (
    ALL_TOGETHER,
    MAX_FLIPS,
    Link,
    certify_model,
    is_exact,
    largest_change,
    list_flips,
    search_change,
)
from fcorr.metrics import population_bound
from paper.baselines.car import exchange_rows
from tests.tables import QUICK, make_people, make_targets

SIGMOID = Link("sigmoid")
each_kind = pytest.mark.parametrize("make", ["make_model", "make_views", "make_pack"])


# The flips


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        (Link("identity"), [[-1.0, 2.0]]),
        (Link("identity", (1.0, 0.5), 3.0), [[0.0, 7.5]]),
        (Link("exp", (1.0, -2.0), 2.0), [[2.0, 2.0]]),
        (Link("sigmoid", (1.0,)), [[0.5, 1 / (1 + math.exp(-3))]]),
        (Link("softmax", (3.0, 0.0)), [[0.5, 0.5]]),
    ],
)
def test_predictions_come_from_outputs(link, expected):
    found = link(torch.tensor([[-1.0, 2.0]]))
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


def test_all_together_are_the_combinations_of_each(lab):
    model = lab.make_model()
    flips = list_flips(model, [0, 2, 4], ["a", "b", "age"], lab.values_of(model))
    assert [len(flip) for flip in flips.values()] == [3, 4, 9, 3 * 4 * 9]
    joint = flips[ALL_TOGETHER]
    assert len(joint.values.unique(dim=0)) == 108
    for name in ("a", "b", "age"):
        (feature,) = flips[name].features
        assert set(flips[name].embed(model)[:, 0, 0].tolist()) == set(
            joint.embed(model)[:, 0, joint.features.index(feature)].tolist()
        )


def test_the_most_combinations_are_all_tried_and_of_more_always_the_same(lab):
    model = lab.make_model((64, 64, 300), 1)
    flips = list_flips(model, [0, 1], ["a", "b"], lab.values_of(model))
    assert len(flips[ALL_TOGETHER].values.unique(dim=0)) == 64 * 64 == MAX_FLIPS
    flips = list_flips(model, [0, 2], ["a", "c"], lab.values_of(model))
    assert len(flips["c"]) == 300  # of categories none is left out
    together = flips[ALL_TOGETHER].values
    assert 0.8 * MAX_FLIPS < len(together.unique(dim=0)) == len(together) < MAX_FLIPS
    assert together[:3].tolist() == [[0, 13], [0, 18], [0, 24]]


@each_kind
@pytest.mark.parametrize("numbers", [256, 600])
def test_many_numbers_are_thinned_and_many_combinations_drawn(lab, make, numbers):
    """To 256 of one feature and 32 of several, in the order of what they are embedded as."""
    model = getattr(lab, make)(learn_missing=True)
    values, missing = lab.values_of(model, numbers=numbers - 1), torch.tensor([torch.nan])
    values[3:] = [torch.cat([each, missing]) for each in values[3:]]
    views = getattr(model, "main_views", [0])
    with torch.no_grad():
        flips = list_flips(model, [3, 4, 5], ["x", "y", "z"], values)
        x_num = values[4][:, None].expand(-1, 3)
        everywhere = model.embed(torch.zeros(numbers, 3).long(), x_num)[:, views, 4].mean(1)
        tried = flips["y"].embed(model)[:, views, 0].mean(1)
        together = flips[ALL_TOGETHER].embed(model)[:, views, 1].mean(1)
    assert len(flips["x"]) == len(tried) == 256
    assert len(together.unique()) == 32
    if numbers == 256:
        np.testing.assert_array_equal(flips["y"].values[:, 0], values[4])
    elif make == "make_model":  # every second or third, by rank
        ranks = torch.searchsorted(everywhere[:-1].sort().values, tried[:-1])
        assert (ranks[0], ranks[-1], set(ranks.diff().tolist())) == (0, 598, {2, 3})
    for each in (tried, together):
        assert (each.min(), each.max()) == (everywhere.min(), everywhere.max())
    for each, column in ((flips["y"], 0), (flips[ALL_TOGETHER], 1)):
        assert each.values[:, column].isnan().any()  # a missing number is never left out


# The search


@pytest.mark.usefixtures("good_search")
@pytest.mark.parametrize("link", [SIGMOID, Link("exp", (0.5,), 3.0), Link("identity", scale=2.0)])
@each_kind
def test_the_search_comes_near_the_largest_of_all_changes(lab, link, make):
    """Against every row that there is."""
    model = getattr(lab, make)((2, 3, 4, 5), 0)
    rows = torch.tensor(list(itertools.product(range(3), range(4), range(5))))
    scores = [
        link(model.score(torch.cat([torch.full((60, 1), c), rows], 1), torch.zeros(60, 0)))
        for c in (0, 1)
    ]
    largest = float((scores[0] - scores[1]).abs().max())
    values = lab.values_of(model)
    found = search_change(model, list_flips(model, [0], ["a"], values), link, values)["a"]
    assert found <= largest * (1 + 1e-12)
    assert found == pytest.approx(largest, rel=1e-4)


@each_kind
def test_largest_change_is_that_of_the_scores(lab, make):
    model = getattr(lab, make)()
    flips = list_flips(model, [0, 4], ["a", "x"], lab.values_of(model))
    codes, numbers = lab.random_inputs(model, 30)
    for flip in flips.values():
        scored = [SIGMOID(model.score(codes, numbers))]
        scored += [SIGMOID(model.score(*each)) for each in exchange_rows(flip, codes, numbers)]
        expected = (torch.stack(scored).amax(0) - torch.stack(scored).amin(0)).amax(1)
        found = largest_change(model, flip, SIGMOID, codes, numbers)
        assert torch.equal(found, expected)
        assert (found > 0).all()


@pytest.mark.usefixtures("good_search")
def test_an_additive_feature_changes_the_output_by_its_main_effect(lab):
    """Whatever the other features hold: the search has nothing to find beyond it."""
    model = lab.make_views(additive=[0])
    values = lab.values_of(model)
    found = search_change(model, list_flips(model, [0], ["a"], values), Link("identity"), values)
    effects = model.views.values().detach()[:3, 0]
    assert found["a"] == pytest.approx(float(effects.max() - effects.min()), rel=1e-5)


@pytest.mark.usefixtures("good_search")
@pytest.mark.parametrize(
    "options", [{}, {"residual": True, "n_layers": 2, "learn_missing": True, "n_outputs": 3}]
)
def test_the_search_finds_more_than_random_rows_and_always_the_same(lab, options):
    model = lab.make_model((3, 2, 4), 8, seed=1, **options)
    link = Link("softmax") if "n_outputs" in options else SIGMOID
    values = lab.values_of(model)
    flips = list_flips(model, [0, 4], ["a", "age"], values)
    found = search_change(model, flips, link, values)
    assert found == search_change(model, flips, link, values)
    assert found[ALL_TOGETHER] >= max(found["a"], found["age"])
    x_cat, x_num = lab.random_inputs(model, 300)
    with torch.no_grad():
        predicted = [
            link(model(torch.cat([torch.full((300, 1), c), x_cat[:, 1:]], 1), x_num))
            for c in range(3)
        ]
    assert found["a"] > 1.2 * float((torch.stack(predicted).amax(0) - predicted[0]).abs().max())


def test_a_search_finds_the_same_in_every_version(lab, monkeypatch):
    """Else the certificate of a model could not be repeated: change these numbers knowingly."""
    monkeypatch.setattr("fcorr.certify._N_STEPS", 6)
    model = lab.make_model((3, 2, 4), 12, seed=1)
    values = lab.values_of(model)
    values[4] = values[4][:3]
    flips = list_flips(model, [0, 4], ["a", "age"], values)
    found = search_change(model, flips, Link("identity"), values)
    expected = {"a": 0.0960035, "age": 0.0871272, ALL_TOGETHER: 0.0982725}
    assert found == pytest.approx(expected, rel=1e-5)


# The certificate of a network


SCOPE = (
    "It is no statement about causes, about other columns that stand in for the sensitive ones, "
    "about differences between groups, or about compliance with any law."
)


WEIGHTS = "The model computes what its weights say, and they are not changed afterwards."
NO_PROOF = (
    "A search is no proof: a change of that size occurs for some input, which need not be a likely "
    "one, and a larger one may."
)
RANGE = "Only numbers in the range of the training table were tried."
AGES = "'age' was flipped to 8 numbers from -2 to 1.5, and to a missing one."
NUMBERS = (
    "Numbers were {}; to_dict() lists them. Nothing is said of other numbers: the prediction "
    "between two of these need not lie between theirs."
)
AT_KNOTS = NUMBERS.format("knots of shape functions and evenly between them")
TOGETHER = "Together they were flipped to {} of these values, and each by itself to all of its own."
SAMPLE = (
    "The sampled rows are an independent sample of the population and had no part in training; the "
    "population does not drift."
)


def certify(lab, model, names, numbers=9, **options):
    """The certificate of a model of which the first feature, or also the fifth, is sensitive."""
    values = lab.values_of(model, numbers)
    return certify_model(model, [0, 4][: len(names)], names, link=SIGMOID, values=values, **options)


def test_text_and_data_say_what_is_known_and_no_more(lab):
    model = lab.make_model()
    sample = {"race": np.r_[np.zeros(500), 2.0]}
    certificate = certify(lab, model, ["race"], changes=sample, epsilon=0.1)
    assert not certificate.exact
    assert certificate.joint is certificate.features[0]
    assert certificate.search == 2.0  # a sampled row shows more than the search
    assert certificate.population.n_above == 1
    with pytest.raises(AttributeError):  # nobody mends it afterwards
        certificate.exact = True
    *lines, scope = str(certificate).splitlines()
    assert lines == [
        "Invariance to a flip of the sensitive columns",
        "Not exact: a flip of the sensitive columns can change a prediction.",
        "The largest change of a prediction that a search over all inputs found; the worst case "
        "may be larger:",
        "- race: 2",
        "For the population, judged by a sample, and flips as named below:",
        f"- race: {certificate.population}",
        "This rests on:",
        *(f"- {assumption}" for assumption in (WEIGHTS, NO_PROOF, SAMPLE)),
    ]
    assert scope.endswith(SCOPE)
    assert "fair" not in str(certificate).lower()
    data = json.loads(json.dumps(certificate.to_dict(), allow_nan=False))
    assert (data["exact"], data["search"], data["features"][0]["name"]) == (False, 2.0, "race")
    assert data["features"][0]["population"]["n_above"] == 1
    assert SCOPE in data["scope"]
    html = certificate._repr_html_()
    assert html.startswith("<table><caption>Not exact")
    assert "<td>race</td><td>2</td><td>With 0.95 confidence" in html


def test_all_together_is_never_less_than_one_of_its_parts(lab):
    model = lab.make_model()
    changes = {"race": np.r_[np.zeros(500), 0.9], "age": np.zeros(501), ALL_TOGETHER: np.zeros(501)}
    certificate = certify(lab, model, ["race", "age"], changes=changes, epsilon=0.0)
    race, age = certificate.features
    assert certificate.search == race.search == 0.9 > age.search > 0
    assert race.population == certificate.population
    assert age.population.n_above == 0
    assert "flipped to all 27 combinations of 3 × 9 of these values, and each by itself" in str(
        certificate
    )


PAPER = {"numeric_embedding": "paper"}


@pytest.mark.parametrize(
    ("options", "names", "numbers", "collapsed", "expected"),
    [
        ({}, ["race"], 9, [], []),
        (PAPER, ["race"], 9, [], [RANGE]),
        (PAPER | {"n_numeric": 0}, ["race"], 9, [], []),
        ({}, ["race", "age"], 9, [], [AGES, AT_KNOTS, "all 27 combinations of 3 × 9"]),
        ({}, ["race", "age"], 9, [4], ["all 27 combinations of 3 × 9"]),
        (
            *(PAPER, ["race", "age"], 40, [0]),
            [
                RANGE,
                "'age' was flipped to 39 numbers from -2 to 1.89744, and to a missing one.",
                NUMBERS.format("evenly spaced"),
                "all 96 combinations of 3 × 32",
            ],
        ),
    ],
)
def test_a_certificate_says_what_it_rests_on(lab, options, names, numbers, collapsed, expected):
    model = lab.make_model(**options)
    for feature in collapsed:
        model.collapse(feature, 0.1)
    found = certify(lab, model, names, numbers).assumptions
    expected = [TOGETHER.format(each) if "combin" in each else each for each in expected]
    assert found == (WEIGHTS, NO_PROOF, *expected)


def test_some_features_exact(lab):
    model = lab.make_model()
    model.collapse(0, 0.1)
    certificate = certify(lab, model, ["race", "age"])
    assert not certificate.exact
    assert [flip.exact for flip in certificate.features] == [True, False]
    assert certificate.features[0].search == 0 < certificate.search
    assert "- race: none, not by one bit" in str(certificate)
    assert "No rows were given: nothing is said about the population." in str(certificate)
    assert certificate.features[0].values == ()
    assert certificate.features[1].values == tuple(lab.values_of(model)[4].tolist())
    assert not certificate.features[1].rounded
    with torch.no_grad():
        model.numeric.varying(1).fill_(1e-12)
        model.numeric.constant(1).fill_(0.3)
    certificate = certify(lab, model, ["race", "age"])
    rounded = [flip.rounded for flip in (*certificate.features, certificate.joint)]
    assert rounded == [False, True, True]
    assert "only because they round to the same number" in str(certificate)


@pytest.mark.parametrize(
    ("make", "averaged"),
    [("make_model", True), *((make, False) for make in ("make_model", "make_views", "make_pack"))],
)
def test_exact_models(lab, make, averaged):
    model = getattr(lab, make)(n_layers=2, residual=True)
    for feature in () if averaged else (0, 4):
        assert not certify(lab, model, ["race", "age"]).exact
        for member in model.members:
            member.collapse(feature)
    certificate = certify(lab, model, ["race", "age"], averaged=averaged)
    assert certificate.exact
    assert certificate.averaged == averaged
    assert certificate.search == certificate.joint.search == 0
    text = str(certificate)
    assert ("averages over a fixed list" in text) == averaged
    assert ("bit for bit" in text) == (not averaged)
    embedded = (
        "A sensitive column reaches the model through its embedding alone, which is the same "
        "number for all its values; equal inputs give equal outputs."
    )
    assert certificate.assumptions == ((WEIGHTS,) if averaged else (WEIGHTS, embedded))
    assert "search" not in text
    assert SCOPE in text


# The certificate of an estimator

X = make_people(600).drop(columns="years")
TARGETS = make_targets(X)
Y = TARGETS["two classes"]
SMALL = QUICK | {"head": (8,), "epochs": 5}


@pytest.mark.parametrize("invariance", ["adapt", "marginal"])
def test_exact_estimators_are_certified(invariance, tmp_path):
    model = FCorrClassifier(**SMALL, sensitive=["sex", "age"], invariance=invariance).fit(X, Y)
    model.save(tmp_path / "model.safetensors")
    for each in (model, load(tmp_path / "model.safetensors")):
        for certificate in (each.certificate(), each.certificate(X.drop(columns="sex"))):
            assert certificate.exact
            assert certificate.search == 0.0
        assert certificate.population.epsilon == 0.0


def test_an_estimator_whose_weights_were_changed_is_not_exact(tmp_path):
    """The digest of its file is right: what is refused is the claim to be exact."""
    options = {"n_members": 2, "advanced": {"missing_numeric": "category"}}
    model = FCorrClassifier(**SMALL | options, sensitive=["sex", "age"])
    model.fit(X.assign(age=X.age.mask(X.age > 55)), Y)
    for part in ("table", "steps", "missing"):
        assert model.certificate().exact
        held = getattr(model.model_.members[1].views, part)
        with torch.no_grad():
            held[0, -1] = 1e-30
        assert model.exact_  # it was, when the fit was over
        assert not model.certificate(X).exact
        model.save(tmp_path / "wrong")
        with pytest.raises(ValueError, match="said to be exactly invariant, but its weights tell"):
            load(tmp_path / "wrong")
        with torch.no_grad():
            held[0, -1] = 0.0


@pytest.mark.usefixtures("good_search")
def test_what_is_said_of_other_estimators():
    model = FCorrClassifier(**SMALL, sensitive=["sex", "age"], car=1e3, invariance=None).fit(X, Y)
    certificate = model.certificate(X, alpha=0.05)
    assert not certificate.exact
    changes = {}
    for name, values in {
        "sex": ["f", "m"],
        "age": np.linspace(X.age.min(), X.age.max(), 99),
    }.items():
        scored = [model.predict_proba(X.assign(**{name: v}))[:, 1] for v in values]
        changes[name] = np.ptp([model.predict_proba(X)[:, 1], *scored], axis=0)
    for flip in certificate.features:
        assert flip.search > 0.95 * changes[flip.name].max()
        # The 600 rows as a sample: an order statistic of the largest changes.
        at = np.searchsorted(np.sort(changes[flip.name]), flip.population.epsilon - 1e-6)
        assert 560 < at < 600
    joint = certificate.joint.population
    assert joint.epsilon >= max(flip.population.epsilon for flip in certificate.features)
    without_rows = model.certificate()
    assert without_rows.population is None
    assert 0 < without_rows.search <= certificate.search


def test_the_population_statement_holds_between_two_knots():
    """Predictions rise and fall again between the ends: these, or nine values, see too little."""
    rng = np.random.default_rng(0)
    age, income = rng.uniform(20, 80, 600), rng.lognormal(size=600)
    job, z = rng.choice(list("abc"), 600), rng.normal(size=600)
    table = pd.DataFrame({"age": age, "income": income, "job": job, "z": z})
    y = ((np.abs(age - 50) < 12) + 0.3 * rng.normal(size=600) + 0.2 * z > 0.5).astype(int)
    settings = {"n_members": 1, "head": (32, 32), "epochs": 60, "dropout": 0.0, "random_state": 0}
    settings |= {"sensitive": "age", "invariance": None, "car": None}
    settings["advanced"] = {"n_knots": 2, "main_effects": False, "beta2": 0.95, "batch_size": 32}
    model = FCorrClassifier(**settings).fit(table, y)
    ages = np.linspace(age.min(), age.max(), 97)
    scored = np.array([model.predict_proba(table.assign(age=each))[:, 1] for each in ages])
    changes = np.ptp(scored, axis=0)

    def share_above(bound):
        return (changes > bound.epsilon).mean()

    assert share_above(model.certificate(table, alpha=0.05).population) <= 0.05
    ends, nine = (np.ptp(scored[::step], axis=0) for step in (96, 12))
    assert share_above(population_bound(ends, alpha=0.05)) > 0.9
    assert share_above(population_bound(nine, alpha=0.05)) > 0.05


def test_a_certificate_says_which_values_it_covers(monkeypatch):
    for name, value in {"_N_STEPS": 1, "_N_FOUND": 2}.items():  # rows, with 4,096 flips of each
        monkeypatch.setattr(f"fcorr.certify.{name}", value)
    table = X.assign(
        grade=pd.Series(["low", "mid", "high"] * 200),
        day=pd.Series(pd.date_range("2020-01-01", periods=600)),
    )
    model = FCorrClassifier(
        **SMALL | {"epochs": 1},
        sensitive=["age", "sex", "grade", "day"],
        invariance=None,
        kinds={"grade": ["low", "mid", "high"]},
    ).fit(table, Y)
    certificate = model.certificate(table[:4])
    values = {flip.name: flip.values for flip in certificate.features}
    assert values["sex"] == ("f", "m")
    *ages, mean = values["age"]
    assert (min(ages), max(ages)) == pytest.approx((X.age.min(), X.age.max()), abs=1e-4)
    assert mean == pytest.approx(X.age.mean(), abs=1e-4)
    assert 128 < len(ages) <= 255
    knots = model.model_.knots.knots[0] * model.schema_["age"].scale + model.schema_["age"].mean
    gaps = np.abs(np.subtract.outer(knots[knots.isfinite()].numpy(), ages))
    assert gaps.min(1).max() < 1e-4  # every knot is among them
    # A place in an order and a part of a date cannot lie between two whole numbers.
    assert values["grade"] == (0.0, 1.0, 2.0, 1.0)
    assert values["day.month"][:-1] == tuple(range(1, 13))
    assert values["day.year"][:-1] == (2020, 2021)
    assert all(day.is_integer() for day in values["day.days"][:-1])
    for phrase in (
        f"'age' was flipped to {len(ages)} numbers from {min(ages):g} to {max(ages):g}, and to a "
        "missing one.",
        "'day.month' was flipped to 12 numbers from 1 to 12, and",
        ", drawn at random, of the",
    ):
        assert phrase in str(certificate)
    assert AT_KNOTS in certificate._repr_html_()
    data = json.loads(json.dumps(certificate.to_dict(), allow_nan=False))
    assert data["features"][1]["values"] == list(values["age"])


def test_weights_that_round_to_one_number_are_not_called_exact(tmp_path):
    settings = SMALL | {"sensitive": ["sex", "age"], "invariance": None, "car": 1e8}
    model = FCorrClassifier(**settings).fit(X, Y)
    network = model.model_
    with torch.no_grad():  # as a very large λ may leave them: tiny, and not 0
        sex, (steps, *_) = network.views.parameters_of(0)[0], network.views.parameters_of(2)
        sex.fill_(0.3)
        steps.fill_(1e-12)
        steps[0] = 0.3
    model.save(tmp_path / "model.safetensors")
    for each in (model, load(tmp_path / "model.safetensors")):
        assert not each.exact_
        assert not is_exact(each.model_, [0])
        with pytest.raises(InvalidInputError, match=r"'sex' \(sensitive\) is missing"):
            each.predict(X.drop(columns="sex"))  # it still reads the column
        certificate = each.certificate(X)
        assert not certificate.exact
        assert [flip.rounded for flip in (*certificate.features, certificate.joint)] == [True] * 3
        assert certificate.search == certificate.population.epsilon == 0
        assert (
            "Not exact: the weights tell no sensitive values apart, but only because they round to "
            "the same number. Retraining, or another processor, need not repeat it.\n"
        ) in str(certificate)
        assert "- sex: 0 (by rounding)\n" in str(certificate)
        assert "<td>sex</td><td>0 (by rounding)</td>" in certificate._repr_html_()


@pytest.mark.parametrize(
    "case", ["multi-class", "mse", "poisson", "paper embedding", "missing numbers"]
)
def test_certificates_of_every_kind_of_prediction(case):
    settings = SMALL | {"sensitive": "job", "car": 1.0, "invariance": None}
    table = X.assign(age=X.age.mask(X.age > 55)) if case == "missing numbers" else X
    if case == "multi-class":
        model = FCorrClassifier(**settings).fit(X, TARGETS["three classes"])
        score = model.predict_proba
    elif case == "poisson":
        exposed = {"objective": "poisson", "exposure": "income"}
        model = FCorrRegressor(**settings, **exposed).fit(X, TARGETS["poisson"])
        score = model.predict_rate
    else:
        advanced = {"paper embedding": {"numeric_embedding": "paper", "main_effects": False}}
        advanced["missing numbers"] = {"missing_numeric": "category"}
        model = FCorrRegressor(**settings, advanced=advanced.get(case)).fit(table, TARGETS["mse"])
        score = model.predict
    certificate = model.certificate(table, epsilon=0.01)
    changes = np.ptp([score(table.assign(job=job)) for job in X.job.unique()], axis=0)
    changes = changes.reshape(len(X), -1).max(axis=1)
    assert certificate.population.n_above == (changes > 0.01).sum()
    assert certificate.search >= changes.max() * (1 - 1e-6)
    only = "Only numbers in the range of the training table were tried."
    assert (only in certificate.assumptions) == (case == "paper embedding")


BAD_QUESTIONS = [
    ({"epsilon": -1.0}, "epsilon must be a finite number.* got -1.0"),
    ({"epsilon": math.nan}, "epsilon must be a finite number.* got nan"),
    ({"alpha": 0.0}, r"alpha must lie between 0 and 1, .*got 0.0\. Write 1 % as 0.01"),
    ({"alpha": 0.1, "epsilon": 0.1}, "one of epsilon and alpha"),
    ({"confidence": 1.0}, "confidence"),
]


def test_bad_questions():
    model = FCorrClassifier(**SMALL | {"epochs": 1}, sensitive="sex").fit(X, Y)
    for (question, message), rows in itertools.product(BAD_QUESTIONS, (None, X)):
        with pytest.raises(InvalidInputError, match=message):
            model.certificate(rows, **question)
    with pytest.raises(InvalidInputError, match="this model was fitted without any"):
        model.set_params(sensitive=None).fit(X, Y).certificate()
