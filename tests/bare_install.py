"""What must work after a plain ``pip install fcorr``, without extras.

No test of pytest's, which would bring packages along: ``make test-bare`` runs it in an environment
that has nothing else in it.
"""

import importlib
import importlib.util
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

EXTRAS = (
    *("matplotlib", "pandas", "polars", "lightgbm", "fairlearn"),
    *("onnx", "onnxruntime", "ray", "pyspark", "pytest"),
)


def main(folder: Path) -> None:
    there = [name for name in EXTRAS if importlib.util.find_spec(name)]
    assert not there, f"not a bare environment: {there}"
    check_imports()
    model, table = check_models(folder)
    check_extras_are_named(model, table, folder)
    check_command_line(folder)
    print(f"fcorr {importlib.import_module('fcorr').__version__}: all is well without extras")


def check_imports() -> None:
    package = importlib.import_module("fcorr")
    assert "site-packages" in str(package.__file__), package.__file__  # not the clone
    names = [m.name for m in pkgutil.walk_packages(package.__path__, "fcorr.")]
    for name in names:
        if not name.endswith("__main__"):
            importlib.import_module(name)
    assert len(names) > 30, names


def check_models(folder: Path) -> tuple[Any, Any]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv

    from fcorr import FCorrClassifier, FCorrRegressor, load
    from fcorr.data import make_proxy_bias

    X = np.random.default_rng(0).normal(size=(200, 4))
    y = X[:, 0] + X[:, 1] ** 2
    scores = FCorrRegressor(n_members=1, epochs=2, random_state=0).fit(X, y).predict(X)
    assert scores.shape == (200,)
    assert np.isfinite(scores).all()

    table, y = make_proxy_bias(300, task="classification", random_state=0)
    pyarrow.csv.write_csv(table.append_column("y", pa.array(y)), folder / "data.csv")
    model = FCorrClassifier(n_members=1, sensitive="S", epochs=2, random_state=0).fit(table, y)
    model.save(folder / "model.safetensors")
    probabilities = load(folder / "model.safetensors").predict_proba(table)
    np.testing.assert_array_equal(probabilities, model.predict_proba(table))
    return model, table


def check_extras_are_named(model: Any, table: Any, folder: Path) -> None:
    import pyarrow.parquet

    from fcorr.audit.displays import AttentionDisplay
    from fcorr.estimators import score_parquet, score_spark, to_onnx

    file = folder / "model.safetensors"
    pyarrow.parquet.write_table(table, folder / "X.parquet")
    attempts: dict[str, Callable[[], Any]] = {
        "plot": lambda: AttentionDisplay.from_estimator(model, table),
        "pandas": model.attention(table).to_pandas,
        "onnx": lambda: to_onnx(model, folder / "model.onnx"),
        "ray": lambda: score_parquet(file, folder / "X.parquet", folder / "o", engine="ray"),
        "spark": lambda: score_spark(file, None),
    }
    for extra, call in attempts.items():
        said = "nothing"
        try:
            call()
        except ImportError as error:
            said = str(error)
        assert f"pip install 'fcorr[{extra}]'" in said, said


def check_command_line(folder: Path) -> None:
    def run(*arguments: str) -> str:
        command = [str(Path(sys.executable).with_name("fcorr")), *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    options = ["data.csv", "--target", "y", "--sensitive", "X1", "--epochs", "1", "--quiet"]
    run("train", *options, "--output", "cli.safetensors")
    run("predict", "cli.safetensors", "data.csv", "--output", "scores.csv")
    run("predict", "cli.safetensors", "data.csv", "--output", "scores.parquet")
    assert len((folder / "scores.csv").read_text().splitlines()) == 301
    run("inspect", "cli.safetensors")
    said = run("sweep", *options, "--car", "0", "--output", "sweep")
    assert "pip install 'fcorr[plot]'" in said, said
    assert (folder / "sweep" / "table.md").exists()
    said = run("audit", "cli.safetensors", "data.csv", "--target", "y", "--json", "audit.json")
    assert "changed no prediction at all" in said, said


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
