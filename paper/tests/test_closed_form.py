"""CAR in closed form against the definition, written out with its matrices."""

import pytest
import torch

from fcorr.nn import FCorrTransformer
from fcorr.nn.car import exchange_features
from fcorr.nn.engine import use_engine
from paper.augmentation import augmented_forward, exchange_combinations
from paper.baselines.car import car_cda
from paper.closed_form import car_flips
from paper.tests.test_baselines import losses_and_gradients


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def make(n_numeric, **options):
    model = FCorrTransformer([3, 2], n_numeric, (4,), generator=seeded(), **options)
    with torch.no_grad():  # away from the special values of a fresh LayerNorm
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=seeded(4)))
    codes = torch.stack([torch.randint(c, (20,), generator=seeded(c)) for c in (3, 2)], dim=1)
    return model, codes, torch.randn(20, n_numeric, generator=seeded(5))


def closed_form(model, codes, numbers, exchanges):
    return car_flips(model, model.embed(codes, numbers), exchanges)


@pytest.mark.parametrize("combinations", [False, True])
@pytest.mark.parametrize("sensitive", [[0], [1, 3]], ids=str)
@pytest.mark.parametrize("n_numeric", [4, 40])
@pytest.mark.parametrize("numeric_embedding", ["spline", "paper"])
def test_the_closed_form_is_the_definition(numeric_embedding, n_numeric, sensitive, combinations):
    model, codes, numbers = make(n_numeric, numeric_embedding=numeric_embedding)
    exchange = exchange_combinations if combinations else exchange_features
    exchanges = exchange([3, 2], sensitive, grids={3: torch.linspace(-2, 2, 4)})
    rows = codes, numbers.double()
    expected = losses_and_gradients(car_cda, model.double(), rows, exchanges)
    assert (expected[0] > 1e-9).all()
    found = losses_and_gradients(closed_form, model, rows, exchanges)
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-9)
    for engine in ("plain", "compiled"):
        with use_engine(engine):
            losses = closed_form(model.float(), codes, numbers, exchanges)
        torch.testing.assert_close(losses.double(), expected[0], rtol=5e-4, atol=1e-6)


def test_augmentation_comes_near_it_with_the_number_of_features():
    """One feature among many moves neither the denominator nor LayerNorm."""

    def disagreement(n_numeric):
        model = FCorrTransformer([3], n_numeric, (4,), generator=seeded()).double()
        codes = torch.arange(30).remainder(3).unsqueeze(1)
        numbers = torch.randn(30, n_numeric, dtype=torch.float64, generator=seeded(1))
        exchanges = exchange_features([3], [0])
        augmented = augmented_forward(model, model.embed(codes, numbers), exchanges)[1]
        return (augmented / closed_form(model, codes, numbers, exchanges) - 1).abs().max().item()

    few, many = disagreement(50), disagreement(800)
    assert many < 0.05
    assert many < few / 4
