"""fcorr beside LightGBM, EBM, a spline GLM and CatBoost: all tables, several seeds.

Run with ``make bench-tables``; the folder with the data is named by FCORR_DATA. It goes on where it
was interrupted: what benchmarks/results/tables.jsonl has is not fitted again, unless ``--fresh``.
``--tables``, ``--methods`` and ``--seeds`` choose, ``--threads 1`` gives each fit one thread.
Writes docs/tables/tables.md. Your own table, with a target of two values; what comes out lies
beside it::

    python -m benchmarks.tables --csv loans.csv --target default --sensitive sex

**Rows.** Adult, freMTPL2 and beMTPL97 have their usual test rows; of the others a fifth, stratified
by the target and drawn by the seed, is for testing. Every method gets the same remaining rows.
LightGBM and CatBoost take a quarter of them, drawn by the seed, to stop early, and predict with
the trees up to their best iteration there: they are not fitted again on all rows. EBM and fcorr
hold out rows as they see fit; the GLM chooses its penalty by cross-validation (above 50,000 rows on
a quarter held out), then fits all rows.

Defaults of fcorr for small tables were settled with the test rows of German in view, beside samples
of the training rows of Adult, credit and law: its figure there is no fair test.

**Methods.** fcorr has default arguments and is told the sensitive column; the others do without
that column, as a user would without fcorr. LightGBM: learning rate 0.05, 31 leaves, 15 below 50,000
rows; for claim counts a five-hundredth of the rows at least in a leaf, for claim amounts the
settings of paper/configs/claims.toml. EBM and CatBoost: defaults, but for two outer bags of EBM
above 500,000 rows. GLM: cubic splines of numbers, one-hot categories with at least ten rows, ridge
penalty.

**Measures.** Log loss and AUROC; for claim counts Poisson deviance in hundredths, for claim amounts
Tweedie deviance of power 1.5, both with the normalised Gini index. Lower losses are better.
"""

import argparse
import functools
import itertools
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, TweedieRegressor
from sklearn.metrics import log_loss, mean_poisson_deviance, mean_tweedie_deviance, roc_auc_score
from sklearn.model_selection import KFold, ShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from benchmarks.many_levels import make_many_levels
from fcorr.metrics import normalized_gini_score
from paper.datasets import load_adult, load_bemtpl97, load_fremtpl2
from paper.generators import make_claims

HERE = Path(__file__).parent
YEARS = "years"  # the column of X with the exposure, where there is one
BINARY, COUNTS, AMOUNTS, NUMBERS = "binary", "poisson", "tweedie", "mse"
CLASSES = "multiclass"  # three or more
POWER = 1.5
LOSSES = {
    BINARY: "log loss",
    CLASSES: "log loss",
    COUNTS: "Poisson deviance, ·10⁻²",
    AMOUNTS: "Tweedie deviance",
    NUMBERS: "mean squared error",
}
MANY_ROWS = 50_000
PENALTIES = [10.0**k for k in range(6, -5, -1)]  # beside a sum over the rows: scikit-learn's 1/C

Predict = Callable[[pd.DataFrame], np.ndarray]


@dataclass(frozen=True)
class Table:
    """Rows to learn from and to test on. `objective` is one of the keys of LOSSES."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    objective: str
    sensitive: str | None


# ------------------------------------------------------------------------------ tables


def published(load: Callable[..., Any], objective: str, sensitive: str | None, _: int) -> Table:
    data = load()
    X, X_test = (
        part.X if part.exposure is None else part.X.assign(**{YEARS: part.exposure})
        for part in (data.train, data.test)
    )
    return Table(X, data.train.y, X_test, data.test.y, objective, sensitive)


def split(X: pd.DataFrame, y: Any, sensitive: str | None, seed: int, objective=BINARY) -> Table:
    y = np.asarray(y)
    parts = train_test_split(X, y, test_size=0.2, stratify=strata(y, objective), random_state=seed)
    X_train, X_test, y_train, y_test = parts
    return Table(X_train, y_train, X_test, y_test, objective, sensitive)


def strata(y: np.ndarray, objective: str) -> np.ndarray:
    if objective == CLASSES:
        return y
    return y > (np.median(y) if objective == NUMBERS else 0)


def from_file(name: str, target: str, sensitive: str, seed: int) -> Table:
    path = Path(os.environ.get("FCORR_DATA", "")) / name / f"{name}.parquet"
    if not path.is_file():
        sys.exit(f"error: {path} is missing. FCORR_DATA must name the folder with the data.")
    frame = pd.read_parquet(path)
    return split(frame.drop(columns=target), frame[target], sensitive, seed)


def from_csv(path: Path, target: str, sensitive: str | None, seed: int) -> Table:
    frame = pd.read_csv(path)
    for column in filter(None, (target, sensitive)):
        if column not in frame:
            sys.exit(f"error: {path} has no column {column!r}; it has {', '.join(frame)}.")
    y, classes = pd.factorize(frame[target], sort=True)
    if len(classes) != 2 or (y < 0).any():
        sys.exit(f"error: {target!r} must have two values and none missing, got {len(classes)}.")
    return split(frame.drop(columns=target), y, sensitive, seed)


def claims(seed: int) -> Table:
    X, y = make_claims(random_state=seed)
    X = X.to_pandas()
    return split(X, y, "credit_score", seed, AMOUNTS)


def many_levels(seed: int) -> Table:
    X, y = make_many_levels(random_state=seed)
    return split(X.to_pandas(), y, "sex", seed)


TABLES: dict[str, Callable[[int], Table]] = {
    "german": functools.partial(from_file, "german", "bad", "sex"),
    "law": functools.partial(from_file, "law", "pass", "race"),
    "credit": functools.partial(from_file, "credit", "default", "SEX"),
    "adult": functools.partial(published, load_adult, BINARY, "race"),
    "many levels": many_levels,
    "beMTPL97": functools.partial(published, load_bemtpl97, COUNTS, "sex"),
    "freMTPL2": functools.partial(published, load_fremtpl2, COUNTS, None),
    "claims": claims,
}


# ------------------------------------------------------------------------------ methods


def fit_fcorr(table: Table, seed: int, threads: int) -> tuple[Predict, dict[str, Any]]:
    import torch

    from fcorr import FCorrClassifier, FCorrRegressor

    torch.set_num_threads(threads)
    options: dict[str, Any] = {"sensitive": table.sensitive, "random_state": seed}
    if table.objective in (BINARY, CLASSES):
        return positive(FCorrClassifier(**options).fit(table.X, table.y)), {}
    options |= {"objective": table.objective, "exposure": YEARS if YEARS in table.X else None}
    return FCorrRegressor(**options).fit(table.X, table.y).predict, {}


def as_peer(
    fit: Callable[..., tuple[Predict, dict[str, Any]]],
) -> Callable[[Table, int, int], tuple[Predict, dict[str, Any]]]:
    """Fit without the sensitive column, and frequencies weighted by exposure in place of counts."""

    def fit_peer(table: Table, seed: int, threads: int) -> tuple[Predict, dict[str, Any]]:
        left_out = [name for name in (table.sensitive, YEARS) if name in table.X]
        X = as_categories(table.X.drop(columns=left_out))
        weight = years(table.X)
        predict, found = fit(X, table.y / weight, weight, table.objective, seed, threads)
        features = list(X)

        def predict_counts(X: pd.DataFrame) -> np.ndarray:
            expected = predict(as_categories(X[features]))
            return years(X) * expected if YEARS in X else expected

        return predict_counts, found

    return fit_peer


def years(X: pd.DataFrame) -> np.ndarray:
    return X[YEARS].to_numpy() if YEARS in X else np.ones(len(X))


def as_categories(X: pd.DataFrame) -> pd.DataFrame:
    """Turn texts into categories; what is missing becomes a text of its own, for all peers."""
    texts = X.columns.difference(X.select_dtypes("number").columns)
    return X.assign(**{c: X[c].astype(object).fillna("missing").astype(str) for c in texts}).astype(
        dict.fromkeys(texts, "category")
    )


def early_stopping_rows(y: np.ndarray, objective: str, seed: int) -> list[np.ndarray]:
    options = {"stratify": strata(y, objective), "random_state": seed}
    return train_test_split(np.arange(len(y)), test_size=0.25, **options)


@as_peer
def fit_lightgbm(X, y, weight, objective, seed, threads):
    import lightgbm

    fitted, stopping = early_stopping_rows(y, objective, seed)
    options = {"objective": objective, "learning_rate": 0.05, "seed": seed, "verbose": -1}
    options |= {"num_leaves": 31 if len(X) >= MANY_ROWS else 15, "num_threads": threads}
    if objective == NUMBERS:
        options["objective"] = "regression"
    if objective == CLASSES:
        options["num_class"] = len(np.unique(y))
    if objective == COUNTS:
        options["min_data_in_leaf"] = len(X) // 500
    if objective == AMOUNTS:
        # Of paper/configs/claims.toml, chosen on other draws; 31 leaves stopped after 27 trees.
        options |= {"num_leaves": 7, "feature_fraction": 0.3, "tweedie_variance_power": POWER}
        options["min_data_in_leaf"] = min(1_000, len(X) // 20)
    learning, held_out = (
        lightgbm.Dataset(X.iloc[rows], y[rows], weight=weight[rows]) for rows in (fitted, stopping)
    )
    trees = lightgbm.train(
        options,
        learning,
        num_boost_round=5_000,
        valid_sets=[held_out],
        callbacks=[lightgbm.early_stopping(100, verbose=False)],
    )
    return trees.predict, {"best_iteration": trees.best_iteration}


@as_peer
def fit_ebm(X, y, weight, objective, seed, threads):
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    bags = 14 if len(X) <= 10 * MANY_ROWS else 2  # fourteen, the default, would take too long
    options = {"random_state": seed, "n_jobs": threads, "outer_bags": bags}
    if objective in (BINARY, CLASSES):
        return positive(ExplainableBoostingClassifier(**options).fit(X, y)), {"outer_bags": bags}
    loss = {COUNTS: "poisson_deviance", AMOUNTS: f"tweedie_deviance:variance_power={POWER}"}
    loss[NUMBERS] = "rmse"
    ebm = ExplainableBoostingRegressor(objective=loss[objective], **options)
    return ebm.fit(X, y, sample_weight=weight).predict, {"outer_bags": bags}


@as_peer
def fit_catboost(X, y, weight, objective, seed, threads):
    import catboost

    fitted, stopping = early_stopping_rows(y, objective, seed)
    loss = {BINARY: "Logloss", COUNTS: "Poisson", AMOUNTS: f"Tweedie:variance_power={POWER}"}
    loss |= {NUMBERS: "RMSE", CLASSES: "MultiClass"}
    has_classes = objective in (BINARY, CLASSES)
    pools = [
        catboost.Pool(X.iloc[rows], y[rows], weight=weight[rows], cat_features=texts_of(X))
        for rows in (fitted, stopping)
    ]
    kind = catboost.CatBoostClassifier if has_classes else catboost.CatBoostRegressor
    trees = kind(
        loss_function=loss[objective],
        random_seed=seed,
        thread_count=threads,
        verbose=False,
        allow_writing_files=False,
    ).fit(pools[0], eval_set=pools[1], early_stopping_rounds=100)
    found = {"best_iteration": trees.get_best_iteration()}
    if has_classes:
        return positive(trees), found
    if objective == NUMBERS:
        return trees.predict, found
    return lambda X: np.exp(trees.predict(X, prediction_type="RawFormulaVal")), found


@as_peer
def fit_glm(X, y, weight, objective, seed, threads):
    from threadpoolctl import threadpool_limits

    folds = KFold(5, shuffle=True, random_state=seed)
    if len(X) > MANY_ROWS:  # where a quarter is enough to choose by
        folds = ShuffleSplit(1, test_size=0.25, random_state=seed)
    with threadpool_limits(threads):
        parts = []
        for some, others in folds.split(X):
            features = spline_features(X.iloc[some])
            A, B = features.fit_transform(X.iloc[some]), features.transform(X.iloc[others])
            parts.append((A, y[some], weight[some], B, y[others], weight[others]))
        best, lowest = PENALTIES[0], np.inf
        for penalty in PENALTIES:
            loss = 0.0
            for A, y_some, w_some, B, y_others, w_others in parts:
                model = fit_linear(A, y_some, w_some, objective, penalty)
                loss += loss_of(objective, y_others, positive(model)(B), w_others)
            if loss > lowest:
                break  # smaller ones only follow the noise more closely, and take longer
            best, lowest = penalty, loss
        features = spline_features(X)
        model = fit_linear(features.fit_transform(X), y, weight, objective, best)
    return lambda X: positive(model)(features.transform(X)), {"penalty": best}


def spline_features(X: pd.DataFrame) -> Any:
    """Cubic splines with knots at quantiles of a number's distinct values, and one-hot texts."""
    one_hot = OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist")
    steps = [(one_hot, texts_of(X))]
    for name in X.columns.difference(texts_of(X), sort=False):
        distinct = np.unique(X[name].dropna())
        knots = np.unique(np.quantile(distinct, np.linspace(0, 1, 8)))
        if len(knots) < 2:
            continue  # a constant says nothing
        spline = SplineTransformer(knots=knots[:, None], include_bias=False)
        steps.append((make_pipeline(SimpleImputer(strategy="median"), spline), [name]))
    dense = X[texts_of(X)].nunique().sum() < 500 and len(steps) < 100
    return make_column_transformer(*steps, sparse_threshold=0 if dense else 1)


def fit_linear(A: Any, y: Any, weight: Any, objective: str, penalty: float) -> Any:
    # With many classes the Hessian is too large to be factorised time and again.
    is_small = isinstance(A, np.ndarray) and objective != CLASSES
    options = {"solver": "newton-cholesky" if is_small else "lbfgs", "max_iter": 1_000}
    if objective in (BINARY, CLASSES):
        model = LogisticRegression(C=1 / penalty, **options)
    elif objective == NUMBERS:
        model = Ridge(alpha=penalty)
    else:
        options["alpha"] = penalty / weight.sum()
        counts = objective == COUNTS
        model = PoissonRegressor(**options) if counts else TweedieRegressor(power=POWER, **options)
    with warnings.catch_warnings():
        # Next to no penalty, next to no curvature: the choice of the penalty will pass it by.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(A, y, sample_weight=weight)


def texts_of(X: pd.DataFrame) -> list[str]:
    return list(X.select_dtypes("category").columns)


def positive(model: Any) -> Predict:
    """Return what predicts the chance of the second of two classes, of each class, or a number."""
    if not hasattr(model, "predict_proba"):
        return model.predict
    if len(model.classes_) == 2:
        return lambda X: model.predict_proba(X)[:, 1]
    order = np.argsort(np.asarray(model.classes_, dtype=float))  # EBM sorts 10.0 before 2.0
    return lambda X: model.predict_proba(X)[:, order]


METHODS = {
    "fcorr": fit_fcorr,
    "LightGBM": fit_lightgbm,
    "EBM": fit_ebm,
    "GLM": fit_glm,
    "CatBoost": fit_catboost,
}
PACKAGES = {
    "fcorr": ("fcorr", "torch"),
    "LightGBM": ("lightgbm",),
    "EBM": ("interpret-core",),
    "GLM": ("scikit-learn",),
    "CatBoost": ("catboost",),
}


# ------------------------------------------------------------------------------ measurements


def loss_of(objective: str, y: np.ndarray, expected: np.ndarray, weight: Any = None) -> float:
    if objective in (BINARY, CLASSES):
        n_classes = 2 if expected.ndim == 1 else expected.shape[1]
        return float(log_loss(y, expected, sample_weight=weight, labels=range(n_classes)))
    if objective == COUNTS:
        return 100 * mean_poisson_deviance(y, expected, sample_weight=weight)
    if objective == NUMBERS:
        return float(np.average((y - expected) ** 2, weights=weight))
    return mean_tweedie_deviance(y, expected, power=POWER, sample_weight=weight)


def measure(name: str, table: Table, method: str, seed: int, threads: int) -> dict[str, Any]:
    start, cpu_start = time.perf_counter(), time.process_time()
    predict, found = METHODS[method](table, seed, threads)
    fit_seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    expected = np.asarray(predict(table.X_test), dtype=float)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        predict(table.X_test)
        seconds.append(time.perf_counter() - start)
    order = {}
    if table.objective == BINARY:
        order = {"auroc": float(roc_auc_score(table.y_test, expected))}
    elif table.objective in (COUNTS, AMOUNTS):
        at_risk = years(table.X_test)
        rates = table.y_test / at_risk, expected / at_risk
        order = {"gini": normalized_gini_score(*rates, sample_weight=at_risk)}
    return {
        "table": name,
        "method": method,
        "seed": seed,
        "measure": LOSSES[table.objective],
        "loss": loss_of(table.objective, table.y_test, expected),
        **order,
        "fit_seconds": fit_seconds,
        "fit_cpu_seconds": cpu_seconds,  # of this process: says how busy the machine was
        "rows_per_second": len(expected) / min(seconds),
        "threads": threads,
        "n_train": len(table.X),
        "n_features": table.X.shape[1],
        "n_test": len(expected),
        **found,
        "versions": {package: version(package) for package in PACKAGES[method]},
    }


def run(
    tables: dict[str, Callable[[int], Table]],
    methods: list[str],
    seeds: list[int],
    threads: int,
    done: set[tuple[str, str, int]],
) -> Iterator[dict[str, Any]]:
    for name, make in tables.items():
        for seed in seeds:
            left = [method for method in methods if (name, method, seed) not in done]
            table = make(seed) if left else None
            for method in left:
                yield measure(name, table, method, seed, threads)


# ------------------------------------------------------------------------------ documents


def write_tables(records: list[dict[str, Any]], path: Path) -> None:
    """Write losses with fcorr's ratios, then what tells how rows are ordered, then times."""
    found = {(r["table"], r["method"], r["seed"]): r for r in records}
    names = [n for n in TABLES if any(n == r["table"] for r in records)]
    names += sorted({r["table"] for r in records} - set(names))
    losses, orders, times = [], [], []
    for name in names:
        some = [r for r in records if r["table"] == name]
        by_method = {m: [r for r in some if r["method"] == m] for m in METHODS}
        ratios = {m: ratio(found, name, m) for m in METHODS if m != "fcorr"}
        of_three = [ratios[m] for m in ("LightGBM", "EBM", "GLM") if ratios[m] is not None]
        cells = [mean(by_method[m], "loss", ".4f") for m in METHODS]
        best = [max(of_three) if of_three else None, ratios["CatBoost"]]
        measured = f"{name}, {some[0]['measure']}"
        losses.append([measured, *cells, *("–" if r is None else f"{r:.4f}" for r in best)])
        order = "auroc" if "auroc" in some[0] else "gini"
        title = f"{name}, {'AUROC' if order == 'auroc' else 'normalised Gini'}"
        orders.append([title, *(mean(by_method[m], order, ".4f") for m in METHODS)])
        times.append([name, *(time_cell(by_method[m]) for m in METHODS)])
    heads = [
        ["test loss (seeds)", *METHODS, "fcorr ÷ best of LightGBM, EBM, GLM", "fcorr ÷ CatBoost"],
        ["test order (seeds)", *METHODS],
        ["fit, CPU seconds; threads", *METHODS],
    ]
    blocks = [to_markdown(h, rows) for h, rows in zip(heads, (losses, orders, times), strict=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(blocks))


def ratio(found: dict[tuple[str, str, int], Any], name: str, method: str) -> float | None:
    """Divide fcorr's mean loss by the method's, over the seeds that both have."""
    seeds = [s for (t, m, s) in found if (t, m) == (name, method) and (t, "fcorr", s) in found]
    if not seeds:
        return None
    ours, theirs = (sum(found[name, m, s]["loss"] for s in seeds) for m in ("fcorr", method))
    return ours / theirs


def mean(records: list[dict[str, Any]], field: str, digits: str) -> str:
    if not records:
        return "–"
    return f"{np.mean([r[field] for r in records]):{digits}} ({len(records)})"


def time_cell(records: list[dict[str, Any]]) -> str:
    threads = "/".join(str(n) for n in sorted({r["threads"] for r in records}))
    return f"{np.mean([r['fit_cpu_seconds'] for r in records]):.1f}; {threads}" if records else "–"


def to_markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="for each fit")
    parser.add_argument("--fresh", action="store_true", help="measure what was chosen again")
    parser.add_argument("--csv", type=Path, help="a table of your own, in place of ours")
    parser.add_argument("--target", help="the column of --csv to predict; it has two values")
    parser.add_argument("--sensitive", help="the sensitive column of --csv")
    options = parser.parse_args(arguments)
    tables = {name: TABLES[name] for name in options.tables}
    results, document = HERE / "results" / "tables.jsonl", HERE.parent / "docs/tables/tables.md"
    if options.csv:
        if not options.target:
            parser.error("--csv needs --target, the column to predict")
        own = functools.partial(from_csv, options.csv, options.target, options.sensitive)
        tables = {options.csv.stem: own}
        results = options.csv.with_suffix(".tables.jsonl")
        document = options.csv.with_suffix(".tables.md")
    records = read(results)
    if options.fresh:
        chosen = set(itertools.product(tables, options.methods, options.seeds))
        records = [r for r in records if (r["table"], r["method"], r["seed"]) not in chosen]
        results.write_text("".join(json.dumps(r) + "\n" for r in records))
    done = {(r["table"], r["method"], r["seed"]) for r in records}
    for record in run(tables, options.methods, options.seeds, options.threads, done):
        records.append(record)
        with results.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(json.dumps(record), flush=True)
    write_tables(records, document)
    print(document.read_text())


if __name__ == "__main__":
    main()
