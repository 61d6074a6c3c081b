"""The clocks. Every function yields records, which are all that the tables are made from."""

import gc
import io
import os
import platform
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.speed.data import (
    N_KNOTS,
    SENSITIVE,
    Data,
    make_data,
    make_frame,
    make_wide_data,
)
from benchmarks.speed.memory import peak_of
from benchmarks.speed.models import Step, make_step, rows_per_step
from benchmarks.speed.plan import Plan, Setting
from fcorr import FCorrClassifier, FCorrRegressor
from fcorr.data import encode, infer_schema, read_table
from fcorr.nn.layers import choose_knots
from fcorr.training.rows import chunk_rows, start_workers

Record = dict[str, Any]
_PACKAGES = (
    *("fcorr", "torch", "numpy", "pandas", "pyarrow", "scikit-learn", "numba"),
    *("lightgbm", "rtdl_revisiting_models"),
)


def describe_setup() -> Record:
    """Record what the figures depend on besides the code."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return {
        "kind": "setup",
        "processor": platform.machine(),
        "vector_instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": versions,
    }


# --------------------------------------------------------------------------------------- steps


def time_steps(plan: Plan) -> Iterator[Record]:
    """Time training steps of all models in both settings."""
    for setting in plan.settings:
        data = make_data(setting)
        where = {"kind": "step", "setting": setting.name}
        yield from _time_models(plan, plan.step_models, data, setting.batch, where)


def time_scaling(plan: Plan) -> Iterator[Record]:
    """Time training steps against the number of features."""
    for p in plan.scaling_p:
        data = make_wide_data(p, plan.scaling_pool)
        yield from _time_models(
            plan, plan.scaling_models, data, plan.scaling_batch, {"kind": "scaling"}
        )


def _time_models(
    plan: Plan, names: tuple[str, ...], data: Data, batch: int, where: Record
) -> Iterator[Record]:
    where = where | {"p": data.n_features, "categories": data.cardinalities[0], "batch": batch}
    steps: dict[str, Step] = {}
    n_repeats: dict[str, int] = {}
    for name in names:
        n_rows = rows_per_step(name, data, batch, plan.most_entries)
        if n_rows == 0:
            reason = f"one row's attention has more than {plan.most_entries:,} entries"
            yield where | {"model": name, "skipped": reason}
            continue
        step = make_step(name, data, n_rows)
        step.run()  # allocates, and compiles what there is to compile
        seconds = _seconds(step.run)
        if seconds > plan.longest_step:
            reason = f"a step of {n_rows} rows took {seconds:.0f} s"
            yield where | {"model": name, "skipped": reason}
            continue
        steps[name] = step
        n_repeats[name] = max(1, round(plan.slice_seconds / seconds))
        if seconds < plan.slice_seconds:
            for _ in range(plan.n_warm_up):
                step.run()
    runs = {name: step.run for name, step in steps.items()}
    for name, seconds_by_round in _round_robin(runs, n_repeats, plan.rounds).items():
        yield where | {
            "model": name,
            "rows": steps[name].n_rows,
            "parameters": steps[name].n_parameters,
            "seconds": seconds_by_round,
        }


def _round_robin(
    runs: Mapping[str, Callable[[], object]], n_repeats: Mapping[str, int], n_rounds: int
) -> dict[str, list[float]]:
    """Return the seconds of one run, per round; every round gives every model a turn.

    The order changes from round to round, so that none always follows the same neighbour. What
    else the machine does hits all models alike, and the median over rounds leaves it out.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    shuffler = random.Random(0)
    for _ in range(n_rounds):
        order = list(runs)
        shuffler.shuffle(order)
        for name in order:
            seconds[name].append(_seconds(runs[name], n_repeats[name]))
    return seconds


def _seconds(run: Callable[[], object], n_repeats: int = 1) -> float:
    gc.collect()
    start = time.perf_counter()
    for _ in range(n_repeats):
        run()
    return (time.perf_counter() - start) / n_repeats


# -------------------------------------------------------------------------------------- memory


def measure_memory(plan: Plan) -> Iterator[Record]:
    """Measure the peak memory of steps, each model in its own process.

    Where a model cannot take the whole batch it is measured at two smaller numbers of rows: memory
    grows by the same amount with every row, so that the two give the whole batch's.
    """
    with tempfile.TemporaryDirectory() as folder:
        for setting in plan.settings:
            data = make_data(setting)
            data_file = Path(folder) / f"{setting.name}.pt"
            data.save(data_file)
            for name in plan.memory_models:
                where = {"kind": "memory", "setting": setting.name, "model": name}
                where |= {"batch": setting.batch}
                n_rows = rows_per_step(name, data, setting.batch, plan.most_entries)
                sizes = [n_rows] if n_rows == setting.batch else [n_rows // 2, n_rows]
                for size in sizes:
                    if size == 0:
                        yield where | {"skipped": "too large for one row"}
                        break
                    try:
                        peak = peak_of(data_file, name, size)
                    except MemoryError as error:
                        yield where | {"rows": size, "skipped": str(error)}
                        break
                    yield where | {"rows": size, "peak_bytes": peak}


# ------------------------------------------------------------------------------------- scoring


def time_scoring(plan: Plan) -> Iterator[Record]:
    """Time the scoring of new rows, from a pandas frame and from encoded arrays."""
    for setting in plan.settings:
        runs, n_leaves = make_scorers(setting)
        for run in runs.values():
            run()
        once = dict.fromkeys(runs, 1)
        where = {"kind": "scoring", "setting": setting.name, "rows": setting.n_score}
        where |= {"leaves": n_leaves}
        for name, seconds in _round_robin(runs, once, plan.rounds).items():
            model, source = name.split()
            yield where | {"model": model, "source": source, "seconds": seconds}


def make_scorers(
    setting: Setting,
) -> tuple[dict[str, Callable[[], NDArray[Any] | torch.Tensor]], float]:
    """Fit both models to the same rows; return ways to score others, and LightGBM's mean leaves."""
    X, y = make_frame(setting.name, setting.n_fit)
    X_new, _ = make_frame(setting.name, setting.n_score, seed=1)
    fcorr_model = _estimator(setting, epochs=1).fit(X, y)
    trees = _lightgbm(setting).fit(X, y)
    score_frame = "predict_proba" if setting.name == "bank_fraud" else "predict"
    network = fcorr_model.model_
    encoded = encode(read_table(X_new), fcorr_model.schema_)
    tensors = torch.from_numpy(encoded.codes), torch.from_numpy(encoded.numbers)
    floats = as_floats(X_new)
    booster, threads = trees.booster_, torch.get_num_threads()
    leaves = [tree["num_leaves"] for tree in booster.dump_model()["tree_info"]]

    def score_arrays() -> torch.Tensor:
        size = chunk_rows(sum(each.shape[1] for each in tensors))
        with start_workers(tensors[1].numel()) as workers:
            chunks = zip(*(each.split(size) for each in tensors), strict=True)
            return torch.cat([*workers.map(lambda chunk: network.score(*chunk), chunks)])

    runs = {
        "fcorr frame": partial(getattr(fcorr_model, score_frame), X_new),
        "lightgbm frame": partial(getattr(trees, score_frame), X_new),
        "fcorr arrays": score_arrays,
        "lightgbm arrays": lambda: booster.predict(floats, num_threads=threads),
    }
    return runs, float(np.mean(leaves))


def as_floats(X: Any) -> NDArray[np.float32]:
    """Return the frame as LightGBM's booster takes it: categories as codes, one float each."""
    columns = [X[c].cat.codes if X[c].dtype == "category" else X[c] for c in X.columns]
    return np.column_stack([column.to_numpy(np.float32) for column in columns])


# -------------------------------------------------------------------------------------- epochs


def time_epochs(plan: Plan) -> Iterator[Record]:
    """Time the estimators' epochs on whole tables, what comes before them, and LightGBM's fit."""
    for setting in plan.settings:
        X, y = make_frame(setting.name, setting.n_epoch)
        where = {"setting": setting.name, "rows": setting.n_epoch, "p": X.shape[1]}
        for _ in range(3):
            yield where | {"kind": "encoding"} | _time_encoding(X, setting)
        for model, car in (("fcorr", None), ("fcorr_car", 1e6)):
            estimator = _estimator(setting, epochs=setting.epochs, car=car, verbose=1)
            stamps = _EpochStamps()
            with redirect_stderr(stamps):
                seconds = _seconds(partial(estimator.fit, X, y))
            yield where | {
                "kind": "epoch",
                "model": model,
                "seconds": np.diff(stamps.times).tolist(),
                "fit_seconds": seconds,
                "epochs": setting.epochs,
            }
        seconds = _seconds(partial(_lightgbm(setting).fit, X, y))
        yield where | {"kind": "lightgbm", "fit_seconds": seconds}


class _EpochStamps(io.StringIO):
    """Notes when each epoch is reported: the time between two reports is an epoch's."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def write(self, text: str) -> int:
        if text.startswith("epoch "):
            self.times.append(time.perf_counter())
        return super().write(text)


def _time_encoding(X: Any, setting: Setting) -> Record:
    """Time the way from a frame to arrays, part by part."""
    clock = [time.perf_counter()]
    table = read_table(X)
    clock.append(time.perf_counter())
    schema = infer_schema(table, sensitive=[SENSITIVE[setting.name]])
    clock.append(time.perf_counter())
    encoded = encode(table, schema)
    clock.append(time.perf_counter())
    choose_knots(encoded.numbers, N_KNOTS)
    clock.append(time.perf_counter())
    parts = ("read_seconds", "schema_seconds", "encode_seconds", "knots_seconds")
    return dict(zip(parts, np.diff(clock).tolist(), strict=True))


def _estimator(setting: Setting, **arguments: Any) -> Any:
    kind = FCorrClassifier if setting.name == "bank_fraud" else FCorrRegressor
    return kind(
        sensitive=SENSITIVE[setting.name],
        invariance=None,  # with CAR in every epoch
        advanced={"main_effects": False},  # one network, that whose steps are timed
        random_state=0,
        **arguments,
    )


def _lightgbm(setting: Setting) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if setting.name == "bank_fraud" else LGBMRegressor
    return kind(
        n_estimators=100,
        num_leaves=31,
        n_jobs=torch.get_num_threads(),
        random_state=0,
        verbose=-1,
    )


PARTS: dict[str, Callable[[Plan], Iterator[Record]]] = {
    "steps": time_steps,
    "memory": measure_memory,
    "scoring": time_scoring,
    "epochs": time_epochs,
    "scaling": time_scaling,
}
