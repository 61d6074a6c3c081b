"""Every stage of the worst case against rows: narrow boxes around a row must hold it."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fcorr.certify.attention_bounds import tilt_bounds
from fcorr.certify.boxes import Boxes, enter, scales_of
from fcorr.certify.domain import Domain, embedding_pieces
from fcorr.certify.encoder_bounds import Normed
from fcorr.certify.gelu_ranges import gelu_slope, gelu_slope_span, gelu_span
from fcorr.certify.head_bounds import bound_head
from fcorr.certify.intervals import Span
from fcorr.certify.layer_norm import Sway
from fcorr.certify.rows import NormedRow, hull
from fcorr.certify.worst_cases import run_stages
from fcorr.nn.layers import FeedForward

SLACK = 1e-6  # of the differences that stand in for derivatives


def boxes_around(seen, norm, width, later):
    """One box per row, around its own mean (given), divisors and extremes."""
    divisors = [divisor_B for divisor_B, _ in seen]
    z_BF = norm.weight_F * seen[0][1] + norm.bias_F
    middle = torch.stack([divisors[0], z_BF.amax(1), z_BF.amin(1), *divisors[1:]], 1)
    low, high = middle - width * middle.abs(), middle + width * middle.abs()
    if not later:
        low[:, 3:], high[:, 3:] = 0.0, torch.inf
    return low, high


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_layers=st.sampled_from([1, 1, 2]),
    residual=st.booleans(),
    embedding=st.sampled_from(["spline", "paper"]),
    p=st.sampled_from([3, 6, 20]),
    outlier=st.sampled_from([0.0, 3.0]),
    rough=st.sampled_from([0.0, 0.4]),
    width=st.sampled_from([1e-3, 0.1, 0.4, 0.9]),
    later=st.booleans(),
    head=st.sampled_from([(), (8,), (8, 8)]),
    moving=st.sampled_from([0, -1]),
)
def test_rows_and_their_slopes_lie_in_the_bounds(
    lab, seed, n_layers, residual, embedding, p, outlier, rough, width, later, head, moving
):
    cards, n_numeric = (3, 2) if p == 3 else (3, 2, 4), p - (2 if p == 3 else 3)
    model = lab.make_model(
        cards,
        n_numeric,
        seed=seed,
        outlier=outlier,
        rough=rough,
        n_layers=n_layers,
        residual=residual,
        numeric_embedding=embedding,
        learn_missing=True,
        head=head,
        n_outputs=2,
    )
    domain = Domain(low=[-3.0] * n_numeric, high=[3.0] * n_numeric)
    moving = moving % p
    pieces = embedding_pieces(model, domain, moving, n_pieces=8)
    exact = copy.deepcopy(model).double()
    with torch.no_grad():
        e_BF = model.embed(*lab.random_inputs(model, 12, seed)).double()
    low, high = pieces.low_FP[moving].min(), pieces.high_FP[moving].max()
    e_BF[:, moving] = low + (high - low) * torch.rand(12, dtype=torch.float64)
    seen, moved, output_BO, slope_BO = lab.stages_and_slopes(exact, e_BF, moving)

    norm = scales_of(model.first_layer.attention_norm)
    low, high = boxes_around(seen, norm, width, later)
    mean_B1, spread_B1 = e_BF.mean(1, keepdim=True), width * seen[0][0][:, None]
    boxes = Boxes(
        torch.cat([mean_B1 - spread_B1, low], 1), torch.cat([mean_B1 + spread_B1, high], 1)
    )
    with torch.no_grad():
        start = enter(pieces, boxes, norm)
        assert len(start.boxes) == 12, "a box around a row was dropped"
        norms, bounds = run_stages(model, start, moving)

    others = [i for i in range(p) if i != moving]
    for normed, (divisor_B, x_BF), dx_BF in zip(norms, seen, moved, strict=True):
        assert holds(normed.divisor_K, divisor_B)
        assert holds(hull(normed.row.x_KFP), x_BF)
        assert holds(normed.row.square_K, x_BF.square().mean(1))
        assert holds(normed.sway.own_K, dx_BF[:, moving])
        assert is_below(dx_BF[:, others].abs(), normed.sway.others_KF[:, others])
        assert is_below(dx_BF[:, others].norm(dim=1), normed.sway.norm_K)
        assert is_below(dx_BF.norm(dim=1), normed.sway.total_K)
    assert holds(bounds.range_KO, output_BO)
    assert is_below(slope_BO.abs(), bounds.slope_KO)


def holds(span, values):
    return is_below(span.low, values) and is_below(values, span.high)


def is_below(a, b):
    return bool((a <= b + SLACK * (1 + b.abs())).all())


@pytest.mark.parametrize("seed", range(4))
def test_tilted_means_lie_in_their_cells(lab, seed):
    model = lab.make_model((3, 2, 4), 9, seed=seed, outlier=seed % 2)
    exact = copy.deepcopy(model).double()
    with torch.no_grad():
        e_BF = model.embed(*lab.random_inputs(model, 20, seed)).double()
        seen, *_ = lab.stages_and_slopes(exact, e_BF, 0)
        norm = scales_of(model.first_layer.attention_norm)
        low, high = boxes_around(seen, norm, 0.05, later=False)
        mean_B1 = e_BF.mean(1, keepdim=True)
        boxes = Boxes(torch.cat([mean_B1 - 0.01, low], 1), torch.cat([mean_B1 + 0.01, high], 1))
        start = enter(embedding_pieces(model, Domain(), 0, 8), boxes, norm)
        tilts = tilt_bounds(start.row, norm.weight_F, norm.bias_F)
        z_BF = exact.first_layer.attention_norm(e_BF)
    assert holds(tilts.mean_K, z_BF.mean(1))
    assert holds(Span(*(end[:, 0, 0] for end in tilts.shape.variance)), z_BF.var(1, correction=0))
    y_BF = z_BF - z_BF.mean(1, keepdim=True)
    for share in torch.rand(5, dtype=torch.float64):
        tau_BT = tilts.edges_KT[:, :-1] + share * tilts.edges_KT.diff(dim=1)
        exp_BTF = torch.exp(tau_BT[:, :, None] * y_BF[:, None])
        weight_BTF = exp_BTF / exp_BTF.sum(2, keepdim=True)
        g_BT = (weight_BTF * y_BF[:, None]).sum(2)
        variance_BT = (weight_BTF * y_BF[:, None].square()).sum(2) - g_BT.square()
        assert holds(tilts.mean_exp_KT, exp_BTF.mean(2))
        assert holds(tilts.g_KT, g_BT)
        assert holds(tilts.variance_KT, variance_BT)


@pytest.mark.parametrize(("hidden", "reach"), [((8, 8), 0.8), ((1,), 9.0)])
def test_head_bounds_hold_for_any_change_within_the_sway(hidden, reach):
    generator = torch.Generator().manual_seed(0)
    p, n = 6, 4000
    head = FeedForward(p, hidden, 2, generator=generator).double()
    for layer in [*head.hidden, head.output]:
        layer.weight.data *= 3
    norm = nn.LayerNorm(p).double()
    norm.weight.data += 0.3 * torch.randn(p, generator=generator, dtype=torch.float64)

    def draw(*shape):
        return 2 * torch.rand(*shape, generator=generator, dtype=torch.float64) - 1

    x_NF = draw(n, p)
    x_NF = x_NF - x_NF.mean(1, keepdim=True)
    x_NF = x_NF / x_NF.square().mean(1, keepdim=True).sqrt()
    near = x_NF[(x_NF - x_NF[0]).abs().amax(1) < reach]
    change_NF = draw(len(near), p) * torch.tensor([1.0, 0.1, 0.1, 0.4, 0.1, 0.1])
    edge = Span(near.amin(0)[None, :, None], near.amax(0)[None, :, None])
    nothing, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    row = NormedRow(edge, Span(one, one), Span(nothing, 3 * one), Span(-3 * one, nothing))
    sway = Sway(
        Span(change_NF[:, 0].amin()[None], change_NF[:, 0].amax()[None]),
        change_NF.abs().amax(0)[None].index_fill(1, torch.tensor(0), 0),
        change_NF[:, 1:].norm(dim=1).amax()[None],
        change_NF.norm(dim=1).amax()[None],
    )
    with torch.no_grad():
        bounds = bound_head(head, norm, Normed(row, Span(one, one), edge, sway, sway), 0)

    def f(x):
        return head(x * norm.weight + norm.bias)

    with torch.no_grad():
        slopes = (f(near + 1e-6 * change_NF) - f(near - 1e-6 * change_NF)) / 2e-6
        assert holds(bounds.range_KO, f(near))
    assert is_below(slopes.abs(), bounds.slope_KO)
    assert bool((bounds.slope_KO < 8 * slopes.abs().amax(0)).all())


@pytest.mark.parametrize("residual", [False, True])
def test_narrow_boxes_give_bounds_near_the_truth(lab, residual):
    """A bound can be sound and useless: around one row it must be within a small factor."""
    model = lab.make_model((3, 2, 4), 5, residual=residual, rough=0.1)
    exact = copy.deepcopy(model).double()
    with torch.no_grad():
        e_BF = model.embed(*lab.random_inputs(model, 6)).double()
    seen, _, _, slope_BO = lab.stages_and_slopes(exact, e_BF, 0)
    ratios = []
    for row, (divisor, x_F) in enumerate(zip(seen[0][0], seen[0][1], strict=True)):
        fixed = embedding_pieces(model, Domain(), 0, n_pieces=8)
        point_FP = e_BF[row][:, None].expand_as(fixed.low_FP)
        fixed = fixed._replace(low_FP=point_FP, high_FP=point_FP)
        norm = scales_of(model.first_layer.attention_norm)
        z_F = norm.weight_F * x_F + norm.bias_F
        middle = torch.stack([e_BF[row].mean(), divisor, z_F.max(), z_F.min()])
        later = torch.stack([d[row] for d, _ in seen[1:]])
        middle = torch.cat([middle, later])[None]
        slack = 1e-6 * middle.abs() + 1e-9
        with torch.no_grad():
            start = enter(fixed, Boxes(middle - slack, middle + slack), norm)
            _, bounds = run_stages(model, start, 0)
        ratios.append(float(bounds.slope_KO[0, 0] / slope_BO[row, 0].abs()))
    assert min(ratios) >= 1
    assert sorted(ratios)[len(ratios) // 2] < 60


def test_gelu_ranges_are_exact():
    generator = torch.Generator().manual_seed(0)
    ends = 4 * torch.randn(500, 2, generator=generator, dtype=torch.float64)
    span = Span(ends.amin(1), ends.amax(1))
    steps = torch.linspace(0, 1, 4001, dtype=torch.float64)
    at = span.low[:, None] + (span.high - span.low)[:, None] * steps
    for function, bound in (
        (torch.nn.functional.gelu, gelu_span(span)),
        (gelu_slope, gelu_slope_span(span)),
    ):
        values = function(at)
        assert holds(Span(bound.low[:, None], bound.high[:, None]), values)
        torch.testing.assert_close(values.amin(1), bound.low, atol=1e-5, rtol=0)
        torch.testing.assert_close(values.amax(1), bound.high, atol=1e-5, rtol=0)
