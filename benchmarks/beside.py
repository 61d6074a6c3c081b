"""One table, one question each: accuracy, flips, groups, proxies and time beside the usual.

Run with ``make bench-beside``; FCORR_DATA names the folder with the data. It goes on where it was
interrupted: what benchmarks/results/beside.jsonl has is not fitted again. Writes
docs/tables/beside.md and docs/beside.svg.

**Rows.** Adult with its usual test rows, income above 50,000, sex as the sensitive column.

**Methods**, one thread each. fcorr with default arguments, and with the proxy dial at 1. LightGBM
(learning rate 0.05, 15 leaves, stopped early on a quarter of the rows) and EBM (defaults) with sex
as a feature, and without it. fairlearn over LightGBM without sex, with the trees that it stopped
at: ExponentiatedGradient for a DPD of at most .03, which decides at random, and ThresholdOptimizer,
which reads sex to decide.

**Measures**, all of test rows. AUROC of scores, of ExponentiatedGradient the mean of 20 draws;
accuracy at one half. What a flip of sex changes: the largest change of a score, and the share of
people decided otherwise. DPD: by how much the share decided positive differs between the sexes.
How well scores tell the sexes apart: the AUROC of sex by score, .5 for not at all. CPU seconds of
the fit.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from benchmarks.tables import (
    BINARY,
    HERE,
    Predict,
    Table,
    as_categories,
    early_stopping_rows,
    positive,
    published,
    read,
    to_markdown,
)
from fcorr.audit.displays import save_figure
from fcorr.metrics import demographic_parity_difference, flip_changes, flip_scores
from paper.datasets import load_adult

SEX = "sex"
N_DRAWS = 20


class Fitted(NamedTuple):
    """How a model scores and decides rows with all columns, and whether it is proven exact."""

    score: Predict
    decide: Predict
    exact: bool = False


def by_score(score: Predict, *, exact: bool = False) -> Fitted:
    return Fitted(score, lambda X: (score(X) >= 0.5).astype(int), exact)


def fit_fcorr(table: Table, seed: int, **options: Any) -> Fitted:
    from fcorr import FCorrClassifier

    model = FCorrClassifier(sensitive=SEX, random_state=seed, **options).fit(table.X, table.y)
    return by_score(positive(model), exact=model.certificate().exact)


def without_sex(X: pd.DataFrame) -> pd.DataFrame:
    return as_categories(X.drop(columns=SEX))


def fit_lightgbm(table: Table, seed: int, *, prepare: Callable[..., pd.DataFrame]) -> Fitted:
    model = new_lightgbm(count_trees(table, seed, prepare), seed)
    score = positive(model.fit(prepare(table.X), table.y))
    return by_score(lambda X: score(prepare(X)))


def new_lightgbm(n_trees: int, seed: int) -> Any:
    import lightgbm

    options = {"learning_rate": 0.05, "num_leaves": 15, "n_jobs": 1, "verbose": -1}
    return lightgbm.LGBMClassifier(n_estimators=n_trees, random_state=seed, **options)


def count_trees(table: Table, seed: int, prepare: Callable[..., pd.DataFrame]) -> int:
    import lightgbm

    X = prepare(table.X)
    fitted, stopping = early_stopping_rows(table.y, table.objective, seed)
    model = new_lightgbm(5_000, seed).fit(
        X.iloc[fitted],
        table.y[fitted],
        eval_set=[(X.iloc[stopping], table.y[stopping])],
        callbacks=[lightgbm.early_stopping(100, verbose=False)],
    )
    return int(model.best_iteration_)


def fit_ebm(table: Table, seed: int, *, prepare: Callable[..., pd.DataFrame]) -> Fitted:
    from interpret.glassbox import ExplainableBoostingClassifier

    model = ExplainableBoostingClassifier(random_state=seed, n_jobs=1)
    score = positive(model.fit(prepare(table.X), table.y))
    return by_score(lambda X: score(prepare(X)))


def fit_exponentiated(table: Table, seed: int) -> Fitted:
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    trees = new_lightgbm(count_trees(table, seed, without_sex), seed)
    model = ExponentiatedGradient(trees, DemographicParity(difference_bound=0.03), eps=0.03)
    model.fit(without_sex(table.X), table.y, sensitive_features=table.X[SEX].astype(str))

    def draw(X: pd.DataFrame, number: int) -> np.ndarray:
        return np.asarray(model.predict(without_sex(X), random_state=number))

    return Fitted(
        lambda X: np.mean([draw(X, number) for number in range(N_DRAWS)], axis=0),
        lambda X: draw(X, 0),
    )


def fit_thresholds(table: Table, seed: int) -> Fitted:
    from fairlearn.postprocessing import ThresholdOptimizer

    trees = new_lightgbm(count_trees(table, seed, without_sex), seed)
    model = ThresholdOptimizer(
        estimator=trees, constraints="demographic_parity", predict_method="predict_proba"
    )
    sexes = table.X[SEX].astype(str)
    model.fit(without_sex(table.X), table.y, sensitive_features=sexes)

    def decide(X: pd.DataFrame) -> np.ndarray:
        options = {"sensitive_features": X[SEX].astype(str), "random_state": seed}
        return np.asarray(model.predict(without_sex(X), **options))

    return Fitted(lambda X: decide(X).astype(float), decide)


METHODS: dict[str, Callable[[Table, int], Fitted]] = {
    "fcorr": fit_fcorr,
    "fcorr, proxy=1": partial(fit_fcorr, proxy=1.0),
    "LightGBM": partial(fit_lightgbm, prepare=as_categories),
    "LightGBM without sex": partial(fit_lightgbm, prepare=without_sex),
    "EBM": partial(fit_ebm, prepare=as_categories),
    "EBM without sex": partial(fit_ebm, prepare=without_sex),
    "fairlearn ExponentiatedGradient": fit_exponentiated,
    "fairlearn ThresholdOptimizer": fit_thresholds,
}


def measure(name: str, table: Table, seed: int) -> dict[str, Any]:
    start = time.process_time()
    fitted = METHODS[name](table, seed)
    seconds = time.process_time() - start
    scores, decisions = fitted.score(table.X_test), fitted.decide(table.X_test)
    sexes = table.X_test[SEX].astype(str)
    flips = flip_scores(fitted.score, table.X_test, SEX)
    decided = flip_scores(fitted.decide, table.X_test, SEX)
    told = roc_auc_score(sexes == sexes.iloc[0], scores)
    return {
        "method": name,
        "seed": seed,
        "exact": fitted.exact,
        "auroc": float(roc_auc_score(table.y_test, scores)),
        "accuracy": float(np.mean(decisions == table.y_test)),
        "flip": flip_changes(flips),
        "decided_otherwise": float(np.mean(np.ptp(decided.scores, axis=1) > 0)),
        "dpd": demographic_parity_difference(table.y_test, decisions, sensitive_features=sexes),
        "sex_by_score": float(max(told, 1 - told)),
        "fit_cpu_seconds": seconds,
    }


# ------------------------------------------------------------------------------ documents

HEAD = ["Adult, sex", "AUROC", "accuracy", "largest change by a flip", "decided otherwise"]
HEAD += ["proven", "DPD", "sex by score", "fit, CPU s"]


def by_method(records: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return means over seeds, in the order of the methods; of a flip's changes the largest."""
    found = {}
    for name in METHODS:
        some = [r for r in records if r["method"] == name]
        if some:
            plain = [key for key, value in some[0].items() if isinstance(value, float)]
            found[name] = {key: float(np.mean([r[key] for r in some])) for key in plain}
            for key in some[0]["flip"]:
                found[name][key] = max(r["flip"][key] for r in some)
            found[name] |= {"exact": min(r["exact"] for r in some), "seeds": len(some)}
    return found


def write_table(records: list[dict[str, Any]], path: Path) -> None:
    rows = [
        [
            f"{name} ({m['seeds']})" if m["seeds"] > 1 else name,
            f"{m['auroc']:.4f}",
            f"{m['accuracy']:.4f}",
            "0" if m["max"] == 0 else f"{m['max']:.2f}",
            "0" if m["decided_otherwise"] == 0 else f"{100 * m['decided_otherwise']:.1f} %",
            "yes" if m["exact"] else "–",
            f"{m['dpd']:.3f}",
            f"{m['sex_by_score']:.3f}",
            f"{m['fit_cpu_seconds']:.0f}",
        ]
        for name, m in by_method(records).items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_markdown(HEAD, rows))


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Draw what a flip moves, from the person in the middle to the last one, beside AUROC."""
    import matplotlib.pyplot as plt

    methods = by_method(records)
    figure, (flips, order) = plt.subplots(
        1, 2, figsize=(8.5, 0.42 * len(methods) + 1.1), width_ratios=(3, 2), layout="constrained"
    )
    for y, (name, m) in enumerate(methods.items()):
        is_ours = name.startswith("fcorr")
        colour = "#1a5a9e" if is_ours else "#8a5a1a"
        flips.plot([m["q50"], m["max"]], [y, y], color=colour, linewidth=2, solid_capstyle="round")
        flips.scatter([m["q50"], m["q99"], m["max"]], [y] * 3, s=[50, 26, 16], color=colour)
        if m["max"] == 0:
            proof = "0 for everybody, proven" if m["exact"] else "0: it is not told"
            flips.annotate(proof, (0, y), (8, 0), textcoords="offset points", va="center")
        order.scatter([m["auroc"]], [y], s=44, color=colour)
        shown = f"{m['auroc']:.3f}"
        order.annotate(shown, (m["auroc"], y), (-8, 0), textcoords="offset points", ha="right",
                       va="center")  # fmt: skip
    flips.set_title("The other sex, all else the same", loc="left", fontsize="medium")
    flips.set_xlabel("how far the score moves: of half the people, 99 %, the last one")
    flips.set_yticks(range(len(methods)), list(methods))
    order.set_title("AUROC", loc="left", fontsize="medium")
    order.set_yticks([])
    order.set_xlim(min(m["auroc"] for m in methods.values()) - 0.08, 0.96)
    for ax in (flips, order):
        ax.invert_yaxis()
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x", color="#e4e7eb")
        ax.set_axisbelow(True)
    flips.set_xlim(-0.02, 1.02)
    save_figure(figure, path)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    options = parser.parse_args(arguments)
    results, docs = HERE / "results" / "beside.jsonl", HERE.parent / "docs"
    records = read(results)
    done = {(r["method"], r["seed"]) for r in records}
    table = published(load_adult, BINARY, SEX, 0) if options.seeds else None
    for seed in options.seeds:
        for name in options.methods:
            if (name, seed) in done or table is None:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                record = measure(name, table, seed)
            records.append(record)
            with results.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(json.dumps(record), flush=True)
    write_table(records, docs / "tables" / "beside.md")
    draw(records, docs / "beside.svg")


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    main()
