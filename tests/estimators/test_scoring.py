"""Scores are the same to the bit, whatever engine makes them and however it cuts the rows."""

import gc
import pickle
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
import torch
from typer.testing import CliRunner

from fcorr import (
    FCorrClassifier,
    FCorrRegressor,
    InvalidInputError,
    Scorer,
    UnseenCategoryWarning,
    _core,
    load,
    score_parquet,
    score_spark,
)
from fcorr.cli import app
from fcorr.estimators import scoring
from fcorr.training import rows

N_ROWS = 300
SMALL = {"sensitive": "sex", "head": (8,), "epochs": 1, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    age = rng.normal(40, 10, N_ROWS)
    return pa.table(
        {
            "key": [f"k{i}" for i in range(N_ROWS)],
            "sex": rng.choice(["f", "m"], N_ROWS),
            "job.title": pa.array(rng.choice(list("abcd"), N_ROWS)).dictionary_encode(),
            "age": pa.array(age, mask=rng.uniform(size=N_ROWS) < 0.1),
            "years": rng.uniform(0.1, 1, N_ROWS),
        }
    )


@pytest.fixture(scope="module")
def models(table, tmp_path_factory):
    """Train models of each kind; give their files, with the tables that they score."""
    rng, folder = np.random.default_rng(1), tmp_path_factory.mktemp("models")
    X, age = table.drop_columns("key"), table["age"].to_numpy()
    size = np.nan_to_num(age, nan=40.0) / 10 + rng.normal(size=N_ROWS)
    classes = (
        np.searchsorted([4.0], size).astype(np.int32),
        np.array(list("xyz"))[np.searchsorted([3.5, 4.5], size)],
    )
    frequency = {"objective": "poisson", "exposure": "years", "invariance": None}
    fitted = {
        "exact": FCorrClassifier(n_members=2, **SMALL).fit(X, classes[0]),
        "marginal": FCorrClassifier(n_members=1, invariance="marginal", **SMALL).fit(X, classes[1]),
        "not exact": FCorrRegressor(n_members=1, **frequency, **SMALL).fit(
            X, rng.poisson(table["years"].to_numpy())
        ),
    }
    found = {}
    for name, model in fitted.items():
        model.save(folder / name)
        found[name] = folder / name, table.drop_columns("sex") if model.exact_ else table
    return found


@pytest.fixture(params=["exact", "marginal", "not exact"])
def case(request, models):
    return models[request.param]


@pytest.fixture
def source(tmp_path, monkeypatch):
    """Write a table as a folder of Parquet files in small row groups, read in small batches."""
    monkeypatch.setattr(scoring, "_BATCH_CELLS", 128)

    def write(table, n_files=3):
        folder = tmp_path / "source"
        folder.mkdir(exist_ok=True)
        size = -(-table.num_rows // n_files)
        for i in range(n_files):
            part = table.slice(i * size, size)
            pa_parquet.write_table(part, folder / f"part-{i}.parquet", row_group_size=30)
        return folder

    return write


def expected(path, table):
    """Score a table in memory."""
    model = load(path)
    if isinstance(model, FCorrRegressor):
        return {"key": table["key"].to_pylist(), "prediction": model.predict(table).tolist()}
    probabilities = dict(zip(model.classes_, model.predict_proba(table).T, strict=True))
    return {
        "key": table["key"].to_pylist(),
        "prediction": model.predict(table).tolist(),
        **{f"probability_{label}": values.tolist() for label, values in probabilities.items()},
    }


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


def damage_value(folder, table):
    age = pa.array([1.0] * 70 + [float("inf")] * 30)
    part = table.slice(0, 100).set_column(table.column_names.index("age"), "age", age)
    pa_parquet.write_table(part, folder / "part-1.parquet", row_group_size=30)


def damage_group(folder, table):
    content = bytearray((folder / "part-1.parquet").read_bytes())
    group = pa_parquet.read_metadata(folder / "part-1.parquet").row_group(2)
    start = group.column(0).data_page_offset
    content[start : start + 8] = b"\xff" * 8
    (folder / "part-1.parquet").write_bytes(content)


def damage_schema(folder, table):
    part = table.set_column(0, "age", pa.array(["old"] * N_ROWS))
    pa_parquet.write_table(part, folder / "part-1.parquet")


def damage_file(folder, table):
    (folder / "part-1.parquet").write_bytes(b"")


DAMAGES = {
    damage_value: r"part-1\.parquet': X must fit .* got inf in row 70 ",
    damage_group: r"part-1\.parquet' cannot be read as Parquet .*Check that the file is whole",
    damage_schema: r"'key' is no such column in 'part-1\.parquet' and string in 'part-0",
    damage_file: r"part-1\.parquet' cannot be read as Parquet .*0 bytes",
}


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


# Clusters. What starts one is a single test, so that test processes do not start one each.

of_others = [
    pytest.mark.filterwarnings(f"ignore::{name}")
    for name in ("DeprecationWarning", "FutureWarning", "ResourceWarning")
]


def quiet(test):
    for mark in of_others:
        test = mark(test)
    return test


def by_key(table):
    """Give columns with the rows in the order of the key, which the file had."""
    rows = sorted(table.to_pylist(), key=lambda row: int(row["key"][1:]))
    return {name: [row[name] for row in rows] for name in table.column_names}


def check_document(word, folder, model, source, scores, **given):
    """Run the block of the document that has a word in it, on a model and claims."""
    text = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (block,) = (block for block in blocks if word in block)
    paths = {"claims/": source, "scores/": folder / "scores", "model.fcorr": model}
    for name, path in paths.items():
        assert f'"{name}"' in block
        block = block.replace(f'"{name}"', repr(str(path)))
    exec(block, given)
    assert by_key(pa_parquet.read_table(folder / "scores")) == scores


@quiet
def test_ray(models, source, tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="needs ray, as in fcorr[ray]")
    data = pytest.importorskip("ray.data")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    output = tmp_path / "out.parquet"
    with _core.connect_ray(workers=2) as ray:
        for path, table in models.values():
            assert score_parquet(path, source(table), output, engine="ray", workers=2) == N_ROWS
            assert pa_parquet.read_table(output).to_pydict() == expected(path, table)
        assert not data.DataContext.get_current().execution_options.preserve_order
        path, table = models["exact"]
        check_document("ray.data", tmp_path, path, source(table), expected(path, table))
        output.write_text("old")
        for damage in (damage_value, damage_group):
            folder = source(table)
            damage(folder, table)
            with pytest.raises(InvalidInputError, match=DAMAGES[damage]) as error:
                score_parquet(path, folder, output, engine="ray")
            assert "\n" not in str(error.value)
        assert output.read_text() == "old"
        command = ["predict", path, source(table), "-o", output, "--engine", "ray"]
        done = CliRunner().invoke(app, [str(word) for word in command])
        assert done.stdout == f"wrote {output}: {N_ROWS} rows\n"
        assert pa_parquet.read_table(output).to_pydict() == expected(path, table)
        _core._check_answers(ray.get_runtime_context().gcs_address)  # as another process does
    assert not ray.is_initialized()
    gc.collect()  # what Ray leaves open is none of the next test's


def test_an_address_where_nobody_answers(models, source, tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="needs ray, as in fcorr[ray]")
    monkeypatch.setattr(_core, "_RAY_SECONDS", 3.0)
    path, table = models["exact"]
    with pytest.raises(InvalidInputError, match=r"answers, got '127\.0\.0\.1:9' .*ray st") as error:
        score_parquet(path, source(table), tmp_path / "out", engine="ray", address="127.0.0.1:9")
    assert error.value.argument == "address"
    assert not (tmp_path / "out").exists()


@quiet
def test_spark(models, source, tmp_path, monkeypatch):
    pytest.importorskip("pyspark", reason="needs pyspark, as in fcorr[spark]")
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    from pyspark.sql import SparkSession

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
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
