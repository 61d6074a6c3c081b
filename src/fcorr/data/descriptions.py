"""What a column of each kind looked like in training, as plain data."""

import datetime
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from fcorr.data.columns import Category
from fcorr.data.dates import DATE_PARTS
from fcorr.data.kinds import ColumnKind


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of categories. Code i stands for ``categories[i]``; ``None`` is "missing".

    Categories that training saw in too few rows are pooled: they share one code, the last, and
    are not listed.

    Attributes
    ----------
    name : str
        The column.
    categories : tuple
        Numbers by value, text in alphabetical order, "missing" last.
    counts : tuple of int
        Training rows of each category.
    n_missing : int
        Training rows without a value.
    mode : int
        Code of the most frequent category that is neither "missing" nor the pool: what a missing
        value with no category of its own is taken for and, where there is no pool, an unseen
        category.
    n_pooled, n_pooled_rows : int
        How many categories were pooled, and the training rows that hold them.
    """

    name: str
    categories: tuple[Category, ...]
    counts: tuple[int, ...]
    n_missing: int
    mode: int
    n_pooled: int = 0
    n_pooled_rows: int = 0

    @property
    def kind(self) -> ColumnKind:
        """``"boolean"`` or ``"categorical"``."""
        seen = [category for category in self.categories if category is not None]
        return "boolean" if all(isinstance(c, bool) for c in seen) else "categorical"

    @property
    def is_text(self) -> bool:
        """Whether the categories are text."""
        return any(isinstance(category, str) for category in self.categories)

    @property
    def pool(self) -> int | None:
        """Code of the pool, or None where nothing was pooled."""
        return len(self.categories) if self.n_pooled else None

    @property
    def n_codes(self) -> int:
        """Number of codes: the categories and, if there is one, the pool."""
        return len(self.categories) + (self.n_pooled > 0)

    @property
    def features(self) -> tuple["CategoricalColumn", ...]:
        """The features it gives: itself."""
        return (self,)

    @property
    def labels(self) -> tuple[str, ...]:
        """What each code stands for, in words."""
        labels = ["missing" if c is None else str(c) for c in self.categories]
        return (*labels, *([f"other ({self.n_pooled} rare)"] if self.n_pooled else []))

    def is_possible(self) -> bool:
        """Tell whether some table could look like this."""
        seen = [category for category in self.categories if category is not None]
        return (
            all(isinstance(category, Category) for category in self.categories)
            and all(isinstance(category, str) for category in seen) == self.is_text
            and len(set(self.categories)) == len(self.categories) == len(self.counts)
            and are_counts(*self.counts, self.n_missing, self.n_pooled)
            and are_counts(self.mode, self.n_pooled_rows - self.n_pooled)
            and self.mode < len(seen)  # "missing" comes last
        )


@dataclass(frozen=True)
class BinnedColumn:
    """A column of numbers that are cut into groups. Code i stands for the i-th group from below.

    Attributes
    ----------
    name : str
        The column.
    edges : tuple of float
        Where one group ends and the next begins, which the edge itself belongs to.
    counts : tuple of int
        Training rows of each group and, where "missing" is a category, of the missing, last.
    n_missing : int
        Training rows without a value.
    mode : int
        Code of the most frequent group: what a missing value is taken for that has no category
        of its own.
    low, high : float
        The smallest and the largest training value.
    """

    name: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    n_missing: int
    mode: int
    low: float
    high: float

    kind: ClassVar[ColumnKind] = "binned"

    @property
    def n_codes(self) -> int:
        """Number of codes: the groups and, if it is a category, "missing"."""
        return len(self.counts)

    @property
    def missing(self) -> int | None:
        """Code of "missing", or None where it is no category."""
        n_groups = len(self.edges) + 1
        return n_groups if len(self.counts) > n_groups else None

    @property
    def features(self) -> tuple["BinnedColumn", ...]:
        """The features it gives: itself."""
        return (self,)

    @property
    def labels(self) -> tuple[str, ...]:
        """What each code stands for, in words."""
        # In all their digits: different groups must not share a label.
        edges = [str(edge).removesuffix(".0") for edge in self.edges]
        inner = [f"{low} to below {high}" for low, high in pairwise(edges)]
        labels = (f"below {edges[0]}", *inner, f"{edges[-1]} and above")
        return labels if self.missing is None else (*labels, "missing")

    def is_possible(self) -> bool:
        """Tell whether some table could look like this."""
        n_groups = len(self.edges) + 1
        limits = (self.low, *self.edges, self.high)
        return (
            n_groups > 1
            and self.low < self.edges[0]
            and all(low <= high for low, high in pairwise(limits))
            and len(set(self.edges)) == len(self.edges)
            and len(self.counts) in (n_groups, n_groups + 1)
            and are_counts(*self.counts, self.n_missing, self.mode)
            and self.mode < n_groups
        )


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers; ``mean`` and ``scale`` standardise it, ``low`` and ``high`` bound it."""

    name: str
    mean: float
    scale: float
    low: float
    high: float
    n_missing: int
    keep_missing: bool

    kind: ClassVar[ColumnKind] = "numeric"

    @property
    def features(self) -> tuple["NumericColumn", ...]:
        """The features it gives: itself."""
        return (self,)

    def is_possible(self) -> bool:
        """Tell whether some table could look like this."""
        return (
            self.low <= self.mean <= self.high
            and 0 < self.scale < math.inf
            and are_counts(self.n_missing)
        )


@dataclass(frozen=True)
class OrdinalColumn:
    """A column of ordered categories, which the model sees as a number: the place in the order.

    Attributes
    ----------
    name : str
        The column.
    categories : tuple
        All categories in their order, also those that no training row has.
    counts : tuple of int
        Training rows of each.
    position : NumericColumn
        The place in the order, 0 for the first category.
    """

    name: str
    categories: tuple[Category, ...]
    counts: tuple[int, ...]
    position: NumericColumn

    kind: ClassVar[ColumnKind] = "ordinal"

    @property
    def n_missing(self) -> int:
        """Training rows without a value."""
        return self.position.n_missing

    @property
    def is_text(self) -> bool:
        """Whether the categories are text."""
        return any(isinstance(category, str) for category in self.categories)

    @property
    def features(self) -> tuple[NumericColumn, ...]:
        """The feature it gives: the place in the order."""
        return (self.position,)

    def is_possible(self) -> bool:
        """Tell whether some table could look like this."""
        return (
            all(isinstance(category, str | int | float) for category in self.categories)
            and len(set(self.categories)) == len(self.categories) == len(self.counts)
            and are_counts(*self.counts)
            and self.position.name == self.name
            and self.position.is_possible()
        )


@dataclass(frozen=True)
class DatetimeColumn:
    """A column of dates, which the model sees as some numbers each.

    A column ``d`` gives the features ``d.year``, ``d.month`` (1 to 12), ``d.day_of_week`` (0 is
    Monday), ``d.hour`` and ``d.days`` (whole days since the first training date), but only those
    that vary in the training table: dates without a time of day have no hour. Times are those of
    the column's time zone.

    Attributes
    ----------
    name : str
        The column.
    first, last : str
        The first and the last training date, in ISO 8601.
    n_missing : int
        Training rows without a date.
    features : tuple of NumericColumn
        The parts that vary.
    """

    name: str
    first: str
    last: str
    n_missing: int
    features: tuple[NumericColumn, ...]

    kind: ClassVar[ColumnKind] = "datetime"

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that vary, as in ``"hour"``."""
        return tuple(feature.name.removeprefix(f"{self.name}.") for feature in self.features)

    @property
    def origin(self) -> datetime.date:
        """The day from which days are counted."""
        return datetime.datetime.fromisoformat(self.first).date()

    def is_possible(self) -> bool:
        """Tell whether some table could look like this."""
        first, last = map(datetime.datetime.fromisoformat, (self.first, self.last))
        return (
            first <= last
            and len(self.features) > 0
            and all(feature.name in self._possible_names() for feature in self.features)
            and all(feature.is_possible() for feature in self.features)
            and are_counts(self.n_missing)
        )

    def _possible_names(self) -> list[str]:
        return [f"{self.name}.{part}" for part in DATE_PARTS]


CodedColumn = CategoricalColumn | BinnedColumn
"""A column whose feature is a code."""

Column = CodedColumn | NumericColumn | OrdinalColumn | DatetimeColumn

_COLUMNS: dict[str, type[Column]] = {
    "categorical": CategoricalColumn,
    "boolean": CategoricalColumn,
    "binned": BinnedColumn,
    "numeric": NumericColumn,
    "ordinal": OrdinalColumn,
    "datetime": DatetimeColumn,
}


def column_from_dict(data: dict[str, Any]) -> Column:
    """Make a column's description from plain data, as its fields and its ``kind``."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in data.items()
        if name != "kind"
    }
    if "position" in fields:
        fields["position"] = NumericColumn(**fields["position"])
    if "features" in fields:
        fields["features"] = tuple(NumericColumn(**feature) for feature in fields["features"])
    return _COLUMNS[data["kind"]](**fields)


def are_counts(*values: int) -> bool:
    """Tell whether all values are whole numbers of at least 0."""
    return all(isinstance(value, int) and value >= 0 for value in values)
