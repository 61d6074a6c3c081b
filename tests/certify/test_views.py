"""Certificates of networks with views, and of packs: exactness, flips and the search."""

import io
import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from fcorr import FCorrClassifier, load
from fcorr.certify import (
    ALL_TOGETHER,
    Link,
    certify_model,
    is_exact,
    largest_change,
    list_flips,
    search_change,
)
from fcorr.nn.fcorr import Pack
from paper.baselines.car import exchange_rows

SIGMOID = Link("sigmoid")
VARIANTS = [
    {},
    {"residual": True, "n_layers": 2},
    {"learn_missing": True},
    {"n_outputs": 3},
    {"additive": [4], "learn_missing": True},
]


def make_model(lab, cards=(3, 2, 4), n_numeric=3, *, seed=0, n_views=4, **options):
    """A random model whose main effects are not 0."""
    model = lab.make_model(cards, n_numeric, seed=seed, n_views=n_views, **options)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.views.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model


def make_pack(lab, *args, **options):
    """Members with other views, knots and heads."""
    knots = [torch.tensor([-1.0, 0.5, 1.0])] * (args[1] if len(args) > 1 else 3)
    first = make_model(lab, *args, seed=0, **options)
    second = make_model(lab, *args, seed=5, n_views=5, head=(6,), knots=knots, **options)
    return Pack([first, second]).eval()


def flip_every_value(x_cat, x_num, cards):
    """Rows with each value of feature 0, and with numbers of any size in the last one."""
    for code in range(cards[0]):
        for number in (-1e30, -1.0, -0.0, 0.0, 1e-40, 0.3, 2.0, 1e6, torch.nan):
            codes, numbers = x_cat.clone(), x_num.clone()
            codes[:, 0] = code
            numbers[:, -1] = number
            yield codes, numbers


@pytest.mark.parametrize("make", [make_model, make_pack])
@pytest.mark.parametrize("options", VARIANTS)
def test_flips_of_collapsed_features_change_no_bit(lab, each_engine, options, make):
    cards = (3, 5, 2)
    model = make(lab, cards, 4, **options)
    x_cat, x_num = lab.random_inputs(model.members[0], 150)
    last = model.n_features - 1
    assert not is_exact(model, [0])
    assert not is_exact(model, [last])
    for member in model.members:
        member.collapse(0, 0.3)
        member.collapse(last)
    assert is_exact(model, [0, last])
    assert not is_exact(model, [0, 1])
    with torch.no_grad():
        before, scored = model(x_cat, x_num), model.score(x_cat, x_num)
        for codes, numbers in flip_every_value(x_cat, x_num, cards):
            if not options.get("learn_missing"):
                numbers = numbers.nan_to_num()
            assert torch.equal(model(codes, numbers).view(torch.int32), before.view(torch.int32))
            assert torch.equal(
                model.score(codes, numbers).view(torch.int32), scored.view(torch.int32)
            )


def test_a_pack_is_exact_only_if_every_member_is(lab):
    pack = make_pack(lab)
    pack.members[0].collapse(0)
    assert is_exact(pack.members[0], [0])
    assert not is_exact(pack, [0])
    pack.members[1].collapse(0)
    assert is_exact(pack, [0])


@pytest.mark.parametrize("wrong", [1e-45, 1e-30, torch.nan])
@pytest.mark.parametrize(("part", "feature"), [("table", 0), ("steps", 3), ("missing", 3)])
def test_one_bit_in_one_view_is_enough_not_to_be_exact(lab, part, feature, wrong):
    pack = make_pack(lab, learn_missing=True)
    for member in pack.members:
        member.collapse(feature)
    assert is_exact(pack, [feature])
    with torch.no_grad():
        getattr(pack.members[1].views, part)[0, -1] = wrong
    assert not is_exact(pack, [feature])


@pytest.mark.parametrize("part", ["table", "steps", "missing"])
@pytest.mark.parametrize("everywhere", [False, True])
def test_minus_zero_is_no_way_to_tell_values_apart(lab, part, everywhere, each_engine):
    """What is called exact gives the same bits, also where a file holds zeros of either sign."""
    model = make_model(lab, learn_missing=True)
    feature = 0 if part == "table" else 3
    model.collapse(feature)
    with torch.no_grad():
        held = getattr(model.views, part)
        held[: 3 if everywhere and part == "table" else 1] = -0.0
        codes, numbers = lab.random_inputs(model, 40)
        codes[:, 0], numbers[:, 0] = torch.arange(40) % 3, torch.linspace(-3, 3, 40)
        numbers[::5, 0] = torch.nan
        bits = model.embed(codes, numbers)[:, :, feature].contiguous().view(torch.int32)
    if is_exact(model, [feature]):
        assert (bits == bits[:1]).all()
    else:
        assert part != "steps"  # they are added up, and lose the sign


def test_one_category_is_exact_from_the_start(lab):
    model = make_model(lab, (3, 1), 2)
    assert is_exact(model, [1])
    codes, numbers = lab.random_inputs(model, 20)
    model.views.center_on(codes, model.locate(numbers))
    assert is_exact(model, [1])


def test_collapse_survives_saving_and_other_precisions(lab):
    model, other = (make_model(lab, (7, 3), 4, seed=s, learn_missing=True) for s in (3, 4))
    model.views.center_on(*(lab.random_inputs(model, 30)[0], 3 * torch.rand(30, 4)))
    model.collapse(0)
    model.collapse(4)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other.views.shares, model.views.shares)
    assert is_exact(other, [0, 4])
    assert is_exact(other.double(), [0, 4])
    assert is_exact(other.bfloat16(), [0, 4])


# The search


@pytest.mark.parametrize("make", [make_model, make_pack])
@pytest.mark.parametrize("link", [SIGMOID, Link("exp", (0.5,), 3.0), Link("identity", scale=2.0)])
def test_what_the_search_found_is_attained(lab, link, make):
    """Against every row that there is."""
    model = make(lab, (2, 3, 4, 5), 0)
    rows = torch.tensor(list(itertools.product(range(3), range(4), range(5))))
    no_numbers = torch.zeros(60, 0)
    scores = [
        link(model.score(torch.cat([torch.full((60, 1), c), rows], 1), no_numbers)) for c in (0, 1)
    ]
    largest = float((scores[0] - scores[1]).abs().max())
    values = lab.values_of(model)
    flips = list_flips(model, [0], ["a"], values)
    found = search_change(model, flips, link, values)["a"]
    assert found <= largest * (1 + 1e-12)
    assert found == pytest.approx(largest, rel=1e-4)


@pytest.mark.parametrize("make", [make_model, make_pack])
def test_flips_of_numbers_reach_the_ends_of_the_main_effect(lab, make):
    model = make(lab, learn_missing=True)
    values = lab.values_of(model, numbers=500)
    values[3:] = [torch.cat([each, torch.tensor([torch.nan])]) for each in values[3:]]
    flips = list_flips(model, [0, 4], ["a", "x"], values)
    assert (len(flips["x"]), len(flips[ALL_TOGETHER])) == (256, 3 * 32)
    numbers = values[4][:-1, None].expand(-1, 3)
    with torch.no_grad():
        embedded = model.embed(torch.zeros(500, 3).long(), numbers)[:, model.main_views, 4].mean(1)
        for name in ("x", ALL_TOGETHER):
            tried = flips[name].embed(model)[:, model.main_views, -1].mean(1)
            tried = tried[~flips[name].x_num[:, 1].isnan()]
            assert (tried.min(), tried.max()) == (embedded.min(), embedded.max())
    assert flips["x"].x_num[-1, 1].isnan()


@pytest.mark.parametrize("make", [make_model, make_pack])
def test_largest_change_is_that_of_the_scores(lab, make):
    model = make(lab)
    flips = list_flips(model, [0, 4], ["a", "x"], lab.values_of(model))
    codes, numbers = lab.random_inputs(model.members[0], 30)
    for flip in flips.values():
        scored = [SIGMOID(model.score(codes, numbers))]
        scored += [SIGMOID(model.score(*each)) for each in exchange_rows(flip, codes, numbers)]
        expected = (torch.stack(scored).amax(0) - torch.stack(scored).amin(0)).amax(1)
        found = largest_change(model, flip, SIGMOID, codes, numbers)
        assert torch.equal(found, expected)
        assert (found > 0).all()


@pytest.mark.parametrize("make", [make_model, make_pack])
def test_the_certificate_of_some_exact_features(lab, make):
    model = make(lab)
    options = {"link": SIGMOID, "values": lab.values_of(model)}
    certificate = certify_model(model, [0, 4], ["race", "age"], **options)
    assert not certificate.exact
    assert all(flip.search > 0 for flip in certificate.features)
    for member in model.members:
        member.collapse(0)
    certificate = certify_model(model, [0, 4], ["race", "age"], **options)
    assert [flip.exact for flip in certificate.features] == [True, False]
    assert certificate.features[0].search == 0
    for member in model.members:
        member.collapse(4)
    certificate = certify_model(model, [0, 4], ["race", "age"], **options)
    assert certificate.exact
    assert certificate.search == 0
    assert "Exact" in str(certificate)


def test_an_additive_feature_changes_the_output_by_its_main_effect(lab):
    """Whatever the other features hold: the search has nothing to find beyond it."""
    model = make_model(lab, additive=[0])
    values = lab.values_of(model)
    found = search_change(model, list_flips(model, [0], ["a"], values), Link("identity"), values)
    effects = model.views.values().detach()[:3, 0]
    assert found["a"] == pytest.approx(float(effects.max() - effects.min()), rel=1e-5)


# Files


@pytest.mark.parametrize("part", ["table", "steps", "missing"])
def test_a_file_whose_view_weights_were_changed_is_refused(part, tmp_path):
    """The digest is right, as the file was saved: what is refused is the claim to be exact."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"sex": rng.choice(["f", "m"], 200), "age": rng.normal(40, 10, 200)})
    X["age"] = X.age.mask(X.age > 55)
    X["z"] = rng.normal(size=200)
    y = (X.z + rng.normal(size=200) > 0).astype(int)
    settings = {"n_members": 2, "head": (4,), "epochs": 1, "random_state": 0}
    settings["advanced"] = {"missing_numeric": "category"}
    model = FCorrClassifier(sensitive=["sex", "age"], **settings).fit(X, y)
    assert model.certificate().exact
    model.save(tmp_path / "right.safetensors")
    assert load(tmp_path / "right.safetensors").certificate().exact
    with torch.no_grad():
        getattr(model.model_.members[1].views, part)[0, -1] = 1e-30
    model.save(tmp_path / "wrong.safetensors")
    with pytest.raises(ValueError, match="exact"):
        load(tmp_path / "wrong.safetensors")
