"""What a person sees while many runs are made: a bar on a terminal, lines elsewhere, or nothing."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Report(Protocol):
    """Told of each run when it is done."""

    def __call__(self, text: str) -> None:
        """Take note of it."""


@contextmanager
def show_progress(title: str, n_runs: int, *, shown: bool) -> Iterator[Report]:
    """Show how many of the runs are done, on stderr."""
    if not shown or not n_runs:
        yield lambda text: None
    elif sys.stderr.isatty():
        # rich takes a tenth of a second to import: only those who look at a bar pay for it.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as TimeLeft

        columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeLeft())
        bar = Progress(*columns, TextColumn("{task.description}"), console=Console(file=sys.stderr))
        task = bar.add_task("", total=n_runs)
        with bar:
            yield lambda text: bar.update(task, advance=1, description=text)
    else:
        n_done = 0

        def report(text: str) -> None:
            nonlocal n_done
            n_done += 1
            print(f"run {n_done}/{n_runs}  {text}", file=sys.stderr, flush=True)

        yield report
