"""What the documents say is what the code does."""

import importlib
import importlib.util
import inspect
import json
import logging
import math
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from typer.testing import CliRunner

from fcorr.cli import app

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/guides/*.md")])


def test_tests_that_promises_are_held_by_are_there():
    named = set(
        re.findall(r"`(tests(?:/\w+)*(?:\.py)?)`", (ROOT / "docs/reliability.md").read_text())
    )
    assert len(named) > 10
    assert not [name for name in named if not (ROOT / name).exists()]


def load_benchmark(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(document, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", document.read_text(), re.DOTALL)


TOPICS = ("index", "data", "audit", "insurance", "proxies", "scikit_learn")
RUNNING = ["README.md", *(f"docs/{name}.md" for name in TOPICS)]
GUIDES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/guides/[!i]*.md"))


@pytest.fixture
def run_page(tmp_path, monkeypatch):
    """Run code in names and a folder of its own; the process is that of the test."""

    def run_page(code):
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)  # a page may write a module
        monkeypatch.setattr(logging.root, "handlers", [])  # and set up the log
        exec(compile(code, "page", "exec"), {"__name__": "__main__"})

    return run_page


# Numbers are compared more or less: those of fewer trees, or of a shorter search, are as near.
EVERYTHING = ("all_recipes", "all_trees", "whole_search")


@pytest.mark.filterwarnings("ignore:.*:PendingDeprecationWarning:shap")
@pytest.mark.parametrize("everything", [(), pytest.param(EVERYTHING, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*RUNNING, *GUIDES])
def test_code_runs(request, tmp_path, monkeypatch, capsys, run_page, name, everything):
    # A page is one script. Blocks whose first line is a file's name in a comment are that file.
    written = re.findall(r"```\w+\n(# (\w+\.\w+)\n.*?)```", (ROOT / name).read_text(), re.DOTALL)
    for text, file in written:
        (tmp_path / file).write_text(text)
    script = "".join(block for block in blocks(ROOT / name) if block not in dict(written))
    assert script
    for each in everything or ("all_recipes",) * (name in GUIDES):  # which show what is chosen
        request.getfixturevalue(each)
    if not everything and name not in GUIDES:
        monkeypatch.setattr("fcorr.training.pack._ROUNDS", {math.inf: (1, 2)})
    if "import shap" in script:  # whose helpers take seconds to compile, and no time to run
        with monkeypatch.context() as patch:
            patch.setattr("numba.config.DISABLE_JIT", True)
            importlib.import_module("shap")
    if "fetch_openml" in script:
        path = Path(os.environ.get("FCORR_DATA", "")) / "freMTPL2" / "freMTPL2freq.parquet"
        if not path.exists():
            pytest.skip("FCORR_DATA does not name a folder with freMTPL2, which the page downloads")
        monkeypatch.setattr(
            "sklearn.datasets.fetch_openml",
            lambda data_id, as_frame: SimpleNamespace(frame=pd.read_parquet(path)),
        )
    run_page(script)
    printed = capsys.readouterr().out
    for block in blocks(ROOT / name, "text"):  # parts of what the code prints
        assert not [line for line in block.splitlines() if not is_printed(line, printed)]
    if name in GUIDES:  # their commands take the files that their code wrote
        for block in blocks(ROOT / name, "console"):
            run_commands(block)


def run_commands(block):
    """Run a block's commands in this process: each of its own would import torch again."""
    lines = block.replace("\\\n", "").splitlines()
    printed = ""
    for line in lines:
        if line.startswith("$ "):
            command, _, if_it_fails = line.partition(" || ")
            with warnings.catch_warnings(action="default"):  # it tells them, and goes on
                done = CliRunner().invoke(app, shlex.split(command)[2:])
            assert bool(done.exit_code) == (if_it_fails == 'echo "exit code $?"'), done.output
            printed += f"{done.stdout}exit code {done.exit_code}\n"
    shown = [line for line in lines if not line.startswith("$ ")]
    assert not [line for line in shown if not is_printed(line, printed)]


NUMBER = r"[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-−+]?\d+)?"


def is_printed(shown, printed):
    """Whether a line is there: words and layout, numbers more or less; … stands for anything."""
    parts = re.split(f"({NUMBER})", " ".join(shown.split()))
    words = [re.escape(part).replace("…", ".*") for part in parts[::2]]
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    found = filter(None, (re.fullmatch(f"({NUMBER})".join(words), line) for line in lines))
    return any(all(map(are_near, parts[1::2], line.groups())) for line in found)


def are_near(*numbers):
    a, b = (float(text.replace("−", "-").replace(",", "")) for text in numbers)
    return math.isclose(a, b, rel_tol=0.2, abs_tol=0.05)


def test_outputs_that_a_page_shows_are_compared():
    printed = "AUROC   0.66, largest change 2.1e-05\nwomen − men −0.002, 1,500 rows"
    assert is_printed("AUROC 0.70, largest change 0", printed)
    assert is_printed("women − men +0.01, 1,400 …", printed)
    assert is_printed("…", printed)
    for line in ("AUROC 0.90, largest …", "AUROC 0.66", "largest", "women − men 0, 2,500 rows"):
        assert not is_printed(line, printed), line


@pytest.mark.parametrize(
    ("document", "packages"), [("serving", ("onnx", "onnxruntime")), ("scale", ())]
)
def test_models_are_served_as_the_document_says(run_page, document, packages):
    """By its first block: tests of scoring run those for clusters."""
    for package in packages:
        pytest.importorskip(package, reason=f"needs {package}, as in fcorr[onnx]")
    run_page(blocks(ROOT / "docs" / f"{document}.md")[0])


@pytest.mark.filterwarnings("default")  # MLflow has warnings of its own
def test_mlflow_takes_a_model_as_the_document_says(tmp_path, run_page):
    _, script, use = blocks(ROOT / "docs" / "serving.md")
    (tmp_path / "fcorr_pyfunc.py").write_text(script)
    run_page(use)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_tables_are_those_that_commands_made(document):
    text = document.read_text()
    assert load_benchmark("update_readme").with_tables(text) == text


def test_readme_counts_as_the_table_of_unseen_tables_does():
    rows = (ROOT / "docs" / "tables" / "unseen.md").read_text().splitlines()
    *_, ahead = (row for row in rows if row.startswith("| fcorr ahead"))
    (lightgbm, _), (glm, _), (catboost, _), ebm = re.findall(r"(\d+) of (\d+)", ahead)
    counted = (
        f"below LightGBM's on {lightgbm}, the GLM's on {glm}, CatBoost's on {catboost}, and EBM's "
        f"on {ebm[0]} of the {ebm[1]} that it was fitted to."
    )
    assert counted in " ".join((ROOT / "README.md").read_text().split())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target, place in re.findall(r"\]\(([^)#\s]*)(#[^)\s]+)?", document.read_text()):
        path = document.parent / target if target else document
        if not target.startswith("http"):
            assert path.exists(), target
            assert not place or place[1:] in headings(path), f"{target}{place}"


def headings(document):
    """The places that a page has by its headings, as GitHub and the site name them."""
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("other.html#here", None),
        ("other.html?q=1#h%65re", None),
        ("folder/", None),
        ("picture.png", None),
        ("#", None),
        ("https://example.org/a#b", None),
        ("other.html#there", "leads to no place"),
        ("#here", "leads to no place"),
        ("absent.html", "is not in the site"),
        ("../outside.html", "is not in the site"),
        ("https:///a", "has no host"),
        ("file:///etc/hosts", "is no address"),
    ],
)
def test_broken_links_of_the_site_are_found(tmp_path, link, reason):
    site = tmp_path / "site"
    (site / "folder").mkdir(parents=True)
    for name in ("other.html", "folder/index.html", "../outside.html"):
        (site / name).write_text('<p id="here">')
    (site / "picture.png").touch()
    (site / "index.html").write_text(f'<a href="{link}">x</a>')
    command = [sys.executable, ROOT / "docs" / "links.py", site]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == (0 if reason is None else 1), run.stderr
    assert run.stderr == "" if reason is None else f"index.html: {link!r} {reason}" in run.stderr


def test_a_site_without_pages_is_none(tmp_path):
    command = [sys.executable, ROOT / "docs" / "links.py", tmp_path]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, "it has no pages" in run.stderr) == (1, True)


def test_readme_fits_on_a_page():
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


def test_the_reference_has_everything_public():
    listed = set((ROOT / "docs" / "api" / "index.rst").read_text().replace("`", " ").split())
    for room in ("fcorr", *(f"fcorr.{name}" for name in ("data", "estimators", "metrics", "nn"))):
        module = importlib.import_module(room)
        public = {name for name in module.__all__ if not name.startswith("_")}
        rooms = {name for name in public if inspect.ismodule(getattr(module, name))}
        assert public - rooms <= {name.rstrip(",.") for name in listed}, room


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
