"""The paper's claims one by one, and what the records say of them.

Read `verdicts` for the rules and `places` for where several claims are checked; the other modules
hold claims and their criteria.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from fcorr.reproduce.report.claims import (
    appendices,
    attention,
    classification,
    complexity,
    method,
    regression,
    removal,
    synthetic,
)
from fcorr.reproduce.report.claims.verdicts import Claim, Finding, Verdict
from fcorr.reproduce.report.results import Results
from fcorr.reproduce.report.selecting import Records

__all__ = ["CLAIMS", "OURS", "CheckedClaim", "Verdict", "check_claims"]

CLAIMS: tuple[Claim, ...] = (
    *method.CLAIMS,
    *complexity.CLAIMS,
    *synthetic.CLAIMS,
    *classification.CLAIMS,
    *regression.CLAIMS,
    *attention.CLAIMS,
    *removal.CLAIMS,
    *appendices.CLAIMS,
)
"""The paper's, the method first."""

OURS: tuple[Claim, ...] = (*method.OURS, *regression.OURS)
"""Beyond the paper."""


@dataclass(frozen=True)
class CheckedClaim:
    """A claim, what it was checked on, and what came out."""

    claim: Claim
    data: str
    finding: Finding


def check_claims(records: Records, claims: Iterable[Claim] = CLAIMS) -> list[CheckedClaim]:
    """Check claims by the records that are there."""
    results = Results(records)
    checked = []
    for claim in claims:
        finding = claim.check(results)
        if finding is None:
            finding = Finding(Verdict.NOT_RUN, "The records it takes are not there.")
        checked.append(CheckedClaim(claim, _data(claim, results), finding))
    return checked


def _data(claim: Claim, results: Results) -> str:
    """Name the data of the claim's experiments; generated tables are called so."""
    where = {} if claim.table is None else {"table": claim.table}
    names = {
        f"{r['data']['name']} (in place of {r['data']['stands_in_for']})"
        if r["data"]["stands_in_for"]
        else str(r["data"]["name"])
        for experiment in claim.experiments
        for r in results.select(experiment, **where)
        if "data" in r
    }
    return ", ".join(sorted(names))
