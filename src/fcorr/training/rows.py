"""Rows to train on, and the threads and processes that share the work on them.

Rows are tensors in memory, or encoded rows in files that are read part by part.

A thread takes its own rows through a model. Processes that train together all run the same ``fit``:
of a table in memory each has all rows, and works on some slices of every batch; of a table in files
each has some row groups. Gradients are added up by torch.distributed, in the same order everywhere,
so that all processes have the same weights at any time. Whoever starts the processes, torchrun or
Ray, is none of the loop's business.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock, Thread
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from fcorr.data.stream import RowStore, hash_places
from fcorr.training.proxies import Groups

Item = TypeVar("Item")
Result = TypeVar("Result")
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]

# Sizes of work are counted in numbers of the table as FCorrTransformer reads it; what other models
# do with a row is counted as so many numbers as it takes the memory of.
_WORTH_A_THREAD = 2**14  # numbers that a thread should have to itself; below, starting costs more
_CHUNK_NUMBERS = 2**18  # scored at a time by each thread

_setting = Lock()
_COLUMNS = ("x_cat", "x_num", "target", "weight")

# ------------------------------------------------------------------------------ threads


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
            # The thread that computes sees the caller's context: the engine that it chose.
            pending.append(self._pool.submit(copy_context().run, function, item))
            if len(pending) == self._most_pending:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


@contextmanager
def start_workers(n_numbers: int) -> Iterator[Workers]:
    """Start threads for work on ``n_numbers`` numbers at a time; torch itself then uses one.

    The calling thread's setting of torch is restored on the way out; that of others stays as it is.
    """
    n_threads = _use_one_thread()
    try:
        if n_threads == 1 or n_numbers < 2 * _WORTH_A_THREAD:
            yield Workers(None)
            return
        with ThreadPoolExecutor(n_threads, initializer=_use_one_thread) as pool:
            yield Workers(pool, n_threads)
    finally:
        if n_threads > 1:
            torch.set_num_threads(n_threads)


def _use_one_thread() -> int:
    """Make torch use one thread in the calling thread, and return how many it used until now.

    Torch has a setting for each thread, and a thread that has not used torch yet takes over the
    last that was made in any: without a remedy the 1 from here, which then outlives the work.
    With it, that takes a first use between the two settings below; such a thread stays slow.
    """
    with _setting:
        n_threads = torch.get_num_threads()  # also makes the setting this thread's own
        if n_threads > 1:
            torch.set_num_threads(1)
            remedy = Thread(target=torch.set_num_threads, args=(n_threads,))
            remedy.start()
            remedy.join()
    return n_threads


def chunk_rows(numbers_per_row: int) -> int:
    """Return how many rows to take at a time, a multiple of 16 unless they are fewer."""
    rows = _CHUNK_NUMBERS // numbers_per_row
    return rows // 16 * 16 or max(1, rows)


# ------------------------------------------------------------------------------ processes


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


# ------------------------------------------------------------------------------ rows


@dataclass(frozen=True)
class Rows:
    """Rows as tensors: codes, numbers, target and weight (of mean 1).

    FCorrTransformer's numbers are located among its knots (``model.locate``), once and not in
    every step. ``groups`` are those of each sensitive column, where a proxy dial needs them.
    """

    x_cat: Tensor
    x_num: Tensor
    target: Tensor
    weight: Tensor
    groups: Groups | None = None

    def __len__(self) -> int:
        return len(self.target)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.x_cat.shape[1] + self.x_num.shape[1]

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self.target.device

    def take(self, rows: Tensor | slice) -> "Rows":
        """Select rows by index."""
        return self._each(lambda part: part[rows])

    def to(self, device: torch.device) -> "Rows":
        """Move them to a device."""
        return self._each(lambda part: part.to(device))

    def batches(
        self, size: int, generator: torch.Generator
    ) -> Iterator[tuple["Rows", Tensor, int]]:
        """Give batches in an order from the generator; every process has all rows."""
        order = torch.randperm(len(self), generator=generator).to(self.device)
        for chosen in order.split(size):
            yield self, chosen, len(chosen)

    def chunks(self, size: int) -> Iterator["Rows"]:
        """Give the rows in their order."""
        for first in range(0, len(self), size):
            yield self.take(slice(first, first + size))

    def some(self, n_rows: int, generator: torch.Generator) -> "Rows":
        """Draw rows at random."""
        return self.take(torch.randperm(len(self), generator=generator)[:n_rows].to(self.device))

    def add_up(self, values: Tensor) -> Tensor:
        """Return what is given: every process has all rows."""
        return values

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Rows":
        groups = None if self.groups is None else self.groups.each(change)
        return Rows(**{name: change(getattr(self, name)) for name in _COLUMNS}, groups=groups)


@dataclass(frozen=True)
class Fold:
    """Which rows are meant: those of one of several folds, or all others.

    A row's fold is a hash of its place, which any process finds by itself.
    """

    number: int
    n_folds: int
    seed: int
    inside: bool

    @property
    def others(self) -> "Fold":
        """Return what means the other rows."""
        return replace(self, inside=not self.inside)

    def has(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell of each row whether it is meant."""
        fold = hash_places(places, self.seed) % np.uint64(self.n_folds)
        return (fold == self.number) == self.inside


@dataclass(frozen=True)
class StoredRows:
    """Rows in files, of which a process has some parts, or all.

    ``target`` and ``weight`` are those of the whole table, by the places of its rows; ``locate``
    is the model's. ``fold`` says which rows are meant.
    """

    store: RowStore
    target: Tensor
    weight: Tensor
    locate: Callable[[Tensor], Tensor]
    fold: Fold | None = None
    ranks: Ranks = field(default_factory=Ranks.current)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The rows of each process; all of them have to ask for it."""
        return self.ranks.share(len(self.places))

    def __len__(self) -> int:
        return sum(self.counts)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.store.n_codes + self.store.n_numbers

    @property
    def device(self) -> torch.device:
        """The CPU: what is read part by part is trained on where it is read."""
        return torch.device("cpu")

    @property
    def places(self) -> NDArray[np.int64]:
        """Places of this process's rows in the table, in the order of :meth:`chunks`."""
        # Copies: a view would keep all of its part in memory.
        parts = (self.store.read(part) for part in range(self.store.n_parts))
        places = np.concatenate([part["places"].copy() for part in parts])
        return places if self.fold is None else places[self.fold.has(places)]

    def batches(self, size: int, generator: torch.Generator) -> Iterator[tuple[Rows, Tensor, int]]:
        """Give batches from parts in a random order, each shuffled; together as large as asked for.

        A process that has come to its end gives empty ones until all have.
        """
        own = max(1, size // self.ranks.n)
        n_steps = max(-(-count // own) for count in self.counts)
        totals = [
            sum(min(own, max(0, count - step * own)) for count in self.counts)
            for step in range(n_steps)
        ]
        given = 0
        rest: Rows | None = None
        # Processes shuffle different rows, and still draw the same number of times.
        seed = int(torch.randint(2**62, (1,), generator=generator)) + self.ranks.own
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(self.store.n_parts, generator=generator).tolist()
        for found in self.store.parts(order, self._read):
            rows = found.take(torch.randperm(len(found), generator=generator))
            if rest is not None:
                both = {
                    name: torch.cat([getattr(rest, name), getattr(rows, name)]) for name in _COLUMNS
                }
                rows = Rows(**both, groups=None)
            n_full = len(rows) // own * own
            for chosen in torch.arange(n_full).split(own) if n_full else ():
                yield rows, chosen, totals[given]
                given += 1
            rest = rows.take(torch.arange(n_full, len(rows)))
        assert rest is not None
        for total in totals[given:]:
            yield rest, torch.arange(len(rest)), total
            rest = rest.take(torch.arange(0))

    def chunks(self, size: int) -> Iterator[Rows]:
        """Give the rows part by part."""
        for rows in self.store.parts(range(self.store.n_parts), self._read):
            yield from rows.chunks(size)

    def some(self, n_rows: int, generator: torch.Generator) -> Rows:
        """Draw rows at random: the first of an epoch."""
        rows, chosen, _ = next(self.batches(n_rows * self.ranks.n, generator))
        return rows.take(chosen)

    def by_place(self, outputs: Tensor, rows: Tensor) -> Tensor:
        """Return what processes computed chunk by chunk in the order of all ``rows``, sorted."""
        found = outputs.new_zeros(len(rows), *outputs.shape[1:])
        found[np.searchsorted(rows.numpy(), self.places)] = outputs
        return self.add_up(found)

    def add_up(self, values: Tensor) -> Tensor:
        """Return the sum over all processes."""
        return self.ranks.add_up(values)

    def _read(self, part: NDArray[Any]) -> Rows:
        part = part if self.fold is None else part[self.fold.has(part["places"])]
        places, x_cat, x_num = (
            torch.from_numpy(part[name].copy()) for name in ("places", "codes", "numbers")
        )
        return Rows(x_cat, self.locate(x_num), self.target[places], self.weight[places])


TrainingRows = Rows | StoredRows
"""Rows to train on, wherever they are."""
