"""Loaders: where data sets are looked for, and what they give where they are at hand."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest

from fcorr import _core
from fcorr._core import InvalidInputError
from fcorr.data import (
    Dataset,
    load_adult,
    load_bemtpl97,
    load_fremtpl2,
)
from fcorr.data.datasets import data_folder
from fcorr.metrics import poisson_deviance

LOADERS = [load_adult, load_fremtpl2, load_bemtpl97]
FRAMES = {"pyarrow": pa.Table, "pandas": pd.DataFrame, "polars": pl.DataFrame}
FIRST_FILES = {
    load_adult: ("adult/adult.data.gz", "Call fetch_adult() to download it."),
    load_fremtpl2: ("freMTPL2/freMTPL2freq.parquet", "Call fetch_fremtpl2() to download it."),
    load_bemtpl97: ("beMTPL97/beMTPL97.parquet", "Call fetch_bemtpl97() to download it."),
}

# Where they are looked for


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"FCORR_DATA": "variable", "XDG_CACHE_HOME": "cache"}, "variable"),
        ("linux", {"FCORR_DATA": "", "XDG_CACHE_HOME": "cache"}, "cache/fcorr"),
        ("linux", {}, ".cache/fcorr"),
        ("darwin", {}, "Library/Caches/fcorr"),
        ("win32", {}, "AppData/Local/fcorr"),
        ("win32", {"LOCALAPPDATA": "chosen"}, "chosen/fcorr"),
    ],
)
def test_argument_then_variable_then_cache(monkeypatch, tmp_path, platform, variables, expected):
    for name in ("FCORR_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, folder in variables.items():
        monkeypatch.setenv(name, folder and str(tmp_path / folder))
    assert data_folder("~/data") == Path.home() / "data"
    monkeypatch.setattr(_core.sys, "platform", platform)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / expected
    assert data_folder(tmp_path / "argument") == tmp_path / "argument"


@pytest.mark.parametrize("load", FIRST_FILES)
def test_a_missing_file_is_named_with_the_way_out(load, tmp_path):
    file, way_out = FIRST_FILES[load]
    with pytest.raises(FileNotFoundError) as caught:
        load(data_home=tmp_path)
    assert str(caught.value) == (
        f"{load.__name__} needs {file}, which is not in {str(tmp_path)!r}. {way_out} "
        "Set FCORR_DATA, or pass data_home, for another folder."
    )
    # An unknown frame is refused before anything is looked for.
    with pytest.raises(InvalidInputError, match=r"got 'panda'\. Did you mean 'pandas'\?"):
        load(frame="panda", data_home=tmp_path)


def test_no_network_at_import():
    code = (
        "import socket\n"
        "def refuse(*args): raise SystemExit('the network was used')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "import fcorr.data"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# What they give


@pytest.fixture(scope="module", params=LOADERS, ids=lambda load: load.__name__)
def loaded(request, real_data):
    return request.param, request.param()


@pytest.fixture(scope="module")
def french(real_data):
    return load_fremtpl2()


def as_lists(X):
    if isinstance(X, pa.Table):
        return X.to_pydict()
    if isinstance(X, pd.DataFrame):  # NaN is how pandas writes a missing category
        return {name: X[name].astype(object).where(X[name].notna(), None).tolist() for name in X}
    return {name: X[name].to_list() for name in X.columns}


def test_frames_hold_the_same(loaded):
    load, data = loaded
    for frame, kind in FRAMES.items():
        again = load(frame=frame)
        for part, reference in ((again.train, data.train), (again.test, data.test)):
            assert isinstance(part.X, kind)
            assert np.array_equal(part.y, reference.y)
            # A sample of rows: turning all of them into Python objects takes half a minute.
            assert as_lists(part.X[:3_000]) == reference.X[:3_000].to_pydict()


def test_a_data_set_says_what_it_is_and_its_parts_agree(loaded):
    load, data = loaded
    assert isinstance(data, Dataset)
    for text in (data.name, data.target, data.description, data.source, data.licence):
        assert len(text) > 3
    assert len(repr(data)) < 1_000  # no table in it
    assert len(data.train) == len(data.train.y) == data.train.X.num_rows
    assert data.train.X.schema == data.test.X.schema
    assert set(data.sensitive) <= set(data.train.X.column_names)
    n_missing = {}
    for name in data.train.X.column_names:
        train, test = (part.X[name].combine_chunks() for part in (data.train, data.test))
        n_missing[name] = train.null_count + test.null_count
        if pa.types.is_dictionary(train.type):
            assert train.dictionary == test.dictionary
            assert train.dictionary.to_pylist() == sorted(train.dictionary.to_pylist())
    known = {"workclass": 2_799, "occupation": 2_809, "native_country": 857}
    found = {name: count for name, count in n_missing.items() if count}
    assert found == (known if load is load_adult else {})


def test_adult_without_a_network(real_data, no_network):
    adult = load_adult(data_home=real_data)
    assert (len(adult.train), adult.train.y.sum()) == (32_561, 7_841)
    assert (len(adult.test), adult.test.y.sum()) == (16_281, 3_846)
    assert adult.train.exposure is None
    assert repr(adult.train) == "Part(32,561 rows, 14 features)"
    assert adult.train.X["race"].combine_chunks().dictionary.to_pylist() == [
        *("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White")
    ]


def test_fremtpl2_is_the_published_benchmark(french):
    assert (len(french.train), len(french.test)) == (610_206, 67_801)
    assert french.train.y.sum() + french.test.y.sum() == 26_383
    assert max(french.train.y.max(), french.test.y.max()) == 5
    assert max(french.train.exposure.max(), french.test.exposure.max()) == 1
    frequency = french.train.y.sum() / french.train.exposure.sum()
    for part, published in ((french.train, 25.213), (french.test, 25.445)):
        deviance = 100 * poisson_deviance(part.y, part.exposure * frequency)
        assert deviance == pytest.approx(published, abs=5e-4)


def test_fremtpl2_split_is_the_published_one(real_data, french):
    folder = real_data / "freMTPL2"
    published = pa_parquet.read_table(folder / "published_test_idpol.parquet")["IDpol"].to_numpy()
    policies = pa_parquet.read_table(folder / "freMTPL2freq.parquet").to_pandas()
    of_test = policies[policies["IDpol"].isin(published)].sort_values("IDpol")
    for name in french.test.X.column_names:
        assert french.test.X[name].to_pylist() == of_test[name].tolist()
    assert np.array_equal(french.test.exposure, of_test["Exposure"].clip(upper=1))


def test_bemtpl97(real_data, tmp_path):
    belgian = load_bemtpl97()
    y = np.concatenate([belgian.train.y, belgian.test.y])
    assert (len(belgian.train), len(belgian.test)) == (130_732, 32_480)
    assert np.mean(y > 0) == pytest.approx(0.112, abs=5e-4)
    assert set(belgian.train.X["sex"].to_pylist()) == {"female", "male"}
    assert repr(belgian.test) == "Part(32,480 rows, 11 features, exposure 28,986)"
    # The parts are alike: their frequencies differ by less than two standard errors.
    claims, years = (
        np.array([np.sum(getattr(part, name)) for part in (belgian.train, belgian.test)])
        for name in ("y", "exposure")
    )
    assert abs(np.diff(claims / years)[0]) < 2 * np.sqrt(np.sum(claims / years**2))
    (tmp_path / "beMTPL97").mkdir()
    table = pa_parquet.read_table(real_data / "beMTPL97" / "beMTPL97.parquet")
    pa_csv.write_csv(table, tmp_path / "beMTPL97" / "beMTPL97.csv")
    from_csv = load_bemtpl97(data_home=tmp_path)
    assert from_csv.test.X.equals(belgian.test.X)
    assert np.array_equal(from_csv.test.y, belgian.test.y)


# Other files than the published ones


def write_changed(real_data, folder, name, change):
    """Write a published table, changed, and return where it lies."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    pa_parquet.write_table(change(pa_parquet.read_table(real_data / name)), path)
    return path


def test_a_file_with_rows_missing_is_refused(tmp_path, real_data):
    name = "beMTPL97/beMTPL97.parquet"
    path = write_changed(real_data, tmp_path, name, lambda table: table.slice(0, 100))
    with pytest.raises(InvalidInputError) as caught:
        load_bemtpl97(data_home=tmp_path)
    assert str(caught.value) == (
        f"beMTPL97.parquet must have 163,212 rows, got 100. Replace {str(path)!r} by the original."
    )


def test_files_from_two_sources_do_not_make_one_benchmark(tmp_path, real_data):
    def give_one_policy_ten_claims(table):
        ids = table["IDpol"].to_numpy().copy()
        ids[:10] = 1
        return table.set_column(0, "IDpol", pa.array(ids))

    write_changed(real_data, tmp_path, "freMTPL2/freMTPL2freq.parquet", lambda table: table)
    write_changed(real_data, tmp_path, "freMTPL2/freMTPL2sev.parquet", give_one_policy_ten_claims)
    with pytest.raises(InvalidInputError) as caught:
        load_fremtpl2(data_home=tmp_path)
    assert str(caught.value) == (
        "freMTPL2 must have 678,007 policies with at most 5 claims, got 678,006. "
        "Take both files from one source, such as fetch_fremtpl2(force=True)."
    )
