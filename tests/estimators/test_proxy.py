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


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("score", "x has 5, 0.2 in a batch of 64. Pool the groups, or raise"),
        ("decision", "x has 5, of which 10 are believed by half. Pool the groups.$"),
    ],
)
def test_a_group_of_too_few_rows_is_named(target, message):
    table = X.assign(sex=np.where(np.arange(len(X)) < 5, "x", SEX))
    model = FCorrClassifier(sensitive="sex", proxy=1.0, proxy_target=target, **SMALL)
    with pytest.warns(UserWarning, match=f"1 of sex have too few rows to have a say: {message}"):
        model.set_params(epochs=1).fit(table, Y)


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
            r"needs a threshold that is a number within \(0, 1\), got 'f1'",
        ),
        (
            {"sensitive": "sex", "proxy_target": "decision", "threshold": 1.0},
            r"needs a threshold that is a number within \(0, 1\), got 1.0",
        ),
        (
            {"sensitive": "sex", "proxy_target": "decision", "class_weight": "balanced"},
            "needs class_weight=None, got 'balanced'",
        ),
    ],
)
def test_what_it_refuses(options, message):
    with pytest.raises(InvalidInputError, match=message):
        FCorrClassifier(**{"proxy": 1.0, **options}).fit(X, Y)


def test_decisions_are_of_two_classes_and_of_classes():
    model = FCorrClassifier(sensitive="sex", proxy=1.0, proxy_target="decision")
    with pytest.raises(InvalidInputError, match="needs two classes, got 3"):
        model.fit(X, Y + (X["skill"] > 1))
    with pytest.raises(TypeError, match="proxy_target"):
        FCorrRegressor(sensitive="sex", proxy=1.0, proxy_target="odds")


def make_known(n_rows, seed):
    """Make rows whose chances of y = 1 and of group 1 are known, the first by way of the second."""
    rng = np.random.default_rng(seed)
    group = (rng.random(n_rows) < 0.4).astype(int)
    hint, skill = rng.normal(1.5 * group), rng.normal(size=n_rows)
    of_group = 1 / (1 + 1.5 * np.exp(-1.5 * hint + 1.125))
    chance = 1 / (1 + np.exp(-(1.2 * skill + 1.2 * hint - 1.5)))
    y = (rng.random(n_rows) < chance).astype(int)
    table = pd.DataFrame({"group": group.astype(str), "hint": hint, "skill": skill})
    return table, y, chance, of_group


def place(decided, chance, of_group):
    """Return the expected accuracy of decisions, and the expected difference of groups."""
    accuracy = np.mean(np.where(decided, chance, 1 - chance))
    rates = [np.average(decided, weights=w) for w in (of_group, 1 - of_group)]
    return accuracy, rates[0] - rates[1]


@pytest.mark.parametrize(("n_members", "dials"), [(1, {1.0: 0.25, 5.0: 0.12}), (2, {5.0: 0.12})])
def test_decisions_come_near_the_best_that_there_are(n_members, dials):
    """For the difference that a model leaves, no rule that does not read the column errs less."""
    table, y, _, _ = make_known(6_000 // n_members, 0)
    fresh, _, chance, of_group = make_known(20_000, 1)
    share = of_group.mean()

    excess = of_group / share - (1 - of_group) / (1 - share)
    rules = [
        place(chance - 0.5 > price * excess, chance, of_group)
        for price in np.linspace(0, 0.5, 1_001)
    ]
    options = {**SMALL, "n_members": n_members, "advanced": None}
    for proxy, left in dials.items():
        model = FCorrClassifier(sensitive="group", proxy=proxy, proxy_target="decision", **options)
        decided = model.fit(table, y).predict(fresh) == 1
        accuracy, gap = place(decided, chance, of_group)
        assert 0 < gap < left
        assert (
            accuracy > max(good for good, other in rules if abs(other) <= gap) - 0.005 * n_members
        )
    # One threshold for all that leaves as little decides nearly nobody, and errs more.
    strict = [place(chance > t, chance, of_group) for t in np.linspace(0.5, 1, 200)]
    assert max(good for good, left in strict if left <= gap) < accuracy - 0.02
