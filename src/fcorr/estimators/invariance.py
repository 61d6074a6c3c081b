"""What the sensitive features are exchanged for, and the average over a portfolio of them.

NOTE[DIFF]: the paper has CAR alone, which comes close to invariance, and makes categories of
continuous sensitive features first. Exact invariance, and exchanges for a grid of numbers, are
additions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcorr._core import InvalidInputError
from fcorr.data.encode import EncodedTable
from fcorr.data.schema import DatetimeColumn, OrdinalColumn, Schema
from fcorr.nn.car import Exchange
from fcorr.nn.engine import use_engine
from fcorr.nn.fcorr import Network
from fcorr.training.objective import LinkName

Invariance = Literal["adapt", "marginal"] | None

MAX_PORTFOLIO = 4_096
"""Most combinations of sensitive values that predictions are averaged over."""

_N_GRID = 16  # numbers that a continuous feature is exchanged for
_N_NUMBERS = 256  # most that are put between and at the knots, to flip to and search through


def number_grid(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the numbers that a continuous feature is exchanged for.

    They are the middles of equally filled groups of the training rows, or all values where there
    are few; and NaN, last, where the model has an embedding for a missing number.

    Examples
    --------
    >>> number_grid(np.array([3.0, 1.0, np.nan, 1.0], dtype=np.float32))
    array([ 1.,  3., nan], dtype=float32)
    """
    known = numbers[~np.isnan(numbers)]
    grid = np.unique(known)
    if len(grid) > _N_GRID:
        middles = (np.arange(_N_GRID) + 0.5) / _N_GRID
        grid = np.unique(np.quantile(known, middles, method="inverted_cdf"))
    missing = [np.nan] if len(known) < len(numbers) else []
    return np.append(grid, missing).astype(np.float32)


def feature_values(model: Network, schema: Schema) -> list[Tensor]:
    """Return what each feature can hold, for flips and a search through all inputs.

    Codes are all listed. Numbers are the knots of a shape function, beyond which it is constant,
    and evenly spaced ones between: predictions need not be monotone there. The paper's embedding
    has no knots and grows without limit: the training range stands for it. Places in an order and
    parts of dates are whole numbers. Last comes what a missing number is to the model: NaN, or 0,
    the mean.
    """
    values = [torch.arange(n_codes).float() for n_codes in schema.cardinalities]
    whole = {
        feature.name
        for column in schema.columns
        if isinstance(column, OrdinalColumn | DatetimeColumn)
        for feature in column.features
    }
    for j, column in enumerate(schema.numeric):
        found = [
            each.knots[j, each.used[j]] for m in model.members if (each := m.knots) is not None
        ]
        if not found:
            ends = torch.tensor([column.low, column.high], dtype=torch.float64)
            found = [(ends - column.mean) / column.scale]
        knots = torch.cat(found).double().unique()
        # A power of 2: whole numbers two or four apart have the ones between them tried.
        n_parts = 2 ** max(0, int(math.log2(_N_NUMBERS / len(knots))))
        between = knots[:-1, None] + knots.diff()[:, None] * torch.arange(n_parts) / n_parts
        numbers = torch.cat([between.flatten(), knots])
        if column.name in whole:
            places = (column.mean + column.scale * numbers).round()
            numbers = (places - column.mean) / column.scale
        missing = torch.tensor([torch.nan if column.keep_missing else 0.0])
        values.append(torch.cat([numbers.float().unique(), missing]))
    return values


def label_value(schema: Schema, feature: int, value: float) -> str | float | None:
    """Return what the table calls a value that :func:`feature_values` lists; None is missing."""
    n_codes = len(schema.cardinalities)
    if feature < n_codes:
        return schema.categorical[feature].labels[int(value)]
    if math.isnan(value):
        return None
    column = schema.numeric[feature - n_codes]
    # The model reads it as a float32: the farther from the mean, the fewer digits it has.
    n_digits = 6 - math.floor(math.log10(column.scale * max(1, abs(value))))
    return round(column.mean + column.scale * value, n_digits) + 0.0


@dataclass(frozen=True)
class Portfolio:
    """Values of the sensitive features in the training table, and the share of each.

    A model's prediction averaged over it,

        f(x) = Σ_s P(s) · f(x, s),

    is what the actuarial literature calls the discrimination-free price (Lindholm, Richman,
    Tsanakas and Wüthrich, 2022). P(s) does not depend on the rest of the row: the sensitive
    feature's own effect is averaged out, and other features are not asked to stand in for it.

    Attributes
    ----------
    features : tuple of int
        Positions of the sensitive features in the model.
    values : Tensor
        ``(M, S)``: codes of categories and standardised numbers, in all combinations that occur.
    shares : Tensor
        ``(M,)`` in float64, of sum 1.
    """

    features: tuple[int, ...]
    values: Tensor
    shares: Tensor

    @classmethod
    def learn(
        cls, encoded: EncodedTable, features: Sequence[int], weight: NDArray[np.float64]
    ) -> "Portfolio":
        """Count the combinations in the training table; numbers by the nearest of a grid."""
        n_categorical = encoded.codes.shape[1]
        grids, places = [], []
        for feature in features:
            if feature < n_categorical:
                column = encoded.codes[:, feature].astype(np.float32)
                grids.append(np.unique(column))
            else:
                column = encoded.numbers[:, feature - n_categorical]
                grids.append(number_grid(column))
            known = grids[-1][~np.isnan(grids[-1])]
            nearest = np.searchsorted((known[1:] + known[:-1]) / 2, column)
            places.append(np.where(np.isnan(column), len(grids[-1]) - 1, nearest))  # NaN is last
        sizes = [len(grid) for grid in grids]
        occurring, row_of = np.unique(np.ravel_multi_index(places, sizes), return_inverse=True)
        if len(occurring) > MAX_PORTFOLIO:
            raise InvalidInputError(
                f"invariance='marginal' averages over at most {MAX_PORTFOLIO} combinations of "
                f"sensitive values, got {len(occurring)} in X. Name fewer sensitive columns, cut "
                "numbers into groups first, or use invariance='adapt'."
            )
        shares = np.bincount(row_of, weights=weight) / weight.sum()
        found = np.unravel_index(occurring, sizes)
        columns = [grid[place] for grid, place in zip(grids, found, strict=True)]
        return cls(
            tuple(features), torch.from_numpy(np.stack(columns, axis=1)), torch.from_numpy(shares)
        )

    @classmethod
    def restore(cls, values: Tensor, shares: Tensor, schema: Schema) -> "Portfolio":
        """Make a portfolio of what a model file holds; refuse what is none of this schema."""
        positions, n_codes = schema.sensitive_positions, len(schema.cardinalities)

        def is_possible(position: int, column: Tensor) -> bool:
            if position < n_codes:
                known = torch.arange(schema.cardinalities[position])
                return bool(torch.isin(column, known).all())
            feature = schema.numeric[position - n_codes]
            return not column.isinf().any() and (feature.keep_missing or not column.isnan().any())

        if (
            values.shape != (len(shares), len(positions))
            or len(shares) > MAX_PORTFOLIO
            or not bool((shares >= 0).all())
            or not math.isclose(float(shares.sum()), 1)
            or not all(map(is_possible, positions, values.T))
        ):
            raise ValueError("the portfolio of sensitive values is none of this schema")
        return cls(positions, values, shares.double())

    @use_engine("compiled")
    def average(self, model: Network, link: LinkName, e_BHF: Tensor) -> Tensor:
        """Average the predictions over the portfolio, and return them as outputs: ``(B, K)``.

        The average is taken on the scale of the predictions (probabilities, means), in float64
        and without leaving the log scale, and taken back through the link. What the rows, embedded
        for scoring, ``(B, H, F)``, hold in the sensitive features is not used, but written over.
        """
        own, total = list(self.features), None
        embedded_MHS = Exchange(own, self.values).embed(model)
        for values_HS, share in zip(embedded_MHS, self.shares.tolist(), strict=True):
            if share == 0:
                continue
            e_BHF[:, :, own] = values_HS
            outputs = model.score_embedded(e_BHF).double().numpy()
            if link == "identity":
                total = share * outputs if total is None else total + share * outputs
                continue
            if link == "sigmoid":  # the first of two classes has an output of 0
                outputs = np.pad(outputs, [(0, 0), (1, 0)])
            # By numpy, each row by itself: torch takes a vector's last numbers otherwise.
            log_sum = 0.0 if link == "exp" else np.logaddexp.reduce(outputs, axis=1, keepdims=True)
            found = math.log(share) + outputs - log_sum
            total = found if total is None else np.logaddexp(total, found)
        assert total is not None  # shares sum to 1
        mean = torch.from_numpy(total)
        return mean[:, 1:] - mean[:, :1] if link == "sigmoid" else mean
