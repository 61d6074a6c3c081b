"""Rows that models are measured on, read once for all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fcorr._core import InvalidInputError
from fcorr.data.encode import read_sample_weight, read_target
from fcorr.data.tables import read_table
from fcorr.metrics import flip_scores

View = Callable[[Any], Any]
"""What a model sees of a table."""


@dataclass(frozen=True)
class AuditRows:
    """Rows and what is known of them.

    Attributes
    ----------
    X : dataframe or array
        The table.
    y : ndarray of shape (n_rows,)
        The outcomes.
    weight : ndarray of shape (n_rows,) or None
        Weights, of mean 1.
    sensitive : tuple of str or int
        The sensitive columns, as names or positions.
    groups : dict of str to list
        Each row's group, for each sensitive column and, where there are several, for all of them
        together. Measurements such as an age are grouped as :func:`fcorr.metrics.flip_scores` does.
    """

    X: Any
    y: NDArray[Any]
    weight: NDArray[np.float64] | None
    sensitive: tuple[str | int, ...]
    groups: dict[str, list[Any]]


def read_rows(rows: Sequence[Any], sensitive: Any, argument: str) -> AuditRows:
    """Read ``(X, y)`` or ``(X, y, sample_weight)``, and find the groups.

    Examples
    --------
    >>> X = np.array([[0, 1.5], [1, 2.5], [1, 3.5]])
    >>> read_rows((X, [0, 1, 1]), 0, "test").groups
    {'0': [0.0, 1.0, 1.0]}
    """
    X, y, sample_weight = unpack(rows, argument)
    columns = name_columns(sensitive)
    n_rows = read_table(X).n_rows
    weight = None if sample_weight is None else read_sample_weight(sample_weight, n_rows)

    def find_groups(*of: str | int) -> list[Any]:
        # Which rows go together has nothing to do with a model: any scores will do.
        return flip_scores(lambda X: np.zeros(n_rows), X, list(of)).groups

    groups = {str(column): find_groups(column) for column in columns}
    if len(columns) > 1:
        groups[" × ".join(groups)] = find_groups(*columns)
    return AuditRows(X, read_target(y, n_rows), weight, columns, groups)


def unpack(rows: Sequence[Any], argument: str) -> tuple[Any, ArrayLike, ArrayLike | None]:
    """Take ``(X, y)`` or ``(X, y, sample_weight)`` apart."""
    if not isinstance(rows, tuple | list) or len(rows) not in (2, 3):
        raise InvalidInputError(
            f"{argument} must be (X, y) or (X, y, sample_weight), got {type(rows).__name__}. "
            f"Pass {argument}=(X, y)."
        )
    X, y, *weight = rows
    return X, y, weight[0] if weight else None


def name_columns(sensitive: Any) -> tuple[str | int, ...]:
    """Return the sensitive columns of an estimator, or say that it has none."""
    columns = tuple(sensitive) if isinstance(sensitive, list | tuple) else (sensitive,)
    if sensitive is None or not columns:
        raise InvalidInputError(
            f"The estimator must name sensitive columns, got sensitive={sensitive!r}. Make it with "
            "sensitive='race', say: without such a column there is nothing to flip."
        )
    return columns


def as_it_is(X: Any) -> Any:
    """View a table unchanged."""
    return X
