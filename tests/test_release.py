"""What a release needs: one version everywhere, and a workflow that calls targets that exist."""

import re
import tomllib
from pathlib import Path

import pytest

import fcorr

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text()


def test_one_version_everywhere_and_changed_models_are_news():
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (\S+)", changes, re.MULTILINE)[0] == fcorr.__version__
    assert f"version: {fcorr.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert "### Changed models" in re.split(r"^## ", changes, flags=re.MULTILINE)[1]


def test_the_workflow_calls_targets_of_the_makefile():
    yaml = pytest.importorskip("yaml", reason="needs PyYAML, which pre-commit brings along")
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert {command.split()[0] for command in commands} == {"make"}
    targets = {command.split()[1] for command in commands} - {"${{"}
    targets |= set(jobs["weekly"]["strategy"]["matrix"]["target"])
    assert targets >= {"check", "test", "docs", "release"}
    for target in targets:
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target


def test_pythons_are_the_same_everywhere():
    yaml = pytest.importorskip("yaml", reason="needs PyYAML, which pre-commit brings along")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r":: (3\.\d+)", " ".join(project["classifiers"]))
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == named
    assert project["requires-python"] == f">={named[0]}"
    assert (
        f"on Python {', '.join(named[:-1])} and {named[-1]}"
        in ((ROOT / "constraints.txt").read_text().splitlines()[0])
    )


@pytest.mark.parametrize("name", ["bug", "wrong_figure", "idea"])
def test_issue_forms_can_be_filled_in(name):
    """As GitHub reads them: a name, a description, and questions with a label each."""
    yaml = pytest.importorskip("yaml", reason="needs PyYAML, which pre-commit brings along")
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text())
    assert {"name", "description", "body"} == set(form)
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert asked
    for part in asked:
        assert part["type"] in ("textarea", "input")
        assert part["id"].isidentifier()
        assert part["attributes"]["label"]
    assert any(part.get("validations", {}).get("required") for part in asked)


def test_every_target_is_declared():
    """A file of a target's name would otherwise keep it from running."""
    declared = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()
    targets = re.findall(r"^([a-z][\w-]*):", MAKEFILE, re.MULTILINE)
    assert sorted(declared) == sorted(targets)
