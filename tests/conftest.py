"""What all tests share."""

import pytest
import torch

from fcorr.nn.engine import use_engine


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    # Test processes run side by side: threads of one would wait for those of the other.
    torch.set_num_threads(1)


@pytest.fixture(params=["plain", "compiled"])
def each_engine(request):
    """Run a test once in plain torch and once with compiled kernels."""
    with use_engine(request.param):
        yield request.param
