"""The generator of many levels: each dependence that its docstring promises."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.many_levels import (
    EMPLOYER_SD,
    EMPLOYER_SLOPE_SD,
    employer_effects,
    make_many_levels,
)
from tests.data.test_generators import TOLERANCE, check_effects, fit_logistic, labels, numbers


def test_employers_are_as_frequent_as_said():
    X, _ = make_many_levels(100_000, random_state=0)
    column = X["employer"].combine_chunks()
    assert column.dictionary.to_pylist()[::4_999] == ["E0001", "E5000"]
    counts = np.bincount(column.indices.to_numpy(), minlength=5_000)
    shares = 1 / np.arange(11, 5_011)
    expected = 100_000 * shares / shares.sum()
    # In runs of employers with a thousand expected rows or more.
    starts = np.flatnonzero(np.diff(expected.cumsum() // 1_000, prepend=-1))
    found, planted = (np.add.reduceat(values, starts) for values in (counts, expected))
    assert (np.abs(found - planted) < TOLERANCE * np.sqrt(planted)).all()


def test_effects_of_employers_are_normal_and_independent_of_their_frequency():
    for of_employers in (slice(0, 300), slice(2_000, 5_000)):
        effects = employer_effects(5_000)[:, of_employers]
        for values, sd in zip(effects, (EMPLOYER_SD, EMPLOYER_SLOPE_SD), strict=True):
            assert stats.kstest(values, stats.norm(scale=sd).cdf).statistic < 0.02
        assert abs(np.corrcoef(effects)[0, 1]) < 0.05


@pytest.mark.parametrize("seed", [0, 1])
def test_effects_are_the_planted_ones(seed):
    X, y = make_many_levels(200_000, random_state=seed)
    income = (np.log(numbers(X, "income")) - 10.3) / 0.4
    effect, slope = employer_effects(5_000)[:, X["employer"].combine_chunks().indices]
    age = numbers(X, "age")
    terms = {
        "employer": (effect, 1.0),
        "employer's slope": (slope * income, 1.0),
        "slope alone": (slope, 0.0),
        "income": (income, -0.6),
        "debt": (np.log(numbers(X, "debt")), 0.5),
        "young": (age < 25, 0.4),
        "age": (age / 10, 0.0),
        "male": (labels(X, "sex") == "male", 0.4),
    }
    by_value = {"channel": {"broker": 0.5, "online": 0.2, "phone": 0.0}}
    by_value["purpose"] = {"car": -0.3, "renovation": -0.2, "debt": 0.6, "travel": 0.3}
    for name, effects in by_value.items():
        values = labels(X, name)
        terms |= {f"{name} {value}": (values == value, e) for value, e in effects.items()}
    check_effects(fit_logistic, terms, y.astype(float))
    higher = income[labels(X, "sex") == "male"].mean() - income[labels(X, "sex") == "female"].mean()
    assert higher == pytest.approx(0.5, abs=TOLERANCE * 2 / np.sqrt(len(y)))
