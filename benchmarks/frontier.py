"""Accuracy against what groups differ in: the proxy dial beside repair, fairlearn and LightGBM.

Run with ``make bench-frontier``; FCORR_DATA names the folder with the data. It goes on where it
was interrupted: what benchmarks/results/frontier.jsonl has is not fitted again. ``--tables``,
``--families`` and ``--seeds`` choose, ``--members`` sets the size of fcorr's packs, 1 for single
networks: each size is a family of its own. Writes docs/tables/frontier.md.

**Families.** Each is one way to turn a dial, from not at all to far. fcorr: ``proxy=`` on decisions
and on scores, default arguments otherwise, and the marginal form. The others go by LightGBM
without the sensitive column, as many trees as early stopping on a quarter of the rows finds:
quantile repair by four shares, fairlearn's ExponentiatedGradient and GridSearch for demographic
parity, and its ThresholdOptimizer. Repair and ThresholdOptimizer read the column at scoring.

**Measures**, all of test rows. Classes: accuracy of decisions (of ExponentiatedGradient, which
decides at random, one draw; its AUROC is that of the mean of 20), and DPD. Claim counts: the
share of the Poisson deviance that is explained, and demographic unfairness UF of frequencies.
The hypervolume of a family is the area that its points dominate, up to the accuracy of no model and
the difference of LightGBM without the column, as a share of that rectangle; its interval is by 200
resamples of the test rows, the same for all families, and so is that of the difference from the
family that the dial stands beside: ExponentiatedGradient for decisions, quantile repair for scores.
A family has the seeds that were run, the difference those that both have.
Beside each point of that family stands what the dial has at the same DPD, of scores at the same
distance (the largest Wasserstein distance of a group's scores from all), between its two nearest
points that no other dominates: means over the seeds for which it comes that far, with the standard
error of the difference.
"""

import argparse
import functools
import itertools
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import wasserstein_distance
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import mean_poisson_deviance, roc_auc_score
from sklearn.utils import get_tags

from benchmarks.tables import (
    BINARY,
    COUNTS,
    HERE,
    YEARS,
    Table,
    as_categories,
    early_stopping_rows,
    from_file,
    loss_of,
    published,
    read,
    to_markdown,
    years,
)
from fcorr import FCorrClassifier, FCorrRegressor, QuantileRepair
from fcorr.audit.proxies import best_estimates
from fcorr.metrics import (
    demographic_parity_difference,
    demographic_unfairness,
    equalized_odds_difference,
    proxy_discrimination,
)
from paper.datasets import load_adult, load_bemtpl97

DIALS = {"decision": (0.06, 0.2, 0.6, 2.0, 6.0, 20.0), "score": (0.3, 1.0, 3.0, 10.0)}
SHARES = (0.25, 0.5, 0.75, 1.0)
GAPS = (0.01, 0.03, 0.07, 0.12)  # that ExponentiatedGradient may leave
N_RESAMPLES = 200
FIELDS = ("gap", "good", "auroc")
BESIDE = {  # what a dial is compared with, by what differs, what shall be high, and what else
    "fcorr, decisions": ("LightGBM, ExponentiatedGradient", FIELDS),
    "fcorr, scores": ("LightGBM, quantile repair", ("distance", "auroc", "good")),
}

TABLES: dict[str, Callable[[int], Table]] = {
    "adult, sex": functools.partial(published, load_adult, BINARY, "sex"),
    "adult, race": functools.partial(published, load_adult, BINARY, "race"),
    "credit, SEX": functools.partial(from_file, "credit", "default", "SEX"),
    "law, race": functools.partial(from_file, "law", "pass", "race"),
    "beMTPL97, sex": functools.partial(published, load_bemtpl97, COUNTS, "sex"),
}

# What a setting of a dial gives for the test rows: scores, and decisions where there are classes.
Point = tuple[str, np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class Task:
    """A table for a seed, and how many members fcorr's packs have."""

    name: str
    seed: int
    members: Any

    @functools.cached_property
    def table(self) -> Table:
        return TABLES[self.name](self.seed)

    @functools.cached_property
    def groups(self) -> np.ndarray:
        return self.table.X_test[self.table.sensitive].astype(str).to_numpy()

    @functools.cached_property
    def estimates(self) -> Any:
        """Best estimates for the test rows, cross-fitted on these alone."""
        table, weight = self.table, years(self.table.X_test)
        X = table.X_test.drop(columns=[YEARS] if YEARS in table.X_test else [])
        options = {"sample_weight": weight, "random_state": self.seed}
        return best_estimates(X, table.y_test / weight, table.sensitive, **options)


def fit_fcorr(task: Task, **options: Any) -> np.ndarray:
    table = task.table
    options = {
        **{"sensitive": table.sensitive, "random_state": task.seed, "n_members": task.members},
        **options,
    }
    if table.objective == BINARY:
        model = FCorrClassifier(**options).fit(table.X, table.y)
        return model.predict_proba(table.X_test)[:, 1]
    model = FCorrRegressor(objective=COUNTS, exposure=YEARS, **options).fit(table.X, table.y)
    return model.predict(table.X_test) / years(table.X_test)


@functools.cache  # where all dials begin
def fit_without_dial(task: Task) -> np.ndarray:
    return fit_fcorr(task)


def dialled(target: str, task: Task) -> Iterator[Point]:
    yield as_point("0", task.table, fit_without_dial(task))
    for proxy in DIALS[target]:
        options: dict[str, Any] = {"proxy": proxy}
        if task.table.objective == BINARY:
            options["proxy_target"] = target
        yield as_point(f"{proxy:g}", task.table, fit_fcorr(task, **options))


def marginal(task: Task) -> Iterator[Point]:
    yield as_point("marginal", task.table, fit_fcorr(task, invariance="marginal"))


def repair(task: Task) -> Iterator[Point]:
    model, table = make_lightgbm(task), task.table
    X, X_test = features(table.X), features(table.X_test)
    weight = years(table.X)
    for share in (0.0, *SHARES):
        repaired = QuantileRepair(LeftOut(model, table.sensitive), table.sensitive, share=share)
        repaired.fit(X, table.y / weight, sample_weight=weight)
        is_binary = table.objective == BINARY
        predict = repaired.predict_proba if is_binary else repaired.predict
        scores = predict(X_test)[:, 1] if is_binary else predict(X_test)
        yield as_point(f"{share:g}", table, scores)


def exponentiated(task: Task) -> Iterator[Point]:
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    table = task.table
    X, X_test = (features(each).drop(columns=table.sensitive) for each in (table.X, table.X_test))
    for gap in GAPS:
        parity = DemographicParity(difference_bound=gap)
        model = ExponentiatedGradient(make_lightgbm(task), parity, eps=gap)
        model.fit(X, table.y, sensitive_features=table.X[table.sensitive].astype(str))
        draws = [model.predict(X_test, random_state=draw) for draw in range(20)]
        yield f"{gap:g}", np.mean(draws, axis=0), np.asarray(draws[0])


def grid_search(task: Task) -> Iterator[Point]:
    from fairlearn.reductions import DemographicParity, GridSearch

    table = task.table
    X, X_test = (features(each).drop(columns=table.sensitive) for each in (table.X, table.X_test))
    model = GridSearch(make_lightgbm(task), DemographicParity(), grid_size=9)
    model.fit(X, table.y, sensitive_features=table.X[table.sensitive].astype(str))
    for number, each in enumerate(model.predictors_):
        yield as_point(str(number), table, each.predict_proba(X_test)[:, 1])


def threshold_optimizer(task: Task) -> Iterator[Point]:
    from fairlearn.postprocessing import ThresholdOptimizer

    table = task.table
    model = ThresholdOptimizer(
        estimator=LeftOut(make_lightgbm(task), table.sensitive),
        constraints="demographic_parity",
        predict_method="predict_proba",
    )
    groups = [each[table.sensitive].astype(str) for each in (table.X, table.X_test)]
    model.fit(features(table.X), table.y, sensitive_features=groups[0])
    options = {"sensitive_features": groups[1], "random_state": task.seed}
    decisions = np.asarray(model.predict(features(table.X_test), **options))
    yield "parity", decisions.astype(float), decisions


FAMILIES: dict[str, Callable[[Task], Iterator[Point]]] = {
    "fcorr, decisions": functools.partial(dialled, "decision"),
    "fcorr, scores": functools.partial(dialled, "score"),
    "fcorr, marginal": marginal,
    "LightGBM, quantile repair": repair,
    "LightGBM, ExponentiatedGradient": exponentiated,
    "LightGBM, GridSearch": grid_search,
    "LightGBM, ThresholdOptimizer": threshold_optimizer,
}
OF_COUNTS = ("fcorr, scores", "fcorr, marginal", "LightGBM, quantile repair")


# ------------------------------------------------------------------------------ LightGBM


@functools.cache
def count_trees(name: str, seed: int) -> int:
    import lightgbm

    table = TABLES[name](seed)
    X = features(table.X).drop(columns=table.sensitive)
    fitted, stopping = early_stopping_rows(table.y, table.objective, seed)
    weight = years(table.X)
    y = table.y / weight
    model = new_lightgbm(table.objective, 5_000, seed)
    model.fit(
        *(X.iloc[fitted], y[fitted], weight[fitted]),
        eval_set=[(X.iloc[stopping], y[stopping])],
        eval_sample_weight=[weight[stopping]],
        callbacks=[lightgbm.early_stopping(100, verbose=False)],
    )
    return int(model.best_iteration_)


def new_lightgbm(objective: str, n_trees: int, seed: int) -> Any:
    import lightgbm

    kind = lightgbm.LGBMClassifier if objective == BINARY else lightgbm.LGBMRegressor
    options = {"learning_rate": 0.05, "num_leaves": 15, "n_jobs": 1, "verbose": -1}
    return kind(objective=objective, n_estimators=n_trees, random_state=seed, **options)


def make_lightgbm(task: Task) -> Any:
    return new_lightgbm(task.table.objective, count_trees(task.name, task.seed), task.seed)


class LeftOut(BaseEstimator):
    """A model that is given a column which it does not read."""

    def __init__(self, model: Any, column: str) -> None:
        self.model = model
        self.column = column

    def fit(self, X: pd.DataFrame, y: Any, sample_weight: Any = None) -> Any:
        self.model_ = clone(self.model)
        self.model_.fit(X.drop(columns=self.column), y, sample_weight=sample_weight)
        self.classes_ = getattr(self.model_, "classes_", None)
        return self

    def predict(self, X: pd.DataFrame) -> Any:
        return self.model_.predict(X.drop(columns=self.column))

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self.model_.predict_proba(X.drop(columns=self.column))

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.model)


def features(X: pd.DataFrame) -> pd.DataFrame:
    return as_categories(X.drop(columns=[YEARS] if YEARS in X else []))


# ------------------------------------------------------------------------------ measures


def as_point(setting: str, table: Table, scores: np.ndarray) -> Point:
    return setting, scores, (scores >= 0.5).astype(int) if table.objective == BINARY else None


def place(task: Task, point: Point, rows: Any = slice(None)) -> tuple[float, float]:
    """Return how good a point is, and how far groups differ, on some of the test rows."""
    _, scores, decisions = point
    y, groups = task.table.y_test[rows], task.groups[rows]
    if decisions is not None:
        gap = demographic_parity_difference(y, decisions[rows], sensitive_features=groups)
        return float(np.mean(decisions[rows] == y)), gap
    weight = years(task.table.X_test)[rows]
    return explained(y, scores[rows], weight), demographic_unfairness(
        scores[rows], sensitive_features=groups, sample_weight=weight
    )


def explained(y: np.ndarray, frequency: np.ndarray, weight: np.ndarray) -> float:
    """Return the share of the deviance of one frequency for all that is explained."""
    level = np.full(len(y), y.sum() / weight.sum())
    mine, none = (mean_poisson_deviance(y, f * weight) for f in (frequency, level))
    return 1 - mine / none


def hypervolume(points: list[tuple[float, float]], worst: tuple[float, float]) -> float:
    """Return the area that points dominate, good upwards and gap downwards, as a share.

    >>> hypervolume([(0.9, 0.1), (0.8, 0.0)], (0.5, 0.2))
    0.7
    """
    lowest, widest = worst
    area, above = 0.0, lowest
    # From the widest gap to the smallest, a point adds what lies above those that follow it.
    for good, gap in sorted(points, key=lambda point: point[1]):
        if gap < widest and good > above:
            area += (good - above) * (widest - gap)
            above = good
    return round(area / ((1 - lowest) * widest), 6)


def at_gap(
    points: list[dict[str, Any]], gap: float, fields: tuple[str, str, str] = FIELDS
) -> tuple[float, float] | None:
    """Return what a family reaches with a gap, good and more; None where it stays above it.

    >>> points = [{"gap": 0.0, "good": 0.8, "auroc": 0.7}, {"gap": 0.2, "good": 0.9, "auroc": 0.9}]
    >>> at_gap(points, 0.1)
    (0.85, 0.8)
    """
    name, *wanted = fields
    best: list[dict[str, Any]] = []
    for point in sorted(points, key=lambda point: (point[name], -point[wanted[0]])):
        if not best or point[wanted[0]] > best[-1][wanted[0]]:
            best.append(point)
    if gap < best[0][name]:
        return None
    gaps = [point[name] for point in best]
    good, more = (
        round(float(np.interp(gap, gaps, [point[each] for point in best])), 6) for each in wanted
    )
    return good, more


def measure(task: Task, family: str) -> dict[str, Any]:
    start = time.perf_counter()
    points = list(FAMILIES[family](task))
    seconds = time.perf_counter() - start
    table, reference = task.table, make_lightgbm(task)
    X, X_test = (features(each).drop(columns=table.sensitive) for each in (table.X, table.X_test))
    weight = years(table.X)
    reference.fit(X, table.y / weight, sample_weight=weight)
    is_binary = table.objective == BINARY
    scores = reference.predict_proba(X_test)[:, 1] if is_binary else reference.predict(X_test)
    unconstrained = as_point("LightGBM", table, scores)
    rng = np.random.default_rng(task.seed)
    n_test = len(table.y_test)
    volumes = []
    for draw in range(N_RESAMPLES + 1):
        rows = rng.integers(n_test, size=n_test) if draw else slice(None)
        y = table.y_test[rows]
        lowest = max(y.mean(), 1 - y.mean()) if is_binary else 0.0
        worst = lowest, place(task, unconstrained, rows)[1]
        volumes.append(hypervolume([place(task, point, rows) for point in points], worst))
    return {
        "table": task.name,
        "family": family,
        "seed": task.seed,
        "members": task.members,
        "points": [describe(task, point) for point in points],
        "LightGBM": describe(task, unconstrained),
        "hypervolume": volumes[0],
        "resampled": volumes[1:],
        "seconds": seconds,
    }


def describe(task: Task, point: Point) -> dict[str, Any]:
    setting, scores, decisions = point
    table, groups, weight = task.table, task.groups, years(task.table.X_test)
    good, gap = place(task, point)
    apart = [
        wasserstein_distance(scores[groups == k], scores, weight[groups == k], weight)
        for k in np.unique(groups)
    ]
    found: dict[str, Any] = {"setting": setting, "good": good, "gap": gap, "distance": max(apart)}
    options = {"sensitive_features": groups, "sample_weight": weight}
    found["UF"] = demographic_unfairness(scores, **options)
    found["PD"] = proxy_discrimination(scores, task.estimates, sample_weight=weight)
    if decisions is not None:
        found["auroc"] = float(roc_auc_score(table.y_test, scores))
        inside = np.clip(scores, 1e-6, 1 - 1e-6)
        found["loss"] = loss_of(BINARY, table.y_test, inside)
        found["odds"] = equalized_odds_difference(
            table.y_test, decisions, sensitive_features=groups
        )
    return found


# ------------------------------------------------------------------------------ documents


def write_tables(records: list[dict[str, Any]], path: Path) -> None:
    volumes, points = [], []
    for name in TABLES:
        some = [r for r in records if r["table"] == name]
        families = sorted({label(r) for r in some}, key=lambda each: ("fcorr" not in each, each))
        for family in families:
            of_family = [r for r in some if label(r) == family]
            mean = np.mean([r["hypervolume"] for r in of_family])
            resampled = np.mean([r["resampled"] for r in of_family], axis=0)
            low, high = np.quantile(resampled, [0.025, 0.975])
            shown = [name, family, str(len(of_family)), f"{mean:.3f} ({low:.3f}–{high:.3f})"]
            volumes.append([*shown, ahead_in_volume(of_family, some)])
            for k, first in enumerate(of_family[0]["points"]):
                each = [r["points"][k] for r in of_family]
                cells = [
                    f"{np.mean([p[field] for p in each]):.4f}" if field in first else "–"
                    for field in ("good", "gap", "auroc", "distance", "odds", "UF", "PD")
                ]
                points.append([name, family, first["setting"], *cells])
    path.parent.mkdir(parents=True, exist_ok=True)
    heads = [
        ["table", "family", "seeds", "hypervolume (95 %)", "ahead (95 %)"],
        ["table", "networks", "EG may leave", "reached", "DPD", "accuracy, EG", "dial", "ahead",
         "AUROC, EG", "dial"],
        ["table", "networks", "repaired by", "reached", "distance", "AUROC, repair", "dial",
         "ahead", "accuracy, repair", "dial"],
        ["table", "family", "dial", "accuracy or explained", "DPD or UF", "AUROC", "distance",
         "EqOdd", "UF", "PD"],
    ]  # fmt: skip
    rows = volumes, *(compare(records, family) for family in BESIDE), points
    blocks = [to_markdown(head, each) for head, each in zip(heads, rows, strict=True) if each]
    path.write_text("\n".join(blocks))


def ahead_in_volume(ours: list[dict[str, Any]], records: list[dict[str, Any]]) -> str:
    """Return by how much hypervolumes are above those of the family beside, by the same rows."""
    beside = BESIDE.get(ours[0]["family"], ("", FIELDS))[0]
    theirs = {r["seed"]: r for r in records if r["family"] == beside}
    pairs = [(r, theirs[r["seed"]]) for r in ours if r["seed"] in theirs]
    if not pairs:
        return "–"
    mean = np.mean([a["hypervolume"] - b["hypervolume"] for a, b in pairs])
    draws = np.mean([np.subtract(a["resampled"], b["resampled"]) for a, b in pairs], axis=0)
    low, high = np.quantile(draws, [0.025, 0.975])
    return f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"


def compare(records: list[dict[str, Any]], family: str) -> list[list[str]]:
    """Set a dial beside another family where groups differ as much; means over the seeds."""
    rows, (beside, fields) = [], BESIDE[family]
    for name, members in itertools.product(TABLES, ("auto", 1)):
        ours, theirs = (
            {r["seed"]: r["points"] for r in records if r["table"] == name and label(r) == each}
            for each in (f"{family} ({members})", beside)
        )
        seeds = sorted(ours.keys() & theirs.keys())
        # Claim counts have no order of decisions: the deviance that is explained, by UF.
        has_order = bool(seeds) and "auroc" in theirs[seeds[0]][0]
        by, good, more = fields if has_order else ("gap", "good", "distance")
        for k in reversed(range(len(theirs[seeds[0]]) if seeds else 0)):
            pairs = [
                (theirs[s][k], at_gap(ours[s], theirs[s][k][by], (by, good, more))) for s in seeds
            ]
            both = [(point, found) for point, found in pairs if found is not None]
            cells = [name, str(members), theirs[seeds[0]][k]["setting"]]
            cells += [f"{len(both)} of {len(pairs)}"]
            cells += [f"{np.mean([point[by] for point, _ in pairs]):.3f}"]
            if not both:
                rows.append(cells + ["–"] * 5)
                continue
            values = np.array([[p[good], f[0], p[more], f[1]] for p, f in both])
            ahead = values[:, 1] - values[:, 0]
            error = f" ± {ahead.std(ddof=1) / len(ahead) ** 0.5:.4f}" if len(ahead) > 1 else ""
            cells += [f"{x:.4f}" for x in values[:, :2].mean(0)]
            cells += [f"{ahead.mean():+.4f}{error}"]
            rows.append(cells + [f"{x:.3f}" for x in values[:, 2:].mean(0)])
    return rows


def label(record: dict[str, Any]) -> str:
    """Name the family of a record, fcorr's by the most networks of a pack too."""
    members = f" ({record['members']})" if record["family"].startswith("fcorr") else ""
    return record["family"] + members


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--members", default="auto", help="of fcorr's packs, at most")
    options = parser.parse_args(arguments)
    members = options.members if options.members == "auto" else int(options.members)
    results = HERE / "results" / "frontier.jsonl"
    records = read(results)
    done = {(r["table"], label(r), r["seed"]) for r in records}
    for seed in options.seeds:
        for name in options.tables:
            task = Task(name, seed, members)
            for family in options.families:
                of_size = label({"family": family, "members": members})
                is_known = (name, of_size, seed) in done
                if is_known or (name == "beMTPL97, sex" and family not in OF_COUNTS):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", FutureWarning)
                    record = measure(task, family)
                records.append(record)
                with results.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                shown = {k: v for k, v in record.items() if k not in ("points", "resampled")}
                print(json.dumps(shown), flush=True)
    document = HERE.parent / "docs/tables/frontier.md"
    write_tables(records, document)
    print(document.read_text())


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    main()
