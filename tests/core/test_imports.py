"""What an import brings along: nobody waits for torch who does not make a model."""

import subprocess
import sys

import pytest

import fcorr


def imported_by(statement):
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


AUDIT = """
import fcorr, numpy as np
from sklearn.linear_model import LogisticRegression
X = np.random.default_rng(0).integers(0, 2, (99, 2))
model = LogisticRegression().fit(X, X[:, 1])
assert '<html' in fcorr.audit_model(model, X, X[:, 1], sensitive=0).to_html()
"""


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import fcorr", {"torch", "pandas", "polars", "sklearn", "numpy", "pyarrow"}),
        ("import fcorr.metrics", {"torch", "sklearn", "scipy", "pandas", "pyarrow", "fcorr.data"}),
        ("import fcorr; fcorr.audit_model", {"torch", "pandas", "polars", "matplotlib"}),
        (AUDIT, {"torch"}),
        ("import fcorr.data", {"torch", "pandas", "polars"}),
        ("import fcorr.cli", {"torch", "pandas", "polars", "sklearn", "pyarrow"}),
    ],
)
def test_import_leaves_out(statement, absent):
    modules = imported_by(statement)
    assert "fcorr" in modules
    assert not absent & modules


def test_public_names_are_there():
    for name in fcorr.__all__:
        assert getattr(fcorr, name) is not None
    assert set(fcorr.__all__) <= set(dir(fcorr))
    with pytest.raises(AttributeError, match="module 'fcorr' has no attribute 'nothing'"):
        _ = fcorr.nothing
