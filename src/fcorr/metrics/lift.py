"""Lift tables: predicted beside actual, for policies put into bins by what a model says of them.

Where policies have an exposure, pass ``claims / exposure`` as `y_true`, predicted frequencies as
`y_pred` and the exposure as `sample_weight`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fcorr._core import InvalidInputError
from fcorr.metrics._validation import (
    FloatArray,
    IntArray,
    as_amounts,
    as_floats,
    check_same_length,
)

__all__ = [
    "DoubleLiftBin",
    "DoubleLiftTable",
    "LiftBin",
    "LiftTable",
    "double_lift_table",
    "lift_table",
]


@dataclass(frozen=True)
class LiftBin:
    """Rows of similar prediction.

    Attributes
    ----------
    n : int
        Their number, without those of weight 0.
    weight : float
        Their total weight (exposure).
    low, high : float
        The smallest and the largest prediction among them.
    predicted, actual : float
        Weighted means of the predictions and of the observed amounts.
    """

    n: int
    weight: float
    low: float
    high: float
    predicted: float
    actual: float


@dataclass(frozen=True)
class DoubleLiftBin:
    """Rows on which two models disagree in a similar way.

    Attributes
    ----------
    n : int
        Their number, without those of weight 0.
    weight : float
        Their total weight (exposure).
    low, high : float
        The smallest and the largest ratio among them, prediction over incumbent.
    predicted, incumbent, actual : float
        Weighted means of the two predictions and of the observed amounts.
    """

    n: int
    weight: float
    low: float
    high: float
    predicted: float
    incumbent: float
    actual: float


@dataclass(frozen=True)
class LiftTable:
    """Bins of about equal weight, from the lowest predictions to the highest."""

    rows: tuple[LiftBin, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain data, ready for JSON."""
        return {"rows": [asdict(row) for row in self.rows]}


@dataclass(frozen=True)
class DoubleLiftTable:
    """Bins of about equal weight, from where the model is far below the incumbent to far above."""

    rows: tuple[DoubleLiftBin, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain data, ready for JSON."""
        return {"rows": [asdict(row) for row in self.rows]}


def lift_table(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    n_bins: int = 10,
    sample_weight: npt.ArrayLike | None = None,
) -> LiftTable:
    """Compare predicted and actual in bins of about equal weight, ordered by prediction.

    A good model has predicted near actual in every bin, and actual far apart between the first and
    the last.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The observed amounts, per unit of weight.
    y_pred : array-like of shape (n,)
        The predicted ones.
    n_bins : int, default=10
        How many bins to make.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (the exposure); once when left out.

    Returns
    -------
    LiftTable
        At most `n_bins` bins. Rows with equal predictions stay together, so that the order of the
        file cannot matter; with few distinct predictions there are fewer bins.

    Examples
    --------
    >>> table = lift_table([0, 1, 1, 3], [0.5, 0.5, 1.0, 2.0], n_bins=2)
    >>> [(row.predicted, row.actual) for row in table.rows]
    [(0.5, 0.5), (1.5, 2.0)]
    """
    actual, predicted, weight = as_amounts(y_true, y_pred, sample_weight)
    columns = _bin_columns(predicted, weight, n_bins, means_of=(predicted, actual))
    return LiftTable(tuple(LiftBin(int(n), *map(float, rest)) for n, *rest in columns))


def double_lift_table(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    y_incumbent: npt.ArrayLike,
    *,
    n_bins: int = 10,
    sample_weight: npt.ArrayLike | None = None,
) -> DoubleLiftTable:
    """Compare two models where they disagree: bins by the ratio of their predictions.

    In the first and the last bins the models say different things: the better one is the one whose
    line follows the actual there.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The observed amounts, per unit of weight.
    y_pred : array-like of shape (n,)
        The predictions of the new model.
    y_incumbent : array-like of shape (n,)
        Those of the model in use, all positive.
    n_bins : int, default=10
        How many bins to make.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (the exposure); once when left out.

    Returns
    -------
    DoubleLiftTable
        At most `n_bins` bins of about equal weight. Rows with equal ratios stay together.

    Examples
    --------
    >>> table = double_lift_table([1, 1, 3, 3], [1, 1, 3, 3], [2, 2, 2, 2], n_bins=2)
    >>> [(row.predicted, row.incumbent, row.actual) for row in table.rows]
    [(1.0, 2.0, 1.0), (3.0, 2.0, 3.0)]
    """
    actual, predicted, weight = as_amounts(y_true, y_pred, sample_weight)
    incumbent = as_floats(y_incumbent, "y_incumbent")
    check_same_length(y_true=len(actual), y_incumbent=len(incumbent))
    if incumbent.min() <= 0:
        row = int(np.argmax(incumbent <= 0))
        raise InvalidInputError(
            f"y_incumbent must be positive to divide by, got {incumbent[row]:g} in row {row}. "
            "Raise small predictions to a floor, or leave out those rows."
        )
    means_of = (predicted, incumbent, actual)
    columns = _bin_columns(predicted / incumbent, weight, n_bins, means_of=means_of)
    return DoubleLiftTable(tuple(DoubleLiftBin(int(n), *map(float, rest)) for n, *rest in columns))


def _bin_columns(
    key: FloatArray, weight: FloatArray, n_bins: int, *, means_of: Sequence[FloatArray]
) -> Iterable[tuple[float, ...]]:
    """Put rows into bins by a key; give each bin's size, weight, range of the key, and means."""
    counted = weight > 0
    means_of = [column[counted] for column in means_of]
    key, weight = key[counted], weight[counted]
    bins = _bins(key, weight, n_bins)
    mass = np.bincount(bins, weights=weight)
    low, high = np.full(len(mass), np.inf), np.full(len(mass), -np.inf)
    np.minimum.at(low, bins, key)
    np.maximum.at(high, bins, key)
    means = [np.bincount(bins, weights=weight * column) / mass for column in means_of]
    return zip(np.bincount(bins), mass, low, high, *means, strict=True)


def _bins(key: FloatArray, weight: FloatArray, n_bins: int) -> IntArray:
    """Tell each row's bin, numbered from 0 without gaps.

    A block of equal keys goes where its middle lies on the scale of cumulated weight.
    """
    if not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise InvalidInputError(f"n_bins must be a positive integer, got {n_bins!r}. 10 is usual.")
    block = np.unique(key, return_inverse=True)[1]
    block_weight = np.bincount(block, weights=weight)
    middle = (np.cumsum(block_weight) - block_weight / 2) / block_weight.sum()
    # The tolerance keeps a middle that is a bin's edge but for rounding on one side of it.
    of_block = np.minimum(np.floor(middle * n_bins + 1e-9), n_bins - 1)
    return np.unique(of_block, return_inverse=True)[1][block]
