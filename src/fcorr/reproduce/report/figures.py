"""The paper's figures made again."""

from collections.abc import Callable, Iterator

import numpy as np

from fcorr.audit.figures import (
    STAR,
    BarPanel,
    HeatMapPanel,
    Line,
    LinePanel,
    bar_chart_svg,
    heat_map_svg,
    line_chart_svg,
)
from fcorr.reproduce.report.items import ReportFigure
from fcorr.reproduce.report.selecting import (
    Records,
    describe_data,
    find_metric,
    point_of,
    sensitive_column,
)
from fcorr.reproduce.report.significance import (
    MEASURES,
    N_FIRST,
    TREES,
    count_shared,
    first_features,
    mean_significance,
)
from fcorr.reproduce.runs import Record

_SPLIT = f"{TREES}, split"
_HEAT = "Mean over training rows; the sensitive feature stands first."
_PLACES = ("first", "last")
_BARS = {
    "networks": ("FCorr", "FCorr + CAR"),
    "others": ("FT-Transformer", _SPLIT),
}


def make_figures(records: Records) -> list[ReportFigure]:
    """Make all figures that there are records for, in the paper's order.

    Parameters
    ----------
    records : dict of str to list of dict
        By experiment; see :func:`fcorr.reproduce.read_records`. What is missing is left out.
    """
    makers: dict[str, Callable[[list[Record]], Iterator[ReportFigure]]] = {
        "synthetic": _synthetic,
        "baf": _baf,
        "claims": lambda found: _bars("claims", "claim amounts", found),
        "controllability": _controllability,
        "multilayer": _multilayer,
    }
    return [
        figure
        for name, make in makers.items()
        if records.get(name)
        for figure in make(records[name])
    ]


def _synthetic(records: list[Record]) -> Iterator[ReportFigure]:
    title = "Attention before softmax on synthetic data"
    yield from _heat_maps("synthetic_attention", title, records, ("FCorr", "FCorr + CAR"))


def _baf(records: list[Record]) -> Iterator[ReportFigure]:
    title = "Attention before softmax on bank account fraud"
    yield from _heat_maps("baf_attention", title, records, ("FCorr", "FCorr + CAR"))
    record = _drawn(records, "FT-Transformer")
    if record is not None:
        # The weights are all but equal: drawn as they are, they would be one dark square.
        weights = _panel(record, "FT-Transformer", "first")
        relative = 100 * (np.asarray(weights.values) / np.mean(weights.values) - 1)
        panel = HeatMapPanel(weights.title, weights.names, relative)
        title = "Attention weights of FT-Transformer on bank account fraud, % above their mean"
        yield _heat_map("baf_attention_ft_transformer", title, [panel], [record])
    yield from _bars("baf", "bank account fraud", records)


def _multilayer(records: list[Record]) -> Iterator[ReportFigure]:
    """Draw first layers side by side, then last ones: their numbers are of different sizes."""
    depths = sorted({point_of(record)["n_layers"] for record in records} - {1})
    drawn = {
        depth: found
        for depth in depths
        if (
            found := _drawn([r for r in records if point_of(r)["n_layers"] == depth], "FCorr + CAR")
        )
    }
    for place in _PLACES:
        there = {depth: r for depth, r in drawn.items() if place in r["attention"]}
        if there:
            panels = [_panel(r, f"{depth} layers", place) for depth, r in there.items()]
            title = f"Attention before softmax in the {place} layer of FCorr + CAR"
            yield _heat_map(f"multilayer_attention_{place}", title, panels, list(there.values()))


def _heat_maps(
    name: str, title: str, records: list[Record], models: tuple[str, ...]
) -> Iterator[ReportFigure]:
    drawn = [found for model in models if (found := _drawn(records, model)) is not None]
    if drawn:
        panels = [_panel(record, record["model"], "first") for record in drawn]
        yield _heat_map(name, title, panels, drawn)


def _heat_map(
    name: str, title: str, panels: list[HeatMapPanel], drawn: list[Record]
) -> ReportFigure:
    of_seed = f"The fit of seed {drawn[0]['seed']}."
    caption = f"{_HEAT} {of_seed} {describe_data(drawn, with_seeds=False)}"
    svg = heat_map_svg(panels, title=title, sensitive=[sensitive_column(drawn)])
    return ReportFigure(name, title, caption, svg)


def _drawn(records: list[Record], model: str) -> Record | None:
    """Find the first record of a model that holds attention matrices, all of numbers."""
    for record in records:
        matrices = [record["attention"].get(place) for place in _PLACES]
        found = [np.array(matrix, dtype=float) for matrix in matrices if matrix is not None]
        if record["model"] == model and found and all(np.isfinite(m).all() for m in found):
            return record
    return None


def _panel(record: Record, title: str, place: str) -> HeatMapPanel:
    names: list[str] = record["attention"]["features"]
    first = [name for name in names if name in record["config"]["sensitive"]]
    order = [names.index(name) for name in [*first, *(n for n in names if n not in first)]]
    matrix = np.array(record["attention"][place])
    return HeatMapPanel(title, [names[i] for i in order], matrix[np.ix_(order, order)])


def _bars(experiment: str, data: str, records: list[Record]) -> Iterator[ReportFigure]:
    n_first = N_FIRST[experiment]
    found = {
        name: significance
        for name, (model, kind) in MEASURES.items()
        if (significance := mean_significance(records, model, kind))
    }
    trees = found.get(_SPLIT, {})
    of_trees = set(first_features(trees, n_first))
    for part, names in _BARS.items():
        there = [name for name in names if name in found]
        if not there:
            continue
        panels = []
        for name in there:
            shown = first_features(found[name], n_first)
            values = np.array([found[name][feature] for feature in shown])
            if name == _SPLIT:
                panels.append(BarPanel(TREES, shown, values))
                continue
            n_shared = count_shared(found[name], trees, n_first)
            heading = f"{name}: {n_shared} of {n_first} shared with {TREES}" if trees else name
            labels = [f"{n}{STAR}" if n in of_trees else n for n in shown]
            panels.append(BarPanel(heading, labels, values))
        drawn = " and ".join(MEASURES[name][0] for name in there)
        title = f"The {n_first} most significant features on {data}: {drawn}"
        models = {MEASURES[name][0] for name in [*there, *([_SPLIT] if trees else [])]}
        fits = [record for record in records if record["model"] in models]
        caption = (
            "Mean over seeds. Significance is FCorr's diagonal of attention before softmax, "
            "FT-Transformer's attention by columns, LightGBM's number of splits. "
            f"{_describe_shared(n_first) if trees else ''}{describe_data(fits)}"
        )
        column = sensitive_column(records)
        svg = bar_chart_svg(
            panels,
            title=title,
            x_label="significance",
            sensitive=[column, f"{column}{STAR}"],
            shared_scale=False,
        )
        yield ReportFigure(f"{experiment}_significance_{part}", title, caption, svg)


def _describe_shared(n_first: int) -> str:
    return (
        f"A star marks what is among LightGBM's {n_first}. How many are shared is counted of "
        "these means; the table of agreement counts seed by seed and then averages, which need "
        "not come to the same. "
    )


def _controllability(records: list[Record]) -> Iterator[ReportFigure]:
    column = sensitive_column(records)
    weights = sorted({point_of(record)["car"] for record in records})

    def line(metric: str) -> Line:
        values: list[float | None] = []
        spread: list[tuple[float, float] | None] = []
        for weight in weights:
            found = [
                find_metric(record, metric, "test", column)
                for record in records
                if point_of(record)["car"] == weight
            ]
            known = [value for value in found if value is not None]
            values.append(float(np.mean(known)) if known else None)
            spread.append((min(known), max(known)) if known else None)
        return Line(metric, values, spread)

    panels = [
        LinePanel("change of predictions under a flip", [line("AvgIF")], log=True),
        LinePanel(
            "change of performance under a flip",
            [line(metric) for metric in ("F1 gap", "AUROC gap", "AUPRC gap")],
            log=True,
            height=160.0,
        ),
        LinePanel("performance", [line("AUROC")]),
    ]
    title = "What λ does to FCorr + CAR (test rows)"
    svg = line_chart_svg(panels, x=weights, title=title, x_label="weight λ of CAR")
    caption = (
        "Mean over seeds, and strokes from the lowest to the highest; λ, AvgIF and gaps on "
        f"logarithmic axes with a place for 0. {describe_data(records)}"
    )
    yield ReportFigure("controllability", title, caption, svg)
