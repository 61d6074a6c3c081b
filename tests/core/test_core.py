"""What every room stands on: errors, optional packages, files, plain data, randomness, progress."""

import io
import json
import math
import os
import stat
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fcorr._core import (
    InvalidInputError,
    ModelFileError,
    NotEstimableWarning,
    UnseenCategoryWarning,
    draw_seed,
    enumerate_some,
    html_table,
    near_match,
    require,
    show_progress,
    to_plain,
    user_cache,
    write_atomically,
)

# Errors


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("agee", ["sex", "age"], " Did you mean 'age'?"),
        ("Age", ["sex", "age"], " Did you mean 'age'?"),
        ("income", ["age", "sex"], ""),
        ("age", [], ""),
        ("incom", ["income_2019", "income", "outcome"], " Did you mean 'income'?"),
        ("12", [1, 12, 123], " Did you mean '12'?"),
    ],
)
def test_near_match(name, options, expected):
    assert near_match(name, options) == expected


@pytest.mark.parametrize(
    ("items", "limit", "expected"),
    [
        ([], 5, ""),
        (["a"], 5, "'a'"),
        (["a", "b"], 2, "'a', 'b'"),
        (["a", "b", "c", "d"], 2, "'a', 'b' and 2 more"),
        ((i for i in range(3)), 2, "0, 1 and 1 more"),
        (np.array(["x", "y"]), 5, "'x', 'y'"),
        (np.array([1, 2]), 5, "1, 2"),
    ],
)
def test_enumerate_some(items, limit, expected):
    assert enumerate_some(items, limit) == expected


def test_errors_and_warnings_have_the_usual_ancestors():
    assert issubclass(InvalidInputError, ValueError)
    assert issubclass(ModelFileError, ValueError)
    assert issubclass(UnseenCategoryWarning, UserWarning)
    assert issubclass(NotEstimableWarning, UserWarning)


# Optional packages


def test_package_that_is_there():
    assert require("math", extra="maths", purpose="counting") is math


@pytest.mark.parametrize("package", ["polars", "no_such_package.chart"])
def test_absent_package(monkeypatch, package):
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


def test_matrix_without_pandas(monkeypatch):
    from fcorr.estimators import FeatureMatrix

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_pandas needs pandas: pip install 'fcorr\[pandas\]'"):
        FeatureMatrix(("a",), np.ones((1, 1))).to_pandas()


# Files


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


def test_folders_absent_or_in_the_way(tmp_path):
    (tmp_path / "taken").mkdir()
    for path, error in (("nowhere/file", FileNotFoundError), ("taken", IsADirectoryError)):
        with pytest.raises(error):
            write_atomically(tmp_path / path, b"new")
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


def test_relative_place_of_the_cache_is_ignored(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_cache() == tmp_path / ".cache" / "fcorr"


@pytest.mark.parametrize("expanded", ["/absent", "~"])  # as for a user whose name nobody knows
def test_no_cache_without_a_home(tmp_path, monkeypatch, expanded):
    (tmp_path / "~").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", expanded))
    with pytest.raises(FileNotFoundError, match=f"home must .* exists, got '{expanded}'. Set HOME"):
        user_cache()


# Plain data


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({1: (np.int8(2), np.True_), "x": None}, {"1": [2, True], "x": None}),
        ([math.nan, np.float32(math.inf), 0.5], [None, None, 0.5]),
        (np.array([[1.5, np.nan], [0, 2]]), [[1.5, None], [0.0, 2.0]]),
        (np.array(3), 3),
        (pd.Index(["clerk", "nurse"]), ["clerk", "nurse"]),
        ({"sex"}, ["sex"]),
        (Path("file"), "file"),
        ("text", "text"),
    ],
)
def test_to_plain(value, expected):
    assert to_plain(value) == expected
    json.dumps(to_plain(value), allow_nan=False)


def test_cells_of_a_table_are_text_and_no_markup():
    table = html_table("<b>", ["&"], [["<script>", 1]], note="a < b")
    assert "<caption>&lt;b&gt;</caption>" in table
    assert "<th>&amp;</th>" in table
    assert "<td>&lt;script&gt;</td><td>1</td>" in table
    assert table.endswith("<p>a &lt; b</p>")


# Randomness


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1, np.int64(7), np.uint8(7)])
def test_integer_is_its_own_seed(seed):
    assert draw_seed(seed) == int(seed)
    assert type(draw_seed(seed)) is int


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generator_gives_its_next_draw(make):
    generator = make(3)
    first, second = draw_seed(generator), draw_seed(generator)
    assert first != second
    assert draw_seed(make(3)) == first
    assert 0 <= first < 2**32


def test_none_asks_the_operating_system():
    np.random.seed(0)  # noqa: NPY002
    first = draw_seed(None)
    np.random.seed(0)  # noqa: NPY002
    assert draw_seed(None) != first
    assert 0 <= first < 2**32


@pytest.mark.parametrize("value", [-1, 2**32, 1.0, True, "1", [1], np.random.SeedSequence(0)])
def test_what_is_no_seed(value):
    message = f"must be an integer.*got {type(value).__name__}"
    if type(value) is int:
        message = rf"must lie in \[0, 2\*\*32\), got {value}\. Choose another"
    with pytest.raises(InvalidInputError, match=f"random_state {message}"):
        draw_seed(value)


# Progress


def test_progress_in_lines_where_there_is_no_terminal(capsys):
    with show_progress("fits", 2, shown=True, unit="fit") as progress:
        progress.say("compiling")
        progress.advance("loss 1")
        progress.advance("loss 0")
    assert capsys.readouterr() == ("", "compiling\nfit 1/2  loss 1\nfit 2/2  loss 0\n")


@pytest.mark.parametrize(("shown", "n_steps"), [(False, 2), (True, 0)])
def test_nothing_to_show(capsys, shown, n_steps):
    with show_progress("fits", n_steps, shown=shown) as progress:
        progress.say("compiling")
        progress.advance("loss 1")
    assert capsys.readouterr() == ("", "")


def test_a_bar_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with show_progress("fits", 2, shown=True) as progress:
        progress.advance("half")
        progress.advance("done")
    assert "2/2" in terminal.getvalue()
    assert "done" in terminal.getvalue()
