"""From a table to the arrays the model reads, by the schema of the training table.

The arrays are made first and filled column by column, block by block: beside them and the table
itself there is never more than one column's dictionary and a few blocks in memory.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fcorr._core import UnseenCategoryWarning, enumerate_some
from fcorr.data.bins import find_groups
from fcorr.data.columns import ColumnError, blocks, to_numbers
from fcorr.data.dates import date_part, to_timestamps
from fcorr.data.descriptions import (
    BinnedColumn,
    CategoricalColumn,
    CodedColumn,
    DatetimeColumn,
    NumericColumn,
    OrdinalColumn,
)
from fcorr.data.differences import compare, name_columns
from fcorr.data.distinct import Distinct
from fcorr.data.matching import UNSEEN, match_categories
from fcorr.data.schema import Schema
from fcorr.data.tables import Table

_FARTHEST = 1e12  # deviations from the mean, beyond any training row; float32 can still square it


@dataclass(frozen=True)
class EncodedTable:
    """Codes ``(n_rows, n_categorical)`` and standardised numbers ``(n_rows, n_numeric)``."""

    codes: NDArray[np.int32]
    numbers: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.codes)


def encode(table: Table, schema: Schema, *, read_sensitive: bool = True) -> EncodedTable:
    """Encode a table by name; columns the schema does not know are ignored.

    The columns of a table without names are taken in their order.

    With ``read_sensitive=False`` the sensitive columns are not looked at, whatever they hold, and
    may be absent: a model that is invariant to them needs none. Each of their codes is then the
    most frequent category's, each of their numbers 0, the mean.

    A category that training did not see goes to its column's pool of rare categories. Where there
    is no pool it is taken for the most frequent category, in an ordinal column for a missing
    value. So is a missing category where training had none. An :class:`UnseenCategoryWarning`
    counts them, except those that went to a pool, which is what a pool is for: training kept no
    list of the categories in it.

    Raises
    ------
    InvalidInputError
        A column is missing, or holds what cannot be read as in training. The message names the
        columns and the rows, in the words of :meth:`Schema.diff`.
    """
    unread = () if read_sensitive else schema.sensitive
    table = name_columns(table, schema, unread)
    if not set(schema.names).difference(unread).issubset(table.names):
        raise compare(schema, table, read_sensitive=read_sensitive).to_error()
    codes = np.empty((table.n_rows, len(schema.categorical)), dtype=np.int32)
    numbers = np.empty((table.n_rows, len(schema.numeric)), dtype=np.float32)
    try:
        unseen = _fill_codes(codes, table, schema, unread)
        unseen |= _fill_numbers(numbers, table, schema, unread)
    except ColumnError as error:
        raise compare(schema, table, read_sensitive=read_sensitive).to_error() from error
    if unseen:
        _warn_of_unseen(unseen, schema)
    return EncodedTable(codes, numbers)


def _fill_codes(
    codes: NDArray[np.int32], table: Table, schema: Schema, unread: Sequence[str]
) -> dict[str, int]:
    """Fill the codes; return the number of unseen rows of each column that has some."""
    unseen = {}
    for i, column in enumerate(schema.categorical):
        if column.name in unread:
            codes[:, i] = column.mode
            continue
        values = table.columns[column.name]
        if isinstance(column, CategoricalColumn):
            unseen[column.name] = _fill_categories(codes[:, i], values, column)
        else:
            unseen[column.name] = _fill_bins(codes[:, i], values, column)
    return {name: n for name, n in unseen.items() if n}


def _fill_categories(
    codes: NDArray[np.int32], values: pa.ChunkedArray, column: CategoricalColumn
) -> int:
    """Fill the codes of one column; return the number of unseen rows."""
    distinct, places = match_categories(values, column)
    code_of, is_unseen = _codes_of_values(places, column)
    for first, positions in distinct.positions():
        codes[first : first + len(positions)] = code_of[positions]
    return _count(distinct, is_unseen)


def _fill_bins(codes: NDArray[np.int32], values: pa.ChunkedArray, column: BinnedColumn) -> int:
    """Fill the codes of one column; return the number of unseen rows, which are missing ones."""
    missing = column.mode if column.missing is None else column.missing
    code_of = np.append(np.arange(len(column.edges) + 1, dtype=np.int32), np.int32(missing))
    n_missing = 0
    for first, block in blocks(values):
        groups = find_groups(to_numbers(column.name, block, first), column.edges)
        codes[first : first + len(groups)] = code_of[groups]
        n_missing += int(np.count_nonzero(groups == len(code_of) - 1))
    return n_missing if column.n_missing == 0 else 0


def _codes_of_values(
    places: NDArray[np.int32], column: CategoricalColumn
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the code of each distinct value and, last, of a missing one; and which are news."""
    missing = column.categories.index(None) if None in column.categories else UNSEEN
    code_of = np.append(places, np.int32(missing))
    is_unseen = code_of == UNSEEN
    if missing == UNSEEN:
        code_of[-1] = column.mode
        # Training that imputed the mode does so again; training that saw no missing value has no
        # category for one, so it counts as unseen.
        is_unseen[-1] = column.n_missing == 0
    if column.pool is not None:
        is_unseen[:-1] = False
    code_of[code_of == UNSEEN] = column.mode if column.pool is None else column.pool
    return code_of, is_unseen


def _fill_numbers(
    numbers: NDArray[np.float32], table: Table, schema: Schema, unread: Sequence[str]
) -> dict[str, int]:
    """Fill the numbers; return the number of unseen rows of each ordinal column that has some."""
    unseen = {}
    stop = 0
    for column in schema.sensitive_first:
        if isinstance(column, CodedColumn):
            continue
        start, stop = stop, stop + len(column.features)
        if column.name in unread:
            numbers[:, start:stop] = 0.0
            continue
        values = table.columns[column.name]
        if isinstance(column, OrdinalColumn):
            distinct, places = match_categories(values, column)
            unseen[column.name] = _count(distinct, np.append(places == UNSEEN, False))
            raw = _place_blocks(distinct, places)
        else:
            raw = _number_blocks(values, column)
        for first, features in raw:
            parts = zip(range(start, stop), column.features, features, strict=True)
            for i, feature, feature_values in parts:
                rows = slice(first, first + len(feature_values))
                numbers[rows, i] = _standardise(feature_values, feature)
    return {name: n for name, n in unseen.items() if n}


def _place_blocks(
    distinct: Distinct, places: NDArray[np.int32]
) -> Iterator[tuple[int, Sequence[NDArray[np.float64]]]]:
    """Give the places of an ordinal column's rows in blocks; unseen ones are missing."""
    place_of = np.append(np.where(places == UNSEEN, np.nan, places), np.nan)
    for first, positions in distinct.positions():
        yield first, [place_of[positions]]


def _number_blocks(
    values: pa.ChunkedArray, column: NumericColumn | DatetimeColumn
) -> Iterator[tuple[int, Sequence[NDArray[np.float64]]]]:
    """Give the numbers of a column, or the parts of its dates, in blocks."""
    for first, block in blocks(values):
        if isinstance(column, NumericColumn):
            yield first, [to_numbers(column.name, block, first)]
        else:
            timestamps = to_timestamps(column.name, block, first)
            origin = column.origin
            yield first, [date_part(part, timestamps, origin) for part in column.parts]


def _standardise(values: NDArray[np.float64], feature: NumericColumn) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        standardised = (values - feature.mean) / feature.scale
    np.clip(standardised, -_FARTHEST, _FARTHEST, out=standardised)
    if not feature.keep_missing:
        standardised[np.isnan(standardised)] = 0.0
    return standardised


def _count(distinct: Distinct, is_counted: NDArray[np.bool_]) -> int:
    """Count the rows that hold one of some distinct values."""
    if not is_counted.any():
        return 0
    return int(distinct.count()[is_counted].sum())


def _warn_of_unseen(unseen: dict[str, int], schema: Schema) -> None:
    counts = ", ".join(f"{n} row(s) of {name!r}" for name, n in unseen.items())
    ordinal = [name for name in unseen if isinstance(schema[name], OrdinalColumn)]
    message = f"Categories not seen in training: {counts}."
    if len(ordinal) < len(unseen):
        message += " Each is taken for the most frequent training category of its column."
    if ordinal:
        message += f" In {enumerate_some(ordinal)}, which is ordinal, it is taken as missing."
    warnings.warn(message, UnseenCategoryWarning, stacklevel=3)
