import numpy as np
import pytest

from fcorr.training.knots import choose_knots


def knots(values, n_knots):
    (chosen,) = choose_knots(np.asarray(values, dtype=np.float32)[:, None], n_knots)
    return chosen.numpy()


def test_few_values_have_a_knot_each():
    np.testing.assert_array_equal(knots([3, 1, 2, 2, 1], 8), [1, 2, 3])


def test_missing_values_are_left_out():
    np.testing.assert_array_equal(knots([np.nan, 1, 5, np.nan], 8), [1, 5])


@pytest.mark.parametrize("n_knots", [3, 16, 64])
def test_many_values(n_knots):
    values = np.random.default_rng(0).lognormal(size=1_000).astype(np.float32)
    chosen = knots(values, n_knots)
    assert len(chosen) <= n_knots
    assert (np.diff(chosen) > 0).all()
    assert np.isin(chosen, values).all()
    assert chosen[0] == values.min()
    assert chosen[-1] == values.max()


def test_zero_inflated_column_has_knots_among_its_few_values():
    values = np.concatenate([np.zeros(900), np.arange(1, 101)])
    assert (knots(values, 16) > 0).sum() >= 7


def test_one_column_after_the_other():
    numbers = np.array([[0, 5], [1, 5]], dtype=np.float32)
    first, second = choose_knots(numbers, 4)
    assert (first.tolist(), second.tolist()) == ([0, 1], [5])
