"""Line charts and frontiers: everything lies where its number is."""

import itertools
import math
import re
from xml.etree import ElementTree

import pytest

from fcorr._core import InvalidInputError
from fcorr.audit.figures import FrontierPoint, Line, LinePanel, frontier_svg, line_chart_svg

SVG = "{http://www.w3.org/2000/svg}"
X = [0.0, 1.0, 10.0, 100.0, "adapt"]


def chart(*lines, x=X, log=False, **options):
    panel = LinePanel("what is measured", lines, log=log)
    return line_chart_svg([panel], x=x, title="t", x_label="λ", **options)


def marks(svg):
    """Return the places of the marks by their tooltips."""
    found = {}
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        if title is None or title.text is None:
            continue
        shape = [child for child in group if child.tag != f"{SVG}title"][-1]
        if shape.tag == f"{SVG}circle":
            place = float(shape.get("cx")), float(shape.get("cy"))
        elif shape.tag == f"{SVG}rect":
            place = float(shape.get("x")) + 3.5, float(shape.get("y")) + 3.5
        else:
            x, y = re.match(r"M(\S+) (\S+)l", shape.get("d")).groups()
            place = float(x), float(y)
        found[title.text] = (place, shape)
    return found


def texts(svg):
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def paths(svg):
    drawn = ElementTree.fromstring(svg).iter(f"{SVG}path")
    return [p.get("d") for p in drawn if p.get("stroke-linejoin") and "h30" not in p.get("d")]


def test_powers_of_ten_are_equally_far_apart_and_ends_stand_apart():
    found = marks(chart(Line("a", [5.0, 4.0, 3.0, 2.0, 1.0])))
    xs = [
        found[f"a at {place}: {value}"][0][0]
        for place, value in zip(
            ("0", "1", "10", "100", "adapt"), ("5.0", "4.0", "3.0", "2.0", "1.0"), strict=True
        )
    ]
    assert xs == sorted(xs)
    assert xs[2] - xs[1] == pytest.approx(xs[3] - xs[2], abs=0.02)
    ys = [place[1] for place, _ in found.values()]
    assert ys == sorted(ys)  # downwards, as the values fall
    assert [b - a for a, b in itertools.pairwise(ys)] == pytest.approx(
        [ys[1] - ys[0]] * 4, abs=0.02
    )


def test_lines_join_only_what_is_on_the_scale():
    svg = chart(Line("a", [5.0, 4.0, 3.0, 2.0, 1.0]))
    (path,) = paths(svg)
    assert path.count("L") == 2  # 1, 10 and 100, neither 0 nor the exact form
    assert marks(svg)["a at 0: 5.0"][1].get("fill") == "none"
    assert marks(svg)["a at 1: 4.0"][1].get("fill") != "none"


def test_a_gap_where_there_is_no_value():
    svg = chart(Line("a", [5.0, 4.0, None, 2.0, math.nan]))
    assert paths(svg) == []
    assert set(marks(svg)) == {"a at 0: 5.0", "a at 1: 4.0", "a at 100: 2.0"}


def test_zero_and_infinity_have_places_of_their_own_on_a_logarithmic_axis():
    svg = chart(Line("a", [math.inf, 1.0, 0.01, 0.001, 0.0]), log=True)
    found = marks(svg)
    places = [
        found[f"a at {name}"][0][1]
        for name in ("0: ∞", "1: 1.0", "10: 0.010", "100: 0.0010", "adapt: 0")
    ]
    assert places == sorted(places)
    assert places[2] - places[1] == pytest.approx(2 * (places[3] - places[2]), abs=0.05)
    assert {"∞", "0"} <= set(texts(svg))


def test_values_that_say_nothing_are_crosses_and_explained():
    line = Line("bound", [1.0, 0.9, 0.1, 0.01, 0.0], void=[True, True, False, False, False])
    svg = chart(line, log=True)
    found = marks(svg)
    crosses = {hint for hint, (_, shape) in found.items() if "m0 -8l-8 8" in shape.get("d", "")}
    assert crosses == {"bound at 0: 1.0 (vacuous)", "bound at 1: 0.90 (vacuous)"}
    assert any("(vacuous)" in text for text in texts(svg))
    plain = chart(Line("bound", line.values), log=True)
    assert not any("vacuous" in text for text in texts(plain))


def test_the_marked_place_has_a_line_through_it():
    line = Line("a", [5.0, 4.0, 3.0, 2.0, 1.0])
    svg = chart(line, marked=10.0)
    x = marks(svg)["a at 10: 3.0"][0][0]
    dashed = [
        p.get("d")
        for p in ElementTree.fromstring(svg).iter(f"{SVG}path")
        if p.get("stroke-dasharray") == "3 3"
    ]
    assert [float(re.match(r"M(\S+)", d)[1]) for d in dashed] == [pytest.approx(x, abs=0.01)]
    assert "chosen" in texts(svg)
    assert "chosen" not in texts(chart(line))


def test_equal_values_still_have_an_axis():
    for values in ([0.0] * 5, [0.2] * 5):
        for log in (False, True):
            assert len(marks(chart(Line("a", values), log=log))) == 5


@pytest.mark.parametrize(
    ("lines", "x", "message"),
    [
        ([], X, "A panel shows one to 4 lines, 'what is measured' has 0."),
        ([Line("a", [1.0] * 5)] * 5, X, "A panel shows one to 4 lines"),
        ([Line("a", [1.0])], X, "Line 'a' must have a value or None for each of the 5 places"),
        ([Line("a", [])], [], "A line chart needs panels, and places on its axis that differ"),
        ([Line("a", [1.0, 1.0])], [1.0, 1.0], "places on its axis that differ"),
    ],
)
def test_bad_lines(lines, x, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        chart(*lines, x=x)


# ----------------------------------------------------------------------------------- frontiers

MODELS = [
    FrontierPoint("λ = 0", 0.3, 0.75, "CAR alone"),
    FrontierPoint("λ = 100", 0.01, 0.76, "CAR alone", (0.755, 0.765)),
    FrontierPoint("λ = 1e6", 1e-6, 0.74, "CAR alone"),
    FrontierPoint("adapt", 0.0, 0.73, "exact"),
]


def frontier(points=MODELS, **options):
    return frontier_svg(points, title="t", x_label="change", y_label="AUROC", **options)


def place_of(svg, name):
    (place,) = [place for hint, (place, _) in marks(svg).items() if hint.startswith(f"{name}:")]
    return place


def test_points_lie_where_their_numbers_are():
    svg = frontier()
    places = [place_of(svg, point.name) for point in MODELS]
    assert [x for x, _ in places] == sorted((x for x, _ in places), reverse=True)
    heights = [y for _, y in places]
    assert heights[1] < heights[0] < heights[2] < heights[3]
    assert marks(svg)["adapt: AUROC 0.73, change 0"]


@pytest.mark.parametrize(("lower_is_better", "on_the_front"), [(False, 3), (True, 1)])
def test_the_front_joins_what_no_other_beats(lower_is_better, on_the_front):
    drawn = paths(frontier(lower_is_better=lower_is_better))
    # adapt, 1e6 and 100 are each better than what costs less; if low is good, adapt beats all.
    assert [path.count("L") + 1 for path in drawn] == ([on_the_front] if on_the_front > 1 else [])


def test_the_chosen_point_has_a_ring_and_a_bold_name():
    svg = frontier(chosen="λ = 100")
    root = ElementTree.fromstring(svg)
    rings = [c for c in root.iter(f"{SVG}circle") if c.get("r") == "7.5"]
    assert len(rings) == 2  # the point's and the legend's
    x, y = place_of(svg, "λ = 100")
    assert (float(rings[0].get("cx")), float(rings[0].get("cy"))) == (x, y)
    bold = [t.text for t in root.iter(f"{SVG}text") if t.get("font-weight") == "bold"]
    assert bold == ["t", "λ = 100"]
    assert "Chosen: λ = 100." in root.findtext(f"{SVG}desc")
    assert "chosen" not in texts(frontier())


def test_names_do_not_cover_each_other():
    crowd = [FrontierPoint(f"model {i}", 0.1, 0.7, "k") for i in range(20)]
    shown = [text for text in texts(frontier(crowd)) if text.startswith("model")]
    assert 1 <= len(shown) < 6
    assert len(marks(frontier(crowd))) == 20  # all can be pointed at


def test_too_many_kinds():
    points = [FrontierPoint(str(i), 1.0, 1.0, str(i)) for i in range(5)]
    with pytest.raises(InvalidInputError, match="models of one to 4 kinds, got 5"):
        frontier(points)
    with pytest.raises(InvalidInputError, match="got 0"):
        frontier([])
