"""Displays: charts of models, and of what was measured of them, by matplotlib (extra ``plot``).

They follow scikit-learn's convention. A constructor takes plain data, such as a table of
`fcorr.metrics`, ``from_...`` reads them off a model or a sweep and draws; ``plot(ax=None)`` draws
and returns the display, which then has ``figure_``, ``axes_`` and, as ``ax_``, the first of these.

Without ``ax`` a figure is made that pyplot does not know of: no window opens, no global state
changes, and nothing stays in memory when the display is gone. A notebook shows such a display by
itself; given axes are shown by whoever made them. `save_figure` writes files that are the same,
byte by byte, for the same data.

Lines and marks differ by colour, dashes and shape, so that neither colour blindness nor a print in
black and white makes them one. Names are text: nothing in them is read as markup.
"""

import html
import io
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from fcorr._core import InvalidInputError, check_argument, require, show_text, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fcorr.estimators import FeatureMatrix, MainEffect

INK, GREY, LIGHT = "#1a1a1a", "#8a8a8a", "#d9d9d9"
SERIES: tuple[dict[str, Any], ...] = (
    {"color": "#1b5a9c", "linestyle": "-", "marker": "o"},
    {"color": "#b34d08", "linestyle": (0, (5, 2)), "marker": "s"},
    {"color": INK, "linestyle": (0, (1.5, 2)), "marker": "D"},
    {"color": "#5f3a9c", "linestyle": (0, (6, 2, 1.5, 2)), "marker": "^"},
)
"""What tells up to four lines apart."""

MAX_NAME = 32
_MAX_FEATURES = 60
_MAX_LEVELS = 12  # of a feature that have room side by side
_N_BARS = 24
_RELATIVITIES = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9),
    *(1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100),
)
_MAX_WRITTEN = 12  # up to this many features, each cell of a matrix has room for its number

# Blue and orange stay apart for every common colour blindness. Both arms darken alike from white,
# so that a black-and-white print keeps the size; the sign is written or marked in the cell. They
# darken faster near zero: often one cell is far larger than the rest, which should not look empty.
_NEGATIVE_ARM = ("#0b3163", "#1b5a9c", "#4488c2", "#92bfe0", "#d3e4f3")
_POSITIVE_ARM = ("#fde2c6", "#f9b876", "#e5812a", "#b34d08", "#6d2a03")
_COLOURS = (*_NEGATIVE_ARM, "#ffffff", *_POSITIVE_ARM)
_POSITIONS = (0.0, 0.125, 0.275, 0.4, 0.475, 0.5, 0.525, 0.6, 0.725, 0.875, 1.0)


def save_figure(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Save a figure, whole or not at all, and the same bytes for the same figure.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        A display's ``figure_``, or any other. Its title and, in a display's figure, a description
        for screen readers go into the file.
    path : path-like
        Ends in ``.svg``, ``.png`` or ``.pdf``. Text in an SVG stays text.
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in ("svg", "png", "pdf"):
        raise InvalidInputError(
            f"path must end in .svg, .png or .pdf, got {os.fspath(path)!r}. Rename it."
        )
    write_atomically(path, _render(figure, kind))


def _render(figure: "Figure", kind: str) -> bytes:
    import matplotlib

    titles = [figure.get_suptitle(), *(ax.get_title(loc="left") for ax in figure.axes)]
    # What differs from save to save or from version to version stays out.
    metadata: dict[str, str | None] = {
        "svg": {"Date": None, "Creator": None, "Type": None, "Format": None},
        "png": {"Software": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }[kind] | {"Title": next(filter(None, titles), "Figure").replace(r"\$", "$")}
    fixed: Any = {"svg.hashsalt": "fcorr", "svg.fonttype": "none", "savefig.facecolor": "white"}
    content = io.BytesIO()
    with matplotlib.rc_context(fixed):
        figure.savefig(content, format=kind, metadata=metadata, bbox_inches="tight", dpi=150)
    description = html.escape(str(figure.get_label()))
    if kind != "svg" or not description:
        return content.getvalue()
    # matplotlib's own place for a description is one where screen readers do not look.
    described = f"</title>\n <desc>{description}</desc>".encode()
    return content.getvalue().replace(b"</title>", described, 1)


# ------------------------------------------------------------------------------ what all share


def one_line(name: object, most: int | None = MAX_NAME) -> str:
    r"""Make a name one short line of text, in which matplotlib finds no formula.

    Examples
    --------
    >>> print(one_line("two\nlines, $x$"))
    two lines, \$x\$
    >>> one_line("date_of_birth_distinct_emails_4w_by_branch")
    'date_of_birth_distinct_emails_4…'
    """
    text = show_text(re.sub(r"\s", " ", str(name)))
    if most is not None and len(text) > most:
        text = text[: most - 1] + "…"
    # A legend leaves out what begins with an underscore: a joiner of no width stands before it.
    return ("\u2060" * text.startswith("_") + text).replace("$", r"\$")


def short_number(value: float, *, scale: float = 0.0) -> str:
    """Write two or three significant digits, no finer than a thousandth of the scale.

    Examples
    --------
    >>> [short_number(value, scale=2.5) for value in (1.304, 0.998, -0.0231, 0.00001, 0.0)]
    ['1.3', '1.0', '−0.023', '≈0', '0']
    >>> [short_number(value) for value in (12.46, 99.97, 27507.9, 1.2e-7, 3.1e9)]
    ['12.5', '100', '27,508', '1.2e−07', '3.1e+09']
    """
    size = abs(value)
    if size == 0 or size < scale / 2000:
        return "≈0" if size else "0"
    text = f"{value:.1e}"
    if 1e-3 <= size < 1e6:
        text = f"{value:,.{0 if size >= 99.95 else max(1, 1 - int(text[-3:]))}f}"
    return text.replace("-", "−")


def check_count(n: int, most: int, what: str, way_out: str) -> None:
    """Refuse a display that would be empty, or too crowded to read."""
    if not 1 <= n <= most:
        raise InvalidInputError(f"A display shows one to {most} {what}, got {n}. {way_out}")


def _check_features(values: npt.NDArray[Any], names: Sequence[object]) -> None:
    """Refuse features that cannot be drawn, or are too many."""
    way_out = "Choose the ones to show, such as by k=12."
    check_count(len(names), _MAX_FEATURES, "features", way_out)
    if set(values.shape) != {len(names)}:
        raise InvalidInputError(
            f"A matrix of {len(names)} features must have as many rows and columns, got shape "
            f"{values.shape}."
        )
    if not np.isfinite(values).all():
        where = tuple(np.argwhere(~np.isfinite(values))[0])
        features = " × ".join(repr(names[i]) for i in where)
        raise InvalidInputError(
            f"A display needs finite numbers, got {values[where]} for {features}. "
            "Leave out the features that have none."
        )


class Display(ABC):
    """A chart: where it is drawn, and how a notebook shows it.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        What it is drawn in: a figure of its own, or the one of the given axes.
    axes_ : ndarray of matplotlib.axes.Axes
        One for each panel.
    ax_ : matplotlib.axes.Axes
        The axes, or the first of several.
    """

    figure_: "Figure"
    axes_: npt.NDArray[Any]
    _is_own: bool = False

    @abstractmethod
    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, or in a figure of its own."""

    @property
    def ax_(self) -> Any:
        """The axes, or the first of several."""
        return self.axes_[0]

    def _take_axes(self, ax: Any, size: tuple[float, float], n: int = 1, **grid: Any) -> None:
        """Take the given axes, or make a figure with as many as are needed."""
        require("matplotlib", extra="plot", purpose=type(self).__name__)
        from matplotlib.figure import Figure

        self._is_own = ax is None
        if ax is None:
            ax = Figure(figsize=size, layout="constrained").subplots(**grid)
        self.axes_ = np.ravel(np.asarray(ax, dtype=object))
        if self._is_own:
            for unused in self.axes_[n:]:  # the last row of a grid need not be full
                unused.remove()
            self.axes_ = self.axes_[:n]
        if len(self.axes_) != n:
            raise InvalidInputError(
                f"ax must be as many axes as there are panels, {n}, got {len(self.axes_)}. "
                "Leave it out for a figure of its own."
            )
        self.figure_ = self.ax_.get_figure(root=True)

    def _finish(self, title: str, panels: Collection[str] = ()) -> Self:
        """Write the titles; what kind of chart it is goes into the file for screen readers."""
        if len(panels) < 2:
            self.ax_.set_title(one_line(title, None), loc="left", fontweight="bold")
        else:
            for ax, panel in zip(self.axes_, panels, strict=True):
                ax.set_title(one_line(panel))
            if self._is_own:
                self.figure_.suptitle(one_line(title, None), fontweight="bold")
        if self._is_own and self.__doc__:
            self.figure_.set_label(self.__doc__.splitlines()[0])
        return self

    def _repr_svg_(self) -> str | None:
        return _render(self.figure_, "svg").decode() if self._is_own else None


def name_features(
    ax: Any, axis: str, names: Sequence[str], sensitive: Collection[str] = ()
) -> list[bool]:
    """Label one axis with features, sensitive ones in bold and along the rows in words.

    Returns which ones are sensitive.
    """
    sensitive = [sensitive] if isinstance(sensitive, str) else sensitive  # one needs no list
    marked = [name in sensitive for name in names]
    note = " (sensitive)" if axis == "y" else ""
    labels = [one_line(n) + note * is_marked for n, is_marked in zip(names, marked, strict=True)]
    ax.set(**{f"{axis}ticks": range(len(names)), f"{axis}ticklabels": labels})
    for label, is_marked in zip(getattr(ax, f"get_{axis}ticklabels")(), marked, strict=True):
        label.set_fontweight("bold" if is_marked else "normal")
    ax.tick_params(axis=axis, length=0, labelsize="small")
    return marked


# ------------------------------------------------------------------------------ features


@dataclass(eq=False)
class AttentionDisplay(Display):
    """Matrices of features by features as heat maps, on one colour scale that is white at zero.

    Up to 12 features, each cell shows its number; beyond, a short stroke marks the cells with a
    clearly negative one.

    Parameters
    ----------
    matrices : FeatureMatrix or mapping of str to FeatureMatrix
        One matrix, or several by the names of their panels; each of at most 60 features.
    sensitive : collection of str, default=()
        Features to mark. Names that no matrix has are ignored.
    title : str
        What is seen.
    k : int, optional
        How many features to show, the most significant ones; all by default.

    Examples
    --------
    >>> from fcorr.estimators import FeatureMatrix
    >>> matrix = FeatureMatrix(("age", "income"), np.array([[0.66, 0.37], [0.37, 1.3]]))
    >>> display = AttentionDisplay(matrix, sensitive=["age"]).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['age (sensitive)', 'income']
    """

    matrices: "FeatureMatrix | Mapping[str, FeatureMatrix]"
    sensitive: Collection[str] = ()
    title: str = "Mean pre-softmax attention"
    k: int | None = None

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, *, k: int | None = None, layer: int = 0, ax: Any = None
    ) -> Self:
        """Draw a fitted model's attention, the mean over the rows of X."""
        matrix = model.attention(X, layer=layer)
        return cls(matrix, model.schema_.sensitive_features, k=k).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, one for each matrix, or in a figure of its own."""
        given, title = self.matrices, self.title
        panels: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {"": given}
        for name, matrix in panels.items():
            if self.k is not None and self.k < len(matrix.names):
                shown = np.argsort(-matrix.values.diagonal(), kind="stable")[: self.k]
                names = tuple(matrix.names[i] for i in shown)
                panels[name] = type(matrix)(names, matrix.values[np.ix_(shown, shown)])
                title = f"{self.title}, the {self.k} most significant features"
            _check_features(np.asarray(panels[name].values), panels[name].names)
        n, n_most = len(panels), max((len(m.names) for m in panels.values()), default=0)
        check_count(n, 9, "matrices", "Choose the ones to show.")
        side = n_most * (0.55 if n_most <= _MAX_WRITTEN else 0.2)
        size = n * max(side, 2.2) + 2.5, max(side, 1.8) + 1.5
        self._take_axes(ax, size, n, ncols=n)
        if self._is_own:
            self.figure_.set_layout_engine("compressed")
        limit = max(float(np.abs(m.values).max()) for m in panels.values()) or 1.0
        for axes, matrix in zip(self.axes_, panels.values(), strict=True):
            image = self._draw(axes, matrix, limit, is_written=n_most <= _MAX_WRITTEN)
            if axes is not self.ax_ and matrix.names == panels[next(iter(panels))].names:
                axes.tick_params(labelleft=not self._is_own)  # the rows are named once
        self.figure_.colorbar(image, ax=list(self.axes_), shrink=0.9, pad=0.02)
        return self._finish(title, panels)

    def _draw(self, ax: Any, matrix: "FeatureMatrix", limit: float, is_written: bool) -> Any:
        from matplotlib.colors import LinearSegmentedColormap

        stops = [*zip(_POSITIONS, _COLOURS, strict=True)]
        colours = LinearSegmentedColormap.from_list("fcorr", stops, N=257)  # white is the middle
        values = np.asarray(matrix.values, dtype=float)
        image = ax.imshow(values, cmap=colours, vmin=-limit, vmax=limit)
        luminance = image.to_rgba(values)[..., :3] ** 2.2 @ [0.2126, 0.7152, 0.0722]
        inks = np.where(luminance > 0.19, INK, "white")  # whichever stands out more
        if is_written:
            for (i, j), value in np.ndenumerate(values):
                look = {"ha": "center", "va": "center", "color": inks[i, j], "fontsize": "small"}
                ax.text(j, i, short_number(value, scale=limit), **look)
        else:
            # On a black-and-white print blue and orange look alike where they are dark.
            rows, columns = np.nonzero(values < -0.05 * limit)
            ax.scatter(columns, rows, marker="_", s=14, linewidths=0.8, c=inks[rows, columns])
            ax.set_xlabel("– marks negative entries" if len(rows) else "", loc="left")
        for axis in "xy":
            name_features(ax, axis, matrix.names, self.sensitive)
        if not is_written or max(len(name) for name in matrix.names) > 5:
            ax.tick_params(axis="x", rotation=90)
        ax.spines[:].set_color(LIGHT)
        return image


@dataclass(eq=False)
class SignificanceDisplay(Display):
    """A number for each feature as horizontal bars, the largest first.

    Sensitive features are told apart by colour, hatching and words.

    Parameters
    ----------
    significance : mapping of str to float, or of str to such mappings
        Numbers by feature, at most 60; or several groups of them by the names of their panels.
    sensitive : collection of str, default=()
        Features to mark. Names that are not shown are ignored.
    title, x_label : str
        What is seen, and what the bars measure.

    Examples
    --------
    >>> display = SignificanceDisplay({"age": 0.66, "income": 1.3}, sensitive=["age"]).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['income', 'age (sensitive)']
    """

    significance: Mapping[str, float] | Mapping[str, Mapping[str, float]]
    sensitive: Collection[str] = ()
    title: str = "Feature significance"
    x_label: str = "diagonal of the pre-softmax attention matrix"

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, one for each panel, or in a figure of its own."""
        is_one = not any(isinstance(value, Mapping) for value in self.significance.values())
        panels: dict[str, Any] = {"": self.significance} if is_one else dict(self.significance)
        for values in panels.values():
            _check_features(np.array([*values.values()], dtype=float), list(values))
        n, n_most = len(panels), max(len(values) for values in panels.values())
        size = 4.6 * n + 0.8, 0.27 * n_most + 1.3
        self._take_axes(ax, size, n, ncols=n, sharex=True)
        for axes, values in zip(self.axes_, panels.values(), strict=True):
            order = sorted(values, key=lambda feature: -values[feature])  # ties keep their order
            widths = [values[feature] for feature in order]
            marked = name_features(axes, "y", order, self.sensitive)
            bars = axes.barh(
                range(len(order)),
                widths,
                height=0.65,
                color=["#f0a03c" if is_marked else "#34679f" for is_marked in marked],
                edgecolor=[INK if is_marked else "none" for is_marked in marked],
                hatch=["///" if is_marked else "" for is_marked in marked],
            )
            scale = max(map(abs, widths))
            texts = [short_number(width, scale=scale) for width in widths]
            axes.bar_label(bars, texts, padding=3, fontsize="small")
            axes.set_ylim(n_most - 0.4, -0.6)
            axes.margins(x=0.14)
            axes.locator_params(axis="x", nbins=6)
            axes.axvline(0, color=INK, linewidth=0.8)
            axes.set_xlabel(one_line(self.x_label, None))
            axes.spines[["top", "right", "left"]].set_visible(False)
        return self._finish(self.title, panels)


@dataclass(eq=False)
class MainEffectDisplay(Display):
    """What each feature adds to the output by itself: a curve or points, one panel a feature.

    Each panel has its own scale, which spans at least a fifth of the widest: what does little looks
    flat. The band, or the stroke through a point, is the interval of the
    effect; grey bars are the training rows. With a log link the right axis has the relativities.

    Parameters
    ----------
    effects : mapping of str to MainEffect
        Main effects by feature, from ``model.main_effects()``, at most 24; of one class.
    unit : str
        What they are measured in.
    sensitive : collection of str, default=()
        Features to mark. Names that are not shown are ignored.
    title : str
        What is seen.

    Examples
    --------
    >>> from fcorr.estimators import MainEffect
    >>> effect, rows = np.array([0.2, -0.1]), np.array([30.0, 60.0])
    >>> job = MainEffect(
    ...     "job", "categorical", ("cook", "smith"), effect, effect - 0.1, effect + 0.1, rows, rows
    ... )
    >>> display = MainEffectDisplay({"job": job}, "log-odds").plot()
    >>> [label.get_text() for label in display.ax_.get_xticklabels()]
    ['cook', 'smith']
    """

    effects: "Mapping[str, MainEffect]"
    unit: str
    sensitive: Collection[str] = ()
    title: str = "Main effects"

    @classmethod
    def from_estimator(
        cls, model: Any, *, features: Sequence[str] | None = None, label: Any = None, ax: Any = None
    ) -> Self:
        """Draw a fitted model's main effects.

        Without ``features`` up to nine are shown, those with the most important first; with several
        classes, ``label`` says for which.
        """
        found = model.main_effects()
        title = cls.title
        if features is None:
            names = model.schema_.feature_names
            order = np.argsort(-model.importance_, kind="stable")
            features = [names[i] for i in order[:9]]
            if len(names) > len(features):
                title += f", the {len(features)} most important of {len(names)} features"
        effects = {name: found[name] for name in features}
        if found.classes is not None:
            rule = f"one of the classes {found.classes}"
            way_out = "Each class has effects of its own."
            check_argument("label", label, label in found.classes, rule, way_out)
            effects = {n: e.of_class(found.classes.index(label)) for n, e in effects.items()}
            title += f" on class {label}"
        return cls(effects, found.unit, model.schema_.sensitive_features, title).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, one for each feature, or in a figure of its own."""
        n = len(self.effects)
        check_count(n, 24, "features", "Choose the ones to show by features=.")
        n_columns = min(3, n)
        n_rows = math.ceil(n / n_columns)
        size = 3.1 * n_columns + 1.2, 2.5 * n_rows + 0.6
        self._take_axes(ax, size, n, nrows=n_rows, ncols=n_columns)
        spans = [_span(effect) for effect in self.effects.values()]
        widest = max(high - low for low, high in spans)
        panels = zip(self.axes_, self.effects.values(), spans, strict=True)
        for i, (axes, effect, (low, high)) in enumerate(panels):
            more = max(0.0, widest / 5 - (high - low)) / 2
            low, high = low - more, high + more
            # Below everything there is room for the rows.
            low, high = low - 0.25 * (high - low), high + 0.05 * (high - low)
            axes.set_ylim(low, high)
            self._draw(axes, effect)
            axes.tick_params(labelsize="small")
            axes.locator_params(axis="y", nbins=5)
            axes.spines[["top", "right"]].set_visible(False)
            if i % n_columns == 0:
                axes.set_ylabel(one_line(self.unit, None), fontsize="small")
            if effect.relativity is not None:
                # matplotlib tries the logarithm of 0, too.
                functions = np.exp, lambda x: np.log(np.maximum(x, 1e-300))
                right = axes.secondary_yaxis("right", functions=functions)
                ticks = [r for r in _RELATIVITIES if low < math.log(r) < high]
                right.set_yticks(ticks[:: math.ceil(len(ticks) / 6)])
                right.yaxis.set_major_formatter("{x:g}")
                right.tick_params(labelsize="small")
                if i % n_columns == n_columns - 1 or i == n - 1:
                    right.set_ylabel("relativity", fontsize="small")
        if self._is_own:
            note = "line or dot: main effect ± 2 standard errors; grey: training rows"
            self.figure_.supxlabel(note, fontsize="small")
        names = [str(name) + " (sensitive)" * (name in self.sensitive) for name in self.effects]
        return self._finish(self.title if n > 1 else f"{self.title}: {names[0]}", names)

    def _draw(self, ax: Any, effect: "MainEffect") -> None:
        ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
        numbers = np.array([v for v in effect.values if not isinstance(v, str | None)], dtype=float)
        blue = SERIES[0]["color"]
        n = len(numbers)
        if n:
            ax.fill_between(
                numbers, effect.lower[:n], effect.upper[:n], color=blue, alpha=0.2, lw=0
            )
            ax.plot(numbers, effect.effect[:n], color=blue, zorder=3)
            width = (numbers[-1] - numbers[0]) or 1.0
            n_bars = min(_N_BARS, max(n, 2))
            edges = np.linspace(numbers[0], numbers[0] + width, n_bars + 1)
            heights, _ = np.histogram(numbers, edges, weights=effect.rows[:n])
            self._draw_rows(ax, edges[:-1] + np.diff(edges) / 2, heights, width / n_bars)
            missing = range(n, len(effect.values))
            self._draw_points(ax, effect, missing, [numbers[0] + 1.12 * width] * len(missing))
            for at in missing:
                where = numbers[0] + 1.12 * width, effect.effect[at]
                ax.annotate("missing", where, (0, 7), textcoords="offset points", ha="center",
                            fontsize="x-small")  # fmt: skip
            ax.locator_params(axis="x", nbins=5)
            return
        shown = np.sort(np.argsort(-effect.rows, kind="stable")[:_MAX_LEVELS])
        if effect.kind in ("categorical", "rated"):  # no order of their own
            shown = shown[np.argsort(-effect.effect[shown], kind="stable")]
        places = range(len(shown))
        self._draw_rows(ax, places, effect.rows[shown], 0.7)
        self._draw_points(ax, effect, shown, places)
        labels = [one_line(effect.values[i], 14) for i in shown]
        is_long = max(map(len, labels)) * len(labels) > 24
        turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
        ax.set_xticks(places, labels, **turned)
        if len(effect.values) > len(shown):
            ax.set_xlabel(
                f"the {len(shown)} most frequent of {len(effect.values)}", fontsize="small"
            )

    def _draw_points(
        self, ax: Any, effect: "MainEffect", which: npt.ArrayLike, x: Sequence[float]
    ) -> None:
        chosen = np.asarray(which, dtype=int)
        ends = effect.lower[chosen], effect.upper[chosen]
        ax.plot([x, x], ends, color=SERIES[0]["color"], alpha=0.35, linewidth=4)
        ax.plot(x, effect.effect[chosen], color=SERIES[0]["color"], marker="o", ms=5, ls="none")

    def _draw_rows(self, ax: Any, x: Any, rows: npt.NDArray[Any], width: float) -> None:
        """Draw the rows as bars along the lower edge, the most frequent a sixth of the height."""
        transform = ax.get_xaxis_transform()
        heights = np.asarray(rows, dtype=float) / (np.max(rows, initial=0.0) or 1.0) / 6
        ax.bar(x, heights, width=width, color=LIGHT, transform=transform, zorder=0)


def _span(effect: "MainEffect") -> tuple[float, float]:
    """Find what a panel shows: all effects, and of the intervals what is not much larger."""
    low, high = float(effect.effect.min(initial=0)), float(effect.effect.max(initial=0))
    room = 0.5 * (high - low)
    lowest = float(np.nanmin(effect.lower, initial=low))
    highest = float(np.nanmax(effect.upper, initial=high))
    return max(low - room, lowest), min(high + room, highest)


# ------------------------------------------------------------------------------ sweeps


@dataclass(eq=False)
class FrontierDisplay(Display):
    """Performance against flips, on a logarithmic axis that goes on to 0.

    A thin line joins the points that no other beats in both. Where there are more than 20 points,
    only these are named, and the chosen one.

    Parameters
    ----------
    summaries : sequence of Summary
        What was measured: ``summaries`` of a :class:`fcorr.search.sweep.Sweep`.
    chosen : str, optional
        The name of the point to mark.
    title : str
        What is seen; on which rows and by how many seeds is added.

    Examples
    --------
    >>> from fcorr.search.sweep import Summary
    >>> def summary(name, auroc, change):
    ...     numbers = {"performance": {"AUROC": auroc}, "flip": {"largest change": change}}
    ...     measured = {"task": "two classes", "groups": {}, "exact": change == 0, **numbers}
    ...     return Summary(name, {}, ({"measured": measured},))
    >>> points = [summary("λ = 0", 0.75, 0.3), summary("adapt", 0.74, 0.0)]
    >>> display = FrontierDisplay(points, chosen="adapt").plot()
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['CAR alone', 'exact', 'no other point is better in both', 'chosen']
    """

    summaries: Sequence[Any]
    chosen: str | None = None
    title: str = "Performance against flips"

    @classmethod
    def from_sweep(cls, sweep: Any, *, ax: Any = None) -> Self:
        """Draw the points of a sweep; the one chosen within its budget is marked, if there is."""
        try:
            chosen: str | None = sweep.choose().name
        except InvalidInputError:
            chosen = None  # no point is within the budget
        return cls(sweep.summaries, chosen).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, or in a figure of its own."""
        from fcorr.audit.measure import LOWER_IS_BETTER, MAIN_METRIC

        check_count(len(self.summaries), 1_000, "points of a sweep", "Choose the ones to show.")
        metric = MAIN_METRIC[self.summaries[0].measured[0].task]
        n_seeds = len(self.summaries[0].runs)
        is_loss = metric in LOWER_IS_BETTER
        points = [s for s in self.summaries if not math.isnan(s.mean(metric))]
        check_count(len(points), 1_000, "points with a known performance", "Use other rows.")
        self._take_axes(ax, (8.2, 4.4))
        ax = self.ax_
        ax.set_ylabel(one_line(metric + " (lower is better)" * is_loss, None))
        ax.grid(color=LIGHT, linewidth=0.5)
        ax.ticklabel_format(axis="y", useOffset=False)
        positions = {s.name: (s.mean("largest change"), s.mean(metric)) for s in points}
        for is_exact, kind in enumerate(("CAR alone", "exact")):
            of_kind = [s for s in points if s.exact == is_exact]
            x, y = [positions[s.name][0] for s in of_kind], [positions[s.name][1] for s in of_kind]
            look = SERIES[is_exact] | {"linestyle": "none"}
            ax.plot(x, y, label=kind if of_kind else None, zorder=3, **look)
            of_seeds = [s.values(metric) for s in of_kind]
            ends = [min(values) for values in of_seeds], [max(values) for values in of_seeds]
            ax.plot([x, x], ends, color=look["color"], linewidth=0.8)
        sign, front = -1.0 if is_loss else 1.0, list[tuple[float, float]]()
        for at in sorted(positions.values(), key=lambda at: (at[0], -sign * at[1])):
            if not front or sign * at[1] > sign * front[-1][1]:
                front.append(at)
        if len(front) > 1:
            label = "no other point is better in both"
            ax.plot(*zip(*front, strict=True), color=GREY, linewidth=1, label=label)
        if self.chosen in positions:
            ring = {"marker": "o", "markersize": 12, "markerfacecolor": "none", "color": INK}
            ax.plot(*positions[self.chosen], linestyle="none", label="chosen", **ring)
        # Logarithmic down to the smallest positive change, and linear from there to 0.
        smallest = ax.dataLim.minposx
        threshold = 10.0 ** math.floor(math.log10(smallest)) if smallest < math.inf else 1.0
        ax.set_xscale("symlog", linthresh=threshold)
        ax.xaxis.get_major_locator().set_params(numticks=7)
        ax.margins(y=0.12)
        ax.set_xlabel("largest change of a prediction under a flip, on the rows")
        beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1)}  # never on the data
        ax.legend(frameon=False, fontsize="small", **beside)
        for name, at in positions.items():
            if len(points) <= 20 or name == self.chosen or at in front:
                look = {"rotation": 40, "fontsize": "small", "textcoords": "offset points"}
                weight = "bold" if name == self.chosen else "normal"
                ax.annotate(one_line(name), at, (3, 5), fontweight=weight, **look)
        rows = f"validation rows, {n_seeds} seed{'s' * (n_seeds > 1)}"
        return self._finish(f"{self.title} ({rows})")
