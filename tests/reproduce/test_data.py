"""Rows to learn from and rows to test on: drawn, or real where they are to be had."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from fcorr.data import make_bank_fraud
from fcorr.reproduce.data import EXPOSURE, Rows, load_split
from fcorr.reproduce.settings import DataSettings, list_runs

GENERATED = {"indirect_bias": "", "bank_fraud": "Bank Account Fraud", "claims": "InsurTech"}


def settings(name, n_train=60, n_test=60):  # as many: the same seed would draw the same
    return DataSettings(name, n_train, n_test, n_train_measured=10_000, n_trees=3)


def as_texts(rows):
    return rows.X.astype(str).agg("|".join, axis=1).tolist()


@pytest.mark.parametrize("name", GENERATED)
def test_generated_rows(data_folder, name):
    splits = [load_split(settings(name), seed) for seed in (0, 1)]
    for split in splits:
        assert split.name == f"make_{name}"
        assert split.stands_in_for == GENERATED[name]
        assert (len(split.train), len(split.test)) == (60, 60)
        assert not split.train.exposed
        assert split.train.exposure is None
        assert split.train.features is split.train.X
    parts = [part for split in splits for part in (split.train, split.test)]
    if name == "indirect_bias":  # of a few bits, which many rows share
        assert len({part.X.to_numpy().astype(str).tobytes() for part in parts}) == 4
    else:
        rows = [row for part in parts for row in as_texts(part)]
        assert len(set(rows)) == len(rows) == 4 * 60


def test_the_same_seed_gives_the_same_rows(data_folder):
    first = load_split(settings("bank_fraud"), 3)
    load_split.cache_clear()
    again = load_split(settings("bank_fraud"), 3)
    for one, other in ((first.train, again.train), (first.test, again.test)):
        pd.testing.assert_frame_equal(one.X, other.X)
        assert np.array_equal(one.y, other.y)


@pytest.fixture
def fraud_file(data_folder):
    X, y = make_bank_fraud(2_000, fraud_rate=0.1, random_state=5)
    (data_folder / "baf").mkdir()
    pa_csv.write_csv(X.add_column(0, "fraud_bool", pa.array(y)), data_folder / "baf" / "Base.csv")
    return X.to_pandas(), y


def test_a_download_of_the_real_table_is_used(fraud_file):
    X, y = fraud_file
    (data,) = {run.data for run in list_runs("baf", "full")}
    split = load_split(data, 0)
    assert split.name == "Bank Account Fraud (base)"
    assert split.stands_in_for == ""
    month = X["month"].astype(int).to_numpy()
    assert np.array_equal(split.train.y, y[month <= 5])
    assert np.array_equal(split.test.y, y[month >= 6])
    assert split.test.X["income"].to_numpy() == pytest.approx(X["income"][month >= 6].to_numpy())
    assert list(split.train.X) == list(X)


def test_real_rows_do_not_depend_on_the_seed(fraud_file):
    one, other = (load_split(settings("baf", 300, 200), seed) for seed in (0, 1))
    assert (len(one.train), len(one.test)) == (300, 200)
    pd.testing.assert_frame_equal(one.train.X, other.train.X)


def test_records_of_the_real_table_are_not_those_of_the_stand_in(data_folder, request):
    before = {run.key for run in list_runs("baf", "full")}
    request.getfixturevalue("fraud_file")
    after = {run.key for run in list_runs("baf", "full")}
    assert not before & after
    assert {run.data.name for run in list_runs("baf", "smoke")} == {"bank_fraud"}


def test_a_stand_in_is_labelled_as_one(data_folder):
    split = load_split(settings("bank_fraud"), 0)
    assert (split.name, split.stands_in_for) == ("make_bank_fraud", "Bank Account Fraud")


def test_real_data_that_is_missing_is_an_error(data_folder):
    with pytest.raises(FileNotFoundError, match=r"fetch_adult\(\)"):
        load_split(settings("adult"), 0)


@pytest.mark.parametrize("name", ["bemtpl97", "fremtpl2"])
def test_the_exposure_is_a_column(real_data, name):
    split = load_split(settings(name, 400, 300), 0)
    assert split.stands_in_for == "InsurTech"
    for rows, n_rows in ((split.train, 400), (split.test, 300)):
        assert rows.exposed
        assert len(rows) == len(rows.X) == n_rows
        assert np.array_equal(rows.exposure, rows.X[EXPOSURE])
        assert rows.exposure.dtype == np.float64
        assert np.all((rows.exposure > 0) & (rows.exposure <= 1))
        assert [*rows.features, EXPOSURE] == list(rows.X)
    assert load_split(settings(name, 400, 300), 1).train.y.tolist() == split.train.y.tolist()


def test_adult_has_no_exposure(real_data):
    split = load_split(settings("adult", None, None), 0)
    assert (split.name, split.stands_in_for) == ("Adult", "")
    assert (len(split.train), len(split.test)) == (32_561, 16_281)
    assert split.train.exposure is None


def test_first_rows():
    rows = Rows(pd.DataFrame({"a": range(5), EXPOSURE: 0.5}), np.arange(5), exposed=True)
    some = rows.first(2)
    assert (some.X["a"].tolist(), some.y.tolist(), some.exposed) == ([0, 1], [0, 1], True)
    assert rows.first(None) is rows
    assert rows.first(5) is rows
    assert replace(rows, exposed=False).exposure is None
