"""Where the runs of a sweep are made, once each: carried out, shown, kept and found again."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from fcorr.audit.journal import append_line
from fcorr.audit.measuring import MAIN_METRIC
from fcorr.audit.progress import show_progress
from fcorr.audit.sweep.grid import Run
from fcorr.audit.sweep.records import Record
from fcorr.audit.sweep.runs import Plan, carry_out
from fcorr.audit.sweep.summaries import name_point
from fcorr.audit.tables import show_small


@dataclass
class Workshop:
    """Carries out runs that have no record yet.

    Attributes
    ----------
    plan : Plan
        What the runs share.
    varied : tuple of str
        Arguments that tell runs apart.
    records : dict of str to Record
        What is done, by key.
    path : path or None
        File that records are added to as runs end.
    n_jobs : int
        Processes to use.
    progress : bool
        Whether to show how far it is.
    """

    plan: Plan
    varied: tuple[str, ...]
    records: dict[str, Record]
    path: str | os.PathLike[str] | None
    n_jobs: int
    progress: bool
    _told: set[str] = field(default_factory=set)

    def find(self, run: Run) -> Record | None:
        """Return the record of a run, if it is done."""
        return self.records.get(self.plan.key(run))

    def carry_out(self, chains: Sequence[Sequence[Run]]) -> None:
        """Carry out what is not done yet."""
        n_runs = sum(self.find(run) is None for chain in chains for run in chain)
        with show_progress("sweep", n_runs, shown=self.progress) as report:
            for record, heard in carry_out(self.plan, chains, set(self.records), self.n_jobs):
                if self.path is not None:
                    append_line(self.path, record.to_dict())
                self.records[record.key] = record
                report(_describe(record, self.varied))
                heard.tell(self._told, stacklevel=3)


def _describe(record: Record, varied: tuple[str, ...]) -> str:
    metric = MAIN_METRIC[record.measured.task]
    point = {name: record.arguments[name] for name in varied}
    name = name_point(point, [point], record.arguments)
    return (
        f"{name}, seed {record.seed}: {metric} {record.measured.performance[metric]:.4g}, largest "
        f"change {show_small(record.measured.flip['largest change'])}, certified bound "
        f"{show_small(record.certified.bound)}"
    )
