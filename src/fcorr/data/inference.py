"""From a training table to its schema."""

from collections.abc import Collection, Sequence
from typing import Literal

from fcorr._core import InvalidInputError
from fcorr.data.bins import Bins, find_cuts
from fcorr.data.columns import to_numbers
from fcorr.data.describing import (
    CategoricalMissing,
    NumericMissing,
    describe_bins,
    describe_booleans,
    describe_categories,
    describe_dates,
    describe_numbers,
    describe_ordinal,
)
from fcorr.data.descriptions import (
    BinnedColumn,
    CategoricalColumn,
    Column,
    DatetimeColumn,
    OrdinalColumn,
)
from fcorr.data.kinds import Kind, Kinds, find_kinds
from fcorr.data.schema import Schema
from fcorr.data.tables import Table, resolve_columns

ConstantColumns = Literal["error", "keep"]
MinCategoryRows = int | Literal["auto"]


def infer_schema(
    table: Table,
    *,
    sensitive: Sequence[str | int] = (),
    kinds: Kinds | None = None,
    bins: Bins | None = None,
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
        Sensitive columns, of any kind. Numbers of at most 20 distinct values are categories
        there, and so are ordered dictionaries, unless ``kinds`` says otherwise. Where the columns
        have no names, here, in ``kinds`` and in ``bins``, their positions serve.
    kinds : dict, optional
        What columns are: ``"numeric"``, ``"categorical"``, ``"ordinal"``, ``"boolean"``,
        ``"datetime"``, or a sequence of categories, which is an ordinal column's order. By
        default numbers are numeric, text and dictionaries categorical, ordered dictionaries
        ordinal, booleans boolean and dates datetime.
    bins : int, sequence of float or dict, optional
        Groups to cut sensitive numbers into, which are categories then: a number of groups with
        about equal numbers of rows, or the edges between groups in increasing order. Without a
        column it is for all sensitive columns that are numeric; ``{"age": 4}`` names columns,
        also such as have few distinct values. An edge belongs to the group above it. A group
        without training rows is joined with a neighbour.
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
    cuts = find_cuts(table, bins, kinds, sensitive=sensitive_names, found=found)
    rare_below = min(10, table.n_rows / 1000) if min_category_rows == "auto" else min_category_rows

    def describe(name: str, kind: Kind) -> Column:
        values = table.columns[name]
        if name in cuts:
            numbers = to_numbers(name, values)
            return describe_bins(name, numbers, cuts[name], missing_categorical)
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
    """Refuse a constant sensitive column: there is nothing that fairness could be about."""
    for name in schema.sensitive:
        column = schema[name]
        if _is_constant(column):
            what = "have at least two categories"
            if not isinstance(column, CategoricalColumn):
                what = "take at least two values"
            raise InvalidInputError(
                f"Sensitive column {name!r} must {what}, got only {_only_value(column)!r}. "
                "Leave it out of `sensitive`, or check X."
            )


def _refuse_constant(schema: Schema) -> None:
    constant = {c.name: _only_value(c) for c in schema.columns if _is_constant(c)}
    if constant and schema.n_rows > 1:
        name, value = next(iter(constant.items()))
        others = f" (and {len(constant) - 1} more such columns)" if len(constant) > 1 else ""
        raise InvalidInputError(
            f"Column {name!r} must take at least two values, got {value!r} wherever there is a "
            f"value{others}. "
            "Drop it, or pass constant_columns='keep' to carry it along without effect."
        )


def _is_constant(column: Column) -> bool:
    if isinstance(column, BinnedColumn):
        return False  # else there would be nothing to cut
    if isinstance(column, CategoricalColumn):
        return column.n_codes == 1
    return all(part.low == part.high and not part.keep_missing for part in column.features)


def _only_value(column: Column) -> object:
    if isinstance(column, CategoricalColumn):
        return column.categories[0]
    if isinstance(column, OrdinalColumn):
        return column.categories[int(column.position.low)]
    return column.first if isinstance(column, DatetimeColumn) else column.low
