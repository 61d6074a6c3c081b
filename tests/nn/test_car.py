"""CAR in its forms against the equations written out, values and gradients."""

import math

import numpy as np
import pytest
import torch

from fcorr.nn import FCorrTransformer, car_sensitive
from fcorr.nn.car import Exchange, exchange_features, paper_weight
from paper.augmentation import augmented_forward, exchange_combinations
from tests.nn.networks import draw_rows, perturb, seeded

CARDINALITIES = [3, 2, 4]
N_NUMERIC = 3


def make_model(**options):
    model = FCorrTransformer(CARDINALITIES, N_NUMERIC, (5, 5), generator=seeded(), **options)
    with torch.no_grad():  # away from the special values of a fresh LayerNorm
        for layer in model.layers:
            for norm in (layer.attention_norm, layer.stack_norm):
                norm.weight.uniform_(0.5, 2, generator=seeded(1))
                norm.bias.uniform_(-1, 1, generator=seeded(2))
    return model.double()


def make_rows(n_rows=9):
    codes, numbers = draw_rows(CARDINALITIES, N_NUMERIC, n_rows, seed=3)
    return codes, numbers.double()


def let_categories_embed_alike(model, sigma):
    """Zero the weights of a feature's categories: only its bias is left."""
    start, stop = model.categorical.offsets[sigma], model.categorical.offsets[sigma + 1]
    with torch.no_grad():
        model.categorical.cat_linear.weight[start:stop] = 0


GRIDS = {len(CARDINALITIES) + j: torch.linspace(-1.5, 1.5, 4 + j) for j in range(N_NUMERIC)}


def exchanges_of(model, sensitive, combinations=False):
    exchange = exchange_combinations if combinations else exchange_features
    return exchange(model.cat_cardinalities, sensitive, grids=GRIDS)


def augmented_by_matrix(model, codes, numbers, exchanges, only_own=False):
    """Equation 3 of each view, with its p × (p + C) matrix.

    ``only_own``: with the default form's gradient, into the sensitive features' embeddings alone.
    """
    norm, losses = model.first_layer.attention_norm, 0
    weight, bias = norm.weight, norm.bias
    if only_own:
        weight, bias = weight.detach(), bias.detach()
    seen = model.mix(model.embed(codes, numbers))
    features = [sigma for exchange in exchanges for sigma in exchange.features]
    own = torch.zeros(seen.shape[2], dtype=torch.bool)
    own[features] = True
    values = []
    for exchange in exchanges:
        x_cat, x_num = exchange.rows(codes.shape[1], seen.shape[2])
        mixed = model.mix(model.embed(x_cat, x_num.to(seen.dtype)))
        values += [mixed[:, :, sigma] for sigma in exchange.features]
    for view, e in enumerate(seen.unbind(1)):
        around = e.detach() if only_own else e
        e = torch.where(own, e, around)
        variance, mean = torch.var_mean(around, 1, correction=0, keepdim=True)
        deviation = (variance + norm.eps).sqrt()
        z = (e - mean) / deviation * weight + bias
        extras = [
            (each[:, view] - mean) / deviation * weight[sigma] + bias[sigma]
            for sigma, each in zip(features, values, strict=True)
        ]
        keys, p = torch.cat([z, *extras], 1), z.shape[1]
        attention = torch.softmax(z.unsqueeze(2) * keys.unsqueeze(1) / math.sqrt(p), 2)
        parts = attention[:, :, p:].split([extra.shape[1] for extra in extras], dim=2)
        for sigma, part in zip(features, parts, strict=True):
            change = attention[:, :, sigma, None] - part
            losses = losses + change.square().sum((1, 2)) / part.shape[2]
    return losses


def losses_of(form, model, codes, numbers, sensitive, combinations=False):
    exchanges = exchanges_of(model, sensitive, combinations)
    return form(model, model.embed(codes, numbers), exchanges)[1]


def test_an_exchange_makes_rows_that_hold_its_values():
    values = torch.tensor([[0.5, 2.0], [torch.nan, 0.0]])
    exchange = Exchange([4, 2], values)
    x_cat, x_num = exchange.rows(3, 6)
    assert x_cat.tolist() == [[0, 0, 2], [0, 0, 0]]
    np.testing.assert_array_equal(x_num, [[0, 0.5, 0], [0, np.nan, 0]])
    model = make_model(learn_missing=True)
    everywhere = model.embed(x_cat, x_num.double())
    torch.testing.assert_close(exchange.embed(model), everywhere[:, :, [4, 2]], rtol=0, atol=0)


each_form = pytest.mark.parametrize("form", [augmented_forward, car_sensitive])


@each_form
def test_car_is_exactly_zero_when_all_categories_embed_alike(form):
    """Of each sensitive feature, where there are several."""
    model, (codes, numbers) = make_model(), make_rows()
    assert (losses_of(form, model, codes, numbers, [1]) > 1e-6).all()
    let_categories_embed_alike(model, 1)
    assert (losses_of(form, model, codes, numbers, [1]) == 0).all()
    assert (losses_of(form, model, codes, numbers, [0, 1]) > 0).all()
    let_categories_embed_alike(model, 0)
    assert (losses_of(form, model, codes, numbers, [0, 1]) == 0).all()


@each_form
def test_car_is_zero_only_then(form):
    """A gap between two categories that no row of the batch has is seen all the same."""
    model, (codes, numbers) = make_model(), make_rows()
    let_categories_embed_alike(model, 0)
    codes[:, 0] = 0
    with torch.no_grad():
        model.categorical.cat_linear.weight[2] = 0.5
        assert model.categorical.categories(0).unique().numel() == 2
    assert (losses_of(form, model, codes, numbers, [0]) > 1e-9).all()


def test_default_form_leaves_every_other_parameters_gradient_untouched():
    model, (codes, numbers) = make_model(), make_rows()
    sigma = 1
    losses_of(car_sensitive, model, codes, numbers, [sigma]).sum().backward()
    start, stop = model.categorical.offsets[sigma], model.categorical.offsets[sigma + 1]
    own = {
        "categorical.elementwise.weight": slice(start, stop),
        "categorical.elementwise.bias": slice(start, stop),
        "categorical.cat_linear.weight": slice(start, stop),
        "categorical.cat_linear.bias": slice(sigma, sigma + 1),
    }
    for name, parameter in model.named_parameters():
        grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()
        if name in own:
            assert (grad[own[name]] != 0).any(), name
            grad[own[name]] = 0
        assert (grad == 0).all(), name


def wide_model(n_numeric, dtype=torch.float64):
    model = perturb(FCorrTransformer([3, 2], n_numeric, (4,), generator=seeded()), seed=4)
    codes, numbers = draw_rows((3, 2), n_numeric, 20, seed=5)
    return model.to(dtype), codes, numbers.to(dtype)


def with_gradients(losses, model):
    weight = torch.randn(20, generator=seeded(6)).to(losses.dtype)
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(
        (weight * losses).sum(), parameters, allow_unused=True, materialize_grads=True
    )
    return losses.detach(), dict(zip(dict(model.named_parameters()), gradients, strict=True))


def compare(form, make, tolerances, sensitive=(0, 1), combinations=False):
    """Values, and gradients into every parameter, in float64 and in float32, by the matrix."""
    model, *rows = make(torch.float64)
    exchanges = exchanges_of(model, sensitive, combinations)
    exact = augmented_by_matrix(model, *rows, exchanges, only_own=form is car_sensitive)
    assert (exact > 1e-9).all()
    exact, exact_gradients = with_gradients(exact, model)
    largest = max(g.abs().max() for g in exact_gradients.values())
    for dtype, rtol in zip((torch.float64, torch.float32), tolerances, strict=True):
        model, *rows = make(dtype)
        found = losses_of(form, model, *rows, sensitive, combinations)
        losses, gradients = with_gradients(found, model)
        torch.testing.assert_close(losses.double(), exact, rtol=rtol, atol=rtol * exact.max())
        for name, gradient in gradients.items():
            torch.testing.assert_close(
                gradient.double(), exact_gradients[name], rtol=rtol, atol=rtol * largest, msg=name
            )


@pytest.mark.parametrize("n_numeric", [4, 40, 200])
@each_form
def test_forms_equal_their_matrices(form, n_numeric, each_engine):
    compare(form, lambda dtype: wide_model(n_numeric, dtype), (1e-9, 2e-4))


@pytest.mark.parametrize("combinations", [False, True])
@pytest.mark.parametrize("sensitive", [[4], [0, 4], [3, 1, 5]], ids=str)
@pytest.mark.parametrize("numeric_embedding", ["spline", "paper"])
@each_form
def test_numbers_and_combinations(form, numeric_embedding, sensitive, combinations, each_engine):
    """Sensitive numbers are exchanged for their grids, several features one by one or together."""

    def make(dtype):
        model, (codes, numbers) = make_model(numeric_embedding=numeric_embedding), make_rows(20)
        return model.to(dtype), codes, numbers.to(dtype)

    compare(form, make, (1e-7, 5e-4), sensitive, combinations)


@pytest.mark.parametrize("options", [{}, {"n_layers": 3}, {"residual": True}])
def test_the_default_form_predicts_as_the_model_does(options, each_engine):
    model, (codes, numbers) = make_model(**options).float(), make_rows()
    e = model.embed(codes, numbers.float())
    outputs, _ = car_sensitive(model, e, exchanges_of(model, [0, 1]))
    torch.testing.assert_close(outputs, model(codes, numbers.float()))


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_small_gaps_keep_their_digits(gap, each_engine):
    """Where the categories have all but met the loss is tiny; it must not be rounding."""

    def loss_and_pull(dtype):
        model, codes, numbers = wide_model(40)
        let_categories_embed_alike(model, 0)
        with torch.no_grad():
            model.categorical.elementwise.weight[:3] = 1
            model.categorical.elementwise.bias[:3] = 0
            model.categorical.cat_linear.weight[:3] = gap * torch.tensor([-1.0, 0.0, 2.0])
        model, numbers = model.to(dtype), numbers.to(dtype)
        losses = losses_of(car_sensitive, model, codes, numbers, [0])
        losses.sum().backward()
        return losses.detach().double(), model.categorical.cat_linear.weight.grad[:3].double()

    exact, single = loss_and_pull(torch.float64), loss_and_pull(torch.float32)
    # The embeddings themselves are rounded to about 1e-7.
    for value, expected in zip(single, exact, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-5 + 3e-7 / gap, atol=0)


@pytest.mark.parametrize(
    ("performance", "car", "weight"),
    [(0.59, 0.0025, 100.0), (1.0, 1.0, 1.0), (0.1, 0.5, 0.1), (1.0, 1e-300, 1e300), (1.0, 0, 1.0)],
)
def test_paper_weight_is_the_power_of_ten_below_the_ratio(performance, car, weight):
    assert paper_weight(performance, car) == pytest.approx(weight)
