"""Attention by the kernels outside of an encoder layer, with what each softmax divides by.

The paper's form of CAR and its definition need columns of attention matrices over other keys than
the model's own. In the library attention runs within the kernel of the whole layer.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fcorr.nn import attention
from fcorr.nn.engine import runs_compiled
from paper.series import attention_gradient, center, compiled, make_work, partition


def attend_with_partition(z_BF: Tensor, root: float) -> tuple[Tensor, Tensor]:
    """As :func:`fcorr.nn.attention.attend_with_partition`; by the kernels, where these can."""
    if runs_compiled(z_BF):
        return CompiledAttention.apply(z_BF, root)
    return attention.attend_with_partition(z_BF, root)


class CompiledAttention(torch.autograd.Function):
    """``softmax(z zᵀ/root) z`` and the logarithm of what each softmax divides by.

    **Shape**: ``(B, F)`` → ``(B, F)``, ``(B, F)``.
    """

    @staticmethod
    def forward(ctx: Any, z_BF: Tensor, root: float) -> tuple[Tensor, Tensor]:
        """Compute both."""
        z_BF, nothing = z_BF.contiguous(), z_BF.new_empty(0, 0)
        h_BF, log_n_BF = torch.empty_like(z_BF), torch.empty_like(z_BF)
        _run(z_BF, root, h_BF, log_n_BF, nothing, nothing, nothing)
        ctx.save_for_backward(z_BF)
        ctx.root = root
        ctx.set_materialize_grads(False)
        return h_BF, log_n_BF

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_h_BF: Tensor | None, grad_log_BF: Tensor | None
    ) -> tuple[Tensor, None]:
        """Propagate the gradient of either or both."""
        (z_BF,) = ctx.saved_tensors
        dz_BF, nothing = torch.empty_like(z_BF), z_BF.new_empty(0, 0)
        grad_h_BF = torch.zeros_like(z_BF) if grad_h_BF is None else grad_h_BF
        grad_log_BF = nothing if grad_log_BF is None else grad_log_BF
        _run(z_BF, ctx.root, nothing, nothing, grad_h_BF, grad_log_BF, dz_BF)
        return dz_BF, None


def _run(z_BF: Tensor, root: float, *others: Tensor) -> None:
    attend_rows(z_BF.numpy(), root, *(x.contiguous().numpy() for x in others))


@compiled
def attend_rows(
    z_BF: Any,
    root: float,
    h_BF: Any,
    log_n_BF: Any,
    grad_h_BF: Any,
    grad_log_BF: Any,
    dz_BF: Any,
) -> None:
    """Compute the attention output of each row, and log N; ``(B, F)`` all.

    If ``grad_h_BF`` has columns it is the gradient by z instead; ``grad_log_BF`` may have none.
    """
    n, goes_back = z_BF.shape[1], grad_h_BF.shape[1] > 0
    z, y, N, P, Q = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    shift, g, dz, work = np.empty(n), np.empty(n), np.empty(n), make_work(n)
    g_log = np.empty(grad_log_BF.shape[1])
    outlier = np.empty(n, dtype=np.int64)
    for b in range(len(z_BF)):
        for j in range(n):
            z[j] = z_BF[b, j]
        z_mean = center(z, y)
        n_apart, n_terms = partition(z, y, z_mean, root, goes_back, outlier, work, N, P, Q, shift)
        if not goes_back:
            for j in range(n):
                h_BF[b, j] = z_mean + P[j] / N[j]
            for j in range(n):
                log_n_BF[b, j] = math.log(N[j]) + shift[j]
            continue
        for j in range(n):
            g[j] = grad_h_BF[b, j]
        for j in range(len(g_log)):
            g_log[j] = grad_log_BF[b, j]
        attention_gradient(
            z, y, root, n_apart, n_terms, outlier, work, N, P, Q, shift, g, g_log, dz
        )
        for j in range(n):
            dz_BF[b, j] = dz[j]
