"""Claims about leaving the sensitive column out instead (appendix D.1, §5)."""

from fcorr.reproduce.report.claims.decisions import relative_gap
from fcorr.reproduce.report.claims.places import AMOUNTS, CLASSIFIED, MOTOR
from fcorr.reproduce.report.claims.verdicts import Claim, Finding, judge, judge_fits, show
from fcorr.reproduce.report.results import Results

_PLACES = (*CLASSIFIED, AMOUNTS, *MOTOR)
_EXPERIMENTS = ("baf", "adult", "claims", "motor")
_MODELS = ("FCorr + CAR", "FCorr + Rem")


def _removal_costs(results: Results) -> Finding | None:
    texts, parts = [], []
    for place in _PLACES:
        found = place.difference(results, "FCorr + Rem", "FCorr", place.metrics[0])
        if found is not None:
            parts.append(found.sign < 0)
            texts.append(f"{place.name} {place.metrics[0]} {found}")
    if not parts:
        return None
    return Finding(judge(parts), f"FCorr + Rem − FCorr, test rows: {'; '.join(texts)}.")


def _car_beats_removal_in_accuracy(results: Results) -> Finding | None:
    texts, parts = [], []
    for place in _PLACES:
        for metric in place.metrics:
            found = place.difference(results, *_MODELS, metric)
            if found is not None:
                parts.append(found.sign > 0)
                texts.append(f"{place.name} {metric} {found}")
    if not parts:
        return None
    return Finding(judge(parts), f"FCorr + CAR − FCorr + Rem, test rows: {'; '.join(texts)}.")


def _car_beats_removal_in_groups(results: Results) -> Finding | None:
    texts, parts = [], []
    for place in CLASSIFIED:
        for subset in ("train", "test"):
            relative = relative_gap(results, place, *_MODELS, subset)
            if relative is None:
                return None
            for metric in ("DPD", "EqOdd"):
                found = place.difference(results, *_MODELS, metric, subset)
                if found is None:
                    return None
                parts.append(found.sign < 0 and relative < 1)
                texts.append(f"{place.name}, {subset}: {metric} {found}")
            texts.append(f"DPD in shares of positive decisions {relative:.2f} times removal's")
    for place in MOTOR:
        found = place.difference(results, *_MODELS, "DPD")
        if found is not None:
            parts.append(found.sign < 0)
            texts.append(f"{place.name}, test: DPD of frequencies {found}")
    return Finding(judge(parts), f"FCorr + CAR − FCorr + Rem: {'; '.join(texts)}.")


def _removal_leaves_flips(results: Results) -> Finding | None:
    changes = [
        measured["test"]["largest change"]
        for experiment in _EXPERIMENTS
        for record in results.select(experiment, "FCorr + Rem")
        for measured in record["fairness"].values()
    ]
    if not changes:
        return None
    return Finding(
        judge_fits([change > 0 for change in changes]),
        f"Largest change of any prediction under a flip of a removed column: {show(max(changes))} "
        f"in {len(changes)} measurements. A model cannot depend on what it does not see. What "
        "removal leaves is what proxies carry, which the flip metrics do not look at.",
    )


CLAIMS = (
    Claim("D.1", "Removing the sensitive column costs accuracy.", _EXPERIMENTS, _removal_costs),
    Claim(
        "D.1",
        "CAR beats removing the sensitive column in accuracy.",
        _EXPERIMENTS,
        _car_beats_removal_in_accuracy,
    ),
    Claim(
        "D.1, 5",
        "CAR beats removing the sensitive column in group fairness.",
        ("baf", "adult", "motor"),
        _car_beats_removal_in_groups,
    ),
    Claim(
        "5",
        "A model with the sensitive column removed is still biased by the flip metrics.",
        _EXPERIMENTS,
        _removal_leaves_flips,
    ),
)
