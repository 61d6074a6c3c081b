import numpy as np
import pyarrow as pa
import pytest

from fcorr.data import read_table
from fcorr.data.encode import read_exposure
from fcorr.data.tables import ColumnError


@pytest.mark.parametrize("values", [[1, 2, 3], [0.5, 1.0, 1e-9], ["1", "2", "3"]])
def test_exposure(values):
    found = read_exposure(read_table(pa.table({"years": values})), "years")
    np.testing.assert_array_equal(found, np.array(values, dtype=float))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            [1.0, 0.0, -1.0],
            r"\(exposure\) must be positive in every row, got 0\.0 in row 1 and 1 m",
        ),
        ([1.0, -1.0, 2.0], r"got -1\.0 in row 1\. Correct these rows or leave them out: without"),
        ([1.0, 2.0, None], r"got nan in row 2\. Correct these rows"),
        ([1.0, np.inf, 2.0], r"must hold finite numbers .*got inf in row 1 .*Correct these rows"),
        (["1", "x", "2"], r"must hold numbers, got text: 'x' in row 1\. Correct these rows"),
    ],
)
def test_bad_exposure(values, message):
    with pytest.raises(ColumnError, match=f"Column 'years' .*{message}"):
        read_exposure(read_table(pa.table({"years": values})), "years")
