import numpy as np
import torch
from sklearn.metrics import log_loss as sklearn_log_loss

from fcorr.training.losses import binary_log_loss, log_loss, squared_error


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
