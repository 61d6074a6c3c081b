"""Three binary features: the paper's synthetic data (Section 4.1)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcorr._core import RandomState, draw_seed
from fcorr.data.generators._draws import check_n_rows
from fcorr.data.generators._frames import CategoryColumn, FrameName, build_frame, check_frame


def make_indirect_bias(
    n_rows: int = 10_000, *, random_state: RandomState = None, frame: FrameName = "pyarrow"
) -> tuple[Any, NDArray[np.int64]]:
    """Draw the paper's synthetic data: a sensitive feature that matters only through another one.

    The features are categorical, with the categories ``"no"`` and ``"yes"``; ``X1`` is the
    sensitive one.

    Parameters
    ----------
    n_rows : int, default=10_000
        The number of rows.
    random_state : int, numpy generator or None, default=None
        Pass an integer for a repeatable draw.
    frame : {"pyarrow", "pandas", "polars"}, default="pyarrow"
        The kind of table to return. The values do not depend on it.

    Returns
    -------
    X : pyarrow.Table, pandas.DataFrame or polars.DataFrame
        The columns ``X1``, ``X2`` and ``X3``.
    y : ndarray of int64, shape (n_rows,)
        The outcome, 0 or 1.

    Notes
    -----
    **What is planted.**

    - ``X2`` and ``X3`` are independent, each ``"yes"`` with probability 0.5.
    - ``X1`` is ``"yes"`` with probability 0.7 where ``X2`` is, and 0.3 elsewhere: ``X2`` is its
      proxy. ``X1`` and ``X3`` are independent.
    - ``y`` is 1 with probability 0.8 where both ``X2`` and ``X3`` are ``"yes"``, and 0.2 elsewhere:
      a pure interaction.
    - ``X1`` has no effect of its own: given ``X2``, ``y`` does not depend on it. Yet ``y`` is 1
      more often where ``X1`` is ``"yes"`` (0.41 against 0.29): indirect discrimination.

    Examples
    --------
    >>> X, y = make_indirect_bias(4, random_state=0)
    >>> X.to_pylist()[0]
    {'X1': 'no', 'X2': 'no', 'X3': 'no'}
    >>> y
    array([0, 1, 0, 1])
    """
    n_rows = check_n_rows(n_rows)
    check_frame(frame, caller="make_indirect_bias")
    rng = np.random.default_rng(draw_seed(random_state))

    x2 = rng.random(n_rows) < 0.5
    x3 = rng.random(n_rows) < 0.5
    x1 = rng.random(n_rows) < np.where(x2, 0.7, 0.3)
    y = rng.random(n_rows) < np.where(x2 & x3, 0.8, 0.2)

    columns = {
        name: CategoryColumn(values.view(np.int8), ("no", "yes"))
        for name, values in (("X1", x1), ("X2", x2), ("X3", x3))
    }
    return build_frame(columns, frame), y.astype(np.int64)
