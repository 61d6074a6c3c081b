"""Packs: several networks, each trained on its own bag of rows, that predict by their mean."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import roc_auc_score

from fcorr import FCorrRegressor
from fcorr._core import InvalidInputError
from fcorr.data.encode import encode
from fcorr.data.tables import read_table
from fcorr.training import pack
from tests.tables import TASKS, make_model, make_people, make_targets, predictions

N = 150
X = make_people(N).drop(columns="years")
Y = make_targets(X)
each_task = pytest.mark.parametrize("task", TASKS)


def fit(task="two classes", X=X, y=None, weight=None, **options):
    model = make_model(task, **{"n_members": 2} | options)
    return model.fit(X, Y[task] if y is None else y, sample_weight=weight)


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


@pytest.mark.parametrize("n_members", [2, 5])
def test_as_many_members_as_asked_for(n_members):
    model = fit(n_members=n_members)
    assert len(model.model_.members) == n_members
    assert f"{n_members} members, out-of-bag loss {model.oob_loss_:.4f}" in model.summary()
    assert [recipe["chosen"] for recipe in model.recipes_].count(True) == 1


@pytest.mark.usefixtures("all_recipes")
def test_by_default_few_rows_have_up_to_24_members():
    model = fit(n_members="auto", head="auto", epochs=1, advanced={"n_views": 2, "n_knots": 4})
    assert len(model.model_.members) in (8, 16, 24)
    assert {recipe["epochs"] for recipe in model.recipes_} == {1}
    papers = fit(n_members="auto", advanced={"main_effects": False})
    assert len(papers.model_.members) == 1


@pytest.mark.parametrize(("noise", "scale"), [(0.02, 1000.0), (5.0, 1.0)])
@pytest.mark.usefixtures("all_recipes")
def test_prices_with_little_noise_are_fitted_closely(monkeypatch, noise, scale):
    monkeypatch.setattr(pack, "RECIPES", pack.RECIPES[:3])
    monkeypatch.setattr(pack, "PRECISE", pack.PRECISE[1:2])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = scale * (2 * X[:, 0] + np.sin(2 * X[:, 0]) * X[:, 1] + noise * rng.normal(size=400) + 5)
    usual = FCorrRegressor(n_members=2, random_state=0).fit(X, y)
    assert usual.recipes_[-1]["epochs"] == pack.PRECISE[0].epochs
    assert usual.recipes_[-1]["chosen"] == (noise < 0.1)
    if noise < 0.1:
        assert usual.oob_loss_ < 0.5 * min(recipe["loss"] for recipe in usual.recipes_[:-1])


def test_one_member_is_a_single_network_on_all_rows(tmp_path):
    model = fit(n_members=1)
    assert len(model.model_.members) == 1
    assert model.oob_loss_ is None
    assert "members" not in model.summary()
    again = fit().set_params(n_members=1).fit(X, Y["two classes"])  # nothing is left of the pack
    for each, name in ((model, "model"), (again, "again")):
        each.save(tmp_path / name)
    assert (tmp_path / "model").read_bytes() == (tmp_path / "again").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_members": 5, "advanced": {"main_effects": False}}, "got False with n_members=5"),
        ({"advanced": {"early_stopping": 3}}, "members of a pack stop by the rows"),
    ],
)
def test_what_does_not_go_together(options, message):
    with pytest.raises(InvalidInputError, match=message):
        fit(**options)


def test_the_out_of_bag_loss_is_that_of_rows_left_out():
    """On noise no member can do better than chance on rows that it never saw."""
    noise = np.random.default_rng(5).integers(0, 2, N)
    model = fit(y=noise, epochs=40, head=(32,), learning_rate=0.01, dropout=0.0)
    p = predictions(model, X)[:, 1]
    in_sample = -np.log(np.where(noise == 1, p, 1 - p)).mean()
    assert in_sample < np.log(2) - 0.01
    assert model.oob_loss_ > np.log(2) - 0.01


def test_the_certificate_of_a_pack_bounds_its_flips():
    model = fit(sensitive="sex", invariance=None, car=None, epochs=10, learning_rate=0.02)
    f, m = (predictions(model, X.assign(sex=sex))[:, 1] for sex in "fm")
    assert 0 < np.abs(f - m).max() <= model.certificate().search + 1e-6


# Few rows, odd weights


@each_task
@pytest.mark.filterwarnings("ignore:Predictions must differ")  # there is one row to learn from
def test_all_the_weight_on_one_row(task):
    """Most bags then have next to nothing to learn from, and one has nothing to be judged by."""
    y = Y[task]
    row = int(np.argmax(y > 0))
    weight = np.where(np.arange(N) == row, 1.0, 1e-30)
    predicted = predictions(fit(task, weight=weight), X)
    assert np.isfinite(predicted).all()
    if predicted.ndim == 1:
        assert predicted[row] == pytest.approx(y[row], rel=0.01)


@pytest.mark.filterwarnings("ignore:Columns that take one value")
@pytest.mark.parametrize(("task", "n_rows"), [*((task, 2) for task in TASKS), ("gamma", 20)])
def test_few_rows(task, n_rows):
    y = Y[task]
    rows = np.r_[np.unique(y, return_index=True)[1][-3:], np.arange(N)][:n_rows]
    model = fit(task, X.iloc[rows], y[rows], n_members="auto", epochs=1)
    assert len(model.model_.members) >= min(n_rows, 8)
    assert np.isfinite(predictions(model, X.iloc[rows])).all()


@pytest.mark.filterwarnings("ignore:Columns that take one value")
def test_one_row_is_too_few_to_leave_one_out():
    one = X[:1], Y["mse"][:1]
    with pytest.raises(InvalidInputError, match=r"at least two rows, got 1 sample.*n_members=1"):
        fit("mse", *one)
    assert np.isfinite(fit("mse", *one, n_members=1).predict(X[:1])).all()


@pytest.mark.parametrize(("name", "reached"), [("age", 0.75), ("job", 0.5)])
def test_a_single_feature(name, reached):
    scores = fit(X=X[[name]], epochs=8, learning_rate=0.05).predict_proba(X[[name]])[:, 1]
    assert roc_auc_score(Y["two classes"], scores) > reached


def test_a_class_of_a_single_row():
    is_seventh = np.arange(N) == 7
    y = np.where(is_seventh, 2, Y["two classes"])
    found = fit(y=y, threshold=0.5).predict_proba(X)
    np.testing.assert_allclose(found.mean(0), np.bincount(y) / N, atol=1e-9)
    assert 0 <= fit(y=is_seventh.astype(int), threshold="f1").threshold_ <= 1


def test_a_column_may_be_constant_within_a_bag():
    once = X.assign(flag=np.arange(N) == 7, number=(np.arange(N) == 9) * 5.0)
    model = fit(X=once, min_category_rows=1, sensitive="flag", invariance=None)
    flipped = once.assign(flag=~once.flag, number=5.0 - once.number)
    assert np.isfinite(predictions(model, flipped)).all()


def test_a_threshold_is_not_chosen_on_rows_that_the_members_learnt_from():
    """On noise a rate of 10 % is kept by rows that were left out; in sample it is far less."""
    rng = np.random.default_rng(3)
    noise, y = pd.DataFrame(rng.normal(size=(600, 6))).add_prefix("x"), rng.integers(0, 2, 600)
    new = pd.DataFrame(rng.normal(size=(4_000, 6))).add_prefix("x")
    options = {"epochs": 15, "head": (64,), "dropout": 0.0, "learning_rate": 0.02}
    rates = {
        n: fit(X=noise, y=y, n_members=n, threshold={"fpr": 0.1}, **options).predict(new).mean()
        for n in (1, 2)
    }
    assert rates[1] > 0.16  # what looked like 10 % in training
    assert rates[2] < 0.15
