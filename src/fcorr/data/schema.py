"""What a table looks like to the model: column kinds, categories, ranges. JSON in and out."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from fcorr._core.errors import InvalidInputError, enumerate_some, near_match
from fcorr.data.columns import Category, count_categories, is_number, is_text, to_numbers
from fcorr.data.tables import Table

CategoricalMissing = Literal["category", "mode"]
NumericMissing = Literal["mean", "category"]
ConstantColumns = Literal["error", "keep"]

MAX_SENSITIVE_NUMBERS = 100
"""A sensitive column of numbers with more distinct values than this is taken for a measurement."""


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of categories. Code i stands for ``categories[i]``; ``None`` is "missing".

    ``mode`` is the code of the most frequent category that is not "missing": what an unseen
    category, or a missing value with no category of its own, is taken for.
    """

    name: str
    categories: tuple[Category, ...]
    counts: tuple[int, ...]
    n_missing: int
    mode: int


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


@dataclass(frozen=True)
class Schema:
    """The columns of a training table in the model's order: sensitive, categorical, numeric.

    Attributes
    ----------
    categorical, numeric : tuple of columns
        The model's features. Sensitive columns are categorical and come first.
    n_sensitive : int
        How many of the categorical columns are sensitive.
    names : tuple of str
        Column names in the order of the training table.
    n_rows : int
        Rows of the training table.
    """

    categorical: tuple[CategoricalColumn, ...]
    numeric: tuple[NumericColumn, ...]
    n_sensitive: int
    names: tuple[str, ...]
    n_rows: int

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Feature names in the model's order."""
        categorical = tuple(column.name for column in self.categorical)
        return categorical + tuple(column.name for column in self.numeric)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Names of the sensitive columns."""
        return self.feature_names[: self.n_sensitive]

    @property
    def text(self) -> tuple[str, ...]:
        """Names of the columns whose categories are text."""
        return tuple(
            c.name for c in self.categorical if any(isinstance(v, str) for v in c.categories)
        )

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of categories of each categorical column."""
        return tuple(len(column.categories) for column in self.categorical)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain data, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Schema":
        """Make a schema from what :meth:`to_dict` returned, also after a trip through JSON.

        Data that no table could have given, as in a damaged file, raises an error.
        """
        categorical = (
            CategoricalColumn(
                **{**c, "categories": tuple(c["categories"]), "counts": tuple(c["counts"])}
            )
            for c in data["categorical"]
        )
        numeric = (NumericColumn(**column) for column in data["numeric"])
        schema = cls(
            categorical=tuple(categorical),
            numeric=tuple(numeric),
            n_sensitive=data["n_sensitive"],
            names=tuple(data["names"]),
            n_rows=data["n_rows"],
        )
        if not schema._is_possible():
            raise InvalidInputError("A schema must describe a table, this one contradicts itself.")
        return schema

    def _is_possible(self) -> bool:
        return (
            sorted(self.names) == sorted(self.feature_names)
            and len(set(self.names)) == len(self.names)
            and 0 <= self.n_sensitive <= len(self.categorical)
            and all(0 <= c.mode < len(c.categories) == len(c.counts) for c in self.categorical)
            and all(isinstance(v, Category) for c in self.categorical for v in c.categories)
            and all(c.low <= c.mean <= c.high and 0 < c.scale < np.inf for c in self.numeric)
        )


def infer_schema(
    table: Table,
    *,
    sensitive: Sequence[str | int] = (),
    categorical: Sequence[str | int] = (),
    missing_categorical: CategoricalMissing = "category",
    missing_numeric: NumericMissing = "mean",
    constant_columns: ConstantColumns = "error",
) -> Schema:
    """Describe a training table.

    Text, booleans and dictionary columns are categorical, numbers are numeric; ``sensitive`` and
    ``categorical`` name columns that are categorical whatever they hold. Where the columns have
    no names, their positions serve.
    """
    sensitive_names = _resolve(table, sensitive, "sensitive")
    categorical_names = {*sensitive_names, *_resolve(table, categorical, "categorical_features")}
    kinds = {
        name: "categorical" if name in categorical_names else _kind(name, column.type)
        for name, column in table.columns.items()
    }
    first = list(sensitive_names)
    first += [n for n in table.names if kinds[n] == "categorical" and n not in sensitive_names]
    schema = Schema(
        categorical=tuple(
            _describe_categories(name, table.columns[name], missing_categorical) for name in first
        ),
        numeric=tuple(
            _describe_numbers(name, table.columns[name], missing_numeric)
            for name in table.names
            if kinds[name] == "numeric"
        ),
        n_sensitive=len(sensitive_names),
        names=table.names,
        n_rows=table.n_rows,
    )
    _check_sensitive(schema)
    if constant_columns == "error":
        _refuse_constant(schema)
    return schema


def _resolve(table: Table, columns: Sequence[str | int], argument: str) -> list[str]:
    """Turn names, or positions where there are no names, into names."""
    resolved = []
    for column in columns:
        if isinstance(column, str) and column in table.columns:
            resolved.append(column)
        elif not table.named and column in range(len(table.names)):
            resolved.append(table.names[int(column)])
        else:
            raise InvalidInputError(
                f"{argument} must name columns of X, got {column!r}."
                f"{near_match(str(column), table.names)} X has {enumerate_some(table.names, 8)}."
            )
    repeated = [name for i, name in enumerate(resolved) if name in resolved[:i]]
    if repeated:
        raise InvalidInputError(
            f"{argument} must name each column once, got {enumerate_some(repeated)} twice. "
            "Drop the repetition."
        )
    return resolved


def _kind(name: str, dtype: pa.DataType) -> Literal["numeric", "categorical"]:
    if is_number(dtype):
        return "numeric"
    if is_text(dtype) or pat.is_dictionary(dtype) or pat.is_null(dtype):
        return "categorical"
    raise InvalidInputError(
        f"Column {name!r} must hold numbers, text or booleans, got {dtype}. "
        "Convert it first, for example a date to the number of days since a start."
    )


def _refuse_all_missing(name: str, n_seen: int, n_missing: int) -> None:
    if n_seen == 0:
        raise InvalidInputError(
            f"Column {name!r} must hold at least one value, got {n_missing} missing ones and "
            "nothing else. Drop the column."
        )


def _describe_categories(
    name: str, column: pa.ChunkedArray, missing: CategoricalMissing
) -> CategoricalColumn:
    counts = count_categories(name, column)
    n_missing = counts.pop(None, 0)
    _refuse_all_missing(name, len(counts), n_missing)
    categories: list[Category] = sorted(counts, key=_category_order)
    mode = max(range(len(categories)), key=lambda code: counts[categories[code]])
    if n_missing and missing == "category":
        counts[None] = n_missing
        categories.append(None)
    return CategoricalColumn(
        name=name,
        categories=tuple(categories),
        counts=tuple(counts[category] for category in categories),
        n_missing=n_missing,
        mode=mode,
    )


def _category_order(category: Category) -> tuple[bool, float, str]:
    """Sort numbers by value and before text, so that the codes do not depend on row order."""
    is_text = isinstance(category, str)
    return (is_text, 0.0 if is_text else float(category or 0), str(category))


def _describe_numbers(name: str, column: pa.ChunkedArray, missing: NumericMissing) -> NumericColumn:
    values = to_numbers(name, column)
    seen = values[~np.isnan(values)]
    n_missing = len(values) - len(seen)
    _refuse_all_missing(name, len(seen), n_missing)
    low, high = float(seen.min()), float(seen.max())
    # Centre before squaring: with a large mean, E[x²] − E[x]² would lose every digit.
    mean = float(np.clip(seen.mean(), low, high))
    scale = float(np.sqrt(np.mean((seen - mean) ** 2))) if high > low else 1.0
    return NumericColumn(
        name=name,
        mean=mean,
        scale=scale if scale > 0 else 1.0,
        low=low,
        high=high,
        n_missing=n_missing,
        keep_missing=missing == "category" and n_missing > 0,
    )


def _check_sensitive(schema: Schema) -> None:
    for column in schema.categorical[: schema.n_sensitive]:
        n_categories = len(column.categories)
        if n_categories == 1:
            raise InvalidInputError(
                f"Sensitive column {column.name!r} must have at least two categories, "
                f"got only {column.categories[0]!r}. Leave it out of `sensitive`, or check X."
            )
        numbers = [c for c in column.categories if isinstance(c, int | float)]
        if len(numbers) > MAX_SENSITIVE_NUMBERS:
            raise InvalidInputError(
                f"Sensitive column {column.name!r} must be categorical, got {len(numbers)} "
                f"distinct numbers (at most {MAX_SENSITIVE_NUMBERS} are taken as categories). "
                "Group it first, for example ages into decades."
            )


def _refuse_constant(schema: Schema) -> None:
    constant = {c.name: c.categories[0] for c in schema.categorical if len(c.categories) == 1}
    constant |= {c.name: c.low for c in schema.numeric if c.low == c.high and not c.keep_missing}
    if constant and schema.n_rows > 1:
        name, value = next(iter(constant.items()))
        others = f" (and {len(constant) - 1} more such columns)" if len(constant) > 1 else ""
        raise InvalidInputError(
            f"Column {name!r} must take at least two values, got {value!r} wherever there is a "
            f"value{others}. "
            "Drop it, or pass constant_columns='keep' to carry it along without effect."
        )
