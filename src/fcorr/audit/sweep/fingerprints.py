"""A fingerprint of data: the same rows give the same text, in whatever library they come."""

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from numpy.typing import ArrayLike

from fcorr.data.encode import read_sample_weight, read_target
from fcorr.data.tables import read_table


def fingerprint(X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> str:
    """Hash names and values of a table, its outcomes and its weights.

    Examples
    --------
    >>> fingerprint([[1, "a"], [2, "b"]], [0, 1], None) == fingerprint(
    ...     np.array([[1, "a"], [2, "b"]], dtype=object), [0, 1], [3, 3]
    ... )
    True
    """
    digest = hashlib.sha256()
    table = read_table(X)
    for name, column in table.columns.items():
        digest.update(repr(name).encode())
        _add_column(digest, column)
    target = read_target(y, table.n_rows)
    digest.update(repr(target.tolist()).encode())
    digest.update(read_sample_weight(sample_weight, table.n_rows).tobytes())
    return digest.hexdigest()[:16]


def _add_column(digest: Any, column: pa.ChunkedArray) -> None:
    if pat.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pat.is_primitive(column.type):
        values = np.ascontiguousarray(column.to_numpy())
        if values.dtype != object:
            digest.update(values.tobytes())
            return
    # Each distinct text once, and its places: a million texts would be a million small objects.
    encoded = column.combine_chunks().dictionary_encode()
    digest.update(repr(encoded.dictionary.to_pylist()).encode())
    digest.update(encoded.indices.fill_null(-1).to_numpy().tobytes())
