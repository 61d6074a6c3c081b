"""Models to certify, and attacks: searches for changes that no bound may fall below."""

import copy
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


def flip_changes(model, x_cat, x_num, feature):
    """Largest change of any output over all pairs of categories, in float64: ``(B,)``."""
    exact = copy.deepcopy(model).double()
    outputs = []
    with torch.no_grad():
        for category in range(model.cat_cardinalities[feature]):
            flipped = x_cat.clone()
            flipped[:, feature] = category
            outputs.append(stages(exact, model.embed(flipped, x_num).double())[1])
    outputs_CBO = torch.stack(outputs)
    return (outputs_CBO.amax(0) - outputs_CBO.amin(0)).amax(1)


def climb(model, pieces, e_BF, feature, n_steps=30):
    """Projected ascent of the change between the two extreme categories.

    The other categorical features stay where they start; numbers' embeddings move in their ranges.
    """
    exact = copy.deepcopy(model).double()
    ends = exact.categorical.categories(feature).detach()
    low_F, high_F = pieces.low_FP.amin(1), pieces.high_FP.amax(1)
    n_categorical = len(model.cat_cardinalities)
    e_BF, best = e_BF.detach().double(), 0.0
    for step in range(n_steps):
        e_BF.requires_grad_()
        outputs = []
        for end in (ends.min(), ends.max()):
            column = torch.full_like(e_BF[:, :1], float(end))
            row = torch.cat([e_BF[:, :feature], column, e_BF[:, feature + 1 :]], 1)
            outputs.append(stages(exact, row)[1])
        change_BO = (outputs[1] - outputs[0]).abs()
        best = max(best, float(change_BO.detach().max()))
        (gradient,) = torch.autograd.grad(change_BO.clamp(min=1e-300).log().sum(), e_BF)
        with torch.no_grad():
            size_F = (high_F - low_F) * (0.1 if step < n_steps // 2 else 0.01)
            moved = torch.clamp(e_BF + size_F * gradient.sign(), low_F, high_F)
            moved[:, :n_categorical] = e_BF[:, :n_categorical]
        e_BF = moved.detach()
    return best


@pytest.fixture(scope="session")
def lab():
    """The functions of this file."""
    return SimpleNamespace(
        make_model=make_model,
        random_inputs=random_inputs,
        stages_and_slopes=stages_and_slopes,
        flip_changes=flip_changes,
        climb=climb,
    )
