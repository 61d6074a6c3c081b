"""The committed report is just what its records make; tables and figures from made-up records."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from paper.claims import check_claims
from paper.experiments import EXPERIMENTS, list_runs, read_config
from paper.figures import make_figures
from paper.report import summarise, write_report
from paper.results import NotRunError, Results
from paper.runs import read_records
from paper.tables import Table, make_tables

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "reproduction" / "results"
DECISIONS = ["Accuracy", "F1", "FPR", "FNR", "AUROC", "AUPRC"]
FLIPS = ["AvgIF", "F1 gap", "AUROC gap", "AUPRC gap"]
FAIRNESS = ["DPD", "EqOdd", "EqOpp", *FLIPS]


@pytest.fixture(scope="module")
def records():
    return read_records(RESULTS)


# ------------------------------------------------------------ what is committed


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_run_has_its_record_and_there_are_no_others(records, experiment):
    keys = [run.key for run in list_runs(experiment, "full")]
    assert [record["key"] for record in records[experiment]] == keys
    assert len((RESULTS / f"{experiment}.jsonl").read_text().splitlines()) == len(keys)


def test_report_is_what_the_records_make(records, tmp_path):
    made = {file.relative_to(tmp_path) for file in write_report(records, tmp_path, smoke=False)}
    folders = [DOCS / "reproduction" / name for name in ("tables", "figures")]
    kept = {file.relative_to(DOCS) for folder in folders for file in folder.iterdir()}
    assert made == kept | {Path("reproduction.md")}
    for file in made:
        assert (tmp_path / file).read_bytes() == (DOCS / file).read_bytes(), file


def test_the_first_screen_says_what_the_verdicts_say(records):
    """All lines of the summary are there; one whose claims came out otherwise would not be."""
    lines, page = read_config("summary")["lines"], (DOCS / "reproduction.md").read_text()
    counts = "Of 61 claims, 15 hold, 16 hold in part, 22 do not hold, 8 are not testable here."
    first = page[page.index(counts) : page.index("## The paper's claims")]
    assert all(f"- {line['text']}\n" in first for line in lines)
    assert len(lines) <= 10
    (line,) = [line for line in lines if list(line["rests_on"]) == ["ours-exact"]]
    only = {name: records[name] for name in ("baf", "adult")}
    assert line["text"] in summarise(check_claims(only))
    only["adult"] = [of for of in only["adult"] if of["model"] != "FCorr, defaults"]
    assert line["text"] not in summarise(check_claims(only))


def test_adult_is_no_worse_than_published(records):
    """The paper: AUROC .9128, with CAR .8994 and AvgIF .0001; FT-Transformer's accuracy .857."""
    frame = Results({"adult": records["adult"]}).select("adult", subset="test")
    means = frame.groupby(["model", "column"])[["AUROC", "AvgIF", "Accuracy at 0.5"]].mean()
    for column in ("race", "sex"):
        assert means.loc[("FCorr, splines", column), "AUROC"] >= 0.9128
        assert means.loc[("FT-Transformer", column), "Accuracy at 0.5"] >= 0.857
        assert means.loc[("FCorr, splines + CAR", column), "AUROC"] >= 0.9120
        assert means.loc[("FCorr, splines + CAR", column), "AvgIF"] <= 1e-4


# ------------------------------------------------------------ tables


def cells(records, name, *labels):
    """Return the cells of a table's line by their columns."""
    (found,) = [table for table in make_tables(Results(records)) if table.name == name]
    (row,) = [row for row in found.rows if tuple(row[: len(labels)]) == labels]
    return dict(zip(found.header, row, strict=True))


@pytest.fixture
def record(make_fit):
    """Make the record of a fit of which every metric has the same value."""

    def make(model="FCorr", seed=0, *, experiment="baf", columns=("customer_age",), **fields):
        same = dict.fromkeys([*DECISIONS, *FAIRNESS], fields.pop("value", 0.25))
        known = {"columns": columns, "metrics": same, "on_train": True}
        return make_fit(experiment, model, seed, **known | fields)

    return make


def test_cells(record):
    fits = [record(value=0.91), record(seed=1, value=0.93), record("FCorr + CAR", value=0.0)]
    fits += [record("FFN", value=0.5), record("FFN", seed=1, value=None)]
    for name, subset, model, metric, expected in (
        ("baf_performance", "test", "FCorr", "AUROC", "0.9200 ± 0.0100 (0.8925)"),
        ("baf_performance", "train", "FCorr", "AUROC", "0.9200 ± 0.0100 (0.8928)"),
        ("baf_fairness", "test", "FCorr + CAR", "AvgIF", "0 (0.0000)"),
        ("baf_fairness", "test", "FFN", "DPD", "0.5000 [1 of 2] (0.0391)"),
    ):
        assert cells({"baf": fits}, name, subset, model)[metric] == expected


def test_agreement(record):
    rising = {f"x{i:02}": float(i) for i in range(20)}
    falling = {name: -value for name, value in rising.items()}
    trees = {"split": rising, "gain": falling}
    fits = [
        record("FCorr", significance={"significance": rising}),
        record("FCorr", seed=1, significance={"significance": falling}, parameters=1_300),
        record("FCorr", seed=2, significance={"significance": rising}),  # no trees to compare
        record("FCorr + CAR", significance={"significance": {**rising, "x00": None}}),  # diverged
        record("LightGBM", significance=trees, parameters=None),
        record("LightGBM", seed=1, significance=trees, parameters=None),
    ]
    row = cells({"baf": fits}, "significance", "baf", "FCorr", "LightGBM, split")
    assert list(row.values())[3:] == ["5.0 ± 5.0 (5)", "0 ± 1.00", "2"]
    (table,) = [t for t in make_tables(Results({"baf": fits})) if t.name == "significance"]
    assert not any("CAR" in cell for row in table.rows for cell in row)
    for model, expected in (("FCorr", "1,234 to 1,300"), ("LightGBM", "–")):
        assert cells({"baf": fits}, "costs", "made up", model)["Parameters"] == expected


def test_fits_without_significance_beside_measured_costs(record):
    cost = {"experiment": "complexity", "model": "FFN", "seed": 0, "cost": {"parameters": 9}}
    cost["config"] = {"data": "claims", "measure": "size"}
    results = Results({"baf": [record()], "complexity": [cost]})
    with pytest.raises(NotRunError):
        results.significances("baf", "FCorr")


def test_latex_and_markdown(record):
    fits = [record("FCorr"), record("FCorr + CAR", seed=1, value=-0.5)]
    tables = make_tables(Results({"baf": fits}))
    for table in tables:
        text = table.latex()
        assert text.isascii()
        assert f"\\label{{tab:{table.name}}}" in text
        assert text.count("\\begin{") == text.count("\\end{")
        for line in text.splitlines():
            if line.endswith(" \\\\"):
                assert len(re.findall(r"(?<!\\)&", line)) == len(table.header) - 1
    assert r"customer\_age" in tables[0].latex()
    narrow = Table("name", "Title", "Caption.", ["a", "b"], [["1|2", "2"]])
    assert "resizebox" not in narrow.latex()
    assert "resizebox" in tables[1].latex()
    assert narrow.markdown() == "| a | b |\n| --- | ---: |\n| 1\\|2 | 2 |\n"


# ------------------------------------------------------------ figures


def texts(figure):
    tree = ElementTree.fromstring(figure.svg)
    return ["".join(node.itertext()) for node in tree.iter("{http://www.w3.org/2000/svg}text")]


def test_heat_maps_of_what_did_not_diverge(record):
    features = ["income", "customer_age", "velocity_$4w$"]
    matrix = [[3.0, 0.1, 0.2], [0.1, 7.0, -0.3], [0.2, -0.3, 5.0]]
    there, diverged = ({"features": features, "first": of} for of in (matrix, [[None] * 3] * 3))
    fits = [record(attention=there), record("FCorr + CAR", attention=diverged)]
    (figure,) = make_figures(Results({"baf": [*fits, record("FT-Transformer")]}))
    shown = texts(figure)
    assert {figure.title, "FCorr", "7.00", "-0.30"} <= set(shown)
    assert "FCorr + CAR" not in shown
    order = [text for text in shown if text in features]
    assert order[:3] == ["customer_age", "income", "velocity_$4w$"]  # a name is no formula
    assert "The fit of seed 0. Data: made up" in figure.caption
    assert make_figures(Results({"synthetic": [record(experiment="synthetic")]})) == []


def test_bars_tell_what_is_shared_with_trees(record):
    names = [f"x{i:02}" for i in range(12)]
    own = {"significance": {name: 12.0 - i for i, name in enumerate(names)}}
    trees = {name: 12.0 - (i - 4) % 12 for i, name in enumerate(names)}  # x04 to x11, x00, x01
    fits = [record("FCorr", seed, significance=own) for seed in (0, 1)]
    fits.append(record("LightGBM", significance={"split": trees, "gain": {}}))
    networks, others = make_figures(Results({"baf": fits}))
    shown = texts(networks)
    assert {"FCorr: 8 of 10 shared with LightGBM", "x00 *", "x02"} <= set(shown)
    assert not any("x10" in text for text in shown)
    assert "LightGBM" in texts(others)
    (alone,) = make_figures(Results({"claims": [record(experiment="claims", significance=own)]}))
    assert "star" in networks.caption
    assert "star" not in alone.caption
