import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import average_precision_score, roc_auc_score

from fcorr.metrics.performance import areas_under_roc, average_precisions

ROWS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1.0]),
        st.integers(0, 3).map(float),  # few values: ties are where ranks go wrong
        st.floats(-5, 5, allow_subnormal=False),
        st.sampled_from([0.25, 1.0, 3.0]),
    ),
    min_size=2,
    max_size=12,
).filter(lambda rows: len({row[0] for row in rows}) == 2)
ORACLES = {areas_under_roc: roc_auc_score, average_precisions: average_precision_score}


@pytest.mark.parametrize("metric", ORACLES)
@given(rows=ROWS)
@settings(max_examples=150, deadline=None)
def test_agrees_with_scikit_learn(metric, rows) -> None:
    truth, few, many, weight = np.array(rows).T
    scores = np.array([few, many, -few])
    expected = [ORACLES[metric](truth, column, sample_weight=weight) for column in scores]
    assert_allclose(metric(truth, scores, weight), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("metric", ORACLES)
def test_equal_columns_have_equal_values_to_the_last_bit(metric) -> None:
    rng = np.random.default_rng(0)
    truth, weight = (np.arange(997) % 2).astype(float), rng.random(997)
    scores = np.tile(rng.choice(rng.random(300), 997), (37, 1))
    assert len(np.unique(metric(truth, scores, weight))) == 1
