"""Dropout that is fast on a CPU and draws from the caller's generator."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

from fcorr.nn.engine import runs_compiled

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
