"""The harness that kills commands finds what is broken."""

import os
import random
import signal

import pytest

from benchmarks import faults

# Children of a process with threads: they only write files.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture
def command(tmp_path):
    folder = tmp_path / "outputs"
    folder.mkdir()
    return faults.Command(["write"], folder, {"file": b"old"}, {"file": b"new!"}, 10.0, 1)


def kill(command, monkeypatch, *stages):
    """Kill a command that does one stage in each run, and stops in the first until it is killed."""
    started = command.folder.parent / "started"

    def run():
        if started.exists():
            stages[1]()
        else:
            started.touch()
            stages[0]()
            signal.pause()

    monkeypatch.setattr(faults, "run_command_line", run)
    return faults.try_kill(command, random.Random(0), when_it_writes=True)


@pytest.mark.parametrize(
    ("content", "when", "problems"),
    [(b"ne", "before", ["file is neither old nor new"]), (b"new!", "after", [])],
)
def test_half_a_file_is_found(command, monkeypatch, content, when, problems):
    file = command.folder / "file"
    found = kill(command, monkeypatch, lambda: file.write_bytes(content), None)
    assert found == (f"killed {when} the new file was there", problems)


@pytest.mark.parametrize(
    ("is_removed", "expected"), [(True, []), (False, ["the next run left ['.file.tmp']"])]
)
def test_litter_must_be_gone_after_the_next_run(command, monkeypatch, is_removed, expected):
    temporary = command.folder / ".file.tmp"

    def run_again():
        (command.folder / "file").write_bytes(b"new!")
        if is_removed:
            temporary.unlink()
        raise SystemExit(0)

    found = kill(command, monkeypatch, temporary.touch, run_again)
    assert found == ("killed while it wrote", expected)


@pytest.mark.parametrize(("is_kept", "expected"), [(True, 0), (False, 1)])
def test_full_disk(command, monkeypatch, is_kept, expected):
    file = command.folder / "file"

    def run():
        if not is_kept:
            file.write_bytes(b"")
        try:
            (command.folder / "other").write_bytes(b"12345")
        except OSError:
            (command.folder / "other").unlink()
            os.write(2, b"error: no room")
            raise SystemExit(1) from None

    monkeypatch.setattr(faults, "run_command_line", run)
    assert len(faults.try_full_disk(command, 0.5, mounted=False)) == expected
