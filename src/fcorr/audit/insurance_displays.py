"""Insurance displays: lift and double lift, Lorenz curves, actual over expected by group.

They draw the tables of `fcorr.metrics`, by the conventions of `fcorr.audit.displays`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fcorr.audit.displays import (
    BLUE,
    GREY,
    INK,
    LIGHT,
    ORANGE,
    SERIES,
    Display,
    check_count,
    name_features,
    one_line,
    short_number,
)
from fcorr.metrics import (
    ActualExpectedTable,
    DoubleLiftTable,
    LiftTable,
    LorenzCurve,
    actual_over_expected,
    double_lift_table,
    lift_table,
    lorenz_curve,
)

MAX_GROUPS = 60
MAX_BINS = 30


@dataclass(eq=False)
class LiftDisplay(Display):
    """Predicted beside actual by bin, over bars of the exposure in each bin.

    Of a double lift table, it shows two models and the actual by bin of the models' ratio: who is
    right where they differ.

    Parameters
    ----------
    table : LiftTable or DoubleLiftTable
        Of at most 30 bins.
    model, incumbent : str
        What the model and, in a double lift, the other one are called.
    y_label : str
        What the means are means of, such as "claims per year".
    weight_label : str
        What the weights are.
    title : str
        What is seen.

    Examples
    --------
    >>> display = LiftDisplay.from_predictions([0, 1, 1, 3], [0.5, 0.6, 1.0, 2.0], n_bins=4)
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['actual', 'predicted']
    """

    table: LiftTable | DoubleLiftTable
    model: str = "predicted"
    incumbent: str = "incumbent"
    y_label: str = "mean per unit of exposure"
    weight_label: str = "exposure"
    title: str = "Lift: predicted and actual"

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        y_pred: npt.ArrayLike,
        y_incumbent: npt.ArrayLike | None = None,
        *,
        n_bins: int = 10,
        sample_weight: npt.ArrayLike | None = None,
        ax: Any = None,
        **labels: str,
    ) -> Self:
        """Draw a lift chart or, with the predictions of an incumbent, a double lift chart.

        See :func:`fcorr.metrics.lift_table` and :func:`fcorr.metrics.double_lift_table`; labels
        are those of the constructor.
        """
        options: dict[str, Any] = {"n_bins": n_bins, "sample_weight": sample_weight}
        if y_incumbent is None:
            return cls(lift_table(y_true, y_pred, **options), **labels).plot(ax)
        return cls(double_lift_table(y_true, y_pred, y_incumbent, **options), **labels).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, or in a figure of its own; ``weight_ax_`` has the bars."""
        rows, is_double = self.table.rows, isinstance(self.table, DoubleLiftTable)
        n = len(rows)
        check_count(n, MAX_BINS, "bins", f"Make the table with n_bins={MAX_BINS} or fewer.")
        self._take_axes(ax, (max(6.0, 0.32 * n + 1.5), 4.6))
        ax = self.ax_
        names = {"actual": "actual", "predicted": self.model, "incumbent": self.incumbent}
        lines = {key: [getattr(row, key) for row in rows] for key in list(names)[: 2 + is_double]}
        for (key, values), style, colour in zip(
            lines.items(), SERIES, (INK, BLUE, ORANGE), strict=False
        ):
            ax.plot(range(n), values, **(style | {"color": colour}), label=one_line(names[key]))
        if 0 <= np.min([*lines.values()]) <= 0.5 * np.max([*lines.values()]):
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
    x_label, y_label : str
        What the axes measure.
    title : str
        What is seen.

    Examples
    --------
    >>> display = LorenzDisplay.from_predictions([0, 0, 1, 2], {"FCorr": [0.1, 0.2, 0.3, 0.4]})
    >>> display.ax_.get_legend().get_texts()[0].get_text()
    'FCorr, Gini 0.583'
    """

    curves: LorenzCurve | Mapping[str, LorenzCurve]
    x_label: str = "share of exposure, lowest predicted risk first"
    y_label: str = "share of claims"
    title: str = "Lorenz curves: claims in the order of predicted risk"

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        y_pred: npt.ArrayLike | Mapping[str, npt.ArrayLike],
        *,
        sample_weight: npt.ArrayLike | None = None,
        ax: Any = None,
        **labels: str,
    ) -> Self:
        """Draw the curve of some predictions, or of those of several models by their names.

        See :func:`fcorr.metrics.lorenz_curve`; labels are those of the constructor.
        """
        of_models = y_pred if isinstance(y_pred, Mapping) else {"model": y_pred}
        curves = {
            name: lorenz_curve(y_true, scores, sample_weight=sample_weight)
            for name, scores in of_models.items()
        }
        return cls(curves, **labels).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, or in a figure of its own."""
        given = self.curves
        curves = {"model": given} if isinstance(given, LorenzCurve) else dict(given)
        check_count(len(curves), len(SERIES), "Lorenz curves", "Choose the models to show.")
        self._take_axes(ax, (5.4, 5.4))
        ax = self.ax_
        for (name, curve), style in zip(curves.items(), SERIES, strict=False):
            x, y = curve.exposure_share, curve.claim_share
            gini = f"{curve.gini:.3f}".replace("-", "−")
            if len(x) > 201:  # more points than the eye can tell apart
                x, y = np.linspace(0, 1, 201), np.interp(np.linspace(0, 1, 201), x, y)
            look = style | {"markevery": 0.1, "markersize": 4}
            ax.plot(x, y, label=f"{one_line(name)}, Gini {gini}", **look)
        ax.plot([0, 1], [0, 1], color=GREY, lw=1, zorder=0, label="no order at all, Gini 0")
        ax.set(
            xlim=(0, 1),
            ylim=(min(curve.claim_share.min() for curve in curves.values()), 1),
            aspect="equal",
        )
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
        Of at most 60 groups.
    x_label : str
        What the ratio is.
    weight_label : str
        What the weights are.
    title : str
        What is seen.

    Examples
    --------
    >>> groups = {"sensitive_features": ["female", "male"]}
    >>> display = ActualExpectedDisplay.from_predictions([3, 5], [4, 4], **groups)
    >>> display.ax_.texts[1].get_text()
    '0.75 (0.15 to 2.19)'
    """

    table: ActualExpectedTable
    x_label: str = "actual ÷ expected"
    weight_label: str = "exposure"
    title: str = "Actual over expected by group"

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        y_pred: npt.ArrayLike,
        *,
        sensitive_features: Any,
        title: str = title,
        weight_label: str = weight_label,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the ratios of some predictions.

        Options are those of :func:`fcorr.metrics.actual_over_expected`.
        """
        groups = {"sensitive_features": sensitive_features}
        table = actual_over_expected(y_true, y_pred, **groups, **options)
        return cls(table, title=title, weight_label=weight_label).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, or in a figure of its own."""
        rows = self.table.rows
        way_out = "Join small groups, or choose the ones to show."
        check_count(len(rows), MAX_GROUPS, "groups", way_out)
        self._take_axes(ax, (8.5, 0.3 * len(rows) + 1.5))
        ax, (low, high) = self.ax_, self._range()
        for y, row in enumerate(rows):
            fill = "white" if row.low <= 1 <= row.high else INK
            ax.plot([row.low, min(row.high, high)], [y, y], color=INK, linewidth=1.2)
            look = {"marker": "o", "markerfacecolor": fill, "clip_on": False}
            ax.plot(row.ratio, y, color=INK, zorder=3, **look)
            if row.high > high:
                ax.plot(high, y, color=INK, marker=">", markersize=5, clip_on=False)
        ax.vlines(1, -0.5, len(rows) - 0.5, color=GREY, linewidth=1, zorder=0)
        ax.set(xlim=(low, high), ylim=(len(rows) - 0.5, -1.5))
        name_features(ax, "y", [str(row.group) for row in rows], ())
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.set_xlabel(one_line(f"{self.x_label} (filled: the interval does not hold 1)", None))
        head = [f"ratio ({100 * self.table.confidence:g} % interval)", self.weight_label, "rows"]
        cells = [[self._ratio_text(row), short_number(row.weight), f"{row.n:,}"] for row in rows]
        self._write_columns([*zip(head, *cells, strict=True)])
        return self._finish(self.title)

    @staticmethod
    def _ratio_text(row: Any) -> str:
        if math.isnan(row.ratio):
            return "not estimable"
        return f"{row.ratio:.2f} ({row.low:.2f} to {row.high:.2f})"

    def _range(self) -> tuple[float, float]:
        """Choose a range that shows all ratios and 1, and intervals unless one dwarfs the rest."""
        known = [row for row in self.table.rows if not math.isnan(row.ratio)]
        ratios, highs = [1.0, *(row.ratio for row in known)], [1.0, *(row.high for row in known)]
        high = max(*ratios, min(np.nanmax(highs), max(2.0, 1.15 * max(ratios))))
        low = float(np.nanmin([*ratios, *(row.low for row in known)]))
        margin = 0.05 * max(high - low, 0.1)
        return max(low - margin, 0.0), high + margin

    def _write_columns(self, columns: Sequence[Sequence[str]]) -> None:
        """Write numbers to the right of the axes, in columns as wide as they need."""
        right, where = 0.0, ("axes fraction", "data")
        for cells in columns:
            right += 14.0
            texts = [
                self.ax_.annotate(one_line(cell), (1, y), (right, 0), where, "offset points")
                for y, cell in enumerate(cells, -1)
            ]
            for text in texts:
                text.set(va="center", fontsize="small", annotation_clip=False)
            right += max(text.get_window_extent().width for text in texts) * 72 / self.figure_.dpi
            for text in texts:
                text.set(position=(right, 0), ha="right")
