"""Group metrics against fairlearn's, and where there is no answer, nan and the group's name."""

import math

import fairlearn.metrics
import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, studentized_range
from sklearn.metrics import mean_tweedie_deviance, precision_score, roc_auc_score

from fcorr import metrics
from fcorr._core import InvalidInputError, NotEstimableWarning
from fcorr.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
    group_rates,
)
from fcorr.metrics.group import GroupedRows, cell, deviances, interval, resample, tabulate_groups

METRICS = [demographic_parity_difference, equal_opportunity_difference, equalized_odds_difference]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("metric", METRICS)
def test_agrees_with_fairlearn(metric, weighted):
    rng = np.random.default_rng(0)
    y_true, y_pred, sex, age = rng.integers(0, [[2], [2], [2], [4]], (4, 400))
    both = pd.DataFrame({"sex": np.array(["f", "m"])[sex], "age": age})
    weight = rng.random(400) if weighted else None
    values = []
    for groups in (both["sex"], both["age"], both):
        arguments = {"sensitive_features": groups, "sample_weight": weight}
        theirs = getattr(fairlearn.metrics, metric.__name__)(y_true, y_pred, **arguments)
        values.append(metric(y_true, y_pred, **arguments))
        assert values[-1] == pytest.approx(theirs)
    assert values[2] >= max(values)  # an intersection can only show more than the columns do


def test_rates_by_hand():
    groups = {"sex": ["m", "f", "m", "m", None], "race": ["a", "b", "a", "b", "b"]}
    table = group_rates([1, 1, 0, 1, 0], [1, 0, 1, 0, 0], sensitive_features=groups)
    assert [(line.group, line.n, line.mean_prediction) for line in table] == [
        (("f", "b"), 1, 0.0),
        (("m", "a"), 2, 1.0),
        (("m", "b"), 1, 0.0),
        ((None, "b"), 1, 0.0),
    ]
    np.testing.assert_array_equal([line.tpr for line in table], [0, 1, 0, np.nan])
    np.testing.assert_array_equal([line.fpr for line in table], [np.nan, 1, np.nan, 0])
    assert pd.DataFrame(table)["mean_prediction"].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("y_true", "y_pred"),
    [(None, [1, 0]), ([1, 0], [0.3, 0.4]), ([10.0, 20.0], [1, 0])],
    ids=["no truth", "scores", "amounts"],
)
def test_rates_of_what_is_no_decision_are_nan(y_true, y_pred):
    for line in group_rates(y_true, y_pred, sensitive_features=["f", "m"]):
        assert np.isnan([line.tpr, line.fpr]).all()
        assert np.isfinite(line.mean_prediction)


@pytest.mark.parametrize(
    ("groups", "named"),
    [
        (["a", "a", "b", "b", "c", "c"], "c (n=2)"),
        (["a", "a", "b", "b", None, None], "missing (n=2)"),
        ({"sex": list("ffmmmm"), "race": [*"aabb", None, None]}, "m, missing (n=2)"),
    ],
)
def test_a_group_without_positives_is_left_out_by_name_and_count(groups, named):
    y_true, y_pred = [1, 1, 1, 0, 0, 0], [1, 1, 0, 1, 1, 0]
    with pytest.warns(NotEstimableWarning) as caught:
        value = equal_opportunity_difference(y_true, y_pred, sensitive_features=groups)
    assert value == 1.0
    assert [str(warning.message) for warning in caught] == [
        f"equal_opportunity_difference is not estimable for 1 of 3 groups, which have no "
        f"positives and are left out: '{named}'."
    ]
    assert caught[0].filename == __file__


def test_a_group_without_weight_is_not_there():
    arguments = {"sensitive_features": ["a", "b", "c"], "sample_weight": [1, 2, 0]}
    for truth in ("anything", [1]):  # which parity ignores
        assert demographic_parity_difference(truth, [1, 0, 9], **arguments) == 1.0
    _, last = group_rates(None, [1, 0, 9], **arguments)
    assert (last.group, last.n, last.weight) == ("b", 1, 2.0)


@pytest.mark.parametrize("metric", METRICS)
def test_one_group_has_nothing_to_compare_with(metric):
    text = rf"{metric.__name__} .* 1 of 1 have. Without: none"
    with pytest.warns(NotEstimableWarning, match=text) as caught:
        assert np.isnan(metric([1, 0], [1, 0], sensitive_features=["f", "f"]))
    assert caught[0].filename == __file__


def test_half_of_the_odds_is_not_the_odds():
    # Negatives can be compared, positives cannot: the difference of one half would understate.
    with pytest.warns(NotEstimableWarning, match=r"positives, which 1 of 2 have. .* 'm \(n=2\)'"):
        value = equalized_odds_difference(
            [1, 0, 0, 0], [1, 0, 0, 0], sensitive_features=["f", "f", "m", "m"]
        )
    assert np.isnan(value)


# Figures of all groups at once, against the metrics that compute one number for one group


RNG = np.random.default_rng(0)
N = 300
CODES, SCORE = RNG.integers(0, 3, N), RNG.random(N).round(1)  # with many ties
TRUTH = (RNG.random(N) < SCORE).astype(float)
AMOUNT, WEIGHT = RNG.poisson(2 * SCORE).astype(float), RNG.uniform(0.5, 2, N)
DECISION = (SCORE >= 0.5).astype(float)


@pytest.mark.parametrize("weight", [np.ones(N), WEIGHT, RNG.integers(0, 3, N).astype(float)])
def test_figures_of_a_class_are_those_of_the_metrics(weight):
    found = GroupedRows(CODES, weight, SCORE, TRUTH, DECISION).figures()
    rates = metrics.group_rates(TRUTH, DECISION, sensitive_features=CODES, sample_weight=weight)
    names = {"selection rate": "mean_prediction", "true positive rate": "tpr"}
    names["false positive rate"] = "fpr"
    for name, attribute in names.items():
        assert found[name] == pytest.approx([getattr(line, attribute) for line in rates])
    for g in range(3):
        of = g == CODES
        by = {"sample_weight": weight[of]}
        assert found["AUROC"][g] == pytest.approx(roc_auc_score(TRUTH[of], SCORE[of], **by))
        assert found["precision"][g] == pytest.approx(
            precision_score(TRUTH[of], DECISION[of], **by)
        )
        assert found["mean predicted"][g] == pytest.approx(
            np.average(SCORE[of], weights=weight[of])
        )


@pytest.mark.parametrize("power", [0, 1, 1.2, 1.5, 2, 3])
def test_figures_of_amounts_are_those_of_the_metrics(power):
    y, score = AMOUNT + (power >= 2), SCORE + 0.1
    rows = GroupedRows(CODES, WEIGHT, score, y, deviance=deviances(y, score, power))
    found = rows.figures()
    for g in range(3):
        of = g == CODES
        given = {"y_true": y[of], "y_pred": score[of], "sample_weight": WEIGHT[of]}
        assert found["Gini"][g] == pytest.approx(metrics.lorenz_curve(**given).gini)
        expected = mean_tweedie_deviance(**given, power=power)
        assert found["deviance"][g] == pytest.approx(expected)
        ratio = np.sum((WEIGHT * y)[of]) / np.sum((WEIGHT * score)[of])
        assert found["actual / expected"][g] == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("y", "score", "power", "text"),
    [
        ([1, 0], [1, 1], 2, "positive for power 2, got 0 in row 1. Leave out the rows"),
        ([1, -0.5], [1, 1], 1, "not be negative for a deviance, got -0.5 in row 1. Check"),
        ([1, 2], [0, 1], 1.5, "Predictions must be positive .* got 0 in row 0. Predict on"),
        *(([1], [1], p, f"0 or a number of at least 1, got {p}. ") for p in (0.5, -1, math.inf)),
    ],
)
def test_what_has_no_deviance_is_refused(y, score, power, text):
    with pytest.raises(InvalidInputError, match=text):
        deviances(np.array(y, dtype=float), np.array(score, dtype=float), power)


def tabulate(rows, n_resamples=200):
    drawn = [figures for (figures,) in resample([rows], n_resamples, seed=0)]
    draws = {name: np.stack([each[name] for each in drawn]) for name in drawn[0]}
    names = [f"g{i}" for i in range(len(rows.counts))]
    return tabulate_groups(names, rows, draws, 0.95)


def test_intervals_are_those_of_the_bootstrap():
    two = CODES % 2
    rows = GroupedRows(two, np.ones(N), SCORE, TRUTH, DECISION)
    found = tabulate(rows, 2_000)["differences"]["selection rate difference"]
    highest = int(DECISION[two == 1].mean() > DECISION[two == 0].mean())

    def gap(codes, decision):  # of the same two groups in each resample
        return decision[codes == highest].mean() - decision[codes != highest].mean()

    expected = metrics.bootstrap_interval(gap, two, DECISION, n_resamples=2_000, random_state=1)
    assert found["estimate"] == pytest.approx(expected.estimate)
    assert (found["low"], found["high"]) == pytest.approx((expected.low, expected.high), abs=0.02)


def test_intervals_of_the_largest_difference_hold_for_all_pairs_of_groups():
    rng, n, n_groups = np.random.default_rng(0), 20_000, 10
    codes, score = np.arange(n) % n_groups, rng.random(n)
    rows = GroupedRows(codes, np.ones(n), score, None, rng.random(n) < 0.3)
    found = tabulate(rows, 1_000)["differences"]
    error = math.sqrt(2 * 0.3 * 0.7 * n_groups / n)
    # Tukey's: of all pairs of as many equal means.
    reach = studentized_range.ppf(0.95, n_groups, math.inf) / math.sqrt(2) * error
    each = found["selection rate difference"]
    assert (each["high"] - each["low"]) / 2 == pytest.approx(reach, rel=0.1)
    each = found["adverse impact ratio"]
    assert math.log(each["high"] / each["low"]) / 2 == pytest.approx(reach / 0.3, rel=0.1)
    # Of nine groups from one, by simulation: 2.69 standard errors.
    means = rng.standard_normal((20_000, n_groups))
    reach = np.quantile(np.abs(means[:, 1:] - means[:, :1]).max(axis=1), 0.95)
    each = found["standardised mean difference"]
    expected = reach * math.sqrt(n_groups / n)
    assert (each["high"] - each["low"]) / 2 == pytest.approx(expected, rel=0.1)


def test_of_equal_groups_few_are_told_apart():
    rng, n, lows = np.random.default_rng(0), 1_000, []
    for _ in range(40):
        rows = GroupedRows(np.arange(n) % 10, np.ones(n), rng.random(n), None, rng.random(n) < 0.3)
        found = tabulate(rows, 100)["differences"]
        lows.append(
            [found["selection rate difference"]["low"], 1 - found["adverse impact ratio"]["high"]]
        )
    assert (np.mean(np.array(lows) > 0, axis=0) <= 0.15).all()  # of bootstrap maxima all


def test_rates_of_few_rows_have_jeffreys_intervals():
    codes, decision = np.repeat([0, 1, 2], [30, 100, 100]), np.zeros(230)
    decision[30:130:3], decision[130:] = 1, 1
    found = tabulate(GroupedRows(codes, np.ones(230), decision, None, decision), 5_000)
    for group, (hits, n) in zip(found["groups"], ((0, 30), (34, 100), (100, 100)), strict=True):
        each = group["figures"]["selection rate"]
        low, high = beta.ppf([0.025, 0.975], hits + 0.5, n - hits + 0.5)
        assert each["low"] == pytest.approx(low if hits else 0, abs=0.005)
        assert each["high"] == pytest.approx(high if hits < n else 1, abs=0.005)
    ratio = found["differences"]["adverse impact ratio"]
    assert ratio["estimate"] == ratio["low"] == 0 < ratio["high"] < 0.3


def test_unequal_weights_make_rates_less_sure():
    codes, decision = np.zeros(400, dtype=int), np.arange(400) % 4 == 0
    weight = np.where(np.arange(400) // 4 % 2, 0.02, 1.98)  # as if half the rows were not there
    equal, unequal, scaled = (
        tabulate(GroupedRows(codes, w, RNG.random(400), None, decision), 2_000)["groups"][0]
        for w in (np.ones(400), weight, 7 * np.ones(400))
    )
    widths = [
        e["high"] - e["low"] for g in (equal, unequal) for e in [g["figures"]["selection rate"]]
    ]
    assert widths[1] / widths[0] == pytest.approx(math.sqrt(2), rel=0.05)
    assert scaled["figures"]["selection rate"] == pytest.approx(equal["figures"]["selection rate"])


def test_no_figures_are_made_of_rounding():
    codes, rng = np.arange(300) % 3, np.random.default_rng(0)
    score, truth = np.where(codes == 0, 0, rng.random(300)), rng.poisson(0.3, 300) + 0.0
    table = tabulate(GroupedRows(codes, np.ones(300), score, truth, deviance=score))
    figures = table["groups"][0]["figures"]
    assert figures["actual / expected"] == {"estimate": None, "why": "nothing was expected"}
    assert figures["mean predicted"] == table["differences"]["mean ratio"] == {"estimate": 0}
    assert table["differences"]["actual over expected difference"]["estimate"] < 1
    tiny = GroupedRows(codes, np.ones(300), np.where(codes == 0, 1e-12, 1e5), truth, deviance=score)
    assert tiny.figures()["mean predicted"].tolist() == pytest.approx([1e-12, 1e5, 1e5])


def test_ratios_of_resamples_without_any_reach_0():
    codes, score = np.repeat([0, 1, 2], [40, 100, 100]), np.ones(240)
    score[1:40] = 0
    ratio = tabulate(GroupedRows(codes, np.ones(240), score))["differences"]["mean ratio"]
    assert ratio["low"] == 0 < ratio["estimate"] == 1 / 40 < ratio["high"] < 0.2


@pytest.mark.parametrize("unit", [1e100, 1e-100])
def test_the_unit_of_weights_does_not_matter(unit):
    rows = [GroupedRows(CODES, WEIGHT * by, SCORE, TRUTH, DECISION) for by in (1, unit)]
    one, other = (tabulate(each)["differences"]["selection rate difference"] for each in rows)
    assert other == pytest.approx(one)


@pytest.mark.parametrize("seed", range(5))
def test_weights_do_not_make_negatives_of_rounding(seed):
    rng = np.random.default_rng(seed)
    codes, weight = rng.integers(0, 3, 300), rng.integers(1, 5, 300) / 2.4983
    truth = np.where(codes == 0, 1.0, rng.random(300) < 0.5)
    rows = GroupedRows(codes, weight, rng.random(300), truth, rng.random(300) < 0.5)
    group, *_ = tabulate(rows, 20)["groups"]
    assert group["figures"]["AUROC"] == {"estimate": None, "why": "one class only"}
    assert group["figures"]["false positive rate"] == {"estimate": None, "why": "no negatives"}


def test_amounts_far_from_0_and_below_it():
    score = RNG.normal(size=N)
    moved = []
    for offset in (0, 1e9):
        rows = GroupedRows(CODES, WEIGHT, score.round(6) + offset, AMOUNT - 5, deviance=AMOUNT)
        table = tabulate(rows)
        moved += [g["figures"]["standardised mean difference"]["estimate"] for g in table["groups"]]
        why = {"estimate": None, "why": "no positive amounts"}
        assert [group["figures"]["Gini"] for group in table["groups"]] == [why] * 3
    assert moved[:3] == pytest.approx(moved[3:], abs=1e-4)
    alike = tabulate(GroupedRows(CODES, WEIGHT, np.full(N, 0.3)))["groups"][0]["figures"]
    expected = {"estimate": None, "why": "all scores are alike"}
    assert alike["standardised mean difference"] == expected
    assert alike["mean predicted"] == {"estimate": pytest.approx(0.3)}  # an interval has a width


def test_a_negative_mean_has_a_ratio_without_an_interval():
    codes, score = np.repeat([0, 1], 50), np.repeat([2.0, -3.0], 50) + np.arange(100) % 3
    found = tabulate(GroupedRows(codes, np.ones(100), score))["differences"]["mean ratio"]
    assert found == {"estimate": pytest.approx(score[50:].mean() / score[:50].mean())}


def rows_of_equal_rates(decision, score):
    return GroupedRows(np.arange(400) % 2, np.ones(400), score, None, decision)


def test_intervals_of_differences_hold_them_also_where_groups_are_alike():
    rng, lows = np.random.default_rng(0), []
    for _ in range(20):
        decision, score = rng.random(400) < 0.3, rng.random(400)
        rows = GroupedRows(np.arange(400) % 2, np.ones(400), score, rng.random(400) < 0.4, decision)
        found = tabulate(rows, 100)["differences"]
        decision[:] = np.arange(400) % 4 < 2
        alike = tabulate(rows_of_equal_rates(decision, score), 100)["differences"]
        for name, value in (("adverse impact ratio", 1), ("selection rate difference", 0)):
            assert alike[name]["low"] < alike[name]["estimate"] == value < alike[name]["high"]
        assert all(each["low"] <= each["estimate"] <= each["high"] for each in found.values())
        lows.append([found[name]["low"] for name in found if "difference" in name])
    assert len(lows[0]) == 6
    assert (np.mean(np.array(lows) < 0, axis=0) > 0.7).all()


def test_groups_are_set_against_the_highest_rate_and_the_largest_group():
    codes = np.repeat([0, 1, 2], [100, 60, 40])
    decision = np.concatenate([np.arange(100) < 20, np.arange(60) < 30, np.arange(40) < 10])
    table = tabulate(GroupedRows(codes, np.ones(200), decision * 1.0, None, decision))
    ratios = [group["figures"]["adverse impact ratio"]["estimate"] for group in table["groups"]]
    assert ratios == pytest.approx([0.4, 1, 0.5])
    assert table["differences"]["adverse impact ratio"]["estimate"] == pytest.approx(0.4)
    assert table["largest"] == "g0"
    moved = [g["figures"]["standardised mean difference"]["estimate"] for g in table["groups"]]
    assert moved == pytest.approx((np.array([0.2, 0.5, 0.25]) - 0.2) / decision.std())


def test_what_few_rows_say_is_shown_but_not_compared():
    codes = np.repeat([0, 1, 2], [100, 100, 1])
    truth = np.concatenate([np.arange(100) % 2, np.zeros(100), [1]])
    decision = np.concatenate([np.arange(200) % 3 == 0, [False]])
    table = tabulate(GroupedRows(codes, np.ones(201), decision * 1.0, truth, decision))
    large, none, single = (group["figures"] for group in table["groups"])
    assert table["too_small"] == ["g2"]
    assert single["selection rate"] == {"estimate": 0}
    assert {"low", "high"} < set(large["selection rate"])
    assert none["true positive rate"] == {"estimate": None, "why": "no positives"}
    assert none["AUROC"] == {"estimate": None, "why": "one class only"}
    expected = {
        "estimate": None,
        "why": "fewer than two groups of 30 rows have it (no positives in others)",
    }
    assert table["differences"]["true positive rate difference"] == expected
    assert table["differences"]["adverse impact ratio"]["estimate"] > 0.9


def test_an_interval_needs_most_of_its_draws():
    values = np.arange(200.0)[:, None].repeat(3, axis=1)
    values[:5, 1], values[:50, 2] = math.nan, math.nan
    low, high = interval(values, 0.95)
    assert (low[0], high[0]) == pytest.approx((4.975, 194.025))
    assert low[1] > low[0]
    assert math.isnan(low[2])
    assert cell(0.5, low[2], high[2]) == {"estimate": 0.5}
