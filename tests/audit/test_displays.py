"""Displays: everything lies where its number is, is told apart without colour, and is text."""

import math
import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from fcorr._core import InvalidInputError
from fcorr.audit.displays import (
    SERIES,
    AttentionDisplay,
    FrontierDisplay,
    MainEffectDisplay,
    SignificanceDisplay,
    save_figure,
)
from fcorr.audit.insurance_displays import ActualExpectedDisplay, LiftDisplay, LorenzDisplay
from fcorr.estimators import FeatureMatrix, MainEffect, MainEffects
from fcorr.metrics import (
    ActualExpected,
    ActualExpectedTable,
    lift_table,
    lorenz_curve,
)
from tests.search.test_sweep_results import summaries

SVG = "{http://www.w3.org/2000/svg}"
PAPER_VALUES = np.array([[0.66, 0.37, -0.48], [0.37, 1.3, -0.21], [-0.48, -0.21, 2.5]])
Y, RATE, EXPOSURE = [0, 2, 1, 4, 0, 3], [0.5, 1.0, 0.9, 3.0, 0.4, 2.0], [1.0, 0.5, 1, 1, 0.7, 1]


def matrix(p, names=None, values=None):
    names = tuple(names or (f"X{i + 1}" for i in range(p)))
    values = np.random.default_rng(0).normal(size=(p, p)) if values is None else values
    return FeatureMatrix(names, np.asarray(values, dtype=float))


def attention(name="X1", title="Title"):
    one = matrix(3, [name, "X2", "X3"], PAPER_VALUES)
    return AttentionDisplay({"plain": one, name: one}, sensitive=["X1"], title=title)


def significance(name="X1", title="Title"):
    return SignificanceDisplay({name: 0.66, "X2": 1.3, "X3": 2.5}, ["X1"], title, x_label=name)


def main_effect(name, kind, values, effect, *, relativity=False):
    effect = np.asarray(effect, dtype=float)
    rows = np.arange(len(effect), 0, -1.0)
    factor = np.exp(effect) if relativity else None
    return MainEffect(name, kind, values, effect, effect - 0.1, effect + 0.1, rows, rows, factor)


def main_effects(name="X1", title="Title"):
    age = main_effect(name, "numeric", (18.0, 30.0, 80.0, None), [0.5, 0.0, -0.2, 0.1])
    job = main_effect("job", "categorical", (name, "cook"), [-0.3, 0.2])
    return MainEffectDisplay({name: age, "job": job}, name, [name], title)


SUMMARIES = summaries(  # whose largest change is a tenth of what a search found
    ({"car": 0.0, "invariance": None, "dropout": 0.1}, [(0.748, 3.0), (0.752, 3.0)]),
    ({"car": 100.0, "invariance": None, "dropout": 0.1}, [(0.758, 0.1), (0.762, 0.1)]),
    ({"car": "paper", "invariance": None, "dropout": 0.1}, [(0.738, 1e-5), (0.742, 1e-5)]),
    ({"car": 1.0, "invariance": "adapt", "dropout": 0.1}, [(0.718, 0.0), (0.722, 0.0)]),
    ({"car": 2.0, "invariance": "adapt", "dropout": 0.1}, [(0.728, 0.0), (0.732, 0.0)]),
    ({"car": 0.0, "invariance": None, "dropout": 0.3}, [(0.708, 2.0), (0.712, 2.0)]),
)
CHOSEN = SUMMARIES[1].name


def frontier(name="λ", title="Title"):
    return FrontierDisplay([replace(SUMMARIES[0], name=name)], name, title)


def lift(name="m", title="Title", n_bins=2):
    return LiftDisplay(lift_table(Y, RATE, n_bins=n_bins), name, y_label=name, title=title)


def double_lift(name="m", title="Title", n_bins=2):
    table = lift_table(Y, RATE, np.sqrt(RATE), n_bins=n_bins)
    return LiftDisplay(table, name, weight_label=name, title=title)


def lorenz(name="m", title="Title"):
    curve = lorenz_curve(Y, RATE, sample_weight=EXPOSURE)
    return LorenzDisplay(dict.fromkeys([name, "b", "c", "d"], curve), title=title)


def actual_expected(name="f", title="Title"):
    row = ActualExpected(name, 10, 5.0, 0.5, 1.0, 0.5, 0.4, 0.7)
    return ActualExpectedDisplay(ActualExpectedTable((row,), 0.95), name, title=title)


DISPLAYS = [
    *(attention, significance, main_effects, frontier, lift, double_lift, lorenz),
    actual_expected,
]


def texts(display):
    """List what is written in the figure."""
    root = ElementTree.fromstring(display.plot()._repr_svg_())
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def tick_texts(ax, axis):
    return [label.get_text() for label in getattr(ax, f"get_{axis}ticklabels")()]


def lines(ax):
    """Find the lines by their names in the legend."""
    return {line.get_label(): line for line in ax.get_lines() if line.get_label()[0] != "_"}


def luminance(colour):
    return np.asarray(to_rgb(colour)) ** 2.2 @ [0.2126, 0.7152, 0.0722]


# ------------------------------------------------------------------------------ all displays


@pytest.mark.parametrize("make", DISPLAYS)
def test_a_figure_of_its_own_stands_alone_and_says_what_it_shows(make):
    display = make()
    assert display.plot() is display
    assert display.ax_ is display.axes_[0]
    assert display.ax_.get_figure(root=True) is display.figure_
    root = ElementTree.fromstring(display._repr_svg_())
    assert root.findtext(f"{SVG}title").startswith("Title")
    assert len(root.findtext(f"{SVG}desc")) > 40
    assert not list(root.iter(f"{SVG}script"))
    assert "#ffffff" in ElementTree.tostring(root.find(f".//{SVG}path")).decode()  # the ground


@pytest.mark.parametrize("make", DISPLAYS)
def test_given_axes_are_drawn_on_and_shown_by_their_owner(make):
    display = make()
    figure = Figure()
    axes = figure.subplots(1, len(display.plot().axes_) + 1, squeeze=False)[0]
    display.plot(ax=axes[0] if len(axes) == 2 else axes[:-1])
    assert display.figure_ is figure
    assert display.ax_ is axes[0]
    assert axes[0].get_title() + axes[0].get_title(loc="left")
    assert not axes[-1].has_data()
    assert not figure.get_suptitle()
    assert display._repr_svg_() is None  # else a notebook would show it twice
    with pytest.raises(InvalidInputError, match=r"^ax must be as many axes as there are panels, "):
        display.plot(ax=axes)


NASTY = ['_<b title="&">$x$ $y$</b>', r"a\$b$ \frac{1} %s ^{"]


@pytest.mark.parametrize("make", DISPLAYS)
def test_names_and_titles_are_text(make):
    for name in NASTY:
        shown = " ".join(texts(make(name, title=name))).replace("\u2060", "")
        assert shown.count(name) >= 2
    shown = " ".join(texts(make("two\nlines\x00\ud800\u202e")))
    assert r"two lines\u0000\ud800\u202e" in shown
    long = "a_feature_with_a_name_that_goes_on_and_on_without_end"
    assert re.search(long[:26] + r"\w*…", " ".join(texts(make(long))))


def test_lines_differ_also_on_a_black_and_white_print():
    for key in ("linestyle", "marker", "color"):
        assert len({str(style[key]) for style in SERIES}) == len(SERIES) == 4
    assert all(luminance(style["color"]) < 0.2 for style in SERIES)  # dark enough on white


def test_matplotlib_is_imported_when_something_is_drawn_and_pyplot_never():
    code = (
        "import sys, fcorr, fcorr.audit.displays, fcorr.audit.insurance_displays as d\n"
        "assert 'matplotlib' not in sys.modules\n"
        "d.LorenzDisplay(fcorr.metrics.lorenz_curve([0, 1], [1, 2])).plot()._repr_svg_()\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_another_process_saves_the_same_bytes(tmp_path):
    files = [f"figure.{ending}" for ending in ("svg", "png", "pdf")]
    code = (
        "import sys; from fcorr.audit.displays import SignificanceDisplay, save_figure\n"
        "for file in sys.argv[1:]:\n"
        "    save_figure(SignificanceDisplay({'a': 1.0, 'b': 2.0}, ['a']).plot().figure_, file)"
    )
    subprocess.run([sys.executable, "-c", code, *files], cwd=tmp_path, check=True)
    for file in files:
        found = []
        for value in (2.0, 2.1):
            figure = SignificanceDisplay({"a": 1.0, "b": value}, ["a"]).plot().figure_
            save_figure(figure, tmp_path / f"here_{file}")
            found.append((tmp_path / f"here_{file}").read_bytes())
        assert (tmp_path / file).read_bytes() == found[0] != found[1]


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"path must end in \.svg, \.png or \.pdf, got "):
        save_figure(significance().plot().figure_, tmp_path / "figure.txt")
    assert not list(tmp_path.iterdir())


MANY = [str(i) for i in range(61)]
GROUP = ActualExpected("g", 10, 5.0, 1.0, 1.0, 1.0, 0.9, 1.1)


@pytest.mark.parametrize(
    ("display", "message"),
    [
        (
            SignificanceDisplay(dict.fromkeys(MANY, 1.0)),
            "one to 60 features, got 61. Choose the ones to show, such as by k=12.",
        ),
        (SignificanceDisplay({"a": 1, "b": -np.inf}), "finite numbers, got -inf for 'b'."),
        (AttentionDisplay(matrix(61)), "A display shows one to 60 features, got 61."),
        (AttentionDisplay({}), "one to 9 matrices, got 0."),
        (
            AttentionDisplay(matrix(2, values=np.zeros((2, 3)))),
            "A matrix of 2 features must have as many rows and columns, got shape (2, 3).",
        ),
        (
            AttentionDisplay(matrix(2, "ab", [[0, 1], [np.nan, 2]])),
            "A display needs finite numbers, got nan for 'b' × 'a'. Leave out the features that",
        ),
        (
            FrontierDisplay(summaries(({"car": 0.0, "invariance": None}, [(None, 0.3)]))),
            "one to 1000 points with a known performance, got 0. Use other rows.",
        ),
        (
            ActualExpectedDisplay(ActualExpectedTable((GROUP,) * 61, 0.95)),
            "one to 60 groups, got 61. Join small groups, or choose the ones to show.",
        ),
        (
            LorenzDisplay(dict.fromkeys("abcde", lorenz_curve(Y, RATE))),
            "one to 4 Lorenz curves, got 5. Choose the models to show.",
        ),
        (
            LiftDisplay(lift_table(range(31), range(1, 32), n_bins=31)),
            "one to 30 bins, got 31. Make the table with n_bins=30 or fewer.",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(display, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        display.plot()


# ------------------------------------------------------------------------------ features


@pytest.mark.parametrize("make", [attention, significance])
def test_sensitive_features_are_marked_by_weight_and_words(make):
    labels = {label.get_text(): label for label in make().plot().ax_.get_yticklabels()}
    assert labels["X1 (sensitive)"].get_fontweight() == "bold"
    assert labels["X2"].get_fontweight() == "normal"


def test_numbers_are_written_in_small_heat_maps_and_signs_marked_in_large_ones():
    small = texts(attention())
    assert {"0.66", "1.3", "2.5", "0.37", "−0.48", "−0.21"} <= set(small)
    twelve, thirteen = (AttentionDisplay(matrix(p)).plot() for p in (12, 13))
    assert len(twelve.ax_.texts) == 144
    assert not thirteen.ax_.texts
    (marks,) = thirteen.ax_.collections
    values = matrix(13).values
    rows, columns = np.nonzero(values < -0.05 * np.abs(values).max())
    assert marks.get_offsets().tolist() == np.column_stack([columns, rows]).tolist()
    assert thirteen.ax_.get_xlabel() == "– marks negative entries"


def test_one_colour_scale_for_all_panels_both_arms_dark_alike_and_text_stands_out():
    sizes = np.linspace(0.04, 1, 12)
    values = np.zeros((12, 12))
    values[0], values[1] = sizes, -sizes
    panels = {"a": matrix(12, values=values), "b": matrix(12, values=values / 2)}
    display = AttentionDisplay(panels).plot()
    first, second = (ax.images[0] for ax in display.axes_)
    assert first.get_clim() == second.get_clim() == (-1, 1)
    assert to_rgb(first.to_rgba(0.0)) == (1, 1, 1)
    above, below = ([luminance(first.to_rgba(s * size)) for size in sizes] for s in (1, -1))
    assert (np.diff(above) < 0).all()
    assert np.abs(np.subtract(above, below)).max() < 0.12
    for text, value in zip(display.ax_.texts, values.ravel(), strict=True):
        pair = sorted([luminance(text.get_color()), luminance(first.to_rgba(value))])
        assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4


def test_the_largest_bar_comes_first_and_ties_keep_their_order():
    given = {"X1": 0.001, "X2": 27_507.9, "X3": 412.0, "X4": 412.0, "X5": -8_000.0, "X6": 0.0}
    ax = SignificanceDisplay(given, sensitive="X3").plot().ax_  # one name needs no list
    assert tick_texts(ax, "y") == ["X2", "X3 (sensitive)", "X4", "X1", "X6", "X5"]
    assert [bar.get_width() for bar in ax.patches] == sorted(given.values(), reverse=True)
    assert [t.get_text() for t in ax.texts] == ["27,508", "412", "412", "≈0", "0", "−8,000"]
    colours = [(bar.get_facecolor()[:3], bar.get_hatch()) for bar in ax.patches]
    (light, hatched), (dark, plain) = colours.pop(1), colours.pop()
    assert (hatched, plain, set(colours)) == ("///", "", {(dark, plain)})
    assert luminance(light) > 2.5 * luminance(dark)  # also on a black-and-white print


def test_from_estimator_shows_the_most_significant_features():
    values = np.diag([1.0, 3.0, 2.0])
    model = SimpleNamespace(
        attention=lambda X, layer: matrix(3, "abc", values),
        schema_=SimpleNamespace(sensitive_features=("c",)),
    )
    display = AttentionDisplay.from_estimator(model, None, k=2)
    assert tick_texts(display.ax_, "y") == ["b", "c (sensitive)"]
    assert display.ax_.images[0].get_array().tolist() == [[3, 0], [0, 2]]
    assert len(AttentionDisplay.from_estimator(model, None).matrices.names) == 3


def test_main_effects_are_curves_and_points():
    numbers = [0.5, 0.0, -0.2, 0.1]
    age = main_effect("age", "numeric", (18.0, 30.0, 80.0, None), numbers)
    job = main_effect("job", "categorical", ("baker", "cook", "smith"), [-0.3, 0.2, 0.1])
    grade = main_effect("grade", "ordinal", ("low", "mid", "high"), [0.0, -0.2, 0.1])
    display = MainEffectDisplay({"age": age, "job": job, "grade": grade}, "log-odds", ["job"])
    shown = texts(display)
    assert {"age", "job (sensitive)", "grade", "missing", "log-odds"} < set(shown)
    first, second, third = display.axes_
    (curve,) = (line for line in first.get_lines() if len(line.get_xdata()) == 3)
    assert list(zip(*curve.get_data(), strict=True)) == [(18, 0.5), (30, 0), (80, -0.2)]
    band = first.collections[0].get_paths()[0].get_extents()
    assert (band.y0, band.y1) == pytest.approx((-0.3, 0.6))
    # The most rows are a sixth of the height, whatever the effects.
    assert max(bar.get_height() for bar in first.patches) == pytest.approx(1 / 6)
    # Categories without an order have the largest effect first.
    assert tick_texts(second, "x") == ["cook", "smith", "baker"]
    assert tick_texts(third, "x") == ["low", "mid", "high"]
    dots = next(line for line in second.get_lines() if line.get_marker() == "o")
    assert list(dots.get_ydata()) == [0.2, 0.1, -0.3]


def test_relativities_are_on_the_right_axis():
    job = main_effect("job", "categorical", ("a", "b"), [-0.3, 0.6], relativity=True)
    display = MainEffectDisplay({"job": job}, "logarithm of the relativity").plot()
    (right,) = display.ax_.child_axes
    display.figure_.draw_without_rendering()
    assert "1.5" in [label.get_text() for label in right.get_yticklabels()]
    assert right.get_ylim() == pytest.approx(np.exp(display.ax_.get_ylim()))
    assert right.get_ylabel() == "relativity"
    plain = MainEffectDisplay(
        {"job": main_effect("job", "categorical", ("a", "b"), [-0.3, 0.6])}, ""
    )
    assert not plain.plot().ax_.child_axes


def test_many_levels_show_the_most_frequent():
    effect = np.linspace(1, -1, 30)
    levels = main_effect("zip", "rated", tuple(f"z{i}" for i in range(30)), effect)
    ax = MainEffectDisplay({"zip": levels}, "y").plot().ax_
    assert tick_texts(ax, "x") == [f"z{i}" for i in range(12)]
    assert ax.get_xlabel() == "the 12 most frequent of 30"


def test_main_effects_of_an_estimator():
    names = tuple(f"x{i}" for i in range(11))
    two = {n: main_effect(n, "numeric", (0.0, 1.0), np.eye(2)) for n in names}
    model = SimpleNamespace(
        main_effects=lambda: MainEffects(two, "log-odds", ("a", "b")),
        importance_=np.arange(11.0),
        schema_=SimpleNamespace(sensitive_features=(), feature_names=names),
    )
    display = MainEffectDisplay.from_estimator(model, label="b")
    assert list(display.effects) == [f"x{i}" for i in range(10, 1, -1)]
    expected = "Main effects, the 9 most important of 11 features on class b"
    assert display.title == expected
    assert display.effects["x10"].effect.tolist() == [0, 1]
    display = MainEffectDisplay.from_estimator(model, features=["x3"], label="a")
    assert display.figure_.axes[0].get_title(loc="left") == "Main effects on class a: x3"
    with pytest.raises(InvalidInputError, match=r"one of the classes \('a', 'b'\), got None"):
        MainEffectDisplay.from_estimator(model)


# ------------------------------------------------------------------------------ sweeps


def nothing():
    raise InvalidInputError("budget must be at least 0.01")


@pytest.mark.parametrize("choose", [nothing, lambda: SimpleNamespace(name=CHOSEN)])
def test_the_chosen_point_of_a_sweep_is_marked(choose):
    sweep = SimpleNamespace(summaries=SUMMARIES, choose=choose)
    display = FrontierDisplay.from_sweep(sweep)
    assert ("chosen" in lines(display.ax_)) == (choose is not nothing)
    title = "Performance against flips (validation rows, 2 seeds)"
    assert display.ax_.get_title(loc="left") == title


def test_logarithmic_axes_go_on_to_zero():
    axis = FrontierDisplay(SUMMARIES).plot().ax_.xaxis
    powers = axis.get_transform().transform(1e-6 * np.array([1, 10, 100]))
    assert np.diff(powers) == pytest.approx(powers[1] - powers[0])
    view = axis.get_view_interval()
    assert view[0] < 0 < 1e-6 < view[1]
    assert {0.0, 0.1} <= set(axis.get_majorticklocs())


@pytest.mark.parametrize("lower_is_better", [False, True])
def test_the_front_joins_the_points_that_no_other_beats(monkeypatch, lower_is_better):
    if lower_is_better:
        monkeypatch.setattr("fcorr.audit.measure.LOWER_IS_BETTER", {"AUROC"})
    ax = FrontierDisplay(SUMMARIES, chosen=CHOSEN).plot().ax_
    drawn = lines(ax)
    alone = [[0.3, 0.75], [0.01, 0.76], [1e-6, 0.74], [0.2, 0.71]]
    assert drawn["CAR alone"].get_xydata() == pytest.approx(np.array(alone))
    assert drawn["exact"].get_xydata() == pytest.approx(np.array([[0, 0.72], [0, 0.73]]))
    assert drawn["chosen"].get_xydata() == pytest.approx(np.array([[0.01, 0.76]]))
    front = drawn["no other point is better in both"].get_ydata()
    assert front == pytest.approx([0.72, 0.71] if lower_is_better else [0.73, 0.74, 0.76])
    weights = {text.get_text(): text.get_fontweight() for text in ax.texts}
    assert weights.pop(CHOSEN) == "bold"
    assert set(weights.values()) == {"normal"}
    assert len(weights) == len(SUMMARIES) - 1


# ------------------------------------------------------------------------------ insurance


def test_lift_lines_follow_the_table():
    table = lift_table(Y, RATE, n_bins=3, sample_weight=EXPOSURE)
    display, rows = LiftDisplay(table, model="m").plot(), table.rows
    drawn = lines(display.ax_)
    assert drawn["actual"].get_ydata().tolist() == [row.actual for row in rows]
    assert drawn["m"].get_ydata().tolist() == [row.predicted for row in rows]
    assert [bar.get_height() for bar in display.weight_ax_.patches] == [row.weight for row in rows]
    assert tick_texts(display.weight_ax_, "x") == ["1", "2", "3"]


def test_double_lift_labels_the_edges_of_its_bins():
    table = lift_table([1, 1, 3, 3], [1, 1, 3, 3], [2] * 4, n_bins=2)
    display = LiftDisplay(table, "new", "old").plot()
    assert tick_texts(display.weight_ax_, "x") == ["0.50", "1.50", "1.50"]
    assert display.weight_ax_.get_xlabel() == "bins by new ÷ old, lowest first"
    assert lines(display.ax_)["old"].get_ydata().tolist() == [2, 2]


def test_lorenz_curves_lie_where_their_numbers_are_long_ones_thinned():
    rng = np.random.default_rng(0)
    short = lorenz_curve([0, 1, 1, 2], [1, 2, 2, 3])
    upside_down = lorenz_curve([0, 1], [2, 1])
    long = lorenz_curve(rng.poisson(1.0, 1_000), rng.normal(size=1_000))
    drawn = lines(LorenzDisplay({"m": short, "bonus-malus": upside_down, "long": long}).plot().ax_)
    shares = np.column_stack([short.exposure_share, short.claim_share])
    assert drawn["m, Gini 0.375"].get_xydata().tolist() == shares.tolist()
    assert "bonus-malus, Gini −0.500" in drawn
    x, y = drawn[f"long, Gini {long.gini:.3f}".replace("-", "−")].get_data()
    assert len(x) == 201
    assert y == pytest.approx(np.interp(x, long.exposure_share, long.claim_share))


def test_actual_over_expected_marks_intervals_without_one_and_cuts_wide_ones():
    def group(name, ratio, low, high):
        return ActualExpected(name, 10, 5.0, ratio, 1.0, ratio, low, high)

    nan = math.nan
    numbers = {"low": (0.5, 0.4, 0.7), "wide": (1.2, 0.1, 40.0), "none": (nan, nan, nan)}
    rows = tuple(group(name, *ends) for name, ends in numbers.items())
    ax = ActualExpectedDisplay(ActualExpectedTable(rows, 0.9)).plot().ax_
    shown = [ax.tables[0][i, 0].get_text().get_text() for i in range(4)]
    cells = ["ratio (90 % interval)", "0.50 (0.40 to 0.70)", "1.20 (0.10 to 40.00)"]
    assert shown == [*cells, "not estimable"]
    intervals, points, arrows, _ = ax.collections
    assert intervals.get_segments()[0].tolist() == [[0.4, 0], [0.7, 0]]
    assert points.get_offsets()[:2].tolist() == [[0.5, 0], [1.2, 1]]
    assert [to_hex(colour) for colour in points.get_facecolors()[:2]] == ["#1a1a1a", "#ffffff"]
    assert arrows.get_offsets().tolist() == [[2, 1]]
    assert ax.get_xlim()[1] < 3  # no room for what the numbers tell
