"""What a step minimises, computed in another way; and totals, in balance afterwards."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.metrics import mean_tweedie_deviance

from fcorr import FCorrClassifier
from fcorr.nn import FCorrTransformer
from fcorr.nn.car import exchange_features, paper_weight
from fcorr.training.objective import (
    Objective,
    Target,
    binary_log_loss,
    class_shift,
    gamma_loss,
    log_loss,
    log_shift,
    poisson_loss,
    softmax,
    squared_error,
    tweedie_loss,
)
from fcorr.training.proxies import Groups, ScoreDial
from fcorr.training.rows import Rows
from paper.augmentation import AugmentedObjective
from paper.baselines.car import car_cda
from paper.closed_form import ClosedFormObjective
from tests.tables import QUICK, make_model, make_people, make_targets

# Losses


def test_losses_of_classes_and_of_squares():
    logits, target = torch.tensor([[-2.0], [0.0], [3.0]]), torch.tensor([0.0, 1.0, 1.0])
    losses = binary_log_loss(logits, target)
    assert losses.shape == (3,)
    expected = sklearn_log_loss(target.numpy(), torch.sigmoid(logits[:, 0]).numpy())
    np.testing.assert_allclose(losses.mean(), expected, rtol=1e-6)
    logits = torch.tensor([[1.0, 2.0, -1.0], [0.0, 0.5, 0.0]])
    losses = log_loss(logits, torch.tensor([1, 0]))
    torch.testing.assert_close(losses, -torch.log_softmax(logits, dim=1)[[0, 1], [1, 0]])
    losses = squared_error(torch.tensor([[1.0], [4.0]]), torch.tensor([3.0, 4.5]))
    torch.testing.assert_close(losses, torch.tensor([4.0, 0.25]))


@pytest.mark.parametrize("has_dial", [False, True])
def test_losses_of_rows_are_weighted_and_their_mean_is_what_training_minimises(has_dial):
    generator = torch.Generator().manual_seed(0)
    y = (torch.rand(40, generator=generator) < 0.4).float()
    outputs = torch.randn(15, 1, generator=generator, dtype=torch.float64)
    weight, rows = np.linspace(0.0, 2.0, 40), torch.arange(39, 9, -2)
    groups = Groups(
        torch.arange(40)[:, None] // 3 % 2, torch.ones(40), (torch.tensor([20.0, 20.0]),)
    )
    dial = ScoreDial(0.7, is_log_odds=True) if has_dial else None
    target = Target(y, weight, binary_log_loss, 0.0, 0.25, 1.0, np.zeros(40, int), dial, groups)
    chances = torch.sigmoid(outputs[:, 0]).numpy()
    expected = sklearn_log_loss(y[rows].numpy(), chances, sample_weight=weight[rows.numpy()])
    if dial is not None:
        expected += float(dial.penalty(outputs, y[rows], groups.each(lambda part: part[rows])))
    losses = target.losses(outputs, rows)
    assert losses.shape == (15,)
    assert float(losses.mean()) == pytest.approx(expected, rel=1e-12)


# Log links. A deviance is a loss and a constant: what they differ by must not depend on μ.

LOG_LINKS = {  # and the power of each
    "poisson": (poisson_loss, 1.0),
    **{f"tweedie {power}": (tweedie_loss(power), power) for power in (1.1, 1.5, 1.9)},
    "gamma": (gamma_loss, 2.0),
}
log_links = pytest.mark.parametrize("name", LOG_LINKS)


def observed(name):
    return [0.5, 1.0, 300.0] if name == "gamma" else [0.0, 0.5, 1.0, 300.0]


@log_links
def test_loss_is_half_the_unit_deviance(name):
    means = np.array([1e-3, 0.4, 1.0, 7.0, 1e4])
    offset = np.array([-1.0, 0.0, 2.0, 0.5, 3.0])
    outputs = torch.from_numpy(np.log(means) - offset)[:, None]
    loss, power = LOG_LINKS[name]
    for y in observed(name):
        target = torch.from_numpy(np.column_stack([np.full(5, y), offset]))
        losses = loss(outputs, target)
        assert losses.shape == (5,)
        half = [mean_tweedie_deviance([y], [mean], power=power) / 2 for mean in means]
        differences = losses.numpy() - half
        np.testing.assert_allclose(differences, differences[0], rtol=1e-9, atol=1e-9 * max(half))


@log_links
def test_gradient(name):
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(6, 1, generator=generator, dtype=torch.float64, requires_grad=True)
    y = torch.tensor(observed(name)[:2] * 3, dtype=torch.float64)
    target = torch.stack([y, torch.randn(6, generator=generator, dtype=torch.float64)], dim=1)
    assert torch.autograd.gradcheck(lambda o: LOG_LINKS[name][0](o, target), outputs)


@log_links
@pytest.mark.parametrize("log_mean", [-80.0, 80.0])
def test_extreme_means_are_no_nan(name, log_mean):
    outputs = torch.full((1, 1), log_mean, requires_grad=True)
    for y in observed(name)[:1]:
        loss = LOG_LINKS[name][0](outputs, torch.tensor([[y, 0.0]]))
        loss.sum().backward()
        assert not loss.isnan().any()
        assert not outputs.grad.isnan().any()


def test_no_claim_and_a_tiny_premium_cost_nothing():
    loss = tweedie_loss(1.9)(torch.tensor([[-200.0]]), torch.tensor([[0.0, 0.0]]))
    assert loss.item() == pytest.approx(10 * np.exp(-20))  # μ^(1−p) alone would overflow


# What a step minimises

SMALL = QUICK | {"sensitive": "sex"}
RACE = exchange_features([3, 3], [0])


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
    objective = ClosedFormObjective(model, binary_log_loss, exchanges=RACE, car=7.0)
    total, performance, car = objective(batch)
    torch.testing.assert_close(total, performance + 7 * car)
    numbers = batch.x_num / 2 - 2  # the default knots run from −2 to 2 in steps of a half
    torch.testing.assert_close(car, car_cda(model, batch.x_cat, numbers, RACE).mean())
    outputs = model(batch.x_cat, numbers)
    torch.testing.assert_close(performance, binary_log_loss(outputs, batch.target).mean())


@pytest.mark.parametrize(("sensitive", "car"), [([], 7.0), ([0], None), ([0], 0)])
def test_nothing_to_regularise(model, batch, sensitive, car):
    objective = Objective(
        model, binary_log_loss, exchanges=exchange_features([3, 3], sensitive), car=car
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


@pytest.mark.parametrize("kind", [Objective, AugmentedObjective])
def test_paper_rule_is_settled_on_the_first_batch(model, batch, kind):
    objective = kind(model, binary_log_loss, exchanges=RACE, car="paper")
    with pytest.raises(RuntimeError, match="must be settled before"):
        objective(batch)
    objective.settle_weight(batch)
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


def test_weights_are_recorded(table):
    history = FCorrClassifier(**SMALL, car="paper", invariance=None).fit(*table).history_
    assert math.log10(history.car_weight) == int(math.log10(history.car_weight))
    assert all(record.car > 0 for record in history.epochs)
    assert FCorrClassifier(**SMALL, car=50, invariance=None).fit(*table).history_.car_weight == 50.0


@pytest.mark.parametrize("options", [{"car": None}, {"car": 0}, {"sensitive": None}])
def test_no_weight_without_car(table, options):
    history = FCorrClassifier(**SMALL | options).fit(*table).history_
    assert history.car_weight is None
    assert [record.car for record in history.epochs] == [None, None]


# The balance afterwards


_rng = np.random.default_rng(0)
X = make_people(400)
Y = make_targets(X)
WEIGHT = _rng.choice([0.0, 0.5, 3.0], 400)

weights = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])


def total(values, weight):
    return np.average(values, weights=weight, axis=0)


# The shifts themselves


def test_log_shift():
    logs, target = _rng.normal(size=50), _rng.gamma(1, 5, 50)
    shift = log_shift(logs, target, WEIGHT[:50])
    assert total(np.exp(logs + shift), WEIGHT[:50]) == pytest.approx(total(target, WEIGHT[:50]))
    # What has no weight does not count, however large it is.
    logs[WEIGHT[:50] == 0] = 600
    assert log_shift(logs, target, WEIGHT[:50]) == pytest.approx(shift)
    # Means that overflow are still in balance with totals that do not.
    assert log_shift(logs + 2_000, target, WEIGHT[:50]) == pytest.approx(shift - 2_000)


@pytest.mark.parametrize(("spread", "share"), [(0.1, 0.5), (3.0, 0.9), (30.0, 0.001)])
def test_two_classes_against_bisection(spread, share):
    rng = np.random.default_rng(1)
    logit, weight = spread * rng.normal(size=300), rng.uniform(size=300)
    logits = np.column_stack([np.zeros(300), logit])
    negative, positive = class_shift(logits, np.array([1 - share, share]), weight)

    def gap(shift):
        return total(1 / (1 + np.exp(-logit - shift)), weight) - share

    assert positive - negative == pytest.approx(brentq(gap, -300, 300, xtol=1e-12), abs=1e-6)
    assert abs(gap(positive - negative)) < 1e-11


@pytest.mark.parametrize(("spread", "n_classes"), [(0.1, 3), (3.0, 8), (20.0, 8)])
def test_several_classes(spread, n_classes):
    rng = np.random.default_rng(2)
    logits, weight = spread * rng.normal(size=(300, n_classes)), rng.uniform(size=300)
    share = rng.dirichlet(np.full(n_classes, 0.5)).clip(1e-3)
    share /= share.sum()
    shift = class_shift(logits, share, weight)
    np.testing.assert_allclose(total(softmax(logits + shift), weight), share, atol=1e-11)
    assert shift.sum() == pytest.approx(0, abs=1e-9)


def test_blocks_of_rows_add_up(monkeypatch):
    logits, weight = _rng.normal(size=(300, 3)), _rng.uniform(size=300)
    share = np.array([0.7, 0.2, 0.1])
    expected = class_shift(logits, share, weight)
    monkeypatch.setattr("fcorr.training.objective._BLOCK", 64)
    np.testing.assert_allclose(class_shift(logits, share, weight), expected, rtol=1e-10)


# After a fit


TWEEDIE = {"exposure": "years", "tweedie_power": 1.3}
REGRESSIONS = {"mse": {}, "poisson": {"exposure": "years"}, "gamma": {}, "tweedie": TWEEDIE}


@pytest.mark.parametrize("early_stopping", [False, 1])
@weights
@pytest.mark.parametrize("name", REGRESSIONS)
def test_predicted_total_is_the_observed_total(name, weight, early_stopping):
    y, advanced = Y[name], {"early_stopping": early_stopping}
    model = make_model(name, sensitive="sex", advanced=advanced, **REGRESSIONS[name])
    model.fit(X, y, sample_weight=weight)
    assert total(model.predict(X), weight) == pytest.approx(total(y, weight), rel=1e-11)
    assert model.balance_ != 0
    model.balance_[:] = 0
    assert total(model.predict(X), weight) != pytest.approx(total(y, weight), rel=1e-6)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@weights
@pytest.mark.parametrize("task", ["two classes", "three classes"])
def test_mean_probability_is_the_share(task, weight, class_weight):
    y = Y[task]
    model = make_model(task, sensitive="sex", class_weight=class_weight)
    model.fit(X, y, sample_weight=weight)
    shares = [total(y == label, weight) for label in model.classes_]
    np.testing.assert_allclose(total(model.predict_proba(X), weight), shares, atol=1e-11)
