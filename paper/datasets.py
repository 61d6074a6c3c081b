"""Published tables: Adult, motor liability in France and in Belgium, Bank Account Fraud.

``load_*`` reads them from a folder, ``fetch_*`` fills it. The folder is `data_home`, else the one
that the environment variable ``FCORR_DATA`` names, else ``fcorr`` in the user's cache directory.
Only ``fetch_*`` uses the network.
"""

import gzip
import io
import logging
import os
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pooch
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pyarrow.types as pat
import pyreadr
from numpy.typing import NDArray

from fcorr._core import InvalidInputError, enumerate_some, user_cache, write_atomically
from fcorr.data.files import read_file
from paper.generators import make_bank_fraud

DataHome = str | os.PathLike[str] | None


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """Some rows of a data set: those to learn from, or those to test on.

    Attributes
    ----------
    X : pandas.DataFrame
        The features.
    y : ndarray of int64, shape (n,)
        The target: a class (0 or 1) or a claim count.
    exposure : ndarray of float64, shape (n,), or None
        For a claim count, the years over which it was observed; None for a class.
    """

    X: pd.DataFrame
    y: NDArray[np.int64]
    exposure: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        exposure = "" if self.exposure is None else f", exposure {self.exposure.sum():,.0f}"
        return f"Part({len(self):,} rows, {self.X.shape[1]} features{exposure})"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A published data set, split into a part to learn from and a part to test on.

    Attributes
    ----------
    name : str
        What the data set is called.
    train, test : Part
        The two parts. A categorical column has the same list of categories in both.
    target : str
        What `y` is.
    sensitive : tuple of str
        Features that a fairness question can be asked about; the first is the usual one.
    description, source, licence : str
        What a row is, where the data comes from, and on which terms.
    """

    name: str
    train: Part
    test: Part
    target: str
    sensitive: tuple[str, ...]
    description: str
    source: str
    licence: str


class DownloadError(OSError):
    """A file could not be downloaded, or is not the one that was asked for."""


def data_folder(data_home: DataHome = None) -> Path:
    """Return `data_home`, else the folder that FCORR_DATA names, else one in the user's cache."""
    chosen = data_home if data_home is not None else os.environ.get("FCORR_DATA")
    return Path(chosen).expanduser() if chosen else user_cache()


def find_file(
    folder: str, names: Sequence[str], data_home: DataHome, way_out: str | None = None
) -> Path:
    """Return the first of some files in a data set's folder, or say where it should be."""
    home, function = data_folder(data_home), folder.lower()
    for name in names:
        if (home / folder / name).is_file():
            return home / folder / name
    raise FileNotFoundError(
        f"load_{function} needs {folder}/{names[0]}, which is not in {str(home)!r}. "
        f"{way_out or f'Call fetch_{function}() to download it.'} "
        "Set FCORR_DATA, or pass data_home, for another folder."
    )


def check_table(
    table: pa.Table, path: Path, *, columns: Collection[str], n_rows: int | None = None
) -> None:
    """Refuse a file that is not the published one: a column or some rows are missing."""
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise InvalidInputError(
            f"{path.name} must have the published columns, {enumerate_some(missing)} not found "
            f"among {enumerate_some(table.column_names)}. Replace {str(path)!r} by the original."
        )
    if n_rows is not None and table.num_rows != n_rows:
        raise InvalidInputError(
            f"{path.name} must have {n_rows:,} rows, got {table.num_rows:,}. "
            f"Replace {str(path)!r} by the original."
        )


def fetch_file(
    url: str,
    path: Path,
    convert: Callable[[bytes], bytes],
    way_out: str,
    sha256: str | None = None,
    *,
    force: bool,
    verbose: bool,
) -> None:
    """Download a file and keep what it is converted into, whole, or say what to do by hand."""
    if path.exists() and not force:
        return
    if verbose:
        print(f"downloading {url}", file=sys.stderr, flush=True)
    problem = "could not be downloaded"
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)  # it would tell the name of the temporary file
    try:
        with tempfile.TemporaryDirectory() as folder:
            content = Path(pooch.retrieve(url, sha256, path=folder)).read_bytes()
        problem = f"is not {path.stem}"
        converted = convert(content)
    except (OSError, ValueError, pa.ArrowException) as error:
        if getattr(error, "response", None) is not None:
            error.response.close()  # type: ignore[union-attr]  # it holds the connection
        raise DownloadError(f"{url} {problem} ({error}). {way_out}") from error
    finally:
        logger.setLevel(level)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, converted)


def build_dataset(
    table: pa.Table,
    features: Sequence[str],
    *,
    is_test: NDArray[np.bool_],
    y: NDArray[Any],
    exposure: NDArray[np.float64] | None = None,
    **about: Any,
) -> Dataset:
    """Divide a table into the rows to learn from and the rows to test on; say what it is.

    The features are in the order asked for, and alike for every kind of file they come from.
    """
    table = encode_categories(table.select(list(features)).replace_schema_metadata(None))
    for position, field in enumerate(table.schema):
        if pat.is_integer(field.type):
            table = table.set_column(position, field.name, table[field.name].cast(pa.int64()))

    def part(rows: NDArray[np.bool_]) -> Part:
        X = table.filter(pa.array(rows)).to_pandas()
        return Part(X, y[rows].astype(np.int64), None if exposure is None else exposure[rows])

    return Dataset(train=part(~is_test), test=part(is_test), **about)


def encode_categories(table: pa.Table) -> pa.Table:
    """Make text columns categorical, with the sorted list of what the whole table holds."""
    for position, field in enumerate(table.schema):
        if pat.is_dictionary(field.type) or pat.is_string(field.type):
            texts = table[field.name].cast(pa.string()).combine_chunks()
            categories = pa.array(sorted(texts.unique().drop_null().to_pylist()))
            codes = pc.index_in(texts, value_set=categories)
            codes = codes.cast(pa.int8() if len(categories) <= 127 else pa.int32())
            column = pa.DictionaryArray.from_arrays(codes, categories)
            table = table.set_column(position, field.name, column)
    return table


# ------------------------------------------------------------------------------ Adult

_ADULT_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"
_ADULT_SHA256 = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
_ADULT_N_ROWS = {"adult.data": 32_561, "adult.test": 16_281}
_ADULT_FEATURES = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week"),
    "native_country",
)


def load_adult(*, data_home: DataHome = None) -> Dataset:
    """Load Adult (Census Income, 1994) with its original split: 32,561 and 16,281 people.

    Parameters
    ----------
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
        A file is not there; the message says where to get it and where to put it.
    """
    table = pa.concat_tables([_read_adult(name, data_home) for name in _ADULT_N_ROWS])
    return build_dataset(
        table,
        _ADULT_FEATURES,
        is_test=np.arange(table.num_rows) >= _ADULT_N_ROWS["adult.data"],
        y=pc.starts_with(table["income"], ">50K").to_numpy(),
        name="Adult",
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
    for name, sha256 in _ADULT_SHA256.items():
        url, path = f"{_ADULT_URL}/{name}", folder / f"{name}.gz"
        way_out = f"Get {name} some other way and put it, gzipped, at {str(path)!r}."
        convert = partial(gzip.compress, mtime=0)
        fetch_file(url, path, convert, way_out, sha256, force=force, verbose=verbose)
    return folder


def _read_adult(name: str, data_home: DataHome) -> pa.Table:
    path = find_file("adult", [f"{name}.gz"], data_home)
    with gzip.open(path) as file:
        text = file.read().replace(b", ", b",")
    table = pa_csv.read_csv(
        pa.BufferReader(text),
        read_options=pa_csv.ReadOptions(
            column_names=[*_ADULT_FEATURES, "income"],
            skip_rows=int(text.startswith(b"|")),  # adult.test starts with a remark
        ),
        convert_options=pa_csv.ConvertOptions(null_values=["?"], strings_can_be_null=True),
    )
    check_table(table, path, columns=_ADULT_FEATURES, n_rows=_ADULT_N_ROWS[name])
    return table


# ------------------------------------------------------------------------------ freMTPL2

_FRE_URLS = {
    "freMTPL2freq": "https://data.openml.org/datasets/0004/41214/dataset_41214.pq",
    "freMTPL2sev": "https://data.openml.org/datasets/0004/41215/dataset_41215.pq",
}
_FRE_N_ROWS = {"freMTPL2freq": 678_013, "freMTPL2sev": 26_639}
_FRE_TEXTS = ("Area", "VehBrand", "VehGas", "Region")
_FRE_INTEGERS = ("IDpol", "ClaimNb", "VehPower", "VehAge", "DrivAge", "BonusMalus", "Density")
_FRE_FEATURES = (
    *("Area", "VehPower", "VehAge", "DrivAge", "BonusMalus", "VehBrand", "VehGas", "Density"),
    "Region",
)
_FRE_COLUMNS = {
    "freMTPL2freq": ("IDpol", "Exposure", *_FRE_FEATURES),
    "freMTPL2sev": ("IDpol", "ClaimAmount"),
}
_MOST_CLAIMS = 5
_N_POLICIES = 678_007
_SEED = 500


def load_fremtpl2(*, data_home: DataHome = None) -> Dataset:
    """Load the claim frequencies of freMTPL2, cleaned and split as in most publications.

    The 610,206 policies to learn from and the 67,801 to test on are those of Wüthrich and Merz,
    *Statistical Foundations of Actuarial Learning* (2023), and of the papers that follow it.

    Parameters and errors as in :func:`load_adult`; the files are
    ``freMTPL2/freMTPL2freq.parquet`` and ``freMTPL2/freMTPL2sev.parquet`` (or ``.csv``).

    Returns
    -------
    Dataset
        `y` is the number of claims, `exposure` the years at risk; nine features, nothing missing.

    Notes
    -----
    Claims are counted in the table of claim amounts, as ``ClaimNb`` counts some that are not there;
    policies with more than five claims are left out; exposure is at most one year; policies are in
    the order of their number. The split is the one that R 3.5 draws with ``set.seed(500)``, drawn
    again here.

    With one frequency for all, estimated on the part to learn from,
    ``100 * mean_poisson_deviance(y, exposure * frequency)`` is 25.213 there and 25.445 on the part
    to test on, which are the published figures.
    """
    policies, claims = (
        _read_motor("freMTPL2", name, data_home, _FRE_COLUMNS[name], _FRE_N_ROWS[name])
        for name in _FRE_COLUMNS
    )
    policies = policies.take(pc.sort_indices(policies["IDpol"]))
    n_claims = Counter(claims["IDpol"].to_pylist())
    y = np.array([n_claims[policy] for policy in policies["IDpol"].to_pylist()])
    kept = y <= _MOST_CLAIMS
    policies, y = policies.filter(pa.array(kept)), y[kept]
    if len(y) != _N_POLICIES:
        raise InvalidInputError(
            f"freMTPL2 must have {_N_POLICIES:,} policies with at most {_MOST_CLAIMS} claims, got "
            f"{len(y):,}. Take both files from one source, such as fetch_fremtpl2(force=True)."
        )
    is_test = np.ones(len(y), dtype=np.bool_)
    is_test[_sample_as_in_r(len(y), round(0.9 * len(y)), seed=_SEED)] = False
    return build_dataset(
        policies,
        _FRE_FEATURES,
        is_test=is_test,
        y=y,
        exposure=np.minimum(policies["Exposure"].to_numpy(), 1.0),
        name="freMTPL2",
        target="number of claims",
        sensitive=("DrivAge", "Region"),
        description="Motor third-party liability policies of a French insurer, one per row.",
        source="Dutang and Charpentier, CASdatasets (R package); OpenML 41214 and 41215",
        licence="GPL-2 or later (CASdatasets)",
    )


def fetch_fremtpl2(
    *, data_home: DataHome = None, force: bool = False, verbose: bool = True
) -> Path:
    """Download freMTPL2 from OpenML (7 MB + 0.4 MB), with everything as in :func:`fetch_adult`."""
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


def _read_motor(
    folder: str,
    name: str,
    data_home: DataHome,
    columns: Collection[str],
    n_rows: int,
    text: Collection[str] = (),
) -> pa.Table:
    names = [f"{name}{ending}" for ending in (".parquet", ".csv", ".csv.gz")]
    path = find_file(folder, names, data_home)
    table = read_file(path, text=text)
    check_table(table, path, columns=columns, n_rows=n_rows)
    return table


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
    *("coverage", "ageph", "sex", "bm", "power", "agec", "fuel", "use", "fleet", "long", "lat"),
)
_BE_COLUMNS = ("id", "expo", "nclaims", *_BE_FEATURES)


def load_bemtpl97(*, data_home: DataHome = None) -> Dataset:
    """Load the claim frequencies of beMTPL97: 130,732 policies to learn from, 32,480 to test on.

    Parameters and errors as in :func:`load_adult`; the file is ``beMTPL97/beMTPL97.parquet`` (or
    ``.csv``).

    Returns
    -------
    Dataset
        `y` is the number of claims in 1997, `exposure` the share of the year at risk; eleven
        features, nothing missing. ``long`` and ``lat`` stand for ``postcode``, which names the same
        583 districts; what is known only after the year (``claim``, ``amount``, ``average``) is no
        feature.

    Notes
    -----
    There is no published split. Here a policy is one to test on where the CRC-32 checksum of its
    ``id``, written in decimal digits, is divisible by five: the same in every language, and
    whatever the order of the rows.
    """
    table = _read_motor("beMTPL97", "beMTPL97", data_home, _BE_COLUMNS, _BE_N_ROWS, _BE_TEXTS)
    return build_dataset(
        table,
        _BE_FEATURES,
        is_test=_is_test(table["id"].to_numpy()),
        y=table["nclaims"].to_numpy(),
        exposure=table["expo"].to_numpy().astype(np.float64),
        name="beMTPL97",
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

    Everything as in :func:`fetch_adult`.
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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "beMTPL97.rda"
        path.write_bytes(content)
        try:
            frames = pyreadr.read_r(path)
        except (pyreadr.LibrdataError, pyreadr.PyreadrError) as error:
            raise InvalidInputError(f"it cannot be read as an .rda file: {error}") from error
    if "beMTPL97" not in frames:
        raise InvalidInputError(f"it holds {enumerate_some(frames) or 'no data frame'}")
    table = pa.Table.from_pandas(frames["beMTPL97"], preserve_index=False)
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


# ------------------------------------------------------------------------------ Bank Account Fraud

_BAF_PAGE = "https://www.kaggle.com/datasets/sgpjesus/bank-account-fraud-dataset-neurips-2022"
_BAF_FILES = ("Base.csv", "Base.csv.gz", "Base.parquet")
_BAF_TARGET = "fraud_bool"
_FIRST_TEST_MONTH = 6


def load_baf(*, data_home: DataHome = None) -> Dataset:
    """Load Bank Account Fraud: applications of six months to learn from, of two to test on.

    Parameters and errors as in :func:`load_adult`; the file is ``baf/Base.csv``.

    Returns
    -------
    Dataset
        `y` is 1 for fraud. The 31 features have the names, the order and the kinds of
        :func:`make_bank_fraud`. As in the file, -1 in ``prev_address_months_count`` and
        ``bank_months_count`` and a negative ``intended_balcon_amount`` mean "not known".

    See Also
    --------
    fetch_baf : Say where to get the file.
    make_bank_fraud : A stand-in that is free to use.

    Notes
    -----
    Months 0 to 5 are to learn from and 6 and 7 to test on. ``month`` is one of the paper's 31
    features and stays in `X`, although the test months are new to a model: leave it out to score
    without warnings about unseen categories.
    """
    schema = make_bank_fraud(1, random_state=0)[0].schema
    categorical = [field.name for field in schema if pat.is_dictionary(field.type)]
    path = find_file("baf", _BAF_FILES, data_home, way_out=_get_baf_by_hand("the folder baf"))
    table = read_file(path, text=categorical)
    check_table(table, path, columns=(_BAF_TARGET, *schema.names))
    return build_dataset(
        table,
        schema.names,
        is_test=table["month"].cast(pa.int64()).to_numpy() >= _FIRST_TEST_MONTH,
        y=table[_BAF_TARGET].to_numpy(),
        name="Bank Account Fraud (base)",
        target="fraud",
        sensitive=("customer_age", "income", "employment_status"),
        description="Applications for bank accounts, generated after real ones, one per row.",
        source=f"Jesus et al., Turning the Tables, NeurIPS 2022; {_BAF_PAGE}",
        licence="non-commercial, no redistribution: see the source",
    )


def fetch_baf(*, data_home: DataHome = None) -> Path:
    """Say where Bank Account Fraud is to be had: its licence wants a download by hand.

    Returns the folder with the file if it is there, else raises a ``FileNotFoundError`` that says
    where to get it and where to put it; `data_home` as in :func:`load_adult`.
    """
    folder = data_folder(data_home) / "baf"
    if not any((folder / name).is_file() for name in _BAF_FILES):
        by_hand = _get_baf_by_hand(repr(str(folder)))
        raise FileNotFoundError(f"fetch_baf cannot download Bank Account Fraud. {by_hand}")
    return folder


def _get_baf_by_hand(folder: str) -> str:
    return (
        "Its licence is for non-commercial use and a download by hand: "
        f"get Base.csv from {_BAF_PAGE} and put it into {folder}."
    )
