"""Scores are the same to the bit, whatever engine makes them and however it cuts the rows."""

import gc
import pickle
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
import torch

from fcorr import (
    FCorrRegressor,
    InvalidInputError,
    Scorer,
    UnseenCategoryWarning,
    _core,
    load,
    score_parquet,
    score_spark,
)
from fcorr.estimators import scoring
from fcorr.training import rows
from tests.estimators.scored import DAMAGES, N_ROWS, by_key, check_document, expected


@pytest.fixture(params=["exact", "marginal", "not exact"])
def case(request, models):
    return models[request.param]


# A function of tables


def test_a_scorer_is_sent_as_a_model_file(case):
    path, table = case
    scorer = Scorer(path)
    content = pickle.dumps(scorer)
    assert path.read_bytes() in content
    sent = pickle.loads(content)
    for batch in (table, *table.to_batches()):
        assert sent(batch).to_pydict() == expected(path, table)
    assert pickle.loads(content).model is sent.model  # loaded once
    scorer = Scorer(path, keep=["job.title"])
    empty = scorer(table.slice(0, 0))  # which has the columns
    assert empty.num_rows == 0
    assert empty.schema == scorer(table).schema == scorer.output_schema(table.schema)


def test_columns_that_are_read(models):
    path, table = models["exact"]
    assert Scorer(path, keep=[]).columns_read(table.column_names) == ["job.title", "age", "years"]
    assert Scorer(path, keep=["sex"]).columns_read(["x", "years", "sex", "age", "job.title"]) == [
        *("years", "sex", "age", "job.title")
    ]
    with pytest.raises(InvalidInputError, match=r"Column 'age' is missing \(Did you mean 'agee'"):
        Scorer(path).columns_read(["job.title", "years", "agee"])
    path, table = models["not exact"]
    with pytest.raises(InvalidInputError, match=r"Column 'years' \(exposure\) is missing"):
        Scorer(path).columns_read(["sex", "job.title", "age"])
    assert Scorer(path, rate=True).columns_read(["sex", "job.title", "age"])


def test_rates(models):
    path, table = models["not exact"]
    found = Scorer(path, rate=True)(table.drop_columns("years"))
    assert found.column_names == ["key", "rate"]
    assert found["rate"].to_pylist() == load(path).predict_rate(table).tolist()


def test_arrays_have_no_names(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = FCorrRegressor(n_members=1, head=(4,), epochs=1, random_state=0).fit(X, X.sum(1))
    pa_parquet.write_table(pa.table(dict(zip("abc", X.T, strict=True))), tmp_path / "X.parquet")
    with pytest.warns(UserWarning, match="fitted without feature names"):
        score_parquet(model, tmp_path / "X.parquet", tmp_path / "out.parquet", keep=["a"])
    found = pa_parquet.read_table(tmp_path / "out.parquet")
    assert found["prediction"].to_pylist() == model.predict(X).tolist()


# Parquet


@pytest.mark.parametrize("n_threads", [1, 3])
def test_parquet_is_scored_in_batches(case, source, tmp_path, monkeypatch, n_threads):
    monkeypatch.setattr(rows, "_WORTH_A_THREAD", 1)
    path, table = case
    output = tmp_path / "out.parquet"
    torch.set_num_threads(n_threads)
    try:
        for n_files in (3, 1):
            folder = source(table, n_files)
            data = folder if n_files > 1 else folder / "part-0.parquet"
            assert score_parquet(path, data, output) == N_ROWS
            found = pa_parquet.read_table(output)
            assert found.to_pydict() == expected(path, table)
            assert found.schema == Scorer(path).output_schema(table.schema)
            assert pa_parquet.read_metadata(output).num_row_groups == 1
        score_parquet(path, data, output, keep=["job.title"])
        assert pa_parquet.read_table(output)["job.title"].to_pylist() == (
            table["job.title"].to_pylist()
        )
    finally:
        torch.set_num_threads(1)


def test_warnings_count_the_rows_of_all_batches(models, source, tmp_path):
    path, table = models["exact"]
    job = table["job.title"].to_pylist()
    job[5:200] = ["new"] * 195
    changed = table.set_column(1, "job.title", pa.array(job))
    with pytest.warns(UnseenCategoryWarning, match=r"195 .* 'job.title' \('new'\)") as found:
        score_parquet(path, source(changed), tmp_path / "out.parquet")
    assert len(found) == 1
    empty = table.set_column(2, "age", pa.nulls(N_ROWS, pa.float64()))
    with pytest.warns(UserWarning, match=r"none at all in 'age' \(300 row\(s\)\)") as found:
        score_parquet(path, source(empty), tmp_path / "out.parquet")
    assert len(found) == 1
    age = [None] * 200 + table["age"].to_pylist()[200:]  # empty in batches, but not throughout
    score_parquet(path, source(table.set_column(2, "age", pa.array(age))), tmp_path / "out.parquet")


@pytest.mark.parametrize("damage", DAMAGES)
def test_one_bad_file(models, source, tmp_path, damage):
    path, table = models["exact"]
    folder, output = source(table), tmp_path / "out.parquet"
    output.write_text("old")
    damage(folder, table)
    with pytest.raises(InvalidInputError, match=DAMAGES[damage]):
        score_parquet(path, folder, output)
    assert output.read_text() == "old"
    assert {file.name for file in tmp_path.iterdir()} == {"source", "out.parquet"}


def test_files_without_rows(models, source, tmp_path):
    path, table = models["exact"]
    folder = source(table, n_files=1)
    pa_parquet.write_table(table.slice(0, 0), folder / "part-9.parquet")  # as Spark leaves them
    (folder / "_metadata.parquet").write_bytes(b"")  # not data
    assert score_parquet(path, folder, tmp_path / "out.parquet") == N_ROWS
    (folder / "part-0.parquet").unlink()
    with pytest.raises(InvalidInputError, match="source' must have at least one row, got none"):
        score_parquet(path, folder, tmp_path / "out.parquet")


def test_a_file_that_goes_away(models, source, tmp_path, monkeypatch):
    path, table = models["exact"]
    folder = source(table)
    split = scoring.split_parquet(folder)
    monkeypatch.setattr(scoring, "split_parquet", lambda _: split)
    (folder / "part-2.parquet").unlink()
    with pytest.raises(InvalidInputError, match=r"part-2\.parquet' must be there as long as it is"):
        score_parquet(path, folder, tmp_path / "out.parquet")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine": "dask"}, "engine must be 'local' or 'ray', got 'dask'"),
        ({"address": "auto"}, "address must be left out without Ray, got 'auto'"),
        ({"workers": 2}, "workers must be an integer of at least 1, and left out without Ray"),
        ({"engine": "ray", "workers": 0}, "workers must be an integer of at least 1, .* got 0"),
        ({"rate": True}, "rate is for models of numbers, and this one predicts classes"),
        ({"keep": ["kay"]}, "keep must name columns of the table, got 'kay'. Did you mean 'key'"),
    ],
)
def test_bad_arguments(models, source, tmp_path, arguments, message):
    path, table = models["exact"]
    with pytest.raises(InvalidInputError, match=message) as error:
        score_parquet(path, source(table), tmp_path / "out.parquet", **arguments)
    assert error.value.argument in arguments


# Clusters. What needs one of Ray's is in the tests of engines, which start one.


def test_an_address_where_nobody_answers(models, source, tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="needs ray, as in fcorr[ray]")
    monkeypatch.setattr(_core, "_RAY_SECONDS", 0.2)
    path, table = models["exact"]
    with pytest.raises(InvalidInputError, match=r"answers, got '127\.0\.0\.1:9' .*ray st") as error:
        score_parquet(path, source(table), tmp_path / "out", engine="ray", address="127.0.0.1:9")
    assert error.value.argument == "address"
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_spark(models, source, tmp_path, monkeypatch):
    pytest.importorskip("pyspark", reason="needs pyspark, as in fcorr[spark]")
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    from pyspark.sql import SparkSession

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    # What runs for seconds is not worth the better compiler, which takes a processor for itself.
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    options = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "37",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }
    spark = SparkSession.builder.master("local[1]").config(map=options).getOrCreate()
    try:
        for path, table in models.values():
            frame = spark.read.parquet(str(source(table)))
            rows = score_spark(path, frame).toArrow()
            assert by_key(rows) == expected(path, table)
        path, table = models["exact"]
        found = expected(path, table)
        check_document("score_spark", tmp_path, path, source(table), found, spark=spark)
        assert score_spark(path, frame.limit(0), keep=["age"]).count() == 0
        with pytest.raises(InvalidInputError, match=r"Column 'age' is missing"):
            score_spark(path, frame.drop("age"))
    finally:
        spark.stop()
        gc.collect()


def test_missing_extras(models, source, tmp_path, monkeypatch):
    for package in ("ray", "pyspark"):
        monkeypatch.setitem(sys.modules, package, None)
    path, table = models["exact"]
    with pytest.raises(ImportError, match=r"engine='ray' needs ray: pip install 'fcorr\[ray\]'"):
        score_parquet(path, source(table), tmp_path / "out", engine="ray")
    with pytest.raises(ImportError, match=r"needs pyspark: pip install 'fcorr\[spark\]'"):
        score_spark(path, None)
