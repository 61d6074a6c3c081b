"""The estimators' arguments: the rules they must keep, checked once, when ``fit`` begins."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, cast

import torch

from fcorr._core import (
    InvalidInputError,
    RandomState,
    check_argument,
    check_name,
    enumerate_some,
    is_integer,
    is_number,
    near_match,
)
from fcorr.data.infer import MinCategoryRows
from fcorr.data.schema import Kinds, parse_kinds
from fcorr.estimators.invariance import Invariance
from fcorr.metrics.thresholds import RULES, is_threshold_rule
from fcorr.nn.engine import EngineName
from fcorr.nn.fcorr import NumericEmbeddingName
from fcorr.training.objective import CarWeight

Columns = str | int | Sequence[str | int] | None
Auto = Literal["auto"]
Monotone = Mapping[str, Literal["increasing", "decreasing"]]


class Advanced(TypedDict, total=False):
    """What few tables need, and the paper's experiments do: ``advanced={"n_layers": 3}``.

    Attributes
    ----------
    n_layers : int, default=1
        Number of encoder layers. The paper recommends one: only the first attention matrix reads
        as feature dependencies.
    residual : bool, default=True
        Residual connection round the attention, the paper's variant "+ Res": the head sees each
        feature's own number beside what the attention made of all. The paper's model has none.
    numeric_embedding : {"spline", "paper"}, default="spline"
        How a number becomes a number: a piecewise-linear shape function with knots learnt from
        the training table, or the paper's two element-wise linear layers.
    main_effects : bool, default=True
        Views, the first of which is each feature's main effect. False is the paper's model, one
        number for each feature and nothing beside the head; it has no pack, and the defaults of
        ``head``, ``dropout``, ``epochs`` and ``learning_rate`` are then (128, 128), 0.1, 20 and
        0.02.
    n_views : int or "auto", default="auto"
        Numbers for each feature.
    n_knots : int or "auto", default="auto"
        Most knots of a shape function.
    batch_size : int or "auto", default="auto"
        Rows per step; ``"auto"`` takes about 64 steps an epoch, with 32 to 2,048 rows each.
    beta2 : float or "auto", default="auto"
        How long Adam remembers squared gradients: 0.95 with CAR, whose gradient falls by orders of
        magnitude, else 0.999.
    early_stopping : bool or int, default=False
        For a single network (``n_members=1``): stop when the loss (with λ times CAR) of
        ``eval_set``, or else of ``validation_fraction``, has not fallen for this many epochs
        (True: 5), and keep the best weights. Members of a pack stop by their own rows.
    validation_fraction : float, default=0.1
        Share of the rows set aside for early stopping where there is no ``eval_set``.
    missing_categorical : {"category", "mode"}, default="category"
        A missing category is a category of its own, or is taken for the most frequent one.
    missing_numeric : {"mean", "category"}, default="mean"
        A missing number, place or date is taken for the training mean, or has an embedding of its
        own.
    engine : {"auto", "compiled", "plain"}, default="auto"
        How training computes: by kernels that numba compiles, or by plain torch; "auto" takes the
        kernels where they serve, on the CPU. They differ in speed, and in rounding. Predictions
        are computed by the kernels, whatever trained the model.
    device : str, default="cpu"
        Where torch trains; predictions are computed on the CPU.
    """

    n_layers: int
    residual: bool
    numeric_embedding: NumericEmbeddingName
    main_effects: bool
    n_views: int | Literal["auto"]
    n_knots: int | Literal["auto"]
    batch_size: int | Literal["auto"]
    beta2: float | Literal["auto"]
    early_stopping: bool | int
    validation_fraction: float
    missing_categorical: Literal["category", "mode"]
    missing_numeric: Literal["mean", "category"]
    engine: EngineName
    device: str


@dataclass(kw_only=True, eq=False, repr=False)
class Arguments:
    """The arguments that both estimators have, and their defaults; both say what they are."""

    sensitive: Columns = None
    car: CarWeight = 1e6
    invariance: Invariance = "adapt"
    proxy: float = 0.0
    n_members: int | Auto = "auto"
    head: Sequence[int] | Auto = "auto"
    dropout: float | Auto = "auto"
    epochs: int | Auto = "auto"
    learning_rate: float | Auto = "auto"
    monotone: Monotone | None = None
    kinds: Kinds | None = None
    min_category_rows: MinCategoryRows = "auto"
    advanced: Advanced | None = None
    random_state: RandomState = None
    verbose: bool | int = False


_Rule = tuple[str, Callable[[Any], bool]]


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ == "bool"  # numpy's as well


def _choice(*options: str | None) -> _Rule:
    *names, last = map(repr, options)
    return f"{', '.join(names)} or {last}", lambda v: v in options


_BOOLEAN: _Rule = ("True or False", _is_boolean)
_SHARE: _Rule = ("a number in [0, 1)", lambda v: is_number(v) and 0 <= v < 1)
_COUNT: _Rule = ("an integer of at least 1", lambda v: is_integer(v, 1))
_MOST_VIEWS = 64
_AMOUNTS: dict[str, tuple[dict[str, int], float, str]] = {
    "budget": (
        {"s": 1, "min": 60, "h": 3600},
        math.ulp(0.0),
        "a time such as '90s', '10min' or '2h'",
    ),
    "memory": (
        {"mb": 10**6, "gb": 10**9, "tb": 10**12},
        64e6,
        "a size of at least 64 MB, such as '500MB' or '2GB'",
    ),
}
DIRECTIONS = {"increasing": 1, "decreasing": -1}


def _or_auto(rule: _Rule) -> _Rule:
    text, holds = rule
    return f"{text}, or 'auto'", lambda v: (isinstance(v, str) and v == "auto") or holds(v)


_COUNT_OR_AUTO = _or_auto(_COUNT)

_RULES: dict[str, _Rule] = {
    "car": (
        "a number of at least 0, 'paper' or None",
        lambda v: v is None or v == "paper" or (is_number(v) and v >= 0),
    ),
    "invariance": _choice("adapt", "marginal", None),
    "proxy": ("a number of at least 0", lambda v: is_number(v) and v >= 0),
    "proxy_target": _choice("score", "decision", "odds"),
    "n_members": _COUNT_OR_AUTO,
    "head": _or_auto(
        (
            "a tuple of hidden-layer sizes of at least 1, such as (128, 128)",
            lambda v: isinstance(v, tuple | list) and all(is_integer(size, 1) for size in v),
        )
    ),
    "dropout": _or_auto(_SHARE),
    "epochs": _COUNT_OR_AUTO,
    "learning_rate": _or_auto(("a number above 0", lambda v: is_number(v) and v > 0)),
    "monotone": (
        "a dict of columns and 'increasing' or 'decreasing', or None",
        lambda v: (
            v is None or (isinstance(v, Mapping) and all(d in [*DIRECTIONS] for d in v.values()))
        ),
    ),
    "min_category_rows": _COUNT_OR_AUTO,
    "objective": _choice("mse", "poisson", "gamma", "tweedie"),
    "tweedie_power": ("a number in (1, 2)", lambda v: is_number(v) and 1 < v < 2),
    "exposure": (
        "the name of a column, or its position where there are no names, or None",
        lambda v: v is None or isinstance(v, str) or is_integer(v, 0),
    ),
    "class_weight": (
        "None, 'balanced' or a dict of classes and weights above 0",
        lambda v: (
            all(is_number(weight) and weight > 0 for weight in v.values())
            if isinstance(v, Mapping)
            else v is None or v == "balanced"
        ),
    ),
    "threshold": (
        f"a number in [0, 1], {RULES}",
        lambda v: (is_number(v) and 0 <= v <= 1) or is_threshold_rule(v),
    ),
    "verbose": (
        "True, False or an integer of at least 0",
        lambda v: _is_boolean(v) or is_integer(v, 0),
    ),
}

_VIEWS: _Rule = (
    f"an integer from 1 to {_MOST_VIEWS}",
    lambda v: is_integer(v, 1) and v <= _MOST_VIEWS,
)
_PATIENCE: _Rule = (
    "True, False or a number of epochs to wait of at least 1",
    lambda v: _is_boolean(v) or is_integer(v, 1),
)
_ADVANCED: dict[str, tuple[Any, _Rule]] = {  # defaults and rules
    "n_layers": (1, _COUNT),
    "residual": (True, _BOOLEAN),
    "numeric_embedding": ("spline", _choice("spline", "paper")),
    "main_effects": (True, _BOOLEAN),
    "n_views": ("auto", _or_auto(_VIEWS)),
    "n_knots": ("auto", _or_auto(("an integer of at least 2", lambda v: is_integer(v, 2)))),
    "batch_size": ("auto", _COUNT_OR_AUTO),
    "beta2": ("auto", _or_auto(_SHARE)),
    "early_stopping": (False, _PATIENCE),
    "validation_fraction": (0.1, ("a number in (0, 1)", lambda v: is_number(v) and 0 < v < 1)),
    "missing_categorical": ("category", _choice("category", "mode")),
    "missing_numeric": ("mean", _choice("mean", "category")),
    "engine": ("auto", _choice("auto", "compiled", "plain")),
    "device": ("cpu", ("the name of a device of torch", lambda v: isinstance(v, str))),
}
DEFAULTS = cast(Advanced, {name: default for name, (default, _) in _ADVANCED.items()})


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Raise an :class:`InvalidInputError` for the first argument that breaks its rule."""
    for name, (rule, holds) in _RULES.items():
        if name in arguments:
            _check(name, arguments[name], rule, holds)
    complete_advanced(arguments.get("advanced"))
    try:
        parse_kinds(arguments["kinds"])
    except InvalidInputError as error:
        raise InvalidInputError(str(error), argument="kinds") from None
    if arguments.get("proxy") and arguments["invariance"] == "marginal":
        raise InvalidInputError(
            "proxy needs predictions that are trained as they are used, got invariance='marginal', "
            "which averages over the sensitive column afterwards. Use invariance='adapt' with "
            "proxy, or 'marginal' without.",
            argument="proxy",
        )
    exposure = arguments.get("exposure")
    if exposure is not None and arguments["objective"] == "mse":
        raise InvalidInputError(
            f"exposure needs a log link to be an offset, got {exposure!r} with objective='mse'. "
            "Use objective='poisson' for counts, 'tweedie' or 'gamma' for amounts.",
            argument="exposure",
        )


def complete_advanced(advanced: Advanced | None) -> Advanced:
    """Fill up what ``advanced`` leaves out with the defaults; refuse what breaks a rule."""
    fits = advanced is None or isinstance(advanced, Mapping)
    check_argument("advanced", advanced, fits, "a dict, such as {'n_layers': 3}, or None")
    for name, value in (advanced or {}).items():
        rule = f"advanced must hold some of {enumerate_some(_ADVANCED, limit=10)}"
        check_name(name, _ADVANCED, rule, "Correct or drop it.", "advanced")
        _check(f"advanced[{name!r}]", value, *_ADVANCED[name][1])
    return DEFAULTS | (advanced or {})


def _check(name: str, value: Any, rule: str, holds: Callable[[Any], bool]) -> None:
    is_array = hasattr(value, "shape") and value.shape != ()
    if is_array or not holds(value):
        options = re.findall(r"'(\w+)'", rule) if isinstance(value, str) else []
        near = near_match(value, options) if options else ""
        raise InvalidInputError(f"{name} must be {rule}, got {value!r}.{near}", argument=name)


def parse_amount(argument: Literal["budget", "memory"], amount: str | float) -> float:
    """Return the seconds of a budget such as ``"10min"``, or the bytes of a memory.

    Examples
    --------
    >>> parse_amount("budget", "1.5h")
    5400.0
    >>> parse_amount("memory", "2GB")
    2000000000.0
    """
    units, least, rule = _AMOUNTS[argument]
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", str(amount), re.IGNORECASE)
    size = math.nan
    if found is not None:
        size = float(found[1]) * units.get(found[2].lower(), math.nan)
    elif is_number(amount):
        size = float(amount)
    check_argument(argument, amount, least <= size < math.inf, rule)
    return size


def check_device(device: str) -> torch.device:
    """Return the torch device, or say which ones there are."""
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).item()  # fails where there is no memory behind the name
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        available = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
        raise InvalidInputError(
            f"advanced['device'] must be one that torch can use here ({', '.join(available)}), got "
            f"{device!r}.",
            argument="advanced['device']",
        ) from error
    return found
