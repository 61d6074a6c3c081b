"""The categories of a new table among those of the training table."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fcorr.data.columns import Category, can_be_category, is_text, refuse_values, value_type
from fcorr.data.descriptions import CategoricalColumn, OrdinalColumn
from fcorr.data.distinct import Distinct, find_distinct
from fcorr.data.kinds import as_boolean

UNSEEN = -1


def match_categories(
    values: pa.ChunkedArray, column: CategoricalColumn | OrdinalColumn
) -> tuple[Distinct, NDArray[np.int32]]:
    """Split a column into its distinct values, and find each among the training categories.

    Parameters
    ----------
    values : ChunkedArray
        The column of the new table.
    column : CategoricalColumn or OrdinalColumn
        What it was in training.

    Returns
    -------
    Distinct
        The column, split.
    ndarray of int32
        The place of each distinct value in ``column.categories``, or :data:`UNSEEN`.

    Raises
    ------
    ColumnError
        The column holds text where training had numbers, or the other way round, or dates.
    """
    _check_values(values, column)
    distinct = find_distinct(column.name, values)
    place: dict[Category, int] = {
        category: i for i, category in enumerate(column.categories) if category is not None
    }
    found = distinct.values
    if column.kind == "boolean":
        found = [as_boolean(value) for value in found]
    places = [place.get(value, UNSEEN) for value in found]
    return distinct, np.asarray(places, dtype=np.int32)


def _check_values(values: pa.ChunkedArray, column: CategoricalColumn | OrdinalColumn) -> None:
    """Refuse values that could not equal any category, whatever they are."""
    if values.null_count == len(values):
        return
    kind = value_type(values.type)
    if column.kind == "boolean":
        expected, fits = "booleans", can_be_category(kind)
    elif column.is_text:
        expected, fits = "text", is_text(kind)
    else:
        expected, fits = "numbers", can_be_category(kind) and not is_text(kind)
    if not fits:
        remedy = "Convert the column as it was for training, or train on it as it is"
        refuse_values(column.name, expected, values, remedy)
