"""The report: claims first, then tables and figures, all made from the records."""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from fcorr._core import InvalidInputError, write_atomically
from fcorr.audit.tables import TextTable
from fcorr.reproduce.report.claims import OURS, CheckedClaim, Verdict, check_claims
from fcorr.reproduce.report.figures import make_figures
from fcorr.reproduce.report.items import ReportFigure, ReportTable
from fcorr.reproduce.report.selecting import Records
from fcorr.reproduce.report.tables import make_tables
from fcorr.reproduce.settings import EXPERIMENTS, read_config

_HEAD = """\
# The paper, made again

*Efficient and Interpretable Transformer for Counterfactual Fairness* (Dong and Quan) proposes
FCorrTransformer and CAR. `fcorr reproduce all` fits every model of its experiments, several seeds
each, and writes this page, tables and figures from the [records of the runs](reproduction/results).
{size}
"Counterfactual" is the paper's word: what is measured is whether predictions change under a flip of
the sensitive column. That is neither causal fairness nor compliance with a law.

Bank Account Fraud may not be passed on and InsurTech is private. Unless you have the former, tables
of the same shape are generated in their place, and so labelled: what holds on them need not hold on
the originals. Adult and the motor policies are the real ones.
"""

_RULES = """\
A verdict is computed from the records by a rule, not written by hand:

- Differences are means ± standard errors over seeds, paired by seed; where seeds share test rows,
  these rows' own sampling error is left out. "More", "better", "lower" or "costs" means told from 0
  by Student's test at 5 %. A difference that is not is marked ≈: "does not hold" then says that the
  claim is not borne out, not that it is refuted. Of flip metrics of amounts, which differ many
  times over between seeds, logarithms are compared.
- A claim of several parts, metrics or tables holds in part if some of them do. One about fits holds
  if four in five of them show it, in part if more than half do; one of zeros, of exactness or of a
  rule that must not fail, if all of them do, in part if some do.
- Zero is what the paper's digits make it: below 5e-5 where it prints 0.0000, below .005 where it
  prints 0.00. Predictions are invariant with an AvgIF below 1e-4 of a probability, or below a
  thousandth of what it is without CAR if they are amounts or frequencies; attention is with a CAR
  below 1e-8 at the end of training.
- A constant does not change under a flip either. Where fits learnt nothing (an AUROC up to .55, a
  Gini up to .1, or outputs that hardly differ, of which `fit` warns), claims of fairness on
  amounts and of several layers are judged at the other seeds; a claim about a difference only if
  four seeds are left. That bias is left, or what invariance costs, counts only where CAR took
  some.
- Groups differ less only if they also do in shares of the positive decisions.
- "Little" and "level" mean at most .005 of AUROC and AUPRC, "not much" at most .05 of Gini. "Small"
  memory is a tenth, "far fewer" parameters at most half, "roughly half" at most .6, "suppressed" at
  most half; a λ takes "little" where more than half is left. An epoch is shorter if it is in every
  measurement.
- Rankings "largely agree" if more of the first features are shared than by chance and the rank
  correlation is above .6 (one of the two: in part), and "differ" up to .6; "about as well" is no
  worse. "High" attention is a place among the first 10. "Steadily" is a rank correlation with λ
  below -.8.
"""

_SMOKE = """
**These are the figures of a smoke run: they mean nothing.**
"""


def write_document(records: Records, output: str | os.PathLike[str], *, smoke: bool) -> list[Path]:
    """Write the report, its tables and its figures; return the files.

    Parameters
    ----------
    records : dict of str to list
        Records by experiment.
    output : path
        ``reproduction.md`` goes there, all else into ``reproduction`` beside it.
    smoke : bool
        Whether the runs were those of a smoke test, which the report then says.
    """
    if not any(records.values()):
        raise InvalidInputError(
            f"A report needs records, got none in {str(output)!r}. Run the experiments first: "
            "fcorr reproduce synthetic, say."
        )
    folder = Path(output) / "reproduction"
    tables, figures = make_tables(records), make_figures(records)
    claims = check_claims(records)
    files = {
        Path(output) / "reproduction.md": _write(records, claims, tables, figures, smoke=smoke),
        **{folder / "tables" / f"{table.name}.md": table.markdown() for table in tables},
        **{folder / "tables" / f"{table.name}.tex": table.latex() for table in tables},
        **{folder / "figures" / f"{figure.name}.svg": figure.svg for figure in figures},
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text.encode())
    return list(files)


def _write(
    records: Records,
    claims: list[CheckedClaim],
    tables: list[ReportTable],
    figures: list[ReportFigure],
    *,
    smoke: bool,
) -> str:
    parts = [
        _HEAD.format(size=_SMOKE if smoke else ""),
        f"{_describe_runs(records)}\n",
        "## The paper's claims\n",
        f"{_summarise(claims)}\n",
        _RULES,
        _claims_table(claims).markdown(n_labels=4),
        "## Claims of ours\n",
        _claims_table(check_claims(records, OURS)).markdown(n_labels=4),
    ]
    rest: list[ReportTable | ReportFigure] = [*tables, *figures]
    for experiment in EXPERIMENTS:
        own = [item for item in rest if _belongs(item.name, experiment)]
        rest = [item for item in rest if item not in own]
        if records.get(experiment):
            config = read_config(experiment)
            note = f" {config['note']}" if "note" in config else ""
            parts.append(f"## {config['title']}\n\nPaper: section {config['section']}.{note}\n")
            parts += map(_show, own)
    if rest:
        parts += ["## Across the experiments\n", *map(_show, rest)]
    return "\n".join(parts)


def _describe_runs(records: Records) -> str:
    every = [record for of_experiment in records.values() for record in of_experiment]
    seconds = sum(
        record["seconds"][part]
        for record in every
        for part in ("fit", "measure")
        if "seconds" in record
    )
    versions = sorted({tuple(record["versions"].items()) for record in every})
    named = "; ".join(
        ", ".join(f"{name} {v}" for name, v in of.items()) for of in map(dict, versions)
    )
    return (
        f"{len(every)} runs; the fits and their measurements took {seconds / 3600:.1f} hours of "
        f"one core. Versions: {named}. Hyperparameters are in the configurations of the package "
        "(`fcorr/reproduce/configs`); what is not the paper's or a default was chosen on rows held "
        "out of a training file, or on other draws of a generated table. Notes below say where a "
        "first look at the reported draws was the reason to choose anew."
    )


def _belongs(name: str, experiment: str) -> bool:
    """Say whether a table or figure is shown under an experiment."""
    is_cost = name.endswith("_complexity") or name == "seconds_per_epoch"
    return is_cost if experiment == "complexity" else not is_cost and name.startswith(experiment)


def _summarise(claims: Iterable[CheckedClaim]) -> str:
    counts = Counter(checked.finding.verdict for checked in claims)
    named = [f"{counts[verdict]} {_PLURAL[verdict]}" for verdict in Verdict if counts[verdict]]
    return f"Of {counts.total()} claims, {', '.join(named)}."


_PLURAL = {
    Verdict.HOLDS: "hold",
    Verdict.IN_PART: "hold in part",
    Verdict.FAILS: "do not hold",
    Verdict.NOT_TESTABLE: "are not testable here",
    Verdict.NOT_RUN: "were not run",
}


def _claims_table(claims: Iterable[CheckedClaim]) -> TextTable:
    rows = []
    for checked in claims:
        evidence = checked.finding.evidence
        if checked.data:
            evidence += f" Data: {checked.data}."
        rows.append(
            [checked.claim.section, checked.claim.text, f"**{checked.finding.verdict}**", evidence]
        )
    return TextTable(["§", "Claim", "Verdict", "Evidence"], rows)


def _show(item: ReportTable | ReportFigure) -> str:
    if isinstance(item, ReportTable):
        return f"### {item.title}\n\n{item.caption}\n\n{item.markdown()}"
    source = f"reproduction/figures/{item.name}.svg"
    return f"### {item.title}\n\n![{item.title}]({source})\n\n{item.caption}\n"
