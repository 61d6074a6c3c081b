"""Where data sets are looked for, and what is said when they are not there."""

import subprocess
import sys
from pathlib import Path

import pytest

from fcorr import _core
from fcorr._core import InvalidInputError
from fcorr.data import (
    fetch_baf,
    load_adult,
    load_baf,
    load_bemtpl97,
    load_fremtpl2,
)
from fcorr.data.datasets._dataset import data_folder

FIRST_FILES = {
    load_adult: ("adult/adult.data.gz", "Call fetch_adult() to download it."),
    load_fremtpl2: ("freMTPL2/freMTPL2freq.parquet", "Call fetch_fremtpl2() to download it."),
    load_bemtpl97: ("beMTPL97/beMTPL97.parquet", "Call fetch_bemtpl97() to download it."),
    load_baf: (
        "baf/Base.csv",
        "Its licence is for non-commercial use and a download by hand: get Base.csv from "
        "https://www.kaggle.com/datasets/sgpjesus/bank-account-fraud-dataset-neurips-2022 and put "
        "it into the folder baf.",
    ),
}


def test_argument_then_variable_then_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("FCORR_DATA", str(tmp_path / "variable"))
    assert data_folder(tmp_path / "argument") == tmp_path / "argument"
    assert data_folder() == tmp_path / "variable"
    monkeypatch.setenv("FCORR_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_core.sys, "platform", "linux")
    assert data_folder() == tmp_path / "cache" / "fcorr"


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", None, ".cache/fcorr"),
        ("darwin", None, "Library/Caches/fcorr"),
        ("win32", None, "AppData/Local/fcorr"),
        ("win32", "LOCALAPPDATA", "chosen/fcorr"),
    ],
)
def test_user_cache(monkeypatch, tmp_path, platform, variable, expected):
    for name in ("FCORR_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "chosen"))
    monkeypatch.setattr(_core.sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert data_folder() == tmp_path / expected


def test_home_is_expanded():
    assert data_folder("~/data") == Path.home() / "data"


@pytest.mark.parametrize("load", FIRST_FILES)
def test_a_missing_file_is_named_with_the_way_out(load, tmp_path):
    file, way_out = FIRST_FILES[load]
    with pytest.raises(FileNotFoundError) as caught:
        load(data_home=tmp_path)
    assert str(caught.value) == (
        f"{load.__name__} needs {file}, which is not in {str(tmp_path)!r}. {way_out} "
        "Set FCORR_DATA, or pass data_home, for another folder."
    )


@pytest.mark.parametrize("load", FIRST_FILES)
def test_unknown_frames_are_refused_before_anything_is_read(load, tmp_path):
    with pytest.raises(InvalidInputError, match=r"got 'panda'\. Did you mean 'pandas'\?"):
        load(frame="panda", data_home=tmp_path)


def test_bank_account_fraud_is_not_downloaded(tmp_path, no_network):
    with pytest.raises(FileNotFoundError) as caught:
        fetch_baf(data_home=tmp_path)
    assert str(caught.value) == (
        "fetch_baf cannot download Bank Account Fraud. Its licence is for non-commercial use and a "
        "download by hand: get Base.csv from "
        "https://www.kaggle.com/datasets/sgpjesus/bank-account-fraud-dataset-neurips-2022 and put "
        f"it into {str(tmp_path / 'baf')!r}."
    )
    (tmp_path / "baf").mkdir()
    (tmp_path / "baf" / "Base.csv").touch()
    assert fetch_baf(data_home=tmp_path) == tmp_path / "baf"


def test_no_network_at_import():
    code = (
        "import socket\n"
        "def refuse(*args): raise SystemExit('the network was used')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "import fcorr.data"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
