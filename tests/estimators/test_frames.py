"""The same rows in another library's frame: the same model and the same predictions, to the bit."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fcorr import FCorrClassifier, FCorrRegressor
from paper.generators import make_bank_fraud

SMALL = {"head": (4,), "epochs": 2, "random_state": 0}

_rng = np.random.default_rng(1)
COLUMNS = {
    "sex": _rng.choice(["f", "m"], 200).tolist(),
    "job": [None if i % 17 == 0 else "abc"[i % 3] for i in range(200)],
    "age": [None if i % 13 == 0 else float(a) for i, a in enumerate(_rng.normal(40, 10, 200))],
    "children": _rng.integers(4, size=200).tolist(),
    "member": _rng.choice([True, False], 200).tolist(),
    "since": [datetime.date(2020, 1, 1) + datetime.timedelta(days=7 * i) for i in range(200)],
}
Y = _rng.integers(2, size=200).tolist()

FRAMES = {
    "pandas": lambda c: pd.DataFrame(c),
    "pandas-categorical": lambda c: pd.DataFrame(c).astype({"sex": "category", "job": "category"}),
    "pandas-nullable": lambda c: pd.DataFrame(c).convert_dtypes(),
    "pandas-index": lambda c: pd.DataFrame(c, index=range(1000, 800, -1)),
    "polars": lambda c: pl.DataFrame(c),
    "polars-categorical": lambda c: pl.DataFrame(c).cast({"sex": pl.Categorical}),
    "polars-enum": lambda c: pl.DataFrame(c).cast({"job": pl.Enum(["c", "b", "a"])}),
    "pyarrow": lambda c: pa.table(c),
    "pyarrow-chunks": lambda c: pa.Table.from_batches(pa.table(c).to_batches(max_chunksize=64)),
    "pyarrow-batch": lambda c: pa.RecordBatch.from_pydict(c),
}
TARGETS = {"list": list, "numpy": np.array, "pandas": pd.Series, "polars": pl.Series}


@pytest.fixture(scope="module")
def reference():
    return FCorrClassifier(n_members=1, **SMALL, sensitive="sex").fit(
        pa.table(COLUMNS), np.array(Y)
    )


@pytest.mark.parametrize("name", FRAMES)
def test_fit_and_predict(reference, name):
    frame, expected = FRAMES[name](COLUMNS), reference.predict_proba(pa.table(COLUMNS))
    kinds = {"job": "categorical"} if "enum" in name else None
    model = FCorrClassifier(n_members=1, **SMALL, sensitive="sex", kinds=kinds).fit(frame, Y)
    assert model.schema_ == reference.schema_
    assert model.feature_names_in_.tolist() == list(COLUMNS)
    np.testing.assert_array_equal(model.predict_proba(pa.table(COLUMNS)), expected)
    np.testing.assert_array_equal(reference.predict_proba(frame), expected)


@pytest.mark.filterwarnings("ignore:Columns that take one value")
def test_same_weights_from_every_library():
    """Dictionaries, enums, categoricals; 8, 16 and 32 bits; rare categories pooled."""
    fitted = []
    table, y = make_bank_fraud(3_000, random_state=0)
    enums = {
        field.name: pl.Enum(table[field.name].chunk(0).dictionary.to_pylist())
        for field in table.schema
        if pa.types.is_dictionary(field.type)
    }
    for X in (table.to_pandas(), pl.from_arrow(table).cast(enums), table):
        model = FCorrClassifier(
            n_members=1,
            **SMALL,
            sensitive="customer_age",
            kinds=dict.fromkeys(enums, "categorical") | {"income": "ordinal"},
            min_category_rows=50,
        )
        fitted.append(model.fit(X, y))
    first = fitted[0]
    assert any(column.n_pooled for column in first.schema_.categorical)
    for other in fitted[1:]:
        assert other.schema_.columns == first.schema_.columns
        for name, weight in first.model_.state_dict().items():
            np.testing.assert_array_equal(other.model_.state_dict()[name], weight)


def test_schema_keeps_the_name_of_the_target():
    X = pd.DataFrame(COLUMNS)
    model = FCorrClassifier(n_members=1, **SMALL).fit(
        X, pd.Series(Y, name="bought"), sample_weight=X.children + 1
    )
    assert (model.schema_.target, model.schema_.weight) == ("bought", "children")
    assert model.schema_.exposure is None


@pytest.mark.parametrize("name", TARGETS)
def test_target_and_weight(name):
    weight = np.linspace(1, 2, 200)
    X = pa.table(COLUMNS)
    expected = (
        FCorrRegressor(n_members=1, **SMALL).fit(X, np.array(Y), sample_weight=weight).predict(X)
    )
    make = TARGETS[name]
    model = FCorrRegressor(n_members=1, **SMALL).fit(
        X, make(Y), sample_weight=make(weight.tolist())
    )
    np.testing.assert_array_equal(model.predict(X), expected)


def test_array_without_names():
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[:, 1] = X[:, 1] > 0
    model = FCorrClassifier(n_members=1, **SMALL, sensitive=1).fit(X, Y)
    assert model.schema_.sensitive == ("x1",)
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.predict_proba(X.tolist()), model.predict_proba(X))


def test_nested_list_of_numbers_and_text():
    rows = [[row["sex"], row["children"], row["member"]] for row in pa.table(COLUMNS).to_pylist()]
    model = FCorrClassifier(n_members=1, **SMALL, sensitive=[0]).fit(rows, Y)
    assert [c.name for c in model.schema_.numeric] == ["x1"]
    assert model.predict_proba(rows).shape == (200, 2)


@pytest.mark.parametrize("fitted_with_names", [True, False])
def test_names_on_one_side_only_are_warned_of(fitted_with_names):
    array = np.random.default_rng(0).normal(size=(200, 3))
    frame = pd.DataFrame(array, columns=["a", "b", "c"])
    train, score = (frame, array) if fitted_with_names else (array, frame)
    model = FCorrClassifier(n_members=1, **SMALL).fit(train, Y)
    with pytest.warns(UserWarning, match=r"feature names.*the columns are taken in their order"):
        probabilities = model.predict_proba(score)
    np.testing.assert_array_equal(probabilities, model.predict_proba(train))


def test_attention_is_labelled(reference):
    matrix = reference.attention(pl.DataFrame(COLUMNS))
    assert matrix.names == (
        *("sex", "job", "member", "age", "children"),
        *("since.year", "since.month", "since.days"),
    )
    assert matrix.to_pandas().loc["age", "sex"] == matrix["age", "sex"]
    assert matrix["age", "sex"] == pytest.approx(matrix["sex", "age"])
    significance = reference.feature_significance()  # the largest first
    assert matrix.diagonal() == pytest.approx(significance)
    assert list(significance.values()) == sorted(significance.values(), reverse=True)
    with pytest.raises(ValueError, match=r"no feature 'agee'. Did you mean 'age'"):
        matrix["agee", "sex"]
