"""CAR by input augmentation, as the paper trains its model (equation 3).

The counterfactual categories are extra features that pass through every layer. The library's own
form, :func:`fcorr.nn.car_sensitive`, stops the gradient everywhere but at the sensitive feature's
embedding, and predicts without extras: see ``docs/deviations.md``.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from fcorr import FCorrClassifier, FCorrRegressor
from fcorr.nn.car import Exchange, augmented_loss, exchange_features, normalize_by
from fcorr.nn.fcorr import FCorrEncoderLayer, FCorrTransformer
from fcorr.nn.layers import ElementwiseLinear
from fcorr.training.objective import Objective
from fcorr.training.rows import Rows
from paper.attention import attend_with_partition


class AugmentedObjective(Objective):
    """``L_perf + λ L_CAR`` of FCorrTransformer with one view, both from augmented input."""

    def _outputs_and_car(self, batch: Rows) -> tuple[Tensor, Tensor]:
        e_B1F = self.model.embed_located(batch.x_cat, batch.x_num)
        return augmented_forward(self.model, e_B1F, self.exchanges)


class _Augmented:
    """What the two estimators share: the objective. They need ``main_effects=False``."""

    def _objective(self: Any, model: Any, exchanges: Any, *_: Any) -> Objective:
        sensitive = self.schema_.sensitive_positions
        options = {"sensitive": sensitive, "exchanges": exchanges, "car": self.car}
        return AugmentedObjective(model, self._loss(), **options)


class AugmentedClassifier(_Augmented, FCorrClassifier):
    """The paper's model for classes, and CAR in the paper's form."""


class AugmentedRegressor(_Augmented, FCorrRegressor):
    """The paper's model for numbers, and CAR in the paper's form."""


def exchange_combinations(
    cat_cardinalities: Sequence[int],
    sensitive: Sequence[int],
    *,
    grids: Mapping[int, Tensor] | None = None,
) -> tuple[Exchange]:
    """Exchange all sensitive features at once, in Π C_k combinations, as the paper does.

    Examples
    --------
    >>> (both,) = exchange_combinations([5, 2], [0, 1])
    >>> both.features, len(both)
    ((0, 1), 10)
    """
    each = exchange_features(cat_cardinalities, sensitive, grids=grids)
    columns = torch.meshgrid(*(one.values[:, 0].float() for one in each), indexing="ij")
    values_CS = torch.stack([column.flatten() for column in columns], dim=1)
    return (Exchange(tuple(sensitive), values_CS),)


def augmented_forward(
    model: FCorrTransformer, e_B1F: Tensor, exchanges: Sequence[Exchange]
) -> tuple[Tensor, Tensor]:
    """Run a model with one view on augmented input, as the paper trains it: O(p·(K + C)).

    The counterfactual categories pass through every encoder layer as extra features that share
    the sensitive feature's parameters, take part in each softmax, and are dropped before the
    head. Predictions therefore differ a little from the model's own, which has no extras. Returns
    outputs, ``(B, n_outputs)``, and CAR of the first layer, ``(B,)``.
    """
    h_BF = e_B1F.squeeze(1)
    extras = {
        sigma: values_C.expand(len(h_BF), -1)
        for exchange in exchanges
        for sigma, values_C in zip(exchange.features, exchange.embed(model)[:, 0].T, strict=True)
    }
    losses = []
    for layer in model.layers:
        h_BF, extras, loss_B = _augmented_layer(cast(FCorrEncoderLayer, layer), h_BF, extras)
        losses.append(loss_B)
    return model.decode(h_BF.unsqueeze(1), e_B1F), losses[0]


def _augmented_layer(
    layer: FCorrEncoderLayer, h_BF: Tensor, extras: dict[int, Tensor]
) -> tuple[Tensor, dict[int, Tensor], Tensor]:
    """One encoder layer on p features and their extras, and its CAR.

    The paper's parameter-sharing operations own no parameters: each reads the sensitive feature's
    entries out of the standard layer it stands beside. SenCatLinear comes with `Exchange.embed`: a
    category is one look-up in its feature's own embedding.
    """

    def sen_layer_norm(norm: nn.LayerNorm, x_BC: Tensor, around_BF: Tensor, sigma: int) -> Tensor:
        """Take mean and variance of the p original entries, weight and bias of feature σ."""
        return normalize_by(around_BF, x_BC, norm.weight[sigma], norm.bias[sigma], norm.eps)

    n_features, norm = h_BF.shape[1], layer.attention_norm
    # Not torch's fused LayerNorm for the first: by the same operations, entries that embed alike
    # come out alike to the bit, and CAR is then exactly 0.
    z_BF = normalize_by(h_BF, h_BF, norm.weight, norm.bias, norm.eps)
    z_extras = {sigma: sen_layer_norm(norm, x, h_BF, sigma) for sigma, x in extras.items()}
    z_BK = torch.cat([z_BF, *z_extras.values()], dim=1)
    # √p, not √(p + C): the scores stay those of the model without the extra keys.
    attended, log_n_BK = attend_with_partition(z_BK, math.sqrt(n_features))
    losses = augmented_loss(z_BF, z_extras, log_n_BK)
    if layer.residual:
        attended = attended + torch.cat([h_BF, *extras.values()], dim=1)
    sizes = [n_features, *(x.shape[1] for x in extras.values())]
    a_BF, *a_extras = attended.split(sizes, dim=1)
    h_BF = a_BF + layer.transform(layer.stack_norm(a_BF))
    transformed = {}
    for sigma, a_BC in zip(extras, a_extras, strict=True):
        x = sen_layer_norm(layer.stack_norm, a_BC, a_BF, sigma)
        for i, linear in enumerate(cast(Iterable[ElementwiseLinear], layer.stack)):
            # SenElementWiseLinear: weight and bias of feature σ, for every extra entry.
            x = (gelu(x) if i else x) * linear.weight[sigma] + linear.bias[sigma]
        transformed[sigma] = a_BC + x
    return h_BF, transformed, losses
