"""Audits and comparisons from the command line."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

LIMITS = '[largest_change]\nmax = {}\nsource = "policy 4.2"\n'
QUICK = ("--n-resamples", 10, "--quiet")
FUNCTIONS = """
import numpy as np

def chance(X):
    return 1 / (1 + np.exp(-(X["age"] - 40 + 5 * (X["sex"] == "m")) / 10))

def other(X):
    return 1 / (1 + np.exp(-(X["age"] - 45) / 10))

def broken(X):
    return X["income"]
"""


@pytest.fixture
def functions(folder):
    Path("functions.py").write_text(FUNCTIONS)
    yield
    import sys

    sys.modules.pop("functions", None)


ASKED = ("data.csv", "--target", "bought", "--sensitive", "sex", *QUICK)


def test_an_fcorr_model(run, train):
    train("--sensitive", "sex")
    Path("limits.toml").write_text(LIMITS.format(0))
    files = ("-o", "page.html", "--json", "audit.json", "--card", "card.md")
    options = ("--target", "bought", "--limits", "limits.toml", *files, *QUICK)
    result = run("audit", "model.fcorr", "data.csv", *options)
    assert "changed no prediction at all" in result.stdout
    assert "wrote page.html" in result.stdout
    summary = json.loads(Path("audit.json").read_text())
    assert summary["subject"]["target"] == "bought"
    assert len(summary["provenance"]["model_file_sha256"]) == 64
    assert 'id="whatif"' in Path("page.html").read_text()
    assert Path("card.md").read_text().startswith("---\nlibrary_name")
    run("audit", "model.fcorr", "data.csv", "--no-include-model", "-o", "page.html", *QUICK)
    assert 'id="whatif"' not in Path("page.html").read_text()


@pytest.mark.parametrize(("limit", "code"), [(0.9, 0), (0.01, 3)])
def test_a_function_and_its_limits(run, functions, limit, code):
    Path("limits.toml").write_text(LIMITS.format(limit))
    options = ("--limits", "limits.toml", "--json", "audit.json")
    result = run("audit", "functions:chance", *ASKED, *options, code=code)
    summary = json.loads(Path("audit.json").read_text())  # which is written in any case
    assert summary["limits"][0]["met"] is (code == 0)
    assert ("1 limit(s) crossed" in result.stderr) is (code == 3)


def test_config(run, functions):
    """Options of an audit by a file; of a comparison, too."""
    Path("audit.toml").write_text(
        'target = "bought"\nsensitive = ["sex"]\nn-resamples = 3\nquiet = true\njson = "-"\n'
    )
    for command in (("audit",), ("compare", "functions:other")):
        models = (command[0], "functions:chance", *command[1:])
        given = ("data.csv", "--config", "audit.toml", "--name", "mine")
        result = run(*models, *given, "--card", "card.md")
        summary = json.loads(result.stdout)
        assert result.stderr == "wrote card.md\n"  # nothing else is on standard output
        run(*models, *given, "--json", "found.json")
        written = json.loads(Path("found.json").read_text())
        assert summary.keys() == written.keys()
        assert summary.get("incumbent") == written.get("incumbent")
        assert summary["subject"]["target"] == "bought"
        assert summary["subject"]["name"] == "mine"


def test_two_models_side_by_side(run, functions, train, columns):
    train("--sensitive", "sex")
    result = run("compare", "functions:chance", "functions:other", *ASKED, "--json", "both.json")
    assert "McNemar: " in result.stdout
    assert "who changes" in result.stdout
    part = json.loads(Path("both.json").read_text())["incumbent"]
    assert part["flips"]["largest change"] == 0
    chance = 1 / (1 + np.exp(-(columns["age"] - 40 + 5 * (columns["sex"] == "m")) / 10))
    other = 1 / (1 + np.exp(-(columns["age"] - 45) / 10))
    is_f = columns["sex"] == "f"
    assert part["who_changes"][0]["mean_change"] == pytest.approx((chance - other)[is_f].mean())
    run("compare", "model.fcorr", "functions:other", *ASKED, "-o", "page.html")
    assert "Beside other" in Path("page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.pkl", *ASKED], "is a pickle, which runs code when it is opened"),
        (["renamed.fcorr", *ASKED], "or export the model to ONNX"),
        (["model.txt", *ASKED], "module:callable, or export it to ONNX"),
        (["functions:chance", *ASKED, "--threshold", 5], "a number in [0, 1], got 5.0"),
        (["nothing.fcorr", *ASKED], "must be a file or module:callable, got 'nothing.fcorr'."),
        (["functions:nothing", *ASKED], "has no attribute 'nothing'"),
        (["functions:chance", "data.csv", "--sensitive", "sx"], "Did you mean 'sex'?"),
        (
            ["functions:chance", "data.csv", "--target", "bought"],
            "for --sensitive: must name columns of X",
        ),
        (
            ["functions:chance", *ASKED, "--limits", "bad.toml"],
            "for --limits: must name figures",
        ),
        (["functions:chance", *ASKED, "-o", "data.csv"], "is an input, or another output"),
    ],
)
def test_bad_usage(refuse, functions, arguments, message):
    for name in ("model.pkl", "renamed.fcorr"):
        Path(name).write_bytes(pickle.dumps({"a": 1}))
    Path("model.txt").write_text("tree\nversion=v4\nnum_class=1\n")
    Path("bad.toml").write_text(LIMITS.format(1).replace("largest", "lrgest"))
    refuse(message, "audit", *arguments)


def test_models_that_fail(run, functions):
    result = run("audit", "functions:broken", *ASKED, code=1)
    assert "The model must score X as it is, got KeyError" in result.stderr
    # A header whose length looks like a pickle
    Path("model.fcorr").write_bytes(b"\x80\x04" + bytes(6) + b"{")
    result = run("audit", "model.fcorr", *ASKED, code=1)
    assert "is not a whole model file" in result.stderr


def test_an_onnx_file_of_one_input(run, columns):
    """Columns as inputs: see the tests of exports."""
    onnx = pytest.importorskip("onnx", reason="needs onnx, as in fcorr[dev]")
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, as in fcorr[onnx]")
    from onnx import TensorProto, helper, numpy_helper

    weight = np.array([[0.0], [0.05], [0.4]], dtype=np.float32)  # amount, age and who
    nodes = [
        helper.make_node("MatMul", ["X", "w"], ["scores"]),
        helper.make_node("Sub", ["scores", "b"], ["log_odds"]),
        helper.make_node("Sigmoid", ["log_odds"], ["p"]),
    ]
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, 3])],
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, [None, 1])],
        [
            numpy_helper.from_array(weight, "w"),
            numpy_helper.from_array(np.float32([[2.0]]), "b"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, "model.onnx")
    who = (columns["sex"] == "m").astype(float)
    lines = ["amount,age,who,bought"]
    rows = zip(*(columns[n] for n in ("amount", "age")), who, columns["bought"], strict=True)
    Path("numbers.csv").write_text("\n".join([*lines, *(",".join(map(str, r)) for r in rows)]))
    options = ("--target", "bought", "--sensitive", "who", "--json", "audit.json", *QUICK)
    run("audit", "model.onnx", "numbers.csv", *options)
    flips = json.loads(Path("audit.json").read_text())["flips"]
    age = columns["age"]
    on = 1 / (1 + np.exp(-(0.05 * age + 0.4 - 2)))
    off = 1 / (1 + np.exp(-(0.05 * age - 2)))
    assert flips["change"]["max"] == pytest.approx(np.abs(on - off).max(), abs=1e-6)
