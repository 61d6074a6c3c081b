"""Claims: a stand-in for the InsurTech liability data, wide, mostly zero, known population."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcorr._core import RandomState, draw_seed
from fcorr.data.generators._draws import (
    CategoryColumn,
    Columns,
    FrameName,
    build_frame,
    check_frame,
    check_n_rows,
    check_rate,
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

_N_INS_CLASS, _N_NEG_KW, _N_CLASS = 40, 142, 200  # 382 flags
_N_TERRITORY, _N_INDEX = 98, 99  # and, with CovgLimit, 198 numbers
_POOR_CREDIT_CLASSES = (1, 2, 3, 4, 5, 6, 11, 12)
_GOOD_CREDIT_CLASSES = (7, 8, 9, 10)

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

_Flags = dict[str, CategoryColumn]
_Numbers = dict[str, NDArray[np.float32]]


def make_claims(
    n_rows: int = 235_636,
    *,
    claim_rate: float = 0.0079,
    random_state: RandomState = None,
    frame: FrameName = "pyarrow",
) -> tuple[Any, NDArray[np.float64]]:
    """Draw business liability policies with 581 features, few of them with a claim.

    The table has the shape of the paper's InsurTech data, which is private: one feature of seven
    categories, 382 binary and 198 numeric ones, 0.79 % non-zero claims, skewed amounts with the
    same mean and standard deviation. Its population is our own and known; no figure obtained on it
    is a figure for the real data. ``credit_score`` is the sensitive feature.

    Parameters
    ----------
    n_rows : int, default=235_636
        The number of policies.
    claim_rate : float, default=0.0079
        The expected share of policies with a claim. It moves the intercept of the frequency only.
    random_state : int, numpy generator or None, default=None
        Pass an integer for a repeatable draw.
    frame : {"pyarrow", "pandas", "polars"}, default="pyarrow"
        The kind of table to return. The values do not depend on it.

    Returns
    -------
    X : pyarrow.Table, pandas.DataFrame or polars.DataFrame
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
    n_rows = check_n_rows(n_rows)
    claim_rate = check_rate(claim_rate, name="claim_rate")
    check_frame(frame, caller="make_claims")
    rng = np.random.default_rng(draw_seed(random_state))

    credit = draw_categories(rng, _CREDIT, _CREDIT_WEIGHTS, size=n_rows)
    numbers = _draw_numbers(rng, n_rows)
    flags = _draw_flags(rng, credit.codes)

    log_odds = _claim_log_odds(credit.codes, flags, numbers)
    probability = sigmoid(log_odds + solve_intercept(log_odds, claim_rate))
    has_claim = rng.random(n_rows) < probability
    relative_mean = _relative_mean_amount(flags, numbers)
    y = np.zeros(n_rows)
    y[has_claim] = _draw_amounts(rng, relative_mean, probability, has_claim)

    columns: Columns = {"credit_score": credit, **flags, **numbers}
    names = ["credit_score", "CovgLimit", *_names("INS.CLASS", _N_INS_CLASS, digits=3)]
    names += _names("TERRITORY", _N_TERRITORY, digits=2) + _names("NEG.kw", _N_NEG_KW, digits=3)
    names += _names("CLASS", _N_CLASS, digits=3) + _names("INDEX", _N_INDEX, digits=2)
    return build_frame({name: columns[name] for name in names}, frame), y


def _names(prefix: str, count: int, *, digits: int) -> list[str]:
    return [f"{prefix}.{number:0{digits}d}" for number in range(1, count + 1)]


def _draw_numbers(rng: np.random.Generator, n_rows: int) -> _Numbers:
    """Draw the coverage limit, the densities of the territory and the engineered indices."""
    limit = draw_categories(rng, [f"{limit:g}" for limit in _LIMITS], _LIMIT_WEIGHTS, size=n_rows)
    numbers: _Numbers = {"CovgLimit": _LIMITS[limit.codes]}
    for name in _names("TERRITORY", _N_TERRITORY, digits=2):
        numbers[name] = np.exp(np.float32(0.5) * rng.standard_normal(n_rows, dtype=np.float32))
    for name in _names("INDEX", _N_INDEX, digits=2):
        numbers[name] = rng.standard_normal(n_rows, dtype=np.float32)
        if name >= "INDEX.50":
            np.maximum(numbers[name] - np.float32(0.5), 0, out=numbers[name])
    return numbers


def _draw_flags(rng: np.random.Generator, credit: NDArray[np.int8]) -> _Flags:
    """Draw the binary columns: proxies of the credit score, and columns independent of it."""
    leaning = dict.fromkeys(_POOR_CREDIT_CLASSES, 1.2) | dict.fromkeys(_GOOD_CREDIT_CLASSES, -1.2)
    rate_given_credit = {
        f"INS.CLASS.{number:03d}": sigmoid(-1.5 + slope * _CREDIT_LEANING)
        for number, slope in leaning.items()
    }
    names = _names("INS.CLASS", _N_INS_CLASS, digits=3)
    names += _names("NEG.kw", _N_NEG_KW, digits=3) + _names("CLASS", _N_CLASS, digits=3)
    # Fixed, not drawn: every seed samples the same population. Multiples of the golden ratio
    # scatter the rates evenly between rare and common, whatever the number of columns.
    spread = np.arange(1, len(names) + 1) * (np.sqrt(5) - 1) / 2 % 1
    noise_rates = 0.006 * (0.30 / 0.006) ** spread

    flags: _Flags = {}
    for name, noise_rate in zip(names, noise_rates.tolist(), strict=True):
        rate = _PLANTED_FLAG_RATE.get(name, noise_rate)
        by_credit = rate_given_credit.get(name)
        flags[name] = draw_flag(rng, rate if by_credit is None else by_credit[credit], len(credit))
    return flags


def _claim_log_odds(
    credit: NDArray[np.int8], flags: _Flags, numbers: _Numbers
) -> NDArray[np.float64]:
    """Compute the log-odds of a claim from the columns as the user sees them, up to a constant."""
    log_odds = _CREDIT_EFFECT[credit]
    for name, effect in _FLAG_EFFECT.items():
        log_odds += effect * flags[name].codes
    log_odds += 0.55 * np.log(numbers["CovgLimit"], dtype=np.float64)
    log_odds += 0.5 * np.log(numbers["TERRITORY.01"])
    log_odds -= 0.4 * np.log(numbers["TERRITORY.02"])
    log_odds += 0.4 * (numbers["TERRITORY.03"] > 1.3)
    log_odds += 0.3 * numbers["INDEX.01"]
    log_odds -= 0.25 * numbers["INDEX.02"]
    log_odds += 0.35 * np.abs(numbers["INDEX.03"])
    return log_odds


def _relative_mean_amount(flags: _Flags, numbers: _Numbers) -> NDArray[np.float64]:
    """Compute the mean amount of a claim, up to a factor.

    The largest is at most exp(1.9) = 6.7 times the smallest, and must stay below 7.7 times: see
    :func:`_draw_amounts`.
    """
    log_mean = 0.25 * np.log(numbers["CovgLimit"], dtype=np.float64)
    log_mean += 0.3 * flags["NEG.kw.001"].codes
    log_mean += 0.25 * flags["CLASS.004"].codes
    log_mean += 0.1 * np.clip(numbers["INDEX.04"], -3, 3)
    return np.exp(log_mean)


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
