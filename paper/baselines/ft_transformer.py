"""FT-Transformer (Gorishniy, Rubachev, Khrulkov and Babenko 2021), a baseline, read top to bottom.

Sections are those of "Revisiting Deep Learning Models for Tabular Data". Every feature, categorical
or numeric, becomes a vector, its token; a further token, CLS, attends to them all, and the
prediction is made from it.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, relu

from fcorr.nn.layers import Dropout, FeedForward, linear
from paper.baselines.attention import MultiheadSelfAttention


class FeatureTokenizer(nn.Module):
    """The feature tokenizer (§3.3): ``bias_f + category_f[x_f]`` and ``bias_f + slope_f · x_f``.

    **Shape**: codes ``(B, n_categorical)``, numbers ``(B, n_numeric)`` → ``(B, F, d_embedding)``,
    categorical features first.
    """

    offsets: Tensor

    def __init__(
        self,
        cardinalities: Sequence[int],
        n_numeric: int,
        d_embedding: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        n_features = len(cardinalities) + n_numeric
        self.category = _token_parameter(sum(cardinalities), d_embedding, generator=generator)
        self.slope = _token_parameter(n_numeric, d_embedding, generator=generator)
        self.bias = _token_parameter(n_features, d_embedding, generator=generator)
        offsets = torch.tensor([0, *cardinalities], dtype=torch.long).cumsum(0)[:-1]
        self.register_buffer("offsets", offsets, persistent=False)

    def forward(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Make a token of each feature."""
        categories_BFD = embedding(x_cat + self.offsets, self.category)
        numbers_BFD = x_num.unsqueeze(2) * self.slope
        return torch.cat([categories_BFD, numbers_BFD], dim=1) + self.bias


class FTTransformerLayer(nn.Module):
    """One transformer layer (§3.3): attention, then a feed-forward part for each token.

    ::

        a = x + Attention(LN1(x));   x' = a + W2 ReGLU(W1 LN2(a));   ReGLU(u, v) = u · max(v, 0)

    LayerNorm comes before each part. The first layer of a model has no LN1: as the paper reports,
    it does better on bare tokens.

    **Shape**: ``(B, T, d_embedding)`` → ``(B, T, d_embedding)``, or ``(B, 1, d_embedding)`` if only
    the last token is wanted.
    """

    def __init__(
        self,
        d_embedding: int,
        n_heads: int,
        *,
        is_first: bool = False,
        attention_dropout: float = 0.0,
        feed_forward_dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.attention_norm = nn.Identity() if is_first else nn.LayerNorm(d_embedding)
        self.attention = MultiheadSelfAttention(
            d_embedding, n_heads, dropout=attention_dropout, generator=generator
        )
        with torch.no_grad():  # these biases start at zero, as the authors' do
            for name, parameter in self.attention.named_parameters():
                if name.endswith("bias"):
                    parameter.zero_()
        self.feed_forward_norm = nn.LayerNorm(d_embedding)
        d_hidden = int(d_embedding * 4 / 3)  # after ReGLU
        self.widen = linear(d_embedding, 2 * d_hidden, generator=generator)
        self.narrow = linear(d_hidden, d_embedding, generator=generator)
        self.feed_forward_dropout = Dropout(feed_forward_dropout)

    def forward(self, x_BTD: Tensor, *, last_only: bool = False) -> Tensor:
        """Put all tokens, or only the last one, into the context of all."""
        z_BTD = self.attention_norm(x_BTD)
        own = slice(-1 if last_only else 0, None)
        a_BTD = x_BTD[:, own] + self.attention(z_BTD, z_BTD[:, own])
        value_BTH, gate_BTH = self.widen(self.feed_forward_norm(a_BTD)).chunk(2, dim=2)
        hidden_BTH = self.feed_forward_dropout(value_BTH * relu(gate_BTH))
        return a_BTD + self.narrow(hidden_BTH)


class FTTransformer(nn.Module):
    """FT-Transformer: a token per feature, transformer layers, and a head that reads CLS (§3.3).

    CLS is the last of the F + 1 tokens, so that features keep their own positions. Attention knows
    no order: a model with CLS in front gives the same outputs.

    **Shape**: codes ``(B, n_categorical)``, numbers ``(B, n_numeric)`` → ``(B, n_outputs)``.

    Parameters
    ----------
    cat_cardinalities : sequence of int
        Number of categories of each categorical feature; codes run from 0 to the cardinality less
        one. They are not checked, for speed: a larger one is taken for the next feature's.
    n_numeric : int
        Number of numeric features; their values are expected to be standardised.
    d_embedding : int, default=192
        Size of a token, a multiple of ``n_heads``.
    n_layers : int, default=3
        Number of transformer layers.
    n_heads : int, default=8
        Number of attention heads.
    n_outputs : int, default=1
        Number of outputs: 1, or the number of classes.
    attention_dropout : float, default=0.2
        Dropout of the attention weights.
    feed_forward_dropout : float, default=0.1
        Dropout in the feed-forward parts.
    generator : torch.Generator, optional
        Source of the initial weights; the same generator state gives the same model.

    Examples
    --------
    >>> model = FTTransformer([2, 3], n_numeric=1)
    >>> x_cat, x_num = torch.tensor([[0, 2], [1, 1]]), torch.zeros(2, 1)
    >>> model(x_cat, x_num).shape
    torch.Size([2, 1])
    >>> model.attention_weights(x_cat, x_num).shape
    torch.Size([2, 3, 3])
    """

    def __init__(
        self,
        cat_cardinalities: Sequence[int],
        n_numeric: int,
        *,
        d_embedding: int = 192,
        n_layers: int = 3,
        n_heads: int = 8,
        n_outputs: int = 1,
        attention_dropout: float = 0.2,
        feed_forward_dropout: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.cat_cardinalities = tuple(int(c) for c in cat_cardinalities)
        self.n_features = len(self.cat_cardinalities) + n_numeric
        if not self.n_features:
            raise ValueError(
                "There must be at least one feature, categorical or numeric, got none."
            )
        if n_layers < 1:
            raise ValueError(f"n_layers must be at least 1, got {n_layers}.")
        self.tokenizer = FeatureTokenizer(
            self.cat_cardinalities, n_numeric, d_embedding, generator=generator
        )
        self.cls = _token_parameter(1, d_embedding, generator=generator)
        self.layers = nn.ModuleList(
            FTTransformerLayer(
                d_embedding,
                n_heads,
                is_first=i == 0,
                attention_dropout=attention_dropout,
                feed_forward_dropout=feed_forward_dropout,
                generator=generator,
            )
            for i in range(n_layers)
        )
        self.head_norm = nn.LayerNorm(d_embedding)
        self.head = FeedForward(d_embedding, (), n_outputs, generator=generator)

    def forward(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Compute the outputs (logits, or the regression score)."""
        h_BTD = self.tokens(x_cat, x_num)
        for layer in self.layers[:-1]:
            h_BTD = layer(h_BTD)
        cls_BD = self.layers[-1](h_BTD, last_only=True).squeeze(1)
        return self.head(relu(self.head_norm(cls_BD)))

    def tokens(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Make the tokens of the features, and CLS behind them: ``(B, F + 1, d_embedding)``."""
        features_BFD = self.tokenizer(x_cat, x_num)
        return torch.cat([features_BFD, self.cls.expand(len(features_BFD), -1, -1)], dim=1)

    def attention_weights(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """First attention between the features, the mean over its heads: ``(B, F, F)``.

        CLS is left out and nothing is rescaled: a row sums to 1 less what its feature pays to CLS.
        """
        q_BHFE, k_BHTE = self.queries_and_keys(x_cat, x_num)
        return torch.softmax(q_BHFE @ k_BHTE.mT, dim=3).mean(1)[:, :, : self.n_features]

    def queries_and_keys(self, x_cat: Tensor, x_num: Tensor) -> tuple[Tensor, Tensor]:
        """First-layer queries of the features, and keys of the features and CLS behind them.

        ``(B, n_heads, F, d_head)`` and ``(B, n_heads, F + 1, d_head)``, for
        :func:`~paper.baselines.car.car_columns`.
        """
        layer = cast(FTTransformerLayer, self.layers[0])
        tokens_BTD = layer.attention_norm(self.tokens(x_cat, x_num))
        q_BHTE, k_BHTE = layer.attention.queries_and_keys(tokens_BTD)
        return q_BHTE[:, :, : self.n_features], k_BHTE


def _token_parameter(
    n_tokens: int, d_embedding: int, *, generator: torch.Generator | None
) -> nn.Parameter:
    bound = d_embedding**-0.5
    return nn.Parameter(
        torch.empty(n_tokens, d_embedding).uniform_(-bound, bound, generator=generator)
    )
