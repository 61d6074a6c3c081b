"""Numbers as places among knots, for networks that take numbers as they are.

FCorrTransformer bends each numeric feature at knots that are spread over its training rows and its
distinct values. Another network gets the same help here: a number becomes its place among the same
knots, and places are standardised. Long tails are pulled in, as by the quantile transform that the
authors of FT-Transformer use, but a rare value keeps its distance from the many zeros beside it.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcorr.training.knots import choose_knots

N_KNOTS = 64
"""Most knots of a column, as many as FCorr's shape functions have by default."""

_NAMES = "places.knots", "places.mean", "places.scale"  # in a model file


@dataclass(frozen=True)
class Places:
    """Knots of each numeric feature, and the mean and deviation of the training rows' places.

    Attributes
    ----------
    knots : ndarray of shape (n_numeric, n_knots)
        Increasing knots of each feature, filled up with infinity.
    mean, scale : ndarray of shape (n_numeric,)
        Of the places; a scale is positive.
    """

    knots: NDArray[np.float32]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def learn(cls, numbers: NDArray[np.float32]) -> "Places":
        """Choose the knots by the training rows ``(n_rows, n_numeric)``.

        Examples
        --------
        >>> numbers = np.array([[0.0], [0.0], [0.0], [1e6]], dtype=np.float32)
        >>> Places.learn(numbers).apply(numbers).T.round(3)
        array([[-0.577, -0.577, -0.577,  1.732]], dtype=float32)
        """
        chosen = [knots.numpy() for knots in choose_knots(numbers, N_KNOTS)]
        knots = np.full((len(chosen), N_KNOTS), np.inf, dtype=np.float32)
        for row, values in zip(knots, chosen, strict=True):
            row[: len(values)] = values
        places = [_place(column, row) for column, row in zip(numbers.T, knots, strict=True)]
        scale = np.array([place.std() for place in places], dtype=np.float64)
        mean = np.array([place.mean() for place in places], dtype=np.float64)
        return cls(knots, mean, np.where(scale > 0, scale, 1.0))

    def apply(self, numbers: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the standardised places; beyond the outermost knots nothing changes."""
        placed = np.empty_like(numbers)
        for i, knots in enumerate(self.knots):
            placed[:, i] = (_place(numbers[:, i], knots) - self.mean[i]) / self.scale[i]
        return placed

    def to_tensors(self) -> dict[str, Tensor]:
        """Return what a model file holds of it."""
        parts = self.knots, self.mean, self.scale
        return {name: torch.from_numpy(part) for name, part in zip(_NAMES, parts, strict=True)}

    @classmethod
    def take_from(cls, tensors: dict[str, Tensor], n_numeric: int) -> "Places":
        """Take it out of a model file's tensors, or refuse what places of no table could be."""
        knots, mean, scale = (tensors.pop(name).numpy().copy() for name in _NAMES)
        possible = (
            knots.shape == (n_numeric, N_KNOTS)
            and mean.shape == scale.shape == (n_numeric,)
            and bool(np.isfinite(knots[:, :1]).all() and np.isfinite(mean).all())
            and bool((scale > 0).all() and np.isfinite(scale).all())
            and all(bool((np.diff(row[np.isfinite(row)]) > 0).all()) for row in knots)
        )
        if not possible:
            raise ValueError("the knots of the numeric features are none of this schema")
        return cls(knots.astype(np.float32), mean.astype(np.float64), scale.astype(np.float64))


def _place(numbers: NDArray[np.float32], knots: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return each number's place among the knots: 0 at the first, between them by proportion."""
    known = knots[np.isfinite(knots)]
    return np.interp(numbers, known, np.arange(len(known), dtype=np.float64))
