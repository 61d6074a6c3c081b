"""Dropout that is fast on a CPU and draws from the caller's generator."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

from fcorr.nn.engine import runs_compiled

# ------------------------------ layers
# The paper's layers: one weight and one bias per feature, so that no layer mixes features.


class ElementwiseLinear(nn.Module):
    """The Element-Wise Linear layer (paper, §3.1): ``y_i = weight_i · x_i + bias_i``.

    **Shape**: ``(*, n_features)`` → ``(*, n_features)``.

    Parameters
    ----------
    n_features : int
        Number of entries, each with its own weight and bias.
    generator : torch.Generator, optional
        Source of the initial weights, drawn uniformly from [-1, 1]; biases from [-1, 1] as well,
        as a linear layer with one input draws them.

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

    Output i is a weighted sum over the categories of feature i alone, plus a bias.

    **Shape**: ``(*, Σ cardinalities)`` → ``(*, n_features)``.

    Parameters
    ----------
    cardinalities : sequence of int
        Number of categories of each feature.
    generator : torch.Generator, optional
        Source of the initial weights.

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
            x = self.dropout(nn.functional.gelu(layer(x)))
        return self.output(x)


# ------------------------------ dropout
# Dropout that is fast on a CPU and draws from the caller's generator.

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

    One number is drawn per call, and each entry's fate is a hash of that number and of its place.
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
        return _Drop.apply(x, seed, self.rate)


class _Drop(torch.autograd.Function):
    """Apply the mask of a seed; its gradient is the same mask on the gradient."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, seed: int, rate: float) -> Tensor:
        ctx.mask = seed, rate  # type: ignore[attr-defined]
        return _drop(x, seed, rate)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None, None]:
        return _drop(grad, *ctx.mask), None, None  # type: ignore[attr-defined]


def _drop(x: Tensor, seed: int, rate: float) -> Tensor:
    threshold, scale = round(rate * 2**32), 1 / (1 - rate)
    if runs_compiled(x):
        from fcorr.nn.kernels.functions import drop_entries

        return drop_entries(x, seed, threshold, scale)
    kept = hash_places(x.numel(), seed, device=x.device) >= threshold - 2**31
    return torch.where(kept.view(x.shape), x * scale, 0)


def hash_places(n: int, seed: int, *, device: torch.device | None = None) -> Tensor:
    """Hash the places 0 … n − 1 to numbers spread evenly over the 32-bit integers.

    Places are spaced by the golden ratio of 2³², moved by the seed and mixed by the last step of
    MurmurHash3 (Austin Appleby, public domain). Torch has no unsigned arithmetic: a shift to the
    right repeats the sign, and the mask takes that away again.
    """
    k = torch.arange(n, dtype=torch.int32, device=device)
    k = k * _signed(0x9E3779B9) + _signed(seed)
    k = (k ^ ((k >> 16) & 0xFFFF)) * _signed(0x85EBCA6B)
    k = (k ^ ((k >> 13) & 0x7FFFF)) * _signed(0xC2B2AE35)
    # From 0 … 2³² − 1 to −2³¹ … 2³¹ − 1 in the same order.
    return (k ^ ((k >> 16) & 0xFFFF)) ^ _signed(0x80000000)


def _signed(number: int) -> int:
    return number - 2**32 if number >= 2**31 else number
