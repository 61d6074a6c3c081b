import numpy as np
import pytest
import torch
from fcorr.training.losses import (
    binary_log_loss,
    gamma_loss,
    log_loss,
    poisson_loss,
    squared_error,
    tweedie_loss,
)
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.metrics import mean_tweedie_deviance


def test_binary_log_loss():
    logits = torch.tensor([[-2.0], [0.0], [3.0]])
    target = torch.tensor([0.0, 1.0, 1.0])
    losses = binary_log_loss(logits, target)
    assert losses.shape == (3,)
    expected = sklearn_log_loss(target.numpy(), torch.sigmoid(logits[:, 0]).numpy())
    np.testing.assert_allclose(losses.mean(), expected, rtol=1e-6)


def test_log_loss():
    logits = torch.tensor([[1.0, 2.0, -1.0], [0.0, 0.5, 0.0]])
    losses = log_loss(logits, torch.tensor([1, 0]))
    assert losses.shape == (2,)
    expected = -torch.log_softmax(logits, dim=1)[[0, 1], [1, 0]]
    torch.testing.assert_close(losses, expected)


def test_squared_error():
    losses = squared_error(torch.tensor([[1.0], [4.0]]), torch.tensor([3.0, 4.5]))
    torch.testing.assert_close(losses, torch.tensor([4.0, 0.25]))


# Log links. A deviance is a loss and a constant: what they differ by must not depend on μ.

POWERS = {"poisson": 1.0, "tweedie 1.1": 1.1, "tweedie 1.5": 1.5, "tweedie 1.9": 1.9, "gamma": 2.0}
LOG_LINKS = {
    "poisson": poisson_loss,
    "tweedie 1.1": tweedie_loss(1.1),
    "tweedie 1.5": tweedie_loss(1.5),
    "tweedie 1.9": tweedie_loss(1.9),
    "gamma": gamma_loss,
}
log_links = pytest.mark.parametrize("name", LOG_LINKS)


def observed(name):
    return [0.5, 1.0, 300.0] if name == "gamma" else [0.0, 0.5, 1.0, 300.0]


@log_links
def test_loss_is_half_the_unit_deviance(name):
    means = np.array([1e-3, 0.4, 1.0, 7.0, 1e4])
    offset = np.array([-1.0, 0.0, 2.0, 0.5, 3.0])
    outputs = torch.from_numpy(np.log(means) - offset)[:, None]
    for y in observed(name):
        target = torch.from_numpy(np.column_stack([np.full(5, y), offset]))
        losses = LOG_LINKS[name](outputs, target)
        assert losses.shape == (5,)
        half = [mean_tweedie_deviance([y], [mean], power=POWERS[name]) / 2 for mean in means]
        differences = losses.numpy() - half
        np.testing.assert_allclose(differences, differences[0], rtol=1e-9, atol=1e-9 * max(half))


@log_links
def test_gradient(name):
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(6, 1, generator=generator, dtype=torch.float64, requires_grad=True)
    y = torch.tensor(observed(name)[:2] * 3, dtype=torch.float64)
    target = torch.stack([y, torch.randn(6, generator=generator, dtype=torch.float64)], dim=1)
    assert torch.autograd.gradcheck(lambda o: LOG_LINKS[name](o, target), outputs)


@log_links
def test_minimum_is_the_mean(name):
    y = torch.tensor([1.0, 0.5, 9.0], dtype=torch.float64)
    offset = torch.tensor([0.3, -2.0, 0.0], dtype=torch.float64)
    best = (y.mean().log() - offset.exp().mean().log()).item()  # one rate for all the rows
    target = torch.stack([y, offset], dim=1)
    if name == "poisson":  # the balance property: at the optimum the totals agree
        log_rate = torch.full((3, 1), best, dtype=torch.float64, requires_grad=True)
        LOG_LINKS[name](log_rate, target).sum().backward()
        assert log_rate.grad.sum().item() == pytest.approx(0, abs=1e-12)
    each = (y.log() - offset)[:, None].requires_grad_()
    losses = LOG_LINKS[name](each, target)
    losses.sum().backward()
    torch.testing.assert_close(each.grad, torch.zeros(3, 1, dtype=torch.float64))
    for away in (-0.1, 0.1):
        assert (LOG_LINKS[name](each + away, target) > losses).all()


@log_links
@pytest.mark.parametrize("log_mean", [-80.0, 80.0])
def test_extreme_means_are_no_nan(name, log_mean):
    outputs = torch.full((1, 1), log_mean, requires_grad=True)
    for y in observed(name)[:1]:
        loss = LOG_LINKS[name](outputs, torch.tensor([[y, 0.0]]))
        loss.sum().backward()
        assert not loss.isnan().any()
        assert not outputs.grad.isnan().any()


def test_no_claim_and_a_tiny_premium_cost_nothing():
    loss = tweedie_loss(1.9)(torch.tensor([[-200.0]]), torch.tensor([[0.0, 0.0]]))
    assert loss.item() == pytest.approx(10 * np.exp(-20))  # μ^(1−p) alone would overflow
