"""What is read off a model, as tables: between features, by value, by feature, by row.

All but importances are on the scale of the link, on which a model is a sum: log-odds, the
logarithm of a rate, or the unit of y.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fcorr._core import InvalidInputError, Tabled, check_argument, near_match, require
from fcorr.data.schema import ColumnKind

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FeatureMatrix(Tabled):
    """A matrix with one row and one column per feature.

    ``matrix["age", "income"]`` is one entry; ``numpy.asarray(matrix)`` the plain array.

    Examples
    --------
    >>> matrix = FeatureMatrix(("a", "b"), np.array([[1.0, 0.2], [0.2, 3.0]]))
    >>> float(matrix["a", "b"])
    0.2
    >>> matrix.diagonal()
    {'a': 1.0, 'b': 3.0}
    """

    names: tuple[str, ...]
    values: Vector

    def __getitem__(self, key: tuple[str, str]) -> float:
        row, column = (_find(name, self.names, "The matrix") for name in key)
        return float(self.values[row, column])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def diagonal(self) -> dict[str, float]:
        """Diagonal by feature: what the paper reads as feature significance."""
        return dict(zip(self.names, self.values.diagonal().tolist(), strict=True))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with the names on both axes."""
        pandas = require("pandas", extra="pandas", purpose="FeatureMatrix.to_pandas")
        return pandas.DataFrame(self.values, index=self.names, columns=self.names)

    def _tables(self) -> Iterator[Any]:
        rows = [
            (name, *(f"{value:.3g}" for value in values))
            for name, values in zip(self.names, self.values, strict=True)
        ]
        yield "Between features", ("", *self.names), rows, ""


def _find(name: str, names: Sequence[str], what: str) -> int:
    if name not in names:
        raise InvalidInputError(f"{what} has no feature {name!r}.{near_match(name, names)}")
    return names.index(name)


@dataclass(frozen=True, eq=False)
class MainEffect(Tabled):
    """What one feature adds to the output by itself, value by value.

    With several classes ``effect``, ``lower``, ``upper`` have a column for each.

    Attributes
    ----------
    name, kind : str
        The feature, and the kind of its column.
    values : tuple
        Categories, or numbers in the table's unit, in ascending order; None is a missing number.
        Numbers are the knots of the member that has the most: between two of them effects are
        linear, but for the bends of members with other knots; beyond the outer ones constant.
    effect : ndarray of shape (n_values,) or (n_values, n_classes)
        Mean of the members' effects; its own mean over the training rows, weighted, is 0; of a
        rated column with the ratings that it was trained with, which are of other rows.
    lower, upper : ndarray
        The effect ± 2 standard errors by the delete-a-group jackknife: each bag of the pack leaves
        out a group of rows, and how far the bags' effects lie apart tells what other rows would
        have changed. NaN for a single network, which has no bags.
    rows : ndarray of shape (n_values,)
        Training rows of a category. For numbers, about each: a row between two of them counts for
        both, by its distance, and by its weight.
    credibility : ndarray of shape (n_values,)
        Of a category of n rows ``n / (n + k)``, by which training pulls it to the mean; k is the
        mean of the chosen recipes, of a sparse one that of small effects: large ones are believed
        more. For a category that was rated, the credibility of its rating.
        NaN where there is none, for numbers and places in an order.
    relativity : ndarray or None
        ``exp(effect)``, the factor on the prediction; None unless the link is logarithmic.
    """

    name: str
    kind: ColumnKind
    values: tuple[str | float | None, ...]
    effect: Vector
    lower: Vector
    upper: Vector
    rows: Vector
    credibility: Vector
    relativity: Vector | None = None

    def table(self) -> dict[str, list[Any]]:
        """Return the columns of the table by name."""
        names = ("effect", "lower", "upper", "rows", "credibility", "relativity")
        known = {n: list(each) for n in names if (each := getattr(self, n)) is not None}
        return {"value": list(self.values), **known}

    def _tables(self) -> Iterator[Any]:
        columns = self.table()
        rows = [
            (
                "missing" if value is None else value if isinstance(value, str) else f"{value:.6g}",
                *("/".join(f"{each:.4g}" for each in np.atleast_1d(number)) for number in numbers),
            )
            for value, *numbers in zip(*columns.values(), strict=True)
        ]
        yield self.name, [*columns], rows, ""

    def of_class(self, k: int) -> "MainEffect":
        """Return the effect on one of several classes."""
        effect, lower, upper = (each[:, k] for each in (self.effect, self.lower, self.upper))
        return replace(self, effect=effect, lower=lower, upper=upper)


class MainEffects(Tabled, dict[str, MainEffect]):
    """The main effects of a model by feature, a dict: ``effects["age"].effect``.

    Attributes
    ----------
    unit : str
        What effects are measured in.
    classes : tuple or None
        The classes of the tables' columns, where there are more than two.
    """

    def __init__(
        self, effects: dict[str, MainEffect], unit: str, classes: tuple[Any, ...] | None = None
    ) -> None:
        super().__init__(effects)
        self.unit, self.classes = unit, classes

    def __missing__(self, name: str) -> NoReturn:
        raise InvalidInputError(f"The model has no feature {name!r}.{near_match(name, self)}")

    def to_pandas(self) -> Any:
        """Return one pandas DataFrame with a row for each value of each feature, and class."""
        pandas = require("pandas", extra="pandas", purpose="MainEffects.to_pandas")
        parts = []
        for _, label, effect in self._by_class():
            part = pandas.DataFrame(effect.table())
            part["value"] = part["value"].astype(object)
            part.insert(0, "feature", effect.name)
            if self.classes is not None:
                part.insert(1, "class", label)
            parts.append(part)
        return pandas.concat(parts, ignore_index=True)

    def _by_class(self) -> Iterator[tuple[str, Any, MainEffect]]:
        for effect in self.values():
            for k, label in enumerate(self.classes or (None,)):
                whole = self.classes is None
                caption = effect.name if whole else f"{effect.name}, class {label}"
                yield caption, label, effect if whole else effect.of_class(k)

    def _tables(self) -> Iterator[Any]:
        for caption, _, effect in self._by_class():
            for _, *table in effect._tables():
                yield f"{caption} ({self.unit})", *table


@dataclass(frozen=True, eq=False)
class Importance(Tabled):
    """How much each feature matters, the largest total first.

    Attributes
    ----------
    names : tuple of str
        The features.
    main, total : ndarray
        Share of what the model tells rows apart by that is the feature's own main effect, and that
        goes with it, alone and together with others: half of how much worse predictions are, by the
        model's own, if the feature's value is that of another row. For numbers these are shares of
        their variance, the total is Sobol's; for classes and rates it is measured as their loss is,
        and can be above 1, the more the farther predictions are apart.
        It estimates what permutation importance finds, and needs no y.
    lower, upper : ndarray
        The total ± 2 standard errors, not below 0; see :class:`MainEffect`.
    agreement : float
        Spearman's rank correlation between ``total`` and ``feature_significance``: how far the
        diagonal of the attention matrix orders the features as their effect on predictions does.
    n_rows : int
        Rows that it was computed on.
    """

    names: tuple[str, ...]
    main: Vector
    total: Vector
    lower: Vector
    upper: Vector
    agreement: float
    n_rows: int

    def __getitem__(self, name: str) -> dict[str, float]:
        i = _find(name, self.names, "The model")
        return {column: float(values[i]) for column, values in self._columns().items()}

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with a row for each feature."""
        pandas = require("pandas", extra="pandas", purpose="Importance.to_pandas")
        return pandas.DataFrame(self._columns(), index=pandas.Index(self.names, name="feature"))

    def _columns(self) -> dict[str, Vector]:
        return {n: getattr(self, n) for n in ("main", "total", "lower", "upper")}

    def _tables(self) -> Iterator[Any]:
        columns = self._columns()
        rows = [
            (name, *(f"{number:.3g}" for number in numbers))
            for name, *numbers in zip(self.names, *columns.values(), strict=True)
        ]
        note = f"Rank correlation of total with significance: {self.agreement:.2f}."
        caption = f"Importance on {self.n_rows:,} rows"
        yield caption, ("feature", *columns), rows, note


@dataclass(frozen=True, eq=False)
class Explanation(Tabled):
    """What each feature adds to the output of each row; all adds up to the output.

    ``output = intercept + Σ main + Σ correction``. With several classes arrays have one more axis,
    the last.

    Attributes
    ----------
    names : tuple of str
        The features.
    intercept : float, or ndarray of shape (n_classes,)
        The output where every feature is absent: all its views are 0, their mean over the training
        rows.
    main : ndarray of shape (n_rows, n_features)
        The main effects, exact.
    correction : ndarray of shape (n_rows, n_features)
        Each feature's part in the rest, which features have together: sampled Shapley values.
    error : ndarray of shape (n_rows, n_features)
        Standard error of the correction from the sampling, over pairs of orders.
    output : ndarray of shape (n_rows,)
        The output, as in ``unit``.
    unit : str
        What all of these are measured in.
    classes : tuple or None
        The classes of the last axis, where there are more than two.
    """

    names: tuple[str, ...]
    intercept: Any
    main: Vector
    correction: Vector
    error: Vector
    output: Vector
    unit: str
    classes: tuple[Any, ...] | None = None

    @property
    def contribution(self) -> Vector:
        """Main effect and correction together: a feature's whole part in the output."""
        return self.main + self.correction

    def __len__(self) -> int:
        return len(self.output)

    def row(self, i: int, label: Any = None) -> list[tuple[str, float]]:
        """Return the features of a row with their contributions, the largest in size first.

        With several classes, ``label`` says for which.
        """
        values = self.contribution[i]
        if self.classes is not None:
            rule = f"one of the classes {self.classes}"
            way_out = "Each class has contributions of its own."
            check_argument("label", label, label in self.classes, rule, way_out)
            values = values[:, self.classes.index(label)]
        order = np.argsort(-np.abs(values), kind="stable")
        return [(self.names[j], float(values[j])) for j in order]

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with a row for each row and feature, and class."""
        pandas = require("pandas", extra="pandas", purpose="Explanation.to_pandas")
        labels = self.classes or (None,)
        levels = [range(len(self)), self.names, labels]
        index = pandas.MultiIndex.from_product(levels, names=["row", "feature", "class"])
        parts = ("main", "correction", "contribution", "error")
        frame = pandas.DataFrame({n: getattr(self, n).ravel() for n in parts}, index=index)
        return (frame if self.classes else frame.droplevel("class")).reset_index()

    def _tables(self) -> Iterator[Any]:
        labels = self.classes or (None,)
        shown = [(i, label) for i in range(min(len(self), 5)) for label in labels]
        for i, label in shown:
            rows = [(name, f"{value:+.4g}") for name, value in self.row(i, label)]
            title = f"Row {i}" if label is None else f"Row {i}, class {label}"
            is_last = len(self) > 5 and (i, label) == shown[-1]
            more = f"and {len(self) - 5:,} more rows" if is_last else ""
            yield f"{title} ({self.unit})", ("feature", "adds"), rows, more
