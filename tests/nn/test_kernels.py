"""Compiled kernels against plain torch in float64, piece by piece and as a whole model."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from scipy.special import ndtr
from scipy.stats import norm as normal
from torch.autograd import gradcheck

from fcorr.nn import FCorrTransformer, attention
from fcorr.nn.engine import (
    CompiledEncoderLayer,
    prepare_engine,
    runs_compiled,
    use_engine,
)
from fcorr.nn.fcorr import FCorrEncoderLayer
from fcorr.nn.kernels import arithmetic
from tests.nn.networks import compare_layers, compare_models, draw_codes, perturb, seeded

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
    x = x.astype(np.float32)
    values = np.array([arithmetic.gelu_32(v) for v in x], dtype=np.float64)
    np.testing.assert_allclose(values, x * ndtr(x.astype(np.float64)), rtol=4e-7, atol=4e-7)


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
    compare_layers(layer, h, atol=2e-6)


def test_gradient_of_the_encoder_layer():
    h = torch.randn(2, 20, dtype=torch.float64, generator=seeded(1), requires_grad=True)
    layer = perturb(FCorrEncoderLayer(20, n_elementwise=2, generator=seeded())).double()
    modules = (layer.attention_norm, layer.stack_norm, *layer.stack)
    parameters = [p for module in modules for p in (module.weight, module.bias)]
    gradcheck(
        lambda h, *parameters: CompiledEncoderLayer.apply(h, (), 1e-5, True, *parameters)[0],
        (h, *parameters),
        eps=1e-4,
        atol=1e-5,
    )


def test_columns_of_some_features():
    layer = perturb(FCorrEncoderLayer(30, n_elementwise=1, generator=seeded()))
    h = torch.randn(10, 30, generator=seeded(1))
    output, columns, attended = layer.run_kernels(h, [4, 0])
    torch.testing.assert_close(output, layer(h))
    z = layer.attention_norm(h)
    weights = attention.attention_weights(z)
    torch.testing.assert_close(columns, weights[:, :, [4, 0]].transpose(1, 2))
    torch.testing.assert_close(attended, (weights @ z.unsqueeze(2))[:, [4, 0], 0])


# ---------------------------------------------------------------------------------- embedding


def make_model(**options):
    knots = [torch.tensor([-1.0, 0.0, 1.0]), torch.tensor([2.0]), torch.linspace(-3, 3, 20)] * 8
    model = FCorrTransformer([3, 2], 24, (8, 8), knots=knots, generator=seeded(), **options)
    return perturb(model, 0.1)


def make_rows(n_rows=64, *, missing=False):
    generator = seeded(4)
    codes = draw_codes((3, 2), n_rows, generator)
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
    rows = make_rows(missing="learn_missing" in options)
    compare_models(lambda: make_model(**options), *rows)


def test_codes_and_positions_out_of_range_are_refused():
    (codes, numbers), model = make_rows(), make_model()
    for wrong in (-1, 3):
        refused = codes.clone()
        refused[5, 0] = wrong
        with use_engine("compiled"), pytest.raises(IndexError, match="Codes must run from 0"):
            model(refused, numbers)
    for wrong in (-0.5, 64.0, 1e30, -1e30, math.inf, -math.inf):
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
        with ThreadPoolExecutor(1) as other:  # each thread has its own engine
            assert other.submit(runs_compiled, single).result()


def test_waiting_for_the_compiler_is_announced(monkeypatch, tmp_path):
    said = []
    monkeypatch.setattr(arithmetic, "cache_folder", lambda: tmp_path)
    with use_engine("plain"):
        prepare_engine(said.append)
    assert said == []
    prepare_engine(said.append)
    assert said == ["compiling fcorr's kernels, once per installation; it takes about 15 seconds"]
    (tmp_path / "network.locate-0123456789abcdef.nbc").touch()
    prepare_engine(said.append)
    assert len(said) == 1
    monkeypatch.setattr(arithmetic, "cache_folder", lambda: None)
    prepare_engine(said.append)
    assert said[1:] == ["compiling fcorr's kernels, in every process; it takes about 15 seconds"]
