"""What a sweep gives: records, a choice, tables and figures."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fcorr._core import InvalidInputError, require, write_atomically
from fcorr.audit.measuring import Estimator
from fcorr.audit.sweep.choosing import (
    Choice,
    check_budget,
    check_metric,
    choose_summary,
    describe_choice,
)
from fcorr.audit.sweep.grid import Point, Run
from fcorr.audit.sweep.pictures import draw_figures
from fcorr.audit.sweep.records import Record
from fcorr.audit.sweep.runs import Plan
from fcorr.audit.sweep.summaries import (
    Summary,
    group_metrics,
    performance_metrics,
    summarise,
)
from fcorr.audit.sweep.work import Workshop
from fcorr.audit.tables import TextTable, show_mean, show_small


class Sweep:
    """The runs of a sweep, all measured on validation rows. ``print`` it for a table.

    :func:`fcorr.sweep` makes it.

    Attributes
    ----------
    budget : float or None
        The largest certified bound that a chosen model may have, unless told otherwise.
    """

    def __init__(
        self,
        workshop: Workshop,
        points: Sequence[Point],
        chains: Sequence[Sequence[Run]],
        budget: float | None,
    ) -> None:
        self.budget = budget
        self._workshop = workshop
        self._points = list(points)
        self._runs = [run for chain in chains for run in chain]
        self._seeds = list(dict.fromkeys(run.seed for run in self._runs))

    @property
    def _plan(self) -> Plan:
        return self._workshop.plan

    @property
    def records(self) -> list[Record]:
        """One record for each run: by point, then by seed; then those of fresh fits."""
        planned = [self._record(run) for point in self._points for run in self._runs_of(point)]
        fresh = [
            record
            for point in self._points
            for run in self._fresh_runs(point)
            if (record := self._workshop.find(run)) is not None and record not in planned
        ]
        return planned + fresh

    def summaries(self) -> list[Summary]:
        """Put the runs of each point together; those of a fresh fit where there is one."""
        runs = []
        for point in self._points:
            fresh = [self._workshop.find(run) for run in self._fresh_runs(point)]
            known = [record for record in fresh if record is not None]
            if len(known) < len(fresh):
                known = [self._record(run) for run in self._runs_of(point)]
            runs.append(known)
        return summarise(self._points, self._plan.base, runs)

    def choose(self, budget: float | None = None, *, metric: str | None = None) -> Choice:
        """Choose the most accurate point, by the mean over its seeds.

        A point of which a run started from the weights of another (``warm_start``) is fitted
        afresh before it is reported: such a run is not the model that ``fit`` would give.

        Parameters
        ----------
        budget : float, optional
            The largest certified bound that all seeds must keep to: what no flip may change a
            prediction by more than. 0 stands for exact models only. By default that of the sweep.
        metric : str, optional
            The performance to choose by; by default AUROC for two classes, log loss for more,
            deviance for a regression.

        Returns
        -------
        Choice
            The point and the reason.

        Raises
        ------
        InvalidInputError
            No point keeps to the budget; the message names the smallest bound reached.
        """
        budget = self.budget if budget is None else check_budget(budget)
        while True:
            summaries = self.summaries()
            chosen = choose_summary(summaries, budget, metric)
            if not chosen.warm:
                return describe_choice(chosen, budget, check_metric(metric, summaries))
            self._workshop.carry_out([[run] for run in self._fresh_runs(chosen.point)])

    def best_estimator(
        self, budget: float | None = None, *, metric: str | None = None, seed: int | None = None
    ) -> Estimator:
        """Fit the chosen point again, from scratch, and return the model.

        Parameters
        ----------
        budget, metric
            See :meth:`choose`.
        seed : int, optional
            Which of the sweep's seeds to use; by default the first.
        """
        seed = self._seeds[0] if seed is None else seed
        if seed not in self._seeds:
            raise InvalidInputError(
                f"seed must be one of the sweep's {self._seeds}, got {seed!r}. Others were not "
                "measured."
            )
        return self._plan.fit(Run(self.choose(budget, metric=metric).point, seed))

    def table(self) -> TextTable:
        """Return the table: a line per point, means over the seeds, the largest of the bounds."""
        summaries = self.summaries()
        performance, groups = performance_metrics(summaries), group_metrics(summaries)
        flips = [
            name
            for name in ("AvgIF", "decisions flipped")
            if name in summaries[0].runs[0].measured.flip
        ]
        header = ["", *performance, *flips, "largest change", "found by attack"]
        header += ["for 99 %", "certified bound", *groups, "fit, s"]
        rows = [
            [
                summary.name + summary.warm * " (warm)",
                *(show_mean([*summary.values(name)]) for name in performance),
                *(show_small(summary.mean(name)) for name in flips),
                show_small(summary.largest_change),
                show_small(summary.attack),
                show_small(summary.population),
                show_small(summary.bound) + summary.vacuous * " (vacuous)",
                *(show_mean([*summary.values(name)]) for name in groups),
                f"{sum(run.seconds['fit'] for run in summary.runs) / len(summary.runs):.1f}",
            ]
            for summary in summaries
        ]
        return TextTable(header, rows)

    @property
    def notes(self) -> list[str]:
        """What could not be estimated, or not for all groups."""
        return list(dict.fromkeys(note for record in self.records for note in record.notes))

    def __str__(self) -> str:
        return "\n".join([self.table().text(), *self.notes])

    def to_pandas(self) -> Any:
        """Return a pandas frame with a line for each record and a column for each number."""
        pandas = require("pandas", extra="pandas", purpose="Sweep.to_pandas")
        varied = self._points[0]
        return pandas.DataFrame(
            [
                {
                    **{name: record.arguments[name] for name in varied},
                    "seed": record.seed,
                    "warm": record.warm,
                    **record.measured.flat(),
                    "exact": record.certified.exact,
                    "certified bound": record.certified.bound,
                    "vacuous": record.certified.vacuous,
                    "population bound": record.certified.population,
                    "found by attack": record.certified.attack,
                    "fit seconds": record.seconds["fit"],
                }
                for record in self.records
            ]
        )

    def figures(self) -> dict[str, str]:
        """Draw what λ does, the frontier and the certificates: file names and SVG texts.

        The chosen point is marked, if there is one within the sweep's budget.
        """
        try:
            chosen: str | None = self.choose().name
        except InvalidInputError:
            chosen = None
        return draw_figures(self.summaries(), chosen)

    def write_figures(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the figures into a folder; return the files."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        figures = self.figures()
        for name, svg in figures.items():
            write_atomically(folder / name, svg.encode())
        return [folder / name for name in figures]

    def _runs_of(self, point: Point) -> list[Run]:
        return [run for run in self._runs if run.point == point]

    def _fresh_runs(self, point: Point) -> list[Run]:
        return [Run(point, seed) for seed in self._seeds]

    def _record(self, run: Run) -> Record:
        record = self._workshop.find(run)
        assert record is not None  # a sweep is made when all its runs are done
        return record
