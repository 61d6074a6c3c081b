"""What the metrics share: arguments checked, and data without an answer, in the same words."""

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from fcorr._core import InvalidInputError, NotEstimableWarning, near_match

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

TO_DECISIONS = "Threshold scores first: y_pred = (scores >= 0.5).astype(int)."
TO_CLASSES = "Code the classes first: y_true = (labels == positive_class).astype(int)."


def as_floats(values: Any, name: str) -> FloatArray:
    """Return a column of finite floats, from a list, numpy, pandas, polars or pyarrow column."""
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} must hold numbers, got {type(values).__name__} that does not convert: "
            f"{error}. Pass one numeric column."
        ) from error
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise InvalidInputError(
            f"{name} must be one column, got an array of shape {column.shape}. "
            "Pass the column of interest."
        )
    if column.size == 0:
        raise InvalidInputError(
            f"{name} must have rows, got none. Check how the data was filtered."
        )
    finite = np.isfinite(column)
    if not finite.all():
        first = int(np.argmin(finite))
        raise InvalidInputError(
            f"{name} must be finite, got {column.size - int(finite.sum())} missing or infinite of "
            f"{column.size} values, the first ({column[first]}) in row {first}. "
            "Drop or repair those rows."
        )
    return column


def as_binary(values: Any, name: str, way_out: str) -> FloatArray:
    """Return a column of zeros and ones, or say how to get one."""
    column = as_floats(values, name)
    if not is_binary(column):
        first = int(np.argmin((column == 0) | (column == 1)))
        raise InvalidInputError(
            f"{name} must hold 0 and 1 only, got {column[first]:g} in row {first}. {way_out}"
        )
    return column


def is_binary(column: FloatArray) -> bool:
    """Tell whether a column holds zeros and ones only."""
    return bool(((column == 0) | (column == 1)).all())


def as_weights(sample_weight: Any, n_rows: int) -> FloatArray:
    """Return one non-negative weight per row, ones when none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = as_floats(sample_weight, "sample_weight")
    if len(weight) != n_rows:
        raise InvalidInputError(
            f"sample_weight must have one value per row, got {len(weight)} for {n_rows} rows. "
            "Take it from the same table as the predictions."
        )
    if weight.min() < 0:
        first = int(np.argmax(weight < 0))
        raise InvalidInputError(
            f"sample_weight must be non-negative, got {weight[first]:g} in row {first}. "
            "Give a row that should not count the weight 0."
        )
    if not weight.any():
        raise InvalidInputError(
            "sample_weight must be positive for some row, got zeros only. "
            "Leave it out to count every row once."
        )
    return weight


def as_amounts(
    y_true: Any, y_pred: Any, sample_weight: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return observed amounts, predicted ones and weights, of one length."""
    amount, prediction = as_floats(y_true, "y_true"), as_floats(y_pred, "y_pred")
    check_same_length(y_true=len(amount), y_pred=len(prediction))
    return amount, prediction, as_weights(sample_weight, len(amount))


def not_estimable(message: str, *, stacklevel: int = 3) -> float:
    """Return nan and say why, by default with the line that called the caller."""
    warnings.warn(message, NotEstimableWarning, stacklevel=stacklevel)
    return math.nan


def check_same_length(**lengths: int) -> None:
    """Refuse columns of different lengths."""
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InvalidInputError(
            f"All columns must have the same number of rows, got {found}. "
            "Take them from the same table."
        )


def check_option(name: str, value: object, options: Iterable[str]) -> None:
    """Refuse a value that is none of the options."""
    options = tuple(options)
    if value not in options:
        listed = " or ".join(repr(option) for option in options)
        raise InvalidInputError(
            f"{name} must be {listed}, got {value!r}.{near_match(str(value), options)}"
        )


def check_threshold(threshold: float) -> None:
    """Refuse a threshold with which no decision can be taken."""
    if not np.isfinite(threshold):
        raise InvalidInputError(
            f"threshold must be a finite number, got {threshold}. "
            "Choose one on the scale of the scores, such as 0.5 for probabilities."
        )
