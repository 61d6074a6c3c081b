"""Which arithmetic runs: kernels compiled by numba where it is installed, plain torch otherwise.

Both give the same results but for rounding; the kernels take about half the time. They serve single
precision on the CPU; anything else takes plain torch.
"""

import importlib.util
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor

EngineName = Literal["auto", "compiled", "plain"]

_active: EngineName = "auto"


def resolve_engine(engine: EngineName) -> Literal["compiled", "plain"]:
    """Return the engine that runs; "auto" takes the compiled one where numba is installed."""
    if engine not in ("auto", "compiled", "plain"):
        raise ValueError(f"engine must be 'auto', 'compiled' or 'plain', got {engine!r}.")
    if engine == "plain":
        return "plain"
    if importlib.util.find_spec("numba") is not None:
        return "compiled"
    if engine == "compiled":
        raise ImportError(
            "engine='compiled' needs numba: pip install 'fcorr[fast]'; engine='plain' does not."
        )
    return "plain"


@contextmanager
def use_engine(engine: EngineName) -> Iterator[None]:
    """Choose the engine within a ``with`` block, for all threads.

    Examples
    --------
    >>> from fcorr.nn.attention import attend
    >>> with use_engine("plain"):
    ...     attend(torch.zeros(1, 2))
    tensor([[0., 0.]])
    """
    global _active
    resolve_engine(engine)
    before, _active = _active, engine
    try:
        yield
    finally:
        _active = before


def prepare_engine(on_wait: Callable[[str], None]) -> None:
    """Load the kernels, or compile them where that was never done.

    ``on_wait`` is told if it takes long: the first time it takes about 15 seconds.
    """
    if resolve_engine(_active) == "plain":
        return
    from fcorr.nn.kernels.functions import warm_up

    message = "compiling fcorr's kernels, once per installation; it takes about 15 seconds"
    timer = threading.Timer(2.0, on_wait, [message])
    timer.start()
    try:
        warm_up()
    finally:
        timer.cancel()


def runs_compiled(x: Tensor) -> bool:
    """Whether the compiled kernels take a tensor."""
    suits = x.device.type == "cpu" and x.dtype == torch.float32
    return suits and resolve_engine(_active) == "compiled"
