"""Bad input, item by item: a ValueError with the rule, the value and the way out."""

import os

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from fcorr import FCorrClassifier, FCorrRegressor
from fcorr._core import InvalidInputError, UnseenCategoryWarning

SMALL = {"sensitive": "sex", "head": (4,), "epochs": 1, "random_state": 0}
ESTIMATORS = [FCorrClassifier, FCorrRegressor]

_rng = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "sex": _rng.choice(["f", "m"], 200, p=[0.7, 0.3]),
        "job": _rng.choice(["clerk", "nurse", "pilot"], 200, p=[0.5, 0.3, 0.2]),
        "age": _rng.normal(40, 10, 200),
        "income": _rng.lognormal(size=200),
    }
)
Y = {
    FCorrClassifier: _rng.integers(2, size=200),
    FCorrRegressor: _rng.normal(size=200),
}

both = pytest.mark.parametrize("cls", ESTIMATORS)


@pytest.fixture(scope="module")
def fitted():
    # Not exact, so that the sensitive column is read like any other.
    return {cls: cls(**SMALL, invariance=None).fit(X, Y[cls]) for cls in ESTIMATORS}


def scores(model, X):
    return model.predict_proba(X) if isinstance(model, FCorrClassifier) else model.predict(X)


def with_first(values, value):
    """Return floats of which the first is exchanged."""
    return np.concatenate([[value], np.asarray(values, dtype=float)[1:]])


# A table of (what is wrong, arguments, a change of X, a change of y, the message).
same = None
FIT = {
    "misspelt sensitive column": (
        {"sensitive": "sexx"},
        same,
        same,
        r"sensitive must name columns of X, got 'sexx'\. Did you mean 'sex'\? X has 'sex', 'job'",
    ),
    "unknown sensitive column": (
        {"sensitive": ["sex", "religion"]},
        same,
        same,
        r"sensitive must name columns of X, got 'religion'\. X has 'sex', 'job', 'age', 'income'",
    ),
    "sensitive column twice": (
        {"sensitive": ["sex", "sex"]},
        same,
        same,
        r"sensitive must name each column once, got 'sex' twice\. Drop the repetition",
    ),
    "sensitive column of one category": (
        {},
        lambda X: X.assign(sex="f"),
        same,
        r"'sex' must have at least two categories, got only 'f'\. Leave it out of `sensitive`",
    ),
    "y too short": (
        {},
        same,
        lambda y: y[:-1],
        r"X and y must have the same number of rows, got 200 and 199\. Check that both",
    ),
    "no y": ({}, same, lambda y: None, "y must be given.*the target y is None"),
    "no rows": (
        {},
        lambda X: X[:0],
        lambda y: y[:0],
        r"X must have at least one row .*got 0 sample\(s\) \(shape=\(0, 4\)\).*Check the filter",
    ),
    "no columns": (
        {"sensitive": None},
        lambda X: X[[]],
        same,
        r"at least one row and one column, got 0 feature\(s\) \(shape=\(200, 0\)\)",
    ),
    "NaN in y": (
        {},
        same,
        lambda y: with_first(y, np.nan),
        r"y must not hold missing values, got 1 NaN, the first in row 0\. Drop these rows",
    ),
    "infinite y": (
        {},
        same,
        lambda y: with_first(y, np.inf),
        r"y must be finite, got infinity \(inf\) in row 0\. Correct or drop it",
    ),
    "infinite number": (
        {},
        lambda X: X.assign(age=with_first(X.age, -np.inf)),
        same,
        r"'age' must hold finite numbers within .* got -inf in row 0 .*Replace it, or make it mis",
    ),
    "number too large for float32": (
        {},
        lambda X: X.assign(age=with_first(X.age, 1e39)),
        same,
        r"'age' must hold finite numbers within ±3\.4e\+38, got 1e\+39 in row 0",
    ),
    "constant number": (
        {},
        lambda X: X.assign(age=40),
        same,
        r"'age' must take at least two values, got 40\.0 wherever there is a value\. Drop",
    ),
    "constant category": (
        {},
        lambda X: X.assign(job="clerk"),
        same,
        r"'job' must take at least two values, got 'clerk' wherever there is a value\. Drop",
    ),
    "column all missing": (
        {},
        lambda X: X.assign(age=np.nan),
        same,
        r"'age' must hold at least one value, got 200 missing ones and nothing else\. Drop the col",
    ),
    "category all missing": (
        {},
        lambda X: X.assign(job=None),
        same,
        r"'job' must hold at least one value, got 200 missing ones and nothing else\. Drop the col",
    ),
    "duplicate column names": (
        {},
        lambda X: X.set_axis(["sex", "age", "age", "income"], axis=1),
        same,
        r"Column names must differ, got 'age' more than once\. Rename or drop",
    ),
    "numbers and text in one column": (
        {},
        lambda X: X.assign(age=[1, *["old"] * 199]),
        same,
        r"'age' must hold one kind of value, numbers or text .*Convert the column",
    ),
    "times": (
        {},
        lambda X: X.assign(age=pd.to_timedelta(X.age, unit="s")),
        same,
        r"'age' must hold numbers, text, booleans or dates, got duration.*Convert it to text or nu",
    ),
    "unknown column in kinds": (
        {"kinds": {"jobs": "categorical"}},
        same,
        same,
        r"kinds must name columns of X, got 'jobs'\. Did you mean 'job'",
    ),
    "unknown kind": (
        {"kinds": {"job": "categorial"}},
        same,
        same,
        r"kinds must say 'numeric', .* got 'categorial' for 'job'\. Did you mean 'categorical'\?",
    ),
    "no dict of kinds": (
        {"kinds": ["job"]},
        same,
        same,
        r"kinds must be a dict of columns and what they are, got \['job'\]\. Pass for example",
    ),
    "value outside the order": (
        {"kinds": {"job": ["clerk", "nurse"]}},
        same,
        same,
        r"'job' must hold the categories of its order, 'clerk', 'nurse', got 'pilot' in row \d+\.",
    ),
    "key": (
        {"min_category_rows": 2},
        lambda X: X.assign(job=[f"k{i}" for i in range(200)]),
        same,
        r"'job' must have categories that repeat, got 200 of them .*fewer than 2 rows: it is a key",
    ),
    "random_state": (
        {"random_state": "seed"},
        same,
        same,
        r"random_state must be an integer.*got str 'seed'\. Pass an integer",
    ),
    "diverging training": (
        {"learning_rate": 1e30, "epochs": 3},
        same,
        same,
        r"Training must keep a finite loss, got nan in epoch 1\. Lower learning_rate \(now",
    ),
}


@both
@pytest.mark.parametrize("case", FIT)
def test_fit(cls, case):
    options, change_X, change_y, message = FIT[case]
    bad_X = X if change_X is same else change_X(X)
    bad_y = Y[cls] if change_y is same else change_y(Y[cls])
    model = cls(**(SMALL | options))
    with pytest.raises(InvalidInputError, match=message):
        model.fit(bad_X, bad_y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_one_class_only():
    with pytest.raises(InvalidInputError, match=r"at least two classes, got only one.*Check the"):
        FCorrClassifier(**SMALL).fit(X, np.ones(200))


def test_measurements_as_classes():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        FCorrClassifier(**SMALL).fit(X, Y[FCorrRegressor])


def test_text_as_numbers():
    with pytest.raises(
        InvalidInputError, match=r"y \('job'\) must hold numbers, .*use FCorrClassifier"
    ):
        FCorrRegressor(**SMALL).fit(X, X.job)


@both
def test_constant_columns_are_kept_on_demand(cls):
    constant = X.assign(age=40, job="clerk")
    model = cls(**SMALL, constant_columns="keep").fit(constant, Y[cls])
    assert np.isfinite(scores(model, constant)).all()


@both
@pytest.mark.parametrize("missing", ["category", "mode"])
def test_missing_features_are_accepted(cls, missing):
    holes = X.assign(job=X.job.mask(X.age > 45), age=X.age.mask(X.income > 2))
    assert holes.isna().any().tolist() == [False, True, True, False]
    model = cls(**SMALL, missing_categorical=missing).fit(holes, Y[cls])
    assert np.isfinite(scores(model, holes)).all()


@both
@pytest.mark.parametrize(
    ("eval_set", "message"),
    [
        (
            X,
            r"eval_set must be \(X, y\) or \(X, y, sample_weight\), got DataFrame\. Pass eval_set=",
        ),
        ((X,), r"eval_set must be \(X, y\) or \(X, y, sample_weight\)"),
        ((X, np.zeros(200), np.full(200, -1)), "sample_weight must be finite and at least 0, got"),
        ((X[["sex", "job", "age"]], np.zeros(200)), "X must fit .*Column 'income' is missing"),
        ((X, np.zeros(199)), "same number of rows, got 200 and 199"),
        ((X, np.full(200, np.nan)), "y must not hold missing values, got 200 NaN"),
    ],
)
def test_eval_set(cls, eval_set, message):
    with pytest.raises(InvalidInputError, match=message):
        cls(**SMALL).fit(X, Y[cls], eval_set=eval_set)


def test_eval_set_with_an_unknown_class():
    with pytest.raises(InvalidInputError, match=r"classes of the training table \(0, 1\), got .*2"):
        FCorrClassifier(**SMALL).fit(X, Y[FCorrClassifier], eval_set=(X, np.full(200, 2)))


@both
def test_early_stopping_needs_a_row_to_validate_on(cls):
    rows = [int(np.argmin(Y[cls])), int(np.argmax(Y[cls]))]
    model = cls(**SMALL | {"sensitive": None}, early_stopping=True, validation_fraction=0.9)
    with pytest.raises(InvalidInputError, match=r"early_stopping needs rows .*got 2 row\(s\) in a"):
        model.set_params(constant_columns="keep").fit(X.iloc[rows], Y[cls][rows])


@both
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(199), r"one number per row, got shape \(199,\) for 200 rows"),
        (np.full(200, -1.0), "finite and at least 0, got -1.0 in row 0"),
        (np.full(200, np.nan), "finite and at least 0, got nan in row 0"),
        (np.zeros(200), "positive sum, got a weight of zero in every row"),
    ],
)
def test_sample_weight(cls, weight, message):
    with pytest.raises(InvalidInputError, match=f"sample_weight must .*{message}"):
        cls(**SMALL).fit(X, Y[cls], sample_weight=weight)


OPTIONS = [
    ("car", -1, "a number of at least 0, 'paper' or None"),
    ("car", float("nan"), "a number of at least 0, 'paper' or None"),
    ("car", float("inf"), "a number of at least 0, 'paper' or None"),
    ("car", "much", "a number of at least 0, 'paper' or None"),
    ("car", True, "a number of at least 0, 'paper' or None"),
    ("car_form", "x", "'sensitive' or 'paper' or 'cda'"),
    ("head", (0,), "a tuple of hidden-layer sizes of at least 1"),
    ("head", (8, 2.5), "a tuple of hidden-layer sizes of at least 1"),
    ("head", 8, "a tuple of hidden-layer sizes of at least 1"),
    ("n_layers", 0, "an integer of at least 1"),
    ("n_layers", 1.0, "an integer of at least 1"),
    ("residual", "yes", "True or False"),
    ("numeric_embedding", "fourier", "'spline' or 'paper'"),
    ("n_knots", 1, "an integer of at least 2"),
    ("dropout", 1, r"a number in \[0, 1\)"),
    ("dropout", -0.1, r"a number in \[0, 1\)"),
    ("epochs", 0, "an integer of at least 1"),
    ("epochs", True, "an integer of at least 1"),
    ("epochs", "all", "an integer of at least 1"),
    ("batch_size", 0, "an integer of at least 1, or 'auto'"),
    ("batch_size", "big", "an integer of at least 1, or 'auto'"),
    ("learning_rate", 0, "a number above 0"),
    ("learning_rate", float("nan"), "a number above 0"),
    ("beta2", 1, r"a number in \[0, 1\)"),
    ("beta2", -0.1, r"a number in \[0, 1\)"),
    ("early_stopping", 0, "True, False or a number of epochs"),
    ("early_stopping", "soon", "True, False or a number of epochs"),
    ("validation_fraction", 1, r"a number in \(0, 1\)"),
    ("validation_fraction", 0, r"a number in \(0, 1\)"),
    ("missing_categorical", "mean", "'category' or 'mode'"),
    ("missing_numeric", "mode", "'mean' or 'category'"),
    ("min_category_rows", 0, "an integer of at least 1, or 'auto'"),
    ("min_category_rows", 2.5, "an integer of at least 1, or 'auto'"),
    ("min_category_rows", "few", "an integer of at least 1, or 'auto'"),
    ("constant_columns", "drop", "'error' or 'keep'"),
    ("invariance", "exact", "'adapt', 'marginal' or None"),
    ("car_combinations", "all", "True or False"),
    ("bins", 1, "a number of groups of at least 2, or the edges between groups in increasing"),
    ("engine", "gpu", "'auto' or 'compiled' or 'plain'"),
    ("verbose", -1, "True, False or an integer of at least 0"),
    ("device", "nope", r"one that torch can use here \(cpu.*\)"),
    ("device", None, r"one that torch can use here \(cpu.*\)"),
]
THRESHOLD = r"a number in \[0, 1\], 'f1', \{'fpr': a rate in \[0, 1\]\} or \{'cost': \(of a false"
OWN_OPTIONS = {
    FCorrClassifier: [
        ("class_weight", "even", "None, 'balanced' or a dict of classes and weights above 0"),
        ("class_weight", {0: 0.0}, "a dict of classes and weights above 0"),
        ("class_weight", {0: float("nan")}, "a dict of classes and weights above 0"),
        ("class_weight", 2, "a dict of classes and weights above 0"),
        ("threshold", 1.5, THRESHOLD),
        ("threshold", None, THRESHOLD),
        ("threshold", "best", THRESHOLD),
        ("threshold", {"fpr": 2}, THRESHOLD),
        ("threshold", {"cost": (1,)}, THRESHOLD),
        ("threshold", {"cost": (0, 0)}, THRESHOLD),
    ],
    FCorrRegressor: [
        ("objective", "poison", "'mse' or 'poisson' or 'gamma' or 'tweedie'"),
        ("tweedie_power", 1, r"a number in \(1, 2\)"),
        ("tweedie_power", 2.0, r"a number in \(1, 2\)"),
        ("exposure", -1, "the name of a column, or its position where there are no names, or None"),
        ("exposure", ["age"], "the name of a column"),
    ],
}


@pytest.mark.parametrize(
    ("cls", "name", "value", "rule"),
    [(cls, *option) for cls in ESTIMATORS for option in OPTIONS + OWN_OPTIONS[cls]],
)
def test_options(cls, name, value, rule):
    model = cls(**SMALL | {name: value})
    with pytest.raises(InvalidInputError) as caught:
        model.fit(X, Y[cls])
    message = str(caught.value)
    assert message.startswith(f"{name} must be ")
    assert f"got {value!r}." in message
    with pytest.raises(InvalidInputError, match=rule):
        model.fit(X, Y[cls])


@both
def test_every_option_has_a_bad_value_above(cls):
    checked = {name for name, *_ in OPTIONS + OWN_OPTIONS[cls]}
    checked_elsewhere = {"sensitive", "kinds", "random_state"}
    assert checked == set(cls().get_params()) - checked_elsewhere


PREDICT = {
    "sensitive column missing": (
        lambda X: X.drop(columns="sex"),
        r"X must fit the training table: Column 'sex' \(sensitive\) is missing\. X has 'job', 'ag",
    ),
    "column missing": (
        lambda X: X.drop(columns="age"),
        r"Column 'age' is missing\. X has 'sex', 'job', 'income'\. Add or rename the column",
    ),
    "column misspelt": (
        lambda X: X.rename(columns={"income": "incomes"}),
        r"Column 'income' is missing \(Did you mean 'incomes'\?\)\. X has",
    ),
    "no rows": (lambda X: X[:0], r"at least one row .*got 0 sample\(s\)"),
    "infinite number": (
        lambda X: X.assign(income=np.inf),
        r"'income' must hold finite numbers .*got inf in row 0",
    ),
    "text for numbers": (
        lambda X: X.assign(age="old"),
        r"'age' must hold numbers, got text: 'old' in row 0\. Convert the column",
    ),
    "dates for numbers": (
        lambda X: X.assign(age=pd.date_range("2020", periods=200)),
        r"'age' must hold numbers, got dates: 2020-01-01 00:00:00 in row 0\. Convert the column",
    ),
    "numbers for text": (
        lambda X: X.assign(job=7),
        r"'job' must hold text, got numbers: 7 in row 0\. Convert the column as it was for trainin",
    ),
    "array of another width": (
        lambda X: X.to_numpy()[:, :3],
        r"X has 3 features, but FCorr.* is expecting 4 features as input\. Pass the columns",
    ),
}


@both
@pytest.mark.parametrize("case", PREDICT)
def test_predict(fitted, cls, case):
    change, message = PREDICT[case]
    for method in (fitted[cls].predict, fitted[cls].attention):
        with pytest.raises(InvalidInputError, match=message):
            method(change(X))


@both
def test_columns_in_another_order(fitted, cls):
    shuffled = X.assign(extra="ignored")[["income", "extra", "age", "sex", "job"]]
    np.testing.assert_array_equal(scores(fitted[cls], shuffled), scores(fitted[cls], X))


@both
def test_unseen_category_is_taken_for_the_most_frequent(fitted, cls):
    with pytest.warns(UnseenCategoryWarning, match=r"training: 200 row\(s\) of 'job'\. Each is"):
        unseen = scores(fitted[cls], X.assign(job="astronaut"))
    np.testing.assert_array_equal(unseen, scores(fitted[cls], X.assign(job="clerk")))


@both
def test_numbers_far_from_training_give_finite_scores(cls):
    for embedding in ("spline", "paper"):
        model = cls(**SMALL, numeric_embedding=embedding).fit(X, Y[cls])
        assert np.isfinite(scores(model, X.assign(age=3e38, income=-3e38))).all()


# Nothing half-fitted, nothing half-written.


def interrupt(*_, **__):
    raise KeyboardInterrupt


@both
@pytest.mark.parametrize(
    ("error", "options", "change_X", "change_y"),
    [
        (InvalidInputError, {"epochs": 0}, same, same),
        (InvalidInputError, {}, lambda X: X.assign(age=40), lambda y: (y * 3).astype(int)),
        (InvalidInputError, {"random_state": -1}, same, lambda y: (y * 3).astype(int)),
        (
            InvalidInputError,
            {"learning_rate": 1e30, "epochs": 2},
            lambda X: X[["age", "sex"]],
            same,
        ),
        (KeyboardInterrupt, {}, lambda X: X.to_numpy()[:, 1:], lambda y: (y * 3).astype(int)),
    ],
    ids=["option", "constant column", "seed", "divergence", "interrupt"],
)
@pytest.mark.filterwarnings("ignore:X has 2 feature")
def test_failed_fit_leaves_the_fitted_model(monkeypatch, cls, error, options, change_X, change_y):
    model = cls(**SMALL).fit(X, Y[cls])
    before, attributes = (scores(model, X), model.predict(X)), set(vars(model))
    if error is KeyboardInterrupt:
        options = {"sensitive": None}
        monkeypatch.setattr(torch.optim.AdamW, "step", interrupt)
    model.set_params(**options)
    bad_X = X if change_X is same else change_X(X)
    bad_y = Y[cls] if change_y is same else change_y(Y[cls])
    with pytest.raises(error):
        model.fit(bad_X, bad_y)
    np.testing.assert_array_equal(scores(model, X), before[0])
    np.testing.assert_array_equal(model.predict(X), before[1])
    assert set(vars(model)) == attributes


@both
def test_failed_save_leaves_no_file(monkeypatch, tmp_path, fitted, cls):
    with pytest.raises(NotFittedError):
        cls(**SMALL).save(tmp_path / "model")
    with pytest.raises(FileNotFoundError):
        fitted[cls].save(tmp_path / "nowhere" / "model")
    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fitted[cls].save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


@both
def test_a_network_that_learnt_nothing_is_reported(cls):
    """Steps so large that no unit of the head is left alive."""
    model = cls(**(SMALL | {"epochs": 5, "learning_rate": 3.0}))
    said = r"outputs with a standard deviation of \S+\. .*try a smaller learning_rate"
    with pytest.warns(ConvergenceWarning, match=said) as heard:
        model.fit(X, Y[cls])
    assert heard[0].filename == __file__
    assert scores(model, X).std(0).max() < 1e-3


def test_a_target_without_any_difference_asks_for_none():
    FCorrRegressor(**(SMALL | {"learning_rate": 3.0, "epochs": 5})).fit(X, np.ones(200))
