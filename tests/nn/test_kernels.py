"""Compiled kernels against plain torch in float64, piece by piece and as a whole model."""

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from fcorr.nn import FCorrTransformer, SplineEmbedding
from fcorr.nn.engine import resolve_engine, runs_compiled, use_engine
from fcorr.nn.fcorr import FCorrEncoderLayer

pytest.importorskip("numba", reason="the kernels need numba: pip install 'fcorr[fast]'")

from scipy.special import ndtr
from scipy.stats import norm as normal

from fcorr.nn.kernels import arithmetic, compiling
from fcorr.nn.kernels.attention import MAX_TERMS, set_apart, terms_needed
from fcorr.nn.kernels.functions import Attention, EncoderLayer


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def perturb(module, scale=0.3):
    generator = seeded(9)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(scale * torch.randn(parameter.shape, generator=generator))
    return module


# ------------------------------------------------------------------------------- arithmetic


def test_exponential():
    x = np.linspace(-699, 699, 5_001)
    values = np.array([arithmetic.exp(v) for v in x])
    np.testing.assert_allclose(values, np.exp(x), rtol=1e-11)
    assert math.isnan(arithmetic.exp(math.nan))


def test_exponential_less_one_keeps_its_digits():
    tiny = 10.0 ** np.linspace(-30, 0, 500)
    x = np.concatenate([-tiny, tiny, np.linspace(-80, 80, 2_001)]).astype(np.float32)
    values = np.array([arithmetic.expm1_32(v) for v in x], dtype=np.float64)
    np.testing.assert_allclose(values, np.expm1(x.astype(np.float64)), rtol=3e-7, atol=0)


def test_gelu_and_its_slope():
    x = np.linspace(-40, 40, 8_001)
    values = np.array([arithmetic.gelu(v) for v in x])
    np.testing.assert_allclose(values, x * ndtr(x), rtol=0, atol=1e-10)
    slopes = np.array([arithmetic.gelu_slope(v) for v in x])
    np.testing.assert_allclose(slopes, ndtr(x) + x * normal.pdf(x), rtol=0, atol=1e-10)


# -------------------------------------------------------------------------------- attention


def test_few_features_are_set_apart():
    """As many as Chebyshev's inequality allows for unit variance, and they are the outliers."""
    y = torch.randn(581, dtype=torch.float64, generator=seeded()).numpy()
    y[[5, 100]] = [20.0, -15.0]
    outlier = np.zeros(581, dtype=np.int64)
    n_apart, largest = set_apart(y, 0.0, math.sqrt(581), outlier)
    assert outlier[:n_apart].tolist() == [5, 100]
    assert largest == np.abs(np.delete(y, [5, 100])).max()
    assert n_apart <= math.sqrt(581) / 5


def test_terms_keep_the_bound():
    for m, mean, root in ((1.0, 0.0, 5.0), (4.6, 0.0, 5.4), (4.0, 0.3, 5.4), (9.8, 0.0, 24.0)):
        n = terms_needed(m, mean, root)
        error = 2 * m * (1 + math.exp(mean * m / root)) * (m * m / root) ** n / math.factorial(n)
        assert error <= 5e-7
        assert n % 4 == 0


def test_no_row_needs_more_terms_than_there_are():
    """A row that set_apart lets pass has (m + |z̄|) m/√p ≤ 5: whatever it holds, 40 terms do."""
    for n_features in (17, 581, 100_000):
        root = math.sqrt(n_features)
        for mean in (0.0, 0.1, 1.0, 10.0, 1e3):
            m = (math.sqrt(mean**2 + 4 * 5.0 * root) - mean) / 2
            assert terms_needed(m, mean, root) <= MAX_TERMS


@pytest.mark.parametrize("n_features", [5, 20])
def test_gradient_of_the_attention(n_features):
    z = torch.randn(3, n_features, dtype=torch.float64, generator=seeded())
    z[1, 2] = 12.0  # set apart among 20
    gradcheck(lambda z: Attention.apply(z, 3.0), z.requires_grad_(), eps=1e-4, atol=1e-5)


def test_overflowing_scores():
    z = 1e4 * torch.randn(4, 30, generator=seeded())
    h, log_n = Attention.apply(z, math.sqrt(30))
    assert h.isfinite().all()
    assert log_n.isfinite().all()
    largest = torch.where(z > 0, z.amax(1, keepdim=True), z.amin(1, keepdim=True))
    torch.testing.assert_close(h, largest)  # all weight is on the key farthest along the query


def test_missing_numbers_stay_missing():
    z = torch.randn(2, 30, generator=seeded())
    z[0, 3] = torch.nan
    h, _ = Attention.apply(z, math.sqrt(30))
    assert h[0].isnan().all()
    assert h[1].isfinite().all()


# ------------------------------------------------------------------------------------ layers


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("n_elementwise", [0, 1, 3])
@pytest.mark.parametrize("n_features", [4, 50])
def test_encoder_layer(n_features, n_elementwise, residual):
    """Output and every gradient equal plain torch's in float64."""
    options = {"n_elementwise": n_elementwise, "residual": residual, "generator": seeded()}
    layer = perturb(FCorrEncoderLayer(n_features, **options))
    h = torch.randn(40, n_features, generator=seeded(1))
    h[3, 1] = 30
    weight = torch.randn(h.shape, generator=seeded(2))

    def run(layer, h, weight):
        h = h.clone().requires_grad_()
        output = layer(h)
        return output, *torch.autograd.grad((weight * output).sum(), [h, *layer.parameters()])

    with use_engine("compiled"):
        compiled = run(layer, h, weight)
    exact = run(layer.double(), h.double(), weight.double())
    for value, expected in zip(compiled, exact, strict=True):
        scale = max(1.0, expected.abs().max().item())
        torch.testing.assert_close(value.double(), expected, rtol=0, atol=2e-6 * scale)


def test_gradient_of_the_encoder_layer():
    h = torch.randn(2, 20, dtype=torch.float64, generator=seeded(1), requires_grad=True)
    layer = perturb(FCorrEncoderLayer(20, n_elementwise=2, generator=seeded())).double()
    modules = (layer.attention_norm, layer.stack_norm, *layer.stack)
    parameters = [p for module in modules for p in (module.weight, module.bias)]
    gradcheck(
        lambda h, *parameters: EncoderLayer.apply(h, (), 1e-5, True, *parameters)[0],
        (h, *parameters),
        eps=1e-4,
        atol=1e-5,
    )


def test_watched_features(each_engine):
    layer = perturb(FCorrEncoderLayer(30, n_elementwise=1, generator=seeded()))
    h = torch.randn(10, 30, generator=seeded(1))
    output, seen = layer.forward_watching(h, [4, 0])
    torch.testing.assert_close(output, layer(h))
    z = layer.attention_norm(h)
    attention = torch.softmax(z.unsqueeze(2) * z.unsqueeze(1) / math.sqrt(30), dim=2)
    torch.testing.assert_close(seen.columns_BSF, attention[:, :, [4, 0]].transpose(1, 2))
    torch.testing.assert_close(seen.attended_BS, (attention @ z.unsqueeze(2))[:, [4, 0], 0])


# ---------------------------------------------------------------------------------- embedding


def spline():
    knots = [torch.tensor([0.0, 1.0, 4.0]), torch.tensor([2.0]), torch.linspace(-3, 3, 64)]
    return SplineEmbedding(knots, generator=seeded())


def test_locating_numbers():
    embedding = spline()
    x = 3 * torch.randn(1_000, 3, generator=seeded(1))
    x[:3] = torch.tensor([[0.0, 2.0, -3.0], [4.0, 3.0, 3.0], [1.0, 1.0, 1e12]])
    x[3] = torch.nan
    with use_engine("compiled"):
        compiled = embedding.locate(x)
    with use_engine("plain"):
        plain = embedding.locate(x)
    torch.testing.assert_close(compiled, plain, equal_nan=True, rtol=1e-6, atol=1e-6)
    assert compiled[:3].tolist() == [[0, 0, 0], [2, 0, 63], [1, 0, 63]]


def make_model(**options):
    knots = [torch.tensor([-1.0, 0.0, 1.0]), torch.tensor([2.0]), torch.linspace(-3, 3, 20)] * 8
    model = FCorrTransformer([3, 2], 24, (8, 8), knots=knots, generator=seeded(), **options)
    return perturb(model, 0.1)


def make_rows(n_rows=64, *, missing=False):
    generator = seeded(4)
    codes = torch.stack([torch.randint(c, (n_rows,), generator=generator) for c in (3, 2)], dim=1)
    numbers = torch.randn(n_rows, 24, generator=generator)
    if missing:
        numbers[torch.rand(numbers.shape, generator=generator) < 0.1] = torch.nan
    return codes, numbers


@pytest.mark.parametrize(
    "options",
    [{}, {"n_layers": 3}, {"residual": True}, {"learn_missing": True}],
    ids=["default", "deep", "residual", "missing"],
)
def test_whole_model(options):
    """The compiled model, its gradients included, is the plain one."""
    codes, numbers = make_rows(missing="learn_missing" in options)

    def run(model, numbers):
        outputs = model(codes, numbers)
        return outputs, *torch.autograd.grad(outputs.square().sum(), list(model.parameters()))

    with use_engine("compiled"):
        compiled = run(make_model(**options), numbers)
    exact = run(make_model(**options).double(), numbers.double())
    for value, expected in zip(compiled, exact, strict=True):
        scale = max(1.0, expected.abs().max().item())
        torch.testing.assert_close(value.double(), expected, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("wrong", [-1, 3])
def test_a_code_out_of_range_is_refused(wrong):
    codes, numbers = make_rows()
    codes[5, 0] = wrong
    with use_engine("compiled"), pytest.raises(IndexError, match="Codes must run from 0"):
        make_model()(codes, numbers)


@pytest.mark.parametrize("wrong", [-0.5, 64.0])
def test_a_place_out_of_range_is_refused(wrong):
    codes, numbers = make_rows()
    model = make_model()
    with use_engine("compiled"), pytest.raises(IndexError, match="located numbers"):
        model.embed_located(codes, torch.full_like(numbers, wrong))


# -------------------------------------------------------------------------------------- engine


def test_what_runs_compiled():
    single, double = torch.zeros(1), torch.zeros(1, dtype=torch.float64)
    assert runs_compiled(single)
    assert not runs_compiled(double)
    with use_engine("plain"):
        assert not runs_compiled(single)
        with use_engine("compiled"):
            assert runs_compiled(single)
        assert not runs_compiled(single)


def test_unknown_engine():
    with pytest.raises(ValueError, match="engine must be 'auto', 'compiled' or 'plain', got 'gpu'"):
        resolve_engine("gpu")


def test_numba_absent(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert resolve_engine("auto") == "plain"
    with pytest.raises(ImportError, match=r"needs numba: pip install 'fcorr\[fast\]'"):
        resolve_engine("compiled")


# ----------------------------------------------------------------------------------- machine code


def test_machine_code_is_kept_by_the_state_of_the_sources(tmp_path):
    """Numba notices a change in a function's own file only; the folder's name notices the rest."""
    package = tmp_path / "copied"
    shutil.copytree(
        Path(compiling.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    program = "import copied.compiling as c; print(c._folder().name)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}

    def folder():
        run = [sys.executable, "-c", program]
        return subprocess.run(run, env=environment, capture_output=True, text=True, check=True)

    before = folder().stdout
    assert before == folder().stdout
    assert before.strip() == compiling._folder().name
    with (package / "attention.py").open("a") as file:
        file.write("# changed\n")
    assert before != folder().stdout


def test_kernels_compile_where_nothing_can_be_written(monkeypatch, tmp_path):
    def refuse(function=None, *, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(compiling, "njit", refuse)
    assert compiling.compiled(abs) is abs
