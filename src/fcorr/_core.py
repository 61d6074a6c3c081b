"""What every room stands on: errors that help, plain data, whole files, randomness, progress."""

import difflib
import html
import importlib
import numbers
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

# ------------------------------------------------------------------------------ errors


class InvalidInputError(ValueError):
    """The data or an argument breaks a stated rule.

    ``argument`` names the argument that does, where it is one by itself that is wrong whatever the
    data: on the command line that is bad usage.
    """

    def __init__(self, *args: object, argument: str | None = None) -> None:
        super().__init__(*args)
        self.argument = argument


class ModelFileError(ValueError):
    """A file is not a model that this version can read."""


class UnseenCategoryWarning(UserWarning):
    """Rows hold a category that training did not see; the message counts them."""


class NotEstimableWarning(UserWarning):
    """A metric cannot be computed for a group; the message names the group and its size."""


def near_match(name: str, options: Iterable[str]) -> str:
    """Return ``" Did you mean 'age'?"`` for a likely misspelling, or an empty string.

    Examples
    --------
    >>> near_match("agee", ["age", "sex"])
    " Did you mean 'age'?"
    >>> near_match("zip", ["age", "sex"])
    ''
    """
    matches = difflib.get_close_matches(str(name), [str(option) for option in options], n=1)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def enumerate_some(items: Iterable[object], limit: int = 5) -> str:
    """Write out the first few items for a message, and how many more there are.

    Examples
    --------
    >>> enumerate_some(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    names = [repr(item.item() if isinstance(item, np.generic) else item) for item in items]
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


# ------------------------------------------------------------------------------ optional packages


def require(package: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional package, or say in one line how to get it.

    Parameters
    ----------
    package : str
        The module to import.
    extra : str
        The extra of fcorr that installs it.
    purpose : str
        What needs it; the error starts with these words.

    Raises
    ------
    ImportError
        ``... needs polars: pip install 'fcorr[polars]'``.
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package.split(".")[0]:
            raise  # the package is there, but something it needs is not: that is another story
        raise ImportError(f"{purpose} needs {package}: pip install 'fcorr[{extra}]'") from error


# ------------------------------------------------------------------------------ files and folders


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that no reader ever sees half of it, whatever interrupts the write.

    The content goes to a temporary file beside the target, which then takes the target's place
    in one step. An existing file is replaced, or left as it was.
    """
    target = Path(path)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp makes files that only their owner can read
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def user_cache() -> Path:
    """Return the folder for what can be made or fetched again; it may not exist yet.

    Raises
    ------
    FileNotFoundError
        If the user has no home, as in a container that knows its users by number only.
    """
    variable, below = {
        "win32": ("LOCALAPPDATA", "AppData/Local"),
        "darwin": ("", "Library/Caches"),
    }.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    chosen = Path(os.environ.get(variable, ""))
    if chosen.is_absolute():  # others are to be ignored, says XDG's specification
        return chosen / "fcorr"
    home = Path(os.path.expanduser("~"))  # stays "~" for a user of whom no home is known
    if not (home.is_absolute() and home.is_dir()):
        raise FileNotFoundError(
            f"the user's home must be a folder that exists, got {str(home)!r}. Set HOME to one."
        )
    return home / below / "fcorr"


# ------------------------------------------------------------------------------ plain data


def to_plain(value: Any) -> Any:
    """Turn arguments and results into what JSON can hold; nan and infinity become None.

    Examples
    --------
    >>> to_plain({"head": (8, 4), "bound": float("inf"), 1: np.float32(0.5)})
    {'head': [8, 4], 'bound': None, '1': 0.5}
    """
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [to_plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def html_table(
    caption: str, header: Sequence[object], rows: Iterable[Sequence[object]], note: str = ""
) -> str:
    """Write a table for a notebook; whatever is in the cells is text, never markup."""

    def line(cells: Sequence[object], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    below = f"<p>{html.escape(note)}</p>" if note else ""
    return (
        f"<table><caption>{html.escape(caption)}</caption><thead>{line(header, 'th')}</thead>"
        f"<tbody>{body}</tbody></table>{below}"
    )


# ------------------------------------------------------------------------------ randomness

RandomState = int | np.random.RandomState | np.random.Generator | None


def draw_seed(random_state: RandomState) -> int:
    """Turn scikit-learn's ``random_state`` into one integer seed.

    An integer is its own seed; a generator gives its next draw; ``None`` asks the operating system.
    """
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if not 0 <= int(random_state) < 2**32:
            raise InvalidInputError(
                f"random_state must lie in [0, 2**32), got {random_state}. Choose another integer."
            )
        return int(random_state)
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**31 - 1))
    raise InvalidInputError(
        "random_state must be an integer, a numpy generator or None, "
        f"got {type(random_state).__name__} {random_state!r}. Pass an integer for a repeatable run."
    )


# ------------------------------------------------------------------------------ progress


@dataclass(frozen=True)
class Progress:
    """Shows how far some work has come; this one shows nothing.

    Attributes
    ----------
    say : callable
        Tells why nothing seems to happen.
    advance : callable
        Takes note of one more step, with a few words about it.
    """

    say: Callable[[str], None] = lambda text: None
    advance: Callable[[str], None] = lambda text: None


@contextmanager
def show_progress(
    title: str, n_steps: int, *, shown: bool, unit: str = "run"
) -> Iterator[Progress]:
    """Show progress on stderr: a bar on a terminal, a line for each step elsewhere, or nothing."""
    if not shown or not n_steps:
        yield Progress()
    elif sys.stderr.isatty():
        # rich takes a tenth of a second to import: only those who look at a bar pay for it.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar
        from rich.progress import TimeRemainingColumn as TimeLeft

        columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeLeft())
        bar = Bar(*columns, TextColumn("{task.description}"), console=Console(file=sys.stderr))
        task = bar.add_task("", total=n_steps)
        with bar:
            yield Progress(
                say=lambda text: bar.update(task, description=text),
                advance=lambda text: bar.update(task, advance=1, description=text),
            )
    else:
        n_done = 0

        def say(text: str) -> None:
            print(text, file=sys.stderr, flush=True)

        def advance(text: str) -> None:
            nonlocal n_done
            n_done += 1
            say(f"{unit} {n_done}/{n_steps}  {text}")

        yield Progress(say, advance)
