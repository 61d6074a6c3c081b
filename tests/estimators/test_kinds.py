"""Kinds of columns on their way through the estimators."""

import numpy as np
import pandas as pd
import pytest

from fcorr import FCorrRegressor
from fcorr._core import UnseenCategoryWarning

SMALL = {"head": (16,), "epochs": 20, "random_state": 0, "dropout": 0.0}
GRADES = list("ABCDE")

_rng = np.random.default_rng(0)
_N = 600
X = pd.DataFrame(
    {
        "grade": _rng.choice(GRADES, _N),
        "a": _rng.normal(size=_N),
        "b": _rng.normal(size=_N),
        "shop": np.where(_rng.uniform(size=_N) < 0.9, "big", [f"shop {i % 40}" for i in range(_N)]),
    }
)
Y = X.grade.map(GRADES.index) + X.a


def test_ordinal_column_is_one_number_with_a_knot_at_each_category():
    model = FCorrRegressor(n_members=1, **SMALL, kinds={"grade": GRADES}, min_category_rows=2).fit(
        X, Y
    )
    assert model.schema_.feature_names == ("shop", "grade", "a", "b")
    position = model.schema_["grade"].position
    knots = model.model_.views.numbers.knots[0]
    places = knots[knots.isfinite()].numpy() * position.scale + position.mean
    np.testing.assert_allclose(places, range(5), atol=1e-5)
    assert model.score(X, Y) > 0.8


def test_outside_the_order_predicts_like_missing():
    model = FCorrRegressor(n_members=1, **SMALL | {"epochs": 1}, kinds={"grade": GRADES}).fit(X, Y)
    with pytest.warns(UnseenCategoryWarning, match=rf"{_N} row\(s\) of 'grade'.*as missing"):
        predicted = model.predict(X.assign(grade="Z"))
    with pytest.warns(UserWarning, match="none at all in 'grade'"):
        missing = model.predict(X.assign(grade=None))
    np.testing.assert_array_equal(predicted, missing)


def test_unseen_category_predicts_like_a_rare_one():
    model = FCorrRegressor(n_members=1, **SMALL | {"epochs": 1}, min_category_rows=10).fit(X, Y)
    rare = X.shop[X.shop != "big"].iloc[0]
    predicted = model.predict(X.assign(shop="new"))
    np.testing.assert_array_equal(predicted, model.predict(X.assign(shop=rare)))
    assert not np.array_equal(predicted, model.predict(X.assign(shop="big")))


def test_dates_are_features():
    dates = pd.date_range("2020-01-01", periods=_N, freq="D")
    dated = X[["a", "b"]].assign(day=dates)
    y = (dates.month == 6).astype(float) + 0.2 * X.a
    model = FCorrRegressor(n_members=1, **SMALL).fit(dated, y)
    names = ("a", "b", "day.year", "day.month", "day.day_of_week", "day.days")
    assert model.schema_.feature_names == names
    assert model.n_features_in_ == 3
    assert set(model.feature_significance()) == set(names)
    assert model.score(dated, y) > 0.5
    later = dated.assign(day=dates + pd.Timedelta(days=10_000))
    assert np.isfinite(model.predict(later)).all()
    text = dated.assign(day=dates.strftime("%Y-%m-%d"))
    np.testing.assert_array_equal(model.predict(text), model.predict(dated))


def test_few_features_are_counted_after_dates_are_taken_apart():
    dates = pd.date_range("2020-01-01", periods=_N, freq="D")
    FCorrRegressor(n_members=1, **SMALL | {"epochs": 1}).fit(pd.DataFrame({"day": dates}), Y)
