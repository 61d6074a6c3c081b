"""How kernels are compiled, and where the machine code is kept."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import njit

from fcorr._core import user_cache

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """Compile for speed.

    Sums may be reordered, so that they run in several lanes. Infinite and missing numbers keep
    their meaning.
    """
    return _compile(function, {"reassoc", "contract", "arcp", "nsz"})


def compiled_in_order(function: Kernel) -> Kernel:
    """Compile functions in which the order of the operations is the point."""
    return _compile(function, {"contract"})


def compiled_without_nan(function: Kernel) -> Kernel:
    """Compile a function that is never asked about NaN: a largest number is found in lanes then."""
    return _compile(function, {"nnan", "reassoc", "nsz"})


def _compile(function: Kernel, fast: set[str]) -> Kernel:
    # A division by zero raises nothing: a check in every lane would undo the gain.
    options: dict[str, Any] = {"fastmath": fast, "error_model": "numpy", "nogil": True}
    with _kept_in(_folder()):
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # no folder can be written to
            return njit(**options)(function)


@contextmanager
def _kept_in(folder: Path) -> Iterator[None]:
    config: Any = numba.config  # its names are made when it is imported
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _folder() -> Path:
    """Return a folder for this state of the sources.

    Numba compiles a function again when its own file changed, but not when a function that it
    calls did. A folder for each state of all the files leaves nothing out of date.
    """
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(chosen) if chosen else user_cache()
    return home / f"kernels-{digest.hexdigest()[:12]}"
