"""Warnings of a run, kept apart: what could not be estimated, and all else."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fcorr._core import NotEstimableWarning


@dataclass
class Heard:
    """What was warned of, each message once.

    Attributes
    ----------
    notes : list of str
        Which metrics are not estimable, or not for all groups, and why.
    others : list of Warning
        All other warnings.
    """

    notes: list[str] = field(default_factory=list)
    others: list[Warning] = field(default_factory=list)

    def tell(self, told: set[str], stacklevel: int) -> None:
        """Warn of the others, unless they were told before."""
        for warning in self.others:
            if str(warning) not in told:
                told.add(str(warning))
                warnings.warn(warning, stacklevel=stacklevel + 1)


@contextmanager
def listen() -> Iterator[Heard]:
    """Catch warnings, so that a hundred alike runs do not repeat one a hundred times."""
    heard = Heard()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield heard
    texts: set[str] = set()
    for entry in caught:
        message = (
            entry.message if isinstance(entry.message, Warning) else UserWarning(entry.message)
        )
        if str(message) in texts:
            continue
        texts.add(str(message))
        if isinstance(message, NotEstimableWarning):
            heard.notes.append(str(message))
        else:
            heard.others.append(message)
