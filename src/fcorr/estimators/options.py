"""The estimators' arguments, checked when ``fit`` begins."""

import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any

import torch

from fcorr._core import InvalidInputError
from fcorr.data.bins import parse_bins
from fcorr.data.kinds import parse_kinds
from fcorr.metrics.thresholds import RULES, is_threshold_rule

_Rule = tuple[str, Callable[[Any], bool]]


def is_integer(value: object, at_least: int) -> bool:
    """Whether a value is a whole number, and large enough."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return is_whole and int(value) >= at_least  # type: ignore[call-overload]


def is_number(value: object) -> bool:
    """Whether a value is a finite number."""
    is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_real and math.isfinite(float(value))  # type: ignore[arg-type]


def is_boolean(value: object) -> bool:
    """Whether a value is True or False."""
    return isinstance(value, bool) or type(value).__name__ == "bool"


def is_sizes(value: object) -> bool:
    """Whether a value is a sequence of layer sizes."""
    return isinstance(value, tuple | list) and all(is_integer(size, 1) for size in value)


def _is_class_weight(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(is_number(weight) and weight > 0 for weight in value.values())
    return value is None or value == "balanced"


def _is_threshold(value: object) -> bool:
    is_share = is_number(value) and 0 <= value <= 1  # type: ignore[operator]
    return is_share or is_threshold_rule(value)


def _choice(*options: str) -> _Rule:
    return " or ".join(repr(option) for option in options), lambda v: v in options


_RULES: dict[str, _Rule] = {
    "car": (
        "a number of at least 0, 'paper' or None",
        lambda v: v is None or v == "paper" or (is_number(v) and v >= 0),
    ),
    "car_form": _choice("sensitive", "paper", "cda"),
    "head": ("a tuple of hidden-layer sizes of at least 1, such as (128, 128)", is_sizes),
    "n_layers": ("an integer of at least 1", lambda v: is_integer(v, 1)),
    "invariance": (
        "'adapt', 'marginal' or None",
        lambda v: v is None or v in ("adapt", "marginal"),
    ),
    "car_combinations": ("True or False", is_boolean),
    "residual": ("True or False", is_boolean),
    "numeric_embedding": _choice("spline", "paper"),
    "n_knots": ("an integer of at least 2", lambda v: is_integer(v, 2)),
    "dropout": ("a number in [0, 1)", lambda v: is_number(v) and 0 <= v < 1),
    "epochs": ("an integer of at least 1", lambda v: is_integer(v, 1)),
    "batch_size": (
        "an integer of at least 1, or 'auto'",
        lambda v: v == "auto" or is_integer(v, 1),
    ),
    "learning_rate": ("a number above 0", lambda v: is_number(v) and v > 0),
    "beta2": ("a number in [0, 1)", lambda v: is_number(v) and 0 <= v < 1),
    "early_stopping": (
        "True, False or a number of epochs to wait of at least 1",
        lambda v: is_boolean(v) or is_integer(v, 1),
    ),
    "validation_fraction": ("a number in (0, 1)", lambda v: is_number(v) and 0 < v < 1),
    "missing_categorical": _choice("category", "mode"),
    "missing_numeric": _choice("mean", "category"),
    "min_category_rows": (
        "an integer of at least 1, or 'auto'",
        lambda v: v == "auto" or is_integer(v, 1),
    ),
    "constant_columns": _choice("error", "keep"),
    "engine": _choice("auto", "compiled", "plain"),
    "objective": _choice("mse", "poisson", "gamma", "tweedie"),
    "tweedie_power": ("a number in (1, 2)", lambda v: is_number(v) and 1 < v < 2),
    "exposure": (
        "the name of a column, or its position where there are no names, or None",
        lambda v: v is None or isinstance(v, str) or is_integer(v, 0),
    ),
    "class_weight": (
        "None, 'balanced' or a dict of classes and weights above 0",
        _is_class_weight,
    ),
    "threshold": (f"a number in [0, 1], {RULES}", _is_threshold),
    "verbose": (
        "True, False or an integer of at least 0",
        lambda v: is_boolean(v) or is_integer(v, 0),
    ),
}


def _or_auto(name: str) -> _Rule:
    rule, holds = _RULES[name]
    return f"{rule}, or 'auto'", lambda v: v == "auto" or holds(v)


_BASELINE_RULES: dict[str, _Rule] = {
    "network": _choice("ft_transformer", "tab_transformer", "ffn"),
    "network_options": (
        "a dict of sizes, such as {'n_layers': 1}, or None",
        lambda v: v is None or isinstance(v, Mapping),
    ),
    **{name: _or_auto(name) for name in ("dropout", "epochs", "learning_rate")},
    "car_rows": ("a number in (0, 1]", lambda v: is_number(v) and 0 < v <= 1),
    "weight_decay": (
        "a number of at least 0, or 'auto'",
        lambda v: v == "auto" or (is_number(v) and v >= 0),
    ),
}


def check_options(parameters: dict[str, Any]) -> None:
    """Raise an :class:`InvalidInputError` for the first argument that breaks its rule."""
    rules = _RULES | (_BASELINE_RULES if "network" in parameters else {})
    for name, (rule, holds) in rules.items():
        if name not in parameters:
            continue  # an argument of another estimator
        value = parameters[name]
        is_array = hasattr(value, "shape") and value.shape != ()
        if is_array or not holds(value):
            raise InvalidInputError(f"{name} must be {rule}, got {value!r}.")
    parse_kinds(parameters["kinds"])
    parse_bins(parameters["bins"])
    exposure = parameters.get("exposure")
    if exposure is not None and parameters["objective"] == "mse":
        raise InvalidInputError(
            f"exposure needs a log link to be an offset, got {exposure!r} with objective='mse'. "
            "Use objective='poisson' for counts, 'tweedie' or 'gamma' for amounts."
        )


def check_device(device: str | torch.device) -> torch.device:
    """Return the torch device, or say which ones there are."""
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).item()  # fails where there is no memory behind the name
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        available = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
        raise InvalidInputError(
            f"device must be one that torch can use here ({', '.join(available)}), got {device!r}."
        ) from error
    return found
