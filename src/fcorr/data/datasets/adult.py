"""Adult (Census Income): who earns more than 50,000 dollars a year, United States, 1994."""

import gzip
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from fcorr.data.datasets._dataset import (
    DataHome,
    Dataset,
    check_table,
    data_folder,
    fetch_file,
    find_file,
    split,
)
from fcorr.data.generators._draws import FrameName, check_frame

_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"
_SHA256 = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
_N_ROWS = {"adult.data": 32_561, "adult.test": 16_281}
_FEATURES = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
)


def load_adult(*, frame: FrameName = "pyarrow", data_home: DataHome = None) -> Dataset:
    """Load Adult with its original split: 32,561 people to learn from, 16,281 to test on.

    Parameters
    ----------
    frame : {"pyarrow", "pandas", "polars"}, default="pyarrow"
        The kind of table to return. The values do not depend on it.
    data_home : path-like, optional
        The data folder, with ``adult/adult.data.gz`` and ``adult/adult.test.gz`` in it. When left
        out, the one that the environment variable FCORR_DATA names, else the user's cache.

    Returns
    -------
    Dataset
        `y` is 1 above 50,000 dollars a year, which 7,841 and 3,846 people earn. The 14 features are
        those of the files, ``fnlwgt`` (a survey weight) among them; ``?`` is a missing value, in
        ``workclass``, ``occupation`` and ``native_country``.

    Raises
    ------
    FileNotFoundError
        A file is not there; the message says where to put it.

    See Also
    --------
    fetch_adult : Download the files.

    Examples
    --------
    >>> adult = load_adult(frame="pandas")  # doctest: +SKIP
    >>> adult.train  # doctest: +SKIP
    Part(32,561 rows, 14 features)
    """
    check_frame(frame, caller="load_adult")
    parts = [_read(name, data_home) for name in _N_ROWS]
    table = pa.concat_tables(parts)
    is_test = np.arange(table.num_rows) >= parts[0].num_rows
    y = pc.starts_with(table["income"], ">50K").to_numpy().astype(np.int64)
    train, test = split(table, _FEATURES, is_test, y=y, frame=frame)
    return Dataset(
        name="Adult",
        train=train,
        test=test,
        target="income above 50,000 dollars a year",
        sensitive=("race", "sex", "age"),
        description="People in the United States census of 1994, one per row.",
        source="Becker and Kohavi (1996), UCI Machine Learning Repository, doi:10.24432/C5XW20",
        licence="CC BY 4.0",
    )


def fetch_adult(*, data_home: DataHome = None, force: bool = False, verbose: bool = True) -> Path:
    """Download Adult from the UCI Machine Learning Repository (4 MB + 2 MB, kept gzipped).

    Parameters
    ----------
    data_home : path-like, optional
        The data folder; as for :func:`load_adult` when left out.
    force : bool, default=False
        Whether to download files that are there already.
    verbose : bool, default=True
        Whether to show the progress, on standard error.

    Returns
    -------
    pathlib.Path
        The folder with the files.

    Raises
    ------
    DownloadError
        An ``OSError``: there is no network, or the file is not the published one.
    """
    folder = data_folder(data_home) / "adult"
    for name, sha256 in _SHA256.items():
        path = folder / f"{name}.gz"
        way_out = f"Get {name} some other way and put it, gzipped, at {str(path)!r}."
        convert = partial(gzip.compress, mtime=0)
        fetch_file(f"{_URL}/{name}", path, convert, way_out, sha256, force=force, verbose=verbose)
    return folder


def _read(name: str, data_home: DataHome) -> pa.Table:
    path = find_file("adult", [f"{name}.gz"], data_home)
    with gzip.open(path) as file:
        text = file.read().replace(b", ", b",")
    table = pa_csv.read_csv(
        pa.BufferReader(text),
        read_options=pa_csv.ReadOptions(
            column_names=[*_FEATURES, "income"],
            skip_rows=int(text.startswith(b"|")),  # adult.test starts with a remark
        ),
        convert_options=pa_csv.ConvertOptions(null_values=["?"], strings_can_be_null=True),
    )
    check_table(table, path, columns=_FEATURES, n_rows=_N_ROWS[name])
    return table
