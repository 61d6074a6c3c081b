"""Files and folders of tables: read with the right types, written whole, refused with the place."""

import datetime
import gzip
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from fcorr._core import InvalidInputError
from fcorr.data.files import (
    Dialect,
    disarm,
    file_ending,
    find_delimiter,
    read_file,
    read_piece,
    read_verbatim,
    recognise_file,
    split_parquet,
    write_file,
)

TABLE = pa.table(
    {
        "a": [1, 2, None],
        "b": ["x", None, "é"],
        "c": pa.array(["u", "v", "u"]).dictionary_encode(),
    }
)
PARQUET = pa.BufferOutputStream()
pa_parquet.write_table(TABLE, PARQUET)
PARQUET = PARQUET.getvalue().to_pybytes()


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize("name", ["t.csv", "t.CSV", "t.tsv", "t.csv.gz", "t.pq", "t.Parquet"])
def test_round_trip(tmp_path, name):
    write_file(TABLE, tmp_path / name)
    assert read_file(tmp_path / name).to_pydict() == TABLE.to_pydict()
    assert read_file(str(tmp_path / name)).to_pydict() == TABLE.to_pydict()
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("t.CSV.gz", gzip.compress(b"a,b\n1,x\n", mtime=0), {"a": [1], "b": ["x"]}),
        (
            "missing.csv",
            "a,b\n1,x\n,\nNA,NA\nNaN,N/A\nnull,NULL\n",
            {"a": [1, *[None] * 4], "b": ["x", *[None] * 4]},
        ),
        (
            "types.csv",
            '\ufeffi,f,t,s\n1,1.5,true,"a,b"\n2,2,false,"c\nd"\n',
            {"i": [1, 2], "f": [1.5, 2.0], "t": [True, False], "s": ["a,b", "c\nd"]},
        ),
        ("delimiter at the end.csv", "a;b;\n1;2;\n", {"a": [1], "b": [2]}),
        ("and a field.csv", "a;b;\n1;2;3\n", {"a": [1], "b": [2], "": [3]}),
        (
            "only begins like dates or numbers.csv",
            "a;b;c\n31/12/2024;1,5;31/12/24\nnever;low;31/12/24\n",
            {"a": ["31/12/2024", "never"], "b": ["1,5", "low"], "c": ["31/12/24"] * 2},
        ),
    ],
)
def test_csv(write, name, content, expected):
    assert read_file(write(name, content)).to_pydict() == expected


def test_text_that_looks_like_numbers_and_keys_that_are_copied_as_they_are(write):
    path = write("t.csv", "zip,n\n01234,1\n,2\n")
    assert read_file(path)["n"].to_pylist() == [1, 2]
    table = read_file(path, text=["zip", "not there"])
    assert table.to_pydict() == {"zip": ["01234", None], "n": [1, 2]}
    table = read_verbatim(write("t.parquet", PARQUET), ["b", "a"])
    assert table.column_names == ["b", "a"]
    assert table["a"].type == pa.int64()
    path = write("t.csv", 'key,n,k2\n007,1,NA\n1e3,2,\n"a,b",3,true\n')
    assert read_verbatim(path, ["k2", "key"]).to_pydict() == {
        "k2": ["NA", "", "true"],
        "key": ["007", "1e3", "a,b"],
    }


def test_line_breaks_within_quotes_wherever_they_fall(write):
    n = 300_000  # several of the reader's blocks
    table = read_file(write("t.csv", "a,b\n" + '1,"x\ny"\n' * n))
    assert table.num_rows == n
    assert table["b"].unique().to_pylist() == ["x\ny"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "cannot be read as CSV .*[Ee]mpty.*Check that the file is whole"),
        ("t.csv", "a,b\n1,2\n3\n", "must have 2 fields .* got 1 in line 3: '3'. Correct the line"),
        ("t.csv", b"a,\xe9\n1,x\n", r"in line 1 \('é', if it is Latin-1\)"),
        (
            *("t.csv", b'a,b\n1,x\n"2,5",caf\xe9\n'),
            r"must be text in UTF-8, got byte 0xe9 in line 3, column 'b' \('café', if it is "
            r"Latin-1\)\. Save the file as UTF-8",
        ),
        ("t.csv.gz", gzip.compress(b"a,b\n1,x\n\xe9,y\n", mtime=0), "0xe9 in line 3, column 'a'"),
        ("t.csv", "a,b\n1,2\n".encode("utf-16"), "text in UTF-8, got UTF-16. Save"),
        ("t.csv", "a,b\n1,2\n\n3,4,5\n", "got 3 in line 4: '3,4,5'"),
        ("t.csv", 'a,b\n"1\n1",2\n3,4,5\n', "got 3 in line 4: '3,4,5'"),
        ("t.csv", "a,b\n" + "1,2\n" * 500_000 + "3\n", "got 1 in line 500002: '3'"),
        ("t.csv", "a,b,a\n1,2,3\n", "names must differ, got 'a' more than once"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-12], "read as CSV .*Truncated"),
        ("t.csv", b"PK\x03\x04,\r\xff,\n", "cannot be read as CSV .*kind its name says"),
        ("t.csv", "a,b\n1,5,2\n", "quote fields that hold ','"),
        ("t.parquet", "a,b\n1,2\n", "cannot be read as Parquet .*kind its name says"),
        ("t.parquet", "", "cannot be read as Parquet .*0 bytes"),
        ("t.parquet", PARQUET[:-1], "cannot be read as Parquet"),
        ("t.parquet", PARQUET.replace(b"x", b"\xff"), "cannot be read as Parquet"),
        (
            "t.txt",
            "a,b\n1,2\n",
            r"'.*t\.txt' must end in \.csv, \.tsv or \.parquet.*Save it as one",
        ),
        (os.fsdecode(b"caf\xe9.csv"), "a,b\n1,2\n", r"caf\\udce9.csv' cannot be read as CSV"),
        ("t.csv", b"a;b\n1;2\n3\n", "must have 2 fields in every line.*got 1 in line 3"),
        ("t.csv", b"a;b\n1;x\n2,5;caf\xe9\n", "in line 3, column 'b' .'café', if it is Latin-1"),
    ],
)
def test_broken_files(write, name, content, message):
    with pytest.raises(InvalidInputError, match=message):
        read_file(write(name, content))


@pytest.mark.parametrize("name", ["t.txt", "t.json.gz", "t"])
def test_unknown_ending_is_not_written(tmp_path, name):
    with pytest.raises(InvalidInputError, match=r"must end in \.csv, \.tsv or \.parquet"):
        write_file(TABLE, tmp_path / name)
    assert os.listdir(tmp_path) == []


# Dialects of CSV


@pytest.mark.parametrize(
    ("name", "content", "delimiter", "note"),
    [
        ("t.csv", "a,b\n1,x\n", ",", ""),
        ("t.csv", "a;b\n1;x\n", ";", "';' between fields"),
        ("t.csv", "\ufeffa;b\r\n1;x\r\n", ";", "';' between fields"),
        ("t.csv", "\n\na|b\n1|x\n", "|", "'|' between fields"),
        ("t.tsv", "a\tb\n1\tx\n", "\t", ""),
        ("t.TSV.gz", gzip.compress(b"a\tb\n1\tx\n", mtime=0), "\t", ""),
        ("t.csv.gz", gzip.compress(b"a;b\n1;x\n", mtime=0), ";", "';' between fields"),
    ],
)
def test_delimiters(write, name, content, delimiter, note):
    path = write(name, content)
    table, dialect, told = recognise_file(path)
    assert table.to_pydict() == {"a": [1], "b": ["x"]}
    assert dialect == (delimiter, ".", None)
    assert told == (f"{str(path)!r} is read with {note}" if note else "")
    assert find_delimiter(path) == delimiter
    assert read_verbatim(path, ["a"]).to_pydict() == {"a": ["1"]}
    given = recognise_file(path, dialect=Dialect(delimiter))
    assert given[0].equals(table)
    assert given[2] == ""


@pytest.mark.parametrize(
    ("header", "row", "delimiter"),
    [
        ("a;b,c;d", "1;2;3", ";"),
        ('"a;b;c;d",e', "1,2", ","),
        ('"a,b\nc,d";e', "1;2", ";"),
        ("one", "1", ","),
        # What does not split the rows is part of a name.
        ("id,a|b|c", "1,2", ","),
        ("Income (EUR;USD;GBP),y", "1,2", ","),
        ("a;b,c;d", "1,2", ","),
    ],
)
def test_names_may_hold_other_delimiters(write, header, row, delimiter):
    path = write("t.csv", f"{header}\n{row}\n{row}\n")
    table, dialect, _ = recognise_file(path)
    assert dialect.delimiter == delimiter
    assert (table.num_rows, table.num_columns) == (2, row.count(delimiter) + 1)


@pytest.mark.parametrize(
    ("rows", "expected", "decimal"),
    [
        ("1,5;7\n2;8", {"a": [1.5, 2.0], "b": [7, 8]}, ","),
        ("1.234,5;7.000\n-2;8.500.000", {"a": [1234.5, -2.0], "b": [7000.0, 8500000.0]}, ","),
        (";0,25\nNA;1,5e-3", {"a": [None, None], "b": [0.25, 0.0015]}, ","),
        ("1,234567;x\n;y", {"a": [1.234567, None], "b": ["x", "y"]}, ","),
        ("1.000,125;x\n2,500;y", {"a": [1000.125, 2.5], "b": ["x", "y"]}, ","),
        ("1234,567;x\n2,500;y", {"a": [1234.567, 2.5], "b": ["x", "y"]}, ","),
        ("1.5;7\n2;8", {"a": [1.5, 2.0], "b": [7, 8]}, "."),
        # Points are decimal signs, and what has a comma is something else.
        ("1.5;3,4\n2.25;5,6", {"a": [1.5, 2.25], "b": ["3,4", "5,6"]}, "."),
        ("x,5;7\n2;8", {"a": ["x,5", "2"], "b": [7, 8]}, "."),
    ],
)
@pytest.mark.filterwarnings("ignore:Columns of numbers with commas")
def test_decimal_commas(write, rows, expected, decimal):
    path = write("t.csv", f"a;b\n{rows}\n")
    table, dialect, told = recognise_file(path)
    assert table.to_pydict() == expected
    assert dialect == (";", decimal, None)
    assert told.endswith("';' between fields" + ", decimal commas" * (decimal == ","))
    assert read_file(path, dialect=Dialect(None, decimal)).to_pydict() == expected
    assert read_file(path, text=["a"])["a"].type == pa.string()


def test_commas_of_thousands_are_not_taken_for_decimal_signs(write):
    path = write("t.tsv", "a\tb\n1,234\t1\n12,345\t2\n")
    with pytest.warns(UserWarning, match=r"read as text: 'a', such as '1,234'. Pass decimal=','"):
        table = read_file(path)
    assert table["a"].to_pylist() == ["1,234", "12,345"]
    assert read_file(path, dialect=Dialect(decimal=","))["a"].to_pylist() == [1.234, 12.345]
    # Only where it is given between commas, or beside points that are decimal signs.
    for content in ('a,b\n"1,5",2\n', "a;b\n1,5;52.25\n"):
        path = write("t.csv", content)
        with pytest.warns(UserWarning, match=r"read as text: 'a', such as '1,5'. Pass decimal"):
            assert read_file(path)["a"].to_pylist() == ["1,5"]
        assert read_file(path, dialect=Dialect(decimal=","))["a"].to_pylist() == [1.5]


def test_points_that_may_be_of_thousands_leave_text(write):
    path = write("t.csv", "a;b;c\n45.000;1;x\n;2;y\n7;3;z\n")
    with pytest.warns(UserWarning, match=r"read as text: 'a', such as '45.000'. Pass decimal='.'"):
        assert read_file(path)["a"].to_pylist() == ["45.000", None, "7"]
    for decimal, value in ((".", 45.0), (",", 45_000.0)):
        assert read_file(path, dialect=Dialect(decimal=decimal))["a"].to_pylist() == [
            value,
            None,
            7,
        ]


@pytest.mark.parametrize(
    "rows",
    ["45.000;0.125", "45.000;1.5", "45.000;1.50", "45.000;1e3", "4500;45.25", "45.000,1.000"],
)
def test_points_are_decimal_signs_where_one_number_shows_it(write, rows):
    path = write("t.csv", f"{'a,b' if ',' in rows else 'a;b'}\n{rows}\n")
    assert read_file(path)["a"].to_pylist() == [float(rows[:4].rstrip("."))]


DAY = datetime.date(2024, 12, 31)


@pytest.mark.parametrize(
    ("values", "order", "dates"),
    [
        (["31/12/2024", "1/2/2024"], "day/month/year", [DAY, datetime.date(2024, 2, 1)]),
        (
            ["31.12.2024", "", "01.02.2024"],
            "day/month/year",
            [DAY, None, datetime.date(2024, 2, 1)],
        ),
        (["12-31-2024", "1-2-2024"], "month/day/year", [DAY, datetime.date(2024, 1, 2)]),
        (
            ["02/02/2024", "03/03/2024"],
            "day/month/year",
            [datetime.date(2024, i, i) for i in (2, 3)],
        ),
    ],
)
def test_dates(write, values, order, dates):
    path = write("t.csv", "a,b\n" + "".join(f"{value},1\n" for value in values))
    table, _, told = recognise_file(path)
    assert table["a"].to_pylist() == dates
    assert told.endswith(f"is read with {order} in 'a'")
    assert read_file(path, text=["a"])["a"].type == pa.string()


@pytest.mark.parametrize(
    ("values", "order", "message"),
    [
        (["01/02/2024", "03/04/2024"], None, "'01/02/2024' may be day/month or month/day. Write"),
        (
            *(["31/12/2024", "12/31/2024"], None),
            "'12/31/2024' is not day/month/year, '31/12/2024' is not month/day/year. Write",
        ),
        (["30/02/2024"], None, "'30/02/2024' is not day/month/year, '30/02/2024' is not month"),
        (["12/31/2024"], "dmy", "'12/31/2024' is not day/month/year. Write dates as 2024-12-31"),
    ],
)
def test_dates_that_may_be_others_stay_text(write, values, order, message):
    path = write("t.csv", "a,b\n" + "".join(f"{value},1\n" for value in values))
    with pytest.warns(UserWarning, match=f"Column 'a' is read as text: {message}"):
        table = read_file(path, dialect=Dialect(dates=order))
    assert table["a"].to_pylist() == values


@pytest.mark.parametrize(("order", "month"), [("dmy", 2), ("mdy", 1)])
def test_the_order_of_dates_can_be_given(write, order, month):
    path = write("t.csv", "a,b\n01/02/2024,1\n")
    table, _, told = recognise_file(path, dialect=Dialect(dates=order))
    assert (table["a"][0].as_py().month, told) == (month, "")


@pytest.mark.parametrize(
    ("dialect", "message"),
    [
        (Dialect(","), "must have ',' between fields, got .* has ';': 'a;b'. Pass delimiter=';'"),
        (Dialect(";;"), "delimiter must be a tab or one ASCII character"),
        (Dialect("é"), "delimiter must be a tab or one ASCII character"),
        (Dialect("a"), "delimiter must be a tab or one ASCII character"),
        (Dialect(decimal=";"), "decimal must be one of '.', ',', got ';'"),
        (Dialect(dates="ymd"), "dates must be one of 'dmy', 'mdy', got 'ymd'"),
    ],
)
def test_dialects_that_do_not_fit(write, dialect, message):
    with pytest.raises(InvalidInputError, match=message):
        read_file(write("t.csv", "a;b\n1;2\n"), dialect=dialect)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
@pytest.mark.parametrize("delimiter", [",", ";", "|"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_written_as_it_was_read(tmp_path, name, delimiter, decimal):
    table = pa.table({"a": [0.5, 1e-7, None], "b": ["x;y", "=1+1", 'a"b,\tc'], "c": [1, 2, 3]})
    write_file(table, tmp_path / name, Dialect(delimiter, decimal))
    found, dialect, _ = recognise_file(tmp_path / name, dialect=Dialect(decimal=decimal))
    assert found.equals(table)
    assert dialect.delimiter == ("\t" if name == "t.tsv" else delimiter)
    assert ("0,5" in (tmp_path / name).read_text()) is (decimal == ",")


# Folders of Parquet files


@pytest.fixture
def write_part(tmp_path):
    def write_part(name, **columns):
        folder = tmp_path / "claims.csv"  # whatever it is called
        folder.mkdir(exist_ok=True)
        pa_parquet.write_table(pa.table(columns), folder / name)
        return folder

    return write_part


def test_parts_are_read_in_the_order_of_their_names(write_part):
    categories = [pa.array(values).dictionary_encode() for values in (["u", "v"], ["w", "u"])]
    folder = write_part("b.parquet", key=["007", "NA"], x=[3, 4], c=categories[1])
    write_part("a.parquet", x=[1, 2], key=["1", "2"], c=categories[0])  # columns in another order
    (folder / "_SUCCESS").write_text("")
    assert read_file(folder).to_pydict() == {
        "x": [1, 2, 3, 4],
        "key": ["1", "2", "007", "NA"],
        "c": ["u", "v", "w", "u"],
    }
    assert read_verbatim(folder, ["key"]).column_names == ["key"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": ["text"]}, "'x' is string in 'b.parquet' and int64 in 'a.parquet'"),
        ({"z": [1]}, "'x' is no such column in 'b.parquet' and int64 in 'a.parquet'"),
        ({"x": [1], "z": [1]}, "'z' is int64 in 'b.parquet' and no such column in 'a.parquet'"),
    ],
)
def test_parts_with_other_columns_are_refused(write_part, columns, message):
    write_part("a.parquet", x=[1])
    with pytest.raises(InvalidInputError, match=message):
        read_file(write_part("b.parquet", **columns))


def test_long_row_groups_are_read_in_little_memory(tmp_path):
    n = 1_000_000
    table = pa.table({f"x{i}": np.random.default_rng(i).normal(size=n) for i in range(4)})
    pa_parquet.write_table(table, tmp_path / "t.parquet", row_group_size=n)
    schema, (piece,), n_rows = split_parquet(tmp_path / "t.parquet")
    assert (schema.names, n_rows) == (table.column_names, n)
    before, peak, firsts = pa.total_allocated_bytes(), 0, []
    for first, batch in read_piece(piece, schema.names, 20_000):
        peak = max(peak, pa.total_allocated_bytes() - before)
        firsts.append(first)
        assert batch.equals(table.slice(first, 20_000))
    assert firsts == list(range(0, n, 20_000))
    assert peak < table.nbytes / 2


def test_pieces_are_row_groups_up_to_a_number_of_rows(tmp_path, write_part):
    folder = write_part("a.parquet", x=[1, 2])
    pa_parquet.write_table(pa.table({"x": range(10)}), folder / "b.parquet", row_group_size=3)
    _, pieces, n_rows = split_parquet(folder, 6)
    found = [(os.path.basename(each.file), each.groups, each.first_row) for each in pieces]
    assert found == [("a.parquet", [0], 0), ("b.parquet", [0, 1], 0), ("b.parquet", [2, 3], 6)]
    assert n_rows == 12
    batches = [batch for piece in pieces for _, batch in read_piece(piece, ["x"], 4)]
    assert pa.concat_tables(batches)["x"].to_pylist() == [1, 2, *range(10)]
    _, pieces, _ = split_parquet(folder, 1)  # a row group is not cut
    assert [each.groups for each in pieces] == [[0], [0], [1], [2], [3]]


def test_broken_folders(tmp_path, write_part):
    for name in ("nowhere.csv", "nowhere.parquet"):
        with pytest.raises(FileNotFoundError, match=name):
            read_file(tmp_path / name)
    with pytest.raises(InvalidInputError, match="must hold Parquet files, found none"):
        read_file(tmp_path)
    folder = write_part("a.parquet", x=[1])
    (folder / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidInputError, match="cannot be read as Parquet"):
        read_file(folder)


# Text that would act where it is opened


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()]
)
@pytest.mark.parametrize("encode", [False, True])
def test_text_of_every_type_is_disarmed(kind, encode):
    column = pa.array([b"=1+1", None, b"\x1b[2J", b"fine"], pa.binary()).cast(kind)
    if encode and kind != pa.string_view():  # which has no dictionaries
        column = column.dictionary_encode()
    safe, n_changed = disarm(pa.table({"key": column}))
    assert safe["key"].to_pylist() == ["'=1+1", None, r"\u001b[2J", "fine"]
    assert n_changed == 2


def test_text_is_disarmed():
    texts = ["=HYPERLINK(1)", "+49 170", "@x", "-A", "\t=1"]
    texts += ["-7.5e3", "+1,5", "50%", "a=b", None, ""]
    table = pa.table(
        {
            "=name": texts,
            "code": pa.array(["\x1b[2Ja", "b\u202e\x9b\u2028", *["fine\nline\t2"] * 9]),
            "kind": pa.array(["=x", *["y"] * 10]).dictionary_encode(),
            "number": [-1.5] * 11,
        }
    )
    safe, n_changed = disarm(table)
    assert safe.column_names == ["'=name", "code", "kind", "number"]
    expected = ["'=HYPERLINK(1)", "'+49 170", "'@x", "'-A", "'\t=1", *texts[5:]]
    assert safe["'=name"].to_pylist() == expected
    codes = [r"\u001b[2Ja", r"b\u202e\u009b\u2028", "fine\nline\t2"]
    assert safe["code"].to_pylist()[:3] == codes
    assert safe["kind"].to_pylist()[:2] == ["'=x", "y"]
    assert safe["number"].equals(table["number"])
    assert n_changed == 1 + 5 + 2 + 1
    assert disarm(safe)[1] == 0


@pytest.mark.parametrize(
    ("lines", "kept", "others"),
    [
        (["01,1", "1,2", '"2",0'], ["01", "1", "2"], [1, 2, 0]),
        (["1234567890123456789012,1", "2,2"], ["1234567890123456789012", "2"], [1, 2]),
        (["00012345678,1.5", ",2"], ["00012345678", None], [1.5, 2.0]),
    ],
)
def test_codes_stay_what_they_are(tmp_path, lines, kept, others):
    path = tmp_path / "codes.csv"
    path.write_text("\n".join(["code,x", *lines]))
    table, _, note = recognise_file(path)
    assert (table["code"].to_pylist(), table["x"].to_pylist()) == (kept, others)
    assert note.endswith("'code' as text, as codes such as 007 are")
    table, _, note = recognise_file(path, numbers=["code"])
    assert pa.types.is_integer(table["code"].type) or pa.types.is_floating(table["code"].type)
    assert note == ""


def test_numbers_are_no_codes(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("a,b,c,d\n0,0.5,1e20,1577836800000000000\n10,05.5,-3,2\n")
    table, _, note = recognise_file(path)
    assert [str(type_) for type_ in table.schema.types] == ["int64", "double", "double", "int64"]
    assert note == ""


def test_endings_of_one_kind_are_one():
    names = ("claims.csv.gz", "claims.TSV", "claims.pq")
    assert [file_ending(name) for name in names] == [".csv", ".tsv", ".parquet"]
