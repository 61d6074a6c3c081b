"""Adult (Census Income) with default arguments: AUROC and the change under flips, several seeds.

Run with ``make bench-adult``; the data is what ``fcorr.data.fetch_adult()`` downloads, or lies in
the folder that FCORR_DATA names. Writes benchmarks/results/adult.jsonl and docs/tables/adult.md.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from fcorr import FCorrClassifier, __version__
from fcorr.data import Dataset, load_adult
from fcorr.metrics import (
    accuracy_score,
    average_individual_fairness,
    flip_changes,
    flip_scores,
    roc_auc_score,
)

HERE = Path(__file__).parent
VARIANTS = {
    "defaults, no sensitive column": {},
    "race, without CAR": {"sensitive": "race", "car": None},
    "race, CAR (default)": {"sensitive": "race"},
    "race, CAR in the paper's form and weight, with our residual": {
        "sensitive": "race",
        "car": "paper",
        "car_form": "paper",
    },
}
SEEDS = range(5)


def run(adult: Dataset, variant: str, seed: int) -> dict:
    train, test = adult.train, adult.test
    start = time.perf_counter()
    model = FCorrClassifier(**VARIANTS[variant], random_state=seed).fit(train.X, train.y)
    seconds = time.perf_counter() - start
    flips = flip_scores(model.predict_proba, test.X, "race")
    return {
        "variant": variant,
        "seed": seed,
        "fcorr_version": __version__,
        "test_auroc": float(roc_auc_score(test.y, flips.factual)),
        "test_accuracy": float(accuracy_score(test.y, flips.factual >= 0.5)),
        "avgif": average_individual_fairness(flips),
        "largest_change": flip_changes(flips)["max"],
        "parameters": model.model_.n_parameters,
        "fit_seconds": seconds,
    }


def write_table(records: list[dict], path: Path) -> None:
    lines = [
        "| | test AUROC | accuracy | AvgIF | largest change | fit, s |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for variant in VARIANTS:
        of_variant = [r for r in records if r["variant"] == variant]
        auroc = [r["test_auroc"] for r in of_variant]
        mean = {k: np.mean([r[k] for r in of_variant]) for k in ("test_accuracy", "fit_seconds")}
        largest = max(r["largest_change"] for r in of_variant)
        lines.append(
            f"| {variant} | {np.mean(auroc):.4f} ± {np.std(auroc):.4f} | "
            f"{mean['test_accuracy']:.4f} | {np.mean([r['avgif'] for r in of_variant]):.1e} | "
            f"{largest:.1e} | {mean['fit_seconds']:.0f} |"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    try:
        adult = load_adult()
    except FileNotFoundError as error:
        sys.exit(f"error: {error}")
    records = []
    results = HERE / "results" / "adult.jsonl"
    results.parent.mkdir(exist_ok=True)
    for variant in VARIANTS:
        for seed in SEEDS:
            records.append(run(adult, variant, seed))
            print(json.dumps(records[-1]), flush=True)
    results.write_text("".join(json.dumps(record) + "\n" for record in records))
    write_table(records, HERE.parent / "docs" / "tables" / "adult.md")


if __name__ == "__main__":
    main()
