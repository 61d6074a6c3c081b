"""Inference: from a training table to its schema.

What each column is comes from the user or from its type; then every column is described by the
function for its kind. Where the target is known, columns of many categories are rated by it.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from numpy.typing import NDArray

from fcorr._core import InvalidInputError, enumerate_some, first_few
from fcorr.data import tables
from fcorr.data.encode import Outcomes, encode
from fcorr.data.schema import (
    MAX_SENSITIVE_CATEGORIES,
    CategoricalColumn,
    Column,
    DatetimeColumn,
    Kind,
    KindName,
    Kinds,
    NumericColumn,
    OrdinalColumn,
    RatedColumn,
    Schema,
    as_boolean,
    parse_kinds,
)
from fcorr.data.tables import DATE_PARTS, Category, ColumnError, Table

CategoricalMissing = Literal["category", "mode"]
NumericMissing = Literal["mean", "category"]
MinCategoryRows = int | Literal["auto"]

MANY_LEVELS = 50
"""A column of more categories, rare ones included, is rated where the target allows it."""

_N_FOLDS = 10  # of rows whose ratings are computed from all others
_FEW_ROWS = 20  # in which a column may look like a key, or like the target, by chance
_N_LOOK = 1_000  # rows that are enough to see that most columns are no copy


def infer_schema(
    table: Table,
    *,
    sensitive: Sequence[str | int] = (),
    kinds: Kinds | None = None,
    missing_categorical: CategoricalMissing = "category",
    missing_numeric: NumericMissing = "mean",
    min_category_rows: MinCategoryRows = "auto",
    target: str | None = None,
    weight: str | None = None,
    exposure: str | None = None,
) -> Schema:
    """Describe a training table.

    A column that takes one value only is kept, with a warning; a sensitive one is refused. Of text
    that looks like a key, and is not in ``kinds``, all values are pooled, with a warning as well.

    Parameters
    ----------
    table : Table
        The training table.
    sensitive : sequence of str or int
        Sensitive columns, of any kind. Numbers of at most 20 distinct values are categories
        there, and so are ordered dictionaries, unless ``kinds`` says otherwise. Where the columns
        have no names, here and in ``kinds``, their positions serve.
    kinds : dict, optional
        What columns are: ``"numeric"``, ``"categorical"``, ``"ordinal"``, ``"boolean"``,
        ``"datetime"``, or a sequence of categories, which is an ordinal column's order. By
        default numbers are numeric, text and dictionaries categorical, ordered dictionaries
        ordinal, booleans boolean and dates datetime. Durations are numbers of days, pandas'
        periods the dates they begin at, its intervals ordinal.
    missing_categorical : {"category", "mode"}
        A missing category is a category of its own, or is taken for the most frequent one.
    missing_numeric : {"mean", "category"}
        A missing number is taken for the mean, or is kept.
    min_category_rows : int or "auto"
        Categories seen in fewer rows are pooled into one, but never those of sensitive and of
        boolean columns, and not where ``rate_columns`` rates them. ``"auto"`` is the smaller
        of 10 and a thousandth of the rows; where all categories have fewer, none is pooled.
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
    sensitive_names = tables.resolve_columns(table, sensitive, "sensitive")
    told = parse_kinds(kinds)
    stated = dict(
        zip(tables.resolve_columns(table, list(told), "kinds"), told.values(), strict=True)
    )
    found = {
        name: stated.get(name) or Kind(_kind_by_type(table, name, name in sensitive_names))
        for name in table.names
    }
    if exposure is not None and found.pop(exposure, None) is not None:
        if exposure in sensitive_names:
            raise InvalidInputError(
                f"The exposure must be no feature, got {exposure!r} as exposure and as sensitive "
                "column. Leave it out of `sensitive`."
            )
        if not found:
            raise InvalidInputError(
                f"X must have a feature beside the exposure, got the column {exposure!r} alone. "
                "Add the features."
            )
    rare_below = min(10, table.n_rows / 1000) if min_category_rows == "auto" else min_category_rows

    def describe(name: str, kind: Kind) -> Column:
        values = table.columns[name]
        if pc.all(pc.is_null(values, nan_is_null=True)).as_py():  # whatever it might have held
            return _describe_numbers(name, np.full(table.n_rows, np.nan), missing_numeric)
        if kind.name == "numeric":
            return _describe_numbers(name, tables.to_numbers(name, values), missing_numeric)
        if kind.name == "ordinal":
            return _describe_ordinal(name, values, kind.order, missing_numeric)
        if kind.name == "datetime":
            return _describe_dates(name, values, missing_numeric)
        if name in sensitive_names or kind.name == "boolean":
            return _describe_categories(name, values, kind, missing_categorical, 0)
        column = _describe_categories(name, values, kind, missing_categorical, rare_below)
        if name not in stated and _is_key(column, values):  # values that nobody needs to know
            return _describe_categories(name, values, kind, "mode", math.inf)
        if min_category_rows == "auto" and not column.is_known:  # a pool of all tells nothing
            return _describe_categories(name, values, kind, missing_categorical, 0)
        return column

    schema = Schema(
        columns=tuple(describe(name, kind) for name, kind in found.items()),
        sensitive=tuple(sensitive_names),
        n_rows=table.n_rows,
        target=target,
        weight=weight,
        exposure=exposure,
    )
    for column in schema.columns:
        for feature in column.features:
            if feature.name != column.name and feature.name in schema.names:
                raise InvalidInputError(
                    f"Feature names must differ, got {feature.name!r} as a column and as a part of "
                    f"the dates in {column.name!r}. Rename the column, or drop it."
                )
    _check_constant(schema)
    _warn_of_spoilt_numbers(table, [c.name for c in schema.columns if c.name not in stated])
    described = [c for c in schema.columns if c.name not in {*stated, *schema.sensitive}]
    keys = [column for column in described if _is_key(column, table.columns[column.name])]
    if keys:
        text = [column.name for column in keys if isinstance(column, CategoricalColumn)]
        counting = [column.name for column in keys if column.name not in text]
        kept = {"without effect": text, "as numbers": counting}
        fate = "; ".join(f"{how}: {enumerate_some(names)}" for how, names in kept.items() if names)
        warnings.warn(
            "A feature must say something of rows that are yet to come, got what looks like a key, "
            f"with a value of its own for every row or a running number. Kept {fate}. Drop it, or "
            f"say what it is, kinds={{{keys[0].name!r}: {keys[0].kind!r}}}, if it is no key.",
            stacklevel=5,  # where an estimator's fit was called
        )
    return schema


def _check_constant(schema: Schema) -> None:
    """Warn of columns that take one value; with a sensitive one, fairness is about nothing."""
    values = {column.name: _only_value(column, schema.n_rows) for column in schema.columns}
    constant = {name: value for name, value in values.items() if value is not None}
    for name in schema.sensitive:
        if name in constant:
            is_coded = isinstance(schema[name], CategoricalColumn)
            what = "have at least two categories" if is_coded else "take at least two values"
            raise InvalidInputError(
                f"Sensitive column {name!r} must {what}, got only {constant[name]!r}. "
                "Leave it out of `sensitive`, or check X."
            )
    if constant and schema.n_rows > 1:
        shown = first_few(
            f"{name!r} (rated alike: no category has the rows to be told from others)"
            if schema[name].kind == "rated"
            else f"{name!r} (always {value!r})"
            for name, value in constant.items()
        )
        warnings.warn(
            f"Columns that take one value only are kept without effect: {shown}. "
            "Drop them if that is a mistake.",
            stacklevel=6,  # where an estimator's fit was called
        )


# With signs of thousands or of money perhaps, and the letters of a currency.
_AMOUNT = (
    r"^\s*[-+]?\s*[€$£]?\s*(\d{1,3}([ ,.'’]?\d{3})*([.,]\d+)?|\d*[.,]?\d+([eE][-+]?\d+)?)"
    r"\s*([€$£%]|[A-Z]{3})?\s*$"
)
_MOST_NUMBERS = 0.9  # of a column's different values, to be one of numbers


def _warn_of_spoilt_numbers(table: tables.Table, names: Sequence[str]) -> None:
    """Warn of text that is numbers but for a few values, or for how they are written."""
    text = (name for name in names if tables.name_values(table.columns[name].type) == "text")
    for name in text:
        values = tables.find_distinct(name, table.columns[name]).dictionary.drop_null()
        shares = (pc.mean(pc.match_substring_regex(values, p)).as_py() for p in (_AMOUNT, r"^\d+$"))
        if len(values) < _FEW_ROWS or next(shares) < _MOST_NUMBERS or next(shares) == 1:
            continue  # all digits: codes, which were made text on purpose
        is_odd = pc.invert(pc.match_substring_regex(values, r"^[-+]?\d*\.?\d+([eE]|$)"))
        odd = enumerate_some(pc.filter(values, is_odd).to_pylist(), 3)
        warnings.warn(
            f"Column {name!r} is text, and its values are taken for categories, although most look "
            f"like numbers{f'; not {odd}' if odd else ''}. Make them numbers or missing, or say "
            f"that they are categories, kinds={{{name!r}: 'categorical'}}.",
            stacklevel=5,
        )


def _only_value(column: Column, n_rows: int) -> Category:
    """Return the value that every row has, or None where there are several."""
    if column.n_missing == n_rows:
        return "missing"
    if isinstance(column, CategoricalColumn):
        return column.categories[0] if column.n_codes == len(column.categories) == 1 else None
    if any(part.low < part.high or part.keep_missing for part in column.features):
        return None
    if isinstance(column, OrdinalColumn):
        return column.categories[int(column.position.low)]
    return column.first if isinstance(column, DatetimeColumn) else column.features[0].low


def _is_key(column: Column, values: pa.ChunkedArray) -> bool:
    """Tell whether every row has a category of its own, or whole numbers count the rows."""
    if isinstance(column, CategoricalColumn):
        n_seen = len({*column.categories} - {None}) + column.n_pooled
        return _FEW_ROWS <= n_seen == len(values) - column.n_missing
    is_whole = isinstance(column, NumericColumn) and pat.is_integer(values.type)
    if not is_whole or column.n_missing or len(values) < _FEW_ROWS:
        return False
    found = values.to_numpy()
    if (found[1:] > found[:-1]).all() or (found[1:] < found[:-1]).all():
        return True
    return int(found.max()) - int(found.min()) == len(found) - 1 == len(np.unique(found)) - 1


def warn_of_copies(table: Table, schema: Schema, places: NDArray[np.intp], label: str) -> None:
    """Warn of columns that tell the target outright.

    ``places`` are those of the rows' targets among its sorted values, ``label`` is its name. Where
    values repeat, such as classes, a copy is a column with one value for each of them; else it is
    a column of numbers that all rise, or all fall, with the target.
    """
    n_rows, n_distinct = len(places), int(places.max()) + 1
    if n_rows < _FEW_ROWS or n_distinct == 1:
        return
    is_like = _is_relabelled if n_distinct <= n_rows / 2 else _rises_or_falls

    def is_copy(column: Column, n: int) -> bool:
        return is_like(column, table.columns[column.name].slice(0, n), places[:n])

    copies = [
        column.name
        for column in schema.columns
        if is_copy(column, _N_LOOK) and is_copy(column, n_rows)
    ]
    if copies:
        warnings.warn(
            f"A feature must not tell {label} outright, got a copy or a relabelling of it as "
            f"{enumerate_some(copies)}. Drop it, unless it is known before {label} is.",
            stacklevel=5,  # where an estimator's fit was called
        )


def _is_relabelled(column: Column, values: pa.ChunkedArray, places: NDArray[np.intp]) -> bool:
    if not tables.can_be_category(values.type):
        return False
    codes = tables.find_distinct(column.name, values).positions()
    n_pairs = len(np.unique(np.stack([codes, places]), axis=1).T)
    return n_pairs == len(np.unique(codes)) == len(np.unique(places))


def _rises_or_falls(column: Column, values: pa.ChunkedArray, places: NDArray[np.intp]) -> bool:
    if not isinstance(column, NumericColumn):
        return False
    order = np.argsort(places)
    steps = np.sign(np.diff(tables.to_numbers(column.name, values)[order]))
    steps_of_y = np.sign(np.diff(places[order]))
    return bool((steps == steps_of_y).all() or (steps == -steps_of_y).all())


# ------------------------------------------------------------------------------ kinds


def _kind_by_type(table: Table, name: str, is_sensitive: bool) -> KindName:
    """Return what a column is by its type.

    Sensitive columns are categorical where both a category and a number would do: ordered
    categories, and numbers that take few values, such as 0 and 1 for two sexes.
    """
    dtype = table.columns[name].type
    held = tables.name_values(dtype)
    if name in table.ordinal:
        return "categorical" if is_sensitive else "ordinal"
    if pat.is_null(dtype):
        return "numeric"
    if tables.is_number(dtype):  # not so numbers in a dictionary, which makes them categories
        few = (
            is_sensitive and tables.count_distinct(table.columns[name]) <= MAX_SENSITIVE_CATEGORIES
        )
        return "categorical" if few else "numeric"
    if tables.can_be_category(dtype):
        return "boolean" if held == "booleans" else "categorical"
    if held == "dates":
        return "datetime"
    raise InvalidInputError(
        f"Column {name!r} must hold numbers, text, booleans or dates, got {held}. "
        "Convert it to text or numbers first, or drop it."
    )


# ------------------------------------------------------------------------------ descriptions


def _describe_categories(
    name: str, values: pa.ChunkedArray, kind: Kind, missing: CategoricalMissing, rare_below: float
) -> CategoricalColumn:
    """Describe categories or booleans; categories in fewer than ``rare_below`` rows are pooled.

    NOTE[DIFF]: the paper imputes the mode; "missing" is a category of its own unless asked for.
    """
    counts, n_missing, pooled = _count_categories(name, values, kind, rare_below)
    categories = sorted(counts, key=_category_order)
    mode = max(range(len(categories)), key=lambda code: counts[categories[code]], default=0)
    if n_missing and missing == "category":
        counts[None] = n_missing
        categories.append(None)
    rows = tuple(counts[category] for category in categories)
    return CategoricalColumn(name, tuple(categories), rows, n_missing, mode, *pooled)


def _describe_ordinal(
    name: str, values: pa.ChunkedArray, order: Sequence[Category] | None, missing: NumericMissing
) -> OrdinalColumn:
    """Describe a column of ordered categories; without an ``order`` its type must tell one."""
    is_ordered = pat.is_dictionary(values.type) and values.type.ordered
    if order is None and is_ordered and values.num_chunks:
        order = values.unify_dictionaries().chunk(0).dictionary.to_pylist()
    elif order is None and tables.name_values(values.type) in ("numbers", "booleans"):
        order = sorted(tables.find_distinct(name, values).values, key=_category_order)
    elif order is None:
        raise InvalidInputError(
            f"Column {name!r} must have an order to be ordinal, got "
            f"{tables.value_type(values.type)} without one. State it: "
            f"kinds={{{name!r}: ['low', 'middle', 'high']}} with its own categories."
        )
    order = tuple(order)
    counts, n_missing, _ = _count_categories(name, values, Kind("ordinal", order))
    rows = tuple(counts.get(category, 0) for category in order)
    places = np.repeat([*np.arange(float(len(order))), np.nan], [*rows, n_missing])
    return OrdinalColumn(name, order, rows, _describe_numbers(name, places, missing))


def _category_order(category: Category) -> tuple[bool, float, str]:
    """Sort numbers by value and before text, so that the codes do not depend on row order."""
    is_text = isinstance(category, str)
    return (is_text, 0.0 if is_text else float(category or 0), str(category))


def _count_categories(
    name: str, values: pa.ChunkedArray, kind: Kind, rare_below: float = 0
) -> tuple[dict[Category, int], int, tuple[int, int]]:
    """Count the rows of each category, the missing ones, and rare categories with their rows.

    What is none of its kind is refused.
    """
    distinct = tables.find_distinct(name, values)
    rows = distinct.count()
    rows, n_missing = rows[:-1], int(rows[-1])
    n_seen = int(np.count_nonzero(rows))
    is_kept = rows >= max(rare_below, 1)
    # Only what is kept becomes Python objects: a key may have millions of values.
    kept = distinct.dictionary.filter(pa.array(is_kept)).to_pylist()
    known = set(kind.order or ())
    counts: dict[Category, int] = {}
    for value, n in zip(kept, rows[is_kept].tolist(), strict=True):
        category = as_boolean(value) if kind.name == "boolean" else value
        if category is None or (known and category not in known):
            rule, remedy = "booleans, 0 and 1, or true and false", "Correct it, or "
            if known:
                rule = f"the categories of its order, {enumerate_some(kind.order or ())}"
                remedy += f"add {value!r} to the order in kinds."
            else:
                remedy += f"train with kinds={{{name!r}: 'categorical'}}."
            row = int(np.argmax(distinct.positions() == distinct.values.index(value)))
            raise ColumnError(
                f"Column {name!r} must hold {rule}, got {value!r} in row {row}", remedy
            )
        counts[category] = counts.get(category, 0) + n
    return counts, n_missing, (n_seen - len(kept), int(rows[~is_kept].sum()))


def _describe_numbers(
    name: str, values: NDArray[np.float64], missing: NumericMissing = "mean"
) -> NumericColumn:
    """Describe numbers, of which NaN are missing; where all are, as if each were 0."""
    is_missing = np.isnan(values)
    n_missing = int(np.count_nonzero(is_missing))
    seen = values[~is_missing] if n_missing < len(values) else np.zeros(1)
    low, high = float(seen.min()), float(seen.max())
    # Centre before squaring: with a large mean, E[x²] − E[x]² would lose every digit.
    mean = float(np.clip(seen.mean(), low, high))
    scale = float(np.sqrt(np.mean((seen - mean) ** 2))) if high > low else 1.0
    keep_missing = missing == "category" and 0 < n_missing < len(values)
    return NumericColumn(name, mean, scale or 1.0, low, high, n_missing, keep_missing)


def _describe_dates(name: str, values: pa.ChunkedArray, missing: NumericMissing) -> DatetimeColumn:
    """Describe a column of dates by those of its parts that vary."""
    timestamps = tables.to_timestamps(name, values)
    n_missing = timestamps.null_count
    first, last = pc.min_max(timestamps).as_py().values()
    parts = [
        _describe_numbers(
            f"{name}.{part}", tables.date_part(part, timestamps, first.date()), missing
        )
        for part in DATE_PARTS
    ]
    # What is the same in every row says nothing, such as the hour of dates without one.
    varying = tuple(part for part in parts if part.low < part.high) or (parts[-1],)
    return DatetimeColumn(name, first.isoformat(), last.isoformat(), n_missing, varying)


# ------------------------------------------------------------------------------ ratings


def rate_columns(
    table: Table,
    schema: Schema,
    outcomes: Outcomes,
    *,
    link: Literal["identity", "exp", "sigmoid", "softmax"],
    seed: int,
) -> tuple[Schema, dict[str, NDArray[np.float64]]]:
    """Turn columns of many categories into numbers, by the target of their rows.

    These are categorical columns, neither boolean nor sensitive, of more than :data:`MANY_LEVELS`
    categories. Category c has the credibility (Bühlmann and Straub, 1970)

        Z_c = w_c / (w_c + k),    k = variance within categories / variance between them,

    and the rating g(Z_c · mean_c + (1 − Z_c) · mean) − g(mean). Here w_c is the weight of its rows,
    times their exposure; means are those of the target per unit of exposure, and g is what
    ``link`` inverts: the logit, the logarithm or nothing. k counts for at least an average row,
    without which a category whose rows are all 0 had no finite logit. Where categories do not
    differ more than chance would have it, all are rated 0 and a warning says so.

    A training row whose number had its own target in it would tell the model the answer. Its
    rating is therefore computed from other rows: all those that are not in its fold, one of ten.

    ``link`` makes predictions of the model's outputs. With ``"softmax"`` there are three classes or
    more, a rating would have to be a number for each, and no column is rated. ``seed`` is that of
    the folds.

    Returns the schema, in which a :class:`RatedColumn` describes each of the columns, and for each
    the ratings of the training rows, for :func:`~fcorr.data.encode.use_ratings` to train with.
    Predictions use those of the schema.

    Examples
    --------
    >>> from fcorr.data import encode, read_table
    >>> from fcorr.data.encode import read_outcomes, use_ratings
    >>> rows = [[f"bank {i % 60}", i % 7] for i in range(600)]
    >>> table = read_table(rows).renamed(["bank", "age"])
    >>> outcomes = read_outcomes([i % 3 == 0 for i in range(600)], None, np.ones(600))
    >>> schema = infer_schema(table)
    >>> schema, held_out = rate_columns(table, schema, outcomes, link="sigmoid", seed=0)
    >>> [round(rating, 2) for rating in schema["bank"].ratings[:3]]
    [3.43, -2.77, -2.77]
    >>> encoded = encode(table, schema)
    >>> trained_with = use_ratings(encoded, schema, held_out)
    """
    if link == "sigmoid":
        target, weight = outcomes.classes[1].astype(np.float64), outcomes.weight
    elif link == "softmax":
        return schema, {}
    else:
        target = outcomes.numbers() / outcomes.exposure
        weight = outcomes.weight * outcomes.exposure
    folds = np.random.default_rng(seed).permutation(table.n_rows) % _N_FOLDS
    rated: dict[str, RatedColumn] = {}
    held_out: dict[str, NDArray[np.float64]] = {}
    for column in schema.columns:
        name = column.name
        if not isinstance(column, CategoricalColumn) or name in schema.sensitive:
            continue
        n_levels = len({*column.categories} - {None}) + column.n_pooled
        if n_levels <= MANY_LEVELS or column.n_pooled == table.n_rows - column.n_missing:
            continue  # few of them, or a key
        missing: CategoricalMissing = "category" if None in column.categories else "mode"
        levels = _describe_categories(name, table.columns[name], Kind("categorical"), missing, 0)
        codes = encode(table, Schema((levels,), (), table.n_rows)).codes[:, 0]
        ratings, credibilities = _rate(codes, levels.n_codes, target, weight, link)
        held_out[name] = np.empty(table.n_rows)
        for fold in range(_N_FOLDS):
            own, others = folds == fold, folds != fold
            # From scratch: neither the mean nor k may have to do with the fold's targets.
            of_others = codes[others], levels.n_codes, target[others], weight[others], link
            held_out[name][own] = _rate(*of_others)[0][codes[own]]
        rated[name] = RatedColumn(
            name,
            levels.categories,
            levels.counts,
            levels.n_missing,
            levels.mode,
            ratings=tuple(ratings.tolist()),
            credibilities=tuple(credibilities.tolist()),
            number=_describe_numbers(name, ratings[codes]),
        )
    _check_constant(replace(schema, columns=tuple(rated.values()), sensitive=()))
    columns = tuple(rated.get(column.name, column) for column in schema.columns)
    return replace(schema, columns=columns), held_out


def _rate(
    codes: NDArray[np.int32],
    n_codes: int,
    target: NDArray[np.float64],
    weight: NDArray[np.float64],
    link: str,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each code's rating and its credibility; both 0 where none of the rows has it.

    Weights are shares of their sum here, and so is k. With C codes among n rows the variance
    within is estimated as S_w / (n − C), that between as (S_b − (C − 1) · S_w / (n − C)) /
    (1 − Σ_c w_c²), for the sums of squares S_w of rows about the means of their codes and S_b of
    these about the mean of all.
    """
    share = weight / weight.sum()
    share_of_code = np.bincount(codes, share, n_codes)
    is_seen = share_of_code > 0
    n_rows, n_seen = len(codes), int(np.count_nonzero(is_seen))

    def means(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        total_of_code = np.bincount(codes, share * values, n_codes)
        mean_of_code = np.divide(total_of_code, share_of_code, np.zeros(n_codes), where=is_seen)
        return mean_of_code, float(total_of_code.sum())

    mean_of_code, mean = means(target)
    # Nothing to tell the two variances apart by, or only the rounding of means that are equal.
    if n_rows == n_seen or target.min() == target.max():
        return np.zeros(n_codes), np.zeros(n_codes)
    within = float(share @ (target - mean_of_code[codes]) ** 2) / (n_rows - n_seen)
    between = float(share_of_code @ (mean_of_code - mean) ** 2) - (n_seen - 1) * within
    if between <= 0:
        return np.zeros(n_codes), np.zeros(n_codes)
    k = max(within * (1 - float(share_of_code @ share_of_code)) / between, 1 / n_rows)
    credibility = share_of_code / (share_of_code + k)
    if link == "identity":
        return credibility * (mean_of_code - mean), credibility
    ratings = np.log1p(credibility * (mean_of_code / mean - 1))
    if link == "sigmoid":  # the logit is the logarithm of one mean less that of the other
        mean_of_code, mean = means(1 - target)
        ratings -= np.log1p(credibility * (mean_of_code / mean - 1))
    return ratings, credibility
