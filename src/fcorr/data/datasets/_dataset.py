"""Data sets: where their files lie, how they are downloaded, and what every loader returns."""

import logging
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from numpy.typing import NDArray

from fcorr._core import InvalidInputError, enumerate_some, require, user_cache, write_atomically
from fcorr.data.generators._draws import FrameName, convert_table

DataHome = str | os.PathLike[str] | None


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


class DownloadError(OSError):
    """A file could not be downloaded, or is not the one that was asked for."""


def data_folder(data_home: DataHome = None) -> Path:
    """Return `data_home`, else the folder that FCORR_DATA names, else one in the user's cache."""
    chosen = data_home if data_home is not None else os.environ.get("FCORR_DATA")
    return Path(chosen).expanduser() if chosen else user_cache()


def find_file(
    folder: str, names: Sequence[str], data_home: DataHome, way_out: str | None = None
) -> Path:
    """Return the first of some files in a data set's folder, or say where it should be."""
    home, function = data_folder(data_home), folder.lower()
    for name in names:
        if (home / folder / name).is_file():
            return home / folder / name
    raise FileNotFoundError(
        f"load_{function} needs {folder}/{names[0]}, which is not in {str(home)!r}. "
        f"{way_out or f'Call fetch_{function}() to download it.'} "
        "Set FCORR_DATA, or pass data_home, for another folder."
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


def fetch_file(
    url: str,
    path: Path,
    convert: Callable[[bytes], bytes],
    way_out: str,
    sha256: str | None = None,
    *,
    force: bool,
    verbose: bool,
) -> None:
    """Download a file and keep what it is converted into, whole, or say what to do by hand."""
    if path.exists() and not force:
        return
    pooch = require("pooch", extra="fetch", purpose=f"The download of {path.name}")
    if verbose:
        print(f"downloading {url}", file=sys.stderr, flush=True)
    problem = "could not be downloaded"
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)  # it would tell the name of the temporary file
    try:
        with tempfile.TemporaryDirectory() as folder:
            content = Path(pooch.retrieve(url, sha256, path=folder)).read_bytes()
        problem = f"is not {path.stem}"
        converted = convert(content)
    except (OSError, ValueError, pa.ArrowException) as error:
        if getattr(error, "response", None) is not None:
            error.response.close()  # type: ignore[union-attr]  # it holds the connection
        raise DownloadError(f"{url} {problem} ({error}). {way_out}") from error
    finally:
        logger.setLevel(level)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, converted)


def build_dataset(
    table: pa.Table,
    features: Sequence[str],
    *,
    is_test: NDArray[np.bool_],
    y: NDArray[Any],
    exposure: NDArray[np.float64] | None = None,
    frame: FrameName,
    **about: Any,
) -> Dataset:
    """Divide a table into the rows to learn from and the rows to test on; say what it is.

    The features are in the order asked for, and alike for every kind of file they come from.
    """
    table = encode_categories(table.select(list(features)).replace_schema_metadata(None))
    for position, field in enumerate(table.schema):
        if pat.is_integer(field.type):
            table = table.set_column(position, field.name, table[field.name].cast(pa.int64()))

    def part(rows: NDArray[np.bool_]) -> Part:
        X = convert_table(table.filter(pa.array(rows)), frame)
        return Part(X, y[rows].astype(np.int64), None if exposure is None else exposure[rows])

    return Dataset(train=part(~is_test), test=part(is_test), **about)


def encode_categories(table: pa.Table) -> pa.Table:
    """Make text columns categorical, with the sorted list of what the whole table holds."""
    for position, field in enumerate(table.schema):
        if pat.is_dictionary(field.type) or pat.is_string(field.type):
            texts = table[field.name].cast(pa.string()).combine_chunks()
            categories = pa.array(sorted(texts.unique().drop_null().to_pylist()))
            codes = pc.index_in(texts, value_set=categories)
            codes = codes.cast(pa.int8() if len(categories) <= 127 else pa.int32())
            column = pa.DictionaryArray.from_arrays(codes, categories)
            table = table.set_column(position, field.name, column)
    return table
