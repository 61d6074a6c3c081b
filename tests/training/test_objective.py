import math

import pytest
import torch
from fcorr.training.losses import binary_log_loss

from fcorr import FCorrClassifier
from fcorr.nn import FCorrTransformer
from fcorr.nn.car import car_cda, exchange_features, paper_weight
from fcorr.training.objective import Objective, Rows

SMALL = {"sensitive": "sex", "head": (4,), "epochs": 2, "random_state": 0}


RACE = exchange_features([3, 3], 2, [0])


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    return Rows(
        torch.randint(0, 3, (16, 2), generator=generator),
        8 * torch.rand(16, 2, generator=generator),  # places among the model's nine knots
        torch.randint(0, 2, (16,), generator=generator).float(),
        torch.ones(16),
    )


@pytest.fixture
def model():
    generator = torch.Generator().manual_seed(1)
    return FCorrTransformer([3, 3], 2, head=(4,), generator=generator)


def test_total_is_performance_and_weighted_car(model, batch):
    objective = Objective(model, binary_log_loss, exchanges=RACE, car=7.0, car_form="cda")
    total, performance, car = objective(batch)
    torch.testing.assert_close(total, performance + 7 * car)
    numbers = batch.x_num / 2 - 2  # the default knots run from −2 to 2 in steps of a half
    torch.testing.assert_close(car, car_cda(model, batch.x_cat, numbers, RACE).mean())
    outputs = model(batch.x_cat, numbers)
    torch.testing.assert_close(performance, binary_log_loss(outputs, batch.target).mean())


@pytest.mark.parametrize(("sensitive", "car"), [([], 7.0), ([0], None), ([0], 0)])
def test_nothing_to_regularise(model, batch, sensitive, car):
    objective = Objective(
        model, binary_log_loss, exchanges=exchange_features([3, 3], 2, sensitive), car=car
    )
    total, performance, measured = objective(batch)
    assert total is performance
    assert measured == 0
    assert objective.car_weight is None
    assert not objective.has_car


def test_rows_weigh_in_both_terms(model, batch):
    objective = Objective(model, binary_log_loss, exchanges=RACE, car=1.0)
    half = torch.tensor([2.0, 0.0]).repeat(8)
    weighted = Rows(batch.x_cat, batch.x_num, batch.target, half)
    kept = batch.take(torch.arange(0, 16, 2))
    for measured, expected in zip(objective(weighted), objective(kept), strict=True):
        torch.testing.assert_close(measured, expected)


@pytest.mark.parametrize("car_form", ["sensitive", "paper", "cda"])
def test_paper_rule_is_settled_on_the_first_batch(model, batch, car_form):
    objective = Objective(model, binary_log_loss, exchanges=RACE, car="paper", car_form=car_form)
    assert objective.needs_weight
    with pytest.raises(RuntimeError, match="must be settled before"):
        objective(batch)
    objective.settle_weight(batch)
    assert not objective.needs_weight
    _, performance, car = objective(batch)
    weight = paper_weight(performance.item(), car.item())
    assert objective.car_weight == weight
    assert 10 ** math.floor(math.log10(performance.item() / car.item())) == weight
    with torch.no_grad():
        for parameter in model.categorical.parameters():
            parameter.mul_(1e-3)  # a far smaller CAR would give another weight
    objective(batch)
    assert objective.car_weight == weight


def test_paper_rule_is_settled_in_parts_and_without_dropout(batch):
    generator = torch.Generator().manual_seed(1)
    model = FCorrTransformer([3, 3], 2, head=(4,), dropout=0.5, generator=generator)
    before = torch.get_rng_state()
    found = []
    for n_rows in (None, 16, 5, 1):
        objective = Objective(model.train(), binary_log_loss, exchanges=RACE, car="paper")
        objective.settle_weight(batch, n_rows)
        found.append(objective.car_weight)
    assert len(set(found)) == 1
    assert torch.equal(torch.get_rng_state(), before)


def test_paper_rule_is_recorded(table):
    history = FCorrClassifier(**SMALL, car="paper", invariance=None).fit(*table).history_
    assert math.log10(history.car_weight) == int(math.log10(history.car_weight))
    assert all(record.car > 0 for record in history.epochs)


def test_fixed_weight_is_recorded(table):
    assert FCorrClassifier(**SMALL, car=50).fit(*table).history_.car_weight == 50.0


@pytest.mark.parametrize("options", [{"car": None}, {"car": 0}, {"sensitive": None}])
def test_no_weight_without_car(table, options):
    history = FCorrClassifier(**SMALL | options).fit(*table).history_
    assert history.car_weight is None
    assert [record.car for record in history.epochs] == [None, None]
