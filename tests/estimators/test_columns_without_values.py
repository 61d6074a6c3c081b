"""Columns in which training saw no value, and keys: kept, without effect, whatever comes later."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fcorr import load
from fcorr.estimators import Scorer
from tests.tables import make_model

N = 40
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=N), "sex": ["f", "m"] * (N // 2)})
Y = (X["a"] > 0).astype(int)
NAN = np.full(N, np.nan)

EMPTY = {
    "floats": (X.assign(e=NAN), None),
    "objects": (X.assign(e=pd.Series([None] * N, dtype=object)), None),
    "booleans": (X.assign(e=pd.Series([None] * N, dtype="boolean")), "boolean"),
    "categories of numbers": (X.assign(e=pd.Categorical([None] * N, categories=[1, 2])), None),
    "an order": (X.assign(e=pd.Categorical([None] * N, ordered=True)), None),
    "dates": (X.assign(e=pd.Series([pd.NaT] * N)), "datetime"),
    "floats said to be dates": (X.assign(e=NAN), "datetime"),
    "Arrow's nan": (pa.Table.from_pandas(X).append_column("e", pa.array(NAN)), "categorical"),
    "polars": (pl.from_pandas(X).with_columns(e=pl.lit(None)), "ordinal"),
}
LATER = [0.5, "text", True, pd.Timestamp("2024-01-31"), None]


@pytest.mark.parametrize("name", EMPTY)
def test_what_a_column_without_values_holds_later_is_not_looked_at(name, tmp_path):
    table, kind = EMPTY[name]
    model = make_model(sensitive="sex", epochs=1, kinds=kind and {"e": kind})
    with pytest.warns(UserWarning, match=r"without effect: 'e' \(always 'missing'\)"):
        model.fit(table, Y)
    model.save(tmp_path / "model")
    expected = model.predict_proba(table)
    for value in LATER:
        later = X.assign(e=pd.Series([value] * N, dtype=object if value is None else None))
        np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(later), expected)
        assert not model.schema_.diff(later)
    assert not np.any(model.main_effects()["e"].effect)
    assert "0 to 0" not in str(model.schema_)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(N) * 7 % N,
        [f"policy {i}" for i in range(N)],
        [f"policy {i}" if i else None for i in range(N)],
    ],
)
def test_of_a_key_no_value_is_kept(values, tmp_path):
    table = X.assign(key=pd.Categorical(values))
    with pytest.warns(UserWarning, match="looks like a key.* Kept without effect: 'key'. Drop"):
        model = make_model(sensitive="sex", epochs=1).fit(table, Y)
    n_known = table["key"].nunique()
    assert (model.schema_["key"].categories, model.schema_["key"].n_pooled) == ((), n_known)
    assert Scorer(model)(pa.Table.from_pandas(table)).column_names[0] == "key"  # copied
    model.save(tmp_path / "model")
    assert b"policy 7" not in (tmp_path / "model").read_bytes()
    other = table.assign(key=pd.Categorical([values[1]] * N))
    np.testing.assert_array_equal(model.predict_proba(other), model.predict_proba(table))
    assert not model.schema_.diff(other)


def test_a_column_of_rare_categories_is_no_key():
    n = 6_000
    table = pd.DataFrame({"a": RNG.normal(size=n), "agent": [f"agent {i // 5}" for i in range(n)]})
    model = make_model(epochs=1).fit(table, np.arange(n) // 5 % 3)  # without a warning
    assert len(model.schema_["agent"].categories) == n // 5
    assert np.any(model.main_effects()["agent"].effect)
    assert make_model(epochs=1).fit(table, np.arange(n) // 5 % 2).schema_["agent"].kind == "rated"
