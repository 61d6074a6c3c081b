"""Verdicts on the paper's claims, from records made up so that every rule comes out either way.

What a rule makes of the real records is held by the committed report.
"""

import math

import pytest

from fcorr.estimators.base import EQUAL_PREDICTIONS
from paper.claims import CHECKS, Verdict, check_claims
from paper.costs import AUGMENTED, BY_DEFINITION, CLOSED_FORM
from paper.experiments import read_config
from paper.results import Difference, NotRunError, Results, compare, has_learnt

HOLDS, IN_PART, FAILS = Verdict.HOLDS, Verdict.IN_PART, Verdict.FAILS
NOT_TESTABLE = Verdict.NOT_TESTABLE
FLIPS = ("AvgIF", "F1 gap", "AUROC gap", "AUPRC gap")
GROUPS = ("DPD", "EqOdd", "EqOpp")
COLUMNS = {"synthetic": ["X1"], "adult": ["race", "sex"], "claims": ["credit_score"]}
COLUMNS |= {"bemtpl97": ["sex"], "fremtpl2": ["DrivAge"]}
FIELDS = ("on_train", "point", "parameters", "training", "attention", "significance", "warnings")


@pytest.fixture
def make_results(make_fit):
    """Make results of models at places, of five seeds each.

    A model has metrics and fields of its record, each of them one value or a list over seeds. One
    that is there several times, at points of what is varied, stands in a list.
    """

    def make(places, **fields):
        records = {"complexity": places.pop("complexity", [])}
        for place, models in places.items():
            experiment = "motor" if place in ("bemtpl97", "fremtpl2") else place
            where = {"columns": COLUMNS.get(place, ["customer_age"]), "table": place, **fields}
            for model, values in models.items() if isinstance(models, dict) else models:
                for seed in range(5):
                    found = {k: v[seed] if isinstance(v, list) else v for k, v in values.items()}
                    own = {k: found.pop(k) for k in FIELDS if k in found}
                    record = make_fit(experiment, model, seed, metrics=found, **where, **own)
                    records.setdefault(experiment, []).append(record)
        return Results(records)

    return make


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
    verdicts = {claim.finding.verdict for claim in check_claims({})}
    assert verdicts == {Verdict.NOT_RUN, NOT_TESTABLE}  # without records nothing is claimed


# ------------------------------------------------------------ questions to the results


def test_a_difference_counts_by_students_test():
    assert Difference(0.01, 0.0035, 5).sign == 1  # 2.86 standard errors; 2.78 are needed
    assert Difference(-0.01, 0.0035, 5).sign == -1
    assert Difference(0.01, 0.0038, 5).sign == 0
    assert Difference(0.01, math.nan, 1).sign == 0
    found = compare({0: 0.70, 1: 0.80, 2: 0.75, 9: 1.0}, {0: 0.69, 1: 0.79, 2: 0.74, 7: 0.0})
    assert (found.mean, found.error, found.n) == (pytest.approx(0.01), pytest.approx(0), 3)
    with pytest.raises(NotRunError):
        compare({0: 1.0}, {1: 1.0})


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


# ------------------------------------------------------------ rules

FT, FTC, CAR, REM = "FT-Transformer", "FT-Transformer + CAR", "FCorr + CAR", "FCorr + Rem"
RES, COLLAPSED = "FCorr + Res", "FCorr + Res + CAR, collapsed"
LEARNT = [0.30, 0.25, 0.35, 0.28, 0.31]  # Gini
SOME = [0.30, 0.25, 0.01, 0.28, 0.31]  # the third fit is at a constant
CONSTANT = [0.03, 0.00, 0.09, -0.01, 0.02]
NOISY = [0.89, 0.91, 0.90, 0.91, 0.89]  # about .9, not told from it
DONE = {"training": {"last_car": 1e-12}}
WEIGHTS = read_config("controllability")["vary"]["car"]


def same(names, value, **others):
    return dict.fromkeys(names, value) | others


def both(value):
    return same(("AUROC", "AUPRC", "F1"), value)


def on_all(models):
    return {"baf": models, "adult": models}


def amounts(value, gini=LEARNT):
    return same(("AvgIF", "RMSE gap", "MAE gap"), value, Gini=gini)


def groups(value, *, careful=False):
    """Give gaps and error rates; a careful model decides four times fewer rows positive."""
    accuracy, fpr, fnr = (0.92, 0.005, 0.8) if careful else (0.95, 0.04, 0.2)
    return same(GROUPS, value, Accuracy=accuracy, FPR=fpr, FNR=fnr, on_train=True)


def over_lambda(flips, gap=None):
    """Give fits at each λ; a metric has a list over λ of what seeds come to."""
    points = zip(WEIGHTS, flips, gap or flips, strict=True)
    fits = [
        (CAR, same(FLIPS, a, **{"F1 gap": b}, point={"car": weight})) for weight, a, b in points
    ]
    return {"controllability": fits}


def layers(aurocs, flips):
    values = zip((1, 3, 5), (0.9, *aurocs), strict=True)
    return {
        "multilayer": [(CAR, same(FLIPS, flips, AUROC=a, point={"n_layers": n})) for n, a in values]
    }


STEADY = [[0.09 - 0.01 * i + 0.002 * (seed - 2) for seed in range(5)] for i in range(9)]
UNSTEADY = (0, 2, 1, 3, 4, 5, 6, 7, 8)


def varying(spread, order):
    levels = [0.09 - 0.01 * i for i in order]
    return [[level * (1 + spread * (seed - 2) / 2) for seed in range(5)] for level in levels]


def gone_after(n):
    return [of if i < n else [0.0] * 5 for i, of in enumerate(STEADY)]


NAMES = [f"x{i}" for i in range(31)]


def ranked(*names):
    return {name: float(len(names) - i) for i, name in enumerate(names)}


def swapped(n_first):
    """Let the first features be the first, all else reversed: beyond that nothing agrees."""
    return ranked(*reversed(NAMES[:n_first]), *reversed(NAMES[n_first:]))


def put(feature, *ranks):
    """Rank a feature so among the others, in each fit."""
    others = [name for name in NAMES if name != feature][:30]
    return [ranked(*others[: rank - 1], feature, *others[rank - 1 :]) for rank in ranks]


RANKS, REVERSED = ranked(*NAMES), ranked(*reversed(NAMES))
OWN = put("x0", 1, 2, 3, 4, 5)  # a little noise between seeds, by which differences are judged
RISING = ("current_address_months_count", "has_other_cards")
FALLING = ("velocity_4w", "prev_address_months_count")


def significant(experiment, models):
    found = {}
    for model, ranks in models.items():
        kinds = ("split", "gain") if model == "LightGBM" else ("significance",)
        by_seed = ranks if isinstance(ranks, list) else [ranks] * 5
        found[model] = {"significance": [dict.fromkeys(kinds, of) for of in by_seed]}
    return {experiment: found}


def attentive(**models):
    known = {"features": ["X1", "X2", "X3"]}
    names = {"own": "FCorr", "car": CAR}
    return {
        "synthetic": {
            names[name]: {"attention": [{**known, "first": matrix} for matrix in by_seed]}
            for name, by_seed in models.items()
        }
    }


SHOWN = [[0.6, 0.4, -0.2], [0.4, 1.3, -0.3], [-0.2, -0.3, 2.5]]
HIDDEN = [[3.0, 0.1, 0.2], [0.1, 0.4, 0.3], [0.2, 0.3, 0.2]]
FADED = [[0.1, 0.01, -0.1], [0.01, 0.3, -0.1], [-0.1, -0.1, 0.5]]


TABLES = ("bank_fraud", "claims")


def costs(model, table, measure, **cost):
    known = {"experiment": "complexity", "model": model, "seed": 0, "cost": cost}
    return {**known, "config": {"data": table, "measure": measure}}


def sizes(field, **of_models):
    """Give what was measured of models, the same on both tables."""
    names = {"own": "FCorr", "car": CAR, "ft": FT}
    every = [(table, names[name], n) for table in TABLES for name, n in of_models.items()]
    measured = [
        costs(model, table, "size", **{"parameters": 20_000, "head_parameters": 10, field: n})
        for table, model, n in every
    ]
    return {"complexity": measured}


def epochs(*of_tables):
    """Give epochs by definition and in closed form, in augmented ones, of each table."""
    passes = [(t, *of) for t, several in zip(TABLES, of_tables, strict=True) for of in several]
    seconds = [(t, {AUGMENTED: 2, BY_DEFINITION: 2 * a, CLOSED_FORM: 2 * b}) for t, a, b in passes]
    return {"complexity": [costs(CAR, t, "epochs", seconds_per_epoch=s) for t, s in seconds]}


# For each rule: a claim that it judges, records of it, and the verdicts that values lead to.
RULES = {
    "claims-flips": (
        lambda own, gini, left: {"claims": {"FCorr": amounts(90.0, own), CAR: amounts(left, gini)}},
        (LEARNT, LEARNT, 0.004, HOLDS),
        (LEARNT, LEARNT, 0.006, FAILS),
        (LEARNT, LEARNT, [0.0, 0.0, 0.02, 0.0, 0.0], IN_PART),
        # What a constant shows, for better or worse, does not count.
        (LEARNT, SOME, [9.0, 9.0, 0.0, 9.0, 9.0], FAILS),
        (SOME, LEARNT, [0.0, 0.0, 9.0, 0.0, 0.0], HOLDS),
        (LEARNT, CONSTANT, 0.0, NOT_TESTABLE),
        (CONSTANT, LEARNT, 0.0, NOT_TESTABLE),
    ),
    "baf-size": (
        lambda n: {"baf": {"FCorr": both(0.92) | {"parameters": n}, "TabTransformer": both(0.9)}},
        *((10, HOLDS), (2_000, IN_PART)),  # it is larger still
    ),
    "baf-drop": (
        lambda ft, own: {"baf": {FT: both(0.9), FTC: both(ft), "FCorr": both(0.9), CAR: both(own)}},
        *((0.88, 0.88, HOLDS), (NOISY, 0.88, IN_PART), (NOISY, 0.91, FAILS)),
    ),
    "claims-price": (
        lambda ginis: {"claims": {"FCorr": {"Gini": LEARNT}, CAR: {"Gini": ginis}}},
        ([0.27, 0.22, 0.32, 0.25, 0.28], HOLDS),
        ([0.24, 0.19, 0.29, 0.22, 0.25], FAILS),
        (SOME, FAILS),
    ),
    "baf-residual": (
        lambda own, trees: {"baf": {"FCorr": both(0.9), RES: both(own), "LightGBM": both(trees)}},
        (0.91, 0.91, HOLDS),
        (0.91, 0.95, IN_PART),  # better, and not as good as trees
        (0.90, 0.90, FAILS),  # as good as trees, by no doing of the residual
    ),
    "claims-ffn-constant": (
        lambda ginis: {"claims": {"FFN": {"Gini": ginis}}},
        *((CONSTANT, HOLDS), ([0.0, 0.0, 0.0, 0.4, 0.4], IN_PART), (SOME, FAILS)),
    ),
    "claims-ft-flips": (
        lambda left: {
            "claims": {FT: amounts([720.0, 142.0, 238.0, 400.0, 430.0]), FTC: amounts(left)}
        },
        ([70.0, 14.0, 24.0, 40.0, 43.0], HOLDS),
        (0.01, IN_PART),  # lowered, and nothing left
        ([700.0, 150.0, 200.0, 410.0, 437.0], FAILS),
    ),
    "baf-groups": (
        lambda car: {"baf": {"FCorr": groups(0.08), CAR: car}},
        (groups(0.05), HOLDS),
        (groups(0.05, careful=True), FAILS),  # of fewer positive decisions it is no gain
        (groups(0.09), FAILS),
    ),
    "claims-groups-fcorr": (
        lambda ginis, dpd: {
            "claims": {"FCorr": {"Gini": LEARNT, "DPD": 200.0}, CAR: {"Gini": ginis, "DPD": dpd}}
        },
        (LEARNT, 100.0, HOLDS),
        (LEARNT, 300.0, FAILS),
        (SOME, 100.0, HOLDS),
        ([0.3, 0.0, 0.0, 0.3, 0.3], 100.0, NOT_TESTABLE),  # three seeds cannot tell
    ),
    "claims-trees-lead": (
        lambda trees, on_motor: {
            "claims": {
                "LightGBM": {"Gini": trees},
                "FCorr": {"Gini": LEARNT},
                FT: {"Gini": LEARNT},
            },
            "fremtpl2": {
                "FCorr": {"Gini": [0.32, 0.33, 0.32, 0.31, 0.32]},
                # Of trees on a fixed table there is one fit.
                "LightGBM": {"Gini": [on_motor, None, None, None, None]},
            },
        },
        *((0.5, 0.35, HOLDS), (0.2, 0.35, IN_PART), (0.5, 0.30, IN_PART), (0.2, 0.30, FAILS)),
    ),
    "removal-accuracy": (
        lambda car: on_all({CAR: both(car), REM: both(0.90)}),
        *((0.92, HOLDS), (0.88, FAILS), (NOISY, FAILS)),
    ),
    "ours-collapse": (
        lambda change: {"baf": {COLLAPSED: {"largest change": change, "on_train": True}}},
        *((0.0, HOLDS), (1e-12, FAILS)),
    ),
    "residual-breaks": (
        lambda flips: on_all(
            {
                CAR: {"AvgIF": 0.0, "largest change": 0.0},
                "FCorr + Res + CAR": {"AvgIF": flips, "largest change": 0.1},
            }
        ),
        *((0.05, HOLDS), ([0.05, 0, 0, 0, 0], IN_PART), (1e-6, FAILS)),
    ),
    "attention-is-enough": (
        lambda of_ft, on_motor: {
            **on_all({CAR: {"AvgIF": 1e-7, **DONE}, FTC: {"AvgIF": of_ft, **DONE}}),
            "bemtpl97": {"FCorr": {"AvgIF": 0.12, **DONE}, CAR: {"AvgIF": on_motor, **DONE}},
        },
        (0.06, 1e-7, HOLDS),
        (1e-6, 1e-7, IN_PART),
        (0.06, [1e-7, 1e-7, 0.09, 1e-7, 1e-7], IN_PART),  # one fit whose attention lies
    ),
    "lambda-as-printed": (
        lambda ratio: {"baf": {CAR: {"training": {"car_ratio": ratio}}}},
        *((12.0, HOLDS), (40.0, FAILS)),
    ),
    "lambda-by-logarithm": (
        lambda flips: on_all({CAR: {"AvgIF": flips}}),
        ([1e-6, 1e-6, 1e-6, 1e-6, 9e-4], HOLDS),  # generally
        ([1e-6, 1e-6, 1e-6, 9e-4, 9e-4], IN_PART),
        ([1e-6, 1e-6, 9e-4, 9e-4, 9e-4], FAILS),
    ),
    "ours-exact": (
        lambda auroc, change: on_all(
            {"FCorr, defaults": {"AUROC": auroc, "largest change": change}, CAR: {"AUROC": 0.9}}
        ),
        *((0.91, 0.0, HOLDS), (0.91, 1e-12, FAILS), (0.89, 0.0, FAILS)),
    ),
    "ours-adult": (
        lambda auroc, flips: {
            "adult": same((CAR, "FCorr, splines + CAR"), {"AUROC": auroc, "AvgIF": flips})
        },
        *((0.91, 1e-5, HOLDS), (0.91, 2e-4, FAILS), (0.89, 1e-5, FAILS)),
    ),
    "ours-bemtpl97": (
        lambda left, deviance: {
            "bemtpl97": {
                "FCorr": {"AvgIF": 0.12, "deviance": 0.450},
                CAR: {"AvgIF": left, "deviance": deviance},
                REM: {"AvgIF": 0.0, "deviance": 0.454},
            }
        },
        (1e-6, 0.451, HOLDS),
        (1e-6, 0.459, FAILS),
        ([1e-6, 1e-6, 0.09, 1e-6, 1e-6], 0.451, IN_PART),
        (0.09, 0.451, FAILS),
    ),
    "lambda-steady": (over_lambda, (STEADY, HOLDS), (STEADY[::-1], FAILS)),
    "lambda-small": (
        over_lambda,
        ([1, 0.9, 0.7, 0.1, 0.01, 0, 0, 0, 0], HOLDS),
        ([1, 0.4, 0.3, 0.1, 0.01, 0, 0, 0, 0], IN_PART),
        ([1, 0.9, 0.9, 1.0, 0.9, 0.9, 1.0, 0.8, 0.9], IN_PART),
        ([1, 0.4, 0.3, 0.5, 0.4, 0.6, 0.3, 0.4, 0.5], FAILS),
    ),
    "lambda-f1": (
        lambda gap: over_lambda(STEADY, gap),
        (varying(0.9, UNSTEADY), HOLDS),
        (varying(0.9, range(9)), IN_PART),  # varies more, falls as steadily
        (varying(0.1, UNSTEADY), IN_PART),
        (varying(0.01, range(9)), FAILS),
        (gone_after(4), FAILS),  # what is gone is not hard to control
        (gone_after(2), NOT_TESTABLE),
    ),
    "layers-flips": (
        layers,
        ((0.9, [0.9, 0.9, 0.9, 0.52, 0.9]), [0, 0, 0, 9.0, 0], HOLDS),  # where they learnt
        ((0.9, 0.9), [0, 0, 0, 9.0, 0], IN_PART),
        ((0.9, 0.9), 1e-4, FAILS),
    ),
    "layers-worse": (
        lambda *aurocs: layers(aurocs, 0.0),
        *((0.88, 0.87, HOLDS), (0.90, 0.87, IN_PART)),
        (0.90, [0.8, 0.89, 0.89, 0.5, 0.89], FAILS),  # by one fit alone
    ),
    "baf-agrees": (
        lambda trees: significant("baf", {"FCorr": RANKS, "LightGBM": trees}),
        *((RANKS, HOLDS), (swapped(10), IN_PART), (REVERSED, FAILS)),
    ),
    "claims-agrees": (
        lambda trees: significant("claims", {"FCorr": RANKS, "LightGBM": trees}),
        (swapped(15), HOLDS),
        *((RANKS, IN_PART), (REVERSED, IN_PART)),  # these do not differ, those share none
    ),
    "baf-ft-agrees": (
        lambda ft: significant("baf", {"FCorr": OWN, FT: ft, "LightGBM": RANKS}),
        *((RANKS, HOLDS), (REVERSED, FAILS)),
    ),
    "baf-ft-shares": (
        lambda own: significant("baf", {"FCorr": own, FT: RANKS, "LightGBM": REVERSED}),
        *((RANKS, HOLDS), (REVERSED, FAILS)),
    ),
    "baf-attention-leaves": (
        lambda *ranks: significant(
            "baf", {"FCorr": put("customer_age", *[5] * 5), CAR: put("customer_age", *ranks)}
        ),
        *((9, 9, 9, 9, 9, HOLDS), (9, 9, 9, 1, 1, IN_PART), (1, 1, 1, 1, 1, FAILS)),
    ),
    "baf-attention-moves": (
        lambda a, b: significant("baf", {"FCorr": ranked(*a, *b), CAR: ranked(*b, *a)}),
        *((FALLING, RISING, HOLDS), (RISING, FALLING, FAILS)),
    ),
    "claims-coverage": (
        lambda own, trees: significant(
            "claims",
            {"FCorr": put("CovgLimit", *[own] * 5), "LightGBM": put("CovgLimit", *[trees] * 5)},
        ),
        *((1, 1, HOLDS), (7, 1, FAILS), (1, 7, NOT_TESTABLE)),  # nothing to agree with
    ),
    "fewer-parameters": (
        lambda own: sizes("parameters", own=own, ft=20_000),
        *((9_000, HOLDS), (11_000, IN_PART), (19_000, FAILS)),
    ),
    "car-no-parameters": (
        lambda car: sizes("parameters", own=11_064, car=car),
        *((11_064, HOLDS), (11_100, FAILS)),
    ),
    "parameters-bank_fraud": (
        lambda n: sizes("parameters", own=n),
        *((11_064, IN_PART), (11_065, FAILS)),  # the head is not the paper's
    ),
    "ft-attention-parameters": (
        lambda head: sizes("head_parameters", ft=head),
        *((20, HOLDS), (33, FAILS)),
    ),
    "memory-claims": (
        lambda own, car: sizes("kept_megabytes", own=own, car=car, ft=5.0),
        *((0.2, 0.4, HOLDS), (0.2, 2.0, IN_PART), (1.0, 2.0, FAILS)),
    ),
    "augmentation-faster": (
        lambda *of: epochs([of], [of]),
        *((2.5, 1.5, HOLDS), (2.5, 0.9, IN_PART), (0.8, 0.9, FAILS)),
    ),
    "augmentation-dimension": (
        lambda *many: epochs([(2.5, 2.0), (2.6, 2.2)], many),
        *(((180, 4), (181, 4), HOLDS), ((2, 1), (2, 1), FAILS)),
        ((180, 2.1), (181, 1.9), IN_PART),  # noise
    ),
    "synthetic-matrix": (
        lambda n: attentive(own=[SHOWN] * n + [HIDDEN] * (5 - n)),
        *((4, HOLDS), (3, IN_PART), (2, FAILS)),
    ),
    "synthetic-smaller": (
        lambda n: attentive(own=[SHOWN] * 5, car=[FADED] * n + [SHOWN] * (5 - n)),
        *((4, HOLDS), (3, IN_PART), (2, FAILS)),
    ),
}
CASES = [(name, make, *case) for name, (make, *cases) in RULES.items() for case in cases]


@pytest.mark.parametrize(
    ("name", "make", "values", "expected"),
    [(name, make, values, expected) for name, make, *values, expected in CASES],
    ids=[f"{name}-{case[-1]}" for name, _, *case in CASES],
)
def test_verdicts(make_results, name, make, values, expected):
    assert CHECKS[name](make_results(make(*values))).verdict is expected


def test_what_is_not_asked_of_a_stand_in(make_results):
    places = RULES["baf-attention-moves"][0](FALLING, RISING)
    data = {"name": "make_bank_fraud", "stands_in_for": "Bank Account Fraud"}
    found = CHECKS["baf-attention-moves"](make_results(places, data=data))
    assert found.verdict is NOT_TESTABLE


def test_evidence_tells_of_constants_and_of_what_was_left_out(make_results):
    claims = {"FCorr": {"Gini": LEARNT}, CAR: {"Gini": SOME}}
    found = CHECKS["claims-price"](make_results({"claims": claims}))
    assert "1 of 5 fits end at a constant; at the other seeds ≈ +0.0000" in found.evidence
    with_car = amounts([0.2, 40.0, 41.0, 40.0, 40.0])
    with_car["warnings"] = [[f"{EQUAL_PREDICTIONS}, got outputs with ..."], [], [], [], []]
    found = CHECKS["claims-ft-flips"](make_results({"claims": {FT: amounts(400.0), FTC: with_car}}))
    assert found.verdict is HOLDS
    assert "At the 4 of 5 seeds" in found.evidence
    assert "40.25 with CAR" in found.evidence
