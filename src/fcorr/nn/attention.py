"""Attention between features that are one number each: no projections, one head."""

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from fcorr.nn.engine import runs_compiled
from fcorr.nn.series import SeriesAttention, terms_needed

AttentionMethod = Literal["auto", "exact", "linear"]

_FEW_FEATURES = 16  # up to here the p × p softmax is as fast as any series
_CHUNK_NUMBERS = 2**22  # entries of p × p matrices held at a time
_SOFTMAX_COST = 1.5  # of one of a row's p² entries, in terms of the series over its p features


def attention_scores(z_BF: Tensor) -> Tensor:
    """Pre-softmax matrix ``z zᵀ / √p``, the paper's feature dependencies: ``(B, F, F)``."""
    return z_BF.unsqueeze(2) * (z_BF / math.sqrt(z_BF.shape[1])).unsqueeze(1)


def attention_weights(z_BF: Tensor) -> Tensor:
    """Attention matrix ``softmax(z zᵀ / √p)`` of the paper's equation 1: ``(B, F, F)``."""
    return torch.softmax(attention_scores(z_BF), dim=2)


def attend(z_BF: Tensor, method: AttentionMethod = "auto") -> Tensor:
    """Attention output ``softmax(z zᵀ / √p) z``: ``(B, F)`` → ``(B, F)``.

    Parameters
    ----------
    z_BF : Tensor
        Layer-normed features.
    method : {"auto", "exact", "linear"}, default="auto"
        ``"exact"``: torch's fused softmax attention, O(p²) time and O(p) memory. ``"linear"``: the
        power series of :mod:`fcorr.nn.series`, O(p·K). Compiled kernels sum features too far out
        for it one by one; plain torch leaves a row that has one to the softmax. ``"auto"``: the
        softmax for few features, else ``"linear"``.

    Examples
    --------
    >>> attend(torch.tensor([[0.0, 0.0, 3.0]]))[0, :2]  # a zero query weighs all keys alike
    tensor([1., 1.])
    """
    few = z_BF.shape[1] <= _FEW_FEATURES and not runs_compiled(z_BF)
    if method == "exact" or (method == "auto" and few):
        return _attend_exact(z_BF)
    return attend_with_partition(z_BF)[0]


def attend_with_partition(z_BF: Tensor, root: float | None = None) -> tuple[Tensor, Tensor]:
    """Attention output, and the logarithm of what each feature's softmax divides by.

    With y = z less the row's mean the second is ``log Σ_j exp(z_i y_j/root)``. A feature's column
    of the matrix follows from it in O(p): ``A_ij = exp(z_i y_j/root − log N_i)``.

    Parameters
    ----------
    z_BF : Tensor
        Layer-normed features.
    root : float, optional
        What scores are divided by; √p if not given.

    Returns
    -------
    h_BF, log_n_BF : Tensor
        Both ``(B, F)`` and differentiable, in linear time as :func:`attend`.
    """
    root = math.sqrt(z_BF.shape[1]) if root is None else root
    if runs_compiled(z_BF):
        from fcorr.nn.kernels.functions import Attention

        return Attention.apply(z_BF, root)
    n_terms, in_series_B = plan_series(z_BF.detach(), root)
    if in_series_B.all():
        return SeriesAttention.apply(z_BF, n_terms, root)
    series, softmax = in_series_B.nonzero()[:, 0], (~in_series_B).nonzero()[:, 0]
    h_BF, log_n_BF = _softmax_in_chunks(z_BF[softmax], root)
    if len(series):
        h_series_BF, log_series_BF = SeriesAttention.apply(z_BF[series], n_terms, root)
        order = torch.cat([series, softmax]).argsort()
        h_BF = torch.cat([h_series_BF, h_BF]).index_select(0, order)
        log_n_BF = torch.cat([log_series_BF, log_n_BF]).index_select(0, order)
    return h_BF, log_n_BF


def plan_series(z_BF: Tensor, root: float) -> tuple[int, Tensor]:
    """Choose the length of the series for a batch, and the rows that it serves.

    A longer series serves more rows and costs more for each; a row it cannot serve costs p entries
    of the softmax for each feature. The cheapest choice is taken.

    Returns
    -------
    n_terms : int
        Number of terms.
    in_series_B : Tensor
        Whether the error bound holds for each row with that many.
    """
    needed_B = terms_needed(z_BF, root)
    softmax_cost = _SOFTMAX_COST * z_BF.shape[1]
    best_cost, best = softmax_cost * len(z_BF), 0
    for n_terms in needed_B.unique().tolist():
        n_served = int(((needed_B > 0) & (needed_B <= n_terms)).sum())
        cost = n_served * n_terms + (len(z_BF) - n_served) * softmax_cost
        if cost < best_cost:
            best_cost, best = cost, n_terms
    return best, (needed_B > 0) & (needed_B <= best)


def _attend_exact(z_BF: Tensor) -> Tensor:
    z_B1F1 = z_BF[:, None, :, None]
    scale = 1 / math.sqrt(z_BF.shape[1])
    return scaled_dot_product_attention(z_B1F1, z_B1F1, z_B1F1, scale=scale)[:, 0, :, 0]


def _softmax_in_chunks(z_BF: Tensor, root: float) -> tuple[Tensor, Tensor]:
    """Compute both by the p × p matrix, a bounded number of them in memory at a time.

    In double precision: rows too wide for the series have scores too large for float32.
    """
    chunk = max(1, _CHUNK_NUMBERS // z_BF.shape[1] ** 2)
    # The gradient makes each chunk's matrices again instead of keeping all of them.
    parts = [
        checkpoint(_softmax, z, root, use_reentrant=False, preserve_rng_state=False)
        for z in z_BF.double().split(chunk)
    ]
    h_BF, log_n_BF = (torch.cat(part).to(z_BF.dtype) for part in zip(*parts, strict=True))
    return h_BF, log_n_BF


def _softmax(z_BF: Tensor, root: float) -> tuple[Tensor, Tensor]:
    mean_B1 = z_BF.mean(1, keepdim=True)
    y_BF = z_BF - mean_B1
    scores_BFF = z_BF.unsqueeze(2) * (y_BF / root).unsqueeze(1)
    log_n_BF = scores_BFF.logsumexp(2)
    weights_BFF = torch.exp(scores_BFF - log_n_BF.unsqueeze(2))
    return mean_B1 + torch.bmm(weights_BFF, y_BF.unsqueeze(2)).squeeze(2), log_n_BF


def mean_attention_scores(z_NF: Tensor) -> Tensor:
    """Mean of the pre-softmax matrices over rows, as one product ``zᵀz / (N √p)``: ``(F, F)``."""
    n_rows, n_features = z_NF.shape
    return z_NF.T @ z_NF / (n_rows * math.sqrt(n_features))
