"""Exactness, read off the weights, and borne out by every bit of the outputs."""

import io

import pytest
import torch

from fcorr.certify import is_exact
from fcorr.nn.engine import use_engine

N_ROWS = 16  # as many of each number, so that kernels and vectors see whole blocks of it
VARIANTS = [
    {},
    {"residual": True},
    {"n_layers": 3},
    {"learn_missing": True},
    {"n_layers": 2, "residual": True, "n_outputs": 3},
    {"numeric_embedding": "paper", "learn_missing": True},
    {"numeric_embedding": "paper"},
]


@pytest.mark.parametrize("options", VARIANTS)
def test_flips_of_a_collapsed_feature_change_no_bit(lab, each_engine, options):
    model = lab.make_model((3, 5, 2, 4), 14, **options)
    x_cat, x_num = lab.random_inputs(model, 300)
    assert not is_exact(model, [0, 1])
    with torch.no_grad():
        assert not torch.equal(model(x_cat, x_num), model(flip(x_cat, 0), x_num))
        model.collapse(0, 0.3)
        model.collapse(1, -0.7)
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


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize("value", [0.3, -0.7, 0.0, -0.0, 1e-30])
def test_no_number_changes_a_bit_where_a_numeric_feature_is_collapsed(
    lab, each_engine, options, value
):
    model = lab.make_model((3, 2), 15, **options)
    x_cat, x_num = lab.random_inputs(model, N_ROWS)
    for feature in (2, 9, 16):  # the last one has no neighbour in the array of steps
        assert not is_exact(model, [feature])
        model.collapse(feature, value)
        assert is_exact(model, [feature])
    numbers = torch.cat(
        [
            torch.linspace(-3, 3, 241),
            torch.tensor([-2.0, 2.0, 0.0, -0.0, 1e-40, -1e-40, 1e6, -1e6, 1e30, -1e30]),
            torch.tensor([] if model.missing is None else [torch.nan]),
        ]
    )
    x_cat, x_num = x_cat.repeat(len(numbers), 1), x_num.repeat(len(numbers), 1)
    flipped = x_num.clone()
    flipped[:, [0, 7, 14]] = numbers.repeat_interleave(N_ROWS)[:, None]
    with torch.no_grad():
        before, after = (model(x_cat, each).view(torch.int32) for each in (x_num, flipped))
    assert torch.equal(before, after)


@pytest.mark.parametrize("embedding", ["spline", "paper"])
def test_a_constant_of_minus_zero_is_not_exact(lab, embedding):
    """Minus zero plus zero is zero: knots would differ by the sign's bit."""
    model = lab.make_model((3,), 2, numeric_embedding=embedding)
    model.collapse(1, 0.0)
    assert is_exact(model, [1])
    with torch.no_grad():
        model.numeric.constant(0).fill_(-0.0)
    assert not is_exact(model, [1])


def test_the_missing_embedding_counts_bit_by_bit(lab):
    model = lab.make_model((3,), 2, learn_missing=True)
    model.collapse(1, 0.0)
    for wrong in (-0.0, 1e-45, torch.nan):
        with torch.no_grad():
            model.missing[0] = wrong
        assert not is_exact(model, [1])
    model.hold_collapsed(1)
    assert is_exact(model, [1])


def test_one_knot_is_exact_from_the_start(lab):
    knots = [torch.tensor([0.5]), torch.tensor([0.0, 1.0])]
    model = lab.make_model((3,), 2, knots=knots)
    assert is_exact(model, [1])
    assert not is_exact(model, [2])


def test_collapse_survives_saving_and_other_precisions(lab):
    model = lab.make_model((7, 3), 4, seed=3, learn_missing=True)
    model.collapse(0, 0.1)
    model.collapse(4, 0.1)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = lab.make_model((7, 3), 4, seed=4, learn_missing=True)
    other.load_state_dict(torch.load(file, weights_only=True))
    for engine in ("plain", "auto"):
        with use_engine(engine):
            assert is_exact(other, [0, 4])
    assert is_exact(other.double(), [0, 4])
    assert is_exact(other.bfloat16(), [0, 4])


def test_one_bit_is_enough_not_to_be_exact(lab):
    model = lab.make_model((3, 4), 2)
    model.collapse(0, 0.0)
    model.collapse(2, 0.0)
    with torch.no_grad():
        model.categorical.cat_linear.weight[1] = 1e-30
        model.numeric.steps[model.numeric.starts[1] - 1] = 1e-45
    assert not is_exact(model, [0])
    assert not is_exact(model, [2])


def test_categories_that_round_to_one_number_are_not_exact(lab):
    model = lab.make_model((3, 1), 1)
    with torch.no_grad():
        model.categorical.varying(0).fill_(1e-12)
        model.categorical.constant(0).fill_(0.3)
        assert len(model.categorical.categories(0).unique()) == 1
    assert not is_exact(model, [0])
    assert is_exact(model, [1])  # there is one category: no weights could tell it apart


@pytest.mark.parametrize("feature", [0, 2, 3])
@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_what_is_not_finite_is_not_exact(lab, feature, wrong):
    model = lab.make_model((3, 4), 2)
    model.collapse(feature, wrong)
    assert not is_exact(model, [feature])
    model.collapse(feature, 0.0)
    assert is_exact(model, [feature])
    with torch.no_grad():
        model.numeric.steps[1] = wrong  # of the first number, and those after it are summed up
    assert is_exact(model, [feature]) == (feature == 0)


@pytest.mark.parametrize(
    ("sensitive", "message"),
    [
        ([4], "sensitive must hold positions of the model's features, 0 to 3, got 4"),
        ([-1], "got -1. Categorical features come first"),
    ],
)
def test_errors_name_the_rule(lab, sensitive, message):
    with pytest.raises(ValueError, match=message):
        is_exact(lab.make_model((3, 4), 2), sensitive)
