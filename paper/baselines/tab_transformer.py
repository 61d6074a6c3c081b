"""TabTransformer (Huang, Khetan, Cvitkovic and Karnin 2020), a baseline, read top to bottom.

Sections are those of "TabTransformer: Tabular Data Modeling Using Contextual Embeddings". Only the
categorical features attend to each other; numbers pass them by and meet them in the head.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, gelu

from fcorr.nn.layers import Dropout, FeedForward, linear
from paper.baselines.attention import MultiheadSelfAttention


class ColumnEmbedding(nn.Module):
    """The column embedding (§2): a vector that names the column, then one for its category.

    The first ``d_column`` entries are the same for every category of a feature, and tell the
    features apart: the transformer layers have no other notion of position.

    **Shape**: ``(B, n_features)`` integer codes → ``(B, n_features, d_embedding)``.

    """

    offsets: Tensor

    def __init__(
        self,
        cardinalities: Sequence[int],
        d_embedding: int,
        d_column: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        n_features, n_categories = len(cardinalities), sum(cardinalities)
        scale = 1 / math.sqrt(d_embedding)
        column = torch.empty(n_features, d_column).normal_(0, scale, generator=generator)
        category = torch.empty(n_categories, d_embedding - d_column)
        self.column = nn.Parameter(column)
        self.category = nn.Parameter(category.normal_(0, scale, generator=generator))
        offsets = torch.tensor([0, *cardinalities], dtype=torch.long).cumsum(0)[:-1]
        self.register_buffer("offsets", offsets, persistent=False)

    def forward(self, x_cat: Tensor) -> Tensor:
        """Look each category up, and put its column's name before it."""
        category_BFD = embedding(x_cat + self.offsets, self.category)
        column_BFD = self.column.expand(len(x_cat), -1, -1)
        return torch.cat([column_BFD, category_BFD], dim=2)


class TransformerLayer(nn.Module):
    """One transformer layer (§2): attention, then a feed-forward layer for each feature.

    ::

        a = LN(x + Attention(x));   x' = LN(a + W2 GELU(W1 a))

    LayerNorm comes after each sum, as in the paper. W1 makes the vector four times as long. The
    paper leaves the activation open; GELU is that of the other models here.

    **Shape**: ``(B, F, d_embedding)`` → ``(B, F, d_embedding)``.
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
        self.attention = MultiheadSelfAttention(d_embedding, n_heads, generator=generator)
        self.attention_norm = nn.LayerNorm(d_embedding)
        self.widen = linear(d_embedding, 4 * d_embedding, generator=generator)
        self.narrow = linear(4 * d_embedding, d_embedding, generator=generator)
        self.feed_forward_norm = nn.LayerNorm(d_embedding)
        self.dropout = Dropout(dropout)

    def forward(self, x_BFD: Tensor) -> Tensor:
        """Put each feature into the context of the others."""
        a_BFD = self.attention_norm(x_BFD + self.dropout(self.attention(x_BFD)))
        return self.feed_forward_norm(a_BFD + self.dropout(self.narrow(gelu(self.widen(a_BFD)))))


class TabTransformer(nn.Module):
    """TabTransformer: contextual embeddings of the categorical features, and a head (§2).

    Categorical features are embedded and pass through the transformer layers; numeric features are
    layer-normed; both are laid side by side and go into a feed-forward head.

    **Shape**: codes ``(B, n_categorical)``, numbers ``(B, n_numeric)`` → ``(B, n_outputs)``.

    Parameters
    ----------
    cat_cardinalities, n_numeric, d_embedding, n_layers, n_heads, n_outputs, generator
        See :class:`~paper.baselines.ft_transformer.FTTransformer`; there is at least one
        categorical feature.
    head : sequence of int, optional
        Sizes of the hidden layers of the head. The default is the paper's: four times and twice
        the size of its input, which is ``n_categorical · d_embedding + n_numeric``.
    numeric_norm : bool, default=True
        Whether numbers are layer-normed, as the authors have it. Of two numbers that leaves a
        sign, of one nothing: the estimators go without.
    dropout : float, default=0.0
        Dropout in the head and on what each layer adds.

    Examples
    --------
    >>> model = TabTransformer([2, 3], n_numeric=1, head=(8,))
    >>> x_cat, x_num = torch.tensor([[0, 2], [1, 1]]), torch.zeros(2, 1)
    >>> model(x_cat, x_num).shape
    torch.Size([2, 1])
    >>> model.attention_weights(x_cat, x_num).shape
    torch.Size([2, 2, 2])
    """

    def __init__(
        self,
        cat_cardinalities: Sequence[int],
        n_numeric: int,
        head: Sequence[int] | None = None,
        *,
        d_embedding: int = 32,
        n_layers: int = 6,
        n_heads: int = 8,
        numeric_norm: bool = True,
        n_outputs: int = 1,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if not cat_cardinalities:
            raise ValueError(
                "cat_cardinalities must name at least one feature, got none. "
                "Without categorical features TabTransformer is a plain feed-forward network."
            )
        if n_layers < 1:
            raise ValueError(f"n_layers must be at least 1, got {n_layers}.")
        self.cat_cardinalities = tuple(int(c) for c in cat_cardinalities)
        self.embedding = ColumnEmbedding(
            self.cat_cardinalities, d_embedding, max(1, d_embedding // 8), generator=generator
        )
        self.layers = nn.ModuleList(
            TransformerLayer(d_embedding, n_heads, dropout=dropout, generator=generator)
            for _ in range(n_layers)
        )
        self.numeric_norm = nn.LayerNorm(n_numeric) if numeric_norm else nn.Identity()
        n_in = len(self.cat_cardinalities) * d_embedding + n_numeric
        hidden = (4 * n_in, 2 * n_in) if head is None else tuple(head)
        self.head = FeedForward(n_in, hidden, n_outputs, dropout=dropout, generator=generator)

    def forward(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Compute the outputs (logits, or the regression score)."""
        h_BFD = self.embedding(x_cat)
        for layer in self.layers:
            h_BFD = layer(h_BFD)
        return self.head(torch.cat([h_BFD.flatten(1), self.numeric_norm(x_num)], dim=1))

    def attention_weights(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """First attention matrix, the mean over its heads: ``(B, F, F)``.

        F counts the categorical features alone. ``x_num`` makes no difference; it is there so that
        every model is asked in the same way.
        """
        layer = cast(TransformerLayer, self.layers[0])
        return layer.attention.weights(self.embedding(x_cat)).mean(1)

    def queries_and_keys(self, x_cat: Tensor, x_num: Tensor) -> tuple[Tensor, Tensor]:
        """First-layer queries and keys of the categorical features: ``(B, n_heads, F, d_head)``.

        They are for :func:`~paper.baselines.car.car_columns`.
        """
        layer = cast(TransformerLayer, self.layers[0])
        return layer.attention.queries_and_keys(self.embedding(x_cat))
