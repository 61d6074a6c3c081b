"""What every room stands on: errors, optional packages, files, text, randomness, progress."""

import io
import math
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fcorr import _core
from fcorr._core import (
    InvalidInputError,
    check_argument,
    check_name,
    check_writable,
    counted_rows,
    draw_seed,
    enumerate_some,
    html_table,
    near_match,
    refuse_rows,
    require,
    show_progress,
    show_text,
    temporary_folder,
    user_cache,
    write_atomically,
)

# Errors


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("agee", ["sex", "age"], " Did you mean 'age'?"),
        ("Age", ["sex", "age"], " Did you mean 'age'?"),
        ("y", [" Y", "yy"], " Did you mean ' Y'?"),
        ("income", ["age", "sex"], ""),
        ("incom", ["income_2019", "income", "outcome"], " Did you mean 'income'?"),
    ],
)
def test_near_match(name, options, expected):
    assert near_match(name, options) == expected


@pytest.mark.parametrize("way_out", ["", "Try 2."])
def test_an_argument_is_refused_by_its_rule(way_out):
    check_argument("n_bins", 3, True, "a positive integer", way_out)
    with pytest.raises(InvalidInputError) as refused:
        check_argument("n_bins", "3", False, "a positive integer", way_out)
    text = f"n_bins must be a positive integer, got '3'. {way_out}"
    assert (str(refused.value), refused.value.argument) == (text.rstrip(), "n_bins")


@pytest.mark.parametrize(
    ("name", "way_out", "text"),
    [
        ("agee", "", "keep must name columns, got 'agee'. Did you mean 'age'?"),
        ("x", "It has two.", "keep must name columns, got 'x'. It has two."),
        (7, "", "keep must name columns, got 7."),
    ],
)
def test_a_name_is_refused_with_the_one_that_may_be_meant(name, way_out, text):
    check_name("age", ["age", "sex"], "keep must name columns", way_out)
    for argument in (None, "keep"):
        with pytest.raises(InvalidInputError) as refused:
            check_name(name, ["age", "sex"], "keep must name columns", way_out, argument)
        assert (str(refused.value), refused.value.argument) == (text, argument)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ([1.0, -2.5, 3.0], "y must be positive, got -2.5 in row 1. Drop it."),
        ([np.nan, 1.0, -1.0, 0.0], "y must be positive, got nan in row 0 and 2 more. Drop it."),
    ],
)
def test_the_first_wrong_row_is_named_and_the_others_are_counted(column, text):
    values = np.array(column)
    refuse_rows(np.zeros(len(values), dtype=bool), values, "y must be positive", "Drop it.")
    with pytest.raises(InvalidInputError) as refused:
        refuse_rows(~(values > 0), values, "y must be positive", "Drop it.")
    assert str(refused.value) == text


def test_enumerate_some():
    assert enumerate_some(["a", "b"], 2) == "'a', 'b'"
    assert enumerate_some(["a", "b", "c", "d"], 2) == "'a', 'b' and 2 more"
    assert enumerate_some((i for i in range(3)), 2) == "0, 1 and 1 more"
    assert enumerate_some(np.array(["x", "y"])) == "'x', 'y'"


# Optional packages


@pytest.mark.parametrize("package", ["polars", "no_such_package.chart"])
def test_absent_package(monkeypatch, package):
    assert require("math", extra="maths", purpose="counting") is math
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError) as caught:
        require(package, extra="x", purpose="a chart")
    assert str(caught.value) == f"a chart needs {package}: pip install 'fcorr[x]'"


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("import no_such_dependency", ModuleNotFoundError),
        ("raise ImportError('libbroken.so: cannot open')", ImportError),
        ("1 / 0", ZeroDivisionError),
    ],
)
def test_broken_package_speaks_for_itself(tmp_path, monkeypatch, source, error):
    (tmp_path / "broken_package.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(error) as caught:
        require("broken_package", extra="broken", purpose="a chart")
    assert type(caught.value) is error
    assert "pip install" not in str(caught.value)


# Files


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), PermissionError(1, "no"), KeyboardInterrupt()]
)
@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_interrupted_write_leaves_what_was_there(tmp_path, monkeypatch, step, error):
    old, absent = tmp_path / "old", tmp_path / "absent"
    old.write_bytes(b"old")

    def interrupt(*_):
        raise error

    monkeypatch.setattr(os, step, interrupt)
    for path in (old, absent):
        with pytest.raises(type(error)) as caught:
            write_atomically(path, b"new")
        if getattr(error, "errno", None) == 28:
            assert (caught.value.errno, caught.value.filename) == (28, str(path))
            left = ", the old file is in place" if path == old else ""
            said = f"No space left on device; nothing was written{left}"
            assert caught.value.strerror == said
    assert os.listdir(tmp_path) == ["old"]
    assert old.read_bytes() == b"old"


@pytest.fixture
def obstacles(tmp_path):
    """Make what cannot be written to; return each path with the words of its error."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "kept").write_bytes(b"kept")
    (tmp_path / "kept").chmod(0o444)
    (tmp_path / "link").symlink_to("kept")
    return {
        "folder": "Is a directory",
        "pipe": "no file to replace",
        "kept": "read-only",
        "link": "read-only",
        "nowhere/file": "No such file or directory",
        "kept/file": "Not a directory",
        "n" * 300: "File name too long",
    }


@pytest.mark.parametrize("attempt", [check_writable, lambda path: write_atomically(path, b"new")])
def test_what_cannot_be_written_is_refused_and_left(tmp_path, obstacles, attempt):
    for name, words in obstacles.items():
        with pytest.raises(OSError, match=words) as caught:
            attempt(tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
    assert set(os.listdir(tmp_path)) == {"folder", "pipe", "kept", "link"}
    assert (tmp_path / "kept").read_bytes() == b"kept"


def test_a_folder_that_nobody_may_write_to(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", str(tmp_path / ".file.x.tmp"))

    monkeypatch.setattr("tempfile.mkstemp", refuse)  # not even root
    with pytest.raises(PermissionError, match="denied") as caught:
        check_writable(tmp_path / "file")
    assert caught.value.filename == str(tmp_path / "file")


@pytest.mark.parametrize("name", ["file", "n" * 255, "é" * 127])
def test_checking_changes_nothing_and_writing_replaces(tmp_path, name):
    check_writable(tmp_path / name)
    assert os.listdir(tmp_path) == []
    write_atomically(tmp_path / name, b"old")
    check_writable(tmp_path / name)
    assert (tmp_path / name).read_bytes() == b"old"
    write_atomically(str(tmp_path / name), b"new")
    assert (tmp_path / name).read_bytes() == b"new"
    assert os.listdir(tmp_path) == [name]


def test_permissions_and_links_stay(tmp_path):
    (tmp_path / "other").mkdir()
    file, link = tmp_path / "other" / "file", tmp_path / "link"
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to("other/file")
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    file.unlink()
    write_atomically(link, b"again")  # through a link to nothing, too
    assert link.is_symlink()
    assert file.read_bytes() == b"again"
    assert os.listdir(tmp_path / "other") == ["file"]


def test_the_name_is_synced_after_the_content(tmp_path, monkeypatch):
    synced = []

    def note(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append(("folder" if is_folder else "content", (tmp_path / "file").exists()))

    monkeypatch.setattr(os, "fsync", note)
    write_atomically(tmp_path / "file", b"new")
    assert synced == [("content", False), ("folder", True)]


def test_what_a_killed_process_left_is_removed_when_it_is_gone(tmp_path):
    code = """
import os, sys
from fcorr._core import write_atomically
os.fsync = lambda _: (print("writing", flush=True), sys.stdin.read())
write_atomically(sys.argv[1], b"new")
"""
    path, own = tmp_path / "file[1]", tmp_path / ".file[1].mine.tmp"
    own.write_bytes(b"somebody's")
    pipe = tmp_path / ".file[1].01234567.fcorr-tmp"
    os.mkfifo(pipe)  # opening it would wait for ever
    command, streams = [sys.executable, "-c", code, str(path)], subprocess.PIPE
    others = {own.name, pipe.name}
    with subprocess.Popen(command, stdin=streams, stdout=streams) as process:
        process.stdout.readline()
        (temporary,) = set(os.listdir(tmp_path)) - others
        write_atomically(path, b"old")
        assert set(os.listdir(tmp_path)) == {path.name, temporary, *others}
        process.kill()
    assert set(os.listdir(tmp_path)) == {path.name, temporary, *others}
    check_writable(path)
    assert set(os.listdir(tmp_path)) == {path.name, *others}
    assert path.read_bytes() == b"old"


def test_a_folder_that_a_killed_process_left_is_removed_when_it_is_gone(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = """
import sys
from fcorr._core import temporary_folder
with temporary_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""
    command, streams = [sys.executable, "-c", code], subprocess.PIPE
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdin=streams, stdout=streams, env=environment) as process:
        left = Path(process.stdout.readline().decode().strip())
        with temporary_folder() as own:
            assert sorted(tmp_path.iterdir()) == sorted([left, Path(own)])
        process.kill()
    assert left.exists()
    with temporary_folder() as own:
        assert [*tmp_path.iterdir()] == [Path(own)]
    assert not [*tmp_path.iterdir()]


def test_a_file_that_was_taken_for_abandoned_is_made_again(tmp_path, monkeypatch):
    """A process may be killed, or overtaken, between making its file and locking it."""
    (tmp_path / ".file.01234567.fcorr-tmp").touch()
    lock, stolen = _core._lock, []

    def overtaken(file):
        if isinstance(file.name, int) and not stolen:  # the writer's, not the cleaner's
            (path,) = tmp_path.glob(".file.*")
            stolen.append(path)
            path.unlink()
        lock(file)

    monkeypatch.setattr(_core, "_lock", overtaken)
    write_atomically(tmp_path / "file", b"new")
    assert stolen
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_permissions_follow_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "file", b"")
        assert os.umask(umask) == umask  # looked at, not changed
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


@pytest.mark.parametrize(
    ("expanded", "text"),
    [
        ("/absent", "home must .* exists, got '/absent/.* Set HOME"),
        ("~", "determine the home directory"),  # as for a user whose name nobody knows
    ],
)
def test_no_cache_without_a_home(tmp_path, monkeypatch, expanded, text):
    (tmp_path / "~").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", expanded))
    with pytest.raises((FileNotFoundError, RuntimeError), match=text):
        user_cache()


# Text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Größe [km] <b> $x$ 日本", "Größe [km] <b> $x$ 日本"),
        ("\x1b[31mred\x07", r"\u001b[31mred\u0007"),
        ("\x9b31m\x7f", r"\u009b31m\u007f"),
        ("a\r\nb\tc\u2028d", r"a\r\nb\tc\u2028d"),
        ("\u202ecod.exe\u202c\u2066", r"\u202ecod.exe\u202c\u2066"),
        ("\udcff\ufffe\x00", r"\udcff\ufffe\u0000"),
        (Path("file"), "file"),
    ],
)
def test_show_text(text, shown):
    assert show_text(text) == shown
    assert show_text(shown) == shown


def test_cells_of_a_table_are_text_and_no_markup():
    table = html_table("<b>", ["&"], [["<script>", 1]], note="a < b")
    assert "<caption>&lt;b&gt;</caption>" in table
    assert "<th>&amp;</th>" in table
    assert "<td>&lt;script&gt;</td><td>1</td>" in table
    assert "\\u202e" in html_table("\u202e", [], [])
    assert table.endswith("<p>a &lt; b</p>")


# Randomness


def test_an_integer_is_its_own_seed_and_a_generator_gives_its_next_draw():
    for seed in (0, 7, 2**32 - 1, np.int64(7), np.uint8(7)):
        assert draw_seed(seed) == int(seed)
        assert type(draw_seed(seed)) is int
    for make in (np.random.default_rng, np.random.RandomState):
        generator = make(3)
        first, second = draw_seed(generator), draw_seed(generator)
        assert first != second
        assert draw_seed(make(3)) == first
        assert 0 <= first < 2**32


@pytest.mark.parametrize("value", [-1, 2**32, 1.0, True, "1", [1], np.random.SeedSequence(0)])
def test_what_is_no_seed(value):
    message = f"must be an integer.*got {type(value).__name__}"
    if type(value) is int:
        message = rf"must lie in \[0, 2\*\*32\), got {value}\. Choose another"
    with pytest.raises(InvalidInputError, match=f"random_state {message}"):
        draw_seed(value)


# Progress


LINES = "compiling\nfit 1/2  loss 1\nfit 2/2  \\u001b[2J\n"


@pytest.mark.parametrize(("n_steps", "told"), [(2, LINES), (0, "")])
@pytest.mark.parametrize("shown", [False, True])
def test_progress_in_lines_where_there_is_no_terminal(capsys, caplog, n_steps, told, shown):
    with show_progress("fits", n_steps, shown=shown, unit="fit") as progress:
        progress.say("compiling")
        progress.advance("loss 1")
        progress.advance("\x1b[2J")
    assert capsys.readouterr() == ("", told if shown else "")
    # Why nothing seems to happen is told somewhere, whoever set up no log.
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warned == ([] if shown and n_steps else ["fits: compiling"])


def test_a_bar_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")

    def fail():
        with show_progress("fits", 2, shown=True) as progress:
            progress.say("half")
            progress.advance("\x07")
            progress.advance("km [/year]")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    shown = terminal.getvalue()
    assert "2/2" in shown
    assert "km [/year]" in shown
    assert "\x07" not in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # the cursor is back


# Rows of weight 0


def test_only_numbers_of_rows_are_renumbered():
    with (
        pytest.raises(InvalidInputError, match=r"^got 'row 99' in row 3 and 'row12' in row 1\.$"),
        counted_rows([1, 2, 3, 4], sample_weight=[0, 1, 0, 1]),
    ):
        raise InvalidInputError("got 'row 99' in row 1 and 'row12' in row 0.")


def test_what_has_no_rows_or_other_rows_is_left_for_others_to_refuse():
    for columns in ([[1, 2]], ["abc", [1, 2]], [{"a": [1, 2, 3], "b": [1]}]):
        with counted_rows(*columns, sample_weight=[1, 0, 1]) as given:
            assert given == [*columns, [1, 0, 1]]
    for weight in (["a", 0, 1], [0, 0, 0], [[0, 1], [1, 1], [1, 1]], 0.0, None):
        with counted_rows([1, 2, 3], sample_weight=weight) as given:
            assert given == [[1, 2, 3], weight]
    with counted_rows(None, 0.5, "abc", {"a": (1, 2, 3)}, sample_weight=[1, 0, 1]) as given:
        assert given == [None, 0.5, "abc", {"a": [1, 3]}, [1, 1]]
