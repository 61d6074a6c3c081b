"""The paper's tables made again, with its own figures in parentheses."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fcorr.audit.tables import TextTable
from fcorr.reproduce.report.cells import Value, choose_decimals, show_cell
from fcorr.reproduce.report.cost_tables import cost_tables
from fcorr.reproduce.report.items import ReportTable
from fcorr.reproduce.report.paper import SUBSETS, paper_figure, paper_models
from fcorr.reproduce.report.selecting import (
    FLIPS,
    GROUPS,
    Records,
    describe_data,
    find_metric,
    for_column,
    group_models,
    has_metric,
    point_of,
    sensitive_column,
)
from fcorr.reproduce.report.significance import significance_tables
from fcorr.reproduce.runs import Record

_DECISIONS = ("Accuracy", "F1", "FPR", "FNR", "AUROC", "AUPRC")
_AT_HALF = "Accuracy at 0.5"
_OF_SCORES = "DPD of scores"
_CHANGES = ("largest change", "decisions flipped")
_AMOUNTS = ("Gini", "normalised Gini", "PE", "RMSE", "MAE")
_PERFORMANCE = (*_DECISIONS, _AT_HALF, *_AMOUNTS, "deviance")
_AMOUNT_FLIPS = ("AvgIF", "RMSE gap", "MAE gap", "largest change")

_READING = "Mean ± standard deviation over seeds"
_WITH_PAPER = (
    f"{_READING}; in parentheses the figure that the paper prints. Models without any are not in "
    "its table."
)

Groups = dict[tuple[str, ...], list[Record]]
"""Fits of each line: by model, or by model and what is varied."""


@dataclass(frozen=True)
class Layout:
    """What a table shows.

    Attributes
    ----------
    name, title : str
        What to call it.
    metrics : tuple of str
        Its columns.
    paper : str
        The paper's table in ``configs/paper.toml``; "" for none.
    note : str
        A sentence for the caption.
    """

    name: str
    title: str
    metrics: tuple[str, ...]
    paper: str = ""
    note: str = ""

    @property
    def paper_decimals(self) -> int:
        """How many decimals the paper prints."""
        return 2 if self.paper.startswith("claims") else 4


def make_tables(records: Records) -> list[ReportTable]:
    """Make all tables that there are records for, in the paper's order.

    Parameters
    ----------
    records : dict of str to list of dict
        By experiment; see :func:`fcorr.reproduce.read_records`. Models and seeds that are missing
        are left out.
    """
    makers: dict[str, Callable[[list[Record]], Iterator[ReportTable]]] = {
        "synthetic": _synthetic,
        "baf": _baf,
        "adult": _adult,
        "claims": _claims,
        "motor": _motor,
        "controllability": _controllability,
        "multilayer": _multilayer,
    }
    tables = [
        table for name, make in makers.items() if records.get(name) for table in make(records[name])
    ]
    return [*tables, *significance_tables(records), *cost_tables(records)]


def _synthetic(records: list[Record]) -> Iterator[ReportTable]:
    column = sensitive_column(records)
    name, metrics = "synthetic_fairness", (*FLIPS, *_CHANGES)
    note = "The paper does not say which rows its figures are of."
    layout = Layout(name, "Fairness on synthetic data", metrics, name, note)
    yield from _make(layout, records, column)
    name = "synthetic_performance"
    yield from _make(Layout(name, "Performance on synthetic data", _DECISIONS), records, column)


def _baf(records: list[Record]) -> Iterator[ReportTable]:
    """Make three tables; those of performance share out the models as the paper does."""
    column, note = sensitive_column(records), _describe_threshold(records)
    first, baselines = (paper_models(f"baf_{name}") for name in ("performance", "baselines"))
    of_first = [record for record in records if record["model"] in first]
    others = [r for r in records if r["model"] not in first or r["model"] in baselines]
    for part, title, metrics, some in (
        ("performance", "Performance", _DECISIONS, of_first),
        ("fairness", "Fairness", (*GROUPS, *FLIPS, *_CHANGES), records),
        ("baselines", "More models", _DECISIONS, others),
    ):
        name = f"baf_{part}"
        layout = Layout(name, f"{title} on bank account fraud", metrics, name, note)
        yield from _make(layout, some, column)


def _adult(records: list[Record]) -> Iterator[ReportTable]:
    # Its figures of EqOpp (3/7 on the test rows) are those of small groups, which sexes are not.
    of_paper = "The paper does not name its sensitive column; its figures are put beside race."
    of_mitigations = (
        "Mitigations of fairlearn decide at random, with their scores as probabilities; here they "
        "decide from 0.5 on, which their guarantees are not about: see the difference of mean "
        f"scores between groups, {_OF_SCORES}. AUROC and AUPRC of such mixtures of decisions are "
        "not comparable with the others'."
    )
    for column in dict.fromkeys(name for r in records for name in r["config"]["sensitive"]):
        is_papers = column == "race"
        some = for_column(records, column)
        for part, metrics in (
            ("performance", (*_DECISIONS, _AT_HALF)),
            ("fairness", (*GROUPS, _OF_SCORES, *FLIPS, *_CHANGES)),
        ):
            layout = Layout(
                f"adult_{part}_{column}",
                f"{part.capitalize()} on Adult, sensitive: {column}",
                metrics,
                f"adult_{part}" if is_papers else "",
                note=f"{of_paper} {of_mitigations}" if is_papers else of_mitigations,
            )
            yield from _make(layout, some, column)


def _claims(records: list[Record]) -> Iterator[ReportTable]:
    column = sensitive_column(records)
    for part, metrics in (("performance", _AMOUNTS), ("fairness", ("DPD", *_AMOUNT_FLIPS))):
        name = f"claims_{part}"
        title = f"{part.capitalize()} on claim amounts, 581 features"
        yield from _make(Layout(name, title, metrics, name), records, column)


def _motor(records: list[Record]) -> Iterator[ReportTable]:
    for table in dict.fromkeys(record["config"]["data"]["name"] for record in records):
        some = [record for record in records if record["config"]["data"]["name"] == table]
        column = sensitive_column(some)
        layout = Layout(
            f"motor_{table}",
            f"Claim frequencies of motor policies ({table}), sensitive: {column}",
            (*_AMOUNTS, "deviance", "DPD", "A/E gap", *_AMOUNT_FLIPS),
        )
        yield from _make(layout, some, column)


def _make(layout: Layout, records: list[Record], column: str) -> Iterator[ReportTable]:
    """Make a table of train and test rows by models, the paper's first; of no records, none."""
    if records:
        of_paper = paper_models(layout.paper) if layout.paper else []
        models = group_models(records, records[0]["experiment"], of_paper)
        groups: Groups = {(model,): fits for model, fits in models.items()}
        yield _lay_out(layout, ["Model"], groups, column)


def _controllability(records: list[Record]) -> Iterator[ReportTable]:
    layout = Layout(
        "controllability",
        "Controllability: metrics over λ",
        ("AUROC", "AUPRC", "F1", "DPD", *FLIPS, *_CHANGES),
        note="The paper draws a figure and prints no numbers.",
    )
    yield _lay_out(layout, ["Model", "λ"], _vary(records, "car"), sensitive_column(records))


def _multilayer(records: list[Record]) -> Iterator[ReportTable]:
    layout = Layout(
        "multilayer",
        "Several encoder layers, on bank account fraud",
        ("AUROC", "AUPRC", *GROUPS, *FLIPS, *_CHANGES),
        "multilayer",
    )
    groups = _vary(records, "n_layers")
    yield _lay_out(layout, ["Model", "Layers"], groups, sensitive_column(records))


def _vary(records: list[Record], argument: str) -> Groups:
    """Group records by model and by the value of what is varied."""
    groups: Groups = {}
    for model in group_models(records, records[0]["experiment"]):
        fits = [record for record in records if record["model"] == model]
        for value in sorted({point_of(record)[argument] for record in fits}):
            same = [record for record in fits if point_of(record)[argument] == value]
            (of_value,) = group_models(same, same[0]["experiment"]).values()
            groups[model, f"{value:g}"] = of_value
    return groups


def _lay_out(
    layout: Layout,
    labels: Sequence[str],
    groups: Groups,
    column: str,
) -> ReportTable:
    fits = [record for of_group in groups.values() for record in of_group]
    metrics = [m for m in layout.metrics if any(has_metric(r, m, "test", column) for r in fits)]
    values: dict[tuple[str, ...], dict[str, list[Value]]] = {
        (subset, *group): {
            metric: [find_metric(record, metric, subset, column) for record in of_group]
            for metric in metrics
        }
        for subset in SUBSETS
        for group, of_group in groups.items()
    }
    decimals = {
        metric: choose_decimals([value for row in values.values() for value in row[metric]])
        for metric in metrics
    }
    rows = [
        [
            *labelled,
            *(
                show_cell(
                    row[metric],
                    _of_paper(layout, labelled, metric),
                    decimals=decimals[metric],
                    paper_decimals=layout.paper_decimals,
                    tiny=metric not in _PERFORMANCE,
                )
                for metric in metrics
            ),
            str(len(groups[labelled[1:]])),
        ]
        for labelled, row in values.items()
    ]
    table = TextTable(["Subset", *labels, *metrics, "Seeds"], rows)
    reading = _WITH_PAPER if layout.paper else f"{_READING}."
    caption = [describe_data(fits), f"Sensitive: {column}.", reading, layout.note]
    return ReportTable(
        layout.name, layout.title, " ".join(filter(None, caption)), table, 1 + len(labels)
    )


def _of_paper(layout: Layout, labelled: tuple[str, ...], metric: str) -> float | None:
    subset, model, *point = labelled
    if not layout.paper:
        return None
    if not point:
        return paper_figure(layout.paper, model, metric, subset)
    # The paper's table has a line for each number of layers, all of one model.
    return paper_figure(layout.paper, point[0], metric, subset) if "CAR" in model else None


def _describe_threshold(records: list[Record]) -> str:
    """Say from which score on is decided; mitigations, which have their own rule, aside."""
    found = {r["seed"]: r["threshold"] for r in records if r["config"]["threshold"] is None}
    if not found:
        return ""
    threshold = show_cell(list(found.values()), decimals=3)
    paper = paper_figure("baf_threshold", "LightGBM", "threshold")
    return f"Threshold, of LightGBM's best F1 on training rows: {threshold} (the paper's: {paper})."
