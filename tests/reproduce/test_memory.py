"""Bytes that a forward pass keeps, and the largest resident memory of a process."""

import mmap
from pathlib import Path

import pytest
import torch

from fcorr.reproduce import memory
from fcorr.reproduce.memory import watch_kept, watch_peak

N = 250_000  # numbers: a megabyte of float32
needs_linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="only Linux tells the peak"
)


def test_what_is_kept_is_counted_to_the_byte():
    x = torch.rand(N, requires_grad=True)
    with watch_kept() as kept:
        x.exp()  # keeps its result
    assert kept.megabytes == 1.0
    with watch_kept() as kept:
        x + 1  # keeps nothing
    assert kept.megabytes == 0.0


def test_shared_memory_counts_once():
    x = torch.rand(N, requires_grad=True)
    with watch_kept() as kept:
        y = x.exp()
        y * y  # keeps the result of exp twice more
        y.view(500, 500).square()
    assert kept.megabytes == 1.0


def test_memory_that_is_used_again_counts_each_time():
    x = torch.rand(250, requires_grad=True)
    with watch_kept() as kept:
        for _ in range(1_000):
            (x * torch.rand(250)).sum()  # the factor is gone at once, and its place is free
    assert kept.megabytes == 1.0


def test_weights_are_left_out():
    layer = torch.nn.Linear(500, 500, bias=False)  # a megabyte
    x = torch.rand(250, 500, requires_grad=True)  # half of one
    with watch_kept() as kept:
        layer(x)
    assert kept.megabytes == 1.5
    assert kept.without(list(layer.parameters())).megabytes == 0.5
    assert kept.without([torch.rand(3)]).megabytes == 0.5


def test_a_gradient_comes_out_as_ever():
    x = torch.rand(10, requires_grad=True)
    with watch_kept():
        total = x.exp().sum()
    total.backward()
    torch.testing.assert_close(x.grad, x.detach().exp())


def _touch(size):
    """Take memory from the system, touch it all, give it back."""
    # An array would not do: it may get memory that the process freed earlier and still holds.
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as pages:
        for start in range(0, size, mmap.PAGESIZE):
            pages[start] = 1


@needs_linux
def test_the_peak_is_that_of_what_was_watched():
    with watch_peak() as before:
        pass
    with watch_peak() as large:
        _touch(200_000_000)
    with watch_peak() as after:
        pass
    assert large.megabytes - before.megabytes == pytest.approx(200, abs=30)
    assert after.megabytes - before.megabytes == pytest.approx(0, abs=30)


@pytest.mark.parametrize("name", ["_STATUS", "_CLEAR"])
def test_elsewhere_there_is_no_peak(monkeypatch, tmp_path, name):
    monkeypatch.setattr(memory, name, tmp_path / "no" / "file")
    with watch_peak() as peak:
        done = True
    assert done
    assert peak.megabytes is None
