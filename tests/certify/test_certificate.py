import json
import math

import numpy as np
import pytest

from fcorr.certify import Domain, Link, certify_model


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


def test_text_and_data_say_what_is_promised_and_no_more(lab):
    model = lab.make_model((3, 2, 4), 3)
    sample = np.r_[np.zeros(500), 0.2]
    certificate = certify_model(
        model, [0], ["race"], link=Link("sigmoid"), changes=sample, epsilon=0.1, effort=0
    )
    text = str(certificate)
    assert not certificate.exact
    assert certificate.features[0].prediction.vacuous
    assert certificate.features[0].prediction.value <= 1
    for phrase in (
        "flip of the sensitive column",
        "every category; every number",
        "race: prediction",
        "vacuous",
        "1 of 501 sampled rows",
        "no statement about causes",
        "independent sample",
        "rounding",
    ):
        assert phrase in text
    data = json.loads(json.dumps(certificate.to_dict(), allow_nan=False))
    assert data["exact"] is False
    assert data["features"][0]["name"] == "race"
    assert data["population"]["n_above"] == 1
    assert data["assumptions"]


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


def test_arguments_are_checked(lab):
    model = lab.make_model((3, 2, 4), 3)
    with pytest.raises(ValueError, match="names must hold one name"):
        certify_model(model, [0], ["race", "sex"], link=Link("sigmoid"))
    with pytest.raises(ValueError, match="at least one"):
        certify_model(model, [], [], link=Link("sigmoid"), domain=Domain())
