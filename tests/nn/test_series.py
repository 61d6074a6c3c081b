"""Linear-time attention against the float64 softmax: a search for violations of its bound."""

import importlib.util
import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.nn.functional import layer_norm

from fcorr.nn.attention import attend, attend_with_partition, plan_series
from fcorr.nn.engine import use_engine
from fcorr.nn.series import SeriesAttention, series_size, terms_needed

ENGINES = ["plain", "compiled"] if importlib.util.find_spec("numba") else ["plain"]
N_FEATURES = (1, 2, 3, 17, 31, 581, 4_000)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def n_rows(n_features):
    return 64 if n_features < 1_000 else 2


def normal(n, p, generator):
    return torch.randn(n, p, generator=generator)


def sparse_binary(n, p, generator):
    noise = 1e-3 * torch.randn(n, p, generator=generator)
    return (torch.rand(n, p, generator=generator) < 0.03).float() + noise


def heavy_tailed(n, p, generator):
    return torch.tan(math.pi * 0.49 * (2 * torch.rand(n, p, generator=generator) - 1))


def one_outlier(n, p, generator):
    x = torch.randn(n, p, generator=generator)
    x[:, 0] = 1e4
    return x


def constant(n, p, generator):
    return torch.full((n, p), 0.7)


SHAPES = [normal, sparse_binary, heavy_tailed, one_outlier, constant]


def make_rows(shape, n_features, *, affine=False):
    generator = seeded(n_features)
    z = layer_norm(shape(n_rows(n_features), n_features, generator), (n_features,))
    if affine:  # a trained LayerNorm has weights and biases
        z = z * (0.5 + 1.5 * torch.rand(n_features, generator=generator))
        z = z + 0.5 * torch.randn(n_features, generator=generator)
    return z


def reference(z):
    chunks = z.split(max(1, 2**22 // z.shape[1] ** 2))
    weights = (
        torch.softmax(c.unsqueeze(2) * c.unsqueeze(1) / math.sqrt(z.shape[1]), 2) for c in chunks
    )
    return torch.cat(
        [(a @ c.unsqueeze(2)).squeeze(2) for a, c in zip(weights, chunks, strict=True)]
    )


def series(z, n_terms):
    return SeriesAttention.apply(z, n_terms, math.sqrt(z.shape[1]))[0]


def value_and_gradient(function, z, weight):
    z = z.clone().requires_grad_()
    h = function(z)
    (gradient,) = torch.autograd.grad((weight * h).sum(), z)
    return h.detach(), gradient


def within_the_bound(z, atol=5e-6):
    torch.testing.assert_close(
        attend(z, "linear").double(), reference(z.double()), rtol=0, atol=atol
    )


@pytest.mark.parametrize("affine", [False, True], ids=["bare", "affine"])
@pytest.mark.parametrize("n_features", N_FEATURES)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda f: f.__name__)
def test_linear_attention_is_within_its_bound(shape, n_features, affine, each_engine):
    z = make_rows(shape, n_features, affine=affine)
    weight = torch.randn(z.shape, generator=seeded(1))
    expected, expected_gradient = value_and_gradient(reference, z.double(), weight.double())
    precisions = [(torch.float32, 5e-6, 2e-5)]
    if each_engine == "plain":  # the kernels serve single precision alone
        precisions.append((torch.float64, 1e-11, 1e-10))
    for dtype, atol, gradient_atol in precisions:
        h, gradient = value_and_gradient(
            lambda z: attend(z, "linear"), z.to(dtype), weight.to(dtype)
        )
        torch.testing.assert_close(h.double(), expected, rtol=0, atol=atol)
        # Gradients grow with the weights on h and with the range of z.
        scale = max(1.0, expected_gradient.abs().max().item())
        torch.testing.assert_close(
            gradient.double(), expected_gradient, rtol=0, atol=gradient_atol * scale
        )


@pytest.mark.parametrize("n_features", [31, 581])
def test_ordinary_rows_take_the_series(n_features):
    _, in_series = plan_series(make_rows(normal, n_features), math.sqrt(n_features))
    assert in_series.float().mean() > 0.9


def test_wide_rows_take_the_softmax_and_keep_their_place():
    z = make_rows(normal, 31)
    z[::7] = make_rows(one_outlier, 31)[::7]
    _, in_series = plan_series(z, math.sqrt(31))
    assert in_series.any()
    assert not in_series[::7].any()
    with use_engine("plain"):
        within_the_bound(z)


def adversarial_rows():
    """Rows of a few distinct values, which can put much weight far from the mean."""
    return st.tuples(
        st.integers(17, 200),
        st.lists(st.tuples(st.floats(-6, 6), st.integers(1, 60)), min_size=1, max_size=5),
        st.floats(-2, 2),
    )


@settings(max_examples=300, deadline=None, derandomize=True)
@given(adversarial_rows())
@example((17, [(0.0, 1), (-6.0, 1)], -1.0))  # a mean far from 0: rounding, not the series
def test_no_row_the_series_accepts_violates_the_bound(row):
    n_features, groups, shift = row
    values = torch.cat([torch.full((count,), value) for value, count in groups])
    z = values.repeat(math.ceil(n_features / len(values)))[:n_features].unsqueeze(0) + shift
    for engine in ENGINES:
        with use_engine(engine):
            within_the_bound(z)
    root = math.sqrt(n_features)
    if terms := int(terms_needed(z.double(), root)[0]):
        X, factor, _ = series_size(z.double(), root)
        bound = factor * X**terms / float(math.factorial(terms))
        error = (series(z.double(), terms) - reference(z.double())).abs().max()
        assert error <= 1.01 * bound.item() + 1e-12


@pytest.mark.parametrize("n_features", [17, 40, 110])
def test_rounding_of_many_uneven_rows(n_features):
    """Few distinct values, very unequal counts, a shifted mean: what loses digits fastest."""
    generator, n = seeded(n_features), 4_000
    for n_values in (2, 3, 5):
        size = 8 * torch.rand(n, 1, generator=generator)
        values = (2 * torch.rand(n, n_values, generator=generator) - 1) * size
        counts = torch.rand(n, n_values, generator=generator) ** 3 + 1e-3
        rows = torch.multinomial(counts, n_features, replacement=True, generator=generator)
        z = values.gather(1, rows) + 4 * torch.randn(n, 1, generator=generator)
        z = z[terms_needed(z, math.sqrt(n_features)) > 0]
        assert len(z) > 500
        torch.testing.assert_close(series(z, 24).double(), reference(z.double()), rtol=0, atol=5e-6)


def test_the_bound_is_needed():
    """With too few terms the error is large: the choice of terms is what keeps it small."""
    z = make_rows(normal, 31).double()
    error = (series(z, 4) - reference(z)).abs().max()
    assert error > 1e-3


def test_gradient_of_the_series():
    z = torch.randn(3, 6, dtype=torch.float64, generator=seeded(), requires_grad=True)
    assert gradcheck(lambda z: SeriesAttention.apply(z, 30, 2.0), z)  # output and partition


@pytest.mark.parametrize("n_features", [3, 31, 200])
@pytest.mark.parametrize("shape", [normal, one_outlier], ids=lambda f: f.__name__)
@pytest.mark.parametrize("root", [None, 3.0])
def test_partition(shape, n_features, root, each_engine):
    """Output and log N, and the gradient of both together, against the matrix in float64."""
    z = make_rows(shape, n_features, affine=True)[:8]
    weights = torch.randn(2, *z.shape, generator=seeded(2))

    def by_matrix(z):
        y = z - z.mean(1, keepdim=True)
        scores = z.unsqueeze(2) * y.unsqueeze(1) / (root or math.sqrt(n_features))
        h = (torch.softmax(scores, 2) @ z.unsqueeze(2)).squeeze(2)
        return torch.stack([h, scores.logsumexp(2)])

    def fast(z):
        return torch.stack(attend_with_partition(z, root))

    for dtype, rtol in ((torch.float32, 3e-6), (torch.float64, 1e-10)):
        values, gradient = value_and_gradient(fast, z.to(dtype), weights.to(dtype))
        expected, expected_gradient = value_and_gradient(by_matrix, z.double(), weights.double())
        torch.testing.assert_close(
            values.double(), expected, rtol=0, atol=rtol * expected.abs().max().item()
        )
        torch.testing.assert_close(
            gradient.double(),
            expected_gradient,
            rtol=0,
            atol=10 * rtol * expected_gradient.abs().max().item(),
        )


def test_wide_rows_keep_no_matrices_for_the_gradient():
    z = make_rows(one_outlier, 581).requires_grad_()
    kept = []
    with (
        use_engine("plain"),
        torch.autograd.graph.saved_tensors_hooks(
            lambda t: kept.append(t.numel()) or t, lambda t: t
        ),
    ):
        attend(z, "linear")
    assert sum(kept) <= 10 * z.numel()  # their p × p matrices have 581 times as many entries
