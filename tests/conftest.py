"""What all tests share.

What takes long to import is imported by the fixtures: the process that only hands out tests to
others reads this file, too.
"""

import pkgutil
from functools import cache

import pytest
from hypothesis import settings

settings.register_profile("fcorr", max_examples=40, deadline=None)  # the machine may be busy
settings.load_profile("fcorr")


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    # Test processes run side by side: threads of one would wait for those of the other.
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _same_draws():
    # Processes take tests in any order: what one draws must not depend on those before it.
    import torch

    torch.manual_seed(0)


def _boost_less(kind):
    return lambda **options: kind(**options | {"max_iter": 10})


SHORTER = {
    # Most tests look at what is made of a search's answer, not at how good it is.
    "fcorr.certify._N_STEPS": lambda n: n // 50,
    # A pack chooses among a table, a small network and a smooth one: others take long.
    "fcorr.training.pack.RECIPES": lambda recipes: tuple(recipes[k] for k in (0, 2, 5)),
    "fcorr.training.pack.PRECISE": lambda _: (),
    # An audit fits trees nine times, to find out what other columns know.
    "fcorr.audit.proxies.HistGradientBoostingClassifier": _boost_less,
    "fcorr.audit.proxies.HistGradientBoostingRegressor": _boost_less,
}


@cache
def as_it_is():
    """Return what is made shorter, as other processes have it."""
    return {path: pkgutil.resolve_name(path) for path in SHORTER}


@pytest.fixture(autouse=True, scope="session")
def shorter():
    with pytest.MonkeyPatch.context() as patch:
        for path, value in as_it_is().items():
            patch.setattr(path, SHORTER[path](value))
        yield


def restore(monkeypatch, words):
    for path, value in as_it_is().items():
        if path.rpartition(".")[2].startswith(words):
            monkeypatch.setattr(path, value)


@pytest.fixture
def all_recipes(monkeypatch):
    """Choose as other processes do."""
    restore(monkeypatch, ("RECIPES", "PRECISE"))


@pytest.fixture
def all_trees(monkeypatch):
    """Ask as many trees as other processes do."""
    restore(monkeypatch, "HistGradientBoosting")


@pytest.fixture
def whole_search(monkeypatch):
    """Search as other processes do."""
    restore(monkeypatch, "_N_STEPS")


@pytest.fixture
def good_search(monkeypatch):
    """Search until there is little left to find: small models take a fifth of the steps."""
    steps = "fcorr.certify._N_STEPS"
    monkeypatch.setattr(steps, as_it_is()[steps] // 5)


@pytest.fixture(params=["plain", "compiled"])
def each_engine(request):
    """Run a test once in plain torch and once with compiled kernels."""
    from fcorr.nn.engine import use_engine

    with use_engine(request.param):
        yield request.param
