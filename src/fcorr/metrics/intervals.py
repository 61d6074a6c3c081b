"""How sure is a metric? Percentile bootstrap over rows, for any metric that returns a number."""

import math
import numbers
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from fcorr._core import InvalidInputError, NotEstimableWarning, RandomState, draw_seed
from fcorr.metrics._checks import FloatArray, IntArray, check_same_length, encode_groups
from fcorr.metrics.flips import FlippedScores

__all__ = ["Interval", "bootstrap_interval"]

_ROW_KEYWORDS = ("sample_weight", "sensitive_features")


@dataclass(frozen=True)
class Interval:
    """A metric with its bootstrap confidence interval.

    Attributes
    ----------
    estimate : float
        The metric of the data as they are.
    low, high : float
        The interval's ends; nan when no resample gave a value.
    confidence : float
        The share of resampled values that it holds.
    n_resamples : int
        How many resamples were drawn.
    n_not_estimable : int
        On how many of them the metric was not defined. They have no part in `low` and `high`, so a
        large number makes the interval too narrow.
    n_partial : int
        On how many it was defined, but without some group or category: its rows were not drawn, or
        could not give a rate. A large number says that the groups are too small for the interval.
    """

    estimate: float
    low: float
    high: float
    confidence: float
    n_resamples: int
    n_not_estimable: int
    n_partial: int = 0


def bootstrap_interval(
    metric: Callable[..., Any],
    *arrays: Any,
    n_resamples: int = 500,
    confidence: float = 0.95,
    random_state: RandomState = None,
    **options: Any,
) -> Interval:
    """Percentile bootstrap interval of a metric: rows are drawn with replacement, whole.

    Parameters
    ----------
    metric : callable
        Any function of the arguments that follow which returns one number: those of this package,
        scikit-learn's, fairlearn's or your own.
    *arrays : columns, `FlippedScores` or None
        Its positional arguments. All that have rows are resampled together; None and single
        numbers are passed on.
    n_resamples : int
        How many resamples to draw.
    confidence : float
        The share of resampled values between the interval's ends.
    random_state : int, numpy generator or None
        An integer makes the interval repeatable.
    **options
        Its keyword arguments. `sample_weight` and `sensitive_features` (one column, or a table or
        mapping of several) are resampled with the arrays, the others (`threshold`, `normalize`,
        ...) are passed on.

    Returns
    -------
    Interval
        Estimate, ends and counts. What the metric cannot estimate on the data as they are it says
        with its own warning; on resamples it is counted instead. A resample on which the metric is
        nan, refuses the data with a ValueError, or warns as scikit-learn does that its value is a
        stand-in, is not estimable.

    Examples
    --------
    >>> from fcorr.metrics import mean_absolute_error
    >>> interval = bootstrap_interval(
    ...     mean_absolute_error, [1, 2, 3, 4], [1, 2, 3, 8], n_resamples=200, random_state=0
    ... )
    >>> interval.estimate, interval.low, interval.high
    (1.0, 0.0, 3.0)
    """
    _check_arguments(n_resamples, confidence)
    estimate = _as_number(metric(*arrays, **options))
    columns = {k: _as_rows(array) for k, array in enumerate(arrays) if _has_rows(array)}
    named = {key: _as_rows(options[key]) for key in _ROW_KEYWORDS if options.get(key) is not None}
    n_rows = _count_rows(columns, named)

    groups = _group_codes(named.get("sensitive_features"), n_rows)
    n_groups = groups.max() + 1

    rng = np.random.default_rng(draw_seed(random_state))
    draws, lost_groups = [], []
    for _ in range(n_resamples):
        rows = rng.integers(0, n_rows, size=n_rows)
        lost_groups.append(bool((np.bincount(groups[rows], minlength=n_groups) == 0).any()))
        drawn = [_take(columns[k], rows) if k in columns else a for k, a in enumerate(arrays)]
        drawn_named = {key: _take(column, rows) for key, column in named.items()}
        draws.append(_evaluate(metric, drawn, {**options, **drawn_named}))

    for text, category in {warning for draw in draws for warning in draw.other_warnings}:
        warnings.warn(text, category, stacklevel=2)
    values = np.array([draw.value for draw in draws])
    known = values[~np.isnan(values)]
    errors = [draw.error for draw in draws if draw.error is not None]
    if len(errors) == n_resamples:
        raise errors[0]  # not an unlucky draw: the metric does not work on resampled arguments
    low, high = _percentiles(known, confidence)
    return Interval(
        estimate,
        low,
        high,
        confidence,
        n_resamples,
        n_not_estimable=n_resamples - len(known),
        n_partial=sum(
            (draw.left_out or lost) and not math.isnan(draw.value)
            for draw, lost in zip(draws, lost_groups, strict=True)
        ),
    )


class _Draw(NamedTuple):
    """What a metric made of one resample."""

    value: float
    left_out: bool
    error: ValueError | None
    other_warnings: list[tuple[str, type[Warning]]]


def _evaluate(metric: Callable[..., Any], arrays: list[Any], options: dict[str, Any]) -> _Draw:
    error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = _as_number(metric(*arrays, **options))
        except ValueError as refusal:
            value, error = math.nan, refusal
    left_out = [w for w in caught if issubclass(w.category, NotEstimableWarning)]
    stand_in = [w for w in caught if _marks_stand_in(w)]
    others = [(str(w.message), w.category) for w in caught if w not in left_out + stand_in]
    if stand_in:
        value = math.nan
    return _Draw(value, bool(left_out), error, others)


def _check_arguments(n_resamples: int, confidence: float) -> None:
    if not isinstance(n_resamples, int | np.integer) or n_resamples < 1:
        raise InvalidInputError(
            f"n_resamples must be a positive integer, got {n_resamples!r}. 500 is usual."
        )
    check_confidence(confidence)


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that no interval can have."""
    if not 0 < confidence < 1:
        raise InvalidInputError(
            f"confidence must lie between 0 and 1, got {confidence!r}. Write 95 % as 0.95."
        )


def _as_number(value: Any) -> float:
    if isinstance(value, numbers.Real) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return float(value)
    raise InvalidInputError(
        f"metric must return one number, got {type(value).__name__}. "
        "Wrap it to choose one: lambda flips: flip_changes(flips)['max']."
    )


def _has_rows(argument: Any) -> bool:
    return hasattr(argument, "__len__") and not isinstance(argument, str | bytes | dict)


def _as_rows(column: Any) -> Any:
    """Return something whose rows can be drawn by position: an array or flipped scores."""
    if isinstance(column, FlippedScores | np.ndarray):
        return column
    if isinstance(column, Mapping):
        return np.column_stack([_as_rows(part).astype(object) for part in column.values()])
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series.to_numpy()
    array = np.asarray(column)
    if array.dtype.kind == "U" and not all(isinstance(label, str) for label in column):
        # numpy wrote numbers among the labels as text; the metric should see what was passed
        array = np.asarray(column, dtype=object)
    return array


def _take(column: Any, rows: Any) -> Any:
    return column.take(rows) if isinstance(column, FlippedScores) else column[rows]


def _count_rows(columns: dict[int, Any], named: dict[str, Any]) -> int:
    lengths = {f"argument {k + 1}": len(column) for k, column in columns.items()}
    lengths |= {key: len(column) for key, column in named.items()}
    if not lengths:
        raise InvalidInputError(
            "bootstrap_interval needs an argument with rows to resample, got none. "
            "Pass the metric's columns after the metric."
        )
    check_same_length(**lengths)
    return next(iter(lengths.values()))


def _group_codes(labels: Any, n_rows: int) -> IntArray:
    """Code the groups, so as to miss one that was not drawn: no metric can warn of that."""
    if labels is None:
        return np.zeros(n_rows, dtype=np.intp)
    return encode_groups(labels, "sensitive_features").codes


def _marks_stand_in(warning: warnings.WarningMessage) -> bool:
    """Tell whether scikit-learn says that the value is not the metric's (0 where it is 0/0)."""
    return issubclass(warning.category, UndefinedMetricWarning) or str(warning.message).startswith(
        "No positive class found in y_true"  # average_precision_score has no category for it
    )


def _percentiles(values: FloatArray, confidence: float) -> tuple[float, float]:
    if len(values) == 0:
        return math.nan, math.nan
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)
