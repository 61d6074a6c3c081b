import os
import stat

import pytest

from fcorr._core import write_atomically


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    write_atomically(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_interrupted_write_leaves_what_was_there(tmp_path, monkeypatch, step, error):
    old, absent = tmp_path / "old", tmp_path / "absent"
    old.write_bytes(b"old")

    def interrupt(*_):
        raise error

    monkeypatch.setattr(os, step, interrupt)
    for path in (old, absent):
        with pytest.raises(type(error)):
            write_atomically(path, b"new")
    assert os.listdir(tmp_path) == ["old"]
    assert old.read_bytes() == b"old"


def test_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "nowhere" / "file", b"new")
    assert os.listdir(tmp_path) == []


def test_folder_in_the_way(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "taken", b"new")
    assert os.listdir(tmp_path) == ["taken"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_permissions_follow_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "file", b"")
        assert os.umask(umask) == umask  # looked at, not changed
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
