"""Packs: several networks, each trained on its own bag of rows, that predict by their mean."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from fcorr import FCorrClassifier, FCorrRegressor, load
from fcorr._core import InvalidInputError
from fcorr.data.encode import encode
from fcorr.data.tables import read_table
from fcorr.metrics import roc_auc_score

QUICK = {"n_members": 2, "head": (4,), "epochs": 2, "random_state": 0}
N = 150

_rng = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "sex": _rng.choice(["f", "m"], N),
        "job": _rng.choice(["clerk", "nurse", "pilot"], N),
        "age": _rng.normal(40, 10, N),
        "income": _rng.lognormal(size=N),
    }
)
SCORE = (X.age - 40) / 10 + (X.job == "pilot") + _rng.normal(size=N)
Y = (SCORE > 0.3).to_numpy().astype(int)

TASKS = {
    "two classes": (FCorrClassifier, {}, Y),
    "three classes": (FCorrClassifier, {}, np.digitize(SCORE, [0, 1])),
    "mse": (FCorrRegressor, {}, SCORE.to_numpy()),
    "poisson": (FCorrRegressor, {"objective": "poisson"}, _rng.poisson(np.exp(SCORE / 2))),
    "gamma": (FCorrRegressor, {"objective": "gamma"}, np.exp(SCORE.to_numpy())),
    "tweedie": (FCorrRegressor, {"objective": "tweedie"}, np.exp(SCORE.to_numpy()) * Y),
}
each_task = pytest.mark.parametrize("task", TASKS)


def fit(task="two classes", X=X, y=None, weight=None, **options):
    cls, own, target = TASKS[task]
    return cls(**QUICK | own | options).fit(X, target if y is None else y, sample_weight=weight)


def predictions(model, X):
    return model.predict_proba(X) if isinstance(model, FCorrClassifier) else model.predict(X)


def content(model, folder):
    model.save(folder / "model.fcorr")
    return (folder / "model.fcorr").read_bytes()


# Members


@each_task
def test_the_mean_of_the_members_is_the_prediction(task):
    model = fit(task)
    encoded = encode(read_table(X), model.schema_)
    rows = torch.from_numpy(encoded.codes), torch.from_numpy(encoded.numbers)
    outputs = torch.stack([member.score(*rows) for member in model.model_.members]).double()
    assert outputs.std(0).max() > 0  # they differ
    link = model._link()
    expected = link(outputs.mean(0) + torch.from_numpy(model.balance_)).numpy()
    expected += model.base_ if task == "mse" else 0
    found = predictions(model, X)
    found = found[:, 1:] if task == "two classes" else found.reshape(N, -1)
    np.testing.assert_allclose(found, expected[:, -found.shape[1] :], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n_members", [2, 3, 5])
def test_as_many_members_as_asked_for(n_members):
    model = fit(n_members=n_members)
    assert len(model.model_.members) == n_members
    assert f"{n_members} members, out-of-bag loss {model.oob_loss_:.4f}" in model.summary()
    assert [recipe["chosen"] for recipe in model.recipes_].count(True) == 1


def test_by_default_few_rows_have_up_to_16_members():
    model = fit(n_members="auto", epochs=1, advanced={"n_views": 2, "n_knots": 4})
    assert len(model.model_.members) in (8, 16)
    assert all(len(member.head.hidden) == 1 for member in model.model_.members)
    assert {recipe["epochs"] for recipe in model.recipes_} == {1}


def test_one_member_is_a_single_network_on_all_rows():
    model = fit(n_members=1)
    assert len(model.model_.members) == 1
    assert model.oob_loss_ is None
    assert "members" not in model.summary()


def test_the_papers_network_has_no_pack():
    paper = {"main_effects": False}
    assert len(fit(n_members="auto", advanced=paper).model_.members) == 1
    with pytest.raises(InvalidInputError, match="got False with n_members=5"):
        fit(n_members=5, advanced=paper)


def test_early_stopping_is_for_a_single_network():
    with pytest.raises(InvalidInputError, match="members of a pack stop by the rows"):
        fit(n_members=2, advanced={"early_stopping": 3})


def test_the_out_of_bag_loss_is_that_of_rows_left_out():
    """On noise no member can do better than chance on rows that it never saw."""
    noise = np.random.default_rng(5).integers(0, 2, N)
    options = {"epochs": 40, "head": (32,), "learning_rate": 0.01, "dropout": 0.0}
    model = fit(y=noise, **options)
    p = predictions(model, X)[:, 1]
    in_sample = -np.log(np.where(noise == 1, p, 1 - p)).mean()
    assert in_sample < np.log(2) - 0.01
    assert model.oob_loss_ > np.log(2) - 0.01


# The same again


def test_the_same_seed_gives_the_same_file(tmp_path):
    assert content(fit(), tmp_path) == content(fit(), tmp_path)
    assert content(fit(), tmp_path) != content(fit(random_state=1), tmp_path)


def test_threads_do_not_matter(tmp_path):
    n_threads, found = torch.get_num_threads(), []
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            found.append(content(fit(n_members=3, threshold="f1"), tmp_path))
    finally:
        torch.set_num_threads(n_threads)
    assert found[0] == found[1] == found[2]


@each_task
def test_what_is_saved_is_read_to_the_bit(task, tmp_path):
    model = fit(task, sensitive="sex")
    before = content(model, tmp_path)
    again = load(tmp_path / "model.fcorr")
    np.testing.assert_array_equal(predictions(again, X), predictions(model, X))
    assert (again.oob_loss_, len(again.model_.members)) == (model.oob_loss_, 2)
    assert again.summary() == model.summary()
    assert content(again, tmp_path) == before


def test_fitting_again_leaves_nothing_of_the_pack(tmp_path):
    model = fit().set_params(n_members=1).fit(X, Y)
    assert content(model, tmp_path) == content(fit(n_members=1), tmp_path)


# Exact invariance


@pytest.mark.parametrize("invariance", ["adapt", "marginal"])
@each_task
def test_no_flip_changes_one_bit(task, invariance, tmp_path):
    sensitive = ["sex", "age"]
    model = fit(task, sensitive=sensitive, invariance=invariance)
    assert model.exact_
    model.save(tmp_path / "model.fcorr")
    expected = predictions(model, X)
    assert np.ptp(expected[:, 0] if expected.ndim > 1 else expected) > 1e-3
    for each in (model, load(tmp_path / "model.fcorr")):
        for sex, age in itertools.product(["f", "x", None], [-1e30, 41.0, np.nan]):
            np.testing.assert_array_equal(predictions(each, X.assign(sex=sex, age=age)), expected)
        np.testing.assert_array_equal(predictions(each, X.drop(columns=sensitive)), expected)
    # Twins in one table
    both = pd.concat([X, X.assign(sex="f", age=0.0)], ignore_index=True)
    order = np.random.default_rng(1).permutation(2 * N)
    np.testing.assert_array_equal(predictions(model, both.iloc[order]), expected[order % N])


@pytest.mark.parametrize("invariance", ["adapt", "marginal", None])
def test_certificate(invariance):
    certificate = fit(sensitive="sex", invariance=invariance).certificate(X)
    assert certificate.exact == (invariance is not None)
    assert (certificate.search == 0) == (invariance is not None)


def test_the_certificate_of_a_pack_bounds_its_flips():
    model = fit(sensitive="sex", invariance=None, car=None, epochs=10, learning_rate=0.02)
    f, m = (predictions(model, X.assign(sex=sex))[:, 1] for sex in "fm")
    assert 0 < np.abs(f - m).max() <= model.certificate().search + 1e-6


def test_one_member_that_tells_sensitive_values_apart_is_enough_to_be_refused(tmp_path):
    model = fit(sensitive="sex")
    with torch.no_grad():
        model.model_.members[1].views.table[0, -1] = 1e-3
    model.save(tmp_path / "model.fcorr")
    with pytest.raises(ValueError, match="said to be exactly invariant, but its weights tell"):
        load(tmp_path / "model.fcorr")


# Few rows, odd weights


def test_rows_of_weight_0_are_not_there(tmp_path):
    weight = np.where(np.arange(N) % 3 == 0, 0.0, 1 + np.arange(N) / N)
    spoilt = X.assign(age=X.age.mask(weight == 0, 1e6), job=X.job.mask(weight == 0, "none"))
    kept = weight > 0
    part = content(fit(X=X[kept], y=Y[kept], weight=weight[kept]), tmp_path)
    assert content(fit(X=spoilt, weight=weight), tmp_path) == part


@each_task
@pytest.mark.filterwarnings("ignore:Predictions must differ")  # there is one row to learn from
@pytest.mark.parametrize("small", [1e-6, 1e-30])
def test_all_the_weight_on_one_row(task, small):
    """Most bags then have next to nothing to learn from, and one has nothing to be judged by."""
    y = TASKS[task][2]
    row = int(np.argmax(y > 0))
    weight = np.where(np.arange(N) == row, 1.0, small)
    predicted = predictions(fit(task, weight=weight), X)
    assert np.isfinite(predicted).all()
    if task in ("mse", "poisson", "gamma", "tweedie"):
        assert predicted[row] == pytest.approx(y[row], rel=0.01)


@each_task
@pytest.mark.filterwarnings("ignore:Columns that take one value")
@pytest.mark.parametrize("n_rows", [2, 3, 20])
def test_few_rows(task, n_rows):
    y = TASKS[task][2]
    rows = np.r_[np.unique(y, return_index=True)[1][-3:], np.arange(N)][:n_rows]
    model = fit(task, X.iloc[rows], y[rows], n_members="auto", epochs=1)
    assert len(model.model_.members) >= min(n_rows, 8)
    assert np.isfinite(predictions(model, X.iloc[rows])).all()


@pytest.mark.filterwarnings("ignore:Columns that take one value")
def test_one_row_is_too_few_to_leave_one_out():
    with pytest.raises(InvalidInputError, match=r"at least two rows, got 1 sample.*n_members=1"):
        fit("mse", X[:1], SCORE[:1])
    assert np.isfinite(fit("mse", X[:1], SCORE[:1], n_members=1).predict(X[:1])).all()


@pytest.mark.parametrize("names", [["age"], ["job"], ["age", "job"], ["age", "job", "income"]])
def test_few_features(names):
    model = fit(X=X[names], epochs=20, learning_rate=0.02)
    assert roc_auc_score(Y, model.predict_proba(X[names])[:, 1]) > (0.75 if "age" in names else 0.5)


def test_a_class_of_a_single_row():
    y = np.where(np.arange(N) == 7, 2, Y)
    found = fit(y=y, threshold=0.5).predict_proba(X)
    np.testing.assert_allclose(found.mean(0), np.bincount(y) / N, atol=1e-9)
    rare = (np.arange(N) == 7).astype(int)
    assert 0 <= fit(y=rare, threshold="f1").threshold_ <= 1


def test_a_column_may_be_constant_within_a_bag():
    once = X.assign(flag=np.arange(N) == 7, number=(np.arange(N) == 9) * 5.0)
    model = fit(X=once, min_category_rows=1, sensitive="flag", invariance=None)
    flipped = once.assign(flag=~once.flag, number=5.0 - once.number)
    assert np.isfinite(predictions(model, flipped)).all()


# Thresholds


def test_a_threshold_is_not_chosen_on_rows_that_the_members_learnt_from():
    """On noise a rate of 10 % is kept by rows that were left out; in sample it is far less."""
    rng = np.random.default_rng(3)
    noise = pd.DataFrame(rng.normal(size=(600, 6)), columns=list("abcdef"))
    y, new = (
        rng.integers(0, 2, 600),
        pd.DataFrame(rng.normal(size=(4_000, 6)), columns=noise.columns),
    )
    options = {"epochs": 15, "head": (64,), "dropout": 0.0, "learning_rate": 0.02}
    options |= {"threshold": {"fpr": 0.1}, "random_state": 0}
    rates = {
        n: FCorrClassifier(n_members=n, **options).fit(noise, y).predict(new).mean() for n in (1, 2)
    }
    assert rates[1] > 0.16  # what looked like 10 % in training
    assert rates[2] < 0.15
