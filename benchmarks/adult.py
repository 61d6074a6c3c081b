"""Adult (Census Income) with single networks: accuracy, flips and groups, several seeds.

For race, sex, both and age as sensitive columns: the model with the columns at work, with them
held constant, and exactly invariant in two ways; for race also CAR alone, in our form and, without
the residual, in the paper's; numbers have splines throughout. The paper's model is fitted by
``python -m paper adult``. Run with ``make bench-adult``; the data is what
``paper.datasets.fetch_adult()`` downloads, or lies in the folder that FCORR_DATA names. Writes
benchmarks/results/adult.jsonl and the tables docs/tables/adult.md and guarantee.md.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, roc_auc_score

from fcorr import FCorrClassifier, __version__
from fcorr.metrics import (
    average_individual_fairness,
    decisions_flipped,
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
    flip_changes,
    flip_scores,
)
from paper.augmentation import AugmentedClassifier
from paper.datasets import Dataset, load_adult
from paper.gaps import auprc_gap, auroc_gap, f1_gap

HERE = Path(__file__).parent
SEEDS = range(5)
SENSITIVE = {"race": ["race"], "sex": ["sex"], "race and sex": ["race", "sex"], "age": ["age"]}
AT_WORK, REMOVED, ADAPT, MARGINAL = "at work", "held constant", "exact: adapt", "exact: marginal"
CAR_ALONE, PAPERS = "CAR alone", "CAR alone, no residual, the paper's form and weight"
# A single network with one number for each feature, whose fits take seconds: default packs are in
# benchmarks/tables.py.
NETWORK = {"main_effects": False, "beta2": 0.95}
FORMS: dict[str, dict[str, Any]] = {
    AT_WORK: {"invariance": None, "car": None},
    REMOVED: {},
    ADAPT: {"invariance": "adapt"},
    MARGINAL: {"invariance": "marginal"},
}
FOR_RACE_ALONE: dict[str, dict[str, Any]] = {
    CAR_ALONE: {"invariance": None},
    PAPERS: {
        "invariance": None,
        "car": "paper",
        "advanced": {"residual": False} | NETWORK,
    },
}
AGE_GROUPS = [-np.inf, 25, 35, 45, 55, np.inf]
GROUP_GAPS = {
    "dpd": demographic_parity_difference,
    "eqodd": equalized_odds_difference,
    "eqopp": equal_opportunity_difference,
}
FLIP_METRICS = (
    *("avgif", "f1_gap", "auroc_gap", "auprc_gap"),
    *("largest_change", "decisions_flipped"),
)


def run(adult: Dataset, sensitive: str, form: str, seed: int) -> dict:
    columns = SENSITIVE[sensitive]
    options = {"advanced": NETWORK} | (FORMS | FOR_RACE_ALONE)[form]
    if form != REMOVED:
        options = options | {"sensitive": columns}

    def view(X: pd.DataFrame) -> pd.DataFrame:
        return X.assign(**{c: X[c].iloc[0] for c in columns}) if form == REMOVED else X

    train, test = adult.train, adult.test
    start = time.perf_counter()
    cls = AugmentedClassifier if form == PAPERS else FCorrClassifier
    model = cls(**options, random_state=seed).fit(view(train.X), train.y)
    seconds = time.perf_counter() - start
    flips = flip_scores(lambda X: model.predict_proba(view(X)), test.X, columns)
    scores = flips.factual
    decisions = (scores >= 0.5).astype(int)
    return {
        "sensitive": sensitive,
        "form": form,
        "seed": seed,
        "fcorr_version": __version__,
        "test_auroc": float(roc_auc_score(test.y, scores)),
        "test_accuracy": float(accuracy_score(test.y, decisions)),
        "avgif": average_individual_fairness(flips),
        "f1_gap": f1_gap(test.y, flips),
        "auroc_gap": auroc_gap(test.y, flips),
        "auprc_gap": auprc_gap(test.y, flips),
        "largest_change": flip_changes(flips)["max"],
        "decisions_flipped": decisions_flipped(flips),
        **{
            name: float(gap(test.y, decisions, sensitive_features=groups(test.X, columns)))
            for name, gap in GROUP_GAPS.items()
        },
        "certified_exact": bool(form != REMOVED and model.exact_ and model.certificate().exact),
        "parameters": model.model_.n_parameters,
        "fit_seconds": seconds,
    }


def groups(X: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Sensitive columns as they are, ages in five groups; several are crossed."""
    found = X[columns]
    if "age" in columns:
        found = found.assign(age=pd.cut(X["age"], AGE_GROUPS, right=False).astype(str))
    return found


def write_tables(records: list[dict], folder: Path) -> None:
    race = [r for r in records if r["sensitive"] == "race"]
    names = {
        AT_WORK: "race at work",
        REMOVED: "race held constant",
        ADAPT: "exactly invariant to race (adapt)",
        MARGINAL: "exactly invariant to race, marginal",
        CAR_ALONE: "CAR alone",
        PAPERS: PAPERS,
    }
    head = ["", "test AUROC", "accuracy", "AvgIF", "largest change", "fit, s"]
    rows = []
    for form, name in names.items():
        some = [r for r in race if r["form"] == form]
        performance = [spread(some, "test_auroc"), f"{mean(some, 'test_accuracy'):.4f}"]
        flips = [power(some, "avgif", np.mean), power(some, "largest_change", max)]
        rows.append([name, *performance, *flips, f"{mean(some, 'fit_seconds'):.0f}"])
    write(head, rows, folder / "adult.md")
    head = ["sensitive", "model", "test AUROC", "its price", "every flip metric"]
    rows = []
    for sensitive in SENSITIVE:
        for form in FORMS:
            some = [r for r in records if (r["sensitive"], r["form"]) == (sensitive, form)]
            largest = max(r[metric] for r in some for metric in FLIP_METRICS)
            gaps = [f"{mean(some, gap):.3f}" for gap in GROUP_GAPS]
            rows.append(
                [
                    sensitive,
                    form,
                    spread(some, "test_auroc"),
                    price(some, [r for r in records if r["sensitive"] == sensitive]),
                    "0.0" if largest == 0 else f"up to {largest:.2g}",
                    *gaps,
                ]
            )
    write([*head, "DPD", "EqOdd", "EqOpp"], rows, folder / "guarantee.md")


def mean(records: list[dict], name: str) -> float:
    return float(np.mean([r[name] for r in records]))


def spread(records: list[dict], name: str) -> str:
    return f"{mean(records, name):.4f} ± {np.std([r[name] for r in records]):.4f}"


def price(records: list[dict], beside: list[dict]) -> str:
    """Say what AUROC costs against the model with the columns at work, seed by seed."""
    at_work = {r["seed"]: r["test_auroc"] for r in beside if r["form"] == AT_WORK}
    losses = [at_work[r["seed"]] - r["test_auroc"] for r in records]
    return "–" if not any(losses) else f"{np.mean(losses):+.4f} ± {np.std(losses):.4f}"


def power(records: list[dict], name: str, summary: Any) -> str:
    value = float(summary([r[name] for r in records]))
    return "0.0" if value == 0 else f"{value:.1e}"


def write(head: list[str], rows: list[list[str]], path: Path) -> None:
    numbers = len(head) - (2 if head[0] else 1)
    lines = [head, ["---"] * (len(head) - numbers) + ["---:"] * numbers, *rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"| {' | '.join(line)} |\n" for line in lines))


def main() -> None:
    results = HERE / "results" / "adult.jsonl"
    if "--tables" in sys.argv:  # from the results at hand, without fitting anything
        records = [json.loads(line) for line in results.read_text().splitlines()]
        write_tables(records, HERE.parent / "docs" / "tables")
        return
    try:
        adult = load_adult()
    except FileNotFoundError as error:
        sys.exit(f"error: {error}")
    runs = [(sensitive, form) for sensitive in SENSITIVE for form in FORMS]
    runs += [("race", form) for form in FOR_RACE_ALONE]
    records = []
    for sensitive, form in runs:
        for seed in SEEDS:
            records.append(run(adult, sensitive, form, seed))
            print(json.dumps(records[-1]), flush=True)
    results.parent.mkdir(exist_ok=True)
    results.write_text("".join(json.dumps(record) + "\n" for record in records))
    write_tables(records, HERE.parent / "docs" / "tables")


if __name__ == "__main__":
    main()
