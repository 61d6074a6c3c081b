"""From drawn columns to the table library the user works in."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fcorr._core import InvalidInputError, near_match, require

FrameName = Literal["pyarrow", "pandas", "polars"]


class CategoryColumn(NamedTuple):
    """A categorical column, one byte per row: the labels, and each row's position among them."""

    codes: NDArray[np.int8]
    categories: tuple[str, ...]


Columns = Mapping[str, CategoryColumn | NDArray[Any]]


def check_frame(frame: str, *, caller: str) -> None:
    """Refuse an unknown or uninstalled table library before any time is spent on drawing.

    Parameters
    ----------
    frame : str
        The library asked for.
    caller : str
        The function that asks; an import error starts with its call.

    Examples
    --------
    >>> check_frame("pyarrow", caller="make_claims")
    >>> check_frame("panda", caller="make_claims")
    Traceback (most recent call last):
        ...
    fcorr._core.InvalidInputError: frame must be 'pyarrow', 'pandas' or 'polars', got \
'panda'. Did you mean 'pandas'?
    """
    options = get_args(FrameName)
    if frame not in options:
        raise InvalidInputError(
            "frame must be 'pyarrow', 'pandas' or 'polars', "
            f"got {frame!r}.{near_match(frame, options)}"
        )
    if frame != "pyarrow":
        require(frame, extra=frame, purpose=f"{caller}(frame={frame!r})")


def build_frame(columns: Columns, frame: FrameName) -> Any:
    """Turn named columns into a table, values and order untouched.

    A :class:`CategoryColumn` becomes a dictionary-encoded string column in pyarrow, a
    ``Categorical`` in pandas and an ``Enum`` in polars: always categorical, always one byte per
    row, and with its full list of categories even where a small draw misses some.

    Parameters
    ----------
    columns : mapping of str to CategoryColumn or ndarray
        The columns, in order.
    frame : {"pyarrow", "pandas", "polars"}
        A library that :func:`check_frame` has accepted.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame or polars.DataFrame

    Examples
    --------
    >>> member = CategoryColumn(np.array([1, 0], dtype=np.int8), ("no", "yes"))
    >>> build_frame({"member": member, "age": np.array([31, 54])}, "pyarrow").to_pylist()
    [{'member': 'yes', 'age': 31}, {'member': 'no', 'age': 54}]
    """
    return convert_table(pa.table({name: _to_arrow(c) for name, c in columns.items()}), frame)


def convert_table(table: pa.Table, frame: FrameName) -> Any:
    """Hand a table over to the library asked for; dictionary columns stay categorical there.

    Examples
    --------
    >>> column = pa.DictionaryArray.from_arrays(pa.array([1, None], pa.int8()), ["no", "yes"])
    >>> convert_table(pa.table({"member": column}), "polars")["member"].to_list()
    ['yes', None]
    """
    if frame == "polars":
        pl = require("polars", extra="polars", purpose="frame='polars'")
        # Left alone, an Arrow dictionary becomes a polars Categorical: four bytes per row, and a
        # list of categories that forgets the ones a draw missed.
        return pl.DataFrame(
            [
                pl.Series(name, column).cast(pl.Enum(_categories(column)))
                if pa.types.is_dictionary(column.type)
                else pl.Series(name, column)
                for name, column in zip(table.column_names, table.columns, strict=True)
            ]
        )
    return table.to_pandas() if frame == "pandas" else table


def _categories(column: pa.ChunkedArray) -> list[str]:
    categories: list[str] = column.combine_chunks().dictionary.to_pylist()
    return categories


def _to_arrow(column: CategoryColumn | NDArray[Any]) -> Any:
    if isinstance(column, CategoryColumn):
        return pa.DictionaryArray.from_arrays(column.codes, pa.array(column.categories))
    return pa.array(column)
