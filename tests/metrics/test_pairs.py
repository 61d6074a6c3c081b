import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcorr.metrics.counterfactual import sum_over_pairs

VALUES = st.lists(st.floats(-100, 100, allow_subnormal=False), min_size=1, max_size=12)


@given(VALUES)
def test_agrees_with_all_pairs(values: list[float]) -> None:
    expected = sum(abs(a - b) for a in values for b in values)
    assert sum_over_pairs(np.array([values]))[0] == pytest.approx(expected, abs=1e-9)


def test_each_line_has_its_own_sum() -> None:
    assert sum_over_pairs(np.array([[1.0, 1.0], [5.0, 2.0]])).tolist() == [0.0, 6.0]


def test_equal_values_give_exactly_zero() -> None:
    assert sum_over_pairs(np.full((3, 1001), 0.1)).tolist() == [0.0, 0.0, 0.0]
