"""Where data sets lie, and what is said when one does not."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa

from fcorr._core import InvalidInputError, enumerate_some, user_cache

DataHome = str | os.PathLike[str] | None
VARIABLE = "FCORR_DATA"


def data_folder(data_home: DataHome = None) -> Path:
    """Return `data_home`, else the folder that FCORR_DATA names, else one in the user's cache.

    Examples
    --------
    >>> data_folder("my_data").name
    'my_data'
    """
    chosen = data_home if data_home is not None else os.environ.get(VARIABLE)
    return Path(chosen).expanduser() if chosen else user_cache()


def find_file(
    folder: str, names: Sequence[str], *, data_home: DataHome, loader: str, way_out: str
) -> Path:
    """Return the first of some files that is there.

    Parameters
    ----------
    folder : str
        The data set's own folder in the data folder.
    names : sequence of str
        Names that the file may have there, the usual one first.
    data_home : path-like or None
        What the user passed as the data folder.
    loader : str
        The function that looks for the file; an error starts with its name.
    way_out : str
        What to do, as the error's second sentence.

    Raises
    ------
    FileNotFoundError
        None of the files is there; the message says where they were looked for.
    """
    home = data_folder(data_home)
    for name in names:
        if (home / folder / name).is_file():
            return home / folder / name
    raise FileNotFoundError(
        f"{loader} needs {folder}/{names[0]}, which is not in {str(home)!r}. {way_out} "
        f"Set {VARIABLE}, or pass data_home, for another folder."
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
