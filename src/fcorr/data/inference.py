"""From a training table to its schema."""

from collections.abc import Collection, Sequence
from typing import Literal

from fcorr._core.errors import InvalidInputError
from fcorr.data.columns import to_numbers
from fcorr.data.describing import (
    CategoricalMissing,
    NumericMissing,
    describe_booleans,
    describe_categories,
    describe_dates,
    describe_numbers,
    describe_ordinal,
)
from fcorr.data.descriptions import (
    CategoricalColumn,
    Column,
    DatetimeColumn,
    NumericColumn,
    OrdinalColumn,
)
from fcorr.data.kinds import Kind, Kinds, find_kinds
from fcorr.data.schema import Schema
from fcorr.data.tables import Table, resolve_columns

ConstantColumns = Literal["error", "keep"]
MinCategoryRows = int | Literal["auto"]

MAX_SENSITIVE_NUMBERS = 100
"""A sensitive column of numbers with more distinct values than this is taken for a measurement."""


def infer_schema(
    table: Table,
    *,
    sensitive: Sequence[str | int] = (),
    kinds: Kinds | None = None,
    missing_categorical: CategoricalMissing = "category",
    missing_numeric: NumericMissing = "mean",
    min_category_rows: MinCategoryRows = "auto",
    constant_columns: ConstantColumns = "error",
    target: str | None = None,
    weight: str | None = None,
    exposure: str | None = None,
) -> Schema:
    """Describe a training table.

    Parameters
    ----------
    table : Table
        The training table.
    sensitive : sequence of str or int
        Sensitive columns; they are categorical whatever they hold. Where the columns have no
        names, here and in ``kinds``, their positions serve.
    kinds : dict, optional
        What columns are: ``"numeric"``, ``"categorical"``, ``"ordinal"``, ``"boolean"``,
        ``"datetime"``, or a sequence of categories, which is an ordinal column's order. By
        default numbers are numeric, text and dictionaries categorical, ordered dictionaries
        ordinal, booleans boolean and dates datetime.
    missing_categorical : {"category", "mode"}
        A missing category is a category of its own, or is taken for the most frequent one.
    missing_numeric : {"mean", "category"}
        A missing number is taken for the mean, or is kept.
    min_category_rows : int or "auto"
        Categories seen in fewer rows are pooled into one, but never those of sensitive and of
        boolean columns. ``"auto"`` is the smaller of 10 and a thousandth of the rows.
    constant_columns : {"error", "keep"}
        What to do about a column that takes one value only.
    target, weight, exposure : str, optional
        Names of the columns with these roles, to keep with the schema. The exposure may be a
        column of the table; it is no feature.

    Returns
    -------
    Schema
        The description.

    Raises
    ------
    InvalidInputError
        A column cannot be what it is said to be; the message names it.

    Examples
    --------
    >>> from fcorr.data import read_table
    >>> table = read_table([["B", 3], ["A", 1], ["B", 2]]).renamed(["grade", "rooms"])
    >>> schema = infer_schema(table, kinds={"grade": ["C", "B", "A"]})
    >>> schema["grade"].counts, schema["rooms"].high
    ((0, 2, 1), 3.0)
    """
    sensitive_names = resolve_columns(table, sensitive, "sensitive")
    found = find_kinds(table, kinds, sensitive_names)
    if exposure is not None and exposure in found:
        _check_exposure(exposure, found, sensitive_names)
        del found[exposure]
    rare_below = min(10, table.n_rows / 1000) if min_category_rows == "auto" else min_category_rows

    def describe(name: str, kind: Kind) -> Column:
        values = table.columns[name]
        if kind.name == "numeric":
            return describe_numbers(name, to_numbers(name, values), missing_numeric)
        if kind.name == "ordinal":
            return describe_ordinal(name, values, kind.order, missing_numeric)
        if kind.name == "datetime":
            return describe_dates(name, values, missing_numeric)
        if kind.name == "boolean":
            return describe_booleans(name, values, missing_categorical)
        rare = 0 if name in sensitive_names else rare_below
        return describe_categories(name, values, missing_categorical, rare)

    schema = Schema(
        columns=tuple(describe(name, kind) for name, kind in found.items()),
        sensitive=tuple(sensitive_names),
        n_rows=table.n_rows,
        target=target,
        weight=weight,
        exposure=exposure,
    )
    _check_feature_names(schema)
    _check_sensitive(schema)
    if constant_columns == "error":
        _refuse_constant(schema)
    return schema


def _check_exposure(exposure: str, columns: Collection[str], sensitive: Collection[str]) -> None:
    if exposure in sensitive:
        raise InvalidInputError(
            f"The exposure must be no feature, got {exposure!r} as exposure and as sensitive "
            "column. Leave it out of `sensitive`."
        )
    if len(columns) == 1:
        raise InvalidInputError(
            f"X must have a feature beside the exposure, got the column {exposure!r} alone. "
            "Add the features."
        )


def _check_feature_names(schema: Schema) -> None:
    for column in schema.columns:
        if not isinstance(column, DatetimeColumn):
            continue
        for feature in column.features:
            if feature.name in schema.names:
                raise InvalidInputError(
                    f"Feature names must differ, got {feature.name!r} as a column and as a part of "
                    f"the dates in {column.name!r}. Rename the column, or drop it."
                )


def _check_sensitive(schema: Schema) -> None:
    for column in schema.categorical[: schema.n_sensitive]:
        if column.n_codes == 1:
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
    constant: dict[str, object] = {}
    for column in schema.columns:
        if isinstance(column, CategoricalColumn):
            if column.n_codes == 1:
                constant[column.name] = column.categories[0]
        elif all(f.low == f.high and not f.keep_missing for f in column.features):
            constant[column.name] = _only_value(column)
    if constant and schema.n_rows > 1:
        name, value = next(iter(constant.items()))
        others = f" (and {len(constant) - 1} more such columns)" if len(constant) > 1 else ""
        raise InvalidInputError(
            f"Column {name!r} must take at least two values, got {value!r} wherever there is a "
            f"value{others}. "
            "Drop it, or pass constant_columns='keep' to carry it along without effect."
        )


def _only_value(column: NumericColumn | OrdinalColumn | DatetimeColumn) -> object:
    if isinstance(column, OrdinalColumn):
        return column.categories[int(column.position.low)]
    return column.first if isinstance(column, DatetimeColumn) else column.low
