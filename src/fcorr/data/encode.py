"""From a table to the arrays the model reads, by the schema of the training table."""

import datetime
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fcorr._core import InvalidInputError, UnseenCategoryWarning, enumerate_some, near_match
from fcorr.data.infer import find_groups
from fcorr.data.schema import (
    BinnedColumn,
    CategoricalColumn,
    CodedColumn,
    Column,
    DatetimeColumn,
    NumericColumn,
    OrdinalColumn,
    Schema,
    as_boolean,
)
from fcorr.data.tables import (
    Category,
    ColumnError,
    Distinct,
    Table,
    blocks,
    can_be_category,
    date_part,
    find_distinct,
    is_text,
    read_table,
    refuse_values,
    to_numbers,
    to_timestamps,
    value_type,
)

# ------------------------------ exposures
# Exposures: for how long, or how much, each row was at risk.


def read_exposure(table: Table, name: str) -> NDArray[np.float64]:
    """Return a column of exposures, all of them positive.

    Raises
    ------
    ColumnError
        A row has no exposure, or one that is not positive; the message names column and row.
    """
    remedy = "Correct these rows or leave them out: without time at risk there is nothing to expect"
    try:
        exposure = to_numbers(name, table.columns[name])
    except ColumnError as error:
        raise ColumnError(error.problem, f"{remedy}.") from error
    wrong = ~(exposure > 0)  # NaN is not
    if wrong.any():
        row = int(np.argmax(wrong))
        more = f" and {wrong.sum() - 1} more" if wrong.sum() > 1 else ""
        raise ColumnError(
            f"Column {name!r} (exposure) must be positive in every row, got {exposure[row]} in row "
            f"{row}{more}",
            f"{remedy}.",
        )
    return exposure


# ------------------------------ matching
# The categories of a new table among those of the training table.

UNSEEN = -1


def match_categories(
    values: pa.ChunkedArray, column: CategoricalColumn | OrdinalColumn
) -> tuple[Distinct, NDArray[np.int32]]:
    """Split a column into its distinct values, and find each among the training categories.

    Parameters
    ----------
    values : ChunkedArray
        The column of the new table.
    column : CategoricalColumn or OrdinalColumn
        What it was in training.

    Returns
    -------
    Distinct
        The column, split.
    ndarray of int32
        The place of each distinct value in ``column.categories``, or :data:`UNSEEN`.

    Raises
    ------
    ColumnError
        The column holds text where training had numbers, or the other way round, or dates.
    """
    _check_values(values, column)
    distinct = find_distinct(column.name, values)
    place: dict[Category, int] = {
        category: i for i, category in enumerate(column.categories) if category is not None
    }
    found = distinct.values
    if column.kind == "boolean":
        found = [as_boolean(value) for value in found]
    places = [place.get(value, UNSEEN) for value in found]
    return distinct, np.asarray(places, dtype=np.int32)


def _check_values(values: pa.ChunkedArray, column: CategoricalColumn | OrdinalColumn) -> None:
    """Refuse values that could not equal any category, whatever they are."""
    if values.null_count == len(values):
        return
    kind = value_type(values.type)
    if column.kind == "boolean":
        expected, fits = "booleans", can_be_category(kind)
    elif column.is_text:
        expected, fits = "text", is_text(kind)
    else:
        expected, fits = "numbers", can_be_category(kind) and not is_text(kind)
    if not fits:
        remedy = "Convert the column as it was for training, or train on it as it is"
        refuse_values(column.name, expected, values, remedy)


# ------------------------------ differences
# What differs between a table and the training table, in words.

Problem = Literal[
    "missing column",
    "extra column",
    "other values",
    "unseen categories",
    "out of range",
    "missing values",
]
_FATAL = ("missing column", "other values")


@dataclass(frozen=True)
class Difference:
    """One difference between a table and the training table.

    Attributes
    ----------
    column : str
        The column.
    problem : str
        ``"missing column"``, ``"extra column"``, ``"other values"`` (text or dates where training
        had numbers, infinite numbers, …), ``"unseen categories"``, ``"out of range"`` or
        ``"missing values"`` (where training had none).
    text : str
        The difference in words.
    n_rows : int
        The rows it concerns; 0 where it concerns the column as a whole.
    remedy : str
        What to do about it, where the model cannot do without.
    """

    column: str
    problem: Problem
    text: str
    n_rows: int = 0
    remedy: str = ""

    @property
    def is_fatal(self) -> bool:
        """Whether the model cannot predict for such a table."""
        return self.problem in _FATAL


@dataclass(frozen=True)
class SchemaDiff:
    """What differs between a table and the training table: false where nothing does."""

    differences: tuple[Difference, ...]

    def __len__(self) -> int:
        return len(self.differences)

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.differences)

    def __str__(self) -> str:
        if not self.differences:
            return "No difference from the training table."
        plural = "s" if len(self) > 1 else ""
        lines = [f"{len(self)} difference{plural} from the training table:"]
        return "\n- ".join([*lines, *(difference.text for difference in self)])

    @property
    def fatal(self) -> tuple[Difference, ...]:
        """The differences because of which the model cannot predict."""
        return tuple(difference for difference in self if difference.is_fatal)

    def to_error(self) -> InvalidInputError:
        """Return the error that states all fatal differences, and what to do about the first."""
        texts = "; ".join(difference.text for difference in self.fatal)
        return InvalidInputError(f"X must fit the training table: {texts}. {self.fatal[0].remedy}")


def compare(schema: Schema, X: Any, *, read_sensitive: bool = True) -> SchemaDiff:
    """Compare a table, or what can be read as one, with the training table.

    With ``read_sensitive=False`` the sensitive columns may be absent and are not looked at.
    """
    unread = () if read_sensitive else schema.sensitive
    table = X if isinstance(X, Table) else read_table(X, unread=unread)
    table = name_columns(table, schema, unread)
    strangers = [name for name in table.names if name not in (*schema.names, schema.exposure)]
    found: list[Difference] = []
    for column in schema.columns:
        if column.name in unread:
            continue
        if column.name in table.columns:
            found += _compare_column(column, table.columns[column.name])
        else:
            found.append(_missing_column(column.name, schema, table, strangers))
    if schema.exposure is not None:
        found += _compare_exposure(schema.exposure, schema, table, strangers)
    found += [
        Difference(name, "extra column", f"Column {name!r} is not in the training table: ignored")
        for name in strangers
    ]
    return SchemaDiff(tuple(found))


def name_columns(table: Table, schema: Schema, unread: Sequence[str] = ()) -> Table:
    """Give a table without names those of training, if it has as many columns.

    ``unread`` columns may be left out, all of them or none.
    """
    if table.named:
        return table
    read = tuple(name for name in schema.names if name not in unread)
    by_count = {len(read): read, len(schema.names): schema.names}
    return table.renamed(by_count.get(len(table.names), table.names))


def _missing_column(name: str, schema: Schema, table: Table, strangers: list[str]) -> Difference:
    role = " (sensitive)" if name in schema.sensitive else ""
    remedy = f"X has {enumerate_some(table.names)}. Add or rename the column"
    if name == schema.exposure:
        role = " (exposure)"
        remedy += ", or ask for the rate per unit of exposure with predict_rate"
    match = near_match(name, strangers).strip()
    text = f"Column {name!r}{role} is missing" + (f" ({match})" if match else "")
    return Difference(name, "missing column", text, remedy=f"{remedy}.")


def _compare_exposure(
    name: str, schema: Schema, table: Table, strangers: list[str]
) -> list[Difference]:
    if name not in table.columns:
        return [_missing_column(name, schema, table, strangers)]
    try:
        read_exposure(table, name)
    except ColumnError as error:
        return [Difference(name, "other values", error.problem, remedy=error.remedy)]
    return []


def _compare_column(column: Column, values: pa.ChunkedArray) -> list[Difference]:
    try:
        if isinstance(column, CategoricalColumn | OrdinalColumn):
            found, n_missing = _compare_categories(column, values)
        elif isinstance(column, DatetimeColumn):
            found, n_missing = _compare_dates(column, values)
        else:
            numbers = to_numbers(column.name, values)
            is_missing = np.isnan(numbers)
            n_missing = int(np.count_nonzero(is_missing))
            low, high = column.low, column.high
            found = _out_of_range(column.name, pa.array(numbers[~is_missing]), low, high)
    except ColumnError as error:
        text, remedy = error.problem, error.remedy
        return [Difference(column.name, "other values", text, remedy=remedy)]
    if n_missing and not column.n_missing:
        text = f"Column {column.name!r} has {n_missing} missing value(s); training had none"
        found.append(Difference(column.name, "missing values", text, n_missing))
    return found


def _compare_categories(
    column: CategoricalColumn | OrdinalColumn, values: pa.ChunkedArray
) -> tuple[list[Difference], int]:
    distinct, places = match_categories(values, column)
    *counts, n_missing = distinct.count().tolist()
    rows = zip(distinct.values, counts, places == UNSEEN, strict=True)
    unseen = {value: n for value, n, is_unseen in rows if n and is_unseen}
    if not unseen:
        return [], n_missing
    frequent = sorted(unseen.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{value!r} ({n})" for value, n in frequent[:5])
    more = f" and {len(unseen) - 5} more" if len(unseen) > 5 else ""
    n_rows = sum(unseen.values())
    pooled = isinstance(column, CategoricalColumn) and column.n_pooled > 0
    # Training kept no list of those it pooled.
    where = "not seen in training, or pooled there" if pooled else "not seen in training"
    text = f"Column {column.name!r} has {n_rows} row(s) of categories {where}: {shown}{more}"
    return [Difference(column.name, "unseen categories", text, n_rows)], n_missing


def _compare_dates(column: DatetimeColumn, values: pa.ChunkedArray) -> tuple[list[Difference], int]:
    timestamps = to_timestamps(column.name, values)
    first, last = map(datetime.datetime.fromisoformat, (column.first, column.last))
    found = _out_of_range(column.name, timestamps, first, last)
    return found, timestamps.null_count


def _out_of_range(name: str, values: Any, low: Any, high: Any) -> list[Difference]:
    below = values.filter(pc.less(values, pa.scalar(low, values.type)))
    above = values.filter(pc.greater(values, pa.scalar(high, values.type)))
    n_rows = len(below) + len(above)
    if not n_rows:
        return []
    ends = [f"down to {_shown(pc.min(below).as_py())}"] if len(below) else []
    ends += [f"up to {_shown(pc.max(above).as_py())}"] if len(above) else []
    text = (
        f"Column {name!r} has {n_rows} row(s) outside the training range, "
        f"{_shown(low)} to {_shown(high)}: {', '.join(ends)}"
    )
    return [Difference(name, "out of range", text, n_rows)]


def _shown(value: float | datetime.datetime) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    return f"{value:.10g}"


# ------------------------------ encoding
# From a table to the arrays the model reads, by the schema of the training table.
#
# The arrays are made first and filled column by column, block by block: beside them and the table
# itself there is never more than one column's dictionary and a few blocks in memory.

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
