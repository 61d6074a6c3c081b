from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import fcorr
from fcorr.data.files import read_file, write_file


def predict(run, *arguments, data="data.csv", output="out.csv", code=0):
    return run("predict", "model.fcorr", data, "--output", output, *arguments, code=code)


@pytest.mark.parametrize("data", ["data.csv", "data.parquet"])
@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_classes(run, train, files, data, output):
    train("--sensitive", "sex")
    result = predict(run, data=data, output=output)
    assert result.stdout == f"wrote {output}: 200 rows\n"
    assert result.stderr == ""
    assert files() == {"model.fcorr", output}
    table = read_file(output)
    assert table.column_names == ["prediction", "probability_0", "probability_1"]
    model, X = fcorr.load("model.fcorr"), read_file("data.parquet")
    assert table["prediction"].to_pylist() == model.predict(X).tolist()
    np.testing.assert_array_equal(table["probability_1"].to_numpy(), model.predict_proba(X)[:, 1])


def test_regression(run, train):
    train(target="amount")
    predict(run)
    table = read_file("out.csv")
    assert table.column_names == ["prediction"]
    expected = fcorr.load("model.fcorr").predict(read_file("data.csv"))
    np.testing.assert_array_equal(table["prediction"].to_numpy(), expected)


def test_text_labels(run, train):
    train("--drop", "bought", target="job")
    predict(run)
    names = ["prediction", "probability_clerk", "probability_nurse", "probability_pilot"]
    assert read_file("out.csv").column_names == names
    assert set(read_file("out.csv")["prediction"].to_pylist()) <= {"clerk", "nurse", "pilot"}


def test_boolean_labels(run, train, columns):
    write_file(pa.table({**columns, "bought": columns["bought"] == 1}), "bools.parquet")
    train(data="bools.parquet")
    predict(run, data="bools.parquet", output="out.parquet")
    table = read_file("out.parquet")
    assert table.column_names == ["prediction", "probability_False", "probability_True"]
    assert table["prediction"].type == pa.bool_()


def test_kept_columns(run, train):
    train()
    predict(run, "--keep", "key", "--keep", "job")
    table, data = read_file("out.csv"), read_file("data.csv")
    assert table.column_names[:3] == ["key", "job", "prediction"]
    assert table["key"] == data["key"]
    assert table["job"] == data["job"]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (["--keep", "keys"], {}, "--keep: the file has no column 'keys'. Did you mean 'key'?"),
        (["--keep", "prediction"], {}, "--keep: the output has a column 'prediction' of its own."),
        ([], {"output": "nowhere/out.csv"}, "--output: the folder 'nowhere' does not exist."),
        ([], {"output": "out.txt"}, "--output: must end in .csv or .parquet, got 'out.txt'."),
        ([], {"output": "."}, "'.' is a directory"),
        ([], {"data": "nowhere.csv"}, "'nowhere.csv' does not exist"),
    ],
)
def test_bad_usage(run, train, files, columns, arguments, options, message):
    write_file(pa.table({**columns, "prediction": columns["key"]}), "data.csv")
    train("--drop", "prediction")
    result = predict(run, *arguments, **options, code=2)
    assert message in " ".join(result.stderr.split())
    assert files() == {"model.fcorr"}


@pytest.mark.parametrize(
    ("absent", "message"),
    [
        ("job", "got none named 'job' (a column)."),
        ("sex", "got none named 'sex' (a sensitive column)."),
    ],
)
def test_missing_column(run, train, files, absent, message):
    train("--sensitive", "sex")
    write_file(read_file("data.csv").drop_columns(absent), "short.csv")
    (line,) = predict(run, data="short.csv", code=1).stderr.splitlines()
    assert line.startswith("error: X must have every column of the training table")
    assert message in line
    assert files() == {"model.fcorr", "short.csv"}


@pytest.mark.filterwarnings("default::UserWarning")
def test_unseen_category_is_warned_of(run, train, columns):
    train()
    job = columns["job"].copy()
    job[:3] = "baker"
    write_file(pa.table({**columns, "job": job}), "new.csv")
    (line,) = predict(run, data="new.csv").stderr.splitlines()
    assert line.startswith("warning: Categories not seen in training: 3 row(s) of 'job'.")
    assert read_file("out.csv").num_rows == 200


def test_text_that_looks_like_numbers_is_read_as_training_read_it(run, train):
    Path("train.csv").write_text("key,code,a,b,y\n" + "1,07,1,2,0\n2,x,2,1,1\n3,8,3,5,1\n" * 5)
    Path("score.csv").write_text("key,code,a,b\n1,07,1,2\n2,8,2,1\n")
    train(data="train.csv", target="y")
    assert predict(run, data="score.csv").stderr == ""
    X = pa.table({"code": ["07", "8"], "a": [1, 2], "b": [2, 1]})
    expected = fcorr.load("model.fcorr").predict_proba(X)[:, 1]
    np.testing.assert_array_equal(read_file("out.csv")["probability_1"].to_numpy(), expected)


def test_columns_in_another_order(run, train):
    train()
    predict(run)
    before = Path("out.csv").read_bytes()
    data = read_file("data.csv")
    write_file(data.select(data.column_names[::-1]), "reversed.csv")
    predict(run, data="reversed.csv")
    assert Path("out.csv").read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"key,age\n1,2\n"])
def test_file_that_is_no_model(run, files, content):
    Path("model.fcorr").write_bytes(content)
    (line,) = predict(run, code=1).stderr.splitlines()
    assert line.startswith("error: 'model.fcorr' is not a whole model file")
    assert files() == {"model.fcorr"}


def test_failed_run_leaves_the_old_output(run, train):
    train()
    predict(run)
    before = Path("out.csv").read_bytes()
    Path("bad.csv").write_text("sex,age\nf,1\nm\n")
    predict(run, data="bad.csv", code=1)
    assert Path("out.csv").read_bytes() == before
