"""One column in: targets and sample weights, from any library, as checked numpy arrays."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from fcorr._core import InvalidInputError, enumerate_some


@dataclass(frozen=True)
class Outcomes:
    """What is known of rows beside their features, checked.

    Attributes
    ----------
    y : ndarray of shape (n_rows,)
        Target, in the type it came in.
    weight : ndarray of shape (n_rows,)
        Sample weights, of mean 1.
    exposure : ndarray of shape (n_rows,)
        Exposures; 1 where no column says otherwise.
    label : str
        What messages call y: by its column's name as well, where it has one.
    """

    y: NDArray[Any]
    weight: NDArray[np.float64]
    exposure: NDArray[np.float64]
    label: str = "y"

    @cached_property
    def classes(self) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """The distinct values of y, sorted, and the place of each row's among them."""
        values, places = np.unique(self.y, return_inverse=True)
        return values, places

    def numbers(self) -> NDArray[np.float64]:
        """Return y as floats, or say that it holds none."""
        try:
            return self.y.astype(np.float64)
        except (ValueError, TypeError) as error:
            raise InvalidInputError(
                f"{self.label} must hold numbers, got {self.y.dtype} such as "
                f"{enumerate_some(self.y[:1])}. Convert it, or use FCorrClassifier for classes."
            ) from error


def read_outcomes(
    y: ArrayLike | None, sample_weight: ArrayLike | None, exposure: NDArray[np.float64]
) -> Outcomes:
    """Read target and weights of as many rows as there are exposures."""
    n_rows = len(exposure)
    target, weight = read_target(y, n_rows), read_sample_weight(sample_weight, n_rows)
    return Outcomes(target, weight, exposure, label=_label("y", y))


def read_target(y: ArrayLike | None, n_rows: int) -> NDArray[Any]:
    """Return y as a 1-D array of ``n_rows`` values, none of them missing or infinite."""
    label = _label("y", y)
    if y is None:
        raise InvalidInputError(
            "y must be given: this estimator requires y to be passed, but the target y is None."
        )
    values = column_or_1d(_to_numpy(y), warn=True)
    if values.dtype.kind in "mM":
        raise InvalidInputError(
            f"{label} must hold numbers, text or booleans, got {values.dtype}. "
            "Convert it first, for example a date to the number of days since a start."
        )
    if len(values) != n_rows:
        raise InvalidInputError(
            f"X and y must have the same number of rows, got {n_rows} and {len(values)}. "
            "Check that both come from the same filter."
        )
    missing = _is_missing(values)
    if missing.any():
        raise InvalidInputError(
            f"{label} must not hold missing values, got {int(missing.sum())} NaN, the first in row "
            f"{int(np.argmax(missing))}. Drop these rows: a target cannot be imputed."
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values)))
        raise InvalidInputError(
            f"{label} must be finite, got infinity ({values[row]}) in row {row}. "
            "Correct or drop it."
        )
    return values


def read_sample_weight(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Return weights scaled to a mean of 1; all 1 where none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    label = _label("sample_weight", sample_weight)
    try:
        weight = np.asarray(_to_numpy(sample_weight), dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            f"{label} must hold numbers: {error}. Pass one number per row."
        ) from error
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1 or len(weight) != n_rows:
        raise InvalidInputError(
            f"{label} must hold one number per row, got shape {weight.shape} for "
            f"{n_rows} rows. sample_weight.shape must be (n_rows,)."
        )
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInputError(
            f"{label} must be finite and at least 0, got {weight[row]} in row {row}. "
            "Correct it, or set it to 0 to leave the row out."
        )
    with np.errstate(over="ignore"):
        total = weight.sum()
    if np.isinf(total):
        raise InvalidInputError(
            f"{label} must have a finite sum, got weights up to {weight.max()}. "
            "Divide them all by the largest."
        )
    if total == 0:
        raise InvalidInputError(
            f"{label} must have a positive sum, got a weight of zero in every row. "
            "Leave it out to weigh all rows alike."
        )
    return weight * (n_rows / total)


def column_name(values: Any) -> str | None:
    """Return the name that a column of a dataframe brings along."""
    series = nw.from_native(values, series_only=True, pass_through=True)
    name = series.name if isinstance(series, nw.Series) else None
    return str(name) if name not in (None, "") else None


def _label(argument: str, values: Any) -> str:
    """Name an argument for a message, and the column it came from."""
    name = column_name(values)
    return argument if name in (None, argument) else f"{argument} ({name!r})"


def _to_numpy(values: Any) -> NDArray[Any]:
    if isinstance(values, pa.Array):
        values = pa.chunked_array([values])
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series.to_numpy()
    array = np.asarray(values)
    if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
        # In a list of text numpy writes NaN as the text "nan".
        objects = np.asarray(values, dtype=object)
        if _is_missing(objects.ravel()).any():
            return objects
    return array


def _is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    # In a column of objects None, NaN and pandas' NA all fail to equal themselves or are None.
    return np.array([value is None or not _equals_itself(value) for value in values], dtype=bool)


def _equals_itself(value: object) -> bool:
    try:
        return bool(value == value)  # NaN is what does not
    except TypeError:  # pandas' NA refuses to be true or false
        return False
