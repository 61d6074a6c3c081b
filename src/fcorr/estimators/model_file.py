"""Model files: safetensors, with everything that is not a weight as JSON in the header."""

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from fcorr._core import ModelFileError, write_atomically
from fcorr._version import __version__
from fcorr.certify import is_exact
from fcorr.data.schema import Schema
from fcorr.estimators.base import BaseFCorr
from fcorr.estimators.classifier import FCorrClassifier
from fcorr.estimators.invariance import Portfolio
from fcorr.estimators.options import check_arguments
from fcorr.estimators.regressor import FCorrRegressor
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.training.loop import EpochRecord, History

FORMAT = 1
"""Number of the file's layout; a reader refuses a larger one."""

Estimator = FCorrClassifier | FCorrRegressor


def write_model(
    path: str | os.PathLike[str], header: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Write what :meth:`BaseFCorr.save` puts together to one file."""
    header = {"format": FORMAT, "fcorr_version": __version__, **header}
    metadata = {"fcorr": json.dumps(header, ensure_ascii=False)}
    write_atomically(path, save(dict(tensors), metadata=metadata))


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a model file says of itself, without its weights; errors as in :func:`load`."""
    return _read(path)[0]


def load(path: str | os.PathLike[str]) -> Estimator:
    """Read an estimator that ``save`` wrote.

    Nothing in the file is executed: a model from somebody else is safe to open.

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
        The file is truncated, is not a model of fcorr, or was made by a newer version.
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
    header = _parse(text)
    if header is None:
        raise ModelFileError(
            f"{os.fspath(path)!r} is a safetensors file, but not a model of fcorr: its header has "
            "no fcorr entry. Load it with the program that made it."
        )
    if header["format"] > FORMAT:
        raise ModelFileError(
            f"{os.fspath(path)!r} was made by fcorr {header.get('fcorr_version')} in file format "
            f"{header['format']}; fcorr {__version__} reads up to format {FORMAT}. Upgrade fcorr."
        )
    return header, tensors


def _parse(text: str | None) -> dict[str, Any] | None:
    try:
        header = json.loads(text or "null")
    except (ValueError, RecursionError):
        return None
    is_header = isinstance(header, dict) and type(header.get("format")) is int
    return header if is_header else None


def _restore(header: dict[str, Any], tensors: dict[str, Tensor]) -> Estimator:
    classes = {cls.__name__: cls for cls in (FCorrClassifier, FCorrRegressor)}
    estimator = classes[header["estimator"]](**_restore_parameters(header["parameters"]))
    schema = Schema.from_dict(header["schema"])
    estimator.schema_ = schema
    columns = header["columns"]
    estimator.n_features_in_ = len(columns)
    if header["named"]:
        estimator.feature_names_in_ = np.asarray(columns, dtype=object)
    if tuple(n for n in estimator._column_names if n != schema.exposure) != schema.names:
        raise ValueError(f"the table has columns {columns}, the schema {schema.names}")
    estimator._restore_target(header["target"])
    estimator.balance_ = np.array(header["balance"], dtype=np.float64)
    is_shift = estimator.balance_.shape == (estimator._n_outputs(),)
    if not is_shift or not np.isfinite(estimator.balance_).all():
        raise ValueError(f"balance is {estimator.balance_}")
    estimator.seed_ = header["seed"]
    epochs = [EpochRecord(**record) for record in header["history"].pop("epochs")]
    estimator.history_ = History(**header["history"], epochs=epochs)
    estimator.significance_ = tensors.pop("significance").double().numpy().copy()
    if estimator.significance_.shape != (len(schema.feature_names),):
        raise ValueError(f"significance has shape {estimator.significance_.shape}")
    values, shares = (tensors.pop(f"portfolio.{name}", None) for name in ("values", "shares"))
    estimator.portfolio_ = None
    if values is not None and shares is not None:
        estimator.portfolio_ = Portfolio.restore(values, shares, schema)
    weights = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    estimator.network_ = header["network"]
    estimator.model_ = _restore_network(estimator, weights)
    estimator.exact_ = header["exact"]
    _check_exactness(estimator)
    estimator.model_.eval()
    return estimator


def _restore_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Undo :meth:`BaseFCorr._plain_parameters`, as far as JSON has no words for it."""
    parameters["device"] = "cpu"
    parameters["head"] = tuple(parameters["head"])
    if isinstance(parameters.get("class_weight"), list):
        parameters["class_weight"] = dict(parameters["class_weight"])
    if isinstance(parameters.get("threshold"), dict) and "cost" in parameters["threshold"]:
        parameters["threshold"] = {"cost": tuple(parameters["threshold"]["cost"])}
    check_arguments(parameters)
    return parameters


def _restore_network(estimator: BaseFCorr, weights: dict[str, Tensor]) -> FCorrTransformer:
    network = dict(estimator.network_)
    sizes = {"n_layers": network["n_layers"], "head": network["head"]}
    if set(network) != {*sizes, "residual", "numeric_embedding"}:
        raise ValueError(f"the network has {', '.join(network)}")
    advanced = {name: value for name, value in network.items() if name != "head"}
    check_arguments(estimator.get_params() | {"head": network["head"], "advanced": advanced})
    # Loading the weights would find another size too, but one gone wrong may ask for all memory.
    found = _read_sizes(weights)
    if sizes != found:
        raise ValueError(f"the header has sizes {sizes}, the weights {found}")
    padded = weights.get("numeric.knots", torch.empty(0, 0))
    model = estimator._build([row[row.isfinite()] for row in padded])
    model.load_state_dict(weights)
    return model


def _read_sizes(weights: dict[str, Tensor]) -> dict[str, Any]:
    hidden = {
        int(name.split(".")[2]): len(weight)
        for name, weight in weights.items()
        if name.startswith("head.hidden.") and name.endswith(".weight")
    }
    layers = {name.split(".")[1] for name in weights if name.startswith("layers.")}
    return {"n_layers": len(layers), "head": [hidden[i] for i in sorted(hidden)]}


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
