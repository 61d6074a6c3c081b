"""Model files: what goes in comes out, to the bit; what is damaged is refused, with its reason."""

import copy
import hashlib
import json
import math
import os
import pickle
import struct
import warnings

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch
from safetensors.torch import save_file

import fcorr
from fcorr import FCorrClassifier, FCorrRegressor
from fcorr._core import InvalidInputError, ModelFileError
from fcorr.estimators import read_header
from fcorr.estimators.invariance import Portfolio
from fcorr.training.checkpoint import compute_digest

SMALL = {"n_members": 1, "head": (4,), "epochs": 1, "random_state": 0}

_rng = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "sex": _rng.choice(["f", "m"], 200),
        "zip": _rng.choice([10, 20, 30], 200),
        "job": _rng.choice(["clerk", "nurse", None], 200),
        "age": np.where(_rng.uniform(size=200) < 0.1, np.nan, _rng.normal(40, 10, 200)),
        "income": _rng.lognormal(size=200),
    }
)
BINARY = _rng.integers(2, size=200)
AMOUNT = 100 + 10 * _rng.normal(size=200)


def fit(**options):
    return FCorrClassifier(**SMALL | {"sensitive": "sex"} | options).fit(X, BINARY)


@pytest.fixture(scope="module")
def model():
    return fit(kinds={"zip": "categorical"})


@pytest.fixture(scope="module")
def content(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.fcorr"
    model.save(path)
    return path.read_bytes()


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "model.fcorr"
        path.write_bytes(content)
        return path

    return write


def split(content):
    """Take a safetensors file apart: its JSON, fcorr's JSON within it, and the numbers."""
    (n,) = struct.unpack("<Q", content[:8])
    outer = json.loads(content[8 : 8 + n])
    return outer, json.loads(outer["__metadata__"]["fcorr"]), content[8 + n :]


def join(outer, header, numbers):
    """Put a file together; a header that is one gets the digest of what it says now."""
    if isinstance(header, dict):
        tensors = safetensors.torch.load(join(outer, "", numbers))
        header = json.dumps({**header, "sha256": compute_digest(header, tensors)})
    outer = {**outer, "__metadata__": {"fcorr": header}}
    encoded = json.dumps(outer).encode()
    return struct.pack("<Q", len(encoded)) + encoded + numbers


def scores(model, X):
    return model.predict_proba(X) if isinstance(model, FCorrClassifier) else model.predict(X)


# There and back


LABELS = {
    "text": np.array(["no", "yes", "maybe", "é"])[BINARY * 2 + 1],
    "three classes": pd.Series(["a", "b", "c"] * 66 + ["a", "b"]),
    "bool": BINARY.astype(bool),
    "float": BINARY * 2.0,
    "small integers": BINARY.astype(np.int8),
}
CLASSIFIERS = {
    "defaults": {},
    "missing numbers": {"advanced": {"missing_numeric": "category"}},
    "missing as mode": {"advanced": {"missing_categorical": "mode"}},
    "two layers": {"advanced": {"n_layers": 2}},
    "no residual": {"advanced": {"residual": False}},
    "no head": {"head": ()},
    "deep head": {"head": [5, 3, 2]},
    "numbers as categories": {"kinds": {"zip": "categorical", "age": "categorical"}},
    "ordinal": {"kinds": {"zip": [20, 10, 30], "job": ["nurse", "clerk"]}},
    "pooled": {"min_category_rows": 66},
    "two sensitive columns": {"sensitive": ["zip", "sex"]},
    "no sensitive column": {"sensitive": None},
    "paper's weight": {"car": "paper"},
    "balanced": {"threshold": "f1", "class_weight": "balanced"},
    "rate": {"threshold": {"fpr": 0.05}, "class_weight": {0: 1, 1: 7.5}},
    "cost": {"threshold": {"cost": (1, 20)}, "class_weight": {np.int64(1): np.float32(2)}},
    "nobody": {"threshold": {"cost": (1, 0)}},
    "threshold": {"threshold": 0.25},
}
EXPOSED = {"exposure": "income", "tweedie_power": 1.7}
REGRESSORS = {
    "mse": ({"objective": "mse"}, pd.Series(AMOUNT, name="claims")),
    "poisson": (EXPOSED | {"objective": "poisson"}, BINARY),
    "gamma": ({"objective": "gamma"}, AMOUNT),
    "tweedie": (EXPOSED | {"objective": "tweedie"}, BINARY * AMOUNT),
    "main effects off": ({"advanced": {"main_effects": False}}, AMOUNT),
    "paper embedding": (
        {"advanced": {"main_effects": False, "numeric_embedding": "paper"}},
        AMOUNT,
    ),
    "pack": ({"n_members": 3}, AMOUNT),
    "early stopping": ({"advanced": {"early_stopping": 2}, "epochs": 3}, AMOUNT),
}
ROUND_TRIPS = {
    **{name: (FCorrClassifier, {}, y) for name, y in LABELS.items()},
    **{name: (FCorrClassifier, options, BINARY) for name, options in CLASSIFIERS.items()},
    **{name: (FCorrRegressor, *case) for name, case in REGRESSORS.items()},
    "weights by label": (
        FCorrClassifier,
        {"class_weight": {"yes": 4.0}},
        np.where(BINARY == 1, "yes", "no"),
    ),
}


@pytest.mark.parametrize("name", ROUND_TRIPS)
@pytest.mark.filterwarnings("ignore:Columns that take one value")  # ages that occur once
def test_round_trip(tmp_path, name):
    cls, options, y = ROUND_TRIPS[name]
    weight = pd.Series(np.linspace(1, 3, 200), name="importance") if cls is FCorrRegressor else None
    model = cls(**SMALL | {"sensitive": "sex"} | options).fit(X, y, sample_weight=weight)
    model.save(tmp_path / "model.fcorr")
    again = fcorr.load(tmp_path / "model.fcorr")
    assert type(again) is cls
    np.testing.assert_array_equal(scores(again, X), scores(model, X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.predict(X).dtype == model.predict(X).dtype
    np.testing.assert_array_equal(again.attention(X), model.attention(X))
    assert again.feature_significance() == model.feature_significance()
    assert again.schema_ == model.schema_
    assert again.history_ == model.history_
    assert again.seed_ == model.seed_
    np.testing.assert_array_equal(again.balance_, model.balance_)
    if cls is FCorrClassifier:
        np.testing.assert_array_equal(again.class_weight_, model.class_weight_)
        assert again.threshold_ == model.threshold_
    assert again.feature_names_in_.tolist() == list(X.columns)
    expected = model.get_params() | {"head": tuple(model.head)}
    assert again.get_params() == expected


def test_more_classes_than_views(tmp_path):
    """Each class has a main effect, so that there are more views than the argument can ask for."""
    y = np.arange(200) % 70
    model = FCorrClassifier(**SMALL).fit(X, y)
    model.save(tmp_path / "model.fcorr")
    again = fcorr.load(tmp_path / "model.fcorr")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_array_without_names(tmp_path):
    array = np.column_stack([X[["zip", "age", "income"]], AMOUNT])
    options = {"kinds": {0: "categorical"}, "objective": "poisson", "exposure": 2}
    options["monotone"] = {1: "increasing"}
    model = FCorrRegressor(**SMALL, sensitive=0, **options).fit(array, BINARY)
    model.save(tmp_path / "model.fcorr")
    again = fcorr.load(tmp_path / "model.fcorr")
    assert again.n_features_in_ == 4
    assert again.kinds == {"x0": "categorical"}
    assert again.monotone == {"x1": "increasing"}
    assert not hasattr(again, "feature_names_in_")
    np.testing.assert_array_equal(again.predict(array), model.predict(array))
    assert again.fit(array, BINARY).schema_ == model.schema_


def test_loaded_model_can_be_saved_and_fitted_again(tmp_path):
    model = fit(random_state=np.random.default_rng(5))
    model.save(tmp_path / "first.fcorr")
    again = fcorr.load(tmp_path / "first.fcorr")
    again.save(tmp_path / "second.fcorr")
    first, second = (tmp_path / name for name in ("first.fcorr", "second.fcorr"))
    assert first.read_bytes() == second.read_bytes()
    # The generator has moved on, but the seed drawn from it is in the file.
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(again.fit(X, BINARY).predict_proba(X), expected)


@pytest.mark.parametrize(
    "options",
    [
        {"sensitive": pd.Index(["sex"])},
        {"sensitive": {"sex"}},
        {"sensitive": np.array(["sex"])},
        {"kinds": {"zip": np.array([10, 20, 30])}},
        {"kinds": {"job": pd.Index(["clerk", "nurse"])}},
        {"car": np.float32(10), "epochs": np.int64(1), "advanced": {"residual": np.True_}},
    ],
)
def test_arguments_that_json_does_not_know(tmp_path, options):
    model = fit(**options)
    model.save(tmp_path / "model.fcorr")
    again = fcorr.load(tmp_path / "model.fcorr")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "change",
    [{"head": (8, 8)}, {"advanced": {"n_layers": 3}}, {"advanced": {"residual": False}}],
)
def test_arguments_set_after_the_fit_do_not_change_what_is_saved(tmp_path, change):
    model = fit()
    expected = model.predict_proba(X)
    model.set_params(**change).save(tmp_path / "model.fcorr")
    np.testing.assert_array_equal(fcorr.load(tmp_path / "model.fcorr").predict_proba(X), expected)


def test_wrong_argument_set_after_the_fit_is_not_written(tmp_path):
    with pytest.raises(
        InvalidInputError, match="epochs must be an integer of at least 1, or 'auto', got 0"
    ):
        fit().set_params(epochs=0).save(tmp_path / "model.fcorr")
    assert os.listdir(tmp_path) == []


# What is in a file


def test_header(write, content, model):
    header = read_header(write(content))
    assert header["format"] == 1
    assert header["fcorr_version"] == fcorr.__version__
    assert header["estimator"] == "FCorrClassifier"
    assert header["parameters"]["sensitive"] == "sex"
    assert header["parameters"]["head"] == [4]
    assert header["networks"] == [model.model_.description]
    assert header["recipes"] == json.loads(json.dumps(model.recipes_))
    assert header["oob_loss"] is None
    assert header["target"]["classes"] == [0, 1]
    assert header["schema"] == json.loads(json.dumps(model.schema_.to_dict()))
    assert header["history"]["epochs"][0]["epoch"] == 1
    assert header == split(content)[1]


def test_file_holds_tensors_and_json_alone(content, model):
    outer, _, numbers = split(content)
    tensors = {name for name in outer if name != "__metadata__"}
    weights = {f"model.0.{name}" for name in model.model_.state_dict()}
    assert tensors == weights | {"significance", "importance"}
    ends = [outer[name]["data_offsets"][1] for name in tensors]
    assert max(ends) == len(numbers)


def test_load_unpickles_nothing(write, content, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("unpickled")

    for module, name in [(pickle, "load"), (pickle, "loads"), (pickle, "Unpickler")]:
        monkeypatch.setattr(module, name, refuse)
    monkeypatch.setattr(torch, "load", refuse)
    assert fcorr.load(write(content)).predict(X).shape == (200,)


def test_load_keeps_no_hold_of_the_file(write, content, model):
    path = write(content)
    again = fcorr.load(path)
    path.write_bytes(b"\0" * len(content))
    assert again.feature_significance() == model.feature_significance()
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


# Damage


FOREIGN = {
    "csv": b"a,b\n1,2\n",
    "zeros": b"\0" * 100,
    "random": np.random.default_rng(0).bytes(1_000),
    "pickle": pickle.dumps({"a": 1}),
}


def test_files_that_are_cut_or_of_another_kind(write, content):
    n = len(content)
    cuts = [content[:length] for length in (0, 1, 7, 8, 9, 100, n // 2, n - 4, n - 1)]
    for damaged in (*cuts, *FOREIGN.values(), content + b"\0"):
        with pytest.raises(
            ModelFileError, match=r"not a whole model file: it is truncated or of an"
        ):
            fcorr.load(write(damaged))


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"fcorr": "no JSON"}])
def test_safetensors_of_another_program(tmp_path, metadata):
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.zeros(3)}, path, metadata=metadata)
    with pytest.raises(ModelFileError, match=r"a safetensors file, but not a model of fcorr.*Load"):
        fcorr.load(path)


def test_newer_format(write, content):
    outer, header, numbers = split(content)
    header |= {"format": 2, "fcorr_version": "9.1", "schema": "something new"}
    path = write(join(outer, header, numbers))
    message = r"made by fcorr 9\.1 in file format 2; fcorr .* reads up to format 1\. Upgrade fcorr"
    for read in (fcorr.load, read_header):
        with pytest.raises(ModelFileError, match=message):
            read(path)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "1", "{}", '{"format": "1"}', '{"format": true}', "[" * 100_000, "1" * 5_000],
)
def test_entry_that_is_no_header(write, content, text):
    outer, _, numbers = split(content)
    with pytest.raises(ModelFileError, match="its header has no fcorr entry"):
        fcorr.load(write(join(outer, text, numbers)))


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (["schema"], None, "TypeError"),
        (["parameters"], "x", "TypeError"),
        (["parameters", "head"], [0], "head must be a tuple"),
        (["networks", 0, "head"], [5], r"size mismatch for head.hidden.0.weight"),
        (
            ["networks", 0, "head"],
            [10**15],
            r"header has .*'head': \[1000000000000000\].*too large for",
        ),
        (["networks", 0, "head"], [4, 4], "head.hidden.1.weight"),
        (["networks", 0, "head"], [10**4] * 2, "too large for .* weights"),
        (["networks", 0, "head"], "wide", "head must be a tuple"),
        (["networks", 0, "n_layers"], 10**15, "'n_layers': 1000000000000000, .*too large for"),
        (["networks", 0, "residual"], "yes", r"\['residual'\] must be True or False"),
        (["networks", 0, "numeric_embedding"], "paper", "the network has .*numeric_embedding"),
        (["networks", 0, "n_views"], 10**15, "'n_views': 1000000000000000, .*too large for"),
        (["networks", 0, "n_views"], 0, "n_views is 0"),
        (["networks", 0, "n_views"], "auto", "n_views is 'auto'"),
        (["networks", 0, "n_views"], 9, "size mismatch for views.table"),
        (["networks", 0, "additive"], [3], "monotone must be that of the fit"),
        (["networks", 0, "additive"], [99], "IndexError"),
        (["networks"], [], "weights for 0 networks"),
        (["recipes"], [{"head": [4], "colour": 1}], "TypeError: Recipe"),
        (["networks", 0, "name"], "ffn", "the network has head, .*, name"),
        (["networks", 0], {"head": [4]}, "the network has head"),
        (["exact"], 1, "exact is 1"),
        (["parameters", "epochs"], "many", "epochs must be an integer"),
        (["parameters", "unknown"], 1, "unknown"),
        (["estimator"], "RandomForest", "RandomForest"),
        (["target"], [], "TypeError"),
        (["target", "classes"], [0, 1, 2], "class weights are"),
        (["target", "classes"], [1, 1], r"classes are \[1, 1\]"),
        (["target", "classes"], [1, 0], r"classes are \[1, 0\]"),
        (["target", "classes"], [0.25, 1.5], r"classes are \[0.25, 1.5\]"),
        (["target", "classes"], [1], r"classes are \[1\]"),
        (["target", "dtype"], "S1000000000", "classes are of type"),
        (["target", "class_weight"], [1.0, 0.0], "class weights are"),
        (["target", "threshold"], -0.1, "threshold is -0.1"),
        (["target", "threshold"], 1.1, "threshold is 1.1"),
        (["balance"], [0.0, 0.0], "balance is"),
        (["parameters", "sensitive"], "age", "sensitive and exposure must be those of the fit"),
        (["parameters", "sensitive"], None, "sensitive and exposure must be those of the fit"),
        (["parameters", "sensitive"], ["sex", "sex"], "must be those of the fit"),
        (["columns"], ["sex", "zip", "job", "age"], "the table has columns"),
        (["columns"], ["sex", "zip", "job", "age", "age"], "the table has columns"),
        (["schema", "exposure"], "years", "the table has columns"),
        (["named"], False, "the table has columns"),
        (["history"], None, "AttributeError"),
        (["history", "epochs"], [], "it does not say how it was made"),
        (["history", "epochs", 0, "loss"], "small", "ValueError: Unknown format code"),
        (["fcorr_version"], None, "it does not say how it was made"),
        (["schema", "columns", 0, "name"], "age", "contradicts itself"),
        (["schema", "columns", 0, "mode"], 5, "contradicts itself"),
        (["schema", "columns", 0, "categories"], ["f", "m", "x"], "contradicts itself"),
        (["schema", "columns", 0, "categories"], ["f", "f"], "contradicts itself"),
        (["schema", "columns", 4, "scale"], 0, "contradicts itself"),
        (["schema", "columns", 4, "scale"], -1, "contradicts itself"),
        (["schema", "columns", 4, "mean"], "1", "TypeError"),
        (["schema", "columns", 4, "mean"], 1e9, "contradicts itself"),
        (["schema", "sensitive"], ["sex", "sex"], "contradicts itself"),
        (["schema", "columns", 4, "keep_missing"], True, "missing"),
        (["schema", "columns", 4, "kind"], "colour", "KeyError: 'colour'"),
    ],
)
def test_damaged_header(write, content, path, value, reason):
    outer, header, numbers = split(content)
    parent = header
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    message = rf"(?s)is a damaged model file: .*do not fit together \(.*{reason}.*Save the model"
    with pytest.raises(ModelFileError, match=message):
        fcorr.load(write(join(outer, header, numbers)))


@pytest.mark.parametrize(
    "key",
    [
        *("parameters", "schema", "named", "target", "seed", "history", "estimator"),
        *("networks", "recipes", "oob_loss"),
        *("fcorr_version", "columns", "balance", "exact"),
    ],
)
def test_header_without_an_entry(write, content, key):
    outer, header, numbers = split(content)
    del header[key]
    with pytest.raises(ModelFileError, match=f"damaged model file: .*KeyError: '{key}'"):
        fcorr.load(write(join(outer, header, numbers)))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "path", [["balance", 0], ["schema", "columns", 4, "mean"], ["schema", "columns", 4, "high"]]
)
def test_numbers_of_the_header_must_be_finite(write, content, path, number):
    outer, header, numbers = split(content)
    parent = header
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = number
    message = r"damaged model file: .*Out of range float values"
    with pytest.raises(ModelFileError, match=message):
        fcorr.load(write(join(outer, header, numbers)))
    _, sealed, _ = split(join(outer, header, numbers))
    text = json.dumps(sealed).replace("Infinity", "1e999")  # which is the same number
    with pytest.raises(ModelFileError, match=message):
        fcorr.load(write(join(outer, text, numbers)))


def set_entry(name, value, place=0):
    def change(tensors):
        tensors[name] = tensors[name].clone()
        tensors[name].view(-1)[place] = value

    return change


def knots_of_age(*knots):
    def change(tensors):
        padded = tensors["model.0.views.numbers.knots"].clone()
        padded[0, : len(knots)] = torch.tensor(knots)
        tensors["model.0.views.numbers.knots"] = padded

    return change


WRONG_WEIGHTS = {
    "no significance": (lambda tensors: tensors.pop("significance"), "KeyError: 'significance'"),
    "short significance": (
        lambda tensors: tensors.update({"significance": torch.zeros(2)}),
        "significance is",
    ),
    "unknown significance": (set_entry("significance", math.nan), "significance is"),
    "no bias": (lambda tensors: tensors.pop("model.0.head.output.bias"), "head.output.bias"),
    "one too many": (
        lambda tensors: tensors.update(extra=torch.zeros(1)),
        "weights for 1 networks",
    ),
    "wide": (
        lambda tensors: tensors.update({"model.0.head.output.weight": torch.zeros(1, 9)}),
        "size mismatch for head.output.weight",
    ),
    "no knots": (
        lambda tensors: tensors.pop("model.0.views.numbers.knots"),
        "there are knots of 0 features in place of 2",
    ),
    "flat knots": (
        lambda tensors: tensors.update({"model.0.views.numbers.knots": torch.zeros(2)}),
        "IndexError",
    ),
    "knots of others": (
        lambda tensors: tensors.update({"model.0.views.numbers.knots": torch.zeros(7, 7)}),
        "there are knots of ",
    ),
    "as many knots as one likes": (
        lambda tensors: tensors.update({"model.0.views.numbers.knots": torch.zeros(10**12, 0)}),
        "there are knots of ",
    ),
    "repeated knots": (knots_of_age(-1.0, -1.0), "each larger than the one before"),
    "unsorted knots": (knots_of_age(2.0, -1.0), "each larger than the one before"),
    "a knot that is not a number": (knots_of_age(math.nan), "knots must be finite"),
    "a gap between knots": (knots_of_age(-5.0, math.inf), "knots must be finite"),
    "no end to knots": (knots_of_age(-math.inf), "knots must be finite"),
    "weight that is not a number": (
        set_entry("model.0.head.output.weight", math.nan),
        "the weights 'head.output.weight' are not finite",
    ),
    "infinite weight": (
        set_entry("model.0.views.table", math.inf, -1),
        "the weights 'views.table' are not finite",
    ),
    "infinite in the model's precision": (
        lambda tensors: tensors.update(
            {"model.0.head.output.bias": torch.tensor([1e300], dtype=torch.float64)}
        ),
        "the weights 'head.output.bias' are not finite",
    ),
    "too large to compute with": (
        lambda tensors: tensors["model.0.head.hidden.0.weight"].fill_(3e38),
        "its predictions are not finite",
    ),
    "nothing": (lambda tensors: tensors.clear(), "KeyError: 'significance'"),
}


@pytest.mark.parametrize("name", WRONG_WEIGHTS)
def test_weights_that_are_none_of_a_model(tmp_path, content, name):
    change, reason = WRONG_WEIGHTS[name]
    header, tensors = split(content)[1], safetensors.torch.load(content)
    change(tensors)
    header["sha256"] = compute_digest(header, tensors)
    path = tmp_path / "model.fcorr"
    save_file(tensors, path, metadata={"fcorr": json.dumps(header)})
    with pytest.raises(ModelFileError, match=rf"(?s)is a damaged model file: .*{reason}"):
        fcorr.load(path)


def test_portfolios_that_are_none_of_the_schema(tmp_path):
    model = fit(sensitive=["sex", "age"], invariance="marginal")
    path = tmp_path / "model.fcorr"
    for sex in (1.0, 2.0):
        values = torch.tensor([[0.0, 0.5], [sex, 0.5]])
        model.portfolio_ = Portfolio((0, 3), values, torch.tensor([0.5, 0.5]).double())
        model.save(path)
        if sex == 1.0:
            assert torch.equal(fcorr.load(path).portfolio_.values, values)
    with pytest.raises(ModelFileError, match="portfolio of sensitive values is none of this"):
        fcorr.load(path)


def test_target_of_a_regression(tmp_path):
    path = tmp_path / "model.fcorr"
    model = FCorrRegressor(**SMALL, objective="poisson").fit(X, BINARY)
    for change, reason in (
        ({"scale": 0.0}, "the target's scale is 0.0"),
        ({"scale": -1.0}, "the target's scale is -1.0"),
        ({"base": 1e6}, "its predictions are not finite"),
        ({"objective": "median"}, "objective is 'median'"),
    ):
        model.save(path)
        outer, header, numbers = split(path.read_bytes())
        header["target"] |= change
        path.write_bytes(join(outer, header, numbers))
        with pytest.raises(ModelFileError, match=rf"damaged model file: .*{reason}"):
            fcorr.load(path)


def test_a_model_of_other_columns_than_its_arguments_name_is_not_saved(tmp_path):
    model = fit().set_params(sensitive=["sex", "age"])
    with pytest.raises(
        InvalidInputError, match=r"must be those of the fit, \('sex',\) and None, got"
    ):
        model.save(tmp_path / "model.fcorr")


# The digest


def test_the_digest_is_that_of_header_and_tensors_in_canonical_order(content):
    header, tensors = split(content)[1], safetensors.torch.load(content)
    stored = header.pop("sha256")
    expected = hashlib.sha256(json.dumps(header, ensure_ascii=False).encode())
    for name in sorted(tensors):
        array = tensors[name].numpy()
        expected.update(f"\n{name} torch.{array.dtype} {list(array.shape)}\n".encode())
        expected.update(array.tobytes())
    assert stored == expected.hexdigest() == compute_digest(header, tensors)


def test_an_edit_by_hand_is_an_error_and_not_another_score(write, content):
    damaged = content.replace(b'\\"threshold\\": 0.5', b'\\"threshold\\": 0.4')
    assert damaged != content
    message = "is damaged, or was edited: the digest of its content must be .* Copy the file again"
    for read in (fcorr.load, read_header):
        with pytest.raises(ModelFileError, match=message):
            read(write(damaged))


def test_a_file_without_a_digest_is_refused(write, content):
    outer, header, numbers = split(content)
    del header["sha256"]
    with pytest.raises(ModelFileError, match="the one stored in it, None, got"):
        fcorr.load(write(join(outer, json.dumps(header), numbers)))


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        fcorr.load(tmp_path / "nowhere.fcorr")
    with pytest.raises(IsADirectoryError):
        fcorr.load(tmp_path)


JUNK = [None, True, -1, 0, 1, 3, 10**20, 0.5, float("nan"), 1e308, "", "x", "é", [], [1], {}, ["f"]]


def mutate_header(header, rng):
    """Exchange, drop or double one value somewhere in the JSON."""
    header = copy.deepcopy(header)
    node = header
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = keys[rng.integers(len(keys))]
        if isinstance(node[key], dict | list) and node[key] and rng.uniform() < 0.8:
            node = node[key]
            continue
        action = rng.integers(4)
        if action == 0:
            del node[key]
        elif action == 1 and isinstance(node, list):
            node.append(node[key])
        else:
            node[key] = JUNK[rng.integers(len(JUNK))]
        return header


def damage(content, rng):
    """Flip a bit, put other bytes in, cut the file, or leave a piece out."""
    place, action = rng.integers(len(content)), rng.integers(4)
    if action == 0:
        return (
            content[:place] + bytes([content[place] ^ 1 << rng.integers(8)]) + content[place + 1 :]
        )
    if action == 1:
        other = rng.bytes(rng.integers(1, 5))
        return content[:place] + other + content[place + len(other) :]
    return content[:place] + (b"" if action == 2 else content[place + rng.integers(1, 9) :])


def test_accidents_are_refused_or_change_nothing(write, content, model):
    rng, expected = np.random.default_rng(0), model.predict_proba(X)
    n_refused = 0
    for _ in range(400):
        damaged = damage(content, rng)
        try:
            found = fcorr.load(write(damaged))
        except ModelFileError:
            n_refused += 1
        else:
            np.testing.assert_array_equal(found.predict_proba(X), expected)
    assert n_refused > 380


def test_edits_are_refused_or_make_a_model(write, content):
    """With the digest of what they say now: never another error, never a score that is none."""
    rng = np.random.default_rng(0)
    outer, header, numbers = split(content)
    outcomes = {"loaded": 0, "refused": 0}
    for _ in range(200):
        try:
            model = fcorr.load(write(join(outer, mutate_header(header, rng), numbers)))
        except ModelFileError:
            outcomes["refused"] += 1
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert np.isfinite(model.predict_proba(X)).all()
        outcomes["loaded"] += 1
    assert outcomes["refused"] > 100
    assert outcomes["loaded"] > 30
