"""Checks that the metrics share: columns, weights and group labels, refused in the same words.

A missing label (None, NaN, NaT, pandas.NA, a null) is a label like any other: ``None``, the last
one. Leaving its rows out would hide them, and people whose value is unknown are treated somehow.
"""

import functools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import asdict
from typing import Any, NamedTuple, ParamSpec, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from fcorr._core import (
    InvalidInputError,
    NotEstimableWarning,
    Tabled,
    check_argument,
    counted_rows,
    is_integer,
    is_missing,
    refuse_rows,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
Column = npt.ArrayLike
"""A column of numbers: a list or a numpy, pandas, polars or pyarrow column."""
Weights = npt.ArrayLike | None
"""How often each row counts; None counts each once."""

# Arguments that hold rows, beside the weights, where they are passed by name.
_ROW_KEYWORDS = ["y_true", "y_pred", "y_score", "y_incumbent", "flips", "sensitive_features"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

# ------------------------------------------------------------------------------ weights


def leave_out_uncounted(metric: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a metric see only the rows whose weight is not 0, as if there were no others."""

    @functools.wraps(metric)
    def counted(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        if kwargs.get("sample_weight") is None:
            return metric(*args, **kwargs)
        # Any positional argument: one that holds no rows, such as a threshold, stays as it is.
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        names = [*range(len(args)), *(name for name in _ROW_KEYWORDS if name in given)]
        columns = [given[name] for name in names]
        with counted_rows(*columns, sample_weight=given["sample_weight"]) as rows:
            given |= zip([*names, "sample_weight"], rows, strict=True)
            positional = [given.pop(place) for place in range(len(args))]
            return metric(*positional, **given)

    return counted


# ------------------------------------------------------------------------------ numbers


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
    check_finite(column, name)
    return column


def check_finite(values: FloatArray, name: str) -> None:
    """Refuse values without rows, and missing or infinite ones; name the first."""
    _check_has_rows(values, name)
    finite = np.isfinite(values)
    if not finite.all():
        first = np.unravel_index(np.argmin(finite), finite.shape)
        raise InvalidInputError(
            f"{name} must be finite, got {values.size - int(finite.sum())} missing or infinite of "
            f"{values.size} values, the first ({values[first]}) in row {first[0]}. "
            "Drop or repair those rows."
        )


def as_columns(sample_weight: Any, **columns: Any) -> list[FloatArray]:
    """Return columns of finite floats, and the rows' weights, all of one length."""
    floats = {name: as_floats(values, name) for name, values in columns.items()}
    check_same_length(**floats)
    n_rows = len(next(iter(floats.values())))
    return [*floats.values(), as_weights(sample_weight, n_rows)]


def as_classes(y_true: Any) -> FloatArray:
    """Return the true classes as zeros and ones, or say how to get them."""
    truth = as_floats(y_true, "y_true")
    way_out = "Code the classes first: y_true = (labels == positive_class).astype(int)."
    refuse_rows(~np.isin(truth, [0, 1]), truth, "y_true must hold 0 and 1 only", way_out)
    return truth


def as_decisions(y_true: Any, y_pred: Any, sample_weight: Any) -> list[FloatArray]:
    """Return true classes and decisions as zeros and ones, and weights, of one length."""
    columns = as_columns(sample_weight, y_true=as_classes(y_true), y_pred=y_pred)
    decision, way_out = columns[1], "Threshold scores first: y_pred = (scores >= 0.5).astype(int)."
    refuse_rows(~np.isin(decision, [0, 1]), decision, "y_pred must hold 0 and 1 only", way_out)
    return columns


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
    way_out = "Give a row that should not count the weight 0."
    refuse_rows(weight < 0, weight, "sample_weight must be non-negative", way_out)
    if not weight.any():
        raise InvalidInputError(
            "sample_weight must be positive for some row, got zeros only. "
            "Leave it out to count every row once."
        )
    return weight


def check_same_length(**columns: Sized) -> None:
    """Refuse columns of different lengths."""
    lengths = [len(column) for column in columns.values()]
    if len(set(lengths)) > 1:
        found = ", ".join(f"{name} {length}" for name, length in zip(columns, lengths, strict=True))
        raise InvalidInputError(
            f"All columns must have the same number of rows, got {found}. "
            "Take them from the same table."
        )


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that no interval can have."""
    if not 0 < confidence < 1:
        raise InvalidInputError(
            f"confidence must lie between 0 and 1, got {confidence!r}. Write 95 % as 0.95."
        )


def check_resamples(n_resamples: int) -> None:
    """Refuse a number of resamples that gives no interval."""
    fits = is_integer(n_resamples, 1)
    check_argument("n_resamples", n_resamples, fits, "a positive integer", "500 is usual.")


def not_estimable(message: str, *, stacklevel: int = 4) -> float:
    """Return nan and say why, by default with the line that called a metric, the caller."""
    warnings.warn(message, NotEstimableWarning, stacklevel=stacklevel)
    return math.nan


def _check_has_rows(column: Any, name: str) -> None:
    if len(column) == 0:
        raise InvalidInputError(
            f"{name} must have rows, got none. Check how the data was filtered."
        )


# ------------------------------------------------------------------------------ labels


class Labels(NamedTuple):
    """Labels of rows, sorted: row i holds ``categories[codes[i]]``."""

    categories: tuple[Any, ...]
    codes: IntArray


def encode_labels(values: Any, name: str) -> Labels:
    """Code one column of labels, whatever holds it."""
    labels = _to_list(values, name)
    _check_has_rows(labels, name)
    try:
        # A dictionary needs no order between labels and beats a sort of a million Python strings.
        distinct = dict.fromkeys(labels)
    except TypeError as error:
        raise InvalidInputError(
            f"{name} must hold one label per row, got {type(labels[0]).__name__}. "
            "Pass several columns as a table or as {'sex': ..., 'age': ...}."
        ) from error
    known = [label for label in distinct if not is_missing(label)]
    try:
        order = sorted(known)
    except TypeError:  # labels that Python cannot compare (1 and "a")
        order = sorted(known, key=lambda label: (type(label).__name__, str(label)))
    code_of = {label: code for code, label in enumerate(order)}
    if len(known) < len(distinct):
        # Many missing values may differ from each other, as NaN do: they become one, the last.
        code_of |= {label: len(order) for label in distinct if is_missing(label)}
        order.append(None)
    codes = np.fromiter((code_of[label] for label in labels), dtype=np.intp, count=len(labels))
    return Labels(tuple(order), codes)


def encode_groups(
    sensitive_features: Any, encode: Callable[[Any, str], Labels] = encode_labels
) -> Labels:
    """Code each row's group: its label in one column, or its labels in several, as a tuple.

    Only combinations that occur are groups. They are sorted by the first column, then the next.
    ``encode`` codes a column; the string is what errors call it.
    """
    table = nw.from_native(sensitive_features, eager_only=True, pass_through=True)
    if isinstance(table, nw.DataFrame):
        columns: Mapping[Any, Any] = table.to_dict(as_series=True)
    elif isinstance(table, np.ndarray) and table.ndim == 2:
        columns = dict(enumerate(table.T))
    elif isinstance(table, Mapping):
        columns = table
    else:
        return encode(sensitive_features, "sensitive_features")
    if not columns:
        raise InvalidInputError(
            "sensitive_features must have a column, got none. Pass at least one."
        )
    names = [f"sensitive_features {key!r}" for key in columns]
    encoded = list(map(encode, columns.values(), names))
    if len(encoded) == 1:
        return encoded[0]
    check_same_length(**dict(zip(names, (labels.codes for labels in encoded), strict=True)))
    codes = encoded[0].codes
    for labels in encoded[1:]:
        # Renumbered after each column, so that the numbers of many columns stay small.
        both = codes * len(labels.categories) + labels.codes
        codes = np.unique(both, return_inverse=True)[1]
    first_row = np.unique(codes, return_index=True)[1]
    parts = [[labels.categories[code] for code in labels.codes[first_row]] for labels in encoded]
    return Labels(tuple(zip(*parts, strict=True)), codes)


def describe_label(label: Any) -> str:
    """Name a group in a message: ``("Black", None)`` is "Black, missing"."""
    if isinstance(label, tuple):
        return ", ".join(describe_label(part) for part in label)
    return "missing" if label is None else str(label)


class ResultTable(Tabled):
    """A table of results, whose rows are dataclasses: ``pandas.DataFrame(table.rows)``."""

    rows: tuple[Any, ...]

    def _tables(self) -> Iterator[Any]:
        found = [asdict(row) for row in self.rows]
        rows = [
            [f"{x:.4g}" if isinstance(x, float) else "" if x is None else x for x in row.values()]
            for row in found
        ]
        notes = " ".join(getattr(self, "notes", ()))
        yield type(self).__name__, [*(found[0] if found else ["no rows"])], rows, notes

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain data, ready for JSON but for nan."""
        others = {name: value for name, value in vars(self).items() if name != "rows"}
        return others | {"rows": [asdict(row) for row in self.rows]}


def _to_list(values: Any, name: str) -> list[Any]:
    column = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(column, nw.Series):
        return column.to_list()
    if isinstance(values, list | tuple):
        return [label.item() if isinstance(label, np.generic) else label for label in values]
    if hasattr(values, "to_pylist"):
        return values.to_pylist()  # a pyarrow Array, which narwhals leaves alone
    array = np.asarray(values)
    if array.ndim != 1:
        raise InvalidInputError(
            f"{name} must be one column or a table of several, got {type(values).__name__} of "
            f"shape {array.shape}. Pass a column, a table or {{'sex': ..., 'age': ...}}."
        )
    return list(array.tolist())
