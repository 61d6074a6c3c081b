"""Population statements: the share for whom a flip would change the prediction, from a sample.

All flips of a row can be tried where they are to categories, or to a list of numbers: the largest
change of each sampled row is then known. What is not known is the rest of the population. The
statements here are about the flips that were tried, and no others; they hold for any distribution
and any sample size, and rest on the exact binomial distribution and on nothing else.
"""

import math
import numbers
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

import numpy as np

from fcorr._core import InvalidInputError, check_argument, is_number
from fcorr.metrics._checks import as_floats, check_confidence


@dataclass(frozen=True)
class PopulationBound:
    """With confidence ``confidence``, at most a share ``alpha`` sees a change above ``epsilon``.

    Attributes
    ----------
    epsilon, alpha : float or None, float
        The change, and the share of the population; epsilon is 0 where the share is of those who
        see any change at all, None where the sample is too small for one.
    confidence : float
        How often, over repeated samples, such a statement is right at least.
    n_rows, n_above : int, int or None
        Rows of the sample, and those of them with a change above ``epsilon``.
    reason : str
        Why ``epsilon`` is None; else empty.
    """

    epsilon: float | None
    alpha: float
    confidence: float
    n_rows: int
    n_above: int | None
    reason: str = ""

    def __str__(self) -> str:
        if self.epsilon is None:
            return self.reason
        change = f"a change above {_round_up(self.epsilon)}" if self.epsilon else "any change"
        return (
            f"With {self.confidence} confidence at most {_round_up(self.alpha, 100)} % of the "
            f"population would see {change} "
            f"({self.n_above} of {self.n_rows} sampled rows do)."
        )


def _round_up(value: float, times: int = 1) -> str:
    """Write three digits, and never a smaller number: of that there would be no proof."""
    # A number is what its shortest spelling says, as whoever gave it wrote it.
    exact = Decimal(repr(float(value))) * times
    return f"{float(Context(3, ROUND_CEILING).create_decimal(exact)):.3g}"


def population_bound(
    changes: Any,
    *,
    epsilon: float | None = None,
    alpha: float | None = None,
    confidence: float = 0.95,
) -> PopulationBound:
    r"""Bound the share of the population whose prediction changes by more than epsilon.

    Give one of ``epsilon`` and ``alpha`` and get the other. There are no weights, because counts of
    weighted rows are not binomial: draw rows in proportion to them first.

    For a given ε, the k of n rows above it are binomial, and α is the upper limit of Clopper and
    Pearson: the (confidence) quantile of Beta(k + 1, n − k). For a given α, ε is the smallest order
    statistic x_(m) that lies at or above the population's (1 − α) quantile q often enough: it does
    if at most m − 1 rows lie below q, and their number is at most Binomial(n, 1 − α). Even the
    largest row is not enough if ``n < log(1 − confidence)/log(1 − alpha)``.

    Parameters
    ----------
    changes : array-like of shape (n_rows,)
        Largest change of each row's prediction over all flips that the statement is to be about,
        as `FlippedScores.changes` has it. The rows must be an independent sample of the
        population that had no part in training.
    epsilon : float, optional
        The change of interest, 0 or more. 0 asks for the share that sees any change at all, be it
        of the last bit.
    alpha : float, optional
        The share of interest, between 0 and 1.
    confidence : float, default=0.95
        Confidence of the statement.

    Returns
    -------
    PopulationBound
        The statement.

    Examples
    --------
    >>> population_bound([0.0] * 299, alpha=0.01).epsilon
    0.0
    >>> population_bound([0.0] * 298, alpha=0.01).epsilon is None
    True
    >>> round(population_bound([0.0] * 99 + [0.2], epsilon=0).alpha, 4)
    0.0466
    """
    check_confidence(confidence)
    if (epsilon is None) == (alpha is None):
        raise InvalidInputError(
            f"population_bound needs one of epsilon and alpha, got epsilon={epsilon!r} and "
            f"alpha={alpha!r}. Give the one you know."
        )
    sizes = as_floats(changes, "changes")
    if sizes.min() < 0:
        raise InvalidInputError(
            f"changes must not be negative, got {sizes.min():g}. Pass absolute changes."
        )
    from scipy.special import betainc, betaincinv

    n_rows = len(sizes)
    if epsilon is not None:
        fits = is_number(epsilon) and epsilon >= 0
        way_out = (
            "Give the change from which on it matters, such as 0.01, or 0 for any change at all."
        )
        check_argument("epsilon", epsilon, fits, "a finite number, 0 or more", way_out)
        n_above = int((sizes > epsilon).sum())
        # Where all rows lie above there is no such quantile: the share may be everyone.
        share = betaincinv(n_above + 1, n_rows - n_above, confidence) if n_above < n_rows else 1.0
        return PopulationBound(float(epsilon), float(share), confidence, n_rows, n_above)

    if not isinstance(alpha, numbers.Real) or not 0 < alpha < 1:
        raise InvalidInputError(
            f"alpha must lie between 0 and 1, got {alpha!r}. Write 1 % as 0.01."
        )
    alpha = float(alpha)
    m = np.arange(1, n_rows + 1)
    # P(Binomial(n, 1 - alpha) <= m - 1), as an incomplete beta function.
    is_enough = betainc(n_rows - m + 1, m, alpha) >= confidence
    if not is_enough.any():
        needed = math.ceil(math.log1p(-confidence) / math.log1p(-alpha))
        reason = (
            f"{n_rows} rows are too few to say anything about a share of {100 * alpha:.3g} % of "
            f"the population with {confidence} confidence: it takes {needed}."
        )
        return PopulationBound(None, alpha, confidence, n_rows, None, reason)
    epsilon = float(np.sort(sizes)[is_enough.argmax()])
    return PopulationBound(epsilon, alpha, confidence, n_rows, int((sizes > epsilon).sum()))
