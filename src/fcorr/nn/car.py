r"""Counterfactual Attention Regularization (paper, §3.2).

It is one loss per row, ``(B,)``: how far the attention paid to the sensitive feature
(column σ of the first attention matrix) moves when its category is exchanged,

    L_CAR(x) = 1/C Σ_i ‖A(x)[:, σ] − A(x; s_i)[:, σ]‖²

summed over the sensitive features where there are several. 0 means that no exchange changes it.

In the definition (equation 2) A(x; s_i) is that of the row with its category exchanged.
:func:`fcorr.nn.car_sensitive` appends the C embedded categories as extra keys instead, and runs
once (equation 3), with the gradient stopped everywhere but at the sensitive feature's own
embedding.

With the compiled kernels, nothing that a model is trained with makes a p × p matrix. The difference
of two entries of a column pair is computed as ``A_σ · (e^{t (z_i − z_σ)} − 1)``: it keeps its
digits when the two embeddings have all but met.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fcorr.nn.attention import attend_with_partition
from fcorr.nn.engine import CompiledColumnChange, runs_compiled
from fcorr.nn.fcorr import FCorrTransformer, Network


@dataclass(frozen=True)
class Exchange:
    """Values that some features are exchanged for, one after the other; several go together.

    Attributes
    ----------
    features : sequence of int
        Positions of the features, categorical ones first, as the model has them.
    values : Tensor
        ``(C, S)``: codes of categories and numbers, a column per feature.
    """

    features: Sequence[int]
    values: Tensor

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, n_categorical: int, n_features: int) -> tuple[Tensor, Tensor]:
        """Return codes and numbers of C rows that hold the values, and zeros beside them."""
        rows = self.values.new_zeros(len(self), n_features, dtype=torch.float32)
        rows[:, list(self.features)] = self.values.float()
        return rows[:, :n_categorical].long(), rows[:, n_categorical:]

    def embed(self, model: Network) -> Tensor:
        """Embed the values of the features, in every view: ``(C, H, S)``."""
        x_cat, x_num = self.rows(len(model.cat_cardinalities), model.n_features)
        return model.embed(x_cat, x_num.to(model.dtype))[:, :, list(self.features)]


def exchange_features(
    cat_cardinalities: Sequence[int],
    sensitive: Sequence[int],
    *,
    grids: Mapping[int, Tensor] | None = None,
    device: torch.device | str = "cpu",
) -> tuple[Exchange, ...]:
    """List what sensitive features are exchanged for: every category, or a grid of numbers.

    NOTE[DIFF]: the paper exchanges all sensitive features together, in Π C_k combinations.
    Embeddings are per feature, so invariance to each feature by itself is invariance to every
    combination: by default each has an exchange of its own, Σ C_k values in all.

    ``cat_cardinalities`` are those of an :class:`~fcorr.nn.fcorr.FCorrTransformer`, ``sensitive``
    positions among its features. ``grids`` has the numbers to exchange each sensitive numeric
    feature for; NaN is a missing one.

    Examples
    --------
    >>> race, sex = exchange_features([5, 2], [0, 1])
    >>> len(race), len(sex)
    (5, 2)
    """
    values = (
        torch.arange(cat_cardinalities[j]) if j < len(cat_cardinalities) else (grids or {})[j]
        for j in sensitive
    )
    pairs = zip(sensitive, values, strict=True)
    return tuple(Exchange([j], values_C[:, None].to(device)) for j, values_C in pairs)


def augmented_loss(
    z_BF: Tensor, extras: dict[int, Tensor], log_n_BK: Tensor | None = None
) -> Tensor:
    """CAR of each row by input augmentation (equation 3): columns of one softmax over p + C keys.

    ``extras`` has the C layer-normed counterfactual embeddings ``(B, C)`` of each sensitive feature
    σ, and ``log_n_BK`` what the softmax divides by, where the forward pass has it already.
    """
    n_features = z_BF.shape[1]
    t_BF = z_BF / math.sqrt(n_features)
    z_BK = torch.cat([z_BF, *extras.values()], dim=1)
    if log_n_BK is None:
        # √p, not √(p + C): the scores stay those of the model without the extra keys.
        log_n_BK = attend_with_partition(z_BK, math.sqrt(n_features))[1]
    centre_B1 = z_BK.mean(1, keepdim=True)
    losses = torch.zeros_like(z_BF[:, 0])
    for sigma, extra_BC in extras.items():
        own_B1 = z_BF[:, sigma : sigma + 1]
        column_BF = torch.exp(t_BF * (own_B1 - centre_B1) - log_n_BK[:, :n_features])
        gaps_BC1 = (extra_BC - own_B1).unsqueeze(2)
        change_BCF = torch.expm1(gaps_BC1 * t_BF.unsqueeze(1)) * column_BF.unsqueeze(1)
        losses = losses + change_BCF.square().sum((1, 2)) / extra_BC.shape[1]
    return losses


def car_sensitive(
    model: FCorrTransformer, e_BHF: Tensor, exchanges: Sequence[Exchange]
) -> tuple[Tensor, Tensor]:
    """Run the model, with CAR by input augmentation and its gradient in the sensitive embeddings.

    NOTE[DIFF]: the paper lets the gradient reach every parameter. It can then lower the loss by
    inflating the *other* features, or the spread LayerNorm divides by, instead of closing the gap
    between the categories. Here everything but the sensitive features' own embedding parameters
    is a constant, so that closing the gap is all it can do; and predictions are made with the
    softmax over p keys that they are made with after training.

    The compiled kernels take O(p·C) time for it: the columns of the softmax over p features come
    with the forward pass, and what the softmax over p + C keys divides by follows from them.

    ``e_BHF`` are rows that ``model.embed`` embedded. Returns outputs, ``(B, n_outputs)``, and CAR
    of each row, added up over views, ``(B,)``.
    """
    layer, norm = model.first_layer, model.first_layer.attention_norm
    own = [feature for exchange in exchanges for feature in exchange.features]
    seen_BHF = model.mix(e_BHF, own)
    fixed_BHF = seen_BHF.detach()
    # Of each sensitive feature, the values of each view as attention sees them: (C, H). Those of a
    # feature that has a main effect only are 0.
    values = [
        each
        for exchange in exchanges
        for each in (exchange.embed(model) * model.mixed[list(exchange.features)]).unbind(2)
    ]
    losses = torch.zeros_like(e_BHF[:, 0, 0])
    if runs_compiled(e_BHF):
        h_BHF, columns_BHSF, attended_BHS = layer.run_kernels(seen_BHF, own)
        norm_2F = torch.stack([norm.weight, norm.bias]).detach()
        for v in range(e_BHF.shape[1]):
            sizes = [len(each) for each in values]
            exchanged = seen_BHF[:, v, own], torch.cat([each[:, v] for each in values]), own, sizes
            columns = columns_BHSF[:, v], attended_BHS[:, v]
            losses = losses + CompiledColumnChange.apply(
                *exchanged, fixed_BHF[:, v], *columns, norm_2F, norm.eps
            )
        return model.decode(model.encode(h_BHF, first=1), e_BHF), losses
    weight, bias = norm.weight.detach(), norm.bias.detach()
    places = torch.tensor(own, device=e_BHF.device)
    for v, fixed_BF in enumerate(fixed_BHF.unbind(1)):
        open_BF = fixed_BF.index_copy(1, places, seen_BHF[:, v, own])
        extras = {
            sigma: normalize_by(fixed_BF, each[:, v], weight[sigma], bias[sigma], norm.eps)
            for sigma, each in zip(own, values, strict=True)
        }
        z_BF = normalize_by(fixed_BF, open_BF, weight, bias, norm.eps)
        losses = losses + augmented_loss(z_BF, extras)
    return model.decode(model.encode(seen_BHF), e_BHF), losses


def paper_weight(performance_loss: float, car_loss: float) -> float:
    """Weight λ of CAR from the losses on the first batch.

    NOTE[DIFF]: the paper prints ``10^⌊L_perf / L_CAR⌋``. The loss that it multiplies is a float32,
    in which that is infinite as soon as the ratio reaches 39. This is ``10^⌊log10(L_perf /
    L_CAR)⌋``, the largest power of ten that is not above the ratio. It is 1 where a loss is 0 or
    less and there is no ratio to take.

    Examples
    --------
    >>> paper_weight(0.59, 0.0025)  # the ratio is 236
    100.0
    """
    if performance_loss <= 0 or car_loss <= 0:
        return 1.0
    return 10.0 ** math.floor(math.log10(performance_loss / car_loss))


def normalize_by(around_BF: Tensor, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """LayerNorm of ``x`` by the mean and variance of entries that may be others."""
    variance, mean = torch.var_mean(around_BF, dim=1, correction=0, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias
