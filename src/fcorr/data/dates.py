"""Dates: any Arrow type of them as local time, and the numbers they are taken apart into."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from numpy.typing import NDArray

from fcorr.data.columns import ColumnError, decode, is_date, is_text, refuse_values, value_type

DATE_PARTS = ("year", "month", "day_of_week", "hour", "days")
"""What a date is taken apart into: ``days`` counts whole days, the week begins on Monday (0)."""


def to_timestamps(name: str, column: pa.ChunkedArray, first_row: int = 0) -> pa.ChunkedArray:
    """Return a column of dates as local time in microseconds; ISO 8601 text is read as dates."""
    remedy = "Convert the column to dates"
    kind = value_type(column.type)
    if not (is_date(kind) or is_text(kind) or pat.is_null(kind)):
        refuse_values(name, "dates", column, remedy, first_row)
    local = pa.timestamp("us")
    try:
        decoded = decode(column)
        if pat.is_timestamp(kind) and kind.tz is not None:
            # Hours and days are those of the clock on the wall, not those of Greenwich.
            decoded = pc.local_timestamp(decoded)
        return decoded.cast(local, safe=False)
    except pa.ArrowException:
        refuse_values(name, "dates", column, remedy, first_row, readable_as=local)


def date_range(
    name: str, timestamps: pa.ChunkedArray
) -> tuple[datetime.datetime, datetime.datetime]:
    """Return the first and the last date of a column that has some."""
    found = pc.min_max(timestamps)
    try:
        return found["min"].as_py(), found["max"].as_py()
    except (ValueError, OverflowError) as error:
        raise ColumnError(
            f"Column {name!r} must hold dates of the years 1 to 9999 ({error})",
            "Correct these dates, or make them missing.",
        ) from error


def date_part(part: str, timestamps: pa.ChunkedArray, origin: datetime.date) -> NDArray[np.float64]:
    """Return one of :data:`DATE_PARTS` of each date, NaN where it is missing."""
    if part == "days":
        start = pa.scalar(datetime.datetime.combine(origin, datetime.time()), timestamps.type)
        values = pc.days_between(start, timestamps)
    else:
        values = getattr(pc, part)(timestamps)
    return values.cast(pa.float64()).to_numpy()
