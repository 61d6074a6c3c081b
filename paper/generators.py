"""The paper's synthetic data, and stand-ins for Bank Account Fraud and InsurTech of our own."""

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from fcorr._core import InvalidInputError, RandomState, draw_seed, is_integer
from fcorr.data.generators import yes_or_no


def check_count(count: object, *, name: str, at_least: int = 1) -> int:
    """Return a whole number as an ``int``, or say what it must be."""
    if not is_integer(count, at_least):
        raise InvalidInputError(f"{name} must be an integer of at least {at_least}, got {count!r}.")
    return int(count)  # type: ignore[call-overload]


def begin(n_rows: object, random_state: RandomState) -> tuple[int, np.random.Generator]:
    """Check the number of rows, and return it and where to draw from."""
    n_rows = check_count(n_rows, name="n_rows")
    return n_rows, np.random.default_rng(draw_seed(random_state))


# ------------------------------------------------------------------------------ synthetic


def make_indirect_bias(
    n_rows: int = 10_000, *, random_state: RandomState = None
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Draw the paper's synthetic data: a sensitive feature that matters only through another one.

    The features (Section 4.1) are categorical, with the categories ``"no"`` and ``"yes"``; ``X1``
    is the sensitive one.

    Parameters
    ----------
    n_rows : int, default=10_000
        The number of rows.
    random_state : int, numpy generator or None, default=None
        Pass an integer for a repeatable draw.

    Returns
    -------
    X : pyarrow.Table
        The columns ``X1``, ``X2`` and ``X3``.
    y : ndarray of int64, shape (n_rows,)
        The outcome, 0 or 1.

    Notes
    -----
    **What is planted.**

    - ``X2`` and ``X3`` are independent, each ``"yes"`` with probability 0.5.
    - ``X1`` is ``"yes"`` with probability 0.7 where ``X2`` is, and 0.3 elsewhere: ``X2`` is its
      proxy. ``X1`` and ``X3`` are independent.
    - ``y`` is 1 with probability 0.8 where both ``X2`` and ``X3`` are ``"yes"``, and 0.2 elsewhere:
      a pure interaction.
    - ``X1`` has no effect of its own: given ``X2``, ``y`` does not depend on it. Yet ``y`` is 1
      more often where ``X1`` is ``"yes"`` (0.41 against 0.29): indirect discrimination.

    Examples
    --------
    >>> X, y = make_indirect_bias(4, random_state=0)
    >>> X.to_pylist()[0]
    {'X1': 'no', 'X2': 'no', 'X3': 'no'}
    >>> y
    array([0, 1, 0, 1])
    """
    n_rows, rng = begin(n_rows, random_state)
    x2 = rng.random(n_rows) < 0.5
    x3 = rng.random(n_rows) < 0.5
    x1 = rng.random(n_rows) < np.where(x2, 0.7, 0.3)
    y = rng.random(n_rows) < np.where(x2 & x3, 0.8, 0.2)

    X = pa.table({"X1": yes_or_no(x1), "X2": yes_or_no(x2), "X3": yes_or_no(x3)})
    return X, y.astype(np.int64)


# ------------------------------------------------------------------------------ bank fraud

# The categories and their shares.
_SHARES = {
    # Older customers are rarer, as in the public data, but the rarest group is not as rare as
    # there: at 10,000 rows all nine groups are present but once in 10**8 draws.
    "customer_age": (
        ("10", "20", "30", "40", "50", "60", "70", "80", "90"),
        (0.021, 0.244, 0.310, 0.238, 0.138, 0.034, 0.009, 0.004, 0.002),
    ),
    "month": (tuple("01234567"), (0.13, 0.13, 0.14, 0.15, 0.13, 0.11, 0.11, 0.10)),
    "payment_type": (("AA", "AB", "AC", "AD", "AE"), (0.258, 0.370, 0.252, 0.115, 0.005)),
    "employment_status": (
        ("CA", "CB", "CC", "CD", "CE", "CF", "CG"),
        (0.728, 0.138, 0.038, 0.026, 0.023, 0.044, 0.003),
    ),
    "source": (("INTERNET", "TELEAPP"), (0.993, 0.007)),
    "device_os": (
        ("linux", "macintosh", "other", "windows", "x11"),
        (0.333, 0.054, 0.342, 0.263, 0.008),
    ),
    "device_distinct_emails_8w": (("-1", "0", "1", "2"), (0.004, 0.006, 0.965, 0.025)),
}
_FLAG_SHARES = {
    "email_is_free": 0.53,
    "phone_home_valid": 0.42,
    "phone_mobile_valid": 0.89,
    "has_other_cards": 0.22,
    "foreign_request": 0.025,
    "keep_alive_session": 0.58,
}
_HOUSING = ("BA", "BB", "BC", "BD", "BE", "BF", "BG")
_HOUSING_WEIGHTS_YOUNG = (0.05, 0.30, 0.48, 0.01, 0.15, 0.005, 0.005)
_HOUSING_WEIGHTS_OLD = (0.50, 0.11, 0.04, 0.20, 0.12, 0.015, 0.015)

# Effects on the log-odds of fraud, in the order of the categories above.
_EFFECTS = {
    "device_os": (-0.4, 0.6, 0.0, 1.5, 0.9),
    "has_other_cards": (0.0, -1.4),
    "keep_alive_session": (0.0, -1.0),
    "phone_home_valid": (0.0, -0.9),
    "foreign_request": (0.0, 0.8),
    "payment_type": (0.0, 0.4, 0.8, 0.2, -0.6),
    "device_distinct_emails_8w": (0.0, 0.0, 0.0, 1.5),
}

_PUBLIC_ORDER = (
    *("income", "name_email_similarity", "prev_address_months_count"),
    *("current_address_months_count", "customer_age", "days_since_request"),
    *("intended_balcon_amount", "payment_type", "zip_count_4w", "velocity_6h", "velocity_24h"),
    *("velocity_4w", "bank_branch_count_8w", "date_of_birth_distinct_emails_4w"),
    *("employment_status", "credit_risk_score", "email_is_free", "housing_status"),
    *("phone_home_valid", "phone_mobile_valid", "bank_months_count", "has_other_cards"),
    *("proposed_credit_limit", "foreign_request", "source", "session_length_in_minutes"),
    *("device_os", "keep_alive_session", "device_distinct_emails_8w", "device_fraud_count"),
    "month",
)


def make_bank_fraud(
    n_rows: int = 1_000_000,
    *,
    fraud_rate: float = 0.011,
    random_state: RandomState = None,
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Draw applications for bank accounts, a few of them fraudulent.

    The table has the shape of the Bank Account Fraud data (base variant), which may not be
    redistributed: the same 31 columns in the same order, the same numbers of categories, similar
    margins, rare fraud. Its population is our own and known; no figure obtained on it is a figure
    for the real data. ``customer_age`` is the sensitive feature.

    Parameters
    ----------
    n_rows : int, default=1_000_000
        The number of applications.
    fraud_rate : float, default=0.011
        The expected share of fraud. It moves the intercept only: every effect below, measured in
        log-odds, is the same at any rate.
    random_state : int, numpy generator or None, default=None
        Pass an integer for a repeatable draw.

    Returns
    -------
    X : pyarrow.Table
        15 categorical columns (with 9, 5, 7, 7, 2, 5, 2, 2, 2, 2, 2, 2, 8, 4 and 1 categories) and
        16 numeric ones. As in the public data, -1 in ``prev_address_months_count`` and
        ``bank_months_count`` and a negative ``intended_balcon_amount`` mean "not known".
    y : ndarray of int64, shape (n_rows,)
        1 for fraud, 0 otherwise.

    Notes
    -----
    **What is planted.** Effects are on the log-odds of fraud; with *a* the age in decades from 40.

    *Direct effect of the sensitive feature*: ``customer_age``, 0.35 *a*.

    *Proxies of age*, independent of each other and of all else given age:

    - ``housing_status`` (the strongest) and ``date_of_birth_distinct_emails_4w``: **no effect of
      their own**; what they predict, they predict through age;
    - ``income`` (grows with age): 2 per unit;
    - ``bank_months_count`` (grows with age): -0.04 per month.

    *Honest predictors*, independent of age:

    - ``device_os``: windows 1.5, x11 0.9, macintosh 0.6, other 0, linux -0.4;
    - ``has_other_cards``: -1.4; ``keep_alive_session``: -1; ``phone_home_valid``: -0.9;
      ``foreign_request``: 0.8;
    - ``payment_type``: AC 0.8, AB 0.4, AD 0.2, AA 0, AE -0.6;
    - ``device_distinct_emails_8w``: 1.5 at "2";
    - ``name_email_similarity``: -2 per unit;
    - ``credit_risk_score``: nothing up to 130, then 0.018 per point (a hinge);
    - ``current_address_months_count`` *m*: 1.6 exp(-(ln(1 + *m*) - ln 61)²), most at five years,
      little for the newly moved and the long settled (a bump).

    *Interaction*: ``email_is_free`` adds 1.2 where ``name_email_similarity`` is below 0.5, and
    nothing elsewhere.

    *Echoes*: ``proposed_credit_limit`` and ``intended_balcon_amount`` follow ``credit_risk_score``,
    ``prev_address_months_count`` follows ``current_address_months_count``; no effect of their own.

    *Noise*, independent of age and of fraud: ``days_since_request``, ``zip_count_4w``,
    ``bank_branch_count_8w``, ``employment_status``, ``phone_mobile_valid``, ``source``,
    ``session_length_in_minutes``; the three velocities and ``month``, which depend on each other
    only; ``device_fraud_count``, a constant.

    Examples
    --------
    >>> X, y = make_bank_fraud(1_000, random_state=0)
    >>> X.num_columns, X["customer_age"].to_pylist()[:4]
    (31, ['40', '30', '20', '10'])
    """
    fraud_rate = check_rate(fraud_rate, name="fraud_rate")
    n_rows, rng = begin(n_rows, random_state)
    categories = _draw_bank_categories(rng, n_rows)
    decades = (codes_of(categories["customer_age"]) - 3).astype(np.float64)  # from 40, the fourth
    numbers = _draw_bank_numbers(rng, decades, codes_of(categories["month"]))

    similarity = numbers["name_email_similarity"].astype(np.float64)
    log_settled = np.log1p(numbers["current_address_months_count"].astype(np.float64))
    log_odds: NDArray[np.float64] = 0.35 * decades
    log_odds += 2.0 * numbers["income"]
    log_odds -= 0.04 * numbers["bank_months_count"]
    for name, effects in _EFFECTS.items():
        log_odds += np.array(effects)[codes_of(categories[name])]
    log_odds -= 2.0 * similarity
    log_odds += 1.2 * codes_of(categories["email_is_free"]) * (similarity < 0.5)
    log_odds += 0.018 * np.maximum(numbers["credit_risk_score"] - 130.0, 0.0)
    log_odds += 1.6 * np.exp(-((log_settled - np.log(61.0)) ** 2))
    log_odds += solve_intercept(log_odds, fraud_rate)
    y = rng.random(n_rows) < sigmoid(log_odds)

    X = pa.table({**categories, **numbers}).select(_PUBLIC_ORDER)
    return X, y.astype(np.int64)


def _draw_bank_categories(rng: np.random.Generator, n_rows: int) -> dict[str, pa.DictionaryArray]:
    columns: dict[str, pa.DictionaryArray] = {}

    def draw(*names: str) -> None:
        for name in names:
            columns[name] = draw_categories(rng, *_SHARES[name], size=n_rows)

    draw("customer_age", "month", "payment_type", "employment_status")
    # Most customers are between 20 and 50: housing turns from the young to the old mix there.
    old = sigmoid((np.arange(10, 100, 10) - 45) / 8)[:, None]
    weights = (1 - old) * _HOUSING_WEIGHTS_YOUNG + old * _HOUSING_WEIGHTS_OLD
    age = codes_of(columns["customer_age"])
    columns["housing_status"] = draw_categories(rng, _HOUSING, weights, given=age)
    draw("source", "device_os")
    for name, share in _FLAG_SHARES.items():
        columns[name] = draw_flag(rng, share, n_rows)
    draw("device_distinct_emails_8w")
    zeros = np.zeros(n_rows, dtype=np.int8)
    columns["device_fraud_count"] = pa.DictionaryArray.from_arrays(zeros, ["0"])
    return columns


def _draw_bank_numbers(
    rng: np.random.Generator, decades: NDArray[np.float64], month: NDArray[np.int8]
) -> dict[str, NDArray[Any]]:
    n_rows = len(decades)

    def normal() -> NDArray[np.float32]:
        return rng.standard_normal(n_rows, dtype=np.float32)

    def known(share: Any) -> NDArray[np.bool_]:
        return rng.random(n_rows, dtype=np.float32) < share

    credit = normal()
    limit = 0.6 * credit + 0.8 * normal()
    balcon = 0.4 * credit + 0.9 * normal()
    balcon_known = known(0.26)
    settled = np.clip(np.exp(4.0 + 1.1 * normal()), 0, 428).astype(np.int16)
    moved_known = known(np.where(settled < 60, 0.45, 0.10))
    bank_known = known(0.75)
    # Chained so that neighbouring windows share more; the shorter the window, the heavier the tail.
    pace_4w = normal()
    pace_24h = 0.6 * pace_4w + 0.8 * normal()
    pace_6h = 0.6 * pace_24h + 0.8 * normal()

    return {
        "income": (np.clip(np.rint(5.4 + 0.7 * decades + 2.4 * normal()), 1, 9) / 10).astype(
            np.float32
        ),
        "name_email_similarity": rng.random(n_rows, dtype=np.float32),
        "prev_address_months_count": np.where(
            moved_known, np.clip(np.exp(3.4 + 0.9 * normal()), 1, 380), -1
        ).astype(np.int16),
        "current_address_months_count": settled,
        "days_since_request": np.clip(np.exp(-4.0 + 2.2 * normal()), 0, 78),
        "intended_balcon_amount": np.where(
            balcon_known,
            np.exp(3.2 + 0.8 * balcon),
            -15 * rng.random(n_rows, dtype=np.float32) - np.float32(0.01),
        ),
        "zip_count_4w": np.exp(7.2 + 0.6 * normal()).astype(np.int32),
        "velocity_6h": np.exp(8.5 + 0.55 * pace_6h),
        "velocity_24h": np.exp(8.4 + 0.32 * pace_24h),
        "velocity_4w": np.exp(np.float32(8.6) - np.float32(0.06) * month + 0.12 * pace_4w),
        "bank_branch_count_8w": np.clip(np.exp(2.2 + 2.0 * normal()), 0, 2400).astype(np.int16),
        "date_of_birth_distinct_emails_4w": rng.poisson(10 * np.exp(-0.12 * decades)).astype(
            np.int16
        ),
        "credit_risk_score": np.clip(np.rint(131 + 70 * credit), -170, 389).astype(np.int16),
        "bank_months_count": np.where(
            bank_known, np.clip(np.rint(13 + 3 * decades + 7 * normal()), 1, 32), -1
        ).astype(np.int16),
        "proposed_credit_limit": np.array([200, 500, 1000, 1500, 2000], dtype=np.int16)[
            np.searchsorted(np.array([0.0, 0.7, 1.0, 1.6], dtype=np.float32), limit)
        ],
        "session_length_in_minutes": np.exp(1.6 + 0.8 * normal()),
    }


# ------------------------------------------------------------------------------ InsurTech

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

    Parameters as in :func:`make_bank_fraud`; `claim_rate` is the expected share of
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


# ------------------------------------------------------------------------------ what they share


def check_rate(rate: object, *, name: str) -> float:
    """Return the share of positive rows as a ``float``, or say what it must be."""
    hint = ""
    if not isinstance(rate, bool) and isinstance(rate, numbers.Real):
        share = float(rate)
        if 0 < share < 1:
            return share
        if 1 <= share < 100:
            hint = f" Write {share:g} % as {share / 100:g}."
    raise InvalidInputError(f"{name} must lie strictly between 0 and 1, got {rate!r}.{hint}")


def draw_categories(
    rng: np.random.Generator,
    categories: Sequence[str],
    weights: ArrayLike,
    *,
    given: NDArray[np.int8] | None = None,
    size: int | None = None,
) -> pa.DictionaryArray:
    """Draw ``size`` categories from relative frequencies, or from one row of them per group."""
    cumulative = np.cumsum(np.asarray(weights, dtype=np.float64), axis=-1)
    # Without the last bound: no row may fall beyond the last category through rounding.
    bounds = (cumulative / cumulative[..., -1:])[..., :-1]
    if given is None:
        codes = np.searchsorted(bounds, rng.random(size), side="right")
    else:
        uniform = rng.random(len(given))
        codes = np.zeros(len(given), dtype=np.int8)
        for bound in np.moveaxis(bounds, -1, 0):
            codes += uniform >= bound[given]
    dtype = np.int8 if len(categories) <= 128 else np.int32
    return pa.DictionaryArray.from_arrays(codes.astype(dtype, copy=False), categories)


def draw_flag(
    rng: np.random.Generator, rate: float | NDArray[np.float64], size: int
) -> pa.DictionaryArray:
    """Draw a column of ``"0"`` and ``"1"``, with ``rate`` the share of ones, common or per row."""
    # Single precision keeps hundreds of columns cheap; its steps of 2**-24 are no matter here.
    drawn = rng.random(size, dtype=np.float32) < rate
    return pa.DictionaryArray.from_arrays(drawn.view(np.int8), ["0", "1"])


def codes_of(column: pa.DictionaryArray) -> NDArray[Any]:
    """Return the position of each row's category."""
    codes: NDArray[Any] = column.indices.to_numpy()
    return codes


def sigmoid(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn log-odds into probabilities."""
    return 1.0 / (1.0 + np.exp(-log_odds))


def solve_intercept(log_odds: NDArray[np.float64], rate: float) -> float:
    """Find the intercept at which the mean probability over the rows equals ``rate``.

    The mean grows with the intercept, and lies on either side of the rate at the two intercepts
    that give the row with the largest and the row with the smallest log-odds exactly that rate:
    bisection between them cannot fail.
    """
    target = np.log(rate / (1.0 - rate))
    low, high = float(target - log_odds.max()), float(target - log_odds.min())
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        if sigmoid(log_odds + middle).mean() < rate:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
