"""A download is whole and checked, or an error that helps; nothing half is ever left behind."""

import hashlib
import os
import sys

import pytest

from fcorr.data.datasets._dataset import DownloadError, download, save

CONTENT = os.urandom(200_000)


def test_content_arrives_with_one_line_of_progress(server, capsys):
    url = server.offer("/file.bin", CONTENT)
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    assert download(url, way_out="", sha256=sha256) == CONTENT
    assert capsys.readouterr().err == f"downloading {url} (0.2 MB)\n"
    assert download(url, way_out="", verbose=False) == CONTENT
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar(server, capsys, monkeypatch):
    url = server.offer("/file.bin", CONTENT)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert download(url, way_out="") == CONTENT
    assert "downloading file.bin" in capsys.readouterr().err


def test_no_such_file(server):
    with pytest.raises(DownloadError) as caught:
        download(f"{server.url}/gone", way_out="Do it by hand.", verbose=False)
    assert str(caught.value) == (
        f"{server.url}/gone could not be downloaded (404 Not Found). Do it by hand."
    )


def test_no_network(closed_port):
    with pytest.raises(DownloadError, match=r"could not be downloaded \(.*refused.*\)\. By hand\."):
        download(f"{closed_port}/file", way_out="By hand.", verbose=False)


def test_cut_short(server):
    url = server.offer("/file.bin", CONTENT[:1_000], length=5_000)
    with pytest.raises(DownloadError) as caught:
        download(url, way_out="By hand.", verbose=False)
    assert str(caught.value) == (
        f"{url} was cut short: 1,000 of 5,000 bytes arrived. Try again. By hand."
    )


def test_another_file(server):
    url = server.offer("/file.bin", b"something else")
    with pytest.raises(DownloadError) as caught:
        download(url, way_out="By hand.", sha256="0" * 64, verbose=False)
    found = hashlib.sha256(b"something else").hexdigest()
    assert str(caught.value) == (
        f"{url} is not the expected file: its SHA-256 is {found}, not {'0' * 64}. By hand."
    )


def test_a_download_error_is_an_operating_system_error():
    assert issubclass(DownloadError, OSError)


def test_save_makes_the_folder(tmp_path):
    save(tmp_path / "new" / "file", b"content")
    assert (tmp_path / "new" / "file").read_bytes() == b"content"
    assert os.listdir(tmp_path / "new") == ["file"]
