"""What sensitive features are exchanged for, what CAR does to a model, what is read off it."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from fcorr import FCorrClassifier, FCorrRegressor, InvalidInputError
from fcorr.data import infer_schema, read_table
from fcorr.data.encode import EncodedTable
from fcorr.estimators.invariance import Portfolio, feature_values, label_value, number_grid
from fcorr.metrics import average_individual_fairness, flip_changes, flip_scores, roc_auc_score
from fcorr.nn.fcorr import FCorrTransformer, Pack
from paper.generators import make_bank_fraud, make_claims, make_indirect_bias

SMALL = {"epochs": 12, "learning_rate": 0.01, "head": (16, 16), "random_state": 0}
CAR_ALONE = SMALL | {"invariance": None}

# Values of a feature


def schema_of(columns, **options):
    return infer_schema(read_table(pa.table(columns)), **options)


def make_network(*args, **options):
    return FCorrTransformer(
        *args, head=(4,), generator=torch.Generator().manual_seed(0), **options
    ).eval()


@pytest.mark.parametrize(
    ("numbers", "grid"),
    [
        (range(1_600), [100 * i + 49 for i in range(16)]),  # the middles of 16 groups
        ([*range(16)] + [0.0] * 484, range(16)),  # few enough to be all
        ([5.0] + [0.0] * 99, [0.0, 5.0]),
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


# Portfolios


def test_a_portfolio_has_the_combinations_that_occur_and_their_shares():
    codes = np.array([[0, 1], [0, 0], [0, 1], [0, 1], [0, 1]], dtype=np.int32)
    numbers = np.array([[9, 2], [9, math.nan], [9, 5], [9, math.nan], [9, 2]], dtype=np.float32)
    weight = np.array([1.0, 2.0, 3.0, 4.0, 0.0])
    portfolio = Portfolio.learn(EncodedTable(codes, numbers), [1, 3], weight)
    assert portfolio.features == (1, 3)
    expected = [[0, math.nan], [1, 2], [1, 5], [1, math.nan]]
    np.testing.assert_array_equal(portfolio.values, expected)
    np.testing.assert_allclose(portfolio.shares, [0.2, 0.1, 0.3, 0.4])


def test_numbers_count_to_the_nearest_of_the_grid():
    numbers = np.arange(1_600, dtype=np.float32)[:, None] / 2
    encoded = EncodedTable(np.empty((1_600, 0), dtype=np.int32), numbers)
    portfolio = Portfolio.learn(encoded, [0], np.ones(1_600))
    np.testing.assert_array_equal(portfolio.values[:, 0], np.arange(16) * 50 + 24.5)
    np.testing.assert_allclose(portfolio.shares, np.full(16, 1 / 16))


def test_too_many_combinations_are_refused():
    for n in (4_096, 4_097):
        codes = np.arange(n, dtype=np.int32)[:, None]
        encoded = EncodedTable(codes, np.empty((n, 0), dtype=np.float32))
        if n == 4_096:
            assert len(Portfolio.learn(encoded, [0], np.ones(n)).shares) == n
    with pytest.raises(InvalidInputError, match=r"at most 4096 combinations .* got 4097 in X"):
        Portfolio.learn(encoded, [0], np.ones(n))


PREDICT = {
    "identity": lambda outputs: outputs,
    "exp": torch.exp,
    "sigmoid": torch.sigmoid,
    "softmax": lambda outputs: torch.softmax(outputs, 1),
}


@pytest.mark.parametrize("link", PREDICT)
def test_predictions_are_averaged_over_the_portfolio(link):
    model = make_network([2, 3], 2, n_outputs=3 if link == "softmax" else 1, learn_missing=True)
    x_cat = torch.tensor([[0, 1], [1, 2], [1, 0]])
    x_num = torch.randn(3, 2, generator=torch.Generator().manual_seed(0))
    values = torch.tensor([[0, 7.0], [1, -0.5], [2, 7.0], [0, torch.nan], [2, 1.5]])
    shares = [0.0, 0.5, 0.0, 0.2, 0.3]
    portfolio = Portfolio((1, 2), values, torch.tensor(shares).double())
    expected = 0
    for (code, number), share in zip(values.tolist(), shares, strict=True):
        x_cat[:, 1], x_num[:, 0] = int(code), number
        expected += share * PREDICT[link](model.score(x_cat, x_num).double())
    found = PREDICT[link](portfolio.outputs(model, link, x_cat, x_num))
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
    ([[0, 0.5], [math.nan, 0.5]], HALVES, False),
    ([[0, 0.5], [1, math.inf]], HALVES, False),
    ([[0, 0.5], [1, math.nan]], HALVES, False),  # a missing number is taken for the mean
    ([[0], [1]], HALVES, False),
    ([[0, 0.5]], HALVES, False),
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


# What CAR does


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


@pytest.fixture(scope="module")
def binary(direct_bias):
    """The same table with two classes, and a model that makes use of the sensitive column."""
    X, score = direct_bias
    y = (score > np.median(score)).astype(int)
    return X, y, FCorrClassifier(n_members=1, sensitive="group", car=None, **CAR_ALONE).fit(X, y)


FORMS = [
    {"main_effects": True},
    {"main_effects": False},
    {"residual": False},
    {"n_layers": 2},
]


@pytest.mark.parametrize("advanced", FORMS, ids=str)
def test_car_takes_the_direct_effect_away(binary, advanced):
    X, y, plain = binary
    settings = CAR_ALONE | {"epochs": 12}
    fair = FCorrClassifier(n_members=1, sensitive="group", advanced=advanced, **settings).fit(X, y)
    assert average_individual_fairness(flip_scores(plain.predict_proba, X, "group")) > 0.5
    flips = flip_scores(fair.predict_proba, X, "group")
    assert average_individual_fairness(flips) < 1e-3
    assert flip_changes(flips)["max"] < 1e-3
    assert roc_auc_score(y, fair.predict_proba(X)[:, 1]) > 0.85


def test_early_stopping_does_not_stop_before_car_has_worked(binary):
    X, y, _ = binary
    fair = FCorrClassifier(
        sensitive="group", advanced={"early_stopping": 2, "main_effects": False}, **CAR_ALONE
    ).fit(X, y)
    assert flip_changes(flip_scores(fair.predict_proba, X, "group"))["max"] < 1e-2


def test_regression(direct_bias):
    X, y = direct_bias
    plain = FCorrRegressor(n_members=1, sensitive="group", car=None, **CAR_ALONE).fit(X, y)
    fair = FCorrRegressor(n_members=1, sensitive="group", **CAR_ALONE).fit(X, y)
    assert plain.score(X, y) > 0.75
    assert flip_changes(flip_scores(plain.predict, X, "group"))["max"] > 1
    assert flip_changes(flip_scores(fair.predict, X, "group"))["max"] < 1e-2


def test_multi_class(direct_bias):
    X, score = direct_bias
    y = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))
    paper = {"main_effects": False}  # in so few steps CAR closes one number, not eight views
    fair = FCorrClassifier(sensitive="group", advanced=paper, **CAR_ALONE).fit(X, y)
    flips = [fair.predict_proba(X.assign(group=g)) for g in ("a", "b", "c")]
    assert np.ptp(flips, axis=0).max() < 1e-3
    assert fair.score(X, y) > 0.6


@pytest.mark.filterwarnings("ignore:Columns that take one value")
def test_several_sensitive_columns():
    X, y = make_bank_fraud(4_000, fraud_rate=0.2, random_state=0)
    X = X.to_pandas()
    sensitive = ["customer_age", "employment_status"]
    fair = FCorrClassifier(
        n_members=1,
        sensitive=sensitive,
        invariance=None,
        epochs=15,
        random_state=0,
        head=(32,),
    ).fit(X, y)
    assert fair.schema_.sensitive == tuple(sensitive)
    assert fair.attention(X).names[:2] == tuple(sensitive)
    for column in sensitive:
        assert flip_changes(flip_scores(fair.predict_proba, X, column))["max"] < 2e-2


def test_weight_by_the_papers_rule_is_a_power_of_ten(direct_bias):
    model = FCorrRegressor(
        n_members=1, sensitive="group", invariance=None, car="paper", epochs=1, random_state=0
    )
    model.fit(*direct_bias)
    exponent = np.log10(model.history_.car_weight)
    assert exponent == round(exponent)


def test_attention_is_the_mean_of_the_rows_matrices():
    X, y = make_indirect_bias(300, random_state=0)
    X = X.to_pandas()
    X = X[["X3", "X1", "X2"]]
    model = FCorrClassifier(n_members=1, sensitive="X1", epochs=1, random_state=0).fit(X, y)
    matrix = model.attention(X)
    assert matrix.names == ("X1", "X3", "X2")
    with torch.no_grad():
        codes = torch.tensor([[c == "yes" for c in X[name]] for name in matrix.names]).T.int()
        e = model.model_.embed(codes, torch.zeros(300, 0))[:, 0].double().numpy()
    z = e / np.sqrt(np.mean(e**2, axis=1, keepdims=True) + 1e-5)  # LayerNorm, the mean left in
    expected = np.mean([np.outer(row, row) / np.sqrt(3) for row in z], axis=0)
    np.testing.assert_allclose(matrix.values, expected, rtol=1e-6)
    assert matrix["X1", "X2"] == matrix.values[0, 2]
    assert "<th>X3</th>" in matrix._repr_html_()


def test_sample_weight_decides():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.r_[np.zeros(200), np.ones(200)]
    weight = np.r_[np.full(200, 9.0), np.ones(200)]
    model = FCorrRegressor(n_members=1, epochs=10, random_state=0, dropout=0.0)
    assert model.fit(X, y, sample_weight=weight).predict(X).mean() == pytest.approx(0.1, abs=0.08)
    assert model.fit(X, y).predict(X).mean() == pytest.approx(0.5, abs=0.08)


@pytest.mark.filterwarnings("ignore:Columns that take one value")
def test_the_claims_table_fits():
    X, y = make_claims(600, claim_rate=0.3, random_state=0)
    model = FCorrRegressor(
        n_members=1, sensitive="credit_score", epochs=1, head=(8,), random_state=0
    ).fit(X, y)
    assert model.n_features_in_ == 581
    assert np.isfinite(model.predict(X)).all()
