import json
import re
from pathlib import Path

import pytest

import fcorr
from fcorr.estimators import read_header
from fcorr.estimators.reading import rank_correlation


def read_facts(run):
    shown = run("inspect", "model.fcorr").stdout.split("features, the most")[0]
    facts = dict(line.split("  ", 1) for line in shown.splitlines())
    return {name: value.strip() for name, value in facts.items()}


def read_features(run):
    """Return the cells of each feature: kind, three numbers, and what training learnt."""
    shown = run("inspect", "model.fcorr").stdout.splitlines()
    start = shown.index("features, the most important first") + 2
    end = next(i for i, line in enumerate(shown) if line.startswith("importance: "))
    rows = [re.split(r"  +", line) for line in shown[start:end]]
    return {name: cells for name, *cells in rows}


def test_classifier(run, train):
    train("--sensitive", "sex", "--car", 50)
    facts = read_facts(run)
    model = fcorr.load("model.fcorr")
    assert facts["model"] == model.summary()
    assert facts["made by"] == f"fcorr {fcorr.__version__}, file format 1"
    assert facts["trained on"] == "200 rows, 1 epochs, seed 0"
    assert facts["target"] == "bought"
    assert facts["sensitive"] == "sex"
    assert facts["invariance"] == "exact: every sensitive value is embedded as the same number"
    assert facts["classes"] == "0, 1"
    assert facts["threshold"] == "0.5"
    header = json.loads(run("inspect", "model.fcorr", "--json").stdout)
    assert header == read_header("model.fcorr")
    assert facts["sha256"] == header["sha256"]


@pytest.mark.parametrize(
    ("options", "target", "expected"),
    [
        (["--sample-weight", "w"], "job", {"weight": "w", "classes": "clerk, nurse, pilot"}),
        (
            ["--objective", "poisson", "--exposure", "years"],
            "claims",
            {"objective": "poisson", "exposure": "years", "sensitive": "none"},
        ),
        (["--task", "regression"], "amount", {"objective": "mse", "sensitive": "none"}),
        (
            ["--sensitive", "sex", "--invariance", "none"],
            "bought",
            {"invariance": "not exact: model.certificate(X)"},
        ),
        (
            ["--sensitive", "sex", "--invariance", "marginal"],
            "bought",
            {"invariance": "averages over 2 combinations"},
        ),
    ],
)
def test_other_models(run, train, policies, options, target, expected):
    train(*options, data="policies.parquet", target=target)
    facts = read_facts(run)
    assert all(value in facts[name] for name, value in expected.items())
    assert ("threshold" in facts) == (target == "bought")
    assert ("classes" in facts) == (target in ("bought", "job"))


def test_features_the_most_important_first(run, train):
    train("--sensitive", "sex")
    features, model = read_features(run), fcorr.load("model.fcorr")
    names = [name.removesuffix(" (sensitive)") for name in features]
    importance = dict(zip(model.schema_.feature_names, model.importance_, strict=True))
    assert names == sorted(names, key=lambda name: -importance[name])
    assert features["sex (sensitive)"] == ["categorical", "0.000", "0.000", "f, m"]
    kind, *numbers = features["age"][:3]
    significance = model.feature_significance()["age"]
    assert (kind, numbers) == ("numeric", [f"{importance['age']:.3f}", f"{significance:.3f}"])
    expected = rank_correlation(model.importance_, model.significance_)
    line = f"Rank correlation of the two: {expected:.2f}."
    assert line in run("inspect", "model.fcorr").stdout.splitlines()


def test_every_kind_of_column(run, train):
    gaps = [""] * 5 + ["p", "q"] * 13
    rows = [
        f"{'ABC'[i % 3]},{'x' if i else 'y'},2020-01-{i + 1:02},{gaps[i]},{i % 2}"
        for i in range(30)
    ]
    Path("kinds.csv").write_text("grade,shop,day,gaps,y\n" + "\n".join(rows))
    run(
        *("train", "kinds.csv", "--target", "y", "-o", "model.fcorr", "--epochs", 1, "--quiet"),
        *("--kinds", "grade=C,B,A", "--set", "min_category_rows=2"),
    )
    assert {name: [cells[0], cells[3]] for name, cells in read_features(run).items()} == {
        "grade": ["ordinal", "C < B < A"],
        "shop": ["categorical", "x, other (1 rare)"],
        "gaps": ["categorical", "p, q, missing; 5 missing"],
        "day.day_of_week": ["datetime", "0 to 6, mean 2.967"],
        "day.days": ["datetime", "0 to 29, mean 14.5"],
    }
