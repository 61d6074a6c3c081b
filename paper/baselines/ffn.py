"""A plain feed-forward network, the simplest baseline: it has no attention to read or regularise.

The paper says of it that it is "composed of fully connected layers" (§4.2), and leaves open what
they get. Here each category has an input of its own, 1 or 0, and each number one.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from fcorr.nn.layers import FeedForward


class FeedForwardNetwork(nn.Module):
    """Linear layers with GELU between them, on one-hot categories and numbers.

    **Shape**: codes ``(B, n_categorical)``, numbers ``(B, n_numeric)`` → ``(B, n_outputs)``.

    Parameters are as in :class:`~paper.baselines.ft_transformer.FTTransformer`, and ``head``, sizes
    of the hidden layers (without any, the model is linear), and ``dropout`` after each of them.

    Notes
    -----
    The paper prints 74,897 and 383,313 parameters and no sizes. Both numbers come out to the unit,
    and with them the memory it prints, with one input per feature instead of per category and
    hidden layers of 128, 16, 128, 512 and of 512, 128, 128, 16, 32, 16. Codes that are passed as
    numbers make such a network: ``FeedForwardNetwork([], 31, (128, 16, 128, 512))``.

    Examples
    --------
    >>> model = FeedForwardNetwork([2, 3], n_numeric=1, head=(8,))
    >>> model(torch.tensor([[0, 2], [1, 1]]), torch.zeros(2, 1)).shape
    torch.Size([2, 1])
    """

    offsets: Tensor

    def __init__(
        self,
        cat_cardinalities: Sequence[int],
        n_numeric: int,
        head: Sequence[int] = (64, 64),
        *,
        n_outputs: int = 1,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.cat_cardinalities = tuple(int(c) for c in cat_cardinalities)
        self.n_categories = sum(self.cat_cardinalities)
        n_in = self.n_categories + n_numeric
        if not n_in:
            raise ValueError(
                "There must be at least one feature, categorical or numeric, got none."
            )
        offsets = torch.tensor([0, *self.cat_cardinalities], dtype=torch.long).cumsum(0)[:-1]
        self.register_buffer("offsets", offsets, persistent=False)
        self.network = FeedForward(n_in, head, n_outputs, dropout=dropout, generator=generator)

    def forward(self, x_cat: Tensor, x_num: Tensor) -> Tensor:
        """Compute the outputs (logits, or the regression score)."""
        # Looking rows of the first weight matrix up needs no one-hot matrix, but the gradient of
        # torch's look-up takes several times as long as this product with a few hundred categories.
        one_hot = x_num.new_zeros(len(x_cat), self.n_categories)
        one_hot.scatter_(1, x_cat + self.offsets, 1)
        return self.network(torch.cat([one_hot, x_num], dim=1))
