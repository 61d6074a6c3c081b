"""What the generators share: argument checks, categorical draws, an intercept for a given rate."""

import numbers
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from fcorr._core import InvalidInputError, near_match, require

# ------------------------------ frames
# From drawn columns to the table library the user works in.

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


# ------------------------------ draws
# What the generators share: argument checks, categorical draws, an intercept for a given rate.


def check_n_rows(n_rows: object) -> int:
    """Return the number of rows as an ``int``, or say what it must be.

    Examples
    --------
    >>> check_n_rows(0)
    Traceback (most recent call last):
        ...
    fcorr._core.InvalidInputError: n_rows must be an integer of at least 1, got 0.
    """
    if not isinstance(n_rows, bool) and isinstance(n_rows, numbers.Integral) and int(n_rows) >= 1:
        return int(n_rows)
    raise InvalidInputError(f"n_rows must be an integer of at least 1, got {n_rows!r}.")


def check_rate(rate: object, *, name: str) -> float:
    """Return the share of positive rows as a ``float``, or say what it must be.

    Examples
    --------
    >>> check_rate(1.1, name="fraud_rate")
    Traceback (most recent call last):
        ...
    fcorr._core.InvalidInputError: fraud_rate must lie strictly between 0 and 1, got 1.1. \
Write 1.1 % as 0.011.
    """
    hint = ""
    if not isinstance(rate, bool) and isinstance(rate, numbers.Real):
        share = float(rate)
        if 0 < share < 1:
            return share
        if 1 <= share < 100:
            hint = f" Write {share:g} % as {share / 100:g}."
    raise InvalidInputError(f"{name} must lie strictly between 0 and 1, got {rate!r}.{hint}")


def check_number(number: object, *, name: str) -> float:
    """Return a finite number as a ``float``, or say what it must be.

    Examples
    --------
    >>> check_number(float("inf"), name="direct_effect")
    Traceback (most recent call last):
        ...
    fcorr._core.InvalidInputError: direct_effect must be a finite number, got inf.
    """
    if not isinstance(number, bool) and isinstance(number, numbers.Real):
        value = float(number)
        if np.isfinite(value):
            return value
    raise InvalidInputError(f"{name} must be a finite number, got {number!r}.")


def draw_categories(
    rng: np.random.Generator,
    categories: Sequence[str],
    weights: ArrayLike,
    *,
    given: NDArray[np.int8] | None = None,
    size: int | None = None,
) -> CategoryColumn:
    """Draw a categorical column, from one distribution or from one per group.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    categories : sequence of str
        The labels.
    weights : array-like of shape (n_categories,) or (n_groups, n_categories)
        Relative frequencies; each row is scaled to sum to one.
    given : ndarray of int8, optional
        The group of each row, for weights with one row per group.
    size : int, optional
        The number of rows, for a single distribution.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draw_categories(rng, ["a", "b"], [[1, 0], [0, 1]], given=np.array([1, 0, 1], dtype=np.int8))
    CategoryColumn(codes=array([1, 0, 1], dtype=int8), categories=('a', 'b'))
    """
    cumulative = np.cumsum(np.asarray(weights, dtype=np.float64), axis=-1)
    # Without the last bound: no row may fall beyond the last category through rounding.
    bounds = (cumulative / cumulative[..., -1:])[..., :-1]
    if given is None:
        codes = np.searchsorted(bounds, rng.random(size), side="right")
    else:
        uniform = rng.random(len(given))
        codes = np.zeros(len(given), dtype=np.int8)
        for bound in np.moveaxis(bounds, -1, 0):
            codes += uniform >= bound[given]
    return CategoryColumn(codes.astype(np.int8, copy=False), tuple(categories))


def draw_flag(
    rng: np.random.Generator, rate: float | NDArray[np.float64], size: int
) -> CategoryColumn:
    """Draw a column of ``"0"`` and ``"1"``, with ``rate`` the share of ones, common or per row.

    Examples
    --------
    >>> draw_flag(np.random.default_rng(0), np.array([0.0, 1.0]), 2)
    CategoryColumn(codes=array([0, 1], dtype=int8), categories=('0', '1'))
    """
    # Single precision keeps hundreds of columns cheap; its steps of 2**-24 are no matter here.
    return CategoryColumn((rng.random(size, dtype=np.float32) < rate).view(np.int8), ("0", "1"))


def sigmoid(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn log-odds into probabilities.

    Examples
    --------
    >>> sigmoid(np.array([0.0, np.log(3.0)])).round(6).tolist()
    [0.5, 0.75]
    """
    return 1.0 / (1.0 + np.exp(-log_odds))


def solve_intercept(log_odds: NDArray[np.float64], rate: float) -> float:
    """Find the intercept at which the mean probability over the rows equals ``rate``.

    The mean grows with the intercept, and lies on either side of the rate at the two intercepts
    that give the row with the largest and the row with the smallest log-odds exactly that rate:
    bisection between them cannot fail.

    Parameters
    ----------
    log_odds : ndarray of shape (n_rows,)
        The rows' log-odds, up to a constant.
    rate : float
        The mean probability asked for, between 0 and 1.

    Examples
    --------
    >>> log_odds = np.array([-1.0, 0.0, 3.0])
    >>> float(sigmoid(log_odds + solve_intercept(log_odds, 0.2)).mean().round(9))
    0.2
    """
    target = np.log(rate / (1.0 - rate))
    low, high = float(target - log_odds.max()), float(target - log_odds.min())
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        if sigmoid(log_odds + middle).mean() < rate:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
