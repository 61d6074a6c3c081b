"""Claims about the regression (§4.3), on generated claims and on real motor policies."""

import numpy as np

from fcorr.reproduce.report.claims.verdicts import (
    Claim,
    Finding,
    Verdict,
    from_parts,
    is_missing,
    show,
)
from fcorr.reproduce.report.results import Results
from fcorr.reproduce.report.significance import first_features

_CLAIMS = "claims"
_NOTHING = 1e-3  # of AvgIF without CAR: the paper prints amounts with two decimals


def _order(results: Results) -> Finding | None:
    models = ("LightGBM", "FCorr", "FT-Transformer")
    ginis = [results.mean(_CLAIMS, model, "Gini") for model in models]
    if is_missing(*ginis):
        return None
    trees, fcorr, ft = ginis
    return Finding(
        from_parts([trees >= fcorr, fcorr >= ft]),
        f"Test Gini: LightGBM {trees:.2f}, FCorr {fcorr:.2f}, FT-Transformer {ft:.2f} "
        "(it learnt from a third of the rows).",
    )


def _collapsed_network(results: Results) -> Finding | None:
    gini = results.mean(_CLAIMS, "FFN", "Gini")
    flips = results.mean(_CLAIMS, "FFN", "AvgIF")
    if is_missing(gini, flips):
        return None
    return Finding(
        from_parts([abs(gini) < 0.01 and flips == 0]),
        f"Test Gini of the FFN {gini:.2f}, its AvgIF {show(flips)}: a constant has 0 and 0.",
    )


def _flips(results: Results) -> Finding | None:
    plain, car = (results.mean(_CLAIMS, model, "AvgIF") for model in ("FCorr", "FCorr + CAR"))
    if is_missing(plain, car):
        return None
    share = car / plain if plain else 0.0
    return Finding(
        from_parts([share < _NOTHING]),
        f"AvgIF {show(plain)} without, {show(car)} with CAR, test rows.",
    )


def _ft_flips(results: Results) -> Finding | None:
    plain, car = (
        results.mean(_CLAIMS, model, "AvgIF")
        for model in ("FT-Transformer", "FT-Transformer + CAR")
    )
    if is_missing(plain, car):
        return None
    return Finding(
        from_parts([car < 0.9 * plain, car > _NOTHING * plain]),
        f"AvgIF {show(plain)} without, {show(car)} with CAR, test rows.",
    )


def _price(results: Results) -> Finding | None:
    found = results.difference(_CLAIMS, "FCorr + CAR", "FCorr", "Gini")
    if found is None:
        return None
    return Finding(
        from_parts([found.sign <= 0, found.mean > -0.05]),
        f"Test Gini, FCorr + CAR − FCorr: {found} (the paper: −0.04).",
    )


def _groups(results: Results) -> Finding | None:
    found = results.difference(_CLAIMS, "FCorr + CAR", "FCorr", "DPD")
    removed = results.difference(_CLAIMS, "FCorr + CAR", "FCorr + Rem", "DPD")
    if found is None or removed is None:
        return None
    verdict = {-1: Verdict.HOLDS, 0: Verdict.IN_PART, 1: Verdict.FAILS}[found.sign]
    return Finding(
        verdict,
        f"DPD (difference of mean predictions), FCorr + CAR − FCorr: {found.mean:+.1f} ± "
        f"{found.error:.1f}; FCorr + CAR − FCorr + Rem: {removed.mean:+.1f} ± {removed.error:.1f}.",
    )


def _most_significant(results: Results) -> Finding | None:
    found = {}
    for model, kind in (("FCorr", "significance"), ("LightGBM", "split"), ("LightGBM", "gain")):
        records = results.select(_CLAIMS, model)
        firsts = [first_features(record["significance"][kind], 1)[0] for record in records]
        if not firsts:
            return None
        found[f"{model} ({kind})"] = f"{firsts.count('CovgLimit')} of {len(firsts)}"
        if model == "FCorr":
            holds = np.mean([first == "CovgLimit" for first in firsts]) > 0.5
    text = ", ".join(f"{name} {share}" for name, share in found.items())
    return Finding(from_parts([bool(holds)]), f"CovgLimit, planted here, is first by: {text} fits.")


def _motor(table: str, column: str, name: str) -> Claim:
    def check(results: Results) -> Finding | None:
        where = {"table": table, "column": column}
        plain, car, exact = (
            results.mean("motor", model, "AvgIF", **where)
            for model in ("FCorr", "FCorr + CAR", "FCorr, defaults")
        )
        price = results.difference("motor", "FCorr + CAR", "FCorr", "deviance", **where)
        if price is None or is_missing(plain, car, exact):
            return None
        base = results.mean("motor", "FCorr", "deviance", **where)
        return Finding(
            from_parts([car < _NOTHING * plain, price.mean < 0.005 * base]),
            f"AvgIF of frequencies {show(plain)} without, {show(car)} with CAR, {show(exact)} of "
            f"our exact default; Poisson deviance {base:.4f}, with CAR {price}.",
        )

    return Claim(
        "4.3",
        f"On {name}, CAR makes predictions invariant to {column} at a small price.",
        "motor",
        check,
        table,
    )


CLAIMS = (
    Claim(
        "4.3",
        "LightGBM predicts best, and FCorr better than FT-Transformer.",
        _CLAIMS,
        _order,
    ),
    Claim(
        "4.3",
        "A plain feed-forward network collapses to a constant prediction.",
        _CLAIMS,
        _collapsed_network,
    ),
    Claim("4.3", "With CAR, FCorr's flip metrics are 0.00.", _CLAIMS, _flips),
    Claim(
        "4.3",
        "CAR lowers FT-Transformer's flip metrics, and leaves bias in it.",
        _CLAIMS,
        _ft_flips,
    ),
    Claim("4.3", "CAR costs some ranking power (Gini), not much.", _CLAIMS, _price),
    Claim("4.3", "CAR also lowers the difference between groups (DPD).", _CLAIMS, _groups),
    Claim(
        "4.3",
        "The coverage limit is the most significant feature, as in LightGBM.",
        _CLAIMS,
        _most_significant,
    ),
    Claim(
        "4.3",
        "CAR moves attention from insurer-made classes to InsurTech features, which are fairer.",
        "",
        lambda results: Finding(
            Verdict.NOT_TESTABLE,
            "The data is private, and which features are fairer is not defined.",
        ),
    ),
    _motor("bemtpl97", "sex", "Belgian motor policies"),
    _motor("fremtpl2", "DrivAge", "French motor policies"),
)
