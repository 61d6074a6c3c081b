"""Labels, whatever holds them, as integer codes into their sorted distinct values."""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from fcorr._core import InvalidInputError, NotEstimableWarning, near_match

# ------------------------------ validation
# What the metrics share: arguments checked, and data without an answer, in the same words.

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


# ------------------------------ labels
# Labels, whatever holds them, as integer codes into their sorted distinct values.
#
# A missing label (None, NaN, NaT, pandas.NA, a null) is a label like any other: ``None``, the last
# one. Leaving its rows out would hide them, and people whose value is unknown are treated somehow.


class Labels(NamedTuple):
    """Labels of rows: row i holds ``categories[codes[i]]``."""

    categories: tuple[Any, ...]
    codes: IntArray


def encode_labels(values: Any, name: str) -> Labels:
    """Code one column of labels.

    Examples
    --------
    >>> encode_labels(["m", None, "f", float("nan")], "sex")
    Labels(categories=('f', 'm', None), codes=array([1, 2, 0, 2]))
    """
    labels = _to_list(values, name)
    if not labels:
        raise InvalidInputError(
            f"{name} must have rows, got none. Check how the data was filtered."
        )
    try:
        # A dictionary needs no order between labels and beats a sort of a million Python strings.
        position = {label: code for code, label in enumerate(dict.fromkeys(labels))}
    except TypeError as error:
        raise InvalidInputError(
            f"{name} must hold one label per row, got {type(labels[0]).__name__}. "
            "Pass several columns as a table or as {'sex': ..., 'age': ...}."
        ) from error
    codes = np.fromiter((position[label] for label in labels), dtype=np.intp, count=len(labels))
    # Many missing values may differ from each other, as NaN do: they become one.
    distinct = [None if is_missing(label) else label for label in position]
    order = sort_labels(dict.fromkeys(distinct))
    rank = {label: code for code, label in enumerate(order)}
    recode = np.array([rank[label] for label in distinct], dtype=np.intp)
    return Labels(tuple(order), recode[codes])


def encode_groups(values: Any, name: str) -> Labels:
    """Code each row's group: its label in one column, or its labels in several, as a tuple.

    Only combinations that occur are groups. They are sorted by the first column, then the next.

    Examples
    --------
    >>> encode_groups({"sex": ["m", "f", "m"], "race": ["a", "b", "a"]}, "groups")
    Labels(categories=(('f', 'b'), ('m', 'a')), codes=array([1, 0, 1]))
    """
    columns = open_columns(values)
    if columns is None:
        return encode_labels(values, name)
    if not columns:
        raise InvalidInputError(f"{name} must have a column, got none. Pass at least one.")
    encoded = [encode_labels(column, f"{name} {key!r}") for key, column in columns.items()]
    if len(encoded) == 1:
        return encoded[0]
    lengths = {key: len(labels.codes) for key, labels in zip(columns, encoded, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InvalidInputError(
            f"The columns of {name} must have the same number of rows, got {lengths}. "
            "Take them from the same table."
        )
    return _combine(encoded)


def open_columns(values: Any) -> dict[Any, Any] | None:
    """Return the columns of a table, a mapping or a two-dimensional array; None for one column."""
    if isinstance(values, Mapping):
        return dict(values)
    if isinstance(values, np.ndarray):
        return dict(enumerate(values.T)) if values.ndim == 2 else None
    table = nw.from_native(values, eager_only=True, pass_through=True)
    if isinstance(table, nw.DataFrame):
        return {key: table.get_column(key).to_native() for key in table.columns}
    return None


def sort_labels(labels: Iterable[Any]) -> list[Any]:
    """Sort labels, None last; those that Python cannot compare (1 and "a") by type, then text."""
    labels = list(labels)
    present = [label for label in labels if label is not None]
    missing = [None] * (len(labels) - len(present))
    try:
        return sorted(present) + missing
    except TypeError:
        return sorted(present, key=lambda label: (type(label).__name__, str(label))) + missing


def is_missing(label: Any) -> bool:
    """Tell whether a label stands for a value that is not known."""
    try:
        return label is None or bool(label != label)  # NaN and NaT differ from themselves
    except TypeError:
        return True  # pandas.NA will not say whether it equals itself


def describe_label(label: Any) -> str:
    """Name a group in a message.

    Examples
    --------
    >>> describe_label(("Black", None))
    'Black, missing'
    """
    if isinstance(label, tuple):
        return ", ".join(describe_label(part) for part in label)
    return "missing" if label is None else str(label)


def _combine(columns: Sequence[Labels]) -> Labels:
    codes = columns[0].codes
    for column in columns[1:]:
        # Renumbered after each column, so that the numbers of many columns stay small.
        both = codes * len(column.categories) + column.codes
        codes = np.unique(both, return_inverse=True)[1]
    first_row = np.unique(codes, return_index=True)[1]
    parts = [[column.categories[code] for code in column.codes[first_row]] for column in columns]
    return Labels(tuple(zip(*parts, strict=True)), codes)


def _to_list(values: Any, name: str) -> list[Any]:
    column = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(column, nw.Series):
        return column.to_list()
    if isinstance(values, list | tuple):
        return [label.item() if isinstance(label, np.generic) else label for label in values]
    if hasattr(values, "to_pylist"):
        labels: list[Any] = values.to_pylist()  # a pyarrow Array, which narwhals leaves alone
        return labels
    array = np.asarray(values)
    if array.ndim != 1:
        raise InvalidInputError(
            f"{name} must be one column or a table of several, got {type(values).__name__} of "
            f"shape {array.shape}. Pass a column, a table or {{'sex': ..., 'age': ...}}."
        )
    return list(array.tolist())
