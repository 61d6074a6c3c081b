import io
import re
import sys

import pytest
from fcorr.training.history import EpochRecord
from fcorr.training.progress import (
    BarProgress,
    LineProgress,
    SilentProgress,
    describe,
    make_progress,
)

from fcorr import FCorrClassifier

SMALL = {"sensitive": "sex", "head": (4,), "epochs": 2, "random_state": 0}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def open_terminal(monkeypatch):
    """Call it in the test itself: between a fixture and its test pytest exchanges stderr."""

    def open_terminal():
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "160")
        for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "FORCE_COLOR"):
            monkeypatch.delenv(name, raising=False)
        return stream

    return open_terminal


def test_silent_by_default(table, capfd):
    FCorrClassifier(**SMALL).fit(*table, eval_set=table)
    assert capfd.readouterr() == ("", "")


def test_plain_lines_elsewhere(table, capsys):
    FCorrClassifier(**SMALL, verbose=True).fit(*table, eval_set=table)
    out, err = capsys.readouterr()
    assert out == ""
    first, second = err.splitlines()
    number = r"\d\.\d{4}"
    pattern = rf"epoch 1/2  loss {number}  CAR \d\.\d\de-\d\d  validation loss {number}"
    assert re.fullmatch(pattern, first)
    assert second.startswith("epoch 2/2  loss ")


def test_bar_on_a_terminal(table, open_terminal):
    terminal = open_terminal()
    FCorrClassifier(**SMALL, verbose=1).fit(*table)
    shown = terminal.getvalue()
    assert "training" in shown
    assert "2/2" in shown
    assert re.search(r"loss \d\.\d{4}  CAR", shown)
    assert "epoch 2/2" not in shown
    assert "\x1b[?25h" in shown  # the cursor is back


def test_bar_leaves_the_terminal_in_order_when_training_fails(table, open_terminal):
    terminal = open_terminal()
    with pytest.raises(ValueError, match="finite loss"):
        FCorrClassifier(**SMALL | {"learning_rate": 1e30}, verbose=True).fit(*table)
    shown = terminal.getvalue()
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def test_choice(open_terminal, monkeypatch):
    open_terminal()
    assert type(make_progress(False, 3)) is SilentProgress
    assert type(make_progress(0, 3)) is SilentProgress
    assert type(make_progress(True, 3)) is BarProgress
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert type(make_progress(2, 3)) is LineProgress


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (EpochRecord(1, 0.5), "loss 0.5000"),
        (EpochRecord(1, 0.5, car=0.00123), "loss 0.5000  CAR 1.23e-03"),
        (EpochRecord(1, 0.5, validation_loss=0.25), "loss 0.5000  validation loss 0.2500"),
    ],
)
def test_describe(record, expected):
    assert describe(record) == expected
