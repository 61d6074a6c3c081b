import gzip
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
    assert table.column_names == ["key", "prediction", "probability_0", "probability_1"]
    model, X = fcorr.load("model.fcorr"), read_file("data.parquet")
    assert table["prediction"].to_pylist() == model.predict(X).tolist()
    np.testing.assert_array_equal(table["probability_1"].to_numpy(), model.predict_proba(X)[:, 1])


@pytest.mark.parametrize(
    ("target", "names", "kind"),
    [
        ("amount", [], pa.float64()),
        ("job", ["probability_clerk", "probability_nurse", "probability_pilot"], pa.string()),
        ("yes", ["probability_False", "probability_True"], pa.bool_()),
    ],
)
def test_amounts_text_and_booleans(run, train, columns, target, names, kind):
    table = pa.table({**columns, "yes": columns["bought"] == 1}).drop_columns("bought")
    write_file(table, "other.parquet")
    train(data="other.parquet", target=target)
    predict(run, data="other.parquet", output="out.parquet")
    found = read_file("out.parquet")
    assert found.column_names == ["key", "prediction", *names]
    assert found["prediction"].type == kind
    expected = fcorr.load("model.fcorr").predict(table)
    assert found["prediction"].to_pylist() == expected.tolist()


@pytest.mark.parametrize(
    ("data", "output"),
    [
        ("data.csv", "data-predictions.csv"),
        ("data.csv.gz", "data-predictions.csv"),
        ("data.parquet", "data-predictions.parquet"),
    ],
)
def test_output_of_the_same_kind_by_default(run, train, data, output):
    Path("data.csv.gz").write_bytes(gzip.compress(Path("data.csv").read_bytes()))
    train()
    assert run("predict", "model.fcorr", data).stdout == f"wrote {output}: 200 rows\n"
    assert read_file(output)["key"].to_pylist() == list(range(200))


def test_predictions_are_written_as_the_data_is(run, train, european):
    train(data="plain.csv", target="y")
    run("predict", "model.fcorr", "plain.csv")
    run("predict", "model.fcorr", "european.csv")
    expected = read_file("plain-predictions.csv")
    header, first, *_ = Path("european-predictions.csv").read_text().splitlines()
    assert header == '"key";"prediction";"probability_0";"probability_1"'
    assert first.startswith('"K0";')
    assert first.count(",") == 2
    assert read_file("european-predictions.csv").equals(expected)
    predict(run, data="european.csv", output="out.tsv")
    assert "\t" in Path("out.tsv").read_text()
    assert read_file("out.tsv").equals(expected)


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_date_that_may_be_another_needs_the_order(run, train, european):
    train(data="plain.csv", target="y")
    Path("one.csv").write_text("key;value;day;size\nK0;1000,0;01.12.2000;S\n")
    result = predict(run, data="one.csv", code=1)
    assert "Column 'day' is read as text: '01.12.2000' may be day/month or" in result.stderr
    assert "or pass --dates dmy or --dates mdy." in result.stderr
    predict(run, "--dates", "dmy", data="one.csv")
    expected = run("predict", "model.fcorr", "plain.csv") and read_file("plain-predictions.csv")
    assert read_file("out.csv").equals(expected.slice(0, 1))


def test_numbers_that_may_be_others_need_the_decimal_sign(run, train, columns):
    train("--drop", "amount")
    Path("one.csv").write_text("sex;age;job\nf;45.000;clerk\n")
    error = (
        "error: Columns of numbers with points can be read in two ways: 'age', such as '45.000'. "
        "Pass --decimal '.' if the point is the decimal sign, --decimal ',' if it is one of "
        "thousands."
    )
    assert " ".join(predict(run, data="one.csv", code=1).stderr.split()) == error
    predict(run, "--decimal", ".", data="one.csv")
    Path("two.csv").write_text("sex,age,job\nf,45.0,clerk\n")
    run("predict", "model.fcorr", "two.csv", "--output", "two-out.csv")
    found, expected = read_file("out.csv"), read_file("two-out.csv")
    assert found["probability_1"].to_pylist() == expected["probability_1"].to_pylist()


def test_keys_are_copied_to_the_letter_but_for_what_looks_like_a_formula(run, train, columns):
    key = ["007", "1e3", "NA", *(f"={i}+1" for i in range(197))]
    job = [{"clerk": "@clerk", "nurse": "+nurse"}.get(job, "-1 x") for job in columns["job"]]
    write_file(pa.table({**columns, "key": key, "job": job}), "odd.csv")
    train(data="odd.csv", target="job")
    result = predict(run, data="odd.csv")
    assert result.stderr == (
        "escaped 397 cell(s) with a formula or control characters (--verbatim leaves them)\n"
    )
    found = read_file("out.csv", text=["key"])["key"].to_pylist()
    assert found == [*key[:2], None, *(f"'{text}" for text in key[3:])]
    assert Path("out.csv").read_text().splitlines()[3].startswith('"NA",')
    predict(run, "--verbatim", data="odd.csv")
    table = read_file("out.csv")
    assert table["key"].to_pylist()[3:] == key[3:]
    assert set(table["prediction"].to_pylist()) <= {"@clerk", "+nurse", "-1 x"}
    assert "probability_@clerk" in table.column_names


def test_rows_are_lines_of_the_file_and_the_old_output_stays(run, train, files):
    train("--sensitive", "sex")
    predict(run)
    before = Path("out.csv").read_bytes()
    Path("bad.csv").write_text("sex,age,job,amount\nf,1,clerk,1\nm,old,clerk,1\n")
    (line,) = predict(run, data="bad.csv", code=1).stderr.splitlines()
    assert "Column 'age' must hold numbers, got text: 'old' in line 3. Convert the col" in line
    assert line.endswith("train with --kinds age=categorical.")
    assert files() == {"model.fcorr", "bad.csv", "out.csv"}
    assert Path("out.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--keep", "keys"], "--keep: must name columns of the table, got 'keys'. Did you"),
        (["--keep", "prediction"], "that the output has not of its own, got 'prediction'."),
        ([], "--keep: must name columns that the output has not of its own, got 'prediction'."),
        (["--rate"], "--rate: is for models of numbers, and this one predicts classes."),
        (["--engine", "ray"], "--engine: is for Parquet data and output."),
        (["--workers", 2], "--workers: is for Parquet data and output."),
        (
            ["--workers", 2, "--keep", "key", "-o", "out.parquet"],
            "--workers: must be an integer of at least 1, and left out without Ray, got 2.",
        ),
        (["-o", "nowhere/out.csv"], "--output: the folder 'nowhere' does not exist."),
        (["-o", "out.txt"], "--output: must end in .csv, .tsv or .parquet, got 'out.txt'."),
    ],
)
def test_bad_usage(refuse, train, columns, arguments, message):
    write_file(pa.table({**columns, "prediction": columns["key"]}), "data.csv")
    train("--drop", "prediction")
    data = "data.parquet" if "out.parquet" in arguments else "data.csv"
    refuse(message, "predict", "model.fcorr", data, "--output", "out.csv", *arguments)


def test_a_part_of_the_data_is_not_replaced(run, train, columns):
    train()
    Path("parts").mkdir()
    write_file(pa.table(columns), "elsewhere.parquet")
    Path("parts/1.parquet").symlink_to("../elsewhere.parquet")
    for output in ("parts/1.parquet", "elsewhere.parquet"):
        result = predict(run, data="parts", output=output, code=2)
        assert "is an input, or another output, and would be replaced." in result.stderr


def test_text_that_looks_like_numbers_is_read_as_training_read_it(run, train):
    Path("train.csv").write_text("key,code,a,b,y\n" + "1,07,1,2,0\n2,x,2,1,1\n3,8,3,5,1\n" * 5)
    Path("score.csv").write_text("key,code,a,b\n1,07,1,2\n2,8,2,1\n")
    train(data="train.csv", target="y")
    assert predict(run, data="score.csv").stderr == ""
    X = pa.table({"code": ["07", "8"], "a": [1, 2], "b": [2, 1]})
    expected = fcorr.load("model.fcorr").predict_proba(X)[:, 1]
    np.testing.assert_array_equal(read_file("out.csv")["probability_1"].to_numpy(), expected)


def test_expected_value_and_rate(run, train, policies):
    options = ("--objective", "poisson", "--exposure", "years", "--sample-weight", "w")
    train(*options, data="policies.parquet", target="claims")
    predict(run, data="policies.parquet")
    expected = read_file("out.csv")
    assert expected.column_names == ["key", "prediction"]  # exposure and weight are no keys
    write_file(policies.drop_columns(["years", "claims", "w"]), "new.parquet")
    predict(run, "--rate", data="new.parquet", output="rates.csv")
    rates = read_file("rates.csv")
    assert rates.column_names == ["key", "rate"]
    years = policies["years"].to_numpy()
    np.testing.assert_allclose(
        expected["prediction"].to_numpy(), years * rates["rate"].to_numpy(), rtol=1e-12
    )
    (line,) = predict(run, data="new.parquet", output="no.csv", code=1).stderr.splitlines()
    assert "Column 'years' (exposure) is missing" in line
    assert not Path("no.csv").exists()


@pytest.mark.parametrize("output", [(), ("-o", "-")])
def test_standard_input_and_output(run, train, files, output):
    train()
    predict(run)
    before = files()
    result = run("predict", "model.fcorr", "-", *output, stdin=Path("data.csv").read_text())
    assert result.stdout_bytes == Path("out.csv").read_bytes()
    assert result.stderr == ""
    assert files() == before
    # It is CSV whatever the data, and a file may be compressed.
    result = run("predict", "model.fcorr", "data.parquet", "-o", "-")
    Path("printed.csv").write_bytes(result.stdout_bytes)
    assert read_file("printed.csv").equals(read_file("out.csv"))
    predict(run, output="out.csv.gz")
    assert gzip.decompress(Path("out.csv.gz").read_bytes()) == Path("out.csv").read_bytes()
