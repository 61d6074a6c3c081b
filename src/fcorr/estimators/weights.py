"""What the weights of a model file say of the network's sizes."""

from typing import Any

from torch import Tensor


def check_sizes(network: dict[str, Any], weights: dict[str, Tensor]) -> None:
    """Refuse a description of another network than the weights are of, before it is made.

    Loading the weights would find that too, but a size gone wrong may ask for all the memory.
    """
    found = _read_sizes(weights)
    said = {name: network[name] for name in network if name in found}
    wrong = [name for name in said if said[name] != found[name]]
    if wrong:
        raise ValueError(
            f"the header has {', '.join(f'{name} {said[name]}' for name in wrong)}, "
            f"the weights {', '.join(f'{name} {found[name]}' for name in wrong)}"
        )


def _read_sizes(weights: dict[str, Tensor]) -> dict[str, Any]:
    """Read off the weights of any network those sizes that they show."""
    hidden = [f"{part}.hidden." for part in ("head", "network")]
    layers = {name.split(".")[1] for name in weights if name.startswith("layers.")}
    sizes: dict[str, Any] = {
        "head": [
            len(weight)
            for name, weight in _by_place(weights)
            if name.startswith(tuple(hidden)) and name.endswith(".weight")
        ],
        "n_layers": len(layers),
    }
    if "cls" in weights:  # FT-Transformer
        sizes["d_embedding"] = weights["cls"].shape[1]
    elif "embedding.column" in weights:  # TabTransformer
        parts = weights["embedding.column"], weights["embedding.category"]
        sizes["d_embedding"] = sum(part.shape[1] for part in parts)
    return sizes


def _by_place(weights: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
    """Sort by name, numbers in it by value: layer 10 comes after layer 9."""

    def key(item: tuple[str, Tensor]) -> list[tuple[int, str]]:
        parts = item[0].split(".")
        return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]

    return sorted(weights.items(), key=key)
