"""What is read off a model, against independent ways of computing it."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss, mean_poisson_deviance

from fcorr import FCorrClassifier, FCorrRegressor, InvalidInputError
from fcorr.certify import Link
from fcorr.data.encode import EncodedTable
from fcorr.estimators.reading import (
    divergence,
    explained_shares,
    jackknife_error,
    mean_output,
    shapley_values,
    without_bias,
)
from fcorr.metrics.sharing import draw_orders
from fcorr.nn.fcorr import FCorrTransformer

N = 300


def make_table(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "age": rng.uniform(18, 80, n).round(),
            "job": rng.choice(["baker", "cook", "smith"], n, p=[0.6, 0.3, 0.1]),
            "grade": rng.choice(["low", "mid", "high"], n),
            "income": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.exponential(1e4, n)),
        }
    )
    score = (X["age"] - 50) / 15 + 2.0 * (X["job"] == "cook") + rng.normal(size=n)
    return X, score.to_numpy()


KINDS = {"grade": ["low", "mid", "high"]}
SMALL = {
    "n_members": 2,
    "epochs": 3,
    "random_state": 0,
    "kinds": KINDS,
    "advanced": {"missing_numeric": "category"},
}


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(scope="module")
def classifier(table):
    X, score = table
    return FCorrClassifier(sensitive="sex", **SMALL).fit(X, score > 0)


@pytest.fixture(scope="module")
def regressor(table):
    X, score = table
    return FCorrRegressor(**SMALL).fit(X, 1_000 + 250 * score)


@pytest.fixture(scope="module")
def counts(table):
    X, score = table
    rng = np.random.default_rng(1)
    years = rng.uniform(0.2, 1, len(X))
    model = FCorrRegressor(objective="poisson", exposure="years", **SMALL)
    return model.fit(X.assign(years=years), rng.poisson(years * np.exp(score / 4)))


@pytest.fixture(scope="module")
def classes(table):
    X, score = table
    return FCorrClassifier(**SMALL).fit(X, np.digitize(score, [-1, 1]))


def features_of(model, X):
    """Return the main effects of rows through the network itself: ``(n_rows, n_features)``."""
    encoded = model._encode_known(X)
    rows = torch.from_numpy(encoded.codes), torch.from_numpy(encoded.numbers)
    with torch.no_grad():
        effects = [
            m.views.main_effects(rows[0], m.locate(rows[1]))[:, 0] for m in model.model_.members
        ]
        return np.mean([effect.double().numpy() for effect in effects], 0)


# ------------------------------------------------------------------------------ main effects


@pytest.mark.parametrize("model", ["classifier", "regressor", "counts"])
def test_tables_are_the_networks_main_effects(model, table, request):
    model, X = request.getfixturevalue(model), table[0]
    X = X.assign(years=1.0)
    unit = getattr(model, "target_scale_", 1.0) if model._link().name == "identity" else 1.0
    through_network = unit * features_of(model, X)
    effects = model.main_effects()
    assert list(effects) == list(model.schema_.feature_names)
    for j, name in enumerate(model.schema_.feature_names):
        found, column = effects[name], X[name]
        if name in ("age", "income"):
            known = np.array([v for v in found.values if v is not None])
            expected = np.interp(column, known, found.effect[: len(known)])
            if name == "income":
                assert found.values[-1] is None
                expected = np.where(column.isna(), found.effect[-1], expected)
        else:
            expected = column.map(dict(zip(found.values, found.effect, strict=True)))
        scale = max(1.0, unit)
        np.testing.assert_allclose(through_network[:, j], expected, atol=1e-5 * scale)
        assert np.average(expected) == pytest.approx(0, abs=1e-5 * scale)


def test_effects_have_mean_0_over_weighted_rows(table):
    X, score = table
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    model = FCorrRegressor(**SMALL).fit(X, score, sample_weight=weight)
    effect = model.main_effects()["job"]
    of_rows = X["job"].map(dict(zip(effect.values, effect.effect, strict=True)))
    # In single precision, as the model has them.
    assert np.average(of_rows, weights=weight) == pytest.approx(0, abs=1e-7)
    assert abs(np.average(of_rows)) > 1e-5


def test_rows_and_credibility(regressor, table):
    X, effects = table[0], regressor.main_effects()
    counts = X["job"].value_counts()
    chosen = [recipe["credibility"] for recipe in regressor.recipes_ if recipe["chosen"]]
    for value, rows, credibility in zip(
        effects["job"].values, effects["job"].rows, effects["job"].credibility, strict=True
    ):
        assert rows == counts[value]
        assert credibility == pytest.approx(rows / (rows + np.mean(chosen)))
    grade = effects["grade"]
    assert grade.values == ("low", "mid", "high")
    assert dict(zip(grade.values, grade.rows, strict=True)) == X["grade"].value_counts().to_dict()
    assert np.isnan(grade.credibility).all()
    # Every age has a knot of its own, or shares its rows between its two neighbours.
    assert effects["age"].rows.sum() == pytest.approx(N)
    assert effects["income"].rows[-1] == X["income"].isna().sum()


def test_interval_is_that_of_the_jackknife_over_bags(regressor):
    model, effect = regressor, regressor.main_effects()["job"]
    n_chosen = sum(recipe["chosen"] for recipe in model.recipes_)
    first, second = (
        np.mean(
            [
                m.views.main_values()[2:5, 0].detach().double()  # after the two of sex
                for m in model.model_.members[k :: len(model.model_.members) // n_chosen]
            ],
            axis=0,
        )
        for k in range(2)
    )
    # Of two bags: √(½ · 2 · (d/2)²), where d is their difference.
    error = model.target_scale_ * np.abs(first - second) / 2
    np.testing.assert_allclose(effect.upper - effect.effect, 2 * error, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(effect.effect - effect.lower, 2 * error, rtol=1e-4, atol=1e-5)


def test_jackknife_gives_the_standard_error_of_a_mean_and_its_square_without_bias():
    x = np.random.default_rng(0).normal(size=(12, 3))
    left_out = (x.sum(0) - x) / 11
    variance = x.var(0, ddof=1) / 12  # of the mean
    np.testing.assert_allclose(jackknife_error(left_out), np.sqrt(variance))
    assert np.isnan(jackknife_error(left_out[:1])).all()
    found = without_bias(np.square(np.concatenate([x.mean(0, keepdims=True), left_out])))
    np.testing.assert_allclose(found, np.square(x.mean(0)) - variance)
    assert without_bias(np.array([[2.0, 3.0]])).tolist() == [2, 3]


def test_units_and_relativities(classifier, regressor, counts):
    assert classifier.main_effects().unit == "log-odds"
    assert regressor.main_effects().unit == "unit of y"
    assert regressor.main_effects()["age"].relativity is None
    effects = counts.main_effects()
    np.testing.assert_array_equal(effects["age"].relativity, np.exp(effects["age"].effect))
    assert "years" not in effects
    assert {"feature", "value", "relativity"} < set(effects.to_pandas().columns)


@pytest.mark.parametrize("invariance", ["adapt", "marginal"])
def test_sensitive_features_of_an_exact_model_have_none(invariance, table):
    X, score = table
    model = FCorrClassifier(sensitive="sex", invariance=invariance, **SMALL).fit(X, score > 0)
    X = X.drop(columns="sex")
    assert not model.main_effects()["sex"].effect.any()
    assert model.importance(X)["sex"]["total"] == 0
    assert model.importance(X)["sex"]["main"] == 0
    assert model.feature_importances_[0] == 0
    explained = model.explain(X[:20])
    assert not explained.contribution[:, explained.names.index("sex")].any()
    total = explained.intercept + explained.contribution.sum(1)
    np.testing.assert_allclose(total, model.decision_function(X[:20]), atol=1e-6)


def test_several_classes_have_a_table_each(classes, table):
    X = table[0]
    effects = classes.main_effects()
    assert effects.classes == (0, 1, 2)
    assert effects["job"].effect.shape == (3, 3)
    frame = effects.to_pandas()
    assert set(frame["class"]) == {0, 1, 2}
    of_cook = frame[(frame.feature == "job") & (frame.value == "cook")]
    np.testing.assert_array_equal(of_cook["effect"], effects["job"].effect[1])
    explained = classes.explain(X[:10])
    assert explained.main.shape == (10, 5, 3)
    total = explained.intercept + explained.contribution.sum(1)
    np.testing.assert_allclose(total, classes.decision_function(X[:10]), atol=1e-6)
    with pytest.raises(InvalidInputError, match=r"one of the classes \(0, 1, 2\), got None"):
        explained.row(0)
    assert len(explained.row(0, 2)) == 5
    assert len(explained.to_pandas()) == 10 * 5 * 3
    assert classes.importance(X).total.max() > 0


def test_rated_levels_are_listed_by_frequency():
    rng = np.random.default_rng(0)
    n, weights = 3_000, 1 / np.arange(1, 151)
    brand = rng.choice(150, n, p=weights / weights.sum())
    X = pd.DataFrame({"brand": [f"b{i}" for i in brand], "x": rng.normal(size=n)})
    y = rng.normal(size=150)[brand] + X["x"]
    model = FCorrRegressor(n_members=1, epochs=1, random_state=0).fit(X, y)
    column = model.schema_["brand"]
    assert column.kind == "rated"
    effect = model.main_effects()["brand"]
    assert len(effect.values) == 50
    assert (np.diff(effect.rows) <= 0).all()
    assert effect.rows[0] == max(column.counts)
    place = column.categories.index(effect.values[0])
    assert effect.credibility[0] == column.credibilities[place]
    only = pd.DataFrame({"brand": [effect.values[0]], "x": [0.0]})
    names = model.schema_.feature_names
    expected = model.target_scale_ * features_of(model, only)[0, names.index("brand")]
    assert effect.effect[0] == pytest.approx(expected, abs=1e-5)


# ------------------------------------------------------------------------------ importance


def test_shares_by_nested_loops():
    rng = np.random.default_rng(0)
    codes, numbers = rng.integers(0, 3, (40, 1)).astype(np.int32), rng.normal(size=(40, 2))
    encoded = EncodedTable(codes, numbers)

    def score(codes, numbers):  # by two models, of two outputs each
        c, a, b = codes[:, 0], numbers[:, 0], numbers[:, 1]
        one = np.stack([c * a, np.sin(b)], axis=1)
        return np.stack([one, np.stack([a + b, 0 * a], axis=1)], axis=1)

    effects = rng.normal(size=(40, 2, 2, 3))
    main, total = explained_shares(
        lambda rows: score(rows.codes, rows.numbers),
        encoded,
        "identity",
        effects=effects,
        seed=3,
        n_exchanges=39,
    )
    f = score(codes, numbers)
    mains, squares = np.zeros((2, 2, 3))
    for i in range(40):
        for k in set(range(40)) - {i}:  # all other rows: as many exchanges as there are
            for j in range(3):
                c, x = codes[i : i + 1].copy(), numbers[i : i + 1].copy()
                if j == 0:
                    c[0, 0] = codes[k, 0]
                else:
                    x[0, j - 1] = numbers[k, j - 1]
                squares[:, j] += np.square(score(c, x)[0] - f[i]).sum(1) / 2 / (40 * 39)
                moved = effects[k, ..., j] - effects[i, ..., j]
                mains[:, j] += np.square(moved).sum(1) / 2 / (40 * 39)
    variance = f.var(0, ddof=1).sum(1)
    np.testing.assert_allclose(total, squares / variance[:, None], rtol=1e-6)
    np.testing.assert_allclose(main, mains / variance[:, None], rtol=1e-6)
    for each in explained_shares(lambda rows: np.ones((40, 1, 1)), encoded, "sigmoid", seed=0):
        assert each.tolist() == [[0.0] * 3]  # of a constant


@pytest.mark.parametrize("link", ["sigmoid", "softmax", "exp", "identity"])
def test_divergence_is_half_the_deviance(link):
    """Against scikit-learn's losses of the two predictions, averaged over what may come about."""
    rng = np.random.default_rng(0)
    one, other = torch.from_numpy(rng.normal(size=(2, 5, 3 if link == "softmax" else 1)))
    found = divergence(link, one, other).numpy()
    f, g = (Link(link)(each).numpy() for each in (one, other))
    if link == "identity":
        expected = np.square(f - g)[:, 0] / 2
    elif link == "exp":
        expected = [mean_poisson_deviance(a, b) / 2 for a, b in zip(f, g, strict=True)]
    else:
        if link == "sigmoid":
            f, g = np.hstack([1 - f, f]), np.hstack([1 - g, g])
        classes = list(range(f.shape[1]))
        expected = [
            sum(
                p[k] * (log_loss([k], [q], labels=classes) - log_loss([k], [p], labels=classes))
                for k in classes
            )
            for p, q in zip(f, g, strict=True)
        ]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("link", ["sigmoid", "softmax", "exp", "identity"])
def test_mean_output_gives_the_mean_prediction(link):
    outputs = torch.from_numpy(np.random.default_rng(0).normal(size=(50, 2, 3)))
    mean = Link(link)(mean_output(link, outputs))
    torch.testing.assert_close(mean, Link(link)(outputs).mean(0, keepdim=True))


def test_significance_of_a_pack_is_without_bias(classifier, table):
    """By its definition, from the main effects of the members of each bag, in plain numpy."""
    encoded = classifier._encode_known(table[0])
    rows = torch.from_numpy(encoded.codes), torch.from_numpy(encoded.numbers)
    n_bags, members = classifier._n_bags, classifier.model_.members
    assert n_bags > 1
    with torch.no_grad():
        effects = [m.views.main_effects(rows[0], m.locate(rows[1]))[:, 0].double() for m in members]

    def squares(some):
        return np.square(np.mean(some, axis=0)).mean(0)

    bags = np.mean([squares(effects[k::n_bags]) for k in range(n_bags)], axis=0)
    expected = n_bags * squares(effects) - (n_bags - 1) * bags
    expected /= squares(effects).mean() * math.sqrt(len(expected))
    np.testing.assert_allclose(classifier.significance_, expected, rtol=1e-4, atol=1e-7)
    significance, matrix = classifier.feature_significance(), classifier.attention(table[0])
    assert significance["sex"] == 0 < significance["age"]  # what is ignored has none
    assert matrix.diagonal() == pytest.approx(significance)
    assert not matrix.values[matrix.names.index("sex")].any()


def test_importance_of_a_pack(classifier, table):
    X = table[0]
    found = classifier.importance(X)
    assert list(found.total) == sorted(found.total, reverse=True)
    assert (found.lower <= found.total).all()
    assert (found.total <= found.upper).all()
    significance = classifier.feature_significance()
    expected = pd.Series(found.total).corr(
        pd.Series([significance[name] for name in found.names]), method="spearman"
    )
    assert found.agreement == pytest.approx(expected)
    assert found.to_pandas().loc["age", "total"] == found["age"]["total"]
    again = classifier.importance(X)
    np.testing.assert_array_equal(found.total, again.total)
    assert classifier.importance(X, n_rows=50).n_rows == 50


def test_importance_is_what_permutation_finds_if_the_model_is_right(classifier, table):
    """Against log losses of public predictions on exchanged rows, all others in place of a few."""
    X = table[0][:60]

    def predict(X):
        return classifier.predict_proba(X)[:, 1]

    def loss(truth, p):
        return -np.mean(truth * np.log(p) + (1 - truth) * np.log(1 - p))

    p = predict(X)
    permuted = [loss(p, predict(X.assign(age=np.roll(X["age"], k)))) for k in range(1, 60)]
    grown, known = np.mean(permuted) - loss(p, p), loss(p, p.mean()) - loss(p, p)
    assert classifier.importance(X)["age"]["total"] == pytest.approx(grown / known / 2, rel=0.3)


def test_noise_is_in_the_last_third():
    rng = np.random.default_rng(0)
    n = 600
    X = pd.DataFrame(rng.normal(size=(n, 9)), columns=[f"x{i}" for i in range(6)] + list("abc"))
    X["c"] = rng.choice(list("uvw"), n)
    signal = X["x0"] + X["x1"].abs() + X["x2"] * X["x3"] + X["x4"] - (X["x5"] > 0)
    y = signal + 0.3 * rng.normal(size=n)
    model = FCorrRegressor(n_members=1, epochs=15, random_state=0).fit(X, y)
    assert set(model.importance(X).names[-3:]) == set("abc")
    order = np.argsort(model.feature_importances_)
    assert set(X.columns[order[:3]]) == set("abc")


def test_importances_are_of_the_columns_of_a_table(table):
    X, score = table
    rng = np.random.default_rng(0)
    dates = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), unit="D")
    X = X.assign(day=dates, years=rng.uniform(0.5, 1, N))[["years", "job", "day", "age"]]
    model = FCorrRegressor(objective="poisson", exposure="years", n_members=1, epochs=1)
    model.fit(X, rng.poisson(np.exp(score / 4)))
    total = dict(zip(model.schema_.feature_names, model.importance_, strict=True))
    found = dict(zip(X.columns, model.feature_importances_, strict=True))
    parts = [value for name, value in total.items() if name.startswith("day.")]
    assert len(parts) > 1
    assert found == pytest.approx(
        {"years": 0, "job": total["job"], "day": sum(parts), "age": total["age"]}
    )
    with pytest.raises(NotFittedError):
        FCorrRegressor().feature_importances_  # noqa: B018


# ------------------------------------------------------------------------------ rows


def exact_shapley(score, e_BHF):
    """Weigh what a feature adds to every set of others, all 2^p of them."""
    n_features = e_BHF.shape[2]

    def of(features):
        kept = torch.zeros_like(e_BHF)
        kept[:, :, list(features)] = e_BHF[:, :, list(features)]
        return score(kept)

    values = []
    for j in range(n_features):
        others, total = [i for i in range(n_features) if i != j], 0
        for size in range(n_features):
            weight = 1 / (n_features * math.comb(n_features - 1, size))
            for chosen in combinations(others, size):
                total = total + weight * (of((*chosen, j)) - of(chosen))
        values.append(total)
    return torch.stack(values, dim=1)


@pytest.fixture
def network():
    generator = torch.Generator().manual_seed(0)
    network = FCorrTransformer(
        [3, 2], n_numeric=2, head=(8,), n_views=3, n_outputs=2, generator=generator
    )
    for parameter in network.parameters():
        parameter.data.normal_(0, 1, generator=generator)
    return network.double().eval()


@torch.no_grad()
def test_shapley_values_are_exact_over_all_orders(network):
    from itertools import permutations

    e_BHF = torch.randn(5, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    everything = [o for o in permutations(range(4)) if o[0] < o[-1]]
    orders = np.array([order for o in everything for order in (o, o[::-1])])
    found, _ = shapley_values(network.outputs, e_BHF, orders)
    expected = exact_shapley(network.outputs, e_BHF)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@torch.no_grad()
def test_sampled_shapley_values_lie_within_their_errors(network):
    e_BHF = torch.randn(40, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = exact_shapley(network.outputs, e_BHF)
    found, errors = shapley_values(network.outputs, e_BHF, draw_orders(4, 400, seed=0))
    whole = network.outputs(e_BHF) - network.outputs(torch.zeros_like(e_BHF))
    np.testing.assert_allclose(found.sum(1), whole, atol=1e-12)
    ratio = ((found - expected) / errors).square().mean().sqrt()
    # Orders are the same for all rows, so that the rows' errors are not independent.
    assert 0.3 < ratio < 2


def test_orders_come_with_their_reverse():
    orders = draw_orders(5, 6, seed=0)
    np.testing.assert_array_equal(orders[::2], orders[1::2, ::-1])
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(5), (6, 1)))


@pytest.mark.parametrize("model", ["classifier", "regressor", "counts"])
def test_contributions_add_up(model, table, request):
    model, X = request.getfixturevalue(model), table[0][:30].assign(years=0.5)
    found = model.explain(X)
    if isinstance(model, FCorrClassifier):
        expected = model.decision_function(X)
    else:
        rate = model.predict_rate(X)
        expected = np.log(rate) if model.objective_ == "poisson" else rate
    total = found.intercept + found.main.sum(1) + found.correction.sum(1)
    np.testing.assert_allclose(total, found.output, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(total, expected, rtol=1e-9, atol=1e-6)
    unit = model.target_scale_ if model._link().name == "identity" else 1.0
    np.testing.assert_allclose(found.main, unit * features_of(model, X), rtol=1e-6, atol=1e-6)
    one = model.explain(X[7:8])
    np.testing.assert_array_equal(one.correction[0], found.correction[7])
    sizes = [abs(value) for _, value in found.row(7)]
    assert sizes == sorted(sizes, reverse=True)
    assert dict(found.row(7))["age"] == found.contribution[7, found.names.index("age")]
    frame = found.to_pandas()
    assert len(frame) == 30 * len(found.names)
    assert frame["contribution"].sum() == pytest.approx((found.output - found.intercept).sum())


def test_explanations_in_parts(classifier, table, monkeypatch):
    X = table[0]
    whole = classifier.explain(X, n_samples=4)
    monkeypatch.setattr("fcorr.training.rows._CHUNK_NUMBERS", 2**11)
    parts = classifier.explain(X, n_samples=4)
    np.testing.assert_array_equal(whole.correction, parts.correction)


# ------------------------------------------------------------------------------ significance


def test_attention_is_the_products_of_main_effects(table):
    X, score = table
    model = FCorrClassifier(**SMALL | {"n_members": 1}).fit(X, score > 0)
    effects = model.explain(X, n_samples=4).main
    z = effects / np.sqrt(np.square(effects).mean())
    names = model.schema_.feature_names
    found = model.attention(X).to_pandas().loc[list(names), list(names)]
    np.testing.assert_allclose(found, z.T @ z / len(z) / math.sqrt(len(names)), rtol=1e-5)
    assert model.feature_significance() == pytest.approx(model.attention(X).diagonal())
    # Nor has a single network, which no other stands beside, an interval.
    assert np.isnan(model.main_effects()["job"].lower).all()
    assert np.isnan(model.importance(X).lower).all()


def test_attention_of_the_papers_model_is_of_what_it_attends_with(table):
    X, score = table
    options = SMALL | {"n_members": 1, "advanced": {"main_effects": False}}
    model = FCorrClassifier(**options).fit(X, score > 0)
    encoded = model._encode_known(X)
    rows = torch.from_numpy(encoded.codes), torch.from_numpy(encoded.numbers)
    with torch.no_grad():
        z = model.model_.normalized_embedding(*rows).double().numpy()
    expected = np.mean(z[:, :, None] * z[:, None, :], axis=0) / math.sqrt(z.shape[1])
    names = list(model.schema_.feature_names)
    found = model.attention(X).to_pandas().loc[names, names]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert model.feature_importances_.max() > 0
    assert set(model.feature_significance()) == set(X.columns)
    for method, arguments in {"main_effects": (), "importance": (X,), "explain": (X,)}.items():
        with pytest.raises(InvalidInputError, match=rf"{method} needs .* Fit it without that"):
            getattr(model, method)(*arguments)


def test_a_feature_with_a_main_effect_only(table):
    X, score = table
    model = FCorrClassifier(**SMALL, monotone={"age": "increasing"}).fit(X, score > 0)
    assert model.feature_significance()["age"] > 0
    found = model.explain(X[:10])
    # What is left is rounding in single precision.
    assert np.abs(found.correction[:, found.names.index("age")]).max() < 1e-5


# ------------------------------------------------------------------------------ errors and text


UNKNOWN = r"no feature 'agee'. Did you mean 'age'"
IN_PAIRS = "n_samples must be an even integer of at least 4"
N_ROWS = "n_rows must be an integer of at least 2, got 1"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        *(
            (lambda model, X, n=n: model.explain(X, n_samples=n), IN_PAIRS)
            for n in (0, 2, 7, 8.0, True)
        ),
        (lambda model, X: model.importance(X[:1]), "needs at least 2, got 1"),
        (lambda model, X: model.importance(X, n_rows=1), N_ROWS),
        (lambda model, X: model.main_effects()["agee"], UNKNOWN),
        (lambda model, X: model.importance(X)["agee"], UNKNOWN),
    ],
)
def test_bad_questions(ask, message, classifier, table):
    with pytest.raises(InvalidInputError, match=message):
        ask(classifier, table[0])


def test_notebooks(classifier, counts, table):
    assert "<caption>job (log-odds)</caption>" in classifier.main_effects()._repr_html_()
    assert "<th>relativity</th>" in counts.main_effects()._repr_html_()
    assert (
        "Rank correlation of total with significance"
        in classifier.importance(table[0])._repr_html_()
    )
    assert "and 2 more rows" in classifier.explain(table[0][:7], n_samples=4)._repr_html_()


def test_print(classifier, counts, table):
    effect = counts.main_effects()["job"]
    caption, header, *lines = str(effect).splitlines()
    assert caption == "job"
    assert header.split() == [*effect.table()]
    assert [line.split()[0] for line in lines] == list(effect.values)
    assert str(classifier.main_effects()).startswith("sex (log-odds)\nvalue ")
    assert str(classifier.importance(table[0])).splitlines()[1].split()[:2] == ["feature", "main"]
    assert str(classifier.explain(table[0][:7], n_samples=4)).endswith("and 2 more rows")


# ------------------------------------------------------------------------------ the classifier


@pytest.mark.parametrize("model", ["classifier", "classes"])
def test_logarithms_and_scores(model, table, request):
    model, X = request.getfixturevalue(model), table[0]
    p = model.predict_proba(X)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p, rtol=1e-12)
    scores = model.decision_function(X)
    if p.shape[1] == 2:
        np.testing.assert_allclose(scores, np.log(p[:, 1] / p[:, 0]), rtol=1e-9)
    else:
        from sklearn.utils.extmath import softmax

        np.testing.assert_allclose(softmax(scores), p, rtol=1e-9)
