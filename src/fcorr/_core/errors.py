"""Errors and warnings. An error names the rule, the value that broke it and the way out."""

import difflib
from collections.abc import Iterable

import numpy as np


class InvalidInputError(ValueError):
    """The data or an argument breaks a stated rule."""


class ModelFileError(ValueError):
    """A file is not a model that this version can read."""


class UnseenCategoryWarning(UserWarning):
    """Rows hold a category that training did not see; the message counts them."""


class NotEstimableWarning(UserWarning):
    """A metric cannot be computed for a group; the message names the group and its size."""


def near_match(name: str, options: Iterable[str]) -> str:
    """Return ``" Did you mean 'age'?"`` for a likely misspelling, or an empty string.

    Examples
    --------
    >>> near_match("agee", ["age", "sex"])
    " Did you mean 'age'?"
    >>> near_match("zip", ["age", "sex"])
    ''
    """
    matches = difflib.get_close_matches(str(name), [str(option) for option in options], n=1)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def enumerate_some(items: Iterable[object], limit: int = 5) -> str:
    """Write out the first few items for a message, and how many more there are.

    Examples
    --------
    >>> enumerate_some(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    names = [repr(item.item() if isinstance(item, np.generic) else item) for item in items]
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
