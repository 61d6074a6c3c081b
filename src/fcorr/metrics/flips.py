"""Flips: what a model says of every row under every value of its sensitive columns.

`flip_scores` sets the columns, whole, to one combination of values after the other, and
`FlippedScores` holds what the model says: the paper's perturbed data, from which the metrics of
`fcorr.metrics.counterfactual` are computed.
"""

import math
import numbers
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from fcorr._core import InvalidInputError, enumerate_some, html_table, near_match
from fcorr.metrics._checks import (
    FloatArray,
    IntArray,
    Labels,
    as_floats,
    check_finite,
    check_same_length,
    describe_label,
    encode_labels,
    is_missing,
)

MAX_PASSES = 4096
N_VALUES = 10
"""To how many of its values a measurement is flipped unless told otherwise."""
N_SHOWN = 30
"""How many categories a notebook shows."""

Values = int | Iterable[Any]
"""A number of values, to be chosen among those of the column, or the values themselves."""


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
        categories, factual = tuple(self.categories), self.factual_scores
        check_values(categories, "categories")
        if original.ndim != 1 or scores.shape != (len(original), len(categories)):
            raise InvalidInputError(
                "scores must have one row per original category and one column per category, got "
                f"shape {scores.shape} for {original.shape} originals and {len(categories)} "
                "categories. Let flip_scores build it."
            )
        check_finite(scores, "scores")
        is_position = (original >= 0) & (original < len(categories))
        if original.dtype.kind not in "iu" or not is_position.all():
            raise InvalidInputError(
                f"original must hold positions in categories, 0 to {len(categories) - 1}, got "
                f"{original.dtype} from {original.min()} to {original.max()}. "
                "Let flip_scores build it."
            )
        if factual is not None:
            factual = as_floats(factual, "factual_scores")
            check_same_length(scores=scores, factual_scores=factual)
        # The class is frozen for its users; this is still its construction.
        object.__setattr__(self, "categories", categories)
        object.__setattr__(self, "original", original.astype(np.intp, copy=False))
        object.__setattr__(self, "scores", scores)
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
        return np.minimum(self.scores.min(axis=1), self.factual)

    @property
    def highest(self) -> FloatArray:
        """Each row's highest score under any category, or as it is."""
        return np.maximum(self.scores.max(axis=1), self.factual)

    @property
    def changes(self) -> FloatArray:
        """Each row's largest change of score, ``max_{s,s'} |f(x,s) − f(x,s')|``."""
        return self.highest - self.lowest

    def take(self, rows: npt.ArrayLike) -> "FlippedScores":
        """Return the chosen rows: positions, which may repeat, or a boolean mask."""
        rows = np.asarray(rows)
        factual = None if self.factual_scores is None else self.factual_scores[rows]
        return FlippedScores(self.categories, self.original[rows], self.scores[rows], factual)

    def _repr_html_(self) -> str:
        n_rows = np.bincount(self.original, minlength=len(self.categories))
        means = (f"{mean:.4g}" for mean in self.scores.mean(axis=0))
        lines = list(zip(map(describe_label, self.categories), n_rows, means, strict=True))
        n_more = len(lines) - N_SHOWN
        return html_table(
            f"Scores of {len(self)} rows under {len(self.categories)} categories",
            ("category", "rows that have it", "mean score of all rows under it"),
            lines[:N_SHOWN],
            note=f"And {n_more} more categories." if n_more > 0 else "",
        )


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
        tuples, 4,096 at most.

    Examples
    --------
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
    table, columns, own, chosen = _choose(X, names, categories)
    for name, labels in zip(names, chosen, strict=True):
        check_values(labels.categories, f"the sensitive column {name!r}")
    sizes = [len(values) for values, _ in chosen]
    if math.prod(sizes) > MAX_PASSES:
        found = " × ".join(f"{size:,} of {name!r}" for name, size in zip(names, sizes, strict=True))
        widest = names[int(np.argmax(sizes))]
        raise InvalidInputError(
            f"flip_scores scores all rows at most {MAX_PASSES:,} times, once for each combination "
            f"of values, got {math.prod(sizes):,}: {found}. Flip fewer columns together, pool rare "
            f"values first, or take fewer of a column of numbers: categories={{{widest!r}: 10}}."
        )

    def score(columns: Iterable[Any]) -> FloatArray:
        if isinstance(table, nw.DataFrame):
            return as_scores(predict(table.with_columns(*columns).to_native()), n_rows)
        flipped = table.copy()  # a fresh one for each pass: predict may keep what it was given
        for position, column in zip(names, columns, strict=True):
            flipped[:, position] = column
        return as_scores(predict(flipped), n_rows)

    n_rows = len(columns[0])
    cells = [
        _cells(column, labels, values, name)
        for column, labels, (values, _), name in zip(columns, own, chosen, names, strict=True)
    ]
    every_row = np.zeros(n_rows, dtype=np.intp)
    combinations = list(product(*(values for values, _ in chosen)))
    scores = np.empty((n_rows, len(combinations)))
    for j, combination in enumerate(product(*cells)):
        scores[:, j] = score(cell[every_row] for cell in combination)
    has_own = all(
        set(labels.categories) <= set(values)
        for labels, (values, _) in zip(own, chosen, strict=True)
    )
    factual = None if has_own else score(columns)
    original = np.ravel_multi_index([codes for _, codes in chosen], sizes)
    values = combinations if len(names) > 1 else [value for (value,) in combinations]
    return FlippedScores(tuple(values), original, scores, factual)


def group_rows(X: Any, sensitive: Any) -> Labels:
    """Code each row's category, or its group of a measurement, as :func:`flip_scores` does.

    Of several columns, the combinations that occur, as tuples.

    Examples
    --------
    >>> group_rows(np.array([[0, 5], [1, 7], [0, 5]]), [0, 1])
    Labels(categories=((0, 5), (1, 7)), codes=array([0, 1, 0]))
    """
    names = list(sensitive) if isinstance(sensitive, list | tuple) else [sensitive]
    chosen = _choose(X, names, None)[3]
    if len(names) == 1:
        return chosen[0]
    sizes = [len(values) for values, _ in chosen]
    flat = np.ravel_multi_index([codes for _, codes in chosen], sizes)
    found, codes = np.unique(flat, return_inverse=True)
    places = zip(*np.unravel_index(found, sizes), strict=True)
    values = [labels.categories for labels in chosen]
    return Labels(
        tuple(tuple(v[i] for v, i in zip(values, place, strict=True)) for place in places), codes
    )


def _choose(
    X: Any, names: list[Any], categories: Any
) -> tuple[Any, list[Any], list[Labels], list[Labels]]:
    """Return the table, its sensitive columns, their labels, and the values to flip them to."""
    if not names:
        raise InvalidInputError("sensitive must name a column, got none. Name at least one.")
    table, columns = _open(X, names)
    what = [f"the sensitive column {name!r}" for name in names]
    own = list(map(encode_labels, columns, what))
    are_categorical = [
        isinstance(column, nw.Series) and column.dtype in (nw.Categorical, nw.Enum)
        for column in columns
    ]
    wanted = _by_column(categories, names)
    return table, columns, own, list(map(choose_values, own, wanted, what, are_categorical))


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


def as_scores(output: Any, n_rows: int) -> FloatArray:
    """Return what a model said of rows as one score each: of two probabilities, the second."""
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


# ------------------------------------------------------------------------------ tables


def _open(X: Any, names: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return the table and its sensitive columns."""
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise InvalidInputError(
                f"X must have rows and columns, got an array of shape {X.shape}. "
                "Pass a two-dimensional array or a table."
            )
        table, n_columns = X, X.shape[1]
        for name in names:
            is_position = isinstance(name, int | np.integer) and not isinstance(name, bool)
            if not is_position or not -n_columns <= name < n_columns:
                raise InvalidInputError(
                    "sensitive must be the position of a column when X is a numpy array, got "
                    f"{name!r} for {n_columns} columns. Pass an integer, or a table with names."
                )
        names = [name % n_columns for name in names]
        columns: list[Any] = [X[:, name] for name in names]
    else:
        try:
            table = nw.from_native(X, eager_only=True)
        except TypeError as error:
            raise InvalidInputError(
                "X must be a pandas, polars or pyarrow table in memory or a numpy array, got "
                f"{type(X).__name__}. Collect or convert it first."
            ) from error
        for name in names:
            if name not in table.columns:
                raise InvalidInputError(
                    f"sensitive must name a column of X, got {name!r}."
                    f"{near_match(name, table.columns)} X has {enumerate_some(table.columns)}."
                )
        columns = [table.get_column(name) for name in names]
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise InvalidInputError(
            f"sensitive must name each column once, got {repeated[0]!r} again. Leave it out."
        )
    return table, columns


def _cells(column: Any, labels: Labels, values: Iterable[Any], name: Any) -> list[Any]:
    """Make a column of one row for each value, in the column's own type.

    A value that occurs is taken from its row: of several ways to write a missing one (None, NaN,
    pandas.NA) the model knows the table's.
    """
    rows = np.unique(labels.codes, return_index=True)[1]
    row_with = dict(zip(labels.categories, rows.tolist(), strict=True))
    return [
        column[[row_with[value]]] if value in row_with else _new_cell(column, value, name)
        for value in values
    ]


def _new_cell(column: Any, value: Any, name: Any) -> Any:
    """Make a column of one value that the given column does not hold.

    The native dtype says more than narwhals' (a pandas categorical lists its categories, by whose
    codes a model may go), so the cell is made natively.
    """
    native, reason = nw.to_native(column, pass_through=True), None
    try:
        with warnings.catch_warnings():
            # pandas warns that the value is no category and makes it missing: seen below
            warnings.simplefilter("ignore")
            if isinstance(column, np.ndarray):
                cell = np.array([value], dtype=native.dtype)  # None is NaN among floats
                found = cell[0]
            else:
                if column.implementation.is_pyarrow():
                    import pyarrow as pa

                    made = pa.chunked_array([pa.array([value], type=native.type)])
                else:  # pandas and polars
                    made = type(native)([value], dtype=native.dtype)
                cell = nw.from_native(made, series_only=True).alias(name)
                found = cell.to_list()[0]
        # A dtype may cut off or round what it cannot hold.
        if is_missing(found) if value is None else found == value:
            return cell
    except Exception as error:  # each library raises its own
        reason = error
    raise InvalidInputError(
        f"categories must be values that the sensitive column {name!r} can hold, got "
        f"{value!r} for {column.dtype}. Use a value of its type, or convert the column first."
    ) from reason


# ------------------------------------------------------------------------------ values


def choose_values(labels: Labels, wanted: Values | None, what: str, is_categorical: bool) -> Labels:
    """Choose the values that a column, `what` in messages, is flipped to, and each row's own.

    For a measurement, a row's own is the value that stands for its group.
    """
    known = [label for label in labels.categories if label is not None]
    is_measurement = not is_categorical and are_measured(known)
    if wanted is None:
        chosen = labels if is_categorical else group_numbers(labels)
    elif not isinstance(wanted, numbers.Integral):
        chosen = _listed(labels, wanted, what, is_measurement=is_measurement)
    elif wanted < 2:
        raise InvalidInputError(
            f"categories must be 2 or more when it is a number of values, got {int(wanted)} for "
            f"{what}. {N_VALUES} is usual."
        )
    elif not _are_numbers(known):
        raise InvalidInputError(
            f"categories must list the values of a column that does not hold numbers, got "
            f"{wanted} for {what}. Leave it out to take every value: "
            f"{enumerate_some(labels.categories)}."
        )
    else:
        chosen = _grouped(labels, known, int(wanted))
    if wanted is not None:
        check_values(chosen.categories, what)
    return chosen


def group_numbers(labels: Labels) -> Labels:
    """Divide the rows of a measurement into groups, each row as the median of its group."""
    known = [label for label in labels.categories if label is not None]
    return _grouped(labels, known, N_VALUES) if are_measured(known) else labels


def _grouped(labels: Labels, known: Sequence[Any], n_values: int) -> Labels:
    """Divide numbers into groups, each row as the median of its group."""
    if len(known) <= n_values:
        return labels
    # Medians are values of the column and not means of two: a model may know whole numbers only.
    counts = np.bincount(labels.codes)[: len(known)]
    groups = quantile_groups(counts, n_values)
    last_rows = np.cumsum(np.bincount(groups, weights=counts)).astype(np.intp) - 1
    first_rows = np.append(0, last_rows[:-1] + 1)
    medians = np.searchsorted(np.cumsum(counts), (first_rows + last_rows) // 2, side="right")
    values = tuple(known[median] for median in medians)
    if None in labels.categories:
        groups, values = np.append(groups, len(values)), (*values, None)
    return Labels(values, groups[labels.codes])


def _listed(labels: Labels, wanted: Any, what: str, *, is_measurement: bool) -> Labels:
    """Take the values that the caller lists, each row as itself or as the nearest of them."""
    if isinstance(wanted, str | bytes) or not isinstance(wanted, Iterable):
        raise InvalidInputError(
            f"categories must be a list of values or, for numbers, how many of them, got {wanted!r}"
            f" for {what}. Write categories=['f', 'm'] or categories=10."
        )
    items = wanted.to_pylist() if hasattr(wanted, "to_pylist") else wanted  # pyarrow's own scalars
    plain = (item.item() if isinstance(item, np.generic) else item for item in items)
    values = tuple(None if is_missing(value) else value for value in plain)
    position = {value: j for j, value in enumerate(values)}
    unlisted = [label for label in labels.categories if label not in position]
    known = [value for value in values if value is not None]
    if is_measurement and _are_numbers(known):
        # Every number has a nearest one, of two the lower; a missing value has not.
        own = [label for label in unlisted if label is not None]
        known.sort()
        grid = np.array([float(value) for value in known])
        half_way = grid[:-1] + (grid[1:] - grid[:-1]) / 2
        nearest = np.searchsorted(half_way, [float(number) for number in own])
        position |= {number: position[known[j]] for number, j in zip(own, nearest, strict=True)}
        unlisted = [label for label in unlisted if label is None]
    if unlisted:
        raise InvalidInputError(
            f"categories must include every value that occurs, got rows of {what} with "
            f"{enumerate_some(unlisted)}. Add them to categories, or drop those rows."
        )
    recode = np.array([position[label] for label in labels.categories], dtype=np.intp)
    return Labels(values, recode[labels.codes])


def quantile_groups(counts: IntArray, n_groups: int) -> IntArray:
    """Group sorted values, of which each has so many rows, into groups of about as many rows each.

    There must be more values than groups; then every group has one. A value that alone has more
    rows than a group should counts as one full group and no more: the zeros of a claim history
    take one group, and the few other amounts share all the others.
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


def are_measured(known: Sequence[Any]) -> bool:
    """Tell whether values are so many numbers that they are a measurement, and no categories."""
    # fcorr.data imports pyarrow and more: only those who need it wait for it.
    from fcorr.data.schema import MAX_SENSITIVE_CATEGORIES

    return len(known) > MAX_SENSITIVE_CATEGORIES and _are_numbers(known)


def _are_numbers(known: Sequence[Any]) -> bool:
    are_numbers = all(
        isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool) for value in known
    )
    return are_numbers and bool(known)
