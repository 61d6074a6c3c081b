from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from fcorr.metrics.counterfactual import sum_of_distances

# A few values with ties among them, and a few that no two samples share.
VALUE = st.one_of(st.integers(-2, 2).map(float), st.floats(-5, 5, allow_subnormal=False))
SAMPLES = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(VALUE, min_size=n, max_size=n), min_size=2, max_size=4),
        st.lists(st.sampled_from([0.25, 1.0, 3.0]), min_size=n, max_size=n),
    )
)


def pair_by_pair(samples: Any, weight: Any) -> float:
    return sum(wasserstein_distance(a, b, weight, weight) for a, b in permutations(samples, 2))


@given(SAMPLES)
@settings(max_examples=150, deadline=None)
def test_agrees_with_scipy(samples_and_weight: tuple[list[list[float]], list[float]]) -> None:
    samples, weight = (np.array(values) for values in samples_and_weight)
    expected = pair_by_pair(samples, weight)
    assert sum_of_distances(samples, weight) == pytest.approx(expected, abs=1e-12)


def test_equal_weights_take_the_short_way_to_the_same_value() -> None:
    samples = np.random.default_rng(0).normal(size=(3, 101))
    nearly_equal = np.full(101, 2.0)
    nearly_equal[0] += 1e-12
    assert sum_of_distances(samples, np.full(101, 2.0)) == pytest.approx(
        sum_of_distances(samples, nearly_equal)
    )


@pytest.mark.parametrize("block_size", [1, 7, 64])
def test_the_value_does_not_depend_on_the_blocks(
    block_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    samples, weight = np.round(rng.normal(size=(5, 40)), 1), rng.random(40)
    expected = pair_by_pair(samples, weight)
    monkeypatch.setattr("fcorr.metrics.counterfactual.BLOCK_SIZE", block_size)
    assert sum_of_distances(samples, weight) == pytest.approx(expected)
    same = np.tile(samples[0], (5, 1))
    assert sum_of_distances(same, weight) == 0.0


def test_the_samples_are_not_sorted_in_place() -> None:
    samples = np.array([[3.0, 1.0], [2.0, 0.0]])
    sum_of_distances(samples, np.array([1.0, 2.0]))
    sum_of_distances(samples, np.ones(2))
    assert samples.tolist() == [[3.0, 1.0], [2.0, 0.0]]
