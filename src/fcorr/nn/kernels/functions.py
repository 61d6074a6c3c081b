"""The kernels as differentiable torch functions, for single precision on the CPU."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from fcorr.nn.kernels.attention import attention_backward, attention_forward
from fcorr.nn.kernels.column import column_change
from fcorr.nn.kernels.dropout import drop
from fcorr.nn.kernels.embedding import (
    embed_backward,
    embed_forward,
    knot_values,
    locate,
    step_gradient,
)
from fcorr.nn.kernels.encoder import encoder_backward, encoder_forward


class Attention(torch.autograd.Function):
    """``softmax(z zᵀ/root) z`` and the logarithm of what each softmax divides by.

    **Shape**: ``(B, F)`` → ``(B, F)``, ``(B, F)``.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, z_BF: Tensor, root: float) -> tuple[Tensor, Tensor]:
        """Compute both."""
        z_BF = z_BF.contiguous()
        h_BF, log_n_BF = torch.empty_like(z_BF), torch.empty_like(z_BF)
        attention_forward(z_BF.numpy(), root, h_BF.numpy(), log_n_BF.numpy())
        ctx.save_for_backward(z_BF)
        ctx.root = root  # type: ignore[attr-defined]
        ctx.set_materialize_grads(False)
        return h_BF, log_n_BF

    @staticmethod
    @once_differentiable
    def backward(
        ctx: FunctionCtx, grad_h_BF: Tensor | None, grad_log_BF: Tensor | None
    ) -> tuple[Tensor, None]:
        """Propagate the gradient of either or both."""
        (z_BF,) = ctx.saved_tensors  # type: ignore[attr-defined]
        if grad_h_BF is None:
            grad_h_BF = torch.zeros_like(z_BF)
        if grad_log_BF is None:
            grad_log_BF = z_BF.new_empty(len(z_BF), 0)
        dz_BF = torch.empty_like(z_BF)
        attention_backward(
            z_BF.numpy(),
            ctx.root,  # type: ignore[attr-defined]
            grad_h_BF.contiguous().numpy(),
            grad_log_BF.contiguous().numpy(),
            dz_BF.numpy(),
        )
        return dz_BF, None


class EncoderLayer(torch.autograd.Function):
    """A whole encoder layer, see :class:`fcorr.nn.fcorr.FCorrEncoderLayer`.

    Returns the output, the attention paid to the features in ``watched``, and the attention's
    output at them; only the first has a gradient. ``parameters`` are weight and bias of the two
    LayerNorms and of each layer of the stack.

    **Shape**: ``(B, F)`` → ``(B, F)``, ``(B, S, F)``, ``(B, S)``.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        h_BF: Tensor,
        watched: tuple[int, ...],
        eps: float,
        residual: bool,
        *parameters: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run the layer."""
        h_BF = h_BF.contiguous()
        n_rows, n_features = h_BF.shape
        norms = torch.stack(parameters[:4])
        stack = torch.stack(parameters[4:]) if len(parameters) > 4 else norms[:0]
        out_BF = torch.empty_like(h_BF)
        columns_BSF = h_BF.new_empty(n_rows, len(watched), n_features)
        attended_BS = h_BF.new_empty(n_rows, len(watched))
        encoder_forward(
            h_BF.numpy(),
            norms.numpy(),
            stack.numpy(),
            eps,
            residual,
            np.asarray(watched, dtype=np.int64),
            out_BF.numpy(),
            columns_BSF.numpy(),
            attended_BS.numpy(),
        )
        ctx.save_for_backward(h_BF, norms, stack)
        ctx.options = eps, residual  # type: ignore[attr-defined]
        ctx.mark_non_differentiable(columns_BSF, attended_BS)
        ctx.set_materialize_grads(False)
        return out_BF, columns_BSF, attended_BS

    @staticmethod
    @once_differentiable
    def backward(
        ctx: FunctionCtx, grad_BF: Tensor | None, *_: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        """Run the layer again, and its gradient after it."""
        h_BF, norms, stack = ctx.saved_tensors  # type: ignore[attr-defined]
        eps, residual = ctx.options  # type: ignore[attr-defined]
        if grad_BF is None:
            grad_BF = torch.zeros_like(h_BF)
        dh_BF = torch.empty_like(h_BF)
        # Added up over all rows, so in double precision.
        dnorms, dstack = np.empty(norms.shape), np.empty(stack.shape)
        encoder_backward(
            h_BF.numpy(),
            norms.numpy(),
            stack.numpy(),
            eps,
            residual,
            grad_BF.contiguous().numpy(),
            dh_BF.numpy(),
            dnorms,
            dstack,
        )
        by_parameter = torch.from_numpy(np.concatenate([dnorms, dstack])).to(h_BF.dtype)
        return dh_BF, None, None, None, *by_parameter.unbind()


class Embedding(torch.autograd.Function):
    """Categories looked up in ``table``, located numbers interpolated between knots.

    **Shape**: codes ``(B, C)``, positions ``(B, M)`` → ``(B, C + M)``.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        table: Tensor,
        steps: Tensor,
        missing: Tensor,
        codes: Tensor,
        offsets: Tensor,
        positions: Tensor,
        starts: Tensor,
    ) -> Tensor:
        """Embed a batch."""
        codes, positions = codes.to(torch.int32).contiguous(), positions.contiguous()
        values = steps.new_empty(len(steps) + 1)
        knot_values(steps.numpy(), starts.numpy(), values.numpy())
        out = steps.new_empty(len(codes), codes.shape[1] + positions.shape[1])
        valid = embed_forward(
            codes.numpy(),
            offsets.numpy(),
            table.contiguous().numpy(),
            positions.numpy(),
            starts.numpy(),
            values.numpy(),
            missing.numpy(),
            out.numpy(),
        )
        if not valid:
            raise IndexError(
                "Codes must run from 0 to the feature's number of categories less one, and located "
                "numbers from 0 to its number of knots less one."
            )
        ctx.save_for_backward(codes, offsets, positions, starts)
        ctx.sizes = len(table), len(steps), len(missing)  # type: ignore[attr-defined]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Add up the gradient by table, steps and missing."""
        codes, offsets, positions, starts = ctx.saved_tensors  # type: ignore[attr-defined]
        n_table, n_steps, n_missing = ctx.sizes  # type: ignore[attr-defined]
        dtable, dvalues, dmissing = np.empty(n_table), np.empty(n_steps + 1), np.empty(n_missing)
        embed_backward(
            codes.numpy(),
            offsets.numpy(),
            positions.numpy(),
            starts.numpy(),
            grad.contiguous().numpy(),
            dtable,
            dvalues,
            dmissing,
        )
        dsteps = np.empty(n_steps)
        step_gradient(dvalues, starts.numpy(), dsteps)
        by_input = [torch.from_numpy(d).to(grad.dtype) for d in (dtable, dsteps, dmissing)]
        return *by_input, None, None, None, None


class ColumnChange(torch.autograd.Function):
    """CAR of each row and its gradient into the sensitive embeddings alone.

    **Shape**: ``e_own (B, S)``, ``categories (ΣC,)``, ``e (B, F)``, ``columns (B, S, F)``,
    ``attended (B, S)`` → ``(B,)``.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        e_own_BS: Tensor,
        categories_C: Tensor,
        e_BF: Tensor,
        columns_BSF: Tensor,
        attended_BS: Tensor,
        norm_2F: Tensor,
        eps: float,
        own: list[int],
        sizes: list[int],
    ) -> Tensor:
        """Compute the loss, and its gradient with it: both need the same exponentials."""
        loss_B = e_BF.new_empty(len(e_BF))
        d_own_BS = torch.empty_like(e_own_BS)
        d_extra_BC = e_BF.new_empty(len(e_BF), len(categories_C))
        column_change(
            e_BF.contiguous().numpy(),
            columns_BSF.numpy(),
            attended_BS.numpy(),
            norm_2F.numpy(),
            eps,
            categories_C.contiguous().numpy(),
            np.asarray(own, dtype=np.int64),
            np.asarray(sizes, dtype=np.int64),
            loss_B.numpy(),
            d_own_BS.numpy(),
            d_extra_BC.numpy(),
        )
        ctx.save_for_backward(d_own_BS, d_extra_BC)
        return loss_B

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad_B: Tensor) -> tuple[Tensor | None, ...]:
        """Weigh the rows' gradients, which the forward pass computed."""
        d_own_BS, d_extra_BC = ctx.saved_tensors  # type: ignore[attr-defined]
        by_own, by_category = grad_B.unsqueeze(1) * d_own_BS, grad_B @ d_extra_BC
        return by_own, by_category, None, None, None, None, None, None, None


def locate_numbers(x_BM: Tensor, knots: Tensor, starts: Tensor) -> Tensor:
    """Find each number's place among its feature's knots: ``(B, M)``."""
    out_BM = torch.empty_like(x_BM, memory_format=torch.contiguous_format)
    locate(x_BM.contiguous().numpy(), knots.numpy(), starts.numpy(), out_BM.numpy())
    return out_BM


def drop_entries(x: Tensor, seed: int, threshold: int, scale: float) -> Tensor:
    """Apply the dropout mask of a seed, see :mod:`fcorr.nn.layers`."""
    x = x.contiguous()
    out = torch.empty_like(x)
    drop(x.numpy().reshape(-1), seed, threshold, np.float32(scale), out.numpy().reshape(-1))
    return out


def warm_up() -> None:
    """Load every kernel from numba's cache, or compile it there."""
    e_BF = torch.zeros(2, 3, requires_grad=True)
    ones, zeros = torch.ones(3), torch.zeros(3)
    starts, offsets = torch.tensor([0, 1, 2]), torch.tensor([0, 2])
    positions = locate_numbers(torch.zeros(2, 2), torch.zeros(2), starts)
    table, steps = torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True)
    codes = torch.zeros(2, 1, dtype=torch.int32)
    loss = Embedding.apply(table, steps, zeros[:2], codes, offsets, positions, starts).sum()
    norms = (ones, zeros, ones, zeros)
    out_BF, columns_BSF, attended_BS = EncoderLayer.apply(e_BF, (0,), 1e-5, False, *norms)
    loss = loss + out_BF.sum() + sum(x.sum() for x in Attention.apply(e_BF, math.sqrt(3)))
    rows = (e_BF.detach(), columns_BSF, attended_BS, torch.stack(norms[:2]))
    loss = loss + ColumnChange.apply(e_BF[:, :1], table, *rows, 1e-5, [0], [2]).sum()
    loss.backward()
    drop_entries(zeros, 0, 0, 1.0)
