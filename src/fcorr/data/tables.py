"""Tables: pandas, polars, pyarrow, numpy or nested lists, seen as named Arrow columns.

Then one column at a time: as numbers, as distinct categories, as dates.
"""

import datetime
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from fcorr._core import InvalidInputError, enumerate_some, near_match

Category = str | int | float | bool | None
"""A category's value; ``None`` stands for "missing"."""

LARGEST = float(np.finfo(np.float32).max)

# ------------------------------------------------------------------------------ whole tables


@dataclass(frozen=True)
class Table:
    """Named columns of one length. ``named`` is False where the names were made up (x0, x1, …).

    ``ordinal`` names the columns whose type says that its categories are ordered: an ordered
    Categorical of pandas, an Enum of polars, an ordered dictionary of Arrow.
    """

    columns: dict[str, pa.ChunkedArray]
    n_rows: int
    named: bool
    ordinal: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in the table's order."""
        return tuple(self.columns)

    def renamed(self, names: Sequence[str]) -> "Table":
        """Return the same columns, in their order, under other names."""
        new = dict(zip(self.names, names, strict=True))
        columns = {new[name]: column for name, column in self.columns.items()}
        ordinal = frozenset(new[name] for name in self.ordinal)
        return Table(columns, self.n_rows, named=True, ordinal=ordinal)


def read_table(X: Any, *, unread: Collection[str] = ()) -> Table:
    """See X as a :class:`Table`.

    Parameters
    ----------
    X : dataframe (pandas, polars, pyarrow), 2-D array or nested sequence
        Columns without a name are called x0, x1, …
    unread : collection of str
        Columns of a dataframe to leave out, whatever they hold.

    Raises
    ------
    InvalidInputError
        X has no rows or no columns, two columns of one name, or is not a table at all.

    Examples
    --------
    >>> read_table([[1, "a"], [2, "b"]]).names
    ('x0', 'x1')
    """
    if isinstance(X, nw.LazyFrame) or type(X).__name__ == "LazyFrame":
        raise InvalidInputError("X must be in memory, got a lazy frame. Call X.collect() first.")
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError("X must be dense, got a sparse matrix. Call X.toarray() first.")
    if isinstance(X, str | bytes):
        raise InvalidInputError(
            f"X must be a table, got the text {X!r}. Read the file first, or use the command line: "
            "`fcorr --help`."
        )
    table = _from_frame(X, unread) if _is_frame(X) else _from_array(X)
    shape = (table.n_rows, len(table.columns))
    if 0 in shape:
        empty = "0 sample(s)" if table.n_rows == 0 else "0 feature(s)"
        raise InvalidInputError(
            f"X must have at least one row and one column, got {empty} "
            f"(shape={shape}) while a minimum of 1 is required. "
            "Check the filter or the file that made it."
        )
    return table


def _is_frame(X: object) -> bool:
    try:
        frame = nw.from_native(X, pass_through=True)
        return isinstance(frame, nw.DataFrame | pa.RecordBatch)
    except DuplicateError:  # only a frame repeats a column's name; read_table says which
        return True


def _from_frame(X: Any, unread: Collection[str]) -> Table:
    if isinstance(X, pa.RecordBatch):
        X = pa.Table.from_batches([X])
    names = [str(name) for name in (X.column_names if isinstance(X, pa.Table) else X.columns)]
    refuse_repeated(names)
    if not isinstance(X, pa.Table) and list(X.columns) != names:
        X = X.set_axis(names, axis=1)  # a pandas frame whose labels are not text
    names = [name for name in names if name not in unread]
    frame = nw.from_native(X, eager_only=True)

    def convert(name: str) -> Any:
        if isinstance(X, pa.Table):
            return X.column(name)  # narwhals would copy it, to make it one chunk
        series = frame.get_column(name)
        if frame.implementation.is_pandas():
            series = nw.from_native(_with_arrow_type(series.to_native()), series_only=True)
        elif str(series.dtype).startswith("Enum"):  # polars before 1.41 hands no order on
            native = series.to_native()
            categories = native.dtype.categories.to_arrow()
            places = native.to_physical().to_arrow()
            return pa.DictionaryArray.from_arrays(places, categories, ordered=True)
        return series.to_arrow()

    columns = {name: _to_arrow(name, partial(convert, name)) for name in names}
    ordinal = {name for name, held in columns.items() if getattr(held.type, "ordered", False)}
    return Table(columns, n_rows=len(frame), named=True, ordinal=frozenset(ordinal))


def _with_arrow_type(series: Any) -> Any:
    """Turn pandas' periods into the dates they begin at, intervals into ordered text, fill gaps."""
    if str(series.dtype).startswith("period"):
        return series.dt.start_time
    if str(series.dtype).startswith("Sparse"):
        return series.sparse.to_dense()
    if str(series.dtype).startswith("interval"):
        series = series.astype("category").cat.as_ordered()
    held = getattr(series.dtype, "categories", series).dtype
    return series.cat.rename_categories(str) if str(held).startswith("interval") else series


def _from_array(X: Any) -> Table:
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InvalidInputError(
            f"X must be a table with all rows of one length ({error}). "
            "Pass a dataframe or a 2D array."
        ) from error
    if array.dtype.kind == "U" and not isinstance(X, np.ndarray):
        # numpy turns a list with some text into text altogether, its numbers and NaN as well.
        array = np.asarray(X, dtype=object)
    if array.ndim != 2:
        raise InvalidInputError(
            f"Expected 2D array, got {array.ndim}D array instead: shape={array.shape}. Reshape "
            "your data either using X.reshape(-1, 1) if it has one feature or X.reshape(1, -1) "
            "if it is one row."
        )
    if array.dtype.kind == "c":
        raise InvalidInputError(
            "Complex data not supported: X must hold real numbers or text. Pass X.real."
        )
    masks = X.mask.T if np.ma.is_masked(X) else [None] * array.shape[1]
    columns = {
        f"x{i}": _to_arrow(f"x{i}", partial(pa.array, values, mask=mask, from_pandas=True))
        for i, (values, mask) in enumerate(zip(array.T, masks, strict=True))
    }
    return Table(columns, n_rows=len(array), named=False)


def _to_arrow(name: str, convert: Callable[[], Any]) -> pa.ChunkedArray:
    try:
        values = convert()
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise InvalidInputError(
            f"Column {name!r} must hold one kind of value, numbers or text ({error}). "
            "Convert the column before the fit, for example with .astype(str)."
        ) from error
    if pat.is_duration(values.type):
        per_day = 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[values.type.unit]
        values = pc.divide(values.cast(pa.int64()).cast(pa.float64(), safe=False), per_day)
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def refuse_repeated(names: Sequence[str]) -> None:
    """Raise an :class:`InvalidInputError` where two columns share a name."""
    if repeated := _repeated(names):
        raise InvalidInputError(
            f"Column names must differ, got {enumerate_some(repeated)} more than once. "
            "Rename or drop the repeated columns."
        )


def resolve_columns(table: Table, columns: Sequence[str | int], argument: str) -> list[str]:
    """Turn names, or positions where there are no names, into names."""
    resolved = []
    for column in columns:
        # A name may have come as a number; a position cannot be meant where there are names.
        if (table.named or isinstance(column, str)) and str(column) in table.columns:
            resolved.append(str(column))
        elif not table.named and column in range(len(table.names)):
            resolved.append(table.names[int(column)])
        else:
            raise InvalidInputError(
                f"{argument} must name columns of X, got {column!r}."
                f"{near_match(str(column), table.names)} X has {enumerate_some(table.names, 8)}."
                f"{'' if table.named else ' They came without names: pass positions.'}"
            )
    if repeated := _repeated(resolved):
        raise InvalidInputError(
            f"{argument} must name each column once, got {enumerate_some(repeated)} twice. "
            "Drop the repetition."
        )
    return resolved


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


# ------------------------------------------------------------------------------ what columns hold


class ColumnError(InvalidInputError):
    """A column holds what it must not: ``problem`` says what, ``remedy`` what to do about it."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}. {self.remedy}"


def value_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of a column's values, also where a dictionary holds them."""
    return dtype.value_type if pat.is_dictionary(dtype) else dtype


def name_values(dtype: pa.DataType) -> str:
    """Say in a word what a column or its dictionary holds; for an odd type, the type's own name."""
    kind = value_type(dtype)
    if is_number(kind):
        return "numbers"
    if pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind):
        return "text"
    if pat.is_date(kind) or pat.is_timestamp(kind):
        return "dates"
    return "booleans" if pat.is_boolean(kind) else str(kind)


def is_number(dtype: pa.DataType) -> bool:
    """Tell whether a type is one of numbers."""
    return bool(pat.is_integer(dtype) or pat.is_floating(dtype) or pat.is_decimal(dtype))


def can_be_category(dtype: pa.DataType) -> bool:
    """Tell whether a column's values can be categories."""
    return name_values(dtype) in ("numbers", "text", "booleans", "null")


def refuse_values(
    name: str,
    expected: str,
    column: pa.ChunkedArray,
    remedy: str,
    readable_as: pa.DataType | None = None,
) -> NoReturn:
    """Raise the error that names the first value, or the first that cannot be read as a type."""

    def is_readable(value: object) -> bool:
        try:
            return readable_as is not None and bool(pa.scalar(value).cast(readable_as).is_valid)
        except (pa.ArrowException, TypeError):
            return False

    values = ((row, scalar.as_py()) for row, scalar in enumerate(column) if scalar.is_valid)
    row, value = next((v for v in values if not is_readable(v[1])), (0, None))
    shown = repr(value) if isinstance(value, str | int | float | None) else str(value)
    raise ColumnError(
        f"Column {name!r} must hold {expected}, got {name_values(column.type)}: {shown} in row "
        f"{row}",
        f"{remedy}.",
    )


# ------------------------------------------------------------------------------ numbers


def to_numbers(name: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column of numbers as float64, missing ones as NaN; refuse infinite ones.

    Text that spells numbers is read as numbers.
    """
    remedy = f"Convert the column, or train with kinds={{{name!r}: 'categorical'}}"
    if not can_be_category(column.type):
        refuse_values(name, "numbers", column, remedy)
    try:
        # Not a safe cast, which would refuse integers that float64 has to round.
        values: NDArray[np.float64] = _decode(column).cast(pa.float64(), safe=False).to_numpy()
    except pa.ArrowException:
        refuse_values(name, "numbers", column, remedy, readable_as=pa.float64())
    # NaN compares false, so only what is truly out of range is found.
    too_large = np.abs(values) > LARGEST
    if too_large.any():
        row = int(np.argmax(too_large))
        raise ColumnError(
            f"Column {name!r} must hold finite numbers within ±{LARGEST:.1e}, got {values[row]} in "
            f"row {row} (inf or too large for float32)",
            "Replace it, or make it missing.",
        )
    return values


def _decode(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return values without a dictionary, text in a type that every kernel reads."""
    kind = value_type(values.type)
    plain = pa.large_string() if pat.is_string_view(kind) else kind
    return values if values.type == plain else values.cast(plain)


# ------------------------------------------------------------------------------ categories


@dataclass(frozen=True)
class Distinct:
    """A column as its distinct values and the index of each row's value among them."""

    dictionary: pa.Array
    indices: pa.ChunkedArray

    @property
    def values(self) -> list[Category]:
        """The distinct values."""
        return self.dictionary.to_pylist()

    def positions(self) -> NDArray[np.integer[Any]]:
        """Return the rows' positions; a missing value has the one after the last."""
        if not self.indices.null_count:
            return self.indices.to_numpy()
        return self.indices.cast(pa.int32()).fill_null(len(self.dictionary)).to_numpy()

    def count(self) -> NDArray[np.int64]:
        """Count the rows of each value and, last, of the missing one."""
        counts = np.zeros(len(self.dictionary) + 1, dtype=np.int64)
        places, rows = self.indices.value_counts().flatten()
        counts[places.cast(pa.int64()).fill_null(len(self.dictionary)).to_numpy()] = rows
        return counts


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
        return Distinct(pa.nulls(0), pa.chunked_array([pa.nulls(len(column), pa.int8())]))
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
    indices = pa.chunked_array([c.indices for c in column.chunks], column.type.index_type)
    return Distinct(_decode(dictionary), indices)


def count_distinct(column: pa.ChunkedArray) -> int:
    """Count the distinct values of a column of categories; missing ones do not count."""
    return int(pc.count_distinct(_as_categories(column)).as_py())


def _is_clean_dictionary(column: pa.ChunkedArray) -> bool:
    """Tell whether a dictionary's values are distinct, and none of them is missing."""
    kind = value_type(column.type)
    if not pat.is_dictionary(column.type) or pat.is_floating(kind) or pat.is_decimal(kind):
        return False
    dictionaries = [chunk.dictionary for chunk in column.chunks]
    return all(d.null_count == 0 and len(pc.unique(d)) == len(d) for d in dictionaries)


def _as_categories(column: pa.ChunkedArray) -> pa.ChunkedArray:
    column = _decode(column) if pat.is_dictionary(column.type) else column
    if not (pat.is_floating(column.type) or pat.is_decimal(column.type)):
        return column
    numbers = pc.add(column.cast(pa.float64()), 0.0)  # −0 is 0
    return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)


# ------------------------------------------------------------------------------ dates

DATE_PARTS = ("year", "month", "day_of_week", "hour", "days")
"""What a date is taken apart into: ``days`` counts whole days, the week begins on Monday (0)."""


def to_timestamps(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of dates as local time in microseconds; ISO 8601 text is read as dates."""
    kind = value_type(column.type)
    is_date = name_values(kind) == "dates"
    remedy = "Convert the column to dates"
    if not is_date and name_values(kind) not in ("text", "null"):
        refuse_values(name, "dates", column, remedy)
    local = pa.timestamp("us")
    try:
        decoded = _decode(column)
        if pat.is_timestamp(kind) and kind.tz is not None:
            # Hours and days are those of the clock on the wall, not those of Greenwich.
            decoded = pc.local_timestamp(decoded)
        # Nanoseconds lose digits, which a safe cast refuses; coarser units could leave the range.
        timestamps = decoded.cast(local, safe=kind != pa.timestamp("ns", getattr(kind, "tz", None)))
        pc.min_max(timestamps).as_py()
    except (ValueError, OverflowError) as error:
        if isinstance(error, pa.ArrowException) and not is_date:
            refuse_values(name, "dates", column, remedy, readable_as=local)
        raise ColumnError(
            f"Column {name!r} must hold dates of the years 1 to 9999 ({error})",
            "Correct these dates, or make them missing.",
        ) from error
    return timestamps


def date_part(part: str, timestamps: pa.ChunkedArray, origin: datetime.date) -> NDArray[np.float64]:
    """Return one of :data:`DATE_PARTS` of each date, NaN where it is missing."""
    if part == "days":
        start = pa.scalar(datetime.datetime.combine(origin, datetime.time()), timestamps.type)
        values = pc.days_between(start, timestamps)
    else:
        values = getattr(pc, part)(timestamps)
    return values.cast(pa.float64()).to_numpy()
