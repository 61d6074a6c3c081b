import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from torch.nn.functional import gelu, one_hot

from fcorr.nn.engine import use_engine
from fcorr.nn.layers import (
    CategoricalEmbedding,
    CatLinear,
    Dropout,
    ElementwiseLinear,
    FeedForward,
    NumericEmbedding,
    SplineEmbedding,
    choose_knots,
    dropout_from,
)
from tests.nn.networks import draw_codes, seeded


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
    shallow = FeedForward(3, (), 1, generator=seeded()).double()
    torch.testing.assert_close(shallow(x), shallow.output(x))


# Embeddings

CARDINALITIES = [3, 1, 5, 2]


@pytest.fixture
def embedding():
    return CategoricalEmbedding(CARDINALITIES, generator=seeded()).double()


def test_table_form_equals_the_papers_one_hot_form(embedding):
    """Values, and gradients into every parameter; codes of 32 bits are taken too."""
    codes = draw_codes(CARDINALITIES, 40, seeded(1))
    vectors = [one_hot(codes[:, i], c) for i, c in enumerate(CARDINALITIES)]
    by_paper = embedding.cat_linear(gelu(embedding.elementwise(torch.cat(vectors, 1).double())))
    weight = torch.randn(40, 4, dtype=torch.float64, generator=seeded(2))
    parameters = list(embedding.parameters())
    expected = torch.autograd.grad((weight * by_paper).sum(), parameters)
    for found in (embedding(codes), embedding(codes.int())):
        torch.testing.assert_close(found, by_paper)
        torch.testing.assert_close(
            torch.autograd.grad((weight * found).sum(), parameters), expected
        )


def test_categories_are_slices_of_the_table(embedding):
    assert torch.equal(torch.cat([embedding.categories(i) for i in range(4)]), embedding.table())
    codes = torch.zeros(5, 4, dtype=torch.long)
    codes[:, 2] = torch.arange(5)
    torch.testing.assert_close(embedding(codes)[:, 2], embedding.categories(2))
    for i in range(4):  # features start centred
        assert abs(embedding.categories(i).mean().item()) < 1e-6


def test_paper_numeric_embedding_by_hand():
    embed = NumericEmbedding(3, generator=seeded()).double()
    x = torch.randn(6, 3, dtype=torch.float64, generator=seeded(1))
    inner = x * embed.first.weight + embed.first.bias
    gelu = inner * 0.5 * (1 + torch.erf(inner / 2**0.5))
    torch.testing.assert_close(embed(x), gelu * embed.second.weight + embed.second.bias)
    assert gradcheck(embed, x.requires_grad_())


KNOTS = [
    torch.tensor([-1.0, 0.0, 0.5, 3.0], dtype=torch.float64),
    torch.tensor([2.0], dtype=torch.float64),
    torch.tensor([0.0, 1.0], dtype=torch.float64),
]


@pytest.fixture
def spline():
    embed = SplineEmbedding(KNOTS, generator=seeded()).double()
    embed.knots = embed.knots.double()
    return embed


def test_spline_equals_numpys_interpolation(spline):
    x = 3 * torch.randn(500, 3, dtype=torch.float64, generator=seeded(1))
    x[:4, 0] = KNOTS[0]  # on the knots themselves, too
    start = 0
    for i, knots in enumerate(KNOTS):
        values = spline.steps[start : start + len(knots)].cumsum(0).detach().numpy()
        expected = np.interp(x[:, i].numpy(), knots.numpy(), values)
        torch.testing.assert_close(spline(x)[:, i].detach(), torch.from_numpy(expected))
        start += len(knots)
    assert sum(p.numel() for p in spline.parameters()) == start == 7  # one for each, no padding
    assert SplineEmbedding([])(torch.zeros(4, 0)).shape == (4, 0)


def test_spline_gradients(spline):
    x = torch.tensor([[-2.0, 0.0, 0.3], [0.2, 2.5, 0.9], [1.7, 9.0, 4.0]], dtype=torch.float64)
    steps = spline.steps.detach().clone().requires_grad_()
    assert gradcheck(
        lambda steps: torch.func.functional_call(spline, {"steps": steps}, (x,)), steps
    )


# Knots


def knots(values, n_knots):
    (chosen,) = choose_knots(np.asarray(values, dtype=np.float32)[:, None], n_knots)
    return chosen.numpy()


def test_few_values_have_a_knot_each():
    np.testing.assert_array_equal(knots([3, 1, 2, 2, 1], 8), [1, 2, 3])
    np.testing.assert_array_equal(knots([np.nan, 1, 5, np.nan], 8), [1, 5])
    first, second = choose_knots(np.array([[0, 5], [1, 5]], dtype=np.float32), 4)
    assert (first.tolist(), second.tolist()) == ([0, 1], [5])


@pytest.mark.parametrize("n_knots", [3, 16, 64])
def test_many_values(n_knots):
    values = np.random.default_rng(0).lognormal(size=1_000).astype(np.float32)
    chosen = knots(values, n_knots)
    assert len(chosen) <= n_knots
    assert (np.diff(chosen) > 0).all()
    assert np.isin(chosen, values).all()
    assert chosen[0] == values.min()
    assert chosen[-1] == values.max()
    zero_inflated = np.concatenate([np.zeros(900), np.arange(1, 101)])
    assert (knots(zero_inflated, n_knots) > 0).sum() >= n_knots / 2 - 1


# Dropout


def drop(x, rate, seed=0):
    with dropout_from(seeded(seed)):
        return Dropout(rate)(x)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_share_and_mean(rate, each_engine):
    dropped = drop(torch.ones(1_000, 200), rate)
    n = dropped.numel()
    tolerance = 4 * (rate * (1 - rate) / n) ** 0.5
    assert (dropped == 0).float().mean().item() == pytest.approx(rate, abs=tolerance)
    assert dropped.unique().tolist() == pytest.approx([0, 1 / (1 - rate)])


def test_entries_are_independent(each_engine):
    """Neighbours, rows and calls: no pair of entries is dropped together more than by chance."""
    first = (drop(torch.ones(400, 256), 0.5) == 0).double()
    second = (drop(torch.ones(400, 256), 0.5, seed=1) == 0).double()
    for a, b in (
        (first[:, 1:], first[:, :-1]),
        (first[1:], first[:-1]),
        (first[:, 2:], first[:, :-2]),
        (first[64:], first[:-64]),
        (first, second),
    ):
        correlation = torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1]
        assert abs(correlation) < 4 / a.numel() ** 0.5


def test_engines_drop_the_same_entries():
    x = torch.randn(33, 7, generator=seeded(1))
    with use_engine("plain"):
        plain = drop(x, 0.3)
    with use_engine("compiled"):
        compiled = drop(x, 0.3)
    torch.testing.assert_close(plain, compiled)


def test_gradient_has_the_same_mask(each_engine):
    x = torch.randn(50, 20, generator=seeded(1), requires_grad=True)
    dropped = drop(x, 0.3)
    dropped.sum().backward()
    assert torch.equal(x.grad == 0, dropped == 0)
    torch.testing.assert_close(x.grad[x.grad != 0].unique(), torch.tensor([1 / 0.7]))


def test_generator_alone_decides():
    x = torch.ones(40, 40)
    state = torch.get_rng_state()
    assert torch.equal(drop(x, 0.5), drop(x, 0.5))
    assert not torch.equal(drop(x, 0.5), drop(x, 0.5, seed=1))
    assert torch.equal(torch.get_rng_state(), state)
    with dropout_from(seeded()):
        assert not torch.equal(Dropout(0.5)(x), Dropout(0.5)(x))
    assert torch.equal(Dropout(0.9).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert torch.equal(Dropout(1.0)(x), torch.zeros(40, 40))


def test_each_thread_has_its_own_generator():
    x = torch.ones(100, 100)
    expected = {seed: drop(x, 0.5, seed) for seed in range(4)}
    barrier = threading.Barrier(4)

    def work(seed):
        with dropout_from(seeded(seed)):
            barrier.wait()
            return Dropout(0.5)(x)

    with ThreadPoolExecutor(4) as threads:
        found = dict(zip(expected, threads.map(work, expected), strict=True))
    assert all(torch.equal(found[seed], expected[seed]) for seed in range(4))
