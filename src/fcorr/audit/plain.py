"""Plain data: what JSON can hold, and what two runs can be compared by."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def to_plain(value: Any) -> Any:
    """Turn arguments and results into what JSON can hold; nan and infinity become None.

    Examples
    --------
    >>> to_plain({"head": (8, 4), "bound": float("inf"), 1: np.float32(0.5)})
    {'head': [8, 4], 'bound': None, '1': 0.5}
    """
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
