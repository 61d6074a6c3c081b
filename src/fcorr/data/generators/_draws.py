"""Draws: what the generators share, from checked arguments to a table in the user's library."""

import math
import numbers
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from fcorr._core import InvalidInputError, RandomState, draw_seed, near_match, require

FrameName = Literal["pyarrow", "pandas", "polars"]


def check_rate(rate: object, *, name: str) -> float:
    """Return the share of positive rows as a ``float``, or say what it must be."""
    hint = ""
    if not isinstance(rate, bool) and isinstance(rate, numbers.Real):
        share = float(rate)
        if 0 < share < 1:
            return share
        if 1 <= share < 100:
            hint = f" Write {share:g} % as {share / 100:g}."
    raise InvalidInputError(f"{name} must lie strictly between 0 and 1, got {rate!r}.{hint}")


def check_count(count: object, *, name: str, at_least: int = 1) -> int:
    """Return a whole number as an ``int``, or say what it must be."""
    if isinstance(count, bool) or not isinstance(count, numbers.Integral) or count < at_least:
        raise InvalidInputError(f"{name} must be an integer of at least {at_least}, got {count!r}.")
    return int(count)


def check_number(number: object, *, name: str) -> float:
    """Return a finite number as a ``float``, or say what it must be."""
    if not isinstance(number, bool) and isinstance(number, numbers.Real) and math.isfinite(number):
        return float(number)
    raise InvalidInputError(f"{name} must be a finite number, got {number!r}.")


def begin(
    n_rows: object, random_state: RandomState, frame: str, *, caller: str
) -> tuple[int, np.random.Generator]:
    """Check what all generators are told, and return the number of rows and where to draw from."""
    n_rows = check_count(n_rows, name="n_rows")
    check_frame(frame, caller=caller)
    return n_rows, np.random.default_rng(draw_seed(random_state))


def check_frame(frame: str, *, caller: str) -> None:
    """Refuse an unknown or uninstalled table library before any time is spent on drawing."""
    options = get_args(FrameName)
    if frame not in options:
        raise InvalidInputError(
            "frame must be 'pyarrow', 'pandas' or 'polars', "
            f"got {frame!r}.{near_match(frame, options)}"
        )
    if frame != "pyarrow":
        require(frame, extra=frame, purpose=f"{caller}(frame={frame!r})")


def convert_table(table: pa.Table, frame: FrameName) -> Any:
    """Hand a table over to the library asked for, values and order untouched.

    A dictionary column becomes a ``Categorical`` in pandas and an ``Enum`` in polars: always
    categorical, always one byte per row for up to 127 categories, and with its full list of
    categories even where a small draw misses some.
    """
    if frame != "polars":
        return table.to_pandas() if frame == "pandas" else table
    pl = require("polars", extra="polars", purpose="frame='polars'")
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        series = pl.Series(name, column)
        if pa.types.is_dictionary(column.type):
            # Left alone, an Arrow dictionary becomes a polars Categorical: four bytes per row, and
            # a list of categories that forgets the ones a draw missed.
            series = series.cast(pl.Enum(column.combine_chunks().dictionary.to_pylist()))
        columns.append(series)
    return pl.DataFrame(columns)


def draw_categories(
    rng: np.random.Generator,
    categories: Sequence[str],
    weights: ArrayLike,
    *,
    given: NDArray[np.int8] | None = None,
    size: int | None = None,
) -> pa.DictionaryArray:
    """Draw ``size`` categories from relative frequencies, or from one row of them per group."""
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
    dtype = np.int8 if len(categories) <= 128 else np.int32
    return pa.DictionaryArray.from_arrays(codes.astype(dtype, copy=False), categories)


def draw_flag(
    rng: np.random.Generator, rate: float | NDArray[np.float64], size: int
) -> pa.DictionaryArray:
    """Draw a column of ``"0"`` and ``"1"``, with ``rate`` the share of ones, common or per row."""
    # Single precision keeps hundreds of columns cheap; its steps of 2**-24 are no matter here.
    drawn = rng.random(size, dtype=np.float32) < rate
    return pa.DictionaryArray.from_arrays(drawn.view(np.int8), ["0", "1"])


def codes_of(column: pa.DictionaryArray) -> NDArray[Any]:
    """Return the position of each row's category."""
    codes: NDArray[Any] = column.indices.to_numpy()
    return codes


def sigmoid(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn log-odds into probabilities."""
    return 1.0 / (1.0 + np.exp(-log_odds))


def solve_intercept(log_odds: NDArray[np.float64], rate: float) -> float:
    """Find the intercept at which the mean probability over the rows equals ``rate``.

    The mean grows with the intercept, and lies on either side of the rate at the two intercepts
    that give the row with the largest and the row with the smallest log-odds exactly that rate:
    bisection between them cannot fail.
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
