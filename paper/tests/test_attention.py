"""Attention row by row against the float64 softmax; a search for violations of the bound."""

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.nn.functional import layer_norm

from fcorr.nn.engine import use_engine
from paper import series as kernels
from paper.attention import CompiledAttention, attend_with_partition
from tests.nn.networks import assert_all_close, seeded

CASES = [
    *(("plain", n_features) for n_features in (1, 2, 3, 17, 31, 200)),
    *(("compiled", n_features) for n_features in (1, 2, 3, 17, 31, 581)),
]


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


def make_rows(shape, n_features, *, affine=False):
    generator = seeded(n_features)
    n_rows = 64 if n_features < 100 else 8
    z = layer_norm(shape(n_rows, n_features, generator), (n_features,))
    if affine:  # a trained LayerNorm has weights and biases
        z = z * (0.5 + 1.5 * torch.rand(n_features, generator=generator))
        z = z + 0.5 * torch.randn(n_features, generator=generator)
    return z


def reference(z, root=None):
    """Output and log N by the matrix, a bounded number of them at a time."""
    parts = []
    for c in z.split(max(1, 2**22 // z.shape[1] ** 2)):
        y = c - c.mean(1, keepdim=True)
        scores = c.unsqueeze(2) * y.unsqueeze(1) / (root or math.sqrt(z.shape[1]))
        h = (torch.softmax(scores, 2) @ c.unsqueeze(2)).squeeze(2)
        parts.append(torch.stack([h, scores.logsumexp(2)]))
    return torch.cat(parts, dim=1)


def by_partition(z, root=None):
    return attend_with_partition(z, root or math.sqrt(z.shape[1]))


def value_and_gradient(function, z, weight):
    z = z.clone().requires_grad_()
    h = function(z)
    (gradient,) = torch.autograd.grad((weight * h).sum(), z)
    return h.detach(), gradient


# Both engines


@pytest.mark.parametrize("affine", [False, True], ids=["bare", "affine"])
@pytest.mark.parametrize(("engine", "n_features"), CASES)
@pytest.mark.parametrize(
    "shape", [normal, sparse_binary, heavy_tailed, one_outlier, constant], ids=lambda f: f.__name__
)
def test_attention_is_within_its_bound(shape, engine, n_features, affine):
    z = make_rows(shape, n_features, affine=affine)
    weight = torch.randn(z.shape, generator=seeded(1))
    exact = value_and_gradient(lambda z: reference(z)[0], z.double(), weight.double())
    precisions = [(torch.float32, 5e-6, 2e-5)]
    if engine == "plain":  # the kernels serve single precision alone
        precisions.append((torch.float64, 1e-11, 1e-10))
    for dtype, atol, gradient_atol in precisions:
        with use_engine(engine):
            h, gradient = value_and_gradient(
                lambda z: by_partition(z)[0], z.to(dtype), weight.to(dtype)
            )
        # The kernels compute in double precision; plain torch's rounding grows with the numbers.
        rounding = 1.0 if engine == "compiled" else max(1.0, z.abs().max().item())
        torch.testing.assert_close(h.double(), exact[0], rtol=0, atol=atol * rounding)
        # Gradients grow with the weights on h and with the range of z.
        assert_all_close([gradient], exact[1:], atol=gradient_atol)


@pytest.mark.parametrize("n_features", [3, 31, 200])
@pytest.mark.parametrize("shape", [normal, one_outlier], ids=lambda f: f.__name__)
@pytest.mark.parametrize("root", [None, 3.0])
def test_partition(shape, n_features, root, each_engine):
    """Output and log N, and the gradient of both together, against the matrix in float64."""
    z = make_rows(shape, n_features, affine=True)[:8]
    weights = torch.randn(2, *z.shape, generator=seeded(2))
    exact = value_and_gradient(lambda z: reference(z, root), z.double(), weights.double())
    for dtype, rtol in ((torch.float32, 3e-6), (torch.float64, 1e-10)):
        found = value_and_gradient(
            lambda z: torch.stack(by_partition(z, root)), z.to(dtype), weights.to(dtype)
        )
        for value, expected, factor in zip(found, exact, (1, 10), strict=True):
            atol = factor * rtol * expected.abs().max().item()
            torch.testing.assert_close(value.double(), expected, rtol=0, atol=atol)


def test_overflowing_scores_and_missing_numbers(each_engine):
    z = 1e4 * torch.randn(4, 30, generator=seeded())
    largest = torch.where(z > 0, z.amax(1, keepdim=True), z.amin(1, keepdim=True))
    z[3, 3] = torch.nan
    h, log_n = by_partition(z)
    assert log_n[:3].isfinite().all()
    # All weight is on the key farthest along the query.
    torch.testing.assert_close(h[:3], largest[:3])
    assert h[3].isnan().all()


# The kernels' series


def series(z, n_terms):
    """Attention output of one row by the kernels' moments, in double precision."""
    root, n = math.sqrt(len(z)), n_terms
    y = z - z.mean()
    power, moment = np.empty_like(z), np.empty(n + 4)
    kernels.moments(np.exp(z.mean() * y / root), y, n + 2, power, moment)
    factors = np.array([1 / math.factorial(k) for k in range(n)])
    N, P = np.empty_like(z), np.empty_like(z)
    kernels.polynomial(moment[:n] * factors, n, y / root, N)
    kernels.polynomial(moment[1 : n + 1] * factors, n, y / root, P)
    return z.mean() + P / N


def bound(z, n_terms):
    """Return the module's bound on the truncation: 2 m δ/(1 − δ), or none where δ is too large."""
    m, root = np.abs(z - z.mean()).max(), math.sqrt(len(z))
    log_delta = n_terms * math.log(max(m * m / root, 1e-300)) - math.lgamma(n_terms + 1)
    delta = (1 + math.exp(abs(z.mean()) * m / root)) * math.exp(min(log_delta, 300.0))
    return 2 * m * delta / (1 - delta) if delta < 1 else math.inf


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
def test_no_row_violates_the_bound(row):
    n_features, groups, shift = row
    values = torch.cat([torch.full((count,), value) for value, count in groups])
    z = values.repeat(math.ceil(n_features / len(values)))[:n_features].unsqueeze(0) + shift
    exact = reference(z.double())[0]
    # Torch's softmax rounds in single precision, a few digits at each of up to hundreds of terms.
    for engine, rtol in {"plain": 2e-6, "compiled": 0}.items():
        with use_engine(engine):
            h = by_partition(z)[0]
        torch.testing.assert_close(h.double(), exact, rtol=rtol, atol=5e-6)
    row, exact = z[0].double().numpy(), exact[0].numpy()
    m, root = np.abs(row - row.mean()).max(), math.sqrt(n_features)
    for n_terms in (4, 8, 16, 40):
        if (m + abs(row.mean())) * m / root <= 5:  # beyond, features are set apart
            error = np.abs(series(row, n_terms) - exact).max()
            assert error <= 1.01 * bound(row, n_terms) + 1e-10


@pytest.mark.parametrize("n_features", [17, 581, 100_000])
@pytest.mark.parametrize("mean", [0.0, 0.1, 1.0, 10.0, 1e3])
def test_terms_keep_the_bound(n_features, mean):
    """A row that set_apart lets pass has (m + |z̄|) m/√p ≤ 5: whatever it holds, 40 terms do."""
    root = math.sqrt(n_features)
    largest = (math.sqrt(mean**2 + 4 * 5.0 * root) - mean) / 2
    for m in (largest, largest / 2, largest / 10):
        n = kernels.terms_needed(m, mean, root)
        error = 2 * m * (1 + math.exp(mean * m / root)) * (m * m / root) ** n / math.factorial(n)
        assert error <= 5e-7
        assert n % 4 == 0
        assert n <= kernels.MAX_TERMS


def test_few_features_are_set_apart():
    """As many as Chebyshev's inequality allows for unit variance, and they are the outliers."""
    y = torch.randn(581, dtype=torch.float64, generator=seeded()).numpy()
    y[[5, 100]] = [20.0, -15.0]
    outlier = np.zeros(581, dtype=np.int64)
    n_apart, largest = kernels.set_apart(y, 0.0, math.sqrt(581), outlier)
    assert outlier[:n_apart].tolist() == [5, 100]
    assert largest == np.abs(np.delete(y, [5, 100])).max()
    assert n_apart <= math.sqrt(581) / 5


@pytest.mark.parametrize("n_features", [5, 20])
def test_gradient_of_the_kernels(n_features):
    z = torch.randn(3, n_features, dtype=torch.float64, generator=seeded())
    z[1, 2] = 12.0  # set apart among 20
    gradcheck(lambda z: CompiledAttention.apply(z, 3.0), z.requires_grad_(), eps=1e-4, atol=1e-5)
