"""Measurements of one model on rows: performance, flips, groups, and its certificate in numbers.

Any model can be measured: `open_model` makes a `Subject` of it, which says what its scores are.
"""

import json
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fcorr import metrics
from fcorr._core import (
    InvalidInputError,
    NotEstimableWarning,
    check_argument,
    enumerate_some,
    errors_about,
    find_counted,
    is_number,
    numbered_by,
    take_rows,
)
from fcorr.data.encode import (
    read_exposure,
    read_sample_weight,
    read_target,
    unpack_rows,
    warn_of_other_order,
)
from fcorr.data.tables import name_values, read_table, resolve_columns, to_numbers, to_timestamps
from fcorr.metrics import FlippedScores, flip_scores
from fcorr.metrics._checks import Labels, check_same_length
from fcorr.metrics.flips import check_values, group_rows
from fcorr.metrics.group import deviances

if TYPE_CHECKING:
    from fcorr.estimators.model_file import Estimator

Floats = NDArray[np.float64]
Metrics = dict[str, float]
Task = Literal["two classes", "several classes", "regression"]

MAIN_METRIC: dict[Task, str] = {
    "two classes": "AUROC",
    "several classes": "log loss",
    "regression": "deviance",
}
"""What performance means in one number."""

LOWER_IS_BETTER = ("log loss", "deviance", "RMSE", "MAE")

MIN_NAMED = 10
"""Training rows that a category needs to be named in an audit: of fewer it might be a person."""

# ------------------------------------------------------------------------------ rows


@dataclass(frozen=True)
class AuditRows:
    """Rows that models are measured on, without those of weight 0; read once for all models."""

    X: Any
    y: NDArray[Any] | None
    weight: Floats | None  # of mean 1, times the exposure
    sensitive: tuple[str | int, ...]  # columns, as names or positions
    groups: dict[str, Labels]
    """Each row's group, for each sensitive column and, where there are several, for all of them
    together. Measurements such as an age are grouped as :func:`fcorr.metrics.flip_scores` does."""
    exposure: Floats | None = None
    counted: NDArray[np.intp] | None = None
    """Which rows of the table these are, where some are left out."""

    def __len__(self) -> int:
        return len(next(iter(self.groups.values())).codes)

    def groups_of(self, name: str) -> list[Any]:
        """List each row's label in a grouping."""
        labels = self.groups[name]
        return [labels.categories[code] for code in labels.codes]

    def take(self, chosen: NDArray[np.intp]) -> "AuditRows":
        """Return some of the rows."""
        columns = {"y": self.y, "weight": self.weight, "exposure": self.exposure}
        taken: dict[str, Any] = {n: None if x is None else x[chosen] for n, x in columns.items()}
        groups = {n: Labels(g.categories, g.codes[chosen]) for n, g in self.groups.items()}
        counted = chosen if self.counted is None else self.counted[chosen]
        X = take_rows(self.X, chosen)
        return replace(self, X=X, groups=groups, counted=counted, **taken)


def is_ours(model: Any) -> bool:
    """Tell whether a model is one of fcorr's, without importing them."""
    bases = {(each.__module__, each.__qualname__) for each in type(model).__mro__}
    return ("fcorr.estimators.base", "BaseFCorr") in bases


def read_facts(model: Any) -> dict[str, Any]:
    """Return what a model says of its data: sensitive columns, exposure, power; none of others'."""
    if is_ours(model):
        power = model._deviance_power if hasattr(model, "objective_") else None
        return {"sensitive": model.sensitive, "exposure": model.exposure, "power": power}
    told = model.get_modelmeta() if hasattr(model, "get_inputs") else None  # by onnxruntime
    if told is None or told.producer_name != "fcorr":  # what others write may mean anything
        return {}
    schema, target = (json.loads(told.custom_metadata_map[name]) for name in ("schema", "target"))
    facts = {name: schema.get(name) or None for name in ("sensitive", "exposure")}
    return facts | {"power": target.get("power")}


def read_rows(
    rows: Sequence[Any], sensitive: Any, argument: str = "", exposure: Any = None
) -> AuditRows:
    """Read ``(X, y)`` or ``(X, y, sample_weight)``, and find the groups.

    ``argument`` is what errors call the rows; ``exposure`` a column of X, or one number per row.
    """
    given = (*rows, None) if len(rows) == 2 else rows
    columns = name_columns(sensitive)
    counted = find_counted(*given)
    X, y, sample_weight = given if counted is None else (take_rows(v, counted) for v in given)
    if counted is not None and not isinstance(exposure, str | int | None):
        exposure = take_rows(exposure, counted)
    with errors_about(argument) if argument else nullcontext(), numbered_by(counted):
        warn_of_other_order(X, y=y, sample_weight=sample_weight)
        table = read_table(X)
        weight = None if sample_weight is None else read_sample_weight(sample_weight, table.n_rows)
        target = None if y is None else read_target(y, table.n_rows)
        exposures = None
        if exposure is not None:
            if not isinstance(exposure, str | int):
                numbers = np.asarray(exposure, dtype=np.float64)
                check_same_length(X=range(table.n_rows), exposure=numbers)
                table, exposure = read_table(numbers[:, None]).renamed(["exposure"]), "exposure"
            exposures = read_exposure(table, *resolve_columns(table, [exposure], "exposure"))
            weight = exposures * (1.0 if weight is None else weight)
        groups = {str(column): group_rows(X, column) for column in columns}
        if len(columns) > 1:
            groups[" × ".join(groups)] = group_rows(X, list(columns))
    return AuditRows(X, target, weight, columns, groups, exposures, counted)


def read_test_rows(estimator: "Estimator", rows: Sequence[Any], argument: str) -> AuditRows:
    """Read rows that a model of ours is measured on; refuse those that tell nothing of flips."""
    X, y, weight = unpack_rows(rows, argument)
    if y is None:
        raise InvalidInputError(f"{argument} must have a target, got y=None. Pass (X, y).")
    found = read_rows((X, y, weight), estimator.sensitive, argument, estimator.exposure)
    with errors_about(argument):
        for column in map(str, found.sensitive):
            check_values(found.groups[column].categories, f"the sensitive column {column!r}")
    return found


def name_columns(sensitive: Any) -> tuple[str | int, ...]:
    """Return the sensitive columns, or say that there are none."""
    columns = tuple(sensitive) if isinstance(sensitive, list | tuple) else (sensitive,)
    if not columns or not all(isinstance(column, str | Integral) for column in columns):
        got = sensitive if isinstance(sensitive, list | tuple | None) else type(sensitive).__name__
        raise InvalidInputError(
            f"sensitive must name columns of X, got {got!r}. Write sensitive='sex', say: "
            "without such a column there is nothing to flip, and there are no groups.",
            argument="sensitive",
        )
    return tuple(column if isinstance(column, str) else int(column) for column in columns)


# ------------------------------------------------------------------------------ models


@dataclass(frozen=True, eq=False)
class Subject:
    """A model as it is measured, whatever made it."""

    name: str  # the class of the model, or the name of the function
    task: Task
    ask: Callable[[Any], Any]  # for the scores of a table
    classes: tuple[Any, ...] = ()  # in the order of their scores; none for a regression
    threshold: float | None = None  # of two classes: from which on the second is decided
    power: float = 0.0  # of a regression's Tweedie deviance; 0 is the squared error
    estimator: "Estimator | None" = None  # where it is one of ours
    doubt: str = ""  # whether its scores are what they were taken for

    @property
    def outputs(self) -> tuple[Any, ...]:
        """What each score is of: the second of two classes, each of several, or the target."""
        if self.task == "regression":
            return ("prediction",)
        return self.classes[1:] if self.task == "two classes" else self.classes

    def score(self, X: Any) -> Floats:
        """Score a table: ``(n_rows, n_outputs)``, checked."""
        answer, n_rows = _ask(self.ask, X), len(X)
        scores = answer.reshape(-1, 1) if answer.ndim == 1 else answer
        widths = {"regression": (1,), "two classes": (1, 2)}.get(self.task, (len(self.classes),))
        if scores.ndim != 2 or len(scores) != n_rows or scores.shape[1] not in widths:
            raise InvalidInputError(
                f"The model must return one score per row, or one probability per class, for "
                f"{n_rows} rows, got shape {answer.shape}. Wrap it in a function that does."
            )
        for row in np.flatnonzero(~np.isfinite(scores).all(axis=1))[:1].tolist():
            raise InvalidInputError(
                f"Predictions must be finite, got {scores[row].tolist()} in row {row}. Correct the "
                "model, or leave out the rows that it cannot score."
            )
        if self.task != "regression":
            wrong = (scores < -1e-9).any(axis=1) | (scores > 1 + 1e-9).any(axis=1)
            if scores.shape[1] > 1:
                wrong |= np.abs(scores.sum(axis=1) - 1) > 1e-3
            for row in np.flatnonzero(wrong)[:1].tolist():
                raise InvalidInputError(
                    f"Probabilities must lie in [0, 1] and sum to 1, got {scores[row].tolist()} in "
                    f"row {row}. Pass a model with predict_proba, put log-odds through "
                    "1 / (1 + exp(-x)), or pass task='regression' for amounts."
                )
        return scores[:, 1:] if self.task == "two classes" and scores.shape[1] == 2 else scores

    def decide(self, scores_NK: Floats) -> NDArray[np.intp]:
        """Return the place of each row's class."""
        if self.task == "several classes":
            return scores_NK.argmax(axis=1)
        return (scores_NK[:, 0] >= (self.threshold or 0.0)).astype(np.intp)

    def truths(self, rows: AuditRows) -> list[Floats] | None:
        """Return what each score should have been: 0 or 1, or the target per unit of exposure."""
        if rows.y is None:
            return None
        if self.task != "regression":
            unknown = [label for label in np.unique(rows.y).tolist() if label not in self.classes]
            if unknown:
                raise InvalidInputError(
                    f"y must hold classes of the training table ({enumerate_some(self.classes)}), "
                    f"got {enumerate_some(unknown)}. Correct or drop these rows."
                )
            return [(rows.y == label).astype(np.float64) for label in self.outputs]
        try:
            y = rows.y.astype(np.float64)
        except (ValueError, TypeError) as error:
            raise InvalidInputError(
                f"y must hold numbers for a regression, got {enumerate_some(rows.y[:1])}. Convert "
                "it; if scores are of classes, return probabilities, between 0 and 1."
            ) from error
        return [y if rows.exposure is None else y / rows.exposure]


def open_model(
    model: Any,
    rows: AuditRows,
    *,
    task: Literal["auto", "classification", "regression"] = "auto",
    threshold: float | None = None,
    power: float | None = None,
    positive: Any = None,
) -> Subject:
    """Find out what a model predicts; a task that its answers leave open is told by y.

    ``positive`` is the second of two classes, which decisions are about.
    """
    fits = threshold is None or (is_number(threshold) and 0 <= threshold <= 1)
    check_argument("threshold", threshold, fits, "a probability, a number in [0, 1]")
    name = getattr(model, "__name__", type(model).__name__)
    labels: Any = getattr(model, "classes_", None)
    if is_ours(model) and labels is None:
        _refuse_positive(positive)
        own = model._deviance_power if power is None else power
        return Subject(name, "regression", model.predict_rate, power=own, estimator=model)
    if is_ours(model):
        kind: Task = "two classes" if len(labels) == 2 else "several classes"
        ask, classes = model.predict_proba, tuple(labels.tolist())
        found = Subject(name, kind, ask, classes, model.threshold_, estimator=model)
        return _decide_for(found, positive, threshold, is_single=False)
    if hasattr(model, "get_inputs"):  # a session of onnxruntime
        model = partial(_ask_onnx, model)
    if task != "regression" and hasattr(model, "predict_proba"):
        ask = model.predict_proba
    elif labels is not None and hasattr(model, "predict"):  # decides, and gives no probabilities

        def ask(X: Any) -> Any:
            return np.asarray(model.predict(X))[:, None] == np.asarray(labels)

    elif hasattr(model, "predict") or callable(model):
        ask = getattr(model, "predict_rate", getattr(model, "predict", model))
    else:
        raise InvalidInputError(
            f"The model must have predict_proba or predict, or be a function of a table, got "
            f"{type(model).__name__}. Wrap it: lambda X: ...",
            argument="model",
        )
    ask = partial(_ask_known, ask, getattr(model, "feature_names_in_", ()))
    answer = _ask(ask, rows.X)
    n_outputs = answer.shape[1] if answer.ndim == 2 else 1
    known = labels if labels is not None else np.unique(rows.y) if rows.y is not None else [0, 1]
    classes = tuple(known.tolist() if isinstance(known, np.ndarray) else known)
    doubt = ""
    if n_outputs == 1 and task == "auto":
        is_chance = ((answer >= 0) & (answer <= 1)).all()
        has_classes = len(classes) == 2 and is_chance
        tells = any(each is not None for each in (rows.y, labels, threshold, positive))
        task = "classification" if has_classes and tells else "regression"
        if len(classes) == 2 and rows.y is not None and not is_chance:
            doubt = "y has two values, and scores lie outside [0, 1]: they are taken for amounts."
    if task == "regression":
        _refuse_positive(positive)
        return Subject(name, "regression", ask, power=power or 0.0, doubt=doubt)
    if n_outputs <= 2 and len(classes) == 1 and labels is None:  # y has one of the two
        classes = (0, 1)
    if len(classes) != max(n_outputs, 2):
        raise InvalidInputError(
            f"A model of {max(n_outputs, 2)} classes must have as many in y, got "
            f"{enumerate_some(classes)}. Pass a model that has classes_, or task='regression'."
        )
    kind = "two classes" if len(classes) == 2 else "several classes"
    if np.isin(answer, [0, 1]).all():
        doubt = "All scores are 0 or 1: pass probabilities, if there are any, to judge their order."
    found = Subject(name, kind, ask, classes, 0.5 if kind == "two classes" else None, doubt=doubt)
    return _decide_for(found, positive, threshold, is_single=n_outputs == 1 and labels is None)


def _decide_for(
    subject: Subject, positive: Any, threshold: float | None, *, is_single: bool
) -> Subject:
    """Put the class that is decided for second, and its threshold in the place of the model's own.

    ``is_single`` says that a row has one score, which then is the probability of that class.
    """
    if subject.task == "two classes" and threshold is not None:
        subject = replace(subject, threshold=threshold)
    if positive is None:
        return subject
    found = [label for label in subject.classes if _is_meant(label, positive)]
    if len(subject.classes) != 2 or len(found) != 1:
        _refuse_positive(positive, subject.classes)
    if found[0] == subject.classes[1]:
        return subject
    turned = replace(subject, classes=subject.classes[::-1])
    if is_single:
        return turned
    turned = replace(turned, ask=lambda X: _ask(subject.ask, X)[:, ::-1])
    if threshold is None and subject.threshold is not None:  # what was decided stays so
        turned = replace(turned, threshold=float(np.nextafter(1 - subject.threshold, 2)))
    return turned


def _is_meant(label: Any, given: Any) -> bool:
    """Tell whether a class is meant: 1 may be spelt "1", and may be 1.0 or True in a table."""
    try:
        return label == given or float(label) == float(given)
    except (TypeError, ValueError):
        return str(label).casefold() == str(given).casefold()


def _refuse_positive(positive: Any, classes: Sequence[Any] = ()) -> None:
    if positive is not None:
        raise InvalidInputError(
            f"positive must be one of two classes, got {positive!r} of "
            f"{enumerate_some(classes) or 'a model that predicts a number'}.",
            argument="positive",
        )


def _ask(ask: Callable[[Any], Any], X: Any) -> Floats:
    """Return a model's answers as numbers; how it counts them, and in what, is its own."""
    try:
        answer = ask(X)
    except InvalidInputError:
        raise
    except Exception as error:  # each model has its own
        raise InvalidInputError(
            f"The model must score X as it is, got {type(error).__name__}: {error}. Pass the "
            "columns that it was trained on, or a function that prepares them: lambda X: ..."
        ) from error
    try:
        found = np.asarray(answer)
        return found.astype(
            np.float64, casting="same_kind" if found.dtype.kind == "c" else "unsafe"
        )
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInputError(
            f"The model must return numbers, one per row or one per class ({error}). Return the "
            "probability of a class, rather than its name."
        ) from error


def _ask_known(ask: Callable[[Any], Any], names: Sequence[str], X: Any) -> Any:
    """Ask a model that knows the names of its columns for these alone.

    Often it was trained without the sensitive ones, which an audit needs. It gets a table of its
    own, as functions may change theirs.
    """
    names = list(names)
    if len(names) and not isinstance(X, np.ndarray):
        frame = nw.from_native(X, eager_only=True)
        if set(names) < set(frame.columns):
            X = frame.select(names).to_native()
    return ask(X.copy() if hasattr(X, "copy") else X)


def _ask_onnx(session: Any, X: Any) -> Any:
    """Ask an ONNX model, which takes one matrix of all columns, or each column by its name."""
    table, inputs = read_table(X), session.get_inputs()
    columns = table.columns
    is_matrix = len(inputs) == 1 and len(inputs[0].shape) == 2 and inputs[0].shape[1] != 1
    if is_matrix and len(columns) > 1:
        numbers = [to_numbers(name, column) for name, column in columns.items()]
        feeds = {inputs[0].name: np.column_stack(numbers).astype(np.float32)}
    else:
        feeds = {}
        for each in inputs:
            (name,) = resolve_columns(table, [each.name], "The model's inputs")
            values = _read_onnx_input(name, columns[name], each.type)
            feeds[name] = values.reshape(-1, len(each.shape[1:]) or 1)
    *_, scores = session.run(None, feeds)
    if isinstance(scores, list):  # a map of classes to probabilities for each row
        scores = [[*each.values()] for each in scores]
    return scores


def _read_onnx_input(name: str, column: pa.ChunkedArray, kind: str) -> NDArray[Any]:
    """Return a column as our own exports take it: "" and NaN are missing, dates are seconds."""
    if kind == "tensor(string)":
        return column.cast(pa.string()).fill_null("").to_numpy().astype(object)
    if kind == "tensor(int64)":
        return column.to_numpy().astype(np.int64)
    if name_values(column.type) == "dates":
        numbers = to_timestamps(name, column).cast(pa.int64()).cast(pa.float64()).to_numpy() / 1e6
    else:
        numbers = to_numbers(name, column)
    return numbers.astype(np.float64 if kind == "tensor(double)" else np.float32)


def score_flips(subject: Subject, rows: AuditRows) -> list[FlippedScores]:
    """Score rows under every value of the sensitive columns: flips of each output."""
    passes: list[Floats] = []

    def first(X: Any) -> Floats:
        passes.append(subject.score(X))
        return passes[-1][:, 0]

    flips = flip_scores(first, rows.X, list(rows.sensitive))
    n = len(flips.categories)
    scores_NCK, own = np.stack(passes[:n], axis=1), passes[n:]
    return [
        replace(flips, scores=scores_NCK[..., k], factual_scores=own[0][:, k] if own else None)
        for k in range(len(subject.outputs))
    ]


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
        AvgIF, the largest change of a prediction and the share of decisions flipped, all sensitive
        columns flipped together. Of several classes, the largest of the classes.
    groups : dict of dicts
        For each grouping DPD, EqOdd, EqOpp and UF, of classes the largest; of a regression the
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
        """List group metrics by metric, and by grouping where there are several: "DPD, sex"."""
        return {
            metric if len(self.groups) == 1 else f"{metric}, {grouping}": value
            for grouping, differences in self.groups.items()
            for metric, value in differences.items()
        }


def measure(subject: Subject, rows: AuditRows) -> Measured:
    """Measure a fitted model of ours, from :func:`open_model`, and certify it on the rows."""
    estimator: Any = subject.estimator
    with numbered_by(rows.counted):
        subject.truths(rows)  # before the work: y may not fit
        flips = score_flips(subject, rows)
        scores = np.column_stack([each.factual for each in flips])
        measured = Measured(
            subject.task,
            performance=performance(subject, rows, scores),
            flip=flip_metrics(subject, rows, flips),
            groups={name: group_metrics(subject, rows, scores, name) for name in rows.groups},
        )
        if not estimator.schema_.sensitive:  # no flip can change what a model never sees
            return replace(measured, exact=True, search=0.0, population=0.0)
        certificate = estimator.certificate(rows.X)
    exact, search, bound = certificate.exact, certificate.search, certificate.population.epsilon
    return replace(measured, exact=exact, search=search, population=bound)


def performance(subject: Subject, rows: AuditRows, scores: Floats) -> Metrics:
    """Measure how well scores predict y; empty where there is none."""
    truths, weight = subject.truths(rows), {"sample_weight": rows.weight}
    if truths is None:
        return {}
    import sklearn.metrics as learn  # slow

    truth, score = truths[0], scores[:, 0]
    if subject.task == "two classes":
        found = {"AUROC": learn.roc_auc_score, "AUPRC": learn.average_precision_score}
        areas = {name: float(area(truth, score, **weight)) for name, area in found.items()}
        chosen = subject.decide(scores)
        found = areas | {"F1": float(learn.f1_score(truth, chosen, zero_division=0.0, **weight))}
        return found if np.ptp(truth) else dict.fromkeys(found, math.nan)
    if subject.task == "several classes":
        chosen = np.asarray(subject.classes)[subject.decide(scores)]
        # By hand: scikit-learn's would put the classes in order, and leave the columns.
        right = np.clip((scores * np.column_stack(truths)).sum(axis=1), np.finfo(float).eps, 1)
        loss = -float(np.average(np.log(right), weights=rows.weight))
        accuracy = learn.accuracy_score(rows.y, chosen, **weight)
        return {"accuracy": float(accuracy), "log loss": float(loss)}
    deviance = np.average(deviances(truth, score, subject.power), weights=rows.weight)
    return {
        "deviance": float(deviance),
        "RMSE": float(learn.root_mean_squared_error(truth, score, **weight)),
        "MAE": float(learn.mean_absolute_error(truth, score, **weight)),
        "normalised Gini": metrics.normalized_gini_score(truth, score, **weight),
    }


def flip_metrics(subject: Subject, rows: AuditRows, flips: Sequence[FlippedScores]) -> Metrics:
    """Measure what flips change; of several classes, the largest of the classes."""
    of_classes = [
        metrics.average_individual_fairness(each, sample_weight=rows.weight) for each in flips
    ]
    largest = max(float(each.changes.max()) for each in flips)
    found = {"AvgIF": max(of_classes), "largest change": largest}
    if subject.task != "regression":
        scores_CNK = np.stack([np.vstack([f.factual, f.scores.T]) for f in flips], axis=-1)
        chosen_CN = np.array([subject.decide(scores_NK) for scores_NK in scores_CNK])
        flipped = np.ptp(chosen_CN, axis=0) > 0
        found["decisions flipped"] = float(np.average(flipped, weights=rows.weight))
    return found


def group_metrics(subject: Subject, rows: AuditRows, scores: Floats, grouping: str) -> Metrics:
    """Measure how groups differ; of several classes, the largest of the classes."""
    truths = subject.truths(rows)
    by_group: dict[str, Any] = {
        "sensitive_features": rows.groups_of(grouping),
        "sample_weight": rows.weight,
    }
    if subject.task == "regression":
        found = {
            "DPD": metrics.demographic_parity_difference(None, scores[:, 0], **by_group),
            "UF": metrics.demographic_unfairness(scores[:, 0], **by_group),
        }
        if subject.power and truths is not None:
            means = [metrics.group_rates(None, of, **by_group) for of in (truths[0], scores[:, 0])]
            pairs = zip(*means, strict=True)
            ratios = [actual.mean_prediction / of.mean_prediction for actual, of in pairs]
            found["A/E gap"] = float(np.ptp(ratios)) if len(ratios) > 1 else math.nan
        return found
    chosen = subject.decide(scores)
    places = [1] if subject.task == "two classes" else range(len(subject.classes))
    by_class = []
    for i, place in enumerate(places):
        decisions, truth = (chosen == place).astype(int), None if truths is None else truths[i]
        found = {"DPD": metrics.demographic_parity_difference(truth, decisions, **by_group)}
        if truth is not None:
            found["EqOdd"] = metrics.equalized_odds_difference(truth, decisions, **by_group)
            found["EqOpp"] = metrics.equal_opportunity_difference(truth, decisions, **by_group)
        found["UF"] = metrics.demographic_unfairness(scores[:, i], **by_group)
        by_class.append(found)
    # numpy's max keeps a nan, where the built-in one may lose it.
    return {name: float(np.max([each[name] for each in by_class])) for name in by_class[0]}


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
        text = getattr(entry.message, "counts", str(entry.message))  # no values of rows
        if not issubclass(entry.category, NotEstimableWarning):
            others[text] = entry.category
        elif text not in notes:
            notes.append(text)
