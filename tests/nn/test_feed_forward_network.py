import pytest
import torch
from torch.autograd import gradcheck
from torch.nn.functional import binary_cross_entropy_with_logits, one_hot

from fcorr.nn import FeedForwardNetwork
from fcorr.nn.layers import dropout_from

BAF = [9, 5, 7, 7, 2, 5, 2, 2, 2, 2, 2, 2, 8, 4, 1]
X_CAT = torch.tensor([[0, 3, 1], [1, 0, 2], [1, 1, 0], [0, 2, 2]])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=1):
    return torch.randn(*shape, dtype=torch.float64, generator=seeded(seed))


def make(cardinalities=(2, 4, 3), n_numeric=2, head=(5, 4), **kwargs):
    return FeedForwardNetwork(cardinalities, n_numeric, head, generator=seeded(), **kwargs)


@pytest.mark.parametrize("head", [(5, 4), (6,), ()], ids=["two", "one", "linear"])
def test_matches_a_plain_stack_on_one_hot_vectors(head):
    model, x_num = make(head=head, n_outputs=2).double(), normal(4, 2)
    stack = [module for layer in model.network.hidden for module in (layer, torch.nn.GELU())]
    reference = torch.nn.Sequential(*stack, model.network.output)
    columns = [one_hot(X_CAT[:, i], c) for i, c in enumerate(model.cat_cardinalities)]
    expected = reference(torch.cat([*columns, x_num], dim=1))
    torch.testing.assert_close(model(X_CAT, x_num), expected)
    assert expected.shape == (4, 2)


@pytest.mark.parametrize(("cardinalities", "n_numeric"), [([], 2), ([2, 4, 3], 0)])
def test_one_kind_of_feature_is_enough(cardinalities, n_numeric):
    model = make(cardinalities, n_numeric).double()
    x_cat = X_CAT[:, : len(cardinalities)]
    assert model(x_cat, normal(4, n_numeric)).shape == (4, 1)


def test_gradients_by_finite_differences():
    model = make().double()
    names, parameters = zip(*model.named_parameters(), strict=True)

    def forward(x_num, *values):
        state = dict(zip(names, values, strict=True))
        return torch.func.functional_call(model, state, (X_CAT, x_num))

    assert gradcheck(forward, (normal(4, 2).requires_grad_(), *parameters), fast_mode=True)


@pytest.mark.parametrize(
    ("n_features", "head", "total"),
    [(31, (128, 16, 128, 512), 74_897), (581, (512, 128, 128, 16, 32, 16), 383_313)],
    ids=["BAF", "InsurTech"],
)
def test_sizes_that_give_the_papers_counts(n_features, head, total):
    assert make([], n_features, head).n_parameters == total


def test_every_category_has_an_input_of_its_own():
    model = make(BAF, 16, (64, 64, 64))
    assert model.network.hidden[0].in_features == 60 + 16
    assert model.n_parameters == 77 * 64 + 2 * 65 * 64 + 65


def test_weights_and_dropout_come_from_the_generator_alone():
    state = torch.get_rng_state()
    x = (X_CAT, torch.zeros(4, 2))

    def outputs(seed):
        model = FeedForwardNetwork([2, 4, 3], 2, dropout=0.5, generator=seeded(seed))
        with dropout_from(seeded(seed)):
            return model(*x)

    assert torch.equal(outputs(0), outputs(0))
    assert not torch.equal(outputs(0), outputs(1))
    assert torch.equal(torch.get_rng_state(), state)


def test_single_precision_agrees_with_double():
    model, x_num = make(), normal(4, 2)
    single = model(X_CAT, x_num.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), model.double()(X_CAT, x_num), rtol=1e-5, atol=1e-6)


def test_steps_lower_the_loss():
    model, x_num = make(head=(16,)), normal(4, 2).float()
    target = torch.tensor([[0.0], [1.0], [1.0], [0.0]])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        loss = binary_cross_entropy_with_logits(model(X_CAT, x_num), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_no_features_are_refused():
    with pytest.raises(ValueError, match="at least one feature, categorical or numeric, got none"):
        FeedForwardNetwork([], 0)
