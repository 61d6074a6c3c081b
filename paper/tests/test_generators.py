"""The planted effects of the stand-in for InsurTech."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from paper.generators import make_claims
from tests.data.test_generators import (
    TOLERANCE,
    cardinalities,
    check_effects,
    fit_linear,
    fit_logistic,
    labels,
    numbers,
)

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
