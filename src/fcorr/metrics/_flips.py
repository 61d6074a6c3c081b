"""Scores of every row under every category of its sensitive column: the paper's perturbed data."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from fcorr._core.errors import InvalidInputError, enumerate_some, near_match
from fcorr.metrics._labels import encode_labels
from fcorr.metrics._validation import FloatArray, IntArray, as_floats


@dataclass(frozen=True, eq=False)
class FlippedScores:
    """One score per row and category: what the model says of each row, had it that category.

    The rows with ``original == i`` and column j are the paper's partition ``D'_{s_i → s_j}``.

    Parameters
    ----------
    categories : tuple
        The C categories of the sensitive column.
    original : array-like of int, shape (n,)
        Position in `categories` of the category that each row really has.
    scores : array-like of float, shape (n, C)
        ``scores[n, j]`` is the score of row n with its category set to ``categories[j]``.

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

    def __post_init__(self) -> None:
        original, scores = np.asarray(self.original), np.asarray(self.scores, dtype=np.float64)
        categories = tuple(self.categories)
        _check_categories(categories, "categories")
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
        if not np.isfinite(scores).all():
            raise InvalidInputError(
                f"scores must be finite, got {int((~np.isfinite(scores)).sum())} that are not. "
                "Check the model's output."
            )
        # The class is frozen for its users; this is still its construction.
        object.__setattr__(self, "categories", categories)
        object.__setattr__(self, "original", original.astype(np.intp, copy=False))
        object.__setattr__(self, "scores", scores)

    def __len__(self) -> int:
        return len(self.original)

    @property
    def factual(self) -> FloatArray:
        """Each row's score with the category that it really has."""
        return np.take_along_axis(self.scores, self.original[:, None], axis=1)[:, 0]

    def take(self, rows: npt.ArrayLike) -> "FlippedScores":
        """Return the chosen rows: positions, which may repeat, or a boolean mask."""
        rows = np.asarray(rows)
        return FlippedScores(self.categories, self.original[rows], self.scores[rows])


def flip_scores(
    predict: Callable[[Any], Any],
    X: Any,
    sensitive: Any,
    *,
    categories: Iterable[Any] | None = None,
) -> FlippedScores:
    """Score all rows once per category, with the whole sensitive column set to it.

    Parameters
    ----------
    predict : callable
        Takes a table like `X` and returns one score per row, of shape (n,) or (n, 1), or the two
        columns of ``predict_proba``, of which the second is the score. Any model will do.
    X : table or array of shape (n, p)
        A pandas, polars or pyarrow table, or a two-dimensional numpy array. It is not modified.
    sensitive : column name, or column position for a numpy array
        The column to flip. Its dtype is kept.
    categories : iterable, optional
        The values to set it to; they must include every value that occurs. The sorted distinct
        values when left out.

    Returns
    -------
    FlippedScores
        The scores, from as many calls of `predict` as there are categories.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 5.0], [1, 7.0]])
    >>> flip_scores(lambda X: X[:, 0] + X[:, 1], X, 0).scores
    array([[5., 6.],
           [7., 8.]])
    """
    opened = _open_array if isinstance(X, np.ndarray) else _open_table
    column, with_value = opened(X, sensitive)
    present, codes = encode_labels(column, f"the sensitive column {sensitive!r}")
    if categories is None:
        chosen = present
    else:
        chosen = tuple(item.item() if isinstance(item, np.generic) else item for item in categories)
        codes = _recode(codes, present, chosen)
    _check_categories(chosen, f"the sensitive column {sensitive!r}")
    scores = np.empty((len(codes), len(chosen)))
    for j, category in enumerate(chosen):
        scores[:, j] = _as_scores(predict(with_value(category)), len(codes))
    return FlippedScores(chosen, codes, scores)


def _check_categories(categories: tuple[Any, ...], what: str) -> None:
    if len(set(categories)) < len(categories):
        raise InvalidInputError(
            f"categories must differ, got {enumerate_some(categories)}. List each one once."
        )
    if len(categories) < 2:
        raise InvalidInputError(
            f"A flip needs two categories or more, {what} has {len(categories)}: "
            f"{enumerate_some(categories)}. Pass categories= with the values known to the model."
        )


def _recode(codes: IntArray, present: tuple[Any, ...], chosen: tuple[Any, ...]) -> IntArray:
    position = {category: j for j, category in enumerate(chosen)}
    unlisted = [category for category in present if category not in position]
    if unlisted:
        raise InvalidInputError(
            f"categories must include every value that occurs, got rows with "
            f"{enumerate_some(unlisted)}. Add them to categories, or drop those rows."
        )
    return np.array([position[category] for category in present], dtype=np.intp)[codes]


def _open_array(X: Any, sensitive: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the sensitive column of an array and a function that fills it in a copy."""
    if X.ndim != 2:
        raise InvalidInputError(
            f"X must have rows and columns, got an array of shape {X.shape}. "
            "Pass a two-dimensional array or a table."
        )
    is_position = isinstance(sensitive, int | np.integer) and not isinstance(sensitive, bool)
    if not is_position or not -X.shape[1] <= sensitive < X.shape[1]:
        raise InvalidInputError(
            "sensitive must be the position of a column when X is a numpy array, got "
            f"{sensitive!r} for {X.shape[1]} columns. Pass an integer, or a table with names."
        )

    def with_value(value: Any) -> Any:
        # A fresh copy for each pass: predict may keep what it was given.
        flipped = X.copy()
        try:
            flipped[:, sensitive] = value
        except (TypeError, ValueError, OverflowError) as error:
            raise _misfit(value, sensitive, X.dtype) from error
        if flipped[0, sensitive] != value:  # cut off or rounded by the dtype
            raise _misfit(value, sensitive, X.dtype)
        return flipped

    return X[:, sensitive], with_value


def _open_table(X: Any, sensitive: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the sensitive column of a table and a function that fills it in a new table."""
    try:
        table = nw.from_native(X, eager_only=True)
    except TypeError as error:
        raise InvalidInputError(
            "X must be a pandas, polars or pyarrow table in memory or a numpy array, got "
            f"{type(X).__name__}. Collect or convert it first."
        ) from error
    if sensitive not in table.columns:
        raise InvalidInputError(
            f"sensitive must name a column of X, got {sensitive!r}."
            f"{near_match(sensitive, table.columns)} "
            f"X has {enumerate_some(table.columns)}."
        )
    column = table.get_column(sensitive)

    def with_value(value: Any) -> Any:
        return table.with_columns(_constant(column, value)).to_native()

    return column.to_native(), with_value


def _constant(column: nw.Series[Any], value: Any) -> nw.Series[Any]:
    """Fill a column with one value.

    The native dtype says more than narwhals' (a pandas categorical lists its categories, by whose
    codes a model may go), so one cell is made natively and then repeated.
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
    constant = nw.from_native(cell, series_only=True).alias(name)
    if constant.to_list() != [value]:
        raise _misfit(value, name, column.dtype)
    repeated: nw.Series[Any] = constant[np.zeros(len(column), dtype=np.intp)]
    return repeated


def _misfit(value: Any, sensitive: Any, dtype: Any) -> InvalidInputError:
    return InvalidInputError(
        f"categories must be values that the sensitive column {sensitive!r} can hold, got "
        f"{value!r} for {dtype}. Use a value of its type, or convert the column first."
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
