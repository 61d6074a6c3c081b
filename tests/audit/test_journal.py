"""Files of JSON lines: written as runs end, read again, mended, refused."""

import json
import math

import pytest

from fcorr._core import InvalidInputError
from fcorr.audit.journal import append_line, open_journal


def read(path):
    return open_journal(path, lambda entry: (entry["key"], entry["n"]), of="a test")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "journal.jsonl"
    for n in range(3):
        append_line(path, {"key": f"k{n}", "n": n, "text": "λ = ½\nand more"})
    return path


ENTRIES = [("k0", 0), ("k1", 1), ("k2", 2)]


def test_what_is_written_is_read(path):
    assert read(path) == ENTRIES
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["λ = ½\nand more"] * 3
    assert all(line.startswith('{"key": "k') for line in lines)


def test_no_file_yet(tmp_path):
    assert read(tmp_path / "new.jsonl") == []
    assert not (tmp_path / "new.jsonl").exists()


def test_an_empty_file(tmp_path):
    (tmp_path / "empty.jsonl").touch()
    assert read(tmp_path / "empty.jsonl") == []


def test_a_line_that_was_cut_off_anywhere_is_taken_away(path):
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for end in range(last, len(whole)):
        path.write_bytes(whole[:end])
        assert read(path) == ENTRIES[:2], whole[last:end]
        assert path.read_bytes() == whole[:last]
    append_line(path, {"key": "k3", "n": 3})
    assert read(path) == [*ENTRIES[:2], ("k3", 3)]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a,b\n1,2\n", 1),
        ('{"key": "k", "n": 1}\n\n', 2),
        ('{"key": "k"}\n', 1),
        ("[1]\n", 1),
        ("7\n", 1),
        ('{"key": "k", "n": 1}\n{"other": 1', 2),
        ("notes without an end of line", 1),
    ],
)
def test_a_foreign_file_is_refused_and_left_alone(tmp_path, content, line):
    path = tmp_path / "notes.txt"
    path.write_text(content)
    with pytest.raises(InvalidInputError) as caught:
        read(path)
    assert str(caught.value) == (
        f"path must be a file of a test's records, got {str(path)!r}, whose line {line} is none. "
        "Name a file that does not exist yet."
    )
    assert path.read_text() == content


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe\n")
    with pytest.raises(InvalidInputError, match="whose line 1 is none"):
        read(path)


@pytest.mark.parametrize("name", [".", "no/such/folder.jsonl"])
def test_no_place_for_a_file(tmp_path, name):
    with pytest.raises(InvalidInputError, match=r"must be a file in a folder that exists, got"):
        read(tmp_path / name)


def test_what_json_cannot_say_is_not_written(path):
    before = path.read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        append_line(path, {"key": "k3", "n": math.nan})
    assert path.read_bytes() == before
