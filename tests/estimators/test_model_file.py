"""Model files: what goes in comes out, to the bit; what is damaged is refused, with its reason."""

import hashlib
import json
import math
import os
import pickle
import random
import struct
import warnings

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch
from safetensors.torch import save_file

import fcorr
from benchmarks.fuzz import change_bytes, change_plain
from fcorr import FCorrClassifier
from fcorr._core import InvalidInputError, ModelFileError, compute_digest
from fcorr.estimators import read_header
from fcorr.estimators.invariance import Portfolio
from tests.tables import TASKS, make_model, make_people, make_targets, predictions

X = make_people(missing=0.1).assign(zip=np.arange(200) % 3 * 10)
Y = make_targets(X)
BINARY = Y["two classes"]


def fit(task="two classes", y=None, weight=None, **options):
    model = make_model(task, **{"sensitive": "sex", "epochs": 1} | options)
    return model.fit(X, Y[task] if y is None else y, sample_weight=weight)


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


@pytest.fixture
def reload(tmp_path):
    def reload(model):
        model.save(tmp_path / "model.fcorr")
        return fcorr.load(tmp_path / "model.fcorr")

    return reload


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


# There and back

LABELS = {
    "text": np.array(["no", "é"])[BINARY],
    "bool": BINARY.astype(bool),
    "float": BINARY * 2.0,
    "small integers": BINARY.astype(np.int8),
    "more classes than views": np.arange(200) % 70,
}
CLASSIFIERS = {
    "missing numbers": {"advanced": {"missing_numeric": "category"}},
    "missing as mode": {"advanced": {"missing_categorical": "mode"}},
    "two layers, no residual": {"advanced": {"n_layers": 2, "residual": False}},
    "no head": {"head": ()},
    "deep head": {"head": [5, 3, 2]},
    "kinds": {"kinds": {"zip": [20, 10, 0], "job": ["nurse", "clerk", "pilot"]}},
    "a number": {"sensitive": "age", "kinds": {"zip": "categorical"}},
    "pooled": {"min_category_rows": 66},
    "two sensitive columns": {"sensitive": ["zip", "sex"], "invariance": "marginal"},
    "no sensitive column": {"sensitive": None},
    "paper's weight": {"car": "paper"},
    "balanced": {"threshold": "f1", "class_weight": "balanced"},
    "rate": {"threshold": {"fpr": 0.05}, "class_weight": {0: 1, 1: 7.5}},
    "cost": {"threshold": {"cost": (1, 20)}, "class_weight": {np.int64(1): np.float32(2)}},
    "nobody": {"threshold": {"cost": (1, 0)}},
    "proxies": {"proxy": 1.0, "proxy_target": "decision", "threshold": 0.25},
    "pack": {"n_members": 3},
}
REGRESSORS = {
    "main effects off": {"advanced": {"main_effects": False}},
    "paper embedding": {"advanced": {"main_effects": False, "numeric_embedding": "paper"}},
    "early stopping": {"advanced": {"early_stopping": 2}, "epochs": 3},
}
ROUND_TRIPS = {
    **{task: (task, None, {}) for task in TASKS},
    **{name: ("two classes", y, {}) for name, y in LABELS.items()},
    **{name: ("two classes", None, options) for name, options in CLASSIFIERS.items()},
    **{name: ("mse", None, options) for name, options in REGRESSORS.items()},
    "exposure": ("tweedie", None, {"exposure": "years", "tweedie_power": 1.7, "n_members": 2}),
    "weights by label": ("two classes", LABELS["text"], {"class_weight": {"é": 4.0}}),
}


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_round_trip(reload, name):
    task, y, options = ROUND_TRIPS[name]
    weight = None if task == "two classes" else pd.Series(np.linspace(1, 3, 200), name="w")
    model = fit(task, y, weight, **options)
    again = reload(model)
    assert type(again) is type(model)
    np.testing.assert_array_equal(predictions(again, X), predictions(model, X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.predict(X).dtype == model.predict(X).dtype
    np.testing.assert_array_equal(again.attention(X), model.attention(X))
    assert again.feature_significance() == model.feature_significance()
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    if model.model_.members[0].views is not None:
        assert str(again.main_effects()) == str(model.main_effects())
    for attribute in ("schema_", "history_", "seed_", "oob_loss_"):
        assert getattr(again, attribute) == getattr(model, attribute)
    np.testing.assert_array_equal(again.balance_, model.balance_)
    if isinstance(model, FCorrClassifier):
        np.testing.assert_array_equal(again.class_weight_, model.class_weight_)
        assert again.threshold_ == model.threshold_
    assert again.summary() == model.summary()
    assert again.feature_names_in_.tolist() == list(X.columns)
    assert again.get_params() == model.get_params() | {"head": tuple(model.head)}


def test_array_without_names(reload):
    array = X[["zip", "age", "years"]].to_numpy()
    options = {"kinds": {0: "categorical"}, "exposure": 2, "monotone": {1: "increasing"}}
    model = make_model("poisson", sensitive=0, **options).fit(array, Y["poisson"])
    again = reload(model)
    assert again.n_features_in_ == 3
    assert again.kinds == {"x0": "categorical"}
    assert again.monotone == {"x1": "increasing"}
    assert not hasattr(again, "feature_names_in_")
    np.testing.assert_array_equal(again.predict(array), model.predict(array))
    assert again.fit(array, Y["poisson"]).schema_ == model.schema_


def test_loaded_model_can_be_saved_and_fitted_again(tmp_path, reload):
    model = fit(random_state=np.random.default_rng(5))
    again = reload(model)
    before = (tmp_path / "model.fcorr").read_bytes()
    reload(again)
    assert (tmp_path / "model.fcorr").read_bytes() == before
    # The generator has moved on, but the seed drawn from it is in the file.
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(again.fit(X, BINARY).predict_proba(X), expected)


@pytest.mark.parametrize(
    "options",
    [
        {"sensitive": pd.Index(["sex"])},
        {"sensitive": {"sex"}},
        {"sensitive": np.array(["sex"])},
        {"kinds": {"zip": np.array([0, 10, 20])}},
        {"kinds": {"job": pd.Index(["clerk", "nurse", "pilot"])}},
        {"car": np.float32(10), "epochs": np.int64(1), "advanced": {"residual": np.True_}},
    ],
)
def test_arguments_that_json_does_not_know(reload, options):
    model = fit(**options)
    np.testing.assert_array_equal(reload(model).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "change", [{"head": (8, 8)}, {"advanced": {"n_layers": 3, "residual": False}}]
)
def test_arguments_set_after_the_fit_do_not_change_what_is_saved(reload, change):
    model = fit()
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(reload(model.set_params(**change)).predict_proba(X), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs must be an integer of at least 1, or 'auto', got 0"),
        ({"sensitive": ["sex", "age"]}, r"must be those of the fit, \('sex',\) and None, got"),
    ],
)
def test_arguments_that_are_not_of_the_fit_are_not_written(tmp_path, change, message):
    with pytest.raises(InvalidInputError, match=message):
        fit().set_params(**change).save(tmp_path / "model.fcorr")
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
    assert header["target"]["classes"] == [0, 1]
    assert header["schema"] == json.loads(json.dumps(model.schema_.to_dict()))
    assert header["history"]["epochs"][0]["epoch"] == 1
    outer, found, numbers = split(content)
    assert header == found
    assert outer.pop("__metadata__").keys() == {"fcorr"}  # and tensors alone
    weights = {f"model.0.{name}" for name in model.model_.state_dict()}
    assert outer.keys() == weights | {"significance", "importance"}
    assert max(tensor["data_offsets"][1] for tensor in outer.values()) == len(numbers)


def test_load_unpickles_nothing_and_keeps_no_hold_of_the_file(write, content, model, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("unpickled")

    with monkeypatch.context() as patch:
        for module, name in [(pickle, "load"), (pickle, "loads"), (pickle, "Unpickler")]:
            patch.setattr(module, name, refuse)
        patch.setattr(torch, "load", refuse)
        path = write(content)
        again = fcorr.load(path)
    path.write_bytes(b"\0" * len(content))
    assert again.feature_significance() == model.feature_significance()
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


# Damage


NOT_WHOLE = "not a whole model file: it is truncated or of an"
NOT_OURS = "a safetensors file, but not a model of fcorr.*Load"
FOREIGN = (
    *(b"a,b\n1,2\n", b"\0" * 100, pickle.dumps({"a": 1})),
    np.random.default_rng(0).bytes(1_000),
)


NO_HEADER = ["", "[]", "1", "{}", '{"format": "1"}', '{"format": true}', "[" * 10**5, "1" * 5_000]
NEWER = {"format": 2, "fcorr_version": "9.1", "schema": "something new"}


def refused(content):
    """Name files that are none of ours, or are not whole any more, with what is said of them."""
    outer, header, numbers = split(content)
    n, other = len(content), {"weight": torch.zeros(3)}
    for length in (0, 1, 7, 8, 9, 100, n // 2, n - 4, n - 1):
        yield content[:length], NOT_WHOLE
    for foreign in (*FOREIGN, content + b"\0"):
        yield foreign, NOT_WHOLE
    for metadata in (None, {"format": "pt"}, {"fcorr": "no JSON"}):
        yield safetensors.torch.save(other, metadata), NOT_OURS
    for text in NO_HEADER:
        yield join(outer, text, numbers), "its header has no fcorr entry"
    yield (
        join(outer, header | NEWER, numbers),
        r"made by fcorr 9\.1 in file format 2; fcorr .* reads up to format 1\. Upgrade fcorr",
    )
    yield (
        content.replace(b'\\"threshold\\": 0.5', b'\\"threshold\\": 0.4'),
        "is damaged, or was edited: the digest of its content must be .* Copy the file again",
    )
    short = {"weight": torch.zeros(3, dtype=torch.bfloat16)}
    yield safetensors.torch.save(short, {"fcorr": '{"format": 1}'}), "got 'Got unsupported Scalar"
    del header["sha256"]
    yield join(outer, json.dumps(header), numbers), "the one stored in it, None, got"


def test_what_is_no_whole_model_file_is_refused(write, content):
    for damaged, message in refused(content):
        assert damaged != content
        for read in (fcorr.load, read_header):
            with pytest.raises(ModelFileError, match=message):
                read(write(damaged))


def change_entry(header, path, value):
    """Exchange an entry somewhere in the JSON, or drop it."""
    for key in path[:-1]:
        header = header[key]
    if value is DROPPED:
        del header[path[-1]]
    else:
        header[path[-1]] = value


DROPPED = object()
NETWORK = ("networks", 0)
SEX, YEARS = ("schema", "columns", 0), ("schema", "columns", 4)
ROLES = "sensitive and exposure must be those of the fit"
WRONG_ENTRIES = [
    (("schema",), None, "TypeError"),
    (("parameters",), "x", "TypeError"),
    (("parameters", "head"), [0], "head must be a tuple"),
    ((*NETWORK, "head"), [5], r"size mismatch for head.hidden.0.weight"),
    ((*NETWORK, "head"), [10**15], r"header has .*'head': \[1000000000000000\].*too large for"),
    ((*NETWORK, "head"), [4, 4], "head.hidden.1.weight"),
    ((*NETWORK, "head"), [10**4] * 2, "too large for .* weights"),
    ((*NETWORK, "head"), "wide", "head must be a tuple"),
    ((*NETWORK, "n_layers"), 10**15, "'n_layers': 1000000000000000, .*too large for"),
    ((*NETWORK, "residual"), "yes", r"\['residual'\] must be True or False"),
    ((*NETWORK, "numeric_embedding"), "paper", "the network has .*numeric_embedding"),
    ((*NETWORK, "n_views"), 10**15, "'n_views': 1000000000000000, .*too large for"),
    ((*NETWORK, "n_views"), "auto", "n_views is 'auto'"),
    ((*NETWORK, "n_views"), 9, "size mismatch for views.table"),
    ((*NETWORK, "additive"), [3], "monotone must be that of the fit"),
    ((*NETWORK, "additive"), [99], "IndexError"),
    (("networks",), [], "weights for 0 networks"),
    (("recipes",), [{"head": [4], "colour": 1}], "TypeError: Recipe"),
    (("exact",), 1, "exact is 1"),
    (("parameters", "epochs"), "many", "epochs must be an integer"),
    (("parameters", "unknown"), 1, "unknown"),
    (("estimator",), "RandomForest", "RandomForest"),
    (("target",), [], "TypeError"),
    (("target", "classes"), [0, 1, 2], "class weights are"),
    (("target", "classes"), [1, 1], r"classes are \[1, 1\]"),
    (("target", "classes"), [0.25, 1.5], r"classes are \[0.25, 1.5\]"),
    (("target", "dtype"), "S1000000000", "classes are of type"),
    (("target", "class_weight"), [1.0, 0.0], "class weights are"),
    (("target", "threshold"), -0.1, "threshold is -0.1"),
    (("balance",), [0.0, 0.0], "balance is"),
    (("balance", 0), math.nan, "Out of range float values"),
    (("parameters", "sensitive"), None, ROLES),
    (("parameters", "sensitive"), ["sex", "sex"], ROLES),
    (("columns",), ["sex", "job", "age", "income", "years"], "the table has columns"),
    (("schema", "exposure"), "time", "the table has columns"),
    (("named",), False, "the table has columns"),
    (("history",), None, "AttributeError"),
    (("history", "epochs"), [], "it does not say how it was made"),
    (("history", "epochs", 0, "loss"), "small", "ValueError: Unknown format code"),
    (("fcorr_version",), None, "it does not say how it was made"),
    ((*SEX, "name"), "age", "contradicts itself"),
    ((*SEX, "categories"), ["f", "m", "x"], "contradicts itself"),
    ((*YEARS, "mean"), "1", "TypeError"),
    ((*YEARS, "high"), math.inf, "Out of range float values"),
    ((*YEARS, "keep_missing"), True, "missing"),
    ((*YEARS, "kind"), "colour", "KeyError: 'colour'"),
    *(((key,), DROPPED, f"KeyError: '{key}'") for key in ("parameters", "seed", "oob_loss")),
]


@pytest.mark.parametrize(("path", "value", "reason"), WRONG_ENTRIES)
def test_damaged_header(write, content, path, value, reason):
    outer, header, numbers = split(content)
    change_entry(header, path, value)
    message = rf"(?s)is a damaged model file: .*do not fit together \(.*{reason}.*Save the model"
    with pytest.raises(ModelFileError, match=message):
        fcorr.load(write(join(outer, header, numbers)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scale": 0.0}, "the target's scale is 0.0"),
        ({"base": 1e6}, "its predictions are not finite"),
        ({"objective": "median"}, "objective is 'median'"),
    ],
)
def test_target_of_a_regression(tmp_path, write, change, reason):
    fit("poisson").save(tmp_path / "model.fcorr")
    outer, header, numbers = split((tmp_path / "model.fcorr").read_bytes())
    header["target"] |= change
    with pytest.raises(ModelFileError, match=rf"damaged model file: .*{reason}"):
        fcorr.load(write(join(outer, header, numbers)))


KNOTS, WIDE = "model.0.views.numbers.knots", "model.0.head.output.weight"
BIAS, TABLE = "model.0.head.output.bias", "model.0.views.table"


def entry(name, value, place=0):
    """Exchange one number of a tensor."""

    def change(tensors):
        tensors[name].view(-1)[place] = value

    return change


def knots_of_age(*knots):
    def change(tensors):
        tensors[KNOTS][0, : len(knots)] = torch.tensor(knots)

    return change


NOT_FINITE = "knots must be finite"
WRONG_WEIGHTS = {
    "no significance": ({"significance": None}, "KeyError: 'significance'"),
    "short significance": ({"significance": torch.zeros(2)}, "significance is"),
    "unknown significance": (entry("significance", math.nan), "significance is"),
    "no bias": ({BIAS: None}, "head.output.bias"),
    "one too many": ({"extra": torch.zeros(1)}, "weights for 1 networks"),
    "wide": ({WIDE: torch.zeros(1, 9)}, "size mismatch for head.output.weight"),
    "no knots": ({KNOTS: None}, "there are knots of 0 features in place of 3"),
    "flat knots": ({KNOTS: torch.zeros(3)}, "IndexError"),
    "many knots": ({KNOTS: torch.zeros(10**12, 0)}, "there are knots of 1000000000000 "),
    "repeated knots": (knots_of_age(-1.0, -1.0), "each larger than the one before"),
    "a knot that is not a number": (knots_of_age(math.nan), NOT_FINITE),
    "a gap between knots": (knots_of_age(-5.0, math.inf), NOT_FINITE),
    "no weight": (entry(WIDE, math.nan), "the weights 'head.output.weight' are not finite"),
    "infinite": (entry(TABLE, math.inf, -1), "the weights 'views.table' are not finite"),
    "infinite in the model's precision": (
        {BIAS: torch.tensor([1e300], dtype=torch.float64)},
        "the weights 'head.output.bias' are not finite",
    ),
    "too large to compute with": (
        lambda tensors: tensors["model.0.head.hidden.0.weight"].fill_(3e38),
        "its predictions are not finite",
    ),
}


@pytest.mark.parametrize("name", WRONG_WEIGHTS)
def test_weights_that_are_none_of_a_model(tmp_path, content, name):
    change, reason = WRONG_WEIGHTS[name]
    header, tensors = split(content)[1], safetensors.torch.load(content)
    if callable(change):
        change(tensors)
    else:
        changed = tensors | change
        tensors = {name: tensor for name, tensor in changed.items() if tensor is not None}
    header["sha256"] = compute_digest(header, tensors)
    path = tmp_path / "model.fcorr"
    save_file(tensors, path, metadata={"fcorr": json.dumps(header)})
    with pytest.raises(ModelFileError, match=rf"(?s)is a damaged model file: .*{reason}"):
        fcorr.load(path)


def test_a_portfolio_that_is_none_of_the_schema(reload):
    model = fit(sensitive=["sex", "age"], invariance="marginal")
    model.portfolio_ = Portfolio((0, 3), torch.tensor([[0, 0.5], [2, 0.5]]), torch.full((2,), 0.5))
    with pytest.raises(ModelFileError, match="portfolio of sensitive values is none of this"):
        reload(model)


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


def test_accidents_are_refused_or_change_nothing(write, content, model):
    rng, expected = random.Random(0), model.predict_proba(X)
    n_refused = 0
    for _ in range(200):
        damaged = change_bytes(content, rng)
        try:
            found = fcorr.load(write(damaged))
        except ModelFileError:
            n_refused += 1
        else:
            np.testing.assert_array_equal(found.predict_proba(X), expected)
    assert n_refused > 190


def test_edits_are_refused_or_make_a_model(write, content):
    """With the digest of what they say now: never another error, never a score that is none."""
    rng = random.Random(0)
    outer, header, numbers = split(content)
    outcomes = {"loaded": 0, "refused": 0}
    for _ in range(200):
        try:
            model = fcorr.load(write(join(outer, change_plain(header, rng), numbers)))
        except ModelFileError:
            outcomes["refused"] += 1
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert np.isfinite(model.predict_proba(X)).all()
        outcomes["loaded"] += 1
    assert outcomes["refused"] > 100
    assert outcomes["loaded"] > 30


def test_outputs_that_overflow_are_refused(tmp_path):
    people = make_people()
    model = make_model("mse").fit(people, make_targets(people)["mse"])
    with torch.no_grad():
        model.model_.head.output.weight.fill_(3e38)
    with pytest.raises(InvalidInputError, match=r"must be finite.*train it again"):
        model.predict(people)
