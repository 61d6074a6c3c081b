"""Layers in which features do not mix, the prediction head, and dropout.

Every feature is one number: element-wise layers, look-up tables for categories and shape functions
for numbers keep it so.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import gelu, pad

from fcorr.nn.engine import CompiledEmbedding, run_kernel, runs_compiled


class ElementwiseLinear(nn.Module):
    """The Element-Wise Linear layer (paper, §3.1): ``y_i = weight_i · x_i + bias_i``.

    Weights and biases are drawn by ``generator``, uniformly from [-1, 1], as a linear layer of one
    input draws them.

    **Shape**: ``(*, n_features)`` → ``(*, n_features)``.

    Examples
    --------
    >>> layer = ElementwiseLinear(3)
    >>> layer(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    """

    def __init__(self, n_features: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_features).uniform_(-1, 1, generator=generator))
        self.bias = nn.Parameter(torch.empty(n_features).uniform_(-1, 1, generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        """Scale and shift each feature."""
        return x * self.weight + self.bias


class CatLinear(nn.Module):
    """The CatLinear layer (paper, §3.1): one output per categorical feature.

    Output i is a weighted sum over the categories of feature i alone, plus a bias; feature i has
    ``cardinalities[i]`` of them.

    **Shape**: ``(*, Σ cardinalities)`` → ``(*, n_features)``.

    Examples
    --------
    >>> layer = CatLinear([2, 3])
    >>> layer(torch.zeros(4, 5)).shape
    torch.Size([4, 2])
    """

    feature_of_category: Tensor

    def __init__(
        self, cardinalities: Sequence[int], *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.n_features = len(cardinalities)
        counts = torch.tensor(list(cardinalities), dtype=torch.long)
        bound = counts.clamp(min=1).rsqrt()
        weight = torch.empty(int(counts.sum())).uniform_(-1, 1, generator=generator)
        self.weight = nn.Parameter(weight * bound.repeat_interleave(counts))
        self.bias = nn.Parameter(torch.zeros(self.n_features))
        feature_of_category = torch.arange(self.n_features).repeat_interleave(counts)
        self.register_buffer("feature_of_category", feature_of_category, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Add up each feature's categories."""
        return self.sum_by_feature(x * self.weight) + self.bias

    def sum_by_feature(self, x: Tensor) -> Tensor:
        """Sum entries over the categories of each feature: ``(*, Σ C)`` → ``(*, n_features)``."""
        zeros = x.new_zeros(*x.shape[:-1], self.n_features)
        return zeros.index_add(-1, self.feature_of_category, x)


def linear(n_in: int, n_out: int, *, generator: torch.Generator | None = None) -> nn.Linear:
    """Make an ordinary linear layer whose initial weights come from ``generator``."""
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, n_in, n_out)
    bound = 1 / math.sqrt(max(n_in, 1))
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)
    return layer


class FeedForward(nn.Module):
    """The prediction head (paper, §3.1): linear layers with GELU between them.

    **Shape**: ``(*, n_in)`` → ``(*, n_out)``.
    """

    def __init__(
        self,
        n_in: int,
        hidden: Sequence[int],
        n_out: int,
        *,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        sizes = [n_in, *hidden]
        self.hidden = nn.ModuleList(linear(a, b, generator=generator) for a, b in pairwise(sizes))
        self.dropout = Dropout(dropout)
        self.output = linear(sizes[-1], n_out, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        """Map the encoded features to the outputs."""
        for layer in self.hidden:
            x = self.dropout(gelu(layer(x)))
        return self.output(x)


# --------------------------------------------------------------------------------------- embeddings


class CategoricalEmbedding(nn.Module):
    """``CatLinear ∘ GELU ∘ ElementwiseLinear ∘ OneHot`` (paper, §3.1), computed as a table.

    The input is one-hot, so a feature's embedding takes one value per category::

        e_i(c) = b2_i + Σ_j W2_j·GELU(b1_j) + W2_c·(GELU(W1_c + b1_c) − GELU(b1_c))

    with j over the categories of feature i. The table of these Σ C_i numbers is made once per
    call and looked up; no one-hot matrix is ever made. The parameters are the paper's. Codes run
    from 0 to the feature's cardinality less one; they are not checked, for speed: a larger one
    reads the next feature's categories.

    **Shape**: ``(B, n_features)`` integer codes → ``(B, n_features)``.

    Examples
    --------
    >>> embed = CategoricalEmbedding([2, 3])
    >>> embed(torch.tensor([[0, 2], [1, 0]])).shape
    torch.Size([2, 2])
    """

    offsets: Tensor

    def __init__(
        self, cardinalities: Sequence[int], *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.cardinalities = tuple(int(c) for c in cardinalities)
        self.elementwise = ElementwiseLinear(sum(self.cardinalities), generator=generator)
        self.cat_linear = CatLinear(self.cardinalities, generator=generator)
        offsets = torch.tensor([0, *self.cardinalities]).cumsum(0)
        self.register_buffer("offsets", offsets, persistent=False)
        with torch.no_grad():
            # No feature is to stand out before it has learnt to: the mean over its categories is 0.
            total = self.cat_linear.sum_by_feature(self.table())
            self.cat_linear.bias.sub_(total / torch.tensor(self.cardinalities).clamp(min=1))

    def table(self) -> Tensor:
        """Embed every category of every feature: ``(Σ C_i,)``."""
        at_zero = gelu(self.elementwise.bias)
        at_one = gelu(self.elementwise.weight + self.elementwise.bias)
        constant = self.cat_linear(at_zero)[self.cat_linear.feature_of_category]
        return constant + self.cat_linear.weight * (at_one - at_zero)

    def categories(self, feature: int) -> Tensor:
        """Embed every category of one feature: ``(C_i,)``."""
        return self.table()[self.offsets[feature] : self.offsets[feature + 1]]

    def constant(self, feature: int) -> Tensor:
        """Return the number that a collapsed feature is embedded as, a view of the parameter."""
        return self.cat_linear.bias[feature]

    def varying(self, feature: int) -> Tensor:
        """Return what is 0 in a collapsed feature, a view of the parameter.

        With weights of 0 the table gives ``bias + 0`` for each category: the same bits, in any
        precision and after any copy.
        """
        return self.cat_linear.weight[self.offsets[feature] : self.offsets[feature + 1]]

    def forward(self, x_cat: Tensor) -> Tensor:
        """Look the codes up in the table."""
        rows = x_cat + self.offsets[:-1]
        return self.table().index_select(0, rows.flatten()).view(rows.shape)


class NumericEmbedding(nn.Module):
    """``ElementwiseLinear ∘ GELU ∘ ElementwiseLinear`` per number (paper, §3.1).

    **Shape**: ``(B, n_features)`` → ``(B, n_features)``.
    """

    def __init__(self, n_features: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.first = ElementwiseLinear(n_features, generator=generator)
        self.second = ElementwiseLinear(n_features, generator=generator)

    def constant(self, feature: int) -> Tensor:
        """Return the number that a collapsed feature is embedded as, a view of the parameter."""
        return self.second.bias[feature]

    def varying(self, feature: int) -> Tensor:
        """Return what is 0 in a collapsed feature, a view of the parameter."""
        return self.second.weight[feature]

    def forward(self, x_num: Tensor) -> Tensor:
        """Embed standardised numbers."""
        if runs_compiled(x_num) and not torch.is_grad_enabled():
            layers = [torch.stack([x.weight, x.bias]) for x in (self.first, self.second)]
            out = torch.empty_like(x_num, memory_format=torch.contiguous_format)
            run_kernel("embed_numbers", x_num, *layers, out)
            return out
        return self.second(gelu(self.first(x_num)))


class Knots(nn.Module):
    """The knots of shape functions, increasing, at least one a feature; where numbers lie there."""

    knots: Tensor
    starts: Tensor
    used: Tensor
    first: Tensor

    def __init__(self, knots: Sequence[Tensor]) -> None:
        super().__init__()
        n_knots = torch.tensor([len(k) for k in knots], dtype=torch.long)
        width = max(2, int(n_knots.max()) if len(knots) else 2)
        padded = torch.full((len(knots), width), torch.inf)
        for row, feature_knots in zip(padded, knots, strict=True):
            row[: len(feature_knots)] = feature_knots
        starts = torch.cat([torch.zeros(1, dtype=torch.long), n_knots.cumsum(0)])
        self.register_buffer("knots", padded)
        self.register_buffer("used", torch.arange(width) < n_knots[:, None], persistent=False)
        self.register_buffer("starts", starts, persistent=False)
        self.register_buffer("first", starts[:-1].repeat_interleave(n_knots), persistent=False)

    def cumulate(self, steps: Tensor) -> Tensor:
        """Add each feature's steps up, from its first knot to its last: ``(Σ knots, *)``."""
        # In double precision, so that what features before it added up to leaves no trace.
        total = steps.double().cumsum(0)
        before = (total - steps).index_select(0, self.first)
        return (total - before).to(steps.dtype)

    def locate(self, x_num: Tensor) -> Tensor:
        """Find each number's position among its feature's knots: ``(B, n_features)``.

        It is the number of the knot to the left of it plus the share of the way to the
        next one, between the first knot, 0, and the last. It does not change in training, so rows
        that are used again and again are located once. NaN stays NaN. By the kernel, whatever the
        engine: it is exact, and no gradient goes through it.
        """
        positions = torch.empty(x_num.shape, dtype=x_num.dtype)
        knots = self.knots[self.used].to(x_num.dtype)
        run_kernel("locate", *(x.cpu() for x in (x_num, knots, self.starts)), positions)
        return positions.to(x_num.device)


class SplineEmbedding(Knots):
    """A piecewise-linear shape function per number, constant beyond its outer knots.

    NOTE[DIFF]: not in the paper, whose numeric embedding is monotone but for one bend. It still
    gives one number per feature, so attention, CAR and every guarantee read the same.

    The parameters are the value at the first knot and the steps from knot to knot. A gradient
    at one value of x then moves the whole function to the right of it, and sparse regions learn
    from their neighbours; with free values at the knots they would stay at their start.

    **Shape**: ``(B, n_features)`` → ``(B, n_features)``.

    Examples
    --------
    >>> embed = SplineEmbedding([torch.tensor([0.0, 1.0, 4.0])])
    >>> _ = embed.steps.data.copy_(torch.tensor([1.0, 2.0, -3.0]))
    >>> embed(torch.tensor([[-1.0], [0.5], [1.0], [2.5], [9.0]])).flatten().tolist()
    [1.0, 2.0, 3.0, 1.5, 0.0]
    """

    def __init__(
        self, knots: Sequence[Tensor], *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(knots)
        steps = torch.empty(len(self.first)).normal_(0, 0.1, generator=generator)
        self.steps = nn.Parameter(steps)
        with torch.no_grad():
            # The mean of each shape function over its knots is 0, as with the categories: an offset
            # of a few features among many zeros would fill LayerNorm's spread, and with few
            # features training can stay caught in it.
            sums = torch.zeros(len(self.steps)).index_add_(0, self.first, self.values())
            starts = self.starts[:-1]
            self.steps[starts] -= sums[starts] / self.starts.diff()

    def constant(self, feature: int) -> Tensor:
        """Return the number that a collapsed feature is embedded as, a view of the parameter."""
        return self.steps[int(self.starts[feature])]

    def varying(self, feature: int) -> Tensor:
        """Return what is 0 in a collapsed feature, all steps but the first: a view."""
        return self.steps[self.starts[feature] + 1 : self.starts[feature + 1]]

    def values(self) -> Tensor:
        """Value of each shape function at its knots: ``(Σ knots,)``."""
        return self.cumulate(self.steps)

    def forward(self, x_num: Tensor) -> Tensor:
        """Interpolate between the two knots around each number."""
        no_codes = torch.zeros(len(x_num), 0, dtype=torch.long, device=x_num.device)
        rows = no_codes, self.starts[:1], self.locate(x_num), self.starts
        return embed_slots(self.values().unsqueeze(1), *rows).squeeze(1)


class ViewEmbedding(nn.Module):
    """H numbers for each feature, its *views*, each of mean 0 over the training rows.

    NOTE[DIFF]: the paper has one number for each feature, which may have any mean. A category has
    its own H numbers; a number has H piecewise-linear shape functions as
    :class:`SplineEmbedding` has one, and the lack of it H numbers too, if that is learnt.

    A collapsed feature is 0 in every view, whatever it holds: all its parameters are.

    ``n_views`` is H; the first ``n_main`` views, added to the outputs as they are, start as 0.
    ``learn_missing``: whether numbers can be missing.

    **Shape**: codes ``(B, n_categorical)``, positions ``(B, n_numeric)`` → ``(B, H, F)``.
    """

    offsets: Tensor
    feature_of_slot: Tensor
    shares: Tensor
    moved: Tensor
    _inner: Tensor
    _spans: Tensor

    def __init__(
        self,
        cardinalities: Sequence[int],
        knots: Sequence[Tensor],
        n_views: int,
        *,
        n_main: int = 1,
        learn_missing: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        counts = torch.tensor(list(cardinalities), dtype=torch.long)
        self.numbers = Knots(knots)
        n_knots, n_numbers = self.numbers.starts.diff(), len(knots)
        offsets = torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(0)])
        self.register_buffer("offsets", offsets, persistent=False)
        of_number = torch.arange(n_numbers) + len(counts)
        sizes = torch.cat([counts, n_knots])
        owner = torch.arange(len(sizes)).repeat_interleave(sizes)
        owner = torch.cat([owner, of_number]) if learn_missing else owner
        self.register_buffer("feature_of_slot", owner, persistent=False)
        self.register_buffer("shares", 1 / owner.bincount(minlength=len(sizes))[owner].double())
        start = torch.empty(int(counts.sum()), n_views).normal_(0, 0.1, generator=generator)
        steps = torch.empty(int(n_knots.sum()), n_views).normal_(0, 0.1, generator=generator)
        # A random walk over the knots that ends as far from its start whatever their number.
        steps *= (16 / n_knots.clamp(min=16).float()).sqrt().repeat_interleave(n_knots)[:, None]
        start[:, :n_main] = 0
        steps[:, :n_main] = 0
        # Differences of steps within a feature: the first step is where the function begins.
        first = self.numbers.first
        inner = (first[1:] == first[:-1]) & (torch.arange(len(first))[:-1] != first[1:])
        self.register_buffer("_inner", inner.float()[:, None], persistent=False)
        spans = (n_knots - 1).repeat_interleave(n_knots) * (torch.arange(len(first)) != first)
        self.register_buffer("_spans", spans.float()[:, None], persistent=False)
        self.table = nn.Parameter(start)
        self.steps = nn.Parameter(steps)
        self.missing = nn.Parameter(torch.zeros(n_numbers, n_views)) if learn_missing else None
        self.register_buffer("moved", torch.zeros(len(owner), n_main))

    @torch.no_grad()
    def center_on(self, x_cat: Tensor, located: Tensor, weight: Tensor | None = None) -> None:
        """Set the rows over which every view has a mean of 0, in float64."""
        weight = torch.ones(len(x_cat)) if weight is None else weight
        weight = weight.double() / weight.double().sum()
        n_slots = int(self._starts[-1]) + located.shape[1]
        sums = torch.zeros(n_slots, dtype=torch.float64)
        slots, after, shares = find_slots(x_cat, self.offsets, located, self._starts)
        for slot, following, share in zip(slots.T, after.T, shares.double().T, strict=True):
            sums += slot.bincount(weight * (1 - share), n_slots)
            sums += following.bincount(weight * share, n_slots)
        self.shares.copy_(sums[: len(self.shares)])

    @property
    def _starts(self) -> Tensor:
        return self.offsets[-1] + self.numbers.starts

    def values(self) -> Tensor:
        """All views of every slot, centred: categories, knots, missing numbers: ``(S, H)``."""
        parts = [self.table, self.numbers.cumulate(self.steps)]
        values = torch.cat(parts if self.missing is None else [*parts, self.missing])
        means = self._sum_by_feature(values * self.shares.to(values.dtype)[:, None])
        return values - means.index_select(0, self.feature_of_slot)

    def _sum_by_feature(self, values: Tensor) -> Tensor:
        """Add up what the slots of each feature have: ``(S, *)`` → ``(F, *)``."""
        n_features = len(self.offsets) - 1 + len(self.numbers.knots)
        sums = values.new_zeros(n_features, *values.shape[1:])
        return sums.index_add(0, self.feature_of_slot, values)

    def forward(self, x_cat: Tensor, located: Tensor) -> Tensor:
        """Look categories up and interpolate located numbers."""
        return embed_slots(self.values(), x_cat, self.offsets, located, self._starts)

    def main_effects(self, x_cat: Tensor, located: Tensor) -> Tensor:
        """Return the main effects, with what was moved to them: ``(B, n_main, F)``."""
        return embed_slots(self.main_values(), x_cat, self.offsets, located, self._starts)

    def main_values(self) -> Tensor:
        """Return the main effects of every slot, with what was moved to them: ``(S, n_main)``."""
        return self.values()[:, : self.moved.shape[1]] + self.moved

    def penalty(self, smoothness: float, credibility: float, sparsity: float = 0.0) -> Tensor:
        """Half the weighted sum of squares: second differences of shapes, and all effects.

        An effect is what a category, or the lack of a number, has beside the mean; of a number it
        is the slope, as if its knots lay evenly between 0 and 1, a third of it: the square of a
        straight line is on average a twelfth of its slope's, and most numbers are no straight line.

        With ``sparsity`` a, a feature's sum of squares x counts as ``2 x / (1 + √(1 + a² x))``:
        about x up to a size of 1/a, and above it about twice the size over a. So features that do
        little are pulled to nothing, and those that do much are left nearly as they are.
        """
        bends = (self.steps[1:] - self.steps[:-1]) * self._inner
        parts = [self.table, self.steps * (self._spans / 3).sqrt()]
        parts = parts if self.missing is None else [*parts, self.missing]
        squares_F = self._sum_by_feature(torch.cat(parts).square().sum(1))
        effects = (2 * squares_F / (1 + (1 + sparsity**2 * squares_F).sqrt())).sum()
        return 0.5 * (smoothness * bends.square().sum() + credibility * effects)

    def parameters_of(self, feature: int) -> list[Tensor]:
        """All that varies about a feature, views of the parameters; 0 if it is collapsed."""
        n_categorical = len(self.offsets) - 1
        if feature < n_categorical:
            return [self.table[self.offsets[feature] : self.offsets[feature + 1]]]
        j, starts = feature - n_categorical, self.numbers.starts
        parts = [self.steps[starts[j] : starts[j + 1]]]
        return parts if self.missing is None else [*parts, self.missing[j]]


def find_slots(
    x_cat: Tensor, offsets: Tensor, located: Tensor, starts: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Find the two slots each entry lies between, and the share of the way: ``(B, F)`` each.

    See :func:`fcorr.nn.kernels.network.embed_forward`.
    """
    known = located.nan_to_num()
    knot = known.detach().long()
    slot = starts[:-1] + knot
    after = torch.minimum(slot + 1, starts[1:] - 1)
    missing = starts[-1] + torch.arange(located.shape[1], device=located.device)
    slot, after = (torch.where(located.isnan(), missing, each) for each in (slot, after))
    codes, no_share = x_cat.long() + offsets[:-1], torch.zeros_like(x_cat, dtype=known.dtype)
    pairs = (codes, slot), (codes, after), (no_share, known - knot)
    a, b, share = (torch.cat(pair, dim=1) for pair in pairs)
    return a, b, share


def embed_slots(
    values_SV: Tensor, x_cat: Tensor, offsets: Tensor, located: Tensor, starts: Tensor
) -> Tensor:
    """Look categories up in a table of slots, and interpolate located numbers: ``(B, V, F)``.

    Arguments as in :func:`fcorr.nn.kernels.network.embed_forward`, which runs where it can. Where
    the table has no slots for missing numbers, these are NaN.
    """
    n_lacking = int(starts[-1]) + located.shape[1] - len(values_SV)
    values_SV = pad(values_SV, (0, 0, 0, n_lacking), value=torch.nan) if n_lacking else values_SV
    if runs_compiled(values_SV):
        return CompiledEmbedding.apply(values_SV, x_cat, offsets, located, starts)
    slot, after, share = find_slots(x_cat, offsets, located, starts)
    # Not by indexing: on the CPU its gradient adds up with parallel atomics, in an order that
    # changes from run to run. That of `nn.functional.embedding` is slow for single numbers.
    low, high = (
        values_SV.index_select(0, rows.flatten()).view(*rows.shape, -1) for rows in (slot, after)
    )
    return torch.lerp(low, high, share.to(low.dtype).unsqueeze(2)).transpose(1, 2)


def choose_knots(numbers: NDArray[np.float32], n_knots: int) -> list[torch.Tensor]:
    """Choose the knots of each column: half by its rows, half by its distinct values.

    Quantiles of the rows put the bends where the people are. A zero-inflated column, such as a
    capital gain, has nearly all of them at zero; quantiles of the distinct values put bends where
    its few positive values lie. NaN is left out. No column has more than ``n_knots``; one with
    fewer distinct values has a knot at each.
    """
    # With two or three knots there is nothing to share out: they span the values.
    n_rows = n_knots // 2 if n_knots >= 4 else 0
    knots = []
    for column in numbers.T:
        values = column[~np.isnan(column)]
        chosen = np.unique(values)
        if len(chosen) > n_knots:
            by_row = np.quantile(values, np.linspace(0, 1, n_rows), method="inverted_cdf")
            places = np.linspace(0, len(chosen) - 1, n_knots - n_rows).round().astype(int)
            chosen = np.unique(np.concatenate([by_row, chosen[places]])).astype(np.float32)
        knots.append(torch.from_numpy(chosen))
    return knots


# ------------------------------------------------------------------------------------------ dropout

_generator: ContextVar[torch.Generator | None] = ContextVar("dropout generator", default=None)


@contextmanager
def dropout_from(generator: torch.Generator) -> Iterator[None]:
    """Let every :class:`Dropout` draw from ``generator`` within the block, in this thread only.

    Outside of it they draw from torch's global generator.
    """
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)


class Dropout(nn.Module):
    """Zero each entry with probability ``rate`` while training, and rescale the others.

    One number is drawn per call, and a hash of that number and of an entry's position decides.
    Torch draws one number per entry, which takes longer than the matrix product that follows it.

    **Shape**: any → the same.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Drop entries while training."""
        if not self.training or self.rate == 0:
            return x
        if self.rate == 1:
            return torch.zeros_like(x)
        seed = int(torch.randint(2**32, (), generator=_generator.get()))
        mask = torch.empty(x.shape, dtype=x.dtype)
        # By the kernel, whatever the engine: it is exact, and no gradient goes through it.
        run_kernel("draw_mask", seed, round(self.rate * 2**32), 1 / (1 - self.rate), mask.view(-1))
        return x * mask.to(x.device)
