"""Tables in files: CSV and Parquet, by the file's ending."""

import io
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from fcorr._core.errors import InvalidInputError
from fcorr._core.files import write_atomically

_CSV = (".csv", ".csv.gz")
_PARQUET = (".parquet", ".pq")


def read_file(path: str | os.PathLike[str]) -> pa.Table:
    """Read a CSV (also gzipped) or Parquet file.

    In a CSV file an empty field and the usual spellings of "not available" are missing values.

    Raises
    ------
    InvalidInputError
        The file is empty, broken or of another kind; the message says where.
    """
    try:
        if _is(path, _PARQUET):
            return pa_parquet.read_table(path)
        if _is(path, _CSV):
            options = pa_csv.ConvertOptions(strings_can_be_null=True)
            return pa_csv.read_csv(os.fspath(path), convert_options=options)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(
            f"{os.fspath(path)!r} cannot be read as {Path(path).suffix}: {error}. "
            "Check that the file is whole and of the kind its name says."
        ) from error
    raise _unknown_kind(path)


def write_file(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a CSV or Parquet file, whole or not at all."""
    buffer = io.BytesIO()
    if _is(path, _PARQUET):
        pa_parquet.write_table(table, buffer)
    elif _is(path, (".csv",)):
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
