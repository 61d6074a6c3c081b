"""Training on Ray: members of a pack as tasks, one network by processes of Ray Train.

The members of a pack have nothing to say to each other while they are trained: each is a task, on
whatever machine has room. A single network, and a table in files, are trained by processes that
add up their gradients after every step; each runs the same ``fit``, and each has some row groups of
the files. Ray starts them, and starts them again where one dies: they then go on from the last
state that was kept.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any, TypeVar

import joblib
import torch
import torch.distributed as dist

from fcorr._core import (
    InvalidInputError,
    check_argument,
    connect_ray,
    is_integer,
    require,
    write_atomically,
)
from fcorr.data.stream import ParquetTable
from fcorr.estimators.base import BaseFCorr

Fitted = TypeVar("Fitted", bound=BaseFCorr)

_MOST_FAILURES = 3  # after which Ray gives up
_MODEL, _REFUSED = "model.safetensors", "refused.json"


def fit_on_ray(
    estimator: Fitted,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    workers: int = 2,
    address: str | None = None,
    **options: Any,
) -> Fitted:
    """Fit an estimator on a Ray cluster, in place.

    Parameters
    ----------
    estimator : FCorrClassifier or FCorrRegressor
        What to fit.
    X, y, sample_weight
        As ``fit`` takes them. A table in files, and the checkpoint, must be where all machines of
        the cluster see them.
    workers : int, default=2
        Processes, one processor each.
    address : str, optional
        The cluster's; by default that in ``RAY_ADDRESS``, or a cluster on this machine alone.
    **options
        More arguments of ``fit``. With a ``checkpoint``, processes that die are started again,
        and go on from the last epoch.

    Returns
    -------
    FCorrClassifier or FCorrRegressor
        The estimator, fitted.
    """
    check_argument("workers", workers, is_integer(workers, 1), "an integer of at least 1")
    in_files = isinstance(X, str | os.PathLike | ParquetTable)
    with connect_ray(address, workers):
        if not in_files and estimator._n_members() != 1:
            require("ray.util.joblib", extra="ray", purpose="engine='ray'").register_ray()
            with joblib.parallel_config("ray", n_jobs=workers):
                return estimator.fit(X, y, sample_weight, **options)
        return _fit_together(estimator, (X, y, sample_weight), workers, options)


def _fit_together(
    estimator: Fitted, data: tuple[Any, ...], workers: int, options: dict[str, Any]
) -> Fitted:
    """Let processes of Ray Train fit one estimator together, and take over what they fitted."""
    train = require("ray.train", extra="ray", purpose="engine='ray'")
    by_torch = require("ray.train.torch", extra="ray", purpose="engine='ray'")
    from fcorr.estimators.model_file import load

    X, *outcomes = data
    if isinstance(X, str | os.PathLike):
        X = ParquetTable(X)
    if isinstance(X, ParquetTable):  # processes of Ray's work in a folder of their own
        data = ParquetTable(X.path.resolve(), X.columns), *outcomes
    with tempfile.TemporaryDirectory(prefix="fcorr-ray-") as own:
        # Ray keeps its files where all machines see them, which is where ours are.
        storage = Path(options.get("checkpoint") or own).resolve()
        options = {**options, "checkpoint": storage}
        trainer = by_torch.TorchTrainer(
            _fit_as_one_of_many,
            train_loop_config={"estimator": estimator, "data": data, "options": options},
            scaling_config=train.ScalingConfig(num_workers=workers),
            run_config=train.RunConfig(
                name="ray",
                storage_path=os.fspath(storage),
                failure_config=train.FailureConfig(max_failures=_MOST_FAILURES),
            ),
            torch_config=by_torch.TorchConfig(backend="gloo"),
        )
        refused = storage / _REFUSED
        refused.unlink(missing_ok=True)
        trainer.fit()
        if refused.exists():
            text, argument = json.loads(refused.read_text())
            refused.unlink()
            raise InvalidInputError(text, argument=argument)
        fitted = load(storage / _MODEL)
    parameters = estimator.get_params(deep=False)
    estimator.__dict__.pop("feature_names_in_", None)  # of an earlier fit
    estimator.__dict__.update(vars(fitted) | parameters)
    return estimator


def _fit_as_one_of_many(config: dict[str, Any]) -> None:
    estimator, data, options = config["estimator"], config["data"], config["options"]
    torch.set_num_threads(1)
    refused = Path(options["checkpoint"]) / _REFUSED
    if refused.exists():  # what Ray starts again would be refused again
        return
    try:
        estimator.fit(*data, **options)
    except InvalidInputError as error:
        write_atomically(refused, json.dumps([str(error), error.argument]).encode())
        raise  # or the others would wait for this one
    if dist.get_rank() == 0:
        estimator.save(Path(options["checkpoint"]) / _MODEL)
