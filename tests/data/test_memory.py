"""What encoding takes in memory beside the table."""

import tracemalloc

import pyarrow as pa
import pytest

from fcorr.data import encode, infer_schema, make_bank_fraud, read_table


@pytest.fixture
def count_arrow():
    """Make Arrow allocate from a pool that counts from now on."""
    before = pa.default_memory_pool()

    def count():
        pool = pa.proxy_memory_pool(before)
        pa.set_memory_pool(pool)
        return pool

    yield count
    pa.set_memory_pool(before)


def test_a_million_rows_take_less_than_twice_the_table(count_arrow):
    X, _ = make_bank_fraud(1_000_000, random_state=0, frame="pandas")
    assert X.shape == (1_000_000, 31)
    schema = infer_schema(read_table(X[:10_000]), min_category_rows=1)
    pool = count_arrow()
    tracemalloc.start()
    try:
        encoded = encode(read_table(X), schema)
        _, numpy_peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(encoded) == 1_000_000
    assert numpy_peak + pool.max_memory() < 2 * X.memory_usage(deep=True).sum()
