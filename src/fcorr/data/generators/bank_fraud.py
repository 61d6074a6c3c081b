"""Bank fraud: a stand-in for the Bank Account Fraud data, same columns, known population."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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

# Older customers are rarer, as in the public data, but the rarest group is not as rare as there:
# at 10,000 rows all nine groups are present but once in 10**8 draws.
_AGES = ("10", "20", "30", "40", "50", "60", "70", "80", "90")
_AGE_WEIGHTS = (0.021, 0.244, 0.310, 0.238, 0.138, 0.034, 0.009, 0.004, 0.002)

_HOUSING = ("BA", "BB", "BC", "BD", "BE", "BF", "BG")
_HOUSING_WEIGHTS_YOUNG = (0.05, 0.30, 0.48, 0.01, 0.15, 0.005, 0.005)
_HOUSING_WEIGHTS_OLD = (0.50, 0.11, 0.04, 0.20, 0.12, 0.015, 0.015)

_PAYMENT_EFFECT = {"AA": 0.0, "AB": 0.4, "AC": 0.8, "AD": 0.2, "AE": -0.6}
_DEVICE_EFFECT = {"linux": -0.4, "macintosh": 0.6, "other": 0.0, "windows": 1.5, "x11": 0.9}
_DISTINCT_EMAILS_EFFECT = {"-1": 0.0, "0": 0.0, "1": 0.0, "2": 1.5}

_PUBLIC_ORDER = (
    "income",
    "name_email_similarity",
    "prev_address_months_count",
    "current_address_months_count",
    "customer_age",
    "days_since_request",
    "intended_balcon_amount",
    "payment_type",
    "zip_count_4w",
    "velocity_6h",
    "velocity_24h",
    "velocity_4w",
    "bank_branch_count_8w",
    "date_of_birth_distinct_emails_4w",
    "employment_status",
    "credit_risk_score",
    "email_is_free",
    "housing_status",
    "phone_home_valid",
    "phone_mobile_valid",
    "bank_months_count",
    "has_other_cards",
    "proposed_credit_limit",
    "foreign_request",
    "source",
    "session_length_in_minutes",
    "device_os",
    "keep_alive_session",
    "device_distinct_emails_8w",
    "device_fraud_count",
    "month",
)

_Categories = dict[str, CategoryColumn]
_Numbers = dict[str, NDArray[Any]]


def make_bank_fraud(
    n_rows: int = 1_000_000,
    *,
    fraud_rate: float = 0.011,
    random_state: RandomState = None,
    frame: FrameName = "pyarrow",
) -> tuple[Any, NDArray[np.int64]]:
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
    frame : {"pyarrow", "pandas", "polars"}, default="pyarrow"
        The kind of table to return. The values do not depend on it.

    Returns
    -------
    X : pyarrow.Table, pandas.DataFrame or polars.DataFrame
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
    n_rows = check_n_rows(n_rows)
    fraud_rate = check_rate(fraud_rate, name="fraud_rate")
    check_frame(frame, caller="make_bank_fraud")
    rng = np.random.default_rng(draw_seed(random_state))

    categories, numbers = _draw_features(rng, n_rows)
    log_odds = _fraud_log_odds(categories, numbers)
    log_odds += solve_intercept(log_odds, fraud_rate)
    y = rng.random(n_rows) < sigmoid(log_odds)

    columns: Columns = {**categories, **numbers}
    return build_frame({name: columns[name] for name in _PUBLIC_ORDER}, frame), y.astype(np.int64)


def _draw_features(rng: np.random.Generator, n_rows: int) -> tuple[_Categories, _Numbers]:
    """Draw all columns: the categorical ones, then the numeric ones."""

    def category(labels: tuple[str, ...], weights: tuple[float, ...]) -> CategoryColumn:
        return draw_categories(rng, labels, weights, size=n_rows)

    def normal() -> NDArray[np.float32]:
        return rng.standard_normal(n_rows, dtype=np.float32)

    age = category(_AGES, _AGE_WEIGHTS)
    decades = _decades_from_40(age)
    # Most customers are between 20 and 50: housing turns from the young to the old mix there.
    old = sigmoid((np.arange(10, 100, 10) - 45) / 8)[:, None]
    housing_weights = (1 - old) * _HOUSING_WEIGHTS_YOUNG + old * _HOUSING_WEIGHTS_OLD
    month = category(tuple("01234567"), (0.13, 0.13, 0.14, 0.15, 0.13, 0.11, 0.11, 0.10))

    categorical = {
        "customer_age": age,
        "payment_type": category(tuple(_PAYMENT_EFFECT), (0.258, 0.370, 0.252, 0.115, 0.005)),
        "employment_status": category(
            ("CA", "CB", "CC", "CD", "CE", "CF", "CG"),
            (0.728, 0.138, 0.038, 0.026, 0.023, 0.044, 0.003),
        ),
        "housing_status": draw_categories(rng, _HOUSING, housing_weights, given=age.codes),
        "source": category(("INTERNET", "TELEAPP"), (0.993, 0.007)),
        "device_os": category(tuple(_DEVICE_EFFECT), (0.333, 0.054, 0.342, 0.263, 0.008)),
        "email_is_free": draw_flag(rng, 0.53, n_rows),
        "phone_home_valid": draw_flag(rng, 0.42, n_rows),
        "phone_mobile_valid": draw_flag(rng, 0.89, n_rows),
        "has_other_cards": draw_flag(rng, 0.22, n_rows),
        "foreign_request": draw_flag(rng, 0.025, n_rows),
        "keep_alive_session": draw_flag(rng, 0.58, n_rows),
        "month": month,
        "device_distinct_emails_8w": category(
            tuple(_DISTINCT_EMAILS_EFFECT), (0.004, 0.006, 0.965, 0.025)
        ),
        "device_fraud_count": CategoryColumn(np.zeros(n_rows, dtype=np.int8), ("0",)),
    }

    credit = normal()
    limit = 0.6 * credit + 0.8 * normal()
    balcon = 0.4 * credit + 0.9 * normal()
    balcon_known = rng.random(n_rows, dtype=np.float32) < 0.26
    settled = np.clip(np.exp(4.0 + 1.1 * normal()), 0, 428).astype(np.int16)
    moved_known = rng.random(n_rows, dtype=np.float32) < np.where(settled < 60, 0.45, 0.10)
    bank_known = rng.random(n_rows, dtype=np.float32) < 0.75
    # Chained so that neighbouring windows share more; the shorter the window, the heavier the tail.
    pace_4w = normal()
    pace_24h = 0.6 * pace_4w + 0.8 * normal()
    pace_6h = 0.6 * pace_24h + 0.8 * normal()

    numeric = {
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
        "velocity_4w": np.exp(np.float32(8.6) - np.float32(0.06) * month.codes + 0.12 * pace_4w),
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
    return categorical, numeric


def _fraud_log_odds(categories: _Categories, numbers: _Numbers) -> NDArray[np.float64]:
    """Compute the log-odds of fraud from the columns as the user sees them, up to a constant."""

    def lookup(name: str, effects: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(effects, dtype=np.float64)[categories[name].codes]

    similarity = numbers["name_email_similarity"].astype(np.float64)
    log_settled = np.log1p(numbers["current_address_months_count"].astype(np.float64))
    log_odds = 0.35 * _decades_from_40(categories["customer_age"])
    log_odds += 2.0 * numbers["income"]
    log_odds -= 0.04 * numbers["bank_months_count"]
    log_odds += lookup("device_os", list(_DEVICE_EFFECT.values()))
    log_odds += lookup("has_other_cards", (0.0, -1.4))
    log_odds += lookup("keep_alive_session", (0.0, -1.0))
    log_odds += lookup("phone_home_valid", (0.0, -0.9))
    log_odds += lookup("foreign_request", (0.0, 0.8))
    log_odds += lookup("payment_type", list(_PAYMENT_EFFECT.values()))
    log_odds += lookup("device_distinct_emails_8w", list(_DISTINCT_EMAILS_EFFECT.values()))
    log_odds -= 2.0 * similarity
    log_odds += lookup("email_is_free", (0.0, 1.2)) * (similarity < 0.5)
    log_odds += 0.018 * np.maximum(numbers["credit_risk_score"] - 130.0, 0.0)
    log_odds += 1.6 * np.exp(-((log_settled - np.log(61.0)) ** 2))
    return log_odds


def _decades_from_40(age: CategoryColumn) -> NDArray[np.float64]:
    return (age.codes - _AGES.index("40")).astype(np.float64)
