"""Attention: torch's against a loop; the layer's series against the float64 softmax, to a bound."""

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.nn.functional import layer_norm

from fcorr.nn import attention
from fcorr.nn.attention import attend, attend_with_partition, attention_weights
from fcorr.nn.engine import CompiledEncoderLayer
from fcorr.nn.kernels.encoder import SERIES
from tests.nn.networks import assert_all_close, seeded

# Plain torch


@pytest.mark.parametrize("n_features", [1, 2, 3, 31])
def test_attention_equals_a_loop_over_the_formula(n_features):
    z = torch.randn(4, n_features, dtype=torch.float64, generator=seeded())
    expected = torch.empty_like(z)
    for b in range(4):
        for i in range(n_features):
            weights = [
                math.exp(z[b, i] * z[b, j] / math.sqrt(n_features)) for j in range(n_features)
            ]
            expected[b, i] = sum(w * z[b, j] for j, w in enumerate(weights)) / sum(weights)
    for h in (attend(z), attend_with_partition(z, math.sqrt(n_features))[0]):
        torch.testing.assert_close(h, expected)
    torch.testing.assert_close(attention_weights(30 * z).sum(2), torch.ones_like(z))


def test_gradients_of_plain_torch():
    z = torch.randn(3, 5, dtype=torch.float64, generator=seeded(), requires_grad=True)
    assert gradcheck(attend, z)
    assert gradcheck(lambda z: attend_with_partition(z, 2.0), z)


def test_plain_torch_holds_few_matrices_at_a_time(monkeypatch):
    """Chunks keep the rows' order, and none of their matrices is kept for the gradient."""
    z = layer_norm(one_outlier(8, 581), (581,)).requires_grad_()
    kept = []
    whole = attend_with_partition(z, math.sqrt(581))
    monkeypatch.setattr(attention, "_CHUNK_NUMBERS", 3 * 581**2)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: kept.append(t.numel()) or t, lambda t: t
    ):
        chunked = attend_with_partition(z, math.sqrt(581))
    torch.testing.assert_close(chunked, whole)
    assert sum(kept) <= 10 * z.numel()  # their p × p matrices have 581 times as many entries


# The kernels' series


def by_kernels(x, weight, bias):
    """Attention of ``z = LayerNorm(x)``, by a layer that does nothing after it."""
    zeros = torch.zeros_like(weight)
    return CompiledEncoderLayer.apply(x, (), 1e-12, False, weight, bias, zeros, zeros)[0]


def by_matrix(x, weight, bias):
    z = layer_norm(x, (x.shape[1],), weight, bias, eps=1e-12)
    # A bounded number of matrices at a time.
    return torch.cat([(attention_weights(c) @ c.unsqueeze(2)).squeeze(2) for c in z.split(8)])


def value_and_gradients(function, *inputs):
    inputs = [x.clone().requires_grad_() for x in inputs]
    h = function(*inputs)
    direction = torch.randn(h.shape, generator=seeded(1)).to(h.dtype)
    return h.detach(), *torch.autograd.grad((direction * h).sum(), inputs)


def normal(n, p):
    return torch.randn(n, p, generator=seeded(p))


def sparse_binary(n, p):
    return (torch.rand(n, p, generator=seeded(p)) < 0.03).float() + 1e-3 * normal(n, p)


def heavy_tailed(n, p):
    return torch.tan(math.pi * 0.49 * (2 * torch.rand(n, p, generator=seeded(p)) - 1))


def one_outlier(n, p):
    x = normal(n, p)
    x[:, 0] = 1e4
    return x


@pytest.mark.parametrize("scale", [0.1, 1.0, 2.5])
@pytest.mark.parametrize("n_features", [3, 17, 31, 200, 581])
@pytest.mark.parametrize(
    "shape", [normal, sparse_binary, heavy_tailed, one_outlier], ids=lambda f: f.__name__
)
def test_attention_and_its_gradients(shape, n_features, scale):
    """From the views of a model at its start to exponents that no series serves."""
    x = shape(200 if n_features < 100 else 12, n_features)
    weight = scale * (0.5 + torch.rand(n_features, generator=seeded(2)))
    bias = 0.3 * scale * torch.randn(n_features, generator=seeded(3))
    found = value_and_gradients(by_kernels, x, weight, bias)
    exact = value_and_gradients(by_matrix, *(each.double() for each in (x, weight, bias)))
    z = layer_norm(x, (n_features,), weight, bias)
    assert_all_close(found[:1], exact[:1], atol=2e-6 * max(1.0, z.abs().max().item()))
    # Gradients pass through LayerNorm and the softmax, whose roundings grow with the exponents.
    assert_all_close(found[1:], exact[1:], atol=2e-5 * max(1.0, scale) ** 2)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.integers(2, 200),
    st.lists(st.tuples(st.floats(-6, 6), st.integers(1, 60)), min_size=2, max_size=5),
    st.floats(-2, 2),
)
@example(17, [(0.0, 1), (-6.0, 1)], -1.0)  # a mean far from 0
def test_no_row_violates_the_bound(n_features, groups, shift):
    """Rows of a few distinct values, which can put much weight far from the mean."""
    values = torch.cat([torch.full((count,), value) for value, count in groups])
    z = values.repeat(math.ceil(n_features / len(values)))[:n_features].unsqueeze(0)
    spread = float(z.double().std(correction=0))
    if spread < 1e-3:  # LayerNorm would make much of rounding
        return
    # By these weights LayerNorm gives back the row itself, shifted.
    weight, bias = torch.full_like(z[0], spread), torch.full_like(z[0], float(z.mean()) + shift)
    exact = by_matrix(*(each.double() for each in (z, weight, bias)))
    h = by_kernels(z, weight, bias)
    torch.testing.assert_close(h.double(), exact, rtol=0, atol=5e-6)


def test_series_are_long_enough():
    """Twice X^K/K! bounds the share that a series of K terms leaves out, up to the next one."""
    for _, n_terms, largest in SERIES[:-1]:
        assert n_terms % 8 == 0
        assert 2 * largest**n_terms / math.factorial(n_terms) < 1e-7
    limits = [largest for _, _, largest in SERIES]
    assert limits == sorted(limits)
    assert limits[-1] == math.inf


@pytest.mark.parametrize(("precision", "n_terms", "largest"), SERIES[:-1])
def test_each_series_up_to_its_limit(precision, n_terms, largest):
    """Two features with the largest exponent that the number of terms is for, and just above."""
    for share in (0.999, 1.001):
        weight = torch.full((2,), (share * largest * 2**0.5) ** 0.5)
        x, bias = torch.tensor([[1.0, -1.0], [-50.0, 50.0]]), torch.zeros(2)
        exact = by_matrix(*(each.double() for each in (x, weight, bias)))
        found = by_kernels(x, weight, bias)
        torch.testing.assert_close(found.double(), exact, rtol=2e-6, atol=2e-6)


def test_exponents_that_overflow_and_missing_numbers():
    x = torch.randn(4, 30, generator=seeded())
    weight, bias = torch.full((30,), 1e4), torch.zeros(30)
    z = layer_norm(x, (30,), weight, eps=1e-12)
    farthest = torch.where(z > 0, z.amax(1, keepdim=True), z.amin(1, keepdim=True))
    x[3, 3] = torch.nan
    h = by_kernels(x, weight, bias)
    # All weight is on the key farthest along the query.
    torch.testing.assert_close(h[:3], farthest[:3])
    assert h[3].isnan().all()
