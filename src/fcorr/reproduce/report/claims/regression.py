"""Claims about the regression (§4.3), on generated claims and on real motor policies."""

import math

from fcorr.reproduce.report.claims.places import AMOUNTS, MOTOR, Place
from fcorr.reproduce.report.claims.verdicts import (
    LITTLE_GINI,
    NOTHING,
    ZERO_AMOUNT,
    Claim,
    Finding,
    Verdict,
    are_zero,
    count,
    is_missing,
    judge,
    judge_fits,
    show,
    where_learnt,
)
from fcorr.reproduce.report.paper import paper_figure
from fcorr.reproduce.report.results import Results
from fcorr.reproduce.report.selecting import AMOUNT_FLIPS, has_learnt

_CLAIMS = AMOUNTS.experiment
_CHEAP = 0.005  # of the deviance
_ENOUGH_SEEDS = 4  # to tell a difference by


def _trees_lead(results: Results) -> Finding | None:
    models = ("FCorr", "FT-Transformer")
    found = [results.difference(_CLAIMS, "LightGBM", model, "Gini") for model in models]
    differences = [difference for difference in found if difference is not None]
    if len(differences) < len(models):
        return None
    parts = [difference.sign > 0 for difference in differences]
    ginis = ", ".join(
        f"{model} {results.mean(_CLAIMS, model, 'Gini'):.2f}" for model in ("LightGBM", *models)
    )
    texts = [f"claims {ginis}; LightGBM − FCorr {found[0]}, − FT-Transformer {found[1]}"]
    for place in MOTOR:
        trees = place.by_seed(results, "LightGBM", "Gini")
        networks = place.by_seed(results, "FCorr", "Gini")
        if not trees or not networks:
            continue
        # Trees draw nothing, and these tables are fixed: one fit stands for all seeds.
        (gini,) = trees.values()
        difference = Results.compare(dict.fromkeys(networks, gini), networks)
        parts.append(difference is not None and difference.sign > 0)
        texts.append(f"{place.table} LightGBM {gini:.3f}, − FCorr {difference}")
    return Finding(judge(parts), f"Gini, test rows: {'; '.join(texts)}.{_describe_others(results)}")


def _describe_others(results: Results) -> str:
    """Name what is not in the paper: trees with a loss for amounts, and our defaults."""
    found = [
        (model, results.mean(_CLAIMS, model, "Gini"))
        for model in ("LightGBM, Tweedie", "FCorr, defaults")
    ]
    known = ", ".join(f"{model} {gini:.2f}" for model, gini in found if not math.isnan(gini))
    return f" Beside them, on the claims: {known}." if known else ""


def _fcorr_against_ft(results: Results) -> Finding | None:
    models = ("FCorr", "FT-Transformer")
    found = results.difference(_CLAIMS, *models, "Gini")
    if found is None:
        return None
    described = " and ".join(
        f"{model} {results.mean(_CLAIMS, model, 'Gini'):.2f} after "
        f"{results.select(_CLAIMS, model)[0]['training']['epochs']} passes over the rows"
        for model in models
    )
    return Finding(
        judge([found.sign > 0]),
        f"Test Gini: {described}; difference {found} (the paper: +0.08).",
    )


def _collapsed_network(results: Results) -> Finding | None:
    records = results.select(_CLAIMS, "FFN")
    if not records:
        return None
    constant = [not has_learnt(record) for record in records]
    printed = paper_figure("claims_constant", "FFN", "prediction")
    beside = f" The paper's predicts {printed:.2f} for all." if printed is not None else ""
    return Finding(
        judge_fits(constant),
        f"The FFN ends at a constant {count(constant)}; its mean test Gini is "
        f"{results.mean(_CLAIMS, 'FFN', 'Gini'):.2f}.{beside}",
    )


def _flips(results: Results) -> Finding | None:
    plain, car = (results.mean(_CLAIMS, model, "AvgIF") for model in ("FCorr", "FCorr + CAR"))
    if is_missing(plain, car):
        return None
    zero = are_zero(results, _CLAIMS, "FCorr + CAR", AMOUNT_FLIPS, ZERO_AMOUNT)
    return Finding(
        judge(zero),
        f"AvgIF {show(plain)} without, {show(car)} with CAR, test rows; all three flip metrics are "
        f"0.00 {count(zero)}.",
    )


def _ft_flips(results: Results) -> Finding | None:
    models = ("FT-Transformer + CAR", "FT-Transformer")
    # Between seeds they differ several times over: it is how many times they fall that counts.
    found = {metric: results.log_ratio(_CLAIMS, *models, metric) for metric in AMOUNT_FLIPS}
    if any(difference is None for difference in found.values()):
        return None
    car, plain = (results.mean(_CLAIMS, model, "AvgIF") for model in models)
    lowered = [difference is not None and difference.sign < 0 for difference in found.values()]
    text = ", ".join(f"{metric} {difference:.2f}" for metric, difference in found.items())
    # Bias that is left says something only where CAR took some of it.
    return Finding(
        judge([*lowered, car > NOTHING * plain]) if any(lowered) else Verdict.FAILS,
        f"AvgIF {show(plain)} without, {show(car)} with CAR, test rows. log10 of the ratios: "
        f"{text}.",
    )


def _price(results: Results) -> Finding | None:
    models = ("FCorr + CAR", "FCorr")
    found = results.difference(_CLAIMS, *models, "Gini")
    if found is None:
        return None
    records = results.select(_CLAIMS, "FCorr + CAR")
    learnt = {record["seed"] for record in records if has_learnt(record)}
    text = f"Test Gini, FCorr + CAR − FCorr: {found} (the paper: −0.04)."
    if len(learnt) < len(records):
        there = results.at_seeds(_CLAIMS, learnt).difference(_CLAIMS, *models, "Gini")
        text += (
            f" {len(records) - len(learnt)} of {len(records)} fits end at a constant; at the other "
            f"seeds {there}."
        )
    return Finding(judge([found.mean > -LITTLE_GINI]), text + _describe_fits(results))


def _describe_fits(results: Results) -> str:
    """List FCorr + CAR's Gini fit by fit, beside λ, which varies between draws."""
    texts = [
        f"{record['performance']['test']['Gini']:.2f} ({weight:.0e})"
        for record in results.select(_CLAIMS, "FCorr + CAR")
        if (weight := record["training"].get("car_weight")) is not None
    ]
    if not texts:
        return ""
    return f" FCorr + CAR fit by fit, and λ = 10^⌊log10 ratio⌋: {', '.join(texts)}."


def _groups(model: str) -> Claim:
    def check(results: Results) -> Finding | None:
        found = results.difference(_CLAIMS, f"{model} + CAR", model, "DPD")
        if found is None:
            return None
        text = f"DPD, {model} + CAR − {model}: {found:.2f}."
        removed = results.difference(_CLAIMS, "FCorr + CAR", "FCorr + Rem", "DPD")
        if model == "FCorr" and removed is not None:
            text += f" FCorr + CAR − FCorr + Rem: {removed:.2f}."
        return Finding(judge([found.sign < 0]), text)

    return Claim(
        "4.3",
        f"CAR also lowers the difference between groups' mean predictions of {model} (DPD).",
        (_CLAIMS,),
        where_learnt(check, _CLAIMS, model, f"{model} + CAR", at_least=_ENOUGH_SEEDS),
    )


def _motor(place: Place, name: str) -> Claim:
    def check(results: Results) -> Finding | None:
        plain, car, exact = (
            place.mean(results, model, "AvgIF")
            for model in ("FCorr", "FCorr + CAR", "FCorr, defaults")
        )
        price, removal = (
            place.difference(results, model, "FCorr", "deviance")
            for model in ("FCorr + CAR", "FCorr + Rem")
        )
        if price is None or is_missing(plain, car):
            return None
        flips = place.by_seed(results, "FCorr + CAR", "AvgIF")
        invariant = {seed: value < place.limit(results) for seed, value in flips.items()}
        base, paid = (place.by_seed(results, m, "deviance") for m in ("FCorr", "FCorr + CAR"))
        cheap = {seed: paid[seed] - base[seed] < _CHEAP * base[seed] for seed in paid.keys() & base}
        beside = "" if math.isnan(exact) else f", {show(exact)} with our default"
        level = place.mean(results, "FCorr", "deviance")
        return Finding(
            judge([invariant[seed] and cheap[seed] for seed in cheap]),
            f"AvgIF of frequencies {show(plain)} without, {show(car)} with CAR, invariant "
            f"{count(list(invariant.values()))}{beside}. Poisson deviance {level:.4f}, with CAR "
            f"{price} ({price.mean / level:.2%}), with the column removed {removal}.",
        )

    return Claim(
        "",
        f"On {name}, CAR makes predictions invariant to {place.column} at less than 0.5 % of the "
        "deviance.",
        ("motor",),
        check,
        place.table,
    )


CLAIMS = (
    Claim("4.3", "LightGBM predicts best.", (_CLAIMS, "motor"), _trees_lead),
    Claim("4.3", "FCorr predicts better than FT-Transformer.", (_CLAIMS,), _fcorr_against_ft),
    Claim(
        "4.3",
        "A plain feed-forward network collapses to a constant prediction.",
        (_CLAIMS,),
        _collapsed_network,
    ),
    Claim(
        "4.3",
        "With CAR, FCorr's flip metrics are 0.00.",
        (_CLAIMS,),
        where_learnt(_flips, _CLAIMS, "FCorr", "FCorr + CAR"),
    ),
    Claim(
        "4.3",
        "CAR lowers FT-Transformer's flip metrics, and leaves some.",
        (_CLAIMS,),
        where_learnt(
            _ft_flips, _CLAIMS, "FT-Transformer", "FT-Transformer + CAR", at_least=_ENOUGH_SEEDS
        ),
    ),
    Claim("4.3, its table", "CAR costs some ranking power (Gini), not much.", (_CLAIMS,), _price),
    _groups("FCorr"),
    _groups("FT-Transformer"),
)

OURS = (
    _motor(MOTOR[0], "Belgian motor policies"),
    _motor(MOTOR[1], "French motor policies"),
)
