"""Tables larger than memory: Parquet read in pieces, and encoded rows kept in shuffled files.

A first pass draws rows at random, from which the schema is inferred; a second encodes every row and
puts it into one of many files, at random. Reading these in any order, and shuffling each in memory,
is then as good as shuffling all. What happens to a row follows from a hash of its place in the
table, so that nothing has to be kept of it.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fcorr._core import (
    InvalidInputError,
    check_name,
    enumerate_some,
    errors_of_writing,
    find_counted,
    numbered_by,
    temporary_folder,
)
from fcorr.data.encode import (
    EncodedTable,
    Outcomes,
    encode,
    parts_of_one_table,
    read_exposure,
    read_outcomes,
    use_ratings,
)
from fcorr.data.files import Piece, read_piece, split_parquet
from fcorr.data.schema import Schema
from fcorr.data.tables import Table, read_table

Item = TypeVar("Item")

_SAMPLE_SHARE, _PART_SHARE = 8, 32  # of the memory, that a sample and a part may take
_BYTES_PER_CELL = 16  # of a sampled table: a float64, its mask, or a short text
_SAMPLED, _STORED = 1, 2  # added to a seed: what is drawn by one has nothing to do with the other
_BLOCK = 65_536  # rows that are read at a time
_MOST_PARTS = 512  # files that are written to at the same time


def hash_places(places: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Hash rows by their places in a table: evenly over 64 bits, and otherwise for other seeds.

    It is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
    """
    start = np.uint64((1 + seed) * 0x9E3779B97F4A7C15 % 2**64)
    mixed = places.astype(np.uint64) + start
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


class ParquetTable:
    """A table in a Parquet file, or in a folder of them, that need not fit into memory.

    Parameters
    ----------
    path : path-like
        A file, or a folder whose Parquet files are taken in the order of their names.
    columns : sequence of str, optional
        The columns to read; by default all.

    Examples
    --------
    ``FCorrClassifier(sensitive="race").fit(ParquetTable("people", columns=[...]), "income")``
    """

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> None:
        self.path = Path(path)
        self.schema, self.pieces, self.n_rows = split_parquet(path, 1)
        self.columns = list(self.schema.names) if columns is None else self._check(columns)
        if self.n_rows == 0:
            raise InvalidInputError(f"{os.fspath(path)!r} must have rows, got none.")

    def _check(self, columns: Iterable[str]) -> list[str]:
        for name in columns:
            rule = f"Columns that are asked for must be in {os.fspath(self.path)!r}"
            has = f"It has {enumerate_some(self.schema.names, 8)}."
            check_name(name, self.schema.names, rule, has)
        return list(columns)

    def without(self, names: Iterable[str]) -> "ParquetTable":
        """Return the same table without some columns."""
        left_out = set(self._check(names))
        return ParquetTable(self.path, [name for name in self.columns if name not in left_out])

    def read(self, name: str) -> pa.ChunkedArray:
        """Read one column as a whole."""
        self._check([name])
        tables = [table for _, table in self.blocks([name])]
        return pa.concat_tables(tables).column(name)

    def blocks(
        self, columns: Sequence[str] | None = None, pieces: Sequence[Piece] | None = None
    ) -> Iterator[tuple[int, pa.Table]]:
        """Read some pieces, by default all, block by block; each with its first row."""
        columns = self.columns if columns is None else columns
        for piece in self.pieces if pieces is None else pieces:
            for first_row, table in read_piece(piece, columns, _BLOCK):
                yield piece.before + first_row, table

    def numbered_blocks(
        self, counted: NDArray[np.intp] | None, pieces: Sequence[Piece] | None = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], pa.Table]]:
        """Read the rows at ``counted`` places, by default all: places, numbers among them, rows."""
        for first, table in self.blocks(pieces=pieces):
            places = rows = np.arange(first, first + len(table))
            if counted is not None:
                rows = np.arange(*np.searchsorted(counted, [first, first + len(table)]))
                places = counted[rows]
                table = table.take(places - first)
            yield places, rows, table

    def sample(
        self, share: float, seed: int, counted: NDArray[np.intp] | None = None
    ) -> tuple[pa.Table, NDArray[np.int64]]:
        """Draw about a share of the rows at ``counted`` places; what lies between has no say.

        Returns rows, and their numbers among those that are counted.
        """
        limit = np.uint64(min(share, 1.0) * (2**64 - 2**11))
        tables, drawn = [], []
        for _, rows, table in self.numbered_blocks(counted):
            is_drawn = (hash_places(rows, seed) < limit) | (share >= 1)
            tables.append(table.filter(pa.array(is_drawn)))
            drawn.append(rows[is_drawn])
        return pa.concat_tables(tables).unify_dictionaries(), np.concatenate(drawn)


def share_to_sample(n_rows: int, n_columns: int, memory: int) -> float:
    """Return the share of the rows that may be kept as they are."""
    return memory / _SAMPLE_SHARE / (_BYTES_PER_CELL * n_columns) / n_rows


class RowStore:
    """Encoded rows in the files of an empty folder, each a random part of the table.

    There are going to be ``n_rows``, each of ``n_codes`` and ``n_numbers``. A part takes a small
    share of the ``memory``, in bytes.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        n_rows: int,
        n_codes: int,
        n_numbers: int,
        memory: int,
        seed: int = 0,
    ) -> None:
        self.folder, self.seed = Path(folder), seed
        self.n_codes, self.n_numbers = n_codes, n_numbers
        codes, numbers = ("codes", np.int32, (n_codes,)), ("numbers", np.float32, (n_numbers,))
        self._row = np.dtype([("places", np.int64), codes, numbers])
        size = n_rows * self._row.itemsize
        self.n_parts = max(1, min(_MOST_PARTS, -(-size * _PART_SHARE // memory)))

    def write(self, blocks: Iterable[tuple[NDArray[np.int64], EncodedTable]]) -> None:
        """Write all rows, block by block with their places."""
        left = "training needs room there; TMPDIR names another folder"
        with errors_of_writing(self.folder, left), ExitStack() as stack:
            paths = map(self._path, range(self.n_parts))
            files = [stack.enter_context(path.open("wb")) for path in paths]
            for places, encoded in blocks:
                part_of = (hash_places(places, self.seed) % np.uint64(self.n_parts)).astype(int)
                rows = np.empty(len(places), self._row)
                rows["places"], rows["codes"] = places, encoded.codes
                rows["numbers"] = encoded.numbers
                order = np.argsort(part_of, kind="stable")
                ends = np.cumsum(np.bincount(part_of, minlength=self.n_parts))
                for file, part in zip(files, np.split(rows[order], ends[:-1]), strict=True):
                    file.write(part.tobytes())

    def read(self, part: int) -> NDArray[Any]:
        """Read a part: a structured array of ``places`` in the table, ``codes`` and ``numbers``."""
        return np.fromfile(self._path(part), self._row)

    def parts(self, order: Iterable[int], then: Callable[[NDArray[Any]], Item]) -> Iterator[Item]:
        """Read parts in some order and do something with each; a thread does it ahead."""
        with ThreadPoolExecutor(1) as reader:
            coming = (reader.submit(lambda place: then(self.read(place)), part) for part in order)
            for one, _ in pairwise(chain(coming, [Future()])):  # the next is asked for first
                yield one.result()

    def _path(self, part: int) -> Path:
        return self.folder / f"part-{part:03d}.rows"


@dataclass(frozen=True)
class TrainingTable:
    """Rows to learn from: their table and outcomes, and the names of columns with other roles.

    Of a table in files, the ``source``, some rows were drawn: ``table`` has these. ``places`` are
    those of all rows in the files, where some of these have a weight of 0, and ``pieces`` the row
    groups that this process reads.
    """

    table: Table
    outcomes: Outcomes  # of all rows
    target: str | None
    weight: str | None
    exposure: str | None
    source: ParquetTable | None = None
    drawn: NDArray[np.int64] | None = None
    places: NDArray[np.int64] | None = None
    pieces: Sequence[Piece] = ()

    def blocks(self) -> Iterator[tuple[NDArray[np.int64], Table]]:
        """Read the rows in files block by block."""
        assert self.source is not None
        for places, rows, block in self.source.numbered_blocks(self.places, self.pieces):
            if len(rows):
                with numbered_by(places):
                    yield rows, read_table(block)

    @contextmanager
    def store(
        self, schema: Schema, ratings: Mapping[str, NDArray[np.float64]], memory: int, seed: int
    ) -> Iterator[RowStore]:
        """Encode the rows of files into others, to be read in any order."""
        assert self.drawn is not None
        drawn = self.drawn

        def encoded() -> Iterator[tuple[NDArray[np.int64], EncodedTable]]:
            for rows, table in self.blocks():
                found = encode(table, schema)
                # Of a rated column, rows that the ratings come from have those of others.
                own = np.flatnonzero(np.isin(rows, drawn, assume_unique=True))
                if ratings and len(own):
                    among = np.searchsorted(drawn, rows[own])
                    held_out = {name: values[among] for name, values in ratings.items()}
                    part = EncodedTable(found.codes[own], found.numbers[own])
                    found.numbers[own] = use_ratings(part, schema, held_out).numbers
                yield rows, found

        with temporary_folder() as folder:
            sizes = len(self.outcomes.y), len(schema.categorical), len(schema.numeric)
            store = RowStore(folder, *sizes, memory, seed + _STORED)
            n_drawn = self.table.n_rows
            way_out = f" The schema is that of {n_drawn:,} drawn rows: raise memory for more."
            with parts_of_one_table(schema, way_out):
                store.write(encoded())
            yield store


@contextmanager
def open_files(
    X: str | os.PathLike[str] | ParquetTable,
    y: Any,
    sample_weight: Any,
    exposure: str | int | None,
    memory: int,
    seed: int,
    own: slice,
) -> Iterator[TrainingTable]:
    """Open a table in files to learn from; within it, errors number the rows as the user does.

    Its roles are names of columns, and ``own`` are the row groups that this process reads.
    """
    source = X if isinstance(X, ParquetTable) else ParquetTable(X)
    for argument, name in {"y": y, "sample_weight": sample_weight}.items():
        if not isinstance(name, str) and (argument == "y" or name is not None):
            raise InvalidInputError(
                f"{argument} must name a column of the files that X is in, got "
                f"{type(name).__name__}. Pass its name.",
                argument=argument,
            )
    features = source.without([name for name in (y, sample_weight) if name is not None])
    counted = None if sample_weight is None else find_counted(source.read(sample_weight))
    with numbered_by(counted):

        def read(name: str) -> Any:
            column = source.read(name)
            column = column if counted is None else column.take(counted)
            # With its name, which messages know then.
            return nw.from_native(column, series_only=True).alias(name)

        n_rows = source.n_rows if counted is None else len(counted)
        exposures = np.ones(n_rows)
        if exposure is not None:
            column = Table({str(exposure): read(str(exposure)).to_native()}, n_rows, named=True)
            exposures = read_exposure(column, str(exposure))
        outcomes = read_outcomes(
            read(y), None if sample_weight is None else read(sample_weight), exposures
        )
        share = share_to_sample(n_rows, len(features.columns), memory)
        sample, drawn = features.sample(share, seed + _SAMPLED, counted)
        roles = y, sample_weight, None if exposure is None else str(exposure)
        yield TrainingTable(
            read_table(sample), outcomes, *roles, features, drawn, counted, features.pieces[own]
        )
