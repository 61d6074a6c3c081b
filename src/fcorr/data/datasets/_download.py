"""Downloads: whole and checked, or an error that says what to do by hand."""

import contextlib
import hashlib
import http.client
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from fcorr._core import write_atomically
from fcorr._version import __version__

_TIMEOUT = 30.0  # seconds without a byte
_CHUNK = 1 << 16


class DownloadError(OSError):
    """A file could not be downloaded, or is not the one that was asked for."""


def download(url: str, *, way_out: str, sha256: str | None = None, verbose: bool = True) -> bytes:
    """Download a file into memory.

    Parameters
    ----------
    url : str
        Where it is.
    way_out : str
        What to do by hand when that fails, as the error's last sentence.
    sha256 : str, optional
        What its content must hash to.
    verbose : bool, default=True
        Whether to show the progress, on standard error.

    Raises
    ------
    DownloadError
        There is no network, no such file, or the content is cut short or not the expected one.
    """
    request = urllib.request.Request(url, headers={"User-Agent": f"fcorr/{__version__}"})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
            length = response.headers.get("Content-Length")
            expected = int(length) if length is not None else None
            content = bytearray()
            with _progress(url, expected, verbose=verbose) as report:
                while chunk := response.read(_CHUNK):
                    content += chunk
                    report(len(content))
    except (OSError, http.client.HTTPException) as error:
        # HTTPError and URLError are OSErrors too; the reason of the latter is what helps.
        reason = str(getattr(error, "reason", None) or error)
        if isinstance(error, urllib.error.HTTPError):
            reason = f"{error.code} {reason}"
            error.close()  # it holds the connection
        raise DownloadError(f"{url} could not be downloaded ({reason}). {way_out}") from error
    if expected is not None and len(content) != expected:
        raise DownloadError(
            f"{url} was cut short: {len(content):,} of {expected:,} bytes arrived. "
            f"Try again. {way_out}"
        )
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise DownloadError(
            f"{url} is not the expected file: its SHA-256 is "
            f"{hashlib.sha256(content).hexdigest()}, not {sha256}. {way_out}"
        )
    return bytes(content)


def save(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)


@contextlib.contextmanager
def _progress(url: str, total: int | None, *, verbose: bool) -> Iterator[Callable[[int], None]]:
    """Yield what takes the number of bytes so far: a bar on a terminal, one line elsewhere."""
    if not verbose:
        yield lambda n_bytes: None
        return
    if not sys.stderr.isatty():
        size = "" if total is None else f" ({total / 1e6:.1f} MB)"
        print(f"downloading {url}{size}", file=sys.stderr, flush=True)
        yield lambda n_bytes: None
        return
    # rich takes a tenth of a second to import: only those who look at a bar pay for it.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    name = url.rsplit("/", 1)[-1]
    columns = (TextColumn(f"downloading {name}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(file=sys.stderr)) as bar:
        task = bar.add_task("", total=total)
        yield lambda n_bytes: bar.update(task, completed=n_bytes)
