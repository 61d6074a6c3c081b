"""Kinds of columns: what the user says they are, and what their types say where the user is silent.

A kind is ``"numeric"``, ``"categorical"``, ``"ordinal"``, ``"boolean"`` or ``"datetime"``; a
sequence of categories instead is an ordinal column with its order.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pyarrow.types as pat

from fcorr._core import InvalidInputError, near_match
from fcorr.data.columns import Category, can_be_category, is_date, is_number, value_type
from fcorr.data.distinct import has_more_values
from fcorr.data.tables import Table, resolve_columns

KindName = Literal["numeric", "categorical", "ordinal", "boolean", "datetime"]
KINDS: tuple[KindName, ...] = get_args(KindName)
ColumnKind = Literal[KindName, "binned"]
"""What a described column can be: a kind, or numbers in bins."""

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
    """Read the argument ``kinds``, or say what is wrong with it.

    Examples
    --------
    >>> parse_kinds({"zip": "categorical", "grade": ["A", "B"]})["grade"]
    Kind(name='ordinal', order=('A', 'B'))
    >>> parse_kinds({"zip": "categorial"})
    Traceback (most recent call last):
        ...
    fcorr._core.InvalidInputError: kinds must say 'numeric', 'categorical', 'ordinal', \
'boolean', 'datetime' or the categories in order, got 'categorial' for 'zip'. \
Did you mean 'categorical'?
    """
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping):
        raise InvalidInputError(
            f"kinds must be a dict of columns and what they are, got {kinds!r}. "
            "Pass for example kinds={'zip': 'categorical'}."
        )
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


def find_kinds(table: Table, kinds: Kinds | None, sensitive: Sequence[str] = ()) -> dict[str, Kind]:
    """Return the kind of every column: as told, else by its type.

    Sensitive columns are categorical where both a category and a number would do: ordered
    categories, and numbers that take few values, such as 0 and 1 for two sexes.
    """
    stated = resolve_kinds(table, kinds)
    found = {}
    for name in table.names:
        if name in stated:
            found[name] = stated[name]
        elif name in sensitive:
            found[name] = Kind(_sensitive_kind(table, name))
        else:
            found[name] = Kind(_kind_by_type(table, name))
    return found


def resolve_kinds(table: Table, kinds: Kinds | None) -> dict[str, Kind]:
    """Return what the user says of columns, by name also where the table has none of its own."""
    told = parse_kinds(kinds)
    names = resolve_columns(table, list(told), "kinds")
    return dict(zip(names, told.values(), strict=True))


def _sensitive_kind(table: Table, name: str) -> KindName:
    kind = _kind_by_type(table, name)
    if kind == "numeric":
        is_measured = has_more_values(table.columns[name], MAX_SENSITIVE_CATEGORIES)
        return "numeric" if is_measured else "categorical"
    return "categorical" if kind == "ordinal" else kind


def _kind_by_type(table: Table, name: str) -> KindName:
    dtype = table.columns[name].type
    if name in table.ordinal:
        return "ordinal"
    if is_number(dtype):
        return "numeric"
    if is_date(value_type(dtype)):
        return "datetime"
    if can_be_category(dtype):
        return "boolean" if pat.is_boolean(value_type(dtype)) else "categorical"
    raise InvalidInputError(
        f"Column {name!r} must hold numbers, text, booleans or dates, got {value_type(dtype)}. "
        "Convert it to text or numbers first, or drop it."
    )


def as_boolean(value: Category) -> bool | None:
    """Read a boolean, 0, 1 or the text true or false as a boolean; anything else as None.

    Examples
    --------
    >>> as_boolean(1), as_boolean("False"), as_boolean("maybe")
    (True, False, None)
    """
    words = {"true": True, "false": False}
    if isinstance(value, str):
        return words.get(value.lower())
    return bool(value) if value in (0, 1) else None
