import platform
import random
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import log_loss, mean_squared_error

from fcorr import FCorrClassifier, FCorrRegressor
from fcorr.training.loop import EpochRecord, History, SlicedGradients
from paper.augmentation import AugmentedClassifier
from tests.tables import QUICK

SMALL = QUICK | {"sensitive": "sex", "epochs": 3}


@pytest.fixture(scope="module")
def held_out(table):
    """Rows whose labels are chance: what is learnt soon makes them worse."""
    X, _ = table
    return X, np.random.default_rng(1).integers(2, size=len(X))


def weights(model):
    return model.model_.state_dict()


def equal(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


# What is recorded


def test_an_eval_set_is_measured_after_every_epoch_and_changes_nothing(table, held_out):
    plain = FCorrClassifier(**SMALL).fit(*table)
    model = FCorrClassifier(**SMALL).fit(*table, eval_set=held_out)
    assert equal(weights(model), weights(plain))
    assert [record.validation_loss for record in plain.history_.epochs] == [None] * 3
    for each in (plain, model):
        assert [record.epoch for record in each.history_.epochs] == [1, 2, 3]
        assert each.history_.best_epoch is None
        assert each.history_.epochs[-1].loss < each.history_.epochs[0].loss
    X, y = held_out
    model.balance_[:] = 0  # it comes after the training
    measured = model.history_.epochs[-1].validation_loss
    assert measured == pytest.approx(log_loss(y, model.predict_proba(X)), rel=1e-5)
    assert len({record.validation_loss for record in model.history_.epochs}) == 3


def test_eval_set_of_a_regression_is_measured_in_deviations(table):
    X, _ = table
    y = X.age.to_numpy() * 1_000
    y[::2] += 500
    model = FCorrRegressor(**SMALL).fit(X, y, eval_set=[(X[:50], y[:50])])
    model.balance_[:] = 0
    expected = mean_squared_error(y[:50], model.predict(X[:50])) / y.var()
    assert model.history_.epochs[-1].validation_loss == pytest.approx(expected, rel=1e-4)


# Early stopping


@pytest.mark.parametrize("patience", [1, 3, True])
def test_early_stopping_restores_the_best_epoch(table, held_out, patience):
    options = SMALL | {"epochs": 40, "car": None, "invariance": None}
    options["advanced"] = {"early_stopping": patience}
    model = FCorrClassifier(**options).fit(*table, eval_set=held_out)
    losses = [record.validation_loss for record in model.history_.epochs]
    best = int(np.argmin(losses))
    assert model.history_.best_epoch == best + 1
    waited = 5 if patience is True else patience
    assert len(losses) == best + 1 + waited < 40
    X, y = held_out
    model.balance_[:] = 0
    assert log_loss(y, model.predict_proba(X)) == pytest.approx(losses[best], rel=1e-5)
    assert losses[-1] > losses[best] * (1 + 1e-4)


def test_early_stopping_sets_rows_aside(table):
    options = {"early_stopping": True}
    model = FCorrClassifier(**SMALL, advanced=options).fit(*table)
    assert all(record.validation_loss is not None for record in model.history_.epochs)
    options["validation_fraction"] = 0.5
    halved = FCorrClassifier(**SMALL, advanced=options).fit(*table)
    assert halved.history_ != model.history_


# Chance


@pytest.mark.parametrize("other", [1, None, np.random.default_rng(3)])
def test_other_seed_other_weights(table, other):
    first = FCorrClassifier(**SMALL).fit(*table)
    second = FCorrClassifier(**SMALL | {"random_state": other}).fit(*table)
    assert not equal(weights(first), weights(second))
    again = FCorrClassifier(**SMALL | {"random_state": second.seed_}).fit(*table)
    assert equal(weights(second), weights(again))


@pytest.mark.parametrize("car", [1e6, "paper"])
@pytest.mark.parametrize("random_state", [0, None])
def test_global_generators_are_left_alone(table, random_state, car):
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    options = SMALL | {"random_state": random_state, "dropout": 0.5, "car": car}
    options |= {"invariance": None, "advanced": {"early_stopping": True}}
    FCorrClassifier(**options).fit(*table).predict(table[0])
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1][1])  # noqa: NPY002
    assert np.random.get_state()[2:] == before[1][2:]  # noqa: NPY002
    assert random.getstate() == before[2]


def test_only_the_ratio_of_weights_matters(table):
    plain = FCorrClassifier(**SMALL).fit(*table)
    doubled = FCorrClassifier(**SMALL).fit(*table, sample_weight=np.full(200, 2.0))
    assert equal(weights(plain), weights(doubled))


# Threads and engines


@pytest.fixture(scope="module")
def long_table():
    """Enough numbers in a batch of 4,096 rows that it is worked on in slices."""
    rng = np.random.default_rng(2)
    numbers = rng.normal(size=(5_000, 8)).astype(np.float32)
    X = pd.DataFrame(numbers, columns=[f"x{i}" for i in range(8)])
    X["sex"], X["job"] = rng.choice(["f", "m"], 5_000), rng.choice(list("abc"), 5_000)
    effect = X.x0 + X.x1 * X.x2 + (X.job == "a") + rng.normal(size=5_000)
    return X, (effect > 0).to_numpy().astype(int)


def fit_long(long_table, **options):
    settings = {"sensitive": "sex", "head": (8,), "epochs": 2, "n_members": 1}
    settings |= {"advanced": {"batch_size": 4_096}, "random_state": 0}
    return FCorrClassifier(**settings | options).fit(*long_table)


def test_threads_do_not_change_the_weights(long_table, monkeypatch):
    """Slices have their own dropout, and their gradients are added up in order."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = fit_long(long_table, dropout=0.3)
        torch.set_num_threads(3)
        shared = fit_long(long_table, dropout=0.3)
    finally:
        torch.set_num_threads(before)
    assert equal(weights(alone), weights(shared))
    monkeypatch.setattr("fcorr.training.loop._TWO_SLICES", 10**9)
    assert not equal(weights(alone), weights(fit_long(long_table, dropout=0.3)))


@pytest.mark.parametrize(
    ("limit", "value", "slices"),
    [("_TWO_SLICES", 10**9, (4_096, 1)), ("_LARGEST_SLICE", 1_000, (100, 41))],
)
def test_slices_add_up_to_the_whole_batch(long_table, monkeypatch, limit, value, slices):
    """Without dropout other slices give the same, also those that the memory asks for."""
    # The paper's form: features are not dropped.
    papers = {"dropout": 0.0, "advanced": {"main_effects": False, "batch_size": 4_096}}
    sliced = fit_long(long_table, **papers)
    monkeypatch.setattr(f"fcorr.training.loop.{limit}", value)
    found = set()
    compute = SlicedGradients.compute

    def counted(self, *batch):
        found.add((self.slice_size, len(self.generators)))
        return compute(self, *batch)

    monkeypatch.setattr(SlicedGradients, "compute", counted)
    other = fit_long(long_table, **papers)
    assert found == {slices}  # 4,096 rows of 10 features
    scores = [model.predict_proba(long_table[0])[:, 1] for model in (sliced, other)]
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-3)  # steps on steps of rounding


@pytest.mark.parametrize("kind", [FCorrClassifier, AugmentedClassifier])
def test_engines_train_the_same_model(table, kind):
    advanced = {"main_effects": kind is FCorrClassifier}
    options = SMALL | {"car": 10.0, "invariance": None}
    fits = [
        kind(**options, advanced=advanced | {"engine": engine}).fit(*table)
        for engine in ("plain", "compiled")
    ]
    assert [fit.history_.engine for fit in fits] == ["plain", "compiled"]
    scores = [fit.predict_proba(table[0])[:, 1] for fit in fits]
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-3)  # steps on steps of rounding


# What is shown


def test_a_line_for_every_epoch(table, capsys):
    FCorrClassifier(**SMALL, invariance=None, verbose=True).fit(*table, eval_set=table)
    out, err = capsys.readouterr()
    assert out == ""
    # There may be a line before them, on compiling.
    number = r"\d\.\d{4}"
    pattern = rf"loss {number}  CAR \d\.\d\de[-+]\d\d  validation loss {number}"
    for epoch, line in enumerate(err.splitlines()[-3:], start=1):
        assert re.fullmatch(rf"epoch {epoch}/3  {pattern}", line)


def test_a_history_shows_itself_in_a_notebook():
    epochs = [EpochRecord(1, 0.5, car=0.00123), EpochRecord(2, 0.25, validation_loss=0.375)]
    shown = History(car_weight=1e6, best_epoch=2, epochs=epochs)._repr_html_()
    assert "<tr><td>1</td><td>0.5000</td><td>1.23e-03</td><td></td></tr>" in shown
    assert "<tr><td>2</td><td>0.2500</td><td></td><td>0.3750</td></tr>" in shown
    assert "λ = 1e+06. Weights of epoch 2." in shown


# Memory

STEPS = """
import resource, torch
from fcorr.training import loop

loop._keep_freed_memory()
for n_steps in (1, 10):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(n_steps):
        some = [torch.ones(2**19) for _ in range(16)]  # 32 MiB in all, 8,192 pages
        del some
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // n_steps)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have other ways")
def test_memory_that_a_step_frees_is_kept_for_the_next():
    done = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 400
