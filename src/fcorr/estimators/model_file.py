"""Model files: safetensors, with everything that is not a weight as JSON in the header."""

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from fcorr._core.errors import ModelFileError
from fcorr._core.files import write_atomically
from fcorr._version import __version__
from fcorr.certify.exactness import is_exact
from fcorr.data.schema import Schema
from fcorr.estimators.base import BaseFCorr
from fcorr.estimators.classifier import FCorrClassifier
from fcorr.estimators.invariance import MAX_PORTFOLIO, Portfolio
from fcorr.estimators.options import check_options
from fcorr.estimators.regressor import FCorrRegressor
from fcorr.nn.embeddings import SplineEmbedding
from fcorr.training.history import EpochRecord, History

FORMAT = 1
"""Number of the file's layout; a reader refuses a larger one."""

_ESTIMATORS: dict[str, type[BaseFCorr]] = {
    cls.__name__: cls for cls in (FCorrClassifier, FCorrRegressor)
}
_SIGNIFICANCE = "significance"
_PORTFOLIO = "portfolio.values", "portfolio.shares"


def save_model(estimator: BaseFCorr, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file."""
    header = {
        "format": FORMAT,
        "fcorr_version": __version__,
        "estimator": type(estimator).__name__,
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
    if estimator.portfolio_ is not None:
        parts = estimator.portfolio_.values, estimator.portfolio_.shares
        tensors |= dict(zip(_PORTFOLIO, parts, strict=True))
    content = save(tensors, metadata={"fcorr": json.dumps(header, ensure_ascii=False)})
    write_atomically(path, content)


def _plain_parameters(estimator: BaseFCorr) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    # A generator has moved on since the fit: the seed drawn from it is what repeats the model.
    parameters["random_state"] = estimator.seed_
    # So may have the arguments that shape the network: what was fitted is what is kept.
    model = estimator.model_
    parameters["head"] = [layer.out_features for layer in model.head.hidden]
    parameters["n_layers"] = len(model.layers)
    parameters["residual"] = model.first_layer.residual
    is_spline = isinstance(model.numeric, SplineEmbedding)
    parameters["numeric_embedding"] = "spline" if is_spline else "paper"
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


def load(path: str | os.PathLike[str]) -> FCorrClassifier | FCorrRegressor:
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


def _restore(
    header: dict[str, Any], tensors: dict[str, Tensor]
) -> FCorrClassifier | FCorrRegressor:
    parameters = header["parameters"]
    parameters["head"] = tuple(parameters["head"])
    parameters["device"] = "cpu"
    if isinstance(parameters.get("class_weight"), list):
        parameters["class_weight"] = dict(parameters["class_weight"])
    if isinstance(parameters.get("threshold"), dict) and "cost" in parameters["threshold"]:
        parameters["threshold"] = {"cost": tuple(parameters["threshold"]["cost"])}
    check_options(parameters)
    estimator = _ESTIMATORS[header["estimator"]](**parameters)
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
    estimator.significance_ = tensors.pop(_SIGNIFICANCE).double().numpy().copy()
    if estimator.significance_.shape != (len(schema.feature_names),):
        raise ValueError(f"significance has shape {estimator.significance_.shape}")
    estimator.portfolio_ = _restore_portfolio(tensors, schema)
    weights = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    _check_sizes(estimator, weights)
    padded = weights.get("numeric.knots", torch.empty(0, 0))
    knots = [row[row.isfinite()] for row in padded]
    estimator.model_ = estimator._build_model(knots)
    estimator.model_.load_state_dict(weights)
    estimator.model_.eval()
    estimator.exact_ = header["exact"]
    _check_exactness(estimator)
    assert isinstance(estimator, FCorrClassifier | FCorrRegressor)
    return estimator


def _restore_portfolio(tensors: dict[str, Tensor], schema: Schema) -> Portfolio | None:
    """Take the portfolio out of the tensors, where there is one."""
    values, shares = (tensors.pop(name, None) for name in _PORTFOLIO)
    if values is None or shares is None:
        return None
    positions = schema.sensitive_positions
    n_codes = dict(enumerate(schema.cardinalities))
    possible = (
        values.shape == (len(shares), len(positions))
        and len(shares) <= MAX_PORTFOLIO
        and bool((shares >= 0).all())
        and math.isclose(float(shares.sum()), 1, abs_tol=1e-9)
        and all(
            bool(((column >= 0) & (column < n_codes[position])).all())
            for position, column in zip(positions, values.T, strict=True)
            if position in n_codes
        )
    )
    if not possible:
        raise ValueError("the portfolio of sensitive values is none of this schema")
    return Portfolio(positions, values, shares.double())


def _check_exactness(estimator: BaseFCorr) -> None:
    """Prove once more what the file says: that no flip can change a prediction."""
    positions = estimator.schema_.sensitive_positions
    if type(estimator.exact_) is not bool or (estimator.exact_ and not positions):
        raise ValueError(f"exact is {estimator.exact_!r}, with {len(positions)} sensitive features")
    if estimator.portfolio_ is not None:
        if not estimator.exact_:
            raise ValueError("a model that averages over a portfolio is exact, this one is not")
    elif estimator.exact_ and not is_exact(estimator.model_, positions):
        raise ValueError(
            "it is said to be exactly invariant, but its weights tell sensitive values apart"
        )


def _check_sizes(estimator: BaseFCorr, weights: dict[str, Tensor]) -> None:
    """Refuse a header that asks for another network than the weights are of, before it is made.

    Loading the weights would find that too, but a size gone wrong may ask for all the memory.
    """
    head = [len(weights[f"head.hidden.{i}.weight"]) for i in range(len(estimator.head))]
    n_layers = len({name.split(".")[1] for name in weights if name.startswith("layers.")})
    if head != list(estimator.head) or n_layers != estimator.n_layers:
        raise ValueError(
            f"the header has head {estimator.head} and {estimator.n_layers} layer(s), "
            f"the weights {tuple(head)} and {n_layers}"
        )
