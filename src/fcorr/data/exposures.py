"""Exposures: for how long, or how much, each row was at risk."""

import numpy as np
from numpy.typing import NDArray

from fcorr.data.columns import ColumnError, to_numbers
from fcorr.data.tables import Table


def read_exposure(table: Table, name: str) -> NDArray[np.float64]:
    """Return a column of exposures, all of them positive.

    Raises
    ------
    ColumnError
        A row has no exposure, or one that is not positive; the message names column and row.
    """
    remedy = "Correct these rows or leave them out: without time at risk there is nothing to expect"
    try:
        exposure = to_numbers(name, table.columns[name])
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
