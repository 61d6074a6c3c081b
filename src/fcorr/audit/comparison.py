"""Comparison of a model with the same one unconstrained, and with the sensitive column removed."""

import re
import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import clone

from fcorr._core import InvalidInputError, html_table, near_match, to_plain
from fcorr._version import __version__
from fcorr.audit.measure import (
    Estimator,
    Measured,
    View,
    as_it_is,
    collect_warnings,
    errors_about,
    measure,
    name_columns,
    read_rows,
    unpack,
)
from fcorr.audit.tables import TextTable, show_metric
from fcorr.estimators import FCorrClassifier, FCorrRegressor

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

_NAMES: dict[Form, str] = {
    "plain": PLAIN,
    "car": WITH_CAR,
    "adapt": EXACT,
    "marginal": AVERAGED,
}
_TEXT, _NUMBER = "removed", 0.0  # what a removed column holds


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
        n_parameters = self.estimator.model_.n_parameters
        plain: dict[str, Any] = to_plain(
            {**asdict(self.measured), "parameters": n_parameters, "seconds": self.seconds}
        )
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
        columns = self.metrics
        rows = [
            [name, *(show_metric(name, [of_model[name]]) for of_model in columns.values())]
            for name in self.models[0].metrics
        ]
        return TextTable(["", *columns], rows)

    def __str__(self) -> str:
        return "\n".join([self.table().text(), *self.notes, SCOPE])

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
    >>> from fcorr.data import make_indirect_bias
    >>> train, test = (make_indirect_bias(500, random_state=seed) for seed in (0, 1))
    >>> model = FCorrClassifier(sensitive="X1", epochs=2, head=(4,), random_state=0)
    >>> comparison = compare(model, train, test)
    >>> [compared.name for compared in comparison]
    ['FCorr', 'FCorr, exact', 'FCorr, column removed']
    >>> comparison["FCorr, column removed"].metrics["largest change"]
    0.0
    """
    forms = _choose_forms(estimator, also)
    sensitive = name_columns(estimator.sensitive)
    fitted_rows = unpack(train, "train")
    rows = read_rows(test, estimator.sensitive, "test")
    models = []

    def add(name: str, model: Estimator, view: View, seconds: float | None) -> None:
        with errors_about("test"):
            measured = measure(model, rows, view=view, threshold=threshold)
        models.append(ComparedModel(name, model, view, measured, seconds))

    with collect_warnings() as collected:
        given, given_seconds = estimator, None
        if not hasattr(estimator, "model_"):
            given, given_seconds = _fit(clone(estimator), *fitted_rows)
        for form in forms:
            if form == _form(given):
                add(_NAMES[form], given, as_it_is, given_seconds)
            else:
                other, seconds = _fit(_with_form(given, form), *fitted_rows)
                add(_NAMES[form], other, as_it_is, seconds)
        removed, view = _without_sensitive(given)
        X, y, weight = fitted_rows
        # That these columns hold one value is our doing, and no news to anybody.
        held = "|".join(re.escape(repr(name)) for name in given.schema_.sensitive)
        warnings.filterwarnings("ignore", message=f".*({held})")
        removed, seconds = _fit(removed, view(X), y, weight)
        add(REMOVED, removed, view, seconds)
    collected.warn_again(stacklevel=2)
    return Comparison(tuple(models), _NAMES[_form(given)], sensitive, tuple(collected.notes))


def _choose_forms(estimator: Any, also: Collection[str]) -> list[Form]:
    if not isinstance(estimator, FCorrClassifier | FCorrRegressor):
        raise InvalidInputError(
            "compare is about FCorrClassifier and FCorrRegressor, got "
            f"{type(estimator).__name__}. Measure other models with fcorr.metrics."
        )
    wanted = [also] if isinstance(also, str) else list(also)
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
    return [form for form in _NAMES if form in {_form(estimator), "plain", *wanted}]


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


def _fit(estimator: Estimator, X: Any, y: Any, weight: Any) -> tuple[Estimator, float]:
    start = time.perf_counter()
    return estimator.fit(X, y, weight), time.perf_counter() - start


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
        bins=None,  # of sensitive columns
        kinds={**(estimator.kinds or {}), **kinds},
        random_state=estimator.seed_,
    )
    return twin, partial(hold_constant, kinds=kinds)


def hold_constant(X: Any, kinds: Mapping[Any, str]) -> Any:
    """Return a table in which some columns have one value in all rows.

    Parameters
    ----------
    X : dataframe or array
        The table.
    kinds : mapping
        The columns, by name or position: "numeric" for a number, else text, where the table can
        hold it.

    Examples
    --------
    >>> hold_constant(np.array([[1.0, 2.0], [3.0, 4.0]]), {0: "numeric"})
    array([[0., 2.],
           [0., 4.]])
    """
    if isinstance(X, np.ndarray):
        held = X.copy()
        for position, kind in kinds.items():
            is_text = kind != "numeric" and X.dtype.kind == "O"
            held[:, position] = _TEXT if is_text else _NUMBER
        return held
    constants = [
        nw.lit(_NUMBER if kind == "numeric" else _TEXT).alias(name) for name, kind in kinds.items()
    ]
    return nw.from_native(X, eager_only=True).with_columns(*constants).to_native()
