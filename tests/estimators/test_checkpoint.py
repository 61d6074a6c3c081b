"""Fits with a time budget, and fits that go on where an earlier one was cut short."""

import numpy as np
import pandas as pd
import pytest

from fcorr import FCorrClassifier
from fcorr._core import InvalidInputError
from fcorr.estimators import base
from fcorr.estimators.checkpoint import parse_budget

OPTIONS = {"n_members": 4, "epochs": 1, "head": (8,), "random_state": 0}


def make_table(n_rows=80):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=n_rows), "b": rng.choice(["x", "y"], n_rows)})
    return X, (X["a"] + rng.normal(size=n_rows) > 0).astype(int)


X, Y = make_table()


@pytest.fixture
def trainings(monkeypatch):
    """Count the networks that are trained, and let the one of a number fail."""
    done, train = [], base.train

    def counted(*args, **options):
        if len(done) == counted.fails_at:
            raise KeyboardInterrupt
        done.append(1)
        return train(*args, **options)

    counted.fails_at = None
    monkeypatch.setattr(base, "train", counted)
    counted.done = done
    return counted


def test_a_fit_that_was_cut_short_goes_on(tmp_path, trainings):
    whole = FCorrClassifier(**OPTIONS).fit(X, Y)
    n_all = len(trainings.done)
    trainings.done.clear()
    trainings.fails_at = n_all // 2
    with pytest.raises(KeyboardInterrupt):
        FCorrClassifier(**OPTIONS).fit(X, Y, checkpoint=tmp_path)
    trainings.fails_at = None
    n_before = len(trainings.done)
    model = FCorrClassifier(**OPTIONS).fit(X, Y, checkpoint=tmp_path)
    # At most one for each thread was trained and not yet handed over.
    assert n_all <= len(trainings.done) <= n_all + 2 < n_all + n_before
    assert (model.predict_proba(X) == whole.predict_proba(X)).all()
    assert model.recipes_ == whole.recipes_
    trainings.done.clear()
    FCorrClassifier(**OPTIONS).fit(X, Y, checkpoint=tmp_path)
    assert not trainings.done


def test_other_rows_or_arguments_are_another_fit(tmp_path, trainings):
    FCorrClassifier(**OPTIONS).fit(X, Y, checkpoint=tmp_path)
    for options, rows in (
        (OPTIONS | {"dropout": 0.5}, X),
        (OPTIONS, X.assign(a=X["a"] + 1e-3 * X["a"] ** 2)),
    ):
        trainings.done.clear()
        FCorrClassifier(**options).fit(rows, Y, checkpoint=tmp_path)
        assert trainings.done


def cut_off(content):
    return content[:100]


def flip_a_bit(content):  # of a weight: all is in its place, and one number another
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


@pytest.mark.parametrize("damage", [cut_off, flip_a_bit])
def test_a_damaged_file_is_named_and_trained_again(tmp_path, trainings, damage):
    whole = FCorrClassifier(**OPTIONS).fit(X, Y, checkpoint=tmp_path)
    path = sorted(tmp_path.iterdir())[0]
    path.write_bytes(damage(path.read_bytes()))
    trainings.done.clear()
    with pytest.warns(UserWarning, match=f"{path.name} is no member that fcorr kept"):
        model = FCorrClassifier(**OPTIONS).fit(X, Y, checkpoint=tmp_path)
    assert len(trainings.done) == 1
    assert (model.predict_proba(X) == whole.predict_proba(X)).all()


def test_a_budget_tries_more_recipes(trainings):
    usual = FCorrClassifier(**OPTIONS).fit(X, Y)
    model = FCorrClassifier(**OPTIONS).fit(X, Y, budget="1h")  # it stops when nothing helps
    assert len(model.recipes_) >= len(usual.recipes_) + 8
    assert model.recipes_[: len(usual.recipes_)][0]["loss"] == usual.recipes_[0]["loss"]
    assert model.oob_loss_ <= usual.oob_loss_
    assert {recipe["epochs"] for recipe in model.recipes_} == {1}  # what the user decided holds


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [("90s", 90), ("1.5 h", 5400), ("10min", 600), (30, 30), (np.float64(2), 2)],
)
def test_budgets(budget, seconds):
    assert parse_budget(budget) == seconds


@pytest.mark.parametrize("budget", ["10", "ten minutes", "-1s", 0, -3, float("nan"), True, "1d"])
def test_what_is_no_budget(budget):
    with pytest.raises(InvalidInputError, match="budget must be a time such as '90s'"):
        FCorrClassifier().fit(X, Y, budget=budget)


def test_a_single_network_has_no_members():
    for options in ({"budget": "1s"}, {"checkpoint": "folder"}):
        with pytest.raises(InvalidInputError, match="are for packs: a single network has no me"):
            FCorrClassifier(n_members=1).fit(X, Y, **options)
