"""One Arrow column at a time: what its values are, numbers as float64, and what to say if not.

Columns are read in blocks, so that what a column becomes on its way takes little memory beside
the array it ends in.
"""

from collections.abc import Iterator
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from numpy.typing import NDArray

from fcorr._core import InvalidInputError

Category = str | int | float | bool | None
"""A category's value; ``None`` stands for "missing"."""

LARGEST = float(np.finfo(np.float32).max)
BLOCK = 65_536
"""Rows that are converted at a time."""


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


def is_number(dtype: pa.DataType) -> bool:
    """Tell whether a column's values are numbers."""
    return any(is_kind(dtype) for is_kind in (pat.is_integer, pat.is_floating, pat.is_decimal))


def is_text(dtype: pa.DataType) -> bool:
    """Tell whether a column's values are text."""
    texts = (pat.is_string, pat.is_large_string, pat.is_string_view)
    return any(is_kind(dtype) for is_kind in texts)


def is_date(dtype: pa.DataType) -> bool:
    """Tell whether a column's values are dates, with or without the time of day."""
    return bool(pat.is_date(dtype) or pat.is_timestamp(dtype))


def can_be_category(dtype: pa.DataType) -> bool:
    """Tell whether a column's values can be categories."""
    kind = value_type(dtype)
    return is_number(kind) or is_text(kind) or pat.is_boolean(kind) or pat.is_null(kind)


def name_values(dtype: pa.DataType) -> str:
    """Say in a word what a column holds."""
    kind = value_type(dtype)
    words = {"numbers": is_number, "text": is_text, "dates": is_date, "booleans": pat.is_boolean}
    return next((word for word, is_kind in words.items() if is_kind(kind)), str(kind))


def blocks(column: pa.ChunkedArray) -> Iterator[tuple[int, pa.ChunkedArray]]:
    """Cut a column into blocks, each with the number of its first row."""
    for start in range(0, len(column), BLOCK):
        yield start, column.slice(start, BLOCK)


def to_numbers(name: str, column: pa.ChunkedArray, first_row: int = 0) -> NDArray[np.float64]:
    """Return a column of numbers as float64, missing ones as NaN; refuse infinite ones.

    Text that spells numbers is read as numbers. ``first_row`` is where in the table the column
    begins, for messages.
    """
    remedy = f"Convert the column, or train with kinds={{{name!r}: 'categorical'}}"
    if not can_be_category(column.type):
        refuse_values(name, "numbers", column, remedy, first_row)
    try:
        # Not a safe cast, which would refuse integers that float64 has to round.
        values: NDArray[np.float64] = decode(column).cast(pa.float64(), safe=False).to_numpy()
    except pa.ArrowException:
        refuse_values(name, "numbers", column, remedy, first_row, readable_as=pa.float64())
    # NaN compares false, so only what is truly out of range is found.
    too_large = np.abs(values) > LARGEST
    if too_large.any():
        row = int(np.argmax(too_large))
        raise ColumnError(
            f"Column {name!r} must hold finite numbers within ±{LARGEST:.1e}, got {values[row]} in "
            f"row {first_row + row} (inf or too large for float32)",
            "Replace it, or make it missing.",
        )
    return values


def decode(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column's values without a dictionary, text in a type that every kernel reads."""
    if pat.is_dictionary(column.type):
        kind = column.type.value_type
        return column.cast(pa.large_string() if pat.is_string_view(kind) else kind)
    return plain_text(column)


def plain_text(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return views of text as text: few kernels read views."""
    return values.cast(pa.large_string()) if pat.is_string_view(values.type) else values


def refuse_values(
    name: str,
    expected: str,
    column: pa.ChunkedArray,
    remedy: str,
    first_row: int = 0,
    readable_as: pa.DataType | None = None,
) -> NoReturn:
    """Raise the error that names the first value, or the first that cannot be read as a type."""
    row, value = _first_bad(column, readable_as)
    raise ColumnError(
        f"Column {name!r} must hold {expected}, got {name_values(column.type)}: "
        f"{value!r} in row {first_row + row}",
        f"{remedy}.",
    )


def _first_bad(column: pa.ChunkedArray, dtype: pa.DataType | None) -> tuple[int, object]:
    for row, scalar in enumerate(column):
        if not scalar.is_valid:
            continue
        value = scalar.as_py()
        if dtype is None:
            return row, _shown(value)
        try:
            pa.scalar(value).cast(dtype)
        except (pa.ArrowException, TypeError):
            return row, _shown(value)
    return 0, None


class _Verbatim(str):
    """Text that messages show without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _shown(value: object) -> object:
    is_plain = isinstance(value, str | int | float | bool)
    return value if is_plain else _Verbatim(value)
