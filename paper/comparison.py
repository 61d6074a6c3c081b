"""Comparison of a model with the same one unconstrained, and with the sensitive column removed."""

import re
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import clone

from fcorr._core import (
    InvalidInputError,
    errors_about,
    html_table,
    near_match,
    text_table,
    to_plain,
)
from fcorr._version import __version__
from fcorr.audit.measure import (
    Measured,
    collect_warnings,
    is_ours,
    measure,
    name_columns,
    open_model,
    read_test_rows,
)
from fcorr.audit.page import TextTable, show_metric
from fcorr.data.encode import unpack_rows
from fcorr.estimators.model_file import Estimator

PLAIN = "FCorr"
WITH_CAR = "FCorr + CAR"
EXACT = "FCorr, exact"
AVERAGED = "FCorr, averaged"
REMOVED = "FCorr, column removed"

SCOPE = (
    "Flip figures are about flips of the sensitive columns, all other columns left as they are; "
    "group figures come from all columns, and remain where other columns stand in for them."
)

Form = Literal["plain", "car", "adapt", "marginal"]
View = Callable[[Any], Any]
"""What a model sees of a table."""

_NAMES: dict[Form, str] = {"plain": PLAIN, "car": WITH_CAR, "adapt": EXACT, "marginal": AVERAGED}


@dataclass(frozen=True)
class ComparedModel:
    """One fitted model and what was measured of it on test rows.

    Attributes
    ----------
    name : str
        What tables call it.
    estimator : FCorrClassifier or FCorrRegressor
        The model.
    view : callable
        What it sees of a table: all of it, or all but the sensitive columns.
    measured : Measured
        Performance, change under flips, differences of groups, certificate. A model that never
        saw the sensitive columns is exact.
    seconds : float or None
        Time of the fit; None for a model that came fitted.
    """

    name: str
    estimator: Estimator
    view: View
    measured: Measured
    seconds: float | None

    @property
    def metrics(self) -> dict[str, float]:
        """All numbers, each under one name."""
        return {
            **self.measured.flat(),
            "parameters": float(self.estimator.model_.n_parameters),
            "seconds": np.nan if self.seconds is None else self.seconds,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; what is not estimable or infinite becomes None."""
        cost = {"parameters": self.estimator.model_.n_parameters, "seconds": self.seconds}
        plain: dict[str, Any] = to_plain({**asdict(self.measured), **cost})
        return plain


@dataclass(frozen=True)
class Comparison:
    """Models fitted to the same rows with the same seed. ``print`` it for a table.

    Attributes
    ----------
    models : tuple of ComparedModel
        From no constraint to the column removed.
    given : str
        The name of the model that was asked about.
    sensitive : tuple of str or int
        The sensitive columns.
    notes : tuple of str
        What could not be estimated, or not for all groups.
    """

    models: tuple[ComparedModel, ...]
    given: str
    sensitive: tuple[str | int, ...]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> ComparedModel:
        return {model.name: model for model in self.models}[name]

    def __iter__(self) -> Iterator[ComparedModel]:
        return iter(self.models)

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """All numbers, by model and name."""
        return {model.name: model.metrics for model in self.models}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; what is not estimable or infinite becomes None."""
        return {
            "fcorr_version": __version__,
            "given": self.given,
            "sensitive": list(self.sensitive),
            "models": {model.name: model.to_dict() for model in self.models},
            "notes": list(self.notes),
            "scope": SCOPE,
        }

    def table(self) -> TextTable:
        """Return the table: a line per metric, a column per model."""
        return tabulate_metrics(self.metrics)

    def __str__(self) -> str:
        return "\n".join([text_table("", *self.table()), *self.notes, SCOPE])

    def _repr_html_(self) -> str:
        return html_table("on the test rows", *self.table(), note=" ".join([*self.notes, SCOPE]))


def compare(
    estimator: Estimator,
    train: Sequence[Any],
    test: Sequence[Any],
    *,
    also: Collection[Form] = (),
    threshold: float | None = None,
) -> Comparison:
    """Measure a model beside the same one unconstrained, and with the sensitive columns removed.

    A model with the columns removed is the honest company of any invariant model: its predictions
    do not change under a flip of columns that it never sees. They are removed by holding them at
    one value, so that the networks have the same layout. All models are fitted to the same rows
    with the same seed and arguments.

    Parameters
    ----------
    estimator : FCorrClassifier or FCorrRegressor
        The model, with sensitive columns. If it is fitted already, it is not fitted again.
    train, test : tuple (X, y) or (X, y, sample_weight)
        Rows to fit to, and other rows to measure on.
    also : collection of {"plain", "car", "adapt", "marginal"}, default=()
        More models: with CAR alone (``invariance=None``, the estimator's λ), or with one of the
        two exact forms.
    threshold : float, optional
        Of two classes, the probability from which on the second is decided; by default each
        model's own.

    Returns
    -------
    Comparison
        The models and their numbers.

    Examples
    --------
    >>> from fcorr import FCorrClassifier
    >>> from paper.generators import make_indirect_bias
    >>> train, test = (make_indirect_bias(500, random_state=seed) for seed in (0, 1))
    >>> model = FCorrClassifier(
    ...     sensitive="X1", n_members=1, epochs=2, head=(4,), random_state=0
    ... )
    >>> comparison = compare(model, train, test)
    >>> [compared.name for compared in comparison]
    ['FCorr', 'FCorr, exact', 'FCorr, column removed']
    >>> comparison["FCorr, column removed"].metrics["largest change"]
    0.0
    """
    if not is_ours(estimator):
        raise InvalidInputError(
            "compare is about FCorrClassifier and FCorrRegressor, got "
            f"{type(estimator).__name__}. Measure other models with fcorr.metrics."
        )
    wanted: list[Any] = [also] if isinstance(also, str) else list(also)
    for form in wanted:
        if form not in _NAMES:
            raise InvalidInputError(
                f"also must hold {', '.join(map(repr, _NAMES))}, got {form!r}."
                f"{near_match(str(form), _NAMES)}"
            )
    if "car" in wanted and not estimator.car:
        raise InvalidInputError(
            f"also='car' needs a λ to train with, got car={estimator.car!r}. Give the estimator "
            "one, such as car=1e6."
        )
    X, y, weight = unpack_rows(train, "train")
    rows = read_test_rows(estimator, test, "test")
    models: dict[str, ComparedModel] = {}

    def add(name: str, model: Estimator, view: View = see_all) -> None:
        seconds = None
        if not hasattr(model, "model_"):
            start = time.perf_counter()
            model.fit(view(X), y, weight)
            seconds = time.perf_counter() - start
        with errors_about("test"):
            subject = open_model(model, rows, threshold=threshold)
            ask = subject.ask
            measured = measure(replace(subject, ask=lambda X: ask(view(X))), rows)
        models[name] = ComparedModel(name, model, view, measured, seconds)

    with collect_warnings() as (notes, other_warnings):
        given = estimator if hasattr(estimator, "model_") else clone(estimator)
        name_given = _NAMES[_form(given)]
        add(name_given, given)  # first, as the others have its seed
        for form in {"plain": None, **dict.fromkeys(wanted)}:
            if _NAMES[form] not in models:
                add(_NAMES[form], _with_form(given, form))
        # That these columns hold one value is our doing, and no news to anybody.
        held = "|".join(re.escape(repr(name)) for name in given.schema_.sensitive)
        warnings.filterwarnings("ignore", message=f".*({held})")
        add(REMOVED, *_without_sensitive(given))
    for text, category in other_warnings.items():
        warnings.warn(text, category, stacklevel=2)
    in_order = tuple(models[name] for name in (*_NAMES.values(), REMOVED) if name in models)
    return Comparison(in_order, name_given, rows.sensitive, tuple(notes))


def see_all(X: Any) -> Any:
    """View a table unchanged."""
    return X


def tabulate_metrics(models: Mapping[str, Mapping[str, float | Sequence[float]]]) -> TextTable:
    """Put models side by side: a line per metric, a column per model, of one or several fits."""
    names = next(iter(models.values()))
    rows = [[n, *(show_metric(n, metrics[n]) for metrics in models.values())] for n in names]
    return TextTable(["", *models], rows)


def _form(estimator: Estimator) -> Form:
    if estimator.invariance is not None:
        return estimator.invariance
    return "car" if estimator.car else "plain"


def _with_form(estimator: Estimator, form: Form) -> Estimator:
    """Make an unfitted model that differs from a fitted one in its constraint only."""
    changes: dict[str, Any] = {"invariance": form if form in ("adapt", "marginal") else None}
    if form == "plain":
        changes["car"] = None
    return clone(estimator).set_params(**changes, random_state=estimator.seed_)


def _without_sensitive(estimator: Estimator) -> tuple[Estimator, View]:
    """Make the unfitted twin of a fitted model that never sees its sensitive columns.

    With one feature less LayerNorm would see one number less, which for few features is much: a
    column that is held constant leaves the network's layout as it is.
    """
    schema = estimator.schema_
    coded = {column.name for column in schema.categorical}
    kinds: dict[Any, Any] = {
        column: "categorical" if name in coded else "numeric"
        for column, name in zip(name_columns(estimator.sensitive), schema.sensitive, strict=True)
    }
    twin = clone(estimator).set_params(
        sensitive=None,
        kinds={**(estimator.kinds or {}), **kinds},
        random_state=estimator.seed_,
    )
    return twin, partial(hold_constant, kinds=kinds)


def hold_constant(X: Any, kinds: Mapping[Any, str]) -> Any:
    """Return a table in which columns, given with their kinds, hold one number or one text."""
    if isinstance(X, np.ndarray):
        held = X.copy()
        for position, kind in kinds.items():
            is_text = kind != "numeric" and X.dtype.kind == "O"
            held[:, position] = "removed" if is_text else 0.0
        return held
    constants = [
        nw.lit(0.0 if kind == "numeric" else "removed").alias(name) for name, kind in kinds.items()
    ]
    return nw.from_native(X, eager_only=True).with_columns(*constants).to_native()
