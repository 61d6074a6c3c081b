"""Figures as SVG text: from plain data to a picture that stands alone, on paper or in a page.

The functions here measure and place; the templates beside this folder draw. A figure needs no
script, no style sheet and no font of its own, carries its numbers as text, and comes out the same,
byte for byte, for the same data.
"""

from fcorr.audit.figures._panels import STAR
from fcorr.audit.figures.actual_expected import actual_expected_svg
from fcorr.audit.figures.bar_chart import BarPanel, bar_chart_svg
from fcorr.audit.figures.frontier import FrontierPoint, frontier_svg
from fcorr.audit.figures.heat_map import HeatMapPanel, heat_map_svg
from fcorr.audit.figures.lift import double_lift_svg, lift_svg
from fcorr.audit.figures.line_chart import Line, LinePanel, line_chart_svg
from fcorr.audit.figures.lorenz import lorenz_svg

__all__ = [
    "STAR",
    "BarPanel",
    "FrontierPoint",
    "HeatMapPanel",
    "Line",
    "LinePanel",
    "actual_expected_svg",
    "bar_chart_svg",
    "double_lift_svg",
    "frontier_svg",
    "heat_map_svg",
    "lift_svg",
    "line_chart_svg",
    "lorenz_svg",
]
