"""What can be said of a claim, and by which rule."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fcorr.reproduce.report.results import Results
from fcorr.reproduce.report.selecting import has_learnt

ZERO = 5e-5
"""What the paper prints as 0.0000."""

LITTLE = 0.005
"""Of AUROC: the paper's own price of CAR on BAF is .0015."""


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
    experiment : str
        Whose records it is checked by; "" if by none or by several.
    check : callable
        See :data:`Check`.
    table : str or None
        Which of the experiment's tables, where it has several.
    """

    section: str
    text: str
    experiment: str
    check: Check
    table: str | None = None


def not_testable(section: str, text: str, reason: str) -> Claim:
    """Make a claim that nothing here could confirm or refute."""
    return Claim(section, text, "", lambda results: Finding(Verdict.NOT_TESTABLE, reason))


def judge(parts: Sequence[bool]) -> Verdict:
    """Judge a claim by its parts: all of them hold, some or none."""
    if all(parts):
        return Verdict.HOLDS
    return Verdict.IN_PART if any(parts) else Verdict.FAILS


def compare(
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


def where_learnt(check: Check, experiment: str, *models: str, at_least: int = 1) -> Check:
    """Check a claim of fairness at the seeds at which models learnt: a constant is fair, too.

    With fewer than ``at_least`` such seeds it cannot be tested.
    """

    def restricted(results: Results) -> Finding | None:
        useless = {
            record["seed"]
            for model in models
            for record in results.select(experiment, model)
            if not has_learnt(record)
        }
        seeds = {record["seed"] for m in models for record in results.select(experiment, m)}
        if not useless:
            return check(results)
        learnt = seeds - useless
        finding = check(results.at_seeds(experiment, learnt) if learnt else results)
        if finding is None:
            return None
        named = " and ".join(models)
        beside = f"At the {len(learnt)} of {len(seeds)} seeds where {named} learnt something"
        if len(learnt) < at_least:
            text = f"{beside}, too few to tell by. {finding.evidence}"
            return Finding(Verdict.NOT_TESTABLE, text)
        return Finding(finding.verdict, f"{beside}. {finding.evidence}")

    return restricted


def count_below(values: Collection[float], limit: float) -> str:
    """Say of how many fits a metric is below a limit."""
    return f"below {limit:.0e} in {sum(v < limit for v in values)} of {len(values)} fits"


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
