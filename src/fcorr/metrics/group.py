"""Group metrics: whether groups fare alike, with fairlearn's arguments, and the table behind them.

A rate that a group's rows cannot give (no rows, no positives, no negatives) is *not estimable*: the
group is left out of that rate with a `NotEstimableWarning`, and a metric for which fewer than two
groups remain is nan. Neither a 0 nor a crash would say that the data has no answer.

Rows whose label is missing are a group of their own, None. Several sensitive columns make one group
of each combination that occurs, labelled by a tuple: intersections such as ("Black", "Female").

An audit takes all figures of all groups at once, with their bootstrap (`GroupedRows`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fcorr._core import InvalidInputError, enumerate_some, refuse_rows
from fcorr.metrics import _checks as checks
from fcorr.metrics._checks import Column, FloatArray, IntArray, Weights

_Rate = Literal["mean_prediction", "tpr", "fpr"]
_CONDITION: dict[_Rate, str] = {"mean_prediction": "rows", "tpr": "positives", "fpr": "negatives"}


@dataclass(frozen=True)
class GroupRates:
    """What the predictions are like in one group; nan is a rate that its rows cannot give.

    Attributes
    ----------
    group : object
        The group's label: None where it is missing, a tuple for several columns.
    n, weight : int, float
        Its number of rows, and their total weight.
    mean_prediction : float
        Mean prediction: the selection rate for decisions, the mean amount for regression.
    tpr, fpr : float
        Share decided positive among the group's positives and among its negatives; nan as well
        when the predictions are not decisions.
    """

    group: Any
    n: int
    weight: float
    mean_prediction: float
    tpr: float
    fpr: float


@checks.leave_out_uncounted
def group_rates(
    y_true: Column | None, y_pred: Column, *, sensitive_features: Any, sample_weight: Weights = None
) -> list[GroupRates]:
    """Count each group and average the predictions in it; equal lines mean equal treatment.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None
        The outcomes. With None, or when they or the predictions are not all 0 or 1, the true and
        false positive rates are nan.
    y_pred : array-like of shape (n,)
        Decisions (0 or 1), scores or amounts.
    sensitive_features : column of n labels, or several
        Each row's group: a list or a numpy, pandas, polars or pyarrow column, or a table, a
        two-dimensional array or a mapping of several columns, whose combinations are the groups.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure); once when left out. A row of weight 0 is as if it
        were not there, and so is a group of no others.

    Returns
    -------
    list of GroupRates
        One line per group, sorted by label, a missing one last; `pandas.DataFrame` takes them.

    Examples
    --------
    >>> table = group_rates([0, 1, 1, 0], [0, 1, 0, 0], sensitive_features=["f", "f", "m", "m"])
    >>> table[1]
    GroupRates(group='m', n=2, weight=2.0, mean_prediction=0.0, tpr=0.0, fpr=0.0)
    >>> both = {"sex": ["f", "f", "m", "m"], "race": ["a", "b", "b", None]}
    >>> [line.group for line in group_rates(None, [0, 1, 0, 0], sensitive_features=both)]
    [('f', 'a'), ('f', 'b'), ('m', 'b'), ('m', None)]
    """
    if y_true is None:
        prediction, weight = checks.as_columns(sample_weight, y_pred=y_pred)
        return _tabulate(None, prediction, weight, sensitive_features)
    truth, prediction, weight = checks.as_columns(sample_weight, y_true=y_true, y_pred=y_pred)
    are_decisions = np.isin([truth, prediction], [0, 1]).all()
    return _tabulate(truth if are_decisions else None, prediction, weight, sensitive_features)


@checks.leave_out_uncounted
def demographic_parity_difference(
    y_true: Any, y_pred: Column, *, sensitive_features: Any, sample_weight: Weights = None
) -> float:
    """Largest difference between two groups' mean predictions.

    ``max_{j,k} |E(ŷ | s_j) − E(ŷ | s_k)|``. 0 means that all groups have the same mean; lower is
    better. The predictions are decisions for classification, which makes it the difference of
    selection rates, and amounts for regression. Parameters as in :func:`group_rates`, but `y_true`
    is ignored: it is here so that all metrics are called alike. nan when fewer than two groups have
    rows.

    Examples
    --------
    >>> sex = ["f", "f", "m", "m"]
    >>> demographic_parity_difference(None, [1, 1, 1, 0], sensitive_features=sex)
    0.5
    """
    table = group_rates(
        None, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight
    )
    return _largest_difference(table, "mean_prediction", "demographic_parity_difference")


@checks.leave_out_uncounted
def equal_opportunity_difference(
    y_true: Column, y_pred: Column, *, sensitive_features: Any, sample_weight: Weights = None
) -> float:
    """Largest difference between two groups' true positive rates.

    ``max_{j,k} |P(ŷ=1 | s_j, y=1) − P(ŷ=1 | s_k, y=1)|``. 0 means that positives are found equally
    often in all groups; lower is better. Parameters as in :func:`group_rates`, of classes and
    decisions, 0 or 1; nan when fewer than two groups have positives.

    Examples
    --------
    >>> y, decisions, sex = [1, 0, 1, 0], [1, 0, 1, 1], ["f", "f", "m", "m"]
    >>> equal_opportunity_difference(y, decisions, sensitive_features=sex)
    0.0
    >>> equalized_odds_difference(y, decisions, sensitive_features=sex)
    1.0
    """
    truth, decision, weight = checks.as_decisions(y_true, y_pred, sample_weight)
    table = _tabulate(truth, decision, weight, sensitive_features)
    return _largest_difference(table, "tpr", "equal_opportunity_difference")


@checks.leave_out_uncounted
def equalized_odds_difference(
    y_true: Column, y_pred: Column, *, sensitive_features: Any, sample_weight: Weights = None
) -> float:
    """Larger of the differences in true and in false positive rates between two groups.

    ``max_{j,k} max_{y∈{0,1}} |P(ŷ=1 | s_j, y) − P(ŷ=1 | s_k, y)|``. 0 means that positives and
    negatives are decided positive equally often in all groups; lower is better. Parameters as in
    :func:`equal_opportunity_difference`; nan when fewer than two groups have positives, or fewer
    than two have negatives: one half of the odds alone would understate it.
    """
    truth, decision, weight = checks.as_decisions(y_true, y_pred, sample_weight)
    table = _tabulate(truth, decision, weight, sensitive_features)
    of_positives = _largest_difference(table, "tpr", "equalized_odds_difference")
    of_negatives = _largest_difference(table, "fpr", "equalized_odds_difference")
    return float(np.maximum(of_positives, of_negatives))  # unlike the built-in max, it keeps a nan


def _tabulate(
    truth: FloatArray | None, prediction: FloatArray, weight: FloatArray, sensitive_features: Any
) -> list[GroupRates]:
    groups, codes = checks.encode_groups(sensitive_features)
    checks.check_same_length(y_pred=prediction, sensitive_features=codes)

    def mean(weight: FloatArray) -> FloatArray:
        mass = np.bincount(codes, weights=weight)
        with np.errstate(invalid="ignore"):  # 0/0 is nan, which is "not estimable" in this table
            return np.bincount(codes, weights=weight * prediction) / mass

    unknown = np.full(len(groups), np.nan)
    columns = (
        np.bincount(codes),
        np.bincount(codes, weights=weight),
        mean(weight),
        unknown if truth is None else mean(weight * truth),
        unknown if truth is None else mean(weight * (1 - truth)),
    )
    lines = zip(groups, *(column.tolist() for column in columns), strict=True)
    return [GroupRates(*line) for line in lines]


def _largest_difference(table: list[GroupRates], rate: _Rate, metric: str) -> float:
    known = [value for line in table if not math.isnan(value := getattr(line, rate))]
    left_out = [line for line in table if math.isnan(getattr(line, rate))]
    named = enumerate_some(
        [f"{checks.describe_label(line.group)} (n={line.n})" for line in left_out]
    )
    condition, reason = _CONDITION[rate], ""
    if len(known) < 2:
        reason = (
            f": it compares groups that have {condition}, which {len(known)} of {len(table)} have. "
            f"Without: {named or 'none'}."
        )
    elif left_out:
        reason = (
            f" for {len(left_out)} of {len(table)} groups, which have no {condition} and are left "
            f"out: {named}."
        )
    if reason:
        checks.not_estimable(f"{metric} is not estimable{reason}", stacklevel=5)
    return max(known) - min(known) if len(known) > 1 else math.nan


# ------------------------------------------------------------------------------ all figures at once
# For a million rows and hundreds of resamples. What `bootstrap_interval` does for any metric, one
# call per resample, is done here for rates, means, ratios and rankings by sums over rows that were
# put in order once. A resample is a weight per row: how often the row was drawn.

Figures = dict[str, FloatArray]
"""Figures by name, one number per group; nan is what a group's rows cannot give."""


class GroupedRows:
    """Rows of groups, of which all figures are computed as often as need be.

    ``codes`` are the rows' groups, from 0 on, each of which has rows. With a ``decision``, 0 or 1,
    the ``score`` is the probability of a class, which came about where ``truth`` is 1; else these
    are amounts, and ``deviance`` is what each row adds to theirs.

    Examples
    --------
    >>> y = np.array([0, 1, 1])
    >>> rows = GroupedRows(np.array([0, 0, 1]), np.ones(3), np.array([0.2, 0.6, 0.9]), y, y)
    >>> found = rows.figures()
    >>> found["selection rate"].tolist(), found["AUROC"].tolist()
    ([0.5, 1.0], [1.0, nan])
    """

    def __init__(
        self,
        codes: IntArray,
        weight: FloatArray,
        score: FloatArray,
        truth: FloatArray | None = None,
        decision: FloatArray | None = None,
        deviance: FloatArray | None = None,
    ) -> None:
        order = np.lexsort((score, codes))
        given = {"truth": truth, "decision": decision, "deviance": deviance}
        sorted_ = {n: x[order].astype(float) for n, x in given.items() if x is not None}
        codes, score, self._weight = codes[order], score[order], weight[order]
        self.counts = np.bincount(codes)
        ends = np.cumsum(self.counts)
        self._groups = [*map(slice, ends - self.counts, ends)]
        self._codes, self._truth = codes, sorted_.get("truth", score)
        off = score - np.median(score)  # to square large amounts would lose what they differ by
        columns = {"score": score, "off": off, "square": off**2, **sorted_}
        self._rates: dict[str, tuple[FloatArray, FloatArray]] = {}
        if (chosen := columns.pop("decision", None)) is not None:
            self._count("selection rate", chosen, np.ones(len(codes)))
            if truth is not None:
                positive, negative = self._truth, 1 - self._truth
                columns["negative"] = negative
                self._count("true positive rate", chosen * positive, positive)
                self._count("false positive rate", chosen * negative, negative)
                self._count("precision", chosen * positive, chosen)
        self._names, self._columns = [*columns], np.column_stack([*columns.values()])
        # Between rows of equal scores, their order says nothing: they are added up first.
        is_new = np.append(True, (np.diff(score) != 0) | (np.diff(codes) != 0))
        self._runs = None if is_new.all() else np.flatnonzero(is_new)
        starts = codes if self._runs is None else codes[self._runs]
        ends = np.searchsorted(starts, np.arange(len(self.counts)), side="right")
        self._runs_of = [*map(slice, [0, *ends[:-1]], ends)]

    def _count(self, name: str, hits: FloatArray, base: FloatArray) -> None:
        """Take a rate of each group, and of how many rows it is; of unequal weights, fewer."""
        w = self._weight / self._weight.max()
        hit, all_, squares = (
            np.bincount(self._codes, x) for x in (w * hits, w * base, w * w * base)
        )
        with np.errstate(invalid="ignore"):  # 0/0 is nan: not estimable
            self._rates[name] = hit / all_, all_**2 / squares

    def figures(self, times: NDArray[Any] | None = None) -> Figures:
        """Compute all figures; of a resample all but rates, with how many ``times`` a row counts.

        These are in an order of their own: which row gets which number does not matter, as they are
        drawn alike.
        """
        w = self._weight if times is None else self._weight * times
        mass = np.array([w[group].sum() for group in self._groups])
        products = np.array([_dot(w[group], self._columns[group]) for group in self._groups])
        sums = dict(zip(self._names, products.T, strict=True))
        rates = {} if times is not None else {name: rate for name, (rate, _) in self._rates.items()}
        with np.errstate(invalid="ignore", divide="ignore"):  # 0/0 is nan: not estimable
            off = sums["off"] / mass
            found = {"weight": mass, "mean predicted": sums["score"] / mass, "off": off}
            found["variance"] = sums["square"] / mass - off**2
            if "truth" not in sums:
                return found | rates
            truth = sums["truth"]
            found["mean actual"] = truth / mass
            found["actual / expected"] = truth / _positive(sums["score"])
            amount = w * self._truth
            if self._runs is not None:
                w, amount = (np.add.reduceat(x, self._runs) for x in (w, amount))
            # The area under each group's Lorenz curve, times its totals.
            areas = [_dot(w[of], np.cumsum(amount[of]) - amount[of] / 2) for of in self._runs_of]
            gini = 1 - 2 * np.array(areas) / (mass * _positive(truth))
            if "deviance" in sums:
                return found | {"Gini": gini, "deviance": sums["deviance"] / mass}
            # The area under the ROC curve is the Lorenz curve's, on another scale.
            auroc = 0.5 + gini * mass / (2 * _positive(sums["negative"]))
            return found | rates | {"AUROC": auroc}

    def draw_rates(self, rng: np.random.Generator) -> Figures:
        """Draw rates as they may be: a resample of few rows, or of none that hit, has too few."""
        return {
            name: np.where(
                n > 0, rng.beta(*(np.nan_to_num([rate * n, n - rate * n]) + 0.5)), np.nan
            )
            for name, (rate, n) in self._rates.items()
        }


def _positive(divisor: FloatArray) -> FloatArray:
    return np.where(divisor > 0, divisor, np.nan)


def _dot(weight: FloatArray, values: FloatArray) -> Any:
    """Sum over rows, by numpy itself: threads of a BLAS would wait for each other."""
    return np.einsum("n,n...->...", weight, values)


def resample(grouped: Sequence[GroupedRows], n_resamples: int, seed: int) -> list[list[Figures]]:
    """Draw rows again and again; return the figures of all groupings of each resample.

    Rates are drawn from Jeffreys' posterior distribution instead, whose intervals hold the truth
    about as often as they say also for few rows, and for rates of 0 and 1.
    """
    rng, n_rows = np.random.default_rng(seed), int(grouped[0].counts.sum())
    of_rates = np.random.default_rng([seed, 1])
    found = []
    for _ in range(n_resamples):
        times = np.bincount(rng.integers(0, n_rows, n_rows), minlength=n_rows)
        found.append([rows.figures(times) | rows.draw_rates(of_rates) for rows in grouped])
    return found


def interval(values: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of percentile intervals over the first axis; nan where few draws have one.

    A draw in which a group has no rows, or no positives, gives nan. Where that is more than the
    share that an interval leaves out, what remains would look surer than it is.
    """
    tail = (1 - confidence) / 2
    rare = np.isnan(values).mean(axis=0) > 2 * tail
    low, high = np.nanquantile(np.where(rare, 0.0, values), [tail, 1 - tail], axis=0)
    return np.where(rare, np.nan, low), np.where(rare, np.nan, high)


# ------------------------------------------------------------------------------ tables

MIN_ROWS = 30
"""Rows that a group needs to have an interval, and to be compared with others."""

_LACKING = {
    "true positive rate": "no positives",
    "false positive rate": "no negatives",
    "precision": "nobody was selected",
    "adverse impact ratio": "nobody was selected",
    "AUROC": "one class only",
    "actual / expected": "nothing was expected",
    "mean / highest": "no mean is positive",
    "standardised mean difference": "all scores are alike",
    "Gini": "no positive amounts",
}


_COMPARED = {
    "adverse impact ratio": "adverse impact ratio",
    "selection rate difference": "selection rate",
    "standardised mean difference": "standardised mean difference",
    "true positive rate difference": "true positive rate",
    "false positive rate difference": "false positive rate",
    "precision difference": "precision",
    "mean ratio": "mean / highest",
    "actual over expected difference": "actual / expected",
}
"""What groups are compared by, and the figure that it is made of."""

_RATIOS = {"adverse impact ratio": "selection rate", "mean / highest": "mean predicted"}
"""Figures that are ratios to the highest, and of what."""


def cell(
    estimate: Any, low: Any = math.nan, high: Any = math.nan, *, why: str = ""
) -> dict[str, Any]:
    """Put a figure and its interval together as plain data; what is not estimable has the reason.

    An interval holds its figure. One without any width would look surer than it is.

    Examples
    --------
    >>> cell(0.5), cell(math.nan, why="no rows")
    ({'estimate': 0.5}, {'estimate': None, 'why': 'no rows'})
    """
    if not math.isfinite(estimate):
        return {"estimate": None, "why": why}
    low, high = np.fmin(low, estimate), np.fmax(high, estimate)
    has_width = high - low > 1e-12 * abs(estimate)
    ends = {"low": float(low), "high": float(high)} if has_width else {}
    return {"estimate": float(estimate), **ends}


def tabulate_groups(
    names: Sequence[str], rows: GroupedRows, draws: Figures, confidence: float
) -> dict[str, Any]:
    """Put each group's figures with their intervals into a table, and what groups differ by.

    ``draws`` are the figures of resamples, ``(n_resamples, n_groups)``. What few rows say is in the
    table, without an interval; what groups differ by does not rest on it. Returns plain data:
    ``groups``, ``differences``, the ``largest`` group, and those ``too_small``.
    """
    found = rows.figures()
    largest = int(np.argmax(found["weight"]))
    is_large = rows.counts >= MIN_ROWS
    for figures in (found, draws):
        _add_ratios(figures, found, largest, is_large if is_large.any() else ~is_large)
    ends = {
        name: np.where(is_large, interval(values, confidence), np.nan)
        for name, values in draws.items()
    }
    groups: list[dict[str, Any]] = [
        {
            "group": name,
            "n": int(rows.counts[g]),
            "weight": float(found["weight"][g]),
            "figures": {
                figure: cell(
                    values[g], *ends[figure][:, g].tolist(), why=_LACKING.get(figure, "no rows")
                )
                for figure, values in found.items()
                if figure not in ("weight", "off", "variance")
            },
        }
        for g, name in enumerate(names)
    ]
    differences = {}
    for name, figure in _COMPARED.items():
        if figure in found:
            known = is_large & ~np.isnan(found[figure])
            why = f"fewer than two groups of {MIN_ROWS} rows"
            if is_large.sum() > 1:
                why += f" have it ({_LACKING.get(figure, 'no rows')} in others)"
            differences[name] = cell(math.nan, why=why)
            if known.sum() > 1:
                of = _RATIOS.get(figure, figure)
                given = found[of][known], draws[of][:, known]
                differences[name] = _compare(figure, *given, confidence)
    too_small = [name for name, large in zip(names, is_large, strict=True) if not large]
    found_groups = {"largest": names[largest], "groups": groups, "too_small": too_small}
    return {**found_groups, "differences": differences}


def _compare(
    figure: str, found: FloatArray, draws: FloatArray, confidence: float
) -> dict[str, Any]:
    """Compare the two groups that are farthest apart in all rows, with an interval.

    It is about these two in each resample: the largest of differences that are drawn again and
    again would lie above 0 also where groups are alike. And who looks for the largest difference
    among many groups finds one: the interval is as much wider as it takes to hold for all pairs.
    """
    is_ratio = figure in _RATIOS
    is_from_one = figure == "standardised mean difference"  # of one group, whose own is 0
    if is_ratio and found.min() < 0:
        return cell(found.min() / found.max())  # it has no logarithm, by which they are compared
    with np.errstate(divide="ignore", invalid="ignore"):
        if is_ratio:  # a difference of logarithms
            found, draws = np.log(found), np.log(draws)
        last = -1 - found[::-1].argmin()  # of equal ones, of which argmax has the first
        if is_from_one:
            last = -1 - np.abs(found[::-1]).argmax()
            sign = 1 if found[last] >= 0 else -1
            estimate, chosen = sign * found[last], sign * draws[:, last]
        else:
            first = found.argmax()
            estimate, chosen = found[first] - found[last], draws[:, first] - draws[:, last]
        if is_ratio:  # a share of 0, whose logarithm is none, may be an end
            ends = -np.log(interval(np.exp(-chosen), confidence))[::-1]
        else:
            ends = np.array(interval(chosen, confidence))
        if np.ptp(ends) > 0 and len(found) > 2:
            # Of two groups that lie off by z and −z' standard errors, the difference does by
            # √(z² + z'²) at most.
            z, middle = _studentise(draws), np.nanmedian(chosen)
            of_all = np.hypot(np.fmax.reduce(z, axis=1), np.fmin.reduce(z, axis=1))
            if is_from_one:
                of_all = np.fmax.reduce(np.abs(z), axis=1)
            reach = [np.nanquantile(np.abs(of), confidence) for of in (_studentise(chosen), of_all)]
            ends = middle + (ends - middle) * reach[1] / reach[0]
        if is_ratio:
            estimate, ends = np.exp(-estimate), np.exp(-ends[::-1])
    return cell(estimate, *ends)


def _studentise(draws: FloatArray) -> FloatArray:
    """Return by how many standard errors each draw lies off; nan where none does."""
    known = np.isfinite(draws)
    n = known.sum(axis=0)
    off = np.where(known, draws - np.where(known, draws, 0.0).sum(axis=0) / n, 0.0)
    return np.asarray(off / np.sqrt((off**2).sum(axis=0) / n))


def _add_ratios(figures: Figures, found: Figures, largest: int, is_large: Any) -> None:
    """Add what sets a group against another: of large ones that of the highest rate, or largest."""
    weight, off = figures["weight"], figures["off"]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = weight / weight.sum(-1, keepdims=True)
        centre = np.nansum(share * off, -1, keepdims=True)
        square = np.nansum(share * (figures["variance"] + (off - centre) ** 2), -1, keepdims=True)
        figures["standardised mean difference"] = (off - off[..., [largest]]) / np.sqrt(square)
        rate, name = "selection rate", "adverse impact ratio"
        if rate not in found:
            rate, name = "mean predicted", "mean / highest"
        highest = figures[rate][..., [int(np.where(is_large, found[rate], -np.inf).argmax())]]
        figures[name] = figures[rate] / np.where(highest > 0, highest, np.nan)


def deviances(truth: FloatArray, score: FloatArray, power: float) -> FloatArray:
    """Return what each row adds to the Tweedie deviance; to the squared error where power is 0."""
    from scipy.special import xlogy

    if power == 0:
        return (truth - score) ** 2
    if not (np.isfinite(power) and power >= 1):
        raise InvalidInputError(
            f"power must be 0 or a number of at least 1, got {power!r}. "
            "0 is the squared error, 1 is Poisson, 2 is gamma; 1.5 is usual for pure premiums."
        )
    way_out = "Predict on a log scale, or raise small predictions to a floor."
    refuse_rows(score <= 0, score, "Predictions must be positive for a deviance", way_out)
    way_out = "Leave out the rows without a claim, or use a power below 2."
    refuse_rows(
        (truth == 0) & (power >= 2), truth, f"y must be positive for power {power:g}", way_out
    )
    way_out = "Check the sign, and claims that were recovered."
    refuse_rows(truth < 0, truth, "y must not be negative for a deviance", way_out)
    if power == 1:
        return np.asarray(2 * (xlogy(truth, truth / score) - truth + score))
    if power == 2:
        return 2 * (np.log(score / truth) + truth / score - 1)
    a, b = 1 - power, 2 - power
    return np.asarray(2 * (truth**b / (a * b) - truth * score**a / a + score**b / b))
