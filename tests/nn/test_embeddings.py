import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from fcorr.nn.embeddings import CategoricalEmbedding, NumericEmbedding, SplineEmbedding


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


CARDINALITIES = [3, 1, 5, 2]


@pytest.fixture
def embedding():
    return CategoricalEmbedding(CARDINALITIES, generator=seeded()).double()


def every_code(n_rows=40):
    generator = seeded(1)
    return torch.stack(
        [torch.randint(c, (n_rows,), generator=generator) for c in CARDINALITIES], dim=1
    )


def test_table_form_equals_the_papers_one_hot_form(embedding):
    codes = every_code()
    torch.testing.assert_close(embedding(codes), embedding.one_hot_forward(codes))


def test_both_forms_have_the_same_gradients(embedding):
    codes = every_code()
    weight = torch.randn(40, 4, dtype=torch.float64, generator=seeded(2))
    parameters = list(embedding.parameters())
    table = torch.autograd.grad((weight * embedding(codes)).sum(), parameters)
    one_hot = torch.autograd.grad((weight * embedding.one_hot_forward(codes)).sum(), parameters)
    for a, b in zip(table, one_hot, strict=True):
        torch.testing.assert_close(a, b)


def test_gradcheck_of_the_table(embedding):
    parameters = [p.detach().clone().requires_grad_() for p in embedding.parameters()]
    names = [name for name, _ in embedding.named_parameters()]
    codes = every_code(6)

    def forward(*values):
        weights = dict(zip(names, values, strict=True))
        return torch.func.functional_call(embedding, weights, (codes,))

    assert gradcheck(forward, parameters)


def test_categories_are_slices_of_the_table(embedding):
    assert torch.equal(torch.cat([embedding.categories(i) for i in range(4)]), embedding.table())
    codes = torch.zeros(5, 4, dtype=torch.long)
    codes[:, 2] = torch.arange(5)
    torch.testing.assert_close(embedding(codes)[:, 2], embedding.categories(2))


def test_features_start_centred(embedding):
    for i in range(4):
        assert abs(embedding.categories(i).mean().item()) < 1e-6


def test_32_bit_codes_are_taken(embedding):
    codes = every_code()
    assert torch.equal(embedding(codes.int()), embedding(codes))


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
    embed = SplineEmbedding(KNOTS, scale=1.0, generator=seeded()).double()
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


def test_spline_gradients(spline):
    x = torch.tensor([[-2.0, 0.0, 0.3], [0.2, 2.5, 0.9], [1.7, 9.0, 4.0]], dtype=torch.float64)
    steps = spline.steps.detach().clone().requires_grad_()
    assert gradcheck(
        lambda x, steps: torch.func.functional_call(spline, {"steps": steps}, (x,)),
        (x.requires_grad_(), steps),
    )


def test_spline_has_one_parameter_per_knot_and_no_padding(spline):
    assert sum(p.numel() for p in spline.parameters()) == 7


def test_no_numeric_features():
    assert SplineEmbedding([])(torch.zeros(4, 0)).shape == (4, 0)
