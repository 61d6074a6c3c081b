"""What differs between a table and the training table, in words."""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fcorr._core import InvalidInputError, enumerate_some, near_match
from fcorr.data.columns import ColumnError, to_numbers
from fcorr.data.dates import to_timestamps
from fcorr.data.descriptions import CategoricalColumn, Column, DatetimeColumn, OrdinalColumn
from fcorr.data.exposures import read_exposure
from fcorr.data.matching import UNSEEN, match_categories
from fcorr.data.schema import Schema
from fcorr.data.tables import Table, read_table

Problem = Literal[
    "missing column",
    "extra column",
    "other values",
    "unseen categories",
    "out of range",
    "missing values",
]
_FATAL = ("missing column", "other values")


@dataclass(frozen=True)
class Difference:
    """One difference between a table and the training table.

    Attributes
    ----------
    column : str
        The column.
    problem : str
        ``"missing column"``, ``"extra column"``, ``"other values"`` (text or dates where training
        had numbers, infinite numbers, …), ``"unseen categories"``, ``"out of range"`` or
        ``"missing values"`` (where training had none).
    text : str
        The difference in words.
    n_rows : int
        The rows it concerns; 0 where it concerns the column as a whole.
    remedy : str
        What to do about it, where the model cannot do without.
    """

    column: str
    problem: Problem
    text: str
    n_rows: int = 0
    remedy: str = ""

    @property
    def is_fatal(self) -> bool:
        """Whether the model cannot predict for such a table."""
        return self.problem in _FATAL


@dataclass(frozen=True)
class SchemaDiff:
    """What differs between a table and the training table: false where nothing does."""

    differences: tuple[Difference, ...]

    def __len__(self) -> int:
        return len(self.differences)

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.differences)

    def __str__(self) -> str:
        if not self.differences:
            return "No difference from the training table."
        plural = "s" if len(self) > 1 else ""
        lines = [f"{len(self)} difference{plural} from the training table:"]
        return "\n- ".join([*lines, *(difference.text for difference in self)])

    @property
    def fatal(self) -> tuple[Difference, ...]:
        """The differences because of which the model cannot predict."""
        return tuple(difference for difference in self if difference.is_fatal)

    def to_error(self) -> InvalidInputError:
        """Return the error that states all fatal differences, and what to do about the first."""
        texts = "; ".join(difference.text for difference in self.fatal)
        return InvalidInputError(f"X must fit the training table: {texts}. {self.fatal[0].remedy}")


def compare(schema: Schema, X: Any, *, read_sensitive: bool = True) -> SchemaDiff:
    """Compare a table, or what can be read as one, with the training table.

    With ``read_sensitive=False`` the sensitive columns may be absent and are not looked at.
    """
    unread = () if read_sensitive else schema.sensitive
    table = X if isinstance(X, Table) else read_table(X, unread=unread)
    table = name_columns(table, schema, unread)
    strangers = [name for name in table.names if name not in (*schema.names, schema.exposure)]
    found: list[Difference] = []
    for column in schema.columns:
        if column.name in unread:
            continue
        if column.name in table.columns:
            found += _compare_column(column, table.columns[column.name])
        else:
            found.append(_missing_column(column.name, schema, table, strangers))
    if schema.exposure is not None:
        found += _compare_exposure(schema.exposure, schema, table, strangers)
    found += [
        Difference(name, "extra column", f"Column {name!r} is not in the training table: ignored")
        for name in strangers
    ]
    return SchemaDiff(tuple(found))


def name_columns(table: Table, schema: Schema, unread: Sequence[str] = ()) -> Table:
    """Give a table without names those of training, if it has as many columns.

    ``unread`` columns may be left out, all of them or none.
    """
    if table.named:
        return table
    read = tuple(name for name in schema.names if name not in unread)
    by_count = {len(read): read, len(schema.names): schema.names}
    return table.renamed(by_count.get(len(table.names), table.names))


def _missing_column(name: str, schema: Schema, table: Table, strangers: list[str]) -> Difference:
    role = " (sensitive)" if name in schema.sensitive else ""
    remedy = f"X has {enumerate_some(table.names)}. Add or rename the column"
    if name == schema.exposure:
        role = " (exposure)"
        remedy += ", or ask for the rate per unit of exposure with predict_rate"
    match = near_match(name, strangers).strip()
    text = f"Column {name!r}{role} is missing" + (f" ({match})" if match else "")
    return Difference(name, "missing column", text, remedy=f"{remedy}.")


def _compare_exposure(
    name: str, schema: Schema, table: Table, strangers: list[str]
) -> list[Difference]:
    if name not in table.columns:
        return [_missing_column(name, schema, table, strangers)]
    try:
        read_exposure(table, name)
    except ColumnError as error:
        return [Difference(name, "other values", error.problem, remedy=error.remedy)]
    return []


def _compare_column(column: Column, values: pa.ChunkedArray) -> list[Difference]:
    try:
        if isinstance(column, CategoricalColumn | OrdinalColumn):
            found, n_missing = _compare_categories(column, values)
        elif isinstance(column, DatetimeColumn):
            found, n_missing = _compare_dates(column, values)
        else:
            numbers = to_numbers(column.name, values)
            is_missing = np.isnan(numbers)
            n_missing = int(np.count_nonzero(is_missing))
            low, high = column.low, column.high
            found = _out_of_range(column.name, pa.array(numbers[~is_missing]), low, high)
    except ColumnError as error:
        text, remedy = error.problem, error.remedy
        return [Difference(column.name, "other values", text, remedy=remedy)]
    if n_missing and not column.n_missing:
        text = f"Column {column.name!r} has {n_missing} missing value(s); training had none"
        found.append(Difference(column.name, "missing values", text, n_missing))
    return found


def _compare_categories(
    column: CategoricalColumn | OrdinalColumn, values: pa.ChunkedArray
) -> tuple[list[Difference], int]:
    distinct, places = match_categories(values, column)
    *counts, n_missing = distinct.count().tolist()
    rows = zip(distinct.values, counts, places == UNSEEN, strict=True)
    unseen = {value: n for value, n, is_unseen in rows if n and is_unseen}
    if not unseen:
        return [], n_missing
    frequent = sorted(unseen.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{value!r} ({n})" for value, n in frequent[:5])
    more = f" and {len(unseen) - 5} more" if len(unseen) > 5 else ""
    n_rows = sum(unseen.values())
    pooled = isinstance(column, CategoricalColumn) and column.n_pooled > 0
    # Training kept no list of those it pooled.
    where = "not seen in training, or pooled there" if pooled else "not seen in training"
    text = f"Column {column.name!r} has {n_rows} row(s) of categories {where}: {shown}{more}"
    return [Difference(column.name, "unseen categories", text, n_rows)], n_missing


def _compare_dates(column: DatetimeColumn, values: pa.ChunkedArray) -> tuple[list[Difference], int]:
    timestamps = to_timestamps(column.name, values)
    first, last = map(datetime.datetime.fromisoformat, (column.first, column.last))
    found = _out_of_range(column.name, timestamps, first, last)
    return found, timestamps.null_count


def _out_of_range(name: str, values: Any, low: Any, high: Any) -> list[Difference]:
    below = values.filter(pc.less(values, pa.scalar(low, values.type)))
    above = values.filter(pc.greater(values, pa.scalar(high, values.type)))
    n_rows = len(below) + len(above)
    if not n_rows:
        return []
    ends = [f"down to {_shown(pc.min(below).as_py())}"] if len(below) else []
    ends += [f"up to {_shown(pc.max(above).as_py())}"] if len(above) else []
    text = (
        f"Column {name!r} has {n_rows} row(s) outside the training range, "
        f"{_shown(low)} to {_shown(high)}: {', '.join(ends)}"
    )
    return [Difference(name, "out of range", text, n_rows)]


def _shown(value: float | datetime.datetime) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    return f"{value:.10g}"
