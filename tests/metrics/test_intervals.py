"""Bootstrap intervals of any metric, and what resamples cannot give."""

import warnings

import fairlearn.metrics
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import bootstrap
from sklearn.metrics import average_precision_score, f1_score, log_loss, roc_auc_score

from fcorr._core import InvalidInputError, NotEstimableWarning
from fcorr.metrics import (
    FlippedScores,
    average_individual_fairness,
    bootstrap_interval,
    demographic_parity_difference,
    equal_opportunity_difference,
    flip_changes,
)
from paper.gaps import f1_gap

RNG = np.random.default_rng(0)
N = 200
Y = RNG.integers(0, 2, N)
SCORES = RNG.random(N)
WEIGHT = RNG.random(N)
GROUPS = RNG.choice(["a", "b", "c"], N)
FLIPS = FlippedScores(("a", "b"), RNG.integers(0, 2, N), RNG.random((N, 2)))


def mean(values):
    return float(np.mean(values))


def interval_of(metric, *arrays, n_resamples=100, **options):
    return bootstrap_interval(metric, *arrays, n_resamples=n_resamples, random_state=0, **options)


@pytest.mark.parametrize(
    ("metric", "arrays", "options"),
    [
        (roc_auc_score, (Y, SCORES), {"sample_weight": WEIGHT}),
        (demographic_parity_difference, (None, SCORES), {"sensitive_features": GROUPS}),
        (equal_opportunity_difference, (Y, SCORES > 0.5), {"sensitive_features": GROUPS}),
        (
            fairlearn.metrics.demographic_parity_difference,
            (Y, (SCORES > 0.5).astype(int)),
            {"sensitive_features": pd.DataFrame({"sex": Y, "group": GROUPS})},
        ),
        (average_individual_fairness, (FLIPS,), {"sample_weight": WEIGHT}),
        (f1_gap, (Y, FLIPS), {"threshold": 0.3}),
        (lambda flips: flip_changes(flips)["mean"], (FLIPS,), {}),
    ],
)
def test_any_metric_has_an_interval(metric, arrays, options):
    interval = interval_of(metric, *arrays, n_resamples=50, **options)
    assert interval.estimate == metric(*arrays, **options)
    assert interval.low < interval.high
    assert (interval.n_resamples, interval.n_not_estimable, interval.n_partial) == (50, 0, 0)


def test_agrees_with_scipy():
    ours = interval_of(mean, SCORES, n_resamples=4000, confidence=0.9)
    options = {"confidence_level": 0.9, "method": "percentile"}
    generator = np.random.default_rng(1)  # random_state is the name in all versions of SciPy
    theirs = bootstrap(
        (SCORES,), np.mean, n_resamples=4000, **options, random_state=generator
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=2e-3)
    # The seed makes it repeatable.
    assert ours == interval_of(mean, SCORES, n_resamples=4000, confidence=0.9)
    assert ours != bootstrap_interval(
        mean, SCORES, n_resamples=4000, confidence=0.9, random_state=1
    )


def test_rows_stay_whole():
    def disagreement(a, b, flips, sample_weight):
        same = (a == b) & (a == flips.scores[:, 0]) & (a == flips.factual) & (a == sample_weight)
        return float(np.mean(~same))

    rows = np.arange(50.0)
    flips = FlippedScores((0, 1), np.arange(50) % 2, np.column_stack([rows, rows]), rows)
    interval = interval_of(disagreement, rows, list(rows), flips, sample_weight=pd.Series(rows))
    assert (interval.low, interval.high) == (0.0, 0.0)


@pytest.mark.parametrize(
    "column",
    [list, pd.Series, pl.Series, pa.array],
)
def test_columns_of_any_library(column):
    arrays = column(Y.tolist()), column(SCORES.tolist())
    groups = column(GROUPS.tolist())
    interval = interval_of(demographic_parity_difference, *arrays, sensitive_features=groups)
    assert interval == interval_of(
        demographic_parity_difference, Y, SCORES, sensitive_features=GROUPS
    )


@pytest.mark.parametrize(
    ("metric", "arrays", "options"),
    [
        (roc_auc_score, (Y, SCORES), {}),
        (demographic_parity_difference, (None, SCORES), {"sensitive_features": {"group": GROUPS}}),
        (f1_gap, (Y, FLIPS), {"threshold": 0.3}),
    ],
)
def test_rows_of_weight_0_are_not_drawn(metric, arrays, options):
    is_kept = WEIGHT > 0.4
    weight = np.where(is_kept, WEIGHT, 0)

    def keep(column):
        if isinstance(column, dict):
            return {name: keep(part) for name, part in column.items()}
        return column.take(is_kept) if isinstance(column, FlippedScores) else column[is_kept]

    kept = [array if array is None else keep(array) for array in arrays]
    groups = {k: keep(v) if k == "sensitive_features" else v for k, v in options.items()}
    interval = interval_of(metric, *arrays, sample_weight=weight, **options)
    assert interval == interval_of(metric, *kept, sample_weight=weight[is_kept], **groups)


# One row of seven is alone in its group: (6/7)^7 = 0.34 of the resamples do without it.
LONELY = FlippedScores(("a", "b", "c"), [0, 0, 0, 1, 1, 1, 2], np.eye(7, 3))


@pytest.mark.parametrize(
    ("metric", "arrays", "options"),
    [
        (average_individual_fairness, (LONELY,), {}),
        *(
            (demographic_parity_difference, (None, np.arange(7.0)), {"sensitive_features": groups})
            for groups in (list("aaabbbc"), {"sex": [*"fffmmm", None], "race": ["a"] * 7})
        ),
    ],
    ids=["flips", "groups", "missing in an intersection"],
)
def test_resamples_that_lose_a_group_are_counted(metric, arrays, options):
    interval = interval_of(metric, *arrays, **options)
    assert 20 < interval.n_partial < 60
    assert interval.n_not_estimable == 0


def test_resamples_without_a_value_are_counted_and_quiet():
    # One positive in each group: a resample misses one of them with probability 0.6.
    y = np.array([1, 0, 0, 1, 0, 0])
    groups = np.array(["a"] * 3 + ["b"] * 3)
    interval = interval_of(
        equal_opportunity_difference, y, y, sensitive_features=groups, n_resamples=200
    )
    assert 80 < interval.n_not_estimable < 150
    assert interval.n_partial == 0  # it counts resamples with a value only
    assert (interval.estimate, interval.low, interval.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("metric", [roc_auc_score, average_precision_score, f1_score, log_loss])
def test_stand_in_values_and_refusals_are_not_estimable(metric):
    y_true = np.array([1, 0, 0, 0])
    y_pred = np.full(4, 0.5) if metric is log_loss else y_true
    interval = interval_of(metric, y_true, y_pred, n_resamples=200)
    assert 30 < interval.n_not_estimable < 110  # (3/4)^4 = 0.32, and for the ROC curve no negatives
    assert interval.low == pytest.approx(np.log(2) if metric is log_loss else 1.0)


def test_what_the_whole_data_cannot_give_is_said_aloud():
    groups = {"sensitive_features": ["f", "f"]}
    with pytest.warns(NotEstimableWarning, match="1 of 1 have"):
        interval = interval_of(demographic_parity_difference, None, [1, 0], n_resamples=7, **groups)
    assert np.isnan([interval.estimate, interval.low, interval.high]).all()
    assert interval.n_not_estimable == 7


def test_other_warnings_are_passed_on_once():
    def noisy(values):
        warnings.warn("something else", RuntimeWarning, stacklevel=2)
        return float(np.mean(values))

    with pytest.warns(RuntimeWarning, match="something else") as caught:
        bootstrap_interval(noisy, [1, 2, 3], n_resamples=20)
    assert len(caught) == 2  # from the data as they are, and from the resamples


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        ((mean, SCORES), {"n_resamples": 0}, "n_resamples must be a positive integer, got 0. 500"),
        ((mean, SCORES), {"n_resamples": 2.5}, "n_resamples must be a positive integer, got 2.5"),
        ((mean, SCORES), {"confidence": 95}, "between 0 and 1, got 95. Write 95 % as 0.95"),
        ((mean, 3.0), {}, "an argument with rows to resample, got none. Pass the metric's columns"),
        ((flip_changes, FLIPS), {}, r"one number, got dict. Wrap it .*changes\(flips\)\['max'\]"),
        ((lambda a, b: 0.0, [1, 2], [1, 2, 3]), {}, "rows, got argument 1 2, argument 2 3"),
        ((mean, SCORES), {"random_state": 0.5}, "random_state must be an integer"),
    ],
)
def test_bad_arguments(arguments, options, text):
    with pytest.raises(InvalidInputError, match=text):
        bootstrap_interval(*arguments, **options)
