"""Fits with a time budget, and fits that go on where an earlier one was cut short."""

import numpy as np
import pandas as pd
import pytest

from fcorr import FCorrClassifier
from fcorr._core import InvalidInputError
from fcorr.estimators import trainer
from fcorr.estimators.options import parse_amount
from fcorr.training.objective import Objective

OPTIONS = {"n_members": 4, "epochs": 1, "head": (8,), "random_state": 0}


def make_table(n_rows=80):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=n_rows), "b": rng.choice(["x", "y"], n_rows)})
    return X, (X["a"] + rng.normal(size=n_rows) > 0).astype(int)


X, Y = make_table()


@pytest.fixture
def trainings(monkeypatch):
    """Count the networks that are trained, and let the one of a number fail."""
    done, train = [], trainer.train

    def counted(*args, **options):
        if len(done) == counted.fails_at:
            raise KeyboardInterrupt
        done.append(1)
        return train(*args, **options)

    counted.fails_at = None
    monkeypatch.setattr(trainer, "train", counted)
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


@pytest.mark.parametrize(
    ("options", "rows", "difference"),
    [
        ({"dropout": 0.5}, X, "dropout 'auto', now 0.5"),
        ({"random_state": 1}, X, "random_state 0, now 1"),
        ({}, X.assign(a=X["a"] + 1e-3 * X["a"] ** 2), "other rows"),
    ],
)
def test_another_fit_is_refused_with_the_difference(tmp_path, options, rows, difference):
    FCorrClassifier(**OPTIONS).fit(X, Y, checkpoint=tmp_path)
    with pytest.raises(InvalidInputError, match=f"got one of a fit with {difference}. Use another"):
        FCorrClassifier(**OPTIONS | options).fit(rows, Y, checkpoint=tmp_path)


def test_a_table_in_files_is_another_fit(tmp_path):
    FCorrClassifier(**OPTIONS).fit(X, Y, checkpoint=tmp_path)
    X.assign(y=Y).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InvalidInputError, match=r"got one of a fit with files None, now \[\('rows"):
        FCorrClassifier(**OPTIONS).fit(tmp_path, "y", checkpoint=tmp_path)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "fit.json").write_text("[1]")
    with pytest.raises(InvalidInputError, match=r"fit.json' must say which fit the folder keeps"):
        FCorrClassifier(**OPTIONS).fit(X, Y, checkpoint=tmp_path)


@pytest.fixture
def kept_often(monkeypatch):
    """Keep the state of a training after every step, and train in slices."""
    monkeypatch.setattr("fcorr.training.loop._TWO_SLICES", 1)
    monkeypatch.setattr("fcorr.training.checkpoint._WITHIN_EPOCH", -1.0)
    monkeypatch.setattr("fcorr.training.checkpoint._BETWEEN_EPOCHS", -1.0)


SINGLE = {
    "n_members": 1,
    "epochs": 6,
    "head": (8,),
    "dropout": 0.2,
    "random_state": 0,
    "advanced": {"batch_size": 16},
}
VARIANTS = {
    "views": {},
    "CAR by the paper's rule": {"sensitive": "b", "invariance": None, "car": "paper"},
    "collapsed late": {"sensitive": "b", "advanced": {"batch_size": 16, "main_effects": False}},
    "stops": {"advanced": {"batch_size": 16, "early_stopping": 1, "validation_fraction": 0.3}},
}


@pytest.mark.usefixtures("kept_often")
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("n_steps", [1, 7, 13])
def test_a_training_goes_on_within_an_epoch(tmp_path, monkeypatch, variant, n_steps):
    options = SINGLE | variant
    hold, done = Objective.hold, []
    monkeypatch.setattr(Objective, "hold", lambda self: (done.append(1), hold(self)))
    whole = FCorrClassifier(**options).fit(X, Y)
    n_all = len(done)
    done.clear()

    def cut_short(self):
        done.append(1)
        if len(done) > n_steps:
            raise KeyboardInterrupt
        hold(self)

    with monkeypatch.context() as patch:
        patch.setattr(Objective, "hold", cut_short)
        with pytest.raises(KeyboardInterrupt):
            FCorrClassifier(**options).fit(X, Y, checkpoint=tmp_path)
    assert list(tmp_path.glob("*.state"))
    done.clear()
    model = FCorrClassifier(**options).fit(X, Y, checkpoint=tmp_path)
    assert len(done) == n_all - n_steps
    assert (model.predict_proba(X) == whole.predict_proba(X)).all()
    assert model.history_.epochs == whole.history_.epochs
    assert not list(tmp_path.glob("*.state"))  # what is trained has no state any more


def cut_off(content):
    return content[:100]


def flip_a_bit(content):  # of a weight: all is in its place, and one number another
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


@pytest.mark.parametrize("damage", [cut_off, flip_a_bit])
def test_a_damaged_file_is_named_and_trained_again(tmp_path, trainings, damage):
    whole = FCorrClassifier(**OPTIONS).fit(X, Y, checkpoint=tmp_path)
    path = sorted(tmp_path.glob("*.safetensors"))[0]
    path.write_bytes(damage(path.read_bytes()))
    trainings.done.clear()
    with pytest.warns(UserWarning, match=f"{path.name} is nothing that fcorr kept"):
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
    assert parse_amount("budget", budget) == seconds


@pytest.mark.parametrize("budget", ["10", "ten minutes", "-1s", 0, -3, float("nan"), True, "1d"])
def test_what_is_no_budget(budget):
    with pytest.raises(InvalidInputError, match="budget must be a time such as '90s'"):
        FCorrClassifier().fit(X, Y, budget=budget)


def test_a_single_network_has_no_members():
    with pytest.raises(InvalidInputError, match="budget is for packs: a single network has no"):
        FCorrClassifier(n_members=1).fit(X, Y, budget="1s")
