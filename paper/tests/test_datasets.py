"""Data sets: where they are looked for, what they give, and how they are downloaded.

From a server on the loopback: whole and checked, or an error that helps.
"""

import gzip
import hashlib
import http.server
import io
import os
import socket
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pyreadr
import pytest
from sklearn.metrics import mean_poisson_deviance

from fcorr._core import InvalidInputError
from paper import datasets
from paper.datasets import (
    Dataset,
    DownloadError,
    data_folder,
    fetch_adult,
    fetch_baf,
    fetch_bemtpl97,
    fetch_file,
    fetch_fremtpl2,
    load_adult,
    load_baf,
    load_bemtpl97,
    load_fremtpl2,
)
from paper.generators import make_bank_fraud

LOADERS = [load_adult, load_fremtpl2, load_bemtpl97]
FIRST_FILES = {
    load_adult: ("adult/adult.data.gz", "Call fetch_adult() to download it."),
    load_fremtpl2: ("freMTPL2/freMTPL2freq.parquet", "Call fetch_fremtpl2() to download it."),
    load_bemtpl97: ("beMTPL97/beMTPL97.parquet", "Call fetch_bemtpl97() to download it."),
}


@pytest.fixture(scope="session")
def real_data():
    if "FCORR_DATA" not in os.environ:
        pytest.skip("FCORR_DATA does not name the folder with the data sets")
    return Path(os.environ["FCORR_DATA"])


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path not in self.server.answers:
            self.send_error(404)
            return
        content, length = self.server.answers[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Answers on the loopback: a content by path, and what length is claimed for it."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.answers, self.asked = {}, []

    def offer(self, path, content, *, length=None):
        self.answers[path] = (content, len(content) if length is None else length)
        return self.url + path


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as server:
        # It looks this often, in seconds, whether it shall end.
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
    thread.join()


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


# Where they are looked for


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"FCORR_DATA": "variable", "XDG_CACHE_HOME": "cache"}, "variable"),
        ({"FCORR_DATA": "", "XDG_CACHE_HOME": "cache"}, "cache/fcorr"),
        ({}, ".cache/fcorr"),
    ],
)
def test_argument_then_variable_then_cache(monkeypatch, tmp_path, variables, expected):
    for name in ("FCORR_DATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, folder in variables.items():
        monkeypatch.setenv(name, folder and str(tmp_path / folder))
    assert data_folder("~/data") == Path.home() / "data"
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


# What they give


@pytest.fixture(scope="module", params=LOADERS, ids=lambda load: load.__name__)
def loaded(request, real_data):
    return request.param, request.param()


@pytest.fixture(scope="module")
def french(real_data):
    return load_fremtpl2()


def test_a_data_set_says_what_it_is_and_its_parts_agree(loaded):
    load, data = loaded
    assert isinstance(data, Dataset)
    for text in (data.name, data.target, data.description, data.source, data.licence):
        assert len(text) > 3
    assert len(repr(data)) < 1_000  # no table in it
    assert len(data.train) == len(data.train.y) == len(data.train.X)
    assert data.train.X.dtypes.equals(data.test.X.dtypes)  # categories and their order, too
    assert set(data.sensitive) <= set(data.train.X.columns)
    n_missing = (data.train.X.isna().sum() + data.test.X.isna().sum()).to_dict()
    for name, column in data.train.X.select_dtypes("category").items():
        assert list(column.cat.categories) == sorted(column.cat.categories), name
    known = {"workclass": 2_799, "occupation": 2_809, "native_country": 857}
    found = {name: count for name, count in n_missing.items() if count}
    assert found == (known if load is load_adult else {})


def test_adult_without_a_network(real_data, no_network):
    adult = load_adult(data_home=real_data)
    assert (len(adult.train), adult.train.y.sum()) == (32_561, 7_841)
    assert (len(adult.test), adult.test.y.sum()) == (16_281, 3_846)
    assert adult.train.exposure is None
    assert repr(adult.train) == "Part(32,561 rows, 14 features)"
    assert list(adult.train.X["race"].cat.categories) == [
        *("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White")
    ]


def test_fremtpl2_is_the_published_benchmark(french):
    assert (len(french.train), len(french.test)) == (610_206, 67_801)
    assert french.train.y.sum() + french.test.y.sum() == 26_383
    assert max(french.train.y.max(), french.test.y.max()) == 5
    assert max(french.train.exposure.max(), french.test.exposure.max()) == 1
    frequency = french.train.y.sum() / french.train.exposure.sum()
    for part, published in ((french.train, 25.213), (french.test, 25.445)):
        deviance = 100 * mean_poisson_deviance(part.y, part.exposure * frequency)
        assert deviance == pytest.approx(published, abs=5e-4)


def test_fremtpl2_split_is_the_published_one(real_data, french):
    folder = real_data / "freMTPL2"
    published = pa_parquet.read_table(folder / "published_test_idpol.parquet")["IDpol"].to_numpy()
    policies = pa_parquet.read_table(folder / "freMTPL2freq.parquet").to_pandas()
    of_test = policies[policies["IDpol"].isin(published)].sort_values("IDpol")
    for name in french.test.X.columns:
        assert french.test.X[name].tolist() == of_test[name].tolist()
    assert np.array_equal(french.test.exposure, of_test["Exposure"].clip(upper=1))


def test_bemtpl97(real_data, tmp_path):
    belgian = load_bemtpl97()
    y = np.concatenate([belgian.train.y, belgian.test.y])
    assert (len(belgian.train), len(belgian.test)) == (130_732, 32_480)
    assert np.mean(y > 0) == pytest.approx(0.112, abs=5e-4)
    assert set(belgian.train.X["sex"]) == {"female", "male"}
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


# Downloads

CONTENT = os.urandom(200_000)
OPTIONS = {"way_out": "By hand.", "force": False, "verbose": False}


def test_content_arrives_in_a_new_folder_with_one_line_of_progress(server, tmp_path, capfd):
    url = server.offer("/file.bin", CONTENT)
    path = tmp_path / "new" / "file"
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    fetch_file(url, path, bytes, "", sha256, force=False, verbose=True)
    assert path.read_bytes() == CONTENT
    assert capfd.readouterr() == ("", f"downloading {url}\n")
    fetch_file(url, path, lambda content: content[:3], "", force=True, verbose=False)
    assert path.read_bytes() == CONTENT[:3]
    assert capfd.readouterr() == ("", "")
    assert os.listdir(tmp_path / "new") == ["file"]


def test_what_goes_wrong_is_said_with_the_way_out(server, tmp_path):
    half = server.offer("/half", CONTENT[:1_000], length=5_000)
    other = server.offer("/other", b"something else")
    found = hashlib.sha256(b"something else").hexdigest()
    for url, sha256, reason in (
        (f"{server.url}/gone", None, "404"),
        ("http://127.0.0.1:1/file", None, "refused"),  # nobody listens at port 1
        (half, None, "1000 bytes read, 4000 more expected"),
        (other, "0" * 64, f"expected {'0' * 64} but got {found}"),
    ):
        with pytest.raises(DownloadError) as caught:
            fetch_file(url, tmp_path / "new" / "file", bytes, sha256=sha256, **OPTIONS)
        assert str(caught.value).startswith(f"{url} could not be downloaded (")
        assert reason in str(caught.value)
        assert str(caught.value).endswith("). By hand.")
        assert isinstance(caught.value, OSError)
        assert list(tmp_path.iterdir()) == []


def as_parquet(table):
    buffer = io.BytesIO()
    pa_parquet.write_table(table, buffer)
    return buffer.getvalue()


def test_what_is_fetched_of_adult(real_data, server, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "_ADULT_URL", f"{server.url}/adult")
    for name in ("adult.data", "adult.test"):
        content = gzip.decompress((real_data / "adult" / f"{name}.gz").read_bytes())
        server.offer(f"/adult/{name}", content)
    assert fetch_adult(data_home=tmp_path, verbose=False) == tmp_path / "adult"
    fetched, original = load_adult(data_home=tmp_path), load_adult(data_home=real_data)
    assert fetched.test.X.equals(original.test.X)
    assert len(server.asked) == 2
    fetch_adult(data_home=tmp_path, verbose=False)
    assert len(server.asked) == 2  # what is there is not asked for again
    fetch_adult(data_home=tmp_path, force=True, verbose=False)
    assert len(server.asked) == 4


def test_what_is_fetched_of_fremtpl2(real_data, server, tmp_path, monkeypatch):
    urls = {}
    for name in ("freMTPL2freq", "freMTPL2sev"):
        table = pa_parquet.read_table(real_data / "freMTPL2" / f"{name}.parquet")
        # As OpenML has it: real numbers, quoted texts, no order to rely on.
        order = np.random.default_rng(0).permutation(table.num_rows)
        columns = {
            column.name: pc.binary_join_element_wise(
                "'", table[column.name].cast("string"), "'", ""
            )
            if pa.types.is_dictionary(column.type)
            else table[column.name].cast(pa.float64())
            for column in table.schema
        }
        urls[name] = server.offer(f"/{name}.pq", as_parquet(pa.table(columns).take(order)))
    monkeypatch.setattr(datasets, "_FRE_URLS", urls)
    assert fetch_fremtpl2(data_home=tmp_path, verbose=False) == tmp_path / "freMTPL2"
    fetched, original = load_fremtpl2(data_home=tmp_path), load_fremtpl2(data_home=real_data)
    for part, reference in ((fetched.train, original.train), (fetched.test, original.test)):
        assert part.X.equals(reference.X)
        assert np.array_equal(part.y, reference.y)
        assert np.array_equal(part.exposure, reference.exposure)


def test_what_is_fetched_of_bemtpl97(real_data, server, tmp_path, monkeypatch):
    table = pa_parquet.read_table(real_data / "beMTPL97" / "beMTPL97.parquet")
    file = tmp_path / "beMTPL97.rda"
    pyreadr.write_rdata(file, table.to_pandas(), df_name="beMTPL97")
    content = gzip.compress(file.read_bytes(), 1)  # pyreadr's own is as small as can be, and slow
    monkeypatch.setattr(datasets, "_BE_URL", server.offer("/beMTPL97.rda", content))
    assert fetch_bemtpl97(data_home=tmp_path, verbose=False) == tmp_path / "beMTPL97"
    fetched, original = load_bemtpl97(data_home=tmp_path), load_bemtpl97(data_home=real_data)
    assert fetched.train.X.equals(original.train.X)


EXPORT_FRE = (
    "Export freMTPL2freq from R's CASdatasets, as CSV or Parquet, and put it at "
    "'{folder}/freMTPL2/freMTPL2freq.csv' or '{folder}/freMTPL2/freMTPL2freq.parquet'."
)
EXPORT_BE = (
    "In R: data(beMTPL97, package = 'CASdatasets'); write.csv(beMTPL97, 'beMTPL97.csv', "
    "row.names = FALSE, na = ''). Put the file at '{folder}/beMTPL97/beMTPL97.csv'."
)
GET_ADULT = "Get adult.data some other way and put it, gzipped, at '{folder}/adult/adult.data.gz'."
ONE_ROW = pa.table({name: [1] for name in datasets._FRE_COLUMNS["freMTPL2freq"]})


@pytest.mark.parametrize(
    ("fetch", "content", "reason", "way_out"),
    [
        (fetch_adult, b"sorry", "could not be downloaded (SHA256", GET_ADULT),
        (fetch_adult, None, "could not be downloaded (404", GET_ADULT),
        (fetch_fremtpl2, b"no Parquet", "is not freMTPL2freq (Could not open Parquet", EXPORT_FRE),
        (
            fetch_fremtpl2,
            as_parquet(pa.table({"IDpol": [1]})),
            "is not freMTPL2freq (freMTPL2freq must have the published columns, 'Exposure'",
            EXPORT_FRE,
        ),
        (fetch_fremtpl2, as_parquet(ONE_ROW), "must have 678,013 rows, got 1.", EXPORT_FRE),
        (fetch_fremtpl2, None, "could not be downloaded (404", EXPORT_FRE),
        (
            fetch_bemtpl97,
            b"<html>",
            "is not beMTPL97 (it cannot be read as an .rda file: ",
            EXPORT_BE,
        ),
        (fetch_bemtpl97, None, "could not be downloaded (404", EXPORT_BE),
    ],
)
def test_another_file_is_refused(server, tmp_path, monkeypatch, fetch, content, reason, way_out):
    if content is not None:
        for path in ("/adult.data", "/freMTPL2freq"):
            server.offer(path, content)
    monkeypatch.setattr(datasets, "_ADULT_URL", server.url)
    monkeypatch.setattr(datasets, "_FRE_URLS", {"freMTPL2freq": f"{server.url}/freMTPL2freq"})
    monkeypatch.setattr(datasets, "_BE_URL", f"{server.url}/freMTPL2freq")
    with pytest.raises(DownloadError) as caught:
        fetch(data_home=tmp_path, verbose=False)
    assert reason in str(caught.value)
    assert str(caught.value).endswith(way_out.format(folder=tmp_path))
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# Bank Account Fraud

KAGGLE = (
    "Its licence is for non-commercial use and a download by hand: get Base.csv from "
    "https://www.kaggle.com/datasets/sgpjesus/bank-account-fraud-dataset-neurips-2022 and put "
    "it into"
)


def test_bank_account_fraud_is_not_downloaded(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        fetch_baf(data_home=tmp_path)
    assert str(caught.value) == (
        f"fetch_baf cannot download Bank Account Fraud. {KAGGLE} {str(tmp_path / 'baf')!r}."
    )
    (tmp_path / "baf").mkdir()
    (tmp_path / "baf" / "Base.csv").touch()
    assert fetch_baf(data_home=tmp_path) == tmp_path / "baf"


@pytest.fixture
def fraud_file(tmp_path):
    X, y = make_bank_fraud(3_000, fraud_rate=0.1, random_state=0)
    (tmp_path / "baf").mkdir()
    path = tmp_path / "baf" / "Base.csv"
    pa_csv.write_csv(X.add_column(0, "fraud_bool", pa.array(y)), path)
    return path, X, y


def test_baf_reads_a_file_of_the_published_form(fraud_file):
    path, X, y = fraud_file
    fraud = load_baf(data_home=path.parent.parent)
    month = np.array(X["month"].to_pylist()).astype(int)
    assert np.array_equal(fraud.train.y, y[month <= 5])
    assert np.array_equal(fraud.test.y, y[month >= 6])
    assert list(fraud.test.X.columns) == X.column_names
    for field in X.schema:
        expected = X[field.name].filter(pa.array(month >= 6)).to_pylist()
        is_category = pa.types.is_dictionary(field.type)
        found = fraud.test.X[field.name]
        assert found.tolist() == (expected if is_category else pytest.approx(expected))
        assert (found.dtype == "category") == is_category


def test_a_missing_file_or_column_is_named(fraud_file, tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        load_baf(data_home=tmp_path / "elsewhere")
    assert f"{KAGGLE} the folder baf. Set FCORR_DATA" in str(missing.value)
    path, X, _ = fraud_file
    pa_csv.write_csv(X, path)  # the target is missing
    with pytest.raises(InvalidInputError) as caught:
        load_baf(data_home=path.parent.parent)
    assert str(caught.value) == (
        "Base.csv must have the published columns, 'fraud_bool' not found among 'income', "
        "'name_email_similarity', 'prev_address_months_count', 'current_address_months_count', "
        f"'customer_age' and 26 more. Replace {str(path)!r} by the original."
    )
