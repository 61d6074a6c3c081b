"""Verdicts on what attention shows, from significances made up for both sides."""

import pytest

from fcorr.reproduce.report.claims import Verdict

NAMES = [f"x{i}" for i in range(31)]
RANKS = {name: 31.0 - i for i, name in enumerate(NAMES)}  # x0 is the most significant
REVERSED = {name: -value for name, value in RANKS.items()}


@pytest.fixture
def make_found(make_fit):
    """Make records of one experiment from the significances of models, five seeds each."""

    def make(experiment, models, **fields):
        return {
            experiment: [
                make_fit(
                    experiment,
                    model,
                    seed,
                    columns=["customer_age"],
                    metrics={},
                    significance=_kinds(model, of[seed] if isinstance(of, list) else of),
                    **fields,
                )
                for model, of in models.items()
                for seed in range(5)
            ]
        }

    return make


def _kinds(model, significance):
    kinds = ("split", "gain") if model == "LightGBM" else ("significance",)
    return dict.fromkeys(kinds, significance)


def put(feature, rank):
    """Rank a feature so among the others."""
    names = [name for name in NAMES if name != feature][:30]
    names.insert(rank - 1, feature)
    return {name: 31.0 - i for i, name in enumerate(names)}


def swapped(n_first):
    """Let the first features be the first, all else reversed: beyond that nothing agrees."""
    names = [*reversed(NAMES[:n_first]), *reversed(NAMES[n_first:])]
    return {name: 31.0 - i for i, name in enumerate(names)}


@pytest.mark.parametrize(
    ("trees", "expected"),
    [(RANKS, Verdict.HOLDS), (REVERSED, Verdict.FAILS), (swapped(10), Verdict.IN_PART)],
)
def test_agreement_with_trees(make_found, judged, trees, expected):
    records = make_found("baf", {"FCorr": RANKS, "LightGBM": trees})
    found = judged(records, "largely agrees with LightGBM")
    assert found.verdict is expected
    assert "with LightGBM's splits" in found.evidence


@pytest.mark.parametrize(
    ("trees", "shared", "expected"),
    [
        (swapped(15), 15, Verdict.HOLDS),
        (RANKS, 15, Verdict.IN_PART),  # equal profiles do not differ
        (REVERSED, 0, Verdict.IN_PART),  # these do, and share none of the first
    ],
)
def test_profiles_on_claims(make_found, judged, trees, shared, expected):
    records = make_found("claims", {"FCorr": RANKS, "LightGBM": trees})
    found = judged(records, "while the profiles differ")
    assert found.verdict is expected
    assert f"{shared:.1f} of the first 15" in found.evidence


@pytest.mark.parametrize(("of_ft", "expected"), [(RANKS, Verdict.HOLDS), (REVERSED, Verdict.FAILS)])
def test_ft_transformer_agrees_as_well(make_found, judged, of_ft, expected):
    # A little noise between seeds, by which differences are judged.
    own = [put("x0", rank) for rank in (1, 2, 3, 4, 5)]
    records = make_found("baf", {"FCorr": own, "FT-Transformer": of_ft, "LightGBM": RANKS})
    assert judged(records, "about as well as FCorr's").verdict is expected


@pytest.mark.parametrize(("own", "expected"), [(RANKS, Verdict.HOLDS), (REVERSED, Verdict.FAILS)])
def test_ft_transformer_shares_the_rest_with_fcorr(make_found, judged, own, expected):
    records = make_found("baf", {"FT-Transformer": RANKS, "FCorr": own, "LightGBM": REVERSED})
    found = judged(records, "FT-Transformer shares most with FCorr")
    assert found.verdict is expected
    assert "of 10" in found.evidence


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([1, 3, 10, 2, 4], Verdict.HOLDS),
        ([1, 3, 10, 30, 25], Verdict.IN_PART),
        ([11, 3, 20, 30, 25], Verdict.FAILS),
    ],
)
def test_attention_to_age(make_found, judged, ranks, expected):
    records = make_found("baf", {"FCorr": [put("customer_age", rank) for rank in ranks]})
    found = judged(records, "the sensitive feature has high attention")
    assert found.verdict is expected
    assert ", ".join(map(str, ranks)) in found.evidence


@pytest.mark.parametrize(
    ("with_car", "expected"),
    [
        ([9, 9, 9, 9, 9], Verdict.HOLDS),
        ([9, 9, 9, 1, 1], Verdict.IN_PART),
        ([1, 1, 1, 1, 1], Verdict.FAILS),
    ],
)
def test_attention_leaves_age(make_found, judged, with_car, expected):
    models = {
        "FCorr": put("customer_age", 5),
        "FCorr + CAR": [put("customer_age", rank) for rank in with_car],
    }
    found = judged(make_found("baf", models), "away from the sensitive feature")
    assert found.verdict is expected
    assert f"5 to {with_car[0]}" in found.evidence


RISING = ("current_address_months_count", "has_other_cards")
FALLING = ("velocity_4w", "prev_address_months_count")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((*FALLING, *RISING), (*RISING, *FALLING), Verdict.HOLDS),
        ((*RISING, *FALLING), (*FALLING, *RISING), Verdict.FAILS),
    ],
)
def test_where_attention_moves_on_the_real_data(make_found, judged, before, after, expected):
    plain, car = ({name: 9.0 - i for i, name in enumerate(of)} for of in (before, after))
    records = make_found("baf", {"FCorr": plain, "FCorr + CAR": car})
    assert judged(records, "CAR moves attention to current").verdict is expected


def test_where_attention_moves_is_not_asked_of_a_stand_in(make_found, judged):
    data = {"name": "make_bank_fraud", "stands_in_for": "Bank Account Fraud"}
    records = make_found("baf", {"FCorr": RANKS, "FCorr + CAR": RANKS}, data=data)
    found = judged(records, "CAR moves attention to current")
    assert found.verdict is Verdict.NOT_TESTABLE


@pytest.mark.parametrize(
    ("own", "of_trees", "expected"),
    [
        (1, 1, Verdict.HOLDS),
        (7, 1, Verdict.FAILS),
        (1, 7, Verdict.NOT_TESTABLE),  # there is nothing to agree with
    ],
)
def test_coverage_limit(make_found, judged, own, of_trees, expected):
    models = {"FCorr": put("CovgLimit", own), "LightGBM": put("CovgLimit", of_trees)}
    found = judged(make_found("claims", models), "coverage limit is the most significant")
    assert found.verdict is expected
