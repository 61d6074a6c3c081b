"""Verdicts on the paper's claims, from records made up so that they come out either way."""

import math

import pytest
from fcorr.estimators.network import EQUAL_PREDICTIONS
from fcorr.reproduce.report.claims import CLAIMS, OURS, Verdict, check_claims
from fcorr.reproduce.report.claims.verdicts import judge
from fcorr.reproduce.report.results import Difference, Results
from fcorr.reproduce.report.selecting import has_learnt
from fcorr.reproduce.settings import read_config

FLIPS = ("AvgIF", "F1 gap", "AUROC gap", "AUPRC gap")
GROUPS = ("DPD", "EqOdd", "EqOpp")


def test_without_records_nothing_is_claimed():
    verdicts = {checked.finding.verdict for checked in check_claims({})}
    assert verdicts == {Verdict.NOT_RUN, Verdict.NOT_TESTABLE}


def test_claims_are_told_apart():
    texts = [claim.text for claim in (*CLAIMS, *OURS)]
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


def test_differences_are_paired_by_seed(make_fits):
    models = {
        "FCorr": {"AUROC": [0.70, 0.80, 0.75, 0.9, 0.6]},
        "FT-Transformer": {"AUROC": [0.69, 0.79, 0.74, 0.89, 0.59]},
    }
    found = Results(make_fits("baf", models, ["customer_age"])).difference(
        "baf", "FCorr", "FT-Transformer", "AUROC"
    )
    assert found.mean == pytest.approx(0.01)
    assert found.error == pytest.approx(0, abs=1e-12)
    assert found.n == 5


@pytest.mark.parametrize(("change", "expected"), [(1e-6, Verdict.HOLDS), (2e-3, Verdict.FAILS)])
def test_flips_with_car_on_baf(make_fits, judged, change, expected):
    models = {
        "FCorr": dict.fromkeys(FLIPS, 0.07),
        "FCorr + CAR": {**dict.fromkeys(FLIPS, 0.0), "AUPRC gap": change},
    }
    found = judged(make_fits("baf", models, ["customer_age"]), "flip metrics on BAF are")
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
def test_residual(make_fits, judged, with_residual, expected):
    models = {
        "FCorr + CAR": {"AvgIF": 0.0, "largest change": 0.0},
        "FCorr + Res + CAR": {"AvgIF": with_residual, "largest change": 0.1},
    }
    records = make_fits("baf", models, ["customer_age"]) | make_fits(
        "adult", models, ["race", "sex"]
    )
    assert judged(records, "A residual round the attention").verdict is expected


@pytest.mark.parametrize(("change", "expected"), [(0.0, Verdict.HOLDS), (1e-12, Verdict.FAILS)])
def test_collapse_is_exact_or_not(make_fits, judged, change, expected):
    models = {"FCorr + Res + CAR, collapsed": {"largest change": change}}
    records = make_fits("baf", models, ["customer_age"], on_train=True)
    assert judged(records, "collapsing").verdict is expected


@pytest.mark.parametrize(
    ("car", "removed", "expected"),
    [
        ([0.92] * 5, [0.90] * 5, Verdict.HOLDS),
        ([0.90] * 5, [0.92] * 5, Verdict.FAILS),
        ([0.90, 0.92, 0.91, 0.92, 0.90], [0.92, 0.90, 0.91, 0.90, 0.92], Verdict.FAILS),  # level
    ],
)
def test_car_against_removal_in_accuracy(make_fits, judged, car, removed, expected):
    models = {
        "FCorr + CAR": {"AUROC": car, "AUPRC": car},
        "FCorr + Rem": {"AUROC": removed, "AUPRC": removed},
    }
    records = make_fits("baf", models, ["customer_age"]) | make_fits(
        "adult", models, ["race", "sex"]
    )
    assert judged(records, "removing the sensitive column in accuracy").verdict is expected


@pytest.mark.parametrize(
    ("fewer", "expected"),
    [
        (1, Verdict.HOLDS),
        (4, Verdict.FAILS),  # a lower DPD of four times fewer positive decisions is no gain
    ],
)
def test_car_against_removal_in_group_fairness(make_fits, judged, fewer, expected):
    errors = {"Accuracy": 0.95, "FPR": 0.04, "FNR": 0.2}  # 11 % of the rows decided positive
    careful = {"Accuracy": 0.92, "FPR": 0.005, "FNR": 0.8} if fewer > 1 else errors
    models = {
        "FCorr + CAR": {**dict.fromkeys(GROUPS, 0.05), **careful},
        "FCorr + Rem": {**dict.fromkeys(GROUPS, 0.08), **errors},
    }
    records = make_fits("baf", models, ["customer_age"], on_train=True)
    records |= make_fits("adult", models, ["race", "sex"], on_train=True)
    found = judged(records, "removing the sensitive column in group fairness")
    assert found.verdict is expected
    assert "-0.0300" in found.evidence


@pytest.mark.parametrize(("ratio", "expected"), [(12.0, Verdict.HOLDS), (40.0, Verdict.FAILS)])
def test_rule_as_printed_overflows(make_fits, judged, ratio, expected):
    training = {"car_ratio": ratio}
    records = make_fits("baf", {"FCorr + CAR": {}}, ["customer_age"], training=training)
    assert judged(records, "as printed").verdict is expected


@pytest.mark.parametrize(
    ("with_car", "expected"),
    [
        ([0.06, 0.05, 0.06, 0.05, 0.06], Verdict.HOLDS),  # less, and some is left
        ([0.09, 0.10, 0.11, 0.10, 0.10], Verdict.FAILS),  # nothing taken: what is left says nothing
        (0.0, Verdict.IN_PART),
    ],
)
def test_car_on_ft_transformer(make_fits, judged, with_car, expected):
    models = {
        "FT-Transformer": {m: [0.10, 0.10, 0.11, 0.09, 0.10] for m in (*GROUPS, *FLIPS)},
        "FT-Transformer + CAR": dict.fromkeys((*GROUPS, *FLIPS), with_car),
    }
    records = make_fits("baf", models, ["customer_age"])
    found = judged(records, "fairness metrics on BAF, and leaves some")
    assert found.verdict is expected


def test_car_on_ft_transformer_in_one_metric_of_seven(make_fits, judged):
    plain = dict.fromkeys((*GROUPS, *FLIPS), 0.10)
    models = {"FT-Transformer": plain, "FT-Transformer + CAR": {**plain, "DPD": 0.05}}
    records = make_fits("baf", models, ["customer_age"])
    found = judged(records, "fairness metrics on BAF, and leaves some")
    assert found.verdict is Verdict.IN_PART


@pytest.mark.parametrize(
    ("of_ft", "on_motor", "expected"),
    [
        (0.06, 1e-7, Verdict.HOLDS),
        (1e-6, 1e-7, Verdict.IN_PART),
        (0.06, [1e-7, 1e-7, 0.09, 1e-7, 1e-7], Verdict.IN_PART),  # one fit whose attention lies
    ],
)
def test_invariant_attention_is_enough_for_fcorr_alone(
    make_fits, judged, of_ft, on_motor, expected
):
    models = {"FCorr + CAR": {"AvgIF": 1e-7}, "FT-Transformer + CAR": {"AvgIF": of_ft}}
    training = {"last_car": 1e-12}
    records = make_fits("baf", models, ["customer_age"], training=training)
    records |= make_fits("adult", models, ["race", "sex"], training=training)
    models = {"FCorr": {"AvgIF": 0.12}, "FCorr + CAR": {"AvgIF": on_motor}}
    records |= make_fits("motor", models, ["sex"], table="bemtpl97", training=training)
    assert judged(records, "Where attention is made invariant").verdict is expected


@pytest.mark.parametrize(
    ("flips", "expected"),
    [
        ([1e-6] * 5, Verdict.HOLDS),
        ([1e-6, 1e-6, 1e-6, 1e-6, 9e-4], Verdict.HOLDS),  # generally
        ([1e-6, 1e-6, 1e-6, 9e-4, 9e-4], Verdict.IN_PART),
        ([1e-6, 1e-6, 9e-4, 9e-4, 9e-4], Verdict.FAILS),
    ],
)
def test_the_rule_for_the_weight_reaches_invariance(make_fits, judged, flips, expected):
    models = {"FCorr + CAR": {"AvgIF": flips}}
    records = make_fits("synthetic", models, ["X1"]) | make_fits("baf", models, ["customer_age"])
    records |= make_fits("adult", models, ["race", "sex"])
    found = judged(records, "generally reaches invariance")
    assert found.verdict is expected
    assert f"in {sum(value < 1e-4 for value in flips)} of 5 fits" in found.evidence


@pytest.mark.parametrize(("on_motor", "expected"), [(0.30, Verdict.IN_PART), (0.32, Verdict.FAILS)])
def test_removal_is_judged_on_motor_policies_too(make_fits, judged, on_motor, expected):
    level = {"FCorr": {"AUROC": 0.9}, "FCorr + Rem": {"AUROC": 0.9}}
    records = make_fits("baf", level, ["customer_age"])
    models = {"FCorr": {"Gini": 0.32}, "FCorr + Rem": {"Gini": on_motor}}
    records |= make_fits("motor", models, ["DrivAge"], table="fremtpl2")
    assert judged(records, "Removing the sensitive column costs").verdict is expected


@pytest.mark.parametrize(
    ("with_car", "expected"),
    [
        (0.90, Verdict.HOLDS),
        ([0.90, 0.92, 0.91, 0.92, 0.91], Verdict.FAILS),
        (0.92, Verdict.FAILS),
    ],
)
def test_price_on_adult(make_fits, judged, with_car, expected):
    models = {"FCorr": {"AUROC": 0.9128}, "FCorr + CAR": {"AUROC": with_car}}
    found = judged(make_fits("adult", models, ["race", "sex"]), "CAR costs FCorr accuracy on Adult")
    assert found.verdict is expected
    assert "(the paper: -0.0134)" in found.evidence


@pytest.mark.parametrize(
    ("of_ft", "of_fcorr", "expected"),
    [
        (0.88, 0.88, Verdict.HOLDS),
        ([0.89, 0.91, 0.90, 0.91, 0.89], 0.88, Verdict.IN_PART),
        ([0.89, 0.91, 0.90, 0.91, 0.89], 0.91, Verdict.FAILS),
    ],
)
def test_noticeable_drop(make_fits, judged, of_ft, of_fcorr, expected):
    accuracies = {
        "FT-Transformer": 0.9,
        "FT-Transformer + CAR": of_ft,
        "FCorr": 0.9,
        "FCorr + CAR": of_fcorr,
    }
    models = {name: {"AUROC": value, "AUPRC": value} for name, value in accuracies.items()}
    records = make_fits("baf", models, ["customer_age"])
    assert judged(records, "noticeable drop").verdict is expected


@pytest.mark.parametrize(
    ("auroc", "auprc", "expected"),
    [
        (0.896, 0.196, Verdict.HOLDS),
        (0.896, 0.150, Verdict.IN_PART),
        (0.880, 0.150, Verdict.FAILS),
    ],
)
def test_little_price_on_fraud(make_fits, judged, auroc, auprc, expected):
    models = {
        "FCorr": {"AUROC": 0.9, "AUPRC": 0.2},
        "FCorr + CAR": {"AUROC": auroc, "AUPRC": auprc},
    }
    found = judged(make_fits("baf", models, ["customer_age"]), "CAR costs FCorr little accuracy")
    assert found.verdict is expected
    assert "(the paper: -0.0015)" in found.evidence


@pytest.mark.parametrize(
    ("with_residual", "of_trees", "expected"),
    [
        (0.91, 0.91, Verdict.HOLDS),
        (0.91, 0.95, Verdict.IN_PART),  # better, and not as good as trees
        (0.90, 0.90, Verdict.FAILS),  # as good as trees, by no doing of the residual
    ],
)
def test_the_residual_and_trees(make_fits, judged, with_residual, of_trees, expected):
    models = {
        "FCorr": {"AUROC": 0.9, "AUPRC": 0.9},
        "FCorr + Res": {"AUROC": with_residual, "AUPRC": with_residual},
        "LightGBM": {"AUROC": of_trees},
    }
    records = make_fits("baf", models, ["customer_age"])
    assert judged(records, "to the level of LightGBM").verdict is expected


@pytest.mark.parametrize(
    ("words", "better", "worse", "otherwise"),
    [
        ("outperform FFN", ("FT-Transformer", "FCorr"), ("FFN", "TabTransformer"), Verdict.FAILS),
        ("FT-Transformer is ahead of FCorr", ("FT-Transformer",), ("FCorr",), Verdict.FAILS),
        # It is the larger one still.
        ("TabTransformer is no better", ("FCorr",), ("TabTransformer",), Verdict.IN_PART),
    ],
)
def test_who_leads_on_fraud(make_fits, judged, words, better, worse, otherwise):
    def records(of_better, of_worse):
        models = dict.fromkeys(better, of_better) | dict.fromkeys(worse, of_worse)
        metrics = {
            name: {"AUROC": value, "AUPRC": value, "F1": value} for name, value in models.items()
        }
        found = make_fits("baf", metrics, ["customer_age"])
        for record in found["baf"]:
            record["parameters"] = 100 if record["model"] in worse else 10
        return found

    assert judged(records(0.92, 0.90), words).verdict is Verdict.HOLDS
    assert judged(records(0.90, 0.92), words).verdict is otherwise


@pytest.mark.parametrize(
    ("gap", "fewer", "expected"),
    [
        (0.05, False, Verdict.HOLDS),
        (0.05, True, Verdict.FAILS),  # of four times fewer positive decisions it is no gain
        (0.09, False, Verdict.FAILS),
    ],
)
def test_group_metrics_on_fraud(make_fits, judged, gap, fewer, expected):
    errors = {"Accuracy": 0.95, "FPR": 0.04, "FNR": 0.2}
    careful = {"Accuracy": 0.92, "FPR": 0.005, "FNR": 0.8} if fewer else errors
    models = {
        "FCorr": {**dict.fromkeys(GROUPS, 0.08), **errors},
        "FCorr + CAR": {**dict.fromkeys(GROUPS, gap), **careful},
    }
    found = judged(make_fits("baf", models, ["customer_age"]), "group metrics on BAF")
    assert found.verdict is expected


@pytest.mark.parametrize(("auroc", "expected"), [(0.907, Verdict.HOLDS), (0.90, Verdict.FAILS)])
def test_level_on_adult(make_fits, judged, auroc, expected):
    models = {"FCorr": {"AUROC": auroc}, "FT-Transformer": {"AUROC": 0.91, "Accuracy at 0.5": 0.86}}
    found = judged(make_fits("adult", models, ["race", "sex"]), "level with FT-Transformer")
    assert found.verdict is expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (3e-4, Verdict.HOLDS),
        ([3e-4, 3e-4, 3e-4, 3e-4, 9e-4], Verdict.IN_PART),
        (9e-4, Verdict.FAILS),
    ],
)
def test_flips_with_car_on_adult(make_fits, judged, change, expected):
    models = {
        "FCorr": dict.fromkeys(FLIPS, 0.07),
        "FCorr + CAR": {**dict.fromkeys(FLIPS, 0.0), "F1 gap": change},
    }
    found = judged(make_fits("adult", models, ["race", "sex"]), "flip metrics on Adult are")
    assert found.verdict is expected


@pytest.mark.parametrize(
    ("auroc", "change", "expected"),
    [
        (0.91, 0.0, Verdict.HOLDS),
        (0.91, 1e-12, Verdict.FAILS),
        (0.89, 0.0, Verdict.FAILS),
    ],
)
def test_our_defaults(make_fits, judged, auroc, change, expected):
    models = {
        "FCorr, defaults": {"AUROC": auroc, "largest change": change},
        "FCorr + CAR": {"AUROC": 0.9},
    }
    records = make_fits("baf", models, ["customer_age"])
    records |= make_fits("adult", models, ["race", "sex"])
    assert judged(records, "Our defaults are exactly").verdict is expected


@pytest.mark.parametrize(("change", "expected"), [(0.0, Verdict.FAILS), (0.2, Verdict.HOLDS)])
def test_flips_of_a_removed_column(make_fits, judged, change, expected):
    records = make_fits("baf", {"FCorr + Rem": {"largest change": change}}, ["customer_age"])
    assert judged(records, "is still biased by the flip metrics").verdict is expected


@pytest.mark.parametrize(
    ("auroc", "flips", "expected"),
    [
        (0.91, 1e-5, Verdict.HOLDS),
        (0.91, 2e-4, Verdict.FAILS),
        (0.89, 1e-5, Verdict.FAILS),
    ],
)
def test_beyond_the_papers_figures_on_adult(make_fits, judged, auroc, flips, expected):
    names = ("FCorr + CAR", "FCorr, splines + CAR")
    models = {name: {"AUROC": auroc, "AvgIF": flips} for name in names}
    found = judged(make_fits("adult", models, ["race", "sex"]), "more accurate here")
    assert found.verdict is expected


def _by_weight(make_fit, values):
    """Make records of the experiment over λ; a metric has a list of seeds for each λ."""
    weights = read_config("controllability")["vary"]["car"]
    return {
        "controllability": [
            make_fit(
                "controllability",
                "FCorr + CAR",
                seed,
                columns=["customer_age"],
                metrics={metric: of[i][seed] for metric, of in values.items()},
                point={"car": weight},
            )
            for i, weight in enumerate(weights)
            for seed in range(5)
        ]
    }


@pytest.mark.parametrize(("power", "expected"), [(-1.0, Verdict.HOLDS), (1.0, Verdict.FAILS)])
def test_controllability(make_fit, judged, power, expected):
    levels = [[(1 + i) ** power] * 5 for i in range(9)]
    records = _by_weight(make_fit, dict.fromkeys(FLIPS, levels))
    assert judged(records, "fall steadily").verdict is expected


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([1, 0.9, 0.7, 0.1, 0.01, 0, 0, 0, 0], Verdict.HOLDS),
        ([1, 0.4, 0.3, 0.1, 0.01, 0, 0, 0, 0], Verdict.IN_PART),
        ([1, 0.9, 0.9, 1.0, 0.9, 0.9, 1.0, 0.8, 0.9], Verdict.IN_PART),
        ([1, 0.4, 0.3, 0.5, 0.4, 0.6, 0.3, 0.4, 0.5], Verdict.FAILS),
    ],
)
def test_small_weights(make_fit, judged, shares, expected):
    flat = [[share] * 5 for share in shares]
    records = _by_weight(make_fit, {"AvgIF": flat})
    assert judged(records, "A small λ takes little").verdict is expected


@pytest.mark.parametrize(
    ("spread", "order", "expected"),
    [
        (0.9, [0, 2, 1, 3, 4, 5, 6, 7, 8], Verdict.HOLDS),
        (0.9, range(9), Verdict.IN_PART),  # it varies more, and falls as steadily
        (0.1, [0, 2, 1, 3, 4, 5, 6, 7, 8], Verdict.IN_PART),
        (0.01, range(9), Verdict.FAILS),
    ],
)
def test_f1_gap_is_less_controllable(make_fit, judged, spread, order, expected):
    steady = [[0.09 - 0.01 * i + 0.002 * (seed - 2) for seed in range(5)] for i in range(9)]
    levels = [0.09 - 0.01 * i for i in order]
    varying = [[level * (1 + spread * (seed - 2) / 2) for seed in range(5)] for level in levels]
    values = {**dict.fromkeys(FLIPS, steady), "F1 gap": varying}
    found = judged(_by_weight(make_fit, values), "The F1 gap varies more")
    assert found.verdict is expected


def test_an_f1_gap_that_is_gone_is_not_called_hard_to_control(make_fit, judged):
    steady = [[0.09 - 0.01 * i + 0.002 * (seed - 2) for seed in range(5)] for i in range(9)]
    gone = [of if i < 4 else [0.0] * 5 for i, of in enumerate(steady)]
    records = _by_weight(make_fit, {**dict.fromkeys(FLIPS, steady), "F1 gap": gone})
    found = judged(records, "The F1 gap varies more")
    assert found.verdict is Verdict.FAILS
    assert "at the 4 values of λ" in found.evidence
    gone = [of if i < 2 else [0.0] * 5 for i, of in enumerate(steady)]
    records = _by_weight(make_fit, {**dict.fromkeys(FLIPS, steady), "F1 gap": gone})
    assert judged(records, "The F1 gap varies more").verdict is Verdict.NOT_TESTABLE


def _layered(make_fit, aurocs, flips):
    return {
        "multilayer": [
            make_fit(
                "multilayer",
                "FCorr + CAR",
                seed,
                columns=["customer_age"],
                metrics={"AUROC": aurocs[depth], **dict.fromkeys(FLIPS, flips)},
                point={"n_layers": depth},
            )
            for depth in (1, 3, 5)
            for seed in range(5)
        ]
    }


def test_layers_are_invariant_where_they_learnt(make_fit, judged):
    aurocs = {1: 0.9, 3: 0.9, 5: [0.9, 0.9, 0.9, 0.52, 0.9]}
    found = judged(_layered(make_fit, aurocs, [0.0, 0.0, 0.0, 9.0, 0.0]), "3 and 5 encoder layers")
    assert found.verdict is Verdict.HOLDS
    assert found.evidence.startswith("At the 4 of 5 seeds where all fits of FCorr + CAR learnt. L")
    aurocs[5] = 0.9
    found = judged(_layered(make_fit, aurocs, [0.0, 0.0, 0.0, 9.0, 0.0]), "3 and 5 encoder layers")
    assert found.verdict is Verdict.IN_PART
    assert judged(_layered(make_fit, aurocs, 1e-4), "3 and 5 encoder").verdict is Verdict.FAILS


@pytest.mark.parametrize(
    ("three", "five", "expected"),
    [
        (0.88, 0.87, Verdict.HOLDS),
        (0.90, 0.87, Verdict.IN_PART),
        (0.90, [0.8, 0.89, 0.89, 0.5, 0.89], Verdict.FAILS),  # by one fit alone
    ],
)
def test_more_layers_predict_worse(make_fit, judged, three, five, expected):
    records = _layered(make_fit, {1: 0.9, 3: three, 5: five}, 0.0)
    found = judged(records, "More layers predict worse")
    assert found.verdict is expected
    assert "lower in 5 of 5 fits" in found.evidence


def test_only_shared_seeds_are_compared(make_fits):
    records = make_fits("baf", {"FCorr": {"AUROC": 0.9}}, ["customer_age"])
    results = Results(records)
    assert results.difference("baf", "FCorr", "FFN", "AUROC") is None


def test_metrics_that_were_not_estimable_are_left_out(make_fits):
    records = make_fits("baf", {"FCorr": {"EqOpp": [0.5, None, 0.7, None, None]}}, ["customer_age"])
    assert Results(records).by_seed("baf", "FCorr", "EqOpp") == {0: 0.5, 2: 0.7}


@pytest.mark.parametrize(
    ("metrics", "warnings", "expected"),
    [
        ({"AUROC": 0.6}, [], True),
        ({"AUROC": 0.52}, [], False),
        ({"Gini": 0.2}, [], True),
        ({"Gini": 0.02}, [], False),
        ({"Gini": None}, [], False),  # scores that are all equal have none
        ({"Gini": 0.2}, ["The network grew."], True),
        ({"Gini": 0.2}, [f"{EQUAL_PREDICTIONS}, got"], False),
    ],
)
def test_what_has_learnt(make_fit, metrics, warnings, expected):
    record = make_fit("x", "FCorr", 0, columns=[], metrics=metrics, warnings=warnings)
    assert has_learnt(record) is expected


def test_the_largest_of_metrics_that_are_there(make_fits):
    results = Results(make_fits("baf", {"FCorr": {"AvgIF": 0.1, "F1 gap": 0.3}}, ["customer_age"]))
    assert results.largest("baf", "FCorr", ("AvgIF", "F1 gap")) == pytest.approx(0.3)
    for metrics in (("AvgIF", "DPD"), ("DPD", "AvgIF")):
        assert math.isnan(results.largest("baf", "FCorr", metrics))


def test_results_at_some_seeds(make_fits):
    records = make_fits("baf", {"FCorr": {"AUROC": [0.1, 0.2, 0.3, 0.4, 0.5]}}, ["customer_age"])
    records |= make_fits("adult", {"FCorr": {"AUROC": 0.9}}, ["race"])
    some = Results(records).at_seeds("baf", {1, 3})
    assert some.by_seed("baf", "FCorr", "AUROC") == {1: 0.2, 3: 0.4}
    assert len(some.by_seed("adult", "FCorr", "AUROC")) == 5


def test_ratios_of_what_spans_orders_of_size(make_fits):
    models = {
        "FT-Transformer": {"AvgIF": [700.0, 140.0, 240.0, 400.0, 0.0]},
        "FT-Transformer + CAR": {"AvgIF": [70.0, 14.0, 24.0, 40.0, 9.0]},
    }
    results = Results(make_fits("claims", models, ["credit_score"]))
    found = results.log_ratio("claims", *reversed(models), "AvgIF")
    assert (found.mean, found.n) == (pytest.approx(-1), 4)  # of 0 there is no logarithm
    assert found.sign == -1
    assert results.difference("claims", *reversed(models), "AvgIF").sign == 0
