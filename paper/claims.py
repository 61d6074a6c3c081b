"""The paper's claims one by one: what the records say of them, by rules that are written down.

What a claim says, where the paper says it and when it holds is in ``configs/claims_of_paper.toml``;
here is the check of each. A check yields parts, each of them whether it holds (or whether in each
fit) and the evidence in words; the verdict follows from the parts.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from paper.costs import AUGMENTED, BY_DEFINITION, CLOSED_FORM
from paper.experiments import read_config
from paper.results import (
    AMOUNT_FLIPS,
    FLIPS,
    GROUPS,
    N_FIRST,
    NotRunError,
    Place,
    Results,
    compare,
    correlate_ranks,
    count_shared,
    first_features,
    paper_figure,
)
from paper.runs import Records

ZERO, ZERO_AMOUNT = 5e-5, 0.005  # what the paper prints as 0.0000, and of amounts as 0.00
NO_CHANGE, NOTHING = 1e-4, 1e-3  # AvgIF of invariant probabilities; as a share of that without CAR
LITTLE, LITTLE_GINI = 0.005, 0.05  # the paper's prices of CAR are .0015 of AUROC and .04 of Gini
_GENERALLY = 0.8  # of the fits
_INVARIANT_ATTENTION = 1e-8  # CAR at the end of training
_LARGEST_POWER = 38  # of ten that a float32, in which networks are trained, holds
_LARGELY = 0.6  # rank correlation
_STEADILY = -0.8  # rank correlation with λ
_ENOUGH_SEEDS = 4  # to tell a difference by

SYNTHETIC, FRAUD = Place("synthetic", "X1"), Place("baf", "customer_age")
ADULT = (Place("adult", "race"), Place("adult", "sex"))
CLASSIFIED = (FRAUD, *ADULT)
AMOUNTS = Place("claims", "credit_score", metrics=("Gini",))
BELGIAN = Place("motor", "sex", "bemtpl97", ("Gini",))
FRENCH = Place("motor", "DrivAge", "fremtpl2", ("Gini",))
EVERYWHERE = (*CLASSIFIED, AMOUNTS, BELGIAN, FRENCH)
LAYERS, WEIGHTS = Place("multilayer", "customer_age"), Place("controllability", "customer_age")
TABLES = ("bank_fraud", "claims")  # of 31 and of 581 features

CAR, FT, REMOVED = "FCorr + CAR", "FT-Transformer", "FCorr + Rem"


class Verdict(StrEnum):
    """What the records say of a claim."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    FAILS = "does not hold"
    NOT_TESTABLE = "not testable here"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Finding:
    """A verdict and what it rests on."""

    verdict: Verdict
    evidence: str


Check = Callable[[Results], Finding]
Parts = Iterator[tuple[Sequence[bool], str]]
"""Whether each part of a claim holds, or a claim in each fit; and the evidence."""


@dataclass(frozen=True)
class CheckedClaim:
    """A claim in words, the data it was checked on, and what came out."""

    id: str
    section: str
    text: str
    rule: str
    data: str
    finding: Finding


def check_claims(records: Records) -> list[CheckedClaim]:
    """Check all claims by the records that are there: the paper's, then ours, without a section."""
    results, checked = Results(records), []
    for name, words in read_config("claims_of_paper").items():
        results.sources = set()
        if "reason" in words:
            finding = Finding(Verdict.NOT_TESTABLE, words["reason"])
        else:
            try:
                finding = CHECKS[name](results)
            except NotRunError:
                finding = Finding(Verdict.NOT_RUN, "The records it takes are not there.")
        if "note" in words and finding.verdict is not Verdict.NOT_RUN:
            finding = Finding(finding.verdict, f"{finding.evidence} {words['note']}")
        section, text, rule = (words.get(field, "") for field in ("section", "text", "rule"))
        data = ", ".join(sorted(results.sources))
        checked.append(CheckedClaim(name, section, text, rule, data, finding))
    return checked


def count_verdicts(checked: Iterable[CheckedClaim]) -> str:
    """Say how many claims came out how."""
    words = ("hold", "hold in part", "do not hold", "are not testable here", "were not run")
    counts = Counter(claim.finding.verdict for claim in checked)
    named = [f"{counts[v]} {word}" for v, word in zip(Verdict, words, strict=True) if counts[v]]
    return f"Of {counts.total()} claims, {_list(named)}."


# ------------------------------------------------------------------------------ rules


def judge(parts: Sequence[bool]) -> Verdict:
    """Judge a claim by its parts, or by fits that must not break it: all hold, some or none."""
    if all(parts):
        return Verdict.HOLDS
    return Verdict.IN_PART if any(parts) else Verdict.FAILS


def judge_fits(fits: Sequence[bool]) -> Verdict:
    """Judge a claim by the fits that show it: four in five of them, more than half or fewer."""
    share = sum(fits) / len(fits)
    return judge([share > 0.5, share >= _GENERALLY])


def by_parts(
    check: Callable[[Results], Parts], before: str = "", rule: Callable[..., Verdict] = judge
) -> Check:
    """Make a finding of what a check yields; ``before`` introduces the evidence."""

    def find(r: Results) -> Finding:
        found = list(check(r))
        parts = [bool(part) for held, _ in found for part in held]
        if not parts:
            raise NotRunError("nothing to judge by")
        return Finding(rule(parts), f"{before}{'; '.join(text for _, text in found if text)}.")

    return find


def by_fits(check: Callable[[Results], Parts], before: str = "") -> Check:
    """Make a finding about what is generally so."""
    return by_parts(check, before, judge_fits)


def where_learnt(check: Check, experiment: str, *models: str, at_least: int = 1) -> Check:
    """Check a claim at the seeds at which models predict more than a constant, which is fair, too.

    With fewer than ``at_least`` such seeds it cannot be tested.
    """

    def restricted(r: Results) -> Finding:
        found = [r.select(experiment, model, subset="test") for model in models]
        seeds = {seed for of in found for seed in of["seed"]}
        learnt = seeds - {seed for of in found for seed in of["seed"][~of["learnt"]]}
        if learnt == seeds:
            return check(r)
        named = " and ".join(models)
        beside = f"At the {len(learnt)} of {len(seeds)} seeds where all fits of {named} learnt"
        if not learnt:
            return Finding(Verdict.NOT_TESTABLE, f"{beside}: none to tell by.")
        finding = check(r.at_seeds(experiment, learnt))
        if len(learnt) >= at_least:
            return Finding(finding.verdict, f"{beside}. {finding.evidence}")
        return Finding(Verdict.NOT_TESTABLE, f"{beside}, too few to tell by. {finding.evidence}")

    return restricted


def tell(
    r: Results,
    sign: int,
    pairs: Sequence[tuple[str, str]],
    metrics: Sequence[str] | None = None,
    places: Sequence[Place] = (FRAUD,),
    subset: str = "test",
) -> Parts:
    """Tell whether models have more (1) or less (-1) of metrics than others, beyond seeds' noise.

    By default the metrics are those by which a place says how well a model predicts.
    """
    for place in places:
        for model, other in pairs:
            of = metrics or place.metrics
            found = {m: r.difference(place, model, other, m, subset=subset) for m in of}
            text = _list(f"{metric} {difference}" for metric, difference in found.items())
            held = [difference.sign == sign for difference in found.values()]
            yield held, f"{place.name}, {subset} rows, {model} − {other}: {text}"


def zeros(
    r: Results, places: Sequence[Place], metrics: Sequence[str], limit: float, printed: str
) -> Parts:
    """Say of each fit of FCorr + CAR whether all flip metrics are as good as 0."""
    for place in places:
        plain, car = (r.largest(place, model, metrics) for model in ("FCorr", CAR))
        below = r.below(place, CAR, metrics, limit)
        said = f"{show(plain)} without, {show(car)} with CAR, {printed} {count(below)}"
        yield below, f"{place.column}: {said}"


def limit_of_change(r: Results, place: Place) -> float:
    """Return the AvgIF below which predictions are invariant.

    Amounts and frequencies have scales of their own: what is left, beside what was there.
    """
    return NO_CHANGE if "AUROC" in place.metrics else NOTHING * r.mean(place, "FCorr", "AvgIF")


def relative_gap(r: Results, place: Place, model: str, other: str, subset: str = "test") -> float:
    """Compare two models' DPD as a share of what they decide positive."""
    one, two = (
        r.mean(place, name, "DPD", subset=subset) / share_decided(r, place, name, subset)
        for name in (model, other)
    )
    return one / two if two else math.nan


def share_decided(r: Results, place: Place, model: str, subset: str = "test") -> float:
    """Return the share of rows decided positive, from accuracy and the two error rates."""
    found = r.fits(place, model, subset)
    wrong, fpr, fnr = 1 - found["Accuracy"], found["FPR"], found["FNR"]
    positive = (wrong - fpr) / (fnr - fpr).replace(0, math.nan)
    return float(((1 - fnr) * positive + fpr * (1 - positive)).mean()) or math.nan


def count(fits: Iterable[bool]) -> str:
    """Say in how many fits something is so."""
    fits = list(fits)
    return f"in {sum(fits)} of {len(fits)} fits"


def show(value: float) -> str:
    """Write a metric that may be tiny or exactly 0.

    Examples
    --------
    >>> show(0.0), show(0.12345), show(3e-7)
    ('0', '0.1235', '3.0e-07')
    """
    if value == 0 or abs(value) >= 10:
        return "0" if value == 0 else f"{value:,.2f}"
    return f"{value:.1e}" if abs(value) < ZERO else f"{value:.4f}"


def _list(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


# ------------------------------------------------------------------------------ the method (§3)


def _attention_is_enough(r: Results) -> Parts:
    """Compare what is left of CAR with what is left of the flips, fit by fit."""
    shown: dict[str, list[bool]] = {CAR: [], f"{FT} + CAR": []}
    for place in EVERYWHERE:
        for model, invariant in shown.items():
            if not r.has(place, [model], "AvgIF"):
                continue
            fits, limit = r.fits(place, model), limit_of_change(r, place)
            fits = fits[(fits["last_car"] < _INVARIANT_ATTENTION) & fits["learnt"]]
            others = fits[fits["AvgIF"] >= limit] if model == CAR else fits[:0]
            left = [f"{one.last_car:.0e} and {show(one.AvgIF)}" for one in others.itertuples()]
            beside = f" (CAR and AvgIF of the others: {_list(left)})" if left else ""
            invariant += (fits["AvgIF"] < limit).tolist()
            yield [], f"{place.name} {model} {count(fits['AvgIF'] < limit)}{beside}"
    own, other = shown.values()
    yield ([all(own), not any(other)] if own and other else []), ""


def _lambda_as_printed(r: Results) -> Parts:
    for place in (SYNTHETIC, *CLASSIFIED, AMOUNTS):
        if r.has(place, [CAR], "car_ratio"):
            ratios = r.values(place, CAR, "car_ratio")
            usable = (ratios < _LARGEST_POWER + 1).tolist()
            said = f"{ratios.min():,.1f} to {ratios.max():,.0f}, too large {count(ratios >= 39)}"
            yield usable, f"{place.name} {said}"


def _lambda_by_logarithm(r: Results) -> Parts:
    for place in (SYNTHETIC, *CLASSIFIED, AMOUNTS):
        if r.has(place, [CAR], "AvgIF"):
            fits = r.fits(place, CAR)
            below, constant = fits["AvgIF"] < limit_of_change(r, place), (~fits["learnt"]).sum()
            beside = f", {constant} of them constants" if constant else ""
            yield below.tolist(), f"{place.name} {count(below)}{beside}"


def _residual_breaks(r: Results) -> Parts:
    broken: dict[str, list[bool]] = {CAR: [], "FCorr + Res + CAR": []}
    for place in CLASSIFIED:
        for model, of_model in broken.items():
            over = (r.values(place, model, "AvgIF") > NO_CHANGE).tolist()
            change = show(r.values(place, model, "largest change").max())
            of_model += over
            yield [], f"{place.name} {model} {count(over)} (largest change {change})"
    without, with_residual = broken.values()
    generally = judge_fits(with_residual) is Verdict.HOLDS
    yield [sum(with_residual) > sum(without), generally], ""


# ------------------------------------------------------------------------------ costs (§3.2, 4)


def _size(r: Results, model: str, table: str, *fields: str) -> Any:
    return r.select("complexity", model, measure="size", table=table).iloc[0][list(fields)]


def _cda_ratios(r: Results) -> dict[str, list[Any]]:
    """List, by form, an epoch's length on both tables, in epochs with augmentation."""
    epochs = [r.select("complexity", measure="epochs", table=table) for table in TABLES]
    forms = (BY_DEFINITION, CLOSED_FORM)
    return {form: [of[form] / of[AUGMENTED] for of in epochs] for form in forms}


def _augmentation_faster(r: Results) -> Parts:
    for form, ratios in _cda_ratios(r).items():
        for table, of in zip(TABLES, ratios, strict=True):
            yield [of.min() > 1], f"{form}, {table} {of.mean():.2f} times"


def _augmentation_dimension(r: Results) -> Parts:
    for form, (few, many) in _cda_ratios(r).items():
        # Apart beyond their noise: each measurement of the large table beside each of the small.
        yield [many.min() > few.max()], f"{form} {few.mean():.2f} and {many.mean():.2f}"


def _no_more_parameters(r: Results) -> Parts:
    for table in TABLES:
        plain, car = (int(_size(r, m, table, "parameters").iloc[0]) for m in ("FCorr", CAR))
        yield [plain == car], f"{plain:,} without, {car:,} with CAR"


def _parameters(r: Results, table: str, n_wanted: int, head_wanted: int) -> Parts:
    n, head = map(int, _size(r, "FCorr", table, "parameters", "head_parameters"))
    text = f"{n:,} parameters, {head:,} of them ({head / n:.1%}) in the head"
    yield [n == n_wanted, head == head_wanted], text


def _fewer_parameters(r: Results) -> Parts:
    for table, share in zip(TABLES, (0.5, 0.6), strict=True):
        own, other = (int(_size(r, m, table, "parameters").iloc[0]) for m in ("FCorr", FT))
        yield [own <= share * other], f"{table} {own:,} of {other:,}, {own / other:.0%}"


def _heavy_attention(r: Results) -> Parts:
    for table in TABLES:
        n, head = _size(r, FT, table, "parameters", "head_parameters")
        yield [round(1 - head / n, 3) >= 0.999], f"{table} {1 - head / n:.1%}"


def _memory(r: Results, table: str) -> Parts:
    own, car, other = (_size(r, m, table, "kept_megabytes").iloc[0] for m in ("FCorr", CAR, FT))
    shares = own / other, car / other
    said = f"FCorr {own:.2f} MB, with CAR {car:.2f} MB, FT-Transformer {other:.2f} MB"
    yield [share < 0.1 for share in shares], f"{said}: {shares[0]:.1%} and {shares[1]:.1%} of it"


# ------------------------------------------------------------------------------ synthetic (§4.1)


def _matrices(r: Results, model: str) -> dict[int, Any]:
    found = r.values(SYNTHETIC, model, "attention")
    return {seed: np.array(matrix) for seed, matrix in found.items()}


def _shows_the_data(r: Results) -> Parts:
    matrices = np.array(list(_matrices(r, "FCorr").values()))
    diagonals = matrices.diagonal(axis1=1, axis2=2)
    pairs = matrices[:, [0, 0, 1], [1, 2, 2]]
    parts = {
        "X1 is the least significant": diagonals.argmin(axis=1) == 0,
        "X1–X2 is the largest entry beside the diagonal": pairs.argmax(axis=1) == 0,
        "the other two pairs are negative": (pairs[:, 1:] < 0).all(axis=1),
    }
    together = np.all(list(parts.values()), axis=0)
    yield [], _list(f"{text} in {held.sum()}" for text, held in parts.items())
    yield together.tolist(), f"all three {count(together)}"
    means, own = [f"{value:.2f}" for value in diagonals.mean(axis=0)], diagonals[:, 0]
    yield [], f"mean diagonal {_list(means)}, X1's from {own.min():.2f} to {own.max():.2f}"


def _matrix_falls(r: Results, measure: Callable[[Any], float], left: float) -> Parts:
    """Say whether a number that is read off the matrix is smaller with CAR."""
    plain, car = (
        {seed: float(measure(matrix)) for seed, matrix in _matrices(r, model).items()}
        for model in ("FCorr", CAR)
    )
    seeds = sorted(plain.keys() & car.keys())
    fell = [car[seed] < left * plain[seed] for seed in seeds]
    before, after = (np.median([of[seed] for seed in seeds]) for of in (plain, car))
    yield fell, f"{before:.2f} without, {after:.2f} with CAR; so much smaller {count(fell)}"


# ------------------------------------------------------------ classification (§4.2, appendix D)


def _size_does_not_help(r: Results) -> Parts:
    large, small = (r.fits(FRAUD, m)["parameters"].iloc[0] for m in ("TabTransformer", "FCorr"))
    yield [large > small], f"{large:,.0f} and {small:,.0f} parameters"
    for metric in FRAUD.metrics:
        found = r.difference(FRAUD, "TabTransformer", "FCorr", metric)
        yield [found.sign <= 0], f"{metric} {found}"


def _little_price(r: Results, place: Place, most: float) -> Parts:
    for metric in place.metrics:
        found = r.difference(place, CAR, "FCorr", metric)
        yield [found.mean > -most], f"{metric} {found}"


def _ft_keeps_bias(r: Results, places: Sequence[Place]) -> Parts:
    models = (f"{FT} + CAR", FT)
    found = list(tell(r, -1, [models], (*GROUPS, *FLIPS), places))
    yield from found
    # Bias that is left says something only where CAR took some of it.
    took = any(any(held) for held, _ in found)
    for place in places:
        car, plain = (r.mean(place, model, "AvgIF") for model in models)
        held = [car > NO_CHANGE] if took else []
        yield held, f"AvgIF, {place.column}: {show(plain)} without, {show(car)} with CAR"


def _group_metrics_fall(r: Results) -> Parts:
    relative = relative_gap(r, FRAUD, CAR, "FCorr")
    for held, text in tell(r, -1, [(CAR, "FCorr")], GROUPS):
        yield [lower and relative < 1 for lower in held], text
    car, plain = (share_decided(r, FRAUD, model) for model in (CAR, "FCorr"))
    decided = f"{plain:.2%} of the rows are decided positive without and {car:.2%} with CAR"
    fewer = "fewer such decisions differ less by themselves: DPD as a share of them is"
    yield [], f"{decided}, and {fewer} {relative:.2f} times that without CAR"


def _residual_helps(r: Results) -> Parts:
    ((helps, text),) = tell(r, 1, [("FCorr + Res", "FCorr")])
    yield helps, text
    own, plain = (r.difference(FRAUD, m, "LightGBM", "AUROC") for m in ("FCorr + Res", "FCorr"))
    # Where trees are says something only if the residual took the model there.
    level = [own.mean > -LITTLE] if any(helps) else []
    yield level, f"AUROC less LightGBM's: FCorr + Res {own}, FCorr {plain}"


def _level_on_adult(r: Results) -> Parts:
    place = ADULT[0]
    found = r.difference(place, "FCorr", FT, "AUROC")
    yield [found.mean > -LITTLE], f"FCorr {found}"
    if r.has(place, ["FCorr, splines"], "AUROC"):
        yield [], f"FCorr, splines {r.difference(place, 'FCorr, splines', FT, 'AUROC')}"
    yield [], f"our {FT}'s accuracy at 0.5 is {r.mean(place, FT, 'Accuracy at 0.5'):.4f}"


# ------------------------------------------------------------------------------ amounts (§4.3)


def _trees_lead(r: Results) -> Parts:
    yield from tell(r, 1, [("LightGBM", "FCorr"), ("LightGBM", FT)], places=[AMOUNTS])
    for place in (BELGIAN, FRENCH):
        if r.has(place, ("LightGBM", "FCorr"), "Gini"):
            # Trees draw nothing, and these tables are fixed: one fit stands for all seeds.
            (gini,) = r.values(place, "LightGBM", "Gini")
            networks = r.values(place, "FCorr", "Gini")
            found = compare(dict.fromkeys(networks.keys(), gini), networks)
            yield [found.sign > 0], f"{place.table} LightGBM {gini:.3f}, − FCorr {found}"
    models = ("LightGBM", "FCorr", FT, "LightGBM, Tweedie", "FCorr, defaults")
    there = [model for model in models if r.has(AMOUNTS, [model], "Gini")]
    ginis = _list(f"{model} {r.mean(AMOUNTS, model, 'Gini'):.2f}" for model in there)
    yield [], f"means on the claims: {ginis}"


def _fcorr_ahead(r: Results) -> Parts:
    yield from tell(r, 1, [("FCorr", FT)], places=[AMOUNTS])
    for model in ("FCorr", FT):
        gini, epochs = r.mean(AMOUNTS, model, "Gini"), r.fits(AMOUNTS, model)["epochs"].iloc[0]
        yield [], f"{model} {gini:.2f} after {epochs:.0f} passes over the rows"


def _collapsed_network(r: Results) -> Parts:
    constant = (~r.fits(AMOUNTS, "FFN")["learnt"]).tolist()
    gini = r.mean(AMOUNTS, "FFN", "Gini")
    yield constant, f"at a constant {count(constant)}; mean test Gini {gini:.2f}"


def _ft_flips(r: Results) -> Parts:
    models = (f"{FT} + CAR", FT)
    # Between seeds they differ several times over: it is how many times they fall that counts.
    found = {m: r.difference(AMOUNTS, *models, m, log=True) for m in AMOUNT_FLIPS}
    lowered = [difference.sign < 0 for difference in found.values()]
    yield lowered, f"log10 of the ratios: {_list(f'{m} {d:.2f}' for m, d in found.items())}"
    car, plain = (r.mean(AMOUNTS, model, "AvgIF") for model in models)
    # Bias that is left says something only where CAR took some of it.
    left = [car > NOTHING * plain] if any(lowered) else []
    yield left, f"AvgIF {show(plain)} without, {show(car)} with CAR"


def _price_on_claims(r: Results) -> Parts:
    yield from _little_price(r, AMOUNTS, LITTLE_GINI)
    fits = r.fits(AMOUNTS, CAR)
    n_constant = int((~fits["learnt"]).sum())
    if 0 < n_constant < len(fits):
        some = r.at_seeds("claims", fits.index[fits["learnt"]])
        there = some.difference(AMOUNTS, CAR, "FCorr", "Gini")
        yield [], f"{n_constant} of {len(fits)} fits end at a constant; at the other seeds {there}"
    if "car_weight" in fits:
        listed = [f"{fit.Gini:.2f} ({fit.car_weight:.0e})" for fit in fits.itertuples()]
        yield [], f"FCorr + CAR fit by fit, and λ = 10^⌊log10 ratio⌋: {_list(listed)}"


def _lower_dpd(r: Results, model: str) -> Parts:
    found = r.difference(AMOUNTS, f"{model} + CAR", model, "DPD")
    yield [found.sign < 0], f"{model} + CAR − {model} {found:.2f}"
    if model == "FCorr" and r.has(AMOUNTS, [REMOVED], "DPD"):
        yield [], f"FCorr + CAR − FCorr + Rem {r.difference(AMOUNTS, CAR, REMOVED, 'DPD'):.2f}"


def _groups_on_claims(model: str) -> Check:
    check = by_parts(partial(_lower_dpd, model=model), "DPD: ")
    return where_learnt(check, "claims", model, f"{model} + CAR", at_least=_ENOUGH_SEEDS)


# ------------------------------------------------------------------- attention (§4.2, 4.3, D.1)


def _shared(r: Results, experiment: str, model: str) -> dict[int, float]:
    """Count, seed by seed, the first features that a model shares with LightGBM."""
    own, trees = (
        r.significances(experiment, *of) for of in ((model, "significance"), ("LightGBM", "split"))
    )
    n_first = N_FIRST[experiment]
    seeds = sorted(own.keys() & trees.keys())
    return {seed: float(count_shared(own[seed], trees[seed], n_first)) for seed in seeds}


def _beside_trees(r: Results, experiment: str, model: str, like: str = "") -> Parts:
    """Yield whether first features are shared beyond chance; and that ranks are alike, or differ.

    With ``like`` neither, the correlation of ranks is told beside.
    """
    shared, own = _shared(r, experiment, model), r.significances(experiment, model)
    n_first, n_features = N_FIRST[experiment], len(next(iter(own.values())))
    beyond = compare(shared, dict.fromkeys(shared, n_first**2 / n_features))
    mean = np.mean(list(shared.values()))
    text = f"{mean:.1f} of the first {n_first} of {n_features} features are shared"
    yield [beyond.sign > 0], f"{text}, {beyond:.1f} beside chance"

    def correlation(kind: str) -> float:
        trees = r.significances(experiment, "LightGBM", kind)
        found = np.array([correlate_ranks(own[seed], trees[seed]) for seed in shared])
        known = found[~np.isnan(found)]  # there is none where features do not differ
        return float(known.mean()) if len(known) else math.nan

    split, gain = correlation("split"), correlation("gain")
    held = {"alike": [split > _LARGELY], "differ": [split <= _LARGELY]}.get(like, [])
    text = f"{split:.2f} with LightGBM's splits, its default importance, {gain:.2f} with their gain"
    yield held, f"Spearman's correlation of all ranks: {text}"


def _ft_agrees_as_well(r: Results) -> Parts:
    yield from _beside_trees(r, "baf", FT)
    fcorr = _shared(r, "baf", "FCorr")
    found = compare(_shared(r, "baf", FT), fcorr)
    mean = np.mean(list(fcorr.values()))
    yield [found.sign >= 0], f"FCorr shares {mean:.1f}, FT-Transformer's less that: {found:.1f}"


def _ft_shares_with_fcorr(r: Results) -> Parts:
    ft, own = (r.significances("baf", model) for model in (FT, "FCorr"))
    trees = r.significances("baf", "LightGBM", "split")
    for seed in sorted(ft.keys() & own.keys() & trees.keys()):
        firsts = [set(first_features(of[seed], N_FIRST["baf"])) for of in (ft, own, trees)]
        rest = firsts[0] - firsts[2]
        shared = len(rest & firsts[1])
        yield [2 * shared > len(rest)], f"{shared} of {len(rest)}"


def _ranks(
    r: Results, feature: str, model: str, experiment: str = "baf", kind: str = "significance"
) -> dict[int, int]:
    """Rank a feature by significance, seed by seed; 1 is the most significant."""
    found = r.significances(experiment, model, kind)
    return {seed: first_features(of, len(of)).index(feature) + 1 for seed, of in found.items()}


def _attends_to_age(r: Results) -> Parts:
    ranks = list(_ranks(r, FRAUD.column, "FCorr").values())
    high = [rank <= N_FIRST["baf"] for rank in ranks]
    yield high, f"{_list(ranks)}; among the first {N_FIRST['baf']} {count(high)}"


def _moves(r: Results, feature: str, *, rises: bool) -> tuple[list[bool], str]:
    """Say whether a feature's rank moves as claimed with CAR, seed by seed."""
    plain, car = (_ranks(r, feature, model) for model in ("FCorr", CAR))
    moves = [(plain[seed], car[seed]) for seed in sorted(plain.keys() & car.keys())]
    text = f"{feature} {_list(f'{before} to {after}' for before, after in moves)}"
    return [after < before if rises else after > before for before, after in moves], text


def _attention_moves(r: Results) -> Finding:
    if r.select("baf", "FCorr")["stands_in_for"].any():
        text = "That is about the real Bank Account Fraud, of which a download is needed."
        return Finding(Verdict.NOT_TESTABLE, text)

    def parts(r: Results) -> Parts:
        for feature, rises in (
            ("current_address_months_count", True),
            ("has_other_cards", True),
            ("velocity_4w", False),
            ("prev_address_months_count", False),
        ):
            held, text = _moves(r, feature, rises=rises)
            yield [judge_fits(held) is Verdict.HOLDS], text

    return by_parts(parts, "Rank by significance without and with CAR, fit by fit: ")(r)


def _coverage_is_first(r: Results) -> Finding:
    kinds = (("FCorr", "significance"), ("LightGBM", "split"), ("LightGBM", "gain"))
    ranks = {of: list(_ranks(r, "CovgLimit", of[0], "claims", of[1]).values()) for of in kinds}
    own, *trees = (judge_fits([rank == 1 for rank in of]) for of in ranks.values())
    text = "; ".join(f"{model} ({kind}) {_list(of)}" for (model, kind), of in ranks.items())
    evidence = f"Rank of CovgLimit, planted here, fit by fit: {text}."
    if Verdict.HOLDS in trees:
        return Finding(own, evidence)
    beside = "On this table it is not LightGBM's first feature either."
    return Finding(Verdict.NOT_TESTABLE, f"{beside} {evidence}")


# ------------------------------------------------------------------------- removal (D.1, 5)


def _where_both(r: Results, sign: int, models: tuple[str, str], n_metrics: int) -> Parts:
    """Tell two models apart wherever there are records of both."""
    for place in EVERYWHERE:
        if r.has(place, models, place.metrics[0]):
            yield from tell(r, sign, [models], place.metrics[:n_metrics], [place])


def _removal_groups(r: Results) -> Parts:
    models = (CAR, REMOVED)
    for place in CLASSIFIED:
        for subset in ("train", "test"):
            relative = relative_gap(r, place, *models, subset)
            for held, text in tell(r, -1, [models], ("DPD", "EqOdd"), [place], subset):
                beside = f"DPD in shares of positive decisions {relative:.2f} times removal's"
                yield [lower and relative < 1 for lower in held], f"{text}, {beside}"
    for place in (BELGIAN, FRENCH):
        if r.has(place, models, "DPD"):
            yield from tell(r, -1, [models], ["DPD"], [place])


def _unchanged(
    r: Results, model: str, places: Sequence[Place], subsets: Sequence[str], *, wanted: bool
) -> Parts:
    """Say of each measurement whether no prediction changes under a flip."""
    there = [place for place in places if r.has(place, [model], "largest change")]
    changes = [
        change
        for place in there
        for subset in subsets
        for change in r.values(place, model, "largest change", subset=subset)
    ]
    if changes:
        held = [(change == 0) == wanted for change in changes]
        yield held, f"{show(max(changes))} in {len(changes)} measurements"


# ------------------------------------------------------------------- λ and layers (E, F)


def _by_weight(r: Results, metric: str) -> tuple[list[float], list[float]]:
    """Return the values of λ, and the mean of a metric at each."""
    weights: list[float] = read_config("controllability")["vary"]["car"]
    return weights, [r.mean(WEIGHTS, CAR, metric, car=weight) for weight in weights]


def _lambda_steady(r: Results) -> Parts:
    for metric in FLIPS:
        found = float(spearmanr(*_by_weight(r, metric)).statistic)
        yield ([found < _STEADILY] if metric != "F1 gap" else []), f"{metric} {found:.2f}"


def _lambda_small(r: Results) -> Parts:
    (_, *weights), (without, *means) = _by_weight(r, "AvgIF")
    left = [value / without for value in means]
    steadily = len(left) > 1 and float(spearmanr(weights, left).statistic) < _STEADILY
    text = _list(f"{weight:g}: {share:.2g}" for weight, share in zip(weights, left, strict=True))
    yield [left[0] > 0.5, steadily], text


def _lambda_f1(r: Results) -> Finding:
    (weights, flips), (_, gaps) = (_by_weight(r, metric) for metric in ("AvgIF", "F1 gap"))
    # Where one of them is next to 0 there is nothing left to control, or to vary.
    both = [i for i in range(len(weights)) if min(flips[i], gaps[i]) > 10 * ZERO]
    if len(both) < 3:
        return Finding(Verdict.NOT_TESTABLE, "They are both there at too few values of λ.")
    there = [weights[i] for i in both]
    falls = [float(spearmanr(there, [of[i] for i in both]).statistic) for of in (flips, gaps)]
    varies = []
    for metric in ("AvgIF", "F1 gap"):
        values = [r.values(WEIGHTS, CAR, metric, car=weight) for weight in there]
        varies.append(float(np.mean([of.std(ddof=0) / of.mean() for of in values])))
    return Finding(
        judge([varies[1] > varies[0], falls[1] > falls[0]]),
        f"AvgIF and F1 gap at the {len(both)} values of λ at which both are there: deviation over "
        f"seeds as a share of the mean {varies[0]:.2f} and {varies[1]:.2f}, Spearman's correlation "
        f"with λ {falls[0]:.2f} and {falls[1]:.2f}.",
    )


def _layers_flips(r: Results) -> Parts:
    for depth in (3, 5):
        largest = r.largest(LAYERS, CAR, FLIPS, n_layers=depth)
        below = r.below(LAYERS, CAR, FLIPS, ZERO, n_layers=depth)
        yield below, f"{depth} layers {show(largest)}, 0.0000 {count(below)}"


def _layers_worse(r: Results) -> Parts:
    one, *others = (r.values(LAYERS, CAR, "AUROC", n_layers=n) for n in (1, 3, 5))
    yield [], f"{one.mean():.4f} with one layer"
    for depth, other in zip((3, 5), others, strict=True):
        found, lower = compare(other, one), (other - one).dropna() < 0
        yield [found.sign < 0], f"with {depth} {found}, lower {count(lower)}"


# ------------------------------------------------------------------------------ ours


def _exactness(r: Results) -> Parts:
    for place in CLASSIFIED:
        found = r.difference(place, "FCorr, defaults", CAR, "AUROC")
        change = r.values(place, "FCorr, defaults", "largest change").max()
        held = change == 0 and found.sign >= 0
        yield [held], f"{place.name} {found}, largest change {show(change)}"


def _beyond_the_paper(r: Results) -> Parts:
    """Hold CAR in the paper's form, with its embedding and with splines, against its figures."""
    auroc = paper_figure("adult_performance", CAR, "AUROC") or math.nan
    flips = paper_figure("adult_fairness", CAR, "AvgIF") or math.nan
    for place in ADULT:
        for model in (CAR, "FCorr, splines + CAR"):
            own, left = (r.mean(place, model, metric) for metric in ("AUROC", "AvgIF"))
            held = own > auroc and left <= flips
            yield [held], f"{model} ({place.column}) {own:.4f} and {show(left)}"


def _motor(r: Results, place: Place) -> Parts:
    plain, car = (r.fits(place, model) for model in ("FCorr", CAR))
    invariant = car["AvgIF"] < limit_of_change(r, place)
    cheap = car["deviance"] - plain["deviance"] < 0.005 * plain["deviance"]
    left = f"{show(plain['AvgIF'].mean())} without, {show(car['AvgIF'].mean())} with CAR"
    yield (invariant & cheap).tolist(), f"AvgIF {left}, invariant {count(invariant)}"
    if r.has(place, ["FCorr, defaults"], "AvgIF"):
        yield [], f"{show(r.mean(place, 'FCorr, defaults', 'AvgIF'))} with our default"
    price, removal = (r.difference(place, m, "FCorr", "deviance") for m in (CAR, REMOVED))
    level = plain["deviance"].mean()
    prices = f"with CAR {price} ({price.mean / level:.2%}), with the column removed {removal}"
    yield [], f"Poisson deviance {level:.4f}, {prices}"


# ------------------------------------------------------------------------------ all of them

_FOUR = "Largest mean of the flip metrics, test rows; "
_EPOCH = "An epoch with CDA, in epochs with augmentation: "
_RANK = "Rank of customer_age by significance (1 is the most significant), fit by fit: "
CHECKS: dict[str, Check] = {
    "attention-is-enough": by_parts(
        _attention_is_enough, "Of fits with a CAR below 1e-8, predictions are invariant: "
    ),
    "lambda-as-printed": by_parts(_lambda_as_printed, "The first ratio L_perf/L_CAR: "),
    "lambda-by-logarithm": by_fits(_lambda_by_logarithm, "Invariant on test rows: "),
    "residual-breaks": by_parts(_residual_breaks, "AvgIF above 1e-4 on test rows: "),
    "augmentation-faster": by_parts(_augmentation_faster, _EPOCH),
    "augmentation-dimension": by_parts(_augmentation_dimension, f"{_EPOCH}31 and 581 features, "),
    "car-no-parameters": by_parts(_no_more_parameters, "Parameters: "),
    "parameters-bank_fraud": by_parts(lambda r: _parameters(r, "bank_fraud", 11_064, 10_433)),
    "parameters-claims": by_parts(lambda r: _parameters(r, "claims", 21_767, 10_145)),
    "fewer-parameters": by_parts(_fewer_parameters, "FCorr's of FT-Transformer's: "),
    "ft-attention-parameters": by_parts(_heavy_attention, "Parameters outside the head: "),
    "memory-bank_fraud": by_parts(
        lambda r: _memory(r, "bank_fraud"), "Kept for the gradient of 64 rows: "
    ),
    "memory-claims": by_parts(lambda r: _memory(r, "claims"), "Kept for the gradient of 64 rows: "),
    "synthetic-flips": by_parts(lambda r: zeros(r, [SYNTHETIC], FLIPS, ZERO, "0.0000"), _FOUR),
    "synthetic-matrix": by_fits(_shows_the_data),
    "synthetic-smaller": by_fits(
        lambda r: _matrix_falls(r, lambda m: np.abs(m).mean(), 1),
        "Mean size of an entry, median of the fits: ",
    ),
    "synthetic-suppressed": by_fits(
        lambda r: _matrix_falls(r, lambda m: abs(m[0, 1]) / m[1, 1], 0.5),
        "|X1–X2| as a share of X2–X2, median of the fits: ",
    ),
    "baf-transformers-lead": by_parts(
        lambda r: tell(
            r,
            1,
            [(model, other) for model in (FT, "FCorr") for other in ("FFN", "TabTransformer")],
            (*FRAUD.metrics, "F1"),
        )
    ),
    "baf-ft-ahead": by_parts(lambda r: tell(r, 1, [(FT, "FCorr")])),
    "baf-size": by_parts(_size_does_not_help, "TabTransformer and FCorr, their difference: "),
    "baf-flips": by_parts(lambda r: zeros(r, [FRAUD], FLIPS, ZERO, "0.0000"), _FOUR),
    "baf-drop": by_parts(lambda r: tell(r, -1, [(f"{FT} + CAR", FT), (CAR, "FCorr")])),
    "baf-price": by_parts(lambda r: _little_price(r, FRAUD, LITTLE), "FCorr + CAR − FCorr: "),
    "baf-ft-car": by_parts(lambda r: _ft_keeps_bias(r, [FRAUD])),
    "baf-groups": by_parts(_group_metrics_fall),
    "baf-residual": by_parts(_residual_helps),
    "adult-level": by_parts(_level_on_adult, "AUROC less FT-Transformer's: "),
    "adult-price": by_parts(lambda r: tell(r, -1, [(CAR, "FCorr")], ["AUROC"], ADULT)),
    "adult-flips": by_parts(lambda r: zeros(r, ADULT, FLIPS, 4.5e-4, "at most 0.0004"), _FOUR),
    "adult-ft-car": by_parts(lambda r: _ft_keeps_bias(r, ADULT)),
    "claims-trees-lead": by_parts(_trees_lead),
    "claims-fcorr-ahead": by_parts(_fcorr_ahead),
    "claims-ffn-constant": by_fits(_collapsed_network, "The FFN ends "),
    "claims-flips": where_learnt(
        by_parts(lambda r: zeros(r, [AMOUNTS], AMOUNT_FLIPS, ZERO_AMOUNT, "0.00"), _FOUR),
        *("claims", "FCorr", CAR),
    ),
    "claims-ft-flips": where_learnt(
        by_parts(_ft_flips), "claims", FT, f"{FT} + CAR", at_least=_ENOUGH_SEEDS
    ),
    "claims-price": by_parts(_price_on_claims, "Test rows, FCorr + CAR − FCorr: "),
    "claims-groups-fcorr": _groups_on_claims("FCorr"),
    "claims-groups-ft": _groups_on_claims(FT),
    "baf-agrees": by_parts(lambda r: _beside_trees(r, "baf", "FCorr", "alike")),
    "baf-ft-agrees": by_parts(_ft_agrees_as_well),
    "baf-ft-shares": by_fits(
        _ft_shares_with_fcorr,
        "Of FT-Transformer's first 10 features that are not LightGBM's, so many are among FCorr's, "
        "fit by fit: ",
    ),
    "baf-attends": by_fits(_attends_to_age, _RANK),
    "baf-attention-leaves": by_fits(
        lambda r: iter([_moves(r, FRAUD.column, rises=False)]), f"{_RANK}without and with CAR, "
    ),
    "baf-attention-moves": _attention_moves,
    "claims-coverage": _coverage_is_first,
    "claims-agrees": by_parts(lambda r: _beside_trees(r, "claims", "FCorr", "differ")),
    "removal-costs": by_parts(lambda r: _where_both(r, -1, (REMOVED, "FCorr"), 1)),
    "removal-accuracy": by_parts(lambda r: _where_both(r, 1, (CAR, REMOVED), 2)),
    "removal-groups": by_parts(_removal_groups),
    "removal-flips": by_fits(
        lambda r: _unchanged(r, REMOVED, EVERYWHERE, ["test"], wanted=False),
        "Largest change of any prediction under a flip of a removed column: ",
    ),
    "lambda-steady": by_parts(
        _lambda_steady, "Spearman's correlation of λ and the mean over seeds: "
    ),
    "lambda-small": by_parts(_lambda_small, "AvgIF, as a share of that without CAR, by λ: "),
    "lambda-f1": _lambda_f1,
    "layers-flips": where_learnt(by_parts(_layers_flips, _FOUR), "multilayer", CAR),
    "layers-worse": by_parts(_layers_worse, "AUROC: "),
    "ours-collapse": by_parts(
        lambda r: _unchanged(
            r,
            "FCorr + Res + CAR, collapsed",
            (SYNTHETIC, *CLASSIFIED),
            ["train", "test"],
            wanted=True,
        ),
        "Largest change of any row under a flip: ",
    ),
    "ours-exact": by_parts(_exactness, "AUROC, our defaults − FCorr + CAR: "),
    "ours-adult": by_parts(_beyond_the_paper, "AUROC and AvgIF, test rows: "),
    "ours-bemtpl97": by_parts(lambda r: _motor(r, BELGIAN)),
    "ours-fremtpl2": by_parts(lambda r: _motor(r, FRENCH)),
}
"""From the results to a finding, by the claim's name in ``configs/claims_of_paper.toml``."""
