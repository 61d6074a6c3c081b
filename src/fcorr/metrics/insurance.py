"""Insurance metrics: Lorenz curves, lift tables, and actual over expected by group.

Deviances, which say how far predictions are from claim counts, severities and pure premiums, are
scikit-learn's own. Where policies have an exposure there are two ways to ask for one, and they
differ by a factor only, the mean exposure:

- per policy, as publications on claim frequency do: ``mean_poisson_deviance(claims, exposure *
  rate)``;
- per year at risk: ``mean_poisson_deviance(claims / exposure, rate, sample_weight=exposure)``.

Lorenz curves put policies in the order of their predicted risk and show the claims that they bring;
the Gini index is the area between the curve and the diagonal, times two. Lift tables put predicted
beside actual, for policies in bins by what a model says of them. Both take ``claims / exposure`` as
`y_true`, predicted frequencies as `y_pred` and the exposure as `sample_weight`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fcorr._core import (
    InvalidInputError,
    RandomState,
    check_argument,
    draw_seed,
    is_integer,
    refuse_rows,
)
from fcorr.metrics import _checks as checks
from fcorr.metrics._checks import Column, FloatArray, ResultTable, Weights
from fcorr.metrics.intervals import bootstrap_interval

# ------------------------------------------------------------------------------ Lorenz curves


@dataclass(frozen=True, eq=False)
class LorenzCurve:
    """Which share of the claims the policies of lowest predicted risk bring.

    Attributes
    ----------
    exposure_share : ndarray of shape (k,)
        Share of the total weight, from 0 to 1, in the order of the predictions.
    claim_share : ndarray of shape (k,)
        Share of the total amount that falls on it, from 0 to 1.
    gini : float
        1 minus twice the area under the curve: 0 on the diagonal, where the order says nothing.
    """

    exposure_share: FloatArray
    claim_share: FloatArray
    gini: float

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as plain data, ready for JSON."""
        return {name: np.asarray(value).tolist() for name, value in vars(self).items()}


@checks.leave_out_uncounted
def lorenz_curve(y_true: Column, y_pred: Column, *, sample_weight: Weights = None) -> LorenzCurve:
    """Order the rows by prediction, and add up their weights and their observed amounts.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The observed amounts, per unit of weight: for policies with an exposure, ``claims /
        exposure``. Their sum must be positive.
    y_pred : array-like of shape (n,)
        The predicted ones, or any score that rises with them.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (the exposure); once when left out.

    Returns
    -------
    LorenzCurve
        One point per distinct prediction, and the origin. Rows with equal predictions are joined by
        a straight line, so that the order of the file cannot matter.

    Examples
    --------
    >>> curve = lorenz_curve([0, 1, 1, 2], [0.1, 0.2, 0.2, 0.3])
    >>> curve.exposure_share.tolist(), curve.claim_share.tolist()
    ([0.0, 0.25, 0.75, 1.0], [0.0, 0.0, 0.5, 1.0])
    >>> curve.gini
    0.375
    """
    amount, prediction, weight = checks.as_columns(sample_weight, y_true=y_true, y_pred=y_pred)
    total = np.sum(weight * amount)
    if total <= 0:
        raise InvalidInputError(
            f"lorenz_curve needs observed amounts with a positive sum, got {total:g} in "
            f"{len(amount)} rows. Choose rows that have claims."
        )
    return _curve(amount, prediction, weight)


@checks.leave_out_uncounted
def normalized_gini_score(
    y_true: Column, y_pred: Column, *, sample_weight: Weights = None
) -> float:
    """Gini index as a share of the best one that these amounts allow.

    ``gini(y, ŷ) / gini(y, y)``. 1 means that the predictions put the amounts in their right order,
    0 that the order says nothing about them, negative values that it is upside down; higher is
    better. It can be compared between portfolios.

    Parameters as in :func:`lorenz_curve`; nan, with a `NotEstimableWarning`, when the amounts sum
    to zero or less or are all equal.

    Examples
    --------
    >>> round(normalized_gini_score([0, 0, 50, 100], [1, 3, 2, 4]), 4)
    0.7143
    """
    amount, prediction, weight = checks.as_columns(sample_weight, y_true=y_true, y_pred=y_pred)
    total = float(np.sum(weight * amount))
    best = _curve(amount, amount, weight).gini if total > 0 else 0.0
    if best <= 0:
        return checks.not_estimable(
            "normalized_gini_score is not estimable: it needs amounts that differ and have a "
            f"positive sum, got {total:g} in {len(amount)} rows."
        )
    return _curve(amount, prediction, weight).gini / best


def _curve(amount: FloatArray, prediction: FloatArray, weight: FloatArray) -> LorenzCurve:
    block = np.unique(prediction, return_inverse=True)[1]
    exposure = np.concatenate([[0.0], np.cumsum(np.bincount(block, weights=weight))])
    claims = np.concatenate([[0.0], np.cumsum(np.bincount(block, weights=weight * amount))])
    exposure_share, claim_share = exposure / exposure[-1], claims / claims[-1]
    area = np.sum(np.diff(exposure_share) * (claim_share[1:] + claim_share[:-1]) / 2)
    return LorenzCurve(exposure_share, claim_share, float(1 - 2 * area))


# ------------------------------------------------------------------------------ lift tables


@dataclass(frozen=True)
class LiftBin:
    """Rows of similar prediction.

    Attributes
    ----------
    n, weight : int, float
        Their number and their total weight (exposure).
    low, high : float
        The smallest and the largest prediction among them.
    predicted, actual : float
        Weighted means of the predictions and of the observed amounts.
    """

    n: int
    weight: float
    low: float
    high: float
    predicted: float
    actual: float


@dataclass(frozen=True)
class DoubleLiftBin(LiftBin):
    """Rows on which two models disagree in a similar way.

    As in `LiftBin`, but `low` and `high` are ratios, prediction over incumbent, and `incumbent` is
    the weighted mean of the other model's predictions.
    """

    incumbent: float


@dataclass(frozen=True)
class LiftTable(ResultTable):
    """Bins of about equal weight, from the lowest predictions, or ratios of two, to the highest."""

    rows: tuple[LiftBin, ...]


@checks.leave_out_uncounted
def lift_table(
    y_true: Column,
    y_pred: Column,
    y_incumbent: Column | None = None,
    *,
    n_bins: int = 10,
    sample_weight: Weights = None,
) -> LiftTable:
    """Compare predicted and actual in bins of about equal weight, ordered by prediction.

    A good model has predicted near actual in every bin, and actual far apart between the first and
    the last. With the predictions of an incumbent it is a double lift: bins are ordered by the
    ratio of the two models' predictions. In the first and the last bins they say different things:
    the better one is the one whose line follows the actual there.

    Parameters as in :func:`lorenz_curve`; `y_incumbent`, the predictions of the model in use, all
    positive; and `n_bins`, the number of bins to make, 10 by default. Rows with equal predictions,
    or ratios, stay together, so that the order of the file cannot matter; with few distinct ones
    there are fewer bins. The rows of a double lift are `DoubleLiftBin`.

    Examples
    --------
    >>> table = lift_table([0, 1, 1, 3], [0.5, 0.5, 1.0, 2.0], n_bins=2)
    >>> [(row.predicted, row.actual) for row in table.rows]
    [(0.5, 0.5), (1.5, 2.0)]
    >>> table = lift_table([1, 1, 3, 3], [1, 1, 3, 3], [2, 2, 2, 2], n_bins=2)
    >>> [(row.predicted, row.incumbent, row.actual) for row in table.rows]
    [(1.0, 2.0, 1.0), (3.0, 2.0, 3.0)]
    """
    given: dict[str, Any] = {"y_true": y_true, "y_pred": y_pred}
    given |= {} if y_incumbent is None else {"y_incumbent": y_incumbent}
    actual, predicted, *incumbent, weight = checks.as_columns(sample_weight, **given)
    kind: type[LiftBin]
    kind, key = LiftBin, predicted
    for other in incumbent:
        way_out = "Raise small predictions to a floor, or leave out those rows."
        refuse_rows(other <= 0, other, "y_incumbent must be positive to divide by", way_out)
        kind, key = DoubleLiftBin, predicted / other
    columns = _bin_columns(key, weight, n_bins, means_of=(predicted, actual, *incumbent))
    return LiftTable(tuple(kind(int(n), *map(float, rest)) for n, *rest in columns))


def _bin_columns(
    key: FloatArray, weight: FloatArray, n_bins: int, *, means_of: Sequence[FloatArray]
) -> Iterable[tuple[float, ...]]:
    """Put rows into bins by a key; give each bin's size, weight, range of the key, and means."""
    check_argument("n_bins", n_bins, is_integer(n_bins, 1), "a positive integer", "10 is usual.")
    # A block of equal keys goes where its middle lies on the scale of cumulated weight.
    levels, block = np.unique(key, return_inverse=True)
    block_weight = np.bincount(block, weights=weight)
    middle = (np.cumsum(block_weight) - block_weight / 2) / block_weight.sum()
    # The tolerance keeps a middle that is a bin's edge but for rounding on one side of it.
    of_block = np.minimum(np.floor(middle * n_bins + 1e-9), n_bins - 1)
    _, first_block, bin_of_block = np.unique(of_block, return_index=True, return_inverse=True)
    low, high = levels[first_block], levels[np.append(first_block[1:], len(levels)) - 1]
    bins = bin_of_block[block]
    mass = np.bincount(bins, weights=weight)
    means = [np.bincount(bins, weights=weight * column) / mass for column in means_of]
    return zip(np.bincount(bins), mass, low, high, *means, strict=True)


# ------------------------------------------------------------------------------ actual and expected


@dataclass(frozen=True)
class ActualExpected:
    """What was expected and what came about in one group; nan is what its rows cannot give.

    Attributes
    ----------
    group, n, weight : object, int, float
        Label, number of rows and total weight (exposure), as in `GroupRates`.
    actual, expected : float
        Totals of the observed and of the predicted amounts.
    ratio : float
        Actual over expected: above 1, the group brought more than was predicted.
    low, high : float
        The ends of the ratio's confidence interval.
    """

    group: Any
    n: int
    weight: float
    actual: float
    expected: float
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class ActualExpectedTable(ResultTable):
    """One line per group, sorted by label, and the confidence of their intervals."""

    rows: tuple[ActualExpected, ...]
    confidence: float


@checks.leave_out_uncounted
def actual_over_expected(
    y_true: Column,
    y_pred: Column,
    *,
    sensitive_features: Any,
    sample_weight: Weights = None,
    interval: Literal["poisson", "bootstrap"] = "poisson",
    confidence: float = 0.95,
    n_resamples: int = 500,
    random_state: RandomState = None,
) -> ActualExpectedTable:
    """Divide each group's observed total by its predicted one.

    1 means that the group pays for itself; a group above 1 is charged too little, one below 1 too
    much, for the claims that it has.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The observed counts or amounts, per unit of weight: for policies with an exposure, ``claims
        / exposure``, or the claims themselves beside expected claims, without weights.
    y_pred : array-like of shape (n,)
        The predicted ones.
    sensitive_features : column of n labels, or several
        Each row's group, as in `group_rates`.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (the exposure); once when left out.
    interval : {"poisson", "bootstrap"}, default="poisson"
        "poisson" takes the actual total for a Poisson count (Garwood's exact interval): fast, for
        claim counts only, and too narrow where they vary more than a Poisson number does.
        "bootstrap" draws the group's rows again, for amounts and any weights as well.

        A total of claims is a Poisson count, and so is that of ``claims / exposure`` weighted by
        the exposure. A total of counts with other weights is none: an interval made of it would
        become ten times narrower when all weights are multiplied by 100. "poisson" refuses whole
        numbers with whole weights other than 1, which may be either.
    confidence, n_resamples, random_state
        As in `bootstrap_interval`; the resamples are drawn for each group.

    Returns
    -------
    ActualExpectedTable
        Totals, ratio and interval for each group; nan where the expected total is not positive.

    Examples
    --------
    >>> table = actual_over_expected(
    ...     [0, 1, 2, 1], [1, 1, 1, 1], sensitive_features=["f", "f", "m", "m"]
    ... )
    >>> [(row.group, row.actual, row.expected, row.ratio) for row in table.rows]
    [('f', 1.0, 2.0, 0.5), ('m', 3.0, 2.0, 1.5)]
    """
    from scipy.special import gammaincinv  # slow to import

    rule = "'poisson', for claim counts, or 'bootstrap'"
    check_argument("interval", interval, interval in ("poisson", "bootstrap"), rule)
    checks.check_confidence(confidence)
    observed, predicted, weight = checks.as_columns(sample_weight, y_true=y_true, y_pred=y_pred)
    groups, codes = checks.encode_groups(sensitive_features)
    checks.check_same_length(y_true=observed, sensitive_features=codes)
    if interval == "poisson":
        _check_claims(observed, weight)
    rng = np.random.default_rng(draw_seed(random_state))

    rows = []
    for code, group in enumerate(groups):
        chosen = codes == code
        y, mu, w = observed[chosen], predicted[chosen], weight[chosen]
        actual, expected = float(np.sum(w * y)), float(np.sum(w * mu))
        low = high = math.nan
        if expected > 0 and interval == "poisson":
            # Garwood's interval for the mean of a Poisson number, from one count.
            tail = (1 - confidence) / 2
            low = float(gammaincinv(actual, tail)) / expected if actual > 0 else 0.0
            high = float(gammaincinv(actual + 1, 1 - tail)) / expected
        elif expected > 0:
            options: Any = {"n_resamples": n_resamples, "confidence": confidence}
            drawn = bootstrap_interval(_ratio, y, mu, sample_weight=w, random_state=rng, **options)
            low, high = drawn.low, drawn.high
        row = (len(y), float(w.sum()), actual, expected, _ratio(y, mu, w), low, high)
        rows.append(ActualExpected(group, *row))
    return ActualExpectedTable(tuple(rows), confidence)


def _check_claims(observed: FloatArray, weight: FloatArray) -> None:
    """Refuse what, weighted, does not add up to a number of claims."""

    def is_count(values: FloatArray) -> npt.NDArray[np.bool_]:
        return (values >= 0) & (np.abs(values - np.rint(values)) < 1e-6)

    is_weighted = (weight != 1) & (observed != 0)  # without claims there is nothing to weigh
    are_whole = is_count(observed[is_weighted]) & is_count(weight[is_weighted])
    if is_weighted.any() and are_whole.all():
        row = int(np.argmax(is_weighted))
        raise InvalidInputError(
            "interval='poisson' needs claim counts without weights, or claims per exposure with "
            f"the exposure as sample_weight, got {observed[row]:g} with the weight {weight[row]:g} "
            f"in row {row}, which may be either. Pass claims and expected claims without "
            "sample_weight, or use interval='bootstrap'."
        )
    way_out = "Use interval='bootstrap' for amounts, or pass the exposure as sample_weight."
    is_wrong = ~is_count(weight * observed)
    refuse_rows(is_wrong, observed, "interval='poisson' needs claim counts", way_out)


def _ratio(y_true: FloatArray, y_pred: FloatArray, sample_weight: FloatArray) -> float:
    expected = np.sum(sample_weight * y_pred)
    return float(np.sum(sample_weight * y_true) / expected) if expected > 0 else math.nan
