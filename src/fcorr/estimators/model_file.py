"""Model files: safetensors, with everything that is not a weight as JSON in the header."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, get_args

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from fcorr._core import ModelFileError, write_atomically
from fcorr._version import __version__
from fcorr.data.schema import Schema
from fcorr.estimators.baselines import BaselineClassifier, BaselineRegressor
from fcorr.estimators.classifier import FCorrClassifier
from fcorr.estimators.network import NetworkEstimator
from fcorr.estimators.options import check_options
from fcorr.estimators.regressor import FCorrRegressor
from fcorr.training.history import EpochRecord, History

FORMAT = 1
"""Number of the file's layout; a reader refuses a larger one."""

Estimator = FCorrClassifier | FCorrRegressor | BaselineClassifier | BaselineRegressor

_ESTIMATORS: dict[str, type[Estimator]] = {cls.__name__: cls for cls in get_args(Estimator)}
_SIGNIFICANCE = "significance"


def save_model(estimator: NetworkEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file."""
    header = {
        "format": FORMAT,
        "fcorr_version": __version__,
        "estimator": type(estimator).__name__,
        "network": estimator.network_,
        "parameters": _plain_parameters(estimator),
        "schema": estimator.schema_.to_dict(),
        "named": hasattr(estimator, "feature_names_in_"),
        "columns": list(estimator._input_names),
        "target": estimator._target_state(),
        "balance": estimator.balance_.tolist(),
        "exact": estimator.exact_,
        "seed": estimator.seed_,
        "history": asdict(estimator.history_),
    }
    tensors = {f"model.{k}": v.contiguous() for k, v in estimator.model_.state_dict().items()}
    tensors[_SIGNIFICANCE] = torch.from_numpy(estimator.significance_)
    tensors |= estimator._own_tensors()
    content = save(tensors, metadata={"fcorr": json.dumps(header, ensure_ascii=False)})
    write_atomically(path, content)


def _plain_parameters(estimator: NetworkEstimator) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    # A generator has moved on since the fit: the seed drawn from it is what repeats the model.
    parameters["random_state"] = estimator.seed_
    check_options(parameters)  # or load would refuse them
    # JSON has no integers as keys: columns without names go by the names they were given.
    names = dict(enumerate(estimator._input_names))
    for name in ("kinds", "bins"):
        by_column = parameters[name]
        if isinstance(by_column, Mapping):
            parameters[name] = {
                names.get(column, column): by_column[column] for column in by_column
            }
    if isinstance(parameters.get("class_weight"), Mapping):
        parameters["class_weight"] = list(parameters["class_weight"].items())  # classes are no text
    return {name: _plain(value) for name, value in parameters.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a model file says of itself, without its weights.

    Raises
    ------
    ModelFileError
        The file is truncated, is not a model of fcorr, or was made by a newer version.
    """
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
    FCorrClassifier, FCorrRegressor, BaselineClassifier or BaselineRegressor
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
    except SafetensorError as error:
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
    estimator = _ESTIMATORS[header["estimator"]](**_restore_parameters(header["parameters"]))
    schema = Schema.from_dict(header["schema"])
    estimator.schema_ = schema
    columns = header["columns"]
    estimator.n_features_in_ = len(columns)
    if header["named"]:
        estimator.feature_names_in_ = np.asarray(columns, dtype=object)
    if tuple(n for n in estimator._input_names if n != schema.exposure) != schema.names:
        raise ValueError(f"the table has columns {columns}, the schema {schema.names}")
    estimator._restore_target(header["target"])
    estimator.balance_ = np.array(header["balance"], dtype=np.float64)
    is_shift = estimator.balance_.shape == (estimator._n_outputs(),)
    if not is_shift or not np.isfinite(estimator.balance_).all():
        raise ValueError(f"balance is {estimator.balance_}")
    estimator.seed_ = header["seed"]
    epochs = [EpochRecord(**record) for record in header["history"].pop("epochs")]
    estimator.history_ = History(**header["history"], epochs=epochs)
    estimator.exact_ = header["exact"]
    if type(estimator.exact_) is not bool:
        raise ValueError(f"exact is {estimator.exact_!r}")
    estimator.network_ = header["network"]
    estimator.significance_ = tensors.pop(_SIGNIFICANCE).double().numpy().copy()
    if estimator.significance_.shape != (estimator._n_attending(),):
        raise ValueError(f"significance has shape {estimator.significance_.shape}")
    estimator._restore_own(tensors)
    weights = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    estimator.model_ = estimator._restore_network(weights)
    estimator.model_.eval()
    return estimator


def _restore_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Undo :func:`_plain_parameters`, as far as JSON has no words for it."""
    parameters["device"] = "cpu"
    for options in (parameters, parameters.get("network_options") or {}):
        if "head" in options:
            options["head"] = tuple(options["head"])
    if isinstance(parameters.get("class_weight"), list):
        parameters["class_weight"] = dict(parameters["class_weight"])
    if isinstance(parameters.get("threshold"), dict) and "cost" in parameters["threshold"]:
        parameters["threshold"] = {"cost": tuple(parameters["threshold"]["cost"])}
    check_options(parameters)
    return parameters
