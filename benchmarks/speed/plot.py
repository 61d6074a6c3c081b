"""Cost against the number of features as a figure, in the manner of the audit's displays.

Both axes are logarithmic, so that a cost that grows with p is a line of slope one and a cost that
grows with p² one of slope two. Lines carry their names at their ends.
"""

from typing import TYPE_CHECKING

from benchmarks.speed.tables import LABELS, Results
from fcorr._core import require
from fcorr.audit.displays import INK, LIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# FCorr in the audit's blue and orange; the others in tones that stay apart in grey, and dashed.
STYLE = {
    "fcorr": {"color": "#0b3163", "linestyle": "-", "marker": "o"},
    "fcorr_car": {"color": "#e5812a", "linestyle": "-", "marker": "s"},
    "fcorr_sdpa": {"color": "#4488c2", "linestyle": (0, (5, 3)), "marker": "^"},
    "fcorr_exact": {"color": "#92bfe0", "linestyle": (0, (2, 2)), "marker": "v"},
    "ft_transformer": {"color": "#6b6b6b", "linestyle": "-", "marker": "D"},
}
TITLE = "Training step: cost per row against the number of features"
_LABEL_DISTANCE = 13.0  # points between the names at the lines' ends


def cost_figure(results: Results) -> "Figure":
    """Draw every model's µs per row against p; only axes before anything is measured."""
    require("matplotlib", extra="plot", purpose="the figure of costs")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 5.0), layout="constrained")
    ax = figure.subplots()
    ax.set_title(TITLE, loc="left", fontweight="bold")
    ax.set(xscale="log", yscale="log", xlabel="features, p", ylabel="µs per row")
    sentences, ends = ["Line chart, both axes logarithmic."], {}
    for model, style in STYLE.items():
        found = {record["p"] for record in results.select(kind="scaling", model=model)}
        costs = {p: results.per_row("scaling", model, p=p) for p in sorted(found)}
        points = {p: 1e6 * cost for p, cost in costs.items() if cost is not None}
        if points:
            ax.plot(points.keys(), points.values(), **style, markersize=4.5, label=LABELS[model])
            ends[model] = list(points.items())[-1]
            told = ", ".join(f"{cost:,.3g} at p = {p:,}" for p, cost in points.items())
            sentences.append(f"{LABELS[model]}, µs per row: {told}.")
    ticks = sorted({p for line in ax.get_lines() for p in line.get_xdata()}) or [31, 2_324]
    ax.set_xticks(ticks, [f"{p:,}" for p in ticks])
    ax.set_xticks([], minor=True)
    ax.yaxis.set_major_formatter("{x:,.10g}")
    ax.grid(color=LIGHT, linewidth=0.75)
    ax.spines[["top", "right"]].set_visible(False)
    if not ends:
        ax.text(0.5, 0.5, "not measured yet", transform=ax.transAxes, ha="center")
    figure.set_label(" ".join(sentences))
    figure.draw_without_rendering()  # places the axes: names keep their distance in points
    below = float("inf")
    for model, (p, cost) in sorted(ends.items(), key=lambda end: -end[1][1]):
        height = ax.transData.transform((p, cost))[1] * 72 / figure.dpi
        below = min(height, below - _LABEL_DISTANCE)
        # Pale lines keep dark names: what is read needs contrast.
        look = {"va": "center", "fontsize": "small", "color": INK, "annotation_clip": False}
        look["arrowprops"] = {"arrowstyle": "-", "color": STYLE[model]["color"], "shrinkB": 3}
        ax.annotate(
            LABELS[model], (p, cost), (16, below - height), textcoords="offset points", **look
        )
    return figure
