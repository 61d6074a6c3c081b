"""Looking numbers up in a small table, with a gradient that is fast and always the same.

On the CPU the gradient of indexing adds up with parallel atomics, in an order that changes from run
to run; that of ``torch.nn.functional.embedding`` has a fixed order, but is made for wide rows and
slow for single numbers. Counting with weights is neither.
"""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable


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
