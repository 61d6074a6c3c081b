"""Which values a sensitive column is flipped to, and which of them stands for each row."""

import numbers
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from fcorr._core import InvalidInputError, enumerate_some
from fcorr.data.kinds import MAX_SENSITIVE_CATEGORIES
from fcorr.metrics._labels import Labels, is_missing
from fcorr.metrics._validation import IntArray

Values = int | Iterable[Any]
"""A number of values, to be chosen among those of the column, or the values themselves."""

N_VALUES = 10
"""To how many of its values a measurement is flipped unless told otherwise."""


class FlipValues(NamedTuple):
    """The values, each row's position among them, and whether they hold every row's own value."""

    values: tuple[Any, ...]
    codes: IntArray
    has_own: bool


def choose_values(
    labels: Labels, wanted: Values | None, what: str, *, is_categorical: bool
) -> FlipValues:
    """Choose the values that a column is flipped to.

    Parameters
    ----------
    labels : Labels
        The column.
    wanted : int, iterable or None
        What the caller asked for.
    what : str
        The column's name in messages.
    is_categorical : bool
        Whether its dtype says that its numbers are names and no measurements.

    Examples
    --------
    >>> from fcorr.metrics._labels import encode_labels
    >>> ages = encode_labels(list(range(20, 80)), "age")
    >>> choose_values(ages, 3, "age", is_categorical=False).values
    (29, 49, 69)
    """
    is_measurement = (
        not is_categorical
        and _are_numbers(labels.categories)
        and _n_known(labels.categories) > MAX_SENSITIVE_CATEGORIES
    )
    if wanted is None and not is_measurement:
        chosen = FlipValues(labels.categories, labels.codes, has_own=True)
    elif wanted is None:
        chosen = _quantiles(labels, N_VALUES)
    elif isinstance(wanted, numbers.Integral):
        _check_number_of_values(int(wanted), labels, what)
        chosen = _quantiles(labels, int(wanted))
    else:
        values = _as_values(wanted, what)
        listed = set(values)
        unlisted = [label for label in labels.categories if label not in listed]
        is_grid = bool(unlisted) and is_measurement and _are_numbers(values)
        if is_grid:  # every number has a nearest one, a missing value has not
            unlisted = [label for label in unlisted if label is None]
        if unlisted:
            raise InvalidInputError(
                f"categories must include every value that occurs, got rows of {what} with "
                f"{enumerate_some(unlisted)}. Add them to categories, or drop those rows."
            )
        chosen = _nearest(labels, values) if is_grid else _listed(labels, values)
    check_values(chosen.values, what)
    return chosen


def check_values(values: tuple[Any, ...], what: str) -> None:
    """Refuse values between which there is no flip."""
    if len(set(values)) < len(values):
        raise InvalidInputError(
            f"categories must differ, got {enumerate_some(values)}. List each one once."
        )
    if len(values) < 2:
        raise InvalidInputError(
            f"A flip needs two categories or more, {what} has {len(values)}: "
            f"{enumerate_some(values)}. Pass categories= with the values known to the model."
        )


def quantile_groups(counts: IntArray, n_groups: int) -> IntArray:
    """Group sorted values, of which each has so many rows, into groups of about as many rows each.

    There must be more values than groups; then every group has one. A value that alone has more
    rows than a group should counts as one full group and no more: the zeros of a claim history
    take one group, and the few other amounts share all the others.

    Examples
    --------
    >>> import numpy as np
    >>> quantile_groups(np.array([1, 1, 1, 1, 1, 1]), 3)
    array([0, 0, 1, 1, 2, 2])
    >>> quantile_groups(np.array([100, 1, 1, 1, 1]), 3)
    array([0, 1, 1, 2, 2])
    """
    is_full = np.zeros(len(counts), dtype=bool)
    while True:
        # The other rows share the other groups: size = n_rows / n_left, kept as a fraction.
        n_rows, n_left = counts[~is_full].sum(), n_groups - is_full.sum()
        still_full = counts * n_left > n_rows
        if (still_full == is_full).all():
            break
        is_full = still_full
    share = np.where(is_full, n_rows, counts * n_left)  # n_rows of it are one group
    # A value is in the group in which the middle of its share lies. No share is larger than a
    # group, so that neighbouring middles are never further apart, and no group stays empty.
    twice_middle = 2 * np.cumsum(share) - share
    groups: IntArray = twice_middle // (2 * n_rows)
    return groups


def _quantiles(labels: Labels, n_values: int) -> FlipValues:
    """Take the medians of equally filled groups, and None where values are missing.

    Medians are values of the column and not means of two: a model may know whole numbers only.
    """
    n_known = _n_known(labels.categories)
    if n_known <= n_values:
        return FlipValues(labels.categories, labels.codes, has_own=True)
    counts = np.bincount(labels.codes)[:n_known]
    groups = quantile_groups(counts, n_values)
    last_rows = np.cumsum(np.bincount(groups, weights=counts)).astype(np.intp) - 1
    first_rows = np.append(0, last_rows[:-1] + 1)
    medians = np.searchsorted(np.cumsum(counts), (first_rows + last_rows) // 2, side="right")
    values = tuple(labels.categories[median] for median in medians)
    if n_known < len(labels.categories):
        groups, values = np.append(groups, len(values)), (*values, None)
    return FlipValues(values, groups[labels.codes], has_own=False)


def _nearest(labels: Labels, values: tuple[Any, ...]) -> FlipValues:
    """Stand each row for the nearest of the values, the lower of two as near; None for itself."""
    known = [position for position, value in enumerate(values) if value is not None]
    known.sort(key=lambda position: values[position])
    grid = np.array([float(values[position]) for position in known])
    half_way = grid[:-1] + (grid[1:] - grid[:-1]) / 2
    n_known = _n_known(labels.categories)
    numbers_of_rows = np.array([float(number) for number in labels.categories[:n_known]])
    recode = np.array(known, dtype=np.intp)[np.searchsorted(half_way, numbers_of_rows)]
    if n_known < len(labels.categories):
        recode = np.append(recode, values.index(None))
    return FlipValues(values, recode[labels.codes], has_own=False)


def _listed(labels: Labels, values: tuple[Any, ...]) -> FlipValues:
    position = {value: j for j, value in enumerate(values)}
    recode = np.array([position[label] for label in labels.categories], dtype=np.intp)
    return FlipValues(values, recode[labels.codes], has_own=True)


def _as_values(wanted: Any, what: str) -> tuple[Any, ...]:
    if isinstance(wanted, str | bytes) or not isinstance(wanted, Iterable):
        raise InvalidInputError(
            f"categories must be a list of values or, for numbers, how many of them, got {wanted!r}"
            f" for {what}. Write categories=['f', 'm'] or categories=10."
        )
    items = wanted.to_pylist() if hasattr(wanted, "to_pylist") else wanted  # pyarrow's own scalars
    values = (item.item() if isinstance(item, np.generic) else item for item in items)
    return tuple(None if is_missing(value) else value for value in values)


def _check_number_of_values(n_values: int, labels: Labels, what: str) -> None:
    if n_values < 2:
        raise InvalidInputError(
            f"categories must be 2 or more when it is a number of values, got {n_values} for "
            f"{what}. {N_VALUES} is usual."
        )
    if not _are_numbers(labels.categories):
        raise InvalidInputError(
            f"categories must list the values of a column that does not hold numbers, got "
            f"{n_values} for {what}. Leave it out to take every value: "
            f"{enumerate_some(labels.categories)}."
        )


def _are_numbers(values: tuple[Any, ...]) -> bool:
    known = [value for value in values if value is not None]
    are_numbers = all(
        isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool) for value in known
    )
    return are_numbers and bool(known)


def _n_known(categories: tuple[Any, ...]) -> int:
    """Count the values that are not missing; None is the last of all."""
    return len(categories) - (categories[-1] is None)
