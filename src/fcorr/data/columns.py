"""One Arrow column at a time: numbers as float64, categories as codes."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from numpy.typing import NDArray

from fcorr._core.errors import InvalidInputError

Category = str | int | float | bool | None
"""A category's value; ``None`` stands for "missing"."""

LARGEST = float(np.finfo(np.float32).max)


def is_number(dtype: pa.DataType) -> bool:
    """Tell whether a column's values are numbers."""
    return any(is_kind(dtype) for is_kind in (pat.is_integer, pat.is_floating, pat.is_decimal))


def is_text(dtype: pa.DataType) -> bool:
    """Tell whether a column's values are text or booleans: categories, whatever they hold."""
    texts = (pat.is_string, pat.is_large_string, pat.is_string_view, pat.is_boolean)
    return any(is_kind(dtype) for is_kind in texts)


def to_numbers(name: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column of numbers as float64, missing ones as NaN; refuse infinite ones."""
    try:
        # Not a safe cast, which would refuse integers that float64 has to round.
        values: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInputError(
            f"Column {name!r} must hold numbers, got {column.type} ({error}). "
            "Convert the column, or train with it as a category."
        ) from error
    # NaN compares false, so only what is truly out of range is found.
    too_large = np.abs(values) > LARGEST
    if too_large.any():
        row = int(np.argmax(too_large))
        raise InvalidInputError(
            f"Column {name!r} must hold finite numbers within ±{LARGEST:.1e}, got {values[row]} in "
            f"row {row} (inf or too large for float32). Replace it, or make it missing."
        )
    return values


def count_categories(name: str, column: pa.ChunkedArray) -> dict[Category, int]:
    """Count the rows of each category; ``None`` counts the missing ones."""
    codes, values = _dictionary_codes(name, column)
    counts = np.bincount(codes + 1, minlength=len(values) + 1)
    result: dict[Category, int] = {}
    for value, count in zip([None, *values], counts.tolist(), strict=True):
        if count:
            result[value] = result.get(value, 0) + count
    return result


def to_codes(
    name: str, column: pa.ChunkedArray, code_of: Mapping[Category, int], missing: int, unseen: int
) -> NDArray[np.int32]:
    """Return a column's codes; missing values and categories not in ``code_of`` as told."""
    codes, values = _dictionary_codes(name, column)
    codes_of_values = [
        missing if value is None else code_of.get(value, unseen) for value in [None, *values]
    ]
    return np.asarray(codes_of_values, dtype=np.int32)[codes + 1]


def _dictionary_codes(
    name: str, column: pa.ChunkedArray
) -> tuple[NDArray[np.int64], list[Category]]:
    """Split a column into row codes (−1: missing) and the distinct values they stand for."""
    if pat.is_null(column.type):
        return np.full(len(column), -1), []
    kind = column.type.value_type if pat.is_dictionary(column.type) else column.type
    if not (is_number(kind) or is_text(kind)):
        raise InvalidInputError(
            f"Column {name!r} must hold numbers, text or booleans to be categorical, got {kind}. "
            "Convert it to text first."
        )
    try:
        encoded = column if pat.is_dictionary(column.type) else pc.dictionary_encode(column)
        array = encoded.unify_dictionaries().combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInputError(
            f"Column {name!r} cannot be read as categories, got {column.type} ({error}). "
            "Convert it to text first."
        ) from error
    if isinstance(array, pa.ChunkedArray):  # no rows: nothing to combine
        return np.zeros(0, dtype=np.int64), []
    codes = pc.fill_null(array.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    # A float can be written as JSON, and equals the same number from a column of floats.
    dictionary = array.dictionary.cast(pa.float64()) if pat.is_decimal(kind) else array.dictionary
    values = [None if value != value else value for value in dictionary.to_pylist()]
    return codes, values
