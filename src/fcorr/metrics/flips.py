"""Score every row under every category of its sensitive columns."""

import math
import numbers
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, Protocol

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from fcorr._core import InvalidInputError, enumerate_some, near_match
from fcorr.data.schema import MAX_SENSITIVE_CATEGORIES
from fcorr.metrics._checks import FloatArray, IntArray, Labels, as_floats, encode_labels, is_missing

# ------------------------------ flip_values
# Which values a sensitive column is flipped to, and which of them stands for each row.

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
    >>> from fcorr.metrics._checks import encode_labels
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


# ------------------------------ flip_tables
# Tables and arrays with sensitive columns that can be set to other values.


@dataclass(frozen=True, eq=False)
class SensitiveColumn:
    """One column to flip.

    Attributes
    ----------
    name : object
        Its name, or its position in an array, as the caller wrote it.
    labels : Labels
        What it holds.
    is_categorical : bool
        Whether its dtype says that its values are categories, be they numbers or not.
    """

    name: Any
    labels: Labels
    is_categorical: bool

    @cached_property
    def row_with(self) -> dict[Any, int]:
        """A row for each value that occurs.

        Its cell is the value in the column's own writing: of several ways to write a missing one
        (None, NaN, pandas.NA) the model knows the one that the table has.
        """
        rows = np.unique(self.labels.codes, return_index=True)[1]
        return dict(zip(self.labels.categories, rows.tolist(), strict=True))


class FlipTable(Protocol):
    """A table whose sensitive columns can be set."""

    columns: list[SensitiveColumn]

    def as_it_is(self) -> Any:
        """Return the table in the caller's library."""

    def with_values(self, values: Sequence[Any]) -> Any:
        """Return it with each sensitive column set to one value."""


def open_table(X: Any, sensitive: Sequence[Any]) -> FlipTable:
    """Find the sensitive columns of a table or an array."""
    return _ArrayTable(X, sensitive) if isinstance(X, np.ndarray) else _FrameTable(X, sensitive)


class _ArrayTable:
    def __init__(self, X: Any, sensitive: Sequence[Any]) -> None:
        if X.ndim != 2:
            raise InvalidInputError(
                f"X must have rows and columns, got an array of shape {X.shape}. "
                "Pass a two-dimensional array or a table."
            )
        for position in sensitive:
            is_position = isinstance(position, int | np.integer) and not isinstance(position, bool)
            if not is_position or not -X.shape[1] <= position < X.shape[1]:
                raise InvalidInputError(
                    "sensitive must be the position of a column when X is a numpy array, got "
                    f"{position!r} for {X.shape[1]} columns. Pass an integer, or a table with "
                    "names."
                )
        _check_repetition([position % X.shape[1] for position in sensitive])
        self._X = X
        self.columns = [
            SensitiveColumn(position, _encode(X[:, position], position), is_categorical=False)
            for position in sensitive
        ]

    def as_it_is(self) -> Any:
        return self._X.copy()

    def with_values(self, values: Sequence[Any]) -> Any:
        # A fresh copy for each pass: predict may keep what it was given.
        flipped = self._X.copy()
        for column, value in zip(self.columns, values, strict=True):
            row = column.row_with.get(value)
            if row is not None:
                flipped[:, column.name] = self._X[row, column.name]
                continue
            try:
                flipped[:, column.name] = np.nan if _is_nan_of(self._X, value) else value
            except (TypeError, ValueError, OverflowError) as error:
                raise _misfit(value, column.name, self._X.dtype) from error
            if not _is_same(flipped[0, column.name], value):  # cut off or rounded by the dtype
                raise _misfit(value, column.name, self._X.dtype)
        return flipped


class _FrameTable:
    def __init__(self, X: Any, sensitive: Sequence[Any]) -> None:
        try:
            self._table = nw.from_native(X, eager_only=True)
        except TypeError as error:
            raise InvalidInputError(
                "X must be a pandas, polars or pyarrow table in memory or a numpy array, got "
                f"{type(X).__name__}. Collect or convert it first."
            ) from error
        names = self._table.columns
        for name in sensitive:
            if name not in names:
                raise InvalidInputError(
                    f"sensitive must name a column of X, got {name!r}.{near_match(name, names)} "
                    f"X has {enumerate_some(names)}."
                )
        _check_repetition(sensitive)
        self._series = [self._table.get_column(name) for name in sensitive]
        self.columns = [
            SensitiveColumn(
                name, _encode(series.to_native(), name), series.dtype in (nw.Categorical, nw.Enum)
            )
            for name, series in zip(sensitive, self._series, strict=True)
        ]

    def as_it_is(self) -> Any:
        return self._table.with_columns(*self._series).to_native()

    def with_values(self, values: Sequence[Any]) -> Any:
        filled = []
        for column, series, value in zip(self.columns, self._series, values, strict=True):
            row = column.row_with.get(value)
            cell = series if row is not None else _one_cell(series, value)
            filled.append(cell[np.full(len(series), row or 0)])
        return self._table.with_columns(*filled).to_native()


def _one_cell(column: nw.Series[Any], value: Any) -> nw.Series[Any]:
    """Make a column of one value that the given column does not hold.

    The native dtype says more than narwhals' (a pandas categorical lists its categories, by whose
    codes a model may go), so the cell is made natively.
    """
    native, name = column.to_native(), column.name
    try:
        with warnings.catch_warnings():
            # pandas warns that the value is no category and makes it missing: seen below
            warnings.simplefilter("ignore")
            if column.implementation.is_pyarrow():
                import pyarrow as pa

                cell = pa.chunked_array([pa.array([value], type=native.type)])
            elif column.implementation.is_polars():
                cell = type(native)(name, [value], dtype=native.dtype)
            else:
                cell = type(native)([value], name=name, dtype=native.dtype)
    except Exception as error:  # each library raises its own
        raise _misfit(value, name, column.dtype) from error
    series: nw.Series[Any] = nw.from_native(cell, series_only=True).alias(name)
    if not _is_same(series.to_list()[0], value):
        raise _misfit(value, name, column.dtype)
    return series


def _encode(column: Any, name: Any) -> Labels:
    return encode_labels(column, f"the sensitive column {name!r}")


def _check_repetition(columns: Sequence[Any]) -> None:
    repeated = [column for i, column in enumerate(columns) if column in columns[:i]]
    if repeated:
        raise InvalidInputError(
            f"sensitive must name each column once, got {repeated[0]!r} again. Leave it out."
        )


def _is_nan_of(X: Any, value: Any) -> bool:
    """Tell whether a missing value is NaN in this array: objects have None of their own."""
    return value is None and X.dtype.kind in "fc"


def _is_same(found: Any, value: Any) -> bool:
    return is_missing(found) if value is None else bool(found == value)


def _misfit(value: Any, sensitive: Any, dtype: Any) -> InvalidInputError:
    return InvalidInputError(
        f"categories must be values that the sensitive column {sensitive!r} can hold, got "
        f"{value!r} for {dtype}. Use a value of its type, or convert the column first."
    )


# ------------------------------ flipped_scores
# The paper's perturbed data: what a model says of each row under each value of a column.


@dataclass(frozen=True, eq=False)
class FlippedScores:
    """One score per row and category: what the model says of each row, had it that category.

    The rows with ``original == i`` and column j are the paper's partition ``D'_{s_i → s_j}``.

    Parameters
    ----------
    categories : tuple
        The C categories of the sensitive column, None for a missing value. For several columns,
        their combinations as tuples; for a measurement, values that stand for a group each.
    original : array-like of int, shape (n,)
        Position in `categories` of the category that each row really has, or of the group that it
        is in.
    scores : array-like of float, shape (n, C)
        ``scores[n, j]`` is the score of row n with its category set to ``categories[j]``.
    factual_scores : array-like of float, shape (n,), optional
        The scores of the rows as they are, where `categories` need not hold a row's own value.

    Examples
    --------
    >>> flips = FlippedScores(("f", "m"), [0, 1, 1], [[0.1, 0.3], [0.2, 0.2], [0.5, 0.4]])
    >>> flips.factual
    array([0.1, 0.2, 0.4])
    >>> flips.take([0, 0]).scores
    array([[0.1, 0.3],
           [0.1, 0.3]])
    """

    categories: tuple[Any, ...]
    original: IntArray
    scores: FloatArray
    factual_scores: FloatArray | None = None

    def __post_init__(self) -> None:
        original, scores = np.asarray(self.original), np.asarray(self.scores, dtype=np.float64)
        categories = tuple(self.categories)
        check_values(categories, "categories")
        if original.ndim != 1 or scores.shape != (len(original), len(categories)):
            raise InvalidInputError(
                "scores must have one row per original category and one column per category, got "
                f"shape {scores.shape} for {original.shape} originals and {len(categories)} "
                "categories. Let flip_scores build it."
            )
        if len(original) == 0:
            raise InvalidInputError("scores must have rows, got none. Check the row selection.")
        if original.dtype.kind not in "iu" or not (
            original.min() >= 0 and original.max() < len(categories)
        ):
            raise InvalidInputError(
                f"original must hold positions in categories, 0 to {len(categories) - 1}, got "
                f"{original.dtype} from {original.min()} to {original.max()}. "
                "Let flip_scores build it."
            )
        _check_finite("scores", scores)
        # The class is frozen for its users; this is still its construction.
        object.__setattr__(self, "categories", categories)
        object.__setattr__(self, "original", original.astype(np.intp, copy=False))
        object.__setattr__(self, "scores", scores)
        if self.factual_scores is not None:
            factual = np.asarray(self.factual_scores, dtype=np.float64)
            if factual.shape != original.shape:
                raise InvalidInputError(
                    f"factual_scores must have one score per row, got shape {factual.shape} for "
                    f"{len(original)} rows. Let flip_scores build it."
                )
            _check_finite("factual_scores", factual)
            object.__setattr__(self, "factual_scores", factual)

    def __len__(self) -> int:
        return len(self.original)

    @property
    def factual(self) -> FloatArray:
        """Each row's score with the category that it really has."""
        if self.factual_scores is not None:
            return self.factual_scores
        return np.take_along_axis(self.scores, self.original[:, None], axis=1)[:, 0]

    @property
    def groups(self) -> list[Any]:
        """Each row's category: the `sensitive_features` that group metrics take."""
        return [self.categories[code] for code in self.original]

    @property
    def lowest(self) -> FloatArray:
        """Each row's lowest score under any category, or as it is."""
        lowest = self.scores.min(axis=1)
        return lowest if self.factual_scores is None else np.minimum(lowest, self.factual_scores)

    @property
    def highest(self) -> FloatArray:
        """Each row's highest score under any category, or as it is."""
        highest = self.scores.max(axis=1)
        return highest if self.factual_scores is None else np.maximum(highest, self.factual_scores)

    @property
    def changes(self) -> FloatArray:
        """Each row's largest change of score, ``max_{s,s'} |f(x,s) − f(x,s')|``."""
        return self.highest - self.lowest

    def take(self, rows: npt.ArrayLike) -> "FlippedScores":
        """Return the chosen rows: positions, which may repeat, or a boolean mask."""
        rows = np.asarray(rows)
        factual = None if self.factual_scores is None else self.factual_scores[rows]
        return FlippedScores(self.categories, self.original[rows], self.scores[rows], factual)


def _check_finite(name: str, scores: FloatArray) -> None:
    n_bad = int((~np.isfinite(scores)).sum())
    if n_bad:
        raise InvalidInputError(
            f"{name} must be finite, got {n_bad} that are not. Check the model's output."
        )


# ------------------------------ flips
# Score every row under every category of its sensitive columns.

MAX_PASSES = 4096


def flip_scores(
    predict: Callable[[Any], Any],
    X: Any,
    sensitive: Any,
    *,
    categories: Values | Mapping[Any, Values] | None = None,
) -> FlippedScores:
    """Score all rows once per category, with the whole sensitive column set to it.

    A missing value is a category of its own, None, the last one. Several columns are set together,
    to every combination of their values.

    A column of more than 20 distinct numbers is a measurement, such as an age, and is set to 10
    values: its rows are divided into 10 groups of about as many rows each, equal numbers together,
    and the median of each group stands for it. ``original`` is then the group that a row is in,
    and its real score comes from a pass of its own, as ``factual_scores``.

    Parameters
    ----------
    predict : callable
        Takes a table like `X` and returns one score per row, of shape (n,) or (n, 1), or the two
        columns of ``predict_proba``, of which the second is the score. Any model will do.
    X : table or array of shape (n, p)
        A pandas, polars or pyarrow table, or a two-dimensional numpy array. It is not modified.
    sensitive : column name, or column position for a numpy array, or a list of them
        The columns to flip. Their dtypes are kept.
    categories : int, iterable or mapping, optional
        The values to set the column to. An iterable lists them, None for a missing value; they must
        include every value that occurs, but for a measurement they may also be any other numbers,
        of which the nearest stands for a row. An integer is a number of groups, for a column of
        numbers; a column of no more distinct numbers is set to each. A mapping from columns to
        these is the way to say it for several columns. Where left out: every value that occurs,
        or 10 groups of a measurement. Numbers of a categorical dtype are no measurement.

    Returns
    -------
    FlippedScores
        The scores, from as many calls of `predict` as there are categories, and one more where
        the categories need not hold a row's own value. For several columns ``categories`` are
        tuples.

    Raises
    ------
    InvalidInputError
        Among others, more than 4,096 combinations.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 5.0], [1, 7.0]])
    >>> flip_scores(lambda X: X[:, 0] + X[:, 1], X, 0).scores
    array([[5., 6.],
           [7., 8.]])
    >>> flips = flip_scores(lambda X: X[:, 0] + X[:, 1], X, [0, 1])
    >>> flips.categories
    ((0.0, 5.0), (0.0, 7.0), (1.0, 5.0), (1.0, 7.0))
    >>> flips.original
    array([0, 3])
    """
    names = list(sensitive) if isinstance(sensitive, list | tuple) else [sensitive]
    if not names:
        raise InvalidInputError("sensitive must name a column, got none. Name at least one.")
    table = open_table(X, names)
    wanted = _by_column(categories, names)
    chosen = [_choose(column, values) for column, values in zip(table.columns, wanted, strict=True)]
    sizes = [len(column.values) for column in chosen]
    _check_passes(names, sizes)

    combinations = list(product(*(column.values for column in chosen)))
    original = np.ravel_multi_index([column.codes for column in chosen], sizes)
    scores = np.empty((len(original), len(combinations)))
    for j, values in enumerate(combinations):
        scores[:, j] = _as_scores(predict(table.with_values(values)), len(original))
    factual = None
    if not all(column.has_own for column in chosen):
        factual = _as_scores(predict(table.as_it_is()), len(original))
    labels = combinations if len(names) > 1 else [value for (value,) in combinations]
    return FlippedScores(tuple(labels), original, scores, factual)


def _by_column(categories: Any, names: Sequence[Any]) -> list[Values | None]:
    """Return what is asked for each of the columns."""
    if isinstance(categories, Mapping):
        for name in categories:
            if name not in names:
                raise InvalidInputError(
                    f"categories must be of sensitive columns, got {name!r}."
                    f"{near_match(name, names)} The sensitive columns are {enumerate_some(names)}."
                )
        return [categories.get(name) for name in names]
    if categories is not None and len(names) > 1:
        raise InvalidInputError(
            f"categories must say which values are of which column when {len(names)} columns are "
            f"flipped, got {type(categories).__name__}. Write categories={{{names[0]!r}: ...}}."
        )
    return [categories] * len(names)


def _choose(column: SensitiveColumn, wanted: Values | None) -> FlipValues:
    return choose_values(
        column.labels,
        wanted,
        f"the sensitive column {column.name!r}",
        is_categorical=column.is_categorical,
    )


def _check_passes(names: Sequence[Any], sizes: Sequence[int]) -> None:
    n_passes = math.prod(sizes)
    if n_passes > MAX_PASSES:
        found = " × ".join(f"{size:,} of {name!r}" for name, size in zip(names, sizes, strict=True))
        widest = names[int(np.argmax(sizes))]
        raise InvalidInputError(
            f"flip_scores scores all rows at most {MAX_PASSES:,} times, once for each combination "
            f"of values, got {n_passes:,}: {found}. Flip fewer columns together, pool rare values "
            f"first, or take fewer of a column of numbers: categories={{{widest!r}: 10}}."
        )


def _as_scores(output: Any, n_rows: int) -> FloatArray:
    shape = np.shape(output)
    if shape == (n_rows, 2):
        probabilities = np.asarray(output)
        scores = as_floats(probabilities[:, 1], "predict(X)")
        if np.allclose(probabilities.sum(axis=1), 1, atol=1e-3):
            return scores
    elif shape in ((n_rows,), (n_rows, 1)):
        return as_floats(output, "predict(X)")
    raise InvalidInputError(
        f"predict must return one score per row or two columns of probabilities for {n_rows} rows, "
        f"got shape {shape}. Wrap it to choose one column: lambda X: model.predict_proba(X)[:, k]."
    )
