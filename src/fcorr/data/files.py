"""Files of tables: CSV and Parquet, by the file's ending; a folder holds parts in Parquet."""

import codecs
import csv
import datetime
import gzip
import io
import itertools
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pyarrow.types as pat

from fcorr._core import (
    InvalidInputError,
    check_argument,
    enumerate_some,
    show_text,
    write_atomically,
)
from fcorr.data.tables import name_values, refuse_repeated, value_type

_TSV = (".tsv", ".tsv.gz")
_CSV = (".csv", ".csv.gz", *_TSV)
_PARQUET = (".parquet", ".pq")
ENDINGS = _CSV + _PARQUET

Path = str | os.PathLike[str]


class Dialect(NamedTuple):
    """How a CSV file is written; what is None is recognised.

    Attributes
    ----------
    delimiter : str or None
        What separates the fields: one ASCII character. By default a tab in files ending in
        ``.tsv``, and else the one of comma, semicolon, tab and bar that splits the header most,
        if it splits the first row as often.
    decimal : {".", ","} or None
        The decimal sign. By default a comma where fields end at something else and the numbers
        are written so, and else a point.
    dates : {"dmy", "mdy"} or None
        The order in dates such as 31/12/2024. By default that in which all of a column are dates,
        if it is only one. Dates in ISO 8601 need none.
    """

    delimiter: str | None = None
    decimal: str | None = None
    dates: str | None = None


_ANY = Dialect()
_DELIMITERS = ",;\t|"
_DATE = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})")
_ORDERS = {"dmy": "day/month/year", "mdy": "month/day/year"}
# Numbers with a comma, and a comma that cannot be one of thousands: it stands after a point, after
# 0 or four digits, or before other than three.
_NUMBER = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?$"
_THOUSANDS = r"^[+-]?(0|[1-9]\d{0,2}(\.\d{3})*)$"
_ZEROS, _LONG, _MOST_DIGITS = r"^\s*0\d", r"^\s*\d{17,}\s*$", 1e16  # the 17th is lost
_DECIMALS = r"(^[+-]?0|\d{4}|\.\d{3}),|,(\d{1,2}|\d{4,})([eE]|$)"


def read_file(path: Path, text: Iterable[str] = (), dialect: Dialect = _ANY) -> pa.Table:
    """Read a CSV (also gzipped) or Parquet file, or a folder of Parquet files.

    In a CSV file an empty field and the usual spellings of "not available" are missing values;
    columns named in ``text`` are read as text, also where all they hold looks like numbers or
    dates. A file that is empty, broken, not in UTF-8 or of another kind is an
    :class:`InvalidInputError`, which says where.
    """
    return recognise_file(path, text, dialect)[0]


def recognise_file(
    path: Path, text: Iterable[str] = (), dialect: Dialect = _ANY, numbers: Collection[str] = ()
) -> tuple[pa.Table, Dialect, str]:
    """Read a file as `read_file` does; return how it is written, too, and what to say about that.

    The last is empty where nothing unusual was recognised. A column that may be numbers or dates
    in more ways than one stays text, with a warning; one of those that must be ``numbers`` is
    refused.
    """
    _check_dialect(dialect)
    text = frozenset(text)
    with _errors_of(path):
        if file_ending(path) == ".parquet":
            return _check(_read_parquet(path)), dialect, ""
        delimiter = find_delimiter(path, dialect.delimiter)
        types = {name: pa.string() for name in text}

        def read(decimal: str, spelled: Iterable[str] = ()) -> pa.Table:
            as_text = types | dict.fromkeys(spelled, pa.string())
            options = {"strings_can_be_null": True, "column_types": as_text}
            found = _read_csv(path, delimiter, decimal_point=decimal, **options)
            if found.column_names[-1] == "" and found.columns[-1].null_count == found.num_rows:
                found = found.remove_column(found.num_columns - 1)  # every line ends in a delimiter
            return _check(found)

        table, decimal = _read_numbers(read, text, numbers, delimiter, dialect.decimal)
        table, codes = _read_codes(table, read, numbers, decimal)
    table, dates = _read_dates(table, text, dialect.dates)
    told = []
    if dialect.delimiter is None and delimiter != ("\t" if _is(path, _TSV) else ","):
        told.append(f"{_name(delimiter)} between fields")
    if dialect.decimal is None and decimal == ",":
        told.append("decimal commas")
    if dialect.dates is None:
        told += [f"{_ORDERS[each]} in {enumerate_some(names)}" for each, names in dates.items()]
    if codes:
        told.append(f"{enumerate_some(codes)} as text, as codes such as 007 are")
    note = f"{os.fspath(path)!r} is read with {', '.join(told)}"
    return table, Dialect(delimiter, decimal, dialect.dates), note if told else ""


def read_verbatim(path: Path, columns: Sequence[str], dialect: Dialect = _ANY) -> pa.Table:
    """Read some columns of a file to write them out again: those of a CSV file as bare text.

    A key such as ``007`` or ``NA`` is neither a number nor a missing value.
    """
    with _errors_of(path):
        if file_ending(path) == ".parquet":
            return _check(_read_parquet(path, columns))
        delimiter = find_delimiter(path, dialect.delimiter)
        types = {name: pa.string() for name in columns}
        return _check(_read_csv(path, delimiter, include_columns=columns, column_types=types))


# What steers a terminal, or the order that text is shown in; line ends and tabs within a field are
# quoted by the rules of CSV.
_STEERING = r"[\x00-\x08\x0b-\x1f\x7f-\x9f" + "\u2028-\u202e\u2066-\u2069]"
_FORMULA = r"^[=+\-@\t\n]"
_BYTES = (pat.is_binary, pat.is_large_binary, pat.is_binary_view, pat.is_fixed_size_binary)
_NO_FORMULA = r"^[+-]?[\d.,]+([eE][+-]?\d+)?%?$"  # but a number


def disarm(table: pa.Table) -> tuple[pa.Table, int]:
    """Take the power off text that a spreadsheet would run, or that would steer a terminal.

    Text that begins like a formula, and is no number, gets an apostrophe before it; control
    characters are written as JSON would. Returns the table, and how many cells and names changed.

    Examples
    --------
    >>> disarm(pa.table({"key": ["=1+1", "-7", "a"]}))[0]["key"].to_pylist()
    ["'=1+1", '-7', 'a']
    """

    def safe(text: str | None) -> str | None:
        if text is None:
            return None
        is_formula = re.match(_FORMULA, text) and not re.match(_NO_FORMULA, text)
        shown = re.sub(_STEERING, lambda found: show_text(found[0]), text)
        return f"'{shown}" if is_formula else shown

    columns, n_changed = [], 0
    for column in table.columns:
        if any(is_kind(value_type(column.type)) for is_kind in _BYTES):  # CSV has no such
            values = column.to_pylist()
            texts = [None if v is None else v.decode(errors="backslashreplace") for v in values]
            column = pa.array(texts, pa.string())
        if name_values(column.type) == "text":
            column = column.cast(value_type(column.type)).cast(pa.large_string())
            suspect = pc.match_substring_regex(column, f"{_STEERING}|{_FORMULA}")
            if pc.any(suspect).as_py():
                texts = column.to_pylist()
                changed = [safe(text) for text in texts]
                n_changed += sum(a != b for a, b in zip(texts, changed, strict=True))
                column = pa.array(changed, column.type)
        columns.append(column)
    names = [str(safe(name)) for name in table.column_names]
    n_changed += sum(a != b for a, b in zip(names, table.column_names, strict=True))
    return pa.table(columns, names=names), n_changed


def write_file(table: pa.Table, path: Path, dialect: Dialect = _ANY) -> None:
    """Write a CSV or Parquet file, whole or not at all; text is written to the letter."""
    write_atomically(path, to_bytes(table, path, dialect))


def to_bytes(table: pa.Table, path: Path, dialect: Dialect = _ANY) -> bytes:
    """Return what a file of that name would hold."""
    buffer = io.BytesIO()
    if file_ending(path) == ".parquet":
        pa_parquet.write_table(table, buffer)
    else:
        delimiter = "\t" if _is(path, _TSV) else dialect.delimiter or ","
        if dialect.decimal == ",":
            for i, field in enumerate(table.schema):
                if pat.is_floating(field.type):
                    spelled = pc.replace_substring(table[i].cast(pa.string()), ".", ",")
                    table = table.set_column(i, field.name, spelled)
        pa_csv.write_csv(table, buffer, pa_csv.WriteOptions(delimiter=delimiter))
    return gzip.compress(buffer.getvalue(), mtime=0) if _is(path, (".gz",)) else buffer.getvalue()


def file_ending(path: Path) -> str:
    """Return the ending of files of the same kind, uncompressed."""
    if not _is(path, ENDINGS):
        raise InvalidInputError(
            f"{os.fspath(path)!r} must end in .csv, .tsv or .parquet, which tells how to read or "
            "write it. Save it as one of these."
        )
    return ".parquet" if _is(path, _PARQUET) else ".tsv" if _is(path, _TSV) else ".csv"


def find_delimiter(path: Path, given: str | None = None) -> str:
    """Return what separates the fields of a CSV file; refuse what leaves them in one column."""
    with _open(path) as stream:
        start = stream.read(2**16).decode(errors="replace").removeprefix("\ufeff")

    def count(delimiter: str) -> list[int]:
        """Count the fields of the header and of the first row; lines without any are skipped."""
        lines = csv.reader(io.StringIO(start, newline=None), delimiter=delimiter)
        return [len(fields) for fields in itertools.islice(filter(None, lines), 2)] or [0]

    def rank(delimiter: str) -> tuple[bool, int]:
        header, *rows = count(delimiter)
        return rows == [header] and header > 1, header  # names may hold what separates nothing

    best = max(_DELIMITERS, key=rank)  # of several, the first
    delimiter = given or ("\t" if _is(path, _TSV) else best)
    if count(delimiter)[0] < 2 <= count(best)[0]:
        raise InvalidInputError(
            f"{os.fspath(path)!r} must have {_name(delimiter)} between fields, got a header that "
            f"has {_name(best)}: {start.splitlines()[0][:80]!r}. Pass delimiter={best!r}."
        )
    return delimiter


def _is(path: Path, endings: tuple[str, ...]) -> bool:
    # Whatever a folder is called, it holds Parquet files.
    ending = ".parquet" if os.path.isdir(path) else os.fspath(path).lower()
    return ending.endswith(endings)


def _name(delimiter: str) -> str:
    return "tabs" if delimiter == "\t" else repr(delimiter)


def _open(path: Path) -> pa.NativeFile:
    return pa.input_stream(os.fspath(path), "gzip" if _is(path, (".gz",)) else None)


def _check_dialect(dialect: Dialect) -> None:
    delimiter, decimal, dates = dialect
    fits = delimiter is None or re.fullmatch(r"[\t !#-/:-@\[-`{-~]", delimiter) is not None
    rule = "a tab or one ASCII character that is no letter, digit or quote"
    check_argument("delimiter", delimiter, fits, rule, "Leave it out to have it recognised.")
    for name, value, allowed in (("decimal", decimal, ".,"), ("dates", dates, _ORDERS)):
        rule = f"one of {enumerate_some(allowed)}"
        check_argument(name, value, value in (None, *allowed), rule)


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    """Let errors of reading name the file."""
    if not os.path.isdir(path):
        with open(path, "rb"):
            pass  # a missing or unreadable file is the operating system's error, with its own words
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeError, csv.Error) as error:
        kind = "Parquet" if file_ending(path) == ".parquet" else "CSV"
        raise InvalidInputError(
            f"{os.fspath(path)!r} cannot be read as {kind} ({' '.join(str(error).split())}). "
            "Check that the file is whole and of the kind its name says."
        ) from error


def _check(table: pa.Table) -> pa.Table:
    """Refuse a table whose content is broken, or in which two columns have one name."""
    table.validate(full=True)
    refuse_repeated(table.column_names)
    return table


# ------------------------------------------------------------------------------ Parquet


class Piece(NamedTuple):
    """Row groups of a Parquet file that follow each other, the first from row ``first_row`` on.

    The rows of files before it count ``before``.
    """

    file: str
    groups: list[int]
    first_row: int
    before: int


def split_parquet(path: Path, n_rows: int = 2**18) -> tuple[pa.Schema, list[Piece], int]:
    """Split a Parquet file, or a folder of them, into pieces of ``n_rows`` or one row group.

    Returns the columns' names and types, the pieces in order, and how many rows they have together.
    """
    pieces: list[Piece] = []
    schema, files = _list_parquet(path)
    before = 0
    for file, metadata in files.items():
        first_row, filled = 0, n_rows  # no piece goes on in the next file
        for group in range(metadata.num_row_groups):
            size = metadata.row_group(group).num_rows
            if size == 0:
                continue
            if filled + size > n_rows:
                pieces.append(Piece(file, [], first_row, before))
                filled = 0
            pieces[-1].groups.append(group)
            first_row, filled = first_row + size, filled + size
        before += metadata.num_rows
    refuse_repeated(schema.names)
    return schema, pieces, before


def read_piece(
    piece: Piece, columns: Sequence[str], batch_rows: int
) -> Iterator[tuple[int, pa.Table]]:
    """Read columns of a piece in batches, each with its first row in the file.

    The memory that takes does not depend on how long row groups are.
    """
    if not os.path.isfile(piece.file):
        raise InvalidInputError(
            f"{piece.file!r} must be there as long as it is read, on every machine that reads it, "
            "found no such file. Put the data where all of them see it."
        )
    first_row = piece.first_row
    with _errors_of(piece.file):
        options = {"pre_buffer": False, "buffer_size": 2**20, "page_checksum_verification": True}
        with pa_parquet.ParquetFile(piece.file, **options) as file:
            for batch in file.iter_batches(batch_rows, piece.groups, list(columns)):
                yield first_row, _check(pa.Table.from_batches([batch]).select(columns))
                first_row += batch.num_rows


def _read_parquet(path: Path, columns: Sequence[str] = ()) -> pa.Table:
    """Read one file, or all Parquet files of a folder in the order of their names."""
    schema, files = _list_parquet(path)
    parts = []
    for file in files:
        with _errors_of(file):
            parts.append(pa_parquet.read_table(file, columns=list(columns) or schema.names))
    return pa.concat_tables(parts).unify_dictionaries()


def _list_parquet(path: Path) -> tuple[pa.Schema, dict[str, Any]]:
    """Return the columns of a Parquet file, or of all in a folder, and what each says of itself."""
    files = [os.fspath(path)]
    if os.path.isdir(path):
        # Names that begin so are other programs' own, which these leave unread as well.
        names = [n for n in os.listdir(path) if _is(n, _PARQUET) and not n.startswith((".", "_"))]
        files = [os.path.join(path, name) for name in sorted(names)]
    if not files:
        raise InvalidInputError(
            f"The folder {os.fspath(path)!r} must hold Parquet files, found none ending in "
            ".parquet. Pass the folder they are in, or one file."
        )
    found, schemas = {}, []
    for file in files:
        with _errors_of(file):
            found[file] = pa_parquet.read_metadata(file)
            schemas.append(found[file].schema.to_arrow_schema())
        pair = schemas[-1], schemas[0]
        for name in (*schemas[0].names, *schemas[-1].names):
            here, there = (
                str(s.field(name).type) if name in s.names else "no such column" for s in pair
            )
            if here != there:
                raise InvalidInputError(
                    f"All files of a folder must have the same columns, but {name!r} is {here} in "
                    f"{os.path.basename(file)!r} and {there} in {os.path.basename(files[0])!r}. "
                    "Convert one of them, or move it elsewhere."
                )
    return schemas[0], found


# ------------------------------------------------------------------------------ CSV: lines


def _read_csv(path: Path, delimiter: str, **options: Any) -> pa.Table:
    converting = pa_csv.ConvertOptions(**options)

    def parse(*, newlines_in_values: bool) -> pa.Table:
        parsing = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=newlines_in_values)
        with _open(path) as stream:
            return pa_csv.read_csv(stream, parse_options=parsing, convert_options=converting)

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
        _refuse_other_encoding(path, delimiter)
        _refuse_broken_line(path, delimiter)
        raise
    return table


def _refuse_other_encoding(path: Path, delimiter: str) -> None:
    """Name the line and the column of the first text that is not UTF-8, if there is one."""

    def split(line: str) -> list[str]:
        return next(csv.reader([line], delimiter=delimiter), [])

    header: list[str] = []
    with _open(path) as stream, io.BufferedReader(stream) as file:
        for number, line in enumerate(file, start=1):
            if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise InvalidInputError(
                    f"{os.fspath(path)!r} must be text in UTF-8, got UTF-16. Save the file as "
                    "UTF-8; in a spreadsheet that is 'CSV UTF-8'."
                )
            try:
                text = line.decode().removeprefix("\ufeff")
            except UnicodeDecodeError as error:
                # Every byte is a letter of Latin-1, so that as such the line can be taken apart.
                column = len(split(line[: error.end].decode("latin-1"))) - 1
                where = f", column {header[column]!r}" if column < len(header) else ""
                field = split(line.decode("latin-1"))[column]
                raise InvalidInputError(
                    f"{os.fspath(path)!r} must be text in UTF-8, got byte "
                    f"0x{line[error.start]:02x} in line {number}{where} ({field!r}, if it is "
                    "Latin-1). Save the file as UTF-8."
                ) from error
            header = header or split(text)


def _refuse_broken_line(path: Path, delimiter: str) -> None:
    """Name the first line that has not as many fields as the header, if there is one."""
    n_fields = None
    for line, fields in _read_lines(path, delimiter):
        n_fields = n_fields or len(fields)
        if len(fields) != n_fields:
            raise InvalidInputError(
                f"{os.fspath(path)!r} must have {n_fields} fields in every line, as in its "
                f"header, got {len(fields)} in line {line}: {delimiter.join(fields)[:80]!r}. "
                f"Correct the line; quote fields that hold {_name(delimiter)}."
            )


def _read_lines(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Give header and rows of a CSV file, each with the line it begins on; text may hold more."""
    with _open(path) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
        reader, line = csv.reader(text, delimiter=delimiter), 1
        for fields in reader:
            if fields:  # a line without anything is no row
                yield line, fields
            line = reader.line_num + 1


def name_line(path: Path, dialect: Dialect, row: int) -> str:
    """Name the line that a row of a CSV file begins on."""
    found = None
    if file_ending(path) != ".parquet":
        lines = _read_lines(path, find_delimiter(path, dialect.delimiter))
        found = next(itertools.islice(lines, row + 1, None), None)
    return f"line {found[0]}" if found else f"row {row}"  # the latter, too, of no row of the file


# ------------------------------------------------------------------------------ CSV: values


def _read_numbers(
    read: Callable[..., pa.Table],
    text: Collection[str],
    numbers: Collection[str],
    delimiter: str,
    decimal: str | None,
) -> tuple[pa.Table, str]:
    """Read a table with the decimal sign that is given, or that its numbers show."""
    if decimal is not None:
        table = read(decimal)
        return (_join_thousands(table, text) if decimal == "," else table), decimal
    table = read(".")
    found = [n for n in _text_columns(table, text) if _all_match(table[n], _NUMBER)]
    found = [n for n in found if pc.any(pc.match_substring(table[n], ",")).as_py()]
    is_decimal = (pc.any(pc.match_substring_regex(table[n], _DECIMALS)).as_py() for n in found)
    if delimiter != "," and any(is_decimal):
        other = _join_thousands(read(","), text)
        # Where that makes text of what were numbers, points may be the decimal sign after all.
        if not any(pat.is_floating(table[n].type) for n in _text_columns(other, text)):
            return other, ","
    if found:
        way_out = "Pass decimal=',' if that is the decimal sign; take the commas of thousands out."
        _leave_text("commas", table, found, numbers, way_out)
    return table if delimiter == "," else _leave_thousands(table, read, numbers), "."


def _leave_text(
    signs: str, table: pa.Table, names: list[str], numbers: Collection[str], way_out: str
) -> None:
    """Warn of columns that may be numbers in two ways; refuse them where they must be numbers."""
    needed = [name for name in names if name in numbers]
    column = table[(needed or names)[0]]
    has_sign = pc.match_substring(column, "," if signs == "commas" else ".")
    example = pc.first(pc.filter(column, has_sign)).as_py()
    if needed:
        raise InvalidInputError(
            f"Columns of numbers with {signs} can be read in two ways: {enumerate_some(needed)}, "
            f"such as {example!r}. {way_out}"
        )
    warnings.warn(
        f"Columns of numbers with {signs} are read as text: {enumerate_some(names)}, such as "
        f"{example!r}. {way_out}",
        stacklevel=4,
    )


def _leave_thousands(
    table: pa.Table, read: Callable[..., pa.Table], numbers: Collection[str]
) -> pa.Table:
    """Leave numbers such as 45.000 as text, where no number of the file shows what a point is."""
    names = [f.name for f in table.schema if pat.is_floating(f.type)]
    # Most files are settled by their numbers; only the others are read again, as they are spelled.
    columns = (np.abs(table[name].drop_null().to_numpy()) for name in names)
    if not names or not all(((x < 1000) & (x == x.round(3))).all() for x in columns):
        return table
    spelled = read(".", names)
    if not all(_all_match(spelled[name], _THOUSANDS) for name in names):
        return table
    way_out = (
        "Pass decimal='.' if the point is the decimal sign, decimal=',' if it is one of thousands."
    )
    _leave_text("points", spelled, names, numbers, way_out)
    return spelled


def _read_codes(
    table: pa.Table, read: Callable[..., pa.Table], numbers: Collection[str], decimal: str
) -> tuple[pa.Table, list[str]]:
    """Read as text what would not be the same as a number: 007, or more digits than one has."""
    patterns = {f.name: _ZEROS for f in table.schema if pat.is_integer(f.type)}
    for name in (f.name for f in table.schema if pat.is_floating(f.type)):
        if pc.any(pc.greater_equal(table[name], _MOST_DIGITS)).as_py():
            patterns[name] = _LONG
    names = [name for name in patterns if name not in numbers]
    spelled, codes = read(decimal, names) if names else table, []
    for name in names:
        if pc.any(pc.match_substring_regex(spelled[name], patterns[name])).as_py():
            table = table.set_column(table.column_names.index(name), name, spelled[name])
            codes.append(name)
    return table, codes


def _join_thousands(table: pa.Table, text: Collection[str]) -> pa.Table:
    """Read what remained text although it is numbers with a decimal comma, such as 1.234,5."""
    for name in _text_columns(table, text):
        if _all_match(table[name], _NUMBER):
            spelled = pc.replace_substring(pc.replace_substring(table[name], ".", ""), ",", ".")
            at = table.column_names.index(name)
            table = table.set_column(at, name, spelled.cast(pa.float64()))
    return table


def _read_dates(
    table: pa.Table, text: Collection[str], order: str | None
) -> tuple[pa.Table, dict[str, list[str]]]:
    """Read columns of dates such as 31/12/2024; return them by the order of day and month."""
    found: dict[str, list[str]] = {}
    for name in _text_columns(table, text):
        if not _DATE.fullmatch(str(pc.first(table[name]))):
            continue  # which settles it for most columns
        values = table[name].unique().drop_null()
        spelled = values.to_pylist()
        if not all(map(_DATE.fullmatch, spelled)):
            continue
        readings = {each: _to_dates(spelled, each) for each in ([order] if order else _ORDERS)}
        possible = {each: dates for each, dates in readings.items() if isinstance(dates, list)}
        if len(possible) == 1 or (possible and possible["dmy"] == possible["mdy"]):
            each, dates = next(iter(possible.items()))
            rows = pc.index_in(table[name], value_set=values)
            column = pc.take(pa.array(dates, pa.date32()), rows)
            table = table.set_column(table.column_names.index(name), name, column)
            found.setdefault(each, []).append(name)
            continue
        problem = f"{spelled[0]!r} may be day/month or month/day"
        if not possible:
            problem = ", ".join(f"{value!r} is not {_ORDERS[of]}" for of, value in readings.items())
        warnings.warn(
            f"Column {name!r} is read as text: {problem}. "
            "Write dates as 2024-12-31, or pass dates='dmy' or dates='mdy'.",
            stacklevel=4,
        )
    return table, found


def _to_dates(values: Iterable[str], order: str) -> list[datetime.date] | str:
    """Return dates that are written in some order, or the first that is none."""
    dates = []
    for value in values:
        first, second, year = map(int, re.findall(r"\d+", value))
        month, day = (second, first) if order == "dmy" else (first, second)
        try:
            dates.append(datetime.date(year, month, day))
        except ValueError:
            return value
    return dates


def _text_columns(table: pa.Table, text: Collection[str]) -> list[str]:
    """Name the columns that hold text, but for those that have to."""
    return [f.name for f in table.schema if pat.is_string(f.type) and f.name not in text]


def _all_match(column: pa.ChunkedArray, pattern: str) -> bool:
    """Tell whether all of a column matches; the first value settles it for most columns."""
    first = pc.first(column)
    return (
        first.is_valid
        and pc.match_substring_regex(first, pattern).as_py()
        and pc.all(pc.match_substring_regex(column, pattern)).as_py()
    )
