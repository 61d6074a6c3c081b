"""What a member of a pack costs: a training step beside its bare head, and scoring beside LightGBM.

Run with ``make bench-members``; FCORR_DATA names the folder with the data. ``--parts`` measures
some parts again and keeps the rest of benchmarks/results/members.jsonl. Writes
docs/tables/members.md.

**Steps.** A network of each size that default recipes have, with its penalties, on the tables of
``benchmarks.speed``, against its head alone on as many numbers as it has views of features. One
thread, the CPU time of the fastest of several turns.

**Scoring.** A default pack beside LightGBM at the number of trees at which it stopped, as in
``benchmarks.tables``, on test rows of the same table, from a data frame, in turn, by CPU time on
one thread.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.speed.data import Data, make_data
from benchmarks.speed.models import _sliced_step
from benchmarks.speed.plan import FULL
from benchmarks.tables import HERE, METHODS, TABLES, read, to_markdown
from fcorr.nn import FCorrTransformer
from fcorr.nn.layers import FeedForward, choose_knots
from fcorr.training.objective import Objective
from fcorr.training.pack import RECIPES, Recipe

N_TURNS, N_SCORED = 8, 50_000
SCORED = ("adult", "claims")


class _Head(nn.Module):
    """A head on random numbers, as many as the member's has; what an objective calls."""

    def __init__(self, n_numbers: int, recipe: Recipe) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(n_numbers)
        self.head = FeedForward(n_numbers, recipe.head, 1, dropout=recipe.dropout)

    def embed_located(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        return x_num

    def outputs(self, e_BF: Tensor) -> Tensor:
        return self.head(self.norm(e_BF))


def make_member(recipe: Recipe, data: Data) -> Objective:
    """Build a network by a recipe, and what its training minimises."""
    model = FCorrTransformer(
        data.cardinalities,
        len(data.knots),
        recipe.head,
        n_views=recipe.n_views,
        residual=True,
        knots=choose_knots(data.rows.x_num.numpy(), recipe.n_knots),
        dropout=recipe.dropout,
        feature_dropout=recipe.feature_dropout,
        generator=torch.Generator().manual_seed(0),
    )
    views = model.views
    assert views is not None
    views.center_on(data.rows.x_cat, model.locate(data.rows.x_num), data.rows.weight)

    def penalty() -> Tensor:
        return views.penalty(recipe.smoothness, recipe.credibility) / len(data.rows)

    return Objective(model, data.loss, penalty=penalty)


def in_turn(*functions: Callable[[], object]) -> list[float]:
    """Return the CPU seconds of the fastest run of each."""
    best = [float("inf")] * len(functions)
    for turn in range(N_TURNS + 1):
        for i, function in enumerate(functions):
            start = time.process_time()
            function()
            if turn:  # the first one compiles, and fills the caches
                best[i] = min(best[i], time.process_time() - start)
    return best


def measure_steps() -> list[dict[str, Any]]:
    sizes = {(r.head, r.n_views): r for r in RECIPES if not r.additive}
    records = []
    for setting in FULL.settings:
        data = make_data(replace(setting, n_pool=20_000))
        for (head, n_views), recipe in sizes.items():
            member = make_member(recipe, data)
            rows = replace(data.rows, x_num=member.model.locate(data.rows.x_num))
            n_numbers = n_views * data.n_features
            plain = replace(data.rows, x_num=torch.randn(len(rows), n_numbers))
            bare = Objective(_Head(n_numbers, recipe), data.loss)
            steps = [
                _sliced_step("member", member, rows, setting.batch).run,
                _sliced_step("head", bare, plain, setting.batch).run,
            ]
            seconds = in_turn(*steps)
            found = {"part": "steps", "p": data.n_features, "head": head, "n_views": n_views}
            records.append(found | {"member": seconds[0], "bare_head": seconds[1]})
            print(json.dumps(records[-1]), flush=True)
    return records


def measure_scoring(name: str) -> dict[str, Any]:
    table = TABLES[name](0)
    rows = table.X_test.iloc[:N_SCORED]
    pack, _ = METHODS["fcorr"](table, 0, 1)
    trees, found = METHODS["LightGBM"](table, 0, 1)
    seconds = in_turn(lambda: pack(rows), lambda: trees(rows))
    rates = {"fcorr": len(rows) / seconds[0], "LightGBM": len(rows) / seconds[1]}
    columns = len(table.X.columns)
    return {"part": "scoring", "table": name, "columns": columns, **rates, **found}


def write_table(records: list[dict[str, Any]]) -> str:
    steps = [
        [
            f"p = {r['p']}, {r['n_views']} views, head {' × '.join(map(str, r['head']))}",
            f"{1_000 * r['member']:.1f}",
            f"{1_000 * r['bare_head']:.1f}",
            f"{r['member'] / r['bare_head']:.2f}",
        ]
        for r in records
        if r["part"] == "steps"
    ]
    scoring = [
        [
            f"{r['table']}, {r['columns']} columns",
            *(f"{r[m]:,.0f}" for m in ("fcorr", "LightGBM")),
            str(r["best_iteration"]),
            f"{r['fcorr'] / r['LightGBM']:.2f}",
        ]
        for r in records
        if r["part"] == "scoring"
    ]
    heads = [
        ["training step of a member, ms", "member", "its head alone", "÷"],
        ["rows scored per second", "fcorr", "LightGBM", "trees", "÷"],
    ]
    blocks = zip(heads, (steps, scoring), strict=True)
    return "\n".join(to_markdown(head, rows) for head, rows in blocks if rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=("steps", *SCORED))
    parts = parser.parse_args().parts or ("steps", *SCORED)
    torch.set_num_threads(1)
    results = HERE / "results" / "members.jsonl"
    for part in parts:
        kept = [r for r in read(results) if part not in (r["part"], r.get("table"))]
        kept += measure_steps() if part == "steps" else [measure_scoring(part)]
        results.write_text("".join(json.dumps(r) + "\n" for r in kept))
    document = HERE.parent / "docs/tables/members.md"
    document.write_text(write_table(read(results)))
    print(document.read_text())


if __name__ == "__main__":
    main()
