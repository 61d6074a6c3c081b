"""Claims about the weight of CAR and the number of layers (appendices E and F)."""

import numpy as np
from scipy.stats import spearmanr

from fcorr.reproduce.report.claims.verdicts import (
    ZERO,
    Claim,
    Finding,
    Verdict,
    are_zero,
    count,
    is_missing,
    judge,
    not_testable,
    show,
    where_learnt,
)
from fcorr.reproduce.report.results import Results
from fcorr.reproduce.report.selecting import FLIPS
from fcorr.reproduce.settings import read_config

_MODEL = "FCorr + CAR"
_LIMITED = 0.5  # of AvgIF without CAR, taken at most
_STEADILY = -0.8  # rank correlation with λ


def _weights() -> list[float]:
    weights: list[float] = read_config("controllability")["vary"]["car"]
    return weights


def _means(results: Results, metric: str) -> list[float]:
    return [results.mean("controllability", _MODEL, metric, car=weight) for weight in _weights()]


def _controllable(results: Results) -> Finding | None:
    means = {metric: _means(results, metric) for metric in FLIPS}
    if any(is_missing(*of) for of in means.values()):
        return None
    found = {metric: float(spearmanr(_weights(), of).statistic) for metric, of in means.items()}
    text = ", ".join(f"{metric} {value:.2f}" for metric, value in found.items())
    return Finding(
        judge([found[metric] < _STEADILY for metric in ("AvgIF", "AUROC gap", "AUPRC gap")]),
        f"Spearman's correlation of λ and the mean over seeds, {len(_weights())} values of λ: "
        f"{text}.",
    )


def _small_weights(results: Results) -> Finding | None:
    means = _means(results, "AvgIF")
    if is_missing(*means) or len(means) < 3:
        return None
    left = [value / means[0] for value in means[1:]]
    text = ", ".join(
        f"{weight:g}: {share:.2g}" for weight, share in zip(_weights()[1:], left, strict=True)
    )
    steadily = float(spearmanr(_weights()[1:], left).statistic) < _STEADILY
    return Finding(
        judge([left[0] > 1 - _LIMITED, steadily]),
        f"AvgIF, as a share of that without CAR, by λ: {text}. With CAR, however small λ, "
        "training also has the augmented inputs.",
    )


def _f1_is_less_controllable(results: Results) -> Finding | None:
    metrics = ("AvgIF", "F1 gap")
    means = {metric: _means(results, metric) for metric in metrics}
    if any(is_missing(*of) for of in means.values()):
        return None
    # Where one of them is next to 0 there is nothing left to control, or to vary.
    both = [i for i in range(len(_weights())) if min(means[m][i] for m in metrics) > 10 * ZERO]
    if len(both) < 3:
        return Finding(Verdict.NOT_TESTABLE, "They are both there at too few values of λ.")
    weights = [_weights()[i] for i in both]
    falls = {m: float(spearmanr(weights, [means[m][i] for i in both]).statistic) for m in metrics}
    varies = {
        m: float(np.mean([_spread(results, m, weight) for weight in weights])) for m in metrics
    }
    return Finding(
        judge([varies["F1 gap"] > varies["AvgIF"], falls["F1 gap"] > falls["AvgIF"]]),
        f"AvgIF and F1 gap at the {len(both)} values of λ at which both are there: deviation over "
        f"seeds as a share of the mean {varies['AvgIF']:.2f} and {varies['F1 gap']:.2f}, "
        f"Spearman's correlation with λ {falls['AvgIF']:.2f} and {falls['F1 gap']:.2f}.",
    )


def _spread(results: Results, metric: str, weight: float) -> float:
    values = list(results.by_seed("controllability", _MODEL, metric, car=weight).values())
    return float(np.std(values) / np.mean(values))


def _deeper_is_invariant(results: Results) -> Finding | None:
    texts, zero = [], []
    for depth in (3, 5):
        largest = results.largest("multilayer", _MODEL, FLIPS, n_layers=depth)
        if is_missing(largest):
            return None
        below = are_zero(results, "multilayer", _MODEL, FLIPS, ZERO, n_layers=depth)
        zero += below
        texts.append(f"{depth} layers {show(largest)}, 0.0000 {count(below)}")
    return Finding(
        judge(zero),
        f"Largest mean of the four flip metrics, test rows: {'; '.join(texts)}.",
    )


def _deeper_is_worse(results: Results) -> Finding | None:
    one, *others = (
        results.by_seed("multilayer", _MODEL, "AUROC", n_layers=depth) for depth in (1, 3, 5)
    )
    texts, parts = [], []
    for depth, other in zip((3, 5), others, strict=True):
        found = Results.compare(other, one)
        if found is None:
            return None
        lower = sum(other[seed] < one[seed] for seed in one.keys() & other.keys())
        parts.append(found.sign < 0)
        texts.append(f"with {depth} {found}, lower in {lower} of {found.n} fits")
    return Finding(
        judge(parts),
        f"AUROC with one layer {np.mean(list(one.values())):.4f}; {'; '.join(texts)}.",
    )


CLAIMS = (
    Claim(
        "E",
        "AvgIF, AUROC and AUPRC gap fall steadily as λ rises.",
        ("controllability",),
        _controllable,
    ),
    Claim(
        "E",
        "A small λ takes little of AvgIF, a larger one more.",
        ("controllability",),
        _small_weights,
    ),
    Claim(
        "E",
        "The F1 gap varies more and is less controllable than AvgIF.",
        ("controllability",),
        _f1_is_less_controllable,
    ),
    Claim(
        "F",
        "With 3 and 5 encoder layers CAR still brings the flip metrics to 0.0000.",
        ("multilayer",),
        where_learnt(_deeper_is_invariant, "multilayer", _MODEL),
    ),
    Claim("F", "More layers predict worse.", ("multilayer",), _deeper_is_worse),
    not_testable(
        "F",
        "Regularising the last layer's attention fails with more than two layers; matrices of "
        "deeper layers cannot be read as dependence.",
        "No figure is given for the first, and the second is a matter of reading; the matrices "
        "are shown below.",
    ),
)
