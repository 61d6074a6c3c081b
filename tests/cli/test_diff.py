import json

import pyarrow as pa
import pytest

from fcorr.data.files import read_file, write_file


@pytest.fixture
def model(train):
    train("--sensitive", "sex")


def test_data_that_fits(run, model):
    result = run("diff", "model.fcorr", "data.csv")
    # The target of the training table is none, a key that it was told to leave out is one.
    assert result.stdout == (
        "1 difference from the training table:\n"
        "- Column 'key' is not in the training table: ignored\n"
    )
    assert result.stderr == ""


def test_data_that_the_model_can_do_with(run, model):
    table = read_file("data.csv").drop_columns(["sex", "key"])
    table = table.set_column(0, "age", pa.array([999.0] * 200))
    write_file(table, "new.tsv")
    found = json.loads(run("diff", "model.fcorr", "new.tsv", "--json").stdout)
    assert found["fits"] is True
    (one,) = found["differences"]  # the model does not read sex, which may be absent
    assert (one["column"], one["problem"], one["n_rows"]) == ("age", "out of range", 200)
    assert one["is_fatal"] is False


def test_data_that_the_model_cannot_predict_for(run, model, folder):
    lines = (folder / "data.csv").read_text().splitlines()
    (folder / "new.csv").write_text("\n".join([lines[0].replace("job", "jobb"), *lines[1:]]))
    result = run("diff", "model.fcorr", "new.csv", code=3)
    assert "- Column 'job' is missing (Did you mean 'jobb'?)\n" in result.stdout
    assert result.stderr == ""
    assert run("predict", "model.fcorr", "new.csv", code=1).stdout == ""
    result = run("diff", "model.fcorr", "new.csv", "--json", code=3)
    assert json.loads(result.stdout)["fits"] is False


def test_rows_are_lines_of_the_file(run, train, policies, folder):
    train("--objective", "poisson", "--exposure", "years", data="policies.parquet", target="claims")
    years = policies["years"].to_pylist()
    years[7] = -1.0
    at = policies.column_names.index("years")
    write_file(policies.set_column(at, "years", pa.array(years)), "new.csv")
    assert "got -1.0 in line 9\n" in run("diff", "model.fcorr", "new.csv", code=3).stdout
    found = json.loads(run("diff", "model.fcorr", "new.csv", "--json", code=3).stdout)
    assert any(each["text"].endswith("in line 9") for each in found["differences"])


def test_other_trouble_has_other_exit_codes(run, model):
    run("diff", "data.csv", "data.csv", code=1)
    run("diff", "model.fcorr", "nowhere.csv", code=2)
