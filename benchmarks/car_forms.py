"""CAR's forms and weights where the sensitive column moves the target itself.

A table with a strong direct effect of a three-category column, a proxy of it, two honest numbers.
For each form and λ: test AUROC, the last epoch's CAR, and the largest change of any test row's
probability under a flip. Run with ``make bench-car``; writes benchmarks/results/car_forms.jsonl and
docs/tables/car_forms.md.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
from sklearn.metrics import roc_auc_score

from fcorr import FCorrClassifier, __version__
from fcorr.metrics import flip_changes, flip_scores
from paper.augmentation import AugmentedClassifier

HERE = Path(__file__).parent
FORMS = ("sensitive", "paper")
WEIGHTS = (None, "paper", 1e2, 1e4, 1e6)
SEEDS = range(5)
N_ROWS = 3_000


def make_direct_bias(seed: int) -> tuple[pa.Table, np.ndarray]:
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=N_ROWS)
    x = rng.normal(size=(N_ROWS, 3))
    x[:, 0] += 0.5 * group  # a proxy
    score = x @ [1.0, -1.0, 0.5] + 1.5 * group + rng.normal(size=N_ROWS)
    columns = {"group": np.array(["a", "b", "c"])[group]}
    columns |= {f"x{i}": x[:, i] for i in range(3)}
    return pa.table(columns), (score > 2).astype(int)


def run(form: str, weight: float | str | None, seed: int) -> dict:
    # The paper's network, of which CAR sees all that it makes of the sensitive column.
    advanced = {"main_effects": False, "beta2": 0.95}
    options = {"car": weight, "advanced": advanced, "invariance": None}
    cls = AugmentedClassifier if form == "paper" else FCorrClassifier
    model = cls(sensitive="group", random_state=seed, **options)
    model.fit(*make_direct_bias(seed))
    X, y = make_direct_bias(1_000 + seed)
    flips = flip_scores(model.predict_proba, X, "group")
    return {
        "form": form,
        "car": weight,
        "car_weight": model.history_.car_weight,
        "seed": seed,
        "fcorr_version": __version__,
        "test_auroc": float(roc_auc_score(y, flips.factual)),
        "last_car": model.history_.epochs[-1].car,
        "largest_change": flip_changes(flips)["max"],
    }


def write_table(records: list[dict], path: Path) -> None:
    lines = [
        "| form | λ | test AUROC | last CAR, median | largest change, median | worst of five |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for key in dict.fromkeys((r["form"], r["car"]) for r in records):
        cell = [r for r in records if (r["form"], r["car"]) == key]
        form, weight = key
        auroc = np.mean([r["test_auroc"] for r in cell])
        change = [r["largest_change"] for r in cell]
        car = "–" if weight is None else f"{np.median([r['last_car'] for r in cell]):.1e}"
        name = {None: "no CAR", "paper": "paper's rule"}.get(weight, f"{weight}")
        if isinstance(weight, float):
            name = f"{weight:.0e}"
        lines.append(
            f"| {'–' if weight is None else form} | {name} | {auroc:.3f} | {car} | "
            f"{np.median(change):.1e} | {max(change):.1e} |"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    records = []
    for form in FORMS:
        for weight in WEIGHTS:
            if weight is None and form != FORMS[0]:
                continue  # without CAR the form makes no difference
            for seed in SEEDS:
                records.append(run(form, weight, seed))
                print(json.dumps(records[-1]), flush=True)
    results = HERE / "results" / "car_forms.jsonl"
    results.parent.mkdir(exist_ok=True)
    results.write_text("".join(json.dumps(record) + "\n" for record in records))
    write_table(records, HERE.parent / "docs" / "tables" / "car_forms.md")


if __name__ == "__main__":
    main()
