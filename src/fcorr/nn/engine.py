"""The engine: which arithmetic runs, and the compiled kernels as differentiable torch functions.

Kernels compiled by numba serve single precision on the CPU; anything else takes plain torch. Both
give the same results but for rounding. The kernels compute attention in linear time, and a training
step takes them half of plain torch's time or less.
"""

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

EngineName = Literal["auto", "compiled", "plain"]

_chosen: ContextVar[EngineName] = ContextVar("engine", default="auto")


def resolve_engine(engine: EngineName) -> Literal["compiled", "plain"]:
    """Return the engine that runs; "auto" takes the compiled one where numba can be imported."""
    if engine not in ("auto", "compiled", "plain"):
        raise ValueError(f"engine must be 'auto', 'compiled' or 'plain', got {engine!r}.")
    if engine == "plain":
        return "plain"
    if importlib.util.find_spec("numba") is not None:
        return "compiled"
    if engine == "compiled":
        raise ImportError(
            "engine='compiled' needs numba: pip install numba; engine='plain' does not."
        )
    return "plain"


@contextmanager
def use_engine(engine: EngineName) -> Iterator[None]:
    """Choose the engine within a ``with`` block, in this thread only.

    The threads of :class:`fcorr.training.threads.Workers` take over what their caller chose.

    Examples
    --------
    >>> from fcorr.nn.attention import attend
    >>> with use_engine("plain"):
    ...     attend(torch.zeros(1, 2))
    tensor([[0., 0.]])
    """
    resolve_engine(engine)
    before = _chosen.get()
    _chosen.set(engine)
    try:
        yield
    finally:
        # Not reset by a token: a generator may enter the block in one context, be left in another.
        _chosen.set(before)


def runs_compiled(x: Tensor) -> bool:
    """Whether the compiled kernels take a tensor."""
    suits = x.device.type == "cpu" and x.dtype == torch.float32
    return suits and resolve_engine(_chosen.get()) == "compiled"


def prepare_engine(on_wait: Callable[[str], None]) -> None:
    """Tell ``on_wait`` if kernels are going to be compiled, as they are at their first use."""
    if resolve_engine(_chosen.get()) == "compiled":
        from fcorr.nn.kernels.arithmetic import cache_folder

        if not any(cache_folder().rglob("*.nbc")):  # numba's files of machine code
            on_wait("compiling fcorr's kernels, once per installation; it takes about 15 seconds")


def _run(kernel: str, *arguments: Any) -> Any:
    """Run a kernel on the arrays of tensors; those it writes to must be contiguous."""
    from fcorr.nn.kernels import network  # not before it is needed: numba takes long to import

    arrays = (x.contiguous().numpy() if isinstance(x, Tensor) else x for x in arguments)
    return getattr(network, kernel)(*arrays)


class CompiledAttention(torch.autograd.Function):
    """``softmax(z zᵀ/root) z`` and the logarithm of what each softmax divides by.

    **Shape**: ``(B, F)`` → ``(B, F)``, ``(B, F)``.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, z_BF: Tensor, root: float) -> tuple[Tensor, Tensor]:
        """Compute both."""
        z_BF = z_BF.contiguous()
        h_BF, log_n_BF = torch.empty_like(z_BF), torch.empty_like(z_BF)
        _run("attention_forward", z_BF, root, h_BF, log_n_BF)
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
        root = ctx.root  # type: ignore[attr-defined]
        _run("attention_backward", z_BF, root, grad_h_BF, grad_log_BF, dz_BF)
        return dz_BF, None


class CompiledEncoderLayer(torch.autograd.Function):
    """A whole encoder layer, see :class:`fcorr.nn.fcorr.FCorrEncoderLayer`.

    Returns the output, the attention paid to the features in ``columns_of``, and the attention's
    output at them; only the first has a gradient. ``parameters`` are weight and bias of the two
    LayerNorms and of each layer of the stack.

    **Shape**: ``(B, F)`` → ``(B, F)``, ``(B, S, F)``, ``(B, S)``.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        h_BF: Tensor,
        columns_of: tuple[int, ...],
        eps: float,
        residual: bool,
        *parameters: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run the layer."""
        h_BF = h_BF.contiguous()
        norms = torch.stack(parameters[:4])
        stack = torch.stack(parameters[4:]) if len(parameters) > 4 else norms[:0]
        own = np.asarray(columns_of, dtype=np.int64)
        out_BF = torch.empty_like(h_BF)
        columns_BSF = h_BF.new_empty(len(h_BF), len(own), h_BF.shape[1])
        attended_BS = h_BF.new_empty(len(h_BF), len(own))
        outputs = out_BF, columns_BSF, attended_BS
        _run("encoder_forward", h_BF, norms, stack, eps, residual, own, *outputs)
        ctx.save_for_backward(h_BF, norms, stack)
        ctx.options = eps, residual  # type: ignore[attr-defined]
        ctx.mark_non_differentiable(columns_BSF, attended_BS)
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(
        ctx: FunctionCtx, grad_BF: Tensor | None, *_: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        """Run the layer again, and its gradient after it."""
        h_BF, norms, stack = ctx.saved_tensors  # type: ignore[attr-defined]
        if grad_BF is None:
            grad_BF = torch.zeros_like(h_BF)
        dh_BF = torch.empty_like(h_BF)
        # Added up over all rows, so in double precision.
        dnorms, dstack = np.empty(norms.shape), np.empty(stack.shape)
        options = ctx.options  # type: ignore[attr-defined]
        _run("encoder_backward", h_BF, norms, stack, *options, grad_BF, dh_BF, dnorms, dstack)
        by_parameter = torch.from_numpy(np.concatenate([dnorms, dstack])).to(h_BF.dtype)
        return dh_BF, None, None, None, *by_parameter.unbind()


class CompiledEmbedding(torch.autograd.Function):
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
        rows = codes.to(torch.int32), offsets, positions, starts
        out = steps.new_empty(len(codes), codes.shape[1] + positions.shape[1])
        if not _run("embed_forward", *rows, table, steps, missing, out):
            raise IndexError(
                "Codes must run from 0 to the feature's number of categories less one, and located "
                "numbers from 0 to its number of knots less one."
            )
        ctx.save_for_backward(*rows)
        ctx.sizes = len(table), len(steps), len(missing)  # type: ignore[attr-defined]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Add up the gradient by table, steps and missing, in double precision."""
        rows = ctx.saved_tensors  # type: ignore[attr-defined]
        gradients = [np.empty(size) for size in ctx.sizes]  # type: ignore[attr-defined]
        _run("embed_backward", *rows, grad, *gradients)
        by_input = [torch.from_numpy(gradient).to(grad.dtype) for gradient in gradients]
        return *by_input, None, None, None, None


class CompiledColumnChange(torch.autograd.Function):
    """CAR of each row and its gradient into the sensitive embeddings alone.

    **Shape**: ``e_own (B, S)``, ``values (ΣC,)``, ``e (B, F)``, ``columns (B, S, F)``,
    ``attended (B, S)`` → ``(B,)``.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        e_own_BS: Tensor,
        values_C: Tensor,
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
        d_own_BS = e_BF.new_empty(e_own_BS.shape)
        d_values_BC = e_BF.new_empty(len(e_BF), len(values_C))
        inputs = e_BF, columns_BSF, attended_BS, norm_2F, eps, values_C
        features = np.cumsum([0, *sizes], dtype=np.int64), np.asarray(own, dtype=np.int64)
        _run("column_change", *inputs, *features, loss_B, d_own_BS, d_values_BC)
        ctx.save_for_backward(d_own_BS, d_values_BC)
        return loss_B

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad_B: Tensor) -> tuple[Tensor | None, ...]:
        """Weigh the rows' gradients, which the forward pass computed."""
        d_own_BS, d_values_BC = ctx.saved_tensors  # type: ignore[attr-defined]
        by_own, by_value = grad_B.unsqueeze(1) * d_own_BS, grad_B @ d_values_BC
        return by_own, by_value, None, None, None, None, None, None, None


def locate_numbers(x_BM: Tensor, knots: Tensor, starts: Tensor) -> Tensor:
    """Find each number's position among its feature's knots: ``(B, M)``."""
    out_BM = torch.empty_like(x_BM, memory_format=torch.contiguous_format)
    _run("locate", x_BM, knots, starts, out_BM)
    return out_BM


def drop_entries(x: Tensor, seed: int, threshold: int, scale: float) -> Tensor:
    """Apply the dropout mask of a seed, see :class:`fcorr.nn.layers.Dropout`."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    _run("drop", x.reshape(-1), seed, threshold, np.float32(scale), out.view(-1))
    return out
