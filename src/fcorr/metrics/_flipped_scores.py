"""The paper's perturbed data: what a model says of each row under each value of a column."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fcorr._core import InvalidInputError
from fcorr.metrics._flip_values import check_values
from fcorr.metrics._validation import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FlippedScores:
    """One score per row and category: what the model says of each row, had it that category.

    The rows with ``original == i`` and column j are the paper's partition ``D'_{s_i → s_j}``.

    Parameters
    ----------
    categories : tuple
        The C categories of the sensitive column, None for a missing value. For several columns,
        their combinations as tuples; for a measurement, values that stand for a group each.
    original : array-like of int, shape (n,)
        Position in `categories` of the category that each row really has, or of the group that it
        is in.
    scores : array-like of float, shape (n, C)
        ``scores[n, j]`` is the score of row n with its category set to ``categories[j]``.
    factual_scores : array-like of float, shape (n,), optional
        The scores of the rows as they are, where `categories` need not hold a row's own value.

    Examples
    --------
    >>> flips = FlippedScores(("f", "m"), [0, 1, 1], [[0.1, 0.3], [0.2, 0.2], [0.5, 0.4]])
    >>> flips.factual
    array([0.1, 0.2, 0.4])
    >>> flips.take([0, 0]).scores
    array([[0.1, 0.3],
           [0.1, 0.3]])
    """

    categories: tuple[Any, ...]
    original: IntArray
    scores: FloatArray
    factual_scores: FloatArray | None = None

    def __post_init__(self) -> None:
        original, scores = np.asarray(self.original), np.asarray(self.scores, dtype=np.float64)
        categories = tuple(self.categories)
        check_values(categories, "categories")
        if original.ndim != 1 or scores.shape != (len(original), len(categories)):
            raise InvalidInputError(
                "scores must have one row per original category and one column per category, got "
                f"shape {scores.shape} for {original.shape} originals and {len(categories)} "
                "categories. Let flip_scores build it."
            )
        if len(original) == 0:
            raise InvalidInputError("scores must have rows, got none. Check the row selection.")
        if original.dtype.kind not in "iu" or not (
            original.min() >= 0 and original.max() < len(categories)
        ):
            raise InvalidInputError(
                f"original must hold positions in categories, 0 to {len(categories) - 1}, got "
                f"{original.dtype} from {original.min()} to {original.max()}. "
                "Let flip_scores build it."
            )
        _check_finite("scores", scores)
        # The class is frozen for its users; this is still its construction.
        object.__setattr__(self, "categories", categories)
        object.__setattr__(self, "original", original.astype(np.intp, copy=False))
        object.__setattr__(self, "scores", scores)
        if self.factual_scores is not None:
            factual = np.asarray(self.factual_scores, dtype=np.float64)
            if factual.shape != original.shape:
                raise InvalidInputError(
                    f"factual_scores must have one score per row, got shape {factual.shape} for "
                    f"{len(original)} rows. Let flip_scores build it."
                )
            _check_finite("factual_scores", factual)
            object.__setattr__(self, "factual_scores", factual)

    def __len__(self) -> int:
        return len(self.original)

    @property
    def factual(self) -> FloatArray:
        """Each row's score with the category that it really has."""
        if self.factual_scores is not None:
            return self.factual_scores
        return np.take_along_axis(self.scores, self.original[:, None], axis=1)[:, 0]

    @property
    def groups(self) -> list[Any]:
        """Each row's category: the `sensitive_features` that group metrics take."""
        return [self.categories[code] for code in self.original]

    @property
    def lowest(self) -> FloatArray:
        """Each row's lowest score under any category, or as it is."""
        lowest = self.scores.min(axis=1)
        return lowest if self.factual_scores is None else np.minimum(lowest, self.factual_scores)

    @property
    def highest(self) -> FloatArray:
        """Each row's highest score under any category, or as it is."""
        highest = self.scores.max(axis=1)
        return highest if self.factual_scores is None else np.maximum(highest, self.factual_scores)

    @property
    def changes(self) -> FloatArray:
        """Each row's largest change of score, ``max_{s,s'} |f(x,s) − f(x,s')|``."""
        return self.highest - self.lowest

    def take(self, rows: npt.ArrayLike) -> "FlippedScores":
        """Return the chosen rows: positions, which may repeat, or a boolean mask."""
        rows = np.asarray(rows)
        factual = None if self.factual_scores is None else self.factual_scores[rows]
        return FlippedScores(self.categories, self.original[rows], self.scores[rows], factual)


def _check_finite(name: str, scores: FloatArray) -> None:
    n_bad = int((~np.isfinite(scores)).sum())
    if n_bad:
        raise InvalidInputError(
            f"{name} must be finite, got {n_bad} that are not. Check the model's output."
        )
