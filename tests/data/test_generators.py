"""The generated tables: their shape, and each dependence or absence their docstrings promise."""

from collections.abc import Callable
from functools import partial, update_wrapper

import numpy as np
import pyarrow as pa
import pytest

from fcorr._core import InvalidInputError
from fcorr.data.generators import PROXY_SHIFT, TRUE_EFFECTS, make_proxy_bias
from paper.generators import make_indirect_bias

# By its own name, which messages start with.
make_proxy_classes = update_wrapper(
    partial(make_proxy_bias, task="classification"), make_proxy_bias
)
GENERATORS = [make_indirect_bias, make_proxy_bias, make_proxy_classes]

# Estimates may be this many standard errors off. About 1,500 are compared with fixed seeds: a right
# generator would fail once in a hundred choices of the seeds, a wrong one is off by far more.
TOLERANCE = 4.5


def labels(X: pa.Table, name: str) -> np.ndarray:
    column = X[name].combine_chunks()
    return np.array(column.dictionary.to_pylist())[column.indices.to_numpy()]


def numbers(X: pa.Table, name: str) -> np.ndarray:
    return X[name].to_numpy().astype(float)


def fit_logistic(design: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit by Newton's method; return the coefficients and their standard errors."""
    coefficients = np.zeros(design.shape[1])
    for _ in range(12):
        probability = 1 / (1 + np.exp(-design @ coefficients))
        root_weight = np.sqrt(probability * (1 - probability))
        scaled = design * root_weight[:, None]
        information = scaled.T @ scaled
        step = np.linalg.solve(information, design.T @ (y - probability))
        coefficients += step
        if np.abs(step).max() < 1e-8:
            break
    return coefficients, np.sqrt(np.diag(np.linalg.inv(information)))


def fit_linear(design: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    gram = design.T @ design
    coefficients = np.linalg.solve(gram, design.T @ y)
    variance = np.mean((y - design @ coefficients) ** 2)
    return coefficients, np.sqrt(variance * np.diag(np.linalg.inv(gram)))


def check_effects(
    fit: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    terms: dict[str, tuple[np.ndarray, float]],
    y: np.ndarray,
) -> None:
    """Hold the fitted effect of each term against the planted one, for all terms at once."""
    columns = [values - values.mean() for values, _ in terms.values()]
    design = np.column_stack([np.ones(len(y)), *columns]).astype(float)
    estimates, errors = (result[1:] for result in fit(design, y))
    planted = np.array([effect for _, effect in terms.values()])
    off = np.abs(estimates - planted) / errors
    assert {t: o for t, o in zip(terms, off, strict=True) if o > TOLERANCE} == {}
    # The sample must be able to tell each planted effect from none, or the check above is idle.
    strength = np.abs(estimates) / errors
    unseen = [t for t, p, s in zip(terms, planted, strength, strict=True) if p and s < TOLERANCE]
    assert unseen == []


# ------------------------------------------------------------------------------ all generators


@pytest.mark.parametrize("make", GENERATORS)
def test_same_seed_gives_the_same_data(make):
    (X, y), (X_again, y_again) = make(300, random_state=7), make(300, random_state=7)
    assert X_again.equals(X)
    assert y_again.tobytes() == y.tobytes()
    few, _ = make(20, random_state=0)
    # All categories are declared, in one order, even where 20 rows miss some.
    assert few.schema == X.schema
    for field in X.schema:
        if pa.types.is_dictionary(field.type):
            assert few[field.name].chunk(0).dictionary == X[field.name].chunk(0).dictionary


@pytest.mark.parametrize("make", GENERATORS)
def test_seeds_matter_and_generators_advance(make):
    assert not make(2_000, random_state=1)[0].equals(make(2_000, random_state=2)[0])
    rng = np.random.default_rng(0)
    assert not make(50, random_state=rng)[0].equals(make(50, random_state=rng)[0])
    X, y = make(1)  # without a seed, and one row is enough
    assert X.num_rows == len(y) == 1


TASKS_ARE = "task must be 'regression' or 'classification', got 'regresion'."
REFUSED = [
    *(
        (make, {"n_rows": n_rows}, f"n_rows must be an integer of at least 1, got {n_rows!r}.")
        for make in GENERATORS
        for n_rows in (0, -5, 2.5, True, "10")
    ),
    (make_proxy_bias, {"task": "regresion"}, f"{TASKS_ARE} Did you mean 'regression'?"),
]


@pytest.mark.parametrize(("make", "arguments", "message"), REFUSED)
def test_refused(make, arguments, message):
    with pytest.raises(InvalidInputError) as caught:
        make(**{"n_rows": 5, **arguments})
    assert str(caught.value) == message


# ---------------------------------------------------------------------------- make_proxy_bias

TASKS = {"regression": fit_linear, "classification": fit_logistic}


def proxy_terms(X: pa.Table, effects: dict[str, float]) -> dict[str, tuple[np.ndarray, float]]:
    """Return the columns as numbers, beside the effects they should have."""
    values = {
        name: labels(X, name) == "yes" if name in ("S", "X3") else numbers(X, name)
        for name in X.column_names
    }
    return {name: (values[name].astype(float), effect) for name, effect in effects.items()}


class TestProxyBias:
    def test_half_of_the_rows_are_positive_and_the_table_does_not_depend_on_the_task(self):
        X, y = make_proxy_bias(100_000, task="classification", random_state=0)
        assert y.mean() == pytest.approx(0.5, abs=TOLERANCE * 0.5 / np.sqrt(100_000))
        assert X.equals(make_proxy_bias(100_000, random_state=0)[0])

    @pytest.mark.parametrize("seed", [0, 1])
    @pytest.mark.parametrize("task", TASKS)
    def test_with_the_sensitive_feature_the_proxy_has_no_effect(self, task, seed):
        X, y = make_proxy_bias(20_000, task=task, random_state=seed)
        check_effects(TASKS[task], proxy_terms(X, TRUE_EFFECTS), y)

    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_without_it_least_squares_finds_the_spurious_effect(self, seed):
        X, y = make_proxy_bias(20_000, random_state=seed)
        spurious = TRUE_EFFECTS["S"] * PROXY_SHIFT / (4 + PROXY_SHIFT**2)
        assert spurious * np.sqrt(1 + PROXY_SHIFT**2 / 4) > 0.8  # beside 1 of X1
        unaware = {name: e for name, e in TRUE_EFFECTS.items() if name != "S"} | {"Z": spurious}
        check_effects(fit_linear, proxy_terms(X, unaware), y)

    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_without_it_logistic_regression_finds_a_spurious_effect(self, seed):
        X, y = make_proxy_bias(20_000, task="classification", random_state=seed)
        terms = proxy_terms(X, TRUE_EFFECTS)
        columns = [(v - v.mean()) / v.std() for name, (v, _) in terms.items() if name != "S"]
        coefficients, _ = fit_logistic(np.column_stack([np.ones(len(y)), *columns]), y)
        of_z, of_x1 = coefficients[1], coefficients[2]
        assert of_z > 0.8 * of_x1 > 0.5

    def test_ties_between_the_features_and_noise_of_variance_one(self):
        X, y = make_proxy_bias(50_000, random_state=0)
        terms = proxy_terms(X, TRUE_EFFECTS)
        rest = y - sum(effect * (v - v.mean()) for v, effect in terms.values())
        assert rest.mean() == pytest.approx(0, abs=TOLERANCE / np.sqrt(50_000))
        assert rest.std() == pytest.approx(1, abs=TOLERANCE / np.sqrt(2 * 50_000))
        values = {name: v for name, (v, _) in terms.items()}
        correlation = np.corrcoef(list(values.values()))
        assert correlation[0, 1] == pytest.approx(0.832, abs=0.01)
        correlation[[0, 1], [1, 0]] = 0
        np.testing.assert_allclose(correlation - np.eye(5), 0, atol=TOLERANCE / np.sqrt(50_000))
        for group in (0, 1):
            z = values["Z"][values["S"] == group]
            assert z.mean() == pytest.approx(PROXY_SHIFT * group, abs=TOLERANCE / np.sqrt(len(z)))
            assert z.std() == pytest.approx(1, abs=TOLERANCE / np.sqrt(2 * len(z)))
