"""FCorrTransformer: the paper's model, read top to bottom."""

from collections.abc import Sequence
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from fcorr.nn.attention import attend, attention_weights
from fcorr.nn.engine import CompiledEncoderLayer, run_head, runs_compiled, use_engine
from fcorr.nn.layers import (
    CategoricalEmbedding,
    Dropout,
    ElementwiseLinear,
    FeedForward,
    Knots,
    NumericEmbedding,
    SplineEmbedding,
    ViewEmbedding,
    embed_slots,
)

NumericEmbeddingName = Literal["spline", "paper"]

_MOST_NUMBERS = 2**20  # embedded at once for main effects


class FCorrEncoderLayer(nn.Module):
    """One encoder layer (paper, §3.1).

    ::

        z = LN1(h);   a = softmax(z zᵀ/√p) z;   h' = a + ELinearStack(LN2(a))

    There is no residual round the attention: whatever the layer passes on has gone through the
    attention matrix. ``residual=True`` adds it, the paper's variant "+ Res": ``a = h + …``.

    **Shape**: ``(*, n_features)`` → ``(*, n_features)``; views are rows like any other.

    Parameters
    ----------
    n_features, n_elementwise : int
        Number of features, p, and of layers in the stack, with GELU between them.
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
            return self.run_kernels(h, ())[0]
        z = self.attention_norm(h)
        attended = attend(z.flatten(0, -2)).view(h.shape)
        if self.residual:
            attended = h + attended
        return attended + self.transform(self.stack_norm(attended))

    def run_kernels(self, h: Tensor, features: Sequence[int]) -> list[Tensor]:
        """Run the layer by the kernels, and keep some features' columns of its attention.

        Returns the output, the attention that every feature pays to each of the S features,
        ``(*, S, n_features)``, and the attention's output at each, ``(*, S)``; the last two without
        gradient.
        """
        modules = (self.attention_norm, self.stack_norm, *self.stack)
        parameters = [p for module in modules for p in (module.weight, module.bias)]
        options = features, self.attention_norm.eps, self.residual, *parameters
        outputs = CompiledEncoderLayer.apply(h.flatten(0, -2), *options)
        return [x.unflatten(0, h.shape[:-1]) for x in outputs]

    def transform(self, x: Tensor) -> Tensor:
        """Apply the stack of element-wise linear layers."""
        for i, layer in enumerate(self.stack):
            x = layer(gelu(x) if i else x)
        return x


class FCorrTransformer(nn.Module):
    """The Feature Correlation Transformer.

    Every feature is embedded as **one number**, or as H of them, its *views*; categorical features
    come first, then numeric ones, in the order given. p is the number of features.

    NOTE[DIFF]: the paper has one view and nothing beside the head. With ``n_views``, each view has
    mean 0 over the training rows and an attention matrix of its own, and the first is added to the
    output as it is::

        f(x) = b + Σ_j e_j(x_j) + head(attention(views))

    so that ``e_j``, the *main effect* of feature j, has the unit of the output. The head starts
    near 0; what it still learns of a feature by itself is counted to the main effect when training
    is over (:meth:`move_main_effects`). With several outputs each has a view of main effects.

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
    n_views : int or None, default=None
        H, at least ``n_outputs``; ``None`` for the paper's model.
    n_layers : int, default=1
        Number of encoder layers.
    residual : bool, default=False
        Residual round the attention, the paper's variant "+ Res".
    n_outputs : int, default=1
        Number of outputs: 1, or the number of classes.
    numeric_embedding : {"spline", "paper"}, default="spline"
        Shape functions with ``knots``, or the paper's two element-wise linear layers; views always
        have shape functions.
    knots : sequence of 1-D tensors, optional
        Knots of each numeric feature for ``"spline"``. The default suits standardised numbers.
    dropout : float, default=0.0
        Dropout in the prediction head.
    feature_dropout : float, default=0.0
        Share of the features that attention and head do without, for each row anew.
    additive : sequence of int, default=()
        Features that have a main effect only: attention and head never see them.
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

    mixed: Tensor

    def __init__(
        self,
        cat_cardinalities: Sequence[int],
        n_numeric: int,
        head: Sequence[int] = (64, 64),
        *,
        n_views: int | None = None,
        n_layers: int = 1,
        residual: bool = False,
        n_outputs: int = 1,
        numeric_embedding: NumericEmbeddingName = "spline",
        knots: Sequence[Tensor] | None = None,
        dropout: float = 0.0,
        feature_dropout: float = 0.0,
        additive: Sequence[int] = (),
        learn_missing: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if n_views is not None and n_views < n_outputs:
            raise ValueError(f"n_views must be at least n_outputs, {n_outputs}, got {n_views}.")
        if n_views is None and len(additive):
            raise ValueError(f"additive features need main effects: set n_views, got {additive!r}.")
        self.description: dict[str, Any] = {}
        self.cat_cardinalities = tuple(int(c) for c in cat_cardinalities)
        self.n_features = n_features = len(self.cat_cardinalities) + n_numeric
        self.n_outputs = n_outputs
        self.n_views = n_views or 1
        if knots is None:
            knots = [torch.linspace(-2, 2, 9)] * n_numeric
        self.views: ViewEmbedding | None = None
        self.numeric: NumericEmbedding | SplineEmbedding
        if n_views is None:
            self.categorical = CategoricalEmbedding(self.cat_cardinalities, generator=generator)
            if numeric_embedding == "spline":
                self.numeric = SplineEmbedding(knots, generator=generator)
            else:
                self.numeric = NumericEmbedding(n_numeric, generator=generator)
            self.missing = nn.Parameter(torch.zeros(n_numeric)) if learn_missing else None
        else:
            self.views = ViewEmbedding(
                self.cat_cardinalities,
                knots,
                n_views,
                n_main=n_outputs,
                learn_missing=learn_missing,
                generator=generator,
            )
        self.drop_features = Dropout(feature_dropout)
        self.register_buffer("mixed", torch.ones(n_features), persistent=False)
        self.mixed[list(additive)] = 0
        self.is_additive = len(set(additive)) == n_features  # then the head is its bias
        self.layers = nn.ModuleList(
            FCorrEncoderLayer(
                n_features, n_elementwise=len(head), residual=residual, generator=generator
            )
            for _ in range(n_layers)
        )
        n_encoded = self.n_views * n_features
        self.head_norm = nn.LayerNorm(n_encoded)
        self.head = FeedForward(n_encoded, head, n_outputs, dropout=dropout, generator=generator)
        if n_views is not None:
            with torch.no_grad():
                self.head.output.weight.mul_(0.1)
                self.head.output.bias.zero_()
                # What LayerNorm makes of a row has the size of 1, however little there is in it,
                # and would drown views that begin near 0.
                for layer in self.layers:
                    layer = cast(FCorrEncoderLayer, layer)
                    layer.attention_norm.weight.fill_(0.1)
                    for parameter in layer.stack[-1:].parameters():
                        parameter.mul_(0.1)

    @property
    def members(self) -> "tuple[FCorrTransformer, ...]":
        """The networks whose outputs are averaged: this one."""
        return (self,)

    @property
    def main_views(self) -> list[int]:
        """Which views are the main effects of the first output: the first of all."""
        return [0]

    @property
    def n_parameters(self) -> int:
        """Number of learnt numbers."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def dtype(self) -> torch.dtype:
        """The precision that it computes in."""
        return self.head_norm.weight.dtype

    @property
    def first_layer(self) -> FCorrEncoderLayer:
        """The layer whose attention matrix is read and regularised."""
        return cast(FCorrEncoderLayer, self.layers[0])

    @property
    def knots(self) -> Knots | None:
        """The knots of its shape functions, if it has any."""
        if self.views is not None:
            return self.views.numbers
        return self.numeric if isinstance(self.numeric, Knots) else None

    def locate(self, x_num: Tensor) -> Tensor:
        """Prepare numbers for :meth:`embed_located`, once for as often as they are used."""
        return x_num if self.knots is None else self.knots.locate(x_num)

    def embed(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Embed every feature as one number, or H: ``(B, H, F)``."""
        return self.embed_located(x_cat, self.locate(x_num))

    def embed_located(self, x_cat: Tensor, located: Tensor) -> Tensor:
        """Embed categories and numbers that went through :meth:`locate`: ``(B, H, F)``."""
        if self.views is not None:
            return self.views(x_cat, located)
        numeric, missing, categorical = self.numeric, self.missing, self.categorical
        if isinstance(numeric, SplineEmbedding):
            starts = categorical.offsets[-1] + numeric.starts
            return embed_slots(self.slot_values(), x_cat, categorical.offsets, located, starts)
        e_num = numeric(located if missing is None else located.nan_to_num())
        if missing is not None:
            e_num = torch.where(located.isnan(), missing, e_num)
        return torch.cat([categorical(x_cat), e_num], dim=1).unsqueeze(1)

    @torch.no_grad()
    def collapse(self, feature: int, value: float = 0.0) -> None:
        """Embed a feature as one number, whatever its category, number or lack of one; in place.

        Whatever follows then gets the same bits, and gives the same bits. Training that goes on
        has to call :meth:`hold_collapsed` after each of its steps. Numeric features follow the
        categorical ones. Views, whose mean is 0, are 0 whatever the ``value``.
        """
        if self.views is None:
            embedding, position = self._embedding_of(feature)
            # Not -0.0, which would become 0.0 where a zero is added to it, and elsewhere not.
            embedding.constant(position).fill_(value + 0.0)
        self.hold_collapsed(feature)

    @torch.no_grad()
    def hold_collapsed(self, feature: int) -> None:
        """Undo what a training step did to the embedding of a collapsed feature."""
        if self.views is not None:
            for part in self.views.parameters_of(feature):
                part.zero_()
            return
        embedding, position = self._embedding_of(feature)
        embedding.varying(position).zero_()
        if self.missing is not None and embedding is self.numeric:
            self.missing[position] = embedding.constant(position)

    def is_collapsed(self, feature: int) -> bool:
        """Whether a feature is embedded as one number, by the stored weights.

        It is stored as one, and all that could vary about it as zeros; and every value that it can
        have is embedded as the same bits: see ``fcorr.certify.is_exact``.
        """
        is_code = feature < len(self.cat_cardinalities)
        is_single = is_code and self.cat_cardinalities[feature] == 1
        if self.views is not None:
            embedded = self.views.values()[self.views.feature_of_slot == feature]
            varies = any(part.any() for part in self.views.parameters_of(feature))
            return (is_single or not varies) and same_bits(embedded)
        embedding, position = self._embedding_of(feature)
        varies = bool(embedding.varying(position).any())
        if isinstance(embedding, CategoricalEmbedding):
            return (is_single or not varies) and same_bits(embedding.categories(position))
        # What is added to the constant of a number is then a zero of either sign. That keeps all
        # its bits but for one case: -0.0 + 0.0 is 0.0.
        constant = embedding.constant(position)
        one = not varies and not (bool(constant == 0) and bool(constant.signbit()))
        if isinstance(embedding, SplineEmbedding):
            # Steps are added up over all features, and what those before it had is taken off again.
            one &= bool(embedding.steps.isfinite().all())
        if self.missing is None:
            return one and bool(constant.isfinite())
        return one and same_bits(torch.stack([constant, self.missing[position]]))

    @torch.no_grad()
    def hold_monotone(self, feature: int, sign: int) -> None:
        """Undo what a training step did against the direction of a feature's shape functions."""
        steps = self._steps(feature)
        steps.copy_(sign * (sign * steps).clamp(min=0))

    def is_monotone(self, feature: int, sign: int) -> bool:
        """Whether all shape functions of a feature go in a direction, by the stored weights."""
        return bool((sign * self._steps(feature) >= 0).all())

    def _steps(self, feature: int) -> Tensor:
        """Return the steps between a feature's knots, a view of the parameter."""
        return self._views.parameters_of(feature)[0][1:]

    def _embedding_of(
        self, feature: int
    ) -> tuple[CategoricalEmbedding | NumericEmbedding | SplineEmbedding, int]:
        """Return the embedding that a feature belongs to, and its position there."""
        n_categorical = len(self.cat_cardinalities)
        if feature < n_categorical:
            return self.categorical, feature
        return self.numeric, feature - n_categorical

    def mix(self, e_BHF: Tensor, spared: Sequence[int] = ()) -> Tensor:
        """Return what of the embedded features attention and head see; some are never dropped."""
        if self.views is None:
            return e_BHF
        kept_BF = self.mixed
        if self.training and self.drop_features.rate:
            kept_BF = self.drop_features(kept_BF.expand(len(e_BHF), -1))
            kept_BF[:, list(spared)] = self.mixed[list(spared)]
        return e_BHF * kept_BF.unsqueeze(-2)

    def encode(self, h_BHF: Tensor, first: int = 0, stop: int | None = None) -> Tensor:
        """Run the encoder layers on what :meth:`mix` gave, ``first`` to before ``stop``."""
        for layer in self.layers[first:stop]:
            h_BHF = layer(h_BHF)
        return h_BHF

    def decode(self, h_BHF: Tensor, e_BHF: Tensor) -> Tensor:
        """Map encoded features, and main effects, to outputs: ``(B, n_outputs)``."""
        if self.is_additive:
            outputs = self.head.output.bias
        else:
            outputs = self.head(self.head_norm(h_BHF.flatten(1)))
        return outputs if self.views is None else outputs + e_BHF[:, : self.n_outputs].sum(2)

    def outputs(self, e_BHF: Tensor) -> Tensor:
        """Compute the outputs from embedded features: ``(B, n_outputs)``."""
        h_BHF = e_BHF if self.is_additive else self.encode(self.mix(e_BHF))
        return self.decode(h_BHF, e_BHF)

    def forward(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Compute the outputs (logits, or the regression score)."""
        return self.outputs(self.embed(x_cat, x_num))

    def score(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Compute the outputs by the kernels, whatever the engine: ``(B, n_outputs)``.

        Each row's bits follow from that row alone: not from the rows beside it, their number, their
        order, or the number of threads. In single precision on the CPU, without gradient.
        """
        return self.score_embedded(self.embed_to_score(x_cat, x_num))

    def embed_to_score(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Embed by the kernels, whatever the engine, for :meth:`score_embedded`: ``(B, H, F)``."""
        with torch.no_grad(), use_engine("compiled"):
            return self.embed(x_cat, x_num)

    def score_embedded(self, e_BHF: Tensor) -> Tensor:
        """Compute the outputs of embedded features: ``(B, H, F)`` → ``(B, n_outputs)``."""
        with torch.no_grad(), use_engine("compiled"):
            if self.is_additive:
                outputs = self.head.output.bias.repeat(len(e_BHF), 1)
            else:
                layers = [*self.head.hidden, self.head.output]
                h_BHF = self.encode(self.mix(e_BHF))
                outputs = run_head(self.head_norm, layers, h_BHF.flatten(1))
            if self.views is not None:  # added up in their order, so that a row's bits are its own
                outputs += e_BHF[:, : self.n_outputs].double().cumsum(2)[:, :, -1]
            return outputs

    def slot_values(self) -> Tensor:
        """Embed every slot, in every view: ``(S, H)``.

        Slots are categories, knots and missing numbers; the paper's embedding has categories alone.
        """
        if self.views is not None:
            return self.views.values()
        parts = [self.categorical.table()]
        if isinstance(self.numeric, SplineEmbedding):
            parts += [self.numeric.values(), *([] if self.missing is None else [self.missing])]
        return torch.cat(parts)[:, None]

    def main_effects(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Return the main effects of rows by the kernels: ``(B, n_outputs, F)``."""
        with torch.no_grad(), use_engine("compiled"):
            return self._views.main_effects(x_cat, self.locate(x_num))

    @property
    def n_slots(self) -> int:
        """Number of categories, knots and missing numbers that have main effects."""
        return len(self._views.feature_of_slot)

    @property
    def _views(self) -> ViewEmbedding:
        if self.views is None:
            raise RuntimeError("Only views have main effects.")
        return self.views

    @torch.no_grad()
    def move_main_effects(self, x_cat: Tensor, x_num: Tensor) -> None:
        """Count to the main effects what the head does with a feature by itself; in place.

        Training shares out between main effect and head what either could learn. Afterwards a main
        effect is the average output over some rows, with the feature at each of its values; what
        depends on several features stays the head's. Outputs are the same as before: only how they
        are read changes.
        """
        views = self._views
        e_RHF, values, n_outputs = self.embed(x_cat, x_num), views.values(), self.n_outputs
        views.moved.zero_()
        for feature in range(self.n_features):
            slots = (views.feature_of_slot == feature).nonzero()[:, 0]
            if not self.mixed[feature] or not values[slots].any():
                continue
            averages = []
            for some in slots.split(max(1, _MOST_NUMBERS // e_RHF.numel())):
                e_SRHF = e_RHF.repeat(len(some), 1, 1, 1)
                e_SRHF[..., feature] = values[some].unsqueeze(1)
                outputs = self.score_embedded(e_SRHF.flatten(0, 1)).double()
                averages.append(outputs.unflatten(0, e_SRHF.shape[:2]).mean(1))
            average_SO = torch.cat(averages)
            average_SO -= views.shares[slots].double() @ average_SO
            views.moved[slots] = (average_SO - values[slots, :n_outputs]).to(values.dtype)

    def normalized_embedding(self, x_cat: Tensor, x_num: Tensor, layer: int = 0) -> Tensor:
        """``z``, what a layer attends with; the first layer's ``z zᵀ/√p`` is the matrix to read.

        Of several views it is the first, the main effects.
        """
        h_BHF = self.encode(self.mix(self.embed(x_cat, x_num)), stop=layer)
        return cast(FCorrEncoderLayer, self.layers[layer]).attention_norm(h_BHF[:, 0])

    def attention_weights(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """First-layer attention matrix of the first view: ``(B, F, F)``."""
        return attention_weights(self.normalized_embedding(x_cat, x_num))


class Pack(nn.Module):
    """Several networks over the same features; the outputs are the mean of theirs.

    Seen from outside it is one network with the views of all: :meth:`embed` puts them side by side,
    and each member reads its own. The mean is taken on the scale of the outputs, so that the main
    effects are the mean of the members' too.

    **Shape**: codes ``(B, n_categorical)``, numbers ``(B, n_numeric)`` → ``(B, n_outputs)``.
    """

    def __init__(self, members: Sequence[FCorrTransformer]) -> None:
        super().__init__()
        self._members = nn.ModuleList(members)
        self.cat_cardinalities = members[0].cat_cardinalities
        self.n_features = members[0].n_features
        self.n_outputs = members[0].n_outputs

    @property
    def members(self) -> tuple[FCorrTransformer, ...]:
        """The networks."""
        return tuple(cast(FCorrTransformer, member) for member in self._members)

    @property
    def main_views(self) -> list[int]:
        """Which views are the members' main effects of the first output."""
        sizes = [member.n_views for member in self.members]
        return [sum(sizes[:i]) for i in range(len(sizes))]

    @property
    def n_parameters(self) -> int:
        """Number of learnt numbers."""
        return sum(member.n_parameters for member in self.members)

    @property
    def dtype(self) -> torch.dtype:
        """The precision that it computes in."""
        return self.members[0].dtype

    def embed(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Embed every feature, in the views of all members: ``(B, ΣH, F)``."""
        return torch.cat([member.embed(x_cat, x_num) for member in self.members], dim=1)

    def embed_to_score(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Do the same by the kernels, see :meth:`FCorrTransformer.embed_to_score`."""
        return torch.cat([member.embed_to_score(x_cat, x_num) for member in self.members], dim=1)

    def forward(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Compute the mean of the members' outputs."""
        return _mean([member(x_cat, x_num) for member in self.members])

    def score(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Compute that mean by the kernels, see :meth:`FCorrTransformer.score`."""
        return _mean([member.score(x_cat, x_num) for member in self.members])

    def score_embedded(self, e_BHF: Tensor) -> Tensor:
        """Do the same from embedded features: ``(B, ΣH, F)`` → ``(B, n_outputs)``."""
        parts = e_BHF.split([member.n_views for member in self.members], dim=1)
        pairs = zip(self.members, parts, strict=True)
        return _mean([member.score_embedded(part.contiguous()) for member, part in pairs])


def same_bits(embeddings: Tensor) -> bool:
    """Whether numbers are finite and equal, each to the bit: 0.0 and −0.0 are told apart."""
    bits = embeddings.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[embeddings.itemsize])
    return bool((bits == bits[:1]).all() and embeddings.isfinite().all())


def _mean(outputs: Sequence[Tensor]) -> Tensor:
    return sum(outputs[1:], start=outputs[0]) / len(outputs)


Network = FCorrTransformer | Pack
