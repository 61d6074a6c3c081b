"""Quantile repair: the scores of any model, moved until all groups have the same distribution."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fcorr._core import InvalidInputError, counted_rows, enumerate_some, take_rows
from fcorr.data.encode import read_exposure, read_sample_weight, read_target
from fcorr.data.tables import read_table, resolve_columns
from fcorr.metrics._checks import Labels, encode_groups, encode_labels
from fcorr.metrics.flips import are_measured

Floats = NDArray[np.float64]


class QuantileRepair(MetaEstimatorMixin, BaseEstimator):
    """Move a model's scores towards a distribution that all groups share.

    A score at the share u of its group's distribution moves to the mean of all groups' scores at u,
    the Wasserstein barycentre; equal scores, which take up some of it, to the mean over that. The
    order within a group stays, and so does the total of the scores learnt from. Scores beyond these
    move as far as the outermost one does. Of a model with an ``exposure``, what moves are rates.
    **It reads the sensitive columns at scoring**: people who differ in nothing else get different
    scores, by design.

    Parameters
    ----------
    estimator : scikit-learn classifier of two classes, or regressor
        The model. It is given X as it is, sensitive columns included.
    sensitive : column name, position for an array, or several
        The columns whose values, or combinations of them, are the groups. A missing value is one.
    share : float, default=1.0
        How far scores move: 0 leaves them as they are, 1 goes all the way.
    cv : int, default=5
        Folds of rows: distributions are learnt from scores of rows not fitted to. A model that is
        fitted already can be wrapped as scikit-learn's ``FrozenEstimator(model)``.

    Attributes
    ----------
    estimator_ : object
        The model, fitted to all rows.
    groups_ : dict
        Each group's distinct scores, and what they become.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[0, 1.0], [0, 2.0], [0, 3.0], [1, 5.0], [1, 6.0], [1, 7.0]] * 5)
    >>> model = QuantileRepair(LinearRegression(), sensitive=0).fit(X, X[:, 1])
    >>> model.predict(X[:6]).round(6)
    array([3., 4., 5., 3., 4., 5.])
    """

    def __init__(self, estimator: Any, sensitive: Any, *, share: float = 1.0, cv: int = 5) -> None:
        self.estimator = estimator
        self.sensitive = sensitive
        self.share = share
        self.cv = cv

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "QuantileRepair":
        """Fit the model, and learn the distributions of its scores."""
        from sklearn.model_selection import KFold, StratifiedKFold  # slow to import

        if not 0 <= self.share <= 1:
            raise InvalidInputError(f"share must lie between 0 and 1, got {self.share!r}.")
        is_class = is_classifier(self.estimator)
        with counted_rows(X, y, sample_weight=sample_weight) as (X, y, sample_weight):
            labels = self._read_groups(X)
            if len(labels.categories) < 2:
                raise InvalidInputError(
                    f"sensitive must have two groups or more, got {enumerate_some(labels[0])} "
                    "alone. Fit to rows of all groups."
                )
            target = read_target(y, len(labels.codes))
            weight = read_sample_weight(sample_weight, len(target))
            if is_class and len(np.unique(target)) != 2:
                raise InvalidInputError(
                    "QuantileRepair is for two classes and for numbers, got the classes "
                    f"{enumerate_some(np.unique(target))}. Pass y == label for one of them."
                )

            def fit(rows: NDArray[np.intp]) -> Any:
                weighted = {} if sample_weight is None else {"sample_weight": weight[rows]}
                return clone(self.estimator).fit(take_rows(X, rows), target[rows], **weighted)

            scores = np.empty(len(target))
            exposure = self._read_exposure(X)
            split = StratifiedKFold if is_class else KFold
            for others, own in split(self.cv, shuffle=True, random_state=0).split(target, target):
                scores[own] = self._score(fit(others), take_rows(X, own)) / exposure[own]
            self.estimator_ = fit(np.arange(len(target)))
            weight = weight * exposure
        if is_class:
            self.classes_ = self.estimator_.classes_
        # Equal scores are to stay equal, and models of other rows differ in the last digits.
        if step := 1e-9 * np.ptp(scores):
            scores = np.round(scores / step) * step
        parts = {}
        for code, label in enumerate(labels.categories):
            rows = (labels.codes == code) & (weight > 0)
            values, places = np.unique(scores[rows], return_inverse=True)
            mass = np.bincount(places, weights=weight[rows])
            ends, sums = (np.append(0, np.cumsum(x)) for x in (mass, mass * values))
            parts[label] = values, ends / mass.sum(), sums / weight.sum()
        self.groups_ = {}
        for label, (values, at, _) in parts.items():
            # Up to here all groups' scores together, each at this share of its own distribution.
            reached = sum(np.interp(at, ends, sums) for _, ends, sums in parts.values())
            width = np.diff(at)
            counts = width > 0  # unless a weight is lost among the others
            self.groups_[label] = values[counts], np.diff(reached)[counts] / width[counts]
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return repaired numbers; of classes, the second from a repaired probability of 0.5 on."""
        scores = self._repair(X)
        if hasattr(self, "classes_"):
            return self.classes_[(scores >= 0.5).astype(int)]
        return scores * self._read_exposure(X)

    @available_if(lambda self: not is_classifier(self.estimator))  # type: ignore[untyped-decorator]
    def predict_rate(self, X: Any) -> Floats:
        """Return repaired numbers per unit of exposure; without one, as ``predict`` does."""
        return self._repair(X)

    @available_if(lambda self: is_classifier(self.estimator))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return repaired probabilities of the two classes."""
        scores = self._repair(X)
        return np.column_stack([1 - scores, scores])

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of a classifier, R² of a regressor."""
        from sklearn.metrics import accuracy_score, r2_score  # slow to import

        metric = accuracy_score if is_classifier(self.estimator) else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        return tags

    def _read_exposure(self, X: Any) -> Floats:
        """Return what predictions are proportional to."""
        table, name = read_table(X), getattr(self.estimator, "exposure", None)
        if name is None:
            return np.ones(table.n_rows)
        return read_exposure(table, *resolve_columns(table, [name], "exposure"))

    def _score(self, model: Any, X: Any) -> Floats:
        found = model.predict_proba(X)[:, 1] if is_classifier(self.estimator) else model.predict(X)
        return np.asarray(found, dtype=np.float64)

    def _repair(self, X: Any) -> Floats:
        check_is_fitted(self, "groups_")
        labels = self._read_groups(X)
        if unseen := [label for label in labels.categories if label not in self.groups_]:
            raise InvalidInputError(
                f"sensitive must hold groups of the fit ({enumerate_some(self.groups_)}), got "
                f"{enumerate_some(unseen)}. Fit to rows of all groups, or map these to one."
            )
        scores = self._score(self.estimator_, X) / self._read_exposure(X)
        repaired = np.empty(len(scores))
        for code, label in enumerate(labels.categories):
            rows = labels.codes == code
            values, moved = self.groups_[label]
            inside = np.clip(scores[rows], values[0], values[-1])
            repaired[rows] = np.interp(inside, values, moved) + scores[rows] - inside
        if hasattr(self, "classes_"):
            repaired = np.clip(repaired, 0.0, 1.0)
        return (1 - self.share) * scores + self.share * repaired

    def _read_groups(self, X: Any) -> Labels:
        table = read_table(X)
        columns = self.sensitive if isinstance(self.sensitive, list | tuple) else [self.sensitive]
        argument = "sensitive, which QuantileRepair reads at scoring too,"
        names = resolve_columns(table, columns, argument)
        return encode_groups({name: table.columns[name] for name in names}, _encode_names)


def _encode_names(column: Any, name: str) -> Labels:
    labels = encode_labels(column, name)
    if are_measured([label for label in labels.categories if label is not None]):
        raise InvalidInputError(
            f"sensitive must have groups, got {len(labels.categories)} different numbers. Cut them "
            "into groups first, such as ages into decades."
        )
    return labels
