"""Models to certify."""

from types import SimpleNamespace

import pytest
import torch

from fcorr.nn import FCorrTransformer


def make_model(cards=(3, 2, 4), n_numeric=3, *, seed=0, **options):
    """A random model whose LayerNorm weights are not all alike."""
    generator = torch.Generator().manual_seed(seed)
    options.setdefault("head", (8, 8))
    model = FCorrTransformer(cards, n_numeric, generator=generator, **options).eval()
    with torch.no_grad():
        for norm in (m for m in model.modules() if isinstance(m, torch.nn.LayerNorm)):
            norm.weight.add_(0.3 * torch.randn(norm.weight.shape, generator=generator))
            norm.bias.add_(0.3 * torch.randn(norm.bias.shape, generator=generator))
        if (missing := missing_of(model)) is not None:
            missing.normal_(generator=generator)
    return model


def missing_of(model):
    """The embeddings of missing numbers, of one number or of views."""
    return model.missing if model.views is None else model.views.missing


def random_inputs(model, n_rows, seed=0):
    """Rows of any categories and numbers, some missing where the model takes that."""
    generator = torch.Generator().manual_seed(seed)
    codes = [torch.randint(0, c, (n_rows,), generator=generator) for c in model.cat_cardinalities]
    n_numeric = model.n_features - len(codes)
    x_num = 6 * torch.rand(n_rows, n_numeric, generator=generator) - 3
    if missing_of(model) is not None:
        x_num[torch.rand(x_num.shape, generator=generator) < 0.1] = torch.nan
    return torch.stack(codes, 1), x_num


def values_of(model, numbers=9):
    """All categories, and some numbers of each numeric feature."""
    values = [torch.arange(c).float() for c in model.cat_cardinalities]
    n_numeric = model.n_features - len(values)
    return values + [torch.linspace(-2, 2, numbers)] * n_numeric


@pytest.fixture(scope="session")
def lab():
    """The functions of this file."""
    return SimpleNamespace(make_model=make_model, random_inputs=random_inputs, values_of=values_of)
