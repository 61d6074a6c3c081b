"""What a person sees while a model trains: a bar on a terminal, lines elsewhere, or nothing."""

import sys
from types import TracebackType
from typing import Self, TextIO

from fcorr.training.history import EpochRecord


class SilentProgress:
    """Shows nothing; the base of the two that do."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def say(self, message: str) -> None:
        """Tell why nothing seems to happen."""

    def report(self, record: EpochRecord) -> None:
        """Take note of a finished epoch."""


class LineProgress(SilentProgress):
    """One plain line per epoch, for logs and notebooks."""

    def __init__(self, n_epochs: int, stream: TextIO) -> None:
        self.n_epochs = n_epochs
        self.stream = stream

    def say(self, message: str) -> None:
        """Print the message."""
        print(message, file=self.stream, flush=True)

    def report(self, record: EpochRecord) -> None:
        """Print the epoch's losses."""
        line = f"epoch {record.epoch}/{self.n_epochs}  {describe(record)}"
        print(line, file=self.stream, flush=True)


class BarProgress(SilentProgress):
    """A progress bar with the time left, for a terminal."""

    def __init__(self, n_epochs: int, stream: TextIO) -> None:
        # rich takes a tenth of a second to import: only those who look at a bar pay for it.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as TimeLeft

        columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeLeft())
        self.bar = Progress(
            *columns, TextColumn("{task.description}"), console=Console(file=stream)
        )
        self.task = self.bar.add_task("", total=n_epochs)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bar.stop()

    def say(self, message: str) -> None:
        """Show the message beside the bar."""
        self.bar.update(self.task, description=message)

    def report(self, record: EpochRecord) -> None:
        """Advance the bar."""
        self.bar.update(self.task, completed=record.epoch, description=describe(record))


def describe(record: EpochRecord) -> str:
    """Put an epoch's losses into a few words."""
    parts = [f"loss {record.loss:.4f}"]
    if record.car is not None:
        parts.append(f"CAR {record.car:.2e}")
    if record.validation_loss is not None:
        parts.append(f"validation loss {record.validation_loss:.4f}")
    return "  ".join(parts)


def make_progress(verbose: bool | int, n_epochs: int) -> SilentProgress:
    """Choose what to show: nothing unless ``verbose``, a bar on a terminal, else lines."""
    if not verbose:
        return SilentProgress()
    stream = sys.stderr
    return BarProgress(n_epochs, stream) if stream.isatty() else LineProgress(n_epochs, stream)
