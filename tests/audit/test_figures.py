"""The SVG figures: well formed, readable by people and machines, and safe with any name."""

import re
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest

from fcorr._core import InvalidInputError
from fcorr.audit.figures import (
    BarPanel,
    FrontierPoint,
    HeatMapPanel,
    Line,
    LinePanel,
    actual_expected_svg,
    bar_chart_svg,
    double_lift_svg,
    frontier_svg,
    heat_map_svg,
    lift_svg,
    line_chart_svg,
    lorenz_svg,
)
from fcorr.metrics import (
    ActualExpected,
    ActualExpectedTable,
    actual_over_expected,
    double_lift_table,
    lift_table,
    lorenz_curve,
)

SVG = "{http://www.w3.org/2000/svg}"
NASTY = '<script>alert("&")</script>'

PAPER_VALUES = [[0.66, 0.37, -0.48], [0.37, 1.3, -0.21], [-0.48, -0.21, 2.5]]


def heat_map(p: int = 3, *, sensitive=("X1",), **options) -> str:
    names = [f"X{i}" for i in range(1, p + 1)]
    values = PAPER_VALUES if p == 3 else np.random.default_rng(0).normal(size=(p, p))
    panels = [HeatMapPanel("plain", names, values), HeatMapPanel("+ CAR", names, np.eye(p) / 3)]
    return heat_map_svg(panels, title="Attention", sensitive=sensitive, **options)


def bars(values=(0.66, 1.3, 2.5), *, sensitive=("X1",), **options) -> str:
    names = [f"X{i}" for i in range(1, len(values) + 1)]
    panels = [BarPanel("plain", names, values), BarPanel("+ CAR", ["X2", "X3"], [0.33, 0.61])]
    return bar_chart_svg(
        panels, title="Significance", x_label="diagonal", sensitive=sensitive, **options
    )


def portfolio() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw claims per year, predicted frequencies and exposures."""
    rng = np.random.default_rng(0)
    exposure, rate = rng.uniform(0.1, 1, 2_000), rng.gamma(2, 0.1, 2_000)
    return rng.poisson(exposure * rate) / exposure, rate, exposure


def lorenz(names=("FCorr", "GLM"), *, title="Attention") -> str:
    y, rate, exposure = portfolio()
    orders = [rate, np.round(rate, 1), -rate, exposure]
    curves = {
        name: lorenz_curve(y, order, sample_weight=exposure)
        for name, order in zip(names, orders, strict=False)
    }
    return lorenz_svg(curves, title=title)


def lift(n_bins=10, *, title="Attention", **options) -> str:
    y, rate, exposure = portfolio()
    return lift_svg(
        lift_table(y, rate, n_bins=n_bins, sample_weight=exposure), title=title, **options
    )


def double_lift(n_bins=10, *, title="Attention", **options) -> str:
    y, rate, exposure = portfolio()
    table = double_lift_table(y, rate, 0.1 + rate**0.5 / 5, n_bins=n_bins, sample_weight=exposure)
    return double_lift_svg(table, title=title, **options)


def actual_expected(groups=("female", "male"), *, title="Attention", **options) -> str:
    y, rate, exposure = portfolio()
    labels = np.array(groups)[np.arange(len(y)) % len(groups)]
    table = actual_over_expected(y, rate, sensitive_features=labels, sample_weight=exposure)
    return actual_expected_svg(table, title=title, **options)


WEIGHTS = (0.0, 1.0, 100.0, 1e4, "adapt", "marginal")


def line_chart(
    names=("AvgIF", "largest change"), *, title="Attention", x=WEIGHTS, **options
) -> str:
    falling = [0.3, 0.1, 1e-3, 1e-7, 0.0, 0.0]
    panels = [
        LinePanel("AUROC", [Line("AUROC", np.linspace(0.75, 0.74, 6), [(0.73, 0.76)] * 6)]),
        LinePanel(names[0], [Line(name, falling) for name in names], log=True),
    ]
    return line_chart_svg(panels, x=x, title=title, **{"x_label": "weight λ", **options})


def frontier(names=("λ = 1", "λ = 1e4", "adapt"), *, title="Attention", **options) -> str:
    kinds = ["CAR alone", "CAR alone", "exact"]
    points = [
        FrontierPoint(name, x, y, kind, (y - 0.01, y + 0.01))
        for name, x, y, kind in zip(names, (0.1, 1e-5, 0.0), (0.75, 0.74, 0.73), kinds, strict=True)
    ]
    labels = {"x_label": "largest change", "y_label": "AUROC"}
    return frontier_svg(points, title=title, **{**labels, **options})


FIGURES = [heat_map, bars]
PLOTS = [lorenz, lift, double_lift, actual_expected, line_chart, frontier]
DRAWINGS = [
    heat_map,
    partial(heat_map, 13),
    partial(heat_map, 60),
    bars,
    partial(bars, (-1 / 3, 2 / 3, 1e-7)),
    *PLOTS,
    partial(lorenz, ["a name that goes on and on and on", "b", "c", "d"]),
    partial(lift, 1),
    partial(lift, 30),
    partial(double_lift, 30, model="a model with a long name", incumbent="another one"),
    partial(actual_expected, [f"group {i}" for i in range(60)]),
    partial(line_chart, [f"a line with a name that goes on and on {i}" for i in range(4)]),
    partial(line_chart, marked=0.0),
    partial(line_chart, marked="marginal", x_label="a long label " * 8),
    partial(line_chart, x=(0.0, 1e-9, 3.0, 1e12, "paper", "an exact form")),
    partial(frontier, chosen="adapt"),
    partial(frontier, [f"a model with a name that goes on and on {i}" for i in range(3)]),
]


def shown_texts(svg: str) -> list[str]:
    """List what is written in the figure, without the tooltips."""
    return [shown(element) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def shown(text: ElementTree.Element) -> str:
    return (text.text or "") + "".join(child.tail or "" for child in text)


def tooltips(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [t.text or "" for parent in root for t in parent.iter(f"{SVG}title")]


def luminance(colour: str) -> float:
    channels = np.array(list(bytes.fromhex(colour[1:]))) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


# --------------------------------------------------------------------------------- all figures


@pytest.mark.parametrize("figure", FIGURES + PLOTS)
def test_stands_alone_and_is_accessible(figure):
    svg = figure()
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    title, description = root[0], root[1]
    assert (title.tag, description.tag) == (f"{SVG}title", f"{SVG}desc")
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert title.text in ("Attention", "Significance")
    assert ("Sensitive: X1." in (description.text or "")) == (figure in FIGURES)
    assert len(description.text or "") > 40
    # A white ground of its own, the size of the figure, behind all else.
    ground = root[2]
    assert (ground.tag, ground.get("fill")) == (f"{SVG}rect", "#ffffff")
    assert ground.get("width") == root.get("width")
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    # Nothing is fetched, run, or styled from outside; nothing leaks into the page.
    assert re.findall(r"https?://[^\"']*", svg) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<script|<style|<image|@import|\son\w+=", svg)


def test_a_sensitive_feature_is_named_once_with_a_star_or_without():
    def described(*names, sensitive):
        panels = [BarPanel(f"panel {i}", [name], [1.0]) for i, name in enumerate(names)]
        svg = bar_chart_svg(panels, title="Title", x_label="diagonal", sensitive=sensitive)
        return ElementTree.fromstring(svg)[1].text or ""

    both = ("age", "age *")
    assert described("age", "age *", sensitive=both).endswith("Sensitive: age.")
    assert described("age *", "zip", sensitive=both).endswith("Sensitive: age.")
    assert described("age *", sensitive=["age *"]).endswith("Sensitive: age *.")  # its own name


@pytest.mark.parametrize("figure", FIGURES)
def test_same_data_same_bytes_and_ids_of_its_own(figure):
    assert figure() == figure()
    ids = re.compile(r'id="([^"]+)"')
    one, other = ids.findall(figure()), ids.findall(figure(sensitive=()))
    assert len(one) == len(set(one))
    assert not set(one) & set(other)


@pytest.mark.parametrize("figure", PLOTS)
def test_plots_have_ids_of_their_own_too(figure):
    assert figure() == figure()
    one, other = (set(re.findall(r'id="([^"]+)"', figure(title=t))) for t in ("one", "other"))
    assert len(one) == 2
    assert not one & other


@pytest.mark.parametrize("draw", DRAWINGS)
def test_coordinates_are_short_and_finite(draw):
    svg = draw()
    geometry = re.findall(r'\b(?:x|y|cx|cy|r|width|height|d|transform|viewBox)="([^"]*)"', svg)
    assert len(geometry) > 20
    for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", " ".join(geometry)):
        assert re.fullmatch(r"-?\d+(\.\d{1,2})?", number), number
    assert not re.search(r"\b(nan|inf|None|Undefined)\b", svg)


def boxes(element: ElementTree.Element, x: float = 0.0, y: float = 0.0, anchor: str = "start"):
    """Walk through the figure; yield each element with left, top, right and bottom of its box."""
    anchor = element.get("text-anchor", anchor)
    shift = re.match(r"translate\((\S+) (\S+)\)", element.get("transform", ""))
    if shift:
        x, y = x + float(shift[1]), y + float(shift[2])
    left, top = x + float(element.get("x", 0)), y + float(element.get("y", 0))
    right = left + float(element.get("width", 0))
    bottom = top + float(element.get("height", 0))
    if element.tag == f"{SVG}text":
        length = 5.5 * len(shown(element))  # half the font size per letter: a common font's mean
        if "rotate(-90)" in element.get("transform", ""):
            bottom += length
        else:
            before = {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
            left, right = left - before * length, right + (1 - before) * length
    yield element, (left, top, right, bottom)
    for child in element:
        yield from boxes(child, x, y, anchor)


@pytest.mark.parametrize("draw", DRAWINGS)
def test_nothing_is_outside_the_figure(draw):
    root = ElementTree.fromstring(draw())
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for element, (left, top, right, bottom) in boxes(root):
        is_inside = 0 <= left <= right <= width and 0 <= top <= bottom <= height
        assert is_inside, ElementTree.tostring(element)


def test_names_and_titles_are_escaped():
    names, values = [NASTY, "a&b"], np.eye(2)
    heat = heat_map_svg([HeatMapPanel(NASTY, names, values)], title=NASTY, sensitive=[NASTY])
    bar = bar_chart_svg(
        [BarPanel(NASTY, names, [1, 2])], title=NASTY, x_label=NASTY, sensitive=[NASTY]
    )
    plots = [
        lorenz([NASTY], title=NASTY),
        lift(title=NASTY, y_label=NASTY, weight_label=NASTY),
        double_lift(title=NASTY, model=NASTY, incumbent="a&b"),
        actual_expected([NASTY, "a&b"], title=NASTY, x_label=NASTY),
        line_chart([NASTY, "a&b"], title=NASTY, x_label=NASTY, x=(0.0, 1.0, 2.0, 3.0, NASTY, "b")),
        frontier([NASTY, "a&b", "c"], title=NASTY, x_label=NASTY, y_label=NASTY, chosen=NASTY),
    ]
    for svg in plots:
        ElementTree.fromstring(svg)
        assert "<script" not in svg
        assert NASTY in shown_texts(svg)
    for svg in (heat, bar):
        assert "<script" not in svg
        assert shown_texts(svg).count(NASTY) >= 3
        assert "a&b" in shown_texts(svg)


@pytest.mark.parametrize("name", ["a\x00b", "a\ud800b", "a\uffffb", "a\x1bb"])
def test_characters_that_xml_forbids_are_replaced(name):
    for svg in (
        heat_map_svg([HeatMapPanel(name, [name], [[1.0]])], title=name),
        bar_chart_svg([BarPanel(name, [name], [1.0])], title=name, x_label=name),
    ):
        assert shown_texts(svg).count("a\ufffdb") >= 3
        svg.encode()


def test_line_breaks_become_spaces():
    svg = bar_chart_svg([BarPanel("t", ["two\nlines"], [1.0])], title="t", x_label="x")
    assert "two lines" in shown_texts(svg)


def test_long_names_are_cut_and_told_in_full():
    name = "a_feature_with_a_name_that_goes_on_and_on_without_end"
    for svg in (
        heat_map_svg([HeatMapPanel("t", [name], [[1.0]])], title="t"),
        bar_chart_svg([BarPanel("t", [name], [1.0])], title="t", x_label="x"),
    ):
        assert name not in shown_texts(svg)
        assert name[:31] + "…" in shown_texts(svg)
        assert name in tooltips(svg)


@pytest.mark.parametrize("figure", FIGURES)
def test_sensitive_features_are_marked_by_shape_weight_and_legend(figure):
    svg = figure(sensitive="X1")  # one name need not be wrapped in a list
    root = ElementTree.fromstring(svg)
    bold = [t for t in root.iter(f"{SVG}text") if t.get("font-weight") == "bold"]
    assert any("X1" in shown(t) for t in bold)
    assert not any("X2" in shown(t) for t in bold)
    assert "X1 (sensitive)" in tooltips(svg)
    assert "sensitive" in shown_texts(svg)
    assert root.find(f".//{SVG}circle") is not None

    for unmarked in (figure(sensitive=()), figure(sensitive=["not shown"])):
        assert "sensitive" not in shown_texts(unmarked)
        assert "<circle" not in unmarked


@pytest.mark.parametrize(
    ("draw", "figure"),
    [
        (lambda panels: heat_map_svg(panels, title="t"), "heat map"),
        (lambda panels: bar_chart_svg(panels, title="t", x_label="x"), "bar chart"),
    ],
)
def test_too_many_features_or_no_panel(draw, figure):
    panel_type = HeatMapPanel if figure == "heat map" else BarPanel
    shape = (61, 61) if figure == "heat map" else (61,)
    with pytest.raises(InvalidInputError) as caught:
        draw([panel_type("big", [f"x{i}" for i in range(61)], np.zeros(shape))])
    assert str(caught.value) == (
        f"A {figure} shows at most 60 features, panel 'big' has 61. Choose the ones to show."
    )
    with pytest.raises(InvalidInputError) as caught:
        draw([])
    assert str(caught.value) == f"A {figure} needs at least one panel, got none."


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: HeatMapPanel("m", ["a", "b"], np.zeros((2, 3))),
            "Panel 'm' has 2 names, so values must have shape (2, 2), got (2, 3).",
        ),
        (
            lambda: BarPanel("m", ["a"], [1.0, 2.0]),
            "Panel 'm' has 1 names, so values must have shape (1,), got (2,).",
        ),
        (
            lambda: HeatMapPanel("m", ["a", "b"], [[0, 1], [np.nan, 2]]),
            "Panel 'm' must hold finite numbers, got nan for 'b' × 'a'. "
            "Leave out the features that have none.",
        ),
        (
            lambda: BarPanel("m", ["a", "b"], [1, -np.inf]),
            "Panel 'm' must hold finite numbers, got -inf for 'b'. "
            "Leave out the features that have none.",
        ),
        (lambda: BarPanel("m", [], []), "Panel 'm' has no features. Pass at least one name."),
    ],
)
def test_bad_panels(make, message):
    with pytest.raises(InvalidInputError) as caught:
        make()
    assert str(caught.value) == message


def test_a_panel_keeps_its_own_copy():
    values = np.zeros(2)
    panel = BarPanel("t", ["a", "b"], values)
    values[0] = np.nan
    assert np.isfinite(panel.values).all()


# ----------------------------------------------------------------------------------- heat maps


def cell_colours(svg: str) -> list[str]:
    rects = ElementTree.fromstring(svg).iter(f"{SVG}rect")
    return [rect.get("fill", "") for rect in rects if rect.find(f"{SVG}title") is not None]


def test_numbers_are_written_in_small_heat_maps():
    texts = shown_texts(heat_map(3))
    for number in ("0.66", "1.3", "2.5", "0.37", "−0.48", "−0.21", "0.33"):
        assert number in texts
    assert "X1 × X3: −0.48" in tooltips(heat_map(3))


def test_large_heat_maps_keep_their_numbers_in_tooltips_and_mark_the_sign():
    svg = heat_map(13)
    assert len(tooltips(svg)) >= 2 * 13**2
    assert not any(re.fullmatch(r"−?\d+\.\d\d+", text) for text in shown_texts(svg))
    assert "negative" in shown_texts(svg)
    assert "negative" not in shown_texts(heat_map(3))
    assert len(shown_texts(heat_map(12))) > 2 * 12**2


def test_one_colour_scale_for_all_panels_centred_at_zero():
    panels = [
        HeatMapPanel("a", ["x", "y"], [[2.0, -2.0], [0.0, 1.0]]),
        HeatMapPanel("b", ["x", "y"], [[1.0, -1.0], [0.5, 0.0]]),
    ]
    first, second = np.split(np.array(cell_colours(heat_map_svg(panels, title="t"))), 2)
    assert first[2] == second[3] == "#ffffff"
    assert first[3] == second[0]

    def is_blue(colour: str) -> bool:
        red, _, blue = bytes.fromhex(colour[1:])
        return blue > red

    assert [is_blue(colour) for colour in first[[0, 1, 3]]] == [False, True, False]
    assert luminance(first[0]) < luminance(first[3]) < luminance(second[2]) < 1


def test_both_arms_of_the_scale_darken_alike_and_text_stands_out():
    sizes = np.linspace(0.04, 1, 12)
    values = np.zeros((12, 12))
    values[0], values[1] = sizes, -sizes
    svg = heat_map_svg([HeatMapPanel("t", [f"x{i}" for i in range(12)], values)], title="t")
    colours = cell_colours(svg)
    positive = np.array([luminance(colour) for colour in colours[:12]])
    negative = np.array([luminance(colour) for colour in colours[12:24]])
    assert (np.diff(positive) < 0).all()
    assert (np.diff(negative) < 0).all()
    assert np.abs(positive - negative).max() < 0.12

    texts = [t for t in ElementTree.fromstring(svg).iter(f"{SVG}text") if t.get("fill")]
    assert len(texts) == 144
    for colour, text in zip(colours, texts, strict=True):
        pair = sorted([luminance(colour), luminance(text.get("fill", ""))])
        assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.2


def test_equal_features_share_their_row_labels():
    names = ["first", "second"]
    same = [HeatMapPanel(t, names, np.eye(2)) for t in "ab"]
    assert shown_texts(heat_map_svg(same, title="t")).count("first") == 3
    different = [same[0], HeatMapPanel("b", names[::-1], np.eye(2))]
    assert shown_texts(heat_map_svg(different, title="t")).count("first") == 4


def test_long_column_names_are_turned():
    long = heat_map_svg([HeatMapPanel("t", ["a_rather_long_name", "b"], np.eye(2))], title="t")
    assert "rotate(-90)" in long
    assert "rotate" not in heat_map(3)


def test_all_zero_heat_map():
    svg = heat_map_svg([HeatMapPanel("t", ["a", "b"], np.zeros((2, 2)))], title="t")
    assert shown_texts(svg).count("0") == 4
    assert set(cell_colours(svg)) == {"#ffffff"}


# ---------------------------------------------------------------------------------- bar charts


def bar_widths(svg: str) -> dict[str, float]:
    rects = ElementTree.fromstring(svg).iter(f"{SVG}rect")
    return {
        rect.findtext(f"{SVG}title", ""): float(rect.get("width", 0))
        for rect in rects
        if rect.find(f"{SVG}title") is not None
    }


def test_largest_bar_comes_first_and_ties_keep_their_order():
    svg = bars((0.66, 2.5, 1.3, 1.3))
    widths = bar_widths(svg)
    assert list(widths)[:4] == ["X2: 2.5", "X3: 1.3", "X4: 1.3", "X1: 0.66"]
    assert {"2.5", "1.3", "0.66"} <= set(shown_texts(svg))
    assert widths["X2: 2.5"] / widths["X3: 1.3"] == pytest.approx(2.5 / 1.3, rel=1e-3)


def test_scale_is_shared_unless_told_otherwise():
    shared, own = bar_widths(bars()), bar_widths(bars(shared_scale=False))
    assert shared["X3: 0.61"] / shared["X3: 2.5"] == pytest.approx(0.61 / 2.5, rel=1e-2)
    assert own["X3: 0.61"] == own["X3: 2.5"]


def test_sensitive_bars_differ_in_colour_also_on_a_black_and_white_print():
    rects = ElementTree.fromstring(bars()).iter(f"{SVG}rect")
    fills = {rect.findtext(f"{SVG}title"): rect.get("fill", "") for rect in rects}
    assert fills["X2: 1.3"] == fills["X3: 2.5"]
    dark, light = luminance(fills["X2: 1.3"]), luminance(fills["X1: 0.66"])
    assert (light + 0.05) / (dark + 0.05) > 2.5


def test_negative_and_zero_bars():
    svg = bars((-1.5, 0.0, 3.0))
    assert list(bar_widths(svg))[:3] == ["X3: 3.0", "X2: 0", "X1: −1.5"]
    assert bar_widths(svg)["X2: 0"] == 0
    flat = bar_chart_svg([BarPanel("t", ["a"], [0.0])], title="t", x_label="x")
    assert list(bar_widths(flat).values()) == [0.0]


def test_values_of_any_size_have_short_numbers():
    svg = bar_chart_svg(
        [BarPanel("t", ["a", "b", "c"], [27_507.9, 412.0, 0.001])], title="t", x_label="x"
    )
    assert {"27,508", "412", "≈0"} <= set(shown_texts(svg))
    tiny = bar_chart_svg([BarPanel("t", ["a"], [3.2e-9])], title="t", x_label="x")
    assert "3.2e−9" in shown_texts(tiny)


# --------------------------------------------------------------------------------------- plots


def drawn_lines(svg: str) -> list[ElementTree.Element]:
    """List the lines of the plot and, after them, those of the legend."""
    paths = ElementTree.fromstring(svg).iter(f"{SVG}path")
    return [path for path in paths if path.get("stroke-linejoin") == "round"]


def points(path: ElementTree.Element) -> np.ndarray:
    pairs = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path.get("d", ""))
    return np.array(pairs, dtype=float)


@pytest.mark.parametrize("figure", [lift, double_lift, partial(lorenz, list("abcd"))])
def test_lines_differ_also_on_a_black_and_white_print(figure):
    svg = figure()
    lines = [line for line in drawn_lines(svg) if float(line.get("stroke-width", 0)) == 2]
    of_plot = lines[: len(lines) // 2]
    dashes = [line.get("stroke-dasharray") for line in of_plot]
    assert len(set(dashes)) == len(of_plot) >= 2
    assert dashes == [line.get("stroke-dasharray") for line in lines[len(lines) // 2 :]]
    for line in of_plot:
        assert luminance(line.get("stroke", "")) < 0.2  # dark enough to be read on white


def test_lorenz_curves_lie_where_their_numbers_are():
    curve = lorenz_curve([0, 1, 1, 2], [1, 2, 2, 3])
    svg = lorenz_svg({"m": curve}, title="t")
    diagonal, drawn, *_ = (points(line) for line in drawn_lines(svg))
    (left, bottom), (right, top) = diagonal
    side = right - left
    x, y = (drawn[:, 0] - left) / side, (bottom - drawn[:, 1]) / side
    assert (top, side) == (0, bottom)
    assert np.column_stack([x, y]) == pytest.approx(
        np.column_stack([curve.exposure_share, curve.claim_share]), abs=1e-4
    )
    assert "m, Gini 0.375" in shown_texts(svg)
    assert "the half of lowest predicted risk has 25 % of the total" in svg


def test_a_long_lorenz_curve_is_thinned_but_not_moved():
    y, rate, _ = portfolio()
    curve = lorenz_curve(y, rate)
    diagonal, drawn, *_ = (points(p) for p in drawn_lines(lorenz_svg({"m": curve}, title="t")))
    side = diagonal[1, 0]
    assert len(drawn) == 201 < len(curve.exposure_share)
    expected = np.interp(drawn[:, 0] / side, curve.exposure_share, curve.claim_share)
    assert (side - drawn[:, 1]) / side == pytest.approx(expected, abs=1e-3)


def test_hyphens_in_names_stay_and_negative_gini_has_a_minus():
    svg = lorenz_svg({"bonus-malus": lorenz_curve([0, 1], [2, 1])}, title="t")
    assert "bonus-malus, Gini −0.500" in shown_texts(svg)


@pytest.mark.parametrize("n", [0, 5])
def test_one_to_four_lorenz_curves(n):
    curve = lorenz_curve([0, 1], [1, 2])
    with pytest.raises(InvalidInputError) as caught:
        lorenz_svg({str(i): curve for i in range(n)}, title="t")
    assert str(caught.value) == (
        f"A Lorenz figure shows one to 4 curves, got {n}. Choose the models to show."
    )


def test_lift_lines_follow_the_table():
    y, rate, exposure = portfolio()
    table = lift_table(y, rate, n_bins=5, sample_weight=exposure)
    svg = lift_svg(table, title="t", y_label="claims per year", weight_label="years")
    actual, predicted, *_ = (points(line) for line in drawn_lines(svg))
    for drawn, name in ((actual, "actual"), (predicted, "predicted")):
        values = np.array([getattr(row, name) for row in table.rows])
        slope, _ = np.polyfit(values, drawn[:, 1], 1)
        assert slope < 0  # up is more
        assert np.corrcoef(values, drawn[:, 1])[0, 1] == pytest.approx(-1, abs=1e-5)
    assert (actual[:, 0] == predicted[:, 0]).all()
    (hint,) = [text for text in tooltips(svg) if text.startswith("Bin 5: actual")]
    assert hint.endswith(f"{table.rows[-1].n} rows")
    assert "years" in hint
    assert {"1", "2", "3", "4", "5", "claims per year", "years"} <= set(shown_texts(svg))


def test_zero_is_shown_where_it_costs_little():
    wide = lift_svg(lift_table([1, 4], [1, 4], n_bins=2), title="t")
    narrow = lift_svg(lift_table([101, 102], [101, 102], n_bins=2), title="t")
    flat = lift_svg(lift_table([0, 0], [0, 0], n_bins=2), title="t")
    assert shown_texts(wide).count("0") + shown_texts(wide).count("0.0") == 2  # both axes
    assert shown_texts(narrow).count("0") + shown_texts(narrow).count("0.0") == 1
    assert "0.0" in shown_texts(flat)


def test_double_lift_labels_the_edges_of_its_bins_and_leaves_out_what_would_touch():
    table = double_lift_table([1, 1, 3, 3], [1, 1, 3, 3], [2, 2, 2, 2], n_bins=2)
    texts = shown_texts(double_lift_svg(table, title="t", model="new", incumbent="old"))
    assert {"0.50", "1.50", "bins by new ÷ old", "actual", "new", "old"} <= set(texts)
    many = [t for t in shown_texts(double_lift(30)) if re.fullmatch(r"\d\.\d\d", t)]
    assert 10 < len(many) < 31


@pytest.mark.parametrize(("draw", "kind"), [(lift, "lift chart"), (double_lift, "double lift")])
def test_too_many_bins(draw, kind):
    with pytest.raises(InvalidInputError) as caught:
        draw(31)
    assert str(caught.value).startswith(f"A {kind}")
    assert str(caught.value).endswith(
        "shows one to 30 bins, the table has 31. Make it with n_bins=30 or fewer."
    )


def group(name, ratio, low, high):
    return ActualExpected(name, 10, 5.0, ratio, 1.0, ratio, low, high)


def test_actual_over_expected_marks_intervals_without_one():
    rows = (group("low", 0.5, 0.4, 0.7), group("even", 1.0, 0.9, 1.1))
    svg = actual_expected_svg(ActualExpectedTable(rows, 0.9), title="t")
    fills = [c.get("fill") for c in ElementTree.fromstring(svg).iter(f"{SVG}circle")]
    assert fills == ["#1a1a1a", "#ffffff"] * 2  # the rows, then the legend
    texts = shown_texts(svg)
    assert {"low", "even", "0.50 (0.40 to 0.70)", "ratio (90 % interval)"} <= set(texts)
    assert {"the interval holds 1", "the interval does not hold 1"} <= set(texts)
    only_even = actual_expected_svg(ActualExpectedTable(rows[1:], 0.9), title="t")
    assert "the interval does not hold 1" not in shown_texts(only_even)


def test_a_wide_interval_is_cut_and_told_in_numbers():
    rows = (group("tiny", 1.2, 0.1, 40.0), group("even", 1.0, 0.9, 1.1))
    svg = actual_expected_svg(ActualExpectedTable(rows, 0.95), title="t")
    assert svg.count("l5 4l-5 4") == 1  # one arrow head
    assert "1.20 (0.10 to 40.00)" in shown_texts(svg)
    assert "40" not in shown_texts(svg)  # no tick that far


def test_groups_that_are_not_estimable_say_so():
    nan = float("nan")
    rows = (group("none", nan, nan, nan), group("even", 1.0, 0.9, 1.1))
    svg = actual_expected_svg(ActualExpectedTable(rows, 0.95), title="t")
    assert shown_texts(svg).count("not estimable") == 1
    assert svg.count("<circle") == 2
    alone = actual_expected_svg(ActualExpectedTable(rows[:1], 0.95), title="t")
    assert "<circle" not in alone


@pytest.mark.parametrize("n", [0, 61])
def test_groups_that_fit(n):
    table = ActualExpectedTable(tuple(group(str(i), 1.0, 0.9, 1.1) for i in range(n)), 0.95)
    with pytest.raises(InvalidInputError) as caught:
        actual_expected_svg(table, title="t")
    assert str(caught.value) == (
        f"A figure of actual over expected shows one to 60 groups, got {n}. "
        "Join small groups, or choose the ones to show."
    )
