"""Invariance that is read off the weights alone.

A feature enters FCorrTransformer through its embedding, one number, and through nothing else:
whatever follows (any number of encoder layers, with or without residual, the head) is a function of
the embeddings. If all categories of a feature, or all numbers and the lack of one, are embedded as
the same number, bit for bit, the input of that function does not change under a flip, and neither
does its output: the same instructions run on the same bits. No other weight matters.
:meth:`fcorr.nn.fcorr.FCorrTransformer.collapse` makes it so.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from fcorr._core import InvalidInputError
from fcorr.nn.fcorr import FCorrTransformer
from fcorr.nn.layers import NumericEmbedding, SplineEmbedding


def check_sensitive(model: FCorrTransformer, sensitive: Sequence[int]) -> tuple[int, ...]:
    """Return the positions of the sensitive features, or say which of them does not exist."""
    n_features = model.head_norm.normalized_shape[0]
    for position in sensitive:
        if not 0 <= position < n_features:
            raise InvalidInputError(
                f"sensitive must hold positions of the model's features, 0 to {n_features - 1}, "
                f"got {position!r}. Categorical features come first, numeric ones follow."
            )
    if len(set(sensitive)) != len(sensitive):
        raise InvalidInputError(
            f"sensitive must name each feature once, got {list(sensitive)!r}. Drop the repeats."
        )
    return tuple(int(position) for position in sensitive)


def is_continuous(model: FCorrTransformer, feature: int) -> bool:
    """Whether a feature's values are numbers, not categories."""
    return feature >= len(model.cat_cardinalities)


@torch.no_grad()
def is_exact(model: FCorrTransformer, sensitive: Sequence[int]) -> bool:
    """Whether no flip of the sensitive features can change a prediction, not by one bit.

    It is so if and only if each of them is embedded as one finite number whatever its value is, in
    the precision that the model computes in ("only if" but for weights that happen to ignore the
    difference). Equality is that of bits: 0.0 and −0.0 are told apart. For a numeric feature the
    values are all finite numbers, and NaN where the model has an embedding for it.

    Parameters
    ----------
    model : FCorrTransformer
        The model.
    sensitive : sequence of int
        Positions of the sensitive features.

    Examples
    --------
    >>> model = FCorrTransformer([3, 2], n_numeric=1, head=(4,))
    >>> is_exact(model, [0])
    False
    >>> model.collapse(0, 0.5)
    >>> is_exact(model, [0])
    True
    """
    table = model.categorical.table()
    return all(
        _is_one_number(model, position - len(model.cat_cardinalities))
        if is_continuous(model, position)
        else _same_bits(model.categorical.categories(position, table))
        for position in check_sensitive(model, sensitive)
    )


def _is_one_number(model: FCorrTransformer, j: int) -> bool:
    """Whether a numeric feature is embedded as its constant alone, by the stored weights.

    What is added to the constant is then a zero of either sign. That keeps all its bits but for
    one case: −0.0 + 0.0 is 0.0.
    """
    constant = model.numeric.constant(j)
    one = _later_weights_are_zero(model.numeric, j)
    one &= not (bool(constant == 0) and bool(constant.signbit()))
    if model.missing is None:
        return one and bool(constant.isfinite())
    return one and _same_bits(torch.stack([constant, model.missing[j]]))


def _later_weights_are_zero(numeric: NumericEmbedding | SplineEmbedding, j: int) -> bool:
    if isinstance(numeric, NumericEmbedding):
        return bool(numeric.second.weight[j] == 0)
    steps = numeric.steps[numeric.starts[j] + 1 : numeric.starts[j + 1]]
    # A number beyond the last knot takes a share of 0 of what is stored next: it must be finite.
    return bool((steps == 0).all() and numeric.steps.isfinite().all())


def _same_bits(embeddings: Tensor) -> bool:
    bits = embeddings.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[embeddings.itemsize])
    return bool((bits == bits[:1]).all() and embeddings.isfinite().all())
