"""Processes that train together: what they add up, and how they are started.

Every process runs the same ``fit``. Of a table in memory each has all rows, and works on some
slices of every batch; of a table in files each has some row groups. Gradients are added up by
torch.distributed, in the same order everywhere, so that all processes have the same weights at any
time. Whoever starts the processes, torchrun or Ray, is none of the loop's business.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class Ranks:
    """How many processes train together, and which of them this is."""

    n: int = 1
    own: int = 0

    @classmethod
    def current(cls) -> "Ranks":
        """Return those of torch.distributed, or one process by itself."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_world_size(), dist.get_rank())
        return cls()

    def add_up(self, values: Tensor) -> Tensor:
        """Return the sum over all processes, in place."""
        if self.n > 1:
            dist.all_reduce(values)
        return values

    def share(self, number: int) -> tuple[int, ...]:
        """Return the numbers of all processes."""
        numbers = torch.zeros(self.n, dtype=torch.int64)
        numbers[self.own] = number
        return tuple(self.add_up(numbers).tolist())

    def agree(self, number: int) -> int:
        """Return the first process's number."""
        return self.share(number)[0]
