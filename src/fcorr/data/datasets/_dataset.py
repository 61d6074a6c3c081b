"""What every loader returns: two parts of one table, and where it comes from."""

import contextlib
import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from numpy.typing import NDArray

from fcorr._core import InvalidInputError, enumerate_some, user_cache, write_atomically
from fcorr._version import __version__
from fcorr.data.generators._draws import FrameName, convert_table

# ------------------------------ folder
# Where data sets lie, and what is said when one does not.

DataHome = str | os.PathLike[str] | None
VARIABLE = "FCORR_DATA"


def data_folder(data_home: DataHome = None) -> Path:
    """Return `data_home`, else the folder that FCORR_DATA names, else one in the user's cache.

    Examples
    --------
    >>> data_folder("my_data").name
    'my_data'
    """
    chosen = data_home if data_home is not None else os.environ.get(VARIABLE)
    return Path(chosen).expanduser() if chosen else user_cache()


def find_file(
    folder: str, names: Sequence[str], *, data_home: DataHome, loader: str, way_out: str
) -> Path:
    """Return the first of some files that is there.

    Parameters
    ----------
    folder : str
        The data set's own folder in the data folder.
    names : sequence of str
        Names that the file may have there, the usual one first.
    data_home : path-like or None
        What the user passed as the data folder.
    loader : str
        The function that looks for the file; an error starts with its name.
    way_out : str
        What to do, as the error's second sentence.

    Raises
    ------
    FileNotFoundError
        None of the files is there; the message says where they were looked for.
    """
    home = data_folder(data_home)
    for name in names:
        if (home / folder / name).is_file():
            return home / folder / name
    raise FileNotFoundError(
        f"{loader} needs {folder}/{names[0]}, which is not in {str(home)!r}. {way_out} "
        f"Set {VARIABLE}, or pass data_home, for another folder."
    )


def check_table(
    table: pa.Table, path: Path, *, columns: Collection[str], n_rows: int | None = None
) -> None:
    """Refuse a file that is not the published one: a column or some rows are missing."""
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise InvalidInputError(
            f"{path.name} must have the published columns, {enumerate_some(missing)} not found "
            f"among {enumerate_some(table.column_names)}. Replace {str(path)!r} by the original."
        )
    if n_rows is not None and table.num_rows != n_rows:
        raise InvalidInputError(
            f"{path.name} must have {n_rows:,} rows, got {table.num_rows:,}. "
            f"Replace {str(path)!r} by the original."
        )


# ------------------------------ download
# Downloads: whole and checked, or an error that says what to do by hand.

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


# ------------------------------ dataset
# What every loader returns: two parts of one table, and where it comes from.


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """Some rows of a data set: those to learn from, or those to test on.

    Attributes
    ----------
    X : pyarrow.Table, pandas.DataFrame or polars.DataFrame
        The features.
    y : ndarray of int64, shape (n,)
        The target: a class (0 or 1) or a claim count.
    exposure : ndarray of float64, shape (n,), or None
        For a claim count, the years over which it was observed; None for a class.
    """

    X: Any
    y: NDArray[np.int64]
    exposure: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        exposure = "" if self.exposure is None else f", exposure {self.exposure.sum():,.0f}"
        return f"Part({len(self):,} rows, {self.X.shape[1]} features{exposure})"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A published data set, split into a part to learn from and a part to test on.

    Attributes
    ----------
    name : str
        What the data set is called.
    train, test : Part
        The two parts. A categorical column has the same list of categories in both.
    target : str
        What `y` is.
    sensitive : tuple of str
        Features that a fairness question can be asked about; the first is the usual one.
    description, source, licence : str
        What a row is, where the data comes from, and on which terms.
    """

    name: str
    train: Part
    test: Part
    target: str
    sensitive: tuple[str, ...]
    description: str
    source: str
    licence: str


def split(
    table: pa.Table,
    is_test: NDArray[np.bool_],
    *,
    y: NDArray[np.int64],
    exposure: NDArray[np.float64] | None = None,
    frame: FrameName,
) -> tuple[Part, Part]:
    """Divide features, target and exposure into the rows to learn from and the rows to test on."""
    table = encode_categories(table)

    def part(rows: NDArray[np.bool_]) -> Part:
        X = convert_table(table.filter(pa.array(rows)), frame)
        return Part(X, y[rows], None if exposure is None else exposure[rows])

    return part(~is_test), part(is_test)


def encode_categories(table: pa.Table) -> pa.Table:
    """Make text columns categorical, with the sorted list of what the whole table holds.

    Examples
    --------
    >>> table = encode_categories(pa.table({"fuel": ["petrol", None, "diesel"]}))
    >>> column = table["fuel"].combine_chunks()
    >>> column.dictionary.to_pylist(), column.indices.to_pylist()
    (['diesel', 'petrol'], [1, None, 0])
    """
    for position, field in enumerate(table.schema):
        if pat.is_dictionary(field.type) or pat.is_string(field.type):
            table = table.set_column(position, field.name, _encode(table[field.name]))
    return table


def _encode(column: pa.ChunkedArray) -> pa.DictionaryArray:
    texts = column.cast(pa.string()).combine_chunks()
    categories = pa.array(sorted(texts.unique().drop_null().to_pylist()))
    codes = pc.index_in(texts, value_set=categories)
    index = pa.int8() if len(categories) <= 127 else pa.int32()
    return pa.DictionaryArray.from_arrays(codes.cast(index), categories)


def column_to_numpy(table: pa.Table, name: str, dtype: type[np.generic]) -> NDArray[Any]:
    """Return one column as an array of the given type."""
    return table[name].to_numpy().astype(dtype)


def select(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return some columns in the order asked for, alike for every kind of file they come from."""
    table = table.select(list(names)).replace_schema_metadata(None)
    for position, field in enumerate(table.schema):
        if pat.is_integer(field.type):
            table = table.set_column(position, field.name, table[field.name].cast(pa.int64()))
    return table
