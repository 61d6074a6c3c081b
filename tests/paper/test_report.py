"""The committed report: complete, and just what its records make."""

from pathlib import Path

import pytest
from fcorr.reproduce import EXPERIMENTS, read_records
from fcorr.reproduce.report import write_document
from fcorr.reproduce.settings import list_runs

from fcorr import InvalidInputError

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "reproduction" / "results"


@pytest.fixture(scope="module")
def records():
    return read_records(RESULTS)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_run_has_its_record_and_there_are_no_others(records, experiment):
    keys = [run.key for run in list_runs(experiment, "full")]
    assert [record["key"] for record in records[experiment]] == keys
    assert len((RESULTS / f"{experiment}.jsonl").read_text().splitlines()) == len(keys)


def test_report_is_what_the_records_make(records, tmp_path):
    made = {file.relative_to(tmp_path) for file in write_document(records, tmp_path, smoke=False)}
    folders = [DOCS / "reproduction" / name for name in ("tables", "figures")]
    kept = {file.relative_to(DOCS) for folder in folders for file in folder.iterdir()}
    assert made == kept | {Path("reproduction.md")}
    for file in made:
        assert (tmp_path / file).read_bytes() == (DOCS / file).read_bytes(), file


def test_report_says_of_a_smoke_run_that_it_is_one(records, tmp_path):
    write_document({"synthetic": records["synthetic"][:3]}, tmp_path, smoke=True)
    assert "they mean nothing" in (tmp_path / "reproduction.md").read_text()


def test_no_report_without_records(tmp_path):
    with pytest.raises(InvalidInputError, match="A report needs records, got none"):
        write_document({}, tmp_path, smoke=False)


def mean(records, metric, model, column=None):
    values = [
        record["performance"]["test"].get(metric) or record["fairness"][column]["test"][metric]
        for record in records["adult"]
        if record["model"] == model and column in (None, *record["fairness"])
    ]
    assert len(values) == 5
    return sum(values) / 5


def test_adult_is_no_worse_than_published(records):
    """The paper: AUROC .9128, with CAR .8994 and AvgIF .0001; FT-Transformer's accuracy .857."""
    assert mean(records, "AUROC", "FCorr, splines") >= 0.9128
    assert mean(records, "Accuracy at 0.5", "FT-Transformer") >= 0.857
    for column in ("race", "sex"):
        assert mean(records, "AUROC", "FCorr, splines + CAR", column) >= 0.9120
        assert mean(records, "AvgIF", "FCorr, splines + CAR", column) <= 1e-4
