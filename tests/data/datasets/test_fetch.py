"""Downloads, from a server on the loopback: whole and checked, or an error that helps."""

import gzip
import hashlib
import io
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pyreadr
import pytest

from fcorr.data import (
    datasets,
    fetch_adult,
    fetch_bemtpl97,
    fetch_fremtpl2,
    load_adult,
    load_bemtpl97,
    load_fremtpl2,
)
from fcorr.data.datasets import DownloadError, fetch_file

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


def test_without_pooch(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError) as caught:
        fetch_adult(data_home=tmp_path)
    assert str(caught.value) == (
        "The download of adult.data.gz needs pooch: pip install 'fcorr[fetch]'"
    )


def as_parquet(table):
    buffer = io.BytesIO()
    pa_parquet.write_table(table, buffer)
    return buffer.getvalue()


def test_adult(real_data, server, tmp_path, monkeypatch):
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


def test_fremtpl2(real_data, server, tmp_path, monkeypatch):
    urls = {}
    for name in ("freMTPL2freq", "freMTPL2sev"):
        table = pa_parquet.read_table(real_data / "freMTPL2" / f"{name}.parquet")
        # As OpenML has it: real numbers, quoted texts, no order to rely on.
        order = np.random.default_rng(0).permutation(table.num_rows)
        columns = {
            column.name: pa.array([f"'{text}'" for text in table[column.name].to_pylist()])
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


def test_bemtpl97(real_data, server, tmp_path, monkeypatch):
    table = pa_parquet.read_table(real_data / "beMTPL97" / "beMTPL97.parquet")
    file = tmp_path / "beMTPL97.rda"
    pyreadr.write_rdata(file, table.to_pandas(), df_name="beMTPL97", compress="gzip")
    monkeypatch.setattr(datasets, "_BE_URL", server.offer("/beMTPL97.rda", file.read_bytes()))
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
