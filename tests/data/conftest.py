import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow-table": pa.table,
    "pyarrow-batch": pa.RecordBatch.from_pydict,
}


@pytest.fixture(params=list(FRAMES))
def as_frame(request):
    """Make a dataframe of each library from a dict of lists."""
    return FRAMES[request.param]
