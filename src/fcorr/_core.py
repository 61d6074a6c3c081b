"""What every room stands on: errors that help, rows that count, whole files, text, progress."""

import difflib
import errno
import glob
import hashlib
import html
import importlib
import json
import logging
import math
import numbers
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np
import platformdirs
from numpy.typing import NDArray

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
    """Rows hold a category that training did not see; the message counts them, and names some.

    ``counts`` is the same without the names, for what is handed on: values may be personal.
    """

    def __init__(self, message: str, counts: str = "") -> None:
        super().__init__(message)
        self.counts = counts or message


class NotEstimableWarning(UserWarning):
    """A metric cannot be computed for a group; the message names the group and its size."""


def near_match(name: str, options: Iterable[str]) -> str:
    """Return ``" Did you mean 'age'?"`` for a likely misspelling, or an empty string."""
    texts = [str(option) for option in options]
    same = [text for text in texts if text.casefold().strip() == str(name).casefold().strip()]
    matches = same or difflib.get_close_matches(str(name), texts, n=1)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def enumerate_some(items: Iterable[object], limit: int = 5) -> str:
    """Write out the first few items for a message: ``"'a', 'b' and 1 more"``."""
    plain = (item.item() if isinstance(item, np.generic) else item for item in items)
    return first_few(map(repr, plain), limit)


def first_few(texts: Iterable[str], limit: int = 5, separator: str = ", ") -> str:
    """Write out the first few texts, and how many more there are."""
    listed = list(texts)
    more = f" and {len(listed) - limit:,} more" if len(listed) > limit else ""
    return separator.join(listed[:limit]) + more


def check_argument(name: str, value: object, fits: bool, rule: str, way_out: str = "") -> None:
    """Refuse an argument that is wrong by itself, whatever the data: say its rule and a way out."""
    if not fits:
        text = f"{name} must be {rule}, got {value!r}. {way_out}"
        raise InvalidInputError(text.rstrip(), argument=name)


def refuse_rows(
    is_wrong: NDArray[np.bool_], column: NDArray[np.float64], rule: str, way_out: str
) -> None:
    """Refuse a column in which some row breaks the rule; name the first, and count the others."""
    if is_wrong.any():
        row, n_more = int(np.argmax(is_wrong)), int(is_wrong.sum()) - 1
        more = f" and {n_more} more" * (n_more > 0)
        raise InvalidInputError(f"{rule}, got {column[row]:g} in row {row}{more}. {way_out}")


def check_name(
    name: object,
    options: Collection[Any],
    rule: str,
    way_out: str = "",
    argument: str | None = None,
) -> None:
    """Refuse a name that is none of the options; say which one may have been meant."""
    if name not in options:
        text = f"{rule}, got {name!r}.{near_match(str(name), options)} {way_out}"
        raise InvalidInputError(text.rstrip(), argument=argument)


@contextmanager
def errors_about(argument: str) -> Iterator[None]:
    """Say which argument an error is about where several hold rows."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{argument}: {error}", argument=error.argument) from error


def is_integer(value: object, at_least: int) -> bool:
    """Whether a value is a whole number, and large enough."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return is_whole and int(value) >= at_least  # type: ignore[call-overload]


def is_number(value: object) -> bool:
    """Whether a value is a finite number."""
    is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_real and math.isfinite(float(value))  # type: ignore[arg-type]


def is_missing(value: Any) -> bool:
    """Whether a value stands for one that is not known: None, NaN, NaT or pandas' NA."""
    try:
        return value is None or bool(value != value)  # NaN and NaT differ from themselves
    except TypeError:  # pandas' NA refuses to be true or false
        return True


# ------------------------------------------------------------------------------ rows of weight 0
# They are left out before anything is read, so that nothing can be learnt or refused because of
# them; errors still count the rows of the table that the user knows.


@contextmanager
def counted_rows(*columns: Any, sample_weight: Any) -> Iterator[list[Any]]:
    """Give columns, and their weights last, without the rows of weight 0.

    Within it, errors number the rows as if none had been left out.
    """
    given = [*columns, sample_weight]
    rows = find_counted(*given)
    with numbered_by(rows):
        yield given if rows is None else [take_rows(column, rows) for column in given]


def find_counted(*columns: Any) -> NDArray[np.intp] | None:
    """Return the rows whose weight, the last column, is not 0; None where nothing is left out.

    Weights that are no numbers, that are 0 throughout, or that are not as many as there are rows,
    leave nothing out: whoever reads them refuses them.
    """
    try:
        weight = np.asarray(columns[-1], dtype=np.float64)
    except (TypeError, ValueError):
        return None
    is_column = weight.ndim > 0 and weight.size == len(weight)
    rows = np.flatnonzero(weight)
    if not is_column or len(rows) in (0, len(weight)):
        return None
    return rows if {count_rows(column) for column in columns} <= {None, len(weight)} else None


def take_rows(values: Any, rows: NDArray[np.intp]) -> Any:
    """Return rows of a table or a column, by position; what has no rows is returned as it is."""
    if count_rows(values) is None:
        return values
    if isinstance(values, Mapping):
        return {name: take_rows(column, rows) for name, column in values.items()}
    if isinstance(values, Sequence):
        return [values[row] for row in rows]
    if hasattr(values, "iloc"):  # of pandas, where brackets look for labels
        return values.iloc[rows]
    if hasattr(values, "__getitem__") and not hasattr(values, "to_pylist"):
        return values[rows]
    # Of pyarrow, and scores under flips; the rest can become an array, but is none.
    return values.take(rows) if hasattr(values, "take") else np.asarray(values)[rows]


def count_rows(values: Any) -> int | None:
    """Count the rows of a table or a column; None for what is neither, such as a number."""
    if isinstance(values, Mapping):
        counts = {count_rows(column) for column in values.values()}
        return counts.pop() if len(counts) == 1 else -1  # of columns that differ, no number
    if isinstance(values, str | bytes):
        return None
    if isinstance(values, Sized) and not hasattr(values, "shape"):
        return len(values)
    shape = values.shape if hasattr(values, "shape") else np.asarray(values).shape
    return shape[0] if shape else None


@contextmanager
def numbered_by(rows: NDArray[np.intp] | None) -> Iterator[None]:
    """Let errors about rows that were taken from a table count the rows of that table."""
    try:
        yield
    except InvalidInputError as error:
        if rows is None:
            raise
        raise renumber_rows(error, rows) from error


def renumber_rows(
    error: InvalidInputError,
    rows: Sequence[int] | NDArray[np.intp] | None,
    name: Callable[[int], str] = "row {}".format,
) -> InvalidInputError:
    """Return the same error, with the rows in its text as those of another table."""

    def rename(found: re.Match[str]) -> str:
        row = int(found[1])
        # A number beyond the rows is part of some value, such as the text "row 7".
        return name(row if rows is None or row >= len(rows) else int(rows[row]))

    text = re.sub(r"\brow (\d+)\b", rename, str(error))
    return InvalidInputError(text, argument=error.argument)


# ------------------------------------------------------------------------------ optional packages


def require(package: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional package, or say which extra of fcorr installs it, and what needs it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package.split(".")[0]:
            raise  # the package is there, but something it needs is not: that is another story
        raise ImportError(f"{purpose} needs {package}: pip install 'fcorr[{extra}]'") from error


_RAY_SECONDS = 30.0  # to answer; Ray itself tries for minutes, and then ends the process


@contextmanager
def connect_ray(address: str | None = None, workers: int | None = None) -> Iterator[ModuleType]:
    """Give Ray, connected: to the cluster at an address, or to one that lives as long as this.

    The latter is on this machine, with as many processors as there are ``workers``. An address in
    ``RAY_ADDRESS``, and a cluster that the program has connected to before, are taken by default.
    """
    ray = require("ray", extra="ray", purpose="engine='ray'")
    if ray.is_initialized():
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS")
    quiet = {"logging_level": "error", "log_to_driver": False}
    if address is None:
        ray.init("local", num_cpus=workers, include_dashboard=False, **quiet)
    else:
        _check_answers(address)
        ray.init(address, **quiet)
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answers(address: str) -> None:
    """Connect to a Ray cluster in a process that can be ended when none answers."""
    script = "import ray, sys; ray.init(sys.argv[1], logging_level='error', log_to_driver=False)"
    try:
        tried = subprocess.run(
            [sys.executable, "-c", script, address],
            capture_output=True,
            text=True,
            timeout=_RAY_SECONDS,
            check=False,
        )
        if tried.returncode == 0:
            return
        problem = (tried.stderr.strip().splitlines() or ["no reason given"])[-1]
    except subprocess.TimeoutExpired:
        problem = f"no answer in {_RAY_SECONDS:g} seconds"
    raise InvalidInputError(
        f"address must be that of a Ray cluster which answers, got {address!r} ({problem}). Start "
        "one with `ray start --head`, or leave it out for this machine.",
        argument="address",
    )


# ------------------------------------------------------------------------------ other processes


@contextmanager
def open_processes() -> Iterator[Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]] | None]:
    """Give a map over the processes of a joblib backend that the caller has chosen, or None.

    ``with joblib.parallel_config("ray", n_jobs=8):`` chooses Ray's; Dask and Spark have one, too.
    The processes stay as long as this: each has to import torch first.
    """
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    backend, n_jobs = get_active_backend(prefer="threads")
    if getattr(backend, "supports_sharedmem", False):  # threads: nobody asked for processes
        yield None
    elif type(backend).__module__.startswith("ray."):
        yield partial(_map_as_tasks, n_jobs)
    else:
        with Parallel() as parallel:
            yield lambda function, items: list(parallel(delayed(function)(item) for item in items))


def _map_as_tasks(n_jobs: int, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Map by Ray's tasks, at most so many at a time, or with -1 as many as there is room for.

    Joblib's way starts a pool of processes for each map, and sends each item all that the function
    holds. Tasks find that in Ray's memory, and processes that have imported torch wait for more.
    """
    ray = require("ray", extra="ray", purpose="engine='ray'")
    shared, run = ray.put(function), ray.remote(num_cpus=1)(lambda function, item: function(item))
    n_most = n_jobs if n_jobs > 0 else max(1, int(ray.cluster_resources()["CPU"]))
    tasks: list[Any] = []
    running: list[Any] = []
    try:
        for item in items:
            if len(running) == n_most:
                done, running = ray.wait(running)
                # An error ends it here. What still runs is not cancelled: Ray ends the calling
                # process where a task that is cancelled has just come to its end.
                ray.get(done)
            tasks.append(run.remote(shared, item))
            running.append(tasks[-1])
        return ray.get(tasks)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error  # what went wrong in the task, without Ray's account of it


# ------------------------------------------------------------------------------ files and folders


def write_atomically(
    path: str | os.PathLike[str], content: bytes | Callable[[BinaryIO], object]
) -> None:
    """Write a file so that no reader ever sees half of it, whatever interrupts the write.

    The content, or what a function writes, goes to a temporary file beside the target, which then
    takes the target's place in one step. An existing file is replaced, or left as it was; its
    permissions stay, and so does a link to it. Temporary files that killed processes left of the
    same target are removed. An error names the file, and says what is left in its place.
    """
    target = Path(os.path.realpath(path))
    left = "nothing was written" + ", the old file is in place" * os.path.isfile(target)
    with errors_of_writing(path, left):
        _replace(target, content)


def compute_digest(header: Mapping[str, Any], tensors: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of all that a file of networks says, but for the digest itself.

    It is that of the header as JSON, and of each tensor's name, type, shape and bytes in the
    order of the names. It finds accidents, a bit that flipped or an edit by hand; whoever forges a
    file can compute it anew.
    """
    content = {name: value for name, value in header.items() if name != "sha256"}
    text = json.dumps(content, ensure_ascii=False)
    digest = hashlib.sha256(text.encode(errors="surrogatepass"))
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\n{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.cpu().numpy().tobytes())
    return digest.hexdigest()


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise, before the work is done, what `write_atomically` would raise after it."""
    with errors_of_writing(path):
        _replace(Path(os.path.realpath(path)), None)


@contextmanager
def errors_of_writing(path: str | os.PathLike[str], left: str = "") -> Iterator[None]:
    """Let errors of the operating system name the file, and tell what is left in its place."""
    try:
        yield
    except OSError as error:
        text = "; ".join(filter(None, [error.strerror or str(error), left]))
        raise OSError(error.errno, text, os.fspath(path)) from error


def _replace(target: Path, content: bytes | Callable[[BinaryIO], object] | None) -> None:
    """Put new content into a file's place; without any, go as far as that can be tried."""
    mode = _find_mode(target)
    start, end = f".{target.name[:50]}.", ".fcorr-tmp"  # short enough where the name itself is
    for path in target.parent.glob(f"{glob.escape(start)}????????{end}"):
        with suppress(OSError):  # of what another process is writing still
            if stat.S_ISREG(path.lstat().st_mode):
                with path.open("rb") as file:
                    _lock(file)
                    path.unlink()  # on Windows what is open cannot be removed, by whomever
    new, temporary = _open_temporary(target.parent, start, end)
    try:
        with new:
            if content is None:
                return
            new.write(content) if isinstance(content, bytes) else content(new)
            new.flush()
            os.fsync(new.fileno())
            os.chmod(temporary, mode)
            if sys.platform == "win32":
                new.close()  # what is open cannot be moved there
            os.replace(temporary, target)
    finally:
        Path(temporary).unlink(missing_ok=True)
    # A new name outlasts a power cut once its folder is synced, which not every file system can.
    with suppress(OSError):
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _find_mode(target: Path) -> int:
    """Return the permissions that the new file will have; refuse what it cannot take the place of.

    A file that nobody may write to is meant to stay, although its folder would let it go.
    """
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "A device, pipe or socket is no file to replace")
    if not mode & 0o222 or not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "The file there is read-only")
    return stat.S_IMODE(mode)


def _open_temporary(folder: Path, start: str, end: str) -> tuple[BinaryIO, str]:
    """Create a file that is locked for as long as it is open, so that nobody takes it away."""
    while True:
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=start, suffix=end)
        file = os.fdopen(descriptor, "wb")
        try:
            _lock(file)
        except BlockingIOError:  # another process takes it for abandoned, and is removing it
            pass
        except OSError:  # a file system without locks, where nothing is removed
            return file, name
        else:
            if os.fstat(file.fileno()).st_nlink:
                return file, name
        file.close()


def _lock(file: BinaryIO) -> None:
    """Lock an open file until it is closed; BlockingIOError if another process has locked it."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Give a folder for large files, which is removed afterwards.

    What killed processes left of such folders is removed first, where files can be locked.
    """
    for lock in Path(tempfile.gettempdir()).glob("fcorr-large-*/lock"):
        with suppress(OSError):
            if sys.platform != "win32" and lock.parent.lstat().st_uid == os.getuid():
                with lock.open("rb") as file:
                    _lock(file)
                    shutil.rmtree(lock.parent)
    with (
        tempfile.TemporaryDirectory(prefix="fcorr-large-") as folder,
        open(Path(folder, "new"), "wb") as file,
    ):
        with suppress(OSError):
            _lock(file)
            os.rename(file.name, Path(folder, "lock"))  # nobody sees it unlocked
        yield folder


def user_cache() -> Path:
    """Return the folder for what can be made or fetched again; it may not exist yet.

    A user may have no home, as in a container that knows its users by number only.
    """
    folder = platformdirs.user_cache_path("fcorr", appauthor=False)
    if not (folder.is_absolute() and folder.parent.parent.is_dir()):
        text = f"the user's home must be a folder that exists, got {str(folder)!r} in it"
        raise FileNotFoundError(f"{text}. Set HOME to one.")
    return folder


# ------------------------------------------------------------------------------ text and plain data

_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def show_text(text: object) -> str:
    """Make one line that can be shown anywhere, of names and values from whoever made the data.

    Whatever would move a terminal's cursor or colour it, end the line, turn the direction of
    writing or be forbidden in XML is written as JSON escapes it. All else stays.
    """
    return _STEERING.sub(lambda found: json.dumps(found[0])[1:-1], str(text))


def to_plain(value: Any) -> Any:
    """Turn arguments and results into what JSON can hold; nan and infinity become None."""
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [to_plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


class Tabled(ABC):
    """What shows itself as tables: as text where it is printed, as markup in a notebook."""

    @abstractmethod
    def _tables(self) -> Iterable[tuple[str, Sequence[object], Iterable[Sequence[object]], str]]:
        """Give caption, header, rows and note of each table."""

    def __str__(self) -> str:
        return "\n\n".join(text_table(*table) for table in self._tables())

    def _repr_html_(self) -> str:
        return "".join(html_table(*table) for table in self._tables())


def text_table(
    caption: str, header: Sequence[object], rows: Iterable[Sequence[object]], note: str = ""
) -> str:
    """Write a table for a terminal, numbers to the right.

    Examples
    --------
    >>> print(text_table("Ages", ("name", "age"), [("Ann", "7"), ("Bartholomew", "35")]))
    Ages
    name         age
    Ann            7
    Bartholomew   35
    """
    lines = [[show_text(cell) for cell in line] for line in (header, *rows)]
    first, *others = (max(map(len, column)) for column in zip(*lines, strict=True))
    shown = [
        "  ".join([name.ljust(first), *map(str.rjust, cells, others)]).rstrip()
        for name, *cells in lines
    ]
    return "\n".join(filter(None, [show_text(caption), *shown, show_text(note)]))


def html_table(
    caption: str, header: Sequence[object], rows: Iterable[Sequence[object]], note: str = ""
) -> str:
    """Write a table for a notebook; whatever is in the cells is text, never markup."""

    def line(cells: Sequence[object], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{shown(cell)}</{tag}>' for cell in cells)}</tr>"

    def shown(text: object) -> str:
        return html.escape(show_text(text))

    body = "".join(line(row, "td") for row in rows)
    below = f"<p>{shown(note)}</p>" if note else ""
    return (
        f"<table><caption>{shown(caption)}</caption><thead>{line(header, 'th')}</thead>"
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
    """Shows how far some work has come; this one shows nothing."""

    say: Callable[[str], None] = lambda text: None
    """Tells why nothing seems to happen."""
    advance: Callable[[str], None] = lambda text: None
    """Takes note of one more step, with a few words about it."""
    expect: Callable[[int], None] = lambda n_steps: None
    """Takes note that there are this many steps in all, if it thought of fewer."""


_logger = logging.getLogger("fcorr")


@contextmanager
def show_progress(
    title: str, n_steps: int, *, shown: bool, unit: str = "run"
) -> Iterator[Progress]:
    """Show progress on stderr: a bar on a terminal, a line for each step elsewhere, or nothing.

    The logger ``fcorr`` hears of it in any case, at the level INFO.
    """
    shown, n_done, bar = shown and n_steps > 0, 0, None
    if shown and sys.stderr.isatty():
        # rich takes a tenth of a second to import: only those who look at a bar pay for it.
        from rich import progress
        from rich.console import Console

        columns = progress.TextColumn(title), progress.BarColumn(), progress.MofNCompleteColumn()
        last = (
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.description}", markup=False),
        )
        bar = progress.Progress(*columns, *last, console=Console(file=sys.stderr))
        task = bar.add_task("", total=n_steps)

    def tell(text: str, step: int) -> None:
        nonlocal n_done
        n_done, text = n_done + step, show_text(text)
        # Why nothing seems to happen is told in any case: a log that nobody set up shows warnings.
        _logger.log(logging.INFO if shown or step else logging.WARNING, "%s: %s", title, text)
        if bar is not None:
            bar.update(task, advance=step, description=text)
        elif shown:
            start = f"{unit} {n_done}/{n_steps}  " if step else ""
            print(start + text, file=sys.stderr, flush=True)

    def expect(n_all: int) -> None:
        nonlocal n_steps
        n_steps = max(n_steps, n_all)
        if bar is not None:
            bar.update(task, total=n_steps)

    with bar or nullcontext():
        yield Progress(lambda text: tell(text, 0), lambda text: tell(text, 1), expect)
