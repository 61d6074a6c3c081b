"""Claims about what attention shows: significance beside LightGBM's, and where CAR moves it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fcorr.reproduce.report.claims.verdicts import (
    Claim,
    Finding,
    Verdict,
    count,
    is_missing,
    judge,
    judge_fits,
    not_testable,
)
from fcorr.reproduce.report.results import Difference, Results
from fcorr.reproduce.report.significance import (
    N_FIRST,
    Significance,
    correlate_ranks,
    count_shared,
    first_features,
    is_whole,
)

_AGE = "customer_age"
_LARGELY = 0.6  # rank correlation


def _significances(
    results: Results, experiment: str, model: str, kind: str = "significance"
) -> dict[int, Significance]:
    """Return each seed's, where a fit did not diverge."""
    return {
        record["seed"]: record["significance"][kind]
        for record in results.select(experiment, model)
        if is_whole(record, kind)
    }


def _agreement(
    one: Mapping[int, Significance], other: Mapping[int, Significance], n_first: int
) -> tuple[dict[int, float], dict[int, float]]:
    """Return, seed by seed, how many first features are shared and the ranks' correlation."""
    seeds = sorted(one.keys() & other.keys())
    shared = {seed: float(count_shared(one[seed], other[seed], n_first)) for seed in seeds}
    ranks = {seed: correlate_ranks(one[seed], other[seed]) for seed in seeds}
    return shared, {seed: value for seed, value in ranks.items() if value is not None}


def _mean(values: Mapping[int, float]) -> float:
    return float(np.mean(list(values.values()))) if values else math.nan


@dataclass(frozen=True)
class _Agreement:
    """How far a model's significances are LightGBM's importances; see :func:`_beside_trees`.

    Attributes
    ----------
    shared : dict of int to float
        First features shared, seed by seed.
    beyond_chance : Difference
        These, less what chance gives.
    correlation : float
        Of the ranks of all features with LightGBM's numbers of splits.
    text : str
        Both in words.
    """

    shared: dict[int, float]
    beyond_chance: Difference
    correlation: float
    text: str


def _beside_trees(results: Results, experiment: str, model: str) -> _Agreement | None:
    own, n_first = _significances(results, experiment, model), N_FIRST[experiment]
    split, gain = (
        _agreement(own, _significances(results, experiment, "LightGBM", kind), n_first)
        for kind in ("split", "gain")
    )
    shared, correlation = _mean(split[0]), _mean(split[1])
    if is_missing(shared, correlation):
        return None
    n_features = len(next(iter(own.values())))
    by_chance = n_first**2 / n_features
    beyond = Results.compare(split[0], dict.fromkeys(split[0], by_chance))
    assert beyond is not None
    return _Agreement(
        split[0],
        beyond,
        correlation,
        f"{shared:.1f} of the first {n_first} of {n_features} features are shared, {beyond:.1f} "
        f"beside chance. Spearman's correlation of all ranks: {correlation:.2f} with LightGBM's "
        f"splits, its default importance, and {_mean(gain[1]):.2f} with their gain.",
    )


def _agrees_on_fraud(results: Results) -> Finding | None:
    found = _beside_trees(results, "baf", "FCorr")
    if found is None:
        return None
    return Finding(
        judge([found.beyond_chance.sign > 0, found.correlation > _LARGELY]),
        f"{found.text} The paper: 5 shared.",
    )


def _agrees_on_claims(results: Results) -> Finding | None:
    found = _beside_trees(results, "claims", "FCorr")
    if found is None:
        return None
    parts = [found.beyond_chance.sign > 0, found.correlation <= _LARGELY]
    return Finding(judge(parts), found.text)


def _ft_agrees_as_well(results: Results) -> Finding | None:
    own, fcorr = (_beside_trees(results, "baf", model) for model in ("FT-Transformer", "FCorr"))
    if own is None or fcorr is None:
        return None
    found = Results.compare(own.shared, fcorr.shared)
    if found is None:
        return None
    return Finding(
        judge([own.beyond_chance.sign > 0, found.sign >= 0]),
        f"{own.text} FCorr shares {_mean(fcorr.shared):.1f}, FT-Transformer's less that: "
        f"{found:.1f}. The paper: 5 each.",
    )


def _ft_shares_with_fcorr(results: Results) -> Finding | None:
    ft, own = (_significances(results, "baf", model) for model in ("FT-Transformer", "FCorr"))
    trees = _significances(results, "baf", "LightGBM", "split")
    seeds = sorted(ft.keys() & own.keys() & trees.keys())
    if not seeds:
        return None
    counts = []
    for seed in seeds:
        firsts = [set(first_features(of[seed], N_FIRST["baf"])) for of in (ft, own, trees)]
        rest = firsts[0] - firsts[2]
        counts.append((len(rest & firsts[1]), len(rest)))
    most = [2 * shared > total for shared, total in counts]
    return Finding(
        judge_fits(most),
        "Of FT-Transformer's first 10 features that are not LightGBM's, so many are among FCorr's, "
        f"fit by fit: {', '.join(f'{shared} of {total}' for shared, total in counts)}.",
    )


def _rank(significance: Significance, feature: str) -> int:
    return first_features(significance, len(significance)).index(feature) + 1


def _attends_to_age(results: Results) -> Finding | None:
    ranks = [_rank(of, _AGE) for of in _significances(results, "baf", "FCorr").values()]
    if not ranks:
        return None
    high = [rank <= N_FIRST["baf"] for rank in ranks]
    return Finding(
        judge_fits(high),
        f"Rank of {_AGE} by significance, fit by fit: {', '.join(map(str, ranks))} (1 is the most "
        f"significant); among the first {N_FIRST['baf']} {count(high)}.",
    )


def _moved(results: Results, feature: str) -> list[tuple[int, int]]:
    """List a feature's rank without and with CAR, seed by seed."""
    plain, car = (_significances(results, "baf", model) for model in ("FCorr", "FCorr + CAR"))
    seeds = sorted(plain.keys() & car.keys())
    return [(_rank(plain[seed], feature), _rank(car[seed], feature)) for seed in seeds]


def _show_moves(moves: list[tuple[int, int]]) -> str:
    return ", ".join(f"{before} to {after}" for before, after in moves)


def _attention_leaves_age(results: Results) -> Finding | None:
    moves = _moved(results, _AGE)
    if not moves:
        return None
    fell = [after > before for before, after in moves]
    return Finding(
        judge_fits(fell),
        f"Rank of {_AGE} by significance without and with CAR, fit by fit: {_show_moves(moves)} (1 "
        "is the most significant).",
    )


def _attention_moves(results: Results) -> Finding | None:
    if any(record["data"]["stands_in_for"] for record in results.select("baf", "FCorr")):
        return Finding(
            Verdict.NOT_TESTABLE,
            "That is about the real Bank Account Fraud, of which a download is needed.",
        )
    parts, texts = [], []
    for feature, rises in (
        ("current_address_months_count", True),
        ("has_other_cards", True),
        ("velocity_4w", False),
        ("prev_address_months_count", False),
    ):
        moves = _moved(results, feature)
        if not moves:
            return None
        as_claimed = [(after < before) if rises else (after > before) for before, after in moves]
        parts.append(judge_fits(as_claimed) is Verdict.HOLDS)
        texts.append(f"{feature} {_show_moves(moves)}")
    return Finding(
        judge(parts), f"Rank by significance without and with CAR, fit by fit: {'; '.join(texts)}."
    )


def _coverage_is_first(results: Results) -> Finding | None:
    ranks = {}
    for model, kind in (("FCorr", "significance"), ("LightGBM", "split"), ("LightGBM", "gain")):
        found = _significances(results, "claims", model, kind).values()
        if not found:
            return None
        ranks[model, kind] = [_rank(of, "CovgLimit") for of in found]
    text = "; ".join(
        f"{model} ({kind}) {', '.join(map(str, of))}" for (model, kind), of in ranks.items()
    )
    first = {key: judge_fits([rank == 1 for rank in of]) for key, of in ranks.items()}
    evidence = f"Rank of CovgLimit, planted here, fit by fit: {text}."
    if Verdict.HOLDS not in (first["LightGBM", "split"], first["LightGBM", "gain"]):
        return Finding(
            Verdict.NOT_TESTABLE,
            f"On this table it is not LightGBM's first feature either. {evidence}",
        )
    return Finding(first["FCorr", "significance"], evidence)


CLAIMS = (
    Claim(
        "4.2, D.1",
        "FCorr's significance largely agrees with LightGBM's importance.",
        ("baf",),
        _agrees_on_fraud,
    ),
    Claim(
        "4.2, D.1",
        "FT-Transformer's attention finds LightGBM's features about as well as FCorr's.",
        ("baf",),
        _ft_agrees_as_well,
    ),
    Claim(
        "4.2",
        "Of its other features, FT-Transformer shares most with FCorr.",
        ("baf",),
        _ft_shares_with_fcorr,
    ),
    not_testable(
        "4.2",
        "FT-Transformer's attention is denser than FCorr's, and says less.",
        "A matter of reading two figures; no measure is given.",
    ),
    Claim(
        "4.2",
        "Without CAR, the sensitive feature has high attention.",
        ("baf",),
        _attends_to_age,
    ),
    Claim(
        "4.2",
        "CAR takes attention away from the sensitive feature.",
        ("baf",),
        _attention_leaves_age,
    ),
    Claim(
        "4.2",
        "CAR moves attention to current_address_months_count and has_other_cards, away from "
        "velocity_4w and prev_address_months_count.",
        (),
        _attention_moves,
    ),
    Claim(
        "4.3",
        "The coverage limit is the most significant feature, as in LightGBM.",
        ("claims",),
        _coverage_is_first,
    ),
    Claim(
        "4.3",
        "Several of FCorr's first features are LightGBM's, while the profiles differ.",
        ("claims",),
        _agrees_on_claims,
    ),
    not_testable(
        "4.3",
        "CAR moves attention from insurer-made classes to InsurTech features, which are fairer.",
        "The data is private, and which features are fairer is not defined.",
    ),
)
