"""A sensitive column with an effect, and a proxy without one: what models give the proxy.

Models on ``make_proxy_bias``, several seeds: with the sensitive column at work, with the column
removed, the two exact forms, and the removed one with its scores repaired to parity. For each the
effect that it gives the proxy (the truth is 0), how well it predicts, what a flip changes, how far
the groups are apart, and proxy discrimination by the population's own probabilities. Run with
``make bench-proxy``; writes benchmarks/results/proxy.jsonl and docs/tables/proxy.md.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from fcorr import FCorrClassifier, QuantileRepair, __version__
from fcorr.data import make_proxy_bias
from fcorr.data.generators import TRUE_EFFECTS
from fcorr.metrics import (
    FlippedScores,
    average_individual_fairness,
    demographic_parity_difference,
    demographic_unfairness,
    equal_opportunity_difference,
    equalized_odds_difference,
    flip_changes,
    flip_scores,
    proxy_discrimination,
)

HERE = Path(__file__).parent
SEEDS = range(5)
N_ROWS = 20_000
# A single network with one number for each feature, whose fits take seconds: default packs are in
# benchmarks/tables.py.
NETWORK = {"main_effects": False, "beta2": 0.95}
MODELS: dict[str, dict[str, Any]] = {
    "aware: the column at work": {"sensitive": "S", "invariance": None, "car": None},
    "removed: the column held constant": {},
    "adapt": {"sensitive": "S", "invariance": "adapt"},
    "marginal": {"sensitive": "S", "invariance": "marginal"},
    "removed, then quantile repair": {},
}
GAPS = {
    "dpd": demographic_parity_difference,
    "eqodd": equalized_odds_difference,
    "eqopp": equal_opportunity_difference,
}


def held_constant(X: Any) -> Any:
    return X.assign(S="no")


def run(name: str, seed: int) -> dict:
    view = held_constant if name.startswith("removed") else lambda X: X
    X, y = make_proxy_bias(N_ROWS, task="classification", random_state=seed)
    X = X.to_pandas()
    model = FCorrClassifier(**MODELS[name], advanced=NETWORK, random_state=seed)
    model.fit(view(X), y)
    if name.endswith("repair"):
        # Of rows that the model was not fitted to; the repair reads the column, the model does not.
        blind = make_pipeline(FunctionTransformer(held_constant), FrozenEstimator(model))
        X, y = make_proxy_bias(N_ROWS, task="classification", random_state=2_000 + seed)
        model, view = QuantileRepair(blind, "S").fit(X.to_pandas(), y), lambda X: X
    X, y = make_proxy_bias(N_ROWS, task="classification", random_state=1_000 + seed)
    X = X.to_pandas()
    flips = flip_scores(lambda X: model.predict_proba(view(X)), X, "S")
    scores = flips.factual
    decisions, groups = (scores >= 0.5).astype(int), X["S"].to_numpy()
    return {
        "model": name,
        "seed": seed,
        "fcorr_version": __version__,
        "proxy_effect": proxy_effect(X, scores),
        "auroc": float(roc_auc_score(y, scores)),
        "avgif": average_individual_fairness(flips),
        "largest_change": flip_changes(flips)["max"],
        "uf": demographic_unfairness(scores, sensitive_features=groups),
        "pd": proxy_discrimination(scores, true_estimates(X)),
        **{name: float(gap(y, decisions, sensitive_features=groups)) for name, gap in GAPS.items()},
    }


def true_estimates(X: Any) -> FlippedScores:
    """Return the population's probabilities for each row, were S "no" or "yes"."""
    risk = TRUE_EFFECTS["X1"] * X["X1"] + TRUE_EFFECTS["X2"] * X["X2"]
    risk += TRUE_EFFECTS["X3"] * ((X["X3"] == "yes") - 0.5)
    log_odds = np.column_stack([risk - TRUE_EFFECTS["S"] / 2, risk + TRUE_EFFECTS["S"] / 2])
    return FlippedScores(("no", "yes"), (X["S"] == "yes").astype(int), 1 / (1 + np.exp(-log_odds)))


def proxy_effect(X: Any, scores: np.ndarray) -> float:
    """Effect of a step of one in the proxy on the log-odds.

    The coefficient of Z in the line that fits the model's log-odds best, in all five columns: what
    moves with S is not the proxy's.
    """
    log_odds = np.log(scores) - np.log1p(-scores)
    columns = [np.ones(len(X)), X["Z"], X["X1"], X["X2"], X["X3"] == "yes", X["S"] == "yes"]
    design = np.column_stack(columns).astype(float)
    return float(np.linalg.lstsq(design, log_odds, rcond=None)[0][1])


def write_table(records: list[dict], path: Path) -> None:
    names = {
        "proxy_effect": "effect given to the proxy (truth: 0)",
        "auroc": "AUROC",
        "avgif": "AvgIF",
        "largest_change": "largest change",
        "dpd": "DPD",
        "eqodd": "EqOdd",
        "eqopp": "EqOpp",
        "uf": "UF",
        "pd": "PD",
    }
    lines = [f"| | {' | '.join(names.values())} |", f"|---|{'---:|' * len(names)}"]
    for model in MODELS:
        cells = []
        for name in names:
            values = [r[name] for r in records if r["model"] == model]
            if name in ("avgif", "largest_change"):
                cells.append("0" if max(values) == 0 else f"{np.mean(values):.1e}")
            else:
                cells.append(f"{np.mean(values):.3f} ± {np.std(values):.3f}")
        lines.append(f"| {model} | {' | '.join(cells)} |")
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    records = []
    for name in MODELS:
        for seed in SEEDS:
            records.append(run(name, seed))
            print(json.dumps(records[-1]), flush=True)
    results = HERE / "results" / "proxy.jsonl"
    results.write_text("".join(json.dumps(record) + "\n" for record in records))
    write_table(records, HERE.parent / "docs" / "tables" / "proxy.md")


if __name__ == "__main__":
    main()
