"""Attention between features that are one number each: no projections, one head."""

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from fcorr.nn.series import SeriesAttention, series_partition, terms_needed

AttentionMethod = Literal["auto", "exact", "linear"]

_FEW_FEATURES = 16  # up to here the p × p softmax is as fast as any series
_CHUNK_NUMBERS = 2**22  # numbers of a p × p matrix held at a time
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
        power series of :mod:`fcorr.nn.series`, O(p·K), for every row whose error it can bound, the
        softmax for the others. ``"auto"``: the softmax for few features, else ``"linear"``.

    Examples
    --------
    >>> attend(torch.tensor([[0.0, 0.0, 3.0]]))[0, :2]  # a zero query weighs all keys alike
    tensor([1., 1.])
    """
    if method == "exact" or (method == "auto" and z_BF.shape[1] <= _FEW_FEATURES):
        return _attend_exact(z_BF)
    n_terms, in_series_B = plan_series(z_BF.detach())
    if in_series_B.all():
        return SeriesAttention.apply(z_BF, n_terms)
    series, softmax = in_series_B.nonzero()[:, 0], (~in_series_B).nonzero()[:, 0]
    # Rows too wide for the series are too wide for float32 as well: their scores are large.
    wide = _attend_exact(z_BF[softmax].double()).to(z_BF.dtype)
    if len(series) == 0:
        return wide
    both = torch.cat([SeriesAttention.apply(z_BF[series], n_terms), wide])
    return both.index_select(0, torch.cat([series, softmax]).argsort())


@torch.no_grad()
def log_partition(z_BF: Tensor) -> tuple[Tensor, Tensor]:
    """Return what each feature's softmax divides by, in logarithms, and the mean it gives.

    With y = z less the row's mean: ``log Σ_j exp(z_i y_j/√p)`` and ``Σ_j A_ij y_j``, both
    ``(B, F)`` and without gradient, in linear time wherever :func:`attend` takes it.
    """
    log_n_BF, mean_BF = torch.empty_like(z_BF), torch.empty_like(z_BF)
    n_features = z_BF.shape[1]
    in_series_B = torch.zeros(len(z_BF), dtype=torch.bool, device=z_BF.device)
    if n_features > _FEW_FEATURES:
        n_terms, in_series_B = plan_series(z_BF)
        if in_series_B.all():
            return series_partition(z_BF, n_terms)
        if in_series_B.any():
            log_n_BF[in_series_B], mean_BF[in_series_B] = series_partition(
                z_BF[in_series_B], n_terms
            )
    wide = (~in_series_B).nonzero()[:, 0]
    for rows in wide.split(max(1, _CHUNK_NUMBERS // n_features**2)):
        z = z_BF[rows].double()
        y = z - z.mean(1, keepdim=True)
        scores = z.unsqueeze(2) * (y / math.sqrt(n_features)).unsqueeze(1)
        log_n = scores.logsumexp(2)
        weights = torch.exp(scores - log_n.unsqueeze(2))
        log_n_BF[rows] = log_n.to(z_BF.dtype)
        mean_BF[rows] = torch.bmm(weights, y.unsqueeze(2)).squeeze(2).to(z_BF.dtype)
    return log_n_BF, mean_BF


def plan_series(z_BF: Tensor) -> tuple[int, Tensor]:
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
    needed_B = terms_needed(z_BF)
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


def mean_attention_scores(z_NF: Tensor) -> Tensor:
    """Mean of the pre-softmax matrices over rows, as one product ``zᵀz / (N √p)``: ``(F, F)``."""
    n_rows, n_features = z_NF.shape
    return z_NF.T @ z_NF / (n_rows * math.sqrt(n_features))
