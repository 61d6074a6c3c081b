"""Adult (Census Income) with default arguments: AUROC and the change under flips, several seeds.

Run with ``make bench-adult``; the folder with ``adult/adult.data.gz`` and ``adult/adult.test.gz``
(the original files, gzipped) is named by FCORR_DATA. Writes benchmarks/results/adult.jsonl and
docs/tables/adult.md.
"""

import gzip
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from fcorr import FCorrClassifier, __version__
from fcorr.metrics import (
    accuracy_score,
    average_individual_fairness,
    flip_changes,
    flip_scores,
    roc_auc_score,
)

HERE = Path(__file__).parent
COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week"),
    *("native_country", "income"),
]
VARIANTS = {
    "defaults, no sensitive column": {},
    "race, without CAR": {"sensitive": "race", "car": None},
    "race, CAR (default)": {"sensitive": "race"},
    "race, CAR in the paper's form and weight": {
        "sensitive": "race",
        "car": "paper",
        "car_form": "paper",
    },
}
SEEDS = range(5)


def read_adult(path: Path, skip: int) -> tuple[pa.Table, np.ndarray]:
    with gzip.open(path) as file:
        text = file.read().replace(b", ", b",")
    table = pa_csv.read_csv(
        pa.BufferReader(text),
        read_options=pa_csv.ReadOptions(column_names=COLUMNS, skip_rows=skip),
        convert_options=pa_csv.ConvertOptions(null_values=["?"], strings_can_be_null=True),
    )
    y = np.array([label.startswith(">50K") for label in table["income"].to_pylist()]).astype(int)
    return table.drop_columns("income"), y


def run(train, test, variant: str, seed: int) -> dict:
    start = time.perf_counter()
    model = FCorrClassifier(**VARIANTS[variant], random_state=seed).fit(*train)
    seconds = time.perf_counter() - start
    flips = flip_scores(model.predict_proba, test[0], "race")
    return {
        "variant": variant,
        "seed": seed,
        "fcorr_version": __version__,
        "test_auroc": float(roc_auc_score(test[1], flips.factual)),
        "test_accuracy": float(accuracy_score(test[1], flips.factual >= 0.5)),
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
    if "FCORR_DATA" not in os.environ:
        sys.exit("error: set FCORR_DATA to the folder that holds adult/adult.data.gz")
    folder = Path(os.environ["FCORR_DATA"]) / "adult"
    train = read_adult(folder / "adult.data.gz", skip=0)
    test = read_adult(folder / "adult.test.gz", skip=1)
    records = []
    results = HERE / "results" / "adult.jsonl"
    results.parent.mkdir(exist_ok=True)
    for variant in VARIANTS:
        for seed in SEEDS:
            records.append(run(train, test, variant, seed))
            print(json.dumps(records[-1]), flush=True)
    results.write_text("".join(json.dumps(record) + "\n" for record in records))
    write_table(records, HERE.parent / "docs" / "tables" / "adult.md")


if __name__ == "__main__":
    main()
