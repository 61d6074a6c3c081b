"""Attention between features that are one number each: no projections, one head."""

import math

import torch
from torch import Tensor


def attention_scores(z_BF: Tensor) -> Tensor:
    """Pre-softmax matrix ``z zᵀ / √p``, the paper's feature dependencies: ``(B, F, F)``."""
    return z_BF.unsqueeze(2) * (z_BF / math.sqrt(z_BF.shape[1])).unsqueeze(1)


def attention_weights(z_BF: Tensor) -> Tensor:
    """Attention matrix ``softmax(z zᵀ / √p)`` of the paper's equation 1: ``(B, F, F)``."""
    return torch.softmax(attention_scores(z_BF), dim=2)


def attend(z_BF: Tensor) -> Tensor:
    """Attention output ``softmax(z zᵀ / √p) z``: ``(B, F)`` → ``(B, F)``.

    Examples
    --------
    >>> attend(torch.tensor([[0.0, 0.0, 3.0]]))[0, :2]  # a zero query weighs all keys alike
    tensor([1., 1.])
    """
    return torch.bmm(attention_weights(z_BF), z_BF.unsqueeze(2)).squeeze(2)


def mean_attention_scores(z_NF: Tensor) -> Tensor:
    """Mean of the pre-softmax matrices over rows, as one product ``zᵀz / (N √p)``: ``(F, F)``."""
    n_rows, n_features = z_NF.shape
    return z_NF.T @ z_NF / (n_rows * math.sqrt(n_features))
