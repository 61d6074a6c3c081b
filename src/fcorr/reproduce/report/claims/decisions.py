"""How many rows a model decides positive, by which gaps between groups must be read."""

import math

import numpy as np

from fcorr.reproduce.report.claims.places import Place
from fcorr.reproduce.report.claims.verdicts import is_missing
from fcorr.reproduce.report.results import Results


def share_decided(results: Results, place: Place, model: str, subset: str = "test") -> float:
    """Return the share of rows decided positive, from accuracy and the two error rates."""
    rates = []
    for record in results.select(place.experiment, model, **place.where):
        found = record["performance"][subset]
        wrong, fpr, fnr = 1 - found["Accuracy"], found["FPR"], found["FNR"]
        if fnr == fpr:
            continue
        positive = (wrong - fpr) / (fnr - fpr)
        rates.append((1 - fnr) * positive + fpr * (1 - positive))
    return float(np.mean(rates)) if rates else math.nan


def relative_gap(
    results: Results, place: Place, model: str, other: str, subset: str = "test"
) -> float | None:
    """Compare two models' DPD as a share of what they decide positive."""
    shares = [
        results.mean(place.experiment, name, "DPD", subset=subset, **place.where)
        / (share_decided(results, place, name, subset) or math.nan)
        for name in (model, other)
    ]
    return None if is_missing(*shares) or not shares[1] else shares[0] / shares[1]
