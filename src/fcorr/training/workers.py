"""Threads that each work on their own rows."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

# Numbers of the table that a thread should have to itself; below, starting it costs more.
_WORTH_A_THREAD = 2**14


class Workers:
    """Map a function over pieces of work, in order, on as many threads as torch was given.

    Torch's own threads share out every single operation and meet again after it. Here each thread
    takes some rows through all operations, and they meet once. What is computed does not depend on
    the number of threads: the pieces are the same, and each is worked on by one thread.
    """

    def __init__(self, pool: ThreadPoolExecutor | None, n_threads: int = 1) -> None:
        self._pool = pool
        self._most_pending = 2 * n_threads

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items.

        Threads run ahead of the caller by a few pieces only: results that nobody has taken yet
        would otherwise fill the memory.
        """
        if self._pool is None:
            yield from map(function, items)
            return
        pending: deque[Future[Result]] = deque()
        for item in items:
            pending.append(self._pool.submit(function, item))
            if len(pending) == self._most_pending:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


@contextmanager
def start_workers(n_numbers: int) -> Iterator[Workers]:
    """Start threads for work on ``n_numbers`` numbers at a time; torch itself then uses one.

    Torch's setting is restored on the way out.
    """
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if n_threads == 1 or n_numbers < 2 * _WORTH_A_THREAD:
            yield Workers(None)
            return
        # A new thread starts with torch's default number of threads, not with the one set above.
        pool = ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,))
        with pool:
            yield Workers(pool, n_threads)
    finally:
        torch.set_num_threads(n_threads)
