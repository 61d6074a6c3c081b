"""The report: what holds on one screen, then claims, tables and figures, all from the records."""

from pathlib import Path

from fcorr import InvalidInputError
from fcorr._core import write_atomically
from paper.claims import CheckedClaim, check_claims, count_verdicts
from paper.experiments import EXPERIMENTS, read_config
from paper.figures import ReportFigure, make_figures
from paper.results import Results
from paper.runs import Records
from paper.tables import Table, make_tables

_HEAD = """\
# The paper, made again

*Efficient and Interpretable Transformer for Counterfactual Fairness* (Dong and Quan) proposes
FCorrTransformer and CAR. `python -m paper all` fits every model of its experiments, several seeds
each, and writes this page, tables and figures from the [records of the runs](reproduction/results).
{size}
## In short

"""

_ABOUT = """\
"Counterfactual" is the paper's word: what is measured is whether predictions change under a flip of
the sensitive column. That is neither causal fairness nor compliance with a law.

Bank Account Fraud may not be passed on and InsurTech is private. Unless you have the former, tables
of the same shape are generated in their place, and so labelled: what holds on them need not hold on
the originals. Adult and the motor policies are the real ones.
"""

_RULES = """\
A verdict is computed from the records by the rule that stands beside it, not written by hand:

- Differences are means ± standard errors over seeds, paired by seed; where seeds share test rows,
  these rows' own sampling error is left out. "More", "less", "higher" or "lower" means told from 0
  by Student's test at 5 %. A difference that is not is marked ≈: "does not hold" then says that the
  claim is not borne out, not that it is refuted. Of flip metrics of amounts, which differ many
  times over between seeds, logarithms are compared.
- A claim of several parts, metrics or tables holds in part if some of them do. One about what is
  generally so holds if four in five fits show it, in part if more than half do; one of zeros, of
  exactness or of a rule that must not fail, if all of them do, in part if some do.
- Zero is what the paper's digits make it: below 5e-5 where it prints 0.0000, below .005 where it
  prints 0.00. Predictions are invariant with an AvgIF below 1e-4 of a probability, or below a
  thousandth of what it is without CAR if they are amounts or frequencies.
- A constant does not change under a flip either. Fits learnt nothing that have an AUROC up to .55,
  a Gini up to .1, or outputs that hardly differ, of which `fit` warns.
"""

_SMOKE = """
**These are the figures of a smoke run: they mean nothing.**
"""


def write_report(records: Records, output: Path, *, smoke: bool) -> list[Path]:
    """Write the report, its tables and its figures; return the files.

    ``reproduction.md`` goes to ``output``, all else into ``reproduction`` beside it. Of runs of a
    smoke test the report says so.
    """
    if not any(records.values()):
        raise InvalidInputError(
            f"A report needs records, got none in {str(output)!r}. Run the experiments first: "
            "python -m paper synthetic, say."
        )
    results, folder = Results(records), output / "reproduction"
    tables, figures, claims = make_tables(results), make_figures(results), check_claims(records)
    page = _write_page(records, claims, [*tables, *figures], smoke=smoke)
    files = {
        output / "reproduction.md": page.encode(),
        **{folder / "tables" / f"{table.name}.md": table.markdown().encode() for table in tables},
        **{folder / "tables" / f"{table.name}.tex": table.latex().encode() for table in tables},
        **{folder / "figures" / f"{figure.name}.svg": figure.svg for figure in figures},
    }
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, content)
    return list(files)


def _write_page(
    records: Records, claims: list[CheckedClaim], items: list[Table | ReportFigure], *, smoke: bool
) -> str:
    papers = [claim for claim in claims if claim.section]
    parts = [
        _HEAD.format(size=_SMOKE if smoke else "") + summarise(claims),
        _ABOUT,
        f"{_describe_runs(records)}\n",
        "## The paper's claims\n",
        f"{count_verdicts(papers)}\n",
        _RULES,
        _claims_table(papers),
        "## Claims of ours\n",
        _claims_table([claim for claim in claims if not claim.section]),
    ]
    for experiment in EXPERIMENTS:
        own = [item for item in items if _belongs(item.name, experiment)]
        items = [item for item in items if item not in own]
        if records.get(experiment):
            config = read_config(experiment)
            note = f" {config['note']}" if "note" in config else ""
            parts.append(f"## {config['title']}\n\nPaper: section {config['section']}.{note}\n")
            parts += map(_show, own)
    if items:
        parts += ["## Across the experiments\n", *map(_show, items)]
    return "\n".join(parts)


def summarise(claims: list[CheckedClaim]) -> str:
    """Say in a few lines what holds and what does not.

    A line is written only if all claims that it rests on came out as it says.
    """
    verdicts = {claim.id: str(claim.finding.verdict) for claim in claims}
    lines = [
        f"- {line['text']}\n"
        for line in read_config("summary")["lines"]
        if all(verdicts[name] == verdict for name, verdict in line["rests_on"].items())
    ]
    counted = count_verdicts(claim for claim in claims if claim.section)
    return f"{counted}\n\n{''.join(lines)}"


def _describe_runs(records: Records) -> str:
    every = [record for of_experiment in records.values() for record in of_experiment]
    seconds = [record["seconds"] for record in every if "seconds" in record]
    hours = sum(of["fit"] + of["measure"] for of in seconds) / 3600
    versions = sorted({tuple(record["versions"].items()) for record in every})
    named = "; ".join(", ".join(f"{name} {version}" for name, version in of) for of in versions)
    return (
        f"{len(every)} runs; the fits and their measurements took {hours:.1f} hours of one core. "
        f"Versions: {named}. Hyperparameters are in the configurations (`paper/configs`); what is "
        "not the paper's or a default was chosen on rows held out of a training file, or on other "
        "draws of a generated table. Notes below say where a first look at the reported draws was "
        "the reason to choose anew."
    )


def _belongs(name: str, experiment: str) -> bool:
    """Say whether a table or figure is shown under an experiment."""
    is_cost = name.endswith("_complexity") or name == "seconds_per_epoch"
    return is_cost if experiment == "complexity" else not is_cost and name.startswith(experiment)


def _claims_table(claims: list[CheckedClaim]) -> str:
    rows = []
    for claim in claims:
        rule = f" *Holds if {claim.rule}.*" if claim.rule else ""
        data = f" Data: {claim.data}." if claim.data else ""
        evidence = f"{claim.finding.evidence}{rule}{data}"
        rows.append([claim.section, claim.text, f"**{claim.finding.verdict}**", evidence])
    header = ["§", "Claim", "Verdict", "Evidence"]
    return Table("claims", "", "", header, rows, n_labels=4).markdown()


def _show(item: Table | ReportFigure) -> str:
    if isinstance(item, Table):
        return f"### {item.title}\n\n{item.caption}\n\n{item.markdown()}"
    source = f"reproduction/figures/{item.name}.svg"
    return f"### {item.title}\n\n![{item.title}]({source})\n\n{item.caption}\n"
