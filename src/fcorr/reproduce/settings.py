"""From the configuration files to the runs of an experiment."""

import functools
import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any, Literal

from fcorr._core import InvalidInputError
from fcorr.data import fetch_baf

Size = Literal["full", "smoke"]

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

KINDS = ("printed", "fcorr", "ffn", "tab_transformer", "ft_transformer", "lightgbm", "fairlearn")
"""Kinds of models; "printed" is FCorr with the paper's embedding of numbers."""


PUBLISHED = ("adult", "bemtpl97", "fremtpl2")
"""Tables whose rows do not depend on the seed."""

_DETERMINISTIC = ("lightgbm", "fairlearn")  # models that draw nothing


@dataclass(frozen=True)
class DataSettings:
    """Which rows to use.

    Attributes
    ----------
    name : str
        Of a function of :mod:`fcorr.reproduce.data`.
    n_train, n_test : int or None
        Rows of a generated table; of a real one, how many of the first to use, None for all.
    n_train_measured : int
        How many of the training rows metrics are computed on.
    n_trees : int
        How many trees LightGBM has that settles the threshold.
    """

    name: str
    n_train: int | None
    n_test: int | None
    n_train_measured: int
    n_trees: int


@dataclass(frozen=True)
class Run:
    """One model to fit and measure: all that its record depends on.

    Attributes
    ----------
    experiment, model : str
        What it belongs to, and what it is called there.
    kind : str
        See :data:`KINDS`.
    task : str
        "classification" or "regression".
    data : DataSettings
        The rows.
    sensitive : tuple of str
        Columns whose flips and groups are measured. The model is made for the first.
    arguments : dict
        What the model is made with.
    point : dict
        Those of the arguments that the experiment varies.
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
    def key(self) -> str:
        """Name of the run: the same settings have the same."""
        return make_key(asdict(self))

    @property
    def title(self) -> str:
        """What to call it while it runs."""
        point = "".join(f", {name} = {value:g}" for name, value in self.point.items())
        beside = f" ({self.data.name}, {', '.join(self.sensitive)})"
        return f"{self.model}{point}{beside}, seed {self.seed}"


@dataclass(frozen=True)
class CostRun:
    """One measurement of what a model costs on one of the two tables.

    Attributes
    ----------
    experiment, model : str
        What it belongs to, and what is measured.
    measure : str
        "size" (parameters, memory of a step) or "epochs" (seconds per epoch with CAR's forms).
    kind : str
        See :data:`KINDS`; "" for "epochs".
    task, data : str
        What the table is for, and its name.
    sensitive : tuple of str
        Its sensitive column.
    arguments : dict
        What the model is made with.
    n_rows : int
        Rows of the batch or of the epoch.
    seed : int
        Of table and model.
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
    def key(self) -> str:
        """Name of the run: the same settings have the same."""
        return make_key(asdict(self))

    @property
    def title(self) -> str:
        """What to call it while it runs."""
        return f"{self.model}, {self.measure} ({self.data}), seed {self.seed}"


def make_key(settings: Mapping[str, Any]) -> str:
    """Hash settings."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


@functools.cache
def read_config(name: str) -> dict[str, Any]:
    """Read one of the files beside this module; "none" becomes None."""
    text = resources.files("fcorr.reproduce").joinpath("configs", f"{name}.toml").read_text()
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

    Parameters
    ----------
    experiment : str
        One of :data:`EXPERIMENTS`.
    size : {"full", "smoke"}
        The real thing, or all of it in seconds.
    n_seeds : int, optional
        How many seeds; by default as many as its file says.
    """
    if size not in ("full", "smoke"):
        raise InvalidInputError(f"size must be 'full' or 'smoke', got {size!r}.")
    config = read_config(experiment)
    if size == "smoke":
        config = _merge(config, config["smoke"])
    n_seeds = config["seeds"] if n_seeds is None else n_seeds
    list_of_seed = _list_costs if experiment == "complexity" else _list_fits
    seeds = range(n_seeds)
    return [run for seed in seeds for run in list_of_seed(experiment, config, size, seed)]


def _merge(config: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Let one table take precedence over another; tables in them are merged likewise."""
    merged = dict(config)
    for name, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = _merge(merged[name], value) if both else value
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
        for sensitive, point in itertools.product(groups, _points(config.get("vary", {}))):
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
    kind = spec["kind"]
    of_model = config.get("of_model", {}).get(model, {})
    arguments = {**config.get(kind, {}), **spec.get("arguments", {}), **of_model}
    if size == "smoke":
        arguments |= read_config("smoke").get(kind, {})
    return arguments


def _points(vary: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    combinations = itertools.product(*vary.values())
    return [dict(zip(vary, values, strict=True)) for values in combinations]


_TABLES = {"bank_fraud": "baf", "claims": "claims"}


def _list_costs(
    experiment: str, config: dict[str, Any], size: Size, seed: int
) -> Iterator[CostRun]:
    for table, its_experiment in _TABLES.items():
        its = read_config(its_experiment)
        shared = {
            "experiment": experiment,
            "task": its["task"],
            "data": table,
            "sensitive": tuple(its["sensitive"]),
            "seed": seed,
        }
        if seed == 0:  # counts and sizes do not depend on chance
            for model in config["sizes"][table]:
                yield CostRun(
                    model=model,
                    measure="size",
                    kind=read_config("models")[model]["kind"],
                    arguments=_arguments(model, its, "full"),
                    n_rows=config["sizes"]["batch_size"],
                    **shared,
                )
        yield CostRun(
            model="FCorr + CAR",
            measure="epochs",
            kind="printed",
            arguments=_arguments("FCorr + CAR", its, "full"),
            n_rows=config["epochs"][table],
            **shared,
        )
