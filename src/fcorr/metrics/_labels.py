"""Columns of labels, whatever holds them, as integer codes into their sorted distinct values."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from fcorr._core.errors import InvalidInputError
from fcorr.metrics._validation import IntArray


class Labels(NamedTuple):
    """A column of labels: row i holds ``categories[codes[i]]``."""

    categories: tuple[Any, ...]
    codes: IntArray


def encode_labels(values: Any, name: str) -> Labels:
    """Code a column of labels; a missing value is an error, because it belongs to no group.

    Examples
    --------
    >>> encode_labels(["f", "m", "f"], "sex")
    Labels(categories=('f', 'm'), codes=array([0, 1, 0]))
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
            "Join several columns into one, such as 'female, 30s'."
        ) from error
    codes = np.fromiter((position[label] for label in labels), dtype=np.intp, count=len(labels))
    distinct = list(position)
    missing = [code for code, label in enumerate(distinct) if _is_missing(label)]
    if missing:
        n_missing = int(np.isin(codes, missing).sum())
        raise InvalidInputError(
            f"{name} must not have missing values, got {n_missing} in {len(labels)} rows. "
            "Make them a category of their own, such as 'unknown', or drop the rows."
        )
    order = sort_labels(distinct)
    rank = {label: code for code, label in enumerate(order)}
    recode = np.array([rank[label] for label in distinct], dtype=np.intp)
    return Labels(tuple(order), recode[codes])


def sort_labels(labels: Iterable[Any]) -> list[Any]:
    """Sort labels; those that Python cannot compare (1 and "a") by type, then by text."""
    labels = list(labels)
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def _to_list(values: Any, name: str) -> list[Any]:
    column = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(column, nw.Series):
        return column.to_list()
    if isinstance(values, list | tuple):
        return [label.item() if isinstance(label, np.generic) else label for label in values]
    if hasattr(values, "to_pylist") and not hasattr(values, "column_names"):
        labels: list[Any] = values.to_pylist()  # a pyarrow Array, which narwhals leaves alone
        return labels
    array = np.asarray(values)
    if array.ndim != 1:
        raise InvalidInputError(
            f"{name} must be one column, got {type(values).__name__} of shape {array.shape}. "
            "Pass one column, or join several into one, such as 'female, 30s'."
        )
    return list(array.tolist())


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)  # NaN and NaT differ from themselves
    except TypeError:
        return True  # pandas.NA will not say whether it equals itself
