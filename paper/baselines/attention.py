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

    **Shape**: ``(B, F, d_embedding)`` → ``(B, F, d_embedding)``; ``d_embedding`` is a multiple of
    ``n_heads``. ``dropout`` is that of the attention weights.

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
        if n_heads < 1 or d_embedding % n_heads:
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
            scores_BHQF = q_BHQE @ k_BHFE.mT / math.sqrt(q_BHQE.shape[3])
            heads_BHQE = self.dropout(torch.softmax(scores_BHQF, dim=3)) @ v_BHFE
        else:
            heads_BHQE = scaled_dot_product_attention(q_BHQE, k_BHFE, v_BHFE)
        return self.mix(heads_BHQE.transpose(1, 2).flatten(2))

    def weights(self, x_BFD: Tensor) -> Tensor:
        """Attention matrix of each head, before any dropout: ``(B, n_heads, F, F)``."""
        q_BHFE, k_BHFE = self.queries_and_keys(x_BFD)
        return torch.softmax(q_BHFE @ k_BHFE.mT, dim=3)

    def queries_and_keys(self, x_BFD: Tensor) -> tuple[Tensor, Tensor]:
        """Make queries, divided by √d_head, and keys: ``(B, n_heads, F, d_head)`` each.

        The softmax of their products is :meth:`weights`. Either is made of one vector alone.
        """
        q_BHFE, k_BHFE = self._by_head(self.query(x_BFD)), self._by_head(self.key(x_BFD))
        return q_BHFE / math.sqrt(q_BHFE.shape[3]), k_BHFE

    def _by_head(self, x_BFD: Tensor) -> Tensor:
        return x_BFD.unflatten(2, (self.n_heads, -1)).transpose(1, 2)
