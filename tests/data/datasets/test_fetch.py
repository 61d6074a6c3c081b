"""Downloads end to end, from a server on the loopback that sends the real files."""

import gzip
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from fcorr.data import (
    fetch_adult,
    fetch_bemtpl97,
    fetch_fremtpl2,
    load_adult,
    load_bemtpl97,
    load_fremtpl2,
)
from fcorr.data.datasets import adult, motor
from fcorr.data.datasets._dataset import DownloadError


def as_parquet(table):
    buffer = io.BytesIO()
    pa_parquet.write_table(table, buffer)
    return buffer.getvalue()


def test_adult(real_data, server, tmp_path, monkeypatch):
    monkeypatch.setattr(adult, "_URL", f"{server.url}/adult")
    for name in ("adult.data", "adult.test"):
        content = gzip.decompress((real_data / "adult" / f"{name}.gz").read_bytes())
        server.offer(f"/adult/{name}", content)
    assert fetch_adult(data_home=tmp_path, verbose=False) == tmp_path / "adult"
    fetched, original = load_adult(data_home=tmp_path), load_adult(data_home=real_data)
    assert fetched.test.X.equals(original.test.X)

    asked = len(server.asked)
    fetch_adult(data_home=tmp_path, verbose=False)
    assert len(server.asked) == asked == 2  # what is there is not asked for again
    fetch_adult(data_home=tmp_path, force=True, verbose=False)
    assert len(server.asked) == 4


def test_adult_refuses_another_file(server, tmp_path, monkeypatch):
    monkeypatch.setattr(adult, "_URL", f"{server.url}/adult")
    server.offer("/adult/adult.data", b"a page that says sorry")
    with pytest.raises(DownloadError, match="is not the expected file") as caught:
        fetch_adult(data_home=tmp_path, verbose=False)
    path = tmp_path / "adult" / "adult.data.gz"
    assert str(caught.value).endswith(
        f"Get adult.data some other way and put it, gzipped, at {str(path)!r}."
    )
    assert not path.exists()


def test_fremtpl2(real_data, server, tmp_path, monkeypatch):
    urls = {}
    for name in ("freMTPL2freq", "freMTPL2sev"):
        table = pa_parquet.read_table(real_data / "freMTPL2" / f"{name}.parquet")
        # As OpenML has it: real numbers, quoted texts, no order to rely on.
        order = np.random.default_rng(0).permutation(table.num_rows)
        columns = {
            column.name: quoted(table[column.name])
            if pa.types.is_dictionary(column.type)
            else table[column.name].cast(pa.float64())
            for column in table.schema
        }
        content = as_parquet(pa.table(columns).take(order))
        urls[name] = server.offer(f"/{name}.pq", content)
    monkeypatch.setattr(motor, "_FRE_URLS", urls)
    assert fetch_fremtpl2(data_home=tmp_path, verbose=False) == tmp_path / "freMTPL2"
    fetched, original = load_fremtpl2(data_home=tmp_path), load_fremtpl2(data_home=real_data)
    for part, reference in ((fetched.train, original.train), (fetched.test, original.test)):
        assert part.X.equals(reference.X)
        assert np.array_equal(part.y, reference.y)
        assert np.array_equal(part.exposure, reference.exposure)


def quoted(column):
    return pa.array([f"'{text}'" for text in column.to_pylist()])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"no Parquet", "Parquet magic bytes not found"),
        (as_parquet(pa.table({"IDpol": [1]})), "must have the published columns, 'Exposure'"),
        (
            as_parquet(pa.table({name: [1] for name in motor._FRE_COLUMNS["freMTPL2freq"]})),
            "freMTPL2freq must have 678,013 rows, got 1.",
        ),
    ],
)
def test_fremtpl2_refuses_another_file(server, tmp_path, monkeypatch, content, reason):
    monkeypatch.setattr(motor, "_FRE_URLS", {"freMTPL2freq": server.offer("/f.pq", content)})
    with pytest.raises(DownloadError) as caught:
        fetch_fremtpl2(data_home=tmp_path, verbose=False)
    assert reason in str(caught.value)
    path = tmp_path / "freMTPL2" / "freMTPL2freq"
    assert str(caught.value).endswith(
        "Export freMTPL2freq from R's CASdatasets, as CSV or Parquet, and put it at "
        f"'{path}.csv' or '{path}.parquet'."
    )
    assert not path.parent.exists()


def test_bemtpl97(real_data, server, tmp_path, monkeypatch):
    # What reading R's format gives is tested on its own; here it is what surrounds it.
    table = pa_parquet.read_table(real_data / "beMTPL97" / "beMTPL97.parquet")
    monkeypatch.setattr(motor, "_BE_URL", server.offer("/beMTPL97.rda", b"R's bytes"))
    monkeypatch.setattr(motor, "read_rda", lambda content, name: table)
    assert fetch_bemtpl97(data_home=tmp_path, verbose=False) == tmp_path / "beMTPL97"
    fetched, original = load_bemtpl97(data_home=tmp_path), load_bemtpl97(data_home=real_data)
    assert fetched.train.X.equals(original.train.X)


def test_bemtpl97_says_how_to_export_it(server, tmp_path, monkeypatch):
    monkeypatch.setattr(motor, "_BE_URL", server.offer("/beMTPL97.rda", b"<html>"))
    with pytest.raises(DownloadError) as caught:
        fetch_bemtpl97(data_home=tmp_path, verbose=False)
    assert "is not beMTPL97 (An .rda file with the data frame 'beMTPL97' was" in str(caught.value)
    assert str(caught.value).endswith(
        "In R: data(beMTPL97, package = 'CASdatasets'); write.csv(beMTPL97, 'beMTPL97.csv', "
        "row.names = FALSE, na = ''). Put the file at "
        f"{str(tmp_path / 'beMTPL97' / 'beMTPL97.csv')!r}."
    )


@pytest.mark.parametrize(
    ("fetch", "module", "name"),
    [
        (fetch_adult, adult, "_URL"),
        (fetch_fremtpl2, motor, "_FRE_URLS"),
        (fetch_bemtpl97, motor, "_BE_URL"),
    ],
)
def test_without_a_network(fetch, module, name, tmp_path, monkeypatch, closed_port):
    monkeypatch.setattr(module, name, {"freMTPL2freq": closed_port} if name == "_FRE_URLS" else closed_port)
    with pytest.raises(DownloadError, match=r"could not be downloaded \(.*refused") as caught:
        fetch(data_home=tmp_path, verbose=False)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
