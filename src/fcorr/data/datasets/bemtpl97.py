"""beMTPL97: claim counts of Belgian motor third-party liability policies, with sex and age."""

import io
import zlib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pa_parquet
from numpy.typing import NDArray

from fcorr._core import InvalidInputError
from fcorr.data.datasets._dataset import (
    DataHome,
    Dataset,
    DownloadError,
    check_table,
    column_to_numpy,
    data_folder,
    download,
    encode_categories,
    find_file,
    save,
    select,
    split,
)
from fcorr.data.datasets._rdata import read_rda
from fcorr.data.files import read_file
from fcorr.data.generators._draws import FrameName, check_frame

_URL = "https://github.com/dutangc/CASdatasets/raw/master/data/beMTPL97.rda"
_N_ROWS = 163_212
_TEXTS = ("coverage", "sex", "fuel", "use", "fleet")
_FEATURES = (
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
_COLUMNS = ("id", "expo", "nclaims", *_FEATURES)


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
    path = find_file(
        "beMTPL97",
        ["beMTPL97.parquet", "beMTPL97.csv", "beMTPL97.csv.gz"],
        data_home=data_home,
        loader="load_bemtpl97",
        way_out="Call fetch_bemtpl97() to download it.",
    )
    table = read_file(path, text=_TEXTS)
    check_table(table, path, columns=_COLUMNS, n_rows=_N_ROWS)
    train, test = split(
        select(table, _FEATURES),
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

    Examples
    --------
    >>> fetch_bemtpl97()  # doctest: +SKIP
    """
    folder = data_folder(data_home) / "beMTPL97"
    path = folder / "beMTPL97.parquet"
    if force or not path.exists():
        way_out = (
            "In R: data(beMTPL97, package = 'CASdatasets'); write.csv(beMTPL97, 'beMTPL97.csv', "
            f"row.names = FALSE, na = ''). Put the file at {str(path.with_suffix('.csv'))!r}."
        )
        content = download(_URL, way_out=way_out, verbose=verbose)
        try:
            table = read_rda(content, "beMTPL97")
            check_table(table, path, columns=_COLUMNS, n_rows=_N_ROWS)
        except InvalidInputError as error:
            raise DownloadError(f"{_URL} is not beMTPL97 ({error}). {way_out}") from error
        buffer = io.BytesIO()
        pa_parquet.write_table(encode_categories(table), buffer)
        save(path, buffer.getvalue())
    return folder


def _is_test(ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which policies are kept for testing: about one in five.

    Examples
    --------
    >>> np.flatnonzero(_is_test(np.arange(20))).tolist()
    [6, 12]
    """
    return np.array([zlib.crc32(str(policy).encode()) % 5 == 0 for policy in ids.tolist()])
