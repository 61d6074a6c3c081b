"""Invariance that is read off the weights alone, and how a model gets it.

A categorical feature enters FCorrTransformer through one number per category and through nothing
else: ``embed`` looks it up, and whatever follows (any number of encoder layers, with or without
residual, the head) is a function of the looked-up numbers. If all categories of a feature have the
same number, bit for bit, the input of that function does not change under a flip, and neither does
its output: the same instructions run on the same bits. No other weight matters.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from fcorr._core.errors import InvalidInputError
from fcorr.nn.fcorr import FCorrTransformer


def check_sensitive(model: FCorrTransformer, sensitive: Sequence[int]) -> tuple[int, ...]:
    """Return the positions of the sensitive features, or say which of them does not exist."""
    n_categorical = len(model.cat_cardinalities)
    for position in sensitive:
        if not 0 <= position < n_categorical:
            raise InvalidInputError(
                "sensitive must hold positions among the model's categorical features, 0 to "
                f"{n_categorical - 1}, got {position!r}. Categorical features come first."
            )
    if len(set(sensitive)) != len(sensitive):
        raise InvalidInputError(
            f"sensitive must name each feature once, got {list(sensitive)!r}. Drop the repeats."
        )
    return tuple(int(position) for position in sensitive)


@torch.no_grad()
def is_exact(model: FCorrTransformer, sensitive: Sequence[int]) -> bool:
    """Whether no flip of the sensitive features can change a prediction, not by one bit.

    It is so if and only if all categories of each of them are embedded as the same finite number,
    in the precision that the model computes in ("only if" but for weights that happen to ignore
    the difference). Equality is that of bits: 0.0 and −0.0 are told apart.

    Parameters
    ----------
    model : FCorrTransformer
        The model.
    sensitive : sequence of int
        Positions of the sensitive features among the categorical ones.

    Examples
    --------
    >>> model = FCorrTransformer([3, 2], n_numeric=1, head=(4,))
    >>> is_exact(model, [0])
    False
    >>> collapse(model, [0])
    >>> is_exact(model, [0])
    True
    """
    table = model.categorical.table()
    return all(
        _are_one_number(model.categorical.categories(position, table))
        for position in check_sensitive(model, sensitive)
    )


def _are_one_number(embeddings: Tensor) -> bool:
    bits = embeddings.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[embeddings.itemsize])
    return bool((bits == bits[:1]).all() and embeddings.isfinite().all())


@torch.no_grad()
def embedding_gap(model: FCorrTransformer, feature: int) -> float:
    """Largest difference between the embeddings of two categories of a feature."""
    embeddings = model.categorical.categories(feature).double()
    return float(embeddings.max() - embeddings.min()) if len(embeddings) else 0.0


@torch.no_grad()
def collapse(
    model: FCorrTransformer,
    sensitive: Sequence[int],
    how: Literal["mean"] | Sequence[ArrayLike] = "mean",
) -> None:
    """Embed all categories of the sensitive features as one number each; in place.

    The category weights of CatLinear become 0 and its bias the number, so that the table gives
    ``bias + 0`` for every category: the same bits for all, in any precision and after any copy of
    the parameters. Training that goes on afterwards would part them again: it has to leave
    these parameters out, or collapse once more at its end.

    Parameters
    ----------
    model : FCorrTransformer
        The model; the shapes of its parameters do not change.
    sensitive : sequence of int
        Positions of the sensitive features among the categorical ones.
    how : "mean" or sequence of array-like
        ``"mean"``: the plain mean over a feature's categories. Else one array of weights per
        sensitive feature, a weight per category, such as the counts of the training table: the
        weighted mean.
    """
    positions = check_sensitive(model, sensitive)
    if not isinstance(how, str) and len(how) != len(positions):
        raise InvalidInputError(
            f"how must be 'mean' or hold weights for each of the {len(positions)} sensitive "
            f"feature(s), got {len(how)}. Pass one array per feature."
        )
    for k, position in enumerate(positions):
        n_categories = model.cat_cardinalities[position]
        weights = how if isinstance(how, str) else how[k]
        model.categorical.collapse(position, _shares(weights, n_categories, model))


def _shares(weights: ArrayLike, n_categories: int, model: FCorrTransformer) -> Tensor:
    device = model.categorical.cat_linear.weight.device
    if isinstance(weights, str):
        if weights != "mean":
            raise InvalidInputError(
                f"how must be 'mean' or weights per category, got {weights!r}. "
                "Pass the training counts of the categories for their weighted mean."
            )
        return torch.ones(n_categories, dtype=torch.float64, device=device)
    shares = torch.as_tensor(weights, dtype=torch.float64, device=device)
    usable = shares.shape == (n_categories,) and bool((shares >= 0).all())
    if not (usable and 0 < float(shares.sum()) < float("inf")):
        raise InvalidInputError(
            f"how must hold {n_categories} weights that are not negative and not all 0, "
            f"got {shares.tolist()!r}. Pass one weight per category."
        )
    return shares
