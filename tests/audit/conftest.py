"""Small tables with planted effects, and estimators that take a moment."""

import numpy as np
import pandas as pd
import pytest

from fcorr import FCorrClassifier, FCorrRegressor

QUICK = {"epochs": 2, "head": (4,), "random_state": 0}


def draw_people(n, seed):
    """Draw people; the chance of y depends on age, and on sex through the job."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    job = np.where(rng.random(n) < 0.7, np.where(sex == "f", "nurse", "pilot"), "clerk")
    return pd.DataFrame(
        {
            "sex": sex,
            "race": rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]),
            "age": rng.normal(40, 10, n).round(1),
            "job": job,
            "children": rng.integers(0, 4, n),
            "years": rng.uniform(0.1, 1, n),
        }
    )


def draw_labels(people, seed):
    rng = np.random.default_rng(seed + 100)
    score = (people.age - 40) / 10 + (people.job == "pilot") + rng.normal(0, 1, len(people))
    return (score > 0.5).to_numpy().astype(int)


def draw_counts(people, seed):
    rng = np.random.default_rng(seed + 200)
    return rng.poisson(people.years * np.exp((people.age - 40) / 20 + (people.job == "pilot")))


@pytest.fixture(scope="session")
def people():
    """Train and validation rows with labels 0 and 1."""
    tables = [draw_people(n, seed) for seed, n in enumerate((300, 320))]
    return [(table, draw_labels(table, seed)) for seed, table in enumerate(tables)]


@pytest.fixture(scope="session")
def policies():
    """Train and validation rows with claim counts and, as exposure, the column years."""
    tables = [draw_people(n, seed) for seed, n in enumerate((300, 320))]
    return [(table, draw_counts(table, seed)) for seed, table in enumerate(tables)]


@pytest.fixture
def classifier():
    def make(**arguments):
        return FCorrClassifier(n_members=1, **{"sensitive": "sex", **QUICK, **arguments})

    return make


@pytest.fixture
def regressor():
    def make(**arguments):
        return FCorrRegressor(n_members=1, **{"sensitive": "sex", **QUICK, **arguments})

    return make
