import pytest
import torch
from torch.nn.functional import layer_norm

from fcorr.nn import FCorrEncoderLayer, FCorrTransformer
from tests.nn.networks import draw_codes, perturb, seeded


def n_parameters(module):
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(
    ("cardinalities", "n_numeric", "head", "total", "in_head"),
    [
        ([9, 5, 7, 7, 2, 5, 2, 2, 2, 2, 2, 2, 8, 4, 1], 16, (64,) * 3, 11_064, 11_064 - 631),
        ([7] + [2] * 382, 198, (16,) * 4, 21_767, 10_145),
    ],
    ids=["BAF", "InsurTech"],
)
def test_parameter_counts_are_the_papers(cardinalities, n_numeric, head, total, in_head):
    model = FCorrTransformer(cardinalities, n_numeric, head, numeric_embedding="paper")
    assert n_parameters(model) == total
    assert n_parameters(model.head) == in_head


def test_a_new_layer_hands_on_what_hundreds_of_features_say():
    n_features = 581  # with few of them, or with the residual, random biases would not drown them
    layer = FCorrEncoderLayer(n_features, n_elementwise=4, generator=seeded())
    h = torch.randn(200, n_features, generator=seeded(1))
    before, after = (layer_norm(x, [n_features]) for x in (h, layer(h)))
    assert (before * after).mean() > 0.95  # their correlation over the features of a row


def test_every_parameter_takes_part():
    model = FCorrTransformer([3, 2], 2, (4, 4), n_layers=2, generator=seeded())
    codes = torch.tensor([[0, 1], [2, 0], [1, 1], [1, 0]])
    numbers = torch.randn(4, 2, generator=seeded(1))
    model(codes, numbers).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


def test_missing_numbers_have_an_embedding_of_their_own():
    model = FCorrTransformer([2], 2, (4,), learn_missing=True, generator=seeded())
    with torch.no_grad():
        model.missing.copy_(torch.tensor([5.0, 7.0]))
    numbers = torch.tensor([[torch.nan, 0.3], [0.3, torch.nan]])
    embedded = model.embed(torch.zeros(2, 1, dtype=torch.long), numbers)
    assert embedded[0, 0, 1] == 5
    assert embedded[1, 0, 2] == 7
    assert embedded.isfinite().all()
    model(torch.zeros(2, 1, dtype=torch.long), numbers).sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


EMBEDDINGS = [
    {"numeric_embedding": "spline"},
    {"numeric_embedding": "paper"},
    {"numeric_embedding": "paper", "learn_missing": True},
    {"n_views": 3},
    {"n_views": 3, "learn_missing": True},
]


@pytest.mark.parametrize("options", EMBEDDINGS, ids=str)
@pytest.mark.parametrize("feature", range(5))
def test_a_collapsed_feature_is_one_number(feature, options, each_engine):
    """Of one view it may be any, and of several it is 0 in each; never minus zero for some."""
    model = FCorrTransformer([3, 2, 4], 2, (5,), generator=seeded(), **options)
    model = perturb(model).eval()
    codes, numbers = (
        draw_codes([3, 2, 4], 200, seeded(1)),
        3 * torch.randn(200, 2, generator=seeded(2)),
    )
    if "learn_missing" in options:
        numbers[::7] = torch.nan
    if "n_views" in options:
        model.views.center_on(codes, model.locate(numbers))
    before = model.embed(codes, numbers)
    model.collapse(feature, -0.0 if feature == 1 else 0.3)
    after = model.embed(codes, numbers)
    others = [i for i in range(5) if i != feature]
    assert torch.equal(after[:, :, others], before[:, :, others])
    bits = after[:, :, feature].contiguous().view(torch.int32)
    assert (bits == (0 if "n_views" in options else bits[0])).all()
    # A training step parts the values, and holding brings them together again.
    perturb(model, 0.01)
    model.hold_collapsed(feature)
    held = model.embed(codes, numbers)[:, :, feature]
    assert (held == held[0]).all()
