"""A table in: pandas, polars, pyarrow, numpy or nested lists, seen as named Arrow columns."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from fcorr._core import InvalidInputError, enumerate_some, near_match


@dataclass(frozen=True)
class Table:
    """Named columns of one length. ``named`` is False where the names were made up (x0, x1, …).

    ``ordinal`` names the columns whose type says that its categories are ordered: an ordered
    Categorical of pandas, an ordered dictionary of Arrow. An Enum of polars lists its categories
    in some order, but need not mean it.
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


def is_frame(X: object) -> bool:
    """Tell whether X is a dataframe, which brings its own column names."""
    if isinstance(X, pa.RecordBatch):
        return True
    try:
        seen = nw.from_native(X, pass_through=True)
    except DuplicateError:  # only a frame repeats a column's name; read_table says which
        return True
    return isinstance(seen, nw.DataFrame | nw.LazyFrame)


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
    _refuse_what_is_not_a_table(X)
    table = _from_frame(X, unread) if is_frame(X) else _from_array(X)
    n_columns = len(table.columns)
    if table.n_rows == 0 or n_columns == 0:
        empty = "0 sample(s)" if table.n_rows == 0 else "0 feature(s)"
        raise InvalidInputError(
            f"X must have at least one row and one column, got {empty} "
            f"(shape=({table.n_rows}, {n_columns})) while a minimum of 1 is required. "
            "Check the filter or the file that made it."
        )
    return table


def _refuse_what_is_not_a_table(X: Any) -> None:
    if isinstance(X, nw.LazyFrame) or type(X).__name__ == "LazyFrame":
        raise InvalidInputError("X must be in memory, got a lazy frame. Call X.collect() first.")
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError("X must be dense, got a sparse matrix. Call X.toarray() first.")
    if isinstance(X, str | bytes):
        raise InvalidInputError(
            f"X must be a table, got the text {X!r}. Read the file first, or use `fcorr train`."
        )


def _from_frame(X: Any, unread: Collection[str]) -> Table:
    if isinstance(X, pa.RecordBatch):
        X = pa.Table.from_batches([X])
    names = [str(name) for name in (X.column_names if isinstance(X, pa.Table) else X.columns)]
    refuse_repeated(names)
    if not isinstance(X, pa.Table) and list(X.columns) != names:
        X = X.set_axis(names, axis=1)  # a pandas frame whose labels are not text
    names = [name for name in names if name not in unread]
    frame = nw.from_native(X, eager_only=True)
    if isinstance(X, pa.Table):  # narwhals would copy its columns, to make each one chunk
        columns = {name: X.column(name) for name in names}
    else:
        columns = {name: _column_to_arrow(frame.get_column(name)) for name in names}
    is_ordered = not frame.implementation.is_polars()
    ordinal = {n for n, c in columns.items() if is_ordered and getattr(c.type, "ordered", False)}
    return Table(columns, n_rows=len(frame), named=True, ordinal=frozenset(ordinal))


def resolve_columns(table: Table, columns: Sequence[str | int], argument: str) -> list[str]:
    """Turn names, or positions where there are no names, into names."""
    resolved = []
    for column in columns:
        if isinstance(column, str) and column in table.columns:
            resolved.append(column)
        elif not table.named and column in range(len(table.names)):
            resolved.append(table.names[int(column)])
        else:
            raise InvalidInputError(
                f"{argument} must name columns of X, got {column!r}."
                f"{near_match(str(column), table.names)} X has {enumerate_some(table.names, 8)}."
            )
    repeated = [name for i, name in enumerate(resolved) if name in resolved[:i]]
    if repeated:
        raise InvalidInputError(
            f"{argument} must name each column once, got {enumerate_some(repeated)} twice. "
            "Drop the repetition."
        )
    return resolved


def refuse_repeated(names: Sequence[str]) -> None:
    """Raise an :class:`InvalidInputError` where two columns share a name."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InvalidInputError(
            f"Column names must differ, got {enumerate_some(repeated)} more than once. "
            "Rename or drop the repeated columns."
        )


def _column_to_arrow(column: nw.Series[Any]) -> pa.ChunkedArray:
    try:
        array = column.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise _mixed_column(column.name, error) from error
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _from_array(X: Any) -> Table:
    array = _to_array(X)
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
    names = [f"x{i}" for i in range(array.shape[1])]
    columns = {name: _values_to_arrow(name, array[:, i]) for i, name in enumerate(names)}
    return Table(columns, n_rows=len(array), named=False)


def _to_array(X: Any) -> NDArray[Any]:
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InvalidInputError(
            f"X must be a table with all rows of one length ({error}). "
            "Pass a dataframe or a 2D array."
        ) from error
    if array.dtype.kind == "U" and not isinstance(X, np.ndarray):
        # numpy turns a list with some text into text altogether, its numbers and NaN as well.
        return np.asarray(X, dtype=object)
    return array


def _values_to_arrow(name: str, values: NDArray[Any]) -> pa.ChunkedArray:
    try:
        return pa.chunked_array([pa.array(values, from_pandas=True)])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise _mixed_column(name, error) from error


def _mixed_column(name: str, error: Exception) -> InvalidInputError:
    return InvalidInputError(
        f"Column {name!r} must hold one kind of value, numbers or text ({error}). "
        "Convert the column before the fit, for example with .astype(str)."
    )
