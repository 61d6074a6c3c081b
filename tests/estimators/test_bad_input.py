"""Bad input, item by item: a ValueError with the rule, the value and the way out."""

import copy
import inspect
import os
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from fcorr import FCorrClassifier, FCorrRegressor
from fcorr._core import InvalidInputError, UnseenCategoryWarning
from fcorr.data import read_table
from fcorr.estimators import Advanced
from fcorr.estimators.options import DEFAULTS
from tests.tables import QUICK, make_people, make_targets, predictions

SMALL = QUICK | {"sensitive": "sex", "epochs": 1}
ESTIMATORS = [FCorrClassifier, FCorrRegressor]
X = make_people().drop(columns="years")
Y = dict(zip(ESTIMATORS, map(make_targets(X).get, ("two classes", "mse")), strict=True))
both = pytest.mark.parametrize("cls", ESTIMATORS)


@pytest.fixture(scope="module")
def fitted():
    # Not exact, so that the sensitive column is read like any other.
    return {cls: cls(**SMALL, invariance=None).fit(X, Y[cls]) for cls in ESTIMATORS}


def with_first(values, value):
    """Return floats of which the first is exchanged."""
    return np.concatenate([[value], np.asarray(values, dtype=float)[1:]])


def bad(message, change_X=lambda X: X, change_y=lambda y: y, **options):
    """A bad call of ``fit``: the message, a change of X, a change of y, arguments."""
    return message, change_X, change_y, options


def other_classes(y):
    return (y * 3).astype(int)


def interrupt(*_, **__):
    raise KeyboardInterrupt


# What tables and targets must be is tested with the data; here is that fit, for both, asks for it.
FIT = [
    bad(
        r"sensitive must name columns of X, got 'sexx'\. Did you mean 'sex'\? X has 'sex', 'job'",
        sensitive="sexx",
    ),
    bad(
        r"X and y must have the same number of rows, got 200 and 199\. Check that both",
        change_y=lambda y: y[:-1],
    ),
    bad(
        r"X must have at least one row .*got 0 sample\(s\) \(shape=\(0, 4\)\).*Check the filter",
        lambda X: X[:0],
        lambda y: y[:0],
    ),
    bad(
        r"y must not hold missing values, got 1 NaN, the first in row 0\. Drop these rows",
        change_y=lambda y: with_first(y, np.nan),
    ),
    bad(
        r"'age' must hold finite numbers within .* got -inf in row 0 .*Replace it, or make it mis",
        lambda X: X.assign(age=with_first(X.age, -np.inf)),
    ),
    bad(
        r"Column names must differ, got 'age' more than once\. Rename or drop",
        lambda X: X.set_axis(["sex", "age", "age", "income"], axis=1),
    ),
    bad(
        r"kinds must name columns of X, got 'jobs'\. Did you mean 'job'",
        kinds={"jobs": "categorical"},
    ),
    bad(r"random_state must be an integer.*got str 'seed'\. Pass an integer", random_state="seed"),
    bad(
        r"Training must keep a finite loss, got nan in epoch 1\. Lower learning_rate \(now",
        lambda X: X[["age", "sex"]],
        learning_rate=1e30,
        epochs=3,
    ),
    bad("epochs must be an integer of at least 1, or 'auto', got 0", epochs=0),
    bad("^$", lambda X: X.to_numpy()[:, 1:], other_classes, sensitive=None),  # is interrupted
    bad(
        "sample_weight must .*positive sum, got a weight of zero in every row",
        weight=np.zeros(200),
    ),
]


@both
@pytest.mark.parametrize("case", FIT)
@pytest.mark.filterwarnings("ignore:X has 2 feature")
def test_a_failed_fit_leaves_the_estimator_as_it_was(monkeypatch, tmp_path, fitted, cls, case):
    message, change_X, change_y, options = case
    weight, options = options.get("weight"), {k: v for k, v in options.items() if k != "weight"}
    error = InvalidInputError
    if message == "^$":
        error = KeyboardInterrupt
        monkeypatch.setattr(torch.optim.AdamW, "step", interrupt)
    new, old = cls(**(SMALL | options)), copy.deepcopy(fitted[cls]).set_params(**options)
    before, attributes = (predictions(old, X), old.predict(X)), set(vars(old))
    for model in (new, old):
        with pytest.raises(error, match=message):
            model.fit(change_X(X), change_y(Y[cls]), sample_weight=weight)
    for use in (lambda: new.predict(X), lambda: new.save(tmp_path / "model")):
        with pytest.raises(NotFittedError):
            use()
    assert os.listdir(tmp_path) == []
    np.testing.assert_array_equal(predictions(old, X), before[0])
    np.testing.assert_array_equal(old.predict(X), before[1])
    assert set(vars(old)) == attributes


@pytest.mark.parametrize(
    ("cls", "y", "message"),
    [
        (FCorrClassifier, np.ones(200), r"at least two classes, got only one.*Check the"),
        (FCorrClassifier, Y[FCorrRegressor], r"must hold classes\. Use FCorrRegressor.*continuous"),
        (FCorrRegressor, X.job, r"y \('job'\) must hold numbers, .*use FCorrClassifier"),
    ],
)
def test_targets(cls, y, message):
    with pytest.raises(ValueError, match=message):
        cls(**SMALL).fit(X, y)


def test_rows_of_y_in_another_order():
    y = pd.Series(Y[FCorrRegressor], X.index)
    with pytest.warns(UserWarning, match=r"same index labels in another order.*y\.loc\[X\.index\]"):
        FCorrRegressor(**SMALL).fit(X, y[::-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FCorrRegressor(**SMALL).fit(X, y)
        FCorrRegressor(**SMALL).fit(X, y.set_axis(range(1_000, 1_200)))
        FCorrRegressor(**SMALL).fit(X[1:], y[1:].reset_index(drop=True))
    with pytest.warns(UserWarning, match="some index labels in common.* align them first"):
        FCorrRegressor(**SMALL).fit(X[1:-1], y[2:])
    with pytest.warns(UserWarning, match=r"X and sample_weight have the same index labels"):
        FCorrRegressor(**SMALL).fit(X, y, sample_weight=pd.Series(1.0, X.index[::-1]))


def test_labels_of_several_levels_are_no_order():
    levels = pd.MultiIndex.from_arrays([range(200), range(200)])
    FCorrRegressor(**SMALL).fit(X.set_axis(levels), pd.Series(Y[FCorrRegressor]))


@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_masked_outcomes_are_missing(name):
    given = {"y": Y[FCorrRegressor], "sample_weight": np.ones(200)}
    given[name] = np.ma.array(given[name], mask=np.arange(200) == 7)
    with pytest.raises(InvalidInputError, match=r"missing values|finite"):
        FCorrRegressor(**SMALL).fit(X, **given)


def test_columns_may_have_numbers_for_names():
    numbered = X.set_axis(range(10, 10 + X.shape[1]), axis=1)
    model = FCorrClassifier(**SMALL | {"sensitive": 10}).fit(numbered, Y[FCorrClassifier])
    assert model.schema_.sensitive == ("10",)
    assert np.isfinite(model.predict_proba(numbered)).all()


def test_what_a_mask_hides_is_missing():
    values = np.column_stack([np.arange(200.0), np.arange(200) % 7])
    masked = np.ma.array(np.where(np.arange(200)[:, None] % 4, values, 1e6), mask=False)
    masked[::4, 0] = np.ma.masked
    column, _ = (
        FCorrRegressor(**SMALL | {"sensitive": None}).fit(masked, values[:, 1]).schema_.columns
    )
    assert (column.n_missing, column.features[0].high) == (50, 199)
    days = np.ma.array(np.arange(400).reshape(200, 2), mask=False).astype("datetime64[D]")
    days[::4, 0] = np.ma.masked
    assert [str(c.type) for c in read_table(days).columns.values()] == ["date32[day]"] * 2


def test_integers_that_no_machine_has():
    with pytest.raises(InvalidInputError, match="Column 'big' must hold one kind of value"):
        FCorrRegressor(**SMALL).fit(X.assign(big=10**30), Y[FCorrRegressor])


@both
def test_constant_columns_are_kept_with_one_warning(cls):
    constant = X.assign(age=40, job="clerk")
    with pytest.warns(UserWarning, match=r"'job' \(always 'clerk'\), 'age'.* Drop them") as heard:
        model = cls(**SMALL).fit(constant, Y[cls])
    assert len(heard) == 1
    assert np.isfinite(predictions(model, constant)).all()


@both
@pytest.mark.parametrize("invariance", ["adapt", "marginal"])
def test_exact_models_need_a_column_that_is_not_sensitive(cls, invariance):
    every = SMALL | {"sensitive": ["sex", "job"]}
    text = rf"not sensitive, got 'sex', 'job' and invariance='{invariance}'\. Add features, or"
    with pytest.raises(InvalidInputError, match=text):
        cls(**every, invariance=invariance).fit(X[["sex", "job"]], Y[cls])
    model = cls(**every, invariance=None).fit(X[["sex", "job"]], Y[cls])
    assert np.isfinite(predictions(model, X)).all()


@both
def test_keys_and_copies_of_the_target_are_warned_of_where_fit_was_called(cls):
    X_with = X.assign(policy=np.arange(200), copy=Y[cls])
    with pytest.warns(UserWarning, match="A feature must") as heard:
        cls(**SMALL).fit(X_with, Y[cls])
    said = [("looks like a key", "'policy'"), ("must not tell y outright", "'copy'")]
    for warning, texts in zip(heard, said, strict=True):
        assert all(text in str(warning.message) for text in texts)
        assert warning.filename == __file__


EVAL_SETS = [
    (X, r"eval_set must be \(X, y\) or \(X, y, sample_weight\), got DataFrame\. Pass eval_set="),
    ((X,), r"eval_set must be \(X, y\) or \(X, y, sample_weight\)"),
    ((X, np.zeros(200), np.full(200, -1)), "sample_weight must be finite and at least 0, got"),
    ((X[["sex", "job", "age"]], np.zeros(200)), "X must fit .*Column 'income' is missing"),
    ((X, np.zeros(199)), "same number of rows, got 200 and 199"),
    ((X, np.full(200, np.nan)), "y must not hold missing values, got 200 NaN"),
]


@both
@pytest.mark.parametrize(("eval_set", "message"), EVAL_SETS)
def test_eval_set(cls, eval_set, message):
    with pytest.raises(InvalidInputError, match=message):
        cls(**SMALL).fit(X, Y[cls], eval_set=eval_set)


def test_an_eval_set_has_known_classes_and_is_for_a_single_network():
    y = Y[FCorrClassifier]
    with pytest.raises(InvalidInputError, match=r"classes of the training table \(0, 1\), got .*2"):
        FCorrClassifier(**SMALL).fit(X, y, eval_set=(X, np.full(200, 2)))
    message = r"eval_set is for a single network.* Leave it out, or use n_members=1\."
    for n_members in ("auto", 2):
        with pytest.raises(InvalidInputError, match=message) as caught:
            FCorrClassifier(**SMALL | {"n_members": n_members}).fit(X, y, eval_set=(X, y))
        assert caught.value.argument == "eval_set"


@pytest.mark.filterwarnings("ignore:Columns that take one value")
def test_early_stopping_needs_a_row_to_validate_on():
    advanced = {"early_stopping": True, "validation_fraction": 0.9}
    model = FCorrRegressor(**SMALL | {"sensitive": None}, advanced=advanced)
    with pytest.raises(InvalidInputError, match=r"early_stopping needs rows .*got 2 row\(s\) in a"):
        model.fit(X[:2], [1.0, 2.0])


CAR = "a number of at least 0, 'paper' or None"
COUNT = "an integer of at least 1"
HEAD = "a tuple of hidden-layer sizes of at least 1"
BAD_VALUES = {
    "car": (CAR, [-1, float("nan"), float("inf"), "much", True]),
    "head": (HEAD, [(0,), (8, 2.5), 8]),
    "dropout": (r"a number in \[0, 1\), or 'auto'", [1, -0.1]),
    "epochs": (f"{COUNT}, or 'auto'", [0, True, "all"]),
    "learning_rate": ("a number above 0, or 'auto'", [0, float("nan")]),
    "n_members": (f"{COUNT}, or 'auto'", [0, -1, 2.0, True, "many"]),
    "monotone": (
        "a dict of columns and 'increasing' or 'dec",
        ["age", {"age": "up"}, {"age": [1]}],
    ),
    "min_category_rows": (f"{COUNT}, or 'auto'", [0, 2.5, "few"]),
    "invariance": ("'adapt', 'marginal' or None", ["exact"]),
    "proxy": ("a number of at least 0", [-1, float("nan"), "much", None]),
    "verbose": ("True, False or an integer of at least 0", [-1]),
    "advanced": (r"a dict, such as \{'n_layers': 3\}, or None", ["deep", 3]),
}
THRESHOLD = r"a number in \[0, 1\], 'f1', \{'fpr': a rate in \[0, 1\]\} or \{'cost': \(of a false"
THRESHOLDS = [1.5, None, "best", {"fpr": 2}, {"cost": (1,)}, {"cost": (0, 0)}]
WEIGHTS = "None, 'balanced' or a dict of classes and weights above 0"
COLUMN = "the name of a column, or its position where there are no names, or None"
OWN_BAD_VALUES = {
    FCorrClassifier: {
        "class_weight": (WEIGHTS, ["even", {0: 0.0}, {0: float("nan")}, 2]),
        "threshold": (THRESHOLD, THRESHOLDS),
        "proxy_target": ("'score', 'decision' or 'odds'", ["parity", None]),
    },
    FCorrRegressor: {
        "objective": ("'mse', 'poisson', 'gamma' or 'tweedie'", ["poison"]),
        "tweedie_power": (r"a number in \(1, 2\)", [1, 2.0]),
        "exposure": (COLUMN, [-1, ["age"]]),
    },
}
BAD_ADVANCED = {
    "n_layers": (COUNT, [0, 1.0]),
    "residual": ("True or False", ["yes"]),
    "numeric_embedding": ("'spline' or 'paper'", ["fourier"]),
    "main_effects": ("True or False", [None, "no"]),
    "n_views": ("an integer from 1 to 64, or 'auto'", [0, 65, 1000, "all"]),
    "n_knots": ("an integer of at least 2, or 'auto'", [1]),
    "beta2": (r"a number in \[0, 1\), or 'auto'", [1, -0.1]),
    "early_stopping": ("True, False or a number of epochs to wait of at least 1", [0, "soon"]),
    "validation_fraction": (r"a number in \(0, 1\)", [1, 0]),
    "missing_categorical": ("'category' or 'mode'", ["mean"]),
    "missing_numeric": ("'mean' or 'category'", ["mode"]),
    "engine": ("'auto', 'compiled' or 'plain'", ["gpu"]),
    "batch_size": (f"{COUNT}, or 'auto'", [0, "big"]),
    "device": ("the name of a device of torch", [None]),
}


@pytest.mark.parametrize(
    ("cls", "name", "value", "rule"),
    [
        (cls, name, value, rule)
        for cls in ESTIMATORS
        for name, (rule, values) in (BAD_VALUES | OWN_BAD_VALUES[cls]).items()
        for value in values
    ],
)
def test_arguments(cls, name, value, rule):
    message = rf"^{name} must be {rule}.*got {re.escape(repr(value))}\."
    with pytest.raises(InvalidInputError, match=message) as caught:
        cls(**SMALL | {name: value}).fit(X, Y[cls])
    assert caught.value.argument == name


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [(name, value, rule) for name, (rule, values) in BAD_ADVANCED.items() for value in values],
)
def test_advanced_arguments(name, value, rule):
    message = rf"^advanced\['{name}'\] must be {rule}, got {re.escape(repr(value))}\."
    with pytest.raises(InvalidInputError, match=message):
        FCorrRegressor(**SMALL, advanced={name: value}).fit(X, Y[FCorrRegressor])


@pytest.mark.parametrize(
    ("advanced", "message"),
    [
        ({"device": "nope"}, r"\['device'\] must be one that torch can use here \(cpu.*'nope'\."),
        (
            {"n_layer": 2},
            r" must hold some of 'n_layers', .*got 'n_layer'\. Did you mean 'n_layers'",
        ),
    ],
)
def test_what_is_not_there(advanced, message):
    with pytest.raises(InvalidInputError, match=f"^advanced{message}"):
        FCorrRegressor(**SMALL, advanced=advanced).fit(X, Y[FCorrRegressor])


@both
def test_every_argument_has_a_bad_value_above_and_a_text_in_the_docstring(cls):
    checked_elsewhere = {"sensitive", "kinds", "random_state"}
    arguments = set(cls().get_params())
    assert {*BAD_VALUES, *OWN_BAD_VALUES[cls]} == arguments - checked_elsewhere
    assert set(BAD_ADVANCED) == set(Advanced.__annotations__) == set(DEFAULTS)
    assert all(f"\n{name} : " in inspect.getdoc(cls) for name in arguments)
    assert all(f"\n{name} : " in inspect.getdoc(Advanced) for name in BAD_ADVANCED)


PREDICT = [
    (
        lambda X: X.drop(columns="sex"),
        r"X must fit the training table: Column 'sex' \(sensitive\) is missing\. X has 'job', 'ag",
    ),
    (
        lambda X: X.rename(columns={"income": "incomes"}),
        r"Column 'income' is missing \(Did you mean 'incomes'\?\)\. X has",
    ),
    (lambda X: X[:0], r"at least one row .*got 0 sample\(s\)"),
    (lambda X: X.assign(income=np.inf), r"'income' must hold finite numbers .*got inf in row 0"),
    (lambda X: X.assign(age="old"), r"'age' must hold numbers, got text: 'old' in row 0\. Convert"),
    (
        lambda X: X.to_numpy()[:, :3],
        r"X has 3 features, but FCorr.* is expecting 4 features as input\. Pass the columns",
    ),
]


@both
@pytest.mark.parametrize(("change", "message"), PREDICT)
def test_predict(fitted, cls, change, message):
    for method in (fitted[cls].predict, fitted[cls].attention):
        with pytest.raises(InvalidInputError, match=message):
            method(change(X))


@both
def test_columns_in_another_order_and_unseen_categories(fitted, cls):
    shuffled = X.assign(extra="ignored")[["income", "extra", "age", "sex", "job"]]
    np.testing.assert_array_equal(predictions(fitted[cls], shuffled), predictions(fitted[cls], X))
    with pytest.warns(UnseenCategoryWarning, match=r"200 row\(s\) of 'job' \('astronaut'\)\. Each"):
        unseen = predictions(fitted[cls], X.assign(job="astronaut"))
    most_frequent = X.assign(job=X.job.mode()[0])
    np.testing.assert_array_equal(unseen, predictions(fitted[cls], most_frequent))


@both
@pytest.mark.parametrize("embedding", ["spline", "paper"])
def test_numbers_far_from_training_give_finite_scores(cls, embedding):
    model = cls(**SMALL, advanced={"numeric_embedding": embedding}).fit(X, Y[cls])
    assert np.isfinite(predictions(model, X.assign(age=3e38, income=-3e38))).all()


TOO_LARGE = {"epochs": 5, "learning_rate": 3.0, "advanced": {"main_effects": False}}


@both
def test_a_network_that_learnt_nothing_is_reported(cls):
    """Steps so large that no unit of the head is left alive."""
    model = cls(**(SMALL | TOO_LARGE))
    said = r"outputs with a standard deviation of \S+\. .*try a smaller learning_rate"
    with pytest.warns(ConvergenceWarning, match=said) as heard:
        model.fit(X, Y[cls])
    assert heard[0].filename == __file__
    assert predictions(model, X).std(0).max() < 1e-3
    FCorrRegressor(**(SMALL | TOO_LARGE)).fit(X, np.ones(200))  # there is nothing to learn
