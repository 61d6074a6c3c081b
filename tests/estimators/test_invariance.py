"""Exact invariance, what sensitive features are exchanged for, and what CAR does to a model."""

import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score

from fcorr import FCorrClassifier, FCorrRegressor, InvalidInputError, load
from fcorr.certify import Link
from fcorr.data import make_proxy_bias, read_table
from fcorr.data.encode import EncodedTable, encode
from fcorr.estimators.invariance import Portfolio, feature_values, label_value, number_grid
from fcorr.metrics import average_individual_fairness, flip_changes, flip_scores
from fcorr.nn.fcorr import FCorrTransformer, Pack
from tests.tables import TASKS, make_model, make_people, make_targets, predictions, schema_of

X = make_people(missing=0.1)
Y = make_targets(X)
both_ways = pytest.mark.parametrize("invariance", ["adapt", "marginal"])


def fit(task="two classes", X=X, weight=None, **options):
    settings = {"sensitive": "sex", "epochs": 4, "head": (8,)} | options
    return make_model(task, **settings).fit(X, Y[task], sample_weight=weight)


# No flip of a sensitive column changes a prediction by one bit

EXACT = {
    **{task: (task, {}) for task in TASKS},
    "early stopping": ("two classes", {"advanced": {"early_stopping": 1}}),
    "no residual": ("two classes", {"advanced": {"residual": False}}),
    "layers": ("two classes", {"advanced": {"n_layers": 3}}),
    "plain torch": ("two classes", {"advanced": {"engine": "plain"}, "head": (32, 20)}),
    "missing numbers": ("mse", {"advanced": {"missing_numeric": "category"}, "head": (9,)}),
    "the paper's": ("two classes", {"advanced": {"main_effects": False}}),
    "its numbers": (
        "mse",
        {"advanced": {"main_effects": False, "numeric_embedding": "paper"}},
    ),
    "no CAR": ("two classes", {"car": None}),
    "pack": ("two classes", {"n_members": 2}),
    "proxies": ("two classes", {"proxy": 3.0, "proxy_target": "decision"}),
    "pack of classes": ("three classes", {"n_members": 2}),
    "pack, plain torch": ("poisson", {"n_members": 3, "advanced": {"engine": "plain"}}),
}


# Marginal models share networks and training with the others; these read them in another way.
AVERAGED = (*TASKS, "plain torch", "missing numbers", "the paper's", "pack")
CASES = [*((case, "adapt") for case in EXACT), *((case, "marginal") for case in AVERAGED)]


@pytest.mark.parametrize(("case", "invariance"), CASES)
def test_no_flip_changes_one_bit(case, invariance, tmp_path):
    task, options = EXACT[case]
    sensitive = ["sex", "age"]
    model = fit(task, sensitive=sensitive, invariance=invariance, **options)
    assert model.exact_
    expected = predictions(model, X)
    assert np.ptp(expected, axis=0).max() > 0.01  # it has learnt something of other columns
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for sex, age in (("f", -1e30), ("m", 41.0), ("x", 1e30), (None, np.nan)):
        found = predictions(loaded, X.assign(sex=sex, age=age))
        np.testing.assert_array_equal(found, expected)
    for left_out in (sensitive, "sex"):
        np.testing.assert_array_equal(predictions(model, X.drop(columns=left_out)), expected)
    # Rows and their twins in one table, in any order; and rows alone
    twins = pd.concat([X, X.assign(sex=X.sex.to_numpy()[::-1], age=0.0)], ignore_index=True)
    order = np.random.default_rng(1).permutation(len(twins))
    for each in (model, loaded):
        found = predictions(each, twins.iloc[order])
        np.testing.assert_array_equal(found, expected[order % len(X)])
    for row in range(0, len(X), 100):
        np.testing.assert_array_equal(predictions(model, X[row : row + 1])[0], expected[row])


@both_ways
@pytest.mark.parametrize("frame", ["polars", "array"])
def test_the_sensitive_column_may_be_left_out(invariance, frame):
    whole = {"polars": pl.from_pandas(X), "array": X.to_numpy()}[frame]
    is_array = frame == "array"
    kinds = dict.fromkeys((2, 3, 4), "numeric") if is_array else None
    sensitive = 1 if is_array else "job"
    model = fit(X=whole, sensitive=sensitive, invariance=invariance, kinds=kinds)
    without = np.delete(whole, 1, axis=1) if is_array else whole.drop("job")
    np.testing.assert_array_equal(model.predict_proba(without), model.predict_proba(whole))


def test_without_adapting_a_trace_is_left_and_the_column_is_needed():
    model = fit(car=1.0, invariance=None)
    assert not model.exact_
    changed = [model.predict_proba(X.assign(sex=sex)) for sex in "fm"]
    assert np.abs(np.subtract(*changed)).max() > 0
    with pytest.raises(InvalidInputError, match=r"'sex' \(sensitive\) is missing"):
        model.predict(X.drop(columns="sex"))


@both_ways
def test_without_a_sensitive_column_it_changes_nothing(invariance):
    plain, exact = (fit(sensitive=None, invariance=each, epochs=1) for each in (None, invariance))
    assert not exact.exact_
    np.testing.assert_array_equal(plain.predict_proba(X), exact.predict_proba(X))


def test_a_continuous_column_is_embedded_as_one_number():
    model = fit(sensitive="age")
    (position,) = model.schema_.sensitive_positions
    assert model.attention(X).names[0] == "age"
    encoded = encode(read_table(X), model.schema_)
    with torch.no_grad():
        e = model.model_.embed(torch.from_numpy(encoded.codes), torch.from_numpy(encoded.numbers))
    assert (e[:, :, position] == 0).all()
    with pytest.raises(InvalidInputError, match="Column 'job' is missing"):  # other than age
        model.predict(X.drop(columns=["age", "job"]))


# The marginal form


def test_the_marginal_form_is_the_average_over_the_portfolio():
    X = make_people()
    options = {"X": X, "sensitive": ["sex", "job"], "dropout": 0.0}
    aware = fit(**options, invariance=None, car=None)
    marginal = fit(**options, invariance="marginal")
    shares = X.value_counts(["sex", "job"], normalize=True)
    # Its network is the aware one; what differs is the shift that restores the balance.
    probability = sum(
        share * expit(logit(aware.predict_proba(X.assign(sex=sex, job=job))[:, 1]) - aware.balance_)
        for (sex, job), share in shares.items()
    )
    expected = expit(logit(probability) + marginal.balance_)
    np.testing.assert_allclose(marginal.predict_proba(X)[:, 1], expected, rtol=1e-9)
    assert expected.mean() == pytest.approx(Y["two classes"].mean(), abs=1e-9)  # in balance
    significance = np.diag(marginal.attention(X).values)
    assert (significance[:2] == 0).all()  # predictions do not read them, the network does
    assert (significance[2:] > 0).all()
    assert (np.diag(aware.attention(X).values) > 0).all()
    with pytest.raises(InvalidInputError, match="'sex'"):
        marginal.attention(X.drop(columns="sex"))


def test_shares_count_weight_and_exposure():
    weight = np.random.default_rng(1).uniform(1, 3, len(X))
    model = fit("poisson", exposure="years", invariance="marginal", weight=weight)
    expected = (weight * X.years).groupby(X.sex).sum()
    np.testing.assert_allclose(model.portfolio_.shares, expected / expected.sum())


def test_a_portfolio_has_the_combinations_that_occur_and_their_shares():
    codes = np.array([[0, 1], [0, 0], [0, 1], [0, 1], [0, 1]], dtype=np.int32)
    numbers = np.array([[9, 2], [9, math.nan], [9, 5], [9, math.nan], [9, 2]], dtype=np.float32)
    weight = np.array([1.0, 2.0, 3.0, 4.0, 0.0])
    portfolio = Portfolio.learn(EncodedTable(codes, numbers), [1, 3], weight)
    assert portfolio.features == (1, 3)
    expected = [[0, math.nan], [1, 2], [1, 5], [1, math.nan]]
    np.testing.assert_array_equal(portfolio.values, expected)
    np.testing.assert_allclose(portfolio.shares, [0.2, 0.1, 0.3, 0.4])


def test_too_many_combinations_are_refused():
    def learn(n):
        codes = np.arange(n, dtype=np.int32)[:, None]
        return Portfolio.learn(EncodedTable(codes, np.empty((n, 0))), [0], np.ones(n))

    assert len(learn(4_096).shares) == 4_096
    with pytest.raises(InvalidInputError, match=r"at most 4096 combinations .* got 4097 in X"):
        learn(4_097)


@pytest.mark.parametrize("name", ["identity", "exp", "sigmoid", "softmax"])
def test_predictions_are_averaged_over_the_portfolio(name):
    n_outputs, link = 3 if name == "softmax" else 1, Link(name)
    model = make_network([2, 3], 2, n_outputs=n_outputs, learn_missing=True)
    x_cat = torch.tensor([[0, 1], [1, 2], [1, 0]])
    x_num = torch.randn(3, 2, generator=torch.Generator().manual_seed(0))
    values = torch.tensor([[0, 7.0], [1, -0.5], [2, 7.0], [0, torch.nan], [2, 1.5]])
    shares = [0.0, 0.5, 0.0, 0.2, 0.3]
    portfolio = Portfolio((1, 2), values, torch.tensor(shares).double())
    expected = 0
    for (code, number), share in zip(values.tolist(), shares, strict=True):
        x_cat[:, 1], x_num[:, 0] = int(code), number
        expected += share * link(model.score(x_cat, x_num).double())
    e_BHF = model.embed_to_score(x_cat, x_num)
    found = link(portfolio.average(model, name, e_BHF))
    torch.testing.assert_close(found, expected.detach(), rtol=1e-6, atol=1e-6)


HALVES, MANY = [0.5, 0.5], torch.arange(4_097.0)
PORTFOLIOS = [  # values, shares, and whether a schema of a category and a number can have them
    ([[0, 0.5], [1, -2.0]], HALVES, True),
    ([[0, 0.5], [1, 0.5], [1, 0.7]], [0.5, 0.0, 0.5], True),
    (torch.stack([MANY * 0, MANY], 1)[:4_096], [1 / 4_096] * 4_096, True),
    (torch.stack([MANY * 0, MANY], 1), [1 / 4_097] * 4_097, False),
    ([[0, 0.5], [1, 0.5]], [0.5, 0.6], False),
    ([[0, 0.5], [1, 0.5]], [1.5, -0.5], False),
    ([[0, 0.5], [1, 0.5]], [math.nan, 1.0], False),
    ([[0, 0.5], [2, 0.5]], HALVES, False),
    ([[0, 0.5], [0.5, 0.5]], HALVES, False),
    ([[0, 0.5], [1, math.inf]], HALVES, False),
    ([[0, 0.5], [1, math.nan]], HALVES, False),  # a missing number is taken for the mean
    ([[0], [1]], HALVES, False),
    ([[0, 0.5], [1, 0.5], [1, 0.7]], HALVES, False),
]


@pytest.mark.parametrize(("values", "shares", "possible"), PORTFOLIOS)
def test_portfolios_that_are_none_of_the_schema(values, shares, possible):
    columns = {"job": ["x", "y", "x"], "sex": ["f", "m", "m"], "age": [1.5, 2.5, 3.5]}
    columns["tenure"] = [0.5, 1.5, None]  # which has an embedding for a missing number
    sensitive, kinds = ["sex", "age", "tenure"], {"age": "numeric", "tenure": "numeric"}
    schema = schema_of(columns, sensitive=sensitive, kinds=kinds, missing_numeric="category")
    values, shares = torch.as_tensor(values).float(), torch.tensor(shares).double()
    values = torch.cat([values, torch.full((len(values), 1), torch.nan)], 1)
    if possible:
        portfolio = Portfolio.restore(values, shares, schema)
        assert portfolio.features == (0, 2, 3)
        assert torch.equal(portfolio.values[:, :2], values[:, :2])
        assert torch.equal(portfolio.shares, shares)
    else:
        with pytest.raises(ValueError, match="portfolio of sensitive values is none of this"):
            Portfolio.restore(values, shares, schema)


def effect_of_proxy(model, X):
    """Coefficient of Z in the line that fits the predictions best."""
    columns = [np.ones(len(X)), X["Z"], X["X1"], X["X2"], X["X3"] == "yes", X["S"] == "yes"]
    design = np.column_stack(columns).astype(float)
    return np.linalg.lstsq(design, model.predict(X), rcond=None)[0][1]


def test_only_the_marginal_form_leaves_the_proxy_its_true_effect():
    """The truth is 0; a model that never sees S gives Z what is due to S."""
    X, y = make_proxy_bias(8_000, random_state=0)
    X = X.to_pandas()
    held_out = make_proxy_bias(4_000, random_state=1)[0].to_pandas()
    # Main effects share a step between S and its proxy for as long as they are trained here.
    settings = {"epochs": 6, "head": (32,), "advanced": {"main_effects": False}}
    models = {
        "aware": (X, {"sensitive": "S", "invariance": None, "car": None}),
        "removed": (X.drop(columns="S"), {}),
        "adapt": (X, {"sensitive": "S", "invariance": "adapt"}),
        "marginal": (X, {"sensitive": "S", "invariance": "marginal"}),
    }
    effects = {
        name: effect_of_proxy(make_model("mse", **settings, **options).fit(table, y), held_out)
        for name, (table, options) in models.items()
    }
    assert abs(effects["aware"]) < 0.05
    assert abs(effects["marginal"]) < 0.05
    assert effects["removed"] > 0.2
    assert effects["adapt"] > 0.2


# Values of a feature


def make_network(*args, **options):
    return FCorrTransformer(
        *args, head=(4,), generator=torch.Generator().manual_seed(0), **options
    ).eval()


@pytest.mark.parametrize(
    ("numbers", "grid"),
    [
        (range(1_600), [100 * i + 49 for i in range(16)]),  # the middles of 16 groups
        ([*range(16)] + [0.0] * 484, range(16)),  # few enough to be all
        ([*range(17)] + [0.0] * 483, [0.0, 1.0]),  # the others are the middle of no group
        ([2.0, math.nan, 1.0], [1.0, 2.0, math.nan]),
    ],
)
def test_numbers_are_exchanged_for_a_few(numbers, grid):
    np.testing.assert_array_equal(number_grid(np.array(numbers, dtype=np.float32)), [*grid])


@pytest.mark.parametrize(
    ("n_knots", "n_numbers"), [(1, 1), (2, 129), (3, 129), (128, 255), (129, 129), (600, 600)]
)
def test_flips_go_to_the_knots_and_evenly_between(n_knots, n_numbers):
    knots = torch.linspace(-1, 1, n_knots) ** 3
    model = make_network([3], 2, knots=[torch.tensor([0.5]), knots])
    schema = schema_of({"c": ["x", "y", "z"], "a": [0.0, 1.0, 4.0], "b": [5.0, 6.0, None]})
    codes, few, values = feature_values(model, schema)
    assert (codes.tolist(), few.tolist()) == ([0, 1, 2], [0.5, 0])
    places = np.linspace(0, n_knots - 1, n_numbers)
    expected = np.interp(places, range(n_knots), knots)
    np.testing.assert_allclose(values, [*expected, 0.0], atol=1e-6)  # last a missing one, the mean


def test_flips_go_to_the_knots_of_all_members_and_to_the_training_range():
    schema = schema_of({"a": [1.0, 2.0, 9.0, None]}, missing_numeric="category")
    knots = [torch.tensor([[-1.0, 0.0]]), torch.tensor([[0.0, 2.0]])]
    pack = Pack([make_network([], 1, knots=each, n_views=1) for each in knots])
    (values,) = feature_values(pack, schema)
    between = [torch.arange(64) / 64 - 1, torch.arange(65) / 32, torch.tensor([torch.nan])]
    torch.testing.assert_close(values, torch.cat(between), equal_nan=True)
    paper = make_network([], 1, numeric_embedding="paper", learn_missing=True)
    labels = [label_value(schema, 0, value) for value in feature_values(paper, schema)[0].tolist()]
    assert labels.pop() is None
    np.testing.assert_allclose(labels, np.linspace(1, 9, 129), atol=1e-5)


def test_places_in_an_order_and_parts_of_dates_are_flipped_to_whole_numbers():
    columns = {"grade": list("AABC"), "number": [0.0, 1.0, 2.0, 3.0]}
    columns["day"] = pa.array([10, 400, 800, 2000], pa.int32()).cast(pa.date32())
    schema = schema_of(columns, kinds={"grade": list("ABC")})
    values = feature_values(make_network([], len(schema.numeric)), schema)
    for j, (feature, each) in enumerate(zip(schema.numeric, values, strict=True)):
        numbers = [label_value(schema, j, value) for value in each.tolist()[:-1]]
        low, high = feature.mean - 2 * feature.scale, feature.mean + 2 * feature.scale
        if feature.name == "number":
            assert numbers == pytest.approx(np.linspace(low, high, 129), abs=1e-4)
        elif feature.name != "day.days":  # of so many not each is tried
            assert numbers == [*range(round(low), round(high) + 1)]
        assert feature.name == "number" or all(map(float.is_integer, numbers))


@pytest.mark.parametrize(
    ("feature", "value", "label"),
    [
        (0, 1.0, "y"),
        (1, math.nan, None),
        (1, -1e-9, 0.0),
        (2, 0.1234321, 674.0593),
        (3, 0.1234321, 0.002246864),
        (2, float(np.float32(499.005)), 300_003.0),  # as whole as it was, however far out
    ],
)
def test_values_are_called_as_in_the_table(feature, value, label):
    columns = {"a": [-1.0, 1.0], "b": [0.0, 1200.0], "c": [0.0, 0.004], "s": ["x", "y"]}
    assert repr(label_value(schema_of(columns), feature, value)) == repr(label)  # not -0.0


# What CAR does

CAR_ALONE = {"invariance": None, "sensitive": "group", "n_members": 1, "random_state": 0}
CAR_ALONE |= {"epochs": 12, "learning_rate": 0.01, "head": (16, 16)}
PAPERS = {"main_effects": False}  # in so few steps CAR closes one number, not eight views


@pytest.fixture(scope="module")
def direct_bias():
    """A table in which the sensitive column moves the target itself."""
    rng = np.random.default_rng(0)
    n = 3_000
    group = rng.integers(3, size=n)
    numbers = rng.normal(size=(n, 3))
    numbers[:, 0] += 0.5 * group  # a proxy
    score = numbers @ [1.0, -1.0, 0.5] + 1.5 * group
    X = pd.DataFrame(numbers, columns=["x0", "x1", "x2"])
    return X.assign(group=np.array(["a", "b", "c"])[group]), score + rng.normal(size=n)


FORMS = [
    {"main_effects": True},
    {"residual": False, "n_layers": 2},
    {"early_stopping": 2, "main_effects": False},  # which does not stop before CAR has worked
]


@pytest.fixture(scope="module")
def binary(direct_bias):
    """The same table with two classes, and how far a model that makes use of group goes."""
    X, score = direct_bias
    y = (score > np.median(score)).astype(int)
    plain = FCorrClassifier(**CAR_ALONE, car=None).fit(X, y)
    assert average_individual_fairness(flip_scores(plain.predict_proba, X, "group")) > 0.5
    return X, y


@pytest.mark.parametrize("advanced", FORMS, ids=str)
def test_car_takes_the_direct_effect_away(binary, advanced):
    X, y = binary
    fair = FCorrClassifier(**CAR_ALONE, advanced=advanced).fit(X, y)
    flips = flip_scores(fair.predict_proba, X, "group")
    assert average_individual_fairness(flips) < 1e-3
    assert flip_changes(flips)["max"] < 1e-2
    assert roc_auc_score(y, fair.predict_proba(X)[:, 1]) > 0.85


def test_of_numbers_and_of_several_classes(direct_bias):
    X, y = direct_bias
    fair = FCorrRegressor(**CAR_ALONE).fit(X, y)
    assert fair.score(X, y) > 0.5
    assert flip_changes(flip_scores(fair.predict, X, "group"))["max"] < 1e-2
    y = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    fair = FCorrClassifier(**CAR_ALONE, advanced=PAPERS).fit(X, y)
    flips = [fair.predict_proba(X.assign(group=g)) for g in ("a", "b", "c")]
    assert np.ptp(flips, axis=0).max() < 1e-3
    assert fair.score(X, y) > 0.6


def test_of_a_continuous_column():
    X = make_people(600)
    y = 0.2 * (X.age - 40) + make_targets(X)["mse"]
    ages = np.quantile(X.age, [0.02, 0.3, 0.5, 0.7, 0.98])
    changes = []
    for car in (None, 1e6):
        settings = CAR_ALONE | {"sensitive": "age", "epochs": 20, "dropout": 0.0}
        model = FCorrRegressor(**settings, car=car, advanced=PAPERS).fit(X, y)
        changes.append(np.ptp([model.predict(X.assign(age=age)) for age in ages], axis=0).max())
    assert changes[0] > 3
    assert changes[1] < changes[0] / 10


def test_invariance_to_each_is_invariance_to_every_combination():
    rng = np.random.default_rng(4)
    X = make_people(600).assign(region=rng.choice(list("abcd"), 600)).drop(columns="job")
    effect = (X.sex == "m") + (X.region == "a") + (X.age - 40) / 10 + np.log(X.income)
    y = (effect + rng.normal(size=600) > 0.7).astype(int)
    settings = CAR_ALONE | {"sensitive": ["sex", "region"], "head": (8,), "learning_rate": "auto"}
    model = FCorrClassifier(**settings, car=1e4).fit(X, y)

    def change(*flips):
        return np.ptp([model.predict_proba(X.assign(**f))[:, 1] for f in flips], axis=0).max()

    assert change({"sex": "f"}, {"sex": "m"}) < 0.06
    assert change(*({"region": region} for region in "abcd")) < 0.06
    assert change(*({"sex": s, "region": r} for s, r in itertools.product("fm", "abcd"))) < 0.08
