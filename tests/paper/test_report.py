"""The committed report is just what its records make; tables and figures from made-up records."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fcorr import InvalidInputError
from paper.claims import check_claims
from paper.experiments import EXPERIMENTS, list_runs, read_config
from paper.figures import make_figures
from paper.report import summarise, write_report
from paper.results import Results, paper_figure, paper_rows
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
    claims, lines = check_claims(records), read_config("summary")["lines"]
    text = summarise(claims)
    assert text.startswith("Of 61 claims, 15 hold, 16 hold in part, 22 do not hold, 8 are not test")
    assert text.count("\n- ") == len(lines) <= 10
    page = (DOCS / "reproduction.md").read_text()
    assert page.index(text) < page.index("## The paper's claims")
    (line,) = [line for line in lines if list(line["rests_on"]) == ["ours-exact"]]
    without = {**records, "adult": [r for r in records["adult"] if r["model"] != "FCorr, defaults"]}
    assert line["text"] in text
    assert line["text"] not in summarise(check_claims(without))


def test_adult_is_no_worse_than_published(records):
    """The paper: AUROC .9128, with CAR .8994 and AvgIF .0001; FT-Transformer's accuracy .857."""
    frame = Results(records).select("adult", subset="test")
    means = frame.groupby(["model", "column"])[["AUROC", "AvgIF", "Accuracy at 0.5"]].mean()
    for column in ("race", "sex"):
        assert means.loc[("FCorr, splines", column), "AUROC"] >= 0.9128
        assert means.loc[("FT-Transformer", column), "Accuracy at 0.5"] >= 0.857
        assert means.loc[("FCorr, splines + CAR", column), "AUROC"] >= 0.9120
        assert means.loc[("FCorr, splines + CAR", column), "AvgIF"] <= 1e-4


def test_reports_of_a_smoke_run_and_of_nothing(records, tmp_path):
    write_report({"synthetic": records["synthetic"][:3]}, tmp_path, smoke=True)
    assert "they mean nothing" in (tmp_path / "reproduction.md").read_text()
    with pytest.raises(InvalidInputError, match="A report needs records, got none"):
        write_report({}, tmp_path, smoke=False)


# ------------------------------------------------------------ the paper's figures


def test_every_model_of_the_paper_is_one_of_ours():
    known = set(read_config("models"))
    for name in read_config("paper"):
        if name not in ("multilayer", "seconds_per_epoch"):  # by layers, by data
            assert {*paper_rows(name, "train"), *paper_rows(name, "test")} <= known


@pytest.mark.parametrize(
    ("table", "n_models", "metrics"),
    [
        ("baf_performance", 6, DECISIONS),
        ("baf_baselines", 4, DECISIONS),
        ("adult_performance", 4, DECISIONS),
        ("adult_fairness", 4, FAIRNESS),
        ("claims_performance", 5, ["Gini", "PE", "RMSE", "MAE"]),
        ("claims_fairness", 4, ["DPD", "AvgIF", "RMSE gap", "MAE gap"]),
        ("multilayer", 3, FAIRNESS),
        ("synthetic_fairness", 2, FLIPS),
    ],
)
def test_the_papers_tables_are_whole(table, n_models, metrics):
    for subset in ("train", "test"):
        rows = paper_rows(table, subset)
        assert len(rows) == n_models
        assert all(list(row) == metrics for row in rows.values())


@pytest.mark.parametrize(
    ("place", "figure"),
    [
        (("synthetic_fairness", "FCorr", "AvgIF"), 0.0085),
        (("baf_performance", "FT-Transformer", "AUROC", "test"), 0.8955),
        (("baf_performance", "FCorr + CAR", "FNR", "train"), 0.7202),
        (("baf_fairness", "FCorr + Rem", "EqOpp", "train"), 0.6516),
        (("baf_fairness", "FCorr + Rem", "DPD", "test"), None),
        (("baf_overlap", "FCorr", "top 10"), 5),
        (("baf_complexity", "FT-Transformer", "kept_megabytes"), 67.88),
        (("claims_performance", "FT-Transformer", "PE", "test"), -0.32),
        (("claims_complexity", "FCorr", "head_parameters"), 10_145),
        (("seconds_per_epoch", "claims", "augmentation"), 14.40),
        (("adult_fairness", "FCorr + CAR", "AUPRC gap", "test"), 0.0004),
        (("multilayer", "5", "DPD", "test"), 0.0625),
        (("no_table", "FCorr", "DPD"), None),
    ],
)
def test_what_the_paper_prints(place, figure):
    assert paper_figure(*place) == figure


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
        metrics = fields.pop("metrics", None)
        if metrics is None:
            metrics = dict.fromkeys([*DECISIONS, *FAIRNESS], fields.pop("value", 0.25))
        return make_fit(
            experiment, model, seed, columns=columns, metrics=metrics, on_train=True, **fields
        )

    return make


def test_cells(record):
    fits = [record(value=0.91), record(seed=1, value=0.93), record("FCorr + CAR", value=0.0)]
    fits += [record("FCorr + Rem", value=None), record("TabTransformer", value=3e-7)]
    fits += [record("FFN", value=0.5), record("FFN", seed=1, value=None)]
    found = cells({"baf": fits}, "baf_performance", "test", "FCorr")
    assert (found["AUROC"], found["Seeds"]) == ("0.9200 ± 0.0100 (0.8925)", "2")
    train = cells({"baf": fits}, "baf_performance", "train", "FCorr")
    assert train["AUROC"] == "0.9200 ± 0.0100 (0.8928)"
    for model, metric, expected in (
        ("FCorr + CAR", "AvgIF", "0 (0.0000)"),
        ("TabTransformer", "AvgIF", "3.0e-07 (0.1691)"),
        ("FCorr + Rem", "AvgIF", "n/a"),
        ("FFN", "DPD", "0.5000 [1 of 2] (0.0391)"),
    ):
        assert cells({"baf": fits}, "baf_fairness", "test", model)[metric] == expected


def test_the_papers_models_come_first_and_ours_without_parentheses(record):
    models = ["FCorr, defaults", "FCorr + CAR", "LightGBM", "FFN", "FCorr + Rem", "FCorr"]
    results = Results({"baf": [record(model) for model in models]})
    tables = {table.name: table for table in make_tables(results)}
    assert list(tables) == ["baf_performance", "baf_fairness", "baf_baselines", "costs"]
    papers, others = ["FFN", "FCorr", "FCorr + CAR"], ["LightGBM", "FCorr, defaults"]
    assert [row[1] for row in tables["baf_performance"].rows] == 2 * papers
    of_fairness = [row[1] for row in tables["baf_fairness"].rows if row[0] == "test"]
    assert of_fairness == [*papers, "FCorr + Rem", *others]
    of_baselines = [row[1] for row in tables["baf_baselines"].rows if row[0] == "test"]
    assert of_baselines == ["LightGBM", "FCorr + Rem", "FCorr", "FCorr, defaults"]
    caption = tables["baf_performance"].caption
    assert "1,000 training rows (their metrics on 400 of them), 500 test rows; 1 seed." in caption
    assert "0.100 (the paper's: 0.12)" in caption
    assert [row[-1] for row in tables["costs"].rows] == ["1"] * 6


def test_tables_of_the_other_experiments(record):
    adult = [
        record("FCorr", experiment="adult", columns=("race", "sex"), value=0.5),
        record("FCorr + CAR", experiment="adult", columns=("race",), value=0.6),
        record("FCorr + CAR", experiment="adult", columns=("sex",), value=0.7),
    ]
    for name, model, metric, cell in (
        ("adult_performance_race", "FCorr", "AUROC", "0.5000 (0.9128)"),
        ("adult_performance_race", "FCorr + CAR", "AUROC", "0.6000 (0.8994)"),
        ("adult_fairness_sex", "FCorr + CAR", "DPD", "0.7000"),
    ):
        assert cells({"adult": adult}, name, "test", model)[metric] == cell
    fitted = cells({"adult": adult}, "costs", "made up", "FCorr + CAR")
    assert fitted["Fits"] == "2"  # one for each column
    claims = record(experiment="claims", metrics={"Gini": 0.5, "RMSE": 3306.111, "DPD": 1.0})
    row = cells({"claims": [claims]}, "claims_performance", "test", "FCorr")
    assert (row["Gini"], row["RMSE"]) == ("0.5000 (0.54)", "3,306.11 (3,306.11)")
    assert "MAE" not in row  # nobody measured it
    options = {"experiment": "motor", "metrics": {"Gini": 0.3, "A/E gap": 0.25}}
    motor = [record(table="bemtpl97", **options), record(table="fremtpl2", **options)]
    assert cells({"motor": motor}, "motor_fremtpl2", "test", "FCorr")["A/E gap"] == "0.2500"
    weights = [
        record("FCorr + CAR", experiment="controllability", point={"car": w}) for w in (1e6, 0, 10)
    ]
    (table, *_) = make_tables(Results({"controllability": weights}))
    assert [row[2] for row in table.rows] == 2 * ["0", "10", "1e+06"]
    layers = [
        record(model, seed, experiment="multilayer", point={"n_layers": 3})
        for model in ("FCorr", "FCorr + CAR")
        for seed in (0, 1)
    ]
    for model, cell in (("FCorr + CAR", "0.2500 ± 0 (0.0736)"), ("FCorr", "0.2500 ± 0")):
        assert cells({"multilayer": layers}, "multilayer", "train", model, "3")["DPD"] == cell


def test_agreement_and_costs(record):
    features = [f"x{i:02}" for i in range(20)]
    rising = {name: float(i) for i, name in enumerate(features)}
    falling = {name: -value for name, value in rising.items()}
    trees = {"split": rising, "gain": falling}
    fits = [
        record("FCorr", significance={"significance": rising}),
        record("FCorr", seed=1, significance={"significance": falling}),
        record("FCorr", seed=2, significance={"significance": rising}),  # no trees to compare
        record("FCorr + CAR", significance={"significance": {**rising, "x00": None}}),  # diverged
        record("LightGBM", significance=trees, parameters=None),
        record("LightGBM", seed=1, significance=trees, parameters=None),
    ]
    fits[1]["parameters"] = 1_300
    row = cells({"baf": fits}, "significance", "baf", "FCorr", "LightGBM, split")
    assert list(row.values())[3:] == ["5.0 ± 5.0 (5)", "0 ± 1.00", "2"]
    (table,) = [t for t in make_tables(Results({"baf": fits})) if t.name == "significance"]
    assert not any("CAR" in cell for row in table.rows for cell in row)
    for model, expected in (("FCorr", "1,234 to 1,300"), ("LightGBM", "–")):
        assert cells({"baf": fits}, "costs", "made up", model)["Parameters"] == expected

    def cost(model, seed, measure, data, **found):
        config = {"measure": measure, "data": data}
        known = {"experiment": "complexity", "model": model, "seed": seed, "config": config}
        return {**known, "cost": {"n_rows": 64, **found}}

    memory = {"parameter_megabytes": 0.044, "kept_megabytes": 0.146}
    forms = ("CDA by definition", "augmentation", "CDA in closed form")
    costs = [
        cost("FFN", 0, "size", "bank_fraud", parameters=11_064, head_parameters=0, **memory),
        cost("FCorr", 0, "size", "bank_fraud", parameters=11_064, head_parameters=10_433, **memory),
        *(
            cost(
                "FCorr + CAR",
                i,
                "epochs",
                "bank_fraud",
                seconds_per_epoch=dict(zip(forms, of, strict=True)),
            )
            for i, of in enumerate([(4.0, 2.0, 1.0), (8.0, 2.0, 1.0)])
        ),
    ]
    own = cells({"complexity": costs}, "baf_complexity", "FCorr")
    assert (own["Parameters"], own["their share"]) == ("11,064 (11,064)", "94.3 % (94.3 %)")
    assert cells({"complexity": costs}, "baf_complexity", "FFN")["of the head"] == "–"
    seconds = cells({"complexity": costs}, "seconds_per_epoch", "bank_fraud")
    assert list(seconds.values())[2:] == [
        "6.00 ± 2.00 (21.46)",
        "2.00 ± 0 (19.50)",
        "1.00 ± 0",
        "3.00 ± 1.00 (1.10)",
        "2",
    ]


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
    assert tables[0].markdown().splitlines()[1].startswith("| --- | --- | ---: |")
    narrow = Table("name", "Title", "Caption.", ["a", "b"], [["1|2", "2"]])
    assert "resizebox" not in narrow.latex()
    assert "resizebox" in tables[1].latex()
    assert "| 1\\|2 | 2 |" in narrow.markdown()


# ------------------------------------------------------------ figures

FEATURES = ["income", "customer_age", "velocity_$4w$"]
MATRIX = [[3.0, 0.1, 0.2], [0.1, 7.0, -0.3], [0.2, -0.3, 5.0]]


def texts(figure):
    tree = ElementTree.fromstring(figure.svg)
    return ["".join(node.itertext()) for node in tree.iter("{http://www.w3.org/2000/svg}text")]


def matrices(*places):
    return {"features": FEATURES, **dict.fromkeys(places, MATRIX)}


def test_heat_maps(record):
    models = ("FCorr", "FCorr + CAR", "FT-Transformer")
    fits = [record(model, attention=matrices("first")) for model in models]
    both, ft = make_figures(Results({"baf": fits}))
    assert (both.name, ft.name) == ("baf_attention", "baf_attention_ft_transformer")
    shown = texts(both)
    assert {both.title, "FCorr", "FCorr + CAR", "7.00", "-0.30"} <= set(shown)
    order = [text for text in shown if text in FEATURES]
    assert order[:3] == ["customer_age", "income", "velocity_$4w$"]  # a name is no formula
    assert "The fit of seed 0. Data: made up" in both.caption
    again, _ = make_figures(Results({"baf": fits}))
    assert again.svg == both.svg
    diverged = {"features": FEATURES, "first": [[None] * 3] * 3}
    some = [fits[0], record("FCorr + CAR", attention=diverged), record("FT-Transformer")]
    (figure,) = make_figures(Results({"baf": some}))
    assert "FCorr + CAR" not in texts(figure)
    assert make_figures(Results({"synthetic": [record(experiment="synthetic")]})) == []


@pytest.mark.parametrize("depths", [(1, 3, 5), (5,)])
def test_first_and_last_layers(record, depths):
    fits = [
        record(
            "FCorr + CAR",
            experiment="multilayer",
            point={"n_layers": depth},
            attention=matrices("first", "last") if depth > 1 else matrices("first"),
        )
        for depth in depths
    ]
    figures = make_figures(Results({"multilayer": fits}))
    assert [f.name for f in figures] == ["multilayer_attention_first", "multilayer_attention_last"]
    titles = [text for text in texts(figures[0]) if text.endswith(" layers")]
    assert titles == [f"{depth} layers" for depth in depths if depth > 1]


def test_bars_tell_what_is_shared_with_trees(record):
    def ranked(*names):
        return {name: float(len(names) - i) for i, name in enumerate(names)}

    names = [f"x{i:02}" for i in range(12)]
    trees = ranked(*names[4:], *names[:4])  # the first ten: x04 to x11, x00, x01
    own = {"significance": ranked(*names)}
    fits = [record("FCorr", seed, significance=own) for seed in (0, 1)]
    fits.append(record("LightGBM", significance={"split": trees, "gain": {}}))
    networks, others = make_figures(Results({"baf": fits}))
    assert (networks.name, others.name) == ("baf_significance_networks", "baf_significance_others")
    shown = texts(networks)
    assert {"FCorr: 8 of 10 shared with LightGBM", "x00 *", "x02"} <= set(shown)
    assert not any("x10" in text for text in shown)
    assert networks.title == "The 10 most significant features on bank account fraud: FCorr"
    assert "LightGBM" in texts(others)
    assert "counted of these means" in networks.caption
    alone = [record(experiment="claims", significance={"significance": ranked("a", "b")})]
    (figure,) = make_figures(Results({"claims": alone}))
    assert "FCorr" in texts(figure)
    assert "star" not in figure.caption


def test_controllability_has_a_line_for_each_metric(record):
    points = [(0.0, 0, 0.25), (0.0, 1, 0.35), (10.0, 0, None), (1e6, 0, 0.0)]
    fits = [
        record("FCorr + CAR", seed, experiment="controllability", point={"car": w}, value=value)
        for w, seed, value in points
    ]
    (figure,) = make_figures(Results({"controllability": fits}))
    assert {*FLIPS, "AUROC", "0", "10", "1e+06", "weight λ of CAR"} <= set(texts(figure))
