"""Models to certify, and what they compute written out stage by stage."""

from types import SimpleNamespace

import pytest
import torch

from fcorr.certify import embedding_gap
from fcorr.nn import FCorrTransformer
from fcorr.nn.attention import attention_weights


def make_model(
    cards=(3, 2, 4), n_numeric=3, *, seed=0, gap=None, outlier=0.0, rough=0.3, **options
):
    """A random model whose LayerNorm weights are not all alike.

    ``gap``: let the embeddings of the first feature's categories differ by that much; ``outlier``:
    add it to the second feature's embedding.
    """
    generator = torch.Generator().manual_seed(seed)
    options.setdefault("head", (8, 8))
    model = FCorrTransformer(cards, n_numeric, generator=generator, **options).eval()
    with torch.no_grad():
        for norm in (m for m in model.modules() if isinstance(m, torch.nn.LayerNorm)):
            norm.weight.add_(rough * torch.randn(norm.weight.shape, generator=generator))
            norm.bias.add_(rough * torch.randn(norm.bias.shape, generator=generator))
        if model.missing is not None:
            model.missing.normal_(generator=generator)
        if len(cards) > 1:
            model.categorical.cat_linear.bias[1] += outlier
        if gap is not None:
            own = slice(0, cards[0])
            model.categorical.cat_linear.weight[own] *= gap / max(embedding_gap(model, 0), 1e-30)
            # Around 0 float32 can tell the smallest gaps apart.
            model.categorical.cat_linear.bias[0] -= model.categorical.categories(0).mean()
    return model


def random_inputs(model, n_rows, seed=0, low=-3.0, high=3.0):
    """Rows anywhere in the domain, some numbers missing where the model takes that."""
    generator = torch.Generator().manual_seed(seed)
    codes = [torch.randint(0, c, (n_rows,), generator=generator) for c in model.cat_cardinalities]
    n_numeric = model.head_norm.normalized_shape[0] - len(codes)
    x_num = low + (high - low) * torch.rand(n_rows, n_numeric, generator=generator)
    if model.missing is not None:
        x_num[torch.rand(x_num.shape, generator=generator) < 0.1] = torch.nan
    return torch.stack(codes, 1), x_num


def stages(model, e_BF):
    """Divisor and normed values of every LayerNorm, and the outputs; plain maths."""
    seen = []

    def normalise(norm, h_BF):
        centred = h_BF - h_BF.mean(1, keepdim=True)
        divisor_B1 = (centred.square().mean(1, keepdim=True) + norm.eps).sqrt()
        seen.append((divisor_B1[:, 0], centred / divisor_B1))
        return seen[-1][1] * norm.weight + norm.bias

    for layer in model.layers:
        z_BF = normalise(layer.attention_norm, e_BF)
        a_BF = (attention_weights(z_BF) @ z_BF.unsqueeze(2))[:, :, 0]
        a_BF = a_BF + e_BF if layer.residual else a_BF
        e_BF = a_BF + layer.transform(normalise(layer.stack_norm, a_BF))
    return seen, model.head(normalise(model.head_norm, e_BF))


def stages_and_slopes(model, e_BF, feature, step=1e-6):
    """The stages, and their derivatives by one feature's embedding from central differences."""
    ahead = torch.zeros_like(e_BF)
    ahead[:, feature] = step
    with torch.no_grad():
        (before, below), (after, above) = (stages(model, e) for e in (e_BF - ahead, e_BF + ahead))
        seen, output_BO = stages(model, e_BF)
    slopes = [(x1 - x0) / (2 * step) for (_, x0), (_, x1) in zip(before, after, strict=True)]
    return seen, slopes, output_BO, (above - below) / (2 * step)


@pytest.fixture(scope="session")
def lab():
    """The functions of this file."""
    return SimpleNamespace(
        make_model=make_model,
        random_inputs=random_inputs,
        stages_and_slopes=stages_and_slopes,
    )
