"""Model files: safetensors, with everything that is not a weight as JSON in the header.

What a file can do to whoever opens it, and what its digest is good for, says SECURITY.md.
"""

import json
import os
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from fcorr._core import ModelFileError, compute_digest, is_integer
from fcorr._version import __version__
from fcorr.certify import is_exact
from fcorr.data.schema import Schema
from fcorr.estimators.base import FORMAT, READ_IN_TRAINING, BaseFCorr
from fcorr.estimators.classifier import FCorrClassifier
from fcorr.estimators.invariance import Portfolio
from fcorr.estimators.options import check_arguments
from fcorr.estimators.regressor import FCorrRegressor
from fcorr.nn.engine import use_engine
from fcorr.nn.fcorr import FCorrTransformer, Pack
from fcorr.training.loop import EpochRecord, History
from fcorr.training.pack import Recipe

Estimator = FCorrClassifier | FCorrRegressor

_N_TRIED = 64  # rows that a model must have finite predictions for, to be one


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a model file says of itself, without weights; errors as in :func:`fcorr.load`."""
    return _read(path)[0]


def load(path: str | os.PathLike[str]) -> Estimator:
    """Read an estimator that ``save`` wrote.

    Nothing in the file is executed: a model from somebody else is safe to open. What cannot be a
    model is refused: a file with another digest than is stored in it, numbers that are not
    finite, a header that contradicts the weights. That somebody else's model is a good one, or the
    one that was meant, ``load`` cannot tell: compare its digest, which ``fcorr inspect`` shows.

    Parameters
    ----------
    path : path-like
        The model file.

    Returns
    -------
    FCorrClassifier or FCorrRegressor
        The fitted estimator, on the CPU.

    Raises
    ------
    ModelFileError
        The file is truncated, damaged or was edited, is not a model of fcorr, or was made by a
        newer version.
    """
    header, tensors = _read(path)
    try:
        return _restore(header, tensors)
    except Exception as error:  # whatever it is that a damaged header led to
        raise ModelFileError(
            f"{os.fspath(path)!r} is a damaged model file: its header and its weights do not fit "
            f"together ({type(error).__name__}: {error}). Save the model again."
        ) from error


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    with open(path, "rb"):
        pass  # a missing or unreadable file is the operating system's error, with its own words
    try:
        with safe_open(os.fspath(path), framework="pt") as file:
            text = (file.metadata() or {}).get("fcorr")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ModelFileError(
            f"{os.fspath(path)!r} is not a whole model file: it is truncated or of another kind "
            f"({error}). Copy it again, or save the model again with model.save(path)."
        ) from error
    try:
        header = json.loads(text or "null")
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or type(header.get("format")) is not int:
        raise ModelFileError(
            f"{os.fspath(path)!r} is a safetensors file, but not a model of fcorr: its header has "
            "no fcorr entry. Load it with the program that made it."
        )
    if header["format"] > FORMAT:
        raise ModelFileError(
            f"{os.fspath(path)!r} was made by fcorr {header.get('fcorr_version')} in file format "
            f"{header['format']}; fcorr {__version__} reads up to format {FORMAT}. Upgrade fcorr."
        )
    try:
        digest = compute_digest(header, tensors)
    except TypeError as error:  # numbers of a type that numpy has not, and no model
        digest = str(error)
    if header.get("sha256") != digest:
        raise ModelFileError(
            f"{os.fspath(path)!r} is damaged, or was edited: the digest of its content must be the "
            f"one stored in it, {header.get('sha256')!r}, got {digest!r}. Copy the file again from "
            "where it came, or save the model again with model.save(path)."
        )
    return header, tensors


def _restore(header: dict[str, Any], tensors: dict[str, Tensor]) -> Estimator:
    json.dumps(header, allow_nan=False)  # fails where a number is not finite
    classes = {cls.__name__: cls for cls in (FCorrClassifier, FCorrRegressor)}
    estimator = classes[header["estimator"]](**_restore_parameters(header["parameters"]))
    schema = Schema.from_dict(header["schema"])
    estimator.schema_ = schema
    _restore_columns(estimator, header["columns"], named=header["named"])
    estimator._restore_target(header["target"])
    estimator.balance_ = np.array(header["balance"], dtype=np.float64)
    if estimator.balance_.shape != (estimator._n_outputs(),):
        raise ValueError(f"balance is {estimator.balance_}")
    estimator.seed_ = header["seed"]
    epochs = [EpochRecord(**record) for record in header["history"].pop("epochs")]
    if not all(map(str, epochs)) or not epochs or type(header["fcorr_version"]) is not str:
        raise ValueError("it does not say how it was made")  # a loss that is none has no text
    estimator.history_ = History(**header["history"], epochs=epochs)
    for name in READ_IN_TRAINING:
        numbers = tensors.pop(name).double().numpy().copy()
        if numbers.shape != (len(schema.feature_names),) or not np.isfinite(numbers).all():
            raise ValueError(f"{name} is {numbers}")
        setattr(estimator, f"{name}_", numbers)
    values, shares = (tensors.pop(f"portfolio.{name}", None) for name in ("values", "shares"))
    estimator.portfolio_ = None
    if values is not None and shares is not None:
        estimator.portfolio_ = Portfolio.restore(values, shares, schema)
    weights = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    estimator.recipes_, estimator.oob_loss_ = header["recipes"], header["oob_loss"]
    for recipe in estimator.recipes_:  # a recipe that is none cannot be made
        Recipe(**{k: v for k, v in recipe.items() if k not in ("loss", "chosen")})
    networks = []
    for i, network in enumerate(header["networks"]):
        own = {k.split(".", 1)[1]: v for k, v in weights.items() if k.split(".", 1)[0] == str(i)}
        networks.append(_restore_network(estimator, network, own))
    if sum(len(model.state_dict()) for model in networks) != len(weights) or not networks:
        raise ValueError(f"there are {len(weights)} weights for {len(networks)} networks")
    estimator.model_ = networks[0] if len(networks) == 1 else Pack(networks)
    estimator.exact_ = header["exact"]
    _check_exactness(estimator)
    estimator._check_monotone()
    estimator.model_.eval()
    _check_predictions(estimator)
    return estimator


def _restore_columns(estimator: BaseFCorr, columns: list[str], *, named: bool) -> None:
    """Set the columns of the training table, if they are the schema's and the arguments' own."""
    schema = estimator.schema_
    estimator.n_features_in_ = len(columns)
    if named:
        estimator.feature_names_in_ = np.asarray(columns, dtype=object)
    roles = () if schema.exposure is None else (schema.exposure,)
    others = tuple(name for name in columns if name not in roles)
    is_table = len(columns) == len(schema.names) + len(roles) and others == schema.names
    if not is_table or tuple(columns) != estimator._column_names:
        raise ValueError(f"the table has columns {columns}, the schema {(*schema.names, *roles)}")
    estimator._check_roles()


def _restore_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Undo :meth:`BaseFCorr._plain_parameters`, as far as JSON has no words for it."""
    if isinstance(parameters["head"], list):
        parameters["head"] = tuple(parameters["head"])
    if isinstance(parameters.get("class_weight"), list):
        parameters["class_weight"] = dict(parameters["class_weight"])
    if isinstance(parameters.get("threshold"), dict) and "cost" in parameters["threshold"]:
        parameters["threshold"] = {"cost": tuple(parameters["threshold"]["cost"])}
    check_arguments(parameters)
    return parameters


def _restore_network(
    estimator: BaseFCorr, network: dict[str, Any], weights: dict[str, Tensor]
) -> FCorrTransformer:
    schema, has_views = estimator.schema_, "n_views" in network
    own = {"n_views", "additive"} if has_views else {"numeric_embedding"}
    if set(network) != {"head", "n_layers", "residual"} | own:
        raise ValueError(f"the network has {', '.join(network)}")
    advanced = {k: v for k, v in network.items() if k not in ("head", "n_views", "additive")}
    check_arguments(estimator.get_params() | {"head": network["head"], "advanced": advanced})
    if has_views and not is_integer(network["n_views"], 1):  # more than 64 for as many classes
        raise ValueError(f"n_views is {network['n_views']!r}")
    # Loading the weights finds another size, but one gone wrong may ask for all memory before.
    n_features = len(schema.feature_names)
    sizes = [network.get("n_views", 1) * n_features, *network["head"], estimator._n_outputs()]
    n_needed = sum(a * b for a, b in pairwise(sizes))
    n_needed += network["n_layers"] * n_features * len(sizes)
    n_weights = sum(weight.numel() for weight in weights.values())
    if n_needed > n_weights:
        raise ValueError(f"the header has {network}, too large for {n_weights} weights")
    name = "views.numbers.knots" if has_views else "numeric.knots"
    knots = weights.get(name, torch.empty(0, 2))  # rows are filled up with infinity
    has_splines = has_views or network["numeric_embedding"] == "spline"
    n_splines = len(schema.numeric) if has_splines else 0
    if len(knots) != n_splines:
        raise ValueError(f"there are knots of {len(knots)} features in place of {n_splines}")
    is_next = (knots.diff() > 0) | knots[:, 1:].isposinf()
    if not knots[:, 0].isfinite().all() or not is_next.all():
        raise ValueError("knots must be finite numbers, each larger than the one before")
    model = estimator._build(network, [row[row.isfinite()] for row in knots])
    model.load_state_dict(weights)
    for name, parameter in model.named_parameters():
        if not parameter.isfinite().all():
            raise ValueError(f"the weights {name!r} are not finite")
    return model


def _check_exactness(estimator: BaseFCorr) -> None:
    """Prove once more what a file says: that no flip can change a prediction."""
    exact, positions = estimator.exact_, estimator.schema_.sensitive_positions
    if type(exact) is not bool:
        raise ValueError(f"exact is {exact!r}")
    if exact and not positions:
        raise ValueError("it is said to be exact, without sensitive features")
    if estimator.portfolio_ is not None:
        if not exact:
            raise ValueError("a model that averages over a portfolio is exact, this one is not")
    elif exact and not is_exact(estimator.model_, positions):
        raise ValueError(
            "it is said to be exactly invariant, but its weights tell sensitive values apart"
        )


def _check_predictions(estimator: Estimator) -> None:
    """Refuse what predicts no numbers: finite weights may still be too large to compute with."""
    rng, sizes = np.random.default_rng(0), estimator.schema_.cardinalities
    codes = rng.integers(np.array(sizes, dtype=int), size=(_N_TRIED, len(sizes)))
    numbers = rng.uniform(-2, 2, (_N_TRIED, len(estimator.schema_.numeric)))
    # The plain engine has no kernels to wait for.
    with use_engine("plain"), torch.no_grad(), np.errstate(over="ignore"):
        link = replace(estimator._link(), shift=estimator.balance_.tolist())
        outputs = estimator.model_(torch.from_numpy(codes), torch.from_numpy(numbers).float())
    if not link(outputs).isfinite().all():
        raise ValueError("its predictions are not finite")
