import math
import sys

import pytest

from fcorr._core import require


def test_package_that_is_there():
    assert require("math", extra="maths", purpose="counting") is math


def test_absent_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError) as caught:
        require("polars", extra="polars", purpose="frame='polars'")
    assert str(caught.value) == "frame='polars' needs polars: pip install 'fcorr[polars]'"


def test_absent_package_of_a_submodule():
    with pytest.raises(ImportError) as caught:
        require("no_such_package.chart", extra="x", purpose="a chart")
    assert str(caught.value) == "a chart needs no_such_package.chart: pip install 'fcorr[x]'"


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
    import numpy as np

    from fcorr.estimators import FeatureMatrix

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_pandas needs pandas: pip install 'fcorr\[pandas\]'"):
        FeatureMatrix(("a",), np.ones((1, 1))).to_pandas()
