"""What all tests share."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    # Test processes run side by side: threads of one would wait for those of the other.
    torch.set_num_threads(1)
