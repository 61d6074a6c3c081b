"""Proxy metrics: how far prices follow the sensitive column by way of other columns.

Shares of the variance of prices π, after Lindholm, Richman, Tsanakas and Wüthrich (2026,
"Sensitivity-based measures of discrimination in insurance pricing", European Journal of Operational
Research 333): what lies between the groups, and what no price has that infers nobody's group. A
price is any number by which people are treated: a premium, a frequency, a probability. None of it
is causal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fcorr.metrics import _checks as checks
from fcorr.metrics._checks import Column, FloatArray, Weights
from fcorr.metrics.flips import FlippedScores, encode_grouped

_ROUNDING = 1e-12  # of the largest price: what varies by less does not vary


@checks.leave_out_uncounted
def demographic_unfairness(
    y_pred: Column, *, sensitive_features: Any, sample_weight: Weights = None
) -> float:
    """Share of the variance of prices that lies between the groups: ``Var(E[π|S]) / Var(π)``.

    0 means that all groups have the same mean price, 1 that the group alone decides it; lower is
    better. Groups of equal means may still have different distributions.

    Parameters
    ----------
    y_pred : array-like of shape (n,)
        The prices: amounts, rates or probabilities.
    sensitive_features : column of n labels, or several
        Each row's group, as in :func:`group_rates`. Numbers of more than 20 values are divided
        into 10 groups of about as many rows each. Rows of which a label is missing are left out,
        and a `NotEstimableWarning` counts them.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure); once when left out.

    Returns
    -------
    float
        The share; 0 for prices that do not vary, nan with fewer than two groups. With k groups
        of n rows, prices that have nothing to do with them get about ``(k − 1) / n``.

    Examples
    --------
    >>> demographic_unfairness([1, 3, 3, 5], sensitive_features=["f", "f", "m", "m"])
    0.5
    """
    price, weight = checks.as_columns(sample_weight, y_pred=y_pred)
    labels = checks.encode_groups(sensitive_features, encode_grouped)
    checks.check_same_length(y_pred=price, sensitive_features=labels.codes)
    rows = _keep_known(labels.categories, labels.codes, "demographic_unfairness", stacklevel=5)
    if rows is None:
        return np.nan
    price, weight, codes = price[rows], weight[rows], labels.codes[rows]
    if _is_constant(price):
        return 0.0
    share = weight / weight.sum()
    centred = price - np.sum(share * price)
    mass = np.bincount(codes, weights=share)
    total = np.bincount(codes, weights=share * centred)
    between = np.divide(total**2, mass, where=mass > 0, out=np.zeros(len(mass)))
    return _as_share(between.sum() / np.sum(share * centred**2))


@dataclass(frozen=True, eq=False)
class AdmissiblePrice:
    """The admissible price nearest to given prices, and how far from it they are.

    Attributes
    ----------
    discrimination : float
        The mean square of `difference`, in units of the prices' variance; nan if not estimable.
    constant : float
        c of the admissible price ``c + Σ_s v_s μ(x, s)``.
    weights : dict
        v_s for each group s. Where estimates of groups are the same up to a constant, one choice
        of many.
    difference : ndarray of shape (n,)
        Each row's price less its admissible one, in the unit of prices: above 0, the person pays
        for what other columns tell about the group. Its mean is 0.
    n_left_out : int
        Rows of unknown group. They have a difference, but no part in the rest.
    """

    discrimination: float
    constant: float
    weights: dict[Any, float]
    difference: FloatArray
    n_left_out: int = 0


@checks.leave_out_uncounted
def nearest_admissible(
    y_pred: Column, estimates: FlippedScores, *, sample_weight: Weights = None
) -> AdmissiblePrice:
    """Find the admissible price nearest to prices: who pays how much for their proxies.

    Parameters as in :func:`proxy_discrimination`, of which this is the long answer.

    Examples
    --------
    >>> estimates = FlippedScores(("f", "m"), [0, 1, 0, 1], [[2, 4], [6, 8], [2, 4], [6, 8]])
    >>> found = nearest_admissible([4, 8, 2, 6], estimates)
    >>> found.difference, found.discrimination
    (array([ 1.,  1., -1., -1.]), 0.2)
    """
    return _find_nearest(y_pred, estimates, sample_weight, "nearest_admissible")


@checks.leave_out_uncounted
def proxy_discrimination(
    y_pred: Column, estimates: FlippedScores, *, sample_weight: Weights = None
) -> float:
    """Squared distance of prices to the nearest admissible ones, as a share of their variance.

    ``min_{c,v} E[(π − c − Σ_s v_s μ(X,s))²] / Var(π)`` over all constants c and weights v ≥ 0 of
    sum at most 1; μ(X, s) is the best estimate for a person X, were they of group s. 0 means that
    the prices weigh the groups' estimates in one way for everybody, as a discrimination-free price
    ``Σ_s P(s) μ(X,s)`` does; 1 that they have nothing to do with any estimate. Lower is better.

    Parameters
    ----------
    y_pred : array-like of shape (n,)
        The prices π: amounts, rates or probabilities.
    estimates : FlippedScores
        The best estimates: ``estimates.scores[n, j]`` is μ of row n in group j. From a model that
        uses the sensitive columns, by :func:`flip_scores`, or from
        :func:`fcorr.audit.proxies.best_estimates`, of rows that it was not fitted to. Several
        columns make joint groups there, and numbers groups by their quantiles. Rows of unknown
        group (None) are left out, a `NotEstimableWarning` counts them, and there is no weight
        for that group.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure); once when left out.

    Returns
    -------
    float
        The share, in [0, 1]; 0 for prices that do not vary, nan with fewer than two known groups.

    Notes
    -----
    Weights may sum to less than 1: to ask less of everybody's risk infers no group. Accounts of the
    paper have it so in its equation (7); we could not see the paper itself. The minimum is exact,
    by active sets. Errors of π and of μ count as distance;
    ``bootstrap_interval(proxy_discrimination, prices, estimates)`` is about the draw of rows alone.

    Examples
    --------
    >>> estimates = FlippedScores(("f", "m"), [0, 1, 0, 1], [[1, 2], [1, 2], [3, 4], [3, 4]])
    >>> round(proxy_discrimination([1, 3, 3, 5], estimates), 6)
    0.5
    >>> proxy_discrimination(estimates.scores.mean(axis=1), estimates)
    0.0
    """
    return _find_nearest(y_pred, estimates, sample_weight, "proxy_discrimination").discrimination


def _find_nearest(
    y_pred: Column, estimates: FlippedScores, sample_weight: Weights, metric: str
) -> AdmissiblePrice:
    price, weight = checks.as_columns(sample_weight, y_pred=y_pred)
    checks.check_same_length(y_pred=price, estimates=estimates)
    columns = [j for j, label in enumerate(estimates.categories) if _is_known(label)]
    labels = [estimates.categories[j] for j in columns]
    rows = _keep_known(estimates.categories, estimates.original, metric, stacklevel=6)
    if rows is None:
        nowhere = np.full(len(price), np.nan)
        return AdmissiblePrice(np.nan, np.nan, dict.fromkeys(labels, np.nan), nowhere)
    n_left_out = int(np.count_nonzero(~rows))
    share = rows * weight / np.sum(rows * weight)
    mean, means = np.sum(share * price), np.sum(share[:, None] * estimates.scores, axis=0)[columns]
    if _is_constant(price[rows]):
        zeros = np.zeros(len(price))
        return AdmissiblePrice(0.0, float(mean), dict.fromkeys(labels, 0.0), zeros, n_left_out)
    centred, others = price - mean, estimates.scores[:, columns] - means
    variance = np.sum(share * centred**2)
    weights = _nearest_weights(centred, others, share / variance)
    difference = centred - np.sum(others * weights, axis=1)
    return AdmissiblePrice(
        _as_share(np.sum(share * difference**2) / variance),
        float(mean - np.sum(means * weights)),
        dict(zip(labels, weights.tolist(), strict=True)),
        difference,
        n_left_out,
    )


def _nearest_weights(target: FloatArray, columns: FloatArray, weight: FloatArray) -> FloatArray:
    """Minimise ``Σ weight · (target − columns · v)²`` over v ≥ 0 of sum at most 1.

    The admissible set has a corner for each column, and one at 0 for what the sum leaves of 1. Of
    its corners p_j seen from the target, the mixture u / Σu is the nearest point where u ≥ 0 has
    the smallest ``|Σ_j u_j p_j|² + (Σ_j u_j − 1)²`` (Lawson and Hanson, 1974, chapter 23).
    """
    from scipy.optimize import nnls  # half a second that other metrics need not wait for

    # Distances between few columns are all that matters: a triangle holds them, whatever n is.
    whole = np.column_stack([columns, np.zeros(len(target)), target]) * np.sqrt(weight)[:, None]
    triangle: Any = np.linalg.qr(whole, mode="r")
    corners = triangle[:, :-1] - triangle[:, -1:]
    sides = np.vstack([corners, np.ones(corners.shape[1])])
    goal = np.append(np.zeros(len(corners)), 1.0)
    mixture = nnls(sides, goal, maxiter=100 * len(goal))[0]
    return mixture[:-1] / mixture.sum()


def _keep_known(
    categories: Sequence[Any], codes: npt.NDArray[np.intp], metric: str, *, stacklevel: int
) -> npt.NDArray[np.bool_] | None:
    """Mark the rows of known groups, and count the others; None where groups are too few."""
    is_known = np.array([_is_known(label) for label in categories])
    rows: npt.NDArray[np.bool_] = is_known[codes]
    n_left_out, groups = np.count_nonzero(~rows), np.unique(codes[rows])
    reason = f" for {n_left_out} of {len(rows)} rows, whose group is unknown: they are left out."
    if len(groups) < 2:
        named = ", ".join(checks.describe_label(categories[code]) for code in groups) or "none"
        reason = f": it compares two groups or more, got {named} and {n_left_out} unknown rows."
    if n_left_out or len(groups) < 2:
        checks.not_estimable(f"{metric} is not estimable{reason}", stacklevel=stacklevel)
    return rows if len(groups) > 1 else None


def _is_known(label: Any) -> bool:
    return None not in label if isinstance(label, tuple) else label is not None


def _is_constant(price: FloatArray) -> bool:
    return bool(np.ptp(price) <= _ROUNDING * np.abs(price).max())


def _as_share(found: float) -> float:
    """Return 0 where only the rounding of sums is left of a variance, and at most 1."""
    return min(float(found), 1.0) if found > _ROUNDING**2 else 0.0
