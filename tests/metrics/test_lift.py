"""Lift and double-lift tables: bins of equal weight, nothing lost, ties together."""

import itertools
import json

import numpy as np
import pytest

from fcorr._core import InvalidInputError
from fcorr.metrics import double_lift_table, lift_table


@pytest.fixture
def portfolio():
    rng = np.random.default_rng(0)
    exposure, rate = rng.uniform(0.1, 1, 4_000), rng.gamma(2, 0.1, 4_000)
    return rng.poisson(exposure * rate) / exposure, rate, exposure


def test_bins_have_about_equal_weight_and_lose_nothing(portfolio):
    y, rate, exposure = portfolio
    rows = lift_table(y, rate, sample_weight=exposure).rows
    weights = np.array([row.weight for row in rows])
    assert len(rows) == 10
    assert weights == pytest.approx(exposure.sum() / 10, abs=1.01)  # one policy at either end
    assert sum(row.n for row in rows) == 4_000
    for name, column in (("actual", y), ("predicted", rate)):
        total = sum(row.weight * getattr(row, name) for row in rows)
        assert total == pytest.approx(np.sum(exposure * column), rel=1e-12)
    assert all(a.high < b.low for a, b in itertools.pairwise(rows))
    assert all(row.low <= row.predicted <= row.high for row in rows)


def test_ten_equal_rows_in_five_bins():
    rows = lift_table(np.arange(10), np.arange(10), n_bins=5).rows
    assert [(row.n, row.low, row.high, row.actual) for row in rows] == [
        (2, 2 * i, 2 * i + 1, 2 * i + 0.5) for i in range(5)
    ]


def test_equal_predictions_stay_together():
    rows = lift_table([0, 1, 2, 3, 4, 5], [1, 1, 1, 1, 1, 9], n_bins=3).rows
    assert [row.n for row in rows] == [5, 1]
    (row,) = lift_table([1, 2], [4, 4], n_bins=10).rows
    assert (row.actual, row.predicted) == (1.5, 4)


def test_rows_without_weight_do_not_count():
    rows = lift_table([1, 2, 99], [1, 2, 3], n_bins=3, sample_weight=[1, 1, 0]).rows
    assert [(row.n, row.actual, row.high) for row in rows] == [(1, 1, 1), (1, 2, 2)]


def test_double_lift_shows_which_model_is_right(portfolio):
    y, rate, exposure = portfolio
    flat = np.full(len(y), np.average(y, weights=exposure))
    rows = double_lift_table(y, rate, flat, sample_weight=exposure).rows
    off_model = sum(abs(row.predicted - row.actual) for row in rows)
    off_incumbent = sum(abs(row.incumbent - row.actual) for row in rows)
    assert off_model < off_incumbent / 3
    assert rows[0].predicted < rows[0].incumbent
    assert rows[-1].predicted > rows[-1].incumbent
    assert all(row.low <= row.high for row in rows)
    ratios = rate / flat
    assert (rows[0].low, rows[-1].high) == (ratios.min(), ratios.max())


def test_double_lift_bins_follow_the_ratio_not_the_prediction():
    table = double_lift_table([1, 2, 3, 4], [10, 1, 20, 2], [20, 0.5, 40, 1], n_bins=2)
    assert [(row.low, row.actual, row.n) for row in table.rows] == [(0.5, 2, 2), (2, 3, 2)]


def test_tables_go_through_json(portfolio):
    y, rate, _ = portfolio
    for table in (lift_table(y, rate), double_lift_table(y, rate, rate + 1)):
        lines = json.loads(json.dumps(table.to_dict()))["rows"]
        assert [line["n"] for line in lines] == [row.n for row in table.rows]


@pytest.mark.parametrize("n_bins", [0, -3, 2.5, "ten"])
def test_bad_number_of_bins(n_bins):
    with pytest.raises(InvalidInputError) as caught:
        lift_table([1], [1], n_bins=n_bins)
    assert str(caught.value) == f"n_bins must be a positive integer, got {n_bins!r}. 10 is usual."


def test_bad_incumbent():
    with pytest.raises(InvalidInputError) as caught:
        double_lift_table([1, 2], [1, 2], [1, 0])
    assert str(caught.value) == (
        "y_incumbent must be positive to divide by, got 0 in row 1. "
        "Raise small predictions to a floor, or leave out those rows."
    )
    with pytest.raises(InvalidInputError, match=r"y_true 2, y_incumbent 1\. Take them from"):
        double_lift_table([1, 2], [1, 2], [1])
