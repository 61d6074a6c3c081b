"""Named numbers side by side: what heat maps and bar charts are made of."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from fcorr._core import InvalidInputError
from fcorr.audit.figures._text import printable

MAX_FEATURES = 60
STAR = " *"
"""What may stand behind a name to single it out; no part of the name."""


@dataclass(frozen=True, eq=False)
class Panel:
    """A titled group of named numbers, checked when made."""

    title: str
    names: Sequence[str]
    values: NDArray[np.float64]

    _n_dims: ClassVar[int]

    def __post_init__(self) -> None:
        title = printable(self.title)
        names = tuple(printable(name) for name in self.names)
        values = np.array(self.values, dtype=np.float64)
        shape = (len(names),) * self._n_dims
        if not names:
            raise InvalidInputError(f"Panel {title!r} has no features. Pass at least one name.")
        if values.shape != shape:
            raise InvalidInputError(
                f"Panel {title!r} has {len(names)} names, so values must have shape {shape}, "
                f"got {values.shape}."
            )
        if not np.isfinite(values).all():
            where = tuple(np.argwhere(~np.isfinite(values))[0])
            features = " × ".join(repr(names[i]) for i in where)
            raise InvalidInputError(
                f"Panel {title!r} must hold finite numbers, got {values[where]} for {features}. "
                "Leave out the features that have none."
            )
        for field, value in (("title", title), ("names", names), ("values", values)):
            object.__setattr__(self, field, value)


AnyPanel = TypeVar("AnyPanel", bound=Panel)


def check_panels(panels: Iterable[AnyPanel], figure: str) -> list[AnyPanel]:
    """Refuse a figure that would be empty, or too crowded to read."""
    panels = list(panels)
    if not panels:
        raise InvalidInputError(f"A {figure} needs at least one panel, got none.")
    for panel in panels:
        if len(panel.names) > MAX_FEATURES:
            raise InvalidInputError(
                f"A {figure} shows at most {MAX_FEATURES} features, panel {panel.title!r} has "
                f"{len(panel.names)}. Choose the ones to show."
            )
    return panels


def as_names(sensitive: Collection[str]) -> frozenset[str]:
    """Return the names to mark, as they are shown; one name need not be wrapped in a list."""
    names = [sensitive] if isinstance(sensitive, str) else sensitive
    return frozenset(printable(name) for name in names)


def describe_marked(panels: Sequence[Panel], marked: Collection[str]) -> list[str]:
    """Name the sensitive features that are shown, in a sentence if there are any.

    One that is marked with and without a star is named once, without it.
    """
    labels = {name for panel in panels for name in panel.names if name in marked}
    plain = {name: name.removesuffix(STAR) for name in labels}
    shown = sorted({plain[name] if plain[name] in marked else name for name in labels})
    return [f"Sensitive: {', '.join(shown)}."] if shown else []


def identity(
    kind: str,
    title: str,
    panels: Sequence[Panel],
    marked: Collection[str],
    *more: str,
) -> str:
    """Derive the figure's ids from its content: unique among many in a page, never random."""
    digest = hashlib.sha256(repr((kind, title, sorted(marked), more)).encode())
    for panel in panels:
        digest.update(repr((panel.title, panel.names)).encode())
        digest.update(panel.values.tobytes())
    return f"figure-{digest.hexdigest()[:12]}"
