"""From a column of the training table to its description, one function per kind."""

import datetime
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from numpy.typing import NDArray

from fcorr._core import InvalidInputError, enumerate_some
from fcorr.data.bins import Cut, find_edges, find_groups
from fcorr.data.columns import Category, ColumnError, is_number, value_type
from fcorr.data.dates import DATE_PARTS, date_part, date_range, to_timestamps
from fcorr.data.descriptions import (
    BinnedColumn,
    CategoricalColumn,
    DatetimeColumn,
    NumericColumn,
    OrdinalColumn,
)
from fcorr.data.distinct import declared_order, find_distinct
from fcorr.data.kinds import as_boolean

CategoricalMissing = Literal["category", "mode"]
NumericMissing = Literal["mean", "category"]


def describe_categories(
    name: str, values: pa.ChunkedArray, missing: CategoricalMissing, rare_below: float
) -> CategoricalColumn:
    """Describe a column of categories; those in fewer than ``rare_below`` rows are pooled.

    NOTE[DIFF]: the paper imputes the mode; "missing" is a category of its own unless asked for.
    """
    distinct = find_distinct(name, values)
    counts = distinct.count()
    counts, n_missing = counts[:-1], int(counts[-1])
    n_seen = int(np.count_nonzero(counts))
    _refuse_all_missing(name, n_seen, n_missing)
    is_kept = counts >= max(rare_below, 1)
    categories = distinct.dictionary.filter(pa.array(is_kept)).to_pylist()
    if not categories:
        raise InvalidInputError(
            f"Column {name!r} must have categories that repeat, got {n_seen} of them and each "
            f"in fewer than {rare_below:g} rows: it is a key, or nearly empty. Drop it, or pass "
            "min_category_rows=1 to keep every category."
        )
    return _categorical_column(
        name,
        dict(zip(categories, counts[is_kept].tolist(), strict=True)),
        n_missing,
        missing,
        n_pooled=n_seen - len(categories),
        n_pooled_rows=int(counts[~is_kept].sum()),
    )


def describe_booleans(
    name: str, values: pa.ChunkedArray, missing: CategoricalMissing
) -> CategoricalColumn:
    """Describe a column of booleans, 0 and 1, or true and false."""
    distinct = find_distinct(name, values)
    *counts, n_missing = distinct.count().tolist()
    seen: dict[Category, int] = {}
    for position, (value, n) in enumerate(zip(distinct.values, counts, strict=True)):
        boolean = as_boolean(value)
        if n and boolean is None:
            raise ColumnError(
                f"Column {name!r} must hold booleans, 0 and 1, or true and false, got {value!r} "
                f"in row {distinct.first_row(position)}",
                f"Correct it, or train with kinds={{{name!r}: 'categorical'}}.",
            )
        if n:
            seen[boolean] = seen.get(boolean, 0) + n
    _refuse_all_missing(name, len(seen), n_missing)
    return _categorical_column(name, seen, n_missing, missing)


def _categorical_column(
    name: str,
    counts: dict[Category, int],
    n_missing: int,
    missing: CategoricalMissing,
    n_pooled: int = 0,
    n_pooled_rows: int = 0,
) -> CategoricalColumn:
    categories = sorted(counts, key=_category_order)
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
        n_pooled=n_pooled,
        n_pooled_rows=n_pooled_rows,
    )


def _category_order(category: Category) -> tuple[bool, float, str]:
    """Sort numbers by value and before text, so that the codes do not depend on row order."""
    is_text = isinstance(category, str)
    return (is_text, 0.0 if is_text else float(category or 0), str(category))


def describe_ordinal(
    name: str, values: pa.ChunkedArray, order: Sequence[Category] | None, missing: NumericMissing
) -> OrdinalColumn:
    """Describe a column of ordered categories; without an ``order`` its type must tell one."""
    distinct = find_distinct(name, values)
    *counts, n_missing = distinct.count().tolist()
    if order is None:
        order = _find_order(name, values, distinct.values)
    place = {category: i for i, category in enumerate(order)}
    rows = [0] * len(order)
    for position, (value, n) in enumerate(zip(distinct.values, counts, strict=True)):
        if n and value not in place:
            raise ColumnError(
                f"Column {name!r} must hold the categories of its order, {enumerate_some(order)}, "
                f"got {value!r} in row {distinct.first_row(position)}",
                f"Correct it, or add {value!r} to the order in kinds.",
            )
        if n:
            rows[place[value]] += n
    _refuse_all_missing(name, sum(rows), n_missing)
    places = np.repeat(np.arange(len(order), dtype=np.float64), rows)
    return OrdinalColumn(
        name=name,
        categories=tuple(order),
        counts=tuple(rows),
        position=_numeric_column(name, places, n_missing, missing),
    )


def _find_order(
    name: str, values: pa.ChunkedArray, distinct: Sequence[Category]
) -> Sequence[Category]:
    order = declared_order(values)
    if order is not None:
        return order
    kind = value_type(values.type)
    if is_number(kind) or pat.is_boolean(kind):
        return sorted(distinct, key=_category_order)
    raise InvalidInputError(
        f"Column {name!r} must have an order to be ordinal, got {kind} without one. "
        f"State it: kinds={{{name!r}: ['low', 'middle', 'high']}} with its own categories."
    )


def describe_numbers(
    name: str, values: NDArray[np.float64], missing: NumericMissing
) -> NumericColumn:
    """Describe numbers, of which NaN are missing."""
    is_missing = np.isnan(values)
    n_missing = int(np.count_nonzero(is_missing))
    seen = values[~is_missing] if n_missing else values
    _refuse_all_missing(name, len(seen), n_missing)
    return _numeric_column(name, seen, n_missing, missing)


def _numeric_column(
    name: str, seen: NDArray[np.float64], n_missing: int, missing: NumericMissing
) -> NumericColumn:
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


def describe_bins(
    name: str, values: NDArray[np.float64], cut: Cut, missing: CategoricalMissing
) -> BinnedColumn:
    """Describe numbers, of which NaN are missing, that are cut into groups."""
    seen = values[~np.isnan(values)]
    n_missing = len(values) - len(seen)
    _refuse_all_missing(name, len(seen), n_missing)
    low, high = float(seen.min()), float(seen.max())
    edges = find_edges(seen, cut)
    if not edges:
        asked = f"{cut} groups" if isinstance(cut, int) else f"the edges {list(cut)}"
        raise InvalidInputError(
            f"bins must cut column {name!r} into at least two groups with training rows, got "
            f"{asked} and values from {low:.10g} to {high:.10g}. Choose edges between these, or "
            "leave the column out of `sensitive`."
        )
    counts = np.bincount(find_groups(seen, edges), minlength=len(edges) + 1).tolist()
    return BinnedColumn(
        name=name,
        edges=edges,
        counts=(*counts, n_missing) if n_missing and missing == "category" else tuple(counts),
        n_missing=n_missing,
        mode=int(np.argmax(counts)),
        low=low,
        high=high,
    )


def describe_dates(name: str, values: pa.ChunkedArray, missing: NumericMissing) -> DatetimeColumn:
    """Describe a column of dates by those of its parts that vary."""
    timestamps = to_timestamps(name, values)
    n_missing = timestamps.null_count
    _refuse_all_missing(name, len(timestamps) - n_missing, n_missing)
    first, last = date_range(name, timestamps)
    parts = {part: _describe_part(name, part, timestamps, first, missing) for part in DATE_PARTS}
    # What is the same in every row says nothing, such as the hour of dates without one.
    varying = tuple(part for part in parts.values() if part.low < part.high)
    return DatetimeColumn(
        name=name,
        first=first.isoformat(),
        last=last.isoformat(),
        n_missing=n_missing,
        features=varying or (parts["days"],),
    )


def _describe_part(
    name: str,
    part: str,
    timestamps: pa.ChunkedArray,
    first: datetime.datetime,
    missing: NumericMissing,
) -> NumericColumn:
    numbers = date_part(part, timestamps, first.date())
    return describe_numbers(f"{name}.{part}", numbers, missing)


def _refuse_all_missing(name: str, n_seen: int, n_missing: int) -> None:
    if n_seen == 0:
        raise InvalidInputError(
            f"Column {name!r} must hold at least one value, got {n_missing} missing ones and "
            "nothing else. Drop the column."
        )
