"""CAR of FCorrTransformer by its definition, in closed form: no model is run again.

The definition (paper, equation 2) is counterfactual data augmentation: the attention paid to the
sensitive feature, before and after its category is exchanged. Here both columns come from what an
exchange changes: O(C·p·K) time and O(C·p) memory a row. What it costs beside the definition as it
is written and beside input augmentation is measured by :mod:`paper.costs`.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from fcorr.nn.car import Exchange
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.training.objective import Objective
from fcorr.training.rows import Rows
from paper.attention import attend_with_partition


class ClosedFormObjective(Objective):
    """``L_perf + λ L_CAR`` of FCorrTransformer, with CAR by its definition."""

    def _outputs_and_car(self, batch: Rows) -> tuple[Tensor, Tensor]:
        e_B1F = self.model.embed_located(batch.x_cat, batch.x_num)
        return self.model.outputs(e_B1F), car_flips(self.model, e_B1F, self.exchanges)


def car_flips(model: FCorrTransformer, e_B1F: Tensor, exchanges: Sequence[Exchange]) -> Tensor:
    """CAR of each row ``(B,)`` by its definition, of a network with one view.

    An exchange moves a few embeddings, by d_σ, so LayerNorm's mean and variance after it follow
    from those before: by Σ d_σ/p, and by (Σ (2 d_σ (e_σ − mean) + d_σ²) − (Σ d_σ)²/p)/p.
    """
    e_BF = e_B1F.squeeze(1)
    norm, n_features = model.first_layer.attention_norm, e_BF.shape[1]
    variance_B1, mean_B1 = torch.var_mean(e_BF, dim=1, correction=0, keepdim=True)
    z_BF = (e_BF - mean_B1) * torch.rsqrt(variance_B1 + norm.eps) * norm.weight + norm.bias
    losses = torch.zeros_like(e_BF[:, 0])
    for exchange in exchanges:
        own = list(exchange.features)
        columns_BSF, e_own_BS = attention_columns(z_BF, own), e_BF[:, own]
        for values_S in exchange.embed(model)[:, 0]:
            move_BS = values_S - e_own_BS
            shift_B1 = move_BS.sum(1, keepdim=True) / n_features
            grown_BS = 2 * move_BS * (e_own_BS - mean_B1) + move_BS.square()
            grown_B1 = grown_BS.sum(1, keepdim=True) / n_features - shift_B1.square()
            scale_B1 = torch.rsqrt(variance_B1 + grown_B1 + norm.eps)
            exchanged_BF = e_BF.index_copy(1, torch.tensor(own), values_S.expand_as(e_own_BS))
            flipped_BF = (exchanged_BF - mean_B1 - shift_B1) * scale_B1 * norm.weight + norm.bias
            change_BSF = columns_BSF - attention_columns(flipped_BF, own)
            losses = losses + change_BSF.square().sum((1, 2)) / len(exchange)
    return losses


def attention_columns(z_BF: Tensor, features: list[int]) -> Tensor:
    """Columns of the attention matrix, from what each softmax divides by: ``(B, S, F)``."""
    root = math.sqrt(z_BF.shape[1])
    log_n_BF = attend_with_partition(z_BF, root)[1]
    keys_BS = z_BF[:, features] - z_BF.mean(1, keepdim=True)
    return torch.exp(z_BF.unsqueeze(1) * (keys_BS / root).unsqueeze(2) - log_n_BF.unsqueeze(1))
