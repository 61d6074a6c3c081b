"""How many threads a step is worth."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Numbers in a step's largest tensor; below, threads wait for each other more than they work.
_WORTH_SHARING = 2**20


@contextmanager
def threads_for(n_numbers: int) -> Iterator[None]:
    """Use one thread while the largest tensor is small, and torch's own setting otherwise.

    Threads that meet after every small operation cost more than they bring, many times more
    where another process wants the same core. The setting is restored on the way out.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1 if n_numbers < _WORTH_SHARING else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
