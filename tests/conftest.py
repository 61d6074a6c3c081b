"""What all tests share."""

import pytest
import torch
from hypothesis import settings

from fcorr import certify
from fcorr.nn.engine import use_engine
from fcorr.training import pack

settings.register_profile("fcorr", max_examples=40, deadline=None)  # the machine may be busy
settings.load_profile("fcorr")


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    # Test processes run side by side: threads of one would wait for those of the other.
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _short_search():
    # The models are small: what a search can find, it finds in a fifth of its steps.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certify, "_N_STEPS", certify._N_STEPS // 5)
        yield


ALL_RECIPES, ALL_PRECISE = pack.RECIPES, pack.PRECISE


@pytest.fixture(autouse=True, scope="session")
def few_recipes():
    """Let a pack choose among a table, a small network and a smooth one: others take long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack, "RECIPES", tuple(ALL_RECIPES[k] for k in (0, 2, 5)))
        patch.setattr(pack, "PRECISE", ())
        yield


@pytest.fixture
def all_recipes(monkeypatch):
    """Choose as other processes do."""
    monkeypatch.setattr(pack, "RECIPES", ALL_RECIPES)
    monkeypatch.setattr(pack, "PRECISE", ALL_PRECISE)


@pytest.fixture
def whole_search(monkeypatch):
    """Search as other processes do."""
    monkeypatch.setattr(certify, "_N_STEPS", 5 * certify._N_STEPS)


@pytest.fixture(params=["plain", "compiled"])
def each_engine(request):
    """Run a test once in plain torch and once with compiled kernels."""
    with use_engine(request.param):
        yield request.param
