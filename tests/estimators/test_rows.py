"""A row's prediction is its own: twins, shuffled tables, single rows, engines and threads."""

import numpy as np
import pandas as pd
import pytest
import torch

from fcorr import FCorrClassifier, FCorrRegressor, load

N_ROWS = 300


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m", "x"], N_ROWS),
            "job": rng.choice(list("abcd"), N_ROWS),
            "age": rng.normal(40, 10, N_ROWS).round(),
            "income": rng.lognormal(3, 1, N_ROWS),
        }
    )
    X.loc[::17, "income"] = np.nan
    return X


MODELS = {
    "two classes": (FCorrClassifier, "predict_proba", {}),
    "three classes": (FCorrClassifier, "predict_proba", {}),
    "numbers": (FCorrRegressor, "predict", {}),
    "counts": (FCorrRegressor, "predict", {"objective": "poisson"}),
}


def make_target(name, X):
    rng = np.random.default_rng(1)
    size = X["age"] / 10 + X["job"].map({"a": 1, "b": 0, "c": 2, "d": -1}) + rng.normal(size=N_ROWS)
    cuts = {"two classes": [4.5], "three classes": [4.0, 5.5]}
    if name in cuts:
        return np.searchsorted(cuts[name], size)
    return rng.poisson(np.exp(size / 4)) if name == "counts" else size.to_numpy()


@pytest.mark.parametrize("head", [(3,), (9,), (32, 20)], ids=str)
@pytest.mark.parametrize("engine", ["compiled", "plain"])
@pytest.mark.parametrize("invariance", ["adapt", "marginal"])
@pytest.mark.parametrize("name", MODELS)
def test_twins_have_the_same_prediction(table, name, invariance, engine, head, tmp_path):
    estimator, method, options = MODELS[name]
    model = estimator(
        n_members=2 if head == (9,) else 1,
        sensitive=["sex", "age"],
        invariance=invariance,
        head=head,
        epochs=2,
        advanced={"engine": engine},
        random_state=0,
        **options,
    ).fit(table, make_target(name, table))
    expected = getattr(model, method)(table)
    assert np.isfinite(expected).all()
    # Rows and their flipped copies in one table, in any order; by a model file too
    flipped = table.assign(sex=table["sex"].to_numpy()[::-1], age=-1000.0)
    both = pd.concat([table, flipped], ignore_index=True)
    order = np.random.default_rng(2).permutation(len(both))
    model.save(tmp_path / "model.safetensors")
    for each in (model, load(tmp_path / "model.safetensors")):
        found = getattr(each, method)(both.iloc[order])
        np.testing.assert_array_equal(found, expected[order % N_ROWS])
    for row in range(0, N_ROWS, 50):
        alone = getattr(model, method)(table[row : row + 1])
        np.testing.assert_array_equal(alone, expected[row : row + 1])


def test_predictions_do_not_depend_on_threads(table):
    model = FCorrClassifier(
        n_members=1, sensitive="sex", invariance="marginal", epochs=1, random_state=0
    )
    model.fit(table, make_target("two classes", table))
    many = pd.concat([table] * 60, ignore_index=True)  # enough for each thread to take a part
    n_threads, found = torch.get_num_threads(), []
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            found.append(model.predict_proba(many))
    finally:
        torch.set_num_threads(n_threads)
    for each in found:
        np.testing.assert_array_equal(each, found[0])
        np.testing.assert_array_equal(each[:N_ROWS], each[-N_ROWS:])
