"""What can be said of a claim, and by which rule."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fcorr.reproduce.report.results import Results

ZERO = 5e-5
"""What the paper prints as 0.0000."""


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
        From the results to a finding, or to None where the runs it takes are not there.
    table : str or None
        Which of the experiment's tables, where it has several.
    """

    section: str
    text: str
    experiment: str
    check: Callable[[Results], Finding | None]
    table: str | None = None


def not_testable(section: str, text: str, reason: str) -> Claim:
    """Make a claim that nothing here could confirm or refute."""
    return Claim(section, text, "", lambda results: Finding(Verdict.NOT_TESTABLE, reason))


def judge(parts: Sequence[bool]) -> Verdict:
    """Judge a claim by its parts: all of them hold, some or none."""
    if all(parts):
        return Verdict.HOLDS
    return Verdict.IN_PART if any(parts) else Verdict.FAILS


def beats(
    results: Results, experiment: str, model: str, other: str, metrics: Sequence[str]
) -> tuple[list[bool], str] | None:
    """Say of each metric whether a model has more of it than another, beyond the noise of seeds."""
    found = [results.difference(experiment, model, other, metric) for metric in metrics]
    differences = [difference for difference in found if difference is not None]
    if len(differences) < len(metrics):
        return None
    listed = zip(metrics, differences, strict=True)
    text = ", ".join(f"{metric} {difference}" for metric, difference in listed)
    return [difference.sign > 0 for difference in differences], f"{model} − {other}: {text}."


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
