"""Claims about the method (§3): invariant attention, λ, cost, residual."""

import math

import numpy as np

from fcorr.reproduce.costs import AUGMENTED, BY_DEFINITION, CLOSED_FORM
from fcorr.reproduce.report.claims.verdicts import (
    Claim,
    Finding,
    is_missing,
    judge,
    not_testable,
    show,
)
from fcorr.reproduce.report.paper import paper_figure
from fcorr.reproduce.report.results import Results

_LARGEST_POWER = 38  # of ten that a float32, in which networks are trained, holds
_NO_CHANGE = 1e-4  # of a probability: the paper prints an AvgIF of .0001 on Adult
_TABLES = {"baf": ("customer_age",), "adult": ("race", "sex")}


def _attention_is_enough(results: Results) -> Finding | None:
    """Compare what is left of CAR with what is left of the flips, in both transformers."""
    texts: list[str] = []
    of_fcorr: list[float] = []
    of_ft: list[float] = []
    for experiment, column in _places():
        for model, found in (("FCorr + CAR", of_fcorr), ("FT-Transformer + CAR", of_ft)):
            flips = results.mean(experiment, model, "AvgIF", column=column)
            records = results.select(experiment, model, column=column)
            if is_missing(flips):
                return None
            found.append(flips)
            car = float(np.median([record["training"]["last_car"] for record in records]))
            texts.append(f"{experiment} ({column}) {model} {car:.0e} and {show(flips)}")
    return Finding(
        judge([all(v < _NO_CHANGE for v in of_fcorr), all(v > 10 * _NO_CHANGE for v in of_ft)]),
        f"CAR at the end of training (median) and AvgIF on test rows: {'; '.join(texts)}.",
    )


def _places() -> list[tuple[str, str]]:
    return [(experiment, column) for experiment in _TABLES for column in _TABLES[experiment]]


def _augmentation_is_faster(results: Results) -> Finding | None:
    ratios = {}
    for table in ("bank_fraud", "claims"):
        epochs = [
            record["cost"]["seconds_per_epoch"]
            for record in results.select("complexity", measure="epochs", table=table)
        ]
        if not epochs:
            return None
        ratios[table] = [
            [of[form] / of[AUGMENTED] for of in epochs] for form in (BY_DEFINITION, CLOSED_FORM)
        ]
    papers = [_papers_ratio(table) for table in ratios]
    text = "; ".join(
        f"{table}: {np.mean(first):.2f} times by definition, {np.mean(second):.2f} times in closed "
        "form"
        for table, (first, second) in ratios.items()
    )
    slower = [min(of_form) > 1 for of_table in ratios.values() for of_form in of_table]
    return Finding(
        judge(slower),
        f"An epoch with CDA, as a multiple of one with augmentation: {text}; the paper: "
        f"{papers[0]:.2f} and {papers[1]:.2f} times, on a GPU. By definition means all p × p "
        "weights for each category, where augmentation here has attention in linear time; the "
        "closed form has it too, and is the fair comparison.",
    )


def _papers_ratio(table: str) -> float:
    slow, fast = (
        paper_figure("seconds_per_epoch", table, form) for form in (BY_DEFINITION, AUGMENTED)
    )
    assert slow is not None
    assert fast is not None
    return slow / fast


def _no_more_parameters(results: Results) -> Finding | None:
    counts = {
        (table, model): record["cost"]["parameters"]
        for table in ("bank_fraud", "claims")
        for model in ("FCorr", "FCorr + CAR")
        for record in results.select("complexity", model, measure="size", table=table)
    }
    if len(counts) < 4:
        return None
    equal = [
        counts[table, "FCorr"] == counts[table, "FCorr + CAR"] for table in ("bank_fraud", "claims")
    ]
    text = " and ".join(f"{counts[table, 'FCorr + CAR']:,}" for table in ("bank_fraud", "claims"))
    return Finding(judge(equal), f"{text} parameters with CAR, as many as without.")


def _rule_as_printed(results: Results) -> Finding | None:
    texts, usable = [], []
    for experiment in ("synthetic", "baf", "adult", "claims"):
        ratios = [
            record["training"]["car_ratio"]
            for record in results.select(experiment, "FCorr + CAR")
            if record["training"].get("car_ratio")
        ]
        if ratios:
            usable += [ratio < _LARGEST_POWER + 1 for ratio in ratios]
            texts.append(f"{experiment} {min(ratios):,.1f} to {max(ratios):,.0f}")
    if not texts:
        return None
    return Finding(
        judge(usable),
        f"The first ratio L_perf/L_CAR: {'; '.join(texts)}. 10 to that power is more than a "
        f"float32 holds in {usable.count(False)} of {len(usable)} fits. Read as 10^⌊log10 ratio⌋ "
        "(car='paper') it cannot overflow; but a loss that can be negative, such as that of "
        "Poisson regression, gives no λ in either reading.",
    )


def _rule_reaches_invariance(results: Results) -> Finding | None:
    found = {}
    for experiment, column in [("synthetic", "X1"), *_places()]:
        flips = results.mean(experiment, "FCorr + CAR", "AvgIF", column=column)
        if is_missing(flips):
            return None
        found[f"{experiment} ({column})"] = flips
    text = ", ".join(f"{name} {show(value)}" for name, value in found.items())
    return Finding(
        judge([value <= _NO_CHANGE for value in found.values()]),
        f"AvgIF of FCorr + CAR, test rows: {text}.",
    )


def _parameters(table: str, name: str, section: str, count: int, n_head: int) -> Claim:
    def check(results: Results) -> Finding | None:
        records = results.select("complexity", "FCorr", measure="size", table=table)
        if not records:
            return None
        cost = records[0]["cost"]
        n, head = cost["parameters"], cost["head_parameters"]
        return Finding(
            judge([n == count, head == n_head]),
            f"{n:,} parameters, {head:,} of them ({head / n:.1%}) in the head.",
        )

    return Claim(
        section,
        f"FCorr has {count:,} parameters at the size of {name}, {n_head / count:.1%} of them in "
        "the feed-forward head.",
        "complexity",
        check,
    )


def _memory(table: str, section: str, n_features: int, papers: str) -> Claim:
    def check(results: Results) -> Finding | None:
        kept = {}
        for model in ("FCorr", "FCorr + CAR", "FT-Transformer"):
            records = results.select("complexity", model, measure="size", table=table)
            if not records:
                return None
            kept[model] = records[0]["cost"]["kept_megabytes"]
        shares = [kept[model] / kept["FT-Transformer"] for model in ("FCorr", "FCorr + CAR")]
        return Finding(
            judge([share < 0.1 for share in shares]),
            f"Kept for the gradient of 64 rows: FCorr {kept['FCorr']:.2f} MB, with CAR "
            f"{kept['FCorr + CAR']:.2f} MB, FT-Transformer {kept['FT-Transformer']:.2f} MB: "
            f"{shares[0]:.1%} and {shares[1]:.1%} of it. The paper: {papers}, on a GPU; "
            "FT-Transformer has other sizes there and, it seems, keeps its attention matrices, "
            "which a fused kernel does not.",
        )

    return Claim(
        section,
        "A training step of FCorr takes a small share of the memory of FT-Transformer's "
        f"({n_features} features).",
        "complexity",
        check,
    )


def _residual_breaks(results: Results) -> Finding | None:
    texts, broken = [], []
    for experiment, column in _places():
        for model in ("FCorr + CAR", "FCorr + Res + CAR"):
            flips = results.by_seed(experiment, model, "AvgIF", column=column)
            changes = results.by_seed(experiment, model, "largest change", column=column)
            if not flips:
                return None
            over = [value > _NO_CHANGE for value in flips.values()]
            texts.append(
                f"{experiment} ({column}) {model} {sum(over)} of {len(over)} (largest change "
                f"{show(max(changes.values()))})"
            )
            if model == "FCorr + Res + CAR":
                broken += over
    return Finding(
        judge([sum(broken) > 0, sum(broken) > len(broken) / 2]),
        f"Fits whose AvgIF is above 1e-4 on test rows: {'; '.join(texts)}.",
    )


def _collapse_restores(results: Results) -> Finding | None:
    changes = [
        measured[subset]["largest change"]
        for experiment in ("synthetic", "baf", "adult")
        for record in results.select(experiment, "FCorr + Res + CAR, collapsed")
        for measured in record["fairness"].values()
        for subset in ("train", "test")
    ]
    if not changes:
        return None
    return Finding(
        judge([change == 0 for change in changes]),
        f"Largest change of any row under a flip in {len(changes)} measurements: "
        f"{show(max(changes))}.",
    )


def _price_of_exactness(results: Results) -> Finding | None:
    texts, parts = [], []
    for experiment, column in _places():
        found = results.difference(
            experiment, "FCorr, defaults", "FCorr + CAR", "AUROC", column=column
        )
        change = max(
            results.by_seed(
                experiment, "FCorr, defaults", "largest change", column=column
            ).values(),
            default=math.nan,
        )
        if found is None:
            return None
        parts.append(change == 0 and found.sign >= 0)
        texts.append(f"{experiment} ({column}) {found}, largest change {show(change)}")
    return Finding(judge(parts), f"AUROC, our defaults − FCorr + CAR: {'; '.join(texts)}.")


CLAIMS = (
    Claim(
        "1, 3.2",
        "Where attention is made invariant, FCorr's predictions are, and those of a standard "
        "transformer are not.",
        "",
        _attention_is_enough,
    ),
    Claim(
        "3.2",
        "Input augmentation makes an epoch with CAR shorter than CDA, which recomputes attention "
        "for every category.",
        "complexity",
        _augmentation_is_faster,
    ),
    Claim("3.2", "CAR by augmentation adds no parameters.", "complexity", _no_more_parameters),
    Claim(
        "3.2",
        "λ = 10^⌊L_perf/L_CAR⌋ of the first batch can be used as printed.",
        "",
        _rule_as_printed,
    ),
    Claim(
        "3.2",
        "λ of that rule, read as 10^⌊log10(L_perf/L_CAR)⌋, generally reaches invariance to flips.",
        "",
        _rule_reaches_invariance,
    ),
    not_testable(
        "3.2",
        "Penalising differences of predictions, or fixing the attention at its average over "
        "categories, costs more accuracy than CAR; a softmax over the original features alone "
        "lets attention weights explode.",
        "The paper mentions preliminary experiments and gives neither settings nor figures.",
    ),
    not_testable(
        "3.2",
        "Attention under augmentation converges to that of CDA within a few iterations.",
        "No figure is given, and the records here do not follow the matrices through training.",
    ),
    _parameters("bank_fraud", "BAF", "4.2", 11_064, 10_433),
    _parameters("claims", "InsurTech", "4.3", 21_767, 10_145),
    _memory("bank_fraud", "4.2", 31, "0.25 of 67.88 MB, 0.4 %"),
    _memory("claims", "4.3", 581, "2.91 of 661.12 MB, 0.4 % (its text says 4.4 %)"),
    Claim("D.1", "A residual round the attention largely negates CAR.", "", _residual_breaks),
    not_testable(
        "5",
        "The framework meets regulators' expectations.",
        "Invariance to a flip of a column is measured here; whether a law is kept is not a "
        "property of a model's predictions alone.",
    ),
)

OURS = (
    Claim(
        "",
        "With the residual, collapsing the sensitive embedding restores invariance.",
        "",
        _collapse_restores,
    ),
    Claim(
        "",
        "Our defaults are exactly invariant, and no less accurate than FCorr + CAR.",
        "",
        _price_of_exactness,
    ),
)
