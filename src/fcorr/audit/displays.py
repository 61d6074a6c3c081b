"""Displays: charts of models, and of what was measured of them, by matplotlib (extra ``plot``).

They follow scikit-learn's convention. A constructor takes plain data, ``from_...`` computes them
and draws; ``plot(ax=None)`` draws and returns the display, which then has ``figure_``, ``axes_``
and, as ``ax_``, the first of these.

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
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from fcorr._core import InvalidInputError, require, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fcorr.estimators import FeatureMatrix

INK, GREY, LIGHT = "#1a1a1a", "#8a8a8a", "#d9d9d9"
BLUE, ORANGE, PURPLE = "#1b5a9c", "#b34d08", "#5f3a9c"
SERIES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": ORANGE, "linestyle": (0, (5, 2)), "marker": "s"},
    {"color": INK, "linestyle": (0, (1.5, 2)), "marker": "D"},
    {"color": PURPLE, "linestyle": (0, (6, 2, 1.5, 2)), "marker": "^"},
)
"""What tells up to four lines apart."""

MAX_FEATURES = 60
MAX_NAME = 32
OUTSIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1)}  # never on the data

# Blue and orange stay apart for every common colour blindness. Both arms darken alike from white,
# so that a black-and-white print keeps the size; the sign is written or marked in the cell. They
# darken faster near zero: often one cell is far larger than the rest, which should not look empty.
_ARM_POSITIONS = (0.0, 0.05, 0.2, 0.45, 0.75, 1.0)
_NEGATIVE_ARM = ("#ffffff", "#d3e4f3", "#92bfe0", "#4488c2", "#1b5a9c", "#0b3163")
_POSITIVE_ARM = ("#ffffff", "#fde2c6", "#f9b876", "#e5812a", "#b34d08", "#6d2a03")
_MAX_WRITTEN = 12  # up to this many features, each cell has room for its number


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
    text = "".join(
        "\ufffd" if unicodedata.category(char) in ("Cc", "Cs") or char in "\ufffe\uffff" else char
        for char in re.sub(r"\s", " ", str(name))
    )  # what XML forbids is replaced
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
    >>> [short_number(value) for value in (12.46, 99.97, 27507.9, 1.2e-7, 3.1e9, float("inf"))]
    ['12.5', '100', '27,508', '1.2e−7', '3.1e9', '∞']
    """
    size = abs(value)
    if size == 0 or size < scale / 2000:
        return "≈0" if size else "0"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    if 1e-3 <= size < 1e6:
        text = f"{value:,.{0 if size >= 99.95 else max(1, 1 - int(exponent))}f}"
    else:
        text = f"{mantissa}e{int(exponent)}" if exponent else mantissa.replace("inf", "∞")
    return text.replace("-", "−")


def check_count(n: int, most: int, what: str, way_out: str) -> None:
    """Refuse a display that would be empty, or too crowded to read."""
    if not 1 <= n <= most:
        raise InvalidInputError(f"A display shows one to {most} {what}, got {n}. {way_out}")


def _check_features(values: npt.NDArray[Any], names: Sequence[object]) -> None:
    """Refuse features that cannot be drawn, or are too many."""
    way_out = "Choose the ones to show, such as by k=12."
    check_count(len(names), MAX_FEATURES, "features", way_out)
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


class Display:
    """A chart: where it is drawn, and how a notebook shows it."""

    figure_: "Figure"
    axes_: npt.NDArray[Any]
    _is_own: bool = False

    @property
    def ax_(self) -> Any:
        """The axes, or the first of several."""
        return self.axes_[0]

    def _take_axes(
        self,
        ax: Any,
        size: tuple[float, float],
        n: int = 1,
        layout: Any = "constrained",
        **grid: Any,
    ) -> None:
        """Take the given axes, or make a figure with as many as are needed."""
        require("matplotlib", extra="plot", purpose=type(self).__name__)
        from matplotlib.figure import Figure

        self._is_own = ax is None
        if ax is None:
            ax = Figure(figsize=size, layout=layout).subplots(**grid)
        self.axes_ = np.ravel(np.asarray(ax, dtype=object))
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


def _as_names(sensitive: Collection[str]) -> Collection[str]:
    """One name need not be wrapped in a list."""
    return [sensitive] if isinstance(sensitive, str) else sensitive


def name_features(ax: Any, axis: str, names: Sequence[str], sensitive: Collection[str]) -> None:
    """Label one axis with features; bold letters, and along the rows words, mark sensitive ones."""
    note = " (sensitive)" if axis == "y" else ""
    labels = [one_line(name) + note * (name in sensitive) for name in names]
    ax.set(**{f"{axis}ticks": range(len(names)), f"{axis}ticklabels": labels})
    for label, name in zip(getattr(ax, f"get_{axis}ticklabels")(), names, strict=True):
        label.set_fontweight("bold" if name in sensitive else "normal")
    ax.tick_params(axis=axis, length=0, labelsize="small")


class _LogPlaces:
    """Positions on a logarithmic axis, with places at its ends for what has no logarithm.

    0 stands before the powers of ten; infinity and, in their order, names stand after them.
    """

    def __init__(self, values: Iterable[float | str]) -> None:
        values = list(dict.fromkeys(values))
        logs = [math.log10(v) for v in values if not isinstance(v, str) and 0 < v < math.inf]
        low = math.floor(min(logs, default=0) + 1e-9)
        high = max(math.ceil(max(logs, default=0) - 1e-9), low + 1 if logs else low)
        gap = max(1.0, (high - low) / 5)  # room for a name below each
        after = [v for v in values if v == math.inf] + [v for v in values if isinstance(v, str)]
        self._ends = {v: high + gap * i for i, v in enumerate(after, 1)}
        self._ends |= {0.0: low - gap} if 0 in values else {}
        powers = range(low, high + 1, max(1, math.ceil((high - low) / 6)) if logs else high + 2)
        ticks = {power: f"1e{power}".replace("-", "−") for power in powers if logs}
        ticks |= {p: f"{10.0**p:,.{max(0, -p)}f}" for p in ticks if abs(p) <= 3}
        ends = {
            at: one_line(v if isinstance(v, str) else short_number(v))
            for v, at in self._ends.items()
        }
        self.ticks = dict(sorted((ticks | ends).items()))

    def __getitem__(self, value: float | str) -> float:
        return self._ends[value] if value in self._ends else math.log10(float(value))

    def label(self, ax: Any, axis: str) -> None:
        """Label the places, and leave some room at both ends."""
        low, high = min(self.ticks), max(self.ticks)
        margin = 0.05 * (high - low) or 1.0
        ax.set(**{f"{axis}ticks": [*self.ticks], f"{axis}ticklabels": [*self.ticks.values()]})
        ax.set(**{f"{axis}lim": (low - margin, high + margin)})


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

    def __post_init__(self) -> None:
        self.sensitive = _as_names(self.sensitive)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, *, k: int | None = None, layer: int = 0, ax: Any = None
    ) -> Self:
        """Draw a fitted model's attention, the mean over the rows of X.

        ``k`` features are shown, the most significant ones; all when it is left out.
        """
        matrix = model.attention(X, layer=layer)
        title = cls.title
        if k is not None and k < len(matrix.names):
            shown = np.argsort(-matrix.values.diagonal(), kind="stable")[:k]
            names = tuple(matrix.names[i] for i in shown)
            matrix = type(matrix)(names, matrix.values[np.ix_(shown, shown)])
            title += f", the {k} most significant features"
        return cls(matrix, model.schema_.sensitive_features, title).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, one for each matrix, or in a figure of its own."""
        given = self.matrices
        panels: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {"": given}
        for matrix in panels.values():
            _check_features(np.asarray(matrix.values), matrix.names)
        n, n_most = len(panels), max((len(m.names) for m in panels.values()), default=0)
        check_count(n, 9, "matrices", "Choose the ones to show.")
        side = n_most * (0.55 if n_most <= _MAX_WRITTEN else 0.2)
        size = n * max(side, 2.2) + 2.5, max(side, 1.8) + 1.5
        self._take_axes(ax, size, n, "compressed", ncols=n)
        limit = max(float(np.abs(m.values).max()) for m in panels.values()) or 1.0
        for axes, matrix in zip(self.axes_, panels.values(), strict=True):
            image = self._draw(axes, matrix, limit, is_written=n_most <= _MAX_WRITTEN)
            if axes is not self.ax_ and matrix.names == panels[next(iter(panels))].names:
                axes.tick_params(labelleft=not self._is_own)  # the rows are named once
        self.figure_.colorbar(image, ax=list(self.axes_), shrink=0.9, pad=0.02)
        return self._finish(self.title, panels)

    def _draw(self, ax: Any, matrix: "FeatureMatrix", limit: float, is_written: bool) -> Any:
        from matplotlib.colors import LinearSegmentedColormap

        shares = np.array(_ARM_POSITIONS)
        stops = [*zip(0.5 - shares[::-1] / 2, _NEGATIVE_ARM[::-1], strict=True)]
        stops += [*zip(0.5 + shares / 2, _POSITIVE_ARM, strict=True)][1:]
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
    title : str
        What is seen.
    x_label : str
        What the bars measure.
    shared_scale : bool, default=True
        Whether one unit is equally long in all panels. Turn it off for groups whose numbers cannot
        be compared, such as the importances of different models.

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
    shared_scale: bool = True

    def __post_init__(self) -> None:
        self.sensitive = _as_names(self.sensitive)

    @classmethod
    def from_estimator(cls, model: Any, *, k: int | None = 10, ax: Any = None) -> Self:
        """Draw the ``k`` largest significances of a fitted model, on its training table.

        All are shown where ``k`` is None.
        """
        everything = model.feature_significance()
        shown = dict(list(everything.items())[:k])
        is_part = len(shown) < len(everything)
        title = cls.title + f", the {len(shown)} largest of {len(everything)}" * is_part
        return cls(shown, model.schema_.sensitive_features, title).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, one for each panel, or in a figure of its own."""
        is_one = not any(isinstance(value, Mapping) for value in self.significance.values())
        panels: dict[str, Any] = {"": self.significance} if is_one else dict(self.significance)
        for values in panels.values():
            _check_features(np.array([*values.values()], dtype=float), list(values))
        n, n_most = len(panels), max(len(values) for values in panels.values())
        size = 4.6 * n + 0.8, 0.27 * n_most + 1.3
        self._take_axes(ax, size, n, ncols=n, sharex=self.shared_scale)
        for axes, values in zip(self.axes_, panels.values(), strict=True):
            order = sorted(values, key=lambda feature: -values[feature])  # ties keep their order
            marked = [feature in self.sensitive for feature in order]
            scale = max(abs(value) for value in values.values())
            bars = axes.barh(
                range(len(order)),
                [values[feature] for feature in order],
                height=0.65,
                color=["#f0a03c" if is_marked else "#34679f" for is_marked in marked],
                edgecolor=[INK if is_marked else "none" for is_marked in marked],
                hatch=["///" if is_marked else "" for is_marked in marked],
            )
            texts = [short_number(values[feature], scale=scale) for feature in order]
            axes.bar_label(bars, texts, padding=3, fontsize="small")
            name_features(axes, "y", order, self.sensitive)
            axes.set_ylim(n_most - 0.4, -0.6)
            axes.margins(x=0.14)
            axes.locator_params(axis="x", nbins=6)
            axes.axvline(0, color=INK, linewidth=0.8)
            axes.set_xlabel(one_line(self.x_label, None))
            axes.spines[["top", "right", "left"]].set_visible(False)
        return self._finish(self.title, panels)


# ------------------------------------------------------------------------------ sweeps


class FrontierPoint(NamedTuple):
    """One model: its price ``x``, 0 or more, and its performance ``y``.

    The legend names its kind; ``spread`` is the range of performances behind it, over seeds.
    """

    name: str
    x: float
    y: float
    kind: str
    spread: tuple[float, float] | None = None


@dataclass(eq=False)
class FrontierDisplay(Display):
    """Performance against what it costs, on a logarithmic axis with a place for 0.

    A thin line joins the models that no other beats in both.

    Parameters
    ----------
    points : sequence of FrontierPoint
        The models, of at most four kinds.
    x_label, y_label : str
        What the axes measure.
    chosen : str, optional
        The name of the model to mark.
    lower_is_better : bool, default=False
        Whether a low y is good performance.
    title : str
        What is seen.

    Examples
    --------
    >>> weak = FrontierPoint("λ = 0", 0.3, 0.75, "CAR alone")
    >>> exact = FrontierPoint("adapt", 0.0, 0.74, "exact")
    >>> display = FrontierDisplay([weak, exact], x_label="change", y_label="AUROC").plot()
    >>> [label.get_text() for label in display.ax_.get_xticklabels()]
    ['0', '0.1', '1']
    """

    points: Sequence[FrontierPoint]
    x_label: str = "largest change of a prediction under a flip, on the rows"
    y_label: str = "performance"
    chosen: str | None = None
    lower_is_better: bool = False
    title: str = "Performance against flips"

    @classmethod
    def from_sweep(cls, sweep: Any, *, ax: Any = None) -> Self:
        """Draw the points of a sweep; the one chosen within its budget is marked, if there is."""
        summaries, metric, is_loss, chosen = _read_sweep(sweep)
        points = [
            FrontierPoint(
                s.name,
                s.mean("largest change"),
                s.mean(metric),
                "CAR alone" if s.invariance is None else "exact",
                s.spread(metric),
            )
            for s in summaries
            if not math.isnan(s.mean(metric))
        ]
        return cls(
            points,
            y_label=metric + " (lower is better)" * is_loss,
            chosen=chosen,
            lower_is_better=is_loss,
            title=f"{cls.title} ({_describe_rows(summaries[0])})",
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, or in a figure of its own."""
        kinds = list(dict.fromkeys(point.kind for point in self.points))
        check_count(len(kinds), len(SERIES), "kinds of models", "Choose the ones to show.")
        self._take_axes(ax, (8.2, 4.4))
        ax, places = self.ax_, _LogPlaces(point.x for point in self.points)
        places.label(ax, "x")
        for kind, style in zip(kinds, SERIES, strict=False):
            of_kind = [point for point in self.points if point.kind == kind]
            x, look = [places[point.x] for point in of_kind], style | {"linestyle": "none"}
            ax.plot(x, [point.y for point in of_kind], label=one_line(kind), zorder=3, **look)
            spreads = [point.spread or (point.y, point.y) for point in of_kind]
            ax.vlines(x, *zip(*spreads, strict=True), color=style["color"], linewidth=0.8)
        front = self._front()
        if len(front) > 1:
            x, y = [places[point.x] for point in front], [point.y for point in front]
            ax.plot(x, y, color=GREY, linewidth=1, label="no other model is better in both")
        for point in self.points:
            if point.name == self.chosen:
                look = {"marker": "o", "markersize": 12, "markerfacecolor": "none"}
                ax.plot(
                    places[point.x], point.y, linestyle="none", color=INK, label="chosen", **look
                )
        ax.margins(y=0.12)
        ax.ticklabel_format(axis="y", useOffset=False)
        ax.grid(color=LIGHT, linewidth=0.5)
        ax.set(xlabel=one_line(self.x_label, None), ylabel=one_line(self.y_label, None))
        ax.legend(**OUTSIDE, frameon=False, fontsize="small")
        self._finish(self.title)
        self._write_names(places)
        return self

    def _front(self) -> list[FrontierPoint]:
        """Find the points that no other beats in both, from the smallest x on."""
        sign = -1.0 if self.lower_is_better else 1.0
        best, front = -math.inf, []
        for point in sorted(self.points, key=lambda point: (point.x, -sign * point.y)):
            if sign * point.y > best:
                best = sign * point.y
                front.append(point)
        return front

    def _write_names(self, places: _LogPlaces) -> None:
        """Write names beside their marks where they cover no mark and no name; else leave out."""
        from matplotlib.transforms import Bbox

        self.figure_.draw_without_rendering()  # places the axes, so that texts can be measured
        half, frame = 5 * self.figure_.dpi / 72, self.ax_.bbox
        marks = self.ax_.transData.transform([(places[p.x], p.y) for p in self.points])
        taken = [Bbox.from_bounds(x - half, y - half, 2 * half, 2 * half) for x, y in marks]
        sides = [(x, y, a) for y in (0, 9, -9) for x, a in ((10, "left"), (-10, "right"))]
        for point in sorted(self.points, key=lambda point: point.name != self.chosen):
            text = self.ax_.annotate(
                one_line(point.name),
                (places[point.x], point.y),
                (0, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
                fontweight="bold" if point.name == self.chosen else "normal",
            )
            for x, y, align in sides:
                text.set(position=(x, y), ha=align)
                box = text.get_window_extent()
                is_inside = frame.x0 < box.x0 and box.x1 < frame.x1
                is_inside &= frame.y0 < box.y0 and box.y1 < frame.y1
                if is_inside and not box.count_overlaps(taken):
                    taken.append(box)
                    break
            else:
                text.remove()


class Line(NamedTuple):
    """One line: a value at each place of the horizontal axis, None where there is none.

    ``spread`` holds the lowest and the highest value behind each, drawn as a thin stroke.
    """

    name: str
    values: Sequence[float | None]
    spread: Sequence[tuple[float, float] | None] = ()


class LinePanel(NamedTuple):
    """One to four lines on one vertical axis; a logarithmic one has places for 0 and infinity."""

    label: str
    lines: Sequence[Line]
    log: bool = False


@dataclass(eq=False)
class ControllabilityDisplay(Display):
    """What the weight λ does: lines over a logarithmic axis with labelled ends, panel under panel.

    Parameters
    ----------
    weights : sequence of float or str
        Places on the horizontal axis, each once: numbers that are not negative, and names, which
        stand at its right end. 0 stands at its left end. Lines join positive numbers only: the
        ends are not on the scale, and have hollow marks.
    panels : sequence of LinePanel
        From top to bottom.
    chosen : float or str, optional
        One of the places, to be marked by a vertical line.
    title : str
        What is seen.
    x_label : str
        What the numbers on the horizontal axis are.

    Examples
    --------
    >>> panel = LinePanel("AUROC", [Line("AUROC", [0.75, 0.75, 0.74])])
    >>> display = ControllabilityDisplay([0.0, 1.0, "adapt"], [panel]).plot()
    >>> [label.get_text() for label in display.ax_.get_xticklabels()]
    ['0', '1', '10', 'adapt']
    """

    weights: Sequence[float | str]
    panels: Sequence[LinePanel]
    chosen: float | str | None = None
    title: str = "What λ does"
    x_label: str = "weight λ of CAR, acting alone; at the right end the exact forms"

    @classmethod
    def from_sweep(cls, sweep: Any, *, ax: Any = None) -> Self:
        """Draw performance, flips and groups of a sweep's points that differ in λ and form only.

        They are those around the chosen point or, if none is within the sweep's budget, around the
        most accurate one. Three axes are needed, if any are given.
        """
        from fcorr.audit.sweep import group_metrics

        summaries, metric, is_loss, chosen = _read_sweep(sweep)

        def preference(s: Any) -> tuple[bool, bool, float]:
            value = s.mean(metric)
            return s.name != chosen, math.isnan(value), value if is_loss else -value

        # An exact form may be there with several λ; its most accurate one stands for it.
        reference, *_ = ranked = sorted(summaries, key=preference)
        places: dict[float | str, Any] = {}
        for s in ranked:
            if _others(s) == _others(reference):
                places.setdefault(s.weight if s.invariance is None else s.invariance, s)
        weights: list[float | str] = sorted(w for w in places if not isinstance(w, str))
        weights += [name for name in ("paper", "adapt", "marginal") if name in places]
        points = [places[weight] for weight in weights]

        def means(name: str) -> Line:
            return Line(name, [s.mean(name) for s in points], [s.spread(name) for s in points])

        flips = [
            Line("mean on the rows (AvgIF)", [s.mean("AvgIF") for s in points]),
            Line("largest on the rows", [s.largest_change for s in points]),
            Line("largest found by a search", [s.search for s in points]),
            Line("bound for 99 % of people", [s.population for s in points]),
        ]
        known = [line for line in flips if any(value is not None for value in line.values)]
        groups = group_metrics(summaries, "DPD")
        if len(groups) > len(SERIES):  # the first ones, and that of all columns together
            groups = [*groups[: len(SERIES) - 1], groups[-1]]
        settings = "".join(f", {name} = {value}" for name, value in _others(reference).items())
        return cls(
            weights,
            [
                LinePanel(metric + " (lower is better)" * is_loss, [means(metric)]),
                LinePanel("change under a flip", known, log=True),
                LinePanel("difference of groups", [means(name) for name in groups]),
            ],
            chosen=next((w for w in weights if places[w].name == chosen), None),
            title=f"{cls.title} ({_describe_rows(reference)}{settings})",
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, one for each panel, or in a figure of its own."""
        n = len(self.panels)
        check_count(n, 9, "panels", "Choose the ones to show.")
        if len(set(self.weights)) < len(self.weights) or not self.weights:
            raise InvalidInputError(f"weights must be there and differ, got {self.weights!r}.")
        self._take_axes(ax, (8.6, 1.9 * n + 1.0), n, nrows=n, sharex=True)
        places = _LogPlaces(self.weights)
        for axes, panel in zip(self.axes_, self.panels, strict=True):
            way_out = f"Choose the ones to show in {panel.label!r}."
            check_count(len(panel.lines), len(SERIES), "lines in a panel", way_out)
            ends = [end for line in panel.lines for spread in line.spread for end in spread or ()]
            known = [value for line in panel.lines for value in line.values if value is not None]
            found = [value for value in (*known, *ends) if not math.isnan(value)]
            heights = _LogPlaces(found) if panel.log and found else None
            if heights is None:
                axes.ticklabel_format(axis="y", useOffset=False)
            else:
                heights.label(axes, "y")
            for line, style in zip(panel.lines, SERIES, strict=False):
                self._draw(axes, line, style, places, heights)
            places.label(axes, "x")
            axes.set_ylabel(one_line(panel.label, None))
            axes.grid(color=LIGHT, linewidth=0.5)
            if len(panel.lines) > 1 or panel.lines[0].name not in panel.label:
                axes.legend(**OUTSIDE, frameon=False, fontsize="small")
            if self.chosen is not None:
                axes.axvline(places[self.chosen], color=GREY, linestyle="--", lw=1, zorder=0)
        self.axes_[-1].set_xlabel(one_line(self.x_label, None))
        if self.chosen is not None:
            at, frame = (places[self.chosen], 1), self.ax_.get_xaxis_transform()
            self.ax_.annotate("chosen", at, (3, -3), frame, "offset points", va="top", fontsize=8)
        return self._finish(self.title)

    def _draw(
        self, ax: Any, line: Line, style: dict[str, Any], x: _LogPlaces, y: _LogPlaces | None
    ) -> None:
        if len(line.values) != len(self.weights):
            raise InvalidInputError(
                f"Line {line.name!r} must have a value or None for each of the "
                f"{len(self.weights)} weights, got {len(line.values)}."
            )

        def height(value: float | None) -> float:
            if value is None or math.isnan(value) or y is None:
                return math.nan if value is None else value
            return y[value]

        points = [(x[w], height(v)) for w, v in zip(self.weights, line.values, strict=True)]
        ends = [w == 0 or isinstance(w, str) for w in self.weights]
        on_scale = sorted(point for point, is_end in zip(points, ends, strict=True) if not is_end)
        at_ends = [point for point, is_end in zip(points, ends, strict=True) if is_end]
        ax.plot(*np.reshape(on_scale, (-1, 2)).T, label=one_line(line.name), markersize=5, **style)
        # Hollow at the ends, where marks of different lines often meet and all must be seen.
        hollow = {"linestyle": "none", "markerfacecolor": "none", "markersize": 7}
        ax.plot(*np.reshape(at_ends, (-1, 2)).T, **(style | hollow))
        for weight, spread in zip(self.weights, line.spread, strict=False):
            if spread is not None:
                ax.vlines(x[weight], *map(height, spread), color=style["color"], linewidth=0.8)


def _read_sweep(sweep: Any) -> tuple[list[Any], str, bool, str | None]:
    """Return summaries, the main metric, whether low is good, and the chosen point's name."""
    from fcorr.audit.measure import LOWER_IS_BETTER
    from fcorr.audit.sweep import main_metric

    try:
        chosen: str | None = sweep.choose().name
    except InvalidInputError:
        chosen = None  # no point is within the budget
    summaries = sweep.summaries()
    metric = main_metric(summaries)
    return summaries, metric, metric in LOWER_IS_BETTER, chosen


def _describe_rows(summary: Any) -> str:
    n_seeds = len(summary.runs)
    return f"validation rows, {n_seeds} seed{'s' * (n_seeds > 1)}"


def _others(summary: Any) -> dict[str, object]:
    return {n: v for n, v in summary.point.items() if n not in ("car", "invariance")}
