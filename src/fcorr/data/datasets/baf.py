"""Bank Account Fraud, base variant: the user's own download."""

from pathlib import Path

import numpy as np
import pyarrow.types as pat

from fcorr.data.datasets._dataset import (
    DataHome,
    Dataset,
    check_table,
    column_to_numpy,
    data_folder,
    find_file,
    split,
)
from fcorr.data.files import read_file
from fcorr.data.generators._draws import FrameName, check_frame
from fcorr.data.generators.bank_fraud import make_bank_fraud

_PAGE = "https://www.kaggle.com/datasets/sgpjesus/bank-account-fraud-dataset-neurips-2022"
_FILES = ("Base.csv", "Base.csv.gz", "Base.parquet")
_TARGET = "fraud_bool"
_FIRST_TEST_MONTH = 6


def load_baf(*, frame: FrameName = "pyarrow", data_home: DataHome = None) -> Dataset:
    """Load Bank Account Fraud: applications of six months to learn from, of two to test on.

    Parameters
    ----------
    frame : {"pyarrow", "pandas", "polars"}, default="pyarrow"
        The kind of table to return. The values do not depend on it.
    data_home : path-like, optional
        The data folder, with ``baf/Base.csv`` in it. When left out, the one that the environment
        variable FCORR_DATA names, else the user's cache.

    Returns
    -------
    Dataset
        `y` is 1 for fraud. The 31 features have the names, the order and the kinds of
        :func:`make_bank_fraud`. As in the file, -1 in ``prev_address_months_count`` and
        ``bank_months_count`` and a negative ``intended_balcon_amount`` mean "not known".

    Raises
    ------
    FileNotFoundError
        The file is not there; the message says where to get it and where to put it.

    See Also
    --------
    fetch_baf : Say where to get the file.
    make_bank_fraud : A stand-in that is free to use.

    Notes
    -----
    Months 0 to 5 are to learn from and 6 and 7 to test on. ``month`` is one of the paper's 31
    features and stays in `X`, although the test months are new to a model: leave it out to score
    without warnings about unseen categories.

    Examples
    --------
    >>> fraud = load_baf()  # doctest: +SKIP
    >>> fraud.sensitive[0]  # doctest: +SKIP
    'customer_age'
    """
    check_frame(frame, caller="load_baf")
    schema = make_bank_fraud(1, random_state=0)[0].schema
    categorical = [field.name for field in schema if pat.is_dictionary(field.type)]
    path = find_file("baf", _FILES, data_home, way_out=_by_hand("the folder baf"))
    table = read_file(path, text=categorical)
    check_table(table, path, columns=(_TARGET, *schema.names))
    train, test = split(
        table,
        schema.names,
        column_to_numpy(table, "month", np.int64) >= _FIRST_TEST_MONTH,
        y=column_to_numpy(table, _TARGET, np.int64),
        frame=frame,
    )
    return Dataset(
        name="Bank Account Fraud (base)",
        train=train,
        test=test,
        target="fraud",
        sensitive=("customer_age", "income", "employment_status"),
        description="Applications for bank accounts, generated after real ones, one per row.",
        source=f"Jesus et al., Turning the Tables, NeurIPS 2022; {_PAGE}",
        licence="non-commercial, no redistribution: see the source",
    )


def fetch_baf(*, data_home: DataHome = None) -> Path:
    """Say where Bank Account Fraud is to be had: its licence wants a download by hand.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder; as for :func:`load_baf` when left out.

    Returns
    -------
    pathlib.Path
        The folder with the file, if it is there.

    Raises
    ------
    FileNotFoundError
        It is not there; the message says where to get it and where to put it.
    """
    folder = data_folder(data_home) / "baf"
    if not any((folder / name).is_file() for name in _FILES):
        raise FileNotFoundError(
            f"fetch_baf cannot download Bank Account Fraud. {_by_hand(repr(str(folder)))}"
        )
    return folder


def _by_hand(folder: str) -> str:
    return (
        "Its licence is for non-commercial use and a download by hand: "
        f"get Base.csv from {_PAGE} and put it into {folder}."
    )
