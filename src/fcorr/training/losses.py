"""Losses per row, so that the loop can weight rows as it likes.

Those with a log link are half the unit deviance, but for terms without the expectation μ. Their
target has two columns, y and an offset, and ``log μ = offset + output``: it is the logarithm that
is computed with, so that neither a tiny nor a huge μ is ever divided by.
"""

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    mse_loss,
)

Loss = Callable[[Tensor, Tensor], Tensor]
"""``(outputs (B, n_outputs), target (B,) or (B, 2)) -> loss of each row (B,)``."""


def binary_log_loss(outputs: Tensor, target: Tensor) -> Tensor:
    """Negative log-likelihood of labels 0 and 1 under one logit per row."""
    return binary_cross_entropy_with_logits(outputs.squeeze(1), target, reduction="none")


def log_loss(outputs: Tensor, target: Tensor) -> Tensor:
    """Negative log-likelihood of class codes under one logit per class and row."""
    return cross_entropy(outputs, target, reduction="none")


def squared_error(outputs: Tensor, target: Tensor) -> Tensor:
    """Squared difference between output and target."""
    return mse_loss(outputs.squeeze(1), target, reduction="none")


def poisson_loss(outputs: Tensor, target: Tensor) -> Tensor:
    """Poisson loss of counts y: ``μ − y·log μ``."""
    y, log_mean = _log_mean(outputs, target)
    return log_mean.exp() - y * log_mean


def gamma_loss(outputs: Tensor, target: Tensor) -> Tensor:
    """Gamma loss of positive amounts y: ``log μ + y/μ``."""
    y, log_mean = _log_mean(outputs, target)
    return log_mean + (y.log() - log_mean).exp()


def tweedie_loss(power: float) -> Loss:
    """Make the Tweedie loss of amounts y, none negative, for a power 1 < p < 2.

    ``y·μ^(1−p)/(p−1) + μ^(2−p)/(2−p)``: the loss of a Poisson number of gamma amounts.
    """

    def loss(outputs: Tensor, target: Tensor) -> Tensor:
        y, log_mean = _log_mean(outputs, target)
        # y goes in as a logarithm: 0 times an overflow would not be 0.
        claims = (y.log() + (1 - power) * log_mean).exp() / (power - 1)
        return claims + ((2 - power) * log_mean).exp() / (2 - power)

    return loss


def _log_mean(outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    y, offset = target.unbind(1)
    return y, offset + outputs.squeeze(1)
