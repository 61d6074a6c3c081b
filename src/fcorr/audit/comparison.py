"""A model in honest company: beside the same one unconstrained, and with the column removed."""

import time
from collections.abc import Collection, Sequence
from typing import Any, Literal

from sklearn.base import clone

from fcorr._core import InvalidInputError, near_match
from fcorr.audit.compared import (
    AVERAGED,
    EXACT,
    PLAIN,
    REMOVED,
    WITH_CAR,
    ComparedModel,
    Comparison,
)
from fcorr.audit.hearing import listen
from fcorr.audit.measuring import Estimator, as_it_is, measure, name_columns, read_rows, unpack
from fcorr.audit.removal import without_sensitive
from fcorr.estimators import FCorrClassifier, FCorrRegressor

__all__ = [
    "AVERAGED",
    "EXACT",
    "PLAIN",
    "REMOVED",
    "WITH_CAR",
    "ComparedModel",
    "Comparison",
    "compare",
]

Form = Literal["plain", "car", "adapt", "marginal"]

_NAMES: dict[Form, str] = {
    "plain": PLAIN,
    "car": WITH_CAR,
    "adapt": EXACT,
    "marginal": AVERAGED,
}


def compare(
    estimator: Estimator,
    train: Sequence[Any],
    test: Sequence[Any],
    *,
    also: Collection[Form] = (),
    threshold: float | None = None,
    effort: int = 2**17,
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
    effort : int, default=2**17
        How hard to try for small certified bounds, which takes most of the time where models are
        small; see :meth:`FCorrClassifier.certificate`.

    Returns
    -------
    Comparison
        The models and their numbers.

    Examples
    --------
    >>> from fcorr.data import make_indirect_bias
    >>> train, test = (make_indirect_bias(500, random_state=seed) for seed in (0, 1))
    >>> model = FCorrClassifier(sensitive="X1", epochs=2, head=(4,), random_state=0)
    >>> comparison = compare(model, train, test, effort=1)
    >>> [compared.name for compared in comparison]
    ['FCorr', 'FCorr, exact', 'FCorr, column removed']
    >>> comparison["FCorr, column removed"].metrics["largest change"]
    0.0
    """
    forms = _choose_forms(estimator, also)
    sensitive = name_columns(estimator.sensitive)
    X, y, weight = unpack(train, "train")
    rows = read_rows(test, estimator.sensitive, "test")
    with listen() as heard:
        seconds: dict[Form, float | None] = {_form(estimator): None}
        given = estimator
        if not hasattr(estimator, "model_"):
            given = clone(estimator)
            seconds[_form(given)] = _fit(given, X, y, weight)
        models = []
        for form in forms:
            model = given
            if form != _form(given):
                model = _with_form(given, form)
                seconds[form] = _fit(model, X, y, weight)
            certificate = model.certificate(rows.X, effort=effort)
            measured = measure(model, rows, threshold=threshold)
            models.append(
                ComparedModel(_NAMES[form], model, as_it_is, measured, certificate, seconds[form])
            )
        removed, view = without_sensitive(given)
        taken = _fit(removed, view(X), y, weight)
        measured = measure(removed, rows, view=view, threshold=threshold)
        models.append(ComparedModel(REMOVED, removed, view, measured, None, taken))
    heard.tell(set(), stacklevel=2)
    return Comparison(tuple(models), _NAMES[_form(given)], sensitive, tuple(heard.notes))


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
    other: Estimator = clone(estimator)
    return other.set_params(**changes, random_state=estimator.seed_)


def _fit(estimator: Estimator, X: Any, y: Any, weight: Any) -> float:
    start = time.perf_counter()
    estimator.fit(X, y, weight)
    return time.perf_counter() - start
