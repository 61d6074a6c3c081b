"""Machine code on disk: what was kept is found, and whatever happens to it stops no program."""

import os
import pickle
import resource
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fcorr.nn.kernels import arithmetic

COMPILING = "compiling fcorr's kernels, once per installation; it takes about 10 seconds\n"


def double(x):
    return 2 * x


def new_kernel():
    """Compile anew, as another process would: what is in memory belongs to the old kernel."""
    return arithmetic.compiled(double)


def is_found(kernel):
    assert kernel(4.0) == 8.0
    return bool(kernel.stats.cache_hits)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Keep machine code in an own place, as a process does that has not warned yet."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "home"))
    arithmetic._warn_once.cache_clear()
    arithmetic.cache_folder.cache_clear()
    yield tmp_path / "home"
    monkeypatch.undo()
    arithmetic.cache_folder.cache_clear()


def run_python(program, **environment):
    return subprocess.Popen(
        [sys.executable, "-W", "always", "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# What is kept


@pytest.fixture
def copied(tmp_path):
    """Copy the kernels, which import no torch where they lie alone; return how to import them."""
    package, without = tmp_path / "copied", shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(arithmetic.__file__).parent, package, ignore=without)
    return (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.dont_write_bytecode = True\n"
        "import copied.arithmetic as a; "
    )


def test_is_kept_by_the_state_of_the_sources(tmp_path, copied):
    """Numba notices a change in a function's own file only; the folder's name notices the rest."""

    def folder():
        return run_python(copied + "print(a.cache_folder().name)").communicate()[0].strip()

    before = folder()
    assert before == arithmetic.cache_folder().name
    with (tmp_path / "copied" / "attention.py").open("a") as file:
        file.write("# changed\n")
    assert folder() not in ("", before)


def test_is_found_again_for_the_same_types_and_by_its_user_only(home):
    assert not is_found(new_kernel())
    assert is_found(new_kernel())
    kernel = new_kernel()
    assert kernel(np.float32(4)) == 8
    assert not kernel.stats.cache_hits
    folder = arithmetic.cache_folder()
    assert (Path(kernel.stats.cache_path), folder.parent) == (folder, home)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (folder, home)] == [0o700, 0o700]
    assert len([*arithmetic.cache_folder().iterdir()]) == 2


def test_processes_may_compile_at_once(home, copied):
    program = copied + "print(a.exp(0.0) - 1, a.exp(0.0) - 1)"
    runs = [run_python(program) for _ in range(2)]
    found = [run.communicate() for run in runs]
    assert [out for out, _ in found] == ["0.0 0.0\n"] * 2
    assert COMPILING in [told for _, told in found]  # the other may find what the first has kept
    run = run_python(program + "; print(sum(a.exp.stats.cache_hits.values()))")
    assert run.communicate() == ("0.0 0.0\n1\n", "")
    assert {path.suffix for path in arithmetic.cache_folder().iterdir()} == {".nbc"}


# What went wrong with it


def empty(path):
    path.write_bytes(b"")


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-100])


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def exchange(path):
    kernel = new_kernel()
    kernel(4)
    (other,) = {*path.parent.iterdir()} - {path}
    path.write_bytes(other.read_bytes())


@pytest.mark.parametrize("damage", [empty, cut_off, flip_a_bit, exchange])
def test_damaged_files_are_made_again(home, damage):
    assert not is_found(new_kernel())
    folder = arithmetic.cache_folder()
    (path,) = folder.iterdir()
    damage(path)
    with pytest.warns(UserWarning, match="damaged") as caught:
        assert not is_found(new_kernel())
    assert [repr(str(folder)) in str(entry.message) for entry in caught] == [True]
    assert is_found(new_kernel())


def test_what_cannot_be_kept_stops_no_program(home):
    folder = arithmetic.cache_folder()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        with pytest.warns(UserWarning, match="not kept.*File too large") as caught:
            assert [is_found(new_kernel()) for _ in range(2)] == [False, False]  # told once
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [repr(str(folder)) in str(entry.message) for entry in caught] == [True]
    assert [*folder.iterdir()] == []


# Whose it is


class Planted:
    """Code that runs when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def planted(home, tmp_path):
    """Put into the folder, in place of a kernel, a file that touches this one when loaded."""
    is_found(new_kernel())
    (path,) = arithmetic.cache_folder().iterdir()
    content = pickle.dumps(Planted(tmp_path / "touched"))
    path.write_bytes(arithmetic._digest(path, content) + content)
    arithmetic.cache_folder.cache_clear()
    return tmp_path / "touched"


def test_planted_code_would_run(home, planted):
    """The tests below show something only because of this one."""
    with pytest.warns(UserWarning, match="damaged"):
        is_found(new_kernel())
    assert planted.exists()


@pytest.mark.parametrize(
    ("mode", "where", "reason"),
    [
        (0o770, "folder", "other users may write to it"),
        (0o702, "folder", "other users may write to it"),
        (0o777, "home", "any user may replace what is in '{home}'"),
    ],
)
def test_folder_that_others_can_write_to(home, planted, mode, where, reason):
    folder = arithmetic.cache_folder()
    arithmetic.cache_folder.cache_clear()
    {"folder": folder, "home": home}[where].chmod(mode)
    with pytest.warns(UserWarning, match="not kept") as caught:
        assert [is_found(new_kernel()) for _ in range(2)] == [False, False]
    assert arithmetic.cache_folder() is None
    assert [str(entry.message) for entry in caught] == [
        f"Compiled kernels are not kept in {str(folder)!r}: {reason.format(home=home)}. Every "
        "process compiles its own, which takes about 10 seconds. Delete the folder if it is "
        "there, or set NUMBA_CACHE_DIR to one that you alone can write to."
    ]
    assert not planted.exists()


@pytest.mark.parametrize(
    ("what", "message"),
    [("folder", "belongs to another user"), ("file", "damaged or cannot be read")],
)
def test_what_belongs_to_another_user(home, planted, monkeypatch, what, message):
    if what == "file":
        assert arithmetic.cache_folder() is not None  # which was looked at
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(UserWarning, match=message):
        assert not is_found(new_kernel())
    assert not planted.exists()


# Where it should be


@pytest.mark.parametrize("is_link", [False, True])
def test_something_else_in_the_place_of_the_folder(home, is_link):
    if is_link:
        home.symlink_to(home)
    else:
        home.touch()
    with pytest.warns(UserWarning, match="not kept") as caught:
        assert not is_found(new_kernel())
    assert [str(home) in str(entry.message) for entry in caught] == [True]


@pytest.mark.slow
def test_fit_with_damaged_kernels(home):
    """All kernels, in processes of their own: compiled, damaged and made again, found."""
    program = (
        "import numpy as np; from fcorr import FCorrClassifier\n"
        "X = np.random.default_rng(0).normal(size=(40, 3))\n"
        "model = FCorrClassifier(n_members=1, epochs=1, random_state=0).fit(X, X[:, 0] > 0)\n"
        "print(model.predict_proba(X).tolist())"
    )
    predicted, complaints = run_python(program).communicate()
    assert (predicted[:2], complaints) == ("[[", f"training: {COMPILING}")
    folder = arithmetic.cache_folder()
    files = {path: path.read_bytes() for path in folder.iterdir()}
    for path in files:
        path.write_bytes(b"")
    again, complaints = run_python(program).communicate()
    assert again == predicted
    assert complaints.count("Warning") == complaints.count(str(folder)) == 1
    assert "Traceback" not in complaints
    assert run_python(program).communicate() == (predicted, "")
    assert {path for path in folder.iterdir() if path.stat().st_size} == {*files}
