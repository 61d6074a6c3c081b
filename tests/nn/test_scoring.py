"""Scores of rows: against torch in float64, and each row's bits by itself."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from fcorr.nn import FCorrTransformer
from fcorr.nn.engine import run_head, use_engine
from fcorr.nn.fcorr import Pack
from fcorr.nn.kernels.encoder import SERIES
from fcorr.nn.layers import FeedForward
from tests.nn.networks import draw_rows, perturb, seeded

SIZES = [1, 2, 3, 7, 10, 15, 16, 17, 31, 64, 100, 128, 255, 300]


def make_network(n_features, head, seed=0, **options):
    """Make a network with as many categorical as numeric features, far from its start."""
    n_categorical = n_features // 2
    model = FCorrTransformer(
        [3] * n_categorical,
        n_features - n_categorical,
        head,
        learn_missing=True,
        generator=seeded(seed),
        **options,
    )
    return perturb(model, seed=seed + 1).eval()


def make_rows(model, n_rows):
    n_numeric = model.n_features - len(model.cat_cardinalities)
    return draw_rows(model.cat_cardinalities, n_numeric, n_rows, missing=0.1)


@pytest.mark.parametrize("hidden", [(), (1,), (15,), (16,), (17, 5), (300, 33, 128)])
@pytest.mark.parametrize("n_features", [1, 4, 33])
def test_head_against_torch_in_double_precision(hidden, n_features):
    norm = torch.nn.LayerNorm(n_features)
    head = FeedForward(n_features, hidden, 3, generator=seeded())
    h = torch.randn(7, n_features, generator=seeded(1))
    with torch.no_grad():
        norm.weight.normal_(generator=seeded(2))
        norm.bias.normal_(generator=seeded(3))
        found = run_head(norm, [*head.hidden, head.output], h)
        expected = head.double()(norm.double()(h.double()))
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=0, atol=2e-6)


KINDS = {
    "spline": {"numeric_embedding": "spline"},
    "paper": {"numeric_embedding": "paper"},
    "views": {"n_views": 3},
    "additive": {"n_views": 4, "n_outputs": 2, "additive": [0], "residual": True},
}


@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_the_outputs(kind, n_layers):
    model = make_network(9, (8, 20), n_layers=n_layers, **KINDS[kind])
    codes, numbers = make_rows(model, 50)
    scores = model.score(codes, numbers)
    with torch.no_grad(), use_engine("plain"):
        expected = model.double()(codes, numbers.double())
    np.testing.assert_allclose(scores.numpy(), expected.numpy(), rtol=0, atol=5e-6)


# The bits of a row. Widths of tables and heads go together at random: every pair would take long.
PAIRS = [(p, SIZES[(5 * i + 3) % len(SIZES)]) for i, p in enumerate(SIZES)]
PAIRS += [(int(p), int(q)) for p, q in np.random.default_rng(0).integers(1, 301, (26, 2))]


def check_that_rows_are_by_themselves(model, n_rows=67):
    """Shuffled, alone, repeated, and by one to three threads at once: the same bits."""
    codes, numbers = make_rows(model, n_rows)
    scores = model.score(codes, numbers)
    assert torch.isfinite(scores).all()
    if model.members[0].views is not None:  # main effects tell rows apart
        assert len(scores.unique(dim=0)) > 1
    for engine in ("plain", "compiled"):
        with use_engine(engine):
            order = torch.randperm(n_rows, generator=seeded(5))
            assert torch.equal(model.score(codes[order], numbers[order]), scores[order])
            for row in range(0, n_rows, 6):
                alone = model.score(codes[row : row + 1], numbers[row : row + 1])
                assert torch.equal(alone, scores[row : row + 1])
            twins = [part.repeat_interleave(3, 0) for part in (codes, numbers)]
            assert torch.equal(model.score(*twins), scores.repeat_interleave(3, 0))
    for n_threads in (1, 2, 3):
        size = -(-n_rows // n_threads)
        parts = zip(codes.split(size), numbers.split(size), strict=True)
        with ThreadPoolExecutor(n_threads) as threads:
            together = torch.cat([*threads.map(lambda part: model.score(*part), parts)])
        assert torch.equal(together, scores)


@pytest.mark.parametrize(("n_features", "width"), PAIRS)
@pytest.mark.parametrize("kind", ["spline", "paper", "views"])
def test_a_rows_bits_are_its_own(n_features, width, kind):
    depth = 1 + width % 2
    check_that_rows_are_by_themselves(make_network(n_features, (width,) * depth, **KINDS[kind]))


@pytest.mark.parametrize("n_features", [1, 2, 5, 64, 130])
@pytest.mark.parametrize("n_views", [1, 8])
def test_a_rows_bits_are_its_own_among_views(n_features, n_views):
    """The views of several rows share a block of lanes."""
    check_that_rows_are_by_themselves(make_network(n_features, (9,), n_views=n_views, n_layers=2))


@pytest.mark.parametrize("series", SERIES[:-1])
def test_a_rows_bits_are_its_own_beside_rows_that_take_another_series(series):
    model, limit = make_network(40, (9,), n_views=3), series[2]
    norm = model.first_layer.attention_norm

    def largest_exponents():
        z = norm(model.embed(*make_rows(model, 67)))
        return (z - z.mean(2, keepdim=True)).abs().amax(2) * z.abs().amax(2) / 40**0.5

    with torch.no_grad():
        grow = (limit / largest_exponents().median()).sqrt()
        for parameter in norm.parameters():
            parameter.mul_(grow)
        above = largest_exponents() > limit
    assert 0.2 < above.float().mean() < 0.8
    check_that_rows_are_by_themselves(model)


@pytest.mark.parametrize(("n_features", "width"), [(1, 300), (13, 64), (128, 17), (200, 1)])
def test_a_rows_bits_are_its_own_in_a_pack(n_features, width):
    options = [{"n_views": 4}, {"n_views": 8, "residual": True}, {"n_views": 1, "n_layers": 2}]
    members = [make_network(n_features, (width,), i, **each) for i, each in enumerate(options)]
    check_that_rows_are_by_themselves(Pack(members).eval())
