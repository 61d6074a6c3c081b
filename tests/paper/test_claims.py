"""Verdicts on the paper's claims, from records made up so that they come out either way."""

import math

import pytest

from fcorr.estimators.base import EQUAL_PREDICTIONS
from paper.claims import CHECKS, Verdict, check_claims, judge
from paper.costs import AUGMENTED, BY_DEFINITION, CLOSED_FORM
from paper.experiments import read_config
from paper.results import Difference, NotRunError, Place, Results, compare, has_learnt

HOLDS, IN_PART, FAILS = Verdict.HOLDS, Verdict.IN_PART, Verdict.FAILS
NOT_TESTABLE = Verdict.NOT_TESTABLE
FLIPS = ("AvgIF", "F1 gap", "AUROC gap", "AUPRC gap")
GROUPS = ("DPD", "EqOdd", "EqOpp")
COLUMNS = {
    "synthetic": ["X1"],
    "baf": ["customer_age"],
    "adult": ["race", "sex"],
    "claims": ["credit_score"],
    "bemtpl97": ["sex"],
    "fremtpl2": ["DrivAge"],
}
LEARNT = [0.30, 0.25, 0.35, 0.28, 0.31]  # Gini
SOME = [0.30, 0.25, 0.01, 0.28, 0.31]  # the third fit is at a constant
CONSTANT = [0.03, 0.00, 0.09, -0.01, 0.02]
NOISY = [0.89, 0.91, 0.90, 0.91, 0.89]  # about .9, not told from it


def test_claims_and_checks_belong_together():
    words = read_config("claims_of_paper")
    assert {name for name, of in words.items() if "reason" not in of} == set(CHECKS)
    for name, of in words.items():
        assert ("reason" in of) != ("rule" in of), name
        assert ("section" in of) != name.startswith("ours-"), name
    assert len([of for of in words.values() if "section" in of]) == 61
    assert len({of["text"] for of in words.values()}) == len(words)
    for line in read_config("summary")["lines"]:
        assert line["rests_on"].keys() <= words.keys()


def test_without_records_nothing_is_claimed():
    verdicts = {claim.finding.verdict for claim in check_claims({})}
    assert verdicts == {Verdict.NOT_RUN, NOT_TESTABLE}


# ------------------------------------------------------------ rules


@pytest.mark.parametrize(
    ("parts", "expected"),
    [([True, True], HOLDS), ([True, False], IN_PART), ([False, False], FAILS)],
)
def test_parts(parts, expected):
    assert judge(parts) is expected


def test_a_difference_counts_by_students_test():
    assert Difference(0.01, 0.0035, 5).sign == 1  # 2.86 standard errors; 2.78 are needed
    assert Difference(-0.01, 0.0035, 5).sign == -1
    assert Difference(0.01, 0.0038, 5).sign == 0
    assert Difference(0.01, math.nan, 1).sign == 0
    found = compare({0: 0.70, 1: 0.80, 2: 0.75, 9: 1.0}, {0: 0.69, 1: 0.79, 2: 0.74, 7: 0.0})
    assert (found.mean, found.error, found.n) == (pytest.approx(0.01), pytest.approx(0), 3)
    with pytest.raises(NotRunError):
        compare({0: 1.0}, {1: 1.0})


def test_questions_to_results(make_fits):
    fraud = Place("baf", "customer_age")
    models = {
        "FCorr": {
            "AvgIF": [700.0, 140.0, 240.0, 400.0, 0.0],
            "EqOpp": [0.5, None, 0.7, None, None],
        },
        "FCorr + CAR": {"AvgIF": [70.0, 14.0, 24.0, 40.0, 9.0], "EqOpp": 0.9},
    }
    r = Results(make_fits("baf", models, ["customer_age"]) | make_fits("adult", models, ["race"]))
    assert r.values(fraud, "FCorr", "EqOpp").to_dict() == {0: 0.5, 2: 0.7}  # estimable
    found = r.difference(fraud, "FCorr + CAR", "FCorr", "AvgIF", log=True)
    assert (found.mean, found.n, found.sign) == (pytest.approx(-1), 4, -1)  # 0 has no logarithm
    assert r.difference(fraud, "FCorr + CAR", "FCorr", "AvgIF").sign == 0
    assert r.largest(fraud, "FCorr", ("AvgIF", "EqOpp")) == pytest.approx(296)
    some = r.at_seeds("baf", {1, 3})
    assert some.values(fraud, "FCorr", "AvgIF").to_dict() == {1: 140.0, 3: 400.0}
    assert len(some.values(Place("adult", "race"), "FCorr", "AvgIF")) == 5
    assert r.has(fraud, ["FCorr"], "EqOpp")
    for place, model, metric in (
        (fraud, "FFN", "AvgIF"),
        (fraud, "FCorr", "DPD"),
        (Place("baf", "income"), "FCorr", "AvgIF"),
    ):
        assert not r.has(place, [model], metric)
        with pytest.raises(NotRunError):
            r.mean(place, model, metric)


@pytest.mark.parametrize(
    ("metrics", "warnings", "expected"),
    [
        ({"AUROC": 0.6}, [], True),
        ({"AUROC": 0.52}, [], False),
        ({"Gini": 0.2}, ["The network grew."], True),
        ({"Gini": 0.02}, [], False),
        ({"Gini": None}, [], False),  # scores that are all equal have none
        ({"Gini": 0.2}, [f"{EQUAL_PREDICTIONS}, got"], False),
    ],
)
def test_what_has_learnt(make_fit, metrics, warnings, expected):
    record = make_fit("x", "FCorr", 0, columns=[], metrics=metrics, warnings=warnings)
    assert has_learnt(record) is expected


# ------------------------------------------------------------ claims by metrics


def same(names, value, **others):
    return dict.fromkeys(names, value) | others


def both(value):
    return {"AUROC": value, "AUPRC": value, "F1": value}


def at(places, models):
    return dict.fromkeys(places, models)


def errors(*, careful=False):
    """Accuracy and error rates; a careful model decides four times fewer rows positive."""
    rates = (0.92, 0.005, 0.8) if careful else (0.95, 0.04, 0.2)
    return dict(zip(("Accuracy", "FPR", "FNR"), rates, strict=True))


def amounts(value, gini=LEARNT):
    return {"Gini": gini, "AvgIF": value, "RMSE gap": value, "MAE gap": value}


FRAUD_AND_ADULT = ("baf", "adult")
FT, FTC, CAR, REM = "FT-Transformer", "FT-Transformer + CAR", "FCorr + CAR", "FCorr + Rem"
PLAIN_AMOUNTS = [720.0, 142.0, 238.0, 400.0, 430.0]
SEVEN = (*GROUPS, *FLIPS)
CASES = [
    # zeros
    *(
        (
            f"{name}-flips",
            {name: {"FCorr": same(FLIPS, 0.07), CAR: same(FLIPS, 0, **left)}},
            verdict,
        )
        for name, tiny, large in (
            ("synthetic", 1e-6, 9e-4),
            ("baf", 1e-6, 2e-3),
            ("adult", 3e-4, 9e-4),
        )
        for left, verdict in (
            ({"AUPRC gap": tiny}, HOLDS),
            ({"F1 gap": [tiny, tiny, tiny, tiny, large]}, IN_PART),
            ({"AvgIF": large}, FAILS),
        )
    ),
    *(
        (
            "claims-flips",
            {"claims": {"FCorr": amounts(90.0, own), CAR: amounts(left, gini)}},
            verdict,
        )
        for own, gini, left, verdict in (
            (LEARNT, LEARNT, 0.004, HOLDS),
            (LEARNT, LEARNT, 0.006, FAILS),
            (LEARNT, LEARNT, [0.0, 0.0, 0.02, 0.0, 0.0], IN_PART),
            # What a constant shows, for better or worse, does not count.
            (LEARNT, SOME, [9.0, 9.0, 0.0, 9.0, 9.0], FAILS),
            (SOME, LEARNT, [0.0, 0.0, 9.0, 0.0, 0.0], HOLDS),
            (LEARNT, CONSTANT, 0.0, NOT_TESTABLE),
            (CONSTANT, LEARNT, 0.0, NOT_TESTABLE),
        )
    ),
    # who leads
    *(
        (name, {"baf": same(better, both(high)) | same(worse, both(1.82 - high))}, verdict)
        for name, better, worse in (
            ("baf-transformers-lead", (FT, "FCorr"), ("FFN", "TabTransformer")),
            ("baf-ft-ahead", (FT,), ("FCorr",)),
        )
        for high, verdict in ((0.92, HOLDS), (0.90, FAILS))
    ),
    (
        "adult-level",
        {"adult": {"FCorr": both(0.907), FT: both(0.91) | {"Accuracy at 0.5": 0}}},
        HOLDS,
    ),
    (
        "adult-level",
        {"adult": {"FCorr": both(0.900), FT: both(0.91) | {"Accuracy at 0.5": 0}}},
        FAILS,
    ),
    *(
        ("claims-fcorr-ahead", {"claims": {"FCorr": {"Gini": own}, FT: {"Gini": LEARNT}}}, verdict)
        for own, verdict in (
            ([0.41, 0.35, 0.45, 0.38, 0.41], HOLDS),
            ([0.40, 0.15, 0.45, 0.18, 0.41], FAILS),  # better in the mean, and not told
        )
    ),
    *(
        ("claims-ffn-constant", {"claims": {"FFN": {"Gini": ginis}}}, verdict)
        for ginis, verdict in (
            (CONSTANT, HOLDS),
            ([0.0, 0.0, 0.0, 0.4, 0.4], IN_PART),
            (SOME, FAILS),
        )
    ),
    *(
        (
            "baf-residual",
            {"baf": {"FCorr": both(0.9), "FCorr + Res": both(own), "LightGBM": both(trees)}},
            verdict,
        )
        for own, trees, verdict in (
            (0.91, 0.91, HOLDS),
            (0.91, 0.95, IN_PART),  # better, and not as good as trees
            (0.90, 0.90, FAILS),  # as good as trees, by no doing of the residual
        )
    ),
    # what CAR costs
    *(
        (
            "baf-drop",
            {"baf": {FT: both(0.9), FTC: both(ft), "FCorr": both(0.9), CAR: both(own)}},
            verdict,
        )
        for ft, own, verdict in ((0.88, 0.88, HOLDS), (NOISY, 0.88, IN_PART), (NOISY, 0.91, FAILS))
    ),
    *(
        (
            "baf-price",
            {"baf": {"FCorr": {"AUROC": 0.9, "AUPRC": 0.2}, CAR: {"AUROC": a, "AUPRC": b}}},
            verdict,
        )
        for a, b, verdict in ((0.896, 0.196, HOLDS), (0.896, 0.15, IN_PART), (0.88, 0.15, FAILS))
    ),
    *(
        ("adult-price", {"adult": {"FCorr": both(0.9), CAR: both(value)}}, verdict)
        for value, verdict in ((0.89, HOLDS), (NOISY, FAILS), (0.92, FAILS))
    ),
    *(
        ("claims-price", {"claims": {"FCorr": {"Gini": LEARNT}, CAR: {"Gini": ginis}}}, verdict)
        for ginis, verdict in (
            ([0.27, 0.22, 0.32, 0.25, 0.28], HOLDS),
            ([0.24, 0.19, 0.29, 0.22, 0.25], FAILS),
            (SOME, FAILS),
            (CONSTANT, FAILS),
        )
    ),
    # CAR on FT-Transformer
    *(
        (
            f"{name}-ft-car",
            {name: {FT: same(SEVEN, [0.10, 0.10, 0.11, 0.09, 0.10]), FTC: with_car}},
            verdict,
        )
        for name in FRAUD_AND_ADULT
        for with_car, verdict in (
            (same(SEVEN, [0.06, 0.05, 0.06, 0.05, 0.06]), HOLDS),  # less, and some is left
            (same(SEVEN, [0.09, 0.10, 0.11, 0.10, 0.10]), FAILS),  # nothing taken: what is left…
            (same(SEVEN, 0.0), IN_PART),
            (same(SEVEN, 0.10, DPD=0.05), IN_PART),  # one metric of seven
        )
    ),
    *(
        ("claims-ft-flips", {"claims": {FT: amounts(PLAIN_AMOUNTS), FTC: amounts(left)}}, verdict)
        for left, verdict in (
            ([70.0, 14.0, 24.0, 40.0, 43.0], HOLDS),
            (0.01, IN_PART),  # lowered, and nothing left
            ([700.0, 150.0, 200.0, 410.0, 437.0], FAILS),
        )
    ),
    # groups
    *(
        (
            "baf-groups",
            {"baf": {"FCorr": same(GROUPS, 0.08, **errors()), CAR: same(GROUPS, gap, **rates)}},
            verdict,
        )
        for gap, rates, verdict in (
            (0.05, errors(), HOLDS),
            (0.05, errors(careful=True), FAILS),  # of fewer positive decisions it is no gain
            (0.09, errors(), FAILS),
        )
    ),
    *(
        (
            "removal-groups",
            at(
                FRAUD_AND_ADULT,
                {CAR: same(GROUPS, 0.05, **rates), REM: same(GROUPS, 0.08, **errors())},
            ),
            verdict,
        )
        for rates, verdict in ((errors(), HOLDS), (errors(careful=True), FAILS))
    ),
    *(
        (
            f"claims-groups-{name}",
            {
                "claims": {
                    model: {"Gini": LEARNT, "DPD": 200.0},
                    f"{model} + CAR": {"Gini": ginis, "DPD": with_car},
                }
            },
            verdict,
        )
        for name, model in (("fcorr", "FCorr"), ("ft", FT))
        for ginis, with_car, verdict in (
            (LEARNT, 100.0, HOLDS),
            (LEARNT, 300.0, FAILS),
            (SOME, 100.0, HOLDS),
            ([0.3, 0.0, 0.0, 0.3, 0.3], 100.0, NOT_TESTABLE),  # three seeds cannot tell
        )
    ),
    # removal
    *(
        ("removal-accuracy", at(FRAUD_AND_ADULT, {CAR: both(car), REM: both(0.90)}), verdict)
        for car, verdict in ((0.92, HOLDS), (0.88, FAILS), (NOISY, FAILS))
    ),
    *(
        (
            "removal-costs",
            {
                "baf": {"FCorr": {"AUROC": 0.9}, REM: {"AUROC": 0.9}},
                "fremtpl2": {"FCorr": {"Gini": 0.32}, REM: {"Gini": on_motor}},
            },
            verdict,
        )
        for on_motor, verdict in ((0.30, IN_PART), (0.32, FAILS))
    ),
    ("removal-flips", {"baf": {REM: {"largest change": 0.0}}}, FAILS),
    ("removal-flips", {"baf": {REM: {"largest change": 0.2}}}, HOLDS),
    # the method
    *(
        (
            "residual-breaks",
            at(
                FRAUD_AND_ADULT,
                {
                    CAR: {"AvgIF": 0.0, "largest change": 0.0},
                    "FCorr + Res + CAR": {"AvgIF": flips, "largest change": 0.1},
                },
            ),
            verdict,
        )
        for flips, verdict in ((1e-6, FAILS), ([0.05, 0, 0, 0, 0], IN_PART), (0.05, HOLDS))
    ),
    *(
        ("lambda-by-logarithm", at(("synthetic", "baf", "adult"), {CAR: {"AvgIF": flips}}), verdict)
        for flips, verdict in (
            ([1e-6, 1e-6, 1e-6, 1e-6, 9e-4], HOLDS),  # generally
            ([1e-6, 1e-6, 1e-6, 9e-4, 9e-4], IN_PART),
            ([1e-6, 1e-6, 9e-4, 9e-4, 9e-4], FAILS),
        )
    ),
    # ours
    ("ours-collapse", {"baf": {"FCorr + Res + CAR, collapsed": {"largest change": 0.0}}}, HOLDS),
    ("ours-collapse", {"baf": {"FCorr + Res + CAR, collapsed": {"largest change": 1e-12}}}, FAILS),
    *(
        (
            "ours-exact",
            at(
                FRAUD_AND_ADULT,
                {
                    "FCorr, defaults": {"AUROC": auroc, "largest change": change},
                    CAR: {"AUROC": 0.9},
                },
            ),
            verdict,
        )
        for auroc, change, verdict in ((0.91, 0.0, HOLDS), (0.91, 1e-12, FAILS), (0.89, 0.0, FAILS))
    ),
    *(
        (
            "ours-adult",
            {"adult": same((CAR, "FCorr, splines + CAR"), {"AUROC": auroc, "AvgIF": flips})},
            verdict,
        )
        for auroc, flips, verdict in ((0.91, 1e-5, HOLDS), (0.91, 2e-4, FAILS), (0.89, 1e-5, FAILS))
    ),
    *(
        (
            f"ours-{table}",
            {
                table: {
                    "FCorr": {"AvgIF": 0.12, "deviance": 0.450},
                    CAR: {"AvgIF": with_car, "deviance": deviance},
                    REM: {"AvgIF": 0.0, "deviance": 0.454},
                }
            },
            verdict,
        )
        for table in ("bemtpl97", "fremtpl2")
        for with_car, deviance, verdict in (
            (1e-6, 0.451, HOLDS),
            (1e-6, 0.459, FAILS),
            ([1e-6, 1e-6, 0.09, 1e-6, 1e-6], 0.451, IN_PART),
            (0.09, 0.451, FAILS),
        )
    ),
]


@pytest.fixture
def records_of(make_fits):
    """Make records of models at places; on training rows they have the same metrics."""

    def make(places, **shared):
        records = {}
        for place, models in places.items():
            experiment = "motor" if place in ("bemtpl97", "fremtpl2") else place
            shared = {"on_train": True, "training": {"epochs": 3}} | shared
            made = make_fits(experiment, models, COLUMNS[place], table=place, **shared)
            records.setdefault(experiment, []).extend(made[experiment])
        return records

    return make


@pytest.mark.parametrize(("name", "places", "expected"), CASES, ids=lambda v: str(v)[:24])
def test_verdicts(records_of, name, places, expected):
    assert CHECKS[name](Results(records_of(places))).verdict is expected


@pytest.mark.parametrize(("own", "expected"), [(10, HOLDS), (200, IN_PART)])  # it is larger still
def test_size_does_not_help(records_of, own, expected):
    models = {"FCorr": both(0.92), "TabTransformer": both(0.90)}
    records = records_of({"baf": models})
    for record in records["baf"]:
        record["parameters"] = 100 if record["model"] == "TabTransformer" else own
    assert CHECKS["baf-size"](Results(records)).verdict is expected


@pytest.mark.parametrize(("ratio", "expected"), [(12.0, HOLDS), (40.0, FAILS)])
def test_rule_as_printed_overflows(records_of, ratio, expected):
    records = records_of({"baf": {CAR: {}}}, training={"car_ratio": ratio})
    assert CHECKS["lambda-as-printed"](Results(records)).verdict is expected


@pytest.mark.parametrize(
    ("of_ft", "on_motor", "expected"),
    [
        (0.06, 1e-7, HOLDS),
        (1e-6, 1e-7, IN_PART),
        (0.06, [1e-7, 1e-7, 0.09, 1e-7, 1e-7], IN_PART),  # one fit whose attention lies
    ],
)
def test_invariant_attention_is_enough_for_fcorr_alone(records_of, of_ft, on_motor, expected):
    models = {CAR: {"AvgIF": 1e-7}, FTC: {"AvgIF": of_ft}}
    motor = {"FCorr": {"AvgIF": 0.12}, CAR: {"AvgIF": on_motor}}
    places = {"baf": models, "adult": models, "bemtpl97": motor}
    records = records_of(places, training={"last_car": 1e-12})
    assert CHECKS["attention-is-enough"](Results(records)).verdict is expected


@pytest.mark.parametrize(
    ("trees", "on_motor", "expected"),
    [(0.5, 0.35, HOLDS), (0.2, 0.35, IN_PART), (0.5, 0.30, IN_PART), (0.2, 0.30, FAILS)],
)
def test_trees_lead(records_of, make_fit, trees, on_motor, expected):
    models = {"LightGBM": {"Gini": trees}, "FCorr": {"Gini": LEARNT}, FT: {"Gini": LEARNT}}
    motor = {"FCorr": {"Gini": [0.32, 0.33, 0.32, 0.31, 0.32]}}
    records = records_of({"claims": models, "fremtpl2": motor})
    # Of trees on a fixed table there is one fit.
    one = {"columns": ["DrivAge"], "metrics": {"Gini": on_motor}, "table": "fremtpl2"}
    records["motor"].append(make_fit("motor", "LightGBM", 0, **one))
    found = CHECKS["claims-trees-lead"](Results(records))
    assert found.verdict is expected
    assert f"fremtpl2 LightGBM {on_motor:.3f}" in found.evidence


def test_evidence_tells_of_constants_and_of_what_was_left_out(records_of):
    models = {"FCorr": {"Gini": LEARNT}, CAR: {"Gini": SOME}}
    found = CHECKS["claims-price"](Results(records_of({"claims": models})))
    assert "1 of 5 fits end at a constant; at the other seeds ≈ +0.0000" in found.evidence
    ft = {FT: amounts(400.0), FTC: amounts([0.2, 40.0, 41.0, 40.0, 40.0])}
    records = records_of({"claims": ft})
    for record in records["claims"]:
        if record["model"] == FTC and record["seed"] == 0:
            record["warnings"] = [f"{EQUAL_PREDICTIONS}, got outputs with ..."]
    found = CHECKS["claims-ft-flips"](Results(records))
    assert found.verdict is HOLDS
    assert "At the 4 of 5 seeds" in found.evidence
    assert "40.25 with CAR" in found.evidence


# ------------------------------------------------------------ λ and layers


def by_weight(make_fit, values):
    """Make fits at each λ; a metric has a list over λ of lists over seeds."""
    weights = read_config("controllability")["vary"]["car"]
    return {
        "controllability": [
            make_fit(
                "controllability",
                CAR,
                seed,
                columns=["customer_age"],
                metrics={name: of[i][seed] for name, of in values.items()},
                point={"car": weight},
            )
            for i, weight in enumerate(weights)
            for seed in range(5)
        ]
    }


STEADY = [[0.09 - 0.01 * i + 0.002 * (seed - 2) for seed in range(5)] for i in range(9)]


def varying(spread, order):
    levels = [0.09 - 0.01 * i for i in order]
    return [[level * (1 + spread * (seed - 2) / 2) for seed in range(5)] for level in levels]


def gone_after(n):
    return [of if i < n else [0.0] * 5 for i, of in enumerate(STEADY)]


@pytest.mark.parametrize(
    ("name", "flips", "gap", "expected"),
    [
        ("lambda-steady", STEADY, STEADY, HOLDS),
        ("lambda-steady", STEADY[::-1], STEADY[::-1], FAILS),
        *(
            ("lambda-small", [[share] * 5 for share in shares], STEADY, verdict)
            for shares, verdict in (
                ([1, 0.9, 0.7, 0.1, 0.01, 0, 0, 0, 0], HOLDS),
                ([1, 0.4, 0.3, 0.1, 0.01, 0, 0, 0, 0], IN_PART),
                ([1, 0.9, 0.9, 1.0, 0.9, 0.9, 1.0, 0.8, 0.9], IN_PART),
                ([1, 0.4, 0.3, 0.5, 0.4, 0.6, 0.3, 0.4, 0.5], FAILS),
            )
        ),
        ("lambda-f1", STEADY, varying(0.9, [0, 2, 1, 3, 4, 5, 6, 7, 8]), HOLDS),
        ("lambda-f1", STEADY, varying(0.9, range(9)), IN_PART),  # varies more, falls as steadily
        ("lambda-f1", STEADY, varying(0.1, [0, 2, 1, 3, 4, 5, 6, 7, 8]), IN_PART),
        ("lambda-f1", STEADY, varying(0.01, range(9)), FAILS),
        ("lambda-f1", STEADY, gone_after(4), FAILS),  # what is gone is not hard to control
        ("lambda-f1", STEADY, gone_after(2), NOT_TESTABLE),
    ],
)
def test_lambda(make_fit, name, flips, gap, expected):
    records = by_weight(make_fit, dict.fromkeys(FLIPS, flips) | {"F1 gap": gap})
    assert CHECKS[name](Results(records)).verdict is expected


@pytest.mark.parametrize(
    ("name", "aurocs", "flips", "expected"),
    [
        ("layers-flips", (0.9, [0.9, 0.9, 0.9, 0.52, 0.9]), [0, 0, 0, 9.0, 0], HOLDS),  # learnt
        ("layers-flips", (0.9, 0.9), [0, 0, 0, 9.0, 0], IN_PART),
        ("layers-flips", (0.9, 0.9), 1e-4, FAILS),
        ("layers-worse", (0.88, 0.87), 0.0, HOLDS),
        ("layers-worse", (0.90, 0.87), 0.0, IN_PART),
        ("layers-worse", (0.90, [0.8, 0.89, 0.89, 0.5, 0.89]), 0.0, FAILS),  # by one fit alone
    ],
)
def test_layers(make_fits, name, aurocs, flips, expected):
    records = {"multilayer": []}
    for depth, auroc in zip((1, 3, 5), (0.9, *aurocs), strict=True):
        models = {CAR: {"AUROC": auroc, **dict.fromkeys(FLIPS, flips)}}
        made = make_fits("multilayer", models, ["customer_age"], point={"n_layers": depth})
        records["multilayer"] += made["multilayer"]
    assert CHECKS[name](Results(records)).verdict is expected


# ------------------------------------------------------------ attention

NAMES = [f"x{i}" for i in range(31)]
RANKS = {name: 31.0 - i for i, name in enumerate(NAMES)}  # x0 is the most significant
REVERSED = {name: -value for name, value in RANKS.items()}


def put(feature, rank):
    """Rank a feature so among the others."""
    names = [name for name in NAMES if name != feature][:30]
    names.insert(rank - 1, feature)
    return {name: 31.0 - i for i, name in enumerate(names)}


def puts(feature, *ranks):
    return [put(feature, rank) for rank in ranks]


def swapped(n_first):
    """Let the first features be the first, all else reversed: beyond that nothing agrees."""
    names = [*reversed(NAMES[:n_first]), *reversed(NAMES[n_first:])]
    return {name: 31.0 - i for i, name in enumerate(names)}


RISING = ("current_address_months_count", "has_other_cards")
FALLING = ("velocity_4w", "prev_address_months_count")


def ranked(*names):
    return {name: 9.0 - i for i, name in enumerate(names)}


# A little noise between seeds, by which differences are judged.
OWN = puts("x0", 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("name", "models", "expected"),
    [
        ("baf-agrees", {"FCorr": RANKS, "LightGBM": RANKS}, HOLDS),
        ("baf-agrees", {"FCorr": RANKS, "LightGBM": swapped(10)}, IN_PART),
        ("baf-agrees", {"FCorr": RANKS, "LightGBM": REVERSED}, FAILS),
        ("claims-agrees", {"FCorr": RANKS, "LightGBM": swapped(15)}, HOLDS),
        ("claims-agrees", {"FCorr": RANKS, "LightGBM": RANKS}, IN_PART),  # these do not differ
        ("claims-agrees", {"FCorr": RANKS, "LightGBM": REVERSED}, IN_PART),  # and share none
        ("baf-ft-agrees", {"FCorr": OWN, FT: RANKS, "LightGBM": RANKS}, HOLDS),
        ("baf-ft-agrees", {"FCorr": OWN, FT: REVERSED, "LightGBM": RANKS}, FAILS),
        ("baf-ft-shares", {FT: RANKS, "FCorr": RANKS, "LightGBM": REVERSED}, HOLDS),
        ("baf-ft-shares", {FT: RANKS, "FCorr": REVERSED, "LightGBM": REVERSED}, FAILS),
        ("baf-attends", {"FCorr": puts("customer_age", 1, 3, 10, 2, 4)}, HOLDS),
        ("baf-attends", {"FCorr": puts("customer_age", 1, 3, 10, 30, 25)}, IN_PART),
        ("baf-attends", {"FCorr": puts("customer_age", 11, 3, 20, 30, 25)}, FAILS),
        *(
            (
                "baf-attention-leaves",
                {"FCorr": put("customer_age", 5), CAR: puts("customer_age", *ranks)},
                verdict,
            )
            for ranks, verdict in (
                ((9, 9, 9, 9, 9), HOLDS),
                ((9, 9, 9, 1, 1), IN_PART),
                ((1, 1, 1, 1, 1), FAILS),
            )
        ),
        *(
            ("baf-attention-moves", {"FCorr": ranked(*a, *b), CAR: ranked(*b, *a)}, verdict)
            for a, b, verdict in ((FALLING, RISING, HOLDS), (RISING, FALLING, FAILS))
        ),
        *(
            (
                "claims-coverage",
                {"FCorr": put("CovgLimit", own), "LightGBM": put("CovgLimit", trees)},
                verdict,
            )
            for own, trees, verdict in (
                (1, 1, HOLDS),
                (7, 1, FAILS),
                (1, 7, NOT_TESTABLE),  # there is nothing to agree with
            )
        ),
    ],
    ids=lambda v: str(v)[:24],
)
def test_significances(make_fit, name, models, expected):
    records = []
    for model, found in models.items():
        kinds = ("split", "gain") if model == "LightGBM" else ("significance",)
        for seed in range(5):
            of_seed = found[seed] if isinstance(found, list) else found
            options = {"columns": ["customer_age"], "metrics": {}}
            significance = dict.fromkeys(kinds, of_seed)
            experiment = name.split("-")[0]
            records.append(make_fit(experiment, model, seed, significance=significance, **options))
    assert CHECKS[name](Results({experiment: records})).verdict is expected
    for record in records:
        record["data"] = record["data"] | {"stands_in_for": "Bank Account Fraud"}
    if name == "baf-attention-moves":  # is not asked of a stand-in
        assert CHECKS[name](Results({experiment: records})).verdict is NOT_TESTABLE


SHOWN = [[0.6, 0.4, -0.2], [0.4, 1.3, -0.3], [-0.2, -0.3, 2.5]]
HIDDEN = [[3.0, 0.1, 0.2], [0.1, 0.4, 0.3], [0.2, 0.3, 0.2]]
FADED = [[0.1, 0.01, -0.1], [0.01, 0.3, -0.1], [-0.1, -0.1, 0.5]]


@pytest.mark.parametrize(
    ("name", "plain", "other"),
    [
        ("synthetic-matrix", SHOWN, HIDDEN),
        ("synthetic-smaller", FADED, SHOWN),
        ("synthetic-suppressed", FADED, SHOWN),
    ],
)
@pytest.mark.parametrize(("n", "expected"), [(4, HOLDS), (3, IN_PART), (2, FAILS)])
def test_matrices(make_fits, name, plain, other, n, expected):
    of_claim = [plain] * n + [other] * (5 - n)
    matrices = of_claim if name == "synthetic-matrix" else [SHOWN] * 5 + of_claim
    models = {model: {} for model in ["FCorr", CAR][: len(matrices) // 5]}
    records = make_fits("synthetic", models, ["X1"])
    for record, matrix in zip(records["synthetic"], matrices, strict=True):
        record["attention"] = {"features": ["X1", "X2", "X3"], "first": matrix}
    assert CHECKS[name](Results(records)).verdict is expected


# ------------------------------------------------------------ costs


def measured(model, table, measure, **cost):
    config = {"measure": measure, "data": table}
    return {"experiment": "complexity", "model": model, "seed": 0, "config": config, "cost": cost}


def epochs(few, many):
    """Make measurements of epochs: by definition and in closed form, in augmented ones."""
    forms = (AUGMENTED, BY_DEFINITION, CLOSED_FORM)
    return [
        measured(
            CAR, table, "epochs", seconds_per_epoch=dict(zip(forms, (2, 2 * a, 2 * b), strict=True))
        )
        for table, passes in (("bank_fraud", few), ("claims", many))
        for a, b in passes
    ]


def sizes(**of_models):
    names = {"fcorr": "FCorr", "car": CAR, "ft": FT}
    return [
        measured(names[name], table, "size", **cost)
        for table in ("bank_fraud", "claims")
        for name, cost in of_models.items()
    ]


def size(n, head=10):
    return {"parameters": n, "head_parameters": head}


FEW = [(2.5, 2.0), (2.6, 2.2)]


@pytest.mark.parametrize(
    ("name", "records", "expected"),
    [
        ("augmentation-faster", epochs([(2.5, 1.5)], [(2.5, 1.5)]), HOLDS),
        ("augmentation-faster", epochs([(2.5, 0.9)], [(2.5, 0.9)]), IN_PART),
        ("augmentation-faster", epochs([(0.8, 0.9)], [(0.8, 0.9)]), FAILS),
        ("augmentation-dimension", epochs(FEW, [(180, 4), (181, 4)]), HOLDS),
        ("augmentation-dimension", epochs(FEW, [(180, 2.1), (181, 1.9)]), IN_PART),  # noise
        ("augmentation-dimension", epochs(FEW, [(2, 1), (2, 1)]), FAILS),
        ("fewer-parameters", sizes(fcorr=size(9_000), ft=size(20_000)), HOLDS),
        ("fewer-parameters", sizes(fcorr=size(11_000), ft=size(20_000)), IN_PART),
        ("fewer-parameters", sizes(fcorr=size(19_000), ft=size(20_000)), FAILS),
        ("ft-attention-parameters", sizes(ft=size(20_000, 20)), HOLDS),
        ("ft-attention-parameters", sizes(ft=size(20_000, 33)), FAILS),
        ("parameters-bank_fraud", sizes(fcorr=size(11_064, 10_433)), HOLDS),
        ("parameters-bank_fraud", sizes(fcorr=size(11_064, 10_000)), IN_PART),
        ("parameters-claims", sizes(fcorr=size(21_767, 10_145)), HOLDS),
        ("parameters-claims", sizes(fcorr=size(21_700, 10_000)), FAILS),
        ("car-no-parameters", sizes(fcorr=size(11_064), car=size(11_064)), HOLDS),
        ("car-no-parameters", sizes(fcorr=size(11_064), car=size(11_100)), FAILS),
        *(
            (
                f"memory-{table}",
                sizes(
                    fcorr={"kept_megabytes": own},
                    car={"kept_megabytes": car},
                    ft={"kept_megabytes": 5.0},
                ),
                verdict,
            )
            for table in ("bank_fraud", "claims")
            for own, car, verdict in ((0.2, 0.4, HOLDS), (0.2, 2.0, IN_PART), (1.0, 2.0, FAILS))
        ),
    ],
    ids=lambda v: str(v)[:24],
)
def test_costs(name, records, expected):
    assert CHECKS[name](Results({"complexity": records})).verdict is expected
