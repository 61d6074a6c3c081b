"""Encoding: from a table to the arrays the model reads, by the schema of the training table.

Beside the features: targets, sample weights and exposures, read and checked; and what differs
between a table and the training table, in the words that errors use.
"""

import datetime
import hashlib
import reprlib
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from numpy.typing import ArrayLike, NDArray

from fcorr._core import (
    InvalidInputError,
    UnseenCategoryWarning,
    counted_rows,
    enumerate_some,
    first_few,
    is_missing,
    near_match,
    refuse_rows,
)
from fcorr.data import tables
from fcorr.data.schema import (
    CategoricalColumn,
    CategoryColumn,
    Column,
    DatetimeColumn,
    NumericColumn,
    OrdinalColumn,
    Schema,
    as_boolean,
)
from fcorr.data.tables import ColumnError, Distinct, Table

# ------------------------------------------------------------------------------ features
# The arrays are made first and filled column by column, block by block: beside them and the table
# itself there is never more than one column's categories and a few blocks in memory.

UNSEEN = -1
"""Place of a value that is no category of its column."""
_BLOCK = 65_536  # rows that are converted at a time
_HARDLY = 0.001  # a chance too small to be one
FARTHEST = 1e12  # deviations from the mean, beyond any training row; float32 can still square it


@dataclass(frozen=True)
class EncodedTable:
    """Codes ``(n_rows, n_categorical)`` and standardised numbers ``(n_rows, n_numeric)``."""

    codes: NDArray[np.int32]
    numbers: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.codes)

    def sample(self, n_rows: int, seed: int) -> "EncodedTable":
        """Draw rows, at most so many."""
        if len(self) <= n_rows:
            return self
        rows = np.random.default_rng(seed).choice(len(self), n_rows, replace=False)
        return EncodedTable(self.codes[rows], self.numbers[rows])


def encode(table: Table, schema: Schema, *, read_sensitive: bool = True) -> EncodedTable:
    """Encode a table by name; columns the schema does not know are ignored.

    The columns of a table without names are taken in their order.

    With ``read_sensitive=False`` the sensitive columns are not looked at, whatever they hold, and
    may be absent: a model that is invariant to them needs none. Each of their codes is then the
    most frequent category's, each of their numbers 0, the mean. So it is with columns in which no
    training row had a value.

    A category that training did not see goes to its column's pool of rare categories; in a rated
    column it is rated 0, the mean. Where there is no pool it is taken for the most frequent
    category, in an ordinal column for a missing value. So is a missing category where training had
    none. A :class:`fcorr.UnseenCategoryWarning` counts them, except those that went to a pool or
    are rated, which is what pools and ratings are for.

    Raises
    ------
    InvalidInputError
        A column is missing, or holds what cannot be read as in training. The message names the
        columns and the rows, in the words of :meth:`Schema.diff`.
    """
    unread: Collection[str] = () if read_sensitive else schema.sensitive
    table = _name_columns(table, schema, unread)
    unread = {*unread, *schema.empty}
    if not set(schema.names).difference(unread).issubset(table.names):
        raise find_differences(schema, table, read_sensitive=read_sensitive).to_error()
    codes = np.empty((table.n_rows, len(schema.categorical)), dtype=np.int32)
    numbers = np.empty((table.n_rows, len(schema.numeric)), dtype=np.float32)
    views = dict(zip(schema.feature_names, [*codes.T, *numbers.T], strict=True))
    unseen: _Unseen = Counter()
    try:
        for column in schema.sensitive_first:
            filled = [views[feature.name] for feature in column.features]
            if column.name in unread:
                for view in filled:
                    view[:] = column.mode if isinstance(column, CategoricalColumn) else 0.0
                continue
            _fill(filled, column, table.columns[column.name], unseen)
    except ColumnError as error:
        raise find_differences(schema, table, read_sensitive=read_sensitive).to_error() from error
    read = {name: table.columns[name] for name in schema.names if name not in unread}
    empty = {n for n, c in read.items() if pc.all(pc.is_null(c, nan_is_null=True)).as_py()}
    found, parts = (table.n_rows, +unseen, empty), _parts.get()
    if parts is None:
        _warn_of([found], schema)
    else:
        parts.append(found)
    return EncodedTable(codes, numbers)


# What to warn of: rows, rows of unseen categories, columns without any value. In each part the
# three most frequent categories of a column are counted each, all others together, as ``...``.
_Unseen = Counter[tuple[str, Any]]
_Found = tuple[int, _Unseen, set[str]]
_parts: ContextVar[list[_Found] | None] = ContextVar("parts", default=None)


@contextmanager
def parts_of_one_table(schema: Schema, way_out: str = "") -> Iterator[None]:
    """Within it, tables that are encoded are parts of one, of which warnings then tell at the end.

    Of unseen categories they also tell the ``way_out``. Threads that run in a copy of the context,
    as those of :mod:`fcorr.training.rows`, belong to it.
    """
    parts: list[_Found] = []
    token = _parts.set(parts)
    try:
        yield
    finally:
        _parts.reset(token)
    if parts:
        _warn_of(parts, schema, way_out)


def _warn_of(parts: Sequence[_Found], schema: Schema, way_out: str = "") -> None:
    sizes, unseen_of, empty_of = zip(*parts, strict=True)
    n_rows, unseen = sum(sizes), sum(unseen_of, _Unseen())
    names = dict.fromkeys(name for name, _ in unseen)
    ordinal = [name for name in names if isinstance(schema[name], OrdinalColumn)]
    coded = [name for name in names if name not in ordinal]
    if unseen:
        texts = []
        for named in (True, False):
            counts = ", ".join(_count_unseen(unseen, name, named) for name in (*coded, *ordinal))
            text = f"Categories not seen in training: {counts}."
            if coded:
                text += " Each is taken for the most frequent training category of its column."
            if ordinal:
                text += f" In {enumerate_some(ordinal)}, which is ordinal, it is taken as missing."
            texts.append(text + way_out)
        warnings.warn(UnseenCategoryWarning(*texts), stacklevel=3)
    # Columns without any value, where training would hardly have given so many missing.
    empty = set.intersection(*empty_of) - set(names)
    columns = [column for column in schema.columns if column.name in empty]
    rare = [c.name for c in columns if (c.n_missing / schema.n_rows) ** n_rows < _HARDLY]
    if rare:
        warnings.warn(
            f"Columns must have values as in training, got none at all in {enumerate_some(rare)} "
            f"({n_rows} row(s)): each is taken as missing. Check where the table comes from.",
            stacklevel=3,
        )


def _count_unseen(unseen: _Unseen, name: str, named: bool) -> str:
    rows = Counter({value: n for (column, value), n in unseen.items() if column == name})
    shown = {v: "missing" if v is None else reprlib.repr(v) for v in rows if v is not ...}
    values = sorted(shown, key=lambda value: (-rows[value], shown[value]))[:3]
    some = f" ({', '.join(shown[value] for value in values)}{', …' * (len(rows) > 3)})"
    return f"{rows.total()} row(s) of {name!r}{some * named}"


def _fill(
    filled: Sequence[NDArray[Any]], column: Column, values: pa.ChunkedArray, unseen: _Unseen
) -> None:
    """Write a column's features to arrays, one each; count the rows that are unseen."""
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(values), _BLOCK)]
    if isinstance(column, CategoryColumn):
        distinct, places = _match_categories(values, column)
        feature_of, is_unseen = encode_places(places, column)
        if is_unseen.any():
            counts = (distinct.count() * is_unseen).tolist()
            of_value = Counter(dict(zip([*distinct.values, None], counts, strict=True)))
            named = dict(of_value.most_common(3))
            unseen.update({(column.name, value): n for value, n in named.items()})
            unseen[column.name, ...] = of_value.total() - sum(named.values())
        positions = distinct.positions()
        for rows in blocks:
            filled[0][rows] = feature_of[positions[rows]]
        return
    for rows in blocks:
        block = values[rows]
        if isinstance(column, NumericColumn):
            filled[0][rows] = _standardise(tables.to_numbers(column.name, block), column)
        else:
            dates = tables.to_timestamps(column.name, block)
            for view, part, feature in zip(filled, column.parts, column.features, strict=True):
                view[rows] = _standardise(tables.date_part(part, dates, column.origin), feature)


def encode_places(
    places: NDArray[np.int32], column: CategoryColumn
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the feature of categories by their places and, last, of a missing one; which are news.

    Features are codes, or standardised numbers.
    """
    if isinstance(column, OrdinalColumn):
        is_unseen = np.append(places == UNSEEN, False)
        place_of = np.where(is_unseen, np.nan, np.append(places, np.nan))
        return _standardise(place_of, column.position), is_unseen
    missing = column.categories.index(None) if None in column.categories else UNSEEN
    code_of = np.append(places, np.int32(missing))
    is_unseen = code_of == UNSEEN
    if missing == UNSEEN:
        code_of[-1] = column.mode
        # Training that imputed the mode does so again; training that saw no missing value has no
        # category for one, so it counts as unseen.
        is_unseen[-1] = column.n_missing == 0
    if column.pool is not None:
        is_unseen[:-1] = False
    code_of[code_of == UNSEEN] = column.mode if column.pool is None else column.pool
    if isinstance(column, CategoricalColumn):
        return code_of, is_unseen
    return _standardise(np.append(column.ratings, 0.0)[code_of], column.number), is_unseen


def _standardise(values: NDArray[np.float64], feature: NumericColumn) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        standardised = (values - feature.mean) / feature.scale
    np.clip(standardised, -FARTHEST, FARTHEST, out=standardised)
    if not feature.keep_missing:
        standardised[np.isnan(standardised)] = 0.0
    return standardised


def use_ratings(
    encoded: EncodedTable, schema: Schema, ratings: Mapping[str, NDArray[np.float64]]
) -> EncodedTable:
    """Return an encoded training table with other ratings of its rows than those of the schema.

    ``ratings`` are, by column, those that :func:`~fcorr.data.infer.rate_columns` held out.
    """
    numbers = encoded.numbers.copy() if ratings else encoded.numbers
    for position, feature in enumerate(schema.numeric):
        if feature.name in ratings:
            numbers[:, position] = _standardise(ratings[feature.name], feature)
    return replace(encoded, numbers=numbers)


def _match_categories(
    values: pa.ChunkedArray, column: CategoryColumn
) -> tuple[Distinct, NDArray[np.int32]]:
    """Split a column, and find each distinct value's place in its categories, or ``UNSEEN``.

    Values that could not equal any category, whatever they are, raise a :class:`ColumnError`.
    """
    held = tables.name_values(values.type)
    fits = tables.can_be_category(values.type)
    if column.kind == "boolean":
        expected = "booleans"
    else:
        expected = "text" if column.is_text else "numbers"
        fits = fits and not (column.is_known and (held == "text") != column.is_text)
    if not fits and values.null_count < len(values):
        remedy = "Convert the column as it was for training, or train on it as it is"
        tables.refuse_values(column.name, expected, values, remedy)
    distinct = tables.find_distinct(column.name, values)
    found = distinct.values
    if column.kind == "boolean":
        found = [as_boolean(value) for value in found]
    place = {category: i for i, category in enumerate(column.categories)}
    place[None] = UNSEEN  # what is no boolean; missing values are not among the distinct ones
    return distinct, np.array([place.get(v, UNSEEN) for v in found], dtype=np.int32)


def _name_columns(table: Table, schema: Schema, unread: Collection[str] = ()) -> Table:
    """Give a table without names those of training, if it has as many columns.

    ``unread`` columns may be left out, all of them or none.
    """
    if table.named:
        return table
    read = tuple(name for name in schema.names if name not in unread)
    by_count = {len(read): read, len(schema.names): schema.names}
    return table.renamed(by_count.get(len(table.names), table.names))


# ------------------------------------------------------------------------------ differences


@dataclass(frozen=True)
class Difference:
    """One difference between a table and the training table, ``text`` in words.

    ``problem`` is "missing column", "extra column", "other values" (text or dates where training
    had numbers, infinite numbers, …), "unseen categories", "out of range" or "missing values"
    (where training had none). It concerns ``n_rows``, 0 where it is the column as a whole.
    ``remedy`` says what to do about it, where the model cannot do without.
    """

    column: str
    problem: str
    text: str
    n_rows: int = 0
    remedy: str = ""

    @property
    def is_fatal(self) -> bool:
        """Whether the model cannot predict for such a table."""
        return self.problem in ("missing column", "other values")


class SchemaDiff(tuple[Difference, ...]):
    """What differs between a table and the training table: empty, so false, where nothing does."""

    __slots__ = ()

    def __str__(self) -> str:
        if not self:
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


def find_differences(schema: Schema, X: Any, *, read_sensitive: bool = True) -> SchemaDiff:
    """Compare a table, or what can be read as one, with the training table.

    With ``read_sensitive=False`` the sensitive columns may be absent and are not looked at.
    """
    unread: Collection[str] = () if read_sensitive else schema.sensitive
    table = X if isinstance(X, Table) else tables.read_table(X, unread=unread)
    table = _name_columns(table, schema, unread)
    unread = {*unread, *schema.empty}
    strangers = [name for name in table.names if name not in (*schema.names, schema.exposure)]
    found: list[Difference] = []
    for name in (*schema.names, *([schema.exposure] if schema.exposure else [])):
        try:
            if name not in table.columns and name not in unread:
                found.append(_missing_column(name, schema, table, strangers))
            elif name == schema.exposure:
                read_exposure(table, name)
            elif name not in unread:
                found += _compare_column(schema[name], table.columns[name])
        except ColumnError as error:
            found.append(Difference(name, "other values", error.problem, remedy=error.remedy))
    for name in strangers:
        text = f"Column {name!r} is not in the training table: ignored"
        found.append(Difference(name, "extra column", text))
    return SchemaDiff(found)


def _missing_column(name: str, schema: Schema, table: Table, strangers: list[str]) -> Difference:
    role = " (sensitive)" if name in schema.sensitive else ""
    remedy = f"X has {enumerate_some(table.names)}. Add or rename the column"
    if name == schema.exposure:
        role = " (exposure)"
        remedy += ", or ask for the rate per unit of exposure with predict_rate"
    match = near_match(name, strangers).strip()
    text = f"Column {name!r}{role} is missing" + (f" ({match})" if match else "")
    return Difference(name, "missing column", text, remedy=f"{remedy}.")


def _compare_column(column: Column, values: pa.ChunkedArray) -> Iterator[Difference]:
    has = f"Column {column.name!r} has"
    if isinstance(column, CategoryColumn):
        distinct, places = _match_categories(values, column)
        *counts, n_missing = distinct.count().tolist()
        rows = zip(distinct.values, counts, places == UNSEEN, strict=True)
        unseen = Counter({value: n for value, n, is_unseen in rows if n and is_unseen})
        if unseen and column.is_known:
            shown = first_few(f"{value!r} ({n})" for value, n in unseen.most_common())
            pooled = isinstance(column, CategoricalColumn) and column.n_pooled > 0
            # Training kept no list of those it pooled.
            where = "not seen in training, or pooled there" if pooled else "not seen in training"
            text = f"{has} {unseen.total()} row(s) of categories {where}: {shown}"
            yield Difference(column.name, "unseen categories", text, unseen.total())
    else:
        low: Any
        high: Any
        if isinstance(column, DatetimeColumn):
            low, high = map(datetime.datetime.fromisoformat, (column.first, column.last))
            found = tables.to_timestamps(column.name, values).drop_null()
        else:
            low, high = float(column.low), float(column.high)  # JSON may have written integers
            numbers = tables.to_numbers(column.name, values)
            found = pa.array(numbers[~np.isnan(numbers)])
        n_missing = len(values) - len(found)
        below = found.filter(pc.less(found, pa.scalar(low, found.type)))
        above = found.filter(pc.greater(found, pa.scalar(high, found.type)))
        n_rows = len(below) + len(above)
        if n_rows:
            ends = [f"down to {_shown(pc.min(below).as_py())}"] if len(below) else []
            ends += [f"up to {_shown(pc.max(above).as_py())}"] if len(above) else []
            span = f"{_shown(low)} to {_shown(high)}: {', '.join(ends)}"
            text = f"{has} {n_rows} row(s) outside the training range, {span}"
            yield Difference(column.name, "out of range", text, n_rows)
    if n_missing and not column.n_missing:
        text = f"{has} {n_missing} missing value(s); training had none"
        yield Difference(column.name, "missing values", text, n_missing)


def _shown(value: float | datetime.datetime) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    return f"{value:.10g}"


# ------------------------------------------------------------------------------ outcomes


def read_exposure(table: Table, name: str) -> NDArray[np.float64]:
    """Return a column of exposures, all of them positive, or raise a :class:`ColumnError`."""
    remedy = "Correct these rows or leave them out: without time at risk there is nothing to expect"
    try:
        exposure = tables.to_numbers(name, table.columns[name])
    except ColumnError as error:
        raise ColumnError(error.problem, f"{remedy}.") from error
    wrong = ~(exposure > 0)  # NaN is not
    if wrong.any():
        row = int(np.argmax(wrong))
        more = f" and {wrong.sum() - 1} more" if wrong.sum() > 1 else ""
        raise ColumnError(
            f"Column {name!r} (exposure) must be positive in every row, got {exposure[row]} in row "
            f"{row}{more}",
            f"{remedy}.",
        )
    return exposure


@dataclass(frozen=True)
class Outcomes:
    """What is known of rows beside their features, checked.

    ``y`` is the target, in the type it came in; ``weight`` has mean 1; ``exposure`` is 1 where no
    column says otherwise. Messages call y by the ``label``, its column's name where it has one.
    """

    y: NDArray[Any]
    weight: NDArray[np.float64]
    exposure: NDArray[np.float64]
    label: str = "y"

    @cached_property
    def classes(self) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """The distinct values of y, sorted, and the place of each row's among them."""
        return np.unique(self.y, return_inverse=True)

    def take(self, rows: NDArray[np.int64] | None) -> "Outcomes":
        """Return those of some rows; None is all."""
        if rows is None:
            return self
        return Outcomes(self.y[rows], self.weight[rows], self.exposure[rows], self.label)

    def numbers(self) -> NDArray[np.float64]:
        """Return y as floats, or say that it holds none."""
        try:
            return self.y.astype(np.float64)
        except (ValueError, TypeError) as error:
            raise InvalidInputError(
                f"{self.label} must hold numbers, got values such as "
                f"{enumerate_some(self.y[:1])}. Convert it, or use FCorrClassifier for classes."
            ) from error


def unpack_rows(rows: Sequence[Any], argument: str) -> tuple[Any, ArrayLike, ArrayLike | None]:
    """Take ``(X, y)`` or ``(X, y, sample_weight)`` apart."""
    if not isinstance(rows, tuple | list) or len(rows) not in (2, 3):
        raise InvalidInputError(
            f"{argument} must be (X, y) or (X, y, sample_weight), got {type(rows).__name__}. "
            f"Pass {argument}=(X, y)."
        )
    X, y, *weight = rows
    return X, y, weight[0] if weight else None


def read_outcomes(
    y: ArrayLike | None, sample_weight: ArrayLike | None, exposure: NDArray[np.float64]
) -> Outcomes:
    """Read target and weights of as many rows as there are exposures."""
    n_rows = len(exposure)
    target, weight = read_target(y, n_rows), read_sample_weight(sample_weight, n_rows)
    return Outcomes(target, weight, exposure, label=_label("y", y))


def warn_of_other_order(X: Any, **columns: Any) -> None:
    """Warn where labels of pandas say that rows of a column are others than those of X.

    Labels that only count the rows say nothing, unless it is in another order.
    """
    ours: Any = getattr(X, "index", None)
    for name, column in columns.items():
        theirs: Any = getattr(column, "index", None)
        if not hasattr(ours, "equals") or not hasattr(theirs, "equals") or ours.equals(theirs):
            continue
        if len(ours) != len(theirs) or ours.nlevels != theirs.nlevels or not ours.is_unique:
            continue
        are_counts = any(np.array_equal(each, np.arange(len(ours))) for each in (ours, theirs))
        found, what = ours.isin(theirs), ""
        if found.all():
            what, way_out = "the same index labels in another order", f"pass {name}.loc[X.index]"
        elif found.any() and not are_counts:
            what, way_out = "some index labels in common", "align them first"
        if what:
            told = f"X and {name} have {what}, and rows are taken by position. If they belong "
            warnings.warn(f"{told}together by label, {way_out}.", stacklevel=6)


def read_target(y: ArrayLike | None, n_rows: int) -> NDArray[Any]:
    """Return y as a 1-D array of ``n_rows`` values, none of them missing or infinite."""
    if y is None:
        raise InvalidInputError(
            "y must be given: this estimator requires y to be passed, but the target y is None."
        )
    label = _label("y", y)
    if isinstance(y, str):
        raise InvalidInputError(f"y must hold a value for each row, got {y!r}. Pass X[{y!r}].")
    # scikit-learn takes long to import: only those who have a target pay for it.
    from sklearn.utils.validation import column_or_1d

    values = column_or_1d(_to_numpy(y), warn=True)
    if values.dtype.kind in "mM":
        raise InvalidInputError(
            f"{label} must hold numbers, text or booleans, got {values.dtype}. "
            "Convert it first, for example a date to the number of days since a start."
        )
    if len(values) != n_rows:
        raise InvalidInputError(
            f"X and y must have the same number of rows, got {n_rows} and {len(values)}. "
            "Check that both come from the same filter."
        )
    # Only a float, or an object in a column of them, can fail to be there.
    missing = np.array(
        [is_missing(v) for v in values] if values.dtype == object else values != values
    )
    if missing.any():
        raise InvalidInputError(
            f"{label} must not hold missing values, got {int(missing.sum())} NaN, the first in row "
            f"{int(np.argmax(missing))}. Drop these rows: a target cannot be imputed."
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values)))
        raise InvalidInputError(
            f"{label} must be finite, got infinity ({values[row]}) in row {row}. "
            "Correct or drop it."
        )
    return values


def read_sample_weight(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Return weights scaled to a mean of 1; all 1 where none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    label = _label("sample_weight", sample_weight)
    try:
        weight = np.asarray(_to_numpy(sample_weight), dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            f"{label} must hold numbers: {error}. Pass one number per row."
        ) from error
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1 or len(weight) != n_rows:
        raise InvalidInputError(
            f"{label} must hold one number per row, got shape {weight.shape} for "
            f"{n_rows} rows. sample_weight.shape must be (n_rows,)."
        )
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    way_out = "Correct it, or set it to 0 to leave the row out."
    refuse_rows(wrong, weight, f"{label} must be finite and at least 0", way_out)
    with np.errstate(over="ignore"):
        total = weight.sum()
    if np.isinf(total):
        raise InvalidInputError(
            f"{label} must have a finite sum, got weights up to {weight.max()}. "
            "Divide them all by the largest."
        )
    if total == 0:
        raise InvalidInputError(
            f"{label} must have a positive sum, got a weight of zero in every row. "
            "Leave it out to weigh all rows alike."
        )
    return weight * (n_rows / total)


def hash_rows(X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None) -> str:
    """Hash names and values of a table, its outcomes and its weights.

    The same rows give the same text, in whatever library they come; those of weight 0 are none.

    Examples
    --------
    >>> hash_rows([[1, "a"], [2, "b"]], [0, 1], None) == hash_rows(
    ...     np.array([[1, "a"], [2, "b"]], dtype=object), [0, 1], [3, 3]
    ... )
    True
    """
    digest = hashlib.sha256()
    with counted_rows(X, y, sample_weight=sample_weight) as (X, y, sample_weight):
        table = tables.read_table(X)
        target = None if y is None else read_target(y, table.n_rows)
        weight = read_sample_weight(sample_weight, table.n_rows)
    for name, column in table.columns.items():
        digest.update(repr(name).encode())
        if pat.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        values = column.to_numpy() if pat.is_primitive(column.type) else None
        if values is not None and values.dtype != object:
            digest.update(np.ascontiguousarray(values).tobytes())
        else:
            # Each distinct text once, and where it is: a million texts would be a million objects.
            encoded = column.combine_chunks().dictionary_encode()
            digest.update(repr(encoded.dictionary.to_pylist()).encode())
            digest.update(encoded.indices.fill_null(-1).to_numpy().tobytes())
    digest.update(repr(None if target is None else target.tolist()).encode())
    digest.update(weight.tobytes())
    return digest.hexdigest()[:16]


def column_name(values: Any) -> str | None:
    """Return the name that a column of a dataframe brings along."""
    series = nw.from_native(values, series_only=True, pass_through=True)
    name = series.name if isinstance(series, nw.Series) else None
    return str(name) if name not in (None, "") else None


def _label(argument: str, values: Any) -> str:
    """Name an argument for a message, and the column it came from."""
    name = column_name(values)
    return argument if name in (None, argument) else f"{argument} ({name!r})"


def _to_numpy(values: Any) -> NDArray[Any]:
    if isinstance(values, pa.Array):
        values = pa.chunked_array([values])
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series.to_numpy()
    array = np.asarray(values)
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        array = array.astype(object)
        array[values.mask] = np.nan
    if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
        # In a list of text numpy writes NaN as the text "nan".
        objects = np.asarray(values, dtype=object)
        if any(map(is_missing, objects.flat)):
            return objects
    return array
