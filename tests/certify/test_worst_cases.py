"""The worst case against attacks."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fcorr import FCorrClassifier
from fcorr.certify import Domain, Link, attack, certify_model, layer_norm_divisors, worst_case
from fcorr.certify.domain import embedding_pieces
from fcorr.data import make_indirect_bias

QUICK = 2**13
ROUNDING = 1e-6  # of the attack, relative


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_layers=st.sampled_from([1, 1, 2]),
    residual=st.booleans(),
    embedding=st.sampled_from(["spline", "paper"]),
    p=st.sampled_from([3, 5, 40]),
    gap=st.sampled_from([None, 1e-6, 1e-2, 5.0]),
    outlier=st.sampled_from([0.0, 4.0]),
    feature=st.sampled_from([0, 2]),
    learn_missing=st.booleans(),
)
def test_no_attack_exceeds_the_bound(
    lab, seed, n_layers, residual, embedding, p, gap, outlier, feature, learn_missing
):
    n_numeric = p - 2
    model = lab.make_model(
        (3, 2),
        n_numeric,
        seed=seed,
        n_layers=n_layers,
        residual=residual,
        numeric_embedding=embedding,
        gap=gap,
        outlier=outlier,
        rough=0.1,
        learn_missing=learn_missing,
    )
    domain = Domain(low=[-3.0] * n_numeric, high=[3.0] * n_numeric)
    bound = worst_case(model, feature, domain, effort=QUICK)
    largest = min(bound.by_slope[0], bound.by_range[0])

    generator = torch.Generator().manual_seed(seed)
    found = attack(model, feature, domain, n_starts=100, n_steps=12, generator=generator)
    assert found.change[0] <= largest * (1 + ROUNDING)
    assert bound.low[0] <= bound.high[0]


def test_the_bound_is_linear_in_the_gap_and_zero_without(lab):
    bounds = {}
    for gap in (0.0, 1e-12, 1e-8, 1e-6, 1e-4, 1e-2):
        model = lab.make_model((3, 2, 4), 3, gap=gap)
        bounds[gap] = worst_case(model, 0, effort=QUICK)
    assert bounds[0.0].by_slope == (0.0,)
    sizes = [bound.by_slope[0] for bound in bounds.values()]
    assert sizes == sorted(sizes)
    assert bounds[1e-8].slope[0] == pytest.approx(bounds[1e-6].slope[0], rel=0.05)
    assert bounds[1e-12].by_slope[0] < 1e-3


@pytest.mark.parametrize(("residual", "most"), [(False, 40), (True, 8)])
def test_features_that_differ_keep_the_bound_small(lab, residual, most):
    """A bound can be sound and useless: no LayerNorm of these rows can divide by little."""
    model = lab.make_model((3, 2, 4, 3, 5), 7, residual=residual, rough=0.1, gap=1e-5)
    with torch.no_grad():
        model.categorical.cat_linear.bias[1:] += torch.tensor([1.0, -1.0, 0.7, -0.7])
    assert worst_case(model, 0, effort=2**14).slope[0] < most


def test_trained_model_with_and_without_regularisation(lab):
    X, y = make_indirect_bias(1_000, frame="pandas", random_state=0)
    X = X.assign(X4=np.random.default_rng(0).normal(size=len(X)))
    for car in (0.0, 1e6):
        options = {"head": (8, 8), "epochs": 3, "invariance": None, "random_state": 0}
        model = FCorrClassifier(sensitive="X1", car=car, **options).fit(X, y).model_
        bound = worst_case(model, 0, effort=QUICK)
        found = attack(model, 0, n_starts=200, n_steps=20).change[0]
        assert 0 < found <= min(bound.by_slope[0], bound.by_range[0]) * (1 + ROUNDING)


def test_rows_with_large_divisors_have_a_smaller_bound_that_holds(lab):
    model = lab.make_model((3, 2, 4), 6, gap=0.01, residual=True, rough=0.1)
    x_cat, x_num = lab.random_inputs(model, 2_000)
    divisors_BN = layer_norm_divisors(model, x_cat, x_num)
    floors = divisors_BN.quantile(0.3, dim=0)
    domain = Domain(min_divisors=floors.tolist())
    bound = worst_case(model, 0, domain, effort=QUICK)
    everywhere = worst_case(model, 0, effort=QUICK)
    assert bound.slope[0] < everywhere.slope[0] / 10
    # The gap is small: rows well above the floors stay above them between categories.
    inner = Domain(min_divisors=(floors + 0.02).tolist())
    found = attack(model, 0, inner, n_steps=20).change[0]
    assert 0 < found <= bound.by_slope[0]
    assert found < attack(model, 0, n_steps=20).change[0]
    assert "divisors" in domain.describe()


def test_missing_numbers_and_ranges_count(lab):
    model = lab.make_model((3, 2), 2, learn_missing=True)
    with torch.no_grad():
        model.missing.fill_(7.0)
    wide = embedding_pieces(model, Domain(), 0)
    assert float(wide.high_FP[2].max()) == 7.0
    known = embedding_pieces(model, Domain(missing=False), 0)
    assert float(known.high_FP[2].max()) < 7.0
    point = embedding_pieces(model, Domain([0.3, 0.3], [0.3, 0.3], missing=False), 0)
    with torch.no_grad():
        value = model.numeric(torch.full((1, 2), 0.3))[0, 0]
    torch.testing.assert_close(point.low_FP[2], value.double().expand(8))
    torch.testing.assert_close(point.high_FP[2], value.double().expand(8))


def test_many_categories_are_grouped_without_loss(lab):
    model = lab.make_model((3, 40), 2)
    pieces = embedding_pieces(model, Domain(), 0)
    values = model.categorical.categories(1).detach().double()[:, None]
    inside = (pieces.low_FP[1] <= values) & (values <= pieces.high_FP[1])
    assert inside.any(1).all()


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        (Domain(), "low and high for every numeric feature"),
        (Domain([0.0], [1.0]), "one low and one high for each of the 3"),
        (Domain([0.0] * 3, [-1.0] * 3), "low not above high"),
        (Domain([0.0] * 3, [1.0] * 3, min_divisors=[1.0]), "min_divisors must hold 3 numbers"),
        (Domain([0.0] * 3, [1.0] * 3, min_divisors=[99.0] * 3), "no row of it reaches"),
    ],
)
def test_errors_name_the_rule(lab, domain, message):
    model = lab.make_model((3, 2), 3, numeric_embedding="paper")
    with pytest.raises(ValueError, match=message):
        worst_case(model, 0, domain, effort=0)


def test_several_features_add_up(lab):
    model = lab.make_model((3, 2, 4), 4, gap=1e-7)
    link = Link("sigmoid")
    certificate = certify_model(model, [0, 1], ["race", "sex"], link=link, effort=QUICK)
    parts = [flip.score.value for flip in certificate.features]
    joint = certificate.joint.score
    assert max(parts) <= joint.value <= min(sum(parts), joint.trivial) * (1 + 1e-12)
    x_cat, x_num = lab.random_inputs(model, 500)
    largest = 0.0
    with torch.no_grad():
        outputs = []
        for a, b in itertools.product(range(3), range(2)):
            flipped = x_cat.clone()
            flipped[:, 0], flipped[:, 1] = a, b
            outputs.append(model(flipped, x_num))
        outputs = torch.stack(outputs)
        largest = float((outputs.amax(0) - outputs.amin(0)).max())
    assert largest <= joint.value
