"""The command line as a whole: exit codes, errors in one line, usage."""

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import fcorr
from fcorr.cli import main


def shell(*arguments, **options):
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "fcorr"]
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=60, **options
    )


def test_installed_command():
    (command,) = entry_points(group="console_scripts", name="fcorr")
    assert command.load() is main


def test_no_arguments_show_the_help(run):
    result = run(code=2)
    for command in ("demo", "train", "predict", "inspect", "sweep"):
        assert f"\n  {command} " in result.output


@pytest.mark.parametrize("command", ["demo", "train", "predict", "inspect", "sweep"])
def test_help(run, command):
    assert f"Usage: fcorr {command}" in run(command, "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit"], "No such command"),
        (["--verbose"], "No such option"),
        (["train", "data.csv", "--targt", "bought"], "No such option"),
        (["train", "data.csv"], "Missing option '--target'"),
        (["sweep", "data.csv", "--target", "bought", "-o", "out"], "Missing option '--sensitive'"),
        (["predict", "nowhere.fcorr", "data.csv", "-o", "out.csv"], "does not exist"),
        (["inspect", "nowhere.fcorr"], "does not exist"),
        (["inspect", "."], "is a directory"),
        (["demo", "--fits", "0"], "Invalid value for '--fits'"),
    ],
)
def test_bad_usage(run, arguments, message):
    result = run(*arguments, code=2)
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_exit_codes_of_the_process(folder):
    done = shell("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"fcorr {fcorr.__version__}\n", "")
    failed = shell("inspect", "data.csv")
    assert failed.returncode == 1
    assert failed.stdout == ""
    (line,) = failed.stderr.splitlines()
    assert line.startswith("error: 'data.csv' is not a whole model file")
    assert shell("train", "nowhere.csv", "--target", "y", "-o", "m").returncode == 2


def test_debug_shows_the_traceback(folder):
    failed = shell("--debug", "inspect", "data.csv")
    assert failed.returncode == 1
    assert failed.stderr.startswith("Traceback (most recent call last):")
    assert "ModelFileError: 'data.csv' is not a whole model file" in failed.stderr


def test_interrupt(run, monkeypatch, files):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("fcorr.data.files.read_file", interrupt)
    result = run("train", "data.csv", "--target", "bought", "-o", "model.fcorr", code=1)
    assert result.stderr == "error: interrupted; nothing was written\n"
    assert files() == set()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("several\n  lines\nof text"), "error: several lines of text\n"),
        (MemoryError(), "error: MemoryError\n"),
    ],
)
def test_any_error_takes_one_line(run, monkeypatch, error, line):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("fcorr.data.files.read_file", fail)
    result = run("train", "data.csv", "--target", "bought", "-o", "model.fcorr", code=1)
    assert result.stderr == line
