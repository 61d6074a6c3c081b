"""Schema: what the training table looked like, column by column. Plain data, JSON in and out."""

import datetime
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from fcorr._core import InvalidInputError, Tabled, check_argument, first_few, near_match
from fcorr.data.tables import DATE_PARTS, Category

if TYPE_CHECKING:
    from fcorr.data.encode import SchemaDiff

# ------------------------------------------------------------------------------ kinds of columns

KindName = Literal["numeric", "categorical", "ordinal", "boolean", "datetime"]
KINDS: tuple[KindName, ...] = get_args(KindName)
ColumnKind = Literal[KindName, "rated"]
"""What a described column can be: a kind, or categories that became numbers."""

MAX_SENSITIVE_CATEGORIES = 20
"""A sensitive column of numbers with more distinct values is a measurement, not categories."""

Kinds = Mapping[str, Any] | Mapping[int, Any] | Mapping[str | int, Any]
"""Columns, by name or position, and what they are: a :data:`KindName` or categories in order."""


@dataclass(frozen=True)
class Kind:
    """A column's kind and, where the user gave it, the order of its categories."""

    name: KindName
    order: tuple[Category, ...] | None = None


def parse_kinds(kinds: Kinds | None) -> dict[str | int, Kind]:
    """Read the argument ``kinds``, or say what is wrong with it."""
    if kinds is None:
        return {}
    rule = "a dict of columns and what they are"
    way_out = "Pass for example kinds={'zip': 'categorical'}."
    check_argument("kinds", kinds, isinstance(kinds, Mapping), rule, way_out)
    return {column: _parse_kind(column, kind) for column, kind in kinds.items()}


def _parse_kind(column: str | int, kind: Any) -> Kind:
    if isinstance(kind, str) and kind in KINDS:
        return Kind(kind)
    if isinstance(kind, str) or not isinstance(kind, Iterable):
        raise InvalidInputError(
            f"kinds must say {', '.join(map(repr, KINDS))} or the categories in order, "
            f"got {kind!r} for {column!r}.{near_match(str(kind), KINDS)}"
        )
    order = tuple(value.item() if hasattr(value, "item") else value for value in kind)
    wrong = [value for value in order if not isinstance(value, str | int | float)]
    if len(order) < 2 or wrong or len(set(order)) < len(order):
        raise InvalidInputError(
            f"kinds must list at least two categories in order, text or numbers and each once, "
            f"got {list(order)!r} for {column!r}. Leave out missing values and repetitions."
        )
    return Kind("ordinal", order)


def as_boolean(value: Category) -> bool | None:
    """Read a boolean, 0, 1 or the text true or false as a boolean; anything else as None."""
    words = {"true": True, "false": False}
    if isinstance(value, str):
        return words.get(value.lower())
    return bool(value) if value in (0, 1) else None


# ------------------------------------------------------------------------------ columns


class _IsFeature:
    """A column that gives one feature: itself."""

    @property
    def features(self) -> tuple[Self, ...]:
        """The features it gives: itself."""
        return (self,)


class _HasCategories:
    """A column of categories, whatever the model makes of them."""

    categories: tuple[Category, ...]

    @property
    def is_text(self) -> bool:
        """Whether the categories are text, or none is known."""
        return all(isinstance(category, str | None) for category in self.categories)

    @property
    def is_known(self) -> bool:
        """Whether any category is known: of a key, none is."""
        return any(category is not None for category in self.categories)


@dataclass(frozen=True)
class CategoricalColumn(_HasCategories, _IsFeature):
    """A column of categories. Code i stands for ``categories[i]``; ``None`` is "missing".

    ``categories`` are numbers by value or text in alphabetical order, "missing" last; ``counts``
    are the training rows of each. Categories that training saw in too few rows are pooled: they
    share one code, the last, and are not listed; there are ``n_pooled``, in ``n_pooled_rows``.
    ``mode`` is the code of the most frequent category that is neither "missing" nor the pool: what
    a missing value with no category of its own is taken for and, where there is no pool, an unseen
    category. ``n_missing`` training rows have no value.
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
        is_boolean = bool(seen) and all(isinstance(c, bool) for c in seen)
        return "boolean" if is_boolean else "categorical"

    @property
    def pool(self) -> int | None:
        """Code of the pool, or None where nothing was pooled."""
        return len(self.categories) if self.n_pooled else None

    @property
    def n_codes(self) -> int:
        """Number of codes: the categories and, if there is one, the pool."""
        return len(self.categories) + (self.n_pooled > 0)

    @property
    def labels(self) -> tuple[str, ...]:
        """What each code stands for, in words."""
        labels = ["missing" if c is None else str(c) for c in self.categories]
        return (*labels, *([f"other ({self.n_pooled} rare)"] if self.n_pooled else []))

    def _is_possible(self) -> bool:
        return _are_counted(self) and _are_counts(self.n_pooled, self.n_pooled_rows - self.n_pooled)


@dataclass(frozen=True)
class NumericColumn(_IsFeature):
    """A column of numbers; ``mean`` and ``scale`` standardise it, ``low`` and ``high`` bound it."""

    name: str
    mean: float
    scale: float
    low: float
    high: float
    n_missing: int
    keep_missing: bool

    kind: ClassVar[ColumnKind] = "numeric"

    def _is_possible(self) -> bool:
        return (
            self.low <= self.mean <= self.high
            and math.isfinite(self.low)
            and math.isfinite(self.high)
            and 0 < self.scale < math.inf
            and _are_counts(self.n_missing)
        )


@dataclass(frozen=True)
class OrdinalColumn(_HasCategories):
    """A column of ordered categories, which the model sees as a number: the place in the order.

    ``categories`` are all in their order, also those that no training row has; ``counts`` are the
    training rows of each; ``position`` describes the place in the order, 0 for the first.
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
    def features(self) -> tuple[NumericColumn, ...]:
        """The feature it gives: the place in the order."""
        return (self.position,)

    def _is_possible(self) -> bool:
        return (
            all(isinstance(category, str | int | float) for category in self.categories)
            and len(set(self.categories)) == len(self.categories) == len(self.counts)
            and _are_counts(*self.counts)
            and self.position.name == self.name
            and self.position._is_possible()
        )


@dataclass(frozen=True)
class RatedColumn(_HasCategories):
    """A column of many categories, which the model sees as a number: what training rates them at.

    The rating of a category is how far its mean target lies from that of all rows, on the scale
    of the model's outputs and shrunk by ``credibilities``, from 0 for what says nothing to 1 for
    what is known for sure; ``fcorr.data.infer.rate_columns`` has the formula. A category that
    training did not see is rated 0. ``number`` describes the ratings of the training rows.
    ``categories``, ``counts``, ``n_missing`` and ``mode`` are as in :class:`CategoricalColumn`;
    none is pooled.
    """

    name: str
    categories: tuple[Category, ...]
    counts: tuple[int, ...]
    n_missing: int
    mode: int
    ratings: tuple[float, ...]
    credibilities: tuple[float, ...]
    number: NumericColumn

    kind: ClassVar[ColumnKind] = "rated"

    @property
    def pool(self) -> int:
        """The place after the last category: that of all which training did not see."""
        return len(self.categories)

    @property
    def features(self) -> tuple[NumericColumn, ...]:
        """The feature it gives: the rating."""
        return (self.number,)

    def _is_possible(self) -> bool:
        return (
            _are_counted(self)
            and len(self.ratings) == len(self.credibilities) == len(self.categories)
            and all(0 <= credibility <= 1 for credibility in self.credibilities)
            and self.number.name == self.name
            and self.number._is_possible()
            and (self.number.low, self.number.high) == (min(self.ratings), max(self.ratings))
            and all(map(math.isfinite, self.ratings))
        )


@dataclass(frozen=True)
class DatetimeColumn:
    """A column of dates, which the model sees as some numbers each.

    A column ``d`` gives the features ``d.year``, ``d.month`` (1 to 12), ``d.day_of_week`` (0 is
    Monday), ``d.hour`` and ``d.days`` (whole days since the first training date), but only those
    that vary in the training table: dates without a time of day have no hour. Times are those of
    the column's time zone. ``first`` and ``last`` are training dates in ISO 8601.
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

    def _is_possible(self) -> bool:
        first, last = map(datetime.datetime.fromisoformat, (self.first, self.last))
        possible = {f"{self.name}.{part}" for part in DATE_PARTS}
        return (
            first <= last
            and len(self.features) > 0
            and {feature.name for feature in self.features} <= possible
            and all(feature._is_possible() for feature in self.features)
            and _are_counts(self.n_missing)
        )


CategoryColumn = CategoricalColumn | OrdinalColumn | RatedColumn
Column = CategoryColumn | NumericColumn | DatetimeColumn

_COLUMNS: dict[str, type[Column]] = {
    "categorical": CategoricalColumn,
    "boolean": CategoricalColumn,
    "numeric": NumericColumn,
    "ordinal": OrdinalColumn,
    "rated": RatedColumn,
    "datetime": DatetimeColumn,
}


def _column_from_dict(data: dict[str, Any]) -> Column:
    """Make a column's description from plain data, as its fields and its ``kind``."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
    }
    for part in {"position", "number"}.intersection(fields):
        fields[part] = NumericColumn(**fields[part])
    if "features" in fields:
        fields["features"] = tuple(NumericColumn(**feature) for feature in fields["features"])
    return _COLUMNS[fields.pop("kind")](**fields)


def describe_column(column: Column) -> str:
    """Say in a few words what training learnt of a column."""
    if isinstance(column, CategoricalColumn):
        return first_few(column.labels, 8)
    if isinstance(column, OrdinalColumn):
        return first_few(map(str, column.categories), 8, " < ")
    if isinstance(column, RatedColumn):
        low, high = column.number.low, column.number.high
        return f"{len(column.categories):,} categories, rated {low:.4g} to {high:.4g}"
    if isinstance(column, DatetimeColumn):
        return f"{column.first} to {column.last}, as {', '.join(column.parts)}"
    return f"{column.low:.10g} to {column.high:.10g}, mean {column.mean:.4g}"


def _are_counted(column: CategoricalColumn | RatedColumn) -> bool:
    """Tell whether categories can be those of a table, each with its rows."""
    seen = [category for category in column.categories if category is not None]
    return (
        all(isinstance(category, Category) for category in column.categories)
        and len({isinstance(category, str) for category in seen}) < 2
        and len(set(column.categories)) == len(column.categories) == len(column.counts)
        and _are_counts(*column.counts, column.n_missing, column.mode)
        and column.mode < max(1, len(seen))  # "missing" comes last
    )


_COUNTS = ("counts", "n_missing", "n_pooled_rows")  # fields that grow with the rows


def _are_counts(*values: object) -> bool:
    return all(isinstance(value, int) and value >= 0 for value in values)


# ------------------------------------------------------------------------------ the schema


@dataclass(frozen=True)
class Schema(Tabled):
    """What a training table looked like. :func:`infer_schema` makes one.

    Attributes
    ----------
    columns : tuple of columns
        One description per column of the table but the exposure, in the table's order.
    sensitive : tuple of str
        Names of the sensitive columns, of whatever kind, in the order they were given.
    n_rows : int
        Rows of the training table.
    target, weight, exposure : str or None
        Names of the columns with these roles, where they are known. They are no features.
    """

    columns: tuple[Column, ...]
    sensitive: tuple[str, ...]
    n_rows: int
    target: str | None = None
    weight: str | None = None
    exposure: str | None = None

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that features come from."""
        return tuple(self._by_name)

    @cached_property
    def sensitive_first(self) -> tuple[Column, ...]:
        """The columns in the model's order: sensitive ones as given, then the others by table."""
        place = {name: i for i, name in enumerate(self.sensitive)}
        return tuple(sorted(self.columns, key=lambda column: place.get(column.name, len(place))))

    @cached_property
    def categorical(self) -> tuple[CategoricalColumn, ...]:
        """The features that are codes: categories, sensitive ones first as given."""
        return tuple(c for c in self.sensitive_first if isinstance(c, CategoricalColumn))

    @cached_property
    def numeric(self) -> tuple[NumericColumn, ...]:
        """The features that are numbers: numeric columns, ordinal places, ratings, parts of dates.

        Those of sensitive columns come first, in the order the columns were given.
        """
        found = (c for c in self.sensitive_first if not isinstance(c, CategoricalColumn))
        return tuple(feature for column in found for feature in column.features)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The model's features in the model's order: categorical, numeric; sensitive first in each.

        A column of dates gives several features, every other column one.
        """
        categorical = tuple(column.name for column in self.categorical)
        return categorical + tuple(feature.name for feature in self.numeric)

    @cached_property
    def sensitive_positions(self) -> tuple[int, ...]:
        """Where in :attr:`feature_names` the features of sensitive columns are."""
        sensitive = {f.name for name in self.sensitive for f in self._by_name[name].features}
        return tuple(i for i, name in enumerate(self.feature_names) if name in sensitive)

    @property
    def sensitive_features(self) -> tuple[str, ...]:
        """Names of the features of sensitive columns, in the model's order."""
        return tuple(self.feature_names[i] for i in self.sensitive_positions)

    @property
    def empty(self) -> set[str]:
        """Names of the columns in which no training row had a value: they say nothing."""
        return {c.name for c in self.columns if c.n_missing == self.n_rows > 0}

    @property
    def text(self) -> tuple[str, ...]:
        """Names of the columns whose categories are text."""
        return tuple(c.name for c in self.columns if getattr(c, "is_text", False))

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of codes of each categorical feature."""
        return tuple(column.n_codes for column in self.categorical)

    def diff(self, X: Any, *, read_sensitive: bool = True) -> "SchemaDiff":
        """Compare a table with the training table.

        Parameters
        ----------
        X : Table, dataframe or array
            The table. Columns without names are taken in their order.
        read_sensitive : bool, default=True
            Whether the sensitive columns are looked at. If not, they may differ in any way, and
            may be absent.

        Returns
        -------
        SchemaDiff
            What differs, column by column; ``print`` it to read it. False where nothing does.

        Examples
        --------
        >>> from fcorr.data import infer_schema, read_table
        >>> schema = infer_schema(read_table([[1, "a"], [2, "b"]]).renamed(["age", "job"]))
        >>> print(schema.diff([[3, "c"], [1, "b"]]))
        2 differences from the training table:
        - Column 'age' has 1 row(s) outside the training range, 1 to 2: up to 3
        - Column 'job' has 1 row(s) of categories not seen in training: 'c' (1)
        """
        from fcorr.data.encode import find_differences

        return find_differences(self, X, read_sensitive=read_sensitive)

    def _tables(self) -> Iterator[Any]:
        """Give a row for each column: its role, its kind, and what training learnt of it."""
        rows: list[tuple[str, str, str, str]] = []
        for column in self.columns:
            role = "sensitive" if column.name in self.sensitive else "feature"
            missing = f"; {column.n_missing:,} missing" if column.n_missing else ""
            held = "" if column.name in self.empty else describe_column(column)
            rows.append((column.name, role, column.kind, (held + missing).removeprefix("; ")))
        roles = {"target": self.target, "weight": self.weight, "exposure": self.exposure}
        rows += [(name, role, "", "") for role, name in roles.items() if name is not None]
        caption = f"Schema of a training table of {self.n_rows:,} rows"
        yield caption, ("column", "role", "kind", "in training"), rows, ""

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain data, ready for JSON."""
        columns = [{"kind": column.kind, **asdict(column)} for column in self.columns]
        return {**asdict(replace(self, columns=())), "columns": columns}

    def scaled(self, n_rows: int) -> "Schema":
        """Return the schema of a sample as that of a table of ``n_rows``: counts are estimates."""

        def scale(name: str, value: Any) -> Any:
            if isinstance(value, dict):
                return {key: scale(key, item) for key, item in value.items()}
            if isinstance(value, list | tuple):
                return [scale(name, item) for item in value]
            return round(value * n_rows / self.n_rows) if name in _COUNTS else value

        return Schema.from_dict(scale("", self.to_dict()) | {"n_rows": n_rows})

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Schema":
        """Make a schema from what :meth:`to_dict` returned, also after a trip through JSON.

        Raises
        ------
        InvalidInputError
            It is not such data, or no table could have given it, as in a damaged file.
        """
        try:
            columns = tuple(_column_from_dict(column) for column in data["columns"])
            schema = cls(**{**data, "columns": columns, "sensitive": tuple(data["sensitive"])})
            is_possible = schema._is_possible()
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise InvalidInputError(
                f"A schema must be data as to_dict returns it ({type(error).__name__}: {error}). "
                "Write it again with schema.to_dict()."
            ) from error
        if not is_possible:
            raise InvalidInputError("A schema must describe a table, this one contradicts itself.")
        return schema

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def _is_possible(self) -> bool:
        roles = (self.target, self.weight, self.exposure)
        return (
            all(isinstance(column.name, str) for column in self.columns)
            and len(self._by_name) == len(self.columns)
            and len(set(self.feature_names)) == len(self.feature_names)
            and len(set(self.sensitive)) == len(self.sensitive)
            and set(self._by_name).issuperset(self.sensitive)
            and all(role is None or isinstance(role, str) for role in roles)
            and self.exposure not in self._by_name
            and _are_counts(self.n_rows)
            and self.n_rows > 0
            and all(column._is_possible() for column in self.columns)
            and all(column.n_missing <= self.n_rows for column in self.columns)
        )
