"""Tables in files: CSV and Parquet, by the file's ending."""

import io
import os
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pyarrow.types as pat

from fcorr._core.errors import InvalidInputError, enumerate_some
from fcorr._core.files import write_atomically
from fcorr.data.tables import refuse_repeated

_CSV = (".csv", ".csv.gz")
_PARQUET = (".parquet", ".pq")
WRITABLE = (".csv", *_PARQUET)


def read_file(path: str | os.PathLike[str], text: Iterable[str] = ()) -> pa.Table:
    """Read a CSV (also gzipped) or Parquet file.

    In a CSV file an empty field and the usual spellings of "not available" are missing values.

    Parameters
    ----------
    path : path-like
        The file.
    text : iterable of str, optional
        Columns of a CSV file to read as text, also where all they hold looks like numbers.

    Raises
    ------
    InvalidInputError
        The file is empty, broken or of another kind; the message says where.
    """
    if not _is(path, _CSV + _PARQUET):
        raise _unknown_kind(path)
    with open(path, "rb"):
        pass  # a missing or unreadable file is the operating system's error, with its own words
    try:
        table = pa_parquet.read_table(path) if _is(path, _PARQUET) else _read_csv(path, text)
        table.validate(full=True)
        names = table.column_names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"{os.fspath(path)!r} cannot be read as {'Parquet' if _is(path, _PARQUET) else 'CSV'} "
            f"({error}). Check that the file is whole and of the kind its name says."
        ) from error
    refuse_repeated(names)
    return table


def _read_csv(path: str | os.PathLike[str], text: Iterable[str]) -> pa.Table:
    types = {name: pa.string() for name in text}
    options = pa_csv.ConvertOptions(strings_can_be_null=True, column_types=types)
    compression = "gzip" if _is(path, (".gz",)) else None
    with pa.input_stream(os.fspath(path), compression=compression) as stream:
        table = pa_csv.read_csv(stream, convert_options=options)
    undecoded = [field.name for field in table.schema if pat.is_binary(field.type)]
    if undecoded:
        raise pa.ArrowInvalid(f"column(s) {enumerate_some(undecoded)} hold text that is not UTF-8")
    return table


def write_file(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a CSV or Parquet file, whole or not at all."""
    buffer = io.BytesIO()
    if _is(path, _PARQUET):
        pa_parquet.write_table(table, buffer)
    elif _is(path, WRITABLE):
        pa_csv.write_csv(table, buffer)
    else:
        raise _unknown_kind(path)
    write_atomically(path, buffer.getvalue())


def _is(path: str | os.PathLike[str], endings: tuple[str, ...]) -> bool:
    return os.fspath(path).lower().endswith(endings)


def _unknown_kind(path: str | os.PathLike[str]) -> InvalidInputError:
    return InvalidInputError(
        f"{os.fspath(path)!r} must end in .csv or .parquet, which tell how to read or write it. "
        "Rename or convert the file."
    )
