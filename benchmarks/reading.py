"""Is what is read what the model does? Importance beside permutation, and planted noise.

Run with ``make bench-reading``; FCORR_DATA names the folder with the data. It goes on where it was
interrupted (benchmarks/results/reading.jsonl), and writes docs/tables/reading.md.

**Order.** Rank correlations over features: of importance on test rows (its ``total``) and of the
paper's significance with permutation importance, which is how much the loss of test rows grows when
a column is permuted, mean of three permutations; and of each with itself between seeds. Models
learn from all of Adult's training rows, and from 200,000 of freMTPL2's, drawn by the seed; of test
rows all count, since of policies few have a claim.

**Noise.** To 3,000 rows of Adult, drawn by the seed, two columns are added that say nothing: normal
numbers, and twenty categories. Where do they come, of sixteen features? A feature's place is one
more than the number of those above it; those of the same importance, of which some have exactly 0,
share the mean of their places. How importance takes chance off was settled on other seeds, 100 to
102.
"""

import argparse
import functools
import itertools
import json
from typing import Any

import numpy as np
from scipy.stats import rankdata, spearmanr

from benchmarks.tables import (
    BINARY,
    COUNTS,
    HERE,
    YEARS,
    Table,
    loss_of,
    published,
    read,
    to_markdown,
)
from fcorr import FCorrClassifier, FCorrRegressor
from paper.datasets import load_adult, load_fremtpl2

TABLES = {
    "adult": functools.partial(published, load_adult, BINARY, "race"),
    "freMTPL2": functools.partial(published, load_fremtpl2, COUNTS, None),
}
N_TRAIN, N_PERMUTED = 200_000, 3
N_NOISE_ROWS = 3_000
READINGS = {"total": "importance", "significance": "significance"}


def fit(table: Table, seed: int) -> Any:
    options: dict[str, Any] = {"sensitive": table.sensitive, "random_state": seed}
    rows = np.random.default_rng(seed).permutation(len(table.y))[:N_TRAIN]
    X, y = table.X.iloc[rows], table.y[rows]
    if table.objective == BINARY:
        return FCorrClassifier(**options).fit(X, y)
    return FCorrRegressor(objective=COUNTS, exposure=YEARS, **options).fit(X, y)


def predict(model: Any, X: Any) -> np.ndarray:
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)


def permutation_importance(model: Any, table: Table, seed: int) -> dict[str, float]:
    """Return how much the loss of test rows grows when a column is permuted."""
    rng = np.random.default_rng(seed)
    X, y = table.X_test.reset_index(drop=True), table.y_test
    least = loss_of(table.objective, y, predict(model, X))
    found = {}
    for name in X.columns.drop([YEARS], errors="ignore"):
        losses = []
        for _ in range(N_PERMUTED):
            permuted = X.assign(**{name: X[name].to_numpy()[rng.permutation(len(X))]})
            losses.append(loss_of(table.objective, y, predict(model, permuted)))
        found[name] = float(np.mean(losses) - least)
    return found


def read_model(model: Any, X: Any) -> dict[str, dict[str, float]]:
    importance = model.importance(X)
    total = dict(zip(importance.names, importance.total.tolist(), strict=True))
    return {"total": total, "significance": model.feature_significance()}


def measure_order(name: str, seed: int) -> dict[str, Any]:
    table = TABLES[name](seed)
    model = fit(table, seed)
    readings = read_model(model, table.X_test)
    return {
        "question": "order",
        "table": name,
        "seed": seed,
        "permutation": permutation_importance(model, table, seed),
        **readings,
    }


def measure_noise(seed: int) -> dict[str, Any]:
    table, rng = TABLES["adult"](seed), np.random.default_rng(seed)
    rows = rng.permutation(len(table.y))[:N_NOISE_ROWS]
    noise = {
        "noise number": rng.normal(size=len(rows)),
        "noise category": rng.choice([f"c{k}" for k in range(20)], size=len(rows)),
    }
    X = table.X.iloc[rows].reset_index(drop=True).assign(**noise)
    model = FCorrClassifier(sensitive=table.sensitive, random_state=seed).fit(X, table.y[rows])
    readings = read_model(model, X)
    places = {}
    for reading, values in readings.items():
        places[reading] = {
            name: float(rankdata([-value for value in values.values()])[list(values).index(name)])
            for name in noise
        }
    return {"question": "noise", "seed": seed, "places": places, "n_features": len(X.columns)}


def correlate(one: dict[str, float], other: dict[str, float]) -> float:
    names = sorted(set(one) & set(other))
    return float(spearmanr([one[n] for n in names], [other[n] for n in names]).statistic)


def write_table(records: list[dict[str, Any]]) -> str:
    rows = []
    for name in TABLES:
        some = [r for r in records if r["question"] == "order" and r["table"] == name]
        if not some:
            continue
        for reading, title in [*READINGS.items(), ("permutation", "permutation")]:
            cells = [as_range([correlate(r[reading], r["permutation"]) for r in some])]
            pairs = itertools.combinations(some, 2)
            cells.append(as_range([correlate(a[reading], b[reading]) for a, b in pairs]))
            rows.append([f"{name}, {title}", str(len(some)), *cells])
    head = ["rank correlation", "seeds", "with permutation", "between seeds"]
    blocks = [to_markdown(head, rows)]
    noise = [r for r in records if r["question"] == "noise"]
    if noise:
        rows = []
        for reading, title in READINGS.items():
            for column in ("noise number", "noise category"):
                places = [r["places"][reading][column] for r in noise]
                last_third = [
                    p > 2 * r["n_features"] / 3 for p, r in zip(places, noise, strict=True)
                ]
                count = f"{sum(last_third)} of {len(noise)}"
                rows.append([f"{title}, {column}", f"{min(places):g}–{max(places):g}", count])
        head = ["noise among 16 features", "places", "seeds in the last third"]
        blocks.append(to_markdown(head, rows))
    return "\n".join(blocks)


def as_range(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}" if values else "–"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--noise-seeds", type=int, default=20)
    options = parser.parse_args(arguments)
    results = HERE / "results" / "reading.jsonl"
    records = read(results)
    done = {(r["question"], r.get("table"), r["seed"]) for r in records}
    work = [("noise", None, s) for s in range(options.noise_seeds)]
    work += [("order", name, s) for name in options.tables for s in range(options.seeds)]
    for question, name, seed in work:
        if (question, name, seed) in done:
            continue
        record = measure_noise(seed) if question == "noise" else measure_order(str(name), seed)
        records.append(record)
        with results.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(question, name, seed, record.get("places", ""), flush=True)
    document = HERE.parent / "docs/tables/reading.md"
    document.write_text(write_table(records))
    print(document.read_text())


if __name__ == "__main__":
    main()
