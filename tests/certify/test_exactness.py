import io

import pytest
import torch

from fcorr.certify import Link, certify_model, collapse, embedding_gap, is_exact
from fcorr.nn.engine import use_engine

VARIANTS = [
    {},
    {"residual": True},
    {"n_layers": 3},
    {"n_layers": 2, "residual": True, "n_outputs": 3},
    {"numeric_embedding": "paper", "learn_missing": True},
]


@pytest.mark.parametrize("options", VARIANTS)
def test_flips_of_a_collapsed_feature_change_no_bit(lab, each_engine, options):
    model = lab.make_model((3, 5, 2, 4), 14, **options)
    x_cat, x_num = lab.random_inputs(model, 300)
    assert not is_exact(model, [0, 1])
    with torch.no_grad():
        assert not torch.equal(model(x_cat, x_num), model(flip(x_cat, 0), x_num))
        collapse(model, [0, 1])
        before = model(x_cat, x_num)
        for feature in (0, 1):
            assert torch.equal(before, model(flip(x_cat, feature), x_num))
        assert torch.equal(before, model(flip(flip(x_cat, 0), 1), x_num))
    assert is_exact(model, [0, 1])
    assert not is_exact(model, [2])
    assert not is_exact(model, [0, 2])


def flip(x_cat, feature):
    flipped = x_cat.clone()
    flipped[:, feature] = (flipped[:, feature] + 1) % (flipped[:, feature].max() + 1)
    return flipped


def test_collapse_survives_saving_and_other_precisions(lab):
    model = lab.make_model((7, 3), 4, seed=3)
    collapse(model, [0], how=[[5, 1, 0, 2, 2, 1, 9]])
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = lab.make_model((7, 3), 4, seed=4)
    other.load_state_dict(torch.load(file, weights_only=True))
    for engine in ("plain", "auto"):
        with use_engine(engine):
            assert is_exact(other, [0])
    assert is_exact(other.double(), [0])
    assert is_exact(other.bfloat16(), [0])


def test_collapse_takes_the_weighted_mean_and_keeps_the_rest(lab):
    model = lab.make_model((3, 4), 2)
    before = [model.categorical.categories(i).detach().clone() for i in (0, 1)]
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    collapse(model, [0], how=[[1, 3, 0]])
    expected = (before[0][0] + 3 * before[0][1]) / 4
    torch.testing.assert_close(model.categorical.categories(0), expected.expand(3))
    assert torch.equal(model.categorical.categories(1), before[1])
    assert {name: value.shape for name, value in model.state_dict().items()} == shapes
    again = lab.make_model((3, 4), 2)
    collapse(again, [0])
    torch.testing.assert_close(again.categorical.categories(0), before[0].mean().expand(3))


def test_one_bit_is_enough_not_to_be_exact(lab):
    model = lab.make_model((3, 4), 2)
    collapse(model, [0])
    weight = model.categorical.cat_linear.weight
    with torch.no_grad():
        model.categorical.cat_linear.bias[0] = 0
        weight[1] = 1e-30
    assert 0 < embedding_gap(model, 0) < 1e-29
    assert not is_exact(model, [0])


def test_not_a_number_is_not_exact(lab):
    model = lab.make_model((3, 4), 2)
    collapse(model, [0])
    with torch.no_grad():
        model.categorical.cat_linear.bias[0] = torch.nan
    assert not is_exact(model, [0])


def test_the_certificate_of_a_collapsed_model_is_exactly_zero(lab):
    model = lab.make_model((3, 4, 2), 3, n_layers=2, residual=True)
    collapse(model, [0, 2])
    certificate = certify_model(model, [0, 2], ["a", "b"], link=Link("sigmoid"))
    assert certificate.exact
    for flip_bound in (*certificate.features, certificate.joint):
        assert flip_bound.score.value == flip_bound.prediction.value == flip_bound.gap == 0.0
        assert flip_bound.exact
        assert not flip_bound.score.vacuous
    assert "bit for bit" in str(certificate)


@pytest.mark.parametrize(
    ("sensitive", "how", "message"),
    [
        ([2], "mean", "sensitive must hold positions .* 0 to 1, got 2"),
        ([0, 0], "mean", "sensitive must name each feature once"),
        ([0], "median", "how must be 'mean' or weights per category, got 'median'"),
        ([0], [[1, 2]], "how must hold 3 weights"),
        ([0], [[0, 0, 0]], "not all 0"),
        ([0, 1], [[1, 1, 1]], "each of the 2 sensitive feature"),
    ],
)
def test_errors_name_the_rule(lab, sensitive, how, message):
    with pytest.raises(ValueError, match=message):
        collapse(lab.make_model((3, 4), 2), sensitive, how)
