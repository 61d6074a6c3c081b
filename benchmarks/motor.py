"""Claim frequencies with exposure: freMTPL2 by its published split, and beMTPL97 with sex.

Run with ``make bench-motor``; the folder with the data is named by FCORR_DATA. FCorr is a
single network, LightGBM the settings written below. Writes benchmarks/results/motor.jsonl and
docs/tables/motor_*.md; with the name of one of the data as argument, the other's records are kept.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from lightgbm import LGBMRegressor
from sklearn.metrics import mean_poisson_deviance

from fcorr import FCorrRegressor, __version__
from fcorr.metrics import flip_changes, flip_scores, normalized_gini_score
from paper.datasets import load_bemtpl97, load_fremtpl2

HERE = Path(__file__).parent
SEEDS = {"freMTPL2": range(5), "beMTPL97": range(3)}
TREES: dict[str, dict[str, Any]] = {
    "freMTPL2": {"n_estimators": 300, "learning_rate": 0.05, "min_child_samples": 1_000},
    "beMTPL97": {"n_estimators": 300, "learning_rate": 0.02, "num_leaves": 15},
}
TREES["beMTPL97"]["min_child_samples"] = 500
PUBLISHED = {  # on freMTPL2's test policies, in hundredths; the table's other rows are ours
    "GLM, published": 24.102,
    "Credibility Transformer (ensemble), published": 23.711,
}
# A single network with one number for each feature, whose fits take seconds: default packs are in
# benchmarks/tables.py.
NETWORK = {"main_effects": False, "beta2": 0.95}
FCORR = {
    "freMTPL2": {"FCorr": {}},
    "beMTPL97": {
        "FCorr": {"sensitive": "sex", "invariance": None, "car": None},
        "FCorr, exactly invariant to sex (adapt)": {"sensitive": "sex", "invariance": "adapt"},
        "FCorr, exactly invariant to sex (marginal)": {
            "sensitive": "sex",
            "invariance": "marginal",
        },
        "FCorr, sex left out": {},
    },
}
Predict = Callable[[Any], np.ndarray]


def fit_fcorr(train: Any, seed: int, options: dict[str, Any]) -> Predict:
    settings = {"objective": "poisson", "exposure": "years", "advanced": NETWORK}
    model = FCorrRegressor(**settings, random_state=seed, **options)
    return model.fit(*train).predict


def fit_trees(train: Any, data: str) -> Predict:
    X, y = train
    features = [name for name in X.columns if name != "years"]
    trees = LGBMRegressor(objective="poisson", random_state=0, verbose=-1, **TREES[data])
    trees.fit(X[features], y / X["years"], sample_weight=X["years"])
    return lambda X: X["years"].to_numpy() * trees.predict(X[features])


def measure(data: str) -> Iterator[dict[str, Any]]:
    dataset = {"freMTPL2": load_fremtpl2, "beMTPL97": load_bemtpl97}[data]()
    train, test = (
        (part.X.assign(years=part.exposure), part.y) for part in (dataset.train, dataset.test)
    )
    mean = train[1].sum() / train[0]["years"].sum()
    yield record(data, "one frequency for all", None, lambda X: mean * X["years"].to_numpy(), test)
    for name, options in FCORR[data].items():
        for seed in SEEDS[data]:
            rows = without_sex(train) if "left out" in name else train
            start = time.perf_counter()
            predict = fit_fcorr(rows, seed, options)
            yield record(data, name, seed, predict, test, time.perf_counter() - start)
    variants = {"LightGBM": train}
    if data == "beMTPL97":
        variants["LightGBM, sex left out"] = without_sex(train)
    for name, rows in variants.items():
        start = time.perf_counter()
        predict = fit_trees(rows, data)
        yield record(data, name, 0, predict, test, time.perf_counter() - start)


def without_sex(part: Any) -> Any:
    return part[0].drop(columns="sex"), part[1]


def record(
    data: str, name: str, seed: int | None, predict: Predict, test: Any, seconds: float = 0.0
) -> dict[str, Any]:
    X, y = test
    expected, years = predict(X), X["years"].to_numpy()
    found: dict[str, Any] = {
        "data": data,
        "model": name,
        "seed": seed,
        "fcorr_version": __version__,
        "test_deviance": 100 * mean_poisson_deviance(y, expected),
        "gini": normalized_gini_score(y / years, expected / years, sample_weight=years),
        "fit_seconds": seconds,
    }
    if data == "beMTPL97":
        found["largest_change"] = flip_changes(flip_scores(predict, X, "sex"))["max"]
    return found


def write_table(records: list[dict[str, Any]], data: str, path: Path) -> None:
    by_sex = data == "beMTPL97"
    heads = ["", "test Poisson deviance, ·10⁻²", "normalised Gini"]
    heads += ["largest change by sex"] if by_sex else []
    lines = [[*heads, "fit, s"], ["---", *["---:"] * len(heads)]]
    for name in dict.fromkeys(r["model"] for r in records if r["data"] == data):
        found = [r for r in records if r["data"] == data and r["model"] == name]
        row = [name, spread(found, "test_deviance", 3), spread(found, "gini", 4)]
        row += [f"{max(r['largest_change'] for r in found):.1e}"] if by_sex else []
        lines.append([*row, f"{np.mean([r['fit_seconds'] for r in found]):.0f}"])
    if not by_sex:
        lines += [[name, f"{value:.3f}", "", ""] for name, value in PUBLISHED.items()]
    path.write_text("".join(f"| {' | '.join(line)} |\n" for line in lines))


def spread(found: list[dict[str, Any]], field: str, digits: int) -> str:
    values = [r[field] for r in found]
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values):.{digits}f}"


if __name__ == "__main__":
    results = HERE / "results" / "motor.jsonl"
    wanted = sys.argv[1:] or list(SEEDS)
    records = []
    if len(wanted) < len(SEEDS):
        kept = map(json.loads, results.read_text().splitlines())
        records = [found for found in kept if found["data"] not in wanted]
    for data in wanted:
        for found in measure(data):
            records.append(found)
            print(json.dumps(found), flush=True)
    results.write_text("".join(json.dumps(found) + "\n" for found in records))
    for data in SEEDS:
        write_table(records, data, HERE.parent / "docs" / "tables" / f"motor_{data.lower()}.md")
