"""Claims about the synthetic data (§4.1)."""

import numpy as np
from numpy.typing import NDArray

from fcorr.reproduce.report.claims.verdicts import (
    ZERO,
    Claim,
    Finding,
    are_zero,
    count,
    is_missing,
    judge,
    judge_fits,
    show,
)
from fcorr.reproduce.report.results import Results
from fcorr.reproduce.report.selecting import FLIPS

_EXPERIMENT = "synthetic"


def _flips_are_nothing(results: Results) -> Finding | None:
    plain, with_car = (
        results.largest(_EXPERIMENT, model, FLIPS) for model in ("FCorr", "FCorr + CAR")
    )
    if is_missing(plain, with_car):
        return None
    zero = are_zero(results, _EXPERIMENT, "FCorr + CAR", FLIPS, ZERO)
    return Finding(
        judge(zero),
        f"Largest mean of the four flip metrics: {show(plain)} without, {show(with_car)} with CAR; "
        f"all four are 0.0000 {count(zero)}.",
    )


def _matrices(results: Results, model: str) -> dict[int, NDArray[np.float64]]:
    return {
        record["seed"]: np.array(record["attention"]["first"])
        for record in results.select(_EXPERIMENT, model)
        if record["attention"]
    }


def _shows_the_data(results: Results) -> Finding | None:
    matrices = list(_matrices(results, "FCorr").values())
    if not matrices:
        return None
    diagonals = np.array([matrix.diagonal() for matrix in matrices])
    pairs = np.array([(m[0, 1], m[0, 2], m[1, 2]) for m in matrices])
    parts = {
        "X1 is the least significant": diagonals.argmin(axis=1) == 0,
        "X1–X2 is the largest entry beside the diagonal": pairs.argmax(axis=1) == 0,
        "the other two pairs are negative": (pairs[:, 1:] < 0).all(axis=1),
    }
    counted = ", ".join(f"{text} in {int(of.sum())}" for text, of in parts.items())
    together = np.all(list(parts.values()), axis=0)
    means = ", ".join(f"{value:.2f}" for value in diagonals.mean(axis=0))
    return Finding(
        judge_fits(list(together)),
        f"Of {len(matrices)} fits: {counted}, all three in {int(together.sum())}. Mean diagonal "
        f"{means} (the paper's one fit: 0.66, 1.3, 2.5); X1's is {diagonals[:, 0].min():.2f} to "
        f"{diagonals[:, 0].max():.2f}.",
    )


def _smaller(results: Results) -> Finding | None:
    plain, with_car = (
        {seed: float(np.abs(of).mean()) for seed, of in _matrices(results, model).items()}
        for model in ("FCorr", "FCorr + CAR")
    )
    seeds = plain.keys() & with_car.keys()
    if not seeds:
        return None
    fell = [with_car[seed] < plain[seed] for seed in seeds]
    medians = [float(np.median([of[seed] for seed in seeds])) for of in (plain, with_car)]
    return Finding(
        judge_fits(fell),
        f"Mean size of an entry, median of the fits: {medians[0]:.2f} without, {medians[1]:.2f} "
        f"with CAR; smaller {count(fell)}.",
    )


def _suppressed(results: Results) -> Finding | None:
    plain, with_car = (
        {seed: abs(m[0, 1]) / m[1, 1] for seed, m in _matrices(results, model).items()}
        for model in ("FCorr", "FCorr + CAR")
    )
    seeds = plain.keys() & with_car.keys()
    if not seeds:
        return None
    halved = [bool(with_car[seed] < plain[seed] / 2) for seed in seeds]
    medians = [float(np.median([of[seed] for seed in seeds])) for of in (plain, with_car)]
    return Finding(
        judge_fits(halved),
        f"|X1–X2| as a share of X2–X2, median of the fits: {medians[0]:.2f} without, "
        f"{medians[1]:.2f} with CAR; at most half of it is left {count(halved)}.",
    )


CLAIMS = (
    Claim("4.1", "With CAR all flip metrics are 0.0000.", (_EXPERIMENT,), _flips_are_nothing),
    Claim(
        "4.1",
        "The pre-softmax matrix shows the data: X1 is least significant, X1–X2 the strongest "
        "dependence, the other pairs negative.",
        (_EXPERIMENT,),
        _shows_the_data,
    ),
    Claim("4.1", "With CAR the matrix has smaller entries.", (_EXPERIMENT,), _smaller),
    Claim(
        "4.1",
        "CAR suppresses the dependence between X1 and X2 (0.28 of X2's own entry to 0.007).",
        (_EXPERIMENT,),
        _suppressed,
    ),
)
