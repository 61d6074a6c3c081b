import torch
from torch.autograd import gradcheck

from fcorr.nn.layers import CatLinear, Dropout, ElementwiseLinear, FeedForward, linear


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_elementwise_linear_is_a_diagonal_matrix():
    layer = ElementwiseLinear(4, generator=seeded()).double()
    x = torch.randn(5, 4, dtype=torch.float64, generator=seeded(1))
    torch.testing.assert_close(layer(x), x @ torch.diag(layer.weight) + layer.bias)
    assert gradcheck(layer, x.requires_grad_())


def test_cat_linear_is_a_block_diagonal_matrix():
    layer = CatLinear([3, 1, 2], generator=seeded()).double()
    blocks = torch.block_diag(*(w.unsqueeze(1) for w in layer.weight.split([3, 1, 2])))
    x = torch.randn(5, 6, dtype=torch.float64, generator=seeded(1))
    torch.testing.assert_close(layer(x), x @ blocks + layer.bias)
    assert gradcheck(layer, x.requires_grad_())


def test_feed_forward_matches_torchs_sequential():
    head = FeedForward(3, (5, 4), 2, generator=seeded()).double()
    first, second = head.hidden
    reference = torch.nn.Sequential(first, torch.nn.GELU(), second, torch.nn.GELU(), head.output)
    x = torch.randn(7, 3, dtype=torch.float64, generator=seeded(1))
    torch.testing.assert_close(head(x), reference(x))


def test_head_without_hidden_layers_is_linear():
    head = FeedForward(3, (), 1, generator=seeded())
    x = torch.randn(7, 3, generator=seeded(1))
    torch.testing.assert_close(head(x), head.output(x))


def test_initial_weights_come_from_the_generator_alone():
    state = torch.get_rng_state()
    a, b = linear(4, 3, generator=seeded(3)), linear(4, 3, generator=seeded(3))
    assert torch.equal(a.weight, b.weight)
    assert not torch.equal(a.weight, linear(4, 3, generator=seeded(4)).weight)
    assert torch.equal(torch.get_rng_state(), state)


def test_dropout_keeps_the_mean_and_is_off_in_evaluation():
    dropout = Dropout(0.3)
    dropout.generator = seeded()
    x = torch.ones(100_000)
    dropped = dropout(x)
    assert set(dropped.unique().tolist()) == {0.0, torch.tensor(1 / 0.7).item()}
    assert abs(dropped.mean().item() - 1) < 0.01
    assert torch.equal(dropout.eval()(x), x)
