"""Proxies: what other columns tell about the sensitive one, and where prices make use of it.

`measure_proxies` predicts the sensitive column from the others and from a score. `best_estimates`
are what `fcorr.metrics.proxy_discrimination` compares prices with, and `attribute_discrimination`
shares its value out among the columns.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from fcorr._core import InvalidInputError, RandomState, draw_seed, enumerate_some, take_rows
from fcorr.audit.measure import name_columns
from fcorr.data.encode import encode, read_outcomes, read_sample_weight, read_target, use_ratings
from fcorr.data.infer import infer_schema, rate_columns
from fcorr.data.schema import Schema
from fcorr.data.tables import name_values, read_table, resolve_columns, to_numbers, to_timestamps
from fcorr.metrics import FlippedScores, bootstrap_interval, nearest_admissible
from fcorr.metrics._checks import (
    ResultTable,
    as_floats,
    check_same_length,
    encode_labels,
    not_estimable,
)
from fcorr.metrics.flips import are_measured, as_scores, find_flips, group_numbers, score_under
from fcorr.metrics.sharing import draw_orders, share_out

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Columns = str | int | Sequence[str | int]

_N_GROUPS = 20  # of a number that predicts by itself
_CREDIBLE = 2.0  # rows, of which a group's mean is believed by half

ALL, PERMUTED, SCORE = "all other columns", "all other columns, labels permuted", "the score"

# ------------------------------------------------------------------------------ strength


@dataclass(frozen=True)
class ProxyStrength:
    """How well a sensitive column is predicted from something, in rows not fitted to.

    `metric` is "R²" for numbers and "AUROC" for categories, of more than two the mean over each
    against the rest; `low` and `high` are the ends of its bootstrap interval over rows.
    """

    sensitive: str
    source: str
    metric: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ProxyTable(ResultTable):
    """What predicts the sensitive columns, single columns by strength; `notes` say what is not."""

    rows: tuple[ProxyStrength, ...]
    n_rows: int
    notes: tuple[str, ...] = ()


def measure_proxies(
    X: Any,
    sensitive: Columns,
    *,
    scores: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    cv: int = 5,
    max_rows: int = 30_000,
    n_resamples: int = 100,
    random_state: RandomState = None,
) -> ProxyTable:
    """Predict the sensitive columns from all other columns, from each alone, and from a score.

    Each row is predicted from other rows: from all columns by boosted trees, from one by the mean
    of its category or, of numbers and dates, of one of 20 groups of about as many rows each, drawn
    to the mean of all where a group is small. Where trees do no better than for labels that are
    permuted among the rows predicted, within the interval of these, no proxy is to be seen.

    Parameters
    ----------
    X : pandas, polars or pyarrow table, or two-dimensional array
        All columns, the sensitive ones among them.
    sensitive : column name, position for an array, or several
        The sensitive columns, each predicted on its own from those that are not. Numbers of more
        than 20 values are predicted as numbers, all else as categories. Rows where it is missing,
        and categories of fewer than ``2 * cv`` rows, are left out, and notes count them.
    scores : array-like of shape (n,), optional
        What a model says of the rows.
    sample_weight : array-like of shape (n,), optional
        How often each row counts (exposure).
    cv : int, default=5
        Folds of rows.
    max_rows : int, default=30_000
        Of larger tables so many rows are drawn; a note says so, with the seed.
    n_resamples : int, default=100
        Of the 95 % intervals, which are about the rows predicted, with models as they are; and how
        often labels are permuted.
    random_state : int, numpy generator or None
        An integer makes the result repeatable.

    Returns
    -------
    ProxyTable
        For each sensitive column a line for all others, for these with permuted labels, for the
        score, and for each column; nan, with a `NotEstimableWarning`, where it has one value only.

    Examples
    --------
    >>> from fcorr.data import make_proxy_bias
    >>> X, y = make_proxy_bias(500, random_state=0)
    >>> [row.source for row in measure_proxies(X, "S", n_resamples=9, random_state=0).rows][:3]
    ['all other columns', 'all other columns, labels permuted', 'Z']
    """
    read, seed = read_table(X), draw_seed(random_state)
    names = resolve_columns(read, name_columns(sensitive), "sensitive")
    others = [name for name in read.names if name not in names]
    if not others:
        raise InvalidInputError(
            f"X must have columns beside the sensitive ones, got {enumerate_some(names)} alone. "
            "Pass the whole table."
        )
    table, weight = pa.table(read.columns), read_sample_weight(sample_weight, read.n_rows)
    sources = {ALL: others}
    if scores is not None:
        given = as_floats(scores, "scores")
        check_same_length(X=weight, scores=given)
        table, sources[SCORE] = table.append_column(SCORE, pa.array(given)), [SCORE]
    sources |= {name: [name] for name in others}
    notes, rows, rng = [], np.flatnonzero(weight), np.random.default_rng(seed)
    if len(rows) > max_rows:
        notes.append(f"{max_rows} of {len(rows)} rows were drawn, with seed {seed}.")
        rows = np.sort(rng.choice(rows, max_rows, replace=False))
    lines: list[ProxyStrength] = []
    for name in names:
        targets, kept = _read_targets(name, table[name].take(rows), cv, notes)
        metric, of_rows = ("AUROC" if targets.dtype == bool else "R²"), weight[rows[kept]]
        of_rows = of_rows / (of_rows.mean() if len(kept) else 1.0)
        if not targets.size:
            of_all = (ALL, PERMUTED, *list(sources)[1:])
            lines += [ProxyStrength(name, source, metric, *(np.nan,) * 3) for source in of_all]
            continue
        truth, folds, found = targets.astype(np.float64), _split(targets, cv, seed), []
        options: Any = {"sample_weight": of_rows, "n_resamples": n_resamples, "random_state": seed}
        for source, columns in sources.items():
            seen = table.select(columns).take(rows[kept])
            predicted = _predict_held_out(seen, targets, of_rows, folds, seed)
            compare = _mean_auroc if metric == "AUROC" else _r2
            each = bootstrap_interval(compare, truth, predicted, folds, **options)
            found += [ProxyStrength(name, source, metric, each.estimate, each.low, each.high)]
            if source == ALL:
                nothing = [
                    _permuted(metric, truth[own], predicted[own], of_rows[own], n_resamples, rng)
                    for own in (folds == fold for fold in np.unique(folds))
                ]
                ends = np.mean(nothing, axis=0).tolist()
                found += [ProxyStrength(name, PERMUTED, metric, *ends)]
        n_first = len(found) - len(others)
        lines += [*found[:n_first], *sorted(found[n_first:], key=lambda line: -line.value)]
    return ProxyTable(tuple(lines), len(rows), tuple(notes))


def _read_targets(
    name: str, values: pa.ChunkedArray, cv: int, notes: list[str]
) -> tuple[NDArray[Any], Rows]:
    """Return what is to be predicted, a column for each category, and of which rows."""
    labels = encode_labels(values, f"the sensitive column {name!r}")
    known = [label for label in labels.categories if label is not None]
    counts = np.bincount(labels.codes, minlength=len(known))
    if n_missing := int(counts[len(known) :].sum()):
        notes.append(f"{n_missing} rows without {name!r} are left out.")
    if are_measured(known):
        kept = np.flatnonzero(labels.codes < len(known))
        return to_numbers(name, values)[kept, None], kept
    least = 2 * cv
    enough = [code for code in range(len(known)) if counts[code] >= least]
    if few := [f"{known[c]} (n={counts[c]})" for c in range(len(known)) if c not in enough]:
        left_out = f"of fewer than {least} rows are left out: {enumerate_some(few)}."
        notes.append(f"Categories of {name!r} {left_out}")
    kept = np.flatnonzero(np.isin(labels.codes, enough))
    if len(enough) < 2:
        notes.append(f"{name!r} has fewer than two categories to predict.")
        not_estimable(f"measure_proxies is not estimable: {notes[-1]}")
        return np.empty((0, 0), dtype=bool), kept
    # One of two categories says it all.
    return labels.codes[kept, None] == (enough if len(enough) > 2 else enough[1:]), kept


def _predict_held_out(
    X: pa.Table, targets: NDArray[Any], weight: Floats, folds: Rows, seed: int
) -> Floats:
    """Predict rows from others: from several columns by trees, from one by the means of groups."""
    predicted = np.empty(targets.shape)
    is_one = X.num_columns == 1
    known: Any = _group(X) if is_one else _describe(X)
    for fold in np.unique(folds):
        own, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        for k, target in enumerate(targets.T):
            y, w = target[others], weight[others]
            if not is_one:
                predicted[own, k] = _fit_trees(X.take(others), y, w, known, seed)(X.take(own))
                continue
            mean = np.average(y.astype(np.float64), weights=w)
            size, sums = (
                np.bincount(known[others], each, minlength=known.max() + 1)
                for each in (w, w * (y - mean))
            )
            predicted[own, k] = mean + (sums / (size + _CREDIBLE))[known[own]]
    return predicted


def _group(X: pa.Table) -> Rows:
    """Return each row's group: its category or, of numbers and dates, that of its size."""
    name, column = X.column_names[0], X[0]
    if name_values(column.type) == "dates":
        column = to_timestamps(name, column).cast(pa.int64())
    return group_numbers(encode_labels(column, name), column, _N_GROUPS).codes


def _split(targets: NDArray[Any], cv: int, seed: int) -> Rows:
    """Return each row's fold; every label is in all of them, numbers are not looked at."""
    strata = targets
    if targets.ndim > 1:
        strata = targets.argmax(1) + targets.any(1) if targets.dtype == bool else targets[:, 0]
    kind, folds = KFold if strata.dtype.kind == "f" else StratifiedKFold, np.empty(len(strata), int)
    parts = kind(cv, shuffle=True, random_state=seed).split(strata[:, None], strata)
    for fold, (_, rows) in enumerate(parts):
        folds[rows] = fold
    return folds


def _permuted(
    metric: str,
    truth: Floats,
    predicted: Floats,
    weight: Floats,
    n_draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Compare one fold's predictions with permuted labels; return mean and ends of 95 %.

    The mean of these ends over folds is where the mean of all lies if folds go up and down
    together. They hardly do, so that it is wide. But each model was fitted to the labels of the
    others' folds, and an interval for folds on their own would find proxies where there are none.
    Of numbers it is the squared correlation, R² at its best: R² itself would be far below 0.
    """
    compare = _mean_auroc if metric == "AUROC" else _squared_correlation
    one = np.zeros(len(truth), dtype=np.intp)
    drawn = [
        compare(rng.permutation(truth), predicted, one, sample_weight=weight)
        for _ in range(n_draws)
    ]
    return np.array([np.mean(drawn), *np.quantile(drawn, [0.025, 0.975])])


def _squared_correlation(
    truth: Floats, predicted: Floats, _folds: Rows, *, sample_weight: Floats
) -> float:
    (a, b), (_, c) = np.cov(truth[:, 0], predicted[:, 0], aweights=sample_weight)
    return float(b * b / (a * c)) if a * c else 0.0


def _mean_auroc(truth: Floats, predicted: Floats, folds: Rows, *, sample_weight: Floats) -> float:
    """Average areas, ties as one half, of pairs of rows that one model predicts.

    A fold with more positives than others has a model that saw fewer: from fold to fold,
    predictions would look worse than chance. scikit-learn's checks take longer than the work.
    """
    areas = []
    for of, scores in zip(truth.T, predicted.T, strict=True):
        below = pairs = 0.0
        for fold in np.unique(folds):
            own = folds == fold
            block = np.unique(scores[own], return_inverse=True)[1]
            weights = ((sample_weight * each)[own] for each in (of, 1 - of))
            positive, negative = (np.bincount(block, each) for each in weights)
            below += np.sum(positive * (np.cumsum(negative) - negative / 2))
            pairs += positive.sum() * negative.sum()
        areas.append(below / pairs if pairs else np.nan)  # a resample may lack a category
    return float(np.mean(areas))


def _r2(truth: Floats, predicted: Floats, _folds: Rows, *, sample_weight: Floats) -> float:
    return float(r2_score(truth, predicted, sample_weight=sample_weight))


def _describe(X: Any) -> Schema:
    with warnings.catch_warnings(action="ignore"):  # of columns that are constant or look like keys
        return infer_schema(read_table(X), missing_numeric="category")


def _fit_trees(
    X: Any, y: NDArray[Any], weight: Floats, schema: Schema, seed: int
) -> Callable[[Any], Floats]:
    """Fit boosted trees to any frame, and return what predicts: of booleans, the chance of True.

    Categories and missing values are taken as they are; columns of more than 50 categories become
    numbers, as in :func:`~fcorr.data.infer.rate_columns`.
    """
    table, is_class = read_table(X), y.dtype == bool
    outcomes = read_outcomes(y, weight, np.ones(table.n_rows))
    with warnings.catch_warnings(action="ignore"):  # what some rows lack of the table is no news
        link: Any = "sigmoid" if is_class else "identity"
        rated, held_out = rate_columns(table, schema, outcomes, link=link, seed=seed)
        trained = use_ratings(encode(table, rated), rated, held_out)
    trees = (HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor)(
        max_iter=100,
        max_leaf_nodes=15,
        early_stopping=False,
        categorical_features=np.arange(len(rated.categorical)),
        random_state=seed,
    )
    is_weighted = bool((weight != weight[0]).any())  # weighted bins take longer than all the rest
    rows = np.hstack([trained.codes, trained.numbers])
    with threadpool_limits(1, user_api="openmp"):  # on small tables threads wait for each other
        trees.fit(rows, y, sample_weight=weight if is_weighted else None)

    def predict(X: Any) -> Floats:
        with warnings.catch_warnings(action="ignore"):
            encoded = encode(read_table(X), rated)
        rows = np.hstack([encoded.codes, encoded.numbers])
        return trees.predict_proba(rows)[:, 1] if is_class else trees.predict(rows)

    return predict


# ------------------------------------------------------------------------------ best estimates


@dataclass(frozen=True, eq=False)
class BestEstimates(FlippedScores):
    """Best estimates of rows in each group, by models that were fitted to other rows.

    ``predictors[folds[n]]`` estimated row n: it takes a table like X, and returns a column of
    estimates for each of `categories`.
    """

    predictors: tuple[Callable[[Any], Floats], ...] = ()
    folds: Rows = field(default_factory=lambda: np.empty(0, dtype=np.intp))


def best_estimates(
    X: Any,
    y: ArrayLike,
    sensitive: Columns,
    *,
    estimator: Any = None,
    sample_weight: ArrayLike | None = None,
    cv: int = 5,
    random_state: RandomState = None,
) -> BestEstimates:
    """Estimate the outcome of every row in every group, by models that use the sensitive columns.

    Parameters
    ----------
    y : array-like of shape (n,)
        The outcome: numbers, or two classes, of the second of which the estimates are
        probabilities. For claims with an exposure, ``claims / exposure``.
    sensitive : column name, position for an array, or several
        What makes the groups: values that occur, and of several columns their combinations.
        Numbers of more than 20 values make 10 groups, as in :func:`fcorr.metrics.flip_scores`.
    estimator : scikit-learn classifier or regressor, optional
        What is fitted to `X`; by default boosted trees, which classify where y has two values.
    X, sample_weight, cv, random_state
        As in :func:`measure_proxies`.

    Returns
    -------
    BestEstimates
        `FlippedScores`, for :func:`fcorr.metrics.proxy_discrimination`.

    Examples
    --------
    >>> from fcorr.data import make_proxy_bias
    >>> from fcorr.metrics import proxy_discrimination
    >>> X, y = make_proxy_bias(500, random_state=0)
    >>> estimates = best_estimates(X, y, "S", random_state=0)
    >>> proxy_discrimination(estimates.scores.mean(axis=1), estimates)  # discrimination-free
    0.0
    """
    schema, seed, names = _describe(X), draw_seed(random_state), list(name_columns(sensitive))
    target, weight = read_target(y, schema.n_rows), read_sample_weight(sample_weight, schema.n_rows)
    groups = find_flips(X, names)
    labels, counts = groups.categories, np.bincount(groups.original)
    occurs = np.flatnonzero(counts)
    if small := [f"{labels[j]} (n={counts[j]})" for j in occurs if counts[j] < cv]:
        raise InvalidInputError(
            f"Each group must have at least cv={cv} rows, so that every model has seen it, got "
            f"{enumerate_some(small)}. Join small groups with others, drop their rows, or lower cv."
        )
    classes = np.unique(target)
    is_class = len(classes) == 2 if estimator is None else is_classifier(estimator)
    if is_class and len(classes) != 2:
        raise InvalidInputError(
            f"y must have two classes, got {enumerate_some(classes)}. Pass (y == label) for the "
            "class that is priced."
        )

    def fit(rows: Rows) -> Callable[[Any], Floats]:
        seen, of_rows = take_rows(X, rows), weight[rows]
        if estimator is None:
            y = target == classes[1] if is_class else target
            score = _fit_trees(seen, y[rows], of_rows, schema, seed)
        else:
            weighted = {} if sample_weight is None else {"sample_weight": of_rows}
            model = clone(estimator).fit(seen, target[rows], **weighted)
            score = model.predict_proba if is_class else model.predict
        return lambda X: score_under(groups, score, X)[:, occurs]

    folds, scores = _split(groups.original, cv, seed), np.empty((len(target), len(occurs)))
    predictors = tuple(fit(np.flatnonzero((folds != k) & (weight > 0))) for k in range(cv))
    for k, predict in enumerate(predictors):
        scores[folds == k] = predict(take_rows(X, np.flatnonzero(folds == k)))
    original = np.searchsorted(occurs, groups.original)
    return BestEstimates(
        tuple(labels[j] for j in occurs), original, scores, None, predictors, folds
    )


# ------------------------------------------------------------------------------ attribution


@dataclass(frozen=True)
class FeaturePart:
    """A column's part in proxy discrimination, and the standard error of its sampling."""

    feature: str
    part: float
    error: float


@dataclass(frozen=True)
class Attribution(ResultTable):
    """Parts of the columns in proxy discrimination, the largest first; they add up to `total`."""

    rows: tuple[FeaturePart, ...]
    total: float


def attribute_discrimination(
    predict: Callable[[Any], Any],
    X: Any,
    estimates: BestEstimates,
    *,
    sample_weight: ArrayLike | None = None,
    n_samples: int = 20,
    n_rows: int = 1_000,
    random_state: RandomState = None,
) -> Attribution:
    """Share proxy discrimination out among the columns: which of them stand in for the group.

    The difference Λ(x) between a price and the nearest admissible one is shared out by Shapley
    values: in random orders, one column after another takes a person's value in place of another
    person's. A column's part is the covariance of what it adds with Λ, over the variance of prices.
    Parts can be negative, where a column makes up for others.

    Parameters
    ----------
    predict : callable
        The prices of a table like `X`, as in :func:`fcorr.metrics.flip_scores`.
    X, estimates : table and BestEstimates
        Rows, and what :func:`best_estimates` made of them.
    n_samples : int, default=20
        Number of orders, even; each second one is the reverse of the one before.
    n_rows : int, default=1_000
        Rows drawn for each two orders, by their weight.
    sample_weight, random_state
        As in :func:`measure_proxies`.

    Returns
    -------
    Attribution
        A part for each column, scaled to add up to ``proxy_discrimination``, and its standard error
        over the pairs of orders.

    Notes
    -----
    The paper conditions on the columns that are known, which takes a model of every column given
    any others, and shares out ``Var(E[Λ|X_known])``. Here unknown columns are those of other rows,
    whatever the known ones are: the same where columns are independent. A column that neither
    prices nor estimates read has no part here; there it has one if it goes with others.
    """
    names, seed = read_table(X).names, draw_seed(random_state)
    orders, rng = draw_orders(len(names), n_samples, seed), np.random.default_rng(seed)
    prices = as_scores(predict(X), len(estimates))
    weight = read_sample_weight(sample_weight, len(estimates))
    nearest = nearest_admissible(prices, estimates, sample_weight=weight)
    v = np.array([nearest.weights.get(label, 0.0) for label in estimates.categories])

    def draw(weight: Floats) -> Any:
        return take_rows(X, rng.choice(len(weight), n_rows, p=weight / weight.sum()))

    def sample(pair: int) -> Floats:
        """Return each column's covariance with the difference, by a pair of orders."""
        fold = pair % len(estimates.predictors)
        own, other = draw(weight * (estimates.folds == fold)), draw(weight)

        def difference(X: Any) -> Floats:
            admissible = nearest.constant + estimates.predictors[fold](X) @ v
            return as_scores(predict(X), n_rows) - admissible

        def appear(order: list[int]) -> Iterator[Floats]:
            for n_known in range(len(order) + 1):
                yield difference(exchange(other, own, order[:n_known]))

        (changes,) = share_out(appear, orders[2 * pair : 2 * pair + 2])
        return np.mean(changes * difference(own)[:, None], axis=0)

    found = np.array([sample(pair) for pair in range(n_samples // 2)])
    if nearest.discrimination == 0:
        found[:] = 0  # of rounding no column has a part
    found *= nearest.discrimination / (found.mean(0).sum() or 1.0)
    # Parts of a fixed whole: what all of them vary by together is scaled away.
    share = found.mean(0) / (nearest.discrimination or 1.0)
    error = (found - share * found.sum(1, keepdims=True)).std(0, ddof=1) / np.sqrt(len(found))
    columns = zip(names, found.mean(0).tolist(), error.tolist(), strict=True)
    rows = sorted((FeaturePart(*column) for column in columns), key=lambda row: -row.part)
    return Attribution(tuple(rows), nearest.discrimination)


def exchange(X: Any, other: Any, positions: list[int]) -> Any:
    """Return a table with columns of another one of as many rows."""
    if isinstance(X, np.ndarray):
        exchanged = X.copy()
        exchanged[:, positions] = other[:, positions]
        return exchanged
    table, columns = nw.from_native(X, eager_only=True), nw.from_native(other, eager_only=True)
    chosen = (columns.get_column(columns.columns[position]) for position in positions)
    return table.with_columns(*chosen).to_native()
