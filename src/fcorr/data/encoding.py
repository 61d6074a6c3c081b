"""From a table to the arrays the model reads, by the schema of the training table."""

import warnings
from dataclasses import dataclass

import numpy as np
import pyarrow.types as pat
from numpy.typing import NDArray

from fcorr._core.errors import (
    InvalidInputError,
    UnseenCategoryWarning,
    enumerate_some,
    near_match,
)
from fcorr.data.columns import to_codes, to_numbers
from fcorr.data.schema import CategoricalColumn, NumericColumn, Schema
from fcorr.data.tables import Table

_UNSEEN = -1
_FARTHEST = 1e12  # deviations from the mean, beyond any training row; float32 can still square it


@dataclass(frozen=True)
class EncodedTable:
    """Codes ``(n_rows, n_categorical)`` and standardised numbers ``(n_rows, n_numeric)``."""

    codes: NDArray[np.int32]
    numbers: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.codes)


def encode(table: Table, schema: Schema) -> EncodedTable:
    """Encode a table by name; columns the schema does not know are ignored.

    A category that training did not see is taken for the column's most frequent one, and so is
    a missing value where training had none. An :class:`UnseenCategoryWarning` counts them.
    """
    _check_columns(table, schema)
    codes = np.empty((table.n_rows, len(schema.categorical)), dtype=np.int32)
    numbers = np.empty((table.n_rows, len(schema.numeric)), dtype=np.float32)
    unseen: dict[str, int] = {}
    for i, categorical in enumerate(schema.categorical):
        codes[:, i], n_unseen = _encode_categories(table, categorical)
        if n_unseen:
            unseen[categorical.name] = n_unseen
    for i, numeric in enumerate(schema.numeric):
        numbers[:, i] = _encode_numbers(table, numeric)
    if unseen:
        counts = ", ".join(f"{n} row(s) of {name!r}" for name, n in unseen.items())
        warnings.warn(
            f"Categories not seen in training: {counts}. "
            "Each is taken for the most frequent training category of its column.",
            UnseenCategoryWarning,
            stacklevel=2,
        )
    return EncodedTable(codes, numbers)


def _check_columns(table: Table, schema: Schema) -> None:
    absent = [name for name in schema.names if name not in table.columns]
    if not absent:
        return
    name = absent[0]
    role = "sensitive column" if name in schema.sensitive else "column"
    more = f" Also missing: {enumerate_some(absent[1:])}." if len(absent) > 1 else ""
    strangers = [other for other in table.names if other not in schema.names]
    raise InvalidInputError(
        f"X must have every column of the training table, got none named {name!r} (a {role}). "
        f"X has {enumerate_some(table.names)}.{near_match(name, strangers)}{more}"
    )


def _encode_categories(table: Table, column: CategoricalColumn) -> tuple[NDArray[np.int32], int]:
    values = table.columns[column.name]
    code_of = {category: code for code, category in enumerate(column.categories)}
    # Training that imputed the mode does so again; training that saw no missing value has no
    # category for one, so it counts as unseen.
    missing = code_of.get(None, column.mode if column.n_missing else _UNSEEN)
    codes = to_codes(column.name, values, code_of, missing=missing, unseen=_UNSEEN)
    unseen = codes == _UNSEEN
    n_unseen = int(unseen.sum())
    if n_unseen:
        codes[unseen] = column.mode
    return codes, n_unseen


def _encode_numbers(table: Table, column: NumericColumn) -> NDArray[np.float64]:
    values = table.columns[column.name]
    if pat.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    with np.errstate(over="ignore"):
        standardised = (to_numbers(column.name, values) - column.mean) / column.scale
    standardised = np.clip(standardised, -_FARTHEST, _FARTHEST)
    return standardised if column.keep_missing else np.nan_to_num(standardised, nan=0.0)
