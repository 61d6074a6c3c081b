"""Score every row under every category of its sensitive columns."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from fcorr._core import InvalidInputError, enumerate_some, near_match
from fcorr.metrics._flip_tables import SensitiveColumn, open_table
from fcorr.metrics._flip_values import FlipValues, Values, choose_values
from fcorr.metrics._flipped_scores import FlippedScores
from fcorr.metrics._validation import FloatArray, as_floats

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
