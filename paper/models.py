"""Data and models of the experiments behind one face: fitted, a model scores any table."""

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcorr import FCorrClassifier, FCorrRegressor
from fcorr._core import require
from fcorr.estimators import Advanced
from fcorr.metrics import choose_threshold
from paper import datasets
from paper.augmentation import AugmentedClassifier, AugmentedRegressor
from paper.baselines.estimators import make_baseline
from paper.experiments import DataSettings, Run
from paper.generators import make_bank_fraud, make_claims, make_indirect_bias

Floats = NDArray[np.float64]
Score = Callable[[Any], Floats]
"""From a table, with all its columns, to probabilities of the second class or to predictions per
unit of exposure."""

EXPOSURE = "years"
"""Column of exposures, where there are some."""

# What the estimators did when nothing was said, as the records have it. The configurations do not
# name these, and records are found by what they name.
_ARGUMENTS: dict[str, Any] = {
    "head": (128, 128),
    "dropout": 0.1,
    "epochs": 20,
    "learning_rate": 0.02,
    "n_members": 1,
}
_ADVANCED: Advanced = {"main_effects": False, "n_knots": 64, "beta2": 0.95}
_TEST_SEED = 2**31  # added to a run's, so that no run learns from another's test rows
_MAKERS = {
    "indirect_bias": make_indirect_bias,
    "bank_fraud": make_bank_fraud,
    "claims": make_claims,
}
_STANDS_IN_FOR = {
    "bank_fraud": "Bank Account Fraud",
    **dict.fromkeys(("claims", "bemtpl97", "fremtpl2"), "InsurTech"),
}
_MOST_FEATURES = 100
_GRID_SIZE = 30  # of GridSearch, a little more than it recommends for five groups


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table; ``X``, a pandas frame, has the column ``years`` where ``exposed``."""

    X: Any
    y: NDArray[Any]
    exposed: bool = False

    def __len__(self) -> int:
        return len(self.y)

    @property
    def exposure(self) -> Floats | None:
        """Exposure of each row, such as years at risk."""
        return self.X[EXPOSURE].to_numpy(np.float64) if self.exposed else None

    def first(self, n_rows: int | None) -> "Rows":
        """Return so many of the rows, or all."""
        return Rows(self.X.iloc[:n_rows], self.y[:n_rows], self.exposed)


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from and to test on, and the paper's data that they stand in for, if any."""

    name: str
    stands_in_for: str
    train: Rows
    test: Rows


@functools.lru_cache(maxsize=2)
def load_split(settings: DataSettings, seed: int) -> Split:
    """Load or draw the rows of a run; those of a published table do not depend on the seed."""
    name = settings.name
    stands_in_for = _STANDS_IN_FOR.get(name, "")
    if name in _MAKERS:
        make: Any = _MAKERS[name]
        drawn = (
            make(settings.n_train, random_state=seed),
            make(settings.n_test, random_state=_TEST_SEED + seed),
        )
        return Split(make.__name__, stands_in_for, *(Rows(X.to_pandas(), y) for X, y in drawn))
    dataset = getattr(datasets, f"load_{name}")()
    parts = []
    for part, n_rows in ((dataset.train, settings.n_train), (dataset.test, settings.n_test)):
        exposed = part.exposure is not None
        X = part.X.assign(**{EXPOSURE: part.exposure}) if exposed else part.X
        parts.append(Rows(X, part.y, exposed).first(n_rows))
    return Split(dataset.name, stands_in_for, *parts)


@dataclass(frozen=True)
class Fitted:
    """A fitted model, and what a record holds of it.

    ``significance`` is that of each feature, by its measures ("significance"; of trees "split" and
    "gain"); ``attention`` the mean matrices of the first and, of several layers, of the last
    layer, with ``features`` as names of their rows; ``training`` epochs, λ and its first ratio.
    """

    score: Score
    n_parameters: int | None = None
    significance: dict[str, dict[str, float]] = field(default_factory=dict)
    attention: dict[str, Floats] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    training: dict[str, Any] = field(default_factory=dict)


def fit(run: Run, rows: Rows) -> Fitted:
    """Fit the model of a run; where columns are removed, it never sees them."""
    if run.kind == "fairlearn":
        return Fitted(_fit_mitigation(rows, run.sensitive[0], run.seed, **run.arguments))
    fit_one = _fit_trees if run.kind == "lightgbm" else _fit_network
    if not run.removed:
        return fit_one(run, rows, run.sensitive[0])
    columns = list(run.sensitive)
    found = fit_one(run, Rows(rows.X.drop(columns=columns), rows.y, rows.exposed), None)
    return Fitted(
        lambda X: found.score(X.drop(columns=columns)),
        found.n_parameters,
        found.significance,
        training=found.training,
    )


# ------------------------------------------------------------------------------ networks


@contextmanager
def expected_constants() -> Iterator[None]:
    """Expect columns that take one value, of which Bank Account Fraud has one.

    The paper's number of parameters comes out with it.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Columns that take one value only")
        yield


def make_network(run: Run, sensitive: str | None, *, exposed: bool = False) -> Any:
    """Make the estimator of a run, not fitted yet."""
    arguments = {**run.arguments, "random_state": run.seed}
    arguments.pop("bins", None)  # whoever fits it cuts the columns
    if sensitive is not None:
        arguments["sensitive"] = sensitive
    if run.kind not in ("printed", "fcorr"):
        return make_baseline(run.kind, run.task, **arguments)
    # The configurations, which records are found by, name these beside all other arguments.
    names = [name for name in arguments if name in Advanced.__annotations__]
    advanced = {**_ADVANCED, **{name: arguments.pop(name) for name in names}}
    is_augmented = arguments.pop("car_form", "") == "paper"
    if run.kind == "printed":
        advanced["numeric_embedding"] = "paper"
    if exposed:
        arguments["exposure"] = EXPOSURE
    classes: tuple[Any, Any] = FCorrClassifier, FCorrRegressor
    if is_augmented:
        classes = AugmentedClassifier, AugmentedRegressor
    cls = classes[run.task != "classification"]
    return cls(**{**_ARGUMENTS, **arguments}, advanced=advanced)


def _cut(X: Any, bins: Mapping[str, Sequence[float]]) -> Any:
    """Cut columns of numbers into groups; an edge belongs to the group above it."""
    return X.assign(**{name: np.digitize(X[name], edges) for name, edges in bins.items()})


def _fit_network(run: Run, rows: Rows, sensitive: str | None) -> Fitted:
    bins = run.arguments.get("bins", {})
    rows = Rows(_cut(rows.X, bins), rows.y, rows.exposed)
    with expected_constants():
        model = make_network(run, sensitive, exposed=rows.exposed).fit(rows.X, rows.y)
    history = model.history_
    attention, features = _attention(run, model, rows)
    return Fitted(
        (lambda X: model.predict_proba(_cut(X, bins))[:, 1])
        if run.task == "classification"
        else lambda X: model.predict_rate(_cut(X, bins)),
        sum(parameter.numel() for parameter in model.model_.parameters()),
        {"significance": model.feature_significance()} if features else {},
        attention,
        features,
        {
            "epochs": len(history.epochs),
            "car_weight": history.car_weight,
            "car_ratio": history.car_ratio,
            "last_car": history.epochs[-1].car,
            "engine": history.engine,
        },
    )


def _attention(run: Run, model: Any, rows: Rows) -> tuple[dict[str, Floats], tuple[str, ...]]:
    """Average attention over training rows; a network without any has none.

    Nobody could read a matrix of hundreds of features: the diagonal, their significance, is kept.
    """
    if run.kind == "ffn":
        return {}, ()
    if len(model.schema_.feature_names) > _MOST_FEATURES:
        return {}, tuple(model.schema_.feature_names)
    some = rows.first(10_000).X
    first = model.attention(some)
    found = {"first": first.values}
    n_layers = run.arguments.get("n_layers", 1)
    if n_layers > 1:
        found["last"] = model.attention(some, layer=n_layers - 1).values
    return found, first.names


# ------------------------------------------------------------------------------ LightGBM


def _fit_trees(run: Run, rows: Rows, sensitive: str | None) -> Fitted:
    score, model = fit_trees(rows, run.task, run.seed, **run.arguments)
    names = model.booster_.feature_name()
    return Fitted(
        score,
        significance={
            kind: dict(zip(names, model.booster_.feature_importance(kind).tolist(), strict=True))
            for kind in ("split", "gain")
        },
    )


def fit_trees(rows: Rows, task: str, seed: int, **arguments: Any) -> tuple[Score, Any]:
    """Fit LightGBM; of rows with exposure, the frequency by its Poisson objective."""
    lightgbm = require("lightgbm", extra="bench", purpose="python -m paper")
    cls = lightgbm.LGBMClassifier if task == "classification" else lightgbm.LGBMRegressor
    model = cls(
        random_state=seed,
        n_jobs=1,
        deterministic=True,
        force_row_wise=True,
        bin_construct_sample_cnt=max(200_000, len(rows)),  # all: no seed plays a part
        verbose=-1,
        **arguments,
    )
    if rows.exposure is not None:
        frequency = rows.y / rows.exposure
        model.fit(rows.X.drop(columns=EXPOSURE), frequency, sample_weight=rows.exposure)
        return lambda X: model.predict(X.drop(columns=EXPOSURE)), model
    model.fit(rows.X, rows.y)
    if task == "classification":
        return lambda X: model.predict_proba(X)[:, 1], model
    return model.predict, model


@functools.lru_cache(maxsize=4)
def papers_threshold(settings: DataSettings, seed: int) -> float:
    """Return the threshold of LightGBM's best F1 on the training rows, the paper's protocol."""
    train = load_split(settings, seed).train
    score, _ = fit_trees(train, "classification", seed, n_estimators=settings.n_trees)
    return choose_threshold(train.y, score(train.X), rule="f1")


# ------------------------------------------------------------------------------ fairlearn


def _fit_mitigation(
    rows: Rows, sensitive: str, seed: int, *, method: str, constraint: str, **arguments: Any
) -> Score:
    """Fit a mitigation of fairlearn round LightGBM, which sees all columns.

    The scores are the probabilities of a positive decision: some mitigations draw their decisions.
    """
    lightgbm = require("lightgbm", extra="bench", purpose="python -m paper")
    reductions = require("fairlearn.reductions", extra="bench", purpose="python -m paper")
    trees = lightgbm.LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1, **arguments)
    groups = rows.X[sensitive]
    if method == "ThresholdOptimizer":
        module = require("fairlearn.postprocessing", extra="bench", purpose="python -m paper")
        optimizer = module.ThresholdOptimizer(
            estimator=trees, constraints=constraint, predict_method="predict_proba"
        )
        optimizer.fit(rows.X, rows.y, sensitive_features=groups)
        return lambda X: _decision_probabilities(optimizer, X, X[sensitive])
    moment = getattr(reductions, constraint)()
    if method == "GridSearch":
        search = reductions.GridSearch(trees, constraints=moment, grid_size=_GRID_SIZE)
        search.fit(rows.X, rows.y, sensitive_features=groups)
        return lambda X: search.predict_proba(X)[:, 1]
    gradient = reductions.ExponentiatedGradient(trees, constraints=moment)
    gradient.fit(rows.X, rows.y, sensitive_features=groups)
    # One of its predictors is drawn for each row, with these weights.
    drawn = [(weight, gradient.predictors_[i]) for i, weight in gradient.weights_.items() if weight]
    return lambda X: np.sum([weight * each.predict(X) for weight, each in drawn], axis=0)


def _decision_probabilities(optimizer: Any, X: Any, groups: Any) -> Floats:
    """Return with which probability a ThresholdOptimizer decides positive.

    Each group has two thresholds, of which one is drawn, and perhaps a decision by chance alone.
    """
    thresholder = optimizer.interpolated_thresholder_
    scores = thresholder.estimator_.predict_proba(X)[:, 1]
    found = np.zeros(len(scores))
    for group, rule in thresholder.interpolation_dict.items():
        decided = rule.p0 * rule.operation0(scores) + rule.p1 * rule.operation1(scores)
        if "p_ignore" in rule:
            decided = rule.p_ignore * rule.prediction_constant + (1 - rule.p_ignore) * decided
        own = (groups == group).to_numpy()
        found[own] = decided[own]
    return found
