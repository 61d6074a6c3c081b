"""The three figures of a sweep."""

import math
from collections.abc import Sequence

from fcorr.audit.figures import (
    FrontierPoint,
    Line,
    LinePanel,
    frontier_svg,
    line_chart_svg,
)
from fcorr.audit.measuring import LOWER_IS_BETTER
from fcorr.audit.sweep.choosing import choose_summary
from fcorr.audit.sweep.summaries import Summary, group_metrics, main_metric, show_value

_MOST_GROUPINGS = 4
_X_LABEL = "weight λ of CAR, acting alone; at the right end the exact forms"


def draw_figures(summaries: Sequence[Summary], chosen: str | None) -> dict[str, str]:
    """Draw what λ does, the frontier and the certificates.

    Parameters
    ----------
    summaries : sequence of Summary
        The points.
    chosen : str, optional
        The name of the point to mark.

    Returns
    -------
    dict of str to str
        File names and SVG texts.
    """
    metric = main_metric(summaries)
    reference = next(
        (s for s in summaries if s.name == chosen), choose_summary(summaries, None, metric)
    )
    line = _line_of(reference, summaries, metric)
    marked = next((_place(s) for s in line if s.name == chosen), None)
    others = _describe_others(reference)
    n_seeds = len(reference.runs)
    rows = f"validation rows, {n_seeds} seed{'s' if n_seeds > 1 else ''}"
    return {
        "controllability.svg": line_chart_svg(
            [
                LinePanel(_performance_label(metric), [_mean_line(metric, line)]),
                LinePanel(
                    "change of predictions under a flip",
                    [
                        Line("AvgIF", [s.mean("AvgIF") for s in line]),
                        Line("largest change", [s.largest_change for s in line]),
                    ],
                    log=True,
                ),
                LinePanel(
                    "difference of groups",
                    [_mean_line(name, line) for name in _groupings(summaries)],
                ),
            ],
            x=[_place(s) for s in line],
            title=f"What λ does ({rows}{others})",
            x_label=_X_LABEL,
            marked=marked,
        ),
        "frontier.svg": frontier_svg(
            [
                FrontierPoint(
                    s.name,
                    s.mean("largest change"),
                    s.mean(metric),
                    "CAR alone" if s.invariance is None else "exact",
                    s.spread(metric),
                )
                for s in summaries
                if not math.isnan(s.mean(metric))
            ],
            title=f"Performance against flips ({rows})",
            x_label="largest change of a prediction under a flip, on the rows",
            y_label=_performance_label(metric),
            chosen=chosen,
            lower_is_better=metric in LOWER_IS_BETTER,
        ),
        "certificate.svg": line_chart_svg(
            [LinePanel("change of a prediction under a flip", _certificates(line), True, 260.0)],
            x=[_place(s) for s in line],
            title=f"What is certain, and what was found ({rows}{others})",
            x_label=_X_LABEL,
            marked=marked,
        ),
    }


def _line_of(reference: Summary, summaries: Sequence[Summary], metric: str) -> list[Summary]:
    """Take the points that differ from one in λ and exact form only, one for each place.

    An exact form may be there with several λ; its most accurate one stands for it.
    """
    places: dict[float | str, list[Summary]] = {}
    for summary in summaries:
        if _others(summary) == _others(reference):
            places.setdefault(_place(summary), []).append(summary)
    weights = sorted(place for place in places if not isinstance(place, str))
    names = [name for name in ("paper", "adapt", "marginal") if name in places]
    return [
        reference if reference in places[place] else choose_summary(places[place], None, metric)
        for place in (*weights, *names)
    ]


def _place(summary: Summary) -> float | str:
    return summary.weight if summary.invariance is None else summary.invariance


def _others(summary: Summary) -> dict[str, object]:
    return {n: v for n, v in summary.point.items() if n not in ("car", "invariance")}


def _describe_others(summary: Summary) -> str:
    return "".join(f", {name} = {show_value(v)}" for name, v in _others(summary).items())


def _performance_label(metric: str) -> str:
    return f"{metric} (lower is better)" if metric in LOWER_IS_BETTER else metric


def _groupings(summaries: Sequence[Summary]) -> list[str]:
    """Name the differences to show; of too many, the first ones and that of all together."""
    names = group_metrics(summaries)
    return names if len(names) <= _MOST_GROUPINGS else [*names[: _MOST_GROUPINGS - 1], names[-1]]


def _mean_line(metric: str, line: Sequence[Summary]) -> Line:
    return Line(metric, [s.mean(metric) for s in line], [s.spread(metric) for s in line])


def _certificates(line: Sequence[Summary]) -> list[Line]:
    """List what is certain and what was found, always in the same order and look."""
    share = 100 * (1 - line[0].runs[0].certified.alpha)
    population = [s.population for s in line]
    sensitive = line[0].arguments["sensitive"]
    is_one = not isinstance(sensitive, list) or len(sensitive) == 1
    found = "found by attack" if is_one else "attack, one column at a time"
    too_few = "" if any(value is not None for value in population) else " (too few rows)"
    return [
        Line("certified for all inputs", [s.bound for s in line], void=[s.vacuous for s in line]),
        Line(f"certified for {share:g} % of people{too_few}", population),
        Line(found, [s.attack for s in line]),
        Line("largest on the rows", [s.largest_change for s in line]),
    ]
