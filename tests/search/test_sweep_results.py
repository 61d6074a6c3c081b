"""What a sweep says: choices, tables and figures, most from records made up for the purpose."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fcorr
from fcorr._core import InvalidInputError
from fcorr.data.encode import hash_rows
from fcorr.search.sweep import Summary, Sweep, name_point


def record(auroc, search, exact, **arguments):
    return {
        "arguments": {"car": 1e6, "invariance": None, **arguments},
        "measured": {
            "task": "two classes",
            "performance": {"AUROC": auroc, "F1": None if auroc is None else 1 - auroc},
            "flip": {
                "AvgIF": search / 20,
                "largest change": search / 10,
                "decisions flipped": search / 4,
            },
            "groups": {"sex": {"DPD": 0.2}, "race": {"DPD": 0.3, "EqOpp": 0.1}},
            "exact": exact,
            "search": search,
            "population": search / 5,
        },
    }


def summaries(*points, exact=lambda search: search == 0):
    """Make summaries of points with AUROC and what a search found for each seed."""
    base, every = {"car": 1e6, "invariance": None}, [point for point, _ in points]
    return [
        Summary(
            name_point(point, every, base),
            point,
            tuple(record(auroc, found, exact(found), **point) for auroc, found in of_seeds),
        )
        for point, of_seeds in points
    ]


def choose(points, budget=None, metric=None):
    return Sweep(points, None, None).choose(budget, metric=metric)


MODELS = summaries(
    ({"car": 0.0, "invariance": None}, [(0.80, 1.0), (0.78, 0.9)]),
    ({"car": 1e2, "invariance": None}, [(0.79, 0.20), (0.77, 0.01)]),
    ({"car": 1e4, "invariance": None}, [(0.76, 0.01), (0.76, 0.02)]),
    ({"car": 1e6, "invariance": "adapt"}, [(0.74, 0.0), (0.73, 0.0)]),
)


# ------------------------------------------------------------ choices


def test_a_change_on_the_rows_counts_where_the_search_found_a_smaller_one():
    (summary,) = summaries(({"car": 1.0, "invariance": None}, [(0.9, 0.1)]))
    assert (summary.largest("largest change"), summary.largest_found) == (0.01, 0.1)
    summary.runs[0]["measured"]["flip"]["largest change"] = 0.3
    assert summary.largest_found == 0.3
    with pytest.raises(InvalidInputError, match=r"budget must be at least 0\.3, "):
        choose([summary], 0.2)


def test_other_metrics_and_ties():
    assert choose(MODELS, math.inf, "F1").name == "adapt"
    with pytest.raises(InvalidInputError, match="metric must be one of AUROC, F1, got 'AUROK'"):
        choose(MODELS, None, "AUROK")
    tied = summaries(
        ({"car": 0.0, "invariance": None}, [(0.8, 0.5)]),
        ({"car": 1.0, "invariance": None}, [(0.8, 0.1)]),
    )
    assert choose(tied, math.inf).name == "λ = 1"
    unknown = summaries(({"car": 0.0, "invariance": None}, [(None, 0.5)]))
    assert choose(unknown + tied, math.inf).name == "λ = 1"
    with pytest.raises(InvalidInputError, match="must allow AUROC to be estimated"):
        choose(unknown, math.inf)


UP_TO = "largest change found {}, up to {} % of decisions flipped"
CHOSEN = {
    math.inf: ("λ = 0", 0.79, UP_TO.format(1, 25)),
    0.2: ("λ = 100", 0.78, UP_TO.format(0.2, 5)),
    0.1: ("λ = 1e4", 0.76, UP_TO.format(0.02, 0.5)),  # one seed of λ = 100 is above it
    0.02: ("λ = 1e4", 0.76, UP_TO.format(0.02, 0.5)),
    0.0199: ("adapt", 0.735, "exact"),
    0: ("adapt", 0.735, "exact"),
    None: ("adapt", 0.735, "exact"),
}


@pytest.mark.parametrize("budget", CHOSEN)
def test_the_most_accurate_point_within_the_budget(budget):
    name, auroc, found = CHOSEN[budget]
    among = f" among models of which no change above {budget} was found" if budget else ""
    among = {math.inf: "", 0: " among exact models"}.get(budget or 0, among)
    chosen = choose(MODELS, budget)
    assert chosen.name == name
    assert chosen.reason == (
        f"{name}: highest AUROC on the validation rows{among} ({auroc}, mean of 2 seed(s); {found})"
    )


NONE_FOUND = summaries(({"car": 1.0, "invariance": None}, [(0.9, 0.0)]), exact=lambda found: False)
AT_LEAST = (
    "budget must be at least {}, the smallest change found ({}), got {}; 0 stands for exact models "
    "only. Raise it, or add an exact form to the grid: 'invariance': ['adapt', 'marginal']."
)
REFUSED = [
    (MODELS[:3], 0.005, AT_LEAST.format(0.02, "λ = 1e4", 0.005)),
    (NONE_FOUND, 0, AT_LEAST.format(0, "λ = 1", 0)),  # it asks for exact models, not small numbers
    (
        *(MODELS[:3], None),
        "The chosen model must be exact by default, and none is: the most accurate is λ = 0 "
        "(largest change found 1, up to 25 % of decisions flipped), the nearest to it λ = 1e4 "
        "(largest change found 0.02, up to 0.5 % of decisions flipped). Add an exact form to the "
        "grid: 'invariance': ['adapt', 'marginal']; or give a budget, the largest change that you "
        "accept; or choose among all with budget=math.inf.",
    ),
]


@pytest.mark.parametrize(("points", "budget", "message"), REFUSED)
def test_a_budget_that_nothing_keeps_to(points, budget, message):
    with pytest.raises(InvalidInputError) as caught:
        choose(points, budget)
    assert str(caught.value) == message


def test_points_are_summed_up_over_their_seeds():
    summary = MODELS[1]
    assert not summary.exact
    assert [summary.largest(n) for n in ("bound for 99 %", "found by search")] == [0.04, 0.2]
    assert summary.mean("AUROC") == pytest.approx(0.78)
    assert summary.values("DPD, sex") == [0.2, 0.2]
    (unknown,) = summaries(({"car": "paper", "invariance": None}, [(0.8, 0.1), (None, 0.1)]))
    assert math.isnan(unknown.mean("AUROC"))
    unknown.runs[1]["measured"]["population"] = None
    assert math.isnan(unknown.largest("bound for 99 %"))


# ------------------------------------------------------------ hashes of rows

COLUMNS = {"sex": ["f", "m", None], "age": [1.5, None, 3.0], "n": [1, 2, 3]}


def test_the_same_rows_have_one_hash_in_any_library():
    y = [0, 1, 1]
    prints = {hash_rows(make(COLUMNS), y, None) for make in (pd.DataFrame, pl.DataFrame, pa.table)}
    categories = pd.DataFrame(COLUMNS).astype({"sex": "category"})
    prints.add(hash_rows(categories, np.array(y), [2.0, 2.0, 2.0]))
    chunks = [pa.table(COLUMNS).slice(i, 1) for i in range(3)]
    prints.add(hash_rows(pa.concat_tables(chunks), pd.Series(y), None))
    assert len(prints) == 1


@pytest.mark.parametrize(
    ("change", "y", "weight"),
    [
        ({"sex": ["f", "f", None]}, [0, 1, 1], None),
        ({"sex": ["f", "m", "None"]}, [0, 1, 1], None),
        ({"age": [1.5, None, 3.0000001]}, [0, 1, 1], None),
        ({"age": [1.5, 0.0, 3.0]}, [0, 1, 1], None),
        ({"n": [1, 3, 2]}, [0, 1, 1], None),
        ({"sex2": [1, 1, 1]}, [0, 1, 1], None),
        ({}, [0, 1, 0], None),
        ({}, ["0", "1", "1"], None),
        ({}, [0, 1, 1], [1, 2, 1]),
    ],
)
def test_any_change_changes_the_hash(change, y, weight):
    before = hash_rows(pa.table(COLUMNS), [0, 1, 1], None)
    assert hash_rows(pa.table(COLUMNS | change), y, weight) != before


# ------------------------------------------------------------ tables and figures


MODEL = {"sensitive": ["sex", "race"], "epochs": 1, "head": (4,)}


@pytest.fixture(scope="module")
def swept(people):
    return fcorr.sweep(
        fcorr.FCorrClassifier(n_members=1, **MODEL),
        *people[0],
        grid=[
            {"car": [0, 1e2], "invariance": [None], "dropout": [0.1]},
            {"invariance": ["marginal"], "dropout": [0.2]},
        ],
        eval_set=people[1],
        seeds=2,
        progress=False,
        budget=0,
    )


def test_the_table_has_a_line_for_each_point(swept):
    header, rows = swept.table()
    names = ["λ = 0, dropout = 0.1", "λ = 100, dropout = 0.1", "marginal, dropout = 0.2"]
    assert [row[0] for row in rows] == names
    auroc = [r["measured"]["performance"]["AUROC"] for r in swept.records[:2]]
    cell = rows[0][header.index("AUROC")]
    assert cell == f"{np.mean(auroc):.3f} ± {np.std(auroc):.3f}"
    found = [r["measured"]["search"] for r in swept.records[:2]]
    assert rows[0][header.index("found by search")] == f"{max(found):.2g}"
    assert rows[2][header.index("found by search")] == "0"
    assert {"DPD, sex", "DPD, race", "DPD, sex × race"} <= set(header)
    assert str(swept).splitlines()[0].split() == " ".join(header).split()
    assert swept._repr_html_().count("<tr>") == 4


def test_the_best_estimator_is_the_chosen_one(swept, people):
    assert swept.choose().name == "marginal, dropout = 0.2"  # by the sweep's own budget
    best = max(swept.summaries, key=lambda summary: summary.mean("AUROC"))
    assert swept.choose(math.inf).name == best.name
    X, chosen = people[1][0], {**MODEL, "invariance": "marginal", "dropout": 0.2}
    model = fcorr.FCorrClassifier(n_members=1, **chosen)
    model.set_params(random_state=0).fit(*people[0])
    found = swept.best_estimator()
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))


def test_models_that_are_not_exact_are_fitted_on_request_only(swept):
    found = replace(swept, summaries=swept.summaries[:2], budget=None)
    for choose in (found.choose, found.best_estimator):
        with pytest.raises(InvalidInputError, match="must be exact by default, and none is"):
            choose()
    assert not found.best_estimator(budget=1.0).exact_  # a budget says what is accepted
    with pytest.raises(InvalidInputError, match="budget must be at least"):
        found.best_estimator(budget=0)


def test_arguments_of_advanced_are_named_like_others(people, classifier):
    found = fcorr.sweep(
        classifier(epochs=1),
        *people[0],
        grid={"advanced": [{"n_layers": 1}, {"n_layers": 2, "residual": False}]},
        eval_set=people[1],
        seeds=1,
        progress=False,
    )
    assert [summary.name for summary in found.summaries] == [
        "adapt, n_layers = 1",
        "adapt, n_layers = 2, residual = False",
    ]
