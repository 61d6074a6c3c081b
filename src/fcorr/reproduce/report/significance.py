"""Do models find the same features? Overlap of their first ones, and correlation of ranks."""

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
from scipy.stats import spearmanr

from fcorr.audit.tables import TextTable
from fcorr.reproduce.report.cells import Value, show_cell
from fcorr.reproduce.report.items import ReportTable
from fcorr.reproduce.report.paper import paper_figure
from fcorr.reproduce.report.selecting import Records, describe_data, group_models
from fcorr.reproduce.runs import Record

Significance = Mapping[str, float]
"""Of each feature."""

N_FIRST = {"baf": 10, "claims": 15}
"""How many features the paper shows."""

NETWORKS = ("FCorr", "FCorr + CAR", "FT-Transformer")
TREES = "LightGBM"
_KINDS = {f"{TREES}, {kind}": (TREES, kind) for kind in ("split", "gain")}
MEASURES = {**{name: (name, "significance") for name in NETWORKS}, **_KINDS}
"""Model and kind of significance of each measure."""


def significance_tables(records: Records) -> Iterator[ReportTable]:
    """Make the table of how far models agree, if there are any to compare."""
    rows, said = [], []
    for experiment, n_first in N_FIRST.items():
        found = _by_seed(records.get(experiment, []), experiment)
        compared = [(a, b) for a, b in combinations(MEASURES, 2) if found[a].keys() & found[b]]
        rows += [_compare(experiment, a, b, found[a], found[b], n_first) for a, b in compared]
        if compared:
            named = {MEASURES[name][0] for pair in compared for name in pair}
            data = describe_data([r for r in records[experiment] if r["model"] in named])
            said.append(f"{experiment}: the first {n_first}. {data}")
    if rows:
        header = [
            "Experiment",
            "Measure",
            "and",
            "Shared of the first",
            "Rank correlation",
            "Seeds",
        ]
        caption = (
            "How many of the most significant features two measures share, and Spearman's "
            "correlation of all features' ranks, seed by seed; mean ± standard deviation over "
            "seeds, in parentheses the paper's figure. The paper shows LightGBM's own importance, "
            f"which by default counts splits. {' '.join(said)}"
        )
        title, table = "Agreement of significances", TextTable(header, rows)
        yield ReportTable("significance", title, caption, table, n_labels=3)


def mean_significance(records: list[Record], model: str, kind: str) -> dict[str, float]:
    """Average a model's significance of each feature over seeds; {} if there is none."""
    found = [
        record["significance"][kind]
        for record in records
        if record["model"] == model and is_whole(record, kind)
    ]
    if not found:
        return {}
    shared = [name for name in found[0] if all(name in one for one in found)]
    return {name: float(np.mean([one[name] for one in found])) for name in shared}


def first_features(significance: Significance, n_first: int) -> list[str]:
    """List the most significant features; of equal ones, the first named.

    Examples
    --------
    >>> first_features({"age": 0.1, "income": 2.0, "zip": 0.5}, 2)
    ['income', 'zip']
    """
    return sorted(significance, key=lambda name: -significance[name])[:n_first]


def count_shared(one: Significance, other: Significance, n_first: int) -> int:
    """Count the features that are among the first of both."""
    return len(set(first_features(one, n_first)) & set(first_features(other, n_first)))


def correlate_ranks(one: Significance, other: Significance) -> Value:
    """Correlate ranks of the features that both have; None if either has them all equal.

    Examples
    --------
    >>> correlate_ranks({"a": 1, "b": 2, "c": 9}, {"a": 0.5, "b": 0.1, "c": 0.7})
    0.5
    """
    shared = [name for name in one if name in other]
    values = [[of[name] for name in shared] for of in (one, other)]
    if any(len(set(of)) < 2 for of in values):
        return None
    return float(spearmanr(*values).statistic)


def _by_seed(records: list[Record], experiment: str) -> dict[str, dict[int, Significance]]:
    groups = group_models(records, experiment)
    return {
        name: {
            record["seed"]: record["significance"][kind]
            for record in groups.get(model, [])
            if is_whole(record, kind)
        }
        for name, (model, kind) in MEASURES.items()
    }


def is_whole(record: Record, kind: str) -> bool:
    """Say whether there is a number for each feature: a fit that diverged has none."""
    found = record["significance"].get(kind)
    return bool(found) and None not in found.values()


def _compare(
    experiment: str,
    a: str,
    b: str,
    one: dict[int, Significance],
    other: dict[int, Significance],
    n_first: int,
) -> list[str]:
    seeds = sorted(one.keys() & other)
    shared: list[Value] = [count_shared(one[s], other[s], n_first) for s in seeds]
    ranks = [correlate_ranks(one[s], other[s]) for s in seeds]
    is_papers = b == f"{TREES}, split"
    paper = paper_figure(f"{experiment}_overlap", a, f"top {n_first}") if is_papers else None
    return [
        experiment,
        a,
        b,
        show_cell(shared, paper, decimals=1, paper_decimals=0),
        show_cell(ranks, decimals=2),
        str(len(seeds)),
    ]
