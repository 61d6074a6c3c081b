"""Group metrics against fairlearn's, and where there is no answer, nan and the group's name."""

import fairlearn.metrics
import numpy as np
import pandas as pd
import pytest

from fcorr._core import NotEstimableWarning
from fcorr.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
    group_rates,
)

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
