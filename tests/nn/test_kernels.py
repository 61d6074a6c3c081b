"""Compiled kernels against plain torch in float64, piece by piece and as a whole model."""

import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from scipy.special import ndtr
from scipy.stats import norm as normal

from fcorr.nn import FCorrTransformer, SplineEmbedding, attention, engine
from fcorr.nn.engine import (
    prepare_engine,
    resolve_engine,
    runs_compiled,
    use_engine,
)
from fcorr.nn.fcorr import FCorrEncoderLayer
from fcorr.nn.kernels import arithmetic
from tests.nn.networks import compare_models, draw_rows, perturb, seeded

# ------------------------------------------------------------------------------- arithmetic


def test_arithmetic():
    x = np.linspace(-699, 699, 5_001)
    values = np.array([arithmetic.exp(v) for v in x])
    np.testing.assert_allclose(values, np.exp(x), rtol=1e-11)
    assert math.isnan(arithmetic.exp(math.nan))
    tiny = 10.0 ** np.linspace(-30, 0, 500)  # where exp(x) - 1 keeps its digits
    x = np.concatenate([-tiny, tiny, np.linspace(-80, 80, 2_001)]).astype(np.float32)
    values = np.array([arithmetic.expm1_32(v) for v in x], dtype=np.float64)
    np.testing.assert_allclose(values, np.expm1(x.astype(np.float64)), rtol=3e-7, atol=0)
    x = np.linspace(-40, 40, 8_001).astype(np.float32)
    values = np.array([arithmetic.gelu_32(v) for v in x])
    np.testing.assert_allclose(values, x * ndtr(x.astype(float)), rtol=0, atol=4e-7)
    slopes = np.array([arithmetic.gelu_slope_32(v) for v in x])
    expected = ndtr(x.astype(float)) + x * normal.pdf(x)
    np.testing.assert_allclose(slopes, expected, rtol=0, atol=4e-7)


# ------------------------------------------------------------------------------------ layers


@pytest.mark.parametrize("factor", [0.1, 1.0, 4.0, 40.0])
def test_columns_of_some_features(factor):
    layer = perturb(FCorrEncoderLayer(30, n_elementwise=1, generator=seeded()))
    with torch.no_grad():
        layer.attention_norm.weight.mul_(factor)
    h = torch.randn(10, 30, generator=seeded(1))
    output, columns, attended = layer.run_kernels(h, [4, 0])
    torch.testing.assert_close(output, layer(h))
    z = layer.attention_norm(h)
    weights = attention.attention_weights(z)
    torch.testing.assert_close(columns, weights[:, :, [4, 0]].transpose(1, 2))
    torch.testing.assert_close(attended, (weights @ z.unsqueeze(2))[:, [4, 0], 0])


# ---------------------------------------------------------------------------------- embedding


def spline():
    knots = [torch.tensor([0.0, 1.0, 4.0]), torch.tensor([2.0]), torch.linspace(-3, 3, 64)]
    return SplineEmbedding(knots, generator=seeded())


def test_locating_numbers():
    embedding = spline()
    x = 3 * torch.randn(1_000, 3, generator=seeded(1))
    x[:3] = torch.tensor([[0.0, 2.0, -3.0], [4.0, 3.0, 3.0], [1.0, 1.0, 1e12]])
    x[3] = torch.nan
    found = embedding.locate(x)
    for j, n_knots in enumerate((3, 1, 64)):
        expected = np.interp(x[:, j], embedding.knots[j, :n_knots], np.arange(n_knots))
        np.testing.assert_allclose(found[4:, j], expected[4:], rtol=1e-5, atol=1e-5)
    assert found[3].isnan().all()
    assert found[:3].tolist() == [[0, 0, 0], [2, 0, 63], [1, 0, 63]]


def make_model(**options):
    knots = [torch.tensor([-1.0, 0.0, 1.0]), torch.tensor([2.0]), torch.linspace(-3, 3, 20)] * 8
    model = FCorrTransformer([3, 2], 24, (8, 8), knots=knots, generator=seeded(), **options)
    return perturb(model, 0.1)


@pytest.mark.parametrize(
    "options",
    [{}, {"n_layers": 3}, {"residual": True}, {"learn_missing": True}],
    ids=["default", "deep", "residual", "missing"],
)
def test_whole_model(options):
    """The compiled model, its gradients included, is the plain one."""
    rows = draw_rows((3, 2), 24, 64, missing=0.1 if "learn_missing" in options else 0.0)
    compare_models(lambda: make_model(**options), *rows)


def test_codes_and_positions_out_of_range_are_refused():
    (codes, numbers), model = draw_rows((3, 2), 24, 64), make_model()
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
    engines = {"auto": "compiled", "compiled": "compiled", "plain": "plain"}
    assert {name: resolve_engine(name) for name in engines} == engines
    with pytest.raises(ValueError, match="engine must be 'auto', 'compiled' or 'plain', got 'gpu'"):
        resolve_engine("gpu")


def test_each_thread_has_its_own_engine():
    """Workers' threads have that of the thread they work for: see the tests of the threads."""
    chosen = {}

    def look(name):
        chosen[name] = runs_compiled(torch.zeros(1))

    with use_engine("plain"):
        thread = threading.Thread(target=look, args=("other",))
        thread.start()
        thread.join()
        look("own")
    assert chosen == {"other": True, "own": False}


def announcements(monkeypatch, folder):
    """What is told when kernels are prepared for; nothing is compiled."""
    told, started = [], []
    monkeypatch.setattr(arithmetic, "_announced", False)
    monkeypatch.setattr(arithmetic, "cache_folder", lambda: folder)
    monkeypatch.setattr(engine, "compile_kernels", lambda: started.append(True))
    before = {*threading.enumerate()}  # some of which, Ray's and Spark's, never end
    for _ in range(2):
        prepare_engine(told.append)
    for thread in {*threading.enumerate()} - before:
        thread.join(10)
    return told, len(started)


def test_waiting_for_the_compiler_is_announced_once(monkeypatch, tmp_path):
    text = "compiling fcorr's kernels, once per installation; it takes about 10 seconds"
    with use_engine("plain"):
        assert announcements(monkeypatch, tmp_path) == ([], 0)
    assert announcements(monkeypatch, tmp_path) == ([text], 2)
    told = announcements(monkeypatch, None)[0]
    assert told == ["compiling fcorr's kernels, in every process; it takes about 10 seconds"]
    (tmp_path / "encoder.encoder_backward-0123456789abcdef.nbc").touch()
    assert announcements(monkeypatch, tmp_path) == ([], 0)


def test_kernels_of_a_usual_fit_are_compiled_ahead(tmp_path):
    """A fit after it compiles nothing: neither another kernel nor another kind of arrays."""
    program = (
        "import numpy as np; from fcorr import FCorrClassifier; from fcorr.nn import engine\n"
        "from fcorr.nn.kernels import encoder, network\n"
        "def signatures():\n"
        "    both = {**vars(network), **vars(encoder)}\n"
        "    return {k: len(v.signatures) for k, v in both.items() if hasattr(v, 'signatures')}\n"
        "engine.compile_kernels(); before = signatures()\n"
        "rng = np.random.default_rng(0); X = rng.normal(size=(300, 3)); X[:, 2] = X[:, 2] > 0\n"
        "model = FCorrClassifier(n_members=2, epochs=1, random_state=0).fit(X, X[:, 0] > 0)\n"
        "model.predict_proba(X); print(before == signatures(), max(before.values()))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "True 1\n"
