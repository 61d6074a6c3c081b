"""From a grid of arguments to the runs of a sweep."""

import hashlib
import itertools
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fcorr._core import InvalidInputError, enumerate_some, near_match, to_plain
from fcorr.estimators.options import check_options

Point = dict[str, Any]
Grid = Mapping[str, Sequence[Any]]

DEFAULT_GRID: tuple[Grid, ...] = (
    {"car": [0.0, *(10.0**power for power in range(9))], "invariance": [None]},
    {"invariance": ["adapt", "marginal"]},
)
"""λ from 0 to 1e8, acting alone, and the two exact forms."""

# They change neither the model nor what is measured, or a sweep has its own way to set them.
UNSEEN = ("random_state", "verbose", "device", "engine")

_NOT_VARIED = {
    "random_state": "Use seeds=... instead.",
    "sensitive": "Models would answer different questions: make a sweep for each.",
    "exposure": "Models would answer different questions: make a sweep for each.",
    "objective": "Their performance could not be compared: make a sweep for each.",
    "tweedie_power": "Their performance could not be compared: make a sweep for each.",
    "verbose": "A sweep shows its own progress.",
    "device": "Set it in the estimator.",
    "engine": "Set it in the estimator.",
}


@dataclass(frozen=True)
class Run:
    """One model to fit.

    Attributes
    ----------
    point : dict
        The arguments that the grid varies.
    seed : int
        Its ``random_state``.
    warm_path : tuple of float
        λ of the runs before it, whose weights it starts from; empty for a fit from scratch.
    """

    point: Point
    seed: int
    warm_path: tuple[float, ...] = ()


def expand_grid(
    grid: Grid | Sequence[Grid] | None, base: Mapping[str, Any]
) -> tuple[list[Point], tuple[str, ...]]:
    """List the points of a grid, checked, and the arguments that it varies.

    Parameters
    ----------
    grid : mapping, sequence of mappings or None
        Arguments and the values they take, in all combinations; of several grids, those of each.
    base : mapping
        The estimator's own arguments, for those that a grid leaves out.

    Examples
    --------
    >>> from fcorr import FCorrClassifier
    >>> base = FCorrClassifier(invariance=None).get_params()
    >>> expand_grid({"car": [0, 100], "dropout": [0.1]}, base)[0]
    [{'car': 0, 'dropout': 0.1}, {'car': 100, 'dropout': 0.1}]
    """
    given = DEFAULT_GRID if grid is None else [grid] if isinstance(grid, Mapping) else list(grid)
    grids = _read_grids(given, base)
    varied = tuple(dict.fromkeys(name for one in grids for name in one))
    points: dict[str, Point] = {}
    for one in grids:
        for values in itertools.product(*one.values()):
            point = {name: base[name] for name in varied} | dict(zip(one, values, strict=True))
            check_options({**base, **point})
            points.setdefault(_canonical({**base, **point}), point)
    found = list(points.values())
    are_exact = all({**base, **point}["invariance"] is not None for point in found)
    if are_exact and len({point.get("car") for point in found}) > 1:
        warnings.warn(
            "The grid varies car, but all its models are exact: no flip changes their predictions "
            "at any λ. Add 'invariance': [None] to see what λ does alone.",
            UserWarning,
            stacklevel=3,
        )
    return found, varied


def _read_grids(grids: Sequence[Any], base: Mapping[str, Any]) -> list[dict[str, list[Any]]]:
    """List the values of each argument, or say what is wrong with them."""
    if not grids:
        raise InvalidInputError("grid must hold at least one argument, got none.")
    for grid in grids:
        if not isinstance(grid, Mapping) or not grid:
            raise InvalidInputError(
                f"grid must map arguments to lists of values, got {grid!r}. Write for example "
                "grid={'car': [0, 1e2, 1e4], 'invariance': [None]}."
            )
    return [{n: _read_values(n, values, base) for n, values in grid.items()} for grid in grids]


def _read_values(name: str, values: Any, base: Mapping[str, Any]) -> list[Any]:
    if name not in base:
        raise InvalidInputError(
            f"grid must name arguments of the estimator, got {name!r}."
            f"{near_match(str(name), base)} It has {enumerate_some(base, 40)}."
        )
    if name in _NOT_VARIED:
        raise InvalidInputError(f"grid must not vary {name!r}. {_NOT_VARIED[name]}")
    is_list = isinstance(values, Iterable) and not isinstance(values, str | Mapping)
    listed = list(values) if is_list else []
    if not listed:
        raise InvalidInputError(
            f"grid must list at least one value of {name!r}, got {values!r}. "
            f"Write {{{name!r}: [...]}}."
        )
    return listed


def chain_runs(
    points: Sequence[Point], base: Mapping[str, Any], seeds: Sequence[int], *, warm_start: bool
) -> list[list[Run]]:
    """Order the runs into chains; each run of a chain starts from the weights of the one before.

    Without ``warm_start`` every chain has one run. With it, runs of one seed that differ in a λ
    that acts alone go from the smallest to the largest.
    """
    chains: dict[str, list[Point]] = {}
    for point in points:
        arguments = {**base, **point}
        is_link = warm_start and arguments["invariance"] is None and arguments["car"] != "paper"
        shared = {**arguments, "car": None} if is_link else arguments
        chains.setdefault(_canonical(shared) + str(is_link), []).append(point)
    runs = []
    for seed, chain in itertools.product(seeds, chains.values()):
        ordered = sorted(chain, key=lambda point: _weight(point, base)) if chain[1:] else chain
        weights = [_weight(point, base) for point in ordered] if chain[1:] else [0.0]
        runs.append([Run(p, seed, tuple(weights[:i])) for i, p in enumerate(ordered)])
    return runs


def _weight(point: Point, base: Mapping[str, Any]) -> float:
    return float({**base, **point}["car"] or 0.0)


def list_arguments(base: Mapping[str, Any], point: Point) -> dict[str, Any]:
    """Return all arguments that make the model what it is, as plain data."""
    arguments = {name: v for name, v in {**base, **point}.items() if name not in UNSEEN}
    plain: dict[str, Any] = to_plain(arguments)
    return plain


def make_key(run: Run, base: Mapping[str, Any], *, data: str, effort: int) -> str:
    """Name a run: the same arguments, seed and data give the same key."""
    content = [_canonical({**base, **run.point}), run.seed, list(run.warm_path), data, effort]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _canonical(arguments: Mapping[str, Any]) -> str:
    """Write arguments such that equal models have equal texts."""
    plain = list_arguments(arguments, {})
    plain["car"] = plain["car"] or 0.0  # None switches it off, too
    if plain["invariance"] == "marginal":
        plain["car"] = 0.0  # not used
    return json.dumps(_as_floats(plain), sort_keys=True)


def _as_floats(value: Any) -> Any:
    """Write 100 and 100.0 alike."""
    if isinstance(value, dict):
        return {key: _as_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_floats(item) for item in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else value
