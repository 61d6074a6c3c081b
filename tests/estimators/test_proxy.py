"""The proxy dial as an argument: what it does to predictions, and what it refuses."""

import numpy as np
import pandas as pd
import pytest

from fcorr import FCorrClassifier, FCorrRegressor
from fcorr._core import InvalidInputError

SMALL = {
    **{"n_members": 1, "head": (16,), "epochs": 10, "learning_rate": 0.02, "random_state": 0},
    "advanced": {"batch_size": 64},
}


def make_table(n_rows=2_000, seed=0):
    """Make a table in which ``proxy`` goes with the sensitive column, and both with y."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(2, size=n_rows)
    proxy = sex + 0.5 * rng.normal(size=n_rows)
    skill = rng.normal(size=n_rows)
    age = 40 + 10 * rng.normal(size=n_rows) + 8 * sex
    y = skill + 1.5 * proxy + 0.5 * rng.normal(size=n_rows) > 0.75
    names = np.array(["f", "m"], dtype=object)[sex]
    return pd.DataFrame({"sex": names, "proxy": proxy, "skill": skill, "age": age}), y.astype(int)


def gap(values, groups):
    return abs(values[groups == "m"].mean() - values[groups == "f"].mean())


X, Y = make_table()
SEX = X["sex"].to_numpy()


@pytest.mark.parametrize(
    ("target", "measure"),
    [
        ("score", lambda model: gap(model.predict_proba(X)[:, 1], SEX)),
        ("decision", lambda model: gap(model.predict(X), SEX)),
        ("odds", lambda model: gap(model.predict(X)[Y == 1], SEX[Y == 1])),
    ],
)
def test_groups_come_together_as_the_dial_is_turned(target, measure):
    found = [
        measure(
            FCorrClassifier(sensitive="sex", proxy=proxy, proxy_target=target, **SMALL).fit(X, Y)
        )
        for proxy in (0.0, 3.0)
    ]
    assert found[0] > 0.15
    assert found[1] < 0.5 * found[0]


def test_a_pack_chooses_with_the_dial_in_mind():
    options = {**SMALL, "n_members": 2, "epochs": 4}
    plain, dialled = (
        FCorrClassifier(sensitive="sex", proxy=proxy, **options).fit(X[:800], Y[:800])
        for proxy in (0.0, 10.0)
    )
    scores = [model.predict_proba(X)[:, 1] for model in (plain, dialled)]
    assert gap(scores[1], SEX) < 0.5 * gap(scores[0], SEX)
    assert dialled.oob_loss_ > plain.oob_loss_


@pytest.mark.parametrize("objective", ["mse", "poisson"])
def test_numbers_and_counts(objective):
    rng = np.random.default_rng(1)
    mean = np.exp(0.8 * X["proxy"] - 0.5 + 0.3 * X["skill"])
    y = rng.poisson(mean).astype(float)
    table = X.assign(years=rng.uniform(0.2, 1, size=len(X)))
    options = {"sensitive": "sex", "objective": objective, **SMALL}
    if objective == "poisson":
        options["exposure"] = "years"
    whole_years, gaps = X.assign(years=1.0), []
    for proxy in (0.0, 30.0):
        model = FCorrRegressor(proxy=proxy, **options).fit(table, y)
        gaps.append(gap(np.log(model.predict(whole_years).clip(0.05)), SEX))
    assert gaps[1] < 0.4 * gaps[0]


def test_a_continuous_column_is_cut_into_quarters_and_unknown_rows_are_in_no_group():
    table = X.drop(columns="sex")
    table.loc[::5, "age"] = np.nan
    known = table["age"].notna().to_numpy()
    quarter = pd.qcut(table["age"], 4, labels=False).to_numpy()

    def spread(proxy):
        model = FCorrClassifier(sensitive="age", proxy=proxy, **SMALL).fit(table, Y)
        scores = model.predict_proba(table)[:, 1]
        return np.std([scores[known & (quarter == q)].mean() for q in range(4)])

    assert spread(30.0) < 0.4 * spread(0.0)


def test_rows_without_a_group_have_no_part_in_it():
    """Groups that differ only among rows whose sex is unknown do not differ."""
    table = X.assign(sex=np.where((X["proxy"] - 0.5).abs() > 0.2, None, SEX))
    options = {**SMALL, "sensitive": "sex", "advanced": {"batch_size": 256}}
    free = FCorrClassifier(**options).fit(table, Y).predict_proba(table)
    dialled = FCorrClassifier(proxy=1.0, **options).fit(table, Y).predict_proba(table)
    turned = FCorrClassifier(proxy=1.0, **options).fit(X, Y).predict_proba(X)
    assert np.abs(dialled - free).mean() < 0.5 * np.abs(turned - free).mean()


def test_a_group_that_batches_hardly_see_is_named():
    table = X.assign(sex=np.where(np.arange(len(X)) < 5, "x", SEX))
    with pytest.warns(UserWarning, match="sex are in hardly any: x has 5 rows, 0.2 in a batch of"):
        FCorrClassifier(sensitive="sex", proxy=1.0, **SMALL | {"epochs": 1}).fit(table, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "proxy needs the column whose groups shall not differ, got no sensitive column"),
        (
            {"sensitive": "sex", "invariance": "marginal"},
            "got invariance='marginal', which averages",
        ),
        (
            {"sensitive": "sex", "proxy_target": "odds", "threshold": "f1"},
            "must be known in training: a number, got threshold='f1'",
        ),
    ],
)
def test_what_it_refuses(options, message):
    with pytest.raises(InvalidInputError, match=message):
        FCorrClassifier(**{"proxy": 1.0, **options}).fit(X, Y)
