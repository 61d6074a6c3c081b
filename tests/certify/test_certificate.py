import json
import math

import numpy as np
import pytest

from fcorr.certify import Link, certify_model


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("size", [1e-9, 1e-3, 0.5, 3.0, 40.0])
def test_links_bound_the_change_of_predictions(size):
    rng = np.random.default_rng(0)
    low, high = -6.0, 4.0
    a = rng.uniform(low, high, 20_000)
    b = np.clip(a + rng.uniform(-size, size, a.size), low, high)
    half = min(size / 2, high)
    a[:2], b[:2] = [half, high], [-half, max(high - size, low)]
    kept = np.abs(a - b) <= size * (1 + 1e-9)
    a, b = a[kept], b[kept]
    for name, function in (("identity", np.asarray), ("sigmoid", sigmoid), ("exp", np.exp)):
        for offset in (0.0, -7.0):
            link = Link(name, scale=2.0, offset=offset)
            true = np.abs(2 * function(a + offset) - 2 * function(b + offset)).max()
            bound = link.largest_change([size], [low], [high])
            assert true <= bound * (1 + 1e-6) + 1e-15
        if size < 1:
            assert bound <= 1.5 * true + 1e-12


def test_softmax_bound_holds():
    rng = np.random.default_rng(0)
    for sizes in ([0.1, 0.3, 0.2], [2.0, 2.0, 0.0]):
        a = rng.normal(0, 2, (20_000, 3))
        b = a + rng.choice([-1, 1], (20_000, 3)) * sizes
        p, q = (np.exp(x) / np.exp(x).sum(1, keepdims=True) for x in (a, b))
        bound = Link("softmax").largest_change(sizes, [-9.0] * 3, [9.0] * 3)
        assert 0.5 * bound < np.abs(p - q).max() <= bound


def test_links_of_no_change_and_of_unbounded_scores():
    assert Link("exp").largest_change([0.0], [-math.inf], [math.inf]) == 0.0
    assert Link("exp").largest_change([1.0], [0.0], [1e6]) == math.inf
    assert Link("sigmoid").width([-math.inf], [math.inf]) == 1.0
    with pytest.raises(ValueError, match="link must be 'identity'"):
        Link("probit")
    with pytest.raises(ValueError, match="scale must be positive"):
        Link("exp", scale=0.0)


PROMISE = (
    "It is no statement about causes, about other columns that stand in for the sensitive ones, "
    "about differences between groups, or about compliance with any law."
)


def test_text_and_data_say_what_is_promised_and_no_more(lab):
    model = lab.make_model((3, 2, 4), 3)
    sample = np.r_[np.zeros(500), 0.2]
    certificate = certify_model(
        model, [0], ["race"], link=Link("sigmoid"), changes={"race": sample}, epsilon=0.1, effort=0
    )
    text = str(certificate)
    assert not certificate.exact
    assert certificate.features[0].prediction.vacuous
    assert certificate.features[0].prediction.value <= 1
    assert certificate.bound == certificate.features[0].prediction.value
    for phrase in (
        "flip of the sensitive column",
        "every category; every number",
        "race, between any two categories: prediction by at most",
        "(vacuous)",
        "Vacuous: the range of the outputs alone implies as much, so that nothing is promised",
        "1 of 501 sampled rows",
        PROMISE,
        "independent sample",
        "rounding",
    ):
        assert phrase in text
    assert "fair" not in text.lower()
    data = json.loads(json.dumps(certificate.to_dict(), allow_nan=False))
    assert data["exact"] is False
    assert data["bound"] == certificate.bound
    assert data["features"][0]["name"] == "race"
    assert data["features"][0]["population"]["n_above"] == 1
    assert data["assumptions"]
    assert PROMISE in data["scope"]


def test_each_feature_and_all_together_have_a_population(lab):
    model = lab.make_model((3, 2, 4), 3)
    changes = {"race": np.zeros(500), "all together": np.r_[np.zeros(500), 0.2]}
    certificate = certify_model(
        model,
        [0, 4],
        ["race", "age"],
        link=Link("sigmoid"),
        changes=changes,
        epsilon=0.0,
        effort=0,
        notes=["Age was flipped over a grid of 20 numbers."],
    )
    race, age = certificate.features
    assert race.population.n_above == 0
    assert age.population is None
    assert certificate.population == certificate.joint.population
    assert certificate.population.n_above == 1
    assert certificate.population.alpha > race.population.alpha
    text = str(certificate)
    assert "age, between any two numbers: prediction by at most" in text
    assert "all together, between any two combinations of values" in text
    assert "- Age was flipped over a grid of 20 numbers." in text
    assert certificate.bound == certificate.joint.prediction.value
    assert "1 of 501" in text


def test_some_features_exact(lab):
    model = lab.make_model((3, 2, 4), 3)
    model.collapse(0, 0.1)
    certificate = certify_model(model, [0, 4], ["race", "age"], link=Link("sigmoid"), effort=0)
    assert not certificate.exact
    assert certificate.bound > 0
    assert "race, between any two categories: none, not by one bit" in str(certificate)


def test_averages_are_exact_whatever_the_embeddings_are(lab):
    model = lab.make_model((3, 2, 4), 3, numeric_embedding="paper")
    certificate = certify_model(
        model, [0, 4], ["race", "age"], link=Link("sigmoid"), averaged=True, effort=0
    )
    assert certificate.exact
    assert certificate.averaged
    assert certificate.bound == 0.0
    assert certificate.joint.gap is None
    text = str(certificate)
    assert text.count("ensitive columns are not read; predictions are averages over a fixed") == 2
    assert "bit for bit" not in text
    assert PROMISE in text


def test_a_tiny_gap_is_not_vacuous(lab):
    model = lab.make_model((3, 2, 4), 5, gap=1e-9, rough=0.1)
    certificate = certify_model(model, [0], ["race"], link=Link("sigmoid"), effort=2**13)
    assert not certificate.exact
    assert not certificate.joint.prediction.vacuous
    assert 0 < certificate.joint.prediction.value < 0.01
    assert "all together" not in str(certificate)


def test_several_outputs(lab):
    model = lab.make_model((3, 2, 4), 3, n_outputs=3, gap=1e-8)
    certificate = certify_model(model, [0], ["race"], link=Link("softmax"), effort=0)
    assert 0 < certificate.joint.prediction.value < 1
    assert certificate.joint.prediction.trivial == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["race", "sex"]}, "names must hold one name"),
        ({"sensitive": [], "names": []}, "at least one"),
        ({"sensitive": [0, 1], "names": ["a", "a"]}, "all different"),
        ({"alpha": 0.0}, "alpha must lie between 0 and 1, both excluded, got 0.0"),
        ({"alpha": math.nan}, "alpha must lie between 0 and 1, both excluded, got nan"),
        ({"alpha": -0.1}, "got -0.1. Write 1 % as 0.01"),
        ({"epsilon": math.nan}, "epsilon must be a finite number that is not negative, got nan"),
        ({"epsilon": -1.0}, "0 stands for any change at all"),
        ({"epsilon": 0.1, "alpha": 0.1}, "at most one of alpha and epsilon"),
        ({"changes": {"sex": [0.0]}}, r"names \['race'\], got 'sex'"),
        ({"changes": {"all together": [0.0]}}, "got 'all together'"),
        ({"changes": {"race": [0.0]}, "confidence": 95}, "confidence"),
    ],
)
def test_arguments_are_checked_before_the_work(lab, options, message):
    model = lab.make_model((3, 2, 4), 3)
    arguments = {"sensitive": [0], "names": ["race"], "link": Link("sigmoid")} | options
    with pytest.raises(ValueError, match=message):
        certify_model(model, **arguments)
