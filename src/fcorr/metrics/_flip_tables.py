"""Tables and arrays with sensitive columns that can be set to other values."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np

from fcorr._core import InvalidInputError, enumerate_some, near_match
from fcorr.metrics._labels import Labels, encode_labels, is_missing


@dataclass(frozen=True, eq=False)
class SensitiveColumn:
    """One column to flip.

    Attributes
    ----------
    name : object
        Its name, or its position in an array, as the caller wrote it.
    labels : Labels
        What it holds.
    is_categorical : bool
        Whether its dtype says that its values are categories, be they numbers or not.
    """

    name: Any
    labels: Labels
    is_categorical: bool

    @cached_property
    def row_with(self) -> dict[Any, int]:
        """A row for each value that occurs.

        Its cell is the value in the column's own writing: of several ways to write a missing one
        (None, NaN, pandas.NA) the model knows the one that the table has.
        """
        rows = np.unique(self.labels.codes, return_index=True)[1]
        return dict(zip(self.labels.categories, rows.tolist(), strict=True))


class FlipTable(Protocol):
    """A table whose sensitive columns can be set."""

    columns: list[SensitiveColumn]

    def as_it_is(self) -> Any:
        """Return the table in the caller's library."""

    def with_values(self, values: Sequence[Any]) -> Any:
        """Return it with each sensitive column set to one value."""


def open_table(X: Any, sensitive: Sequence[Any]) -> FlipTable:
    """Find the sensitive columns of a table or an array."""
    return _ArrayTable(X, sensitive) if isinstance(X, np.ndarray) else _FrameTable(X, sensitive)


class _ArrayTable:
    def __init__(self, X: Any, sensitive: Sequence[Any]) -> None:
        if X.ndim != 2:
            raise InvalidInputError(
                f"X must have rows and columns, got an array of shape {X.shape}. "
                "Pass a two-dimensional array or a table."
            )
        for position in sensitive:
            is_position = isinstance(position, int | np.integer) and not isinstance(position, bool)
            if not is_position or not -X.shape[1] <= position < X.shape[1]:
                raise InvalidInputError(
                    "sensitive must be the position of a column when X is a numpy array, got "
                    f"{position!r} for {X.shape[1]} columns. Pass an integer, or a table with "
                    "names."
                )
        _check_repetition([position % X.shape[1] for position in sensitive])
        self._X = X
        self.columns = [
            SensitiveColumn(position, _encode(X[:, position], position), is_categorical=False)
            for position in sensitive
        ]

    def as_it_is(self) -> Any:
        return self._X.copy()

    def with_values(self, values: Sequence[Any]) -> Any:
        # A fresh copy for each pass: predict may keep what it was given.
        flipped = self._X.copy()
        for column, value in zip(self.columns, values, strict=True):
            row = column.row_with.get(value)
            if row is not None:
                flipped[:, column.name] = self._X[row, column.name]
                continue
            try:
                flipped[:, column.name] = np.nan if _is_nan_of(self._X, value) else value
            except (TypeError, ValueError, OverflowError) as error:
                raise _misfit(value, column.name, self._X.dtype) from error
            if not _is_same(flipped[0, column.name], value):  # cut off or rounded by the dtype
                raise _misfit(value, column.name, self._X.dtype)
        return flipped


class _FrameTable:
    def __init__(self, X: Any, sensitive: Sequence[Any]) -> None:
        try:
            self._table = nw.from_native(X, eager_only=True)
        except TypeError as error:
            raise InvalidInputError(
                "X must be a pandas, polars or pyarrow table in memory or a numpy array, got "
                f"{type(X).__name__}. Collect or convert it first."
            ) from error
        names = self._table.columns
        for name in sensitive:
            if name not in names:
                raise InvalidInputError(
                    f"sensitive must name a column of X, got {name!r}.{near_match(name, names)} "
                    f"X has {enumerate_some(names)}."
                )
        _check_repetition(sensitive)
        self._series = [self._table.get_column(name) for name in sensitive]
        self.columns = [
            SensitiveColumn(
                name, _encode(series.to_native(), name), series.dtype in (nw.Categorical, nw.Enum)
            )
            for name, series in zip(sensitive, self._series, strict=True)
        ]

    def as_it_is(self) -> Any:
        return self._table.with_columns(*self._series).to_native()

    def with_values(self, values: Sequence[Any]) -> Any:
        filled = []
        for column, series, value in zip(self.columns, self._series, values, strict=True):
            row = column.row_with.get(value)
            cell = series if row is not None else _one_cell(series, value)
            filled.append(cell[np.full(len(series), row or 0)])
        return self._table.with_columns(*filled).to_native()


def _one_cell(column: nw.Series[Any], value: Any) -> nw.Series[Any]:
    """Make a column of one value that the given column does not hold.

    The native dtype says more than narwhals' (a pandas categorical lists its categories, by whose
    codes a model may go), so the cell is made natively.
    """
    native, name = column.to_native(), column.name
    try:
        with warnings.catch_warnings():
            # pandas warns that the value is no category and makes it missing: seen below
            warnings.simplefilter("ignore")
            if column.implementation.is_pyarrow():
                import pyarrow as pa

                cell = pa.chunked_array([pa.array([value], type=native.type)])
            elif column.implementation.is_polars():
                cell = type(native)(name, [value], dtype=native.dtype)
            else:
                cell = type(native)([value], name=name, dtype=native.dtype)
    except Exception as error:  # each library raises its own
        raise _misfit(value, name, column.dtype) from error
    series: nw.Series[Any] = nw.from_native(cell, series_only=True).alias(name)
    if not _is_same(series.to_list()[0], value):
        raise _misfit(value, name, column.dtype)
    return series


def _encode(column: Any, name: Any) -> Labels:
    return encode_labels(column, f"the sensitive column {name!r}")


def _check_repetition(columns: Sequence[Any]) -> None:
    repeated = [column for i, column in enumerate(columns) if column in columns[:i]]
    if repeated:
        raise InvalidInputError(
            f"sensitive must name each column once, got {repeated[0]!r} again. Leave it out."
        )


def _is_nan_of(X: Any, value: Any) -> bool:
    """Tell whether a missing value is NaN in this array: objects have None of their own."""
    return value is None and X.dtype.kind in "fc"


def _is_same(found: Any, value: Any) -> bool:
    return is_missing(found) if value is None else bool(found == value)


def _misfit(value: Any, sensitive: Any, dtype: Any) -> InvalidInputError:
    return InvalidInputError(
        f"categories must be values that the sensitive column {sensitive!r} can hold, got "
        f"{value!r} for {dtype}. Use a value of its type, or convert the column first."
    )
