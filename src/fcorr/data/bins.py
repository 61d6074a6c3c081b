"""Bins: groups that sensitive numbers are cut into, so that they become categories.

Edges are those between the groups, and belong to the group above: with edges 25 and 35 the groups
are "below 25", "25 to below 35" and "35 and above".
"""

import decimal
import numbers
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcorr._core import InvalidInputError, enumerate_some
from fcorr.data.columns import LARGEST, is_number, name_values, value_type
from fcorr.data.kinds import Kind, Kinds, resolve_kinds
from fcorr.data.tables import Table, resolve_columns

Cut = int | tuple[float, ...]
"""Into how many groups of about equal size a column is cut, or at which edges."""

Bins = int | Sequence[float] | Mapping[str, Any] | Mapping[int, Any] | Mapping[str | int, Any]
"""One cut for all continuous sensitive columns, or one for each that is named."""


def parse_bins(bins: Bins | None) -> Cut | dict[str | int, Cut]:
    """Read the argument ``bins``, or say what is wrong with it.

    Examples
    --------
    >>> parse_bins({"age": [25, 35], "income": 4})
    {'age': (25.0, 35.0), 'income': 4}
    >>> parse_bins(1)
    Traceback (most recent call last):
        ...
    fcorr._core.InvalidInputError: bins must be a number of groups of at least 2, or the \
edges between groups in increasing order, got 1. Pass for example bins=4 or bins=[25, 40, 65].
    """
    if bins is None:
        return {}
    if isinstance(bins, Mapping):
        return {column: _parse_cut(cut, f" for {column!r}") for column, cut in bins.items()}
    return _parse_cut(bins, "")


def _parse_cut(cut: Any, whose: str) -> Cut:
    if _is_real(cut) and isinstance(cut, numbers.Integral) and int(cut) >= 2:
        return int(cut)
    if isinstance(cut, Iterable) and not isinstance(cut, str | bytes | Mapping):
        edges = tuple(cut)
        if edges and all(_is_real(edge) and abs(edge) <= LARGEST for edge in edges):
            edges = tuple(float(edge) for edge in edges)
            if all(low < high for low, high in pairwise(edges)):
                return edges
    raise InvalidInputError(
        "bins must be a number of groups of at least 2, or the edges between groups in increasing "
        f"order, got {cut!r}{whose}. Pass for example bins=4 or bins=[25, 40, 65]."
    )


def _is_real(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def find_cuts(
    table: Table,
    bins: Bins | None,
    kinds: Kinds | None,
    *,
    sensitive: Sequence[str],
    found: Mapping[str, Kind],
) -> dict[str, Cut]:
    """Return how each column is cut that is.

    Parameters
    ----------
    table : Table
        The training table.
    bins : int, sequence of float or dict, optional
        As the user gave it. A cut that names no column is for every sensitive column that is
        numeric without it; one that does is also for numbers that take few values.
    kinds : dict, optional
        As the user gave it: what it calls categorical cannot be cut.
    sensitive : sequence of str
        The sensitive columns.
    found : dict
        The kind of every column, without bins.
    """
    told = parse_bins(bins)
    if isinstance(told, dict):
        names = resolve_columns(table, list(told), "bins")
        stated = resolve_kinds(table, kinds)
        for name in names:
            _check_can_be_cut(table, name, sensitive, stated.get(name))
        return dict(zip(names, told.values(), strict=True))
    continuous = [name for name in sensitive if found[name].name == "numeric"]
    if not continuous:
        raise InvalidInputError(
            f"bins must have a continuous sensitive column to cut, got {bins!r} and "
            f"{enumerate_some(sensitive) or 'no column'} as sensitive. Leave bins out, or name "
            "the column to cut: bins={'age': 4}."
        )
    return dict.fromkeys(continuous, told)


def _check_can_be_cut(
    table: Table, name: str, sensitive: Sequence[str], stated: Kind | None
) -> None:
    if name not in sensitive:
        raise InvalidInputError(
            f"bins must name sensitive columns, got {name!r}. Add it to `sensitive`, or leave it "
            "out of bins."
        )
    if stated is not None and stated.name != "numeric":
        raise InvalidInputError(
            f"bins must name columns of numbers, got {name!r}, which is {stated.name!r} by kinds. "
            "Leave it out of bins, or out of kinds."
        )
    dtype = table.columns[name].type
    # Text that spells numbers is one of numbers only if kinds says so.
    if stated is None and not is_number(value_type(dtype)):
        raise InvalidInputError(
            f"bins must name columns of numbers, got {name!r}, which holds {name_values(dtype)}. "
            "Leave it out of bins, or convert the column to numbers."
        )


def find_edges(values: NDArray[np.float64], cut: Cut) -> tuple[float, ...]:
    """Return the edges that cut some numbers, none of which is missing, into groups with rows.

    For a number of groups the edges are quantiles: of the places between two neighbouring values,
    those that come nearest to equal numbers of rows, in as few digits as tell the two apart. Where
    many rows share a value, there may be fewer groups. Of the edges that are given those stay that
    have rows on either side: a group without any is joined with the one above it, the last with
    the one below.

    Examples
    --------
    >>> find_edges(np.array([21.0, 22, 35, 36, 47, 60]), 3)
    (30.0, 40.0)
    >>> find_edges(np.array([0.0, 0, 0, 0, 0, 7]), 3)
    (7.0,)
    >>> find_edges(np.array([1 / 3, 2 / 3]), 2)
    (0.6,)
    >>> find_edges(np.array([30.0, 50]), (18.0, 40.0, 65.0))
    (40.0,)
    """
    distinct, counts = np.unique(values, return_counts=True)
    if isinstance(cut, int):
        return _quantiles(distinct, counts, cut)
    edges: list[float] = []
    n_below = 0  # distinct values below the last edge that stays
    for edge, n in zip(cut, np.searchsorted(distinct, cut).tolist(), strict=True):
        if n_below < n < len(distinct):
            edges.append(edge)
            n_below = n
    return tuple(edges)


def _quantiles(
    distinct: NDArray[np.float64], counts: NDArray[np.intp], n_groups: int
) -> tuple[float, ...]:
    if len(distinct) == 1:
        return ()
    cumulative = np.cumsum(counts)
    n_rows = int(cumulative[-1])
    n_groups = min(n_groups, n_rows)
    wanted = n_rows * np.arange(1, n_groups) / n_groups
    # An edge at the second value, the third, … has so many rows below it.
    n_below = cumulative[:-1]
    above = np.searchsorted(n_below, wanted).clip(max=len(n_below) - 1)
    below = (above - 1).clip(min=0)
    is_nearer = wanted - n_below[below] <= n_below[above] - wanted
    places = np.unique(np.where(is_nearer, below, above))
    return tuple(map(_round_down, distinct[places + 1].tolist(), distinct[places].tolist()))


def _round_down(value: float, neighbour: float) -> float:
    """Round a value down to as few digits as keep it above its lower neighbour."""
    for n_digits in range(1, 17):
        context = decimal.Context(prec=n_digits, rounding=decimal.ROUND_FLOOR)
        rounded = float(context.create_decimal(value))
        if rounded > neighbour:
            return rounded
    return value


def find_groups(values: NDArray[np.float64], edges: Sequence[float]) -> NDArray[np.intp]:
    """Return the group of each number; of a missing one, the group after the last.

    Examples
    --------
    >>> find_groups(np.array([24.9, 25.0, 99.0, np.nan]), (25.0, 35.0))
    array([0, 1, 2, 3])
    """
    groups = np.searchsorted(edges, values, side="right")
    groups[np.isnan(values)] = len(edges) + 1
    return groups
