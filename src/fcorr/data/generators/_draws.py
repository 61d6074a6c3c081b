"""What the generators share: argument checks, categorical draws, an intercept for a given rate."""

import numbers
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fcorr._core import InvalidInputError
from fcorr.data.generators._frames import CategoryColumn


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
