"""The forward pass with extra entries: its outputs. Its losses are tested with CAR's own."""

import math

import pytest
import torch

from paper.augmentation import augmented_forward
from tests.nn.test_car import exchanges_of, let_categories_embed_alike, make_model, make_rows


@pytest.mark.parametrize("options", [{}, {"n_layers": 3}, {"residual": True}])
def test_augmented_forward_has_the_models_parameters_and_without_extras_its_outputs(options):
    model, (codes, numbers) = make_model(**options), make_rows()
    before = {name: p.shape for name, p in model.named_parameters()}
    e = model.embed(codes, numbers)
    outputs, losses = augmented_forward(model, e, exchanges_of(model, [0, 1]))
    assert (outputs.shape, losses.shape) == ((9, 1), (9,))
    assert {name: p.shape for name, p in model.named_parameters()} == before
    torch.testing.assert_close(augmented_forward(model, e, [])[0], model(codes, numbers))


@pytest.mark.parametrize("options", [{}, {"n_layers": 3}, {"residual": True}])
def test_extras_behave_like_copies_of_the_sensitive_feature(options):
    """A model whose features are repeated by hand gives what the augmentation gives.

    With the sensitive category the only one there is, an extra entry equals the original one at
    every layer, so attention over p + 1 entries has two equal keys.
    """
    model, (codes, numbers) = make_model(**options), make_rows()
    sigma = 1
    let_categories_embed_alike(model, sigma)
    outputs, _ = augmented_forward(model, model.embed(codes, numbers), exchanges_of(model, [sigma]))

    e = model.embed(codes, numbers)
    h = e[:, 0]
    for layer in model.layers:
        z = layer.attention_norm(h)
        keys = torch.cat([z, z[:, [sigma, sigma]]], dim=1)
        a = torch.softmax(z.unsqueeze(2) * keys.unsqueeze(1) / math.sqrt(6), dim=2)
        a = (a @ keys.unsqueeze(2)).squeeze(2) + (h if layer.residual else 0)
        h = a + layer.transform(layer.stack_norm(a))
    torch.testing.assert_close(outputs, model.decode(h.unsqueeze(1), e))
