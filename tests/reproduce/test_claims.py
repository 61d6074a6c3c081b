"""Verdicts on the paper's claims: from records made up so that each comes out both ways."""

import math

import pytest

from fcorr.reproduce.report.claims import CLAIMS, OURS, Verdict, check_claims
from fcorr.reproduce.report.claims.verdicts import judge
from fcorr.reproduce.report.results import Difference, Results

SEEDS = range(5)
FLIPS = ("AvgIF", "F1 gap", "AUROC gap", "AUPRC gap")
GROUPS = ("DPD", "EqOdd", "EqOpp")


def fit(experiment, model, seed, *, columns, metrics, table="table", point=None, **fields):
    """Make the record of a fit; a metric is one number, or one for each seed."""
    values = {name: v[seed] if isinstance(v, list) else v for name, v in metrics.items()}
    return {
        "experiment": experiment,
        "model": model,
        "seed": seed,
        "config": {"data": {"name": table}, "point": point or {}},
        "data": {"name": "made up", "stands_in_for": ""},
        "performance": {"train": values, "test": values},
        "fairness": {column: {"train": values, "test": values} for column in columns},
        "training": {},
        "attention": {},
        "significance": {},
        **fields,
    }


def fits(experiment, models, columns, **shared):
    return {
        experiment: [
            fit(experiment, model, seed, columns=columns, metrics=metrics, **shared)
            for model, metrics in models.items()
            for seed in SEEDS
        ]
    }


def verdict(records, text):
    (claim,) = [claim for claim in (*CLAIMS, *OURS) if text in claim.text]
    return claim.check(Results(records))


def test_without_records_nothing_is_claimed():
    verdicts = {checked.finding.verdict for checked in check_claims({})}
    assert verdicts == {Verdict.NOT_RUN, Verdict.NOT_TESTABLE}


def test_claims_are_told_apart():
    texts = [claim.text for claim in CLAIMS]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([True, True], Verdict.HOLDS),
        ([True, False], Verdict.IN_PART),
        ([False, False], Verdict.FAILS),
    ],
)
def test_parts(parts, expected):
    assert judge(parts) is expected


def test_a_difference_counts_by_students_test():
    assert Difference(0.01, 0.0035, 5).sign == 1  # 2.86 standard errors; 2.78 are needed
    assert Difference(-0.01, 0.0035, 5).sign == -1
    assert Difference(0.01, 0.0038, 5).sign == 0
    assert Difference(0.01, math.nan, 1).sign == 0


def test_differences_are_paired_by_seed():
    models = {
        "FCorr": {"AUROC": [0.70, 0.80, 0.75, 0.9, 0.6]},
        "FT-Transformer": {"AUROC": [0.69, 0.79, 0.74, 0.89, 0.59]},
    }
    found = Results(fits("baf", models, ["customer_age"])).difference(
        "baf", "FCorr", "FT-Transformer", "AUROC"
    )
    assert found.mean == pytest.approx(0.01)
    assert found.error == pytest.approx(0, abs=1e-12)
    assert found.n == 5


@pytest.mark.parametrize(("change", "expected"), [(1e-6, Verdict.HOLDS), (2e-3, Verdict.FAILS)])
def test_flips_with_car_on_baf(change, expected):
    models = {
        "FCorr": dict.fromkeys(FLIPS, 0.07),
        "FCorr + CAR": {**dict.fromkeys(FLIPS, 0.0), "AUPRC gap": change},
    }
    found = verdict(fits("baf", models, ["customer_age"]), "flip metrics on BAF are")
    assert found.verdict is expected
    assert "0.0700 without" in found.evidence


@pytest.mark.parametrize(
    ("with_residual", "expected"),
    [
        (1e-6, Verdict.FAILS),
        ([0.05, 0.0, 0.0, 0.0, 0.0], Verdict.IN_PART),  # one fit breaks the guarantee
        (0.05, Verdict.HOLDS),
    ],
)
def test_residual(with_residual, expected):
    models = {
        "FCorr + CAR": {"AvgIF": 0.0, "largest change": 0.0},
        "FCorr + Res + CAR": {"AvgIF": with_residual, "largest change": 0.1},
    }
    records = fits("baf", models, ["customer_age"]) | fits("adult", models, ["race", "sex"])
    assert verdict(records, "A residual round the attention").verdict is expected


@pytest.mark.parametrize(("change", "expected"), [(0.0, Verdict.HOLDS), (1e-12, Verdict.FAILS)])
def test_collapse_is_exact_or_not(change, expected):
    models = {"FCorr + Res + CAR, collapsed": {"largest change": change}}
    assert verdict(fits("baf", models, ["customer_age"]), "collapsing").verdict is expected


@pytest.mark.parametrize(
    ("car", "removed", "expected"),
    [
        ([0.92] * 5, [0.90] * 5, Verdict.HOLDS),
        ([0.90] * 5, [0.92] * 5, Verdict.FAILS),
        ([0.90, 0.92, 0.91, 0.92, 0.90], [0.92, 0.90, 0.91, 0.90, 0.92], Verdict.FAILS),  # level
    ],
)
def test_car_against_removal_in_accuracy(car, removed, expected):
    models = {
        "FCorr + CAR": {"AUROC": car, "AUPRC": car},
        "FCorr + Rem": {"AUROC": removed, "AUPRC": removed},
    }
    records = fits("baf", models, ["customer_age"]) | fits("adult", models, ["race", "sex"])
    assert verdict(records, "removing the sensitive column in accuracy").verdict is expected


@pytest.mark.parametrize(
    ("fewer", "expected"),
    [
        (1, Verdict.HOLDS),
        (4, Verdict.FAILS),  # a lower DPD of four times fewer positive decisions is no gain
    ],
)
def test_car_against_removal_in_group_fairness(fewer, expected):
    errors = {"Accuracy": 0.95, "FPR": 0.04, "FNR": 0.2}  # 11 % of the rows decided positive
    careful = {"Accuracy": 0.92, "FPR": 0.005, "FNR": 0.8} if fewer > 1 else errors
    models = {
        "FCorr + CAR": {**dict.fromkeys(GROUPS, 0.05), **careful},
        "FCorr + Rem": {**dict.fromkeys(GROUPS, 0.08), **errors},
    }
    records = fits("baf", models, ["customer_age"]) | fits("adult", models, ["race", "sex"])
    found = verdict(records, "removing the sensitive column in group fairness")
    assert found.verdict is expected
    assert "-0.0300" in found.evidence


@pytest.mark.parametrize(("ratio", "expected"), [(12.0, Verdict.HOLDS), (40.0, Verdict.FAILS)])
def test_rule_as_printed_overflows(ratio, expected):
    training = {"car_ratio": ratio}
    records = fits("baf", {"FCorr + CAR": {}}, ["customer_age"], training=training)
    assert verdict(records, "as printed").verdict is expected


@pytest.mark.parametrize(
    ("order", "expected"),
    [(1, Verdict.HOLDS), (-1, Verdict.FAILS)],
)
def test_significance_by_rank_correlation(order, expected):
    names = [f"x{i}" for i in range(31)]
    ranks = {name: float(i) for i, name in enumerate(names)}
    trees = {name: order * value for name, value in ranks.items()}
    records = {
        "baf": [
            fit(
                "baf",
                model,
                seed,
                columns=["customer_age"],
                metrics={},
                significance=significance,
            )
            for seed in SEEDS
            for model, significance in (
                ("FCorr", {"significance": ranks}),
                ("LightGBM", {"split": trees, "gain": trees}),
            )
        ]
    }
    found = verdict(records, "largely agrees with LightGBM")
    assert found.verdict is expected
    assert f"{order:.2f} with LightGBM's splits" in found.evidence


@pytest.mark.parametrize(("power", "expected"), [(-1.0, Verdict.HOLDS), (1.0, Verdict.FAILS)])
def test_controllability(power, expected):
    weights = [0.0, 1.0, 10.0, 100.0, 1e3, 1e4, 1e6]
    records = {
        "controllability": [
            fit(
                "controllability",
                "FCorr + CAR",
                seed,
                columns=["customer_age"],
                metrics=dict.fromkeys(FLIPS, (1 + i) ** power),
                point={"car": weight},
            )
            for i, weight in enumerate(weights)
            for seed in SEEDS
        ]
    }
    assert verdict(records, "fall steadily").verdict is expected


@pytest.mark.parametrize(
    ("with_car", "expected"),
    [
        ([0.06, 0.05, 0.06, 0.05, 0.06], Verdict.HOLDS),  # less, and some is left
        ([0.09, 0.10, 0.11, 0.10, 0.10], Verdict.FAILS),  # nothing taken: what is left says nothing
        (0.0, Verdict.IN_PART),
    ],
)
def test_car_on_ft_transformer(with_car, expected):
    models = {
        "FT-Transformer": {"AvgIF": [0.10, 0.10, 0.11, 0.09, 0.10]},
        "FT-Transformer + CAR": {"AvgIF": with_car},
    }
    found = verdict(fits("baf", models, ["customer_age"]), "flip metrics on BAF, and leaves some")
    assert found.verdict is expected


@pytest.mark.parametrize(("of_ft", "expected"), [(0.06, Verdict.HOLDS), (1e-6, Verdict.IN_PART)])
def test_invariant_attention_is_enough_for_fcorr_alone(of_ft, expected):
    models = {"FCorr + CAR": {"AvgIF": 1e-7}, "FT-Transformer + CAR": {"AvgIF": of_ft}}
    training = {"last_car": 1e-12}
    records = fits("baf", models, ["customer_age"], training=training)
    records |= fits("adult", models, ["race", "sex"], training=training)
    assert verdict(records, "Where attention is made invariant").verdict is expected


def test_only_shared_seeds_are_compared():
    records = fits("baf", {"FCorr": {"AUROC": 0.9}}, ["customer_age"])
    results = Results(records)
    assert results.difference("baf", "FCorr", "FFN", "AUROC") is None


def test_metrics_that_were_not_estimable_are_left_out():
    records = fits("baf", {"FCorr": {"EqOpp": [0.5, None, 0.7, None, None]}}, ["customer_age"])
    assert Results(records).by_seed("baf", "FCorr", "EqOpp") == {0: 0.5, 2: 0.7}


LEARNT, CONSTANT = [0.30, 0.25, 0.35, 0.28, 0.31], [0.03, 0.00, 0.09, -0.01, 0.02]
SOME = [0.30, 0.25, 0.01, 0.28, 0.31]
AT_THE_CONSTANT = [9.0, 9.0, 0.0, 9.0, 9.0]  # the third fit of SOME is one


@pytest.mark.parametrize(
    ("ginis", "with_car", "flips", "expected", "evidence"),
    [
        (LEARNT, LEARNT, 0.001, Verdict.HOLDS, "AvgIF 90.00 without, 0.0010 with CAR"),
        (LEARNT, SOME, AT_THE_CONSTANT, Verdict.FAILS, "Of 4 of 5 seeds"),
        (SOME, LEARNT, AT_THE_CONSTANT, Verdict.FAILS, "90.00 without, 9.0000 with CAR"),
        (LEARNT, CONSTANT, 0.0, Verdict.NOT_TESTABLE, "Of 0 of 5 seeds"),
        (CONSTANT, LEARNT, 0.0, Verdict.NOT_TESTABLE, "Of 0 of 5 seeds"),
    ],
)
def test_flips_of_claims_are_judged_where_models_learnt(ginis, with_car, flips, expected, evidence):
    models = {
        "FCorr": {"Gini": ginis, "AvgIF": 90.0},
        "FCorr + CAR": {"Gini": with_car, "AvgIF": flips},
    }
    found = verdict(fits("claims", models, ["credit_score"]), "With CAR, FCorr's flip metrics are")
    assert found.verdict is expected
    assert evidence in found.evidence


@pytest.mark.parametrize(
    ("trees", "expected"),
    [
        ([0.50, 0.45, 0.55, 0.48, 0.51], Verdict.HOLDS),
        ([0.20, 0.15, 0.25, 0.18, 0.21], Verdict.NOT_TESTABLE),  # a baseline that was not tuned
    ],
)
def test_trees_that_were_not_tuned_can_lead_but_not_fall_behind(trees, expected):
    models = {
        "LightGBM": {"Gini": trees},
        "FCorr": {"Gini": LEARNT},
        "FT-Transformer": {"Gini": LEARNT},
    }
    records = fits("claims", models, ["credit_score"])
    assert verdict(records, "LightGBM predicts best").verdict is expected


def test_price_of_car_on_claims_is_shown_fit_by_fit():
    models = {"FCorr": {"Gini": LEARNT}, "FCorr + CAR": {"Gini": CONSTANT}}
    records = fits("claims", models, ["credit_score"], training={"car_weight": 1e6})
    found = verdict(records, "CAR costs some ranking power")
    assert found.verdict is Verdict.FAILS
    assert "0.03 (1e+06), 0.00 (1e+06), 0.09 (1e+06), -0.01 (1e+06), 0.02 (1e+06)" in found.evidence
