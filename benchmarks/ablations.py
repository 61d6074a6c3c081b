"""What CAR and the attention are worth to a model that is exactly invariant: parts taken out.

Validation rows of the training tables, never test rows; run with ``make bench-ablations``, with the
folder of the data in FCORR_DATA. Packs of four members. Writes benchmarks/results/ablations.jsonl
and docs/tables/ablations.md.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, mean_poisson_deviance
from sklearn.model_selection import train_test_split
from torch import nn

from benchmarks.tables import COUNTS, TABLES, YEARS
from fcorr import FCorrClassifier, FCorrRegressor

HERE = Path(__file__).parent
SHOWN = ["german", "law", "credit", "adult", "beMTPL97"]
DEFAULT, CAR, NO_ATTENTION, REMOVED = (
    "default: 0 from the first step",
    "CAR at work, collapsed for the last quarter",
    "default, without attention",
    "column removed",
)


class _WithCar:
    """Train with the column and CAR at first, as the paper's model with ``"adapt"`` does."""

    _has_car = True

    def _pace(self, recipe: Any, batch_size: int, *, waits: bool) -> Any:
        pace = super()._pace(recipe, batch_size, waits=waits)
        return replace(pace, collapsed_epochs=max(1, round(pace.epochs / 4)))


class _WithoutAttention:
    """Let the head see the views as they are."""

    def _make_network(self, *arguments: Any) -> Any:
        network = super()._make_network(*arguments)
        network.layers = nn.ModuleList()
        return network

    def _significance(self, encoded: Any) -> Any:
        return np.zeros(len(self.schema_.feature_names))


def make(cls: type, variant: str) -> type:
    """Return the estimator of a variant."""
    mixin = {CAR: _WithCar, NO_ATTENTION: _WithoutAttention}.get(variant)
    return cls if mixin is None else type(cls.__name__, (mixin, cls), {})


def measure(name: str, variant: str, seed: int) -> dict[str, Any]:
    """Fit a variant to three quarters of a table's training rows, and measure it on the rest."""
    table = TABLES[name](seed)
    X, y, is_count = table.X, np.asarray(table.y), table.objective == COUNTS
    strata = (y > 0).astype(int) if is_count else y
    rows, held_out = train_test_split(
        np.arange(len(y)), test_size=0.25, random_state=seed, stratify=strata
    )
    options: dict[str, Any] = {"random_state": seed, "n_members": 4}
    if variant == REMOVED:
        X = X.drop(columns=table.sensitive)
    else:
        options["sensitive"] = table.sensitive
    if is_count:
        options |= {"objective": "poisson", "exposure": YEARS}
    cls = make(FCorrRegressor if is_count else FCorrClassifier, variant)
    start = time.perf_counter()
    model = cls(**options).fit(X.iloc[rows], y[rows])
    seconds = time.perf_counter() - start
    if is_count:
        loss = 100 * mean_poisson_deviance(y[held_out], model.predict(X.iloc[held_out]))
    else:
        loss = log_loss(y[held_out], model.predict_proba(X.iloc[held_out])[:, 1])
    found = {"table": name, "variant": variant, "seed": seed, "loss": float(loss)}
    return found | {"fit_seconds": seconds}


def write_table(records: list[dict[str, Any]], path: Path) -> None:
    """Write the mean loss of each variant on each table."""
    frame = pd.DataFrame(records)
    lines = [["validation loss", *SHOWN], ["---", *["---:"] * len(SHOWN)]]
    for variant in (DEFAULT, CAR, NO_ATTENTION, REMOVED):
        cells = []
        for name in SHOWN:
            some = frame[(frame.table == name) & (frame.variant == variant)].loss
            cells.append(f"{some.mean():.4f}" if len(some) else "–")
        lines.append([variant, *cells])
    path.write_text("".join(f"| {' | '.join(line)} |\n" for line in lines))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", nargs="+", default=SHOWN, choices=SHOWN)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    arguments = parser.parse_args()
    path = HERE / "results" / "ablations.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for name in arguments.tables:
        for seed in arguments.seeds:
            for variant in (DEFAULT, CAR, NO_ATTENTION, REMOVED):
                key = {"table": name, "variant": variant, "seed": seed}
                if any(key.items() <= record.items() for record in records):
                    continue
                records.append(measure(name, variant, seed))
                print(json.dumps(records[-1]), flush=True)
                path.write_text("".join(json.dumps(record) + "\n" for record in records))
    write_table(records, HERE.parent / "docs" / "tables" / "ablations.md")


if __name__ == "__main__":
    main()
