"""What must hold for every metric: each is listed once, and each invariant runs over the list."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import fcorr.metrics
from fcorr.metrics import FlippedScores, LorenzCurve, PopulationBound

Table = dict[str, Any]


@dataclass(frozen=True)
class Spec:
    """How a metric is called, and how it answers to larger scores and amounts."""

    columns: tuple[str, ...]
    grouped: bool = False
    weighted: bool = True
    repeated: bool = True
    """Whether a row of weight 2 is two rows."""
    options: Mapping[str, Any] = field(default_factory=dict)
    degree: float | None = None
    """The value is multiplied by k**degree when scores and amounts are by k; None: by no rule."""


DECISIONS = ("classes", "decisions")
REGISTRY = {
    "choose_threshold": Spec(("classes", "scores"), degree=1),
    "normalized_gini_score": Spec(("amounts", "predicted"), degree=0),
    "lorenz_curve": Spec(("amounts", "predicted"), degree=0),
    "lift_table": Spec(("amounts", "predicted")),
    "lift_table, double": Spec(("amounts", "predicted", "expected")),
    "group_rates": Spec(DECISIONS, grouped=True),
    # With claims per exposure, a weight is an exposure and no repetition.
    "actual_over_expected": Spec(("counts", "expected"), grouped=True, repeated=False),
    "demographic_parity_difference": Spec(("amounts", "predicted"), grouped=True, degree=1),
    "demographic_unfairness": Spec(("predicted",), grouped=True, degree=0),
    "proxy_discrimination": Spec(("predicted", "estimates"), degree=0),
    "equalized_odds_difference": Spec(DECISIONS, grouped=True),
    "equal_opportunity_difference": Spec(DECISIONS, grouped=True),
    "average_individual_fairness": Spec(("flips",), degree=1),
    "flip_changes": Spec(("flipped_amounts",), degree=1),
    "decisions_flipped": Spec(("flips",)),
    # It takes no weights: counts of weighted rows are not binomial.
    "population_bound": Spec(("changes",), weighted=False, options={"alpha": 0.1}, degree=1),
}
# What is no metric: results, which are classes, and what makes or wraps metrics.
NO_METRICS = {"bootstrap_interval", "flip_scores", "nearest_admissible"} | {
    name for name in fcorr.metrics.__all__ if name[0].isupper()
}
N_ROWS = 61  # odd, so that no vector unit divides it


def make_table(seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.arange(N_ROWS) % 2)
    # Few distinct scores: ties are where weights and row order go wrong.
    scores = np.round(rng.random(N_ROWS) + 0.3 * classes, 1)
    amounts = rng.gamma(1, 100, N_ROWS) * (rng.random(N_ROWS) < 0.5)
    predicted = np.round(amounts + rng.gamma(1, 100, N_ROWS), -1)
    codes = rng.permutation(np.arange(N_ROWS) % 3)
    flipped = np.round(scores[:, None] + rng.normal(0, 0.2, (N_ROWS, 3)), 1)
    # One of the two as for a measurement, where the rows as they are have scores of their own.
    flipped_amounts = FlippedScores(("a", "b", "c"), codes, 100 * flipped, 100 * scores)
    return {
        "classes": classes,
        "scores": scores,
        "decisions": (scores > 0.6).astype(int),
        "amounts": amounts,
        "predicted": predicted,
        "expected": 20 + predicted,
        "counts": (amounts // 100).astype(int),
        "groups": np.array(["a", "b", "c"])[codes],
        "flips": FlippedScores(("a", "b", "c"), codes, flipped),
        "flipped_amounts": flipped_amounts,
        "changes": flipped_amounts.changes,
        "estimates": FlippedScores(("a", "b", "c"), codes, amounts[:, None] + 100 * flipped),
    }


def change(table: Table, array: Callable[..., Any], flips: Callable[..., Any]) -> Table:
    return {
        name: flips(column) if isinstance(column, FlippedScores) else array(column)
        for name, column in table.items()
    }


def take(table: Table, rows: Any) -> Table:
    return change(table, lambda column: column[rows], lambda column: column.take(rows))


def call(function: Callable[..., Any], spec: Spec, table: Table, weight: Any = None) -> Any:
    options = dict(spec.options)
    if spec.grouped:
        options["sensitive_features"] = table["groups"]
    if weight is not None:
        options["sample_weight"] = weight
    return function(*(table[name] for name in spec.columns), **options)


def evaluate(function: Callable[..., Any], spec: Spec, table: Table, weight: Any = None) -> Any:
    value = call(function, spec, table, weight)
    if isinstance(value, PopulationBound):
        return np.array(value.epsilon)
    if isinstance(value, dict | LorenzCurve):
        parts = value if isinstance(value, dict) else value.to_dict()
        return np.concatenate([np.ravel(part) for part in parts.values()])
    lines = getattr(value, "rows", value)
    if isinstance(lines, list | tuple):  # of groups, whose order is that of their names, or of bins
        # without the number of rows, which alone tells a weight from a repetition
        no_number = ("n", "group")
        found = [[v for k, v in asdict(line).items() if k not in no_number] for line in lines]
        return np.sort(found, axis=0)
    return np.array(value)


def assert_equal(actual: Any, expected: Any) -> None:
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-13)


def check_row_order(function: Any, spec: Spec, table: Table) -> None:
    order = np.random.default_rng(1).permutation(N_ROWS)
    assert_equal(evaluate(function, spec, take(table, order)), evaluate(function, spec, table))


def check_unit_weights(function: Any, spec: Spec, table: Table) -> None:
    weighted = evaluate(function, spec, table, np.ones(N_ROWS))
    assert_equal(weighted, evaluate(function, spec, table))


def check_weight_is_repetition(function: Any, spec: Spec, table: Table) -> None:
    weight = np.random.default_rng(2).integers(1, 4, N_ROWS)
    repeated = take(table, np.repeat(np.arange(N_ROWS), weight))
    assert_equal(evaluate(function, spec, table, weight), evaluate(function, spec, repeated))


def check_zero_weight_is_removal(function: Any, spec: Spec, table: Table) -> None:
    """To the last bit, with the same groups and counts, whatever the rows of weight 0 hold."""
    rng = np.random.default_rng(3)
    is_kept = rng.random(N_ROWS) < 0.7
    weight = is_kept * (rng.uniform(0.5, 2, N_ROWS) if spec.repeated else 1.0)
    groups = np.where(is_kept, table["groups"], "z")  # one of them has no other rows
    spoilt = change(
        {name: column for name, column in table.items() if name != "groups"},
        lambda column: np.where(is_kept, column, np.nan),
        lambda flips: replace(flips, scores=np.where(is_kept[:, None], flips.scores, 1e6)),
    )
    found = call(function, spec, spoilt | {"groups": groups}, weight)
    removed = call(function, spec, take(table, is_kept), weight[is_kept])
    if isinstance(found, LorenzCurve):  # which has no equality
        found, removed = found.to_dict(), removed.to_dict()
    assert repr(found) == repr(removed)  # where nan equals nan


def check_category_names(function: Any, spec: Spec, table: Table) -> None:
    order = np.array([2, 0, 1])
    rename = {"a": "z", "b": "y", "c": "x"}

    def rearrange(flips: FlippedScores) -> FlippedScores:
        categories = tuple(flips.categories[j] for j in order)
        return replace(
            flips,
            categories=categories,
            original=np.argsort(order)[flips.original],
            scores=flips.scores[:, order],
        )

    renamed = change(table, lambda column: column, rearrange)
    renamed["groups"] = np.array([rename[group] for group in table["groups"]])
    assert_equal(evaluate(function, spec, renamed), evaluate(function, spec, table))


def check_scale(function: Any, spec: Spec, table: Table) -> None:
    assert spec.degree is not None
    factor = 4
    scaled = change(
        table,
        lambda column: column * factor if column.dtype == float else column,
        lambda flips: FlippedScores(
            flips.categories, flips.original, flips.scores * factor, flips.factual * factor
        ),
    )
    expected = evaluate(function, spec, table) * factor**spec.degree
    assert_equal(evaluate(function, spec, scaled), expected)


def check_no_change_is_zero(function: Any, spec: Spec, table: Table) -> None:
    rng = np.random.default_rng(4)
    scores = rng.choice(rng.random(20), N_ROWS)  # full mantissas, and ties among them
    for name in ("flips", "flipped_amounts"):
        same = np.repeat(scores[:, None], 3, axis=1)
        table[name] = FlippedScores(("a", "b", "c"), table[name].original, same, scores)
    for weight in (None, rng.random(N_ROWS)):
        value = evaluate(function, spec, table, weight)
        assert (value == 0.0).all(), f"exactly 0 expected, got {value}"


def has_categories(spec: Spec) -> bool:
    return spec.grouped or looks_at_flips(spec) or "estimates" in spec.columns


def looks_at_flips(spec: Spec) -> bool:
    return any("flip" in column for column in spec.columns)


# Each check, and the metrics to which it applies.
CHECKS: dict[Callable[..., None], Callable[[Spec], bool]] = {
    check_row_order: lambda spec: True,
    check_unit_weights: lambda spec: spec.weighted,
    check_weight_is_repetition: lambda spec: spec.weighted and spec.repeated,
    check_zero_weight_is_removal: lambda spec: spec.weighted,
    check_category_names: has_categories,
    check_scale: lambda spec: spec.degree is not None,
    check_no_change_is_zero: looks_at_flips,
}
CASES = [
    pytest.param(check, name, id=f"{check.__name__}-{name}")
    for check, applies in CHECKS.items()
    for name, spec in REGISTRY.items()
    if applies(spec)
]


@pytest.mark.parametrize(("check", "name"), CASES)
def test_invariant(check: Callable[..., None], name: str) -> None:
    check(getattr(fcorr.metrics, name.split(",")[0]), REGISTRY[name], make_table())


def test_every_public_name_is_registered_or_no_metric() -> None:
    registered = {name.split(",")[0] for name in REGISTRY}
    assert set(fcorr.metrics.__all__) == registered | NO_METRICS
    assert not set(REGISTRY) & NO_METRICS


def signed_difference(y_true: Any, y_pred: Any, sensitive_features: Any) -> float:
    groups = np.unique(sensitive_features)
    first, *_, last = [float(np.mean(y_pred[sensitive_features == group])) for group in groups]
    return first - last


def first_category_only(flips: FlippedScores, sample_weight: Any = None) -> float:
    return float(np.mean(np.abs(flips.scores[:, 0] - flips.scores[:, 1])))


def deaf_to_weights(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    return float(np.mean(y_pred))


AMOUNTS, GROUPS = Spec(("amounts", "predicted"), degree=1), Spec(("amounts", "predicted"), True)
FLIPS = Spec(("flips",))
BROKEN = [
    (check_row_order, lambda y, y_pred: y_pred[0] + np.arange(len(y_pred)) @ y_pred, AMOUNTS),
    (check_unit_weights, lambda y, y_pred, sample_weight=None: sample_weight is None, AMOUNTS),
    (check_weight_is_repetition, deaf_to_weights, AMOUNTS),
    (check_zero_weight_is_removal, deaf_to_weights, AMOUNTS),
    (check_category_names, signed_difference, GROUPS),
    (check_category_names, first_category_only, FLIPS),
    (check_scale, lambda y, y_pred: np.mean((y - y_pred) ** 2), AMOUNTS),
    (check_no_change_is_zero, lambda flips: first_category_only(flips) + 1e-17, FLIPS),
]


@pytest.mark.parametrize(("check", "broken", "spec"), BROKEN)
def test_a_broken_metric_fails(check: Any, broken: Any, spec: Spec) -> None:
    with pytest.raises(AssertionError):
        check(broken, spec, make_table())


def test_every_check_has_been_seen_to_fail() -> None:
    assert {check for check, *_ in BROKEN} == set(CHECKS)


@pytest.mark.parametrize("name", [name for name in REGISTRY if name.endswith("_score")])
def test_a_score_is_higher_for_the_truth(name: str) -> None:
    table, function = make_table(), getattr(fcorr.metrics, name)
    truth, prediction = (table[column] for column in REGISTRY[name].columns)
    assert function(truth, truth) > function(truth, prediction)
