"""The paper's tables made again, with its own figures in parentheses."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from paper.costs import AUGMENTED, BY_DEFINITION, CLOSED_FORM
from paper.experiments import read_config
from paper.results import (
    AMOUNT_FLIPS,
    FLIPS,
    GROUPS,
    N_FIRST,
    NotRunError,
    Results,
    correlate_ranks,
    count_shared,
    paper_figure,
    paper_rows,
)

DECISIONS = ("Accuracy", "F1", "FPR", "FNR", "AUROC", "AUPRC")
AMOUNTS = ("Gini", "normalised Gini", "PE", "RMSE", "MAE")
MEASURES = {
    **{name: (name, "significance") for name in ("FCorr", "FCorr + CAR", "FT-Transformer")},
    **{f"LightGBM, {kind}": ("LightGBM", kind) for kind in ("split", "gain")},
}
"""Model and kind of significance of each measure."""

_CHANGES = ("largest change", "decisions flipped")
_PERFORMANCE = (*DECISIONS, "Accuracy at 0.5", *AMOUNTS, "deviance")
_FORMS = (BY_DEFINITION, AUGMENTED, CLOSED_FORM)
_READING = "Mean ± standard deviation over seeds"
_WIDE = 90  # characters of a row for which a page is too narrow
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "§": r"\S{}",
        "±": r"$\pm$",
        "×": r"$\times$",
        "÷": r"$\div$",
        "−": "$-$",
        "≈": r"$\approx$",
        "λ": r"$\lambda$",
        "–": "--",
        "[": "{[}",  # else the end of a line would take it for a length
        **{char: f"\\{char}" for char in "&%$#_{}"},
    }
)


class Table(NamedTuple):
    """A table, ready to be written; its first ``n_labels`` columns are names, others numbers."""

    name: str
    title: str
    caption: str
    header: list[str]
    rows: list[list[str]]
    n_labels: int = 1

    def markdown(self) -> str:
        """Write the cells in Markdown; a bar inside a cell would end it."""
        rule = ["---"] * self.n_labels + ["---:"] * (len(self.header) - self.n_labels)
        lines = [self.header, rule, *self.rows]
        cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
        return "".join(f"| {' | '.join(line)} |\n" for line in cells)

    def latex(self) -> str:
        """Write the table with caption and label; it takes the packages booktabs and graphicx."""
        columns = "l" * self.n_labels + "r" * (len(self.header) - self.n_labels)
        lines = [self.header, *self.rows]
        header, *rows = (" & ".join(map(_escape, line)) + r" \\" for line in lines)
        top = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", header, r"\midrule"]
        tabular = "\n".join([*top, *rows, r"\bottomrule", r"\end{tabular}", ""])
        if sum(max(map(len, column)) for column in zip(*lines, strict=True)) > _WIDE:
            tabular = f"\\resizebox{{\\textwidth}}{{!}}{{%\n{tabular}}}\n"
        caption = _escape(f"{self.title}. {self.caption}")
        return (
            "\\begin{table}[!ht]\n\\centering\n"
            f"\\caption{{{caption}}}\n\\label{{tab:{self.name}}}\n\\footnotesize\n"
            f"{tabular}\\end{{table}}\n"
        )


def _escape(text: str) -> str:
    """Write what LaTeX would take for a command, and symbols that few of its fonts have."""
    return text.translate(_LATEX)


# ------------------------------------------------------------------------------ cells


def show_cell(
    values: Sequence[float],
    paper: float | None = None,
    *,
    decimals: int = 4,
    paper_decimals: int = 4,
    tiny: bool = False,
) -> str:
    """Write mean and deviation of what seeds came to, and in parentheses what the paper prints.

    Where seeds have no value, it is said how many have. Exactly 0 is written "0" and, if ``tiny``
    asks for it, what rounds to 0 as a power of ten.

    Examples
    --------
    >>> show_cell([0.9126, 0.9130], 0.9128), show_cell([0.91]), show_cell([0.0, 0.0], 0.0)
    ('0.9128 ± 0.0002 (0.9128)', '0.9100', '0 (0.0000)')
    >>> show_cell([3e-8], tiny=True), show_cell([0.5, np.nan]), show_cell([np.nan])
    ('3.0e-08', '0.5000 [1 of 2]', 'n/a')
    """
    known = [value for value in values if not pd.isna(value)]
    text = "n/a"
    if known:
        mean, deviation = float(np.mean(known)), float(np.std(known))
        tiny = tiny and max(abs(mean), deviation) < 10.0**-decimals
        text = _show_number(mean, decimals, tiny=tiny)
        if len(known) > 1 and any(known):
            text += f" ± {_show_number(deviation, decimals, tiny=tiny)}"
        if len(known) < len(values):
            text += f" [{len(known)} of {len(values)}]"
    return text if paper is None else f"{text} ({_fixed(paper, paper_decimals)})"


def _show_number(value: float, decimals: int, *, tiny: bool) -> str:
    if value == 0:
        return "0"
    if tiny:
        return f"{value:.1e}" if abs(value) < 1e-3 else f"{value:.2g}"
    return _fixed(value, decimals)


def _fixed(value: float, decimals: int) -> str:
    return f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", "−")  # no −0


def describe_data(rows: pd.DataFrame, *, with_seeds: bool = True) -> str:
    """Say in a sentence or two which data some fits had, how many rows, and how many seeds."""
    fields = ["name", "stands_in_for", "n_train", "n_train_measured", "n_test"]
    name, stands_in_for, *sizes = (rows[field].mode()[0] for field in fields)
    n_train, n_measured, n_test = map(int, sizes)
    source = f"generated by {name}" if name.startswith("make_") else name
    if stands_in_for:
        source += f" in place of {stands_in_for}"
    train = f"{n_train:,} training rows"
    if n_measured < n_train:
        train += f" (their metrics on {n_measured:,} of them)"
    seeds = f"; {count_seeds(rows)}" if with_seeds else ""
    return f"Data: {source}, {train}, {n_test:,} test rows{seeds}."


def count_seeds(rows: pd.DataFrame) -> str:
    """Write how many seeds there are: of each model, if they have unequally many."""
    counts = rows.groupby("model")["seed"].nunique()
    fewest, most = counts.min(), counts.max()
    if fewest < most:
        return f"{fewest} to {most} seeds"
    return f"{most} seed{'s' if most > 1 else ''}"


def order_models(rows: pd.DataFrame, experiment: str, paper: str = "") -> list[str]:
    """List the models that there are: the paper's first, then in the configuration's order."""
    there = list(dict.fromkeys(rows["model"]))
    first = list(paper_rows(paper)) if paper else []
    order = dict.fromkeys([*first, *read_config(experiment)["models"], *there])
    return [model for model in order if model in there]


# ------------------------------------------------------------------------------ tables of fits


def make_tables(r: Results) -> list[Table]:
    """Make all tables that there are records for, in the paper's order."""
    tables = []
    for make in (
        _synthetic,
        _baf,
        _adult,
        _claims,
        _motor,
        _lambdas,
        _layers,
        _significances,
        _costs,
    ):
        try:
            for table in make(r):
                tables.append(table)  # noqa: PERF402 - what comes before a gap is kept
        except NotRunError:
            continue
    return tables


def _synthetic(r: Results) -> Iterator[Table]:
    rows = r.select("synthetic")
    name, note = "synthetic_fairness", "The paper does not say which rows its figures are of."
    title = "Fairness on synthetic data"
    yield _fit_table(rows, name, title, (*FLIPS, *_CHANGES), paper=name, note=note)
    yield _fit_table(rows, "synthetic_performance", "Performance on synthetic data", DECISIONS)


def _baf(r: Results) -> Iterator[Table]:
    """Make three tables; those of performance share out the models as the paper does."""
    rows, note = r.select("baf"), ""
    thresholds = rows.groupby("seed")["threshold"].first().dropna()
    if len(thresholds):
        threshold = show_cell(thresholds.tolist(), decimals=3)
        paper = paper_figure("baf_threshold", "LightGBM", "threshold")
        rule = "Threshold, of LightGBM's best F1 on training rows"
        note = f"{rule}: {threshold} (the paper's: {paper})."
    first, baselines = (list(paper_rows(f"baf_{name}")) for name in ("performance", "baselines"))
    is_first, is_baseline = rows["model"].isin(first), rows["model"].isin(baselines)
    for part, title, metrics, some in (
        ("performance", "Performance", DECISIONS, rows[is_first]),
        ("fairness", "Fairness", (*GROUPS, *FLIPS, *_CHANGES), rows),
        ("baselines", "More models", DECISIONS, rows[~is_first | is_baseline]),
    ):
        if len(some):
            title = f"{title} on bank account fraud"
            yield _fit_table(some, f"baf_{part}", title, metrics, paper=f"baf_{part}", note=note)


def _adult(r: Results) -> Iterator[Table]:
    # Its figures of EqOpp (3/7 on the test rows) are those of small groups, which sexes are not.
    of_paper = "The paper does not name its sensitive column; its figures are put beside race. "
    of_mitigations = (
        "Mitigations of fairlearn decide at random, with their scores as probabilities; here they "
        "decide from 0.5 on, which their guarantees are not about: see the difference of mean "
        "scores between groups, DPD of scores. AUROC and AUPRC of such mixtures of decisions are "
        "not comparable with the others'."
    )
    rows = r.select("adult")
    for column in dict.fromkeys(rows["column"]):
        is_papers = column == "race"
        for part, metrics in (
            ("performance", (*DECISIONS, "Accuracy at 0.5")),
            ("fairness", (*GROUPS, "DPD of scores", *FLIPS, *_CHANGES)),
        ):
            yield _fit_table(
                rows[rows["column"] == column],
                f"adult_{part}_{column}",
                f"{part.capitalize()} on Adult, sensitive: {column}",
                metrics,
                paper=f"adult_{part}" if is_papers else "",
                note=f"{of_paper if is_papers else ''}{of_mitigations}",
            )


def _claims(r: Results) -> Iterator[Table]:
    for part, metrics in (
        ("performance", AMOUNTS),
        ("fairness", ("DPD", *AMOUNT_FLIPS, "largest change")),
    ):
        name, title = f"claims_{part}", f"{part.capitalize()} on claim amounts, 581 features"
        yield _fit_table(r.select("claims"), name, title, metrics, paper=name)


def _motor(r: Results) -> Iterator[Table]:
    for table, rows in r.select("motor").groupby("table", sort=False):
        title = f"Claim frequencies of motor policies ({table}), sensitive: "
        metrics = (*AMOUNTS, "deviance", "DPD", "A/E gap", *AMOUNT_FLIPS, "largest change")
        yield _fit_table(rows, f"motor_{table}", title + rows["column"].iloc[0], metrics)


def _lambdas(r: Results) -> Iterator[Table]:
    rows, title = r.select("controllability"), "Controllability: metrics over λ"
    metrics = ("AUROC", "AUPRC", "F1", "DPD", *FLIPS, *_CHANGES)
    note = "The paper draws a figure and prints no numbers."
    yield _fit_table(rows, "controllability", title, metrics, point=("car", "λ"), note=note)


def _layers(r: Results) -> Iterator[Table]:
    rows, title = r.select("multilayer"), "Several encoder layers, on bank account fraud"
    metrics, point = ("AUROC", "AUPRC", *GROUPS, *FLIPS, *_CHANGES), ("n_layers", "Layers")
    yield _fit_table(rows, "multilayer", title, metrics, point=point, paper="multilayer")


def _fit_table(
    rows: pd.DataFrame,
    name: str,
    title: str,
    metrics: Sequence[str],
    *,
    point: tuple[str, str] | None = None,
    paper: str = "",
    note: str = "",
) -> Table:
    """Make a table of train and test rows by models, and by what is varied (``point``, its name).

    ``paper`` is the paper's table in ``configs/paper.toml``.
    """
    column = rows["column"].iloc[0]
    shown = [m for m in metrics if m in rows and rows[m].notna().any()]
    decimals = {m: 2 if rows[m].abs().max() >= 10 else 4 for m in shown}
    lines = []
    for subset in ("train", "test"):
        for model in order_models(rows, rows["experiment"].iloc[0], "" if point else paper):
            fits = rows[(rows["subset"] == subset) & (rows["model"] == model)]
            groups = fits.groupby(point[0]) if point else [("", fits)]
            for value, group in groups:
                labels = [subset, model, *([f"{value:g}"] if point else [])]
                # The paper's table of layers has a line for each number of them, all of one model.
                row = labels[2] if point and "CAR" in model else "" if point else model
                cells = [
                    show_cell(
                        group[metric].tolist(),
                        paper_figure(paper, row, metric, subset) if paper else None,
                        decimals=decimals[metric],
                        paper_decimals=2 if paper.startswith("claims") else 4,
                        tiny=metric not in _PERFORMANCE,
                    )
                    for metric in shown
                ]
                lines.append([*labels, *cells, str(len(group))])
    header = ["Subset", "Model", *([point[1]] if point else []), *shown, "Seeds"]
    reading = f"{_READING}."
    if paper:
        reading = (
            f"{_READING}; in parentheses the figure that the paper prints. Models without any are "
            "not in its table."
        )
    caption = [describe_data(rows), f"Sensitive: {column}.", reading, note]
    return Table(name, title, " ".join(filter(None, caption)), header, lines, 3 if point else 2)


# ----------------------------------------------------------------------- significance, costs


def _significances(r: Results) -> Iterator[Table]:
    """Make the table of how far models agree, if there are any to compare."""
    lines, said = [], []
    for experiment, n_first in N_FIRST.items():
        found: dict[str, Any] = {}
        for name, of in MEASURES.items():
            try:
                found[name] = r.significances(experiment, *of)
            except NotRunError:
                continue
        compared = [(a, b) for a, b in combinations(found, 2) if found[a].keys() & found[b]]
        for a, b in compared:
            seeds = sorted(found[a].keys() & found[b])
            pairs = [(found[a][seed], found[b][seed]) for seed in seeds]
            shared = [count_shared(*pair, n_first) for pair in pairs]
            ranks = [correlate_ranks(*pair) for pair in pairs]
            paper = paper_figure(f"{experiment}_overlap", a, f"top {n_first}")
            paper = paper if b == "LightGBM, split" else None
            shown = show_cell(shared, paper, decimals=1, paper_decimals=0)
            line = [experiment, a, b, shown, show_cell(ranks, decimals=2), str(len(seeds))]
            lines.append(line)
        if compared:
            rows = r.select(experiment)
            named = {MEASURES[name][0] for pair in compared for name in pair}
            data = describe_data(rows[rows["model"].isin(named)])
            said.append(f"{experiment}: the first {n_first}. {data}")
    if lines:
        header = ["Experiment", "Measure", "and", "Shared of the first", "Rank correlation"]
        caption = (
            "How many of the most significant features two measures share, and Spearman's "
            "correlation of all features' ranks, seed by seed; mean ± standard deviation over "
            "seeds, in parentheses the paper's figure. The paper shows LightGBM's own importance, "
            f"which by default counts splits. {' '.join(said)}"
        )
        title = "Agreement of significances"
        yield Table("significance", title, caption, [*header, "Seeds"], lines, 3)


def _costs(r: Results) -> Iterator[Table]:
    sizes = r.frame[r.frame["measure"] == "size"] if "measure" in r.frame else r.frame[:0]
    for table, paper, shape in (
        ("bank_fraud", "baf_complexity", "make_bank_fraud, of the shape of Bank Account Fraud"),
        ("claims", "claims_complexity", "make_claims, of the shape of InsurTech"),
    ):
        rows = sizes[sizes["table"] == table] if len(sizes) else sizes
        if len(rows):
            yield _size_table(rows, table, paper, shape)
    if "measure" in r.frame and (r.frame["measure"] == "epochs").any():
        yield _epoch_table(r.frame[r.frame["measure"] == "epochs"])
    timed = ("synthetic", "baf", "adult", "claims", "motor")
    fits = r.frame[r.frame["experiment"].isin(timed)]
    if len(fits):
        is_first = fits["column"] == fits["first_column"]
        yield _cost_table(fits[is_first & (fits["subset"] == "test")])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _size_table(rows: pd.DataFrame, table: str, paper: str, shape: str) -> Table:
    lines = []
    for cost in rows.to_dict("records"):
        model, n, head = cost["model"], cost["parameters"], cost["head_parameters"]
        figures = paper_rows(paper).get(model, {})
        of_paper = f" ({_percent(figures['head_share'])})" if "head_share" in figures else ""
        counted: dict[str, Any] = {"decimals": 0, "paper_decimals": 0}
        megabytes = [
            show_cell([cost[size]], figures.get(size), decimals=2, paper_decimals=2)
            for size in ("parameter_megabytes", "kept_megabytes")
        ]
        # Of a network that is all head, the head has no name of its own.
        of_head = show_cell([head], figures.get("head_parameters"), **counted) if head else "–"
        share = (_percent(head / n) if head else "–") + of_paper
        counts = show_cell([n], figures.get("parameters"), **counted)
        lines.append([model, counts, of_head, share, *megabytes])
    header = ["Model", "Parameters", "of the head", "their share", "Parameters, MB"]
    caption = (
        f"Data: generated by {shape}; a batch of {rows['n_rows'].iloc[0]:.0f} rows. Kept are the "
        "tensors that the forward pass leaves for the backward pass, parameters aside. In "
        "parentheses the figure that the paper prints, if it prints one; how it counts memory it "
        "does not say."
    )
    title = f"Complexity of the models, {table}"
    return Table(paper, title, caption, [*header, "Kept for the backward pass, MB"], lines)


def _epoch_table(rows: pd.DataFrame) -> Table:
    lines = []
    for table, of_table in rows.groupby("table", sort=False):
        figures = paper_rows("seconds_per_epoch").get(table, {})
        ratio = of_table[BY_DEFINITION] / of_table[AUGMENTED]
        papers_ratio = figures[BY_DEFINITION] / figures[AUGMENTED]
        shown = [(of_table[form], figures.get(form)) for form in _FORMS] + [(ratio, papers_ratio)]
        cells = [show_cell(v.tolist(), p, decimals=2, paper_decimals=2) for v, p in shown]
        lines.append([table, f"{of_table['n_rows'].iloc[0]:,.0f}", *cells, str(len(of_table))])
    caption = (
        "An epoch of FCorr + CAR in batches of 64 rows; mean ± standard deviation over "
        f"{count_seeds(rows)}, in parentheses the paper's, on its machine and with as many rows "
        "as its data have: only the ratio can be compared. By definition, all of the attention is "
        "computed again for each category; in closed form, the same comes from what changes."
    )
    header = ["Data", "Rows", *_FORMS, "definition ÷ augmentation", "Seeds"]
    return Table("seconds_per_epoch", "Seconds an epoch with CAR", caption, header, lines)


def _cost_table(rows: pd.DataFrame) -> Table:
    """Make the table of what fits cost; each fit has one row, that of its first column."""
    lines = []
    for (experiment, _), of_table in rows.groupby(["experiment", "table"], sort=False):
        for model in order_models(of_table, experiment):
            fits = of_table[of_table["model"] == model]
            counts = sorted({int(n) for n in fits["parameters"].dropna()})
            ends = dict.fromkeys([*counts[:1], *counts[-1:]])  # knots follow a seed's rows
            n_parameters = " to ".join(f"{n:,}" for n in ends) or "–"
            columns = {"fit seconds": 2, "epoch seconds": 2, "peak_megabytes": 0}
            cells = [
                show_cell(fits[of].tolist(), decimals=decimals).replace("n/a", "–")
                for of, decimals in columns.items()
            ]
            data, n_train = fits["name"].iloc[0], f"{fits['n_train'].iloc[0]:,.0f}"
            lines.append([data, model, n_train, n_parameters, *cells, str(len(fits))])
    header = ["Data", "Model", "Rows", "Parameters", "Fit, s", "Epoch, s", "Peak memory, MB"]
    caption = (
        "Mean ± standard deviation over fits: of all seeds and, where a model is fitted for each "
        "sensitive column, of all columns. Fits may have run side by side: seconds are rough. "
        "Memory is the process's largest while fitting: libraries, data, and what earlier fits "
        "left behind are in it."
    )
    return Table("costs", "What the fits cost", caption, [*header, "Fits"], lines, 2)
