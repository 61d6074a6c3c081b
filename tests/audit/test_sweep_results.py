"""What a sweep says: choices, tables and figures, from records made up for the purpose."""

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fcorr
from fcorr._core import InvalidInputError
from fcorr.audit.certified import Certified
from fcorr.audit.measuring import Measured
from fcorr.audit.sweep.choosing import choose_summary, describe_choice
from fcorr.audit.sweep.fingerprints import fingerprint
from fcorr.audit.sweep.pictures import draw_figures
from fcorr.audit.sweep.records import Record
from fcorr.audit.sweep.summaries import summarise

SVG = "{http://www.w3.org/2000/svg}"


def record(auroc, bound, *, exact=False, vacuous=False, seed=0, **arguments):
    return Record(
        key=str((auroc, bound, seed)),
        estimator="FCorrClassifier",
        data="d",
        effort=1,
        arguments={"car": 1e6, "invariance": None, "sensitive": "sex", **arguments},
        seed=seed,
        warm_path=(),
        measured=Measured(
            "two classes",
            {"AUROC": auroc, "F1": 1 - auroc},
            {"AvgIF": bound / 20, "largest change": bound / 10, "decisions flipped": 0.0},
            {"sex": {"DPD": 0.2}},
        ),
        certified=Certified(exact, bound, vacuous, bound / 5, 0.01, 0.95, bound / 2),
        notes=(),
        seconds={"fit": 1.0, "measure": 1.0},
        versions={},
    )


def summaries(*points):
    """Make summaries of points with (AUROC, bound) for each seed."""
    runs = [
        [record(auroc, bound, exact=bound == 0, seed=i, **point) for i, (auroc, bound) in of]
        for point, of in ((point, enumerate(numbers)) for point, numbers in points)
    ]
    return summarise([point for point, _ in points], {"car": 1e6, "invariance": None}, runs)


MODELS = summaries(
    ({"car": 0.0, "invariance": None}, [(0.80, 1.0), (0.78, 0.9)]),
    ({"car": 1e2, "invariance": None}, [(0.79, 0.20), (0.77, 0.01)]),
    ({"car": 1e4, "invariance": None}, [(0.76, 0.01), (0.76, 0.02)]),
    ({"car": 1e6, "invariance": "adapt"}, [(0.74, 0.0), (0.73, 0.0)]),
)


# ------------------------------------------------------------ choices


@pytest.mark.parametrize(
    ("budget", "name"),
    [
        (None, "λ = 0"),
        (math.inf, "λ = 0"),
        (0.2, "λ = 100"),
        (0.1, "λ = 1e4"),  # one seed of λ = 100 is above it
        (0.02, "λ = 1e4"),
        (0.0199, "adapt"),
        (0, "adapt"),
    ],
)
def test_the_most_accurate_point_within_the_budget(budget, name):
    assert choose_summary(MODELS, budget, None).name == name


def test_a_budget_that_nothing_keeps_to():
    with pytest.raises(InvalidInputError) as caught:
        choose_summary(MODELS[:3], 0.005, None)
    assert str(caught.value) == (
        "budget must be at least 0.02, the smallest certified bound reached (λ = 1e4), got 0.005. "
        "Raise it, or add an exact form to the grid: 'invariance': ['adapt', 'marginal']."
    )


def test_a_budget_of_zero_asks_for_exact_models_not_for_small_numbers():
    lucky = summaries(({"car": 1.0, "invariance": None}, [(0.9, 0.0)]))
    inexact = [replace(lucky[0], runs=(record(0.9, 0.0, exact=False),))]
    assert choose_summary(lucky, 0.0, None).exact
    with pytest.raises(InvalidInputError, match="budget must be at least 0,"):
        choose_summary(inexact, 0.0, None)


def test_an_infinite_bound_keeps_to_no_budget():
    endless = summaries(({"car": 1.0, "invariance": None}, [(0.9, math.inf)]))
    assert choose_summary(endless, None, None).name == "λ = 1"
    with pytest.raises(InvalidInputError, match="budget must be at least inf"):
        choose_summary(endless, 10.0, None)


def test_other_metrics_and_ties():
    assert choose_summary(MODELS, None, "F1").name == "adapt"
    with pytest.raises(InvalidInputError, match="metric must be one of AUROC, F1, got 'AUROK'"):
        choose_summary(MODELS, None, "AUROK")
    tied = summaries(
        ({"car": 0.0, "invariance": None}, [(0.8, 0.5)]),
        ({"car": 1.0, "invariance": None}, [(0.8, 0.1)]),
    )
    assert choose_summary(tied, None, None).name == "λ = 1"


def test_what_is_not_estimable_is_not_chosen():
    unknown = summaries(
        ({"car": 0.0, "invariance": None}, [(math.nan, 0.5)]),
        ({"car": 1.0, "invariance": None}, [(0.7, 0.5)]),
    )
    assert choose_summary(unknown, None, None).name == "λ = 1"
    with pytest.raises(InvalidInputError, match="must allow AUROC to be estimated"):
        choose_summary(unknown[:1], None, None)


def test_a_choice_says_why():
    choice = describe_choice(MODELS[2], 0.1, "AUROC")
    assert str(choice) == (
        "λ = 1e4: highest AUROC on the validation rows among models with a certified bound ≤ 0.1 "
        "(0.76, mean of 2 seed(s); certified bound 0.02)"
    )
    assert choice.to_dict()["point"] == {"car": 1e4, "invariance": None}


# ------------------------------------------------------------ records


def test_records_survive_json_with_what_json_cannot_say():
    odd = replace(record(math.nan, math.inf), notes=("n",), warm_path=(0.0, 1.0))
    back = Record.from_dict(odd.to_dict())
    assert math.isnan(back.measured.performance["AUROC"])
    assert back.certified.bound == math.inf
    assert (back.warm_path, back.notes, back.warm) == ((0.0, 1.0), ("n",), True)
    plain = record(0.5, 0.1)
    assert Record.from_dict(plain.to_dict()) == plain


COLUMNS = {"sex": ["f", "m", None], "age": [1.5, None, 3.0], "n": [1, 2, 3]}


def test_the_same_rows_have_one_fingerprint_in_any_library():
    y = [0, 1, 1]
    prints = {
        fingerprint(make(COLUMNS), y, None) for make in (pd.DataFrame, pl.DataFrame, pa.table)
    }
    categories = pd.DataFrame(COLUMNS).astype({"sex": "category"})
    prints.add(fingerprint(categories, np.array(y), [2.0, 2.0, 2.0]))
    chunks = [pa.table(COLUMNS).slice(i, 1) for i in range(3)]
    prints.add(fingerprint(pa.concat_tables(chunks), pd.Series(y), None))
    assert len(prints) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"sex": ["f", "f", None]},
        {"sex": ["m", "f", None]},
        {"sex": ["f", "m", "None"]},
        {"sex": ["f", "m", "m"]},
        {"age": [1.5, None, 3.0000001]},
        {"age": [1.5, 0.0, 3.0]},
        {"n": [1, 3, 2]},
        {"sex2": [1, 1, 1]},
    ],
)
def test_any_change_changes_the_fingerprint(change):
    before = fingerprint(pa.table(COLUMNS), [0, 1, 1], None)
    assert fingerprint(pa.table(COLUMNS | change), [0, 1, 1], None) != before


def test_outcomes_weights_and_row_order_count():
    table = pa.table(COLUMNS)
    prints = {
        fingerprint(table, [0, 1, 1], None),
        fingerprint(table, [0, 1, 0], None),
        fingerprint(table, ["0", "1", "1"], None),
        fingerprint(table, [0, 1, 1], [1, 2, 1]),
        fingerprint(table.take([0, 2, 1]), [0, 1, 1], None),
    }
    assert len(prints) == 5


# ------------------------------------------------------------ tables and figures


@pytest.fixture(scope="module")
def swept(people):
    model = fcorr.FCorrClassifier(sensitive=["sex", "race"], epochs=1, head=(4,))
    return fcorr.sweep(
        model,
        *people[0],
        grid=[
            {"car": [0, 1e2], "invariance": [None], "dropout": [0.1, 0.2]},
            {"invariance": ["marginal"], "dropout": [0.1]},
        ],
        eval_set=people[1],
        seeds=2,
        effort=1,
        progress=False,
        budget=0,
    )


def test_the_table_has_a_line_for_each_point(swept):
    header, rows = swept.table()
    assert [row[0] for row in rows] == [
        "λ = 0, dropout = 0.1",
        "λ = 0, dropout = 0.2",
        "λ = 100, dropout = 0.1",
        "λ = 100, dropout = 0.2",
        "marginal, dropout = 0.1",
    ]
    auroc = [r.measured.performance["AUROC"] for r in swept.records[:2]]
    cell = rows[0][header.index("AUROC")]
    assert cell == f"{np.mean(auroc):.3f} ± {np.std(auroc):.3f}"
    bounds = [r.certified.bound for r in swept.records[:2]]
    assert rows[0][header.index("certified bound")].startswith(f"{max(bounds):.2g}")
    assert rows[4][header.index("certified bound")] == "0"
    assert {"DPD, sex", "DPD, race", "DPD, sex × race"} <= set(header)
    assert str(swept).splitlines()[0].split() == " ".join(header).split()


def test_one_line_of_pandas_for_each_record(swept):
    frame = swept.to_pandas()
    assert len(frame) == 10
    assert frame.seed.tolist() == [0, 1] * 5
    assert frame["dropout"].tolist() == [0.1, 0.1, 0.2, 0.2] * 2 + [0.1, 0.1]
    assert frame["AUROC"].tolist() == [r.measured.performance["AUROC"] for r in swept.records]
    assert frame["exact"].tolist() == [False] * 8 + [True] * 2


def test_the_best_estimator_is_the_chosen_one(swept, people):
    assert swept.choose().name == "marginal, dropout = 0.1"  # by the sweep's own budget
    assert swept.choose(math.inf).performance == max(s.mean("AUROC") for s in swept.summaries())
    X = people[1][0]
    for seed in (None, 1):
        model = fcorr.FCorrClassifier(
            sensitive=["sex", "race"],
            epochs=1,
            head=(4,),
            invariance="marginal",
            random_state=seed or 0,
        ).fit(*people[0])
        found = swept.best_estimator(seed=seed)
        np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))
    with pytest.raises(InvalidInputError, match=r"seed must be one of the sweep's \[0, 1\], got 2"):
        swept.best_estimator(seed=2)


def test_figures_are_written(swept, tmp_path):
    files = swept.write_figures(tmp_path / "new" / "folder")
    assert [file.name for file in files] == [
        "controllability.svg",
        "frontier.svg",
        "certificate.svg",
    ]
    for file in files:
        ElementTree.fromstring(file.read_text())
    certificate = (tmp_path / "new" / "folder" / "certificate.svg").read_text()
    assert "dropout = 0.1)" in certificate
    assert "attack, one column at a time" in texts(certificate)


def texts(svg):
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def hints(svg):
    root = ElementTree.fromstring(svg)
    return [title.text for title in root.iter(f"{SVG}title")][1:]


def test_controllability_shows_performance_flips_and_groups():
    svg = draw_figures(MODELS, "λ = 100")["controllability.svg"]
    shown = texts(svg)
    for text in ("AUROC", "AvgIF", "largest change", "DPD", "adapt", "0", "chosen"):
        assert text in shown
    assert "AUROC at 0: 0.79" in hints(svg)  # the mean of the seeds
    assert "largest change at 100: 0.020" in hints(svg)  # the largest of them
    assert "AvgIF at adapt: 0" in hints(svg)
    assert "What λ does (validation rows, 2 seeds)" in shown


def test_the_frontier_shows_every_point_and_marks_the_chosen():
    svg = draw_figures(MODELS, "adapt")["frontier.svg"]
    assert len(hints(svg)) == 4
    assert {"CAR alone", "exact", "chosen", "adapt"} <= set(texts(svg))
    assert "chosen" not in texts(draw_figures(MODELS, None)["frontier.svg"])


def test_the_certificate_shows_all_four_numbers_and_what_is_vacuous():
    vacuous = replace(MODELS[0], runs=(record(0.8, 1.0, vacuous=True, car=0.0), MODELS[0].runs[1]))
    svg = draw_figures([vacuous, *MODELS[1:]], None)["certificate.svg"]
    found = hints(svg)
    for name, value in (
        ("certified for all inputs", "0.20"),
        ("certified for 99 % of people", "0.040"),
        ("found by attack", "0.10"),
        ("largest on the rows", "0.020"),
    ):
        assert name in texts(svg)
        assert f"{name} at 100: {value}" in found
    assert "certified for all inputs at 0: 1.0 (vacuous)" in found
    assert sum("vacuous" in hint for hint in found) == 1
    assert len(re.findall("m0 -8l-8 8", svg)) == 1


def test_figures_take_the_points_that_differ_in_the_dial_only():
    others = summaries(
        ({"car": 1.0, "invariance": None, "dropout": 0.1}, [(0.7, 0.5)]),
        ({"car": 0.0, "invariance": None, "dropout": 0.3}, [(0.8, 0.5)]),
        ({"car": 1.0, "invariance": None, "dropout": 0.3}, [(0.6, 0.2)]),
    )
    drawn = draw_figures(others, None)  # the most accurate has dropout 0.3
    assert [h for h in hints(drawn["controllability.svg"]) if h.startswith("AUROC")] == [
        "AUROC at 0: 0.80",
        "AUROC at 1: 0.60",
    ]
    assert len(hints(drawn["frontier.svg"])) == 3
