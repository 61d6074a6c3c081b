"""Bounds from variance and extremes against rows of all shapes, those that attain them included."""

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fcorr.certify.covariances import attended_spread
from fcorr.certify.intervals import Span
from fcorr.certify.rows import NormedRow
from fcorr.certify.two_points import Shape, mean_exp, own_pull, tilted_base, tilted_mean

SLACK = 1e-9


def box(x):
    return x.reshape(1, 1, 1)


def draw_row(seed, p, kind, size):
    generator = torch.Generator().manual_seed(seed)

    def normal(n):
        return torch.randn(n, generator=generator, dtype=torch.float64)

    if kind == "normal":
        y = normal(p)
    elif kind == "skewed":
        y = normal(p).abs() ** 4
    else:  # two values, nearly
        y = (normal(p) > 1).double() + 1e-3 * normal(p)
    y = (y - y.mean()) * size
    return -y if seed % 2 else y


def shape_of(y, slack):
    variance = y.var(correction=0)
    return Shape(
        Span(box(variance * (1 - slack)), box(variance * (1 + slack))),
        box(y.min() * (1 + slack)).clamp(max=-1e-9),
        box(y.max() * (1 + slack)).clamp(min=1e-9),
    )


def tilted(y, tilts):
    weights = torch.softmax(tilts[:, None] * y, 1)
    return (weights * y).sum(1)


rows = given(
    seed=st.integers(0, 10**6),
    p=st.integers(3, 40),
    kind=st.sampled_from(["normal", "skewed", "two"]),
    size=st.sampled_from([0.1, 1.0, 5.0]),
    slack=st.sampled_from([0.0, 0.2]),
)


@settings(max_examples=200, deadline=None)
@rows
@example(seed=4011, p=3, kind="skewed", size=5.0, slack=0.0)  # near the largest float
def test_tilted_means_and_sums(seed, p, kind, size, slack):
    y = draw_row(seed, p, kind, size)
    shape = shape_of(y, slack)
    tilts = torch.linspace(-6, 6, 61, dtype=torch.float64)
    for width in (0.0, 0.3):
        span = Span((tilts - width).reshape(1, 1, -1), (tilts + width).reshape(1, 1, -1))
        g, total = tilted_mean(shape, span), mean_exp(shape, span)
        for at in (tilts - width, tilts, tilts + width):
            true = tilted(y, at)
            assert bool(
                (g.low[0, 0] <= true + SLACK).all() and (true <= g.high[0, 0] + SLACK).all()
            )
            exps = torch.exp(at[:, None] * y).mean(1)
            assert bool((total.low[0, 0] <= exps * (1 + SLACK)).all())
            assert bool((exps <= total.high[0, 0] * (1 + SLACK)).all())


def test_two_values_attain_the_bound():
    m, r = 2.0, 0.5
    share = r / (m + r)  # of -m, for a mean of 0
    y = torch.tensor([-m] * 20 + [r] * 80, dtype=torch.float64)
    assert share == pytest.approx(0.2)
    tilts = torch.linspace(0, 5, 11, dtype=torch.float64)
    low = tilted_mean(shape_of(y, 0.0), Span(*[tilts.reshape(1, 1, -1)] * 2)).low[0, 0]
    torch.testing.assert_close(low, tilted(y, tilts))


@settings(max_examples=200, deadline=None)
@rows
def test_a_number_that_is_known_pulls_no_more_than_it_does(seed, p, kind, size, slack):
    y = draw_row(seed, p, kind, size)
    above = y[y > 0]
    tilts = above / math.sqrt(p)
    share = torch.tensor(1 / p, dtype=torch.float64)
    for known in (above, above * 0.8, above - 0.5):  # or less than it is
        pull = own_pull(shape_of(y, slack), tilts[None, None], known[None, None], share)[0, 0]
        assert bool((pull <= tilted(y, tilts) + SLACK).all())


@settings(max_examples=200, deadline=None)
@rows
def test_weights_of_another_tilt(seed, p, kind, size, slack):
    y = draw_row(seed, p, kind, size)
    for tilt in (-0.4, 0.0, 0.2):
        at = torch.tensor(tilt, dtype=torch.float64)
        base = tilted_base(shape_of(y, slack), Span(box(at - slack / 4), box(at + slack / 4)))
        weights = torch.softmax(at * y, 0)
        mean = (weights * y).sum()
        variance = (weights * (y - mean).square()).sum()
        spread = base.shape
        assert float(spread.variance.low) <= variance + SLACK
        assert variance <= float(spread.variance.high) + SLACK
        assert float(spread.smallest) <= (y - mean).min() + SLACK
        assert float(spread.largest) >= (y - mean).max() - SLACK
        assert float(base.away) >= mean.abs() - SLACK
        assert float(base.least_share) <= p * weights.min() + SLACK


@settings(max_examples=200, deadline=None)
@rows
def test_attention_spreads_at_least_that_much(seed, p, kind, size, slack):
    y = draw_row(seed, p, kind, min(size, 2.0))
    for mean in (-0.5, 0.0, 1.0):
        z = y + mean
        attended = tilted(y, z / math.sqrt(p))
        ends = [Span(end[None] - slack, end[None] + slack) for end in (z.max(), z.min())]
        row = NormedRow(None, None, *ends)
        mean_K = Span(z.mean()[None] - slack / 2, z.mean()[None] + slack / 2)
        shape = shape_of(y, slack)
        wide = shape._replace(
            smallest=shape.smallest - 2 * slack, largest=shape.largest + 2 * slack
        )
        bound = float(attended_spread(row, wide, mean_K, p))
        assert bound <= float(attended.std(correction=0)) + SLACK
        if kind == "normal" and p > 10 and size <= 1 and not slack and not mean:
            assert bound > 0.5 * float(attended.std(correction=0))
