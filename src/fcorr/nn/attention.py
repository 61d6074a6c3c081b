"""Attention between features that are one number each: no projections, one head.

There are two ways to compute it: the compiled kernels, in linear time by a power series
(:mod:`fcorr.nn.kernels.encoder` derives it and its error bound), and torch's softmax.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

_CHUNK_NUMBERS = 2**22  # entries of p × p matrices held at a time


def attention_weights(z_BF: Tensor) -> Tensor:
    """Attention matrix ``softmax(z zᵀ / √p)`` of the paper's equation 1: ``(B, F, F)``."""
    scores_BFF = z_BF.unsqueeze(2) * (z_BF / math.sqrt(z_BF.shape[1])).unsqueeze(1)
    return torch.softmax(scores_BFF, dim=2)


def attend(z_BF: Tensor) -> Tensor:
    """Attention output ``softmax(z zᵀ / √p) z`` of layer-normed features: ``(B, F)`` → ``(B, F)``.

    By torch's fused softmax attention, in O(p²) time and O(p) memory, where no kernel runs the
    whole encoder layer.
    """
    z_B1F1, scale = z_BF[:, None, :, None], 1 / math.sqrt(z_BF.shape[1])
    return scaled_dot_product_attention(z_B1F1, z_B1F1, z_B1F1, scale=scale)[:, 0, :, 0]


def attend_with_partition(z_BF: Tensor, root: float) -> tuple[Tensor, Tensor]:
    """Attention output ``softmax(z zᵀ/root) z``, and the logarithm of what each softmax divides by.

    With y = z less the row's mean the second is ``log Σ_j exp(z_i y_j/root)``; a feature's column
    of the matrix follows from it in O(p). Both are ``(B, F)`` and differentiable, by the p × p
    matrix, of which a bounded number is in memory at a time.
    """
    chunk = max(1, _CHUNK_NUMBERS // z_BF.shape[1] ** 2)
    # The gradient makes each chunk's matrices again instead of keeping all of them.
    parts = [
        checkpoint(_softmax, z, root, use_reentrant=False, preserve_rng_state=False)
        for z in z_BF.split(chunk)
    ]
    h_BF, log_n_BF = (torch.cat(part) for part in zip(*parts, strict=True))
    return h_BF, log_n_BF


def _softmax(z_BF: Tensor, root: float) -> tuple[Tensor, Tensor]:
    mean_B1 = z_BF.mean(1, keepdim=True)
    y_BF = z_BF - mean_B1
    # Scores relative to the largest, by a difference of keys and not of scores: where both are
    # large, the difference of scores would have lost its digits.
    least_B1, largest_B1 = (x.detach().unsqueeze(1) for x in torch.aminmax(y_BF, dim=1))
    farthest_BF = torch.where(z_BF > 0, largest_B1, least_B1)
    keys_BFF = y_BF.unsqueeze(1) - farthest_BF.unsqueeze(2)
    exponentials_BFF = torch.exp(keys_BFF * (z_BF / root).unsqueeze(2))
    n_BF = exponentials_BFF.sum(2)
    h_BF = mean_B1 + torch.bmm(exponentials_BFF, y_BF.unsqueeze(2)).squeeze(2) / n_BF
    return h_BF, n_BF.log() + z_BF * farthest_BF / root
