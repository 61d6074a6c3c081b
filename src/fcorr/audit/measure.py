"""Measurements of one model on rows: performance, flips, groups, and its certificate in numbers."""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import log_loss

from fcorr import metrics
from fcorr._core import (
    InvalidInputError,
    NotEstimableWarning,
    enumerate_some,
    errors_about,
    find_counted,
    numbered_by,
    take_rows,
)
from fcorr.data.encode import read_exposure, read_sample_weight, read_target
from fcorr.data.tables import read_table, resolve_columns
from fcorr.estimators import FCorrClassifier, FCorrRegressor
from fcorr.metrics import FlippedScores

Estimator = FCorrClassifier | FCorrRegressor
Floats = NDArray[np.float64]
Metrics = dict[str, float]
Task = Literal["two classes", "several classes", "regression"]
View = Callable[[Any], Any]
"""What a model sees of a table."""
Score = Callable[[Any], Floats]
FlipsOf = Callable[[Score], FlippedScores]

MAIN_METRIC: dict[Task, str] = {
    "two classes": "AUROC",
    "several classes": "log loss",
    "regression": "deviance",
}
"""What performance means in one number."""

LOWER_IS_BETTER = ("log loss", "deviance", "RMSE", "MAE")

# ------------------------------------------------------------------------------ rows


@dataclass(frozen=True)
class AuditRows:
    """Rows that models are measured on, without those of weight 0; read once for all models."""

    X: Any
    y: NDArray[Any]
    weight: Floats | None  # of mean 1
    sensitive: tuple[str | int, ...]  # columns, as names or positions
    groups: dict[str, list[Any]]
    """Each row's group, for each sensitive column and, where there are several, for all of them
    together. Measurements such as an age are grouped as :func:`fcorr.metrics.flip_scores` does."""
    counted: NDArray[np.intp] | None = None
    """Which rows of the table these are, where some are left out."""


def see_all(X: Any) -> Any:
    """View a table unchanged."""
    return X


def check_estimator(estimator: Any, caller: str, for_others: str) -> None:
    """Refuse a model that is none of ours."""
    if not isinstance(estimator, FCorrClassifier | FCorrRegressor):
        raise InvalidInputError(
            f"{caller} is about FCorrClassifier and FCorrRegressor, got "
            f"{type(estimator).__name__}. {for_others}"
        )


def read_rows(rows: Sequence[Any], sensitive: Any, argument: str) -> AuditRows:
    """Read ``(X, y)`` or ``(X, y, sample_weight)``, and find the groups.

    Examples
    --------
    >>> X = np.array([[0, 1.5], [1, 2.5], [1, 3.5]])
    >>> read_rows((X, [0, 1, 1]), 0, "test").groups
    {'0': [0.0, 1.0, 1.0]}
    """
    given = unpack(rows, argument)
    columns = name_columns(sensitive)
    counted = find_counted(*given)
    X, y, sample_weight = given if counted is None else (take_rows(v, counted) for v in given)
    with errors_about(argument), numbered_by(counted):
        n_rows = read_table(X).n_rows
        weight = None if sample_weight is None else read_sample_weight(sample_weight, n_rows)
        target = read_target(y, n_rows)

        def find_groups(*of: str | int) -> list[Any]:
            # Which rows go together has nothing to do with a model: any scores will do.
            return metrics.flip_scores(lambda X: np.zeros(n_rows), X, list(of)).groups

        groups = {str(column): find_groups(column) for column in columns}
        if len(columns) > 1:
            groups[" × ".join(groups)] = find_groups(*columns)
    return AuditRows(X, target, weight, columns, groups, counted)


def unpack(rows: Sequence[Any], argument: str) -> tuple[Any, ArrayLike, ArrayLike | None]:
    """Take ``(X, y)`` or ``(X, y, sample_weight)`` apart."""
    if not isinstance(rows, tuple | list) or len(rows) not in (2, 3):
        raise InvalidInputError(
            f"{argument} must be (X, y) or (X, y, sample_weight), got {type(rows).__name__}. "
            f"Pass {argument}=(X, y)."
        )
    X, y, *weight = rows
    return X, y, weight[0] if weight else None


def name_columns(sensitive: Any) -> tuple[str | int, ...]:
    """Return the sensitive columns of an estimator, or say that it has none."""
    columns = tuple(sensitive) if isinstance(sensitive, list | tuple) else (sensitive,)
    if sensitive is None or not columns:
        raise InvalidInputError(
            f"The estimator must name sensitive columns, got sensitive={sensitive!r}. Make it with "
            "sensitive='race', say: without such a column there is nothing to flip."
        )
    return columns


# ------------------------------------------------------------------------------ results


@dataclass(frozen=True)
class Measured:
    """What was measured of one model; nan is what the rows cannot give.

    Attributes
    ----------
    task : str
        "two classes", "several classes" or "regression".
    performance : dict
        AUROC, AUPRC and F1; accuracy and log loss; or deviance, RMSE, MAE and the normalised Gini
        index, per unit of exposure and weighted by it where the model knows one.
    flip : dict
        AvgIF, gaps, the largest change of a prediction and the share of decisions flipped, all
        sensitive columns flipped together. Of several classes, the largest of the classes.
    groups : dict of dicts
        For each grouping DPD, EqOdd and EqOpp, of several classes the largest; of a regression the
        difference of mean predictions, and with a log link that of actual over expected.
    exact : bool
        Whether no flip can change any prediction, which the weights prove.
    search : float or None
        The largest change that a search over all inputs found; the worst case may be larger. None
        where there was no search.
    population : float or None
        The change that at most 1 % of the population would exceed, with 95 % confidence; None
        where the rows are too few to tell.
    """

    task: Task
    performance: Metrics
    flip: Metrics
    groups: dict[str, Metrics]
    exact: bool = False
    search: float | None = None
    population: float | None = None

    def flat(self) -> Metrics:
        """List all numbers under one name each; None, as of a record, is nan."""
        found: dict[str, float | None] = {**self.performance, **self.flip, **self.flat_groups()}
        found |= {"found by search": self.search, "bound for 99 %": self.population}
        return {name: math.nan if value is None else value for name, value in found.items()}

    def flat_groups(self) -> Metrics:
        """List group metrics by metric, and by grouping where there are several.

        Examples
        --------
        >>> groups = {"sex": {"DPD": 0.1}, "race": {"DPD": 0.2}}
        >>> Measured("two classes", {}, {}, groups).flat_groups()
        {'DPD, sex': 0.1, 'DPD, race': 0.2}
        """
        return {
            metric if len(self.groups) == 1 else f"{metric}, {grouping}": value
            for grouping, differences in self.groups.items()
            for metric, value in differences.items()
        }


def measure(
    estimator: Estimator,
    rows: AuditRows,
    *,
    view: View = see_all,
    threshold: float | None = None,
) -> Measured:
    """Measure a fitted model, and certify it on the rows.

    Parameters
    ----------
    estimator : FCorrClassifier or FCorrRegressor
        The model.
    rows : AuditRows
        The rows, from :func:`read_rows`.
    view : callable, optional
        What the model sees of a table; by default all of it.
    threshold : float, optional
        Of two classes, the probability from which on the second is decided; by default the
        model's own.
    """
    with numbered_by(rows.counted):
        return _measure(estimator, rows, view, threshold)


def _measure(
    estimator: Estimator, rows: AuditRows, view: View, threshold: float | None
) -> Measured:
    def flips_of(score: Score) -> FlippedScores:
        return metrics.flip_scores(lambda X: score(view(X)), rows.X, list(rows.sensitive))

    if isinstance(estimator, FCorrRegressor):
        measured = _measure_regression(estimator, rows, flips_of)
    else:
        classes = estimator.classes_.tolist()
        unknown = [label for label in np.unique(rows.y).tolist() if label not in classes]
        if unknown:
            raise InvalidInputError(
                f"y must hold classes of the training table ({enumerate_some(classes)}), got "
                f"{enumerate_some(unknown)}. Correct or drop these rows."
            )
        if len(classes) > 2:
            measured = _measure_several_classes(estimator, rows, flips_of)
        else:
            measured = _measure_two_classes(estimator, rows, flips_of, threshold)
    if not estimator.schema_.sensitive:  # no flip can change what a model never sees
        return replace(measured, exact=True, search=0.0, population=0.0)
    certificate = estimator.certificate(rows.X)
    assert certificate.population is not None  # there are rows
    return replace(
        measured,
        exact=certificate.exact,
        search=certificate.search,
        population=certificate.population.epsilon,
    )


def _measure_two_classes(
    estimator: FCorrClassifier, rows: AuditRows, flips_of: FlipsOf, threshold: float | None
) -> Measured:
    """Measure by the probabilities of the second class, which is decided from a threshold on."""
    threshold = estimator.threshold_ if threshold is None else threshold
    assert threshold is not None  # two classes have one
    weight: dict[str, Any] = {"sample_weight": rows.weight}
    flips = flips_of(lambda X: estimator.predict_proba(X)[:, 1])
    truth = (rows.y == estimator.classes_[1]).astype(int)
    decisions = (flips.factual >= threshold).astype(int)
    return Measured(
        "two classes",
        performance={
            "AUROC": float(metrics.roc_auc_score(truth, flips.factual, **weight)),
            "AUPRC": float(metrics.average_precision_score(truth, flips.factual, **weight)),
            "F1": float(metrics.f1_score(truth, decisions, zero_division=0.0, **weight)),
        },
        flip={
            "AvgIF": metrics.average_individual_fairness(flips, **weight),
            "F1 gap": metrics.f1_gap(truth, flips, threshold=threshold, **weight),
            "AUROC gap": metrics.auroc_gap(truth, flips, **weight),
            "AUPRC gap": metrics.auprc_gap(truth, flips, **weight),
            "largest change": metrics.flip_changes(flips, **weight)["max"],
            "decisions flipped": metrics.decisions_flipped(flips, threshold, **weight),
        },
        groups={
            name: _decision_differences(truth, decisions, groups, rows.weight)
            for name, groups in rows.groups.items()
        },
    )


def _measure_several_classes(
    estimator: FCorrClassifier, rows: AuditRows, flips_of: FlipsOf
) -> Measured:
    """Measure by the probabilities of all classes; of what each class has, the largest."""
    weight: dict[str, Any] = {"sample_weight": rows.weight}
    classes = estimator.classes_

    def score(k: int) -> Score:
        return lambda X: estimator.predict_proba(X)[:, k]

    flips = [flips_of(score(k)) for k in range(len(classes))]
    probabilities = np.column_stack([of_class.factual for of_class in flips])
    chosen = probabilities.argmax(axis=1)
    under_flips = np.stack([of_class.scores for of_class in flips]).argmax(axis=0)
    changed = (under_flips != chosen[:, None]).any(axis=1)
    groups = {}
    for name, grouping in rows.groups.items():
        by_class = [
            _decision_differences(
                (rows.y == label).astype(int), (chosen == k).astype(int), grouping, rows.weight
            )
            for k, label in enumerate(classes)
        ]
        # numpy's max keeps a nan, where the built-in one may lose it.
        groups[name] = {
            metric: float(np.max([found[metric] for found in by_class])) for metric in by_class[0]
        }
    return Measured(
        "several classes",
        performance={
            "accuracy": float(metrics.accuracy_score(rows.y, classes[chosen], **weight)),
            "log loss": float(log_loss(rows.y, probabilities, labels=classes, **weight)),
        },
        flip={
            "AvgIF": max(metrics.average_individual_fairness(each, **weight) for each in flips),
            "largest change": max(metrics.flip_changes(each, **weight)["max"] for each in flips),
            "decisions flipped": float(np.average(changed, weights=rows.weight)),
        },
        groups=groups,
    )


def _decision_differences(
    truth: NDArray[Any], decisions: NDArray[Any], groups: list[Any], weight: Floats | None
) -> Metrics:
    by_group: dict[str, Any] = {"sensitive_features": groups, "sample_weight": weight}
    return {
        "DPD": metrics.demographic_parity_difference(truth, decisions, **by_group),
        "EqOdd": metrics.equalized_odds_difference(truth, decisions, **by_group),
        "EqOpp": metrics.equal_opportunity_difference(truth, decisions, **by_group),
    }


def _measure_regression(estimator: FCorrRegressor, rows: AuditRows, flips_of: FlipsOf) -> Measured:
    """Measure by the predictions, per unit of exposure and weighted by it where there is one.

    The deviance is that of the distribution which the objective stands for; with all objectives
    but "mse" predictions are positive, so that they have ratios.
    """
    y, row_weight = rows.y.astype(np.float64), rows.weight
    if estimator.exposure is not None:
        table = read_table(rows.X)
        (name,) = resolve_columns(table, [estimator.exposure], "exposure")
        exposure = read_exposure(table, name)
        y, row_weight = y / exposure, exposure * (1.0 if row_weight is None else row_weight)
    weight: dict[str, Any] = {"sample_weight": row_weight}
    flips = flips_of(estimator.predict_rate)
    predicted, objective = flips.factual, estimator.objective_
    if objective == "mse":  # that of the normal distribution
        deviance = float(np.average((y - predicted) ** 2, weights=row_weight))
    else:
        power = {"poisson": 1.0, "gamma": 2.0}.get(objective, float(estimator.tweedie_power))
        deviance = metrics.tweedie_deviance(y, predicted, power=power, **weight)
    groups = {}
    for name, grouping in rows.groups.items():
        by_group: dict[str, Any] = {"sensitive_features": grouping, **weight}
        groups[name] = {"DPD": metrics.demographic_parity_difference(None, predicted, **by_group)}
        if objective != "mse":
            actual = metrics.group_rates(None, y, **by_group)
            expected = metrics.group_rates(None, predicted, **by_group)
            ratios = [
                of_y.mean_prediction / of_model.mean_prediction
                for of_y, of_model in zip(actual, expected, strict=True)
            ]
            groups[name]["A/E gap"] = np.ptp(ratios).item() if len(ratios) > 1 else math.nan
    return Measured(
        "regression",
        performance={
            "deviance": deviance,
            "RMSE": float(metrics.root_mean_squared_error(y, predicted, **weight)),
            "MAE": float(metrics.mean_absolute_error(y, predicted, **weight)),
            "Gini": metrics.normalized_gini_score(y, predicted, **weight),
        },
        flip={
            "AvgIF": metrics.average_individual_fairness(flips, **weight),
            "RMSE gap": metrics.rmse_gap(y, flips, **weight),
            "MAE gap": metrics.mae_gap(y, flips, **weight),
            "largest change": metrics.flip_changes(flips, **weight)["max"],
        },
        groups=groups,
    )


@contextmanager
def collect_warnings() -> Iterator[tuple[list[str], dict[str, type[Warning]]]]:
    """Catch warnings, so that a hundred alike runs do not repeat one a hundred times.

    When it ends, the list has notes on what is not estimable, or not for all groups, and the dict
    all other texts with their categories; each once.
    """
    notes: list[str] = []
    others: dict[str, type[Warning]] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes, others
    for entry in caught:
        text = str(entry.message)
        if not issubclass(entry.category, NotEstimableWarning):
            others[text] = entry.category
        elif text not in notes:
            notes.append(text)
