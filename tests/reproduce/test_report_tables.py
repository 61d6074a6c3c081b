"""Tables of a report, from records made up for the purpose, and the paper's own figures."""

import re

import pytest

from fcorr.audit.tables import TextTable
from fcorr.reproduce.report.items import ReportTable
from fcorr.reproduce.report.paper import paper_figure, paper_models
from fcorr.reproduce.report.significance import correlate_ranks, count_shared
from fcorr.reproduce.report.tables import make_tables
from fcorr.reproduce.settings import read_config

DECISIONS = ["Accuracy", "F1", "FPR", "FNR", "AUROC", "AUPRC"]
FLIPS = ["AvgIF", "F1 gap", "AUROC gap", "AUPRC gap"]
FAIRNESS = ["DPD", "EqOdd", "EqOpp", *FLIPS]


def record(
    model="FCorr",
    seed=0,
    *,
    experiment="baf",
    table="bank_fraud",
    sensitive=("customer_age",),
    value=0.25,
    metrics=(DECISIONS, FAIRNESS),
    point=None,
    significance=None,
    name="make_bank_fraud",
    stands_in_for="Bank Account Fraud",
    n_train=1_000,
):
    """Make the record of a fit of which every metric has the same value."""
    performance, fairness = (dict.fromkeys(names, value) for names in metrics)
    return {
        "key": f"{model} {seed} {point} {sensitive}",
        "experiment": experiment,
        "model": model,
        "seed": seed,
        "config": {
            "data": {"name": table},
            "sensitive": list(sensitive),
            "point": point or {},
            "threshold": None,
        },
        "data": {
            "name": name,
            "stands_in_for": stands_in_for,
            "n_train": n_train,
            "n_train_measured": 400,
            "n_test": 500,
        },
        "threshold": 0.1 + 0.1 * seed,
        "performance": {"train": performance, "test": dict(performance)},
        "fairness": {
            column: {"train": dict(fairness), "test": dict(fairness)} for column in sensitive
        },
        "parameters": 1_234,
        "significance": significance or {},
        "attention": {},
        "seconds": {"fit": 2.0, "epoch": None},
        "peak_megabytes": 100.0,
    }


def size(model, data="bank_fraud", **cost):
    found = {"parameters": 11_064, "head_parameters": 10_433, "n_rows": 64, **cost}
    return {
        "experiment": "complexity",
        "model": model,
        "seed": 0,
        "config": {"measure": "size", "data": data},
        "cost": {"parameter_megabytes": 0.044, "kept_megabytes": 0.146, **found},
    }


def epochs(seed, data, seconds):
    forms = ("CDA by definition", "augmentation", "CDA in closed form")
    return {
        "experiment": "complexity",
        "model": "FCorr + CAR",
        "seed": seed,
        "config": {"measure": "epochs", "data": data},
        "cost": {"seconds_per_epoch": dict(zip(forms, seconds, strict=True)), "n_rows": 50_000},
    }


def table_of(records, name):
    (found,) = [table for table in make_tables(records) if table.name == name]
    return found


def cells(found, *labels):
    """Return the cells of a line by their columns."""
    (row,) = [row for row in found.table.rows if tuple(row[: len(labels)]) == labels]
    return dict(zip(found.table.header, row, strict=True))


# ------------------------------------------------------------------------- the paper's figures


def test_every_model_of_the_paper_is_one_of_ours():
    known = set(read_config("models"))
    for name, rows in read_config("paper").items():
        if name in ("multilayer", "seconds_per_epoch"):  # by layers, by data
            continue
        for of_subset in [rows[s] for s in ("train", "test")] if "train" in rows else [rows]:
            assert set(of_subset) <= known


@pytest.mark.parametrize(
    ("table", "models", "metrics"),
    [
        (
            "baf_performance",
            [
                "FFN",
                "TabTransformer",
                "FT-Transformer",
                "FT-Transformer + CAR",
                "FCorr",
                "FCorr + CAR",
            ],
            DECISIONS,
        ),
        ("baf_baselines", ["LightGBM", "FCorr + Res", "FCorr + Rem", "FCorr"], DECISIONS),
        (
            "adult_performance",
            ["FT-Transformer", "FT-Transformer + CAR", "FCorr", "FCorr + CAR"],
            DECISIONS,
        ),
        (
            "adult_fairness",
            ["FT-Transformer", "FT-Transformer + CAR", "FCorr", "FCorr + CAR"],
            FAIRNESS,
        ),
        (
            "claims_performance",
            ["LightGBM", "FT-Transformer", "FT-Transformer + CAR", "FCorr", "FCorr + CAR"],
            ["Gini", "PE", "RMSE", "MAE"],
        ),
        (
            "claims_fairness",
            ["FT-Transformer", "FT-Transformer + CAR", "FCorr", "FCorr + CAR"],
            ["DPD", "AvgIF", "RMSE gap", "MAE gap"],
        ),
        ("multilayer", ["1", "3", "5"], FAIRNESS),
    ],
)
def test_the_papers_tables_are_whole(table, models, metrics):
    of_paper = read_config("paper")[table]
    assert list(of_paper) == ["train", "test"]
    for rows in of_paper.values():
        assert list(rows) == models
        assert all(list(row) == metrics for row in rows.values())


def test_the_papers_tables_without_subsets():
    paper = read_config("paper")
    assert list(paper["synthetic_fairness"]) == ["FCorr", "FCorr + CAR"]
    assert all(list(row) == FLIPS for row in paper["synthetic_fairness"].values())
    assert paper_models("baf_complexity") == ["FFN", "TabTransformer", "FT-Transformer", "FCorr"]
    assert paper_models("claims_complexity") == ["FFN", "FT-Transformer", "FCorr"]


@pytest.mark.parametrize(
    ("place", "figure"),
    [
        (("synthetic_fairness", "FCorr", "AvgIF"), 0.0085),
        (("synthetic_fairness", "FCorr", "AvgIF", "test"), 0.0085),
        (("baf_performance", "FT-Transformer", "AUROC", "test"), 0.8955),
        (("baf_performance", "FCorr + CAR", "FNR", "train"), 0.7202),
        (("baf_fairness", "FCorr", "AUPRC gap", "train"), 0.1920),
        (("baf_fairness", "FCorr + Rem", "DPD", "train"), 0.0769),
        (("baf_fairness", "FCorr + Rem", "EqOpp", "train"), 0.6516),
        (("baf_fairness", "FCorr + Rem", "DPD", "test"), None),
        (("baf_baselines", "LightGBM", "AUPRC", "train"), 0.2644),
        (("baf_threshold", "LightGBM", "threshold"), 0.12),
        (("baf_overlap", "FCorr", "top 10"), 5),
        (("baf_complexity", "FT-Transformer", "kept_megabytes"), 67.88),
        (("claims_performance", "FT-Transformer", "PE", "test"), -0.32),
        (("claims_fairness", "FCorr + CAR", "DPD", "test"), 59.47),
        (("claims_complexity", "FCorr", "head_parameters"), 10_145),
        (("seconds_per_epoch", "claims", "augmentation"), 14.40),
        (("adult_fairness", "FCorr + CAR", "AUPRC gap", "test"), 0.0004),
        (("multilayer", "5", "DPD", "test"), 0.0625),
        (("no_table", "FCorr", "DPD"), None),
        (("baf_performance", "GridSearch", "AUROC", "test"), None),
    ],
)
def test_what_the_paper_prints(place, figure):
    assert paper_figure(*place) == figure


# --------------------------------------------------------------------------- tables of fits


def test_a_cell_has_mean_deviation_and_the_papers_figure():
    records = {"baf": [record(value=0.91), record(seed=1, value=0.93)]}
    found = cells(table_of(records, "baf_performance"), "test", "FCorr")
    assert found["AUROC"] == "0.9200 ± 0.0100 (0.8925)"
    assert found["Seeds"] == "2"
    train = cells(table_of(records, "baf_performance"), "train", "FCorr")
    assert train["AUROC"] == "0.9200 ± 0.0100 (0.8928)"


def test_zero_tiny_and_missing_values():
    records = {
        "baf": [
            record("FCorr + CAR", value=0.0),
            record("FCorr", value=3e-7),
            record("FCorr + Rem", value=None),
            record("FFN", value=0.5),
            record("FFN", seed=1, value=None),
        ]
    }
    found = table_of(records, "baf_fairness")
    assert cells(found, "test", "FCorr + CAR")["AvgIF"] == "0 (0.0000)"
    assert cells(found, "test", "FCorr")["AvgIF"] == "3.0e-07 (0.0734)"
    assert cells(found, "test", "FCorr + Rem")["AvgIF"] == "n/a"
    assert cells(found, "train", "FCorr + Rem")["DPD"] == "n/a (0.0769)"
    assert cells(found, "test", "FFN")["DPD"] == "0.5000 [1 of 2] (0.0391)"


def test_the_papers_models_come_first_and_ours_without_parentheses():
    models = ["FCorr, defaults", "FCorr + CAR", "LightGBM", "FFN", "FCorr + Rem", "FCorr"]
    tables = {t.name: t for t in make_tables({"baf": [record(model) for model in models]})}
    of_fairness = [row[1] for row in tables["baf_fairness"].table.rows if row[0] == "test"]
    assert of_fairness == [
        "FFN",
        "FCorr",
        "FCorr + CAR",
        "FCorr + Rem",
        "LightGBM",
        "FCorr, defaults",
    ]
    assert [row[1] for row in tables["baf_performance"].table.rows] == 2 * [
        "FFN",
        "FCorr",
        "FCorr + CAR",
    ]
    assert [row[1] for row in tables["baf_baselines"].table.rows] == 2 * [
        "LightGBM",
        "FCorr + Rem",
        "FCorr",
        "FCorr, defaults",
    ]
    ours = cells(tables["baf_baselines"], "test", "FCorr, defaults")
    assert ours["AUROC"] == "0.2500"


def test_tables_without_any_model_are_left_out():
    tables = make_tables({"baf": [record("LightGBM")], "adult": [], "complexity": []})
    assert [table.name for table in tables] == ["baf_fairness", "baf_baselines", "costs"]
    assert make_tables({}) == []


def test_a_seed_that_was_run_twice_counts_once():
    records = {"baf": [record(value=0.5), record(value=0.75)]}
    found = cells(table_of(records, "baf_performance"), "test", "FCorr")
    assert (found["AUROC"], found["Seeds"]) == ("0.7500 (0.8925)", "1")


def test_captions_say_which_data_there_were():
    records = {
        "baf": [
            record("FFN"),
            record("FCorr"),
            record("FCorr", seed=1),
            record("FT-Transformer", n_train=300),
        ]
    }
    caption = table_of(records, "baf_performance").caption
    assert "generated by make_bank_fraud in place of Bank Account Fraud" in caption
    assert "1,000 training rows (their metrics on 400 of them), 500 test rows" in caption
    assert "1 to 2 seeds" in caption
    assert "0.150 ± 0.050 (the paper's: 0.12)" in caption
    real = {"baf": [record(name="Bank Account Fraud", stands_in_for="")]}
    assert "Data: Bank Account Fraud, 1,000" in table_of(real, "baf_performance").caption


def test_adult_has_tables_for_each_sensitive_column():
    shared = {"experiment": "adult", "table": "adult", "name": "Adult", "stands_in_for": ""}
    records = {
        "adult": [
            record("FCorr", sensitive=("race", "sex"), value=0.5, **shared),
            record("FCorr + CAR", sensitive=("race",), value=0.6, **shared),
            record("FCorr + CAR", sensitive=("sex",), value=0.7, **shared),
        ]
    }
    race = table_of(records, "adult_performance_race")
    assert cells(race, "test", "FCorr")["AUROC"] == "0.5000 (0.9128)"
    assert cells(race, "test", "FCorr + CAR")["AUROC"] == "0.6000 (0.8994)"
    sex = table_of(records, "adult_fairness_sex")
    assert cells(sex, "test", "FCorr + CAR")["DPD"] == "0.7000"
    assert "paper" not in sex.caption
    assert cells(table_of(records, "adult_fairness_race"), "test", "FCorr")["DPD"].endswith(
        "(0.1766)"
    )


def test_amounts_have_two_decimals_and_separators():
    metrics = (["Gini", "RMSE"], ["DPD", "RMSE gap"])
    shared = {"experiment": "claims", "table": "claims", "sensitive": ("credit_score",)}
    found = record(metrics=metrics, **shared)
    for of_subset in found["performance"].values():
        of_subset |= {"Gini": 0.5, "RMSE": 3306.111}
    records = {"claims": [found]}
    row = cells(table_of(records, "claims_performance"), "test", "FCorr")
    assert row["Gini"] == "0.5000 (0.54)"
    assert row["RMSE"] == "3,306.11 (3,306.11)"
    assert "MAE" not in row  # nobody measured it


def test_motor_tables_are_one_for_each_portfolio():
    metrics = (["Gini", "deviance"], ["DPD", "A/E gap"])
    shared = {"experiment": "motor", "metrics": metrics, "stands_in_for": "InsurTech"}
    records = {
        "motor": [
            record(table="bemtpl97", sensitive=("sex",), name="beMTPL97", **shared),
            record(table="fremtpl2", sensitive=("DrivAge",), name="freMTPL2", **shared),
        ]
    }
    names = [table.name for table in make_tables(records)]
    assert names == ["motor_bemtpl97", "motor_fremtpl2", "costs"]
    found = table_of(records, "motor_fremtpl2")
    assert "freMTPL2 in place of InsurTech" in found.caption
    assert "Sensitive: DrivAge" in found.caption
    assert cells(found, "test", "FCorr")["A/E gap"] == "0.2500"


def test_lambda_and_layers_make_lines_of_their_own():
    weights = [
        record("FCorr + CAR", experiment="controllability", point={"car": w})
        for w in (1e6, 0.0, 10.0)
    ]
    found = table_of({"controllability": weights}, "controllability")
    assert [row[:3] for row in found.table.rows[:3]] == [
        ["train", "FCorr + CAR", "0"],
        ["train", "FCorr + CAR", "10"],
        ["train", "FCorr + CAR", "1e+06"],
    ]
    layers = [
        record(model, seed, experiment="multilayer", point={"n_layers": n})
        for model in ("FCorr", "FCorr + CAR")
        for n in (1, 3)
        for seed in (0, 1)
    ]
    found = table_of({"multilayer": layers}, "multilayer")
    row = cells(found, "train", "FCorr + CAR", "3")
    assert (row["DPD"], row["Seeds"]) == ("0.2500 ± 0 (0.0736)", "2")
    assert cells(found, "train", "FCorr", "3")["DPD"] == "0.2500 ± 0"


# ----------------------------------------------------------------------- significance, costs


def test_agreement_of_significances():
    features = [f"x{i:02}" for i in range(20)]
    rising = {name: float(i) for i, name in enumerate(features)}
    falling = {name: -value for name, value in rising.items()}
    assert correlate_ranks(rising, falling) == pytest.approx(-1)
    assert correlate_ranks(rising, dict.fromkeys(features, 1.0)) is None
    assert count_shared(rising, falling, 10) == 0
    assert count_shared(rising, falling, 15) == 10
    trees = {"split": rising, "gain": falling}
    records = {
        "baf": [
            record("FCorr", significance={"significance": rising}),
            record("FCorr", seed=1, significance={"significance": falling}),
            record("FCorr", seed=2, significance={"significance": rising}),  # no trees to compare
            record("FCorr + CAR", significance={"significance": {**rising, "x00": None}}),
            record("LightGBM", significance=trees),
            record("LightGBM", seed=1, significance=trees),
        ]
    }
    found = table_of(records, "significance")
    row = cells(found, "baf", "FCorr", "LightGBM, split")
    assert row["Shared of the first"] == "5.0 ± 5.0 (5)"
    assert row["Rank correlation"] == "0 ± 1.00"
    assert row["Seeds"] == "2"
    assert not any("CAR" in cell for row in found.table.rows for cell in row)


def test_sizes_and_seconds():
    records = {
        "complexity": [
            size("FFN", head_parameters=0),
            size("FCorr"),
            size("FCorr", data="claims", parameters=21_767, head_parameters=10_145),
            epochs(0, "bank_fraud", (4.0, 2.0, 1.0)),
            epochs(1, "bank_fraud", (8.0, 2.0, 1.0)),
        ]
    }
    baf = table_of(records, "baf_complexity")
    assert cells(baf, "FCorr")["Parameters"] == "11,064 (11,064)"
    assert cells(baf, "FCorr")["their share"] == "94.3 % (94.3 %)"
    assert cells(baf, "FFN")["of the head"] == "–"
    claims = table_of(records, "claims_complexity")
    assert cells(claims, "FCorr")["of the head"] == "10,145 (10,145)"
    seconds = cells(table_of(records, "seconds_per_epoch"), "bank_fraud")
    assert seconds["CDA by definition"] == "6.00 ± 2.00 (21.46)"
    assert seconds["CDA in closed form"] == "1.00 ± 0"
    assert seconds["definition ÷ augmentation"] == "3.00 ± 1.00 (1.10)"


def test_costs_of_fits():
    row = cells(table_of({"baf": [record("LightGBM")]}, "costs"), "make_bank_fraud", "LightGBM")
    assert (row["Fit, s"], row["Epoch, s"], row["Parameters"]) == ("2.00", "–", "1,234")


# ------------------------------------------------------------------------------------ LaTeX


def test_latex_of_all_tables():
    records = {"baf": [record("FCorr"), record("FCorr + CAR", seed=1, value=-0.5)]}
    for table in make_tables(records):
        text = table.latex()
        assert text.isascii()
        assert f"\\label{{tab:{table.name}}}" in text
        assert text.count("\\begin{") == text.count("\\end{")
        n_columns = len(table.table.header)
        for line in text.splitlines():
            if line.endswith(" \\\\"):
                assert len(re.findall(r"(?<!\\)&", line)) == n_columns - 1
    assert r"customer\_age" in table_of(records, "baf_performance").latex()


def test_only_wide_tables_are_made_to_fit():
    narrow = ReportTable("name", "Title", "Caption.", TextTable(["a", "b"], [["1", "2"]]))
    assert "resizebox" not in narrow.latex()
    assert "resizebox" in table_of({"baf": [record()]}, "baf_fairness").latex()


def test_markdown_has_names_to_the_left():
    found = table_of({"baf": [record()]}, "baf_fairness")
    assert found.markdown().splitlines()[1].startswith("| --- | --- | ---: |")
