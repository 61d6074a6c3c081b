"""A table from a known population: what a model finds can be held against what was planted."""

from typing import Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fcorr._core import RandomState, check_argument, check_name, draw_seed, is_integer

Task = Literal["regression", "classification"]

TRUE_EFFECTS = {"S": 2.0, "Z": 0.0, "X1": 1.0, "X2": -0.5, "X3": 0.8}
"""What a step of one changes in the mean of y or in its log-odds; from "no" to "yes" is one."""

PROXY_SHIFT = 3.0
"""How much larger the proxy is on average where ``S`` is "yes", in deviations within a group."""


def make_proxy_bias(
    n_rows: int = 10_000, *, task: Task = "regression", random_state: RandomState = None
) -> tuple[pa.Table, NDArray[np.float64] | NDArray[np.int64]]:
    """Draw a sensitive feature that matters, and a proxy of it that does not.

    X is a table of pyarrow; ``X.to_pandas()`` and ``polars.from_arrow(X)`` make other frames of it.
    A model without the sensitive feature ``S`` finds its effect in the proxy ``Z``: to leave a
    feature out is not to be blind to it. A model with ``S`` finds none in ``Z``.

    Parameters
    ----------
    n_rows : int, default=10_000
        The number of rows.
    task : {"regression", "classification"}, default="regression"
        What ``y`` is: numbers, or 0 and 1. ``X`` does not depend on it.
    random_state : int, numpy generator or None, default=None
        Pass an integer for a repeatable draw.

    Returns
    -------
    X : pyarrow.Table
        The columns ``S``, ``Z``, ``X1``, ``X2`` and ``X3``. ``S`` and ``X3`` are categorical, with
        the categories ``"no"`` and ``"yes"``; the others are numbers.
    y : ndarray of float64 or int64, shape (n_rows,)
        The outcome.

    Notes
    -----
    **What is planted.**

    - ``S`` and ``X3`` are ``"yes"`` with probability 0.5; ``X1`` and ``X2`` are standard normal.
      They are independent.
    - ``Z`` is normal with variance 1 round 0 where ``S`` is ``"no"``, and round 3 where it is
      ``"yes"``: the two have a correlation of 0.83. Given ``S``, it is independent of all else.
    - The score is ``2 (S - 0.5) + X1 - 0.5 X2 + 0.8 (X3 - 0.5)``, with 1 for
      ``"yes"``: no term for ``Z``. In a regression ``y`` is normal with variance 1 round the score;
      in a classification the score is the log-odds of ``y = 1``, so that half of the rows have it.

    **What a linear model makes of it.** Without ``S``, least squares gives ``Z`` the effect
    ``2 * 3 / (4 + 3**2)``, which is 0.46 per unit, or 0.83 per standard deviation: nearly as much
    as ``X1``, the strongest honest feature. With ``S`` it gives ``Z`` none. The price without ``S``
    has a proxy discrimination of ``b² v / (1.41 + b² v)``, with the effect b that it gives ``Z``
    and ``v = 1 + 3**2 / 4``: 0.33.

    Examples
    --------
    >>> X, y = make_proxy_bias(4, random_state=0)
    >>> X.column_names
    ['S', 'Z', 'X1', 'X2', 'X3']
    >>> make_proxy_bias(8, task="classification", random_state=0)[1]
    array([0, 1, 1, 1, 0, 0, 0, 0])
    """
    check_name(task, get_args(Task), "task must be 'regression' or 'classification'")
    check_argument("n_rows", n_rows, is_integer(n_rows, 1), "an integer of at least 1")
    rng = np.random.default_rng(draw_seed(random_state))
    s = rng.random(n_rows) < 0.5
    z = rng.normal(size=n_rows) + PROXY_SHIFT * s
    x1, x2 = rng.normal(size=(2, n_rows))
    x3 = rng.random(n_rows) < 0.5
    score = (
        TRUE_EFFECTS["S"] * (s - 0.5)
        + TRUE_EFFECTS["X1"] * x1
        + TRUE_EFFECTS["X2"] * x2
        + TRUE_EFFECTS["X3"] * (x3 - 0.5)
    )

    X = pa.table({"S": yes_or_no(s), "Z": z, "X1": x1, "X2": x2, "X3": yes_or_no(x3)})
    if task == "regression":
        return X, score + rng.normal(size=n_rows)
    return X, (rng.random(n_rows) < 1 / (1 + np.exp(-score))).astype(np.int64)


def yes_or_no(values: NDArray[np.bool_]) -> pa.DictionaryArray:
    """Return a column of two categories."""
    return pa.DictionaryArray.from_arrays(values.view(np.int8), ["no", "yes"])
