"""The paper's figures made again."""

import io
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from paper.results import FLIPS, N_FIRST, NotRunError, Results, count_shared, first_features
from paper.tables import MEASURES, describe_data

_SPLIT = "LightGBM, split"
_COLOURS = ("#0072b2", "#d55e00", "#009e73")  # told apart by the colour-blind
_MARKERS = ("o", "s", "^")  # and in print
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "fcorr",  # else the names inside the file would be others each time
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name of a column is text, whatever is in it
    "font.size": 8.0,
    "axes.titlesize": 8.0,
}


class ReportFigure(NamedTuple):
    """A figure, ready to be written; the title stands in the picture as well."""

    name: str
    title: str
    caption: str
    svg: bytes


def make_figures(r: Results) -> list[ReportFigure]:
    """Make all figures that there are records for, in the paper's order."""
    figures = []
    with matplotlib.rc_context(_STYLE):
        for make in (_synthetic, _fraud, _claims, _controllability, _layers):
            try:
                for figure in make(r):
                    figures.append(figure)  # noqa: PERF402 - what comes before a gap is kept
            except NotRunError:
                continue
    return figures


def _finish(figure: Figure, name: str, title: str, caption: str) -> ReportFigure:
    """Write a figure such that the same figure gives the same bytes."""
    figure.suptitle(title, fontsize=10)
    file = io.BytesIO()
    metadata = {"Date": None, "Title": title, "Description": caption}
    figure.savefig(file, format="svg", metadata=metadata)
    return ReportFigure(name, title, caption, file.getvalue())


# ------------------------------------------------------------------------------ heat maps

Panel = tuple[str, pd.DataFrame]
"""A heading and a matrix between features, the sensitive one first."""


def _synthetic(r: Results) -> Iterator[ReportFigure]:
    title = "Attention before softmax on synthetic data"
    yield from _heat_maps(r.select("synthetic"), "synthetic_attention", title)


def _fraud(r: Results) -> Iterator[ReportFigure]:
    rows = r.select("baf")
    yield from _heat_maps(rows, "baf_attention", "Attention before softmax on bank account fraud")
    # The weights are all but equal: drawn as they are, they would be one dark square.
    name, models = "baf_attention_ft_transformer", ["FT-Transformer"]
    title = "Attention weights of FT-Transformer on bank account fraud, % above their mean"
    yield from _heat_maps(rows, name, title, models, relative=True)
    yield from _bars(r, "baf", "bank account fraud")


def _claims(r: Results) -> Iterator[ReportFigure]:
    yield from _bars(r, "claims", "claim amounts")


def _layers(r: Results) -> Iterator[ReportFigure]:
    """Draw the first and the last layer of models that have several."""
    rows = r.select("multilayer", "FCorr + CAR")
    for place in ("first", "last"):
        deep = {f"{depth:g} layers": of for depth, of in rows.groupby("n_layers") if depth > 1}
        found = {heading: _drawn(of, "FCorr + CAR", place) for heading, of in deep.items()}
        there = {heading: fit for heading, fit in found.items() if fit is not None}
        if there:
            title = f"Attention before softmax in the {place} layer of FCorr + CAR"
            panels = [(heading, _matrix(fit, place)) for heading, fit in there.items()]
            name = f"multilayer_attention_{place}"
            yield _heat_map(name, title, panels, rows, next(iter(there.values())))


def _heat_maps(
    rows: pd.DataFrame,
    name: str,
    title: str,
    models: Sequence[str] = ("FCorr", "FCorr + CAR"),
    *,
    relative: bool = False,
) -> Iterator[ReportFigure]:
    found = {model: _drawn(rows, model) for model in models}
    there = {model: fit for model, fit in found.items() if fit is not None}
    if there:
        panels = [(model, _matrix(fit, "first")) for model, fit in there.items()]
        if relative:
            panels = [(model, 100 * (of / of.to_numpy().mean() - 1)) for model, of in panels]
        some = rows[rows["model"].isin(there)]
        yield _heat_map(name, title, panels, some, next(iter(there.values())))


def _drawn(rows: pd.DataFrame, model: str, place: str = "first") -> Any:
    """Find the first fit of a model that has an attention matrix, all of numbers."""
    for fit in rows[rows["model"] == model].to_dict("records"):
        values = (fit["matrices"] or {}).get(place)
        if values and np.isfinite(np.array(values, dtype=float)).all():
            return fit
    return None


def _matrix(fit: Any, place: str) -> pd.DataFrame:
    names = fit["matrices"]["features"]
    order = sorted(names, key=lambda name: name != fit["column"])
    return pd.DataFrame(fit["matrices"][place], names, names).loc[order, order]


def _heat_map(
    name: str, title: str, panels: list[Panel], rows: pd.DataFrame, first: Any
) -> ReportFigure:
    n_features = len(panels[0][1])
    side = max(2.6, 0.14 * n_features)
    figure = Figure((len(panels) * (side + 1.6), side + 1.4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, (heading, matrix) in zip(axes, panels, strict=True):
        values = matrix.to_numpy(dtype=float)
        largest = np.abs(values).max() or 1.0
        image = ax.imshow(values, cmap="PuOr", vmin=-largest, vmax=largest)
        size = 8 if n_features < 10 else 6
        ax.set_xticks(range(n_features), matrix.columns, rotation=90, fontsize=size)
        ax.set_yticks(range(n_features), matrix.index, fontsize=size)
        ax.get_xticklabels()[0].set_weight("bold")
        ax.get_yticklabels()[0].set_weight("bold")
        ax.set_title(heading)
        if n_features < 10:
            for (i, j), value in np.ndenumerate(values):
                colour = "white" if abs(value) > 0.6 * largest else "black"
                ax.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour)
        figure.colorbar(image, ax=ax, shrink=0.8)
    caption = (
        "Mean over training rows; the sensitive feature stands first, in bold; each matrix has its "
        f"own scale. The fit of seed {first['seed']}. {describe_data(rows, with_seeds=False)}"
    )
    return _finish(figure, name, title, caption)


# ------------------------------------------------------------------------------ bars


def _bars(r: Results, experiment: str, data: str) -> Iterator[ReportFigure]:
    """Draw the most significant features, means over seeds, beside LightGBM's."""
    n_first, rows, found = N_FIRST[experiment], r.select(experiment), {}
    for name, of in MEASURES.items():
        try:
            means = pd.DataFrame(r.significances(experiment, *of)).dropna().mean(axis=1)
            found[name] = {str(feature): float(mean) for feature, mean in means.items()}
        except NotRunError:
            continue
    trees = found.get(_SPLIT, {})
    of_trees = first_features(trees, n_first)
    for part, names in (
        ("networks", ("FCorr", "FCorr + CAR")),
        ("others", ("FT-Transformer", _SPLIT)),
    ):
        there = [name for name in names if name in found]
        if not there:
            continue
        figure = Figure((4.2 * len(there), 0.9 + 0.22 * n_first), layout="constrained")
        axes = figure.subplots(1, len(there), squeeze=False)[0]
        for ax, name in zip(axes, there, strict=True):
            shown = first_features(found[name], n_first)
            shared = name != _SPLIT and trees
            colours = [_COLOURS[feature == rows["column"].iloc[0]] for feature in shown]
            labels = [f"{n} *" if shared and n in of_trees else n for n in shown]
            ax.barh(range(len(shown)), [found[name][n] for n in shown], color=colours)
            ax.set_yticks(range(len(shown)), labels)
            ax.invert_yaxis()
            ax.set_xlabel("significance")
            n_shared = count_shared(found[name], trees, n_first)
            heading = f"{name}: {n_shared} of {n_first} shared with LightGBM"
            ax.set_title(heading if shared else MEASURES[name][0])
        models = [MEASURES[name][0] for name in there]
        title = f"The {n_first} most significant features on {data}: {' and '.join(models)}"
        star = (
            f"A star marks what is among LightGBM's {n_first}. How many are shared is counted of "
            "these means; the table of agreement counts seed by seed and then averages, which need "
            "not come to the same. "
        )
        fits = rows[rows["model"].isin([*models, "LightGBM"] if trees else models)]
        caption = (
            "Mean over seeds; the sensitive feature has another colour. Significance is FCorr's "
            "diagonal of attention before softmax, FT-Transformer's attention by columns, "
            f"LightGBM's number of splits. {star if trees else ''}{describe_data(fits)}"
        )
        yield _finish(figure, f"{experiment}_significance_{part}", title, caption)


# ------------------------------------------------------------------------------ lines


def _controllability(r: Results) -> Iterator[ReportFigure]:
    rows = r.select("controllability", subset="test")
    weights = sorted(rows["car"].unique())
    figure = Figure((6.4, 7.0), layout="constrained")
    panels = (
        ("change of predictions under a flip", FLIPS[:1]),
        ("change of performance under a flip", FLIPS[1:]),
        ("performance", ("AUROC",)),
    )
    for ax, (heading, metrics) in zip(figure.subplots(3, 1, sharex=True), panels, strict=True):
        for metric, colour, marker in zip(metrics, _COLOURS, _MARKERS, strict=False):
            found = rows.groupby("car")[metric]
            mean, low, high = found.mean(), found.min(), found.max()
            errors = [(mean - low).clip(lower=0), (high - mean).clip(lower=0)]
            style = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1}
            ax.errorbar(range(len(weights)), mean, errors, label=metric, capsize=2, **style)
        if metrics != ("AUROC",):
            ax.set_yscale("symlog", linthresh=1e-8, linscale=0.5)
            ticks = [0, 1e-8, 1e-6, 1e-4, 1e-2, 1]
            ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
            ax.set_ylim(0, 2)
        ax.set_title(heading)
        ax.legend(fontsize=7)
        ax.grid(alpha=0.3)
    ax.set_xticks(range(len(weights)), [f"{weight:g}" for weight in weights])
    ax.set_xlabel("weight λ of CAR")
    caption = (
        "Mean over seeds, and strokes from the lowest to the highest; λ, AvgIF and gaps on "
        f"logarithmic axes with a place for 0. {describe_data(rows)}"
    )
    yield _finish(figure, "controllability", "What λ does to FCorr + CAR (test rows)", caption)
