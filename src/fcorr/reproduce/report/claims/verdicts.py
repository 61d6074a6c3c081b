"""What can be said of a claim, and by which rules."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fcorr.reproduce.report.results import Results
from fcorr.reproduce.report.selecting import has_learnt

ZERO, ZERO_AMOUNT = 5e-5, 0.005
"""What the paper prints as 0.0000, and of amounts as 0.00."""

NO_CHANGE, NOTHING = 1e-4, 1e-3
"""AvgIF of invariant predictions: of a probability, and as a share of that without CAR."""

LITTLE, LITTLE_GINI = 0.005, 0.05
"""Of AUROC and AUPRC, and of Gini on amounts; the paper's prices of CAR are .0015 and .04."""

_GENERALLY = 0.8  # of the fits


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


Check = Callable[[Results], Finding | None]
"""From the results to a finding, or to None where the runs it takes are not there."""


@dataclass(frozen=True)
class Claim:
    """One claim, and how to check it.

    Attributes
    ----------
    section : str
        Where the paper makes it; "" for one of ours.
    text : str
        What it says, in our words.
    experiments : tuple of str
        Whose records it is checked by.
    check : callable
        See :data:`Check`.
    table : str or None
        Which of the experiment's tables, where it has several.
    """

    section: str
    text: str
    experiments: tuple[str, ...]
    check: Check
    table: str | None = None


def not_testable(section: str, text: str, reason: str) -> Claim:
    """Make a claim that nothing here could confirm or refute."""
    return Claim(section, text, (), lambda results: Finding(Verdict.NOT_TESTABLE, reason))


def judge(parts: Sequence[bool]) -> Verdict:
    """Judge a claim by its parts, or by fits that must not break it: all hold, some or none."""
    if all(parts):
        return Verdict.HOLDS
    return Verdict.IN_PART if any(parts) else Verdict.FAILS


def judge_fits(fits: Sequence[bool]) -> Verdict:
    """Judge a claim by the fits that show it: four in five of them, more than half or fewer."""
    share = sum(fits) / len(fits)
    return judge([share > 0.5, share >= _GENERALLY])


def tell(
    results: Results,
    experiment: str,
    model: str,
    other: str,
    metrics: Sequence[str],
    **where: Any,
) -> tuple[list[int], str] | None:
    """Say of each metric whether a model has more (1) or less (-1), beyond the noise of seeds."""
    found = [results.difference(experiment, model, other, metric, **where) for metric in metrics]
    differences = [difference for difference in found if difference is not None]
    if len(differences) < len(metrics):
        return None
    listed = zip(metrics, differences, strict=True)
    text = ", ".join(f"{metric} {difference}" for metric, difference in listed)
    return [difference.sign for difference in differences], f"{model} − {other}: {text}."


def are_zero(
    results: Results,
    experiment: str,
    model: str,
    metrics: Sequence[str],
    limit: float,
    **where: Any,
) -> list[bool]:
    """Say of each fit whether all of some metrics are below a limit."""
    found = [results.by_seed(experiment, model, metric, **where) for metric in metrics]
    return [all(of.get(seed, math.inf) < limit for of in found) for seed in found[0]]


def where_learnt(check: Check, experiment: str, *models: str, at_least: int = 1) -> Check:
    """Check a claim at the seeds at which models predict more than a constant, which is fair, too.

    With fewer than ``at_least`` such seeds it cannot be tested.
    """

    def restricted(results: Results) -> Finding | None:
        records = [record for model in models for record in results.select(experiment, model)]
        seeds = {record["seed"] for record in records}
        learnt = seeds - {record["seed"] for record in records if not has_learnt(record)}
        if learnt == seeds:
            return check(results)
        named = " and ".join(models)
        beside = f"At the {len(learnt)} of {len(seeds)} seeds where all fits of {named} learnt"
        if not learnt:
            return Finding(Verdict.NOT_TESTABLE, f"{beside}: none to tell by.")
        finding = check(results.at_seeds(experiment, learnt))
        if finding is None or len(learnt) >= at_least:
            return finding and Finding(finding.verdict, f"{beside}. {finding.evidence}")
        return Finding(Verdict.NOT_TESTABLE, f"{beside}, too few to tell by. {finding.evidence}")

    return restricted


def count(fits: Sequence[bool]) -> str:
    """Say in how many fits something is so."""
    return f"in {sum(fits)} of {len(fits)} fits"


def is_missing(*values: float) -> bool:
    """Say whether one of some numbers is not there."""
    return any(math.isnan(value) for value in values)


def show(value: float) -> str:
    """Write a metric that may be tiny or exactly 0.

    Examples
    --------
    >>> show(0.0), show(0.12345), show(3e-7)
    ('0', '0.1235', '3.0e-07')
    """
    if value == 0:
        return "0"
    if abs(value) < ZERO:
        return f"{value:.1e}"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:,.2f}"
