"""Training on Parquet files that are read piece by piece."""

import logging
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.metrics import log_loss

from fcorr import FCorrClassifier, FCorrRegressor, InvalidInputError, UnseenCategoryWarning
from fcorr.data import ParquetTable
from fcorr.data.encode import EncodedTable
from fcorr.data.stream import RowStore, hash_places
from fcorr.estimators.options import parse_amount
from fcorr.training.rows import StoredRows

OPTIONS = {"sensitive": "s", "epochs": 4, "random_state": 0}


def make_people(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(size=n_rows),
            "s": rng.choice(["x", "y"], n_rows),
            "job": rng.choice(list("abcde"), n_rows),
            "bank": rng.integers(0, 80, n_rows).astype(str),
            "gain": np.where(rng.random(n_rows) < 0.1, np.nan, rng.exponential(size=n_rows)),
        }
    )
    effect = np.random.default_rng(1).normal(size=80)
    score = table["age"] + (table["job"] == "b") + np.sin(2 * table["gain"].fillna(0))
    score += effect[table["bank"].astype(int)]
    table["y"] = (rng.random(n_rows) < 1 / (1 + np.exp(-score))).astype(int)
    table["w"] = np.where(rng.random(n_rows) < 0.1, 0.0, rng.uniform(0.5, 2, n_rows))
    return table


def write_parts(table, folder, n_parts=3):
    size = -(-len(table) // n_parts)
    for k in range(n_parts):
        table[k * size : (k + 1) * size].to_parquet(
            folder / f"part-{k}.parquet", row_group_size=500, index=False
        )
    return folder


@pytest.fixture(scope="module")
def people():
    return make_people(12_000)


@pytest.fixture(scope="module")
def folder(people, tmp_path_factory):
    return write_parts(people.sort_values("y"), tmp_path_factory.mktemp("people"))


@pytest.fixture
def small_parts(monkeypatch):
    """As if memory were far smaller: 4,000 rows to infer from, and some 20 parts."""
    monkeypatch.setattr("fcorr.data.stream.share_to_sample", lambda *_: 1 / 3)
    monkeypatch.setattr("fcorr.data.stream._PART_SHARE", 4_096)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("n_members", [1, 2])
def test_it_is_as_good_as_in_memory(people, folder, n_members):
    options = OPTIONS | {"n_members": n_members}
    X, y, w = people.drop(columns=["y", "w"]), people["y"], people["w"]
    in_memory = FCorrClassifier(**options).fit(X, y, w)
    model = FCorrClassifier(**options).fit(folder, "y", "w", memory="64MB")
    test = make_people(6_000, seed=5)
    losses = [log_loss(test["y"], each.predict_proba(test)) for each in (in_memory, model)]
    assert losses[1] < 1.02 * losses[0]
    assert losses[1] < 0.9 * log_loss(test["y"], np.full(len(test), y.mean()))
    # What is said of the whole table is about all of its rows.
    assert model.schema_.n_rows == in_memory.schema_.n_rows == (w > 0).sum()
    assert model.predict_proba(X)[:, 1] @ w == pytest.approx(y @ w, rel=1e-8)
    assert model.exact_
    counts = [dict(zip(m.schema_["job"].categories, m.schema_["job"].counts, strict=True))
              for m in (in_memory, model)]  # fmt: skip
    assert all(abs(counts[1][c] - n) < 0.15 * n for c, n in counts[0].items())


@pytest.mark.usefixtures("small_parts")
def test_counts_with_exposure_and_the_same_seed(people, tmp_path):
    rng = np.random.default_rng(3)
    table = people.assign(years=rng.uniform(0.1, 1, len(people)))
    table["y"] = rng.poisson(table["years"] * np.exp(0.5 * table["age"]))
    table[["age", "job", "years", "y"]].to_parquet(tmp_path / "claims.parquet")
    options = {"objective": "poisson", "exposure": "years", "n_members": 1, "epochs": 3}
    fits = [
        FCorrRegressor(**options, random_state=0).fit(tmp_path / "claims.parquet", "y")
        for _ in range(2)
    ]
    found = [model.predict(table) for model in fits]
    assert np.array_equal(*found)
    assert found[0].sum() == pytest.approx(table["y"].sum(), rel=1e-8)
    assert np.corrcoef(np.log(fits[0].predict_rate(table)), table["age"])[0, 1] > 0.9


@pytest.mark.usefixtures("small_parts")
def test_it_stops_early_and_goes_on(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("fcorr.training.checkpoint._WITHIN_EPOCH", -1.0)
    advanced = {"early_stopping": 2, "validation_fraction": 0.2, "batch_size": 512}
    options = OPTIONS | {"n_members": 1, "advanced": advanced}
    whole = FCorrClassifier(**options).fit(folder, "y", "w")
    assert whole.history_.best_epoch is not None

    class EnoughError(Exception):
        pass

    def stop(record):
        if record.epoch == 2:
            raise EnoughError

    with pytest.raises(EnoughError):
        FCorrClassifier(**options).fit(folder, "y", "w", checkpoint=tmp_path, on_epoch_end=stop)
    model = FCorrClassifier(**options).fit(folder, "y", "w", checkpoint=tmp_path)
    rows = make_people(500, seed=6)
    assert np.array_equal(model.predict_proba(rows), whole.predict_proba(rows))


@pytest.mark.usefixtures("small_parts")
def test_a_category_that_was_not_drawn_is_said(people, tmp_path):
    table = people.drop(columns="w")
    is_drawn = hash_places(np.arange(len(table)), 1) < np.uint64(2**64 // 3)
    table.loc[[np.flatnonzero(~is_drawn)[0]], "s"] = "once"
    table.to_parquet(tmp_path / "people.parquet")
    with pytest.warns(UnseenCategoryWarning, match=r"1 row\(s\) of 's'.* 3,950 drawn rows: raise"):
        FCorrClassifier(n_members=1, **OPTIONS | {"epochs": 1}).fit(tmp_path, "y")


@pytest.mark.usefixtures("small_parts")
def test_rows_of_weight_0_have_no_say_in_which_are_drawn(people, tmp_path):
    counted = people[people["w"] > 0]
    everything = people.assign(age=people["age"].where(people["w"] > 0, np.inf))
    for number, table in enumerate([counted, everything]):
        table.to_parquet(tmp_path / f"{number}.parquet", index=False)
    options = OPTIONS | {"n_members": 1, "epochs": 1}
    fits = [FCorrClassifier(**options).fit(file, "y", "w") for file in tmp_path.iterdir()]
    assert fits[0].schema_ == fits[1].schema_
    assert np.array_equal(*(model.predict_proba(counted) for model in fits))


def test_the_columns_can_be_chosen(folder):
    source = ParquetTable(folder, columns=["age", "s", "y"])
    assert source.n_rows == 12_000
    model = FCorrClassifier(n_members=1, **OPTIONS | {"epochs": 1}).fit(source, "y")
    assert model.schema_.names == ("age", "s")


def test_places_are_scattered_evenly():
    for n_parts in (2, 7, 64):
        parts = hash_places(np.arange(100_000), seed=3) % np.uint64(n_parts)
        counts = np.bincount(parts.astype(int), minlength=n_parts)
        expected = 100_000 / n_parts
        assert (abs(counts - expected) < 5 * np.sqrt(expected)).all()
    # Another seed has nothing to do with the first, nor has the next row.
    a, b = (hash_places(np.arange(100_000), seed) % np.uint64(2) for seed in (3, 4))
    assert abs(np.mean(a == b) - 0.5) < 0.01
    assert abs(np.mean(a[1:] == a[:-1]) - 0.5) < 0.01


def test_places_of_rows_in_files_are_found_a_part_at_a_time(tmp_path):
    n_rows, n_numbers = 20_000, 100
    store = RowStore(tmp_path, n_rows, 0, n_numbers, memory=2**24)
    encoded = EncodedTable(np.zeros((n_rows, 0), np.int32), np.ones((n_rows, n_numbers), "f4"))
    store.write([(np.arange(n_rows), encoded)])
    rows = StoredRows(store, torch.zeros(n_rows), torch.ones(n_rows), lambda x: x)
    tracemalloc.start()
    try:
        places = rows.places
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sorted(places) == list(range(n_rows))
    assert store.n_parts > 10
    assert peak < encoded.numbers.nbytes / 4


# What cannot be


@pytest.mark.parametrize(
    ("y", "weight", "message"),
    [
        ("z", None, r"Columns that are asked for must be in '.*people.*', got 'z'. It has"),
        ("y", "ww", r"got 'ww'. Did you mean 'w'\?"),
        ([0, 1], None, "y must name a column of the files that X is in, got list. Pass its name"),
        ("y", [1.0], "sample_weight must name a column of the files"),
        ("gain", None, r"y \('gain'\) must not hold missing values"),
    ],
)
def test_roles_that_are_none(folder, y, weight, message):
    with pytest.raises(InvalidInputError, match=message):
        FCorrClassifier(n_members=1).fit(folder, y, weight)


def test_files_that_do_not_fit_together(people, tmp_path):
    write_parts(people[:600], tmp_path, 2)
    people[:10].assign(age="old").to_parquet(tmp_path / "part-9.parquet")
    with pytest.raises(InvalidInputError, match=r"'age' is .* in 'part-9.parquet'"):
        FCorrClassifier(n_members=1).fit(tmp_path, "y")


def test_an_empty_file_among_others_and_nothing_but_empty_files(people, tmp_path):
    people[:0].to_parquet(tmp_path / "a.parquet", index=False)
    schema = pq.read_schema(write_parts(people[:2_000], tmp_path, 1) / "part-0.parquet")
    pq.write_table(schema.empty_table(), tmp_path / "a.parquet")
    FCorrClassifier(n_members=1, **OPTIONS | {"epochs": 1}).fit(tmp_path, "y")
    with pytest.raises(InvalidInputError, match="must have rows, got none"):
        FCorrClassifier().fit(tmp_path / "a.parquet", "y")


def test_a_broken_row_group_is_named(people, tmp_path):
    path = write_parts(people[:2_000], tmp_path, 1) / "part-0.parquet"
    content = bytearray(path.read_bytes())
    content[4:100] = b"\xff" * 96  # the header of a page; in the middle of one only sums tell
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"part-0.parquet' cannot be read as Parquet"):
        FCorrClassifier(n_members=1).fit(tmp_path, "y")


def test_an_infinite_number_is_named_by_its_row(people, tmp_path):
    table = people[:3_000].reset_index(drop=True)
    table.loc[2_345, "age"] = np.inf
    write_parts(table, tmp_path, 2)
    with pytest.raises(InvalidInputError, match=r"'age' must hold finite numbers .* row 2345"):
        FCorrClassifier(n_members=1).fit(tmp_path, "y")


def test_a_proxy_dial_needs_memory(folder):
    with pytest.raises(InvalidInputError, match="proxy needs a table in memory"):
        FCorrClassifier(proxy=1.0, **OPTIONS).fit(folder, "y")


@pytest.mark.parametrize(
    ("memory", "size"), [("2GB", 2 * 10**9), ("64 mb", 64 * 10**6), (1e9, 10**9)]
)
def test_memory(memory, size):
    assert parse_amount("memory", memory) == size


@pytest.mark.parametrize("memory", ["2", "lots", "1MB", 0, float("nan"), True, "-2GB"])
def test_what_is_no_memory(memory):
    with pytest.raises(InvalidInputError, match="memory must be a size of at least 64 MB"):
        FCorrClassifier().fit(pa.table({"a": [1, 2]}), [0, 1], memory=memory)


# Watching a fit


def test_epochs_are_told_of_and_can_be_ended(people, caplog):
    X, y = people[["age", "job"]][:500], people["y"][:500]
    heard = []

    def tell(record):
        heard.append(record.epoch)
        return record.epoch == 2

    with caplog.at_level(logging.INFO, logger="fcorr"):
        model = FCorrClassifier(n_members=1, epochs=5, random_state=0).fit(X, y, on_epoch_end=tell)
    assert heard == [1, 2]
    assert len(model.history_.epochs) == 2
    lines = [record.getMessage() for record in caplog.records if "loss" in record.getMessage()]
    assert len(lines) == 2
    assert lines[0].startswith("training: loss ")
