"""Models to certify: with one number for each feature, with views, and packs of these."""

from types import SimpleNamespace

import pytest
import torch

from fcorr.nn import FCorrTransformer
from fcorr.nn.fcorr import Pack
from tests.nn.networks import draw_rows


def make_model(cards=(3, 2, 4), n_numeric=3, *, seed=0, **options):
    """A random model whose LayerNorm weights are not all alike, nor its main effects 0."""
    generator = torch.Generator().manual_seed(seed)
    options.setdefault("head", (8, 8))
    model = FCorrTransformer(cards, n_numeric, generator=generator, **options).eval()
    norms = (m for m in model.modules() if isinstance(m, torch.nn.LayerNorm))
    parts = [part for norm in norms for part in (norm.weight, norm.bias)]
    with torch.no_grad():
        for part in [*parts, *(() if model.views is None else model.views.parameters())]:
            part.add_(0.3 * torch.randn(part.shape, generator=generator))
        if (missing := missing_of(model)) is not None:
            missing.normal_(generator=generator)
    return model


def missing_of(model):
    """The embeddings of missing numbers, of one number or of views."""
    return model.missing if model.views is None else model.views.missing


def make_views(cards=(3, 2, 4), n_numeric=3, **options):
    return make_model(cards, n_numeric, **{"n_views": 4} | options)


def make_pack(cards=(3, 2, 4), n_numeric=3, **options):
    """Members with other views, knots and heads."""
    knots = [torch.tensor([-1.0, 0.5, 1.0])] * n_numeric
    other = {"seed": 5, "n_views": 5, "head": (6,), "knots": knots}
    first, second = (make_views(cards, n_numeric, **options | each) for each in ({}, other))
    return Pack([first, second]).eval()


def random_inputs(model, n_rows):
    """Rows of any categories and numbers, some missing where the model takes that."""
    n_numeric = model.n_features - len(model.cat_cardinalities)
    missing = 0.0 if missing_of(model.members[0]) is None else 0.1
    codes, numbers = draw_rows(model.cat_cardinalities, n_numeric, n_rows, missing=missing)
    return codes, 1.5 * numbers


def values_of(model, numbers=9):
    """All categories, and some numbers of each numeric feature."""
    values = [torch.arange(c).float() for c in model.cat_cardinalities]
    n_numeric = model.n_features - len(values)
    return values + [torch.linspace(-2, 2, numbers)] * n_numeric


@pytest.fixture(scope="session")
def lab():
    """The functions of this file."""
    return SimpleNamespace(
        make_model=make_model,
        make_views=make_views,
        make_pack=make_pack,
        random_inputs=random_inputs,
        values_of=values_of,
    )
