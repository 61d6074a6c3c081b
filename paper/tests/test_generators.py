"""The stand-ins for the paper's tables: their shape, and each effect that they promise."""

from hashlib import sha256
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from fcorr._core import InvalidInputError
from paper.generators import make_bank_fraud, make_claims, make_indirect_bias
from tests.data.test_generators import (
    TOLERANCE,
    check_effects,
    fit_linear,
    fit_logistic,
    labels,
    numbers,
)


def cardinalities(X: pa.Table) -> dict[str, int]:
    """Count the categories that occur, for the categorical columns."""
    return {
        field.name: len(X[field.name].unique())
        for field in X.schema
        if pa.types.is_dictionary(field.type)
    }


def association_p_value(a: np.ndarray, b: np.ndarray) -> float:
    """Test two discrete columns for independence."""
    return stats.chi2_contingency(stats.contingency.crosstab(a, b).count).pvalue


@pytest.mark.parametrize("make", [make_bank_fraud, make_claims])
def test_a_seed_repeats_the_draw(make):
    (X, y), (X_again, y_again), (X_other, _) = (make(300, random_state=seed) for seed in (7, 7, 8))
    assert X_again.equals(X)
    assert y_again.tobytes() == y.tobytes()
    assert not X_other.equals(X)
    assert X_other.schema == X.schema
    for name in (field.name for field in X.schema if pa.types.is_dictionary(field.type)):
        # All categories are declared, in one order, even where 300 rows miss some.
        assert X_other[name].chunk(0).dictionary == X[name].chunk(0).dictionary


@pytest.mark.parametrize(
    ("rate", "hint"),
    [
        *[(0, ""), (-0.1, ""), (1.1, " Write 1.1 % as 0.011."), (50, " Write 50 % as 0.5.")],
        *[(float("nan"), ""), ("0.1", ""), (True, "")],
    ],
)
def test_rates_that_are_none_are_refused(rate, hint):
    with pytest.raises(InvalidInputError) as caught:
        make_bank_fraud(5, fraud_rate=rate)
    expected = f"fraud_rate must lie strictly between 0 and 1, got {rate!r}.{hint}"
    assert str(caught.value) == expected


def test_indirect_bias_is_the_papers_in_every_cell():
    n_rows = 60_000
    X, y = make_indirect_bias(n_rows, random_state=0)
    assert X.column_names == ["X1", "X2", "X3"]
    values = [labels(X, name) == "yes" for name in X.column_names]
    for x1, x2, x3 in product([False, True], repeat=3):
        cell = (values[0] == x1) & (values[1] == x2) & (values[2] == x3)
        share = 0.25 * (0.7 if x1 == x2 else 0.3)
        assert cell.mean() == pytest.approx(share, abs=TOLERANCE * np.sqrt(share / n_rows))
        # Whatever X1 is: its bias is indirect.
        rate, error = 0.8 if x2 and x3 else 0.2, np.sqrt(0.16 / cell.sum())
        assert y[cell].mean() == pytest.approx(rate, abs=TOLERANCE * error)


@pytest.mark.parametrize("arguments", [{}, {"fraud_rate": 0.3}])
def test_the_rate_is_the_one_asked_for(arguments):
    rate = arguments.get("fraud_rate", 0.011)
    X, y = make_bank_fraud(200_000, random_state=3, **arguments)
    assert abs(y.mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / 200_000)
    assert X.nbytes < 1_300 * 200_000


# ---------------------------------------------------------------------------- make_bank_fraud

# Of the public file's column names, in its order.
BANK_NAMES_SHA256 = "1bdd1bec986b9f1835fa1f74cb8ab7712e08107b9c56fe3862c4f46663854e01"
BANK_FLAGS = (
    *("email_is_free", "phone_home_valid", "phone_mobile_valid", "has_other_cards"),
    *("foreign_request", "keep_alive_session"),
)
BANK_CARDINALITIES = {
    **{"customer_age": 9, "payment_type": 5, "employment_status": 7, "housing_status": 7},
    **{"source": 2, "device_os": 5, **dict.fromkeys(BANK_FLAGS, 2)},
    **{"month": 8, "device_distinct_emails_8w": 4, "device_fraud_count": 1},
}
BANK_PROXIES = {
    *("housing_status", "date_of_birth_distinct_emails_4w", "income", "bank_months_count"),
}
BANK_NOISE = {
    *("days_since_request", "zip_count_4w", "bank_branch_count_8w", "employment_status"),
    *("phone_mobile_valid", "source", "session_length_in_minutes", "velocity_6h", "velocity_24h"),
    *("velocity_4w", "month"),
}


@pytest.fixture(scope="module")
def bank_drawn() -> tuple[pa.Table, np.ndarray]:
    # The effects do not depend on the rate; a high one shows them with fewer rows.
    return make_bank_fraud(100_000, fraud_rate=0.3, random_state=0)


class TestBankFraud:
    @pytest.mark.parametrize("seed", range(5))
    def test_columns_and_cardinalities_at_ten_thousand_rows(self, seed):
        X, _ = make_bank_fraud(10_000, random_state=seed)
        assert sha256(",".join(X.column_names).encode()).hexdigest() == BANK_NAMES_SHA256
        assert cardinalities(X) == BANK_CARDINALITIES  # also the rarest
        # As the parameter counts of the paper need them.
        assert list(BANK_CARDINALITIES.values()) == [9, 5, 7, 7, 2, 5, *[2] * 6, 8, 4, 1]
        numeric = [name for name in X.column_names if name not in BANK_CARDINALITIES]
        assert len(numeric) == 16
        assert all(np.isfinite(numbers(X, name)).all() for name in numeric)

    def test_older_customers_are_rarer(self, bank_drawn):
        ages, counts = np.unique(labels(bank_drawn[0], "customer_age"), return_counts=True)
        assert ages.tolist() == [str(age) for age in range(10, 100, 10)]
        assert (np.diff(counts[2:]) < 0).all()
        assert counts[2:6].sum() > 20 * counts[6:].sum()

    def test_effects_are_the_planted_ones(self, bank_drawn):
        X, y = bank_drawn
        similarity = numbers(X, "name_email_similarity")
        free = labels(X, "email_is_free") == "1"
        settled = np.log1p(numbers(X, "current_address_months_count"))

        def is_(name: str, label: str) -> np.ndarray:
            return labels(X, name) == label

        terms = {
            "age": (labels(X, "customer_age").astype(float) / 10, 0.35),
            "income": (numbers(X, "income"), 2.0),
            "bank_months_count": (numbers(X, "bank_months_count"), -0.04),
            "has_other_cards": (is_("has_other_cards", "1"), -1.4),
            "keep_alive_session": (is_("keep_alive_session", "1"), -1.0),
            "phone_home_valid": (is_("phone_home_valid", "1"), -0.9),
            "foreign_request": (is_("foreign_request", "1"), 0.8),
            "distinct_emails 2": (is_("device_distinct_emails_8w", "2"), 1.5),
            "similarity": (similarity, -2.0),
            "free email, dissimilar": (free & (similarity < 0.5), 1.2),
            "free email, similar": (free & (similarity >= 0.5), 0.0),
            "dissimilar": (similarity < 0.5, 0.0),
            "credit above 130": (np.maximum(numbers(X, "credit_risk_score") - 130, 0), 0.018),
            "credit below 130": (np.minimum(numbers(X, "credit_risk_score") - 130, 0), 0.0),
            "address, bump": (np.exp(-((settled - np.log(61)) ** 2)), 1.6),
            "address, trend": (settled, 0.0),
        }
        device = {"linux": -0.4, "macintosh": 0.6, "windows": 1.5, "x11": 0.9}
        payment = {"AB": 0.4, "AC": 0.8, "AD": 0.2, "AE": -0.6}
        for name, effects in (("device_os", device), ("payment_type", payment)):
            terms |= {label: (is_(name, label), effect) for label, effect in effects.items()}
        for name in ("-1", "0"):
            terms[f"distinct_emails {name}"] = (is_("device_distinct_emails_8w", name), 0.0)
        # Proxies, echoes and noise without an effect of their own.
        for name in sorted(
            {"housing_status", "date_of_birth_distinct_emails_4w", *BANK_NOISE}
            | {"proposed_credit_limit", "intended_balcon_amount", "prev_address_months_count"}
        ):
            if name in BANK_CARDINALITIES:
                for label in np.unique(labels(X, name))[1:]:
                    terms[f"{name} {label}"] = (is_(name, label), 0.0)
            else:
                values = numbers(X, name)
                terms[name] = ((values - values.mean()) / values.std(), 0.0)
        check_effects(fit_logistic, terms, y)

    def test_proxies_follow_age_and_nothing_else_does(self, bank_drawn):
        X, _ = bank_drawn
        age = labels(X, "customer_age").astype(float)
        for name in set(X.column_names) - {"customer_age", "device_fraud_count"}:
            if name in BANK_CARDINALITIES:
                p_value = association_p_value(labels(X, name), age)
            else:
                p_value = stats.spearmanr(numbers(X, name), age).pvalue
            assert p_value < 1e-100 if name in BANK_PROXIES else p_value > 1e-4, name

    def test_velocities_are_correlated_heavy_tailed_and_follow_the_month(self, bank_drawn):
        X, _ = bank_drawn
        pace = {name: numbers(X, f"velocity_{name}") for name in ("6h", "24h", "4w")}
        assert np.corrcoef(pace["6h"], pace["24h"])[0, 1] > 0.5
        assert np.corrcoef(pace["24h"], pace["4w"])[0, 1] > 0.35
        assert stats.skew(pace["6h"]) > 1.5
        assert np.corrcoef(pace["4w"], labels(X, "month").astype(float))[0, 1] < -0.5
        balcon = numbers(X, "intended_balcon_amount")
        assert stats.skew(balcon[balcon > 0]) > 2


# -------------------------------------------------------------------------------- make_claims

CLAIMS_CLEAN_PROXIES = [f"INS.CLASS.{i:03d}" for i in range(1, 11)]
CLAIMS_PROXIES = [*CLAIMS_CLEAN_PROXIES, "INS.CLASS.011", "INS.CLASS.012"]
CLAIMS_FREQUENCY = [
    *("INS.CLASS.011", "INS.CLASS.012", "CovgLimit", "INDEX.01", "INDEX.02", "INDEX.03"),
    *("TERRITORY.01", "TERRITORY.02", "TERRITORY.03"),
    *("NEG.kw.001", "NEG.kw.002", "NEG.kw.003", "CLASS.001", "CLASS.002", "CLASS.003"),
]


@pytest.fixture(scope="module")
def claims_drawn() -> tuple[pa.Table, np.ndarray]:
    # The effects do not depend on the rate; a high one shows them with fewer rows.
    return make_claims(60_000, claim_rate=0.25, random_state=0)


@pytest.fixture(scope="module")
def claims_numbers(claims_drawn) -> dict[str, np.ndarray]:
    """All columns but the credit score, as numbers."""
    X, _ = claims_drawn
    return {
        field.name: np.concatenate([chunk.indices.to_numpy() for chunk in X[field.name].chunks])
        if pa.types.is_dictionary(field.type)
        else numbers(X, field.name)
        for field in X.schema
        if field.name != "credit_score"
    }


class TestClaims:
    def test_names_kinds_and_cardinalities(self):
        X, y = make_claims(20_000, random_state=0)
        assert (y > 0).mean() == pytest.approx(0.0079, abs=4 * np.sqrt(0.0079 / 20_000))
        prefixes, counts = np.unique(
            [name.rsplit(".", 1)[0] for name in X.column_names], return_counts=True
        )
        assert dict(zip(prefixes.tolist(), counts.tolist(), strict=True)) == {
            "credit_score": 1,
            "CovgLimit": 1,
            "INS.CLASS": 40,
            "TERRITORY": 98,
            "NEG.kw": 142,
            "CLASS": 200,
            "INDEX": 99,
        }
        assert len(set(X.column_names)) == 581
        cards = cardinalities(X)
        assert cards.pop("credit_score") == 7
        assert set(labels(X, "credit_score")) == {"A+", "A", "B+", "B", "C+", "C", "missing"}
        assert len(cards) == 382
        assert set(cards.values()) == {2}
        numeric = [field for field in X.schema if not pa.types.is_dictionary(field.type)]
        assert len(numeric) == 198
        assert all(field.type == pa.float32() for field in numeric)

    def test_amounts_have_the_papers_moments(self, claims_drawn):
        positive = claims_drawn[1][claims_drawn[1] > 0]
        assert positive.mean() == pytest.approx(27_507.90, rel=0.04)
        assert positive.std() == pytest.approx(33_244.72, rel=0.08)
        assert stats.skew(positive) > 2

    def test_effects_on_frequency_are_the_planted_ones(self, claims_drawn, claims_numbers):
        X, y = claims_drawn
        credit = labels(X, "credit_score")
        by_credit = {"A+": -0.7, "A": -0.4, "B+": -0.15, "C+": 0.4, "C": 0.8, "missing": 0.3}
        terms = {score: (credit == score, effect) for score, effect in by_credit.items()}
        terms |= {
            "CovgLimit": (np.log(claims_numbers["CovgLimit"]), 0.55),
            "TERRITORY.01": (np.log(claims_numbers["TERRITORY.01"]), 0.5),
            "TERRITORY.02": (np.log(claims_numbers["TERRITORY.02"]), -0.4),
            "TERRITORY.03 step": (claims_numbers["TERRITORY.03"] > 1.3, 0.4),
            "TERRITORY.03 trend": (np.log(claims_numbers["TERRITORY.03"]), 0.0),
            "INDEX.01": (claims_numbers["INDEX.01"], 0.3),
            "INDEX.02": (claims_numbers["INDEX.02"], -0.25),
            "INDEX.03 trend": (claims_numbers["INDEX.03"], 0.0),
            "INDEX.03 size": (np.abs(claims_numbers["INDEX.03"]), 0.35),
        }
        flags = {"NEG.kw.001": 0.8, "NEG.kw.002": 0.6, "NEG.kw.003": 0.5}
        flags |= {"CLASS.001": 0.5, "CLASS.002": -0.5, "CLASS.003": 0.4}
        flags |= {"INS.CLASS.011": 0.5, "INS.CLASS.012": 0.5}
        flags |= dict.fromkeys([*CLAIMS_CLEAN_PROXIES, "CLASS.004", "INDEX.04"], 0.0)
        terms |= {name: (claims_numbers[name], effect) for name, effect in flags.items()}
        check_effects(fit_logistic, terms, (y > 0).astype(float))

    def test_effects_on_the_amount_are_the_planted_ones(self, claims_drawn, claims_numbers):
        X, y = claims_drawn
        claims = y > 0
        credit = labels(X, "credit_score")[claims]
        terms = {score: (credit == score, 0.0) for score in np.unique(credit)[1:]}
        terms |= {
            "CovgLimit": (np.log(claims_numbers["CovgLimit"][claims]), 0.25),
            "NEG.kw.001": (claims_numbers["NEG.kw.001"][claims], 0.3),
            "CLASS.004": (claims_numbers["CLASS.004"][claims], 0.25),
            "INDEX.04": (np.clip(claims_numbers["INDEX.04"][claims], -3, 3), 0.1),
        }
        for name in {*CLAIMS_PROXIES, *CLAIMS_FREQUENCY} - set(terms):
            terms[name] = (claims_numbers[name][claims], 0.0)
        check_effects(fit_linear, terms, np.log(y[claims]))

    def test_noise_is_noise_and_the_limit_the_strongest(self, claims_drawn, claims_numbers):
        X, y = claims_drawn
        claims = y > 0
        leaning = np.isin(labels(X, "credit_score"), ["C+", "C"])
        z = {
            name: np.sqrt(len(y)) * np.corrcoef([values, claims, leaning])[0, 1:]
            for name, values in claims_numbers.items()
        }
        strongest = max(z, key=lambda name: abs(z[name][0]))
        assert strongest == "CovgLimit"
        for name, (with_claims, with_credit) in z.items():
            if name in CLAIMS_PROXIES:
                assert abs(with_credit) > 10, name
            else:
                assert abs(with_credit) < TOLERANCE, name
            if name not in {*CLAIMS_PROXIES, *CLAIMS_FREQUENCY}:
                assert abs(with_claims) < TOLERANCE, name
            elif name != "INDEX.03":  # U-shaped: no trend by design
                assert abs(with_claims) > TOLERANCE, name

    def test_sparse_flags_and_zero_inflated_indices(self, claims_numbers):
        rates = np.array([v.mean() for v in claims_numbers.values() if v.dtype == np.int8])
        assert len(rates) == 382
        assert rates.min() > 0.005
        assert np.mean(rates < 0.05) > 0.4
        assert np.mean(claims_numbers["INDEX.50"] == 0) == pytest.approx(0.69, abs=0.01)
        assert np.mean(claims_numbers["INDEX.49"] == 0) == 0
