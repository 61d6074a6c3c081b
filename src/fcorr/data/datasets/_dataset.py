"""What every loader returns: two parts of one table, and where it comes from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from numpy.typing import NDArray

from fcorr.data.generators._frames import FrameName, convert_table


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """Some rows of a data set: those to learn from, or those to test on.

    Attributes
    ----------
    X : pyarrow.Table, pandas.DataFrame or polars.DataFrame
        The features.
    y : ndarray of int64, shape (n,)
        The target: a class (0 or 1) or a claim count.
    exposure : ndarray of float64, shape (n,), or None
        For a claim count, the years over which it was observed; None for a class.
    """

    X: Any
    y: NDArray[np.int64]
    exposure: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        exposure = "" if self.exposure is None else f", exposure {self.exposure.sum():,.0f}"
        return f"Part({len(self):,} rows, {self.X.shape[1]} features{exposure})"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A published data set, split into a part to learn from and a part to test on.

    Attributes
    ----------
    name : str
        What the data set is called.
    train, test : Part
        The two parts. A categorical column has the same list of categories in both.
    target : str
        What `y` is.
    sensitive : tuple of str
        Features that a fairness question can be asked about; the first is the usual one.
    description, source, licence : str
        What a row is, where the data comes from, and on which terms.
    """

    name: str
    train: Part
    test: Part
    target: str
    sensitive: tuple[str, ...]
    description: str
    source: str
    licence: str


def split(
    table: pa.Table,
    is_test: NDArray[np.bool_],
    *,
    y: NDArray[np.int64],
    exposure: NDArray[np.float64] | None = None,
    frame: FrameName,
) -> tuple[Part, Part]:
    """Divide features, target and exposure into the rows to learn from and the rows to test on."""
    table = encode_categories(table)

    def part(rows: NDArray[np.bool_]) -> Part:
        X = convert_table(table.filter(pa.array(rows)), frame)
        return Part(X, y[rows], None if exposure is None else exposure[rows])

    return part(~is_test), part(is_test)


def encode_categories(table: pa.Table) -> pa.Table:
    """Make text columns categorical, with the sorted list of what the whole table holds.

    Examples
    --------
    >>> table = encode_categories(pa.table({"fuel": ["petrol", None, "diesel"]}))
    >>> column = table["fuel"].combine_chunks()
    >>> column.dictionary.to_pylist(), column.indices.to_pylist()
    (['diesel', 'petrol'], [1, None, 0])
    """
    for position, field in enumerate(table.schema):
        if pat.is_dictionary(field.type) or pat.is_string(field.type):
            table = table.set_column(position, field.name, _encode(table[field.name]))
    return table


def _encode(column: pa.ChunkedArray) -> pa.DictionaryArray:
    texts = column.cast(pa.string()).combine_chunks()
    categories = pa.array(sorted(texts.unique().drop_null().to_pylist()))
    codes = pc.index_in(texts, value_set=categories)
    index = pa.int8() if len(categories) <= 127 else pa.int32()
    return pa.DictionaryArray.from_arrays(codes.cast(index), categories)


def column_to_numpy(table: pa.Table, name: str, dtype: type[np.generic]) -> NDArray[Any]:
    """Return one column as an array of the given type."""
    return table[name].to_numpy().astype(dtype)


def select(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return some columns in the order asked for, alike for every kind of file they come from."""
    table = table.select(list(names)).replace_schema_metadata(None)
    for position, field in enumerate(table.schema):
        if pat.is_integer(field.type):
            table = table.set_column(position, field.name, table[field.name].cast(pa.int64()))
    return table
