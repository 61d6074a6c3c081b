"""Losses per row, so that the loop can weight rows as it likes."""

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    mse_loss,
)

Loss = Callable[[Tensor, Tensor], Tensor]
"""``(outputs (B, n_outputs), target (B,)) -> loss of each row (B,)``."""


def binary_log_loss(outputs: Tensor, target: Tensor) -> Tensor:
    """Negative log-likelihood of labels 0 and 1 under one logit per row."""
    return binary_cross_entropy_with_logits(outputs.squeeze(1), target, reduction="none")


def log_loss(outputs: Tensor, target: Tensor) -> Tensor:
    """Negative log-likelihood of class codes under one logit per class and row."""
    return cross_entropy(outputs, target, reduction="none")


def squared_error(outputs: Tensor, target: Tensor) -> Tensor:
    """Squared difference between output and target."""
    return mse_loss(outputs.squeeze(1), target, reduction="none")
