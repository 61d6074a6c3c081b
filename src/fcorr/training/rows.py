"""Rows to train on: tensors in memory, or encoded rows in files that are read part by part."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcorr.data.stream import RowStore, StoredPart, hash_places
from fcorr.training.proxies import Groups
from fcorr.training.workers import Ranks

_COLUMNS = ("x_cat", "x_num", "target", "weight")


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

    def followed_by(self, other: "Rows") -> "Rows":
        """Return these rows and then others, without groups."""
        both = {
            name: torch.cat([getattr(each, name) for each in (self, other)]) for name in _COLUMNS
        }
        return Rows(**both, groups=None)

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
    is the model's. ``fold`` says which rows are meant. ``counts`` are the rows of each process.
    """

    store: RowStore
    target: Tensor
    weight: Tensor
    locate: Callable[[Tensor], Tensor]
    ranks: Ranks
    fold: Fold | None = None
    counts: tuple[int, ...] = ()

    @classmethod
    def open(
        cls,
        store: RowStore,
        target: Tensor,
        weight: Tensor,
        locate: Callable[[Tensor], Tensor],
        fold: Fold | None = None,
    ) -> "StoredRows":
        """Find out which rows there are."""
        ranks = Ranks.current()
        rows = cls(store, target, weight, locate, ranks, fold)
        return replace(rows, counts=ranks.share(len(rows.places)))

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
        places = np.concatenate([self.store.read(i).places for i in range(self.store.n_parts)])
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
            shuffled = found.take(torch.randperm(len(found), generator=generator))
            rows = shuffled if rest is None else rest.followed_by(shuffled)
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

    def _read(self, part: StoredPart) -> Rows:
        if self.fold is not None:
            meant = self.fold.has(part.places)
            part = StoredPart(part.places[meant], part.codes[meant], part.numbers[meant])
        places = torch.from_numpy(part.places)
        return Rows(
            torch.from_numpy(part.codes),
            self.locate(torch.from_numpy(part.numbers)),
            self.target[places],
            self.weight[places],
        )


TrainingRows = Rows | StoredRows
"""Rows to train on, wherever they are."""
