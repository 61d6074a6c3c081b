"""What a fit learns from: a table in memory, or in Parquet files that are read piece by piece."""

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from fcorr._core import (
    InvalidInputError,
    UnseenCategoryWarning,
    counted_rows,
    find_counted,
    numbered_by,
    renumber_rows,
    temporary_folder,
)
from fcorr.data.encode import (
    EncodedTable,
    Outcomes,
    column_name,
    encode,
    read_exposure,
    read_outcomes,
    use_ratings,
)
from fcorr.data.schema import Schema
from fcorr.data.stream import ParquetTable, RowStore, share_to_sample
from fcorr.data.tables import Table, read_table, resolve_columns
from fcorr.training.workers import Ranks

_SAMPLED, _STORED = 1, 2  # added to a seed: what is drawn by one has nothing to do with the other


@dataclass(frozen=True)
class TrainingTable:
    """Rows to learn from.

    Attributes
    ----------
    table : Table
        All rows, or of a table in files those that were drawn.
    outcomes : Outcomes
        Those of all rows.
    target, weight, exposure : str or None
        Names of the columns with these roles.
    source : ParquetTable or None
        Where the rows are, if that is not the memory.
    drawn : ndarray or None
        Which rows the table has.
    places : ndarray or None
        Places of the rows in the files, where some of these have a weight of 0.
    """

    table: Table
    outcomes: Outcomes
    target: str | None
    weight: str | None
    exposure: str | None
    source: ParquetTable | None = None
    drawn: NDArray[np.int64] | None = None
    places: NDArray[np.int64] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.outcomes.y)

    @property
    def outcomes_of_table(self) -> Outcomes:
        """Outcomes of the rows of ``table``."""
        if self.drawn is None:
            return self.outcomes
        y, weight, exposure = (
            values[self.drawn]
            for values in (self.outcomes.y, self.outcomes.weight, self.outcomes.exposure)
        )
        return Outcomes(y, weight, exposure, self.outcomes.label)

    def complete(self, schema: Schema) -> Schema:
        """Return the schema of the table as one of all rows: counts are estimates then."""
        return schema if self.drawn is None else schema.scaled(self.n_rows)

    def blocks(self) -> Iterator[tuple[NDArray[np.int64], Table]]:
        """Read the rows in files block by block; each process its own row groups."""
        assert self.source is not None
        ranks = Ranks.current()
        pieces = self.source.pieces[ranks.own :: ranks.n]
        for places, rows, block in self.source.numbered_blocks(self.places, pieces):
            if not len(rows):
                continue
            try:
                yield rows, read_table(block)
            except InvalidInputError as error:
                raise renumber_rows(error, places) from error

    @contextmanager
    def store(
        self, schema: Schema, ratings: Mapping[str, NDArray[np.float64]], memory: int, seed: int
    ) -> Iterator[RowStore | None]:
        """Encode the rows into files, to be read in any order; None where they are in memory."""
        if self.source is None or self.drawn is None:
            yield None
            return
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
            sizes = self.n_rows, len(schema.categorical), len(schema.numeric)
            store = RowStore(folder, *sizes, memory, seed + _STORED)
            with _one_warning_of_unseen(self.table.n_rows):
                store.write(encoded())
            yield store


@contextmanager
def open_training_table(
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    exposure: str | int | None,
    memory: int,
    seed: int,
) -> Iterator[TrainingTable]:
    """Read the rows to learn from; within it, errors number the rows as the user does."""
    if isinstance(X, str | os.PathLike):
        X = ParquetTable(X)
    if isinstance(X, ParquetTable):
        yield from _open_files(X, y, sample_weight, exposure, memory, seed)
        return
    target, weight = column_name(y), column_name(sample_weight)
    _warn_of_other_order(X, y)
    with counted_rows(X, y, sample_weight=sample_weight) as (X, y, sample_weight):
        table = read_table(X)
        name, exposures = None, np.ones(table.n_rows)
        if exposure is not None:
            (name,) = resolve_columns(table, [exposure], "exposure")
            exposures = read_exposure(table, name)
        outcomes = read_outcomes(y, sample_weight, exposures)
        yield TrainingTable(table, outcomes, target, weight, name)


def _open_files(
    source: ParquetTable,
    y: Any,
    sample_weight: Any,
    exposure: str | int | None,
    memory: int,
    seed: int,
) -> Iterator[TrainingTable]:
    for argument, name in {"y": y, "sample_weight": sample_weight}.items():
        if not isinstance(name, str) and (argument == "y" or name is not None):
            raise InvalidInputError(
                f"{argument} must name a column of the files that X is in, got "
                f"{type(name).__name__}. Pass its name.",
                argument=argument,
            )
    roles = [name for name in (y, sample_weight) if name is not None]
    features = source.without(roles)
    weights = None if sample_weight is None else source.read(sample_weight)
    counted = find_counted(weights) if weights is not None else None
    with numbered_by(counted):

        def read(name: str) -> Any:
            column = source.read(name)
            column = column if counted is None else column.take(counted)
            # With its name, which messages know then.
            return nw.from_native(column, series_only=True).alias(name)

        n_rows = source.n_rows if counted is None else len(counted)
        exposures = np.ones(n_rows)
        if exposure is not None:
            source.without([str(exposure)])  # or it says that there is none
            column = Table({str(exposure): read(str(exposure)).to_native()}, n_rows, named=True)
            exposures = read_exposure(column, str(exposure))
        outcomes = read_outcomes(
            read(y), None if sample_weight is None else read(sample_weight), exposures
        )
        share = share_to_sample(n_rows, len(features.columns), memory)
        sample = features.sample(share, seed + _SAMPLED, counted)
        name = None if exposure is None else str(exposure)
        table = read_table(sample.table)
        yield TrainingTable(table, outcomes, y, sample_weight, name, features, sample.rows, counted)


def _warn_of_other_order(X: Any, y: Any) -> None:
    """Warn where labels of pandas say that rows of y are in another order than those of X."""
    ours: Any = getattr(X, "index", None)
    theirs: Any = getattr(y, "index", None)
    if not hasattr(ours, "equals") or not hasattr(theirs, "equals") or ours.equals(theirs):
        return
    if len(ours) == len(theirs) and ours.is_unique and ours.isin(theirs).all():
        warnings.warn(
            "X and y have the same index labels in another order, and rows are taken by position. "
            "If they belong together by label, pass y.loc[X.index].",
            stacklevel=6,
        )


@contextmanager
def _one_warning_of_unseen(n_sampled: int) -> Iterator[None]:
    """Say once, and not for every block, that rows hold categories that the sample has not."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    unseen = [w for w in caught if issubclass(w.category, UnseenCategoryWarning)]
    if unseen:
        warnings.warn(
            f"Some rows hold categories that none of the {n_sampled:,} rows has from which the "
            f"schema was inferred; one block of them: {unseen[0].message} Raise memory to draw "
            "more rows.",
            UnseenCategoryWarning,
            stacklevel=4,
        )
