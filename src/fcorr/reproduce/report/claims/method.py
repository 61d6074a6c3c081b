"""Claims about the method (§3): its cost, its weight λ, and what it is compared with."""

import numpy as np

from fcorr.reproduce.costs import AUGMENTED, BY_DEFINITION, CLOSED_FORM
from fcorr.reproduce.report.claims.verdicts import (
    ZERO,
    Claim,
    Finding,
    Verdict,
    from_parts,
    is_missing,
    show,
)
from fcorr.reproduce.report.paper import paper_figure
from fcorr.reproduce.report.results import Results

_LARGEST_POWER = 308  # of ten that a float64 holds
_WITH_RULE = ("FCorr + CAR", "FCorr, splines + CAR", "FT-Transformer + CAR")
_FITS = ("synthetic", "baf", "adult", "claims")


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
            float(np.mean([of[form] / of[AUGMENTED] for of in epochs]))
            for form in (BY_DEFINITION, CLOSED_FORM)
        ]
    by_definition = {table: ratio[0] for table, ratio in ratios.items()}
    text = "; ".join(
        f"{table}: CDA by its definition takes {first:.2f} times the epoch of augmentation, in "
        f"closed form {second:.2f} times"
        for table, (first, second) in ratios.items()
    )
    faster = [ratio > 1 for ratio in by_definition.values()]
    grows = by_definition["claims"] > by_definition["bank_fraud"]
    papers = [_papers_ratio(table) for table in by_definition]
    return Finding(
        from_parts([*faster, grows]),
        f"{text}. The paper: {papers[0]:.2f} and {papers[1]:.2f} times, on a GPU.",
    )


def _papers_ratio(table: str) -> float:
    slow, fast = (
        paper_figure("seconds_per_epoch", table, form) for form in (BY_DEFINITION, AUGMENTED)
    )
    assert slow is not None
    assert fast is not None
    return slow / fast


def _rule_as_printed(results: Results) -> Finding | None:
    ratios = _first_ratios(results)
    if not ratios:
        return None
    n_over = sum(ratio >= _LARGEST_POWER + 1 for ratio in ratios)
    verdict = from_parts([ratio < _LARGEST_POWER + 1 for ratio in ratios])
    return Finding(
        verdict,
        f"10^⌊L_perf/L_CAR⌋ is more than a float64 holds in {n_over} of {len(ratios)} fits: the "
        f"first ratio is {min(ratios):,.1f} to {max(ratios):,.0f}. Read as 10^⌊log10 ratio⌋ it "
        "cannot overflow, which is what car='paper' does. A loss that can be negative, such as "
        "that of Poisson regression, has no such ratio at all.",
    )


def _rule_reaches_invariance(results: Results) -> Finding | None:
    found: dict[str, list[float]] = {}
    for experiment in _FITS:
        for record in results.select(experiment, "FCorr + CAR"):
            for column, measured in record["fairness"].items():
                scale = 1.0
                if experiment == "claims":  # an amount: relative to the plain model's
                    scale = results.mean("claims", "FCorr", "AvgIF") or 1.0
                key = f"{experiment} ({column})"
                found.setdefault(key, []).append(measured["test"]["AvgIF"] / scale)
    if not found:
        return None
    means = {name: float(np.mean(values)) for name, values in found.items()}
    limit = 1e-4  # the paper prints .0001 on Adult
    text = ", ".join(f"{name} {show(value)}" for name, value in means.items())
    return Finding(
        from_parts([value <= limit for value in means.values()]),
        f"AvgIF of FCorr + CAR with λ by the rule (read with the logarithm), test rows: {text}; "
        "that of claims as a share of the model's without CAR.",
    )


def _first_ratios(results: Results) -> list[float]:
    return [
        record["training"]["car_ratio"]
        for experiment in _FITS
        for model in _WITH_RULE
        for record in results.select(experiment, model)
        if record["training"].get("car_ratio")
    ]


def _parameters(table: str, count: int, share: float) -> Claim:
    name, experiment = {"bank_fraud": ("BAF", "4.2"), "claims": ("InsurTech", "4.3")}[table]

    def check(results: Results) -> Finding | None:
        records = results.select("complexity", "FCorr", measure="size", table=table)
        if not records:
            return None
        cost = records[0]["cost"]
        n, head = cost["parameters"], cost["head_parameters"]
        return Finding(
            from_parts([n == count, abs(head / n - share) < 0.001]),
            f"{n:,} parameters, {head:,} of them ({head / n:.1%}) in the head.",
        )

    return Claim(
        experiment,
        f"FCorr has {count:,} parameters at the size of {name}, {share:.1%} of them in the "
        "feed-forward head.",
        "complexity",
        check,
    )


def _memory(table: str, papers_share: float) -> Claim:
    section = {"bank_fraud": "4.2", "claims": "4.3"}[table]
    papers_text = " (its text: 4.4 %)" if table == "claims" else ""

    def check(results: Results) -> Finding | None:
        kept = {}
        for model in ("FCorr", "FCorr + CAR", "FT-Transformer"):
            records = results.select("complexity", model, measure="size", table=table)
            if not records:
                return None
            kept[model] = records[0]["cost"]["kept_megabytes"]
        shares = [kept[model] / kept["FT-Transformer"] for model in ("FCorr", "FCorr + CAR")]
        return Finding(
            from_parts([share < 0.1 for share in shares]),
            f"Kept for the gradient of 64 rows: FCorr {kept['FCorr']:.2f} MB, with CAR "
            f"{kept['FCorr + CAR']:.2f} MB, FT-Transformer {kept['FT-Transformer']:.2f} MB: "
            f"{shares[0]:.1%} and {shares[1]:.1%} of it. The paper's table comes to "
            f"{papers_share:.2%}{papers_text}, on a GPU and with an FT-Transformer of another "
            "size.",
        )

    return Claim(
        section,
        "A training step of FCorr takes a small share of the memory of FT-Transformer's "
        f"({'31' if table == 'bank_fraud' else '581'} features).",
        "complexity",
        check,
    )


def _residual_breaks(results: Results) -> Finding | None:
    found = {}
    for experiment, column in (("baf", "customer_age"), ("adult", "race"), ("adult", "sex")):
        values = [
            results.mean(experiment, model, "AvgIF", column=column)
            for model in ("FCorr + CAR", "FCorr + Res + CAR")
        ]
        if is_missing(*values):
            return None
        found[f"{experiment} ({column})"] = values
    negated = [with_residual > 10 * ZERO for _, with_residual in found.values()]
    text = "; ".join(
        f"{name}: {show(without)} without, {show(with_residual)} with the residual"
        for name, (without, with_residual) in found.items()
    )
    why = (
        ""
        if any(negated)
        else (
            " CAR moves the categories' embeddings together, and then the residual, too, carries "
            "no difference between them."
        )
    )
    return Finding(from_parts(negated), f"AvgIF of FCorr + CAR, test rows: {text}.{why}")


def _collapse_restores(results: Results) -> Finding | None:
    model = "FCorr + Res + CAR, collapsed"
    changes = [
        measured[subset]["largest change"]
        for experiment in ("synthetic", "baf", "adult")
        for record in results.select(experiment, model)
        for measured in record["fairness"].values()
        for subset in ("train", "test")
    ]
    if not changes:
        return None
    return Finding(
        from_parts([change == 0 for change in changes]),
        f"Largest change of any row under a flip in {len(changes)} measurements: "
        f"{show(max(changes))}. The collapsed embedding is one number for all categories.",
    )


def _not_testable(section: str, text: str, reason: str) -> Claim:
    return Claim(section, text, "", lambda results: Finding(Verdict.NOT_TESTABLE, reason))


CLAIMS = (
    Claim(
        "3.2",
        "Input augmentation makes an epoch with CAR shorter than recomputing attention for every "
        "category (CDA), the more so the more features there are.",
        "complexity",
        _augmentation_is_faster,
    ),
    Claim(
        "3.2",
        "λ = 10^⌊L_perf/L_CAR⌋ of the first batch can be used as printed.",
        "",
        _rule_as_printed,
    ),
    Claim("3.2", "That λ generally reaches invariance to flips.", "", _rule_reaches_invariance),
    _not_testable(
        "3.2",
        "Penalising differences of predictions, or fixing the attention at its average over "
        "categories, costs more accuracy than CAR.",
        "The paper mentions preliminary experiments and gives neither settings nor figures.",
    ),
    _not_testable(
        "3.2",
        "A softmax over the original features alone lets attention weights explode under CAR.",
        "No setting or figure is given. Our default form, whose predictions use that softmax, "
        "trains on all tables here.",
    ),
    _parameters("bank_fraud", 11_064, 1 - 631 / 11_064),
    _parameters("claims", 21_767, 10_145 / 21_767),
    _memory("bank_fraud", 0.25 / 67.88),
    _memory("claims", 2.91 / 661.12),
    Claim(
        "D.1",
        "A residual round the attention largely negates CAR.",
        "",
        _residual_breaks,
    ),
    Claim(
        "beyond the paper",
        "With the residual, collapsing the sensitive embedding restores invariance.",
        "",
        _collapse_restores,
    ),
    _not_testable(
        "5",
        "The framework meets regulators' expectations.",
        "Invariance to a flip of a column is measured here; whether a law is kept is not a "
        "property of a model's predictions alone.",
    ),
)
