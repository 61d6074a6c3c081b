"""How many rows a model decides positive, by which gaps between groups must be read."""

import math
from typing import Any

import numpy as np

from fcorr.reproduce.report.claims.places import Place
from fcorr.reproduce.report.claims.verdicts import is_missing
from fcorr.reproduce.report.results import Results


def share_decided(results: Results, experiment: str, model: str, **where: Any) -> float:
    """Return the share of rows decided positive, from accuracy and the two error rates."""
    rates = []
    for record in results.select(experiment, model, **where):
        found = record["performance"]["test"]
        wrong, fpr, fnr = 1 - found["Accuracy"], found["FPR"], found["FNR"]
        if fnr == fpr:
            continue
        positive = (wrong - fpr) / (fnr - fpr)
        rates.append((1 - fnr) * positive + fpr * (1 - positive))
    return float(np.mean(rates)) if rates else math.nan


def relative_gap(results: Results, place: Place, model: str, other: str) -> float | None:
    """Compare two models' DPD as a share of what they decide positive."""
    shares = [
        place.mean(results, name, "DPD")
        / (share_decided(results, place.experiment, name, **place.where) or math.nan)
        for name in (model, other)
    ]
    return None if is_missing(*shares) or not shares[1] else shares[0] / shares[1]
