"""What kernels are made of: how they are compiled, exponentials in lanes."""

import hashlib
import logging
import math
import os
import pickle
import stat
import sys
import warnings
from collections.abc import Callable, Collection
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba import njit
from numpy.polynomial import Chebyshev, Polynomial
from numpy.typing import NDArray
from scipy.special import erfcx

from fcorr._core import user_cache, write_atomically

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
Floats = NDArray[np.float64]


@cache
def cache_folder() -> Path | None:
    """Return a folder of the user's own for the machine code of this state of the sources.

    Numba compiles a function again when its own file changed, but not when a function that it
    calls did. A folder for each state of all the files leaves nothing out of date.

    To load machine code is to execute it. Where others could put theirs, or nothing can be kept,
    there is no folder: a warning says so, and kernels are compiled in every process.
    """
    digest = hashlib.sha256(f"{numba.__version__} {sys.implementation.cache_tag}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    place = Path("the user's cache")
    try:
        place = Path(chosen) if chosen else user_cache()
        place = folder = (place / f"kernels-{digest.hexdigest()[:12]}").resolve()
        for each in (*reversed(folder.parents), folder):
            each.mkdir(mode=0o700, exist_ok=True)
        _refuse_shared(folder)
    except (OSError, RuntimeError) as error:  # the second for links that go in circles
        _warn_not_kept(place, error)
        return None
    return folder


def _refuse_shared(folder: Path) -> None:
    """Refuse a folder in which somebody else could put files."""
    if sys.platform == "win32":
        return  # what lies in a user's profile is closed to others by its access lists
    _refuse_foreign(folder.stat())
    if folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError("other users may write to it")
    for parent in folder.parents:
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:  # sticky: only owners rename
            raise PermissionError(f"any user may replace what is in {str(parent)!r}")


def _refuse_foreign(status: os.stat_result) -> None:
    if sys.platform != "win32" and status.st_uid != os.geteuid():
        raise PermissionError("it belongs to another user")


@cache
def _warn_once(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=2)


def _warn_not_kept(folder: Path, error: Exception) -> None:
    reason = str(getattr(error, "strerror", None) or error).rstrip(".")
    _warn_once(
        f"Compiled kernels are not kept in {str(folder)!r}: {reason}. Every process compiles its "
        "own, which takes about 10 seconds. Delete the folder if it is there, or set "
        "NUMBA_CACHE_DIR to one that you alone can write to."
    )


_announced = False


def announce(tell: Callable[[str], None] | None = None) -> None:
    """Tell somebody, else the log, why nothing seems to happen; once in a process."""
    global _announced
    if not _announced:
        _announced = True
        how_often = "in every process" if cache_folder() is None else "once per installation"
        tell = tell or logging.getLogger("fcorr").warning
        tell(f"compiling fcorr's kernels, {how_often}; it takes about 10 seconds")


class _MachineCode:
    """The machine code of a kernel on disk: a file for each signature, which its digest starts.

    It stands in a dispatcher's ``_cache``, in the place of numba's own, which ends a program with
    an error when a file is damaged or the disk full, runs what a flipped bit made of a kernel, and
    goes on to other folders, whoever's they are, if its own cannot be written to. Numba has no
    public way to put it there. Should the private names that this takes change, kernels still run,
    compiled by every process.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"

    @property
    def cache_path(self) -> str | None:
        """The folder, which a dispatcher's ``stats`` show."""
        return None if cache_folder() is None else str(cache_folder())

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return what was compiled for a signature, or None."""
        target_context.refresh()  # as numba's own does: it may not be initialised yet
        folder, name = cache_folder(), self._file_name(signature, target_context.codegen())
        try:
            from numba.core.compiler import CompileResult

            if folder is not None:
                with (folder / name).open("rb") as file:
                    _refuse_foreign(os.fstat(file.fileno()))
                    digest, content = file.read(32), file.read()
                if digest != _digest(folder / name, content):
                    raise ValueError("not what was written")
                return CompileResult._rebuild(target_context, *pickle.loads(content))
        except FileNotFoundError:
            pass
        except Exception:  # the file is no use, whatever is wrong with it
            _warn_once(
                f"Compiled kernels in {str(folder)!r} are damaged or cannot be read. They are "
                "compiled again, which takes about 10 seconds."
            )
        announce()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled for a signature, if it can be."""
        folder = cache_folder()
        if folder is None:
            return
        path = folder / self._file_name(signature, result.codegen)
        try:
            if result.lifted or result.library.has_dynamic_globals:
                raise ValueError(f"{self._name} holds addresses in this process")
            content = pickle.dumps(result._reduce())
            write_atomically(path, _digest(path, content) + content)
        except Exception as error:  # it has been compiled, and serves this process
            _warn_not_kept(folder, error)

    def flush(self) -> None:
        """Forget nothing: a dispatcher asks for this before it compiles again by hand."""

    def _file_name(self, signature: Any, codegen: Any) -> str:
        """Name the file for a signature on this kind of processor."""
        key = f"{signature} {codegen.magic_tuple()}".encode()
        return f"{self._name}-{hashlib.sha256(key).hexdigest()[:16]}.nbc"


def _digest(path: Path, content: bytes) -> bytes:
    """Digest a file's content with its name: under another name it would be another kernel."""
    return hashlib.sha256(f"{path.parent.name}/{path.name}".encode() + content).digest()


def _compile(function: Kernel, fast: Collection[str] = ()) -> Kernel:
    """Compile a kernel, with some of the freedoms of fast arithmetic."""
    # A division by zero raises nothing: a check in every lane would undo the gain.
    options: dict[str, Any] = {"fastmath": set(fast), "error_model": "numpy", "nogil": True}
    # No entrance from C, and none from Python to what kernels alone call: it takes time.
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": function.__name__[0] == "_"}
    kernel: Any = njit(**options)(function)
    if hasattr(kernel, "_cache"):
        kernel._cache = _MachineCode(function)
    return kernel


# Sums may be reordered, so that they run in several lanes. Infinite and missing numbers keep their
# meaning.
compiled = partial(_compile, fast=("reassoc", "contract", "arcp", "nsz"))
# For functions in which the order of the operations is the point.
compiled_in_order = partial(_compile, fast=("contract",))
# For sums whose order must be the same for every row: the arithmetic is IEEE's, step by step.
compiled_as_written = _compile


# The C library's exponential and error function are called for one number at a time, which would
# take most of a kernel's time. The compiler can vectorise these.

_LOG2_E = 1 / math.log(2)
_LN2_HIGH = 0.693359375  # few enough bits that its small multiples are exact
_LN2_LOW = math.log(2) - _LN2_HIGH
_ROUND_64 = 1.5 * 2.0**52  # adding it rounds to an integer, and leaves that in the lowest bits
_ROUND_32 = np.float32(1.5 * 2.0**23)
_TAYLOR = tuple(1 / math.factorial(n) for n in range(11))
_TAYLOR_32 = tuple(np.float32(1 / math.factorial(n)) for n in range(8))


@compiled_in_order
def exp(x: float) -> float:
    """``e^x`` to 1e-11, for finite x; beyond ±700 it stays what it is there."""
    x = min(max(x, -700.0), 700.0)
    rounded = x * _LOG2_E + _ROUND_64
    whole = rounded - _ROUND_64
    r = x - whole * _LN2_HIGH - whole * _LN2_LOW
    t = _TAYLOR[10]
    for n in range(9, -1, -1):
        t = t * r + _TAYLOR[n]
    power = (np.float64(rounded).view(np.int64) + np.int64(1023)) << np.int64(52)
    return t * np.int64(power).view(np.float64)


@compiled_in_order
def exp_32(x: np.float32) -> np.float32:
    """``e^x`` in single precision, for x ≤ 87; below −87 it stays what it is there."""
    x = max(x, np.float32(-87.0))
    rounded = x * np.float32(_LOG2_E) + _ROUND_32
    whole = rounded - _ROUND_32
    r = x - whole * np.float32(_LN2_HIGH) - whole * np.float32(_LN2_LOW)
    t = _TAYLOR_32[6]
    for n in range(5, -1, -1):
        t = t * r + _TAYLOR_32[n]
    power = (np.float32(rounded).view(np.int32) + np.int32(127)) << np.int32(23)
    return t * np.int32(power).view(np.float32)


@compiled_in_order
def expm1_32(x: np.float32) -> np.float32:
    """``e^x − 1`` in single precision, exact in the small: the result is relative to x."""
    x = min(max(x, np.float32(-87.0)), np.float32(87.0))
    rounded = x * np.float32(_LOG2_E) + _ROUND_32
    whole = rounded - _ROUND_32
    r = x - whole * np.float32(_LN2_HIGH) - whole * np.float32(_LN2_LOW)
    t = _TAYLOR_32[7]
    for n in range(6, 0, -1):
        t = t * r + _TAYLOR_32[n]
    power = (np.float32(rounded).view(np.int32) + np.int32(127)) << np.int32(23)
    scale = np.int32(power).view(np.float32)
    return scale * (t * r) + (scale - np.float32(1.0))


# ``e^{u²} erfc(u)`` for u ≥ 0, as a function of t = 1/(1 + u/2) in (0, 1].
_TAIL = Chebyshev.interpolate(lambda t: erfcx(2 / np.maximum(t, 1e-12) - 2), 10, domain=[0, 1])
_TAIL_32 = tuple(np.float32(c) for c in _TAIL.convert(kind=Polynomial).coef)  # good to 3e-8
_SQRT_HALF = math.sqrt(0.5)
_NORMAL = 1 / math.sqrt(2 * math.pi)


@compiled_in_order
def gelu_32(x: np.float32) -> np.float32:
    """``x Φ(x)``, Φ the distribution function of the standard normal, to 4e-7."""
    bell = exp_32(np.float32(-0.5) * x * x)
    tail = _tail_32(x) * bell
    return x * (tail if x < 0 else np.float32(1.0) - tail)


@compiled_in_order
def gelu_slope_32(x: np.float32) -> np.float32:
    """Compute its derivative, ``Φ(x) + x φ(x)``."""
    bell = exp_32(np.float32(-0.5) * x * x)
    tail = _tail_32(x) * bell
    return (tail if x < 0 else np.float32(1.0) - tail) + x * (np.float32(_NORMAL) * bell)


@compiled_in_order
def _tail_32(x: np.float32) -> np.float32:
    """``Φ(−|x|) e^{x²/2}``."""
    t = np.float32(1.0) / (np.float32(1.0) + np.float32(0.5 * _SQRT_HALF) * abs(x))
    tail = _TAIL_32[10]
    for n in range(9, -1, -1):
        tail = tail * t + _TAIL_32[n]
    return tail * np.float32(0.5)
