"""Insurance displays: lift and double lift, Lorenz curves, actual over expected by group.

They draw the tables of `fcorr.metrics`, by the conventions of `fcorr.audit.displays`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fcorr.audit import displays as charts
from fcorr.audit.displays import GREY, INK, LIGHT, SERIES, Display, check_count, one_line
from fcorr.metrics import ActualExpectedTable, DoubleLiftBin, LiftTable, LorenzCurve

_MAX_BINS = 30


@dataclass(eq=False)
class LiftDisplay(Display):
    """Predicted beside actual by bin, over bars of the exposure in each bin.

    Of a double lift table, it shows two models and the actual by bin of the models' ratio: who is
    right where they differ.

    Parameters
    ----------
    table : LiftTable
        From :func:`fcorr.metrics.lift_table`, of at most 30 bins.
    model, incumbent : str
        What the model and, in a double lift, the other one are called.
    y_label, weight_label, title : str
        What the means are means of, such as "claims per year", what the weights are, and what is
        seen.

    Attributes
    ----------
    weight_ax_ : matplotlib.axes.Axes
        With the bars.

    Examples
    --------
    >>> from fcorr.metrics import lift_table
    >>> table = lift_table([0, 1, 1, 3], [0.5, 0.6, 1.0, 2.0], n_bins=4)
    >>> display = LiftDisplay(table).plot()
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['actual', 'predicted']
    """

    table: LiftTable
    model: str = "predicted"
    incumbent: str = "incumbent"
    y_label: str = "mean per unit of exposure"
    weight_label: str = "exposure"
    title: str = "Lift: predicted and actual"

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, or in a figure of its own."""
        rows = self.table.rows
        is_double = isinstance(rows[0], DoubleLiftBin)
        n = len(rows)
        check_count(n, _MAX_BINS, "bins", f"Make the table with n_bins={_MAX_BINS} or fewer.")
        self._take_axes(ax, (max(6.0, 0.32 * n + 1.5), 4.6))
        ax = self.ax_
        lines = {"actual": "actual", "predicted": one_line(self.model)}
        if is_double:
            lines["incumbent"] = one_line(self.incumbent)
        for (key, label), style in zip(lines.items(), SERIES, strict=False):
            ax.plot(range(n), [getattr(row, key) for row in rows], label=label, **style)
        if 0 <= ax.dataLim.ymin <= 0.5 * ax.dataLim.ymax:
            ax.set_ylim(bottom=0)  # zero is shown where that costs less than half the height
        ax.set_ylabel(one_line(self.y_label, None))
        ax.grid(axis="y", color=LIGHT, linewidth=0.5)
        ax.legend(frameon=False)
        # The bars are part of the given axes, so that these may stand anywhere.
        bars = self.weight_ax_ = ax.inset_axes((0, -0.28, 1, 0.2), sharex=ax)
        bars.bar(range(n), [row.weight for row in rows], width=0.62, color="#b9c6d6")
        bars.set_ylabel(one_line(self.weight_label), rotation=0, ha="right", va="center")
        bars.locator_params(axis="y", nbins=3)
        for axes in (ax, bars):
            axes.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelbottom=False)
        ax.set_xlim(-0.6, n - 0.4)
        if is_double:
            # Where one bin ends the next begins: the edges are labelled, not the bins.
            at, edges = np.arange(n + 1) - 0.5, [*(row.low for row in rows), rows[-1].high]
            texts, order = [f"{e:.2f}" for e in edges], f"{self.model} ÷ {self.incumbent}"
        else:
            at, texts, order = np.arange(n) + 0.0, [str(i + 1) for i in range(n)], "predicted value"
        step = math.ceil(n / 15)
        bars.set_xticks(at[::step], texts[::step])
        bars.set_xlabel(one_line(f"bins by {order}, lowest first", None))
        return self._finish(self.title)


@dataclass(eq=False)
class LorenzDisplay(Display):
    """Lorenz curves of one to four models: the further below the diagonal, the better the order.

    Parameters
    ----------
    curves : LorenzCurve or mapping of str to LorenzCurve
        From :func:`fcorr.metrics.lorenz_curve`, by the name of their model.
    x_label, y_label, title : str
        What the axes measure, and what is seen.

    Examples
    --------
    >>> from fcorr.metrics import lorenz_curve
    >>> curve = lorenz_curve([0, 0, 1, 2], [0.1, 0.2, 0.3, 0.4])
    >>> display = LorenzDisplay({"FCorr": curve}).plot()
    >>> display.ax_.get_legend().get_texts()[0].get_text()
    'FCorr, Gini 0.583'
    """

    curves: LorenzCurve | Mapping[str, LorenzCurve]
    x_label: str = "share of exposure, lowest predicted risk first"
    y_label: str = "share of claims"
    title: str = "Lorenz curves: claims in the order of predicted risk"

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, or in a figure of its own."""
        given = self.curves
        curves = {"model": given} if isinstance(given, LorenzCurve) else dict(given)
        check_count(len(curves), len(SERIES), "Lorenz curves", "Choose the models to show.")
        self._take_axes(ax, (5.4, 5.4))
        ax = self.ax_
        for (name, curve), style in zip(curves.items(), SERIES, strict=False):
            x, y = curve.exposure_share, curve.claim_share
            if len(x) > 201:  # more points than the eye can tell apart
                x, y = np.linspace(0, 1, 201), np.interp(np.linspace(0, 1, 201), x, y)
            gini = f"{curve.gini:.3f}".replace("-", "−")
            look = style | {"markevery": 0.1, "markersize": 4}
            ax.plot(x, y, label=f"{one_line(name)}, Gini {gini}", **look)
        ax.plot([0, 1], [0, 1], color=GREY, lw=1, zorder=0, label="no order at all, Gini 0")
        ax.margins(0)
        ax.set_aspect("equal")
        ax.set(xlabel=one_line(self.x_label, None), ylabel=one_line(self.y_label, None))
        ax.legend(loc="upper left", frameon=False, fontsize="small")
        return self._finish(self.title)


@dataclass(eq=False)
class ActualExpectedDisplay(Display):
    """Each group's ratio of actual to expected with its interval, and the numbers beside it.

    A filled point marks an interval that does not hold 1. An arrow marks one that goes on beyond
    the figure; its end is in the numbers.

    Parameters
    ----------
    table : ActualExpectedTable
        From :func:`fcorr.metrics.actual_over_expected`, of at most 60 groups.
    x_label, weight_label, title : str
        What the ratio is, what the weights are, and what is seen.

    Examples
    --------
    >>> from fcorr.metrics import actual_over_expected
    >>> table = actual_over_expected([3, 5], [4, 4], sensitive_features=["female", "male"])
    >>> display = ActualExpectedDisplay(table).plot()
    >>> display.ax_.tables[0][1, 0].get_text().get_text()
    '0.75 (0.15 to 2.19)'
    """

    table: ActualExpectedTable
    x_label: str = "actual ÷ expected"
    weight_label: str = "exposure"
    title: str = "Actual over expected by group"

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, or in a figure of its own."""
        rows = self.table.rows
        n = len(rows)
        check_count(n, 60, "groups", "Join small groups, or choose the ones to show.")
        self._take_axes(ax, (8.5, 0.3 * n + 1.5))
        ax = self.ax_
        ratios, lows, highs = (
            np.array([getattr(row, name) for row in rows]) for name in ("ratio", "low", "high")
        )
        # All ratios and 1 are shown, and all of the intervals unless one dwarfs the rest.
        largest = np.nanmax([1.0, *ratios])
        end = np.nanmax([largest, np.nanmin([np.nanmax([1.0, *highs]), max(2.0, 1.15 * largest)])])
        fills = np.where((lows > 1) | (highs < 1), INK, "white")  # without an interval: open
        ax.hlines(range(n), lows, np.minimum(highs, end), color=INK, linewidth=1.2)
        ax.scatter(ratios, range(n), facecolors=fills, edgecolors=INK, zorder=3)
        (is_cut,) = np.nonzero(highs > end)
        ax.scatter(np.full(len(is_cut), end), is_cut, color=INK, marker=">", s=25)
        ax.vlines(1, -0.5, n - 0.5, color=GREY, linewidth=1, zorder=0)
        ax.set_ylim(n - 0.5, -1.5)
        charts.name_features(ax, "y", [str(row.group) for row in rows])
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.set_xlabel(one_line(f"{self.x_label} (filled: the interval does not hold 1)", None))
        # A table to the right of the axes, each row at the height of its group.
        head = [f"ratio ({100 * self.table.confidence:g} % interval)", self.weight_label, "rows"]
        cells = [
            [
                "not estimable"
                if math.isnan(row.ratio)
                else f"{row.ratio:.2f}"
                + ("" if math.isnan(row.low) else f" ({row.low:.2f} to {row.high:.2f})"),
                charts.short_number(row.weight),
                f"{row.n:,}",
            ]
            for row in rows
        ]
        texts = [[one_line(cell) for cell in row] for row in (head, *cells)]
        table = ax.table(texts, loc="right", edges="open")
        table.auto_set_font_size(False)
        table.auto_set_column_width(range(len(head)))
        for cell in table.get_celld().values():
            cell.set(height=1 / len(texts), fontsize="small")
        return self._finish(self.title)
