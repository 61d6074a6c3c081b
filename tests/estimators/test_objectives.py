"""Counts and amounts: log links, exposure as an offset."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_tweedie_deviance

from fcorr import FCorrRegressor, load
from fcorr._core import InvalidInputError
from tests.tables import QUICK, make_model, make_people, make_targets

_rng = np.random.default_rng(0)
N = 2_000
X = pd.DataFrame(
    {
        "area": _rng.choice(["city", "land"], N),
        "age": _rng.uniform(18, 80, N),
        "years": _rng.choice([0.1, 0.5, 1.0, 2.0], N),
        "power": _rng.normal(size=N),
        "value": _rng.uniform(size=N),
    }
)
RATE = np.exp(-0.5 + 0.8 * (X.area == "city") + 0.5 * X.power - (X.age - 18) / 62).to_numpy()
YEARS = X.years.to_numpy()
CLAIMS = _rng.poisson(YEARS * RATE)
FEATURES = X.drop(columns="years")
AMOUNTS = {
    "gamma": _rng.gamma(2, 500 * RATE),
    "tweedie": np.array([_rng.gamma(2, 50, n).sum() for n in CLAIMS]),
}


def fit(X=X, y=CLAIMS, weight=None, eval_set=None, **options):
    options = {"head": (8,), "objective": "poisson", "exposure": "years"} | options
    return FCorrRegressor(**QUICK | options).fit(X, y, weight, eval_set)


@pytest.fixture(scope="module")
def model():
    return fit()


# How near a model comes to the truth, as a share of the way from a constant to it.
LEARNT = {"poisson": (1, 1, 0.25), "gamma": (2, 1_000, 0.35), "tweedie": (1.5, 100, 0.35)}


@pytest.mark.parametrize("share", [1.0, 0.05])
def test_rare_claims_take_more_rows_to_be_believed(share):
    """As many as it takes to know a level as well as that of a fair coin, of which 10 rows do.

    The variance of a fitted log-level, times the rows, is that of scores over curvature squared.
    """
    rng, years = np.random.default_rng(5), YEARS.copy()
    y = rng.poisson(RATE * years) * (rng.random(N) < share)
    y[0], years[0] = 1, 1e-6  # a claim just after the contract began is no sign of noise
    mean = years * y.sum() / years.sum()
    scores, curvature = y - mean, mean
    variance = np.mean(scores**2) / np.mean(curvature) ** 2
    assert (variance > 40) == (share < 1)
    model = fit(X.assign(years=years), y, epochs=1)
    expected = 10 * max(1.0, variance / 4)
    assert model.recipes_[0]["credibility"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("objective", "shape"), [("gamma", 0.05), ("gamma", 2), ("tweedie", 0.05)])
def test_skewed_amounts_take_more_rows_to_be_believed(objective, shape):
    y = np.random.default_rng(6).gamma(shape, 1 / shape, N) + 1e-9
    model = fit(FEATURES, y, objective=objective, exposure=None, epochs=1)
    expected = 10 * max(1.0, np.var(y) / np.mean(y) ** 2 / 4)
    assert (expected > 20) == (shape < 1)
    assert model.recipes_[0]["credibility"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("objective", ["mse", "gamma", "tweedie"])
def test_one_row_that_has_most_of_the_variance_is_told_of(objective):
    y = AMOUNTS["gamma"].copy()
    y[7] = 1e6 * y.mean()
    options = {"objective": objective, "exposure": None, "epochs": 1}
    with pytest.warns(
        UserWarning, match="One row has more than half of the variance of y: "
    ) as heard:
        fit(FEATURES, y, **options)
    assert f"{y[7]:g}, beside a mean of {y.mean():g}." in str(heard[0].message)
    fit(FEATURES, y, weight=np.arange(N) != 7, **options)  # without a warning, which were an error
    fit(FEATURES[:50], y[:50], **options)  # of few rows one may well have it
    fit(FEATURES, np.arange(N) == 7, objective="poisson", exposure=None, epochs=1)
    if objective != "mse":  # a fleet has the claims of many
        years = np.where(np.arange(N) == 7, 1_000.0, 1.0)
        y = AMOUNTS["gamma"].mean() * years * np.linspace(0.5, 1.5, N)
        fit(FEATURES.assign(years=years), y, objective=objective, epochs=1)


SMALL = {"n_members": 1, "epochs": 8, "random_state": 0}


def test_one_row_that_has_most_of_the_exposure_is_told_of():
    table = FEATURES.assign(years=np.where(np.arange(N) == 7, 365_000.0, 1.0))
    with pytest.warns(UserWarning, match=r"more than half of all exposure, 365000 beside a mean"):
        fit(table, CLAIMS, objective="poisson", epochs=1)


@pytest.mark.parametrize(("objective", "power"), [("poisson", 1), ("tweedie", 1.5), ("gamma", 2)])
def test_amounts_with_an_exposure_are_amounts_per_exposure_weighted_by_it(objective, power):
    """By hand: of short policies, which are dearer, a level has what it has per exposure."""
    rng, n = np.random.default_rng(0), 4_000
    level, years = rng.integers(0, 2, n), rng.choice([0.05, 1.0], n)
    y = years * rng.gamma(2, np.where((level == 0) & (years < 1), 2, 1) * (1.0 + level))
    X = pd.DataFrame({"level": level.astype(str), "years": years})
    models = [
        FCorrRegressor(objective=objective, exposure=exposure, tweedie_power=1.5, **SMALL)
        for exposure in ("years", None)
    ]
    total = models[0].fit(X, y)
    rate = models[1].fit(X[["level"]], y / years, sample_weight=years)
    assert total._deviance_power == power
    np.testing.assert_allclose(total.predict_rate(X), rate.predict(X[["level"]]), rtol=0.02)
    for each in (0, 1):
        own = level == each
        assert y[own].sum() / total.predict(X)[own].sum() == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("objective", LEARNT)
def test_rates_and_amounts_are_learnt(objective):
    power, size, share = LEARNT[objective]
    deviance = partial(mean_tweedie_deviance, power=power)
    y, of = (AMOUNTS | {"poisson": CLAIMS})[objective], 1 if objective == "gamma" else YEARS
    options = {"exposure": None} if objective == "gamma" else {}
    table = FEATURES if objective == "gamma" else X
    model = fit(table, y, objective=objective, epochs=15, **options)
    truth = of * RATE * size
    constant = np.ones(N) * of * y.sum() / np.sum(of * np.ones(N))
    span = deviance(y, constant) - deviance(y, truth)
    assert deviance(y, model.predict(X)) < deviance(y, truth) + share * span
    assert np.corrcoef(np.log(model.predict_rate(X)), np.log(RATE))[0, 1] > 0.7


def test_exposure_is_an_offset_and_no_feature(model):
    assert model.schema_.exposure == "years"
    assert "years" not in model.schema_.names + model.schema_.feature_names
    assert "years" not in model.feature_significance()
    assert model.n_features_in_ == 5
    assert model.feature_names_in_.tolist() == list(X.columns)
    twice = model.predict(X.assign(years=2 * X.years))
    np.testing.assert_allclose(twice, 2 * model.predict(X), rtol=1e-12)
    np.testing.assert_allclose(model.predict(X) / YEARS, model.predict_rate(X), rtol=1e-12)


def test_base_is_the_log_of_the_weighted_rate():
    weight = np.arange(N) % 3
    model = fit(weight=weight)
    rate = np.sum(weight * CLAIMS) / np.sum(weight * YEARS)
    assert model.base_ == pytest.approx(np.log(rate), rel=1e-12)
    mean = np.log(np.average(AMOUNTS["gamma"]))
    assert fit(FEATURES, AMOUNTS["gamma"], objective="gamma", exposure=None).base_ == (
        pytest.approx(mean, rel=1e-12)
    )


@pytest.mark.parametrize("objective", ["poisson", "gamma", "tweedie"])
def test_units_do_not_matter(objective):
    y = CLAIMS + 1.0 if objective == "gamma" else CLAIMS
    options = {"objective": objective, "dropout": 0.0}
    years = fit(X, y, **options)
    months = fit(X.assign(years=12 * X.years), 1_024 * y, **options)
    assert months.history_.epochs[-1].loss == pytest.approx(years.history_.epochs[-1].loss, 1e-3)
    np.testing.assert_allclose(months.predict_rate(X), 1_024 / 12 * years.predict_rate(X), rtol=0.1)


def test_rate_needs_no_exposure_but_the_expectation_does(model):
    np.testing.assert_array_equal(model.predict_rate(FEATURES), model.predict_rate(X))
    no_time = X.assign(years=0.0)
    np.testing.assert_array_equal(model.predict_rate(no_time), model.predict_rate(X))
    with pytest.raises(InvalidInputError, match=r"'years' \(exposure\) must be positive"):
        model.predict(no_time)
    message = (
        r"fit the training table: Column 'years' \(exposure\) is missing\. X has .*predict_rate"
    )
    with pytest.raises(InvalidInputError, match=message):
        model.predict(FEATURES)
    assert model.attention(FEATURES).names == ("area", "age", "power", "value")
    (difference,) = model.schema_.diff(X.assign(years=-1.0))
    assert "got -1.0 in row 0 and 1999 more" in difference.text


def test_arrays_take_positions():
    array = X.drop(columns="area").to_numpy()  # age, years, power, value
    model = fit(array, exposure=1, kinds={3: "numeric"})
    assert model.schema_.exposure == "x1"
    assert model.schema_.names == ("x0", "x2", "x3")
    expected = model.predict(array)
    np.testing.assert_allclose(expected.sum(), CLAIMS.sum())
    rates = model.predict_rate(array[:, [0, 2, 3]])
    np.testing.assert_array_equal(rates * array[:, 1], expected)
    with pytest.raises(InvalidInputError, match=r"'x1' \(exposure\) is missing"):
        model.predict(array[:, [0, 2, 3]])
    with pytest.raises(
        InvalidInputError, match=r"X has 2 features, but .* is expecting 4 features"
    ):
        model.predict_rate(array[:, :2])


def test_eval_set_uses_its_own_exposure():
    held_out = X[:500].assign(years=3.0)
    y = CLAIMS[:500]
    weight = np.arange(500.0)
    model = fit(eval_set=(held_out, y, weight))
    measured = model.history_.epochs[-1].validation_loss
    model.balance_[:] = 0
    mean = model.predict(held_out)
    unit = CLAIMS.mean()
    losses = (mean - y * np.log(mean / unit)) / unit
    assert measured == pytest.approx(np.average(losses, weights=weight), rel=1e-4)
    with pytest.raises(InvalidInputError, match=r"'years' \(exposure\) is missing"):
        fit(eval_set=(FEATURES, CLAIMS))


def test_arguments_set_after_the_fit_do_not_change_predictions(model, tmp_path):
    changed = fit().set_params(objective="gamma", exposure=None)
    np.testing.assert_array_equal(changed.predict(X), model.predict(X))
    with pytest.raises(InvalidInputError, match=r"must be those of the fit.*'years'"):
        changed.save(tmp_path / "model")
    changed.set_params(exposure="years").save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))


def with_value(values, value, row=3):
    return np.concatenate([values[:row], [value], values[row + 1 :]]).astype(float)


GAMMA, TWEEDIE = {"objective": "gamma"}, {"objective": "tweedie"}
BAD_TARGETS = [
    (
        r"y \('claims'\) must be at least 0 for objective='poisson', got -1 in row 3\. Counts",
        pd.Series(with_value(CLAIMS, -1), name="claims"),
        {},
    ),
    (
        r"y must be above 0 for objective='gamma', got 0 in row 3\. Leave out rows .*'tweedie'",
        with_value(AMOUNTS["gamma"], 0),
        GAMMA,
    ),
    (
        rf"got 0 in row {np.argmin(CLAIMS > 0)} and {(CLAIMS == 0).sum() - 1} more\.",
        np.where(CLAIMS > 0, 1.0, 0.0),
        GAMMA,
    ),
    (
        r"y must be at least 0 for objective='tweedie', got -0\.5 in row 3\. Check the sign",
        with_value(AMOUNTS["tweedie"], -0.5),
        TWEEDIE,
    ),
    (
        r"y must have a positive total for objective='poisson', got 0 in every row .*Check the fil",
        np.zeros(N),
        {},
    ),
    (r"finite stand.*Rescale", AMOUNTS["gamma"] * 1e200, GAMMA),
    (
        r"exposure must name columns of X, got 'year'\. Did you mean 'years'\? X has 'area'",
        CLAIMS,
        {"exposure": "year"},
    ),
    (
        r"exposure needs a log link .*got 'years' with objective='mse'\. Use objective='poisson'",
        CLAIMS,
        {"objective": "mse"},
    ),
]


@pytest.mark.parametrize(("message", "y", "options"), BAD_TARGETS)
def test_bad_targets(message, y, options):
    with pytest.raises(InvalidInputError, match=message):
        fit(X, y, **options)


def test_what_is_missing_is_named_and_nothing_else():
    people = make_people()
    model = make_model("poisson", sensitive="sex", exposure="years")
    model.fit(people, make_targets(people)["poisson"])
    with pytest.raises(InvalidInputError, match=r"'years' \(exposure\) is missing") as caught:
        model.predict(people.drop(columns="years"))
    assert "'sex'" not in str(caught.value)
