"""The engine: which arithmetic runs, and the compiled kernels as differentiable torch functions.

Kernels compiled by numba serve single precision on the CPU; anything else takes plain torch. Both
give the same results but for rounding. The kernels compute attention in linear time, and a training
step takes them half of plain torch's time or less.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Thread
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

EngineName = Literal["auto", "compiled", "plain"]

_chosen: ContextVar[EngineName] = ContextVar("engine", default="auto")


def resolve_engine(engine: EngineName) -> Literal["compiled", "plain"]:
    """Return the engine that runs; "auto" takes the compiled one."""
    if engine not in ("auto", "compiled", "plain"):
        raise ValueError(f"engine must be 'auto', 'compiled' or 'plain', got {engine!r}.")
    return "plain" if engine == "plain" else "compiled"


@contextmanager
def use_engine(engine: EngineName) -> Iterator[None]:
    """Choose the engine within a ``with`` block, in this thread only.

    The threads of :class:`fcorr.training.rows.Workers` take over what their caller chose.
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
    return x.device.type == "cpu" and x.dtype == torch.float32 and _chosen.get() != "plain"


def prepare_engine(on_wait: Callable[[str], None]) -> None:
    """Have the kernels of a usual fit compiled beside it, if they are yet to be.

    ``on_wait`` is told so.
    """
    if _chosen.get() != "plain":
        from fcorr.nn.kernels import arithmetic

        folder = arithmetic.cache_folder()
        if folder is None or not any(folder.glob("encoder.encoder_backward-*")):
            arithmetic.announce(on_wait)
            Thread(target=compile_kernels).start()


def compile_kernels() -> None:
    """Compile the kernels of a usual fit, and keep them: a small network is trained and asked.

    In a container, do it when the image is built. First come main effects alone, which is a matter
    of a second: members that have nothing else train while the compiler is busy with the rest.
    """
    from fcorr.nn.fcorr import FCorrTransformer
    from fcorr.nn.layers import dropout_from

    generator = torch.Generator()
    codes, numbers = torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 1)
    for additive in ([0, 1], []):
        options: dict[str, Any] = {"dropout": 0.5, "feature_dropout": 0.5, "additive": additive}
        model = FCorrTransformer([1], 1, (1,), n_views=1, **options, generator=generator)
        with use_engine("compiled"), dropout_from(generator):
            model(codes, numbers).sum().backward()
            model.score(codes, numbers)


def run_kernel(kernel: str, *arguments: Any) -> Any:
    """Run a kernel on the arrays of tensors; those it writes to must be contiguous."""
    from fcorr.nn.kernels import encoder, network  # not before: numba takes long to import

    arrays = (x.contiguous().numpy() if isinstance(x, Tensor) else x for x in arguments)
    return getattr(encoder if kernel.startswith("encoder_") else network, kernel)(*arrays)


def run_head(norm: nn.LayerNorm, layers: Sequence[nn.Linear], h_BF: Tensor) -> Tensor:
    """Normalise rows and take them through linear layers with GELU between them, without gradient.

    What a row gives does not depend on the rows beside it: see the kernel, ``head_forward``.

    **Shape**: ``(B, F)`` → ``(B, n_outputs)``.
    """
    sizes = [h_BF.shape[1], *(len(layer.bias) for layer in layers)]
    # Rows of weights and of scratch start where a cache line does: torch aligns its memory.
    weights = [pad(layer.weight, (0, 0, 0, -len(layer.bias) % 16)).T.flatten() for layer in layers]
    biases = [pad(layer.bias, (0, -len(layer.bias) % 16)) for layer in layers]
    scratch = h_BF.new_empty(2, 32, max(sizes) + -max(sizes) % 16)  # for 32 rows at a time
    out = h_BF.new_empty(len(h_BF), sizes[-1])
    norms = torch.stack([norm.weight, norm.bias]), norm.eps
    head = np.array(sizes), torch.cat(weights), torch.cat(biases)
    run_kernel("head_forward", h_BF, *norms, *head, *scratch, out)
    return out


def _run_layer(kernel: str, h_BF: Tensor, *arguments: Any) -> None:
    """Run a kernel of the encoder layer, with a series that is long enough for each row."""
    from fcorr.nn.kernels.encoder import LANES, SERIES

    reach, served = np.zeros(len(h_BF)), -math.inf
    for precision, n_terms, largest in SERIES:
        # The first finds out how far each row reaches; then each takes those that are its own.
        rows = np.flatnonzero((reach > served) & (reach <= largest))
        if len(rows):
            sums, one_by_one = np.empty((n_terms + 4, LANES), precision), None if n_terms else True
            run_kernel(kernel, h_BF, rows, reach, (sums, largest, one_by_one), *arguments)
        served = largest


class CompiledEncoderLayer(torch.autograd.Function):
    """A whole encoder layer, see :class:`fcorr.nn.fcorr.FCorrEncoderLayer`.

    Returns the output, the attention paid to the features ``own``, and the attention's output at
    them; only the first has a gradient. ``parameters`` are weight and bias of the two LayerNorms
    and of each layer of the stack.

    **Shape**: ``(B, F)`` → ``(B, F)``, ``(B, S, F)``, ``(B, S)``.
    """

    @staticmethod
    def forward(
        ctx: Any, h_BF: Tensor, own: Sequence[int], eps: float, residual: bool, *parameters: Tensor
    ) -> tuple[Tensor, ...]:
        """Run the layer."""
        h_BF, norms = h_BF.contiguous(), torch.stack(list(parameters[:4]))
        stack = torch.stack(list(parameters[4:])) if len(parameters) > 4 else norms[:0]
        ctx.save_for_backward(h_BF, norms, stack)
        ctx.options = eps, residual
        columns_BSF = h_BF.new_empty(len(h_BF), len(own), h_BF.shape[1])
        outputs = torch.empty_like(h_BF), columns_BSF, columns_BSF.new_empty(columns_BSF.shape[:2])
        features = np.array(own) if own else None
        _run_layer("encoder_forward", h_BF, norms, stack, *ctx.options, features, *outputs)
        ctx.mark_non_differentiable(*outputs[1:])
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_BF: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        """Run the layer again, and its gradient after it."""
        h_BF, norms, stack = ctx.saved_tensors
        if grad_BF is None:
            grad_BF = torch.zeros_like(h_BF)
        dh_BF = torch.empty_like(h_BF)
        # Added up over all rows, so in double precision.
        dnorms, dstack = np.zeros(norms.shape), np.zeros(stack.shape)
        gradients = grad_BF, dh_BF, dnorms, dstack
        _run_layer("encoder_backward", h_BF, norms, stack, *ctx.options, *gradients)
        by_parameter = torch.from_numpy(np.concatenate([dnorms, dstack])).to(h_BF.dtype)
        return dh_BF, None, None, None, *by_parameter.unbind()


class CompiledEmbedding(torch.autograd.Function):
    """Look slots up in a table of values, V numbers each; interpolate numbers between knots.

    ``rows`` are codes, the offsets of features in the table, positions among the knots, and where
    the features' knots start. See :func:`fcorr.nn.kernels.network.embed_forward`.

    **Shape**: values ``(S, V)``, codes ``(B, C)``, positions ``(B, M)`` → ``(B, V, C + M)``.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, *rows: Tensor) -> Tensor:
        """Embed a batch."""
        codes, offsets, positions, starts = rows
        n_features = codes.shape[1] + positions.shape[1]
        out = values.new_empty(len(codes), values.shape[1], n_features)
        rows = codes.to(torch.int32), offsets, positions, starts
        if not run_kernel("embed_forward", *rows, values, out):
            raise IndexError(
                "Codes must run from 0 to the feature's number of categories less one, and located "
                "numbers from 0 to its number of knots less one."
            )
        ctx.save_for_backward(*rows)
        ctx.size = values.shape
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Add up the gradient by slot, in double precision."""
        dvalues = np.empty(ctx.size)
        run_kernel("embed_backward", *ctx.saved_tensors, grad, dvalues)
        return torch.from_numpy(dvalues).to(grad.dtype), None, None, None, None


class CompiledColumnChange(torch.autograd.Function):
    """CAR of each row and its gradient into the sensitive embeddings alone.

    Features ``own`` are embedded as ``e_own_BS`` and exchanged for ``values_C``, as many for each
    as ``sizes`` says. ``constants`` are the first inputs of
    :func:`fcorr.nn.kernels.network.column_change`.

    **Shape**: ``(B, S)``, ``(ΣC,)`` → ``(B,)``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        e_own_BS: Tensor,
        values_C: Tensor,
        own: list[int],
        sizes: list[int],
        *constants: Any,
    ) -> Tensor:
        """Compute the loss, and its gradient with it: both need the same exponentials."""
        loss_B = e_own_BS.new_empty(len(e_own_BS))
        d_own_BS = torch.empty_like(e_own_BS, memory_format=torch.contiguous_format)
        d_values_BC = e_own_BS.new_empty(len(e_own_BS), len(values_C))
        features = np.cumsum([0, *sizes], dtype=np.int64), np.asarray(own, dtype=np.int64)
        outputs = loss_B, d_own_BS, d_values_BC
        run_kernel("column_change", *constants, values_C, *features, *outputs)
        ctx.save_for_backward(d_own_BS, d_values_BC)
        return loss_B

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_B: Tensor) -> tuple[Tensor | None, ...]:
        """Weigh the rows' gradients, which the forward pass computed."""
        d_own_BS, d_values_BC = ctx.saved_tensors
        return grad_B.unsqueeze(1) * d_own_BS, grad_B @ d_values_BC, *[None] * 7
