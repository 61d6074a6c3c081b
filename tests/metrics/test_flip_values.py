from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcorr._core import InvalidInputError
from fcorr.metrics._checks import encode_labels
from fcorr.metrics.flips import choose_values, quantile_groups


def choose(column: Any, wanted: Any = None, *, is_categorical: bool = False) -> Any:
    return choose_values(encode_labels(column, "age"), wanted, "age", is_categorical=is_categorical)


COUNTS_AND_GROUPS = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        st.lists(
            st.one_of(st.integers(1, 5), st.integers(1, 1000)), min_size=n + 1, max_size=40
        ).map(np.array),
        st.just(n),
    )
)


def full_size(counts: Any, n_groups: int) -> Fraction:
    """Size of a group if no value counts as more than one: the root of Σ min(count, t) = K·t."""
    for n_full in range(n_groups):
        ordered = sorted(counts.tolist(), reverse=True)
        size = Fraction(sum(ordered[n_full:]), n_groups - n_full)
        if ordered[n_full] <= size:
            return size
    raise AssertionError("no size found")


@given(COUNTS_AND_GROUPS)
def test_groups_are_in_order_all_filled_and_about_equal(case: tuple[Any, int]) -> None:
    counts, n_groups = case
    groups = quantile_groups(counts, n_groups)
    assert (np.diff(groups) >= 0).all()
    assert sorted(set(groups.tolist())) == list(range(n_groups))
    size = full_size(counts, n_groups)
    for group in range(n_groups):
        filled = sum(min(Fraction(int(count)), size) for count in counts[groups == group])
        assert filled <= 2 * size


@given(COUNTS_AND_GROUPS, st.integers(2, 9))
def test_twice_the_rows_make_the_same_groups(case: tuple[Any, int], factor: int) -> None:
    counts, n_groups = case
    assert (quantile_groups(counts * factor, n_groups) == quantile_groups(counts, n_groups)).all()


@pytest.mark.parametrize("n", [21, 25, 99, 1000])
def test_distinct_numbers_are_divided_evenly(n: int) -> None:
    sizes = np.bincount(quantile_groups(np.ones(n, dtype=int), 10))
    assert sizes.sum() == n
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("place", [0, 10, 20])
def test_a_value_that_most_rows_have_takes_one_group(place: int) -> None:
    counts = np.ones(21, dtype=int)
    counts[place] = 10_000
    groups = quantile_groups(counts, 5)
    assert np.bincount(groups).min() >= 1
    assert np.bincount(groups).max() <= 6  # the other twenty numbers share about four groups


def test_values_are_the_medians_of_their_groups() -> None:
    rng = np.random.default_rng(0)
    column = rng.gamma(2, 10, 501)
    chosen = choose(column)
    assert len(chosen.values) == 10
    assert not chosen.has_own
    assert max(np.bincount(chosen.codes)) - min(np.bincount(chosen.codes)) <= 1
    for group, value in enumerate(chosen.values):
        in_group = column[chosen.codes == group]
        assert value == np.quantile(in_group, 0.5, method="inverted_cdf")
    # groups are intervals: each number lies below all numbers of the next group
    highest = [column[chosen.codes == group].max() for group in range(9)]
    lowest = [column[chosen.codes == group].min() for group in range(1, 10)]
    assert (np.array(highest) < lowest).all()


def test_the_median_counts_rows_and_not_values() -> None:
    column = [1] * 9 + [2] + list(range(100, 130))
    chosen = choose(column, 2)
    assert chosen.values[0] == column[np.bincount(chosen.codes)[0] // 2 - 1]


@pytest.mark.parametrize(("n", "n_values"), [(20, 20), (21, 10)])
def test_few_numbers_are_taken_one_by_one(n: int, n_values: int) -> None:
    chosen = choose(list(range(n)))
    assert len(chosen.values) == n_values
    assert chosen.has_own == (n == n_values)


def test_a_missing_value_is_no_number_and_has_no_group() -> None:
    assert choose([*range(20), None]).values == (*range(20), None)
    chosen = choose([*range(21), None, None])
    assert chosen.values == (*choose(list(range(21))).values, None)
    assert chosen.codes[-2:].tolist() == [10, 10]


def test_categories_that_are_numbers_are_taken_one_by_one() -> None:
    assert len(choose(list(range(50)), is_categorical=True).values) == 50
    assert len(choose([str(i) for i in range(50)]).values) == 50


def test_a_number_of_values_is_at_most_that() -> None:
    assert choose(list(range(100)), 4).values == (12, 37, 62, 87)
    assert choose([3, 1, 2], 4).values == (1, 2, 3)
    assert choose([3, 1, 2], 2).values == (1, 2)
    assert choose(list(range(100)), np.int64(2)).values == (24, 74)
    assert choose(list(range(30)), 2, is_categorical=True).values == (7, 22)


def test_decimals_are_numbers() -> None:
    chosen = choose([Decimal(i) / 10 for i in range(100)])
    assert len(chosen.values) == 10
    assert isinstance(chosen.values[0], Decimal)


def test_any_numbers_serve_for_a_measurement_and_rows_go_to_the_nearest() -> None:
    column = np.arange(30) / 2  # 0, 0.5 … 14.5
    chosen = choose(column, [10, 0, 5.5])
    assert chosen.values == (10, 0, 5.5)
    assert not chosen.has_own
    expected = [min((abs(x - v), v, j) for j, v in enumerate([10, 0, 5.5]))[2] for x in column]
    assert chosen.codes.tolist() == expected


def test_half_way_is_the_lower() -> None:
    assert choose(list(range(21)), [0, 10, 20]).codes.tolist() == [0] * 6 + [1] * 10 + [2] * 5


def test_a_list_of_all_values_is_no_grid() -> None:
    chosen = choose(list(range(30)), list(range(29, -1, -1)))
    assert chosen.has_own
    assert chosen.codes.tolist() == list(range(29, -1, -1))


def test_missing_in_a_list_of_numbers() -> None:
    column = [*range(30), None]
    chosen = choose(column, [float("nan"), 5, 25])
    assert chosen.values == (None, 5, 25)
    assert chosen.codes.tolist() == [1] * 16 + [2] * 14 + [0]
    with pytest.raises(InvalidInputError, match=r"occurs, got rows of age with None\. Add"):
        choose(column, [5, 25])
    with pytest.raises(InvalidInputError, match=r"occurs, got rows of age with 2, None\. Add"):
        choose([1, 2, None], [1])


@pytest.mark.parametrize(
    ("column", "wanted", "text"),
    [
        ([1, 2, 3], [1, 2], r"include every value that occurs, got rows of age with 3. Add"),
        (list(range(30)), ["a", "b"], r"include every value that occurs, got rows of age with 0"),
        (list(range(30)), [None], r"include every value that occurs"),
        (list(range(30)), [3], r"two categories or more, age has 1: 3"),
        (list(range(30)), [3, 3], r"categories must differ, got 3, 3"),
        (list(range(30)), 1, r"2 or more when it is a number of values, got 1 for age. 10 is"),
        (list(range(30)), True, r"2 or more when it is a number of values, got 1"),
        (["f", "m"], 2, r"must list the values .* got 2 for age. Leave it out .*: 'f', 'm'\."),
        ([True, False], 2, r"must list the values of a column that does not hold numbers"),
        ([None, None], 2, r"must list the values of a column that does not hold numbers"),
        (["f", "m"], "fm", r"list of values or, for numbers, how many of them, got 'fm' for age"),
        (["f", "m"], 2.5, r"list of values or, for numbers, how many of them, got 2.5 for age"),
    ],
)
def test_bad_wishes(column: Any, wanted: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        choose(column, wanted)
