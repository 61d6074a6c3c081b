"""The command line as a whole: exit codes, errors in one line, usage."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import fcorr
from fcorr.cli import main

COMMANDS = ["demo", "train", "sweep", "predict", "diff", "inspect", "audit", "compare", "export"]


@pytest.fixture
def call(monkeypatch, capsys):
    """Call the entry point as a process does; return its exit code and what it wrote."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["fcorr", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return call


def test_installed_command():
    (command,) = entry_points(group="console_scripts", name="fcorr")
    assert command.load() is main


def test_help_fits_a_terminal(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = run("--help")
    assert "..." not in result.stdout.replace("[ARGS]...", "")  # which is how it is cut off
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    for code in ("0 done", "1 the run failed", "2 bad usage", "3 a check says no"):
        assert code in result.stdout


OPTIONS = {
    "train": "random-state sample-weight n-members kinds",
    "sweep": "eval-set sample-weight n-jobs n-members kinds",
    "audit": "random-state sample-weight n-resamples",
    "demo": "random-state",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_have_help_and_options_that_are_named_as_in_python(run, command):
    assert f"\n  {command} " in run(code=2).output  # without arguments
    shown = run(command, "--help").stdout
    assert f"Usage: fcorr {command}" in shown
    assert all(f"  --{option} " in shown for option in OPTIONS.get(command, "").split())


def test_completion(folder):
    asked = {"_FCORR_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    script = "import sys; sys.argv = ['fcorr']; from fcorr.cli import main; main()"
    for words, expected in {"fcorr tr": "train\n", "fcorr train --conf": "--config\n"}.items():
        asked |= {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, expected), done.stderr


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
        (["demo", "--random-state", "-1"], "Invalid value for '--random-state'"),
        (["train", "data.csv", "--target", "bought", "-o", "-"], "'-' is standard output"),
        (["audit", "model.fcorr", "data.csv", "--card", "-"], "'-' is standard output"),
    ],
)
def test_bad_usage(refuse, arguments, message):
    refuse(message, *arguments)


OUTPUTS = {
    "train": (["train", "data.csv", "--target", "bought", "--output"], "model.fcorr"),
    "predict": (["predict", "model.fcorr", "data.csv", "--output"], "out.csv"),
    "sweep": (
        ["sweep", "data.csv", "--target", "bought", "--sensitive", "sex", "--output"],
        "out/frontier.svg",
    ),
    "sweep --model": (
        ["sweep", "data.csv", "--target", "bought", "--sensitive", "sex", "-o", "new", "--model"],
        "model.fcorr",
    ),
    "demo": (["demo", "--output"], "out/report.html"),
}


@pytest.fixture
def no_work(monkeypatch):
    """Let whatever takes long fail with another exit code than bad usage has."""

    def fail(*_, **__):
        raise AssertionError

    for work in ("data.files.recognise_file", "estimators.load", "data.make_proxy_bias"):
        monkeypatch.setattr(f"fcorr.{work}", fail)


@pytest.mark.parametrize("command", OUTPUTS)
@pytest.mark.parametrize(
    ("obstacle", "words"),
    [
        ("device", "cannot be written: A device, pipe or socket is no file to replace"),
        ("pipe", "cannot be written: A device, pipe or socket is no file to replace"),
        ("read-only", "cannot be written: The file there is read-only"),
        ("folder", "directory"),
    ],
)
def test_outputs_are_tried_before_anything_takes_long(
    run, no_work, folder, command, obstacle, words
):
    arguments, output = OUTPUTS[command]
    path = folder / output
    path.parent.mkdir(exist_ok=True)
    (folder / "model.fcorr").touch()
    path.unlink(missing_ok=True)
    if obstacle == "device":
        path.symlink_to("/dev/null")
    elif obstacle == "pipe":
        os.mkfifo(path)
    elif obstacle == "folder":
        path.mkdir()
    else:
        path.touch(mode=0o444)
    given = path.parent if path.parent != folder else path
    result = run(*arguments, given, code=2)
    assert words in " ".join(result.stderr.split())
    assert not (folder / "new").exists()


@pytest.mark.parametrize("command", ["demo", "sweep"])
@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("data.csv/new", "'data.csv' is not a folder"),
        ("/dev/null", "'/dev/null' is not a folder"),
        ("pipe", "'pipe' is not a folder"),
        ("absent", "'absent' is not a folder"),
        ("n" * 300, "File name too long"),
    ],
)
def test_folders_are_tried_before_anything_takes_long(
    run, no_work, folder, files, command, output, words
):
    os.mkfifo("pipe")
    os.symlink("nowhere", "absent")
    result = run(*OUTPUTS[command][0], output, code=2)
    assert words in " ".join(result.stderr.split())
    assert files() == {"pipe", "absent"}


def test_a_full_disk_is_told_with_the_file_and_what_is_left(run, train, monkeypatch):
    train()
    before = Path("model.fcorr").read_bytes()

    def fill(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fill)
    full = "No space left on device; nothing was written"
    result = train(code=1)
    assert result.stderr == f"error: 'model.fcorr': {full}, the old file is in place\n"
    assert Path("model.fcorr").read_bytes() == before
    result = run("predict", "model.fcorr", "data.csv", "-o", "out.csv", code=1)
    assert result.stderr == f"error: 'out.csv': {full}\n"
    options = ("--target", "bought", "--sensitive", "sex", "--drop", "key", "-o", "sweep")
    small = ("--car", "0", "--no-exact", "--seeds", 1, "--n-members", 1, "--epochs", 1, "--quiet")
    (line,) = run("sweep", "data.csv", *options, *small, code=1).stderr.splitlines()
    assert line.startswith("error: 'sweep/sweep.jsonl': No space left on device; the runs before")


HOSTILE = "\x1b[31m\x9b2J\x07\u202e[/red]\rx"


@pytest.mark.filterwarnings("default::UserWarning")
def test_names_and_values_cannot_steer_the_terminal(run, folder):
    name, shown = f"a{HOSTILE}", r"a\u001b[31m\u009b2J\u0007\u202e[/red]\rx"
    data, model = folder / f"{HOSTILE.replace('/', '')}.csv", folder / f"m{HOSTILE[:5]}"
    header = f'"{name}",b,"y{HOSTILE}"\n'
    rows = [f'"{i % 2}{HOSTILE}",{i},"{i % 3 > 0}{HOSTILE}"\n' for i in range(40)]
    data.write_text(header + "".join(rows), newline="")
    target = ("--target", f"y{HOSTILE}", "--sensitive", name)
    small = ("--n-members", 1, "--epochs", 1, "--set", "head=4")
    train = ("train", data, *target, *small, "-o", model)
    sweep = ("sweep", data, *target, *small, "--car", "0", "--no-exact", "--seeds", 1)
    results = [
        run(*train),
        run("inspect", model),
        run("inspect", model, "--json"),
        run("predict", model, data, "-o", folder / "out.csv"),
        run(*sweep, "-o", folder / "s"),
        run("train", data, "--target", "z", "-o", model, code=2),
        run(*train, "--kinds", f"{name}=numeric", code=1),
        run(*train, "--set", f"{name}=1", code=2),
        run("predict", model, data, "--keep", name, "--keep", HOSTILE, code=2),
        run("inspect", data, code=1),
    ]
    for result in results:
        assert not set(result.output) & set("\x1b\x9b\x07\u202e\r"), result.output
    assert shown in results[0].stdout  # the summary
    # A long name goes over several lines of the table.
    assert all(part in results[1].stdout for part in (shown[:10], "(sensitive)"))
    assert json.loads(results[2].stdout)["schema"]["sensitive"] == [name]
    assert shown in " ".join(results[5].stderr.split())
    assert shown in fcorr.load(model).summary()
    run(*train, "--invariance", "none")
    assert shown in str(fcorr.load(model).certificate())
    written = (folder / "out.csv").read_bytes().decode()
    assert not set(written) & set("\x1b\x9b\x07\u202e")
    run("predict", model, data, "-o", folder / "letter.csv", "--verbatim")
    assert f"True{HOSTILE}" in (folder / "letter.csv").read_bytes().decode()
    assert not set((folder / "s" / "table.md").read_text()) & set("\x1b\x9b\x07\u202e\r")


def test_exit_codes(call, folder):
    assert call("--version") == (0, f"fcorr {fcorr.__version__}\n", "")
    code, out, error = call("inspect", "data.csv")
    assert (code, out) == (1, "")
    (line,) = error.splitlines()
    assert line.startswith("error: 'data.csv' is not a whole model file")
    for option, word in {"--epochs": "many", "--task": "ranking"}.items():
        *_, line = call("train", "data.csv", "--target", "y", "-o", "m", option, word)
        assert line.startswith(f"error: Invalid value for '{option}'")
        assert f"'{word}'" in line
        assert "Value error" not in line


def test_a_process_of_its_own(folder):
    command = ["-m", "fcorr", "train", "nowhere.csv", "--target", "y", "-o", "m"]
    wrong = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    (line,) = wrong.stderr.splitlines()
    assert line.endswith("'nowhere.csv' does not exist. (see python -m fcorr train --help)")


def test_a_header_alone_is_no_data(run, train):
    train()
    Path("head.csv").write_text(Path("data.csv").read_text().splitlines()[0] + "\n")
    for command in (["predict", "model.fcorr", "head.csv"], ["diff", "model.fcorr", "head.csv"]):
        line = run(*command, code=1).stderr
        assert line == (
            "error: 'head.csv' must have rows, got a header alone. Check what made the file.\n"
        )


def test_output_that_nobody_can_read_is_an_error(folder):
    command = [sys.executable, "-m", "fcorr", "demo", "--data", "--output", "out"]
    with open("/dev/full", "w") as full:
        failed = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert failed.returncode == 1
    assert failed.stderr == "error: 'standard output': No space left on device\n"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as cut:
        cut.stdout.close()  # as head does once it has its lines, which is no error
        assert cut.stderr.read() == b""


def test_debug_shows_the_traceback_which_cannot_steer_the_terminal_either(call, folder):
    Path("t.csv").write_text("a,y\n1,2\n\x1b[2J\n")
    code, _, error = call("--debug", "train", "t.csv", "--target", "y", "-o", "m")
    assert code == 1
    assert error.startswith("Traceback (most recent call last):")
    assert r"\u001b" in error
    assert "\x1b" not in error


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("several\n  lines\nof text"), "error: several lines of text\n"),
        (MemoryError(), "error: MemoryError\n"),
        (KeyboardInterrupt(), "error: interrupted; files are written whole or not at all\n"),
    ],
)
def test_any_error_takes_one_line(run, files, monkeypatch, error, line):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("fcorr.data.files.recognise_file", fail)
    result = run("train", "data.csv", "--target", "bought", "-o", "model.fcorr", code=1)
    assert result.stderr == line
    assert files() == set()
