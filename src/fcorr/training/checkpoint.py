"""What a fit has trained, kept in a folder, so that one that was cut short goes on where it was.

A folder belongs to one fit: ``fit.json`` says which. What a network becomes follows from the rows,
the arguments, the recipe and the seed, so a file is named by a digest of these; one that is still
in training has a file with all that its next step depends on.
"""

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from fcorr._core import InvalidInputError, compute_digest, to_plain, write_atomically
from fcorr._version import __version__
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.training.loop import EpochRecord, History
from fcorr.training.pack import Recipe, Trained
from fcorr.training.rows import Ranks

_WITHIN_EPOCH, _BETWEEN_EPOCHS = 120.0, 1.0  # seconds of work that may be lost
_Content = tuple[dict[str, Tensor], dict[str, Any]]


class Checkpoint:
    """Networks of one fit, trained or in training, in a folder, which is made if it is not there.

    ``arguments`` are what the fit was asked for, ``arrays`` all that it learns from. If the folder
    has another fit, an :class:`InvalidInputError` says in what it differs.
    """

    def __init__(
        self, folder: str | os.PathLike[str], arguments: Mapping[str, Any], *arrays: NDArray[Any]
    ) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        for array in arrays:
            digest.update(f"{array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        fit = {name: repr(value) for name, value in sorted(arguments.items())}
        fit |= {"rows": digest.hexdigest(), "version": __version__}
        self._claim(fit)
        self.key = hashlib.sha256(json.dumps(fit).encode()).hexdigest()

    def _claim(self, fit: dict[str, str]) -> None:
        path = self.folder / "fit.json"
        try:
            known = json.loads(path.read_text())
            others = {name: known.get(name) for name in fit if known.get(name) != fit[name]}
        except FileNotFoundError:
            if Ranks.current().own == 0:
                write_atomically(path, json.dumps(fit, indent=1).encode())
            return
        except (ValueError, AttributeError) as error:
            raise InvalidInputError(
                f"{str(path)!r} must say which fit the folder keeps, and cannot be read ({error}). "
                "Use another folder, or remove this one.",
                argument="checkpoint",
            ) from error
        if others:
            told = [
                "other rows" if name == "rows" else f"{name} {was}, now {fit[name]}"
                for name, was in others.items()
            ]
            raise InvalidInputError(
                f"checkpoint must be the folder of the same fit, got one of a fit with "
                f"{'; '.join(told)}. Use another folder, or fit as before.",
                argument="checkpoint",
            )

    def recall(
        self, recipe: Recipe, seed: int, make_network: Callable[[], FCorrTransformer]
    ) -> Trained | None:
        """Return the network that was trained by a recipe and a seed, if there is one."""
        found = _read(path := self._path(recipe, seed))
        if found is None:
            return None
        try:
            tensors, header = found
            history, model, outputs = header["history"], make_network(), tensors.pop("outputs")
            model.load_state_dict(tensors)
            history["epochs"] = [EpochRecord(**epoch) for epoch in history["epochs"]]
            return Trained(model.eval(), History(**history), outputs)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            _warn_of_broken(path, error)
            return None

    def keep(self, recipe: Recipe, seed: int, trained: Trained) -> None:
        """Write a trained network, whole or not at all."""
        if Ranks.current().own:
            return
        tensors = dict(trained.model.state_dict()) | {"outputs": trained.outputs}
        header = {"history": to_plain(asdict(trained.history))}
        write_tensors(self._path(recipe, seed), header, tensors)
        self.keeper(recipe, seed).path.unlink(missing_ok=True)

    def keeper(self, recipe: Recipe, seed: int) -> "StateKeeper":
        """Return what keeps the state of a training."""
        return StateKeeper(self._path(recipe, seed).with_suffix(".state"))

    def _path(self, recipe: Recipe, seed: int) -> Path:
        name = hashlib.sha256(f"{self.key} {recipe!r} {seed}".encode()).hexdigest()[:32]
        return self.folder / f"{name}.safetensors"


class StateKeeper:
    """The state of one training, in a file: tensors by name, and plain data."""

    def __init__(self, path: Path) -> None:
        self.path, self.written = path, time.monotonic()

    def recall(self) -> _Content | None:
        """Return the last state that was kept, if there is one."""
        return _read(self.path)

    def keep(self, state: Callable[[], _Content], *, epoch_ended: bool) -> None:
        """Keep a state: two minutes after the last, or at the end of an epoch of some length."""
        ranks, wait = Ranks.current(), _BETWEEN_EPOCHS if epoch_ended else _WITHIN_EPOCH
        if ranks.n == 1 and time.monotonic() - self.written < wait:
            return
        tensors, plain = state()  # all processes have a part in it
        if ranks.own == 0:
            write_tensors(self.path, plain, tensors)
        self.written = time.monotonic()


def write_tensors(
    path: str | os.PathLike[str], header: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Write tensors and, as JSON in the header, plain data and the digest of both to one file."""
    tensors = {name: v.detach().contiguous().cpu() for name, v in tensors.items()}
    header = {**header, "sha256": compute_digest(header, tensors)}
    write_atomically(
        path, save(tensors, metadata={"fcorr": json.dumps(header, ensure_ascii=False)})
    )


def _read(path: Path) -> _Content | None:
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            header = json.loads(file.metadata()["fcorr"])
        if header.pop("sha256") != compute_digest(header, tensors):
            raise ValueError("its digest is not that of its content")
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        _warn_of_broken(path, error)
        return None
    return tensors, header


def _warn_of_broken(path: Path, error: Exception) -> None:
    warnings.warn(
        f"{path} is nothing that fcorr kept, and is trained again ({error}).", stacklevel=3
    )
