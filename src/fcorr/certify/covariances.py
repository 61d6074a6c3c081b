r"""How small the spread after a stage can be, by its covariance with the normed row before it.

A stage makes numbers v of the numbers x that a LayerNorm puts out. By Cauchy and Schwarz

    var v ≥ cov(v, x)²/mean x²,   cov(v, x) = mean x_i v_i,

and the covariance is a sum over the features, to which the multipliers of :mod:`fcorr.certify.rows`
apply: ``mean x_i v_i ≥ mean_i min_x [x v_i(x) − λx − κx²] + κ mean x²`` for any λ and κ. The bound
is good where v rises with x in most features, as it does after attention, which pulls a feature the
further the further out it is, and after a residual, which adds x itself.

The minima are taken over a grid of cells of x that all boxes share.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from fcorr.certify.intervals import Span
from fcorr.certify.rows import NormedRow, hull
from fcorr.certify.two_points import Shape, own_pull, tilted_base, tilted_mean

_MOST_CELLS, _LEAST_CELLS = 128, 32
_TINY = 1e-30
_SHARES = (0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2)  # of the typical slope, tried as κ
_MOST_SHARES = (0.7, 1.0, 1.5, 2.5, 4.0, 8.0)  # of the squared slope, tried as κ from above


def cells_of(n_features: int) -> Tensor:
    """Edges of the cells of x, from −√(p − 1) to √(p − 1): narrow around 0, which is an edge."""
    reach = math.sqrt(max(n_features - 1, 1)) * (1 + 1e-9)
    # The more features, the less does each of them weigh, and the wider may its cells be.
    n_cells = 2 * min(_MOST_CELLS // 2, max(_LEAST_CELLS // 2, 1024 // n_features))
    steps = torch.linspace(-1, 1, n_cells + 1, dtype=torch.float64)
    return torch.sinh(steps * math.asinh(2 * reach)) / 2


class Pull(NamedTuple):
    """What attention makes of each feature on each cell of x: G(z_i/√p), ``(K, F, N)``.

    Attention's output is ``a_i = G(z_i/√p)`` but for a constant that all features share, and G is
    known from two sides (:mod:`fcorr.certify.two_points`).
    """

    g_KFN: Span
    z_FN: Span
    outside_KFN: Tensor
    """Cells that a feature does not reach."""


def attention_pull(
    row: NormedRow, weight_F: Tensor, bias_F: Tensor, shape: Shape, mean_K: Span
) -> Pull:
    """Bound the attention output on the cells."""
    edges = cells_of(len(weight_F))
    left, right = edges[:-1], edges[1:]
    root = math.sqrt(len(weight_F))
    x_FN = Span(left.expand(len(weight_F), -1), right.expand(len(weight_F), -1))
    z_FN = x_FN.scaled(weight_F[:, None]).shifted(bias_F[:, None])
    tilt_FN = Span(z_FN.low / root, z_FN.high / root)
    g_KFN = tilted_mean(shape, tilt_FN)
    mean_K11 = Span(mean_K.low[:, None, None], mean_K.high[:, None, None])
    share = torch.tensor(1 / len(weight_F), dtype=torch.float64)
    own_low = own_pull(shape, tilt_FN.low, z_FN.low - mean_K11.high, share)
    own_high = own_pull(shape.mirrored(), -tilt_FN.high, mean_K11.low - z_FN.high, share)
    g_KFN = Span(
        torch.where(tilt_FN.low > 0, torch.maximum(g_KFN.low, own_low), g_KFN.low),
        torch.where(tilt_FN.high < 0, torch.minimum(g_KFN.high, -own_high), g_KFN.high),
    )
    x_KF = hull(row.x_KFP)
    outside_KFN = (right < x_KF.low[:, :, None]) | (left > x_KF.high[:, :, None])
    return Pull(g_KFN, z_FN, outside_KFN)


def attended_covariance(row: NormedRow, weight_F: Tensor, pull: Pull, typical_K: Tensor) -> Tensor:
    r"""Bound ``cov(a, x)`` from below, a the attention output: ``(K,)``.

    On a cell with x ≥ 0 G is replaced by its smallest value there, and with x ≤ 0 by its largest:
    what is left is concave in x, for κ ≥ 0, so that the ends of the cell suffice.

    Parameters
    ----------
    row : NormedRow
        The numbers x.
    weight_F : Tensor
        LayerNorm's weights.
    pull : Pull
        What attention makes of them.
    typical_K : Tensor
        Slope of a by x as one would guess it.
    """
    edges = cells_of(len(weight_F))
    left, right = edges[:-1], edges[1:]
    g_KFN, z_FN, outside_KFN = pull
    # λ: taking a constant off G changes nothing, as the mean of x is 0.
    middle_K11 = g_KFN.middle[:, :, len(left) // 2].mean(1)[:, None, None]
    pull_KFN = torch.where(left >= 0, g_KFN.low, g_KFN.high) - middle_K11
    ends = [(at * pull_KFN).masked_fill(outside_KFN, torch.inf) for at in (left, right)]
    best_K = torch.full_like(row.square_K.low, -torch.inf)
    # A cell in which a feature can be the row's largest, or its smallest.
    can_be_end = (
        z_FN.high >= row.largest_K.low[:, None, None],
        z_FN.low <= row.smallest_K.high[:, None, None],
    )
    apart_K = row.largest_K.low > row.smallest_K.high
    for share in (0.0, *_SHARES):
        kappa_K11 = share * typical_K[:, None, None].clamp(min=0)
        least_KFN = torch.minimum(
            ends[0] - kappa_K11 * left.square(), ends[1] - kappa_K11 * right.square()
        )
        least_KF = least_KFN.amin(2)
        # Some feature has to be the largest: what that costs at least, beyond its own minimum.
        extra_K2 = torch.stack(
            [
                (least_KFN.masked_fill(~here, torch.inf).amin(2) - least_KF).amin(1)
                for here in can_be_end
            ],
            1,
        ).nan_to_num(posinf=0.0)
        extra_K = torch.where(apart_K, extra_K2.sum(1), extra_K2.amax(1))
        bound_K = least_KF.mean(1) + extra_K / len(weight_F)
        best_K = torch.maximum(best_K, bound_K + kappa_K11[:, 0, 0] * row.square_K.low)
    return best_K


def most_variance(row: NormedRow, pull: Pull, kept_K: Tensor, typical_K: Tensor) -> Tensor:
    """Bound ``var(s·x + a)`` from above for s up to ``kept_K``: by the mean square, ``(K,)``."""
    edges = cells_of(pull.z_FN.low.shape[0])
    x = Span(edges[:-1], edges[1:])
    nearest = torch.minimum(x.low.abs(), x.high.abs()).square()
    kept_K11 = kept_K[:, None, None]
    size_KFN = x.times(Span(0 * kept_K11, kept_K11)).plus(pull.g_KFN).magnitude
    square_KFN = size_KFN.square().masked_fill(pull.outside_KFN, -torch.inf)
    best_K = square_KFN.amax(2).mean(1)
    for share in _MOST_SHARES:
        kappa_K11 = share * (kept_K + typical_K).square()[:, None, None]
        bound_K = (square_KFN - kappa_K11 * nearest).amax(2).mean(1)
        best_K = torch.minimum(best_K, bound_K + kappa_K11[:, 0, 0] * row.square_K.high)
    return best_K


def attended_spread(row: NormedRow, shape: Shape, mean_K: Span, n_features: int) -> Tensor:
    r"""Bound the deviation of the attention output over the features from below: ``(K,)``.

    As above, with ``y = z − mean z`` in the place of x: ``cov(a, y)/dev y``. The tilts are
    ``τ_0 + y_i/√p`` with one τ_0 = mean z/√p for all, and the mean of y is 0, so that

        cov(a, y) = mean y_i (G(τ_0 + y_i/√p) − G(τ_0)),

    in which no term is negative. The difference is a tilted mean as well, under the weights that
    belong to τ_0: of numbers less G(τ_0), whose variance is at least σ² times the least weight.
    """
    root = math.sqrt(n_features)
    base = tilted_base(shape, Span(*(end[:, None, None] / root for end in mean_K)))
    edges = torch.linspace(0, 1, _MOST_CELLS + 1, dtype=torch.float64).square()
    sides = []
    for side, spread in ((1, base.shape), (-1, base.shape.mirrored())):
        y_K1N = (shape.largest if side > 0 else -shape.smallest) * edges
        near, far = y_K1N[:, :, :-1], y_K1N[:, :, 1:]
        # The own number less G(τ_0), which may be of either sign.
        pull = own_pull(spread, near / root, near - base.away, base.least_share / n_features)
        pull = torch.maximum(pull, tilted_mean(spread, Span(near / root, near / root)).low)
        reached_K = (
            row.largest_K.low - mean_K.high if side > 0 else mean_K.low - row.smallest_K.high
        )
        sides.append((near, far, pull, far >= reached_K[:, None, None]))
    variance_K11 = shape.variance.low
    deviation_K = Span(*(end[:, 0, 0].sqrt() for end in shape.variance))
    best_K = torch.zeros_like(mean_K.low)
    for share in (0.1, 0.2, *_SHARES):
        kappa_K11, extra_K = share * variance_K11 / root, torch.zeros_like(best_K)
        least = [
            torch.minimum(*(at * (pull - kappa_K11 * at) for at in (near, far)))
            for near, far, pull, _ in sides
        ]
        least_K = torch.cat(least, 2).amin((1, 2))
        # Some feature is as far out as the row's largest, some as its smallest.
        for values, (*_, reaches) in zip(least, sides, strict=True):
            as_end_K = values.masked_fill(~reaches, torch.inf).amin((1, 2))
            extra_K = extra_K + (as_end_K - least_K).nan_to_num(posinf=0.0) / n_features
        # cov/σ = κσ + (what is left)/σ, at the σ where it is least.
        kappa_K, left_K = kappa_K11[:, 0, 0], least_K + extra_K
        sigma_K = (left_K.clamp(min=0) / kappa_K.clamp(min=_TINY)).sqrt()
        sigma_K = torch.minimum(torch.maximum(sigma_K, deviation_K.low), deviation_K.high)
        sigma_K = sigma_K.clamp(min=_TINY)
        best_K = torch.maximum(best_K, kappa_K * sigma_K + left_K / sigma_K)
    return best_K


def least_variance(covariance_K: Tensor, divisor_K: Tensor, square_K: Span) -> Tensor:
    """Bound ``var(v + s·x)`` from below, given bounds from below on ``cov(v, x)`` and on s."""
    root_K = Span(*(end.sqrt().clamp(min=1e-12) for end in square_K))
    across_K = torch.where(covariance_K >= 0, covariance_K / root_K.high, covariance_K / root_K.low)
    return (across_K + divisor_K * square_K.low.sqrt()).clamp(min=0).square()


class StackCovariance:
    r"""Bounds ``cov(φ(x), x)`` from below, φ the element-wise functions that follow a LayerNorm.

    On a cell of width Δ the function ``f(x) = x φ(x) − λx − κx²`` lies above the two lines through
    its ends whose slopes are the extremes of f'. It does not depend on the box, so its minima over
    cells are found once, and those over a run of cells looked up.

    Parameters
    ----------
    stack : callable
        Range of φ and of its slope on ranges of x, ``(F, N)`` both.
    n_features : int
        Number of features, p.
    """

    def __init__(self, stack: Callable[[Span], tuple[Span, Span]], n_features: int) -> None:
        self.edges = cells_of(n_features)
        left, right = self.edges[:-1], self.edges[1:]
        shape = (n_features, len(left))
        cells_FN = Span(left.expand(shape), right.expand(shape))
        value_FN, slope_FN = stack(cells_FN)
        ends = [stack(Span(end, end))[0].middle for end in cells_FN]
        rise_FN = value_FN.plus(slope_FN.times(cells_FN))  # of x φ(x)
        zero = torch.zeros(n_features, 1, dtype=torch.float64)
        at_zero_F1 = stack(Span(zero, zero))[0].middle
        steepest = float(slope_FN.magnitude.max())
        offset = float(at_zero_F1.std(correction=0))
        # With κ above the least slope, features that fall are paid for by how far out they can be.
        sizes = torch.logspace(-2.5, 0.2, 10, dtype=torch.float64) * (steepest + offset)
        self.kappas = [0.0, *(-sizes).tolist(), *(sizes[::3]).tolist()]
        lambda_ = float(at_zero_F1.mean())
        self.tables = []
        for kappa in self.kappas:
            first, last = (
                x * (end - lambda_ - kappa * x) for x, end in zip(cells_FN, ends, strict=True)
            )
            bend = Span(2 * kappa * left, 2 * kappa * right)
            down = Span(-torch.maximum(*bend), -torch.minimum(*bend))
            slopes = rise_FN.plus(down).shifted(torch.tensor(-lambda_))
            self.tables.append(_RunMinima(_least_between(first, last, slopes, right - left)))

    def __call__(self, row: NormedRow) -> Tensor:
        """Bound the covariance for the rows of each box: ``(K,)``."""
        x_KF = hull(row.x_KFP)
        n_cells = len(self.edges) - 1
        first_KF = (torch.searchsorted(self.edges, x_KF.low) - 1).clamp(0, n_cells - 1)
        last_KF = (torch.searchsorted(self.edges, x_KF.high) - 1).clamp(0, n_cells - 1)
        last_KF = torch.maximum(first_KF, last_KF)
        bounds = []
        for kappa, table in zip(self.kappas, self.tables, strict=True):
            square_K = row.square_K.low if kappa >= 0 else row.square_K.high
            bounds.append(table(first_KF, last_KF).mean(1) + kappa * square_K)
        return torch.stack(bounds).amax(0)


def _least_between(first: Tensor, last: Tensor, slope: Span, width: Tensor) -> Tensor:
    """Smallest value on a cell of a function with these end values and slopes."""
    falls_then_rises = (slope.low < 0) & (slope.high > 0)
    run = (slope.high - slope.low).clamp(min=1e-300)
    meeting = (slope.high * first - slope.low * last + slope.low * slope.high * width) / run
    least = torch.minimum(first, last)
    return torch.where(falls_then_rises, torch.minimum(meeting, least), least)


class _RunMinima:
    """Smallest of any run of entries of each row of a table, by doubling."""

    def __init__(self, table_FN: Tensor) -> None:
        self.levels = [table_FN]
        while (step := 2 ** (len(self.levels) - 1)) * 2 <= table_FN.shape[1]:
            before = self.levels[-1]
            self.levels.append(torch.minimum(before[:, :-step], before[:, step:]))

    def __call__(self, first_KF: Tensor, last_KF: Tensor) -> Tensor:
        length_KF = last_KF - first_KF + 1
        level_KF = (length_KF.double().log2() + 1e-9).floor().long()
        place_F = torch.arange(first_KF.shape[1]).expand_as(first_KF)
        least_KF = torch.full(first_KF.shape, torch.inf, dtype=torch.float64)
        for level, table in enumerate(self.levels):
            here = level_KF == level
            for start in (first_KF[here], last_KF[here] + 1 - 2**level):
                found = table[place_F[here], start]
                least_KF[here] = torch.minimum(least_KF[here], found)
        return least_KF
