"""Small tables with planted effects, and estimators that take a moment."""

import numpy as np
import pytest

from tests.tables import make_model, make_people, make_targets


def draw_people(n, seed):
    rng = np.random.default_rng(seed + 1)
    people = make_people(n, seed)[["sex", "age", "job", "years"]]
    race = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    return people.assign(race=race, children=rng.integers(0, 4, n), age=people.age.round(1))


def draw_counts(people, seed):
    rng = np.random.default_rng(seed + 200)
    return rng.poisson(people.years * np.exp((people.age - 40) / 20 + (people.job == "pilot")))


TABLES = [draw_people(n, seed) for seed, n in enumerate((300, 320))]


@pytest.fixture(scope="session")
def people():
    """Train and validation rows with labels 0 and 1."""
    return [(table, make_targets(table, seed)["two classes"]) for seed, table in enumerate(TABLES)]


@pytest.fixture(scope="session")
def policies():
    """Train and validation rows with claim counts and, as exposure, the column years."""
    return [(table, draw_counts(table, seed)) for seed, table in enumerate(TABLES)]


@pytest.fixture
def classifier():
    return lambda **arguments: make_model("two classes", **{"sensitive": "sex"} | arguments)


@pytest.fixture
def regressor():
    return lambda **arguments: make_model("mse", **{"sensitive": "sex"} | arguments)
