import threading

import pytest
import torch

from fcorr.nn.engine import use_engine
from fcorr.nn.layers import Dropout, dropout_from, hash_places


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def drop(x, rate, seed=0):
    with dropout_from(seeded(seed)):
        return Dropout(rate)(x)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_share_and_mean(rate, each_engine):
    dropped = drop(torch.ones(1_000, 200), rate)
    n = dropped.numel()
    tolerance = 4 * (rate * (1 - rate) / n) ** 0.5
    assert (dropped == 0).float().mean().item() == pytest.approx(rate, abs=tolerance)
    assert dropped.unique().tolist() == pytest.approx([0, 1 / (1 - rate)])


def test_entries_are_independent(each_engine):
    """Neighbours, rows and calls: no pair of entries is dropped together more than by chance."""
    first = (drop(torch.ones(400, 256), 0.5) == 0).double()
    second = (drop(torch.ones(400, 256), 0.5, seed=1) == 0).double()
    for a, b in (
        (first[:, 1:], first[:, :-1]),
        (first[1:], first[:-1]),
        (first[:, 2:], first[:, :-2]),
        (first[64:], first[:-64]),
        (first, second),
    ):
        correlation = torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1]
        assert abs(correlation) < 4 / a.numel() ** 0.5


def test_hash_is_spread_evenly():
    """Sixteen bins of a long run, for several seeds: chi-squared within its range."""
    for seed in (0, 1, 2**31, 2**32 - 1):
        places = hash_places(160_000, seed).double() + 2**31
        counts = torch.histc(places, 16, 0, 2**32)
        assert ((counts - 10_000) ** 2 / 10_000).sum() < 45  # the 99.99 % quantile of 15 degrees


def test_engines_drop_the_same_entries():
    pytest.importorskip("numba", reason="needs numba: pip install 'fcorr[fast]'")
    x = torch.randn(33, 7, generator=seeded(1))
    with use_engine("plain"):
        plain = drop(x, 0.3)
    with use_engine("compiled"):
        compiled = drop(x, 0.3)
    torch.testing.assert_close(plain, compiled)


def test_gradient_has_the_same_mask(each_engine):
    x = torch.randn(50, 20, generator=seeded(1), requires_grad=True)
    dropped = drop(x, 0.3)
    dropped.sum().backward()
    assert torch.equal(x.grad == 0, dropped == 0)
    torch.testing.assert_close(x.grad[x.grad != 0].unique(), torch.tensor([1 / 0.7]))


def test_nothing_is_dropped_outside_of_training():
    x = torch.ones(5, 5)
    layer = Dropout(0.9)
    assert torch.equal(layer.eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert torch.equal(Dropout(1.0)(x), torch.zeros(5, 5))


def test_generator_alone_decides():
    x = torch.ones(40, 40)
    state = torch.get_rng_state()
    assert torch.equal(drop(x, 0.5), drop(x, 0.5))
    assert not torch.equal(drop(x, 0.5), drop(x, 0.5, seed=1))
    assert torch.equal(torch.get_rng_state(), state)
    generator = seeded()
    with dropout_from(generator):
        assert not torch.equal(Dropout(0.5)(x), Dropout(0.5)(x))


def test_each_thread_has_its_own_generator():
    x = torch.ones(100, 100)
    expected = {seed: drop(x, 0.5, seed) for seed in range(4)}
    found = {}
    barrier = threading.Barrier(4)

    def work(seed):
        with dropout_from(seeded(seed)):
            barrier.wait()
            found[seed] = Dropout(0.5)(x)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(found[seed], expected[seed]) for seed in range(4))
