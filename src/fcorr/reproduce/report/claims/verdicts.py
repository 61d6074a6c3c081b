"""What can be said of a claim, and by which rule."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from fcorr.reproduce.report.results import Difference, Results


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


@dataclass(frozen=True)
class Claim:
    """One claim of the paper, and how to check it.

    Attributes
    ----------
    section : str
        Where the paper makes it.
    text : str
        What it says, in our words.
    experiment : str
        Whose records it is checked by; "" if by none.
    check : callable
        From the results to a finding, or to None where the runs it takes are not there.
    table : str or None
        Which of the experiment's tables, where it has several.
    """

    section: str
    text: str
    experiment: str
    check: Callable[[Results], Finding | None]
    table: str | None = None


ZERO = 5e-5
"""What the paper prints as 0.0000."""


def from_sign(sign: int) -> Verdict:
    """Judge "more": yes, level within two standard errors, or less."""
    return {1: Verdict.HOLDS, 0: Verdict.IN_PART, -1: Verdict.FAILS}[sign]


def from_parts(parts: list[bool]) -> Verdict:
    """Judge a claim of several parts: all, some or none of them hold."""
    if all(parts):
        return Verdict.HOLDS
    return Verdict.IN_PART if any(parts) else Verdict.FAILS


def beats(
    results: Results,
    experiment: str,
    model: str,
    other: str,
    metrics: tuple[str, ...],
    **where: str,
) -> Finding | None:
    """Check that a model has more of some metrics than another, all of them."""
    found = {
        metric: results.difference(experiment, model, other, metric, **where) for metric in metrics
    }
    differences = {metric: d for metric, d in found.items() if d is not None}
    if len(differences) < len(metrics):
        return None
    signs = [difference.sign for difference in differences.values()]
    verdict = from_sign(signs[0]) if len(set(signs)) == 1 else Verdict.IN_PART
    return Finding(verdict, f"{model} − {other}: {_list(differences)}.")


def _list(differences: dict[str, Difference]) -> str:
    return ", ".join(f"{metric} {difference}" for metric, difference in differences.items())


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
    return (
        f"{value:.1e}"
        if abs(value) < ZERO
        else f"{value:.4f}"
        if abs(value) < 10
        else f"{value:,.2f}"
    )
