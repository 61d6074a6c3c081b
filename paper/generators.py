"""A stand-in for the paper's InsurTech data, from a population that is our own and known."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fcorr._core import RandomState
from fcorr.data.generators import (
    begin,
    check_rate,
    codes_of,
    draw_categories,
    draw_flag,
    sigmoid,
    solve_intercept,
)

# Of the non-zero claims in the paper's data (Section 4.3).
_MEAN_AMOUNT = 27_507.90
_SD_AMOUNT = 33_244.72

_CREDIT = ("A+", "A", "B+", "B", "C+", "C", "missing")
_CREDIT_WEIGHTS = (0.08, 0.18, 0.20, 0.20, 0.12, 0.08, 0.14)
_CREDIT_EFFECT = np.array([-0.7, -0.4, -0.15, 0.0, 0.4, 0.8, 0.3])
# How far a credit score leans towards the classes that stand for poor credit.
_CREDIT_LEANING = np.array([-1.5, -1.0, -0.3, 0.2, 1.0, 1.5, 0.0])

_LIMITS = np.array([100_000, 300_000, 500_000, 1_000_000, 2_000_000], dtype=np.float32)
_LIMIT_WEIGHTS = (0.15, 0.20, 0.20, 0.30, 0.15)


def _numbered(prefix: str, count: int, *, digits: int) -> list[str]:
    return [f"{prefix}.{number:0{digits}d}" for number in range(1, count + 1)]


_INS_CLASS = _numbered("INS.CLASS", 40, digits=3)
_NEG_KW, _CLASS = _numbered("NEG.kw", 142, digits=3), _numbered("CLASS", 200, digits=3)
_TERRITORY, _INDEX = _numbered("TERRITORY", 98, digits=2), _numbered("INDEX", 99, digits=2)

# How a class leans: the first six and two more stand for poor credit, four for good credit.
_PROXY_SLOPES = dict(zip(_INS_CLASS, [1.2] * 6 + [-1.2] * 4 + [1.2] * 2, strict=False))

# Effects on the log-odds of a claim.
_FLAG_EFFECT = {
    "INS.CLASS.011": 0.5,
    "INS.CLASS.012": 0.5,
    "NEG.kw.001": 0.8,
    "NEG.kw.002": 0.6,
    "NEG.kw.003": 0.5,
    "CLASS.001": 0.5,
    "CLASS.002": -0.5,
    "CLASS.003": 0.4,
}
_PLANTED_FLAG_RATE = {
    "NEG.kw.001": 0.08,
    "NEG.kw.002": 0.06,
    "NEG.kw.003": 0.10,
    "CLASS.001": 0.12,
    "CLASS.002": 0.15,
    "CLASS.003": 0.20,
    "CLASS.004": 0.15,
}


def make_claims(
    n_rows: int = 235_636,
    *,
    claim_rate: float = 0.0079,
    random_state: RandomState = None,
) -> tuple[pa.Table, NDArray[np.float64]]:
    """Draw business liability policies with 581 features, few of them with a claim.

    The table has the shape of the paper's InsurTech data, which is private: one feature of seven
    categories, 382 binary and 198 numeric ones, 0.79 % non-zero claims, skewed amounts with the
    same mean and standard deviation. Its population is our own and known; no figure obtained on it
    is a figure for the real data. ``credit_score`` is the sensitive feature.

    Parameters as in :func:`~fcorr.data.make_bank_fraud`; `claim_rate` is the expected share of
    policies with a claim, and moves the intercept of the frequency only.

    Returns
    -------
    X : pyarrow.Table
        ``credit_score`` (A+, A, B+, B, C+, C and, as a category of its own, ``"missing"``),
        ``CovgLimit``, ``INS.CLASS.001`` to ``.040``, ``TERRITORY.01`` to ``.98``, ``NEG.kw.001`` to
        ``.142``, ``CLASS.001`` to ``.200`` and ``INDEX.01`` to ``.99``. Binary features are
        categorical (``"0"``, ``"1"``; one byte per row), numeric ones of single precision.
    y : ndarray of float64, shape (n_rows,)
        The claim amount of each policy: zero, or with mean 27,507.90 and standard deviation
        33,244.72 over the policies that have a claim.

    Notes
    -----
    **What is planted.** A claim happens with log-odds that are a sum of effects; its amount is
    log-normal round a mean that is a product of factors.

    *Direct effect of the sensitive feature*, on frequency only: ``credit_score`` A+ -0.7, A -0.4,
    B+ -0.15, B 0, missing 0.3, C+ 0.4, C 0.8.

    *Proxies of the credit score*, independent of each other and of all else given it:

    - ``INS.CLASS.001`` to ``.006`` (commoner with poor credit) and ``.007`` to ``.010`` (commoner
      with good credit): **no effect of their own**;
    - ``INS.CLASS.011`` and ``.012`` (commoner with poor credit): 0.5 each.

    *Honest predictors of frequency*, independent of the credit score and of each other:

    - ``CovgLimit``, the strongest: 0.55 ln(limit);
    - ``TERRITORY.01``: 0.5 ln(x); ``TERRITORY.02``: -0.4 ln(x); ``TERRITORY.03``: 0.4 above 1.3 (a
      step);
    - ``INDEX.01``: 0.3 x; ``INDEX.02``: -0.25 x; ``INDEX.03``: 0.35 times the size of x;
    - ``NEG.kw.001``: 0.8; ``NEG.kw.002``: 0.6; ``NEG.kw.003``: 0.5;
    - ``CLASS.001``: 0.5; ``CLASS.002``: -0.5; ``CLASS.003``: 0.4.

    *Predictors of the amount*, on the log of its mean: ``CovgLimit`` 0.25 ln(limit),
    ``NEG.kw.001`` 0.3, ``CLASS.004`` 0.25 and ``INDEX.04`` 0.1 x (up to ±3), these two without any
    effect on frequency. Given these, the amount depends on nothing else.

    *Noise*: all other columns, each independent of all the rest; the flags among them from 0.6 % to
    30 % ones, ``INDEX.50`` to ``.99`` zero for seven rows in ten.

    Examples
    --------
    >>> X, y = make_claims(1_000, random_state=0)
    >>> X.shape, X.column_names[:3]
    ((1000, 581), ['credit_score', 'CovgLimit', 'INS.CLASS.001'])
    """
    claim_rate = check_rate(claim_rate, name="claim_rate")
    n_rows, rng = begin(n_rows, random_state)
    credit = draw_categories(rng, _CREDIT, _CREDIT_WEIGHTS, size=n_rows)
    numbers = _draw_claims_numbers(rng, n_rows)
    flags = _draw_claims_flags(rng, codes_of(credit))

    log_odds = _CREDIT_EFFECT[codes_of(credit)]
    for name, effect in _FLAG_EFFECT.items():
        log_odds += effect * codes_of(flags[name])
    log_odds += 0.55 * np.log(numbers["CovgLimit"], dtype=np.float64)
    log_odds += 0.5 * np.log(numbers["TERRITORY.01"])
    log_odds -= 0.4 * np.log(numbers["TERRITORY.02"])
    log_odds += 0.4 * (numbers["TERRITORY.03"] > 1.3)
    log_odds += 0.3 * numbers["INDEX.01"]
    log_odds -= 0.25 * numbers["INDEX.02"]
    log_odds += 0.35 * np.abs(numbers["INDEX.03"])
    probability = sigmoid(log_odds + solve_intercept(log_odds, claim_rate))
    has_claim = rng.random(n_rows) < probability

    # The largest mean is at most exp(1.9) = 6.7 times the smallest, and must stay below 7.7 times.
    log_mean = 0.25 * np.log(numbers["CovgLimit"], dtype=np.float64)
    log_mean += 0.3 * codes_of(flags["NEG.kw.001"])
    log_mean += 0.25 * codes_of(flags["CLASS.004"])
    log_mean += 0.1 * np.clip(numbers["INDEX.04"], -3, 3)
    y = np.zeros(n_rows)
    y[has_claim] = _draw_amounts(rng, np.exp(log_mean), probability, has_claim)

    names = ("credit_score", "CovgLimit", *_INS_CLASS, *_TERRITORY, *_NEG_KW, *_CLASS, *_INDEX)
    X = pa.table({"credit_score": credit, **flags, **numbers}).select(names)
    return X, y


def _draw_claims_numbers(rng: np.random.Generator, n_rows: int) -> dict[str, NDArray[Any]]:
    """Draw the coverage limit, the densities of the territory and the engineered indices."""
    limit = draw_categories(rng, [f"{limit:g}" for limit in _LIMITS], _LIMIT_WEIGHTS, size=n_rows)
    numbers: dict[str, NDArray[Any]] = {"CovgLimit": _LIMITS[codes_of(limit)]}
    for name in _TERRITORY:
        numbers[name] = np.exp(np.float32(0.5) * rng.standard_normal(n_rows, dtype=np.float32))
    for name in _INDEX:
        numbers[name] = rng.standard_normal(n_rows, dtype=np.float32)
        if name >= "INDEX.50":
            np.maximum(numbers[name] - np.float32(0.5), 0, out=numbers[name])
    return numbers


def _draw_claims_flags(
    rng: np.random.Generator, credit: NDArray[np.int8]
) -> dict[str, pa.DictionaryArray]:
    """Draw the binary columns: proxies of the credit score, and columns independent of it."""
    names = [*_INS_CLASS, *_NEG_KW, *_CLASS]
    # Fixed, not drawn: every seed samples the same population. Multiples of the golden ratio
    # scatter the rates evenly between rare and common, whatever the number of columns.
    spread = np.arange(1, len(names) + 1) * (np.sqrt(5) - 1) / 2 % 1
    rates: dict[str, Any] = dict(zip(names, 0.006 * (0.30 / 0.006) ** spread, strict=True))
    rates |= _PLANTED_FLAG_RATE
    for name, slope in _PROXY_SLOPES.items():
        rates[name] = sigmoid(-1.5 + slope * _CREDIT_LEANING)[credit]
    return {name: draw_flag(rng, rate, len(credit)) for name, rate in rates.items()}


def _draw_amounts(
    rng: np.random.Generator,
    relative_mean: NDArray[np.float64],
    probability: NDArray[np.float64],
    has_claim: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Draw the amounts of the claims, so that their overall mean and deviation are the paper's.

    With m the policies' mean amounts, divided by their mean over the expected claims, and G
    log-normal of mean 1 and variance v, the amounts M·m·G have mean M and second moment
    M²·E[m²]·(1 + v): v makes up for what m leaves of the deviation asked for. It is positive for
    any table, as E[m²] ≤ (1 + r)²/4r where the largest m is r times the smallest, and the squared
    deviation asked for, with M² = 1, is 1.46.
    """
    weight = probability / probability.sum()
    relative_mean = relative_mean / (weight @ relative_mean)
    second_moment = 1.0 + (_SD_AMOUNT / _MEAN_AMOUNT) ** 2
    log_variance = np.log(second_moment / (weight @ relative_mean**2))
    noise = np.sqrt(log_variance) * rng.standard_normal(int(has_claim.sum())) - 0.5 * log_variance
    amounts: NDArray[np.float64] = _MEAN_AMOUNT * relative_mean[has_claim] * np.exp(noise)
    return amounts.round(2)
