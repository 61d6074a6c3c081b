"""Small tables with planted effects, and estimators that take a moment.

Fixtures import what they need, for the sake of the process that only hands out tests.
"""

import numpy as np
import pytest


def draw_people(n, seed):
    from tests.tables import make_people

    rng = np.random.default_rng(seed + 1)
    people = make_people(n, seed)[["sex", "age", "job", "years"]]
    race = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    return people.assign(race=race, children=rng.integers(0, 4, n), age=people.age.round(1))


def draw_classes(people, seed):
    from tests.tables import make_targets

    return make_targets(people, seed)["two classes"]


def draw_counts(people, seed):
    rng = np.random.default_rng(seed + 200)
    return rng.poisson(people.years * np.exp((people.age - 40) / 20 + (people.job == "pilot")))


def draw_twice(draw_y):
    """Draw train and validation rows, with what came about."""
    tables = [draw_people(n, seed) for seed, n in enumerate((300, 320))]
    return [(table, draw_y(table, seed)) for seed, table in enumerate(tables)]


@pytest.fixture(scope="session")
def people():
    """Train and validation rows with labels 0 and 1."""
    return draw_twice(draw_classes)


@pytest.fixture(scope="session")
def policies():
    """Train and validation rows with claim counts and, as exposure, the column years."""
    return draw_twice(draw_counts)


def make_estimator(task):
    from tests.tables import make_model

    return lambda **arguments: make_model(task, **{"sensitive": "sex"} | arguments)


@pytest.fixture
def classifier():
    return make_estimator("two classes")


@pytest.fixture
def regressor():
    return make_estimator("mse")
