"""Attention between features that are vectors: projections and several heads, for the baselines."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from fcorr.nn.layers import Dropout, linear


class MultiheadSelfAttention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017, §3.2).

    ``softmax(Q Kᵀ/√d_head) V`` per head, then a layer that mixes the heads. A single head goes
    without it: the value layer does all that it could do.

    **Shape**: ``(B, F, d_embedding)`` → ``(B, F, d_embedding)``.

    Parameters
    ----------
    d_embedding : int
        Size of each feature's vector, a multiple of ``n_heads``.
    n_heads : int
        Number of heads.
    dropout : float, default=0.0
        Dropout of the attention weights.
    generator : torch.Generator, optional
        Source of the initial weights.

    Examples
    --------
    >>> attention = MultiheadSelfAttention(d_embedding=8, n_heads=2)
    >>> attention(torch.zeros(4, 3, 8)).shape
    torch.Size([4, 3, 8])
    >>> attention.weights(torch.zeros(4, 3, 8)).shape
    torch.Size([4, 2, 3, 3])
    """

    def __init__(
        self,
        d_embedding: int,
        n_heads: int,
        *,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if n_heads < 1:
            raise ValueError(f"n_heads must be at least 1, got {n_heads}.")
        if d_embedding % n_heads:
            raise ValueError(
                f"d_embedding must be a multiple of n_heads, got {d_embedding} and {n_heads}."
            )
        self.n_heads = n_heads
        self.query = linear(d_embedding, d_embedding, generator=generator)
        self.key = linear(d_embedding, d_embedding, generator=generator)
        self.value = linear(d_embedding, d_embedding, generator=generator)
        self.mix: nn.Module = nn.Identity()
        if n_heads > 1:
            self.mix = linear(d_embedding, d_embedding, generator=generator)
        self.dropout = Dropout(dropout)

    def forward(self, x_BFD: Tensor, queries_BQD: Tensor | None = None) -> Tensor:
        """Let the features, or only some queries, attend to all features."""
        queries_BQD = x_BFD if queries_BQD is None else queries_BQD
        q_BHQE, k_BHFE, v_BHFE = (
            self._by_head(self.query(queries_BQD)),
            self._by_head(self.key(x_BFD)),
            self._by_head(self.value(x_BFD)),
        )
        if self.training and self.dropout.rate:
            # Torch's fused attention has a dropout too, but it draws from the global generator.
            heads_BHQE = self.dropout(_softmax(q_BHQE, k_BHFE)) @ v_BHFE
        else:
            heads_BHQE = scaled_dot_product_attention(q_BHQE, k_BHFE, v_BHFE)
        return self.mix(heads_BHQE.transpose(1, 2).flatten(2))

    def weights(self, x_BFD: Tensor) -> Tensor:
        """Attention matrix of each head, before any dropout: ``(B, n_heads, F, F)``."""
        return _softmax(self._by_head(self.query(x_BFD)), self._by_head(self.key(x_BFD)))

    def queries_and_keys(self, x_BFD: Tensor) -> tuple[Tensor, Tensor]:
        """Make queries, divided by √d_head, and keys: ``(B, n_heads, F, d_head)`` each.

        The softmax of their products is :meth:`weights`. Either is made of one vector alone.
        """
        q_BHFE, k_BHFE = self._by_head(self.query(x_BFD)), self._by_head(self.key(x_BFD))
        return q_BHFE / math.sqrt(q_BHFE.shape[3]), k_BHFE

    def _by_head(self, x_BFD: Tensor) -> Tensor:
        return x_BFD.unflatten(2, (self.n_heads, -1)).transpose(1, 2)


def attention_received(attention_BFF: Tensor) -> Tensor:
    """Attention that each feature receives in each row, the column sums: ``(B, F)``.

    Its mean over the rows is what the paper reads as feature significance in an FT-Transformer
    (§4.2), where the diagonal has no such meaning.

    Examples
    --------
    >>> attention_received(torch.tensor([[[0.9, 0.1], [0.7, 0.3]]]))
    tensor([[1.6000, 0.4000]])
    """
    return attention_BFF.sum(1)


def _softmax(q_BHQE: Tensor, k_BHFE: Tensor) -> Tensor:
    scores_BHQF = q_BHQE @ k_BHFE.transpose(2, 3) / math.sqrt(q_BHQE.shape[3])
    return torch.softmax(scores_BHQF, dim=3)
