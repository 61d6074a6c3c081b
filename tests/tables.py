"""The table that most tests use, what may be predicted for it, and models that are quick to fit."""

import numpy as np
import pandas as pd
import pyarrow as pa

from fcorr import FCorrClassifier, FCorrRegressor
from fcorr.data import encode, infer_schema, read_table

QUICK = {"n_members": 1, "head": (4,), "epochs": 2, "random_state": 0}

TASKS = {
    "two classes": {},
    "three classes": {},
    "mse": {"objective": "mse"},
    "poisson": {"objective": "poisson"},
    "gamma": {"objective": "gamma"},
    "tweedie": {"objective": "tweedie"},
}


def make_people(n=200, seed=0, *, missing=0.0):
    """Draw people, whose jobs go with their sex; a share of jobs and incomes may be missing."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    of_sex = np.where(sex == "f", "nurse", "pilot")
    people = pd.DataFrame(
        {
            "sex": sex,
            "job": np.where(rng.random(n) < 0.5, of_sex, "clerk"),
            "age": rng.normal(40, 10, n),
            "income": rng.lognormal(size=n),
            "years": rng.uniform(0.1, 1, n),
        }
    )
    for name in ("job", "income"):
        people[name] = people[name].mask(rng.random(n) < missing)
    return people


def make_targets(people, seed=0):
    """Draw an outcome for every task; all go with age, and with sex through the job."""
    rng = np.random.default_rng(seed + 1_000)
    score = (people.age - 40) / 10 + (people.job == "pilot") + rng.normal(size=len(people))
    score = score.to_numpy()
    amounts = np.exp(score)
    return {
        "two classes": (score > 0.3).astype(int),
        "three classes": np.digitize(score, [0, 1]),
        "mse": score,
        "poisson": rng.poisson(np.exp(score / 2)),
        "gamma": amounts,
        "tweedie": amounts * (score > 0.3),
    }


def make_model(task="two classes", **options):
    """Make an estimator that takes a moment to fit."""
    cls = FCorrClassifier if task.endswith("classes") else FCorrRegressor
    return cls(**QUICK | TASKS[task] | options)


def predictions(model, X):
    """Return what a model is used for: probabilities, or expectations."""
    return model.predict_proba(X) if isinstance(model, FCorrClassifier) else model.predict(X)


def schema_of(X, **options):
    """Describe a table, or a dict of columns."""
    return infer_schema(read_table(pa.table(X) if isinstance(X, dict) else X), **options)


def encoded(X, schema, **options):
    """Turn a table, or a dict of columns, into arrays."""
    return encode(read_table(pa.table(X) if isinstance(X, dict) else X), schema, **options)
