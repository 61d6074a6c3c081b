"""What is read off a model: main effects, importance, explanations of rows, attention.

Everything here is on the scale of the link, on which a model is a sum: log-odds, the logarithm of a
rate, or the unit of y::

    f(x) = b + Σ_j e_j(x_j) + correction(x)

The main effects ``e_j`` are tables and curves that can be written down. The correction is what
attention and head add, for features that act together.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from torch import Tensor

from fcorr._core import InvalidInputError, html_table, near_match, require
from fcorr.certify import Link
from fcorr.data.encode import EncodedTable
from fcorr.data.schema import (
    CategoricalColumn,
    CodedColumn,
    Column,
    ColumnKind,
    OrdinalColumn,
    RatedColumn,
    Schema,
)
from fcorr.estimators.invariance import Portfolio, label_value
from fcorr.estimators.options import is_integer
from fcorr.metrics.sharing import draw_orders, share_out
from fcorr.nn.engine import use_engine
from fcorr.nn.fcorr import FCorrTransformer, Network

Vector = NDArray[np.float64]

UNITS = {
    "sigmoid": "log-odds",
    "softmax": "log-odds, up to a constant that all classes share",
    "exp": "logarithm of the relativity",
    "identity": "unit of y",
}
"""What effects are measured in, by the link."""

_MOST_LEVELS = 50  # of a rated column that are listed
_N_ERRORS = 2  # standard errors from an estimate to the ends of its interval
_N_EXCHANGES = 4  # other rows that each row takes values from


@dataclass(frozen=True, eq=False)
class Reader:
    """A trained model as the functions below need it.

    Attributes
    ----------
    model, schema
        The trained network, with main effects, and its table.
    link : Link
        What makes predictions of outputs.
    shift, unit : ndarray of shape (n_outputs,) and float
        What makes of outputs what is on the scale of the link: ``shift + unit · output``.
    n_bags : int
        Number of bags; the members are recipes times bags, in this order.
    hidden : tuple of int
        Positions of features that predictions do not read.
    portfolio : Portfolio or None
        What predictions are averaged over.
    classes : tuple or None
        Labels of several classes.
    map : callable
        ``map(encoded, function)`` yields ``function(codes, numbers)`` of chunks of rows.
    """

    model: Network
    schema: Schema
    link: Link
    shift: Vector
    unit: float
    n_bags: int
    hidden: tuple[int, ...]
    portfolio: Portfolio | None
    classes: tuple[Any, ...] | None
    map: Callable[..., Iterator[Tensor]]

    def embed(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Embed every feature, one that predictions do not read as 0: ``(B, H, F)``."""
        with use_engine("compiled"):
            e_BHF = self.model.embed(x_cat, x_num)
        e_BHF[:, :, list(self.hidden)] = 0
        return e_BHF

    def main(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Take the mean over the members of the main effects: ``(B, O, F)``."""
        with use_engine("compiled"):
            found = [
                member.views.main_effects(x_cat, member.locate(x_num)).double()
                for member in self.model.members
                if member.views is not None
            ]
        main_BOF = torch.stack(found).mean(0)
        main_BOF[:, :, list(self.hidden)] = 0
        return main_BOF

    def score(self, e_BHF: Tensor) -> Tensor:
        """Compute outputs of embedded features in float64: ``(B, O)``."""
        return self._score(self.model, e_BHF)

    def score_bags(self, encoded: EncodedTable) -> Vector:
        """Compute outputs of the model, and by the members of each bag: ``(n_rows, 1 + K, O)``."""
        sizes = [member.n_views for member in self.model.members]

        def score(x_cat: Tensor, x_num: Tensor) -> Tensor:
            e_BHF = self.embed(x_cat, x_num)
            parts = zip(self.model.members, e_BHF.split(sizes, dim=1), strict=True)
            members = torch.stack([self._score(member, part) for member, part in parts])
            # Averages over a portfolio are not linear in the outputs.
            whole = members.mean(0) if self.portfolio is None else self.score(e_BHF)
            bags = members.unflatten(0, (-1, self.n_bags)).mean(0)
            return torch.cat([whole[None], bags]).transpose(0, 1)

        return torch.cat([*self.map(encoded, score)]).numpy()

    def _score(self, network: Network, e_BHF: Tensor) -> Tensor:
        if self.portfolio is None:
            return network.score_embedded(e_BHF.contiguous()).double()
        return self.portfolio.average(network, self.link.name, e_BHF.clone())


# ------------------------------------------------------------------------------ attention


@dataclass(frozen=True, eq=False)
class FeatureMatrix:
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
        row, column = key
        return float(self.values[self._position(row), self._position(column)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def diagonal(self) -> dict[str, float]:
        """Diagonal by feature: what the paper reads as feature significance."""
        return dict(zip(self.names, self.values.diagonal().tolist(), strict=True))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with the names on both axes."""
        pandas = require("pandas", extra="pandas", purpose="FeatureMatrix.to_pandas")
        return pandas.DataFrame(self.values, index=self.names, columns=self.names)

    def _repr_html_(self) -> str:
        rows = [
            (name, *(f"{value:.3g}" for value in values))
            for name, values in zip(self.names, self.values, strict=True)
        ]
        return html_table("Between features", ("", *self.names), rows)

    def _position(self, name: str) -> int:
        return _find(name, self.names, "The matrix")


def _find(name: str, names: Sequence[str], what: str) -> int:
    if name not in names:
        raise InvalidInputError(f"{what} has no feature {name!r}.{near_match(name, names)}")
    return names.index(name)


def scaled_effects(network: FCorrTransformer, x_cat: Tensor, x_num: Tensor) -> Tensor:
    """Divide main effects by the root of their mean square in the row: ``(B · n_outputs, F)``.

    This is LayerNorm, but for what it does to a feature that has no effect: it takes the row's mean
    away, which leaves of 0 minus that mean, and weighs the features.
    """
    e_RF = network.embed(x_cat, x_num)[:, : network.n_outputs].flatten(0, 1).double()
    eps = network.first_layer.attention_norm.eps
    return e_RF * torch.rsqrt(e_RF.square().mean(1, keepdim=True) + eps)


# ------------------------------------------------------------------------------ main effects


@dataclass(frozen=True, eq=False)
class MainEffect:
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
        Mean of the members' effects; its own mean over the training rows, weighted, is 0.
    lower, upper : ndarray
        The effect ± 2 standard errors by the delete-a-group jackknife: each bag of the pack leaves
        out a group of rows, and how far the bags' effects lie apart tells what other rows would
        have changed. NaN for a single network, which has no bags.
    rows : ndarray of shape (n_values,)
        Training rows of a category. For numbers, about each: a row between two of them counts for
        both, by its distance, and by its weight.
    credibility : ndarray of shape (n_values,)
        Of a category of n rows ``n / (n + k)``, by which training pulls it to the mean; k is the
        mean of the chosen recipes. For a category that was rated, the credibility of its rating.
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
        columns = {name: getattr(self, name) for name in names}
        known = {name: list(column) for name, column in columns.items() if column is not None}
        return {"value": list(self.values), **known}

    def of_class(self, k: int) -> "MainEffect":
        """Return the effect on one of several classes."""
        effect, lower, upper = (each[:, k] for each in (self.effect, self.lower, self.upper))
        return replace(self, effect=effect, lower=lower, upper=upper)


@dataclass(frozen=True, eq=False)
class MainEffects(Mapping[str, MainEffect]):
    """The main effects of a model by feature: ``effects["age"].effect``.

    Attributes
    ----------
    effects : dict of str to MainEffect
        A table for each feature.
    unit : str
        What effects are measured in.
    classes : tuple or None
        The classes of the tables' columns, where there are more than two.
    """

    effects: dict[str, MainEffect]
    unit: str
    classes: tuple[Any, ...] | None = None

    def __getitem__(self, name: str) -> MainEffect:
        _find(name, list(self.effects), "The model")
        return self.effects[name]

    def __contains__(self, name: object) -> bool:
        return name in self.effects

    def __iter__(self) -> Iterator[str]:
        return iter(self.effects)

    def __len__(self) -> int:
        return len(self.effects)

    def to_pandas(self) -> Any:
        """Return one pandas DataFrame with a row for each value of each feature, and class."""
        pandas = require("pandas", extra="pandas", purpose="MainEffects.to_pandas")
        parts = []
        for _, label, effect in self._tables():
            part = pandas.DataFrame(effect.table())
            part["value"] = part["value"].astype(object)
            part.insert(0, "feature", effect.name)
            if self.classes is not None:
                part.insert(1, "class", label)
            parts.append(part)
        return pandas.concat(parts, ignore_index=True)

    def _tables(self) -> Iterator[tuple[str, Any, MainEffect]]:
        for effect in self.effects.values():
            for k, label in enumerate(self.classes or (None,)):
                whole = self.classes is None
                caption = effect.name if whole else f"{effect.name}, class {label}"
                yield caption, label, effect if whole else effect.of_class(k)

    def _repr_html_(self) -> str:
        tables = []
        for caption, _, effect in self._tables():
            columns = effect.table()
            rows = [
                ("missing" if value is None else value, *(f"{number:.4g}" for number in numbers))
                for value, *numbers in zip(*columns.values(), strict=True)
            ]
            tables.append(html_table(f"{caption} ({self.unit})", [*columns], rows))
        return "".join(tables)


def read_main_effects(reader: Reader, credibility: float) -> MainEffects:
    """Read the main effects off the members; credibility is k of ``n / (n + k)``."""
    schema = reader.schema
    shapes = [_read_shapes(member) for member in reader.model.members]
    columns = {f.name: column for column in schema.columns for f in column.features}
    effects = {}
    for position, name in enumerate(schema.feature_names):
        of_members = [shape[position] for shape in shapes]
        levels = _list_levels(schema, position, columns[name], of_members, credibility)
        by_member = reader.unit * np.stack([shape.at(levels.points) for shape in of_members])
        if position in reader.hidden:
            by_member[:] = 0
        effect = by_member.mean(0)
        error = jackknife_error(by_member.reshape(-1, reader.n_bags, *effect.shape).mean(0))
        arrays: dict[str, Any] = {
            "effect": effect,
            "lower": effect - _N_ERRORS * error,
            "upper": effect + _N_ERRORS * error,
            "relativity": np.exp(effect) if reader.link.name == "exp" else None,
        }
        if reader.classes is None:  # one output needs no axis
            arrays = {name: x if x is None else x[:, 0] for name, x in arrays.items()}
        effects[name] = MainEffect(
            name,
            columns[name].kind,
            levels.values,
            rows=levels.rows,
            credibility=levels.credibility,
            **arrays,
        )
    return MainEffects(effects, UNITS[reader.link.name], reader.classes)


@dataclass(frozen=True, eq=False)
class _Shape:
    """One member's effect of a feature in float64: at codes or knots, and where it is missing."""

    knots: Vector
    values: Vector  # (n_knots, n_outputs)
    shares: Vector
    missing: Vector | None

    def at(self, points: Vector) -> Vector:
        """Interpolate; NaN is missing: ``(n_points, n_outputs)``."""
        columns = [np.interp(points, self.knots, column) for column in self.values.T]
        found = np.stack(columns, axis=1)
        if self.missing is not None:
            found[np.isnan(points)] = self.missing
        return found


@torch.no_grad()
def _read_shapes(network: FCorrTransformer) -> list[_Shape]:
    views = network.views
    assert views is not None
    values = views.main_values().double()
    shares, owner = views.shares.double(), views.feature_of_slot
    # Once more in double precision: what the mean is depends on it in the last digits.
    means = torch.zeros(network.n_features, network.n_outputs, dtype=torch.float64)
    values -= means.index_add(0, owner, values * shares[:, None])[owner]
    sizes = [*views.offsets.diff().tolist(), *views.numbers.starts.diff().tolist()]
    n_slots, shapes, start = sum(sizes), [], 0
    for position, size in enumerate(sizes):
        j = position - len(network.cat_cardinalities)
        slots = slice(start, start + size)
        knots = torch.arange(size) if j < 0 else views.numbers.knots[j, :size]
        missing = values[n_slots + j].numpy() if j >= 0 and views.missing is not None else None
        parts = knots.double().numpy(), values[slots].numpy(), shares[slots].numpy()
        shapes.append(_Shape(*parts, missing))
        start += size
    return shapes


@dataclass(frozen=True, eq=False)
class _Levels:
    """A feature's values: in the table's words, in the model's, their rows, and credibility."""

    values: tuple[str | float | None, ...]
    points: Vector
    rows: Vector
    credibility: Vector


def _list_levels(
    schema: Schema, position: int, column: Column, shapes: Sequence[_Shape], k: float
) -> _Levels:
    if isinstance(column, CodedColumn):
        pooled = column.n_pooled_rows if isinstance(column, CategoricalColumn) else 0
        rows = np.array([*column.counts, pooled][: column.n_codes], dtype=float)
        credibility = np.divide(rows, rows + k, where=rows > 0, out=np.zeros(len(rows)))
        return _Levels(column.labels, np.arange(len(rows), dtype=float), rows, credibility)
    number = schema.numeric[position - len(schema.cardinalities)]
    if isinstance(column, RatedColumn):  # where a missing value is a category like any other
        counts = np.array(column.counts, dtype=float)
        shown = np.argsort(-counts, kind="stable")[:_MOST_LEVELS]
        categories = ["missing" if c is None else str(c) for c in column.categories]
        labels = tuple(categories[i] for i in shown)
        points = (np.array(column.ratings)[shown] - number.mean) / number.scale
        return _Levels(labels, points, counts[shown], np.array(column.credibilities)[shown])
    values: tuple[str | float | None, ...]
    if isinstance(column, OrdinalColumn):
        values = tuple(str(category) for category in column.categories)
        points = (np.arange(len(values), dtype=np.float64) - number.mean) / number.scale
        rows = np.array(column.counts, dtype=float)
    else:
        finest = max(shapes, key=lambda shape: len(shape.knots))
        points, rows = finest.knots, finest.shares * schema.n_rows
        values = tuple(label_value(schema, position, value) for value in points)
    if number.keep_missing:
        values, points = (*values, None), np.append(points, np.nan)
        rows = np.append(rows, number.n_missing)
    return _Levels(values, points, rows, np.full(len(rows), np.nan))


def set_feature(encoded: EncodedTable, position: int, values: NDArray[Any]) -> EncodedTable:
    """Return encoded rows with other values of one feature."""
    codes, numbers = encoded.codes, encoded.numbers
    if position < codes.shape[1]:
        codes = codes.copy()
        codes[:, position] = values
    else:
        numbers = numbers.copy()
        numbers[:, position - codes.shape[1]] = values
    return replace(encoded, codes=codes, numbers=numbers)


def jackknife_error(bags: Vector) -> Vector:
    """Return the standard error by the delete-a-group jackknife: ``(K, *)`` → ``(*)``.

    ``√((K − 1)/K · Σ_k (θ_k − θ̄)²)``, where θ_k is what was learnt without group k. Bags have most
    of their rows in common, so that their own spread says too little. NaN with a single bag.

    Examples
    --------
    The mean of 1, 2, 6 has a standard error of √(7/3); its groups of one are left out in turn:

    >>> round(float(jackknife_error(np.array([4.0, 3.5, 1.5])) ** 2), 6)
    2.333333
    """
    n_bags = len(bags)
    if n_bags < 2:
        return np.full(bags.shape[1:], np.nan)
    total = np.square(bags - bags.mean(0)).sum(0)
    return np.sqrt((n_bags - 1) / n_bags * total)


# ------------------------------------------------------------------------------ importance


@dataclass(frozen=True, eq=False)
class Importance:
    """How much each feature matters, the largest total first.

    Attributes
    ----------
    names : tuple of str
        The features.
    main : ndarray
        Share of the output's variance over the rows that is the main effect's own.
    total : ndarray
        Share of that variance which goes with the feature, alone and together with others: Sobol's
        total index, ``½·E[(f(x) − f(x with x_j of another row))²] / Var f``.
    lower, upper : ndarray
        The total ± 2 standard errors, not below 0; see :class:`MainEffect`.
    change : ndarray
        Mean absolute change of the prediction when the feature's value is that of another row: of
        probabilities, or in the unit of y per unit of exposure. It is what permutation importance
        measures; of several classes half the sum.
    agreement : float
        Spearman's rank correlation between ``change`` and ``feature_significance``: how far the
        diagonal of the attention matrix orders the features as their effect on predictions does.
    n_rows : int
        Rows that it was computed on.
    """

    names: tuple[str, ...]
    main: Vector
    total: Vector
    lower: Vector
    upper: Vector
    change: Vector
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
        return {n: getattr(self, n) for n in ("main", "total", "lower", "upper", "change")}

    def _repr_html_(self) -> str:
        columns = self._columns()
        rows = [
            (name, *(f"{number:.3g}" for number in numbers))
            for name, *numbers in zip(self.names, *columns.values(), strict=True)
        ]
        note = f"Rank correlation of change with significance: {self.agreement:.2f}."
        caption = f"Importance on {self.n_rows:,} rows"
        return html_table(caption, ("feature", *columns), rows, note)


def sample_rows(encoded: EncodedTable, n_rows: int, seed: int) -> EncodedTable:
    """Draw rows, at most so many."""
    if not is_integer(n_rows, 2):
        raise InvalidInputError(
            f"n_rows must be an integer of at least 2, got {n_rows!r}. Leave it out, or raise it."
        )
    if len(encoded) <= n_rows:
        return encoded
    rows = np.random.default_rng(seed).choice(len(encoded), n_rows, replace=False)
    return replace(encoded, codes=encoded.codes[rows], numbers=encoded.numbers[rows])


def read_importance(
    reader: Reader, encoded: EncodedTable, significance: Vector, seed: int
) -> Importance:
    """Measure how much each feature matters on some rows."""
    total, change, variance = total_importance(
        reader.score_bags, encoded, reader.link, seed=seed, n_exchanges=_N_EXCHANGES
    )
    error = _N_ERRORS * jackknife_error(total[1:])
    chunks = reader.map(encoded, reader.main)
    main = torch.cat([*chunks]).numpy().var(0, ddof=1).sum(0) / (variance[0] or 1.0)
    order = np.argsort(-total[0], kind="stable")
    return Importance(
        tuple(reader.schema.feature_names[i] for i in order),
        main[order],
        total[0, order],
        np.maximum(total[0] - error, 0)[order],
        (total[0] + error)[order],
        change[order],
        rank_correlation(change, significance),
        len(encoded),
    )


def total_importance(
    score: Callable[[EncodedTable], Vector],
    encoded: EncodedTable,
    link: Link,
    *,
    seed: int,
    n_exchanges: int = 1,
) -> tuple[Vector, Vector, Vector]:
    """Estimate Sobol's total index of each feature by Jansen's formula, model by model.

    Rows are put in a random circle, and each gets the feature's value of the row ``1`` to
    ``n_exchanges`` places further: of another row always, and each value as often as it was there.

    Parameters
    ----------
    score : callable
        Outputs of M models for encoded rows: ``(B, M, n_outputs)``. Their variances are summed.
    encoded : EncodedTable
        The rows.
    link : Link
        What makes predictions of the first model's outputs.
    seed, n_exchanges : int
        Order of the rows, and how many others each is exchanged with.

    Returns
    -------
    total, change, variance : ndarrays of shape (M, n_features), (n_features,) and (M,)
        The total index, the first model's mean absolute change of predictions, and the variances.
        A model that predicts one value for all has a total of 0.
    """
    n_rows, (n_codes, n_numbers) = len(encoded), (encoded.codes.shape[1], encoded.numbers.shape[1])
    circle = np.random.default_rng(seed).permutation(n_rows)
    outputs = score(encoded)
    predictions = link(torch.from_numpy(outputs[:, 0])).numpy()
    half = 0.5 if link.name == "softmax" else 1.0
    squares = np.zeros((outputs.shape[1], n_codes + n_numbers))
    change = np.zeros(n_codes + n_numbers)
    # With one row more are the same row.
    shifts = range(1, min(n_exchanges, n_rows - 1) + 1)
    for shift in shifts:
        other = np.empty(n_rows, dtype=np.intp)
        other[circle] = np.roll(circle, shift)
        for j in range(n_codes + n_numbers):
            column = encoded.codes[:, j] if j < n_codes else encoded.numbers[:, j - n_codes]
            exchanged = score(set_feature(encoded, j, column[other]))
            squares[:, j] += np.square(exchanged - outputs).sum(2).mean(0) / 2
            moved = link(torch.from_numpy(exchanged[:, 0])).numpy() - predictions
            change[j] += half * np.abs(moved).sum(1).mean()
    variance = outputs.var(0, ddof=min(1, n_rows - 1)).sum(1)
    n_shifts = max(1, len(shifts))
    share = np.divide(squares, variance[:, None], where=variance[:, None] > 0, out=0 * squares)
    return share / n_shifts, change / n_shifts, variance


def rank_correlation(a: Vector, b: Vector) -> float:
    """Return Spearman's rank correlation, NaN where all of one are the same.

    Examples
    --------
    >>> rank_correlation(np.array([1.0, 5.0, 2.0]), np.array([0.1, 9.0, 3.0]))
    1.0
    """
    ranks = np.stack([rankdata(a), rankdata(b)])
    ranks -= ranks.mean(1, keepdims=True)
    norms = np.sqrt(np.square(ranks).sum(1))
    return float(round(ranks[0] @ ranks[1] / norms.prod(), 12)) if norms.all() else math.nan


# ------------------------------------------------------------------------------ rows


@dataclass(frozen=True, eq=False)
class Explanation:
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
            if label not in self.classes:
                raise InvalidInputError(
                    f"label must be one of the classes {self.classes}, got {label!r}. Each class "
                    "has contributions of its own."
                )
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

    def _repr_html_(self) -> str:
        shown = min(len(self), 5)
        tables = []
        for i in range(shown):
            for label in self.classes or (None,):
                rows = [(name, f"{value:+.4g}") for name, value in self.row(i, label)]
                title = f"Row {i}" if label is None else f"Row {i}, class {label}"
                tables.append(html_table(f"{title} ({self.unit})", ("feature", "adds"), rows))
        more = f"<p>and {len(self) - shown:,} more rows</p>" if len(self) > shown else ""
        return "".join(tables) + more


def read_explanation(
    reader: Reader, encoded: EncodedTable, n_samples: int, seed: int
) -> Explanation:
    """Share each row's output out among the features."""
    names = reader.schema.feature_names
    n_views = sum(member.n_views for member in reader.model.members)
    orders = draw_orders(len(names), n_samples, seed)

    def explain(x_cat: Tensor, x_num: Tensor) -> Tensor:
        e_BHF = reader.embed(x_cat, x_num)
        main_BFO = reader.main(x_cat, x_num).transpose(1, 2)
        output_B1O = reader.score(e_BHF).unsqueeze(1)
        values_BFO, error_BFO = shapley_values(reader.score, e_BHF, orders)
        # What main effects add up to is shared out exactly: each feature gets its own.
        parts = main_BFO, values_BFO - main_BFO, error_BFO, output_B1O
        return torch.cat(parts, dim=1)

    found = reader.map(encoded, explain, numbers_per_row=n_views * len(names))
    parts = torch.cat([*found]).numpy()
    at_zero = reader.score(torch.zeros(1, n_views, len(names))).numpy()[0]
    main, correction, error = np.split(reader.unit * parts[:, :-1], 3, axis=1)
    arrays: dict[str, Any] = {
        "intercept": reader.unit * at_zero + reader.shift,
        "main": main,
        "correction": correction,
        "error": error,
        "output": reader.unit * parts[:, -1] + reader.shift,
    }
    if reader.classes is None:  # one output needs no axis
        arrays = {name: array[..., 0] for name, array in arrays.items()}
    return Explanation(names, **arrays, unit=UNITS[reader.link.name], classes=reader.classes)


@torch.no_grad()
def shapley_values(
    score: Callable[[Tensor], Tensor], e_BHF: Tensor, orders: NDArray[np.intp]
) -> tuple[Tensor, Tensor]:
    """Share a function of embedded features out among them, by orders in which they appear.

    A feature gets what the function changes by when its views take the place of zeros, on average
    over the orders. All features together get ``score(e) − score(0)``, whatever the orders.

    Parameters
    ----------
    score : callable
        ``(B, H, F)`` → ``(B, n_outputs)``.
    e_BHF : Tensor
        Embedded features.
    orders : ndarray of shape (n_orders, F)
        Orders, each second one the reverse of the one before.

    Returns
    -------
    values, errors : Tensors of shape (B, F, n_outputs) in float64
        The mean over orders, and its standard error over pairs of them.
    """
    at_zero = score(torch.zeros_like(e_BHF)).double().numpy()

    def appear(order: list[int]) -> Iterator[NDArray[Any]]:
        present = torch.zeros_like(e_BHF)
        yield at_zero
        for j in order:
            present[:, :, j] = e_BHF[:, :, j]
            yield score(present).double().numpy()

    found = torch.from_numpy(share_out(appear, orders))
    return found.mean(0), found.std(0) / math.sqrt(len(found))
