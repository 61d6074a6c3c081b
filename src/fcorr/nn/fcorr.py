"""FCorrTransformer: the paper's model, read top to bottom."""

from collections.abc import Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from fcorr.nn.attention import attend, attention_weights
from fcorr.nn.engine import (
    CompiledEmbedding,
    CompiledEncoderLayer,
    run_head,
    runs_compiled,
    use_engine,
)
from fcorr.nn.layers import (
    CategoricalEmbedding,
    ElementwiseLinear,
    FeedForward,
    NumericEmbedding,
    SplineEmbedding,
)

NumericEmbeddingName = Literal["spline", "paper"]


class FCorrEncoderLayer(nn.Module):
    """One encoder layer (paper, §3.1).

    ::

        z = LN1(h);   a = softmax(z zᵀ/√p) z;   h' = a + ELinearStack(LN2(a))

    There is no residual round the attention: whatever the layer passes on has gone through the
    attention matrix. ``residual=True`` adds it, the paper's variant "+ Res": ``a = h + …``.

    **Shape**: ``(B, n_features)`` → ``(B, n_features)``.

    Parameters
    ----------
    n_features : int
        Number of features, p.
    n_elementwise : int
        Number of element-wise linear layers in the stack, with GELU between them.
    residual : bool, default=False
        Add the layer's input to the attention's output.
    generator : torch.Generator, optional
        Source of the initial weights.
    """

    def __init__(
        self,
        n_features: int,
        *,
        n_elementwise: int,
        residual: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.residual = residual
        self.attention_norm = nn.LayerNorm(n_features)
        self.stack_norm = nn.LayerNorm(n_features)
        self.stack = nn.ModuleList(
            ElementwiseLinear(n_features, generator=generator) for _ in range(n_elementwise)
        )
        if n_elementwise:
            # NOTE[DIFF]: the paper prints no start values. Here the stack starts as a small
            # correction to what the attention found.
            with torch.no_grad():
                for parameter in self.stack[-1].parameters():
                    parameter.mul_(0.1)
                if not residual:
                    # The attention hands on some 1/√p of a feature, which biases drawn at random
                    # would drown.
                    for layer in self.stack:
                        cast(ElementwiseLinear, layer).bias.zero_()

    def forward(self, h: Tensor) -> Tensor:
        """Let the features attend to each other, then transform each by itself."""
        if runs_compiled(h):
            return self.forward_with_columns(h, ())[0]
        attended = attend(self.attention_norm(h))
        if self.residual:
            attended = h + attended
        return attended + self.transform(self.stack_norm(attended))

    def forward_with_columns(
        self, h: Tensor, features: Sequence[int]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run the layer by the kernels, and keep some features' columns of its attention.

        Returns the output, the attention that every feature pays to each of the S features,
        ``(B, S, n_features)``, and the attention's output at each, ``(B, S)``; the last two without
        gradient.
        """
        modules = (self.attention_norm, self.stack_norm, *self.stack)
        parameters = [p for module in modules for p in (module.weight, module.bias)]
        eps = self.attention_norm.eps
        return CompiledEncoderLayer.apply(h, features, eps, self.residual, *parameters)

    def transform(self, x: Tensor) -> Tensor:
        """Apply the stack of element-wise linear layers."""
        for i, layer in enumerate(self.stack):
            x = layer(gelu(x) if i else x)
        return x


class FCorrTransformer(nn.Module):
    """The Feature Correlation Transformer.

    Every feature is embedded as **one number**; categorical features come first, then numeric
    ones, in the order given. p is the number of features.

    **Shape**: codes ``(B, n_categorical)``, numbers ``(B, n_numeric)`` → ``(B, n_outputs)``.

    Parameters
    ----------
    cat_cardinalities : sequence of int
        Number of categories of each categorical feature.
    n_numeric : int
        Number of numeric features; their values are expected to be standardised.
    head : sequence of int, default=(64, 64)
        Sizes of the hidden layers of the prediction head. The element-wise stack of each encoder
        layer has as many layers: that layout gives the parameter counts the paper prints.
    n_layers : int, default=1
        Number of encoder layers.
    residual : bool, default=False
        Residual round the attention, the paper's variant "+ Res".
    n_outputs : int, default=1
        Number of outputs: 1, or the number of classes.
    numeric_embedding : {"spline", "paper"}, default="spline"
        Shape functions with ``knots``, or the paper's two element-wise linear layers.
    knots : sequence of 1-D tensors, optional
        Knots of each numeric feature for ``"spline"``. The default suits standardised numbers.
    dropout : float, default=0.0
        Dropout in the prediction head.
    learn_missing : bool, default=False
        Give each numeric feature one more number, its embedding where the value is NaN.
    generator : torch.Generator, optional
        Source of the initial weights; the same generator state gives the same model.

    Examples
    --------
    >>> model = FCorrTransformer([2, 3], n_numeric=1, head=(8,))
    >>> model(torch.tensor([[0, 2], [1, 1]]), torch.zeros(2, 1)).shape
    torch.Size([2, 1])
    """

    def __init__(
        self,
        cat_cardinalities: Sequence[int],
        n_numeric: int,
        head: Sequence[int] = (64, 64),
        *,
        n_layers: int = 1,
        residual: bool = False,
        n_outputs: int = 1,
        numeric_embedding: NumericEmbeddingName = "spline",
        knots: Sequence[Tensor] | None = None,
        dropout: float = 0.0,
        learn_missing: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if numeric_embedding not in ("spline", "paper"):
            raise ValueError(
                f"numeric_embedding must be 'spline' or 'paper', got {numeric_embedding!r}."
            )
        if n_layers < 1:
            raise ValueError(f"n_layers must be at least 1, got {n_layers}.")
        self.cat_cardinalities = tuple(int(c) for c in cat_cardinalities)
        n_features = len(self.cat_cardinalities) + n_numeric
        self.categorical = CategoricalEmbedding(self.cat_cardinalities, generator=generator)
        self.numeric: NumericEmbedding | SplineEmbedding
        if numeric_embedding == "spline":
            if knots is None:
                knots = [torch.linspace(-2, 2, 9)] * n_numeric
            self.numeric = SplineEmbedding(knots, generator=generator)
        else:
            self.numeric = NumericEmbedding(n_numeric, generator=generator)
        self.missing = nn.Parameter(torch.zeros(n_numeric)) if learn_missing else None
        self.layers = nn.ModuleList(
            FCorrEncoderLayer(
                n_features, n_elementwise=len(head), residual=residual, generator=generator
            )
            for _ in range(n_layers)
        )
        self.head_norm = nn.LayerNorm(n_features)
        self.head = FeedForward(n_features, head, n_outputs, dropout=dropout, generator=generator)

    @property
    def n_parameters(self) -> int:
        """Number of learnt numbers."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def first_layer(self) -> FCorrEncoderLayer:
        """The layer whose attention matrix is read and regularised."""
        return cast(FCorrEncoderLayer, self.layers[0])

    def locate(self, x_num: Tensor) -> Tensor:
        """Prepare numbers for :meth:`embed_located`, once for as often as they are used."""
        return self.numeric.locate(x_num) if isinstance(self.numeric, SplineEmbedding) else x_num

    def embed(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Embed every feature as one number: ``(B, F)``."""
        return self.embed_located(x_cat, self.locate(x_num))

    def embed_located(self, x_cat: Tensor, located: Tensor) -> Tensor:
        """Embed categories and numbers that went through :meth:`locate`: ``(B, F)``."""
        numeric, missing = self.numeric, self.missing
        compiled = runs_compiled(located) and not located.requires_grad
        if compiled and isinstance(numeric, SplineEmbedding):
            none = located.new_full((located.shape[1],), torch.nan)
            tables = self.categorical.table(), numeric.steps, none if missing is None else missing
            rows = x_cat, self.categorical.offsets, located, numeric.starts
            return CompiledEmbedding.apply(*tables, *rows)
        known = located if missing is None else located.nan_to_num()
        e_num = numeric.at(known) if isinstance(numeric, SplineEmbedding) else numeric(known)
        if missing is not None:
            e_num = torch.where(located.isnan(), missing, e_num)
        return torch.cat([self.categorical(x_cat), e_num], dim=1)

    @torch.no_grad()
    def collapse(self, feature: int, value: float) -> None:
        """Embed a feature as one number, whatever its category, number or lack of one; in place.

        Whatever follows then gets the same bits, and gives the same bits. Training that goes on
        has to call :meth:`hold_collapsed` after each of its steps. Numeric features follow the
        categorical ones.
        """
        embedding, position = self._embedding_of(feature)
        # Not -0.0, which would become 0.0 where a zero is added to it, and elsewhere not.
        embedding.constant(position).fill_(value + 0.0)
        self.hold_collapsed(feature)

    @torch.no_grad()
    def hold_collapsed(self, feature: int) -> None:
        """Undo what a training step did to the embedding of a collapsed feature."""
        embedding, position = self._embedding_of(feature)
        embedding.varying(position).zero_()
        if self.missing is not None and embedding is self.numeric:
            self.missing[position] = embedding.constant(position)

    def _embedding_of(
        self, feature: int
    ) -> tuple[CategoricalEmbedding | NumericEmbedding | SplineEmbedding, int]:
        """Return the embedding that a feature belongs to, and its position there."""
        n_categorical = len(self.cat_cardinalities)
        if feature < n_categorical:
            return self.categorical, feature
        return self.numeric, feature - n_categorical

    def encode(self, h_BF: Tensor, first: int = 0, stop: int | None = None) -> Tensor:
        """Run the encoder layers on embedded features, ``first`` to before ``stop``: ``(B, F)``."""
        for layer in self.layers[first:stop]:
            h_BF = layer(h_BF)
        return h_BF

    def decode(self, h_BF: Tensor) -> Tensor:
        """Map encoded features to outputs: ``(B, n_outputs)``."""
        return self.head(self.head_norm(h_BF))

    def forward(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Compute the outputs (logits, or the regression score)."""
        return self.decode(self.encode(self.embed(x_cat, x_num)))

    def score(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Compute the outputs by the kernels, whatever the engine: ``(B, n_outputs)``.

        Each row's bits follow from that row alone: not from the rows beside it, their number, their
        order, or the number of threads. In single precision on the CPU, without gradient.
        """
        with torch.no_grad(), use_engine("compiled"):
            return self.score_embedded(self.embed(x_cat, x_num))

    def score_embedded(self, e_BF: Tensor) -> Tensor:
        """Do the same from embedded features: ``(B, F)`` → ``(B, n_outputs)``."""
        with torch.no_grad(), use_engine("compiled"):
            layers = [*self.head.hidden, self.head.output]
            return run_head(self.head_norm, layers, self.encode(e_BF))

    def normalized_embedding(self, x_cat: Tensor, x_num: Tensor, layer: int = 0) -> Tensor:
        """``z``, what a layer attends with; the first layer's ``z zᵀ/√p`` is the matrix to read."""
        h_BF = self.encode(self.embed(x_cat, x_num), stop=layer)
        return cast(FCorrEncoderLayer, self.layers[layer]).attention_norm(h_BF)

    def attention_weights(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """First-layer attention matrix: ``(B, F, F)``."""
        return attention_weights(self.normalized_embedding(x_cat, x_num))
