"""Flips: what a model says of every row under every value of its sensitive columns.

`flip_scores` sets the columns, whole, to one combination of values after the other, and
`FlippedScores` holds what the model says: the paper's perturbed data. All metrics of flips are
computed from it: C passes of the model, whatever their number. For several columns flipped together
a category is a combination of their values; for a measurement it is a group of rows, and the value
that stands for it.

0 means that flips change nothing, and lower is better, for every metric here. It is invariance to
a flip of the column, the paper's definition, and not causal fairness: a model that never saw the
column has it too, and group differences that come through other columns remain.
"""

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from fcorr._core import InvalidInputError, check_name, enumerate_some
from fcorr.metrics import _checks as checks
from fcorr.metrics._checks import FloatArray, IntArray, Labels, Weights

MAX_PASSES = 4096
N_VALUES = 10
"""To how many of its values a measurement is flipped."""
BLOCK_SIZE = 2**18
"""Numbers worked on at a time: few enough for the processor's cache, enough for few calls."""

_QUANTILES = {"q50": 0.50, "q90": 0.90, "q95": 0.95, "q99": 0.99}


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
        checks.check_finite(scores, "scores")
        is_position = (original >= 0) & (original < len(categories))
        if original.dtype.kind not in "iu" or not is_position.all():
            raise InvalidInputError(
                f"original must hold positions in categories, 0 to {len(categories) - 1}, got "
                f"{original.dtype} from {original.min()} to {original.max()}. "
                "Let flip_scores build it."
            )
        if factual is not None:
            factual = checks.as_floats(factual, "factual_scores")
            checks.check_same_length(scores=scores, factual_scores=factual)
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


def flip_scores(predict: Callable[[Any], Any], X: Any, sensitive: Any) -> FlippedScores:
    """Score all rows once per category, with the whole sensitive column set to it.

    A missing value is a category of its own, None, the last one. Several columns are set together,
    to every combination of their values.

    A column of more than 20 distinct numbers is a measurement, such as an age, and is set to 10
    values: its rows are divided into 10 groups of about as many rows each, equal numbers together,
    and the median of each group stands for it. ``original`` is then the group that a row is in,
    and its real score comes from a pass of its own, as ``factual_scores``. Numbers of a categorical
    dtype are no measurement.

    Parameters
    ----------
    predict : callable
        Takes a table like `X` and returns one score per row, of shape (n,) or (n, 1), or the two
        columns of ``predict_proba``, of which the second is the score. Any model will do.
    X : table or array of shape (n, p)
        A pandas, polars or pyarrow table, or a two-dimensional numpy array. It is not modified.
    sensitive : column name, or column position for a numpy array, or a list of them
        The columns to flip. Their dtypes are kept.

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
    flips = find_flips(X, sensitive)
    scores = score_under(flips, predict, X)
    factual = None if flips.has_own else as_scores(predict(X), len(scores))
    return FlippedScores(flips.categories, flips.original, scores, factual)


class Flips(NamedTuple):
    """What the sensitive columns of a table are set to, one combination after the other."""

    names: list[Any]
    categories: tuple[Any, ...]
    original: IntArray  # of each row
    cells: list[list[Any]]
    """For each column, columns of one row: its values, in the table's own type. Of several ways to
    write a missing one (None, NaN, pandas.NA) the model knows the table's."""
    has_own: bool  # whether each row's own combination is among them


def find_flips(X: Any, sensitive: Any) -> Flips:
    """List all combinations of the values of sensitive columns, and which of them rows have."""
    names, _, columns = _open(X, sensitive)
    chosen, cells, has_own = [], [], True
    for name, column in zip(names, columns, strict=True):
        what = f"the sensitive column {name!r}"
        own = checks.encode_labels(column, what)
        chosen.append(group_numbers(own, column))
        values = chosen[-1].categories
        check_values(values, what)
        rows = np.unique(own.codes, return_index=True)[1]
        row_with = dict(zip(own.categories, rows.tolist(), strict=True))
        cells.append([column[[row_with[value]]] for value in values])
        has_own &= len(values) == len(own.categories)
    sizes = [len(values) for values, _ in chosen]
    if math.prod(sizes) > MAX_PASSES:
        found = " × ".join(f"{size:,} of {name!r}" for name, size in zip(names, sizes, strict=True))
        raise InvalidInputError(
            f"flip_scores scores all rows at most {MAX_PASSES:,} times, once for each combination "
            f"of values, got {math.prod(sizes):,}: {found}. Flip fewer columns together, or pool "
            "rare values first."
        )
    combinations = list(product(*(values for values, _ in chosen)))
    categories = combinations if len(names) > 1 else [value for (value,) in combinations]
    original = np.ravel_multi_index([codes for _, codes in chosen], sizes)
    return Flips(names, tuple(categories), original, cells, has_own)


def score_under(flips: Flips, predict: Callable[[Any], Any], X: Any) -> FloatArray:
    """Score all rows of a table like the one that flips are of under each of them: ``(n, C)``."""
    _, table, columns = _open(X, flips.names)
    n_rows = len(columns[0])
    every_row = np.zeros(n_rows, dtype=np.intp)
    scores = np.empty((n_rows, len(flips.categories)))
    for j, combination in enumerate(product(*flips.cells)):
        values = [cell[every_row] for cell in combination]
        if isinstance(table, nw.DataFrame):
            flipped = table.with_columns(*values).to_native()
        else:
            flipped = table.copy()  # a fresh one for each pass: predict may keep what it was given
            for position, value in zip(flips.names, values, strict=True):
                flipped[:, position] = value
        scores[:, j] = as_scores(predict(flipped), n_rows)
    return scores


def group_rows(X: Any, sensitive: Any) -> Labels:
    """Code each row's category, or its group of a measurement, as :func:`flip_scores` does.

    Of several columns, the combinations that occur, as tuples.

    Examples
    --------
    >>> group_rows(np.array([[0, 5], [1, 7], [0, 5]]), [0, 1])
    Labels(categories=((0, 5), (1, 7)), codes=array([0, 1, 0]))
    """
    names, _, columns = _open(X, sensitive)
    return checks.encode_groups(dict(zip(names, columns, strict=True)), encode_grouped)


def as_scores(output: Any, n_rows: int) -> FloatArray:
    """Return what a model said of rows as one score each: of two probabilities, the second."""
    shape = np.shape(output)
    if shape == (n_rows, 2):
        probabilities = np.asarray(output)
        scores = checks.as_floats(probabilities[:, 1], "predict(X)")
        if np.allclose(probabilities.sum(axis=1), 1, atol=1e-3):
            return scores
    elif shape in ((n_rows,), (n_rows, 1)):
        return checks.as_floats(output, "predict(X)")
    raise InvalidInputError(
        f"predict must return one score per row or two columns of probabilities for {n_rows} rows, "
        f"got shape {shape}. Wrap it to choose one column: lambda X: model.predict_proba(X)[:, k]."
    )


# ------------------------------------------------------------------------------ tables


def _open(X: Any, sensitive: Any) -> tuple[list[Any], Any, list[Any]]:
    """Return the names or positions of the sensitive columns, the table, and these columns."""
    names = list(sensitive) if isinstance(sensitive, list | tuple) else [sensitive]
    if not names:
        raise InvalidInputError("sensitive must name a column, got none. Name at least one.")
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
            has = f"X has {enumerate_some(table.columns)}."
            check_name(name, table.columns, "sensitive must name a column of X", has)
        columns = [table.get_column(name) for name in names]
    if repeated := [name for i, name in enumerate(names) if name in names[:i]]:
        raise InvalidInputError(
            f"sensitive must name each column once, got {repeated[0]!r} again. Leave it out."
        )
    return names, table, columns


# ------------------------------------------------------------------------------ values


def encode_grouped(column: Any, name: str) -> Labels:
    """Code one column of labels, those of a measurement by their groups."""
    return group_numbers(checks.encode_labels(column, name), column)


def group_numbers(labels: Labels, column: Any, n_groups: int = N_VALUES) -> Labels:
    """Divide the rows of a measurement into groups, each row as the median of its group."""
    known = [label for label in labels.categories if label is not None]
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series) and series.dtype in (nw.Categorical, nw.Enum):
        return labels
    if not are_measured(known):
        return labels
    # Medians are values of the column and not means of two: a model may know whole numbers only.
    counts = np.bincount(labels.codes)[: len(known)]
    groups = quantile_groups(counts, n_groups)
    last_rows = np.cumsum(np.bincount(groups, weights=counts)).astype(np.intp) - 1
    first_rows = np.append(0, last_rows[:-1] + 1)
    medians = np.searchsorted(np.cumsum(counts), (first_rows + last_rows) // 2, side="right")
    values = tuple(known[median] for median in medians)
    if None in labels.categories:
        groups, values = np.append(groups, len(values)), (*values, None)
    return Labels(values, groups[labels.codes])


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
    return twice_middle // (2 * n_rows)


def check_values(values: tuple[Any, ...], what: str) -> None:
    """Refuse values between which there is no flip."""
    if len(set(values)) < len(values):
        raise InvalidInputError(
            f"categories must differ, got {enumerate_some(values)}. List each one once."
        )
    if len(values) < 2:
        raise InvalidInputError(
            f"A flip needs two categories or more, {what} has {len(values)}: "
            f"{enumerate_some(values)}. Pass rows that hold others too."
        )


def are_measured(known: Sequence[Any]) -> bool:
    """Tell whether values are so many numbers that they are a measurement, and no categories."""
    # fcorr.data imports pyarrow and more: only those who need it wait for it.
    from fcorr.data.schema import MAX_SENSITIVE_CATEGORIES

    return len(known) > MAX_SENSITIVE_CATEGORIES and all(
        isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool) for value in known
    )


# ------------------------------------------------------------------------------ metrics


@checks.leave_out_uncounted
def average_individual_fairness(flips: FlippedScores, *, sample_weight: Weights = None) -> float:
    """AvgIF: how far a flip moves the distribution of the scores.

    ``1/(C(C−1)) Σ_{s_i} Σ_{s_j≠s_k} W1(f(D'_{s_i→s_j}), f(D'_{s_i→s_k}))``, W1 the Wasserstein-1
    distance, in the units of the scores. 0 means that no flip moves the distribution; lower is
    better. It is a sum over the original categories s_i, so that more of them give larger values.
    Single rows may still move against each other: see `flip_changes`.

    Parameters
    ----------
    flips : FlippedScores
        The scores under all categories.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure); once when left out.

    Returns
    -------
    float
        The metric. Categories that no row has are left out with a `NotEstimableWarning`.

    Examples
    --------
    >>> flips = FlippedScores(("f", "m"), [0, 0, 1], [[0.1, 0.3], [0.5, 0.7], [0.4, 0.8]])
    >>> round(average_individual_fairness(flips), 6)
    0.6
    """
    weight = weights_of(flips, sample_weight)

    n_categories = len(flips.categories)
    # Sorted once, not searched once per category.
    by_original = np.argsort(flips.original, kind="stable")
    ends = np.searchsorted(flips.original[by_original], np.arange(1, n_categories))
    found, left_out = [], []
    for category, rows in zip(flips.categories, np.split(by_original, ends), strict=True):
        if len(rows):
            # Of shape (C, n): the samples that are compared lie in one piece.
            scores_CN = np.ascontiguousarray(flips.scores[rows].T)
            found.append(sum_of_distances(scores_CN, weight[rows]))
        else:
            left_out.append(f"{checks.describe_label(category)} (n=0)")
    if left_out:
        checks.not_estimable(
            f"average_individual_fairness is not estimable for {len(left_out)} of {n_categories} "
            f"original categories, which have no rows and are left out: {enumerate_some(left_out)}."
        )
    return sum(found) / (n_categories * (n_categories - 1))


@checks.leave_out_uncounted
def flip_changes(flips: FlippedScores, *, sample_weight: Weights = None) -> dict[str, float]:
    """Summarise each row's largest change of score, ``max_{s,s'} |f(x,s) − f(x,s')|``.

    0 means that no flip changes the row's score; lower is better. A row's real score counts among
    those compared also where its own value is not among the categories. Parameters as in
    :func:`average_individual_fairness`.

    Returns
    -------
    dict
        "mean" and "max" of the rows' changes, and the quantiles "q50", "q90", "q95" and "q99":
        the smallest change that at least this share of the rows does not exceed.

    Examples
    --------
    >>> flips = FlippedScores(("f", "m"), [0, 1, 1, 0], [[0, 0], [0, 0], [0, 0], [0.25, 0.75]])
    >>> flip_changes(flips)
    {'mean': 0.125, 'max': 0.5, 'q50': 0.0, 'q90': 0.5, 'q95': 0.5, 'q99': 0.5}
    """
    weight = weights_of(flips, sample_weight)
    change = flips.changes
    # Without interpolation a quantile is some row's change, and weights mean repetition. What
    # weights sum up to is rounded, so that a share is reached a little before it is.
    order = np.argsort(change)
    reached = np.cumsum(weight[order]) / weight.sum() + 1e-9
    quantiles = change[order[np.searchsorted(reached, [*_QUANTILES.values()])]]
    return {
        "mean": float(np.average(change, weights=weight)),
        "max": float(change.max()),
        **dict(zip(_QUANTILES, quantiles.tolist(), strict=True)),
    }


@checks.leave_out_uncounted
def decisions_flipped(
    flips: FlippedScores, threshold: float = 0.5, *, sample_weight: Weights = None
) -> float:
    """Share of the rows whose decision, ``score >= threshold``, differs between two categories.

    In [0, 1]; 0 means that no decision depends on the sensitive column; lower is better. Parameters
    as in :func:`average_individual_fairness`; the real decision counts among those compared also
    where a row's own value is not among the categories.

    Examples
    --------
    >>> flips = FlippedScores(("f", "m"), [0, 1, 1, 0], [[0, 1], [0, 0], [0.5, 0.6], [0.1, 0.4]])
    >>> decisions_flipped(flips)
    0.25
    """
    if not np.isfinite(threshold):
        raise InvalidInputError(
            f"threshold must be a finite number, got {threshold}. "
            "Choose one on the scale of the scores, such as 0.5 for probabilities."
        )
    weight = weights_of(flips, sample_weight)
    flipped = (flips.lowest < threshold) & (threshold <= flips.highest)
    return float(np.average(flipped, weights=weight))


def weights_of(flips: FlippedScores, sample_weight: Any) -> FloatArray:
    """Return one weight per row; refuse what are no flips."""
    if not isinstance(flips, FlippedScores):
        raise InvalidInputError(
            f"flips must be FlippedScores, got {type(flips).__name__}. "
            "Make them with flip_scores(predict, X, sensitive)."
        )
    return checks.as_weights(sample_weight, len(flips))


def sum_over_pairs(values_NC: FloatArray) -> FloatArray:
    """Sum ``|values[n, j] − values[n, k]|`` over all ordered pairs (j, k), for each n.

    Of C sorted values, j lie below the j-th gap between neighbours and C − j above it, so that
    it is part of j·(C − j) differences. Equal values give exactly zero.
    """
    n_below = np.arange(1, values_NC.shape[1])
    n_pairs = n_below * (values_NC.shape[1] - n_below)
    gaps = np.diff(np.sort(values_NC, axis=1), axis=1)
    return 2 * (gaps * n_pairs).sum(axis=1)


def sum_of_distances(scores_CN: FloatArray, weight: FloatArray) -> float:
    """Sum the distances ``W1(scores[j], scores[k])`` over all ordered pairs of the C samples.

    All samples have the same row weights. Each is sorted once, not once per pair; equal samples are
    at a distance of exactly zero.
    """
    if (weight == weight[0]).all():
        # W1 is the mean difference between values of equal rank.
        by_rank_NC = np.ascontiguousarray(np.sort(scores_CN, axis=1).T)
        return float(sum_over_pairs(by_rank_NC).mean())

    # Else it is ∫ |F_j(t) − F_k(t)| dt: over the steps of all samples merged, C numbers at a time.
    # Every step compares C numbers, so it takes time ∝ C²·n, where equal weights take C·n.
    order_CN = np.argsort(scores_CN, axis=1, kind="stable")
    sorted_CN = np.take_along_axis(scores_CN, order_CN, axis=1)
    # Summed up within each sample and not along the merged steps: the CDFs of equal samples then
    # agree to the last bit.
    cdf_CN = np.cumsum(weight[order_CN], axis=1)
    cdf_CN = np.pad(cdf_CN / cdf_CN[:, -1:], [(0, 0), (1, 0)])  # 0 before the first
    steps = np.unique(scores_CN)
    widths, total = np.diff(steps), 0.0
    block_size = max(1, BLOCK_SIZE // len(scores_CN))
    for start in range(0, len(widths), block_size):
        block = slice(start, start + block_size)
        n_reached = [values.searchsorted(steps[:-1][block], "right") for values in sorted_CN]
        cdf_BC = np.take_along_axis(cdf_CN, np.array(n_reached), axis=1).T
        total += float(np.sum(sum_over_pairs(cdf_BC) * widths[block]))
    return total
