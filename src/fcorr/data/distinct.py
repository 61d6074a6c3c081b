"""Categories: a column as its distinct values, and each row's position among them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from numpy.typing import NDArray

from fcorr.data.columns import (
    BLOCK,
    Category,
    ColumnError,
    blocks,
    can_be_category,
    decode,
    plain_text,
    value_type,
)


@dataclass(frozen=True)
class Distinct:
    """A column as its distinct values and, in chunks, the position of each row's value in them."""

    dictionary: pa.Array
    chunks: list[pa.Array]

    @property
    def values(self) -> list[Category]:
        """The distinct values."""
        return self.dictionary.to_pylist()

    def positions(self) -> Iterator[tuple[int, NDArray[np.integer[Any]]]]:
        """Give the rows' positions in blocks, with the number of the first row of each.

        A missing value has the position after the last.
        """
        first_row = 0
        for chunk in self.chunks:
            for start in range(0, len(chunk), BLOCK):
                block = chunk.slice(start, BLOCK)
                if block.null_count:
                    block = block.cast(pa.int64()).fill_null(len(self.dictionary))
                yield first_row, block.to_numpy(zero_copy_only=False)
                first_row += len(block)

    def count(self) -> NDArray[np.int64]:
        """Count the rows of each value and, last, of the missing one."""
        counts = np.zeros(len(self.dictionary) + 1, dtype=np.int64)
        for _, positions in self.positions():
            counts += np.bincount(positions, minlength=len(counts))
        return counts

    def first_row(self, position: int) -> int:
        """Return the first row that holds a value."""
        return next(
            first + int(np.argmax(positions == position))
            for first, positions in self.positions()
            if (positions == position).any()
        )


def find_distinct(name: str, column: pa.ChunkedArray) -> Distinct:
    """Split a column of categories into its distinct values and the rows' positions in them.

    A dictionary may hold values that no row has. NaN is a missing value; decimals are read as
    floats, which JSON can write and which equal the same numbers in a column of floats.
    """
    kind = value_type(column.type)
    if not can_be_category(column.type):
        raise ColumnError(
            f"Column {name!r} must hold numbers, text or booleans to be categorical, got {kind}",
            "Convert it to text first.",
        )
    if pat.is_null(kind):
        return Distinct(pa.nulls(0), [pa.nulls(len(column), pa.int8())])
    try:
        if not _is_clean_dictionary(column):
            column = pc.dictionary_encode(_as_categories(column))
        column = column.unify_dictionaries()
    except pa.ArrowException as error:
        raise ColumnError(
            f"Column {name!r} cannot be read as categories, got {column.type} ({error})",
            "Convert it to text first.",
        ) from error
    dictionary = column.chunk(0).dictionary if column.num_chunks else pa.nulls(0)
    return Distinct(plain_text(dictionary), [chunk.indices for chunk in column.chunks])


def has_more_values(column: pa.ChunkedArray, limit: int) -> bool:
    """Tell whether a column of categories has more distinct values than a limit.

    Missing ones do not count. Only as much is read as the answer takes: of measurements, little.
    """
    found: set[Category] = set()
    for _, block in blocks(column):
        found.update(pc.unique(_as_categories(block)).drop_null().to_pylist())
        if len(found) > limit:
            return True
    return False


def declared_order(column: pa.ChunkedArray) -> list[Category] | None:
    """Return the categories in the order that the column's type declares, if it does."""
    if not (pat.is_dictionary(column.type) and column.type.ordered and column.num_chunks):
        return None
    order: list[Category] = column.unify_dictionaries().chunk(0).dictionary.to_pylist()
    return order


def _is_clean_dictionary(column: pa.ChunkedArray) -> bool:
    """Tell whether a dictionary's values are distinct, and none of them is missing."""
    if not pat.is_dictionary(column.type):
        return False
    kind = column.type.value_type
    if pat.is_floating(kind) or pat.is_decimal(kind):
        return False
    dictionaries = [chunk.dictionary for chunk in column.chunks]
    return all(d.null_count == 0 and len(pc.unique(d)) == len(d) for d in dictionaries)


def _as_categories(column: pa.ChunkedArray) -> pa.ChunkedArray:
    column = decode(column) if pat.is_dictionary(column.type) else column
    if not (pat.is_floating(column.type) or pat.is_decimal(column.type)):
        return column
    numbers = pc.add(column.cast(pa.float64()), 0.0)  # −0 is 0
    return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
