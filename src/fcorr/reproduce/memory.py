"""What memory a run takes."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_MEGABYTE = 1e6


class Peak:
    """Largest resident memory of the process while it was watched."""

    megabytes: float | None = None
    """None where the operating system does not tell: it takes Linux, and the right to ask."""


@contextmanager
def watch_peak() -> Iterator[Peak]:
    """Watch the process's resident memory; the kernel's high-water mark is set back before."""
    peak = Peak()
    can_tell = _set_back()
    yield peak
    if not can_tell:
        return
    match = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    if match is not None:
        peak.megabytes = round(1024 * int(match[1]) / _MEGABYTE, 1)


def _set_back() -> bool:
    try:
        _CLEAR.write_text("5")
    except OSError:
        return False
    return _STATUS.exists()


class Kept:
    """Memory of the tensors that a forward pass keeps for the backward pass."""

    def __init__(self) -> None:
        self._storages: dict[int, tuple[int, Any]] = {}

    def note(self, tensor: Tensor) -> Tensor:
        """Count a tensor's storage, once."""
        storage = tensor.untyped_storage()
        # The storage is held on to: else its address could be used again, and count as the same.
        self._storages[storage.data_ptr()] = storage.nbytes(), storage
        return tensor

    @property
    def megabytes(self) -> float:
        """Their sum."""
        return sum(size for size, _ in self._storages.values()) / _MEGABYTE

    def without(self, tensors: Sequence[Tensor]) -> "Kept":
        """Leave some tensors' storages out, such as weights that are there anyway."""
        for tensor in tensors:
            self._storages.pop(tensor.untyped_storage().data_ptr(), None)
        return self


@contextmanager
def watch_kept() -> Iterator[Kept]:
    """Watch what a forward pass keeps for the gradient."""
    kept = Kept()
    with torch.autograd.graph.saved_tensors_hooks(kept.note, lambda tensor: tensor):
        yield kept
