"""Motor liability: claim counts of French (freMTPL2) and of Belgian (beMTPL97) policies."""

import io
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pa_parquet
from numpy.typing import NDArray

from fcorr._core import InvalidInputError
from fcorr.data.datasets._dataset import (
    DataHome,
    Dataset,
    check_table,
    column_to_numpy,
    data_folder,
    encode_categories,
    fetch_file,
    find_file,
    split,
)
from fcorr.data.datasets._rdata import read_rda
from fcorr.data.files import read_file
from fcorr.data.generators._draws import FrameName, check_frame

_ENDINGS = (".parquet", ".csv", ".csv.gz")

# ------------------------------------------------------------------------------ freMTPL2

_FRE_URLS = {
    "freMTPL2freq": "https://data.openml.org/datasets/0004/41214/dataset_41214.pq",
    "freMTPL2sev": "https://data.openml.org/datasets/0004/41215/dataset_41215.pq",
}
_FRE_N_ROWS = {"freMTPL2freq": 678_013, "freMTPL2sev": 26_639}
_FRE_TEXTS = ("Area", "VehBrand", "VehGas", "Region")
_FRE_INTEGERS = ("IDpol", "ClaimNb", "VehPower", "VehAge", "DrivAge", "BonusMalus", "Density")
_FRE_FEATURES = (
    "Area",
    "VehPower",
    "VehAge",
    "DrivAge",
    "BonusMalus",
    "VehBrand",
    "VehGas",
    "Density",
    "Region",
)
_FRE_COLUMNS = {
    "freMTPL2freq": ("IDpol", "Exposure", *_FRE_FEATURES),
    "freMTPL2sev": ("IDpol", "ClaimAmount"),
}
_MOST_CLAIMS = 5
_N_POLICIES = 678_007
_SEED = 500


def load_fremtpl2(*, frame: FrameName = "pyarrow", data_home: DataHome = None) -> Dataset:
    """Load the claim frequencies of freMTPL2, cleaned and split as in most publications.

    The 610,206 policies to learn from and the 67,801 to test on are those of Wüthrich and Merz,
    *Statistical Foundations of Actuarial Learning* (2023), and of the papers that follow it.

    Parameters
    ----------
    frame : {"pyarrow", "pandas", "polars"}, default="pyarrow"
        The kind of table to return. The values do not depend on it.
    data_home : path-like, optional
        The data folder, with ``freMTPL2/freMTPL2freq.parquet`` and ``freMTPL2/freMTPL2sev.parquet``
        in it (or ``.csv``). When left out, the one that the environment variable FCORR_DATA names,
        else the user's cache.

    Returns
    -------
    Dataset
        `y` is the number of claims, `exposure` the years at risk; nine features, nothing missing.

    Raises
    ------
    FileNotFoundError
        A file is not there; the message says where to put it.

    See Also
    --------
    fetch_fremtpl2 : Download the files.

    Notes
    -----
    Claims are counted in the table of claim amounts, as ``ClaimNb`` counts some that are not there;
    policies with more than five claims are left out; exposure is at most one year; policies are in
    the order of their number. The split is the one that R 3.5 draws with ``set.seed(500)``, drawn
    again here.

    With one frequency for all, estimated on the part to learn from,
    ``100 * poisson_deviance(y, exposure * frequency)`` is 25.213 there and 25.445 on the part to
    test on, which are the published figures.

    Examples
    --------
    >>> motor = load_fremtpl2()  # doctest: +SKIP
    >>> motor.train, motor.test  # doctest: +SKIP
    (Part(610,206 rows, 9 features, exposure 322,392), Part(67,801 rows, 9 features, ...))
    """
    check_frame(frame, caller="load_fremtpl2")
    policies = _read("freMTPL2freq", data_home)
    policies = policies.take(pc.sort_indices(policies["IDpol"]))
    y = _count_claims(
        column_to_numpy(policies, "IDpol", np.int64),
        column_to_numpy(_read("freMTPL2sev", data_home), "IDpol", np.int64),
    )
    kept = y <= _MOST_CLAIMS
    policies, y = policies.filter(pa.array(kept)), y[kept]
    if len(y) != _N_POLICIES:
        raise InvalidInputError(
            f"freMTPL2 must have {_N_POLICIES:,} policies with at most {_MOST_CLAIMS} claims, got "
            f"{len(y):,}. Take both files from one source, such as fetch_fremtpl2(force=True)."
        )
    exposure = np.minimum(column_to_numpy(policies, "Exposure", np.float64), 1.0)
    is_test = np.ones(len(y), dtype=np.bool_)
    is_test[_sample_as_in_r(len(y), round(0.9 * len(y)), seed=_SEED)] = False
    train, test = split(policies, _FRE_FEATURES, is_test, y=y, exposure=exposure, frame=frame)
    return Dataset(
        name="freMTPL2",
        train=train,
        test=test,
        target="number of claims",
        sensitive=("DrivAge", "Region"),
        description="Motor third-party liability policies of a French insurer, one per row.",
        source="Dutang and Charpentier, CASdatasets (R package); OpenML 41214 and 41215",
        licence="GPL-2 or later (CASdatasets)",
    )


def fetch_fremtpl2(
    *, data_home: DataHome = None, force: bool = False, verbose: bool = True
) -> Path:
    """Download freMTPL2 from OpenML (7 MB + 0.4 MB).

    Parameters
    ----------
    data_home : path-like, optional
        The data folder; as for :func:`load_fremtpl2` when left out.
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
    folder = data_folder(data_home) / "freMTPL2"
    for name, url in _FRE_URLS.items():
        path = folder / f"{name}.parquet"
        way_out = (
            f"Export {name} from R's CASdatasets, as CSV or Parquet, and put it at "
            f"{str(path.with_suffix('.csv'))!r} or {str(path)!r}."
        )
        convert = partial(_from_openml, name)
        fetch_file(url, path, convert, way_out, force=force, verbose=verbose)
    return folder


def _from_openml(name: str, content: bytes) -> bytes:
    """Check what OpenML sent, and write it with whole numbers and plain texts."""
    table = pa_parquet.read_table(pa.BufferReader(content))
    check_table(table, Path(name), columns=_FRE_COLUMNS[name], n_rows=_FRE_N_ROWS[name])
    for position, column in enumerate(table.column_names):
        if column in _FRE_INTEGERS:  # OpenML knows real numbers only
            table = table.set_column(position, column, table[column].cast(pa.int64()))
        elif column in _FRE_TEXTS:  # and keeps the quotes of its source
            text = pc.utf8_trim(table[column].cast(pa.string()), "'\"")
            table = table.set_column(position, column, text)
    return _to_parquet(table.replace_schema_metadata(None))


def _to_parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pa_parquet.write_table(encode_categories(table), buffer)
    return buffer.getvalue()


def _read(name: str, data_home: DataHome) -> pa.Table:
    path = find_file("freMTPL2", [f"{name}{ending}" for ending in _ENDINGS], data_home)
    table = read_file(path)
    check_table(table, path, columns=_FRE_COLUMNS[name], n_rows=_FRE_N_ROWS[name])
    return table


def _count_claims(policy: NDArray[np.int64], claim_policy: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the claims of each policy; a few claims belong to none.

    Examples
    --------
    >>> _count_claims(np.array([1, 3, 5]), np.array([5, 1, 5, 4])).tolist()
    [1, 0, 2]
    """
    with_claims, counts = np.unique(claim_policy, return_counts=True)
    known = np.isin(with_claims, policy)
    claims = np.zeros(len(policy), dtype=np.int64)
    claims[np.searchsorted(policy, with_claims[known])] = counts[known]
    return claims


def _sample_as_in_r(n: int, size: int, *, seed: int) -> NDArray[np.int64]:
    """Draw positions as ``sample(n, size)`` did after ``set.seed(seed)`` in R before 3.6.

    R and numpy share the generator (MT19937) but not the way from a seed to its first state: R
    runs a linear congruential generator, of which it throws away the first 51 numbers.

    Examples
    --------
    In R: ``RNGversion("3.5.0"); set.seed(500); sample(10, 5) - 1``.

    >>> _sample_as_in_r(10, 5, seed=500).tolist()
    [8, 6, 7, 3, 4]
    """
    key = []
    for _ in range(51 + 624):
        seed = (69_069 * seed + 1) % 2**32
        key.append(seed)
    generator = np.random.MT19937()
    generator.state = {
        "bit_generator": "MT19937",
        "state": {"key": np.array(key[51:], dtype=np.uint32), "pos": 624},
    }
    uniforms = generator.random_raw(size) * 2.0**-32
    left, drawn = list(range(n)), []
    for uniform in uniforms.tolist():
        position = int(uniform * len(left))
        drawn.append(left[position])
        left[position] = left[-1]
        left.pop()
    return np.array(drawn, dtype=np.int64)


# ------------------------------------------------------------------------------ beMTPL97

_BE_URL = "https://github.com/dutangc/CASdatasets/raw/master/data/beMTPL97.rda"
_BE_N_ROWS = 163_212
_BE_TEXTS = ("coverage", "sex", "fuel", "use", "fleet")
_BE_FEATURES = (
    "coverage",
    "ageph",
    "sex",
    "bm",
    "power",
    "agec",
    "fuel",
    "use",
    "fleet",
    "long",
    "lat",
)
_BE_COLUMNS = ("id", "expo", "nclaims", *_BE_FEATURES)


def load_bemtpl97(*, frame: FrameName = "pyarrow", data_home: DataHome = None) -> Dataset:
    """Load the claim frequencies of beMTPL97: 130,732 policies to learn from, 32,480 to test on.

    Parameters
    ----------
    frame : {"pyarrow", "pandas", "polars"}, default="pyarrow"
        The kind of table to return. The values do not depend on it.
    data_home : path-like, optional
        The data folder, with ``beMTPL97/beMTPL97.parquet`` in it (or ``.csv``). When left out, the
        one that the environment variable FCORR_DATA names, else the user's cache.

    Returns
    -------
    Dataset
        `y` is the number of claims in 1997, `exposure` the share of the year at risk; eleven
        features, nothing missing. ``long`` and ``lat`` stand for ``postcode``, which names the same
        583 districts; what is known only after the year (``claim``, ``amount``, ``average``) is no
        feature.

    Raises
    ------
    FileNotFoundError
        The file is not there; the message says where to put it.

    See Also
    --------
    fetch_bemtpl97 : Download the file.

    Notes
    -----
    There is no published split. Here a policy is one to test on where the CRC-32 checksum of its
    ``id``, written in decimal digits, is divisible by five: the same in every language, and
    whatever the order of the rows.

    Examples
    --------
    >>> motor = load_bemtpl97()  # doctest: +SKIP
    >>> motor.sensitive  # doctest: +SKIP
    ('sex', 'ageph')
    """
    check_frame(frame, caller="load_bemtpl97")
    path = find_file("beMTPL97", [f"beMTPL97{ending}" for ending in _ENDINGS], data_home)
    table = read_file(path, text=_BE_TEXTS)
    check_table(table, path, columns=_BE_COLUMNS, n_rows=_BE_N_ROWS)
    train, test = split(
        table,
        _BE_FEATURES,
        _is_test(column_to_numpy(table, "id", np.int64)),
        y=column_to_numpy(table, "nclaims", np.int64),
        exposure=column_to_numpy(table, "expo", np.float64),
        frame=frame,
    )
    return Dataset(
        name="beMTPL97",
        train=train,
        test=test,
        target="number of claims",
        sensitive=("sex", "ageph"),
        description="Motor third-party liability policies of a Belgian insurer, 1997, one per row.",
        source="Dutang and Charpentier, CASdatasets (R package)",
        licence="GPL-2 or later (CASdatasets)",
    )


def fetch_bemtpl97(
    *, data_home: DataHome = None, force: bool = False, verbose: bool = True
) -> Path:
    """Download beMTPL97 from the repository of the R package CASdatasets; R is not needed.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder; as for :func:`load_bemtpl97` when left out.
    force : bool, default=False
        Whether to download a file that is there already.
    verbose : bool, default=True
        Whether to show the progress, on standard error.

    Returns
    -------
    pathlib.Path
        The folder with the file.

    Raises
    ------
    DownloadError
        An ``OSError``: there is no network, or the file is not the published one.
    """
    folder = data_folder(data_home) / "beMTPL97"
    path = folder / "beMTPL97.parquet"
    way_out = (
        "In R: data(beMTPL97, package = 'CASdatasets'); write.csv(beMTPL97, 'beMTPL97.csv', "
        f"row.names = FALSE, na = ''). Put the file at {str(path.with_suffix('.csv'))!r}."
    )
    fetch_file(_BE_URL, path, _from_r, way_out, force=force, verbose=verbose)
    return folder


def _from_r(content: bytes) -> bytes:
    table = read_rda(content, "beMTPL97")
    check_table(table, Path("beMTPL97"), columns=_BE_COLUMNS, n_rows=_BE_N_ROWS)
    return _to_parquet(table)


def _is_test(ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which policies are kept for testing: about one in five.

    Examples
    --------
    >>> np.flatnonzero(_is_test(np.arange(20))).tolist()
    [6, 12]
    """
    return np.array([zlib.crc32(str(policy).encode()) % 5 == 0 for policy in ids.tolist()])
