"""A folder of Parquet files is one table, if its parts agree."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fcorr import InvalidInputError
from fcorr.data.files import read_file, read_verbatim


def write(folder, name, **columns):
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / name)


def test_parts_are_read_in_the_order_of_their_names(tmp_path):
    folder = tmp_path / "claims.csv"  # whatever it is called
    write(folder, "b.parquet", x=[3, 4], key=["007", "NA"])
    write(folder, "a.parquet", x=[1, 2], key=["1", "2"])
    (folder / "_SUCCESS").write_text("")
    assert read_file(folder).to_pydict() == {"x": [1, 2, 3, 4], "key": ["1", "2", "007", "NA"]}
    assert read_verbatim(folder, ["key"]).column_names == ["key"]


def test_columns_in_another_order(tmp_path):
    write(tmp_path / "t", "a.parquet", x=[1], y=["a"])
    write(tmp_path / "t", "b.parquet", y=["b"], x=[2])
    assert read_file(tmp_path / "t").to_pydict() == {"x": [1, 2], "y": ["a", "b"]}


def test_dictionaries_of_the_parts_are_joined(tmp_path):
    for name, values in (("a.parquet", ["u", "v"]), ("b.parquet", ["w", "u"])):
        write(tmp_path / "t", name, x=pa.array(values).dictionary_encode())
    assert read_file(tmp_path / "t")["x"].to_pylist() == ["u", "v", "w", "u"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": ["text"]}, "'x' is string in 'b.parquet' and int64 in 'a.parquet'"),
        ({"z": [1]}, "'x' is no such column in 'b.parquet' and int64 in 'a.parquet'"),
        ({"x": [1], "z": [1]}, "'z' is int64 in 'b.parquet' and no such column in 'a.parquet'"),
    ],
)
def test_parts_with_other_columns_are_refused(tmp_path, columns, message):
    write(tmp_path / "t", "a.parquet", x=[1])
    write(tmp_path / "t", "b.parquet", **columns)
    with pytest.raises(InvalidInputError, match=message):
        read_file(tmp_path / "t")


def test_a_folder_without_parquet(tmp_path):
    with pytest.raises(InvalidInputError, match="must hold Parquet files, found none"):
        read_file(tmp_path)


def test_a_broken_part(tmp_path):
    write(tmp_path / "t", "a.parquet", x=[1])
    (tmp_path / "t" / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidInputError, match="cannot be read as Parquet"):
        read_file(tmp_path / "t")
