"""Experiments: from the configuration files to the runs that they consist of."""

import functools
import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

from sklearn.model_selection import ParameterGrid

from paper.datasets import fetch_baf

Size = Literal["full", "smoke"]
"""The real thing, or all of it in seconds, with figures that mean nothing."""

EXPERIMENTS = (
    "synthetic",
    "baf",
    "adult",
    "claims",
    "motor",
    "controllability",
    "multilayer",
    "complexity",
)
"""In the paper's order: what is quick comes early."""

PUBLISHED = ("adult", "bemtpl97", "fremtpl2")
"""Tables whose rows do not depend on the seed."""

_DETERMINISTIC = ("lightgbm", "fairlearn")  # models that draw nothing


@dataclass(frozen=True)
class DataSettings:
    """Which rows to use.

    ``n_train`` and ``n_test`` are rows of a generated table or, of a real one, how many of the
    first to use, None for all; metrics of training rows are computed on ``n_train_measured`` of
    them. ``n_trees`` are those of the LightGBM that settles the threshold.
    """

    name: str
    n_train: int | None
    n_test: int | None
    n_train_measured: int
    n_trees: int


class Keyed:
    """Settings that have a name: the same settings the same name.

    Records are found by it: what is hashed must stay as it is.
    """

    @property
    def key(self) -> str:
        """Hash of the settings."""
        settings = json.dumps(asdict(cast(Any, self)), sort_keys=True)
        return hashlib.sha256(settings.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Run(Keyed):
    """One model to fit and measure: all that its record depends on.

    Attributes
    ----------
    experiment, model, kind, task : str
        What it belongs to, what it is called there; "printed" (FCorr with the paper's embedding of
        numbers), "fcorr", a baseline's name, "lightgbm" or "fairlearn"; and "classification" or
        "regression".
    data : DataSettings
        The rows.
    sensitive : tuple of str
        Columns whose flips and groups are measured. The model is made for the first.
    arguments, point : dict
        What the model is made with, and those of it that the experiment varies.
    seed : int
        Of the model, and of a generated table.
    removed : bool
        Whether the sensitive columns are taken away before the model sees a table.
    threshold : float or None
        From which score on to decide; None for the paper's protocol.
    """

    experiment: str
    model: str
    kind: str
    task: str
    data: DataSettings
    sensitive: tuple[str, ...]
    arguments: dict[str, Any]
    point: dict[str, Any]
    seed: int
    removed: bool = False
    threshold: float | None = None

    @property
    def title(self) -> str:
        """What to call it while it runs."""
        point = "".join(f", {name} = {value:g}" for name, value in self.point.items())
        beside = f" ({self.data.name}, {', '.join(self.sensitive)})"
        return f"{self.model}{point}{beside}, seed {self.seed}"


@dataclass(frozen=True)
class CostRun(Keyed):
    """One measurement of what a model costs on one of the two tables.

    ``measure`` is "size" (parameters, memory of a step) or "epochs" (seconds per epoch with CAR's
    forms), of a batch or an epoch of ``n_rows``; all else is as in :class:`Run`.
    """

    experiment: str
    model: str
    measure: str
    kind: str
    task: str
    data: str
    sensitive: tuple[str, ...]
    arguments: dict[str, Any]
    n_rows: int
    seed: int

    @property
    def title(self) -> str:
        """What to call it while it runs."""
        return f"{self.model}, {self.measure} ({self.data}), seed {self.seed}"


@functools.cache
def read_config(name: str) -> dict[str, Any]:
    """Read one of the configuration files; "none" becomes None."""
    text = (Path(__file__).parent / "configs" / f"{name}.toml").read_text()
    config: dict[str, Any] = _with_none(tomllib.loads(text))
    return config


def _with_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_none(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_none(item) for item in value]
    return None if value == "none" else value


def list_runs(experiment: str, size: Size, n_seeds: int | None = None) -> list[Run | CostRun]:
    """List the runs of an experiment, seed by seed: one that is cut short has all models.

    ``n_seeds`` are by default as many as its file says.
    """
    config = read_config(experiment)
    if size == "smoke":
        config = merge(config, config["smoke"])
    list_of_seed = _list_costs if experiment == "complexity" else _list_fits
    seeds = range(config["seeds"] if n_seeds is None else n_seeds)
    return [run for seed in seeds for run in list_of_seed(experiment, config, size, seed)]


def merge(config: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Let one table take precedence over another; tables in them are merged likewise."""
    merged = dict(config)
    for name, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = merge(merged[name], value) if both else value
    return merged


def _list_fits(experiment: str, config: dict[str, Any], size: Size, seed: int) -> Iterator[Run]:
    tables = config["data"] if isinstance(config["data"], list) else [config["data"]]
    for table, model in itertools.product(tables, config["models"]):
        spec = read_config("models")[model]
        if seed > 0 and spec["kind"] in _DETERMINISTIC and table in PUBLISHED:
            continue  # the same again
        source = _source(table, size)
        data = DataSettings(
            source,
            None if source != table else config.get("n_train"),
            None if source != table else config.get("n_test"),
            config.get("n_train_measured", 10_000),
            100 if size == "full" else read_config("smoke")["lightgbm"]["n_estimators"],
        )
        columns = config["sensitive"] if len(tables) == 1 else config["sensitive"][table]
        arguments = _arguments(model, config, size)
        if "objective" in config and spec["kind"] != "fairlearn":
            arguments["objective"] = config["objective"]
        bins = config.get("bins", {}).get(table)
        if bins and spec["kind"] in ("printed", "fcorr") and not spec.get("removed"):
            arguments["bins"] = bins
        groups = [(c,) for c in columns] if spec.get("per_sensitive") else [tuple(columns)]
        points = ParameterGrid(config.get("vary", {}))
        for sensitive, point in itertools.product(groups, points):
            yield Run(
                experiment,
                model,
                spec["kind"],
                config["task"],
                data,
                sensitive,
                {**arguments, **point},
                point,
                seed,
                removed=spec.get("removed", False),
                threshold=spec.get("threshold"),
            )


def _source(table: str, size: Size) -> str:
    """Name the data: the user's own download of Bank Account Fraud, whole, where it is there."""
    if table != "bank_fraud" or size == "smoke":
        return table
    try:
        fetch_baf()
    except FileNotFoundError:
        return table
    return "baf"


def _arguments(model: str, config: dict[str, Any], size: Size) -> dict[str, Any]:
    """Gather a model's arguments: its own, the experiment's for its kind and for it, the size's."""
    spec = read_config("models")[model]
    of_model = config.get("of_model", {}).get(model, {})
    arguments = {**config.get(spec["kind"], {}), **spec.get("arguments", {}), **of_model}
    return arguments | (read_config("smoke").get(spec["kind"], {}) if size == "smoke" else {})


def _list_costs(
    experiment: str, config: dict[str, Any], size: Size, seed: int
) -> Iterator[CostRun]:
    for table, its_experiment in (("bank_fraud", "baf"), ("claims", "claims")):
        its = read_config(its_experiment)
        shared: dict[str, Any] = {"experiment": experiment, "data": table, "seed": seed}
        shared |= {"task": its["task"], "sensitive": tuple(its["sensitive"])}
        # Counts and sizes do not depend on chance.
        sized = config["sizes"][table] if seed == 0 else []
        measured = [(model, "size", config["sizes"]["batch_size"]) for model in sized]
        for model, measure, n_rows in [
            *measured,
            ("FCorr + CAR", "epochs", config["epochs"][table]),
        ]:
            kind, arguments = read_config("models")[model]["kind"], _arguments(model, its, "full")
            own = {"model": model, "measure": measure, "kind": kind, "n_rows": n_rows}
            yield CostRun(**shared, **own, arguments=arguments)
