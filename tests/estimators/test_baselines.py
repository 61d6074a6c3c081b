"""Other networks behind FCorr's surface: what is the same, what is refused, what CAR does."""

import inspect
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from fcorr.estimators.architectures import ARCHITECTURES
from fcorr.estimators.places import Places
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

import fcorr
from fcorr import (
    BaselineClassifier,
    BaselineRegressor,
    FCorrClassifier,
    FCorrRegressor,
    InvalidInputError,
    ModelFileError,
    load,
)
from fcorr._core import UnseenCategoryWarning
from fcorr.data.encode import encode
from fcorr.data.tables import read_table
from fcorr.estimators import read_header
from fcorr.metrics import flip_scores, population_bound
from fcorr.nn.car import car_cda, exchange_features

TINY = {
    "ft_transformer": {"d_embedding": 8, "n_layers": 2, "n_heads": 2},
    "tab_transformer": {"d_embedding": 8, "n_layers": 2, "n_heads": 2, "head": (8,)},
    "ffn": {"head": (16, 8)},
}
each_network = pytest.mark.parametrize("network", TINY)
each_transformer = pytest.mark.parametrize("network", ["ft_transformer", "tab_transformer"])


def make_table(n=400):
    rng = np.random.default_rng(7)
    sex, job = rng.choice(["f", "m"], n), rng.choice(["clerk", "nurse", "pilot"], n)
    age, income = rng.normal(40, 10, n), rng.lognormal(size=n)
    score = (sex == "m") + 2.0 * (job == "nurse") + (age - 40) / 10 + np.log(income)
    X = pd.DataFrame({"sex": sex, "job": job, "age": age, "income": income})
    return X, score + rng.normal(size=n)


X, SCORE = make_table()
Y = (np.median(SCORE) < SCORE).astype(int)
COUNTS = np.random.default_rng(3).poisson(np.exp(SCORE / 2))


def classifier(network, **options):
    settings = {"network_options": TINY.get(network), "epochs": 3, "random_state": 0}
    return BaselineClassifier(network=network, **settings | options)


def regressor(network, **options):
    settings = {"network_options": TINY[network], "epochs": 3, "random_state": 0}
    return BaselineRegressor(network=network, **settings | options)


def weights(model):
    return model.model_.state_dict()


def equal(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


# The surface


PAIRS = [(FCorrClassifier, BaselineClassifier), (FCorrRegressor, BaselineRegressor)]
FCORR_ALONE = {
    *("car_form", "car_combinations", "invariance", "head", "n_layers", "residual"),
    *("numeric_embedding", "n_knots", "missing_numeric", "engine"),
}
BASELINES_ALONE = {"network", "network_options", "weight_decay", "car_rows"}


@pytest.mark.parametrize(("ours", "other"), PAIRS)
def test_same_methods_and_arguments_as_fcorr(ours, other):
    def public(cls):
        return {name for name, _ in inspect.getmembers(cls) if not name.startswith("_")}

    # "car_form" and "engine" are arguments of the one and constants of the other.
    assert public(other) - {"car_form"} == public(ours)
    for name in ("fit", "predict", "attention", "feature_significance", "save"):
        assert inspect.signature(getattr(ours, name)) == inspect.signature(getattr(other, name))
    assert set(ours().get_params()) - set(other().get_params()) == FCORR_ALONE
    assert set(other().get_params()) - set(ours().get_params()) == BASELINES_ALONE


@pytest.mark.parametrize("cls", [BaselineClassifier, BaselineRegressor])
def test_every_argument_is_documented(cls):
    for name in cls().get_params():
        assert f"\n    {name} : " in cls.__doc__


def test_documented_defaults_are_those_of_the_networks():
    for name in ("dropout", "epochs", "learning_rate", "weight_decay"):
        values = {f"{getattr(network, name):g}" for network in ARCHITECTURES.values()}
        entry = re.search(rf"\n    {name} : .*(\n        .*)+", BaselineClassifier.__doc__)[0]
        said = set(re.findall(r"\d[\d.e-]*\d|\d+", entry.split('``"auto"`` is')[1]))
        assert said == values


def test_clone_keeps_every_argument():
    original = classifier("ffn", car=1.0, dropout=0.3, sensitive=["sex"], weight_decay=0.1)
    assert clone(original).get_params() == original.get_params()


@each_network
def test_a_classifier_learns_and_is_in_balance(network):
    model = classifier(network, epochs=25, learning_rate=0.01).fit(X, Y)
    assert model.score(X, Y) > 0.75
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(Y.mean(), abs=1e-9)
    assert not model.exact_
    assert model.network_ == {"name": network} | model.network_
    assert model.n_features_in_ == 4


@each_network
def test_a_regressor_learns_and_is_in_balance(network):
    model = regressor(network, epochs=25, learning_rate=0.01).fit(X, SCORE)
    assert model.score(X, SCORE) > 0.5
    assert model.predict(X).mean() == pytest.approx(SCORE.mean(), rel=1e-6)


@each_network
def test_several_classes(network):
    labels = np.array(["a", "b", "c"])[np.digitize(SCORE, [0, 2])]
    model = classifier(network, class_weight="balanced").fit(X, labels)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    shares = [(labels == label).mean() for label in model.classes_]
    np.testing.assert_allclose(probabilities.mean(0), shares, atol=1e-9)


@each_network
@pytest.mark.parametrize("objective", ["poisson", "tweedie"])
def test_exposure_is_an_offset(network, objective):
    rng = np.random.default_rng(0)
    years, weight = rng.uniform(0.1, 1, len(X)), rng.uniform(1, 2, len(X))
    table = X.assign(years=years)
    model = regressor(network, objective=objective, exposure="years")
    model.fit(table, COUNTS, sample_weight=weight)
    expected = model.predict(table)
    assert weight @ expected == pytest.approx(weight @ COUNTS, rel=1e-6)
    np.testing.assert_allclose(expected, years * model.predict_rate(X))
    doubled = model.predict(table.assign(years=2 * years))
    np.testing.assert_allclose(doubled, 2 * expected)


@each_network
def test_a_threshold_is_chosen_by_its_rule(network):
    model = classifier(network, threshold={"fpr": 0.05}).fit(X, Y)
    assert model.predict(X)[Y == 0].mean() <= 0.05
    assert 0 < model.threshold_ < 1


@each_network
def test_eval_set_and_early_stopping(network):
    chance = X, np.random.default_rng(1).integers(2, size=len(X))
    options = {"epochs": 60, "early_stopping": 2, "learning_rate": 0.02, "dropout": 0.0}
    model = classifier(network, **options).fit(X, Y, eval_set=chance)
    losses = [record.validation_loss for record in model.history_.epochs]
    assert model.history_.best_epoch == int(np.argmin(losses)) + 1 == len(losses) - 2
    model.balance_[:] = 0
    assert log_loss(chance[1], model.predict_proba(X)) == pytest.approx(min(losses), rel=1e-5)
    alone = classifier(network, epochs=4, early_stopping=True).fit(X, Y)
    assert all(record.validation_loss is not None for record in alone.history_.epochs)


@each_network
def test_a_fit_can_start_from_another(network):
    first = classifier(network).fit(X, Y)
    again = classifier(network, learning_rate=1e-9).fit(X, Y, init_model=first)
    np.testing.assert_allclose(again.predict_proba(X), first.predict_proba(X), atol=1e-4)
    with pytest.raises(InvalidInputError, match="network of the same sizes, got one of another"):
        classifier(network, network_options=None).fit(X, Y, init_model=first)


def test_weight_of_zero_leaves_a_row_out_of_the_loss():
    weight = np.r_[np.zeros(200), np.ones(200)]
    flipped = np.r_[1 - Y[:200], Y[200:]]
    models = [classifier("ffn").fit(X, y, sample_weight=weight) for y in (Y, flipped)]
    assert equal(weights(models[0]), weights(models[1]))


@each_network
@pytest.mark.parametrize("kind", ["polars", "array"])
def test_tables_of_other_kinds(network, kind):
    model = classifier(network).fit(X, Y)
    if kind == "polars":
        again = classifier(network).fit(pl.from_pandas(X), Y)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        return
    kinds = {2: "numeric", 3: "numeric"}
    again = classifier(network, kinds=kinds).fit(X.to_numpy(), Y)
    np.testing.assert_allclose(again.predict_proba(X.to_numpy()), model.predict_proba(X), atol=1e-6)


@each_network
def test_missing_numbers_are_the_mean(network):
    holes = X.assign(age=X.age.mask(X.income > 2), job=X.job.mask(X.age > 45))
    model = classifier(network).fit(holes, Y)
    mean = holes.assign(age=holes.age.fillna(holes.age.mean()))
    np.testing.assert_allclose(model.predict_proba(holes), model.predict_proba(mean), atol=1e-6)


@each_network
def test_numbers_far_from_training_count_as_its_ends(network):
    model = regressor(network, objective="poisson").fit(X, COUNTS)
    ends = X.assign(age=X.age.max(), income=X.income.min())
    beyond = model.predict(X.assign(age=3e38, income=-3e38))
    np.testing.assert_allclose(beyond, model.predict(ends), rtol=1e-6)


# Numbers as places


def test_places_spread_over_rows_and_values():
    rng = np.random.default_rng(0)
    gain = np.where(rng.uniform(size=5_000) < 0.9, 0, rng.lognormal(8, 1, 5_000))
    numbers = np.stack([gain, rng.normal(size=5_000)], axis=1).astype(np.float32)
    placed = Places.learn(numbers).apply(numbers)
    np.testing.assert_allclose(placed.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(placed.std(0), 1, atol=1e-5)
    assert np.abs(placed).max() < 6 < np.abs((gain - gain.mean()) / gain.std()).max()
    order = np.argsort(numbers[:, 0])
    assert (np.diff(placed[order, 0]) >= 0).all()


def test_places_of_a_constant_and_of_nothing():
    constant = np.full((5, 1), 3.0, dtype=np.float32)
    assert Places.learn(constant).apply(constant).tolist() == [[0.0]] * 5
    nothing = np.empty((5, 0), dtype=np.float32)
    assert Places.learn(nothing).apply(nothing).shape == (5, 0)


# Chance, threads, chunks


@each_network
def test_same_seed_same_bits_whatever_the_number_of_threads(network, monkeypatch):
    monkeypatch.setattr("fcorr.training.loop._TWO_SLICES", 2)
    monkeypatch.setattr("fcorr.training.loop._MORE_SLICES", 2**10)
    monkeypatch.setattr("fcorr.training.workers._WORTH_A_THREAD", 1)
    car = None if network == "ffn" else 10.0
    options = {"dropout": 0.3, "sensitive": "sex", "car": car, "batch_size": 128}
    before = torch.get_num_threads()
    models = []
    try:
        for n_threads in (1, 1, 2):
            torch.set_num_threads(n_threads)
            models.append(classifier(network, **options).fit(X, Y))
        scores = [model.predict_proba(X) for model in models]
    finally:
        torch.set_num_threads(before)
    for model, score in zip(models[1:], scores[1:], strict=True):
        assert equal(weights(models[0]), weights(model))
        np.testing.assert_array_equal(scores[0], score)
    other = classifier(network, **options | {"random_state": 1}).fit(X, Y)
    assert not equal(weights(models[0]), weights(other))


@each_network
def test_global_generators_are_left_alone(network):
    before = torch.get_rng_state()
    car = None if network == "ffn" else "paper"
    options = {"dropout": 0.5, "sensitive": "sex", "car": car, "early_stopping": True}
    classifier(network, **options).fit(X, Y).predict(X)
    assert torch.equal(torch.get_rng_state(), before)


@each_network
@pytest.mark.parametrize("n_rows", [1, 3, 17, 100])
def test_a_score_does_not_depend_on_the_rows_beside_it(network, n_rows):
    model = classifier(network, network_options=None, epochs=1).fit(X, Y)
    everything = model.predict_proba(X)
    assert np.array_equal(model.predict_proba(X[50 : 50 + n_rows]), everything[50:][:n_rows])


@each_network
def test_chunks_do_not_change_scores(network, monkeypatch):
    model = classifier(network, network_options=None, epochs=1).fit(X, Y)
    scores = model.predict_proba(X)
    attention = None if network == "ffn" else model.attention(X).values
    monkeypatch.setattr("fcorr.training.loop._CHUNK_NUMBERS", 1)
    assert np.array_equal(model.predict_proba(X), scores)
    if attention is not None:
        np.testing.assert_allclose(model.attention(X).values, attention, rtol=1e-5)


@each_transformer
def test_slices_and_chunks_of_single_rows_train_the_same_model(network, monkeypatch):
    options = {"sensitive": "sex", "car": "paper", "dropout": 0.0, "epochs": 1}
    whole = classifier(network, **options).fit(X, Y, eval_set=(X, Y))
    monkeypatch.setattr("fcorr.training.loop._CHUNK_NUMBERS", 1)
    monkeypatch.setattr("fcorr.training.loop._LARGEST_SLICE", 1)
    sliced = classifier(network, **options).fit(X, Y, eval_set=(X, Y))
    assert sliced.history_.car_weight == whole.history_.car_weight
    np.testing.assert_allclose(sliced.predict_proba(X), whole.predict_proba(X), atol=1e-4)
    first, second = (m.history_.epochs[0].validation_loss for m in (whole, sliced))
    assert first == pytest.approx(second, rel=1e-4)


@each_transformer
def test_significance_of_large_tables_is_that_of_every_so_many_th_row(network, monkeypatch):
    whole = classifier(network, epochs=1).fit(X, Y)
    n_weights = len(X) * whole._n_attending() ** 2
    monkeypatch.setattr("fcorr.estimators.baselines._ATTENTION_ENTRIES", n_weights / 2.5)
    some = classifier(network, epochs=1).fit(X, Y)
    matrix = whole.attention(X.iloc[::3])
    received = dict(zip(matrix.names, matrix.values.sum(0), strict=True))
    assert some.feature_significance() == pytest.approx(received)
    assert some.feature_significance() != pytest.approx(whole.feature_significance())


def test_sizes_of_work_grow_with_the_attention():
    """581 features: a row's attention matrices, which a step makes none of, are millions."""
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(40, 580))).add_prefix("x")
    wide["sex"] = rng.choice(["f", "m"], 40)
    model = BaselineClassifier(sensitive="sex", car=1.0, epochs=1, random_state=0)
    model.fit(wide.iloc[:, -4:], Y[:40])
    network, sizes = model._architecture_and_sizes()
    schema = fcorr.data.infer_schema(read_table(wide), sensitive=["sex"])
    matrix = 8 * 582**2
    assert network.attention_size(schema, sizes) > 2 * matrix / 16
    without, few, many = (network.step_size(schema, sizes, n) for n in (0, 2, 200))
    assert without < few < many < matrix
    assert network.scoring_size(schema, sizes) < matrix


@pytest.mark.parametrize("cls", [FCorrClassifier, BaselineClassifier])
def test_memory_of_the_optimiser(cls, monkeypatch):
    heard = []
    adam = torch.optim.AdamW

    def listening(groups, **options):
        heard.append(options["betas"])
        return adam(groups, **options)

    monkeypatch.setattr("torch.optim.AdamW", listening)
    for options in ({}, {"beta2": 0.999}):
        cls(epochs=1, random_state=0, **options).fit(X, Y)
    assert heard == [(0.9, 0.95), (0.9, 0.999)]


def test_weight_decay_is_for_linear_layers_alone(monkeypatch):
    groups = []
    adamw = torch.optim.AdamW
    monkeypatch.setattr(torch.optim, "AdamW", lambda g, **o: groups.extend(g) or adamw(g, **o))
    model = classifier("ft_transformer", weight_decay=0.5, epochs=1).fit(X, Y)
    decaying = {id(p) for p in groups[0]["params"]}
    assert (groups[0]["weight_decay"], groups[1]["weight_decay"]) == (0.5, 0.0)
    names = {name for name, p in model.model_.named_parameters() if id(p) in decaying}
    assert {"head.output.weight", "layers.0.attention.query.weight"} <= names
    assert not any("bias" in name or "norm" in name or "tokenizer" in name for name in names)
    assert "cls" not in names
    assert len(groups[0]["params"]) + len(groups[1]["params"]) == len(weights(model))


def test_decay_shrinks_what_it_decays():
    norms = []
    for decay in (0.0, 1.0):
        options = {"weight_decay": decay, "learning_rate": 0.05, "epochs": 20}
        model = classifier("ffn", **options).fit(X, np.random.default_rng(0).permutation(Y))
        norms.append(weights(model)["network.output.weight"].norm().item())
    assert norms[1] < norms[0] / 2


# CAR


def attention_change(model, column="sex"):
    encoded = model._encode(read_table(X))
    tensors = torch.from_numpy(encoded.codes), torch.from_numpy(encoded.numbers)
    schema = model.schema_
    exchanges = exchange_features(schema.cardinalities, len(schema.numeric), [0])
    assert schema.feature_names[0] == column
    with torch.no_grad():
        return car_cda(model.model_, *tensors, exchanges).mean().item()


@each_transformer
def test_car_lowers_the_attention_change(network):
    options = {"sensitive": "sex", "epochs": 10, "learning_rate": 0.01, "dropout": 0.0}
    plain = classifier(network, **options).fit(X, Y)
    fair = classifier(network, **options, car=1e4).fit(X, Y)
    assert fair.history_.car_weight == 1e4
    assert plain.history_.epochs[-1].car is None
    assert attention_change(fair) < 1e-2 * attention_change(plain)
    assert fair.history_.epochs[-1].car == pytest.approx(attention_change(fair), rel=2)
    assert fair.score(X, Y) > 0.75


@each_transformer
def test_the_papers_rule(network):
    history = classifier(network, sensitive="sex", car="paper").fit(X, Y).history_
    assert np.log10(history.car_weight) == round(np.log10(history.car_weight))
    assert all(record.car > 0 for record in history.epochs)


def test_a_continuous_sensitive_column():
    model = classifier("ft_transformer", sensitive="age", car=1.0).fit(X, Y)
    assert model.attention(X).names[0] == "age"
    assert model.history_.epochs[-1].car > 0
    binned = classifier("tab_transformer", sensitive="age", bins=3, car=1.0).fit(X, Y)
    assert binned.attention(X).names == ("age", "sex", "job")


# What is read off the model


def test_attention_of_an_ft_transformer():
    model = classifier("ft_transformer", sensitive="income").fit(X, Y)
    matrix = model.attention(X)
    assert matrix.names == ("income", "sex", "job", "age")
    encoded = model._encode(read_table(X))
    with torch.no_grad():
        tensors = torch.from_numpy(encoded.codes), torch.from_numpy(encoded.numbers)
        expected = model.model_.attention_weights(*tensors).double().mean(0).numpy()
    names = list(model.schema_.feature_names)
    order = [names.index(name) for name in matrix.names]
    np.testing.assert_allclose(matrix.values, expected[np.ix_(order, order)], rtol=1e-6)
    assert (matrix.values.sum(1) < 1).all()  # the rest is paid to CLS
    significance = model.feature_significance()
    received = dict(zip(matrix.names, matrix.values.sum(0), strict=True))
    assert significance == pytest.approx(received)
    assert list(significance.values()) == sorted(significance.values(), reverse=True)


def test_attention_of_a_tab_transformer_is_between_categories():
    model = classifier("tab_transformer", sensitive="job").fit(X, Y)
    matrix = model.attention(X)
    assert matrix.names == ("job", "sex")
    np.testing.assert_allclose(matrix.values.sum(1), 1, rtol=1e-6)
    assert set(model.feature_significance()) == {"sex", "job"}


def test_a_feed_forward_network_has_none():
    model = classifier("ffn").fit(X, Y)
    message = r"a network that has some, got 'ffn', which has none\. Use a transformer, or ask the"
    for read in (lambda: model.attention(X), model.feature_significance):
        with pytest.raises(InvalidInputError, match=message):
            read()


@each_network
def test_no_certificate_but_a_statement_on_the_population(network):
    model = classifier(network, sensitive="sex").fit(X, Y)
    message = r"whose weights allow no such statement\. Fit FCorr with .* use fcorr\.metrics\.popul"
    for question in ({}, {"X": X}, {"X": X, "alpha": 0.05}):
        with pytest.raises(InvalidInputError, match=message):
            model.certificate(**question)
    changes = flip_scores(model.predict_proba, X, "sex").changes
    assert population_bound(changes, alpha=0.05).epsilon > 0


# Bad input


REFUSALS = [
    ("ffn", {"sensitive": "sex", "car": 1.0}, r"car needs attention to regularise, got 1\.0 with"),
    ("ffn", {"sensitive": "sex", "car": "paper"}, "which has none. Use a transformer, or car=None"),
    (
        "tab_transformer",
        {"sensitive": ["sex", "age"], "car": 1.0},
        r"needs categorical sensitive columns: .* got numbers in 'age'\. Cut them into groups",
    ),
    ("resnet", {}, "network must be 'ft_transformer' or 'tab_transformer' or 'ffn', got 'resnet'"),
    ("ft_transformer", {"network_options": 3}, "network_options must be a dict of sizes, such as"),
    (
        "ft_transformer",
        {"network_options": {"d_embeding": 8}},
        r"must name sizes of 'ft_transformer' \('d_embedding', .* Did you mean 'd_embedding'\? Cor",
    ),
    ("ffn", {"network_options": {"n_layers": 8}}, r"sizes of 'ffn' \('head'\), got 'n_layers'"),
    ("ffn", {"network_options": {"dropout": 0.5}}, r"sizes of 'ffn' \('head'\), got 'dropout'"),
    (
        "ft_transformer",
        {"network_options": {"n_layers": 0}},
        r"network_options\['n_layers'\] must be an integer of at least 1, got 0",
    ),
    ("ffn", {"network_options": {"head": (0,)}}, r"\['head'\] must be a tuple of hidden-layer siz"),
    (
        "ft_transformer",
        {"network_options": {"attention_dropout": 1.0}},
        r"\['attention_dropout'\] must be a number in \[0, 1\), got 1\.0",
    ),
    (
        "tab_transformer",
        {"network_options": {"d_embedding": 12}},
        "d_embedding that is a multiple of n_heads, got 12 and 8. Change one of them",
    ),
    ("ffn", {"dropout": 1}, r"dropout must be a number in \[0, 1\), or 'auto', got 1\."),
    ("ffn", {"epochs": 0}, "epochs must be an integer of at least 1, or 'auto', got 0"),
    ("ffn", {"learning_rate": "fast"}, "learning_rate must be a number above 0, or 'auto', got"),
    ("ffn", {"weight_decay": -1}, "weight_decay must be a number of at least 0, or 'auto', got -1"),
    ("ffn", {"car_rows": 0}, r"car_rows must be a number in \(0, 1\], got 0\."),
    ("ffn", {"beta2": 1}, r"beta2 must be a number in \[0, 1\), got 1\."),
    ("ffn", {"car": -1}, "car must be a number of at least 0, 'paper' or None, got -1"),
    ("ffn", {"sensitive": "sexx"}, "sensitive must name columns of X, got 'sexx'. Did you mean"),
    ("ffn", {"device": "nope"}, "device must be one that torch can use here"),
    ("ffn", {"learning_rate": 1e30}, "Training must keep a finite loss, got nan in epoch 1"),
]


@pytest.mark.parametrize(("network", "options", "message"), REFUSALS, ids=str)
def test_refusals(network, options, message):
    model = classifier(network, **{"network_options": None, **options})
    with pytest.raises(InvalidInputError, match=message):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_tab_transformer_needs_categories():
    with pytest.raises(InvalidInputError, match=r"needs a categorical column, .* got numbers only"):
        classifier("tab_transformer").fit(X[["age", "income"]], Y)
    classifier("ft_transformer").fit(X[["age", "income"]], Y)
    classifier("tab_transformer").fit(X[["sex", "job"]], Y)


@pytest.mark.parametrize("car", [0, None])
def test_a_weight_of_nothing_is_no_car(car):
    assert classifier("ffn", sensitive="sex", car=car).fit(X, Y).history_.car_weight is None


@each_network
def test_the_errors_of_predict_are_fcorrs(network):
    model = classifier(network).fit(X, Y)
    with pytest.raises(InvalidInputError, match="Column 'age' is missing"):
        model.predict(X.drop(columns="age"))
    with pytest.raises(InvalidInputError, match="X has 3 features, but BaselineClassifier is exp"):
        model.predict(X.to_numpy()[:, :3])
    with pytest.warns(UnseenCategoryWarning, match=r"400 row\(s\) of 'job'"):
        model.predict(X.assign(job="astronaut"))


@each_network
def test_a_failed_fit_leaves_the_fitted_model(network):
    model = classifier(network).fit(X, Y)
    before, attributes = model.predict_proba(X), set(vars(model))
    for bad in ({"epochs": 0}, {"learning_rate": 1e30, "epochs": 2}):
        with pytest.raises(InvalidInputError):
            model.set_params(**bad).fit(X[["sex", "age"]], Y)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert set(vars(model)) == attributes


# Model files


ROUND_TRIPS = {
    "ft": (classifier, "ft_transformer", {"sensitive": "sex", "car": 1.0}, Y),
    "tab": (classifier, "tab_transformer", {"threshold": "f1"}, Y),
    "ffn": (classifier, "ffn", {"class_weight": {0: 2.0}}, Y),
    "default sizes": (classifier, "ffn", {"network_options": None, "dropout": 0.0}, Y),
    "three classes": (classifier, "ffn", {}, np.digitize(SCORE, [0, 2])),
    "regression": (regressor, "ft_transformer", {"objective": "tweedie"}, COUNTS),
    "one head": (
        regressor,
        "ft_transformer",
        {"network_options": {"d_embedding": 5, "n_heads": 1, "head": (3,)}},
        SCORE,
    ),
}


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_round_trip(tmp_path, name):
    make, network, options, y = ROUND_TRIPS[name]
    path = tmp_path / "model.fcorr"
    model = make(network, **options).fit(X, y)
    model.save(path)
    header = read_header(path)
    assert header["estimator"] == type(model).__name__
    assert header["network"]["name"] == network
    again = load(path)
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.get_params() == model.get_params()
    assert again.network_ == model.network_
    assert again.history_ == model.history_
    assert again.schema_ == model.schema_
    if network != "ffn":
        np.testing.assert_array_equal(again.attention(X), model.attention(X))
        assert again.feature_significance() == model.feature_significance()
    again.save(tmp_path / "again.fcorr")
    assert (tmp_path / "again.fcorr").read_bytes() == path.read_bytes()
    again.fit(X, y)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_arguments_set_after_the_fit_do_not_change_what_is_saved(tmp_path):
    model = classifier("ft_transformer").fit(X, Y)
    expected = model.predict_proba(X)
    model.set_params(network="ffn", network_options=None).save(tmp_path / "model.fcorr")
    np.testing.assert_array_equal(load(tmp_path / "model.fcorr").predict_proba(X), expected)


DAMAGE = {
    "network": ({"name": "resnet"}, "KeyError: 'resnet'"),
    "n_layers": (10**15, "n_layers 1000000000000000, the weights n_layers 2"),
    "d_embedding": (10**14, "d_embedding 100000000000000, the weights d_embedding 8"),
    "n_heads": (3, "multiple of n_heads, got 8 and 3"),
    "head": ([10**14], r"head \[100000000000000\], the weights head \[\]"),
    "residual_dropout": (2.0, "residual_dropout"),
    "unknown": (1, "got 'unknown'"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_network_is_refused(tmp_path, name):
    model = classifier("ft_transformer").fit(X, Y)
    value, message = DAMAGE[name]
    model.network_ = value if name == "network" else model.network_ | {name: value}
    model.save(tmp_path / "model.fcorr")
    with pytest.raises(ModelFileError, match=f"damaged model file: .*{message}"):
        load(tmp_path / "model.fcorr")


@pytest.mark.parametrize("name", ["knots", "mean", "scale"])
def test_damaged_places_are_refused(tmp_path, name):
    model = classifier("ffn").fit(X, Y)
    wrong = {"knots": model.places_.knots[:, ::-1].copy()}.get(name, np.full(2, np.nan))
    parts = {part: getattr(model.places_, part) for part in ("knots", "mean", "scale")}
    model.places_ = Places(**parts | {name: wrong})
    model.save(tmp_path / "model.fcorr")
    with pytest.raises(ModelFileError, match="knots of the numeric features are none of this sch"):
        load(tmp_path / "model.fcorr")


def test_no_baseline_is_exact(tmp_path):
    model = classifier("ffn", sensitive="sex").fit(X, Y)
    model.exact_ = True
    model.save(tmp_path / "model.fcorr")
    with pytest.raises(ModelFileError, match="said to be exact, which 'ffn' never is"):
        load(tmp_path / "model.fcorr")


# scikit-learn


WEIGHTS_ARE_NOT_COPIES = (
    "A row of weight 2 is one row in one batch, two copies fall into two batches: mini-batch "
    "training takes other steps, as scikit-learn's own SGD estimators do."
)
BALANCE = (
    "A class of weight 1,000 is to be predicted always. Here weights of classes shape the fit; the "
    "balance afterwards gives each class its share of the rows again."
)
REASONS = {"check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_NOT_COPIES}
CLASSIFIER_REASONS = REASONS | {"check_class_weight_classifiers": BALANCE}


def reasons(estimator):
    return CLASSIFIER_REASONS if isinstance(estimator, BaselineClassifier) else REASONS


@parametrize_with_checks(
    [
        cls(network=network, network_options=TINY[network], learning_rate=0.01, epochs=20)
        for cls in (BaselineClassifier, BaselineRegressor)
        for network in ("ft_transformer", "ffn")  # a TabTransformer needs categories
    ],
    expected_failed_checks=reasons,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_nothing_warns_by_itself():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier("ffn").fit(X[["age", "income"]], Y).predict(X[["age", "income"]])


def test_numbers_reach_the_network_as_places():
    model = classifier("ffn").fit(X, Y)
    numbers = encode(read_table(X), model.schema_).numbers
    np.testing.assert_array_equal(
        model._encode(read_table(X)).numbers, model.places_.apply(numbers)
    )
