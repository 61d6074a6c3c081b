"""Files of tables: CSV and Parquet, by the file's ending; a folder holds parts in Parquet."""

import csv
import gzip
import io
import os
from collections.abc import Iterable, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pyarrow.types as pat

from fcorr._core import InvalidInputError, write_atomically
from fcorr.data.tables import refuse_repeated

_CSV = (".csv", ".csv.gz")
_PARQUET = (".parquet", ".pq")
WRITABLE = (".csv", *_PARQUET)

Path = str | os.PathLike[str]


def read_file(path: Path, text: Iterable[str] = ()) -> pa.Table:
    """Read a CSV (also gzipped) or Parquet file, or a folder of Parquet files.

    In a CSV file an empty field and the usual spellings of "not available" are missing values;
    columns named in ``text`` are read as text, also where all they hold looks like numbers. A file
    that is empty, broken, not in UTF-8 or of another kind is an :class:`InvalidInputError`, which
    says where.
    """
    types = {name: pa.string() for name in text}
    return _read(path, pa_csv.ConvertOptions(strings_can_be_null=True, column_types=types))


def read_verbatim(path: Path, columns: Sequence[str]) -> pa.Table:
    """Read some columns of a file to write them out again: those of a CSV file as bare text.

    A key such as ``007`` or ``NA`` is neither a number nor a missing value.
    """
    types = {name: pa.string() for name in columns}
    return _read(path, pa_csv.ConvertOptions(include_columns=columns, column_types=types))


def write_file(table: pa.Table, path: Path) -> None:
    """Write a CSV or Parquet file, whole or not at all."""
    if not _is(path, WRITABLE):
        raise _unknown_kind(path)
    buffer = io.BytesIO()
    if _is(path, _PARQUET):
        pa_parquet.write_table(table, buffer)
    else:
        pa_csv.write_csv(table, buffer)
    write_atomically(path, buffer.getvalue())


def file_ending(path: Path) -> str:
    """Return the ending of files of the same kind, uncompressed.

    Examples
    --------
    >>> file_ending("claims.csv.gz"), file_ending("claims.parquet")
    ('.csv', '.parquet')
    """
    if not _is(path, _CSV + _PARQUET):
        raise _unknown_kind(path)
    return ".csv" if _is(path, _CSV) else ".parquet"


def _is(path: Path, endings: tuple[str, ...]) -> bool:
    # Whatever a folder is called, it holds Parquet files.
    ending = ".parquet" if os.path.isdir(path) else os.fspath(path).lower()
    return ending.endswith(endings)


def _unknown_kind(path: Path) -> InvalidInputError:
    return InvalidInputError(
        f"{os.fspath(path)!r} must end in .csv or .parquet, which tell how to read or write it. "
        "Rename or convert the file."
    )


def _read(path: Path, options: pa_csv.ConvertOptions) -> pa.Table:
    is_csv = file_ending(path) == ".csv"
    if not os.path.isdir(path):
        with open(path, "rb"):
            pass  # a missing or unreadable file is the operating system's error, with its own words
    try:
        table = _read_csv(path, options) if is_csv else _read_parquet(path, options.include_columns)
        table.validate(full=True)
        names = table.column_names
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"{os.fspath(path)!r} cannot be read as {'CSV' if is_csv else 'Parquet'} "
            f"({error}). Check that the file is whole and of the kind its name says."
        ) from error
    refuse_repeated(names)
    return table


def _read_parquet(path: Path, columns: list[str]) -> pa.Table:
    """Read one file, or all Parquet files of a folder in the order of their names."""
    if not os.path.isdir(path):
        return pa_parquet.read_table(path, columns=columns or None)
    names = sorted(name for name in os.listdir(path) if _is(name, _PARQUET))
    if not names:
        raise InvalidInputError(
            f"The folder {os.fspath(path)!r} must hold Parquet files, found none ending in "
            ".parquet. Pass the folder they are in, or one file."
        )
    schemas = [pa_parquet.read_schema(os.path.join(path, name)) for name in names]
    for name, schema in zip(names[1:], schemas[1:], strict=True):
        _refuse_other_columns(name, schema, names[0], schemas[0])
    parts = [
        pa_parquet.read_table(os.path.join(path, name), columns=columns or schemas[0].names)
        for name in names
    ]
    return pa.concat_tables(parts).unify_dictionaries()


def _refuse_other_columns(file: str, schema: pa.Schema, other: str, expected: pa.Schema) -> None:
    """Say in which column the parts of a folder differ, if they do."""
    for name in (*expected.names, *schema.names):
        here, there = (
            str(s.field(name).type) if name in s.names else "no such column"
            for s in (schema, expected)
        )
        if here != there:
            raise InvalidInputError(
                f"All files of a folder must have the same columns, but {name!r} is {here} in "
                f"{file!r} and {there} in {other!r}. Convert one of them, or move it elsewhere."
            )


def _read_csv(path: Path, options: pa_csv.ConvertOptions) -> pa.Table:
    def parse(*, newlines_in_values: bool) -> pa.Table:
        parsing = pa_csv.ParseOptions(newlines_in_values=newlines_in_values)
        compression = "gzip" if _is(path, (".gz",)) else None
        with pa.input_stream(os.fspath(path), compression=compression) as stream:
            return pa_csv.read_csv(stream, parse_options=parsing, convert_options=options)

    try:
        try:
            table = parse(newlines_in_values=False)
        except pa.ArrowInvalid:
            # Line breaks within quotes are rare, and looking for them takes twice the time.
            table = parse(newlines_in_values=True)
        if any(pat.is_binary(field.type) for field in table.schema):  # what Arrow cannot decode
            raise pa.ArrowInvalid("text that is not UTF-8")
        table.column_names  # noqa: B018  decodes the header
    except (pa.ArrowInvalid, UnicodeDecodeError):
        _refuse_other_encoding(path)
        _refuse_broken_line(path)
        raise
    return table


def _refuse_other_encoding(path: Path) -> None:
    """Name the line and the column of the first text that is not UTF-8, if there is one."""
    header: list[str] = []
    with _open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode().removeprefix("\ufeff")
            except UnicodeDecodeError as error:
                # Every byte is a letter of Latin-1, so that as such the line can be taken apart.
                column = len(next(csv.reader([line[: error.end].decode("latin-1")]))) - 1
                where = f", column {header[column]!r}" if column < len(header) else ""
                field = next(csv.reader([line.decode("latin-1")]))[column]
                raise InvalidInputError(
                    f"{os.fspath(path)!r} must be text in UTF-8, got byte "
                    f"0x{line[error.start]:02x} in line {number}{where} ({field!r}, if it is "
                    "Latin-1). Save the file as UTF-8."
                ) from error
            header = header or next(csv.reader([text]), [])


def _refuse_broken_line(path: Path) -> None:
    """Name the first line that has not as many fields as the header, if there is one."""
    with _open_bytes(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        reader = csv.reader(text)
        header = next(reader, [])
        line = reader.line_num + 1
        for fields in reader:
            if fields and len(fields) != len(header):
                raise InvalidInputError(
                    f"{os.fspath(path)!r} must have {len(header)} fields in every line, as in its "
                    f"header, got {len(fields)} in line {line}: {','.join(fields)[:80]!r}. "
                    "Correct the line."
                )
            line = reader.line_num + 1


def _open_bytes(path: Path) -> BinaryIO:
    if _is(path, (".gz",)):
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return open(path, "rb")
