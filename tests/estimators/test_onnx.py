import datetime
import json
import re

import numpy as np
import pyarrow as pa
import pytest

from fcorr import FCorrClassifier, FCorrRegressor, InvalidInputError
from fcorr.data import Schema
from fcorr.estimators import to_onnx

pytest.importorskip("onnx", reason="needs onnx, as in fcorr[onnx]")
runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime, as in fcorr[onnx]")

# Rows have categories that training did not see, and columns that are missing throughout.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

EPOCH = datetime.datetime(1970, 1, 1)


def draw(seed, n=150, *, unseen=False):
    """Make a table of all kinds of columns, a tenth of their values missing."""
    rng = np.random.default_rng(seed)
    days = rng.uniform(-150_000, 150_000, n)  # some 400 years to both sides
    new = ["new"] * unseen
    columns = {
        "sex": rng.choice(["f", "m"], n),
        "age": rng.normal(40, 10 + 40 * unseen, n),
        "job": rng.choice(["clerk", "nurse", "pilot", "é", *new], n),
        "member": rng.random(n) < 0.5,
        "zone": rng.integers(0, 5 + unseen, n),
        "town": rng.choice([*(f"t{i}" for i in range(60)), *new], n),
        "grade": rng.choice(["low", "mid", "high", *new], n),
        "when": [EPOCH + datetime.timedelta(days=day) for day in days],
        "income": 1e9 + rng.lognormal(size=n),
    }
    if unseen:
        columns["age"][0], columns["income"][0] = 1e30, -1e30

    def with_missing(values):
        return pa.array(np.asarray(values).tolist(), mask=rng.random(n) < 0.1)

    return pa.table({name: with_missing(values) for name, values in columns.items()})


def run(path, table):
    """Score a table, in the way that docs/serving.md says."""
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {}
    for each in session.get_inputs():
        values = table[each.name].to_pylist()
        if each.type == "tensor(string)":
            column = np.array([value or "" for value in values], dtype=object)
        elif pa.types.is_timestamp(table[each.name].type):
            seconds = [np.nan if v is None else (v - EPOCH).total_seconds() for v in values]
            column = np.array(seconds)
        else:
            column = np.array(values, dtype=np.float64)
        feeds[each.name] = column.reshape(-1, 1)
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True)), list(feeds)


def outcome(seed, n=150):
    return np.exp(np.random.default_rng(seed).normal(draw(seed, n)["age"].to_numpy() > 40))


TARGETS = {
    "two": lambda y: np.where(y > np.median(y), "yes", "no"),
    "three": lambda y: np.digitize(y, [1.0, 2.0]),
    "mse": lambda y: 1e6 + y,
    "poisson": np.round,
    "gamma": lambda y: y,
    "tweedie": lambda y: np.maximum(y - 1, 0),
}
QUICK = {"sensitive": ["sex", "income"], "epochs": 1, "random_state": 0}
QUICK["kinds"] = {"grade": ["low", "mid", "high"], "zone": "categorical"}


def paper(embedding="spline", **advanced):
    advanced |= {"main_effects": False, "numeric_embedding": embedding}
    return {"n_members": 1, "head": (8, 4), "advanced": advanced}


PACK = {"n_members": 2}
VIEWS = {"n_members": 1, "head": (8, 4)}  # not one of the recipes that have main effects alone
CASES = {
    "pack": ("two", PACK),
    "pack, marginal": ("two", PACK | {"invariance": "marginal"}),
    "pack, not exact": ("two", PACK | {"invariance": None}),
    "three classes": ("three", VIEWS),
    "squares": ("mse", VIEWS),
    "poisson, marginal": ("poisson", VIEWS | {"invariance": "marginal"}),
    "gamma": ("gamma", VIEWS | {"invariance": None}),
    "tweedie": ("tweedie", PACK),
    "views": ("two", VIEWS | {"advanced": {"n_views": 5, "n_layers": 2, "residual": False}}),
    "sensitive number": ("two", VIEWS | {"sensitive": "age", "invariance": None}),
    "averaged number": ("two", VIEWS | {"sensitive": "age", "invariance": "marginal"}),
    "monotone": ("gamma", VIEWS | {"monotone": {"age": "increasing", "grade": "decreasing"}}),
    "missing as it is": ("two", VIEWS | {"advanced": {"missing_numeric": "category"}}),
    "mode": ("two", VIEWS | {"invariance": None, "advanced": {"missing_categorical": "mode"}}),
    "threshold": ("two", VIEWS | {"threshold": "f1"}),
    "paper": ("two", paper()),
    "paper, marginal": ("two", paper() | {"invariance": "marginal"}),
    "paper, residual": ("two", paper(n_layers=2, residual=True) | {"invariance": None}),
    "paper, no stack": ("two", paper() | {"head": ()}),
    "paper's numbers": ("two", paper("paper", n_layers=2)),
    "paper's numbers, missing": ("mse", paper("paper", missing_numeric="category")),
    "paper's numbers, marginal": ("gamma", paper("paper") | {"invariance": "marginal"}),
}


@pytest.mark.parametrize("case", CASES)
def test_scores_are_pythons(tmp_path, case):
    target, options = CASES[case]
    make = FCorrClassifier if target in ("two", "three") else FCorrRegressor
    more = {} if make is FCorrClassifier else {"objective": target}
    y = TARGETS[target](outcome(0))
    model = make(**QUICK | more | options).fit(draw(0), y)
    to_onnx(model, tmp_path / "model.onnx")
    rows = draw(1, unseen=True)
    found, inputs = run(tmp_path / "model.onnx", rows)
    unread = model.schema_.sensitive if model.exact_ else ()
    assert inputs == [name for name in rows.column_names if name not in unread]
    if make is FCorrRegressor:
        assert list(found) == ["prediction"]
        expected = model.predict(rows)
        np.testing.assert_allclose(found["prediction"][:, 0], expected, rtol=1e-5)
        return
    assert list(found) == ["label", "probabilities"]
    expected = model.predict_proba(rows)
    np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(found["label"], model.predict(rows))


@pytest.fixture(scope="module")
def model():
    return FCorrClassifier(**QUICK | PACK).fit(draw(0), TARGETS["two"](outcome(0)))


@pytest.mark.parametrize("opset", [17, 21])
def test_any_number_of_rows_in_either_opset(tmp_path, model, opset):
    to_onnx(model, tmp_path / "model.onnx", opset=opset)
    rows = draw(1, unseen=True)
    all_at_once, _ = run(tmp_path / "model.onnx", rows)
    for n in (1, 7):
        few, _ = run(tmp_path / "model.onnx", rows.slice(3, n))
        expected = all_at_once["probabilities"][3 : 3 + n]
        np.testing.assert_allclose(few["probabilities"], expected, rtol=1e-6)
    none, _ = run(tmp_path / "model.onnx", rows.slice(0, 0))
    assert none["probabilities"].shape == (0, 2)
    proto = pytest.importorskip("onnx").load(tmp_path / "model.onnx")
    assert {each.domain: each.version for each in proto.opset_import}[""] == opset


@pytest.mark.parametrize("opset", [16, 22, "17"])
def test_other_opsets_are_refused(tmp_path, model, opset):
    with pytest.raises(InvalidInputError, match=f"opset must be 17 to 21, got {opset!r}"):
        to_onnx(model, tmp_path / "model.onnx", opset=opset)
    assert not list(tmp_path.iterdir())


def test_metadata(tmp_path, model):
    to_onnx(model, tmp_path / "model.onnx")
    meta = runtime.InferenceSession(tmp_path / "model.onnx").get_modelmeta()
    found = meta.custom_metadata_map
    assert Schema.from_dict(json.loads(found["schema"])) == model.schema_
    assert json.loads(found["certificate"]) == model.certificate().to_dict()
    assert json.loads(found["certificate"])["exact"] is True
    assert json.loads(found["target"])["classes"] == ["no", "yes"]
    assert meta.producer_name == "fcorr"
    assert meta.description == model.summary()


def test_exposure_is_an_input_and_the_rate_an_output(tmp_path):
    def insured(seed):
        years = np.random.default_rng(seed).uniform(0.1, 1, 150)
        return draw(seed).append_column("years", pa.array(years))

    options = QUICK | VIEWS | {"sensitive": None}
    model = FCorrRegressor(objective="poisson", exposure="years", **options)
    model.fit(insured(0), TARGETS["poisson"](outcome(0)))
    to_onnx(model, tmp_path / "model.onnx")
    rows = insured(1)
    found, inputs = run(tmp_path / "model.onnx", rows)
    assert inputs == rows.column_names
    np.testing.assert_allclose(found["prediction"][:, 0], model.predict(rows), rtol=1e-5)
    np.testing.assert_allclose(found["rate"][:, 0], model.predict_rate(rows), rtol=1e-5)
    meta = runtime.InferenceSession(tmp_path / "model.onnx").get_modelmeta()
    assert "certificate" not in meta.custom_metadata_map  # which is about sensitive columns


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"c": ["", None, "a"] * 20}, "Column 'c' must have categories that ONNX can tell apart"),
        ({"c": [2**53, 2**53 + 1, 1] * 20}, "Column 'c' must have categories that ONNX can tell"),
        ({"": ["a", "b", "c"] * 20}, "A column must have a name to be an input of ONNX, got ''"),
    ],
)
def test_columns_that_onnx_cannot_have(tmp_path, values, message):
    rows = pa.table({**values, "a": np.arange(60.0)})
    options = {"kinds": dict.fromkeys(values, "categorical"), "min_category_rows": 1}
    model = FCorrRegressor(**VIEWS, epochs=1, random_state=0, **options)
    model.fit(rows, np.arange(60.0))
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        to_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


EDGES = [
    datetime.datetime(year, month, day, hour)
    for year in (1, 1899, 1900, 1970, 1999, 2000, 2001, 2096, 9999)
    for month, day in ((1, 1), (2, 28), (3, 1), (12, 31))
    for hour in (0, 23)
] + [datetime.datetime(2000, 2, 29, 23, 59, 59, 999_999), datetime.datetime(1600, 2, 29)]
NORMAL = np.random.default_rng(0).normal(size=6_000)
CODES = np.random.default_rng(0).integers(0, 3_000, 6_000)
SPECIAL = {  # columns, and the kind of the first
    "dates at the edges": ({"when": pa.array(EDGES, pa.timestamp("us"))}, "datetime"),
    "thousands of names": ({"town": [f"z{code}" for code in CODES], "a": NORMAL}, "rated"),
    "thousands of numbers": ({"town": CODES / 7, "a": NORMAL}, "rated"),
    "names of the graph's own": (
        dict.fromkeys(("prediction", "t0", "t7", "ß %/x"), NORMAL[:60]),
        "numeric",
    ),
    "empty text": ({"c": ["", "b", "c"] * 20, "a": np.arange(60.0)}, "categorical"),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_columns(tmp_path, name):
    columns, kind = SPECIAL[name]
    rows, first = pa.table(columns), next(iter(columns))
    kinds = {first: "categorical"} if kind == "rated" else None
    model = FCorrRegressor(**VIEWS, epochs=5, random_state=0, kinds=kinds)
    model.fit(rows, NORMAL[: len(rows)] + (np.arange(len(rows)) % 3 == 0))
    assert model.schema_[first].kind == kind
    to_onnx(model, tmp_path / "model.onnx")
    found, inputs = run(tmp_path / "model.onnx", rows)
    assert inputs == rows.column_names
    (output,) = found  # which has another name where a column has its own
    assert output.startswith("prediction")
    np.testing.assert_allclose(found[output][:, 0], model.predict(rows), rtol=1e-5, atol=1e-5)
