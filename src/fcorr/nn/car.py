"""Counterfactual Attention Regularization (paper, §3.2), in three forms.

Every form returns one loss per row, ``(B,)``: how far the attention paid to the sensitive feature
(column σ of the first attention matrix) moves when its category is exchanged,

    L_CAR(x) = 1/C Σ_i ‖A(x)[:, σ] − A(x; s_i)[:, σ]‖²

summed over the sensitive features where there are several. 0 means that no exchange changes it.

- :func:`car_cda` computes A(x; s_i) by exchanging the category and running the model again. It is
  the definition (equation 2), and works for any model that exposes its attention.
- :func:`car_augmented` appends the C embedded categories as extra keys and runs once (equation 3).
- :func:`car_sensitive` does the same with the gradient stopped everywhere but at the sensitive
  feature's own embedding. It is the default of the estimators.
"""

import math
from collections.abc import Sequence
from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import gelu

from fcorr.nn.attention import log_partition
from fcorr.nn.embeddings import CategoricalEmbedding
from fcorr.nn.fcorr import FCorrEncoderLayer, FCorrTransformer
from fcorr.nn.layers import ElementwiseLinear


class AttentiveModel(Protocol):
    """Any model that shows how its features attend to each other."""

    cat_cardinalities: tuple[int, ...]

    def attention_weights(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """First-layer attention matrix ``(B, F, F)``, categorical features first."""
        ...


def car_cda(
    model: AttentiveModel, x_cat: Tensor, x_num: Tensor, sensitive: Sequence[int]
) -> Tensor:
    """CAR by counterfactual data augmentation (equation 2): C + 1 attention matrices.

    Parameters
    ----------
    model : AttentiveModel
        The model whose attention is regularised.
    x_cat, x_num : Tensor
        Codes ``(B, n_categorical)`` and numbers ``(B, n_numeric)``.
    sensitive : sequence of int
        Positions of the sensitive features among the categorical ones.

    Returns
    -------
    Tensor
        Loss of each row, ``(B,)``.
    """
    attention_BFF = model.attention_weights(x_cat, x_num)
    losses = torch.zeros_like(attention_BFF[:, 0, 0])
    for sigma in sensitive:
        n_categories = model.cat_cardinalities[sigma]
        for category in range(n_categories):
            flipped = x_cat.clone()
            flipped[:, sigma] = category
            counterfactual_BFF = model.attention_weights(flipped, x_num)
            change_BF = attention_BFF[:, :, sigma] - counterfactual_BFF[:, :, sigma]
            losses = losses + change_BF.square().sum(1) / n_categories
    return losses


def car_augmented(z_BF: Tensor, extras: dict[int, Tensor]) -> Tensor:
    """CAR by input augmentation (equation 3): one softmax over p + C keys.

    Parameters
    ----------
    z_BF : Tensor
        Layer-normed embeddings of the p features.
    extras : dict of int to Tensor
        For each sensitive feature σ, its C layer-normed counterfactual embeddings ``(B, C)``.

    Returns
    -------
    Tensor
        Loss of each row, ``(B,)``.
    """
    keys_BK = torch.cat([z_BF, *extras.values()], dim=1)
    # √p, not √(p + C): the scores stay those of the model without the extra keys.
    scores_BFK = z_BF.unsqueeze(2) * (keys_BK / math.sqrt(z_BF.shape[1])).unsqueeze(1)
    attention_BFK = torch.softmax(scores_BFK, dim=2)
    losses = torch.zeros_like(z_BF[:, 0])
    start = z_BF.shape[1]
    for sigma, extra_BC in extras.items():
        stop = start + extra_BC.shape[1]
        change_BFC = attention_BFK[:, :, sigma, None] - attention_BFK[:, :, start:stop]
        losses = losses + change_BFC.square().sum((1, 2)) / extra_BC.shape[1]
        start = stop
    return losses


def car_sensitive(model: FCorrTransformer, e_BF: Tensor, sensitive: Sequence[int]) -> Tensor:
    """CAR by input augmentation, with gradient into the sensitive embeddings only.

    NOTE[DIFF]: the paper lets the gradient reach every parameter. It can then lower the loss by
    inflating the *other* features, or the spread LayerNorm divides by, instead of closing the gap
    between the categories. Here everything but the sensitive features' own embedding parameters
    is a constant, so that closing the gap is all it can do; and predictions are made with the
    softmax over p keys that they are made with after training.

    Takes O(p·(K + C)) time: what the softmax divides by comes from
    :func:`~fcorr.nn.attention.log_partition`, and only the C + 1 columns are computed.

    Parameters
    ----------
    model : FCorrTransformer
        The model that embedded the rows.
    e_BF : Tensor
        Embeddings of the rows, from ``model.embed``.
    sensitive : sequence of int
        Positions of the sensitive features among the categorical ones.

    Returns
    -------
    Tensor
        Loss of each row, ``(B,)``.
    """
    norm = model.first_layer.attention_norm
    fixed_BF = e_BF.detach()
    statistics = _mean_and_deviation(norm, fixed_BF)
    weight, bias = norm.weight.detach(), norm.bias.detach()
    own = list(sensitive)
    sizes = [model.cat_cardinalities[sigma] for sigma in own]
    owners = torch.tensor(own, device=e_BF.device).repeat_interleave(
        torch.tensor(sizes, device=e_BF.device)
    )
    categories_C = torch.cat([model.categorical.categories(sigma) for sigma in own])
    return ColumnChange.apply(
        _normalize(fixed_BF, statistics, weight, bias),
        _normalize(e_BF[:, own], statistics, weight[own], bias[own]),
        _normalize(categories_C.unsqueeze(0), statistics, weight[owners], bias[owners]),
        own,
        sizes,
    )


class ColumnChange(torch.autograd.Function):
    """Equation 3 from its columns alone: ``Σ_σ 1/C_σ Σ_i ‖A[:, σ] − A[:, p + i]‖²`` per row.

    ``A`` is the softmax over the p features and all extra keys. Its p × (p + C) matrix is never
    made: what it divides by is the softmax's own, plus the extras. The gradient flows into the
    sensitive features (as keys and as queries) and the extras; other features are constants.

    **Shape**: ``z (B, F)``, ``z_own (B, S)``, ``z_extra (B, ΣC)`` → ``(B,)``.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        z_BF: Tensor,
        z_own_BS: Tensor,
        z_extra_BC: Tensor,
        own: list[int],
        sizes: list[int],
    ) -> Tensor:
        """Compute the loss, and its gradient with it: both need the same exponentials."""
        root = math.sqrt(z_BF.shape[1])
        log_n_BF, mean_BF = log_partition(z_BF)
        t_BF = z_BF / root
        # Keys relative to the row's mean, as in log_partition: a shift that the softmax ignores.
        centre_B1 = z_BF.mean(1, keepdim=True)
        own_BS, extra_BC = z_own_BS - centre_B1, z_extra_BC - centre_B1
        w_BCF = (extra_BC.unsqueeze(2) * t_BF.unsqueeze(1)).sub_(log_n_BF.unsqueeze(1)).exp_()
        a_own_BSF = torch.exp(own_BS.unsqueeze(2) * t_BF.unsqueeze(1) - log_n_BF.unsqueeze(1))
        total_B1F = 1 + w_BCF.sum(1, keepdim=True)
        a_BCF = w_BCF.div_(total_B1F)
        a_own_BSF = a_own_BSF.div_(total_B1F)
        # g: derivative of the loss by each attention entry; times the entry, by its exponent.
        g_BCF = torch.empty_like(a_BCF)
        g_own_BSF = torch.empty_like(a_own_BSF)
        loss_B = torch.zeros_like(z_BF[:, 0])
        blocks = zip(a_BCF.split(sizes, 1), g_BCF.split(sizes, 1), strict=True)
        for k, (a_block, g_block) in enumerate(blocks):
            torch.sub(a_block, a_own_BSF[:, k : k + 1], out=g_block)
            loss_B += g_block.square().sum((1, 2)) / sizes[k]
            g_block.mul_(2 / sizes[k])
            g_own_BSF[:, k] = -g_block.sum(1)
        ga_BCF, ga_own_BSF = g_BCF.mul_(a_BCF), g_own_BSF.mul_(a_own_BSF)
        shared_BF = ga_BCF.sum(1) + ga_own_BSF.sum(1)
        ga_BCF -= a_BCF * shared_BF.unsqueeze(1)
        as_key_BSF = ga_own_BSF - a_own_BSF * shared_BF.unsqueeze(1)
        d_extra_BC = torch.bmm(ga_BCF, t_BF.unsqueeze(2)).squeeze(2)
        d_own_BS = torch.bmm(as_key_BSF, t_BF.unsqueeze(2)).squeeze(2)
        # As a query, a sensitive feature moves every exponent of its own row of A.
        through_own = (own_BS.unsqueeze(2) * ga_own_BSF[:, :, own]).sum(1)
        through_extra = (extra_BC.unsqueeze(2) * ga_BCF[:, :, own]).sum(1)
        through_rest = shared_BF[:, own] * mean_BF[:, own] / total_B1F[:, 0, own]
        d_own_BS += (through_own + through_extra - through_rest) / root
        ctx.save_for_backward(d_own_BS, d_extra_BC)
        return loss_B

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad_B: Tensor) -> tuple[None, Tensor, Tensor, None, None]:
        """Scale the gradient that the forward pass computed."""
        d_own_BS, d_extra_BC = ctx.saved_tensors  # type: ignore[attr-defined]
        grad_B1 = grad_B.unsqueeze(1)
        return None, grad_B1 * d_own_BS, grad_B1 * d_extra_BC, None, None


def augmented_forward(
    model: FCorrTransformer, x_cat: Tensor, x_num: Tensor, sensitive: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Run the model on augmented input, as the paper trains it.

    The counterfactual categories pass through every encoder layer as extra features that share
    the sensitive feature's parameters, take part in each softmax, and are dropped before the
    head. Predictions therefore differ a little from ``model(x_cat, x_num)``, which has no extras.

    Returns
    -------
    outputs : Tensor
        ``(B, n_outputs)``.
    losses : Tensor
        CAR of the first layer, ``(B,)``.
    """
    h_BF = model.embed(x_cat, x_num)
    extras = {
        sigma: sen_cat_embedding(model.categorical, sigma).expand(len(h_BF), -1)
        for sigma in sensitive
    }
    losses = car_augmented(*_augmented_norm(model.first_layer.attention_norm, h_BF, extras))
    for layer in model.layers:
        h_BF, extras = _augmented_layer(cast(FCorrEncoderLayer, layer), h_BF, extras)
    return model.decode(h_BF), losses


def paper_weight(performance_loss: float, car_loss: float) -> float:
    """Weight λ of CAR from the losses on the first batch.

    NOTE[DIFF]: the paper prints ``10^⌊L_perf / L_CAR⌋``, which overflows as soon as the ratio
    passes 308. This is ``10^⌊log10(L_perf / L_CAR)⌋``, the power of ten next below the ratio. It is
    1 where a loss is 0 and there is no ratio.

    Examples
    --------
    >>> paper_weight(0.59, 0.0025)  # the ratio is 236
    100.0
    """
    if performance_loss <= 0 or car_loss <= 0:
        return 1.0
    return 10.0 ** math.floor(math.log10(performance_loss / car_loss))


# The paper's three parameter-sharing operations. They own no parameters: each reads the sensitive
# feature's entries out of the standard layer it stands beside.


def sen_elementwise_linear(layer: ElementwiseLinear, x_BC: Tensor, sigma: int) -> Tensor:
    """SenElementWiseLinear: the layer's weight and bias of feature σ, for every extra entry."""
    return x_BC * layer.weight[sigma] + layer.bias[sigma]


def sen_cat_embedding(embedding: CategoricalEmbedding, sigma: int) -> Tensor:
    """SenElementWiseLinear and SenCatLinear of every category of feature σ: ``(C,)``.

    Each category is a one-hot vector that goes through the feature's own two layers; that is
    one look-up of its row of the embedding table.
    """
    return embedding.categories(sigma)


def sen_layer_norm(norm: nn.LayerNorm, x_BC: Tensor, h_BF: Tensor, sigma: int) -> Tensor:
    """SenLayerNorm: mean and variance of the p original entries, weight and bias of feature σ."""
    statistics = _mean_and_deviation(norm, h_BF)
    return _normalize(x_BC, statistics, norm.weight[sigma], norm.bias[sigma])


def _augmented_layer(
    layer: FCorrEncoderLayer, h_BF: Tensor, extras: dict[int, Tensor]
) -> tuple[Tensor, dict[int, Tensor]]:
    """One encoder layer on p features and their extras."""
    n_features = h_BF.shape[1]
    z_BF, z_extras = _augmented_norm(layer.attention_norm, h_BF, extras)
    z_BK = torch.cat([z_BF, *z_extras.values()], dim=1)
    scores_BKK = z_BK.unsqueeze(2) * (z_BK / math.sqrt(n_features)).unsqueeze(1)
    attended = torch.bmm(torch.softmax(scores_BKK, dim=2), z_BK.unsqueeze(2)).squeeze(2)
    if layer.residual:
        attended = attended + torch.cat([h_BF, *extras.values()], dim=1)
    sizes = [n_features, *(x.shape[1] for x in extras.values())]
    a_BF, *a_extras = attended.split(sizes, dim=1)
    h_BF = a_BF + layer.transform(layer.stack_norm(a_BF))
    transformed = {}
    for (sigma, _), a_BC in zip(extras.items(), a_extras, strict=True):
        x = sen_layer_norm(layer.stack_norm, a_BC, a_BF, sigma)
        for i, linear in enumerate(layer.stack):
            x = sen_elementwise_linear(cast(ElementwiseLinear, linear), gelu(x) if i else x, sigma)
        transformed[sigma] = a_BC + x
    return h_BF, transformed


def _augmented_norm(
    norm: nn.LayerNorm, h_BF: Tensor, extras: dict[int, Tensor]
) -> tuple[Tensor, dict[int, Tensor]]:
    """LayerNorm of the p features and SenLayerNorm of their extras.

    Both by the same operations, not torch's fused ones for the first: entries that embed alike
    come out alike to the bit, and CAR is then exactly 0.
    """
    z_BF = _normalize(h_BF, _mean_and_deviation(norm, h_BF), norm.weight, norm.bias)
    return z_BF, {sigma: sen_layer_norm(norm, x, h_BF, sigma) for sigma, x in extras.items()}


def _mean_and_deviation(norm: nn.LayerNorm, h_BF: Tensor) -> tuple[Tensor, Tensor]:
    variance, mean = torch.var_mean(h_BF, dim=1, correction=0, keepdim=True)
    return mean, torch.sqrt(variance + norm.eps)


def _normalize(
    x: Tensor, statistics: tuple[Tensor, Tensor], weight: Tensor, bias: Tensor
) -> Tensor:
    mean, deviation = statistics
    return (x - mean) / deviation * weight + bias
