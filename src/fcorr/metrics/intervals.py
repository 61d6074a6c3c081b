"""Confidence intervals: the percentile bootstrap over rows, for any metric that returns a number.

By hand and not by ``scipy.stats.bootstrap``: rows are drawn whole from columns of any library and
from `FlippedScores`, one row is a sample too, and resamples without a value are counted.
"""

import math
import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcorr._core import (
    InvalidInputError,
    NotEstimableWarning,
    RandomState,
    count_rows,
    draw_seed,
    open_processes,
    take_rows,
)
from fcorr.metrics import _checks as checks

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


@checks.leave_out_uncounted
def bootstrap_interval(
    metric: Callable[..., Any],
    *arrays: Any,
    n_resamples: int = 500,
    confidence: float = 0.95,
    random_state: RandomState = None,
    **options: Any,
) -> Interval:
    """Percentile bootstrap interval of a metric: rows are drawn with replacement, whole.

    Of a size without a sign, as a difference between groups is here, each resample has some: the
    interval does not hold 0 where there is none. Pass a signed metric, or use an audit's intervals.

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
        mapping of several) are resampled with the arrays, the others (`threshold`, `n_bins`,
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
    >>> from sklearn.metrics import mean_absolute_error
    >>> interval = bootstrap_interval(
    ...     mean_absolute_error, [1, 2, 3, 4], [1, 2, 3, 8], n_resamples=200, random_state=0
    ... )
    >>> interval.estimate, interval.low, interval.high
    (1.0, 0.0, 3.0)
    """
    checks.check_resamples(n_resamples)
    checks.check_confidence(confidence)
    estimate = _as_number(metric(*arrays, **options))
    named = {key: options[key] for key in _ROW_KEYWORDS if options.get(key) is not None}
    given = {f"argument {k + 1}": array for k, array in enumerate(arrays)} | named
    lengths = {name: n for name, each in given.items() if (n := count_rows(each)) is not None}
    if not lengths:
        raise InvalidInputError(
            "bootstrap_interval needs an argument with rows to resample, got none. "
            "Pass the metric's columns after the metric."
        )
    checks.check_same_length(**{name: range(n) for name, n in lengths.items()})
    n_rows = next(iter(lengths.values()))
    groups = np.zeros(n_rows, dtype=np.intp)
    if "sensitive_features" in named:
        groups = checks.encode_groups(named["sensitive_features"]).codes

    def resample(rows: NDArray[np.int64]) -> tuple[float, bool, ValueError | None, set[Any]]:
        """Compute the metric on drawn rows, perhaps in another process; tell what it warned of."""
        drawn = [take_rows(array, rows) for array in arrays]
        drawn_named = {key: take_rows(column, rows) for key, column in named.items()}
        value, refusal = math.nan, None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                value = _as_number(metric(*drawn, **{**options, **drawn_named}))
            except ValueError as error:
                refusal = error
        left_out = [w for w in caught if issubclass(w.category, NotEstimableWarning)]
        stand_in = [w for w in caught if _marks_stand_in(w)]
        others = {(str(w.message), w.category) for w in caught if w not in left_out + stand_in}
        # A group that was not drawn is missed here: no metric can warn of that.
        lost = (np.bincount(groups[rows], minlength=groups.max() + 1) == 0).any()
        return math.nan if stand_in else value, bool(left_out) or bool(lost), refusal, others

    rng = np.random.default_rng(draw_seed(random_state))
    draws = (rng.integers(0, n_rows, size=n_rows) for _ in range(n_resamples))
    with open_processes() as spread:
        results = list(map(resample, draws)) if spread is None else spread(resample, draws)
    values, are_partial, errors, warned = zip(*results, strict=True)
    refusals = [error for error in errors if error is not None]
    others = set().union(*warned)

    for text, category in others:
        warnings.warn(text, category, stacklevel=3)
    if len(refusals) == n_resamples:
        raise refusals[0]  # not an unlucky draw: the metric does not work on resampled arguments
    is_known = ~np.isnan(values)
    low = high = math.nan
    if is_known.any():
        tail = (1 - confidence) / 2
        low, high = np.quantile(np.array(values)[is_known], [tail, 1 - tail]).tolist()
    n_not_estimable, n_partial = int((~is_known).sum()), int((is_known & are_partial).sum())
    return Interval(estimate, low, high, confidence, n_resamples, n_not_estimable, n_partial)


def _as_number(value: Any) -> float:
    if isinstance(value, numbers.Real) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return float(value)
    raise InvalidInputError(
        f"metric must return one number, got {type(value).__name__}. "
        "Wrap it to choose one: lambda flips: flip_changes(flips)['max']."
    )


def _marks_stand_in(warning: warnings.WarningMessage) -> bool:
    """Tell whether scikit-learn says that the value is not the metric's (0 where it is 0/0)."""
    from sklearn.exceptions import UndefinedMetricWarning

    return issubclass(warning.category, UndefinedMetricWarning) or str(warning.message).startswith(
        "No positive class found in y_true"  # average_precision_score has no category for it
    )
