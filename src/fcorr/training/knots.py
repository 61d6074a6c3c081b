"""Where the shape functions of numeric features bend."""

import numpy as np
import torch
from numpy.typing import NDArray


def choose_knots(numbers: NDArray[np.float32], n_knots: int) -> list[torch.Tensor]:
    """Choose the knots of each column: half by its rows, half by its distinct values.

    Quantiles of the rows put the bends where the people are. A zero-inflated column, such as a
    capital gain, has nearly all of them at zero; quantiles of the distinct values put bends where
    its few positive values lie. NaN is left out.

    Parameters
    ----------
    numbers : ndarray of shape (n_rows, n_numeric)
        Training values.
    n_knots : int
        Most knots per column. A column with fewer distinct values has a knot at each.

    Returns
    -------
    list of Tensor
        Increasing knots of each column.

    Examples
    --------
    >>> choose_knots(np.array([[0.0], [1.0], [0.0], [5.0]], dtype=np.float32), n_knots=8)
    [tensor([0., 1., 5.])]
    """
    return [torch.from_numpy(_column_knots(column, n_knots)) for column in numbers.T]


def _column_knots(values: NDArray[np.float32], n_knots: int) -> NDArray[np.float32]:
    values = values[~np.isnan(values)]
    distinct = np.unique(values)
    if len(distinct) <= n_knots:
        return distinct
    # With two or three knots there is nothing to share out: they span the values.
    n_rows = n_knots // 2 if n_knots >= 4 else 0
    by_row = np.quantile(values, np.linspace(0, 1, n_rows), method="inverted_cdf")
    by_value = distinct[np.linspace(0, len(distinct) - 1, n_knots - n_rows).round().astype(int)]
    return np.unique(np.concatenate([by_row, by_value])).astype(np.float32)
