import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fcorr import load
from fcorr.data.files import write_file

pytest.importorskip("onnx", reason="needs onnx, as in fcorr[onnx]")
runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime, as in fcorr[onnx]")

ASKED = ("--target", "bought", "--sensitive", "sex", "--drop", "key", "--n-resamples", 5, "--quiet")


def performance(run, model, *options):
    run("audit", model, "data.csv", *options, "--json", "audit.json")
    summary = json.loads(Path("audit.json").read_text())
    assert summary["flips"]["change"]["max"] == 0
    return {name: each["estimate"] for name, each in summary["performance"].items()}


def test_an_exported_model_is_audited_like_its_own(run, train, columns):
    rng = np.random.default_rng(0)
    n, days = len(columns["age"]), rng.integers(0, 2_000, len(columns["age"]))
    more = {
        "code": rng.choice(["01", "1", "2"], n),  # text, which looks like numbers in CSV
        "when": np.datetime64("2020-01-01") + days,
        "age": columns["age"],
        "job": columns["job"],
    }
    more = {name: pa.array(values, mask=rng.random(n) < 0.1) for name, values in more.items()}
    for name in ("data.csv", "data.parquet"):
        write_file(pa.table({**columns, **more}), name)
    train("--sensitive", "sex", data="data.parquet")
    assert load("model.fcorr").schema_["when"].kind == "datetime"
    result = run("export", "model.fcorr", "--onnx", "model.onnx")
    assert result.stdout == "wrote model.onnx: opset 17\n"
    session = runtime.InferenceSession("model.onnx")
    inputs = {each.name: each.type for each in session.get_inputs()}
    assert inputs == {
        "age": "tensor(double)",
        "job": "tensor(string)",
        "amount": "tensor(double)",
        "code": "tensor(string)",
        "when": "tensor(double)",
    }
    ours, exported = (performance(run, model, *ASKED) for model in ("model.fcorr", "model.onnx"))
    assert exported == pytest.approx(ours, rel=1e-6)


def test_rates_are_audited(run, train, columns):
    years = np.random.default_rng(0).uniform(0.1, 1, len(columns["age"]))
    write_file(pa.table({**columns, "years": years}), "data.csv")
    train("--sensitive", "sex", "--exposure", "years", "--objective", "poisson", target="amount")
    run("export", "model.fcorr", "--onnx", "model.onnx", "--opset", 18)
    asked = ("--target", "amount", "--sensitive", "sex", "--drop", "key", "--exposure", "years")
    options = (*asked, "--power", 1, "--n-resamples", 5, "--quiet")
    ours, exported = (performance(run, model, *options) for model in ("model.fcorr", "model.onnx"))
    assert exported == pytest.approx(ours, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--onnx", "model.onnx", "--opset", 9), "--opset: must be 17 to 21, got 9"),
        (("--onnx", "model.bin"), "--onnx: must end in .onnx, got 'model.bin'"),
        (("--onnx", "nowhere/model.onnx"), "the folder 'nowhere' does not exist"),
        ((), "--onnx"),
    ],
)
def test_bad_usage(refuse, train, options, message):
    train()
    refuse(message, "export", "model.fcorr", *options)
