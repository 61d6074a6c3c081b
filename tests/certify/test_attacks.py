import itertools

import pytest
import torch

from fcorr.certify import Domain, Link, attack, embedding_gap, layer_norm_divisors


def outputs(model, flip):
    exact = model.double()
    with torch.no_grad():
        return exact(flip.x_cat, flip.x_num.double())


@pytest.mark.parametrize("feature", [0, 3])
@pytest.mark.parametrize("options", [{}, {"residual": True, "learn_missing": True, "n_layers": 2}])
def test_the_flip_shows_the_change(lab, feature, options):
    model = lab.make_model((3, 2, 4), 3, n_outputs=2, **options)
    found = attack(model, feature, link=Link("softmax"), n_starts=20, n_steps=10)
    assert len(found.change) == len(found.flips) == 2
    for output, (change, flip) in enumerate(zip(found.change, found.flips, strict=True)):
        scores = outputs(model, flip)[:, output]
        assert float((scores[0] - scores[1]).abs()) == pytest.approx(change, rel=1e-5)
        same = [flip.x_cat[0].eq(flip.x_cat[1]), flip.x_num[0].eq(flip.x_num[1])]
        same = torch.cat([*same[:1], same[1] | flip.x_num.isnan().all(0)])
        assert (~same).nonzero().flatten().tolist() == [feature]
    probabilities = torch.softmax(outputs(model, found.prediction_flip), 1)
    change = float((probabilities[0] - probabilities[1]).abs().max())
    assert change == pytest.approx(found.prediction, rel=1e-5)


def test_few_rows_are_all_tried(lab):
    model = lab.make_model((2, 3, 4, 5), 0)
    rows = torch.tensor(list(itertools.product(range(3), range(4), range(5))))
    scores = []
    with torch.no_grad():
        for category in (0, 1):
            x_cat = torch.cat([torch.full((len(rows), 1), category), rows], 1)
            scores.append(model.double()(x_cat, torch.zeros(len(rows), 0).double()))
    largest = float((scores[0] - scores[1]).abs().max())
    model.float()
    assert attack(model, 0, n_starts=1, n_steps=0).change[0] == pytest.approx(largest, rel=1e-5)


def test_climbing_finds_more_than_random_rows(lab):
    model = lab.make_model((3, 2, 4), 12, residual=True, seed=1)
    random = attack(model, 0, n_starts=50, n_steps=0).change[0]
    assert attack(model, 0, n_starts=50, n_steps=30).change[0] > 1.5 * random


def test_the_same_generator_finds_the_same(lab):
    model = lab.make_model((3, 2, 4), 6)
    first, second = (attack(model, 0, n_starts=10, n_steps=5) for _ in range(2))
    assert first.change == second.change
    other = torch.Generator().manual_seed(1)
    assert attack(model, 0, n_starts=10, n_steps=0, generator=other).change != first.change


def test_rows_stay_in_the_domain(lab):
    model = lab.make_model((3, 2, 4), 4, learn_missing=True)
    low, high = [-0.5] * 4, [0.25] * 4
    for domain in (
        Domain(low, high, missing=False),
        Domain(low, high, missing=False, min_divisors=[0.05, 0.05, 0.05]),
    ):
        found = attack(model, 5, domain, n_starts=20, n_steps=10)
        assert found.change[0] > 0
        flip = found.flips[0]
        assert bool((flip.x_num >= -0.5).all() and (flip.x_num <= 0.25).all())
    assert bool((layer_norm_divisors(model, flip.x_cat, flip.x_num) >= 0.05).all())


def test_a_collapsed_feature_cannot_be_attacked(lab):
    model = lab.make_model((3, 2, 4), 4, learn_missing=True)
    for feature in (0, 4):
        model.collapse(feature, 0.3)
        assert embedding_gap(model, feature) == 0
        assert attack(model, feature, n_starts=10, n_steps=3).change == (0.0,)


def test_errors_name_the_rule(lab):
    model = lab.make_model((3, 2), 3, numeric_embedding="paper")
    with pytest.raises(ValueError, match="0 to 4, got 9"):
        attack(model, 9)
    with pytest.raises(ValueError, match="low and high for every numeric feature"):
        attack(model, 0)
