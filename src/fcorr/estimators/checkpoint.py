"""Members of a pack kept in a folder, so that a fit that was cut short goes on where it was.

What a member becomes follows from the rows, the arguments, the recipe and the seed. A file is named
by a digest of these: the same fit finds what it trained before, and another fit does not.
"""

import hashlib
import json
import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from fcorr._core import InvalidInputError, to_plain, write_atomically
from fcorr._version import __version__
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.training.loop import EpochRecord, History
from fcorr.training.pack import Recipe, Trained

_UNITS = {"s": 1, "min": 60, "h": 3600}


class Checkpoint:
    """Trained networks of one fit, in a folder.

    Parameters
    ----------
    folder : path-like
        Made if it is not there.
    arguments : object
        What the fit was asked for, in words that have one ``repr``.
    arrays : ndarray
        All that it learns from.
    """

    def __init__(
        self, folder: str | os.PathLike[str], arguments: object, *arrays: NDArray[Any]
    ) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(f"{__version__} {arguments!r}".encode())
        for array in arrays:
            digest.update(f"{array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        self.key = digest.hexdigest()

    def recall(
        self, recipe: Recipe, seed: int, make_network: Callable[[], FCorrTransformer]
    ) -> Trained | None:
        """Return the network that was trained by a recipe and a seed, if there is one."""
        path = self._path(recipe, seed)
        if not path.exists():
            return None
        try:
            with safe_open(path, framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                header = json.loads(file.metadata()["fcorr"])
            if header["sha256"] != compute_digest(header, tensors):
                raise ValueError("its digest is not that of its content")
            history, model, outputs = header["history"], make_network(), tensors.pop("outputs")
            model.load_state_dict(tensors)
            history["epochs"] = [EpochRecord(**epoch) for epoch in history["epochs"]]
            return Trained(model.eval(), History(**history), outputs)
        except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
            warnings.warn(
                f"{path} is no member that fcorr kept, and is trained again ({error}).",
                UserWarning,
                stacklevel=2,
            )
            return None

    def keep(self, recipe: Recipe, seed: int, trained: Trained) -> None:
        """Write a trained network, whole or not at all."""
        tensors = {name: v.contiguous().cpu() for name, v in trained.model.state_dict().items()}
        tensors["outputs"] = trained.outputs.contiguous()
        header = {"history": to_plain(asdict(trained.history))}
        header["sha256"] = compute_digest(header, tensors)
        content = save(tensors, metadata={"fcorr": json.dumps(header)})
        write_atomically(self._path(recipe, seed), content)

    def _path(self, recipe: Recipe, seed: int) -> Path:
        name = hashlib.sha256(f"{self.key} {recipe!r} {seed}".encode()).hexdigest()[:32]
        return self.folder / f"{name}.safetensors"


def compute_digest(header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Compute the SHA-256 of all that a file of networks says, but for the digest itself.

    It is that of the header as JSON, and of each tensor's name, type, shape and bytes in the
    order of the names. It finds accidents, a bit that flipped or an edit by hand; whoever forges a
    file can compute it anew.
    """
    content = {name: value for name, value in header.items() if name != "sha256"}
    text = json.dumps(content, ensure_ascii=False)
    digest = hashlib.sha256(text.encode(errors="surrogatepass"))
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\n{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.cpu().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def parse_budget(budget: str | float) -> float:
    """Return the seconds of a time such as ``"10min"``, ``"90s"``, ``"1.5h"`` or a number of them.

    Examples
    --------
    >>> parse_budget("1.5h")
    5400.0
    """
    found = re.fullmatch(rf"\s*(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})\s*", str(budget))
    if found is not None:
        seconds = float(found[1]) * _UNITS[found[2]]
    else:
        is_number = isinstance(budget, int | float | np.number) and not isinstance(budget, bool)
        seconds = float(budget) if is_number else float("nan")
    if not 0 < seconds < float("inf"):
        raise InvalidInputError(
            f"budget must be a time such as '90s', '10min' or '2h', got {budget!r}.",
            argument="budget",
        )
    return seconds
