import contextlib
import datetime
import os

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from fcorr.cli import app
from fcorr.data.files import write_file
from fcorr.nn.engine import compile_kernels

SMALL = ("--n-members", 1, "--epochs", 1, "--set", "head=4", "--random-state", 0, "--quiet")


@pytest.fixture(autouse=True, scope="session")
def _compiled():
    # What is compiling is told on stderr, which tests look at.
    compile_kernels()


@pytest.fixture(scope="session")
def columns():
    rng = np.random.default_rng(0)
    n = 200
    age = rng.normal(40, 10, n).round(1)
    bought = age + rng.normal(0, 10, n) > 40
    return {
        "key": np.arange(n),
        "sex": rng.choice(["f", "m"], n),
        "age": age,
        "job": rng.choice(["clerk", "nurse", "pilot"], n),
        "bought": bought.astype(int),
        "amount": rng.lognormal(size=n),
    }


@pytest.fixture
def folder(tmp_path, monkeypatch, columns):
    """Change to a folder with the table as CSV and Parquet."""
    monkeypatch.chdir(tmp_path)
    for name in ("data.csv", "data.parquet"):
        write_file(pa.table(columns), name)
    return tmp_path


@pytest.fixture
def run(folder):
    """Run a command in the folder; check its exit code and return its result."""

    def run(*arguments, code=0, stdin=None):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
        assert result.exit_code == code, result.output
        return result

    return run


TRAIN = ("--drop", "key", "--output", "model.fcorr", *SMALL)


@pytest.fixture
def train(run):
    def train(*arguments, data="data.csv", target="bought", **result):
        return run("train", data, "--target", target, *TRAIN, *arguments, **result)

    return train


@pytest.fixture
def policies(folder, columns):
    """Write a table of claim counts with exposures and weights; return it."""
    rng = np.random.default_rng(1)
    years = rng.uniform(0.1, 1, 200)
    table = pa.table(
        {**columns, "years": years, "w": rng.uniform(size=200), "claims": rng.poisson(2 * years)}
    )
    write_file(table, "policies.parquet")
    return table


@pytest.fixture
def european(folder):
    """Write the same rows with commas and points, and as a spreadsheet in Germany would."""
    plain, other = ["key,value,day,size,y"], ["key;value;day;size;y"]
    for i in range(40):
        day, size = datetime.date(2000 + i, 12, i % 28 + 1), "SML"[i % 3]
        plain.append(f"K{i},{1000 + i / 8},{day},{size},{i % 2}")
        other.append(f"K{i};1.00{i // 8},{i % 8 * 125:03};{day:%d.%m.%Y};{size};{i % 2}")
    (folder / "plain.csv").write_text("\n".join(plain))
    (folder / "european.csv").write_text("\n".join(other))


@pytest.fixture
def files(folder):
    """List what a command has added to the folder."""
    before = set(os.listdir(folder))
    return lambda: set(os.listdir(folder)) - before


@pytest.fixture
def refuse(run, folder):
    """Run what is bad usage: it says so in words, and leaves the folder as it was."""

    def contents():
        # Python keeps what it compiled of a module, unless the environment says otherwise.
        kept = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
        return {path: path.read_bytes() for path in kept}

    def refuse(message, *arguments):
        before = contents()
        result = run(*arguments, code=2)
        assert message in " ".join(result.stderr.split())
        assert "Traceback" not in result.output
        assert contents() == before

    return refuse


@pytest.fixture
def no_room():
    """Let no file grow beyond 1,000 bytes, as on a disk that is full."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    @contextlib.contextmanager
    def no_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    return no_room
