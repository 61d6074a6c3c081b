"""Packages that only some users need."""

import importlib
from types import ModuleType


def require(package: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional package, or say in one line how to get it.

    Parameters
    ----------
    package : str
        The module to import.
    extra : str
        The extra of fcorr that installs it.
    purpose : str
        What needs it; the error starts with these words.

    Raises
    ------
    ImportError
        ``... needs polars: pip install 'fcorr[polars]'``.
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package.split(".")[0]:
            raise  # the package is there, but something it needs is not: that is another story
        raise ImportError(f"{purpose} needs {package}: pip install 'fcorr[{extra}]'") from error
