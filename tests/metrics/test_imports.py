"""Importing the metrics is quick: what is heavy is imported by those who need it."""

import subprocess
import sys

import pytest

import fcorr.metrics

HEAVY = {"sklearn", "scipy", "torch", "pandas", "polars", "pyarrow", "fcorr.data"}


def modules_after(code):
    code = f"import sys, fcorr.metrics; {code}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(run.stdout.split())


def test_nothing_heavy_is_imported():
    assert not modules_after("pass") & HEAVY


def test_scikit_learn_is_imported_by_those_who_ask_for_its_metrics():
    assert "sklearn.metrics" in modules_after("fcorr.metrics.roc_auc_score")


def test_all_names_are_listed_and_found():
    assert dir(fcorr.metrics) == sorted(fcorr.metrics.__all__)
    assert all(callable(getattr(fcorr.metrics, name)) for name in fcorr.metrics.__all__)
    with pytest.raises(AttributeError, match=r"'fcorr\.metrics' has no attribute 'log_loss'"):
        fcorr.metrics.log_loss  # noqa: B018
