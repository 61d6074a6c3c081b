"""The paper's experiments, made again: configurations, runs, records, and what they say.

Read in this order: `configs` and `settings` (which runs), `data`, `models` with `trees` and
`mitigations`, `measures`, `memory` and `costs` (what is measured), `runs` (how they are carried
out), `report` (tables, figures, and the paper's claims one by one, from the records alone).
"""

import os
from collections.abc import Sequence
from pathlib import Path

from fcorr._core import InvalidInputError, near_match
from fcorr.audit.journal import append_line, open_journal
from fcorr.audit.progress import show_progress
from fcorr.reproduce.runs import Record, carry_out, check_ready
from fcorr.reproduce.settings import EXPERIMENTS, Size, list_runs

__all__ = ["EXPERIMENTS", "read_records", "reproduce"]


def reproduce(
    experiments: Sequence[str],
    output: str | os.PathLike[str],
    *,
    size: Size = "full",
    n_seeds: int | None = None,
    n_jobs: int = 1,
    progress: bool = True,
) -> dict[str, list[Record]]:
    """Carry out experiments; runs that have a record in the output folder are not repeated.

    Parameters
    ----------
    experiments : sequence of str
        Some of :data:`EXPERIMENTS`.
    output : path
        Folder for the records, one file of JSON lines an experiment. It is made if need be.
    size : {"full", "smoke"}, default="full"
        The real thing, or all of it in seconds, with figures that mean nothing.
    n_seeds : int, optional
        Seeds of each model; by default five or more.
    n_jobs : int, default=1
        Processes that runs are shared out to; −1 for as many as there are cores.
    progress : bool, default=True
        Show progress: a bar on a terminal, plain lines elsewhere.

    Returns
    -------
    dict of str to list of dict
        The records of each experiment, in the order of its configuration.

    Raises
    ------
    InvalidInputError
        There is no such experiment or size.
    FileNotFoundError, ImportError
        Data or a package is missing; before anything is fitted.
    """
    for name in experiments:
        if name not in EXPERIMENTS:
            raise InvalidInputError(
                f"experiments must be of {', '.join(EXPERIMENTS)}, got {name!r}."
                f"{near_match(name, EXPERIMENTS)}"
            )
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    runs = {name: list_runs(name, size, n_seeds) for name in experiments}
    done = {name: _index(_open(folder / f"{name}.jsonl")) for name in experiments}
    to_do = [run for name in experiments for run in runs[name] if run.key not in done[name]]
    check_ready(to_do)
    with show_progress("reproduce", len(to_do), shown=progress) as report:
        for record in carry_out(to_do, n_jobs):
            name = record["experiment"]
            append_line(folder / f"{name}.jsonl", record)
            done[name][record["key"]] = record
            report(f"{name}: {record['title']}")
    return {name: [done[name][run.key] for run in runs[name]] for name in experiments}


def read_records(folder: str | os.PathLike[str], *, size: Size = "full") -> dict[str, list[Record]]:
    """Read the records that a folder holds, by experiment, in the order of the configurations.

    Records of other settings, such as those before a configuration was changed, are passed over.
    """
    found = {}
    for name in EXPERIMENTS:
        path = Path(folder) / f"{name}.jsonl"
        records = _index(_open(path, mend=False)) if path.exists() else {}
        n_seeds = 1 + max((record["seed"] for record in records.values()), default=-1)
        keys = [run.key for run in list_runs(name, size, n_seeds)]
        current = [records[key] for key in keys if key in records]
        if current:
            found[name] = current
    return found


def _open(path: Path, *, mend: bool = True) -> list[Record]:
    return open_journal(path, _check_record, of="a reproduction", mend=mend)


def _check_record(entry: Record) -> Record:
    """Refuse what is no record."""
    for field in ("key", "experiment", "model", "seed", "config", "versions"):
        entry[field]
    return entry


def _index(records: list[Record]) -> dict[str, Record]:
    return {record["key"]: record for record in records}
