import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="session")
def table():
    """A small table with a sensitive column, and a target that follows from it in part."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], 200),
            "age": rng.normal(40, 10, 200),
            "income": rng.lognormal(size=200),
        }
    )
    y = (X.age + 5 * (X.sex == "m") + rng.normal(0, 10, 200) > 42).to_numpy().astype(int)
    return X, y
