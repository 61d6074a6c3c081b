"""Exactness, read off the weights, and borne out by every bit of the outputs."""

import io

import pytest
import torch

from fcorr.certify import is_exact

# Numbers, and how a model makes one of each feature, several, or several in each of two members.
NUMBERS = [-1e30, -3.0, -1.0, -1e-40, -0.0, 0.0, 1e-40, 0.3, 2.0, 2.5, 1e6, 1e30, torch.nan]
VARIANTS = [
    ("make_model", {}),
    ("make_model", {"residual": True}),
    ("make_model", {"n_layers": 3}),
    ("make_model", {"learn_missing": True}),
    ("make_model", {"n_layers": 2, "residual": True, "n_outputs": 3}),
    ("make_model", {"numeric_embedding": "paper", "learn_missing": True}),
    ("make_views", {"residual": True, "n_layers": 2}),
    ("make_views", {"learn_missing": True}),
    ("make_views", {"additive": [4], "learn_missing": True}),
    ("make_pack", {"n_outputs": 3}),
    ("make_pack", {"learn_missing": True}),
]
each_kind = pytest.mark.parametrize("make", ["make_model", "make_views", "make_pack"])


def collapse(model, feature, value=0.0):
    for member in model.members:
        member.collapse(feature, value)


def bits(values):
    return values.view(torch.int32)


@pytest.mark.parametrize(("make", "options"), VARIANTS)
@pytest.mark.parametrize("value", [0.3, -0.0, 1e-30])
def test_flips_of_collapsed_features_change_no_bit(lab, each_engine, make, options, value):
    model = getattr(lab, make)((3, 5, 2), 14, **options)
    x_cat, x_num = lab.random_inputs(model, 64)  # so that kernels see whole blocks of a number
    sensitive = (0, 3, 9, 16)  # the last one has no neighbour in the array of steps
    for feature in sensitive:
        assert not is_exact(model, [feature])
        collapse(model, feature, value)
        assert is_exact(model, [feature])
    assert is_exact(model, sensitive)
    assert not is_exact(model, [0, 1])
    numbers = NUMBERS if options.get("learn_missing") else NUMBERS[:-1]
    with torch.no_grad():
        before, scored = model(x_cat, x_num), model.score(x_cat, x_num)
        for i, number in enumerate(numbers):
            codes, flipped = x_cat.clone(), x_num.clone()
            codes[:, 0], flipped[:, [0, 6, 13]] = i % 3, number
            assert torch.equal(bits(model(codes, flipped)), bits(before))
            assert torch.equal(bits(model.score(codes, flipped)), bits(scored))
        codes[:, 1] = (codes[:, 1] + 1) % 5
        assert not torch.equal(model(codes, x_num), before)  # of what is not collapsed


PLACES = [  # a feature's parameter, and the number in it that is exchanged
    *(("make_pack", *place, (0, -1)) for place in (("table", 0), ("steps", 3), ("missing", 3))),
    ("make_model", "categorical.cat_linear.weight", 0, 1),
    ("make_model", "numeric.steps", 3, 1),
    ("make_model", "missing", 3, 0),
]
WRONG = [(*place, wrong) for place in PLACES for wrong in (1e-45, 1e-30, torch.nan)]
WRONG.append((*PLACES[-1], -0.0))


@pytest.mark.parametrize(("make", "part", "feature", "place", "wrong"), WRONG)
def test_one_bit_is_enough_not_to_be_exact(lab, make, part, feature, place, wrong):
    model = getattr(lab, make)(learn_missing=True)
    collapse(model, feature)
    assert is_exact(model, [feature])
    last = model.members[-1]
    with torch.no_grad():
        (last.views or last).get_parameter(part)[place] = wrong
    assert not is_exact(model, [feature])
    last.hold_collapsed(feature)
    assert is_exact(model, [feature])


@pytest.mark.parametrize("embedding", ["spline", "paper"])
def test_a_constant_of_minus_zero_is_not_exact(lab, embedding):
    """Minus zero plus zero is zero: knots would differ by the sign's bit."""
    model = lab.make_model((3,), 2, numeric_embedding=embedding)
    model.collapse(1, 0.0)
    assert is_exact(model, [1])
    with torch.no_grad():
        model.numeric.constant(0).fill_(-0.0)
    assert not is_exact(model, [1])


@pytest.mark.parametrize("part", ["table", "steps", "missing"])
@pytest.mark.parametrize("everywhere", [False, True])
def test_minus_zero_is_no_way_to_tell_values_apart(lab, part, everywhere, each_engine):
    """What is called exact gives the same bits, also where a file holds zeros of either sign."""
    model = lab.make_views(learn_missing=True)
    feature = 0 if part == "table" else 3
    model.collapse(feature)
    with torch.no_grad():
        held = getattr(model.views, part)
        held[: 3 if everywhere and part == "table" else 1] = -0.0
        codes, numbers = lab.random_inputs(model, 40)
        codes[:, 0], numbers[:, 0] = torch.arange(40) % 3, torch.linspace(-3, 3, 40)
        numbers[::5, 0] = torch.nan
        found = bits(model.embed(codes, numbers)[:, :, feature].contiguous())
    if is_exact(model, [feature]):
        assert (found == found[:1]).all()
    else:
        assert part != "steps"  # they are added up, and lose the sign


def test_one_knot_or_one_category_is_exact_from_the_start(lab):
    knots = [torch.tensor([0.5]), torch.tensor([0.0, 1.0])]
    model = lab.make_model((3,), 2, knots=knots)
    assert is_exact(model, [1])
    assert not is_exact(model, [2])
    model = lab.make_views((3, 1), 2)
    codes, numbers = lab.random_inputs(model, 20)
    model.views.center_on(codes, model.locate(numbers))
    assert is_exact(model, [1])


@each_kind
def test_collapse_survives_saving_and_other_precisions(lab, make):
    model, other = (getattr(lab, make)((7, 3), 4, learn_missing=True) for _ in range(2))
    for member in model.members:
        if member.views is not None:
            codes, numbers = lab.random_inputs(model, 30)
            member.views.center_on(codes, member.locate(numbers))
    collapse(model, 0)
    collapse(model, 4)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    assert not is_exact(other, [0])
    other.load_state_dict(torch.load(file, weights_only=True))
    for each in (other, other.double(), other.bfloat16()):
        assert is_exact(each, [0, 4])


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
        ([4], "sensitive must be positions of the model's features, 0 to 3, got \\[4\\]"),
        ([-1], "0 to 3, got \\[-1\\]"),
    ],
)
def test_errors_name_the_rule(lab, sensitive, message):
    with pytest.raises(ValueError, match=message):
        is_exact(lab.make_model((3, 4), 2), sensitive)
