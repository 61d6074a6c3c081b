"""A table, models of each kind that score it, and its rows in files."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from tests.estimators.scored import N_ROWS


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def models(table, tmp_path_factory):
    """Train models of each kind; give their files, with the tables that they score."""
    from fcorr import FCorrClassifier, FCorrRegressor

    rng, folder = np.random.default_rng(1), tmp_path_factory.mktemp("models")
    X, age = table.drop_columns("key"), table["age"].to_numpy()
    size = np.nan_to_num(age, nan=40.0) / 10 + rng.normal(size=N_ROWS)
    classes = (
        np.searchsorted([4.0], size).astype(np.int32),
        np.array(list("xyz"))[np.searchsorted([3.5, 4.5], size)],
    )
    frequency = {"objective": "poisson", "exposure": "years", "invariance": None}
    small = {"sensitive": "sex", "head": (8,), "epochs": 1, "random_state": 0}
    fitted = {
        "exact": FCorrClassifier(n_members=2, **small).fit(X, classes[0]),
        "marginal": FCorrClassifier(n_members=1, invariance="marginal", **small).fit(X, classes[1]),
        "not exact": FCorrRegressor(n_members=1, **frequency, **small).fit(
            X, rng.poisson(table["years"].to_numpy())
        ),
    }
    found = {}
    for name, model in fitted.items():
        model.save(folder / name)
        found[name] = folder / name, table.drop_columns("sex") if model.exact_ else table
    return found


@pytest.fixture
def source(tmp_path, monkeypatch):
    """Write a table as a folder of Parquet files in small row groups, read in small batches."""
    monkeypatch.setattr("fcorr.estimators.scoring._BATCH_CELLS", 128)

    def write(table, n_files=3):
        folder = tmp_path / "source"
        folder.mkdir(exist_ok=True)
        size = -(-table.num_rows // n_files)
        for i in range(n_files):
            part = table.slice(i * size, size)
            pa_parquet.write_table(part, folder / f"part-{i}.parquet", row_group_size=30)
        return folder

    return write
