"""One number per feature: look-up tables for categories, shape functions for numbers."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import gelu, one_hot

from fcorr.nn.engine import runs_compiled
from fcorr.nn.layers import CatLinear, ElementwiseLinear

# ------------------------------ lookup
# Looking numbers up in a small table, with a gradient that is fast and always the same.
#
# On the CPU the gradient of indexing adds up with parallel atomics, in an order that changes from run
# to run; that of ``torch.nn.functional.embedding`` has a fixed order, but is made for wide rows and
# slow for single numbers. Counting with weights is neither.


class Lookup(torch.autograd.Function):
    """``table[rows]`` for a 1-D table."""

    @staticmethod
    def forward(ctx: FunctionCtx, table: Tensor, rows: Tensor) -> Tensor:
        """Look the rows up."""
        ctx.save_for_backward(rows)
        ctx.size = len(table)  # type: ignore[attr-defined]
        return table.take(rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:
        """Add up the gradients of each row."""
        (rows,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return _add_up(rows, grad, ctx.size), None  # type: ignore[attr-defined]


class Interpolation(torch.autograd.Function):
    """``(1 − share) · table[rows] + share · table[rows + 1]`` for a 1-D table.

    The share takes part in the gradient too, so that a spline can be differentiated by its input.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, table: Tensor, rows: Tensor, share: Tensor) -> Tensor:
        """Interpolate between neighbours in the table."""
        low, high = table.take(rows), table.take(rows + 1)
        ctx.save_for_backward(rows, share, high - low)
        ctx.size = len(table)  # type: ignore[attr-defined]
        return torch.lerp(low, high, share)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None, Tensor]:
        """Give each neighbour its share of the gradient."""
        rows, share, rise = ctx.saved_tensors  # type: ignore[attr-defined]
        to_high = grad * share
        size = ctx.size  # type: ignore[attr-defined]
        to_table = _add_up(rows, grad - to_high, size) + _add_up(rows + 1, to_high, size)
        return to_table, None, grad * rise


def _add_up(rows: Tensor, values: Tensor, size: int) -> Tensor:
    return torch.bincount(rows.flatten(), values.flatten(), minlength=size).to(values.dtype)


# ------------------------------ embeddings
# One number per feature: look-up tables for categories, shape functions for numbers.


class CategoricalEmbedding(nn.Module):
    """``CatLinear ∘ GELU ∘ ElementwiseLinear ∘ OneHot`` (paper, §3.1), computed as a table.

    The input is one-hot, so a feature's embedding takes one value per category::

        e_i(c) = b2_i + Σ_j W2_j·GELU(b1_j) + W2_c·(GELU(W1_c + b1_c) − GELU(b1_c))

    with j over the categories of feature i. The table of these Σ C_i numbers is made once per
    call and looked up; no one-hot matrix is ever made. The parameters are the paper's.

    **Shape**: ``(B, n_features)`` integer codes → ``(B, n_features)``.

    Parameters
    ----------
    cardinalities : sequence of int
        Number of categories of each feature; codes run from 0 to the cardinality less one. They
        are not checked, for speed: a larger one reads the next feature's categories.
    generator : torch.Generator, optional
        Source of the initial weights.

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
        self._start_centred()

    @torch.no_grad()
    def _start_centred(self) -> None:
        """Let no feature stand out before it has learnt to: the mean over its categories is 0."""
        total = self.cat_linear.sum_by_feature(self.table())
        self.cat_linear.bias.sub_(total / torch.tensor(self.cardinalities).clamp(min=1))

    def table(self) -> Tensor:
        """Embed every category of every feature: ``(Σ C_i,)``."""
        at_zero = gelu(self.elementwise.bias)
        at_one = gelu(self.elementwise.weight + self.elementwise.bias)
        weight = self.cat_linear.weight
        constant = self.cat_linear.sum_by_feature(weight * at_zero) + self.cat_linear.bias
        return constant[self.cat_linear.feature_of_category] + weight * (at_one - at_zero)

    def categories(self, feature: int, table: Tensor | None = None) -> Tensor:
        """Embed every category of one feature: ``(C_i,)``; from the table, where it is at hand."""
        table = self.table() if table is None else table
        return table[self.offsets[feature] : self.offsets[feature + 1]]

    @torch.no_grad()
    def collapse(self, feature: int, value: float) -> None:
        """Embed all categories of a feature as one number.

        The weights of its categories become 0 and its bias that number, so that the table gives
        ``bias + 0`` for each of them: the same bits, in any precision and after any copy.
        """
        self.cat_linear.bias[feature] = value
        self.hold_collapsed(feature)

    @torch.no_grad()
    def hold_collapsed(self, feature: int) -> None:
        """Undo what a training step did to the weights of a collapsed feature's categories."""
        self.cat_linear.weight[self.offsets[feature] : self.offsets[feature + 1]] = 0

    def forward(self, x_cat: Tensor) -> Tensor:
        """Look the codes up in the table."""
        return Lookup.apply(self.table(), x_cat + self.offsets[:-1])

    def one_hot_forward(self, x_cat: Tensor) -> Tensor:
        """Compute the same from one-hot vectors, as the paper writes it; for checking."""
        v = torch.cat(
            [one_hot(x_cat[:, i], c) for i, c in enumerate(self.cardinalities)], dim=1
        ).to(self.cat_linear.weight.dtype)
        return self.cat_linear(gelu(self.elementwise(v)))


class NumericEmbedding(nn.Module):
    """``ElementwiseLinear ∘ GELU ∘ ElementwiseLinear`` per number (paper, §3.1).

    **Shape**: ``(B, n_features)`` → ``(B, n_features)``.
    """

    def __init__(self, n_features: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.first = ElementwiseLinear(n_features, generator=generator)
        self.second = ElementwiseLinear(n_features, generator=generator)

    @torch.no_grad()
    def collapse(self, feature: int, value: float) -> None:
        """Embed all numbers of a feature as one: the last weight becomes 0, its bias the value."""
        self.second.bias[feature] = value
        self.hold_collapsed(feature)

    @torch.no_grad()
    def hold_collapsed(self, feature: int) -> None:
        """Undo what a training step did to the last weight of a collapsed feature."""
        self.second.weight[feature] = 0

    def constant(self, feature: int) -> Tensor:
        """Return what a collapsed feature is embedded as."""
        return self.second.bias[feature]

    def forward(self, x_num: Tensor) -> Tensor:
        """Embed standardised numbers."""
        return self.second(gelu(self.first(x_num)))


class SplineEmbedding(nn.Module):
    """A piecewise-linear shape function per number, constant beyond its outer knots.

    NOTE[DIFF]: not in the paper, whose numeric embedding is monotone but for one bend. It still
    gives one number per feature, so attention, CAR and every guarantee read the same.

    The parameters are the value at the first knot and the steps from knot to knot. A gradient
    at one value of x then moves the whole function to the right of it, and sparse regions learn
    from their neighbours; with free values at the knots they would stay at their start.

    **Shape**: ``(B, n_features)`` → ``(B, n_features)``.

    Parameters
    ----------
    knots : sequence of 1-D tensors
        Increasing knots of each feature, at least one.
    scale : float, default=0.1
        Standard deviation of the initial values.
    generator : torch.Generator, optional
        Source of the initial values.

    Examples
    --------
    >>> embed = SplineEmbedding([torch.tensor([0.0, 1.0, 4.0])])
    >>> _ = embed.steps.data.copy_(torch.tensor([1.0, 2.0, -3.0]))
    >>> embed(torch.tensor([[-1.0], [0.5], [1.0], [2.5], [9.0]])).flatten().tolist()
    [1.0, 2.0, 3.0, 1.5, 0.0]
    """

    knots: Tensor
    slots: Tensor
    starts: Tensor
    used: Tensor

    def __init__(
        self,
        knots: Sequence[Tensor],
        *,
        scale: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        n_knots = torch.tensor([len(k) for k in knots], dtype=torch.long)
        width = max(2, int(n_knots.max()) if len(knots) else 2)
        padded = torch.full((len(knots), width), torch.inf)
        for row, feature_knots in zip(padded, knots, strict=True):
            row[: len(feature_knots)] = feature_knots
        used = torch.arange(width) < n_knots.unsqueeze(1)
        starts = n_knots.cumsum(0) - n_knots
        slots = (starts.unsqueeze(1) + torch.arange(width)).where(used, torch.zeros(()).long())
        self.register_buffer("knots", padded)
        self.register_buffer("used", used, persistent=False)
        self.register_buffer("slots", slots, persistent=False)
        self.register_buffer("starts", torch.cat([starts, n_knots.sum()[None]]), persistent=False)
        steps = torch.empty(int(n_knots.sum())).normal_(0, scale, generator=generator)
        self.steps = nn.Parameter(steps)
        self._start_centred(starts)

    @torch.no_grad()
    def _start_centred(self, starts: Tensor) -> None:
        """Let the mean of each shape function over its knots be 0, as with the categories.

        An offset of a few features among many zeros would fill LayerNorm's spread, and with few
        features training can stay caught in it.
        """
        means = (self.table() * self.used).sum(1) / self.used.sum(1)
        self.steps[starts] -= means

    @torch.no_grad()
    def collapse(self, feature: int, value: float) -> None:
        """Make the shape function of a feature a constant: no step but the first."""
        self.steps[self.starts[feature]] = value
        self.hold_collapsed(feature)

    @torch.no_grad()
    def hold_collapsed(self, feature: int) -> None:
        """Undo what a training step did to the steps of a collapsed feature."""
        self.steps[self.starts[feature] + 1 : self.starts[feature + 1]] = 0

    def constant(self, feature: int) -> Tensor:
        """Return what a collapsed feature is embedded as."""
        return self.steps[self.starts[feature]]

    def table(self) -> Tensor:
        """Value of each shape function at its knots: ``(n_features, n_knots)``, padded."""
        return (Lookup.apply(self.steps, self.slots) * self.used).cumsum(1)

    def forward(self, x_num: Tensor) -> Tensor:
        """Interpolate between the two knots around each number."""
        return self.at(self.locate(x_num))

    def locate(self, x_num: Tensor) -> Tensor:
        """Find each number's place among its feature's knots: ``(B, n_features)``.

        The place is the number of the knot to the left of it plus the share of the way to the
        next one, between the first knot, 0, and the last. It does not change in training, so rows
        that are used again and again are located once. NaN stays NaN.
        """
        if runs_compiled(x_num) and not x_num.requires_grad:
            from fcorr.nn.kernels.functions import locate_numbers

            return locate_numbers(x_num, self.knots[self.used], self.starts)
        # The inner knots split the line into width - 1 segments; padding (inf) is never passed.
        x_FB = x_num.T.contiguous()
        segment_FB = torch.searchsorted(self.knots[:, 1:-1].contiguous(), x_FB, right=True)
        left = self.knots.gather(1, segment_FB)
        right = self.knots.gather(1, segment_FB + 1)
        # On a segment that ends in padding the function is constant: (x - left) / inf = 0.
        share = ((x_FB - left) / (right - left)).clamp(0, 1)
        return (segment_FB + share).T

    def at(self, position: Tensor) -> Tensor:
        """Value of the shape functions at located numbers."""
        n_features, width = self.knots.shape
        segment = position.detach().long().clamp(0, width - 2)
        share = position - segment
        rows = segment + width * torch.arange(n_features, device=position.device)
        return Interpolation.apply(self.table().flatten(), rows, share)
