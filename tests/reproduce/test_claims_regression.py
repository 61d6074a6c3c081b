"""Verdicts on claims about amounts and frequencies, from records made up for both sides."""

import pytest
from fcorr.estimators.network import EQUAL_PREDICTIONS

from fcorr.reproduce.report.claims import Verdict

LEARNT = [0.30, 0.25, 0.35, 0.28, 0.31]
SOME = [0.30, 0.25, 0.01, 0.28, 0.31]  # the third fit is at a constant
CONSTANT = [0.03, 0.00, 0.09, -0.01, 0.02]


def amounts(make_fits, **models):
    """Make records of the claims, the models by short names."""
    names = {
        "fcorr": "FCorr",
        "car": "FCorr + CAR",
        "ft": "FT-Transformer",
        "ft_car": "FT-Transformer + CAR",
        "trees": "LightGBM",
        "ffn": "FFN",
    }
    metrics = {names[name]: of for name, of in models.items()}
    return make_fits("claims", metrics, ["credit_score"], training={"epochs": 3})


def flips(value):
    return dict.fromkeys(("AvgIF", "RMSE gap", "MAE gap"), value)


@pytest.mark.parametrize(
    ("ginis", "with_car", "value", "expected", "evidence"),
    [
        (LEARNT, LEARNT, 0.004, Verdict.HOLDS, "AvgIF 90.00 without, 0.0040 with CAR"),
        (LEARNT, LEARNT, 0.006, Verdict.FAILS, "0.00 in 0 of 5 fits"),
        (LEARNT, LEARNT, [0.0, 0.0, 0.02, 0.0, 0.0], Verdict.IN_PART, "in 4 of 5 fits"),
        # What a constant shows, for better or worse, does not count.
        (LEARNT, SOME, [9.0, 9.0, 0.0, 9.0, 9.0], Verdict.FAILS, "At the 4 of 5 seeds"),
        (SOME, LEARNT, [0.0, 0.0, 9.0, 0.0, 0.0], Verdict.HOLDS, "in 4 of 4 fits"),
        (LEARNT, CONSTANT, 0.0, Verdict.NOT_TESTABLE, "At the 0 of 5 seeds"),
        (CONSTANT, LEARNT, 0.0, Verdict.NOT_TESTABLE, "none to tell by"),
    ],
)
def test_flips(make_fits, judged, ginis, with_car, value, expected, evidence):
    records = amounts(
        make_fits,
        fcorr={"Gini": ginis, **flips(90.0)},
        car={"Gini": with_car, **flips(value)},
    )
    found = judged(records, "With CAR, FCorr's flip metrics are 0.00")
    assert found.verdict is expected
    assert evidence in found.evidence


def test_one_of_the_three_flip_metrics_is_enough(make_fits, judged):
    records = amounts(
        make_fits,
        fcorr={"Gini": LEARNT, **flips(90.0)},
        car={"Gini": LEARNT, **flips(0.0), "MAE gap": 0.3},
    )
    assert judged(records, "With CAR, FCorr's flip metrics are 0.00").verdict is Verdict.FAILS


@pytest.mark.parametrize(
    ("with_car", "expected"),
    [
        ([70.0, 14.0, 24.0, 40.0, 43.0], Verdict.HOLDS),
        ([0.01] * 5, Verdict.IN_PART),  # lowered, and nothing left
        ([700.0, 150.0, 200.0, 410.0, 437.0], Verdict.FAILS),
    ],
)
def test_flips_of_ft_transformer(make_fits, judged, with_car, expected):
    plain = [720.0, 142.0, 238.0, 400.0, 430.0]
    records = amounts(
        make_fits,
        ft={"Gini": LEARNT, **flips(plain)},
        ft_car={"Gini": LEARNT, **flips(with_car)},
    )
    found = judged(records, "CAR lowers FT-Transformer's flip metrics, and")
    assert found.verdict is expected


def test_a_model_that_ranks_by_next_to_nothing_has_not_learnt(make_fits, judged):
    records = amounts(
        make_fits,
        ft={"Gini": LEARNT, **flips(400.0)},
        ft_car={"Gini": LEARNT, **flips([0.2, 40.0, 41.0, 40.0, 40.0])},
    )
    for record in records["claims"]:
        if record["model"] == "FT-Transformer + CAR" and record["seed"] == 0:
            record["warnings"] = [f"{EQUAL_PREDICTIONS}, got outputs with ..."]
    found = judged(records, "CAR lowers FT-Transformer's flip metrics, and")
    assert found.verdict is Verdict.HOLDS
    assert "At the 4 of 5 seeds" in found.evidence
    assert "40.25 with CAR" in found.evidence


@pytest.mark.parametrize(
    ("ginis", "with_car", "expected"),
    [
        (LEARNT, 100.0, Verdict.HOLDS),
        (LEARNT, 300.0, Verdict.FAILS),
        (SOME, 100.0, Verdict.HOLDS),
        ([0.3, 0.0, 0.0, 0.3, 0.3], 100.0, Verdict.NOT_TESTABLE),  # three seeds cannot tell
    ],
)
def test_groups(make_fits, judged, ginis, with_car, expected):
    records = amounts(
        make_fits, fcorr={"Gini": LEARNT, "DPD": 200.0}, car={"Gini": ginis, "DPD": with_car}
    )
    assert judged(records, "mean predictions of FCorr (DPD)").verdict is expected


@pytest.mark.parametrize(
    ("trees", "on_motor", "expected"),
    [
        ([0.50, 0.45, 0.55, 0.48, 0.51], 0.35, Verdict.HOLDS),
        ([0.20, 0.15, 0.25, 0.18, 0.21], 0.35, Verdict.IN_PART),
        ([0.50, 0.45, 0.55, 0.48, 0.51], 0.30, Verdict.IN_PART),
        ([0.20, 0.15, 0.25, 0.18, 0.21], 0.30, Verdict.FAILS),
    ],
)
def test_trees_lead(make_fits, make_fit, judged, trees, on_motor, expected):
    records = amounts(make_fits, trees={"Gini": trees}, fcorr={"Gini": LEARNT}, ft={"Gini": LEARNT})
    models = {"FCorr": {"Gini": [0.32, 0.33, 0.32, 0.31, 0.32]}}
    records |= make_fits("motor", models, ["DrivAge"], table="fremtpl2")
    # Of trees on a fixed table there is one fit.
    one = {"columns": ["DrivAge"], "metrics": {"Gini": on_motor}, "table": "fremtpl2"}
    records["motor"].append(make_fit("motor", "LightGBM", 0, **one))
    found = judged(records, "LightGBM predicts best")
    assert found.verdict is expected
    assert f"fremtpl2 LightGBM {on_motor:.3f}" in found.evidence


def test_a_loss_for_amounts_is_named_beside(make_fits, judged):
    models = {
        "LightGBM": {"Gini": LEARNT},
        "FCorr": {"Gini": LEARNT},
        "FT-Transformer": {"Gini": LEARNT},
        "LightGBM, Tweedie": {"Gini": 0.52},
    }
    found = judged(make_fits("claims", models, ["credit_score"]), "LightGBM predicts best")
    assert "LightGBM, Tweedie 0.52." in found.evidence


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ([0.41, 0.35, 0.45, 0.38, 0.41], Verdict.HOLDS),
        ([0.40, 0.15, 0.45, 0.18, 0.41], Verdict.FAILS),  # better in the mean, and not told
        ([0.20, 0.15, 0.25, 0.18, 0.21], Verdict.FAILS),
    ],
)
def test_fcorr_against_ft_transformer(make_fits, judged, own, expected):
    records = amounts(make_fits, fcorr={"Gini": own}, ft={"Gini": LEARNT})
    assert judged(records, "FCorr predicts better").verdict is expected


@pytest.mark.parametrize(
    ("of_car", "expected"),
    [
        ([0.27, 0.22, 0.32, 0.25, 0.28], Verdict.HOLDS),
        ([0.24, 0.19, 0.29, 0.22, 0.25], Verdict.FAILS),
        (CONSTANT, Verdict.FAILS),
    ],
)
def test_price_of_car(make_fits, judged, of_car, expected):
    models = {"FCorr": {"Gini": LEARNT}, "FCorr + CAR": {"Gini": of_car}}
    records = make_fits("claims", models, ["credit_score"], training={"car_weight": 1e6})
    found = judged(records, "CAR costs some ranking power")
    assert found.verdict is expected
    assert ", ".join(f"{gini:.2f} (1e+06)" for gini in of_car) in found.evidence


def test_price_of_car_tells_the_fits_that_end_at_a_constant(make_fits, judged):
    records = amounts(make_fits, fcorr={"Gini": LEARNT}, car={"Gini": SOME})
    found = judged(records, "CAR costs some ranking power")
    assert found.verdict is Verdict.FAILS
    assert "1 of 5 fits end at a constant; at the other seeds ≈ +0.0000" in found.evidence


@pytest.mark.parametrize(
    ("ginis", "expected"),
    [
        (CONSTANT, Verdict.HOLDS),
        ([0.0, 0.0, 0.0, 0.4, 0.4], Verdict.IN_PART),
        (SOME, Verdict.FAILS),
    ],
)
def test_collapsed_network(make_fits, judged, ginis, expected):
    records = amounts(make_fits, ffn={"Gini": ginis})
    assert judged(records, "feed-forward network collapses").verdict is expected


@pytest.mark.parametrize(
    ("with_car", "deviance", "expected"),
    [
        (1e-6, 0.451, Verdict.HOLDS),
        (1e-6, 0.459, Verdict.FAILS),
        ([1e-6, 1e-6, 0.09, 1e-6, 1e-6], 0.451, Verdict.IN_PART),
        (0.09, 0.451, Verdict.FAILS),
    ],
)
def test_motor(make_fits, judged, with_car, deviance, expected):
    models = {
        "FCorr": {"AvgIF": 0.12, "deviance": 0.450},
        "FCorr + CAR": {"AvgIF": with_car, "deviance": deviance},
        "FCorr + Rem": {"AvgIF": 0.0, "deviance": 0.454},
    }
    records = make_fits("motor", models, ["DrivAge"], table="fremtpl2")
    found = judged(records, "On French motor policies")
    assert found.verdict is expected
    assert "with the column removed +0.0040" in found.evidence
