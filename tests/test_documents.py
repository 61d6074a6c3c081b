"""What the documents say is what the code does."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def load_benchmark(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python_blocks(document):
    return re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)


@pytest.mark.parametrize(
    "name",
    ["README.md", "docs/audit.md", "docs/insurance.md", "docs/proxies.md", "docs/scikit_learn.md"],
)
def test_code_runs(tmp_path, name):
    blocks = python_blocks(ROOT / name)
    assert blocks
    for block in blocks:
        run_block(block, tmp_path, "-W", "error")


def run_block(block, folder, *options):
    command = [sys.executable, *options, "-c", block]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_an_exported_model_is_run_as_the_document_says(tmp_path):
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason=f"needs {package}, as in fcorr[onnx]")
    run_block(python_blocks(ROOT / "docs" / "serving.md")[0], tmp_path, "-W", "error")


def test_mlflow_takes_a_model_as_the_document_says(tmp_path):
    if importlib.util.find_spec("mlflow") is None:
        pytest.skip("needs mlflow, which no extra has")
    _, script, use = python_blocks(ROOT / "docs" / "serving.md")
    (tmp_path / "fcorr_pyfunc.py").write_text(script)
    run_block(use, tmp_path)  # MLflow has warnings of its own


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_tables_are_those_that_commands_made(document):
    text = document.read_text()
    assert load_benchmark("update_readme").with_tables(text) == text


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#\s]+)", document.read_text()):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target


def test_every_departure_from_the_paper_is_listed():
    listed = (ROOT / "docs" / "deviations.md").read_text()
    sources = [p for p in (ROOT / "src").rglob("*.py") if "NOTE[DIFF]" in p.read_text()]
    assert sources
    for source in sources:
        assert os.fspath(source.relative_to(ROOT / "src" / "fcorr")) in listed, source


@pytest.mark.slow
def test_commands_run(tmp_path):
    """Run the page's commands in one folder, one after the other, with the exit codes it says."""
    text = (ROOT / "docs" / "command_line.md").read_text()
    blocks = "".join(re.findall(r"```console\n(.*?)```", text, re.DOTALL))
    commands = re.split(r"^\$ ", blocks, flags=re.MULTILINE)[1:]
    assert {command.split()[1] for command in commands if command.startswith("fcorr")} == {
        *("demo", "train", "inspect", "predict", "audit", "diff", "compare", "sweep"),
    }
    for command in commands:
        code = re.search("# exit code ([0-9])", command)
        script = f'fcorr() {{ "{sys.executable}" -m fcorr "$@"; }}\n{command}'
        run = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
        assert run.returncode == (int(code[1]) if code else 0), f"{command}{run.stderr}"
        if command.rstrip().endswith(("--json", "--json -")):
            assert json.loads(run.stdout)
    piped, written = (tmp_path / name for name in ("scores.csv", "test-predictions.csv"))
    assert piped.read_bytes() == written.read_bytes()
